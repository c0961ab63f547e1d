"""One column of a table: its kind, its values as float64, and its learned encoding.

Missing values of any type become NaN. NumPy arrays of numbers are not converted to pandas, because
this would take longer than the encoding itself. Polars is not imported: its columns convert
themselves to NumPy.
"""

from __future__ import annotations

import datetime
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
# The formula of one output column: shift, scale, lower bound, upper bound, mean to subtract.
Map: TypeAlias = tuple[float, float, float, float, float]

KINDS = ("number", "boolean", "category", "date")
IDENTITY: Map = (0.0, 1.0, -np.inf, np.inf, 0.0)
UNKNOWN: Map = (np.nan, 1.0, -np.inf, np.inf, 0.0)  # A feature without an observed value.
# With bins, a number has two columns: one is clipped at NEAR standard deviations, the other is
# COARSER times coarser and clipped at FAR, so that a mistyped digit does not dominate.
NEAR, COARSER, FAR = 3.0, 10.0, 300.0
# Text with up to this many other values among numbers is not a category: the values are markers.
FEW_ODD = 5

_MANY = 20  # Text with fewer distinct values is a category, even if they are numbers.
# Whole numbers as text. Leading zeros are not allowed: they indicate a code.
_WHOLE = re.compile(r"-?(0|[1-9][0-9]{0,30})(\.0)?")
# Tolerance of quantiles, as a share of the total weight. It exceeds the rounding of the sums.
_ROUNDING = 1e-10
# Sums of smaller numbers have so few digits that their rounding depends on the order of the rows.
_COARSE = 1e-290
_NUMBERS = (Real, Decimal, np.bool_)
_DATES = (datetime.date, datetime.timedelta, np.datetime64, np.timedelta64)
# The kinds for the results of `pandas.api.types.infer_dtype`; any other is a category.
_KIND = {
    **dict.fromkeys(("integer", "floating", "mixed-integer-float", "decimal", "empty"), "number"),
    **dict.fromkeys(("datetime64", "datetime", "date", "timedelta64", "timedelta"), "date"),
    "boolean": "boolean",
}


class Table(NamedTuple):
    """A table of any type, read column by column.

    Attributes
    ----------
    shape : tuple of int
        Number of rows and columns.
    column : callable
        `column(j, rows)` returns the rows (a slice) of column j as a 1-D NumPy or pandas array.
    matrix : ndarray or None
        The table, if it is a NumPy array of numbers or booleans.
    named : object
        X, or an empty frame with its column names for scikit-learn's checks.
    sparse : sparse matrix or None
        The table in CSR format, if it is a SciPy sparse matrix.
    """

    shape: tuple[int, int]
    column: Callable[[int, slice], Any]
    matrix: NDArray[Any] | None
    named: Any
    sparse: Any = None


class Learned(NamedTuple):
    """The learned encoding of one input column.

    Attributes
    ----------
    maps : sequence of Map
        The output columns.
    gaps : bool
        Whether a value is missing.
    categories : list or None
        The categories with an output column of their own.
    other : bool
        Whether all other categories share one more output column.
    fine : sequence of Map
        The output columns of the fine bins.
    doubt : str
        Why a column of text may not be a category.
    """

    maps: Sequence[Map]
    gaps: bool
    categories: list[Scalar] | None = None
    other: bool = False
    fine: Sequence[Map] = ()
    doubt: str = ""


def open_table(X: Any, estimator: Any = None, *, accept_sparse: bool = False) -> Table:
    """Open X as a `Table` without a copy; the errors on its shape are those of scikit-learn."""
    if issparse(X) and accept_sparse:
        return _open_sparse(X, estimator)
    if type(X) is np.ndarray and X.ndim == 2 and X.size and X.dtype.kind in "biuf":
        # `check_array` takes several times longer than the encoding of a row.
        return Table(X.shape, lambda j, rows: X[rows, j], X, X)
    is_polars = hasattr(X, "get_columns")
    if hasattr(X, "to_pandas") and not is_polars:  # Such as a pyarrow table.
        # pandas rejects dictionaries with nulls or repeated entries: see `_decode`.
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

    if is_polars:  # Not every version of scikit-learn finds the names of polars columns.
        return Table(X.shape, from_polars, None, pd.DataFrame(columns=X.columns))
    return Table(X.shape, from_pandas, None, X)


def _keep_dictionary(dtype: Any) -> pd.ArrowDtype | None:
    """Return the pandas dtype of an Arrow dictionary, None for any other type."""
    is_dictionary = hasattr(dtype, "value_type") and hasattr(dtype, "ordered")
    return pd.ArrowDtype(dtype) if is_dictionary else None


def _decode(series: pd.Series) -> pd.Series:
    """Convert an Arrow dictionary to pandas categories; return any other column unchanged.

    A dictionary may hold nulls, repeated entries and unused entries, and each chunk has its own.
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
    """Return which cells are missing, including NaN in a nullable float column."""
    missing = np.asarray(pd.isna(column))
    if column.dtype.kind == "f" and not isinstance(column, np.ndarray):
        missing |= np.isnan(column.to_numpy(dtype=np.float64, na_value=np.nan))
    return missing


def _open_sparse(X: Any, estimator: Any) -> Table:
    """Open a sparse matrix, whose zeros are observed values."""
    X = check_array(
        X, accept_sparse="csr", dtype=None, ensure_all_finite=False, estimator=estimator
    )
    by_column = cache(lambda: csc_array(X))  # Only `fit` and tables of mixed kinds need it.
    return Table(X.shape, lambda j, rows: by_column()[:, [j]].toarray()[rows, 0], None, X, X)


def infer_kind(column: Any) -> str:
    """Return the kind of an array or pandas column, by its dtype or, for objects, its cells."""
    kind = column.dtype.kind
    if kind in "biufmM":
        return {"b": "boolean", "m": "date", "M": "date"}.get(kind, "number")
    is_array = isinstance(column, np.ndarray)
    if not is_array and infer_dtype(column) in ("string", "categorical"):
        return "category"
    cells, seen = _cells(column)
    return _KIND.get(_infer(cells[seen]), "category")


def read_number(column: Any, key: Key) -> Float:
    """Read numbers. Text is an error, even if it looks like a number."""
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
    except OverflowError:  # Python integers are unbounded.
        refuse_infinity(np.inf, np.float64, key)
    return values


def read_boolean(column: Any, key: Key) -> Float:
    """Read booleans, or the numbers 0 and 1, as 0.0 and 1.0."""
    values = read_number(column, key)
    bad = ~((values == 0) | (values == 1) | np.isnan(values))
    if bad.any():
        _refuse(values[bad][0], "booleans (or 0 and 1)", key)
    return values


def read_date(column: Any, key: Key) -> Float:
    """Read dates as seconds since 1970 UTC, durations as seconds, and text as ISO 8601."""
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
    """Return whether a column of kind "date" holds durations instead of points in time."""
    if column.dtype.kind in "mM":
        return bool(column.dtype.kind == "m")
    cells, seen = _cells(column)
    return _infer(cells[seen]).startswith("timedelta")


def refuse_other_dates(column: Any, key: Key, *, durations: bool) -> None:
    """Raise an error for durations if training had points in time, and vice versa."""
    if is_duration(column) == durations or is_missing(column).all():
        return
    before, now = ("durations", "dates") if durations else ("dates", "durations")
    cells, seen = _cells(column)
    raise ValueError(
        f"Column {key!r} held {before} in training and now holds {now}, such as "
        f"{cells[seen][0]!s:.60}. Make it {before}, or fit a new model on {now}."
    )


# The readers by kind; categories are factorized instead.
READ: dict[str, Callable[[Any, Key], Float]] = {
    "number": read_number,
    "boolean": read_boolean,
    "date": read_date,
}


def factorize(column: Any, key: Key) -> tuple[NDArray[np.intp], list[Scalar]]:
    """Return for each row the index of its value (-1 if missing), and the distinct values."""
    if column.dtype.kind == "f" and not isinstance(column, np.ndarray):
        # pandas takes NaN in an Arrow column for a value.
        column = column.to_numpy(dtype=column.dtype.numpy_dtype, na_value=np.nan)
    try:
        codes, values = pd.Series(column).factorize()
    except UnicodeEncodeError as error:
        refuse_text(error, key)
    except (TypeError, NotImplementedError):  # A cell is not hashable.
        cells, seen = _cells(column)
        for cell in cells[seen]:
            _scalar(cell, key)
        raise
    return codes, [_scalar(value, key) for value in values]


def learn_number(
    x: Float, weight: Float, n_bins: int, key: Key, *, n_fine_bins: int = 0, scale: bool = True
) -> Learned:
    """Learn mean, standard deviation and bin edges of the observed numbers.

    Bins, and the means of tiny numbers, do not depend on the order of the rows.
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
    # With bins, an outlier falls into the last bin. Its standardized value is clipped, because the
    # output of a network for it is arbitrary, and is given in a second, coarser column.
    bound = NEAR if n_bins and scale else np.inf
    maps = [(mean, deviation, -bound, bound, 0.0)]
    if n_bins and scale and x[0] < x[-1]:
        maps.append((mean, COARSER * deviation, -FAR / COARSER, FAR / COARSER, 0.0))
    if not n_bins:
        return Learned(maps, gaps)
    # As np.quantile(method="inverted_cdf"), with a weight of 2 equal to a repeated row. NumPy has
    # no tolerance, so that its result sometimes depends on the rounding of the sums.
    shares = [np.linspace(0, 1, n + 1) for n in (n_bins, n_fine_bins) if n]
    totals = np.cumsum(weight)
    wanted = (np.concatenate(shares) - _ROUNDING) * totals[-1]
    edges = x[np.searchsorted(totals, wanted)]
    coarse, fine = (_bins(e, x, weight) for e in np.split(edges, [n_bins + 1]))
    # With few distinct values, the fine bins are the same as the others.
    return Learned(maps + coarse, gaps, fine=fine if len(fine) > len(coarse) else ())


def _sort(x: Float, weight: Float) -> tuple[Float, Float]:
    """Sort numbers, and equal ones by weight, so that sums do not depend on the order of rows."""
    if weight.min() == weight.max():
        return np.sort(x), weight
    order = np.lexsort((weight, x))
    return x[order], weight[order]


def _bins(edges: Float, x: Float, weight: Float) -> list[Map]:
    """Return the output columns of the bins between the edges; equal edges are merged.

    Each column is centred, so that a missing feature equals an average one. With columns of 0 to 1
    the biases would first have to learn this, and training would take twice as long.
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
    """Learn whether booleans have missing values and whether any is observed."""
    missing = np.isnan(x)
    return Learned([UNKNOWN if missing.all() else IDENTITY], bool(missing.any()))


def learn_category(column: Any, weight: Float, max_categories: int, key: Key) -> Learned:
    """Learn which categories get an output column, and whether the others share one."""
    codes, values = factorize(column, key)
    seen = codes >= 0
    totals: dict[Scalar, float] = defaultdict(float)
    counts = np.bincount(codes[seen], weight[seen], len(values))
    for value, count in zip(values, counts.tolist(), strict=True):
        totals[value] += count  # Two values may be equal as Python scalars.
    # The last bits of the sums depend on the order of the rows; the ranks must not.
    sizes = np.round(np.array([*totals.values()]) / max(counts.sum(), np.finfo(float).tiny), 12)
    rank = dict(zip(totals, (-sizes).tolist(), strict=True))

    def order(value: Scalar) -> tuple[bool, Scalar]:
        return isinstance(value, str), value

    kept = list(totals)
    other = len(kept) > max_categories
    if other:
        kept = sorted(kept, key=lambda v: (rank[v], order(v)))[: max_categories - 1]
    # The shift is the position of the category: see `TableEncoder._write`.
    maps = [(float(k), 1.0, -1.0, 1.0, 0.0) for k in range(len(kept) + other)]
    is_text = not isinstance(column.dtype, pd.CategoricalDtype)
    doubt = _doubt(list(totals), len(codes), key) if is_text else ""
    return Learned(maps or [UNKNOWN], not seen.all(), sorted(kept, key=order), other, doubt=doubt)


def _doubt(values: list[Scalar], n_rows: int, key: Key) -> str:
    """Return why a column with these values may not be a category, and what to do."""
    if len(values) < _MANY or not all(isinstance(value, str) for value in values):
        return ""
    texts = pd.Series(values, dtype=object)
    number = pd.to_numeric(texts, errors="coerce").notna().to_numpy()
    odd = texts[~number].tolist()
    if len(odd) <= FEW_ODD:
        but = f" except {', '.join(map(repr, odd))}" if odd else ""
        return (
            f"its values are numbers{but}. To use them as numbers, convert the column: "
            "`pandas.to_numeric(column, errors='coerce')`"
        )
    if pd.to_datetime(texts, format="ISO8601", errors="coerce", utc=True).notna().all():
        return f"its values are dates. To use them as dates, pass `kinds={{{key!r}: 'date'}}`"
    if len(values) == n_rows:
        return "its value is different in every row. Leave the column out"
    return ""


def refuse_infinity(value: Any, dtype: DTypeLike, key: Key) -> NoReturn:
    """Raise the error for infinity and for numbers that overflow."""
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
    """Compute weighted mean and standard deviation; the latter is 1 for a constant.

    Values that differ only by rounding are constant. Both results are computed relative to the
    largest value and the largest weight, so that nothing over- or underflows.

    Parameters
    ----------
    x : ndarray of float (n,)
        Numbers without missing values.
    weight : ndarray of float (n,)
        Non-negative weights, not all zero.

    Returns
    -------
    mean, deviation : float
        The weighted mean and standard deviation.
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
    """Return the common form of all spellings of a category, such as 1 for 1.0, "1" and "True".

    The form of other text is None. Only text in the usual notation of numbers is a number: "1" and
    "1.5" are, "01" and "1.50" are not, because they may be codes. True equals 1 in Python, and in
    a pandas column of objects.
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
    """Return the type that pandas infers for observed cells."""
    name = str(infer_dtype(observed))
    if name == "complex":
        raise ValueError("Complex data not supported")
    if name.startswith("mixed") and all(isinstance(cell, _NUMBERS) for cell in observed):
        return "mixed-integer-float"
    return name


def _cells(column: Any) -> tuple[NDArray[np.object_], NDArray[np.bool_]]:
    """Return the cells as Python objects, and which of them are observed."""
    if column.dtype == object and isinstance(column, np.ndarray):
        cells = column
    else:
        cells = pd.Series(column).astype(object).to_numpy()
    return cells, ~pd.isna(cells)


def _scalar(value: Any, key: Key) -> Scalar:
    """Convert a category to a Python scalar: 1, 1.0 and np.int8(1) become equal."""
    if isinstance(value, np.floating) and value.itemsize < 8:
        value = float(str(value))  # float32(0.1) becomes 0.1.
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
        f"Column {key!r} holds {value!r:.60}: the argument must be a string or a number, "
        f"not {type(value).__name__}. Split it into several columns, or convert it to text."
    )


def _refuse_first(cells: NDArray[np.object_], good: tuple[type, ...], what: str, key: Key) -> None:
    """Raise an error for the first cell that is of no allowed type."""
    for cell in cells:
        if not isinstance(cell, good):
            _scalar(cell, key)  # Raises if no kind of column can hold the cell.
            _refuse(cell, what, key)


def _refuse(value: Any, what: str, key: Key) -> NoReturn:
    raise ValueError(
        f"Column {key!r} must hold {what}, and holds {value!r:.60}. Correct the value or make it "
        f"missing. If the column is of another kind, pass it to the model: "
        f"`kinds={{{key!r}: 'category'}}`."
    )
