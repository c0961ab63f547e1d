"""How predictions fade into the prior as information is lost, and what drives them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from promissing import metrics as knowing
from promissing.inspection import importance, information_loss, shapley, what_if
from promissing.report.classes import thin
from promissing.report.judging import Judged

__all__ = ["Groups", "drivers", "fading", "parts_of"]

Array = NDArray[Any]
Groups = Mapping[str, list[Any]] | None

_CELLS = 6e6  # Of the rows predicted for a section, about: some seconds.
_ORDERS = 20
_PATHS = 8
_EXACT = 12  # Groups whose Shapley values are exact.
_SAMPLES = 20  # Orders drawn for Shapley values where there are more.
_ENOUGH = 40  # Rows that Shapley values must be had for within the time.


def parts_of(found: Judged, rows: Array) -> Iterator[tuple[Any, pd.DataFrame, Array]]:
    """The given rows, by the model that speaks for them."""
    for model, own in found.parts:
        chosen = np.intersect1d(own, rows)
        if len(chosen):
            yield model, found.X.iloc[chosen], chosen


def fading(
    found: Judged, groups: Groups, labels: Sequence[str], *, random_state: int = 0
) -> dict[str, Any]:
    """Mean trajectories of some rows as groups vanish in random order, until nothing is left."""
    size = found.X.shape[1] if groups is None else len(groups)
    rows = _draw(found, _ORDERS * (size + 1), random_state)
    distances, paths, places, priors = [], [], [], []
    for model, X, own in parts_of(found, rows):
        lost = information_loss(
            model,
            X,
            groups,
            orders=_ORDERS,
            positive=found.positive,
            random_state=random_state,
        )
        distances.append(lost.distance.mean(axis=0))
        mean = lost.mean
        if mean.ndim == 3:  # Of several classes, the one that was decided for.
            mean = np.take_along_axis(mean, mean[:, :1].argmax(axis=2)[:, :, None], axis=2)[..., 0]
        paths.append(mean)
        places.append(own)
        priors.append(lost.prior)
    distance, path, place = np.concatenate(distances), np.concatenate(paths), np.concatenate(places)
    steps = thin(size + 1, 41)
    low, high = np.quantile(distance[:, steps], [0.25, 0.75], axis=0)
    ranked = np.argsort(path[:, 0], kind="stable")
    shown = ranked[thin(len(ranked), _PATHS)]
    falls = knowing.monotonicity(distance)
    single = [prior for prior in priors if isinstance(prior, float)]
    return {
        "rows": len(distance),
        "orders": _ORDERS,
        "groups": size,
        "steps": steps / size,
        "distance": distance.mean(axis=0)[steps],
        "low": low,
        "high": high,
        "prior": float(np.mean(single)) if single else None,
        "share_falling": falls.share,
        "paths": [{"name": labels[place[i]], "values": path[i, steps]} for i in shown],
    }


def drivers(found: Judged, groups: Groups, *, random_state: int = 0) -> dict[str, Any]:
    """The mean size of what each group contributes, and how often it is decisive."""
    size = found.X.shape[1] if groups is None else len(groups)
    cost = 2**size if size <= _EXACT else _SAMPLES * size
    rows = _draw(found, cost, random_state)
    fair = len(rows) >= min(_ENOUGH, len(found.y))
    if not fair:
        rows = _draw(found, size, random_state)
    frames, decisive = [], []
    for model, X, own in parts_of(found, rows):
        effects = what_if(model, X, groups=groups, positive=found.positive)
        told: Any = effects
        if fair:
            told = shapley(
                model,
                X,
                groups=groups,
                n_samples=_SAMPLES,
                positive=found.positive,
                random_state=random_state,
            )
        frames.append(importance(told).reindex(list(effects.groups)).assign(n=len(own)))
        if effects.kinds is not None:
            decisive.append((effects.kinds == "flips").sum(axis=0))
    weights = np.array([frame["n"].iloc[0] for frame in frames], dtype=float)
    values = np.stack([f[["importance", "standard_error", "known"]].to_numpy() for f in frames])
    mean = np.average(values, axis=0, weights=weights)
    # Models of different rows: their errors are independent.
    parts = np.nan_to_num(values[:, :, 1]) * weights[:, None] / weights.sum()
    error = np.sqrt((parts**2).sum(axis=0))
    flips = sum(decisive) / weights.sum() if decisive else None
    order = np.argsort(-mean[:, 0], kind="stable")
    names = list(frames[0].index)
    return {
        "method": "shapley" if fair else "what_if",
        "rows": int(weights.sum()),
        "items": [
            {
                "name": names[g],
                "importance": mean[g, 0],
                "error": error[g],
                "known": mean[g, 2],
                "decisive": None if flips is None else flips[g],
            }
            for g in order
        ],
    }


def _draw(found: Judged, cost: int, random_state: int) -> Array:
    """Some rows, at most 200, of which each is predicted so many times: five at least."""
    n, p = found.X.shape
    most = int(min(max(_CELLS // (cost * p), 5), 200, n))
    return np.sort(np.random.default_rng(random_state).choice(n, most, replace=False))
