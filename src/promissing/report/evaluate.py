"""Predictions to judge a model by: for rows that it has not seen in training."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import clone

from promissing.compare import folds as _folds
from promissing.estimators.fusion import build
from promissing.io.task import Problem

__all__ = ["Judged", "Progress", "judge", "positions"]

Array = NDArray[Any]
Progress = Callable[[int, int, str], object]


@dataclass(frozen=True, eq=False)
class Judged:
    """Rows, models, and what these say of them.

    Attributes
    ----------
    X : DataFrame
        The n rows.
    y : ndarray (n,)
        The truth.
    place : ndarray of int (n,)
        Where they stand among the rows of the problem.
    parts : tuple of (model, ndarray of int)
        Every model with the rows, counted from 0 to n - 1, that it speaks for.
    classes : ndarray (K,) or None
        The positive one of two last; None in regression.
    output : ndarray (n, K) or (n,)
        Probabilities, or predicted numbers.
    spread, known : ndarray (n,)
        The standard deviation between the ensemble members (of the probability of the decided
        class, or of the number), and the share of each row that is known.
    folds : int
        0 if a finished model was asked.
    """

    X: pd.DataFrame
    y: Array
    place: Array
    parts: tuple[tuple[Any, Array], ...]
    classes: Array | None
    output: Array
    spread: Array
    known: Array
    folds: int

    @property
    def positive(self) -> Any:
        """The positive one of two classes; None for several classes and for numbers."""
        if self.classes is None or len(self.classes) != 2:
            return None
        return self.classes.tolist()[1]

    @property
    def decision(self) -> Array:
        """The most probable class of every row, or the predicted number."""
        if self.classes is None:
            return self.output
        return np.asarray(self.classes[self.output.argmax(axis=1)])


def judge(
    problem: Problem,
    *,
    model: Any = None,
    held_out: bool = False,
    positive: Any = None,
    folds: int = 5,
    max_rows: int = 10_000,
    settings: Mapping[str, Any] | None = None,
    random_state: int = 0,
    progress: Progress | None = None,
) -> tuple[Judged, Judged, list[str]]:
    """What to score, what to explain, and notes on both.

    Scored are predictions by networks trained on folds that did not hold the row; with a given
    model these have its settings, because it would be flattered by rows it was trained on. With
    `held_out` it was not, and is scored itself. Explained is the given model, or else every row by
    the network that has not seen it. `positive` is one of two classes, or its text; by default the
    second in sorted order.
    """
    X, y, place = problem.X, np.asarray(problem.y), np.arange(len(problem.y))
    notes: list[str] = []
    if len(y) > max_rows:
        rng = np.random.default_rng(random_state)
        place = np.sort(rng.choice(len(y), max_rows, replace=False))
        X, y = X.iloc[place], y[place]
    if model is not None:
        _check_model(model, problem)
        X, lacking = _aligned(X, model)
        if lacking:
            notes.append(f"The table lacks {_named(lacking)}: unknown in every row.")
        parts = [(model, np.arange(len(y)))]
        classes = _positive_last(getattr(model, "classes_", None), positive, problem.target)
        asked = _judged(X, y, place, parts, classes, 0)
        if held_out:
            return asked, asked, notes
    folds, fewer = _possible(y, problem.task, folds)
    notes += fewer
    y = _folds.read_target(X, y, problem.task, folds, 1)
    classes = None if problem.task == "regression" else np.unique(y)
    classes = _positive_last(classes, positive, problem.target)
    parts = []
    for one in _folds.rounds(X, y, problem.task, folds, 1, 0.0, "mcar", random_state):
        if progress is not None:
            progress(one.fold, folds, "cross-validation")
        made = (
            build(problem, random_state=one.seed, **(settings or {}))
            if model is None
            else clone(model).set_params(random_state=one.seed)
        )
        parts.append((made.fit(X.iloc[one.train], y[one.train]), one.test))
    scored = _judged(X, y, place, parts, classes, folds)
    return scored, scored if model is None else asked, notes


def _judged(
    X: pd.DataFrame,
    y: Array,
    place: Array,
    parts: list[tuple[Any, Array]],
    classes: Array | None,
    folds: int,
) -> Judged:
    """Ask every model about the rows it speaks for."""
    n = len(X)
    output = np.zeros(n if classes is None else (n, len(classes)))
    spread, known = np.zeros(n), np.ones(n)
    for model, rows in parts:
        own = X.iloc[rows]
        wide = model.spread(own)
        known[rows] = model.known_share(own)
        if classes is None:
            output[rows], spread[rows] = model.predict(own), wide
            continue
        proba = model.predict_proba(own)
        # A rare class may be absent from the training rows of a fold: it has no chance there.
        output[np.ix_(rows, positions(classes, model.classes_))] = proba
        spread[rows] = np.take_along_axis(wide, proba.argmax(axis=1)[:, None], axis=1)[:, 0]
    return Judged(X, y, place, tuple(parts), classes, output, spread, known, folds)


def positions(classes: Array, labels: Array) -> Array:
    """Where every label stands among the classes."""
    place = {label: k for k, label in enumerate(classes.tolist())}
    return np.array([place[label] for label in labels.tolist()], dtype=int)


def _positive_last(classes: Array | None, positive: Any, target: str) -> Array | None:
    """The classes, the positive one of two last."""
    if positive is None:
        return classes
    if classes is None or len(classes) != 2:
        what = "holds numbers" if classes is None else f"has {len(classes)} classes"
        raise ValueError(
            f"`positive` names one of two classes, and the target {target!r} {what}. "
            f"Received: {positive!r}"
        )
    labels = classes.tolist()
    chosen = [label for label in labels if label == positive or str(label) == str(positive)]
    if not chosen:
        raise ValueError(
            f"`positive` must be one of the classes of {target!r}: {labels}. Received: {positive!r}"
        )
    return classes if chosen[-1] == labels[1] else classes[::-1]


def _possible(y: Array, task: str, folds: int) -> tuple[int, list[str]]:
    """The number of folds, fewer if a class is too rare."""
    least = len(y) // 2
    if task == "classification":
        counts = np.sort(np.unique(y, return_counts=True)[1])[::-1]
        least = min(least, int(counts[1])) if len(counts) > 1 else least
    if least >= folds or least < 2:
        return folds, []
    return least, [f"{least} folds instead of {folds}: there are too few rows for more."]


def _check_model(model: Any, problem: Problem) -> None:
    classifies = hasattr(model, "classes_")
    if classifies != (problem.task == "classification"):
        raise ValueError(
            f"The model is a {type(model).__name__}, and {problem.target!r} is taken for "
            f"{problem.task}. Choose {'classification' if classifies else 'regression'} as the "
            "task, or another target."
        )
    if classifies:
        strange = sorted(set(map(str, set(problem.y) - set(model.classes_.tolist()))))
        if strange:
            raise ValueError(
                f"The model knows the classes {_named(list(map(str, model.classes_)))}; "
                f"{problem.target!r} also holds {_named(strange)}."
            )


def _aligned(X: pd.DataFrame, model: Any) -> tuple[pd.DataFrame, list[str]]:
    """The columns of the model; those the table lacks are unknown in every row."""
    wanted = getattr(model, "feature_names_in_", None)
    if wanted is None:
        return X, []
    lacking = [name for name in wanted if name not in X.columns]
    return X.reindex(columns=list(wanted)), lacking


def _named(names: list[str], most: int = 5) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(map(repr, names[:most])) + more
