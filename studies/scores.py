"""Scores of many models at once."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

__all__ = ["auc", "smse"]


def auc(y: NDArray[Any], scores: NDArray[Any]) -> NDArray[np.float64]:
    """The area under the ROC curve of every row of scores (..., n), given labels 0/1 (..., n).

    Ties count one half, as in `sklearn.metrics.roc_auc_score`. NaN where a score is NaN or a class
    is absent.
    """
    y, scores = np.broadcast_arrays(np.asarray(y, bool), scores)
    order = np.argsort(scores, axis=-1)  # NaN comes last.
    ordered = np.take_along_axis(scores, order, -1)
    positive = np.take_along_axis(y, order, -1)
    ranks = np.arange(1.0, scores.shape[-1] + 1)
    total = np.asarray(positive @ ranks)
    tied = (ordered[..., 1:] == ordered[..., :-1]).any(axis=-1)
    if tied.any():
        middle = rankdata(ordered[tied], axis=-1)
        total[tied] = (middle * positive[tied]).sum(axis=-1)
    n_positive = np.count_nonzero(y, axis=-1)
    pairs = n_positive * (y.shape[-1] - n_positive)
    unfit = np.isnan(ordered[..., -1]) | (pairs == 0)
    area = (total - n_positive * (n_positive + 1) / 2) / np.where(pairs > 0, pairs, 1)
    return np.where(unfit, np.nan, area)


def smse(y: NDArray[Any], predictions: NDArray[Any]) -> NDArray[np.float64]:
    """The mean squared error of every row (..., n) over the variance of y (..., n)."""
    with np.errstate(over="ignore", invalid="ignore"):
        error = np.mean((predictions - y) ** 2, axis=-1) / np.var(y, axis=-1)
    return np.asarray(np.where(np.isfinite(error), error, np.nan), np.float64)
