"""Prediction sets and intervals."""

import pickle

import numpy as np
import pandas as pd
import pytest
from masked_models import NAN, Network, Sums, numbers
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import is_classifier, is_regressor
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import ShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

import promissing
from promissing import NanMLPClassifier, NanMLPRegressor
from promissing.uncertainty import (
    ConformalClassifier,
    ConformalRegressor,
    SelectiveClassifier,
    SelectiveRegressor,
    storage,
)
from promissing.uncertainty.conformal import aps_scores

QUICK = {"max_iter": 30, "max_leaf_nodes": 8}


def labelled(n=1200, p=4, seed=0, gaps=0.2, n_classes=3):
    """Rows with missing values, and classes with the probabilities of `Network`."""
    rng = np.random.default_rng(seed)
    x = numbers(n, p, seed)
    proba = Network(p, n_classes).predict_proba(x)
    y = (rng.random((n, 1)) > proba.cumsum(axis=1)).sum(axis=1)
    x[rng.random(x.shape) < gaps] = NAN
    return x, np.array(["a", "b", "c"])[y]


def measured(n=1200, p=4, seed=0, gaps=0.2):
    """Rows with missing values, and numbers whose noise depends on a feature."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, p))
    y = Sums().predict(x) + (0.2 + (x[:, 0] > 0)) * rng.normal(size=n)
    x[rng.random(x.shape) < gaps] = NAN
    return x, y


def sets_of(x=None, y=None, n=600, model=None, **settings):
    """A calibrated classifier, which was fitted on none of the rows."""
    if x is None:
        x, y = labelled(n)
    model = model or Network(x.shape[1], 3)
    settings = {"prefit": True, "random_state": 0} | settings
    return ConformalClassifier(model, **settings).conformalize(x, y)


def intervals_of(x=None, y=None, n=600, model=None, **settings):
    if x is None:
        x, y = measured(n)
    settings = {"prefit": True, "random_state": 0} | settings
    return ConformalRegressor(model or Sums(), **settings).conformalize(x, y)


@pytest.mark.parametrize("method", ["nearest", "split"])
def test_sets_and_intervals_cover_rows_with_few_and_with_many_missing_values(method):
    x, y = labelled(4000, seed=1, gaps=np.random.default_rng(1).random((4000, 1)))
    conformal = sets_of(x[:2000], y[:2000], method=method, allow_empty=True)
    table = conformal.coverage_by_missing(x[2000:], y[2000:])
    some = table[table["missing"] != "75 - 100 %"]  # Empty rows have the same set; see below.
    x, y = measured(4000, seed=1, gaps=np.random.default_rng(1).random((4000, 1)))
    other = intervals_of(x[:2000], y[:2000], method=method).coverage_by_missing(x[2000:], y[2000:])
    both = pd.concat([some, other])
    assert abs(np.average(both["coverage"], weights=both["n"]) - 0.9) < 0.02
    if method == "nearest":
        assert (np.abs(both["coverage"] - 0.9) < 0.04).all()
    assert (other["n"].sum(), table["n"].sum()) == (2000, 2000)


def test_split_is_textbook_split_conformal():
    x, y = measured(300)
    new = measured(5, seed=2)[0]
    model = Sums()
    conformal = intervals_of(x, y, method="split", scaled=False)
    reach = np.sort(np.abs(y - model.predict(x)))[int(np.ceil(301 * 0.9)) - 1]
    middle = model.predict(new)
    assert_allclose(conformal.predict_interval(new), np.c_[middle - reach, middle + reach])


def test_exact_is_cp_mda_exact():
    x, y = measured(800, gaps=0.15)
    new = measured(40, seed=2, gaps=0.5)[0]
    new[0] = NAN
    model = Sums()
    found = intervals_of(x, y, method="exact", scaled=False).predict_interval(new)
    compared = 0
    for row, ends in zip(new, np.asarray(found), strict=True):
        own = ~(np.isnan(x) & ~np.isnan(row)).any(axis=1)
        if own.sum() < 100:
            continue
        compared += 1
        masked = np.where(np.isnan(row), NAN, x[own])
        errors = np.sort(np.abs(y[own] - model.predict(masked)))
        reach = errors[int(np.ceil((own.sum() + 1) * 0.9)) - 1]
        middle = model.predict(row[None])[0]
        assert_allclose(ends, [middle - reach, middle + reach])
    assert compared > 20


def test_nested_is_cp_mda_nested():
    x, y = measured(200, gaps=0.3)
    new = measured(10, seed=2, gaps=0.5)[0]
    model = Sums()
    found = intervals_of(x, y, method="nested", scaled=False).predict_interval(new)
    for row, ends in zip(new, np.asarray(found), strict=True):
        lost = np.isnan(x) | np.isnan(row)
        errors = np.abs(y - model.predict(np.where(lost, NAN, x)))
        middles = model.predict(np.where(lost, NAN, row))
        rank = int(np.ceil(201 * 0.9))
        low, high = np.sort(middles - errors), np.sort(middles + errors)
        assert_allclose(ends, [low[200 - rank], high[rank - 1]])


def test_exact_falls_back_with_a_warning_and_stays_finite():
    x, y = measured(150, gaps=0.5)
    conformal = intervals_of(x, y, method="exact")
    with pytest.warns(UserWarning, match="For 1 of 1 masks, fewer than 100 .* nearest masks"):
        found = conformal.predict_interval(numbers(1))
    assert np.isfinite(found).all()


def test_aps_scores_are_the_probability_of_more_probable_classes_and_a_random_part():
    proba = np.array([[0.5, 0.2, 0.3]])
    assert_allclose(aps_scores(proba, np.ones((1, 1))), [[0.5, 1.0, 0.8]])
    assert_allclose(aps_scores(proba, np.zeros((1, 1))), [[0.0, 0.8, 0.5]], atol=1e-15)


@pytest.mark.parametrize("method", ["nearest", "split", "exact", "nested"])
def test_the_result_for_a_row_does_not_depend_on_the_other_rows(method):
    x, y = labelled(300)
    conformal = sets_of(x, y, method=method)
    new = labelled(60, seed=3)[0]
    found = np.asarray(conformal.predict_set(new))
    order = np.random.default_rng(0).permutation(60)
    assert_array_equal(conformal.predict_set(new[order]), found[order])
    for i in range(3):
        assert_array_equal(conformal.predict_set(new[[i]]), found[[i]])
    again = sets_of(x, y, method=method)
    assert_array_equal(again.predict_set(new), found)
    assert_array_equal(conformal.predict_set(pd.DataFrame(new)), found)


def test_another_seed_draws_other_masks_and_sets():
    new = labelled(300, seed=3)[0]
    one, other = (np.asarray(sets_of(random_state=s).predict_set(new)) for s in (0, 1))
    assert (one != other).any()


def test_a_set_is_never_empty_unless_that_is_allowed():
    x, y = labelled()
    best = Network(4, 3).predict_proba(x).argmax(axis=1)
    y = np.array(["a", "b", "c"])[best]  # The classifier is always right.
    sets = np.asarray(sets_of(x, y, allow_empty=True).predict_set(x))
    assert not sets.any(axis=1).all()
    full = np.asarray(sets_of(x, y).predict_set(x))
    assert full.any(axis=1).all()
    assert full[np.arange(len(x)), best].all()
    assert_array_equal(full[sets.any(axis=1)], sets[sets.any(axis=1)])


def test_identical_rows_have_identical_sets_and_an_empty_row_has_the_classes_of_the_prior():
    sets = np.asarray(sets_of().predict_set(np.full((5, 4), NAN)))
    assert (sets == sets[0]).all()
    assert sets[0].sum() >= 2


@pytest.mark.parametrize("method", ["nearest", "split", "exact", "nested"])
def test_several_levels_are_nested(method):
    x, y = labelled(400)
    new = labelled(50, seed=4)[0]
    conformal = sets_of(x, y, method=method, confidence_level=(0.5, 0.8, 0.95))
    sets = conformal.predict_set(new)
    assert sets.shape == (50, 3, 3)
    assert (np.diff(np.asarray(sets).astype(int), axis=2) >= 0).all()
    alone = conformal.predict_set(new, confidence_level=0.8)
    assert_array_equal(alone, sets[:, :, 1])
    x, y = measured(400)
    ends = np.asarray(
        intervals_of(x, y, method=method, confidence_level=[0.5, 0.9]).predict_interval(new)
    )
    assert ends.shape == (50, 2, 2)
    assert (ends[:, 0, 1] <= ends[:, 0, 0]).all()
    assert (ends[:, 1, 1] >= ends[:, 1, 0]).all()


def test_per_class_covers_the_rare_class():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(4000, 2))
    y = (x[:, 0] + rng.normal(size=4000) > 2).astype(int)
    model = LogisticRegression().fit(x[:500], y[:500])
    filled = make_pipeline(Zero(), model)
    new, truth = x[2500:], y[2500:]
    covered = {}
    for per_class in (False, True):
        conformal = sets_of(x[500:2500], y[500:2500], model=filled, per_class=per_class)
        sets = np.asarray(conformal.predict_set(new))
        covered[per_class] = sets[truth == 1, 1].mean()
    assert covered[False] < 0.75
    assert abs(covered[True] - 0.9) < 0.04


class Zero:
    """A transformer that fills with zeros."""

    def __sklearn_is_fitted__(self):
        return True

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return np.nan_to_num(X)


def test_a_learned_scale_gives_wide_intervals_where_errors_are_large():
    x, y = measured(1500, gaps=0.0)
    conformal = intervals_of(x, y)
    low, high = np.asarray(conformal.predict_interval(measured(400, seed=5, gaps=0.0)[0])).T
    positive = measured(400, seed=5, gaps=0.0)[0][:, 0] > 0
    assert np.median((high - low)[positive]) > 2 * np.median((high - low)[~positive])
    flat = np.asarray(intervals_of(x, y, scaled=False).predict_interval(x[:50]))
    assert np.ptp(flat[:, 1] - flat[:, 0]) < 1e-9


def test_each_calibration_row_is_predicted_sixteen_times_and_a_new_row_once():
    counted = []

    class Counting(HistGradientBoostingRegressor):
        def predict(self, X):
            counted.append(len(X))
            return super().predict(X)

    x, y = measured(700)
    model = Counting(**QUICK).fit(x[:400], y[:400])
    counted.clear()
    conformal = intervals_of(x[400:], y[400:], model=model)
    assert sum(counted) <= 16 * 300 + 16  # A few rows are tried before any long work.
    counted.clear()
    conformal.predict_interval(x[:100])
    assert sum(counted) == 100


def test_masks_are_drawn_from_those_that_are_given():
    x, y = measured(300, gaps=0.0)
    masks = np.array([[True, False, False, False], [False, True, True, False]])
    bank = intervals_of(x, y).bank_
    assert bank.masks.shape == (300, 16, 4)
    assert not bank.masks[:, 0].any()
    conformal = ConformalRegressor(Sums(), prefit=True, n_masks=5, random_state=0)
    own = conformal.conformalize(x, y, masks=masks).bank_.masks[:, 1:].reshape(-1, 4)
    assert {tuple(row) for row in own} == {tuple(row) for row in masks.tolist()}
    frame = pd.DataFrame(x, columns=list("wxyz"))
    named = conformal.conformalize(frame, y, masks={"first": ["w"], "middle": ["x", "y"]})
    assert_array_equal(named.bank_.masks[:, 1:].reshape(-1, 4), own)


def test_cross_fitting_uses_all_rows():
    x, y = labelled(500)
    model = HistGradientBoostingClassifier(**QUICK)
    conformal = ConformalClassifier(model, cv=3, random_state=0).fit_conformalize(x, y)
    assert (len(conformal.estimators_), len(conformal.bank_)) == (3, 500)
    assert np.bincount(conformal.bank_.folds).tolist() == [167, 167, 166]
    new, truth = labelled(800, seed=6)
    assert conformal.coverage_by_missing(new, truth)["coverage"].mean() > 0.85
    proba = np.mean([one.predict_proba(new) for one in conformal.estimators_], axis=0)
    assert_allclose(conformal.predict_proba(new), proba)
    assert_array_equal(conformal.predict(new), conformal.classes_[proba.argmax(axis=1)])
    x, y = measured(400)
    model = HistGradientBoostingRegressor(**QUICK)
    for method in ("nearest", "exact", "nested"):
        regressor = ConformalRegressor(model, cv=2, method=method, random_state=0)
        low, high = np.asarray(regressor.fit_conformalize(x, y).predict_interval(new)).T
        assert (low < high).all()
        middle = np.mean([one.predict(new) for one in regressor.estimators_], axis=0)
        assert_allclose(regressor.predict(new), middle)


def test_results_become_frames_that_keep_the_index():
    x, y = labelled(300)
    frame = pd.DataFrame(labelled(3, seed=7)[0], index=["r", "s", "t"])
    conformal = sets_of(x, y)
    table = conformal.predict_set(frame).to_frame()
    assert (table.index.tolist(), list(table)) == (["r", "s", "t"], ["a", "b", "c", "size", "set"])
    assert (table["size"] == table[["a", "b", "c"]].sum(axis=1)).all()
    levels = conformal.predict_set(frame, confidence_level=[0.5, 0.9]).to_frame()
    assert levels[0.9].equals(table)
    x, y = measured(300)
    ends = intervals_of(x, y).predict_interval(frame)
    assert_allclose(ends.to_frame()["width"], ends[:, 1] - ends[:, 0])
    assert (ends + 0).to_frame()["lower"].tolist() == ends[:, 0].tolist()


def test_coverage_by_missing_has_wilson_intervals_and_a_plot():
    x, y = measured(600)
    table = intervals_of(x[:300], y[:300]).coverage_by_missing(x[300:], y[300:])
    assert list(table) == ["missing", "n", "coverage", "low", "high", "size"]
    assert ((table["low"] <= table["coverage"]) & (table["coverage"] <= table["high"])).all()
    assert table.level == 0.9
    ax = table.plot()
    assert [label.get_text().split("\n")[0] for label in ax.get_xticklabels()] == [
        *table["missing"]
    ]


def test_categories_and_booleans_in_frames():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "age": rng.normal(50, 9, 400),
            "ward": pd.Categorical(rng.choice(["north", "south"], 400)),
            "smoker": rng.random(400) < 0.5,
        }
    )
    y = frame["age"] + 5 * (frame["ward"] == "north") + rng.normal(size=400)
    model = NanMLPRegressor(n_members=1, max_iter=10, random_state=0).fit(frame[:200], y[:200])
    conformal = intervals_of(frame[200:], y[200:], model=model)
    new = frame[:4].astype({"smoker": "boolean"})
    new.loc[0, ["ward", "smoker"]] = None
    low, high = np.asarray(conformal.predict_interval(new)).T
    assert (low < high).all()


# --------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"confidence_level": 1.0}, "`confidence_level` must be a number between 0 and 1"),
        ({"confidence_level": 0}, "`confidence_level` must be a number between 0 and 1"),
        ({"confidence_level": []}, "`confidence_level` must be"),
        ({"confidence_level": "0.9"}, "`confidence_level` must be"),
        ({"method": "lac"}, "`method` must be one of .*'nearest'.*Received: 'lac'"),
        ({"n_masks": 0}, "`n_masks` must be a whole number >= 1"),
        ({"n_neighbors": 2.5}, "`n_neighbors` must be a whole number >= 1"),
        ({"cv": 3}, "`prefit=True` and `cv` exclude each other"),
    ],
)
def test_bad_settings_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        sets_of(n=50, **settings)


def test_too_few_calibration_rows_are_refused():
    x, y = labelled(30)
    with pytest.raises(ValueError, match=r"`confidence_level=0.99` needs at least 99 .* 30 rows"):
        sets_of(x, y, confidence_level=0.99)
    with pytest.raises(ValueError, match=r"`per_class`: class '[abc]': .* at least 9"):
        sets_of(x[:12], y[:12], per_class=True)
    conformal = sets_of(x, y)
    with pytest.raises(ValueError, match=r"needs at least 99 calibration rows, and there are 30"):
        conformal.predict_set(x, confidence_level=0.99)


def test_steps_in_the_wrong_order_are_refused():
    x, y = labelled(60)
    model = HistGradientBoostingClassifier(**QUICK)
    with pytest.raises(NotFittedError, match="Call `fit` with training rows first"):
        ConformalClassifier(model).conformalize(x, y)
    with pytest.raises(NotFittedError, match="not calibrated yet. Call `conformalize` first"):
        ConformalClassifier(model).fit(x, y).predict_set(x)
    with pytest.raises(NotFittedError):
        ConformalClassifier(model, prefit=True).conformalize(x, y)
    with pytest.raises(ValueError, match="the estimator is fitted already"):
        ConformalClassifier(model, prefit=True).fit(x, y)
    with pytest.raises(ValueError, match=r"With `cv`, call `fit_conformalize\(X, y\)`"):
        ConformalClassifier(model, cv=2).fit(x, y)
    with pytest.raises(ValueError, match="replaces `fit` and `conformalize`"):
        ConformalClassifier(model, cv=2).conformalize(x, y)
    with pytest.raises(ValueError, match="needs folds: pass `cv=5`"):
        ConformalClassifier(model).fit_conformalize(x, y)
    with pytest.raises(ValueError, match="`cv` must put every row into exactly one test fold"):
        ConformalClassifier(model, cv=ShuffleSplit(2)).fit_conformalize(x, y)


def test_targets_that_do_not_fit_are_refused():
    x, y = labelled(60)
    with pytest.raises(ValueError, match="`y` has 1 missing values, the first in row 3"):
        sets_of(x, np.where(np.arange(60) == 3, None, y))
    with pytest.raises(ValueError, match="`y` holds 'z', which is not one of the classes"):
        sets_of(x, np.where(np.arange(60) == 3, "z", y))
    with pytest.raises(ValueError, match="`y` must hold numbers"):
        intervals_of(x, y)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        sets_of(x, y[:50])


def test_models_that_do_not_fit_are_refused():
    x, y = labelled(200, gaps=0.0)
    with pytest.raises(ValueError, match="`estimator` must have `predict_proba`, and LinearSVC"):
        sets_of(x, y, model=LinearSVC().fit(x, y))
    with pytest.raises(ValueError, match="LogisticRegression cannot predict where values are mis"):
        sets_of(x, y, model=LogisticRegression().fit(x, y))
    with pytest.raises(ValueError, match="Ridge cannot predict where values are missing"):
        intervals_of(x, x[:, 0], model=Ridge().fit(x, x[:, 0]))


@pytest.mark.parametrize(
    ("masks", "message"),
    [
        (np.zeros((2, 3), bool), r"`masks` must be an array of booleans with 4 columns.*\(2, 3\)"),
        (np.zeros((2, 4)), "`masks` must be an array of booleans"),
        (np.zeros((0, 4), bool), "`masks` must be an array of booleans"),
        ({"first": ["v"]}, "'v'"),
    ],
)
def test_masks_that_do_not_fit_are_refused(masks, message):
    x, y = measured(60)
    frame = pd.DataFrame(x, columns=list("wxyz"))
    with pytest.raises(ValueError, match=message):
        ConformalRegressor(Sums(), prefit=True).conformalize(frame, y, masks=masks)


# ----------------------------------------------------------------------------------- storage


@pytest.fixture(scope="module")
def calibrated():
    """A classifier and a regressor of this package, calibrated, and new rows."""
    x, y = labelled(500)
    classifier = NanMLPClassifier(n_members=2, max_iter=5, random_state=0).fit(x[:250], y[:250])
    numbers_ = np.nan_to_num(x).sum(axis=1)
    regressor = NanMLPRegressor(n_members=2, max_iter=5, random_state=0)
    regressor.fit(x[:250], numbers_[:250])
    return (
        sets_of(x[250:], y[250:], model=classifier, per_class=True, confidence_level=[0.5, 0.8]),
        intervals_of(x[250:], numbers_[250:], model=regressor),
        labelled(40, seed=8)[0],
    )


def test_a_calibration_is_saved_with_the_model(calibrated, tmp_path):
    sets, intervals, new = calibrated
    for wrapper, cls in ((sets, ConformalClassifier), (intervals, ConformalRegressor)):
        path = tmp_path / f"{cls.__name__}.safetensors"
        wrapper.store().save(path)
        again = cls.from_model(promissing.load(path))
        assert again.get_params(deep=False).keys() == wrapper.get_params(deep=False).keys()
        predict = "predict_set" if cls is ConformalClassifier else "predict_interval"
        assert_array_equal(getattr(again, predict)(new), getattr(wrapper, predict)(new))
    other = ConformalRegressor.from_model(promissing.load(path), confidence_level=0.5)
    expected = intervals.predict_interval(new, confidence_level=0.5)
    assert_array_equal(other.predict_interval(new), expected)


def test_fitting_again_removes_the_calibration(calibrated):
    sets, _, new = calibrated
    model = sets.store()
    again = promissing.NanMLPClassifier(**model.get_params()).fit(new, ["a", "b"] * 20)
    with pytest.raises(ValueError, match="The model holds no calibration for this"):
        ConformalClassifier.from_model(again)


def test_what_a_file_cannot_hold_is_refused(calibrated):
    x, y = measured(200)
    trees = HistGradientBoostingRegressor(**QUICK).fit(x, y)
    with pytest.raises(ValueError, match="only in models of promissing.* type HistGradient"):
        intervals_of(x, y, model=trees).store()
    model = NanMLPRegressor(n_members=1, max_iter=3, loss="squared_error", random_state=0)
    with pytest.raises(ValueError, match="learned by trees.*`loss='mean_std'`"):
        intervals_of(x, y, model=model.fit(x, y)).store()
    assert intervals_of(x, y, model=model, scaled=False).store() is model
    with pytest.raises(ValueError, match="`method='exact'` predicts the calibration rows again"):
        intervals_of(x, y, model=model, method="exact", scaled=False).store()
    model = NanMLPRegressor(n_members=1, max_iter=3, random_state=0)
    with pytest.raises(ValueError, match="Cross-fitting trains several models"):
        ConformalRegressor(model, cv=2, random_state=0).fit_conformalize(x, y).store()
    with pytest.raises(ValueError, match="needs the calibration rows, which are not stored"):
        ConformalRegressor.from_model(calibrated[1].store(), method="exact")


def test_a_large_calibration_is_cut_to_the_limit(calibrated, monkeypatch):
    _, intervals, new = calibrated
    monkeypatch.setitem(storage.LARGEST, "conformal", 2**14)
    with pytest.warns(UserWarning, match="of them, drawn at random, are stored"):
        model = intervals.store()
    arrays = model.calibration_["conformal"][1]
    assert 2**13 < sum(array.nbytes for array in arrays.values()) <= 2**14 + 100
    assert np.isfinite(ConformalRegressor.from_model(model).predict_interval(new)).all()


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("scores", lambda a: a[:-1]),
        ("scores", lambda a: np.where(np.arange(len(a))[:, None] == 0, np.nan, a)),
        ("masks", lambda a: a[:, :, :0]),
        ("labels", lambda a: a - 1),
        ("labels", lambda a: a + 3),
        ("labels", lambda a: a.astype(np.int64)),
        ("weights", lambda a: a[1:]),
    ],
)
def test_a_damaged_calibration_is_refused(calibrated, name, change):
    model = calibrated[0].store()
    values, arrays = model.calibration_["conformal"]
    model.calibration_ = {"conformal": (values, arrays | {name: change(arrays[name])})}
    with pytest.raises(ValueError, match="The calibration in the model|The section 'conformal'"):
        ConformalClassifier.from_model(model)


def test_the_calibration_of_another_kind_of_model_is_refused(calibrated):
    sets, intervals, _ = calibrated
    with pytest.raises(ValueError, match="does not fit a ConformalRegressor"):
        ConformalRegressor.from_model(sets.store())
    with pytest.raises(ValueError, match="does not fit a ConformalClassifier"):
        ConformalClassifier.from_model(intervals.store())


class Undecided:
    """A classifier for which both classes are equally probable, whatever is known."""

    classes_ = np.array(["a", "b"])

    def predict_proba(self, X):
        return np.full((len(X), 2), 0.5)


@pytest.mark.parametrize("per_class", [False, True])
def test_an_empty_row_has_a_set_that_covers_whatever_the_seed(per_class):
    x = numbers(600, 200)
    y = np.array(["a", "b"])[np.random.default_rng(0).integers(2, size=600)]
    settings = {"allow_empty": True, "per_class": per_class, "model": Undecided()}
    for seed in range(80):
        sets = sets_of(x, y, random_state=seed, **settings)
        assert sets.predict_set(np.full((1, 200), NAN)).tolist() == [[True, True]]


def test_exact_scores_by_sizes_of_errors_that_were_learned_without_the_row():
    rng = np.random.default_rng(0)
    covered = {"exact": [], "split": []}
    for seed in range(12):
        x, x_new = rng.normal(size=(300, 20)), rng.normal(size=(400, 20))
        y, y_new = rng.standard_t(2.5, size=300), rng.standard_t(2.5, size=400)
        for method, found in covered.items():
            ours = intervals_of(x, y, model=Nothing(), method=method, n_masks=2, random_state=seed)
            low, high = np.asarray(ours.predict_interval(x_new)).T
            found.append(((low <= y_new) & (y_new <= high)).mean())
    assert np.mean(covered["exact"]) > 0.885
    assert abs(np.mean(covered["exact"]) - np.mean(covered["split"])) < 0.015


class Nothing:
    def predict(self, X):
        return np.zeros(len(X))


def test_a_higher_level_at_prediction_takes_more_calibration_rows():
    x, y = measured(2000)
    asked = intervals_of(x, y, model=Nothing(), scaled=False).predict_interval(
        x[:5], confidence_level=0.999
    )
    given = intervals_of(x, y, model=Nothing(), scaled=False, confidence_level=0.999)
    assert_array_equal(asked, given.predict_interval(x[:5]))


@pytest.mark.parametrize("settings", [{"per_class": True}, {"cv": 3, "prefit": False}])
def test_sets_that_may_not_be_empty_are_nested(settings):
    x, y = labelled(1500)
    new = labelled(1000, seed=1)[0]
    conformal = ConformalClassifier(
        HistGradientBoostingClassifier(**QUICK), **{"prefit": True, "random_state": 0} | settings
    )
    if "cv" in settings:
        conformal.fit_conformalize(x, y)
    else:
        conformal.estimator.fit(x[:700], y[:700])
        conformal.conformalize(x[700:], y[700:])
    levels = np.arange(0.1, 0.95, 0.05).tolist()
    sets = np.asarray(conformal.predict_set(new, confidence_level=levels))
    assert not (sets[..., :-1] & ~sets[..., 1:]).any()


def test_intervals_of_several_models_do_not_cross_at_low_levels():
    x, y = measured(400)
    ours = ConformalRegressor(
        HistGradientBoostingRegressor(**QUICK), cv=5, method="split", random_state=0
    ).fit_conformalize(x, y)
    new = measured(500, seed=1)[0]
    ends = np.asarray(ours.predict_interval(new, confidence_level=[0.05, 0.1, 0.2, 0.5]))
    assert (ends[:, 0] <= ends[:, 1]).all()
    assert (np.diff(ends[:, 0], axis=1) <= 0).all()
    assert (np.diff(ends[:, 1], axis=1) >= 0).all()


def test_folds_may_be_in_any_order():
    x, y = measured(600)
    order = np.random.default_rng(0).permutation(600)
    widths = []
    for sort in (np.sort, np.asarray):
        halves = sort(order[:300]), sort(order[300:])
        cv = [halves, halves[::-1]]
        ours = ConformalRegressor(
            HistGradientBoostingRegressor(**QUICK), cv=cv, method="exact", scaled=False
        ).fit_conformalize(x, y)
        widths.append(np.ptp(ours.predict_interval(np.full((1, 4), 0.5))))
    assert widths[0] == pytest.approx(widths[1], rel=0.3)


def test_a_new_fit_ends_an_earlier_calibration():
    x, y = labelled(600)
    conformal = ConformalClassifier(HistGradientBoostingClassifier(**QUICK), random_state=0)
    conformal.fit(x[:300], y[:300]).conformalize(x[300:], y[300:])
    conformal.fit(x[:300], y[:300])
    with pytest.raises(NotFittedError, match="not calibrated"):
        conformal.predict_set(x)


def test_a_single_mask_for_each_calibration_row_is_enough():
    assert np.isfinite(intervals_of(n_masks=1).predict_interval(measured(9, seed=1)[0])).all()


def test_weights_of_rows_are_divided_among_the_folds():
    x, y = labelled(300)
    conformal = ConformalClassifier(HistGradientBoostingClassifier(**QUICK), cv=3, random_state=0)
    conformal.fit_conformalize(x, y, sample_weight=np.ones(300))
    assert len(conformal.estimators_) == 3


def test_models_of_several_targets_and_of_the_other_kind_are_refused():
    x, y = measured(300)
    two = NanMLPRegressor((4,), n_members=1, max_iter=2).fit(x, np.c_[y, y])
    with pytest.raises(ValueError, match="`estimator` must predict one target.* predicts 2"):
        intervals_of(x, y, model=two)
    labels = HistGradientBoostingClassifier(**QUICK).fit(x, y > 0)
    with pytest.raises(ValueError, match="`estimator` must be a regressor"):
        intervals_of(x, y, model=labels)
    with pytest.raises(ValueError, match="`y` must be finite. Row 3 holds inf"):
        intervals_of(x, np.where(np.arange(300) == 3, np.inf, y))
    linear = LogisticRegression().fit(np.nan_to_num(x), y > 0)
    with pytest.raises(ValueError, match="`estimator`: LogisticRegression cannot predict where"):
        sets_of(np.nan_to_num(x), y > 0, model=linear)


def test_what_the_stored_calibration_fixes_cannot_be_changed(calibrated):
    model = calibrated[1].store()
    with pytest.raises(ValueError, match="`scaled` cannot be changed"):
        ConformalRegressor.from_model(model, scaled=False)
    with pytest.raises(ValueError, match="needs the calibration rows, which are not stored"):
        ConformalRegressor.from_model(model, method="exact")
    with pytest.raises(ValueError, match="`per_class=True` needs the classes"):
        ConformalClassifier.from_model(without_classes().store(), per_class=True)


def without_classes():
    x, y = labelled(300)
    model = NanMLPClassifier((4,), n_members=1, max_iter=2, random_state=0).fit(x, y)
    return sets_of(x, y, model=model)


def test_no_label_of_a_calibration_row_is_stored():
    values, arrays = without_classes().store().calibration_["conformal"]
    assert arrays["labels"].size == 0
    assert sum(values["class_counts"]) == len(arrays["scores"])


def test_results_survive_pickling_and_classes_may_have_the_names_of_columns():
    x, y = labelled(600)
    y = np.array(["set", "size", "other"])[pd.factorize(y, sort=True)[0]]
    model = HistGradientBoostingClassifier(**QUICK).fit(x[:300], y[:300])
    sets = sets_of(x[300:], y[300:], model=model).predict_set(x[:3])
    frame = pickle.loads(pickle.dumps(sets)).to_frame()
    assert frame.columns.tolist() == ["class other", "class set", "class size", "size", "set"]


def test_masks_may_be_a_frame():
    x, y = measured(300)
    masks = pd.DataFrame(np.isnan(measured(20, seed=3)[0]))
    assert ConformalRegressor(Sums(), prefit=True).conformalize(x, y, masks=masks).bank_


def test_one_level_of_several_is_measured_by_name():
    x, y = labelled(600)
    sets = sets_of(x, y, confidence_level=[0.5, 0.9])
    with pytest.raises(ValueError, match="measures one level"):
        sets.coverage_by_missing(x, y)
    assert sets.coverage_by_missing(x, y, confidence_level=0.9).level == 0.9


def test_scikit_learn_knows_what_the_wrappers_are():
    assert is_classifier(ConformalClassifier())
    assert is_regressor(ConformalRegressor())
    assert is_classifier(SelectiveClassifier())
    assert is_regressor(SelectiveRegressor(max_error=1.0))
    x, y = labelled(300)
    model = HistGradientBoostingClassifier(**QUICK).fit(x, y)
    assert sets_of(x, y, model=model).score(x, y) == model.score(x, y)
