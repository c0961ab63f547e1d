"""How well numbers are predicted, and whether a wide spread means a large error."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import spearmanr

from promissing.report.classes import shares_missing, thin
from promissing.report.judging import Judged

__all__ = ["calibration", "coverage", "prediction"]

Array = NDArray[Any]

_POINTS = 800  # Shown in a scatter plot.
_BINS = 8
_COVERAGES = (1.0, 0.95, 0.9, 0.8, 0.7, 0.6, 0.5, 0.3)
_MEASURES = {
    "R2": "the share of the variance that is explained; 0 is what the mean gives, 1 is perfect",
    "mean absolute error": "how far off a prediction is on average, in the units of the target",
    "root mean squared error": "the same, with large errors counting more",
    "rank correlation": "whether higher predictions go with higher truths; 1 is the same order",
}


def prediction(found: Judged, random_state: int = 0) -> dict[str, Any]:
    """Measures beside those of somebody who only knows the mean, and predictions by truth."""
    y, told = found.y, found.output
    whole, plain = _measures(y, told), _measures(y, np.full(len(y), y.mean()))
    folds = [_measures(y[rows], told[rows]) for _, rows in found.parts]
    shown = _some(len(y), random_state)
    return {
        "n": len(y),
        "folds": found.folds,
        "measures": [
            {
                "name": name,
                "value": whole[name],
                "spread": _deviation([one[name] for one in folds]),
                "baseline": plain[name],
                "better": "lower" if "error" in name else "higher",
                "what": what,
            }
            for name, what in _MEASURES.items()
        ],
        "scatter": {"truth": y[shown], "predicted": told[shown]},
        "by_missing": shares_missing(
            1 - found.known, {"error": np.abs(y - told), "spread": found.spread}
        ),
    }


def calibration(found: Judged, random_state: int = 0) -> dict[str, Any]:
    """The size of the errors by the spread of the ensemble."""
    size, spread = np.abs(found.y - found.output), found.spread
    parts = np.array_split(np.argsort(spread, kind="stable"), min(_BINS, len(spread)))
    shown = _some(len(size), random_state)
    return {
        "correlation": _rank_correlation(spread, size),
        "within": float((size <= 2 * spread).mean()),
        "bins": [
            {
                "n": len(rows),
                "spread": spread[rows].mean(),
                "error": size[rows].mean(),
                "deviation": np.sqrt((size[rows] ** 2).mean()),
            }
            for rows in parts
        ],
        "points": {"spread": spread[shown], "error": size[shown]},
    }


def coverage(found: Judged) -> dict[str, Any]:
    """The mean absolute error when the rows of the widest spread abstain."""
    size = np.abs(found.y - found.output)
    order = np.argsort(found.spread, kind="stable")
    n = len(order)
    share = np.arange(1, n + 1) / n
    running = size[order].cumsum() / np.arange(1, n + 1)
    places = thin(n, first=min(19, n - 1))
    at = {one: max(round(one * n), 1) - 1 for one in _COVERAGES}
    return {
        "measure": "mean absolute error",
        "area": running.mean(),
        "coverage": share[places],
        "value": running[places],
        "points": [
            {
                "coverage": one,
                "rows": place + 1,
                "value": running[place],
                "limit": found.spread[order][place],
            }
            for one, place in at.items()
        ],
    }


def _measures(y: Array, told: Array) -> dict[str, float]:
    residual = y - told
    variance = ((y - y.mean()) ** 2).mean()
    return {
        "R2": 1 - (residual**2).mean() / variance if variance > 0 else float("nan"),
        "mean absolute error": np.abs(residual).mean(),
        "root mean squared error": np.sqrt((residual**2).mean()),
        "rank correlation": _rank_correlation(y, told),
    }


def _rank_correlation(a: Array, b: Array) -> float:
    if len(a) < 3 or np.ptp(a) == 0 or np.ptp(b) == 0:
        return float("nan")
    return float(spearmanr(a, b).statistic)


def _some(n: int, random_state: int) -> Array:
    rng = np.random.default_rng(random_state)
    return np.sort(rng.choice(n, min(n, _POINTS), replace=False))


def _deviation(values: list[float]) -> float | None:
    finite = [value for value in values if np.isfinite(value)]
    return float(np.std(finite, ddof=1)) if len(finite) > 1 else None
