"""The report in a real browser: Debian's chromium, driven by Playwright, with no network."""

import pytest
import report_cases as cases
from browsing import CHROMIUM, NONE, background, launched, visiting, width

from promissing.report import render

pytest.importorskip("playwright.sync_api", reason="the Python package playwright is not installed")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason=NONE)
SECTIONS = (
    *("missing", "prediction", "calibration", "information_loss", "coverage", "importance"),
    *("rows", "comparison", "provenance"),
)


@pytest.fixture(scope="module")
def browser():
    with launched() as browser:
        yield browser


@pytest.fixture(scope="module")
def addresses(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    for name in ("binary", "regression", "several"):
        (folder / f"{name}.html").write_text(render(getattr(cases, name)()), encoding="utf-8")
    return {path.stem: path.as_uri() for path in folder.iterdir()}


@pytest.fixture
def visit(browser, addresses):
    """Open a report."""
    with visiting(browser) as open_page:
        yield lambda name="binary", **options: open_page(addresses[name], **options)


@pytest.mark.parametrize("name", ["binary", "regression", "several"])
def test_nothing_is_asked_for_and_nothing_goes_wrong(visit, addresses, name):
    page = visit(name)
    page.locator("#next").click()
    page.locator("#theme").click()
    requests = [url for url in page.seen["requests"] if not url.startswith("data:")]
    assert requests == [addresses[name]]
    assert (page.seen["console"], page.seen["errors"], page.seen["dialogs"]) == ([], [], [])


def test_every_section_and_chart_is_there(visit):
    page = visit()
    for name in SECTIONS:
        assert page.locator(f"#{name} h2").is_visible(), name
    for name in (
        "gaps",
        "histogram",
        "by-missing",
        "reliability",
        "information-loss",
        "paths",
        "coverage",
    ):
        box = page.locator(f'svg.chart[aria-labelledby^="{name}-t"]').bounding_box()
        assert box["width"] > 300, name
        assert box["height"] > 150, name


def test_rows_are_browsed_by_mouse(visit):
    page = visit()
    options = page.locator("#row-list [role=option]")
    assert options.count() == 60
    title = page.locator("#row-title")
    first = title.text_content()
    page.locator("#next").click()
    assert title.text_content() != first
    assert options.nth(1).get_attribute("aria-selected") == "true"
    page.locator("#previous").click()
    assert title.text_content() == first
    assert page.locator("#previous").is_disabled()
    assert page.locator("#effects tbody tr").count() > 0
    options.nth(5).click()
    assert "6 of 60" in page.locator("#place").text_content()


def test_rows_are_browsed_by_keyboard(visit):
    page = visit()
    place = page.locator("#place")
    page.locator("#row-list").focus()
    for key, at in (("ArrowDown", 2), ("j", 3), ("ArrowUp", 2), ("k", 1), ("End", 60), ("Home", 1)):
        page.keyboard.press(key)
        assert place.text_content() == f"{at} of 60", key
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("/")
    page.keyboard.type("jjk")
    assert page.locator("#search").input_value() == "jjk"
    assert page.locator("#status").text_content() == "0 of 60 rows"


def test_rows_are_searched_chosen_and_sorted(visit):
    page = visit()
    found = cases.binary()["rows"]
    name = found["items"][7]["id"]
    page.locator("#search").fill(name)
    assert page.locator("#status").text_content() == "1 of 60 rows"
    assert name in page.locator("#row-title").text_content()
    page.locator("#search").fill("")
    page.locator("#filter").select_option("0")
    assert page.locator("#row-list [role=option]").count() == found["outcomes"][0]["shown"]
    page.locator("#filter").select_option("")
    page.locator("#sort").select_option("prediction")
    shown = page.locator("#row-list .value").all_text_contents()
    values = [int(text.split()[0]) for text in shown]
    assert values == sorted(values, reverse=True)


def test_bars_are_those_of_the_row(visit):
    page = visit()
    item = cases.binary()["rows"]["items"][0]
    kinds = ("flips", "supports", "opposes", "none")
    drawn = page.locator("#effects tbody tr").evaluate_all("rows => rows.map(r => r.dataset.kind)")
    assert drawn == [kinds[kind] for _, _, kind, _ in item["bars"][0]["bars"]]
    assert item["decision"] in page.locator("#row-text").text_content()


def test_modalities_can_be_opened_to_columns(visit):
    page = visit("regression")
    heads = page.locator("#effects tbody th")
    assert "known" in heads.first.text_content()
    page.get_by_role("button", name="By column").click()
    assert heads.count() <= 4
    assert page.get_by_role("button", name="By column").get_attribute("aria-pressed") == "true"


def test_a_column_named_script_is_text(visit):
    page = visit()
    assert page.locator("script").count() == 2
    assert page.locator("main i, main b").count() == 0
    assert page.locator("#importance th", has_text=cases.SCRIPT).first.is_visible()
    page.locator("#search").fill("</script><b>x")
    assert page.locator("#effects th small", has_text="</script><b>x").first.is_visible()
    assert page.seen["dialogs"] == []


@pytest.mark.parametrize("name", ["binary", "regression", "several"])
@pytest.mark.parametrize("pixels", [375, 320])
def test_a_phone_does_not_scroll_sideways(visit, name, pixels):
    assert width(visit(name, width=pixels)) <= pixels


def test_text_in_charts_can_be_read_on_a_phone(visit):
    page = visit(width=375)
    heights = "all => all.map(text => text.getBoundingClientRect().height)"
    assert min(page.locator("svg.chart text").evaluate_all(heights)) >= 10


def test_dark_and_light(visit):
    light, dark = visit(color_scheme="light"), visit(color_scheme="dark")
    assert background(light) == "rgb(253, 252, 249)"
    assert background(dark) == "rgb(21, 23, 26)"
    button = light.locator("#theme")
    button.click()
    button.click()
    assert button.text_content() == "Colours: dark"
    assert background(light) == "rgb(21, 23, 26)"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out(visit, scheme):
    """Contrast of at least 4.5 to 1, as WCAG AA asks for, on paper and on panels."""
    page = visit(color_scheme=scheme)
    ratios = page.evaluate(
        """() => {
          const style = getComputedStyle(document.documentElement);
          const light = (name) => {
            const hex = style.getPropertyValue(name).trim().slice(1);
            const [r, g, b] = [0, 2, 4].map((i) => {
              const c = parseInt(hex.slice(i, i + 2), 16) / 255;
              return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
            });
            return 0.2126 * r + 0.7152 * g + 0.0722 * b + 0.05;
          };
          const ratio = (a, b) => Math.max(a, b) / Math.min(a, b);
          return ["--ink", "--soft", "--main"].flatMap((text) =>
            ["--paper", "--panel"].map((ground) => ratio(light(text), light(ground))));
        }"""
    )
    assert min(ratios) >= 4.5


def test_it_prints_light_and_without_controls(visit):
    page = visit(color_scheme="dark")
    page.emulate_media(media="print")
    assert background(page) == "rgb(253, 252, 249)"
    assert not page.locator("#search").is_visible()
    assert page.locator("#row-title").is_visible()
    assert page.locator("#provenance h2").is_visible()


def test_without_script_all_but_the_rows_is_there(visit):
    page = visit(java_script_enabled=False)
    assert page.locator("svg.chart").count() >= 7
    assert not page.locator("#browser").is_visible()
    assert page.locator("noscript p").count() == 1
