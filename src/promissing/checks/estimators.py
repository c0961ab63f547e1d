"""The contract of an estimator: what scikit-learn's own checks leave open about NaN.

Every check takes an estimator that is not fitted, clones it and fits it to a small table. The
assertion errors say what is wrong.
"""

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
    """Run every check of `ESTIMATOR_CHECKS` on an estimator.

    Parameters
    ----------
    estimator : classifier or regressor
        The estimator, not fitted. It is cloned. Choose parameters with which it fits quickly.

    Raises
    ------
    AssertionError
        At the first check that fails, with the name of the check.

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
    """A model fitted to complete rows predicts rows with missing values. It may warn."""
    X, y = _table(estimator)
    _valid_output(_fit(estimator, X.fillna(0.5), y), X)


def check_empty_rows_are_all_alike(estimator: Any) -> None:
    """All rows without any known value get the same valid prediction."""
    model, X, _ = _fitted(estimator)
    out = _valid_output(model, pd.DataFrame(np.nan, index=range(3), columns=X.columns))
    np.testing.assert_allclose(out, out[[0, 0, 0]], err_msg="empty rows differ")


def check_column_without_any_value(estimator: Any) -> None:
    """A column that is empty in training is accepted and has no effect at prediction."""
    X, y = _table(estimator)
    X = X.assign(void=np.nan)
    model = _fit(estimator, X, y)
    out = _valid_output(model, X)
    again = _output(model, X.assign(void=3.0))
    np.testing.assert_allclose(again, out, err_msg="a column never seen in training matters")


def check_constant_column_with_gaps(estimator: Any) -> None:
    """A constant column with missing values, whose standard deviation is zero, is accepted."""
    X, y = _table(estimator)
    X = X.assign(constant=np.where(np.arange(len(X)) % 3 == 0, np.nan, 7.0))
    _valid_output(_fit(estimator, X, y), X)


def check_missing_in_any_spelling(estimator: Any) -> None:
    """NaN, None, pd.NA, nullable dtypes and object columns give the same predictions."""
    model, X, y = _fitted(estimator)
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
    """Reordered columns and absent columns raise an error; absent ones are named."""
    model, X, _ = _fitted(estimator)
    for frame, what in ((X[X.columns[::-1]], "reordered"), (X.drop(columns="b"), "absent")):
        try:
            _output(model, frame)
        except ValueError as error:
            assert what == "reordered" or "b" in str(error), f"{what}: no name in {error}"
        else:
            raise AssertionError(f"{what} columns were accepted")


def check_infinity_is_refused_by_name(estimator: Any) -> None:
    """Infinity is neither a number nor missing, so it raises an error that names the column."""
    model, X, y = _fitted(estimator)
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
    """A row with missing values gets the same prediction alone and in a table."""
    model, X, _ = _fitted(estimator)
    whole = _output(model, X)
    parts = np.concatenate([_output(model, X.iloc[i : i + 1]) for i in range(12)])
    np.testing.assert_allclose(parts, whole[:12], atol=1e-7, err_msg="a row depends on others")


def check_the_same_seed_gives_the_same_model(estimator: Any) -> None:
    """Two fits with the same `random_state` give the same predictions."""
    X, y = _table(estimator)
    first, second = (_output(_fit(estimator, X, y), X) for _ in range(2))
    np.testing.assert_array_equal(first, second, "two fits with one seed differ")


def check_input_is_left_alone(estimator: Any) -> None:
    """Neither `fit` nor prediction changes the caller's table."""
    X, y = _table(estimator)
    before = X.copy()
    _output(_fit(estimator, X, y), X)
    pd.testing.assert_frame_equal(X, before)


def check_works_inside_scikit_learn(estimator: Any) -> None:
    """Pipelines, searches, bagging, stacking and calibration pass NaN on to the estimator."""
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
        with warnings.catch_warnings(action="ignore"):
            host.fit(X, y)
        _valid_output(host, X)


def check_sample_weights_are_routed(estimator: Any) -> None:
    """With metadata routing, a pipeline passes the sample weights on, and they have an effect."""
    X, y = _table(estimator)
    weight = np.where(np.asarray(y) == np.asarray(y)[0], 10.0, 0.5)
    plain = _output(_fit(estimator, X, y, sample_weight=weight), X)
    with sklearn.config_context(enable_metadata_routing=True):
        model = make_pipeline(_seeded(estimator).set_fit_request(sample_weight=True))
        with warnings.catch_warnings(action="ignore"):
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
    check_works_inside_scikit_learn,
    check_sample_weights_are_routed,
)


def _table(estimator: Any) -> tuple[pd.DataFrame, pd.Series]:
    """Return a table with a quarter of its values missing, and a target for the estimator."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(80, 4)), columns=list("abcd"))
    score = X["a"] - X["b"]
    y = (score > 0).map({True: "yes", False: "no"}) if is_classifier(estimator) else score
    return X.mask(rng.random(X.shape) < 0.25), y


def _seeded(estimator: Any) -> Any:
    """Return a clone with a fixed `random_state`."""
    model = clone(estimator)
    if "random_state" in model.get_params():
        model.set_params(random_state=0)
    return model


def _fit(estimator: Any, X: Any, y: Any, **keywords: Any) -> Any:
    """Fit a clone. A quick model may warn that it has not converged."""
    with warnings.catch_warnings(action="ignore"):
        return _seeded(estimator).fit(X, y, **keywords)


def _fitted(estimator: Any) -> tuple[Any, pd.DataFrame, pd.Series]:
    """Return a clone fitted to the table with missing values, the table and its target."""
    X, y = _table(estimator)
    return _fit(estimator, X, y), X, y


def _output(model: Any, X: Any) -> Array:
    """Return probabilities or predictions. A model may warn about new missing values."""
    with warnings.catch_warnings(action="ignore"):
        return np.asarray(model.predict_proba(X) if is_classifier(model) else model.predict(X))


def _valid_output(model: Any, X: Any) -> Array:
    """Return the output if it has one finite prediction per row; probabilities sum to 1."""
    out = _output(model, X)
    assert len(out) == len(X), f"{len(X)} rows in, {len(out)} predictions out"
    assert np.isfinite(out).all(), "NaN or inf among the predictions"
    if is_classifier(model):
        np.testing.assert_allclose(out.sum(axis=1), 1, err_msg="probabilities do not sum to 1")
    return out
