"""The benchmark on tables, from gaps to figures, on tables small enough for a test."""

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from killing import kill_and_resume
from studies import openml, openml_report
from studies import openml_tasks as tasks
from studies.openml import make_plan
from studies.openml_tasks import Unit, World
from studies.runner import Row, read

FEW = ("full", "mean", "hgb", "promissing")
QUICK = {"epochs": 2, "jobs": 1, "repetitions": 1, "ratios": (0.25,), "progress": False}


@pytest.fixture(autouse=True)
def nothing_in_the_environment(monkeypatch):
    monkeypatch.delenv("PROMISSING_DATA", raising=False)
    yield
    tasks.load.cache_clear()  # By name: the next test has other tables of the same name.
    tasks.ranking.cache_clear()


def write_table(folder, slug, task, *, n=61, corrupt=False, gaps=False):
    rng = np.random.default_rng(len(slug))
    frame = pd.DataFrame(rng.normal(5, 2, (n, 3)), columns=["a", "b", "c"])
    frame["kind"] = pd.Categorical(rng.choice(["x", "y", "z"], n))
    score = frame["b"] + 0.3 * frame["a"]
    frame["target"] = (score > 6.5).astype("int8") if task == "binary" else score
    if gaps:
        frame.loc[3, "a"] = np.nan
    path = folder / f"{slug}.parquet"
    frame.to_parquet(path)
    if corrupt:
        path.write_bytes(path.read_bytes()[:100])
    return {"slug": slug, "file": path.name, "task": task, "categorical_columns": {"kind": {}}}


@pytest.fixture
def data(tmp_path):
    folder = tmp_path / "data"
    folder.mkdir()
    tasks_of = {"yesno": "binary", "number": "regression"}
    write_index(folder, [write_table(folder, slug, task) for slug, task in tasks_of.items()])
    return folder


def write_index(folder, entries):
    (folder / "index.json").write_text(json.dumps({"datasets": entries}))


def world(task="binary", n=61):
    rng = np.random.default_rng(1)
    X = rng.normal(5, 2, (n, 3))
    y = (X[:, 1] > 5).astype(float) if task == "binary" else 100 + 7 * X[:, 1]
    return World("w", task, X, y, ())


def ready(name, w, X, fold=0, seed=0):
    train, test = tasks.split(w, 0, seed)[fold]
    return tasks.prepare(Unit(name, 0.5, 0, fold), w, X, train, test, 31, seed), train, test


# ------------------------------------------------------------------------------- one network


def test_values_are_lost_in_the_most_informative_column_of_the_whole_table():
    w = world()
    for mechanism in tasks.MECHANISMS:
        lost = tasks.lose(w.X, mechanism, 0.5, [1, 2, 0], 0, 0)
        assert np.isnan(lost).sum(axis=0).tolist() == [0, 30, 0]
    mar = np.isnan(tasks.lose(w.X, "mar", 0.5, [1, 2, 0], 0, 0)[:, 1])
    ranks = w.X[:, 2].argsort().argsort()[mar]
    assert np.ptp(ranks) == 29
    several = tasks.lose(w.X, "grid-0.75", 0.5, [], 0, 0)
    assert sorted(np.isnan(several).sum(axis=0)) == [0, 30, 30]


def test_zero_is_a_raw_zero_and_everything_is_standardised_after_filling():
    w = world()
    X = tasks.lose(w.X, "mcar", 0.5, [1], 0, 0)
    (job, *_), train, test = ready("zero", w, X)
    filled = np.nan_to_num(X)
    expected = (filled - filled[train].mean(axis=0)) / filled[train].std(axis=0)
    np.testing.assert_allclose(job.X, expected[train], rtol=1e-5)
    np.testing.assert_allclose(job.others[: len(test)], expected[test], rtol=1e-5)
    assert not job.others[len(test) :].any()
    assert job.hidden == (1, 2)


def test_gaps_are_left_to_native_strategies_on_observed_means():
    w = world()
    X = tasks.lose(w.X, "mcar", 0.5, [1], 0, 0)
    (job, *_), train, _ = ready("promissing", w, X)
    np.testing.assert_array_equal(np.isnan(job.X), np.isnan(X[train]))
    np.testing.assert_allclose(np.nanmean(job.X, axis=0), 0, atol=1e-6)
    np.testing.assert_allclose(np.nanstd(job.X, axis=0), 1, rtol=1e-5)


def test_the_target_of_a_regression_is_standardised_on_the_training_fold():
    w = world("regression")
    (job, mean, scale), train, _ = ready("full", w, w.X)
    np.testing.assert_allclose([job.y.mean(), job.y.std()], [0, 1], atol=1e-5)
    np.testing.assert_allclose(job.y * scale + mean, w.y[train], rtol=1e-5)


def test_who_has_nothing_to_learn_from_scores_as_the_prior():
    for task, expected in (("binary", 0.5), ("regression", 1.0)):
        w = world(task)
        X = np.where(np.arange(3) == 1, np.nan, w.X)
        assert ready("complete-case", w, X)[0] is None
        assert ready("drop-features", w, np.full_like(X, np.nan))[0] is None
        units = [Unit("complete-case", 0.5, 0, f) for f in (0, 1)]
        folds = {0: tasks.split(w, 0, 0)}
        found = list(tasks._score_nets(units, w, {(0.5, 0): X}, folds, 1, 0))
        np.testing.assert_allclose([value for _, value, _ in found], expected, rtol=0.2)


def test_a_diverged_network_is_recorded_as_such(monkeypatch, data):
    real = tasks.run_jobs

    def explode(jobs, recipe):
        return [one._replace(outputs=one.outputs * np.nan) for one in real(jobs, recipe)]

    monkeypatch.setattr(tasks, "run_jobs", explode)
    arguments = {"ratios": [0.0], "repetitions": [0], "names": ["full"], "max_rows": None}
    found = tasks.score("number", "none", **arguments, epochs=1, seed=0, data=str(data))
    assert [(row.metric, row.fold) for row in found.rows] == [
        *[("smse", 0), ("diverged", 0)],
        *[("smse", 1), ("diverged", 1)],
    ]
    assert np.isnan([row.value for row in found.rows[::2]]).all()


def test_a_repetition_has_one_seed_for_all_strategies_and_mechanisms():
    w = world()
    jobs = {}
    for name in ("full", "mean", "promissing"):
        X = w.X if name == "full" else tasks.lose(w.X, "mcar", 0.5, [1], 3, 0)
        jobs[name] = ready(name, w, X)[0].job
    assert len({job.seed for job in jobs.values()}) == 1
    one, two = (tasks.split(w, 4, 0) for _ in range(2))
    np.testing.assert_array_equal(one[0][0], two[0][0])
    assert not np.array_equal(one[0][0], tasks.split(w, 5, 0)[0][0])
    np.testing.assert_array_equal(
        tasks.lose(w.X, "mnar", 0.5, [1], 3, 0), tasks.lose(w.X, "mnar", 0.5, [1], 3, 0)
    )


def test_networks_that_are_the_same_are_trained_once(monkeypatch):
    w, trained = world(), []
    real = tasks.run_jobs

    def count(jobs, recipe):
        trained.append(len(jobs))
        return real(jobs, recipe)

    monkeypatch.setattr(tasks, "run_jobs", count)
    gaps = {(ratio, 0): tasks.lose(w.X, "mcar", ratio, [1], 0, 0) for ratio in (0.25, 0.5)}
    units = [Unit("drop-features", ratio, 0, f) for ratio in (0.25, 0.5) for f in (0, 1)]
    found = list(tasks._score_nets(units, w, gaps, {0: tasks.split(w, 0, 0)}, 1, 0))
    assert trained == [2]
    assert [unit for unit, *_ in found] == units
    values = [value for _, value, _ in found]
    assert values[:2] == values[2:]
    assert values[0] != values[1]


def test_nominal_columns_are_codes_and_large_tables_a_random_part(data):
    loaded = tasks.load("yesno", None, 0, str(data))
    assert loaded.X.shape == (61, 4)
    assert set(loaded.X[:, 3]) == {0, 1, 2}
    assert loaded.nominal == (3,)
    part = tasks.load("yesno", 40, 0, str(data))
    assert len(part.X) == len(part.y) == 40
    assert set(map(tuple, part.X)) < set(map(tuple, loaded.X))


def test_tables_too_large_for_memory_are_trained_in_parts(monkeypatch):
    w = world()
    monkeypatch.setattr(tasks, "BYTES", 4 * w.X.size * 3)
    names = ("mean", "promissing", "mpromissing")
    units = [Unit(name, 0.5, r, 0) for name in names for r in range(2)]
    parts = list(tasks._parts(units, w))
    assert [len(part) for part in parts] == [3, 1, 2]
    assert [unit for part in parts for unit in part] == units


# ------------------------------------------------------------------------------------- study


def test_the_study_and_its_report(data, tmp_path):
    out = tmp_path / "out"
    how = QUICK | {"names": FEW, "mechanisms": ("mcar", "mar"), "data": data}
    summary = openml.run_study(out, **how)
    assert not summary.skipped
    assert not summary.failed
    results = read(out).rows
    assert set(results["mechanism"]) == {"none", "mcar", "mar"} | {
        f"grid-{share}" for share in ("0.1", "0.25", "0.5", "0.75", "1")
    }
    none = results[results["mechanism"] == "none"]
    assert set(none["strategy"]) == {"full", "random-forest", "hgb"}
    assert set(results[results["mechanism"] == "mar"]["strategy"]) == set(FEW) - {"full"}
    assert len(results) == 2 * 2 * (3 + 2 * 3 + 5 * 3)
    assert set(results[results["dataset"] == "yesno"]["metric"]) == {"auc"}
    assert set(results[results["dataset"] == "number"]["metric"]) == {"smse"}
    assert (results["seconds"] > 0).all()

    openml_report.report(out)
    made = {path.name for path in out.iterdir()}
    drawn = ("drops", "grid", "baseline", "ranks", "tables")
    pictures = {f"{name}.png" for name in drawn}
    tables = {f"{name}.{kind}" for name in (*drawn, "wins", "seconds") for kind in ("csv", "md")}
    assert pictures | tables <= made
    assert "HGB, own" in (out / "drops.md").read_text()
    again = openml.run_study(out, **how, resume=True)
    assert again.n_done_now == 0


def test_more_repetitions_leave_the_first_as_it_was(data, tmp_path):
    how = QUICK | {"names": ("mean", "promissing"), "mechanisms": ("mnar",), "grid": False}
    how |= {"tables": ["yesno"], "data": data}
    openml.run_study(tmp_path / "one", **how)
    openml.run_study(tmp_path / "two", **how | {"repetitions": 2})
    one, two = (read(tmp_path / name).rows for name in ("one", "two"))
    two = two[two["repetition"] == 0].reset_index(drop=True)
    left = ["value", "seconds"]
    pd.testing.assert_frame_equal(one.drop(columns=left), two.drop(columns=left))
    np.testing.assert_allclose(one["value"], two["value"], atol=1e-3)


def test_every_strategy_takes_part(data, tmp_path):
    names = ("complete-case", "drop-features", "knn", "iterative", "gain", "mean+share")
    names += ("mean+indicator", "mpromissing", "fpromissing")
    openml.run_study(
        tmp_path, data=data, tables=["yesno"], names=names, mechanisms=("mar",), **QUICK
    )
    found = read(tmp_path).rows
    with_gaps = found[found["mechanism"] != tasks.COMPLETE]
    assert set(with_gaps["strategy"]) == set(names)
    assert with_gaps["value"].between(0, 1).all()
    assert (with_gaps["seconds"] > 0).all()


def test_a_killed_study_goes_on_where_it_was_with_nothing_done_twice(data, tmp_path):
    chosen = {"names": ("mean", "promissing"), "mechanisms": ("mcar",), "grid": False}
    openml.run_study(tmp_path / "whole", data=data, tables=["yesno"], **chosen, **QUICK)
    arguments = [
        "openml",
        "--tables",
        "yesno",
        "--data",
        data,
        "--strategies",
        "mean,promissing",
        "--mechanisms",
    ]
    arguments += ["mcar", "--no-grid", "--epochs", 2, "--repetitions", 1, "--ratios", 0.25]
    kill_and_resume([*arguments, "--jobs", 2], tmp_path / "killed")
    one, two = (read(tmp_path / name).rows for name in ("whole", "killed"))
    pd.testing.assert_frame_equal(one.drop(columns="seconds"), two.drop(columns="seconds"))


def test_what_cannot_be_had_or_read_is_named_and_the_rest_goes_on(data, tmp_path):
    entries = json.loads((data / "index.json").read_text())["datasets"]
    entries += [
        write_table(data, "broken", "binary", corrupt=True),
        write_table(data, "holes", "binary", gaps=True),
        write_table(data, "pollen", "binary"),
    ]
    write_index(data, entries)
    how = QUICK | {"names": ("promissing",), "mechanisms": ("mcar",), "grid": False, "data": data}
    tables = ["number", "broken", "holes", "wilt"]
    summary = openml.run_study(tmp_path / "out", tables=tables, **how)
    assert set(summary.failed) == {"broken"}
    assert "broken.parquet cannot be read" in summary.failed["broken"]
    assert set(summary.skipped) == {"holes", "wilt"}
    assert "1 missing values of its own" in summary.skipped["holes"]
    assert "Table 'wilt' is not in" in summary.skipped["wilt"]
    assert set(read(tmp_path / "out").rows["dataset"]) == {"number"}


def test_by_default_all_tables_but_those_the_paper_leaves_out(data):
    entries = json.loads((data / "index.json").read_text())["datasets"]
    write_index(data, [*entries, write_table(data, "pollen", "binary")])
    how = {"names": FEW, "mechanisms": ("mcar",), "ratios": (0.5,), "repetitions": 5, "data": data}
    plan = make_plan(**how)
    assert plan.settings["tables"] == ["yesno", "number"]
    assert [b.name for b in plan.batches if b.name.startswith("yesno/mcar")] == [
        "yesno/mcar/000",
        "yesno/mcar/004",
    ]
    assert make_plan(tables=["pollen"], **how).settings["tables"] == ["pollen"]
    assert all(batch.cost > 0 for batch in plan.batches)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"tables": ["yesnoo"]}, "There is no table 'yesnoo'. Did you mean 'yesno'"),
        ({"tables": []}, "Name at least one table."),
        ({"tables": ["wilt"]}, "Not one table can be used. Table 'wilt' is not in"),
        (
            {"tables": ["holes"]},
            "Not one table can be used. Table 'holes' has 1 missing",
        ),
        ({"names": ["men"]}, "There is no strategy 'men'"),
        ({"mechanisms": ["nmar"]}, "There is no mechanism 'nmar'"),
        ({"ratios": [2.0]}, "A ratio must lie between 0 and 1. Received: 2.0"),
        ({"repetitions": 0}, "`repetitions` must be at least 1. Received: 0"),
        ({"max_rows": 3}, "`max_rows` must be at least 20. Received: 3"),
        ({"data": Path("nowhere")}, "nowhere is not a directory"),
    ],
)
def test_bad_input_is_one_clear_error_and_nothing_written(data, tmp_path, changed, message):
    entries = json.loads((data / "index.json").read_text())["datasets"]
    write_index(data, [*entries, write_table(data, "holes", "binary", gaps=True)])
    with pytest.raises(ValueError, match=re.escape(message)):
        openml.run_study(tmp_path / "out", **{"data": data} | QUICK | changed)
    assert not (tmp_path / "out").exists()


def test_the_estimate_says_how_long_before_anything_starts(data):
    how = {"names": FEW, "data": data, "repetitions": 1, "epochs": 2, "jobs": 1}
    found = openml.estimate(**how)
    assert 0 < found.seconds < 600
    assert set(found.parts) == {"none", "mcar", "mar", "mnar", "grid"}
    assert found.n_batches == 2 * 9
    lines = str(found).splitlines()
    assert re.fullmatch(r"About .* with 1 jobs, 18 batches\.", lines[0])
    assert lines[1].startswith("By part, of one core: none ")


# ------------------------------------------------------------------------------------ report


def results_of(values):
    """A results frame from (table, metric, mechanism, strategy, repetition) to a score."""
    lines = [
        (table, mechanism, 0.0 if mechanism == "none" else 0.5, name, r, fold, metric, value, 1.0)
        for (table, metric, mechanism, name, r), value in values.items()
        for fold in (0, 1)
    ]
    return pd.DataFrame(lines, columns=Row._fields)


def made_up(rng, n_tables=5, repetitions=2):
    return {
        (f"t{t}", metric, mechanism, name, r): rng.random()
        for t in range(n_tables)
        for metric in (("auc",) if t < n_tables - 2 else ("smse",))
        for mechanism in ("none", "mcar")
        for name in (("full", "hgb", "random-forest") if mechanism == "none" else
                     ("mean", "hgb", "promissing"))
        for r in range(repetitions)
    }  # fmt: skip


def test_a_drop_is_the_median_over_tables_then_the_mean_over_repetitions():
    values = made_up(np.random.default_rng(0))
    summary = openml_report.summarise(openml_report.drops(results_of(values)))
    by = summary.set_index(["metric", "strategy", "against"])
    for name, against, reference in (("mean", "net", "full"), ("hgb", "net", "full"),
                                     ("hgb", "own", "hgb")):  # fmt: skip
        lost = np.array([
            [values[f"t{t}", "auc", "none", reference, r] - values[f"t{t}", "auc", "mcar", name, r]
             for t in range(3)]
            for r in range(2)
        ])  # fmt: skip
        medians = np.median(lost, axis=1)
        line = by.loc["auc", name, against]
        assert line["drop"] == pytest.approx(np.mean(medians))
        assert line["sd"] == pytest.approx(np.std(medians, ddof=1))
        assert line["tables"] == 3
    worse = values["t3", "smse", "mcar", "mean", 0] - values["t3", "smse", "none", "full", 0]
    found = openml_report.drops(results_of(values)).set_index(["dataset", "strategy", "against"])
    assert found.loc[("t3", "mean", "net"), "drop"].iloc[0] == pytest.approx(worse)
    assert not (summary["strategy"] == "mean").mul(summary["against"] == "own").any()


def test_a_diverged_network_is_worse_than_all_and_a_median_bears_it():
    values = made_up(np.random.default_rng(0), repetitions=1)
    values["t0", "auc", "mcar", "mean", 0] = np.nan
    found = openml_report.drops(results_of(values))
    mine = found[(found["dataset"] == "t0") & (found["strategy"] == "mean")]
    assert np.isinf(mine["drop"]).all()
    summary = openml_report.summarise(found).set_index(["metric", "strategy", "against"])
    assert np.isfinite(summary.loc["auc", "mean", "net"]["drop"])
    ranked = openml_report.ranks(results_of({k: v for k, v in values.items() if k[0] == "t0"}))
    assert ranked["strategy"].iloc[-1] == "mean"
    renamed = found.assign(mechanism="grid-0.5")
    averaged = openml_report.grid(renamed).set_index(["metric", "strategy", "against"])
    line = averaged.loc["auc", "mean", "net"]
    assert line["diverged"] == 1
    rest = found[(found["metric"] == "auc") & (found["strategy"] == "mean")]["drop"]
    assert line["drop"] == pytest.approx(rest[np.isfinite(rest)].mean())


def test_ranks_are_means_over_tables_with_an_interval_of_tables():
    rank = {"mean": [1, 2, 3], "hgb": [2, 1, 1], "promissing": [3, 3, 2]}
    values = {
        (f"t{t}", "auc", "mcar", name, 0): 1 - places[t] / 10
        for name, places in rank.items()
        for t in range(3)
    }
    ranked = openml_report.ranks(results_of(values)).set_index("strategy")
    for name, places in rank.items():
        assert ranked.loc[name, "rank"] == pytest.approx(np.mean(places))
        assert min(places) <= ranked.loc[name, "low"] <= ranked.loc[name, "rank"]
        assert ranked.loc[name, "rank"] <= ranked.loc[name, "high"] <= max(places)
    assert set(ranked["metric"]) == {"auc"}
    assert list(ranked.index) == ["hgb", "mean", "promissing"]


def test_wins_draws_and_losses_are_counted_by_table_and_lower_errors_win():
    mine = {"a": ("auc", 0.8), "b": ("auc", 0.8), "c": ("smse", 0.2), "d": ("smse", 0.2)}
    other = {"a": 0.7, "b": 0.8004, "c": 0.3, "d": 0.1}
    values = {}
    for table, (metric, score) in mine.items():
        values[table, metric, "mnar", "promissing", 0] = score
        values[table, metric, "mnar", "mean", 0] = other[table]
    wins = openml_report.compare(results_of(values))
    line = wins[wins["mechanism"] == "all"].iloc[0]
    assert line[["ours", "rival", "wins", "ties", "losses"]].tolist() == [
        *("promissing", "mean"), *(2, 1, 1)]  # fmt: skip
    assert set(wins["mechanism"]) == {"all", "mnar"}
