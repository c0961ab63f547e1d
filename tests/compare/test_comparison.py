"""Strategies on one table: same folds, a fair test, and an honest sentence."""

import json

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from scipy import stats
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.impute import SimpleImputer
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from promissing.cli import main
from promissing.compare import compare, strategies
from promissing.compare.comparison import _power, _recommend, corrected_t_test, holm
from promissing.estimators.mlp import PLAIN

SMALL = {**PLAIN, "hidden_layer_sizes": (8,), "max_iter": 3}
# No trees: on a busy machine a hundred rounds of their threads take longer than all networks here.
FEW = ["zero", "mean", "fpromissing"]


def table(n=120, seed=0, gaps=0.2):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.normal(size=(n, 3)), columns=["age", "dose", "marker"])
    frame["ward"] = rng.choice(["north", "south"], n)
    score = frame["age"] + frame["dose"] + (frame["ward"] == "north")
    return frame.mask(rng.random(frame.shape) < gaps), score.to_numpy()


@pytest.fixture(scope="module")
def found():
    X, score = table()
    y = np.where(score > 0.5, "yes", "no")
    return compare(
        X, y, task="classification", strategies=FEW, folds=3, repetitions=2, settings=SMALL
    )


def test_the_table_has_a_line_for_every_strategy_the_best_first(found):
    columns = ["strategy", "title", "mean", "spread", "seconds", "difference", "p", "log_loss"]
    columns += ["calibration_error", "mean_missing", "log_loss_missing"]
    assert found.table.columns.tolist() == [*columns, "calibration_error_missing"]
    assert found.table.notna().sum().sum() == found.table.size - 1
    assert sorted(found.table["strategy"]) == sorted(FEW)
    assert found.table["mean"].is_monotonic_decreasing
    assert found.table["difference"][0] == 0
    assert np.isnan(found.table["p"][0])
    assert found.table["p"][1:].between(0, 1).all()
    assert (found.table["seconds"] > 0).all()
    assert found.metric == "AUC"
    assert found.about["folds"] == 3


def test_mean_spread_and_p_are_those_of_the_scores(found):
    wide = found.scores.pivot_table("score", ["repetition", "fold"], "strategy")
    assert wide.shape == (6, 3)
    by_name = found.table.set_index("strategy")
    pd.testing.assert_series_equal(by_name["mean"].sort_index(), wide.mean(), check_names=False)
    pd.testing.assert_series_equal(by_name["spread"].sort_index(), wide.std(), check_names=False)
    best, *others = by_name.index
    p = [corrected_t_test(wide[name] - wide[best], 40 / 80) for name in others]
    np.testing.assert_allclose(by_name["p"][1:], holm(p))


def test_it_can_be_written_as_json(found):
    again = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert again["table"][0]["p"] is None
    assert len(again["scores"]) == 18
    assert again["recommendation"] == found.recommendation
    assert again["settings"] == {**SMALL, "hidden_layer_sizes": [8]}


def test_the_same_seed_gives_the_same_scores():
    X, y = table(60)
    settings = {"task": "regression", "strategies": ["mean", "promissing"], "folds": 2}
    runs = [compare(X, y, settings=SMALL, random_state=seed, **settings) for seed in (1, 1, 2)]
    scores = [run.scores["score"].tolist() for run in runs]
    assert scores[0] == scores[1] != scores[2]
    assert runs[0].metric == "R2"


def test_a_strategy_that_cannot_run_is_listed_and_the_others_go_on():
    X, y = table(60)
    found = compare(X, y, task="regression", strategies=["full", "mean"], folds=2, settings=SMALL)
    assert found.table["strategy"].tolist() == ["mean"]
    assert "reference on data without missing values" in found.skipped["full"]


def test_where_none_can_run_there_is_nothing_to_tell():
    X, y = table(60)
    with pytest.raises(RuntimeError, match="No strategy could be compared. full: The strategy"):
        compare(X, y, task="regression", strategies=["full"], folds=2)


def test_by_default_all_installed_strategies_but_the_reference(monkeypatch):
    X, y = table(60)
    monkeypatch.setattr(strategies, "available", lambda: ("full", "mean"))
    found = compare(X, y, task="regression", folds=2, settings=SMALL)
    assert found.table["strategy"].tolist() == ["mean"]
    assert "without missing values" in found.skipped["full"]
    assert "xgboost is not installed" in found.skipped["xgboost"]


def test_a_strategy_that_is_not_installed_is_skipped_and_the_rest_goes_on(monkeypatch):
    X, y = table(60)
    monkeypatch.setattr(strategies, "find_spec", lambda name: None if name == "catboost" else 1)
    names = ["catboost", "mean"]
    found = compare(X, y, task="regression", strategies=names, folds=2, settings=SMALL)
    assert found.table["strategy"].tolist() == ["mean"]
    assert found.skipped == {
        "catboost": "catboost is not installed: pip install 'promissing[trees]'"
    }


@pytest.mark.parametrize("mechanism", ["mcar", "mar", "mnar"])
def test_extra_gaps_are_in_training_and_test_rows_and_the_same_for_all(mechanism):
    X, y = table(80, gaps=0.0)
    seen = {}

    class Watching:
        def __init__(self, name):
            self.name = name

        def fit(self, X, y):
            self.train = X
            return self

        def predict(self, X):
            rows = pd.concat([self.train, X]).sort_index()
            seen.setdefault(self.name, []).append(rows)
            assert self.train.isna().any(axis=None)
            assert X.isna().any(axis=None)
            return np.zeros(len(X))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(strategies, "make", lambda name, *_, **__: Watching(name))
        found = compare(
            X,
            y,
            task="regression",
            strategies=["mean", "hgb"],
            folds=2,
            extra_missing=(mechanism, 0.4),
        )
    # Every second prediction is of test rows that lack half of their features as well.
    for one, other in zip(*(rows[::2] for rows in seen.values()), strict=True):
        pd.testing.assert_frame_equal(one, other)
        shares = one.isna().mean()
        assert ((shares == 0.4) | (shares == 0)).all()
        assert (shares == 0).sum() == (mechanism == "mar")  # The column that drives the losses.
    assert found.about["missing"] == pytest.approx(0.4 * (0.75 if mechanism == "mar" else 1))


def test_several_classes_one_of_them_rare():
    X, score = table(90)
    y = np.digitize(score, [-0.5, 1]).astype(object)
    y[:2] = "rare"
    y = y.astype(str)
    found = compare(X, y, task="classification", strategies=["mean"], folds=3, settings=SMALL)
    assert not found.skipped
    assert found.table["mean"].between(0, 1).all()


def test_modalities_make_a_network_of_fusion_and_the_deletions_are_left_out():
    X, score = table(60)
    found = compare(
        X,
        score > 0.5,
        task="classification",
        strategies=["complete-case", "mpromissing"],
        modalities={"person": ["age", "ward"], "drug": ["dose", "marker"]},
        folds=2,
        settings={"max_iter": 2},
    )
    assert found.table["strategy"].tolist() == ["mpromissing"]
    assert "not offered with `modalities`" in found.skipped["complete-case"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"task": "clustering"}, "`task` must be one of"),
        ({"strategies": ["kn"]}, "There is no strategy 'kn'. Did you mean 'knn'"),
        ({"strategies": []}, "`strategies` is empty"),
        ({"folds": 1}, "`folds` must be at least 2"),
        ({"folds": 30}, "40 rows are too few for 30 folds"),
        ({"repetitions": 0}, "`repetitions` must be at least 1"),
        ({"extra_missing": 1.5}, "`extra_missing` must be a share"),
        ({"extra_missing": ("mnra", 0.1)}, "Did you mean 'mnar'"),
        ({"y": np.zeros(40)}, "one class only"),
        ({"y": np.arange(40) < 3}, "The class True has 3 rows, fewer than the 5 folds"),
        ({"y": np.where(np.arange(40) < 3, np.nan, 1.0)}, "`y` lacks 3 values"),
        ({"y": np.zeros(39)}, "one value for each of 40 rows"),
    ],
)
def test_what_cannot_be_compared_is_said_so(change, message):
    X, score = table(40)
    given = {"y": score > 0.5, "task": "classification", "strategies": ["mean"]} | change
    with pytest.raises(ValueError, match=message):
        compare(X, **given)


# Strategies of users.


def rows_and_target():
    X, y = table(60)
    return X.drop(columns="ward"), y


def test_extra_estimators_are_compared_by_name_with_the_strategies():
    X, y = rows_and_target()
    extra = {"ridge": make_pipeline(SimpleImputer(), Ridge()), "prior": DummyRegressor()}
    before = clone(extra["ridge"])
    found = compare(X, y, task="regression", strategies=[], extra=extra, folds=2)
    assert found.table["strategy"].tolist() == found.table["title"].tolist() == ["ridge", "prior"]
    assert not hasattr(extra["ridge"][-1], "coef_")  # Clones were fitted.
    assert repr(before) == repr(extra["ridge"])
    assert "2 strategies: ridge has the highest mean R2" in repr(found)
    assert found.to_frame().loc["ridge", "mean"] == found.table["mean"][0]


@pytest.mark.parametrize(
    ("extra", "error", "message"),
    [
        ({"mean": DummyRegressor()}, ValueError, "already a strategy 'mean'. Choose another name"),
        ({"mine": "ridge"}, TypeError, "'mine' must be an estimator or pipeline"),
        ({"mine": Ridge()}, ValueError, "'mine' cannot take missing values: Ridge"),
        ([Ridge()], TypeError, "`extra` must map names to estimators"),
    ],
)
def test_what_extra_refuses(extra, error, message):
    X, y = rows_and_target()
    with pytest.raises(error, match=message):
        compare(X, y, task="regression", extra=extra)


def test_an_estimator_that_fails_on_missing_values_is_listed_with_the_reason():
    X, y = rows_and_target()
    extra = {"scaled": make_pipeline(StandardScaler(), Ridge()), "prior": DummyRegressor()}
    with pytest.warns(UserWarning, match="'scaled' of `extra` was left out: its estimator"):
        found = compare(X, y, task="regression", strategies=[], extra=extra, folds=2)
    assert found.table["strategy"].tolist() == ["prior"]
    assert found.skipped["scaled"].startswith("its estimator cannot take missing values")


def test_old_arguments_work_with_a_warning():
    X, y = rows_and_target()
    with pytest.warns(FutureWarning) as caught:
        found = compare(X, y, task="regression", names=["hgb"], folds=2, extra=0.2, mechanism="mar")
    texts = [str(one.message) for one in caught]
    assert any("`names` is now `strategies`" in text for text in texts)
    assert any("`extra_missing=('mar', 0.2)`" in text for text in texts)
    assert {one.filename for one in caught} == {__file__}
    assert (found.about["extra"], found.about["mechanism"]) == (0.2, "mar")


# The test itself.


def test_the_corrected_test_is_students_with_more_variance():
    d = np.random.default_rng(0).normal(0.1, 0.2, 10)
    t = stats.ttest_1samp(d, 0).statistic * np.sqrt((1 / 10) / (1 / 10 + 1 / 4))
    assert corrected_t_test(d, 1 / 4) == pytest.approx(2 * stats.t.sf(abs(t), 9))
    assert corrected_t_test(-d, 1 / 4) == pytest.approx(corrected_t_test(d, 1 / 4))
    assert corrected_t_test(d, 0) == pytest.approx(stats.ttest_1samp(d, 0).pvalue)


def test_models_that_score_the_same_do_not_differ():
    assert corrected_t_test(np.zeros(5), 0.25) == 1
    assert corrected_t_test(np.full(5, 1e-16), 0.25) == 1
    assert corrected_t_test(np.full(5, 0.1), 0.25) == 0
    with pytest.raises(ValueError, match="two or more"):
        corrected_t_test([0.1], 0.25)


def test_holm_steps_down_and_never_swaps():
    np.testing.assert_allclose(holm([0.01, 0.04, 0.03]), [0.03, 0.06, 0.06])
    np.testing.assert_allclose(holm([0.5, 0.6]), [1, 1])
    assert holm([]).shape == (0,)


# The advice.


def judged(*lines):
    frame = pd.DataFrame(lines, columns=["strategy", "mean", "p"])
    frame["title"] = [strategies.STRATEGIES[name].title for name in frame["strategy"]]
    return frame


@pytest.mark.parametrize(
    ("lines", "sentence"),
    [
        (
            [("knn", 0.85, np.nan), ("mpromissing", 0.84, 0.8), ("zero", 0.8, 0.2)],
            "KNN has the highest mean AUC, 0.850, but there is no clear winner: no difference from "
            "the others is significant.",
        ),
        (
            [("hgb", 0.85, np.nan), ("knn", 0.84, 0.8), ("mean", 0.8, 0.04), ("zero", 0.7, 0.01)],
            "HGB has the highest mean AUC, 0.850, significantly more than mean and zero, but not "
            "significantly more than KNN.",
        ),
        (
            [("mean", 0.85, np.nan), ("hgb", 0.8, 0.01)],
            "mean has the highest mean AUC, 0.850, significantly more than HGB.",
        ),
        (
            [("mean", 0.85, np.nan)],
            "mean has the highest mean AUC, 0.850, with nothing to compare it with.",
        ),
        (
            [("mean", 0.48, np.nan), ("zero", 0.45, 0.1)],
            "mean has the highest mean AUC, 0.480, which is no better than chance (0.5): do not "
            "use any of them.",
        ),
    ],
)
def test_the_advice_says_what_is_significant(lines, sentence):
    assert _recommend(judged(*lines), "AUC") == sentence


def test_the_power_is_that_of_the_corrected_test():
    rng = np.random.default_rng(0)
    n, share = 10, 1 / 9
    noise = rng.normal(0, 0.02, n)
    scores = pd.DataFrame(
        {"strategy": ["a"] * n + ["b"] * n, "score": np.r_[np.full(n, 0.8), 0.8 + noise]}
    )
    text = _power(pd.DataFrame({"strategy": ["a", "b"]}), scores, share)
    least, sd = float(text.split()[3]), noise.std(ddof=1)
    # Folds share rows, so their differences have a common error with the variance share * sd^2.
    common = sd * np.sqrt(share) * rng.normal(size=(2000, 1))
    drawn = least + common + rng.normal(0, sd, (2000, n))
    found = np.mean([corrected_t_test(d, share) < 0.05 for d in drawn])
    assert found == pytest.approx(0.8, abs=0.05)


class Sure(ClassifierMixin, BaseEstimator):
    """Certain of its predictions, whatever is missing."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return self.classes_[self.predict_proba(X).argmax(axis=1)]

    def predict_proba(self, X):
        p = np.where(np.nan_to_num(np.asarray(X, float)[:, 0]) > 0, 0.99, 0.01)
        return np.column_stack([1 - p, p])


class Careful(Sure):
    """Less certain when it knows less."""

    def predict_proba(self, X):
        known = ~np.isnan(np.asarray(X, float)[:, :1])
        return np.where(known, super().predict_proba(X), 0.5)


def test_inputs_that_go_missing_in_use_are_measured_and_the_advice_says_who_copes():
    X = np.random.default_rng(0).normal(size=(400, 4))
    extra = {"sure": Sure(), "careful": Careful()}
    found = compare(X, X[:, 0] > 0, task="classification", strategies=[], extra=extra)
    by_name = found.table.set_index("strategy")
    assert by_name["mean"].tolist() == [1.0, 1.0]
    assert by_name["log_loss_missing"]["careful"] < 0.4 < 1 < by_name["log_loss_missing"]["sure"]
    assert by_name["calibration_error_missing"]["careful"] < 0.05
    assert "careful has the lowest mean log loss" in found.recommendation
    assert "significantly less than sure. Calibration errors there: careful" in found.recommendation


def test_a_model_that_cannot_predict_missing_values_is_compared_on_complete_rows():
    X = np.random.default_rng(0).normal(size=(100, 3))
    extra = {"ridge": make_pipeline(StandardScaler(), Ridge()), "prior": DummyRegressor()}
    found = compare(X, X[:, 0], task="regression", strategies=[], extra=extra)
    by_name = found.table.set_index("strategy")
    assert np.isnan(by_name["mean_missing"]["ridge"])
    assert by_name["mean"]["ridge"] > 0.9
    assert any("ridge: not measured with inputs missing" in note for note in found.notes)


# The command.


@pytest.fixture
def file(tmp_path):
    X, score = table(60)
    X.assign(relapse=np.where(score > 0.5, "yes", "no")).to_csv(tmp_path / "t.csv", index=False)
    return tmp_path / "t.csv"


def run(*words):
    return CliRunner().invoke(main, ["compare", *map(str, words)])


def test_the_command_prints_a_table_and_one_sentence(file, tmp_path):
    few = ("--strategies", "mean,zero,full", "--folds", 2, "--epochs", 2)
    result = run(file, "--target", "relapse", *few, "--out", tmp_path / "found")
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert "60 rows" in lines[0]
    assert any("zero" in line for line in lines)
    assert "full was left out: The strategy" in result.stdout
    assert "has the highest mean AUC" in result.stdout
    document = json.loads((tmp_path / "found" / "comparison.json").read_text())
    assert document["metric"] == "AUC"
    assert len(pd.read_csv(tmp_path / "found" / "scores.csv")) == 4
    assert pd.read_csv(tmp_path / "found" / "table.csv")["strategy"].tolist() == [
        line["strategy"] for line in document["table"]
    ]


def test_the_command_speaks_json(file, tmp_path):
    few = (
        "--strategies",
        "mean",
        "--epochs",
        2,
        "--folds",
        2,
        "--extra",
        0.2,
        "--mechanism",
        "mnar",
        "--json",
    )
    result = run(file, "--target", "relapse", *few, "--out", tmp_path / "found.json")
    document = json.loads(result.stdout)
    assert document["mechanism"] == "mnar"
    assert document == json.loads((tmp_path / "found.json").read_text())


def test_a_registered_strategy_is_compared_by_name_and_by_the_command(file):
    strategies.register("prior", lambda task, random_state: DummyClassifier())
    try:
        X, score = table(60)
        found = compare(X, score > 0, task="classification", strategies=["prior"], folds=2)
        result = run(file, "--target", "relapse", "--strategies", "prior", "--folds", 2, "--json")
    finally:
        strategies.unregister("prior")
    assert found.table["strategy"].tolist() == ["prior"]
    assert [line["strategy"] for line in json.loads(result.stdout)["table"]] == ["prior"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--target", "relaps"], "There is no column 'relaps'. Did you mean 'relapse'?"),
        (["--target", "relapse", "--strategies", "kn"], "There is no strategy 'kn'"),
        (["--target", "relapse", "--mechanism", "x", "--extra", 0.1], "--mechanism must be one of"),
        (["--target", "relapse", "--out", "t.xml"], "unknown suffix"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(file, words, message):
    result = run(file, *words)
    assert result.exit_code == 2
    assert message in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1
