"""What all classifiers of this package do, and all regressors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin, RegressorMixin

from promissing.estimators.estimator import NanEstimator
from promissing.networks.targets import (
    Classes,
    Numbers,
    check_classes,
    check_numbers,
    make_classes,
    make_numbers,
)

__all__ = ["NanClassifier", "NanRegressor"]

Array = NDArray[Any]


class NanClassifier(ClassifierMixin, NanEstimator):
    """Base of the classifiers."""

    class_weight: Mapping[Any, float] | Literal["balanced"] | None
    _estimator_type = "classifier"  # yellowbrick reads it; scikit-learn's mixins no longer set it.

    def partial_fit(
        self,
        X: Any,
        y: Any,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Go over the given rows once, at a constant rate.

        The first call needs all `classes`, and settles the encoding.
        """
        if isinstance(self.class_weight, str):
            raise ValueError(
                "`class_weight` 'balanced' needs all rows at once. For partial_fit pass a dict."
            )
        if not hasattr(self, "params_"):
            if classes is None:
                raise ValueError("classes must be passed on the first call to partial_fit.")
        elif classes is not None and not np.array_equal(self.classes_, np.unique(classes)):
            raise ValueError(
                f"`classes={np.asarray(classes).tolist()}` is not the same as on last call to "
                f"partial_fit, was: {self.classes_.tolist()}"
            )
        return self._partial_fit(X, y, sample_weight, classes)

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """The probability of every class (n, K), or of every label; the mean of the members.

        NaN where the model abstains; see `min_known`.
        """
        return np.asarray(self._members(X).mean(axis=0))

    def __call__(self, X: Any) -> NDArray[np.float64]:
        """The same as `predict_proba`: `shap.Explainer(model, X)` calls the model."""
        return self.predict_proba(X)

    def predict_log_proba(self, X: Any) -> NDArray[np.float64]:
        """The logarithm of `predict_proba`; of a probability of 0 it is -inf."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.predict_proba(X)))

    def predict(self, X: Any) -> Array:
        """The most probable class of every row, or the labels more probable than not.

        None where the model abstains; see `min_known`.
        """
        proba = self.predict_proba(X)
        abstained = np.asarray(np.isnan(proba).any(axis=1))
        return self._with_blanks(self._target.decide(proba), abstained)

    def spread(self, X: Any) -> NDArray[np.float64]:
        """The ensemble spread: the standard deviation of the members' probabilities, (n, K).

        It is a diagnostic of how far the members disagree and not the uncertainty of a prediction:
        members that predict the prior where nothing is known agree.

        Parameters
        ----------
        X : frame or array (n, p)
            The rows.

        Returns
        -------
        ndarray (n, K)
            0 if there is one member only.
        """
        return np.asarray(self._members(X).std(axis=0))

    def _members(self, X: Any, network: Any = None) -> Array:
        outputs = self._outputs(X, network)
        return np.asarray(self._target.proba(outputs))

    def _check_y(self, y: Any) -> Array:
        return check_classes(y, self)

    def _make_target(self, y: Array, weight: Array, classes: Any) -> Classes:
        made = make_classes(
            y,
            weight,
            declared=classes,
            class_weight=self.class_weight,
            estimator=type(self).__name__,
        )
        return self._classes_type(made.labels, made.multilabel, made.class_weights)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags


class NanRegressor(RegressorMixin, NanEstimator):
    """Base of the regressors."""

    _estimator_type = "regressor"  # As for classifiers.

    def partial_fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Go over the given rows once, at a constant rate; the first call settles the encoding."""
        return self._partial_fit(X, y, sample_weight)

    def predict(self, X: Any) -> NDArray[np.float64]:
        """The predicted targets, (n,) or (n, k): the mean of the members.

        NaN where the model abstains; see `min_known`.
        """
        return np.asarray(self._members(X).mean(axis=0))

    def __call__(self, X: Any) -> NDArray[np.float64]:
        """The same as `predict`: `shap.Explainer(model, X)` calls the model."""
        return self.predict(X)

    def spread(self, X: Any) -> NDArray[np.float64]:
        """The ensemble spread: the standard deviation of the members' predictions.

        It is a diagnostic of how far the members disagree and not the uncertainty of a prediction:
        it falls as values go missing, because all members then predict the mean.

        Parameters
        ----------
        X : frame or array (n, p)
            The rows.

        Returns
        -------
        ndarray (n,) or (n, k)
            0 if there is one member only.
        """
        return np.asarray(self._members(X).std(axis=0))

    def _members(self, X: Any, network: Any = None) -> Array:
        outputs = self._outputs(X, network)
        return np.asarray(self._target.decode(outputs))

    def _check_y(self, y: Any) -> Array:
        return np.asarray(check_numbers(y, self))

    def _make_target(self, y: Array, weight: Array, classes: Any) -> Numbers:
        return make_numbers(y, weight)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags
