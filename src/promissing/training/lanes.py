"""Training of chunks of replicas in parallel, one thread per core.

One core makes a step of one network faster than two cores that share it (4.0 against 5.0 us per row
for the default network on 8 features). Chunks are therefore trained at the same time, each in its
own thread.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import pairwise
from typing import Any

import jax
import numpy as np
from joblib import cpu_count

from promissing.networks.base import Network
from promissing.training import step as epoch
from promissing.training.programs import Program, program
from promissing.training.step import Plan, Replicas, State, Table

__all__ = ["Lanes", "usable_cores"]


def usable_cores() -> int:
    """Return how many chunks can be trained at a time.

    NPROC limits the threads of XLA. joblib sets OMP_NUM_THREADS in processes that share the cores,
    such as those of a search with `n_jobs`.
    """
    if jax.default_backend() != "cpu":
        return 1
    said = (os.environ.get(name, "") for name in ("NPROC", "OMP_NUM_THREADS"))
    return max(1, min([int(cpu_count()), *(int(text) for text in said if text.isdecimal())]))


class Lanes:
    """The cores on which chunks of replicas are trained.

    The contents of a chunk, and thus every result, are the same for any number of cores. One object
    serves one training: the program of a plan is looked up once.

    Parameters
    ----------
    cores : int, optional
        By default all that can be used.
    """

    def __init__(self, cores: int | None = None) -> None:
        self.cores = usable_cores() if cores is None else cores
        self.pool = ThreadPoolExecutor(self.cores)  # Starts its threads when they have work.
        self.programs: dict[Plan, Program] = {}

    def __enter__(self) -> Lanes:
        return self

    def __exit__(self, *error: object) -> None:
        self.pool.shutdown(cancel_futures=True)

    def begin(
        self,
        network: Network,
        plan: Plan,
        table: Table,
        replicas: Replicas,
        state: State,
        ids: np.ndarray,
        clock: np.ndarray,
    ) -> Callable[[], tuple[State, np.ndarray]]:
        """Start to train the replicas `ids` for one epoch, as `run_epoch` does.

        Returns a function that waits for the end and returns the new state and the losses (2, R).
        """
        n_replicas = len(replicas.steps)

        def train(replicas: Replicas, state: State, which: np.ndarray) -> Any:
            size = len(replicas.steps)
            order = np.full(size + plan.width, size, np.int32)
            order[: which.size] = which
            n_chunks = np.int32(-(-which.size // plan.width))
            args = (table, replicas, state, order, n_chunks, clock)
            if plan not in self.programs:
                self.programs[plan] = program(epoch.run_epoch, (network, plan), *args)
            return self.programs[plan](*args)

        # The same capacity for every lane and a constant width: one program serves all lanes.
        size = plan.width * _ceil(_ceil(n_replicas, plan.width), self.cores)
        if size >= n_replicas:
            reached, losses = train(replicas, state, ids)  # Does not wait.
            return lambda: (reached, np.asarray(losses))
        # Double precision may be enabled in this thread only.
        double = jax.dtypes.canonicalize_dtype(np.float64) == np.float64

        def train_and_wait(mine: np.ndarray) -> tuple[State, np.ndarray]:
            # Each lane holds only its own replicas, so that many lanes need no more memory.
            places = np.resize(mine, size) if mine.size else np.zeros(size, int)
            its, now = jax.tree.map(lambda a: np.asarray(a)[places], (replicas, state))
            with jax.enable_x64(double):
                reached, losses = train(its, now, np.arange(mine.size))
                return jax.tree.map(np.asarray, reached), np.asarray(losses)

        if plan not in self.programs:
            train_and_wait(ids[:0])  # Otherwise every lane would compile the program.
        lanes = _deal(ids, plan.width, self.cores)
        begun = [self.pool.submit(train_and_wait, mine) for mine in lanes]

        def finish() -> tuple[State, np.ndarray]:
            states, losses = zip(*(lane.result() for lane in begun), strict=True)
            merged = jax.tree.map(partial(_merge, lanes), state, *states)
            none = np.full((n_replicas, 2), np.nan, np.float32)
            return merged, _merge(lanes, none, *(a.T for a in losses)).T

        return finish


def _ceil(a: int, b: int) -> int:
    return -(-a // b)


def _deal(ids: np.ndarray, width: int, n: int) -> list[np.ndarray]:
    """Split the ids into at most n parts of whole chunks of nearly equal length."""
    n_chunks = _ceil(ids.size, width)
    n = min(n, n_chunks)
    ends = [n_chunks * i // n * width for i in range(n + 1)]
    return [ids[a:b] for a, b in pairwise(ends)]


def _merge(lanes: Sequence[np.ndarray], old: Any, *parts: np.ndarray) -> np.ndarray:
    """Return the old values, with those of the trained replicas replaced."""
    merged = np.array(old)
    for mine, part in zip(lanes, parts, strict=True):
        merged[mine] = part[: mine.size]
    return merged
