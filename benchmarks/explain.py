"""The time that explanations take.

    python benchmarks/explain.py

The table is the generated cohort with 12 modalities and 211 measures. The models are a fusion
network, an ensemble of four of them, a plain network, the default of `NanMLPClassifier` (twelve
networks on piecewise-linear bins), and scikit-learn's HistGradientBoosting. The tasks are `what_if`
for 1,000 rows and 211 features, exact Shapley values of 12 modalities for 50
rows, and trajectories of 17 patients in 100 orders. Times are medians of three runs.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

from sklearn.ensemble import HistGradientBoostingClassifier

from promissing import NanFusionClassifier, NanMLPClassifier
from promissing.datasets import make_cohort
from promissing.estimators.mlp import PLAIN
from promissing.inspection import information_loss, shapley, what_if


def seconds(work: Callable[[], Any], runs: int = 3) -> float:
    taken = []
    for _ in range(runs):
        start = time.perf_counter()
        work()
        taken.append(time.perf_counter() - start)
    return statistics.median(taken)


def main() -> None:
    cohort, more = make_cohort(), make_cohort(1000, random_state=1)
    settings: dict[str, Any] = {"augment": True, "max_iter": 20, "random_state": 0}
    models = {
        "fusion": NanFusionClassifier(cohort.modalities, n_members=1, **settings),
        "4 fused": NanFusionClassifier(cohort.modalities, n_members=4, **settings),
        "plain": NanMLPClassifier(**PLAIN | settings),
        "default": NanMLPClassifier(random_state=0),
        "HGB": HistGradientBoostingClassifier(categorical_features="from_dtype", random_state=0),
    }
    complete = cohort.X[~cohort.X.isna().any(axis=1)][:17]
    groups = cohort.modalities
    print(f"{'':8}{'what_if, s':>12}{'shapley, s':>12}{'trajectories, s':>17}")
    for name, model in models.items():
        model.fit(cohort.X, cohort.y)
        prior = cohort.y.mean()
        jobs = (
            lambda model=model: what_if(model, more.X),
            lambda model=model: shapley(model, more.X[:50], groups=groups),
            lambda model=model, prior=prior: information_loss(
                model, complete, groups, orders=100, prior=prior, random_state=0
            ),
        )
        a, b, c = (seconds(job) for job in jobs)
        print(f"{name:8}{a:12.2f}{b:12.2f}{c:17.2f}", flush=True)


if __name__ == "__main__":
    main()
