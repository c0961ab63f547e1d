"""Straight lines: what they are, when they are drawn, and that gaps are pruned on them as well."""

import pickle

import numpy as np
import pandas as pd
import pytest
from engine import LOSSES, run, table
from sklearn.linear_model import RidgeCV

import promissing
from promissing import NanMLPClassifier, NanMLPRegressor
from promissing.estimators import linear_skip as _lines
from promissing.estimators.mlp import PLAIN
from promissing.networks.base import stack
from promissing.networks.mlp import MLP

QUICK = {"n_members": 1, "max_iter": 2, "random_state": 0}


def sums(n=300, seed=0):
    """A target that is a sum of columns with long tails."""
    X = np.exp(1.5 * np.random.default_rng(seed).normal(size=(n, 4)))
    return X, X @ [1.0, 2.0, 3.0, 0.5]


@pytest.mark.parametrize("weighted", [False, True])
def test_ridge_is_that_of_scikit_learn(weighted, monkeypatch):
    monkeypatch.setattr(_lines, "_BLOCK", 64)
    rng = np.random.default_rng(0)
    Z, noise = rng.normal(size=(200, 7)) + 1, rng.normal(size=(200, 2))
    weight = rng.integers(1, 4, 200).astype(float) if weighted else np.ones(200)
    y = Z[:, :2] + noise * [0.1, 3.0]
    y -= np.average(y, axis=0, weights=weight)
    coefs, centre, errors = _lines._ridge(Z, y, weight)
    np.testing.assert_allclose(centre, np.average(Z, axis=0, weights=weight))
    alphas = _lines.PENALTIES * weight.sum()
    for k in range(2):
        oracle = RidgeCV(alphas=alphas, scoring="r2").fit(Z, y[:, k], sample_weight=weight)
        np.testing.assert_allclose(coefs[:, k], oracle.coef_, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(-centre @ coefs[:, k], oracle.intercept_, rtol=1e-9)
        variance = np.cov(y[:, k], aweights=weight, ddof=0)
        np.testing.assert_allclose(1 - errors[k] / variance, oracle.best_score_, rtol=1e-9)


def test_what_is_missing_has_the_mean_of_its_column():
    rng = np.random.default_rng(0)
    Z, y = rng.normal(size=(100, 3)) + 1, rng.normal(size=(100, 1))
    y -= y.mean()
    Z[:30, 1], Z[:, 2] = np.nan, np.nan
    filled = Z.copy()
    filled[:30, 1], filled[:, 2] = np.nanmean(Z[:, 1]), 0.0
    given = _lines._ridge(Z, y, np.ones(100))
    for one, other in zip(given, _lines._ridge(filled, y, np.ones(100)), strict=True):
        np.testing.assert_allclose(one, other)


@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_lines_do_not_depend_on_the_unit_of_weights(scale):
    X, y = sums()
    weight = np.random.default_rng(0).uniform(0.5, 1.5, len(y))
    one, other = (NanMLPRegressor(**QUICK).fit(X, y, w) for w in (weight, scale * weight))
    for name, value in one._fixed.items():
        np.testing.assert_allclose(other._fixed[name], value, rtol=1e-4, atol=1e-5)


def test_lines_go_on_where_a_network_would_end():
    X, y = sums()
    far = 5 * X.max(axis=0, keepdims=True)
    model = NanMLPRegressor(**QUICK).fit(X, y)
    bent = NanMLPRegressor(n_members=1, random_state=0, linear_skip=False).fit(X, y)
    assert bent.score(X, y) > 0.9
    wanted = far @ [1.0, 2.0, 3.0, 0.5]
    np.testing.assert_allclose(model.predict(far), wanted, rtol=0.01)
    assert bent.predict(far) < 0.5 * wanted


def test_only_losss_that_lines_explain_have_one():
    X, y = sums()
    noise = np.random.default_rng(1).normal(size=len(y))
    model = NanMLPRegressor(**QUICK).fit(X, np.c_[noise, y])
    kernel = model.params_["skip_kernel"][0]
    # The outputs are the mean and the standard deviation of both targets.
    assert kernel.shape == (model.encoder_.n_columns_out_, 4)
    assert kernel.any(axis=0).tolist() == [False, False, True, False]
    np.testing.assert_allclose(model._loss.mean[0], noise.mean())
    for other in (
        NanMLPRegressor(**QUICK).fit(X, noise),
        NanMLPRegressor(**QUICK).fit(X, np.ones(len(y))),
        NanMLPRegressor(**QUICK, linear_skip=False).fit(X, y),
        NanMLPRegressor(**QUICK, n_bins=0, n_fine_bins=0).fit(X, y),
        NanMLPRegressor(**PLAIN | {"max_iter": 2}).fit(X, y),
        NanMLPClassifier(**QUICK).fit(X, y > 9),
    ):
        assert not other._network.linear_skip
        assert not other._fixed


def test_where_nothing_is_far_out_a_network_needs_no_line():
    X = np.random.default_rng(0).uniform(size=(300, 4))
    assert not NanMLPRegressor(**QUICK).fit(X, X.sum(axis=1))._network.linear_skip
    X[0, 0] = 2.0  # Five deviations, but lines that end at three are no worse.
    assert not NanMLPRegressor(**QUICK).fit(X, X.sum(axis=1))._network.linear_skip


def test_one_row_far_out_draws_no_line():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 2)), rng.normal(size=200)
    X[0], y[0] = 200.0, 500.0
    assert np.corrcoef(X[:, 0], y)[0, 1] > 0.9
    assert not NanMLPRegressor(**QUICK).fit(X, y)._network.linear_skip


@pytest.mark.parametrize("compensation", ["none", "shared", "feature"])
def test_the_skip_path_prunes_by_the_formula(compensation):
    net = MLP(
        3, 2, LOSSES["squared"], (4,), compensation=compensation, groups=(0, 0, 1), linear_skip=True
    )
    rng = np.random.default_rng(0)
    params = net.init(rng)
    bent = MLP(3, 2, LOSSES["squared"], (4,), compensation=compensation, groups=(0, 0, 1))
    weights = rng.normal(size=(3 + net.n_extras, 2))
    fixed = net.skip_params(weights)
    assert set(net.shapes()) == {*params, *fixed}
    assert all(net.shapes()[name] == value.shape for name, value in fixed.items())
    x = np.array([[1.0, 2.0, 3.0], [np.nan, np.nan, 3.0], [np.nan] * 3])
    along = net.forward(params | fixed, x, xp=np) - bent.forward(params, x, xp=np)
    extra = {
        "none": np.zeros((3, 1)),
        "shared": np.array([[0.0], [0.5], [1.0]]),
        "feature": np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0]]),
    }[compensation]
    expected = np.nan_to_num(x) @ weights[:3] + extra @ weights[3:]
    np.testing.assert_allclose(along, expected, atol=1e-5)


@pytest.mark.parametrize("compensation", ["shared", "feature"])
@pytest.mark.parametrize("telling", [False, True])
def test_nothing_known_is_the_prior_with_lines_too(compensation, telling):
    X, y = sums()
    rare = np.random.default_rng(1).random(len(y)) < 0.25
    frame = pd.DataFrame(X, columns=list("abcd"))
    frame = frame.assign(
        kind=np.where(rare, "rare", "often"), flag=rare, day=pd.to_datetime("2024-01-01"), no=None
    )
    if telling:  # Gaps that all tell the same, and a lot.
        frame[list("abcd")] = frame[list("abcd")].where(frame[list("abcd")] > 0.5)
    frame.loc[5, "a"] = np.nan
    model = NanMLPRegressor(**QUICK, compensation=compensation).fit(frame, y + 50 * rare)
    assert model._network.linear_skip
    nothing = pd.DataFrame(None, index=[0], columns=frame.columns)
    np.testing.assert_allclose(model.predict(nothing), model.prior_, rtol=1e-3)
    line = model._network.skip(
        model._fixed,
        model._network.prune(np.full((1, model.encoder_.n_columns_out_), np.nan), xp=np),
        xp=np,
    )
    start = model._loss.decode(line)
    np.testing.assert_allclose(start, model.prior_, rtol=1e-4)


def test_a_single_gap_tells_lines_nothing():
    X, y = sums()
    X[np.argsort(X[:, 2])[-6], 2] = np.nan
    model = NanMLPRegressor(**QUICK).fit(X, y)
    np.testing.assert_allclose(model._fixed["skip_compensation_weight"][2], 0, atol=1e-4)


def test_a_missing_feature_is_an_average_one_on_its_line():
    X, y = sums()
    kind = np.where(np.random.default_rng(0).random(len(X)) < 0.25, "rare", "often")
    frame = pd.DataFrame(X, columns=list("abcd")).assign(kind=kind)
    frame.loc[::9, "kind"] = None
    model = NanMLPRegressor(**QUICK).fit(frame, y + 50 * (kind == "rare"))
    kernel, extra = model._fixed["skip_kernel"], model._fixed["skip_compensation_weight"]
    hot = model.encoder_.groups_ == 4
    seen = frame["kind"].dropna()
    shares = [np.mean(seen == "often"), np.mean(seen == "rare")]
    np.testing.assert_allclose(extra[4], shares @ kernel[hot], rtol=1e-4)
    np.testing.assert_allclose(extra[:4], 0, atol=1e-4)  # Numbers have their mean taken off.


def test_a_first_part_of_the_rows_draws_no_lines():
    X, y = sums()
    assert not NanMLPRegressor(**QUICK).partial_fit(X, y)._network.linear_skip


def test_too_many_columns_draw_no_lines(monkeypatch):
    X, y = sums()
    monkeypatch.setattr(_lines, "MOST_COLUMNS", 4)
    assert NanMLPRegressor(**QUICK).fit(X, y)._network.linear_skip
    monkeypatch.setattr(_lines, "MOST_COLUMNS", 3)
    assert not NanMLPRegressor(**QUICK).fit(X, y)._network.linear_skip


def test_lines_are_not_taken_back():
    X, y = sums()
    model = NanMLPRegressor(**QUICK, warm_start=True).fit(X, y).set_params(linear_skip=False)
    with pytest.raises(ValueError, match="`linear_skip` was changed since the model was fitted"):
        model.fit(X, y)
    with pytest.raises(ValueError, match="`linear_skip` must be one of"):
        NanMLPRegressor(linear_skip="no").fit(X, y)


def test_a_model_with_lines_is_kept_and_gone_on_with(tmp_path):
    X, y = sums()
    model = NanMLPRegressor(**QUICK, warm_start=True).fit(X, y)
    model.save(tmp_path / "model.safetensors")
    for again in (
        promissing.load(tmp_path / "model.safetensors"),
        pickle.loads(pickle.dumps(model)),
        model,
    ):
        before = {name: value.copy() for name, value in again.params_.items()}
        np.testing.assert_array_equal(again.predict(X), model.predict(X))
        again.partial_fit(X, y).fit(X, y)
        for name, value in before.items():
            assert np.array_equal(again.params_[name], value) == name.startswith("skip_"), name


def test_what_is_fixed_is_used_and_not_trained():
    X, _ = table()
    net = MLP(4, 1, LOSSES["squared"], (3,), linear_skip=True)
    start = stack([net.init(np.random.default_rng(0))])
    fixed = net.skip_params(np.r_[np.ones((4, 1)), np.zeros((1, 1))])
    target = np.nan_to_num(X).sum(axis=1, keepdims=True)
    trained = run(net, X, target, start=start, max_epochs=1, batch_size=60, learning_rate=1e-6,
                  fixed=fixed)  # fmt: skip
    assert set(trained.params) == set(start)
    rest = net.forward({k: v[0] for k, v in start.items()} | fixed, X, xp=np) - target
    np.testing.assert_allclose(trained.train_loss[0], 0.5 * np.mean(rest**2), rtol=1e-3)
