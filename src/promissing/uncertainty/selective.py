"""Abstention: predictions only where they are right often enough.

The threshold is chosen on calibration rows by fixed-sequence testing. The rows are ordered by
certainty. Ever larger sets of the most certain rows are tested whether their accuracy may be below
the target. The first set for which this cannot be ruled out ends the sequence. Given a threshold,
the calibration rows above it are a random sample of all rows above it, so that an exact binomial
test applies, and testing in a fixed order needs no correction for many tests. There are three
sequences, which start at small, medium and large sets and share the allowed probability of an
error. The chosen threshold misses the target with a probability of at most ``1 - confidence``.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import KW_ONLY, dataclass
from math import log
from numbers import Real
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError
from sklearn.utils import _safe_indexing, check_random_state
from sklearn.utils.validation import check_is_fitted

from promissing._validation import expect, warn
from promissing.estimators.base import SelectivePrediction
from promissing.estimators.mlp import NanMLPClassifier, NanMLPRegressor
from promissing.uncertainty.conformal import ConformalRegressor, read_target
from promissing.uncertainty.masks import RowReader
from promissing.uncertainty.scale import provides_std

__all__ = ["SelectiveClassifier", "SelectiveRegressor", "choose_threshold"]

Array = NDArray[Any]
Float = NDArray[np.float64]

# Number of sequences. A single one often ends early, by a chance error in a small set.
STARTS = 3
# The first set has this many times the rows that could pass without an error.
FIRST = 2.0
# Each further set is larger by this factor.
GROWTH = 1.05


def choose_threshold(certainty: Float, right: Array, accuracy: float, confidence: float) -> float:
    """Choose the threshold above which predictions are accurate enough.

    Parameters
    ----------
    certainty : ndarray (n,)
        The certainty of calibration rows.
    right : ndarray of bool (n,)
        Whether their predictions are right.
    accuracy : float
        The accuracy to reach among rows with a certainty above the threshold.
    confidence : float
        The probability with which it is reached.

    Returns
    -------
    float
        The threshold. Infinity if no threshold qualifies.

    Examples
    --------
    >>> import numpy as np
    >>> from promissing.uncertainty.selective import choose_threshold
    >>> certainty = np.linspace(0, 1, 1000)
    >>> choose_threshold(certainty, certainty > 0.25, accuracy=0.9, confidence=0.95) < 0.25
    True
    """
    order = np.argsort(-certainty, kind="stable")
    ordered, errors = certainty[order], np.cumsum(~right[order])
    n, least = len(ordered), FIRST * log(1 - confidence) / log(accuracy)
    if least > n:
        return np.inf
    starts = np.unique(np.ceil(np.geomspace(least, n, STARTS)).astype(int))
    steps = np.ceil(least * GROWTH ** np.arange(log(n / least) / log(GROWTH))).astype(int)
    sizes = np.union1d(starts, steps)
    # A set holds the rows above the next one; rows of equal certainty stay together.
    below = np.append(ordered, -np.inf)[sizes]
    above = np.searchsorted(-ordered, -below)
    found = binom.cdf(np.append(errors, 0)[above - 1], above, 1 - accuracy)
    passed = (above > 0) & (found <= (1 - confidence) / len(starts))
    for start in np.searchsorted(sizes, starts)[::-1]:
        if passed[start]:
            failed = np.flatnonzero(~passed[start:])
            return float(below[start + failed[0] - 1] if len(failed) else below[-1])
    return np.inf


@dataclass(eq=False, repr=False)
class _Selective(BaseEstimator):
    """Base class of both wrappers."""

    estimator: Any = None
    _: KW_ONLY
    accuracy: float = 0.95
    confidence: float = 0.95
    prefit: bool = False

    @abstractmethod
    def _default(self) -> Any:
        """Return the default estimator."""

    @abstractmethod
    def _right(self, X: Any, y: Array) -> Array:
        """Return whether the predictions of the rows are right (n,)."""

    @abstractmethod
    def _certainty(self, X: Any) -> Float:
        """Return the certainty of the rows (n,)."""

    @abstractmethod
    def _reason(self, certainty: float) -> str:
        """Return why the model abstains from a row of this certainty."""

    def fit(self, X: Any, y: Any, **fit_params: Any) -> Self:
        """Fit the estimator. Choose the threshold afterwards, with `calibrate` and other rows.

        Parameters
        ----------
        X : frame or array (n, p)
            Training rows.
        y : array (n,)
            Their targets.
        **fit_params : dict
            Further arguments of the estimator's `fit`.

        Returns
        -------
        self : estimator
            The wrapper.
        """
        if self.prefit:
            raise ValueError(
                "With `prefit=True`, the estimator is fitted already. Call `calibrate(X, y)` with "
                "rows that it was not trained on."
            )
        self.estimator_ = clone(self._chosen()).fit(X, y, **fit_params)
        return self

    def calibrate(self, X: Any, y: Any) -> Self:
        """Choose the threshold with rows that the estimator was not trained on.

        Parameters
        ----------
        X : frame or array (n, p)
            Calibration rows. They should lack values as often as the rows to predict.
        y : array (n,)
            Their targets.

        Returns
        -------
        self : estimator
            The calibrated wrapper.

        Warns
        -----
        UserWarning
            If no threshold qualifies, so that the wrapper abstains from every row.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.ensemble import HistGradientBoostingClassifier
        >>> from promissing.uncertainty import SelectiveClassifier
        >>> X = np.random.default_rng(0).normal(size=(900, 2))
        >>> y = X[:, 0] > 0
        >>> model = HistGradientBoostingClassifier(max_iter=20).fit(X[:300], y[:300])
        >>> selective = SelectiveClassifier(model, prefit=True).calibrate(X[300:], y[300:])
        >>> bool(selective.threshold_ < 1)
        True
        """
        for name in ("accuracy", "confidence"):
            value = getattr(self, name)
            good = isinstance(value, float | np.floating) and 0 < value < 1
            expect(bool(good), name, "a number between 0 and 1", value)
        if self.prefit:
            check_is_fitted(self._chosen())
            self.estimator_ = self._chosen()
        elif not hasattr(self, "estimator_"):
            raise NotFittedError(
                f"This {type(self).__name__} is not fitted yet. Call `fit` with training rows "
                "first, or pass a fitted estimator and `prefit=True`."
            )
        target = read_target(y, X)
        self._reader = RowReader(self.estimator_, X)
        self._prepare(X, target)
        self.threshold_ = self._choose(X, target)
        if np.isinf(self.threshold_) and self.threshold_ > 0:
            warn(
                f"No threshold reaches an accuracy of {self.accuracy:g} with confidence "
                f"{self.confidence:g} on {len(target)} calibration rows. The model abstains from "
                "every row. Lower `accuracy` or `confidence`, or calibrate with more rows."
            )
        return self

    def _prepare(self, X: Any, y: Array) -> None:
        """Prepare what the certainty needs."""

    def _choose(self, X: Any, y: Array) -> float:
        """Return the threshold."""
        certainty, right = self._usable(X, self._certainty(X)), self._right(X, y)
        return choose_threshold(certainty, right, self.accuracy, self.confidence)

    def _usable(self, X: Any, certainty: Float) -> Float:
        """Return the certainty; it is -inf if no value of a row is known."""
        empty = np.isnan(self._reader.read(X)).all(axis=1)
        return np.where(empty, -np.inf, certainty)

    def predict(self, X: Any) -> Array:
        """Return the predictions of the estimator, for every row.

        Parameters
        ----------
        X : frame or array (n, p)
            The rows.

        Returns
        -------
        ndarray (n,)
            Predictions.
        """
        check_is_fitted(self, "estimator_")
        return np.asarray(self.estimator_.predict(X))

    def predict_selective(self, X: Any) -> SelectivePrediction:
        """Predict, and abstain from rows that are not certain enough.

        Parameters
        ----------
        X : frame or array (n, p)
            The rows.

        Returns
        -------
        SelectivePrediction
            Predictions, known shares, the rows from which the model abstains, and the reasons.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.ensemble import HistGradientBoostingClassifier
        >>> from promissing.uncertainty import SelectiveClassifier
        >>> X = np.random.default_rng(0).normal(size=(900, 2))
        >>> y = X[:, 0] > 0
        >>> model = HistGradientBoostingClassifier(max_iter=20).fit(X[:300], y[:300])
        >>> selective = SelectiveClassifier(model, prefit=True).calibrate(X[300:], y[300:])
        >>> selective.predict_selective([[2.0, 0.0], [np.nan, np.nan]]).reason.tolist()
        ['', 'no value is known']
        """
        check_is_fitted(self, "threshold_")
        certainty = self._certainty(X)
        known = 1 - np.isnan(self._reader.read(X)).mean(axis=1)
        abstained = ~(self._usable(X, certainty) > self.threshold_)
        reason = np.full(len(known), "", dtype=object)
        for row in np.flatnonzero(abstained):
            reason[row] = self._reason(certainty[row]) if known[row] else "no value is known"
        prediction = self.predict(X)
        if abstained.any():
            numbers = prediction.dtype.kind == "f"
            prediction = prediction.astype(prediction.dtype if numbers else object)
            prediction[abstained] = np.nan if numbers else None
        return SelectivePrediction(prediction, known, abstained, reason)

    def _chosen(self) -> Any:
        return self._default() if self.estimator is None else self.estimator


@dataclass(eq=False, repr=False)
class SelectiveClassifier(_Selective):
    """A classifier that abstains, so that the classes it predicts are right often enough.

    Among rows that it decides, the accuracy is at least `accuracy`, with a probability of
    `confidence` over the calibration rows. This holds for rows that are exchangeable with them, in
    how much is missing, too. The certainty of a row is the highest class probability.

    Parameters
    ----------
    estimator : classifier, default=None
        Any classifier that accepts missing values and has `predict_proba`; by default a
        `NanMLPClassifier`.
    accuracy : float, default=0.95
        The accuracy among rows that are decided.
    confidence : float, default=0.95
        The probability with which it is reached.
    prefit : bool, default=False
        Whether `estimator` is fitted already.

    Attributes
    ----------
    threshold_ : float
        Rows are decided if their highest class probability is above it; infinity if none is.
    estimator_ : classifier
        The fitted classifier.

    See Also
    --------
    promissing.metrics.risk_coverage : The error rate by the share of rows that are decided.

    Examples
    --------
    >>> import numpy as np
    >>> from promissing import NanMLPClassifier
    >>> from promissing.uncertainty import SelectiveClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(1200, 3))
    >>> y = np.where(X[:, 0] + 0.5 * rng.normal(size=1200) > 0, "ill", "well")
    >>> X[rng.random(X.shape) < 0.2] = np.nan
    >>> model = NanMLPClassifier(n_members=2, max_iter=20, random_state=0).fit(X[:600], y[:600])
    >>> selective = SelectiveClassifier(model, accuracy=0.9, prefit=True)
    >>> result = selective.calibrate(X[600:], y[600:]).predict_selective([[3, 0, 0], [0, 0, 0]])
    >>> result.abstained.tolist(), result.prediction.tolist()
    ([False, True], ['ill', None])
    """

    def predict_proba(self, X: Any) -> Float:
        """Return the probabilities of the estimator.

        Parameters
        ----------
        X : frame or array (n, p)
            The rows.

        Returns
        -------
        ndarray (n, K)
            Probabilities.
        """
        check_is_fitted(self, "estimator_")
        return np.asarray(self.estimator_.predict_proba(X))

    def _default(self) -> Any:
        return NanMLPClassifier()

    def _prepare(self, X: Any, y: Array) -> None:
        if not hasattr(self.estimator_, "predict_proba"):
            raise ValueError(
                f"`estimator` must have `predict_proba`, and {type(self.estimator_).__name__} has "
                "not. scikit-learn's CalibratedClassifierCV adds it."
            )
        self.classes_ = np.asarray(self.estimator_.classes_)

    def _right(self, X: Any, y: Array) -> Array:
        return np.asarray(self.classes_[self.predict_proba(X).argmax(axis=1)] == y)

    def _certainty(self, X: Any) -> Float:
        return np.asarray(self.predict_proba(X).max(axis=1))

    def _reason(self, certainty: float) -> str:
        if np.isinf(self.threshold_):
            return "no threshold reaches the accuracy"
        return f"highest class probability {certainty:.3f} is not above {self.threshold_:.3f}"


@dataclass(eq=False, repr=False)
class SelectiveRegressor(_Selective):
    """A regressor that abstains where its error may be too large.

    Give one of `max_width` and `max_error`. With `max_width`, it abstains from rows whose
    prediction interval is wider. With `max_error`, the errors of rows that it decides are at most
    this large in at least the share `accuracy` of them, with a probability of `confidence` over the
    calibration rows.

    Parameters
    ----------
    estimator : regressor, default=None
        Any regressor that accepts missing values; by default a `NanMLPRegressor`.
    accuracy : float, default=0.95
        The share of decided rows whose error is at most `max_error`.
    confidence : float, default=0.95
        The probability with which it is reached.
    prefit : bool, default=False
        Whether `estimator` is fitted already.
    max_width : float, default=None
        The largest width of a prediction interval.
    max_error : float, default=None
        The largest absolute error of a right prediction.
    confidence_level : float, default=0.9
        The confidence level of the prediction intervals, with `max_width`.
    random_state : int, RandomState or None, default=None
        Random seed of the calibration of the intervals.

    Attributes
    ----------
    threshold_ : float
        Rows are decided if the expected size of their error, or the width of their interval, is
        below it, with the sign reversed.
    estimator_ : regressor
        The fitted regressor.

    Examples
    --------
    >>> import numpy as np
    >>> from promissing import NanMLPRegressor
    >>> from promissing.uncertainty import SelectiveRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(1200, 2))
    >>> y = 10 * X[:, 0] + rng.normal(size=1200)
    >>> X[rng.random(X.shape) < 0.2] = np.nan
    >>> model = NanMLPRegressor(n_members=2, max_iter=30, random_state=0).fit(X[:600], y[:600])
    >>> selective = SelectiveRegressor(model, max_width=10.0, prefit=True, random_state=0)
    >>> result = selective.calibrate(X[600:], y[600:]).predict_selective([[1, 0], [np.nan, 0]])
    >>> result.abstained.tolist()
    [False, True]
    """

    _: KW_ONLY
    max_width: float | None = None
    max_error: float | None = None
    confidence_level: float = 0.9
    random_state: Any = None

    def _default(self) -> Any:
        return NanMLPRegressor()

    def _prepare(self, X: Any, y: Array) -> None:
        given: list[Any] = [v for v in (self.max_width, self.max_error) if v is not None]
        if len(given) != 1 or not (isinstance(given[0], Real) and float(given[0]) > 0):
            raise ValueError(
                "Give one of `max_width` and `max_error`, a positive number. Received: "
                f"max_width={self.max_width!r}, max_error={self.max_error!r}"
            )
        self._rows = np.arange(len(y))  # Those that choose the threshold.
        self._own_std = provides_std(self.estimator_, _safe_indexing(X, [0]))
        if self.max_error is not None and self._own_std:
            return
        learning = self._rows
        if self.max_error is not None:  # Rows that teach the size of errors cannot judge it.
            order = check_random_state(self.random_state).permutation(len(y))
            learning, self._rows = np.split(order, [len(y) // 2])
        self._conformal = ConformalRegressor(
            self.estimator_,
            prefit=True,
            confidence_level=self.confidence_level,
            random_state=self.random_state,
        ).conformalize(_safe_indexing(X, learning), y[learning])

    def _choose(self, X: Any, y: Array) -> float:
        if self.max_width is not None:
            return float(np.nextafter(-self.max_width, -np.inf))
        return super()._choose(_safe_indexing(X, self._rows), y[self._rows])

    def _right(self, X: Any, y: Array) -> Array:
        return np.asarray(np.abs(self.predict(X) - y) <= self.max_error)

    def _certainty(self, X: Any) -> Float:
        if self.max_width is not None:
            low, high = np.asarray(self._conformal.predict_interval(X)).T
            return np.asarray(low - high)
        if self._own_std:
            return -np.asarray(self.estimator_.predict(X, return_std=True)[1])
        return np.asarray(-self._conformal.error_size(X))

    def _reason(self, certainty: float) -> str:
        if np.isinf(self.threshold_):
            return "no threshold reaches the accuracy"
        what = "interval width" if self.max_width is not None else "expected error"
        return f"{what} {-certainty:.4g} is above {-self.threshold_:.4g}"
