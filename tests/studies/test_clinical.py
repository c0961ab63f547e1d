import json

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from studies import clinical
from studies.__main__ import main
from studies.clinical import summarise
from studies.runner import Row, Skipped, read

from promissing import datasets


def call(*arguments):
    return CliRunner().invoke(main, ["clinical", *map(str, arguments)])


def write_index(folder, slug):
    entry = {"slug": slug, "file": f"{slug}.parquet", "task": "binary", "n_samples": 2}
    entry |= {"n_features": 1, "categorical_columns": {}}
    (folder / "index.json").write_text(json.dumps({"datasets": [entry]}))


def test_feature_removal_drops_patients_without_a_modality_then_columns_with_gaps():
    nan = np.nan
    X = pd.DataFrame(
        {"a": [1, 2, nan, 4.0], "b": [1, 2, nan, 4.0], "c": [1, nan, 3, 4.0], "d": 1.0}
    )
    stay, kept = clinical.removed(X, {"one": ["a", "b"], "two": ["c"], "three": ["d"]})
    assert stay.tolist() == [True, False, False, True]
    assert kept == {"one": ["a", "b"], "two": ["c"], "three": ["d"]}
    stay, kept = clinical.removed(X, {"one": ["a", "c"], "three": ["d"]})
    assert stay.all()
    assert kept == {"three": ["d"]}


def test_scores_are_means_over_folds_and_spread_over_repetitions():
    lines = [
        ("cohort", "own", np.nan, "knn", r, fold, metric, value + r, 2.0)
        for r in range(3)
        for fold, value in enumerate((0.1, 0.3))
        for metric in ("auc", "brier")
    ]
    (line,) = summarise(pd.DataFrame(lines, columns=Row._fields)).to_dict("records")
    assert line["auc"] == pytest.approx(1.2)
    assert line["auc_sd"] == pytest.approx(1.0)
    assert line["seconds"] == 2.0


def test_the_study_from_the_command_line(tmp_path):
    out = tmp_path / "out"
    size = ["--folds", 2, "--repetitions", 1, "--epochs", 2, "--orders", 2, "--fresh", 100]
    result = call("--out", out, *size, "--strategies", "hgb,mpromissing", "--jobs", 1)
    assert result.exit_code == 0, result.output
    tables = {"scores", "fading", "knowing", "importance"}
    figures = {"scores", "fading_cohort", "knowing", "why", "decisions"}
    made = {path.name for path in out.iterdir()}
    assert {f"{name}.{kind}" for name in tables for kind in ("csv", "md")} <= made
    assert {f"{name}.png" for name in figures} <= made
    results, arrays, _ = read(out)
    scores = results[results["mechanism"] == "own"]
    assert len(scores) == 2 * 2 * 2
    assert scores["value"].between(0, 1).all()
    assert arrays["fading/cohort/hgb"]["predictions"].shape == (2, 17, 13)
    assert arrays["why/cohort/mpromissing"]["effects"].shape == (17, 12)
    assert "--folds 2" in (out / "about.md").read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--strategies", "zero"], "'zero' is not part of this study"),
        (["--strategies", "hbg"], "Did you mean 'hgb'"),
        (["--tables", ","], "Name at least one table"),
        (["--tables", "plain", "--data", "DATA"], "Table 'plain' has no modalities"),
        (["--tables", "plane", "--data", "DATA"], "plain"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(tmp_path, arguments, message):
    frame = pd.DataFrame({"a": [1.0, 2.0], "target": np.array([0, 1], np.int8)})
    frame.to_parquet(tmp_path / "plain.parquet")
    write_index(tmp_path, "plain")
    arguments = [tmp_path if a == "DATA" else a for a in arguments]
    result = call("--out", tmp_path / "out", *arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert "Traceback" not in result.stderr
    assert not (tmp_path / "out").exists()


def test_a_table_that_cannot_be_had_is_skipped_with_its_reason(tmp_path):
    write_index(tmp_path, "gone")
    with pytest.raises(Skipped, match="gone"):
        clinical.load("gone", str(tmp_path))


def test_the_cohort_is_the_papers():
    X, y, modalities = clinical.load(clinical.COHORT, None)
    assert X.shape == (376, 211)
    assert len(modalities) == 12
    assert list(datasets.make_cohort().modalities) == list(modalities)
    assert set(np.unique(y)) == {0, 1}
