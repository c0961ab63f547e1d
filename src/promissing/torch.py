"""NaN-native layers for PyTorch."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from promissing import _formula

try:
    import torch
except ModuleNotFoundError as error:
    raise ImportError("promissing.torch needs PyTorch: pip install 'promissing[torch]'") from error

from torch import Tensor, nn

__all__ = ["NanDropout", "NanLinear"]

_LAYOUT = ("column_shares", "feature_shares", "membership")


class NanLinear(nn.Module):
    """A linear layer for inputs with missing values, in place of `nn.Linear`.

    A missing value (NaN) adds nothing to a neuron, and the bias is multiplied by the known share
    of the row. A complete row gives the output of `nn.Linear`, up to rounding. A row without known
    values gives zero, or the compensation.

    Parameters
    ----------
    in_features : int
        The number of columns.
    out_features : int
        The number of neurons.
    bias : bool, default=True
        Whether the layer has a bias, as in `nn.Linear`.
    compensation : {"none", "shared", "feature"}, default="none"
        What the layer adds for missing values:

        - "none" adds nothing: PROMISSING, Eq. 3 of the paper.
        - "shared" adds one learned weight per neuron, times the missing share of the row:
          mPROMISSING, Eq. 5.
        - "feature" adds one learned weight per neuron for every missing feature.
    groups : sequence of int, optional
        The feature each column belongs to, for columns that together encode one feature.
    shares : sequence of float, optional
        Each feature's share of a neuron; equal by default.
    device : device, optional
        The device of the parameters, as in `nn.Linear`.
    dtype : dtype, optional
        The dtype of the parameters, as in `nn.Linear`.

    Attributes
    ----------
    weight : Parameter (out_features, in_features)
        The weights of the columns.
    bias : Parameter (out_features,) or None
        None if `bias=False`.
    compensation_weight : Parameter (out_features,) or (n_features, out_features), or None
        The shared compensation or the compensation per feature; None without compensation.

    Warns
    -----
    UserWarning
        Once, in training mode, if every value of a batch of two or more rows is NaN. The usual
        cause is a normalising layer before this one, which turns whole columns into NaN.

    Notes
    -----
    A `state_dict` of `nn.Linear` can be loaded; the compensation then keeps its current value. The
    layer can be compiled, exported (also to ONNX) and traced by `torch.fx`.

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
    _watches = True  # Until the warning about a batch without known values has been given.

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
            if not _formula.is_count(size):
                raise ValueError(f"{name} must be a positive integer, but got {size!r}")
        self.in_features = in_features = int(in_features)
        self.out_features = out_features = int(out_features)
        rule = _formula.get_compensation(compensation)
        self.compensation = rule.name
        self._layout = _formula.Layout(in_features, groups, shares).arrays(
            np, per_feature=rule.per_feature
        )
        factory = {"device": device, "dtype": dtype}
        self.weight = nn.Parameter(torch.empty((out_features, in_features), **factory))
        self.register_parameter(
            "bias", nn.Parameter(torch.empty(out_features, **factory)) if bias else None
        )
        shape = rule.weight_shape(self._layout.n_features, out_features)
        self.register_parameter(
            "compensation_weight",
            None if shape is None else nn.Parameter(torch.empty(shape, **factory)),
        )
        # The module is the layout that `_formula` takes. The arrays are buffers, which move with
        # the module and are never saved.
        self.n_columns = in_features
        for name in _LAYOUT:
            self.register_buffer(name, None, persistent=False)
        self._fill_layout()
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new initial values for the parameters.

        Weight and bias are drawn as in `nn.Linear`. A shared compensation is drawn like one more
        column of the weight. A compensation per feature starts at zero.

        Examples
        --------
        >>> import torch
        >>> from promissing.torch import NanLinear
        >>> layer = NanLinear(3, 4, compensation="feature")
        >>> layer.reset_parameters()
        >>> layer.compensation_weight.abs().max().item()
        0.0
        """
        nn.Linear.reset_parameters(self)  # type: ignore[arg-type]
        if self.compensation_weight is None:
            return
        if _formula.COMPENSATIONS[self.compensation].starts_as_kernel_row:
            bound = 1 / math.sqrt(self.in_features + 1)
            nn.init.uniform_(self.compensation_weight, -bound, bound)
        else:
            nn.init.zeros_(self.compensation_weight)

    @classmethod
    def from_linear(
        cls,
        linear: nn.Linear,
        *,
        compensation: str = "none",
        groups: Sequence[int] | None = None,
        shares: Sequence[float] | None = None,
    ) -> Self:
        """Make a layer with the weights of a plain one and a compensation of zero.

        Parameters
        ----------
        linear : nn.Linear
            The layer to copy. Frozen parameters stay frozen.
        compensation : {"none", "shared", "feature"}, default="none"
            What the layer adds for missing values.
        groups : sequence of int, optional
            The feature each column belongs to.
        shares : sequence of float, optional
            Each feature's share of a neuron; equal by default.

        Returns
        -------
        NanLinear
            The new layer, on the same device and with the same dtype.

        Examples
        --------
        >>> import torch
        >>> from promissing.torch import NanLinear
        >>> NanLinear.from_linear(torch.nn.Linear(3, 4), compensation="shared")
        NanLinear(in_features=3, out_features=4, bias=True, compensation='shared')
        """
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
        """Compute the activations.

        Parameters
        ----------
        input : Tensor (..., in_features)
            Floating point numbers, NaN where a value is missing.

        Returns
        -------
        Tensor (..., out_features)
            The activations.

        Warns
        -----
        UserWarning
            Once, in training mode, if every value of a batch of two or more rows is NaN.

        Examples
        --------
        >>> import torch
        >>> from promissing.torch import NanLinear
        >>> NanLinear(3, 4)(torch.tensor([[1.0, torch.nan, 2.0]])).shape
        torch.Size([1, 4])
        """
        layout: Any = self
        # A trace of torch.fx has no shapes to check, one of torch.jit would warn about the check.
        if not (isinstance(input, torch.fx.Proxy) or torch.jit.is_tracing()):  # type: ignore[attr-defined, no-untyped-call]
            self._check(input)
            if not self._layout_fits():
                layout = self._layout.map(self._tensor)
        rule = _formula.COMPENSATIONS[self.compensation]
        pruned = _formula.prune(input, layout, rule, xp=torch, cast=lambda a: a.to(input.dtype))
        # ONNX has neither `mT` nor, in `prune`, a product of bool and float.
        kernel = _formula.fold(
            self.weight.t(), self.bias, self.compensation_weight, layout, rule, xp=torch
        )
        # `linear` fuses the bias into the product, which `matmul` and `+` do not.
        return nn.functional.linear(pruned, kernel.t(), self.bias)

    def _check(self, input: Tensor) -> None:
        """Raise if the input does not fit the layer."""
        if not input.is_floating_point():
            raise ValueError(f"expected an input of floating point numbers, but got {input.dtype}")
        if input.layout != torch.strided:
            raise ValueError(f"expected a dense input, but got {input.layout}; use to_dense()")
        if input.ndim == 0 or input.shape[-1] != self.in_features:
            raise ValueError(
                f"expected an input with {self.in_features} features in its last dimension, "
                f"but got {tuple(input.shape)}"
            )
        if self.training and not torch.compiler.is_compiling():
            self._warn_if_all_missing(input)

    def _warn_if_all_missing(self, input: Tensor) -> None:
        """Warn, once, if every value of a batch is NaN.

        On an accelerator only the first batch is checked, because reading values would delay every
        step. Values cannot be read within `vmap` or from fake tensors.
        """
        if not self._watches or input.is_meta or input.shape[:-1].numel() < 2:
            return
        if not input.is_cpu:
            if input.is_cuda and torch.cuda.is_current_stream_capturing():
                return
            self._watches = False
        first = input.detach()[(0,) * (input.ndim - 1)]
        try:
            # The first value decides for nearly every batch, and costs microseconds.
            all_missing = (
                math.isnan(first[0]) and bool(first.isnan().all()) and bool(input.isnan().all())
            )
        except RuntimeError:
            return
        if all_missing:
            self._watches = False
            message = _formula.all_missing_message(
                "NanLinear", input.shape, "BatchNorm1d and LayerNorm"
            )
            warnings.warn(message, UserWarning, stacklevel=2)

    def _layout_fits(self) -> bool:
        """Return whether the buffers have the device and the dtype of the weights.

        They differ if `torch.func.functional_call` replaces the parameters.
        """
        return all(
            value is None or (value.device, value.dtype) == (self.weight.device, self.weight.dtype)
            for value in (getattr(self, name) for name in _LAYOUT)
        )

    def _tensor(self, value: Any) -> Tensor:
        """Convert an array of the layout to the dtype and device of the weights."""
        return torch.tensor(value, dtype=self.weight.dtype, device=self.weight.device)

    def _fill_layout(self) -> None:
        """Set the buffers again: a move may have rounded them, `to_empty` leaves them undefined."""
        for name in _LAYOUT:
            value = getattr(self._layout, name)
            if value is not None:
                self._buffers[name] = self._tensor(value)

    def _apply(self, fn: Any, recurse: bool = True) -> Self:
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        self._fill_layout()
        return self

    def neutralizers(self) -> np.ndarray:
        """Compute the value that each neuron sees in a gap (Eq. 4 of the paper).

        Returns
        -------
        ndarray (out_features, in_features)
            The neutralizers. A weight of zero gives inf or NaN.

        Examples
        --------
        >>> from promissing.torch import NanLinear
        >>> NanLinear(3, 4).neutralizers().shape
        (4, 3)
        """
        kernel, bias, weight = (
            None if w is None else w.detach().cpu().double().numpy()
            for w in (self.weight.mT, self.bias, self.compensation_weight)
        )
        rule = _formula.COMPENSATIONS[self.compensation]
        return np.asarray(_formula.neutralizers(kernel, bias, weight, self._layout, rule, xp=np))

    def extra_repr(self) -> str:
        """Return the arguments for the `repr` of the layer.

        Returns
        -------
        str
            The arguments, separated by commas.

        Examples
        --------
        >>> from promissing.torch import NanLinear
        >>> NanLinear(3, 4).extra_repr()
        "in_features=3, out_features=4, bias=True, compensation='none'"
        """
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
    """Dropout for inputs with missing values: it replaces known values by NaN while training.

    Ordinary dropout before a NaN-native layer would make zeros, which count as known. This layer
    makes missing values. It does not rescale the other values, because the next layer scales its
    bias by the known share of the row.

    Parameters
    ----------
    p : float, default=0.5
        Probability that a value, or a whole group of columns, becomes NaN.
    groups : sequence of int, optional
        The group each column belongs to. The columns of a group are dropped together.

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
            self._layout = _formula.Layout(len(groups), groups)
            self.groups = [int(g) for g in groups]

    def forward(self, input: Tensor) -> Tensor:
        """Replace values by NaN in training mode.

        Parameters
        ----------
        input : Tensor (..., n_columns)
            Floating point numbers, NaN where a value is missing.

        Returns
        -------
        Tensor (..., n_columns)
            The input with some values replaced by NaN; in evaluation mode the input itself.

        Examples
        --------
        >>> import torch
        >>> from promissing.torch import NanDropout
        >>> NanDropout(0.0)(torch.ones(2))
        tensor([1., 1.])
        """
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
        """Return the arguments for the `repr` of the layer.

        Returns
        -------
        str
            The arguments, separated by commas.

        Examples
        --------
        >>> from promissing.torch import NanDropout
        >>> NanDropout(0.2, groups=[0, 0, 1]).extra_repr()
        'p=0.2, groups=[0, 0, 1]'
        """
        return f"p={self.p}" + ("" if self.groups is None else f", groups={self.groups}")
