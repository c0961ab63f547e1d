"""The default recipe: what "auto" means, gates, and that ignorance is the prior."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from engine import LOSSES
from plain import classifier, regressor
from sklearn.base import clone
from sklearn.metrics import roc_auc_score

import promissing
from promissing import NanMLPClassifier, NanMLPRegressor
from promissing.estimators import recipe
from promissing.estimators.base import NanEstimator, _with_empty_rows
from promissing.estimators.mlp import PLAIN
from promissing.networks.base import evaluate, evaluate_members, stack
from promissing.networks.fusion import Fusion
from promissing.networks.mlp import MLP


def resolved(loss="log", *, n_rows=10, **params):
    """Resolve the default with some parameters changed."""
    params = NanMLPClassifier().get_params() | params
    return recipe.resolve(params, n_rows=n_rows, loss=LOSSES[loss])


@pytest.mark.parametrize(
    ("n", "batch", "epochs"),
    [
        *(
            (1, 64, 300),
            (100, 64, 150),
            (257, 64, 64),
            (5_000, 64, 64),
            (5_001, 64, 24),
            (10_000, 64, 24),
        ),
        *((16_383, 64, 21), (16_384, 128, 21), (65_535, 128, 12), (65_536, 256, 12)),
        *((20_000, 128, 17), (40_000, 128, 12), (100_000, 256, 12), (10**7, 256, 12)),
    ],
)
def test_auto_follows_from_the_number_of_rows(n, batch, epochs):
    made = resolved().with_rows({"batch_size": "auto", "max_iter": "auto"}, n, n)
    assert (made.batch_size, made.max_iter) == (batch, epochs)
    made = resolved().with_rows({"batch_size": 7, "max_iter": 9}, n, n)
    assert (made.batch_size, made.max_iter) == (7, 9)


@pytest.mark.parametrize("held_out", [False, True])
@pytest.mark.parametrize(("n", "members", "epochs"), [(4_900, 12, 64), (5_200, 8, 24)])
def test_members_and_epochs_go_by_the_rows_given(n, members, epochs, held_out, monkeypatch):
    """Not by those that are left once some are set aside and empty ones are added."""
    told = []

    def train(self, tables, targets, weights, rows, val_rows, **settings):
        told.append((len(rows), settings["options"].max_epochs))
        raise KeyboardInterrupt

    monkeypatch.setattr(NanEstimator, "_train", train)
    X = np.random.default_rng(0).normal(size=(n, 1))
    y = X[:, 0] > 0
    more = {"X_val": X[:50], "y_val": y[:50]} if held_out else {}
    with pytest.raises(KeyboardInterrupt):
        NanMLPClassifier(random_state=0).fit(X, y, **more)
    assert told == [(members, epochs)]


def test_more_networks_for_fewer_rows(tmp_path):
    assert [resolved(n_rows=n).n_members for n in (5_000, 5_001)] == [12, 8]
    assert resolved(n_members=3).n_members == 3
    X, y = data(40, noise=0)
    model = NanMLPClassifier(max_iter=1, warm_start=True, random_state=0).fit(X, y)
    assert model.n_members_ == 12
    assert model.fit(np.tile(X, (150, 1)), np.tile(y, 150)).n_members_ == 12  # It goes on.
    model.save(tmp_path / "m.safetensors")
    again = NanMLPClassifier.load(tmp_path / "m.safetensors")
    assert (again.n_members, again.n_members_) == ("auto", 12)
    assert again.partial_fit(X, y).n_members_ == 12
    assert again.set_params(n_members=12).fit(X, y).n_members_ == 12
    with pytest.raises(ValueError, match="`n_members` was changed"):
        again.set_params(n_members=8).fit(X, y)


def test_rows_are_set_aside_from_a_hundred_on():
    assert [resolved(n_rows=n).early_stopping for n in (99, 100)] == [False, True]
    assert resolved(n_rows=5, early_stopping=True).early_stopping
    assert not resolved(n_rows=5000, early_stopping=False).early_stopping


def test_auto_makes_more_gaps_where_there_are_gaps():
    gaps = np.array([0.0, 0.2, 0.25])
    np.testing.assert_allclose(recipe.augment_others("auto", gaps), [0, 0.1, 0.1])
    np.testing.assert_array_equal(recipe.augment_others("auto", gaps[1:] + 0.1), [0.5, 0.5])
    for few in (0 * gaps, gaps / 2, np.full(2, np.nan)):
        assert recipe.augment_others("auto", few) is None
    for asked, share in ((True, 0.5), (False, 0.0), (0.3, 0.3), (1, 1.0)):
        assert {resolved(loss, augment=asked).augment for loss in ("squared", "log")} == {share}
        assert recipe.augment_others(asked, gaps + 0.25) is None


def test_gaps_of_a_single_column_are_not_many():
    for n_features in (2, 4, 20):
        gaps = np.r_[0.99, np.zeros(n_features - 1)]
        assert recipe.augment_others("auto", gaps) is None


def test_auto_counts_gaps_by_feature_and_leaves_out_what_was_never_observed():
    X, y = labels("binary")
    X[:90, 0] = X[:90, 2] = X[:, 3] = np.nan
    X[:, 1] = np.arange(len(X))
    model = NanMLPClassifier(n_members=1, max_iter=1, random_state=0).fit(X, y)
    given = model._options(model.get_params(), model.encoder_.transform(X)).augmentation
    assert (np.isnan(X[:, [0, 2]]).mean(axis=0) > 0.25).all()
    expected = 0.5 / 3  # Two quarters of three features; the fourth has nothing to lose.
    np.testing.assert_allclose(given.others, [expected, 0, expected, 0])
    assert given.units == model.encoder_.groups_.tolist()


def test_compensations_learn_by_how_rare_a_gap_is():
    gaps = np.array([0.0, 0.5, 0.1, 1e-6, np.nan])

    def rates(rate):
        params = NanMLPClassifier(compensation_rate=rate).get_params()
        return recipe.learning_rate_multipliers(params, gaps).get("compensation_weight")

    np.testing.assert_allclose(rates(2.0)[:, 0], [1, 4, 2 / 0.3, 2 / 0.05, 1])
    assert rates(0.0) is None
    assert not PLAIN["compensation_rate"]


def test_what_rare_gaps_tell_is_learnt():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(800, 30))
    lost = rng.random(X.shape) < 0.05
    y = lost[:, :10].any(axis=1).astype(int)
    X[lost] = np.nan
    found = {}
    for rate in (0.0, 2.0):
        model = NanMLPClassifier(
            compensation_rate=rate, n_members=2, max_iter=6, augment=False, random_state=0
        ).fit(X[:400], y[:400])
        found[rate] = roc_auc_score(y[400:], model.predict_proba(X[400:])[:, 1])
    assert found[2.0] > found[0.0] + 0.1, found


def test_averages_are_of_fit_alone():
    X, y = data(150, noise=0)
    settings = {"n_members": 1, "max_iter": 3, "learning_rate_init": 0.05, "random_state": 0}
    one, other = (NanMLPClassifier(average=a, **settings) for a in (True, False))
    for model in (one, other):
        model.partial_fit(X, y, classes=[0, 1]).partial_fit(X, y)
    np.testing.assert_array_equal(one.predict_proba(X), other.predict_proba(X))
    assert not np.array_equal(one.fit(X, y).predict_proba(X), other.fit(X, y).predict_proba(X))
    assert not PLAIN["average"]


def data(n=400, noise=12, seed=0):
    """Two columns that matter and many that do not; no value is missing."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2 + noise))
    return X, (X[:, 0] * 2 + np.abs(X[:, 1]) > 0.8).astype(int)


@pytest.fixture(scope="module")
def fitted():
    X, y = data(600)
    return NanMLPClassifier(n_members=3, random_state=0).fit(X, y)


def test_nothing_known_is_the_prior(fitted):
    X, y = data(600)
    assert fitted.prior_[1] == pytest.approx(y.mean())
    empty = fitted.predict_proba(np.full((1, X.shape[1]), np.nan))
    np.testing.assert_allclose(empty[0], fitted.prior_, atol=1e-3)


def test_gates_open_for_what_matters(fitted):
    gates = np.abs(1 + fitted.gate_rate * fitted.params_["gate"]).mean(axis=0)
    assert gates[:2].min() > 2 * gates[2:].mean()


def test_gates_shut_noise_out():
    later, truth = data(2000, seed=1)
    gains = []
    for seed in range(3):
        X, y = data(seed=seed + 5)
        scores = []
        for rate in (0.0, 100.0):
            model = NanMLPClassifier(gate_rate=rate, n_members=2, max_iter=20, random_state=seed)
            scores.append(roc_auc_score(truth, model.fit(X, y).predict_proba(later)[:, 1]))
        gains.append(scores[1] - scores[0])
    assert np.mean(gains) > 0.003


def test_a_gated_network_is_a_plain_one_with_other_weights():
    rng = np.random.default_rng(0)
    gated = MLP(4, 1, LOSSES["squared"], hidden=(3,), compensation="feature", groups=(0, 0, 1, 2),
                gate_rate=100.0)  # fmt: skip
    plain = MLP(4, 1, LOSSES["squared"], hidden=(3,), compensation="feature", groups=(0, 0, 1, 2))
    params = gated.init(rng) | {"gate": rng.normal(size=3) / 100}
    factor = 1 + 100 * params["gate"][[0, 0, 1, 2]]
    same = {name: value for name, value in params.items() if name != "gate"}
    same["kernel_0"] = params["kernel_0"] * factor[:, None]
    x = rng.normal(size=(20, 4))
    x[rng.random(x.shape) < 0.4] = np.nan
    np.testing.assert_allclose(evaluate(gated, params, x), evaluate(plain, same, x), rtol=1e-12)


def test_fine_columns_have_gates_of_their_own_that_start_at_a_tenth():
    rng = np.random.default_rng(0)
    fine = (False, True, True, False)
    gated = MLP(
        4, 1, LOSSES["squared"], hidden=(3,), groups=(0, 0, 0, 1), gate_rate=100.0, fine=fine
    )
    plain = MLP(4, 1, LOSSES["squared"], hidden=(3,), groups=(0, 0, 0, 1))
    params = gated.init(rng)
    assert params["gate"].shape == (4,)  # Two for every feature; the last has nothing fine.
    x = rng.normal(size=(50, 4))
    with pytest.raises(ValueError, match="`fine` must have one entry for each of the 4 columns"):
        MLP(4, 1, LOSSES["squared"], fine=(True,))
    for gate in (np.zeros(4), rng.normal(size=4) / 100):
        factor = np.array([1, 0.1, 0.1, 1]) + 100 * gate[[0, 2, 2, 1]]
        same = {name: value for name, value in params.items() if name != "gate"}
        same["kernel_0"] = params["kernel_0"] * factor[:, None]
        got = evaluate(gated, params | {"gate": gate}, x)
        np.testing.assert_allclose(got, evaluate(plain, same, x), rtol=1e-12)


def test_fine_bins_find_what_is_fine(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(1500, 2))
    y = (np.floor(X[:, 0] * 32) % 2).astype(int)
    scores = {}
    for fine in (0, "auto"):
        model = NanMLPClassifier(n_fine_bins=fine, n_members=1, random_state=0).fit(
            X[:1000], y[:1000]
        )
        scores[fine] = roc_auc_score(y[1000:], model.predict_proba(X[1000:])[:, 1])
    assert scores["auto"] > scores[0] + 0.1
    assert not PLAIN["n_fine_bins"]
    gateless = NanMLPClassifier(gate_rate=0, n_members=1, max_iter=1, random_state=0)
    assert not gateless.fit(X, y).encoder_.fine_.any()
    model.save(tmp_path / "m.safetensors")
    back = NanMLPClassifier.load(tmp_path / "m.safetensors")
    np.testing.assert_array_equal(back.predict_proba(X), model.predict_proba(X))


def test_gates_are_part_of_files_neutralizers_and_going_on(tmp_path):
    X, y = data(120, noise=1)
    X[::5, 0] = np.nan
    model = classifier((4,), gate_rate=50.0, max_iter=3, warm_start=True, random_state=0)
    model.fit(X, y)
    model.save(tmp_path / "m.safetensors")
    again = NanMLPClassifier.load(tmp_path / "m.safetensors")
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    kernel = model.params_["kernel_0"][0] * (1 + 50 * model.params_["gate"][0])[:, None]
    rows = model.params_["compensation_weight"][0] - model.params_["bias_0"][0] / 3
    np.testing.assert_allclose(model.neutralizers_[0][0, :, 0], rows[0] / kernel[0], rtol=1e-4)
    before = model.params_["gate"].copy()
    assert not np.array_equal(model.fit(X, y).params_["gate"], before)
    with pytest.raises(ValueError, match="`gate_rate` was changed"):
        model.set_params(gate_rate=10.0).fit(X, y)
    with pytest.raises(ValueError, match="`gate_rate` must be a non-negative number"):
        classifier(gate_rate=-1).fit(X, y)


@pytest.mark.parametrize(
    "network",
    [
        MLP(4, 2, LOSSES["softmax"], hidden=(3, 2), compensation="shared", gate_rate=2.0),
        Fusion(4, 2, LOSSES["softmax"], (0, 0, 1, 1), units=(2, 3), fusion_units=4),
    ],
    ids=["MLP", "Fusion"],
)
def test_members_together_are_members_alone(network):
    rng = np.random.default_rng(0)
    members = [network.init(rng) for _ in range(3)]
    x = rng.normal(size=(10, 4))
    x[rng.random(x.shape) < 0.3] = np.nan
    together = evaluate_members(network, stack(members), x, block=4)
    np.testing.assert_allclose(together, [evaluate(network, one, x) for one in members])


def test_plain_is_one_network_without_extras():
    X, y = data(150, noise=0)
    model = NanMLPRegressor(**PLAIN | {"max_iter": 2}).fit(X, y)
    assert {name: value.shape for name, value in model.params_.items()} == {
        "kernel_0": (1, 2, 100),
        "bias_0": (1, 100),
        "kernel_1": (1, 100, 2),  # Mean and standard deviation.
        "bias_1": (1, 2),
        "compensation_weight": (1, 2, 100),
    }
    assert set(PLAIN) <= set(regressor().get_params())


@pytest.mark.parametrize(
    ("name", "value"), [("max_iter", "many"), ("early_stopping", "never"), ("augment", "much")]
)
def test_other_words_than_auto_are_refused(name, value):
    X, y = data(20)
    with pytest.raises(ValueError, match=f"`{name}` must be .*'auto'"):
        classifier(**{name: value}).fit(X, y)


def labels(kind, n=300, seed=0):
    """Rows, and targets of one kind whose prior is far from even."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    X[rng.random(X.shape) < 0.2] = np.nan
    level = np.nan_to_num(X[:, 0]) + rng.normal(size=n)
    y = {
        "binary": np.where(level > 1, "yes", "no"),
        "classes": np.digitize(level, [0.8, 2.0]),
        "labels": np.c_[level > 1, level < 0.5].astype(int),
        "numbers": 100 + 20 * level,
        "targets": np.c_[level, 5 - 3 * level],
    }
    return X, y[kind]


def assert_empty_row_is_prior(model, n_features):
    empty = np.full((1, n_features), np.nan)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*had no missing values in training")
        found = model.predict_proba(empty) if hasattr(model, "classes_") else model.predict(empty)
    np.testing.assert_allclose(np.ravel(found), np.ravel(model.prior_), rtol=1e-6, atol=2e-6)


def estimator(kind, family="MLP", **given):
    number = kind in ("numbers", "targets")
    name = f"Nan{family}{'Regressor' if number else 'Classifier'}"
    return getattr(promissing, name)(n_members=2, max_iter=2, random_state=0, **given)


@pytest.mark.parametrize("family", ["MLP", "Fusion"])
@pytest.mark.parametrize(
    ("kind", "compensation", "augment"),
    [
        ("binary", "none", 0.1),
        ("classes", "shared", False),
        ("labels", "feature", False),
        ("numbers", "feature", True),
        ("targets", "none", False),
    ],
)
def test_an_empty_row_predicts_the_prior_whatever_the_target(kind, compensation, augment, family):
    X, y = labels(kind)
    weight = np.random.default_rng(1).random(len(y))
    model = estimator(kind, family, augment=augment, compensation=compensation)
    assert_empty_row_is_prior(model.fit(X, y, weight), 4)


@pytest.mark.parametrize("family", ["MLP", "Fusion"])
@pytest.mark.parametrize(("n_rows", "n_features"), [(10, 1000), (150, 400), (5000, 1)])
def test_an_empty_row_predicts_the_prior_whatever_the_size(n_rows, n_features, family):
    rng = np.random.default_rng(n_features)
    X = rng.normal(size=(n_rows, n_features))
    y = np.r_[[0, 1, 2, 3], rng.choice(4, n_rows - 4, p=[0.9, 0.08, 0.01, 0.01])]
    small = {"hidden_layer_sizes": (4,), "n_bins": 2, "n_fine_bins": 0}
    if family == "Fusion":
        small = {"fusion_units": 2, "units": 2}
    model = estimator("classes", family, augment=n_rows > 100, **small)
    assert_empty_row_is_prior(model.fit(X, y), n_features)


def test_an_empty_row_predicts_the_prior_by_default():
    for model, kind in ((NanMLPRegressor, "numbers"), (NanMLPClassifier, "classes")):
        X, y = labels(kind, 60)
        assert_empty_row_is_prior(model(max_iter=3, random_state=0).fit(X, y), 4)


def test_an_empty_row_predicts_the_prior_after_more_rows():
    X, y = labels("classes")
    model = classifier((8,)).partial_fit(X[:50], y[:50], classes=[0, 1, 2, 3])
    assert_empty_row_is_prior(model, 4)
    assert_empty_row_is_prior(model.partial_fit(X[50:], y[50:]), 4)
    np.testing.assert_allclose(model.prior_, np.bincount(y, minlength=4) / len(y))
    warm = classifier((8,), max_iter=2, warm_start=True).fit(X[:50], y[:50])
    assert_empty_row_is_prior(warm.fit(X, y), 4)


def test_the_correction_to_the_prior_leaves_complete_rows_alone():
    X, y = labels("binary")
    model = classifier((8,), max_iter=2, random_state=0).fit(X, y)
    bare = clone(model).set_params(prior_correction=False).fit(X, y)
    complete = ~np.isnan(X).any(axis=1)
    assert_array_equal = np.testing.assert_array_equal
    assert_array_equal(model.predict_proba(X[complete]), bare.predict_proba(X[complete]))
    with pytest.raises(AssertionError):
        assert_empty_row_is_prior(bare, 4)
    with pytest.raises(ValueError, match="`prior_correction` must be one of"):
        classifier(prior_correction="yes").fit(X, y)


def test_a_column_that_was_never_observed_has_no_part_in_the_correction():
    X, y = labels("binary")
    X[:, 3] = np.nan
    model = classifier((8,), max_iter=2, random_state=0).fit(X, y)
    bare = clone(model).set_params(prior_correction=False).fit(X, y)
    seen = ~np.isnan(X[:, :3]).any(axis=1)
    np.testing.assert_array_equal(model.predict_proba(X[seen]), bare.predict_proba(X[seen]))
    assert_empty_row_is_prior(model, 4)


def test_a_table_of_nothing_at_all_teaches_the_prior():
    y = np.arange(40) % 4 == 0
    model = NanMLPClassifier(n_members=2, max_iter=30, random_state=0)
    empty = np.full((40, 3), np.nan)
    np.testing.assert_allclose(model.fit(empty, y).predict_proba(empty)[:, 1], 0.25)


def test_little_known_is_near_the_prior():
    """One feature of many known, and that one noise."""
    X, y = labels("classes", 600)
    model = NanMLPClassifier(n_members=2, random_state=0).fit(X, y)
    row = np.array([[np.nan, np.nan, 0.3, np.nan]])
    np.testing.assert_allclose(model.predict_proba(row)[0], model.prior_, atol=0.1)


def test_a_rare_class_keeps_its_share():
    target = LOSSES["log"]
    prior = np.array([1 - 5e-4, 5e-4])
    np.testing.assert_allclose(target.decode(target.prior_outputs(prior)[None])[0], prior)


def test_networks_start_at_the_prior():
    network = MLP(2, 2, LOSSES["softmax"], hidden=(3,))
    params = stack([network.init(np.random.default_rng(0)) for _ in range(2)])
    network.start_at(params, np.array([1.0, 2.0]))
    np.testing.assert_allclose(params["bias_1"], [[1, 2], [1, 2]])


@pytest.mark.parametrize("kind", ["binary", "classes", "labels", "numbers", "targets"])
def test_outputs_at_rest_mean_the_prior(kind):
    _, y = labels(kind)
    weight = np.linspace(1, 2, len(y))
    model = NanMLPRegressor() if kind in ("numbers", "targets") else NanMLPClassifier()
    target = model._make_loss(y, weight, None)
    prior = target.prior(y, weight)
    decoded = target.decode(target.prior_outputs(prior)[None])
    np.testing.assert_allclose(np.ravel(decoded), target.prior_prediction(prior))
    known, shares = target.prior_targets(prior)
    assert shares.sum() == pytest.approx(1)
    mean = np.average(target.encode(y), axis=0, weights=weight)
    size = len(mean) // 2 if hasattr(target, "scale") else len(mean)  # Behind it are variances.
    np.testing.assert_allclose((shares @ known)[:size], mean[:size], atol=1e-6)


def test_one_row_in_sixteen_is_empty():
    tables = [np.zeros((40, 3), np.float32)]
    targets, weights = np.arange(40.0)[:, None], np.full(40, 2.0)
    rows = [np.arange(40), np.arange(16)]
    known, shares = np.array([[0.0], [1.0]]), np.array([0.25, 0.75])
    rows, targets, weights = _with_empty_rows(
        tables, rows, targets, weights, prior=(known, shares), weight=2.0
    )
    assert np.isnan(tables[1]).all()
    assert tables[1].shape == (2, 3)
    assert [mine[-1] for mine in rows] == [41, 41]
    assert [np.count_nonzero(mine >= 40) for mine in rows] == [4, 4]
    assert targets[40:].tolist() == known.tolist()
    assert 2 * weights[40:].sum() == 3 * 2.0  # Three in 40, of weight 2.
    assert weights[41] == 3 * weights[40]


def test_a_file_whose_network_has_other_columns_is_refused(tmp_path):
    X, y = data(60, noise=0)
    model = classifier((4,), max_iter=2, random_state=0).fit(X, y)
    model._network = replace(model._network, groups=(1, 0))  # Of the same shapes.
    model.save(tmp_path / "m.safetensors")
    with pytest.raises(ValueError, match="the columns are not those of the network"):
        NanMLPClassifier.load(tmp_path / "m.safetensors")


def test_fusion_has_the_defaults_of_the_mlp_where_they_mean_the_same():
    for mlp, fusion in (
        (NanMLPClassifier(), promissing.NanFusionClassifier()),
        (NanMLPRegressor(), promissing.NanFusionRegressor()),
    ):
        for name in ("augment", "n_members", "early_stopping", "alpha", "batch_size", "tol"):
            assert getattr(mlp, name) == getattr(fusion, name), name


@pytest.mark.parametrize(("solver", "alpha"), [("adamw", 1.0), ("adam", 1e-4), ("sgd", 1e-4)])
def test_weight_decay_of_adamw_does_not_become_a_penalty_of_other_solvers(solver, alpha):
    assert resolved(solver=solver).alpha == alpha
    assert resolved(solver=solver, alpha=0.5).alpha == 0.5


def test_the_recipe_shows_what_auto_was():
    X, y = data(150, noise=0)
    model = NanMLPClassifier(max_iter=2, n_members=2, random_state=0).fit(X, y)
    made = model.recipe_
    assert (made.n_members, made.batch_size, made.max_iter) == (2, 64, 2)
    assert (made.augment, made.early_stopping, made.alpha) == (0.1, True, 1.0)
    assert not made.linear_skip
