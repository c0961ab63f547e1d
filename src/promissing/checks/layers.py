"""The contract of a layer.

A layer is described by two functions on NumPy arrays, each a few lines of framework code:

    forward(x, kernel, bias, compensation_weight, dtype) -> output
    gradient(x, kernel, bias, compensation_weight, dtype) -> gradients of the output's sum
                                                             with respect to those arrays

`x` is (..., p) with NaN where a value is missing, `kernel` is (p, s), `bias` is (s,), and
`compensation_weight` is None, (s,) or (p, s) for the compensations "none", "shared" and "feature".
The arrays are float64; `dtype` is the precision in which the layer has to compute: "float32",
"float64" or "bfloat16".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from promissing import _formula

__all__ = ["DTYPES", "LAYER_CHECKS", "LayerUnderTest", "check_layer", "tolerance"]

Array = NDArray[Any]
Weights = tuple[Array, Array, Array | None]
Forward = Callable[[Array, Array, Array, Array | None, str], Array]
Gradient = Callable[[Array, Array, Array, Array | None, str], Iterable[Array | None]]

DTYPES = ("float32", "float64", "bfloat16")


@dataclass(frozen=True)
class LayerUnderTest:
    """A layer in the form that the checks take.

    Parameters
    ----------
    forward : callable
        `forward(x, kernel, bias, compensation_weight, dtype)`, as in `check_layer`.
    gradient : callable, optional
        `gradient(x, kernel, bias, compensation_weight, dtype)`, as in `check_layer`.
    compensation : {"none", "shared", "feature"}, default="none"
        What the layer adds for missing values.
    dtype : {"float32", "float64", "bfloat16"}, default="float32"
        The precision in which the layer computes.

    Examples
    --------
    >>> from promissing.checks import LayerUnderTest
    >>> layer = LayerUnderTest(lambda x, kernel, bias, weight, dtype: x @ kernel + bias)
    >>> kernel, bias, weight = layer.draw(p=5, s=3)
    >>> kernel.shape, bias.shape, weight
    ((5, 3), (3,), None)
    """

    forward: Forward
    gradient: Gradient | None = None
    compensation: str = "none"
    dtype: str = "float32"

    def draw(self, p: int = 5, s: int = 3, seed: int = 0) -> Weights:
        """Draw random weights, none of them near zero.

        Parameters
        ----------
        p : int, default=5
            The number of columns.
        s : int, default=3
            The number of neurons.
        seed : int, default=0
            Random seed.

        Returns
        -------
        tuple of ndarray
            Kernel (p, s), bias (s,) and compensation weight: None, (s,) or (p, s).

        Examples
        --------
        >>> from promissing.checks import LayerUnderTest
        >>> layer = LayerUnderTest(lambda x, *weights: x, compensation="feature")
        >>> [weight.shape for weight in layer.draw(p=2, s=1)]
        [(2, 1), (1,), (2, 1)]
        """
        rng = np.random.default_rng(seed)
        shape = _formula.get_compensation(self.compensation).weight_shape(p, s)
        kernel = _away_from_zero(rng, (p, s))
        bias = _away_from_zero(rng, (s,))
        return kernel, bias, None if shape is None else _away_from_zero(rng, shape)

    def __call__(self, x: Array, weights: Weights) -> Array:
        """Return the output as float64, after a check of its shape."""
        out = np.asarray(self.forward(x, *weights, self.dtype), np.float64)
        expected = (*x.shape[:-1], weights[0].shape[1])
        assert out.shape == expected, f"expected an output of shape {expected}, got {out.shape}"
        return out

    def assert_close(self, actual: Array, expected: Array, why: str) -> None:
        """Raise an AssertionError if two arrays differ by more than the tolerance of `dtype`.

        Parameters
        ----------
        actual : ndarray
            The output of the layer.
        expected : ndarray
            The values to compare it with.
        why : str
            The beginning of the error message.

        Examples
        --------
        >>> import numpy as np
        >>> from promissing.checks import LayerUnderTest
        >>> layer = LayerUnderTest(lambda x, *weights: x)
        >>> layer.assert_close(np.ones(2), np.ones(2) + 1e-7, "the outputs differ")
        """
        tol = tolerance(self.dtype)
        np.testing.assert_allclose(actual, expected, rtol=tol, atol=tol, err_msg=why)


def tolerance(dtype: str) -> float:
    """Return by how much two ways to compute the same sum of a few terms may differ.

    Parameters
    ----------
    dtype : {"float16", "bfloat16", "float32", "float64"}
        The precision of the sum.

    Returns
    -------
    float
        The tolerance, relative and absolute.

    Examples
    --------
    >>> from promissing.checks import tolerance
    >>> tolerance("float64")
    1e-12
    """
    return {"float64": 1e-12, "float32": 2e-6, "bfloat16": 5e-2, "float16": 1e-2}[dtype]


def check_layer(
    forward: Forward,
    gradient: Gradient | None = None,
    *,
    compensation: str = "none",
    dtypes: str | Iterable[str] = DTYPES,
) -> None:
    """Run every check of `LAYER_CHECKS` on a layer.

    Parameters
    ----------
    forward : callable
        `forward(x, kernel, bias, compensation_weight, dtype)`, which returns the output. `x` is
        (..., p) with NaN where a value is missing. All arrays are NumPy arrays of float64; `dtype`
        is the precision in which the layer has to compute.
    gradient : callable, optional
        `gradient(x, kernel, bias, compensation_weight, dtype)`, which returns the gradients of the
        output's sum with respect to the four arrays. By default gradients are not checked.
    compensation : {"none", "shared", "feature"}, default="none"
        What the layer adds for missing values.
    dtypes : str or iterable of str, default=("float32", "float64", "bfloat16")
        The precisions to check.

    Raises
    ------
    AssertionError
        At the first check that fails, with the name of the check and the precision.

    Examples
    --------
    A layer that fills gaps with zero and keeps the whole bias breaks the contract:

    >>> import numpy as np
    >>> from promissing.checks import check_layer
    >>> def zero_imputation(x, kernel, bias, compensation_weight, dtype):
    ...     return np.nan_to_num(x) @ kernel + bias
    >>> check_layer(zero_imputation, dtypes=["float64"])
    Traceback (most recent call last):
        ...
    AssertionError: check_all_missing_row_gives_the_compensation (float64): ...
    """
    _formula.get_compensation(compensation)
    for dtype in [dtypes] if isinstance(dtypes, str) else dtypes:
        layer = LayerUnderTest(forward, gradient, compensation, dtype)
        for check in LAYER_CHECKS:
            try:
                check(layer)
            except Exception as error:
                message = str(error) or type(error).__name__
                raise AssertionError(f"{check.__name__} ({dtype}): {message}") from error


def check_complete_row_is_the_plain_layer(layer: LayerUnderTest) -> None:
    """Propositions 2 and 3: a complete row gives x W + b."""
    weights = layer.draw()
    x = np.random.default_rng(1).normal(size=(4, 5))
    plain = x @ weights[0] + weights[1]
    layer.assert_close(layer(x, weights), plain, "a complete row is not treated as a plain layer")


def check_all_missing_row_gives_the_compensation(layer: LayerUnderTest) -> None:
    """Proposition 1: an empty row gives zero, c, or the sum of the v of all features."""
    *_, weight = weights = layer.draw()
    expected = np.zeros(3) if weight is None else weight.reshape(-1, 3).sum(axis=0)
    # One row has a value: a layer may warn about a batch without any.
    x = np.full((3, 5), np.nan)
    x[1, 2] = 1.0
    out = layer(x, weights)[::2]
    layer.assert_close(out, np.stack([expected] * 2), "a row with nothing observed is off")


def check_gap_is_worth_its_neutralizer(layer: LayerUnderTest) -> None:
    """Eq. 2: a gap gives each neuron the same activation as the neuron's neutralizer."""
    weights = layer.draw()
    x = _with_gaps((6, 5), seed=2)
    rule = _formula.COMPENSATIONS[layer.compensation]
    u = _formula.neutralizers(*weights, _formula.Layout(5), rule, xp=np)
    neurons = [
        np.where(np.isnan(x), u[k], x) @ weights[0][:, k] + weights[1][k] for k in range(len(u))
    ]
    layer.assert_close(layer(x, weights), np.stack(neurons, -1), "a gap is not its neutralizer")


def check_order_of_features_does_not_matter(layer: LayerUnderTest) -> None:
    """A permutation of the features and their weights does not change the output."""
    kernel, bias, weight = weights = layer.draw()
    x = _with_gaps((6, 5), seed=3)
    order = np.random.default_rng(3).permutation(5)
    moved = weight
    if weight is not None and _formula.COMPENSATIONS[layer.compensation].per_feature:
        moved = weight[order]
    out = layer(x[:, order], (kernel[order], bias, moved))
    layer.assert_close(out, layer(x, weights), "the order of the features matters")


def check_no_nan_comes_out(layer: LayerUnderTest) -> None:
    """Outputs and gradients are finite for inputs that are finite or NaN."""
    weights = layer.draw()
    x = np.concatenate([_with_gaps((6, 5), seed=4), np.full((1, 5), np.nan), np.zeros((1, 5))])
    assert np.isfinite(layer(x, weights)).all(), "NaN or inf in the output"
    _assert_finite_gradients(layer, x, weights)


def check_every_weight_learns(layer: LayerUnderTest) -> None:
    """On rows with gaps every weight has a gradient, and the gaps have none."""
    if layer.gradient is None:
        return
    weights = layer.draw()
    x = _with_gaps((6, 5), seed=8)
    by_x, *by_weights = layer.gradient(x, *weights, layer.dtype)
    for name, value in zip(("kernel", "bias", "compensation_weight"), by_weights, strict=True):
        if value is not None:
            assert np.asarray(value, float).all(), f"the gradient of {name} has zeros"
    assert not np.asarray(by_x, float)[np.isnan(x)].any(), "a gap has a gradient"


def check_zero_weights_are_harmless(layer: LayerUnderTest) -> None:
    """Weights of zero, for which no neutralizer exists, give finite outputs and gradients."""
    kernel, bias, weight = layer.draw()
    weights = (np.zeros_like(kernel), bias, weight)
    x = _with_gaps((6, 5), seed=5)
    nothing = np.where(np.isnan(x), np.nan, 0.0)
    layer.assert_close(layer(x, weights), layer(nothing, weights), "zero weights let values pass")
    assert np.isfinite(layer(x, weights)).all(), "zero weights give NaN or inf"
    _assert_finite_gradients(layer, x, weights)


def check_infinity_is_never_an_ordinary_number(layer: LayerUnderTest) -> None:
    """An infinite input gives an output that is not finite, or raises a ValueError."""
    weights = layer.draw()
    for value in (np.inf, -np.inf):
        x = np.array([[1.0, value, np.nan, 2.0, 3.0]])
        try:
            out = layer(x, weights)
        except ValueError:
            continue
        assert not np.isfinite(out).any(), f"{value} went in and a finite number came out"


def check_leading_axes_are_batches(layer: LayerUnderTest) -> None:
    """An input of rank 3 and single rows give the same outputs as an input of rank 2."""
    weights = layer.draw()
    x = _with_gaps((6, 5), seed=6)
    flat = layer(x, weights)
    cube = layer(x.reshape(2, 3, 5), weights)
    layer.assert_close(cube.reshape(6, -1), flat, "rank 3 differs from rank 2")
    rows = np.concatenate([layer(row[None], weights) for row in x])
    layer.assert_close(rows, flat, "a row alone differs from the row in a batch")


def check_one_feature(layer: LayerUnderTest) -> None:
    """A layer with a single feature works for rows with and without it."""
    kernel, bias, weight = weights = layer.draw(p=1)
    gap = np.zeros_like(bias) if weight is None else weight.reshape(-1)
    out = layer(np.array([[2.0], [np.nan]]), weights)
    layer.assert_close(out, np.stack([2 * kernel[0] + bias, gap]), "one feature")


def check_empty_batch(layer: LayerUnderTest) -> None:
    """A batch without rows gives an output without rows."""
    layer(np.empty((0, 5)), layer.draw())


def check_input_is_left_alone(layer: LayerUnderTest) -> None:
    """The layer does not change the caller's array."""
    x = _with_gaps((6, 5), seed=7)
    before = x.copy()
    layer(x, layer.draw())
    np.testing.assert_array_equal(x, before, "the input was modified")


LAYER_CHECKS: tuple[Callable[[LayerUnderTest], None], ...] = (
    check_complete_row_is_the_plain_layer,
    check_all_missing_row_gives_the_compensation,
    check_gap_is_worth_its_neutralizer,
    check_order_of_features_does_not_matter,
    check_no_nan_comes_out,
    check_every_weight_learns,
    check_zero_weights_are_harmless,
    check_infinity_is_never_an_ordinary_number,
    check_leading_axes_are_batches,
    check_one_feature,
    check_empty_batch,
    check_input_is_left_alone,
)


def _assert_finite_gradients(layer: LayerUnderTest, x: Array, weights: Weights) -> None:
    """Raise an AssertionError if a gradient has NaN or inf."""
    if layer.gradient is None:
        return
    names = ("x", "kernel", "bias", "compensation_weight")
    for name, value in zip(names, layer.gradient(x, *weights, layer.dtype), strict=True):
        finite = value is None or np.isfinite(np.asarray(value, float)).all()
        assert finite, f"the gradient of {name} is not finite"


def _away_from_zero(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Draw numbers between 0.5 and 1.5 with random signs."""
    return np.asarray(rng.uniform(0.5, 1.5, shape) * rng.choice([-1.0, 1.0], shape))


def _with_gaps(shape: tuple[int, int], seed: int) -> Array:
    """Draw a normal matrix with 40 % missing values."""
    rng = np.random.default_rng(seed)
    return np.where(rng.random(shape) < 0.4, np.nan, rng.normal(size=shape))
