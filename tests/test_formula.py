import ast
from pathlib import Path

import numpy as np
import pytest
from cases import cases, spelled_out
from hypothesis import given

from promissing import _formula
from promissing.checks import LAYER_CHECKS, LayerUnderTest, check_layer

RULES = _formula.COMPENSATIONS


def rule_of(case):
    return RULES[case.compensation]


def layout_of(case):
    layout = _formula.Layout(case.x.shape[-1], case.groups, case.shares)
    return layout.arrays(np, per_feature=rule_of(case).per_feature)


def run(case, x=None):
    layout = layout_of(case)
    x = case.x if x is None else x
    return _formula.activation(x, *case.weights, layout, rule_of(case), xp=np)


@given(cases())
def test_the_affine_form_is_the_definition(case):
    np.testing.assert_allclose(run(case), spelled_out(case), rtol=0, atol=1e-13 * case.magnitude)


@given(cases())
def test_a_gap_is_worth_its_neutralizer_whatever_the_groups_and_shares(case):
    """Eq. 1 with the literal neutralizers put in, neuron by neuron."""
    rule = layout_of(case), rule_of(case)
    u = _formula.neutralizers(*case.weights, *rule, xp=np)
    assert u.shape == case.kernel.T.shape
    away = np.abs(case.kernel) > 1e-3
    kernel = np.where(away, case.kernel, 1.0)
    u = np.where(away.T, u, _formula.neutralizers(kernel, *case.weights[1:], *rule, xp=np))
    case = case._replace(kernel=kernel)
    literal = np.stack(
        [
            np.where(np.isnan(case.x), u[k], case.x) @ kernel[:, k] + case.bias[k]
            for k in range(len(u))
        ],
        axis=-1,
    )
    np.testing.assert_allclose(run(case), literal, rtol=0, atol=1e-12 * case.magnitude)


def test_the_papers_neutralizer_is_minus_b_over_p_w():
    rng = np.random.default_rng(0)
    kernel, bias = rng.normal(size=(4, 3)), rng.normal(size=3)
    u = _formula.neutralizers(kernel, bias, None, _formula.Layout(4), RULES["none"], xp=np)
    np.testing.assert_allclose(u, -bias[:, None] / (4 * kernel.T))


def test_a_weight_of_zero_has_no_neutralizer_and_no_warning():
    kernel, bias = np.zeros((2, 2)), np.array([1.0, 0.0])
    u = _formula.neutralizers(kernel, bias, None, _formula.Layout(2), RULES["none"], xp=np)
    assert np.isinf(u[0]).all()
    assert np.isnan(u[1]).all()


def test_the_share_of_an_empty_row_is_exactly_one():
    for p in (3, 7, 49, 1000):
        x = np.full((1, p), np.nan, np.float32)
        out = _formula.prune(x, _formula.Layout(p), RULES["shared"], xp=np)
        assert out[0, -1] == 1


def test_columns_of_one_feature_count_once():
    layout = _formula.Layout(4, groups=[0, 0, 0, 1]).arrays(np, per_feature=True)
    x = np.array([[np.nan, np.nan, np.nan, 1.0], [1.0, 1.0, 1.0, np.nan]])
    np.testing.assert_allclose(_formula.prune(x, layout, RULES["none"], xp=np)[:, -1], [0.5, 0.5])
    absent = _formula.prune(x, layout, RULES["feature"], xp=np)[:, 4:]
    np.testing.assert_allclose(absent, [[1, 0], [0, 1]])


@pytest.mark.parametrize("compensation", _formula.COMPENSATIONS)
@pytest.mark.parametrize("check", LAYER_CHECKS)
def test_contract(check, compensation):
    def forward(x, kernel, bias, weight, dtype):
        layout = _formula.Layout(x.shape[-1])
        return _formula.activation(x, kernel, bias, weight, layout, RULES[compensation], xp=np)

    check(LayerUnderTest(forward, None, compensation, "float64"))


def right(x, kernel, bias, weight=None, dtype=None):
    layout = _formula.Layout(x.shape[-1])
    return _formula.activation(x, kernel, bias, weight, layout, RULES["none"], xp=np)


def in_place(x, w, b):
    out = right(x.copy(), w, b)
    np.copyto(x, 0.0)
    return out


BROKEN = {
    "check_complete_row_is_the_plain_layer": lambda x, w, b: right(x, 2 * w, b),
    "check_all_missing_row_gives_the_compensation": lambda x, w, b: np.nan_to_num(x) @ w + b,
    "check_gap_is_worth_its_neutralizer": lambda x, w, b: (
        np.nan_to_num(x) @ w + b * ~np.isnan(x).all(-1, keepdims=True)
    ),
    "check_order_of_features_does_not_matter": lambda x, w, b: (
        right(x, w, b) + np.isnan(x) @ np.arange(x.shape[-1])[:, None]
    ),
    "check_no_nan_comes_out": lambda x, w, b: x @ w + b,
    "check_zero_weights_are_harmless": lambda x, w, b: right(x, w, b) * (w / w)[0],
    "check_infinity_is_never_an_ordinary_number": lambda x, w, b: right(
        np.where(np.isinf(x), 1e6, x), w, b
    ),
    "check_leading_axes_are_batches": lambda x, w, b: right(x, w, b) - np.nanmean(x, axis=0) @ w,
    "check_one_feature": lambda x, w, b: right(x, w, b) + (x.shape[-1] == 1),
    "check_empty_batch": lambda x, w, b: right(x, w, b)[: max(len(x), 1)] / (len(x) > 0 or [1, 2]),
    "check_input_is_left_alone": in_place,
}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # The broken layers divide by zero.
@pytest.mark.parametrize("name", BROKEN)
def test_a_layer_that_breaks_a_check_is_found_out(name):
    def forward(x, kernel, bias, weight, dtype):
        return BROKEN[name](x, kernel, bias)

    check = {check.__name__: check for check in LAYER_CHECKS}[name]
    with pytest.raises((AssertionError, ValueError)):
        check(LayerUnderTest(forward, None, "none", "float64"))
    with pytest.raises(AssertionError, match=r"^check_\w+ \(float64\): "):
        check_layer(forward, dtypes="float64")


def test_every_check_is_shown_to_be_able_to_fail():
    by_gradient = {"check_every_weight_learns"}
    assert {check.__name__ for check in LAYER_CHECKS} == set(BROKEN) | by_gradient


def test_a_layer_that_does_not_learn_is_found_out():
    def gradient(x, kernel, bias, weight, dtype):
        return np.zeros_like(x), np.ones_like(kernel), np.zeros_like(bias), weight

    with pytest.raises(AssertionError, match="check_every_weight_learns .* bias has zeros"):
        check_layer(right, gradient, dtypes=["float64"])


def test_a_gradient_with_nan_breaks_the_contract():
    def gradient(x, kernel, bias, weight, dtype):
        return x, kernel, bias, weight  # x still has its NaN

    with pytest.raises(AssertionError, match="the gradient of x is not finite"):
        check_layer(right, gradient, dtypes=["float64"])


def test_a_count_beyond_float16_does_not_overflow():
    x = np.full((1, 70_000), np.nan, np.float16)
    assert _formula.prune(x, _formula.Layout(70_000), RULES["shared"], xp=np)[0, -1] == 1


@pytest.mark.parametrize("name", RULES)
def test_every_compensation_gives_extra_columns_and_rows_that_fit(name):
    rule = RULES[name]
    layout = _formula.Layout(4, groups=[0, 0, 0, 1]).arrays(np, per_feature=rule.per_feature)
    n_extra = rule.n_extra(layout.n_features)
    pruned = _formula.prune(np.full((1, 4), np.nan), layout, rule, xp=np)
    assert pruned.shape == (1, 4 + n_extra)
    rows = np.random.default_rng(0).normal(size=(n_extra, 3))
    weight = rule.weight_of(rows)
    assert (None if weight is None else weight.shape) == rule.weight_shape(2, 3)
    folded = _formula.fold(np.ones((4, 3)), None, weight, layout, rule, xp=np)
    np.testing.assert_array_equal(folded[4:], rows if weight is not None else -0.0 * rows)


@pytest.mark.parametrize("name", ["all", None, True, ["none"]])
def test_an_unknown_compensation_is_refused(name):
    with pytest.raises(ValueError, match='must be "none", "shared" or "feature". Received'):
        _formula.get_compensation(name)


def test_membership_is_made_only_where_it_is_needed():
    layout = _formula.Layout(20_000, groups=[g // 2 for g in range(20_000)])
    assert layout.arrays(np).membership is None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"groups": [0, 1]}, "one feature for each of the 3 columns. Received: 2"),
        ({"groups": [0, 1, 3]}, "no column belongs to feature 2"),
        ({"groups": [0, -1, 1]}, "count features from 0. Received: -1"),
        ({"groups": [0, 0.5, 1]}, "whole numbers"),
        ({"groups": ["a", "b", "c"]}, "whole numbers"),
        ({"shares": [0.5, 0.5]}, "one entry for each of the 3 features. Received: 2"),
        ({"shares": [0.5, 0.6, -0.1]}, "non-negative numbers. Received: -0.1"),
        ({"shares": [0.5, 0.5, float("nan")]}, "non-negative numbers. Received: nan"),
        ({"shares": [0.5, 0.5, 0.5]}, "sum to 1. Received a sum of 1.5"),
    ],
)
def test_groups_and_shares_that_do_not_fit(arguments, message):
    with pytest.raises(ValueError, match=message):
        _formula.Layout(3, **arguments)


def test_no_columns():
    with pytest.raises(ValueError, match="At least one column"):
        _formula.Layout(0)


def test_the_formula_imports_nothing():
    tree = ast.parse(Path(_formula.__file__).read_text())
    imports = [n for n in tree.body if isinstance(n, ast.Import | ast.ImportFrom)]
    assert not imports
    typing_only = [n for n in tree.body if isinstance(n, ast.If)]
    assert [ast.unparse(n.test) for n in typing_only] == ["TYPE_CHECKING"]
    assert _formula.TYPE_CHECKING is False
