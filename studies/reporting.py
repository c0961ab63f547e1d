"""What all reports share: Markdown tables, the record of a run, and the look of figures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from promissing.compare.strategies import NAMES, STRATEGIES
from studies.runner import read, write

__all__ = ["LOOKS", "Look", "bootstrap", "describe", "draw_ranks", "figure", "markdown"]
__all__ += ["plus_minus", "save", "spread", "title", "write_table"]


def markdown(frame: pd.DataFrame, formats: Mapping[str, str] | None = None) -> str:
    """A frame as a Markdown table without its index. Numbers are right-aligned."""
    formats = formats or {}

    def cell(name: str, value: Any) -> str:
        if value is None or value != value:
            return ""
        text = format(value, formats.get(name, "")) if name in formats else str(value)
        return text.replace("|", "\\|")

    lines = ["| " + " | ".join(map(str, frame.columns)) + " |"]
    marks = ["---:" if pd.api.types.is_numeric_dtype(frame[c]) else "---" for c in frame]
    lines.append("|" + "|".join(marks) + "|")
    for row in frame.itertuples(index=False):
        cells = [cell(name, value) for name, value in zip(frame.columns, row, strict=True)]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def write_table(out: Path, name: str, frame: pd.DataFrame, text: str, **options: Any) -> None:
    """Write a table as NAME.csv and, for readers, as NAME.md; options are those of `to_csv`."""
    write(out / f"{name}.csv", frame.to_csv(index=False, **options))
    write(out / f"{name}.md", text)


def plus_minus(mean: float, sd: float) -> str:
    """A mean with its deviation, if there is one."""
    return f"{mean:.3f} ± {sd:.3f}" if np.isfinite(sd) else f"{mean:.3f}"


def describe(out: Path, command: str) -> None:
    """Write about.md: how the results in `out` were made."""
    about = read(out).about
    facts = {
        "command": f"`{command}`",
        "seconds, all runs together": f"{about['seconds']:.0f}",
        "worker processes": about["jobs"],
        "machine": ", ".join(f"{key} {value}" for key, value in about["platform"].items()),
        "finished": str(about["finished"])[:10],
    }
    if about.get("commit"):
        facts["commit"] = about["commit"]
    facts |= {f"version of {name}": version for name, version in about["versions"].items()}
    facts |= {f"left out: {name}": reason for name, reason in about["skipped"].items()}
    frame = pd.DataFrame({"what": list(facts), "value": [str(value) for value in facts.values()]})
    write(out / "about.md", markdown(frame))


class Look(NamedTuple):
    """Colour, line and marker of a strategy. Strategies also differ when printed in grey."""

    color: str
    line: Any
    mark: str


_DASH, _DOT, _LONG = (0, (4, 1.5)), (0, (1, 1.2)), (0, (7, 1.5, 1, 1.5))
LOOKS = {
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
assert tuple(LOOKS) == NAMES


def title(name: str) -> str:
    """The name of a strategy in figures and tables."""
    return STRATEGIES[name].title


def spread(values: Mapping[str, float], gap: float) -> dict[str, float]:
    """Move values apart that are nearer than a gap, as places of labels."""
    names = sorted(values, key=lambda name: values[name])
    places = {name: values[name] for name in names}
    for _ in range(100):
        for lower, upper in pairwise(names):
            missing = gap - (places[upper] - places[lower])
            if missing > 0:
                places[lower] -= missing / 2
                places[upper] += missing / 2
    return places


@contextmanager
def figure(*shape: int, dark: bool = False, **options: Any) -> Iterator[tuple[Any, Any]]:
    """A figure without a window and its axes; `dark` is for figures on dark pages."""
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
        "axes.facecolor": "none",
    }
    if dark:
        light = "#e6edf3"
        names = ("axes.edgecolor", "axes.labelcolor", "axes.titlecolor", "text.color")
        settings |= dict.fromkeys((*names, "xtick.color", "ytick.color"), light)
    with rc_context(settings):
        size = options.pop("figsize", None)
        fig = Figure(figsize=size, layout="constrained")
        FigureCanvasAgg(fig)
        yield fig, fig.subplots(*shape, squeeze=False, **options)


def save(fig: Any, folder: Path, name: str, **options: Any) -> None:
    """Write a figure as PNG."""
    fig.savefig(folder / f"{name}.png", dpi=150, **options)


def bootstrap(means: pd.DataFrame, rng: np.random.Generator) -> Any:
    """The 2.5 and 97.5 % quantiles of column means over rows drawn again with replacement."""
    drawn = rng.integers(len(means), size=(2000, len(means)))
    return np.quantile(means.to_numpy()[drawn].mean(axis=1), [0.025, 0.975], axis=0)


def draw_ranks(
    ax: Any, ranks: pd.DataFrame, names: Sequence[str], colors: Sequence[str], marks: Sequence[str]
) -> None:
    """Draw mean ranks with their intervals (columns `rank`, `low`, `high`), best first."""
    places = np.arange(len(ranks))[::-1]
    for y, line, color, mark in zip(places, ranks.itertuples(), colors, marks, strict=True):
        ax.plot([line.low, line.high], [y, y], color=color, lw=2.2, alpha=0.6)
        ax.plot(line.rank, y, marker=mark, color=color, ms=6)
    ax.set_yticks(places, names)
    ax.grid(False, axis="y")
