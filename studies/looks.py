"""How figures look: one colour, line and mark per strategy, told apart in grey as well."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from promissing.compare.strategies import NAMES, STRATEGIES

__all__ = ["Look", "figure", "look", "save", "title"]


class Look(NamedTuple):
    """Colour, line and mark of a strategy."""

    color: str
    line: Any
    mark: str


_DASH, _DOT, _LONG = (0, (4, 1.5)), (0, (1, 1.2)), (0, (7, 1.5, 1, 1.5))
_LOOKS = {
    "full": Look("#111111", "-", "*"),
    "complete-case": Look("#8c6d46", _DOT, "1"),
    "drop-features": Look("#b9a48a", _DOT, "2"),
    "zero": Look("#9aa0a6", _DASH, "x"),
    "mean": Look("#5f6b76", _DASH, "s"),
    "mean+share": Look("#7f8fb3", _LONG, "P"),
    "mean+indicator": Look("#3b5ba9", _LONG, "D"),
    "knn": Look("#4d9a6a", _DASH, "^"),
    "iterative": Look("#1f7a6d", _DASH, "v"),
    "gain": Look("#b5a21c", _DASH, "<"),
    "promissing": Look("#d1495b", "-", "o"),
    "mpromissing": Look("#a01a58", "-", "h"),
    "fpromissing": Look("#e8871e", "-", "p"),
    "hgb": Look("#6a4c93", _DOT, "X"),
    "lightgbm": Look("#8d6cab", _DOT, "d"),
    "xgboost": Look("#a98fc0", _DOT, "+"),
    "catboost": Look("#c3b1d4", _DOT, "H"),
}
assert tuple(_LOOKS) == NAMES


def look(name: str) -> Look:
    """The look of a strategy."""
    return _LOOKS[name]


def title(name: str) -> str:
    """What figures call a strategy."""
    return STRATEGIES[name].title


@contextmanager
def figure(*shape: int, **options: Any) -> Iterator[tuple[Any, Any]]:
    """A figure without a window, and its axes; closed at the end."""
    from matplotlib import rc_context
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    settings = {
        "font.size": 9,
        "axes.titlesize": 10,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.grid": True,
        "grid.alpha": 0.25,
        "grid.linewidth": 0.5,
        "legend.frameon": False,
        "svg.hashsalt": "promissing",  # The same figure is the same file.
    }
    with rc_context(settings):
        size = options.pop("figsize", None)
        fig = Figure(figsize=size, layout="constrained")
        FigureCanvasAgg(fig)
        yield fig, fig.subplots(*shape, squeeze=False, **options)


def save(fig: Any, folder: Path, name: str) -> None:
    """Write a figure as PNG and as SVG."""
    fig.savefig(folder / f"{name}.png", dpi=150)
    fig.savefig(folder / f"{name}.svg", metadata={"Date": None})
