"""Run once per backend: KERAS_BACKEND=jax, torch or tensorflow."""

import contextlib
import doctest
import inspect
import json
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse
from cases import cases, spelled_out
from hypothesis import given, settings

from promissing import _formula
from promissing.checks import DTYPES, LAYER_CHECKS, LayerUnderTest

keras = pytest.importorskip("keras")

from keras import ops  # noqa: E402

from promissing.keras import NanDense, NanDropout  # noqa: E402

COMPENSATIONS = ("none", "shared", "feature")
BACKEND = keras.backend.backend()


def build(kernel, bias, weight, dtype="float32", groups=None, shares=None):
    compensation = "none" if weight is None else ("shared", "feature")[np.ndim(weight) - 1]
    layer = NanDense(
        kernel.shape[1], compensation=compensation, groups=groups, shares=shares, dtype=dtype
    )
    layer.build((None, kernel.shape[0]))
    layer.set_weights([w for w in (kernel, bias, weight) if w is not None])
    return layer


def numpy_of(tensor):
    return np.asarray(ops.convert_to_numpy(ops.cast(tensor, "float32")), float)


def tensor_of(x, dtype):
    if BACKEND == "torch":  # Keras would round a float64 array to float32 on the way.
        import torch

        return torch.tensor(x, dtype=getattr(torch, dtype))
    return ops.convert_to_tensor(x, dtype)


def in_double(dtype):
    """JAX computes in float64 only where it is told to."""
    if BACKEND != "jax":
        return contextlib.nullcontext()
    import jax

    return jax.enable_x64(dtype == "float64")


def forward(x, kernel, bias, weight, dtype):
    out = build(kernel, bias, weight, dtype)(tensor_of(x, dtype))
    assert keras.backend.standardize_dtype(out.dtype) == dtype
    return np.asarray(ops.convert_to_numpy(out if dtype == "float64" else ops.cast(out, "float32")))


def gradient(x, kernel, bias, weight, dtype):
    slopes = gradient_of(build(kernel, bias, weight, dtype), tensor_of(x, dtype))
    return [numpy_of(slope) for slope in slopes] + [None] * (weight is None)


def gradient_of(layer, x):
    variables = layer.trainable_variables
    if BACKEND == "jax":
        import jax

        def total(values, x):
            out, _ = layer.stateless_call(values, [], x)
            return ops.sum(out)

        by_weights, by_x = jax.grad(total, argnums=(0, 1))([v.value for v in variables], x)
    elif BACKEND == "torch":
        x = x.detach().requires_grad_(True)
        layer(x).sum().backward()
        by_weights, by_x = [v.value.grad for v in variables], x.grad
    else:
        import tensorflow as tf

        with tf.GradientTape() as tape:
            tape.watch(x)
            total = tf.reduce_sum(layer(x))
        by_weights, by_x = tape.gradient(total, ([v.value for v in variables], x))
    return by_x, *by_weights


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("compensation", COMPENSATIONS)
@pytest.mark.parametrize("check", LAYER_CHECKS)
def test_contract(check, compensation, dtype):
    with in_double(dtype):
        check(LayerUnderTest(forward, gradient, compensation, dtype))


@pytest.mark.parametrize("compensation", COMPENSATIONS)
def test_float64_is_exact_with_groups_and_shares(compensation):
    """`ops.matmul` of Keras on torch rounds to float32."""
    rng = np.random.default_rng(0)
    kernel, bias = rng.normal(size=(5, 3)), rng.normal(size=3)
    weight = {"none": None, "shared": rng.normal(size=3), "feature": rng.normal(size=(3, 3))}
    layout = {"groups": [0, 0, 1, 2, 2], "shares": [0.5, 0.3, 0.2]}
    x = np.where(rng.random((6, 5)) < 0.4, np.nan, rng.normal(size=(6, 5)))
    arrays = _formula.Layout(5, **layout).arrays(np, per_feature=True)
    rule = _formula.COMPENSATIONS[compensation]
    expected = _formula.activation(x, kernel, bias, weight[compensation], arrays, rule, xp=np)
    with in_double("float64"):
        layer = build(kernel, bias, weight[compensation], "float64", **layout)
        out = ops.convert_to_numpy(layer(tensor_of(x, "float64")))
    np.testing.assert_allclose(out, expected, rtol=0, atol=1e-14)


@settings(max_examples=15)  # Most of them compile something.
@given(cases(few_shapes=True))
def test_agrees_with_numpy(case):
    layer = build(*case.weights, "float32", case.groups, case.shares)
    out = ops.convert_to_numpy(layer(case.x.astype("float32")))
    assert np.abs(out - spelled_out(case)).max(initial=0) <= 1e-6 * case.magnitude
    slopes = gradient_of(layer, tensor_of(case.x, "float32"))
    assert all(np.isfinite(numpy_of(slope)).all() for slope in slopes)


def table(n=256, p=6, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, p)).astype("float32")
    y = (x.sum(axis=1) > 0).astype("float32")
    return np.where(rng.random(x.shape) < 0.3, np.nan, x).astype("float32"), y


def sequential(**keywords):
    return keras.Sequential(
        [keras.Input((6,)), NanDense(8, "relu", **keywords), keras.layers.Dense(1, "sigmoid")]
    )


def functional(**keywords):
    inputs = keras.Input((6,))
    hidden = NanDense(8, "relu", **keywords)(NanDropout(0.2)(inputs))
    return keras.Model(inputs, keras.layers.Dense(1, "sigmoid")(hidden))


@keras.saving.register_keras_serializable(package="tests")
class Subclassed(keras.Model):
    def __init__(self, **keywords):
        super().__init__()
        self.first = NanDense(8, "relu", **keywords)
        self.last = keras.layers.Dense(1, "sigmoid")

    def call(self, x):
        return self.last(self.first(x))

    def get_config(self):
        return {"compensation": self.first.compensation}


@pytest.mark.parametrize(
    ("make", "compensation"),
    [
        *((sequential, name) for name in COMPENSATIONS),
        *((functional, "feature"), (Subclassed, "feature")),
    ],
)
def test_fit_save_and_load(make, compensation, tmp_path):
    keras.utils.set_random_seed(0)
    x, y = table()
    model = make(compensation=compensation)
    model.compile("adam", "binary_crossentropy")
    history = model.fit(x, y, epochs=4, batch_size=32, verbose=0).history["loss"]
    assert np.isfinite(history).all()
    assert history[-1] < history[0]
    before = model.predict(x, verbose=0)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_allclose(loaded.predict(x, verbose=0), before, atol=1e-6)


def test_a_saved_model_loads_in_a_process_that_only_imports_promissing_keras(tmp_path):
    path = tmp_path / "model.keras"
    model = sequential(compensation="shared", groups=[0, 0, 1, 2, 3, 3])
    model.save(path)
    x, _ = table(n=3)
    code = (
        "import sys, numpy as np, keras, promissing.keras\n"
        "model = keras.saving.load_model(sys.argv[1])\n"
        "x = np.load(sys.argv[2])\n"
        "print(model.predict(x, verbose=0).ravel().tolist())"
    )
    np.save(tmp_path / "x.npy", x)
    command = [sys.executable, "-c", code, str(path), str(tmp_path / "x.npy")]
    out = subprocess.run(command, capture_output=True, text=True, check=False)
    assert out.returncode == 0, out.stderr
    expected = model.predict(x, verbose=0).ravel()
    np.testing.assert_allclose(json.loads(out.stdout.splitlines()[-1]), expected, atol=1e-6)


@pytest.mark.parametrize("policy", ["mixed_float16", "mixed_bfloat16"])
@pytest.mark.parametrize("compensation", COMPENSATIONS)
def test_mixed_precision(policy, compensation):
    x, y = table()
    layer = NanDense(8, "relu", compensation=compensation, groups=[0, 0, 1, 2, 3, 3], dtype=policy)
    model = keras.Sequential([layer, keras.layers.Dense(1, "sigmoid", dtype="float32")])
    model.compile("adam", "binary_crossentropy")
    assert np.isfinite(model.fit(x, y, epochs=2, verbose=0).history["loss"]).all()
    assert keras.backend.standardize_dtype(layer.kernel.dtype) == "float32"
    assert keras.backend.standardize_dtype(layer(x).dtype) == policy.removeprefix("mixed_")


def test_config_round_trip():
    layer = NanDense(
        3,
        activation="tanh",
        kernel_initializer=keras.initializers.HeNormal(seed=1),
        kernel_regularizer="l2",
        bias_constraint="non_neg",
        activity_regularizer="l1",
        compensation="feature",
        compensation_initializer="ones",
        compensation_regularizer=keras.regularizers.L1(0.5),
        compensation_constraint="max_norm",
        groups=(0, 0, 1),
        shares=np.array([0.75, 0.25]),
        name="first",
    )
    config = layer.get_config()
    again = NanDense.from_config(config)
    assert again.get_config() == config
    x = np.array([[1.0, np.nan, 2.0]], "float32")
    assert layer(x).shape == again(x).shape == (1, 3)
    assert layer.get_weights()[2].sum() == 6
    whole = keras.layers.deserialize(keras.layers.serialize(layer))
    assert whole.get_config() == config
    assert len(layer.losses) == 3  # kernel, compensation and activity


def test_takes_every_sensible_argument_of_dense():
    dense = set(inspect.signature(keras.layers.Dense.__init__).parameters)
    ours = set(inspect.signature(NanDense.__init__).parameters)
    assert dense - ours == {"lora_rank", "lora_alpha", "quantization_config"} & dense


def test_a_complete_table_gives_what_dense_gives():
    x = np.random.default_rng(0).normal(size=(5, 4)).astype("float32")
    ours, dense = NanDense(3, "tanh", compensation="shared"), keras.layers.Dense(3, "tanh")
    ours(x), dense(x)
    ours.set_weights([*dense.get_weights(), np.ones(3)])
    np.testing.assert_allclose(numpy_of(ours(x)), numpy_of(dense(x)), atol=1e-6)


def test_symbolic_shapes():
    layer = NanDense(7)
    assert layer.compute_output_shape((None, 5, 3)) == (None, 5, 7)
    assert layer(keras.Input((5, 3))).shape == (None, 5, 7)
    assert NanDropout(0.5)(keras.Input((5, 3))).shape == (None, 5, 3)


def test_without_bias_a_gap_is_only_pruned():
    x, _ = table(n=8)
    layer = NanDense(3, use_bias=False)
    layer.build(x.shape)
    expected = np.nan_to_num(x) @ numpy_of(layer.kernel)
    np.testing.assert_allclose(numpy_of(layer(x)), expected, atol=1e-5)


def test_shared_compensation_starts_as_one_more_row_of_the_kernel():
    layer = NanDense(4000, compensation="shared", kernel_initializer="glorot_uniform")
    layer.build((None, 5))
    weight = numpy_of(layer.compensation_weight)
    assert np.std(weight) == pytest.approx((2 / 4006) ** 0.5, rel=0.05)
    assert np.abs(np.corrcoef(weight, numpy_of(layer.kernel))[0, 1:]).max() < 0.1


def test_neutralizers_in_the_gap_give_the_same_activation():
    x, _ = table(n=6)
    layer = NanDense(3, compensation="shared", bias_initializer="ones", groups=[0, 0, 1, 2, 3, 3])
    layer(x)
    u = layer.neutralizers()
    assert u.shape == (3, 6)
    kernel = numpy_of(layer.kernel)
    literal = np.stack([np.where(np.isnan(x), u[k], x) @ kernel[:, k] + 1 for k in range(3)], 1)
    np.testing.assert_allclose(numpy_of(layer(x)), literal, rtol=1e-4, atol=1e-5)


def listed(x, kernel, bias, use_c):
    """What the paper's listing computes: neutralizers of b over the rows of the kernel."""
    p = x.shape[1]
    if use_c:
        x = np.concatenate([x, np.isnan(x).sum(1, keepdims=True) / p], axis=1)
    out = []
    for k in range(kernel.shape[1]):
        u = -bias[k] / len(kernel) / kernel[:, k]
        out.append(np.where(np.isnan(x), u, x) @ kernel[:, k] + bias[k])
    return np.stack(out, axis=1)


@pytest.mark.parametrize("use_c", [False, True])
def test_weights_of_the_papers_layer_keep_their_predictions(use_c):
    rng = np.random.default_rng(0)
    x, _ = table(n=20)
    kernel, bias = rng.normal(size=(6 + use_c, 3)), rng.normal(size=3)
    layer = NanDense(3, compensation="shared" if use_c else "none")
    layer.build((None, 6))
    layer.set_paper_weights(kernel, bias)
    np.testing.assert_allclose(numpy_of(layer(x)), listed(x, kernel, bias, use_c), atol=1e-4)
    if use_c:
        layer.set_paper_weights(kernel, bias, as_listed=False)
        np.testing.assert_allclose(layer.get_weights()[-1], kernel[-1], rtol=1e-6)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: NanDense(0), "expected a positive integer. Received: units=0"),
        (lambda: NanDense(2.5), "expected a positive integer. Received: units=2.5"),
        (lambda: NanDense(3, compensation=True), '"none", "shared" or "feature".*True'),
        (lambda: NanDense(3, groups=[0, 2]), "no column belongs to feature 1"),
        (lambda: NanDense(3, groups=[0, 0.5, 1]), "whole numbers"),
        (lambda: NanDense(3, groups=["a", "b"]), "whole numbers"),
        (lambda: NanDense(3, shares=[0.5, 0.6]), "must sum to 1"),
        (lambda: NanDense(3, groups=[0, 1])(np.ones((2, 3))), "for each of the 3 columns"),
        (lambda: NanDense(3).build((None, None)), "last dimension.*should be defined"),
        (lambda: NanDense(3).neutralizers(), "needs a built layer"),
        (lambda: NanDense(3).set_paper_weights([], []), "needs a built layer"),
        (lambda: NanDropout(1.1), "between 0 and 1. Received: rate=1.1"),
        (lambda: NanDropout(0.5, groups=[0, 0])(np.ones((2, 3))), "has 2 entries but"),
    ],
)
def test_bad_arguments(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_another_width_than_at_build_is_refused():
    layer = NanDense(3)
    layer(np.ones((2, 4)))
    with pytest.raises(ValueError, match=r"expected axis -1 of input shape to have value 4"):
        layer(np.ones((2, 5)))


def sparse_inputs():
    dense = np.eye(4, dtype="float32")
    yield scipy.sparse.csr_array(dense)
    yield scipy.sparse.coo_matrix(dense)
    if BACKEND == "torch":  # Keras itself refuses Input(sparse=True) there.
        import torch

        yield torch.tensor(dense).to_sparse()
        yield torch.tensor(dense).to_sparse_csr()
        return
    yield keras.Input((4,), sparse=True)
    if BACKEND == "jax":
        from jax.experimental import sparse

        yield sparse.BCOO.fromdense(dense)
        yield sparse.BCSR.fromdense(dense)
    else:
        import tensorflow as tf

        yield tf.sparse.from_dense(dense)


@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support is in beta:UserWarning")
def test_sparse_inputs_are_refused():
    for inputs in sparse_inputs():
        with pytest.raises(ValueError, match="does not take sparse inputs. Make them dense"):
            NanDense(3)(inputs)


def normalised():
    """A model whose `Normalization` was adapted to gaps, and so turns every value into NaN."""
    x, y = table(n=64)
    normalization = keras.layers.Normalization()
    normalization.adapt(x)
    model = keras.Sequential([keras.Input((6,)), normalization, NanDense(1)])
    return model, x, y


ALL_MISSING = "Every value of a training batch.* is NaN.*Normalization.*StandardScaler"


@pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning")
@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")  # of Keras
def test_a_normalising_layer_in_front_is_warned_about_once():
    model, x, y = normalised()
    with pytest.warns(UserWarning, match=ALL_MISSING):
        model(x, training=True)
    model(x, training=True)  # A second warning would be an error.
    model, x, y = normalised()
    model.compile("sgd", "mse", run_eagerly=True)
    with pytest.warns(UserWarning, match=ALL_MISSING):
        model.fit(x, y, epochs=1, verbose=0)


@pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning")
def test_no_warning_at_prediction_of_single_rows_or_after_a_first_batch():
    model, x, y = normalised()
    model.predict(x, verbose=0)
    model(x)
    model(x[:1], training=True)
    layer = NanDense(3)
    layer(x, training=True)
    layer(np.full_like(x, np.nan), training=True)  # Only the first batch is looked at.
    if BACKEND != "torch":  # There, `fit` is eager; a compiled step has no values to look at.
        model.compile("sgd", "mse")
        model.fit(x, y, epochs=1, verbose=0)


def test_paper_weights_that_do_not_fit():
    layer = NanDense(3, compensation="shared")
    layer.build((None, 6))
    with pytest.raises(ValueError, match=r"kernel of shape \(7, 3\).*Received: \(6, 3\)"):
        layer.set_paper_weights(np.ones((6, 3)), np.ones(3))
    layer = NanDense(3, compensation="feature")
    layer.build((None, 6))
    with pytest.raises(ValueError, match="none or shared"):
        layer.set_paper_weights(np.ones((6, 3)), np.ones(3))


def test_dropout_makes_unknowns_while_training_only():
    ones = np.ones((200, 100), "float32")
    drop = NanDropout(0.3, seed=1)
    out = numpy_of(drop(ones, training=True))
    assert np.isnan(out).mean() == pytest.approx(0.3, abs=0.02)
    assert np.nanmax(out) == np.nanmin(out) == 1  # What is left is not rescaled.
    np.testing.assert_array_equal(numpy_of(drop(ones, training=False)), ones)
    assert NanDropout.from_config(drop.get_config()).get_config() == drop.get_config()


def test_dropout_of_groups_loses_their_columns_together():
    gone = np.isnan(
        numpy_of(NanDropout(0.5, groups=[0, 1, 0], seed=1)(np.ones((300, 3)), training=True))
    )
    assert (gone[:, 0] == gone[:, 2]).all()
    assert (gone[:, 0] != gone[:, 1]).any()


def test_integers_and_booleans_are_taken_as_numbers():
    for array in (np.ones((2, 3), "int32"), np.ones((2, 3), bool)):
        layer = NanDense(4)
        expected = numpy_of(layer(np.ones((2, 3), "float32")))
        np.testing.assert_allclose(numpy_of(layer(array)), expected, rtol=1e-6)
        assert np.isnan(numpy_of(NanDropout(1.0)(array, training=True))).all()


def test_examples_in_docstrings():
    import promissing.keras

    result = doctest.testmod(promissing.keras)
    assert result.attempted
    assert not result.failed
