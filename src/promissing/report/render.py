"""The last stage of a report: a page that holds all it needs."""

from __future__ import annotations

import base64
import hashlib
import json
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from promissing.report import formats
from promissing.report.pictures import draw

__all__ = ["embedded", "render"]

# A script ends where its end tag stands, and JavaScript once took two more for ends of lines.
_UNSAFE = {ord(c): f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"}


def render(report: dict[str, Any]) -> str:
    """Make one HTML page of what `gather` returned.

    Everything is inside: style, script, charts and data. The page says that nothing else may be
    loaded, and that no other script than its own may run. All text is escaped.
    """
    environment = Environment(
        loader=PackageLoader("promissing.report"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    environment.filters |= {
        name: getattr(formats, name) for name in ("clip", "count", "number", "p_value", "percent")
    }
    script = _asset(environment, "script.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return environment.get_template("page.html").render(
        report=report,
        charts=draw(report),
        style=Markup(_asset(environment, "style.css")),
        script=Markup(script),
        digest=digest,
        data=embedded(_for_browser(report)),
    )


def embedded(value: Any) -> Markup:
    """A value as JSON that can stand inside a script element."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return Markup(text.translate(_UNSAFE))


def _for_browser(report: dict[str, Any]) -> dict[str, Any]:
    """What the script needs."""
    names = ("kind", "classes", "positive", "target_short", "browsing")
    return {name: report[name] for name in names}


def _asset(environment: Environment, name: str) -> str:
    """The text of a file among the templates, untouched."""
    assert environment.loader is not None
    return environment.loader.get_source(environment, name)[0]
