"""Run the batches of a study in parallel, store every result, and resume after an interruption.

A study is a list of batches that follows from its settings. joblib schedules the batches, and the
process that calls `run` stores each result when it arrives::

    OUT/run.json         study, settings, and one entry per run: versions, machine, times
    OUT/batches/*.npz    one file per finished batch: its rows and arrays

Each file is written under a temporary name and then renamed, so it is complete or absent. A run
that is killed loses only the batches in progress, and `resume=True` skips all files that exist.
The results depend neither on the number of jobs nor on the order of the batches.

joblib's active backend is used: in `with joblib.parallel_config("dask"):`, the batches run on that
cluster. By default they run in local processes, which end when this process ends.
"""

from __future__ import annotations

import contextlib
import ctypes
import io
import json
import os
import platform
import signal
import subprocess
import sys
import threading
import time
import warnings
import zipfile
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor
from copy import deepcopy
from datetime import UTC, datetime
from importlib.metadata import version
from itertools import islice
from math import nan
from operator import index
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote, unquote

import numpy as np

if TYPE_CHECKING:
    import pandas as pd

try:
    import fcntl
except ImportError:  # Windows has no such locks. Two runs in one directory go unnoticed there.
    fcntl = None

__all__ = [
    *("Batch", "Outcome", "Results", "ResultsError", "Row", "Skipped", "Summary"),
    *("count_jobs", "duration", "read", "run", "write"),
]

LOG, BATCHES = "run.json", "batches"
PROTOCOL = 2  # Raised when results of older versions must not be mixed with new ones.
PACKAGES = ("numpy", "scipy", "scikit-learn", "jax", "optax", "pandas")


class ResultsError(ValueError):
    """The study cannot be run or read as requested. Nothing has been written."""


class Skipped(Exception):  # noqa: N818 - it is no error
    """Raised by the work of a batch that is not possible here, with the reason in one line."""


class Row(NamedTuple):
    """One number of a study; NaN stands for a ratio, value or time that does not exist."""

    dataset: str
    mechanism: str
    ratio: float
    strategy: str
    repetition: int
    fold: int
    metric: str
    value: float
    seconds: float = nan


class Outcome(NamedTuple):
    """The results of a batch."""

    rows: list[Row]
    arrays: Mapping[str, np.ndarray] = MappingProxyType({})


class Batch(NamedTuple):
    """Work whose results are stored together.

    Parameters
    ----------
    name : str
        Unique name, the same in every run, such as "mnar/0.5/020".
    work : callable
        Function of a module. It is called as `work(**arguments, **context)` and returns an
        `Outcome`.
    arguments : dict
        Arguments of `work` as plain JSON values. They define the batch.
    cost : float, default=1.0
        Cost relative to the other batches. Expensive batches run first.

    Examples
    --------
    >>> from studies.runner import Batch, Outcome, Row
    >>> def work(ratio):
    ...     return Outcome([Row("toy", "mnar", ratio, "mean", 0, 0, "auc", 0.75)])
    >>> Batch("mnar/0.5", work, {"ratio": 0.5}).cost
    1.0
    """

    name: str
    work: Callable[..., Outcome]
    arguments: dict[str, Any]
    cost: float = 1.0


class Summary(NamedTuple):
    """The outcome of a run; `skipped` and `failed` map batches to reasons."""

    out: Path
    n_batches: int
    n_done_now: int
    n_done_before: int
    skipped: dict[str, str]
    failed: dict[str, str]
    seconds: float
    interrupted: bool


class Results(NamedTuple):
    """Stored results: a row per number, arrays by batch and name, and facts about the runs."""

    rows: pd.DataFrame
    arrays: dict[str, dict[str, np.ndarray]]
    about: dict[str, Any]


class Attempt(NamedTuple):
    """The end of a batch: either the contents of its file, or why it was skipped or failed."""

    name: str
    file: bytes | None = None
    skipped: str | None = None
    failed: str | None = None


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
) -> Summary:
    """Run all batches that are not finished, and store their results.

    Parameters
    ----------
    study : str
        Name of the study.
    batches : iterable of Batch
        All batches, finished or not. A batch that raises `Skipped` is recorded with its reason.
        A batch that raises another exception is reported with its message. In both cases the
        other batches continue, and a resumed run tries the batch again.
    out : str or Path
        Directory for the results. It is created if needed.
    settings : mapping of str to JSON values
        Settings that define the batches. A run with other settings cannot be resumed.
    context : mapping, optional
        Further keyword arguments for every `work` that do not change its results, such as the
        directory of the data.
    resume : bool, default=False
        Whether to continue with the results in `out`. Otherwise existing results are an error.
    jobs : int, optional
        Number of batches that run at the same time. All cores by default; 1 runs the batches in
        this process.
    progress : bool, optional
        Whether to show a progress bar. By default it is shown if stderr is a terminal.

    Returns
    -------
    Summary
        Counts and reasons. After Ctrl-C `interrupted` is True, and finished batches are kept.

    Raises
    ------
    ResultsError
        If the study cannot be run as requested. Nothing has been written in this case.
    RuntimeError
        If results can no longer be stored, for example on a full disk, or if a worker is killed.
        Finished batches are kept.

    Examples
    --------
    >>> import tempfile
    >>> from studies.runner import Batch, Outcome, Row, read, run
    >>> def work(seed):
    ...     return Outcome([Row("toy", "mcar", 0.5, "mean", seed, 0, "auc", 0.75)])
    >>> batches = [Batch(f"toy/{seed}", work, {"seed": seed}) for seed in range(2)]
    >>> out = tempfile.mkdtemp()
    >>> run("toy", batches, out, settings={"epochs": 1}, jobs=1).n_done_now
    2
    >>> read(out).rows["value"].tolist()
    [0.75, 0.75]
    """
    start = time.perf_counter()
    batches, context = list(batches), dict(context or {})
    plan = _check(batches, context, settings)
    jobs = count_jobs(jobs)
    skipped: dict[str, str] = {}
    failed: dict[str, str] = {}
    interrupted = False
    with _opened(Path(out), study, settings, plan, resume, jobs) as store:
        before = store.done()
        left = [batch for batch in batches if batch.name not in before]
        left.sort(key=lambda batch: -batch.cost)
        show = sys.stderr.isatty() if progress is None else progress
        try:
            with (
                _bar(study, left, len(batches)) if show else contextlib.nullcontext() as advance,
                contextlib.closing(_attempts(left, context, jobs)) as attempts,
            ):
                for attempt in attempts:
                    if attempt.failed is not None:
                        failed[attempt.name] = attempt.failed
                    else:
                        store.keep(attempt)
                    if attempt.skipped is not None:
                        skipped[attempt.name] = attempt.skipped
                    if advance is not None:
                        advance(attempt.name)
        except KeyboardInterrupt:
            interrupted = True
        except BrokenExecutor:
            ended = store.done() | skipped.keys() | failed.keys()
            first = next(batch.name for batch in left if batch.name not in ended)
            raise RuntimeError(
                f"A worker was killed, maybe for lack of memory, in batch {first!r} or one soon "
                f"after it. Finished batches are kept: continue with --resume and fewer --jobs."
            ) from None
        # The files are counted, because Ctrl-C may arrive between storing and counting.
        n_now = len(store.done()) - len(before)
    counts = (len(batches), n_now, len(before))
    seconds = time.perf_counter() - start
    return Summary(store.out, *counts, skipped, failed, seconds, interrupted)


def read(out: str | Path) -> Results:
    """Read the results of a study.

    Parameters
    ----------
    out : str or Path
        The directory that was passed to `run`.

    Returns
    -------
    Results
        `rows`, a frame with the columns `study` and those of `Row`, in an order that does not
        depend on the run; `arrays`, by batch and name; and `about`, a dict with

        - `study`, `settings` and `protocol`;
        - `versions`, `platform` and `jobs` of the last run;
        - `commit`, the commits of all runs that finished batches;
        - `started`, `finished` (None if the last run is in progress or was killed) and `seconds`
          of all runs together, and `runs`, one entry per run;
        - `n_done`, the number of finished batches, and `skipped`, which maps batches to reasons.
    """
    import pandas as pd

    log = _read_log(Path(out))
    lines: list[list[Any]] = []
    arrays: dict[str, dict[str, np.ndarray]] = {}
    names = []
    for path in sorted(Path(out, BATCHES).glob("*.npz")):
        names.append(unquote(path.stem))
        with _read_file(path) as file:
            lines += json.loads(file["rows"].tobytes())
            found = {k.partition("/")[2]: file[k] for k in file.files if k.startswith("array/")}
        if found:
            arrays[names[-1]] = found
    types = dict.fromkeys(("ratio", "value", "seconds"), float) | {"repetition": int, "fold": int}
    rows = pd.DataFrame(lines, columns=Row._fields).astype(types)
    rows.insert(0, "study", log["study"])
    rows = rows.sort_values([*rows.columns[:-2]], na_position="first", ignore_index=True)
    runs = log["runs"]
    skipped = {name: why for one in runs for name, why in one["skipped"].items()}
    about = {
        **{name: log[name] for name in ("study", "settings", "protocol", "runs")},
        **{name: runs[-1][name] for name in ("versions", "platform", "jobs", "finished")},
        # A run without batches only writes the report anew.
        "commit": ", ".join(
            dict.fromkeys(
                str(one["commit"]) for one in runs if one.get("batches") and one["commit"]
            )
        ),
        "started": runs[0]["started"],
        "seconds": sum(one["seconds"] for one in runs),
        "n_done": len(names),
        "skipped": {name: why for name, why in sorted(skipped.items()) if name not in names},
    }
    return Results(rows, arrays, about)


def write(path: Path, data: str | bytes) -> None:
    """Write a file under a temporary name and rename it."""
    draft = path.with_name(f"{path.name}.part")
    try:
        with draft.open("wb") as file:
            file.write(data.encode() if isinstance(data, str) else data)
            file.flush()
            os.fsync(file.fileno())  # Otherwise a power failure could leave an empty file.
        os.replace(draft, path)
    finally:
        draft.unlink(missing_ok=True)


# Checks before anything is written


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
        plan[batch.name] = _dumps(batch.arguments, what)
        if json.loads(plan[batch.name]) != batch.arguments:
            raise ResultsError(f"{what} must be plain JSON values: lists, and keys that are text.")
        if both := sorted(batch.arguments.keys() & context.keys()):
            raise ResultsError(f"Batch {batch.name!r} and the context both have {both[0]!r}.")
    _dumps(dict(settings), "The settings")
    return plan


def _dumps(value: Any, what: str = "A value") -> str:
    """JSON in one spelling, so that equal values give equal texts."""
    try:
        return json.dumps(value, sort_keys=True, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ResultsError(f"{what} must be plain JSON values ({error}).") from None


def count_jobs(jobs: int | None) -> int:
    """The number of jobs; None means all cores, or all workers of joblib's active backend."""
    if jobs is None:
        from joblib import effective_n_jobs

        return int(effective_n_jobs(-1))
    if isinstance(jobs, bool) or not isinstance(jobs, int) or jobs < 1:
        raise ResultsError(f"`jobs` must be a positive integer or None. Received: {jobs!r}")
    return jobs


# The files of a study


class _Store:
    """The directory of a study. Only the process that runs the study writes to it."""

    def __init__(self, out: Path, log: dict[str, Any], jobs: int) -> None:
        self.out = out
        self._log = log
        self._start = time.perf_counter()
        machine = {"machine": platform.machine(), "system": platform.system()}
        self._run: dict[str, Any] = {
            "versions": _versions(),
            "commit": _commit(),
            "platform": {"cores": os.cpu_count(), **machine},
            "jobs": jobs,
            "started": _now(),
            "finished": None,
            "skipped": {},
            "batches": 0,
        }
        log["runs"].append(self._run)
        self._note()
        (out / BATCHES).mkdir(exist_ok=True)

    def done(self) -> set[str]:
        """The names of the finished batches."""
        return {unquote(path.stem) for path in (self.out / BATCHES).glob("*.npz")}

    def keep(self, attempt: Attempt) -> None:
        """Store a finished batch, or record why it was skipped."""
        try:
            if attempt.file is not None:
                write(self.out / BATCHES / f"{quote(attempt.name, safe='')}.npz", attempt.file)
                self._run["batches"] += 1
            else:
                self._run["skipped"][attempt.name] = attempt.skipped
            self._note()
        except OSError as error:
            raise RuntimeError(
                f"The directory {self.out} can no longer be written ({error.strerror}). Finished "
                f"batches are kept: free some space, then continue with --resume."
            ) from None

    def close(self) -> None:
        """Record the end of the run."""
        self._run["finished"] = _now()
        with contextlib.suppress(OSError):  # On a full disk this run has no end. It does no harm.
            self._note()

    def _note(self) -> None:
        # Written after every batch, so that a killed run has its time up to the last batch.
        self._run["seconds"] = time.perf_counter() - self._start
        write(self.out / LOG, json.dumps(self._log, indent=1))


@contextlib.contextmanager
def _opened(
    out: Path,
    study: str,
    settings: Mapping[str, Any],
    plan: Mapping[str, str],
    resume: bool,
    jobs: int,
) -> Iterator[_Store]:
    """The store in `out` for this process alone, or a ResultsError before anything is written."""
    if out.exists() and not out.is_dir():
        raise ResultsError(f"{out} is a file, not a directory. Choose another --out.")
    with contextlib.ExitStack() as stack:
        try:
            out.mkdir(parents=True, exist_ok=True)
            stack.enter_context(_locked(out))
            if (out / LOG).exists():
                if not resume:
                    raise ResultsError(
                        f"{out} has results of a study. Continue them with --resume, or choose "
                        f"another --out."
                    )
                log = _read_log(out)
                _check_same(out, log, study, settings, plan)
            else:
                log = {"protocol": PROTOCOL, "study": study, "settings": dict(settings)}
                log["runs"] = []
            store = _Store(out, log, jobs)
        except OSError as error:
            raise ResultsError(
                f"Cannot write to the directory {out} ({error.strerror}). Choose another --out."
            ) from None
        stack.callback(store.close)
        yield store


@contextlib.contextmanager
def _locked(out: Path) -> Iterator[None]:
    """Lock a directory. The system drops the lock when the process ends, however it ends."""
    if fcntl is None:
        yield
        return
    handle = os.open(out, os.O_RDONLY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ResultsError(
                f"Another run is writing to {out}. Wait until it ends, or choose another --out."
            ) from None
        except OSError:
            pass  # Some network file systems have no locks. This is no reason to stop.
        yield
    finally:
        os.close(handle)


def _read_log(out: Path) -> dict[str, Any]:
    path = out / LOG
    if not path.is_file():
        raise FileNotFoundError(f"There are no results of a study in {out}: {path} is missing.")
    try:
        log = json.loads(path.read_bytes())
        protocol = log["protocol"]
    except (ValueError, KeyError, TypeError):
        raise ResultsError(f"{path} cannot be read as the record of a study.") from None
    if protocol != PROTOCOL:
        raise ResultsError(
            f"{path} follows version {protocol} of the protocol, and this program version "
            f"{PROTOCOL}: their results cannot be mixed. Choose another --out."
        )
    return dict(log)


def _check_same(
    out: Path,
    log: Mapping[str, Any],
    study: str,
    settings: Mapping[str, Any],
    plan: Mapping[str, str],
) -> None:
    """Refuse to continue the results of another study, other settings or other batches."""
    if log["study"] != study:
        raise ResultsError(
            f"{out} holds the study {log['study']!r}, not {study!r}. Choose another --out."
        )
    old, new = (
        {name: _dumps(value) for name, value in one.items()} for one in (log["settings"], settings)
    )
    changed = [
        f"{name} was {old.get(name, 'not given')} and is {new.get(name, 'not given')}"
        for name in sorted(old | new)
        if old.get(name) != new.get(name)
    ]
    if changed:
        raise ResultsError(
            f"{out} was made with other settings: {'; '.join(changed)}. Use the same settings, or "
            f"choose another --out."
        )
    for path in sorted((out / BATCHES).glob("*.npz")):
        name = unquote(path.stem)
        if name not in plan:
            raise ResultsError(
                f"{out} has finished batch {name!r}, which is not among the batches to run. Choose "
                f"another --out."
            )
        with _read_file(path) as file:
            arguments = file["arguments"].tobytes().decode()
        if plan[name] != arguments:
            raise ResultsError(
                f"{out} has finished batch {name!r} with other arguments: they were {arguments} "
                f"and are {plan[name]}. Choose another --out."
            )


def _pack(outcome: Outcome, arguments: Mapping[str, Any]) -> bytes:
    """Check an outcome and return the contents of its file."""
    if not isinstance(outcome, Outcome):
        raise TypeError(f"A batch must return an Outcome. Received: {type(outcome).__name__}")
    kinds: tuple[Callable[[Any], Any], ...]
    kinds = (str, str, float, str, index, index, str, float, float)
    rows = [[k(v) for k, v in zip(kinds, row, strict=True)] for row in outcome.rows]
    if len({str(row[:7]) for row in rows}) < len(rows):
        raise ResultsError("The batch has one of its results twice.")
    texts = {"arguments": _dumps(dict(arguments)), "rows": json.dumps(rows)}
    contents = {name: np.frombuffer(text.encode(), np.uint8) for name, text in texts.items()}
    for name, values in outcome.arrays.items():
        array = np.asarray(values)
        if array.dtype.kind in "OV":
            raise TypeError(f"Array {name!r} must hold numbers or text. Received: {array.dtype}")
        contents[f"array/{name}"] = array
    file = io.BytesIO()
    np.savez(file, **contents)
    return file.getvalue()


@contextlib.contextmanager
def _read_file(path: Path) -> Iterator[Any]:
    try:
        with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as file:
            yield file
    except (ValueError, KeyError, EOFError, zipfile.BadZipFile):
        raise ResultsError(
            f"{path} cannot be read as the results of a batch. Delete it, then continue with "
            f"--resume."
        ) from None


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _commit() -> str | None:
    """Return the commit of the source, with a plus sign if files were changed since."""
    git = ["git", "-C", str(Path(__file__).parent)]
    try:
        found, changed = (
            subprocess.run([*git, *words], capture_output=True, text=True, check=True).stdout
            for words in (["rev-parse", "--short", "HEAD"], ["status", "--porcelain", "-uno"])
        )
    except (OSError, subprocess.CalledProcessError):  # No git, or no repository.
        return None
    return found.strip() + "+" * bool(changed.strip())


def _versions() -> dict[str, str]:
    import promissing

    versions = {"python": platform.python_version(), "promissing": promissing.__version__}
    return dict(sorted((versions | {name: version(name) for name in PACKAGES}).items()))


# Running batches


def _attempts(
    batches: Sequence[Batch], context: Mapping[str, Any], jobs: int
) -> Generator[Attempt, None, None]:
    """Run batches with joblib and yield their ends in the order of completion."""
    from joblib import Parallel, cpu_count, delayed, parallel_config
    from joblib.parallel import get_active_backend

    backend, _ = get_active_backend()
    local = type(backend).__name__ == "LokyBackend"
    jobs = min(jobs, len(batches))
    if local and jobs <= 1:
        for batch in batches:
            # Copies, as in another process: no batch sees the changes that another one makes.
            copies = deepcopy((batch.arguments, dict(context)))
            yield _attempt(batch.name, batch.work, *copies)
        return
    tasks = (
        delayed(_attempt)(batch.name, batch.work, batch.arguments, context) for batch in batches
    )
    if not backend.supports_return_generator:  # As that of Ray.
        while some := list(islice(tasks, 4 * jobs)):
            yield from Parallel(jobs, batch_size=1)(some)
        return
    # With threads for all cores in every worker, small networks take half as long again.
    begin = {"initializer": _begin, "initargs": (os.getpid(), max(1, cpu_count() // jobs))}
    how = {"return_as": "generator_unordered", "batch_size": 1, "max_nbytes": None}
    if local:
        with parallel_config("loky", inner_max_num_threads=1, **begin):
            parallel = Parallel(jobs, **how)
    else:
        parallel = Parallel(jobs, **how)
    found = None
    try:
        with _interrupts_later():
            found = parallel(tasks)
        for attempt in found:  # noqa: UP028 - the warnings at its end are to be ignored
            yield attempt
    finally:
        if found is not None:
            with warnings.catch_warnings(), _quiet_loky():
                warnings.simplefilter("ignore")  # joblib warns that tasks are cancelled.
                found.close()


def _attempt(
    name: str,
    work: Callable[..., Outcome],
    arguments: Mapping[str, Any],
    context: Mapping[str, Any],
) -> Attempt:
    """Run one batch with one native thread.

    Native libraries (BLAS, OpenMP) round sums differently with another number of threads. JAX has
    threads of its own, whose number does not change its results.
    """
    limits: Any = contextlib.nullcontext()
    if _parent is None:  # Otherwise joblib has set the number of threads in the environment.
        # Only libraries that are loaded can be limited. scikit-learn loads all that matter.
        import sklearn.utils.parallel  # noqa: F401
        from threadpoolctl import threadpool_limits

        limits = threadpool_limits(1)
    with _killed_with_parent(), limits:
        try:
            return Attempt(name, _pack(work(**arguments, **context), arguments))
        except Skipped as reason:
            return Attempt(name, skipped=_first_line(reason) or "no reason given")
        except (Exception, SystemExit) as error:
            text = f"{type(error).__name__}: {_first_line(error)}".removesuffix(": ")
            return Attempt(name, failed=text)


def _first_line(error: BaseException) -> str:
    return str(error).strip().partition("\n")[0]


# Workers end with their parent, even if it is killed

_parent: int | None = None  # In a local worker, the process that started it.


def _begin(parent: int, threads: int) -> None:
    """Prepare a local worker, which would otherwise wait for more work after its parent ended."""
    global _parent
    _parent = parent
    os.environ.setdefault("NPROC", str(threads))  # JAX reads it when it starts.

    def watch() -> None:
        # On Windows the parent's number never changes. Workers end there after some idle minutes.
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


@contextlib.contextmanager
def _killed_with_parent() -> Iterator[None]:
    """Let Linux kill this worker with its parent during a batch.

    The thread that watches the parent cannot run while a library holds Python's lock. Linux sends
    the signal when the *thread* that started the worker ends. Between batches it may end normally,
    so the signal is then switched off.
    """
    if _parent is None or sys.platform != "linux":
        yield
        return
    prctl, parent_death_signal = ctypes.CDLL(None).prctl, 1
    prctl(parent_death_signal, signal.SIGKILL)
    if os.getppid() != _parent:  # It ended before the signal was set.
        os._exit(1)
    try:
        yield
    finally:
        prctl(parent_death_signal, 0)


@contextlib.contextmanager
def _interrupts_later() -> Iterator[None]:
    """Delay Ctrl-C while workers are started.

    Workers inherit the blocked signal, so Ctrl-C ends only this process, which then ends them.
    Another thread of this process may still receive the signal, which is why the handler changes.
    """
    handler = signal.getsignal(signal.SIGINT)
    main = threading.current_thread() is threading.main_thread()
    if not (main and callable(handler) and hasattr(signal, "pthread_sigmask")):
        yield
        return
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


@contextlib.contextmanager
def _quiet_loky() -> Iterator[None]:
    """Silence an error of loky's thread while tasks are cancelled.

    After it has killed the workers, the thread looks up tasks that it has just cancelled, and ends
    with a KeyError if one of them was not yet handed to a worker.
    """
    hook = threading.excepthook

    def quiet(error: threading.ExceptHookArgs) -> None:
        ours = error.thread is not None and error.thread.name == "ExecutorManagerThread"
        if not (ours and error.exc_type is KeyError):
            hook(error)

    threading.excepthook = quiet
    try:
        yield
    finally:
        threading.excepthook = hook


@contextlib.contextmanager
def _bar(study: str, left: Sequence[Batch], total: int) -> Iterator[Callable[[str], None]]:
    """A progress bar, and the function that advances it by a finished batch."""
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
            # Only the batches of this run show how fast it is.
            seconds = (time.perf_counter() - start) * ahead / (whole - ahead or 1)
            about = f"about {duration(seconds)} left" if costs else ""
            count = f"{n_done}/{total}"
            progress.update(task, completed=whole - ahead, count=count, left=about)

        yield advance


def duration(seconds: float) -> str:
    """A time as text, such as "40 s", "12 min" or "2.5 h"."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
