"""A report on a table and a model: one HTML page that needs nothing else.

Three pure stages: `gather` makes a plain dict, which JSON can hold; `render` makes the page of it.
"""

from promissing.report.gather import STRATEGIES, gather
from promissing.report.render import render

__all__ = ["STRATEGIES", "gather", "render"]
