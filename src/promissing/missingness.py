"""Missing values on demand: which values a table loses, and the table without them.

Everywhere a `ratio` is a share of what is there: of m observed values k = floor(m * ratio) are
lost; in a complete table m is n. What is missing already stays missing, uncounted and unranked.
Losses are drawn as a mask first, so all that drives them is read before anything is removed. Frames
(pandas, polars) and arrays come back as what they were; X itself is never modified.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.feature_selection import mutual_info_classif, mutual_info_regression
from sklearn.utils import check_random_state
from sklearn.utils.validation import (
    check_consistent_length,
    check_is_fitted,
    column_or_1d,
    validate_data,
)

from promissing._selection import (
    Columns,
    Count,
    Mask,
    Seed,
    Source,
    array_without,
    check_settings,
    check_share,
    choose,
    count,
    distinct,
    draw,
    expect,
    generator,
    is_whole,
    nearest,
    numbers_of,
    observed,
    open_source,
    positions,
    series_without,
    some,
)
from promissing.encoding import columns as _columns
from promissing.encoding.columns import Key

_TASKS = {"classification": mutual_info_classif, "regression": mutual_info_regression}


@dataclass(frozen=True)
class Mechanism:
    """A way to lose values: call it for the table without them, its `mask` for where they were.

    =============== ============================================================================
    "mcar"          loses k random rows
    "mcar-cells"    loses k random cells of all its columns together
    "mar"           loses k consecutive ranks of another column, the driver, from a random start
    "mnar"          loses k consecutive ranks of the column itself, from a random start
    "mar-logistic"  loses more often where the driver is high, or where it is low: random which
    "mnar-logistic" the same with a random mix of all columns that lose values, itself included
    "self-masking"  loses its own high values more often; with a negative slope the low ones
    =============== ============================================================================

    The start is uniform on 0 .. m - k and ties rank as they stand. Numbers and dates rank as such,
    False before True, ordered categories in their order, others by value with text last.
    Categories and text that all read as numbers count as these numbers, unless an ordered category
    has an order of its own, which is neither that of the numbers nor that of the text.

    The smooth three lose a value with log-odds `intercept + slope * z`. Here z is the standardised
    value, or for other categories and text the standardised rank among the values that occur. The
    intercept is such that the ratio is the expected share. The same data loses the same values in
    every spelling (NumPy, pandas, Arrow or polars; text or category).

    Examples
    --------
    >>> import pandas as pd
    >>> from promissing.missingness import mar
    >>> frame = pd.DataFrame({"age": [20, 50, 30, 40], "smoker": [True, False, True, True]})
    >>> mar(frame, ratio=0.5, columns="smoker", drivers="age", rng=0)
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
                + nearest(self.name, NAMES)
            )

    def __call__(
        self,
        X: Any,
        *,
        ratio: float,
        rng: Seed,
        columns: Columns = None,
        n_columns: Count = None,
        drivers: Columns = None,
        slope: float = 2.0,
    ) -> Any:
        """X without the values it loses; the parameters are those of `mask`."""
        how: Any = {"columns": columns, "n_columns": n_columns, "drivers": drivers, "slope": slope}
        return remove(X, self.mask(X, ratio=ratio, rng=rng, **how))

    def mask(
        self,
        X: Any,
        *,
        ratio: float,
        rng: Seed,
        columns: Columns = None,
        n_columns: Count = None,
        drivers: Columns = None,
        slope: float = 2.0,
    ) -> Mask:
        """Where X would lose values: True in (n, p), and never where one is missing already.

        Parameters
        ----------
        X : frame, array or list of rows (n, p)
        ratio : float
            The share of the observed values of each column that is lost, 0 to 1.
        rng : int or numpy Generator
            Required, because what nobody can repeat is no experiment. A seed gives the same mask
            for a frame and for an array, in every process.
        columns : str, int or sequence of them, optional
            The columns that lose values, each in rows of its own; by default random ones.
        n_columns : int or "all", optional
            How many random columns: 1 by default, for "mcar-cells" all. Under MAR "all" spares
            the drivers, or one random column.
        drivers : str, int or sequence of them, optional
            Read under MAR only: what decides which rows are lost, one column for all `columns` or
            one for each; by default random. It may not lose values itself: the loss would depend
            on what is not seen any more, which is MNAR. Where it has gaps already, these rows rank
            last (logistic: count as its mean).
        slope : float, default=2.0
            Read by the smooth three only: what a standard deviation adds to the log-odds.
        """
        check_settings(ratio, slope)
        source, rng = open_source(X), generator(rng)
        plan = choose(source, self.name, columns, n_columns, drivers, rng)
        return draw(source, self.name, plan, ratio, slope, rng)


NAMES = ("mcar", "mcar-cells", "mar", "mnar", "mar-logistic", "mnar-logistic", "self-masking")
MECHANISMS = {name: Mechanism(name) for name in NAMES}
mcar, mcar_cells, mar, mnar, mar_logistic, mnar_logistic, self_masking = MECHANISMS.values()


def mcar_grid(X: Any, *, ratio: float, column_ratio: float, rng: Seed) -> Any:
    """Lose k rows of their own in floor(p * column_ratio) random columns, at least in one."""
    check_share(column_ratio, "column_ratio")
    n_columns = count(open_source(X).table.shape[1], column_ratio) or int(column_ratio > 0)
    return mcar(X, ratio=ratio, rng=rng, n_columns=n_columns)


def drop_groups(
    X: Any,
    groups: Mapping[str, Columns],
    *,
    rng: Seed,
    ratio: float | Mapping[str, float] | None = None,
    n_per_row: int | None = None,
) -> Any:
    """Lose whole groups of columns, such as modalities, in some rows.

    Parameters
    ----------
    X : frame, array or list of rows (n, p)
    groups : mapping of a name to columns
        No column may be in two groups; what is in none is never lost.
    rng : int or numpy Generator
    ratio : float or mapping of a group's name to a float
        The share of the rows with anything of a group in them that lose it, each group its own
        rows. A group that the mapping does not name loses nothing.
    n_per_row : int
        Instead of `ratio`, how many random groups vanish from every row; all if fewer are there.
    """
    if (ratio is None) == (n_per_row is None):
        raise ValueError("Give either `ratio` or `n_per_row`.")
    expect(len(groups) > 0, "groups", "a mapping with at least one group", groups)
    source, rng = open_source(X), generator(rng)
    members = [positions(source, columns, f"groups[{g!r}]") for g, columns in groups.items()]
    distinct(source, [j for columns in members for j in columns], "groups")
    cells = observed(source, range(len(source.names)))
    there = np.column_stack([cells[:, columns].any(axis=1) for columns in members])
    if n_per_row is not None:
        good = is_whole(n_per_row) and 0 <= n_per_row <= len(groups)
        expect(good, "n_per_row", f"a whole number from 0 to {len(groups)}", n_per_row)
        # Random places within each row; what is not there comes last.
        places = np.where(there, rng.random(there.shape), 2).argsort(axis=1).argsort(axis=1)
        gone = places < n_per_row
    else:
        gone = np.zeros_like(there)
        ratios: Any = ratio if isinstance(ratio, Mapping) else dict.fromkeys(groups, ratio)
        for name, share in ratios.items():
            if name not in groups:
                raise ValueError(f"`ratio` names no group: {name!r}." + nearest(name, groups))
            check_share(share, "ratio")
            g = list(groups).index(name)
            gone[:, g] = some(there[:, g], share, rng)
    mask = np.zeros_like(cells)
    for g, columns in enumerate(members):
        mask[:, columns] = gone[:, [g]]
    return remove(X, mask)


def remove(X: Any, mask: ArrayLike) -> Any:
    """X without the values where the boolean mask (n, p) is True.

    A column that loses a value changes its dtype only if it must: integers become float64, booleans
    pandas' "boolean" (float64 in an array), an array of text one of objects. Polars has nulls.
    """
    source, mask = open_source(X), np.asarray(mask)
    if mask.shape != source.table.shape or mask.dtype != bool:
        raise ValueError(
            f"`mask` must be boolean and of the shape of X, {source.table.shape}. "
            f"Received: {mask.dtype} {mask.shape}"
        )
    if isinstance(source.X, np.ndarray):
        return array_without(source.X, mask)
    touched = np.flatnonzero(mask.any(axis=0)).tolist()
    if isinstance(source.X, pd.DataFrame):
        out = source.X.copy()
        for j in touched:
            out.isetitem(j, series_without(out.iloc[:, j], mask[:, j]))
        return out
    columns = [(source.X.to_series(j), mask[:, j]) for j in touched]
    # `clear(n)` is a column of n nulls, and `type(c)` saves importing polars.
    return source.X.with_columns([c.zip_with(type(c)(~m), c.clear(len(c))) for c, m in columns])


def most_informative(
    X: Any, y: ArrayLike, *, task: str | None = None, nominal: Columns = None
) -> list[Key]:
    """Columns of X by mutual information with y, highest first; ties as they stand.

    Parameters
    ----------
    X : frame, array or list of rows (n, p)
        Rows with gaps, there or in y, are left out.
    y : array-like (n,)
    task : {"classification", "regression"}, optional
        By default regression if y is of floats, else classification.
    nominal : str, int or sequence of them, optional
        Columns whose numbers are codes. Text, categories and booleans are nominal anyway.

    Returns
    -------
    list of str or int
        The names of the columns, or positions where there are none.
    """
    source, target = open_source(X), np.asarray(column_or_1d(y))
    columns = [source.table.column(j, slice(None)) for j in range(len(source.names))]
    discrete = np.array([_columns.infer_kind(c) in ("category", "boolean") for c in columns])
    discrete[positions(source, nominal, "nominal")] = True
    values = np.column_stack([numbers_of(source, j) for j in range(len(columns))])
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
    """Take values away while a model is trained.

    `fit_transform` removes values and `transform` does not, so in a pipeline the model learns from
    gaps and predicts from all there is. Columns and drivers are chosen once, in `fit`. Whatever is
    removed starts from the same random state: at the same rank, in the same direction.

    Parameters
    ----------
    mechanism : str, default="mcar"
        The name of a `Mechanism`.
    ratio, columns, n_columns, drivers, slope
        As in `Mechanism.mask`.
    at_transform : bool, default=False
        Whether `transform` removes values too.
    random_state : int, numpy Generator, RandomState or None, default=None
        An int gives in `fit_transform` what it gives as `rng` of the mechanism.

    Attributes
    ----------
    columns_, drivers_ : list of str or int
        The columns that lose values and, under MAR, the driver of each.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Only if the input has names, all strings.

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
        n_columns: Count = None,
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
        """Choose the columns that lose values, and their drivers."""
        name, seed = Mechanism(self.mechanism).name, self.random_state
        check_settings(self.ratio, self.slope)
        source = open_source(X, self)
        validate_data(self, source.table.named, reset=True, skip_check_array=True)
        if seed is None or isinstance(seed, np.random.RandomState):
            seed = check_random_state(seed).randint(2**31 - 1)
        self._rng = generator(seed)
        self._plan = choose(source, name, self.columns, self.n_columns, self.drivers, self._rng)
        self.columns_ = [source.names[j] for j in self._plan.columns]
        self.drivers_ = [source.names[j] for j in self._plan.drivers]
        return self

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """X without the values it loses."""
        return self.fit(X)._lose(open_source(X))

    def transform(self, X: Any) -> Any:
        """A copy of X, with all its values unless `at_transform`."""
        check_is_fitted(self)
        source = open_source(X, self)
        validate_data(self, source.table.named, reset=False, skip_check_array=True)
        if self.at_transform:
            return self._lose(source)
        return remove(source.X, np.zeros(source.table.shape, bool))

    def _lose(self, source: Source) -> Any:
        rng = deepcopy(self._rng)
        mask = draw(source, self.mechanism, self._plan, self.ratio, self.slope, rng)
        return remove(source.X, mask)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags
