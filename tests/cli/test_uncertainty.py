"""The options --calibrate, --coverage and so on, and the commands next and drift."""

import json

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import promissing
from promissing.cli import main

N = 400


def run(*arguments, code=0):
    result = CliRunner().invoke(main, [str(a) for a in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == code, result.output
    return result


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A directory with a table, a calibrated model for classes and numbers, and a plain one."""
    path = tmp_path_factory.mktemp("uncertainty")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(N, 3)), columns=["age", "dose", "marker"])
    frame.insert(0, "id", [f"P{i}" for i in range(N)])
    score = 2 * frame["marker"] + 0.5 * rng.normal(size=N)
    lost = rng.random((N, 4)) < [0, 0.2, 0.2, 0.2]
    frame = frame.mask(lost).assign(length=score)
    frame["relapse"] = np.where(score > 0, "yes", "no")
    frame.to_csv(path / "table.csv", index=False)
    frame.assign(dose=np.nan).to_csv(path / "less.csv", index=False)
    common = [path / "table.csv", "--epochs", 40, "--members", 1, "--id", "id"]
    calibrated = [*common, "--calibrate", 0.4]
    classes = ["--target", "relapse", "--drop", "length"]
    run("fit", *calibrated, *classes, "--out", path / "classes.safetensors")
    run("fit", *common, *classes, "--out", path / "plain.safetensors")
    numbers = ["--target", "length", "--drop", "relapse"]
    run("fit", *calibrated, *numbers, "--out", path / "numbers.safetensors")
    return path


def read(result):
    return pd.read_csv(pd.io.common.StringIO(result.stdout), keep_default_na=False)


def test_fit_stores_the_calibration_in_the_file(place):
    model = promissing.load(place / "classes.safetensors")
    assert {"conformal", "selective", "acquisition"} <= set(model.calibration_)
    assert not promissing.load(place / "plain.safetensors").calibration_
    # Models are shared, and patients are not: no value of the table is in the file.
    assert b"P12" not in (place / "classes.safetensors").read_bytes()


def test_calibration_needs_enough_rows(place, tmp_path):
    pd.read_csv(place / "table.csv")[:60].to_csv(tmp_path / "few.csv", index=False)
    result = run(
        *("fit", tmp_path / "few.csv", "--target", "length", "--calibrate", 0.1),
        *("--out", tmp_path / "m.safetensors", "--epochs", 1),
        code=2,
    )
    assert "calibration" in result.stderr or "--calibrate" in result.stderr
    assert not (tmp_path / "m.safetensors").exists()


def test_predict_adds_sets_and_abstains(place):
    call = ["predict", place / "classes.safetensors", place / "table.csv"]
    made = read(run(*call, "--coverage", 0.8, "--abstain-accuracy", 0.9))
    assert set(made["set"]) <= {"no", "yes", "no; yes", "no, yes", "no|yes", "no or yes"}
    truth = pd.read_csv(place / "table.csv")["relapse"]
    hit = [true in own for true, own in zip(truth, made["set"], strict=True)]
    assert np.mean(hit) > 0.75
    blank = made["prediction"] == ""
    assert 0 < blank.sum() < N
    assert (made["reason"] != "")[blank].all()
    assert made["unsure"][blank].all()
    decided = made["prediction"][~blank]
    assert (decided == truth[~blank]).mean() > 0.9
    wider = read(run(*call, "--coverage", 0.99))
    assert (wider["set"].str.len() >= made["set"].str.len()).all()


def test_predict_adds_intervals_and_abstains_by_width(place):
    call = ["predict", place / "numbers.safetensors", place / "table.csv"]
    made = read(run(*call, "--coverage", 0.9))
    truth = pd.read_csv(place / "table.csv")["length"]
    assert ((made["lower"] <= truth) & (truth <= made["upper"])).mean() > 0.85
    limit = float((made["upper"] - made["lower"]).median())
    abstaining = read(run(*call, "--max-width", limit))
    wide = made["upper"] - made["lower"] > limit
    assert "lower" not in abstaining
    empty = made["known"] == 0
    assert ((abstaining["prediction"] == "") == (wide | empty)).all()
    assert abstaining["reason"][wide & ~empty].str.startswith("interval width").all()
    assert (abstaining["reason"][empty] == "no value is known").all()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--coverage", 0.9], "--coverage needs a calibrated model"),
        (["--abstain-accuracy", 0.9], "--abstain-accuracy needs a calibrated model"),
        (["--max-width", 1], "--max-width is for regression"),
        (["--coverage", 1], "--coverage"),
    ],
)
def test_predict_refuses_what_the_model_does_not_provide(place, options, said):
    result = run("predict", place / "plain.safetensors", place / "table.csv", *options, code=2)
    assert said in result.stderr


def test_max_spread_is_deprecated(place):
    result = run(
        *("predict", place / "numbers.safetensors", place / "table.csv", "--max-spread", 1), code=2
    )
    assert "--max-spread is deprecated" in result.stderr


def test_next_lists_missing_values_in_the_order_to_obtain_them(place, tmp_path):
    model, table = place / "classes.safetensors", place / "table.csv"
    records = json.loads(run("next", model, table, "--json").stdout)["records"]
    frame = pd.read_csv(table)
    lost = frame[["age", "dose", "marker"]].isna().sum(axis=1)
    found = pd.DataFrame(records)
    assert (found.groupby("row").size() == lost[lost > 0]).all()
    first = found[found["rank"] == 1].set_index("row")["group"]
    assert (first[frame["marker"].isna()] == "marker").all()
    assert found["id"].tolist() == [f"P{row}" for row in found["row"]]
    out = tmp_path / "next.csv"
    run("next", model, table, "--background", table, "--costs", "marker=1000", "--out", out)
    costly = pd.read_csv(out)
    first = costly[costly["rank"] == 1].set_index("row")["group"]
    several = lost[(lost > 1) & frame["marker"].isna()].index
    assert (first[several] != "marker").all()
    said = run("next", model, table, "--rows", "0,1,2").stdout
    assert "Row 0" in said
    assert "Row 3" not in said


def test_next_needs_an_order_or_a_background(place):
    result = run("next", place / "plain.safetensors", place / "table.csv", code=2)
    assert "--background" in result.stderr
    assert "--calibrate" in result.stderr
    unknown = ["--background", place / "table.csv", "--costs", "blood=2"]
    result = run("next", place / "plain.safetensors", place / "table.csv", *unknown, code=2)
    assert "blood" in result.stderr
    result = run("next", place / "plain.safetensors", place / "table.csv", "--costs", "a", code=2)
    assert "NAME=COST" in result.stderr


def test_drift_names_the_columns_that_changed(place, tmp_path):
    model, plot = place / "plain.safetensors", tmp_path / "drift.png"
    said = json.loads(run("drift", model, place / "less.csv", "--json", "--plot", plot).stdout)
    changed = {line["feature"]: line["drifted"] for line in said["columns"]}
    assert changed == {"age": False, "dose": True, "marker": False}
    assert said["rows"] == N
    assert said["joint_p_value"] < 0.01
    assert plot.read_bytes()[:4] == b"\x89PNG"
    same = run("drift", model, place / "table.csv").stdout
    assert "0 of 3 columns are missing more or less often" in same
