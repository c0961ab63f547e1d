"""What a network minimises, row by row, as a function of its outputs."""

from __future__ import annotations

from typing import Any

__all__ = ["LOSSES", "row_loss"]

LOSSES = ("log", "softmax", "squared")


def row_loss(name: str, outputs: Any, y: Any, *, xp: Any) -> Any:
    """The loss (n,) of outputs (n, k) against y.

    ========= ======================================== ==================================
    name      y                                        loss
    ========= ======================================== ==================================
    "log"     0 or 1, (n, k): binary and multi-label   cross-entropy, summed over labels
    "softmax" the number of the class, (n, 1)          cross-entropy
    "squared" (n, k)                                   half the squared error, summed
    ========= ======================================== ==================================
    """
    if name == "log":
        # log(1 + exp(z)), written so that it never overflows.
        softplus = xp.maximum(outputs, 0.0) + xp.log1p(xp.exp(-xp.abs(outputs)))
        return xp.sum(softplus - y * outputs, axis=-1)
    if name == "softmax":
        top = xp.max(outputs, axis=-1, keepdims=True)
        total = xp.log(xp.sum(xp.exp(outputs - top), axis=-1)) + top[..., 0]
        # Comparing with every class is dearer than indexing, but its gradient needs no scatter.
        chosen = xp.arange(outputs.shape[-1]) == y
        return total - xp.sum(xp.where(chosen, outputs, 0.0), axis=-1)
    if name == "squared":
        return 0.5 * xp.sum((outputs - y) ** 2, axis=-1)
    raise ValueError(f"`loss` must be one of {LOSSES}. Received: loss={name!r}")
