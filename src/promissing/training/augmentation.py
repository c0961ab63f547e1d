"""Augmentation: rows lose values during training, so that the network learns to do without them."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from promissing.training.numerics import Uniform

__all__ = ["draw_lost"]


def draw_lost(
    units: tuple[int, ...] | None, law: str, allow_empty: bool, step: Any, mine: Any
) -> Any:
    """Return which columns (B, p) the rows of one batch of one replica lose; None without units."""
    if units is None:
        return None
    n, n_units, owner = mine.batches.shape[-1], max(units) + 1, np.array(units, np.uint32)
    uniform = Uniform(~mine.key, step)  # Other numbers than those of dropout.
    chosen = uniform((n, 1)) < mine.hyper["augment"]
    # The columns of a unit draw the same number. To draw one for each unit and hand it to its
    # columns would take as long as a layer of the network.
    draws = uniform((n, n_units), at=owner)
    u = uniform((n, 1)) if law == "number" else jnp.float32(0.5)
    lost = draws < u
    if not allow_empty and law == "number":
        # One random unit is kept: the number of lost units is 0 to U - 1, equally often.
        lost &= owner != jnp.floor(uniform((n, 1)) * n_units)
    elif not allow_empty:
        # The first unit that is kept: probability one half, a quarter, ..., given that one is.
        first = jnp.floor(-jnp.log2(1 - uniform((n, 1)) * (1 - 2.0**-n_units)))
        first = jnp.minimum(first, n_units - 1)  # Rounding.
        lost = (owner < first) | (lost & (owner > first))
    if (others := mine.hyper.get("augment_others")) is None:
        return chosen & lost
    return jnp.where(chosen, lost, draws < others[owner] * u)
