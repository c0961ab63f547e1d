"""Effects of missing groups, and their importance."""

import numpy as np
import pandas as pd
import pytest
from masked_models import GROUPS, NAN, Network, columns_of, numbers, without
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.ensemble import IsolationForest
from sklearn.impute import SimpleImputer
from sklearn.linear_model import Ridge, RidgeClassifier
from sklearn.pipeline import make_pipeline

from promissing.inspection import importance, shapley, what_if


def test_an_effect_is_the_prediction_without_the_group_minus_the_prediction():
    model, x = Network(), numbers(gaps=0.2)
    result = what_if(model, x, groups=GROUPS)
    assert result.groups == ("blood", "scan", "gene")
    assert_allclose(result.prediction, model.predict_proba(x)[:, 1])
    for g, columns in enumerate(GROUPS.values()):
        p = model.predict_proba(without(x, columns))[:, 1]
        assert_allclose(result.effects[:, g], p - result.prediction, atol=1e-15)


def test_without_groups_each_column_is_one():
    model, x = Network(), numbers()
    assert what_if(model, x).groups == (0, 1, 2, 3)
    frame = pd.DataFrame(x, columns=list("wxyz"))
    result = what_if(model, frame)
    assert result.groups == ("w", "x", "y", "z")
    assert_allclose(result.effects[:, 2], what_if(model, x, groups={"y": 2}).effects[:, 0])


def test_what_is_unknown_already_has_no_effect_and_is_not_asked_for():
    model, x = Network(), numbers(5)
    x[0, [0, 1]] = NAN
    x[1] = NAN
    x[2, 0] = NAN  # Half of its group is still known.
    result = what_if(model, x, groups=GROUPS)
    assert result.known.tolist() == [[False, True, True], [False] * 3, *[[True] * 3] * 3]
    assert (result.effects[~result.known] == 0).all()
    assert (result.kinds[~result.known] == "none").all()
    assert (result.effects[result.known] != 0).all()
    assert len(model.asked[-1]) == result.known.sum()


def test_columns_in_no_group_are_kept_as_they_are():
    model, x = Network(), numbers()
    what_if(model, x, groups={"scan": [2]})
    assert_array_equal(model.asked[-1][:, [0, 1, 3]], x[:, [0, 1, 3]])


@pytest.mark.parametrize("n_outputs", [2, 4])
def test_the_four_kinds_say_what_becomes_of_the_decision(n_outputs):
    model, x = Network(n_outputs=n_outputs), numbers(40, gaps=0.1)
    result = what_if(model, x, groups=GROUPS)
    before = model.predict_proba(x)
    decided = before.argmax(axis=1)
    assert_array_equal(result.decision, model.classes_[decided])
    for i, g in np.ndindex(result.effects.shape):
        after = model.predict_proba(without(x[[i]], list(GROUPS.values())[g]))[0]
        if not result.known[i, g]:
            expected = "none"
        elif after.argmax() != decided[i]:
            expected = "flips"
        else:
            expected = "supports" if after[decided[i]] < before[i, decided[i]] else "opposes"
        assert result.kinds[i, g] == expected
    assert set(result.kinds.ravel()) == {"flips", "supports", "opposes", "none"}


def test_the_four_outcomes_of_a_decision():
    result = what_if(Network(), numbers(8))
    truth = np.array(["a", "b"] * 4)
    expected = {
        ("a", "a"): "true negative",
        ("b", "b"): "true positive",
        ("b", "a"): "false negative",
        ("a", "b"): "false positive",
    }
    pairs = zip(truth, result.decision, strict=True)
    assert result.outcomes(truth).tolist() == [expected[pair] for pair in pairs]
    with pytest.raises(ValueError, match="`y` must have one class for each of the 8 rows"):
        result.outcomes(truth[:3])
    for n_outputs in (1, 3):
        with pytest.raises(ValueError, match="a decision between two classes"):
            what_if(Network(n_outputs=n_outputs), numbers(8)).outcomes(truth)


def test_pairs():
    model, x = Network(), numbers(gaps=0.3)
    result = what_if(model, x, groups=GROUPS, pairs=True)
    assert result.groups == (("blood", "scan"), ("blood", "gene"), ("scan", "gene"))
    for g, pair in enumerate(result.groups):
        p = model.predict_proba(without(x, columns_of(GROUPS, pair)))[:, 1]
        assert_allclose(result.effects[:, g], p - result.prediction, atol=1e-15)
    assert what_if(model, x, groups={"all": [0, 1]}, pairs=True).effects.shape == (6, 0)


def test_cumulative_takes_groups_away_in_their_order():
    model, x = Network(), numbers(gaps=0.3)
    order = {name: GROUPS[name] for name in ("gene", "blood", "scan")}
    result = what_if(model, x, groups=order, cumulative=True)
    for g in range(3):
        p = model.predict_proba(without(x, columns_of(order, list(order)[: g + 1])))[:, 1]
        assert_allclose(result.effects[:, g], p - result.prediction, atol=1e-15)
    with pytest.raises(ValueError, match="Use `pairs` or `cumulative`, not both"):
        what_if(model, x, pairs=True, cumulative=True)


def test_of_several_classes_the_predicted_one_is_explained_or_the_target():
    model, x = Network(n_outputs=3), numbers(20)
    p = model.predict_proba(x)
    result = what_if(model, x)
    assert_allclose(result.prediction, p.max(axis=1))
    own = model.predict_proba(without(x, [0]))[np.arange(20), p.argmax(axis=1)]
    assert_allclose(result.effects[:, 0], own - p.max(axis=1), atol=1e-15)
    result = what_if(model, x, target="c")
    assert_allclose(result.prediction, p[:, 2])
    assert_allclose(what_if(Network(), x, target="a").effects, -what_if(Network(), x).effects)


def test_regressors_with_one_output_or_several():
    x = numbers(50)
    y = np.column_stack([x[:, 0], x[:, 1] - x[:, 2]])
    one = make_pipeline(SimpleImputer(), Ridge()).fit(x, y[:, 1])
    both = make_pipeline(SimpleImputer(), Ridge()).fit(x, y)
    result = what_if(one, x)
    assert_allclose(result.prediction, one.predict(x))
    assert_allclose(what_if(both, x, target=1).effects, result.effects)
    assert result.kinds is result.decision is None
    assert "kind" not in result.to_frame()
    with pytest.raises(ValueError, match="position of one of the 2 outputs .* Received: None"):
        what_if(both, x)


def test_without_probabilities_the_decision_function_is_explained():
    x = numbers(60)
    y = np.where(x[:, 0] > 0, "yes", "no")
    model = make_pipeline(SimpleImputer(), RidgeClassifier()).fit(x, y)
    result = what_if(model, x)
    score = model.decision_function(x)
    assert_allclose(result.prediction, score)
    change = model.decision_function(without(x, [0])) - score
    assert_allclose(result.effects[:, 0], change, atol=1e-15)
    assert_array_equal(result.decision, model.predict(x))
    assert_array_equal(
        result.kinds[:, 0] == "flips", model.predict(without(x, [0])) != model.predict(x)
    )
    odd = make_pipeline(SimpleImputer(), IsolationForest(n_estimators=5, random_state=0)).fit(x)
    assert_allclose(what_if(odd, x[:3]).prediction, odd.decision_function(x[:3]))


def test_effects_as_a_frame():
    frame = pd.DataFrame(numbers(3), columns=list("wxyz"), index=["p", "q", "r"])
    result = what_if(Network(), frame)
    table = result.to_frame()
    columns = ["row", "group", "known", "class", "prediction", "effect", "kind"]
    assert table.columns.tolist() == columns
    assert set(table["class"]) == {"b"}
    assert table["row"].tolist() == [*"pppp", *"qqqq", *"rrrr"]
    assert table.query("row == 'q' and group == 'z'")["effect"].item() == result.effects[1, 3]
    pairs = what_if(Network(), frame, pairs=True).to_frame()
    assert pairs["group"][1] == ("w", "y")


def test_outcomes_are_those_of_the_positive_class():
    x = numbers(8)
    truth = np.array(["a", "b"] * 4)
    default = what_if(Network(), x)
    chosen = what_if(Network(), x, positive="a")
    assert (default.positive, chosen.positive) == ("b", "a")
    swap = {"positive": "negative", "negative": "positive"}
    swapped = [
        f"{right} {swap[sign]}" for right, sign in map(str.split, default.outcomes(truth).tolist())
    ]
    assert chosen.outcomes(truth).tolist() == swapped


@pytest.mark.parametrize("explain", [what_if, shapley])
def test_importance_is_the_mean_size_of_the_effects(explain):
    model, x = Network(), numbers(30, gaps=0.2)
    result = explain(model, x, groups=GROUPS)
    sizes = np.abs(result.effects if explain is what_if else result.values)
    table = importance(result)
    assert table["importance"].is_monotonic_decreasing
    table = table.loc[list(GROUPS)]
    assert_allclose(table["importance"], sizes.mean(axis=0))
    assert_allclose(table["standard_error"], sizes.std(axis=0, ddof=1) / np.sqrt(30))
    assert_allclose(table["known"], result.known.mean(axis=0))


def test_importance_of_pairs_and_of_a_single_row():
    model, x = Network(), numbers(1)
    table = importance(what_if(model, x, pairs=True))
    assert (0, 1) in table.index
    assert table["standard_error"].isna().all()
