"""What is gathered for a report, and the command that writes one."""

import json

import numpy as np
import pandas as pd
import pytest
import report_cases as cases
from click.testing import CliRunner

from promissing.cli import main
from promissing.estimators.fusion import build
from promissing.io import define_task
from promissing.report import gather, render
from promissing.report.gather import as_json_types, pick_rows

REPORTS = [cases.binary, cases.regression, cases.several]


@pytest.mark.parametrize("report", REPORTS)
def test_the_report_holds_only_json_types(report):
    found = report()
    assert json.loads(json.dumps(found, allow_nan=False)) == found


def test_the_same_seed_gives_the_same_report():
    frame = cases.binary_frame()
    asked = {"strategies": None, "folds": 2, "rows": 10, "settings": {**cases.TINY, "max_iter": 2}}
    first, second = (
        gather(define_task(frame, "<i>relapse</i>"), frame=frame, **asked) for _ in range(2)
    )
    assert {**first, "provenance": None} == {**second, "provenance": None}


def test_the_positive_class_is_chosen_and_named():
    frame = cases.binary_frame().rename(columns={"<i>relapse</i>": "relapse"})
    frame["relapse"] = frame["relapse"].map({"no": "disease", "yes & <b>bold</b>": "healthy"})
    asked = {"strategies": None, "folds": 2, "rows": 30, "settings": {**cases.TINY, "max_iter": 9}}
    default, chosen = (
        gather(define_task(frame, "relapse", positive=positive), frame=frame, **asked)
        for positive in (None, "disease")
    )
    assert (default["positive"], chosen["positive"]) == ("healthy", "disease")
    assert chosen["classes"] == ["healthy", "disease"]
    assert "The positive class is \u201cdisease\u201d." in chosen["summary"]
    for one, other in zip(default["rows"]["items"], chosen["rows"]["items"], strict=True):
        assert one["id"] == other["id"]
        assert one["prediction"] == pytest.approx(1 - other["prediction"], abs=1e-5)
        kind = chosen["rows"]["outcomes"][other["outcome"]]["name"]
        right = "true" if other["truth"] == other["decision"] else "false"
        sign = "positive" if other["decision"] == "disease" else "negative"
        assert kind == f"{right} {sign} for disease"
    a, b = (found["prediction"]["measures"][0]["value"] for found in (default, chosen))
    assert a == pytest.approx(b)
    counts = np.array(chosen["prediction"]["confusion"])
    assert counts[::-1, ::-1].tolist() == default["prediction"]["confusion"]
    page = render(chosen)
    assert "Rows by the probability of disease" in page
    assert "AUC for \u201cdisease\u201d" in page


def test_the_old_parameter_positive_is_checked():
    frame = cases.binary_frame().rename(columns={"<i>relapse</i>": "relapse"})
    for target, message in (
        ("crp", "'crp' has numbers. Received: 'flu'"),
        ("ward", "`positive` must be one of two classes.*'ward' has '.*', '.*', '.*'. Received"),
        ("relapse", "`positive` must be one of .*'relapse' has 'no', 'yes.*Received: 'flu'"),
    ):
        problem = define_task(frame, target, kinds={"crp": "number"})
        with (
            pytest.warns(FutureWarning, match="define_task"),
            pytest.raises(ValueError, match=message),
        ):
            gather(problem, positive="flu", strategies=None, folds=2)
    with pytest.raises(TypeError, match="unexpected keyword argument 'positve'"):
        gather(problem, positve="flu")


def test_every_row_has_effects_of_its_known_values():
    found = cases.binary()["rows"]
    assert found["shown"] == len(found["items"]) == 60
    assert all(one["shown"] for one in found["outcomes"] if one["judged"])
    item = found["items"][0]
    assert item["id"].startswith("P<")
    bars = item["bars"][0]
    assert len(bars["bars"]) + bars["more"] + len(bars["unknown"]) == 4
    assert {kind for one in found["items"] for _, _, kind, _ in one["bars"][0]["bars"]} <= {
        0,
        1,
        2,
        3,
    }


def test_modalities_are_removed_as_a_whole_and_by_column():
    found = cases.regression()
    assert found["unit"] == "modality"
    assert [one["unit"] for one in found["importance"]["levels"]] == ["modality", "column"]
    assert found["rows"]["levels"][0]["groups"] == list(cases.MODALITIES)
    assert found["information_loss"]["groups"] == 2


def test_several_classes_and_a_sample_of_the_rows():
    found = cases.several()
    assert found["kind"] == "multiclass"
    assert np.shape(found["prediction"]["confusion"]) == (3, 3)
    assert [one["name"] for one in found["calibration"]["by_class"]] == ["high", "low", "middle"]
    assert found["provenance"]["rows"] == 120
    assert "120 of 150 rows, drawn at random" in found["provenance"]["text"][0]
    assert "120 of 150 rows, drawn at random" in render(found)


def test_rows_of_every_outcome_are_picked():
    outcome = np.repeat([0, 1, 2, 3], [5000, 4000, 30, 2])
    shown = np.bincount(outcome[pick_rows(outcome, 200, 0)])
    assert shown.tolist() == [84, 84, 30, 2]
    assert pick_rows(outcome[:50], 200, 0).tolist() == list(range(50))


def test_rows_keep_their_position_in_the_table():
    frame = cases.binary_frame().drop(columns="patient")
    frame.loc[:9, "<i>relapse</i>"] = None
    asked = {"strategies": None, "folds": 2, "rows": 5, "settings": {**cases.TINY, "max_iter": 1}}
    found = gather(define_task(frame, "<i>relapse</i>"), frame=frame, max_rows=50, **asked)
    names = [int(one["id"]) for one in found["rows"]["items"]]
    assert min(names) >= 10
    assert max(names) <= 149
    assert found["missing"]["rows"] == 150
    assert any("10 of 150 rows lack the target" in note for note in found["notes"])


def test_without_individual_rows_no_row_is_named():
    frame = cases.binary_frame()
    asked = {"strategies": None, "folds": 2, "rows": 0, "settings": {**cases.TINY, "max_iter": 1}}
    found = gather(define_task(frame, "<i>relapse</i>"), frame=frame, **asked)
    assert found["rows"] is None
    page = render(found)
    assert 'id="rows"' not in page
    assert not any(str(name) in page for name in frame["patient"])


def test_a_given_model_is_explained_and_its_parameters_are_scored(tmp_path):
    frame = cases.binary_frame().rename(columns={"<i>relapse</i>": "relapse"})
    table, model, out = (tmp_path / name for name in ("t.csv", "m.safetensors", "r.html"))
    frame.to_csv(table, index=False)
    problem = define_task(frame, "relapse")
    build(problem, **{**cases.TINY, "max_iter": 2}).fit(problem.X, problem.y).save(model)
    less = tmp_path / "less.csv"
    frame.drop(columns="crp").to_csv(less, index=False)
    asked = ("--target", "relapse", "--model", model, "--no-compare", "--folds", 2, "--rows", 5)
    facts = tmp_path / "r.json"
    told = run("report", table, *asked, "--out", out, "--json-out", facts)
    assert told.exit_code == 0, told.output
    found = json.loads(facts.read_text())
    assert found["explained"] == "the model"
    assert found["prediction"]["folds"] == 2
    assert found["provenance"]["settings"]["max_iter"] == "2"
    told = run("report", less, *asked, "--held-out", "--out", out, "--json-out", facts)
    assert told.exit_code == 0, told.output
    found = json.loads(facts.read_text())
    assert found["prediction"]["folds"] == 0
    assert "Column 'crp': not in the table, treated as missing in every row." in found["notes"]
    assert found["provenance"]["command"].startswith(
        "promissing report less.csv --out r.html --target"
    )
    assert str(tmp_path) not in out.read_text()
    told = run("report", table, "--target", "crp", "--model", model, "--out", out,
               "--missing-values", "-999")  # fmt: skip
    assert told.exit_code == 2
    assert "taken for regression" in told.stderr


def run(*words):
    return CliRunner().invoke(main, [str(word) for word in words], prog_name="promissing")


@pytest.mark.parametrize(
    ("target", "words", "said"),
    [
        ("sucess", ("--out", "r.html"), "Did you mean 'success'?"),
        ("success", ("--out", "r.pdf"), "unknown suffix '.pdf'"),
        ("success", ("--out", "r.html", "--held-out"), "--held-out requires --model"),
        ("success", ("--out", "r.html", "--compare", "men"), "There is no strategy 'men'"),
        ("success", ("--out", "r.html", "--compare", "mean", "--no-compare"), "not both"),
        ("success", ("--out", "r.html", "--model", "no.safetensors"), "no.safetensors"),
        ("one", ("--out", "r.html"), "one class only"),
        ("rare", ("--out", "r.html"), "has 1 rows, fewer than the 5 folds"),
    ],
)
def test_bad_input_gives_one_line_and_no_file(target, words, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    columns = {"success": ["a", "b"] * 20, "one": ["x"] * 40, "rare": ["a"] * 39 + ["b"]}
    pd.DataFrame({"x": np.arange(40) / 3, **columns}).to_csv("t.csv", index=False)
    told = run("report", "t.csv", "--target", target, *words)
    assert told.exit_code == 2, told.output
    assert said in told.stderr
    assert "Traceback" not in told.stderr
    assert not (tmp_path / "r.html").exists()


def test_values_become_json_types():
    assert as_json_types(
        {1: np.float32(0.5), "x": [np.nan, pd.NA, np.int64(3), pd.Timestamp(0)]}
    ) == {
        "1": 0.5,
        "x": [None, None, 3, "1970-01-01 00:00:00"],
    }
