"""The smallest set of groups that changes a decision."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from masked_models import GROUPS, NAN, Network, columns_of, numbers, without
from numpy.testing import assert_array_equal

from promissing.inspection import smallest_change, what_if


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
