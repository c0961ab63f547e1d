"""Settings whose predictions must not change: small tables, fixed seeds, few epochs.

Every default that a later version may change is passed explicitly. ``python tests/golden/cases.py``
writes the predictions and one model file per estimator beside this file. Run it only when a change
of predictions is intended, and say so in the changelog.
"""

import os
import sys
import warnings
from pathlib import Path
from unittest import mock

import numpy as np
import pandas as pd
from sklearn.exceptions import ConvergenceWarning

import promissing
from promissing import (
    NanFusionClassifier,
    NanFusionRegressor,
    NanMLPClassifier,
    NanMLPRegressor,
)
from promissing.estimators import recipe
from promissing.estimators.mlp import PLAIN

HERE = Path(__file__).parent
RECIPE = {
    "hidden_layer_sizes": (16, 16),
    "n_members": 3,
    "max_iter": 3,
    "alpha": 1.0,
    "solver": "adamw",
    "augment": "auto",
    "early_stopping": "auto",
    "random_state": 0,
}
SQUARED = {**RECIPE, "loss": "squared_error"}
SIMPLE = {**PLAIN, "hidden_layer_sizes": (12,), "max_iter": 3, "random_state": 0}
FUSION = {
    "modalities": {"left": ["a", "b"], "right": ["c", "d"]},
    "n_members": 2,
    "augment": 0.5,
    "augment_by": "number",
    "augment_empty": True,
    "early_stopping": False,
    "dropout": 0.3,
    "solver": "adam",
    "alpha": 1e-4,
    "batch_size": 64,
    "learning_rate_init": 1e-3,
    "max_iter": 3,
    "n_bins": 0,
    "random_state": 0,
}


def table(n=160):
    """Four numbers with missing values, one of them with a long tail, and a noisy level."""
    rng = np.random.default_rng(5)
    X = pd.DataFrame(rng.normal(size=(n, 4)), columns=list("abcd"))
    X["d"] = np.exp(1.5 * X["d"])
    level = (X["a"] - X["b"] * X["c"] + 0.3 * rng.normal(size=n)).to_numpy()
    return X.mask(rng.random(X.shape) < 0.2), level


def mixed(n=160):
    """Numbers, booleans, categories and dates with missing values."""
    X, level = table(n)
    rng = np.random.default_rng(6)
    X["city"] = rng.choice(["Bonn", "Ulm", "Kiel", None], n)
    X["smoker"] = pd.array(rng.choice([True, False, None], n), dtype="boolean")
    X["seen"] = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, n), "D")
    return X, level + (X["city"] == "Ulm")


def _fits():
    X, level = table()
    frame, mixed_level = mixed()
    three = np.array(["low", "middle", "high"])[np.digitize(level, [-0.7, 0.7])]
    weight = np.random.default_rng(7).random(len(level))
    long_tail = 3 * X["a"].fillna(0).to_numpy() + 2 * X["d"].fillna(1).to_numpy()
    yield "classifier", NanMLPClassifier(**RECIPE).fit(X, level > 0), X
    yield "regressor", squared(X, 50 + 9 * level), X
    yield "linear_skip", squared(X, long_tail), X
    yield "mean_std", NanMLPRegressor(**RECIPE, loss="mean_std").fit(X, long_tail), X
    yield "classes", NanMLPClassifier(**RECIPE).fit(X, three), X
    yield "labels", NanMLPClassifier(**RECIPE).fit(X, np.c_[level > 0, level < 1] * 1), X
    yield "outputs", squared(X, np.c_[level, 5 - 3 * level]), X
    yield "plain", NanMLPClassifier(**SIMPLE).fit(X, level > 0), X
    yield (
        "shared",
        NanMLPRegressor(**SIMPLE, compensation="shared", loss="squared_error").fit(X, level),
        X,
    )
    yield "mixed", NanMLPClassifier(**RECIPE).fit(frame, mixed_level > 0), frame
    sgd = {**RECIPE, "solver": "sgd", "alpha": 1e-4, "learning_rate_init": 0.1}
    yield "mixed_sgd", NanMLPClassifier(**sgd).fit(frame, mixed_level > 0), frame
    yield "weights", NanMLPClassifier(**RECIPE).fit(X, level > 0, weight), X
    balanced = NanMLPClassifier(**RECIPE, class_weight="balanced")
    yield "balanced", balanced.fit(X, level > 0.8), X
    partial = NanMLPClassifier(**{**SIMPLE, "augment": False})
    partial.partial_fit(X[:80], level[:80] > 0, classes=[False, True])
    yield "partial_fit", partial.partial_fit(X[80:], level[80:] > 0), X
    warm = squared(X, level, warm_start=True)
    with mock.patch.object(recipe, "AUGMENT", 0.02):
        yield "warm_start", warm.fit(X, level), X
    yield "fusion", NanFusionClassifier(**FUSION).fit(X, three), X
    yield "fusion_regressor", NanFusionRegressor(**FUSION, loss="squared_error").fit(X, level), X


FILES = {
    "NanMLPClassifier": "mixed",
    "NanMLPRegressor": "linear_skip",
    "NanFusionClassifier": "fusion",
    "NanFusionRegressor": "fusion_regressor",
}


def rows(X):
    """Some rows of the table, and an empty one."""
    return pd.concat([X.iloc[:24], X.iloc[:1].mask(np.ones((1, X.shape[1]), bool))])


def outputs(model, X):
    """What a model predicts, with the disagreement of its members."""
    few = rows(X)
    mean = model.predict_proba(few) if hasattr(model, "classes_") else model.predict(few)
    return np.stack([mean, model.spread(few)])


def squared(*arguments, **more):
    """Fit a regressor with squared errors, as release 0.1 did by default: it augmented less."""
    with mock.patch.object(recipe, "AUGMENT", 0.02):
        return NanMLPRegressor(**SQUARED, **more).fit(*arguments)


def make():
    """Return the predictions by name, and the models."""
    predictions, models = {}, {}
    for name, model, X in _fits():
        predictions[name], models[name] = outputs(model, X), model
    return predictions, models


if __name__ == "__main__":
    # As in `tests/conftest.py`, before JAX is imported: other settings round differently.
    os.environ |= {"NPROC": "1", "ONEDNN_MAX_CPU_ISA": "AVX2"}
    warnings.simplefilter("ignore", ConvergenceWarning)
    found, fitted = make()
    np.savez_compressed(HERE / "predictions.npz", **found)
    for cls, case in FILES.items():
        fitted[case].save(HERE / f"{cls}.safetensors")
    sys.stdout.write(f"{len(found)} cases of promissing {promissing.__version__}\n")
