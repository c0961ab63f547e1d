"""The study of uncertainty, on small tables."""

import json

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from studies import uncertainty
from studies.__main__ import main
from studies.runner import read


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Two tables of 600 rows, one for each task."""
    folder = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(0)
    entries = []
    for slug, task in (("number", "regression"), ("yesno", "binary")):
        frame = pd.DataFrame(rng.normal(size=(600, 3)), columns=["a", "b", "c"])
        score = frame["b"] + 0.3 * frame["a"]
        frame["target"] = (score > 0).astype("int8") if task == "binary" else score
        frame.to_parquet(folder / f"{slug}.parquet")
        entries.append({"slug": slug, "file": f"{slug}.parquet", "task": task})
        entries[-1]["categorical_columns"] = {}
    (folder / "index.json").write_text(json.dumps({"datasets": entries}))
    return folder


@pytest.mark.slow
def test_coverage_and_decisions_are_measured_on_tables(data, tmp_path):
    arguments = ["--data", data, "--models", "hgb", "--seeds", 1, "--jobs", 1]
    arguments += ["--parts", "coverage,decisions", "--tables", "number,yesno", "--out", tmp_path]
    result = CliRunner().invoke(main, ["uncertainty", *map(str, arguments)])
    assert result.exit_code == 0, result.output
    names = {path.name for path in tmp_path.iterdir()}
    assert {"summary.md", "decisions.png", "decisions.csv", "coverage_regression.csv"} <= names
    table = pd.read_csv(tmp_path / "coverage_classification.csv").set_index("method")
    assert 0.8 < table.loc["hgb/nearest", "0 %"] <= 1
    assert 0.8 < table.loc["hgb/nearest", "exact would have"] < 0.9
    found = pd.read_csv(tmp_path / "decisions.csv")
    assert set(found["strategy"]) == {"hgb", *uncertainty.MORE_RIVALS}
    rows = read(tmp_path).rows
    shares = rows[(rows["dataset"] == "number") & (rows["metric"] == "r2")]["ratio"]
    assert sorted(set(shares)) == list(uncertainty.SHARES)


def test_intervals_are_compared_with_the_best_ones(monkeypatch, data, tmp_path):
    monkeypatch.setattr(uncertainty, "SYNTHETIC_ROWS", (300, 150, 20))
    monkeypatch.setattr(uncertainty, "AUDITS", 0)
    uncertainty.run_study(
        tmp_path, data=str(data), parts=["synthetic"], models=["hgb"], repetitions=1
    )
    uncertainty.report(tmp_path)
    found = pd.read_csv(tmp_path / "synthetic.csv")
    oracle = found[found["strategy"] == "hgb/nearest"].set_index("missing values")["oracle"]
    assert oracle[0] == pytest.approx(3.29, abs=0.01)
    assert oracle.is_monotonic_increasing
    # Plain split intervals may be too short where much is missing; those by masks are not.
    by_masks = found[found["strategy"] == "hgb/nearest"]
    assert (by_masks["length / oracle"] > 0.8).all()


def test_the_informative_features_of_the_generated_tables():
    rng = np.random.default_rng(0)
    X, y = uncertainty.make_cube(4000, rng)
    for k in range(3):
        bits = ((y >> k) & 1).astype(bool)
        rows = y == 5
        assert X[rows, 5 + k].std() == pytest.approx(0.3, abs=0.03)
        assert np.abs(X[np.arange(len(y)), y + k][bits].mean() - 1) < 0.03
    X, y = uncertainty.make_cube(4000, rng, hidden=True)
    assert X.shape == (4000, 16)
    block = X[:, 15].astype(int)
    assert X[np.arange(4000), 3 * block][(y & 1) == 1].mean() == pytest.approx(1, abs=0.03)


def test_unknown_names_are_refused(data, tmp_path):
    with pytest.raises(ValueError, match="There is no part 'cover' here"):
        uncertainty.run_study(tmp_path, data=str(data), parts=["cover"])
    with pytest.raises(ValueError, match="There is no model 'svm' here"):
        uncertainty.run_study(tmp_path, data=str(data), models=["svm"])
