"""Distributions of columns, and their associations with the target."""

import numpy as np
import pandas as pd
import pytest

from promissing.report.columns import describe_columns


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    n = 400
    frame = pd.DataFrame(
        {
            "noise": rng.normal(size=n),
            "signal": rng.normal(size=n),
            "ward": rng.choice(["north", "south", "west", "east"], n),
            "smoker": pd.array(rng.random(n) < 0.5, dtype="boolean"),
            "seen": pd.Timestamp("2024-01-01") + pd.to_timedelta(np.arange(n), "D"),
            "same": 1.0,
            "empty": np.nan,
        }
    )
    y = np.where(frame["signal"] > 0, "yes", "no")
    return frame, y


def by_name(found):
    return {item["name"]: item for item in found["items"]}


def test_a_column_that_decides_the_class_has_an_association_of_one(table):
    frame, y = table
    found = describe_columns(frame, y, np.array(["no", "yes"]), "yes")
    items = by_name(found)
    assert found["items"][0]["name"] == "signal"
    assert items["signal"]["association"] == pytest.approx(1)
    assert items["noise"]["association"] < 0.2
    assert items["ward"]["kind"] == items["smoker"]["kind"] == "category"
    assert items["seen"]["kind"] == "date"
    assert items["seen"]["summary"] == ["2024-07-18", "2024-02-09", "2024-12-25"]
    assert items["same"]["association"] == 0
    assert items["empty"]["association"] is None
    assert items["empty"]["known"] is None


def test_informative_missing_values_show_in_the_target(table):
    frame, y = table
    frame["signal"] = frame["signal"].where(frame["signal"] < 1)
    item = by_name(describe_columns(frame, y, np.array(["no", "yes"]), "yes"))["signal"]
    assert item["unknown"] == 1 > 0.5 > item["known"]
    assert item["missing"] == pytest.approx((y == "yes").mean() * 0.33, abs=0.1)


def test_numbers_are_associated_by_rank_and_categories_by_their_means(table):
    frame, _ = table
    y = np.exp(frame["signal"].to_numpy()) + 5 * (frame["ward"] == "north").to_numpy()
    items = by_name(describe_columns(frame, y, None, None))
    assert 0.5 < items["signal"]["association"] < 1
    assert items["ward"]["association"] > 0.6
    assert sum(items["signal"]["bars"]) == pytest.approx(1)
    assert [name for name, _ in items["ward"]["summary"]] != []


def test_many_columns_are_cut():
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(20, 510)))
    found = describe_columns(X, np.arange(20.0), None, None)
    assert (len(found["items"]), found["left_out"]) == (500, 10)
