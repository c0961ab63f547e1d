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
    """Turn a matrix with gaps into [x0, share missing], which any model can take.

    A gap becomes 0 and what is lost is told in columns of its own. A linear model, or the first
    layer of an MLP, fitted on this is exactly the NaN-native layer: the weight it learns for the
    share missing is w_c - b, the difference of mPROMISSING's compensation and the bias. With one
    column per feature it is the per-feature compensation.

    Standardise with observed means first (`StandardScaler` keeps NaN): the 0 is then the mean.

    Parameters
    ----------
    compensation : {"shared", "feature"}, default="shared"
        "shared" appends one column, the share of each row that is missing; "feature" appends the
        0/1 absence of every feature. ("none" is not to be had: it ties that weight to the bias,
        which only a layer can do.)
    groups : sequence of int, optional
        The feature each column belongs to, for columns that together encode one feature.
    shares : sequence of float, optional
        Each feature's share; equal by default. Only "shared" uses it.

    Attributes
    ----------
    n_features_in_ : int
        Number of input columns.
    feature_names_in_ : ndarray of str
        Names of the input columns; only if all of them are text.

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
        """Learn the number of columns and their names."""
        if self.compensation not in ("shared", "feature"):
            raise ValueError(
                f'`compensation` must be "shared" or "feature". Received: {self.compensation!r}'
            )
        X = self._validate(X, reset=True)
        self._layout = _formula.Layout(X.shape[1], self.groups, self.shares).arrays(
            np, per_feature=_formula.COMPENSATIONS[self.compensation].per_feature
        )
        return self

    def transform(self, X: ArrayLike) -> NDArray[Any]:
        """[x0, extra] of shape (n, p + 1) or (n, p + F)."""
        check_is_fitted(self)
        X = self._validate(X, reset=False)
        rule = _formula.COMPENSATIONS[self.compensation]
        return np.asarray(_formula.prune(X, self._layout, rule, xp=np), X.dtype)

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> NDArray[Any]:
        """The input names, then `share_missing` or `absent_<feature>` for every feature."""
        check_is_fitted(self)
        names = list(_check_feature_names_in(self, input_features))
        if not _formula.COMPENSATIONS[self.compensation].per_feature:
            extra = ["share_missing"]
        elif self._layout.groups is None:
            extra = [f"absent_{name}" for name in names]
        else:
            extra = [f"absent_group{f}" for f in range(self._layout.n_features)]
        return np.asarray([*names, *extra], dtype=object)

    def _validate(self, X: ArrayLike, *, reset: bool) -> NDArray[Any]:
        dtype = [np.float64, np.float32]
        return validate_data(self, X, reset=reset, dtype=dtype, ensure_all_finite="allow-nan")  # type: ignore[no-any-return]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_layout")
