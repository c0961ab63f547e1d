"""Render a report as one HTML page that contains everything it needs."""

from __future__ import annotations

import base64
import hashlib
import html
import json
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from promissing.report import words
from promissing.report.charts import draw_charts

__all__ = ["embed_json", "render"]

# "<" could end the script element; old JavaScript takes the last two for line breaks.
_UNSAFE = {ord(c): f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"}


class Page(str):
    """The text of an HTML page, which a notebook shows as the page."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return (
            f'<iframe srcdoc="{html.escape(self, quote=True)}" title="report" '
            'style="width: 100%; height: 800px; border: 1px solid #8888"></iframe>'
        )


def render(report: dict[str, Any]) -> Page:
    """Render a report as one HTML page.

    Style, script, charts and data are part of the page. Its content security policy forbids
    loading anything else and running any other script. All text is escaped.

    Parameters
    ----------
    report : dict
        The result of `gather`.

    Returns
    -------
    Page
        The HTML text, a `str`. A notebook shows the page.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from promissing.io import define_task
    >>> from promissing.report import gather, render
    >>> rng = np.random.default_rng(0)
    >>> table = pd.DataFrame(rng.normal(size=(40, 2)), columns=["dose", "age"])
    >>> table["response"] = table["dose"] + rng.normal(size=40)
    >>> tiny = {"hidden_layer_sizes": (4,), "n_members": 1, "max_iter": 1}
    >>> found = gather(define_task(table, "response"), strategies=None, folds=2, settings=tiny)
    >>> render(found)[:15]
    '<!doctype html>'
    """
    loader = PackageLoader("promissing.report")
    environment = Environment(
        loader=loader,
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    for function in (words.clip, words.count, words.number, words.p_value, words.percent):
        environment.filters[function.__name__] = function
    style, script = (loader.get_source(environment, name)[0] for name in ("style.css", "script.js"))
    shown = ("kind", "classes", "rows")  # The sections that the script reads.
    text = environment.get_template("page.html").render(
        report=report,
        charts=draw_charts(report),
        style=Markup(style),
        script=Markup(script),
        digest=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        data=embed_json({name: report[name] for name in shown}),
    )
    return Page(text)


def embed_json(value: Any) -> Markup:
    """Return a value as JSON that is safe inside a script element."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return Markup(text.translate(_UNSAFE))
