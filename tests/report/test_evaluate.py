"""Predictions of rows that are new to a model, their scores, and the words about them."""

import json
import re

import numpy as np
import pandas as pd
import pytest
import report_cases as cases

from promissing.io import define_task
from promissing.report import gather, render
from promissing.report.evaluate import Predictions, evaluate, predict_rows
from promissing.report.gather import as_json_types
from promissing.report.words import add_words


def test_every_row_is_predicted_by_a_network_trained_without_it():
    problem = define_task(cases.binary_frame(), "<i>relapse</i>")
    found, explained, _ = predict_rows(problem, folds=2, settings={**cases.TINY, "max_iter": 1})
    assert explained is found
    places = np.concatenate([rows for _, rows in found.models])
    assert sorted(places) == list(range(150))
    for model, rows in found.models:
        seen = np.delete(found.y, rows)
        shares = [(seen == label).mean() for label in model.classes_]
        np.testing.assert_allclose(model.prior_, shares, atol=1e-6)


def test_scores_are_compared_with_the_prior():
    found = cases.binary()["prediction"]
    by_name = {one["name"]: one for one in found["measures"]}
    assert by_name["AUC"]["value"] > 0.6
    assert by_name["AUC"]["baseline"] == 0.5
    assert by_name["accuracy"]["baseline"] < by_name["accuracy"]["value"]
    assert np.sum(found["confusion"]) == found["n"] == 150
    assert sum(one["n"] for one in found["by_missing"]) == 150
    assert sum(sum(group["counts"]) for group in found["histogram"]["groups"]) == 150


def predictions(y, output, known=None, std=None, labels=None):
    """Predictions without a model."""
    n = len(y)
    ones = np.ones(n)
    return Predictions(
        X=pd.DataFrame({"x": ones}),
        y=np.asarray(y),
        position=np.arange(n),
        models=(),
        classes=None if labels is None else np.asarray(labels),
        output=np.asarray(output, dtype=float),
        std=std,
        known_share=ones if known is None else np.asarray(known, dtype=float),
        folds=0,
    )


def worded(found, kind="binary", positive="yes"):
    """The headline and text of the sections on prediction, calibration and coverage."""
    report = as_json_types(evaluate(found))
    whole = cases.regression() if kind == "regression" else cases.binary()
    report = {**json.loads(json.dumps(whole)), **report, "kind": kind, "positive": positive}
    add_words(report)
    return report


def two(p):
    return np.column_stack([1 - p, p])


def test_calibration_is_tested_by_simulated_labels():
    rng = np.random.default_rng(0)
    y = np.where(rng.random(1000) < 0.09, "yes", "no")
    report = worded(predictions(y, two(np.full(1000, 0.02)), labels=["no", "yes"]))
    found = report["calibration"]
    assert found["upper"] < 0.02 < found["error"]
    assert found["headline"] == "The probabilities are worse than always predicting the prior"
    assert "The observed error is larger than that." in found["text"][0]
    assert "The log loss" in found["text"][1]
    assert "The log loss is worse than that of always predicting the prior." in report["summary"]
    p = rng.random(1000)
    y = np.where(rng.random(1000) < p, "yes", "no")
    found = worded(predictions(y, two(p), labels=["no", "yes"]))["calibration"]
    assert found["error"] <= found["upper"]
    assert found["headline"] == "The probabilities agree with the observed frequencies"
    assert len(found["text"]) == 1
    extreme = np.where(p > 0.5, p**0.5, 1 - (1 - p) ** 0.5)
    found = worded(predictions(y, two(extreme), labels=["no", "yes"]))["calibration"]
    assert found["headline"] == "The model is overconfident"


@pytest.mark.parametrize(
    ("by_share", "said"),
    [
        ([0.95, 0.8, 0.7, 0.6], "The certainty is lower in rows with more missing values"),
        ([0.6, 0.7, 0.8, 0.95], "The certainty is higher in rows with more missing values"),
        ([0.75, 0.75, 0.75, 0.75], "There is no evidence that the certainty depends"),
        ([0.95, 0.6, 0.6, 0.65], "not all means in the chart follow it"),
        # The ends differ by more than 0.01, and most rows say the opposite.
        ([0.72, 0.6, 0.75, 0.7], "The certainty is higher in rows with more missing values"),
    ],
)
def test_the_trend_is_tested_over_all_rows(by_share, said):
    rng = np.random.default_rng(0)
    counts = (20, 300, 300, 20) if by_share[0] == 0.72 else (100, 100, 100, 100)
    share = np.repeat([0.0, 0.2, 0.4, 0.6], counts)
    p = np.clip(np.repeat(by_share, counts) + rng.normal(0, 0.02, len(share)), 0.5, 1)
    y = np.where(rng.random(len(p)) < p, "yes", "no")
    text = worded(predictions(y, two(p), 1 - share, labels=["no", "yes"]))["prediction"]["text"]
    assert said in text[-1]
    assert re.search("p\u00a0[<=]", text[-1])


def test_no_trend_is_described_if_all_rows_are_complete():
    p = np.linspace(0.1, 0.9, 50)
    found = worded(predictions(np.where(p > 0.5, "yes", "no"), two(p), labels=["no", "yes"]))
    assert len(found["prediction"]["text"]) == 1


def test_rows_are_ranked_by_known_share_if_no_standard_deviation_is_predicted():
    rng = np.random.default_rng(0)
    known = np.repeat([1.0, 0.5, 0.0], [100, 60, 40])
    y = rng.normal(size=200)
    told = y + rng.normal(size=200) * (1.2 - known)
    found = predictions(y, told, known)
    report = worded(found, "regression", None)
    points = report["coverage"]["points"]
    assert [one["limit"] for one in points] == [0, 0.5, 1]
    assert [one["rows"] for one in points] == [200, 160, 100]
    size = np.abs(y - told)
    assert points[-1]["value"] == pytest.approx(size[:100].mean(), rel=1e-5)
    assert report["coverage"]["headline"].startswith("Leaving out the rows with most missing")
    assert "The error is higher in rows with more missing" in report["prediction"]["text"][-1]
    assert report["calibration"] is None
    assert "<h3>Error by predicted standard deviation" not in render(report)
    alike = worded(predictions(y, told), "regression", None)
    assert "cannot be ranked" in alike["coverage"]["headline"]
    render({**report, "coverage": alike["coverage"]})


def test_regression_has_its_own_measures():
    found = cases.regression()
    names = [one["name"] for one in found["prediction"]["measures"]]
    assert names[:2] == ["R2", "mean absolute error"]
    assert found["coverage"]["measure"] == "mean absolute error"
    assert len(found["calibration"]["bins"]) == 8
    page = render(found)
    assert "<h3>Error by predicted standard deviation</h3>" in page
    assert "spread" not in page.partition("<script")[0]


def test_rows_are_ranked_by_the_predicted_standard_deviation():
    rng = np.random.default_rng(0)
    std = np.repeat([0.5, 1.0, 2.0, 4.0], 100)
    told = rng.normal(size=400) * std
    report = worded(predictions(np.zeros(400), told, std=std), "regression", None)
    half = next(one for one in report["coverage"]["points"] if one["coverage"] == 0.5)
    assert (half["rows"], half["limit"]) == (200, 1)
    assert half["value"] == pytest.approx(np.abs(told[:200]).mean(), rel=1e-5)
    assert "the most uncertain rows lowers the error" in report["coverage"]["headline"]
    assert report["calibration"]["within"] == pytest.approx(0.95, abs=0.03)


def test_the_threshold_for_an_accuracy_is_named():
    rng = np.random.default_rng(0)
    p = np.concatenate([np.full(1000, 0.99), np.full(1000, 0.6)])
    y = np.where(rng.random(2000) < p, "yes", "no")
    report = worded(predictions(y, two(p), labels=["no", "yes"]))
    assert report["coverage"]["decided"] == 0.5
    assert "This decides 50\u00a0% of the rows." in report["coverage"]["text"][-1]
    report = worded(predictions(y[1000:], two(p[1000:]), labels=["no", "yes"]))
    assert "No threshold of the certainty reaches an accuracy" in report["coverage"]["text"][-1]


@pytest.mark.parametrize("report", [cases.binary, cases.regression, cases.several])
def test_sets_and_the_next_measurement_are_shown(report):
    found = report()
    sets, ahead = found["sets"], found["next_measurement"]
    assert sum(one["n"] for one in sets["by_missing"]) == 2 * sets["rows"]
    assert sets["rows"] == found["prediction"]["n"]
    assert 0.8 < sets["coverage"] <= 1
    assert all(row["set"] for row in found["rows"]["items"])
    assert ahead["order"][0]["gain"] > 0
    left = [one["left"] for one in ahead["order"]]
    assert left[-1] == pytest.approx(0, abs=1e-6)
    falls = [one["fall"] for one in ahead["outages"]]
    assert falls == sorted(falls, reverse=True)
    assert sorted(one["name"] for one in ahead["order"]) == sorted(
        one["name"] for one in ahead["outages"]
    )
    page = render(found)
    for title in ("Coverage by share of missing values", "Cost of losing a"):
        assert f"<h3>{title}" in page


def test_too_few_rows_for_sets_are_a_note():
    frame = cases.binary_frame()[:50]
    problem = define_task(frame, "<i>relapse</i>")
    found = gather(problem, frame=frame, strategies=None, folds=2, rows=5, settings=cases.TINY)
    assert found["sets"] is None
    assert any("too few rows for prediction sets" in note for note in found["notes"])
    assert "<h3>Coverage by share" not in render(found)
