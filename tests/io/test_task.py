"""From a table and a target to something that can be learnt."""

import numpy as np
import pandas as pd
import pytest

from promissing import NanFusionRegressor, NanMLPClassifier, NanMLPRegressor
from promissing.estimators.fusion import build
from promissing.io import FileError, define_task, read_modalities

N = 60
RNG = np.random.default_rng(0)
FRAME = pd.DataFrame(
    {
        "age": RNG.normal(50, 10, N),
        "ward": RNG.choice(["north", "south"], N),
        "stage": RNG.integers(0, 4, N),
        "relapse": RNG.choice(["yes", "no"], N),
        "length": RNG.normal(size=N),
    }
)


def test_rows_without_a_target_are_left_out_and_counted():
    frame = FRAME.assign(relapse=FRAME["relapse"].where(FRAME.index >= 7))
    problem = define_task(frame, "relapse")
    assert len(problem.X) == len(problem.y) == N - 7
    assert "7 of 60 rows lack the target 'relapse' and are left out." in problem.notes
    assert "relapse" not in problem.X.columns


@pytest.mark.parametrize(
    ("target", "task"),
    [
        (["a", "b", "c"] * 20, "classification"),
        ([True, False, True] * 20, "classification"),
        (pd.array([True, None, False] * 20, dtype="boolean"), "classification"),
        ([0.0, 1.0, np.nan] * 20, "classification"),
        (range(60), "regression"),
        (np.linspace(0, 1, 60), "regression"),
        ([0.5, 1.5, 2.5] * 20, "regression"),
        ([0.5, 2.5] * 30, "regression"),
    ],
)
def test_the_task_is_inferred(target, task):
    frame = FRAME.assign(target=target)
    assert define_task(frame, "target").task == task


def test_few_whole_numbers_are_classes_and_that_is_said():
    problem = define_task(FRAME, "stage")
    assert problem.task == "classification"
    assert "pass `task='regression'`" in problem.notes[0]
    assert define_task(FRAME, "stage", task="regression").y.dtype == float


def test_labels_are_plain():
    whole = define_task(FRAME.assign(t=[0.0, 1.0, np.nan] * 20), "t").y
    assert whole.dtype == np.int64
    flags = pd.array([True, None, False] * 20, "boolean")
    assert define_task(FRAME.assign(t=flags), "t").y.dtype == bool
    assert define_task(FRAME.assign(t=pd.Categorical(["a", "b"] * 30)), "t").y.dtype == object


@pytest.mark.parametrize(
    ("target", "settings", "said"),
    [
        ("Relaps", {}, "There is no column 'Relaps'. Did you mean 'relapse'?"),
        ("zzzz", {}, "There is no column 'zzzz'. There are 'age', 'ward', 'stage'"),
        ("empty", {}, "The target 'empty' is missing in every row"),
        ("same", {}, "holds one class only, 'x': nothing can be learned"),
        ("one", {"task": "regression"}, "holds one value only, 1: nothing can be learned"),
        ("ward", {"task": "regression"}, "'ward' holds '.*', which is not a finite number"),
        ("endless", {}, "holds inf, which is not a finite number"),
        ("length", {"task": "classification"}, "fractions|classes"),
        ("day", {}, "holds dates, which cannot be predicted as such"),
        ("age", {"task": "guess"}, "`task` must be one of"),
    ],
)
def test_targets_that_cannot_be_learnt(target, settings, said):
    frame = FRAME.assign(
        empty=np.nan,
        same="x",
        one=1,
        endless=np.r_[np.inf, np.arange(N - 1) / 7],
        day=pd.date_range("2024", periods=N),
    )
    with pytest.raises(ValueError, match=said):
        define_task(frame, target, **settings)


@pytest.mark.parametrize(
    ("target", "marker", "remedy"),
    [
        (["yes", "no", "."] * 20, r"'.' in 20 of 60 rows", "'category'"),
        (["0", "1", "?"] * 20, r"'\?' in 20 of 60 rows", "'category'"),
        ([0, 1, 9] * 20, "9 in 20 of 60 rows", "'number'"),
        ([0.5, 1.5, -999] * 20, "-999 in 20 of 60 rows", "'number'"),
    ],
)
def test_a_sign_for_missing_in_the_target_is_refused(target, marker, remedy):
    frame = FRAME.assign(t=target)
    with pytest.raises(ValueError, match=f"'t' holds {marker}.*`missing_values=.*{remedy}"):
        define_task(frame, "t")
    kind = remedy.strip("'")
    assert len(define_task(frame, "t", kinds={"t": kind}).y) == N


def test_a_minus_beside_a_plus_is_a_result():
    assert set(define_task(FRAME.assign(t=["+", "-"] * 30), "t").y) == {"+", "-"}


def test_the_positive_class():
    assert define_task(FRAME, "relapse").positive is None
    assert define_task(FRAME, "relapse", positive="no").positive == "no"
    assert define_task(FRAME.assign(t=[0, 1] * 30), "t", positive="1").positive == 1
    with pytest.raises(ValueError, match=r"`positive` must be one of the classes \['no', 'yes'\]"):
        define_task(FRAME, "relapse", positive="maybe")
    with pytest.raises(ValueError, match="one of two classes, but .* 'stage' has 4 classes"):
        define_task(FRAME, "stage", positive=1)
    with pytest.raises(ValueError, match="the target 'length' is a number"):
        define_task(FRAME, "length", positive=1)


def test_text_that_reads_as_numbers_is_told_of_unless_its_kind_is_declared():
    frame = FRAME.assign(cost=[f"$1,{i:03}" for i in range(N)])
    assert any(
        "'cost' is text that reads as amounts of money" in n
        for n in define_task(frame, "relapse").notes
    )
    problem = define_task(frame, "relapse", kinds={"cost": "category"})
    assert not any("'cost'" in note for note in problem.notes)
    assert "cost" in problem.X


def test_ten_thousand_classes():
    frame = pd.DataFrame({"a": np.arange(10_000.0), "name": [f"n{i}" for i in range(10_000)]})
    with pytest.raises(ValueError, match="has 10,000 classes in 10,000 rows, more than 100. Is it"):
        define_task(frame, "name")
    with pytest.raises(ValueError, match="another `target`, or `task='regression'`"):
        define_task(frame.assign(code=range(10_000)), "code", task="classification")


def test_identifiers_are_left_out_if_text_and_told_of_otherwise():
    frame = FRAME.assign(name=[f"n{i}" for i in range(N)], number=range(N), nothing=np.nan)
    problem = define_task(frame, "relapse")
    assert problem.X.columns.tolist() == ["age", "ward", "stage", "length", "number", "nothing"]
    said = " ".join(problem.notes)
    assert "Column 'name' is text and different in every row, like an identifier: left" in said
    assert "Column 'number' holds a different whole number in every row." in said
    assert "Column 'nothing' is empty" in said


def test_nothing_to_learn_from():
    with pytest.raises(ValueError, match="There is no column to predict 'relapse' from"):
        define_task(FRAME[["relapse"]], "relapse")


def test_modalities_are_columns_of_the_table():
    groups = {"person": ["age", "ward"], "clinic": ["stage", "name"]}
    frame = FRAME.assign(name=[f"n{i}" for i in range(N)])
    problem = define_task(frame, "length", modalities=groups)
    assert problem.modalities == {"person": ["age", "ward"], "clinic": ["stage"]}
    assert problem.X.columns.tolist() == ["age", "ward", "stage"]
    assert "Column 'relapse' is in no modality: left out." in problem.notes
    assert isinstance(build(problem), NanFusionRegressor)
    with pytest.raises(ValueError, match="'a' names the column 'agee', which .* mean 'age'?"):
        define_task(FRAME, "length", modalities={"a": ["agee"]})
    with pytest.raises(ValueError, match="Modality 'a' holds the target 'length'"):
        define_task(FRAME, "length", modalities={"a": ["length"]})


def test_modalities_from_a_file(tmp_path):
    path = tmp_path / "m.toml"
    path.write_text('[modalities]\nblood = ["crp", "leuco"]\n"brain scan" = ["left"]\n')
    assert read_modalities(path) == {"blood": ["crp", "leuco"], "brain scan": ["left"]}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("blood = [", "is not TOML"),
        ("blood = ['crp']", r"has no table \[modalities\]. Write \[modalities\]"),
        ("[modalities]", r"has no table \[modalities\]"),
        ("[modalities]\nblood = 'crp'", "modality 'blood' is not a list of column names"),
        ("[modalities]\na = ['x']\nb = ['x']", "column 'x' of modality 'b' is listed in 'a' too"),
        ("[modalities]\na = ['x', 'x']", "column 'x' of modality 'a' is listed twice"),
    ],
)
def test_bad_files_of_modalities(tmp_path, text, said):
    path = tmp_path / "m.toml"
    path.write_text(text)
    with pytest.raises(FileError, match=said):
        read_modalities(path)
    with pytest.raises(FileError, match="There is no file"):
        read_modalities(tmp_path / "other.toml")


def test_the_estimator_can_say_that_it_does_not_know():
    model = build(define_task(FRAME, "relapse"), random_state=3, max_iter=7)
    assert isinstance(model, NanMLPClassifier)
    assert (model.augment, model.random_state, model.max_iter) == ("auto", 3, 7)
    many = define_task(FRAME, "length")
    assert isinstance(build(many), NanMLPRegressor)
    assert build(many, augment=False, n_members=1).n_members == 1


def test_the_names_of_release_0_1_work_with_a_warning():
    import promissing.problem

    with pytest.warns(FutureWarning, match="problem.pose is now promissing.io.task.define_task"):
        assert promissing.problem.pose is define_task
    with pytest.warns(FutureWarning, match="problem.read_modalities is now promissing.io.read"):
        assert promissing.problem.read_modalities is read_modalities
