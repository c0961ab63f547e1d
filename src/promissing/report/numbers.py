"""How well numbers are predicted, and how far the ensemble members disagree."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import spearmanr

from promissing.report.classes import shares_missing, thin, trend
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
        "trend": trend(1 - found.known, np.abs(y - told)),
    }


def calibration(found: Judged, random_state: int = 0) -> dict[str, Any]:
    """The size of the errors by the ensemble spread: a diagnostic, not an uncertainty."""
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
    """The mean absolute error of the rows with at least a given known share.

    Rows are ranked by that share alone. The ensemble spread falls as values go missing, and would
    rank rows without known values first.
    """
    size = np.abs(found.y - found.output)
    levels, which = np.unique(-np.round(found.known, 9), return_inverse=True)
    rows = np.bincount(which).cumsum()
    running = np.bincount(which, size).cumsum() / rows
    share = rows / len(size)
    places = thin(len(levels))
    at = sorted({int(np.searchsorted(share, one - 1e-9)) for one in _COVERAGES}, reverse=True)
    return {
        "measure": "mean absolute error",
        "coverage": share[places],
        "value": running[places],
        "points": [
            {
                "coverage": share[place],
                "rows": int(rows[place]),
                "value": running[place],
                "limit": -levels[place],
            }
            for place in at
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
