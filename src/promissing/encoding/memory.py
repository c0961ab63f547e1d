"""Memory that JAX takes over instead of copying it, and memory that is given back."""

from __future__ import annotations

import ctypes
from math import prod
from typing import Any

import numpy as np

__all__ = ["aligned", "give_back"]


def aligned(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """An empty array that JAX need not copy: it starts at a multiple of 64 bytes."""
    size = prod(shape) * np.dtype(dtype).itemsize
    memory = np.empty(size + 64, np.uint8)
    start = -int(memory.__array_interface__["data"][0]) % 64
    out: np.ndarray = memory[start : start + size].view(dtype).reshape(shape)
    return out


def give_back() -> None:
    """Return to the system what was freed and is kept for later.

    Compiling a program takes some 250 MB, most of which the C library would keep; only glibc has a
    way to ask for it.
    """
    try:
        ctypes.CDLL(None).malloc_trim(0)
    except (AttributeError, OSError, TypeError):  # Another C library, another system.
        return
