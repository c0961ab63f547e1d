"""From a table and the name of a column to something that can be learnt."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from promissing._validation import listed
from promissing.encoding.columns import infer_kind
from promissing.io.description import find_suspects, is_identifier, reads_as
from promissing.io.files import FileError

__all__ = ["Problem", "nearest", "pose", "read_modalities"]

TASKS = ("classification", "regression")
MOST_CLASSES = 100
_FEW = 20  # Whole numbers of which there are at most so many are classes.


@dataclass(frozen=True, eq=False)
class Problem:
    """What is to be learnt from what.

    Attributes
    ----------
    X : DataFrame (n, p)
    y : Series (n,)
        Without gaps: class labels, or numbers as float64.
    target : str
        The name of y.
    task : {"classification", "regression"}
    modalities : dict or None
        The columns of X by modality, all of them.
    notes : tuple of str
        What was done to the table, and what looks odd, in sentences.
    positive : label or None
        The positive one of two classes, if it was named.
    """

    X: pd.DataFrame
    y: pd.Series
    target: str
    task: str
    modalities: dict[str, list[str]] | None
    notes: tuple[str, ...]
    positive: Any = None


def pose(
    frame: pd.DataFrame,
    target: str,
    *,
    task: str | None = None,
    modalities: Mapping[str, Iterable[str]] | None = None,
    positive: Any = None,
    kinds: Mapping[str, str] | None = None,
) -> Problem:
    """Tell target and features apart, settle the task and say what is odd.

    Rows without a target are left out, and so is text that is different in every row: there is
    nothing to learn from a name. All else stays. A target with values that may stand for missing,
    as `promissing.io.description.find_suspects` finds them, is refused.

    Parameters
    ----------
    frame : DataFrame
    target : str
        The column to predict.
    task : {"classification", "regression"}, optional
        By default classification if the target is text, boolean, or holds few whole numbers.
    modalities : mapping of a name to columns, optional
        Columns in none of them are left out.
    positive : label, optional
        The positive one of two classes, or its text.
    kinds : mapping of str to str, optional
        Kinds of columns that are known, as for `promissing.io.files.read_table`. They are not
        questioned: a target in it may hold any value.

    Returns
    -------
    Problem

    Examples
    --------
    >>> import pandas as pd
    >>> from promissing.io.task import pose
    >>> frame = pd.DataFrame({"age": [34, 51, None, 29], "relapse": ["no", "yes", "no", None]})
    >>> problem = pose(frame, "relapse")
    >>> problem.task, problem.X.shape, problem.notes
    ('classification', (3, 1), ("1 of 4 rows lacks the target 'relapse' and is left out.",))
    """
    if target not in frame.columns:
        raise ValueError(f"There is no column {target!r}.{nearest(target, frame.columns)}")
    if task not in (None, *TASKS):
        raise ValueError(f"`task` must be one of {TASKS}. Received: {task!r}")
    notes: list[str] = []
    known = frame[target].notna().to_numpy()
    lost = int((~known).sum())
    if lost == len(frame):
        raise ValueError(f"The target {target!r} is missing in every row: nothing can be learnt.")
    if lost:
        frame = frame[known].reset_index(drop=True)
        lacks = "lacks the target {!r} and is" if lost == 1 else "lack the target {!r} and are"
        notes.append(f"{lost} of {len(known)} rows {lacks.format(target)} left out.")
    y = frame[target]
    settled = set(kinds or ())
    if target not in settled:
        _refuse_markers(y, target)
        said = reads_as(y)
        notes += [] if said is None else [said]
    task, why = (task, None) if task else _infer_task(y)
    notes += [] if why is None else [why]
    y = _labels(y, target) if task == "classification" else _numbers(y, target)
    X = frame.drop(columns=target)
    X, more = _features(X, settled)
    notes += more
    if modalities is not None:
        X, modalities, more = _by_modality(X, modalities, target, frame.columns)
        notes += more
    if not X.shape[1]:
        raise ValueError(f"There is no column to predict {target!r} from.")
    kept = None if modalities is None else {name: list(cols) for name, cols in modalities.items()}
    if positive is not None:
        positive = _positive(y, target, task, positive)
    return Problem(X, y, target, task, kept, tuple(notes), positive)


def read_modalities(path: str | Path) -> dict[str, list[str]]:
    """Read the columns of every modality from a TOML file: [modalities] name = ["column", ...]."""
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
            raise FileError(f"{path}: modality {name!r} is no list of column names. {wanted}")
        for column in columns:
            if column in home:
                where = "twice" if home[column] == name else f"in {home[column]!r} too"
                raise FileError(
                    f"{path}: column {column!r} of modality {name!r} is there {where}. A column "
                    "belongs to one modality, once."
                )
            home[column] = name
    return found


def nearest(name: str, names: Iterable[Any]) -> str:
    """The names most like one that is not there, as the end of an error."""
    there = [str(one) for one in names]
    lower = {one.lower(): one for one in there}
    found = get_close_matches(name.lower(), lower, n=3, cutoff=0.5)
    if found:
        return f" Did you mean {' or '.join(repr(lower[one]) for one in found)}?"
    shown = ", ".join(map(repr, there[:8])) + (", ..." if len(there) > 8 else "")
    return f" There are {shown}."


def _infer_task(y: pd.Series) -> tuple[str, str | None]:
    """The task, and why if that is not plain to see."""
    kind = infer_kind(_array(y))
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
            "classes. To take them for amounts, pass `task='regression'`."
        )
    return "regression", None


def _refuse_markers(y: pd.Series, target: str) -> None:
    """Refuse a target with values that may stand for missing: they would be learnt as answers."""
    found = [one["value"] for one in find_suspects(y)]
    if "+" in set(y):
        found = [value for value in found if value != "-"]  # Results of a test.
    if not found:
        return
    rows = int(y.isin(found).sum())
    kind = "category" if infer_kind(_array(y)) == "category" else "number"
    shown = ", ".join(map(repr, found[:5]))
    raise ValueError(
        f"The target {target!r} holds {shown} in {rows} of {len(y)} rows, which may stand for "
        f"missing. To leave these rows out, pass `missing_values={[str(v) for v in found]}`. To "
        f"learn them as they are, pass `kinds={{{target!r}: {kind!r}}}`."
    )


def _positive(y: pd.Series, target: str, task: str, positive: Any) -> Any:
    """The label of the positive class, given as such or as text."""
    labels = sorted(set(y.tolist()), key=str) if task == "classification" else []
    if len(labels) != 2:
        what = f"has {len(labels)} classes" if labels else "is a number"
        raise ValueError(f"`positive` names one of two classes, and the target {target!r} {what}.")
    found = [label for label in labels if label == positive or str(label) == str(positive)]
    if not found:
        raise ValueError(
            f"`positive` must be one of the classes {labels} of the target {target!r}. Received: "
            f"{positive!r}"
        )
    return found[0]


def _labels(y: pd.Series, target: str) -> pd.Series:
    """Class labels as plain text, booleans or whole numbers."""
    kind = infer_kind(_array(y))
    classes = y.nunique()
    if classes == 1:
        raise ValueError(
            f"The target {target!r} holds one class only, {_plain(y.iloc[0])!r}: there is "
            "nothing to tell apart."
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
            "are no classes. Pass `task='regression'`."
        )
    return y.astype(np.int64)


def _numbers(y: pd.Series, target: str) -> pd.Series:
    """Numbers as float64."""
    kind = infer_kind(_array(y))
    values = pd.to_numeric(y, errors="coerce") if kind != "date" else pd.Series(np.nan, y.index)
    bad = ~np.isfinite(values.to_numpy(dtype=float, na_value=np.nan))
    if bad.any():
        raise ValueError(
            f"The target {target!r} holds {_plain(y[bad].iloc[0])!r}, which is no finite "
            "number. Correct it, make it missing, or pass `task='classification'`."
        )
    if values.nunique() == 1:
        raise ValueError(
            f"The target {target!r} holds one value only, {values.iloc[0]:g}: there is nothing to "
            "learn."
        )
    return values.astype(np.float64)


def _features(X: pd.DataFrame, settled: set[str]) -> tuple[pd.DataFrame, list[str]]:
    """The columns to learn from, and what to say about them."""
    notes, names = [], []
    gone = X.isna().all().to_numpy()
    empty = [str(name) for name in X.columns[gone]]
    if empty:
        are = "is empty: nothing can be learnt from it" if len(empty) == 1 else "are empty"
        notes.append(f"{listed(empty)} {are}.")
    for name, column in X.loc[:, ~gone].items():
        said = None if name in settled else reads_as(column)
        if said is not None:
            notes.append(said)
        if name in settled or not is_identifier(column):
            continue
        if column.dtype.kind == "O":
            names.append(name)
            notes.append(
                f"Column {name!r} is text and different in every row, as an identifier is: left "
                "out."
            )
        else:
            notes.append(
                f"Column {name!r} holds another whole number in every row. If it is an "
                f"identifier, leave it out: `drop=[{name!r}]`."
            )
    return X.drop(columns=names), notes


def _by_modality(
    X: pd.DataFrame,
    modalities: Mapping[str, Iterable[str]],
    target: str,
    there: Iterable[Any],
) -> tuple[pd.DataFrame, dict[str, list[str]], list[str]]:
    """The columns of the modalities, in the order of the table, and what is in none."""
    found: dict[str, list[str]] = {}
    for name, columns in modalities.items():
        columns = list(columns)
        for column in columns:
            if column == target:
                raise ValueError(f"Modality {name!r} holds the target {target!r}. Take it out.")
            if column not in there:
                raise ValueError(
                    f"Modality {name!r} names the column {column!r}, which the table does not "
                    f"have.{nearest(column, X.columns)}"
                )
        kept = [column for column in columns if column in X.columns]
        if kept:
            found[name] = kept
    used = {column for columns in found.values() for column in columns}
    spare = [column for column in X.columns if column not in used]
    notes = [f"{_listed(spare)} in no modality: left out."] if spare else []
    return X[[column for column in X.columns if column in used]], found, notes


def _listed(names: list[str], most: int = 8) -> str:
    shown = ", ".join(map(repr, names[:most]))
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return f"Columns {shown}{more} are" if len(names) > 1 else f"Column {shown} is"


def _array(column: pd.Series) -> Any:
    return column.to_numpy() if isinstance(column.dtype, np.dtype) else column.array


def _plain(value: Any) -> Any:
    """A value as Python writes it, not NumPy."""
    return value.item() if isinstance(value, np.generic) else value
