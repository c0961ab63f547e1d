"""What is missing in a table: by column, by row, in patterns and blocks, and in disguise."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from promissing._columns import FEW_ODD, infer_kind, refuse_text

__all__ = ["describe", "is_identifier"]

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
_MOST = 2e10  # Multiplications spent on finding them.
_SMALL = 10  # In smaller tables all is unique.


def describe(frame: pd.DataFrame, *, target: str | None = None) -> dict[str, Any]:
    """Say what is missing in a table, as a dict that JSON can hold.

    Parameters
    ----------
    frame : DataFrame (n, p)
    target : str, optional
        The column that is to be predicted, which is marked as such.

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
        `notes`: sentences on what else is odd.

    Examples
    --------
    >>> import pandas as pd
    >>> from promissing.description import describe
    >>> found = describe(pd.DataFrame({"age": [34, -999, None, 51], "ward": ["a", "?", None, "b"]}))
    >>> found["missing"], [s["value"] for c in found["by_column"] for s in c["suspects"]]
    (2, [-999, '?'])
    """
    missing = frame.isna().to_numpy()
    n, p = missing.shape
    names = [str(name) for name in frame.columns]
    by_column = [
        _column(frame.iloc[:, j], name, int(missing[:, j].sum())) for j, name in enumerate(names)
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
        "notes": [*_notes(frame, by_column, target), *sampled],
    }


def is_identifier(column: pd.Series) -> bool:
    """Whether a column looks like an identifier: text or whole numbers, another in every row."""
    kind = column.dtype.kind
    if len(column) < _SMALL or kind in "bmM" or column.isna().any():
        return False
    if kind == "f" and (column % 1 != 0).any():
        return False
    return kind in "iufO" and bool(column.is_unique)


def _column(column: pd.Series, name: str, missing: int) -> Found:
    n = len(column)
    kind = infer_kind(_array(column)) if missing < n else "empty"
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
    numeric = pd.to_numeric(pd.Series(words, dtype=object), errors="coerce").notna().to_numpy()
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
    step = max(1, int(np.ceil(n * len(with_gaps) ** 2 / _MOST)))
    x = missing[::step, with_gaps].astype(np.float32)
    both = x.T @ x
    own = np.diag(both)
    either = own[:, None] + own - both
    alike = (both >= _ALIKE * either) & (both >= 3)
    blocks: list[Found] = []
    left = np.ones(len(with_gaps), bool)
    for start in range(len(with_gaps)):
        if not left[start]:
            continue
        members = np.zeros_like(left)
        members[start] = True
        while (more := (alike[members].any(axis=0) | members) & left).sum() > members.sum():
            members = more
        left &= ~members
        if members.sum() < 2:
            continue
        columns = with_gaps[members]
        rows = int(missing[:, columns].all(axis=1).sum())
        own_names = [names[j] for j in columns]
        blocks.append({"columns": own_names, "rows": rows, "share": rows / n})
    blocks.sort(key=lambda block: (-len(block["columns"]), -block["rows"]))
    said = [f"Blocks were looked for in every {step}th row."] if step > 1 else []
    return blocks, said


def _notes(frame: pd.DataFrame, by_column: list[Found], target: str | None) -> Iterator[str]:
    for j, column in enumerate(by_column):
        name = column["name"]
        if column["kind"] == "empty":
            yield f"Column {name!r} is empty."
        elif column["distinct"] == 1:
            yield f"Column {name!r} holds one value only."
        elif name != target and is_identifier(frame.iloc[:, j]):
            yield f"Column {name!r} is different in every row, as an identifier is."
        if name == target and column["missing"]:
            rows = f"{column['missing']} row{'s' * (column['missing'] != 1)}"
            yield f"The target {name!r} is missing in {rows}."
