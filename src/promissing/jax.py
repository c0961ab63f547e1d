"""The NaN-native layer for JAX: pure functions on a dict of arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NotRequired, TypedDict

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from promissing import _formula

__all__ = ["NanDenseParams", "apply", "init", "neutralizers"]


class NanDenseParams(TypedDict):
    """The weights of s neurons over p columns, as a plain dict of arrays.

    Optimisers that choose parameters by name, such as those of `optax.multi_transform`, expect a
    plain dict; flax and equinox take one, too.

    Attributes
    ----------
    kernel : array (p, s)
        The weights of the columns.
    bias : array (s,)
        The bias of each neuron.
    compensation_weight : array (s,) or (F, s)
        (s,) for the shared compensation and (F, s) for the compensation per feature. The key is
        absent without compensation.

    Examples
    --------
    >>> import jax, optax
    >>> from promissing.jax import init
    >>> params = init(jax.random.key(0), 3, 2, compensation="shared")
    >>> {name: weight.shape for name, weight in params.items()}
    {'kernel': (3, 2), 'bias': (2,), 'compensation_weight': (2,)}
    >>> optimizer = optax.multi_transform(
    ...     {"decay": optax.adamw(1e-3), "plain": optax.adam(1e-3)},
    ...     {"kernel": "decay", "bias": "plain", "compensation_weight": "plain"},
    ... )
    >>> state = optimizer.init(params)
    """

    kernel: jax.Array
    bias: jax.Array
    compensation_weight: NotRequired[jax.Array]


def init(
    key: jax.Array,
    in_features: int,
    units: int,
    *,
    compensation: str = "none",
    groups: Sequence[int] | None = None,
    dtype: Any = None,
) -> NanDenseParams:
    """Draw the initial weights of a layer.

    The kernel is Glorot uniform and the bias is zero. A shared compensation is drawn like one more
    row of the kernel, as in the paper. A compensation per feature starts at zero.

    Parameters
    ----------
    key : jax.Array
        A key of `jax.random.key`.
    in_features : int
        p, the number of columns.
    units : int
        s, the number of neurons.
    compensation : {"none", "shared", "feature"}, default="none"
        What the layer adds for missing values:

        - "none" adds nothing: PROMISSING, Eq. 3 of the paper.
        - "shared" adds one learned weight per neuron, times the missing share of the row:
          mPROMISSING, Eq. 5.
        - "feature" adds one learned weight per neuron for every missing feature.
    groups : sequence of int, optional
        The feature each column belongs to, for columns that together encode one feature. Here it
        only decides the number of rows of a compensation per feature.
    dtype : dtype, optional
        The dtype of the weights. By default the default float of JAX.

    Returns
    -------
    NanDenseParams
        The weights: `kernel`, `bias` and, with a compensation, `compensation_weight`.

    Examples
    --------
    >>> import jax, jax.numpy as jnp
    >>> from promissing.jax import apply, init
    >>> params = init(jax.random.key(0), 3, 2, compensation="shared")
    >>> bool((apply(params, jnp.full(3, jnp.nan)) == params["compensation_weight"]).all())
    True
    """
    rule = _formula.get_compensation(compensation)
    for name, size in (("in_features", in_features), ("units", units)):
        if not _formula.is_count(size):
            raise ValueError(f"`{name}` must be a positive integer. Received: {name}={size!r}")
    n_features = _formula.Layout(in_features, groups).n_features
    draw = jax.nn.initializers.glorot_uniform()
    kernel_key, compensation_key = jax.random.split(key)
    kernel = draw(kernel_key, (in_features, units), dtype)
    params = NanDenseParams(kernel=kernel, bias=jnp.zeros(units, kernel.dtype))
    shape = rule.weight_shape(n_features, units)
    if rule.starts_as_kernel_row:
        params["compensation_weight"] = draw(compensation_key, (in_features + 1, units), dtype)[-1]
    elif shape is not None:
        params["compensation_weight"] = jnp.zeros(shape, kernel.dtype)
    return params


def apply(
    params: NanDenseParams,
    x: ArrayLike,
    *,
    groups: Sequence[int] | None = None,
    shares: Sequence[float] | None = None,
) -> jax.Array:
    """Compute the activations of a layer.

    The function works under `jit`, `vmap`, `grad` and `scan`.

    Parameters
    ----------
    params : NanDenseParams
        The weights, as given by `init`.
    x : array (..., p)
        The input, NaN where a value is missing.
    groups : sequence of int, optional
        The feature each column belongs to, as given to `init`. A Python value, fixed while
        tracing.
    shares : sequence of float, optional
        Each feature's share of a neuron; equal by default. A Python value, fixed while tracing.

    Returns
    -------
    jax.Array (..., s)
        The activations.

    Examples
    --------
    >>> import jax, jax.numpy as jnp
    >>> from promissing.jax import apply, init
    >>> params = init(jax.random.key(0), 3, 2)
    >>> jax.jit(apply)(params, jnp.full((1, 3), jnp.nan)).tolist()
    [[0.0, 0.0]]
    """
    kernel, bias, weight = _weights(params)
    x = jnp.asarray(x, kernel.dtype)
    n_columns = x.shape[-1] if x.ndim else 0
    if n_columns != kernel.shape[0]:
        raise ValueError(
            f"The last axis of `x` must have {kernel.shape[0]} columns, as the kernel. "
            f"Received: {n_columns}."
        )
    layout, compensation = _rule(params, groups, shares)
    layout = layout.map(lambda a: jnp.asarray(a, x.dtype))
    out: jax.Array = _formula.activation(x, kernel, bias, weight, layout, compensation, xp=jnp)
    return out


def neutralizers(
    params: NanDenseParams,
    *,
    groups: Sequence[int] | None = None,
    shares: Sequence[float] | None = None,
) -> np.ndarray:
    """Compute the value that each neuron sees in a gap (Eq. 4 of the paper).

    Parameters
    ----------
    params : NanDenseParams
        The weights, as given by `init`.
    groups : sequence of int, optional
        The feature each column belongs to, as given to `init`.
    shares : sequence of float, optional
        Each feature's share of a neuron; equal by default.

    Returns
    -------
    ndarray (s, p)
        The neutralizers. A weight of zero gives inf or NaN.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from promissing.jax import neutralizers
    >>> neutralizers({"kernel": jnp.full((2, 1), 0.5), "bias": jnp.ones(1)}).tolist()
    [[-1.0, -1.0]]
    """
    kernel, bias, weight = (None if w is None else np.asarray(w, float) for w in _weights(params))
    layout, compensation = _rule(params, groups, shares)
    return np.asarray(_formula.neutralizers(kernel, bias, weight, layout, compensation, xp=np))


def _weights(params: NanDenseParams) -> tuple[Any, Any, Any]:
    """Return kernel, bias and compensation weight; the last is None without compensation."""
    return params["kernel"], params["bias"], params.get("compensation_weight")


def _rule(
    params: NanDenseParams, groups: Sequence[int] | None, shares: Sequence[float] | None
) -> tuple[_formula.Layout, _formula.Compensation]:
    """Return the layout of the columns and the compensation that has weights of this shape."""
    p, s = params["kernel"].shape
    layout = _formula.Layout(p, groups, shares)
    weight = params.get("compensation_weight")
    shape = None if weight is None else weight.shape
    for rule in _formula.COMPENSATIONS.values():
        if rule.weight_shape(layout.n_features, s) == shape:
            return layout.arrays(np, per_feature=rule.per_feature), rule
    raise ValueError(
        f"`groups` make {layout.n_features} features, so `compensation_weight` must have the "
        f"shape {(s,)} or {(layout.n_features, s)}. Received: {shape}. Pass the same `groups` to "
        f"`init` and `apply`."
    )
