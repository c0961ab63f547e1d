import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import (
    check_dataframe_column_names_consistency,
    check_set_output_transform,
    check_set_output_transform_pandas,
    check_transformer_get_feature_names_out,
    check_transformer_get_feature_names_out_pandas,
    parametrize_with_checks,
)

from promissing import Pruner, _formula

ESTIMATORS = [Pruner(), Pruner("feature")]


@parametrize_with_checks(ESTIMATORS)
def test_scikit_learn(estimator, check):
    check(estimator)


# The check itself mixes frames and bare arrays.
@pytest.mark.filterwarnings(
    "ignore:X (has|does not have valid) feature names:UserWarning:sklearn.*"
)
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=str)
@pytest.mark.parametrize(
    "check",
    [
        check_dataframe_column_names_consistency,
        check_set_output_transform,
        check_set_output_transform_pandas,
        check_transformer_get_feature_names_out,
        check_transformer_get_feature_names_out_pandas,
    ],
)
def test_scikit_learn_names(estimator, check):
    check("Pruner", estimator)


@pytest.fixture
def x():
    rng = np.random.default_rng(0)
    return np.where(rng.random((300, 4)) < 0.3, np.nan, rng.normal(size=(300, 4)))


def test_a_linear_model_on_it_is_an_mpromissing_neuron(x):
    """The identity: a biased dense layer on [x0, r/p] whose extra weight is w_c - b."""
    y = np.random.default_rng(1).normal(size=300)
    model = LinearRegression().fit(Pruner().fit_transform(x), y)
    kernel, bias = model.coef_[:4, None], np.array([model.intercept_])
    compensation = model.coef_[4:] + bias
    rule = _formula.COMPENSATIONS["shared"]
    neuron = _formula.activation(x, kernel, bias, compensation, _formula.Layout(4), rule, xp=np)[
        :, 0
    ]
    np.testing.assert_allclose(neuron, model.predict(Pruner().fit_transform(x)))


def test_a_linear_model_on_absences_is_a_neuron_with_a_compensation_per_feature(x):
    y = np.random.default_rng(1).normal(size=300)
    pruned = Pruner("feature").fit_transform(x)
    model = LinearRegression().fit(pruned, y)
    kernel, bias = model.coef_[:4, None], np.array([model.intercept_])
    compensation = model.coef_[4:, None] + bias / 4
    rule = _formula.COMPENSATIONS["feature"]
    neuron = _formula.activation(x, kernel, bias, compensation, _formula.Layout(4), rule, xp=np)[
        :, 0
    ]
    np.testing.assert_allclose(neuron, model.predict(pruned))


def test_gives_a_pipeline_that_takes_nan(x):
    y = np.nan_to_num(x).sum(axis=1) > 0
    model = make_pipeline(StandardScaler(), Pruner(), LogisticRegression()).fit(x, y)
    assert model.score(x, y) > 0.9


def test_names():
    frame = pd.DataFrame({"age": [1.0, np.nan], "dose": [np.nan, np.nan]})
    shared = Pruner().set_output(transform="pandas").fit_transform(frame)
    assert list(shared) == ["age", "dose", "share_missing"]
    assert shared["share_missing"].tolist() == [0.5, 1.0]
    assert list(Pruner("feature").fit(frame).get_feature_names_out()) == [
        "age",
        "dose",
        "absent_age",
        "absent_dose",
    ]
    grouped = Pruner("feature", groups=[0, 0]).fit(frame)
    assert list(grouped.get_feature_names_out()) == ["age", "dose", "absent_group0"]


def test_shares_weigh_the_missing():
    pruned = Pruner(shares=[0.9, 0.1]).fit_transform([[np.nan, 1.0], [1.0, np.nan]])
    np.testing.assert_allclose(pruned[:, -1], [0.9, 0.1])


def test_float32_stays_float32(x):
    for pruner in (Pruner(), Pruner(shares=[0.1, 0.2, 0.3, 0.4]), Pruner("feature")):
        assert pruner.fit_transform(x.astype(np.float32)).dtype == np.float32


def test_bad_arguments(x):
    with pytest.raises(ValueError, match='must be "shared" or "feature". Received: \'none\''):
        Pruner("none").fit(x)
    with pytest.raises(ValueError, match="each of the 4 columns. Received: 2"):
        Pruner(groups=[0, 1]).fit(x)
    with pytest.raises(ValueError, match="infinity"):
        Pruner().fit([[np.inf, 1.0]])
