"""Fitted models as Keras models."""

from __future__ import annotations

from typing import Any

import numpy as np

from promissing.export.parts import Dense, Head, Layer, Member, Parts, take_apart
from promissing.keras import NanDense

# The import of promissing.keras says how to install Keras if it is not there.
import keras  # isort: skip
from keras import ops  # isort: skip

__all__ = ["build"]

_ACTIVATIONS: dict[str, Any] = {
    "identity": "linear",
    "logistic": "sigmoid",
    "tanh": "tanh",
    "relu": "relu",
    "silu": "silu",
}


def build(model: Any) -> Any:
    """Return a fitted model as a functional model; see `promissing.export.to_keras`.

    Parameters
    ----------
    model : NanEstimator
        The fitted model.

    Returns
    -------
    keras.Model
        The model.
    """
    parts = take_apart(model)
    entry = keras.Input((parts.n_columns,), name="encoded")
    share = _missing_share(entry, parts)
    found = []
    for r, member in enumerate(parts.members):
        out = _network(entry, member, parts, f"member{r}")
        if parts.offset is not None:
            out = out + share**parts.power * ops.cast(parts.offset[r : r + 1], "float32")
        found.append(_decode(out, parts.head))
    total = found[0]
    for one in found[1:]:
        total = total + one
    return keras.Model(entry, total / len(found), name="promissing")


def _missing_share(entry: Any, parts: Parts) -> Any:
    """Return the share (n, 1) of features that are missing."""
    absent = ops.cast(ops.isnan(entry), "float32")
    if not len(parts.watched):
        return ops.ones_like(absent[:, :1])
    weights = np.zeros((parts.n_columns, 1), np.float32)
    weights[parts.watched] = 1 / len(parts.watched)
    return ops.matmul(absent, weights)


def _network(entry: Any, member: Member, parts: Parts, name: str) -> Any:
    """Return the outputs (n, k) of one network."""
    sums = [
        _nan_dense(entry, layer, parts.n_columns, f"{name}_first{m}")
        for m, layer in enumerate(member.first)
    ]
    h = sums[0]
    if member.others:
        separate = [_activation(one, parts.activation) for one in sums]
        joined = list(separate)
        for m, (dense, part) in enumerate(zip(member.decisions, separate, strict=False)):
            out = _dense(_dropout(part, parts), dense, f"{name}_decision{m}")
            if parts.head.kind == "softmax":
                out = ops.softmax(out, axis=-1)
            elif parts.head.kind in ("labels", "two classes"):
                out = ops.sigmoid(out)
            joined.append(out)
        h = joined[0] if len(joined) == 1 else ops.concatenate(joined, axis=-1)
        for i, dense in enumerate(member.others):
            h = _activation(h, parts.activation) if i else h
            h = _dense(_dropout(h, parts), dense, f"{name}_{i}")
    if member.skip is None:
        return h
    return h + _nan_dense(entry, member.skip, parts.n_columns, f"{name}_skip")


def _nan_dense(entry: Any, layer: Layer, n_columns: int, name: str) -> Any:
    read = entry
    if len(layer.columns) < n_columns:
        read = ops.take(entry, layer.columns.astype("int32"), axis=1)
    made = NanDense(
        layer.kernel.shape[1],
        use_bias=layer.bias is not None,
        compensation=layer.compensation,
        groups=[int(g) for g in layer.groups],
        name=name,
    )
    out = made(read)
    made.kernel.assign(layer.kernel)
    if layer.bias is not None:
        made.bias.assign(layer.bias)
    if layer.compensation_weight is not None:
        made.compensation_weight.assign(layer.compensation_weight)
    return out


def _dense(h: Any, dense: Dense, name: str) -> Any:
    made = keras.layers.Dense(dense[0].shape[1], name=name)
    out = made(h)
    made.set_weights(list(dense))
    return out


def _dropout(h: Any, parts: Parts) -> Any:
    return keras.layers.Dropout(parts.dropout)(h) if parts.dropout else h


def _activation(h: Any, name: str) -> Any:
    if name == "gelu":
        return ops.gelu(h, approximate=True)
    return keras.layers.Activation(_ACTIVATIONS[name])(h)


def _decode(out: Any, head: Head) -> Any:
    """Return the predictions (n, K) of one network."""
    if head.kind == "softmax":
        return ops.softmax(out, axis=-1)
    if head.kind in ("labels", "two classes"):
        p = ops.sigmoid(out)
        return p if head.kind == "labels" else ops.concatenate([1 - p, p], axis=-1)
    if head.kind == "exp":
        return ops.exp(ops.minimum(out, 80.0)) * head.scale
    values = ops.reshape(out, (-1, out.shape[-1] // head.step, head.step))
    scale, mean = head.scale, head.mean
    if head.kind == "affine":
        return values[..., 0] * scale + mean
    assert scale is not None
    assert mean is not None
    ordered = ops.sort(values * scale[:, None] + mean[:, None], axis=-1)
    low, high = ordered[..., head.low], ordered[..., head.high]
    return low + head.place * (high - low)
