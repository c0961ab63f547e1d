"""Activation functions, in NumPy spelling.

Each takes an array and its namespace (NumPy or jax.numpy). A new one is one entry of `ACTIVATIONS`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["ACTIVATIONS", "logistic"]


def logistic(h: Any, xp: Any) -> Any:
    """Compute 1 / (1 + exp(-h)) without overflow.

    Parameters
    ----------
    h : array
        Any numbers.
    xp : module
        NumPy or jax.numpy.

    Returns
    -------
    array
        Numbers between 0 and 1.
    """
    return 0.5 * xp.tanh(0.5 * h) + 0.5


def _gelu(h: Any, xp: Any) -> Any:
    return 0.5 * h * (1.0 + xp.tanh(0.7978845608028654 * (h + 0.044715 * h * h * h)))


ACTIVATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "identity": lambda h, xp: h,
    "logistic": logistic,
    "tanh": lambda h, xp: xp.tanh(h),
    # JAX halves the gradient of `maximum` at a tie, where scikit-learn and other frameworks take 0,
    # and empty rows start at a tie.
    "relu": lambda h, xp: np.maximum(h, 0) if xp is np else h * (h > 0),
    "gelu": _gelu,
    "silu": lambda h, xp: h * logistic(h, xp),
}
