"""Tables in which groups of columns can be made unknown, many rows at a time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from promissing._validation import expect
from promissing.encoding.columns import Key
from promissing.missingness import Columns, Mask, Source, observed, open_source, positions, remove

__all__ = ["Blanks", "Groups"]

Groups: TypeAlias = Mapping[str, Columns] | str | None

_BLOCK = 2**22  # Cells predicted at a time: 32 MB of numbers.
_MOST_ROWS = 100_000


class Blanks:
    """A table of n rows whose G groups of columns can be made unknown.

    Attributes
    ----------
    X : frame or array
        The table itself.
    names : tuple
        The names of the groups.
    known : ndarray of bool (n, G)
        Whether anything of a group is known in a row.
    complete : bool
        Whether nothing at all is missing.
    index : ndarray (n,)
        What the user calls the rows.
    block_rows : int
        How many rows to ask for at a time.
    """

    def __init__(self, X: Any, groups: Groups, model: Any = None) -> None:
        source = open_source(X)
        self.X, (n, p) = source.X, source.table.shape
        members = _read_groups(source, groups, model)
        self.names: tuple[Key, ...] = tuple(members)
        self._members = list(members.values())
        cells = observed(source, range(p))
        self.known = np.column_stack([cells[:, columns].any(axis=1) for columns in self._members])
        self.complete = bool(cells.all())
        framed = isinstance(self.X, pd.DataFrame)
        self.index = self.X.index.to_numpy() if framed else np.arange(n)
        self.block_rows = min(max(1, _BLOCK // p), _MOST_ROWS)
        # G for a column in no group: one more group, which never vanishes.
        self._group_of = np.full(p, len(members))
        for g, columns in enumerate(self._members):
            self._group_of[columns] = g
        # One row more, in which all groups are unknown: a cell is made unknown by pointing there.
        # Columns so change their dtype, where a gap demands it, once and for all rows alike.
        gone = np.zeros((n + 1, p), bool)
        gone[n] = self._group_of < len(members)
        self._table = remove(_take(self.X, np.append(np.arange(n), 0)), gone)
        self._columns = _columns_of(self._table)

    def without(self, rows: NDArray[np.intp], gone: Mask) -> Any:
        """The given rows (m,), each without the groups that are gone from it (m, G)."""
        if isinstance(self._table, np.ndarray):
            out = self._table.take(rows, axis=0)
            never = np.zeros((len(rows), 1), bool)
            cells = np.hstack([gone, never]).take(self._group_of, axis=1)
            np.copyto(out, self._table[-1], where=cells)
            return out
        last = len(self._table) - 1
        columns: list[Any] = [None] * len(self._columns)
        for j in np.flatnonzero(self._group_of == len(self._members)):
            columns[j] = self._columns[j].take(rows)
        by_group = np.ascontiguousarray(gone.T)
        for lost, members in zip(by_group, self._members, strict=True):
            places = np.where(lost, last, rows)
            for k in members:
                columns[k] = self._columns[k].take(places)
        if isinstance(self._table, pd.DataFrame):
            frame = pd.DataFrame(dict(enumerate(columns)), copy=False)
            frame.columns = self._table.columns
            return frame
        return type(self._table)([column.series for column in columns])


class _PolarsColumn:
    """A polars column that is taken from as NumPy's and pandas' are."""

    def __init__(self, series: Any) -> None:
        self.series = series

    def take(self, places: NDArray[np.intp]) -> _PolarsColumn:
        return _PolarsColumn(self.series.gather(places))


def _columns_of(table: Any) -> list[Any]:
    if isinstance(table, np.ndarray):
        return []
    if not isinstance(table, pd.DataFrame):
        return [_PolarsColumn(series) for series in table.get_columns()]
    return [s.to_numpy() if isinstance(s.dtype, np.dtype) else s.array for _, s in table.items()]


def _take(X: Any, rows: NDArray[np.intp]) -> Any:
    return X.take(rows).reset_index(drop=True) if isinstance(X, pd.DataFrame) else X[rows]


def _read_groups(source: Source, groups: Groups, model: Any) -> dict[Key, list[int]]:
    """Find the positions of the columns of every group."""
    if groups is None:
        return {name: [j] for j, name in enumerate(source.names)}
    if isinstance(groups, str):
        expect(groups == "modalities", "groups", 'a mapping, "modalities" or None', groups)
        groups = getattr(model, "modalities_", None)
        if groups is None:
            raise ValueError(
                f'`groups="modalities"` asks for the modalities of the model, and '
                f"{type(model).__name__} has none. Give a mapping of names to columns."
            )
    good = isinstance(groups, Mapping) and len(groups) > 0
    expect(good, "groups", "a mapping with at least one group", groups)
    found: dict[Key, list[int]] = {}
    owner: dict[int, Any] = {}
    for name, columns in groups.items():
        found[name] = positions(source, columns, f"groups[{name!r}]")
        if not found[name]:
            raise ValueError(f"`groups[{name!r}]` has no columns. Name some, or leave it out.")
        for j in found[name]:
            if j in owner:
                where = f"{owner[j]!r} and {name!r}" if owner[j] != name else f"{name!r}, twice"
                raise ValueError(
                    f"`groups`: column {source.names[j]!r} is in {where}. A column can be in one "
                    f"group only."
                )
            owner[j] = name
    return found
