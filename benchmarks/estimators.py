"""The estimators beside scikit-learn's: first fit, prediction, memory, time by rows, the prior.

    python benchmarks/estimators.py                 # all of it, some minutes
    python benchmarks/estimators.py --quick         # small sizes
    python benchmarks/estimators.py --data DIR      # also the prior on real tables of DIR

Peers run in the same process and take turns; medians are compared. First fits and memory are
measured in fresh processes. DIR holds parquet files with a column `target` and an `index.json`.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from rich.console import Console
from rich.table import Table
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.impute import SimpleImputer
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

warnings.filterwarnings("ignore")
PRIOR_TABLES = ("phoneme", "bank_marketing", "compas_two_years")


def make(n: int, p: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    y = (X[:, 0] * X[:, 1] + X[:, 2] > 0).astype(int)
    X[rng.random(X.shape) < 0.2] = np.nan
    return X, y


def medians(calls: dict[str, Callable[[], Any]], rounds: int) -> dict[str, float]:
    times: dict[str, list[float]] = {name: [] for name in calls}
    for turn in range(rounds + 1):
        for name, call in calls.items():
            start = time.perf_counter()
            call()
            if turn:
                times[name].append(time.perf_counter() - start)
    return {name: statistics.median(values) for name, values in times.items()}


def plain(**changed: Any) -> Any:
    """One plain network of two layers of 64."""
    from promissing import NanMLPClassifier
    from promissing.estimators.mlp import PLAIN

    given = {**PLAIN, "hidden_layer_sizes": (64, 64), "random_state": 0, **changed}
    return NanMLPClassifier(**given)


def peak_mb() -> float:
    # Not `ru_maxrss`: a child inherits its parent's.
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 1024


def child(name: str, *arguments: Any) -> Any:
    """Run one of the functions below in a fresh process."""
    command = [sys.executable, __file__, "--child", name, *map(str, arguments)]
    out = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(out.stdout.splitlines()[-1])


def first_fit() -> dict[str, float]:
    import jax  # noqa: F401
    import optax  # noqa: F401

    from promissing.training import train as _training  # noqa: F401

    compilations = Compilations()
    X, y = make(500, 10)
    seconds = []
    for _ in range(2):
        start = time.perf_counter()
        plain().fit(X, y)
        seconds.append(time.perf_counter() - start)
    from sklearn.model_selection import StratifiedKFold

    compilations.count = 0
    start = time.perf_counter()
    for rows, _ in StratifiedKFold(5).split(X[:483], y[:483]):
        plain().fit(X[rows], y[rows])
    folds = time.perf_counter() - start
    return {
        "first fit": seconds[0],
        "second fit": seconds[1],
        "five folds": folds,
        "compilations in five folds": compilations.count,
    }


class Compilations:
    """Counts the programs XLA compiles."""

    def __init__(self) -> None:
        import jax

        self.count = 0
        jax.monitoring.register_event_duration_secs_listener(self.hear)

    def hear(self, event: str, *_: Any, **__: Any) -> None:
        """Called by JAX."""
        self.count += event == "/jax/core/compile/backend_compile_duration"


def memory(n: str, epochs: str) -> dict[str, float]:
    X, y = make(int(n), 20)
    model = plain(batch_size=1000)
    before = peak_mb()
    model.set_params(max_iter=1).fit(X[:1000], y[:1000])
    small = peak_mb()
    model.fit(X, y)  # Compiles.
    start = time.perf_counter()
    model.set_params(max_iter=int(epochs)).fit(X, y)
    return {
        "before": before,
        "small": small,
        "peak": peak_mb(),
        "seconds": time.perf_counter() - start,
    }


def predictions(rounds: int, n: int) -> Table:
    from promissing import NanMLPClassifier

    X, y = make(5000, 20)
    many, _ = make(n, 20, seed=1)
    impute = make_pipeline(SimpleImputer(), StandardScaler(), MLPClassifier((64, 64), max_iter=20))
    models = {
        "NanMLP 64-64": plain(max_iter=20),
        "NanMLP 64-64, 8 members": plain(n_members=8, max_iter=20),
        "NanMLP, default": NanMLPClassifier(random_state=0),
        "mean + scikit-learn MLP 64-64": impute,
        "HGB": HistGradientBoostingClassifier(random_state=0),
    }
    for model in models.values():
        model.fit(X, y)
    table = Table(title="predict_proba (20 columns, 20 % missing)")
    for column in ("model", "one row, ms", "x HGB", f"{n:,} rows, ms", "x HGB"):
        table.add_column(column, justify="left" if column == "model" else "right")
    one = medians({k: lambda m=m: m.predict_proba(X[:1]) for k, m in models.items()}, 10 * rounds)
    all_ = medians({k: lambda m=m: m.predict_proba(many) for k, m in models.items()}, rounds)
    for name in models:
        table.add_row(
            name,
            f"{one[name] * 1e3:.2f}",
            f"{one[name] / one['HGB']:.2f}",
            f"{all_[name] * 1e3:.0f}",
            f"{all_[name] / all_['HGB']:.2f}",
        )
    return table


def rows_curve(sizes: list[int]) -> Table:
    table = Table(title="fit by rows (20 columns, 64-64, batch 1000, 3 epochs, compiled)")
    for column in ("rows", "s", "us per row", "MB above a fit of 1,000 rows", "x float32 table"):
        table.add_column(column, justify="right")
    for n in sizes:
        got = child("memory", n, 3)
        more = got["peak"] - got["small"]
        table.add_row(
            f"{n:,}",
            f"{got['seconds']:.2f}",
            f"{got['seconds'] / n * 1e6:.2f}",
            f"{more:.0f}",
            f"{more / (n * 20 * 4 / 2**20):.2f}",
        )
    return table


def prior(directory: Path) -> Table:
    from promissing import NanMLPClassifier

    table = Table(title="Probability on an all-missing row minus the prior, three seeds")
    settings: dict[str, dict[str, Any]] = {
        "augment=False": {"augment": False},
        "default": {},
        "augment=True": {"augment": True},
    }
    for column in ("table", "prior", *settings):
        table.add_column(column, justify="left" if column == "table" else "right")
    for slug in PRIOR_TABLES:
        frame = pd.read_parquet(directory / f"{slug}.parquet")
        X, y = frame.drop(columns="target"), frame["target"]
        empty = X.iloc[:1].astype(object).mask(np.ones((1, X.shape[1]), bool))
        cells = []
        for keywords in settings.values():
            off = []
            for seed in range(3):
                model = NanMLPClassifier(random_state=seed, **keywords).fit(X, y)
                off.append(np.abs(model.predict_proba(empty)[0] - model.prior_).max())
            cells.append(", ".join(f"{value:.3f}" for value in off))
        table.add_row(slug, f"{model.prior_[1]:.3f}", *cells)
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="small sizes")
    parser.add_argument("--data", type=Path, help="a directory of tables with an index.json")
    parser.add_argument("--child", nargs="+", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        name, *rest = args.child
        print(json.dumps({"first_fit": first_fit, "memory": memory}[name](*rest)))
        return
    console = Console(width=100)
    runs = [child("first_fit") for _ in range(1 if args.quick else 3)]
    table = Table(title="A plain 64-64 network on 500 x 10 in a fresh process, above imports")
    for name in runs[0]:
        table.add_column(name, justify="right")
    table.add_row(*(f"{statistics.median(r[name] for r in runs):.2f}" for name in runs[0]))
    console.print(table)
    console.print(predictions(3 if args.quick else 15, 5000 if args.quick else 100_000))
    console.print(rows_curve([1000, 10_000] if args.quick else [10_000, 100_000, 1_000_000]))
    if args.data:
        console.print(prior(args.data))


if __name__ == "__main__":
    main()
