"""Settings of Sphinx, which builds the documentation: `make docs`.

The build needs no network, so references to other projects are links and not intersphinx.
"""

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
autodoc_mock_imports = ["torch"]
napoleon_google_docstring = False
napoleon_use_ivar = True
napoleon_use_rtype = False

# The pages of the layers are built without Keras and PyTorch. Sphinx's own mock would replace
# classes that have a decorator, which Keras layers have.
sys.modules["keras"] = keras = MagicMock()
keras.layers.Layer = type("Layer", (), {"__module__": "keras.layers"})
keras.saving.register_keras_serializable = lambda **_: lambda kind: kind

DOCS = Path(__file__).parent
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


def setup(app: Any) -> None:
    app.connect("source-read", link_outside_files)
    app.connect("autodoc-skip-member", leave_out)
