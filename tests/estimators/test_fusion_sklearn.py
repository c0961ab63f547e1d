"""scikit-learn's own checks, and our NaN contract, on the fusion estimators.

The networks are small and train for a few epochs: nearly all of the time is compiling, once for
every shape of table that the checks come up with.
"""

import pytest
from sklearn.utils.estimator_checks import (
    check_dataframe_column_names_consistency,
    parametrize_with_checks,
)

from promissing.checks import ESTIMATOR_CHECKS
from promissing.estimators.fusion import NanFusionClassifier, NanFusionRegressor

QUICK = {"max_iter": 20, "learning_rate_init": 0.02, "n_members": 1}
# Some checks add a column, and some make arrays of frames.
MODALITIES = {"first": [0, 2], "second": [1]}


def expected_failures(estimator):
    why = (
        "exact to 1e-7 is out of reach in float32, and dropout differs; "
        "test_a_weight_of_two_is_a_row_that_occurs_twice holds it to 1e-3 without"
    )
    return {f"check_sample_weight_equivalence_on_{kind}_data": why for kind in ("dense", "sparse")}


@parametrize_with_checks(
    [NanFusionClassifier(**QUICK), NanFusionRegressor(**QUICK, dropout=0.0)],
    expected_failed_checks=expected_failures,
)
def test_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.parametrize("kind", [NanFusionClassifier, NanFusionRegressor])
def test_column_names(kind):
    check_dataframe_column_names_consistency(kind.__name__, kind(**QUICK))


@pytest.mark.parametrize("kind", [NanFusionClassifier, NanFusionRegressor])
@pytest.mark.parametrize("check", ESTIMATOR_CHECKS)
def test_contract(check, kind):
    check(kind(MODALITIES, remainder="modality", max_iter=5, n_members=2, augment=0.2))
