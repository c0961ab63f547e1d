"""Fitted models as PyTorch modules."""

from __future__ import annotations

from typing import Any

import numpy as np

from promissing.export.parts import Dense, Head, Layer, Member, Parts, take_apart
from promissing.torch import NanLinear

# The import of promissing.torch says how to install PyTorch if it is not there.
import torch  # isort: skip
from torch import Tensor, nn  # isort: skip

__all__ = ["Ensemble", "Network", "build"]

_ACTIVATIONS: dict[str, Any] = {
    "identity": nn.Identity,
    "logistic": nn.Sigmoid,
    "tanh": nn.Tanh,
    "relu": nn.ReLU,
    "gelu": lambda: nn.GELU("tanh"),
    "silu": nn.SiLU,
}


def build(model: Any) -> Ensemble:
    """Return a fitted model as a module; see `promissing.export.to_torch`.

    Parameters
    ----------
    model : NanEstimator
        The fitted model.

    Returns
    -------
    Ensemble
        The module.
    """
    return Ensemble(take_apart(model)).eval()


class Network(nn.Module):
    """One network of an ensemble: encoded rows become logits or standardised numbers.

    Parameters
    ----------
    member : Member
        Its layers.
    parts : Parts
        The model.
    """

    def __init__(self, member: Member, parts: Parts) -> None:
        super().__init__()
        self.first = nn.ModuleList([_nan_linear(layer) for layer in member.first])
        self.decisions = nn.ModuleList([_linear(dense) for dense in member.decisions])
        self.others = nn.ModuleList([_linear(dense) for dense in member.others])
        self.skip = None if member.skip is None else _nan_linear(member.skip)
        self.activation = _ACTIVATIONS[parts.activation]()
        self.dropout = nn.Dropout(parts.dropout)
        self._columns = [torch.as_tensor(layer.columns) for layer in member.first]
        self._all = len(member.first) == 1 and len(member.first[0].columns) == parts.n_columns
        self._kind = parts.head.kind

    def forward(self, x: Tensor) -> Tensor:
        """Return the outputs (n, k) of the network.

        Parameters
        ----------
        x : Tensor (n, q)
            Encoded rows, NaN where missing.

        Returns
        -------
        Tensor (n, k)
            Outputs.
        """
        sums = [
            layer(x if self._all else x[:, columns.to(x.device)])
            for layer, columns in zip(self.first, self._columns, strict=True)
        ]
        if not self.others:
            h = sums[0]
        else:
            parts = [self.activation(one) for one in sums]
            h = torch.cat(parts, dim=-1)
            if len(self.decisions):
                decided = [
                    self._probabilities(decide(self.dropout(part)))
                    for decide, part in zip(self.decisions, parts, strict=True)
                ]
                h = torch.cat([h, *decided], dim=-1)
            for i, layer in enumerate(self.others):
                h = layer(self.dropout(self.activation(h) if i else h))
        found: Tensor = h if self.skip is None else h + self.skip(x)
        return found

    def _probabilities(self, outputs: Tensor) -> Tensor:
        """Return what the fusion layer sees of the decision of a modality."""
        if self._kind == "softmax":
            return torch.softmax(outputs, dim=-1)
        return torch.sigmoid(outputs) if self._kind in ("two classes", "labels") else outputs


class Ensemble(nn.Module):
    """A fitted model: encoded rows become probabilities or numbers, the mean of the members.

    Parameters
    ----------
    parts : Parts
        The model.
    """

    offset: Tensor | None
    watched: Tensor
    scale: Tensor
    mean: Tensor

    def __init__(self, parts: Parts) -> None:
        super().__init__()
        self.members = nn.ModuleList([Network(member, parts) for member in parts.members])
        offset = None if parts.offset is None else torch.as_tensor(parts.offset).float()
        self.register_buffer("offset", offset)
        self.register_buffer("watched", torch.as_tensor(parts.watched))
        self._power, self._head, self._flat = parts.power, parts.head, parts.flat
        for name in ("scale", "mean"):
            value = getattr(parts.head, name)
            self.register_buffer(name, None if value is None else torch.as_tensor(value))

    def outputs(self, x: Tensor) -> Tensor:
        """Return the outputs (M, n, k) of all members, corrected to the prior.

        Parameters
        ----------
        x : Tensor (n, q)
            Encoded rows, NaN where missing.

        Returns
        -------
        Tensor (M, n, k)
            Logits or standardised numbers.
        """
        out = torch.stack([member(x) for member in self.members])
        if self.offset is None:
            return out
        absent = torch.isnan(x[:, self.watched])
        share = absent.to(x.dtype).mean(dim=1) if len(self.watched) else torch.ones_like(x[:, 0])
        return out + share[:, None] ** self._power * self.offset[:, None]

    def forward(self, x: Tensor) -> Tensor:
        """Return probabilities (n, K), or predicted numbers (n,) or (n, k).

        Parameters
        ----------
        x : Tensor (n, q)
            Encoded rows, NaN where missing.

        Returns
        -------
        Tensor
            Predictions.
        """
        found = self._decode(self.outputs(x), self._head).mean(dim=0)
        return found[:, 0] if self._flat else found

    def _decode(self, out: Tensor, head: Head) -> Tensor:
        if head.kind == "softmax":
            return torch.softmax(out, dim=-1)
        if head.kind in ("labels", "two classes"):
            p = torch.sigmoid(out)
            return p if head.kind == "labels" else torch.cat([1 - p, p], dim=-1)
        if head.kind == "exp":
            return torch.exp(torch.clamp(out, max=80.0)) * self.scale
        values = out.reshape(*out.shape[:-1], -1, head.step)
        if head.kind == "affine":
            return values[..., 0] * self.scale + self.mean
        ordered = torch.sort(values * self.scale[:, None] + self.mean[:, None], dim=-1).values
        low, high = ordered[..., head.low], ordered[..., head.high]
        return low + head.place * (high - low)


def _linear(dense: Dense) -> nn.Linear:
    kernel, bias = dense
    made = nn.Linear(*kernel.shape)
    with torch.no_grad():
        made.weight.copy_(torch.as_tensor(kernel.T.copy()))
        made.bias.copy_(torch.as_tensor(bias))
    return made


def _nan_linear(layer: Layer) -> NanLinear:
    fan_in, fan_out = layer.kernel.shape
    made = NanLinear(
        fan_in,
        fan_out,
        layer.bias is not None,
        compensation=layer.compensation,
        groups=layer.groups,
    )
    with torch.no_grad():
        made.weight.copy_(torch.as_tensor(np.ascontiguousarray(layer.kernel.T)))
        if made.bias is not None:
            made.bias.copy_(torch.as_tensor(layer.bias))
        if made.compensation_weight is not None:
            made.compensation_weight.copy_(torch.as_tensor(layer.compensation_weight))
    return made
