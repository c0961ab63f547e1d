"""What predictions become when something is unknown, and that nothing else changes."""

import doctest
import importlib
import pickle
from itertools import combinations, pairwise, permutations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from plain import classifier, regressor
from sklearn.compose import make_column_transformer
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    IsolationForest,
    RandomForestClassifier,
)
from sklearn.exceptions import NotFittedError
from sklearn.impute import KNNImputer, SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge, RidgeClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

from promissing import metrics as knowing
from promissing.inspection import (
    blanking,
    importance,
    information_loss,
    shapley,
    smallest_change,
    what_if,
)

NAN = np.nan
GROUPS = {"blood": [0, 1], "scan": [2], "gene": [3]}


def numbers(n=6, p=4, seed=0, gaps=0.0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, p))
    x[rng.random(x.shape) < gaps] = NAN
    return x


class Network:
    """A tiny network with made-up weights: predicts from gaps, quickly, and counts the questions.

    With one output it is a regressor, else a classifier.
    """

    def __init__(self, p=4, n_outputs=2, seed=0, scale=2.0):
        rng = np.random.default_rng(seed)
        self.first = rng.normal(size=(2 * p, 6)) * scale / np.sqrt(p)
        self.second = rng.normal(size=(6, n_outputs))
        self.asked = []
        if n_outputs == 1:
            self.predict = self.outputs
        else:
            self.classes_ = np.array(["a", "b", "c", "d"][:n_outputs])
            self.predict_proba = self.probabilities

    def outputs(self, X):
        self.asked.append(X)
        x = np.asarray(X, dtype=float)
        seen = np.hstack([np.nan_to_num(x), np.isnan(x)])
        return np.tanh(seen @ self.first) @ self.second

    def probabilities(self, X):
        e = np.exp(self.outputs(X))
        return e / e.sum(axis=1, keepdims=True)


def without(x, columns):
    x = np.array(x, dtype=float)
    x[..., list(columns)] = NAN
    return x


def columns_of(groups, names):
    return [j for name in names for j in groups[name]]


# ---- what if a group were unknown


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
    with pytest.raises(ValueError, match="`pairs` or for `cumulative`, not for both"):
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


# ---- the smallest change


def flips(model, x, names, groups=GROUPS):
    changed = model.predict_proba(without(x[None], columns_of(groups, names)))
    return changed.argmax() != model.predict_proba(x[None]).argmax()


@pytest.mark.parametrize("n_outputs", [2, 3])
def test_no_smaller_set_changes_the_decision(n_outputs):
    groups = {name: [j] for j, name in enumerate("abcde")}
    model, x = Network(5, n_outputs, scale=1.0), numbers(60, 5, gaps=0.2)
    result = smallest_change(model, x, groups=groups, exact_up_to=5)
    assert result.exact.all()
    for row, found in zip(x, result.sets, strict=True):
        known = [name for name in groups if not np.isnan(row[groups[name]]).all()]
        size = len(known) + 1 if found is None else len(found)
        assert found is None or (set(found) <= set(known) and flips(model, row, found, groups))
        for smaller in range(1, size):
            tried = combinations(known, smaller)
            assert not any(flips(model, row, names, groups) for names in tried)
    assert {len(found) for found in result.sets if found} >= {1, 2, 3}
    assert None in result.sets


def test_of_equally_small_sets_the_one_that_changes_most():
    model, x = Network(), numbers(40)
    result, effects = smallest_change(model, x), what_if(model, x)
    sizes = np.abs(effects.effects) * (effects.kinds == "flips")
    several = np.flatnonzero((sizes > 0).sum(axis=1) > 1)
    assert len(several)
    for i in several:
        assert result.sets[i] == (sizes[i].argmax(),)


def test_beyond_the_exact_search_nothing_in_a_set_can_be_given_back():
    model, x = Network(8, scale=1.0), numbers(150, 8)
    groups = {j: [j] for j in range(8)}
    result = smallest_change(model, x, exact_up_to=1)
    greedy = [i for i, found in enumerate(result.sets) if found and not result.exact[i]]
    assert greedy
    assert all(len(result.sets[i]) > 1 for i in greedy)
    for i in greedy:
        found = result.sets[i]
        assert flips(model, x[i], found, groups)
        for one in found:
            assert not flips(model, x[i], [name for name in found if name != one], groups)
    best = smallest_change(model, x, exact_up_to=8)
    for ours, least in zip(result.sets, best.sets, strict=True):
        assert ours is None or len(ours) >= len(least)
    assert_array_equal(result.exact, [s is not None and len(s) == 1 for s in result.sets])


class Majority(Network):
    """Says b as long as more than four values are known."""

    def probabilities(self, X):
        self.asked.append(X)
        known = (~np.isnan(X)).sum(axis=1)
        p = 0.5 + (known - 4.5) / 100
        return np.column_stack([1 - p, p])


def test_rows_with_at_most_twelve_known_groups_are_searched_exhaustively():
    x = np.ones((2, 13))
    x[0, 5:] = NAN
    x[1, 12:] = NAN
    result = smallest_change(Majority(), x)
    assert [len(found) for found in result.sets] == [1, 8]
    assert result.exact.all()
    result = smallest_change(Majority(), np.ones((1, 13)))
    assert len(result.sets[0]) == 9
    assert not result.exact.any()


def test_a_decision_that_nothing_changes():
    class Stubborn(Network):
        def probabilities(self, X):
            return np.tile([0.2, 0.8], (len(X), 1))

    x = numbers(3)
    x[2] = NAN
    result = smallest_change(Stubborn(), x, exact_up_to=2)
    assert result.sets == (None, None, None)
    assert result.exact.tolist() == [False, False, True]  # The last has nothing to lose.
    assert np.isnan(result.prediction_without).all()
    assert smallest_change(Stubborn(), x, exact_up_to=4).exact.all()


def test_smallest_changes_as_a_frame():
    model, x = Network(), pd.DataFrame(numbers(20), index=np.arange(20) + 100)
    result = smallest_change(model, x, groups=GROUPS)
    table = result.to_frame()
    assert table.index.tolist() == x.index.tolist()
    changed = table["set"].notna()
    assert_array_equal(changed, table["decision"] != table["decision_without"])
    assert set(table["class"]) == {"b"}
    to_b = table["decision_without"] == "b"
    assert_array_equal((table["prediction_without"] > table["prediction"])[changed], to_b[changed])
    row = table[changed].iloc[0]
    p = model.predict_proba(without(x.loc[[row.name]], columns_of(GROUPS, row["set"])))[0]
    assert row["prediction_without"] == pytest.approx(p[1])


@pytest.mark.parametrize("positive", [None, "a", "b"])
def test_prediction_is_the_probability_of_the_same_class_in_every_function(positive):
    model, x = Network(), numbers(6)
    column = 0 if positive == "a" else 1
    expected = model.predict_proba(x)[:, column]
    for explain in (what_if, smallest_change, shapley):
        result = explain(model, x, positive=positive)
        assert_allclose(result.prediction, expected)
        assert set(result.explained) == set(result.to_frame()["class"]) == {"ab"[column]}
    lost = information_loss(model, x, orders=2, positive=positive, prior=[0.3, 0.7])
    assert_allclose(lost.predictions[0, :, 0], expected)
    assert lost.explained == "ab"[column]
    assert lost.prior == [0.3, 0.7][column]
    assert set(lost.to_frame()["class"]) == {"ab"[column]}


def test_of_several_classes_the_same_probability_is_given_by_every_function():
    model, x = Network(n_outputs=3), numbers(6)
    for target in (None, "c"):
        why, smallest = (f(model, x, target=target) for f in (what_if, smallest_change))
        assert_allclose(why.prediction, smallest.prediction)
        assert_array_equal(why.explained, smallest.explained)
        assert why.positive is None


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


@pytest.mark.parametrize("explain", [what_if, smallest_change, shapley, information_loss])
def test_a_positive_class_that_does_not_fit(explain):
    x = numbers(4)
    with pytest.raises(ValueError, match=r"`positive` must be one of the classes \['a', 'b'\]"):
        explain(Network(), x, positive="c")
    with pytest.raises(ValueError, match="has more than two classes. Received: 'a'"):
        explain(Network(n_outputs=3), x, positive="a")
    with pytest.raises(ValueError, match="name different classes"):
        explain(Network(), x, positive="a", target="b")
    if explain is not smallest_change:
        with pytest.raises(ValueError, match="predicts a number. Received: 'a'"):
            explain(Network(n_outputs=1), x, positive="a")


# ---- Shapley values


def by_definition(model, x, k):
    """What each group adds, averaged over all orders."""
    values = np.zeros(k)
    for order in permutations(range(k)):
        steps = [model.predict(without(x[None], order[t:])).item() for t in range(k + 1)]
        for group, (before, after) in zip(order, pairwise(steps), strict=True):
            values[group] += after - before
    return values / len(list(permutations(range(k))))


def test_shapley_values_are_means_over_all_orders():
    model, x = Network(5, 1), numbers(3, 5, gaps=0.1)
    result = shapley(model, x)
    for row, values in zip(x, result.values, strict=True):
        assert_allclose(values, by_definition(model, row, 5), atol=1e-12)
    assert result.exact.all()
    assert not result.errors.any()


@pytest.mark.parametrize("n_outputs", [1, 2, 3])
@pytest.mark.parametrize("p", [4, 15])
def test_they_sum_to_the_prediction_minus_that_of_nothing(n_outputs, p):
    model, x = Network(p, n_outputs), numbers(4, p, gaps=0.05)
    result = shapley(model, x, n_samples=10, random_state=0)
    difference = result.prediction - result.nothing
    assert_allclose(result.values.sum(axis=1), difference, atol=1e-12)
    empty = model.outputs(without(x, range(p)))
    if n_outputs == 1:
        assert_allclose(result.nothing, empty[:, 0])


def test_what_is_unknown_gets_exactly_nothing():
    model, x = Network(6), numbers(5, 6, gaps=0.5)
    x[0] = NAN
    result = shapley(model, x)
    assert_array_equal(result.values == 0, np.isnan(x))
    assert result.nothing[0] == result.prediction[0]


def test_only_known_groups_are_asked_for():
    model, x = Network(6), numbers(1, 6)
    x[0, 2:] = NAN
    shapley(model, x)
    assert len(model.asked[-1]) == 2**2 - 1  # The row as it is has been asked for already.


def test_columns_in_no_group_stay_known():
    model, x = Network(4, 1), numbers(3)
    result = shapley(model, x, groups={"scan": [2], "gene": [3]})
    assert_allclose(result.nothing, model.predict(without(x, [2, 3]))[:, 0])


class Sums:
    """A sum of all features, and twice the product of the first two: Shapley values are known."""

    def predict(self, X):
        x = np.nan_to_num(np.asarray(X, dtype=float))
        return x.sum(axis=1) + 2 * x[:, 0] * x[:, 1]

    @staticmethod
    def shapley(x):
        x = np.nan_to_num(x)
        shared = x[:, 0] * x[:, 1]
        return x + np.column_stack([shared, shared, *[np.zeros(len(x))] * (x.shape[1] - 2)])


def test_twelve_known_groups_are_exact_and_thirteen_are_sampled():
    x = numbers(4, 14)
    x[0, 12:] = NAN
    x[1, 13:] = NAN
    result = shapley(Sums(), x, n_samples=20, random_state=0)
    assert result.exact.tolist() == [True, False, False, False]
    assert_allclose(result.values[0], Sums.shapley(x)[0], atol=1e-12)
    assert not result.errors[0].any()
    assert (result.errors[1, 13:] == 0).all()


def test_sampled_values_are_right_within_their_errors():
    model, x = Network(13, 1), numbers(3, 13)
    model.first[[12, 25]] = 0  # The last feature has no effect: without it twelve are left.
    exact = shapley(model, without(x, [12])).values
    few = shapley(model, x, n_samples=40, random_state=0)
    many = shapley(model, x, n_samples=1000, random_state=0)
    assert not few.exact.any()
    for result in (few, many):
        z = (result.values - exact)[:, :12] / result.errors[:, :12]
        assert np.abs(z).max() < 5
        assert 0.5 < np.sqrt((z**2).mean()) < 1.6
    assert 3 < few.errors[:, :12].mean() / many.errors[:, :12].mean() < 8  # sqrt(25) = 5
    assert_allclose(few.values[:, 12], 0, atol=1e-15)


def test_an_order_and_its_reverse_cancel_what_two_features_share():
    x = numbers(2, 14)
    result = shapley(Sums(), x, n_samples=4, random_state=0)
    assert_allclose(result.values, Sums.shapley(x), atol=1e-12)
    assert_allclose(result.errors, 0, atol=1e-12)


@pytest.mark.parametrize("seed", [0, np.random.default_rng(0), np.random.RandomState(0), None])
def test_random_states(seed):
    model, x = Network(13, 1), numbers(2, 13)
    first = shapley(model, x, n_samples=4, random_state=seed)
    again = shapley(model, x, n_samples=4, random_state=seed)
    assert np.array_equal(first.values, again.values) == (seed == 0 and isinstance(seed, int))


def test_shapley_values_as_a_frame():
    frame = pd.DataFrame(numbers(2), columns=list("wxyz"), index=["p", "q"])
    result = shapley(Network(), frame)
    table = result.to_frame()
    assert table.columns.tolist() == ["row", "group", "known", "class", "value", "error"]
    assert table.query("row == 'q' and group == 'x'")["value"].item() == result.values[1, 1]


# ---- importance


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


# ---- information loss


def test_trajectories_lead_from_all_to_nothing():
    model, x = Network(), numbers(4, gaps=0.2)
    result = information_loss(model, x, GROUPS, orders=7, random_state=0)
    assert result.predictions.shape == (7, 4, 4)
    assert_array_equal(np.sort(result.orders, axis=1), np.tile(np.arange(3), (7, 1)))
    for order, path in zip(result.orders, result.predictions, strict=True):
        for step in range(4):
            names = [result.groups[g] for g in order[:step]]
            p = model.predict_proba(without(x, columns_of(GROUPS, names)))[:, 1]
            assert_allclose(path[:, step], p, atol=1e-15)
    assert_allclose(result.mean, result.predictions.mean(axis=0))
    assert_allclose(result.spread, result.predictions.std(axis=0))
    assert_allclose(result.spread[:, [0, 3]], 0, atol=1e-15)


def test_the_same_seed_gives_the_same_orders_for_every_model():
    first = information_loss(Network(6), numbers(2, 6), orders=5, random_state=3)
    second = information_loss(Network(6, 1), numbers(9, 6, seed=1), orders=5, random_state=3)
    assert_array_equal(first.orders, second.orders)


def test_each_set_of_unknowns_is_asked_for_once():
    model, x = Network(), numbers(2)
    x[1, 3] = NAN
    information_loss(model, x, orders=200, random_state=0)
    assert len(model.asked[-1]) == 2**4 + 2**3


def test_the_share_missing_counts_what_was_unknown_before():
    x = numbers(2)
    x[1, 2] = NAN
    result = information_loss(Network(), x, GROUPS, orders=3, random_state=0)
    share = result.share_missing
    assert share.shape == (3, 2, 4)
    assert_allclose(share[:, 0], np.tile([0, 1 / 3, 2 / 3, 1], (3, 1)))
    for order, path in zip(result.orders, share[:, 1], strict=True):
        gone = [{1, *order[:step]} for step in range(4)]
        assert_allclose(path, [len(lost) / 3 for lost in gone])


def test_measures_of_knowing_by_step():
    model, x, y = Network(), numbers(30), np.array(["a", "b"] * 15)
    result = information_loss(model, x, orders=4, prior=[0.4, 0.6], random_state=0)
    assert result.prior == 0.6
    assert_allclose(result.distance, np.abs(result.predictions - 0.6))
    assert_allclose(result.monotonicity.mean, result.distance.mean(axis=(0, 1)))
    table = result.measures(y)
    assert table.index.name == "step"
    assert_allclose(table["prediction"], result.predictions.mean(axis=(0, 1)))
    assert_allclose(table["distance"], result.distance.mean(axis=(0, 1)))
    p, truth = result.predictions[:, :, 2].ravel(), np.tile(y == "b", 4)
    assert table["brier_score"][2] == pytest.approx(((p - truth) ** 2).mean())
    assert table["calibration_error"][2] == pytest.approx(knowing.calibration_error(truth, p))
    assert table["accuracy"][2] == pytest.approx(((p > 0.5) == truth).mean())
    with pytest.raises(ValueError, match="`y` must have one class for each of the 30 rows"):
        result.measures(y[:5])
    other = information_loss(model, x, orders=4, positive="a", random_state=0)
    same = other.measures(y)[["brier_score", "accuracy"]]
    assert_allclose(same, table[["brier_score", "accuracy"]])


def test_trajectories_of_several_classes_and_of_regressors():
    model, x = Network(n_outputs=3), numbers(5)
    result = information_loss(model, x, orders=2, prior=[0.2, 0.3, 0.5], random_state=0)
    assert result.predictions.shape == (2, 5, 5, 3)
    assert_allclose(result.predictions.sum(axis=-1), 1)
    assert result.distance.shape == (2, 5, 5)
    table = result.measures(["a", "b", "c", "a", "b"])
    assert table.columns.tolist() == ["distance", "brier_score", "calibration_error", "accuracy"]
    assert result.to_frame().columns.tolist()[-3:] == ["a", "b", "c"]
    one = information_loss(model, x, orders=2, prior=[0.2, 0.3, 0.5], target="c", random_state=0)
    assert_allclose(one.predictions, result.predictions[..., 2])
    assert one.prior == 0.5

    regressor = Network(n_outputs=1)
    result = information_loss(regressor, x, orders=2, prior=1.5, random_state=0)
    assert_allclose(result.predictions[0, :, 0], regressor.predict(x)[:, 0])
    assert_allclose(result.distance, np.abs(result.predictions - 1.5))
    with pytest.raises(ValueError, match="a regressor gives none"):
        result.measures([1, 2, 3, 4, 5])


def test_trajectories_as_a_frame():
    x = pd.DataFrame(numbers(2), index=["p", "q"])
    result = information_loss(Network(), x, GROUPS, orders=3, random_state=0)
    table = result.to_frame()
    assert table.columns.tolist() == ["order", "row", "step", "lost", "class", "prediction"]
    line = table.query("order == 2 and row == 'q' and step == 1")
    assert line["lost"].item() == result.groups[result.orders[2, 0]]
    assert line["prediction"].item() == result.predictions[2, 1, 1]
    assert table.query("step == 0")["lost"].isna().all()


def test_without_a_prior_there_is_no_distance():
    result = information_loss(Network(), numbers(2), orders=2, random_state=0)
    assert result.prior is None
    assert "distance" not in result.measures()
    with pytest.raises(ValueError, match=r"`information_loss\(..., prior=...\)`: the class shares"):
        result.distance  # noqa: B018
    with pytest.raises(ValueError, match="`prior` must have one number for each of the 2 outputs"):
        information_loss(Network(), numbers(2), prior=[0.1, 0.2, 0.7])


# ---- models and tables of all sorts


def patients(n=80):
    """Every kind of column, and an outcome that depends on them."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "age": rng.integers(20, 80, n),
            "dose": rng.normal(size=n).astype(np.float32),
            "visits": pd.array(rng.integers(0, 5, n), dtype="Int64"),
            "smoker": rng.random(n) < 0.5,
            "city": pd.Categorical(rng.choice(["Ulm", "Bonn", "Kiel"], n)),
        },
        index=[f"patient {i}" for i in range(n)],
    )
    risk = frame["age"] / 20 + frame["dose"] + 2 * frame["smoker"] + (frame["city"] == "Ulm")
    y = np.where(risk > risk.median(), "ill", "well")
    frame.loc[frame.index[::7], "dose"] = NAN
    frame.loc[frame.index[::9], "visits"] = pd.NA
    frame.loc[frame.index[::5], "city"] = NAN
    return frame, y


MODALITIES = {"body": ["age", "smoker"], "drug": ["dose", "visits"], "place": ["city"]}


@pytest.fixture(scope="module")
def ours():
    frame, y = patients()
    model = classifier((8,), max_iter=20, augment=True, random_state=0)
    return model.fit(frame, y)


def gradient_boosting():
    return HistGradientBoostingClassifier(max_iter=10, random_state=0)


def imputing():
    number = make_pipeline(SimpleImputer(), StandardScaler())
    text = make_pipeline(
        SimpleImputer(strategy="most_frequent"), OneHotEncoder(handle_unknown="ignore")
    )
    columns = make_column_transformer(
        (number, ["age", "dose", "visits", "smoker"]), (text, ["city"])
    )
    return make_pipeline(columns, LogisticRegression())


@pytest.mark.parametrize("name", ["ours", "boosting", "imputing"])
def test_every_model_that_predicts_from_gaps_can_be_explained(name, request):
    frame, y = patients()
    if name == "ours":
        model = request.getfixturevalue("ours")
    else:
        model = {"boosting": gradient_boosting, "imputing": imputing}[name]().fit(frame, y)
    before = pickle.dumps(frame)
    result = what_if(model, frame, groups=MODALITIES)
    assert_allclose(result.prediction, model.predict_proba(frame)[:, 1], atol=1e-12)
    gone = frame.copy()
    gone["city"] = gone["city"].mask(gone["city"].notna())
    expected = model.predict_proba(gone)[:, 1] - model.predict_proba(frame)[:, 1]
    assert_allclose(result.effects[:, 2], expected, atol=1e-12)
    assert np.abs(result.effects).max() > 0.05

    shares = shapley(model, frame[:10], groups=MODALITIES)
    assert_allclose(shares.values.sum(axis=1), shares.prediction - shares.nothing, atol=1e-12)
    paths = information_loss(model, frame[:5], MODALITIES, orders=4, random_state=0)
    assert_allclose(paths.predictions[:, :, 3], paths.predictions[0, 0, 3])
    assert len(smallest_change(model, frame[:5], groups=MODALITIES).sets) == 5
    assert pickle.dumps(frame) == before


def test_our_models_know_their_prior(ours):
    frame, _ = patients()
    paths = information_loss(ours, frame[:5], MODALITIES, orders=4, random_state=0)
    assert paths.prior == ours.prior_[1]
    wrapped = make_pipeline(FunctionTransformer(), ours)
    assert information_loss(wrapped, frame[:2], MODALITIES, orders=1).prior == ours.prior_[1]


class Spy:
    """Predicts anything, and remembers the tables it saw."""

    def __init__(self):
        self.seen = []

    def predict(self, X):
        self.seen.append(X)
        return np.zeros(len(X))


def test_frames_stay_frames_and_dtypes_change_only_where_a_gap_demands_it():
    frame, _ = patients()
    frame["note"], frame["seen"] = "text", pd.Timestamp("2024-01-01")
    frame["kept"] = 1  # In no group: never unknown.
    spy = Spy()
    what_if(spy, frame, groups={"all": [name for name in frame if name != "kept"]})
    seen = spy.seen[-1]
    assert type(seen) is pd.DataFrame
    assert seen.columns.tolist() == frame.columns.tolist()
    changed = {"age": "float64", "smoker": "boolean"}
    for name, dtype in frame.dtypes.items():
        assert seen[name].dtype == changed.get(name, dtype)
    assert seen.drop(columns="kept").isna().all(axis=None)
    assert seen["kept"].tolist() == [1] * len(frame)


def test_columns_without_text_names_go_by_position():
    frame = pd.DataFrame(numbers(), columns=[2020, 2021, 2022, 2023])
    spy = Spy()
    assert what_if(spy, frame).groups == (0, 1, 2, 3)
    assert spy.seen[-1].columns.tolist() == [2020, 2021, 2022, 2023]


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "bool", "object", "M8[s]"])
def test_arrays_stay_arrays(dtype):
    x = (numbers() * 10).astype("int64").astype(dtype)
    spy, before = Spy(), x.copy()
    what_if(spy, x)
    seen = spy.seen[-1]
    assert type(seen) is np.ndarray
    assert seen.dtype == {"int64": "float64", "bool": "float64"}.get(dtype, dtype)
    assert pd.isna(seen).sum() == len(seen)
    assert_array_equal(x, before)


def test_every_kind_of_table_gives_the_same_answer(ours):
    frame, _ = patients()
    expected = what_if(ours, frame, groups=MODALITIES)
    polars = pl.from_pandas(frame.reset_index(drop=True))
    before = polars.clone()
    result = what_if(ours, polars, groups=MODALITIES)
    assert_allclose(result.effects, expected.effects, atol=1e-12)
    assert_array_equal(result.kinds, expected.kinds)
    assert polars.equals(before)
    spy = Spy()
    what_if(spy, polars)
    assert type(spy.seen[-1]) is pl.DataFrame
    assert spy.seen[-1].schema == polars.schema

    model, x = Network(), numbers(gaps=0.2)
    expected = what_if(model, x).effects
    assert_allclose(what_if(model, x.tolist()).effects, expected)
    assert_allclose(what_if(model, pd.DataFrame(x)).effects, expected)
    assert_allclose(what_if(model, np.ma.masked_invalid(x)).effects, expected)


def test_nullable_and_text_columns():
    frame = pd.DataFrame(
        {
            "n": pd.array([1, 2, None] * 10, dtype="Int64"),
            "b": pd.array([True, None, False] * 10, dtype="boolean"),
            "s": pd.array(["x", "y", None] * 10, dtype="string"),
            "t": ["u", "v", "w"] * 10,
        }
    )
    columns = make_column_transformer((SimpleImputer(), ["n"]), remainder="drop")
    model = make_pipeline(columns, LogisticRegression()).fit(frame, [0, 1, 0] * 10)
    assert what_if(model, frame).effects.any(axis=0).tolist() == [True, False, False, False]
    spy = Spy()
    what_if(spy, frame)
    assert spy.seen[-1].dtypes.tolist() == frame.dtypes.tolist()


def test_the_modalities_of_a_fusion_model():
    model, x = Network(), numbers()
    model.modalities_ = GROUPS
    assert what_if(model, x).groups == (0, 1, 2, 3)
    assert what_if(model, x, groups="modalities").groups == tuple(GROUPS)
    with pytest.raises(ValueError, match='`groups="modalities"` .* and Network has none'):
        what_if(Network(), x, groups="modalities")
    with pytest.raises(ValueError, match="a mapping, \"modalities\" or None. Received: 'modes'"):
        what_if(model, x, groups="modes")


# ---- one question for a block of rows


def test_the_model_is_asked_once_for_a_block(monkeypatch):
    model, x = Network(), numbers(50)
    expected = what_if(model, x).effects
    assert len(model.asked) == 3  # The table, a few rows to try, and one block.
    monkeypatch.setattr(blanking, "_BLOCK", 4 * 60)
    model.asked.clear()
    assert_allclose(what_if(model, x).effects, expected, atol=1e-15)
    assert [len(table) for table in model.asked[2:]] == [60, 60, 60, 20]


@pytest.mark.parametrize("ask", [what_if, shapley, smallest_change, information_loss])
def test_blocks_do_not_change_the_answers(ask, monkeypatch):
    model, x = Network(5), numbers(7, 5, gaps=0.2)
    how = {"random_state": 0, "orders": 20} if ask is information_loss else {}
    one = ask(model, x, **how)
    monkeypatch.setattr(blanking, "_BLOCK", 5 * 3)  # Fewer rows than one row has questions.
    model.asked.clear()
    many = ask(model, x, **how)
    assert max(len(table) for table in model.asked[2:]) == 3
    pd.testing.assert_frame_equal(one.to_frame(), many.to_frame())


# ---- bad input

FRAME = pd.DataFrame(numbers(), columns=["age", "dose", "weight", "height"])


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ({"body": ["ages"]}, r"`groups\['body'\]` names column 'ages'.*Did you mean 'age'"),
        ({"body": [4]}, r"`groups\['body'\]` names column 4, which is not one of the 4 columns"),
        ({"a": ["age"], "b": ["dose", 0]}, "column 'age' is in 'a' and 'b'. A column can be in"),
        ({"a": ["age", "age"]}, "column 'age' is in 'a', twice"),
        ({"a": ["age"], "b": []}, r"`groups\['b'\]` has no columns"),
        ({}, "`groups` must be a mapping with at least one group. Received: {}"),
        (["age"], r"`groups` must be a mapping with at least one group. Received: \['age'\]"),
    ],
)
@pytest.mark.parametrize("ask", [what_if, shapley, smallest_change, information_loss])
def test_bad_groups(ask, groups, message):
    with pytest.raises(ValueError, match=message):
        ask(Network(), FRAME, groups=groups)


def test_a_model_that_cannot_take_nan():
    x = numbers(20)
    model = LogisticRegression().fit(x, x[:, 0] > 0)
    message = (
        r"(?s)LogisticRegression cannot predict where values are missing.*it says: Input X contains"
        r" NaN.*make_pipeline\(SimpleImputer\(\), model\)"
    )
    with pytest.raises(ValueError, match=message) as caught:
        what_if(model, x)
    assert "Input X contains NaN" in str(caught.value.__cause__)
    with pytest.raises(ValueError, match=message):
        shapley(model, without(x, [1]))  # With gaps in it already.
    pipeline = make_pipeline(FunctionTransformer(), model)
    name = r"Pipeline \(FunctionTransformer, LogisticRegression\) cannot predict"
    with pytest.raises(ValueError, match=name):
        information_loss(pipeline, x)


def test_a_model_that_predicts_nan():
    class Naive:
        def predict(self, X):
            return np.asarray(X).sum(axis=1)

    with pytest.raises(ValueError, match="Naive cannot predict where .*; it predicts NaN"):
        what_if(Naive(), numbers())


def test_errors_that_have_nothing_to_do_with_gaps_are_the_models_own():
    x = numbers(20)
    model = make_pipeline(SimpleImputer(), LogisticRegression())
    with pytest.raises(NotFittedError):
        what_if(model, x)
    model.fit(x, x[:, 0] > 0)
    with pytest.raises(ValueError, match="^X has 3 features, but SimpleImputer is expecting 4"):
        what_if(model, x[:, :3])


def test_a_model_that_depends_on_dtypes():
    """As text, 1 is "1" and 1.0 is "1.0"."""
    frame = pd.DataFrame({"code": [1, 2, 3] * 10})
    text = FunctionTransformer(lambda X: X.astype(str))
    encode = OneHotEncoder(handle_unknown="ignore")
    model = make_pipeline(text, encode, LogisticRegression()).fit(frame, [0, 1, 1] * 10)
    with pytest.raises(ValueError, match="predicts otherwise once columns have the dtype that a"):
        what_if(model, frame)


def test_models_with_several_targets_or_no_probabilities():
    x = numbers(30)
    y = np.column_stack([x[:, 0] > 0, x[:, 1] > 0]).astype(int)
    message = "must predict one target: a class, or a number, for every row"
    forest = RandomForestClassifier(2, random_state=0).fit(x, y)
    with pytest.raises(ValueError, match=f"RandomForestClassifier {message}"):
        what_if(forest, x)

    class Labels(Network):
        def probabilities(self, X):
            return np.full((len(X), 2), 0.7)

    with pytest.raises(ValueError, match=f"Labels {message}"):
        what_if(Labels(), x)

    class Silent:
        classes_ = np.array([0, 1])

    expected = "must have predict_proba or decision_function; Silent has neither"
    with pytest.raises(TypeError, match=expected):
        what_if(Silent(), x)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m, x: what_if(m, x, target="c"), r"of the classes \['a', 'b'\]. Received: 'c'"),
        (lambda m, x: shapley(m, x, n_samples=5), "`n_samples` must be an even number >= 4"),
        (lambda m, x: shapley(m, x, n_samples=2), "an even number >= 4. Received: 2"),
        (lambda m, x: information_loss(m, x, orders=0), "`orders` must be a whole number >= 1"),
        (lambda m, x: smallest_change(m, x, exact_up_to=0), "`exact_up_to` must be a whole number"),
        (lambda m, x: smallest_change(Sums(), x), "must be a classifier: Sums takes no decision"),
        (lambda m, x: what_if(Sums(), x, target=1), "one of the 1 outputs of Sums. Received: 1"),
        (lambda m, x: what_if(m, x[0]), "Expected 2D array"),
    ],
)
def test_bad_arguments(call, message):
    with pytest.raises(ValueError, match=message):
        call(Network(), numbers())


def test_a_model_of_ours_warns_once_of_gaps_it_never_learnt():
    x = numbers(40)
    model = regressor((4,), max_iter=2, random_state=0).fit(x, x[:, 0])
    with pytest.warns(
        UserWarning, match="Columns '0', '1', '2', '3' had no missing values"
    ) as caught:
        result = what_if(model, x[:4])
    assert len(caught) == 1
    assert_allclose(result.prediction, model.predict(x[:4]))
    boosted = HistGradientBoostingRegressor(max_iter=5).fit(x, x[:, 0])
    assert what_if(boosted, x[:4]).effects.shape == (4, 4)
    neighbours = make_pipeline(KNNImputer(n_neighbors=1), Ridge()).fit(x, x[:, 0])
    assert what_if(neighbours, x[:4]).effects.shape == (4, 4)


@pytest.mark.parametrize(
    "name",
    [f"_explain.{part}" for part in ("effects", "shapley", "smallest", "trajectories")]
    + ["explain"],
)
def test_examples_in_docstrings(name):
    result = doctest.testmod(importlib.import_module(f"promissing.{name}"))
    assert result.attempted
    assert not result.failed


def test_a_model_that_refuses_rows_is_explained_once_it_does_not():
    X = np.random.default_rng(0).normal(size=(40, 2))
    model = classifier((4,), max_iter=2, min_known=0.6, augment=True).fit(X, X[:, 0] > 0)
    with pytest.raises(ValueError, match="Set `min_known=0` on it before"):
        shapley(model, X[:3])
    assert len(shapley(model.set_params(min_known=0), X[:3]).values) == 3
    with pytest.raises(TypeError, match="takes what `what_if` or `shapley` returned"):
        importance(model)
