"""The columns of each modality, and the size of its representation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import isqrt
from typing import Any

import numpy as np
import pandas as pd

from promissing._formula import is_count
from promissing.encoding.table_encoder import KINDS, TableEncoder

__all__ = ["PAPER_UNITS", "REMAINDERS", "find_columns", "find_units"]

# Sizes for the twelve modalities of the paper, in its order. They have 20, 6, 7, 11, 1, 67, 34, 30,
# 5, 1, 9 and 20 columns. The paper gives no rule.
PAPER_UNITS = (10, 10, 5, 5, 2, 10, 10, 10, 5, 2, 5, 5)
REMAINDERS = ("error", "drop", "modality")
ALL, REST = "all", "remainder"

Found = dict[str, list[int]]


def find_columns(modalities: Any, remainder: str, X: Any, encoder: TableEncoder) -> Found:
    """Return the positions of the columns of every modality, in the order of the table.

    Parameters
    ----------
    modalities : mapping or None
        As in the estimators; None is one modality, "all", of all columns.
    remainder : {"error", "drop", "modality"}
        What is done with columns in no modality.
    X : frame or array
        Passed to callables.
    encoder : TableEncoder
        The encoder of X, which has names and kinds of the columns.

    Returns
    -------
    dict of list of int
        Positions by modality.
    """
    if remainder not in REMAINDERS:
        raise ValueError(
            f"`remainder` must be one of {REMAINDERS}. Received: remainder={remainder!r}"
        )
    everything = range(encoder.n_features_in_)
    if modalities is None:
        return {ALL: list(everything)}
    _check_mapping(modalities)
    found: Found = {}
    home: dict[int, str] = {}
    for name, given in modalities.items():
        found[name] = sorted(_positions(name, given, X, encoder))
        if not found[name]:
            raise ValueError(
                f"Modality {name!r} is empty: {given!r} selects no column of X. Give it columns, "
                "or leave it out."
            )
        for j in found[name]:
            if j in home:
                where = "twice in" if home[j] == name else f"in {home[j]!r} and in"
                raise ValueError(
                    f"Column {encoder.feature_key(j)!r} is {where} modality {name!r}: a column "
                    "belongs to one modality, once."
                )
            home[j] = name
    rest = [j for j in everything if j not in home]
    if rest and remainder == "error":
        raise ValueError(
            f"{_listed([encoder.feature_key(j) for j in rest])} in no modality. Add them to one, "
            'drop them from X, or pass `remainder="drop"`, which ignores them, or '
            f'`remainder="modality"`, which makes them one called {REST!r}.'
        )
    if rest and remainder == "modality":
        if REST in found:
            raise ValueError(
                f'`remainder="modality"` makes a modality called {REST!r}, and `modalities` has '
                "one of that name. Rename it."
            )
        found[REST] = rest
    return found


def find_units(units: Any, found: Found) -> tuple[int, ...]:
    """Return the size of the representation of every modality, given the parameter `units`."""
    sizes = {name: len(columns) for name, columns in found.items()}
    if units is None:
        # Four times the square root of the number of columns.
        return tuple(4 * (isqrt(size - 1) + 1) for size in sizes.values())
    if isinstance(units, str):
        if units != "paper":
            raise ValueError(f"`units` as text must be 'paper'. Received: units={units!r}")
        if len(sizes) != len(PAPER_UNITS):
            raise ValueError(
                f"`units`='paper' are the widths of the paper's {len(PAPER_UNITS)} modalities. "
                f"Received: {len(sizes)} modalities."
            )
        return PAPER_UNITS
    if isinstance(units, Mapping):
        unknown = [name for name in units if name not in sizes]
        lacking = [name for name in sizes if name not in units]
        if unknown or lacking:
            raise ValueError(
                f"`units` must name every modality of {list(sizes)} and no other. Unknown: "
                f"{unknown}, lacking: {lacking}."
            )
        widths = [units[name] for name in sizes]
    elif isinstance(units, Sequence | np.ndarray):
        if len(units) != len(sizes):
            raise ValueError(
                f"`units` must have one entry for each of the {len(sizes)} modalities, "
                f"{list(sizes)}. Received: {len(units)} entries."
            )
        widths = list(units)
    else:
        widths = [units] * len(sizes)
    if not all(is_count(width) for width in widths):
        raise ValueError(
            "`units` must be a positive integer, or a sequence or mapping of them, one for each "
            f"modality, or 'paper', or None. Received: units={units!r}"
        )
    return tuple(int(width) for width in widths)


def _check_mapping(modalities: Any) -> None:
    if not isinstance(modalities, Mapping):
        raise ValueError(
            "`modalities` must map names to columns, as in {'labs': ['crp', 'leuco']}, or be None, "
            f"which is one modality of all columns. Received: {type(modalities).__name__}."
        )
    if not modalities:
        raise ValueError("`modalities` is empty. Pass None for one modality of all columns.")
    odd = [name for name in modalities if not isinstance(name, str)]
    if odd:
        raise ValueError(f"The names of `modalities` must be text. Received: {odd[0]!r}")


def _positions(name: str, given: Any, X: Any, encoder: TableEncoder) -> Iterable[int]:
    """Return the positions of the columns of one modality."""
    columns = [encoder.feature_key(j) for j in range(encoder.n_features_in_)]
    if callable(given) and not isinstance(given, type):  # A type is a dtype.
        return _listed_positions(name, given(X), columns)
    if isinstance(given, str) and given in columns:
        return [columns.index(given)]
    if isinstance(given, str) and given in KINDS:
        return [j for j, kind in enumerate(encoder.kinds_) if kind == given]
    if isinstance(given, str | type | np.dtype | pd.api.extensions.ExtensionDtype):
        if isinstance(X, pd.DataFrame):
            try:
                chosen = X.dtypes.index.isin(X.select_dtypes(include=[given]).columns)
            except (TypeError, ValueError):  # Not a dtype.
                pass
            else:
                return np.flatnonzero(chosen).tolist()
        raise ValueError(
            f"Modality {name!r} is {given!r}, which is neither a column of X nor a dtype. Use a "
            f"list of names, or one of the kinds {KINDS}."
        )
    return _listed_positions(name, given, columns)


def _listed_positions(name: str, given: Any, columns: list[Any]) -> list[int]:
    if isinstance(given, slice):
        return list(range(len(columns)))[given]
    if is_position(given) or isinstance(given, str):
        given = [given]
    if not isinstance(given, Iterable):
        raise ValueError(
            f"Modality {name!r} must be columns: names, positions, a dtype, or a callable that "
            f"returns names. Received: {given!r}"
        )
    place = {column: j for j, column in enumerate(columns)}
    found = []
    for column in given:
        if isinstance(column, str) and column in place:
            found.append(place[column])
        elif is_position(column) and 0 <= column < len(columns):
            found.append(int(column))
        else:
            if isinstance(column, str) and not isinstance(columns[0], str):
                hint = "has no names: use positions"
            else:
                hint = f"has {_few(columns)}"
            raise ValueError(
                f"Modality {name!r} names the column {column!r}, which X does not have. X {hint}."
            )
    return found


def is_position(value: Any) -> bool:
    """Return whether a value is an integer and no boolean."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool | np.bool_)


def _few(names: list[Any], most: int = 8) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(map(repr, names[:most])) + more


def _listed(names: list[Any]) -> str:
    return f"Columns {_few(names)} are" if len(names) > 1 else f"Column {names[0]!r} is"
