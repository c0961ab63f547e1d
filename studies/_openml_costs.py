"""How long a batch of the benchmark takes: formulas, and how fast this machine is.

The formulas give seconds on one core of the machine they were fitted on. `measure` times a little
of every kind of work, so that the formulas can be corrected for another machine.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import ceil, log2, sqrt
from time import perf_counter
from types import MappingProxyType
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from promissing.compare import strategies
from studies._openml_tasks import (
    COMPLETE,
    FOLDS,
    FOREST,
    GRID,
    NEIGHBOR_ROWS,
    alike,
    hidden,
    is_tree,
)
from studies.networks import Job, Recipe, run_jobs
from studies.runner import Outcome, Row

__all__ = ["KINDS", "by_kind", "measure"]

KINDS = ("net", "compile", "gain", "trees", "neighbors", "rest")
BATCH = 10  # Rows in a step.
SAMPLE = 5000  # Rows to fill the gaps of.


def by_kind(
    n: int,
    p: int,
    task: str,
    mechanism: str,
    ratios: Sequence[float],
    repetitions: int,
    names: Sequence[str],
    epochs: int,
    anew: float = 1.0,
    speeds: Mapping[str, float] = MappingProxyType({}),
) -> dict[str, float]:
    """The seconds a batch spends on every kind of work.

    Parameters
    ----------
    n, p : int
        The rows in use and the columns of the table.
    task : {"binary", "regression"}
    mechanism, ratios, names, epochs
        The arguments of the batch.
    repetitions : int
        How many.
    anew : float, default=1.0
        The share of such batches that have to compile their programs: a process that has run
        another mechanism of the table has them.
    speeds : mapping, optional
        By kind, how many times as long as by the formula it takes here.
    """
    half, columns = n / FOLDS, 1
    if mechanism.startswith(GRID):
        columns = max(1, int(p * float(mechanism.removeprefix(GRID))))
    found = dict.fromkeys(KINDS, 0.0)
    found["rest"] = 0.3 + (0 if mechanism == COMPLETE or columns > 1 else 4.5e-6 * n * p)
    nets = [name for name in names if not is_tree(name)]
    programs = {alike(name) for name in nets}
    found["compile"] = anew * (2.5 * len(programs) + 1.8 * ("gain" in names))
    if columns > 1 and 1 in programs:
        found["compile"] += (1 - anew) * 2.5  # An indicator for every column: another width.
    for ratio in ratios:
        for name in names:
            kind, seconds = _preparing(name, half, p, columns, ratio, task)
            found[kind] += FOLDS * repetitions * seconds
            if name in nets:
                steps = epochs * ceil(half / BATCH)
                share = 1.0
                if name == "drop-features":
                    share = 1 / len(ratios)  # All ratios are trained as one.
                elif name == "mean+share" and "mean+indicator" in names:
                    share = 0.0
                found["net"] += share * FOLDS * repetitions * steps * _step(name, p)
                found["rest"] += FOLDS * repetitions * 6e-8 * n * p
    return {kind: seconds * speeds.get(kind, 1.0) for kind, seconds in found.items()}


def _step(name: str, p: int) -> float:
    """Seconds of one step of one network among many."""
    extra = {"shared": 1.15, "feature": 1.4}
    compensation = strategies.STRATEGIES[name].compensation
    return (3.2e-6 + 1.2e-7 * p) * extra.get(compensation, 1.0)


def _preparing(
    name: str, half: float, p: int, columns: int, ratio: float, task: str
) -> tuple[str, float]:
    """The kind of work a strategy does besides the network, and its seconds for one fold."""
    if name == FOREST:
        tried = 1.6 * sqrt(p) if task == "binary" else p
        return "trees", 5e-6 * half * log2(half + 2) * tried
    if is_tree(name):
        return "trees", 0.3 * min(1.0, half / 1500) + 2.8e-5 * half
    if name == "gain":
        return "gain", 0.5 + 0.1 * p
    if name == "iterative":
        return "rest", 0.02 + 2.5e-6 * half * p * sqrt(columns)
    if name == "knn" and columns == 1:
        return "neighbors", 3e-6 * half * p
    if name == "knn":
        rows = 1 - (1 - ratio) ** columns
        pairs = 2 * half * min(half, NEIGHBOR_ROWS)
        return "neighbors", pairs * rows * (1.2e-8 + 6e-10 * p)
    return "rest", 5e-8 * half * p


def measure(names: Sequence[str], n: int, p: int, number: int) -> Outcome:
    """How many times as long as by the formulas every kind of work takes here.

    `number` only tells apart those that measure at the same time, as workers will run.
    """
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, p))
    y = (X[:, 0] * X[:, 1] + rng.normal(size=n) > 0).astype(np.float32)
    gaps = np.where(rng.random((n, p)) < 0.5, np.nan, X)
    speeds = {}
    jobs = [
        Job(X.astype(np.float32) + r, y, np.arange(n), X[:1], "none", hidden(p), (0, r))
        for r in range(48)
    ]
    extra = max(5, 3000 * BATCH // n)  # Epochs; fewer could not be told from noise.
    few, many = (Recipe("log", "relu", 0.01, BATCH, epochs) for epochs in (1, 1 + extra))
    run_jobs(jobs[:1], few)  # JAX has to start.
    first = _time(lambda: run_jobs(jobs, few))
    once = min(_time(lambda: run_jobs(jobs, few)) for _ in range(2))
    by_formula = extra * ceil(n / BATCH) * len(jobs) * _step("mean", p)
    speeds["net"] = max(_time(lambda: run_jobs(jobs, many)) - once, 0.0) / by_formula
    speeds["compile"] = max(first - once, 0.0) / 2.5
    if "gain" in names:
        from promissing.compare.imputers import GAINImputer

        some, more = (GAINImputer(n_steps=steps, random_state=0) for steps in (10, 1010))
        some.fit(gaps)
        by_formula = _preparing("gain", n, p, 1, 0.5, "binary")[1]
        # The difference, or what every fit costs once would be counted ten times.
        taken = _time(lambda: more.fit(gaps)) - _time(lambda: some.fit(gaps))
        speeds["gain"] = max(taken, 0.0) * 10 / by_formula
    trees = strategies.make("hgb", "classification", random_state=0)
    trees.fit(gaps[:100], y[:100])
    by_formula = _preparing("hgb", n, p, 1, 0.5, "binary")[1]
    single = np.column_stack([gaps[:, 0], X[:, 1:]])
    speeds["trees"] = _time(lambda: trees.fit(single, y).predict_proba(single)) / by_formula
    # Few rows would say more of what every call costs than of how fast it goes.
    many_rows = np.where(rng.random((SAMPLE, p)) < 0.5, np.nan, rng.normal(size=(SAMPLE, p)))
    for kind, name in (("neighbors", "knn"), ("rest", "iterative")):
        by_formula = _preparing(name, SAMPLE, p, p, 0.5, "binary")[1]
        speeds[kind] = _time(partial(_fill, name, many_rows)) / by_formula
    return Outcome([Row("", "", np.nan, kind, number, 0, "speed", v) for kind, v in speeds.items()])


def _fill(name: str, X: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # Ten rounds are the rule.
        return strategies.prepare(name, X, [X], random_state=0)


def _time(work: Callable[[], Any]) -> float:
    start = perf_counter()
    work()
    return perf_counter() - start
