"""Metrics of predictions: calibration, abstention, and the effect of missing values.

Probabilities have shape (n,), of one of two classes, or (n, K), of all classes. The truth y holds
the positions of the classes 0, ..., K - 1, or labels. With labels, `classes` gives their order, or
`positive` names the class whose probability (n,) is given.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.stats import rankdata

from promissing._validation import expect, is_whole

__all__ = [
    "AccuracyCoverage",
    "CalibrationTest",
    "Monotonicity",
    "RiskCoverage",
    "accuracy",
    "accuracy_coverage",
    "brier_score",
    "by_share_missing",
    "calibration_error",
    "calibration_test",
    "distance_from_prior",
    "monotonicity",
    "risk_coverage",
]

Float = NDArray[np.float64]

_BLOCK = 2**22  # Simulated labels in memory at a time.
_DIGITS = 12  # Numbers that agree to 12 digits count as equal: rounding errors are smaller.


class Monotonicity(NamedTuple):
    """Changes of a mean distance from step to step, as returned by `monotonicity`.

    Parameters
    ----------
    mean : ndarray of shape (steps,)
        The mean distance at every step.
    share : float
        The share of the changes that are falls.
    always : bool
        Whether all changes are falls.
    worst : float
        The largest change: the smallest fall if negative, or a rise.

    Examples
    --------
    >>> from promissing.metrics import monotonicity
    >>> monotonicity([3, 2, 1.5, 2.5]).worst
    1.0
    """

    mean: Float
    share: float
    always: bool
    worst: float


class AccuracyCoverage(NamedTuple):
    """Accuracy by coverage, as returned by `accuracy_coverage`.

    Parameters
    ----------
    coverage : ndarray of shape (n,)
        The share of the rows that are decided, from 1 / n to 1.
    accuracy : ndarray of shape (n,)
        The accuracy among these rows.
    certainty : ndarray of shape (n,)
        The lowest certainty among these rows.
    area : float
        The mean accuracy over all coverages.

    Examples
    --------
    >>> from promissing.metrics import accuracy_coverage
    >>> accuracy_coverage([1, 0], [0.75, 0.5]).certainty
    array([0.75, 0.5 ])
    """

    coverage: Float
    accuracy: Float
    certainty: Float
    area: float


@dataclass(frozen=True, eq=False, repr=False)
class RiskCoverage:
    """Risk by coverage when the least certain rows abstain, as returned by `risk_coverage`.

    Parameters
    ----------
    coverage : ndarray of shape (n,)
        The share of the rows that are decided, from 1 / n to 1.
    risk : ndarray of shape (n,)
        The error rate among these rows, or their mean squared error.
    area : float
        The mean risk over all coverages.
    kind : {"error rate", "mean squared error"}
        The kind of risk.
    groups : mapping of str to RiskCoverage
        The same among rows with about the same share of missing values, by the name of the group.

    Examples
    --------
    >>> from promissing.metrics import risk_coverage
    >>> risk_coverage([1, 0, 1, 0], [0.9, 0.2, 0.4, 0.1])
    RiskCoverage(4 rows, area 0.0625)
    """

    coverage: Float
    risk: Float
    area: float
    kind: str
    groups: Mapping[str, RiskCoverage] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"RiskCoverage({len(self.risk)} rows, area {self.area:.3g})"

    def to_frame(self) -> pd.DataFrame:
        """Return the curve, or the curves of all groups, as a frame.

        Returns
        -------
        DataFrame
            The columns `missing` (the group; "all" without groups), `coverage` and `risk`.

        Examples
        --------
        >>> from promissing.metrics import risk_coverage
        >>> risk_coverage([1, 0], [0.9, 0.8]).to_frame()
          missing  coverage  risk
        0     all       0.5   0.0
        1     all       1.0   0.5
        """
        curves = self.groups or {"all": self}
        frames = [
            pd.DataFrame({"missing": name, "coverage": one.coverage, "risk": one.risk})
            for name, one in curves.items()
        ]
        return pd.concat(frames, ignore_index=True)

    def plot(self, *, ax: Any = None) -> Any:
        """Draw the risk against the coverage, with one line for every group.

        Parameters
        ----------
        ax : Axes, default=None
            By default there is a new figure.

        Returns
        -------
        Axes
            The axes.

        Examples
        --------
        >>> import matplotlib
        >>> matplotlib.use("agg")
        >>> from promissing.metrics import risk_coverage
        >>> found = risk_coverage([1, 0, 1], [0.9, 0.8, 0.7], share_missing=[0, 0.5, 0.5])
        >>> len(found.plot().get_lines())
        2
        """
        import matplotlib.pyplot as plt

        if ax is None:
            size = (6.6 if self.groups else 5, 3.4)
            _, ax = plt.subplots(figsize=size, layout="constrained")
        curves = self.groups or {"": self}
        colors = plt.get_cmap("viridis")(np.linspace(0, 0.85, len(curves)))
        for (name, one), color in zip(curves.items(), colors, strict=True):
            ax.plot(one.coverage, one.risk, color=color, label=name and f"{name} missing")
        if self.groups:
            ax.legend(frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))
        ax.set(xlabel="share of rows decided", ylabel=self.kind, xlim=(0, 1), ylim=(0, None))
        return ax


class CalibrationTest(NamedTuple):
    """A calibration error and its distribution, as returned by `calibration_test`.

    Parameters
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

    Examples
    --------
    >>> from promissing.metrics import calibration_test
    >>> calibration_test([0, 1, 1, 1], [0.0, 1.0, 1.0, 1.0]).p_value
    1.0
    """

    error: float
    median: float
    upper: float
    p_value: float


def distance_from_prior(proba: ArrayLike, prior: ArrayLike) -> Float:
    """Compute the distance of predictions from the prior.

    The distance is the total variation: half the sum over the classes of `|p - prior|`. With two
    classes this is `|p - prior|` of either class. For numbers it is `|prediction - prior|`.

    Parameters
    ----------
    proba : array-like of shape (...) or (..., K)
        The probabilities of one class, or of all classes in the last axis, or predicted numbers.
    prior : float or array-like of shape (K,)
        The prediction to expect for a row with no known values. It is a float if `proba` holds
        the probabilities of one class, or numbers.

    Returns
    -------
    ndarray of shape (...)
        The distances.

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
    """Check whether a mean distance falls from step to step.

    Parameters
    ----------
    distance : array-like of shape (..., steps)
        The distances, such as those from the prior. All axes but the last are averaged.

    Returns
    -------
    Monotonicity
        The mean distance at every step, and how often and how far it falls.

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
    """Compute the expected calibration error.

    The rows are sorted by the probability of a class into bins of equal size. The error is the
    mean over the rows of the absolute difference between the mean probability and the frequency of
    the class in the bin. Equal probabilities share a bin, so that the order of the rows has no
    effect. With more than two classes, the errors of each class against the rest are averaged.
    The error of a perfectly calibrated model is not 0: `calibration_test` gives its distribution.

    Parameters
    ----------
    y : array-like of shape (n,)
        The true classes.
    proba : array-like of shape (n,) or (n, K)
        The probability of one of two classes, or of all classes.
    n_bins : int, default=15
        The number of bins.
    classes : array-like of shape (K,), default=None
        The labels of the classes in the order of `proba`; by default 0, ..., K - 1.
    positive : label, default=None
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
    expect(is_whole(n_bins) and n_bins >= 1, "n_bins", "a whole number >= 1", n_bins)
    truth, p = _read(y, proba, classes, positive)
    gaps = [np.bincount(_bins(p[:, j], n_bins), truth[:, j] - p[:, j]) for j in _scored(p.shape[1])]
    return float(np.mean([np.abs(gap).sum() / len(p) for gap in gaps]))


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
    y : array-like of shape (n,)
        The true classes.
    proba : array-like of shape (n,) or (n, K)
        The probability of one of two classes, or of all classes.
    n_bins : int, default=15
        The number of bins.
    classes : array-like of shape (K,), default=None
        The labels of the classes in the order of `proba`, as in `calibration_error`.
    positive : label, default=None
        The class whose probability `proba` (n,) holds, as in `calibration_error`.
    n_simulations : int, default=1000
        The number of times that labels are drawn.
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
    >>> found = calibration_test(y, np.full(1000, 0.02), n_simulations=100)
    >>> round(found.error, 3), bool(found.error > found.upper)
    (0.07, True)
    """
    good = is_whole(n_simulations) and n_simulations >= 1
    expect(good, "n_simulations", "a whole number >= 1", n_simulations)
    error = calibration_error(y, proba, n_bins=n_bins, classes=classes, positive=positive)
    _, p = _read(y, proba, classes, positive)
    rng, (n, k) = np.random.default_rng(random_state), p.shape
    # A class is drawn where a uniform number falls between two of the edges.
    edges = np.column_stack([np.zeros(n), p.cumsum(axis=1)[:, :-1], np.ones(n)])
    bins = []  # Of each scored class: the rows sorted by bin, where bins start, expected labels.
    for j in _scored(k):
        which = _bins(p[:, j], n_bins)
        order = np.argsort(which, kind="stable")
        starts = np.flatnonzero(np.diff(which[order], prepend=-1))
        bins.append((j, order, starts, np.add.reduceat(p[order, j], starts)))
    drawn = np.zeros(n_simulations)
    step = max(1, _BLOCK // n)
    for first in range(0, n_simulations, step):
        block = slice(first, min(first + step, n_simulations))
        u = rng.random((block.stop - first, n))
        for j, order, starts, expected in bins:
            hit = ((u >= edges[:, j]) & (u < edges[:, j + 1]))[:, order]
            hits = np.add.reduceat(hit, starts, axis=1, dtype=np.float64)
            drawn[block] += np.abs(hits - expected).sum(axis=1) / n
    drawn /= len(bins)
    median, upper = np.quantile(drawn, [0.5, 0.95])
    larger = int((drawn >= error - 1e-12).sum())
    return CalibrationTest(error, float(median), float(upper), (1 + larger) / (1 + n_simulations))


def _scored(n_classes: int) -> range:
    """Return the positions of the classes that have a calibration error of their own."""
    return range(1, 2) if n_classes == 2 else range(n_classes)


def _bins(p: Float, n_bins: int) -> NDArray[np.intp]:
    """Return the bin (n,) of every row; bins have equal size, and ties share a bin."""
    places = rankdata(np.round(p, _DIGITS)) - 0.5
    return np.asarray((places * n_bins / len(p)).astype(int))


def brier_score(
    y: ArrayLike, proba: ArrayLike, *, classes: ArrayLike | None = None, positive: Any = None
) -> float:
    """Compute the Brier score, half the mean squared distance of the probabilities from the truth.

    With two classes it is the mean of (p - y)^2. 0 is perfect; 1 is certain and wrong.

    Parameters
    ----------
    y : array-like of shape (n,)
        The true classes.
    proba : array-like of shape (n,) or (n, K)
        The probability of one of two classes, or of all classes.
    classes : array-like of shape (K,), default=None
        The labels of the classes in the order of `proba`, as in `calibration_error`.
    positive : label, default=None
        The class whose probability `proba` (n,) holds, as in `calibration_error`.

    Returns
    -------
    float
        The score, between 0 and 1.

    Examples
    --------
    >>> from promissing.metrics import brier_score
    >>> brier_score([0, 1], [0.5, 0.5])
    0.25
    """
    # scikit-learn's `brier_score_loss` takes several classes only from release 1.7.
    truth, p = _read(y, proba, classes, positive)
    return float(((p - truth) ** 2).sum(axis=1).mean() / 2)


def accuracy(
    y: ArrayLike, proba: ArrayLike, *, classes: ArrayLike | None = None, positive: Any = None
) -> float:
    """Compute the share of the rows whose most probable class is the true one.

    Parameters
    ----------
    y : array-like of shape (n,)
        The true classes.
    proba : array-like of shape (n,) or (n, K)
        The probability of one of two classes, or of all classes.
    classes : array-like of shape (K,), default=None
        The labels of the classes in the order of `proba`, as in `calibration_error`.
    positive : label, default=None
        The class whose probability `proba` (n,) holds, as in `calibration_error`.

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
    """Compute the accuracy by coverage when the least certain rows abstain.

    The certainty of a row is the highest class probability. Rows of equal certainty abstain in
    random order, over which the accuracy is averaged.

    Parameters
    ----------
    y : array-like of shape (n,)
        The true classes.
    proba : array-like of shape (n,) or (n, K)
        The probability of one of two classes, or of all classes.
    classes : array-like of shape (K,), default=None
        The labels of the classes in the order of `proba`, as in `calibration_error`.
    positive : label, default=None
        The class whose probability `proba` (n,) holds, as in `calibration_error`.

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
    coverage, rate, certainty = _by_certainty(right, p.max(axis=1))
    return AccuracyCoverage(coverage, rate, certainty, float(rate.mean()))


def risk_coverage(
    y: ArrayLike,
    prediction: ArrayLike,
    *,
    std: ArrayLike | None = None,
    share_missing: ArrayLike | None = None,
    classes: ArrayLike | None = None,
    positive: Any = None,
) -> RiskCoverage:
    """Compute the risk by coverage when the least certain rows abstain.

    For classes, the risk is the error rate, and the certainty is the highest class probability. For
    numbers, the risk is the mean squared error, and rows with a smaller standard deviation are more
    certain. Rows of equal certainty abstain in random order, over which the risk is averaged.

    Parameters
    ----------
    y : array-like of shape (n,)
        The true classes or numbers.
    prediction : array-like of shape (n,) or (n, K)
        The probability of one of two classes, or of all classes; with `std`, predicted numbers.
    std : array-like of shape (n,), default=None
        The predicted standard deviations of numbers, or any other size of the expected error.
    share_missing : array-like of shape (n,), default=None
        The share of missing values of every row. If given, there is a curve for every group of
        rows: 0 %, and up to 25, 50, 75 and 100 %.
    classes : array-like of shape (K,), default=None
        The labels of the classes in the order of `prediction`, as in `calibration_error`.
    positive : label, default=None
        The class whose probability `prediction` (n,) holds, as in `calibration_error`.

    Returns
    -------
    RiskCoverage
        The curve, its area, and the curves of the groups.

    Examples
    --------
    >>> from promissing.metrics import risk_coverage
    >>> round(risk_coverage([1, 0, 1, 0], [0.9, 0.2, 0.4, 0.4]).area, 3)
    0.104
    >>> risk_coverage([1.0, 2.0, 5.0], [1.5, 2.0, 3.0], std=[0.2, 0.1, 3.0]).risk.round(3)
    array([0.   , 0.125, 1.417])
    """
    if std is None:
        truth, p = _read(y, prediction, classes, positive)
        loss = (truth.argmax(axis=1) != p.argmax(axis=1)).astype(np.float64)
        certainty, kind = p.max(axis=1), "error rate"
    else:
        values, certainty = np.asarray(prediction, np.float64), -np.asarray(std, np.float64)
        loss, kind = (np.asarray(y, np.float64) - values) ** 2, "mean squared error"
        if loss.ndim != 1 or certainty.shape != loss.shape:
            raise ValueError(
                "`y`, `prediction` and `std` must have one number for every row. Received: shapes "
                f"{np.shape(y)}, {np.shape(prediction)} and {np.shape(std)}"
            )
    groups: dict[str, RiskCoverage] = {}
    if share_missing is not None:
        edges = np.linspace(0, 1, 5)
        share = np.asarray(share_missing, np.float64)
        if share.shape != loss.shape or not ((share >= 0) & (share <= 1)).all():
            raise ValueError(
                f"`share_missing` must hold a share between 0 and 1 for each of {len(loss)} rows."
            )
        which = np.searchsorted(edges, np.round(share, _DIGITS))
        for g in np.unique(which):
            name = "0 %" if g == 0 else f"{100 * edges[g - 1]:.0f} - {100 * edges[g]:.0f} %"
            coverage, risk, _ = _by_certainty(loss[which == g], certainty[which == g])
            groups[name] = RiskCoverage(coverage, risk, float(risk.mean()), kind)
    coverage, risk, _ = _by_certainty(loss, certainty)
    return RiskCoverage(coverage, risk, float(risk.mean()), kind, groups)


def _by_certainty(values: Float, certainty: Float) -> tuple[Float, Float, Float]:
    """Return coverage, mean value and lowest certainty among the most certain rows, each (n,)."""
    levels, which = np.unique(-np.round(certainty, _DIGITS), return_inverse=True)
    expected = np.bincount(which, values) / np.bincount(which)
    which = np.sort(which)
    decided = np.arange(1, len(values) + 1)
    means = np.asarray(expected[which].cumsum() / decided)
    return decided / len(values), means, np.asarray(-levels[which])


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
    """Compute metrics among rows with about the same share of missing values.

    Parameters
    ----------
    y : array-like of shape (n,)
        The true classes.
    proba : array-like of shape (n,) or (n, K)
        The probability of one of two classes, or of all classes.
    share_missing : array-like of shape (n,)
        The share of missing values of every row, between 0 and 1.
    bins : int or sequence of float, default=5
        The number of equal bins from 0 to 1, or their edges. A bin includes its upper edge and
        not its lower one. Complete rows are a bin of their own.
    prior : float or array-like of shape (K,), default=None
        The prior. If given, the mean distance from it is computed.
    n_bins : int, default=15
        The number of bins of the calibration error.
    classes : array-like of shape (K,), default=None
        The labels of the classes in the order of `proba`, as in `calibration_error`.
    positive : label, default=None
        The class whose probability `proba` (n,) holds, as in `calibration_error`.

    Returns
    -------
    DataFrame
        One line per bin that has rows: its edges `low` and `high`, the number `n` of its rows,
        their mean `share_missing`, `brier_score`, `calibration_error`, `accuracy` and, with
        `prior`, the mean `distance`.

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
    rising = edges.ndim == 1 and len(edges) > 1 and edges[0] == 0 and (np.diff(edges) > 0).all()
    expect(bool(rising), "bins", "a number of bins or rising edges from 0", bins)
    labels: dict[str, Any] = {"classes": classes, "positive": positive}
    lines = []
    # Rounded, because 0.6 of linspace is 0.6000000000000001.
    which = np.searchsorted(np.round(edges, _DIGITS), np.round(share, _DIGITS))
    for k in np.unique(which[which < len(edges)]):
        rows = which == k
        own = truth[rows], p[rows]
        line: dict[str, Any] = {
            "low": edges[max(k - 1, 0)],
            "high": edges[k],
            "n": int(rows.sum()),
            "share_missing": share[rows].mean(),
            "brier_score": brier_score(*own, **labels),
            "calibration_error": calibration_error(*own, n_bins=n_bins, **labels),
            "accuracy": accuracy(*own, **labels),
        }
        if prior is not None:
            line["distance"] = distance_from_prior(p[rows], prior).mean()
        lines.append(line)
    return pd.DataFrame(lines)


def _read(
    y: ArrayLike, proba: ArrayLike, classes: ArrayLike | None, positive: Any
) -> tuple[Float, Float]:
    """Return the truth as 0 and 1, and the probabilities, both of shape (n, K)."""
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
    other = ~hit.any(axis=1)
    if other.any():
        raise ValueError(
            f"`y` holds {truth[other].tolist()[0]!r}, which is not one of the classes "
            f"{labels.tolist()}. Give the labels in their order: `classes=model.classes_`."
        )
    return hit.astype(np.float64), p


def _positive_last(
    truth: NDArray[Any], p: Float, classes: ArrayLike | None, positive: Any
) -> NDArray[Any]:
    """Return the other class and the positive one, for probabilities (n,) of the positive one."""
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
    if not others and classes is None:  # All rows are positive: an object that equals no label.
        others = [object()]
    return np.array([*others, positive], dtype=object)
