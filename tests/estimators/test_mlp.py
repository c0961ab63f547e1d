import pickle
import signal
import subprocess
import sys
import time
import warnings

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
from plain import classifier, regressor
from sklearn.base import clone
from sklearn.datasets import make_multilabel_classification
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import roc_auc_score

import promissing
from promissing import NanMLPClassifier, NanMLPRegressor
from promissing.estimators import base


@pytest.fixture(scope="module")
def table():
    """A frame with numbers, a flag, text, a category and a date, and gaps in all of them."""
    rng = np.random.default_rng(0)
    n = 600
    frame = pd.DataFrame(
        {
            "age": rng.normal(50, 10, n),
            "dose": rng.integers(0, 5, n).astype(float),
            "smoker": pd.array(rng.random(n) < 0.4, dtype="boolean"),
            "city": rng.choice(["Ulm", "Bonn", "Kiel"], n),
            "stage": pd.Categorical(rng.choice(["I", "II", "III"], n)),
            "seen": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, n), "D"),
        }
    )
    logit = (frame["age"] - 50) / 3 + 2 * (frame["city"] == "Ulm") - frame["dose"] / 2
    y = np.where(logit + rng.logistic(size=n) > 0, "remits", "stays")
    return frame.mask(rng.random(frame.shape) < 0.2), y


@pytest.fixture(scope="module")
def fitted(table):
    X, y = table
    return classifier((16,), n_members=3, augment=True, max_iter=60, random_state=0).fit(X, y)


def test_a_frame_with_gaps_categories_and_text(table, fitted):
    X, y = table
    assert roc_auc_score(y == "stays", fitted.predict_proba(X)[:, 1]) > 0.85
    assert set(fitted.predict(X)) == {"remits", "stays"}
    assert fitted.classes_.tolist() == ["remits", "stays"]
    assert fitted.feature_names_in_.tolist() == X.columns.tolist()
    assert len(fitted.loss_curve_) == fitted.n_iter_


def test_polars_gives_what_pandas_gives(table, fitted):
    X, _ = table
    frame = pl.from_pandas(X)
    np.testing.assert_allclose(fitted.predict_proba(frame), fitted.predict_proba(X))


def test_probabilities_are_the_mean_of_the_members_and_spread_their_deviation(table, fitted):
    X, _ = table
    members = []
    for m in range(3):
        one = classifier((16,), augment=True)
        one.__dict__.update({k: v for k, v in vars(fitted).items() if k.endswith("_")})
        one.__dict__.update(_loss=fitted._loss, _network=fitted._network, _warned=set())
        one.params_ = {k: v[m : m + 1] for k, v in fitted.params_.items()}
        one.prior_offset_ = fitted.prior_offset_[m : m + 1]
        members.append(one.predict_proba(X))
    np.testing.assert_allclose(fitted.predict_proba(X), np.mean(members, axis=0))
    np.testing.assert_allclose(fitted.spread(X), np.std(members, axis=0))
    assert fitted.spread(X).max() > 0.01


def test_known_share_counts_features_not_columns(table, fitted):
    X, _ = table
    np.testing.assert_allclose(fitted.known_share(X), X.notna().mean(axis=1))


def test_an_empty_row_predicts_the_prior(table, fitted):
    X, y = table
    empty = X.iloc[:1].mask(np.ones((1, 6), bool))
    np.testing.assert_allclose(fitted.prior_, [np.mean(y == "remits"), np.mean(y == "stays")])
    np.testing.assert_allclose(fitted.predict_proba(empty)[0], fitted.prior_, atol=0.05)


def test_neutralizers_by_feature(table, fitted):
    assert {name: u.shape for name, u in fitted.neutralizers_.items()} == {
        "age": (3, 16, 1),
        "dose": (3, 16, 1),
        "smoker": (3, 16, 1),
        "city": (3, 16, 3),
        "stage": (3, 16, 3),
        "seen": (3, 16, 1),
    }


def test_a_neutralizer_in_the_gap_changes_nothing():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 3)), rng.normal(size=200)
    X[::4, 1] = np.nan
    model = regressor((1,), max_iter=20, prior_correction=False, random_state=0).fit(X, y)
    row = np.array([[0.3, np.nan, -0.2]])
    mean, deviation = np.nanmean(X[:, 1]), np.nanstd(X[:, 1])
    filled = row.copy()
    filled[0, 1] = mean + deviation * model.neutralizers_[1][0, 0, 0]
    np.testing.assert_allclose(model.predict(filled), model.predict(row), rtol=1e-6)


@pytest.mark.parametrize("compensation", ["none", "shared", "feature"])
@pytest.mark.parametrize("solver", ["sgd", "adam", "adamw"])
def test_solvers_and_compensations(solver, compensation):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 4))
    y = X[:, 0] - X[:, 1]
    X[rng.random(X.shape) < 0.1] = np.nan
    model = regressor(
        (32,),
        solver=solver,
        compensation=compensation,
        learning_rate_init=0.01,
        random_state=0,
    )
    assert model.fit(X, y).score(X, y) > 0.75


def test_multi_class_multi_label_and_multi_output():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 4))
    three = np.array(["a", "b", "c"])[np.clip(np.round(X[:, 0]) + 1, 0, 2).astype(int)]
    several = X[:, :2] @ rng.normal(size=(2, 3))
    X[rng.random(X.shape) < 0.05] = np.nan
    model = classifier(random_state=0, learning_rate_init=0.01).fit(X, three)
    assert model.predict_proba(X).shape == (500, 3)
    assert model.score(X, three) > 0.85
    labels, flags = make_multilabel_classification(300, 6, n_classes=3, random_state=0)
    model = classifier(random_state=0, learning_rate_init=0.01).fit(labels, flags)
    assert model.predict_proba(labels).shape == model.predict(labels).shape == (300, 3)
    assert (model.predict(labels) == flags).mean() > 0.85
    model = regressor(random_state=0, learning_rate_init=0.01).fit(X, several)
    assert model.predict(X).shape == (500, 3)
    assert model.score(X, several) > 0.7


def test_a_weight_of_two_is_a_row_that_occurs_twice():
    """The full batch in the given order, so that nothing but the weights differs."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 3)), rng.integers(0, 2, 60)
    X[rng.random(X.shape) < 0.2] = np.nan
    weight = rng.integers(0, 4, 60)
    keywords = {
        "batch_size": 1000,
        "shuffle": False,
        "max_iter": 50,
        "random_state": 0,
        "n_bins": 3,
        "n_fine_bins": 5,
    }
    weighted = classifier(**keywords).fit(X, y, sample_weight=weight)
    repeated = classifier(**keywords).fit(X.repeat(weight, 0), y.repeat(weight))
    np.testing.assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), atol=1e-3)
    np.testing.assert_allclose(weighted.prior_, repeated.prior_)


def test_class_weight_moves_the_prior():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 2)), np.arange(300) % 10 == 0
    model = classifier(class_weight="balanced", augment=True, random_state=0).fit(X, y)
    np.testing.assert_allclose(model.prior_, [0.5, 0.5])
    assert model.predict_proba([[np.nan, np.nan]])[0, 1] == pytest.approx(0.5, abs=0.1)


def test_same_seed_same_model(table):
    X, y = table
    models = [classifier((8,), max_iter=5, random_state=s).fit(X, y) for s in (1, 1, 2)]
    first, second, other = (m.predict_proba(X) for m in models)
    np.testing.assert_array_equal(first, second)
    assert not np.allclose(first, other)


def test_early_stopping_keeps_the_best_epoch():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 20))
    y = (X[:, 0] + rng.normal(size=200) > 0).astype(int)
    model = classifier((64,), early_stopping=True, learning_rate_init=0.01, random_state=0)
    model.fit(X, y)
    assert model.n_iter_ < 200
    assert len(model.validation_loss_curve_) == model.n_iter_
    assert min(model.validation_loss_curve_) < model.validation_loss_curve_[-1]


def test_validation_data_of_the_users_own():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    y = (X[:, 0] > 0).astype(int)
    model = classifier(random_state=0, max_iter=30)
    model.fit(X[:300], y[:300], X_val=X[300:], y_val=y[300:])
    assert len(model.validation_loss_curve_) == model.n_iter_
    proba = model.predict_proba(X[300:])[np.arange(100), y[300:]]
    assert -np.log(proba).mean() == pytest.approx(min(model.validation_loss_curve_), rel=1e-3)
    # Judged by rows that say the opposite, learning makes it worse: the first epoch is kept.
    contrary = classifier(random_state=0, max_iter=30)
    contrary.fit(X[:300], y[:300], X_val=X[300:], y_val=1 - y[300:])
    assert np.argmin(contrary.validation_loss_curve_) == 0
    assert contrary.score(X, y) < model.score(X, y)
    with pytest.raises(ValueError, match="`X_val` and `y_val` go together"):
        model.fit(X, y, X_val=X)


def test_partial_fit_learns_a_little_each_time():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 3))
    y = (X[:, 0] > 0).astype(int)
    model = classifier(random_state=0, learning_rate_init=0.01)
    with pytest.raises(ValueError, match="classes must be passed on the first call"):
        model.partial_fit(X, y)
    scores = []
    for _ in range(6):
        model.partial_fit(X, y, classes=[0, 1, 2])
        scores.append(model.score(X, y))
    assert scores[-1] > 0.95
    assert scores[-1] > scores[0]
    assert model.n_iter_ == 1
    assert len(model.loss_curve_) == 6
    assert model.classes_.tolist() == [0, 1, 2]
    with pytest.raises(ValueError, match=r"classes \[7\], which are not among"):
        model.partial_fit(X[:1], [7])


def test_warm_start_goes_on_where_it_ended():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    y = X.sum(axis=1)
    model = regressor(max_iter=10, warm_start=True, random_state=0).fit(X, y)
    first = model.loss_
    model.fit(X, y)
    assert model.loss_curve_[10] < first * 1.05
    assert len(model.loss_curve_) == 20
    assert model.n_iter_ == 10  # As in scikit-learn: the epochs of the last call.
    assert model.loss_ < first


def test_interrupting_keeps_the_best_so_far(monkeypatch):
    from promissing.estimators import base

    class Impatient(base.EpochBar):
        def __call__(self, epoch):
            if epoch.number == 3:
                raise KeyboardInterrupt

    monkeypatch.setattr(base, "EpochBar", Impatient)
    X = np.random.default_rng(0).normal(size=(100, 2))
    with pytest.warns(UserWarning, match="interrupted after epoch 3"):
        model = regressor(verbose=True, random_state=0).fit(X, X[:, 0])
    assert model.n_iter_ == 3
    assert np.isfinite(model.predict(X)).all()


def test_verbose_shows_a_progress_bar(capsys):
    X = np.random.default_rng(0).normal(size=(100, 2))
    regressor(verbose=True, max_iter=3, random_state=0).fit(X, X[:, 0])
    assert "loss" in capsys.readouterr().err


def test_a_constant_rate_stops_when_the_loss_no_longer_falls():
    X = np.random.default_rng(0).normal(size=(200, 2))
    model = regressor(learning_rate="constant", tol=0.01, random_state=0).fit(X, X[:, 0])
    assert model.n_iter_ < 200


def test_not_converged_is_said():
    X = np.random.default_rng(0).normal(size=(100, 2))
    with pytest.warns(ConvergenceWarning, match=r"Maximum iterations \(3\) reached"):
        regressor(max_iter=3, learning_rate="constant").fit(X, X[:, 0])


@pytest.mark.parametrize(
    "changed",
    [{}, {"learning_rate": "constant", "n_iter_no_change": np.inf}, {"early_stopping": True}],
)
def test_too_few_steps_to_converge_are_warned_of_by_any_schedule(changed):
    X = np.random.default_rng(0).normal(size=(150, 2))
    with pytest.warns(ConvergenceWarning, match="it made 10 steps. Train for more epochs"):
        regressor((4,), max_iter=10, **changed).fit(X, X[:, 0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        regressor((4,), max_iter=100, **changed).fit(X, X[:, 0])  # All epochs, on purpose.


def test_the_defaults_do_not_warn():
    X = np.random.default_rng(0).normal(size=(30, 2))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        NanMLPRegressor((4,), n_members=1, random_state=0).fit(X, X[:, 0])


def test_sgd_moves_gates_as_many_times_as_fast_as_documented():
    model = NanMLPRegressor((4,), n_members=1, solver="sgd", momentum=0.0, shuffle=False)
    model.set_params(learning_rate="constant", augment=False, dropout=0.0, alpha=0.0, average=False)
    model.set_params(early_stopping=False, max_iter=1, batch_size=40, random_state=0)
    X = np.random.default_rng(0).normal(size=(40, 2))

    def moved(rate):  # By one step, from the same weights.
        params = clone(model).set_params(gate_rate=rate).fit(X, X[:, 0]).params_
        return rate * params["gate"]

    np.testing.assert_allclose(moved(100.0), 25 * moved(4.0), rtol=1e-3)


def test_a_validation_set_of_one_row_is_refused():
    X = np.random.default_rng(0).normal(size=(10, 2))
    with pytest.raises(ValueError, match="The validation set is too small.*of 10 rows is 1 row"):
        regressor(early_stopping=True).fit(X, X[:, 0])


@pytest.mark.parametrize("labels", [[0, 1], [0, 1, 3], [0, 1, 2, 3]])
def test_warm_start_is_for_the_same_classes(labels):
    X = np.random.default_rng(0).normal(size=(60, 2))
    model = classifier((4,), max_iter=2, warm_start=True).fit(X, np.arange(60) % 3)
    y = np.resize(labels, 60)
    with pytest.raises(
        ValueError, match=r"has the same classes.*Previously got \[0 1 2\], `y` has"
    ):
        model.fit(X, y)
    assert model.fit(X, np.arange(60) % 3).n_iter_ == 2
    if labels == [0, 1]:
        model.partial_fit(X, y)  # Not all classes need to be in every batch.


def test_a_gap_that_training_never_saw_is_named_once():
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(100, 2)), columns=["a", "b"])
    model = regressor(max_iter=3, random_state=0).fit(X, X["a"])
    gaps = X.assign(b=np.nan)
    with pytest.warns(UserWarning, match="'b' had no missing values in training.*augment"):
        model.predict(gaps)
    augmented = regressor(max_iter=3, augment=True).fit(X, X["a"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.predict(gaps)
        augmented.predict(gaps)


def test_rows_below_min_known_are_abstained_from():
    X = np.random.default_rng(0).normal(size=(100, 4))
    X[::3, 1] = np.nan
    rows = np.array([[1.0, np.nan, np.nan, 1.0], [1.0, np.nan, np.nan, np.nan], np.ones(4)])
    number = regressor(max_iter=3, augment=True, min_known=0.5).fit(X, X[:, 0])
    bare = number.predict(rows)
    assert np.isnan(bare).tolist() == [False, True, False]
    assert np.isnan(number.spread(rows)).tolist() == [False, True, False]
    result = number.predict_selective(rows)
    np.testing.assert_array_equal(result.prediction, bare)
    assert result.abstained.tolist() == [False, True, False]
    assert result.reason.tolist() == ["", "known share 0.25 is below 0.5", ""]
    assert list(result.to_frame()) == ["prediction", "known_share", "abstained", "reason"]
    for y in (np.where(X[:, 0] > 0, "yes", "no"), X[:, 0] > 0, (X[:, 0] > 0) * 7):
        model = classifier(max_iter=3, augment=True, min_known=0.5).fit(X, y)
        assert np.isnan(model.predict_proba(rows)).any(axis=1).tolist() == [False, True, False]
        assert model.predict(rows)[1] is None
        assert model.predict(rows[[0, 2]]).dtype == y.dtype
        assert model.predict_selective(rows).prediction[1] is None
    several = classifier(max_iter=3, min_known=0.5).fit(np.nan_to_num(X), (X[:, :2] > 0) * 1)
    with pytest.warns(UserWarning, match="had no missing values in training"):
        assert several.predict(rows)[1].tolist() == [None, None]
    assert list(several.predict_selective(rows).to_frame())[:2] == ["prediction_0", "prediction_1"]


def test_rows_below_min_known_are_refused_on_request():
    X = np.random.default_rng(0).normal(size=(100, 4))
    model = regressor(max_iter=3, augment=True, min_known=0.5, below_min_known="raise")
    model.fit(X, X[:, 0]).predict([[1.0, np.nan, np.nan, 1.0]])
    with pytest.raises(ValueError, match=r"1 of 1 rows have a known share below.*row 0 with 0.25"):
        model.predict([[1.0, np.nan, np.nan, np.nan]])
    with pytest.raises(ValueError, match="`below_min_known` must be one of"):
        model.set_params(below_min_known="warn").fit(X, X[:, 0])


def test_an_empty_row_is_always_abstained_from():
    X = np.random.default_rng(0).normal(size=(100, 2))
    model = regressor(max_iter=3, augment=True).fit(X, X[:, 0])
    result = model.predict_selective([[np.nan, np.nan], [1.0, np.nan]])
    assert result.reason.tolist() == ["no value is known", ""]
    assert np.isnan(result.prediction).tolist() == [True, False]
    assert repr(result) == "SelectivePrediction(2 rows, 1 abstained)"


@pytest.mark.parametrize("factor", [1e-200, 1e-10, 3.7, 1e100])
def test_only_ratios_of_weights_matter(factor):
    rng = np.random.default_rng(0)
    X, weight = rng.normal(size=(100, 2)), rng.random(100)
    for solver in ("adam", "adamw"):
        model = classifier((8,), solver=solver, alpha=1.0, max_iter=3, random_state=0)
        expected = clone(model).fit(X, X[:, 0] > 0, weight).predict_proba(X)
        found = clone(model).fit(X, X[:, 0] > 0, factor * weight).predict_proba(X)
        np.testing.assert_array_equal(found, expected)
    even = clone(model).fit(X, X[:, 0] > 0, np.full(100, factor)).predict_proba(X)
    np.testing.assert_array_equal(even, clone(model).fit(X, X[:, 0] > 0).predict_proba(X))


@pytest.mark.parametrize("value", [0.0, 1e-20, 5e-324, 3e-7, -0.25, 1e300])
def test_a_constant_target_is_predicted_exactly(value):
    X = np.random.default_rng(0).normal(size=(50, 2))
    model = regressor((8,), max_iter=2).fit(X, np.full(50, value))
    np.testing.assert_array_equal(model.predict(X), value)
    nearly = value * (1 + np.finfo(float).eps * np.arange(50) / 25)
    np.testing.assert_allclose(regressor((8,), max_iter=2).fit(X, nearly).predict(X), value)


@pytest.mark.parametrize("unit", [1e-300, 1e-20, 1e20])
def test_small_and_large_targets_are_learned_alike(unit):
    X = np.random.default_rng(0).normal(size=(50, 2))
    expected = regressor((8,), max_iter=2, random_state=0).fit(X, X[:, 0]).predict(X)
    found = regressor((8,), max_iter=2, random_state=0).fit(X, unit * X[:, 0]).predict(X)
    np.testing.assert_allclose(found / unit, expected, rtol=1e-3, atol=1e-4)


def test_a_target_that_was_constant_at_first_is_learned_later():
    X = np.random.default_rng(0).normal(size=(50, 2))
    model = regressor((8,), learning_rate_init=0.02, random_state=0)
    model.partial_fit(X, np.full(50, 2.0))
    for _ in range(100):
        model.partial_fit(X, 2 + X[:, 0])
    assert model.score(X, 2 + X[:, 0]) > 0.9


def test_prediction_needs_no_jax(table, fitted, tmp_path):
    X, _ = table
    fitted.save(tmp_path / "model.safetensors")
    X.to_parquet(tmp_path / "table.parquet")
    code = (
        "import sys; sys.modules['jax'] = None\n"
        "import pandas as pd, promissing\n"
        f"model = promissing.load({str(tmp_path / 'model.safetensors')!r})\n"
        f"print(model.predict_proba(pd.read_parquet({str(tmp_path / 'table.parquet')!r}))[0, 0])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert out.returncode == 0, out.stderr
    assert float(out.stdout) == pytest.approx(fitted.predict_proba(X)[0, 0])


def test_pickle_and_joblib(table, fitted, tmp_path):
    X, _ = table
    joblib.dump(fitted, tmp_path / "model.joblib")
    for copy in (pickle.loads(pickle.dumps(fitted)), joblib.load(tmp_path / "model.joblib")):
        np.testing.assert_array_equal(copy.predict_proba(X), fitted.predict_proba(X))


X = np.random.default_rng(0).normal(size=(20, 2))
Y = np.arange(20) % 2
FRAME = pd.DataFrame(X, columns=["a", "b"])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m: m.fit(np.empty((0, 2)), []), r"0 sample\(s\)"),
        (lambda m: m.fit(np.empty((5, 0)), Y[:5]), r"0 feature\(s\)"),
        (lambda m: m.fit(X, np.zeros(20)), "needs at least two classes.*one class, 0.0"),
        (lambda m: m.fit(X, [None, *"ab" * 9, "a"]), "Input y contains NaN: 1 labels.*row 0"),
        (lambda m: m.fit(X, np.where(Y, np.nan, 1.0)), "Input y contains NaN"),
        (lambda m: m.fit(X, ["a", np.nan, *"ab" * 9]), "Input y contains NaN: 1 labels.*row 1"),
        (lambda m: m.fit(X, ["a", pd.NA, *"ab" * 9]), "Input y contains NaN: 1 labels.*row 1"),
        (lambda m: m.fit(X, [["a"], [None]] * 10), "Input y contains NaN: 10 labels.*row 1"),
        (lambda m: m.fit(X, ["a", 1] * 10), "mixes text with other types"),
        (lambda m: m.fit(X, np.ma.masked_equal(Y, 1)), "Input y contains NaN: 10 labels.*row 1"),
        (lambda m: m.fit(X, np.where(X > 0, 1, -1)), r"must hold 1 .* and 0 .*: \[-1, 1\]"),
        (lambda m: m.set_params(class_weight=[1, 2]).fit(X, Y), "must be a dict or 'balanced'"),
        (lambda m: m.set_params(class_weight=X[0]).fit(X, Y), "must be a dict or 'balanced'"),
        (lambda m: m.set_params(class_weight={0: np.inf}).fit(X, Y), "must not be .* infinite"),
        (
            lambda m: m.set_params(class_weight={0: 0, 1: 1}).fit(X, Y, X_val=X[::2], y_val=Y[::2]),
            "All validation rows have weight zero",
        ),
        (lambda m: m.fit(X, Y, sample_weight=np.r_[1e-46, np.ones(19)]), "has a ratio of 1e-46"),
        (lambda m: m.fit(X, Y, sample_weight=np.full(20, 1e308)), "`sample_weight` is not finite"),
        (lambda m: m.set_params(kinds=["number"]).fit(X, Y), "`kinds` must be a mapping"),
        (
            lambda m: m.set_params(kinds={1: "category"}).fit(FRAME.set_axis([1, 0], axis=1), Y),
            r"the column names of X are other numbers: \[1, 0\]",
        ),
        (lambda m: m.fit(X, np.where(Y, np.inf, 1.0)), "Input y contains infinity"),
        (lambda m: m.fit(X, Y[:7]), r"inconsistent numbers of samples: \[20, 7\]"),
        (
            lambda m: m.fit(X, Y, sample_weight=-np.ones(20)),
            "non-negative. Received: -1.0 at row 0",
        ),
        (lambda m: m.fit(X, Y, sample_weight=np.zeros(20)), "at least one non-zero"),
        (lambda m: m.fit(X, Y, sample_weight=np.ones(3)), "sample_weight.shape"),
        (lambda m: m.fit(FRAME.set_axis(["a", "a"], axis=1), Y), r"more than once: \['a'\]"),
        (lambda m: m.fit(FRAME, Y).predict(FRAME.astype({"b": str})), "'b' must hold numbers"),
        (lambda m: m.fit(FRAME, Y).predict(FRAME[["a"]]), "missing:\n- b"),
        (lambda m: m.fit(FRAME.assign(b=np.inf), Y), "'b' contains infinity"),
        (lambda m: m.set_params(solver="lbfgs").fit(X, Y), "'lbfgs' does not train in minibatches"),
        (lambda m: m.set_params(solver="x").fit(X, Y), r"`solver` must be one of .*solver='x'"),
        (lambda m: m.set_params(learning_rate="invscaling").fit(X, Y), "constant.*cosine"),
        (lambda m: m.set_params(activation="x").fit(X, Y), "`activation` must be one of"),
        (lambda m: m.set_params(compensation="x").fit(X, Y), "`compensation` must be"),
        (lambda m: m.set_params(hidden_layer_sizes=(3, 0)).fit(X, Y), "positive integers"),
        (
            lambda m: m.set_params(n_members=0).fit(X, Y),
            "`n_members` must be .auto. or a positive integer",
        ),
        (lambda m: m.set_params(batch_size="all").fit(X, Y), "'auto' or a positive integer"),
        (lambda m: m.set_params(learning_rate_init=0).fit(X, Y), "must be a positive number"),
        (
            lambda m: m.set_params(alpha=None).fit(X, Y),
            "`alpha` must be 'auto' or a non-negative number",
        ),
        (
            lambda m: m.set_params(augment="yes").fit(X, Y),
            "`augment` must be 'auto', True, False or between 0 and 1",
        ),
        (lambda m: m.set_params(epsilon=-1).fit(X, Y), "`epsilon` must be a positive"),
        (lambda m: m.set_params(dropout=1).fit(X, Y), "`dropout` must be at least 0 and less"),
        (
            lambda m: m.set_params(augment=2).fit(X, Y),
            "`augment` must be 'auto', True, False or between 0 and 1",
        ),
        (lambda m: m.set_params(alpha=-1).fit(X, Y), "`alpha` must be 'auto' or a non-negative"),
        (lambda m: m.set_params(average=3).fit(X, Y), "`average` must be one of"),
        (
            lambda m: m.fit(X, np.stack([Y, np.arange(20) % 3], axis=1)),
            "columns of several classes",
        ),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call(classifier(max_iter=2))


@pytest.mark.parametrize(
    "spell", [np.array, pd.Series, list, lambda y: pd.Series(y, dtype=object), pl.Series]
)
@pytest.mark.parametrize("text", ["a", "3.5"])
def test_a_regressor_refuses_text_for_a_target_as_for_a_number(spell, text):
    with pytest.raises(ValueError, match=f"`y` must hold numbers, and holds the text '{text}'"):
        regressor(max_iter=2).fit(X, spell([text] * len(X)))


def test_a_category_never_seen_is_not_known_and_said_once():
    frame = pd.DataFrame({"x": [1.0, 2.0, 3.0, 4.0] * 5, "code": ["1", "2"] * 10})
    model = classifier((4,), n_members=1, max_iter=2, random_state=0).fit(frame, [0, 1] * 10)
    numbers = frame.assign(code=frame["code"].astype(float))
    np.testing.assert_array_equal(model.predict_proba(numbers), model.predict_proba(frame))
    np.testing.assert_array_equal(model.known_share(numbers), np.ones(20))
    new = frame.assign(code=["3", "2"] * 10)
    np.testing.assert_array_equal(model.known_share(new[:2]), [0.5, 1.0])
    model.predict(new)  # Half of them is not most of them.
    with pytest.warns(UserWarning, match="Column 'code': 10 of 11 values are .* such as '3'.*'1'"):
        model.predict(pd.concat([new[::2], new[1:2]]))
    model.predict(new[::2])


def test_a_fit_that_fails_leaves_the_model_as_it_was():
    model = classifier((8,), max_iter=3, random_state=0).fit(X, Y)
    before = model.predict_proba(X)
    with pytest.raises(ValueError, match="X has 1 features"):
        model.fit(X * 100 + 5, Y, X_val=X[:, :1], y_val=Y)
    with pytest.raises(ValueError, match="needs at least two classes"):
        model.fit(np.ones((20, 5)), np.zeros(20))
    np.testing.assert_array_equal(model.predict_proba(X), before)


def test_classes_of_partial_fit_do_not_leak_into_fit():
    model = classifier((8,), max_iter=3, random_state=0)
    model.partial_fit(X, Y, classes=[0, 1, 2])
    with pytest.raises(ValueError, match=r"not the same as on last call to partial_fit, was: \[0"):
        model.partial_fit(X, Y, classes=[0, 1])
    assert model.fit(X, Y).classes_.tolist() == [0, 1]
    assert model.fit(X, np.array(list("abcd"))[np.arange(20) % 4]).classes_.tolist() == list("abcd")


@pytest.mark.parametrize(
    ("first", "then", "message"),
    [
        (X, X[:, 0], r"`y` must have the shape \(n, 2\). Received: \(20,\)"),
        (X[:, 0], X, r"`y` must have the shape \(n,\). Received: \(20, 2\)"),
    ],
)
def test_another_number_of_targets_is_refused(first, then, message):
    model = regressor((8,), max_iter=3).partial_fit(X, first)
    with pytest.raises(ValueError, match=message):
        model.partial_fit(X, then)
    with pytest.raises(ValueError, match=message.replace("`y`", "`y_val`")):
        model.fit(X, first, X_val=X, y_val=then)


def test_another_number_of_labels_is_refused():
    flags = (X > 0).astype(int)
    model = classifier((8,), max_iter=3, warm_start=True).fit(X, flags)
    with pytest.raises(ValueError, match="one column for each of the 2 labels"):
        model.fit(X, np.c_[flags, flags[:, 0]])
    with pytest.raises(ValueError, match="one column for each of the 2 labels"):
        model.fit(X, Y)


def test_rows_of_weight_zero_count_as_absent():
    labels = Y.astype(float)
    labels[:2] = [7, np.nan]  # A class of its own, and no label at all.
    weight = np.ones(20)
    weight[:2] = 0
    model = classifier((8,), max_iter=3, random_state=0, class_weight="balanced")
    weighted = model.fit(X, labels, sample_weight=weight).predict_proba(X)
    assert model.classes_.tolist() == [0, 1]
    np.testing.assert_array_equal(model.fit(X[2:], labels[2:]).predict_proba(X), weighted)


def test_divergence_is_an_error():
    model = regressor(solver="sgd", learning_rate_init=1e6, max_iter=30, random_state=0)
    with pytest.raises(ValueError, match="Training diverged.*Lower `learning_rate_init`"):
        model.fit(X, X[:, 0])


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_targets_of_any_size(scale):
    model = regressor(random_state=0, learning_rate_init=0.01).fit(X, X[:, 0] * scale)
    np.testing.assert_allclose(model.predict(X) / scale, X[:, 0], atol=0.5)


@pytest.mark.parametrize(
    ("changed", "name"),
    [
        ({"n_members": 2}, "n_members"),
        ({"hidden_layer_sizes": (9,)}, "hidden_layer_sizes"),
        ({"compensation": "none"}, "compensation"),
        ({"n_bins": 3}, "n_bins"),
        ({"n_fine_bins": 5}, "n_fine_bins"),
    ],
)
def test_going_on_with_another_network_is_refused(changed, name, tmp_path):
    model = regressor((8,), max_iter=3, warm_start=True).fit(X, X[:, 0])
    model.set_params(**changed)
    for call in (model.fit, model.partial_fit):
        with pytest.raises(ValueError, match=f"`{name}` was changed since the model was fitted"):
            call(X, X[:, 0])
    model.save(tmp_path / "m.safetensors")  # What was fitted is what is saved.
    again = promissing.load(tmp_path / "m.safetensors")
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert len(model.neutralizers_[0]) == 1


def test_another_solver_may_go_on():
    model = regressor((8,), max_iter=3, warm_start=True).fit(X, X[:, 0])
    model.set_params(solver="sgd").fit(X, X[:, 0])
    assert len(model.loss_curve_) == 6


def test_gaps_of_later_batches_are_known():
    model = regressor((8,), max_iter=3).partial_fit(X, X[:, 0])
    gaps = np.where(Y[:, None], X, np.nan)
    model.partial_fit(gaps, X[:, 0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.predict(gaps)


def test_the_prior_is_that_of_all_batches():
    model = classifier((8,), max_iter=3)
    for label in (0, 1, 1, 1):
        model.partial_fit(X, np.full(20, label), classes=[0, 1])
    np.testing.assert_allclose(model.prior_, [0.25, 0.75])


def test_warnings_point_at_the_caller():
    model = regressor((8,), max_iter=3).fit(X, X[:, 0])
    with pytest.warns(UserWarning, match="had no missing values") as caught:
        model.predict(np.full((1, 2), np.nan))
    assert caught[0].filename == __file__


def test_class_weights_of_training_weigh_the_validation_too():
    model = classifier((8,), max_iter=3, class_weight="balanced")
    skewed = np.arange(20) < 15
    model.fit(X, skewed, X_val=X, y_val=Y.astype(bool))
    np.testing.assert_allclose(model._loss.class_weights, [2, 2 / 3])


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ({0: -1}, "must not be negative"),
        ({0: 0, 1: 0}, "all zero"),
        ({5: 1}, r"names classes that y does not have: \[5\]"),
        ("even", "a dict or 'balanced'"),
    ],
)
def test_bad_class_weights(weights, message):
    with pytest.raises(ValueError, match=message):
        classifier(max_iter=2, class_weight=weights).fit(X, Y)


def test_what_partial_fit_cannot_do():
    with pytest.raises(ValueError, match="'balanced' needs all rows at once"):
        classifier(class_weight="balanced").partial_fit(X, Y, classes=[0, 1])
    with pytest.raises(ValueError, match="does not support early_stopping"):
        regressor(early_stopping=True).partial_fit(X, X[:, 0])


def test_labels_of_nullable_frames():
    flags = pd.DataFrame((X > 0).astype(int)).astype("Int64")
    model = classifier((8,), max_iter=2)
    assert model.fit(X, flags).predict(X).shape == (20, 2)
    text = pd.Series(np.where(Y, "a", "b"), dtype="string")
    assert model.fit(X, text).classes_.tolist() == ["a", "b"]
    text[3] = pd.NA
    with pytest.raises(ValueError, match="Input y contains NaN: 1 labels are missing.*row 3"):
        model.fit(X, text)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([None, *X[1:, 0]], "Input y contains NaN: 1 targets are missing.*row 0"),
        (np.append(X[1:, 0], None), "Input y contains NaN: 1 targets.*row 19"),
        ([pd.NA, *X[1:, 0]], "Input y contains NaN: 1 targets.*row 0"),
        (np.ma.masked_greater(X[:, 0], 0), r"Input y contains NaN: \d+ targets"),
        (pd.date_range("2024", periods=20), "`y` holds dates or durations"),
        (["x"] * 20, "`y` must hold numbers"),
    ],
)
def test_targets_that_are_no_numbers_are_refused(y, message):
    with pytest.raises(ValueError, match=message):
        regressor((8,), max_iter=2).fit(X, y)


@pytest.mark.parametrize("size", [1e-6, 1.0, 1e9])
def test_a_constant_target_is_met_to_its_own_size(size):
    model = NanMLPRegressor((8,), n_members=2, max_iter=60, random_state=0)
    np.testing.assert_allclose(model.fit(X, np.full(20, size)).predict(X), size, rtol=0.05)


def test_a_list_of_labels_is_taken_as_numpy_takes_it():
    assert classifier((8,), max_iter=2).fit(X, ["a", "b"] * 10).classes_.dtype.kind == "U"
    assert classifier((8,), max_iter=2).fit(X, [True, False] * 10).classes_.dtype == bool
    assert classifier((8,), max_iter=2).fit(X, tuple(Y.tolist())).classes_.dtype.kind == "i"


def test_rows_are_predicted_some_at_a_time(monkeypatch, table, fitted):
    frame = pd.concat([table[0]] * 30, ignore_index=True)
    whole = fitted.predict_proba(frame), fitted.known_share(frame)
    monkeypatch.setattr(base, "CELLS", 1)
    monkeypatch.setattr(base, "ROWS", 50)
    sizes = [len(block) for block, _ in fitted._encoded_blocks(fitted._open(frame))]
    assert len(sizes) > 1
    assert sum(sizes) == len(frame)
    np.testing.assert_allclose(fitted.predict_proba(frame), whole[0], rtol=1e-12)
    np.testing.assert_array_equal(fitted.known_share(frame), whole[1])


def test_log_probabilities():
    model = classifier((8,), max_iter=2).fit(X, Y)
    np.testing.assert_allclose(np.exp(model.predict_log_proba(X)), model.predict_proba(X))


def test_weights_of_classes_may_change_between_fits():
    model = classifier((8,), max_iter=2, warm_start=True).fit(X, Y)
    model.set_params(class_weight={1: 3}).fit(X, Y)
    np.testing.assert_allclose(model._loss.class_weights, [1, 3])
    model.set_params(class_weight="balanced").fit(X, Y)
    np.testing.assert_allclose(model._loss.class_weights, [1, 1])


def test_what_was_never_observed_is_not_counted_as_unknown():
    frame = FRAME.assign(empty=np.nan)
    model = classifier((8,), max_iter=2, min_known=1.0).fit(frame, Y)
    np.testing.assert_array_equal(model.known_share(frame), np.ones(20))
    model.predict(frame)
    nothing = classifier((8,), max_iter=2).fit(np.full_like(X, np.nan), Y)
    np.testing.assert_array_equal(nothing.known_share(X), np.zeros(20))


@pytest.mark.parametrize(
    ("values", "doubt"),
    [
        ([*map(str, range(39)), "<0.1"], "its values are numbers except '<0.1'. To"),
        ([f"2024-01-{day:02}" for day in range(1, 31)], r"`kinds={'x': 'date'}`"),
        ([f"patient {i}" for i in range(40)], "is different in every row"),
    ],
    ids=["numbers", "dates", "identifiers"],
)
def test_text_that_may_be_no_category_is_met_with_a_warning(values, doubt):
    frame = pd.DataFrame({"x": np.resize(values, 40)})
    y = np.arange(40) % 2
    with pytest.warns(UserWarning, match=f"Column 'x' is text and is used as a category.*{doubt}"):
        classifier((8,), max_iter=2).fit(frame, y)
    classifier((8,), max_iter=2, kinds={"x": "category"}).fit(frame, y)
    classifier((8,), max_iter=2).fit(frame.astype("category"), y)


def test_a_numpy_true_is_a_true():
    one, two = (
        regressor((8,), max_iter=3, augment=flag, random_state=0).fit(X, X[:, 0]).predict(X)
        for flag in (True, np.True_)
    )
    np.testing.assert_array_equal(one, two)


def test_sigint_keeps_the_best_so_far(tmp_path):
    """A real Ctrl-C, to a process that is training."""
    code = (
        "import numpy as np, warnings\n"
        "from promissing import NanMLPRegressor\n"
        "X = np.random.default_rng(0).normal(size=(2000, 5))\n"
        "from promissing.estimators.mlp import PLAIN\n"
        "NanMLPRegressor(**PLAIN | {'max_iter': 1}).fit(X, X[:, 0])\n"
        "print('ready', flush=True)\n"
        "model = NanMLPRegressor(**PLAIN | {'max_iter': 10**6}).fit(X, X[:, 0])\n"
        "print('kept', model.n_iter_, np.isfinite(model.predict(X)).all())"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout.readline().strip() == "ready"
    time.sleep(3)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert out.startswith("kept"), err
    assert out.strip().endswith("True")
    assert "interrupted after epoch" in err


def test_not_fitted():
    with pytest.raises(NotFittedError):
        NanMLPClassifier().predict_proba(X)
    with pytest.raises(NotFittedError):
        NanMLPRegressor().known_share(X)
    with pytest.raises(ValueError, match="not fitted yet: there is nothing to save"):
        NanMLPRegressor().save("model.safetensors")


def test_every_name_of_scikit_learns_mlp_is_there():
    from sklearn.neural_network import MLPClassifier, MLPRegressor

    left_out = {"power_t", "max_fun"}
    assert set(MLPClassifier().get_params()) - set(NanMLPClassifier().get_params()) == left_out
    theirs = set(MLPRegressor().get_params()) - {"loss"}
    assert theirs - set(NanMLPRegressor().get_params()) == left_out


def test_exported():
    assert promissing.NanMLPClassifier is NanMLPClassifier


def test_an_old_and_a_new_name_of_a_parameter_do_not_mix():
    X = np.random.default_rng(0).normal(size=(60, 2))
    model = NanMLPRegressor(straight=True, linear_skip=False)
    with pytest.raises(ValueError, match="`straight` is the old name of `linear_skip`, and both"):
        model.fit(X, X[:, 0])


def test_resampling_is_refused_for_several_labels_on_a_warm_start_too():
    X = np.random.default_rng(0).normal(size=(60, 2))
    model = classifier((4,), warm_start=True, max_iter=2).fit(X, (X > 0).astype(int))
    with pytest.raises(ValueError, match="`resample` is for one label per row"):
        model.set_params(resample=True).fit(X, (X > 0).astype(int))
