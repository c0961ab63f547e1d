"""NaN-native layers for PyTorch."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from promissing import _core

try:
    import torch
except ModuleNotFoundError as error:
    raise ImportError("promissing.torch needs PyTorch: pip install 'promissing[torch]'") from error

from torch import Tensor, nn

__all__ = ["NanDropout", "NanLinear"]

_LAYOUT = ("column_shares", "feature_shares", "membership")


class NanLinear(nn.Module):
    """`nn.Linear` for inputs with holes: NaN is pruned and the bias scaled by what is left.

    A complete row gets what `nn.Linear` gives, to rounding; a row with nothing observed gets zero,
    or the compensation.

    Parameters
    ----------
    in_features, out_features : int
        p columns in, s neurons out.
    bias : bool, default=True
    compensation : {"none", "shared", "feature"}, default="none"
        "none" is PROMISSING (Eq. 3 of the paper); "shared" is mPROMISSING (Eq. 5), one learned
        weight per neuron, times the share missing; "feature" adds one learned weight per neuron
        and missing feature.
    groups : sequence of int, optional
        The feature each column belongs to, for columns that together encode one feature.
    shares : sequence of float, optional
        Each feature's share of a neuron; equal by default.
    device, dtype : optional
        As in `nn.Linear`.

    Attributes
    ----------
    weight : Parameter (out_features, in_features)
    bias : Parameter (out_features,) or None
    compensation_weight : Parameter (out_features,) or (n_features, out_features), or None

    Notes
    -----
    A `state_dict` of `nn.Linear` loads; the compensation then keeps its present value.

    Examples
    --------
    >>> import torch
    >>> from promissing.torch import NanLinear
    >>> layer = NanLinear(3, 4)
    >>> layer(torch.tensor([[torch.nan, torch.nan, torch.nan]])).abs().max().item()
    0.0
    """

    weight: nn.Parameter
    bias: nn.Parameter | None
    compensation_weight: nn.Parameter | None

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        *,
        compensation: str = "none",
        groups: Sequence[int] | None = None,
        shares: Sequence[float] | None = None,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        for name, size in (("in_features", in_features), ("out_features", out_features)):
            if not _core.is_count(size):
                raise ValueError(f"{name} must be a positive integer, but got {size!r}")
        self.in_features = in_features = int(in_features)
        self.out_features = out_features = int(out_features)
        self.compensation = _core.check_compensation(compensation)
        self._layout = _core.Layout(in_features, groups, shares).arrays(
            np, per_feature=compensation == "feature"
        )
        factory = {"device": device, "dtype": dtype}
        self.weight = nn.Parameter(torch.empty((out_features, in_features), **factory))
        self.register_parameter(
            "bias", nn.Parameter(torch.empty(out_features, **factory)) if bias else None
        )
        shape = {
            "none": None,
            "shared": (out_features,),
            "feature": (self._layout.n_features, out_features),
        }[compensation]
        self.register_parameter(
            "compensation_weight",
            None if shape is None else nn.Parameter(torch.empty(shape, **factory)),
        )
        # What `_core` asks of a layout, as buffers that follow the module and are never saved.
        self.n_columns = in_features
        for name in _LAYOUT:
            self.register_buffer(name, None, persistent=False)
        self._fill_layout()
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw weight and bias as `nn.Linear` does.

        The shared compensation starts as one more column of the weight, the one per feature at 0.
        """
        nn.Linear.reset_parameters(self)  # type: ignore[arg-type]
        if self.compensation == "shared":
            bound = 1 / math.sqrt(self.in_features + 1)
            nn.init.uniform_(self.compensation_weight, -bound, bound)  # type: ignore[arg-type]
        elif self.compensation == "feature":
            nn.init.zeros_(self.compensation_weight)  # type: ignore[arg-type]

    @classmethod
    def from_linear(
        cls,
        linear: nn.Linear,
        *,
        compensation: str = "none",
        groups: Sequence[int] | None = None,
        shares: Sequence[float] | None = None,
    ) -> Self:
        """A layer with the weights of `linear`, and a compensation of zero."""
        layer = cls(
            linear.in_features,
            linear.out_features,
            linear.bias is not None,
            compensation=compensation,
            groups=groups,
            shares=shares,
            device=linear.weight.device,
            dtype=linear.weight.dtype,
        )
        layer.load_state_dict(linear.state_dict())
        layer.weight.requires_grad_(linear.weight.requires_grad)
        if layer.bias is not None:
            layer.bias.requires_grad_(linear.bias.requires_grad)
        if layer.compensation_weight is not None:
            nn.init.zeros_(layer.compensation_weight)
        return layer.train(linear.training)

    def forward(self, input: Tensor) -> Tensor:
        """The activations (..., out_features) of an input (..., in_features) with NaN."""
        if not input.is_floating_point():
            raise ValueError(f"expected an input of floating point numbers, but got {input.dtype}")
        if input.ndim == 0 or input.shape[-1] != self.in_features:
            raise ValueError(
                f"expected an input with {self.in_features} features in its last dimension, "
                f"but got {tuple(input.shape)}"
            )
        pruned = _core.prune(input, self, xp=torch, per_feature=self.compensation == "feature")
        # `linear` fuses the bias into the product, which `matmul` and `+` do not.
        kernel = _core.fold(self.weight.mT, self.bias, self.compensation_weight, self, xp=torch)
        return nn.functional.linear(pruned, kernel.mT, self.bias)

    def _fill_layout(self) -> None:
        """Set the buffers anew: moving may have rounded them, `to_empty` leaves them undefined."""
        for name in _LAYOUT:
            value = getattr(self._layout, name)
            if value is not None:
                self._buffers[name] = torch.tensor(
                    value, dtype=self.weight.dtype, device=self.weight.device
                )

    def _apply(self, fn: Any, recurse: bool = True) -> Self:
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        self._fill_layout()
        return self

    def neutralizers(self) -> np.ndarray:
        """U (s, p) in NumPy: what each neuron sees in the place of a missing value (Eq. 4)."""
        kernel, bias, weight = (
            None if w is None else w.detach().cpu().double().numpy()
            for w in (self.weight.mT, self.bias, self.compensation_weight)
        )
        return np.asarray(_core.neutralizers(kernel, bias, weight, self._layout, xp=np))

    def extra_repr(self) -> str:
        text = (
            f"in_features={self.in_features}, out_features={self.out_features}, "
            f"bias={self.bias is not None}, compensation={self.compensation!r}"
        )
        if self._layout.groups is not None:
            text += f", n_features={self._layout.n_features}"
        return text

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *args: Any) -> None:
        name, own = prefix + "compensation_weight", self._parameters.get("compensation_weight")
        has_weight = any(
            key in state_dict
            for key in (prefix + "weight", prefix + "parametrizations.weight.original0")
        )
        if own is not None and name not in state_dict and has_weight:  # A plain nn.Linear's.
            state_dict = {**state_dict, name: own.detach()}
        super()._load_from_state_dict(state_dict, prefix, *args)
        self._fill_layout()


class NanDropout(nn.Module):
    """While training, make observed values unknown with probability `p`.

    Ordinary dropout in front of a NaN-native layer would make observed zeros; this makes gaps, and
    rescales nothing because the layer itself scales its bias by what is left.

    Parameters
    ----------
    p : float, default=0.5
        Probability that a value, or a whole group of columns, becomes NaN.
    groups : sequence of int, optional
        The group each column belongs to; the columns of a group vanish together.

    Examples
    --------
    >>> import torch
    >>> from promissing.torch import NanDropout
    >>> NanDropout(1.0)(torch.ones(2))
    tensor([nan, nan])
    >>> NanDropout(1.0).eval()(torch.ones(2))
    tensor([1., 1.])
    """

    def __init__(self, p: float = 0.5, *, groups: Sequence[int] | None = None) -> None:
        super().__init__()
        if not 0 <= p <= 1:
            raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
        self.p = p
        self.groups = None
        if groups is not None:
            self._layout = _core.Layout(len(groups), groups)
            self.groups = [int(g) for g in groups]

    def forward(self, input: Tensor) -> Tensor:
        """The input, with more NaN in it while training."""
        if not self.training or self.p == 0:
            return input
        if not input.is_floating_point():
            raise ValueError(f"expected an input of floating point numbers, but got {input.dtype}")
        if self.groups is None:
            draw = torch.rand(input.shape, device=input.device)
        else:
            if input.ndim == 0 or input.shape[-1] != len(self.groups):
                raise ValueError(
                    f"expected an input with {len(self.groups)} features, as `groups`, but got "
                    f"{tuple(input.shape)}"
                )
            shape = (*input.shape[:-1], self._layout.n_features)
            draw = torch.rand(shape, device=input.device)[..., self.groups]
        return input.masked_fill(draw < self.p, torch.nan)

    def extra_repr(self) -> str:
        return f"p={self.p}" + ("" if self.groups is None else f", groups={self.groups}")
