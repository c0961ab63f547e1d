"""Networks as frozen descriptions of shapes and names; their parameters are a dict of arrays.

A network is written once, in NumPy spelling: with `xp=jax.numpy` the engine trains it, with
`xp=numpy` the same lines predict, in float64 and without any deep-learning framework.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

__all__ = ["Network", "Params", "evaluate", "evaluate_members", "stack"]

Params = Mapping[str, Any]


class Network(Protocol):
    """What the engine asks of a network: it is hashable, and it has a loss for every row.

    It computes in the type of `x`. `dropout` is a rate and `uniform(shape)` draws from U(0, 1),
    anew in every call; both are None except in training.
    """

    def __hash__(self) -> int: ...

    def forward(
        self,
        params: Params,
        x: Any,
        *,
        xp: Any,
        dropout: Any = None,
        uniform: Callable[[tuple[int, ...]], Any] | None = None,
        pruned: Any = None,
    ) -> Any:
        """The outputs (n, k) for x (n, p), NaN where missing: logits, or the predicted values.

        `pruned` is what `prune` makes of x, if that is at hand.
        """

    def prune(self, x: Any, *, xp: Any) -> Any:
        """What the first layer makes of x before its weights come in."""

    def loss(
        self,
        params: Params,
        x: Any,
        y: Any,
        *,
        xp: Any,
        dropout: Any = None,
        uniform: Callable[[tuple[int, ...]], Any] | None = None,
    ) -> Any:
        """The loss (n,) of every row, given targets y (n, k)."""


def stack(members: Sequence[Params]) -> dict[str, np.ndarray]:
    """Parameters of R networks as one, every array with a leading axis R."""
    return {name: np.stack([member[name] for member in members]) for name in members[0]}


def evaluate(network: Network, params: Params, X: np.ndarray, *, block: int = 2048) -> np.ndarray:
    """The outputs (n, k) of one network in NumPy float64, computed in blocks that fit the cache."""
    alone = {name: np.asarray(value)[None] for name, value in params.items()}
    (outputs,) = evaluate_members(network, alone, X, block=block)
    return np.asarray(outputs)


def evaluate_members(
    network: Network, params: Params, X: np.ndarray, *, block: int = 2048
) -> np.ndarray:
    """The outputs (R, n, k) of R networks, their parameters stacked; x is pruned once for all."""
    n_members = len(next(iter(params.values())))
    members = [
        {name: np.asarray(value[r], np.float64) for name, value in params.items()}
        for r in range(n_members)
    ]
    parts = []
    for start in range(0, max(len(X), 1), block):
        x = np.asarray(X[start : start + block], np.float64)
        pruned = network.prune(x, xp=np)
        parts.append(np.stack([network.forward(one, x, xp=np, pruned=pruned) for one in members]))
    return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)
