"""Opening a results file to write: what may be gone on with, and by whom."""

from __future__ import annotations

import contextlib
import json
import os
import platform
import sqlite3
from collections.abc import Iterator, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from studies.store import (
    APPLICATION,
    FILE,
    PROTOCOL,
    TABLES,
    ResultsError,
    Store,
    as_json,
    check_ours,
    connect,
    marks,
    now,
)

try:
    import fcntl
except ImportError:  # Windows: two runs on one file at once go unnoticed there.
    fcntl = None  # type: ignore[assignment]

__all__ = ["opened"]

_PACKAGES = ("promissing", "numpy", "scipy", "scikit-learn", "jax", "optax", "pandas")


@contextlib.contextmanager
def opened(
    out: str | Path,
    study: str,
    *,
    settings: Mapping[str, Any],
    plan: Mapping[str, str],
    resume: bool,
    jobs: int,
) -> Iterator[Store]:
    """The results file in the directory `out`, for this process alone.

    `plan` maps the names of all batches to their arguments as JSON. What does not fit together is
    refused with a ResultsError before anything is written.
    """
    folder = Path(out)
    if folder.exists() and not folder.is_dir():
        raise ResultsError(f"{folder} is a file, not a directory. Give another --out.")
    path = folder / FILE
    machine = {"system": platform.system(), "machine": platform.machine(), "cores": os.cpu_count()}
    told = (study, as_json(settings), as_json(_versions()), as_json(machine), jobs, now())
    with contextlib.ExitStack() as stack:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            stack.enter_context(_locked(folder))
            if path.exists():
                if not resume:
                    raise ResultsError(
                        f"{path} exists. Give --resume to go on with it, or another --out."
                    )
                connection = stack.enter_context(contextlib.closing(connect(path)))
                check_ours(connection, path)
                _check_same(connection, path, study, told[1], plan)
                run = _begin(connection, told)
            else:
                run = _create(path, told)
                connection = stack.enter_context(contextlib.closing(connect(path)))
            store = Store(path, study, connection, run)
        except OSError as error:
            raise ResultsError(
                f"Cannot write to the directory {folder} ({error.strerror}). Give another --out."
            ) from None
        except sqlite3.Error as error:
            raise ResultsError(f"{path} cannot be used ({error}). Give another --out.") from None
        stack.callback(store.close)
        yield store


def _create(path: Path, told: tuple[Any, ...]) -> int:
    # Under another name until it is complete: whoever is killed here leaves no results file.
    draft = path.with_name(f"{path.name}.part")
    draft.unlink(missing_ok=True)
    with contextlib.closing(sqlite3.connect(draft)) as connection:
        connection.execute("PRAGMA journal_mode = MEMORY")
        connection.execute(f"PRAGMA application_id = {APPLICATION}")
        connection.execute(f"PRAGMA user_version = {PROTOCOL}")
        connection.executescript(f"BEGIN; {TABLES} COMMIT")
        run = _begin(connection, told)
    os.replace(draft, path)
    return run


def _begin(connection: sqlite3.Connection, told: tuple[Any, ...]) -> int:
    with connection:
        cursor = connection.execute(f"INSERT INTO runs VALUES ({marks(8)})", (*told, None, 0.0))
    return cursor.lastrowid or 0


def _check_same(
    connection: sqlite3.Connection, path: Path, study: str, settings: str, plan: Mapping[str, str]
) -> None:
    first, made_with = connection.execute("SELECT study, settings FROM runs").fetchone()
    if first != study:
        raise ResultsError(f"{path} holds the study {first!r}, not {study!r}. Give another --out.")
    old, new = json.loads(made_with), json.loads(settings)
    changed = [
        f"{name} was {_shown(old, name)} and is {_shown(new, name)}"
        for name in sorted(old | new)
        if _shown(old, name) != _shown(new, name)
    ]
    if changed:
        raise ResultsError(
            f"{path} was made with other settings: {'; '.join(changed)}. Give the same to go on "
            f"with it, or another --out."
        )
    finished = "SELECT name, arguments FROM batches WHERE status = 'done' ORDER BY name"
    for name, arguments in connection.execute(finished):
        if name not in plan:
            raise ResultsError(
                f"{path} has finished batch {name!r}, which is not among the batches to run. Give "
                f"another --out."
            )
        if plan[name] != arguments:
            raise ResultsError(
                f"{path} has finished batch {name!r} with other arguments: they were {arguments} "
                f"and are {plan[name]}. Give another --out."
            )


def _shown(settings: Mapping[str, Any], name: str) -> str:
    return as_json(settings[name]) if name in settings else "not given"


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    # A file of its own, since SQLite takes locks on the results and others may read them. The
    # system drops the lock with the process, whatever ends it; the file alone means nothing.
    path = folder / "results.lock"
    with contextlib.ExitStack() as stack:
        while True:
            file = stack.enter_context(path.open("a"))
            try:
                if fcntl is not None:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise ResultsError(
                    f"Another run is writing to {folder / FILE}. Wait for its end, or give another "
                    f"--out."
                ) from None
            except OSError:
                pass  # A file system without locks, as some networks have, is no reason to stop.
            # The run before may have removed its file between our opening and locking it.
            if path.exists() and os.path.samestat(path.stat(), os.fstat(file.fileno())):
                break
        try:
            yield
        finally:
            with contextlib.suppress(OSError):
                path.unlink()


def _versions() -> dict[str, str | None]:
    versions: dict[str, str | None] = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            versions[package] = None
    return versions
