"""Load tables by name, from a directory that the user names or from OpenML.

A directory holds parquet files and an `index.json` with `{"datasets": [...]}`. Every entry has a
`slug`, a `file` in the same directory and a `task`. It may have `paper_name`, `title`, `openml_id`,
`n_samples`, `n_features`, `categorical_columns`, `modalities` and `metadata_columns`. The target is
the column `target`. OpenML is read by scikit-learn's loader, which has a cache.
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias
from urllib.error import HTTPError, URLError

import pandas as pd

from promissing.datasets.registry import (
    TABLES,
    DatasetError,
    Table,
    find,
    simplified,
    unknown_table,
)

__all__ = ["OPENML", "VARIABLE", "Dataset", "Loaded", "available", "load", "load_many"]

Place: TypeAlias = str | os.PathLike[str] | None

VARIABLE = "PROMISSING_DATA"
OPENML = "openml"
INDEX = "index.json"
TASKS = ("binary", "regression")
_SUBDIRECTORIES = ("datasets", "clinical")
# Warnings of the OpenML loader that are repeated by its error, or that end well.
_IGNORED_WARNINGS = ("A network error occurred", "Invalid cache", "Downloaded file could have been")


class Dataset(NamedTuple):
    """A table with its target.

    Parameters
    ----------
    X : DataFrame (n, p)
        The features. Numbers are int64 or float64, nominal columns are categories of text.
    y : Series (n,)
        The target: 0 or 1 as int8 if the task is binary, else float64.
    task : {"binary", "regression"}
        The task.
    name : str
        The name in the paper, or the title of the table.
    slug : str
        The short name.
    openml_id : int or None
        The number of the table at OpenML.
    nominal : list of str
        The nominal columns.
    modalities : dict of str to list of str
        The columns of each modality; empty if the table has none.
    source : str
        The file, or the OpenML number.
    notes : tuple of str
        Differences from what was expected.

    Examples
    --------
    >>> from promissing.datasets import Dataset
    >>> Dataset._fields[:3]
    ('X', 'y', 'task')
    """

    X: Any
    y: Any
    task: str
    name: str
    slug: str
    openml_id: int | None
    nominal: list[str]
    modalities: dict[str, list[str]]
    source: str
    notes: tuple[str, ...]


class Loaded(NamedTuple):
    """Tables that were loaded, and the reasons why others were not.

    Parameters
    ----------
    datasets : list of Dataset
        The loaded tables.
    skipped : dict of str to str
        The reason for every table that could not be loaded, by slug.

    Examples
    --------
    >>> from promissing.datasets import Loaded
    >>> Loaded([], {"wind": "Table 'wind' is not in 'data'."}).skipped["wind"]
    "Table 'wind' is not in 'data'."
    """

    datasets: list[Dataset]
    skipped: dict[str, str]


def load(key: str | int, *, data: Place = None, data_home: Place = None) -> Dataset:
    """Load a table by its slug, its name in the paper or its OpenML number.

    A directory can be named by `data` or by the environment variable PROMISSING_DATA. Then tables
    are loaded only from there. Otherwise they are loaded from OpenML by scikit-learn's loader,
    which keeps them in its cache.

    Parameters
    ----------
    key : str or int
        The table. Upper case, hyphens and brackets do not matter.
    data : path, optional
        A directory with parquet files and an index.json, or the directory above `datasets` and
        `clinical`. "openml" loads from OpenML whatever the environment variable says.
    data_home : path, optional
        The cache directory of scikit-learn.

    Returns
    -------
    Dataset
        The table.

    Raises
    ------
    DatasetError
        If the table cannot be loaded. If no table has this name, it is an UnknownTableError.

    Examples
    --------
    >>> from promissing.datasets import load
    >>> load("wind").X.shape  # doctest: +SKIP
    (6574, 14)
    """
    entries = _entries(data)
    return _read(_find(key, entries), entries, data_home)


def load_many(
    keys: Iterable[str | int] | None = None, *, data: Place = None, data_home: Place = None
) -> Loaded:
    """Load several tables and skip those that cannot be loaded.

    An unknown name, or a directory without an index, is an error.

    Parameters
    ----------
    keys : iterable of str or int, optional
        The tables; a table that is named twice is loaded once. By default all tables that
        `available` returns.
    data : path, optional
        As in `load`.
    data_home : path, optional
        As in `load`.

    Returns
    -------
    Loaded
        The tables, and the reasons for those that were skipped.

    Examples
    --------
    >>> from promissing.datasets import load_many
    >>> load_many([], data="openml")
    Loaded(datasets=[], skipped={})
    """
    entries = _entries(data)
    keys = available(data) if keys is None else keys
    wanted = {found.slug: found for found in [_find(key, entries) for key in keys]}
    loaded = Loaded([], {})
    for slug, found in wanted.items():
        try:
            loaded.datasets.append(_read(found, entries, data_home))
        except DatasetError as error:
            loaded.skipped[slug] = str(error)
    return loaded


def available(data: Place = None) -> list[str]:
    """Return the slugs of the tables in a directory, or of all tables of the paper.

    Parameters
    ----------
    data : path, optional
        As in `load`.

    Returns
    -------
    list of str
        The slugs.

    Examples
    --------
    >>> from promissing.datasets import available
    >>> available("openml")[:2]
    ['space_ga', 'pollen']
    """
    entries = _entries(data)
    return list(dict.fromkeys(table.slug for table in (TABLES if entries is None else entries)))


class _Entry(NamedTuple):
    """A table in a directory, as its index describes it."""

    directory: Path
    facts: Mapping[str, Any]

    @property
    def slug(self) -> str:
        return str(self.facts["slug"])

    def matches(self, key: str | int) -> bool:
        """Return whether the key is its slug, name or OpenML number, or another of its table."""
        keys = [self.facts.get(name) for name in ("slug", "paper_name", "openml_id")]
        own = {simplified(name) for name in keys if name is not None}
        table = find(key)
        return simplified(key) in own or (table is not None and simplified(table.slug) in own)


def _entries(data: Place) -> list[_Entry] | None:
    """Return the tables of a directory or of its subdirectories; None stands for OpenML."""
    data = data if data is not None else os.environ.get(VARIABLE) or OPENML
    if data == OPENML:
        return None
    top = Path(data).expanduser()
    if (top / INDEX).is_file():
        return _read_index(top)
    indexed = [top / name for name in _SUBDIRECTORIES if (top / name / INDEX).is_file()]
    if not indexed:
        what = f"has no {INDEX}" if top.is_dir() else "is not a directory"
        raise DatasetError(
            f"{top} {what}. Name a directory with parquet files and an {INDEX}, or one with "
            f"subdirectories {' and '.join(_SUBDIRECTORIES)} of this kind."
        )
    return [entry for path in indexed for entry in _read_index(path)]


def _read_index(directory: Path) -> list[_Entry]:
    path = directory / INDEX
    try:
        listed = json.loads(path.read_text(encoding="utf-8"))["datasets"]
        found = [_Entry(directory, dict(facts)) for facts in listed]
    except (OSError, ValueError, LookupError, TypeError) as error:
        why = f"a list {error} is missing" if isinstance(error, KeyError) else _one_line(error)
        raise DatasetError(f"{path} cannot be read: {why}.") from error
    for i, entry in enumerate(found):
        for key in ("slug", "file", "task"):
            if not isinstance(entry.facts.get(key), str):
                raise DatasetError(f"{path} has no {key!r} in entry {i} of its list.")
    return found


def _find(key: str | int, entries: list[_Entry] | None) -> _Entry | Table:
    """Return the table of the directory, else that of the paper."""
    for entry in entries or ():
        if entry.matches(key):
            return entry
    table = find(key)
    if table is None:
        raise unknown_table(key, [entry.slug for entry in entries or ()])
    return table


def _read(found: _Entry | Table, entries: list[_Entry] | None, home: Place) -> Dataset:
    if isinstance(found, _Entry):
        return _read_file(found)
    if entries is None:
        return _fetch(found, home)
    places = dict.fromkeys(repr(str(entry.directory)) for entry in entries)
    raise DatasetError(f"Table {found.slug!r} is not in {' or '.join(places)}.")


def _read_file(entry: _Entry) -> Dataset:
    """Read a table and compare it with the descriptions in the index and in the paper."""
    facts, who = entry.facts, f"Table {entry.slug!r}"
    path, task = entry.directory / facts["file"], facts["task"]
    if path.parent != entry.directory:
        raise DatasetError(f"{who}: the file {facts['file']!r} is not in its directory.")
    if task not in TASKS:
        raise DatasetError(f"{who}: the task is {task!r}, not one of {TASKS}.")
    try:
        frame = pd.read_parquet(path)
    except Exception as error:  # The parquet reader raises many kinds of errors.
        what = _one_line(error) if path.is_file() else "there is no such file"
        raise DatasetError(f"{who}: {path} cannot be read: {what}.") from error
    modalities = {name: list(columns) for name, columns in facts.get("modalities", {}).items()}
    for column in ("target", *(c for columns in modalities.values() for c in columns)):
        if column not in frame:
            raise DatasetError(f"{who}: {path} has no column {column!r}.")
    ignored = [c for c in facts.get("metadata_columns", []) if c in frame]
    X, y = frame.drop(columns=[*ignored, "target"]), frame["target"]
    if y.isna().any() or (task == "binary" and not y.isin([0, 1]).all()):
        expected = "0 and 1" if task == "binary" else "numbers without missing values"
        raise DatasetError(f"{who}: the target of {path} must be {expected}.")
    numeric, coded = X.select_dtypes(["number"]).columns, facts.get("categorical_columns", {})
    table = find(facts.get("openml_id") or entry.slug)
    notes = _size_notes(X, facts.get("n_samples"), facts.get("n_features"), "index")
    if table is not None:
        notes += _size_notes(X, table.rows, table.features, "paper")
    return Dataset(
        X=X,
        y=y.astype("int8" if task == "binary" else "float64"),
        task=task,
        name=table.name if table else str(facts.get("title", entry.slug)),
        slug=entry.slug,
        openml_id=table.openml_id if table else facts.get("openml_id"),
        nominal=[c for c in X if c in coded or c not in numeric],
        modalities=modalities,
        source=str(path),
        notes=tuple(notes),
    )


def _size_notes(X: Any, rows: int | None, features: int | None, where: str) -> list[str]:
    """Return notes if X does not have the expected size."""
    return [
        f"{n} {what} instead of the {expected} of the {where}"
        for n, expected, what in ((len(X), rows, "rows"), (X.shape[1], features, "features"))
        if expected not in (None, n)
    ]


def _one_line(error: BaseException) -> str:
    """Return the first line of an error, or its name."""
    return next(iter(str(error).splitlines()), "").strip().rstrip(".") or type(error).__name__


# ---- OpenML


def _fetch(table: Table, data_home: Place) -> Dataset:
    """Load a table from OpenML or from the cache of scikit-learn's loader."""
    bunch, notes = _fetch_bunch(table, data_home)
    X, y = bunch.data.apply(_tidy), bunch.target
    if table.task == "binary":
        y, more = _binary_target(table, y)
        notes += more
    return Dataset(
        X=X,
        y=y.astype("int8" if table.task == "binary" else "float64").rename("target"),
        task=table.task,
        name=table.name,
        slug=table.slug,
        openml_id=table.openml_id,
        nominal=[c for c in X if isinstance(X[c].dtype, pd.CategoricalDtype)],
        modalities={},
        source=f"OpenML {table.openml_id}",
        notes=(*notes, *_size_notes(X, table.rows, table.features, "paper")),
    )


def _fetch_bunch(table: Table, data_home: Place) -> tuple[Any, list[str]]:
    """Return what the loader returns, and its warnings. Every error becomes a DatasetError."""
    from sklearn.datasets import fetch_openml, get_data_home

    who = f"Table {table.slug!r} (OpenML {table.openml_id})"
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            # The other parser fails on numeric labels with pandas 3.1, and then deletes the file
            # from the cache (scikit-learn/scikit-learn#34892). This one needs 2 s for the largest
            # table.
            bunch = fetch_openml(
                data_id=table.openml_id, data_home=data_home, as_frame=True, parser="liac-arff"
            )
    except HTTPError as error:
        error.close()
        raise DatasetError(f"{who}: OpenML answers {error.code}, {error.reason}.") from error
    except (URLError, TimeoutError, ConnectionError) as error:
        home, why = get_data_home(data_home), _one_line(getattr(error, "reason", error))
        raise DatasetError(
            f"{who} is not in scikit-learn's cache ({home}) and cannot be downloaded: {why}. "
            "Connect to the internet, or name a directory that has it."
        ) from error
    except Exception as error:  # A full disk, a wrong checksum, an answer that is no table.
        raise DatasetError(f"{who} cannot be loaded: {_one_line(error)}.") from error
    notes = [str(w.message).strip() for w in caught if issubclass(w.category, UserWarning)]
    return bunch, [note for note in notes if not note.startswith(_IGNORED_WARNINGS)]


def _tidy(column: Any) -> Any:
    """Convert numbers to float64, and everything else to categories of text."""
    if pd.api.types.is_numeric_dtype(column):
        return column.astype("float64")
    column = column.astype("category")
    return column.cat.rename_categories([str(c) for c in column.cat.categories])


def _binary_target(table: Table, target: Any) -> tuple[Any, list[str]]:
    """Convert labels to 0 and 1. The registry names the label that is 1."""
    text = target.map(lambda label: f"{label:g}" if isinstance(label, float) else str(label))
    labels = sorted(set(text))
    if len(labels) != 2:
        raise DatasetError(
            f"Table {table.slug!r} (OpenML {table.openml_id}): the target has {len(labels)} "
            "different values instead of 2."
        )
    if table.positive in labels:
        return text == table.positive, []
    return text == labels[1], [f"there is no label {table.positive!r}; {labels[1]!r} is 1"]
