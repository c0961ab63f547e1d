"""What is missing in a table."""

import json
import re
import time

import numpy as np
import pandas as pd
import pytest

import promissing.io.description
from promissing.datasets import make_cohort
from promissing.io.description import describe, is_identifier, reads_as

NAN = np.nan


def suspects(values):
    found = describe(pd.DataFrame({"a": values}))["by_column"][0]["suspects"]
    return {one["value"]: one["count"] for one in found}


def test_it_counts_what_is_missing():
    frame = pd.DataFrame(
        {
            "age": [1.5, NAN, NAN, 4.0],
            "ward": ["a", None, "b", "b"],
            "flag": pd.array([True, None, True, False], dtype="boolean"),
            "day": pd.to_datetime(["2024-01-01", None, None, None]),
            "none": [NAN] * 4,
        }
    )
    found = describe(frame, target="ward")
    assert (found["rows"], found["columns"], found["cells"], found["missing"]) == (4, 5, 20, 11)
    assert found["share"] == 11 / 20
    assert (found["complete_rows"], found["empty_rows"]) == (0, 1)
    lines = {line["name"]: line for line in found["by_column"]}
    assert [line["kind"] for line in lines.values()] == [
        *("number", "category", "boolean", "date", "empty")
    ]
    assert (lines["age"]["missing"], lines["age"]["share"], lines["age"]["distinct"]) == (2, 0.5, 2)
    assert found["by_row"] == [
        {"gaps": 1, "rows": 1},
        {"gaps": 2, "rows": 1},
        {"gaps": 3, "rows": 1},
        {"gaps": 5, "rows": 1},
    ]
    assert "Column 'none' is empty." in found["notes"]
    assert "The target 'ward' is missing in 1 row." in found["notes"]
    json.dumps(found, allow_nan=False)


def test_patterns_come_most_frequent_first():
    frame = pd.DataFrame({"a": [NAN, NAN, 1, 1, NAN], "b": [1, 1, NAN, 1, 1], "c": [1] * 5})
    found = describe(frame)
    assert found["n_patterns"] == 3
    lines = [(p["missing"], p["rows"]) for p in found["patterns"]]
    assert lines == [(["a"], 3), (["b"], 1), ([], 1)]


def test_blocks_are_columns_missing_together():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(200, 6)), columns=list("abcdef"))
    gone = rng.random(200) < 0.3
    frame.loc[gone, ["a", "c", "e"]] = NAN
    frame.loc[rng.random(200) < 0.3, "b"] = NAN
    (block,) = describe(frame)["blocks"]
    assert block["columns"] == ["a", "c", "e"]
    assert block["rows"] == gone.sum()


def test_the_modalities_of_the_cohort_show_as_blocks():
    cohort = make_cohort()
    home = {c: name for name, columns in cohort.modalities.items() for c in columns}
    blocks = describe(cohort.X)["blocks"]
    assert len(blocks) >= 5
    for block in blocks:
        assert len({home[column] for column in block["columns"]}) == 1


@pytest.mark.parametrize(
    ("values", "found"),
    [
        ([34, -999, 51, -999, 20], {-999: 2}),
        ([34, -999, 51, -99, 20], {-999: 1, -99: 1}),
        ([1, 2, 3, 9999], {9999: 1}),
        ([1.5, 2, 99, 3], {99: 1}),
        ([90, 95, 97, 98, 99], {}),  # An age, not a sign.
        ([-1000, -999, -998, 0, 1000], {}),
        (["a", "?", "?", "b"], {"?": 2}),
        (["a", "Unknown", "n.a.", " "], {"Unknown": 1, "n.a.": 1, " ": 1}),
        (["a", "NA", ""], {"NA": 1, "": 1}),
        (["1", "2", "3", "see below"], {"see below": 1}),
        (["a", "b", "c", "1"], {}),
        ([True, False], {}),
    ],
)
def test_values_that_may_stand_for_missing(values, found):
    assert suspects(values) == found


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (["1,5", "2,25", "3"], 'numbers with decimal commas, such as .* pass `decimal=","`'),
        (["1,200", "3,400"], "numbers with commas, such as '1,200', '3,400'"),
        (["1,5", "2,5", "k.A."], r"numbers, .* except 'k.A.'.*`missing_values=\['k.A.'\]`"),
        (["$1,200", "$950"], "amounts of money, .* pass `kinds={'x': 'number'}`"),
        (["12 EUR", "7,50 EUR", "-"], r"amounts of money, .* except '-'.*missing_values=\['-'\]"),
        (["45 %", "50%"], "percentages"),
        (["130/80", "120/75", "141/90"], "pairs of numbers, .* split it into two columns"),
        (["31.01.2024", "01.02.2024"], r"dates, such as .* pass `dates=\['x'\]`"),
        (["01/02/2024", "03/04/2024"], "dates, .* may be swapped.*`dates={'x': '%d/%m/%Y'}`"),
        (["<0,5", "1,2", "3,4"], "numbers and limits such as '<0,5'"),
        (["75 kg", "80 kg", "91 kg"], "numbers with the unit 'kg'"),
        (["1 234", "2 345", "12"], "numbers with spaces"),
        ([f"{i / 2}" for i in range(5)], "numbers, such as '0.0'"),
    ],
)
def test_text_that_reads_as_something_else_is_told_of(values, said):
    (note,) = [n for n in describe(pd.DataFrame({"x": values}))["notes"] if "reads as" in n]
    assert re.search(said, note), note
    assert not describe(pd.DataFrame({"x": values}), settled=["x"])["notes"]


@pytest.mark.parametrize(
    "values", [["north", "south"], ["1", "2", "x"], ["007", "010"], ["a/b", "c/d"], [1, 2], [None]]
)
def test_other_columns_read_as_what_they_are(values):
    assert reads_as(pd.Series(values, name="x")) is None


def test_many_empty_columns_are_described_quickly_and_in_one_note():
    frame = pd.DataFrame(np.full((5, 5_000), NAN), columns=[f"c{i}" for i in range(5_000)])
    start = time.perf_counter()
    found = describe(frame)
    assert time.perf_counter() - start < 15
    (note,) = found["notes"]
    assert note.startswith("Columns 'c0', 'c1',")
    assert note.endswith("and 4995 more are empty.")
    assert len(found["blocks"][0]["columns"]) == 5_000


def test_of_very_many_columns_those_with_the_same_gaps_are_a_block(monkeypatch):
    monkeypatch.setattr(promissing.io.description, "_PATTERNS", 2)
    frame = pd.DataFrame({c: [1.0] * 8 for c in "abcd"})
    frame.loc[:2, ["a", "c"]] = NAN
    frame.loc[4:, "b"] = NAN
    frame.loc[5:, "d"] = NAN
    found = describe(frame)
    assert [block["columns"] for block in found["blocks"]] == [["a", "c"]]
    assert "3 columns differ in their gaps" in found["notes"][-1]


def test_identifiers():
    assert is_identifier(pd.Series([f"n{i}" for i in range(20)]))
    assert is_identifier(pd.Series(range(20)))
    assert not is_identifier(pd.Series(np.linspace(0, 1, 20)))
    assert not is_identifier(pd.Series(["a"] * 20))
    assert not is_identifier(pd.Series(pd.date_range("2024", periods=20)))
    assert not is_identifier(pd.Series(range(5)))  # Anything is unique in so few.


def test_text_that_is_not_valid_unicode_is_refused_by_column():
    frame = pd.DataFrame({"a": np.array(["x", "y\ud800"], object)}, dtype=object)
    with pytest.raises(ValueError, match="Column 'a' has text that is not valid Unicode"):
        describe(frame)
