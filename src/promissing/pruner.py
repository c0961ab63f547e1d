"""A transformer that gives any scikit-learn model the formula."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import (
    _check_feature_names_in,
    check_is_fitted,
    validate_data,
)

from promissing import _formula

__all__ = ["Pruner"]


class Pruner(TransformerMixin, BaseEstimator):
    """Replace missing values by zero and append columns that describe what is missing.

    The output is [x0, extra]: x with 0 for NaN, and the missing share of the row or the absence of
    every feature. A linear model, or the first layer of an MLP, that is fitted to this output is
    exactly the NaN-native layer. The weight that it learns for the missing share is w_c - b, the
    difference of mPROMISSING's compensation and the bias. With one extra column per feature it is
    the compensation per feature.

    Standardise the columns by their observed values first (`StandardScaler` keeps NaN), so that 0
    is the mean.

    Parameters
    ----------
    compensation : {"shared", "feature"}, default="shared"
        "shared" appends one column, the missing share of each row. "feature" appends the 0/1
        absence of every feature. The layers' third setting, "none", ties the extra weight to the
        bias, which only a layer can do.
    groups : sequence of int, optional
        The feature each column belongs to, for columns that together encode one feature.
    shares : sequence of float, optional
        Each feature's share of the row; equal by default. Only "shared" uses it.

    Attributes
    ----------
    n_features_in_ : int
        Number of input columns.
    feature_names_in_ : ndarray of str
        Names of the input columns. Defined only if all of them are strings.

    Examples
    --------
    >>> import numpy as np
    >>> from promissing import Pruner
    >>> Pruner().fit_transform([[1.0, np.nan], [3.0, 4.0]])
    array([[1. , 0. , 0.5],
           [3. , 4. , 0. ]])
    """

    def __init__(
        self,
        compensation: str = "shared",
        *,
        groups: Sequence[int] | None = None,
        shares: Sequence[float] | None = None,
    ) -> None:
        self.compensation = compensation
        self.groups = groups
        self.shares = shares

    def fit(self, X: ArrayLike, y: Any = None) -> Self:
        """Store the number of columns and their names.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The data, NaN where a value is missing.
        y : object, default=None
            Not used.

        Returns
        -------
        Pruner
            The fitted transformer itself.

        Examples
        --------
        >>> from promissing import Pruner
        >>> Pruner().fit([[1.0, 2.0]]).n_features_in_
        2
        """
        if self.compensation not in ("shared", "feature"):
            raise ValueError(
                f'`compensation` must be "shared" or "feature". Received: {self.compensation!r}'
            )
        X = self._validate(X, reset=True)
        layout = _formula.Layout(X.shape[1], self.groups, self.shares)
        self._rule = _formula.COMPENSATIONS[self.compensation]
        self._layout = layout.arrays(np, per_feature=self._rule.per_feature)
        return self

    def transform(self, X: ArrayLike) -> NDArray[Any]:
        """Replace missing values by zero and append the extra columns.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The data, NaN where a value is missing.

        Returns
        -------
        ndarray of shape (n_samples, n_features + n_extra)
            [x0, extra], with one extra column for "shared" and one per feature for "feature".

        Examples
        --------
        >>> import numpy as np
        >>> from promissing import Pruner
        >>> Pruner("feature").fit([[1.0, 2.0]]).transform([[np.nan, 4.0]])
        array([[0., 4., 1., 0.]])
        """
        check_is_fitted(self)
        X = self._validate(X, reset=False)
        return np.asarray(_formula.prune(X, self._layout, self._rule, xp=np), X.dtype)

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> NDArray[Any]:
        """Return the names of the output columns.

        Parameters
        ----------
        input_features : array-like of str, optional
            The names of the input columns. By default those seen in `fit`, or x0, x1, ...

        Returns
        -------
        ndarray of str
            The names of the input columns, then `share_missing` or, for every feature,
            `absent_<feature>`.

        Examples
        --------
        >>> from promissing import Pruner
        >>> Pruner().fit([[1.0, 2.0]]).get_feature_names_out(["age", "dose"]).tolist()
        ['age', 'dose', 'share_missing']
        """
        check_is_fitted(self)
        names = list(_check_feature_names_in(self, input_features))
        if not self._rule.per_feature:
            extra = ["share_missing"]
        elif self._layout.groups is None:
            extra = [f"absent_{name}" for name in names]
        else:
            extra = [f"absent_group{f}" for f in range(self._layout.n_features)]
        return np.asarray([*names, *extra], dtype=object)

    def _validate(self, X: ArrayLike, *, reset: bool) -> NDArray[Any]:
        """Return X as an array of floats that may have NaN, and check the number of columns."""
        dtype = [np.float64, np.float32]
        return validate_data(self, X, reset=reset, dtype=dtype, ensure_all_finite="allow-nan")  # type: ignore[no-any-return]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_layout")
