"""What the commands share: options, errors in one line, how tables are read, and what is said."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from promissing.cli._words import in_shell_words, split

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Console

    from promissing.io.task import Problem

__all__ = [
    "NAMED",
    "NUMBERS",
    "TAKEN_FOR_CATEGORY",
    "BadInput",
    "Listed",
    "clear_errors",
    "declared_kinds",
    "json_option",
    "on_terminal",
    "problem_options",
    "progress",
    "read_frame",
    "read_problem",
    "read_whole",
    "say",
    "seed_option",
    "show_json",
    "shown",
    "table_options",
    "terminal",
]


TAKEN_FOR_CATEGORY = "Column .* is text, is taken for a category"


class BadInput(click.ClickException):
    """What the user gave cannot be used: one line, exit code 2."""

    exit_code = 2


class Listed(click.ParamType):  # type: ignore[type-arg]  # Not generic in older versions of click.
    """Values separated by commas."""

    def __init__(self, kind: Callable[[str], Any], name: str) -> None:
        self.kind = kind
        self.name = f"{name},..."

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        """Split the text and convert its parts."""
        if not isinstance(value, str):
            return value
        parts = split(value)
        try:
            return tuple(self.kind(part) for part in parts)
        except ValueError:
            self.fail(f"{value!r} is not a list of numbers separated by commas.", param, ctx)


class Declared(click.ParamType):  # type: ignore[type-arg]  # As `Listed`.
    """Columns with a value each, as COLUMN=VALUE,...; the value may be optional."""

    name = "column=value,..."

    def __init__(self, *, values: tuple[str, ...] | None) -> None:
        self.values = values

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        """Split the text at commas and each part at its equals sign."""
        if not isinstance(value, str):
            return value
        found: dict[str, str | None] = {}
        for part in split(value):
            column, sign, told = part.rpartition("=")
            if self.values is None:  # A format such as %d/%m/%Y; else it is all a name.
                column, _, told = part.partition("=") if "%" in part else (part, "", "")
            elif not sign or told not in self.values:
                known = ", ".join(self.values)
                self.fail(f"{part!r} is not COLUMN=KIND with one of the kinds {known}.", param, ctx)
            found[column] = told or None
        return found


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
    click.option(
        "--decimal",
        type=click.Choice([".", ","]),
        help="Decimal sign where a number such as 1,234 can be read in two ways [by column].",
    ),
    click.option(
        "--dates",
        type=Declared(values=None),
        default="",
        metavar="COLUMN,...",
        help="Columns with dates in text, such as 31.01.2024; COLUMN=%d/%m/%Y gives the format.",
    ),
    click.option(
        "--kinds",
        type=Declared(values=("number", "boolean", "category", "date")),
        default="",
        metavar="COLUMN=KIND,...",
        help="Kinds of columns: number, boolean, category or date [as the values suggest].",
    ),
    click.option(
        "--id",
        "identifier",
        metavar="COLUMN",
        help="Column that identifies a row: it is no feature, and predictions carry it.",
    ),
    click.option(
        "--max-bytes",
        type=click.IntRange(min=1),
        help="The largest size of a compressed file once it is unpacked  [default: 1 GiB]",
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
    click.option(
        "--positive",
        metavar="CLASS",
        help="The positive one of two classes [the second in sorted order].",
    ),
)


def table_options(command: Any) -> Any:
    """The options of every command that reads a table: for `read_frame`."""
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
        # Posing a problem has said it already, of every column.
        warnings.filterwarnings("ignore", TAKEN_FOR_CATEGORY)
        warnings.showwarning = lambda message, *_, **__: say(in_shell_words(str(message)))
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
    positive: str | None = None,
    identifier: str | None = None,
    **reading: Any,
) -> tuple[pd.DataFrame, Problem]:
    """As `read_problem`, with the whole table beside the problem."""
    from promissing.io.task import nearest, pose, read_modalities

    groups = None if modalities is None else read_modalities(modalities)
    with progress(f"Reading {file}"):
        frame = read_frame(file, identifier=identifier, **reading)
    for name in drop:
        if name not in frame.columns:
            raise ValueError(f"--drop: there is no column {name!r}.{nearest(name, frame.columns)}")
    if identifier == target:
        raise ValueError(f"--id and --target both name column {target!r}. Choose another --id.")
    out = [*drop, *([identifier] if identifier and identifier not in drop else [])]
    if groups is not None and out:
        left = {name: [c for c in columns if c not in out] for name, columns in groups.items()}
        groups = {name: columns for name, columns in left.items() if columns}
    problem = pose(
        frame.drop(columns=out),
        target,
        task=task,
        modalities=groups,
        positive=positive,
        kinds=declared_kinds(reading),
    )
    problem = replace(problem, notes=tuple(map(in_shell_words, problem.notes)))
    for note in problem.notes:
        say(note)
    return frame, problem


def read_frame(
    file: str,
    *,
    identifier: str | None = None,
    lenient: Collection[str] = (),
    text: Collection[str] = (),
    **reading: Any,
) -> pd.DataFrame:
    """Read a table; `reading` are the values of `table_options`, by the names of `read_table`.

    Columns that options name must exist, but for those of `lenient`.
    """
    from promissing.io.files import read_table
    from promissing.io.task import nearest

    given = {name: value for name, value in reading.items() if value is not None}
    text = {*text, *([identifier] if identifier else [])}
    frame = read_table(file, text=text, **given)
    named = {"--id": [identifier] if identifier else []}
    named |= {f"--{name}": list(reading.get(name) or ()) for name in ("dates", "kinds")}
    for option, names in named.items():
        for name in names:
            if name not in frame.columns and name not in lenient:
                raise ValueError(
                    f"{option}: there is no column {name!r}.{nearest(name, frame.columns)}"
                )
    return frame


def declared_kinds(reading: Mapping[str, Any]) -> dict[str, str]:
    """The kinds that --kinds and --dates declare, by column."""
    return {**(reading.get("kinds") or {}), **dict.fromkeys(reading.get("dates") or (), "date")}


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
    return shown(in_shell_words(" ".join(str(error).split()))) or type(error).__name__
