"""Chunks of replicas, as many at a time as there are cores.

One core makes a step of one network faster than two cores that share it (4.0 against 5.0 us a row
for the default network on 8 features). So chunks are trained at the same time, in a thread each.
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

from promissing._engine import epoch
from promissing._engine.epoch import Plan, Replicas, State, Table
from promissing._networks import Network

__all__ = ["Lanes", "usable_cores"]


def usable_cores() -> int:
    """How many chunks can be trained at a time.

    NPROC holds XLA to fewer threads. OMP_NUM_THREADS is what joblib sets in processes that share
    the cores, such as those of a search with `n_jobs`.
    """
    if jax.default_backend() != "cpu":
        return 1
    said = (os.environ.get(name, "") for name in ("NPROC", "OMP_NUM_THREADS"))
    return max(1, min([int(cpu_count()), *(int(text) for text in said if text.isdecimal())]))


class Lanes:
    """The cores, to train chunks of replicas on.

    What is in one chunk, and so every number, is the same for any number of cores.

    Parameters
    ----------
    cores : int, optional
        All that can be used by default.
    """

    def __init__(self, cores: int | None = None) -> None:
        self.cores = usable_cores() if cores is None else cores
        self.pool = ThreadPoolExecutor(self.cores)  # Starts its threads when they have work.
        self.compiled: set[Plan] = set()

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
        """Begin to train the replicas `ids` for one epoch, as `run_epoch` does.

        Returns what waits for the end and gives the new state and the losses (2, R).
        """
        n_replicas = len(replicas.steps)

        def train(mine: np.ndarray) -> Any:
            order = np.full(n_replicas + plan.width, n_replicas, np.int32)
            order[: mine.size] = mine
            n_chunks = np.int32(-(-mine.size // plan.width))
            return epoch.run_epoch(network, plan, table, replicas, state, order, n_chunks, clock)

        # Whether double precision is on may be a matter of this thread alone.
        double = jax.dtypes.canonicalize_dtype(np.float64) == np.float64

        def train_and_wait(mine: np.ndarray) -> tuple[State, np.ndarray]:
            with jax.enable_x64(double):
                reached, losses = train(mine)
                return reached, np.asarray(losses)

        lanes = _deal(ids, plan.width, self.cores)
        if len(lanes) == 1:
            reached, losses = train(ids)  # Does not wait.
            return lambda: (reached, np.asarray(losses))
        if plan not in self.compiled:
            train(ids[:0])  # Or every lane would compile.
            self.compiled.add(plan)
        begun = [self.pool.submit(train_and_wait, mine) for mine in lanes]

        def finish() -> tuple[State, np.ndarray]:
            states, losses = zip(*(lane.result() for lane in begun), strict=True)
            merged = jax.tree.map(partial(_merge, lanes), *states)
            return merged, _merge(lanes, *(a.T for a in losses)).T

        return finish


def _deal(ids: np.ndarray, width: int, n: int) -> list[np.ndarray]:
    """The ids in at most n parts of whole chunks, as equally long as can be."""
    n_chunks = -(-ids.size // width)
    n = min(n, n_chunks)
    ends = [n_chunks * i // n * width for i in range(n + 1)]
    return [ids[a:b] for a, b in pairwise(ends)]


def _merge(lanes: Sequence[np.ndarray], *parts: Any) -> np.ndarray:
    """Each replica from the lane that trained it."""
    merged = np.array(parts[0])
    for mine, part in zip(lanes[1:], parts[1:], strict=True):
        merged[mine] = np.asarray(part)[mine]
    return merged
