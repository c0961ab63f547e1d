"""The results of a study: one SQLite file that only the process running the study writes.

Table `results` has one line per number, so `pandas.read_sql("select * from results", connection)`
is all it takes to read it. `arrays` holds curves and the like, `batches` what is finished, and
`runs` what made it: settings, versions, machine, times. A batch is stored whole or not at all.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from math import nan
from operator import index
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["FILE", "PROTOCOL", "Outcome", "ResultsError", "Row", "read", "read_about"]
__all__ += ["read_arrays"]

FILE = "results.sqlite"
PROTOCOL = 1  # Raised when results of older versions may not stand beside those of this one.
APPLICATION = 0x50524F4D  # "PROM", in the place that SQLite keeps for the owner of a file.
TABLES = """
CREATE TABLE results (study TEXT NOT NULL, dataset TEXT NOT NULL, mechanism TEXT NOT NULL,
    ratio REAL, strategy TEXT NOT NULL, repetition INTEGER NOT NULL, fold INTEGER NOT NULL,
    metric TEXT NOT NULL, value REAL, seconds REAL);
CREATE UNIQUE INDEX each_result_once ON results
    (dataset, mechanism, ifnull(ratio, 'none'), strategy, repetition, fold, metric);
CREATE TABLE arrays (study TEXT NOT NULL, batch TEXT NOT NULL, name TEXT NOT NULL,
    dtype TEXT NOT NULL, shape TEXT NOT NULL, data BLOB NOT NULL, PRIMARY KEY (batch, name));
CREATE TABLE batches (name TEXT PRIMARY KEY, arguments TEXT NOT NULL, status TEXT NOT NULL,
    reason TEXT, seconds REAL, finished TEXT NOT NULL);
CREATE TABLE runs (study TEXT NOT NULL, settings TEXT NOT NULL, versions TEXT NOT NULL,
    platform TEXT NOT NULL, jobs INTEGER, started TEXT NOT NULL, finished TEXT, seconds REAL);
"""


class ResultsError(ValueError):
    """What was asked for cannot be run or read as it is; nothing has been written."""


class Row(NamedTuple):
    """One number of a study; NaN stands for what there is not."""

    dataset: str
    mechanism: str
    ratio: float
    strategy: str
    repetition: int
    fold: int
    metric: str
    value: float
    seconds: float = nan


class Outcome(NamedTuple):
    """All that a batch has found."""

    rows: list[Row]
    arrays: Mapping[str, np.ndarray] = MappingProxyType({})


class Packed(NamedTuple):
    """An outcome in SQLite's own types: of NumPy's numbers it would keep the bytes, as a blob."""

    rows: list[tuple[Any, ...]]
    arrays: list[tuple[str, str, str, bytes]]


def pack(outcome: Outcome) -> Packed:
    """Check an outcome and make it ready for `Store.write`."""
    if not isinstance(outcome, Outcome):
        raise TypeError(f"A batch must return an Outcome. Received: {type(outcome).__name__}")
    kinds: tuple[Callable[[Any], Any], ...]
    kinds = (str, str, float, str, index, index, str, float, float)
    rows = [tuple(k(v) for k, v in zip(kinds, row, strict=True)) for row in outcome.rows]
    arrays = []
    for name, values in outcome.arrays.items():
        array = np.asarray(values)
        if array.dtype.kind in "OV":
            raise TypeError(f"Array {name!r} must hold numbers or text. Received: {array.dtype}")
        arrays.append((str(name), array.dtype.str, json.dumps(array.shape), array.tobytes()))
    return Packed(rows, arrays)


def as_json(value: Any) -> str:
    """The one way to write a value, so that equal values are equal texts."""
    return json.dumps(value, sort_keys=True, allow_nan=False)


class Store:
    """A results file that this process alone writes; `_opening.opened` gives one."""

    def __init__(self, path: Path, study: str, connection: sqlite3.Connection, run: int) -> None:
        self.path = path
        self._study = study
        self._connection = connection
        self._run = run
        self._start = time.perf_counter()

    def done(self) -> set[str]:
        """The names of the finished batches."""
        names = self._connection.execute("SELECT name FROM batches WHERE status = 'done'")
        return {name for (name,) in names}

    def write(self, name: str, arguments: str, packed: Packed, seconds: float) -> None:
        """Keep a finished batch with all it found."""
        rows = [(self._study, *row) for row in packed.rows]
        arrays = [(self._study, name, *array) for array in packed.arrays]
        with self._connection as transaction:
            transaction.executemany(f"INSERT INTO results VALUES ({marks(10)})", rows)
            transaction.executemany(f"INSERT INTO arrays VALUES ({marks(6)})", arrays)
            self._note(name, arguments, "done", None, seconds)

    def skip(self, name: str, arguments: str, reason: str, seconds: float) -> None:
        """Keep why a batch cannot be had."""
        with self._connection:
            self._note(name, arguments, "skipped", reason, seconds)

    def _note(self, *line: Any) -> None:
        entry = (*line, now())
        self._connection.execute(f"INSERT OR REPLACE INTO batches VALUES ({marks(6)})", entry)
        # So that a killed run has taken the time up to its last batch.
        spent = (time.perf_counter() - self._start, self._run)
        self._connection.execute("UPDATE runs SET seconds = ? WHERE rowid = ?", spent)

    def close(self) -> None:
        """End the run, with whatever is finished."""
        spent = (time.perf_counter() - self._start, now(), self._run)
        # On a full disk the time of the run is lost, which is not worth a second error.
        with contextlib.suppress(sqlite3.Error), self._connection as transaction:
            transaction.execute("UPDATE runs SET seconds = ?, finished = ? WHERE rowid = ?", spent)
        self._connection.close()


def connect(path: str | Path) -> sqlite3.Connection:
    """An open file; there must be one."""
    # "rw" makes no new file; "ro" could not undo what a killed run left half done.
    return sqlite3.connect(f"{Path(path).resolve().as_uri()}?mode=rw", uri=True, timeout=60)


def check_ours(connection: sqlite3.Connection, path: Path) -> None:
    """Refuse what `opened` has not made, or not under this protocol."""
    try:
        (mark,) = connection.execute("PRAGMA application_id").fetchone()
        (protocol,) = connection.execute("PRAGMA user_version").fetchone()
    except sqlite3.DatabaseError as error:
        raise ResultsError(f"{path} cannot be read as an SQLite file ({error}).") from None
    if mark != APPLICATION:
        raise ResultsError(f"{path} is an SQLite file, but not one with results of promissing.")
    if protocol != PROTOCOL:
        raise ResultsError(
            f"{path} follows version {protocol} of the protocol, and this promissing version "
            f"{PROTOCOL}: their results do not mix. Give another --out."
        )


@contextlib.contextmanager
def _reading(path: str | Path) -> Iterator[sqlite3.Connection]:
    if not Path(path).is_file():
        raise FileNotFoundError(f"There is no file {path}.")
    with contextlib.closing(connect(path)) as connection:
        check_ours(connection, Path(path))
        yield connection


def read(path: str | Path) -> pd.DataFrame:
    """Table `results` of a results file, in an order in which no run has a say."""
    import pandas as pd

    order = "study, dataset, mechanism, ratio, strategy, repetition, fold, metric"
    with _reading(path) as connection:
        found = pd.read_sql(f"SELECT * FROM results ORDER BY {order}", connection)
    # A column without any number would otherwise be one of None.
    return found.astype(dict.fromkeys(("ratio", "value", "seconds"), float))


def read_arrays(path: str | Path) -> dict[str, dict[str, np.ndarray]]:
    """The arrays of a results file, by batch and name."""
    found: dict[str, dict[str, np.ndarray]] = {}
    with _reading(path) as connection:
        query = "SELECT batch, name, dtype, shape, data FROM arrays ORDER BY batch, name"
        for batch, name, dtype, shape, data in connection.execute(query):
            array = np.ndarray(json.loads(shape), np.dtype(dtype), data).copy()
            found.setdefault(batch, {})[name] = array
    return found


def read_about(path: str | Path) -> dict[str, Any]:
    """What made a results file.

    Returns
    -------
    dict
        `study`, `settings`, `protocol`; `versions`, `platform` and `jobs` of the last run;
        `started`, `finished` (None while the last run goes on, or if it was killed) and `seconds`
        of all runs together; `runs`, each of them; `n_done` batches; `skipped`, name to reason.
    """
    with _reading(path) as connection:
        connection.row_factory = sqlite3.Row
        runs = [dict(line) for line in connection.execute("SELECT * FROM runs ORDER BY rowid")]
        batches = connection.execute("SELECT * FROM batches ORDER BY name").fetchall()
    for line in runs:
        line.update({k: json.loads(line[k]) for k in ("settings", "versions", "platform")})
    return {
        **runs[-1],
        "started": runs[0]["started"],
        "seconds": sum(line["seconds"] for line in runs),
        "protocol": PROTOCOL,
        "runs": runs,
        "n_done": sum(line["status"] == "done" for line in batches),
        "skipped": {b["name"]: b["reason"] for b in batches if b["status"] == "skipped"},
    }


def now() -> str:
    """The second it is, in UTC."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def marks(n: int) -> str:
    """Places for n values."""
    return ", ".join("?" * n)
