"""Definition of a prediction task: features, target, and notes on the table."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from promissing._validation import did_you_mean, expect, listed
from promissing.encoding.columns import infer_kind
from promissing.io.description import find_suspects, is_identifier, reads_as
from promissing.io.files import FileError

__all__ = ["PredictionTask", "define_task", "read_modalities"]

TASKS = ("classification", "regression")
MOST_CLASSES = 100
_FEW = 20  # Maximum number of distinct whole numbers that are taken as classes.


@dataclass(frozen=True, eq=False)
class PredictionTask:
    """A table prepared for training: features, target and kind of task.

    Parameters
    ----------
    X : DataFrame (n, p)
        The features.
    y : Series (n,)
        The target without missing values: class labels, or numbers as float64.
    target : str
        The name of the target.
    task : {"classification", "regression"}
        The kind of task.
    modalities : dict of str to list of str, or None
        The columns of X by modality.
    notes : tuple of str
        Sentences on changes of the table and on unusual columns.
    positive : label, optional
        The positive class, if it was given.

    Examples
    --------
    >>> import pandas as pd
    >>> from promissing.io import define_task
    >>> define_task(pd.DataFrame({"age": [34, 51], "sick": [True, False]}), "sick").target
    'sick'
    """

    X: pd.DataFrame
    y: pd.Series
    target: str
    task: str
    modalities: dict[str, list[str]] | None
    notes: tuple[str, ...]
    positive: Any = None


def define_task(
    frame: pd.DataFrame,
    target: str,
    *,
    task: str | None = None,
    modalities: Mapping[str, Iterable[str]] | None = None,
    positive: Any = None,
    kinds: Mapping[str, str] | None = None,
) -> PredictionTask:
    """Separate features and target, choose the task and collect notes on the table.

    Rows without a target are left out, and so are columns of text that is different in every row,
    such as names. A target with values that may mean missing, as found by `find_suspects`, is an
    error.

    Parameters
    ----------
    frame : DataFrame
        The table.
    target : str
        The column to predict.
    task : {"classification", "regression"}, optional
        By default classification if the target is text, boolean, or has few distinct whole numbers.
    modalities : mapping of str to sequence of str, optional
        Columns by modality. Columns in no modality are left out.
    positive : label, optional
        The positive one of two classes, or its text.
    kinds : mapping of str to str, optional
        Declared kinds of columns, as for `read_table`. These columns get no notes, and a target
        among them may hold any value.

    Returns
    -------
    PredictionTask
        The task.

    Examples
    --------
    >>> import pandas as pd
    >>> from promissing.io import define_task
    >>> frame = pd.DataFrame({"age": [34, 51, None, 29], "relapse": ["no", "yes", "no", None]})
    >>> task = define_task(frame, "relapse")
    >>> task.task, task.X.shape, task.notes
    ('classification', (3, 1), ("1 of 4 rows lacks the target 'relapse' and is left out.",))
    """
    if target not in frame.columns:
        raise ValueError(f"There is no column {target!r}.{did_you_mean(target, frame.columns)}")
    expect(task in (None, *TASKS), "task", f"one of {TASKS}", task)
    notes: list[str] = []
    known = frame[target].notna().to_numpy()
    lost = int((~known).sum())
    if lost == len(frame):
        raise ValueError(f"The target {target!r} is missing in every row: nothing can be learned.")
    if lost:
        frame = frame[known].reset_index(drop=True)
        lacks = "lacks the target {!r} and is" if lost == 1 else "lack the target {!r} and are"
        notes.append(f"{lost} of {len(known)} rows {lacks.format(target)} left out.")
    y = frame[target]
    settled = set(kinds or ())
    if target not in settled:
        _refuse_markers(y, target)
        notes += filter(None, [reads_as(y)])
    if task is None:
        task, note = _infer_task(y)
        notes += filter(None, [note])
    y = _labels(y, target) if task == "classification" else _numbers(y, target)
    X, more = _features(frame.drop(columns=target), settled)
    notes += more
    kept = None
    if modalities is not None:
        X, kept, more = _by_modality(X, modalities, target, frame.columns)
        notes += more
    if not X.shape[1]:
        raise ValueError(f"There is no column to predict {target!r} from.")
    if positive is not None:
        positive = _positive(y, target, task, positive)
    return PredictionTask(X, y, target, task, kept, tuple(notes), positive)


def read_modalities(path: str | Path) -> dict[str, list[str]]:
    r"""Read the columns of every modality from a TOML file.

    Parameters
    ----------
    path : str or Path
        A file with the line `[modalities]` and lines such as `blood = ["crp", "leuco"]`.

    Returns
    -------
    dict of str to list of str
        The columns by modality.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from promissing.io import read_modalities
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "modalities.toml"
    >>> _ = path.write_text('[modalities]\nblood = ["crp", "leuco"]')
    >>> read_modalities(path)
    {'blood': ['crp', 'leuco']}
    """
    path = Path(path)
    if path.is_dir() or not path.exists():
        raise FileError(f"{path} is a directory." if path.is_dir() else f"There is no file {path}.")
    wanted = 'Write [modalities] and lines such as: blood = ["crp", "leuco"]'
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise FileError(f"{path} is not TOML: {error}. {wanted}") from error
    found = document.get("modalities")
    if not isinstance(found, dict) or not found:
        raise FileError(f"{path} has no table [modalities]. {wanted}")
    home: dict[str, str] = {}
    for name, columns in found.items():
        good = isinstance(columns, list) and columns and all(isinstance(c, str) for c in columns)
        if not good:
            raise FileError(f"{path}: modality {name!r} is not a list of column names. {wanted}")
        for column in columns:
            if column in home:
                where = "twice" if home[column] == name else f"in {home[column]!r} too"
                raise FileError(
                    f"{path}: column {column!r} of modality {name!r} is listed {where}. A column "
                    "belongs to one modality, once."
                )
            home[column] = name
    return found


def _infer_task(y: pd.Series) -> tuple[str, str | None]:
    """Return the task, and a note if the reason is not obvious."""
    kind = infer_kind(y)
    if kind == "date":
        raise ValueError(
            f"The target {y.name!r} holds dates, which cannot be predicted as such. Make it a "
            "number, such as days from a start."
        )
    if kind != "number":
        return "classification", None
    values = y.to_numpy(dtype=float)
    distinct = np.unique(values)
    whole = bool(np.isfinite(distinct).all() and (distinct % 1 == 0).all())
    if whole and len(distinct) <= 2:
        return "classification", None
    if whole and len(distinct) <= min(_FEW, len(y) // 3):
        return "classification", (
            f"The target {y.name!r} holds {len(distinct)} different whole numbers, taken for "
            "classes. To predict them as numbers, pass `task='regression'`."
        )
    return "regression", None


def _refuse_markers(y: pd.Series, target: str) -> None:
    """Raise an error for a target with values that may mean missing."""
    found = [one["value"] for one in find_suspects(y)]
    if "+" in set(y):
        found = [value for value in found if value != "-"]  # Test results.
    if not found:
        return
    rows = int(y.isin(found).sum())
    kind = "category" if infer_kind(y) == "category" else "number"
    raise ValueError(
        f"The target {target!r} holds {', '.join(map(repr, found[:5]))} in {rows} of {len(y)} "
        "rows, which may mean missing. To leave these rows out, pass "
        f"`missing_values={[str(v) for v in found]}`. To learn them as they are, pass "
        f"`kinds={{{target!r}: {kind!r}}}`."
    )


def _positive(y: pd.Series, target: str, task: str, positive: Any) -> Any:
    """Return the label of the positive class, given as the label or its text."""
    labels = sorted(set(y.tolist()), key=str) if task == "classification" else []
    if len(labels) != 2:
        what = f"has {len(labels)} classes" if labels else "is a number"
        raise ValueError(f"`positive` names one of two classes, but the target {target!r} {what}.")
    found = [label for label in labels if label == positive or str(label) == str(positive)]
    if not found:
        raise ValueError(
            f"`positive` must be one of the classes {labels} of the target {target!r}. Received: "
            f"{positive!r}"
        )
    return found[0]


def _labels(y: pd.Series, target: str) -> pd.Series:
    """Return class labels as text, booleans or whole numbers."""
    kind = infer_kind(y)
    classes = y.nunique()
    if classes == 1:
        raise ValueError(
            f"The target {target!r} holds one class only, {_plain(y.iloc[0])!r}: nothing can be "
            "learned."
        )
    if classes > MOST_CLASSES:
        other = "or `task='regression'`" if kind == "number" else "such as a coarser one"
        raise ValueError(
            f"The target {target!r} has {classes:,} classes in {len(y):,} rows, more than "
            f"{MOST_CLASSES}. "
            + (reads_as(y) or f"Is it an identifier? Choose another `target`, {other}.")
        )
    if kind == "boolean":
        return y.astype(bool)
    if kind != "number":
        return y.astype(object).map(str).astype(object)
    values = y.to_numpy(dtype=float)
    if (values % 1 != 0).any():
        raise ValueError(
            f"The target {target!r} holds fractions such as {values[values % 1 != 0][0]:g}, which "
            "are not classes. Pass `task='regression'`."
        )
    return y.astype(np.int64)


def _numbers(y: pd.Series, target: str) -> pd.Series:
    """Return numbers as float64."""
    kind = infer_kind(y)
    values = pd.to_numeric(y, errors="coerce") if kind != "date" else pd.Series(np.nan, y.index)
    bad = ~np.isfinite(values.to_numpy(dtype=float, na_value=np.nan))
    if bad.any():
        raise ValueError(
            f"The target {target!r} holds {_plain(y[bad].iloc[0])!r}, which is not a finite "
            "number. Correct it, make it missing, or pass `task='classification'`."
        )
    if values.nunique() == 1:
        raise ValueError(
            f"The target {target!r} holds one value only, {values.iloc[0]:g}: nothing can be "
            "learned."
        )
    return values.astype(np.float64)


def _features(X: pd.DataFrame, settled: set[str]) -> tuple[pd.DataFrame, list[str]]:
    """Return the columns to learn from, and notes on them."""
    notes, names = [], []
    gone = X.isna().all().to_numpy()
    empty = [str(name) for name in X.columns[gone]]
    if empty:
        are = "is empty: nothing can be learned from it" if len(empty) == 1 else "are empty"
        notes.append(f"{listed(empty)} {are}.")
    for name, column in X.loc[:, ~gone].items():
        if name in settled:
            continue
        notes += filter(None, [reads_as(column)])
        if not is_identifier(column):
            continue
        if column.dtype.kind == "O":
            names.append(name)
            notes.append(
                f"Column {name!r} is text and different in every row, like an identifier: left out."
            )
        else:
            notes.append(
                f"Column {name!r} holds a different whole number in every row. If it is an "
                f"identifier, leave it out: `drop=[{name!r}]`."
            )
    return X.drop(columns=names), notes


def _by_modality(
    X: pd.DataFrame,
    modalities: Mapping[str, Iterable[str]],
    target: str,
    there: Iterable[Any],
) -> tuple[pd.DataFrame, dict[str, list[str]], list[str]]:
    """Return the columns of the modalities in the order of the table, and notes on others."""
    found: dict[str, list[str]] = {}
    for name, columns in modalities.items():
        columns = list(columns)
        for column in columns:
            if column == target:
                raise ValueError(f"Modality {name!r} holds the target {target!r}. Take it out.")
            if column not in there:
                raise ValueError(
                    f"Modality {name!r} names the column {column!r}, which the table does not "
                    f"have.{did_you_mean(column, X.columns)}"
                )
        kept = [column for column in columns if column in X.columns]
        if kept:
            found[name] = kept
    used = {column for columns in found.values() for column in columns}
    spare = [column for column in X.columns if column not in used]
    are = "are" if len(spare) > 1 else "is"
    notes = [f"{listed(spare, 8)} {are} in no modality: left out."] if spare else []
    return X[[column for column in X.columns if column in used]], found, notes


def _plain(value: Any) -> Any:
    """Convert a NumPy scalar to a Python scalar."""
    return value.item() if isinstance(value, np.generic) else value


# The names of release 0.1.0, for `promissing.problem`.
Problem = PredictionTask
pose = define_task
nearest = did_you_mean
