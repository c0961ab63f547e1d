"""What the commands share: options, errors in one line, how tables are read, and what is said."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Console

    from promissing.problem import Problem

__all__ = [
    "NAMED",
    "NUMBERS",
    "BadInput",
    "Listed",
    "clear_errors",
    "json_option",
    "on_terminal",
    "problem_options",
    "progress",
    "read_problem",
    "read_whole",
    "say",
    "seed_option",
    "show_json",
    "shown",
    "table_options",
    "terminal",
]


class BadInput(click.ClickException):
    """What the user gave cannot be used: one line, exit code 2."""

    exit_code = 2


class Listed(click.ParamType[Any]):
    """Values separated by commas."""

    def __init__(self, kind: Callable[[str], Any], name: str) -> None:
        self.kind = kind
        self.name = f"{name},..."

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        """Split the text and convert its parts."""
        if not isinstance(value, str):
            return value
        parts = [part.strip() for part in value.split(",") if part.strip()]
        try:
            return tuple(self.kind(part) for part in parts)
        except ValueError:
            self.fail(f"{value!r} is not a list of numbers separated by commas.", param, ctx)


NAMED, NUMBERS = Listed(str, "name"), Listed(float, "number")
_TABLE = (
    click.option("--separator", metavar="CHAR", help="Of a CSV [found by itself]; 'tab' is one."),
    click.option("--encoding", help="Of a CSV [utf-8]."),
    click.option(
        "--missing-values",
        type=NAMED,
        default=(),
        help="What else stands for missing, such as '?,-999'.",
    ),
)
_PROBLEM = (
    click.option("--target", required=True, metavar="COLUMN", help="The column to predict."),
    click.option(
        "--task",
        type=click.Choice(["classification", "regression"]),
        help="What to predict [as the target suggests].",
    ),
    click.option(
        "--modalities",
        type=click.Path(),
        metavar="FILE.toml",
        help="Which columns belong together: [modalities] name = ['column', ...]",
    ),
    click.option("--drop", type=NAMED, default=(), help="Columns to leave out."),
)


def table_options(command: Any) -> Any:
    """The options of every command that reads a table: for `promissing.files.read_table`."""
    return _with(command, _TABLE)


def problem_options(command: Any) -> Any:
    """The options of every command that learns from a table: for `read_problem`."""
    return _with(command, _PROBLEM)


def seed_option(command: Any) -> Any:
    """The option --seed, 0 by default."""
    option = click.option("--seed", type=int, default=0, show_default=True, help="Of all chance.")
    return option(command)


def json_option(command: Any) -> Any:
    """The flag --json, which is passed as `as_json`."""
    option = click.option("--json", "as_json", is_flag=True, help="Print JSON, for machines.")
    return option(command)


def _with(command: Any, options: Any) -> Any:
    for option in reversed(options):
        command = option(command)
    return command


@contextmanager
def clear_errors() -> Iterator[None]:
    """Bad input ends with one line and exit code 2, a run that failed with one line and 1.

    Warnings are said in one line too.
    """
    with warnings.catch_warnings():
        warnings.showwarning = lambda message, *_, **__: say(str(message))
        try:
            yield
        except BrokenPipeError:  # Nobody reads on, as with `| head`: click ends quietly.
            raise
        except (ValueError, ImportError, FileNotFoundError, FileExistsError) as error:
            raise BadInput(_one_line(error)) from error
        except (RuntimeError, OSError, MemoryError) as error:
            raise click.ClickException(_one_line(error)) from error


def read_problem(file: str, **given: Any) -> Problem:
    """Read a table, pose the problem, and say on standard error what was done to it.

    `given` are the values of `problem_options` and `table_options`.
    """
    return read_whole(file, **given)[1]


def read_whole(
    file: str,
    *,
    target: str,
    task: str | None = None,
    modalities: str | None = None,
    drop: tuple[str, ...] = (),
    separator: str | None = None,
    encoding: str | None = None,
    missing_values: tuple[str, ...] = (),
) -> tuple[pd.DataFrame, Problem]:
    """As `read_problem`, with the whole table beside the problem."""
    from promissing.files import read_table
    from promissing.problem import nearest, pose, read_modalities

    groups = None if modalities is None else read_modalities(modalities)
    with progress(f"Reading {file}"):
        frame = read_table(
            file, separator=separator, encoding=encoding, missing_values=missing_values
        )
    for name in drop:
        if name not in frame.columns:
            raise ValueError(f"--drop: there is no column {name!r}.{nearest(name, frame.columns)}")
    if groups is not None and drop:
        left = {name: [c for c in columns if c not in drop] for name, columns in groups.items()}
        groups = {name: columns for name, columns in left.items() if columns}
    problem = pose(frame.drop(columns=list(drop)), target, task=task, modalities=groups)
    for note in problem.notes:
        say(note)
    return frame, problem


def on_terminal() -> bool:
    """Whether somebody watches: standard error is a terminal."""
    return sys.stderr.isatty()


@contextmanager
def progress(title: str, total: float | None = None) -> Iterator[Callable[..., None]]:
    """A bar on standard error while something lasts; nothing if that is not a terminal.

    Yields a function to call when a step is done: `step()` for one more, `step(done, total)` for
    so many of so many, and with `text=` what is done now. Without a total the bar only moves.
    """
    if not on_terminal():
        yield lambda *_, **__: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f}%" if total else ""),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(shown(title), total=total)

        def step(
            done: float | None = None, total: float | None = None, *, text: str | None = None
        ) -> None:
            if text is not None:
                bar.update(task, description=shown(text))
            if total is not None:
                bar.update(task, total=total)
            if done is not None:
                bar.update(task, completed=done)
            elif text is None:
                bar.advance(task)

        yield step


def say(note: str) -> None:
    """Say something about what is done, on standard error, in one line."""
    click.echo(shown(" ".join(note.split())), err=True)


def terminal(*, err: bool = False) -> Console:
    """A console that takes text as it is: a column called [red] is shown, not obeyed."""
    from rich.console import Console

    stream = sys.stderr if err else sys.stdout
    width = None if stream.isatty() else 120
    return Console(file=stream, width=width, markup=False, emoji=False, highlight=False)


def shown(value: object) -> str:
    """Text of a table as it may be shown: without anything that a terminal would obey."""
    return "".join(c if c.isprintable() else "\ufffd" for c in str(value))


def show_json(document: Any) -> None:
    """Print a plain document as JSON."""
    import json

    click.echo(json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False))


def _one_line(error: BaseException) -> str:
    return shown(" ".join(str(error).split())) or type(error).__name__
