"""Measures of knowing: whether a model is less sure when it knows less, and rightly so.

Probabilities are given for one of two classes, (n,), or for all classes, (n, K). The truth y holds
the numbers of the classes, or labels: `classes` gives their order, and `positive` names the class
whose probability (n,) is given, by default the second.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.stats import rankdata

__all__ = [
    "AccuracyCoverage",
    "CalibrationTest",
    "Monotonicity",
    "accuracy",
    "accuracy_coverage",
    "brier_score",
    "by_share_missing",
    "calibration_error",
    "calibration_test",
    "distance_from_prior",
    "monotonicity",
]

Float = NDArray[np.float64]

_BLOCK = 2**22  # Simulated labels held at a time.
_DIGITS = 12  # Probabilities that agree so far are the same: sums in another order differ beyond.


class Monotonicity(NamedTuple):
    """How a distance changes from step to step, on average.

    Attributes
    ----------
    mean : ndarray (steps,)
        The mean distance at every step.
    share : float
        The share of the steps, from one to the next, at which the mean falls.
    always : bool
        Whether it falls at every one of them.
    worst : float
        The largest change from one step to the next: the smallest fall, or a rise if positive.
    """

    mean: Float
    share: float
    always: bool
    worst: float


class AccuracyCoverage(NamedTuple):
    """Accuracy against coverage, the least certain abstaining first.

    Attributes
    ----------
    coverage : ndarray (n,)
        The share of the rows that are decided, from 1 / n to 1.
    accuracy : ndarray (n,)
        The share of these that is decided rightly.
    certainty : ndarray (n,)
        The probability of the decided class in the least certain of them.
    area : float
        The mean accuracy over all coverages.
    """

    coverage: Float
    accuracy: Float
    certainty: Float
    area: float


class CalibrationTest(NamedTuple):
    """A calibration error beside the errors of a perfectly calibrated model.

    Attributes
    ----------
    error : float
        The calibration error.
    median : float
        The median error if the predicted probabilities were exactly right.
    upper : float
        The 95 % quantile of the error if the predicted probabilities were exactly right. A larger
        `error` is evidence of miscalibration.
    p_value : float
        The probability of an error at least as large if the predicted probabilities were exactly
        right.
    """

    error: float
    median: float
    upper: float
    p_value: float


def distance_from_prior(proba: ArrayLike, prior: ArrayLike) -> Float:
    """How far predictions are from what is expected of somebody of whom nothing is known.

    Half the sum over the classes of `|p - prior|` (the total variation), which for two classes is
    `|p - prior|` of either; so it is for numbers too.

    Parameters
    ----------
    proba : array-like (...) or (..., K)
    prior : float or array-like (K,)
        A float if `proba` is of one class (or of numbers).

    Examples
    --------
    >>> from promissing.metrics import distance_from_prior
    >>> distance_from_prior([0.75, 0.5], 0.5)
    array([0.25, 0.  ])
    >>> distance_from_prior([[0.25, 0.75], [0.5, 0.5]], [0.5, 0.5])
    array([0.25, 0.  ])
    """
    p, q = np.asarray(proba, dtype=np.float64), np.asarray(prior, dtype=np.float64)
    if q.ndim == 0:
        return np.abs(p - q)
    if q.ndim != 1 or p.shape[-1:] != q.shape:
        raise ValueError(
            f"`prior` must be a number, or have one for each of the classes in the last axis of "
            f"`proba`, of shape {p.shape}. Received: shape {q.shape}"
        )
    return np.asarray(np.abs(p - q).sum(axis=-1) / 2)


def monotonicity(distance: ArrayLike) -> Monotonicity:
    """Whether a distance falls from step to step, averaged over all else.

    Parameters
    ----------
    distance : array-like (..., steps)
        Such as the distance from the prior, (orders, n, G + 1).

    Examples
    --------
    >>> from promissing.metrics import monotonicity
    >>> monotonicity([[3, 2, 1, 1], [5, 2, 3, 1]]).share
    0.6666666666666666
    """
    d = np.asarray(distance, dtype=np.float64)
    if d.ndim == 0 or d.shape[-1] < 2:
        raise ValueError(f"`distance` must have two steps or more. Received: shape {d.shape}")
    mean = d.reshape(-1, d.shape[-1]).mean(axis=0)
    change = np.diff(mean)
    falls = change < 0
    return Monotonicity(mean, float(falls.mean()), bool(falls.all()), float(change.max()))


def calibration_error(
    y: ArrayLike,
    proba: ArrayLike,
    *,
    n_bins: int = 15,
    classes: ArrayLike | None = None,
    positive: Any = None,
) -> float:
    """The expected calibration error: how far probabilities are from frequencies.

    Rows are sorted by the probability of a class into bins of equally many; the error is the mean,
    over the rows, of the distance between the mean probability and the frequency in their bin.
    Equal probabilities share a bin, so that the order of the rows does not matter. With more than
    two classes it is the mean of the errors of each class against the rest. The error of a
    perfectly calibrated model is not 0: `calibration_test` gives its distribution.

    Parameters
    ----------
    y : array-like (n,)
        The true classes.
    proba : array-like (n,) or (n, K)
        The probability of one of two classes, or of all classes.
    n_bins : int, default=15
        The number of bins.
    classes : array-like (K,), optional
        The labels of the classes in the order of `proba`; by default 0, ..., K - 1.
    positive : label, optional
        The class whose probability `proba` (n,) holds; by default the second of `classes`. With
        `positive`, `classes` is not needed.

    Returns
    -------
    float
        The error, between 0 and 1.

    Examples
    --------
    >>> from promissing.metrics import calibration_error
    >>> calibration_error([0, 0, 0, 1], [0.25, 0.25, 0.25, 0.25])
    0.0
    >>> calibration_error([0, 0, 1, 1], [0.25, 0.25, 0.75, 0.75])
    0.25
    >>> calibration_error(["ill", "well"], [0.75, 0.25], positive="ill")
    0.25
    """
    _check_bins(n_bins)
    truth, p = _one_of_two(*_read(y, proba, classes, positive))
    pairs = zip(truth.T, p.T, strict=True)
    return float(np.mean([_calibration(hit, own, n_bins) for hit, own in pairs]))


def calibration_test(
    y: ArrayLike,
    proba: ArrayLike,
    *,
    n_bins: int = 15,
    classes: ArrayLike | None = None,
    positive: Any = None,
    n_simulations: int = 1000,
    random_state: int | np.random.Generator | None = 0,
) -> CalibrationTest:
    """Compare the calibration error with that of a perfectly calibrated model.

    Labels are drawn from the predicted probabilities many times. The calibration errors of these
    labels are the distribution of the error if the predictions were exactly right, for the same
    number of rows and the same probabilities.

    Parameters
    ----------
    y, proba, n_bins, classes, positive
        As in `calibration_error`.
    n_simulations : int, default=1000
        How many times labels are drawn.
    random_state : int, numpy Generator or None, default=0
        The seed of the simulation.

    Returns
    -------
    CalibrationTest
        The error, the median and the 95 % quantile of the simulated errors, and the p-value.

    Examples
    --------
    >>> import numpy as np
    >>> from promissing.metrics import calibration_test
    >>> y = np.arange(1000) % 100 < 9  # 9 % are positive.
    >>> found = calibration_test(y, np.full(1000, 0.02))
    >>> round(found.error, 3), bool(found.error > found.upper)
    (0.07, True)
    """
    _check_bins(n_bins)
    if not isinstance(n_simulations, int | np.integer) or n_simulations < 1:
        raise ValueError(
            f"`n_simulations` must be a whole number >= 1. Received: {n_simulations!r}"
        )
    truth, p = _read(y, proba, classes, positive)
    rng, (n, k) = np.random.default_rng(random_state), p.shape
    # A class is drawn where a uniform number falls between two of the edges.
    edges = np.column_stack([np.zeros(n), p.cumsum(axis=1)[:, :-1], np.ones(n)])
    chosen = range(1, 2) if k == 2 else range(k)
    orders, starts, sums = [], [], []
    for j in chosen:
        bins = _bins(p[:, j], n_bins)
        orders.append(np.argsort(bins, kind="stable"))
        starts.append(np.flatnonzero(np.diff(bins[orders[-1]], prepend=-1)))
        sums.append(np.add.reduceat(p[orders[-1], j], starts[-1]))
    drawn = np.zeros(n_simulations)
    step = max(1, _BLOCK // n)
    for first in range(0, n_simulations, step):
        block = slice(first, min(first + step, n_simulations))
        u = rng.random((block.stop - first, n))
        for j, order, start, expected in zip(chosen, orders, starts, sums, strict=True):
            hit = ((u >= edges[:, j]) & (u < edges[:, j + 1]))[:, order]
            hits = np.add.reduceat(hit, start, axis=1, dtype=np.float64)
            drawn[block] += np.abs(hits - expected).sum(axis=1) / n
    drawn /= len(chosen)
    pairs = zip(*(part.T for part in _one_of_two(truth, p)), strict=True)
    error = float(np.mean([_calibration(hit, own, n_bins) for hit, own in pairs]))
    median, upper = np.quantile(drawn, [0.5, 0.95])
    larger = int((drawn >= error - 1e-12).sum())
    return CalibrationTest(error, float(median), float(upper), (1 + larger) / (1 + n_simulations))


def _check_bins(n_bins: Any) -> None:
    if not isinstance(n_bins, int | np.integer) or n_bins < 1:
        raise ValueError(f"`n_bins` must be a whole number >= 1. Received: {n_bins!r}")


def _one_of_two(truth: Float, p: Float) -> tuple[Float, Float]:
    """The second of two classes, or all of several: the columns that have an error of their own."""
    return (truth[:, 1:], p[:, 1:]) if p.shape[1] == 2 else (truth, p)


def _bins(p: Float, n_bins: int) -> NDArray[np.intp]:
    places = rankdata(np.round(p, _DIGITS)) - 0.5  # In the middle of 0..n, ties together.
    return np.asarray((places * n_bins / len(p)).astype(int))


def _calibration(hit: Float, p: Float, n_bins: int) -> float:
    return float(np.abs(np.bincount(_bins(p, n_bins), hit - p)).sum() / len(p))


def brier_score(
    y: ArrayLike, proba: ArrayLike, *, classes: ArrayLike | None = None, positive: Any = None
) -> float:
    """The Brier score: half the mean squared distance of the probabilities from the truth.

    For two classes it is the mean of (p - y)^2. 0 is perfect, 1 is certain and wrong.

    Parameters
    ----------
    y, proba, classes, positive
        As in `calibration_error`.

    Returns
    -------
    float
        The score.

    Examples
    --------
    >>> from promissing.metrics import brier_score
    >>> brier_score([0, 1], [0.5, 0.5])
    0.25
    """
    truth, p = _read(y, proba, classes, positive)
    return float(((p - truth) ** 2).sum(axis=1).mean() / 2)


def accuracy(
    y: ArrayLike, proba: ArrayLike, *, classes: ArrayLike | None = None, positive: Any = None
) -> float:
    """The share of the rows whose most probable class is the true one.

    Parameters
    ----------
    y, proba, classes, positive
        As in `calibration_error`.

    Returns
    -------
    float
        The share, between 0 and 1.

    Examples
    --------
    >>> from promissing.metrics import accuracy
    >>> accuracy(["ill", "well"], [0.2, 0.3], classes=["ill", "well"])
    0.5
    """
    truth, p = _read(y, proba, classes, positive)
    return float((truth.argmax(axis=1) == p.argmax(axis=1)).mean())


def accuracy_coverage(
    y: ArrayLike, proba: ArrayLike, *, classes: ArrayLike | None = None, positive: Any = None
) -> AccuracyCoverage:
    """Accuracy against coverage when the least certain rows abstain.

    The certainty of a row is the highest class probability. Rows of equal certainty abstain in
    random order, over which the accuracy is averaged.

    Parameters
    ----------
    y, proba, classes, positive
        As in `calibration_error`.

    Returns
    -------
    AccuracyCoverage
        Coverage, accuracy and certainty, from the most certain row to all rows.

    Examples
    --------
    >>> from promissing.metrics import accuracy_coverage
    >>> accuracy_coverage([1, 0, 1, 0], [0.9, 0.2, 0.4, 0.4]).accuracy
    array([1.        , 1.        , 0.83333333, 0.75      ])
    >>> accuracy_coverage(["ill", "well"], [0.9, 0.2], positive="ill").area
    1.0
    """
    truth, p = _read(y, proba, classes, positive)
    right = (truth.argmax(axis=1) == p.argmax(axis=1)).astype(np.float64)
    levels, which = np.unique(-np.round(p.max(axis=1), _DIGITS), return_inverse=True)
    expected = np.bincount(which, right) / np.bincount(which)
    which = np.sort(which)
    decided = np.arange(1, len(right) + 1)
    rate = expected[which].cumsum() / decided
    return AccuracyCoverage(decided / len(right), rate, -levels[which], float(rate.mean()))


def by_share_missing(
    y: ArrayLike,
    proba: ArrayLike,
    share_missing: ArrayLike,
    bins: int | Sequence[float] = 5,
    *,
    prior: ArrayLike | None = None,
    n_bins: int = 15,
    classes: ArrayLike | None = None,
    positive: Any = None,
) -> pd.DataFrame:
    """Measures of knowing among rows of which about the same share is missing.

    Parameters
    ----------
    y, proba, n_bins, classes, positive
        As in `calibration_error`.
    share_missing : array-like (n,)
        The share of each row that is missing, 0 to 1.
    bins : int or sequence of float, default=5
        How many equal bins from 0 to 1, or their edges. A bin holds its upper edge and not its
        lower; complete rows make up a bin of their own.
    prior : float or array-like (K,), optional
        If given, so is the mean distance from it.

    Returns
    -------
    DataFrame
        A line for every bin with rows in it: `low` and `high`, the number `n` of its rows, the mean
        `share_missing`, `brier_score`, `calibration_error`, `accuracy` and perhaps `distance`.

    Examples
    --------
    >>> from promissing.metrics import by_share_missing
    >>> by_share_missing([0, 1, 1], [0.2, 0.7, 0.7], [0, 0.9, 0.8])[["low", "high", "n"]]
       low  high  n
    0  0.0   0.0  1
    1  0.6   0.8  1
    2  0.8   1.0  1
    """
    share = np.asarray(share_missing, dtype=np.float64)
    truth, p = np.asarray(y), np.asarray(proba, dtype=np.float64)
    if share.shape != p.shape[:1] or not ((share >= 0) & (share <= 1)).all():
        raise ValueError(
            f"`share_missing` must hold a share between 0 and 1 for each of the {len(p)} rows."
        )
    if isinstance(bins, int | np.integer):
        edges = np.linspace(0, 1, max(bins, 0) + 1)
    else:
        edges = np.asarray(bins, dtype=np.float64)
    if edges.ndim != 1 or len(edges) < 2 or edges[0] != 0 or not (np.diff(edges) > 0).all():
        raise ValueError(
            f"`bins` must be a number of bins or rising edges from 0. Received: {bins!r}"
        )
    labels: dict[str, Any] = {"classes": classes, "positive": positive}
    lines = []
    # Rounded, because 0.6 of linspace is 0.6000000000000001.
    which = np.searchsorted(np.round(edges, _DIGITS), np.round(share, _DIGITS))
    for k in np.unique(which[which < len(edges)]):
        rows = which == k
        line: dict[str, Any] = {
            "low": edges[max(k - 1, 0)],
            "high": edges[k],
            "n": int(rows.sum()),
            "share_missing": share[rows].mean(),
            "brier_score": brier_score(truth[rows], p[rows], **labels),
            "calibration_error": calibration_error(truth[rows], p[rows], n_bins=n_bins, **labels),
            "accuracy": accuracy(truth[rows], p[rows], **labels),
        }
        if prior is not None:
            line["distance"] = distance_from_prior(p[rows], prior).mean()
        lines.append(line)
    return pd.DataFrame(lines)


def _read(
    y: ArrayLike, proba: ArrayLike, classes: ArrayLike | None, positive: Any
) -> tuple[Float, Float]:
    """The truth as 0 and 1, and the probabilities, both (n, K)."""
    p = np.asarray(proba, dtype=np.float64)
    truth = np.asarray(y)
    if positive is not None:
        classes = _positive_last(truth, p, classes, positive)
    if p.ndim == 1:
        p = np.column_stack([1 - p, p])
    if p.ndim != 2 or p.shape[1] < 2 or not len(p):
        raise ValueError(
            f"`proba` must be probabilities (n,) of one of two classes or (n, K) of all, of "
            f"at least one row. Received: shape {np.shape(proba)}"
        )
    if not ((p >= -1e-9) & (p <= 1 + 1e-9)).all():
        raise ValueError("`proba` must hold probabilities: numbers between 0 and 1.")
    labels = np.arange(p.shape[1]) if classes is None else np.asarray(classes)
    if labels.shape != p.shape[1:] or truth.shape != p.shape[:1]:
        raise ValueError(
            f"`y` must have one class for each of the {len(p)} rows of `proba`, and `classes` one "
            f"label for each of its {p.shape[1]} classes. Received: shapes {truth.shape}, "
            f"{labels.shape}"
        )
    hit = np.asarray(truth[:, None] == labels, dtype=bool)
    strange = ~hit.any(axis=1)
    if strange.any():
        raise ValueError(
            f"`y` holds {truth[strange].tolist()[0]!r}, which is not one of the classes "
            f"{labels.tolist()}. Give the labels in their order: `classes=model.classes_`."
        )
    return hit.astype(np.float64), p


def _positive_last(
    truth: NDArray[Any], p: Float, classes: ArrayLike | None, positive: Any
) -> NDArray[Any]:
    """The other class and the positive one, for probabilities (n,) of the latter."""
    if p.ndim != 1:
        raise ValueError(
            f"`positive` names the class of probabilities (n,). `proba` has shape {p.shape}: give "
            "`classes`, the labels of its columns, instead."
        )
    known = pd.unique(truth.ravel()) if classes is None else np.asarray(classes)
    others = [label for label in known.tolist() if label != positive]
    if len(others) > 1 or (classes is not None and len(others) == len(known)):
        raise ValueError(
            f"`positive` must be one of two classes, which are {known.tolist()}. "
            f"Received: {positive!r}"
        )
    if not others and classes is None:
        return np.array([object(), positive], dtype=object)  # All rows are positive.
    return np.array([*others, positive], dtype=object)
