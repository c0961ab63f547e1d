"""Run the batches of a study in parallel, and go on where a run was broken off.

A study is a list of batches, fixed by its settings. Each is stored when it is finished, so whatever
ends a run costs at most the batches under way, and `resume=True` gives in the end what a run
without a break would have given. Neither the number of jobs nor the order has a say in the results.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor
from pathlib import Path
from typing import Any, NamedTuple

from studies._opening import opened
from studies._workers import Batch, Report, Skipped, reports
from studies.store import (
    Outcome,
    ResultsError,
    Row,
    Store,
    as_json,
    read,
    read_about,
    read_arrays,
)

__all__ = [
    "Batch",
    "Outcome",
    "ResultsError",
    "Row",
    "Skipped",
    "Summary",
    "read",
    "read_about",
    "read_arrays",
    "run",
]


class Summary(NamedTuple):
    """What a run has done; `skipped` and `failed` give the reasons by batch."""

    path: Path
    n_batches: int
    n_done_now: int
    n_done_before: int
    skipped: dict[str, str]
    failed: dict[str, str]
    seconds: float
    interrupted: bool


def run(
    study: str,
    batches: Iterable[Batch],
    out: str | Path,
    *,
    settings: Mapping[str, Any],
    context: Mapping[str, Any] | None = None,
    resume: bool = False,
    jobs: int | None = None,
    progress: bool | None = None,
    order: Callable[[Batch], Any] | None = None,
) -> Summary:
    """Run all batches that are not finished yet, and store what they find.

    Parameters
    ----------
    study : str
    batches : iterable of Batch
        All of them, finished or not. A batch that raises Skipped is noted with its reason, and one
        that raises anything else is reported; the others go on, and `resume` tries both again.
    out : path
        The directory of results.sqlite, made if need be.
    settings : mapping of str to JSON values
        What the batches follow from. Results of other settings are not gone on with.
    context : mapping, optional
        More keywords for every `work` that do not change what it finds, such as where data are.
    resume : bool, default=False
        Whether to go on with what is there; without it, results that are there are an error.
    jobs : int, optional
        How many batches at once, each in a process of its own; all cores by default. One is run in
        this process.
    progress : bool, optional
        Whether to show progress; by default if stderr is a terminal.
    order : callable, optional
        The key by which batches are sorted; by default the costliest come first.

    Returns
    -------
    Summary
        With `interrupted` True after Ctrl-C; what was finished is kept.

    Raises
    ------
    ResultsError
        If this cannot be run as it is; nothing has been written then.
    RuntimeError
        If results cannot be stored any more, as on a full disk, or a worker is killed. What was
        finished is kept.
    """
    start = time.perf_counter()
    batches, context = list(batches), dict(context or {})
    plan = _check(batches, context, settings)
    jobs = _count(jobs)
    skipped: dict[str, str] = {}
    failed: dict[str, str] = {}
    reported: set[str] = set()
    interrupted = False
    with opened(out, study, settings=settings, plan=plan, resume=resume, jobs=jobs) as store:
        before = store.done()
        left = [batch for batch in batches if batch.name not in before]
        left.sort(key=order or (lambda batch: -batch.cost))
        show = sys.stderr.isatty() if progress is None else progress
        try:
            with (
                _bar(study, left, len(batches)) if show else contextlib.nullcontext() as advance,
                contextlib.closing(reports(left, context, jobs)) as found,
            ):
                for report in found:
                    _keep(report, plan[report.name], store, skipped, failed)
                    reported.add(report.name)
                    if advance is not None:
                        advance(report.name)
        except KeyboardInterrupt:
            interrupted = True
        except sqlite3.Error as error:
            raise RuntimeError(
                f"{store.path} cannot be written any more ({error}). What was stored before is "
                f"kept: make room, then go on with --resume."
            ) from None
        except BrokenExecutor:
            first = next(batch.name for batch in left if batch.name not in reported)
            raise RuntimeError(
                f"A worker was killed, maybe for want of memory, in batch {first!r} or one soon "
                f"after it. What was stored before is kept: go on with --resume, and fewer --jobs."
            ) from None
        # Asked of the file: Ctrl-C may come after a batch is stored and before it is counted.
        n_now = len(store.done()) - len(before)
    counts = (len(batches), n_now, len(before))
    seconds = time.perf_counter() - start
    return Summary(store.path, *counts, skipped, failed, seconds, interrupted)


def _check(
    batches: Sequence[Batch], context: Mapping[str, Any], settings: Mapping[str, Any]
) -> dict[str, str]:
    """The arguments of all batches as JSON, by name."""
    if not batches:
        raise ResultsError("There is nothing to run: no batches were given.")
    plan: dict[str, str] = {}
    for batch in batches:
        if batch.name in plan:
            raise ResultsError(f"Batch names must be unique. Received twice: {batch.name!r}")
        what = f"The arguments of batch {batch.name!r}"
        plan[batch.name] = _json(batch.arguments, what)
        if json.loads(plan[batch.name]) != batch.arguments:
            raise ResultsError(f"{what} must be plain JSON values: lists, and keys that are text.")
        if both := sorted(batch.arguments.keys() & context.keys()):
            raise ResultsError(f"Batch {batch.name!r} and the context both have {both[0]!r}.")
    _json(settings, "The settings")
    return plan


def _json(value: Mapping[str, Any], what: str) -> str:
    try:
        return as_json(dict(value))
    except (TypeError, ValueError) as error:
        raise ResultsError(f"{what} must be plain JSON values ({error}).") from None


def _count(jobs: int | None) -> int:
    if jobs is None:
        from joblib import cpu_count

        return int(cpu_count())
    if isinstance(jobs, bool) or not isinstance(jobs, int) or jobs < 1:
        raise ResultsError(f"`jobs` must be a whole number from 1, or None. Received: {jobs!r}")
    return jobs


def _keep(
    report: Report,
    arguments: str,
    store: Store,
    skipped: dict[str, str],
    failed: dict[str, str],
) -> None:
    name = report.name
    if report.skipped is not None:
        store.skip(name, arguments, report.skipped, report.seconds)
        skipped[name] = report.skipped
    elif report.found is None:
        failed[name] = report.failed or ""
    else:
        try:
            store.write(name, arguments, report.found, report.seconds)
        except sqlite3.IntegrityError:
            failed[name] = "ResultsError: one of its results is there already, or twice"
        except (sqlite3.DataError, OverflowError) as error:
            failed[name] = f"{type(error).__name__}: {error}"


@contextlib.contextmanager
def _bar(study: str, left: Sequence[Batch], total: int) -> Iterator[Callable[[str], None]]:
    """A progress bar, and how to tell it that a batch is finished."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    start = time.perf_counter()
    costs = {batch.name: batch.cost for batch in left}
    whole, n_done = sum(costs.values()), total - len(left)
    text = TextColumn("{task.description} {task.fields[count]} batches")
    columns = (text, BarColumn(), TimeElapsedColumn(), TextColumn("{task.fields[left]}"))
    with Progress(*columns, console=Console(stderr=True)) as progress:
        count = f"{n_done}/{total}"
        task = progress.add_task(study, total=whole, count=count, left="")

        def advance(name: str) -> None:
            nonlocal n_done
            n_done += 1
            del costs[name]
            ahead = sum(costs.values())
            # Only what this run has finished tells how fast it is.
            seconds = (time.perf_counter() - start) * ahead / (whole - ahead or 1)
            about = f"about {_duration(seconds)} left" if costs else ""
            count = f"{n_done}/{total}"
            progress.update(task, completed=whole - ahead, count=count, left=about)

        yield advance


def _duration(seconds: float) -> str:
    minutes = round(seconds / 60)
    if minutes < 1:
        return f"{round(seconds)} s"
    return f"{minutes} min" if minutes < 120 else f"{round(minutes / 60)} h"
