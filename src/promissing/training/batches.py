"""Tables and batches in shapes that programs share.

A program is compiled for fixed shapes. Tables are therefore padded to a few sizes, and batches are
filled up with row -1, which has weight zero, so that folds that differ by a row or two share a
program.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from promissing.encoding.table_encoder import aligned

__all__ = ["Batches", "bucket", "long_enough", "stacked"]

# Tables longer than this are not padded: compiling anew is cheaper than another copy.
LONG = 100_000

_sizes: set[int] = set()


def bucket(n: int) -> int:
    """Return the next of eight sizes per octave, with room for two per cent more."""
    step = 1 << max(0, n.bit_length() - 4)
    return -(-(n + n // 50 + 1) // step) * step


def long_enough(n: int) -> int:
    """Return a length to pad to: a similar one that was used before, or else a new one.

    It is only for arrays that the program indexes and does not compute with: results must not
    depend on what was trained before.
    """
    size = min((s for s in sorted(_sizes) if n <= s <= 1.25 * n + 2), default=bucket(n))
    _sizes.add(size)
    return size


class Batches:
    """The rows of R replicas, in batches.

    Parameters
    ----------
    rows : sequence of R arrays of int
        The rows of each replica.
    places : int
        The number of rows in a batch.

    Attributes
    ----------
    shape : tuple of int
        (R, steps, places)
    steps : array of int (R,)
        The number of batches of each replica.
    """

    def __init__(self, rows: Sequence[np.ndarray], places: int) -> None:
        # Replicas often have the same rows, which are stored once.
        kept = {id(mine): np.asarray(mine, np.int32) for mine in rows}
        self.rows = [kept[id(mine)] for mine in rows]
        self.steps = np.array([-(-len(mine) // places) for mine in rows], np.int32)
        self.shape = (len(rows), long_enough(int(self.steps.max())), places)

    def deal(
        self, replicas: Iterable[int], rngs: Sequence[np.random.Generator] | None = None
    ) -> np.ndarray:
        """Return the batches of some replicas, -1 for no row, permuted if `rngs` are given."""
        # A new array each time: JAX may still use the last one.
        dealt = aligned(self.shape, np.int32)
        dealt[...] = -1
        for r in replicas:
            mine = self.rows[r]
            if rngs is not None:
                mine = mine[rngs[r].permutation(len(mine))]
            dealt[r].reshape(-1)[: len(mine)] = mine
        return dealt


def stacked(blocks: Sequence[np.ndarray], axis: int, dtype: Any = np.float32) -> np.ndarray:
    """Return the blocks concatenated along `axis` and padded; a single long block as it is."""
    n = sum(block.shape[axis] for block in blocks)
    if n > LONG and len(blocks) == 1:
        return np.ascontiguousarray(blocks[0], dtype)
    shape = list(blocks[0].shape)
    shape[axis] = n if n > LONG else long_enough(n)
    out = aligned(tuple(shape), dtype)
    whole = np.moveaxis(out, axis, 0)
    np.concatenate([np.moveaxis(block, axis, 0) for block in blocks], out=whole[:n])
    whole[n:] = 0
    return out
