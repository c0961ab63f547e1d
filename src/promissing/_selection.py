"""How values are chosen to be lost, and how columns do without them: the parts of `missingness`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from functools import cache
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import expit, logit

from promissing.encoding import columns as _columns
from promissing.encoding.columns import Float, Key, Table

Columns: TypeAlias = Key | Sequence[Key] | None  # By name (str) or position (int).
Count: TypeAlias = int | str | None
Mask: TypeAlias = NDArray[np.bool_]
Rng: TypeAlias = np.random.Generator
Seed: TypeAlias = int | Rng


class Source(NamedTuple):
    """A table: itself (an array or a frame), as columns, and what the user calls them."""

    X: Any
    table: Table
    names: list[Key]


class _Plan(NamedTuple):
    """Positions of the columns that lose values and, under MAR, of the driver of each."""

    columns: list[int]
    drivers: list[int]


def open_source(X: Any, estimator: Any = None) -> Source:
    table = _columns.open_table(X, estimator)
    if isinstance(X, list | tuple):  # Opened as objects; numbers shall come back as numbers.
        table = _columns.open_table(pd.DataFrame(table.named).infer_objects().to_numpy())
    labels = getattr(table.named, "columns", range(table.shape[1]))
    names = [label if isinstance(label, str) else j for j, label in enumerate(labels)]
    return Source(X if hasattr(X, "get_columns") else table.named, table, names)


def choose(
    source: Source, name: str, columns: Columns, n_columns: Count, drivers: Columns, rng: Rng
) -> _Plan:
    """Find the columns that lose values and their drivers, drawing those nobody named."""
    p, driven = source.table.shape[1], name.startswith("mar")
    if driven and p == 1:
        raise ValueError(f'"{name}" needs a second column as driver; X has n_features = 1.')
    by = positions(source, drivers, "drivers") if driven else []
    if columns is None:
        free = [j for j in range(p) if j not in by]
        most = len(free) - (driven and not by)
        if n_columns is None:
            n_columns = "all" if name == "mcar-cells" else 1
        n: Any = most if n_columns == "all" else n_columns
        good = is_whole(n) and 0 <= n <= most
        expect(good, "n_columns", f'"all" or a whole number from 0 to {most}', n)
        lost = rng.choice(free, n, replace=False).tolist()
    else:
        lost = distinct(source, positions(source, columns, "columns"), "columns")
    if not driven:
        return _Plan(lost, [])
    rest = [j for j in range(p) if j not in lost]
    if not (by or rest):
        raise ValueError(f'"{name}" needs a driver that loses nothing; `columns` are all of X.')
    by = by or rng.choice(rest, len(lost)).tolist()
    by = by * len(lost) if len(by) == 1 else by
    if len(by) != len(lost):
        raise ValueError(
            f"`drivers` must be one column, or one for each of the {len(lost)} that lose values. "
            f"Received: {len(by)}"
        )
    for own, driver in zip(lost, by, strict=True):
        if driver in lost:
            what = "its own loss" if own == driver else "a loss and lose values itself"
            raise ValueError(
                f"`drivers`: column {source.names[driver]!r} cannot drive {what}: that would be "
                f"MNAR. Choose a column that loses nothing."
            )
    return _Plan(lost, by)


def draw(source: Source, name: str, plan: _Plan, ratio: float, slope: float, rng: Rng) -> Mask:
    """Draw the mask (n, p) of what is lost."""
    mask, there = np.zeros(source.table.shape, bool), observed(source, plan.columns)
    if name == "mcar-cells":
        mask[:, plan.columns] = some(there, ratio, rng)
        return mask

    @cache
    def z(j: int) -> Float:
        x = numbers_of(source, j)
        learned = _columns.learn_number(x, np.ones(len(x)), 0, source.names[j])
        shift, scale = learned.maps[0][:2]
        return np.nan_to_num((x - shift) / scale)  # A gap counts as the mean.

    def mix(columns: list[int]) -> Float:
        weights = rng.normal(size=len(columns))
        weights /= np.linalg.norm(weights)  # Of one column this leaves the sign.
        return np.asarray(np.column_stack([z(j) for j in columns]) @ weights)

    for i, j in enumerate(plan.columns):
        rows = there[:, i]
        match name:
            case "mcar":
                mask[:, j] = some(rows, ratio, rng)
            case "mar":
                mask[:, j] = _block(rows, numbers_of(source, plan.drivers[i]), ratio, rng)
            case "mnar":
                mask[:, j] = _block(rows, numbers_of(source, j), ratio, rng)
            case "mar-logistic":
                mask[:, j] = _logistic(rows, slope * mix([plan.drivers[i]]), ratio, rng)
            case "mnar-logistic":
                mask[:, j] = _logistic(rows, slope * mix(plan.columns), ratio, rng)
            case "self-masking":
                mask[:, j] = _logistic(rows, slope * z(j), ratio, rng)
    return mask


def some(there: Mask, ratio: float, rng: Rng) -> Mask:
    """Pick k of what is there, at random."""
    gone, places = np.zeros_like(there), np.flatnonzero(there)
    gone.flat[rng.choice(places, count(len(places), ratio), replace=False)] = True
    return gone


def _block(there: Mask, values: Float, ratio: float, rng: Rng) -> Mask:
    """Pick k consecutive ranks of what is there; NaN ranks last."""
    gone = np.zeros_like(there)
    ranked = np.flatnonzero(there)[np.argsort(values[there], kind="stable")]
    k = count(len(ranked), ratio)
    start = rng.integers(len(ranked) - k, endpoint=True)
    gone[ranked[start : start + k]] = True
    return gone


def _logistic(there: Mask, scores: Float, ratio: float, rng: Rng) -> Mask:
    """Pick with log-odds `scores` plus the constant that makes the ratio the expected share."""
    scores = scores[there]
    if ratio in (0, 1) or not len(scores):
        return there & (ratio == 1)
    # So far to either side every single probability is below the ratio, or above it.
    middle, reach = logit(ratio), np.abs(scores).max() + 1
    ends = middle - reach, middle + reach
    intercept = brentq(lambda a: expit(scores + a).mean() - ratio, *ends)
    gone = np.zeros_like(there)
    gone[there] = rng.random(len(scores)) < expit(scores + intercept)
    return gone


def count(m: int, ratio: float) -> int:
    """Floor m * ratio, where 100 * 0.29 is 29 and not 28.999999999999996."""
    return int(np.floor(round(m * ratio, 6)))


def observed(source: Source, columns: Sequence[int]) -> Mask:
    """Tell where the values of some columns are not missing (n, q)."""
    out = np.empty((source.table.shape[0], len(columns)), bool)
    for i, j in enumerate(columns):
        out[:, i] = ~_columns.is_missing(source.table.column(j, slice(None)))
    return out


def numbers_of(source: Source, j: int) -> Float:
    """Read a column as numbers that sort as it does, NaN where it is missing.

    Categories and text that all read as numbers are those numbers, and all others are ranks among
    the values that occur. So the same data gives the same numbers in every spelling. Only an
    ordered category may have an order of its own: neither by number nor, as pandas gives it, by
    text.
    """
    column, key = source.table.column(j, slice(None)), source.names[j]
    if hasattr(source.X, "get_columns") and str(source.X.dtypes[j]).startswith("Enum"):
        levels = source.X.dtypes[j].categories.to_list()
        column = pd.Categorical(column, categories=levels, ordered=True)
    kind = _columns.infer_kind(column)
    if kind in _columns.READ:
        return _columns.READ[kind](column, key)
    ordered = getattr(column.dtype, "ordered", False)
    if ordered:
        column = column.remove_unused_categories()
        codes, (_, values) = column.codes, _columns.factorize(column.categories.to_numpy(), key)
    else:
        codes, values = _columns.factorize(column, key)
    given = list(range(len(values)))
    order = sorted(given, key=lambda i: (isinstance(values[i], str), values[i]))
    numbers = _read_all(values)
    if ordered and order != given and (numbers is None or (np.diff(numbers) < 0).any()):
        order, numbers = given, None
    if numbers is None:
        numbers = np.argsort(order).astype(np.float64)
    return np.asarray(np.append(numbers, np.nan)[codes])  # Code -1, missing, is the last.


def _read_all(values: Sequence[Any]) -> Float | None:
    """Read values as numbers; None if there is one that is not."""
    try:
        numbers = np.array([float(value) for value in values])
    except (ValueError, OverflowError):
        return None
    return None if np.isnan(numbers).any() else numbers


def array_without(X: NDArray[Any], mask: Mask) -> NDArray[Any]:
    if not mask.any():
        return X.copy()
    kind = X.dtype.kind
    out = X.astype(X.dtype if kind in "fMm" else float if kind in "biu" else object)
    out[mask] = np.array("NaT", X.dtype) if kind in "Mm" else np.nan
    return out


def series_without(series: Any, gone: Mask) -> Any:
    if series.dtype == object:  # `mask` would guess a new dtype before pandas 3.
        cells = series.to_numpy(copy=True)
        cells[gone] = np.nan
        return pd.Series(cells, series.index, dtype=object)
    if isinstance(series.dtype, np.dtype) and series.dtype.kind in "biu":
        series = series.astype("boolean" if series.dtype == bool else "float64")
    if isinstance(series.dtype, np.dtype):
        return series.mask(gone)
    # `mask` fills gaps of an Arrow dictionary with values (pandas 3.1).
    places = np.where(gone, -1, np.arange(len(series)))
    return pd.Series(series.array.take(places, allow_fill=True), series.index)


def positions(source: Source, columns: Any, argument: str) -> list[int]:
    """Find columns given by name or position."""
    if columns is None or isinstance(columns, str | int | np.integer):
        columns = [] if columns is None else [columns]
    found, p = [], len(source.names)
    for key in columns:
        if isinstance(key, str) and key in source.names:
            found.append(source.names.index(key))
        elif is_whole(key) and -p <= key < p:
            found.append(int(key) % p)
        else:
            names = [name for name in source.names if isinstance(name, str)]
            raise ValueError(
                f"`{argument}` names column {key!r}, which is not one of the {p} columns of X."
                + nearest(key, names)
            )
    return found


def distinct(source: Source, columns: list[int], argument: str) -> list[int]:
    for j in columns:
        if columns.count(j) > 1:
            raise ValueError(f"`{argument}` names column {source.names[j]!r} more than once.")
    return columns


def nearest(given: Any, known: Iterable[str]) -> str:
    close = get_close_matches(str(given), list(known))
    return f" Did you mean {' or '.join(map(repr, close))}?" if close else ""


def generator(seed: Any) -> Rng:
    if isinstance(seed, np.random.Generator):
        return seed
    expect(is_whole(seed) and seed >= 0, "rng", "a whole number >= 0 or a NumPy Generator", seed)
    return np.random.default_rng(int(seed))


def check_settings(ratio: Any, slope: Any) -> None:
    check_share(ratio, "ratio")
    expect(_is_number(slope) and abs(slope) < np.inf, "slope", "a finite number", slope)


def check_share(value: Any, argument: str) -> None:
    expect(_is_number(value) and 0 <= value <= 1, argument, "a share between 0 and 1", value)


def expect(good: bool, argument: str, expected: str, value: Any) -> None:
    if not good:
        raise ValueError(f"`{argument}` must be {expected}. Received: {value!r}")


def is_whole(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.integer | np.floating)
