"""Memory that JAX takes over instead of copying it."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

__all__ = ["aligned"]


def aligned(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """An empty array that JAX need not copy: it starts at a multiple of 64 bytes."""
    size = prod(shape) * np.dtype(dtype).itemsize
    memory = np.empty(size + 64, np.uint8)
    start = -int(memory.__array_interface__["data"][0]) % 64
    out: np.ndarray = memory[start : start + size].view(dtype).reshape(shape)
    return out
