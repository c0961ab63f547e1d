"""A multi-layer perceptron whose first layer prunes missing values."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from promissing import _formula
from promissing.networks.activations import ACTIVATIONS
from promissing.networks.base import Params, Uniform
from promissing.networks.losses import Loss

__all__ = ["FIXED", "MLP"]

# Parameters of the linear skip connection. They are not trained.
FIXED = ("skip_kernel", "skip_compensation_weight")
FINE_GATE_START = 0.1  # The gates of fine bins start nearly closed.
LARGEST_START = 7.0  # Largest initial output, in logits: a probability of 0.999.


@dataclass(frozen=True)
class MLP:
    """The description of a multi-layer perceptron; its parameters are a dict of arrays.

    Parameters
    ----------
    n_columns, n_outputs : int
        Numbers of columns and outputs, p and k.
    loss : Loss
        A loss of `promissing.networks.losses`.
    hidden : tuple of int, default=(100,)
        Sizes of the hidden layers; none makes a linear model.
    activation : str, default="relu"
        A name of `promissing.networks.activations.ACTIVATIONS`.
    compensation : {"none", "shared", "feature"}, default="none"
        What a neuron adds for missing values.
    groups, shares : tuple, optional
        See `promissing._formula.Layout`. The columns of a feature are missing together.
    gate_rate : float, default=0
        If positive, the weights of every feature are multiplied by its gate, a number that starts
        at 1 and learns this many times as fast as a weight.
    fine : tuple of p bool, optional
        Columns with a second gate of their feature, which starts at 0.1.
    linear_skip : bool, default=False
        Whether a linear layer of the same kind, without a bias, connects the columns with the
        outputs. It is not trained with the rest; see `skip_params`.

    Examples
    --------
    >>> import numpy as np
    >>> from promissing.networks.losses import LogLoss
    >>> from promissing.networks.mlp import MLP
    >>> net = MLP(3, 1, LogLoss(), hidden=(4,))
    >>> params = net.init(np.random.default_rng(0))
    >>> net.forward(params, np.array([[0.5, np.nan, 1.0]]), xp=np).shape
    (1, 1)
    """

    n_columns: int
    n_outputs: int
    loss: Loss
    hidden: tuple[int, ...] = (100,)
    activation: str = "relu"
    compensation: str = "none"
    groups: tuple[int, ...] | None = None
    shares: tuple[float, ...] | None = None
    gate_rate: float = 0.0
    fine: tuple[bool, ...] | None = None
    linear_skip: bool = False

    def __post_init__(self) -> None:
        _formula.get_compensation(self.compensation)
        if self.activation not in ACTIVATIONS:
            raise ValueError(
                f"`activation` must be one of {tuple(ACTIVATIONS)}. Received: {self.activation!r}"
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
        """The features, in NumPy arrays."""
        return self._layout(np.float64)

    @cached_property
    def _single_layout(self) -> _formula.Layout:
        # With double precision enabled, JAX would convert float32 to the float64 of the layout.
        return self._layout(np.float32)

    def _layout(self, dtype: Any) -> _formula.Layout:
        layout = _formula.Layout(self.n_columns, self.groups, self.shares).arrays(np)
        return layout.map(lambda a: a.astype(dtype))

    @property
    def _column_layout(self) -> _formula.Layout:
        """The layout from which `_formula.gaps` finds what each column adds."""
        layout = _formula.Layout(self.n_columns, self.groups, self.shares)
        return layout.arrays(np, per_feature=self._compensation.per_feature)

    @cached_property
    def _first_columns(self) -> np.ndarray:
        """The first column of every feature (F,), which is missing if the feature is."""
        owner = range(self.n_columns) if self.groups is None else self.groups
        return np.unique(owner, return_index=True)[1].astype(np.uint32)

    def _absent(self, x: Any, *, xp: Any) -> Any:
        """Return which features of x (n, p) are missing, (n, F)."""
        return xp.isnan(x if self.groups is None else x[..., self._first_columns])

    @property
    def n_extras(self) -> int:
        """Number of columns that `prune` adds."""
        return self._compensation.n_extra(self.layout.n_features)

    def columns_in_use(self) -> np.ndarray:
        """Return which encoded columns the network reads: all of them."""
        return np.ones(self.n_columns, bool)

    @cached_property
    def _gates(self) -> tuple[np.ndarray, np.ndarray]:
        """The gate of each column (p,), and the initial value of each gate."""
        n = self.layout.n_features
        gate_of = np.array(range(self.n_columns) if self.groups is None else self.groups)
        start = np.ones(n)
        if self.fine is not None and any(self.fine):
            gate_of = gate_of + n * np.array(self.fine)
            start = np.repeat([1.0, FINE_GATE_START], n)
        return gate_of.astype(np.uint32), start  # JAX with double precision refuses signed ones.

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the shapes of the parameters by name."""
        sizes = (self.n_columns, *self.hidden, self.n_outputs)
        shapes: dict[str, tuple[int, ...]] = {}
        for i, (fan_in, fan_out) in enumerate(pairwise(sizes)):
            shapes |= {f"kernel_{i}": (fan_in, fan_out), f"bias_{i}": (fan_out,)}
        shape = self._compensation.weight_shape(self.layout.n_features, sizes[1])
        if shape is not None:
            shapes["compensation_weight"] = shape
        if self.gate_rate:
            shapes["gate"] = (len(self._gates[1]),)
        if self.linear_skip:
            shapes["skip_kernel"] = (self.n_columns, self.n_outputs)
            if shape is not None:
                shapes["skip_compensation_weight"] = (*shape[:-1], self.n_outputs)
        return shapes

    def skip_params(self, weights: np.ndarray) -> dict[str, np.ndarray]:
        """Return the parameters of the skip connection, given weights (q, k) after `prune`."""
        kernel, extra = np.split(weights.astype(np.float32), [self.n_columns])
        fixed = {"skip_kernel": kernel}
        weight = self._compensation.weight_of(extra)
        if weight is not None:
            fixed["skip_compensation_weight"] = weight
        return fixed

    def init(self, rng: np.random.Generator) -> dict[str, np.ndarray]:
        """Draw new parameters as scikit-learn does; compensations start at 0.

        The parameters of the skip connection are not drawn.
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
        """Change new parameters in place so that the first outputs are about these."""
        if self.linear_skip:  # The skip connection gives them already.
            outputs = np.zeros_like(outputs)
        params[f"bias_{len(self.hidden)}"][:] = np.clip(outputs, -LARGEST_START, LARGEST_START)

    def first_layer(
        self, params: Params, *, dtype: Any = np.float64
    ) -> tuple[Any, Any, Any, Any, _formula.Compensation]:
        """Return kernel, bias, compensation weight, layout and compensation of the first layer."""
        kernel = params["kernel_0"]
        if self.gate_rate:
            gate_of, start = self._gates
            # In the dtype of the weights, also if JAX has double precision enabled.
            gates = start.astype(kernel.dtype) + self.gate_rate * params["gate"]
            kernel = kernel * gates[gate_of][:, None]
        layout = self._single_layout if dtype == np.float32 else self.layout
        weight = params.get("compensation_weight")
        return kernel, params["bias_0"], weight, layout, self._compensation

    def neutralizers(self, params: Params) -> np.ndarray:
        """Return the values (neurons, p) that have the same effect as a missing value."""
        kernel, bias, weight, _, compensation = self.first_layer(params)
        layout = self._column_layout
        return np.asarray(_formula.neutralizers(kernel, bias, weight, layout, compensation, xp=np))

    def prune(self, x: Any, *, xp: Any) -> Any:
        """Return what the first layer makes of x (n, p) before its weights are applied."""
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
        """Return the outputs (n, k) for x (n, p), NaN where missing."""
        pruned = self.prune(x, xp=xp) if pruned is None else pruned
        h = _formula.neurons(pruned, *self.first_layer(params, dtype=x.dtype), xp=xp)
        if dropout is not None:
            # There is no dropout for an empty row: it would learn to predict the prior on average
            # over dropped units, and not when no unit is dropped.
            blank = xp.all(self._absent(x, xp=xp), axis=-1, keepdims=True)
            dropout = xp.where(blank, 0.0, dropout)
        h = self._after_first(params, h, xp=xp, dropout=dropout, uniform=uniform)
        return h + self.skip(params, pruned, xp=xp) if self.linear_skip else h

    def _after_first(
        self, params: Params, h: Any, *, xp: Any, dropout: Any = None, uniform: Any = None
    ) -> Any:
        """Return the outputs without the skip connection, given the sums of the first layer."""
        for i in range(1, len(self.hidden) + 1):
            h = ACTIVATIONS[self.activation](h, xp)
            if dropout is not None and uniform is not None:
                h = xp.where(uniform(h.shape) < dropout, 0.0, h / (1.0 - dropout))
            h = xp.matmul(h, params[f"kernel_{i}"])
            h += params[f"bias_{i}"]  # In place for NumPy, and a new array for JAX.
        return h

    def columns(self, params: Params) -> tuple[np.ndarray, np.ndarray]:
        """Return the weight of every column (p, s), and what a missing column adds, (p, s).

        The last k sums are the outputs of the skip connection, if there is one.
        """
        kernel, bias, weight, _, compensation = self.first_layer(params)
        layout = self._column_layout
        layers = [(kernel, bias, weight)]
        if self.linear_skip:
            layers.append((params["skip_kernel"], None, params.get("skip_compensation_weight")))
        gaps = [_formula.gaps(*layer, layout, compensation, xp=np) for layer in layers]
        return np.hstack([layer[0] for layer in layers]), np.hstack(gaps)

    def sums(self, params: Params, pruned: Any) -> np.ndarray:
        """Return the sums (n, s) over the columns, given the result of `prune`."""
        h = _formula.neurons(pruned, *self.first_layer(params), xp=np)
        return np.hstack([h, self.skip(params, pruned, xp=np)]) if self.linear_skip else h

    def from_sums(self, params: Params, sums: np.ndarray) -> np.ndarray:
        """Return the outputs (n, k), given the sums (n, s) over the columns."""
        if not self.linear_skip:
            return np.asarray(self._after_first(params, sums, xp=np))
        h, skip = np.split(sums, [sums.shape[1] - self.n_outputs], axis=1)
        return np.asarray(self._after_first(params, h, xp=np) + skip)

    def skip(self, params: Params, pruned: Any, *, xp: Any) -> Any:
        """Return the output (n, k) of the skip connection, given the result of `prune`."""
        layout = self._single_layout if pruned.dtype == np.float32 else self.layout
        weight, kernel = params.get("skip_compensation_weight"), params["skip_kernel"]
        return _formula.neurons(pruned, kernel, None, weight, layout, self._compensation, xp=xp)

    def row_loss(
        self,
        params: Params,
        x: Any,
        y: Any,
        *,
        xp: Any,
        dropout: Any = None,
        uniform: Uniform | None = None,
    ) -> Any:
        """Return the loss (n,) of every row, given encoded targets y (n, m).

        Nothing is drawn in validation.
        """
        outputs = self.forward(params, x, xp=xp, dropout=dropout, uniform=uniform)
        compute = self.loss.validation_loss if uniform is None else self.loss.row_loss
        return compute(outputs, y, xp=xp)
