"""Whether one strategy is better than another, by the scores of the same folds."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import stdtr

__all__ = ["corrected_t_test", "holm"]

_DIGITS = 12  # Scores that agree so far are the same: sums in another order differ beyond.


def corrected_t_test(differences: ArrayLike, test_share: float) -> float:
    """The two-sided p-value of the corrected resampled t-test of Nadeau and Bengio (2003).

    Training sets of different folds overlap, so the variance of their differences is too small by
    far. The test takes (1 / J + n_test / n_train) s^2 for the variance of the mean of J
    differences, instead of s^2 / J, with J - 1 degrees of freedom.

    Parameters
    ----------
    differences : array-like (J,)
        Of the scores of two models on the same folds, two or more.
    test_share : float
        n_test / n_train: 1 / (k - 1) in k-fold cross-validation.

    Examples
    --------
    >>> from promissing.compare.paired import corrected_t_test
    >>> round(corrected_t_test([0.01, 0.02, 0.03, 0.02, 0.02], 0.25), 4)
    0.0405
    """
    d = np.round(np.asarray(differences, dtype=np.float64), _DIGITS)
    if d.ndim != 1 or len(d) < 2:
        raise ValueError(f"`differences` must be two or more. Received: shape {d.shape}")
    mean, variance = d.mean(), d.var(ddof=1)
    if mean == 0:
        return 1.0
    if variance == 0:
        return 0.0
    t = mean / np.sqrt((1 / len(d) + test_share) * variance)
    return float(2 * stdtr(len(d) - 1, -abs(t)))


def holm(p: ArrayLike) -> NDArray[np.float64]:
    """The p-values (m,) corrected for their number by Holm's step-down method.

    Examples
    --------
    >>> from promissing.compare.paired import holm
    >>> holm([0.01, 0.04, 0.03])
    array([0.03, 0.06, 0.06])
    """
    p = np.asarray(p, dtype=np.float64)
    order = np.argsort(p, kind="stable")
    stepped = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    corrected = np.empty_like(p)
    corrected[order] = np.minimum(stepped, 1.0)
    return corrected
