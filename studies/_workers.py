"""Batches of work in processes of their own, which end when the one that started them ends.

Every process, and this one if there is no other, computes with one native thread (BLAS, OpenMP):
their sums are rounded differently by two, and results may not depend on how many jobs there are.
JAX keeps threads of its own, whose number does not change its results: workers share the cores.
Workers are started anew and not forked, since JAX does not survive a fork.
"""

from __future__ import annotations

import contextlib
import functools
import os
import signal
import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from copy import deepcopy
from itertools import islice
from typing import Any, NamedTuple

from studies.store import Outcome, Packed, pack

__all__ = ["Batch", "Report", "Skipped", "reports"]

# Read by native libraries when they are loaded.
_ONE_THREAD = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMBA_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
)


class Skipped(Exception):  # noqa: N818 - it is no error
    """Raised by the work of a batch that cannot be had, with the reason in one line."""


class Batch(NamedTuple):
    """Work whose results are stored together.

    Parameters
    ----------
    name : str
        Unique, and the same in every run, such as "mnar/0.5/000-019".
    work : callable
        A function of a module, called as `work(**arguments, **context)`.
    arguments : dict
        Plain JSON values. They are what the batch is.
    cost : float, default=1.0
        Relative to others, for the time left.
    """

    name: str
    work: Callable[..., Outcome]
    arguments: dict[str, Any]
    cost: float = 1.0


class Report(NamedTuple):
    """What became of a batch: one of `found`, `skipped` and `failed`."""

    name: str
    seconds: float
    found: Packed | None = None
    skipped: str | None = None
    failed: str | None = None


def reports(batches: Sequence[Batch], context: Mapping[str, Any], jobs: int) -> Generator[Report]:
    """What becomes of the batches, as they are finished. Closing this ends the workers."""
    jobs = min(jobs, len(batches))
    return _here(batches, context) if jobs <= 1 else _elsewhere(batches, context, jobs)


def _elsewhere(
    batches: Sequence[Batch], context: Mapping[str, Any], jobs: int
) -> Generator[Report]:
    from joblib import cpu_count
    from joblib.externals.loky import get_reusable_executor

    # JAX reads NPROC. With threads for all cores in every worker, small networks take half as long
    # again.
    env = dict.fromkeys(_ONE_THREAD, "1")
    env["NPROC"] = os.environ.get("NPROC", str(max(1, cpu_count() // jobs)))
    executor = get_reusable_executor(
        jobs, timeout=60, initializer=_begin, initargs=(os.getpid(), _lifeline()), env=env
    )
    waiting = iter(batches)
    under_way: set[Future[Report]] = set()

    def hand_out() -> None:
        # Two for every worker: none waits, and all of them fit into loky's queue.
        for batch in islice(waiting, 2 * jobs - len(under_way)):
            task = (batch.name, batch.work, batch.arguments, context)
            under_way.add(executor.submit(_attempt, *task))

    try:
        with _interrupts_later():
            hand_out()
        while under_way:
            done, _ = wait(under_way, return_when=FIRST_COMPLETED)
            under_way -= done
            for future in done:
                yield future.result()
            with _interrupts_later():
                hand_out()
    finally:
        if under_way:
            # loky's thread breaks down, and leaves the workers at work, if it is told to stop
            # before it has taken in what it was given (KeyError in `add_call_item_to_queue`).
            end = time.monotonic() + 5
            while not all(f.running() or f.done() for f in under_way) and time.monotonic() < end:
                time.sleep(0.001)
            executor.shutdown(kill_workers=True)


def _here(batches: Sequence[Batch], context: Mapping[str, Any]) -> Generator[Report]:
    # Only libraries that are loaded can be limited; scikit-learn loads all that matter.
    import sklearn.utils.parallel  # noqa: F401
    from threadpoolctl import threadpool_limits

    for batch in batches:
        with threadpool_limits(1):
            # Copies, as another process would have: what one batch changes no other sees.
            report = _attempt(batch.name, batch.work, *deepcopy((batch.arguments, dict(context))))
        yield report


def _attempt(
    name: str,
    work: Callable[..., Outcome],
    arguments: Mapping[str, Any],
    context: Mapping[str, Any],
) -> Report:
    start = time.perf_counter()
    found, skipped, failed = None, None, None
    try:
        found = pack(work(**arguments, **context))
    except Skipped as reason:
        skipped = _first_line(reason) or "no reason given"
    except (Exception, SystemExit) as error:
        failed = f"{type(error).__name__}: {_first_line(error)}".removesuffix(": ")
    return Report(name, time.perf_counter() - start, found, skipped, failed)


def _first_line(error: BaseException) -> str:
    return str(error).strip().partition("\n")[0]


@contextlib.contextmanager
def _interrupts_later() -> Iterator[None]:
    """Let Ctrl-C wait while workers are started, who would otherwise be cut off half-way.

    Workers inherit the blocked signal, and so are silent before they know that it is not for them.
    Another thread of ours may still receive it, which is why it needs a handler too.
    """
    handler = signal.getsignal(signal.SIGINT)
    main = threading.current_thread() is threading.main_thread()
    if not (main and callable(handler) and hasattr(signal, "pthread_sigmask")):
        yield
        return
    from multiprocessing import resource_tracker

    resource_tracker.ensure_running()  # Started in between, it would unblock the signal.
    pressed: list[int] = []
    signal.signal(signal.SIGINT, lambda number, frame: pressed.append(number))
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        signal.signal(signal.SIGINT, handler)
    if pressed:
        handler(signal.SIGINT, None)


@functools.cache
def _lifeline() -> int:
    """The reading end of a pipe that breaks when this process ends, because it is never closed."""
    return os.pipe()[0]


def _begin(parent: int, lifeline: int) -> None:
    """Prepare a worker, which is to end with its parent.

    Left alone it would wait for more work, or finish what nobody reads.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_watch, args=(parent,), daemon=True).start()
    # A thread waits as long as a library keeps Python's lock. On Linux the system itself ends us:
    # a broken pipe sends SIGIO, and nobody here has made anything else of it.
    with contextlib.suppress(ImportError, AttributeError, OSError):
        import fcntl

        pipe = os.open(f"/proc/{parent}/fd/{lifeline}", os.O_RDONLY | os.O_NONBLOCK)
        fcntl.fcntl(pipe, fcntl.F_SETOWN, os.getpid())
        fcntl.fcntl(pipe, fcntl.F_SETFL, os.O_NONBLOCK | os.O_ASYNC)


def _watch(parent: int) -> None:
    # Windows never tells that a parent has ended; there workers end after a while without work.
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)
