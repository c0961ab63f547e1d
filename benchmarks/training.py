"""The engine against Keras, PyTorch and scikit-learn, all in the same run.

    python benchmarks/training.py            # or: make bench
    python benchmarks/training.py --quick    # few rounds, no million rows

Peers take turns with us and medians are compared: the machine may be noisy, the ratio is less so.
What needs a fresh process (the first fit, the memory) gets one. The peers train on complete data,
since they know no other; ours has 20 % missing.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

os.environ.setdefault("KERAS_BACKEND", "jax")  # Its fastest on two cores.

Epochs = Callable[[], list[float]]
FOREVER = {"tol": 0.0, "n_iter_no_change": np.inf}


def data(n: int, p: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, p), dtype=np.float32)
    y = (X[:, :3].sum(axis=1) + rng.standard_normal(n) > 0).astype(np.float32)
    X[rng.random((n, p), dtype=np.float32) < 0.2] = np.nan
    return X, y


def ours(
    X: np.ndarray,
    y: np.ndarray,
    hidden: tuple[int, ...],
    *,
    replicas: int,
    epochs: int,
    **settings: Any,
) -> Epochs:
    """Seconds of each epoch but the first."""
    from promissing.networks.base import stack
    from promissing.networks.losses import LogLoss
    from promissing.networks.mlp import MLP
    from promissing.training.options import Options
    from promissing.training.train import Data, train

    network = MLP(X.shape[1], 1, LogLoss(), hidden)

    def run() -> list[float]:
        rngs = [np.random.default_rng(s) for s in np.random.SeedSequence(0).spawn(replicas)]
        times: list[float] = []
        train(
            network,
            stack([network.init(rng) for rng in rngs]),
            Data(X, y[:, None], [np.arange(len(X))] * replicas),
            Options(max_epochs=epochs + 1, **FOREVER | settings),
            rngs=rngs,
            on_epoch=lambda epoch: times.append(time.perf_counter()),
        )
        return np.diff(times).tolist()

    return run


def torch_epochs(
    X: np.ndarray, y: np.ndarray, hidden: tuple[int, ...], batch_size: int, solver: str
) -> Epochs:
    import torch

    sizes = [X.shape[1], *hidden]
    layers = [part for a, b in pairwise(sizes) for part in (torch.nn.Linear(a, b), torch.nn.ReLU())]
    model = torch.nn.Sequential(*layers, torch.nn.Linear(sizes[-1], 1))
    make = torch.optim.SGD if solver == "sgd" else torch.optim.Adam
    optimiser = make(model.parameters(), lr=1e-3)
    rows, labels = torch.tensor(np.nan_to_num(X)), torch.tensor(y[:, None])
    loss = torch.nn.BCEWithLogitsLoss()

    def run() -> list[float]:
        start = time.perf_counter()
        for batch in torch.randperm(len(rows)).split(batch_size):
            optimiser.zero_grad()
            loss(model(rows[batch]), labels[batch]).backward()
            optimiser.step()
        return [time.perf_counter() - start]

    return run


def keras_epochs(X: np.ndarray, y: np.ndarray, hidden: tuple[int, ...], batch_size: int) -> Epochs:
    import keras

    layers = [keras.layers.Dense(units, activation="relu") for units in hidden]
    model = keras.Sequential([*layers, keras.layers.Dense(1, activation="sigmoid")])
    model.compile("sgd", "binary_crossentropy")
    X = np.nan_to_num(X)

    def run() -> list[float]:
        times: list[float] = []
        stamp = keras.callbacks.LambdaCallback(
            on_epoch_end=lambda epoch, logs: times.append(time.perf_counter())
        )
        model.fit(X, y, batch_size=batch_size, epochs=2, verbose=0, callbacks=[stamp])
        return np.diff(times).tolist()

    return run


def sklearn_epochs(X: np.ndarray, y: np.ndarray, hidden: tuple[int, ...], batch: int) -> Epochs:
    from sklearn.neural_network import MLPClassifier

    model = MLPClassifier(hidden, solver="sgd", momentum=0.0, batch_size=batch, random_state=0)
    X, classes = np.nan_to_num(X), np.array([0.0, 1.0])

    def run() -> list[float]:
        start = time.perf_counter()
        model.partial_fit(X, y, classes=classes)  # One epoch.
        return [time.perf_counter() - start]

    return run


def in_turn(contestants: dict[str, Epochs], rounds: int) -> dict[str, float]:
    """The median seconds of an epoch of each, after one round to warm up."""
    times: dict[str, list[float]] = {name: [] for name in contestants}
    for i in range(rounds + 1):
        for name, run in contestants.items():
            taken = run()
            times[name] += taken if i else []
    return {name: statistics.median(values) for name, values in times.items()}


def in_a_fresh_process(task: str, argument: int = 0) -> dict[str, float]:
    command = [sys.executable, __file__, "--task", task, "--argument", str(argument)]
    out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return json.loads(out.splitlines()[-1])  # type: ignore[no-any-return]


def paper(rounds: int) -> None:
    n, batch, hidden = 5000, 10, (5, 2)
    X, y = data(n, 10)
    settings = {"solver": "sgd", "momentum": 0.0, "batch_size": batch}
    contestants = {
        "ours, R = 64": ours(X, y, hidden, replicas=64, epochs=3, **settings),
        "ours, R = 1": ours(X, y, hidden, replicas=1, epochs=20, **settings),
        "Keras fit": keras_epochs(X, y, hidden, batch),
        "PyTorch eager": torch_epochs(X, y, hidden, batch, "sgd"),
        "scikit-learn": sklearn_epochs(X, y, hidden, batch),
    }
    medians = in_turn(contestants, rounds)
    per_step = {name: 1e6 * value / (n / batch) for name, value in medians.items()}
    per_step["ours, R = 64"] /= 64
    print("The paper's net: 10 inputs, 5 and 2 units, batch 10, 5,000 rows, SGD")
    print(f"{'':16}{'us per replica-step':>20}{'R = 64 is faster':>18}{'R = 1 is faster':>18}")
    for name, value in per_step.items():
        ratios = [value / per_step[f"ours, R = {r}"] for r in (64, 1)]
        print(f"{name:16}{value:20.2f}{ratios[0]:17.1f}x{ratios[1]:17.1f}x")
    print("wanted: at least 80x (aim 120x) and 12x\n", flush=True)


def wide(rounds: int) -> None:
    X, y = data(20_000, 20)
    hidden = (256, 256)
    medians = in_turn(
        {
            "ours": ours(X, y, hidden, replicas=1, epochs=2, batch_size=256),
            "PyTorch eager": torch_epochs(X, y, hidden, 256, "adam"),
        },
        rounds,
    )
    print("256-256 units, batch 256, 20,000 x 20, Adam")
    for name, value in medians.items():
        print(f"{name:16}{1e3 * value:14.1f} ms an epoch{value / medians['ours']:14.2f}x")
    print("wanted: no slower than PyTorch\n", flush=True)


def finished(rounds: int) -> None:
    """What an epoch costs when most replicas have finished."""
    X, y = data(5000, 10)
    print("32 replicas of a 64-64 net, 5,000 x 10, by how many are still active")
    contestants = {}
    for active in (32, 8, 1):
        # A rate of 0 makes no progress: such a replica finishes in the second epoch.
        rates = np.where(np.arange(32) < active, 1e-3, 0.0)
        stop = {"n_iter_no_change": 0, "tol": 1e-5, "learning_rate": rates}
        contestants[str(active)] = ours(X, y, (64, 64), replicas=32, epochs=4, **stop)
    times: dict[str, list[float]] = {name: [] for name in contestants}
    for i in range(rounds + 1):
        for name, run in contestants.items():
            times[name] += run()[1:] if i else []
    first = statistics.median(times["32"])
    for name, values in times.items():
        value = statistics.median(values)
        print(f"{name:>16}{1e3 * value:14.1f} ms an epoch{value / first:14.2f}x")
    print(flush=True)


def first_fit(rounds: int) -> None:
    runs = [in_a_fresh_process("first") for _ in range(rounds)]
    print("First fit of 500 x 10, one 64-64 net, 200 epochs, in a fresh process")
    for name, wanted in (
        ("imports", ""),
        ("first fit", "wanted: 2"),
        ("second fit", "wanted: 0.3"),
    ):
        print(f"{name:16}{statistics.median(run[name] for run in runs):14.2f} s{wanted:>16}")
    counts = {int(run["programs compiled for five folds"]) for run in runs}
    print(f"programs compiled for five folds of 400 or 401 rows: {counts}, wanted: 1\n", flush=True)


def first_fit_task(_: int) -> dict[str, float]:
    start = time.perf_counter()
    import jax.monitoring

    from promissing.networks.losses import LogLoss
    from promissing.networks.mlp import MLP
    from promissing.training.options import Options
    from promissing.training.train import Data, train

    stamps = [start, time.perf_counter()]
    compiled: list[str] = []
    jax.monitoring.register_event_duration_secs_listener(
        lambda event, seconds, **rest: compiled.append(event)
    )
    X, y = data(501, 10)
    network = MLP(10, 1, LogLoss(), (64, 64))

    def fit(rows: np.ndarray) -> None:
        rng = np.random.default_rng(0)
        params = {name: a[None] for name, a in network.init(rng).items()}
        table = Data(X[rows], y[rows, None], [np.arange(len(rows))])
        train(network, params, table, Options(alpha=1e-4, **FOREVER), rngs=[rng])
        stamps.append(time.perf_counter())

    fit(np.arange(500))
    fit(np.arange(500))
    before = len(compiled)
    for k in range(5):
        fit(np.flatnonzero(np.arange(501) % 5 != k))
    new = [event for event in compiled[before:] if event.endswith("backend_compile_duration")]
    names = ("imports", "first fit", "second fit")
    taken = dict(zip(names, np.diff(stamps).tolist(), strict=False))
    return taken | {"programs compiled for five folds": len(new)}


def rows(sizes: list[int]) -> None:
    print("64-64 net, batch 200, 20 columns")
    print(f"{'rows':>12}{'s an epoch':>14}{'us a row':>12}{'extra MB':>12}{'table MB':>12}")
    for n in sizes:
        run = in_a_fresh_process("rows", n)
        print(
            f"{n:12,}{run['seconds']:14.3f}{1e6 * run['seconds'] / n:12.3f}"
            f"{run['extra']:12.1f}{n * 80 / 2**20:12.1f}",
            flush=True,
        )
    print("wanted: us a row the same throughout; extra at most three tables, for the largest\n")


def rows_task(n: int) -> dict[str, float]:
    def peak() -> float:
        # Not `ru_maxrss`, which a process inherits from the one that started it.
        with open("/proc/self/status") as status:
            line = next(line for line in status if line.startswith("VmHWM"))
        return int(line.split()[1]) / 1024

    X, y = np.empty((n, 20), np.float32), np.empty(n, np.float32)
    for start in range(0, n, 10_000):  # In pieces, so that making the data is not the peak.
        X[start : start + 10_000], y[start : start + 10_000] = data(10_000, 20)
    ours(X[:1000], y[:1000], (64, 64), replicas=1, epochs=1)()
    before = peak()
    taken = ours(X, y, (64, 64), replicas=1, epochs=3)()
    return {"seconds": statistics.median(taken), "extra": peak() - before}


def predict(rounds: int) -> None:
    from sklearn.ensemble import HistGradientBoostingClassifier

    from promissing.networks.base import evaluate
    from promissing.networks.losses import LogLoss
    from promissing.networks.mlp import MLP

    X, y = data(100_000, 20)
    network = MLP(20, 1, LogLoss(), (64, 64))
    params = network.init(np.random.default_rng(0))
    peer = HistGradientBoostingClassifier().fit(X[:20_000], y[:20_000])

    def timed(call: Callable[[np.ndarray], Any], n: int) -> Epochs:
        def run() -> list[float]:
            start = time.perf_counter()
            call(X[:n])
            return [time.perf_counter() - start]

        return run

    print("Outputs of a 64-64 net in NumPy, ms")
    for n in (1, 100_000):
        contestants = {
            "ours": timed(lambda X: evaluate(network, params, X), n),
            "HGB": timed(peer.predict_proba, n),
        }
        medians = in_turn(contestants, 3 * rounds if n > 1 else 50 * rounds)
        ratio = medians["HGB"] / medians["ours"]
        print(
            f"{n:12,} rows: ours {1e3 * medians['ours']:9.3f}, HGB {1e3 * medians['HGB']:9.3f}, "
            f"{ratio:.1f}x faster"
        )
    print(flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few rounds, no million rows")
    parser.add_argument("--task", choices=["first", "rows"], help=argparse.SUPPRESS)
    parser.add_argument("--argument", type=int, default=0, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.task is not None:
        task = {"first": first_fit_task, "rows": rows_task}[options.task]
        print(json.dumps(task(options.argument)))
        return
    rounds = 3 if options.quick else 9
    first_fit(1 if options.quick else 5)
    paper(rounds)
    wide(rounds)
    finished(rounds)
    predict(rounds)
    rows([10_000, 100_000] if options.quick else [10_000, 100_000, 1_000_000])


if __name__ == "__main__":
    main()
