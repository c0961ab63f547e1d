"""Missing values on demand: choose values of a table, and remove them.

A `ratio` is a share of the observed values: of m observed values, k = floor(m * ratio) are removed.
Values that are missing already are neither counted nor ranked. The values to remove are drawn as a
mask first, so everything they depend on is read before anything is removed. Frames (pandas, polars)
and arrays keep their type, and X itself is never modified.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple, Self, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq
from scipy.special import expit, logit
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.feature_selection import mutual_info_classif, mutual_info_regression
from sklearn.utils import check_random_state
from sklearn.utils.validation import (
    check_consistent_length,
    check_is_fitted,
    column_or_1d,
    validate_data,
)

from promissing._validation import did_you_mean, expect, is_whole, warn
from promissing.encoding import columns as _columns
from promissing.encoding.columns import Float, Key, Table

__all__ = [
    "MECHANISMS",
    "NAMES",
    "Mechanism",
    "MissingValues",
    "drop_groups",
    "mar",
    "mar_logistic",
    "mcar",
    "mcar_cells",
    "mcar_grid",
    "mnar",
    "mnar_logistic",
    "most_informative",
    "remove",
    "self_masking",
]

Columns: TypeAlias = Key | Sequence[Key] | None  # By name (str) or position (int).
Mask: TypeAlias = NDArray[np.bool_]
Rng: TypeAlias = np.random.Generator
Seed: TypeAlias = int | Rng | None

_TASKS = {"classification": mutual_info_classif, "regression": mutual_info_regression}


@dataclass(frozen=True)
class Mechanism:
    """A mechanism that decides which values of a table become missing.

    Call a mechanism to get the table without these values, or its `mask` to get their positions.

    =============== ============================================================================
    "mcar"          k random rows of each column
    "mcar-cells"    k random cells of all columns together
    "mar"           k consecutive ranks of another column, the driver, from a random start
    "mnar"          k consecutive ranks of the column itself, from a random start
    "mar-logistic"  more probable for high (or, at random, for low) values of the driver
    "mnar-logistic" the same with a random mix of all columns that lose values, itself included
    "self-masking"  more probable for high values of the column itself; low ones if slope < 0
    =============== ============================================================================

    The start is uniform on 0 .. m - k, and ties are ranked by row. Numbers and dates are ranked by
    value, False before True, ordered categories by their order, and others by value with text last.
    Categories and text that are all numbers are ranked as these numbers, unless an ordered category
    has an order that is neither that of the numbers nor that of the text.

    The last three mechanisms remove a value with log-odds `intercept + slope * z`, with z the
    standardized value or, for other categories and text, the standardized rank among the distinct
    values. The intercept makes the ratio the expected share. The result does not depend on the type
    of the table (NumPy, pandas, Arrow or polars; text or category).

    Parameters
    ----------
    name : str
        The name of the mechanism.

    Examples
    --------
    >>> import pandas as pd
    >>> from promissing.missingness import mar
    >>> frame = pd.DataFrame({"age": [20, 50, 30, 40], "smoker": [True, False, True, True]})
    >>> mar(frame, ratio=0.5, columns="smoker", drivers="age", random_state=0)
       age  smoker
    0   20    True
    1   50    <NA>
    2   30    True
    3   40    <NA>
    """

    name: str

    def __post_init__(self) -> None:
        if self.name not in NAMES:
            raise ValueError(
                f"`mechanism` must be one of {NAMES}. Received: {self.name!r}."
                + did_you_mean(self.name, NAMES, show=0)
            )

    def __call__(
        self,
        X: Any,
        *,
        ratio: float,
        random_state: Seed = None,
        columns: Columns = None,
        n_columns: int | str | None = None,
        drivers: Columns = None,
        slope: float = 2.0,
        rng: Seed = None,
    ) -> Any:
        """Return X without the values it loses; the parameters are those of `mask`."""
        how: Any = {"columns": columns, "n_columns": n_columns, "drivers": drivers, "slope": slope}
        return remove(X, self.mask(X, ratio=ratio, random_state=random_state, rng=rng, **how))

    def mask(
        self,
        X: Any,
        *,
        ratio: float,
        random_state: Seed = None,
        columns: Columns = None,
        n_columns: int | str | None = None,
        drivers: Columns = None,
        slope: float = 2.0,
        rng: Seed = None,
    ) -> Mask:
        """Draw the positions of the values that X loses.

        Parameters
        ----------
        X : frame, array or list of rows (n, p)
            The table.
        ratio : float
            Share of the observed values of each column that is removed, 0 to 1.
        random_state : int or numpy Generator
            Random seed. It is required, so that the result can be reproduced. An int gives the
            same mask for a frame and for an array.
        columns : str, int or sequence of them, optional
            Columns that lose values, each in other rows. By default they are random.
        n_columns : int or "all", optional
            Number of random columns. The default is 1, and "all" for "mcar-cells". For MAR, "all"
            leaves out the drivers, or one random column.
        drivers : str, int or sequence of them, optional
            For MAR, the columns that decide which rows are removed: one for all `columns` or one
            for each. By default they are random. A driver cannot lose values itself, because the
            mechanism would then be MNAR. Rows in which it is missing are ranked last (logistic:
            have its mean).
        slope : float, default=2.0
            For the logistic mechanisms, the change of the log-odds per standard deviation.
        rng : int or numpy Generator, optional
            Old name of `random_state`, to be removed in release 0.3.

        Returns
        -------
        ndarray of bool (n, p)
            True where a value is removed, False where it is missing already.

        Examples
        --------
        >>> from promissing.missingness import mcar
        >>> mcar.mask([[1.0], [2.0], [3.0], [4.0]], ratio=0.5, random_state=0)[:, 0]
        array([False, False,  True,  True])
        """
        _check_settings(ratio, slope)
        source, generator = open_source(X), _generator(random_state, rng)
        lost, by = _choose(source, self.name, columns, n_columns, drivers, generator)
        return _draw(source, self.name, lost, by, ratio, slope, generator)


NAMES = ("mcar", "mcar-cells", "mar", "mnar", "mar-logistic", "mnar-logistic", "self-masking")
MECHANISMS = {name: Mechanism(name) for name in NAMES}
mcar, mcar_cells, mar, mnar, mar_logistic, mnar_logistic, self_masking = MECHANISMS.values()


def mcar_grid(
    X: Any, *, ratio: float, column_ratio: float, random_state: Seed = None, rng: Seed = None
) -> Any:
    """Remove random values from a random share of the columns.

    Parameters
    ----------
    X : frame, array or list of rows (n, p)
        The table.
    ratio : float
        Share of the observed values of each of these columns that is removed, 0 to 1.
    column_ratio : float
        Share of the columns that lose values: floor(p * column_ratio), at least one if positive.
    random_state : int or numpy Generator
        Random seed.
    rng : int or numpy Generator, optional
        Old name of `random_state`, to be removed in release 0.3.

    Returns
    -------
    frame or array (n, p)
        The table without these values.

    Examples
    --------
    >>> import numpy as np
    >>> from promissing.missingness import mcar_grid
    >>> X = mcar_grid(np.ones((4, 3)), ratio=0.5, column_ratio=0.7, random_state=0)
    >>> np.isnan(X).sum(axis=0)
    array([0, 2, 2])
    """
    _check_share(column_ratio, "column_ratio")
    n_columns = _count(open_source(X).table.shape[1], column_ratio) or int(column_ratio > 0)
    return mcar(X, ratio=ratio, random_state=random_state, n_columns=n_columns, rng=rng)


def drop_groups(
    X: Any,
    groups: Mapping[str, Columns],
    *,
    random_state: Seed = None,
    ratio: float | Mapping[str, float] | None = None,
    n_per_row: int | None = None,
    rng: Seed = None,
) -> Any:
    """Remove whole groups of columns, such as modalities, from some rows.

    Parameters
    ----------
    X : frame, array or list of rows (n, p)
        The table.
    groups : mapping of str to columns
        Columns of each group. A column can be in one group only; columns in no group are kept.
    random_state : int or numpy Generator
        Random seed.
    ratio : float or mapping of str to float, optional
        Share of the rows with an observed value of a group that lose this group. The rows are drawn
        separately for each group. A group that is not in the mapping is kept.
    n_per_row : int, optional
        Instead of `ratio`, the number of random groups that every row loses; all if it has fewer.
    rng : int or numpy Generator, optional
        Old name of `random_state`, to be removed in release 0.3.

    Returns
    -------
    frame or array (n, p)
        The table without these groups.

    Examples
    --------
    >>> from promissing.missingness import drop_groups
    >>> groups = {"blood": [0, 1], "image": [2]}
    >>> drop_groups([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], groups, n_per_row=1, random_state=0)
    array([[ 1.,  2., nan],
           [ 4.,  5., nan]])
    """
    if (ratio is None) == (n_per_row is None):
        raise ValueError("Give either `ratio` or `n_per_row`.")
    expect(len(groups) > 0, "groups", "a mapping with at least one group", groups)
    source, generator = open_source(X), _generator(random_state, rng)
    members = [positions(source, columns, f"groups[{g!r}]") for g, columns in groups.items()]
    _check_distinct(source, [j for columns in members for j in columns], "groups")
    cells = observed(source, range(len(source.names)))
    there = np.column_stack([cells[:, columns].any(axis=1) for columns in members])
    if n_per_row is not None:
        good = is_whole(n_per_row) and 0 <= n_per_row <= len(groups)
        expect(good, "n_per_row", f"a whole number from 0 to {len(groups)}", n_per_row)
        # Random ranks within each row; groups without an observed value come last.
        ranks = np.where(there, generator.random(there.shape), 2).argsort(axis=1).argsort(axis=1)
        gone = ranks < n_per_row
    else:
        gone = np.zeros_like(there)
        ratios: Any = ratio if isinstance(ratio, Mapping) else dict.fromkeys(groups, ratio)
        for name, share in ratios.items():
            if name not in groups:
                raise ValueError(f"`ratio` names no group: {name!r}." + did_you_mean(name, groups))
            _check_share(share, "ratio")
            g = list(groups).index(name)
            gone[:, g] = _some(there[:, g], share, generator)
    mask = np.zeros_like(cells)
    for g, columns in enumerate(members):
        mask[:, columns] = gone[:, [g]]
    return remove(X, mask)


def remove(X: Any, mask: ArrayLike) -> Any:
    """Return X without the values at which the mask is True.

    The dtype of a column changes only if necessary: integers become float64, booleans become
    pandas' "boolean" (float64 in an array), and an array of text becomes an array of objects.

    Parameters
    ----------
    X : frame, array or list of rows (n, p)
        The table.
    mask : array of bool (n, p)
        The values to remove.

    Returns
    -------
    frame or array (n, p)
        A copy of the table without these values.

    Examples
    --------
    >>> from promissing.missingness import remove
    >>> remove([[1, 2], [3, 4]], [[True, False], [False, False]])
    array([[nan,  2.],
           [ 3.,  4.]])
    """
    source, mask = open_source(X), np.asarray(mask)
    if mask.shape != source.table.shape or mask.dtype != bool:
        raise ValueError(
            f"`mask` must be boolean and of the shape of X, {source.table.shape}. "
            f"Received: {mask.dtype} {mask.shape}"
        )
    X = source.X
    if isinstance(X, np.ndarray):
        if not mask.any():
            return X.copy()
        kind = X.dtype.kind
        out = X.astype(X.dtype if kind in "fMm" else float if kind in "biu" else object)
        out[mask] = np.array("NaT", X.dtype) if kind in "Mm" else np.nan
        return out
    changed = np.flatnonzero(mask.any(axis=0)).tolist()
    if isinstance(X, pd.DataFrame):
        out = X.copy()
        for j in changed:
            out.isetitem(j, _series_without(out.iloc[:, j], mask[:, j]))
        return out
    columns = [(X.to_series(j), mask[:, j]) for j in changed]
    # `clear(n)` is a column of n nulls, and `type(c)` avoids an import of polars.
    return X.with_columns([c.zip_with(type(c)(~m), c.clear(len(c))) for c, m in columns])


def most_informative(
    X: Any, y: ArrayLike, *, task: str | None = None, nominal: Columns = None
) -> list[Key]:
    """Return the columns of X by mutual information with y, highest first.

    Parameters
    ----------
    X : frame, array or list of rows (n, p)
        The table. Rows with a missing value in X or y are left out.
    y : array-like (n,)
        The target.
    task : {"classification", "regression"}, optional
        By default "regression" if y has a floating dtype, otherwise "classification".
    nominal : str, int or sequence of them, optional
        Columns in which numbers are codes. Text, categories and booleans are always nominal.

    Returns
    -------
    list of str or int
        The names of the columns, or their positions if they have no names.

    Examples
    --------
    >>> from promissing.missingness import most_informative
    >>> X = [[i % 3, i % 2] for i in range(40)]
    >>> most_informative(X, [i % 2 for i in range(40)], nominal=[0, 1])
    [1, 0]
    """
    source, target = open_source(X), np.asarray(column_or_1d(y))
    columns = [source.table.column(j, slice(None)) for j in range(len(source.names))]
    discrete = np.array([_columns.infer_kind(c) in ("category", "boolean") for c in columns])
    discrete[positions(source, nominal, "nominal")] = True
    values = np.column_stack([_numbers(source, j) for j in range(len(columns))])
    check_consistent_length(values, target)
    if task is None:
        task = "regression" if target.dtype.kind == "f" else "classification"
    expect(task in _TASKS, "task", f"one of {tuple(_TASKS)}", task)
    rows = ~(np.isnan(values).any(axis=1) | pd.isna(target))
    values, target = values[rows], target[rows]
    target = pd.factorize(target)[0] if task == "classification" else target.astype(float)
    nats = _TASKS[task](values, target, discrete_features=discrete, random_state=0)
    return [source.names[j] for j in np.argsort(-nats, kind="stable")]


class MissingValues(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Remove values from the training data of a pipeline.

    `fit_transform` removes values and `transform` does not: in a pipeline, the model is trained
    with missing values and predicts from complete rows. Columns and drivers are chosen in `fit`.
    Every removal starts from the same random state.

    Parameters
    ----------
    mechanism : str, default="mcar"
        The name of a `Mechanism`.
    ratio : float, default=0.25
        Share of the observed values of each column that is removed.
    columns : str, int or sequence of them, optional
        Columns that lose values, as in `Mechanism.mask`.
    n_columns : int or "all", optional
        Number of random columns, as in `Mechanism.mask`.
    drivers : str, int or sequence of them, optional
        For MAR, the columns that decide which rows are removed, as in `Mechanism.mask`.
    slope : float, default=2.0
        For the logistic mechanisms, the change of the log-odds per standard deviation.
    at_transform : bool, default=False
        Whether `transform` removes values, too.
    random_state : int, numpy Generator, RandomState or None, default=None
        Random seed. An int gives in `fit_transform` the result of the mechanism with this seed.

    Attributes
    ----------
    columns_ : list of str or int
        The columns that lose values.
    drivers_ : list of str or int
        For MAR, the driver of each of these columns.
    n_features_in_ : int
        The number of columns.
    feature_names_in_ : ndarray of str
        The names of the columns, if all are strings.

    Examples
    --------
    >>> from promissing.missingness import MissingValues
    >>> gaps = MissingValues("mnar", ratio=0.5, random_state=0)
    >>> gaps.fit_transform([[4.0], [1.0], [3.0], [2.0]]).T
    array([[nan,  1., nan,  2.]])
    >>> gaps.transform([[4.0], [1.0]]).T
    array([[4., 1.]])
    """

    def __init__(
        self,
        mechanism: str = "mcar",
        *,
        ratio: float = 0.25,
        columns: Columns = None,
        n_columns: int | str | None = None,
        drivers: Columns = None,
        slope: float = 2.0,
        at_transform: bool = False,
        random_state: Any = None,
    ) -> None:
        self.mechanism = mechanism
        self.ratio = ratio
        self.columns = columns
        self.n_columns = n_columns
        self.drivers = drivers
        self.slope = slope
        self.at_transform = at_transform
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Choose the columns that lose values, and their drivers.

        Parameters
        ----------
        X : frame or array (n, p)
            The training table.
        y : object, optional
            Ignored.

        Returns
        -------
        MissingValues
            The fitted transformer.

        Examples
        --------
        >>> from promissing.missingness import MissingValues
        >>> MissingValues(random_state=0).fit([[1.0, 2.0], [3.0, 4.0]]).columns_
        [1]
        """
        name, seed = Mechanism(self.mechanism).name, self.random_state
        _check_settings(self.ratio, self.slope)
        source = open_source(X, self)
        validate_data(self, source.table.named, reset=True, skip_check_array=True)
        if seed is None or isinstance(seed, np.random.RandomState):
            seed = check_random_state(seed).randint(2**31 - 1)
        self._rng = _generator(seed)
        self._lost, self._by = _choose(
            source, name, self.columns, self.n_columns, self.drivers, self._rng
        )
        self.columns_ = [source.names[j] for j in self._lost]
        self.drivers_ = [source.names[j] for j in self._by]
        return self

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """Fit to X and return it without the values it loses.

        Parameters
        ----------
        X : frame or array (n, p)
            The training table.
        y : object, optional
            Ignored.

        Returns
        -------
        frame or array (n, p)
            The table without these values.

        Examples
        --------
        >>> from promissing.missingness import MissingValues
        >>> MissingValues(ratio=0.5, random_state=0).fit_transform([[1.0], [2.0]]).T
        array([[ 1., nan]])
        """
        return self.fit(X)._remove(open_source(X))

    def transform(self, X: Any) -> Any:
        """Return a copy of X, with values removed only if `at_transform` is True.

        Parameters
        ----------
        X : frame or array (n, p)
            A table with the columns of the training table.

        Returns
        -------
        frame or array (n, p)
            The copy.

        Examples
        --------
        >>> from promissing.missingness import MissingValues
        >>> MissingValues(random_state=0).fit([[1.0], [2.0]]).transform([[5.0]])
        array([[5.]])
        """
        check_is_fitted(self)
        source = open_source(X, self)
        validate_data(self, source.table.named, reset=False, skip_check_array=True)
        if self.at_transform:
            return self._remove(source)
        return remove(source.X, np.zeros(source.table.shape, bool))

    def _remove(self, source: Source) -> Any:
        how = (self._lost, self._by, self.ratio, self.slope, deepcopy(self._rng))
        return remove(source.X, _draw(source, self.mechanism, *how))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags


class Source(NamedTuple):
    """A table to remove values from.

    Attributes
    ----------
    X : frame or array
        The table itself.
    table : Table
        The table for reading its columns.
    names : list of str or int
        The name of each column, or its position if it has no name.
    """

    X: Any
    table: Table
    names: list[Key]


def open_source(X: Any, estimator: Any = None) -> Source:
    """Open a table to remove values from it."""
    table = _columns.open_table(X, estimator)
    if isinstance(X, list | tuple):  # Opened as objects; numbers must be returned as numbers.
        table = _columns.open_table(pd.DataFrame(table.named).infer_objects().to_numpy())
    labels = getattr(table.named, "columns", range(table.shape[1]))
    names = [label if isinstance(label, str) else j for j, label in enumerate(labels)]
    return Source(X if hasattr(X, "get_columns") else table.named, table, names)


def observed(source: Source, columns: Sequence[int]) -> Mask:
    """Return where the values of some columns are observed (n, q)."""
    out = np.empty((source.table.shape[0], len(columns)), bool)
    for i, j in enumerate(columns):
        out[:, i] = ~_columns.is_missing(source.table.column(j, slice(None)))
    return out


def positions(source: Source, columns: Any, argument: str) -> list[int]:
    """Return the positions of columns given by name or position."""
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
                + did_you_mean(key, names)
            )
    return found


def _choose(
    source: Source, name: str, columns: Columns, n_columns: Any, drivers: Columns, rng: Rng
) -> tuple[list[int], list[int]]:
    """Return the columns that lose values and, for MAR, their drivers; draw those not given."""
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
        lost = positions(source, columns, "columns")
        _check_distinct(source, lost, "columns")
    if not driven:
        return lost, []
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
    return lost, by


def _draw(
    source: Source, name: str, lost: list[int], by: list[int], ratio: float, slope: float, rng: Rng
) -> Mask:
    """Draw the mask (n, p) of the values that are removed."""
    mask, there = np.zeros(source.table.shape, bool), observed(source, lost)
    if name == "mcar-cells":
        mask[:, lost] = _some(there, ratio, rng)
        return mask

    @cache
    def z(j: int) -> Float:
        x = _numbers(source, j)
        learned = _columns.learn_number(x, np.ones(len(x)), 0, source.names[j])
        shift, scale = learned.maps[0][:2]
        return np.nan_to_num((x - shift) / scale)  # A missing value has the mean.

    def mix(columns: list[int]) -> Float:
        weights = rng.normal(size=len(columns))
        weights /= np.linalg.norm(weights)  # For one column, only the sign is left.
        return np.asarray(np.column_stack([z(j) for j in columns]) @ weights)

    for i, j in enumerate(lost):
        rows = there[:, i]
        match name:
            case "mcar":
                mask[:, j] = _some(rows, ratio, rng)
            case "mar":
                mask[:, j] = _consecutive(rows, _numbers(source, by[i]), ratio, rng)
            case "mnar":
                mask[:, j] = _consecutive(rows, _numbers(source, j), ratio, rng)
            case "mar-logistic":
                mask[:, j] = _logistic(rows, slope * mix([by[i]]), ratio, rng)
            case "mnar-logistic":
                mask[:, j] = _logistic(rows, slope * mix(lost), ratio, rng)
            case "self-masking":
                mask[:, j] = _logistic(rows, slope * z(j), ratio, rng)
    return mask


def _some(there: Mask, ratio: float, rng: Rng) -> Mask:
    """Draw k of the observed values at random."""
    gone, places = np.zeros_like(there), np.flatnonzero(there)
    gone.flat[rng.choice(places, _count(len(places), ratio), replace=False)] = True
    return gone


def _consecutive(there: Mask, values: Float, ratio: float, rng: Rng) -> Mask:
    """Draw k consecutive ranks of the observed values; NaN ranks last."""
    gone = np.zeros_like(there)
    ranked = np.flatnonzero(there)[np.argsort(values[there], kind="stable")]
    k = _count(len(ranked), ratio)
    start = rng.integers(len(ranked) - k, endpoint=True)
    gone[ranked[start : start + k]] = True
    return gone


def _logistic(there: Mask, scores: Float, ratio: float, rng: Rng) -> Mask:
    """Draw with log-odds `scores` plus the intercept that makes the ratio the expected share."""
    scores = scores[there]
    if ratio in (0, 1) or not len(scores):
        return there & (ratio == 1)
    # At either end, every probability is below the ratio, or every one is above it.
    middle, reach = logit(ratio), np.abs(scores).max() + 1
    ends = middle - reach, middle + reach
    intercept = brentq(lambda a: expit(scores + a).mean() - ratio, *ends)
    gone = np.zeros_like(there)
    gone[there] = rng.random(len(scores)) < expit(scores + intercept)
    return gone


def _count(m: int, ratio: float) -> int:
    """Return floor(m * ratio), where 100 * 0.29 is 29 and not 28.999999999999996."""
    return int(np.floor(round(m * ratio, 6)))


def _numbers(source: Source, j: int) -> Float:
    """Read a column as numbers with the same order, NaN where it is missing.

    Categories and text that are all numbers become these numbers, and others become ranks among the
    distinct values, so the result does not depend on the type of the column. Only an ordered
    category may have an order that is neither that of the numbers nor that of the text.
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
    ranks = np.argsort(order).astype(np.float64)
    try:
        numbers = np.array([float(value) for value in values])
        numbers = ranks if np.isnan(numbers).any() else numbers
    except (ValueError, OverflowError):
        numbers = ranks
    if ordered and order != given and (np.diff(numbers) < 0).any():
        numbers = np.array(given, np.float64)
    return np.asarray(np.append(numbers, np.nan)[codes])  # Missing cells have code -1, the last.


def _series_without(series: Any, gone: Mask) -> Any:
    """Return a pandas column without some values."""
    if series.dtype == object:  # `mask` infers a new dtype before pandas 3.
        cells = series.to_numpy(copy=True)
        cells[gone] = np.nan
        return pd.Series(cells, series.index, dtype=object)
    if isinstance(series.dtype, np.dtype) and series.dtype.kind in "biu":
        series = series.astype("boolean" if series.dtype == bool else "float64")
    if isinstance(series.dtype, np.dtype):
        return series.mask(gone)
    # `mask` fills missing values of an Arrow dictionary with values (pandas 3.1).
    places = np.where(gone, -1, np.arange(len(series)))
    return pd.Series(series.array.take(places, allow_fill=True), series.index)


def _generator(random_state: Any, rng: Any = None) -> Rng:
    """Return the random generator for a seed, which may have been given by its old name."""
    if rng is not None:
        warn(
            "The parameter `rng` is now `random_state`. The old name will be removed in release "
            "0.3.",
            FutureWarning,
        )
        random_state = rng
    if isinstance(random_state, np.random.Generator):
        return random_state
    good = is_whole(random_state) and random_state >= 0
    expect(good, "random_state", "a whole number >= 0 or a NumPy Generator", random_state)
    return np.random.default_rng(int(random_state))


def _check_settings(ratio: Any, slope: Any) -> None:
    _check_share(ratio, "ratio")
    expect(_is_number(slope) and abs(slope) < np.inf, "slope", "a finite number", slope)


def _check_share(value: Any, argument: str) -> None:
    expect(_is_number(value) and 0 <= value <= 1, argument, "a share between 0 and 1", value)


def _check_distinct(source: Source, columns: list[int], argument: str) -> None:
    for j in columns:
        if columns.count(j) > 1:
            raise ValueError(f"`{argument}` names column {source.names[j]!r} more than once.")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.integer | np.floating)
