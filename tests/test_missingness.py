"""What is lost, how much of it and why; and that nothing else changes."""

import datetime as dt
import inspect
import os
import pickle
import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import spellings
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.feature_selection import mutual_info_classif, mutual_info_regression
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils import estimator_checks
from sklearn.utils.estimator_checks import parametrize_with_checks

from promissing.missingness import (
    MECHANISMS,
    Mechanism,
    MissingValues,
    drop_groups,
    mar,
    mar_logistic,
    mcar,
    mcar_cells,
    mcar_grid,
    mnar,
    mnar_logistic,
    most_informative,
    remove,
    self_masking,
)

NAN = np.nan
EXACT = [mcar, mar, mnar]
SMOOTH = [mar_logistic, mnar_logistic, self_masking]
EVERY = list(MECHANISMS.values())
few = settings(max_examples=40, deadline=None, derandomize=True, database=None)
seeds = st.integers(0, 2**32)
ratios = st.integers(0, 100).map(lambda percent: percent / 100)  # As people write them.
by_name = pytest.mark.parametrize("mechanism", EVERY, ids=lambda m: m.name)


def numbers(n=50, p=3, seed=0):
    return np.random.default_rng(seed).normal(size=(n, p))


def patients():
    """Every kind of column, none with a gap."""
    return pd.DataFrame(
        {
            "age": [30, 41, 50, 70, 22],
            "dose": np.array([0.5, 0.1, 0.7, 0.2, 0.9], np.float32),
            "smoker": [True, False, False, True, True],
            "city": ["Ulm", "Bonn", "Kiel", "Jena", "Ulm"],
            "stage": pd.Categorical(["I", "II", "I", "III", "II"], ordered=True),
            "seen": pd.date_range("2020", periods=5),
        },
        index=list("vwxyz"),
    )


def ranks_lost(values, gone):
    """Ranks, with ties as they stand, of the values that are gone."""
    order = sorted(range(len(values)), key=lambda i: values[i])
    return [rank for rank, row in enumerate(order) if gone[row]]


# ---- the procedure of the paper


@few
@given(seeds, st.integers(1, 60), st.integers(0, 100), st.sampled_from(EXACT))
def test_exactly_floor_of_n_times_ratio_rows_lose_their_value(seed, n, percent, mechanism):
    lost = mechanism.mask(numbers(n), ratio=percent / 100, columns=1, random_state=seed)
    assert lost.sum(axis=0).tolist() == [0, n * percent // 100, 0]


def test_the_floor_is_that_of_the_ratio_as_it_is_written():
    """As floats, 100 * 0.29 is 28.999999999999996."""
    assert mcar.mask(numbers(100), ratio=0.29, random_state=0).sum() == 29
    assert mcar.mask(numbers(3), ratio=1 / 3, random_state=0).sum() == 1


@pytest.mark.parametrize("mechanism", [*EXACT, mcar_cells, *SMOOTH], ids=lambda m: m.name)
def test_ratio_0_loses_nothing_and_ratio_1_all(mechanism):
    assert not mechanism.mask(numbers(), ratio=0, columns=1, random_state=0).any()
    assert mechanism.mask(numbers(), ratio=1, columns=1, random_state=0)[:, 1].all()


def test_mcar_hits_every_row_alike():
    share = np.mean(
        [mcar.mask(numbers(5), ratio=0.4, columns=0, random_state=s) for s in range(2000)], 0
    )
    np.testing.assert_allclose(share[:, 0], 0.4, atol=0.04)


@few
@given(seeds, ratios, st.lists(st.integers(0, 5), min_size=1, max_size=30))
def test_mnar_loses_consecutive_ranks_of_the_column_itself(seed, ratio, values):
    x = np.column_stack([np.zeros(len(values)), values])
    lost = ranks_lost(values, mnar.mask(x, ratio=ratio, columns=1, random_state=seed)[:, 1])
    assert lost == list(range(lost[0], lost[0] + len(lost))) if lost else True


@few
@given(seeds, ratios, st.lists(st.integers(0, 5), min_size=1, max_size=30))
def test_mar_loses_consecutive_ranks_of_the_driver(seed, ratio, values):
    x = np.column_stack([numbers(len(values), 1), values])
    lost = ranks_lost(
        values, mar.mask(x, ratio=ratio, columns=0, drivers=1, random_state=seed)[:, 0]
    )
    assert lost == list(range(lost[0], lost[0] + len(lost))) if lost else True


@pytest.mark.parametrize("mechanism", [mar, mnar], ids=lambda m: m.name)
def test_the_start_is_uniform_on_0_to_n_minus_k(mechanism):
    x = np.column_stack([np.arange(10), np.arange(10)])
    masks = [mechanism.mask(x, ratio=0.7, columns=1, random_state=s)[:, 1] for s in range(800)]
    starts = np.bincount([np.argmax(mask) for mask in masks])
    assert len(starts) == 4  # 0, 1, 2 and n - k = 3
    assert starts.min() > 150


def test_ties_rank_as_they_stand():
    x = np.zeros((6, 2))
    for seed in range(20):
        (lost,) = np.nonzero(mnar.mask(x, ratio=0.5, columns=0, random_state=seed)[:, 0])
        assert lost.tolist() == list(range(lost[0], lost[0] + 3))


@few
@given(seeds, ratios, st.sampled_from([mcar, mar, mar_logistic]))
def test_mcar_and_mar_do_not_depend_on_what_is_lost(seed, ratio, mechanism):
    x, other = numbers(30, 5), numbers(30, 5, seed=1)
    other[:, 3:] = x[:, 3:]
    how = {"ratio": ratio, "columns": [0, 1, 2], "drivers": [4, 3, 4], "random_state": seed}
    assert_array_equal(mechanism.mask(x, **how), mechanism.mask(other, **how))


@few
@given(seeds, st.sampled_from([mar, mar_logistic]))
def test_mar_stays_mar_with_several_columns_as_a_driver_loses_nothing(seed, mechanism):
    """Column by column it would turn into MNAR once a driver has lost values."""
    x = numbers(40, 6)
    lost = mechanism.mask(x, ratio=0.5, n_columns=4, random_state=seed)
    columns = lost.any(axis=0)
    assert columns.sum() == 4
    other = np.where(columns, numbers(40, 6, seed=1), x)
    assert_array_equal(mechanism.mask(other, ratio=0.5, n_columns=4, random_state=seed), lost)


def test_each_column_loses_rows_of_its_own():
    lost = mcar.mask(numbers(100), ratio=0.5, n_columns="all", random_state=0)
    assert lost.sum(axis=0).tolist() == [50, 50, 50]
    assert not np.array_equal(lost[:, 0], lost[:, 1])


def test_columns_and_drivers_are_random_unless_chosen():
    x = numbers(10, 3)
    hit = {int(mcar.mask(x, ratio=0.5, random_state=s).any(axis=0).argmax()) for s in range(40)}
    assert hit == {0, 1, 2}
    drivers = set()
    for seed in range(40):
        gaps = MissingValues("mar", columns=0, random_state=seed).fit(x)
        drivers.add(tuple(gaps.drivers_))
    assert drivers == {(1,), (2,)}
    xor = MissingValues("mar", random_state=0).fit(x[:, :2])
    assert sorted(xor.columns_ + xor.drivers_) == [0, 1]


def test_all_columns_but_a_driver_lose_values_under_mar():
    assert mar.mask(numbers(), ratio=0.5, n_columns="all", random_state=0).any(axis=0).sum() == 2
    lost = mar.mask(numbers(), ratio=0.5, n_columns="all", drivers=1, random_state=0)
    assert lost.any(axis=0).tolist() == [True, False, True]


# ---- gaps there already


@few
@given(seeds, ratios, st.sampled_from(EVERY))
def test_what_is_missing_already_is_not_lost_again(seed, ratio, mechanism):
    x = numbers()
    x[np.random.default_rng(seed).random(x.shape) < 0.4] = NAN
    lost = mechanism.mask(x, ratio=ratio, columns=[0, 1], random_state=seed)
    assert not (lost & np.isnan(x)).any()
    if mechanism in EXACT:
        there = (~np.isnan(x)).sum(axis=0)
        assert lost[:, :2].sum(axis=0).tolist() == [
            int(np.floor(m * ratio + 1e-9)) for m in there[:2]
        ]


def test_mnar_ranks_observed_values_only():
    x = np.array([[3.0], [NAN], [1.0], [NAN], [2.0]])
    lost = {tuple(np.flatnonzero(mnar.mask(x, ratio=0.7, random_state=s))) for s in range(30)}
    assert lost == {(2, 4), (0, 4)}


def test_a_row_without_a_driver_ranks_last():
    x = np.array([[0.0, NAN], [0.0, 2.0], [0.0, 1.0], [0.0, NAN]])
    lost = {
        tuple(np.flatnonzero(mar.mask(x, ratio=0.5, columns=0, drivers=1, random_state=s)[:, 0]))
        for s in range(40)
    }
    assert lost == {(1, 2), (0, 1), (0, 3)}


@by_name
def test_a_column_or_a_driver_that_was_never_observed(mechanism):
    x = numbers()
    x[:, 0] = NAN
    assert not mechanism.mask(x, ratio=0.5, columns=0, drivers=1, random_state=0).any()
    lost = mechanism.mask(x, ratio=0.5, columns=1, drivers=0, random_state=0)
    assert 10 < lost[:, 1].sum() < 40


# ---- smooth mechanisms


@pytest.mark.parametrize("mechanism", SMOOTH, ids=lambda m: m.name)
@pytest.mark.parametrize("ratio", [0.05, 0.5, 0.9])
@pytest.mark.parametrize("slope", [0.0, 2.0, 50.0])
def test_the_ratio_is_the_expected_share(mechanism, ratio, slope):
    x = np.exp(2 * numbers(200))  # A long tail.
    how = {"ratio": ratio, "slope": slope, "columns": 0, "drivers": 1}
    share = np.mean([mechanism.mask(x, **how, random_state=s)[:, 0].mean() for s in range(60)])
    assert abs(share - ratio) < 4 * np.sqrt(0.25 / (200 * 60))


def test_self_masking_loses_high_values_or_low_ones():
    x = numbers(2000)
    high = self_masking.mask(x, ratio=0.3, columns=0, random_state=0)[:, 0]
    low = self_masking.mask(x, ratio=0.3, columns=0, slope=-2, random_state=0)[:, 0]
    assert x[high, 0].mean() > 0.5
    assert x[low, 0].mean() < -0.5
    odds = [np.mean(high[(x[:, 0] > z) & (x[:, 0] < z + 0.5)]) for z in (-1, 0, 1)]
    assert 0 < odds[0] < odds[1] < odds[2] < 1  # No threshold.


def test_logistic_mar_follows_the_driver_in_either_direction():
    x = numbers(2000)
    means = []
    for seed in range(8):
        lost = mar_logistic.mask(x, ratio=0.3, columns=0, drivers=2, random_state=seed)[:, 0]
        means.append(x[lost, 2].mean())
        assert abs(x[lost, 0].mean()) < 0.15
    assert min(means) < -0.5
    assert max(means) > 0.5


def test_logistic_mnar_follows_all_columns_that_lose_values():
    x = numbers(2000)
    lost = mnar_logistic.mask(x, ratio=0.3, columns=[0, 1], random_state=0)[:, 0]
    assert (np.abs(x[lost].mean(axis=0)) > 0.15).tolist() == [True, True, False]


@pytest.mark.parametrize("mechanism", SMOOTH, ids=lambda m: m.name)
def test_a_smooth_mechanism_does_not_depend_on_units(mechanism):
    x, how = numbers(), {"ratio": 0.3, "columns": [0, 1], "random_state": 0}
    assert_array_equal(mechanism.mask(x, **how), mechanism.mask(1000 * x + 5, **how))


def test_a_smooth_mechanism_takes_text_as_ranks_and_refuses_infinity():
    frame = pd.DataFrame({"level": ["a", "b", "c", "d"] * 250})
    lost = self_masking.mask(frame, ratio=0.4, random_state=0)[:, 0]
    by_level = pd.Series(lost).groupby(frame["level"]).mean()
    assert by_level.is_monotonic_increasing
    with pytest.raises(ValueError, match="Column 'b' contains infinity"):
        self_masking(pd.DataFrame({"b": [1.0, np.inf]}), ratio=0.5, random_state=0)
    assert mnar.mask(np.array([[1.0], [np.inf]]), ratio=0.5, random_state=0).sum() == 1


# ---- cells, features, groups


@few
@given(seeds, ratios, st.integers(1, 20), st.integers(1, 5))
def test_cells_are_lost_in_exact_number(seed, ratio, n, p):
    lost = mcar_cells.mask(numbers(n, p), ratio=ratio, random_state=seed)
    assert lost.sum() == np.floor(n * p * ratio + 1e-9)


def test_cells_of_chosen_columns_only():
    lost = mcar_cells.mask(numbers(40), ratio=0.25, columns=[0, 2], random_state=0)
    assert lost.sum() == 20
    assert not lost[:, 1].any()


@pytest.mark.parametrize(
    ("column_ratio", "n_columns"), [(0, 0), (0.1, 1), (0.25, 2), (0.5, 4), (0.75, 6), (1, 8)]
)
def test_the_grid_of_rows_and_features(column_ratio, n_columns):
    out = mcar_grid(numbers(20, 8), ratio=0.25, column_ratio=column_ratio, random_state=0)
    lost = np.isnan(out).sum(axis=0)
    assert sorted(lost) == [0] * (8 - n_columns) + [5] * n_columns


GROUPS = {"blood": ["a", "b"], "scan": ["c"], "gene": ["d", "e"]}


def modalities(n=40):
    return pd.DataFrame(numbers(n, 6), columns=list("abcdef"))


def test_groups_vanish_whole_from_rows_of_their_own():
    out = drop_groups(modalities(), GROUPS, ratio=0.5, random_state=0).isna()
    assert out.sum().tolist() == [20, 20, 20, 20, 20, 0]
    assert_array_equal(out["a"], out["b"])
    assert not out["a"].equals(out["d"])


def test_each_group_has_a_ratio_of_its_own():
    out = drop_groups(modalities(), GROUPS, ratio={"scan": 1, "gene": 0.1}, random_state=0).isna()
    assert out.sum().tolist() == [0, 0, 40, 4, 4, 0]


@pytest.mark.parametrize("n_per_row", [0, 1, 2, 3])
def test_a_number_of_groups_vanishes_from_every_row(n_per_row):
    out = drop_groups(modalities(), GROUPS, n_per_row=n_per_row, random_state=0).isna()
    assert (out[["a", "c", "d"]].sum(axis=1) == n_per_row).all()
    assert not out["f"].any()


def test_a_group_that_is_not_there_cannot_vanish():
    frame = modalities()
    frame.loc[:19, ["a", "b"]] = NAN
    frame.loc[20:29, "a"] = NAN  # Half of it is still there.
    out = drop_groups(frame, GROUPS, ratio={"blood": 0.5}, random_state=0).isna()
    assert out["b"].sum() == 20 + 10
    out = drop_groups(frame, GROUPS, n_per_row=1, random_state=0).isna()
    assert (out.loc[:19, ["c", "d"]].sum(axis=1) == 1).all()


# ---- tables of all sorts


@by_name
@pytest.mark.parametrize("kind", ["array", "pandas", "polars"])
def test_the_table_given_is_never_modified(mechanism, kind):
    frame = patients()
    X = {"array": frame[["age", "dose"]].to_numpy(), "pandas": frame}.get(kind)
    X = pl.from_pandas(frame.reset_index(drop=True)) if X is None else X
    before = pickle.dumps(X)
    out = mechanism(X, ratio=1, columns=1, drivers=0, random_state=0)
    assert type(out) is type(X)
    if kind == "array":
        out[:] = -1
    elif kind == "pandas":
        out.iloc[:, :2] = -1
    assert pickle.dumps(X) == before


@by_name
def test_a_seed_gives_frames_and_arrays_the_same_mask(mechanism):
    frame = pd.DataFrame(numbers(), columns=list("abc"))
    how = {"ratio": 0.4, "random_state": 3}
    mask = mechanism.mask(frame, **how)
    assert_array_equal(mechanism.mask(frame.to_numpy(), **how), mask)
    assert_array_equal(mechanism.mask(pl.from_pandas(frame), **how), mask)
    assert_array_equal(mechanism.mask(frame.to_numpy().tolist(), **how), mask)
    assert_array_equal(mechanism(frame, **how).isna(), mask)
    assert_array_equal(
        mechanism.mask(frame, ratio=0.4, random_state=np.random.default_rng(3)), mask
    )
    assert not np.array_equal(mechanism.mask(frame, ratio=0.4, random_state=4), mask)


@few
@given(
    spellings.columns(st.sampled_from(spellings.TEXTS)).map(
        lambda cells: (cells, [*spellings.spell_text(cells)])
    )
    | (
        spellings.columns(spellings.WHOLE)
        | spellings.columns(spellings.FLOATS)
        | spellings.columns(spellings.TINY)
    ).map(
        lambda cells: (
            cells,
            [*spellings.spell_numbers(cells), *spellings.spell_categories(cells)],
        )
    ),
    st.sampled_from(EVERY),
    st.sampled_from([0, 1]),
    ratios,
    seeds,
)
def test_every_spelling_of_a_column_loses_the_same_values(spelled, mechanism, lost, ratio, seed):
    cells, tables = spelled
    extra = np.random.default_rng(seed).normal(size=len(cells)).tolist()
    how = {"ratio": ratio, "columns": lost, "drivers": 1 - lost, "random_state": seed}
    expected = mechanism.mask(spellings.add_column(tables[0][1], extra), **how)
    for name, table in tables[1:]:
        mask = mechanism.mask(spellings.add_column(table, extra), **how)
        assert_array_equal(mask, expected, name)


@pytest.mark.parametrize("null", [False, True])
def test_an_arrow_dictionary_keeps_its_gaps_and_loses_no_others(null):
    """`Series.mask` of pandas 3.1 fills them with values."""
    entries = ["a", "unused", "b", None][: 4 if null else 3]
    codes = pa.array([0, 2, 3 if null else None, 0, 2], pa.int32())
    array = pa.DictionaryArray.from_arrays(codes, pa.array(entries))
    frame = pd.DataFrame({"c": pd.Series(pd.arrays.ArrowExtensionArray(array))})
    out = remove(frame, np.array([[True], [False], [False], [False], [True]]))
    assert out.dtypes.equals(frame.dtypes)
    assert out["c"].array.__arrow_array__().to_pylist() == [None, "b", None, "a", None]
    assert mcar.mask(frame, ratio=1, random_state=0)[:, 0].tolist() == [
        True,
        True,
        False,
        True,
        True,
    ]


def test_levels_that_do_not_occur_do_not_count():
    cells = ["a", "c", "b", "c", "a", "b", "b"] * 9
    levels = ["a", "x", "y", "b", "z", "c"]
    text = pd.DataFrame({"c": cells})
    ordered = pd.DataFrame({"c": pd.Categorical(cells, levels, ordered=True)})
    expected = self_masking.mask(text, ratio=0.4, random_state=0)
    assert_array_equal(self_masking.mask(ordered, ratio=0.4, random_state=0), expected)
    enum = pl.DataFrame({"c": pl.Series(cells, dtype=pl.Enum(levels))})
    assert_array_equal(self_masking.mask(enum, ratio=0.4, random_state=0), expected)


def test_text_that_reads_as_numbers_is_lost_as_those_numbers():
    numbers = [1, 2, 10, 9, 100, 3]
    plain, text = (pd.DataFrame({"x": [kind(v) for v in numbers]}) for kind in (float, str))
    for mechanism in (mnar, self_masking):
        for seed in range(5):
            how = {"ratio": 0.5, "random_state": seed}
            assert_array_equal(mechanism.mask(text, **how), mechanism.mask(plain, **how))
    default = pd.DataFrame({"x": pd.Categorical(text["x"], ordered=True)})  # Sorted as text.
    assert_array_equal(
        mnar.mask(default, ratio=0.5, random_state=0), mnar.mask(plain, ratio=0.5, random_state=0)
    )
    order = ["100", "3", "9", "10", "2", "1"]  # An order of its own is kept.
    ordered = pd.DataFrame({"x": pd.Categorical(text["x"], order, ordered=True)})
    assert lost_values(ordered) == {frozenset(order[i : i + 3]) for i in range(4)}


def masks_of_text():
    """A mask by every mechanism, of columns whose order a hash could disturb."""
    mixed = [1, "x", 2.5, "y", 3, "z"]
    frame = pd.DataFrame({"a": list("badcfe"), "b": mixed, "c": range(6)})
    return [m.mask(frame, ratio=0.5, n_columns=2, random_state=7).tolist() for m in EVERY]


def test_a_seed_gives_the_same_mask_in_every_process():
    code = (
        "import pandas as pd; from promissing.missingness import MECHANISMS;"
        f"EVERY = MECHANISMS.values();"
        f"exec({inspect.getsource(masks_of_text)!r}); print(masks_of_text())"
    )
    env = {**os.environ, "PYTHONHASHSEED": "12345"}
    run = [sys.executable, "-c", code]
    out = subprocess.run(run, env=env, capture_output=True, text=True, check=True)
    assert out.stdout.strip() == str(masks_of_text())


def test_a_generator_moves_on():
    rng = np.random.default_rng(0)
    first, second = (mcar.mask(numbers(), ratio=0.5, random_state=rng) for _ in range(2))
    assert not np.array_equal(first, second)


def test_pandas_keeps_what_it_can():
    out = mcar(patients(), ratio=0.4, n_columns="all", random_state=0)
    assert out.dtypes.astype(str).tolist()[:4] == ["float64", "float32", "boolean", "str"]
    assert out["stage"].dtype == patients()["stage"].dtype
    assert out["seen"].dtype == patients()["seen"].dtype
    assert out.isna().sum().tolist() == [2] * 6
    assert list(out.index) == list("vwxyz")
    kept = out["age"].notna()
    assert (out["age"][kept] == patients()["age"][kept]).all()


def test_only_columns_that_lose_a_value_change_their_dtype():
    out = mcar(patients(), ratio=0.4, columns="age", random_state=0)
    assert out["smoker"].dtype == bool
    assert mcar(patients(), ratio=0, random_state=0).equals(patients())
    assert mcar(np.arange(6).reshape(3, 2), ratio=0, random_state=0).dtype.kind == "i"


@pytest.mark.parametrize(
    "cells",
    [
        pd.array([1, 2, 3], dtype="Int64"),
        pd.array([True, None, False], dtype="boolean"),
        pd.array(["a", "b", "c"], dtype="string"),
        pd.array([1, 2, 3], dtype="int64[pyarrow]"),
        pd.to_datetime(["2020", "2021", "2022"], utc=True),
        pd.to_timedelta([3, 1, 2], unit="D"),
        pd.Series([True, "x", 3.5], dtype=object),
        pd.Series([True, False, True], dtype=object),
    ],
    ids=lambda cells: str(cells.dtype),
)
@pytest.mark.parametrize("mechanism", [mcar, mnar, self_masking], ids=lambda m: m.name)
def test_dtypes_with_room_for_a_gap_stay(cells, mechanism):
    frame = pd.DataFrame({"x": cells})
    out = mechanism(frame, ratio=1, random_state=0)
    assert out["x"].isna().all()
    assert out["x"].dtype == frame["x"].dtype


@pytest.mark.parametrize(
    ("array", "kind"),
    [
        (np.array([[1, 2], [3, 4]], np.int8), "f8"),
        (np.array([[True, False], [False, True]]), "f8"),
        (np.array([[1, 2], [3, 4]], np.float32), "f4"),
        (np.array([["a", "b"], ["c", "d"]]), "O"),
        (np.array([["a", 1], ["c", 2]], dtype=object), "O"),
        (np.array([["2020", "2021"], ["2022", "2023"]], "M8[D]"), "M8[D]"),
        ([[1, 2], [3, 4]], "f8"),
        ([[1, "a"], [3, "b"]], "O"),
    ],
)
def test_arrays_become_what_can_hold_a_gap(array, kind):
    out = mnar(array, ratio=0.5, columns=1, random_state=0)
    assert out.dtype == np.dtype(kind)
    assert pd.isna(out).sum(axis=0).tolist() == [0, 1]
    assert_array_equal(out[:, 0], np.asarray(array, dtype=object)[:, 0].astype(out.dtype))


def test_polars_has_nulls_and_keeps_every_dtype():
    frame = pl.DataFrame(
        {
            "int": [1, 2, 3, 4],
            "bool": [True, False, True, None],
            "text": ["a", "b", "c", "d"],
            "day": [dt.date(2020, 1, d) for d in (1, 2, 3, 4)],
            "list": [[1], [2], [3], [4]],
            "enum": pl.Series(["hi", "lo", "hi", "lo"], dtype=pl.Enum(["lo", "hi"])),
        }
    )
    out = mcar(frame, ratio=0.5, n_columns="all", random_state=0)
    assert out.schema == frame.schema
    assert out.null_count().row(0) == (2, 2, 2, 2, 2, 2)  # bool: floor(3 / 2) and one before


def lost_values(frame, column="x", ratio=0.5):
    """All sets of values that MNAR can lose."""
    values = frame[column].to_list()
    out = set()
    for seed in range(40):
        mask = mnar.mask(frame, ratio=ratio, columns=column, random_state=seed).any(axis=1)
        out.add(frozenset(value for value, gone in zip(values, mask, strict=True) if gone))
    return out


@pytest.mark.parametrize(
    ("cells", "order"),
    [
        (["b", "d", "a", "c"], "abcd"),
        (pd.Categorical(list("bdac")), "abcd"),
        (pd.Categorical(list("bdac"), categories=list("dbac"), ordered=True), "dbac"),
        (pd.Series([2, "a", 10, "b"], dtype=object), [2, 10, "a", "b"]),
        (pd.Categorical([2, 10, 3, 1]), [1, 2, 3, 10]),
        (pd.Series([10, 9, 100, 1], dtype="Int64"), [1, 9, 10, 100]),
    ],
)
def test_categories_and_text_rank_sensibly(cells, order):
    expected = {frozenset(order[i : i + 2]) for i in range(3)}
    assert lost_values(pd.DataFrame({"x": cells})) == expected


def test_booleans_dates_and_polars_enums_rank_sensibly():
    assert lost_values(pd.DataFrame({"x": [True, False]})) == {
        frozenset([True]),
        frozenset([False]),
    }
    days = pd.to_datetime(["2021", "2020", "2022", "2019"])
    frame = pd.DataFrame({"x": days})
    assert lost_values(frame) == {frozenset(sorted(days)[i : i + 2]) for i in range(3)}
    enum = pl.Series(["b", "a", "d", "c"], dtype=pl.Enum(["d", "a", "c", "b"]))
    order = ["d", "a", "c", "b"]
    expected = {frozenset(order[i : i + 2]) for i in range(3)}
    assert lost_values(pl.DataFrame({"x": enum})) == expected


def test_columns_go_by_name_or_position():
    frame = pd.DataFrame(numbers(), columns=list("abc"))
    by_name = mcar.mask(frame, ratio=0.5, columns=["c", "a"], random_state=0)
    assert_array_equal(mcar.mask(frame, ratio=0.5, columns=[2, 0], random_state=0), by_name)
    assert_array_equal(
        mcar.mask(frame, ratio=0.5, columns=(-1, np.int64(0)), random_state=0), by_name
    )
    assert by_name.any(axis=0).tolist() == [True, False, True]
    labels = frame.set_axis([2, 1, 0], axis=1)  # A number is a position, as in scikit-learn.
    assert mcar.mask(labels, ratio=0.5, columns=0, random_state=0)[:, 0].any()


def test_a_mask_of_ones_own():
    mask = np.array([[True, False], [False, False]])
    assert_array_equal(remove([[1, 2], [3, 4]], mask), [[NAN, 2], [3, 4]])
    frame = pd.DataFrame({"a": [1, 2], "b": ["x", "y"]})
    assert remove(frame, pd.DataFrame(mask)).isna().to_numpy().tolist() == mask.tolist()
    for bad in (mask[:1], mask.astype(int)):
        with pytest.raises(ValueError, match=r"must be boolean and of the shape of X, \(2, 2\)"):
            remove(frame, bad)


# ---- which columns matter


def informative(n=300):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, 4))
    y = x[:, 2] + 0.5 * x[:, 1] + 0.1 * rng.normal(size=n)
    return x, y


def test_the_most_informative_columns_come_first():
    x, y = informative()
    assert most_informative(x, y)[:2] == [2, 1]
    labels = np.where(y > 0, "yes", "no")
    frame = pd.DataFrame(x, columns=["a", "b", "c", "d"])
    assert most_informative(frame, labels)[:2] == ["c", "b"]
    order = np.argsort(-mutual_info_classif(x, y > 0, random_state=0), kind="stable")
    assert most_informative(x, y > 0) == order.tolist()
    order = np.argsort(-mutual_info_regression(x, np.round(y), random_state=0), kind="stable")
    rounded = np.round(y).astype(int)
    assert most_informative(x, rounded, task="regression") == order.tolist()


def test_nominal_columns_are_discrete():
    """Of very many values: as codes they tell of y, by counting; as numbers they do not."""
    rng = np.random.default_rng(0)
    codes, y = rng.integers(200, size=300), rng.integers(2, size=300)
    coded = np.column_stack([rng.normal(size=300) + y, codes])
    assert most_informative(coded, y) == [0, 1]
    assert most_informative(coded, y, nominal=1) == [1, 0]
    frame = pd.DataFrame({"number": coded[:, 0], "text": codes.astype(str)})
    assert most_informative(frame, y) == ["text", "number"]
    assert most_informative(frame.astype({"text": "category"}), y) == ["text", "number"]


def test_ties_keep_the_order_of_the_table():
    text = np.array(list("ab") * 20)
    frame = pd.DataFrame({"x": text, "z": text, "a": text})
    assert most_informative(frame, text) == ["x", "z", "a"]


def test_rows_with_gaps_do_not_inform():
    x, y = informative()
    holes = np.vstack([x, np.full((5, 4), NAN)])
    assert most_informative(holes, np.append(y, np.zeros(5))) == most_informative(x, y)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        most_informative(x, y[:-1])
    with pytest.raises(ValueError, match=r"`task` must be one of .*Received: 'ranking'"):
        most_informative(x, y, task="ranking")


# ---- at home in scikit-learn

BY_DESIGN = "fit_transform removes values and transform does not: that is what it is for"
WHOLE = "at_transform: how many values are lost, and which, depends on all rows together"
ESTIMATORS = [
    MissingValues(),
    MissingValues("mnar-logistic", n_columns="all"),
    MissingValues("mar", at_transform=True),
]


def expected_failures(estimator):
    if estimator.at_transform:
        names = ("check_methods_sample_order_invariance", "check_methods_subset_invariance")
        return dict.fromkeys(names, WHOLE)
    names = ("check_transformer_general", "check_transformer_data_not_an_array")
    return dict.fromkeys(names, BY_DESIGN)


@parametrize_with_checks(ESTIMATORS, expected_failed_checks=expected_failures)
def test_scikit_learns_checks(estimator, check):
    check(estimator)


FRAMES = pytest.mark.xfail(
    reason="frame in, frame out without set_output too: the check builds what it expects from an "
    "array, and asks pandas for columns x0, x1, ... of our frame",
    strict=True,
)


@pytest.mark.parametrize(
    "name",
    [
        "check_dataframe_column_names_consistency",
        "check_transformer_get_feature_names_out",
        "check_transformer_get_feature_names_out_pandas",
        "check_set_output_transform",
        pytest.param("check_set_output_transform_pandas", marks=FRAMES),
        pytest.param("check_global_output_transform_pandas", marks=FRAMES),
        "check_set_output_transform_polars",
        "check_global_set_output_transform_polars",
    ],
)
# Arrays after frames and frames after arrays: the warnings are what is checked.
@pytest.mark.filterwarnings("ignore:X (has|does not have valid) feature names:UserWarning")
def test_scikit_learns_other_checks(name):
    getattr(estimator_checks, name)("MissingValues", MissingValues())


@by_name
def test_fit_transform_is_the_mechanism_with_that_seed(mechanism):
    gaps = MissingValues(mechanism.name, ratio=0.4, random_state=5)
    pd.testing.assert_frame_equal(
        gaps.fit_transform(patients()), mechanism(patients(), ratio=0.4, random_state=5)
    )


def test_transform_leaves_data_alone_unless_told_otherwise():
    x = numbers()
    gaps = MissingValues(ratio=0.5, random_state=0)
    assert np.isnan(gaps.fit_transform(x)).sum() == 25
    out = gaps.transform(x)
    assert_array_equal(out, x)
    assert out is not x
    gaps.set_params(at_transform=True).fit(x)
    assert_array_equal(gaps.transform(x), gaps.fit_transform(x))


def test_new_rows_lose_values_of_the_same_columns():
    gaps = MissingValues("mar", ratio=0.5, n_columns=2, at_transform=True, random_state=1)
    gaps.fit(pd.DataFrame(numbers(50, 5), columns=list("abcde")))
    out = gaps.transform(pd.DataFrame(numbers(8, 5, seed=1), columns=list("abcde")))
    lost = out.isna().sum()
    assert sorted(lost[lost > 0].index) == sorted(gaps.columns_)
    assert lost[gaps.columns_].tolist() == [4, 4]
    assert not set(gaps.drivers_) & set(gaps.columns_)


def test_a_pipeline_learns_from_gaps_and_predicts_from_all_there_is():
    x = numbers(200)
    y = x[:, 0] > 0
    gaps = MissingValues("mcar-cells", ratio=0.3, random_state=0)
    model = make_pipeline(gaps, DecisionTreeClassifier(max_depth=3, random_state=0)).fit(x, y)
    assert model.score(x, y) > 0.9


def test_names_and_frames_come_out():
    gaps = MissingValues(random_state=0).fit(patients())
    assert list(gaps.get_feature_names_out()) == list(patients())
    assert isinstance(gaps.transform(patients()), pd.DataFrame)
    gaps.set_output(transform="polars")
    assert isinstance(gaps.fit_transform(numbers()), pl.DataFrame)


@pytest.mark.parametrize(
    "state",
    [None, np.random.RandomState(0), np.random.default_rng(0)],
)
def test_random_states_of_scikit_learn_and_numpy(state):
    gaps = clone(MissingValues(ratio=0.5, at_transform=True, random_state=state))
    x = numbers()
    assert np.isnan(gaps.fit_transform(x)).sum() == 25
    assert_array_equal(gaps.transform(x), pickle.loads(pickle.dumps(gaps)).transform(x))


def test_the_vocabulary():
    assert list(MECHANISMS) == [
        *("mcar", "mcar-cells", "mar", "mnar"),
        *("mar-logistic", "mnar-logistic", "self-masking"),
    ]
    assert all(Mechanism(name) == mechanism for name, mechanism in MECHANISMS.items())
    assert pickle.loads(pickle.dumps(mar)) == mar


# ---- bad input


@by_name
@pytest.mark.parametrize("ratio", [-0.1, 1.1, 30, NAN, "0.5", None])
def test_a_ratio_outside_0_to_1(mechanism, ratio):
    message = f"`ratio` must be a share between 0 and 1. Received: {ratio!r}"
    with pytest.raises(ValueError, match=message):
        mechanism(numbers(), ratio=ratio, random_state=0)
    with pytest.raises(ValueError, match=message):
        MissingValues(mechanism.name, ratio=ratio).fit(numbers())


def test_an_unknown_mechanism():
    message = r"`mechanism` must be one of \('mcar', .*Received: 'mcra'. Did you mean 'mcar'"
    with pytest.raises(ValueError, match=message):
        Mechanism("mcra")
    with pytest.raises(ValueError, match=message):
        MissingValues("mcra").fit(numbers())


FRAME = pd.DataFrame(numbers(), columns=["age", "dose", "weight"])


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"columns": "ages"}, "`columns` names column 'ages', which is not one of the 3 columns"),
        ({"columns": "ages"}, "Did you mean 'age'?"),
        ({"columns": 3}, "`columns` names column 3, which is not one of the 3 columns of X."),
        ({"columns": [True, False, True]}, "`columns` names column True"),
        ({"columns": ["age", "age"]}, "`columns` names column 'age' more than once"),
        ({"columns": ["age", 0]}, "`columns` names column 'age' more than once"),
        ({"columns": ["age", -3]}, "`columns` names column 'age' more than once"),
        ({"n_columns": 4}, '`n_columns` must be "all" or a whole number from 0 to 2. Received: 4'),
        ({"n_columns": 0.5}, "`n_columns` must be .*Received: 0.5"),
        ({"columns": "age", "drivers": "age"}, "column 'age' cannot drive its own loss"),
        ({"columns": ["age", "dose"], "drivers": "dose"}, "'dose' cannot drive a loss and lose"),
        ({"columns": "age", "drivers": "dos"}, "`drivers` names column 'dos'.* mean 'dose'?"),
        ({"columns": "age", "drivers": [1, 2]}, "one for each of the 1 that lose.*Received: 2"),
        ({"columns": [0, 1, 2]}, '"mar" needs a driver that loses nothing'),
        (
            {"random_state": None},
            "`random_state` must be a whole number >= 0 or a NumPy Generator. Received: None",
        ),
        ({"random_state": -1}, "`random_state` must be .*Received: -1"),
        ({"slope": np.inf}, "`slope` must be a finite number. Received: inf"),
    ],
)
def test_bad_arguments(how, message):
    with pytest.raises(ValueError, match=message):
        mar(FRAME, **{"ratio": 0.5, "random_state": 0, **how})


@pytest.mark.parametrize("mechanism", [mar, mar_logistic], ids=lambda m: m.name)
@pytest.mark.parametrize("how", [{}, {"columns": 0}, {"columns": 0, "drivers": 0}])
def test_mar_needs_a_second_column(mechanism, how):
    with pytest.raises(ValueError, match="needs a second column as driver; X has n_features = 1"):
        mechanism(numbers(p=1), ratio=0.5, random_state=0, **how)


def test_bad_tables():
    twice = FRAME.set_axis(["age", "age", "dose"], axis=1)
    with pytest.raises(ValueError, match=r"unique. Received more than once: \['age'\]"):
        mcar(twice, ratio=0.5, random_state=0)
    with pytest.raises(ValueError, match="Expected 2D array"):
        mcar(np.arange(3.0), ratio=0.5, random_state=0)
    with pytest.raises(ValueError, match="minimum of 1 is required"):
        mcar(FRAME[:0], ratio=0.5, random_state=0)


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({}, "Give either `ratio` or `n_per_row`"),
        ({"ratio": 0.5, "n_per_row": 1}, "Give either `ratio` or `n_per_row`"),
        ({"ratio": 1.5}, "`ratio` must be a share between 0 and 1. Received: 1.5"),
        ({"ratio": {"blod": 0.5}}, "`ratio` names no group: 'blod'. Did you mean 'blood'?"),
        ({"n_per_row": 4}, "`n_per_row` must be a whole number from 0 to 3. Received: 4"),
        ({"ratio": 0.5, "groups": {}}, "`groups` must be a mapping with at least one group"),
        ({"ratio": 0.5, "groups": {"x": "a", "y": ["b", "a"]}}, "`groups` names column 'a' more"),
        ({"ratio": 0.5, "groups": {"x": "no"}}, r"`groups\['x'\]` names column 'no'"),
    ],
)
def test_bad_groups(how, message):
    with pytest.raises(ValueError, match=message):
        drop_groups(modalities(), **{"groups": GROUPS, "random_state": 0, **how})


def test_a_share_of_columns_outside_0_to_1():
    with pytest.raises(ValueError, match="`column_ratio` must be a share between 0 and 1"):
        mcar_grid(FRAME, ratio=0.5, column_ratio=2, random_state=0)


def test_the_old_name_of_random_state_works_with_a_warning():
    for function in (mcar, mcar.mask, lambda X, **how: mcar_grid(X, column_ratio=0.5, **how)):
        with pytest.warns(FutureWarning, match="`rng` is now `random_state`"):
            old = function(FRAME, ratio=0.5, rng=3)
        assert_array_equal(old, function(FRAME, ratio=0.5, random_state=3))
    with pytest.warns(FutureWarning, match="`rng` is now `random_state`"):
        drop_groups(FRAME, {"body": "age"}, n_per_row=1, rng=3)
