"""Output of the commands: notes, progress, tables, bars and JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

_BAR_WIDTH = 20


def printable(value: object) -> str:
    """Return a value as text without control characters, which a terminal would execute."""
    return "".join(c if c.isprintable() else "\ufffd" for c in str(value))


def note(text: str) -> None:
    """Print a note in one line on standard error."""
    click.echo(printable(" ".join(text.split())), err=True)


def print_json(document: Any) -> None:
    """Print a document as JSON."""
    click.echo(_as_json(document))


def write_json(path: Any, document: Any) -> None:
    """Write a document as a JSON file."""
    from promissing.io.files import write_text

    write_text(path, _as_json(document) + "\n")


def _as_json(document: Any) -> str:
    return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False)


def console() -> Console:
    """Return a console for standard output that does not interpret markup in column names."""
    from rich.console import Console

    width = None if sys.stdout.isatty() else 120
    return Console(file=sys.stdout, width=width, markup=False, emoji=False, highlight=False)


def is_interactive() -> bool:
    """Return whether standard error is a terminal."""
    return sys.stderr.isatty()


@contextmanager
def progress(title: str, total: float | None = None) -> Iterator[Callable[..., None]]:
    """Show a progress bar on standard error if that is a terminal.

    Yields `step(text, done=None, total=None)`, which updates the description and the progress.
    Without a total, the bar only moves.
    """
    if not is_interactive():
        yield lambda *_: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f}%" if total else ""),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        task = shown.add_task(printable(title), total=total)

        def step(text: str, done: float | None = None, total: float | None = None) -> None:
            shown.update(task, description=printable(text), completed=done, total=total)

        yield step


def table(title: str, columns: Iterable[str], rows: Iterable[Iterable[str]]) -> Table:
    """Return a table; a column whose name ends in > is aligned to the right."""
    from rich import box
    from rich.table import Table

    made = Table(title=printable(title), title_justify="left", box=box.SIMPLE_HEAD)
    made.title_style = "bold"
    for name in columns:
        right = name.endswith(">")
        made.add_column(
            name.removesuffix(">"), justify="right" if right else "left", no_wrap=right or not name
        )
    for row in rows:
        made.add_row(*map(printable, row))
    return made


def bar(share: float, width: int = _BAR_WIDTH) -> str:
    """Draw a share of 0 to 1 as a bar; any share above 0 gets at least one character."""
    encoding = getattr(sys.stdout, "encoding", None) or "ascii"
    block = "█" if encoding.lower().replace("-", "").startswith("utf") else "#"
    return block * min(max(round(share * width), int(share > 0)), width)


def signed_bar(value: float, largest: float, width: int = _BAR_WIDTH // 2) -> str:
    """Draw a value as a bar to the left (negative) or right (positive) of a middle line."""
    drawn = bar(abs(value) / largest if largest else 0.0, width)
    left, right = (drawn, "") if value < 0 else ("", drawn)
    return f"{left:>{width}}|{right:<{width}}"


def percent(share: float) -> str:
    """Return a share as a percentage; a small share above 0 is not rounded to 0."""
    return "<0.1 %" if 0 < share < 0.001 else f"{100 * share:.1f} %"
