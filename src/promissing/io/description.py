"""Description of the missing values of a table: by column, by row, in patterns and in blocks."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from promissing._validation import listed
from promissing.encoding.columns import FEW_ODD, infer_kind, refuse_text
from promissing.io.text import are_numbers, find_format

__all__ = ["describe", "find_suspects", "is_identifier", "reads_as"]

Mask: TypeAlias = NDArray[np.bool_]
Found: TypeAlias = dict[str, Any]

# Values that often mean missing, as text and as numbers.
_WORDS = {
    *("", "?", "??", "na", "n/a", "n.a.", "n. a.", "nan", "null", "none", "nil", "<na>", "#n/a"),
    *("missing", "unknown", "unk", "not known", "not available", "not applicable", "undefined"),
    *("-", "--", ".", "..", "...", "no data", "nd", "n.d.", "not reported", "refused"),
    *("k.a.", "keine angabe", "unbekannt", "-9", "-99", "-999", "-9999", "999", "9999", "99999"),
}
_NUMBERS = np.array(
    [sign * value for value in (9, 99, 999, 9999, 99999, 999999, 888, 777) for sign in (-1, 1)],
    dtype=float,
)
_FAR = 0.5  # The distance of such a number from all others, as a share of their range.
_ALIKE = 0.9  # Columns are a block if they share this part of their missing rows.
_MOST = 2e10  # Multiplications spent on finding blocks.
_PATTERNS = 3000  # Maximum number of columns with different missing rows that are compared.
_EXAMINED = 10_000  # Maximum number of distinct values of text that are examined.
_SMALL = 10  # In smaller tables, most columns have unique values.


def describe(
    frame: pd.DataFrame, *, target: str | None = None, settled: Collection[str] = ()
) -> dict[str, Any]:
    """Describe the missing values of a table as a dict that JSON can hold.

    Parameters
    ----------
    frame : DataFrame (n, p)
        The table.
    target : str, optional
        The column to predict.
    settled : collection of str, optional
        Columns without a note on their format, because their kind is declared or they are
        identifiers.

    Returns
    -------
    dict
        `rows`, `columns`, `cells`; number of `missing` cells and their `share`; `complete_rows`,
        `empty_rows`; `target`;
        `by_column`: for each column its `name`, `kind` ("number", "boolean", "category", "date" or
        "empty"), `missing`, `share`, `distinct` and `suspects`, values that may mean missing, each
        with `value`, `count` and `why`;
        `by_row`: the number of `rows` for each number of missing values (`gaps`);
        `n_patterns`, and the ten most frequent `patterns`: the columns `missing`, `rows`, `share`;
        `blocks`: `columns` that are missing together, `rows` in which all of them are, `share`;
        `notes`: sentences on other observations, such as text that consists of numbers or dates.

    Examples
    --------
    >>> import pandas as pd
    >>> from promissing.io import describe
    >>> found = describe(pd.DataFrame({"age": [34, -999, None, 51], "ward": ["a", "?", None, "b"]}))
    >>> found["missing"], [s["value"] for c in found["by_column"] for s in c["suspects"]]
    (2, [-999, '?'])
    """
    missing = frame.isna().to_numpy()
    n, p = missing.shape
    names = [str(name) for name in frame.columns]
    counts = missing.sum(axis=0).tolist()
    by_column = [
        _describe_column(column, name, count)
        for (_, column), name, count in zip(frame.items(), names, counts, strict=True)
    ]
    gaps = missing.sum(axis=1)
    sizes, rows = np.unique(gaps, return_counts=True)
    total = int(gaps.sum())
    n_patterns, patterns = _patterns(missing, names)
    blocks, sampled = _blocks(missing, names)
    return {
        "rows": n,
        "columns": p,
        "cells": n * p,
        "missing": total,
        "share": total / max(n * p, 1),
        "complete_rows": int((gaps == 0).sum()),
        "empty_rows": int((gaps == p).sum()),
        "target": target,
        "by_column": by_column,
        "by_row": [
            {"gaps": int(size), "rows": int(count)} for size, count in zip(sizes, rows, strict=True)
        ],
        "n_patterns": n_patterns,
        "patterns": patterns,
        "blocks": blocks,
        "notes": [*_notes(frame, by_column, target, settled), *sampled],
    }


def is_identifier(column: pd.Series) -> bool:
    """Return whether a column looks like an identifier: unique text or whole numbers.

    Parameters
    ----------
    column : Series
        The column.

    Returns
    -------
    bool
        False for columns with missing values and for fewer than ten rows.

    Examples
    --------
    >>> import pandas as pd
    >>> from promissing.io import is_identifier
    >>> is_identifier(pd.Series(range(100, 120)))
    True
    """
    kind = column.dtype.kind
    if len(column) < _SMALL or kind in "bmM" or column.isna().any():
        return False
    if kind == "f" and (column % 1 != 0).any():
        return False
    return kind in "iufO" and bool(column.is_unique)


def find_suspects(column: pd.Series) -> list[dict[str, Any]]:
    """Find values of a column that may mean missing.

    Parameters
    ----------
    column : Series
        The column.

    Returns
    -------
    list of dict
        Each with `value`, `count` and `why`, the most frequent first.

    Examples
    --------
    >>> import pandas as pd
    >>> from promissing.io import find_suspects
    >>> find_suspects(pd.Series(["yes", ".", "no", "yes"]))
    [{'value': '.', 'count': 1, 'why': 'a usual sign for missing'}]
    """
    kind = infer_kind(column)
    return list(_suspects(_count(column, kind), kind))


def reads_as(column: pd.Series) -> str | None:
    """Describe the format of a column of text: numbers, dates, money, percentages or pairs.

    Parameters
    ----------
    column : Series
        The column.

    Returns
    -------
    str or None
        A sentence with the arguments of `promissing.io.read_table` to use; None for a column that
        is not text or has no such format.

    Examples
    --------
    >>> import pandas as pd
    >>> from promissing.io import reads_as
    >>> print(reads_as(pd.Series(["$1,200", "$950", None], name="cost")))
    Column 'cost' is text that reads as amounts of money, such as '$1,200', '$950'. To use the \
numbers, pass `kinds={'cost': 'number'}`.
    """
    if column.dtype.kind != "O":
        return None
    values = column.dropna().unique()[:_EXAMINED]
    if not all(isinstance(value, str) for value in values):
        return None
    found = find_format(values.tolist(), str(column.name))
    if found is None:
        return None
    but = f", except {', '.join(map(repr, found.odd))}" if found.odd else ""
    examples = ", ".join(map(repr, found.examples[:3]))
    return (
        f"Column {str(column.name)!r} is text that reads as {found.what}, such as {examples}{but}. "
        f"{found.remedy}"
    )


def _describe_column(column: pd.Series, name: str, missing: int) -> Found:
    n = len(column)
    kind = "empty" if missing == n else infer_kind(column)
    try:
        counts = _count(column, kind) if missing < n else column[:0]
    except UnicodeEncodeError as error:
        refuse_text(error, name)
    return {
        "name": name,
        "kind": kind,
        "missing": missing,
        "share": missing / max(n, 1),
        "distinct": len(counts),
        "suspects": list(_suspects(counts, kind)),
    }


def _count(column: pd.Series, kind: str) -> pd.Series:
    """Count the values, the most frequent first."""
    if kind == "category":
        column = column.astype(object).dropna().astype(str)
    return column.value_counts()


def _suspects(counts: pd.Series, kind: str) -> Iterator[Found]:
    """Yield the values that may mean missing, the most frequent first."""
    if kind == "number":
        values = counts.index.to_numpy(dtype=float, na_value=np.nan)
        usual = np.isin(values, _NUMBERS)
        rest = values[~usual & np.isfinite(values)]
        for value, count in zip(values[usual], counts.to_numpy()[usual], strict=True):
            if _is_far(value, rest):
                said = int(value) if value.is_integer() else float(value)
                yield {"value": said, "count": int(count), "why": "far from all other values"}
        return
    if kind != "category":
        return
    words = [str(value) for value in counts.index]
    numeric = are_numbers(words)
    odd = int((~numeric).sum())
    almost = 0 < odd <= FEW_ODD and numeric.sum() >= 2 * odd
    for word, count, number in zip(words, counts.to_numpy(), numeric, strict=True):
        if word.strip().lower() in _WORDS:
            why = "a usual sign for missing"
        elif almost and not number:
            why = "among numbers"
        else:
            continue
        yield {"value": word, "count": int(count), "why": why}


def _is_far(value: float, rest: NDArray[np.float64]) -> bool:
    """Return whether a value is outside the range of all others by more than half of it."""
    if not len(rest):
        return False
    low, high = rest.min(), rest.max()
    distance = max(low - value, value - high)
    return bool(distance > _FAR * max(high - low, 1.0))


def _patterns(missing: Mask, names: list[str]) -> tuple[int, list[Found]]:
    """Return the number of patterns of missing values, and the ten most frequent ones."""
    n, p = missing.shape
    if not (n and p):
        return 0, []
    _, first, counts = np.unique(_row_keys(missing), return_index=True, return_counts=True)
    order = np.lexsort((first, -counts))
    return len(counts), [
        {
            "missing": [names[j] for j in np.flatnonzero(missing[first[k]])],
            "rows": int(counts[k]),
            "share": float(counts[k] / n),
        }
        for k in order[:10]
    ]


def _row_keys(mask: Mask) -> NDArray[np.void]:
    """Return one value per row that is equal for equal rows."""
    packed = np.packbits(mask, axis=1)
    return np.ascontiguousarray(packed).view(np.dtype((np.void, packed.shape[1])))[:, 0]


def _blocks(missing: Mask, names: list[str]) -> tuple[list[Found], list[str]]:
    """Return the blocks of columns that are missing in mostly the same rows, and notes."""
    n = len(missing)
    with_gaps = np.flatnonzero(missing.any(axis=0))
    if not len(with_gaps):
        return [], []
    # Only columns with different missing rows have to be compared.
    keys = _row_keys(missing[:, with_gaps].T)
    _, first, home = np.unique(keys, return_index=True, return_inverse=True)
    group = np.arange(len(first))
    if len(first) <= _PATTERNS:
        step = max(1, int(np.ceil(n * len(first) ** 2 / _MOST)))
        x = missing[::step, with_gaps[first]].astype(np.float32)
        both = x.T @ x
        own = np.diag(both)
        alike = (both >= _ALIKE * (own[:, None] + own - both)) & (both >= 3)
        group = connected_components(alike, directed=False)[1]
        notes = [f"Blocks were searched in every {step}th row."] if step > 1 else []
    else:
        notes = [f"{len(first):,} columns differ in their gaps: blocks have exactly the same gaps."]
    group, counts = group[home], np.bincount(group[home])
    enough = missing[:, with_gaps[first]].sum(axis=0)[home] >= 3
    blocks: list[Found] = []
    order = np.argsort(group, kind="stable")
    for members in np.split(order, np.cumsum(counts)[:-1]):
        members = members[enough[members]]
        if len(members) < 2:
            continue
        columns = with_gaps[members]
        rows = int(missing[:, columns].all(axis=1).sum())
        block = {"columns": [names[j] for j in columns], "rows": rows, "share": rows / n}
        blocks.append(block)
    blocks.sort(key=lambda block: (-len(block["columns"]), -block["rows"]))
    return blocks, notes


def _notes(
    frame: pd.DataFrame, by_column: list[Found], target: str | None, settled: Collection[str]
) -> Iterator[str]:
    """Yield sentences on other observations."""
    empty = [column["name"] for column in by_column if column["kind"] == "empty"]
    if empty:
        yield f"{listed(empty)} {'is' if len(empty) == 1 else 'are'} empty."
    for (_, series), column in zip(frame.items(), by_column, strict=True):
        name = column["name"]
        if column["kind"] == "empty":
            continue
        said = reads_as(series) if column["kind"] == "category" and name not in settled else None
        if said is not None:
            yield said
        elif column["distinct"] == 1:
            yield f"Column {name!r} holds only one value."
        elif name != target and name not in settled and is_identifier(series):
            yield f"Column {name!r} is different in every row, like an identifier."
        if name == target and column["missing"]:
            rows = f"{column['missing']} row{'s' * (column['missing'] != 1)}"
            yield f"The target {name!r} is missing in {rows}."
