"""Gather everything that a report shows in one plain dict."""

from __future__ import annotations

import math
import platform
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import promissing
from promissing._validation import warn
from promissing.compare.comparison import compare
from promissing.inspection import (
    importance,
    information_loss,
    shapley,
    smallest_change,
    what_if,
)
from promissing.io import PredictionTask
from promissing.io.description import describe, is_identifier
from promissing.report.columns import describe_columns
from promissing.report.evaluate import (
    Predictions,
    Progress,
    evaluate,
    evenly_spaced,
    predict_rows,
    records,
)
from promissing.report.uncertainty import FEWEST, measure_next, sets_and_intervals
from promissing.report.words import add_words, clip, number

__all__ = ["STRATEGIES", "as_json_types", "gather", "pick_rows"]

Array = NDArray[Any]
Groups = Mapping[str, list[Any]] | None

# Fast strategies of every family. The others can be named.
STRATEGIES = ("mean", "mean+indicator", "promissing", "mpromissing", "fpromissing", "hgb")
# The kinds of effect of a value on a prediction, in the order that the page's script knows.
EFFECTS = ("flips", "supports", "opposes", "none", "raises", "lowers")
_COMPARED_ROWS = 2_000
_PACKAGES = ("numpy", "scipy", "pandas", "scikit-learn", "jax", "optax")
_CELLS = 6e6  # Predicted cells per section, about: a few seconds.
_SEARCH_CELLS = 3e7  # Predicted cells above which the smallest change is not searched.
_ORDERS = 20  # Random orders in which values are removed.
_PATHS = 8  # Single rows whose predictions are drawn as values are removed.
_EXACT_GROUPS = 12  # Groups up to which Shapley values are exact.
_SAMPLES = 20  # Orders drawn for the Shapley values of more groups.
_ENOUGH_ROWS = 40  # Shapley values of fewer rows are replaced by what-if effects.
_BARS = 30  # Effects kept for a row.


def gather(
    problem: PredictionTask,
    *,
    frame: pd.DataFrame | None = None,
    source: str = "the table",
    model: Any = None,
    strategies: Iterable[str] | None = STRATEGIES,
    folds: int = 5,
    rows: int = 200,
    max_rows: int = 10_000,
    settings: Mapping[str, Any] | None = None,
    random_state: int = 0,
    command: str = "",
    progress: Progress | None = None,
    **old: Any,
) -> dict[str, Any]:
    """Train and evaluate models, explain their predictions, and describe the results in words.

    Parameters
    ----------
    problem : PredictionTask
        The result of `promissing.io.task.define_task`. Its `positive` is the positive one of two
        classes; by default this is the second in sorted order.
    frame : DataFrame, optional
        The table as it was read, for the section on missing values. By default it is built from
        the problem.
    source : str, default="the table"
        The name of the table.
    model : fitted estimator, optional
        A model to explain. The scores are those of networks with its parameters, trained on
        folds.
    strategies : iterable of str or None, default=STRATEGIES
        Names of `promissing.compare.strategies` to compare. None skips the comparison.
    folds : int, default=5
        The number of cross-validation folds. With 0, the given model itself is scored; the rows
        must be new to it.
    rows : int, default=200
        The maximum number of individual rows in the report. 0 leaves out individual rows and the
        names of rows.
    max_rows : int, default=10_000
        The maximum number of rows for training and evaluation. They are drawn at random.
    settings : mapping, optional
        Parameters of the network, such as `{"max_iter": 50}`.
    random_state : int, default=0
        The random seed.
    command : str, default=""
        The command that makes the same report.
    progress : callable, optional
        Called with (steps done, number of steps, name of the next step).
    **old : bool or label
        The old parameters `positive` and `held_out`, which give a `FutureWarning`.

    Returns
    -------
    dict
        Plain types that JSON can hold. The same table, settings and seed give the same dict,
        except for `provenance` and the seconds in `comparison`.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from promissing.io import define_task
    >>> from promissing.report import gather
    >>> rng = np.random.default_rng(0)
    >>> table = pd.DataFrame(rng.normal(size=(40, 2)), columns=["dose", "age"])
    >>> table["response"] = table["dose"] + rng.normal(size=40)
    >>> tiny = {"hidden_layer_sizes": (4,), "n_members": 1, "max_iter": 1}
    >>> found = gather(define_task(table, "response"), strategies=None, folds=2, settings=tiny)
    >>> found["kind"], found["missing"]["share"]
    ('regression', 0.0)
    """
    start = time.perf_counter()
    if old:
        problem, folds = _read_old(problem, folds, model, old)
    table = frame if frame is not None else problem.X.assign(**{problem.target: problem.y})
    names = None if strategies is None else tuple(strategies)
    step = _Steps(progress, folds + 7 + (folds or 5) * len(names or ()))
    step("missing values")
    missing = describe(table, target=problem.target)
    scored, explained, notes = predict_rows(
        problem,
        model=model,
        folds=folds,
        max_rows=max_rows,
        settings=settings,
        random_state=random_state,
        progress=lambda done, total, what: step(f"fold {done + 1} of {total}"),
    )
    groups = _groups(problem, explained)
    levels: list[tuple[str, Groups]] = [("column", None)]
    levels = levels if groups is None else [("modality", groups), *levels]
    report = _heading(problem, scored, groups, source, [*problem.notes, *notes])
    report |= {"explained": "the folds" if explained.folds else "the model", "missing": missing}
    report["distributions"] = describe_columns(
        scored.X, np.asarray(scored.y), scored.classes, scored.positive
    )
    step("prediction performance")
    report |= evaluate(scored, random_state)
    step("prediction sets and intervals")
    report["sets"], sets = sets_and_intervals(scored, random_state)
    if report["sets"] is None:
        report["notes"].append(
            "There are too few rows for prediction sets or intervals: every fold needs "
            f"{2 * FEWEST}."
        )
    step("information loss")
    labels = _row_names(table, problem, explained)
    if not rows:  # Without individual rows, no identifiers.
        labels = [""] * len(labels)
    report["information_loss"] = _information_loss(explained, groups, labels, random_state)
    step("importance")
    report["importance"] = {
        "levels": [
            {"unit": unit, **_importance(explained, members, random_state)}
            for unit, members in levels
        ]
    }
    step("what to measure next")
    report["next_measurement"] = measure_next(explained, groups, levels[0][0], random_state)
    step("individual rows")
    sets = sets if explained is scored else {}
    report["rows"] = (
        _individual_rows(explained, levels, labels, rows, random_state, sets) if rows else None
    )
    report["comparison"] = _compare(problem, scored, names, settings, random_state, step)
    if isinstance(report["comparison"], str):
        report["notes"].append(report["comparison"])
        report["comparison"] = None
    report["provenance"] = _provenance(problem, scored, random_state, command)
    report = dict(as_json_types(report))
    add_words(report)
    step("")
    report["provenance"]["seconds"] = round(time.perf_counter() - start, 1)
    return report


def _heading(
    problem: PredictionTask, scored: Predictions, groups: Groups, source: str, notes: list[str]
) -> dict[str, Any]:
    """Return what the report is about."""
    return {
        "format": 3,
        "source": source,
        "target": problem.target,
        "target_short": clip(problem.target, 60),
        "kind": _kind(scored.classes),
        "classes": None if scored.classes is None else [str(label) for label in scored.classes],
        "positive": None if scored.positive is None else str(scored.positive),
        "columns": [str(name) for name in scored.X.columns],
        "unit": "column" if groups is None else "modality",
        "modalities": groups,
        "notes": notes,
    }


def _read_old(
    problem: PredictionTask, folds: int, model: Any, old: dict[str, Any]
) -> tuple[PredictionTask, int]:
    """Translate the parameters of release 0.1."""
    new = {"positive": "define_task(..., positive=...)", "held_out": "folds=0"}
    for name in old:
        if name not in new:
            raise TypeError(f"gather() got an unexpected keyword argument {name!r}")
        warn(
            f"`{name}` of gather() will be removed in release 0.3. Use {new[name]}.", FutureWarning
        )
    if old.get("positive") is not None:
        problem = replace(problem, positive=old["positive"])
    return problem, 0 if old.get("held_out") and model is not None else folds


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:  # For example in a frozen application.
        return "not installed"


class _Steps:
    """Count the steps that are done, and report them to `progress`."""

    def __init__(self, progress: Progress | None, total: int) -> None:
        self._progress, self._total, self._done = progress, total, -1

    def __call__(self, what: str) -> None:
        self._done += 1
        if self._progress is not None:
            self._progress(self._done if what else self._total, self._total, what)


def _kind(classes: Array | None) -> str:
    if classes is None:
        return "regression"
    return "binary" if len(classes) == 2 else "multiclass"


def _groups(problem: PredictionTask, explained: Predictions) -> dict[str, list[Any]] | None:
    """The modalities of the model, else those of the problem."""
    own = getattr(explained.models[0][0], "modality_columns_", None)
    groups = own if own is not None else problem.modalities
    return None if not groups else {str(name): list(columns) for name, columns in groups.items()}


def _row_names(table: pd.DataFrame, problem: PredictionTask, explained: Predictions) -> list[str]:
    """Names of rows from an identifier column that is no feature, else positions from 0."""
    known = table[problem.target].notna().to_numpy()
    names: Any = np.flatnonzero(known)
    for name in table.columns:
        is_feature = name in problem.X.columns or name == problem.target
        if not is_feature and is_identifier(table[name]):
            names = table[name].to_numpy()[known]
            break
    return [clip(names[k], 60) for k in explained.position]


def _compare(
    problem: PredictionTask,
    scored: Predictions,
    strategies: tuple[str, ...] | None,
    settings: Mapping[str, Any] | None,
    random_state: int,
    step: _Steps,
) -> dict[str, Any] | str | None:
    """Compare strategies on the evaluated rows, or say why this is not possible."""
    if strategies is None:
        return None
    rows, folds = scored.position, scored.folds or 5
    if len(rows) > _COMPARED_ROWS:
        rng = np.random.default_rng(random_state)
        rows = np.sort(rng.choice(rows, _COMPARED_ROWS, replace=False))
    try:
        result = compare(
            problem.X.iloc[rows],
            np.asarray(problem.y)[rows],
            task=problem.task,
            strategies=strategies,
            modalities=problem.modalities,
            folds=folds,
            settings=settings,
            random_state=random_state,
            progress=lambda done, total, what: step(f"comparison, {what}") if what else None,
        )
    except (ValueError, RuntimeError) as error:  # For example, too few rows of a class.
        return f"Strategies were not compared: {error}"
    return {
        "metric": result.metric,
        "rows": len(rows),
        "folds": folds,
        "recommendation": result.recommendation,
        "items": result.table.to_dict("records"),
        "skipped": dict(result.skipped),
    }


def _provenance(
    problem: PredictionTask, scored: Predictions, random_state: int, command: str
) -> dict[str, Any]:
    """Model, parameters, random seed and versions."""
    model = scored.models[0][0]
    default = type(model)().get_params(deep=False)
    return {
        "command": command,
        "seed": random_state,
        "task": problem.task,
        "model": type(model).__name__,
        "settings": {
            name: str(value)
            for name, value in model.get_params(deep=False).items()
            if name not in ("modalities", "random_state") and value != default.get(name)
        },
        "folds": scored.folds,
        "rows": len(scored.y),
        "of": len(problem.y),
        "versions": {
            "promissing": promissing.__version__,
            "Python": platform.python_version(),
            **{name: _version(name) for name in _PACKAGES},
        },
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
    }


# ---- explanations


def _information_loss(
    explained: Predictions, groups: Groups, labels: Sequence[str], random_state: int
) -> dict[str, Any]:
    """Mean predictions of some rows as groups are removed in random orders until none is left."""
    size = explained.X.shape[1] if groups is None else len(groups)
    rows = _draw_rows(explained, _ORDERS * (size + 1), random_state)
    distances, paths, numbers, priors = [], [], [], []
    for model, X, own in explained.by_model(rows):
        lost = information_loss(
            model,
            X,
            groups,
            orders=_ORDERS,
            positive=explained.positive,
            random_state=random_state,
        )
        distances.append(lost.distance.mean(axis=0))
        mean = lost.mean
        if mean.ndim == 3:  # Of several classes, the one that is predicted at first.
            mean = np.take_along_axis(mean, mean[:, :1].argmax(axis=2)[:, :, None], axis=2)[..., 0]
        paths.append(mean)
        numbers.append(own)
        priors.append(lost.prior)
    distance, path, row = (np.concatenate(parts) for parts in (distances, paths, numbers))
    steps = evenly_spaced(size + 1, 41)
    low, high = np.quantile(distance[:, steps], [0.25, 0.75], axis=0)
    ranked = np.argsort(path[:, 0], kind="stable")
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
        "paths": [
            {"name": labels[row[i]], "values": path[i, steps]}
            for i in ranked[evenly_spaced(len(ranked), _PATHS)]
        ],
    }


def _importance(explained: Predictions, groups: Groups, random_state: int) -> dict[str, Any]:
    """Mean absolute contribution of each group, and how often it is decisive."""
    size = explained.X.shape[1] if groups is None else len(groups)
    cost = 2**size if size <= _EXACT_GROUPS else _SAMPLES * size
    rows = _draw_rows(explained, cost, random_state)
    use_shapley = len(rows) >= min(_ENOUGH_ROWS, len(explained.y))
    if not use_shapley:
        rows = _draw_rows(explained, size, random_state)
    frames, decisive = [], []
    for model, X, own in explained.by_model(rows):
        effects = what_if(model, X, groups=groups, positive=explained.positive)
        values: Any = effects
        if use_shapley:
            values = shapley(
                model,
                X,
                groups=groups,
                n_samples=_SAMPLES,
                positive=explained.positive,
                random_state=random_state,
            )
        frames.append(importance(values).reindex(list(effects.groups)).assign(n=len(own)))
        if effects.kinds is not None:
            decisive.append((effects.kinds == "flips").sum(axis=0))
    weights = np.array([frame["n"].iloc[0] for frame in frames], dtype=float)
    stacked = np.stack([f[["importance", "standard_error", "known"]].to_numpy() for f in frames])
    mean = np.average(stacked, axis=0, weights=weights)
    # The models explain different rows: their errors are independent.
    errors = np.nan_to_num(stacked[:, :, 1]) * weights[:, None] / weights.sum()
    error = np.sqrt((errors**2).sum(axis=0))
    flips = sum(decisive) / weights.sum() if decisive else None
    order = np.argsort(-mean[:, 0], kind="stable")
    return {
        "method": "shapley" if use_shapley else "what_if",
        "rows": int(weights.sum()),
        "items": records(
            name=[frames[0].index[g] for g in order],
            importance=mean[order, 0],
            error=error[order],
            known=mean[order, 2],
            decisive=[None] * len(order) if flips is None else flips[order],
        ),
    }


def _draw_rows(explained: Predictions, cost: int, random_state: int) -> Array:
    """Draw 5 to 200 rows; `cost` is the number of predictions that each of them needs."""
    n, p = explained.X.shape
    most = int(min(max(_CELLS // (cost * p), 5), 200, n))
    return np.sort(np.random.default_rng(random_state).choice(n, most, replace=False))


# ---- individual rows


def _individual_rows(
    explained: Predictions,
    levels: Sequence[tuple[str, Groups]],
    labels: Sequence[str],
    limit: int,
    random_state: int,
    sets: Mapping[int, str],
) -> dict[str, Any]:
    """Some rows of every kind of outcome, each with the effects of its groups and columns."""
    kinds, outcome = _outcomes(explained)
    rows = pick_rows(outcome, limit, random_state)
    groups = levels[0][1]
    items: dict[int, dict[str, Any]] = {}
    names: list[list[str]] = []
    for model, X, own in explained.by_model(rows):
        cells = X.astype(object).to_numpy()
        members = [X.columns.get_indexer(columns) for columns in (groups or {}).values()]
        effects = [what_if(model, X, groups=g, positive=explained.positive) for _, g in levels]
        names = names or [[str(name) for name in one.groups] for one in effects]
        smallest = _smallest_changes(model, X, groups, len(rows))
        for i, row in enumerate(own):
            items[int(row)] = {
                "id": labels[row],
                "truth": _as_text(explained.y[row]),
                "decision": _as_text(explained.decision[row]),
                "prediction": effects[0].prediction[i],
                "certainty": None if explained.classes is None else explained.output[row].max(),
                "std": None if explained.std is None else explained.std[row],
                "set": sets.get(int(row)),
                "known": explained.known_share[row],
                "outcome": int(outcome[row]),
                "bars": [
                    _bars(one, i, cells[i], None if level is None else members)
                    for one, (_, level) in zip(effects, levels, strict=True)
                ],
                "smallest": None if smallest is None else smallest[i],
            }
    return {
        "shown": len(items),
        "judged": len(explained.y),
        "outcomes": records(
            name=kinds,
            judged=np.bincount(outcome, minlength=len(kinds)),
            shown=np.bincount(outcome[rows], minlength=len(kinds)),
        ),
        "levels": records(name=[unit for unit, _ in levels], groups=names),
        "items": [items[row] for row in sorted(items)],
    }


def _outcomes(explained: Predictions) -> tuple[list[str], Array]:
    """The names of the kinds of outcome, and the kind of every row."""
    if explained.classes is None:
        error = np.abs(explained.y - explained.output)
        return ["small error", "large error"], (error > np.quantile(error, 0.8)).astype(int)
    correct = explained.decision == explained.y
    if len(explained.classes) > 2:
        return ["correct", "incorrect"], (~correct).astype(int)
    kinds = ("true positive", "true negative", "false positive", "false negative")
    names = [f"{kind} for {clip(explained.positive, 30)}" for kind in kinds]
    is_negative = explained.decision != explained.positive
    return names, 2 * (~correct).astype(int) + is_negative.astype(int)


def pick_rows(outcome: Array, limit: int, random_state: int) -> Array:
    """Pick rows of every kind of outcome: all rows of a rare kind, up to an equal share."""
    n = len(outcome)
    if n <= limit:
        return np.arange(n)
    shuffled = np.random.default_rng(random_state).permutation(n)
    # The k-th row of its kind comes before the (k + 1)-th row of any other kind.
    turn = pd.Series(outcome[shuffled]).groupby(outcome[shuffled]).cumcount()
    return np.sort(shuffled[np.argsort(turn.to_numpy(), kind="stable")][:limit])


def _bars(effects: Any, i: int, cells: Array, members: list[Array] | None) -> dict[str, Any]:
    """The largest effects of row i as [group, effect, kind, text], and its unknown groups."""
    known = np.flatnonzero(effects.known[i])
    order = known[np.argsort(-np.abs(effects.effects[i, known]), kind="stable")]
    bars = []
    for g in order[:_BARS]:
        effect = effects.effects[i, g]
        if effects.kinds is not None:
            kind = str(effects.kinds[i, g])
        else:  # A value raises the prediction if the prediction falls without it.
            kind = "none" if abs(effect) < 1e-9 else "raises" if effect < 0 else "lowers"
        if members is None:
            text = _as_text(cells[g])
        else:
            text = f"{int(pd.notna(cells[members[g]]).sum())} of {len(members[g])} known"
        bars.append([int(g), float(effect), EFFECTS.index(kind), text])
    return {
        "bars": bars,
        "more": int(len(known) - len(bars)),
        "unknown": np.flatnonzero(~effects.known[i]).tolist(),
    }


def _smallest_changes(
    model: Any, X: pd.DataFrame, groups: Groups, n: int
) -> list[dict[str, Any]] | None:
    """For each row the names without which the decision changes; None if not searched."""
    size = X.shape[1] if groups is None else len(groups)
    if not hasattr(model, "classes_") or n * size**2 * X.shape[1] > _SEARCH_CELLS:
        return None
    found = smallest_change(model, X, groups=groups, exact_up_to=2 if size <= 25 else 1)
    return records(
        names=[None if own is None else [str(name) for name in own] for own in found.sets],
        exact=found.exact,
        decision=[_as_text(label) for label in found.decision_without],
    )


def _as_text(value: Any) -> str:
    """A value of the table as text."""
    value = as_json_types(value)
    if value is None:
        return "unknown"
    if isinstance(value, float):
        return f"{value:.0f}" if value.is_integer() and abs(value) < 1e9 else number(value, 4)
    return clip(value, 60)


def as_json_types(value: Any) -> Any:
    """Convert a value to types that JSON can hold: no NumPy types, no NaN, names as text."""
    if isinstance(value, dict):
        return {str(key): as_json_types(one) for key, one in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return as_json_types(value.tolist())
    if isinstance(value, list | tuple | set | frozenset):
        return [as_json_types(one) for one in value]
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        return float(f"{value:.6g}") if math.isfinite(value) else None
    return None if pd.api.types.is_scalar(value) and pd.isna(value) else str(value)
