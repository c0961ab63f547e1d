"""What one batch of the clinical study does: score, fade, know, or say why."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from time import perf_counter
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.dummy import DummyClassifier
from sklearn.model_selection import StratifiedKFold

from promissing import datasets
from promissing import inspection as explain
from promissing import metrics as knowing
from promissing.compare import strategies
from promissing.estimators.fusion import PAPER
from studies.runner import Outcome, Row, Skipped
from studies.scores import auc

__all__ = ["COHORT", "KINDS", "fade", "know", "load", "removed", "score", "validate", "why"]

Array = NDArray[Any]

COHORT = "cohort"
KINDS = ("none", "supports", "opposes", "flips")
NEIGHBORS = 1  # As in the paper.
LEAST_COMPLETE = 5  # Fewer complete patients make no picture.
MOST_COMPLETE = 60
BLOCK = 4000  # Fresh patients asked about at a time.


def load(table: str, data: str | None) -> tuple[pd.DataFrame, Array, dict[str, list[str]]]:
    """The columns, the target and the modalities of a table."""
    if table == COHORT:
        cohort = datasets.make_cohort()
        return cohort.X, cohort.y.to_numpy(), cohort.modalities
    try:
        found = datasets.load(table, data=data)
    except datasets.DatasetError as error:
        raise Skipped(str(error)) from error
    columns = [name for part in found.modalities.values() for name in part]
    return found.X[columns], found.y.to_numpy(), found.modalities


def removed(
    X: pd.DataFrame, modalities: Mapping[str, Sequence[str]]
) -> tuple[Array, dict[str, list[str]]]:
    """Feature removal as in the paper: which patients stay, and the columns that then have no gap.

    Patients who lack a whole modality go first, then every column with a gap, and modalities of
    which nothing is left.
    """
    gaps = X.isna()
    stay = np.ones(len(X), bool)
    for columns in modalities.values():
        stay &= ~gaps[list(columns)].all(axis=1).to_numpy()
    whole = ~gaps[stay].any(axis=0)
    kept = {name: [c for c in columns if whole[c]] for name, columns in modalities.items()}
    return stay, {name: columns for name, columns in kept.items() if columns}


def learn(
    name: str,
    X: pd.DataFrame,
    y: Array,
    modalities: Mapping[str, Sequence[str]],
    seed: int,
    epochs: int,
    *,
    balance: bool = True,
    careful: bool = False,
) -> Any:
    """A strategy with the paper's network and training, trained on a table of these modalities.

    To balance the classes, rows of the smaller one are drawn again, for trees as for networks.
    The `careful` ones are asked what they know: penalised, four together,
    and those who can take a missing modality for what it is lose modalities in training.
    """
    native = strategies.STRATEGIES[name].family == "native"
    if name == "hgb":
        model = strategies.make(name, "classification", random_state=seed)
        rows = _balanced(y, seed) if balance else np.arange(len(y))
        return model.fit(X.iloc[rows], y[rows])
    network: dict[str, Any] = dict(PAPER) | {"max_iter": epochs, "resample": balance}
    if len(modalities) != len(datasets.make_cohort(20).modalities):
        network["units"] = None  # The paper's are for its twelve.
    if careful:
        # The paper does not say how these were trained. So few patients want a penalty, a rate
        # that falls and a few members; rows that lose modalities, in every step others.
        network |= {"learning_rate": "cosine", "learning_rate_init": 1e-3}
        network |= {"alpha": 1.0, "n_members": 4, "augment": 1.0 if native else False}
    model = strategies.make(
        name,
        "classification",
        settings=network,
        modalities=modalities,
        n_neighbors=NEIGHBORS,
        random_state=seed,
    )
    return model.fit(X, y)


def _balanced(y: Array, seed: int) -> Array:
    """All rows, and some of the smaller class again, so that there are as many of either."""
    rng = np.random.default_rng(seed)
    classes = [np.flatnonzero(y == k) for k in (0, 1)]
    more = [rng.choice(rows, max(map(len, classes)) - len(rows)) for rows in classes]
    return np.concatenate([np.arange(len(y)), *more])


def score(
    table: str, name: str, repetition: int, folds: int, epochs: int, seed: int, data: str | None
) -> Outcome:
    """One repetition of the cross-validation of one strategy."""
    return Outcome(validate(table, name, load(table, data), repetition, folds, epochs, seed))


def validate(
    table: str,
    name: str,
    loaded: tuple[pd.DataFrame, Array, dict[str, list[str]]],
    repetition: int,
    folds: int,
    epochs: int,
    seed: int,
) -> list[Row]:
    """Cross-validate a strategy on columns, target and modalities."""
    X, y, modalities = loaded
    if name == "drop-features":
        stay, modalities = removed(X, modalities)
        X, y = X.loc[stay, [c for columns in modalities.values() for c in columns]], y[stay]
        if len(np.unique(y)) < 2 or np.bincount(y).min() < folds:
            raise Skipped(f"feature removal leaves {len(y)} patients of {table}, too few to split")
    splitter = StratifiedKFold(folds, shuffle=True, random_state=seed + repetition)
    rows = []
    for fold, (train, test) in enumerate(splitter.split(X, y)):
        start = perf_counter()
        known, truth = X.iloc[train], y[train]
        model: Any
        if modalities:
            used = "full" if name == "drop-features" else name
            model = learn(used, known, truth, modalities, seed + repetition, epochs)
        else:
            model = DummyClassifier(strategy="prior").fit(known, truth)
        with warnings.catch_warnings():
            # As in the paper: trained on the gaps there are.
            warnings.filterwarnings("ignore", ".* had no missing values in training", UserWarning)
            proba = model.predict_proba(X.iloc[test])[:, 1]
        seconds = perf_counter() - start
        found = {
            "auc": float(auc(y[test], proba)),
            "brier": knowing.brier_score(y[test], proba, classes=[0, 1]),
        }
        rows += [
            Row(table, "own", np.nan, name, repetition, fold, metric, value, seconds)
            for metric, value in found.items()
        ]
    return rows


def fade(table: str, name: str, orders: int, epochs: int, seed: int, data: str | None) -> Outcome:
    """Trained on the patients with gaps, applied to the complete ones as modalities vanish."""
    X, y, modalities = load(table, data)
    complete = np.flatnonzero(~X.isna().any(axis=1))
    if len(complete) < LEAST_COMPLETE or len(complete) > 0.9 * len(X):
        raise Skipped(f"{table} has {len(complete)} complete patients of {len(X)}")
    train = np.setdiff1d(np.arange(len(X)), complete)
    rng = np.random.default_rng(seed)
    test = np.sort(rng.permutation(complete)[:MOST_COMPLETE])
    start = perf_counter()
    model = learn(name, X.iloc[train], y[train], modalities, seed, epochs, careful=True)
    found = explain.information_loss(
        model, X.iloc[test], modalities, orders=orders, prior=0.5, random_state=seed
    )
    seconds = perf_counter() - start
    end = found.predictions[..., -1]
    measures = {
        "end_mean": end.mean(),
        "end_distance": np.abs(end - 0.5).max(),
        "falls": float(found.monotonicity.always),
        "auc": float(auc(y[test], found.predictions[0, :, 0])),
    }
    rows = [
        Row(table, "fading", np.nan, name, 0, 0, metric, float(value), seconds)
        for metric, value in measures.items()
    ]
    for step, distance in enumerate(found.distance.mean(axis=(0, 1))):
        share = step / len(found.groups)
        rows.append(Row(table, "fading", share, name, 0, 0, "distance", float(distance), seconds))
    arrays = {"predictions": found.predictions.astype(np.float32), "y": y[test], "rows": test}
    return Outcome(rows, arrays | {"orders": found.orders})


def know(name: str, fresh: int, epochs: int, seed: int, data: str | None) -> Outcome:
    """Trained without balancing; calibration on fresh patients by what they lack."""
    cohort = datasets.make_cohort()
    X, y, modalities = cohort.X, cohort.y.to_numpy(), cohort.modalities
    start = perf_counter()
    model = learn(name, X, y, modalities, seed, epochs, balance=False, careful=True)
    judges = datasets.make_cohort(fresh, random_state=seed + 1)
    truth, prior = judges.y.to_numpy(), y.mean()
    rng = np.random.default_rng(seed)
    order = rng.permuted(np.tile(np.arange(len(modalities)), (fresh, 1)), axis=1)
    rows = []
    probabilities = np.empty((len(modalities) + 1, fresh), np.float32)
    names = list(modalities)
    for step in range(len(modalities) + 1):
        gone = np.zeros((fresh, len(names)), bool)
        np.put_along_axis(gone, order[:, :step], True, axis=1)
        table = judges.complete.copy()
        for g, modality in enumerate(names):
            lost = gone[:, g]
            if lost.any():
                for column in modalities[modality]:
                    table[column] = table[column].mask(lost)
        proba = np.concatenate(
            [
                model.predict_proba(table.iloc[first : first + BLOCK])[:, 1]
                for first in range(0, fresh, BLOCK)
            ]
        )
        probabilities[step] = proba
        measures = {
            "calibration_error": knowing.calibration_error(truth, proba, classes=[0, 1]),
            "brier": knowing.brier_score(truth, proba, classes=[0, 1]),
            "auc": float(auc(truth, proba)),
            "distance": float(np.abs(proba - prior).mean()),
        }
        share = step / len(names)
        rows += [
            Row(COHORT, "knowing", share, name, 0, 0, metric, value, perf_counter() - start)
            for metric, value in measures.items()
        ]
    coverage = knowing.accuracy_coverage(
        np.tile(truth, len(probabilities)), probabilities.ravel(), classes=[0, 1]
    )
    thin = np.unique(np.linspace(0, len(coverage.coverage) - 1, 200).astype(int))
    arrays = {
        "coverage": np.stack([coverage.coverage[thin], coverage.accuracy[thin]]),
        "prior": np.array([prior]),
    }
    return Outcome(rows, arrays)


def _kinds(found: explain.Effects) -> Array:
    assert found.kinds is not None  # It is a classifier.
    return found.kinds


def why(name: str, epochs: int, seed: int, data: str | None) -> Outcome:
    """Counterfactuals of the complete patients, and what matters over all."""
    X, y, modalities = load(COHORT, data)
    complete = ~X.isna().any(axis=1).to_numpy()
    model = learn(name, X[~complete], y[~complete], modalities, seed, epochs, careful=True)
    found = explain.what_if(model, X[complete], groups=modalities)
    values = explain.shapley(model, X[complete], groups=modalities)
    weight = explain.importance(values).loc[list(modalities)]
    truth = datasets.make_cohort().truth.importance[list(modalities)]
    columns = {"importance": weight["importance"], "standard_error": weight["standard_error"]}
    rows = [
        Row(COHORT, f"why: {group}", np.nan, name, 0, 0, metric, float(column[group]))
        for metric, column in (columns | {"truth": truth}).items()
        for group in modalities
    ]
    arrays = {
        "effects": found.effects,
        "prediction": found.prediction,
        "kinds": np.array([[KINDS.index(kind) for kind in row] for row in _kinds(found)]),
        "y": y[complete],
        "decisions": np.stack(
            [proba[:, 1] for proba in model.decision_by_modality(X[complete]).values()], axis=1
        ),
        "shapley": values.values,
    }
    return Outcome(rows, arrays)
