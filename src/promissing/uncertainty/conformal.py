"""Prediction sets and intervals with coverage guarantees: conformal prediction.

A calibration row gets a score, which is large if its prediction is poor. The set of a new row holds
all targets whose score is not larger than most scores of calibration rows. How much is missing
changes the scores, so that a new row is compared with calibration rows of similar masks:

==========  ========================================================================  ==============
method      calibration rows                                                          guarantee
==========  ========================================================================  ==============
"nearest"   those whose masks, out of several drawn for each row, are nearest         measured only
"split"     all, as they are                                                          marginal
"exact"     those whose mask is contained in that of the new row, masked like it      for every mask
"nested"    all, masked by their own mask and that of the new row together            for every mask
==========  ========================================================================  ==============

"Marginal" is on average over rows that are exchangeable with the calibration rows. The guarantees
for every mask (CP-MDA, Zaffran et al. 2023) assume that masks are independent of the values; that
of "nested" is for 1 - 2 alpha. With cross-fitting, all guarantees are for 1 - 2 alpha. If the size
of errors is learned from the calibration rows (regressors without a standard deviation), all
guarantees hold only approximately, because new rows get the mean of several cross-fitted models.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from itertools import groupby, repeat
from math import ceil
from operator import itemgetter
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import KFold, StratifiedKFold, check_cv
from sklearn.utils import _safe_indexing, check_consistent_length, check_random_state
from sklearn.utils.validation import (
    _check_method_params,
    _num_samples,
    check_is_fitted,
    column_or_1d,
)

from promissing._validation import expect, is_whole, warn
from promissing.estimators.mlp import NanMLPClassifier, NanMLPRegressor
from promissing.inspection.masked import MaskedPredictions
from promissing.uncertainty.masks import (
    MaskBank,
    RowReader,
    draw_masks,
    feature_weights,
    read_masks,
    row_uniforms,
)
from promissing.uncertainty.results import CoverageByMissing, PredictionIntervals, PredictionSets
from promissing.uncertainty.scale import ErrorSize, provides_std
from promissing.uncertainty.storage import LARGEST, empty_row, put, require_own, take

__all__ = ["ConformalClassifier", "ConformalRegressor"]

Array = NDArray[Any]
Float = NDArray[np.float64]
Mask = NDArray[np.bool_]
Rows = NDArray[np.intp]

METHODS = ("nearest", "split", "exact", "nested")
# Calibration rows that a new row is compared with by "nearest": enough for a stable quantile, and
# few enough to have similar masks.
NEIGHBORS = 250
# With fewer calibration rows that qualify, "exact" falls back to "nearest".
LEAST_QUALIFIED = 100
# Parameters that are stored in a model, if the wrapper has them, and the arrays beside them.
_STORED = (
    *("confidence_level", "method", "n_masks", "n_neighbors"),
    *("per_class", "allow_empty", "scaled"),
)
_ARRAYS = {"masks": "uint8", "scores": "float64", "labels": "int32", "weights": "float64"}
# Parameters that may differ from those with which a stored calibration was made.
_CHANGEABLE = {"confidence_level", "method", "n_neighbors", "per_class", "allow_empty"}
_CELLS = 2**22  # Scores in memory at a time, for intervals of several models: 32 MB.
_SMALLEST = 1e-6  # Smallest size of an error, in units of the mean absolute error.


@dataclass(eq=False, repr=False)
class _Conformal(BaseEstimator):
    """Base class of both wrappers: fitting, calibration, and the choice of calibration rows."""

    estimator: Any = None
    _: KW_ONLY
    confidence_level: float | Sequence[float] = 0.9
    method: str = "nearest"
    cv: Any = None
    prefit: bool = False
    n_masks: int = 16
    n_neighbors: int = NEIGHBORS
    random_state: Any = None

    # ---------------------------------------------------------------- what subclasses define

    @abstractmethod
    def _default(self) -> Any:
        """Return the default estimator."""

    @abstractmethod
    def _check_target(self, y: Array) -> Array:
        """Return the targets as numbers: positions of classes, or y itself."""

    @abstractmethod
    def _most_rows(self) -> int:
        """Return the number of calibration rows of the smallest group to calibrate by itself."""

    @abstractmethod
    def _score(self, outputs: Float, codes: Float, target: Array) -> Float:
        """Return the scores (n, m) of calibration rows under masks, given outputs (n, m, K)."""

    @abstractmethod
    def _compared(self, outputs: Float, codes: Float) -> Float:
        """Return what is compared with scores, given outputs (n, K) and values (n, p) of rows."""

    @abstractmethod
    def _hits(self, X: Any, target: Array, level: float) -> tuple[Mask, Float]:
        """Return whether the set of every row holds its target (n,), and the sizes (n,)."""

    @abstractmethod
    def _state(self) -> dict[str, Any]:
        """Return values to store that only this kind of wrapper has."""

    @abstractmethod
    def _restore(self, values: dict[str, Any]) -> None:
        """Set what `_state` returned; refuse values that do not fit."""

    @abstractmethod
    def _score_again(self, outputs: Float, codes: Float, rows: Rows) -> Float:
        """Return the scores (r,) of calibration rows (r,) under other masks than at calibration."""

    # --------------------------------------------------------------------------- calibration

    def fit(self, X: Any, y: Any, **fit_params: Any) -> Self:
        """Fit the estimator. Calibrate it afterwards, with `conformalize` and other rows.

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
        if self.cv is not None:
            raise ValueError("With `cv`, call `fit_conformalize(X, y)`, which fits and calibrates.")
        if self.prefit:
            raise ValueError(
                "With `prefit=True`, the estimator is fitted already. Call `conformalize(X, y)` "
                "with rows that it was not trained on."
            )
        self._forget()
        self.estimators_ = [clone(self._chosen()).fit(X, y, **fit_params)]
        return self

    def _forget(self) -> None:
        """Delete an earlier calibration."""
        for name in ("bank_", "_calibration", "_error_size"):
            self.__dict__.pop(name, None)

    def conformalize(self, X: Any, y: Any, *, masks: Any = None) -> Self:
        """Calibrate the fitted estimator with rows that it was not trained on.

        Every row is predicted as it is and under further masks, `n_masks` times in all.

        Parameters
        ----------
        X : frame or array (n, p)
            Calibration rows.
        y : array (n,)
            Their targets.
        masks : array of bool (P, p) or mapping of str to columns, optional
            Missing values to expect: masks that are True where a value is missing, or columns that
            go missing together. By default masks are drawn at random.

        Returns
        -------
        self : estimator
            The calibrated wrapper.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.ensemble import HistGradientBoostingRegressor
        >>> from promissing.uncertainty import ConformalRegressor
        >>> X = np.random.default_rng(0).normal(size=(600, 3))
        >>> y = X.sum(axis=1)
        >>> model = HistGradientBoostingRegressor(max_iter=20).fit(X[:300], y[:300])
        >>> conformal = ConformalRegressor(model, prefit=True, random_state=0)
        >>> conformal.conformalize(X[300:], y[300:]).bank_
        MaskBank(300 rows, 16 masks each)
        """
        self._check_settings()
        if self.cv is not None:
            raise ValueError(
                "With `cv`, `fit_conformalize(X, y)` replaces `fit` and `conformalize`."
            )
        if self.prefit:
            self.estimators_ = [self._chosen()]
            if hasattr(self.estimators_[0], "fit"):  # Some models only predict.
                check_is_fitted(self.estimators_[0])
        elif not hasattr(self, "estimators_"):
            raise NotFittedError(
                f"This {type(self).__name__} is not fitted yet. Call `fit` with training rows "
                "first, or pass a fitted estimator and `prefit=True`."
            )
        self._calibrate(X, y, [np.arange(_num_samples(X))], masks)
        return self

    def fit_conformalize(self, X: Any, y: Any, *, masks: Any = None, **fit_params: Any) -> Self:
        """Fit and calibrate by cross-fitting: each row is scored by a model not trained on it.

        Parameters
        ----------
        X : frame or array (n, p)
            All rows.
        y : array (n,)
            Their targets.
        masks : array of bool (P, p) or mapping of str to columns, optional
            Missing values to expect, as in `conformalize`.
        **fit_params : dict
            Further arguments of the estimator's `fit`, the same for every fold.

        Returns
        -------
        self : estimator
            The calibrated wrapper.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.ensemble import HistGradientBoostingRegressor
        >>> from promissing.uncertainty import ConformalRegressor
        >>> X = np.random.default_rng(0).normal(size=(300, 3))
        >>> conformal = ConformalRegressor(
        ...     HistGradientBoostingRegressor(max_iter=20), cv=3, random_state=0
        ... )
        >>> conformal.fit_conformalize(X, X.sum(axis=1)).predict_interval(X[:4]).shape
        (4, 2)
        """
        self._check_settings()
        if self.cv is None:
            raise ValueError(
                "`fit_conformalize` needs folds: pass `cv=5`. Without `cv`, call `fit` and "
                "`conformalize` with different rows."
            )
        labels = read_target(y, X)
        self._forget()
        self.estimators_, folds = [], []
        for train, test in self._splitter(labels).split(np.zeros(len(labels)), labels):
            part = _safe_indexing(X, train), _safe_indexing(y, train)
            own_params = _check_method_params(X, fit_params, indices=train)
            self.estimators_.append(clone(self._chosen()).fit(*part, **own_params))
            folds.append(np.sort(test))
        if not np.array_equal(np.sort(np.concatenate(folds)), np.arange(len(labels))):
            raise ValueError("`cv` must put every row into exactly one test fold, as KFold does.")
        self._calibrate(X, y, folds, masks)
        return self

    def _calibrate(self, X: Any, y: Any, folds: list[Rows], masks: Any) -> None:
        """Predict the calibration rows under many masks, and keep their scores."""
        self._forget()
        target = self._check_target(read_target(y, X))
        self._require_rows(target)
        patterns = read_masks(masks, X)
        self._seed = int(check_random_state(self.random_state).randint(2**31))
        own = self.estimators_[0] if len(self.estimators_) == 1 else None
        self._reader = RowReader(own, X)
        codes = self._reader.read(X)
        (n, p), m = codes.shape, int(self.n_masks)
        rng = np.random.default_rng(self._seed)
        drawn = draw_masks(n, p, m, patterns=patterns, rng=rng)
        calibration = []
        for model, rows in zip(self.estimators_, folds, strict=True):
            part, with_std = _safe_indexing(X, rows), self._with_std(model, X)
            try:
                predictions = MaskedPredictions(model, part, with_std=with_std)
            except ValueError as error:
                raise ValueError(f"`estimator`: {error}") from error
            if not self._classifies:
                require_one_target(model, predictions.outputs.shape[1] // (1 + with_std))
            calibration.append((predictions, rows))
        which = np.empty(n, np.intp)
        outputs = np.empty((n, m, calibration[0][0].outputs.shape[1]))
        for k, (predictions, rows) in enumerate(calibration):
            which[rows] = k
            outputs[rows, 0] = predictions.outputs  # The first mask is empty.
            outputs[rows, 1:] = predictions.under(drawn[rows, 1:])
        missing = np.isnan(codes)[:, None]
        changes = np.abs(outputs - outputs[:, :1]).mean(axis=2).ravel()
        weights = feature_weights((drawn & ~missing).reshape(n * m, p), changes)
        cells = np.where(drawn, np.nan, codes[:, None])
        self._codes = codes
        scores = self._score(outputs, cells, target)
        labels = target if self._classifies else np.zeros(n)
        self._calibration = calibration
        self.bank_ = MaskBank(drawn | missing, scores, which, labels.astype(np.intp), weights)

    def _chosen(self) -> Any:
        return self._default() if self.estimator is None else self.estimator

    @property
    def _classifies(self) -> bool:
        return isinstance(self, ConformalClassifier)

    def _with_std(self, model: Any, X: Any) -> bool:
        return not self._classifies and provides_std(model, _safe_indexing(X, np.arange(1)))

    def _splitter(self, y: Array) -> Any:
        if not is_whole(self.cv):
            return check_cv(self.cv, y, classifier=self._classifies)
        kind = StratifiedKFold if self._classifies else KFold
        seed = int(check_random_state(self.random_state).randint(2**31))
        return kind(int(self.cv), shuffle=True, random_state=seed)

    def _check_settings(self) -> None:
        """Check the parameters of the constructor."""
        self._levels(None)
        expect(self.method in METHODS, "method", f"one of {METHODS}", self.method)
        for name in ("n_masks", "n_neighbors"):
            value = getattr(self, name)
            expect(is_whole(value) and value >= 1, name, "a whole number >= 1", value)
        expect(isinstance(self.prefit, bool), "prefit", "True or False", self.prefit)
        folds = not is_whole(self.cv) or self.cv >= 2
        expect(folds, "cv", "a whole number >= 2, or a splitter", self.cv)
        if self.prefit and self.cv is not None:
            raise ValueError(
                "`prefit=True` and `cv` exclude each other: cross-fitting trains its own models."
            )

    def _levels(self, given: Any) -> tuple[tuple[float, ...], bool]:
        """Return the confidence levels, and whether it is a single number."""
        chosen = self.confidence_level if given is None else given
        levels = np.asarray(chosen, dtype=object).ravel().tolist()
        good = all(isinstance(v, float | np.floating) and 0 < v < 1 for v in levels)
        expect(
            bool(levels) and good,
            "confidence_level",
            "a number between 0 and 1, or several",
            chosen,
        )
        return tuple(float(v) for v in levels), np.ndim(chosen) == 0

    def _require_rows(self, target: Array) -> None:
        """Refuse fewer calibration rows than the confidence level needs."""
        level = max(self._levels(None)[0])
        if len(target) < _fewest(level):
            raise ValueError(
                f"`confidence_level={level:g}` needs at least {_fewest(level)} calibration rows. "
                f"Received: {len(target)} rows. Calibrate with more rows, or lower the level."
            )

    def _levels_for(self, given: Any) -> tuple[tuple[float, ...], bool]:
        """Return the levels to predict with; refuse those that need more calibration rows."""
        if not hasattr(self, "bank_"):
            raise NotFittedError(
                f"This {type(self).__name__} is not calibrated yet. Call `conformalize` first."
            )
        levels, single = self._levels(given)
        if self._most_rows() < _fewest(max(levels)):
            raise ValueError(
                f"`confidence_level={max(levels):g}` needs at least {_fewest(max(levels))} "
                f"calibration rows, and there are {self._most_rows()}."
            )
        if self.method in ("exact", "nested") and not self._calibration:
            raise ValueError(
                f"`method={self.method!r}` needs the calibration rows, which are not stored."
            )
        return levels, single

    # ---------------------------------------------------------------------------- prediction

    def _predict_all(self, X: Any) -> Float:
        """Return the outputs (M, n, K) of all models."""
        found = []
        for model in self.estimators_:
            if self._classifies:
                found.append(np.asarray(model.predict_proba(X)))
            elif self._with_std(model, X):
                found.append(np.column_stack(model.predict(X, return_std=True)))
            else:
                found.append(np.asarray(model.predict(X))[:, None])
        return np.stack(found)

    def _comparisons(
        self, X: Any, codes: Float, outputs: Float, among: Rows, level: float
    ) -> Iterator[tuple[int, Rows, Float, Float]]:
        """Yield what to compare: rows of X with the scores of calibration rows.

        Rows with the same mask come together, in several parts: one for every model and, with
        "nested", for every union of masks. A part is the number of the mask, the positions of the
        rows (r,), what `_compared` returns for them, and the scores (c,). Only calibration rows in
        `among` are compared with, and at least as many as the level needs.
        """
        masks, which = _distinct(np.isnan(codes))
        ends = np.cumsum(np.bincount(which))[:-1]
        positions = np.split(np.argsort(which, kind="stable"), ends)
        if self.method == "nested":
            yield from self._nested(X, codes, masks, positions, among)
            return
        references = {"nearest": self._nearest, "split": self._split, "exact": self._exact}
        compared = [self._compared(one, codes) for one in outputs]
        for u, (rows, scores) in enumerate(references[self.method](masks, among, level)):
            here, folds = positions[u], self.bank_.folds[rows]
            for k in np.unique(folds):
                yield u, here, compared[k][here], scores[folds == k]

    def _split(self, masks: Mask, among: Rows, level: float) -> Iterator[tuple[Rows, Float]]:
        """Yield the calibration rows as they are, for every mask (u, p), and their scores."""
        return repeat((among, self.bank_.scores[among, 0]), len(masks))

    def _nearest(self, masks: Mask, among: Rows, level: float) -> Iterator[tuple[Rows, Float]]:
        """Yield the calibration rows with the nearest masks, and their scores."""
        wanted = max(int(self.n_neighbors), _fewest(level))
        return zip(*self.bank_.nearest(masks, wanted, among), strict=True)

    def _exact(self, masks: Mask, among: Rows, level: float) -> Iterator[tuple[Rows, Float]]:
        """Yield the calibration rows whose mask is contained, with the scores under the mask."""
        own = self.bank_.masks[among, 0]
        within = [among[~(own & ~mask).any(axis=1)] for mask in masks]
        least = max(LEAST_QUALIFIED, _fewest(level))
        enough = [len(rows) >= least for rows in within]
        if not all(enough):
            warn(
                f"For {len(masks) - sum(enough)} of {len(masks)} masks, fewer than "
                f"{least} calibration rows have a mask that is contained in it. The "
                "nearest masks were used instead."
            )
        found = self._scores_under(
            [
                pair
                for pair, good in zip(zip(within, masks, strict=True), enough, strict=True)
                if good
            ]
        )
        others = self._nearest(masks, among, level)
        for rows, good, nearest in zip(within, enough, others, strict=True):
            yield (rows, next(found)) if good else nearest

    def _nested(
        self, X: Any, codes: Float, masks: Mask, positions: list[Rows], among: Rows
    ) -> Iterator[tuple[int, Rows, Float, Float]]:
        """Yield comparisons by the union of the masks of a calibration row and of new rows."""
        own, folds = self.bank_.masks[among, 0], self.bank_.folds[among]

        def requests() -> Iterator[tuple[Rows, Mask]]:
            for here, mask in zip(positions, masks, strict=True):
                unions = _distinct(own | mask)[0]
                yield np.repeat(here, len(unions)), np.tile(unions, (len(here), 1))

        again = [
            MaskedPredictions(model, X, with_std=self._with_std(model, X)).without(requests())
            for model in self.estimators_
        ]
        scores = self._scores_under([(among, mask) for mask in masks])
        for u, (found, *predicted) in enumerate(zip(scores, *again, strict=True)):
            here, (unions, which) = positions[u], _distinct(own | masks[u])
            for k, (rows, lost, outputs) in enumerate(predicted):
                compared = self._compared(outputs, np.where(lost, np.nan, codes[rows]))
                for v in np.unique(which[folds == k]):
                    mine = (folds == k) & (which == v)
                    yield u, here, compared[v :: len(unions)], found[mine]

    def _scores_under(self, requests: list[tuple[Rows, Mask]]) -> Iterator[Float]:
        """Yield the scores (r,) of calibration rows (r,) that also lose the values of a mask."""
        folds, masks = self.bank_.folds, self.bank_.masks[:, 0]

        def of_fold(k: int, own: Rows) -> Iterator[tuple[Rows, Mask]]:
            for rows, mask in requests:
                mine = rows[folds[rows] == k]
                yield np.searchsorted(own, mine), masks[mine] | mask

        streams = [
            predictions.without(of_fold(k, own))
            for k, (predictions, own) in enumerate(self._calibration)
        ]
        for (rows, mask), *parts in zip(requests, *streams, strict=True):
            outputs = np.empty((len(rows), parts[0][2].shape[1]))
            for k, (_, _, part) in enumerate(parts):
                outputs[folds[rows] == k] = part
            codes = np.where(masks[rows] | mask, np.nan, self._codes[rows])
            yield self._score_again(outputs, codes, rows)

    def coverage_by_missing(
        self, X: Any, y: Any, *, confidence_level: float | None = None
    ) -> CoverageByMissing:
        """Measure the coverage on labelled rows, by the share of missing values.

        Parameters
        ----------
        X : frame or array (n, p)
            Rows that served neither for training nor for calibration.
        y : array (n,)
            Their targets.
        confidence_level : float, default=None
            Another level than that of the constructor.

        Returns
        -------
        CoverageByMissing
            A frame with one line per group of rows, which `plot` draws.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.ensemble import HistGradientBoostingClassifier
        >>> from promissing.uncertainty import ConformalClassifier
        >>> X = np.random.default_rng(0).normal(size=(900, 2))
        >>> y = X[:, 0] > 0
        >>> model = HistGradientBoostingClassifier(max_iter=20).fit(X[:300], y[:300])
        >>> conformal = ConformalClassifier(model, prefit=True, random_state=0)
        >>> conformal = conformal.conformalize(X[300:600], y[300:600])
        >>> conformal.coverage_by_missing(X[600:], y[600:])["n"].tolist()
        [300]
        """
        levels, _ = self._levels_for(confidence_level)
        if len(levels) > 1:
            raise ValueError(
                "`coverage_by_missing` measures one level. Pass `confidence_level`, one of "
                f"{', '.join(f'{level:g}' for level in levels)}."
            )
        (level,) = levels
        target = self._check_target(read_target(y, X))
        covered, size = self._hits(X, target, level)
        share = np.isnan(self._reader.read(X)).mean(axis=1)
        return CoverageByMissing.of(covered, size, share, level)

    # ------------------------------------------------------------------------------- storage

    def store(self) -> Any:
        """Store the calibration in the model, so that `model.save` writes it to the file.

        Masks and scores of the calibration rows are stored, in random order, but none of their
        values; with `per_class`, also their classes. Models of other packages cannot hold it. If it
        would take more than 16 MB, some calibration rows are left out.

        Returns
        -------
        model : estimator
            The model that holds the calibration.

        Examples
        --------
        >>> import numpy as np, pathlib, promissing, tempfile
        >>> from promissing import NanMLPRegressor
        >>> from promissing.uncertainty import ConformalRegressor
        >>> X = np.random.default_rng(0).normal(size=(300, 3))
        >>> model = NanMLPRegressor(n_members=1, max_iter=9, random_state=0)
        >>> conformal = ConformalRegressor(model.fit(X[:200], X[:200, 0]), prefit=True)
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "model.safetensors"
        >>> conformal.conformalize(X[200:], X[200:, 0]).store().save(path)
        >>> again = ConformalRegressor.from_model(promissing.load(path))
        >>> bool((again.predict_interval(X) == conformal.predict_interval(X)).all())
        True
        """
        self._levels_for(None)
        if self.cv is not None:
            raise ValueError(
                "Cross-fitting trains several models, and a file holds one. Calibrate one model: "
                "call `fit` and `conformalize` without `cv`."
            )
        if self.method in ("exact", "nested"):
            raise ValueError(
                f"`method={self.method!r}` predicts the calibration rows again, and they are not "
                "stored. Use `method='nearest'`."
            )
        model = self.estimators_[0]
        require_own(model)
        bank, values = self.bank_, self._state()
        n, m, p = bank.masks.shape
        limit, with_labels = LARGEST["conformal"], bool(getattr(self, "per_class", False))
        most = limit // (m * (-(-p // 8) + bank.scores.itemsize) + 4 * with_labels)
        if n > most:
            warn(
                f"The calibration of {n:,} rows would take more than {limit // 10**6} MB in the "
                f"file. {most:,} of them, drawn at random, are stored."
            )
        # In another order than that of the calibration rows.
        bank = bank.subset(np.random.default_rng(self._seed).permutation(n)[:most])
        values |= {name: getattr(self, name) for name in _STORED if hasattr(self, name)}
        values["confidence_level"] = np.asarray(self.confidence_level).tolist()
        arrays: dict[str, Array] = {
            "masks": np.packbits(bank.masks, axis=2),
            "scores": bank.scores,
            "labels": (bank.labels if with_labels else bank.labels[:0]).astype(np.int32),
            "weights": bank.weights,
        }
        put(model, "conformal", values | {"seed": self._seed}, arrays)
        return model

    @classmethod
    def from_model(cls, model: Any, **parameters: Any) -> Self:
        """Return the calibrated wrapper of a model in which one was stored.

        Parameters
        ----------
        model : estimator
            A fitted model of this package, as `promissing.load` returns it.
        **parameters
            Parameters of the wrapper to change: `confidence_level`, `n_neighbors`, `method`
            ("nearest" or "split") and, for classifiers, `allow_empty`.

        Returns
        -------
        wrapper
            The calibrated wrapper.

        Examples
        --------
        See `store`.
        """
        values, arrays = take(model, "conformal", _ARRAYS)
        for name in parameters:
            if name not in _CHANGEABLE:
                raise ValueError(
                    f"`{name}` cannot be changed: the stored calibration was made with another "
                    "value. Calibrate and store again."
                )
        if parameters.get("per_class") and not values.get("per_class"):
            raise ValueError(
                "`per_class=True` needs the classes of the calibration rows, which are stored only "
                "if the calibration was made with it."
            )
        try:
            given = {name: values[name] for name in _STORED if name in values}
            made = cls(model, prefit=True, **given | parameters)
            made._seed, made._calibration = int(values["seed"]), []
            made.estimators_, made._reader = [model], RowReader(model, None)
            with_labels = bool(values.get("per_class"))
            made.bank_ = _read_bank(arrays, model.n_features_in_, with_labels)
            made._restore(values)
        except (KeyError, TypeError, IndexError) as error:
            raise ValueError(
                f"The calibration in the model does not fit a {cls.__name__}: {error!s:.80}"
            ) from None
        made._check_settings()
        if made.method in ("exact", "nested"):
            raise ValueError(
                f"`method={made.method!r}` needs the calibration rows, which are not stored."
            )
        return made

    def _index(self, X: Any) -> Any:
        return X.index if isinstance(X, pd.DataFrame) else np.arange(_num_samples(X))


def _read_bank(arrays: dict[str, Array], n_features: int, with_labels: bool) -> MaskBank:
    """Return the stored calibration rows; refuse arrays that do not fit together."""
    scores, labels, weights = arrays["scores"], arrays["labels"], arrays["weights"]
    n, m = scores.shape if scores.ndim == 2 else (0, 0)
    wanted = [(n, m, -(-n_features // 8)), (n * with_labels,), (n_features,)]
    shapes = [arrays["masks"].shape, labels.shape, weights.shape]
    finite = np.isfinite(scores).all() and np.isfinite(weights).all()
    if not (n and m and shapes == wanted and finite and (labels >= 0).all()):
        raise ValueError("The calibration in the model is damaged: its arrays do not fit.")
    masks = np.unpackbits(arrays["masks"], axis=2, count=n_features).astype(bool)
    known = labels.astype(np.intp) if with_labels else np.zeros(n, np.intp)
    return MaskBank(masks, scores, np.zeros(n, np.intp), known, weights)


def read_target(y: Any, X: Any) -> Array:
    """Return y as a plain array with one known value for every row of X, or refuse it.

    Parameters
    ----------
    y : array (n,)
        Targets.
    X : frame or array (n, p)
        The rows.

    Returns
    -------
    ndarray (n,)
        The targets.
    """
    target = column_or_1d(np.asarray(y), warn=False)
    check_consistent_length(X, target)
    lost = pd.isna(target)
    if lost.any():
        raise ValueError(
            f"`y` has {lost.sum()} missing values, the first in row {int(np.argmax(lost))}. Leave "
            "out rows whose target is unknown."
        )
    return np.asarray(target)


def class_positions(y: Array, classes: Array) -> Rows:
    """Return the position of the class of every row, or refuse a class that the model lacks.

    Parameters
    ----------
    y : ndarray (n,)
        Targets.
    classes : ndarray (K,)
        The classes of the model.

    Returns
    -------
    ndarray of int (n,)
        Positions.
    """
    position = pd.Index(classes).get_indexer(pd.Index(y))
    if (position < 0).any():
        raise ValueError(
            f"`y` holds {y[position < 0].tolist()[0]!r}, which is not one of the classes "
            f"{classes.tolist()} of the estimator."
        )
    return np.asarray(position)


def read_numbers(y: Array) -> Float:
    """Return targets as finite numbers, or refuse them.

    Parameters
    ----------
    y : ndarray (n,)
        Targets.

    Returns
    -------
    ndarray of float (n,)
        The same.
    """
    if y.dtype.kind not in "biuf":
        raise ValueError(f"`y` must hold numbers. Received: {y.dtype}")
    bad = ~np.isfinite(y.astype(np.float64))
    if bad.any():
        raise ValueError(f"`y` must be finite. Row {int(bad.argmax())} holds {y[bad][0]}.")
    return y.astype(np.float64)


def require_one_target(model: Any, n_targets: int) -> None:
    """Refuse a model that predicts several targets.

    Parameters
    ----------
    model : estimator
        The fitted model.
    n_targets : int
        How many it predicts.
    """
    if n_targets != 1:
        raise ValueError(
            f"`estimator` must predict one target, and {type(model).__name__} predicts "
            f"{n_targets}. Wrap one model for each target."
        )


def require_regressor(model: Any) -> None:
    """Refuse a classifier.

    Parameters
    ----------
    model : estimator
        The fitted model.
    """
    classes = getattr(model, "classes_", None)
    if classes is not None and len(classes) > 0:  # CatBoost's regressors have an empty array.
        raise ValueError(f"`estimator` must be a regressor. Received: {type(model).__name__}")


def _distinct(masks: Mask) -> tuple[Mask, NDArray[np.intp]]:
    """Return the distinct masks (u, p), and the position of the mask of every row."""
    _, first, which = np.unique(
        np.packbits(masks, axis=1), axis=0, return_index=True, return_inverse=True
    )
    return masks[first], which.ravel()


def _fewest(level: float) -> int:
    """Return the fewest calibration rows with which a set of this level can be finite."""
    return ceil(level / (1 - level) - 1e-9)


def _rank(n: int, level: float) -> int:
    """Return the rank, from 1, of the score below which sets of this level lie."""
    return ceil((n + 1) * level - 1e-9)


@dataclass(eq=False, repr=False)
class ConformalClassifier(ClassifierMixin, _Conformal):
    """Prediction sets of classes that hold the true class with a given probability.

    It wraps any classifier that accepts missing values and has `predict_proba`. The score is
    randomised APS (adaptive prediction sets): the probability of all classes that are more
    probable, plus a random part of that of the class itself. See
    `promissing.uncertainty.conformal` for what each method guarantees.

    Parameters
    ----------
    estimator : classifier, default=None
        The classifier; by default a `NanMLPClassifier`.
    confidence_level : float or sequence of float, default=0.9
        The probability with which a set holds the true class. Several levels give nested sets.
    method : {"nearest", "split", "exact", "nested"}, default="nearest"
        The calibration rows that a new row is compared with:

        - "nearest": those with the nearest masks, of `n_masks` for each row;
        - "split": all rows, as in plain split conformal prediction;
        - "exact": rows whose mask is contained in that of the new row, masked like it (CP-MDA);
        - "nested": all rows, masked by both masks together (CP-MDA). "exact" and "nested" predict
          calibration rows for every new mask, and are meant for audits.
    cv : int or splitter, default=None
        Folds of cross-fitting, with `fit_conformalize`. No rows are set aside then.
    prefit : bool, default=False
        Whether `estimator` is fitted already.
    n_masks : int, default=16
        The number of times that each calibration row is predicted: as it is, and under further
        masks.
    n_neighbors : int, default=250
        The number of calibration rows to compare with, for "nearest".
    random_state : int, RandomState or None, default=None
        Random seed of masks, folds and sets. The random number of a row depends only on this seed
        and the values of the row.
    per_class : bool, default=False
        Whether sets hold the true class with the given probability for every class. They are
        larger then.
    allow_empty : bool, default=False
        Whether a set may be empty. By default it then holds the most probable class, so that
        coverage is above the level where the classifier is more accurate than the level.

    Attributes
    ----------
    classes_ : ndarray (K,)
        The classes.
    estimators_ : list
        The fitted classifier, or one for each fold.
    bank_ : MaskBank
        The masks and scores of the calibration rows.

    Examples
    --------
    >>> import numpy as np
    >>> from promissing import NanMLPClassifier
    >>> from promissing.uncertainty import ConformalClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(900, 3))
    >>> y = np.where(X[:, 0] + rng.normal(size=900) > 0, "ill", "well")
    >>> X[rng.random(X.shape) < 0.2] = np.nan
    >>> model = NanMLPClassifier(n_members=2, max_iter=20, random_state=0)
    >>> conformal = ConformalClassifier(model, random_state=0)
    >>> conformal.fit(X[:500], y[:500]).conformalize(X[500:800], y[500:800])
    ConformalClassifier(estimator=NanMLPClassifier(max_iter=20, n_members=2,
                                                   random_state=0),
                        random_state=0)
    >>> conformal.predict_set([[3.0, 0.0, 0.0], [np.nan, np.nan, np.nan]]).tolist()
    [[True, False], [True, True]]
    """

    _: KW_ONLY
    per_class: bool = False
    allow_empty: bool = False

    def predict_set(
        self, X: Any, *, confidence_level: float | Sequence[float] | None = None
    ) -> PredictionSets:
        """Return the prediction set of every row.

        The set of a row does not depend on the other rows.

        Parameters
        ----------
        X : frame or array (n, p)
            The rows.
        confidence_level : float or sequence of float, default=None
            Other levels than those of the constructor.

        Returns
        -------
        PredictionSets
            A boolean array (n, K), or (n, K, L) for L levels: whether a class is in the set.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.ensemble import HistGradientBoostingClassifier
        >>> from promissing.uncertainty import ConformalClassifier
        >>> X = np.random.default_rng(0).normal(size=(600, 2))
        >>> y = X[:, 0] > 0
        >>> model = HistGradientBoostingClassifier(max_iter=20).fit(X[:300], y[:300])
        >>> conformal = ConformalClassifier(model, prefit=True, random_state=0)
        >>> conformal.conformalize(X[300:], y[300:]).predict_set([[2.0, np.nan]])
        PredictionSets([[False,  True]])
        """
        levels, single = self._levels_for(confidence_level)
        outputs = self._predict_all(X)
        codes = self._reader.read(X)
        uniforms = row_uniforms(codes, self._seed)
        counts, sizes = self._counts(X, codes, outputs, uniforms, max(levels))
        # A class is in the set if its score is among the smallest, as one more calibration row.
        sets = np.stack([counts + 1 > (1 - v) * (sizes + 1) + 1e-9 for v in levels], axis=-1)
        if not self.allow_empty:
            # The class that enters first as the level rises, so that sets stay nested.
            p_values = (counts + 1) / (sizes + 1)
            first = p_values >= p_values.max(axis=1, keepdims=True) - 1e-12
            best = np.where(first, outputs.mean(axis=0), -1).argmax(axis=1)
            best = np.eye(sets.shape[1], dtype=bool)[best]
            sets |= best[..., None] & ~sets.any(axis=1, keepdims=True)
        return PredictionSets.of(sets, self.classes_, levels, self._index(X), single=single)

    def predict_proba(self, X: Any) -> Float:
        """Return the probabilities of the classifier, the mean over the folds.

        Parameters
        ----------
        X : frame or array (n, p)
            The rows.

        Returns
        -------
        ndarray (n, K)
            Probabilities.
        """
        check_is_fitted(self, "estimators_")
        return np.asarray(self._predict_all(X).mean(axis=0))

    def predict(self, X: Any) -> Array:
        """Return the most probable class of every row.

        Parameters
        ----------
        X : frame or array (n, p)
            The rows.

        Returns
        -------
        ndarray (n,)
            Classes.
        """
        proba = self.predict_proba(X)
        return np.asarray(self.estimators_[0].classes_[proba.argmax(axis=1)])

    def _default(self) -> Any:
        return NanMLPClassifier()

    def _check_target(self, y: Array) -> Array:
        model = self.estimators_[0]
        if not hasattr(model, "predict_proba"):
            raise ValueError(
                f"`estimator` must have `predict_proba`, and {type(model).__name__} has not. "
                "scikit-learn's CalibratedClassifierCV adds it."
            )
        self.classes_ = np.asarray(model.classes_)
        if any(not np.array_equal(one.classes_, self.classes_) for one in self.estimators_):
            raise ValueError("Each fold of `cv` must contain all classes. Use fewer folds.")
        return class_positions(y, self.classes_)

    def _most_rows(self) -> int:
        if not self.per_class:
            return len(self.bank_)
        return int(np.bincount(self.bank_.labels, minlength=len(self.classes_)).min())

    def _require_rows(self, target: Array) -> None:
        super()._require_rows(target)
        if self.per_class:
            for k, label in enumerate(self.classes_.tolist()):
                try:
                    super()._require_rows(target[target == k])
                except ValueError as error:
                    raise ValueError(f"`per_class`: class {label!r}: {error}") from None

    def _score(self, outputs: Float, codes: Float, target: Array) -> Float:
        n, m, p = codes.shape
        uniforms = row_uniforms(codes.reshape(n * m, p), self._seed).reshape(n, m, 1)
        scores = aps_scores(outputs, uniforms)
        return np.asarray(np.take_along_axis(scores, target[:, None, None], axis=2)[..., 0])

    def _score_again(self, outputs: Float, codes: Float, rows: Rows) -> Float:
        return self._score(outputs[:, None], codes[:, None], self.bank_.labels[rows])[:, 0]

    def _hits(self, X: Any, target: Array, level: float) -> tuple[Mask, Float]:
        sets = np.asarray(self.predict_set(X, confidence_level=level))
        return sets[np.arange(len(sets)), target], sets.sum(axis=1)

    def _state(self) -> dict[str, Any]:
        counts = np.bincount(self.bank_.labels, minlength=len(self.classes_))
        return {"class_counts": counts.tolist()}

    def _restore(self, values: dict[str, Any]) -> None:
        self.classes_ = np.asarray(self.estimators_[0].classes_)
        counts, labels = np.asarray(values["class_counts"]), self.bank_.labels
        good = counts.shape == self.classes_.shape and counts.dtype.kind == "i"
        if not (good and (counts >= 0).all() and (labels < len(self.classes_)).all()):
            raise ValueError("The calibration in the model is for other classes.")
        self._stored_counts = counts[None]

    def _class_counts(self) -> Array:
        """Return the number of calibration rows (M, K) of every model and class."""
        if not self._calibration:
            return np.asarray(self._stored_counts)
        counts = np.zeros((len(self.estimators_), len(self.classes_)), np.intp)
        np.add.at(counts, (self.bank_.folds, self.bank_.labels), 1)
        return counts

    def _compared(self, outputs: Float, codes: Float) -> Float:
        return outputs

    def _counts(
        self, X: Any, codes: Float, outputs: Float, uniforms: Float, level: float
    ) -> tuple[Float, Float]:
        """Return how many calibration rows have a score at least that of each class, of how many.

        The outputs are (M, n, K), of every model; the result is (n, K) twice.
        """
        n, n_classes = outputs.shape[1:]
        counts, sizes = np.zeros((n, n_classes)), np.zeros((n, n_classes))
        everything = np.arange(len(self.bank_))
        parts = [(slice(None), everything)]
        if self.per_class:
            labels = self.bank_.labels
            parts = [(slice(k, k + 1), everything[labels == k]) for k in range(n_classes)]
        for columns, among in parts:
            for _, here, found, scores in self._comparisons(X, codes, outputs, among, level):
                own = aps_scores(found, uniforms[here, None])[:, columns]
                # Equal scores count: rounding must not make them differ.
                counts[here, columns] += len(scores) - np.searchsorted(np.sort(scores), own - 1e-12)
                sizes[here, columns] += len(scores)
        empty = np.asarray(np.isnan(codes).all(axis=1))
        if self.method == "nearest" and empty.any():
            counts[empty], sizes[empty] = self._counts_of_empty(outputs, uniforms, empty)
        return counts, sizes

    def _counts_of_empty(
        self, outputs: Float, uniforms: Float, empty: Mask
    ) -> tuple[Float | Array, Float | Array]:
        """Return the counts and sizes (K,) for rows without known values.

        They share one random number, and calibration rows under the nearest masks have others.
        Calibration rows that are emptied have the same number, too, and differ in their class only.
        """
        of_class = self._class_counts()
        if self.per_class:  # Within a class, all emptied rows have the same score.
            return of_class.sum(axis=0), of_class.sum(axis=0)
        first = int(empty.argmax())
        own = aps_scores(outputs[:, first], uniforms[first])
        at_least = own[:, :, None] <= own[:, None] + 1e-12
        return (at_least * of_class[:, None]).sum(axis=(0, 2)), of_class.sum()


@dataclass(eq=False, repr=False)
class ConformalRegressor(RegressorMixin, _Conformal):
    """Prediction intervals that hold the true number with a given probability.

    It wraps any regressor that accepts missing values. The score is the absolute error divided by
    its expected size: the standard deviation that the regressor predicts, or, for regressors
    without one, a model of the error given the known values, the gaps and the prediction, which is
    cross-fitted on the calibration rows. See `promissing.uncertainty.conformal` for what each
    method guarantees.

    Parameters
    ----------
    estimator : regressor, default=None
        The regressor; by default a `NanMLPRegressor`.
    confidence_level : float or sequence of float, default=0.9
        The probability with which an interval holds the true number. Several levels give nested
        intervals.
    method : {"nearest", "split", "exact", "nested"}, default="nearest"
        The calibration rows that a new row is compared with:

        - "nearest": those with the nearest masks, of `n_masks` for each row;
        - "split": all rows, as in plain split conformal prediction;
        - "exact": rows whose mask is contained in that of the new row, masked like it (CP-MDA);
        - "nested": all rows, masked by both masks together (CP-MDA). "exact" and "nested" predict
          calibration rows for every new mask, and are meant for audits.
    cv : int or splitter, default=None
        Folds of cross-fitting, with `fit_conformalize`. No rows are set aside then.
    prefit : bool, default=False
        Whether `estimator` is fitted already.
    n_masks : int, default=16
        The number of times that each calibration row is predicted: as it is, and under further
        masks.
    n_neighbors : int, default=250
        The number of calibration rows to compare with, for "nearest".
    random_state : int, RandomState or None, default=None
        Random seed of masks and folds.
    scaled : bool, default=True
        Whether errors are divided by their expected size. Otherwise intervals for the same mask
        have the same width.

    Attributes
    ----------
    estimators_ : list
        The fitted regressor, or one for each fold.
    bank_ : MaskBank
        The masks and scores of the calibration rows.

    Examples
    --------
    >>> import numpy as np
    >>> from promissing import NanMLPRegressor
    >>> from promissing.uncertainty import ConformalRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(900, 3))
    >>> y = 10 * X[:, 0] + rng.normal(size=900)
    >>> X[rng.random(X.shape) < 0.2] = np.nan
    >>> model = NanMLPRegressor(n_members=2, max_iter=30, random_state=0)
    >>> conformal = ConformalRegressor(model, random_state=0)
    >>> conformal.fit(X[:500], y[:500]).conformalize(X[500:800], y[500:800])
    ConformalRegressor(estimator=NanMLPRegressor(max_iter=30, n_members=2,
                                                 random_state=0),
                       random_state=0)
    >>> known, empty = conformal.predict_interval([[1.0, 0.0, 0.0], [np.nan, np.nan, np.nan]])
    >>> bool(np.ptp(known) < 10 < 30 < np.ptp(empty))
    True
    """

    _: KW_ONLY
    scaled: bool = True

    def predict_interval(
        self, X: Any, *, confidence_level: float | Sequence[float] | None = None
    ) -> PredictionIntervals:
        """Return the prediction interval of every row.

        The interval of a row does not depend on the other rows.

        Parameters
        ----------
        X : frame or array (n, p)
            The rows.
        confidence_level : float or sequence of float, default=None
            Other levels than those of the constructor.

        Returns
        -------
        PredictionIntervals
            An array (n, 2), or (n, 2, L) for L levels: the lower and upper ends.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.ensemble import HistGradientBoostingRegressor
        >>> from promissing.uncertainty import ConformalRegressor
        >>> X = np.random.default_rng(0).normal(size=(600, 2))
        >>> model = HistGradientBoostingRegressor(max_iter=20).fit(X[:300], X[:300, 0])
        >>> conformal = ConformalRegressor(model, prefit=True, random_state=0)
        >>> conformal = conformal.conformalize(X[300:], X[300:, 0])
        >>> low, high = conformal.predict_interval([[1.0, np.nan]])[0]
        >>> bool(low < 1 < high)
        True
        """
        levels, single = self._levels_for(confidence_level)
        outputs, codes = self._predict_all(X), self._reader.read(X)
        ends = np.empty((outputs.shape[1], 2, len(levels)))
        everything = np.arange(len(self.bank_))
        parts = self._comparisons(X, codes, outputs, everything, max(levels))
        for _, same in groupby(parts, key=itemgetter(0)):
            compared = list(same)
            here = compared[0][1]
            if len(compared) == 1:  # One model: the scores are the same for all of these rows.
                (_, _, found, scores) = compared[0]
                ranks = [_rank(len(scores), level) - 1 for level in levels]
                width = found[:, 1:] * np.sort(scores)[ranks]
                ends[here] = np.stack([found[:, :1] - width, found[:, :1] + width], axis=1)
                continue
            step = max(1, _CELLS // sum(len(scores) for *_, scores in compared))
            for start in range(0, len(here), step):
                block = slice(start, start + step)
                ends[here[block]] = _joint_ends(compared, block, levels)
        return PredictionIntervals.of(ends, levels, self._index(X), single=single)

    def error_size(self, X: Any) -> Float:
        """Return the expected size of the error of every row, by which errors are divided.

        Parameters
        ----------
        X : frame or array (n, p)
            The rows.

        Returns
        -------
        ndarray (n,)
            The standard deviation that the regressor predicts, or the mean absolute error that was
            learned from the calibration rows.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.ensemble import HistGradientBoostingRegressor
        >>> from promissing.uncertainty import ConformalRegressor
        >>> X = np.random.default_rng(0).normal(size=(600, 2))
        >>> model = HistGradientBoostingRegressor(max_iter=20).fit(X[:300], X[:300, 0])
        >>> conformal = ConformalRegressor(model, prefit=True, random_state=0)
        >>> known, empty = conformal.conformalize(X[300:], X[300:, 0]).error_size(
        ...     [[0.0, 0.0], [np.nan, np.nan]]
        ... )
        >>> bool(known < empty)
        True
        """
        self._levels_for(None)
        codes = self._reader.read(X)
        sizes = [self._sizes(found, codes) for found in self._predict_all(X)]
        return np.asarray(np.mean(sizes, axis=0))

    def predict(self, X: Any) -> Float:
        """Return the predictions of the regressor, the mean over the folds.

        Parameters
        ----------
        X : frame or array (n, p)
            The rows.

        Returns
        -------
        ndarray (n,)
            Predictions.
        """
        check_is_fitted(self, "estimators_")
        return np.asarray(self._predict_all(X)[..., 0].mean(axis=0))

    def _most_rows(self) -> int:
        return len(self.bank_)

    def _default(self) -> Any:
        return NanMLPRegressor()

    def _check_target(self, y: Array) -> Array:
        require_regressor(self.estimators_[0])
        return read_numbers(y)

    def _score(self, outputs: Float, codes: Float, target: Array) -> Float:
        errors = np.abs(target[:, None] - outputs[..., 0])
        self._smallest = _SMALLEST * max(float(errors.mean()), np.finfo(float).tiny)
        self._target, self._error_size = target, None
        if not self.scaled:
            return errors
        if outputs.shape[2] == 1:
            self._error_size = ErrorSize(self._seed)
            return np.asarray(errors / self._error_size.fit_predict(codes, outputs[..., 0], errors))
        return np.asarray(errors / np.maximum(outputs[..., 1], self._smallest))

    def _score_again(self, outputs: Float, codes: Float, rows: Rows) -> Float:
        errors = np.abs(self._target[rows] - outputs[:, 0])
        return np.asarray(errors / self._sizes(outputs, codes, rows))

    def _hits(self, X: Any, target: Array, level: float) -> tuple[Mask, Float]:
        low, high = np.asarray(self.predict_interval(X, confidence_level=level)).T
        return (low <= target) & (target <= high), high - low

    def _state(self) -> dict[str, Any]:
        if self._error_size is not None:
            raise ValueError(
                "The size of the errors was learned by trees, which a model file cannot hold. Use "
                "a model with `loss='mean_std'`, or calibrate with `scaled=False`."
            )
        return {"smallest": self._smallest}

    def _restore(self, values: dict[str, Any]) -> None:
        self._error_size, self._smallest = None, float(values["smallest"])
        if self.scaled and not self._with_std(self.estimators_[0], empty_row(self.estimators_[0])):
            raise ValueError("The calibration in the model needs a standard deviation.")

    def _compared(self, outputs: Float, codes: Float) -> Float:
        return np.column_stack([outputs[:, 0], self._sizes(outputs, codes)])

    def _sizes(self, outputs: Float, codes: Float, rows: Rows | None = None) -> Float:
        """Return the expected size (n,) of the errors, of new rows or of calibration rows."""
        if not self.scaled:
            return np.ones(len(outputs))
        if self._error_size is not None:
            return self._error_size.predict(codes, outputs[:, 0], rows)
        return np.maximum(outputs[:, 1], self._smallest)


def _joint_ends(compared: Sequence[Any], block: slice, levels: Sequence[float]) -> Float:
    """Return the ends (r, 2, L) of intervals of several models, for a block of rows."""
    lower, upper = [], []
    for _, _, found, scores in compared:
        center, size = found[block].T[..., None]
        lower.append(center - size * scores)
        upper.append(center + size * scores)
    low, high = np.sort(np.hstack(lower))[:, ::-1], np.sort(np.hstack(upper))
    n = low.shape[1]
    # At low levels, ends of different models may cross. Then the first that do not are taken.
    first = (low <= high).argmax(axis=1)
    ends = np.empty((len(low), 2, len(levels)))
    for i, level in enumerate(levels):
        rank = np.maximum(_rank(n, level) - 1, first)[:, None]
        parts = [np.take_along_axis(side, rank, axis=1) for side in (low, high)]
        ends[:, :, i] = np.hstack(parts)
    return ends


def aps_scores(proba: Float, uniforms: Float) -> Float:
    """Return the randomised APS score of every class.

    Parameters
    ----------
    proba : ndarray (..., K)
        Probabilities.
    uniforms : ndarray (..., 1)
        Random numbers between 0 and 1.

    Returns
    -------
    ndarray (..., K)
        The probability of all classes that are more probable, plus the random part of the class.

    Examples
    --------
    >>> import numpy as np
    >>> from promissing.uncertainty.conformal import aps_scores
    >>> aps_scores(np.array([0.2, 0.7, 0.1]), np.array([0.5])).round(2)
    array([0.8 , 0.35, 0.95])
    """
    order = np.argsort(-proba, axis=-1, kind="stable")
    ordered = np.take_along_axis(proba, order, axis=-1)
    scores = np.cumsum(ordered, axis=-1) - (1 - uniforms) * ordered
    found = np.empty_like(proba)
    np.put_along_axis(found, order, scores, axis=-1)
    return found
