import ast
from pathlib import Path

import numpy as np
import pytest
from cases import cases, spelled_out
from hypothesis import given

from promissing import _core
from promissing.checks import LAYER_CHECKS, LayerUnderTest, check_layer


def run(case, x=None):
    layout = _core.Layout(case.x.shape[-1], case.groups, case.shares).map(np.asarray)
    return _core.activation(case.x if x is None else x, *case.weights, layout, xp=np)


@given(cases())
def test_the_affine_form_is_the_definition(case):
    np.testing.assert_allclose(run(case), spelled_out(case), rtol=0, atol=1e-13 * case.magnitude)


@given(cases())
def test_a_gap_is_worth_its_neutralizer_whatever_the_groups_and_shares(case):
    """Eq. 1 with the literal neutralizers put in, neuron by neuron."""
    layout = _core.Layout(case.x.shape[-1], case.groups, case.shares).map(np.asarray)
    u = _core.neutralizers(*case.weights, layout, xp=np)
    assert u.shape == case.kernel.T.shape
    away = np.abs(case.kernel) > 1e-3
    kernel = np.where(away, case.kernel, 1.0)
    u = np.where(away.T, u, _core.neutralizers(kernel, *case.weights[1:], layout, xp=np))
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
    u = _core.neutralizers(kernel, bias, None, _core.Layout(4), xp=np)
    np.testing.assert_allclose(u, -bias[:, None] / (4 * kernel.T))


def test_a_weight_of_zero_has_no_neutralizer_and_no_warning():
    u = _core.neutralizers(np.zeros((2, 2)), np.array([1.0, 0.0]), None, _core.Layout(2), xp=np)
    assert np.isinf(u[0]).all()
    assert np.isnan(u[1]).all()


def test_the_share_of_an_empty_row_is_exactly_one():
    for p in (3, 7, 49, 1000):
        out = _core.prune(np.full((1, p), np.nan, np.float32), _core.Layout(p), xp=np)
        assert out[0, -1] == 1


def test_columns_of_one_feature_count_once():
    layout = _core.Layout(4, groups=[0, 0, 0, 1]).map(np.asarray)
    x = np.array([[np.nan, np.nan, np.nan, 1.0], [1.0, 1.0, 1.0, np.nan]])
    np.testing.assert_allclose(_core.prune(x, layout, xp=np)[:, -1], [0.5, 0.5])
    absent = _core.prune(x, layout, xp=np, per_feature=True)[:, 4:]
    np.testing.assert_allclose(absent, [[1, 0], [0, 1]])


@pytest.mark.parametrize("compensation", _core.COMPENSATIONS)
@pytest.mark.parametrize("check", LAYER_CHECKS)
def test_contract(check, compensation):
    def forward(x, kernel, bias, weight, dtype):
        layout = _core.Layout(x.shape[-1])
        return _core.activation(x, kernel, bias, weight, layout, xp=np)

    check(LayerUnderTest(forward, None, compensation, "float64"))


BROKEN = {
    "check_complete_row_is_the_plain_layer": lambda x, w, b, c: np.nan_to_num(x) @ w,
    "check_all_missing_row_gives_the_compensation": lambda x, w, b, c: np.nan_to_num(x) @ w + b,
    "check_no_nan_comes_out": lambda x, w, b, c: np.where(
        np.isnan(x).all(-1, keepdims=True), 0 * b, x @ w + b
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_the_contract_names_the_check_that_is_broken(name):
    def forward(x, kernel, bias, weight, dtype):
        return BROKEN[name](x, kernel, bias, weight)

    # A NaN that comes out breaks the neutralizer check first; ask for that check alone.
    check = {check.__name__: check for check in LAYER_CHECKS}[name]
    with pytest.raises(AssertionError):
        check(LayerUnderTest(forward, None, "none", "float64"))
    with pytest.raises(AssertionError, match=r"check_\w+ \(float64\)"):
        check_layer(forward, dtypes=["float64"])


def test_a_swallowed_infinity_breaks_the_contract():
    def forward(x, kernel, bias, weight, dtype):
        layout = _core.Layout(x.shape[-1])
        x = np.where(np.isinf(x), 1e6, x)
        return _core.activation(x, kernel, bias, weight, layout, xp=np)

    with pytest.raises(AssertionError, match="check_infinity_is_never_an_ordinary_number"):
        check_layer(forward, dtypes=["float64"])


def test_a_gradient_with_nan_breaks_the_contract():
    def forward(x, kernel, bias, weight, dtype):
        return _core.activation(x, kernel, bias, weight, _core.Layout(x.shape[-1]), xp=np)

    def gradient(x, kernel, bias, weight, dtype):
        return x, kernel, bias, weight  # x still has its NaN

    with pytest.raises(AssertionError, match="the gradient of x is not finite"):
        check_layer(forward, gradient, dtypes=["float64"])


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
        _core.Layout(3, **arguments)


def test_no_columns():
    with pytest.raises(ValueError, match="At least one column"):
        _core.Layout(0)


def test_the_formula_imports_nothing():
    tree = ast.parse(Path(_core.__file__).read_text())
    imports = [n for n in tree.body if isinstance(n, ast.Import | ast.ImportFrom)]
    assert not imports
    typing_only = [n for n in tree.body if isinstance(n, ast.If)]
    assert [ast.unparse(n.test) for n in typing_only] == ["TYPE_CHECKING"]
    assert _core.TYPE_CHECKING is False
