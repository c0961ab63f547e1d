"""A fitted model taken apart into layers, as NumPy arrays, for any framework."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from promissing._validation import warn
from promissing.estimators import recipe
from promissing.estimators.base import NanEstimator
from promissing.networks.base import Params
from promissing.networks.fusion import Fusion
from promissing.networks.losses import (
    ClassLoss,
    CrossEntropy,
    Gaussian,
    LogLoss,
    NumberLoss,
    Pinball,
    Poisson,
)
from promissing.networks.mlp import MLP

__all__ = ["Head", "Layer", "Member", "Parts", "take_apart"]

Array = NDArray[Any]
Dense = tuple[Array, Array]  # Kernel (p, s) and bias (s,).


@dataclass(frozen=True, eq=False)
class Layer:
    """A layer that prunes missing values.

    Parameters
    ----------
    columns : ndarray of int (p,)
        The columns of the encoded rows that it reads.
    kernel : ndarray (p, s)
        Weights.
    bias : ndarray (s,) or None
        Biases.
    compensation : {"none", "shared", "feature"}
        The kind of compensation.
    compensation_weight : ndarray or None
        Its weights.
    groups : list of int (p,)
        The feature of each column.
    """

    columns: Array
    kernel: Array
    bias: Array | None
    compensation: str
    compensation_weight: Array | None
    groups: list[int]


@dataclass(frozen=True, eq=False)
class Member:
    """One network of an ensemble.

    Parameters
    ----------
    first : tuple of Layer
        The layers that read the rows: one, or one for each modality.
    decisions : tuple of Dense
        The decision of each modality; none for a network without modalities.
    others : tuple of Dense
        The following layers. Activations stand between all layers.
    skip : Layer or None
        The linear skip connection.
    """

    first: tuple[Layer, ...]
    decisions: tuple[Dense, ...]
    others: tuple[Dense, ...]
    skip: Layer | None


@dataclass(frozen=True, eq=False)
class Head:
    """How outputs become predictions.

    Parameters
    ----------
    kind : {"two classes", "labels", "softmax", "affine", "exp", "median"}
        Logistic probabilities of two classes or of several labels, softmax, ``scale * o + mean``,
        ``scale * exp(o)``, or the median of quantiles.
    scale, mean : ndarray (k,)
        Of numbers, for each target.
    step : int
        The number of outputs of each target. The first one is the prediction, but for "median".
    low, high, place : int, int and float
        The two quantiles between which the median lies, and where.
    """

    kind: str
    scale: Array | None = None
    mean: Array | None = None
    step: int = 1
    low: int = 0
    high: int = 0
    place: float = 0.0


@dataclass(frozen=True, eq=False)
class Parts:
    """A fitted model in parts.

    Parameters
    ----------
    n_columns, n_outputs : int
        Numbers of encoded columns and of outputs of a network.
    members : list of Member
        The networks.
    activation : str
        The activation between layers.
    dropout : float
        The dropout rate in training.
    offset : ndarray (members, k) or None
        What is added to the outputs for an empty row.
    power : int
        The power of the missing share by which it is multiplied.
    watched : ndarray of int (F,)
        The first column of each feature that counts in the missing share.
    head : Head
        How outputs become predictions.
    flat : bool
        Whether predictions of numbers have the shape (n,).
    """

    n_columns: int
    n_outputs: int
    members: list[Member]
    activation: str
    dropout: float
    offset: Array | None
    power: int
    watched: Array
    head: Head
    flat: bool


def take_apart(model: Any) -> Parts:
    """Return the parts of a fitted model; refuse other models.

    Parameters
    ----------
    model : NanEstimator
        The fitted model.

    Returns
    -------
    Parts
        Its layers.
    """
    if not isinstance(model, NanEstimator):
        steps = [step for _, step in getattr(model, "steps", [])]
        advice = ""
        if steps and isinstance(steps[-1], NanEstimator):
            advice = " Export the last step of the pipeline, and transform rows by the others."
        raise ValueError(
            "`model` must be a NanMLP or NanFusion estimator. Received: "
            f"{type(model).__name__}.{advice}"
        )
    check_is_fitted(model)
    if model.min_known:
        warn(
            f"`min_known={model.min_known:g}` is not exported: the result predicts rows with few "
            "known values, too."
        )
    network, params, loss = model._network, model.params_, model._loss
    count = len(next(iter(params.values())))
    members = []
    for r in range(count):
        own = {name: np.asarray(value[r], np.float32) for name, value in params.items()}
        members.append(_mlp(network, own) if isinstance(network, MLP) else _fusion(network, own))
    encoder = model.encoder_
    counted = encoder.observed_ & network.columns_in_use()[encoder.first_columns_]
    return Parts(
        n_columns=network.n_columns,
        n_outputs=network.n_outputs,
        members=members,
        activation=network.activation,
        dropout=float(model.dropout),
        offset=model.prior_offset_,
        power=recipe.PRIOR_POWER,
        watched=np.asarray(encoder.first_columns_[counted]),
        head=_head(loss),
        flat=isinstance(loss, NumberLoss) and loss.flat,
    )


def _mlp(network: MLP, params: Params) -> Member:
    """Return a network without modalities. Its gates are multiplied into the weights."""
    kernel, bias, weight, _, _ = network.first_layer(params, dtype=np.float32)
    columns = np.arange(network.n_columns)
    groups = [int(g) for g in (columns if network.groups is None else network.groups)]
    first = Layer(columns, kernel, bias, network.compensation, weight, groups)
    others = [
        (params[f"kernel_{i}"], params[f"bias_{i}"]) for i in range(1, len(network.hidden) + 1)
    ]
    skip = None
    if network.linear_skip:
        weight = params.get("skip_compensation_weight")
        skip = Layer(columns, params["skip_kernel"], None, network.compensation, weight, groups)
    return Member((first,), (), tuple(others), skip)


def _fusion(network: Fusion, params: Params) -> Member:
    """Return a network of modalities, with one layer for each."""
    of_column = np.array(network.modalities)
    owners = np.arange(network.n_columns) if network.groups is None else np.array(network.groups)
    ends = np.cumsum(network.units)
    k = network.n_outputs
    first, decisions = [], []
    for m, (end, size) in enumerate(zip(ends, network.units, strict=True)):
        columns, neurons = np.flatnonzero(of_column == m), slice(end - size, end)
        features, groups = np.unique(owners[columns], return_inverse=True)
        weight = params.get("compensation_weight")
        if weight is not None:
            weight = weight[features, neurons] if weight.ndim == 2 else weight[neurons]
        kernel = params["representation_kernel"][columns, neurons]
        bias = params["representation_bias"][neurons]
        layer = (columns, kernel, bias, network.compensation, weight, groups.tolist())
        first.append(Layer(*layer))
        own = slice(m * k, (m + 1) * k)
        decisions.append((params["decision_kernel"][neurons, own], params["decision_bias"][own]))
    others = [(params[f"{name}_kernel"], params[f"{name}_bias"]) for name in ("fusion", "final")]
    return Member(tuple(first), tuple(decisions), tuple(others), None)


def _head(loss: Any) -> Head:
    """Return how outputs become predictions; refuse losses of users."""
    if isinstance(loss, CrossEntropy):
        return Head("softmax")
    if isinstance(loss, LogLoss):
        return Head("labels" if loss.multilabel else "two classes")
    if isinstance(loss, NumberLoss) and not isinstance(loss, ClassLoss):
        scale, mean = np.asarray(loss.scale, np.float32), np.asarray(loss.mean, np.float32)
        step = loss.outputs_per_target
        if isinstance(loss, Pinball):
            place = float(np.interp(0.5, loss.levels, np.arange(step)))
            low = int(place)
            high = min(low + 1, step - 1)
            return Head("median", scale, mean, step, low, high, place - low)
        if isinstance(loss, Poisson):
            return Head("exp", scale, mean, step)
        if step == 1 or isinstance(loss, Gaussian):
            return Head("affine", scale, mean, step)
    raise ValueError(
        f"A model with the loss {type(loss).__name__} cannot be exported: only the losses of "
        "promissing.networks.losses are known."
    )
