"""What the commands share: options, errors in terms of options, and reading tables and models."""

from __future__ import annotations

import ast
import csv
import io
import re
import shlex
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from promissing._validation import few
from promissing.cli import _terminal

if TYPE_CHECKING:
    import pandas as pd

    from promissing.io import PredictionTask

# A warning of the encoder that repeats a note about the same column.
CATEGORY_WARNING = "Column .* is text.* a category"
_KINDS = ("number", "boolean", "category", "date")
_MOST_NAMES = 8  # Column names in one message.


# Lists on the command line.


def split(text: str) -> list[str]:
    """Split a list at its commas. A value in double quotes may contain commas."""
    parts = next(csv.reader([text], skipinitialspace=True), [])
    return [part.strip() for part in parts if part.strip()]


def join(values: Any) -> str:
    """Write an option's value as text that the option reads back."""
    if isinstance(values, Mapping):
        values = [str(key) if one is None else f"{key}={one}" for key, one in values.items()]
    if not isinstance(values, list | tuple):
        return str(values)
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(values)
    return line.getvalue()


def quote(text: str) -> str:
    """Quote text for the shell unless it is a plain word."""
    if re.fullmatch(r"[\w=]+", text):
        return text
    return quoted if (quoted := shlex.quote(text)) != text else f"'{text}'"


class ListOf(click.ParamType):  # type: ignore[type-arg]  # Not generic in older versions of click.
    """Values separated by commas."""

    def __init__(self, kind: Callable[[str], Any], name: str) -> None:
        self.kind = kind
        self.name = f"{name},..."

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        """Split the text and convert each part."""
        if not isinstance(value, str):
            return value
        try:
            return tuple(self.kind(part) for part in split(value))
        except ValueError:
            self.fail(f"{value!r} is not a list of numbers separated by commas.", param, ctx)


COLUMNS = ListOf(str, "column")
NAMES = ListOf(str, "name")
ROWS = ListOf(int, "row")


def _date_formats(ctx: Any, param: Any, parts: Iterable[str]) -> dict[str, str | None]:
    """Read COLUMN or COLUMN=FORMAT. Without a % sign, the whole part is a column name."""
    pairs = (part.partition("=") if "%" in part else (part, "", "") for part in parts)
    return {column: form or None for column, _, form in pairs}


def _column_kinds(ctx: Any, param: Any, parts: Iterable[str]) -> dict[str, str]:
    """Read COLUMN=KIND."""
    found = {}
    for part in parts:
        column, sign, kind = part.rpartition("=")
        if not sign or kind not in _KINDS:
            raise click.BadParameter(
                f"{part!r} is not COLUMN=KIND with one of the kinds {', '.join(_KINDS)}."
            )
        found[column] = kind
    return found


# Options of several commands.

COUNT = click.IntRange(min=1)
FILE = click.Path(allow_dash=True)
FILE_ARGUMENT = click.argument("file", type=FILE)

_TABLE_OPTIONS = (
    click.option("--separator", help="Separator of a CSV file, or 'tab'. Detected by default."),
    click.option("--encoding", help="Encoding of a CSV file. UTF-8 by default."),
    click.option(
        "--missing-values",
        type=ListOf(str, "value"),
        default=(),
        help="Additional values that mean missing, such as '?,-999'.",
    ),
    click.option(
        "--decimal",
        type=click.Choice([".", ","]),
        help="Decimal sign of ambiguous numbers such as 1,234. Detected by default.",
    ),
    click.option(
        "--dates",
        type=COLUMNS,
        callback=_date_formats,
        default=(),
        help="Columns with dates such as 31.01.2024. COLUMN=%d/%m/%Y sets the format.",
    ),
    click.option(
        "--kinds",
        type=ListOf(str, "column=kind"),
        callback=_column_kinds,
        default=(),
        help="Kinds of columns: number, boolean, category or date. Detected by default.",
    ),
    click.option(
        "--id",
        "identifier",
        metavar="COLUMN",
        help="Column that identifies a row. It is not a feature; predict and explain copy it to "
        "their output.",
    ),
    click.option("--max-bytes", type=COUNT, help="Size limit of unpacked files. Default: 1 GiB."),
)
_TASKS = click.Choice(["classification", "regression"])
_PROBLEM_OPTIONS = (
    click.option("--target", required=True, metavar="COLUMN", help="Column to predict."),
    click.option("--task", type=_TASKS, help="Detected from the target by default."),
    click.option(
        "--modalities",
        type=click.Path(),
        metavar="FILE.toml",
        help="Groups of columns: a TOML file with [modalities] and lines name = ['column', ...].",
    ),
    click.option("--drop", type=COLUMNS, default=(), help="Columns to leave out."),
    click.option(
        "--positive",
        metavar="CLASS",
        help="Positive one of two classes. By default, the second in sorted order.",
    ),
)
seed = click.option("--seed", type=int, default=0, help="Random seed.")
as_json = click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
strict = click.option("--strict", is_flag=True, help="Reject a table without all model columns.")
folds = click.option("--folds", type=click.IntRange(2), default=5, help="Cross-validation folds.")
epochs = click.option(
    "--epochs",
    type=COUNT,
    help="Maximum number of training epochs. By default, it depends on the number of rows.",
)


def table_options(command: Any) -> Any:
    """Add the options of commands that read a table, for `read_frame`."""
    return _add(_TABLE_OPTIONS, command)


def problem_options(command: Any) -> Any:
    """Add the options of commands that learn from a table, for `read_problem`."""
    return _add(_PROBLEM_OPTIONS, command)


def _add(options: Any, command: Any) -> Any:
    for option in reversed(options):
        command = option(command)
    return command


# Errors in terms of options.


class BadInput(click.ClickException):
    """Invalid input: one line, exit code 2."""

    exit_code = 2


class Command(click.Command):
    """A command that reports errors and warnings of the library in one line each."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        with one_line_errors():
            return super().invoke(ctx)


@contextmanager
def one_line_errors() -> Iterator[None]:
    """Report an error in one line: exit code 2 for invalid input, 1 for a failed run."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", CATEGORY_WARNING)
        warnings.showwarning = lambda message, *_, **__: _terminal.note(
            with_option_names(str(message))
        )
        try:
            yield
        except (BrokenPipeError, click.exceptions.Exit, click.Abort):  # Click handles these.
            raise
        except (ValueError, ImportError, FileNotFoundError, FileExistsError) as error:
            raise BadInput(_one_line(error)) from error
        except (RuntimeError, OSError, MemoryError) as error:
            raise click.ClickException(_one_line(error)) from error


def _one_line(error: BaseException) -> str:
    text = with_option_names(" ".join(str(error).split()))
    return _terminal.printable(text) or type(error).__name__


# Options that are named differently from the parameter.
_OPTION_NAMES = {
    "extra_missing": "extra",
    "max_iter": "epochs",
    "n_members": "members",
    "random_state": "seed",
}
_UNKNOWN = "\0"  # Marks code that corresponds to no option.


def with_option_names(message: str) -> str:
    """Replace the parameters in a library message by options.

    The library writes code in backticks: `max_iter=5` becomes --epochs 5. Advice with other code is
    about Python and is left out. The first sentence states the problem and is always kept.
    """
    if "`" not in message:
        return message
    options = _options()
    message = re.sub("`([^`]*)`", lambda code: _as_option(code[1], options), message)
    first, *advice = re.split(r"(?<=[.!?]) (?=[A-Z])", message)
    kept = [first.replace(_UNKNOWN, ""), *map(_without_unknown, advice)]
    return " ".join(filter(None, kept))


def _options() -> dict[str, click.Option]:
    """Return the options of `fit` and of the running command by parameter name."""
    from promissing.cli.fit import fit

    context = click.get_current_context(silent=True)
    return {
        flag.removeprefix("--").replace("-", "_"): option
        for command in (fit, *([context.command] if context else []))
        for option in command.params
        if isinstance(option, click.Option)
        for flag in option.opts
    }


def _as_option(code: str, options: Mapping[str, click.Option]) -> str:
    """Translate `name` or `name=value`, and mark other code as unknown."""
    if code.startswith("pip "):
        return f"`{code}`"
    parameter, sign, value = code.partition("=")
    name = _OPTION_NAMES.get(parameter, parameter)
    if name not in options:
        return f"{_UNKNOWN}{code}{_UNKNOWN}"
    flag = "--" + name.replace("_", "-")
    if not sign:
        return flag
    try:
        parsed = ast.literal_eval(value)
    except (ValueError, SyntaxError):
        parsed = value
    if isinstance(parsed, bool):
        return flag if parsed else (options[name].secondary_opts or [flag])[0]
    return f"{flag} {quote(join(parsed))}"


def _without_unknown(sentence: str) -> str:
    """Leave out the clauses that contain unknown code."""
    if _UNKNOWN not in sentence:
        return sentence
    kept = "; ".join(c for c in re.split(r"; |, or ", sentence) if _UNKNOWN not in c)
    return f"{kept[0].upper()}{kept[1:].rstrip('.')}." if kept else ""


# Tables.


def require_columns(option: str, names: Iterable[str], frame: pd.DataFrame) -> None:
    """Raise an error if an option names a column that the table does not have."""
    from promissing.io.task import nearest

    for name in names:
        if name not in frame.columns:
            raise ValueError(
                f"{option}: there is no column {name!r}.{nearest(name, frame.columns)}"
            )


def read_frame(
    file: str,
    *,
    identifier: str | None = None,
    lenient: Collection[str] = (),
    text: Collection[str] = (),
    **reading: Any,
) -> pd.DataFrame:
    """Read a table with the values of `table_options`.

    Columns named by options must exist, except those in `lenient`. The identifier and the columns
    in `text` are read as text.
    """
    from promissing.io.files import read_table

    identifiers = [identifier] if identifier else []
    given = {name: value for name, value in reading.items() if value is not None}
    frame = read_table(file, text={*text, *identifiers}, **given)
    named = {"--id": identifiers, "--dates": reading["dates"], "--kinds": reading["kinds"]}
    for option, names in named.items():
        require_columns(option, (name for name in names if name not in lenient), frame)
    return frame


def declared_kinds(reading: Mapping[str, Any]) -> dict[str, str]:
    """Return the kinds of columns that --kinds and --dates declare."""
    return {**reading["kinds"], **dict.fromkeys(reading["dates"], "date")}


def read_problem(
    file: str,
    *,
    target: str,
    task: str | None,
    modalities: str | None,
    drop: tuple[str, ...],
    positive: str | None,
    identifier: str | None,
    **reading: Any,
) -> tuple[pd.DataFrame, PredictionTask]:
    """Read a table and define the prediction task by the values of the shared options.

    Returns the whole table and the task. Notes about the table are printed.
    """
    from promissing.io.task import define_task, read_modalities

    groups = None if modalities is None else read_modalities(modalities)
    with _terminal.progress(f"Reading {file}"):
        frame = read_frame(file, identifier=identifier, **reading)
    require_columns("--drop", drop, frame)
    if identifier == target:
        raise ValueError(f"--id and --target both name column {target!r}. Choose another --id.")
    left_out = {*drop, *([identifier] if identifier else [])}
    if groups is not None:
        groups = {
            name: kept
            for name, columns in groups.items()
            if (kept := [column for column in columns if column not in left_out])
        }
    problem = define_task(
        frame.drop(columns=list(left_out)),
        target,
        task=task,
        modalities=groups,
        positive=positive,
        kinds=declared_kinds(reading),
    )
    problem = replace(problem, notes=tuple(map(with_option_names, problem.notes)))
    for note in problem.notes:
        _terminal.note(note)
    return frame, problem


# Models, and tables for them.


def read_model(path: str) -> Any:
    """Read a model of one target, written by `promissing fit` or `save`."""
    import numpy as np
    import pandas as pd

    from promissing.estimators import load

    model = load(path)
    # The prediction of an empty row shows whether there are several targets.
    empty: Any = np.full((1, model.n_features_in_), np.nan)
    if hasattr(model, "feature_names_in_"):
        empty = pd.DataFrame(empty, columns=model.feature_names_in_)
    min_known = model.min_known
    if model.set_params(min_known=0.0).predict(empty).ndim > 1:
        raise ValueError(f"{path} predicts several targets at once. Use it from Python.")
    return model.set_params(min_known=min_known)


def as_fitted(model: Any, reading: Mapping[str, Any]) -> dict[str, Any]:
    """Complete the values of `table_options` by those with which the model was fitted.

    Columns that were declared for fitting may be absent from a new table.
    """
    fitted = model.reading_ or {}
    declared = declared_kinds(reading)
    then = {
        name: {c: value for c, value in fitted.get(name, {}).items() if c not in declared}
        for name in ("dates", "kinds")
    }
    more = [value for value in model.missing_values_ if value not in reading["missing_values"]]
    if more:
        _terminal.note(f"As when the model was fitted, these count as missing: {_few(more)}.")
    return {
        **reading,
        "missing_values": (*reading["missing_values"], *more),
        "decimal": reading["decimal"] or fitted.get("decimal"),
        "dates": then["dates"] | reading["dates"],
        "kinds": then["kinds"] | reading["kinds"],
        "lenient": {*fitted.get("dates", {}), *fitted.get("kinds", {})},
    }


def read_rows(
    model: Any,
    file: str,
    *,
    strict: bool,
    keep: Collection[str] = (),
    identifier: str | None = None,
    **reading: Any,
) -> tuple[pd.DataFrame, Any, str | None]:
    """Read a table and select the columns of the model.

    A column that the table lacks is missing in every row, or an error with `strict`; columns that
    the model does not know are ignored. Both are noted. The identifier and the columns in `keep`
    are read as text. Returns the whole table, the model's columns and the name of the identifier.
    """
    from promissing.io.description import reads_as

    reading = as_fitted(model, reading)
    if not hasattr(model, "feature_names_in_"):
        frame = read_frame(file, **reading)
        if frame.shape[1] != model.n_features_in_:
            raise ValueError(
                f"{file} has {frame.shape[1]} columns, but the model was fitted on "
                f"{model.n_features_in_} columns without names. Pass the same columns in the same "
                "order."
            )
        return frame, frame.to_numpy(), None
    columns = [str(name) for name in model.feature_names_in_]
    known_id = identifier or (model.reading_ or {}).get("id")
    others = {*keep, *([known_id] if known_id else [])}
    text = _text_columns(model, columns) | (others - {*columns})
    frame = read_frame(file, text=text, identifier=identifier, **reading)
    _note_differences(model, file, frame, columns, others, strict)
    for name, kind in zip(columns, model.encoder_.kinds_, strict=True):
        # The encoder rejects text in such a column. The note explains how to read it.
        if kind in ("number", "date") and name in frame.columns and (note := reads_as(frame[name])):
            _terminal.note(with_option_names(note))
    return frame, frame.reindex(columns=columns), known_id if known_id in frame.columns else None


def select_rows(X: Any, rows: tuple[int, ...] | None, first: int | None) -> Any:
    """Return the rows at these positions; without positions all, or the first few."""
    if rows is None:
        rows = tuple(range(len(X) if first is None else min(first, len(X))))
        if len(rows) < len(X):
            _terminal.note(
                f"The first {len(rows)} of {len(X):,} rows are shown. Choose others with --rows, "
                "or write all with --out."
            )
    bad = [row for row in rows if not 0 <= row < len(X)]
    if bad or not rows:
        what = f"there is no row {bad[0]}" if bad else "the list is empty"
        raise ValueError(f"--rows: {what}. The table has {len(X)} rows, from 0 to {len(X) - 1}.")
    return X.iloc[list(rows)] if hasattr(X, "iloc") else X[list(rows)]


def draw(figure: Any, path: str) -> None:
    """Write a figure to a file and close it."""
    from matplotlib import pyplot as plt

    from promissing.io.files import write_bytes

    drawn = io.BytesIO()
    figure.savefig(drawn, format=Path(path).suffix[1:].lower(), dpi=150)
    plt.close(figure)
    write_bytes(path, drawn.getvalue())


def _note_differences(
    model: Any,
    file: str,
    frame: pd.DataFrame,
    columns: list[str],
    others: Collection[str],
    strict: bool,
) -> None:
    """Note the columns that only the model or only the table has."""
    absent = [name for name in columns if name not in frame.columns]
    unknown = [str(name) for name in frame.columns if name not in {*columns, *others}]
    if len(absent) == len(columns):
        raise ValueError(
            f"{file} has none of the {len(columns)} columns of the model: {_few(columns)}. Is it "
            "the right table?"
        )
    if absent and strict:
        raise ValueError(
            f"{file} lacks {_columns(absent)} of the model. Without --strict, absent columns count "
            "as missing."
        )
    if absent:
        _terminal.note(f"{file} lacks {_columns(absent)} of the model: missing in every row.")
    if model.target_name_ in unknown:
        unknown.remove(model.target_name_)
        _terminal.note(f"Column {model.target_name_!r} is the target of the model: it is not used.")
    if unknown:
        _terminal.note(f"{file} has {_columns(unknown)} unknown to the model: ignored.")


def _text_columns(model: Any, names: list[str]) -> set[str]:
    """Return the columns that were text in training, so that codes such as 007 stay text."""
    categories = model.encoder_.categories_
    return {
        name
        for name, values in zip(names, categories, strict=True)
        if values and all(isinstance(value, str) for value in values)
    }


def _columns(names: list[str]) -> str:
    return f"{len(names)} columns ({_few(names)})" if len(names) > 1 else f"column {names[0]!r}"


def _few(names: list[str]) -> str:
    return few(names, _MOST_NAMES)
