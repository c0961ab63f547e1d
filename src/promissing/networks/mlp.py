"""A multi-layer perceptron whose first layer prunes what is missing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from promissing import _formula
from promissing.networks.base import Params
from promissing.networks.losses import LOSSES, row_loss

__all__ = ["ACTIVATIONS", "FIXED", "MLP"]

Uniform = Callable[[tuple[int, ...]], Any]

FIXED = ("straight_kernel", "straight_compensation_weight")  # These are not trained.
AJAR = 0.1  # Where the gates of fine columns start.
SURE = 7.0  # How sure, in logits, a new network may be: 1 in 1,000.


def _logistic(h: Any, xp: Any) -> Any:
    return 0.5 * xp.tanh(0.5 * h) + 0.5  # 1 / (1 + exp(-h)) overflows.


def _gelu(h: Any, xp: Any) -> Any:
    return 0.5 * h * (1.0 + xp.tanh(0.7978845608028654 * (h + 0.044715 * h * h * h)))


ACTIVATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "identity": lambda h, xp: h,
    "logistic": _logistic,
    "tanh": lambda h, xp: xp.tanh(h),
    # JAX halves the gradient of `maximum` at a tie where scikit-learn and all others take 0, and
    # empty rows start at one. `where` says the same and is 10 times slower in NumPy.
    "relu": lambda h, xp: h * (h > 0),
    "gelu": _gelu,
    "silu": lambda h, xp: h * _logistic(h, xp),
}


@dataclass(frozen=True)
class MLP:
    """The description of a multi-layer perceptron; its parameters are a dict of arrays.

    Parameters
    ----------
    n_columns, n_outputs : int
        p and k.
    loss_name : {"log", "softmax", "squared"}
        See `promissing.networks.losses`.
    hidden : tuple of int, default=(100,)
        The sizes of the hidden layers; none makes a linear model.
    activation : {"identity", "logistic", "tanh", "relu", "gelu", "silu"}, default="relu"
    compensation : {"none", "shared", "feature"}, default="none"
    groups, shares : tuple, optional
        See `promissing._formula.Layout`. The columns of a feature go missing together.
    gate_rate : float, default=0
        If positive, the weights of every feature are multiplied with its gate: one number, which
        starts at 1 and learns so many times as fast as a weight.
    fine : tuple of p bool, optional
        Columns that have a second gate of their feature instead, which starts at a tenth: they are
        there for what is too fine for the others, and matter once they have proved themselves.
    straight : bool, default=False
        Whether a linear layer of the same kind, without a bias, leads straight from the columns to
        the outputs and adds to them. It is not trained with the rest: see `straighten`.

    Examples
    --------
    >>> import numpy as np
    >>> from promissing.networks.mlp import MLP
    >>> net = MLP(3, 1, "log", hidden=(4,))
    >>> params = net.init(np.random.default_rng(0))
    >>> net.forward(params, np.array([[0.5, np.nan, 1.0]]), xp=np).shape
    (1, 1)
    """

    n_columns: int
    n_outputs: int
    loss_name: str
    hidden: tuple[int, ...] = (100,)
    activation: str = "relu"
    compensation: str = "none"
    groups: tuple[int, ...] | None = None
    shares: tuple[float, ...] | None = None
    gate_rate: float = 0.0
    fine: tuple[bool, ...] | None = None
    straight: bool = False

    def __post_init__(self) -> None:
        _formula.get_compensation(self.compensation)
        for name, allowed in (("activation", tuple(ACTIVATIONS)), ("loss_name", LOSSES)):
            if getattr(self, name) not in allowed:
                raise ValueError(
                    f"`{name}` must be one of {allowed}. Received: {getattr(self, name)!r}"
                )
        if self.fine is not None and len(self.fine) != self.n_columns:
            raise ValueError(
                f"`fine` must have one entry for each of the {self.n_columns} columns. "
                f"Received: {len(self.fine)} entries."
            )

    @property
    def _compensation(self) -> _formula.Compensation:
        return _formula.COMPENSATIONS[self.compensation]

    @cached_property
    def layout(self) -> _formula.Layout:
        """How the columns make up features, in NumPy arrays."""
        return self._layout(np.float64)

    @cached_property
    def _single_layout(self) -> _formula.Layout:
        # JAX with double precision switched on would follow a float64 and leave float32.
        return self._layout(np.float32)

    def _layout(self, dtype: Any) -> _formula.Layout:
        layout = _formula.Layout(self.n_columns, self.groups, self.shares).arrays(np)
        return layout.map(lambda a: a.astype(dtype))

    @cached_property
    def _first_columns(self) -> np.ndarray:
        """The first column of every feature (F,), which is missing where the feature is."""
        owner = range(self.n_columns) if self.groups is None else self.groups
        return np.unique(owner, return_index=True)[1].astype(np.uint32)

    def _absent(self, x: Any, *, xp: Any) -> Any:
        """Which features of x (n, p) are missing (n, F)."""
        return xp.isnan(x if self.groups is None else x[..., self._first_columns])

    @property
    def n_extras(self) -> int:
        """How many columns `prune` adds."""
        return self._compensation.n_extra(self.layout.n_features)

    @cached_property
    def _gates(self) -> tuple[np.ndarray, np.ndarray]:
        """The gate of each column (p,), and where each gate starts."""
        n = self.layout.n_features
        gate_of = np.array(range(self.n_columns) if self.groups is None else self.groups)
        start = np.ones(n)
        if self.fine is not None and any(self.fine):
            gate_of, start = gate_of + n * np.array(self.fine), np.repeat([1.0, AJAR], n)
        return gate_of.astype(np.uint32), start  # Signed, JAX with double precision refuses it.

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shapes of the parameters by name."""
        sizes = (self.n_columns, *self.hidden, self.n_outputs)
        shapes: dict[str, tuple[int, ...]] = {}
        for i, (fan_in, fan_out) in enumerate(pairwise(sizes)):
            shapes |= {f"kernel_{i}": (fan_in, fan_out), f"bias_{i}": (fan_out,)}
        shape = self._compensation.weight_shape(self.layout.n_features, sizes[1])
        if shape is not None:
            shapes["compensation_weight"] = shape
        if self.gate_rate:
            shapes["gate"] = (len(self._gates[1]),)
        if self.straight:
            shapes["straight_kernel"] = (self.n_columns, self.n_outputs)
            if "compensation_weight" in shapes:
                lead = shapes["compensation_weight"][:-1]
                shapes["straight_compensation_weight"] = (*lead, self.n_outputs)
        return shapes

    def straighten(self, weights: np.ndarray) -> dict[str, np.ndarray]:
        """The parameters of the straight path, given weights (q, k) for what `prune` gives."""
        kernel, extra = np.split(weights.astype(np.float32), [self.n_columns])
        fixed = {"straight_kernel": kernel}
        weight = self._compensation.weight_of(extra)
        if weight is not None:
            fixed["straight_compensation_weight"] = weight
        return fixed

    def init(self, rng: np.random.Generator) -> dict[str, np.ndarray]:
        """Draw the parameters as scikit-learn does, with a compensation that starts at 0.

        Those of the straight path are not drawn: see `straighten`.
        """
        params = {}
        factor = 2.0 if self.activation == "logistic" else 6.0
        bound = 0.0
        for name, shape in self.shapes().items():
            if name in FIXED:
                continue
            if name in ("compensation_weight", "gate"):
                params[name] = np.zeros(shape)
                continue
            if len(shape) == 2:  # A bias follows its kernel and has its bound.
                bound = np.sqrt(factor / sum(shape))
            params[name] = rng.uniform(-bound, bound, shape)
        return params

    def start_at(self, params: dict[str, np.ndarray], outputs: np.ndarray) -> None:
        """Let new parameters give about these outputs, from the first step on."""
        if self.straight:  # Which gives them already.
            outputs = np.zeros_like(outputs)
        params[f"bias_{len(self.hidden)}"][:] = np.clip(outputs, -SURE, SURE)

    def first_layer(
        self, params: Params, *, dtype: Any = np.float64
    ) -> tuple[Any, Any, Any, Any, _formula.Compensation]:
        """The kernel, bias, compensation weight, layout and compensation `_formula` takes."""
        kernel = params["kernel_0"]
        if self.gate_rate:
            gate_of, start = self._gates
            # In the type of the weights: JAX with double precision would leave float32.
            gates = start.astype(kernel.dtype) + self.gate_rate * params["gate"]
            kernel = kernel * gates[gate_of][:, None]
        layout = self._single_layout if dtype == np.float32 else self.layout
        weight = params.get("compensation_weight")
        return kernel, params["bias_0"], weight, layout, self._compensation

    def neutralizers(self, params: Params) -> np.ndarray:
        """U of the first layer (s, p), the values that stand for a gap."""
        kernel, bias, weight, _, compensation = self.first_layer(params)
        layout = _formula.Layout(self.n_columns, self.groups, self.shares)
        layout = layout.arrays(np, per_feature=compensation.per_feature)
        return np.asarray(_formula.neutralizers(kernel, bias, weight, layout, compensation, xp=np))

    def prune(self, x: Any, *, xp: Any) -> Any:
        """What the first layer makes of x (n, p) before its weights come in."""
        layout = self._single_layout if x.dtype == np.float32 else self.layout
        absent = self._absent(x, xp=xp) if self._compensation.per_feature else None
        return _formula.prune(x, layout, self._compensation, xp=xp, absent=absent)

    def forward(
        self,
        params: Params,
        x: Any,
        *,
        xp: Any,
        dropout: Any = None,
        uniform: Uniform | None = None,
        pruned: Any = None,
    ) -> Any:
        """The outputs (n, k) for x (n, p), NaN where missing: logits, or the predicted values."""
        pruned = self.prune(x, xp=xp) if pruned is None else pruned
        h = _formula.neurons(pruned, *self.first_layer(params, dtype=x.dtype), xp=xp)
        if dropout is not None:
            # A row of which nothing is known has nothing to drop: it is always the same, and would
            # learn to be right on average over what is dropped, not when nothing is.
            blank = xp.all(self._absent(x, xp=xp), axis=-1, keepdims=True)
            dropout = xp.where(blank, 0.0, dropout)
        outputs = self._after_first(params, h, xp=xp, dropout=dropout, uniform=uniform)
        return outputs + self._along(params, pruned, xp=xp) if self.straight else outputs

    def _along(self, params: Params, pruned: Any, *, xp: Any) -> Any:
        """What the straight path gives (n, k), given what `prune` gives."""
        layout = self._single_layout if pruned.dtype == np.float32 else self.layout
        weight = params.get("straight_compensation_weight")
        kernel = params["straight_kernel"]
        return _formula.neurons(pruned, kernel, None, weight, layout, self._compensation, xp=xp)

    def _after_first(
        self,
        params: Params,
        h: Any,
        *,
        xp: Any,
        dropout: Any = None,
        uniform: Uniform | None = None,
    ) -> Any:
        """The outputs (n, k), given what the first layer makes of the rows (n, h)."""
        for i in range(1, len(self.hidden) + 1):
            h = ACTIVATIONS[self.activation](h, xp)
            if dropout is not None and uniform is not None:
                h = xp.where(uniform(h.shape) < dropout, 0.0, h / (1.0 - dropout))
            h = xp.matmul(h, params[f"kernel_{i}"]) + params[f"bias_{i}"]
        return h

    def loss(
        self,
        params: Params,
        x: Any,
        y: Any,
        *,
        xp: Any,
        dropout: Any = None,
        uniform: Uniform | None = None,
    ) -> Any:
        """The loss (n,) of every row, given targets y (n, k)."""
        outputs = self.forward(params, x, xp=xp, dropout=dropout, uniform=uniform)
        return row_loss(self.loss_name, outputs, y, xp=xp)
