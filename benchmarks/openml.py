"""The time of the networks of the benchmark on tables, here and with Keras `fit`.

    python benchmarks/openml.py --data DIR

Trains a slice of the study, PROMISSING on one table with half of its best column missing, three
repetitions and two folds, for a few epochs, and one of these networks with `keras.Model.fit` on the
JAX backend: the same data, batches of 10 and plain SGD. The steps of the study and of the recorded
run are counted from the plan; both costs are medians over epochs in the same run.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from math import ceil
from pathlib import Path

import numpy as np

os.environ["KERAS_BACKEND"] = "jax"


def ours(jobs: list, recipe: object) -> float:
    """Seconds per step of one network among its replicas."""
    from studies.networks import run_jobs

    few, many = recipe._replace(epochs=2), recipe._replace(epochs=12)
    run_jobs(jobs, few)
    taken = []
    for _ in range(3):
        start = time.perf_counter()
        run_jobs(jobs, few)
        middle = time.perf_counter()
        run_jobs(jobs, many)
        taken.append(time.perf_counter() - middle - (middle - start))
    steps = 10 * sum(ceil(len(job.rows) / recipe.batch_size) for job in jobs)
    return statistics.median(taken) / steps


def with_keras(job: object, recipe: object, epochs: int = 5) -> float:
    """Seconds per step of one network in `fit`."""
    import keras

    from promissing.keras import NanDense

    sizes = job.hidden
    model = keras.Sequential(
        [
            NanDense(sizes[0], activation="relu"),
            *(keras.layers.Dense(size, activation="relu") for size in sizes[1:]),
            keras.layers.Dense(1, activation="sigmoid"),
        ]
    )
    model.compile(optimizer=keras.optimizers.SGD(recipe.learning_rate), loss="binary_crossentropy")
    ends: list[float] = []
    stamp = keras.callbacks.LambdaCallback(
        on_epoch_end=lambda epoch, logs: ends.append(time.perf_counter())
    )
    X, y = job.X[job.rows], job.y[job.rows]
    model.fit(X, y, batch_size=recipe.batch_size, epochs=epochs, verbose=0, callbacks=[stamp])
    return statistics.median(np.diff(ends)) / ceil(len(X) / recipe.batch_size)


def count_steps(data: Path, repetitions: int, grid: int, max_rows: int | None) -> float:
    """All steps of all networks of a study."""
    from studies.openml import make_plan
    from studies.openml_tasks import FOLDS, is_tree

    plan = make_plan(
        repetitions=repetitions, grid_repetitions=grid, max_rows=max_rows, epochs=100, data=data
    )
    total = 0
    for batch in plan.batches:
        asked = batch.arguments
        n = min(plan.shapes[asked["table"]].rows, max_rows or 10**9)
        nets = sum(not is_tree(name) for name in asked["names"])
        fits = nets * len(asked["ratios"]) * len(asked["repetitions"]) * FOLDS
        total += fits * asked["epochs"] * ceil(n / FOLDS / 10)
    return total


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--table", default="phoneme")
    asked = parser.parse_args()

    from studies import openml_tasks as tasks
    from studies.networks import Training

    from promissing.networks.losses import LogLoss

    world = tasks.load(asked.table, 5000, 0, str(asked.data))
    ranked = tasks.ranking(asked.table, 5000, 0, str(asked.data))
    jobs = []
    for repetition in range(3):
        X = tasks.lose(world.X, "mcar", 0.5, ranked, repetition, 0)
        for fold, (train, test) in enumerate(tasks.split(world, repetition, 0)):
            unit = tasks.Unit("promissing", 0.5, repetition, fold)
            jobs.append(tasks.prepare(unit, world, X, train, test, len(test), 0).job)
    recipe = Training(LogLoss(), "relu", 0.01, 10, 1)
    engine, keras_fit = ours(jobs * 4, recipe), with_keras(jobs[0], recipe)
    studies = {
        "the recorded run": count_steps(asked.data, 3, 1, 4000),
        "the whole protocol": count_steps(asked.data, 20, 10, None),
    }
    print(f"{'':22}{'million steps':>14}{'engine, h':>12}{'Keras fit, h':>14}")
    for name, steps in studies.items():
        hours = [seconds * steps / 3600 for seconds in (engine, keras_fit)]
        print(f"{name:22}{steps / 1e6:14.0f}{hours[0]:12.1f}{hours[1]:14.0f}")
    print(f"one core; {engine * 1e6:.2f} and {keras_fit * 1e6:.0f} us a step: Keras fit takes "
          f"{keras_fit / engine:.0f} times as long")  # fmt: skip


if __name__ == "__main__":
    main()
