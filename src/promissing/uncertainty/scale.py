"""The size of the errors of a regressor, learned from calibration rows."""

from __future__ import annotations

from inspect import signature
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.model_selection import KFold

__all__ = ["ErrorSize", "provides_std"]

Float = NDArray[np.float64]

_FOLDS = 5
_ROWS_PER_LEAF = 50
_SMALLEST = 1e-3  # Smallest size, in units of the mean absolute error.


def provides_std(model: Any, X: Any) -> bool:
    """Return whether a regressor predicts a standard deviation for rows as those of X.

    Parameters
    ----------
    model : estimator
        A fitted regressor.
    X : frame or array
        Some rows.

    Returns
    -------
    bool
        Whether ``predict(X, return_std=True)`` works.
    """
    if "return_std" not in signature(model.predict).parameters:
        return False
    try:
        model.predict(X, return_std=True)
    except ValueError:  # A loss that provides none.
        return False
    return True


class ErrorSize:
    """The mean absolute error given the known values, the gaps and the prediction.

    Each calibration row is scored by a model that was not fitted on it; new rows get the mean of
    all models.

    Parameters
    ----------
    random_state : int
        Random seed.
    """

    def __init__(self, random_state: int) -> None:
        self._random_state = random_state

    def fit_predict(self, codes: Float, outputs: Float, errors: Float) -> Float:
        """Fit on calibration rows and return the sizes of their errors.

        Parameters
        ----------
        codes : ndarray (n, m, p)
            The values of n rows under m masks each, NaN where missing.
        outputs : ndarray (n, m)
            The predictions.
        errors : ndarray (n, m)
            The absolute errors.

        Returns
        -------
        ndarray (n, m)
            The sizes of the errors, cross-fitted.
        """
        n, m, p = codes.shape
        features = _features(codes.reshape(n * m, p), outputs.ravel()).reshape(n, m, -1)
        self._floor = _SMALLEST * max(float(errors.mean()), np.finfo(float).tiny)
        self._models = []
        sizes = np.empty((n, m))
        self._fold_of = np.empty(n, np.intp)
        folds = KFold(min(_FOLDS, n), shuffle=True, random_state=self._random_state)
        for k, (train, test) in enumerate(folds.split(codes)):
            self._fold_of[test] = k
            model = HistGradientBoostingRegressor(
                learning_rate=0.05,
                max_iter=80,
                max_leaf_nodes=8,
                # Masks of the same row are no further information.
                min_samples_leaf=_ROWS_PER_LEAF * m,
                random_state=self._random_state,
            )
            model.fit(features[train].reshape(len(train) * m, -1), errors[train].ravel())
            self._models.append(model)
            sizes[test] = self._positive(
                model.predict(features[test].reshape(len(test) * m, -1))
            ).reshape(len(test), m)
        return sizes

    def predict(self, codes: Float, outputs: Float, rows: Any = None) -> Float:
        """Return the sizes of the errors of new rows, or of calibration rows under other masks.

        Parameters
        ----------
        codes : ndarray (n, p)
            The values, NaN where missing.
        outputs : ndarray (n,)
            The predictions.
        rows : ndarray of int (n,), optional
            The positions of calibration rows: each is predicted by the model not fitted on it.

        Returns
        -------
        ndarray (n,)
            The sizes.
        """
        features = _features(codes, outputs)
        sizes = np.stack([self._positive(model.predict(features)) for model in self._models])
        if rows is None:
            return np.asarray(sizes.mean(axis=0))
        return np.asarray(sizes[self._fold_of[rows], np.arange(len(rows))])

    def _positive(self, sizes: Float) -> Float:
        return np.maximum(sizes, self._floor)


def _features(codes: Float, outputs: Float) -> Float:
    return np.column_stack([codes, np.isnan(codes).mean(axis=1), outputs])
