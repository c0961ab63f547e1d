import datetime as dt
import json
import subprocess
import sys
import tracemalloc
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse
import spellings
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.utils import estimator_checks
from sklearn.utils.estimator_checks import parametrize_with_checks

from promissing.encoding import columns as _columns
from promissing.encoding import table_encoder as tables
from promissing.encoding.table_encoder import TableEncoder

NAN = np.nan
few = settings(max_examples=40, deadline=None, derandomize=True, database=None)


def column(cells, dtype=object):
    """A table of one column, as a frame."""
    return pd.DataFrame({"c": pd.Series(cells, dtype=dtype)})


def patients():
    return pd.DataFrame(
        {
            "age": [30.0, None, 50.0, 70.0],
            "children": [0, 1, 2, 1],
            "smoker": pd.Series([True, None, False, True], dtype="boolean"),
            "city": ["Ulm", "Bonn", None, "Ulm"],
            "seen": pd.to_datetime(["2020-01-01", "2020-01-03", None, "2020-01-02"]),
        }
    )


# ---- numbers


def test_a_number_has_mean_0_and_deviation_1_over_what_is_observed():
    out = TableEncoder().fit_transform(np.array([[1.0], [NAN], [3.0]]))
    assert out.dtype == np.float32
    assert_array_equal(out, [[-1], [NAN], [1]])


observed = st.floats(-1e6, 1e6, width=32)


@few
@given(st.lists(st.tuples(st.none() | observed, st.integers(0, 4)), min_size=1, max_size=30))
def test_weighted_moments_are_0_and_1(rows):
    x = np.array([[NAN if value is None else value] for value, _ in rows])
    weight = np.array([w for _, w in rows], float)
    weight[0] += 1
    out = TableEncoder().fit(x, sample_weight=weight).encode(x, np.float64)
    seen = ~np.isnan(x[:, 0]) & (weight > 0)
    if not seen.any():
        assert np.isnan(out).all()
        return
    assert_array_equal(np.isnan(out), np.isnan(x))
    z, w = out[seen, 0], weight[seen]
    assert_allclose(np.average(z, weights=w), 0, atol=1e-6)
    if np.ptp(x[seen]) > 1e-3:
        assert_allclose(np.average(z**2, weights=w), 1, rtol=1e-6)


cell = st.none() | st.sampled_from(["a", "b", "c", "d"])


@few
@given(
    st.lists(
        st.tuples(st.none() | st.integers(-50, 50), cell, st.integers(0, 3)),
        min_size=1,
        max_size=25,
    ),
    st.integers(0, 5),
)
def test_a_weight_of_2_is_a_row_that_occurs_twice_and_of_0_one_that_does_not(rows, n_bins):
    weight = np.array([w for *_, w in rows])
    weight[0] += 1
    frame = pd.DataFrame(
        {
            "x": pd.Series([x for x, *_ in rows], dtype="Float64"),
            "c": pd.Series([c for _, c, _ in rows], dtype="str"),
        }
    )
    weighted = TableEncoder(n_bins=n_bins, max_categories=3).fit(frame, sample_weight=weight)
    repeated = TableEncoder(n_bins=n_bins, max_categories=3).fit(
        frame.loc[frame.index.repeat(weight)]
    )
    assert weighted.categories_ == repeated.categories_
    assert_array_equal(weighted.groups_, repeated.groups_)
    assert_array_equal(weighted.gaps_in_training_, repeated.gaps_in_training_)
    assert_allclose(
        weighted.encode(frame, np.float64), repeated.encode(frame, np.float64), atol=1e-12
    )


def test_rows_of_zero_weight_are_absent_even_from_the_kinds():
    frame = pd.DataFrame({"a": [1, 3, "x"], "b": ["u", "v", "w"]}, dtype=object)
    encoder = TableEncoder().fit(frame, sample_weight=[1, 1, 0])
    assert encoder.kinds_ == ["number", "category"]
    assert encoder.categories_ == [None, ["u", "v"]]


@pytest.mark.parametrize("value", [0.0, 0.1, -7.3, 1e300, 5e-324])
def test_a_constant_column_has_deviation_1(value):
    x = np.array([[value], [NAN], [value], [value]])
    encoder = TableEncoder().fit(x, sample_weight=[0.1, 1, 0.7, 0.3])
    assert_array_equal(encoder.transform(x), [[0], [NAN], [0], [0]])
    assert_array_equal(encoder.transform([[value + 1.0]]), [[value + 1.0 - value]])


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_neither_huge_nor_tiny_numbers_spoil_the_deviation(scale):
    out = TableEncoder().fit_transform(np.array([[1.0], [3.0]]) * scale)
    assert_allclose(out, [[-1], [1]], rtol=1e-6)


@pytest.mark.parametrize("scale", [1e-300, 1e-20, 1e-10, 1.0, 1e200])
def test_moments_of_small_numbers_and_of_small_weights(scale):
    rng = np.random.default_rng(0)
    x, weight = rng.normal(3.0, 1.0, 50), rng.integers(1, 4, 50).astype(float)
    expected = np.average(x, weights=weight), np.sqrt(np.cov(x, aweights=weight, ddof=0))
    assert_allclose(_columns.moments(x, weight * scale), expected, rtol=1e-12)
    assert _columns.moments(x, np.full(50, scale)) == _columns.moments(x, np.ones(50))
    mean, deviation = _columns.moments(x * scale, weight)
    assert_allclose([mean / scale, deviation / scale], expected, rtol=1e-12)
    mean, deviation = _columns.moments((1 + 3e-7 * x) * scale, weight)
    assert_allclose(mean / scale, 1 + 3e-7 * expected[0], rtol=1e-12)
    assert_allclose(deviation / scale, 3e-7 * expected[1], rtol=1e-8)


@few
@given(
    st.lists(
        st.tuples(st.integers(0, 9), st.sampled_from("abc"), st.integers(1, 3)),
        min_size=1,
        max_size=12,
    ),
    st.sampled_from([5e-324, 1e-310, 0.1, 1e300]),
    st.floats(1e-12, 1e12),
    st.randoms(use_true_random=False),
)
def test_neither_the_order_of_rows_nor_the_unit_of_weights_matters(rows, unit, heavier, random):
    def fit(rows, heavier=1.0):
        frame = pd.DataFrame([(unit * x, c) for x, c, _ in rows], columns=["x", "c"])
        encoder = TableEncoder(n_bins=3, n_fine_bins=5, max_categories=2)
        return encoder.fit(frame, sample_weight=[heavier * 0.1 * w for *_, w in rows])

    first, shuffled = fit(rows), fit(random.sample(rows, len(rows)))
    assert first.categories_ == shuffled.categories_
    assert_array_equal(first._maps, shuffled._maps)
    other = fit(rows, heavier)
    assert first.categories_ == other.categories_
    assert_allclose(first._maps, other._maps, rtol=1e-12, atol=max(1e-12 * unit, 5e-324))


@pytest.mark.parametrize("kind", [None, "number", "boolean", "category", "date"])
def test_a_column_never_observed_in_training_is_unknown_for_ever(kind):
    kinds = None if kind is None else {1: kind}
    encoder = TableEncoder(kinds=kinds, n_bins=3).fit([[1, None], [2, None]])
    out = encoder.transform([[1, "text"], [2, np.inf]])
    assert_array_equal(encoder.groups_, [0, 0, 0, 1])
    assert np.isnan(out[:, 3]).all()
    assert not np.isnan(out[:, :3]).any()
    assert list(encoder.get_feature_names_out()) == ["x0", "x0_far", "x0_bin0", "x1"]


@pytest.mark.parametrize("bad", [np.inf, -np.inf])
@pytest.mark.parametrize("make", [pd.DataFrame, lambda f: f.astype(object), pl.from_pandas])
def test_infinity_is_refused_by_name(make, bad):
    good = pd.DataFrame({"age": [1.0, 2.0], "bmi": [1.0, 2.0]})
    frame = good.assign(bmi=[1.0, bad])
    message = "Column 'bmi' contains infinity or a value too large for float"
    with pytest.raises(ValueError, match=message):
        TableEncoder().fit(make(frame))
    encoder = TableEncoder().fit(make(good))
    with pytest.raises(ValueError, match=message):
        encoder.transform(make(frame))


def test_infinity_in_an_array_is_refused_by_position():
    x = np.zeros((3000, 100))
    encoder = TableEncoder().fit(x)
    x[2500, 7] = np.inf
    with pytest.raises(ValueError, match=r"Column 7 contains infinity .* float32: inf"):
        encoder.transform(x)
    with pytest.raises(ValueError, match="Column 7 contains infinity"):
        TableEncoder().fit(x)


def test_a_number_that_overflows_float32_is_refused_and_fits_float64():
    encoder = TableEncoder().fit([[-1.0], [1.0]])
    with pytest.raises(ValueError, match=r"Column 0 .* too large for float32: 1e\+300"):
        encoder.transform(np.array([[1e300]]))
    assert_array_equal(encoder.encode(np.array([[1e300]]), np.float64), [[1e300]])
    with pytest.raises(ValueError, match=r"Column 0 contains infinity .* float64"):
        encoder.transform([[10**400]])


@pytest.mark.parametrize("cells", [[1, None, 2.5], [Decimal(1), None, Decimal("2.5")], [1, pd.NaT]])
def test_objects_that_are_all_numbers_are_numbers(cells):
    assert TableEncoder().fit(column(cells)).kinds_ == ["number"]


@pytest.mark.parametrize("bad", ["unknown", "3.5", ""])
@pytest.mark.parametrize("dtype", [object, "str", "category"])
def test_text_in_a_number_column_is_refused_with_column_value_and_remedy(bad, dtype):
    encoder = TableEncoder().fit(column([1.0, 2.0], float))
    cells = [1.5, bad] if dtype is object else [bad, bad]
    with pytest.raises(ValueError, match=rf"Column 'c' must hold numbers, and holds '{bad}'.*kind"):
        encoder.transform(column(cells, dtype))
    with pytest.raises(ValueError, match=r"kinds={'c': 'category'}"):
        TableEncoder(kinds={"c": "number"}).fit(column(cells, dtype))


def test_dates_in_a_number_column_are_refused():
    encoder = TableEncoder().fit(column([1.0, 2.0], float))
    with pytest.raises(ValueError, match="Column 'c' must hold numbers, and holds Timestamp"):
        encoder.transform(column(pd.to_datetime(["2020-01-01"]), None))


# ---- bins


def test_bins_are_piecewise_linear_beside_the_standardised_value():
    x = np.array([[0.0], [1.0], [3.0], [NAN]])
    encoder = TableEncoder(n_bins=2).fit(x)
    new = np.array([[-1.0], [0.5], [1.0], [2.0], [9.0], [NAN]])
    out = encoder.transform(new)
    bins = np.array([[0, 0], [0.5, 0], [1, 0], [1, 0.5], [1, 1], [NAN, NAN]])
    assert_allclose(out[:, 2:], bins - [2 / 3, 1 / 3], rtol=1e-6)  # Less their means in training.
    far = TableEncoder().fit(x).transform(new)
    assert far[4] > 3  # Beyond three deviations a number is as far out as it gets.
    assert_array_equal(out[:, :1], np.clip(far, -3, 3))
    assert_array_equal(encoder.groups_, [0, 0, 0, 0])
    assert list(encoder.get_feature_names_out()) == ["x0", "x0_far", "x0_bin0", "x0_bin1"]


def test_beside_bins_what_is_far_out_has_a_second_scale():
    x = np.r_[np.linspace(-1, 1, 99), 40.0][:, None]
    encoder = TableEncoder(n_bins=2).fit(x)
    assert list(encoder.get_feature_names_out()) == ["x0", "x0_far", "x0_bin0", "x0_bin1"]
    out = encoder.transform([[20.0], [40.0], [1e9], [NAN]])
    plain = TableEncoder().fit(x).transform([[20.0], [40.0]])
    assert_array_equal(out[:, 0], [3, 3, 3, NAN])
    assert_allclose(out[:2, 1], plain[:, 0] / 10)
    assert_array_equal(out[2:, 1], [30, NAN])
    constant = TableEncoder(n_bins=2).fit(np.full((5, 1), 7.0))
    assert list(constant.get_feature_names_out()) == ["x0"]


@pytest.mark.parametrize("bad", [np.inf, -np.inf])
def test_bins_do_not_hide_infinity(bad):
    encoder = TableEncoder(n_bins=2).fit(np.array([[0.0, 1.0], [1.0, 2.0], [3.0, 5.0]]))
    with pytest.raises(ValueError, match="Column 1 contains infinity"):
        encoder.transform([[1.0, bad]])


@few
@given(st.lists(observed, min_size=1, max_size=20), st.integers(1, 8), st.lists(observed))
def test_bins_are_of_width_1_and_mean_0_and_grow_with_the_number(training, n_bins, new):
    training = np.array(training)[:, None]
    encoder = TableEncoder(n_bins=n_bins).fit(training)
    which = ["_bin" in name for name in encoder.get_feature_names_out()]
    bins = encoder.encode(np.sort([*training[:, 0], *new])[:, None], np.float64)[:, which]
    assert bins.shape[1] <= n_bins
    assert (np.abs(bins) <= 1).all()
    assert (np.diff(bins, axis=0) >= 0).all()
    bins = encoder.encode(training, np.float64)[:, which]
    assert_allclose(np.ptp(bins, axis=0), 1)
    assert_allclose(bins.mean(axis=0), 0, atol=1e-12)


def test_bins_of_any_range_have_means_and_no_overflow():
    x = np.array([0, 1e-150, 2e-150, 1e200, 2e200])[:, None]
    encoder = TableEncoder(n_bins=4).fit(x)
    out = encoder.encode(x, np.float64)[:, 2:]
    assert_allclose(out.mean(axis=0), 0, atol=1e-12)


def test_bins_that_coincide_are_merged_and_booleans_and_categories_have_none():
    frame = pd.DataFrame({"x": [0] * 9 + [1], "flat": 3, "b": [True, False] * 5, "c": ["a"] * 10})
    encoder = TableEncoder(n_bins=4).fit(frame)
    assert list(encoder.get_feature_names_out()) == ["x", "x_far", "x_bin0", "flat", "b", "c_a"]


def test_fine_bins_come_last_and_belong_to_the_same_feature():
    frame = pd.DataFrame({"x": np.arange(9.0), "c": ["a", None, "b"] * 3, "few": [0, 1, 2] * 3})
    encoder = TableEncoder(n_bins=2, n_fine_bins=4).fit(frame)
    fine = [f"x_fine{i}" for i in range(4)]
    names = ["x", "x_far", "x_bin0", "x_bin1", *fine, "c_a", "c_b"]
    assert list(encoder.get_feature_names_out()) == [
        *names,
        "few",
        "few_far",
        "few_bin0",
        "few_bin1",
    ]
    assert_array_equal(encoder.groups_, [0] * 8 + [1] * 2 + [2] * 4)
    assert_array_equal(encoder.fine_, ["fine" in name for name in encoder.get_feature_names_out()])
    coarse = TableEncoder(n_bins=2).fit(frame).transform(frame)
    assert_array_equal(encoder.transform(frame)[:, ~encoder.fine_], coarse)
    alone = TableEncoder(n_bins=4).fit(frame[["x"]]).transform(frame[["x"]])
    assert_array_equal(encoder.transform(frame)[:, encoder.fine_], alone[:, 2:])
    assert np.isnan(encoder.transform(frame.assign(x=NAN))[:, :8]).all()


def test_fine_bins_of_dates_and_none_of_what_has_few_values():
    frame = pd.DataFrame(
        {"day": pd.date_range("2020", periods=9), "empty": np.full(9, NAN), "flat": 3.0}
    )
    encoder = TableEncoder(n_bins=2, n_fine_bins=4).fit(frame)
    assert encoder.fine_.sum() == 4
    assert (encoder.groups_[encoder.fine_] == 0).all()
    assert encoder.n_columns_out_ == 2 + 2 + 4 + 1 + 1
    raw = TableEncoder(n_bins=2, n_fine_bins=4, scale=False).fit(np.arange(9.0)[:, None])
    assert_array_equal(raw.fine_, [False] * 3 + [True] * 4)


@pytest.mark.parametrize(
    ("n_numbers", "n_bins", "has_fine"), [(10, 16, True), (11, 16, False), (10, 0, False)]
)
def test_fine_bins_are_for_few_numbers(n_numbers, n_bins, has_fine):
    x = np.random.default_rng(0).normal(size=(100, n_numbers))
    flags = np.random.default_rng(1).integers(0, 2, (100, 5))  # Numbers, of two values.
    encoder = TableEncoder(n_bins=n_bins, n_fine_bins="auto").fit(np.hstack([x, flags]))
    assert encoder.fine_.any() == has_fine
    if has_fine:
        assert encoder.fine_.sum() == 32 * n_numbers
        assert not encoder.fine_[encoder.groups_ >= n_numbers].any()


# ---- booleans


@pytest.mark.parametrize("dtype", ["boolean", "bool[pyarrow]", object])
def test_a_boolean_is_one_column_of_0_and_1(dtype):
    out = TableEncoder().fit_transform(column([True, None, False], dtype))
    assert_array_equal(out, [[1], [NAN], [0]])


def test_a_boolean_may_come_as_0_and_1_and_as_nothing_else():
    encoder = TableEncoder().fit(np.array([[True], [False]]))
    assert encoder.kinds_ == ["boolean"]
    assert_array_equal(encoder.transform(np.array([[0.0], [1.0], [NAN]])), [[0], [1], [NAN]])
    with pytest.raises(ValueError, match=r"Column 0 must hold booleans \(or 0 and 1\), and holds"):
        encoder.transform(np.array([[2.0]]))
    with pytest.raises(ValueError, match="Column 0 must hold numbers, and holds 'yes'"):
        encoder.transform([["yes"]])


# ---- categories


@pytest.mark.parametrize(
    "dtype",
    [
        *(object, "str", "string", "string[pyarrow]", "category", pd.ArrowDtype(pa.string())),
        pd.ArrowDtype(pa.dictionary(pa.int32(), pa.string())),
    ],
)
def test_text_is_one_hot_and_missing_in_all_its_columns(dtype):
    encoder = TableEncoder().fit(column(["b", "a", None], dtype))
    assert encoder.kinds_ == ["category"]
    assert encoder.categories_ == [["a", "b"]]
    expected = [[0, 1], [1, 0], [NAN, NAN]]
    assert_array_equal(encoder.transform(column(["b", "a", None], dtype)), expected)


def test_a_category_never_seen_is_zero_everywhere_which_is_not_missing():
    encoder = TableEncoder().fit(column(["a", "b"]))
    cells = column(["z", None, "a"])
    assert_array_equal(encoder.transform(cells), [[0, 0], [NAN, NAN], [1, 0]])
    assert_array_equal(encoder.read(cells), [[-1], [NAN], [0]])


def test_a_category_never_seen_can_be_an_error_that_names_it():
    encoder = TableEncoder(unknown_categories="error").fit(column(["a", "b"]))
    encoder.transform(column(["a", None]))
    with pytest.raises(ValueError, match="Column 'c' holds 'z', a category never seen in training"):
        encoder.transform(column(["a", "z"]))


@pytest.mark.parametrize("unknown_categories", ["ignore", "error"])
def test_beyond_max_categories_the_rare_ones_and_the_new_ones_share_a_column(unknown_categories):
    encoder = TableEncoder(max_categories=3, unknown_categories=unknown_categories).fit(
        column([*"aaabbcdd"])
    )
    assert encoder.categories_ == [["a", "b"]]  # d is as frequent as b, and comes later.
    assert list(encoder.get_feature_names_out()) == ["c_a", "c_b", "c_(other)"]
    out = encoder.transform(column(["a", "c", "d", "new", None]))
    assert_array_equal(out, [[1, 0, 0], [0, 0, 1], [0, 0, 1], [0, 0, 1], [NAN, NAN, NAN]])


def test_weights_decide_which_categories_are_frequent():
    encoder = TableEncoder(max_categories=2).fit(column(["a", "a", "b"]), sample_weight=[1, 1, 5])
    assert encoder.categories_ == [["a", "b"]]
    encoder = TableEncoder(max_categories=1).fit(column(["a", "a", "b"]))
    assert encoder.categories_ == [[]]
    assert_array_equal(encoder.transform(column(["a"])), [[1]])


def test_as_many_categories_as_allowed_need_no_other():
    encoder = TableEncoder(max_categories=2).fit(column(["a", "b"]))
    assert list(encoder.get_feature_names_out()) == ["c_a", "c_b"]


def test_a_level_that_pandas_declares_and_nobody_has_gets_no_column():
    frame = column(pd.Categorical(["a", "b"], categories=["a", "b", "z"]), None)
    assert TableEncoder().fit(frame).categories_ == [["a", "b"]]


@pytest.mark.parametrize("dtype", ["int64", "int8", "float32", "Int64", "category", object])
def test_numbers_declared_as_a_category_match_whatever_their_type(dtype):
    encoder = TableEncoder(kinds={"c": "category"}).fit(column([1, 2, 2], dtype))
    assert encoder.categories_ == [[1, 2]]
    assert [type(value) for value in encoder.categories_[0]] == [int, int]
    expected = [[0, 1], [1, 0], [NAN, NAN]]
    assert_array_equal(encoder.transform(column([2.0, 1.0, NAN], float)), expected)
    assert_array_equal(encoder.transform(column([2, True, None])), expected)
    assert_array_equal(encoder.transform(column(["2"])), [[0, 1]])


def test_numbers_and_text_in_one_column_are_a_category_that_keeps_types():
    encoder = TableEncoder().fit(column([1, "1", 2.5, "x", True]))
    assert encoder.categories_ == [[1, 2.5, "1", "x"]]


@pytest.mark.parametrize(
    ("training", "new", "places"),
    [
        (["1", "2"], [1.0, 2, NAN], [0, 1, NAN]),
        (["1.0", "2.0"], [1, "2", np.int8(2)], [0, 1, 1]),
        ([1, 2], ["1", "2.0", "x"], [0, 1, -1]),
        ([1.5, 2], ["1.5", Decimal("1.5"), np.float32(1.5)], [0, 0, 0]),
        ([0.1, 2], [np.float32(0.1), "0.1", "0.10"], [0, 0, -1]),
        (["False", "True"], [True, False, "true", "TRUE", 1.0], [1, 0, 1, 1, 1]),
        (["True", "yes", "1"], [True, 1, "True", "1"], [-1, -1, 1, 0]),
        (["01", "2"], [1, "1", "01", 2.0], [-1, -1, 0, 1]),  # A code, and a number.
        (["1", "1.0", "2"], [1, "1", "1.0", 2], [-1, 0, 1, 2]),  # Which of the two is not known.
        ([1, "1", "x"], [1.0, "1", "1.0", "x"], [0, 1, -1, 2]),
        (["a", "nan", "inf", "1e3"], [1000, np.nan, "a", "nan"], [-1, NAN, 1, 3]),
    ],
)
def test_categories_match_across_representations_where_only_one_is_meant(training, new, places):
    encoder = TableEncoder(kinds={"c": "category"}).fit(column(training))
    assert_array_equal(encoder.read(column(new))[:, 0], places)


@pytest.mark.parametrize("spell", [int, float, str, lambda v: f"{v}.0"])
def test_beyond_max_categories_numbers_match_text_and_text_matches_itself(spell):
    training = column([str(v) for v in range(9) for _ in range(9 - v)])
    encoder = TableEncoder(max_categories=4).fit(training)
    assert encoder.categories_ == [["0", "1", "2"]]
    places = encoder.read(column([spell(v) for v in (0, 2, 8)]))[:, 0]
    assert_array_equal(places, [3, 3, 3] if spell(1) == "1.0" else [0, 2, 3])


def test_most_values_unseen_is_a_warning_with_column_value_categories_and_remedy():
    encoder = TableEncoder().fit(column(["Ulm", "Bonn", "Kiel"]))
    message = (
        r"Column 'c': 2 of 3 values are categories never seen in training, such as 'ULM'.*"
        r"Known categories are 'Bonn', 'Kiel', 'Ulm'\. Spell the values as in training, or fit"
    )
    for method in (encoder.transform, encoder.read, encoder.encode):
        with pytest.warns(UserWarning, match=message):
            method(column(["Ulm", None, "ULM", "BONN"]))
        method(column(["Ulm", None, "ULM"]))  # One of two is not most of them.


def test_names_of_output_columns_are_distinct():
    frame = pd.DataFrame({"a": [1, "1", "b"], "a_b": [1.0, 2.0, 3.0]})
    encoder = TableEncoder().fit(frame)
    assert list(encoder.get_feature_names_out()) == ["a_1", "a_1_2", "a_b", "a_b_2"]


def dictionary(codes, entries, **how):
    array = pa.DictionaryArray.from_arrays(pa.array(codes, pa.int32()), pa.array(entries), **how)
    return pd.DataFrame({"c": pd.Series(pd.arrays.ArrowExtensionArray(array))})


def arrow_table(frame):
    # Not `from_pandas`: pandas 2.2 cannot read back the dtype that it writes into the table.
    return pa.table({name: frame[name].array.__arrow_array__() for name in frame})


@pytest.mark.parametrize(
    ("codes", "entries"),
    [
        ([1, None, 2, 1], ["unused", "b", "a"]),
        ([1, 3, 2, 1], ["unused", "b", "a", None]),
        ([0, None, 2, 1], ["b", "b", "a"]),
    ],
)
@pytest.mark.parametrize("make", [pd.DataFrame, arrow_table])
def test_entries_of_an_arrow_dictionary_count_where_they_occur(codes, entries, make):
    text, table = column(["b", None, "a", "b"]), make(dictionary(codes, entries))
    encoder = TableEncoder().fit(table)
    assert encoder.categories_ == [["a", "b"]]
    assert_array_equal(encoder.transform(table), TableEncoder().fit_transform(text))
    strict = TableEncoder(unknown_categories="error").fit(text)
    assert_array_equal(strict.transform(table), encoder.transform(text))


def test_chunks_of_an_arrow_dictionary_may_have_entries_of_their_own():
    parts = [pa.array(["a", "b"]).dictionary_encode(), pa.array(["b", None]).dictionary_encode()]
    array = pd.arrays.ArrowExtensionArray(pa.chunked_array(parts))
    out = TableEncoder().fit_transform(pd.DataFrame({"c": array}))
    assert_array_equal(out, [[1, 0], [0, 1], [0, 1], [NAN, NAN]])


def test_nan_in_an_arrow_column_is_no_category():
    array = pd.arrays.ArrowExtensionArray(pa.array([1.0, NAN, None, 2.5]))
    encoder = TableEncoder(kinds={"c": "category"}).fit(pd.DataFrame({"c": array}))
    assert encoder.categories_ == [[1, 2.5]]


def test_intervals_and_periods_are_categories_by_their_text():
    frame = pd.DataFrame({"i": pd.cut([1, 9], [0, 5, 10]), "p": pd.period_range("2020", periods=2)})
    assert TableEncoder().fit(frame).categories_ == [
        ["(0, 5]", "(5, 10]"],
        ["2020-01-01", "2020-01-02"],
    ]


def test_infinity_is_no_category_either():
    with pytest.raises(ValueError, match="Column 'c' contains infinity"):
        TableEncoder(kinds={"c": "category"}).fit(column([1.5, np.inf], float))


@pytest.mark.parametrize("bad", [{"a": 1}, [1, 2], (1, 2), {1}, b"bytes", object()])
def test_cells_that_hold_more_than_a_scalar_are_refused_by_column(bad):
    cells = np.empty((2, 1), object)
    cells[:, 0] = ["a", bad]
    message = "Column 'c' holds .* argument must be a string or a number, not"
    with pytest.raises(TypeError, match=message):
        TableEncoder().fit(pd.DataFrame(cells, columns=["c"]))
    cells[0, 0] = 1.0
    with pytest.raises(TypeError, match=message):
        TableEncoder().fit(column([1.0], float)).transform(pd.DataFrame(cells, columns=["c"]))


@pytest.mark.parametrize(
    "series",
    [
        pl.Series("c", [{"a": 1}]),
        pl.Series("c", [[1, 2]]),
        pl.Series("c", [[1, 2]], dtype=pl.Array(pl.Int64, 2)),
        pd.Series([{"a": 1}], dtype=pd.ArrowDtype(pa.struct([("a", pa.int64())])), name="c"),
    ],
)
def test_nested_columns_are_refused_by_name(series):
    with pytest.raises(TypeError, match=r"Column 'c' holds .* must be a string or a number"):
        TableEncoder().fit(series.to_frame())


# ---- dates

DAYS = [dt.datetime(2020, 1, 1), None, dt.datetime(2020, 1, 3)]
ROME = pd.Series(pd.to_datetime(["2020-01-01 01:00", None, "2020-01-03 01:00"]))


@pytest.mark.parametrize(
    "frame",
    [
        column(DAYS, "datetime64[ns]"),
        column(DAYS, "datetime64[s]"),
        column(DAYS),
        column([day and day.date() for day in DAYS]),
        column(DAYS, pd.ArrowDtype(pa.timestamp("ms"))),
        column([day and day.date() for day in DAYS], pd.ArrowDtype(pa.date32())),
        column(ROME.dt.tz_localize("Europe/Rome"), None),
        column(ROME.dt.tz_localize("Europe/Rome").astype(object), object),
        pl.DataFrame({"c": DAYS}),
        pl.DataFrame({"c": [day and day.date() for day in DAYS]}),
        np.array([["2020-01-01"], ["NaT"], ["2020-01-03"]], "M8[D]"),
        column([dt.timedelta(1), None, dt.timedelta(3)], "timedelta64[ns]"),
        column([dt.timedelta(1), None, dt.timedelta(3)], pd.ArrowDtype(pa.duration("us"))),
        column([dt.timedelta(1), None, dt.timedelta(3)]),
        pl.DataFrame({"c": [dt.timedelta(1), None, dt.timedelta(3)]}),
    ],
)
def test_dates_are_numbers(frame):
    encoder = TableEncoder().fit(frame)
    assert encoder.kinds_ == ["date"]
    assert_array_equal(encoder.transform(frame), [[-1], [NAN], [1]])


def test_a_date_means_the_same_in_every_unit_and_zone():
    encoder = TableEncoder().fit(column(DAYS, "datetime64[ns]"))
    rome = column(ROME.dt.tz_localize("Europe/Rome"), None)
    assert_array_equal(encoder.transform(rome), [[-1], [NAN], [1]])
    late = column([dt.datetime(9999, 12, 31)], "datetime64[us]")
    assert encoder.transform(late) > 1e6


def test_text_declared_as_a_date_is_read_as_iso_8601():
    encoder = TableEncoder(kinds={"c": "date"})
    out = encoder.fit_transform(column(["2020-01-01", None, "2020-01-03T02:00:00+02:00"], "str"))
    assert_array_equal(out, [[-1], [NAN], [1]])
    with pytest.raises(ValueError, match="Column 'c' must hold dates, and holds 'yesterday'"):
        encoder.transform(column(["2020-01-01", "yesterday"]))
    with pytest.raises(ValueError, match=r"Column 'c' must hold dates, and holds 3.5"):
        encoder.transform(column([3.5], float))
    assert np.isnan(encoder.transform(column([NAN], float)))


@pytest.mark.parametrize("dtype", [None, object, pl])
def test_dates_and_durations_are_not_taken_for_each_other(dtype):
    def table(cells):
        return pl.DataFrame({"c": cells}) if dtype is pl else column(cells, dtype)

    dates = table([dt.datetime(2020, 1, 1), dt.datetime(2020, 1, 3)])
    durations = table([dt.timedelta(1), dt.timedelta(3)])
    encoder = TableEncoder().fit(dates)
    with pytest.raises(ValueError, match="Column 'c' held dates in training and now holds durat"):
        encoder.transform(durations)
    encoder = TableEncoder().fit(durations)
    with pytest.raises(ValueError, match="Column 'c' held durations in training and now holds da"):
        encoder.transform(dates)
    with pytest.raises(ValueError, match="Column 'c' held durations .* such as 2020-01-01"):
        encoder.transform(column(["2020-01-01"]))
    assert np.isnan(encoder.transform(column([None, None], "datetime64[ns]"))).all()
    again = TableEncoder.from_state(*encoder.get_state())
    with pytest.raises(ValueError, match="Column 'c' held durations in training"):
        again.transform(dates)
    meta, arrays = encoder.get_state()
    del meta["durations"]  # As in files of before.
    TableEncoder.from_state(meta, arrays).transform(dates)


def test_dates_can_be_categories():
    encoder = TableEncoder(kinds={"c": "category"}).fit(column(DAYS, "datetime64[ns]"))
    assert_array_equal(encoder.transform(pl.DataFrame({"c": DAYS})), [[1, 0], [NAN, NAN], [0, 1]])


# ---- one table in many spellings


def test_groups_names_kinds_and_gaps_describe_the_output():
    encoder = TableEncoder().fit(patients())
    assert encoder.kinds_ == ["number", "number", "boolean", "category", "date"]
    names = ["age", "children", "smoker", "city_Bonn", "city_Ulm", "seen"]
    assert list(encoder.get_feature_names_out()) == names
    assert list(encoder.feature_names_in_) == list(patients())
    assert_array_equal(encoder.groups_, [0, 1, 2, 3, 3, 4])
    assert_array_equal(encoder.gaps_in_training_, [True, False, True, True, True])
    assert encoder.n_columns_out_ == 6
    assert encoder.n_features_in_ == 5


@pytest.mark.parametrize(
    "spell",
    [
        lambda f: f.astype(object),
        lambda f: f.astype(object).where(f.notna(), None),
        lambda f: f.astype(object).where(f.notna(), pd.NA),
        lambda f: f.astype(object).where(f.notna(), pd.NaT),
        lambda f: f.convert_dtypes(),
        lambda f: f.convert_dtypes(dtype_backend="pyarrow"),
        lambda f: f.astype({"city": "category"}),
        lambda f: f.set_index(pd.Index([5, 5, 1, 0])),
        pl.from_pandas,
        lambda f: pl.from_pandas(f).with_columns(pl.col("city").cast(pl.Categorical)),
        lambda f: pl.from_pandas(f).with_columns(pl.col("children").cast(pl.Decimal(9, 1))),
        pa.Table.from_pandas,
    ],
)
def test_every_spelling_of_a_frame_gives_the_same_encoding(spell):
    frame = patients()
    reference = TableEncoder(n_bins=2).fit(frame)
    other = TableEncoder(n_bins=2).fit(spell(frame))
    assert other.kinds_ == reference.kinds_
    assert_array_equal(other.transform(spell(frame)), reference.transform(frame))
    assert_array_equal(reference.transform(spell(frame)), reference.transform(frame))


@few
@given(
    st.lists(
        st.tuples(
            st.none() | observed,
            st.none() | st.booleans(),
            st.none() | st.text(max_size=3),
            st.none() | st.datetimes(dt.datetime(1700, 1, 1), dt.datetime(2200, 1, 1)),
        ),
        min_size=1,
        max_size=8,
    )
)
def test_a_frame_and_the_equal_array_and_list_give_equal_encodings(rows):
    dtypes = {"x": float, "b": "boolean", "t": "string", "d": "datetime64[us]"}
    frame = pd.DataFrame(rows, columns=[*"xbtd"]).astype(dtypes)
    expected = TableEncoder().fit_transform(frame)
    array = np.array(rows, dtype=object)
    assert_array_equal(TableEncoder().fit_transform(array), expected)
    assert_array_equal(TableEncoder().fit_transform([list(row) for row in rows]), expected)


@few
@given(
    spellings.columns(st.sampled_from(spellings.TEXTS)).map(spellings.spell_text)
    | spellings.columns(spellings.WHOLE).map(spellings.spell_numbers)
    | spellings.columns(spellings.FLOATS | spellings.TINY).map(spellings.spell_numbers),
    st.integers(0, 4),
    st.integers(1, 6),
)
def test_every_spelling_of_a_column_gives_the_same_encoding(spelled, n_bins, max_categories):
    encoder = TableEncoder(n_bins=n_bins, max_categories=max_categories)
    _, first = next(spelled)
    reference = clone(encoder).fit(first)
    expected = reference.encode(first, np.float64)
    for name, table in spelled:
        other = clone(encoder).fit(table)
        assert other.categories_ == reference.categories_, name
        assert_array_equal(other.encode(table, np.float64), expected, name)
        assert_array_equal(
            reference.encode_table(_columns.open_table(table), dtype=np.float64), expected
        )


@few
@given(spellings.columns(spellings.WHOLE) | spellings.columns(spellings.FLOATS))
def test_numbers_as_categories_match_in_every_spelling(cells):
    tables = [*spellings.spell_categories(cells), *spellings.spell_numbers(cells)]
    reference = TableEncoder(kinds={0: "category"}).fit(tables[0][1])
    places = reference.read(tables[0][1])
    assert not (places < 0).any()
    for name, table in tables[1:]:
        found, _ = reference._read_rows(_columns.open_table(table), slice(0, len(cells)))
        assert_array_equal(found, places, name)


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "uint8", "bool", "float16"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_numeric_arrays_of_any_dtype_and_order(dtype, order):
    x = np.array([[1, 0], [0, 0], [1, 1]], dtype=dtype, order=order)
    expected = TableEncoder().fit_transform(pd.DataFrame(x.astype(dtype), columns=["a", "b"]))
    assert_array_equal(TableEncoder().fit_transform(x), expected)


def test_a_polars_null_and_a_polars_nan_are_missing():
    frame = pl.DataFrame({"x": [1.0, None, NAN, 3.0], "i": [1, None, 3, None]})
    out = TableEncoder().fit_transform(frame)
    assert_array_equal(out, [[-1, -1], [NAN, NAN], [NAN, 1], [1, NAN]])


def test_what_is_masked_is_missing():
    x = np.ma.masked_array([[1, 2], [3, 4]], mask=[[False, True], [False, False]])
    assert_array_equal(TableEncoder().fit_transform(x), [[-1, NAN], [1, 0]])


def test_an_array_of_text_is_all_text():
    for dtype in ("U1", np.dtypes.StringDType()):
        encoder = TableEncoder().fit(np.array([["a", "1"], ["b", "1"]], dtype=dtype))
        assert encoder.categories_ == [["a", "b"], ["1"]]


def test_encoding_in_blocks_changes_nothing(monkeypatch):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(50, 4))
    frame = pd.DataFrame(x, columns=[*"abcd"]).assign(t=rng.choice(["u", "v", None], 50))
    encoder, plain = TableEncoder(n_bins=3).fit(frame), TableEncoder(n_bins=3).fit(x)
    whole, whole_plain = encoder.transform(frame), plain.transform(x)
    monkeypatch.setattr(tables, "_BLOCK", 7)
    assert_array_equal(encoder.transform(frame), whole)
    assert_array_equal(plain.transform(x), whole_plain)


def test_inputs_are_not_modified():
    frame = patients()
    TableEncoder(n_bins=2).fit(frame, sample_weight=[0, 1, 1, 1]).transform(frame)
    pd.testing.assert_frame_equal(frame, patients())
    x = np.array([[1.0, NAN], [2.0, 3.0]])
    x.flags.writeable = False
    TableEncoder().fit(x).transform(x)


def test_memory_is_the_output_and_a_few_columns():
    x = np.random.default_rng(0).normal(size=(200_000, 20))
    column_bytes = x[:, 0].nbytes
    tracemalloc.start()
    encoder = TableEncoder(n_bins=4).fit(x)
    fit_peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.reset_peak()
    out = encoder.transform(x)
    encode_peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert fit_peak < 10 * column_bytes
    assert encode_peak < out.nbytes + 4 * column_bytes


def test_arrays_of_numbers_do_not_meet_pandas(monkeypatch):
    monkeypatch.setattr(_columns, "pd", None)
    x = np.array([[1.0, NAN], [3.0, 2.0]])
    assert_array_equal(TableEncoder().fit_transform(x), [[-1, NAN], [1, 0]])


def test_polars_is_never_imported():
    code = (
        "import sys, pandas; from promissing.encoding.table_encoder import TableEncoder;"
        "TableEncoder().fit_transform(pandas.DataFrame({'a': ['x', None]}));"
        "assert 'polars' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


# ---- what is refused


def test_a_declared_kind_must_exist_and_its_column_too():
    with pytest.raises(ValueError, match="`kinds` names column 'b', which X does not have"):
        TableEncoder(kinds={"b": "number"}).fit(column([1.0]))
    with pytest.raises(ValueError, match=r"`kinds\['c'\]` must be one of .* Received: 'text'"):
        TableEncoder(kinds={"c": "text"}).fit(column([1.0]))
    assert TableEncoder(kinds={0: "category"}).fit(column([1.0])).kinds_ == ["category"]


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"n_bins": -1}, "`n_bins` must be a whole number >= 0. Received: -1"),
        ({"max_categories": 0}, "`max_categories` must be a whole number >= 1. Received: 0"),
        ({"n_bins": 1.5}, "`n_bins` must be a whole number"),
        ({"n_fine_bins": -1}, "`n_fine_bins` must be a whole number >= 0, or 'auto'. Received: -1"),
        ({"n_fine_bins": "many"}, "`n_fine_bins` must be a whole number >= 0, or 'auto'"),
        ({"n_fine_bins": 3}, "`n_fine_bins` must be 0 if `n_bins` is 0. Received: 3"),
        (
            {"unknown_categories": "zero"},
            '`unknown_categories` must be "ignore" or "error". Received: \'zero\'',
        ),
    ],
)
def test_parameters_are_checked(params, message):
    with pytest.raises(ValueError, match=message):
        TableEncoder(**params).fit([[1.0]])


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        ([1, -2, 1, 1], "`sample_weight` must be non-negative. Received: -2.0 at row 1"),
        ([0, 0, 0, 0], "Sample weights must contain at least one non-zero number"),
        ([1, 1], r"sample_weight.shape == \(2,\), expected \(4,\)"),
        ([1, NAN, 1, 1], "sample_weight contains NaN"),
    ],
)
def test_sample_weights_are_checked(weight, message):
    with pytest.raises(ValueError, match=message):
        TableEncoder().fit(patients(), sample_weight=weight)


@pytest.mark.parametrize("make", [pd.DataFrame, pl.from_pandas])
def test_columns_missing_unexpected_or_reordered_are_refused_by_name(make):
    frame = patients()
    encoder = TableEncoder().fit(make(frame))
    with pytest.raises(ValueError, match="yet now missing:\n- city"):
        encoder.transform(make(frame.drop(columns="city")))
    with pytest.raises(ValueError, match="unseen at fit time:\n- height"):
        encoder.transform(make(frame.assign(height=1.0)))
    with pytest.raises(ValueError, match="must be in the same order"):
        encoder.transform(make(frame[[*reversed(frame.columns)]]))


def test_duplicate_column_names_are_refused_by_name():
    frame = pd.DataFrame([[1.0, 2.0, 3.0]], columns=["a", "b", "a"])
    with pytest.raises(ValueError, match=r"must be unique. Received more than once: \['a'\]"):
        TableEncoder().fit(frame)
    encoder = TableEncoder().fit(pd.DataFrame([[1.0, 2.0, 3.0]], columns=["a", "b", "c"]))
    with pytest.raises(ValueError, match="Received more than once"):
        encoder.transform(frame)


@pytest.mark.parametrize(
    ("X", "error", "message"),
    [
        (np.empty((0, 3)), ValueError, r"Found array with 0 sample\(s\)"),
        (np.empty((3, 0)), ValueError, r"Found array with 0 feature\(s\)"),
        (pd.DataFrame({"a": []}), ValueError, r"Found array with 0 sample\(s\)"),
        (pd.DataFrame(index=[1, 2]), ValueError, r"Found array with 0 feature\(s\)"),
        (pl.DataFrame({"a": []}), ValueError, r"Found array with 0 sample\(s\)"),
        ([[]], ValueError, r"Found array with 0 feature\(s\)"),
        (np.ones(3), ValueError, "Reshape your data"),
        ([1.0, 2.0], ValueError, "Reshape your data"),
        (np.ones((2, 2, 2)), ValueError, "Found array with dim 3"),
        (pd.Series([1.0]), ValueError, "Expected a 2-dimensional container"),
        (np.array([[1j]]), ValueError, "Complex data not supported"),
        ([[1j]], ValueError, "Complex data not supported"),
        (pd.DataFrame({"a": [1j]}), ValueError, "Complex data not supported"),
    ],
)
def test_what_is_no_table_is_refused_in_scikit_learns_words(X, error, message):
    with pytest.raises(error, match=message):
        TableEncoder().fit(X)


def test_a_sparse_matrix_is_encoded_as_the_dense_one():
    X = np.array([[0.0, 1.0], [2.0, 0.0], [np.nan, 0.0]])
    encoder = TableEncoder(n_bins=2).fit(scipy.sparse.csr_array(X))
    dense = TableEncoder(n_bins=2).fit(X).transform(X)
    np.testing.assert_array_equal(encoder.transform(scipy.sparse.coo_array(X)), dense)
    np.testing.assert_array_equal(encoder.read(scipy.sparse.csc_array(X)), X)


def test_an_unfitted_encoder_says_so():
    for method in (TableEncoder.encode, TableEncoder.transform):
        with pytest.raises(NotFittedError):
            method(TableEncoder(), [[1.0]])
    with pytest.raises(NotFittedError):
        TableEncoder().get_state()


# ---- files


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"n_bins": np.int64(3), "max_categories": 2, "unknown_categories": "error"},
        {"n_bins": 2, "n_fine_bins": np.int64(3)},
        {"n_bins": 2, "n_fine_bins": "auto"},
        {"kinds": {"children": "category", np.int64(0): "category"}},
    ],
)
def test_the_state_makes_a_full_round_trip_through_json(params):
    frame = patients().assign(empty=None)
    encoder = TableEncoder(**params).fit(frame)
    meta, arrays = encoder.get_state()
    assert all(isinstance(value, np.ndarray) for value in arrays.values())
    back = TableEncoder.from_state(json.loads(json.dumps(meta)), arrays)
    assert back.get_params() == encoder.get_params()
    assert back.kinds_ == encoder.kinds_
    assert_array_equal(back.feature_names_in_, encoder.feature_names_in_)
    assert_array_equal(back.get_feature_names_out(), encoder.get_feature_names_out())
    assert_array_equal(back.groups_, encoder.groups_)
    assert_array_equal(back.gaps_in_training_, encoder.gaps_in_training_)
    assert_array_equal(back.encode(frame, float), encoder.encode(frame, float))
    with pytest.raises(ValueError, match="yet now missing:\n- age"):
        back.transform(frame.drop(columns="age"))


def test_categories_keep_their_types_in_the_state():
    encoder = TableEncoder(kinds={1: "category"}).fit(
        [["1", True], [1, False], [0.1, True], ["ü", None]]
    )
    meta, arrays = encoder.get_state()
    back = TableEncoder.from_state(json.loads(json.dumps(meta)), arrays)
    assert back.categories_ == [[0.1, 1, "1", "ü"], [False, True]]
    assert [type(v) for v in back.categories_[0]] == [float, int, str, str]
    assert [type(v) for v in back.categories_[1]] == [bool, bool]
    assert not hasattr(back, "feature_names_in_")


# ---- at home in scikit-learn


@pytest.mark.parametrize(
    ("old", "new", "value"),
    [("fine_bins", "n_fine_bins", 3), ("unseen", "unknown_categories", "error")],
)
def test_old_parameter_names_work_with_a_warning(old, new, value):
    X = np.arange(8.0)[:, None]
    with pytest.warns(FutureWarning, match=f"`{old}` of TableEncoder is now `{new}`"):
        renamed = TableEncoder(n_bins=2, **{old: value}).fit(X)
    expected = TableEncoder(n_bins=2, **{new: value}).fit(X)
    assert renamed.get_state()[0] == expected.get_state()[0]
    assert_array_equal(renamed.transform(X), expected.transform(X))


@parametrize_with_checks([TableEncoder(), TableEncoder(n_bins=4, n_fine_bins=8)])
def test_scikit_learns_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize(
    "name",
    [
        "check_dataframe_column_names_consistency",
        "check_transformer_get_feature_names_out",
        "check_transformer_get_feature_names_out_pandas",
        "check_set_output_transform",
        "check_set_output_transform_pandas",
        "check_global_output_transform_pandas",
        "check_set_output_transform_polars",
        "check_global_set_output_transform_polars",
    ],
)
# Arrays after frames and frames after arrays: the warnings are what is checked.
@pytest.mark.filterwarnings("ignore:X (has|does not have valid) feature names:UserWarning")
def test_scikit_learns_other_checks(name):
    getattr(estimator_checks, name)("TableEncoder", TableEncoder())


def test_set_output_gives_frames_with_our_names():
    encoder = TableEncoder().set_output(transform="pandas").fit(patients())
    out = encoder.transform(patients())
    assert list(out) == list(encoder.get_feature_names_out())
    assert isinstance(encoder.encode(patients()), np.ndarray)


def test_sample_weights_pass_through_a_pipeline():
    x, weight = np.array([[0.0], [2.0], [9.0]]), [1.0, 1.0, 0.0]
    model = make_pipeline(TableEncoder(), LinearRegression())
    model.fit(x, [0, 2, 9], tableencoder__sample_weight=weight)
    assert_array_equal(model[0].transform(x), [[-1], [1], [8]])


# -------------------------------------------------------------------------------- own units


def test_without_scale_numbers_keep_their_units_in_double_precision():
    frame = pd.DataFrame(
        {"x": [1e9 + 1, np.nan, 3.0], "c": ["a", None, "b"], "t": [True, None, False]}
    )
    out = TableEncoder(scale=False).fit_transform(frame)
    assert out.dtype == np.float64
    np.testing.assert_array_equal(out[:, 0], frame["x"])
    np.testing.assert_array_equal(out[0, 1:], [1, 0, 1])
    meta, arrays = TableEncoder(scale=False).fit(frame).get_state()
    again = TableEncoder.from_state(meta, arrays)
    assert again.scale is False
    np.testing.assert_array_equal(again.transform(frame), out)


def test_read_gives_one_column_per_feature_with_categories_as_places():
    frame = pd.DataFrame({"x": [10.0, np.nan, 30.0], "c": ["b", None, "a"], "never": [np.nan] * 3})
    encoder = TableEncoder(n_bins=2).fit(frame)
    np.testing.assert_array_equal(
        encoder.read(frame), [[10, 1, np.nan], [np.nan, np.nan, np.nan], [30, 0, np.nan]]
    )
    new = pd.DataFrame({"x": [1.0], "c": ["z"], "never": [5.0]})
    with pytest.warns(UserWarning, match="Column 'c': 1 of 1 values are categories never seen"):
        np.testing.assert_array_equal(encoder.read(new), [[1, -1, np.nan]])


@pytest.mark.parametrize("place", ["name", "cell", "text array"])
def test_text_that_is_not_valid_unicode_is_refused_by_column(place):
    names = pd.Index(["a\ud800" if place == "name" else "a"], dtype=object)
    cells = np.array([["x"], ["y" if place == "name" else "y\udc80"]], object)
    bad = pd.DataFrame(cells, columns=names, dtype=object)
    bad = cells.astype(str) if place == "text array" else bad
    column = {"name": r"'a\\ud800'", "cell": "'a'", "text array": "0"}[place]
    match = f"Column {column} has text that is not valid Unicode"
    with pytest.raises(ValueError, match=match):
        TableEncoder().fit(bad)
    good = pd.DataFrame({"a": ["x", "y"]})
    encoder = TableEncoder().fit(good if place == "cell" else good.to_numpy())
    with pytest.raises(ValueError, match=match):
        encoder.transform(bad)
