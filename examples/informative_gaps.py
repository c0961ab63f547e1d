"""Gaps that tell something: a network on a table with holes, beside mean imputation.

    python examples/informative_gaps.py

A table of 2,000 patients is made here, with numbers, text and gaps: one laboratory value is missing
where it was high (not at random), elsewhere a fifth is missing by chance. The same network is
cross-validated on five treatments of the gaps. Then one patient is shown losing information.
"""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
from rich.console import Console
from rich.table import Table
from sklearn.compose import make_column_transformer
from sklearn.exceptions import ConvergenceWarning
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline, make_union

from promissing import NanMLPClassifier
from promissing.estimators.mlp import PLAIN


def make_table(n: int = 2000) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "age": rng.normal(50, 12, n),
            "marker": rng.normal(1.0, 0.3, n),
            "pressure": rng.normal(120, 15, n),
            "ward": rng.choice(["north", "south", "east"], n),
            "smoker": (rng.random(n) < 0.3).astype(float),
        }
    )
    risk = (table["marker"] - 1) / 0.3 + (table["age"] - 50) / 12 * (table["ward"] == "north")
    y = np.where(risk + 0.5 * rng.normal(size=n) > 0.2, "relapse", "none")
    high = table["marker"].between(1.1, 1.6)
    table = table.mask(rng.random(table.shape) < 0.2)
    return table.assign(marker=table["marker"].mask(high)), y


def main() -> None:
    warnings.filterwarnings("ignore", category=ConvergenceWarning)
    console = Console()
    X, y = make_table()
    shared = {**PLAIN, "hidden_layer_sizes": 64, "max_iter": 60, "learning_rate_init": 3e-3}
    shared["random_state"] = 0
    mean = make_column_transformer(
        (SimpleImputer(), ["age", "marker", "pressure", "smoker"]),
        (SimpleImputer(strategy="most_frequent"), ["ward"]),
    )
    indicated = make_union(mean, MissingIndicator(features="all"))
    models = {
        "filled with the mean": make_pipeline(mean, NanMLPClassifier(**shared)),
        "filled with the mean, and indicated": make_pipeline(indicated, NanMLPClassifier(**shared)),
        "pruned (PROMISSING)": NanMLPClassifier(compensation="none", **shared),
        "pruned, shared compensation (mPROMISSING)": NanMLPClassifier(
            compensation="shared", **shared
        ),
        "pruned, compensation per feature": NanMLPClassifier(**shared),
    }
    result = Table(title="2,000 patients, 5-fold cross-validation", title_justify="left")
    for column in ("gaps are", "AUC", "spread"):
        result.add_column(column, justify="left" if column == "gaps are" else "right")
    with console.status("training 25 networks"):
        for name, model in models.items():
            scores = cross_val_score(model, X, y, scoring="roc_auc", cv=5)
            result.add_row(name, f"{scores.mean():.3f}", f"{scores.std():.3f}")
    console.print(result)

    with console.status("training an ensemble that has learnt to do without"):
        model = NanMLPClassifier(**shared | {"augment": True, "n_members": 8}).fit(X, y)
    fading = Table(title="One patient, less and less known", title_justify="left")
    for column in ("known", "share", "relapse", "members differ by"):
        fading.add_column(column, justify="left" if column == "known" else "right")
    complete = X.dropna()
    sure = model.predict_proba(complete)[:, 1].argmax()
    patient = complete.iloc[[sure]]
    for known in range(len(X.columns), -1, -1):
        row = patient.mask(np.arange(len(X.columns))[None] >= known)
        fading.add_row(
            ", ".join(X.columns[:known]) or "nothing",
            f"{model.known_share(row)[0]:.0%}",
            f"{model.predict_proba(row)[0, 1]:.2f}",
            f"{model.spread(row)[0, 1]:.2f}",
        )
    console.print(fading)
    console.print(f"(the share of relapses in the table is {model.prior_[1]:.2f})")


if __name__ == "__main__":
    main()
