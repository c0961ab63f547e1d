"""The contract of an estimator: scikit-learn's checks say nothing about NaN, these do."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import sklearn
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import (
    BaggingClassifier,
    BaggingRegressor,
    StackingClassifier,
    StackingRegressor,
)
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

__all__ = ["ESTIMATOR_CHECKS", "check_estimator"]

Array = NDArray[Any]


def check_estimator(estimator: Any) -> None:
    """Run an estimator through the whole contract; raise AssertionError at the first breach.

    Parameters
    ----------
    estimator : classifier or regressor
        Not fitted; it is cloned. Its parameters should make it quick.

    Examples
    --------
    >>> from promissing.checks import check_estimator
    >>> from sklearn.dummy import DummyClassifier
    >>> check_estimator(DummyClassifier())
    Traceback (most recent call last):
        ...
    AssertionError: check_columns_go_by_name: ...
    """
    for check in ESTIMATOR_CHECKS:
        try:
            check(estimator)
        except Exception as error:
            message = str(error) or type(error).__name__
            raise AssertionError(f"{check.__name__}: {message}") from error


def check_gaps_only_at_prediction(estimator: Any) -> None:
    """Trained on complete rows, it predicts rows with gaps (and may warn)."""
    X, y = _table(estimator)
    model = _fit(estimator, X.fillna(0.5), y)
    _assert_sane(model, X)


def check_empty_rows_are_all_alike(estimator: Any) -> None:
    """A row of which nothing is known gets a prediction, and always the same."""
    X, y = _table(estimator)
    model = _fit(estimator, X, y)
    empty = pd.DataFrame(np.nan, index=range(3), columns=X.columns)
    out = _assert_sane(model, empty)
    np.testing.assert_allclose(out, out[[0, 0, 0]], err_msg="empty rows differ")


def check_column_without_any_value(estimator: Any) -> None:
    """A column that is empty in training neither stops it nor matters later."""
    X, y = _table(estimator)
    X = X.assign(void=np.nan)
    model = _fit(estimator, X, y)
    out = _assert_sane(model, X)
    again = _output(model, X.assign(void=3.0))
    np.testing.assert_allclose(again, out, err_msg="a column never seen in training matters")


def check_constant_column_with_gaps(estimator: Any) -> None:
    """A constant with gaps has no deviation, but may say something by its gaps."""
    X, y = _table(estimator)
    X = X.assign(constant=np.where(np.arange(len(X)) % 3 == 0, np.nan, 7.0))
    _assert_sane(_fit(estimator, X, y), X)


def check_missing_in_any_spelling(estimator: Any) -> None:
    """NaN, None, pd.NA, nullable dtypes and object columns say the same."""
    X, y = _table(estimator)
    model = _fit(estimator, X, y)
    out = _output(model, X)
    cells = X.astype(object)
    spellings = {
        "nullable floats": X.astype("Float64"),
        "None in object columns": cells.where(X.notna(), None),
        "pd.NA in object columns": cells.where(X.notna(), pd.NA),
    }
    for name, frame in spellings.items():
        np.testing.assert_allclose(_output(model, frame), out, err_msg=f"{name} at prediction")
        trained = _output(_fit(estimator, frame, y), X)
        np.testing.assert_allclose(trained, out, err_msg=f"{name} in training")


def check_columns_go_by_name(estimator: Any) -> None:
    """Reordered or absent columns are refused, by name."""
    X, y = _table(estimator)
    model = _fit(estimator, X, y)
    for frame, what in ((X[X.columns[::-1]], "reordered"), (X.drop(columns="b"), "absent")):
        try:
            _output(model, frame)
        except ValueError as error:
            assert what == "reordered" or "b" in str(error), f"{what}: no name in {error}"
        else:
            raise AssertionError(f"{what} columns were accepted")


def check_infinity_is_refused_by_name(estimator: Any) -> None:
    """Infinity is neither a number nor missing: the error names its column."""
    X, y = _table(estimator)
    model = _fit(estimator, X, y)
    for value in (np.inf, -np.inf):
        bad = X.copy()
        bad.loc[1, "c"] = value
        for what, call in (
            ("in training", lambda bad=bad: _fit(estimator, bad, y)),
            ("at prediction", lambda bad=bad: _output(model, bad)),
        ):
            try:
                call()
            except ValueError as error:
                assert "'c'" in str(error), f"{value} {what}: no column in {error}"
            else:
                raise AssertionError(f"{value} {what} was accepted")


def check_rows_do_not_depend_on_each_other(estimator: Any) -> None:
    """A row with gaps gets the same prediction alone and among others."""
    X, y = _table(estimator)
    model = _fit(estimator, X, y)
    whole = _output(model, X)
    parts = np.concatenate([_output(model, X.iloc[i : i + 1]) for i in range(12)])
    np.testing.assert_allclose(parts, whole[:12], atol=1e-7, err_msg="a row depends on others")


def check_the_same_seed_gives_the_same_model(estimator: Any) -> None:
    """Cloned and fitted again with its `random_state`, it predicts the same."""
    X, y = _table(estimator)
    first, second = (_output(_fit(estimator, X, y), X) for _ in range(2))
    np.testing.assert_array_equal(first, second, "two fits with one seed differ")


def check_input_is_left_alone(estimator: Any) -> None:
    """The caller's frame keeps its gaps."""
    X, y = _table(estimator)
    before = X.copy()
    _output(_fit(estimator, X, y), X)
    pd.testing.assert_frame_equal(X, before)


def check_at_home_in_scikit_learn(estimator: Any) -> None:
    """Pipelines, searches, bagging, stacking and calibration hand NaN on to it."""
    X, y = _table(estimator)
    if is_classifier(estimator):
        bagging, stacking = BaggingClassifier, StackingClassifier
    else:
        bagging, stacking = BaggingRegressor, StackingRegressor
    model = _seeded(estimator)
    hosts = [
        make_pipeline(StandardScaler(), model),
        GridSearchCV(model, {}, cv=2),
        bagging(model, n_estimators=2, random_state=0),
        stacking([("a", model), ("b", clone(model))], cv=2),
    ]
    if is_classifier(estimator):
        hosts.append(CalibratedClassifierCV(model, cv=2))
    for host in hosts:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            _assert_sane(host.fit(X, y), X)


def check_sample_weights_are_routed(estimator: Any) -> None:
    """With metadata routing, a pipeline hands the sample weights on."""
    X, y = _table(estimator)
    weight = np.where(np.asarray(y) == np.asarray(y)[0], 10.0, 0.5)
    plain = _output(_fit(estimator, X, y, sample_weight=weight), X)
    with sklearn.config_context(enable_metadata_routing=True):
        model = make_pipeline(_seeded(estimator).set_fit_request(sample_weight=True))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(X, y, sample_weight=weight)
    np.testing.assert_allclose(_output(model, X), plain, err_msg="the weights got lost")
    unweighted = _output(_fit(estimator, X, y), X)
    assert not np.allclose(unweighted, plain), "sample weights make no difference"


ESTIMATOR_CHECKS: tuple[Callable[[Any], None], ...] = (
    check_gaps_only_at_prediction,
    check_empty_rows_are_all_alike,
    check_column_without_any_value,
    check_constant_column_with_gaps,
    check_missing_in_any_spelling,
    check_columns_go_by_name,
    check_infinity_is_refused_by_name,
    check_rows_do_not_depend_on_each_other,
    check_the_same_seed_gives_the_same_model,
    check_input_is_left_alone,
    check_at_home_in_scikit_learn,
    check_sample_weights_are_routed,
)


def _table(estimator: Any) -> tuple[pd.DataFrame, pd.Series]:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(80, 4)), columns=list("abcd"))
    score = X["a"] - X["b"]
    y = (score > 0).map({True: "yes", False: "no"}) if is_classifier(estimator) else score
    return X.mask(rng.random(X.shape) < 0.25), y


def _seeded(estimator: Any) -> Any:
    model = clone(estimator)
    if "random_state" in model.get_params():
        model.set_params(random_state=0)
    return model


def _fit(estimator: Any, X: Any, y: Any, **keywords: Any) -> Any:
    with warnings.catch_warnings():  # A quick model may not have converged.
        warnings.simplefilter("ignore")
        return _seeded(estimator).fit(X, y, **keywords)


def _output(model: Any, X: Any) -> Array:
    with warnings.catch_warnings():  # Of gaps that are new to it, a model may warn.
        warnings.simplefilter("ignore")
        return np.asarray(model.predict_proba(X) if is_classifier(model) else model.predict(X))


def _assert_sane(model: Any, X: Any) -> Array:
    out = _output(model, X)
    assert len(out) == len(X), f"{len(X)} rows in, {len(out)} predictions out"
    assert np.isfinite(out).all(), "NaN or inf among the predictions"
    if is_classifier(model):
        np.testing.assert_allclose(out.sum(axis=1), 1, err_msg="probabilities do not sum to 1")
    return out
