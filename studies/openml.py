"""The paper's benchmark on real tables: how much accuracy each strategy loses by missing values.

A repetition removes values from the whole table, splits it into two folds, and trains and scores
every strategy on both. All strategies are compared with the network on the complete table. A random
forest and gradient boosting on the complete table are also recorded. `docs/openml.md` discusses the
results.

If a strategy has no data to train on (no complete row, rows of one class, no column), the score of
the prior is recorded: an AUC of 0.5, the SMSE of the mean. A network that diverges is recorded as
diverged, with a score of NaN.

This file has the plan of the study, its costs and its estimate. `openml_tasks` has the batches,
`openml_report` the tables and figures.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import ceil, log2, sqrt
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from promissing import datasets
from promissing.compare import strategies
from promissing.datasets.loading import OPENML, VARIABLE
from promissing.networks.losses import LogLoss
from studies.networks import Job, Training, run_jobs
from studies.openml_tasks import (
    COMPLETE,
    FOLDS,
    FOREST,
    GRID,
    MECHANISMS,
    NEIGHBOR_ROWS,
    alike,
    hidden,
    is_tree,
    score,
    why_incomplete,
)
from studies.runner import Batch, Outcome, Row, Summary, count_jobs, duration, read, run
from studies.simulation import STRATEGIES, check_at_least, check_mechanisms

__all__ = ["MECHANISMS", "RATIOS", "STRATEGIES", "Estimate", "Plan", "estimate", "make_plan"]
__all__ += ["run_study"]

RATIOS = (0.1, 0.25, 0.5, 0.9)
FEATURE_RATIOS = (0.1, 0.25, 0.5, 0.75, 1.0)
# As in the paper, and two more that are cheap.
IN_GRID = (
    *("zero", "mean", "knn", "iterative", "hgb", "promissing", "mpromissing"),
    *("mean+indicator", "fpromissing"),
)
TOGETHER = 4  # Repetitions in a batch.
MOST_GRID = 10  # Repetitions of the grid, as in the paper.
KINDS = ("net", "compile", "gain", "trees", "neighbors", "rest")  # Of work.
BATCH = 10  # Rows in a step.
SAMPLE = 5000  # Rows of the table that is imputed to measure the speed.


class Shape(NamedTuple):
    """The size of a table, for the cost of its batches."""

    rows: int
    columns: int
    task: str


class Plan(NamedTuple):
    """All batches of a study, the sizes of its tables, absent tables with reasons, and settings."""

    batches: list[Batch]
    shapes: dict[str, Shape]
    absent: dict[str, str]
    settings: dict[str, Any]


def run_study(
    out: Path,
    *,
    resume: bool = False,
    jobs: int | None = None,
    progress: bool | None = None,
    **settings: Any,
) -> Summary:
    """Run the study, or the rest of it, and store the results in `out`.

    Parameters
    ----------
    out : Path
        Directory for the results.
    resume, jobs, progress
        See `studies.runner.run`.
    **settings
        The parameters of `make_plan`.

    Returns
    -------
    Summary
        An unavailable table is in `skipped` and an unreadable one in `failed`, by table.
    """
    plan = make_plan(**settings)
    data = settings.get("data")
    context = {"data": None if data is None else str(data), "absent": plan.absent}
    how = {"resume": resume, "jobs": jobs, "progress": progress}
    summary = run("openml", plan.batches, out, settings=plan.settings, context=context, **how)
    return summary._replace(
        skipped=_by_table(summary.skipped, plan), failed=_by_table(summary.failed, plan)
    )


def make_plan(
    *,
    tables: Sequence[str] | None = None,
    names: Sequence[str] = STRATEGIES,
    mechanisms: Sequence[str] = MECHANISMS,
    ratios: Sequence[float] = RATIOS,
    repetitions: int = 20,
    grid: bool = True,
    grid_repetitions: int | None = None,
    max_rows: int | None = None,
    epochs: int = 100,
    data: Path | None = None,
    seed: int = 0,
) -> Plan:
    """Check the parameters of a study and list its batches.

    Parameters
    ----------
    tables : sequence of str, optional
        By default all available tables except those that the paper excludes.
    names : sequence of str
        Strategies. The baseline on complete tables is always included.
    mechanisms, ratios : sequences
        How the most informative column loses values, and which share of them.
    repetitions : int, default=20
        Number of repetitions.
    grid : bool, default=True
        Whether to remove values from several columns as well, by MCAR.
    grid_repetitions : int, optional
        Repetitions of the grid; by default `repetitions`, but at most 10.
    max_rows : int, optional
        Maximum number of rows of every table, drawn at random.
    epochs : int, default=100
        Epochs of every network.
    data : Path, optional
        Directory of the tables: see `promissing.datasets.load`.
    seed : int, default=0
        Random seed.
    """
    names = strategies.check(names)
    mechanisms, ratios = check_mechanisms(mechanisms, ratios)
    if grid_repetitions is None:
        grid_repetitions = min(repetitions, MOST_GRID)
    check_at_least(1, repetitions=repetitions, grid_repetitions=grid_repetitions, epochs=epochs)
    check_at_least(20, max_rows=max_rows)
    slugs, shapes, absent = _tables(tables, data)
    baseline = ["full", FOREST, *dict.fromkeys(["hgb", *(n for n in names if is_tree(n))])]
    rivals = [name for name in names if name != "full"]
    in_grid = [name for name in rivals if name in IN_GRID]
    parts = [(COMPLETE, [0.0], baseline, repetitions)]
    if rivals:
        parts += [(mechanism, list(ratios), rivals, repetitions) for mechanism in mechanisms]
    if grid and in_grid:
        parts += [
            (f"{GRID}{share:g}", list(ratios), in_grid, grid_repetitions)
            for share in FEATURE_RATIOS
        ]
    settings = {
        "tables": slugs,
        "strategies": list(names),
        "mechanisms": list(mechanisms),
        "ratios": list(ratios),
        "repetitions": repetitions,
        "grid_repetitions": grid_repetitions if grid else 0,
        "max_rows": max_rows,
        "epochs": epochs,
        "seed": seed,
    }
    batches = []
    for slug in slugs:
        for mechanism, shares, members, count in parts:
            for start in range(0, count, TOGETHER):
                arguments = {
                    "table": slug,
                    "mechanism": mechanism,
                    "ratios": shares,
                    "repetitions": list(range(start, min(start + TOGETHER, count))),
                    "names": members,
                    "max_rows": max_rows,
                    "epochs": epochs,
                    "seed": seed,
                }
                batch = Batch(f"{slug}/{mechanism}/{start:03d}", score, arguments)
                cost = sum(_spent(batch, shapes, settings).values())
                batches.append(batch._replace(cost=cost or 1e-3))
    return Plan(batches, shapes, absent, settings)


def _tables(
    wanted: Sequence[str] | None, data: Path | None
) -> tuple[list[str], dict[str, Shape], dict[str, str]]:
    """The slugs of the tables, the sizes of those that can be used, and why others cannot.

    A table that is in the directory and cannot be read is in neither: its batches will fail.
    """
    if wanted is None:
        left_out = {table.slug for table in datasets.tables() if table.excluded}
        wanted = [slug for slug in datasets.available(data) if slug not in left_out]
    if not wanted:
        raise ValueError("Name at least one table.")
    loaded = datasets.load_many(wanted, data=data)
    gaps = {d.slug: int(d.X.isna().to_numpy().sum()) for d in loaded.datasets}
    shapes = {
        d.slug: Shape(len(d.X), d.X.shape[1], d.task) for d in loaded.datasets if not gaps[d.slug]
    }
    place = data if data is not None else os.environ.get(VARIABLE) or OPENML
    held = set() if place == OPENML else set(datasets.available(data))
    absent = {slug: why for slug, why in loaded.skipped.items() if slug not in held}
    absent |= {slug: why_incomplete(slug, count) for slug, count in gaps.items() if count}
    if not shapes:
        why = next(iter((absent | dict(loaded.skipped)).values()))
        raise ValueError(f"Not one table can be used. {why}")
    order = {slug: i for i, slug in enumerate(datasets.available(data))}
    slugs = sorted({*gaps, *loaded.skipped}, key=lambda slug: (order.get(slug, len(order)), slug))
    return slugs, shapes, absent


def _by_table(reasons: Mapping[str, str], plan: Plan) -> dict[str, str]:
    """Reasons by batch, or by table if all its batches have the same reason."""
    names: dict[str, list[str]] = {}
    for batch in plan.batches:
        names.setdefault(batch.arguments["table"], []).append(batch.name)
    found = dict(reasons)
    for table, mine in names.items():
        if len({reasons.get(name) for name in mine}) == 1 and mine[0] in reasons:
            for name in mine:
                del found[name]
            found[table] = reasons[mine[0]]
    return found


# How long a batch takes
#
# The formulas give seconds on one core of the machine they were fitted on. `measure` times a little
# of every kind of work, so that the formulas can be corrected for another machine.


class Estimate(NamedTuple):
    """The expected time of a study: seconds in total, and of one core by part and kind of work."""

    seconds: float
    jobs: int
    n_batches: int
    parts: dict[str, float]
    kinds: dict[str, float]
    absent: dict[str, str]

    def __str__(self) -> str:
        """A few lines of text."""
        lines = [f"About {duration(self.seconds)} with {self.jobs} jobs, {self.n_batches} batches."]
        for what, shares in (("By part", self.parts), ("By kind of work", self.kinds)):
            text = ", ".join(f"{name} {duration(seconds)}" for name, seconds in shares.items())
            lines.append(f"{what}, of one core: {text}.")
        lines += [f"Left out, {slug}: {reason}" for slug, reason in self.absent.items()]
        return "\n".join(lines)


def estimate(*, jobs: int | None = None, **settings: Any) -> Estimate:
    """Estimate the time of `run_study` with these parameters, from a few seconds of measurement.

    As many processes as the study will have measure all kinds of work at the same time.
    """
    plan = make_plan(**settings)
    jobs, max_rows = count_jobs(jobs), plan.settings["max_rows"]
    sizes = [(min(s.rows, max_rows or s.rows), s.columns) for s in plan.shapes.values()]
    n = max(500, min(4000, sum(rows for rows, _ in sizes) // (2 * len(sizes))))
    p = max(2, round(sum(columns for _, columns in sizes) / len(sizes)))
    names = plan.settings["strategies"]
    slices = [
        Batch(str(i), measure, {"names": names, "n": n, "p": p, "number": i}) for i in range(jobs)
    ]
    with TemporaryDirectory() as out:
        summary = run("speed", slices, out, settings={}, jobs=jobs, progress=False)
        for reason in summary.failed.values():
            raise RuntimeError(f"The speed of this machine could not be measured: {reason}")
        speeds = read(out).rows.groupby("strategy")["value"].mean().to_dict()
    parts: dict[str, float] = {}
    kinds = dict.fromkeys(KINDS, 0.0)
    longest = 0.0
    for batch in plan.batches:
        if batch.arguments["table"] not in plan.shapes:
            continue
        taken = _spent(batch, plan.shapes, plan.settings, jobs, speeds)
        part = batch.arguments["mechanism"].partition("-")[0]
        parts[part] = parts.get(part, 0.0) + sum(taken.values())
        longest = max(longest, sum(taken.values()))
        for kind, seconds in taken.items():
            kinds[kind] += seconds
    seconds = max(sum(parts.values()) / jobs, longest)
    return Estimate(seconds, jobs, len(plan.batches), parts, kinds, plan.absent)


def _spent(
    batch: Batch,
    shapes: Mapping[str, Shape],
    settings: Mapping[str, Any],
    jobs: int = 2,
    speeds: Mapping[str, float] | None = None,
) -> dict[str, float]:
    """The seconds of a batch by kind of work; empty for a table that is not available."""
    arguments = batch.arguments
    shape = shapes.get(arguments["table"])
    if shape is None:
        return {}
    many = {COMPLETE: 1, "grid": len(FEATURE_RATIOS)}
    kind = arguments["mechanism"].partition("-")[0]
    of_a_kind = many.get(kind, len(settings["mechanisms"]))
    count = settings["grid_repetitions" if kind == "grid" else "repetitions"]
    of_a_kind *= max(1, count // TOGETHER)  # The last block may be shorter, and compiles anew.
    anew = min(1.0, jobs / of_a_kind)
    if kind == "grid" and settings["mechanisms"]:
        anew = 0.0  # The mechanisms went before.
    return _by_kind(shape, arguments, anew, speeds or {})


def _by_kind(
    shape: Shape, arguments: Mapping[str, Any], anew: float, speeds: Mapping[str, float]
) -> dict[str, float]:
    """The seconds that a batch with these arguments spends on every kind of work.

    `anew` is the share of such batches that compile their programs: a process that ran another
    mechanism of the table has them. `speeds` are measured seconds relative to the formulas.
    """
    n, p = min(shape.rows, arguments["max_rows"] or shape.rows), shape.columns
    mechanism, ratios, names = (arguments[key] for key in ("mechanism", "ratios", "names"))
    repetitions, epochs = len(arguments["repetitions"]), arguments["epochs"]
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
            kind, seconds = _preparing(name, half, p, columns, ratio, shape.task)
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
    """Seconds of one training step of one network among many."""
    extra = {"shared": 1.15, "feature": 1.4}
    compensation = strategies.STRATEGIES[name].compensation
    return (3.2e-6 + 1.2e-7 * p) * extra.get(compensation, 1.0)


def _preparing(
    name: str, half: float, p: int, columns: int, ratio: float, task: str
) -> tuple[str, float]:
    """The kind of work of a strategy apart from its network, and its seconds for one fold."""
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
    """Measure every kind of work on this machine, relative to the formulas.

    `number` distinguishes the processes that measure at the same time.
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
    extra = max(5, 3000 * BATCH // n)  # Epochs; with fewer, noise would dominate.
    few, many = (Training(LogLoss(), "relu", 0.01, BATCH, epochs) for epochs in (1, 1 + extra))
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
