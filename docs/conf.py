"""How Sphinx builds the documentation: `make docs`. Nothing in it comes from the network."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import promissing

project = "promissing"
version = release = promissing.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["_build", "figures"]
highlight_language = "none"  # What is not marked as Python is for the shell.
default_role = "code"
strip_signature_backslash = True  # Or names such as `classes_` lose their last sign.

html_theme = "furo"
html_title = "promissing"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_copyright = False

autodoc_default_options = {"members": True, "member-order": "bysource"}
autodoc_typehints = "none"  # The docstrings say what is meant.
autodoc_mock_imports = ["torch"]
napoleon_google_docstring = False
napoleon_use_ivar = True
napoleon_use_rtype = False

# The pages of the layers are built where neither framework is installed. Sphinx's own stand-in
# loses what a decorator is put on, as those of Keras are.
sys.modules["keras"] = keras = MagicMock()
keras.layers.Layer = type("Layer", (), {"__module__": "keras.layers"})
keras.saving.register_keras_serializable = lambda **_: lambda kind: kind

DOCS = Path(__file__).parent
SKLEARN = re.compile(r"[gs]et_params|get_metadata_routing|set_\w+_request")
OUTSIDE = re.compile(r"\[([^\]]*)\]\((\.\./[^)#]+)\)")


def hand_out_results(app: Any, docname: str, source: list[str]) -> None:
    """Let links to files outside docs/ be downloads, and to directories plain text."""

    def link(match: re.Match[str]) -> str:
        text, target = match.groups()
        if (DOCS / target).is_dir():
            return f"`{text}`"
        return f"[{text}](path:{target})" if target.endswith(".md") else match.group()

    source[0] = OUTSIDE.sub(link, source[0])


def leave_out(app: Any, what: str, name: str, member: Any, skip: bool, options: Any) -> bool | None:
    """Leave out what says nothing: fields of tuples, and what all of scikit-learn does."""
    field = str(getattr(member, "__doc__", "")).startswith("Alias for field number")
    return True if field or SKLEARN.fullmatch(name) else None


def setup(app: Any) -> None:
    app.connect("source-read", hand_out_results)
    app.connect("autodoc-skip-member", leave_out)
