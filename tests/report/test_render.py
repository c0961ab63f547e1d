"""The page: sections, charts, and text that is escaped."""

import json
import re

import pytest
import report_cases as cases

from promissing.report import render
from promissing.report.charts import Axis, Plot, ticks
from promissing.report.render import embed_json
from promissing.report.words import count, join_names, number, p_value, percent

SECTIONS = (
    *("missing", "prediction", "calibration", "information_loss", "coverage", "importance"),
    *("rows", "provenance"),
)
REPORTS = [cases.binary, cases.regression, cases.several]


@pytest.fixture(scope="module")
def page():
    return render(cases.binary())


@pytest.mark.parametrize("report", REPORTS)
def test_every_section_has_a_headline_and_text(report):
    found, page = report(), render(report())
    for name in SECTIONS:
        assert found[name]["headline"], name
        assert all(found[name]["text"]), name
        assert f'<section id="{name}"' in page
    assert "nan" not in found["summary"].lower()


def test_the_comparison_is_optional(page):
    found = cases.binary()["comparison"]
    assert {one["strategy"] for one in found["items"]} == {"mean", "hgb"}
    assert '<section id="comparison"' in page
    assert cases.several()["comparison"] is None
    assert 'id="comparison"' not in render(cases.several())
    assert "#comparison" not in render(cases.several())


def test_suspected_sentinels_are_listed(page):
    assert "<code>-999</code>" in page
    assert "--missing-values" in page


def test_text_of_the_table_is_escaped(page):
    assert "alert(1)" in page
    assert "<script>alert" not in page
    assert "</script><b>" not in page
    for markup in ("<i>relapse", "<b>bold", "<b>signs", "P<0", "<co>", "x<y>"):
        assert markup not in page
    assert len(re.findall(r"<script\b", page)) == 2
    assert "\u2028" not in page[page.index('id="data"') :]


def test_the_page_loads_nothing(page):
    links = re.findall(r'(?:src|href)="([^"]*)"', page)
    assert {link[:5] for link in links if not link.startswith("#")} == {"data:"}
    assert "url(" not in page.replace("url(#hatch", "")
    assert "@import" not in page
    assert "default-src 'none'" in page


def test_charts_have_descriptions_for_screen_readers(page):
    for svg in re.findall(r'<svg class="chart".*?</svg>', page, flags=re.S):
        assert re.search(
            r'role="img" aria-labelledby="([\w-]+)-t \1-d"><title id="\1-t">.+</title>', svg
        )
    ids = re.findall(r'\bid="([^"]+)"', page)
    assert len(ids) == len(set(ids))


def test_the_page_stays_small_for_wide_tables_and_many_rows():
    found = json.loads(json.dumps(cases.binary()))
    rows = found["rows"]
    item = rows["items"][0]
    bars = [[g, -0.123456, 1, "some value of the table"] for g in range(30)]
    item["bars"][0] = {"bars": bars, "more": 70, "unknown": list(range(30, 130))}
    rows["levels"][0]["groups"] = [f"a column of some length {k}" for k in range(200)]
    rows["items"] = [item] * 2000
    assert len(render(found).encode()) < 5e6


def test_ticks_are_round():
    assert ticks(0, 1) == pytest.approx([0, 0.2, 0.4, 0.6, 0.8, 1])
    assert ticks(3, 41) == pytest.approx([10, 20, 30, 40])
    assert ticks(2, 2) == [2]


def test_text_in_charts_is_escaped():
    plot = Plot("a", "<t>", "<d>", x=Axis.of("<x>", 0, 0), y=Axis("&y"))
    plot.point(0, 0, "main", "<tip>")
    plot.label(0, 0, "<label>")
    svg = plot.svg()
    for markup in ("<t>", "<d>", "<x>", "<tip>", "<label>"):
        assert markup not in svg
    assert "&amp;y" in svg


def test_embedded_data_cannot_end_the_script():
    text = embed_json({"</script>": "<!-- & \u2028\u2029"})
    assert not set("<>&\u2028\u2029") & set(text)
    assert json.loads(text) == {"</script>": "<!-- & \u2028\u2029"}


def test_numbers_are_formatted_for_readers():
    assert [percent(x).replace("\u00a0", " ") for x in (0, 0.001, 0.125, 0.999, 1, None)] == [
        *("0 %", "< 1 %", "12 %", "> 99 %", "100 %", "\u2013")
    ]
    assert [number(x) for x in (0, 0.12345, 1234.5, -3, 2.6e-7, float("nan"))] == [
        *("0", "0.123", "1,234", "\u22123.00", "0.0000003", "\u2013")
    ]
    assert [p_value(x) for x in (0.0001, 0.034, None)] == ["< 0.001", "0.034", "\u2013"]
    assert (count(1, "row"), count(1200, "row")) == ("1 row", "1,200 rows")
    assert join_names(["a", "b", "c"]) == "a, b and c"
    assert join_names(list("abcdef")) == "a, b, c and 3 more"


def test_a_notebook_shows_the_page_in_a_frame():
    from promissing.report.render import Page

    shown = Page('<p title="a">b</p>')._repr_html_()
    assert shown.startswith('<iframe srcdoc="&lt;p title=&quot;a&quot;')
