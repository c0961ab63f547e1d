"""Estimators that prepare the table for another estimator: networks without NaN, and trees."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, TransformerMixin, clone
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.impute import SimpleImputer
from sklearn.model_selection import train_test_split
from sklearn.utils import ClassifierTags, RegressorTags, _safe_indexing, check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from promissing._validation import expect, is_whole
from promissing.encoding.table_encoder import TableEncoder
from promissing.estimators.base import NanEstimator
from promissing.estimators.modalities import find_columns
from promissing.estimators.recipe import AUGMENT, EMPTY_ROWS
from promissing.missingness import open_source, remove

__all__ = [
    "AugmentedRows",
    "CategoryColumns",
    "CategoryFrame",
    "CompleteCases",
    "CompleteFeatures",
    "ImputedFusion",
    "LabelCodes",
]

Array = NDArray[Any]


def _classifies(wrapper: Any) -> bool:
    return hasattr(wrapper.estimator, "predict_proba")


class _Wrapper(MetaEstimatorMixin, BaseEstimator):
    """Fit `estimator` on another form of the table. Classifies if the estimator does.

    Parameters
    ----------
    estimator : classifier or regressor
        It is cloned, and fitted as `estimator_`.
    """

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator

    def predict(self, X: Any) -> Array:
        """Predict for X (n, p)."""
        return self.estimator_.predict(self._prepare(X))  # type: ignore[no-any-return]

    @available_if(_classifies)
    def predict_proba(self, X: Any) -> Array:
        """Return the probability of each class (n, K)."""
        return self.estimator_.predict_proba(self._prepare(X))  # type: ignore[no-any-return]

    @property
    def classes_(self) -> Array:
        """The classes of the fitted estimator."""
        return self.estimator_.classes_  # type: ignore[no-any-return]

    def score(self, X: Any, y: Any) -> float:
        """Return the score of the fitted estimator: accuracy or R2."""
        return self.estimator_.score(self._prepare(X), y)  # type: ignore[no-any-return]

    def _prepare(self, X: Any) -> Any:
        """Return X in the form that `estimator_` was fitted on."""
        return X

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.target_tags.required = True
        if _classifies(self):
            tags.estimator_type, tags.classifier_tags = "classifier", ClassifierTags()
        else:
            tags.estimator_type, tags.regressor_tags = "regressor", RegressorTags()
        return tags


class CompleteCases(_Wrapper):
    """Train on the rows without missing values. In prediction, impute the column's mean."""

    def fit(self, X: Any, y: Any) -> Self:
        """Fit the estimator on the complete rows of X (n, p)."""
        X, y = np.asarray(X, dtype=np.float64), np.asarray(y)
        complete = ~np.isnan(X).any(axis=1)
        if not complete.any():
            raise ValueError(
                f"complete-case has nothing to learn from: each of the {len(X)} rows has a missing "
                "value. Choose another strategy."
            )
        lost = np.setdiff1d(y, y[complete])
        if _classifies(self) and len(lost):
            raise ValueError(
                f"complete-case loses every row of class {', '.join(map(str, lost))}: each has a "
                "missing value. Choose another strategy."
            )
        self._means = SimpleImputer(keep_empty_features=True).fit(X)
        self.estimator_ = clone(self.estimator).fit(X[complete], y[complete])
        return self

    def _prepare(self, X: Any) -> Array:
        return self._means.transform(X)  # type: ignore[no-any-return]


class CompleteFeatures(_Wrapper):
    """Train on the columns without missing values. If there is none, predict the prior."""

    def fit(self, X: Any, y: Any) -> Self:
        """Fit the estimator on the complete columns of X (n, p)."""
        X = np.asarray(X, dtype=np.float64)
        self.kept_ = np.flatnonzero(~np.isnan(X).any(axis=0))
        prior = DummyClassifier(strategy="prior") if _classifies(self) else DummyRegressor()
        model = clone(self.estimator) if len(self.kept_) else prior
        self.estimator_ = model.fit(self._columns(X), y)
        self._means = SimpleImputer(keep_empty_features=True).fit(self._columns(X))
        return self

    def _columns(self, X: Any) -> Array:
        X = np.asarray(X, dtype=np.float64)
        return X[:, self.kept_] if len(self.kept_) else np.zeros((len(X), 1))

    def _prepare(self, X: Any) -> Array:
        # A column that was complete in training may have missing values now.
        return self._means.transform(self._columns(X))  # type: ignore[no-any-return]


class AugmentedRows(_Wrapper):
    """Train on copies of the table whose rows lose values, as `augment` does for our networks.

    The first copy is the table itself. In the others, some rows lose each feature with their own
    probability, drawn from U(0, 1), and some lose all values.

    Parameters
    ----------
    estimator : classifier or regressor
        Any estimator that accepts missing values.
    copies : int, default=8
        Number of copies. Training takes about as many times as long.
    share : float, default=0.1
        Share of the rows of a copy that lose features.
    empty : float, default=1/16
        Share of the rows of a copy that lose all values.
    random_state : int, RandomState or None, default=None
        Random seed.
    """

    def __init__(
        self,
        estimator: Any,
        *,
        copies: int = 8,
        share: float = AUGMENT,
        empty: float = 1 / EMPTY_ROWS,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.copies = copies
        self.share = share
        self.empty = empty
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Fit the estimator on copies of X (n, p)."""
        good = is_whole(self.copies) and self.copies >= 2
        expect(good, "copies", "a whole number >= 2", self.copies)
        rng = check_random_state(self.random_state)
        self.estimator_ = clone(self.estimator)
        steps = getattr(self.estimator_, "steps", [("", self.estimator_)])
        network = steps[-1][1]
        if not (isinstance(network, NanEstimator) and network.early_stopping):
            self.estimator_.fit(*self._copied(X, y, rng))
            return self
        # Copies of a row must not be in training and validation, so the rows are split before.
        parts = train_test_split(
            np.arange(len(y)),
            test_size=network.validation_fraction,
            random_state=rng,
            stratify=y if _classifies(self) else None,
        )
        (X, y), (X_val, y_val) = (
            self._copied(_safe_indexing(X, rows), _safe_indexing(y, rows), rng) for rows in parts
        )
        for _, transformer in steps[:-1]:
            X, X_val = transformer.fit_transform(X), transformer.transform(X_val)
        network.fit(X, y, X_val=X_val, y_val=y_val)
        return self

    def _copied(self, X: Any, y: Any, rng: np.random.RandomState) -> tuple[Any, Any]:
        """Return copies of the rows that have lost values, and their targets."""
        n, p = open_source(X).table.shape
        rows = np.tile(np.arange(n), self.copies)
        lost = rng.random_sample((len(rows), p)) < rng.random_sample((len(rows), 1))
        which = rng.random_sample((len(rows), 1))
        mask = (lost & (which < self.share)) | (which >= 1 - self.empty)
        mask[:n] = False
        return remove(_safe_indexing(X, rows), mask), _safe_indexing(y, rows)


class ImputedFusion(_Wrapper):
    """Impute a table of several modalities, and train a fusion network on the result.

    Parameters
    ----------
    estimator : NanFusionClassifier or NanFusionRegressor
        The network.
    imputer : transformer
        Fills the encoded table. The missing indicators that it adds belong to the modality of
        their column. Other columns that it adds are a modality of their own.
    """

    def __init__(self, estimator: Any, imputer: Any) -> None:
        self.estimator = estimator
        self.imputer = imputer

    def fit(self, X: Any, y: Any) -> Self:
        """Impute X (n, p) and fit the network."""
        network = clone(self.estimator)
        # A data frame, so that warnings of the imputer name columns.
        self.encoder_ = TableEncoder(scale=False).set_output(transform="pandas").fit(X)
        encoded = self.encoder_.transform(X)
        self.imputer_ = clone(self.imputer).fit(encoded)
        filled = self.imputer_.transform(encoded)
        modalities = find_columns(network.modalities, network.remainder, X, self.encoder_)
        members = {
            name: np.flatnonzero(np.isin(self.encoder_.groups_, columns)).tolist()
            for name, columns in modalities.items()
        }
        n_encoded = encoded.shape[1]
        indicator = getattr(self.imputer_, "indicator_", None)
        if indicator is not None:
            for columns in members.values():
                own = np.flatnonzero(np.isin(indicator.features_, columns))
                columns.extend((n_encoded + own).tolist())
        elif filled.shape[1] > n_encoded:
            members["share missing"] = list(range(n_encoded, filled.shape[1]))
        network.set_params(modalities=members, remainder="drop")
        self.estimator_ = network.fit(filled, y)
        return self

    def _prepare(self, X: Any) -> Array:
        return self.imputer_.transform(self.encoder_.transform(X))  # type: ignore[no-any-return]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        return tags


class CategoryColumns(_Wrapper):
    """Pass the columns of text as `cat_features`, which CatBoost needs."""

    def fit(self, X: pd.DataFrame, y: Any) -> Self:
        """Fit the estimator on a data frame."""
        text = [name for name in X if not pd.api.types.is_numeric_dtype(X[name])]
        self.estimator_ = clone(self.estimator).fit(X, y, cat_features=text)
        return self

    def predict(self, X: Any) -> Array:
        """Predict for X (n, p)."""
        return np.asarray(super().predict(X)).ravel()  # CatBoost returns classes as a column.


class LabelCodes(ClassifierMixin, _Wrapper):
    """Encode the classes as 0, 1, ..., the only labels that XGBoost accepts."""

    @property
    def classes_(self) -> Array:
        """The classes in sorted order."""
        return self.labels_

    def fit(self, X: Any, y: Any) -> Self:
        """Fit the classifier on the codes of the classes."""
        self.labels_, codes = np.unique(np.asarray(y), return_inverse=True)
        self.estimator_ = clone(self.estimator).fit(X, codes)
        return self

    def predict(self, X: Any) -> Array:
        """Predict the class of each row of X (n, p)."""
        return np.asarray(self.labels_[super().predict(X)])


class CategoryFrame(TransformerMixin, BaseEstimator):
    """Convert a table to a data frame of numbers and pandas categories, for tree models.

    Parameters
    ----------
    max_categories : int, default=254
        Largest number of categories of a column. The rarest ones are merged. scikit-learn's trees
        accept 255.
    as_text : bool, default=False
        Whether categories are text with "missing" among them, as CatBoost requires.
    """

    def __init__(self, *, max_categories: int = 254, as_text: bool = False) -> None:
        self.max_categories = max_categories
        self.as_text = as_text

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the categories of every column."""
        self.encoder_ = TableEncoder(max_categories=self.max_categories, scale=False).fit(X)
        return self

    def transform(self, X: Any) -> pd.DataFrame:
        """Return X as a data frame. A category that is new is missing."""
        check_is_fitted(self)
        columns: dict[str, Any] = {}
        for j, column in enumerate(self.encoder_.read(X).T):
            columns[str(j)] = column
            if self.encoder_.kinds_[j] != "category":
                continue
            codes = np.nan_to_num(column, nan=-1).astype(int)
            n_categories = np.count_nonzero(self.encoder_.groups_ == j)
            categories = pd.Categorical.from_codes(codes, categories=np.arange(n_categories))
            if self.as_text:
                categories = categories.rename_categories(str).add_categories("missing")
                categories = pd.Series(categories).fillna("missing").astype(str)
            columns[str(j)] = categories
        return pd.DataFrame(columns)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        return tags
