"""The paper's benchmark on real tables: what every way to cope with gaps costs in accuracy.

A repetition takes values from the whole table, cuts it in two folds, and trains and scores every
strategy on both. The network on the complete table is what all are measured against; beside it
stand a random forest and gradient boosting. `docs/openml.md` reads the results out.

Where a strategy has nothing to learn from (no complete row, rows of one class, no column), what is
recorded is the score of the prior: an AUC of 0.5, the SMSE of the mean. A network that diverges is
recorded as such, with a score of NaN.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from studies._openml_costs import KINDS, measure
from studies._openml_plan import RATIOS, STRATEGIES, Plan, make_plan, spent
from studies._openml_tasks import MECHANISMS
from studies._workers import reports
from studies.runner import Batch, Summary, run

__all__ = ["MECHANISMS", "RATIOS", "STRATEGIES", "Estimate", "estimate", "run_study"]


class Estimate(NamedTuple):
    """How long a study will take: seconds in all, and of one core by part and by kind of work."""

    seconds: float
    jobs: int
    n_batches: int
    parts: dict[str, float]
    kinds: dict[str, float]
    absent: dict[str, str]

    def __str__(self) -> str:
        """In a few lines."""
        lines = [f"About {_time(self.seconds)} with {self.jobs} jobs, {self.n_batches} batches."]
        for what, shares in (("By part", self.parts), ("By kind of work", self.kinds)):
            told = ", ".join(f"{name} {_time(seconds)}" for name, seconds in shares.items())
            lines.append(f"{what}, of one core: {told}.")
        lines += [f"Left out, {slug}: {reason}" for slug, reason in self.absent.items()]
        return "\n".join(lines)


def run_study(
    out: Path,
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
    resume: bool = False,
    jobs: int | None = None,
    progress: bool | None = None,
) -> Summary:
    """Run the study, or what is left of it; results go to `out`/results.sqlite as they finish.

    Parameters
    ----------
    out : path
        A directory; it is made.
    tables : sequence of str, optional
        By default all there are, but for those that the paper leaves out.
    names : sequence of str
        The strategies. The baseline on complete tables is always there.
    mechanisms, ratios : sequences
        How the most informative column loses values, and which share of them.
    repetitions : int, default=20
    grid : bool, default=True
        Whether to lose values in several columns too, by MCAR.
    grid_repetitions : int, optional
        By default those of the study, and at most 10.
    max_rows : int, optional
        At most so many rows of every table, drawn at random.
    epochs : int, default=100
    data : path, optional
        Where the tables are: see `promissing.datasets.load`.
    seed : int, default=0
    resume : bool, default=False
        Whether to go on with the results in `out`.
    jobs : int, optional
        Worker processes; one for each core by default.
    progress : bool, optional
        Whether to show progress; by default, on a terminal.

    Returns
    -------
    Summary
        A table that cannot be had is `skipped`, one that is there and cannot be read `failed`,
        with the reason, by the name of the table.
    """
    how = (mechanisms, ratios, repetitions, grid, grid_repetitions, max_rows, epochs, data, seed)
    plan = make_plan(tables, names, *how)
    summary = run(
        "openml",
        plan.batches,
        out,
        settings=plan.settings,
        context={"data": None if data is None else str(data), "absent": plan.absent},
        resume=resume,
        jobs=jobs,
        progress=progress,
    )
    return summary._replace(
        skipped=_by_table(summary.skipped, plan), failed=_by_table(summary.failed, plan)
    )


def estimate(
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
    jobs: int | None = None,
) -> Estimate:
    """How long `run_study` with these parameters would take here, from a few seconds' slice.

    As many processes as there will be time a little of all the work at once.
    """
    how = (mechanisms, ratios, repetitions, grid, grid_repetitions, max_rows, epochs, data, seed)
    plan = make_plan(tables, names, *how)
    jobs = _count(jobs)
    sizes = [(min(s.rows, max_rows or s.rows), s.columns) for s in plan.shapes.values()]
    n = max(500, min(4000, sum(rows for rows, _ in sizes) // (2 * len(sizes))))
    p = max(2, round(sum(columns for _, columns in sizes) / len(sizes)))
    slices = [
        Batch(str(i), measure, {"names": list(names), "n": n, "p": p, "number": i})
        for i in range(jobs)
    ]
    found: dict[str, list[float]] = {}
    for told in reports(slices, {}, jobs):
        if told.found is None:
            raise RuntimeError(f"The slice to measure could not be run: {told.failed}")
        for row in told.found.rows:
            found.setdefault(row[3], []).append(row[7])
    speeds = {kind: sum(values) / len(values) for kind, values in found.items()}
    parts: dict[str, float] = {}
    kinds = dict.fromkeys(KINDS, 0.0)
    longest = 0.0
    for batch in plan.batches:
        if batch.arguments["table"] not in plan.shapes:
            continue
        taken = spent(batch, plan.shapes, plan.settings, jobs, speeds)
        part = batch.arguments["mechanism"].partition("-")[0]
        parts[part] = parts.get(part, 0.0) + sum(taken.values())
        longest = max(longest, sum(taken.values()))
        for kind, seconds in taken.items():
            kinds[kind] += seconds
    seconds = max(sum(parts.values()) / jobs, longest)
    return Estimate(seconds, jobs, len(plan.batches), parts, kinds, plan.absent)


def _by_table(reasons: Mapping[str, str], plan: Plan) -> dict[str, str]:
    """Reasons by batch, or by table where all its batches have the same."""
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


def _count(jobs: int | None) -> int:
    if jobs is not None:
        return jobs
    from joblib import cpu_count

    return int(cpu_count())


def _time(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
