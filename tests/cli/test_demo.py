"""promissing demo: what it prints and leaves behind. Its parts have tests of their own."""

import json
from functools import partial

import numpy as np
import pytest
from click.testing import CliRunner

import promissing
from promissing import NanMLPClassifier, datasets, load, report
from promissing.cli import main
from promissing.io import task as problem
from promissing.io.files import read_table
from promissing.uncertainty import AcquisitionPlan, ConformalClassifier, SelectiveClassifier


@pytest.fixture
def few_people(monkeypatch):
    """A tenth of the survey, and one small network."""
    survey = datasets.load_nhanes()
    rows = np.random.default_rng(0).permutation(len(survey.y))[:500]
    small = survey._replace(X=survey.X.iloc[rows], y=survey.y.iloc[rows])
    monkeypatch.setattr(datasets, "load_nhanes", lambda: small)
    small_network = {"hidden_layer_sizes": (4,), "n_members": 1, "n_bins": 0}
    monkeypatch.setattr(promissing, "NanMLPClassifier", partial(NanMLPClassifier, **small_network))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:No threshold reaches an accuracy")
def test_it_predicts_loses_examinations_and_says_where_the_report_is(
    few_people, tmp_path, monkeypatch
):
    asked = {}

    def gather(posed, **given):
        asked.update(given, columns=posed.X.shape[1])
        return {"kind": "binary"}

    monkeypatch.setattr(report, "gather", gather)
    monkeypatch.setattr(report, "render", lambda found: "<!doctype html>")
    out = tmp_path / "demo"
    result = CliRunner().invoke(main, ["demo", "--out", str(out), "--epochs", "5"])
    assert result.exit_code == 0, result.output
    assert asked["columns"] == 36
    assert asked["folds"] == 0
    assert "500 adults, 36 columns from 9 examinations" in result.stdout
    for outage in ("nothing", "blood tests", "all but the interview", "the interview"):
        assert f"  {outage}  " in result.stdout
    assert "report.html: open it in a browser" in result.stdout.replace("\n", "")

    assert (out / "report.html").read_text() == "<!doctype html>"
    assert json.loads((out / "report.json").read_text()) == {"kind": "binary"}
    assert read_table(out / "new.csv").shape == (120, 37)
    assert read_table(out / "train.csv").shape == (380, 37)
    assert len(problem.read_modalities(out / "examinations.toml")) == 9
    model = load(out / "model.safetensors")
    assert model.classes_.tolist() == ["no", "yes"]
    for kind in (ConformalClassifier, SelectiveClassifier, AcquisitionPlan):
        kind.from_model(model)


def test_a_directory_that_is_a_file_is_refused(tmp_path):
    (tmp_path / "demo").write_text("")
    result = CliRunner().invoke(main, ["demo", "--out", str(tmp_path / "demo")])
    assert result.exit_code == 2
