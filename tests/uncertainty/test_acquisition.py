"""What to measure next."""

import numpy as np
import pandas as pd
import pytest
from masked_models import NAN, Network, Sums, numbers
from numpy.testing import assert_allclose, assert_array_equal
from studies.uncertainty import make_cube

import promissing
from promissing import NanMLPClassifier, NanMLPRegressor
from promissing.uncertainty import AcquisitionPlan, acquisition_curve, next_measurement


class Weighted:
    """The sum of features with weights: the order of their importance is known."""

    weights = np.array([1.0, 4.0, 2.0, 0.0])

    def predict(self, X):
        return np.nan_to_num(np.asarray(X, dtype=float)) @ self.weights


@pytest.fixture(scope="module")
def background():
    return numbers(300)


def test_the_order_is_that_of_the_gains(background):
    plan = AcquisitionPlan(Weighted(), background, random_state=0)
    assert plan.order.tolist() == [1, 2, 0, 3]
    # The squared error falls by the square of the weight, times the variance of the feature.
    assert_allclose(plan.gains, Weighted.weights**2, atol=2.5)
    result = plan.next([[NAN, 1.0, NAN, NAN], [0.0, NAN, 0.0, 0.0], [0.0] * 4])
    assert result.ranks.tolist() == [[2, 0, 1, 3], [0, 1, 0, 0], [0, 0, 0, 0]]
    assert_array_equal(np.isnan(result.gains), result.ranks == 0)


def test_gains_are_divided_by_costs(background):
    frame = pd.DataFrame(background, columns=list("abcd"))
    found = next_measurement(
        Weighted(), frame[:1] * NAN, frame, costs={"b": 40.0, "c": 2.0}, random_state=0
    ).to_frame()
    assert found["group"].tolist() == ["c", "a", "b", "d"]
    assert_allclose(found["gain_per_cost"], found["gain"] / found["cost"])
    assert found["rank"].tolist() == [1, 2, 3, 4]


def test_groups_are_obtained_together(background):
    groups = {"both": [0, 2], "second": [1], "last": [3]}
    plan = AcquisitionPlan(Weighted(), background, groups=groups, random_state=0)
    assert [plan.groups[g] for g in plan.order] == ["second", "both", "last"]
    found = plan.next([[NAN, NAN, 1.0, NAN]]).to_frame()
    # A group of which a value is known counts as known.
    assert found["group"].tolist() == ["second", "last"]


def test_it_stops_where_nothing_could_change_the_decision(background):
    class Certain(Network):
        def outputs(self, X):
            x = np.nan_to_num(np.asarray(X, dtype=float))
            score = 6 * x[:, 0] + 0.1 * x[:, 1]
            return np.column_stack([-score, score])

    plan = AcquisitionPlan(Certain(), background, random_state=0)
    result = plan.next([[2.0, NAN, NAN, NAN], [NAN, 1.0, 1.0, 1.0], [0.5] * 4])
    assert result.stop.tolist() == [True, False, True]
    assert result.change[0] < 0.05 < 0.3 < result.change[1]
    assert result.change[2] == 0
    assert plan.next([[2.0, NAN, NAN, NAN]], confidence=0.999).stop.tolist() == [True]
    with pytest.raises(ValueError, match=r"needs 10,000 masked background rows"):
        plan.next([[2.0, NAN, NAN, NAN]], confidence=0.9999)


def test_the_curve_is_the_loss_after_every_step():
    x = numbers(200, seed=1)
    y = Weighted().predict(x)
    curve = acquisition_curve(
        Weighted(), x, y, ["global", "random"], background=numbers(200), random_state=0
    )
    order = [1, 2, 0, 3]
    for step in range(5):
        kept = np.where(np.isin(np.arange(4), order[:step]), x, 0.0)
        expected = (kept @ Weighted.weights - y) ** 2
        assert_allclose(curve.losses["global"][:, step], expected, atol=1e-12)
    table = curve.to_frame().set_index(["policy", "step"])
    assert table.loc[("random", 1), "difference"] > 3 * table.loc[("random", 1), "difference_error"]
    assert (table.loc["global", "difference"] == 0).all()
    assert table.loc["global", "cost"].tolist() == [0, 1, 2, 3, 4]
    assert curve.plot(by="cost").get_ylabel() == "squared error"


def test_values_that_are_missing_cannot_be_obtained():
    x = numbers(50, seed=1)
    x[:, 1] = NAN
    curve = acquisition_curve(
        Weighted(), x, x[:, 0], ["global"], background=numbers(200), max_steps=2, random_state=0
    )
    assert curve.spent["global"].tolist() == [[0, 1, 2]] * 50


@pytest.mark.slow
def test_the_features_that_inform_about_some_class_come_first():
    X, y = make_cube(4000, np.random.default_rng(0))
    model = NanMLPClassifier((64,), n_members=2, max_iter=15, random_state=0).fit(
        X[:3000], y[:3000]
    )
    order = AcquisitionPlan(model, X[3000:], random_state=0).order
    assert set(order[:10]) == set(range(10))


def test_a_learned_policy_knows_what_a_row_needs():
    class Switch:
        """The first feature decides which of the next two counts."""

        def predict(self, X):
            x = np.asarray(X, dtype=float)
            filled = np.nan_to_num(x)
            picked = np.where(filled[:, 0] > 0, filled[:, 1], filled[:, 2])
            return np.where(np.isnan(x[:, 0]), (filled[:, 1] + filled[:, 2]) / 2, picked)

    plan = AcquisitionPlan(Switch(), numbers(500, 3), policy="learned", random_state=0)
    result = plan.next([[1.0, NAN, NAN], [-1.0, NAN, NAN]])
    assert result.ranks[:, 1:].tolist() == [[1, 2], [2, 1]]


# --------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"policy": "greedier"}, "`policy` must be one of"),
        ({"costs": {7: 1.0}}, "`costs` names 7, which is no feature or group"),
        ({"costs": {0: 0.0}}, "must be a positive number"),
        ({"costs": {0: NAN}}, "must be a positive number"),
        ({"groups": {"a": [9]}}, "9"),
        ({"groups": {}}, "`groups` must be a mapping with at least one group"),
        ({"confidence": 1.5}, "`confidence` must be a number between 0 and 1"),
    ],
)
def test_bad_settings_are_refused(background, settings, message):
    with pytest.raises(ValueError, match=message):
        next_measurement(Sums(), background[:2], background, **settings)


def test_a_name_that_is_nearly_right_is_suggested(background):
    frame = pd.DataFrame(background, columns=["age", "dose", "height", "weight"])
    with pytest.raises(ValueError, match="`costs` names 'hight'.*'height'"):
        AcquisitionPlan(Sums(), frame, costs={"hight": 2.0})


def test_targets_that_do_not_fit_are_refused():
    x = numbers(60)
    with pytest.raises(ValueError, match="`y` holds 'z', which is not one of the classes"):
        acquisition_curve(Network(), x, ["z"] * 60, background=x)
    with pytest.raises(ValueError, match="`policy` must be one of"):
        acquisition_curve(Sums(), x, x[:, 0], ["best"], background=x)


# ----------------------------------------------------------------------------------- storage


@pytest.fixture(scope="module")
def planned():
    x = numbers(300)
    frame = pd.DataFrame(x, columns=list("wxyz"))
    model = NanMLPClassifier(n_members=1, max_iter=10, random_state=0).fit(frame, x[:, 1] > 0)
    groups = {"first": ["w"], "rest": ["x", "y"]}
    return model, AcquisitionPlan(model, frame, groups=groups, random_state=0), frame


def test_a_plan_is_saved_with_the_model(planned, tmp_path):
    _, plan, frame = planned
    path = tmp_path / "model.safetensors"
    plan.store().save(path)
    again = AcquisitionPlan.from_model(promissing.load(path))
    new = frame.mask(np.random.default_rng(0).random(frame.shape) < 0.6)
    pd.testing.assert_frame_equal(again.next(new).to_frame(), plan.next(new).to_frame())
    dearer = AcquisitionPlan.from_model(promissing.load(path), costs={"rest": 5.0})
    assert dearer.next(new).costs.tolist() == [1.0, 5.0]


def test_what_a_file_cannot_hold_is_refused(planned):
    model, plan, frame = planned
    with pytest.raises(ValueError, match="only in models of promissing"):
        AcquisitionPlan(Sums(), numbers(60), random_state=0).store()
    with pytest.raises(ValueError, match='cannot hold the model of `policy="learned"`'):
        AcquisitionPlan(model, frame, policy="learned", random_state=0).store()
    values, arrays = plan.store().calibration_["acquisition"]
    for name, change in (
        ("order", lambda a: a * 0),
        ("gains", lambda a: a[:1]),
        ("group_of", lambda a: a + 1),
        ("places", lambda a: a[:, :1]),
        ("changed", lambda a: a.astype(np.int32)),
    ):
        model.calibration_ = {"acquisition": (values, arrays | {name: change(arrays[name])})}
        with pytest.raises(ValueError, match="damaged"):
            AcquisitionPlan.from_model(model)


def test_new_costs_change_the_order_of_a_stored_plan():
    x = numbers(400)
    model = NanMLPClassifier((8,), n_members=1, max_iter=30, random_state=0)
    plan = AcquisitionPlan(model.fit(x, x[:, 1] + 0.5 * x[:, 2] > 0), x, random_state=0)
    model = plan.store()
    assert plan.order[:2].tolist() == [1, 2]
    assert AcquisitionPlan.from_model(model, costs={1: 1000}).order[0] == 2


def test_settings_of_the_wrong_kind_are_refused(background):
    plan = AcquisitionPlan(Network(), background, random_state=0)
    with pytest.raises(ValueError, match="Only a plan with"):
        plan.learned_gains(background)
    with pytest.raises(ValueError, match="`costs` must be a mapping"):
        AcquisitionPlan(Network(), background, costs=[1, 2, 3, 4])
    y = np.array(["a", "b"])[np.arange(len(background)) % 2]
    for policies in ("global", ()):
        with pytest.raises(ValueError, match="`policies` must be a sequence"):
            acquisition_curve(Network(), background, y, policies, background=background)
    with pytest.raises(ValueError, match="`max_steps` must be a whole number"):
        acquisition_curve(Network(), background, y, background=background, max_steps=1.5)
    two = NanMLPRegressor((4,), n_members=1, max_iter=2).fit(background, background[:, :2])
    with pytest.raises(ValueError, match="`model` must predict one target"):
        AcquisitionPlan(two, background)
