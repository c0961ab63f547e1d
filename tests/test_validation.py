"""Checks and texts that all packages share."""

import re

import numpy as np
import pytest

from promissing._validation import did_you_mean, expect, is_whole


def test_similar_names_are_suggested_whatever_their_case():
    assert did_you_mean("AEG", ["age", "ward"]) == " Did you mean 'age'?"
    assert did_you_mean("age", ["ages", "Aged"]) in (
        " Did you mean 'Aged' or 'ages'?",
        " Did you mean 'ages' or 'Aged'?",
    )


def test_the_first_names_are_listed_if_none_is_similar():
    names = [f"c{i}" for i in range(10)]
    assert did_you_mean("weight", ["age", 3]) == " There are 'age', '3'."
    assert did_you_mean("weight", names).endswith("'c7' and 2 more.")
    assert did_you_mean("weight", names, show=0) == ""
    assert did_you_mean("weight", []) == ""


def test_an_unexpected_value_is_named():
    expect(True, "ratio", "positive", 1)
    with pytest.raises(ValueError, match=re.escape("`ratio` must be positive. Received: -1")):
        expect(False, "ratio", "positive", -1)


def test_whole_numbers():
    assert is_whole(3)
    assert is_whole(np.int8(3))
    assert not is_whole(True)
    assert not is_whole(3.0)
