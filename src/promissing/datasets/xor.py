"""The XOR problem of the paper's simulation study."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def make_xor(
    n: int = 1000, *, noise: float = 0.25, random_state: Any = None
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Points around the four corners of the unit square, labelled by the XOR of their corner.

    The paper leaves open how the corners are drawn. Here every corner has n // 4 points, the rest
    of n goes to corners drawn at random without repetition, and the points stand in random order.
    The label belongs to the corner, not to the noisy point, so some points lie on the wrong side.

    Parameters
    ----------
    n : int, default=1000
        How many points.
    noise : float, default=0.25
        The standard deviation of the Gaussian noise around a corner. The paper calls 0.25 the
        variance, with which no classifier could reach the 0.99 AUC it reports for these corners.
    random_state : int, numpy Generator or None, default=None
        None gives other points at every call.

    Returns
    -------
    X : ndarray (n, 2)
    y : ndarray (n,)
        0 or 1.

    Examples
    --------
    >>> from promissing.datasets import make_xor
    >>> X, y = make_xor(4, noise=0, random_state=0)
    >>> [*zip(X.tolist(), y.tolist())]
    [([1.0, 1.0], 0), ([1.0, 0.0], 1), ([0.0, 1.0], 1), ([0.0, 0.0], 0)]
    """
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1:
        raise ValueError(f"`n` must be a whole number of at least 1. Received: {n!r}")
    if not 0 <= noise < np.inf:
        raise ValueError(f"`noise` must be a number of at least 0. Received: {noise!r}")
    rng = np.random.default_rng(random_state)
    corners = np.concatenate([np.tile(np.arange(4), n // 4), rng.permutation(4)[: n % 4]])
    corners = rng.permutation(corners)
    corner = np.column_stack([corners // 2, corners % 2])
    return corner + noise * rng.normal(size=(n, 2)), corner[:, 0] ^ corner[:, 1]
