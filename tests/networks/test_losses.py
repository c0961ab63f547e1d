"""Losses: what they minimise, the prior on an empty row, and predictions of a distribution."""

import numpy as np
import pytest
from scipy.stats import norm, poisson
from sklearn.base import clone

import promissing
from promissing import NanFusionRegressor, NanMLPRegressor
from promissing.networks.losses import (
    REGRESSION_LOSSES,
    Gaussian,
    MeanStd,
    Pinball,
    Poisson,
    SquaredError,
)

LOSSES = sorted(REGRESSION_LOSSES)
EMPTY = np.full((1, 3), np.nan)
SMALL = {"hidden_layer_sizes": (16,), "n_members": 2, "n_bins": 4, "random_state": 0}


def table(n=400, seed=0):
    """Counts that depend on a column, with missing values."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    y = rng.poisson(np.exp(1 + 0.5 * X[:, 0])).astype(float)
    return np.where(rng.random(X.shape) < 0.1, np.nan, X), y


@pytest.fixture(scope="module")
def fitted():
    X, y = table()
    return {loss: NanMLPRegressor(loss=loss, max_iter=20, **SMALL).fit(X, y) for loss in LOSSES}


# ---------------------------------------------------------------------------------- row losses


def test_row_losses_are_what_they_are_called():
    rng = np.random.default_rng(0)
    outputs, y = rng.normal(size=(9, 2)), rng.normal(size=(9, 1))
    nll = -norm.logpdf(y[:, 0], outputs[:, 0], np.exp(outputs[:, 1])) - 0.5 * np.log(2 * np.pi)
    encoded = Gaussian().encode(y[:, 0])
    np.testing.assert_allclose(Gaussian().row_loss(outputs, encoded, xp=np), nll, rtol=1e-5)
    half = 0.5 * (y - outputs)[:, 0] ** 2
    np.testing.assert_allclose(MeanStd().validation_loss(outputs, encoded, xp=np), half, rtol=1e-5)
    counts = rng.poisson(3, size=(9, 1))
    from scipy.special import gammaln

    rate = np.exp(outputs[:, :1])
    nll = -poisson.logpmf(counts, rate)[:, 0] - gammaln(counts[:, 0] + 1)
    np.testing.assert_allclose(Poisson().row_loss(outputs[:, :1], counts, xp=np), nll)
    error, levels = y - outputs, np.array([0.2, 0.7])
    pinball = np.where(error > 0, levels * error, (levels - 1) * error).sum(axis=1)
    np.testing.assert_allclose(Pinball(levels=levels).row_loss(outputs, y, xp=np), pinball)


@pytest.mark.parametrize("loss", LOSSES)
def test_row_losses_of_extreme_outputs_are_finite(loss):
    made = REGRESSION_LOSSES[loss]()
    outputs = np.array([[-1e3], [1e3]]) * np.ones(made.n_outputs)
    with np.errstate(over="raise"):
        assert np.isfinite(made.row_loss(outputs, made.encode(np.ones(2)), xp=np)).all()
        assert np.isfinite(made.decode(np.minimum(outputs, 250))).all()


def test_the_gradient_of_the_mean_is_that_of_the_squared_error_alone():
    import jax
    from jax import numpy as jnp

    from promissing.training.numerics import xp

    rng = np.random.default_rng(0)
    outputs, loss = jnp.asarray(rng.normal(size=(20, 2))), MeanStd()
    y = jnp.asarray(loss.encode(rng.normal(size=20)))
    slope = jax.grad(lambda out: loss.row_loss(out, y, xp=xp).sum())(outputs)
    np.testing.assert_allclose(slope[:, 0], outputs[:, 0] - y[:, 0], rtol=1e-5)
    # The standard deviation is at rest where it is the size of the error.
    right = outputs.at[:, 1].set(jnp.log(jnp.abs(outputs[:, 0] - y[:, 0])))
    slope = jax.grad(lambda out: loss.row_loss(out, y, xp=xp).sum())(right)
    np.testing.assert_allclose(slope[:, 1], 0, atol=1e-6)


# The loss of "mean_std" is no function that has a minimum: see the test above.
@pytest.mark.parametrize("loss", [loss for loss in LOSSES if loss != "mean_std"])
@pytest.mark.parametrize("shape", [(60,), (60, 2)], ids=["one target", "two targets"])
def test_the_prior_has_the_lowest_loss_of_all_constant_outputs(loss, shape):
    rng = np.random.default_rng(1)
    y, weight = rng.gamma(2.0, 3.0, size=shape), rng.uniform(0.5, 2, 60)
    made = REGRESSION_LOSSES[loss]().fitted(y, weight)
    prior = made.prior(y, weight)
    assert prior.shape == (made.n_outputs,)
    best = made.prior_outputs(prior)

    def mean_loss(outputs, targets, weights):
        rows = np.broadcast_to(outputs, (len(targets), len(outputs)))
        return np.average(made.row_loss(rows, targets, xp=np), weights=weights)

    targets, shares = made.prior_targets(prior)
    assert shares.sum() == pytest.approx(1)
    for k in range(made.n_outputs):
        for step in (-0.3, 0.3):
            moved = best + step * (np.arange(made.n_outputs) == k)
            assert (
                mean_loss(moved, made.encode(y), weight)
                > mean_loss(best, made.encode(y), weight) - 2e-3
            )
            assert mean_loss(moved, targets, shares) >= mean_loss(best, targets, shares) - 1e-6


def test_losses_compare_by_what_a_compiled_program_depends_on():
    y = np.arange(5.0)
    assert SquaredError() == SquaredError().fitted(y, np.ones(5))
    assert hash(Pinball(levels=(0.1, 0.9))) != hash(Pinball(levels=(0.2, 0.9)))
    assert SquaredError() != Gaussian()


# ---------------------------------------------------------------------------------- estimators


@pytest.mark.parametrize("loss", LOSSES)
def test_an_empty_row_predicts_the_prior(fitted, loss):
    model, (_, y) = fitted[loss], table()
    if loss == "quantile":
        expected = np.quantile(y, model._loss.levels, method="hazen")
        np.testing.assert_allclose(model.predict_quantiles(EMPTY)[0], expected, atol=0.51)
        np.testing.assert_allclose(model.predict_quantiles(EMPTY)[0, 2], model.prior_[0])
        return
    np.testing.assert_allclose(model.predict(EMPTY), y.mean())
    np.testing.assert_allclose(model.prior_, [y.mean()])
    if loss in ("gaussian", "mean_std"):
        mean, std = model.predict(EMPTY, return_std=True)
        np.testing.assert_allclose([mean[0], std[0]], [y.mean(), y.std()])


@pytest.mark.parametrize("loss", LOSSES)
def test_a_saved_model_predicts_the_same(fitted, loss, tmp_path):
    model, (X, _) = fitted[loss], table()
    model.save(tmp_path / "model.safetensors")
    again = promissing.load(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert again.recipe_ == model.recipe_
    if loss in ("quantile", "gaussian"):
        np.testing.assert_array_equal(again.predict_quantiles(X), model.predict_quantiles(X))


def test_a_loss_object_is_saved_with_its_levels(tmp_path):
    X, y = table(120)
    model = NanMLPRegressor(loss=Pinball(levels=(0.1, 0.9)), max_iter=2, **SMALL).fit(X, y)
    model.save(tmp_path / "model.safetensors")
    again = promissing.load(tmp_path / "model.safetensors")
    assert again.loss == clone(model).loss == Pinball(levels=(0.1, 0.9))
    np.testing.assert_array_equal(again.predict_quantiles(X), model.predict_quantiles(X))


def test_poisson_predictions_are_positive_and_learn_the_rate(fitted):
    X, _ = table()
    predicted = fitted["poisson"].predict(X)
    assert (predicted > 0).all()
    known = ~np.isnan(X[:, 0])
    assert np.corrcoef(np.log(predicted[known]), X[known, 0])[0, 1] > 0.9


def test_the_gaussian_deviation_follows_the_noise():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 1))
    scale = np.where(X[:, 0] > 0, 2.0, 0.2)
    y = 10 + scale * rng.normal(size=len(X))
    model = NanMLPRegressor(loss="gaussian", **SMALL).fit(X, y)
    _, std = model.predict([[1.0], [-1.0]], return_std=True)
    np.testing.assert_allclose(std, [2.0, 0.2], rtol=0.35)
    low, middle, high = model.predict_quantiles([[1.0]])[0]
    assert low < middle < high
    assert high - low == pytest.approx(2 * 1.645 * std[0], rel=1e-3)


def test_quantiles_cover_what_they_should_and_never_cross(fitted):
    model, (X, y) = fitted["quantile"], table(2000, seed=1)
    quantiles = model.predict_quantiles(X)
    assert (np.diff(quantiles, axis=1) >= 0).all()
    covered = (y[:, None] <= quantiles).mean(axis=0)
    np.testing.assert_allclose(covered[[1, 3]], [0.25, 0.75], atol=0.12)
    np.testing.assert_allclose(model.predict(X), quantiles[:, 2])
    between = model.predict_quantiles(X, [0.5, 0.6])
    np.testing.assert_allclose(
        between[:, 1], quantiles[:, 2] + 0.4 * (quantiles[:, 3] - quantiles[:, 2])
    )


@pytest.mark.parametrize("loss", LOSSES)
def test_several_targets_and_modalities(loss):
    X, y = table(120)
    model = NanFusionRegressor(
        {"a": [0], "b": [1, 2]}, loss=loss, n_members=2, max_iter=2, random_state=0
    ).fit(X, np.c_[y, 2 * y])
    assert model.predict(X).shape == (120, 2)
    assert model.decision_by_modality(X)["a"].shape == (120, 2)
    if loss == "gaussian":
        assert model.predict(X, return_std=True)[1].shape == (120, 2)
    if loss == "quantile":
        assert model.predict_quantiles(X).shape == (120, 2, 5)


def test_training_continues_with_the_same_loss():
    X, y = table(120)
    model = NanMLPRegressor(loss="gaussian", **SMALL).partial_fit(X[:60], y[:60])
    model.partial_fit(X[60:], y[60:])
    np.testing.assert_allclose(model.predict(EMPTY), y.mean())
    with pytest.raises(ValueError, match="`loss` was changed since the model was fitted"):
        model.set_params(loss="squared_error").partial_fit(X, y)


def test_the_gaussian_prior_of_several_calls_is_that_of_all_rows():
    X, _ = table(120)
    y = np.random.default_rng(0).normal(size=120) + np.repeat([0.0, 100.0], 60)
    model = NanMLPRegressor(loss="gaussian", **SMALL)
    for half in (slice(60), slice(60, None)):
        model.partial_fit(X[half], y[half])
    mean, std = model.predict(EMPTY, return_std=True)
    np.testing.assert_allclose([mean[0], std[0]], [y.mean(), y.std()], rtol=1e-5)
    constant = NanMLPRegressor(loss="gaussian", max_iter=2, **SMALL).fit(X, np.full(120, 3.0))
    assert constant.predict(X[:2], return_std=True)[1].tolist() == [0, 0]


# ----------------------------------------------------------------------------------- bad input


def test_a_loss_of_the_user_is_not_saved_as_another(tmp_path):
    class Mine(Pinball):
        pass

    X, y = table(60)
    model = NanMLPRegressor(loss=Mine(), max_iter=2, **SMALL).fit(X, y)
    with pytest.raises(ValueError, match="the loss Mine cannot be saved.*Pickle"):
        model.save(tmp_path / "model.safetensors")


def test_negative_validation_counts_are_refused():
    X, y = table(60)
    with pytest.raises(ValueError, match="at least 0. `y_val` holds -1"):
        NanMLPRegressor(loss="poisson", **SMALL).fit(X, y, X_val=X[:5], y_val=-np.ones(5))


def test_a_loss_without_a_distribution_says_which_one_has_it(fitted):
    X, _ = table(5)
    with pytest.raises(
        ValueError, match="'squared_error' provides no standard deviation.*mean_std"
    ):
        fitted["squared_error"].predict(X, return_std=True)
    with pytest.raises(ValueError, match="'poisson' provides no quantiles.*quantile"):
        fitted["poisson"].predict_quantiles(X)
    with pytest.raises(ValueError, match="quantiles from 0.05 to 0.95.*0.99"):
        fitted["quantile"].predict_quantiles(X, [0.5, 0.99])
    for wrong in (1.5, np.array([0.0, 0.5]), []):
        with pytest.raises(ValueError, match="`quantiles` must be numbers between 0 and 1"):
            fitted["quantile"].predict_quantiles(X, wrong)


@pytest.mark.parametrize(
    ("loss", "y", "message"),
    [
        ("huber", np.ones(9), "`loss` must be one of 'mean_std', .*Received: loss='huber'"),
        ("poisson", -np.ones(9), "needs targets of at least 0. `y` holds -1"),
        ("poisson", np.zeros(9), "All values of `y` are 0"),
        ("poisson", np.c_[np.ones(9), np.zeros(9)], "All values of `y` in column 1 are 0"),
    ],
)
def test_bad_losses_and_targets_are_named(loss, y, message):
    with pytest.raises(ValueError, match=message):
        NanMLPRegressor(loss=loss).fit(np.zeros((9, 1)), y)
    with pytest.raises(ValueError, match="`levels` must be increasing numbers between 0 and 1"):
        Pinball(levels=(0.9, 0.1))
    with pytest.raises(ValueError, match="that enclose 0.5"):
        Pinball(levels=(0.8, 0.9))
