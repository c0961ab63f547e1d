"""One column of cells in the many ways tables can spell it."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
from hypothesis import strategies as st

TEXTS = ["a", "b", "B", "aa", "1", "10", "9", "1.0", "x y", "é", "", "True", "2020-01-01"]
WHOLE = st.integers(-3, 3) | st.integers(0, 200) | st.integers(-(10**9), 10**9)
# What is written as it is computed: text of -0.0 is another one than that of 0.0.
FLOATS = st.floats(-1e6, 1e6).map(lambda x: round(x, 3) + 0.0)
TINY = st.integers(0, 3).flatmap(lambda k: st.sampled_from([5e-324 * k, 1e-310 * k, 1e-20 * k]))


def columns(cell: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Any]]:
    """Draw cells, some of them missing (None) and at least one not."""
    cells = st.lists(st.none() | cell, min_size=1, max_size=20)
    return cells.filter(lambda cells: any(c is not None for c in cells))


def _arrow(array: Any) -> pd.DataFrame:
    return pd.DataFrame({"c": pd.Series(pd.arrays.ArrowExtensionArray(array))})


def _nan_if_none(cell: Any) -> Any:
    return np.nan if cell is None else cell


def _used(cells: list[Any]) -> list[Any]:
    return sorted({cell for cell in cells if cell is not None})


def _dictionary(cells: list[Any], unused: Any, *, null: bool = False, ordered: bool = False) -> Any:
    """An Arrow dictionary with an entry that occurs nowhere, and perhaps a null, in two chunks."""
    entries = [*_used(cells), unused] if ordered else [unused, *reversed(_used(cells))]
    entries = [*entries, None] if null else entries
    codes = [entries.index(cell) if null or cell is not None else None for cell in cells]
    array = pa.DictionaryArray.from_arrays(
        pa.array(codes, pa.int32()), pa.array(entries), ordered=ordered
    )
    return pa.chunked_array([array.slice(0, 1), array.slice(1)])


def spell_text(cells: list[str | None]) -> Iterator[tuple[str, Any]]:
    """Spell text as text and as categories, with levels that occur nowhere."""
    levels = [*_used(cells), "~"]
    yield "objects", pd.DataFrame({"c": pd.Series(cells, dtype=object)})
    yield "array", np.array([[_nan_if_none(cell)] for cell in cells], dtype=object)
    for dtype in ("str", "string", "string[python]", "category"):
        yield dtype, pd.DataFrame({"c": pd.Series(cells, dtype=dtype)})
    yield "levels", pd.DataFrame({"c": pd.Categorical(cells, categories=levels[::-1])})
    yield "ordered", pd.DataFrame({"c": pd.Categorical(cells, ["!", *levels], ordered=True)})
    yield "arrow", _arrow(pa.array(cells, pa.string()))
    yield "dictionary", _arrow(_dictionary(cells, "~"))
    yield "null entry", _arrow(_dictionary(cells, "~", null=True))
    yield "ordered dictionary", _arrow(_dictionary(cells, "~", ordered=True))
    yield "arrow table", pa.table({"c": _dictionary(cells, "~", null=True)})
    for name, dtype in (("String", pl.String), ("Categorical", pl.Categorical)):
        yield f"polars {name}", pl.DataFrame({"c": pl.Series(cells, dtype=dtype)})
    yield "polars Enum", pl.DataFrame({"c": pl.Series(cells, dtype=pl.Enum(["!", *levels]))})


def spell_numbers(cells: list[Any]) -> Iterator[tuple[str, Any]]:
    """Spell numbers as numbers."""
    floats = [None if cell is None else float(cell) for cell in cells]
    nans = [_nan_if_none(cell) for cell in floats]
    yield "floats", pd.DataFrame({"c": nans})
    yield "array", np.array(nans, dtype=float)[:, None]
    yield "objects", pd.DataFrame({"c": pd.Series(cells, dtype=object)})
    yield "list", [[cell] for cell in cells]
    yield "Float64", pd.DataFrame({"c": pd.Series(nans, dtype="Float64")})
    yield "arrow", _arrow(pa.array(floats, pa.float64()))
    yield "arrow NaN", _arrow(pa.array(nans, pa.float64()))
    yield "polars", pl.DataFrame({"c": pl.Series(floats, dtype=pl.Float64)})
    yield "polars NaN", pl.DataFrame({"c": pl.Series(nans, dtype=pl.Float64)})
    if all(cell is None or isinstance(cell, int) for cell in cells):
        yield "Int64", pd.DataFrame({"c": pd.Series(cells, dtype="Int64")})
        yield "arrow int64", _arrow(pa.array(cells, pa.int64()))
        yield "polars Int64", pl.DataFrame({"c": pl.Series(cells, dtype=pl.Int64)})
        decimals = [None if cell is None else Decimal(cell) for cell in cells]
        yield "decimals", pd.DataFrame({"c": pd.Series(decimals, dtype=object)})


def spell_categories(cells: list[Any]) -> Iterator[tuple[str, Any]]:
    """Spell numbers as text and as categories."""
    text = [None if cell is None else str(cell) for cell in cells]
    yield "text", pd.DataFrame({"c": pd.Series(text, dtype=object)})
    yield "arrow text", _arrow(pa.array(text, pa.string()))
    yield "category", pd.DataFrame({"c": pd.Categorical(cells)})
    yield "text category", pd.DataFrame({"c": pd.Categorical(text)})
    levels = [*_used(cells), 10**10]
    yield "ordered", pd.DataFrame({"c": pd.Categorical(cells, levels, ordered=True)})
    texts = [str(level) for level in levels]
    yield "ordered text", pd.DataFrame({"c": pd.Categorical(text, texts, ordered=True)})
    yield "dictionary", _arrow(_dictionary(cells, type(levels[0])(10**10)))
    yield "text dictionary", _arrow(_dictionary(text, "~", null=True))
    yield "polars Categorical", pl.DataFrame({"c": pl.Series(text, dtype=pl.Categorical)})
    yield "polars Enum", pl.DataFrame({"c": pl.Series(text, dtype=pl.Enum(texts))})


def add_column(X: Any, values: list[float]) -> Any:
    """The same table with a second column, of numbers."""
    if isinstance(X, np.ndarray):
        return np.column_stack([X, np.array(values).astype(X.dtype)])
    if isinstance(X, list):
        return [[*row, value] for row, value in zip(X, values, strict=True)]
    if isinstance(X, pd.DataFrame):
        return X.assign(d=values)
    if isinstance(X, pl.DataFrame):
        return X.with_columns(pl.Series("d", values))
    return X.append_column("d", pa.array(values))
