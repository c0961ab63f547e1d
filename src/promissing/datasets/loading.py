"""Tables by name, from a directory the user names or from OpenML, and nowhere else."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import NamedTuple, TypeAlias

from promissing.datasets import local, openml
from promissing.datasets.dataset import Dataset, DatasetError
from promissing.datasets.registry import TABLES, Table, find, unknown

Place: TypeAlias = str | os.PathLike[str] | None
VARIABLE = "PROMISSING_DATA"
OPENML = "openml"


class Loaded(NamedTuple):
    """The tables that could be had, and why the others could not, by slug."""

    datasets: list[Dataset]
    skipped: dict[str, str]


def load(key: str | int, *, data: Place = None, data_home: Place = None) -> Dataset:
    """Load a table by its slug, its name in the paper or its OpenML id.

    If a directory is named, by `data` or else by the environment variable PROMISSING_DATA, tables
    come from there and from nowhere else; if none is, from OpenML by scikit-learn's loader, which
    keeps what it fetched.

    Parameters
    ----------
    key : str or int
        Capitals, hyphens and brackets do not matter.
    data : path, optional
        A directory of parquet files with an index.json, or the one above `datasets` and
        `clinical`. "openml" asks for OpenML whatever the environment says.
    data_home : path, optional
        The cache of scikit-learn, if it is not where it usually is.

    Returns
    -------
    Dataset

    Raises
    ------
    DatasetError
        If the table cannot be had. UnknownTableError if there is none of that name.
    """
    entries = _entries(data)
    return _get(_find(key, entries), entries, data_home)


def load_many(
    keys: Iterable[str | int] | None = None, *, data: Place = None, data_home: Place = None
) -> Loaded:
    """Load tables one by one, going on without those that cannot be had.

    Raises only for what is a mistake in the question: an unknown table, or a directory that is no
    directory of tables.

    Parameters
    ----------
    keys : iterable of str or int, optional
        By default all that `available` gives. A table named twice is loaded once.
    data, data_home : path, optional
        As in `load`.
    """
    entries = _entries(data)
    keys = available(data) if keys is None else keys
    wanted = {found.slug: found for found in [_find(key, entries) for key in keys]}
    loaded = Loaded([], {})
    for slug, found in wanted.items():
        try:
            loaded.datasets.append(_get(found, entries, data_home))
        except DatasetError as error:
            loaded.skipped[slug] = str(error)
    return loaded


def available(data: Place = None) -> list[str]:
    """The slugs of the tables a directory has, or of all the paper's if none is named."""
    return list(dict.fromkeys(table.slug for table in _entries(data) or TABLES))


def _entries(data: Place) -> list[local.Entry] | None:
    """What the named directory has; None stands for OpenML."""
    place = data if data is not None else os.environ.get(VARIABLE) or OPENML
    return None if place == OPENML else local.entries(place)


def _find(key: str | int, entries: list[local.Entry] | None) -> local.Entry | Table:
    """The table in the directory, else the one of the paper."""
    for entry in entries or ():
        if entry.is_called(key):
            return entry
    table = find(key)
    if table is None:
        raise unknown(key, [entry.slug for entry in entries or ()])
    return table


def _get(found: local.Entry | Table, entries: list[local.Entry] | None, home: Place) -> Dataset:
    if isinstance(found, local.Entry):
        return local.read(found)
    if entries is None:
        return openml.fetch(found, home)
    places = dict.fromkeys(repr(str(entry.directory)) for entry in entries)
    raise DatasetError(f"Table {found.slug!r} is not in {' or '.join(places)}.")
