"""Rows to browse: what was said of each, and what would be said if something were unknown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from promissing.inspection import smallest_change, what_if
from promissing.report.fading import Groups, parts_of
from promissing.report.formats import clip, number, plain
from promissing.report.judging import Judged

__all__ = ["KINDS", "browse", "outcomes"]

Array = NDArray[Any]

KINDS = ("flips", "supports", "opposes", "none", "raises", "lowers")
_BARS = 30  # Kept for a row at each level.
_CELLS = 3e7  # Of the rows predicted to find the smallest change; beyond, it is not looked for.


def outcomes(found: Judged) -> tuple[list[str], Array]:
    """The kinds of outcome, and which of them every row is."""
    if found.classes is None:
        size = np.abs(found.y - found.output)
        edge = np.quantile(size, 0.8)
        return ["close", "far off"], (size > edge).astype(int)
    right = found.decision == found.y
    if len(found.classes) > 2:
        return ["right", "wrong"], (~right).astype(int)
    positive = found.decision == found.positive
    kinds = ("true positive", "true negative", "false positive", "false negative")
    names = [f"{kind} for {clip(found.positive, 30)}" for kind in kinds]
    return names, np.where(right, np.where(positive, 0, 1), np.where(positive, 2, 3))


def browse(
    found: Judged,
    groups: Groups,
    labels: Sequence[str],
    *,
    limit: int = 200,
    random_state: int = 0,
) -> dict[str, Any]:
    """Some rows of every kind of outcome, each with counterfactual bars.

    With groups there are bars for these and for single columns; without, for columns. `labels`
    are what all the rows of `found` are called.
    """
    names, outcome = outcomes(found)
    rows = _pick(outcome, limit, random_state)
    levels: list[tuple[str, Groups]] = [("column", None)]
    if groups is not None:
        levels.insert(0, ("modality", groups))
    items: dict[int, dict[str, Any]] = {}
    spellings: list[list[str]] = []
    for model, X, own in parts_of(found, rows):
        cells, members = X.astype(object).to_numpy(), _positions(X, groups)
        told = [what_if(model, X, groups=level, positive=found.positive) for _, level in levels]
        spellings = spellings or [[str(name) for name in one.groups] for one in told]
        smallest = _smallest(model, X, groups, len(rows))
        for i, place in enumerate(own):
            items[int(place)] = {
                "id": labels[place],
                "truth": _told(found.y[place]),
                "decision": _told(found.decision[place]),
                "prediction": told[0].prediction[i],
                "sure": None if found.classes is None else found.output[place].max(),
                "spread": found.spread[place],
                "known": found.known[place],
                "outcome": int(outcome[place]),
                "bars": [
                    _bars(one, i, cells[i], None if level is None else members)
                    for one, (_, level) in zip(told, levels, strict=True)
                ],
                "smallest": None if smallest is None else smallest[i],
            }
    return {
        "shown": len(items),
        "judged": len(found.y),
        "outcomes": [
            {"name": name, "judged": int((outcome == k).sum()),
             "shown": int((outcome[rows] == k).sum())}
            for k, name in enumerate(names)
        ],
        "levels": [
            {"name": what, "groups": names_}
            for (what, _), names_ in zip(levels, spellings, strict=True)
        ],
        "items": [items[place] for place in sorted(items)],
    }  # fmt: skip


def _pick(outcome: Array, limit: int, random_state: int) -> Array:
    """Rows of every kind: as many of the rare as there are, up to an equal share."""
    n = len(outcome)
    if n <= limit:
        return np.arange(n)
    rng = np.random.default_rng(random_state)
    shuffled = rng.permutation(n)
    # The k-th row of its kind comes before the k + 1-st of any other.
    turn = np.empty(n, dtype=int)
    for kind in np.unique(outcome):
        own = shuffled[outcome[shuffled] == kind]
        turn[own] = np.arange(len(own))
    return np.sort(shuffled[np.argsort(turn[shuffled], kind="stable")][:limit])


def _positions(X: pd.DataFrame, groups: Groups) -> list[Array]:
    """Where the columns of every group stand."""
    return [X.columns.get_indexer(columns) for columns in (groups or {}).values()]


def _bars(told: Any, i: int, cells: Array, members: list[Array] | None) -> dict[str, Any]:
    """The largest effects of a row as [group, effect, kind, text], and what is unknown in it."""
    known = np.flatnonzero(told.known[i])
    order = known[np.argsort(-np.abs(told.effects[i, known]), kind="stable")]
    bars = []
    for g in order[:_BARS]:
        effect = told.effects[i, g]
        if told.kinds is not None:
            kind = str(told.kinds[i, g])
        else:  # Without it the prediction falls: it raises it.
            kind = "none" if abs(effect) < 1e-9 else "raises" if effect < 0 else "lowers"
        if members is None:
            text = _told(cells[g])
        else:
            own = members[g]
            text = f"{int(pd.notna(cells[own]).sum())} of {len(own)} known"
        bars.append([int(g), float(effect), KINDS.index(kind), text])
    return {
        "bars": bars,
        "more": int(len(known) - len(bars)),
        "unknown": np.flatnonzero(~told.known[i]).tolist(),
    }


def _smallest(model: Any, X: pd.DataFrame, groups: Groups, n: int) -> list[Any] | None:
    """For each row the names without which the decision changes; None if nobody looked."""
    size = X.shape[1] if groups is None else len(groups)
    if not hasattr(model, "classes_") or n * size**2 * X.shape[1] > _CELLS:
        return None
    found = smallest_change(model, X, groups=groups, exact_up_to=2 if size <= 25 else 1)
    return [
        {
            "names": None if names is None else [str(name) for name in names],
            "exact": bool(exact),
            "decision": _told(without),
        }
        for names, exact, without in zip(
            found.sets, found.exact, found.decision_without, strict=True
        )
    ]


def _told(value: Any) -> str:
    """A value of the table as text."""
    value = plain(value)
    if value is None:
        return "unknown"
    if isinstance(value, float):
        return f"{value:.0f}" if value.is_integer() and abs(value) < 1e9 else number(value, 4)
    return clip(value, 60)
