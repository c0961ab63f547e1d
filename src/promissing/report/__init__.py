"""A report about a table and a model, as one HTML page that needs no other file.

`gather` computes everything and returns a plain dict that JSON can hold. `render` makes the page.
"""

from promissing.report.gather import STRATEGIES, gather
from promissing.report.render import render

__all__ = ["STRATEGIES", "gather", "render"]
