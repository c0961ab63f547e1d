"""A network of modalities: each has a representation and a decision, and all are fused.

    x, by modality  ->  representation  ->  decision          (one of each per modality)
    all representations and decisions   ->  fusion layer  ->  final decision

Middle fusion joins representations and late fusion joins decisions. This network does both, as in
the paper's clinical study. The layers of all modalities are computed together, as one product with
a kernel that is zero outside the blocks of the modalities: a dozen small products take as long to
run, and four times as long to compile.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from promissing import _formula
from promissing.networks.activations import ACTIVATIONS
from promissing.networks.base import Params, Uniform
from promissing.networks.losses import Loss

__all__ = ["INPUT_DROPOUTS", "Fusion"]

INPUT_DROPOUTS = ("unknown", "zero")
# Missing values are counted by modality, without compensation too: see `_Layout`.
BY_MODALITY = _formula.FeatureCompensation()


class _Layout(NamedTuple):
    """The layout of `_formula` for neurons that each see one modality.

    The formula of a neuron holds within its modality: its rho is the missing share of the modality.
    This is the formula per feature. Its features are the modalities, each to the degree that it is
    missing, or with the compensation per feature those of all modalities. A feature has a share of
    the bias of the neurons that see it, and none of the others: `feature_shares` is (features,
    neurons).
    """

    n_columns: int
    membership: Any
    feature_shares: Any
    column_shares: None = None


class _Blocks(NamedTuple):
    """Which weights exist, as 0/1 matrices, and the layout of the first layer."""

    layout: _Layout
    sees: Any  # (p, S): columns by neurons
    compensates: Any  # (modalities or features, S)
    decides: Any  # (S, M k): neurons by outputs of decisions


@dataclass(frozen=True)
class Fusion:
    """The description of a fusion network; its parameters are a dict of arrays.

    Parameters
    ----------
    n_columns, n_outputs : int
        Numbers of columns, and of outputs of every decision, p and k.
    loss : Loss
        A loss of `promissing.networks.losses`.
    modalities : tuple of p int
        The modality of each column, numbered from 0; -1 if it is not used.
    units : tuple of M int
        The size of each modality's representation.
    fusion_units : int, default=5
        Size of the fusion layer.
    activation : str, default="relu"
        A name of `promissing.networks.activations.ACTIVATIONS`.
    compensation : {"none", "shared", "feature"}, default="none"
        What a neuron adds for missing values of its modality.
    groups : tuple of p int, optional
        The feature each column belongs to; the columns of a feature are of one modality.
    input_dropout : {"unknown", "zero"}, default="unknown"
        What dropout makes of an input: missing, or an observed zero, with the other inputs enlarged
        as usual. Missing values stay missing.

    Examples
    --------
    >>> import numpy as np
    >>> from promissing.networks.fusion import Fusion
    >>> from promissing.networks.losses import CrossEntropy
    >>> net = Fusion(3, 2, CrossEntropy(), modalities=(0, 0, 1), units=(4, 2))
    >>> params = net.init(np.random.default_rng(0))
    >>> x = np.array([[0.5, np.nan, 1.0]])
    >>> net.forward(params, x, xp=np).shape, net.decisions(params, x, xp=np).shape
    ((1, 2), (1, 2, 2))
    """

    n_columns: int
    n_outputs: int
    loss: Loss
    modalities: tuple[int, ...]
    units: tuple[int, ...]
    fusion_units: int = 5
    activation: str = "relu"
    compensation: str = "none"
    groups: tuple[int, ...] | None = None
    input_dropout: str = "unknown"

    def __post_init__(self) -> None:
        _formula.get_compensation(self.compensation)
        for name, allowed in (
            ("activation", tuple(ACTIVATIONS)),
            ("input_dropout", INPUT_DROPOUTS),
        ):
            if getattr(self, name) not in allowed:
                raise ValueError(
                    f"`{name}` must be one of {allowed}. Received: {getattr(self, name)!r}"
                )
        for name in ("modalities", "groups"):
            given = getattr(self, name)
            if given is not None and len(given) != self.n_columns:
                raise ValueError(
                    f"`{name}` must have one entry for each of the {self.n_columns} columns. "
                    f"Received: {len(given)} entries."
                )
        if set(self.modalities) - {-1} != set(range(len(self.units))):
            raise ValueError(
                f"`modalities` must use every number from 0 to {len(self.units) - 1}, one for each "
                f"of `units`, and none but these and -1. Received: {sorted(set(self.modalities))}"
            )
        if len(set(zip(self._owners, self.modalities, strict=True))) != self.n_features:
            raise ValueError("The columns of a feature must be of one modality, by `modalities`.")

    @property
    def _owners(self) -> tuple[int, ...]:
        return tuple(range(self.n_columns)) if self.groups is None else self.groups

    @property
    def _grouped(self) -> bool:
        return self._owners != tuple(range(self.n_columns))

    @property
    def n_features(self) -> int:
        """Number of features."""
        return len(set(self._owners))

    @cached_property
    def _double(self) -> _Blocks:
        return self._blocks(np.float64)

    @cached_property
    def _single(self) -> _Blocks:
        # With double precision enabled, JAX would convert float32 to the float64 of the blocks.
        return self._blocks(np.float32)

    def _blocks(self, dtype: Any) -> _Blocks:
        n_modalities = len(self.units)
        numbers = np.arange(n_modalities)
        of_column, owner = np.array(self.modalities), np.array(self._owners)
        of_neuron = np.repeat(numbers, self.units)
        of_output = np.repeat(numbers, self.n_outputs)
        of_feature = np.empty(self.n_features, int)
        of_feature[owner] = of_column
        features = np.bincount(of_feature[of_feature >= 0], minlength=n_modalities)
        columns = np.bincount(owner)  # By feature.
        membership: Any = None
        if _formula.COMPENSATIONS[self.compensation].per_feature:
            compensates = of_feature[:, None] == of_neuron
            shares = compensates / features[of_neuron]
            if self._grouped:
                membership = (owner[:, None] == np.arange(self.n_features)) / columns[owner, None]
        else:
            compensates = shares = numbers[:, None] == of_neuron
            membership = (of_column[:, None] == numbers) / columns[owner, None] / features
        return _Blocks(
            _Layout(
                self.n_columns,
                None if membership is None else membership.astype(dtype),
                shares.astype(dtype),
            ),
            sees=(of_column[:, None] == of_neuron).astype(dtype),
            compensates=compensates.astype(dtype),
            decides=(of_neuron[:, None] == of_output).astype(dtype),
        )

    def columns_in_use(self) -> np.ndarray:
        """Return which encoded columns the network reads: those of a modality."""
        return np.array(self.modalities) >= 0

    def start_at(self, params: dict[str, np.ndarray], outputs: np.ndarray) -> None:
        """Change new parameters in place so that all decisions start at about these outputs."""
        params["final_bias"][:] = outputs
        params["decision_bias"][:] = np.tile(outputs, len(self.units))

    def neutralizers(self, params: Params) -> np.ndarray:
        """Return the values (neurons, p) that have the same effect as a missing value."""
        return np.asarray(_formula.neutralizers(*self.first_layer(params), xp=np))

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the shapes of the parameters by name."""
        neurons, decided = sum(self.units), self.n_decided
        shapes: dict[str, tuple[int, ...]] = {}
        for name, fan_in, fan_out in (
            ("representation", self.n_columns, neurons),
            ("decision", neurons, decided),
            ("fusion", neurons + decided, self.fusion_units),
            ("final", self.fusion_units, self.n_outputs),
        ):
            shapes |= {f"{name}_kernel": (fan_in, fan_out), f"{name}_bias": (fan_out,)}
        compensation = _formula.COMPENSATIONS[self.compensation]
        shape = compensation.weight_shape(self.n_features, neurons)
        if shape is not None:
            shapes["compensation_weight"] = shape
        return shapes

    def init(self, rng: np.random.Generator) -> dict[str, np.ndarray]:
        """Draw new parameters as scikit-learn does, each modality as a network of its own."""
        factor = 2.0 if self.activation == "logistic" else 6.0
        masks = {"representation": self._double.sees, "decision": self._double.decides}
        params: dict[str, np.ndarray] = {}
        for name, shape in self.shapes().items():
            layer, _, part = name.rpartition("_")
            if layer == "compensation":
                params[name] = np.zeros(shape)
                continue
            if part == "kernel":  # A bias follows its kernel and has its bounds.
                mask = masks.get(layer, np.ones(shape))
                fan_in, fan_out = mask.sum(axis=0), (mask * mask.sum(axis=1)[:, None]).max(axis=0)
                bounds = np.sqrt(factor / (fan_in + fan_out))
            drawn = rng.uniform(-1.0, 1.0, shape) * bounds
            params[name] = drawn * mask if part == "kernel" else drawn
        return params

    def first_layer(
        self, params: Params, *, dtype: Any = np.float64
    ) -> tuple[Any, Any, Any, Any, _formula.Compensation]:
        """Return kernel, bias, compensation weight, layout and compensation of the first layer."""
        blocks = self._single if dtype == np.float32 else self._double
        weight = params.get("compensation_weight")
        return (
            params["representation_kernel"] * blocks.sees,
            params["representation_bias"],
            blocks.compensates * (0 if weight is None else weight),
            blocks.layout,
            BY_MODALITY,
        )

    def prune(self, x: Any, *, xp: Any) -> Any:
        """Return what the first layer makes of x (n, p) before its weights are applied."""
        blocks = self._single if x.dtype == np.float32 else self._double
        return _formula.prune(x, blocks.layout, BY_MODALITY, xp=xp)

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
        """Return the outputs (n, k) of the final decision for x (n, p), NaN where missing."""
        return self._outputs(params, x, xp=xp, dropout=dropout, uniform=uniform, pruned=pruned)[0]

    def decisions(self, params: Params, x: Any, *, xp: Any, pruned: Any = None) -> Any:
        """Return the outputs (n, M, k) of the decisions of the modalities."""
        return self._outputs(params, x, xp=xp, pruned=pruned)[1]

    def _outputs(
        self,
        params: Params,
        x: Any,
        *,
        xp: Any,
        dropout: Any = None,
        uniform: Uniform | None = None,
        pruned: Any = None,
    ) -> tuple[Any, Any]:
        drops = iter(())
        if dropout is not None and uniform is not None:
            x, drops = self._drops(x, dropout, uniform, xp)

        pruned = self.prune(x, xp=xp) if pruned is None else pruned
        h = _formula.neurons(pruned, *self.first_layer(params, dtype=x.dtype), xp=xp)
        return self._after_first(params, h, drops, xp=xp)

    def _after_first(
        self, params: Params, h: Any, drops: Iterator[Any], *, xp: Any
    ) -> tuple[Any, Any]:
        """Return the outputs of the final decision and of all decisions, given the first layer."""
        act = ACTIVATIONS[self.activation]
        blocks = self._single if h.dtype == np.float32 else self._double
        h = act(h, xp)
        kernel = params["decision_kernel"] * blocks.decides
        flat = xp.matmul(h * next(drops, 1.0), kernel) + params["decision_bias"]
        decisions = flat.reshape(len(h), len(self.units), self.n_outputs)
        joined = xp.concatenate([h, self.loss.fused(decisions, xp=xp).reshape(flat.shape)], axis=-1)
        h = act(
            xp.matmul(joined * next(drops, 1.0), params["fusion_kernel"]) + params["fusion_bias"],
            xp,
        )
        return xp.matmul(h * next(drops, 1.0), params["final_kernel"]) + params[
            "final_bias"
        ], decisions

    def columns(self, params: Params) -> tuple[np.ndarray, np.ndarray]:
        """Return the weight of every column (p, s), and what a missing column adds, (p, s)."""
        layer = self.first_layer(params)
        return np.asarray(layer[0]), np.asarray(_formula.gaps(*layer, xp=np))

    def sums(self, params: Params, pruned: Any) -> np.ndarray:
        """Return the sums (n, s) over the columns, given the result of `prune`."""
        return np.asarray(_formula.neurons(pruned, *self.first_layer(params), xp=np))

    def from_sums(self, params: Params, sums: np.ndarray) -> np.ndarray:
        """Return the outputs (n, k), given the sums (n, s) over the columns."""
        # As `_after_first`, but both products with h are one, and nothing is joined.
        act = ACTIVATIONS[self.activation]
        h, n = act(sums, np), self.n_decided
        own, fused = np.split(params["fusion_kernel"], [sums.shape[1]])
        kernel = np.hstack([params["decision_kernel"] * self._double.decides, own])
        both = h @ kernel
        decisions = (both[:, :n] + params["decision_bias"]).reshape(len(h), -1, self.n_outputs)
        probabilities = self.loss.fused(decisions, xp=np).reshape(len(h), n)
        h = act(both[:, n:] + probabilities @ fused + params["fusion_bias"], np)
        return np.asarray(h @ params["final_kernel"] + params["final_bias"])

    @property
    def n_decided(self) -> int:
        """Number of outputs of the decisions of all modalities."""
        return len(self.units) * self.n_outputs

    def _drops(self, x: Any, dropout: Any, uniform: Uniform, xp: Any) -> tuple[Any, Iterator[Any]]:
        """Return the input after dropout, and factors for the inputs of the other layers."""
        unknown = self.input_dropout == "unknown"
        neurons, decided = sum(self.units), self.n_decided
        sizes = [self.n_features if unknown else self.n_columns]
        sizes += [neurons, neurons + decided, self.fusion_units]
        ends = np.cumsum(sizes)
        draws = uniform((len(x), int(ends[-1])))  # At once: a fifth less to compile.
        first = draws[:, : ends[0]] < dropout
        if not unknown:  # What is NaN stays it: it is multiplied.
            x = x * xp.where(first, 0.0, 1.0 / (1.0 - dropout))
        elif self._grouped:  # The columns of a feature go together.
            x = xp.where(first[:, np.array(self.groups)], np.nan, x)
        else:
            x = xp.where(first, np.nan, x)
        # There is no dropout for an empty row; see `MLP.forward`.
        blank = xp.all(xp.isnan(x) | (np.array(self.modalities) < 0), axis=-1, keepdims=True)
        rate = xp.where(blank, 0.0, dropout)
        kept = xp.where(draws[:, ends[0] :] < rate, 0.0, 1.0 / (1.0 - rate))
        return x, (kept[:, a - ends[0] : b - ends[0]] for a, b in pairwise(ends))

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

        In training it is the sum over all decisions. In validation, where nothing is drawn, it is
        the loss of the final decision, which predicts.
        """
        final, decisions = self._outputs(params, x, xp=xp, dropout=dropout, uniform=uniform)
        if uniform is None:
            return self.loss.validation_loss(final, y, xp=xp)
        total = self.loss.row_loss(final, y, xp=xp)
        each = self.loss.row_loss(decisions, y[:, None, :], xp=xp)
        return total + xp.sum(each, axis=-1)
