"""How well classes are predicted, how sure the model is, and what abstaining is worth."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm, rankdata, spearmanr
from sklearn.metrics import balanced_accuracy_score, log_loss, roc_auc_score

from promissing import metrics as knowing
from promissing.report.judging import Judged, positions

__all__ = ["calibration", "coverage", "prediction", "shares_missing", "thin", "trend"]

Array = NDArray[Any]

_BINS = 10  # Of the reliability chart.
_COVERAGES = (1.0, 0.95, 0.9, 0.8, 0.7, 0.6, 0.5, 0.3)
_MISSING = (0.2, 0.4, 0.6, 0.8, 1.0)  # Upper edges; complete rows stand alone.
_MEASURES = {
    "AUC": "the chance that of two rows of different classes the right one gets the higher "
    "probability; 0.5 is a coin, 1 is perfect",
    "accuracy": "the share of the rows decided rightly",
    "balanced accuracy": "the mean over the classes of the share decided rightly, so that a rare "
    "class counts as much as a frequent one",
    "Brier score": "the mean squared distance of the probabilities from what came true; 0 is "
    "perfect",
    "log loss": "the surprise at what came true; 0 is perfect, and confident errors cost most",
}
_EVIDENCE = 0.05  # A smaller p-value is called evidence.
_LESS = ("Brier score", "log loss")


def prediction(found: Judged) -> dict[str, Any]:
    """Measures beside those of somebody who only knows the prior, and what was taken for what."""
    classes, y, proba = _classes(found), found.y, found.output
    whole = _measures(y, proba, classes)
    prior = np.array([(y == label).mean() for label in classes])
    plain = _measures(y, np.tile(prior, (len(y), 1)), classes)
    folds = [_measures(y[rows], proba[rows], classes) for _, rows in found.parts]
    decided, sure = proba.argmax(axis=1), proba.max(axis=1)
    truth = positions(classes, y)
    counts = np.zeros((len(classes), len(classes)), dtype=int)
    np.add.at(counts, (truth, decided), 1)
    right = truth == decided
    return {
        "n": len(y),
        "folds": found.folds,
        "measures": [
            {
                "name": name,
                "value": whole[name],
                "spread": _spread([one[name] for one in folds]),
                "baseline": plain[name],
                "better": "lower" if name in _LESS else "higher",
                "what": _MEASURES[name],
            }
            for name in whole
        ],
        "confusion": counts,
        "certainty": sure.mean(),
        "histogram": _histogram(proba, truth, right, classes),
        "by_missing": shares_missing(
            1 - found.known, {"accuracy": right, "certainty": sure, "spread": found.spread}
        ),
        "trend": trend(1 - found.known, sure),
    }


def calibration(found: Judged) -> dict[str, Any]:
    """Probabilities against frequencies: of the positive one of two classes, or of each of several.

    The error stands beside the errors of labels that were drawn from the probabilities.
    """
    classes, y, proba = _classes(found), found.y, found.output
    own = slice(1, None) if len(classes) == 2 else slice(None)
    hit = (y[:, None] == classes)[:, own].astype(float)
    p = proba[:, own]
    test = knowing.calibration_test(y, proba, classes=classes)
    sure = proba.max(axis=1)
    excess = sure - (found.decision == y)
    deviation = np.sqrt((sure * (1 - sure)).sum())
    z = excess.sum() / deviation if deviation > 0 else 0.0
    return {
        **test._asdict(),
        "excess": excess.mean(),
        "overconfident": bool(2 * norm.sf(abs(z)) < _EVIDENCE and z > 0),
        "underconfident": bool(2 * norm.sf(abs(z)) < _EVIDENCE and z < 0),
        "bins": _reliability(hit.ravel(), p.ravel()),
        "by_class": [
            {
                "name": label,
                "n": int(hit[:, k].sum()),
                "error": knowing.calibration_error(hit[:, k].astype(int), p[:, k]),
            }
            for k, label in enumerate(classes[own])
        ],
    }


def coverage(found: Judged) -> dict[str, Any]:
    """Accuracy among the most certain rows, for every share of rows that is decided."""
    classes = _classes(found)
    curve = knowing.accuracy_coverage(found.y, found.output, classes=classes)
    places = thin(len(curve.coverage), first=min(19, len(found.y) - 1))
    n = len(curve.coverage)
    at = {share: max(round(share * n), 1) - 1 for share in _COVERAGES}
    return {
        "measure": "accuracy",
        "area": curve.area,
        "coverage": curve.coverage[places],
        "value": curve.accuracy[places],
        "points": [
            {
                "coverage": share,
                "rows": place + 1,
                "value": curve.accuracy[place],
                "limit": curve.certainty[place],
            }
            for share, place in at.items()
        ],
    }


def shares_missing(share: Array, values: dict[str, Array]) -> list[dict[str, Any]]:
    """The means of values among rows of which about the same share is missing."""
    edges = (0.0, *_MISSING)
    which = np.searchsorted(np.round(edges, 9), np.round(share, 9))
    lines = []
    for k in np.unique(which):
        rows = which == k
        means = {name: np.asarray(value)[rows].mean() for name, value in values.items()}
        line = {"low": edges[max(k - 1, 0)], "high": edges[k], "n": int(rows.sum())}
        lines.append({**line, "missing": share[rows].mean(), **means})
    return lines


def trend(share: Array, values: Array) -> dict[str, Any]:
    """Whether values rise or fall with the share of a row that is missing, over all rows.

    Spearman's rank correlation and its p-value. `direction` is "rises" or "falls" if there is
    evidence, and the means, which the chart shows, go the same way; else "none". It is None if
    there is nothing to compare.
    """
    share, values = np.round(share, 9), np.asarray(values, dtype=float)
    if len(share) < 3 or np.ptp(share) == 0:
        return {"correlation": None, "p_value": None, "direction": None}
    if np.ptp(values) == 0:
        return {"correlation": 0.0, "p_value": 1.0, "direction": "none"}
    rank, p = spearmanr(share, values)
    slope = np.cov(share, values)[0, 1]
    clear = p < _EVIDENCE and np.sign(slope) == np.sign(rank)
    direction = "none" if not clear else "rises" if rank > 0 else "falls"
    return {"correlation": float(rank), "p_value": float(p), "direction": direction}


def thin(n: int, most: int = 160, first: int = 0) -> Array:
    """At most so many of n places, evenly spread, from the first to the last."""
    return np.unique(np.linspace(first, n - 1, most).round().astype(int))


def _measures(y: Array, proba: Array, classes: Array) -> dict[str, float]:
    truth = positions(classes, y)
    decided = proba.argmax(axis=1)
    present = np.unique(truth)
    pairs = present[1:] if len(classes) == 2 else present
    aucs = [roc_auc_score(truth == k, proba[:, k]) for k in pairs if 0 < (truth == k).mean() < 1]
    clipped = np.clip(proba, 1e-9, None)
    found = {
        "AUC": float(np.mean(aucs)) if aucs else float("nan"),
        "accuracy": float((truth == decided).mean()),
        "balanced accuracy": float("nan"),
        "Brier score": knowing.brier_score(y, proba, classes=classes),
        "log loss": float(
            log_loss(
                truth,
                clipped / clipped.sum(axis=1, keepdims=True),
                labels=np.arange(len(classes)),
            )
        ),
    }
    if set(decided) <= set(present):
        found["balanced accuracy"] = float(balanced_accuracy_score(truth, decided))
    return found


def _histogram(proba: Array, truth: Array, right: Array, classes: Array) -> dict[str, Any]:
    """How often which probability was given: by truth, or by whether the decision was right."""
    if len(classes) == 2:
        values, split = proba[:, 1], truth == 1
        low, names = 0.0, [f"truly {classes[1]}", f"truly {classes[0]}"]
    else:
        values, split = proba.max(axis=1), right
        low, names = 0.0, ["decided rightly", "decided wrongly"]
    edges = np.linspace(low, 1, 21)
    return {
        "edges": edges,
        "groups": [
            {"name": name, "counts": np.histogram(values[rows], edges)[0]}
            for name, rows in zip(names, (split, ~split), strict=True)
        ],
    }


def _reliability(hit: Array, p: Array) -> list[dict[str, Any]]:
    """Bins of equally many rows, equal probabilities together, with 90 % intervals (Wilson)."""
    places = rankdata(np.round(p, 12)) - 0.5
    which = (places * min(_BINS, len(p)) / len(p)).astype(int)
    z, bins = 1.645, []
    for k in np.unique(which):
        rows = which == k
        n, observed = int(rows.sum()), float(hit[rows].mean())
        centre = (observed + z * z / (2 * n)) / (1 + z * z / n)
        half = z * np.sqrt(observed * (1 - observed) / n + z * z / (4 * n * n)) / (1 + z * z / n)
        bins.append(
            {
                "n": n,
                "predicted": p[rows].mean(),
                "observed": observed,
                "low": centre - half,
                "high": centre + half,
            }
        )
    return bins


def _spread(values: list[float]) -> float | None:
    finite = [value for value in values if np.isfinite(value)]
    return float(np.std(finite, ddof=1)) if len(finite) > 1 else None


def _classes(found: Judged) -> Array:
    assert found.classes is not None
    return found.classes
