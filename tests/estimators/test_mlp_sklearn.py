"""scikit-learn's own checks, and our NaN contract, on the estimators."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import sklearn
from plain import classifier, regressor
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.dummy import DummyClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.inspection import permutation_importance
from sklearn.model_selection import GridSearchCV, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import (
    check_dataframe_column_names_consistency,
    parametrize_with_checks,
)

from promissing import NanMLPClassifier, TableEncoder
from promissing.checks import ESTIMATOR_CHECKS, check_estimator

ESTIMATORS = [
    # Plain ones: the defaults compile and train far longer. The last has their other parts.
    classifier(),
    regressor(),
    NanMLPClassifier((16, 16), n_members=2, max_iter=10, compensation="shared"),
]


def expected_failures(estimator):
    why = (
        "exact to 1e-7 is out of reach in float32; "
        "test_a_weight_of_two_is_a_row_that_occurs_twice holds it to 1e-3"
    )
    return {f"check_sample_weight_equivalence_on_{kind}_data": why for kind in ("dense", "sparse")}


@parametrize_with_checks(ESTIMATORS[:2], expected_failed_checks=expected_failures)
def test_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)
def test_column_names(estimator):
    check_dataframe_column_names_consistency(type(estimator).__name__, estimator)


@pytest.mark.parametrize("estimator", ESTIMATORS[1:], ids=lambda e: type(e).__name__)
@pytest.mark.parametrize("check", ESTIMATOR_CHECKS)
def test_contract(check, estimator):
    check(estimator)


def test_the_contract_names_the_check_that_is_broken():
    with pytest.raises(AssertionError, match="check_columns_go_by_name: reordered"):
        check_estimator(DummyClassifier())

    class Leaky(DummyClassifier):
        def predict_proba(self, X):
            out = super().predict_proba(X)
            return np.where(np.isnan(np.asarray(X, float)).any(axis=1)[:, None], np.nan, out)

    with pytest.raises(AssertionError, match="check_gaps_only_at_prediction: NaN or inf"):
        check_estimator(Leaky())


def table_with_gaps():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 3))
    y = np.where(X[:, 0] > 0, "yes", "no")
    X[rng.random(X.shape) < 0.2] = np.nan
    return X, y


def sparse_table():
    rng = np.random.default_rng(0)
    X = np.where(rng.random((90, 5)) < 0.7, 0.0, rng.normal(size=(90, 5)))
    X[5, 1] = np.nan
    return X, (X[:, 0] > 0).astype(int)


@pytest.mark.parametrize("container", ["csr_array", "csc_matrix", "coo_array"])
@pytest.mark.parametrize("kinds", [None, {4: "category"}])
def test_sparse_zeros_are_observed(container, kinds):
    X, y = sparse_table()
    X[:, 4] = np.arange(90) % 3
    sparse = getattr(scipy.sparse, container)(X)
    weight = np.arange(90) % 4
    model = classifier((4,), max_iter=3, n_bins=4, kinds=kinds, random_state=0)
    dense = clone(model).fit(X, y, sample_weight=weight)
    model.fit(sparse, y, sample_weight=weight)
    np.testing.assert_array_equal(model.predict_proba(sparse), dense.predict_proba(X))
    np.testing.assert_array_equal(model.known_share(sparse), dense.known_share(X))
    model.partial_fit(sparse, y)
    dense.partial_fit(X, y)
    np.testing.assert_array_equal(model.predict_proba(X), dense.predict_proba(X))


def test_a_wide_sparse_table_is_read_in_blocks(monkeypatch):
    X, y = sparse_table()
    sparse = scipy.sparse.csr_array(X)
    model = classifier((4,), max_iter=3, random_state=0).fit(sparse, y)
    whole, read = model.encoder_.transform(sparse), []
    monkeypatch.setattr("promissing.encoding.table_encoder._BLOCK", 5)

    class Watched(TableEncoder):
        def _read_rows(self, table, rows):
            read.append(rows.stop - rows.start)
            return super()._read_rows(table, rows)

    monkeypatch.setattr(model.encoder_, "__class__", Watched)
    np.testing.assert_array_equal(model.encoder_.transform(sparse), whole)
    assert max(read) == 16
    assert sum(read) == 90


def test_other_libraries_see_a_classifier_and_a_regressor():
    assert NanMLPClassifier()._estimator_type == "classifier"  # As yellowbrick asks.
    assert regressor()._estimator_type == "regressor"


def test_a_model_can_be_called():
    X, y = table_with_gaps()
    model = classifier((4,), max_iter=3).fit(X, y)
    np.testing.assert_array_equal(model(X), model.predict_proba(X))  # As shap.Explainer does.
    number = regressor((4,), max_iter=3).fit(X, y == "yes")
    np.testing.assert_array_equal(number(X), number.predict(X))


def test_fitted_models_can_be_frozen():
    X, y = table_with_gaps()
    model = classifier((4,), max_iter=3, random_state=0).fit(X, y)
    frozen = FrozenEstimator(model)
    np.testing.assert_array_equal(frozen.fit(X[:2], y[:2]).predict(X), model.predict(X))
    calibrated = CalibratedClassifierCV(frozen).fit(X, y)
    assert calibrated.predict_proba(X).shape == (90, 2)


def test_predictions_and_importances_by_scikit_learn():
    X, y = table_with_gaps()
    model = classifier((8,), max_iter=100, learning_rate_init=0.01, random_state=0)
    proba = cross_val_predict(model, X, y, cv=3, method="predict_proba")
    assert ((proba[:, 1] > 0.5) == (y == "yes")).mean() > 0.7
    found = permutation_importance(model.fit(X, y), X, y, n_repeats=2, random_state=0)
    assert found.importances_mean.argmax() == 0


def test_weights_are_routed_through_a_search():
    X, y = table_with_gaps()
    with sklearn.config_context(enable_metadata_routing=True):
        model = classifier((4,), max_iter=3, random_state=0)
        model.set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        search = GridSearchCV(model, {"alpha": [0.0, 0.1]}, cv=2)
        search.fit(X, y, sample_weight=np.where(y == "yes", 1.0, 3.0))
    assert search.best_estimator_.prior_[0] > 0.6


def test_frames_from_set_output_keep_their_names():
    X, y = table_with_gaps()
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    columns = make_column_transformer(
        ("passthrough", ["c", "a"]), verbose_feature_names_out=False
    ).set_output(transform="pandas")
    model = make_pipeline(columns, classifier((4,), max_iter=3)).fit(frame, y)
    assert model[-1].feature_names_in_.tolist() == ["c", "a"]
    assert model.predict(frame).shape == (90,)
