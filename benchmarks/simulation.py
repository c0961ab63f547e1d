"""The time of the simulation study on this machine, and of the same steps with Keras `fit`.

    python benchmarks/simulation.py

Trains a slice of the study, PROMISSING on twenty repetitions of MNAR at 50 %, for a few epochs, and
the same network, data, batches of 10 and plain SGD with `keras.Model.fit` on the JAX backend. The
study's steps are counted from its protocol; both costs are medians over epochs in the same run.
"""

from __future__ import annotations

import os
import statistics
import time

import numpy as np

os.environ["KERAS_BACKEND"] = "jax"

REPETITIONS, CELLS, NETWORKS, EPOCHS, STEPS = 100, 6, 13, 400, 50


def ours(epochs: int) -> float:
    """Seconds per step of one network, among its replicas, its AUC by epoch included."""
    from studies import simulation
    from studies.networks import Job, Training, auc, run_jobs

    from promissing.networks.losses import LogLoss

    worlds = [simulation.draw("mnar", 0.5, r, 0) for r in range(20)]
    jobs = [
        Job(w.X_train, w.y_train, np.arange(500), np.concatenate(w.tests), "none", (4,), (0, r, 3))
        for r, w in enumerate(worlds)
    ]
    labels = np.stack([world.y_test for world in worlds])[:, None]
    ends: list[float] = []

    def watch(outputs: np.ndarray, numbers: list[int]) -> np.ndarray:
        scores = auc(labels[numbers], outputs.reshape(len(numbers), 2, -1))
        ends.append(time.perf_counter())
        return scores

    run_jobs(jobs, Training(LogLoss(), "tanh", 0.1, 10, epochs), watch=watch)
    return statistics.median(np.diff(ends)) / len(jobs) / STEPS


def with_keras(epochs: int) -> float:
    """Seconds per step of one network in `fit`, its AUC not included."""
    import keras
    from studies import simulation

    from promissing.keras import NanDense

    world = simulation.draw("mnar", 0.5, 0, 0)
    model = keras.Sequential(
        [NanDense(4, activation="tanh"), keras.layers.Dense(1, activation="sigmoid")]
    )
    model.compile(optimizer=keras.optimizers.SGD(0.1), loss="binary_crossentropy")
    ends: list[float] = []
    stamp = keras.callbacks.LambdaCallback(
        on_epoch_end=lambda epoch, logs: ends.append(time.perf_counter())
    )
    X, y = world.X_train.astype("float32"), world.y_train.astype("float32")
    model.fit(X, y, batch_size=10, epochs=epochs, verbose=0, callbacks=[stamp])
    return statistics.median(np.diff(ends)) / STEPS


def main() -> None:
    engine, keras_fit = ours(40), with_keras(12)
    steps = REPETITIONS * CELLS * NETWORKS * EPOCHS * STEPS
    print(f"{steps / 1e6:.0f} million steps: {REPETITIONS} repetitions x {CELLS} cells x "
          f"{NETWORKS} networks x {EPOCHS} epochs x {STEPS} steps")  # fmt: skip
    print(f"{'':14}us per step   hours on one core")
    for name, seconds in (("engine", engine), ("Keras fit", keras_fit)):
        print(f"{name:14}{seconds * 1e6:11.2f}{seconds * steps / 3600:20.2f}")
    print(f"Keras fit takes {keras_fit / engine:.0f} times as long")


if __name__ == "__main__":
    main()
