"""Abstention: classifiers and regressors that decide only where they are right often enough."""

import warnings

import numpy as np
import pandas as pd
import pytest
from masked_models import NAN, Network, Sums, numbers
from numpy.testing import assert_array_equal
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.exceptions import NotFittedError
from sklearn.svm import LinearSVC

import promissing
from promissing import NanMLPClassifier, NanMLPRegressor
from promissing.uncertainty import SelectiveClassifier, SelectiveRegressor
from promissing.uncertainty.selective import choose_threshold


def decided(n, rng):
    """Certainties, and whether predictions of these certainties are right: too certain by 0.02."""
    certainty = rng.beta(4, 1, size=n)
    return certainty, rng.random(n) < certainty - 0.02


class Decider(Network):
    """Two classes with probabilities between 0 and 1."""

    def __init__(self):
        super().__init__(4, 2, scale=6.0)

    def predict(self, X):
        return self.classes_[self.predict_proba(X).argmax(axis=1)]


def labelled(n=1500, seed=0):
    rng = np.random.default_rng(seed)
    x = numbers(n, 4, seed)
    proba = Decider().predict_proba(x)
    y = np.where(rng.random(n) < proba[:, 0], "a", "b")
    return x, y


def classifier(n=1500, **settings):
    x, y = labelled(n)
    settings = {"accuracy": 0.85, "prefit": True} | settings
    return SelectiveClassifier(Decider(), **settings).calibrate(x, y)


@pytest.mark.parametrize(("n", "accuracy"), [(400, 0.85), (3000, 0.9), (1000, 0.8)])
def test_the_accuracy_where_it_decides_is_below_the_target_in_one_set_of_twenty(n, accuracy):
    rng = np.random.default_rng(n)
    grid = np.sort(rng.beta(4, 1, size=200_000))
    # The accuracy above every certainty of the grid.
    above = np.cumsum((grid - 0.02)[::-1])[::-1] / np.arange(len(grid), 0, -1)
    missed = chosen = 0
    for _ in range(1000):
        threshold = choose_threshold(*decided(n, rng), accuracy, confidence=0.95)
        if threshold < grid[-1]:
            chosen += 1
            missed += above[np.searchsorted(grid, threshold, side="right")] < accuracy
    assert missed <= 1000 * (0.05 + 2 * np.sqrt(0.05 * 0.95 / 1000))
    assert chosen > 500  # It does not merely abstain.


def test_the_threshold_keeps_rows_of_equal_certainty_together():
    certainty = np.repeat([0.9, 0.8, 0.7], 300)
    right = np.concatenate([np.ones(300), np.ones(300), np.arange(300) % 2]).astype(bool)
    assert choose_threshold(certainty, right, 0.9, 0.95) == 0.7
    assert choose_threshold(certainty, right, 0.7, 0.95) == -np.inf
    assert choose_threshold(certainty, ~right, 0.9, 0.95) == np.inf


def test_few_rows_cannot_show_a_high_accuracy():
    right = np.ones(20, bool)
    assert choose_threshold(np.linspace(0, 1, 20), right, 0.95, 0.95) == np.inf
    assert choose_threshold(np.linspace(0, 1, 20), right, 0.5, 0.95) < 1


def test_it_is_accurate_where_it_decides():
    selective = classifier()
    x, y = labelled(4000, seed=1)
    result = selective.predict_selective(x)
    assert 0.1 < result.abstained.mean() < 0.9
    assert (result.prediction == y)[~result.abstained].mean() > 0.84
    assert (selective.predict(x) == y).mean() < 0.84
    assert all(value is None for value in result.prediction[result.abstained])
    certainty = selective.predict_proba(x).max(axis=1)
    assert_array_equal(result.abstained, certainty <= selective.threshold_)


def test_the_reasons_are_given():
    selective = classifier()
    x = np.full((2, 4), NAN)
    x[1] = numbers(200)[selective.predict_proba(numbers(200)).max(axis=1).argmin()]
    frame = selective.predict_selective(x).to_frame()
    assert frame["reason"][0] == "no value is known"
    assert frame["reason"][1].startswith("highest class probability 0.5")
    assert "is not above" in frame["reason"][1]


def test_if_no_threshold_qualifies_it_abstains_from_every_row_with_a_warning():
    with pytest.warns(UserWarning, match="No threshold reaches an accuracy of 0.999"):
        selective = classifier(accuracy=0.999)
    result = selective.predict_selective(numbers(5))
    assert result.abstained.all()
    assert set(result.reason) == {"no threshold reaches the accuracy"}
    assert set(selective.predict(numbers(5))) <= {"a", "b"}  # `predict` is as always.


def test_a_regressor_abstains_from_wide_intervals():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(1500, 4))
    y = Sums().predict(x) + np.where(x[:, 0] > 0, 3.0, 0.1) * rng.normal(size=1500)
    selective = SelectiveRegressor(Sums(), max_width=4.0, prefit=True, random_state=0)
    result = selective.calibrate(x, y).predict_selective(x)
    assert result.abstained[x[:, 0] > 0.2].mean() > 0.9
    assert result.abstained[x[:, 0] < -0.2].mean() < 0.1
    assert np.isnan(result.prediction[result.abstained]).all()
    assert all("interval width" in why for why in result.reason[result.abstained])


def test_a_regressor_keeps_errors_small_where_it_decides():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(6000, 4))
    y = Sums().predict(x) + np.where(x[:, 0] > 0, 3.0, 0.3) * rng.normal(size=6000)
    selective = SelectiveRegressor(
        Sums(), max_error=1.0, accuracy=0.9, prefit=True, random_state=0
    ).calibrate(x[:3000], y[:3000])
    result = selective.predict_selective(x[3000:])
    small = np.abs(result.prediction - y[3000:]) <= 1.0
    assert small[~result.abstained].mean() > 0.88
    assert 0.3 < (~result.abstained).mean() < 0.7


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"accuracy": 1.0}, "`accuracy` must be a number between 0 and 1"),
        ({"confidence": 0.0}, "`confidence` must be a number between 0 and 1"),
        ({"accuracy": "high"}, "`accuracy` must be a number between 0 and 1"),
    ],
)
def test_bad_settings_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        classifier(n=50, **settings)


@pytest.mark.parametrize(
    "settings", [{}, {"max_width": 1.0, "max_error": 1.0}, {"max_error": -1.0}, {"max_width": "a"}]
)
def test_a_regressor_needs_one_limit(settings):
    with pytest.raises(ValueError, match="Give one of `max_width` and `max_error`, a positive"):
        SelectiveRegressor(Sums(), prefit=True, **settings).calibrate(
            numbers(50), numbers(50)[:, 0]
        )


def test_steps_in_the_wrong_order_are_refused():
    x, y = labelled(60)
    model = HistGradientBoostingClassifier(max_iter=5)
    with pytest.raises(NotFittedError, match="Call `fit` with training rows first"):
        SelectiveClassifier(model).calibrate(x, y)
    with pytest.raises(NotFittedError):
        SelectiveClassifier(model).fit(x, y).predict_selective(x)
    with pytest.raises(ValueError, match="the estimator is fitted already"):
        SelectiveClassifier(model, prefit=True).fit(x, y)
    with pytest.raises(ValueError, match="`estimator` must have `predict_proba`, and LinearSVC"):
        SelectiveClassifier(LinearSVC().fit(x, y), prefit=True).calibrate(x, y)


# ----------------------------------------------------------------------------------- storage


@pytest.fixture(scope="module")
def models():
    x, y = labelled(800)
    frame = pd.DataFrame(x, columns=list("wxyz"))
    fitted = (
        NanMLPClassifier(n_members=1, max_iter=30, random_state=0).fit(frame[:400], y[:400]),
        NanMLPRegressor(n_members=1, max_iter=10, random_state=0).fit(frame[:400], x[:400, 0]),
    )
    return (*fitted, frame[400:], y[400:], x[400:, 0])


def test_a_threshold_is_saved_with_the_model(models, tmp_path):
    model, _, frame, y, _ = models
    path = tmp_path / "model.safetensors"
    selective = SelectiveClassifier(model, accuracy=0.7, prefit=True).calibrate(frame, y)
    selective.store().save(path)
    again = SelectiveClassifier.from_model(promissing.load(path))
    assert again.threshold_ == selective.threshold_
    assert_array_equal(
        again.predict_selective(frame).abstained, selective.predict_selective(frame).abstained
    )
    stricter = SelectiveClassifier.from_model(promissing.load(path), accuracy=0.75)
    expected = SelectiveClassifier(model, accuracy=0.75, prefit=True).calibrate(frame, y)
    assert stricter.threshold_ == expected.threshold_


def test_a_regressor_is_saved_with_its_intervals(models, tmp_path):
    _, model, frame, _, y = models
    path = tmp_path / "model.safetensors"
    for limit in ({"max_width": 2.0}, {"max_error": 1.0, "accuracy": 0.8}):
        selective = SelectiveRegressor(model, **limit, prefit=True, random_state=0)
        selective.calibrate(frame, y).store().save(path)
        again = SelectiveRegressor.from_model(promissing.load(path))
        assert again.threshold_ == selective.threshold_
        new = frame.mask(np.random.default_rng(0).random(frame.shape) < 0.4)
        assert_array_equal(
            again.predict_selective(new).abstained, selective.predict_selective(new).abstained
        )
    narrower = SelectiveRegressor.from_model(promissing.load(path), max_width=0.1)
    assert narrower.predict_selective(frame).abstained.mean() > 0.9


def test_what_a_file_cannot_hold_is_refused(models):
    model, _, frame, y, target = models
    with pytest.raises(ValueError, match="only in models of promissing"):
        classifier(200, accuracy=0.6).store()
    selective = SelectiveClassifier(model, accuracy=0.7, prefit=True).calibrate(frame, y)
    values, arrays = selective.store().calibration_["selective"]
    model.calibration_ = {"selective": (values, arrays | {"wrong": arrays["wrong"][1:]})}
    with pytest.raises(ValueError, match="damaged"):
        SelectiveClassifier.from_model(model)
    with pytest.raises(ValueError, match="The model holds no calibration for this"):
        SelectiveRegressor.from_model(
            NanMLPRegressor(n_members=1, max_iter=1, random_state=0).fit(frame, target)
        )
    plain = NanMLPRegressor(n_members=1, max_iter=3, loss="squared_error", random_state=0)
    selective = SelectiveRegressor(plain.fit(frame, target), max_error=9.0, prefit=True)
    with pytest.raises(ValueError, match="learned by trees"):
        selective.calibrate(frame, target).store()


def test_the_accuracy_is_that_of_the_returned_predictions():
    class Eager(Decider):
        def predict(self, X):
            return self.classes_[(self.predict_proba(X)[:, 1] > 0.05).astype(int)]

    (x, y), (new, truth) = labelled(3000), labelled(3000, seed=1)
    selective = SelectiveClassifier(Eager(), accuracy=0.85, prefit=True).calibrate(x, y)
    result = selective.predict_selective(new)
    decided = ~result.abstained
    assert decided.any()
    assert (result.prediction == truth)[decided].mean() > 0.82


def test_rows_that_are_never_decided_do_not_help_the_others():
    rng = np.random.default_rng(0)
    decided = 0
    for seed in range(20):
        x, y = labelled(1000, seed)
        x[:800] = NAN
        y[:800] = Decider().predict(x[:800])  # Always right where nothing is known.
        y[800:] = np.where(rng.random(200) < 0.2, "a", Decider().predict(x[800:]))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # No threshold reaches the accuracy.
            selective = SelectiveClassifier(Decider(), accuracy=0.97, prefit=True).calibrate(x, y)
        decided += (~selective.predict_selective(x[800:]).abstained).mean() > 0.5
    assert decided == 0


def test_a_new_fit_ends_an_earlier_threshold():
    x, y = labelled(600)
    selective = SelectiveClassifier(HistGradientBoostingClassifier(max_iter=9), accuracy=0.6)
    selective.fit(x[:300], y[:300]).calibrate(x[300:], y[300:]).fit(x[:300], y[:300])
    with pytest.raises(NotFittedError):
        selective.predict_selective(x)


def test_intervals_cannot_serve_for_errors(models):
    _, model, frame, _, y = models
    selective = SelectiveRegressor(model, max_width=3.0, prefit=True, random_state=0)
    selective.calibrate(frame, y)
    model.calibration_ = {}
    selective.store()
    with pytest.warns(UserWarning, match="replace those that were stored"):
        selective.store()
    with pytest.raises(ValueError, match="`max_error` needs another calibration"):
        SelectiveRegressor.from_model(model, max_error=1.0)
    model.calibration_ = {}


def test_targets_and_settings_of_other_kinds_are_refused(models):
    model, numbers_model, frame, _, target = models
    with pytest.raises(ValueError, match="not one of the classes"):
        SelectiveClassifier(model, prefit=True).calibrate(frame, np.full(len(frame), "x"))
    with pytest.raises(ValueError, match="`y` must hold numbers"):
        SelectiveRegressor(numbers_model, max_error=1.0, prefit=True).calibrate(
            frame, np.full(len(frame), "x")
        )
    with pytest.raises(ValueError, match="`confidence_level` must be a number"):
        SelectiveRegressor(
            numbers_model, max_width=1.0, confidence_level=[0.8, 0.9], prefit=True
        ).calibrate(frame, target)
    with pytest.raises(ValueError, match="`estimator` must be a regressor"):
        SelectiveRegressor(model, max_error=1.0, prefit=True).calibrate(frame, target)
