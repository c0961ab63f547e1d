import sys
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.base import is_classifier, is_regressor
from sklearn.compose import make_column_transformer
from sklearn.decomposition import PCA
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.impute import SimpleImputer
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from promissing.compare import strategies
from promissing.compare.wrappers import AugmentedRows, LabelCodes
from promissing.estimators.mlp import NanMLPClassifier

SMALL = {"hidden_layer_sizes": (3,), "max_iter": 3}
FILLERS = [n for n in strategies.NAMES if strategies.STRATEGIES[n].family == "imputation"]


def frame(n=60, seed=0):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "whole": rng.normal(size=n),
            "age": rng.normal(50, 10, size=n),
            "city": rng.choice(["Ulm", "Bonn", "Kiel"], size=n),
        }
    )
    X.loc[rng.permutation(n)[: n // 3], "age"] = np.nan
    X["city"] = X["city"].where(rng.random(n) > 0.2, None)
    return X, (X["whole"] + rng.normal(size=n) > 0).map({True: "yes", False: "no"})


# ------------------------------------------------------------------------------- vocabulary


def test_the_names_are_pinned_down():
    names = (
        "full complete-case drop-features zero mean mean+share mean+indicator knn iterative gain "
        "promissing mpromissing fpromissing hgb lightgbm xgboost catboost"
    )
    assert " ".join(strategies.NAMES) == names
    assert set(strategies.available()) <= set(strategies.NAMES)


def test_an_unknown_name_gets_the_nearest():
    with pytest.raises(ValueError, match=r"no strategy 'promising'. Did you mean 'promissing'"):
        strategies.check(["mean", "promising"])


def test_a_package_that_is_not_installed_is_named(monkeypatch):
    monkeypatch.setattr(strategies, "find_spec", lambda name: None if name == "catboost" else 1)
    with pytest.raises(ImportError, match=r"'catboost' needs catboost: pip install"):
        strategies.make("catboost", "regression")
    assert "catboost" not in strategies.available()


def test_an_unknown_task_is_refused():
    with pytest.raises(ValueError, match="`task` must be one of"):
        strategies.make("mean", "clustering")


def test_what_fills_nothing_has_no_imputer():
    with pytest.raises(ValueError, match="'promissing' has no imputer"):
        strategies.imputer("promissing")


# --------------------------------------------------------------------------------- pipelines


@pytest.mark.parametrize("name", [n for n in strategies.NAMES if n not in ("full", "gain")])
def test_every_strategy_takes_a_frame_with_gaps(name):
    if name not in strategies.available():
        pytest.skip(f"{strategies.STRATEGIES[name].package} is not installed")
    X, y = frame()
    before = X.copy()
    model = strategies.make(name, "classification", settings=SMALL, random_state=0)
    assert is_classifier(model)
    proba = model.fit(X, y).predict_proba(X)
    assert proba.shape == (60, 2)
    np.testing.assert_allclose(proba.sum(axis=1), 1, atol=1e-6)
    assert set(model.predict(X)) <= {"yes", "no"}
    assert list(model.classes_) == ["no", "yes"]
    pd.testing.assert_frame_equal(X, before)
    again = strategies.make(name, "classification", settings=SMALL, random_state=0).fit(X, y)
    np.testing.assert_array_equal(again.predict_proba(X), proba)


@pytest.mark.parametrize("name", ["complete-case", "drop-features", "mean", "fpromissing", "hgb"])
def test_regression(name):
    X, _ = frame()
    y = X["whole"].to_numpy()
    model = strategies.make(name, "regression", settings=SMALL, random_state=0)
    assert is_regressor(model)
    assert np.isfinite(model.fit(X, y).predict(X)).all()


@pytest.mark.parametrize("modalities", [None, {"body": ["whole", "age"], "place": ["city"]}])
def test_gain_names_the_columns_it_warns_of(modalities):
    X, y = frame()
    settings = {"max_iter": 2} if modalities else SMALL
    model = strategies.make(
        "gain", "classification", settings=settings, modalities=modalities, random_state=0
    )
    model.set_params(**{"imputer__n_steps" if modalities else "gainimputer__n_steps": 10}).fit(X, y)
    with pytest.warns(UserWarning, match="none in training: column 'whole'"):
        model.predict(X.assign(whole=np.nan))


def test_gain_stands_in_its_pipeline():
    _, fill, model = strategies.make("gain", "classification", settings=SMALL, random_state=3)
    assert type(fill).__name__ == "GAINImputer"
    assert fill.random_state == 3
    assert isinstance(model, NanMLPClassifier)


def test_full_is_the_network_on_whole_data_and_refuses_gaps():
    X, y = frame()
    model = strategies.make("full", "classification", settings=SMALL, random_state=0)
    assert model.fit(X[["whole"]], y).predict(X[["whole"]]).shape == (60,)
    with pytest.raises(ValueError, match='"full" is the reference .* has .* missing values'):
        model.fit(X, y)


def test_zero_fills_a_zero_in_the_columns_own_units():
    X, _ = frame()
    raw, fill, _ = strategies.make("zero", "classification", settings=SMALL)
    filled = fill.fit_transform(raw.fit_transform(X))
    lost = X["age"].isna().to_numpy()
    assert (filled[lost, 1] == 0).all()
    np.testing.assert_array_equal(filled[~lost, 1], X["age"][~lost])


def test_complete_case_needs_complete_cases():
    X, y = frame()
    X["whole"] = np.nan
    with pytest.raises(ValueError, match="complete-case has nothing to learn from: each of the 60"):
        strategies.make("complete-case", "classification", settings=SMALL).fit(X, y)
    X["whole"] = np.where(y == "yes", np.nan, 1.0)
    with pytest.raises(ValueError, match="complete-case loses every row of class yes"):
        strategies.make("complete-case", "classification", settings=SMALL).fit(X, y)


def test_drop_features_with_nothing_left_predicts_the_prior():
    X, y = frame()
    X = X[["age", "city"]]
    model = strategies.make("drop-features", "classification", settings=SMALL).fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], (y == "yes").mean())
    target = np.arange(60.0)
    model = strategies.make("drop-features", "regression", settings=SMALL).fit(X, target)
    np.testing.assert_allclose(model.predict(X), target.mean())


def test_catboost_is_told_which_columns_are_text(monkeypatch):
    told = {}

    class CatBoostClassifier:
        def __init__(self, **options):
            self.options = options

        def get_params(self, deep=True):
            return self.options

        def fit(self, X, y, cat_features):
            told.update(X=X, cat_features=cat_features)
            self.classes_ = np.unique(y)
            return self

    monkeypatch.setattr(strategies, "find_spec", lambda name: 1)
    fake = SimpleNamespace(CatBoostClassifier=CatBoostClassifier)
    monkeypatch.setitem(sys.modules, "catboost", fake)
    X, y = frame()
    strategies.make("catboost", "classification", random_state=1).fit(X, y)
    assert told["cat_features"] == ["2"]
    assert "missing" in set(told["X"]["2"])
    assert told["X"]["1"].isna().any()


def test_a_model_that_takes_only_codes_gets_codes_and_labels_come_back():
    class Codes(HistGradientBoostingClassifier):
        def fit(self, X, y):
            assert set(np.unique(y)) == {0, 1}
            return super().fit(X, y)

    X, y = frame()
    model = LabelCodes(Codes(max_iter=2)).fit(X[["whole"]], y)
    assert set(model.predict(X[["whole"]])) <= {"yes", "no"}
    assert list(model.classes_) == ["no", "yes"]


@pytest.mark.parametrize("name", [n for n in FILLERS if n != "gain"])
def test_imputers_keep_a_column_never_observed(name):
    X = np.array([[1.0, np.nan], [2.0, np.nan], [np.nan, np.nan], [4.0, np.nan]])
    filled = strategies.imputer(name, random_state=0).fit_transform(X)
    assert not np.isnan(filled).any()
    assert filled.shape[1] >= 2
    assert (filled[:, 1] == 0).all()


# ---------------------------------------------------------------------------------- matrices


def table(seed=0):
    rng = np.random.default_rng(seed)
    X, new = rng.normal(size=(40, 3)), rng.normal(size=(10, 3))
    X[::4, 1], new[::2, 1] = np.nan, np.nan
    return X, new


@pytest.mark.parametrize("name", [n for n in FILLERS if n != "gain"])
def test_prepare_fills_as_the_imputer_does(name):
    X, new = table()
    ready = strategies.prepare(name, X, [new], random_state=0)
    fill = strategies.imputer(name, random_state=0)
    np.testing.assert_array_equal(ready.train, fill.fit_transform(X))
    np.testing.assert_array_equal(ready.others[0], fill.transform(new))
    assert len(ready.rows) == 40


@pytest.mark.parametrize("name", ["promissing", "mpromissing", "fpromissing"])
def test_prepare_leaves_gaps_to_those_that_take_them(name):
    X, new = table()
    ready = strategies.prepare(name, X, [new])
    assert ready.train is X
    assert ready.others[0] is new


def test_prepare_by_deletion():
    X, new = table()
    ready = strategies.prepare("complete-case", X, [new])
    np.testing.assert_array_equal(ready.rows, np.flatnonzero(~np.isnan(X).any(axis=1)))
    assert (ready.others[0][::2, 1] == np.nanmean(X[:, 1])).all()
    ready = strategies.prepare("drop-features", X, [new])
    np.testing.assert_array_equal(ready.train, X[:, [0, 2]])
    assert ready.others[0].shape == (10, 2)
    assert strategies.prepare("drop-features", X[:, [1]], [new[:, [1]]]).train.shape == (40, 0)


@pytest.mark.parametrize("name", ["mean+indicator", "iterative", "drop-features", "promissing"])
def test_fine_bins_depend_on_what_is_asked_and_not_on_what_filling_makes(name):
    def network(model):
        last = model[-1] if hasattr(model, "steps") else model
        return getattr(last, "estimator", last)

    assert network(strategies.make(name, "classification")).n_fine_bins == 0
    asked = strategies.make(name, "classification", settings={"n_fine_bins": "auto"})
    assert network(asked).n_fine_bins == "auto"


# ------------------------------------------------------------------------------ strategies of users


def trees(task, random_state):
    return HistGradientBoostingRegressor(max_iter=3, random_state=random_state)


@pytest.fixture
def registered():
    yield strategies.register("few-trees", trees, title="few trees", family="trees")
    if "few-trees" in strategies.STRATEGIES:
        strategies.unregister("few-trees")


def test_a_registered_strategy_is_made_by_name_with_the_seed(registered):
    assert registered.family == "trees"
    assert strategies.available()[-1] == "few-trees"
    assert strategies.known("few-trees") == ("few-trees",)
    assert strategies.make("few-trees", "regression", random_state=7).random_state == 7
    X = np.array([[1.0, np.nan]])
    assert strategies.prepare("few-trees", X, []).train is X
    with pytest.raises(ValueError, match="'few-trees' has no imputer"):
        strategies.imputer("few-trees")


def test_a_name_is_registered_once_and_can_be_removed(registered):
    with pytest.raises(ValueError, match=r"already a strategy 'few-trees'.*unregister"):
        strategies.register("few-trees", trees)
    with pytest.raises(ValueError, match="already a strategy 'mean'"):
        strategies.register("mean", trees)
    strategies.unregister("few-trees")
    with pytest.raises(ValueError, match="no strategy 'few-trees'"):
        strategies.make("few-trees", "regression")
    with pytest.raises(ValueError, match="'mean' is part of the package"):
        strategies.unregister("mean")


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"name": ""}, ValueError, "`name` must be a non-empty text"),
        ({"factory": HistGradientBoostingRegressor()}, TypeError, "`factory` must be a function"),
        ({"family": "magic"}, ValueError, "`family` must be one of"),
    ],
)
def test_what_cannot_be_registered(arguments, error, message):
    with pytest.raises(error, match=message):
        strategies.register(**{"name": "mine", "factory": trees, **arguments})
    assert "mine" not in strategies.STRATEGIES


@pytest.mark.parametrize(
    ("made", "error", "message"),
    [
        (None, TypeError, "'mine' must be an estimator or pipeline with `fit` and `predict`"),
        (Ridge, TypeError, "must be an estimator or pipeline"),
        (StandardScaler(), TypeError, "must be an estimator or pipeline"),
        (Ridge(), ValueError, "'mine' cannot take missing values: Ridge does not accept NaN"),
        (make_pipeline("passthrough", PCA(), Ridge()), ValueError, "PCA does not accept NaN"),
    ],
)
def test_an_estimator_that_cannot_take_missing_values_is_refused(made, error, message):
    strategies.register("mine", lambda task, random_state: made)
    try:
        with pytest.raises(error, match=message):
            strategies.make("mine", "regression")
    finally:
        strategies.unregister("mine")


@pytest.mark.parametrize(
    "estimator",
    [
        make_pipeline(SimpleImputer(), Ridge()),
        GridSearchCV(make_pipeline(SimpleImputer(), Ridge()), {"ridge__alpha": [1.0]}),
        make_pipeline(make_column_transformer((SimpleImputer(), [0])), Ridge()),
        make_pipeline(FunctionTransformer(np.nan_to_num), Ridge()),
    ],
)
def test_compositions_that_take_missing_values_are_accepted(estimator):
    assert strategies.validate_estimator("mine", estimator) is estimator


def test_a_registered_package_that_is_not_installed_is_named():
    strategies.register("mine", trees, package="not_there")
    try:
        with pytest.raises(ImportError, match="needs not_there: pip install not_there"):
            strategies.check("mine")
    finally:
        strategies.unregister("mine")


def test_old_names_work_with_a_warning():
    with pytest.warns(FutureWarning, match="`network` is now `settings`"):
        model = strategies.make("promissing", "classification", network=SMALL)
    assert model.max_iter == SMALL["max_iter"]
    with pytest.warns(FutureWarning, match=r"is now `Strategy.description`"):
        assert strategies.STRATEGIES["zero"].what == "Impute 0."


@pytest.mark.parametrize("network", [True, False])
def test_rows_are_copied_with_fewer_values_for_training(network):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(200, 3)), columns=list("abc"))
    y = np.where(X["a"] > 0, "yes", "no")
    plain = HistGradientBoostingClassifier(max_iter=20, random_state=0)
    if network:
        plain = NanMLPClassifier(n_members=1, max_iter=20, early_stopping=True, random_state=0)
    made = AugmentedRows(plain, copies=3, empty=0.5, random_state=0).fit(X, y)
    share = (y == "yes").mean()
    empty = X[:1] * np.nan
    assert made.predict_proba(empty)[0, 1] == pytest.approx(share, abs=0.1)
    assert (made.predict(X) == y).mean() > 0.85
    with pytest.raises(ValueError, match="copies"):
        AugmentedRows(plain, copies=1).fit(X, y)
