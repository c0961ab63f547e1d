"""GAIN: gaps filled by a network that learnt to pass its values off as observed ones."""

from __future__ import annotations

import warnings
from numbers import Real
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from promissing._formula import is_count
from promissing.encoding import columns as _columns
from promissing.estimators.progress import EpochBar

__all__ = ["GAINImputer"]

Array = NDArray[Any]

FEW = 20  # Columns with fewer distinct values are rounded.
SPACE = 1e-6  # Added to the range of a column, which may be 0.
NOISE = 0.005  # Training draws it from U(0, 0.01).
BLOCK = 2048  # Rows imputed at a time: they fit the cache.


class GAINImputer(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Impute with a generative adversarial network (GAIN; Yoon et al., ICML 2018).

    A generator fills the gaps. A discriminator, given a hint, guesses which cells were filled, and
    the generator learns to deceive it while it reproduces the observed cells. Both have two ReLU
    layers as wide as the table. Learns from training rows, imputes any rows.

    Columns are scaled to 0 .. 1 by what is observed. An observed value comes back as it is, bit for
    bit, and an imputed one lies between the least and the greatest that were observed. A row is
    imputed in the same way whatever rows are around it and however often: where training draws
    noise from U(0, 0.01) for a gap, `transform` takes its mean.

    Only a column with gaps in training can be learnt. A later gap in another one is filled with the
    column's mean, with a warning; where no column has gaps, nothing is trained. A column of which
    nothing was observed is kept and filled with 0, as `SimpleImputer(keep_empty_features=True)`
    does, so the number of columns never changes.

    Parameters
    ----------
    n_steps : int, default=10_000
        Steps of training; each moves the discriminator, then the generator.
    batch_size : int, default=128
        Rows in a step, drawn anew from all rows each time and never one row twice; all rows where
        there are fewer.
    hint_rate : float, default=0.9
        The share of the observed cells of which the discriminator is told.
    alpha : float, default=100.0
        The weight of the squared error on observed cells.
    learning_rate : float, default=1e-3
        Of Adam, for both networks.
    round : bool, default=True
        Whether columns with fewer than 20 distinct values are imputed with as many decimals as
        those have: codes and counts with whole numbers.
    random_state : int, RandomState or None, default=None
        Seed of the initial weights, the batches, the hints and the noise.
    verbose : bool, default=False
        Whether to show progress.

    Attributes
    ----------
    generator_ : list of 3 arrays (units, inputs + 1), or None
        The layers of the generator, biases in the last column. None if nothing was trained.
    n_steps_ : int
        The steps made: fewer than `n_steps` after Ctrl-C.
    data_min_, data_max_ : arrays (p,)
        The least and the greatest observed value of every column; NaN where there is none.
    n_features_in_ : int
        Columns of the table.
    feature_names_in_ : ndarray of str
        Names of the columns. Only if the input has names, all strings.

    Examples
    --------
    >>> import numpy as np
    >>> from promissing.compare.gain import GAINImputer
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
        """Train the generator on a table of numbers with gaps.

        Parameters
        ----------
        X : frame or array (n, p)
            Numbers; a missing value is NaN, None or pd.NA.
        y : None
            Ignored.

        Returns
        -------
        GAINImputer
            The fitted imputer itself.
        """
        self._check_parameters()
        X = self._read(X, reset=True)
        if hasattr(self, "generator_"):
            del self.generator_  # If training fails, nothing is left that is half old, half new.
        rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31))
        gaps = np.isnan(X)
        self._known = ~gaps.all(axis=0)
        self._learnt = self._known & gaps.any(axis=0)
        self.data_min_ = np.fmin.reduce(X, axis=0).astype(np.float64)
        self.data_max_ = np.fmax.reduce(X, axis=0).astype(np.float64)
        with np.errstate(over="ignore"):
            self._scale = self.data_max_ - self.data_min_ + SPACE
        for j in np.flatnonzero(np.isinf(self._scale)):
            worst = max(self.data_min_[j], self.data_max_[j], key=abs)
            _columns.refuse_infinity(worst, np.float64, self._key(j))
        scaled = (X - self.data_min_) / self._scale
        mean = np.where(gaps, 0.0, scaled).sum(axis=0) / np.maximum((~gaps).sum(axis=0), 1)
        self._mean = np.where(self._known, self.data_min_ + mean * self._scale, 0.0)
        self._decimals = [_decimals(column[~np.isnan(column)]) for column in X.T]
        generator, self.n_steps_ = None, 0
        if self._learnt.any():
            generator, self.n_steps_ = self._train(scaled[:, self._known], rng)
        self.generator_ = generator
        return self

    def transform(self, X: Any) -> Array:
        """X (n, p) with its gaps filled.

        Parameters
        ----------
        X : frame or array (n, p)
            Numbers, with the columns of training.

        Returns
        -------
        ndarray (n, p)
            The table without missing values: float32 if X is, else float64. With `set_output` a
            frame.
        """
        check_is_fitted(self)
        out = np.array(self._read(X, reset=False))
        gaps = np.isnan(out)
        unforeseen = np.flatnonzero(gaps.any(axis=0) & self._known & ~self._learnt)
        if len(unforeseen):
            names = ", ".join(repr(self._key(j)) for j in unforeseen[:5])
            names += ", ..." * (len(unforeseen) > 5)
            warnings.warn(
                f"Without a gap in training and with one now: column {names}. GAIN has not learnt "
                "to impute it and takes the mean.",
                UserWarning,
                stacklevel=3,  # Around this method is one of scikit-learn's.
            )
        rows = np.flatnonzero(gaps.any(axis=1))
        for start in range(0, len(rows), BLOCK):
            block = rows[start : start + BLOCK]
            x = out[block]
            out[block] = np.where(gaps[block], self._impute(x.astype(np.float64)), x)
        return out

    def _impute(self, x: Array) -> Array:
        """What would stand in every cell (n, p) were it a gap."""
        imputed = np.tile(self._mean, (len(x), 1))
        if self.generator_ is not None:
            known = self._known
            # Where the generator knows no gaps it is shown the mean, as if it were observed.
            x = np.where(np.isnan(x) & ~self._learnt, self._mean, x)[:, known]
            low, scale = self.data_min_[known], self._scale[known]
            observed = ~np.isnan(x)
            with np.errstate(over="ignore"):  # By a value far out of all that was seen.
                scaled = np.clip((x - low) / scale, -1e30, 1e30)
            inputs = np.concatenate([np.where(observed, scaled, NOISE), observed], axis=1)
            made = low + expit(_network(self.generator_, inputs.T, xp=np)).T * scale
            made = np.minimum(made, self.data_max_[known])
            imputed[:, known] = np.where(self._learnt[known], made, imputed[:, known])
        if self.round:
            for j, decimals in enumerate(self._decimals):
                if decimals is not None:
                    imputed[:, j] = imputed[:, j].round(decimals) + 0.0  # No negative zero.
        return imputed

    def _train(self, scaled: Array, rng: np.random.Generator) -> tuple[list[Array], int]:
        from promissing.compare import gan as _gan  # Imports JAX, which imputing does not need.

        bar = EpochBar(type(self).__name__, self.n_steps) if self.verbose else None
        try:
            trained = _gan.train(
                _network,
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
        if not all(np.isfinite(layer).all() for layer in trained.generator):
            raise ValueError(
                "Training diverged: the weights are no longer finite. Lower `learning_rate` or "
                "`alpha`."
            )
        return [layer.astype(np.float64) for layer in trained.generator], trained.n_steps

    def _read(self, X: Any, *, reset: bool) -> Array:
        """The table as float64, or float32 if it is; what is not a number is refused by column."""
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
        """What the user calls column j."""
        return str(self.feature_names_in_[j]) if hasattr(self, "feature_names_in_") else int(j)

    def _check_parameters(self) -> None:
        def expect(name: str, good: bool, expected: str) -> None:
            if not good:
                value = getattr(self, name)
                raise ValueError(f"`{name}` must be {expected}. Received: {name}={value!r}")

        for name in ("n_steps", "batch_size"):
            expect(name, is_count(getattr(self, name)), "a positive integer")
        for name, low, high, expected in (
            ("hint_rate", 0.0, 1.0, "between 0 and 1"),
            ("alpha", 0.0, 1e30, "a non-negative number"),  # What float32 can work with.
            ("learning_rate", 1e-30, 1e30, "a positive number"),
        ):
            value: Any = getattr(self, name)
            expect(name, isinstance(value, Real) and low <= float(value) <= high, expected)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "generator_")


def _network(layers: Any, x: Any, *, xp: Any) -> Any:
    """The outputs (p, n), before the sigmoid, for inputs (2p, n): one network for both players."""
    for i, layer in enumerate(layers):
        if i:
            x = x * (x > 0)
        x = xp.matmul(layer, xp.concatenate([x, xp.ones_like(x[:1])]))
    return x


def _decimals(values: Array) -> int | None:
    """The number of decimals of few distinct values; None for many, or if there are no decimals."""
    values = np.unique(values)
    if 0 < len(values) < FEW:
        with np.errstate(over="ignore"):
            for decimals in range(10):
                if (values.round(decimals) == values).all():
                    return decimals
    return None
