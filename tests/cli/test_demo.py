"""promissing demo: what it prints and leaves behind. Its parts have tests of their own."""

import json

from click.testing import CliRunner
from plain import classifier

from promissing import load, report
from promissing.cli import main
from promissing.estimators import fusion
from promissing.io import task as problem
from promissing.io.files import read_table

LINE = {"title": "mean", "mean": 0.6, "spread": 0.1, "difference": 0.0, "p": None, "seconds": 1.0}
COMPARED = {"metric": "AUC", "folds": 5, "items": [LINE], "recommendation": "Take the mean."}


def quick(posed, **settings):
    return classifier((2,), augment=True, random_state=0, **settings | {"n_members": 2})


def test_it_shows_a_fading_patient_a_comparison_and_where_the_report_is(tmp_path, monkeypatch):
    asked = {}

    def gather(posed, **given):
        asked.update(given, columns=posed.X.shape[1])
        return {"comparison": COMPARED}

    monkeypatch.setattr(fusion, "build", quick)
    monkeypatch.setattr(report, "gather", gather)
    monkeypatch.setattr(report, "render", lambda found: "<!doctype html>")
    result = CliRunner().invoke(main, ["demo", "--out", str(tmp_path / "demo"), "--epochs", "1"])
    assert result.exit_code == 0, result.output
    assert asked["columns"] == 211
    assert asked["settings"] == {"max_iter": 1, "n_members": 4}

    fading = [line.split() for line in result.stdout.splitlines() if "%" in line]
    assert [words[0] for words in fading[1:]] == ["nothing", *["+"] * 12]
    assert fading[1][1] == "100%"
    assert fading[-1][2] == "0%"
    assert "Take the mean." in result.stdout
    assert "report.html: open it in a browser" in result.stdout.replace("\n", "")

    out = tmp_path / "demo"
    assert (out / "report.html").read_text() == "<!doctype html>"
    assert json.loads((out / "report.json").read_text()) == {"comparison": COMPARED}
    assert read_table(out / "cohort.csv").shape == (376, 212)
    assert len(problem.read_modalities(out / "modalities.toml")) == 12
    assert load(out / "model.safetensors").classes_.tolist() == ["no", "yes"]


def test_a_directory_that_is_a_file_is_refused(tmp_path):
    (tmp_path / "demo").write_text("")
    result = CliRunner().invoke(main, ["demo", "--out", str(tmp_path / "demo")])
    assert result.exit_code == 2
