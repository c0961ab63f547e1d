"""Columns of any table: their kinds, their values as float64, and what there is to learn of them.

What is missing, in any spelling, becomes NaN. Arrays of numbers never meet pandas, which would take
longer than the work itself; polars is not imported, its columns turn themselves into NumPy.
"""

from __future__ import annotations

import datetime
import heapq
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import cache
from numbers import Real
from typing import Any, NamedTuple, NoReturn, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import DTypeLike, NDArray
from pandas.api.types import infer_dtype
from scipy.sparse import csc_array, issparse
from sklearn.utils.validation import check_array

Float: TypeAlias = NDArray[np.float64]
Key: TypeAlias = str | int
Scalar: TypeAlias = str | int | float | bool
# Shift, scale, lower and upper bound of one output column, and what is then taken off.
Map: TypeAlias = tuple[float, float, float, float, float]

IDENTITY: Map = (0.0, 1.0, -np.inf, np.inf, 0.0)
# Where there are bins: how many deviations from the mean the first column of a number ends, how
# many of them are one in the second, and where that ends, so that no slip of a digit rules all.
NEAR, COARSER, FAR = 3.0, 10.0, 300.0
UNKNOWN: Map = (np.nan, 1.0, -np.inf, np.inf, 0.0)
# Text of fewer values is a category, whatever it reads as. Among numbers, so many odd texts are
# signs of their own and make no category.
MANY, FEW_ODD = 20, 5

# Whole numbers as text is likely to spell them: no leading zeros, which make a code of it.
_WHOLE = re.compile(r"-?(0|[1-9][0-9]{0,30})(\.0)?")
# Quantiles may be wrong by this share of the weight: more than sums of weights are rounded by.
_ROUNDING = 1e-10
# Below this, a mean is rounded to so few digits that the order of a sum may decide them.
_COARSE = 1e-290
_NUMBERS = (Real, Decimal, np.bool_)
_DATES = (datetime.date, datetime.timedelta, np.datetime64, np.timedelta64)
# What `pandas.api.types.infer_dtype` calls things; anything else is a category.
_KIND = {
    **dict.fromkeys(("integer", "floating", "mixed-integer-float", "decimal", "empty"), "number"),
    **dict.fromkeys(("datetime64", "datetime", "date", "timedelta64", "timedelta"), "date"),
    "boolean": "boolean",
}


class Table(NamedTuple):
    """A table as its columns, each fetched when it is needed.

    Attributes
    ----------
    shape : tuple of int
    column : callable
        `column(j, rows)`: rows (a slice) of column j, a 1-D NumPy or pandas array.
    matrix : ndarray or None
        The whole table where it is a NumPy array of numbers or booleans.
    named : object
        X, or an empty frame with its column names: where scikit-learn finds them.
    sparse : sparse matrix or None
        The whole table in CSR format where it is a SciPy sparse matrix.
    """

    shape: tuple[int, int]
    column: Callable[[int, slice], Any]
    matrix: NDArray[Any] | None
    named: Any
    sparse: Any = None


class Learned(NamedTuple):
    """What one input column taught: its output columns, and its categories if it has them.

    A category in `categories` has a column of its own; if `other`, all others share one more.
    `fine` are the output columns of a number that come last, if they are wanted. `doubt` tells why
    a column of text may be no category.
    """

    maps: Sequence[Map]
    gaps: bool
    categories: list[Scalar] | None = None
    other: bool = False
    fine: Sequence[Map] = ()
    doubt: str = ""


def open_table(X: Any, estimator: Any = None, *, accept_sparse: bool = False) -> Table:
    """Look at X as columns, copying nothing; shapes are refused in scikit-learn's words."""
    if issparse(X) and accept_sparse:
        return _open_sparse(X, estimator)
    if type(X) is np.ndarray and X.ndim == 2 and X.size and X.dtype.kind in "biuf":
        # `check_array` takes several times as long as encoding a row.
        return Table(X.shape, lambda j, rows: X[rows, j], X, X)
    is_polars = hasattr(X, "get_columns")
    if hasattr(X, "to_pandas") and not is_polars:  # pyarrow, and whoever else knows how.
        # pandas refuses dictionaries with nulls or repeated entries: see `_decode`.
        is_arrow = type(X).__module__.startswith("pyarrow")
        X = X.to_pandas(types_mapper=_keep_dictionary) if is_arrow else X.to_pandas()
    if not (is_polars or isinstance(X, pd.DataFrame)):
        if isinstance(X, np.ma.MaskedArray):  # `np.asarray` would drop the mask.
            X = np.ma.filled(X.astype(float if X.dtype.kind in "iuf" else object), np.nan)
        # As objects, lists keep the types of their cells: [[1, "a"]] is not all text.
        dtype = None if hasattr(X, "__array__") else object
        X = check_array(X, dtype=dtype, ensure_all_finite=False, estimator=estimator)
        matrix = X if X.dtype.kind in "biuf" else None
        return Table(X.shape, lambda j, rows: X[rows, j], matrix, X)

    repeated = [name for name, count in Counter(X.columns).items() if count > 1]
    if repeated:
        raise ValueError(f"Column names must be unique. Received more than once: {repeated}")
    for name in map(str, X.columns):
        try:
            name.encode()
        except UnicodeEncodeError as error:
            refuse_text(error, name)
    if 0 in X.shape:
        check_array(np.empty(X.shape), estimator=estimator)  # Raises.

    columns = X.get_columns() if is_polars else [_decode(series) for _, series in X.items()]

    def from_pandas(j: int, rows: slice) -> Any:
        series = columns[j]
        return (series.to_numpy() if isinstance(series.dtype, np.dtype) else series.array)[rows]

    def from_polars(j: int, rows: slice) -> Any:
        column = columns[j][rows].to_numpy()
        if column.ndim != 1:  # A struct or an array in every cell.
            _refuse_cell(column[0].tolist(), X.columns[j])
        return column

    if is_polars:  # Names of polars 2 are unknown to scikit-learn before it knew narwhals.
        return Table(X.shape, from_polars, None, pd.DataFrame(columns=X.columns))
    return Table(X.shape, from_pandas, None, X)


def _keep_dictionary(dtype: Any) -> pd.ArrowDtype | None:
    """Tell pyarrow which pandas dtype a dictionary becomes; others are converted as usual."""
    return (
        pd.ArrowDtype(dtype) if hasattr(dtype, "value_type") and hasattr(dtype, "ordered") else None
    )


def _decode(series: pd.Series) -> pd.Series:
    """Turn an Arrow dictionary into pandas categories; any other column stays as it is.

    A dictionary may hold nulls, repeated entries and entries that occur in no row, and every chunk
    may have another one.
    """
    dtype = getattr(series.dtype, "pyarrow_dtype", None)
    if dtype is None or _keep_dictionary(dtype) is None:
        return series
    chunks = series.array.__arrow_array__()
    cells = chunks.cast(dtype.value_type).to_pandas(integer_object_nulls=True)
    entries = [entry for chunk in chunks.chunks for entry in chunk.dictionary.to_pylist()]
    levels = pd.Index([entry for entry in dict.fromkeys(entries) if not pd.isna(entry)])
    return pd.Series(pd.Categorical(cells, categories=levels, ordered=dtype.ordered))


def is_missing(column: Any) -> NDArray[np.bool_]:
    """Tell which cells are missing; NaN is also where pandas takes it for a number."""
    missing = np.asarray(pd.isna(column))
    if column.dtype.kind == "f" and not isinstance(column, np.ndarray):
        missing |= np.isnan(column.to_numpy(dtype=np.float64, na_value=np.nan))
    return missing


def _open_sparse(X: Any, estimator: Any) -> Table:
    """Look at a sparse matrix as columns; its zeros are observed."""
    X = check_array(
        X, accept_sparse="csr", dtype=None, ensure_all_finite=False, estimator=estimator
    )
    by_column = cache(lambda: csc_array(X))  # Only fitting and mixed kinds need it.

    def column(j: int, rows: slice) -> Any:
        return by_column()[:, [j]].toarray()[rows, 0]

    return Table(X.shape, column, None, X, X)


def infer_kind(column: Any) -> str:
    """Tell the kind of a column by its dtype, or by its cells where the dtype is object."""
    kind = column.dtype.kind
    if kind in "biufmM":
        return {"b": "boolean", "m": "date", "M": "date"}.get(kind, "number")
    if not isinstance(column, np.ndarray):
        name = infer_dtype(column)  # Text and categories know without a look at the cells.
        if name in ("string", "categorical"):
            return "category"
    cells, seen = _cells(column)
    return _KIND.get(_infer(cells[seen]), "category")


def read_number(column: Any, key: Key) -> Float:
    """Read numbers; text is refused, also where it looks like a number."""
    if column.dtype.kind in "biuf":
        if isinstance(column, np.ndarray):
            return column.astype(np.float64)
        return np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan))
    cells, seen = _cells(column)
    observed = cells[seen]
    if _KIND.get(_infer(observed)) not in ("number", "boolean"):
        _refuse_first(observed, _NUMBERS, "numbers", key)
    values = np.full(len(cells), np.nan)
    try:
        values[seen] = observed.astype(np.float64)
    except OverflowError:  # A Python int has no bounds.
        refuse_infinity(np.inf, np.float64, key)
    return values


def read_boolean(column: Any, key: Key) -> Float:
    """Read booleans as 0 and 1, and 0 and 1 as themselves."""
    values = read_number(column, key)
    bad = ~((values == 0) | (values == 1) | np.isnan(values))
    if bad.any():
        _refuse(values[bad][0], "booleans (or 0 and 1)", key)
    return values


def read_date(column: Any, key: Key) -> Float:
    """Read points in time as seconds since 1970 UTC, durations as seconds, text as ISO 8601."""
    kind = column.dtype.kind
    if not (isinstance(column, np.ndarray) and kind in "mM"):
        series = pd.Series(column)
        seen = series.notna().to_numpy()
        inferred = {"m": "timedelta", "M": "datetime"}.get(kind)
        if inferred is None:
            observed = _cells(column)[0][seen]
            inferred = _infer(observed)
            if _KIND.get(inferred) != "date" and inferred not in ("string", "empty"):
                _refuse_first(observed, _DATES, "dates", key)
        if inferred.startswith("timedelta"):
            column = pd.to_timedelta(series, errors="coerce").to_numpy("m8[us]")
        else:
            parsed = pd.to_datetime(series, utc=True, format="ISO8601", errors="coerce")
            column = parsed.to_numpy("M8[us]")
        bad = np.isnat(column) & seen
        if bad.any():
            _refuse(series[bad].iloc[0], "dates", key)
    if column.dtype.kind == "M":
        column = column - np.datetime64(0, "s")
    return np.asarray(column / np.timedelta64(1, "s"))


def is_duration(column: Any) -> bool:
    """Whether a column of dates holds durations, and not points in time."""
    if column.dtype.kind in "mM":
        return bool(column.dtype.kind == "m")
    cells, seen = _cells(column)
    return _infer(cells[seen]).startswith("timedelta")


def refuse_other_dates(column: Any, key: Key, *, durations: bool) -> None:
    """Refuse durations where training had points in time, and the other way round."""
    if is_duration(column) == durations or is_missing(column).all():
        return
    before, now = ("durations", "dates") if durations else ("dates", "durations")
    cells, seen = _cells(column)
    raise ValueError(
        f"Column {key!r} held {before} in training and now holds {now}, such as "
        f"{cells[seen][0]!s:.60}. Make it {before}, or fit a new model on {now}."
    )


# How a column of each kind is read as numbers; categories are factorised.
READ: dict[str, Callable[[Any, Key], Float]] = {
    "number": read_number,
    "boolean": read_boolean,
    "date": read_date,
}


def factorize(column: Any, key: Key) -> tuple[NDArray[np.intp], list[Scalar]]:
    """Find the values that occur and, for every row, which one it holds (-1: missing)."""
    if column.dtype.kind == "f" and not isinstance(column, np.ndarray):
        # pandas would take NaN in an Arrow column for a value.
        column = column.to_numpy(dtype=column.dtype.numpy_dtype, na_value=np.nan)
    try:
        codes, values = pd.Series(column).factorize()
    except UnicodeEncodeError as error:
        refuse_text(error, key)
    except (TypeError, NotImplementedError):  # Cells that cannot be hashed.
        cells, seen = _cells(column)
        for cell in cells[seen]:
            _scalar(cell, key)
        raise
    return codes, [_scalar(value, key) for value in values]


def learn_number(
    x: Float, weight: Float, n_bins: int, key: Key, *, fine_bins: int = 0, scale: bool = True
) -> Learned:
    """Learn mean, deviation and bin edges over what is observed.

    Bins, and means of tiny numbers, do not depend on the order of the rows.
    """
    seen = ~np.isnan(x)
    gaps = not seen.all()
    if gaps:
        x, weight = x[seen], weight[seen]
    if not len(x):
        return Learned([UNKNOWN], gaps)
    if n_bins or np.abs(x).max() < _COARSE:
        x, weight = _sort(x, weight)
    with np.errstate(over="ignore", invalid="ignore"):
        if not np.isfinite(x.max() - x.min()):
            refuse_infinity(x[np.argmax(np.abs(x))], np.float64, key)
    mean, deviation = moments(x, weight) if scale else (0.0, 1.0)
    # With bins a number far out is in the last of them; standardised it would still be far out, and
    # what a network makes of that is anybody's guess. So it is told on a second, coarser scale.
    bound = NEAR if n_bins and scale else np.inf
    maps = [(mean, deviation, -bound, bound, 0.0)]
    if n_bins and scale and x[0] < x[-1]:
        maps.append((mean, COARSER * deviation, -FAR / COARSER, FAR / COARSER, 0.0))
    if not n_bins:
        return Learned(maps, gaps)
    # Quantiles as by np.quantile(method="inverted_cdf"), where a weight of 2 is a row that occurs
    # twice; its sums of weights, if rounded otherwise, would give the next value now and then.
    shares = [np.linspace(0, 1, n + 1) for n in (n_bins, fine_bins) if n]
    totals = np.cumsum(weight)
    wanted = (np.concatenate(shares) - _ROUNDING) * totals[-1]
    edges = x[np.searchsorted(totals, wanted)]
    coarse, fine = (_bins(e, x, weight) for e in np.split(edges, [n_bins + 1]))
    # With few values the fine bins are no finer.
    return Learned(maps + coarse, gaps, fine=fine if len(fine) > len(coarse) else ())


def _sort(x: Float, weight: Float) -> tuple[Float, Float]:
    """Sort numbers, and equal ones by weight: sums are then rounded alike in any order of rows."""
    if weight.min() == weight.max():
        return np.sort(x), weight
    order = np.argsort(x)
    if (np.diff(x[order]) == 0).any():
        order = np.lexsort((weight, x))
    return x[order], weight[order]


def _bins(edges: Float, x: Float, weight: Float) -> list[Map]:
    """The columns of bins; those that coincide are one.

    Their means over x are taken off, so that a feature that is pruned is an average one: with
    columns of 0 to 1 the biases would first have to learn that, which takes twice as long.
    """
    edges = np.unique(edges)
    lows, widths = edges[:-1], np.diff(edges)
    if not len(widths):
        return []
    home = np.clip(np.searchsorted(edges, x, side="right") - 1, 0, len(widths) - 1)
    totals = np.bincount(home, weight, len(widths))
    inside = np.bincount(home, weight * ((x - lows[home]) / widths[home]), len(widths))
    # A row is inside one bin, above those before it and below those after it.
    means = (inside + totals.sum() - np.cumsum(totals)) / totals.sum()
    columns = zip(lows.tolist(), widths.tolist(), means.tolist(), strict=True)
    return [(low, width, 0.0, 1.0, mean) for low, width, mean in columns]


def learn_boolean(x: Float) -> Learned:
    """Learn whether there were gaps, and anything but gaps."""
    missing = np.isnan(x)
    return Learned([UNKNOWN if missing.all() else IDENTITY], bool(missing.any()))


def learn_category(column: Any, weight: Float, max_categories: int, key: Key) -> Learned:
    """Learn which values get a column, and whether the others share one."""
    codes, values = factorize(column, key)
    seen = codes >= 0
    totals: dict[Scalar, float] = defaultdict(float)
    counts = np.bincount(codes[seen], weight[seen], len(values))
    for value, count in zip(values, counts.tolist(), strict=True):
        totals[value] += count  # As scalars, two values may have become one.
    # Sums of weights differ in their last bits with the order of the rows; ranks shall not.
    sizes = np.round(np.array([*totals.values()]) / max(counts.sum(), np.finfo(float).tiny), 12)
    rank = dict(zip(totals, (-sizes).tolist(), strict=True))

    def order(value: Scalar) -> tuple[bool, Scalar]:
        return isinstance(value, str), value

    kept = list(totals)
    other = len(kept) > max_categories
    if other:
        kept = heapq.nsmallest(max_categories - 1, kept, key=lambda v: (rank[v], order(v)))
    # A place as shift, and bounds: see `TableEncoder._write`.
    maps = [(float(k), 1.0, -1.0, 1.0, 0.0) for k in range(len(kept) + other)]
    is_text = not isinstance(column.dtype, pd.CategoricalDtype)
    doubt = _doubt(list(totals), len(codes), key) if is_text else ""
    return Learned(maps or [UNKNOWN], not seen.all(), sorted(kept, key=order), other, doubt=doubt)


def _doubt(values: list[Scalar], n_rows: int, key: Key) -> str:
    """Why a column with these values may be no category, and what to do about it."""
    if len(values) < MANY or not all(isinstance(value, str) for value in values):
        return ""
    texts = pd.Series(values, dtype=object)
    number = pd.to_numeric(texts, errors="coerce").notna().to_numpy()
    odd = texts[~number].tolist()
    if len(odd) <= FEW_ODD:
        but = f" but for {', '.join(map(repr, odd))}" if odd else ""
        return (
            f"reads as numbers{but}. If it holds numbers, make it so: "
            "`pandas.to_numeric(column, errors='coerce')`"
        )
    if pd.to_datetime(texts, format="ISO8601", errors="coerce", utc=True).notna().all():
        return f"reads as dates. If it holds dates, say so: `kinds={{{key!r}: 'date'}}`"
    if len(values) == n_rows:
        return "is another in every row, which tells nothing of new rows. Leave it out"
    return ""


def refuse_infinity(value: Any, dtype: DTypeLike, key: Key) -> NoReturn:
    """Raise the error for infinity and for what would become infinity."""
    raise ValueError(
        f"Column {key!r} contains infinity or a value too large for {np.dtype(dtype)}: "
        f"{value!s:.30}. Correct it, or make it missing."
    )


def refuse_text(error: UnicodeEncodeError, key: Key) -> NoReturn:
    """Raise the error for text that is not valid Unicode, such as a lone surrogate."""
    raise ValueError(
        f"Column {key!r:.60} has text that is not valid Unicode, in its name or its values: "
        f"{error.object!r:.60}. Correct the text, for example with "
        '`text.encode("utf-8", "replace").decode()`.'
    ) from None


def moments(x: Float, weight: Float) -> tuple[float, float]:
    """Compute the weighted mean and deviation; 1 for the deviation of a constant.

    Values that differ by rounding only count as constant. Both are computed relative to the largest
    value and the largest weight, so that nothing overflows or vanishes, whatever their units.

    Parameters
    ----------
    x : ndarray of float (n,)
        Without missing values.
    weight : ndarray of float (n,)
        Non-negative, not all zero.

    Returns
    -------
    tuple of float
        Mean and deviation.
    """
    unit = np.abs(x).max() or 1.0
    z, weight = x / unit, weight / weight.max()
    total = weight.sum()
    mean = (weight * z).sum() / total
    z -= mean
    deviation = np.sqrt((weight * z * z).sum() / total)
    constant = deviation <= 8 * np.finfo(float).eps or deviation * unit == 0
    return float(mean * unit), 1.0 if constant else float(deviation * unit)


def common_form(value: Scalar) -> Scalar | None:
    """Find what the spellings of a category have in common, such as 1 for 1.0, "1" and "True".

    None for text that reads as nothing but text. Text reads as a number only if numbers are written
    that way: "1" and "1.5" do, "01" and "1.50" do not, for they may be codes. Python does not tell
    True from 1, nor does pandas in a column of objects.
    """
    if not isinstance(value, str):
        return value
    if value.lower() in ("true", "false"):
        return int(value.lower() == "true")
    if _WHOLE.fullmatch(value):
        return int(value.removesuffix(".0"))
    try:
        number = float(value)
    except ValueError:
        return None
    return number if repr(number) == value and np.isfinite(number) else None


def _infer(observed: NDArray[np.object_]) -> str:
    """Ask pandas what it calls cells none of which is missing."""
    name = str(infer_dtype(observed))
    if name == "complex":
        raise ValueError("Complex data not supported")
    if name.startswith("mixed") and all(isinstance(cell, _NUMBERS) for cell in observed):
        return "mixed-integer-float"
    return name


def _cells(column: Any) -> tuple[NDArray[np.object_], NDArray[np.bool_]]:
    """Return the cells as Python objects, and which of them are not missing."""
    if column.dtype == object and isinstance(column, np.ndarray):
        cells = column
    else:
        cells = pd.Series(column).astype(object).to_numpy()
    return cells, ~pd.isna(cells)


def _scalar(value: Any, key: Key) -> Scalar:
    """Turn a category into a plain Python scalar: 1, 1.0 and np.int8(1) are one."""
    if isinstance(value, np.floating) and value.itemsize < 8:
        value = float(str(value))  # 0.1 in single precision is 0.1.
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError as error:
            refuse_text(error, key)
        return value
    if isinstance(value, Decimal):
        value = int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, bool):
        return value
    if isinstance(value, float) and not value.is_integer():
        if np.isinf(value):
            refuse_infinity(value, np.float64, key)
        return value
    if isinstance(value, int | float):
        return int(value)
    times = (datetime.date, datetime.time, datetime.timedelta, pd.Interval, pd.Period)
    if isinstance(value, times):
        return str(value)
    _refuse_cell(value, key)


def _refuse_cell(value: Any, key: Key) -> NoReturn:
    raise TypeError(
        f"Column {key!r} holds {value!r:.60}: a cell's argument must be a string or a number, "
        f"not {type(value).__name__}. Spread it over columns of its own, or turn it into text."
    )


def _refuse_first(cells: NDArray[np.object_], good: tuple[type, ...], what: str, key: Key) -> None:
    """Refuse the first cell that is not of a good type, if there is one."""
    for cell in cells:
        if not isinstance(cell, good):
            _scalar(cell, key)  # Raises for what no kind of column can hold.
            _refuse(cell, what, key)


def _refuse(value: Any, what: str, key: Key) -> NoReturn:
    raise ValueError(
        f"Column {key!r} must hold {what}, and holds {value!r:.60}. Correct the value or make it "
        f"missing; if the column is of another kind, say so when fitting: "
        f"`kinds={{{key!r}: 'category'}}`."
    )
