"""What `NanMLPClassifier()` costs, beside the defaults of HGB and CatBoost.

    python benchmarks/defaults.py                 # some minutes
    python benchmarks/defaults.py --quick         # small sizes

Seconds to fit by rows and features, seconds to predict 10,000 rows, and the peak memory of a
process that fits. Peers take turns in one process; medians are compared. Every fit of ours compiles
its program anew, since whoever fits once waits for that. CatBoost is left out where it is not
installed.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
import warnings
from typing import Any

import jax
from estimators import make, medians, peak_mb
from rich.console import Console
from rich.progress import track
from rich.table import Table

from promissing import NanMLPClassifier
from promissing.compare import strategies

warnings.filterwarnings("ignore")
SIZES = ((5_000, 8), (5_000, 20), (20_000, 20), (50_000, 8), (50_000, 20), (50_000, 50))


def models() -> dict[str, Any]:
    """New models with their defaults."""
    found = {"ours": NanMLPClassifier(random_state=0)}
    for name in ("hgb", "catboost"):
        if name in strategies.available():
            found[name] = strategies.make(name, "classification", random_state=0)
    return found


def fits(sizes: tuple[tuple[int, int], ...], rounds: int) -> Table:
    names = list(models())
    table = Table(title="fit, seconds (20 % missing)")
    for column in ("rows", "features", *names, *(f"ours / {name}" for name in names[1:])):
        table.add_column(column, justify="right")
    for n, p in track(sizes, "fitting", console=Console(stderr=True), transient=True):
        times: dict[str, list[float]] = {name: [] for name in names}
        for turn in range(rounds):
            X, y = make(n, p, seed=turn)
            jax.clear_caches()
            for name, model in models().items():
                start = time.perf_counter()
                model.fit(X, y)
                times[name].append(time.perf_counter() - start)
        took = {name: statistics.median(values) for name, values in times.items()}
        ratios = [f"{took['ours'] / took[name]:.2f}" for name in names[1:]]
        table.add_row(f"{n:,}", str(p), *(f"{took[name]:.2f}" for name in names), *ratios)
    return table


def predictions(rounds: int) -> Table:
    table = Table(title="predict_proba of 10,000 rows, ms")
    names = list(models())
    for column in ("features", *names, *(f"ours / {name}" for name in names[1:])):
        table.add_column(column, justify="right")
    for p in (8, 20, 50):
        X, y = make(2_000, p)
        rows, _ = make(10_000, p, seed=1)
        fitted = {name: model.fit(X, y) for name, model in models().items()}
        took = medians(
            {k: lambda m=m, rows=rows: m.predict_proba(rows) for k, m in fitted.items()}, rounds
        )
        ratios = [f"{took['ours'] / took[name]:.1f}" for name in names[1:]]
        table.add_row(str(p), *(f"{took[name] * 1e3:.1f}" for name in names), *ratios)
    return table


def memory(n: int, p: int) -> str:
    """The peak of a fit in a fresh process."""
    command = [sys.executable, __file__, "--child", str(n), str(p)]
    out = subprocess.run(command, capture_output=True, text=True, check=True)
    before, peak = json.loads(out.stdout.splitlines()[-1])
    return f"Peak memory of a fit of {n:,} x {p}: {peak:.0f} MB, of which {before:.0f} before it."


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="small sizes")
    parser.add_argument("--child", nargs=2, type=int, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        X, y = make(*args.child)
        before = peak_mb()
        NanMLPClassifier(random_state=0).fit(X, y)
        print(json.dumps([before, peak_mb()]))
        return
    console = Console(width=100)
    console.print(predictions(3 if args.quick else 15))
    console.print(memory(*((2_000, 10) if args.quick else (50_000, 50))))
    console.print(fits(SIZES[:1] if args.quick else SIZES, 1 if args.quick else 3))


if __name__ == "__main__":
    main()
