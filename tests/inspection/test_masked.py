"""Models and tables of all kinds, blocks of rows, and bad input, for all functions."""

import pickle
from copy import deepcopy

import numpy as np
import pandas as pd
import polars as pl
import pytest
from masked_models import GROUPS, NAN, Network, Sums, numbers, without
from numpy.testing import assert_allclose, assert_array_equal
from plain import classifier, regressor
from sklearn.compose import make_column_transformer
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
)
from sklearn.exceptions import NotFittedError
from sklearn.impute import KNNImputer, SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

from promissing.inspection import (
    importance,
    information_loss,
    masked,
    shapley,
    smallest_change,
    what_if,
)


def patients(n=80):
    """Every kind of column, and an outcome that depends on them."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "age": rng.integers(20, 80, n),
            "dose": rng.normal(size=n).astype(np.float32),
            "visits": pd.array(rng.integers(0, 5, n), dtype="Int64"),
            "smoker": rng.random(n) < 0.5,
            "city": pd.Categorical(rng.choice(["Ulm", "Bonn", "Kiel"], n)),
        },
        index=[f"patient {i}" for i in range(n)],
    )
    risk = frame["age"] / 20 + frame["dose"] + 2 * frame["smoker"] + (frame["city"] == "Ulm")
    y = np.where(risk > risk.median(), "ill", "well")
    frame.loc[frame.index[::7], "dose"] = NAN
    frame.loc[frame.index[::9], "visits"] = pd.NA
    frame.loc[frame.index[::5], "city"] = NAN
    return frame, y


MODALITIES = {"body": ["age", "smoker"], "drug": ["dose", "visits"], "place": ["city"]}


@pytest.fixture(scope="module")
def ours():
    frame, y = patients()
    model = classifier((8,), max_iter=20, augment=True, random_state=0)
    return model.fit(frame, y)


def gradient_boosting():
    return HistGradientBoostingClassifier(max_iter=10, random_state=0)


def imputing():
    number = make_pipeline(SimpleImputer(), StandardScaler())
    text = make_pipeline(
        SimpleImputer(strategy="most_frequent"), OneHotEncoder(handle_unknown="ignore")
    )
    columns = make_column_transformer(
        (number, ["age", "dose", "visits", "smoker"]), (text, ["city"])
    )
    return make_pipeline(columns, LogisticRegression())


@pytest.mark.parametrize("name", ["ours", "boosting", "imputing"])
def test_every_model_that_predicts_from_gaps_can_be_explained(name, request):
    frame, y = patients()
    if name == "ours":
        model = request.getfixturevalue("ours")
    else:
        model = {"boosting": gradient_boosting, "imputing": imputing}[name]().fit(frame, y)
    before = pickle.dumps(frame)
    result = what_if(model, frame, groups=MODALITIES)
    assert_allclose(result.prediction, model.predict_proba(frame)[:, 1], atol=1e-12)
    gone = frame.copy()
    gone["city"] = gone["city"].mask(gone["city"].notna())
    expected = model.predict_proba(gone)[:, 1] - model.predict_proba(frame)[:, 1]
    assert_allclose(result.effects[:, 2], expected, atol=1e-12)
    assert np.abs(result.effects).max() > 0.05

    shares = shapley(model, frame[:10], groups=MODALITIES)
    assert_allclose(shares.values.sum(axis=1), shares.prediction - shares.nothing, atol=1e-12)
    paths = information_loss(model, frame[:5], MODALITIES, orders=4, random_state=0)
    assert_allclose(paths.predictions[:, :, 3], paths.predictions[0, 0, 3])
    assert len(smallest_change(model, frame[:5], groups=MODALITIES).sets) == 5
    assert pickle.dumps(frame) == before


def test_our_models_know_their_prior(ours):
    frame, _ = patients()
    paths = information_loss(ours, frame[:5], MODALITIES, orders=4, random_state=0)
    assert paths.prior == ours.prior_[1]
    wrapped = make_pipeline(FunctionTransformer(), ours)
    assert information_loss(wrapped, frame[:2], MODALITIES, orders=1).prior == ours.prior_[1]


class Spy:
    """Predicts anything, and remembers the tables it saw."""

    def __init__(self):
        self.seen = []

    def predict(self, X):
        self.seen.append(X)
        return np.zeros(len(X))


def test_frames_stay_frames_and_dtypes_change_only_where_a_gap_demands_it():
    frame, _ = patients()
    frame["note"], frame["seen"] = "text", pd.Timestamp("2024-01-01")
    frame["kept"] = 1  # In no group: never unknown.
    spy = Spy()
    what_if(spy, frame, groups={"all": [name for name in frame if name != "kept"]})
    seen = spy.seen[-1]
    assert type(seen) is pd.DataFrame
    assert seen.columns.tolist() == frame.columns.tolist()
    changed = {"age": "float64", "smoker": "boolean"}
    for name, dtype in frame.dtypes.items():
        assert seen[name].dtype == changed.get(name, dtype)
    assert seen.drop(columns="kept").isna().all(axis=None)
    assert seen["kept"].tolist() == [1] * len(frame)


def test_columns_without_text_names_go_by_position():
    frame = pd.DataFrame(numbers(), columns=[2020, 2021, 2022, 2023])
    spy = Spy()
    assert what_if(spy, frame).groups == (0, 1, 2, 3)
    assert spy.seen[-1].columns.tolist() == [2020, 2021, 2022, 2023]


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "bool", "object", "M8[s]"])
def test_arrays_stay_arrays(dtype):
    x = (numbers() * 10).astype("int64").astype(dtype)
    spy, before = Spy(), x.copy()
    what_if(spy, x)
    seen = spy.seen[-1]
    assert type(seen) is np.ndarray
    assert seen.dtype == {"int64": "float64", "bool": "float64"}.get(dtype, dtype)
    assert pd.isna(seen).sum() == len(seen)
    assert_array_equal(x, before)


def test_every_kind_of_table_gives_the_same_answer(ours):
    frame, _ = patients()
    expected = what_if(ours, frame, groups=MODALITIES)
    polars = pl.from_pandas(frame.reset_index(drop=True))
    before = polars.clone()
    result = what_if(ours, polars, groups=MODALITIES)
    assert_allclose(result.effects, expected.effects, atol=1e-12)
    assert_array_equal(result.kinds, expected.kinds)
    assert polars.equals(before)
    spy = Spy()
    what_if(spy, polars)
    assert type(spy.seen[-1]) is pl.DataFrame
    assert spy.seen[-1].schema == polars.schema

    model, x = Network(), numbers(gaps=0.2)
    expected = what_if(model, x).effects
    assert_allclose(what_if(model, x.tolist()).effects, expected)
    assert_allclose(what_if(model, pd.DataFrame(x)).effects, expected)
    assert_allclose(what_if(model, np.ma.masked_invalid(x)).effects, expected)


def test_nullable_and_text_columns():
    frame = pd.DataFrame(
        {
            "n": pd.array([1, 2, None] * 10, dtype="Int64"),
            "b": pd.array([True, None, False] * 10, dtype="boolean"),
            "s": pd.array(["x", "y", None] * 10, dtype="string"),
            "t": ["u", "v", "w"] * 10,
        }
    )
    columns = make_column_transformer((SimpleImputer(), ["n"]), remainder="drop")
    model = make_pipeline(columns, LogisticRegression()).fit(frame, [0, 1, 0] * 10)
    assert what_if(model, frame).effects.any(axis=0).tolist() == [True, False, False, False]
    spy = Spy()
    what_if(spy, frame)
    assert spy.seen[-1].dtypes.tolist() == frame.dtypes.tolist()


def test_the_modalities_of_a_fusion_model():
    model, x = Network(), numbers()
    model.modalities_ = GROUPS
    assert what_if(model, x).groups == (0, 1, 2, 3)
    assert what_if(model, x, groups="modalities").groups == tuple(GROUPS)
    with pytest.raises(ValueError, match='`groups="modalities"` .* and Network has none'):
        what_if(Network(), x, groups="modalities")
    with pytest.raises(ValueError, match="a mapping, \"modalities\" or None. Received: 'modes'"):
        what_if(model, x, groups="modes")


# ---- the explained class


@pytest.mark.parametrize("positive", [None, "a", "b"])
def test_prediction_is_the_probability_of_the_same_class_in_every_function(positive):
    model, x = Network(), numbers(6)
    column = 0 if positive == "a" else 1
    expected = model.predict_proba(x)[:, column]
    for explain in (what_if, smallest_change, shapley):
        result = explain(model, x, positive=positive)
        assert_allclose(result.prediction, expected)
        assert set(result.explained) == set(result.to_frame()["class"]) == {"ab"[column]}
    lost = information_loss(model, x, orders=2, positive=positive, prior=[0.3, 0.7])
    assert_allclose(lost.predictions[0, :, 0], expected)
    assert lost.explained == "ab"[column]
    assert lost.prior == [0.3, 0.7][column]
    assert set(lost.to_frame()["class"]) == {"ab"[column]}


def test_of_several_classes_the_same_probability_is_given_by_every_function():
    model, x = Network(n_outputs=3), numbers(6)
    for target in (None, "c"):
        why, smallest = (f(model, x, target=target) for f in (what_if, smallest_change))
        assert_allclose(why.prediction, smallest.prediction)
        assert_array_equal(why.explained, smallest.explained)
        assert why.positive is None


@pytest.mark.parametrize("explain", [what_if, smallest_change, shapley, information_loss])
def test_a_positive_class_that_does_not_fit(explain):
    x = numbers(4)
    with pytest.raises(ValueError, match=r"`positive` must be one of the classes \['a', 'b'\]"):
        explain(Network(), x, positive="c")
    with pytest.raises(ValueError, match="has more than two classes. Received: 'a'"):
        explain(Network(n_outputs=3), x, positive="a")
    with pytest.raises(ValueError, match="name different classes"):
        explain(Network(), x, positive="a", target="b")
    if explain is not smallest_change:
        with pytest.raises(ValueError, match="predicts a number. Received: 'a'"):
            explain(Network(n_outputs=1), x, positive="a")


# ---- blocks of rows


def test_the_model_is_asked_once_for_a_block(monkeypatch):
    model, x = Network(), numbers(50)
    expected = what_if(model, x).effects
    assert len(model.asked) == 3  # The table, a few rows to try, and one block.
    monkeypatch.setattr(masked, "_BLOCK_CELLS", 4 * 60)
    model.asked.clear()
    assert_allclose(what_if(model, x).effects, expected, atol=1e-15)
    assert [len(table) for table in model.asked[2:]] == [60, 60, 60, 20]


@pytest.mark.parametrize("ask", [what_if, shapley, smallest_change, information_loss])
def test_blocks_do_not_change_the_answers(ask, monkeypatch):
    model, x = Network(5), numbers(7, 5, gaps=0.2)
    how = {"random_state": 0, "orders": 20} if ask is information_loss else {}
    one = ask(model, x, **how)
    monkeypatch.setattr(masked, "_BLOCK_CELLS", 5 * 3)  # Fewer rows than one row has questions.
    model.asked.clear()
    many = ask(model, x, **how)
    assert max(len(table) for table in model.asked[2:]) == 3
    pd.testing.assert_frame_equal(one.to_frame(), many.to_frame())


# ---- bad input

FRAME = pd.DataFrame(numbers(), columns=["age", "dose", "weight", "height"])


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ({"body": ["ages"]}, r"`groups\['body'\]` names column 'ages'.*Did you mean 'age'"),
        ({"body": [4]}, r"`groups\['body'\]` names column 4, which is not one of the 4 columns"),
        ({"a": ["age"], "b": ["dose", 0]}, "column 'age' is in 'a' and 'b'. A column can be in"),
        ({"a": ["age", "age"]}, "column 'age' is in 'a', twice"),
        ({"a": ["age"], "b": []}, r"`groups\['b'\]` has no columns"),
        ({}, "`groups` must be a mapping with at least one group. Received: {}"),
        (["age"], r"`groups` must be a mapping with at least one group. Received: \['age'\]"),
    ],
)
@pytest.mark.parametrize("ask", [what_if, shapley, smallest_change, information_loss])
def test_bad_groups(ask, groups, message):
    with pytest.raises(ValueError, match=message):
        ask(Network(), FRAME, groups=groups)


def test_a_model_that_cannot_take_nan():
    x = numbers(20)
    model = LogisticRegression().fit(x, x[:, 0] > 0)
    message = (
        r"(?s)LogisticRegression cannot predict where values are missing.*"
        r"the error was: Input X contains NaN.*make_pipeline\(SimpleImputer\(\), model\)"
    )
    with pytest.raises(ValueError, match=message) as caught:
        what_if(model, x)
    assert "Input X contains NaN" in str(caught.value.__cause__)
    with pytest.raises(ValueError, match=message):
        shapley(model, without(x, [1]))  # With gaps in it already.
    pipeline = make_pipeline(FunctionTransformer(), model)
    name = r"Pipeline \(FunctionTransformer, LogisticRegression\) cannot predict"
    with pytest.raises(ValueError, match=name):
        information_loss(pipeline, x)


def test_a_model_that_predicts_nan():
    class Naive:
        def predict(self, X):
            return np.asarray(X).sum(axis=1)

    with pytest.raises(ValueError, match="Naive cannot predict where .*; it predicts NaN"):
        what_if(Naive(), numbers())


def test_errors_that_have_nothing_to_do_with_gaps_are_the_models_own():
    x = numbers(20)
    model = make_pipeline(SimpleImputer(), LogisticRegression())
    with pytest.raises(NotFittedError):
        what_if(model, x)
    model.fit(x, x[:, 0] > 0)
    with pytest.raises(ValueError, match="^X has 3 features, but SimpleImputer is expecting 4"):
        what_if(model, x[:, :3])


def test_a_model_that_depends_on_dtypes():
    """As text, 1 is "1" and 1.0 is "1.0"."""
    frame = pd.DataFrame({"code": [1, 2, 3] * 10})
    text = FunctionTransformer(lambda X: X.astype(str))
    encode = OneHotEncoder(handle_unknown="ignore")
    model = make_pipeline(text, encode, LogisticRegression()).fit(frame, [0, 1, 1] * 10)
    with pytest.raises(ValueError, match="predictions of .* change when columns get a dtype"):
        what_if(model, frame)


def test_models_with_several_targets_or_no_probabilities():
    x = numbers(30)
    y = np.column_stack([x[:, 0] > 0, x[:, 1] > 0]).astype(int)
    message = "must predict one target: a class, or a number, for every row"
    forest = RandomForestClassifier(2, random_state=0).fit(x, y)
    with pytest.raises(ValueError, match=f"RandomForestClassifier {message}"):
        what_if(forest, x)

    class Labels(Network):
        def probabilities(self, X):
            return np.full((len(X), 2), 0.7)

    with pytest.raises(ValueError, match=f"Labels {message}"):
        what_if(Labels(), x)

    class Silent:
        classes_ = np.array([0, 1])

    expected = "must have predict_proba or decision_function; Silent has neither"
    with pytest.raises(TypeError, match=expected):
        what_if(Silent(), x)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m, x: what_if(m, x, target="c"), r"of the classes \['a', 'b'\]. Received: 'c'"),
        (lambda m, x: shapley(m, x, n_samples=5), "`n_samples` must be an even number >= 4"),
        (lambda m, x: shapley(m, x, n_samples=2), "an even number >= 4. Received: 2"),
        (lambda m, x: information_loss(m, x, orders=0), "`orders` must be a whole number >= 1"),
        (lambda m, x: smallest_change(m, x, exact_up_to=0), "`exact_up_to` must be a whole number"),
        (lambda m, x: smallest_change(Sums(), x), "must be a classifier: Sums has no decision"),
        (lambda m, x: what_if(Sums(), x, target=1), "one of the 1 outputs of Sums. Received: 1"),
        (lambda m, x: what_if(m, x[0]), "Expected 2D array"),
    ],
)
def test_bad_arguments(call, message):
    with pytest.raises(ValueError, match=message):
        call(Network(), numbers())


def test_a_model_of_ours_warns_once_of_gaps_it_never_learnt():
    x = numbers(40)
    model = regressor((4,), max_iter=2, random_state=0).fit(x, x[:, 0])
    with pytest.warns(
        UserWarning, match="Columns '0', '1', '2', '3' had no missing values"
    ) as caught:
        result = what_if(model, x[:4])
    assert len(caught) == 1
    assert_allclose(result.prediction, model.predict(x[:4]))
    boosted = HistGradientBoostingRegressor(max_iter=5).fit(x, x[:, 0])
    assert what_if(boosted, x[:4]).effects.shape == (4, 4)
    neighbours = make_pipeline(KNNImputer(n_neighbors=1), Ridge()).fit(x, x[:, 0])
    assert what_if(neighbours, x[:4]).effects.shape == (4, 4)


def test_a_model_that_refuses_rows_is_explained_once_it_does_not(ours):
    frame, _ = patients()
    model = deepcopy(ours).set_params(min_known=0.6)
    with pytest.raises(ValueError, match="Set `min_known=0` on it before"):
        shapley(model, frame[:3])
    assert len(shapley(model.set_params(min_known=0), frame[:3]).values) == 3
    with pytest.raises(TypeError, match="takes the result of `what_if` or `shapley`"):
        importance(model)
