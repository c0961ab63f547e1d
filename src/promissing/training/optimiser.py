"""The optimiser, and the parameters as a few vectors.

Small arrays are packed end to end into one vector. The optimiser then takes a few operations
instead of a few per array, which is quicker to compile and to run. Large arrays gain nothing and
stay separate. Arrays may have leading axes, such as that of the replicas.
"""

from __future__ import annotations

from math import prod
from typing import Any

import jax
import jax.numpy as jnp
import optax

__all__ = ["Shapes", "coefficients", "make_optimiser", "pack", "unpack"]

# The names and shapes of a replica's parameters, in order.
Shapes = tuple[tuple[str, tuple[int, ...]], ...]


def pack(params: Any, shapes: Shapes, *, xp: Any) -> dict[str, Any]:
    """Return vectors (..., size) that hold the arrays (..., shape), small ones end to end."""
    homes: dict[str, list[Any]] = {}
    for name, shape in shapes:
        lead = params[name].shape[: params[name].ndim - len(shape)]
        homes.setdefault(_home(name, shape), []).append(params[name].reshape(*lead, -1))
    return {home: xp.concatenate(parts, axis=-1) for home, parts in homes.items()}


def unpack(packed: Any, shapes: Shapes) -> dict[str, Any]:
    """Return the arrays (..., shape) from the vectors of `pack`."""
    params, starts = {}, dict.fromkeys(packed, 0)
    for name, shape in shapes:
        home = _home(name, shape)
        start, vector = starts[home], packed[home]
        starts[home] = end = start + prod(shape)
        params[name] = vector[..., start:end].reshape(*vector.shape[:-1], *shape)
    return params


def _home(name: str, shape: tuple[int, ...]) -> str:
    if prod(shape) > 2**13:
        return name
    return "*matrices" if len(shape) > 1 else "*vectors"


def coefficients(shapes: Shapes) -> dict[str, bool]:
    """Return which vectors of `pack` have weight decay: those of matrices, not those of biases."""
    return {_home(name, shape): len(shape) > 1 for name, shape in shapes}


def make_optimiser(plan: Any, hyper: dict[str, Any], rate: Any, multipliers: Any = None) -> Any:
    """Return the optimiser of optax for a `Plan`; all its numbers may be traced."""
    parts = []
    if plan.solver != "sgd":
        parts.append(optax.scale_by_adam(hyper["beta_1"], hyper["beta_2"], hyper["epsilon"]))
    elif plan.momentum:
        parts.append(optax.trace(hyper["momentum"], nesterov=plan.nesterov))
    if plan.multipliers:
        parts.append(optax.stateless(lambda step, _: jax.tree.map(jnp.multiply, step, multipliers)))
    if plan.solver == "adamw":
        mask = coefficients(plan.shapes)
        parts.append(optax.add_decayed_weights(hyper["weight_decay"], mask=mask))
    return optax.chain(*parts, optax.scale_by_learning_rate(rate))
