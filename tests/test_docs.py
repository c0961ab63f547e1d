"""README and docs/: links lead to files, command lines are valid, and the site builds."""

import re
import shlex
import subprocess
import sys
from html.parser import HTMLParser
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from pkgutil import iter_modules

import click
import numpy as np
import pandas as pd
import pytest
from browsing import CHROMIUM, NONE, background, launched, visiting, width
from click.testing import CliRunner

import promissing
from promissing.cli import main

# Pages with text, code, wide tables, pictures, the reference and the search.
OPENED = ("index", "why", "layers", "cli", "clinical", "accuracy", "api/estimators", "search")
OPENED += ("auto_tutorials/plot_4_modalities", "auto_examples/index")
ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = sorted(path for path in DOCS.rglob("*.md") if "_build" not in path.parts)
DOCUMENTS = [ROOT / "README.md", *PAGES]
FENCE = re.compile(r"^```.*?^```$", flags=re.M | re.S)


def name_of(path):
    return str(path.relative_to(ROOT))


def commands(command=main, path=("promissing",)):
    """Yield every command that is not a group, with its words."""
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            yield from commands(command.get_command(context, name), (*path, name))
    else:
        yield path, command


def command_lines(document):
    """Yield the commands in a document as lists of words, without redirections."""
    text = document.read_text().replace("\\\n", " ")
    for line in re.findall(r"^(?: {4}|\$ )?(promissing .+)$", text, flags=re.M):
        for part in re.split(r"\s[|>&]+\s", line):
            words = shlex.split(part, comments=True)
            if words and words[0] == "promissing":
                yield words[1:]


def source_of(path):
    """Return the file from which a page is made; sphinx-gallery makes pages of scripts."""
    folders = {"auto_tutorials": DOCS / "tutorials", "auto_examples": ROOT / "examples"}
    if path.parent.name not in folders:
        return path
    name = "README.rst" if path.name == "index" else f"{path.name}.py"
    return folders[path.parent.name] / name


@pytest.mark.parametrize("document", DOCUMENTS, ids=name_of)
def test_every_relative_link_and_image_leads_to_a_file(document):
    text = FENCE.sub("", document.read_text())
    targets = re.findall(r"\]\(([^)\s]+)\)", text)
    for target in targets:
        if not re.match(r"[a-z]+:", target) and not target.startswith("#"):
            assert source_of(document.parent / target.split("#")[0]).exists(), target


def test_every_page_is_in_the_table_of_contents():
    def listed(page):
        text = page.read_text()
        for block in re.findall(r"^```\{toctree\}\n(.*?)^```$", text, flags=re.M | re.S):
            for line in block.splitlines():
                if line and not line.startswith((":", "auto_")):
                    yield page.parent / f"{line}.md"

    found, left = {DOCS / "index.md"}, [DOCS / "index.md"]
    while left:
        new = set(listed(left.pop())) - found
        found |= new
        left += [page for page in new if page.exists()]
    assert sorted(map(name_of, found)) == sorted(map(name_of, PAGES))


def test_every_public_module_has_a_page():
    public = {m.name for m in iter_modules(promissing.__path__) if not m.name.startswith("_")}
    pages = {page.stem for page in DOCS.glob("api/*.md")} - {"index", "promissing"}
    # `networks` has pages for its public modules; `cli` has docs/cli.md; `training` is internal.
    assert public - {"cli", "training"} == {name.partition(".")[0] for name in pages}
    for name in pages:
        assert import_module(f"promissing.{name}").__all__, name


def test_every_command_is_in_the_docs():
    text = "\n".join(page.read_text() for page in PAGES)
    missing = [" ".join(path) for path, _ in commands() if " ".join(path) not in text]
    assert not missing


@pytest.mark.parametrize("document", DOCUMENTS, ids=name_of)
def test_every_command_line_in_the_documents_is_valid(document):
    known = dict(commands())
    for words in command_lines(document):
        tried = (("promissing", *words[:n]) for n in (2, 1))
        path = next((path for path in tried if path in known), None)
        assert path, f"There is no command `promissing {words[0]}`."
        try:
            known[path].make_context(" ".join(path), words[len(path) - 1 :])
        except click.exceptions.Exit:
            pass  # --help
        except click.UsageError as error:
            pytest.fail(f"promissing {' '.join(words)}: {error.format_message()}")


# The same commands on a table of 120 rows, with less training.
LESS = {
    "fit": ["--epochs", "2"],
    "compare": [
        *("--epochs", "2", "--folds", "2", "--repetitions", "1"),
        *("--strategies", "mean,fpromissing"),
    ],
    "report": ["--epochs", "2", "--folds", "2"],
}


@pytest.mark.slow
def test_the_commands_for_a_table_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(120, 3)), columns=["age", "dose", "marker"])
    remission = np.where(table.sum(axis=1) > 0, "yes", "no")
    table = table.mask(rng.random(table.shape) < 0.2).assign(remission=remission)
    table.to_csv("new.csv", index=False)
    table.to_csv("patients.csv", index=False)
    Path("modalities.toml").write_text('[modalities]\na = ["age"]\nb = ["dose", "marker"]\n')
    words = ["fit", "patients.csv", "--target", "remission", "--out", "model.safetensors"]
    result = CliRunner().invoke(main, [*words, *LESS["fit"]])
    assert result.exit_code == 0, result.output
    ran = []
    for document in DOCUMENTS:
        if document == DOCS / "cli.md":
            continue  # The tests of the command line run these.
        for words in command_lines(document):
            if words[0] in ("experiment", "demo") or words in ran:
                continue  # They run for long; their own tests run them in reduced form.
            less = LESS.get(words[0], [])
            if words[0] == "report" and "--no-compare" not in words:
                less = [*less, "--compare", "mean"]
            result = CliRunner().invoke(main, [*words, *less])
            assert result.exit_code == 0, f"promissing {' '.join(words)}: {result.output}"
            ran.append(words)
    assert {"compare", "report"} <= {words[0] for words in ran}


class Resources(HTMLParser):
    """Addresses that a browser fetches by itself when it opens a page."""

    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.found += [
            given[name] for name in ("src", "srcset", "data", "poster") if given.get(name)
        ]
        if tag == "link" and given.get("rel") not in (
            "next",
            "prev",
            "index",
            "search",
            "canonical",
        ):
            self.found.append(given.get("href") or "")


def build(folder, *options):
    """Build the site, with warnings as errors."""
    if not all(map(find_spec, ("sphinx", "myst_parser", "furo", "sphinx_gallery"))):
        pytest.skip("Sphinx is not installed: `make docs` installs it.")
    out = subprocess.run(
        [sys.executable, "-m", "sphinx", "-qW", "--keep-going", *options, DOCS, folder],
        capture_output=True,
        text=True,
        check=False,
    )
    assert out.returncode == 0, out.stderr
    return folder


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site without running tutorials and gallery."""
    return build(tmp_path_factory.mktemp("site"), "-D", "plot_gallery=0")


@pytest.fixture(scope="module")
def whole_site(tmp_path_factory):
    """The site with tutorials and gallery, whose scripts are executed if they have changed."""
    return build(tmp_path_factory.mktemp("whole_site"))


@pytest.mark.slow
def test_the_site_builds_without_warnings_and_needs_no_network(site):
    pages = list(site.rglob("*.html"))
    assert {page.relative_to(site).with_suffix(".md") for page in pages} >= {
        page.relative_to(DOCS) for page in PAGES
    }
    for page in pages:
        reader = Resources()
        reader.feed(page.read_text())
        assert not [url for url in reader.found if re.match(r"(https?:)?//", url)], page
    for sheet in site.rglob("*.css"):
        assert not re.search(r"(@import|url\()\s*[\"']?(https?:)?//", sheet.read_text()), sheet


@pytest.mark.extras
def test_tutorials_and_gallery_run_and_show_what_they_print(whole_site):
    examples = list((whole_site / "auto_examples").glob("plot_*.html"))
    tutorials = list((whole_site / "auto_tutorials").glob("plot_*.html"))
    assert len(examples) >= 12
    assert len(tutorials) == 6
    for page in [*examples, *tutorials]:
        text = page.read_text()
        assert "sphx-glr-script-out" in text or "sphx-glr-single-img" in text, page


@pytest.mark.extras
@pytest.mark.skipif(CHROMIUM is None, reason=NONE)
def test_no_page_is_too_tall_for_a_phone(whole_site):
    """At most ten screens of a phone, except the reference."""
    pages = [page for page in whole_site.rglob("*.html") if page.parent.name != "api"]
    reference = {"cli", "genindex", "py-modindex", "search", "index"}
    with launched() as browser, visiting(browser) as visit:
        for page in pages:
            if page.stem not in reference and "_static" not in page.parts:
                seen = visit(page.as_uri(), width=390)
                assert seen.evaluate("document.documentElement.scrollHeight") <= 8000, page


@pytest.mark.extras
@pytest.mark.skipif(CHROMIUM is None, reason=NONE)
def test_the_site_in_a_browser(whole_site):
    """Pages of every kind on a wide and a narrow screen, in light and dark colours."""
    with launched() as browser:
        site = whole_site
        for page in [site / f"{name}.html" for name in OPENED]:
            with visiting(browser) as visit:
                light, dark = (
                    visit(page.as_uri(), width=pixels, color_scheme=scheme)
                    for pixels, scheme in ((1280, "light"), (375, "dark"))
                )
                assert background(light) != background(dark), page
                assert width(dark) <= 375, page
                for seen in (light.seen, dark.seen):
                    fetched = [url for url in seen["requests"] if not url.startswith("data:")]
                    assert all(url.startswith(site.as_uri()) for url in fetched), page
                    assert (seen["console"], seen["errors"], seen["dialogs"]) == ([], [], []), page
                broken = "all => all.filter(i => !i.complete || !i.naturalWidth).map(i => i.src)"
                assert light.locator("article img").evaluate_all(broken) == [], page
