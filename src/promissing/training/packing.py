"""Parameters as a few vectors.

Small arrays lie end to end in one vector: the solver then takes a few operations and not a few for
every array, which is quicker to compile and to run. Large arrays gain nothing and stay by
themselves. Arrays may have leading axes, such as that of the replicas.
"""

from __future__ import annotations

from math import prod
from typing import Any

__all__ = ["Shapes", "coefficients", "pack", "unpack"]

# The names and shapes of a replica's parameters, in order.
Shapes = tuple[tuple[str, tuple[int, ...]], ...]


def pack(params: Any, shapes: Shapes, *, xp: Any) -> dict[str, Any]:
    """Vectors (..., size) that hold the arrays (..., shape), small ones end to end."""
    homes: dict[str, list[Any]] = {}
    for name, shape in shapes:
        lead = params[name].shape[: params[name].ndim - len(shape)]
        homes.setdefault(_home(name, shape), []).append(params[name].reshape(*lead, -1))
    return {home: xp.concatenate(parts, axis=-1) for home, parts in homes.items()}


def unpack(packed: Any, shapes: Shapes) -> dict[str, Any]:
    """The arrays (..., shape) in the vectors of `pack`."""
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
    """Which vectors of `pack` are penalised and decayed: those of matrices, not those of biases."""
    return {_home(name, shape): len(shape) > 1 for name, shape in shapes}
