"""The protocol of networks, and their evaluation in NumPy.

A network is a frozen description of shapes and names; its parameters are a dict of arrays. It is
written once, in NumPy spelling. With ``xp=jax.numpy`` the engine trains it; with ``xp=numpy`` the
same lines predict, in float64 and without a deep-learning framework.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import Any, Protocol

import numpy as np

from promissing.networks.losses import Loss

__all__ = ["Network", "Params", "Uniform", "describe", "evaluate", "evaluate_members", "stack"]

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
    n_members = len(next(iter(params.values())))
    members = [
        {name: np.asarray(value[r], np.float64) for name, value in params.items()}
        for r in range(n_members)
    ]
    compute, parts = getattr(network, part), []
    for start in range(0, max(len(X), 1), block):
        x = np.asarray(X[start : start + block], np.float64)
        pruned = network.prune(x, xp=np)
        parts.append(np.stack([compute(one, x, xp=np, pruned=pruned) for one in members]))
    return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)
