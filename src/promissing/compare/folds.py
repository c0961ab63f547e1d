"""Cross-validation of many models on the same folds of one table, with more gaps if wished."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.metrics import r2_score, roc_auc_score
from sklearn.model_selection import KFold, StratifiedKFold

from promissing.compare.strategies import TASKS
from promissing.missingness import Mechanism

__all__ = ["Round", "read_target", "rounds", "run"]

Array = NDArray[Any]


def read_target(X: Any, y: Any, task: str, folds: int, repetitions: int) -> Array:
    """The target as an array; errors say why it cannot be cross-validated."""
    if task not in TASKS:
        raise ValueError(f"`task` must be one of {TASKS}. Received: {task!r}")
    for name, value, least in (("folds", folds, 2), ("repetitions", repetitions, 1)):
        if value < least:
            raise ValueError(f"`{name}` must be at least {least}. Received: {value!r}")
    truth = np.asarray(y)
    if truth.shape != (len(X),):
        raise ValueError(f"`y` must have one value for each of {len(X)} rows: {truth.shape}")
    if pd.isna(truth).any():
        raise ValueError(f"`y` lacks {pd.isna(truth).sum()} values. Leave these rows out.")
    if len(truth) < 2 * folds:
        raise ValueError(f"{len(truth)} rows are too few for {folds} folds: 2 for each at least.")
    if task == "regression":
        return truth.astype(np.float64)
    counts = pd.Series(truth).value_counts()
    labels = counts.index.tolist()
    if len(labels) < 2:
        raise ValueError(f"`y` has one class only, {labels[0]!r}. There is nothing to learn.")
    # An AUC takes two classes; with the second largest in every fold there are two.
    if counts.iloc[1] < folds:
        raise ValueError(
            f"The class {labels[1]!r} has {counts.iloc[1]} rows, fewer than the {folds} "
            "folds, and every fold needs one of it. Use fewer folds."
        )
    return truth


class Round(NamedTuple):
    """One fold of one repetition."""

    repetition: int
    fold: int
    X: Any
    train: Array
    test: Array
    seed: int


def rounds(
    X: Any,
    y: Array,
    task: str,
    folds: int,
    repetitions: int,
    extra: float,
    mechanism: str,
    random_state: int,
) -> Iterator[Round]:
    """Every fold of every repetition; the extra gaps of a repetition are in training and test."""
    rng = np.random.default_rng(random_state)
    kind = StratifiedKFold if task == "classification" else KFold
    for repetition in range(repetitions):
        seeds = rng.integers(2**31 - 1, size=folds + 2).tolist()
        less = X
        if extra:
            less = Mechanism(mechanism)(X, ratio=extra, n_columns="all", random_state=seeds[-1])
        splitter = kind(folds, shuffle=True, random_state=seeds[-2])
        with warnings.catch_warnings():
            # That a class has fewer rows than there are folds: it is scored where it occurs.
            warnings.simplefilter("ignore", UserWarning)
            parts = list(splitter.split(np.zeros(len(y)), y))
        for fold, (train, test) in enumerate(parts):
            yield Round(repetition, fold, less, train, test, seeds[fold])


def run(model: Any, task: str, one: Round, y: Array) -> tuple[float, float, list[str]]:
    """Score and seconds of one fit, and what it warned about."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        start = time.perf_counter()
        model.fit(_rows(one.X, one.train), y[one.train])
        test = _rows(one.X, one.test)
        told = model.predict_proba(test) if task == "classification" else model.predict(test)
        seconds = time.perf_counter() - start
    texts = [" ".join(str(w.message).split()) for w in caught]
    if task == "regression":
        return float(r2_score(y[one.test], told)), seconds, texts
    return _auc(y, one.test, told, model.classes_), seconds, texts


def _rows(X: Any, rows: Array) -> Any:
    return X.iloc[rows] if hasattr(X, "iloc") else X[rows]


def _auc(y: Array, rows: Array, proba: Array, classes: Array) -> float:
    """The AUC of the second of two classes, or the mean of each class against the rest."""
    known = {label: proba[:, k] for k, label in enumerate(classes.tolist())}
    truth = y[rows]
    judged = np.unique(truth).tolist()
    if len(np.unique(y)) == 2:
        judged = judged[1:]
    # A class that is not in the training rows has no probability: chance.
    areas = [roc_auc_score(truth == c, known.get(c, np.zeros(len(rows)))) for c in judged]
    return float(np.mean(areas))
