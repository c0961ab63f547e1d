"""Estimators that hand a network, or trees, their table in another form.

Rows or columns with gaps left out, gaps filled modality by modality, columns of text named.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import (
    BaseEstimator,
    ClassifierMixin,
    MetaEstimatorMixin,
    RegressorMixin,
    clone,
)
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.impute import SimpleImputer

from promissing.encoding.table_encoder import TableEncoder
from promissing.estimators.modalities import find_columns

__all__ = [
    "CodedLabelsClassifier",
    "CompleteCaseClassifier",
    "CompleteCaseRegressor",
    "CompleteFeaturesClassifier",
    "CompleteFeaturesRegressor",
    "FilledFusionClassifier",
    "FilledFusionRegressor",
    "TextCategoriesClassifier",
    "TextCategoriesRegressor",
]

Array = NDArray[Any]


class _Wrapper(MetaEstimatorMixin, BaseEstimator):
    """A model that gets its table in another form."""

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator

    def predict(self, X: Any) -> Array:
        """Predict for X (n, p)."""
        return self.estimator_.predict(self._whole(X))  # type: ignore[no-any-return]

    def _whole(self, X: Any) -> Any:
        """X as the model knows it."""
        raise NotImplementedError

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


class _TextCategories(_Wrapper):
    def fit(self, X: pd.DataFrame, y: Any) -> Self:
        """Fit the model, naming the columns of text to it."""
        text = [name for name in X if not pd.api.types.is_numeric_dtype(X[name])]
        self.estimator_ = clone(self.estimator).fit(X, y, cat_features=text)
        if isinstance(self, ClassifierMixin):
            self.classes_ = self.estimator_.classes_
        return self

    def predict(self, X: Any) -> Array:
        """Predict for X (n, p)."""
        return np.asarray(super().predict(X)).ravel()  # CatBoost gives classes as a column.

    def _whole(self, X: Any) -> Any:
        return X


class _FilledFusion(_Wrapper):
    """Fill the gaps of a table of several modalities, and fit a fusion network on what results.

    `imputer` fills the encoded table; what it adds, an indicator or the share missing, goes to the
    modality of the column it tells about, or is one of its own.
    """

    def __init__(self, estimator: Any, imputer: Any) -> None:
        self.estimator = estimator
        self.imputer = imputer

    def fit(self, X: Any, y: Any) -> Self:
        """Fill the gaps of X (n, p) and fit the network."""
        network = clone(self.estimator)
        # As a frame, so that warnings of the imputer name columns.
        self.encoder_ = TableEncoder(scale=False).set_output(transform="pandas").fit(X)
        encoded = self.encoder_.transform(X)
        modalities = find_columns(network.modalities, network.remainder, X, self.encoder_)
        self.imputer_ = clone(self.imputer).fit(encoded)
        filled = self.imputer_.transform(encoded)
        groups = self.encoder_.groups_
        home = {
            name: [int(k) for k in np.flatnonzero(np.isin(groups, columns))]
            for name, columns in modalities.items()
        }
        added = range(encoded.shape[1], filled.shape[1])
        indicator = getattr(self.imputer_, "indicator_", None)
        if indicator is not None:
            for k, source in zip(added, indicator.features_, strict=True):
                for name, columns in home.items():
                    if source in columns[: np.count_nonzero(np.isin(groups, modalities[name]))]:
                        columns.append(k)
        elif added:
            home["share missing"] = list(added)
        network.set_params(modalities=home, remainder="drop")
        self.estimator_ = network.fit(filled, y)
        if isinstance(self, ClassifierMixin):
            self.classes_ = self.estimator_.classes_
        return self

    def _whole(self, X: Any) -> Array:
        return self.imputer_.transform(self.encoder_.transform(X))  # type: ignore[no-any-return]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        return tags


class _CompleteCase(_Wrapper):
    def fit(self, X: Any, y: Any) -> Self:
        """Fit the model on the rows without gaps."""
        X, y = np.asarray(X, dtype=np.float64), np.asarray(y)
        whole = ~np.isnan(X).any(axis=1)
        if not whole.any():
            raise ValueError(
                f"complete-case has nothing to learn from: each of the {len(X)} rows has a gap. "
                "Choose another strategy."
            )
        if isinstance(self, ClassifierMixin):
            self.classes_ = np.unique(y)
            lost = [str(c) for c in self.classes_ if not (y[whole] == c).any()]
            if lost:
                raise ValueError(
                    f"complete-case loses every row of class {', '.join(lost)}: each has a gap. "
                    "Choose another strategy."
                )
        self._means = SimpleImputer(keep_empty_features=True).fit(X)
        self.estimator_ = clone(self.estimator).fit(X[whole], y[whole])
        return self

    def _whole(self, X: Any) -> Array:
        return self._means.transform(X)  # type: ignore[no-any-return]


class _CompleteFeatures(_Wrapper):
    def fit(self, X: Any, y: Any) -> Self:
        """Fit the model on the columns without gaps; on none it predicts the prior."""
        X = np.asarray(X, dtype=np.float64)
        self.kept_ = np.flatnonzero(~np.isnan(X).any(axis=0))
        model = clone(self.estimator) if len(self.kept_) else self._prior()
        self.estimator_ = model.fit(self._columns(X), y)
        if isinstance(self, ClassifierMixin):
            self.classes_ = self.estimator_.classes_
        self._means = SimpleImputer(keep_empty_features=True).fit(self._columns(X))
        return self

    def _columns(self, X: Array) -> Array:
        return X[:, self.kept_] if len(self.kept_) else np.zeros((len(X), 1))

    def _prior(self) -> Any:
        raise NotImplementedError

    def _whole(self, X: Any) -> Array:
        # A column that was whole in training may have gaps now: they get its mean.
        return self._means.transform(self._columns(np.asarray(X, dtype=np.float64)))  # type: ignore[no-any-return]


class _Probable(ClassifierMixin):
    def predict_proba(self: Any, X: Any) -> Array:
        """The probability of each class (n, K)."""
        return self.estimator_.predict_proba(self._whole(X))  # type: ignore[no-any-return]


class CompleteCaseClassifier(_Probable, _CompleteCase):
    """Learn from the rows without gaps; at prediction, gaps get the column's mean."""


class CompleteCaseRegressor(RegressorMixin, _CompleteCase):
    """Learn from the rows without gaps; at prediction, gaps get the column's mean."""


class CompleteFeaturesClassifier(_Probable, _CompleteFeatures):
    """Learn from the columns without gaps."""

    def _prior(self) -> Any:
        return DummyClassifier(strategy="prior")


class CompleteFeaturesRegressor(RegressorMixin, _CompleteFeatures):
    """Learn from the columns without gaps."""

    def _prior(self) -> Any:
        return DummyRegressor()


class TextCategoriesClassifier(_Probable, _TextCategories):
    """A model that wants to be told which columns are text: CatBoost's."""


class TextCategoriesRegressor(RegressorMixin, _TextCategories):
    """A model that wants to be told which columns are text: CatBoost's."""


class FilledFusionClassifier(_Probable, _FilledFusion):
    """A fusion classifier behind an imputer."""


class FilledFusionRegressor(RegressorMixin, _FilledFusion):
    """A fusion regressor behind an imputer."""


class CodedLabelsClassifier(_Probable, _Wrapper):
    """A classifier whose model takes no labels but 0, 1, ...: XGBoost's."""

    def fit(self, X: Any, y: Any) -> Self:
        """Fit the model on the places of the classes."""
        self.classes_, codes = np.unique(np.asarray(y), return_inverse=True)
        self.estimator_ = clone(self.estimator).fit(X, codes)
        return self

    def predict(self, X: Any) -> Array:
        """Predict for X (n, p)."""
        return np.asarray(self.classes_[super().predict(X)])

    def _whole(self, X: Any) -> Any:
        return X
