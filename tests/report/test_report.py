"""The report: what is gathered, what is drawn, and what the command writes."""

import json
import re

import numpy as np
import pandas as pd
import pytest
import report_cases as cases
from click.testing import CliRunner

from promissing.cli import main
from promissing.estimators.fusion import build
from promissing.io.task import pose
from promissing.report import classes, gather, numbers, render
from promissing.report.browsing import _pick
from promissing.report.charts import Plot, ticks
from promissing.report.formats import count, listed, number, p_value, percent, plain
from promissing.report.judging import Judged, judge
from promissing.report.render import embedded
from promissing.report.words import put_into_words

SECTIONS = ("missing", "prediction", "calibration", "fading", "coverage", "drivers", "browsing")
REPORTS = [cases.binary, cases.regression, cases.several]


@pytest.fixture(scope="module")
def page():
    return render(cases.binary())


@pytest.mark.parametrize("report", REPORTS)
def test_the_dict_is_plain(report):
    found = report()
    assert json.loads(json.dumps(found, allow_nan=False)) == found


@pytest.mark.parametrize("report", REPORTS)
def test_every_section_says_something(report):
    found, page = report(), render(report())
    for name in SECTIONS:
        assert found[name]["headline"], name
        assert all(found[name]["text"]), name
        assert f'<section id="{name}"' in page
    assert '<section id="made"' in page
    assert "nan" not in found["summary"].lower()


def test_the_same_seed_gives_the_same_report():
    frame = cases.binary_frame()
    asked = {"strategies": None, "folds": 2, "rows": 10, "settings": {**cases.TINY, "max_iter": 2}}
    first, second = (gather(pose(frame, "<i>relapse</i>"), frame=frame, **asked) for _ in range(2))
    assert {**first, "made": None} == {**second, "made": None}


def test_every_row_is_judged_by_networks_that_have_not_seen_it():
    problem = pose(cases.binary_frame(), "<i>relapse</i>")
    found, asked, _ = judge(problem, folds=3, settings={**cases.TINY, "max_iter": 1})
    assert asked is found
    places = np.concatenate([rows for _, rows in found.parts])
    assert sorted(places) == list(range(150))
    for model, rows in found.parts:
        seen = np.delete(found.y, rows)
        shares = [(seen == label).mean() for label in model.classes_]
        np.testing.assert_allclose(model.prior_, shares, atol=1e-6)


def test_what_it_predicts_is_judged_beside_the_prior():
    found = cases.binary()["prediction"]
    by_name = {one["name"]: one for one in found["measures"]}
    assert by_name["AUC"]["value"] > 0.6
    assert by_name["AUC"]["baseline"] == 0.5
    assert by_name["accuracy"]["baseline"] < by_name["accuracy"]["value"]
    assert np.sum(found["confusion"]) == found["n"] == 150
    assert sum(one["n"] for one in found["by_missing"]) == 150
    assert sum(sum(group["counts"]) for group in found["histogram"]["groups"]) == 150


def judged(y, output, known=None, spread=None, labels=None):
    """Rows as they were predicted by nobody in particular."""
    n = len(y)
    ones = np.ones(n)
    return Judged(
        X=pd.DataFrame({"x": ones}),
        y=np.asarray(y),
        place=np.arange(n),
        parts=(),
        classes=None if labels is None else np.asarray(labels),
        output=np.asarray(output, dtype=float),
        spread=ones if spread is None else np.asarray(spread, dtype=float),
        known=ones if known is None else np.asarray(known, dtype=float),
        folds=0,
    )


def worded(found, kind="binary", positive="yes"):
    """The headline and text of the sections on prediction, calibration and coverage."""
    part = numbers if kind == "regression" else classes
    sections = ("prediction", "calibration", "coverage")
    report = plain({name: getattr(part, name)(found) for name in sections})
    whole = cases.regression() if kind == "regression" else cases.binary()
    report = {**json.loads(json.dumps(whole)), **report, "kind": kind, "positive": positive}
    put_into_words(report)
    return report


def two(p):
    return np.column_stack([1 - p, p])


def test_calibration_is_judged_by_simulated_labels():
    rng = np.random.default_rng(0)
    y = np.where(rng.random(1000) < 0.09, "yes", "no")
    report = worded(judged(y, two(np.full(1000, 0.02)), labels=["no", "yes"]))
    found = report["calibration"]
    assert found["upper"] < 0.02 < found["error"]
    assert found["headline"] == "Its probabilities are worse than always predicting the prior"
    assert "the error is larger than that" in found["text"][0]
    assert "The log loss" in found["text"][1]
    assert "Its log loss is worse than that of always predicting the prior." in report["summary"]
    p = rng.random(1000)
    y = np.where(rng.random(1000) < p, "yes", "no")
    found = worded(judged(y, two(p), labels=["no", "yes"]))["calibration"]
    assert found["error"] <= found["upper"]
    assert found["headline"] == "Its probabilities agree with what came true"
    assert len(found["text"]) == 1
    extreme = np.where(p > 0.5, p**0.5, 1 - (1 - p) ** 0.5)
    found = worded(judged(y, two(extreme), labels=["no", "yes"]))["calibration"]
    assert found["headline"] == "It is overconfident"


@pytest.mark.parametrize(
    ("by_share", "said"),
    [
        ([0.95, 0.8, 0.7, 0.6], "It is less certain of rows with more missing values"),
        ([0.6, 0.7, 0.8, 0.95], "It is more certain of rows with more missing values"),
        ([0.75, 0.75, 0.75, 0.75], "There is no evidence that its certainty depends"),
        ([0.95, 0.6, 0.6, 0.65], "the chart does not follow it throughout"),
        # The ends differ by more than 0.01, and most rows say the opposite.
        ([0.72, 0.6, 0.75, 0.7], "It is more certain of rows with more missing values"),
    ],
)
def test_the_trend_is_tested_over_all_rows(by_share, said):
    rng = np.random.default_rng(0)
    counts = (20, 300, 300, 20) if by_share[0] == 0.72 else (100, 100, 100, 100)
    share = np.repeat([0.0, 0.2, 0.4, 0.6], counts)
    p = np.clip(np.repeat(by_share, counts) + rng.normal(0, 0.02, len(share)), 0.5, 1)
    y = np.where(rng.random(len(p)) < p, "yes", "no")
    text = worded(judged(y, two(p), 1 - share, labels=["no", "yes"]))["prediction"]["text"]
    assert said in text[-1]
    assert re.search("p\u00a0[<=]", text[-1])


def test_nothing_is_said_of_a_trend_where_all_rows_are_complete():
    p = np.linspace(0.1, 0.9, 50)
    found = worded(judged(np.where(p > 0.5, "yes", "no"), two(p), labels=["no", "yes"]))
    assert len(found["prediction"]["text"]) == 1


def test_a_row_of_which_nothing_is_known_is_never_accepted_for_its_small_spread():
    rng = np.random.default_rng(0)
    known = np.repeat([1.0, 0.5, 0.0], [100, 60, 40])
    y = rng.normal(size=200)
    told = y + rng.normal(size=200) * (1.2 - known)
    found = judged(y, told, known, spread=known * rng.random(200))  # 0 where nothing is known.
    report = worded(found, "regression", None)
    points = report["coverage"]["points"]
    assert [one["limit"] for one in points] == [0, 0.5, 1]
    assert [one["rows"] for one in points] == [200, 160, 100]
    size = np.abs(y - told)
    assert points[-1]["value"] == pytest.approx(size[:100].mean(), rel=1e-5)
    assert report["coverage"]["headline"].startswith("Leaving out the rows with most missing")
    assert "Its errors are larger in rows with more missing" in report["prediction"]["text"][-1]
    text = " ".join(report["calibration"]["text"])
    assert "a diagnostic and not the uncertainty of a prediction" in text
    assert "spread" not in " ".join(one["label"] for one in report["figures"])
    alike = worded(judged(y, told), "regression", None)
    assert "cannot be ranked" in alike["coverage"]["headline"]
    render({**report, "coverage": alike["coverage"]})


def test_the_positive_class_is_chosen_and_named():
    frame = cases.binary_frame().rename(columns={"<i>relapse</i>": "relapse"})
    frame["relapse"] = frame["relapse"].map({"no": "disease", "yes & <b>bold</b>": "healthy"})
    asked = {"strategies": None, "folds": 2, "rows": 30, "settings": {**cases.TINY, "max_iter": 9}}
    default, chosen = (
        gather(pose(frame, "relapse"), frame=frame, positive=positive, **asked)
        for positive in (None, "disease")
    )
    assert (default["positive"], chosen["positive"]) == ("healthy", "disease")
    assert chosen["classes"] == ["healthy", "disease"]
    assert "The positive class is \u201cdisease\u201d." in chosen["summary"]
    for one, other in zip(default["browsing"]["items"], chosen["browsing"]["items"], strict=True):
        assert one["id"] == other["id"]
        assert one["prediction"] == pytest.approx(1 - other["prediction"], abs=1e-5)
        kind = chosen["browsing"]["outcomes"][other["outcome"]]["name"]
        right = "true" if other["truth"] == other["decision"] else "false"
        sign = "positive" if other["decision"] == "disease" else "negative"
        assert kind == f"{right} {sign} for disease"
    a, b = (found["prediction"]["measures"][0]["value"] for found in (default, chosen))
    assert a == pytest.approx(b)
    counts = np.array(chosen["prediction"]["confusion"])
    assert counts[::-1, ::-1].tolist() == default["prediction"]["confusion"]
    page = render(chosen)
    assert "by the probability of disease" in page
    assert "AUC for \u201cdisease\u201d" in page
    for target, message in (("crp", "'crp' holds numbers"), ("ward", "'ward' has 3 classes")):
        with pytest.raises(ValueError, match=f"`positive` names one of two classes, .*{message}"):
            gather(pose(frame, target, kinds={"crp": "number"}), positive="x", **asked)
    with pytest.raises(ValueError, match=r"`positive` must be one of .*'relapse'.*Received: 'flu'"):
        gather(pose(frame, "relapse"), positive="flu", **asked)


def test_bars_tell_what_would_be_said_without():
    found = cases.binary()["browsing"]
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


def test_numbers_have_measures_of_their_own():
    found = cases.regression()
    names = [one["name"] for one in found["prediction"]["measures"]]
    assert names[:2] == ["R2", "mean absolute error"]
    assert found["coverage"]["measure"] == "mean absolute error"
    assert len(found["calibration"]["bins"]) == 8
    assert "<h3>Errors by how far the networks disagree</h3>" in render(found)


def test_modalities_are_taken_away_whole_and_column_by_column():
    found = cases.regression()
    assert found["unit"] == "modality"
    assert [one["unit"] for one in found["drivers"]["levels"]] == ["modality", "column"]
    assert found["browsing"]["levels"][0]["groups"] == list(cases.MODALITIES)
    assert found["fading"]["groups"] == 2


def test_several_classes_and_a_sample_of_the_rows():
    found = cases.several()
    assert found["kind"] == "multiclass"
    assert np.shape(found["prediction"]["confusion"]) == (3, 3)
    assert [one["name"] for one in found["calibration"]["by_class"]] == ["high", "low", "middle"]
    assert found["made"]["rows"] == 120
    assert "120 of 150 rows, drawn at random" in found["made"]["sampling"][0]
    assert "120 of 150 rows, drawn at random" in render(found)


def test_the_comparison_is_there_if_asked_for(page):
    found = cases.binary()["comparison"]
    assert {one["strategy"] for one in found["items"]} == {"mean", "hgb"}
    assert '<section id="comparison"' in page
    assert cases.several()["comparison"] is None
    assert 'id="comparison"' not in render(cases.several())
    assert "#comparison" not in render(cases.several())


def test_suspected_sentinels_are_pointed_out(page):
    assert "<code>-999</code>" in page
    assert "--missing-values" in page


def test_nothing_of_the_table_is_markup(page):
    assert "alert(1)" in page
    assert "<script>alert" not in page
    assert "</script><b>" not in page
    for markup in ("<i>relapse", "<b>bold", "<b>signs", "P<0", "<co>", "x<y>"):
        assert markup not in page
    assert len(re.findall(r"<script\b", page)) == 2
    assert "\u2028" not in page[page.index('id="data"') :]


def test_the_page_asks_for_nothing_else(page):
    links = re.findall(r'(?:src|href)="([^"]*)"', page)
    assert {link[:5] for link in links if not link.startswith("#")} == {"data:"}
    assert "url(" not in page.replace("url(#hatch", "")
    assert "@import" not in page
    assert "default-src 'none'" in page


def test_charts_can_be_read_aloud(page):
    for svg in re.findall(r'<svg class="chart".*?</svg>', page, flags=re.S):
        assert re.search(
            r'role="img" aria-labelledby="([\w-]+)-t \1-d"><title id="\1-t">.+</title>', svg
        )
    ids = re.findall(r'\bid="([^"]+)"', page)
    assert len(ids) == len(set(ids))


def test_the_page_stays_small_for_wide_tables_and_many_rows():
    found = json.loads(json.dumps(cases.binary()))
    browsing = found["browsing"]
    item = browsing["items"][0]
    bars = [[g, -0.123456, 1, "some value of the table"] for g in range(30)]
    item["bars"][0] = {"bars": bars, "more": 70, "unknown": list(range(30, 130))}
    browsing["levels"][0]["groups"] = [f"a column of some length {k}" for k in range(200)]
    browsing["items"] = [item] * 2000
    assert len(render(found).encode()) < 5e6


def test_rows_of_every_kind_are_shown():
    outcome = np.repeat([0, 1, 2, 3], [5000, 4000, 30, 2])
    shown = np.bincount(outcome[_pick(outcome, 200, 0)])
    assert shown.tolist() == [84, 84, 30, 2]
    assert _pick(outcome[:50], 200, 0).tolist() == list(range(50))


def test_rows_keep_their_place_in_the_file():
    frame = cases.binary_frame().drop(columns="patient")
    frame.loc[:9, "<i>relapse</i>"] = None
    asked = {"strategies": None, "folds": 2, "rows": 5, "settings": {**cases.TINY, "max_iter": 1}}
    found = gather(pose(frame, "<i>relapse</i>"), frame=frame, max_rows=50, **asked)
    names = [int(one["id"]) for one in found["browsing"]["items"]]
    assert min(names) >= 10
    assert max(names) <= 149
    assert found["missing"]["rows"] == 150
    assert any("10 of 150 rows lack the target" in note for note in found["notes"])


def test_a_given_model_is_explained_and_its_settings_are_scored(tmp_path):
    frame = cases.binary_frame().rename(columns={"<i>relapse</i>": "relapse"})
    table, model, out = (tmp_path / name for name in ("t.csv", "m.safetensors", "r.html"))
    frame.to_csv(table, index=False)
    problem = pose(frame, "relapse")
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
    assert found["made"]["settings"]["max_iter"] == "2"
    told = run("report", less, *asked, "--held-out", "--out", out, "--json-out", facts)
    assert told.exit_code == 0, told.output
    found = json.loads(facts.read_text())
    assert found["prediction"]["folds"] == 0
    assert "The table lacks 'crp': unknown in every row." in found["notes"]
    assert found["made"]["command"].startswith("promissing report less.csv --out r.html --target")
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
        ("success", ("--out", "r.html", "--held-out"), "--held-out is about a --model"),
        ("success", ("--out", "r.html", "--compare", "men"), "There is no strategy 'men'"),
        ("success", ("--out", "r.html", "--compare", "mean", "--no-compare"), "not both"),
        ("success", ("--out", "r.html", "--model", "no.safetensors"), "no.safetensors"),
        ("one", ("--out", "r.html"), "one class only"),
        ("rare", ("--out", "r.html"), "has 1 rows, fewer than the 5 folds"),
    ],
)
def test_bad_input_ends_in_one_line_and_no_file(target, words, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    columns = {"success": ["a", "b"] * 20, "one": ["x"] * 40, "rare": ["a"] * 39 + ["b"]}
    pd.DataFrame({"x": np.arange(40) / 3, **columns}).to_csv("t.csv", index=False)
    told = run("report", "t.csv", "--target", target, *words)
    assert told.exit_code == 2, told.output
    assert said in told.stderr
    assert "Traceback" not in told.stderr
    assert not (tmp_path / "r.html").exists()


def test_ticks_are_round():
    assert ticks(0, 1) == pytest.approx([0, 0.2, 0.4, 0.6, 0.8, 1])
    assert ticks(3, 41) == pytest.approx([10, 20, 30, 40])
    assert ticks(2, 2) == [2]


def test_text_in_charts_is_escaped():
    plot = Plot("a", "<t>", "<d>", x=(0, 0), y=(0, 1), x_label="<x>", y_label="&y")
    plot.point(0, 0, "main", "<tip>")
    plot.label(0, 0, "<label>")
    svg = plot.svg()
    for markup in ("<t>", "<d>", "<x>", "<tip>", "<label>"):
        assert markup not in svg
    assert "&amp;y" in svg


def test_data_cannot_end_their_script():
    text = embedded({"</script>": "<!-- & \u2028\u2029"})
    assert not set("<>&\u2028\u2029") & set(text)
    assert json.loads(text) == {"</script>": "<!-- & \u2028\u2029"}


def test_numbers_as_people_read_them():
    assert [percent(x).replace("\u00a0", " ") for x in (0, 0.001, 0.125, 0.999, 1, None)] == [
        *("0 %", "< 1 %", "12 %", "> 99 %", "100 %", "\u2013")
    ]
    assert [number(x) for x in (0, 0.12345, 1234.5, -3, 2.5e-7, float("nan"))] == [
        *("0", "0.123", "1,234", "\u22123.00", "2.50e\u221207", "\u2013")
    ]
    assert [p_value(x) for x in (0.0001, 0.034, None)] == ["< 0.001", "0.034", "\u2013"]
    assert (count(1, "row"), count(1200, "row")) == ("1 row", "1,200 rows")
    assert listed(["a", "b", "c"]) == "a, b and c"
    assert listed(list("abcdef")) == "a, b, c and 3 more"
    assert plain({1: np.float32(0.5), "x": [np.nan, pd.NA, np.int64(3), pd.Timestamp(0)]}) == {
        "1": 0.5,
        "x": [None, None, 3, "1970-01-01 00:00:00"],
    }
