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

import warnings
from abc import abstractmethod
from dataclasses import KW_ONLY, dataclass
from math import log
from numbers import Real
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.utils import _safe_indexing, check_random_state
from sklearn.utils.validation import check_is_fitted

from promissing._validation import expect, warn
from promissing.estimators.base import SelectivePrediction, with_blanks
from promissing.estimators.mlp import NanMLPClassifier, NanMLPRegressor
from promissing.uncertainty.conformal import (
    ConformalRegressor,
    class_positions,
    read_numbers,
    read_target,
    require_one_target,
    require_regressor,
)
from promissing.uncertainty.masks import RowReader
from promissing.uncertainty.scale import provides_std
from promissing.uncertainty.storage import LARGEST, empty_row, put, require_own, take

__all__ = ["SelectiveClassifier", "SelectiveRegressor", "choose_threshold"]

Array = NDArray[Any]
Float = NDArray[np.float64]
Rows = NDArray[np.intp]

# Number of sequences. A single one often ends early, by a chance error in a small set.
STARTS = 3
# The first set has this many times the rows that could pass without an error.
FIRST = 2.0
# Each further set is larger by this factor.
GROWTH = 1.05
# Parameters that are stored in a model, if the wrapper has them, and the arrays beside them.
_STORED = ("accuracy", "confidence", "max_width", "max_error", "confidence_level")
_ARRAYS = {"certainty": "float64", "wrong": "float64"}


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
    # Rows of equal certainty stay together, so a set may hold more rows.
    above = np.searchsorted(-ordered, -ordered[sizes - 1], side="right")
    below = np.append(ordered, -np.inf)[above]
    found = binom.cdf(errors[above - 1], above, 1 - accuracy)
    passed = found <= (1 - confidence) / len(starts)
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
    def _prepare(self, X: Any, y: Array) -> Rows:
        """Prepare what the certainty needs, and return the rows that choose the threshold."""

    @abstractmethod
    def _restore(self) -> None:
        """Prepare what the certainty needs, for a model in which it was stored."""

    @abstractmethod
    def _measure(self, X: Any, y: Array) -> Float:
        """Return how far the predictions of the rows are from right (n,): 0 is right."""

    @abstractmethod
    def _tolerance(self) -> float:
        """Return the largest error of a right prediction."""

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
        self._check_settings()
        if self.prefit:
            raise ValueError(
                "With `prefit=True`, the estimator is fitted already. Call `calibrate(X, y)` with "
                "rows that it was not trained on."
            )
        self._forget()
        self.estimator_ = clone(self._chosen()).fit(X, y, **fit_params)
        return self

    def _forget(self) -> None:
        """Delete an earlier calibration."""
        for name in ("threshold_", "_certainties", "_errors"):
            self.__dict__.pop(name, None)

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
        self._check_settings()
        if self.prefit:
            self.estimator_ = self._chosen()
            if hasattr(self.estimator_, "fit"):  # Some models only predict.
                check_is_fitted(self.estimator_)
        elif not hasattr(self, "estimator_"):
            raise NotFittedError(
                f"This {type(self).__name__} is not fitted yet. Call `fit` with training rows "
                "first, or pass a fitted estimator and `prefit=True`."
            )
        self._forget()
        target = read_target(y, X)
        self._reader = RowReader(self.estimator_, X)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # They come again, for all rows.
            n_targets = np.asarray(self.estimator_.predict(_safe_indexing(X, [0]))).size
        require_one_target(self.estimator_, n_targets)
        rows = self._prepare(X, target)
        X, target = _safe_indexing(X, rows), target[rows]
        certainty = self._usable(X, self._certainty(X))
        # Rows that are never decided say nothing about those that are.
        decidable = certainty > -np.inf
        self._certainties = certainty[decidable]
        self._errors = self._measure(X, target)[decidable]
        self._set_threshold()
        return self

    def _check_settings(self) -> None:
        """Check the parameters of the constructor."""
        for name in ("accuracy", "confidence"):
            value = getattr(self, name)
            good = isinstance(value, float | np.floating) and 0 < value < 1
            expect(bool(good), name, "a number between 0 and 1", value)
        expect(isinstance(self.prefit, bool), "prefit", "True or False", self.prefit)

    def _set_threshold(self) -> None:
        """Choose the threshold for the certainties and errors of the calibration rows."""
        self.threshold_ = self._choose()
        if np.isinf(self.threshold_) and self.threshold_ > 0:
            warn(
                f"No threshold reaches an accuracy of {self.accuracy:g} with confidence "
                f"{self.confidence:g} on {len(self._errors)} calibration rows. The model abstains "
                "from every row. Lower `accuracy` or `confidence`, or calibrate with more rows."
            )

    def _choose(self) -> float:
        """Return the threshold."""
        right = self._errors <= self._tolerance()
        return choose_threshold(self._certainties, right, self.accuracy, self.confidence)

    def _arrays(self) -> dict[str, Array]:
        """Return the arrays to store."""
        return {"certainty": self._certainties, "wrong": self._errors}

    def _usable(self, X: Any, certainty: Float) -> Float:
        """Return the certainty; it is -inf if no value of a row is known, or no prediction made."""
        never = np.isnan(self._reader.read(X)).all(axis=1) | np.isnan(certainty)
        return np.where(never, -np.inf, certainty)

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
            if not known[row]:
                reason[row] = "no value is known"
            elif np.isnan(certainty[row]):
                reason[row] = "the estimator makes no prediction"
            else:
                reason[row] = self._reason(certainty[row])
        prediction = with_blanks(self.predict(X), abstained)
        return SelectivePrediction(prediction, known, abstained, reason)

    def _chosen(self) -> Any:
        return self._default() if self.estimator is None else self.estimator

    # ------------------------------------------------------------------------------- storage

    def store(self) -> Any:
        """Store the calibration in the model, so that `model.save` writes it to the file.

        The certainty of every calibration row is stored, and whether its prediction is right (or
        the size of its error), but none of its values. Models of other packages cannot hold it.

        Returns
        -------
        model : estimator
            The model that holds the calibration.

        Examples
        --------
        >>> import numpy as np, pathlib, promissing, tempfile
        >>> from promissing import NanMLPClassifier
        >>> from promissing.uncertainty import SelectiveClassifier
        >>> X = np.random.default_rng(0).normal(size=(600, 3))
        >>> y = X[:, 0] > 0
        >>> model = NanMLPClassifier(n_members=1, max_iter=20, random_state=0)
        >>> model = model.fit(X[:300], y[:300])
        >>> selective = SelectiveClassifier(model, prefit=True).calibrate(X[300:], y[300:])
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "model.safetensors"
        >>> selective.store().save(path)
        >>> again = SelectiveClassifier.from_model(promissing.load(path))
        >>> again.threshold_ == selective.threshold_
        True
        """
        check_is_fitted(self, "threshold_")
        require_own(self.estimator_)
        values = {name: getattr(self, name) for name in _STORED if hasattr(self, name)}
        arrays, most = self._arrays(), LARGEST["selective"] // 16
        # Sorted, which is another order than that of the calibration rows.
        order = np.sort(np.random.default_rng(0).permutation(len(self._errors))[:most])
        order = order[np.argsort(self._certainties[order], kind="stable")]
        arrays = {name: array[order] for name, array in arrays.items()}
        put(self.estimator_, "selective", values, arrays)
        return self.estimator_

    @classmethod
    def from_model(cls, model: Any, **parameters: Any) -> Self:
        """Return the calibrated wrapper of a model in which one was stored.

        Parameters
        ----------
        model : estimator
            A fitted model of this package, as `promissing.load` returns it.
        **parameters
            Parameters of the wrapper to change, such as `accuracy`: the threshold is chosen anew.
            A calibration for `max_width` cannot serve for `max_error`.

        Returns
        -------
        wrapper
            The calibrated wrapper.

        Examples
        --------
        See `store`.
        """
        values, arrays = take(model, "selective", _ARRAYS)
        certainty, wrong = arrays["certainty"], arrays["wrong"]
        if certainty.shape != wrong.shape or certainty.ndim != 1 or np.isnan(certainty).any():
            raise ValueError("The calibration in the model is damaged: its arrays do not fit.")
        given = {name: values[name] for name in _STORED if name in values}
        if parameters.get("max_error") is not None and given.get("max_error") is None:
            raise ValueError(
                "`max_error` needs another calibration than the stored one, which is for "
                "`max_width`. Calibrate a wrapper with `max_error` and store it."
            )
        if parameters.get("max_width") is not None:  # One excludes the other.
            given |= {"max_error": None}
        try:
            made = cls(model, prefit=True, **given | parameters)
        except TypeError as error:
            raise ValueError(
                f"The calibration in the model does not fit a {cls.__name__}: {error!s:.80}"
            ) from None
        made._check_settings()
        made.estimator_, made._reader = model, RowReader(model, None)
        made._certainties, made._errors = certainty, wrong
        made._restore()
        made._set_threshold()
        return made


@dataclass(eq=False, repr=False)
class SelectiveClassifier(ClassifierMixin, _Selective):
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

    def _prepare(self, X: Any, y: Array) -> Rows:
        if not hasattr(self.estimator_, "predict_proba"):
            raise ValueError(
                f"`estimator` must have `predict_proba`, and {type(self.estimator_).__name__} has "
                "not. scikit-learn's CalibratedClassifierCV adds it."
            )
        self._restore()
        class_positions(y, self.classes_)
        return np.arange(len(y))

    def _restore(self) -> None:
        self.classes_ = np.asarray(self.estimator_.classes_)

    def _measure(self, X: Any, y: Array) -> Float:
        # `predict` may use another threshold of the probability than 0.5.
        return np.asarray(np.asarray(self.predict(X)).ravel() != y, np.float64)

    def _tolerance(self) -> float:
        return 0.0

    def _certainty(self, X: Any) -> Float:
        return np.asarray(self.predict_proba(X).max(axis=1))

    def _reason(self, certainty: float) -> str:
        if np.isinf(self.threshold_):
            return "no threshold reaches the accuracy"
        return f"highest class probability {certainty:.3f} is not above {self.threshold_:.3f}"


@dataclass(eq=False, repr=False)
class SelectiveRegressor(RegressorMixin, _Selective):
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

    def _check_settings(self) -> None:
        super()._check_settings()
        given: list[Any] = [v for v in (self.max_width, self.max_error) if v is not None]
        if len(given) != 1 or not (isinstance(given[0], Real) and float(given[0]) > 0):
            raise ValueError(
                "Give one of `max_width` and `max_error`, a positive number. Received: "
                f"max_width={self.max_width!r}, max_error={self.max_error!r}"
            )
        level = self.confidence_level
        good = isinstance(level, float | np.floating) and 0 < level < 1
        expect(bool(good), "confidence_level", "a number between 0 and 1", level)

    def _prepare(self, X: Any, y: Array) -> Rows:
        require_regressor(self.estimator_)
        y, everything = read_numbers(y), np.arange(len(y))
        self._own_std = provides_std(self.estimator_, _safe_indexing(X, [0]))
        if self.max_error is not None and self._own_std:
            return everything
        learning, judging = everything, everything
        if self.max_error is not None:  # Rows that teach the size of errors cannot judge it.
            order = check_random_state(self.random_state).permutation(len(y))
            learning, judging = np.split(order, [len(y) // 2])
        self._conformal = ConformalRegressor(
            self.estimator_,
            prefit=True,
            confidence_level=self.confidence_level,
            random_state=self.random_state,
        ).conformalize(_safe_indexing(X, learning), y[learning])
        return np.asarray(judging)

    def _restore(self) -> None:
        self._own_std = provides_std(self.estimator_, empty_row(self.estimator_))
        if self.max_width is not None:
            level = {"confidence_level": self.confidence_level}
            self._conformal = ConformalRegressor.from_model(self.estimator_, **level)
        elif not self._own_std:
            raise ValueError("The calibration in the model needs a standard deviation.")

    def _arrays(self) -> dict[str, Array]:
        if self.max_width is not None:
            if "conformal" in self.estimator_.calibration_:
                warn("The intervals of this wrapper replace those that were stored in the model.")
            self._conformal.store()
        elif not self._own_std:
            raise ValueError(
                "The size of the errors was learned by trees, which a model file cannot hold. Use "
                "a model with `loss='mean_std'`."
            )
        return super()._arrays()

    def _choose(self) -> float:
        if self.max_width is not None:
            return float(np.nextafter(-self.max_width, -np.inf))
        return super()._choose()

    def _measure(self, X: Any, y: Array) -> Float:
        return np.asarray(np.abs(self.predict(X) - y))

    def _tolerance(self) -> float:
        return float(self.max_error or 0.0)

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
