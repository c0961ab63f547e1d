"""Settings of Sphinx, which builds the documentation: `make docs`.

Tutorials and the gallery are executed. `-D plot_gallery=0` builds them without running them. The
build needs no network: names of other projects are listed in `inventories.txt`.
"""

from __future__ import annotations

import os
import re
import sys
import zlib
from pathlib import Path
from typing import Any

os.environ.setdefault("KERAS_BACKEND", "jax")

import promissing

project = "promissing"
version = release = promissing.__version__
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.intersphinx",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "figures", "tutorials", "auto_*/*.py", "sg_execution_times.rst"]
exclude_patterns += ["auto_*/*.ipynb", "auto_*/sg_execution_times.rst"]
highlight_language = "none"  # Blocks that are not marked as Python are for the shell.
default_role = "code"
strip_signature_backslash = True  # Otherwise names such as `classes_` lose their underscore.

html_theme = "furo"
html_title = "promissing"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_copyright = False

autodoc_default_options = {"members": True, "member-order": "bysource"}
autodoc_typehints = "none"  # The docstrings give the types.
napoleon_google_docstring = False
napoleon_use_ivar = True
napoleon_use_rtype = False
# Types in docstrings link to the documentation of their project.
napoleon_preprocess_types = True
napoleon_type_aliases = {
    "DataFrame": ":class:`~pandas.DataFrame`",
    "frame": ":class:`frame <pandas.DataFrame>`",
    "Series": ":class:`~pandas.Series`",
    "ndarray": ":class:`~numpy.ndarray`",
    "array": ":class:`array <numpy.ndarray>`",
    "array-like": ":term:`array-like <numpy:array_like>`",
    "RandomState": ":class:`~numpy.random.RandomState`",
    "Generator": ":class:`~numpy.random.Generator`",
    "Axes": ":class:`~matplotlib.axes.Axes`",
}

DOCS = Path(__file__).parent
sys.path.insert(0, str(DOCS))  # For gallery_style.
# Tutorials run the commands of this environment.
os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True


def write_inventories(folder: Path) -> dict[str, tuple[str, str]]:
    """Write an inventory for each project in inventories.txt, in the format of Sphinx."""
    projects: dict[str, tuple[str, list[str]]] = {}
    for line in (DOCS / "inventories.txt").read_text().splitlines():
        words = line.split()
        if len(words) == 2:
            name, address = words
            projects[name] = (address, [])
        elif words:
            projects[name][1].append(" ".join(words).replace("$", words[0]))
    found = {}
    folder.mkdir(parents=True, exist_ok=True)
    for name, (address, lines) in projects.items():
        head = f"# Sphinx inventory version 2\n# Project: {name}\n# Version: \n"
        head += "# The remainder of this file is compressed using zlib.\n"
        body = zlib.compress("".join(f"{line}\n" for line in lines).encode())
        (folder / f"{name}.inv").write_bytes(head.encode() + body)
        found[name] = (address, str(folder / f"{name}.inv"))
    return found


intersphinx_mapping = write_inventories(DOCS / "_build/inventories")


sphinx_gallery_conf = {
    "examples_dirs": ["tutorials", "../examples"],
    "gallery_dirs": ["auto_tutorials", "auto_examples"],
    "reset_modules": ("gallery_style.reset_figures",),
    "abort_on_example_error": True,
    "capture_repr": (),
    "show_memory": False,
    "show_signature": False,
    "min_reported_time": 10**6,
    "download_all_examples": False,
    "within_subsection_order": "FileNameSortKey",
    "copyfile_regex": r"",
    "thumbnail_size": (320, 224),
}
SKLEARN = re.compile(r"[gs]et_params|get_metadata_routing|set_\w+_request")
OUTSIDE = re.compile(r"\[([^\]]*)\]\((\.\./[^)#]+)\)")


def link_outside_files(app: Any, docname: str, source: list[str]) -> None:
    """Turn links to files outside docs/ into downloads, and links to directories into text."""

    def link(match: re.Match[str]) -> str:
        text, target = match.groups()
        if (DOCS / target).is_dir():
            return f"`{text}`"
        return f"[{text}](path:{target})" if target.endswith(".md") else match.group()

    source[0] = OUTSIDE.sub(link, source[0])


def leave_out(app: Any, what: str, name: str, member: Any, skip: bool, options: Any) -> bool | None:
    """Leave out the fields of tuples and the methods that every scikit-learn estimator has."""
    field = str(getattr(member, "__doc__", "")).startswith("Alias for field number")
    return True if field or SKLEARN.fullmatch(name) else None


# Text that screen readers and keyboards need, and that the theme and the gallery leave out.
ACCESSIBLE = (
    (r'<p class="caption" role="heading">', r'<p class="caption" role="heading" aria-level="2">'),
    (r"<pre(?: id=\"\w+\")?>", r'<pre tabindex="0">'),
    (r'<div class="table-wrapper', r'<div tabindex="0" class="table-wrapper'),
    (
        r'(<a class="reference internal" href="[^"]*")(><span class="doc">)([^<]*)(</span>)',
        r'\1 aria-label="\3"\2\3\4',
    ),
)


def make_accessible(app: Any, exception: Exception | None) -> None:
    """Complete the pages after the build."""
    if exception is not None or app.builder.format != "html":
        return
    for path in Path(app.outdir).rglob("*.html"):
        text = path.read_text(encoding="utf-8")
        for pattern, replacement in ACCESSIBLE:
            text = re.sub(pattern, replacement, text)
        path.write_text(text, encoding="utf-8")


def setup(app: Any) -> None:
    app.connect("build-finished", make_accessible)
    app.connect("source-read", link_outside_files)
    app.connect("autodoc-skip-member", leave_out)
