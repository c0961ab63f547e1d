"""What is missing in a table: by column, by row, in patterns and blocks, and in disguise."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from promissing._validation import listed
from promissing.encoding.columns import FEW_ODD, infer_kind, refuse_text
from promissing.io import text as _written

__all__ = ["describe", "find_suspects", "is_identifier", "reads_as"]

Mask: TypeAlias = NDArray[np.bool_]
Found: TypeAlias = dict[str, Any]

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
_FAR = 0.5  # A sentinel is farther from the rest than this many times its width.
_ALIKE = 0.9  # Columns are missing together where this share of their gaps is common.
_MOST = 2e10  # Multiplications spent on finding them,
_PATTERNS = 3000  # and the most different columns of gaps that are compared with each other.
_LOOKED_AT = 10_000  # Different values of a column of text that are looked at.
_SMALL = 10  # In smaller tables all is unique.


def describe(
    frame: pd.DataFrame, *, target: str | None = None, settled: Collection[str] = ()
) -> dict[str, Any]:
    """Say what is missing in a table, as a dict that JSON can hold.

    Parameters
    ----------
    frame : DataFrame (n, p)
    target : str, optional
        The column that is to be predicted, which is marked as such.
    settled : collection of str, optional
        Columns whose kind was declared or that are identifiers: no note says what they look like.

    Returns
    -------
    dict
        `rows`, `columns`, `cells`; `missing` cells and their `share`; `complete_rows`,
        `empty_rows`; `target`;
        `by_column`: for each its `name`, `kind` ("number", "boolean", "category", "date" or
        "empty"), `missing`, `share`, `distinct` and `suspects`, values that may stand for missing,
        each with `value`, `count` and `why`;
        `by_row`: how many `rows` have how many `gaps`;
        `n_patterns`, and the ten most frequent `patterns`: the columns `missing`, `rows`, `share`;
        `blocks`: `columns` that are missing together, `rows` in which all of them are, `share`;
        `notes`: sentences on what else is odd, such as text that reads as numbers or dates.

    Examples
    --------
    >>> import pandas as pd
    >>> from promissing.io.description import describe
    >>> found = describe(pd.DataFrame({"age": [34, -999, None, 51], "ward": ["a", "?", None, "b"]}))
    >>> found["missing"], [s["value"] for c in found["by_column"] for s in c["suspects"]]
    (2, [-999, '?'])
    """
    missing = frame.isna().to_numpy()
    n, p = missing.shape
    names = [str(name) for name in frame.columns]
    counts = missing.sum(axis=0).tolist()
    by_column = [
        _column(column, name, count)
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
    """Whether a column looks like an identifier: text or whole numbers, another in every row."""
    kind = column.dtype.kind
    if len(column) < _SMALL or kind in "bmM" or column.isna().any():
        return False
    if kind == "f" and (column % 1 != 0).any():
        return False
    return kind in "iufO" and bool(column.is_unique)


def find_suspects(column: pd.Series) -> list[dict[str, Any]]:
    """Find values of a column that may stand for missing.

    Parameters
    ----------
    column : Series

    Returns
    -------
    list of dict
        Each with `value`, `count` and `why`, the most frequent first.

    Examples
    --------
    >>> import pandas as pd
    >>> from promissing.io.description import find_suspects
    >>> find_suspects(pd.Series(["yes", ".", "no", "yes"]))
    [{'value': '.', 'count': 1, 'why': 'a usual sign for missing'}]
    """
    kind = infer_kind(_array(column))
    return list(_suspects(_count(column, kind), kind))


def reads_as(column: pd.Series) -> str | None:
    """Say what a column of text seems to hold: numbers, dates, money, percentages or pairs.

    Parameters
    ----------
    column : Series

    Returns
    -------
    str or None
        A sentence and what to do, in terms of `promissing.io.files.read_table`; None for a column
        that is no text or reads as nothing else.

    Examples
    --------
    >>> import pandas as pd
    >>> from promissing.io.description import reads_as
    >>> print(reads_as(pd.Series(["$1,200", "$950", None], name="cost")))
    Column 'cost' is text that reads as amounts of money, such as '$1,200', '$950'. To use the \
numbers, pass `kinds={'cost': 'number'}`.
    """
    if column.dtype.kind != "O":
        return None
    values = column.dropna().unique()[:_LOOKED_AT]
    if not all(isinstance(value, str) for value in values):
        return None
    found = _written.look(values.tolist(), str(column.name))
    if found is None:
        return None
    but = f", but for {', '.join(map(repr, found.odd))}" if found.odd else ""
    examples = ", ".join(map(repr, found.examples[:3]))
    return (
        f"Column {str(column.name)!r} is text that reads as {found.what}, such as {examples}{but}. "
        f"{found.remedy}"
    )


def _column(column: pd.Series, name: str, missing: int) -> Found:
    n = len(column)
    if missing == n:
        return {
            "name": name,
            "kind": "empty",
            "missing": n,
            "share": 1.0 if n else 0.0,
            "distinct": 0,
            "suspects": [],
        }
    kind = infer_kind(_array(column))
    try:
        counts = _count(column, kind)
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


def _array(column: pd.Series) -> Any:
    return column.to_numpy() if isinstance(column.dtype, np.dtype) else column.array


def _count(column: pd.Series, kind: str) -> pd.Series:
    """How often each value occurs, the most frequent first."""
    if kind == "category":
        column = column.astype(object).dropna().astype(str)
    return column.value_counts()


def _suspects(counts: pd.Series, kind: str) -> Iterator[Found]:
    """Values that may stand for missing, the most frequent first."""
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
    numeric = _written.are_numbers(words)
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
    """Whether a value lies outside all others, by more than half their range."""
    if not len(rest):
        return False
    low, high = rest.min(), rest.max()
    distance = max(low - value, value - high)
    return bool(distance > _FAR * max(high - low, 1.0))


def _patterns(missing: Mask, names: list[str]) -> tuple[int, list[Found]]:
    """How many ways there are for a row to have gaps, and the ten most frequent."""
    n, p = missing.shape
    if not (n and p):
        return 0, []
    packed = np.packbits(missing, axis=1)
    keys = np.ascontiguousarray(packed).view(np.dtype((np.void, packed.shape[1])))[:, 0]
    _, first, counts = np.unique(keys, return_index=True, return_counts=True)
    order = np.lexsort((first, -counts))
    return len(counts), [
        {
            "missing": [names[j] for j in np.flatnonzero(missing[first[k]])],
            "rows": int(counts[k]),
            "share": float(counts[k] / n),
        }
        for k in order[:10]
    ]


def _blocks(missing: Mask, names: list[str]) -> tuple[list[Found], list[str]]:
    """Columns that are missing together: most of the gaps of each are gaps of another too."""
    n = len(missing)
    with_gaps = np.flatnonzero(missing.any(axis=0))
    if not len(with_gaps):
        return [], []
    # Columns with the very same gaps are one, so that only different ones have to be compared.
    packed = np.packbits(missing[:, with_gaps].T, axis=1)
    keys = np.ascontiguousarray(packed).view(np.dtype((np.void, packed.shape[1])))[:, 0]
    _, first, home = np.unique(keys, return_index=True, return_inverse=True)
    said = []
    group = np.arange(len(first))
    if len(first) <= _PATTERNS:
        step = max(1, int(np.ceil(n * len(first) ** 2 / _MOST)))
        x = missing[::step, with_gaps[first]].astype(np.float32)
        both = x.T @ x
        own = np.diag(both)
        alike = (both >= _ALIKE * (own[:, None] + own - both)) & (both >= 3)
        group = connected_components(alike, directed=False)[1]
        said = [f"Blocks were looked for in every {step}th row."] if step > 1 else []
    else:
        said = [f"{len(first):,} columns differ in their gaps: blocks have exactly the same gaps."]
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
        own_names = [names[j] for j in columns]
        blocks.append({"columns": own_names, "rows": rows, "share": rows / n})
    blocks.sort(key=lambda block: (-len(block["columns"]), -block["rows"]))
    return blocks, said


def _notes(
    frame: pd.DataFrame, by_column: list[Found], target: str | None, settled: Collection[str]
) -> Iterator[str]:
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
            yield f"Column {name!r} holds one value only."
        elif name != target and name not in settled and is_identifier(series):
            yield f"Column {name!r} is different in every row, as an identifier is."
        if name == target and column["missing"]:
            rows = f"{column['missing']} row{'s' * (column['missing'] != 1)}"
            yield f"The target {name!r} is missing in {rows}."
