import json

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from studies import accuracy
from studies.__main__ import main
from studies.runner import read


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Two tables of 500 rows, one for each task."""
    folder = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(0)
    entries = []
    for slug, task in (("number", "regression"), ("yesno", "binary")):
        frame = pd.DataFrame(rng.normal(size=(500, 3)), columns=["a", "b", "c"])
        score = frame["b"] + 0.3 * frame["a"]
        frame["target"] = (score > 0).astype("int8") if task == "binary" else score
        frame.to_parquet(folder / f"{slug}.parquet")
        entries.append({"slug": slug, "file": f"{slug}.parquet", "task": task})
        entries[-1]["categorical_columns"] = {}
    (folder / "index.json").write_text(json.dumps({"datasets": entries}))
    return folder


def call(*arguments):
    return CliRunner().invoke(main, ["accuracy", *map(str, arguments)])


def test_the_study_from_the_command_line_and_beside_an_earlier_record(data, tmp_path):
    settings = ["--settings", "complete,mar-0.5", "--data", data]
    first = tmp_path / "first"
    result = call(
        "--out", first, *settings, "--methods", "hgb,sklearn-mlp-mean", "--half", "report"
    )
    assert result.exit_code == 0, result.output
    results = read(first).rows
    assert set(results["dataset"]) == {"yesno"}
    assert set(results["metric"]) == {"fit_seconds", "predict_seconds", "score", "log_loss"}
    made = {path.name for path in first.iterdir()}
    names = ["summary.md", "summary_report.csv", "log_loss_report.csv", "seconds.csv"]
    assert {*names, "scores.csv", "log_losses.csv", "ranks_report.png", "about.md"} <= made
    assert "--data DIR" in (first / "about.md").read_text()

    second = tmp_path / "second"
    ours = ["--methods", "ours:n_members=1+max_iter=2", "--folds", 1, "--beside", first]
    result = call("--out", second, *settings, *ours, "--tables", "yesno")
    assert result.exit_code == 0, result.output
    scores = pd.read_csv(second / "scores.csv")
    assert len(scores) == 2
    assert {"hgb", "sklearn-mlp-mean", "ours:n_members=1+max_iter=2"} <= set(scores)


def test_a_failed_method_is_named_and_the_others_are_reported(data, tmp_path):
    how = ["--methods", "hgb,ours:no_such=1", "--settings", "complete", "--data", data]
    result = call("--out", tmp_path, *how)
    assert result.exit_code == 1
    assert "failed yesno/complete/ours:no_such=1/0: TypeError" in result.stderr
    assert "2 of 4 batches failed" in result.stderr
    assert "hgb" in (tmp_path / "summary.md").read_text()


def test_a_wrong_setting_is_refused(data, tmp_path):
    result = call("--out", tmp_path / "out", "--settings", "nmar-0.5", "--data", data)
    assert result.exit_code == 2
    assert "There is no setting 'nmar-0.5'" in result.stderr
    assert not (tmp_path / "out").exists()


def test_every_second_table_served_to_choose_the_default(data):
    assert accuracy.halves(str(data)) == {"number": "choose", "yesno": "report"}
