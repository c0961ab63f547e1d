"""The sections of a report on uncertainty: sets or intervals, and what to measure next."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from promissing.inspection.masked import MaskedPredictions
from promissing.missingness import remove
from promissing.report.evaluate import Predictions, records
from promissing.uncertainty import (
    AcquisitionPlan,
    ConformalClassifier,
    ConformalRegressor,
    CoverageByMissing,
)

__all__ = ["measure_next", "sets_and_intervals"]

Array = NDArray[Any]
Groups = Mapping[str, list[Any]] | None

LEVEL = 0.9
FEWEST = 30  # Rows that calibrate the sets of as many other rows.
_MOST = 2_000  # Rows for which sets are made.
_OUTAGE_ROWS = 400
_OUTAGE_CELLS = 2e6  # Predicted cells for the costs of outages.


def sets_and_intervals(
    rows: Predictions, random_state: int
) -> tuple[dict[str, Any] | None, dict[int, str]]:
    """Return the coverage of prediction sets or intervals, and the set of every row as text.

    The rows of each model are divided into two halves. Each half calibrates the sets of the other
    one, so no row is in the calibration of its own set. The coverage by the share of missing values
    also counts every row a second time, after a random share of its values was removed. The result
    is None if there are too few rows.
    """
    rng = np.random.default_rng(random_state)
    share = min(1.0, _MOST / len(rows.y))
    covered, sizes, shares, removed = [], [], [], []
    said: dict[int, str] = {}
    for model, own in rows.models:
        usable = own
        if rows.classes is not None:  # A rare class may be absent from the training rows.
            usable = own[np.isin(rows.y[own], model.classes_)]
        drawn = rng.permutation(usable)[: int(share * len(usable))]
        halves = drawn[: len(drawn) // 2], drawn[len(drawn) // 2 :]
        if len(halves[0]) < FEWEST:
            return None, {}
        for calibration, judged in (halves, halves[::-1]):
            X = rows.X.iloc[judged]
            lost = rng.random(X.shape) < rng.random((len(X), 1))
            conformal = _calibrate(rows, model, calibration, random_state)
            for less, own_X in ((False, X), (True, remove(X, lost))):
                hit, size, texts = _predict(conformal, own_X, rows.y[judged])
                covered.append(hit)
                sizes.append(size)
                shares.append(1 - model.known_share(own_X))
                removed.append(np.full(len(hit), less))
                if not less:
                    said |= dict(zip(judged.tolist(), texts, strict=True))
    hit, size, missing, again = map(np.concatenate, (covered, sizes, shares, removed))
    table = CoverageByMissing.of(hit, size, missing, LEVEL)
    hit, size = hit[~again], size[~again]
    found = {
        "level": LEVEL,
        "rows": len(hit),
        "coverage": hit.mean(),
        "size": size.mean(),
        "constant": _constant_size(rows),
        "certain": None if rows.classes is None else (size == 1).mean(),
        "by_missing": table.to_frame().to_dict("records"),
    }
    return found, said


def _calibrate(rows: Predictions, model: Any, calibration: Array, random_state: int) -> Any:
    """Return the model with calibrated sets or intervals."""
    wrapper = ConformalRegressor if rows.classes is None else ConformalClassifier
    made = wrapper(model, prefit=True, confidence_level=LEVEL, random_state=random_state)
    y = rows.y.astype(float) if rows.classes is None else rows.y
    return made.conformalize(rows.X.iloc[calibration], y[calibration])


def _predict(conformal: Any, X: Any, y: Array) -> tuple[Array, Array, list[str]]:
    """Return which sets hold the truth, their sizes, and the sets as text."""
    if isinstance(conformal, ConformalClassifier):
        sets = np.asarray(conformal.predict_set(X))
        labels = np.asarray(conformal.classes_)
        texts = [" or ".join(map(str, labels[own].tolist())) for own in sets]
        return sets[np.arange(len(y)), np.searchsorted(labels, y)], sets.sum(axis=1) * 1.0, texts
    low, high = np.asarray(conformal.predict_interval(X)).T
    texts = [f"{a:.4g} to {b:.4g}" for a, b in zip(low, high, strict=True)]
    return (low <= y) & (y <= high), high - low, texts


def _constant_size(rows: Predictions) -> float:
    """Return the width of one interval for all rows; the number of classes of a classifier."""
    if rows.classes is not None:
        return float(len(rows.classes))
    low, high = np.quantile(rows.y.astype(float), [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(high - low)


def measure_next(
    explained: Predictions, groups: Groups, unit: str, random_state: int
) -> dict[str, Any]:
    """Return the order in which to obtain values, and what the outage of each group costs.

    The order is that of the first model and the rows it was not trained on. The costs are measured
    on labelled rows of all models.
    """
    model, own = explained.models[0]
    plan = AcquisitionPlan(model, explained.X.iloc[own], groups=groups, random_state=random_state)
    gains = plan.gains[plan.order]
    total = gains.sum()
    left = 1 - np.cumsum(gains) / total if total > 0 else np.ones(len(gains))
    names = [str(plan.groups[g]) for g in plan.order]
    return {
        "unit": unit,
        "rows": min(len(own), 500),
        "order": records(name=names, gain=gains, left=left),
        "outages": _outages(explained, groups, random_state),
    }


def _outages(explained: Predictions, groups: Groups, random_state: int) -> list[dict[str, Any]]:
    """Return the score with and without each group, the largest fall first."""
    size = explained.X.shape[1] if groups is None else len(groups)
    most = int(np.clip(_OUTAGE_CELLS // (size * explained.X.shape[1]), 20, _OUTAGE_ROWS))
    rng = np.random.default_rng(random_state)
    n = len(explained.y)
    drawn = np.sort(rng.permutation(n)[: max(most, 1)])
    falls, names = [], []
    for model, X, own in explained.by_model(drawn):
        rows = MaskedPredictions(model, X, groups)
        names = [str(name) for name in rows.table.groups]
        masks = np.broadcast_to(np.eye(size, dtype=bool), (len(own), size, size))
        falls.append(_falls(rows, rows.under(masks), explained.y[own]))
    whole = np.concatenate(falls)
    if explained.classes is None:
        whole = whole / max(float(np.var(explained.y.astype(float))), 1e-300)
    mean = whole.mean(axis=0)
    error = whole.std(axis=0, ddof=1) / np.sqrt(len(whole)) if len(whole) > 1 else 0 * mean
    order = np.argsort(-mean, kind="stable")
    return records(name=[names[g] for g in order], fall=mean[order], error=error[order])


def _falls(rows: MaskedPredictions, outputs: Array, truth: Array) -> Array:
    """Return by how much each row is predicted worse (n, G): rightness, or squared error."""
    if rows.classes is None:
        y = truth.astype(float)[:, None]
        return np.asarray((outputs[..., 0] - y) ** 2 - (rows.outputs - y) ** 2)
    decided = rows.classes[outputs.argmax(axis=2)] == truth[:, None]
    before = rows.classes[rows.outputs.argmax(axis=1)] == truth
    return np.asarray(before[:, None].astype(float) - decided)
