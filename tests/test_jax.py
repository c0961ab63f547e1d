import functools

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from cases import cases, spelled_out
from hypothesis import given, settings

from promissing.checks import LAYER_CHECKS, LayerUnderTest
from promissing.jax import apply, init, neutralizers

COMPENSATIONS = ("none", "shared", "feature")


def params_of(kernel, bias, weight, dtype):
    weights = {"kernel": kernel, "bias": bias, "compensation_weight": weight}
    return {name: jnp.asarray(w, dtype) for name, w in weights.items() if w is not None}


def forward(x, kernel, bias, weight, dtype):
    out = apply(params_of(kernel, bias, weight, dtype), jnp.asarray(x, dtype))
    assert out.dtype == dtype
    return np.asarray(out, float)


def gradient(x, kernel, bias, weight, dtype):
    def total(params, x):
        return apply(params, x).sum()

    by_params, by_x = jax.grad(total, argnums=(0, 1))(
        params_of(kernel, bias, weight, dtype), jnp.asarray(x, dtype)
    )
    names = ("kernel", "bias", "compensation_weight")
    return [by_x, *(by_params.get(name) for name in names)]


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float64"])
@pytest.mark.parametrize("compensation", COMPENSATIONS)
@pytest.mark.parametrize("check", LAYER_CHECKS)
def test_contract(check, compensation, dtype):
    with jax.enable_x64(dtype == "float64"):
        check(LayerUnderTest(forward, gradient, compensation, dtype))


@settings(max_examples=15)  # Most of them compile something.
@given(cases(few_shapes=True))
def test_agrees_with_numpy(case):
    params = params_of(*case.weights, "float32")
    call = functools.partial(apply, groups=case.groups, shares=case.shares)
    out = call(params, case.x)
    assert np.abs(out - spelled_out(case)).max(initial=0) <= 1e-6 * case.magnitude
    slopes = jax.grad(lambda params: call(params, case.x).sum())(params)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(slopes))


@pytest.mark.parametrize("compensation", COMPENSATIONS)
def test_jit_vmap_grad_and_scan_together(compensation):
    """Four networks on their own data, trained for a few steps inside one compiled program."""
    keys = jax.random.split(jax.random.key(0), 4)
    params = jax.vmap(lambda key: init(key, 6, 3, compensation=compensation))(keys)
    x = jax.random.normal(jax.random.key(1), (4, 32, 6))
    x = jnp.where(jax.random.bernoulli(jax.random.key(2), 0.3, x.shape), jnp.nan, x)
    y = jnp.nansum(x, axis=-1)

    def loss(params, x, y):
        return jnp.mean((jnp.tanh(apply(params, x)).sum(-1) - jnp.tanh(y)) ** 2)

    @jax.jit
    @jax.vmap
    def train(params, x, y):
        def step(params, _):
            value, slope = jax.value_and_grad(loss)(params, x, y)
            return jax.tree.map(lambda p, g: p - 0.1 * g, params, slope), value

        return jax.lax.scan(step, params, length=50)

    _, losses = train(params, x, y)
    assert np.isfinite(losses).all()
    assert (losses[:, -1] < 0.8 * losses[:, 0]).all()


def test_init_is_glorot_with_the_shared_compensation_as_one_more_row():
    params = init(jax.random.key(0), 5, 4000, compensation="shared")
    assert params["kernel"].shape == (5, 4000)
    assert not params["bias"].any()
    assert np.abs(params["kernel"]).max() <= (6 / 4005) ** 0.5
    assert np.std(params["compensation_weight"]) == pytest.approx((2 / 4006) ** 0.5, rel=0.05)
    grouped = init(jax.random.key(0), 5, 2, compensation="feature", groups=[0, 0, 1, 1, 1])
    assert grouped["compensation_weight"].shape == (2, 2)
    assert not grouped["compensation_weight"].any()


def test_neutralizers_have_one_row_per_neuron():
    params = init(jax.random.key(0), 5, 2) | {"bias": jnp.ones(2)}
    np.testing.assert_allclose(neutralizers(params), -1 / (5 * np.asarray(params["kernel"]).T))


def by_name(params):
    """Label parameters by their names, as optax's documentation does: for dicts only."""
    return {
        name: by_name(value)
        if isinstance(value, dict)
        else "matrix"
        if name == "kernel"
        else "rest"
        for name, value in params.items()
    }


OPTIMIZERS = {
    "adam": lambda: optax.adam(0.05),
    "muon": lambda: optax.contrib.muon(0.05),
    "multi_transform": lambda: optax.multi_transform(
        {"matrix": optax.adamw(0.05), "rest": optax.adam(0.05)}, by_name
    ),
    "masked": lambda: optax.chain(
        optax.masked(
            optax.add_decayed_weights(1e-4),
            lambda params: jax.tree.map(lambda label: label == "matrix", by_name(params)),
        ),
        optax.adam(0.05),
    ),
}


@pytest.mark.parametrize(("compensation", "nested"), [("none", False), ("feature", True)])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizers_of_optax_that_choose_by_name(name, compensation, nested):
    optimizer = OPTIMIZERS[name]()
    params = init(jax.random.key(0), 6, 1, compensation=compensation)
    assert type(params) is dict
    params = {"first": params} if nested else params
    x = jax.random.normal(jax.random.key(1), (32, 6))
    y = x.sum(-1)
    x = jnp.where(jax.random.bernoulli(jax.random.key(2), 0.3, x.shape), jnp.nan, x)

    def loss(params):
        return jnp.mean((apply(params["first"] if nested else params, x)[:, 0] - y) ** 2)

    @jax.jit
    def step(params, state):
        updates, state = optimizer.update(jax.grad(loss)(params), state, params)
        return optax.apply_updates(params, updates), state

    before, state = loss(params), optimizer.init(params)
    for _ in range(10):
        params, state = step(params, state)
    assert loss(params) < before


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda key: init(key, 3, 0), "`units` must be a positive integer. Received: units=0"),
        (lambda key: init(key, 0, 2), "`in_features` must be a positive integer"),
        (lambda key: init(key, 3, 2, compensation="c"), "compensation='c'"),
        (lambda key: init(key, 3, 2, groups=[0]), "each of the 3 columns"),
        (lambda key: apply(init(key, 3, 2), jnp.ones((2, 4))), "must have 3 columns.*Received: 4"),
        (
            lambda key: apply(init(key, 3, 2, compensation="feature"), jnp.ones(3), groups=[0] * 3),
            r"make 1 features, so .* shape \(2,\) or \(1, 2\). Received: \(3, 2\)",
        ),
    ],
)
def test_bad_arguments(call, message):
    with pytest.raises(ValueError, match=message):
        call(jax.random.key(0))
