"""The first stage of a report: everything it says, as a plain dict."""

from __future__ import annotations

import platform
import time
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np
import pandas as pd

import promissing
from promissing.compare.comparison import compare
from promissing.io.description import describe, is_identifier
from promissing.io.task import Problem
from promissing.report import classes, numbers
from promissing.report.browsing import browse
from promissing.report.fading import Groups, drivers, fading
from promissing.report.formats import clip, count, plain
from promissing.report.judging import Judged, Progress, judge
from promissing.report.words import put_into_words

__all__ = ["STRATEGIES", "gather"]

# Quick ones of every family; the rest on request.
STRATEGIES = ("mean", "mean+indicator", "promissing", "mpromissing", "fpromissing", "hgb")
_COMPARED = 2_000  # Rows.
_PACKAGES = ("numpy", "scipy", "pandas", "scikit-learn", "jax", "optax")


def gather(
    problem: Problem,
    *,
    frame: pd.DataFrame | None = None,
    source: str = "the table",
    model: Any = None,
    held_out: bool = False,
    positive: Any = None,
    strategies: Iterable[str] | None = STRATEGIES,
    folds: int = 5,
    rows: int = 200,
    max_rows: int = 10_000,
    settings: Mapping[str, Any] | None = None,
    random_state: int = 0,
    command: str = "",
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Train, judge, explain and compare, and put all of it into words.

    Parameters
    ----------
    problem : Problem
        What `promissing.io.task.pose` returns.
    frame : DataFrame, optional
        The table as it was read, to describe what is missing; by default that of the problem.
    source : str
        What the table is called.
    model : fitted estimator, optional
        Explained in place of networks trained on folds; networks with its settings are scored.
    held_out : bool, default=False
        Whether the rows are new to `model`, so that it can be scored itself.
    positive : label, optional
        The positive one of two classes, or its text: probabilities, and true and false positives,
        are those of this class. By default that of the problem, or else the second in sorted
        order.
    strategies : iterable of str or None
        Names of `promissing.compare.strategies` to compare; None leaves the comparison out.
    folds : int, default=5
    rows : int, default=200
        How many rows can be browsed at most.
    max_rows : int, default=10,000
        How many rows are used for training and judging at most, drawn at random.
    settings : mapping, optional
        Parameters of the network, such as `{"max_iter": 50}`.
    random_state : int, default=0
    command : str
        How to make the report again.
    progress : callable, optional
        Called with (steps done, steps in all, what comes next).

    Returns
    -------
    dict
        Of what JSON can hold. The same table, settings and seed give the same, but for `made` and
        the seconds of the comparison.
    """
    start = time.perf_counter()
    table = frame if frame is not None else problem.X.assign(**{problem.target: problem.y})
    names = None if strategies is None else tuple(strategies)
    steps = _Steps(progress, folds + 5 + folds * len(names or ()))
    steps("what is missing")
    missing = describe(table, target=problem.target)
    found, asked, notes = judge(
        problem,
        model=model,
        held_out=held_out,
        positive=problem.positive if positive is None else positive,
        folds=folds,
        max_rows=max_rows,
        settings=settings,
        random_state=random_state,
        progress=lambda done, total, what: steps(f"fold {done + 1} of {total}"),
    )
    groups = _groups(problem, asked)
    kind = _kind(found)
    report: dict[str, Any] = {
        "format": 1,
        "source": source,
        "target": problem.target,
        "target_short": clip(problem.target, 60),
        "kind": kind,
        "classes": None if found.classes is None else [str(label) for label in found.classes],
        "positive": None if found.positive is None else str(found.positive),
        "columns": [str(name) for name in found.X.columns],
        "unit": "column" if groups is None else "modality",
        "modalities": groups,
        "notes": [*problem.notes, *notes],
        "explained": "the folds" if asked.folds else "the model",
        "missing": missing,
    }
    steps("how well it predicts")
    if kind == "regression":
        report["prediction"] = numbers.prediction(found, random_state)
        report["calibration"] = numbers.calibration(found, random_state)
        report["coverage"] = numbers.coverage(found)
    else:
        report["prediction"] = classes.prediction(found)
        report["calibration"] = classes.calibration(found)
        report["coverage"] = classes.coverage(found)
    steps("how predictions fade")
    labels = _labels(table, problem, asked)
    report["fading"] = fading(asked, groups, labels, random_state=random_state)
    steps("what drives predictions")
    report["drivers"] = {
        "levels": [
            {"unit": unit, **drivers(asked, members, random_state=random_state)}
            for unit, members in ((("modality", groups),) if groups else ()) + (("column", None),)
        ]
    }
    steps("rows to browse")
    report["browsing"] = browse(asked, groups, labels, limit=rows, random_state=random_state)
    report["comparison"] = None
    if names is not None:
        try:
            report["comparison"] = _compare(problem, found, names, settings, random_state, steps)
        except (ValueError, RuntimeError) as error:  # Too few rows of a class, say.
            report["notes"].append(f"Strategies were not compared: {error}")
    report["made"] = _made(problem, found, report, settings, random_state, command)
    report = plain(report)
    put_into_words(report)
    steps("")
    report["made"]["seconds"] = round(time.perf_counter() - start, 1)
    return report


class _Steps:
    """Counts what is done for whoever shows progress."""

    def __init__(self, progress: Progress | None, total: int) -> None:
        self._progress, self._total, self._done = progress, total, -1

    def __call__(self, what: str) -> None:
        self._done += 1
        if self._progress is not None:
            self._progress(self._done if what else self._total, self._total, what)


def _kind(found: Judged) -> str:
    if found.classes is None:
        return "regression"
    return "binary" if len(found.classes) == 2 else "multiclass"


def _groups(problem: Problem, found: Judged) -> Groups:
    """What is taken away together: the modalities of the model, or of the problem."""
    own = getattr(found.parts[0][0], "modality_columns_", None)
    groups = own if own is not None else problem.modalities
    return None if not groups else {str(name): list(columns) for name, columns in groups.items()}


def _labels(table: pd.DataFrame, problem: Problem, found: Judged) -> list[str]:
    """What the judged rows are called: by a column of names, or by their place from 0.

    Names are text that was left out of the problem because it is different in every row.
    """
    known = table[table[problem.target].notna()]
    names: Any = np.flatnonzero(table[problem.target].notna())
    for name in table.columns:
        left_out = name not in problem.X.columns and name != problem.target
        if left_out and is_identifier(table[name]):
            names = known[name].to_numpy()
            break
    return [clip(names[place], 60) for place in found.place]


def _compare(
    problem: Problem,
    found: Judged,
    names: tuple[str, ...],
    settings: Mapping[str, Any] | None,
    random_state: int,
    steps: _Steps,
) -> dict[str, Any]:
    rows = found.place
    if len(rows) > _COMPARED:
        rng = np.random.default_rng(random_state)
        rows = np.sort(rng.choice(rows, _COMPARED, replace=False))
    X, y = problem.X.iloc[rows], np.asarray(problem.y)[rows]
    result = compare(
        X,
        y,
        task=problem.task,
        strategies=names,
        modalities=problem.modalities,
        folds=found.folds or 5,
        settings=settings,
        random_state=random_state,
        progress=lambda done, total, what: steps(f"comparison, {what}") if what else None,
    )
    return {
        "metric": result.metric,
        "rows": len(y),
        "folds": found.folds or 5,
        "recommendation": result.recommendation,
        "items": result.table.to_dict("records"),
        "skipped": dict(result.skipped),
    }


def _made(
    problem: Problem,
    found: Judged,
    report: dict[str, Any],
    settings: Mapping[str, Any] | None,
    random_state: int,
    command: str,
) -> dict[str, Any]:
    model = found.parts[0][0]
    default = type(model)().get_params(deep=False)
    own = {
        name: value
        for name, value in model.get_params(deep=False).items()
        if name not in ("modalities", "random_state") and value != default.get(name)
    }
    said = []
    if len(found.y) < len(problem.y):
        said.append(
            f"{count(len(found.y))} of {count(len(problem.y), 'row')}, drawn at random, were used "
            "to train and judge; what is missing was counted in all."
        )
    said.append(
        f"Predictions fade in {count(report['fading']['rows'], 'row')}; importance is the mean "
        f"over {count(report['drivers']['levels'][0]['rows'], 'row')}; "
        f"{count(report['browsing']['shown'], 'row')} can be browsed. All were drawn at random, "
        "the last from every kind of outcome."
    )
    if report["comparison"] and report["comparison"]["rows"] < len(problem.y):
        said.append(f"Strategies were compared on {count(report['comparison']['rows'], 'row')}.")
    return {
        "command": command,
        "seed": random_state,
        "task": problem.task,
        "model": type(model).__name__,
        "settings": {name: str(value) for name, value in own.items()},
        "folds": found.folds,
        "rows": len(found.y),
        "of": len(problem.y),
        "sampling": said,
        "versions": {
            "promissing": promissing.__version__,
            "Python": platform.python_version(),
            **{name: _version(name) for name in _PACKAGES},
        },
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
    }


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"
