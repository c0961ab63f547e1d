"""The protocol of networks, and their evaluation in NumPy.

A network is a frozen description of shapes and names; its parameters are a dict of arrays. It is
written once, in NumPy spelling. With ``xp=jax.numpy`` the engine trains it; with ``xp=numpy`` the
same lines predict, in float64 and without a deep-learning framework.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields
from functools import cache
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
from joblib import cpu_count
from threadpoolctl import ThreadpoolController

from promissing.networks.losses import Loss

__all__ = [
    *("MaskedRows", "Network", "Params", "Uniform"),
    *("describe", "evaluate", "evaluate_members", "stack"),
]

Params = Mapping[str, Any]
# Draws from U(0, 1), other numbers in every call.
Uniform = Callable[[tuple[int, ...]], Any]


class Network(Protocol):
    """What the engine and the estimators use of a network. It is a hashable frozen dataclass.

    It computes in the dtype of `x`. `dropout` is a rate and `uniform` draws random numbers; both
    are None except in training.
    """

    n_columns: int
    n_outputs: int
    loss: Loss

    def __hash__(self) -> int: ...

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the shapes of the parameters by name."""

    def init(self, rng: np.random.Generator) -> dict[str, np.ndarray]:
        """Draw new parameters."""

    def start_at(self, params: dict[str, np.ndarray], outputs: np.ndarray) -> None:
        """Change new parameters (R, ...) in place so that the first outputs are about these."""

    def columns_in_use(self) -> np.ndarray:
        """Return which encoded columns the network reads, (p,)."""

    def neutralizers(self, params: Params) -> np.ndarray:
        """Return the values (neurons, p) that have the same effect as a missing value."""

    def prune(self, x: Any, *, xp: Any) -> Any:
        """Return what the first layer makes of x before its weights are applied."""

    def forward(
        self,
        params: Params,
        x: Any,
        *,
        xp: Any,
        dropout: Any = None,
        uniform: Uniform | None = None,
        pruned: Any = None,
    ) -> Any:
        """Return the outputs (n, k) for x (n, p), NaN where missing.

        Pass `pruned` if the result of `prune` is already computed.
        """

    def columns(self, params: Params) -> tuple[np.ndarray, np.ndarray]:
        """Return the weight of every column (p, s), and what a missing column adds, (p, s)."""

    def sums(self, params: Params, pruned: Any) -> np.ndarray:
        """Return the sums (n, s) over the columns in NumPy, given the result of `prune`."""

    def from_sums(self, params: Params, sums: np.ndarray) -> np.ndarray:
        """Return the outputs (n, k) in NumPy, given the sums (n, s) over the columns."""

    def row_loss(
        self,
        params: Params,
        x: Any,
        y: Any,
        *,
        xp: Any,
        dropout: Any = None,
        uniform: Uniform | None = None,
    ) -> Any:
        """Return the loss (n,) of every row, given encoded targets y (n, m)."""


def describe(network: Any) -> dict[str, Any]:
    """Return the fields of a network as values for JSON; the loss by its name.

    Parameters
    ----------
    network : Network
        A network.

    Returns
    -------
    dict
        Values by field.
    """
    values = {item.name: getattr(network, item.name) for item in fields(network)}
    return values | {"loss": network.loss.name}


def stack(members: Sequence[Params]) -> dict[str, np.ndarray]:
    """Return the parameters of R networks as one dict of arrays with a leading axis R."""
    return {name: np.stack([member[name] for member in members]) for name in members[0]}


def evaluate(network: Network, params: Params, X: np.ndarray, *, block: int = 2048) -> np.ndarray:
    """Return the outputs (n, k) of one network in NumPy float64."""
    alone = {name: np.asarray(value)[None] for name, value in params.items()}
    (outputs,) = evaluate_members(network, alone, X, block=block)
    return np.asarray(outputs)


def evaluate_members(
    network: Network, params: Params, X: np.ndarray, *, block: int = 2048, part: str = "forward"
) -> np.ndarray:
    """Return the outputs (R, n, k) of R networks whose parameters are stacked.

    Rows are evaluated in blocks that fit the cache, and pruned once for all members. `part` names
    the method of the network that computes the outputs.
    """
    members = _members(params)
    compute, parts = getattr(network, part), []
    for start in range(0, max(len(X), 1), block):
        x = np.asarray(X[start : start + block], np.float64)
        pruned = network.prune(x, xp=np)
        parts.append(np.stack([compute(one, x, xp=np, pruned=pruned) for one in members]))
    return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)


def _members(params: Params) -> list[dict[str, np.ndarray]]:
    """Return the parameters of each of R networks in float64."""
    n_members = len(next(iter(params.values())))
    return [
        {name: np.asarray(value[r], np.float64) for name, value in params.items()}
        for r in range(n_members)
    ]


def in_threads(work: Callable[[int], None], numbers: Sequence[int]) -> None:
    """Do the work for every number, in one thread for each core.

    NumPy releases the interpreter while it computes.
    """
    if len(numbers) < 2 or (cores := cpu_count()) < 2:
        for number in numbers:
            work(number)
        return
    with _ONE_BLAS_THREAD, ThreadPoolExecutor(cores) as pool:
        deque(pool.map(work, numbers), maxlen=0)


class _OneBlasThread:
    """While any thread is inside, products of matrices use one thread each."""

    def __init__(self) -> None:
        self._lock, self._inside = threading.Lock(), 0
        self._limit: Any = None

    def __enter__(self) -> None:
        with self._lock:
            self._inside += 1
            if self._inside == 1:
                self._limit = _blas().limit(limits=1, user_api="blas")

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                self._limit.restore_original_limits()


_ONE_BLAS_THREAD = _OneBlasThread()


@cache
def _blas() -> ThreadpoolController:
    return ThreadpoolController()  # It looks through all loaded libraries, so once.


class MaskedRows:
    """The outputs of networks for the same rows under many masks.

    The first layer is a sum over the columns. What each unit of columns adds to it is computed
    once; a mask then only chooses what is left out. This takes a fraction of the time of evaluating
    every masked row.

    Parameters
    ----------
    network : Network
        The network.
    params : Params
        The stacked parameters of R networks.
    X : ndarray (n, p)
        The rows, NaN where missing.
    units : ndarray of int (p,)
        The unit of every column, numbered from 0. The columns of a unit are masked together; -1
        stands for a column that is never masked.

    Examples
    --------
    >>> import numpy as np
    >>> from promissing.networks.base import MaskedRows, stack
    >>> from promissing.networks.losses import LogLoss
    >>> from promissing.networks.mlp import MLP
    >>> net = MLP(3, 1, LogLoss(), hidden=(4,))
    >>> params = stack([net.init(np.random.default_rng(0))])
    >>> rows = MaskedRows(net, params, np.array([[0.5, np.nan, 1.0]]), np.array([0, 1, 1]))
    >>> rows.outputs(np.array([0, 0]), np.array([[True, False], [True, True]])).shape
    (1, 2, 1)
    """

    CELLS = 2**20  # Numbers that rows and units add, in memory at a time: 8 MB.
    STEP = 2048  # Pairs that are evaluated at a time: their numbers fit the cache.

    def __init__(self, network: Network, params: Params, X: np.ndarray, units: np.ndarray) -> None:
        self._network, self._members = network, _members(params)
        self._x = np.asarray(X, np.float64)
        self._pruned = network.prune(self._x, xp=np)
        known = ~np.isnan(self._x)
        self._known, self._filled = known.astype(np.float64), np.where(known, self._x, 0.0)
        self._columns = [np.flatnonzero(units == u) for u in range(units.max(initial=-1) + 1)]

    def outputs(self, rows: np.ndarray, masks: np.ndarray) -> np.ndarray:
        """Return the outputs (R, N, k) of N pairs of a row and a mask.

        Parameters
        ----------
        rows : ndarray of int (N,)
            The positions of the rows, in rising order.
        masks : ndarray of bool (N, U)
            The units that are missing in each.

        Returns
        -------
        ndarray (R, N, k)
            The outputs of every network.
        """
        out = np.empty((len(self._members), len(rows), self._network.n_outputs))
        single = (masks.sum(axis=1) == 1).all()
        fill = self._fill_single if single else self._fill_any
        in_threads(lambda r: fill(out[r], self._members[r], rows, masks), range(len(self._members)))
        return out

    def _fill_single(
        self, out: np.ndarray, member: Params, rows: np.ndarray, masks: np.ndarray
    ) -> None:
        """Write the outputs of one network for masks of one unit each, one unit after the other."""
        kernel, gaps = self._network.columns(member)
        sums = self._network.sums(member, self._pruned)
        lost = masks.argmax(axis=1)
        order = np.argsort(lost, kind="stable")
        edges = np.searchsorted(lost[order], np.arange(len(self._columns) + 1))
        for columns, part in zip(self._columns, map(slice, edges, edges[1:]), strict=True):
            for start in range(part.start, part.stop, self.STEP):
                pairs = order[start : min(start + self.STEP, part.stop)]
                own = rows[pairs]
                changed = sums.take(own, axis=0)
                changed -= self._filled[own[:, None], columns] @ kernel[columns]
                changed += self._known[own[:, None], columns] @ gaps[columns]
                out[pairs] = self._network.from_sums(member, changed)

    def _fill_any(
        self, out: np.ndarray, member: Params, rows: np.ndarray, masks: np.ndarray
    ) -> None:
        """Write the outputs of one network for any masks, one row after the other."""
        kernel, gaps = self._network.columns(member)
        most = max(1, self.CELLS // (max(1, len(self._columns)) * kernel.shape[1]))
        for start in range(0, len(self._x), most):
            part = slice(*np.searchsorted(rows, [start, start + most]))
            if part.start == part.stop:
                continue
            block = slice(start, start + most)
            sums = self._network.sums(member, self._pruned[block])
            added = self._added(block, kernel, gaps)
            for first in range(part.start, part.stop, self.STEP):
                here = slice(first, min(first + self.STEP, part.stop))
                own, missing = rows[here] - start, masks[here].astype(np.float64)
                changed = sums.take(own, axis=0)
                edges = np.flatnonzero(np.diff(own, prepend=-1, append=-1))
                for a, b in pairwise(edges):
                    changed[a:b] -= missing[a:b] @ added[own[a]]
                out[here] = self._network.from_sums(member, changed)

    def _added(self, block: slice, kernel: np.ndarray, gaps: np.ndarray) -> np.ndarray:
        """Return what the known columns of each unit add (b, U, s), compared with missing ones."""
        x, known = self._filled[block], self._known[block]
        added = np.empty((len(x), len(self._columns), kernel.shape[1]))
        for u, own in enumerate(self._columns):
            added[:, u] = x[:, own] @ kernel[own] - known[:, own] @ gaps[own]
        return added
