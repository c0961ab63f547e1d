"""NaN-native layers for Keras 3, on every backend."""

from __future__ import annotations

import math
import operator
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from promissing import _formula

try:
    import keras
except ImportError as error:
    raise ImportError(
        "promissing.keras needs Keras 3 and a backend: pip install 'promissing[keras]', and set "
        f"KERAS_BACKEND to jax, torch or tensorflow, whichever is installed ({error})"
    ) from error

from keras import activations, constraints, initializers, ops, regularizers

__all__ = ["NanDense", "NanDropout"]


class _Ops:
    """`keras.ops` with the product of the backend: on torch, Keras's rounds float64 to float32."""

    matmul = staticmethod(operator.matmul)

    def __getattr__(self, name: str) -> Any:
        return getattr(ops, name)


_OPS = _Ops()


@keras.saving.register_keras_serializable(package="promissing")
class NanDense(keras.layers.Layer):
    """`keras.layers.Dense` for inputs with missing values: NaN adds nothing, the bias is scaled.

    A complete row gives the output of `Dense`, up to rounding. A row without known values gives
    zero, or the compensation. Use it as the first layer and feed NaN where a value is missing. A
    process that loads a saved model must `import promissing.keras` first, for Keras to know the
    layer.

    The paper's own layer has a flag `use_c`: `use_c=False` is `compensation="none"` here and
    `use_c=True` is `compensation="shared"`. Its weights are taken over by `set_paper_weights`.
    There the compensation is a row of the kernel and shares its regularizer and constraint; here
    it has its own.

    Parameters
    ----------
    units : int
        The number of neurons s.
    activation, use_bias, kernel_initializer, bias_initializer, kernel_regularizer, \
bias_regularizer, activity_regularizer, kernel_constraint, bias_constraint
        As in `keras.layers.Dense`.
    compensation : {"none", "shared", "feature"}, default="none"
        "none" is PROMISSING (Eq. 3 of the paper); "shared" is mPROMISSING (Eq. 5), one learned
        weight per neuron, times the share missing; "feature" adds one learned weight per neuron
        and missing feature.
    compensation_initializer : optional
        By default the shared compensation starts as one more row of the kernel, as in the paper,
        and the compensation per feature at zero.
    compensation_regularizer, compensation_constraint : optional
        Applied to `compensation_weight`, as `kernel_regularizer` is to the kernel.
    groups : sequence of int, optional
        The feature each column belongs to, for columns that together encode one feature.
    shares : sequence of float, optional
        Each feature's share of a neuron; equal by default.
    **kwargs : optional
        As in `keras.layers.Layer`, for example `name` and `dtype`.

    Attributes
    ----------
    kernel : Variable (p, units)
        The weights of the columns.
    bias : Variable (units,) or None
        None if `use_bias=False`.
    compensation_weight : Variable (units,) or (n_features, units), or None
        The shared compensation or the compensation per feature; None without compensation.

    Warns
    -----
    UserWarning
        If every value of the first training batch of two or more rows is NaN, in eager mode: a
        normalising layer before this one turns whole columns into NaN.

    Examples
    --------
    >>> import numpy as np
    >>> from keras import ops
    >>> from promissing.keras import NanDense
    >>> layer = NanDense(4)
    >>> ops.convert_to_numpy(layer(np.full((1, 3), np.nan))).tolist()
    [[0.0, 0.0, 0.0, 0.0]]
    """

    def __init__(
        self,
        units: int,
        activation: Any = None,
        use_bias: bool = True,
        kernel_initializer: Any = "glorot_uniform",
        bias_initializer: Any = "zeros",
        kernel_regularizer: Any = None,
        bias_regularizer: Any = None,
        activity_regularizer: Any = None,
        kernel_constraint: Any = None,
        bias_constraint: Any = None,
        *,
        compensation: str = "none",
        compensation_initializer: Any = None,
        compensation_regularizer: Any = None,
        compensation_constraint: Any = None,
        groups: Sequence[int] | None = None,
        shares: Sequence[float] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(activity_regularizer=activity_regularizer, **kwargs)
        if not _formula.is_count(units):
            raise ValueError(
                "Received an invalid value for `units`, expected a positive integer. "
                f"Received: units={units!r}"
            )
        self.units = int(units)
        self.activation = activations.get(activation)
        self.use_bias = use_bias
        self.kernel_initializer = initializers.get(kernel_initializer)
        self.bias_initializer = initializers.get(bias_initializer)
        self.kernel_regularizer = regularizers.get(kernel_regularizer)
        self.bias_regularizer = regularizers.get(bias_regularizer)
        self.kernel_constraint = constraints.get(kernel_constraint)
        self.bias_constraint = constraints.get(bias_constraint)
        self.compensation = _formula.get_compensation(compensation).name
        self.compensation_initializer = initializers.get(compensation_initializer)
        self.compensation_regularizer = regularizers.get(compensation_regularizer)
        self.compensation_constraint = constraints.get(compensation_constraint)
        if groups is not None or shares is not None:  # Complain now, not at build.
            _formula.Layout(len(shares if groups is None else groups), groups, shares)  # type: ignore[arg-type]
        self.groups = None if groups is None else [int(g) for g in groups]
        self.shares = None if shares is None else [float(s) for s in shares]
        self.input_spec = keras.layers.InputSpec(min_ndim=2)
        self.supports_masking = True
        self._watched = False  # Whether a training batch was searched for known values.

    def build(self, input_shape: Any) -> None:
        p = input_shape[-1]
        if p is None:
            raise ValueError(
                "The last dimension of the inputs to `NanDense` should be defined. Received: "
                f"input_shape={tuple(input_shape)}"
            )
        rule = _formula.COMPENSATIONS[self.compensation]
        self._layout = _formula.Layout(p, self.groups, self.shares).arrays(
            np, per_feature=rule.per_feature
        )
        self.kernel = self.add_weight(
            name="kernel",
            shape=(p, self.units),
            initializer=self.kernel_initializer,
            regularizer=self.kernel_regularizer,
            constraint=self.kernel_constraint,
        )
        self.bias = None
        if self.use_bias:
            self.bias = self.add_weight(
                name="bias",
                shape=(self.units,),
                initializer=self.bias_initializer,
                regularizer=self.bias_regularizer,
                constraint=self.bias_constraint,
            )
        self.compensation_weight = None
        shape = rule.weight_shape(self._layout.n_features, self.units)
        if shape is not None:
            default = self._one_more_kernel_row if rule.starts_as_kernel_row else "zeros"
            self.compensation_weight = self.add_weight(
                name="compensation_weight",
                shape=shape,
                initializer=self.compensation_initializer or default,
                regularizer=self.compensation_regularizer,
                constraint=self.compensation_constraint,
            )
        self.input_spec = keras.layers.InputSpec(min_ndim=2, axes={-1: p})
        self.built = True

    def _one_more_kernel_row(self, shape: tuple[int, ...], dtype: Any = None) -> Any:
        rows = self._layout.n_columns + 1
        return self.kernel_initializer((rows, *shape), dtype=dtype)[-1]

    def __call__(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        _refuse_sparse(inputs)
        return super().__call__(inputs, *args, **kwargs)

    def call(self, inputs: Any, training: bool = False) -> Any:
        inputs = _floats(inputs, self)
        if training and not self._watched:
            self._warn_if_all_missing(inputs)
        layout = self._layout.map(lambda a: ops.convert_to_tensor(a, self.compute_dtype))
        kernel, bias, weight = (
            None if w is None else ops.convert_to_tensor(w)
            for w in (self.kernel, self.bias, self.compensation_weight)
        )
        out = _formula.activation(
            inputs,
            kernel,
            bias,
            weight,
            layout,
            _formula.COMPENSATIONS[self.compensation],
            xp=_OPS,
            cast=lambda a: ops.cast(a, inputs.dtype),
        )
        return self.activation(out)

    def _warn_if_all_missing(self, inputs: Any) -> None:
        """Warn if every value of the first eager training batch of two or more rows is NaN."""
        try:
            values = ops.convert_to_numpy(ops.cast(inputs, "float32"))
        except (NotImplementedError, RuntimeError, TypeError):
            return  # While a graph is traced there are no values.
        if math.prod(values.shape[:-1]) < 2:
            return
        self._watched = True
        if np.isnan(values).all():
            message = _formula.all_missing_message(
                "NanDense",
                values.shape,
                "BatchNormalization, LayerNormalization and, after `adapt`, Normalization",
            )
            warnings.warn(message, UserWarning, stacklevel=2)

    def compute_output_shape(self, input_shape: Any) -> tuple[int | None, ...]:
        return (*input_shape[:-1], self.units)

    def compute_output_spec(self, inputs: Any, training: bool = False) -> keras.KerasTensor:
        return keras.KerasTensor(self.compute_output_shape(inputs.shape), dtype=self.compute_dtype)

    def neutralizers(self) -> np.ndarray:
        """Compute the value that stands for a gap in each neuron (Eq. 4 of the paper).

        Returns
        -------
        ndarray (units, p)
            The neutralizers. A weight of zero gives inf or NaN.

        Examples
        --------
        >>> from promissing.keras import NanDense
        >>> layer = NanDense(4)
        >>> layer.build((None, 3))
        >>> layer.neutralizers().shape
        (4, 3)
        """
        if not self.built:
            raise ValueError("`neutralizers()` needs a built layer. Call it on data first.")
        kernel, bias, weight = (
            None if w is None else np.asarray(ops.convert_to_numpy(w), float)
            for w in (self.kernel, self.bias, self.compensation_weight)
        )
        rule = _formula.COMPENSATIONS[self.compensation]
        return np.asarray(_formula.neutralizers(kernel, bias, weight, self._layout, rule, xp=np))

    def set_paper_weights(self, kernel: Any, bias: Any, *, as_listed: bool = True) -> None:
        """Take over the weights of the paper's own `nanDense`.

        Parameters
        ----------
        kernel : array (p, units) or (p + 1, units)
            With `use_c=True` the listing keeps the compensation as the last row of the kernel.
        bias : array (units,)
            The bias of the paper's layer.
        as_listed : bool, default=True
            The listing with `use_c=True` divides the bias by p + 1 where Eq. 5 divides by p. True
            keeps the predictions of the trained layer, by adding b / (p + 1) to the compensation;
            False takes the row as the w_c of Eq. 5.

        Examples
        --------
        >>> import numpy as np
        >>> from promissing.keras import NanDense
        >>> layer = NanDense(2, compensation="shared")
        >>> layer.build((None, 3))
        >>> layer.set_paper_weights(np.ones((4, 2)), np.zeros(2))
        >>> layer.get_weights()[-1].tolist()
        [1.0, 1.0]
        """
        if not self.built:
            raise ValueError("`set_paper_weights()` needs a built layer. Call it on data first.")
        kernel, bias = np.asarray(kernel), np.asarray(bias)
        p = self._layout.n_columns
        rows = p + (self.compensation == "shared")
        equal = self._layout.column_shares is None
        if self.compensation == "feature" or not self.use_bias or not equal:
            raise ValueError(
                "The paper's layer has a bias, equal shares and `compensation` none or shared."
            )
        if kernel.shape != (rows, self.units) or bias.shape != (self.units,):
            raise ValueError(
                f"Expected a kernel of shape {(rows, self.units)} and a bias of shape "
                f"{(self.units,)} for compensation={self.compensation!r}. Received: "
                f"{kernel.shape} and {bias.shape}"
            )
        weights = [kernel[:p], bias]
        if self.compensation == "shared":
            weights.append(kernel[p] + bias / (p + 1) if as_listed else kernel[p])
        self.set_weights(weights)

    def get_config(self) -> dict[str, Any]:
        config = {
            "units": self.units,
            "activation": activations.serialize(self.activation),
            "use_bias": self.use_bias,
            "compensation": self.compensation,
            "groups": self.groups,
            "shares": self.shares,
            "activity_regularizer": regularizers.serialize(self.activity_regularizer),
        }
        for name in ("kernel", "bias", "compensation"):
            for kind, module in (
                ("initializer", initializers),
                ("regularizer", regularizers),
                ("constraint", constraints),
            ):
                value = getattr(self, f"{name}_{kind}")
                config[f"{name}_{kind}"] = None if value is None else module.serialize(value)
        return {**super().get_config(), **config}


@keras.saving.register_keras_serializable(package="promissing")
class NanDropout(keras.layers.Layer):
    """While training, replace known values by NaN with probability `rate`.

    Ordinary dropout before a NaN-native layer would give known zeros; this layer gives missing
    values. It rescales nothing, because the next layer scales its bias by what is left.

    Parameters
    ----------
    rate : float
        Probability that a value, or a whole group of columns, becomes NaN.
    groups : sequence of int, optional
        The group each column belongs to; the columns of a group vanish together.
    seed : int, optional
        Random seed.
    **kwargs : optional
        As in `keras.layers.Layer`, for example `name` and `dtype`.

    Examples
    --------
    >>> import numpy as np
    >>> from keras import ops
    >>> from promissing.keras import NanDropout
    >>> ops.convert_to_numpy(NanDropout(1.0)(np.ones(3), training=True)).tolist()
    [nan, nan, nan]
    """

    def __init__(
        self,
        rate: float,
        *,
        groups: Sequence[int] | None = None,
        seed: int | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if not 0 <= rate <= 1:
            raise ValueError(
                f"Invalid value received for argument `rate`. Expected a float value between 0 "
                f"and 1. Received: rate={rate}"
            )
        self.rate = rate
        self._layout = None if groups is None else _formula.Layout(len(groups), groups)
        self.groups = None if groups is None else [int(g) for g in groups]
        self.seed = seed
        self.seed_generator = keras.random.SeedGenerator(seed)
        self.supports_masking = True

    def build(self, input_shape: Any) -> None:
        if self._layout is not None and input_shape[-1] != self._layout.n_columns:
            raise ValueError(
                f"`groups` has {self._layout.n_columns} entries but the last dimension of the "
                f"inputs is {input_shape[-1]}. Received: input_shape={tuple(input_shape)}"
            )
        self.built = True

    def call(self, inputs: Any, training: bool = False) -> Any:
        if not training or self.rate == 0:
            return inputs
        inputs = _floats(inputs, self)
        shape = ops.shape(inputs)
        if self._layout is not None:
            shape = (*shape[:-1], self._layout.n_features)
        draw = keras.random.uniform(shape, dtype="float32", seed=self.seed_generator)
        if self._layout is not None:
            draw = ops.take(draw, self.groups, axis=-1)
        return ops.where(draw < self.rate, ops.full_like(inputs, float("nan")), inputs)

    def compute_output_shape(self, input_shape: Any) -> Any:
        return input_shape

    def get_config(self) -> dict[str, Any]:
        config = {"rate": self.rate, "groups": self.groups, "seed": self.seed}
        return {**super().get_config(), **config}


def _refuse_sparse(inputs: Any) -> None:
    """Raise for the sparse and ragged tensors of Keras, its backends and SciPy."""
    names = {kind.__name__ for kind in type(inputs).__mro__}
    layout = str(getattr(inputs, "layout", ""))  # of a tensor of PyTorch
    if (
        names & {"SparseTensor", "IndexedSlices", "JAXSparse", "spmatrix", "sparray"}
        or layout.startswith("torch.sparse")
        or getattr(inputs, "sparse", False)
    ):
        kind = "sparse"
    elif "RaggedTensor" in names or getattr(inputs, "ragged", False):
        kind = "ragged"
    else:
        return
    raise ValueError(
        f"`NanDense` does not take {kind} inputs. Make them dense. "
        f"Received: {type(inputs).__name__} of shape {tuple(inputs.shape)}"
    )


def _floats(inputs: Any, layer: keras.layers.Layer) -> Any:
    """The inputs as floats, which alone can be missing."""
    if keras.backend.is_float_dtype(inputs.dtype):
        return inputs
    return ops.cast(inputs, layer.compute_dtype)
