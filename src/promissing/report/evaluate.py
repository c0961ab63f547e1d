"""Predict every row by a model that was not trained on it, and score the predictions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import binomtest, norm, rankdata, spearmanr
from sklearn.base import clone
from sklearn.metrics import balanced_accuracy_score, confusion_matrix, log_loss, roc_auc_score

from promissing import metrics
from promissing._validation import few, listed
from promissing.compare.comparison import read_target, rounds
from promissing.estimators.fusion import build
from promissing.io import PredictionTask
from promissing.uncertainty.scale import provides_std
from promissing.uncertainty.selective import choose_threshold

__all__ = ["Predictions", "Progress", "evaluate", "evenly_spaced", "predict_rows", "records"]

Array = NDArray[Any]
Progress = Callable[[int, int, str], object]

_BINS = 10  # Bins of the reliability diagram.
_STD_BINS = 8
ACCURACY, CONFIDENCE = 0.95, 0.95  # Of the threshold for abstention.
_COVERAGES = (1.0, 0.95, 0.9, 0.8, 0.7, 0.6, 0.5, 0.3)
_MISSING = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)  # Upper edges: complete rows have a bin of their own.
_POINTS = 800  # Points shown in a scatter plot.
_SIGNIFICANT = 0.05


@dataclass(frozen=True, eq=False)
class Predictions:
    """Rows with their true and predicted values, and the models that predicted them.

    Attributes
    ----------
    X : DataFrame (n, p)
        The features.
    y : ndarray (n,)
        The true labels or values.
    position : ndarray of int (n,)
        The positions of the rows in the problem.
    models : tuple of (model, ndarray of int)
        Every model with the rows, numbered from 0 to n - 1, that it predicts.
    classes : ndarray (K,) or None
        The classes. The positive one of two classes is the last. None in regression.
    output : ndarray (n, K) or (n,)
        Class probabilities, or predicted values.
    std : ndarray (n,) or None
        The predicted standard deviation of the target; None in classification, and if the loss of
        the model provides none.
    known_share : ndarray (n,)
        The share of each row that is known.
    folds : int
        The number of folds, or 0 if one given model predicts all rows.
    """

    X: pd.DataFrame
    y: Array
    position: Array
    models: tuple[tuple[Any, Array], ...]
    classes: Array | None
    output: Array
    std: Array | None
    known_share: Array
    folds: int

    @property
    def positive(self) -> Any:
        """The positive one of two classes, else None."""
        if self.classes is None or len(self.classes) != 2:
            return None
        return self.classes.tolist()[1]

    @property
    def decision(self) -> Array:
        """The most probable class of every row, or the predicted value."""
        if self.classes is None:
            return self.output
        return np.asarray(self.classes[self.output.argmax(axis=1)])

    def by_model(self, rows: Array) -> Iterator[tuple[Any, pd.DataFrame, Array]]:
        """Yield every model with the given rows that it predicts, and their numbers."""
        for model, own in self.models:
            chosen = np.intersect1d(own, rows)
            if len(chosen):
                yield model, self.X.iloc[chosen], chosen


def predict_rows(
    problem: PredictionTask,
    *,
    model: Any = None,
    folds: int = 5,
    max_rows: int = 10_000,
    settings: Mapping[str, Any] | None = None,
    random_state: int = 0,
    progress: Progress | None = None,
) -> tuple[Predictions, Predictions, list[str]]:
    """Return the predictions to score, the predictions to explain, and notes on both.

    Scores come from cross-validation. If a model is given, the networks of the folds have its
    parameters, because its own scores would be too optimistic for rows it was trained on. With
    `folds=0` these rows are new to the model, and the model itself is scored. The given model is
    explained; without one, every row is explained by the network that was not trained on it.
    """
    X, y, position = problem.X, np.asarray(problem.y), np.arange(len(problem.y))
    notes: list[str] = []
    if len(y) > max_rows:
        rng = np.random.default_rng(random_state)
        position = np.sort(rng.choice(len(y), max_rows, replace=False))
        X, y = X.iloc[position], y[position]
    explained = None
    if model is not None:
        _check_model(model, problem)
        columns = list(getattr(model, "feature_names_in_", X.columns))
        lacking = [name for name in columns if name not in X.columns]
        if lacking:
            notes.append(f"{listed(lacking)}: not in the table, treated as missing in every row.")
        X = X.reindex(columns=columns)
        classes = _positive_last(getattr(model, "classes_", None), problem)
        explained = _predictions(X, y, position, [(model, np.arange(len(y)))], classes, 0)
        if folds == 0:
            return explained, explained, notes
    possible = _possible_folds(y, problem.task, folds)
    if possible < folds:
        notes.append(f"{possible} folds were used instead of {folds}: there are too few rows.")
    y = read_target(X, y, problem.task, possible, 1)
    classes = _positive_last(None if problem.task == "regression" else np.unique(y), problem)
    models = []
    for one in rounds(X, y, problem.task, possible, 1, 0.0, "mcar", random_state):
        if progress is not None:
            progress(one.fold, possible, "cross-validation")
        if model is None:
            network = build(problem, random_state=one.seed, **(settings or {}))
        else:
            network = clone(model).set_params(random_state=one.seed)
        models.append((network.fit(X.iloc[one.train], y[one.train]), one.test))
    scored = _predictions(X, y, position, models, classes, possible)
    return scored, explained or scored, notes


def _predictions(
    X: pd.DataFrame,
    y: Array,
    position: Array,
    models: list[tuple[Any, Array]],
    classes: Array | None,
    folds: int,
) -> Predictions:
    """Predict all rows, each by its model."""
    n = len(X)
    output = np.zeros(n if classes is None else (n, len(classes)))
    std, known_share = np.zeros(n), np.ones(n)
    has_std = classes is None and all(provides_std(one, X.iloc[:2]) for one, _ in models)
    for model, rows in models:
        full = model.predict_full(X.iloc[rows])
        known_share[rows] = full.known_share
        if has_std:
            output[rows], std[rows] = model.predict(X.iloc[rows], return_std=True)
        elif classes is None:
            output[rows] = full.mean
        else:
            # A rare class may be absent from the training rows of a fold: its probability is 0.
            output[np.ix_(rows, _index(classes, model.classes_))] = full.mean
    predicted = std if has_std else None
    return Predictions(
        X, y, position, tuple(models), classes, output, predicted, known_share, folds
    )


def _index(classes: Array, labels: Array) -> Array:
    """Return the position of every label in the classes."""
    return np.asarray(pd.Index(classes).get_indexer(labels))


def _positive_last(classes: Array | None, problem: PredictionTask) -> Array | None:
    """Return the classes with the positive one of two last."""
    if problem.positive is None:
        return classes
    labels = [] if classes is None else classes.tolist()
    chosen = [k for k, label in enumerate(labels) if str(label) == str(problem.positive)]
    if len(labels) != 2 or not chosen:
        raise ValueError(
            f"`positive` must be one of two classes. The target {problem.target!r} has "
            f"{few(labels) or 'numbers'}. Received: {problem.positive!r}"
        )
    return classes if classes is None or chosen == [1] else classes[::-1]


def _possible_folds(y: Array, task: str, folds: int) -> int:
    """Return the number of folds, reduced if there are too few rows of a class."""
    least = len(y) // 2
    if task == "classification":
        counts = np.sort(np.unique(y, return_counts=True)[1])[::-1]
        least = min(least, int(counts[1])) if len(counts) > 1 else least
    return folds if least < 2 else min(least, folds)


def _check_model(model: Any, problem: PredictionTask) -> None:
    """Raise an error if the model does not fit the task or the classes."""
    is_classifier = hasattr(model, "classes_")
    if is_classifier != (problem.task == "classification"):
        raise ValueError(
            f"The model is a {type(model).__name__}, and {problem.target!r} is taken for "
            f"{problem.task}. Choose {'classification' if is_classifier else 'regression'} as the "
            "task, or another target."
        )
    if is_classifier:
        unknown = sorted(set(map(str, set(problem.y) - set(model.classes_.tolist()))))
        if unknown:
            raise ValueError(
                f"The model was trained on the classes {few(list(map(str, model.classes_)))}; "
                f"{problem.target!r} also holds {few(unknown)}."
            )


def evaluate(rows: Predictions, random_state: int = 0) -> dict[str, Any]:
    """Return the sections `prediction`, `calibration` and `coverage`."""
    if rows.classes is None:
        return {
            "prediction": _regression(rows, random_state),
            "calibration": _error_by_std(rows, random_state),
            "coverage": _error_by_coverage(rows),
        }
    return {
        "prediction": _classification(rows, rows.classes),
        "calibration": _calibration(rows, rows.classes),
        "coverage": _accuracy_by_certainty(rows, rows.classes),
    }


# ---- classification


def _classification(rows: Predictions, classes: Array) -> dict[str, Any]:
    """Scores beside those of the prior, the confusion matrix, and certainty."""
    proba, truth = rows.output, _index(classes, rows.y)
    decided, certainty = proba.argmax(axis=1), proba.max(axis=1)
    correct = truth == decided
    prior = np.tile(np.bincount(truth, minlength=len(classes)) / len(truth), (len(truth), 1))
    if len(classes) == 2:
        shown, upper, names = proba[:, 1], truth == 1, [f"true {c}" for c in classes[::-1]]
    else:
        shown, upper, names = certainty, correct, ["correct", "incorrect"]
    edges = np.linspace(0, 1, 21)
    return {
        "n": len(truth),
        "folds": rows.folds,
        "measures": _measures(_class_scores, truth, proba, prior, rows.models),
        "confusion": confusion_matrix(truth, decided, labels=range(len(classes))),
        "certainty": certainty.mean(),
        "histogram": {
            "edges": edges,
            "groups": [
                {"name": name, "counts": np.histogram(shown[own], edges)[0]}
                for name, own in zip(names, (upper, ~upper), strict=True)
            ],
        },
        "by_missing": _by_share_missing(rows, {"accuracy": correct, "certainty": certainty}),
        "trend": _trend(1 - rows.known_share, certainty),
    }


def _class_scores(truth: Array, proba: Array) -> dict[str, float]:
    """Scores of probabilities; `truth` holds the numbers of the classes."""
    decided, present = proba.argmax(axis=1), np.unique(truth)
    judged = present[1:] if proba.shape[1] == 2 else present
    aucs = [roc_auc_score(truth == k, proba[:, k]) for k in judged if 0 < (truth == k).mean() < 1]
    clipped = np.clip(proba, 1e-9, None)
    clipped = clipped / clipped.sum(axis=1, keepdims=True)
    # The balanced accuracy is undefined for a predicted class without any row.
    defined = set(decided) <= set(present)
    return {
        "AUC": float(np.mean(aucs)) if aucs else float("nan"),
        "accuracy": float((truth == decided).mean()),
        "balanced accuracy": balanced_accuracy_score(truth, decided) if defined else float("nan"),
        "Brier score": metrics.brier_score(truth, proba),
        "log loss": log_loss(truth, clipped, labels=range(proba.shape[1])),
    }


def _calibration(rows: Predictions, classes: Array) -> dict[str, Any]:
    """Probabilities and frequencies of the positive one of two classes, or of all of several."""
    y, proba, certainty = rows.y, rows.output, rows.output.max(axis=1)
    own = slice(1, None) if len(classes) == 2 else slice(None)
    hit, p = (y[:, None] == classes)[:, own].astype(int), proba[:, own]
    test = metrics.calibration_test(y, proba, classes=classes)
    excess = certainty - (rows.decision == y)
    deviation = np.sqrt((certainty * (1 - certainty)).sum())
    z = excess.sum() / deviation if deviation > 0 else 0.0
    significant = 2 * norm.sf(abs(z)) < _SIGNIFICANT
    return {
        "error": test.error,
        "median": test.median,
        "upper": test.upper,
        "overconfident": bool(significant and z > 0),
        "underconfident": bool(significant and z < 0),
        "bins": _reliability(hit.ravel(), p.ravel()),
        "by_class": records(
            name=classes[own],
            n=hit.sum(axis=0),
            error=[metrics.calibration_error(*pair) for pair in zip(hit.T, p.T, strict=True)],
        ),
    }


def _reliability(hit: Array, p: Array) -> list[dict[str, Any]]:
    """Bins of equal size with 90 % intervals (Wilson). Equal probabilities share a bin."""
    ranks = rankdata(np.round(p, 12)) - 0.5
    which = (ranks * min(_BINS, len(p)) / len(p)).astype(int)
    bins = [np.flatnonzero(which == k) for k in np.unique(which)]
    tests = [binomtest(int(hit[own].sum()), len(own)) for own in bins]
    intervals = [test.proportion_ci(0.9, "wilson") for test in tests]
    return records(
        n=[len(own) for own in bins],
        predicted=[p[own].mean() for own in bins],
        observed=[hit[own].mean() for own in bins],
        low=[interval.low for interval in intervals],
        high=[interval.high for interval in intervals],
    )


def _accuracy_by_certainty(rows: Predictions, classes: Array) -> dict[str, Any]:
    """Accuracy of the most certain rows, for every share of rows that is decided."""
    curve = metrics.accuracy_coverage(rows.y, rows.output, classes=classes)
    right, certainty = rows.decision == rows.y, rows.output.max(axis=1)
    limit_at = choose_threshold(certainty, right, ACCURACY, CONFIDENCE)
    n, accuracy = len(curve.coverage), curve.accuracy
    shown = evenly_spaced(n, first=min(19, n - 1))
    count = np.maximum(np.round(np.multiply(_COVERAGES, n)).astype(int), 1)
    limit = curve.certainty[count - 1]
    return {
        "measure": "accuracy",
        "coverage": curve.coverage[shown],
        "value": accuracy[shown],
        "points": records(coverage=_COVERAGES, rows=count, value=accuracy[count - 1], limit=limit),
        "target": ACCURACY,
        "confidence": CONFIDENCE,
        "threshold": limit_at if np.isfinite(limit_at) else None,
        "decided": (certainty > limit_at).mean(),
    }


# ---- regression


def _regression(rows: Predictions, random_state: int) -> dict[str, Any]:
    """Scores beside those of the mean, and predicted by true values."""
    y, predicted, error = rows.y, rows.output, np.abs(rows.y - rows.output)
    shown = _draw_points(len(y), random_state)
    by_missing = {"error": error} | ({} if rows.std is None else {"std": rows.std})
    return {
        "n": len(y),
        "folds": rows.folds,
        "measures": _measures(_value_scores, y, predicted, np.full(len(y), y.mean()), rows.models),
        "scatter": {"truth": y[shown], "predicted": predicted[shown]},
        "by_missing": _by_share_missing(rows, by_missing),
        "trend": _trend(1 - rows.known_share, error),
    }


def _value_scores(y: Array, predicted: Array) -> dict[str, float]:
    """Scores of predicted values."""
    residual = y - predicted
    variance = ((y - y.mean()) ** 2).mean()
    return {
        "R2": 1 - (residual**2).mean() / variance if variance > 0 else float("nan"),
        "mean absolute error": np.abs(residual).mean(),
        "root mean squared error": np.sqrt((residual**2).mean()),
        "rank correlation": _rank_correlation(y, predicted),
    }


def _error_by_std(rows: Predictions, random_state: int) -> dict[str, Any] | None:
    """Errors by the predicted standard deviation; None if the model predicts none."""
    if rows.std is None:
        return None
    error, std = np.abs(rows.y - rows.output), rows.std
    bins = np.array_split(np.argsort(std, kind="stable"), min(_STD_BINS, len(std)))
    shown = _draw_points(len(error), random_state)
    return {
        "correlation": _rank_correlation(std, error),
        "within": float((error <= 2 * std).mean()),
        "bins": records(
            n=[len(own) for own in bins],
            std=[np.sqrt((std[own] ** 2).mean()) for own in bins],
            error=[error[own].mean() for own in bins],
            deviation=[np.sqrt((error[own] ** 2).mean()) for own in bins],
        ),
        "points": {"std": std[shown], "error": error[shown]},
    }


def _error_by_coverage(rows: Predictions) -> dict[str, Any]:
    """Mean absolute error of the rows with the smallest predicted standard deviation.

    If the model predicts none, rows are ranked by their known share. The ensemble spread is not
    used: it is smallest for rows without known values.
    """
    error = np.abs(rows.y - rows.output)
    ranked = -rows.known_share if rows.std is None else rows.std
    rounded = np.round(ranked, 9) if rows.std is None else ranked
    levels, which = np.unique(rounded, return_inverse=True)
    n = np.bincount(which).cumsum()
    mean, share = np.bincount(which, error).cumsum() / n, n / len(error)
    shown = evenly_spaced(len(levels), first=min(19, len(levels) - 1) if len(levels) > 60 else 0)
    last = np.unique(np.searchsorted(share, np.subtract(_COVERAGES, 1e-9)))[::-1]
    limit = -levels[last] if rows.std is None else levels[last]
    return {
        "measure": "mean absolute error",
        "by": "known share" if rows.std is None else "std",
        "coverage": share[shown],
        "value": mean[shown],
        "points": records(coverage=share[last], rows=n[last], value=mean[last], limit=limit),
    }


def _rank_correlation(a: Array, b: Array) -> float:
    if len(a) < 3 or np.ptp(a) == 0 or np.ptp(b) == 0:
        return float("nan")
    return float(spearmanr(a, b).statistic)


def _draw_points(n: int, random_state: int) -> Array:
    rng = np.random.default_rng(random_state)
    return np.sort(rng.choice(n, min(n, _POINTS), replace=False))


# ---- both


def _measures(
    scores: Callable[[Array, Array], dict[str, float]],
    truth: Array,
    predicted: Array,
    baseline: Array,
    models: tuple[tuple[Any, Array], ...],
) -> list[dict[str, Any]]:
    """Scores of all rows, their standard deviation between folds, and those of a baseline."""
    folds = [scores(truth[rows], predicted[rows]) for _, rows in models]
    value, constant = scores(truth, predicted), scores(truth, baseline)
    spread = pd.DataFrame(folds, columns=list(value)).std().to_list()
    return records(name=value, value=value.values(), spread=spread, baseline=constant.values())


def _by_share_missing(rows: Predictions, values: Mapping[str, Array]) -> list[dict[str, Any]]:
    """Means of values among rows with about the same share of missing values."""
    share = 1 - rows.known_share
    which = np.searchsorted(np.round(_MISSING, 9), np.round(share, 9))
    return [
        {
            "low": _MISSING[max(k - 1, 0)],
            "high": _MISSING[k],
            "n": int((which == k).sum()),
            "missing": share[which == k].mean(),
            **{name: value[which == k].mean() for name, value in values.items()},
        }
        for k in np.unique(which)
    ]


def _trend(share: Array, values: Array) -> dict[str, Any]:
    """Test whether values rise or fall with the share of missing values, over all rows.

    The test is Spearman's rank correlation. `direction` is "rises" or "falls" if the p-value is
    small and the covariance has the same sign, else "none". It is None if all shares are equal.
    """
    share = np.round(share, 9)
    if len(share) < 3 or np.ptp(share) == 0:
        return {"correlation": None, "p_value": None, "direction": None}
    if np.ptp(values) == 0:
        return {"correlation": 0.0, "p_value": 1.0, "direction": "none"}
    rank, p = spearmanr(share, values)
    clear = p < _SIGNIFICANT and np.sign(np.cov(share, values)[0, 1]) == np.sign(rank)
    direction = "none" if not clear else "rises" if rank > 0 else "falls"
    return {"correlation": float(rank), "p_value": float(p), "direction": direction}


def records(**columns: Any) -> list[dict[str, Any]]:
    """Return columns of equal length as a list of dicts."""
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def evenly_spaced(n: int, most: int = 160, first: int = 0) -> Array:
    """Return at most `most` evenly spaced positions from `first` to `n - 1`."""
    return np.unique(np.linspace(first, n - 1, most).round().astype(int))
