"""NaN-native layers for Keras 3, for every backend."""

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
    """`keras.ops` with the matrix product of the backend.

    With the torch backend, the product of Keras rounds float64 to float32.
    """

    matmul = staticmethod(operator.matmul)

    def __getattr__(self, name: str) -> Any:
        return getattr(ops, name)


_OPS = _Ops()


@keras.saving.register_keras_serializable(package="promissing")
class NanDense(keras.layers.Layer):
    """A dense layer for inputs with missing values, in place of `keras.layers.Dense`.

    A missing value (NaN) adds nothing to a neuron, and the bias is multiplied by the known share
    of the row. A complete row gives the output of `Dense`, up to rounding. A row without known
    values gives zero, or the compensation. Use it as the first layer and pass NaN where a value is
    missing. A process that loads a saved model must `import promissing.keras` first, so that Keras
    knows the layer.

    Parameters
    ----------
    units : int
        The number of neurons.
    activation : str or callable, optional
        The activation function. By default the output is linear.
    use_bias : bool, default=True
        Whether the layer has a bias.
    kernel_initializer, bias_initializer : str or Initializer
        Initial values of kernel and bias, "glorot_uniform" and "zeros" by default.
    kernel_regularizer, bias_regularizer, activity_regularizer : str or Regularizer, optional
        Penalties on the kernel, the bias and the output.
    kernel_constraint, bias_constraint : str or Constraint, optional
        Constraints on the kernel and the bias.
    compensation : {"none", "shared", "feature"}, default="none"
        What the layer adds for missing values:

        - "none" adds nothing: PROMISSING, Eq. 3 of the paper.
        - "shared" adds one learned weight per neuron, times the missing share of the row:
          mPROMISSING, Eq. 5.
        - "feature" adds one learned weight per neuron for every missing feature.
    compensation_initializer : str or Initializer, optional
        Initial values of the compensation. By default a shared compensation is drawn like one more
        row of the kernel, as in the paper, and a compensation per feature starts at zero.
    compensation_regularizer : str or Regularizer, optional
        Penalty on the compensation weights.
    compensation_constraint : str or Constraint, optional
        Constraint on the compensation weights.
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
        In eager mode, if every value of the first training batch of two or more rows is NaN. The
        usual cause is a normalising layer before this one, which turns whole columns into NaN.

    Notes
    -----
    The paper's own layer has a flag `use_c`: `use_c=False` is `compensation="none"` here and
    `use_c=True` is `compensation="shared"`. `set_paper_weights` takes over its weights. In that
    layer the compensation is a row of the kernel and has its regularizer and constraint; here it
    has its own.

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
        if groups is not None or shares is not None:  # Raise errors here, not at build.
            _formula.Layout(len(shares if groups is None else groups), groups, shares)  # type: ignore[arg-type]
        self.groups = None if groups is None else [int(g) for g in groups]
        self.shares = None if shares is None else [float(s) for s in shares]
        self.input_spec = keras.layers.InputSpec(min_ndim=2)
        self.supports_masking = True
        self._checked_batch = False  # Whether a training batch was searched for known values.

    def build(self, input_shape: Any) -> None:
        """Create the weights.

        Parameters
        ----------
        input_shape : tuple of int or None
            The shape of the inputs. The last dimension must be known.

        Examples
        --------
        >>> from promissing.keras import NanDense
        >>> layer = NanDense(4, compensation="shared")
        >>> layer.build((None, 3))
        >>> [tuple(weight.shape) for weight in layer.weights]
        [(3, 4), (4,), (4,)]
        """
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
        default = self._draw_kernel_row if rule.starts_as_kernel_row else "zeros"
        initializer = self.compensation_initializer or default
        shape = rule.weight_shape(self._layout.n_features, self.units)
        self.kernel = self._add("kernel", (p, self.units), self.kernel_initializer)
        self.bias = self._add("bias", (self.units,), self.bias_initializer, self.use_bias)
        self.compensation_weight = self._add("compensation", shape, initializer, shape is not None)
        self.input_spec = keras.layers.InputSpec(min_ndim=2, axes={-1: p})
        self.built = True

    def _add(self, role: str, shape: Any, initializer: Any, wanted: bool = True) -> Any:
        """Add a weight with the regularizer and the constraint of its role, if it is wanted."""
        if not wanted:
            return None
        return self.add_weight(
            name="compensation_weight" if role == "compensation" else role,
            shape=shape,
            initializer=initializer,
            regularizer=getattr(self, f"{role}_regularizer"),
            constraint=getattr(self, f"{role}_constraint"),
        )

    def _draw_kernel_row(self, shape: tuple[int, ...], dtype: Any = None) -> Any:
        """Draw the last row of a kernel that has one more row, as the paper does."""
        rows = self._layout.n_columns + 1
        return self.kernel_initializer((rows, *shape), dtype=dtype)[-1]

    def __call__(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        """Refuse sparse and ragged inputs, then run the layer."""
        _refuse_sparse(inputs)
        return super().__call__(inputs, *args, **kwargs)

    def call(self, inputs: Any, training: bool = False) -> Any:
        """Compute the activations.

        Parameters
        ----------
        inputs : tensor (..., p)
            The inputs, NaN where a value is missing.
        training : bool, default=False
            Whether the layer is being trained. It only decides about the warning.

        Returns
        -------
        tensor (..., units)
            The activations.

        Examples
        --------
        >>> import numpy as np
        >>> from promissing.keras import NanDense
        >>> tuple(NanDense(4)(np.array([[1.0, np.nan, 2.0]])).shape)
        (1, 4)
        """
        inputs = _floats(inputs, self)
        if training and not self._checked_batch:
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
            return  # Values cannot be read while a graph is traced.
        if math.prod(values.shape[:-1]) < 2:
            return
        self._checked_batch = True
        if np.isnan(values).all():
            message = _formula.all_missing_message(
                "NanDense",
                values.shape,
                "BatchNormalization, LayerNormalization and, after `adapt`, Normalization",
            )
            warnings.warn(message, UserWarning, stacklevel=2)

    def compute_output_shape(self, input_shape: Any) -> tuple[int | None, ...]:
        """Return the shape of the output.

        Parameters
        ----------
        input_shape : tuple of int or None
            The shape of the inputs.

        Returns
        -------
        tuple of int or None
            The same shape, with `units` as the last dimension.

        Examples
        --------
        >>> from promissing.keras import NanDense
        >>> NanDense(4).compute_output_shape((None, 3))
        (None, 4)
        """
        return (*input_shape[:-1], self.units)

    def compute_output_spec(self, inputs: Any, training: bool = False) -> keras.KerasTensor:
        """Return the shape and the dtype of the output as a symbolic tensor.

        Parameters
        ----------
        inputs : KerasTensor
            The symbolic inputs.
        training : bool, default=False
            Not used.

        Returns
        -------
        KerasTensor
            The symbolic output.

        Examples
        --------
        >>> import keras
        >>> from promissing.keras import NanDense
        >>> NanDense(4).compute_output_spec(keras.Input((3,))).shape
        (None, 4)
        """
        return keras.KerasTensor(self.compute_output_shape(inputs.shape), dtype=self.compute_dtype)

    def neutralizers(self) -> np.ndarray:
        """Compute the value that each neuron sees in a gap (Eq. 4 of the paper).

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
            The kernel of the paper's layer. With `use_c=True` its last row is the compensation.
        bias : array (units,)
            The bias of the paper's layer.
        as_listed : bool, default=True
            With `use_c=True` the listing in the paper divides the bias by p + 1 where Eq. 5
            divides by p. If True, b / (p + 1) is added to the compensation, so that the
            predictions of the trained layer are kept. If False, the row is used as the w_c of
            Eq. 5.

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
        rows = p + (self.compensation_weight is not None)
        equal = self._layout.column_shares is None
        per_feature = _formula.COMPENSATIONS[self.compensation].per_feature
        if per_feature or not self.use_bias or not equal:
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
        if self.compensation_weight is not None:
            weights.append(kernel[p] + bias / (p + 1) if as_listed else kernel[p])
        self.set_weights(weights)

    def get_config(self) -> dict[str, Any]:
        """Return the arguments of the layer, from which `from_config` makes it again.

        Returns
        -------
        dict
            The arguments by name, in a form that Keras can save.

        Examples
        --------
        >>> from promissing.keras import NanDense
        >>> NanDense(4, compensation="feature").get_config()["compensation"]
        'feature'
        """
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
    """Dropout for inputs with missing values: it replaces known values by NaN while training.

    Ordinary dropout before a NaN-native layer would make zeros, which count as known. This layer
    makes missing values. It does not rescale the other values, because the next layer scales its
    bias by the known share of the row.

    Parameters
    ----------
    rate : float
        Probability that a value, or a whole group of columns, becomes NaN.
    groups : sequence of int, optional
        The group each column belongs to. The columns of a group are dropped together.
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
        """Check that the inputs have one column for each entry of `groups`.

        Parameters
        ----------
        input_shape : tuple of int or None
            The shape of the inputs.

        Examples
        --------
        >>> from promissing.keras import NanDropout
        >>> NanDropout(0.5, groups=[0, 0, 1]).build((None, 3))
        """
        if self._layout is not None and input_shape[-1] != self._layout.n_columns:
            raise ValueError(
                f"`groups` has {self._layout.n_columns} entries but the last dimension of the "
                f"inputs is {input_shape[-1]}. Received: input_shape={tuple(input_shape)}"
            )
        self.built = True

    def call(self, inputs: Any, training: bool = False) -> Any:
        """Replace values by NaN while training.

        Parameters
        ----------
        inputs : tensor (..., p)
            The inputs, NaN where a value is missing.
        training : bool, default=False
            Whether the layer is being trained.

        Returns
        -------
        tensor (..., p)
            The inputs with some values replaced by NaN; outside training the inputs themselves.

        Examples
        --------
        >>> import numpy as np
        >>> from keras import ops
        >>> from promissing.keras import NanDropout
        >>> ops.convert_to_numpy(NanDropout(0.5)(np.ones(2), training=False)).tolist()
        [1.0, 1.0]
        """
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
        """Return the shape of the output.

        Parameters
        ----------
        input_shape : tuple of int or None
            The shape of the inputs.

        Returns
        -------
        tuple of int or None
            The same shape.

        Examples
        --------
        >>> from promissing.keras import NanDropout
        >>> NanDropout(0.5).compute_output_shape((None, 3))
        (None, 3)
        """
        return input_shape

    def get_config(self) -> dict[str, Any]:
        """Return the arguments of the layer, from which `from_config` makes it again.

        Returns
        -------
        dict
            The arguments by name, in a form that Keras can save.

        Examples
        --------
        >>> from promissing.keras import NanDropout
        >>> NanDropout(0.5).get_config()["rate"]
        0.5
        """
        config = {"rate": self.rate, "groups": self.groups, "seed": self.seed}
        return {**super().get_config(), **config}


def _refuse_sparse(inputs: Any) -> None:
    """Raise for the sparse and ragged tensors of Keras, its backends and SciPy."""
    names = {kind.__name__ for kind in type(inputs).__mro__}
    layout = str(getattr(inputs, "layout", ""))  # The attribute of a PyTorch tensor.
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
    """Return the inputs as floats: only floats can be NaN."""
    if keras.backend.is_float_dtype(inputs.dtype):
        return inputs
    return ops.cast(inputs, layer.compute_dtype)
