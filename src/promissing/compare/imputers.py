"""Imputers: GAIN, nearest neighbours, and the share of missing values as a column."""

from __future__ import annotations

import warnings
from numbers import Real
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.neighbors import NearestNeighbors
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from promissing._validation import expect, few, is_whole
from promissing.encoding import columns as _columns
from promissing.estimators.progress import EpochBar

__all__ = ["GAINImputer", "NeighborsImputer", "forward", "share_missing"]

Array = NDArray[Any]

FEW = 20  # Columns with fewer distinct values are rounded.
SPACE = 1e-6  # Added to the range of a column, which may be 0.
NOISE = 0.005  # The mean of the noise U(0, 0.01) that training draws for missing values.
BLOCK = 2048  # Rows that GAIN imputes at a time: they fit the cache.
DISTANCES = 2**23  # Distances between rows held at a time.


class GAINImputer(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Impute with a generative adversarial network (GAIN; Yoon et al., ICML 2018).

    A generator fills the missing values. A discriminator receives a hint and predicts which values
    were filled. The generator is trained to deceive the discriminator and to reproduce the observed
    values. Both networks have two ReLU layers as wide as the table. The imputer is fitted on
    training rows and can fill any rows.

    Columns are scaled to 0 .. 1 by their observed values. Observed values are returned unchanged,
    bit for bit. Imputed values lie between the smallest and the largest observed value of the
    column. Imputation is deterministic and does not depend on the other rows: training draws noise
    from U(0, 0.01) for a missing value, `transform` uses the mean of this noise.

    Only columns with missing values in training can be learned. A later missing value in another
    column is filled with the column's mean, with a warning. If no column has missing values,
    nothing is trained. A column without any observed value is kept and filled with 0, as with
    `SimpleImputer(keep_empty_features=True)`.

    Parameters
    ----------
    n_steps : int, default=10_000
        Number of training steps. Each updates the discriminator, then the generator.
    batch_size : int, default=128
        Rows in a step, drawn without replacement from all rows. All rows if there are fewer.
    hint_rate : float, default=0.9
        Share of the observed values that are revealed to the discriminator.
    alpha : float, default=100.0
        Weight of the squared error on observed values.
    learning_rate : float, default=1e-3
        Learning rate of Adam, for both networks.
    round : bool, default=True
        Whether to round the imputed values of columns with fewer than 20 distinct values to the
        number of decimals of these values. Codes and counts are thus imputed as whole numbers.
    random_state : int, RandomState or None, default=None
        Seed for the initial weights, the batches, the hints and the noise.
    verbose : bool, default=False
        Whether to show a progress bar.

    Attributes
    ----------
    generator_ : list of 3 arrays of shape (units, inputs + 1), or None
        The layers of the generator with the biases in the last column. None if nothing was trained.
    n_steps_ : int
        Number of steps made. Smaller than `n_steps` if training was interrupted by Ctrl-C.
    data_min_, data_max_ : ndarray of shape (p,)
        Smallest and largest observed value of every column. NaN if there is none.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of str
        Names of the columns, if the input has names that are all strings.

    Examples
    --------
    >>> import numpy as np
    >>> from promissing.compare import GAINImputer
    >>> X = np.linspace(0.0, 10.0, 200)[:, None] * [1.0, -1.0, 2.0, -2.0]
    >>> X[np.random.default_rng(0).random(X.shape) < 0.25] = np.nan
    >>> gain = GAINImputer(n_steps=4000, random_state=0).fit(X)
    >>> gain.transform([[3.0, np.nan, 6.0, -6.0]]).round()
    array([[ 3., -3.,  6., -6.]])
    """

    generator_: list[Array] | None

    def __init__(
        self,
        *,
        n_steps: int = 10_000,
        batch_size: int = 128,
        hint_rate: float = 0.9,
        alpha: float = 100.0,
        learning_rate: float = 1e-3,
        round: bool = True,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.n_steps = n_steps
        self.batch_size = batch_size
        self.hint_rate = hint_rate
        self.alpha = alpha
        self.learning_rate = learning_rate
        self.round = round
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None) -> Self:
        """Train the generator on a table of numbers with missing values.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n, p)
            Numbers. A missing value is NaN, None or pd.NA.
        y : None
            Ignored.

        Returns
        -------
        GAINImputer
            The fitted imputer.

        Examples
        --------
        >>> from promissing.compare import GAINImputer
        >>> GAINImputer(n_steps=10, random_state=0).fit([[1.0], [None], [2.0]]).n_steps_
        10
        """
        self._check_parameters()
        X = self._read(X, reset=True)
        if hasattr(self, "generator_"):
            del self.generator_  # If training fails, the imputer must not mix two fits.
        rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31))
        missing = np.isnan(X)
        self._known = ~missing.all(axis=0)
        self._learnt = self._known & missing.any(axis=0)
        self.data_min_ = np.fmin.reduce(X, axis=0).astype(np.float64)
        self.data_max_ = np.fmax.reduce(X, axis=0).astype(np.float64)
        with np.errstate(over="ignore"):
            self._scale = self.data_max_ - self.data_min_ + SPACE
        for j in np.flatnonzero(np.isinf(self._scale)):
            worst = max(self.data_min_[j], self.data_max_[j], key=abs)
            _columns.refuse_infinity(worst, np.float64, self._key(j))
        scaled = (X - self.data_min_) / self._scale
        mean = np.where(missing, 0.0, scaled).sum(axis=0) / np.maximum((~missing).sum(axis=0), 1)
        self._mean = np.where(self._known, self.data_min_ + mean * self._scale, 0.0)
        self._decimals = [_decimals(column[~np.isnan(column)]) for column in X.T]
        generator, self.n_steps_ = None, 0
        if self._learnt.any():
            generator, self.n_steps_ = self._train(scaled[:, self._known], rng)
        self.generator_ = generator
        return self

    def transform(self, X: Any) -> Array:
        """Fill the missing values of a table.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n, p)
            Numbers, with the columns of training.

        Returns
        -------
        ndarray of shape (n, p)
            The table without missing values: float32 if X is float32, else float64. A data frame
            after `set_output(transform="pandas")`.

        Examples
        --------
        >>> from promissing.compare import GAINImputer
        >>> imputer = GAINImputer(n_steps=10, random_state=0).fit([[3.0], [None], [3.0]])
        >>> imputer.transform([[None]])
        array([[3.]])
        """
        check_is_fitted(self)
        out = np.array(self._read(X, reset=False))
        missing = np.isnan(out)
        unforeseen = np.flatnonzero(missing.any(axis=0) & self._known & ~self._learnt)
        if len(unforeseen):
            warnings.warn(
                "These columns have missing values now and had none in training: column "
                f"{few([self._key(j) for j in unforeseen])}. GAIN has not learned to impute them "
                "and uses the mean.",
                UserWarning,
                stacklevel=3,  # scikit-learn wraps this method.
            )
        rows = np.flatnonzero(missing.any(axis=1))
        for start in range(0, len(rows), BLOCK):
            block = rows[start : start + BLOCK]
            x = out[block]
            out[block] = np.where(missing[block], self._impute(x.astype(np.float64)), x)
        return out

    def _impute(self, x: Array) -> Array:
        """Compute the imputed value of every cell (n, p), observed or not."""
        imputed = np.tile(self._mean, (len(x), 1))
        if self.generator_ is not None:
            known = self._known
            # The generator has seen no missing values in these columns: it is given the mean as
            # if it were observed.
            x = np.where(np.isnan(x) & ~self._learnt, self._mean, x)[:, known]
            low, scale = self.data_min_[known], self._scale[known]
            observed = ~np.isnan(x)
            with np.errstate(over="ignore"):  # A value may be far outside the observed range.
                scaled = np.clip((x - low) / scale, -1e30, 1e30)
            inputs = np.concatenate([np.where(observed, scaled, NOISE), observed], axis=1)
            made = low + expit(forward(self.generator_, inputs.T, xp=np)).T * scale
            made = np.minimum(made, self.data_max_[known])
            imputed[:, known] = np.where(self._learnt[known], made, imputed[:, known])
        if self.round:
            for j, decimals in enumerate(self._decimals):
                if decimals is not None:
                    imputed[:, j] = imputed[:, j].round(decimals) + 0.0  # No negative zero.
        return imputed

    def _train(self, scaled: Array, rng: np.random.Generator) -> tuple[list[Array], int]:
        """Train on a table scaled to 0 .. 1, and return the generator and the number of steps."""
        from promissing.compare import gan  # Imports JAX, which imputing does not need.

        bar = EpochBar(type(self).__name__, self.n_steps) if self.verbose else None
        try:
            generator, n_steps = gan.train(
                scaled,
                rng=rng,
                n_steps=int(self.n_steps),
                batch_size=int(self.batch_size),
                hint_rate=self.hint_rate,
                alpha=self.alpha,
                learning_rate=self.learning_rate,
                on_call=bar,
            )
        finally:
            if bar is not None:
                bar.close()
        if not all(np.isfinite(layer).all() for layer in generator):
            raise ValueError(
                "Training diverged: the weights are no longer finite. Lower `learning_rate` or "
                "`alpha`."
            )
        return [layer.astype(np.float64) for layer in generator], n_steps

    def _read(self, X: Any, *, reset: bool) -> Array:
        """Return the table as floats. Errors name the column that is not numeric."""
        table = _columns.open_table(X, self)
        validate_data(self, table.named, reset=reset, skip_check_array=True)
        matrix = table.matrix
        if matrix is None:
            columns = [table.column(j, slice(None)) for j in range(table.shape[1])]
            matrix = np.column_stack(
                [_columns.read_number(column, self._key(j)) for j, column in enumerate(columns)]
            )
        elif matrix.dtype != np.float32:
            matrix = matrix.astype(np.float64, copy=False)
        for i, j in np.argwhere(np.isinf(matrix)):
            _columns.refuse_infinity(matrix[i, j], matrix.dtype, self._key(j))
        return matrix

    def _key(self, j: Any) -> _columns.Key:
        """Return the name of column j, or its number if columns have no names."""
        return str(self.feature_names_in_[j]) if hasattr(self, "feature_names_in_") else int(j)

    def _check_parameters(self) -> None:
        def is_number(value: Any, low: float, high: float) -> bool:
            return isinstance(value, Real) and low <= float(value) <= high

        for name in ("n_steps", "batch_size"):
            value: Any = getattr(self, name)
            expect(is_whole(value) and value >= 1, name, "a positive integer", value)
        # float32 can hold `alpha` and `learning_rate` within these bounds.
        for name, low, high, expected in (
            ("hint_rate", 0, 1, "between 0 and 1"),
            ("alpha", 0, 1e30, "a non-negative number"),
            ("learning_rate", 1e-30, 1e30, "a positive number"),
        ):
            value = getattr(self, name)
            expect(is_number(value, low, high), name, expected, value)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "generator_")


def forward(layers: Any, x: Any, *, xp: Any) -> Any:
    """Compute the outputs (p, n), before the sigmoid, of either network for inputs (2p, n)."""
    for i, layer in enumerate(layers):
        if i:
            x = x * (x > 0)
        x = xp.matmul(layer, xp.concatenate([x, xp.ones_like(x[:1])]))
    return x


def _decimals(values: Array) -> int | None:
    """Return the number of decimals if there are few distinct values, else None."""
    values = np.unique(values)
    if 0 < len(values) < FEW:
        with np.errstate(over="ignore"):
            for decimals in range(10):
                if (values.round(decimals) == values).all():
                    return decimals
    return None


class _Donors:
    """Training rows that missing values are imputed from, and their distances to other rows."""

    def __init__(self, rows: Array) -> None:
        self.known = ~np.isnan(rows)
        self.values = np.where(self.known, rows, 0.0)
        count = self.known.sum(axis=0)
        self.means = self.values.sum(axis=0) / np.maximum(count, 1)
        self.shares = np.maximum(count, 1) / len(rows)

    def distances(self, X: Array, known: Array) -> Array:
        """Compute mean squared differences over shared values; infinite if there are none."""
        here, there = known.astype(np.float64), self.known.astype(np.float64)
        values = np.where(known, X, 0.0)
        left = np.hstack([values**2, here, -2 * values])
        right = np.hstack([there, self.values**2, self.values])
        found: Array = left @ right.T
        np.maximum(found, 0.0, out=found)
        both = here @ there.T
        with np.errstate(divide="ignore", invalid="ignore"):
            found /= both
        found[both == 0] = np.inf
        return found

    def impute(self, X: Array, k: int) -> Array:
        """Return X with every missing value replaced by the mean of its k nearest donors."""
        known = ~np.isnan(X)
        distances = self.distances(X, known)
        incomplete = np.flatnonzero(~known.all(axis=0))
        # Most rows find k donors among this many neighbours.
        sizes = np.minimum(len(self.known), (2 * k / self.shares[incomplete]).astype(int) + k)
        n_near = sizes.max()
        near = np.argpartition(distances, n_near - 1, axis=1)[:, :n_near]
        order = np.argsort(np.take_along_axis(distances, near, axis=1), axis=1)
        near = np.take_along_axis(near, order, axis=1)
        finite = np.isfinite(np.take_along_axis(distances, near, axis=1))
        filled = np.where(known, X, 0.0)
        for j, size in zip(incomplete, sizes, strict=True):
            rows = np.flatnonzero(~known[:, j])
            neighbours = near[rows, :size]
            used = self.known[:, j][neighbours] & finite[rows, :size]
            used &= used.cumsum(axis=1) <= k
            filled[rows, j] = self._mean(neighbours, used, j)
            donors = np.flatnonzero(self.known[:, j])
            few = (used.sum(axis=1) < min(k, len(donors))) & finite[rows, 0]
            if size < len(self.known) and few.any():
                filled[rows[few], j] = self._from_all(distances[rows[few]], donors, j, k)
        return filled

    def _from_all(self, distances: Array, donors: Array, j: Any, k: int) -> Array:
        """Impute one column from all rows with a value, at any distance."""
        distances = distances[:, donors]
        if k < len(donors):
            near = np.argpartition(distances, k - 1, axis=1)[:, :k]
            distances = np.take_along_axis(distances, near, axis=1)
            donors = donors[near]
        return self._mean(donors, np.isfinite(distances), j)

    def _mean(self, rows: Array, used: Array, j: Any) -> Array:
        """Return the mean of column j over the used donors, or of all rows if none is used."""
        count = used.sum(axis=1)
        total = np.where(used, self.values[rows, j], 0.0).sum(axis=1)
        return np.asarray(np.where(count > 0, total / np.maximum(count, 1), self.means[j]))


class NeighborsImputer(TransformerMixin, BaseEstimator):
    """Impute with the mean of the nearest training rows that have a value.

    The result is that of scikit-learn's `KNNImputer`, except for ties. If one column has missing
    values, the neighbours are found with a tree over the other columns. Otherwise the neighbours of
    a row are sorted once, while scikit-learn sorts for every missing value. CPU time with 3,000
    rows: 0.05 s instead of 0.39 s for missing values in one of 10 columns, 0.43 s instead of 0.82 s
    in all 10 columns, and 0.26 s instead of 1.68 s in all of 30 columns.

    Parameters
    ----------
    n_neighbors : int, default=5
        Number of rows to average.
    max_rows : int, optional
        Largest number of training rows if several columns have missing values. They are drawn at
        random.
    random_state : int, RandomState or None, default=None
        Seed for drawing these rows.
    """

    def __init__(
        self, n_neighbors: int = 5, *, max_rows: int | None = None, random_state: Any = None
    ) -> None:
        self.n_neighbors = n_neighbors
        self.max_rows = max_rows
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Store the training rows (n, p)."""
        X = validate_data(self, X, dtype=np.float64, ensure_all_finite="allow-nan")
        incomplete = np.isnan(X).any(axis=0)
        self._complete = np.flatnonzero(~incomplete)
        self._tree = None
        if np.count_nonzero(incomplete) == 1 and len(self._complete):
            (self._column,) = np.flatnonzero(incomplete)
            donors = X[~np.isnan(X[:, self._column])]
            if len(donors):
                self._values = donors[:, self._column]
                k = min(self.n_neighbors, len(donors))
                self._tree = NearestNeighbors(n_neighbors=k).fit(donors[:, self._complete])
        if self.max_rows is not None and len(X) > self.max_rows:
            rng = np.random.default_rng(self.random_state)
            X = X[np.sort(rng.choice(len(X), self.max_rows, replace=False))]
        self._donors = _Donors(X)
        return self

    def transform(self, X: Any) -> Array:
        """Fill the missing values of X (n, p). A column that was never observed becomes 0."""
        check_is_fitted(self)
        X = validate_data(
            self, X, dtype=np.float64, ensure_all_finite="allow-nan", reset=False, copy=True
        )
        missing = np.isnan(X)
        incomplete = np.flatnonzero(missing.any(axis=1))
        if self._tree is not None and not missing[:, self._complete].any():
            if len(incomplete):
                near = self._tree.kneighbors(
                    X[incomplete][:, self._complete], return_distance=False
                )
                X[incomplete, self._column] = self._values[near].mean(axis=1)
            return X  # type: ignore[no-any-return]
        step = max(1, DISTANCES // len(self._donors.known))
        for start in range(0, len(incomplete), step):
            rows = incomplete[start : start + step]
            X[rows] = self._donors.impute(X[rows], self.n_neighbors)
        return X  # type: ignore[no-any-return]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


def share_missing(X: Array) -> Array:
    """Return the share of missing values of every row (n, 1)."""
    return np.isnan(np.asarray(X, dtype=np.float64)).mean(axis=1, keepdims=True)  # type: ignore[no-any-return]
