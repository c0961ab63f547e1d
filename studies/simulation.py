"""The paper's simulation study: XOR with gaps, learning curves, and what a gap is taken for.

A repetition draws 1,000 points, corrupts one random column of them, splits them in two halves and
trains every strategy's network, all from the same start. The settings are the paper's, as pinned
down by the protocol; `docs/simulation.md` reads the results out.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from promissing import missingness
from promissing._formula import COMPENSATIONS, Layout, neutralizers
from promissing.compare import strategies
from promissing.datasets import make_xor
from studies.networks import Job, Recipe, run_jobs
from studies.runner import Batch, Summary, run
from studies.scores import auc
from studies.store import Outcome, Row

__all__ = ["MECHANISMS", "RATIOS", "STRATEGIES", "run_study", "simulate"]

Array = NDArray[Any]

MECHANISMS = ("mcar", "mar", "mnar")
RATIOS = (0.3, 0.5)
# Trees have no learning curve; the other boosters add nothing to this small table.
STRATEGIES = tuple(
    name for name in strategies.NAMES if name not in ("lightgbm", "xgboost", "catboost")
)
TESTS = ("complete", "incomplete")
HIDDEN = (4,)
TOGETHER = 20  # Repetitions in a batch.


def run_study(
    out: Path,
    *,
    repetitions: int = 100,
    mechanisms: Sequence[str] = MECHANISMS,
    ratios: Sequence[float] = RATIOS,
    names: Sequence[str] = STRATEGIES,
    epochs: int = 400,
    seed: int = 0,
    resume: bool = False,
    jobs: int | None = None,
    progress: bool | None = None,
) -> Summary:
    """Run the study, or what is left of it; results go to `out`/results.sqlite as they finish.

    Parameters
    ----------
    out : path
        A directory; it is made.
    repetitions : int, default=100
    mechanisms, ratios, names : sequences
        How values get lost, which share of them, and the strategies.
    epochs : int, default=400
    seed : int, default=0
    resume : bool, default=False
        Whether to go on with the results in `out`.
    jobs : int, optional
        Worker processes; one for each core by default.
    progress : bool, optional
        Whether to show progress; by default, on a terminal.
    """
    names = strategies.check(names)
    mechanisms, ratios = check_losses(mechanisms, ratios, MECHANISMS)
    for what, value in (("repetitions", repetitions), ("epochs", epochs)):
        if value < 1:
            raise ValueError(f"`{what}` must be at least 1. Received: {value}")
    batches = [
        Batch(
            f"{mechanism}/{ratio:g}/{start:03d}",
            simulate,
            {
                "mechanism": mechanism,
                "ratio": ratio,
                "repetitions": list(range(start, min(start + TOGETHER, repetitions))),
                "names": list(names),
                "epochs": epochs,
                "seed": seed,
            },
        )
        for mechanism in mechanisms
        for ratio in ratios
        for start in range(0, repetitions, TOGETHER)
    ]
    settings = {
        "repetitions": repetitions,
        "mechanisms": list(mechanisms),
        "ratios": list(ratios),
        "strategies": list(names),
        "epochs": epochs,
        "seed": seed,
    }
    return run(
        "simulation", batches, out, settings=settings, resume=resume, jobs=jobs, progress=progress
    )


def check_losses(
    mechanisms: Sequence[str], ratios: Sequence[float], known: Sequence[str]
) -> tuple[tuple[str, ...], tuple[float, ...]]:
    """The mechanisms and ratios, each once, if they make sense."""
    for name in mechanisms:
        if name not in known:
            raise ValueError(
                f"There is no mechanism {name!r} in this study. They are: {', '.join(known)}."
            )
    for ratio in ratios:
        if not 0 <= ratio <= 1:
            raise ValueError(f"A ratio must lie between 0 and 1. Received: {ratio}")
    if not mechanisms or not ratios:
        raise ValueError("Name at least one mechanism and one ratio.")
    return tuple(dict.fromkeys(mechanisms)), tuple(dict.fromkeys(map(float, ratios)))


class World(NamedTuple):
    """One repetition's data: half to learn from, half to be tested on."""

    X_full: Array  # (n, 2)
    X_train: Array  # The same with gaps.
    y_train: Array
    tests: tuple[Array, Array]  # Complete and incomplete.
    y_test: Array


def draw(mechanism: str, ratio: float, repetition: int, seed: int, n: int = 1000) -> World:
    """Draw points, corrupt one random column of all of them, and split them in halves.

    Points and halves are those of the repetition, whatever the mechanism.
    """
    X, y = make_xor(n, random_state=np.random.default_rng([seed, repetition, 0]))
    rng = np.random.default_rng(
        [seed, repetition, 1, MECHANISMS.index(mechanism), int(ratio * 1e6)]
    )
    gaps = missingness.Mechanism(mechanism)(X, ratio=ratio, random_state=rng, n_columns=1)
    order = np.random.default_rng([seed, repetition, 2]).permutation(n)
    train, test = order[: n // 2], order[n // 2 :]
    return World(X[train], gaps[train], y[train], (X[test], gaps[test]), y[test])


def simulate(
    mechanism: str,
    ratio: float,
    repetitions: Sequence[int],
    names: Sequence[str],
    epochs: int,
    seed: int,
) -> Outcome:
    """Some repetitions of one mechanism and ratio, for all strategies."""
    recipe = Recipe("log", "tanh", learning_rate=0.1, batch_size=10, epochs=epochs)
    nets = [name for name in names if strategies.STRATEGIES[name].family != "trees"]
    worlds = [draw(mechanism, ratio, r, seed) for r in repetitions]
    plans = [(k, name, i) for k, name in enumerate(nets) for i in range(len(worlds))]
    jobs, spent, able = [], [], []
    for number, (_, name, i) in enumerate(plans):
        start = perf_counter()
        job = _job(name, worlds[i], (seed, repetitions[i], 3))
        spent.append(perf_counter() - start)
        if job is not None:
            jobs.append(job)
            able.append(number)
    labels = np.stack([worlds[plans[number][2]].y_test for number in able])[:, None]

    def watch(outputs: Array, numbers: list[int]) -> Array:
        return auc(labels[numbers], outputs.reshape(len(numbers), 2, -1)).astype(np.float32)

    trainees = dict(zip(able, run_jobs(jobs, recipe, watch=watch), strict=True))
    rows: list[Row] = []

    def record(name: str, repetition: int, scores: Any, seconds: float) -> None:
        for test, value in zip(TESTS, scores, strict=True):
            metric = f"auc_{test}"
            rows.append(
                Row("xor", mechanism, ratio, name, repetition, 0, metric, float(value), seconds)
            )

    curves = np.full((len(nets), len(worlds), 2, epochs), np.nan, np.float32)
    arrays: dict[str, Array] = {
        f"neutralizers/{name}": np.full((len(worlds), *HIDDEN, 2), np.nan, np.float32)
        for name in nets
        if strategies.STRATEGIES[name].family == "native"
    }
    for number, (k, name, i) in enumerate(plans):
        seconds = spent[number]
        if number in trainees:
            trainee = trainees[number]
            seconds += trainee.seconds
            curves[k, i] = trainee.outputs
            if f"neutralizers/{name}" in arrays:
                arrays[f"neutralizers/{name}"][i] = _read_out(trainee.params, name)
        record(name, repetitions[i], curves[k, i, :, -1], seconds)
    for name in names:
        for i, world in enumerate(worlds if name not in nets else ()):
            start = perf_counter()
            model = strategies.make(name, "classification", random_state=repetitions[i])
            model.fit(world.X_train, world.y_train)
            scores = [auc(world.y_test, model.predict_proba(X)[:, 1]) for X in world.tests]
            record(name, repetitions[i], scores, perf_counter() - start)
    arrays["auc"] = curves
    arrays["observed"] = np.stack([_observed(world.X_train) for world in worlds])
    return Outcome(rows, arrays)


def _job(name: str, world: World, seed: tuple[int, ...]) -> Job | None:
    """The network of a strategy in one world; None if it has nothing to learn from."""
    train, tests = world.X_train, world.tests
    if name == "full":
        train, tests = world.X_full, (world.tests[0],) * 2
    ready = strategies.prepare(name, train, tests, random_state=seed[1])
    if not len(ready.rows) or not ready.train.shape[1]:
        return None
    compensation = strategies.STRATEGIES[name].compensation
    others = np.concatenate(ready.others)
    return Job(ready.train, world.y_train, ready.rows, others, compensation, HIDDEN, seed)


def _read_out(params: dict[str, Array], name: str) -> Array:
    """The neutralizers (s, p) of a trained network."""
    weight = params.get("compensation_weight")
    compensation = COMPENSATIONS[strategies.STRATEGIES[name].compensation]
    layout = Layout(2).arrays(np, per_feature=compensation.per_feature)
    kernel, bias = params["kernel_0"], params["bias_0"]
    return neutralizers(kernel, bias, weight, layout, compensation, xp=np)  # type: ignore[no-any-return]


def _observed(X: Array) -> Array:
    """The least, the mean and the largest observed value of every column (p, 3)."""
    if np.isnan(X).all(axis=0).any():
        return np.full((X.shape[1], 3), np.nan)
    return np.stack([np.nanmin(X, 0), np.nanmean(X, 0), np.nanmax(X, 0)], axis=1)
