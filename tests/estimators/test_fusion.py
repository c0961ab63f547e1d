import json
import pickle
import subprocess
import sys
import warnings
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pandas as pd
import polars as pl
import pytest
from cases import Case, spelled_out
from engine import LOSSES, train
from safetensors import safe_open
from safetensors.numpy import save_file
from scipy.special import log_softmax, softmax
from sklearn.compose import make_column_selector
from sklearn.metrics import roc_auc_score

import promissing
from promissing import _formula
from promissing.estimators import persistence as persist
from promissing.estimators.base import _resample
from promissing.estimators.fusion import PAPER, NanFusionClassifier, NanFusionRegressor
from promissing.estimators.modalities import PAPER_UNITS
from promissing.networks.base import evaluate, stack
from promissing.networks.fusion import Fusion
from promissing.training.augmentation import draw_lost
from promissing.training.train import Data

COMPENSATIONS = ("none", "shared", "feature")

# ---------------------------------------------------------------------------------- the network

# Seven columns in mixed order: features 0, 1 and 4 of modality 0, 2 and 3 of modality 1; feature 3
# has two columns, and the last column belongs to no modality.
COLUMNS = {"modalities": (0, 1, 0, 1, 1, 0, -1), "groups": (0, 2, 1, 3, 3, 4, 5)}
UNITS = (3, 2)


def network(compensation="none", loss="softmax", **changed):
    return Fusion(
        7, 2, LOSSES[loss], **COLUMNS | {"units": UNITS, "compensation": compensation} | changed
    )


def random_params(net, seed=0):
    rng = np.random.default_rng(seed)
    return {name: rng.normal(size=shape) for name, shape in net.shapes().items()}


def rows(n=30, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 7))
    x[rng.random((n, 7)) < 0.4] = np.nan
    x[:, 4] = np.where(np.isnan(x[:, 3]), np.nan, rng.normal(size=n))  # One feature.
    x[0] = np.nan
    x[1, [0, 2, 5]] = np.nan  # The whole of modality 0.
    return x


@pytest.mark.parametrize("compensation", COMPENSATIONS)
def test_the_first_layer_is_the_formula_modality_by_modality(compensation):
    net, x = network(compensation), rows()
    params = random_params(net)
    together = _formula.activation(x, *net.first_layer(params), xp=np)
    weight = params.get("compensation_weight")
    for columns, features, groups, units in (
        ([0, 2, 5], [0, 1, 4], [0, 1, 2], slice(0, 3)),
        ([1, 3, 4], [2, 3], [0, 1, 1], slice(3, 5)),
    ):
        own = weight
        if weight is not None:
            own = weight[units] if compensation == "shared" else weight[features, units]
        kernel, bias = params["representation_kernel"], params["representation_bias"]
        case = Case(
            x[:, columns], kernel[columns, units], bias[units], own, groups, None, compensation
        )
        np.testing.assert_allclose(together[:, units], spelled_out(case), atol=1e-12)


def test_representations_and_decisions_are_fused():
    net, x = network(), rows()
    params = random_params(net)
    first = _formula.activation(x, *net.first_layer(params), xp=np)
    h = np.maximum(first, 0)
    kernel, bias = params["decision_kernel"], params["decision_bias"]
    parts = [h[:, :3] @ kernel[:3, :2] + bias[:2], h[:, 3:] @ kernel[3:, 2:] + bias[2:]]
    np.testing.assert_allclose(net.decisions(params, x, xp=np), np.stack(parts, axis=1))
    joined = np.concatenate([h, *(softmax(part, axis=1) for part in parts)], axis=1)
    fused = np.maximum(joined @ params["fusion_kernel"] + params["fusion_bias"], 0)
    final = fused @ params["final_kernel"] + params["final_bias"]
    np.testing.assert_allclose(evaluate(net, params, x), final)

    y = np.random.default_rng(0).integers(0, 2, (len(x), 1))
    losses = [-np.take_along_axis(log_softmax(z, axis=1), y, 1)[:, 0] for z in (final, *parts)]
    training = net.row_loss(params, x, y, xp=np, uniform=np.random.default_rng(0).random)
    np.testing.assert_allclose(training, sum(losses))
    # Epochs are judged by what predicts.
    np.testing.assert_allclose(net.row_loss(params, x, y, xp=np), losses[0])


@pytest.mark.parametrize(
    ("compensation", "loss"), [("none", "softmax"), ("shared", "log"), ("feature", "squared")]
)
def test_jax_and_numpy_agree_and_gradients_are_finite(compensation, loss):
    import jax
    import jax.numpy as jnp

    net, x = network(compensation, loss), rows()
    params = random_params(net)
    arrays = {name: jnp.asarray(value, jnp.float32) for name, value in params.items()}
    single = jnp.asarray(x, jnp.float32)
    np.testing.assert_allclose(
        jax.jit(lambda a, x: net.forward(a, x, xp=jnp))(arrays, single),
        evaluate(net, params, x),
        atol=1e-4,
    )
    y = np.random.default_rng(0).integers(0, 2, (len(x), 1 if loss == "softmax" else 2))
    draw = np.random.default_rng(0).random

    def total(arrays):
        return jnp.mean(net.row_loss(arrays, single, y, xp=jnp, dropout=0.3, uniform=draw))

    gradient = jax.jit(jax.grad(total))(arrays)
    assert all(np.isfinite(g).all() for g in gradient.values())
    outside = np.ones((7, 5), bool)
    outside[np.ix_([0, 2, 5], range(3))] = outside[np.ix_([1, 3, 4], range(3, 5))] = False
    assert (np.asarray(gradient["representation_kernel"])[outside] == 0).all()
    assert (np.asarray(gradient["representation_kernel"])[~outside] != 0).any()


@pytest.mark.parametrize("compensation", COMPENSATIONS)
def test_a_neutralizer_in_the_gap_changes_nothing(compensation):
    net, x = network(compensation), rows()
    first = net.first_layer(random_params(net))
    u = _formula.neutralizers(*first, xp=np)
    for neuron, column in ((0, 2), (4, 1)):
        filled = x.copy()
        filled[:, column] = np.where(np.isnan(x[:, column]), u[neuron, column], x[:, column])
        a, b = (_formula.activation(z, *first, xp=np)[:, neuron] for z in (x, filled))
        np.testing.assert_allclose(a, b, atol=1e-12)


def test_every_modality_starts_as_a_network_of_its_own():
    net = Fusion(30, 2, LOSSES["softmax"], modalities=(0,) * 10 + (1,) * 20, units=(40, 8))
    params = net.init(np.random.default_rng(0))
    kernel = params["representation_kernel"]
    assert (kernel[:10, 40:] == 0).all()
    assert (kernel[10:, :40] == 0).all()
    for block, fans in ((kernel[:10, :40], 50), (kernel[10:, 40:], 28)):
        bound = np.sqrt(6 / fans)
        assert 0.9 * bound < np.abs(block).max() <= bound
    decision = params["decision_kernel"]
    assert (decision[:40, 2:] == 0).all()
    assert np.abs(decision[40:, 2:]).max() <= np.sqrt(6 / 10)


def test_a_row_without_anything_known_has_nothing_to_drop():
    net, x = network(), rows()
    params = random_params(net)
    x[0, 6] = 1.0  # A column that is not used.
    rng = np.random.default_rng(0)
    dropped = net.forward(params, x, xp=np, dropout=0.5, uniform=rng.random)
    plain = evaluate(net, params, x)
    np.testing.assert_allclose(dropped[0], plain[0])
    assert not np.allclose(dropped, plain)


def test_dropout_makes_inputs_unknown_or_zero():
    draw = np.random.default_rng(0).random
    x = np.ones((4000, 7))
    x[:, 1] = np.nan
    gone = np.isnan(network()._drops(x, 0.3, draw, np)[0])
    assert (gone[:, 3] == gone[:, 4]).all()  # Two columns of one feature.
    np.testing.assert_allclose(gone.mean(axis=0)[[0, 2, 3, 5]], 0.3, atol=0.03)
    zeros, others = network(input_dropout="zero")._drops(x, 0.3, draw, np)
    assert np.isnan(zeros[:, 1]).all()
    assert set(zeros[:, 0]) == {0.0, 1 / 0.7}
    others = list(others)
    assert [kept.shape[1] for kept in others] == [5, 9, 5]  # Before every other layer.
    for kept in others:
        np.testing.assert_allclose(kept.mean(), 1, atol=0.02)
        assert set(kept.ravel()) == {0.0, 1 / 0.7}


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"modalities": (0, 1)}, "`modalities` must have one entry for each of the 7 columns"),
        ({"units": (3, 2, 1)}, "`modalities` must use every number from 0 to 2"),
        ({"groups": (0, 0, 1, 2, 3, 4, 5)}, "columns of a feature must be of one modality"),
        ({"input_dropout": "x"}, "`input_dropout` must be one of"),
        ({"activation": "x"}, "`activation` must be one of"),
        ({"compensation": "x"}, "`compensation` must be"),
    ],
)
def test_a_network_that_cannot_be(wrong, message):
    with pytest.raises(ValueError, match=message):
        network(**wrong)


def test_prediction_needs_no_jax():
    code = "import sys, promissing.estimators.fusion; assert 'jax' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


# ---------------------------------------------------------------------------------- augmentation


@pytest.fixture(scope="module")
def lost():
    """Subsets of three modalities as numbers 0 to 7, by law."""
    import jax
    import jax.numpy as jnp

    n = 20_000
    mine = SimpleNamespace(key=jnp.uint32(3), hyper={"augment": 1.0}, batches=np.empty((1, n)))

    def draw(*law):
        step = jax.jit(lambda i: draw_lost((0, 1, 2), *law, i, mine))
        return np.bincount(np.asarray(step(0)) @ [1, 2, 4], minlength=8) / n

    return draw


# The sets lost, as bits; 7 is all of them.
def test_any_number_of_modalities_is_lost_equally_often(lost):
    third = [1 / 4, 1 / 12, 1 / 12, 1 / 12, 1 / 12, 1 / 12, 1 / 12, 1 / 4]
    np.testing.assert_allclose(
        lost("number", True), np.array(third)[[0, 1, 2, 4, 3, 5, 6, 7]], atol=0.01
    )
    kept = lost("number", False)
    assert kept[7] == 0
    np.testing.assert_allclose(kept, [1 / 3, *[1 / 9] * 6, 0], atol=0.01)


def test_any_subset_of_modalities_is_lost_equally_often(lost):
    np.testing.assert_allclose(lost("subset", True), 1 / 8, atol=0.01)
    kept = lost("subset", False)
    assert kept[7] == 0
    np.testing.assert_allclose(kept[:7], 1 / 7, atol=0.01)


def test_a_single_modality_is_never_lost_if_one_must_be_kept():
    import jax.numpy as jnp

    mine = SimpleNamespace(key=jnp.uint32(3), hyper={"augment": 1.0}, batches=np.empty((1, 500)))
    for law in ("number", "subset"):
        assert not draw_lost((0, 0), law, False, jnp.int32(0), mine).any()


def test_the_law_reaches_the_batches():
    import jax

    seen = []

    @dataclass(frozen=True)
    class Peeping(Fusion):
        def row_loss(self, params, x, y, *, xp, **rest):
            jax.debug.callback(lambda x: seen.append(np.isnan(x)), x)
            return super().row_loss(params, x, y, xp=xp, **rest)

    net = Peeping(4, 2, LOSSES["softmax"], modalities=(0, 1, 0, 1), units=(2, 2))
    rng = np.random.default_rng(0)
    data = Data(np.ones((400, 4), np.float32), np.ones((400, 1), np.float32), [np.arange(400)])
    settings = {"augment": 1.0, "augment_by": "subset", "augment_empty": False, "units": (0, 1) * 2}
    train(net, stack([net.init(rng)]), data, rngs=[rng], max_epochs=1, **settings)
    jax.effects_barrier()
    gone = np.concatenate(seen)
    assert (gone[:, 0] == gone[:, 2]).all()
    assert not gone.all(axis=1).any()
    np.testing.assert_allclose(gone[:, :2].mean(axis=0), 1 / 3, atol=0.07)
    with pytest.raises(ValueError, match="`augment_by` must be one of"):
        train(net, stack([net.init(rng)]), data, rngs=[rng], **settings | {"augment_by": "x"})


# ---------------------------------------------------------------------------------- the modalities


def frame(n=300, seed=0):
    """Numbers, a flag, text and categories in three modalities; some rows lack a whole one."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "age": rng.normal(50, 10, n),
            "smoker": pd.array(rng.random(n) < 0.4, dtype="boolean"),
            "city": rng.choice(["Ulm", "Bonn", "Kiel"], n),
            "crp": rng.normal(size=n),
            "leuco": rng.normal(size=n),
            "stage": pd.Categorical(rng.choice(["I", "II", "III"], n)),
        }
    )
    logit = 2 * X["crp"] + (X["age"] - 50) / 10 + 2 * (X["city"] == "Ulm") - 2
    y = np.where(logit + rng.logistic(size=n) > 0, "stays", "remits")
    X = X.mask(rng.random(X.shape) < 0.1)
    X.loc[rng.random(n) < 0.2, ["crp", "leuco"]] = np.nan
    return X, y


MODALITIES = {
    "person": ["age", "smoker", "city"],
    "blood": ["crp", "leuco"],
    "disease": ["stage"],
}
POSITIONS = {"person": [0, 1, 2], "blood": [3, 4], "disease": [5]}


@pytest.fixture(scope="module")
def fitted():
    X, y = frame()
    settings = {
        "n_members": 2,
        "augment": True,
        "early_stopping": False,
        "max_iter": 60,
        "random_state": 0,
    }
    return NanFusionClassifier(MODALITIES, learning_rate_init=0.01, **settings).fit(X, y)


def quick(modalities=None, **parameters):
    """One network on all rows without augmentation."""
    usual = {"n_members": 1, "augment": False, "early_stopping": False}
    usual |= {"max_iter": 2, "random_state": 0}
    return NanFusionClassifier(modalities, **usual | parameters)


def skewed(n=300):
    """Six columns in three modalities, complete; a class in four."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 6))
    return X, (X[:, 0] + X[:, 3] + rng.normal(size=n) > 1.15).astype(int)


X, Y = frame(60)
A, B = skewed()
THREE = {"a": [0, 1], "b": [2, 3], "c": [4, 5]}
EMPTY = np.full((1, 6), np.nan)


@pytest.mark.parametrize(
    ("modalities", "found"),
    [
        (None, {"all": [0, 1, 2, 3, 4, 5]}),
        (MODALITIES, POSITIONS),
        (POSITIONS, POSITIONS),
        (
            {"a": "age", "n": make_column_selector(pattern="cr|leu"), "rest": [5, "city", 1]},
            {"a": [0], "n": [3, 4], "rest": [1, 2, 5]},
        ),
        ({"x": "number", "y": "category", "z": "boolean"}, {"x": [0, 3, 4], "y": [2, 5], "z": [1]}),
        ({"x": np.number, "y": lambda X: X.columns[[1, 2, 5]]}, {"x": [0, 3, 4], "y": [1, 2, 5]}),
        ({"x": "float64", "y": ["smoker", "city", "stage"]}, {"x": [0, 3, 4], "y": [1, 2, 5]}),
        ({"x": slice(3), "y": range(3, 6)}, {"x": [0, 1, 2], "y": [3, 4, 5]}),
        ({"x": pd.Index(["age", "city"]), "y": (1, 3, 4, 5)}, {"x": [0, 2], "y": [1, 3, 4, 5]}),
    ],
)
def test_columns_by_name_position_dtype_or_callable(modalities, found):
    from promissing.estimators.modalities import find_columns

    encoder = promissing.TableEncoder().fit(X)
    assert find_columns(modalities, "error", X, encoder) == found
    again = quick(modalities)
    again.encoder_ = encoder
    again._loss = LOSSES["log"]
    again._make_network(X)
    names = {name: X.columns[columns].tolist() for name, columns in found.items()}
    assert again.modality_columns_ == names


@pytest.mark.parametrize(
    ("modalities", "message"),
    [
        (
            {"a": ["age", "weight"]},
            "Modality 'a' names the column 'weight', which X does not.*'age'",
        ),
        ({"a": [0, 6]}, "Modality 'a' names the column 6, which X does not have"),
        ({"a": [True]}, "Modality 'a' names the column True"),
        ({"a": "weight"}, "Modality 'a' is 'weight', which is neither a column of X nor a dtype"),
        ({"a": 1.5}, "Modality 'a' must be columns"),
        ({"a": lambda X: "weight"}, "Modality 'a' names the column 'weight'"),
        ({"a": ["age"], "b": ["city", "age"]}, "Column 'age' is in 'a' and in modality 'b'"),
        ({"a": ["age", 0]}, "Column 'age' is twice in modality 'a'"),
        ({"a": []}, r"Modality 'a' is empty: \[\] selects no column"),
        ({"a": "date"}, "Modality 'a' is empty: 'date' selects no column"),
        (
            {"a": ["age", "smoker"], "b": ["city"]},
            "Columns 'crp', 'leuco', 'stage' are in no.*drop",
        ),
        ({"a": slice(5)}, "Column 'stage' is in no modality.*`remainder=\"modality\"`"),
        ({}, "`modalities` is empty"),
        (["age"], "`modalities` must map names to columns.*Received: list"),
        ({1: ["age"]}, "names of `modalities` must be text. Received: 1"),
    ],
)
def test_bad_modalities_are_named(modalities, message):
    with pytest.raises(ValueError, match=message):
        quick(modalities).fit(X, Y)


def test_an_array_has_no_names():
    with pytest.raises(ValueError, match="names the column 'age'.*X has no names: use positions"):
        quick({"a": ["age"]}).fit(A, B)


def test_columns_in_no_modality_may_be_dropped_or_make_one():
    some = {"a": [0, 1], "b": [2, 3]}
    model = quick(some, remainder="drop", dropout=0.0).fit(A, B)
    assert model.modalities_ == some
    changed = A.copy()
    changed[:, 4:] = np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # A gap in a column that does not matter is no news.
        np.testing.assert_array_equal(model.predict_proba(changed), model.predict_proba(A))
    assert (model.known_share(changed) == 1).all()
    assert set(model.neutralizers_) == {0, 1, 2, 3}
    assert (model.params_["representation_kernel"][:, 4:] == 0).all()
    model.set_params(remainder="modality")._make_network(A)
    assert model.modalities_ == some | {"remainder": [4, 5]}
    with pytest.raises(ValueError, match="called 'remainder', and `modalities` has one of that"):
        quick({"remainder": [0]}, remainder="modality").fit(A, B)
    with pytest.raises(ValueError, match="`remainder` must be one of"):
        quick(some, remainder="keep").fit(A, B)


@pytest.mark.parametrize(
    ("units", "widths"),
    [
        (None, (8, 8, 4)),
        (7, (7, 7, 7)),
        ((1, 2, 3), (1, 2, 3)),
        (np.array([1, 2, 3]), (1, 2, 3)),
        ({"disease": 1, "person": 2, "blood": 3}, (2, 3, 1)),
    ],
)
def test_widths(units, widths):
    from promissing.estimators.modalities import find_units

    assert find_units(units, POSITIONS) == widths


@pytest.mark.parametrize(
    ("units", "message"),
    [
        (0, "`units` must be a positive integer.*units=0"),
        ((1, 2), r"one entry for each of the 3 modalities, \['person', .*Received: 2"),
        ({"person": 1, "urine": 2}, r"Unknown: \['urine'\], lacking: \['blood', 'disease'\]"),
        ((1, 2.5, 3), "`units` must be a positive integer"),
        ("paper", "the paper's 12 modalities. Received: 3"),
        ("wide", "`units` as text must be 'paper'"),
    ],
)
def test_bad_widths(units, message):
    with pytest.raises(ValueError, match=message):
        NanFusionClassifier(MODALITIES, units).fit(X, Y)


def test_the_paper_is_one_argument_away():
    sizes = [20, 6, 7, 11, 1, 67, 34, 30, 5, 1, 9, 20]
    ends = np.cumsum(sizes)
    modalities = {
        f"m{i}": slice(e - s, e) for i, (s, e) in enumerate(zip(sizes, ends, strict=True))
    }
    table = np.random.default_rng(0).normal(size=(40, 211))
    table[:, 19:40] = np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = NanFusionClassifier(modalities, compensation="shared", **PAPER | {"max_iter": 60})
        model.fit(table, np.arange(40) % 3 == 0)
    assert model._network.units == PAPER_UNITS == (10, 10, 5, 5, 2, 10, 10, 10, 5, 2, 5, 5)
    assert model.n_iter_ == 60
    assert model.decision_by_modality(table)["m11"].shape == (40, 2)


# ---------------------------------------------------------------------------------- the estimators


def test_a_frame_with_gaps_categories_and_text(fitted):
    X, y = frame(seed=1)
    assert roc_auc_score(y == "stays", fitted.predict_proba(X)[:, 1]) > 0.8
    assert set(fitted.predict(X)) == {"remits", "stays"}
    assert fitted.modalities_ == POSITIONS
    assert fitted.modality_columns_ == MODALITIES
    assert len(fitted.loss_curve_) == fitted.n_iter_ == 60
    np.testing.assert_allclose(fitted.known_share(X), X.notna().mean(axis=1))
    frame_of_polars = pl.from_pandas(X)
    np.testing.assert_allclose(fitted.predict_proba(frame_of_polars), fitted.predict_proba(X))


def test_every_modality_decides_by_itself(fitted):
    X, y = frame(seed=1)
    says = fitted.decision_by_modality(X)
    assert list(says) == ["person", "blood", "disease"]
    auc = {name: roc_auc_score(y == "stays", p[:, 1]) for name, p in says.items()}
    assert auc["blood"] > 0.65
    assert auc["person"] > 0.65
    assert abs(auc["disease"] - 0.5) < 0.1
    for name, p in says.items():
        np.testing.assert_allclose(p.sum(axis=1), 1)
        others = X.mask(np.tile(~X.columns.isin(MODALITIES[name]), (len(X), 1)))
        np.testing.assert_allclose(fitted.decision_by_modality(others)[name], p)


def test_decisions_are_the_mean_of_the_members(fitted):
    X, _ = frame()
    members = []
    for m in range(2):
        one = pickle.loads(pickle.dumps(fitted))
        one.params_ = {k: v[m : m + 1] for k, v in fitted.params_.items()}
        one.prior_offset_ = fitted.prior_offset_[m : m + 1]
        members.append(one)
    for name, p in fitted.decision_by_modality(X).items():
        each = [one.decision_by_modality(X)[name] for one in members]
        np.testing.assert_allclose(np.mean(each, axis=0), p)
    each = [one.predict_proba(X) for one in members]
    np.testing.assert_allclose(np.mean(each, axis=0), fitted.predict_proba(X))
    np.testing.assert_allclose(np.std(each, axis=0), fitted.spread(X))
    assert fitted.spread(X).max() > 0.01


def test_weights_outside_the_blocks_stay_zero(fitted):
    kernel = fitted.params_["representation_kernel"]
    sees = fitted._network._double.sees.astype(bool)
    assert (kernel[:, ~sees] == 0).all()
    assert (kernel[:, sees] != 0).all()


def test_neutralizers_by_feature(fitted):
    shapes = {name: u.shape for name, u in fitted.neutralizers_.items()}
    one, city, stage = (2, 8, 1), (2, 8, 3), (2, 4, 3)  # Members, neurons, columns.
    by_name = {"age": one, "smoker": one, "city": city, "crp": one, "leuco": one, "stage": stage}
    assert shapes == by_name
    assert all(np.isfinite(u).all() for u in fitted.neutralizers_.values())


def test_with_augmentation_an_empty_row_predicts_the_prior():
    X, y = skewed(500)
    model = NanFusionClassifier(THREE, augment=True, n_members=4, random_state=0).fit(X, y)
    np.testing.assert_allclose(model.prior_, [1 - y.mean(), y.mean()])
    assert 0.2 < y.mean() < 0.3
    np.testing.assert_allclose(model.predict_proba(EMPTY)[0], model.prior_, atol=0.02)
    assert roc_auc_score(y, model.predict_proba(X)[:, 1]) > 0.85
    # The less it knows, the nearer to the prior.
    distance = [
        np.abs(model.predict_proba(np.where(np.arange(6) < k, np.nan, X))[:, 1] - model.prior_[1])
        for k in (0, 2, 4, 6)
    ]
    assert (np.diff(np.mean(distance, axis=1)) < 0).all()


def test_after_resampling_the_prior_is_even():
    X, y = skewed(500)
    settings = {"augment": True, "n_members": 4, "random_state": 0}
    model = NanFusionClassifier(THREE, resample=True, **settings).fit(X, y)
    np.testing.assert_allclose(model.prior_, [0.5, 0.5])
    np.testing.assert_allclose(model.predict_proba(EMPTY)[0], [0.5, 0.5], atol=0.02)


def test_resampling_draws_smaller_classes_again_among_the_rows_trained_on():
    rngs = [np.random.default_rng(s) for s in range(2)]
    number = np.repeat([0, 1, 2], [6, 3, 1])
    mine, held = np.array([0, 1, 2, 3, 6, 7, 9]), np.array([4, 5, 8])
    drawn, weights = _resample(
        [mine, mine], [held, held], number[:, None], np.ones(10), n_classes=3, rngs=rngs
    )
    for some in drawn:
        assert np.bincount(number[some]).tolist() == [4, 4, 4]
        assert set(some) == set(mine)
    assert (drawn[0] != drawn[1]).any()
    # Rows that judge the epochs are weighed as if they had been drawn alike.
    np.testing.assert_allclose(weights[:, held], [[1, 1, 2]] * 2)
    np.testing.assert_allclose(weights[:, mine], 1)


def test_epochs_are_judged_by_the_final_decision_and_balanced_if_training_is():
    train, val = slice(0, 200), slice(200, None)
    model = quick(THREE, resample=True).fit(A[train], B[train], X_val=A[val], y_val=B[val])
    proba = model.predict_proba(A[val])[np.arange(100), B[val]]
    weight = np.where(B[val], np.sum(B[train] == 0) / np.sum(B[train] == 1), 1)
    loss = np.average(-np.log(proba), weights=weight)
    assert loss == pytest.approx(min(model.validation_loss_curve_), rel=1e-3)


def test_priors_by_weights_and_resampling():
    def prior(weight=None, **parameters):
        model = quick(THREE, **parameters)
        model._begin(A, B, weight, resume=False)
        return model.prior_

    np.testing.assert_allclose(prior(), [1 - B.mean(), B.mean()])
    np.testing.assert_allclose(prior(resample=True), [0.5, 0.5])
    np.testing.assert_allclose(prior(class_weight="balanced"), [0.5, 0.5])
    doubled = np.where(B, 2.0, 1.0)
    np.testing.assert_allclose(prior(doubled, resample=True), [1 / 3, 2 / 3])
    np.testing.assert_allclose(prior(resample=True, class_weight={0: 3, 1: 1}), [0.75, 0.25])


def test_what_resampling_cannot_do():
    with pytest.raises(ValueError, match="both balance the classes. Use one"):
        quick(resample=True, class_weight="balanced").fit(A, B)
    with pytest.raises(ValueError, match="`resample` needs all rows at once"):
        quick(resample=True).partial_fit(A, B, classes=[0, 1])
    with pytest.raises(ValueError, match="`resample` is for one label per row"):
        quick(resample=True).fit(A, (A[:, :2] > 0).astype(int))


def test_a_modality_that_is_missing_altogether_just_works():
    X, y = A, B
    some = X.copy()
    some[20:, 4:] = np.nan  # Only a few rows ever have it.
    model = quick(THREE).fit(some, y)
    assert np.isfinite(model.predict_proba(X)).all()
    never = X.copy()
    never[:, 4:] = np.nan
    model.fit(never, y)
    out = model.predict_proba(never)
    assert np.isfinite(out).all()
    np.testing.assert_array_equal(model.predict_proba(X), out)  # It stays unknown for ever.
    constant = model.decision_by_modality(X)["c"]
    np.testing.assert_array_equal(constant, np.tile(constant[:1], (300, 1)))
    lacking = X.copy()
    lacking[:, :2] = np.nan  # Never missing in training.
    assert np.isfinite(model.predict_proba(lacking)).all()


def test_new_gaps_are_named_unless_training_made_some():
    gap = A.copy()
    gap[0, 3] = np.nan
    model = quick(THREE, dropout=0.0).fit(A, B)
    with pytest.warns(UserWarning, match="Column '3' had no missing values in training"):
        model.predict(gap)
    assert not quick(input_dropout="zero")._learns_gaps()
    assert quick(input_dropout="zero", augment=True)._learns_gaps()
    model = quick(THREE, min_known=0.9).fit(A, B)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.predict(A)
        # Dropout of inputs has made missing values in training, so there is no warning.
        assert np.isnan(model.predict_proba(gap)).any(axis=1).tolist() == [True] + [False] * 299


def test_several_classes():
    three = np.array(["a", "b", "c"])[np.clip(np.round(A[:, 0]) + 1, 0, 2).astype(int)]
    settings = {"learning_rate_init": 0.01, "max_iter": 30, "random_state": 0}
    model = NanFusionClassifier(THREE, **settings).fit(A, three)
    assert model.score(A, three) > 0.8
    assert model.decision_by_modality(A)["a"].shape == (300, 3)


def test_regression_with_a_modality_that_knows():
    y = 100 + 10 * A[:, 2]
    model = NanFusionRegressor(THREE, augment=True, learning_rate_init=0.01, random_state=0)
    model.fit(A, y)
    assert model.score(A, y) > 0.8
    says = model.decision_by_modality(A)
    assert says["b"].shape == (300,)
    assert np.corrcoef(says["b"], y)[0, 1] > 0.9
    assert abs(np.corrcoef(says["c"], y)[0, 1]) < 0.3
    assert model.predict(EMPTY)[0] == pytest.approx(y.mean(), abs=0.2 * y.std())


def test_a_weight_of_two_is_a_row_that_occurs_twice():
    """The full batch in the given order, so that nothing but the weights differs."""
    X, y = np.where(np.random.default_rng(1).random((60, 6)) < 0.2, np.nan, A[:60]), B[:60]
    weight = np.random.default_rng(0).permutation([2] * 10 + [1] * 50)
    settings = {"batch_size": 1000, "shuffle": False, "max_iter": 50, "dropout": 0.0}
    models = [quick(THREE, **settings) for _ in range(2)]
    repeated = models[0].fit(X.repeat(weight, 0), y.repeat(weight))
    weighted = models[1].fit(X, y, sample_weight=weight)
    np.testing.assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), atol=1e-3)
    np.testing.assert_allclose(weighted.prior_, repeated.prior_)


def test_going_on():
    X, y = A, B
    model = quick(THREE, warm_start=True).fit(X, y)
    assert len(model.fit(X, y).loss_curve_) == 4
    # Other words for the same columns are no change.
    assert model.set_params(modalities={k: np.array(v) for k, v in THREE.items()}).fit(X, y)
    for changed, name in (
        ({"modalities": {"a": [0], "b": [1, 2, 3], "c": [4, 5]}}, "modalities"),
        ({"units": 5}, "units"),
        ({"fusion_units": 3}, "fusion_units"),
        ({"compensation": "none"}, "compensation"),
    ):
        before = model.get_params()
        with pytest.raises(ValueError, match=f"`{name}` was changed since the model was fitted"):
            model.set_params(**changed).fit(X, y)
        model.set_params(**before)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"augment_by": "x"}, "`augment_by` must be one of"),
        ({"augment_empty": "x"}, "`augment_empty` must be one of"),
        ({"resample": 2}, "`resample` must be one of"),
        ({"fusion_units": 0}, "`fusion_units` must be a positive integer"),
        ({"input_dropout": "x"}, "`input_dropout` must be one of"),
        ({"dropout": 1}, "`dropout` must be at least 0 and less than 1"),
    ],
)
def test_bad_parameters_are_named(wrong, message):
    with pytest.raises(ValueError, match=message):
        quick(**wrong).fit(A, B)


# ---------------------------------------------------------------------------------- files


def test_a_model_comes_back_as_it_was(fitted, tmp_path):
    X, _ = frame(seed=1)
    fitted.save(tmp_path / "m.safetensors")
    again = promissing.load(tmp_path / "m.safetensors")
    assert type(again) is NanFusionClassifier
    assert again.get_params() == fitted.get_params()
    assert again.modalities_ == fitted.modalities_
    np.testing.assert_array_equal(again.predict_proba(X), fitted.predict_proba(X))
    says, said = again.decision_by_modality(X), fitted.decision_by_modality(X)
    np.testing.assert_array_equal(says["blood"], said["blood"])
    X, y = frame()
    assert len(again.partial_fit(X, y).loss_curve_) == 61


def test_columns_found_by_a_callable_are_kept_by_name(tmp_path):
    modalities = {
        "n": make_column_selector(dtype_include="number"),
        "rest": np.array(["smoker", "city", "stage"]),
    }
    model = NanFusionRegressor(modalities, max_iter=2).fit(X, A[:60, :2])
    assert model.decision_by_modality(X)["n"].shape == model.predict(X).shape == (60, 2)
    model.save(tmp_path / "m.safetensors")
    again = NanFusionRegressor.load(tmp_path / "m.safetensors")
    assert again.modalities == {"n": ["age", "crp", "leuco"], "rest": ["smoker", "city", "stage"]}
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d["facts"].update(modalities_={"person": [0, 1, 2], "blood": [3, 4]}),
        lambda d: d["facts"].update(modalities_={**POSITIONS, "disease": [99]}),
        lambda d: d["facts"].update(modalities_=None),
        lambda d: d["network"].update(modalities=[0] * 10),
        lambda d: d["network"].update(groups=[9] * 10),
        lambda d: d["network"].update(units=[10**9] * 3),
    ],
)
def test_files_whose_modalities_do_not_fit_are_refused(fitted, change, tmp_path):
    fitted.save(tmp_path / "m.safetensors")
    with safe_open(tmp_path / "m.safetensors", framework="numpy") as file:
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        document = json.loads(file.metadata()["promissing"])
    change(document)
    metadata = {"promissing": json.dumps(document)}
    metadata["sha256"] = persist._digest(metadata, tensors)
    save_file(tensors, tmp_path / "bad", metadata)
    with pytest.raises(ValueError, match="its parts do not fit together"):
        promissing.load(tmp_path / "bad")


def test_pickle(fitted):
    X, _ = frame()
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.predict_proba(X), fitted.predict_proba(X))


def test_a_second_fit_finds_the_modalities_of_its_own_table():
    model = quick().fit(A[:, :3], B)
    assert model.fit(A, B).modality_columns_ == {"all": list(range(6))}
    assert model.fit(A[:, :2], B).modality_columns_ == {"all": [0, 1]}
