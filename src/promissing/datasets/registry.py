"""The 52 tables of the paper's benchmark, with names, sizes and OpenML numbers."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches
from typing import NamedTuple

__all__ = [
    "TABLES",
    "DatasetError",
    "Table",
    "UnknownTableError",
    "find",
    "simplified",
    "tables",
    "unknown_table",
]


class DatasetError(ValueError):
    """A table cannot be loaded. The message names the table and the reason in one line.

    Examples
    --------
    >>> from promissing.datasets import DatasetError, load
    >>> try:
    ...     load("wind", data="no/such/directory")
    ... except DatasetError as error:
    ...     print(str(error)[:37])
    no/such/directory is not a directory.
    """


class UnknownTableError(DatasetError):
    """No table has this name.

    Examples
    --------
    >>> from promissing.datasets import UnknownTableError, load
    >>> try:
    ...     load("electricty", data="openml")
    ... except UnknownTableError as error:
    ...     print(error)
    There is no table 'electricty'. Did you mean 'electricity'?
    """


class Table(NamedTuple):
    """A table of the paper's benchmark.

    Parameters
    ----------
    name : str
        The name in the paper.
    slug : str
        The short name.
    openml_id : int
        The number at OpenML.
    task : {"binary", "regression"}
        The task.
    rows : int
        The number of rows in the paper.
    features : int
        The number of features in the paper.
    positive : str or None
        The OpenML label that is 1 in a binary task.
    excluded : str
        The reason why the paper excludes the table; empty if it does not.

    Examples
    --------
    >>> from promissing.datasets import tables
    >>> tables()[0].name, tables()[0].rows
    ('space-ga', 3107)
    """

    name: str
    slug: str
    openml_id: int
    task: str
    rows: int
    features: int
    positive: str | None
    excluded: str


_CHANCE = "net and random forest are near chance on the complete table"
_POOR = "net and random forest have an SMSE above 1 on the complete table"

# Name, OpenML number, rows, features (as the paper counts them), the label that is 1, and the
# reason for exclusion. Many binary tables are regression tables split at the mean of the target by
# OpenML; "P" is below the mean.
# fmt: off
_BINARY: list[tuple[str, int, int, int, str, str]] = [
    ("space-ga", 737, 3107, 6, "P", ""),
    ("pollen", 871, 3848, 5, "P", _CHANCE),
    ("wilt", 40983, 4839, 5, "2", ""),
    ("analcatdata-supreme", 728, 4052, 7, "P", ""),
    ("phoneme", 1489, 5404, 5, "2", ""),
    ("delta-ailerons", 803, 7129, 5, "P", ""),
    ("visualizing-soil", 923, 8641, 4, "P", ""),
    ("bank8FM", 725, 8192, 8, "P", ""),
    ("compas-two-years", 42192, 5278, 13, "1", ""),
    ("bank-marketing", 1558, 4521, 16, "2", ""),
    ("mammography", 310, 11183, 6, "1", ""),
    ("mozilla4", 1046, 15545, 5, "1", ""),
    ("wind", 847, 6574, 14, "P", ""),
    ("churn", 40701, 5000, 20, "1", ""),
    ("sylvine", 41146, 5124, 20, "1", ""),
    ("ringnorm", 1496, 7400, 20, "2", ""),
    ("twonorm", 1507, 7400, 20, "2", ""),
    ("houses", 823, 20640, 8, "P", ""),
    ("airlines", 42493, 26969, 7, "1", ""),
    ("eeg-eye-state", 1471, 14980, 14, "2", _CHANCE),
    ("MagicTelescope", 1120, 19020, 10, "g", ""),
    ("Amazon-employee-access", 4135, 32769, 9, "1", ""),
    ("BNG(tic-tac-toe)", 137, 39366, 9, "positive", ""),
    ("BNG(breast-w)", 251, 39366, 9, "malignant", ""),
    ("Click-prediction-small", 1220, 39948, 9, "1", ""),
    ("electricity", 151, 45312, 8, "UP", ""),
    ("fried", 901, 40768, 10, "P", ""),
    ("mv", 881, 40768, 10, "P", ""),
    ("Run-or-walk-information", 40922, 88588, 6, "1", ""),
    ("default-of-credit-card-clients", 42477, 30000, 23, "1", ""),
    ("numerai28.6", 23517, 96320, 21, "1", _CHANCE),
]
_REGRESSION: list[tuple[str, int, int, int, str]] = [
    ("stock-fardamento02", 42545, 6277, 6, _POOR),
    ("auml-eml-1-d", 42675, 4585, 10, ""),
    ("delta-elevators", 198, 9517, 6, ""),
    ("sulfur", 23515, 10081, 6, ""),
    ("kin8nm", 189, 8192, 8, ""),
    ("wine-quality", 287, 6497, 12, _POOR),
    ("Long", 42636, 4477, 19, ""),
    ("Brazilian-houses", 42688, 10692, 12, ""),
    ("dataset-sales", 42183, 10738, 14, ""),
    ("BNG(echoMonths)", 1199, 17496, 9, ""),
    ("cpu-act", 197, 8192, 21, ""),
    ("house-8L", 218, 22784, 8, ""),
    ("Bike-Sharing-Demand", 42712, 17379, 9, _POOR),
    ("BNG(lowbwt)", 1193, 31104, 9, ""),
    ("elevators", 216, 16599, 18, ""),
    ("2dplanes", 215, 40768, 10, ""),
    ("COMET-MC-SAMPLE", 23395, 89640, 4, ""),
    ("diamonds", 42225, 53940, 9, ""),
    ("BNG(stock)", 1200, 59049, 9, ""),
    ("BNG(mv)", 1213, 78732, 10, ""),
    ("auml-url-2", 42669, 95911, 12, ""),
]
# fmt: on
_SHORT = {"Run-or-walk-information": "run_or_walk", "bank8FM": "bank8FM", "house-8L": "house_8L"}


def _slug(name: str) -> str:
    return _SHORT.get(name) or re.sub(r"\W+", "_", name.lower()).strip("_")


TABLES = (
    *(Table(t[0], _slug(t[0]), t[1], "binary", *t[2:]) for t in _BINARY),
    *(Table(t[0], _slug(t[0]), t[1], "regression", *t[2:4], None, t[4]) for t in _REGRESSION),
)


def tables(*, task: str | None = None, excluded: bool = True) -> list[Table]:
    """Return the tables of the paper in its order.

    Parameters
    ----------
    task : {"binary", "regression"}, optional
        The task. By default tables of both tasks are returned.
    excluded : bool, default=True
        Whether to include the six tables that the paper excludes.

    Returns
    -------
    list of Table
        The tables.

    Examples
    --------
    >>> from promissing.datasets import tables
    >>> [table.name for table in tables(task="regression", excluded=False)[:3]]
    ['auml-eml-1-d', 'delta-elevators', 'sulfur']
    """
    if task not in (None, "binary", "regression"):
        raise ValueError(f"`task` must be 'binary', 'regression' or None. Received: {task!r}")
    return [t for t in TABLES if task in (None, t.task) and (excluded or not t.excluded)]


def simplified(key: object) -> str:
    """Return a name for comparisons: only letters and digits, in lower case."""
    return re.sub(r"[\W_]", "", str(key).lower())


_BY_KEY = {simplified(key): t for t in TABLES for key in (t.name, t.slug, t.openml_id)}


def find(key: str | int) -> Table | None:
    """Return the table of the paper with this slug, name or OpenML number, or None."""
    return _BY_KEY.get(simplified(key))


def unknown_table(key: str | int, others: Iterable[str] = ()) -> UnknownTableError:
    """Return the error for an unknown name, with similar names."""
    known = {simplified(name): name for name in (*(t.slug for t in TABLES), *others)}
    known |= {simplified(t.name): t.slug for t in TABLES}
    close = dict.fromkeys(known[name] for name in get_close_matches(simplified(key), known))
    hint = f"Did you mean {' or '.join(map(repr, close))}?" if close else "See datasets.tables()."
    return UnknownTableError(f"There is no table {key!r}. {hint}")
