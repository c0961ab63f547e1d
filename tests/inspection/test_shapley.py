"""Shapley values, exact and sampled."""

from itertools import pairwise, permutations

import numpy as np
import pandas as pd
import pytest
from masked_models import NAN, Network, Sums, numbers, without
from numpy.testing import assert_allclose, assert_array_equal

from promissing.inspection import shapley


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
