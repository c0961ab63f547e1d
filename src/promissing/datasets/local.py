"""Tables from a directory: parquet files and an `index.json` that says what they are.

The index holds `{"datasets": [...]}`. Every entry has a `slug`, a `file` in the same directory and
a `task`; it may have `paper_name`, `title`, `openml_id`, `n_samples`, `n_features`,
`categorical_columns`, `modalities` and `metadata_columns`. The target is the column `target`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from promissing.datasets.dataset import Dataset, DatasetError, differences, one_line
from promissing.datasets.registry import find, plain

INDEX = "index.json"
TASKS = ("binary", "regression")
_PARTS = ("datasets", "clinical")


class Entry(NamedTuple):
    """A table in a directory, as the index of it describes it."""

    directory: Path
    facts: Mapping[str, Any]

    @property
    def slug(self) -> str:
        """Its short name."""
        return str(self.facts["slug"])

    def is_called(self, key: str | int) -> bool:
        """Whether it has this slug, name or OpenML id, or is that table of the paper."""
        keys = [self.facts.get(name) for name in ("slug", "paper_name", "openml_id")]
        own = {plain(name) for name in keys if name is not None}
        table = find(key)
        return plain(key) in own or (table is not None and plain(table.slug) in own)


def entries(data: str | os.PathLike[str]) -> list[Entry]:
    """All tables of a directory with an index, else of its parts `datasets` and `clinical`."""
    top = Path(data).expanduser()
    indexed = [path for path in (top, *(top / p for p in _PARTS)) if (path / INDEX).is_file()]
    if not indexed:
        what = f"has no {INDEX}" if top.is_dir() else "is not a directory"
        raise DatasetError(
            f"{top} {what}. Name a directory that holds parquet files and an {INDEX}, "
            f"or one with such directories called {' and '.join(_PARTS)} in it."
        )
    if indexed[0] == top:
        indexed = [top]
    return [entry for path in indexed for entry in _index(path)]


def _index(directory: Path) -> list[Entry]:
    path = directory / INDEX
    try:
        listed = json.loads(path.read_text(encoding="utf-8"))["datasets"]
        found = [Entry(directory, dict(facts)) for facts in listed]
    except (OSError, ValueError, LookupError, TypeError) as error:
        why = f"a list {error} is missing" if isinstance(error, KeyError) else one_line(error)
        raise DatasetError(f"{path} cannot be read: {why}.") from error
    for i, entry in enumerate(found):
        for key in ("slug", "file", "task"):
            if not isinstance(entry.facts.get(key), str):
                raise DatasetError(f"{path} has no {key!r} in entry {i} of its list.")
    return found


def read(entry: Entry) -> Dataset:
    """Load a table and compare it with what the paper, or else the index, says of it."""
    facts, slug = entry.facts, entry.slug
    path = entry.directory / facts["file"]
    if path.parent != entry.directory:
        raise DatasetError(f"Table {slug!r}: the file {facts['file']!r} is not in its directory.")
    if facts["task"] not in TASKS:
        raise DatasetError(f"Table {slug!r}: the task is {facts['task']!r}, not one of {TASKS}.")
    try:
        frame = pd.read_parquet(path)
    except Exception as error:  # What a damaged file makes its reader raise is beyond listing.
        what = one_line(error) if path.is_file() else "there is no such file"
        raise DatasetError(f"Table {slug!r}: {path} cannot be read: {what}.") from error
    if "target" not in frame:
        raise DatasetError(f"Table {slug!r}: {path} has no column 'target'.")
    extra = [c for c in facts.get("metadata_columns", []) if c in frame]
    X, y = frame.drop(columns=[*extra, "target"]), frame["target"]
    if y.isna().any() or (facts["task"] == "binary" and not y.isin([0, 1]).all()):
        expected = "0 and 1" if facts["task"] == "binary" else "numbers without gaps"
        raise DatasetError(f"Table {slug!r}: the target of {path} must be {expected}.")
    modalities = {name: list(cols) for name, cols in facts.get("modalities", {}).items()}
    absent = [c for cols in modalities.values() for c in cols if c not in X]
    if absent:
        raise DatasetError(f"Table {slug!r}: {path} has no column {absent[0]!r}.")
    numbers = X.select_dtypes(["number"]).columns
    coded = facts.get("categorical_columns", {})
    table = find(facts.get("openml_id") or slug)
    notes = differences(X, facts.get("n_samples"), facts.get("n_features"), "of the index")
    if table is not None:
        notes += differences(X, table.rows, table.features, "of the paper")
    return Dataset(
        X=X,
        y=y.astype("int8" if facts["task"] == "binary" else "float64"),
        task=facts["task"],
        name=table.name if table else str(facts.get("title", slug)),
        slug=slug,
        openml_id=table.openml_id if table else facts.get("openml_id"),
        nominal=[c for c in X if c in coded or c not in numbers],
        modalities=modalities,
        source=str(path),
        notes=tuple(notes),
    )
