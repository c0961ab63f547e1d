"""The NaN-native layer as pure functions on a NamedTuple of arrays, for JAX."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from promissing import _core

__all__ = ["NanDenseParams", "apply", "init", "neutralizers"]


class NanDenseParams(NamedTuple):
    """The weights of s neurons over p columns.

    The rank of `compensation_weight` says which member of the family this is: None for "none",
    (s,) for "shared", (F, s) for "feature".
    """

    kernel: jax.Array
    bias: jax.Array
    compensation_weight: jax.Array | None


def init(
    key: jax.Array,
    in_features: int,
    units: int,
    *,
    compensation: str = "none",
    groups: Sequence[int] | None = None,
    dtype: Any = None,
) -> NanDenseParams:
    """Draw the weights of a layer: Glorot uniform kernel, zero bias.

    A shared compensation starts as one more row of the kernel, as in the paper; a compensation
    per feature starts at zero.

    Parameters
    ----------
    key : jax.Array
        A key of `jax.random.key`.
    in_features : int
        p, the number of columns.
    units : int
        s, the number of neurons.
    compensation : {"none", "shared", "feature"}, default="none"
        "none" is PROMISSING (Eq. 3), "shared" is mPROMISSING (Eq. 5), "feature" learns one weight
        per missing feature and neuron.
    groups : sequence of int, optional
        The feature each column belongs to; here it only decides the rows of V.
    dtype : optional
        JAX's default float if not given.

    Examples
    --------
    >>> import jax, jax.numpy as jnp
    >>> from promissing.jax import apply, init
    >>> params = init(jax.random.key(0), 3, 2, compensation="shared")
    >>> bool((apply(params, jnp.full(3, jnp.nan)) == params.compensation_weight).all())
    True
    """
    _core.check_compensation(compensation)
    for name, size in (("in_features", in_features), ("units", units)):
        if not _core.is_count(size):
            raise ValueError(f"`{name}` must be a positive integer. Received: {name}={size!r}")
    layout = _core.Layout(in_features, groups)
    draw = jax.nn.initializers.glorot_uniform()
    kernel_key, compensation_key = jax.random.split(key)
    kernel = draw(kernel_key, (in_features, units), dtype)
    weight = None
    if compensation == "shared":
        weight = draw(compensation_key, (in_features + 1, units), dtype)[-1]
    elif compensation == "feature":
        weight = jnp.zeros((layout.n_features, units), kernel.dtype)
    return NanDenseParams(kernel, jnp.zeros(units, kernel.dtype), weight)


def apply(
    params: NanDenseParams,
    x: ArrayLike,
    *,
    groups: Sequence[int] | None = None,
    shares: Sequence[float] | None = None,
) -> jax.Array:
    """The activations (..., s) for x of shape (..., p), NaN where a value is missing.

    `groups` (column -> feature) and `shares` (one per feature) are Python values, fixed while
    tracing. Works under `jit`, `vmap`, `grad` and `scan`.
    """
    x = jnp.asarray(x, params.kernel.dtype)
    layout = _layout(params, groups, shares, x.shape[-1] if x.ndim else 0)
    per_feature = _core.is_per_feature(params.compensation_weight)
    layout = layout.arrays(np, per_feature=per_feature).map(lambda a: jnp.asarray(a, x.dtype))
    out: jax.Array = _core.activation(x, *params, layout, xp=jnp)
    return out


def neutralizers(
    params: NanDenseParams,
    *,
    groups: Sequence[int] | None = None,
    shares: Sequence[float] | None = None,
) -> np.ndarray:
    """U (s, p) in NumPy: what each neuron sees in the place of a missing value (Eq. 4)."""
    kernel, bias, weight = (None if w is None else np.asarray(w, float) for w in params)
    layout = _layout(params, groups, shares, params.kernel.shape[0])
    layout = layout.arrays(np, per_feature=_core.is_per_feature(weight))
    return np.asarray(_core.neutralizers(kernel, bias, weight, layout, xp=np))


def _layout(
    params: NanDenseParams,
    groups: Sequence[int] | None,
    shares: Sequence[float] | None,
    n_columns: int,
) -> _core.Layout:
    expected = params.kernel.shape[0]
    if n_columns != expected:
        raise ValueError(
            f"The last axis of `x` must have {expected} columns, as the kernel. "
            f"Received: {n_columns}."
        )
    layout = _core.Layout(expected, groups, shares)
    weight = params.compensation_weight
    rows = layout.n_features if weight is None or weight.ndim == 1 else weight.shape[0]
    if rows != layout.n_features:
        raise ValueError(
            f"`groups` make {layout.n_features} features, but `compensation_weight` has "
            f"{rows} rows. Pass the same `groups` to `init` and `apply`."
        )
    return layout
