"""Missing values of new rows beside those in training."""

import numpy as np
import pandas as pd
import pytest
from masked_models import NAN, Sums, numbers

import promissing
from promissing import NanMLPClassifier, NanMLPRegressor
from promissing.uncertainty import missingness_drift


@pytest.fixture(scope="module")
def model():
    x = numbers(800, 5)
    x[np.random.default_rng(0).random(x.shape) < 0.2] = NAN
    frame = pd.DataFrame(x, columns=list("abcde"))
    y = np.nan_to_num(x[:, 0]) + 0.3 * np.nan_to_num(x[:, 1]) > 0
    return NanMLPClassifier(n_members=1, max_iter=20, random_state=0).fit(frame, y)


def rows(n=300, seed=1, share=0.2):
    x = numbers(n, 5, seed)
    x[np.random.default_rng(seed).random(x.shape) < share] = NAN
    return pd.DataFrame(x, columns=list("abcde"))


def test_columns_that_are_missing_more_or_less_often_are_found(model):
    new = rows()
    new["b"] = NAN
    new["d"] = 1.0
    found = missingness_drift(model, new)
    assert found.drifted.tolist() == [False, True, False, True, False]
    frame = found.to_frame()
    assert frame["feature"].tolist()[:2] == ["b", "d"]
    assert frame["after"].tolist()[:2] == [1.0, 0.0]
    assert found.joint_p_value == 0.001
    assert repr(found) == "MissingnessDrift(300 rows, 2 of 5 features drifted)"


def test_without_drift_few_features_are_reported(model):
    found = [missingness_drift(model, rows(seed=seed)) for seed in range(40)]
    assert sum(one.drifted.any() for one in found) <= 6
    assert np.mean([one.joint_p_value < 0.1 for one in found]) < 0.25


def test_the_joint_test_sees_what_single_features_do_not(model):
    new = rows(share=0.0)
    lost = np.random.default_rng(2).random(len(new)) < 0.2
    new.loc[lost] = NAN  # Each feature as often as before, but all together.
    new.loc[lost, "a"] = 0.0
    new.loc[~lost & (np.arange(len(new)) % 4 == 0), "a"] = NAN
    found = missingness_drift(model, new)
    assert not found.drifted.any()
    assert found.joint_p_value < 0.01


def test_patterns_that_were_never_seen_are_marked(model):
    new = rows(4, share=0.0)
    new.iloc[1] = NAN
    new.iloc[2, 0] = NAN
    assert missingness_drift(model, new).unseen.tolist() == [False, True, False, False]


def test_the_column_whose_loss_costs_most_is_known(model):
    found = missingness_drift(model, rows())
    assert found.accuracy.argmax() == found.loss.argmax() == 0
    assert 0.1 < found.accuracy[0] < 0.5
    assert np.abs(found.accuracy[2:]).max() < 0.05
    new = rows()
    new["a"] = NAN
    frame = missingness_drift(model, new).to_frame()
    assert frame["expected_fall"][0] == frame["change"][0] * frame["accuracy"][0]


def test_it_is_drawn(model):
    ax = missingness_drift(model, rows()).plot()
    assert len(ax.get_yticklabels()) == 5


def test_the_record_is_saved_and_continued(model, tmp_path):
    model.save(tmp_path / "model.safetensors")
    again = promissing.load(tmp_path / "model.safetensors")
    found, expected = (missingness_drift(m, rows()) for m in (again, model))
    pd.testing.assert_frame_equal(found.to_frame(), expected.to_frame())
    x = numbers(60)
    part = NanMLPRegressor(n_members=1, random_state=0).partial_fit(x, x[:, 0])
    x[:, 1] = NAN
    part.partial_fit(x, x[:, 0])
    assert part.missing_record_.missing.tolist() == [0, 60, 0, 0]
    assert part.missing_record_.n_rows == 120


def test_what_cannot_be_compared_is_refused(model):
    with pytest.raises(ValueError, match="only in models of promissing|type Sums"):
        missingness_drift(Sums(), rows())
    with pytest.raises(ValueError, match="`level` must be a number between 0 and 1"):
        missingness_drift(model, rows(), level=2.0)
    with pytest.raises(ValueError, match="0 sample|has no rows"):
        missingness_drift(model, rows()[:0])
    with pytest.raises(ValueError, match="feature names|columns"):
        missingness_drift(model, rows()[["a"]])


def test_many_patterns_are_all_remembered_and_no_drift_is_found_in_training_rows():
    x = numbers(4000, 30)
    x[np.random.default_rng(0).random(x.shape) < 0.5] = NAN
    model = NanMLPClassifier((8,), n_members=1, max_iter=2).fit(x, np.arange(4000) % 2)
    assert model.missing_record_.sample.mean() == pytest.approx(0.5, abs=0.02)
    found = missingness_drift(model, x[1000:2000])
    assert not found.unseen.any()
    assert found.joint_p_value > 0.05
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("promissing.estimators.missing_record.MOST_PATTERNS", 100)
        model.fit(x[:200], np.arange(200) % 2)
    assert missingness_drift(model, x[:50]).unseen is None
