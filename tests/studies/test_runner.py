"""The runner: what is stored, what is refused, and that nothing is lost or left behind."""

import contextlib
import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import time
import uuid
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import toy_study
from studies import _opening, runner, store
from studies.runner import Batch, Outcome, ResultsError, Row, run
from toy_study import SETTINGS, batches

PROCESSES = pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="needs /proc")


def toy(out, todo=None, **keywords):
    keywords = {"settings": SETTINGS, "jobs": 1, **keywords}
    return run("toy", batches(4) if todo is None else todo, out, **keywords)


def export(out):
    """All that must not depend on when, where and in how many pieces a study was run."""
    path = Path(out, "results.sqlite")
    rows = runner.read(path).drop(columns="seconds")
    arrays = {
        (batch, name): (array.dtype.str, array.shape, array.tobytes())
        for batch, named in runner.read_arrays(path).items()
        for name, array in named.items()
    }
    return rows.to_csv(float_format="%.17g"), arrays


# What is stored


def test_results_are_one_line_of_pandas_away(tmp_path):
    path = toy(tmp_path / "new" / "out").path
    with contextlib.closing(sqlite3.connect(path)) as connection:
        frame = pd.read_sql("select * from results", connection)
    assert list(frame) == ["study", *Row._fields]
    assert len(frame) == 4 * 4
    assert set(frame["study"]) == {"toy"}
    assert frame["repetition"].dtype == frame["fold"].dtype == np.int64
    assert frame["value"].between(0, 1).all()
    assert [p.name for p in path.parent.iterdir()] == ["results.sqlite"]


def nothing(*, seed):
    row = Row("d", "m", np.float32(np.nan), "s", seed, 0, "auc", np.float32("nan"))
    return Outcome([row, row._replace(metric="smse", value=np.inf)][seed:])


def test_nan_comes_back_as_nan_and_infinity_as_infinity(tmp_path):
    rows = runner.read(toy(tmp_path, batches(1, nothing)).path)
    assert np.isnan(rows["ratio"]).all()
    np.testing.assert_array_equal(rows["value"], [np.nan, np.inf])
    assert rows["seconds"].dtype == float


def kinds(*, seed):
    return Outcome([], {
        "scalar": np.float32(0.1), "empty": np.empty((0, 3)), "text": np.array(["a", "bc"]),
        "fortran": np.asfortranarray(np.arange(6.0).reshape(2, 3)), "flags": np.array([True]),
        "big": np.arange(3, dtype=">i2"),
    })  # fmt: skip


def test_arrays_come_back_bit_for_bit_and_may_be_written_to(tmp_path):
    found = runner.read_arrays(toy(tmp_path, batches(1, kinds)).path)["kinds/000"]
    for name, array in kinds(seed=0).arrays.items():
        assert found[name].dtype == array.dtype
        assert found[name].shape == array.shape
        np.testing.assert_array_equal(found[name], array)
        assert found[name].flags.writeable


def test_settings_versions_and_times_are_recorded_and_no_names_of_machines(tmp_path):
    summary = toy(tmp_path)
    about = runner.read_about(summary.path)
    assert about["study"] == "toy"
    assert about["settings"] == SETTINGS
    assert about["versions"]["python"] == ".".join(map(str, sys.version_info[:3]))
    assert about["versions"]["numpy"] == np.__version__
    assert set(about["versions"]) >= {"scipy", "scikit-learn", "jax", "optax", "promissing"}
    assert set(about["platform"]) == {"system", "machine", "cores"}
    assert about["jobs"] == 1
    assert 0 < about["seconds"] <= summary.seconds
    assert about["started"] <= about["finished"]
    assert about["n_done"] == 4
    toy(tmp_path, batches(6), resume=True)
    again = runner.read_about(summary.path)
    assert len(again["runs"]) == 2
    assert again["started"] == about["started"]
    assert again["seconds"] > about["seconds"]
    assert again["n_done"] == 6


def test_the_file_is_marked_as_ours(tmp_path):
    connection = sqlite3.connect(toy(tmp_path).path)
    assert connection.execute("PRAGMA application_id").fetchone() == (store.APPLICATION,)
    assert connection.execute("PRAGMA user_version").fetchone() == (store.PROTOCOL,)
    connection.close()


# How it is run


def test_neither_jobs_nor_order_has_a_say_in_the_results(tmp_path):
    summary = toy(tmp_path / "one")
    toy(tmp_path / "two", jobs=2)
    toy(tmp_path / "back", order=lambda batch: batch.name[::-1], jobs=1)
    assert export(tmp_path / "one") == export(tmp_path / "two") == export(tmp_path / "back")
    assert summary[1:6] == (4, 4, 0, {}, {})
    assert not summary.interrupted


def test_work_has_one_native_thread_and_a_context_of_its_own(tmp_path):
    context = {"table": np.zeros(300_000)}
    for jobs in (1, 2):
        out = tmp_path / str(jobs)
        toy(out, batches(3, toy_study.threads), jobs=jobs)
        for found in runner.read_arrays(out / "results.sqlite").values():
            assert set(found["threads"]) == {1}
        summary = toy(out / "s", batches(3, toy_study.scribble), context=context, jobs=jobs)
        assert not summary.failed
        assert set(runner.read(summary.path)["value"]) == {300_000}
    assert not context["table"].any()


def test_the_costliest_come_first(tmp_path):
    toy(tmp_path, batches(5))
    connection = sqlite3.connect(tmp_path / "results.sqlite")
    names = [name for (name,) in connection.execute("SELECT name FROM batches ORDER BY rowid")]
    connection.close()
    assert names == [f"draw/{i:03d}" for i in (2, 1, 4, 0, 3)]


def test_what_fails_is_reported_and_what_is_skipped_recorded_and_both_are_tried_again(tmp_path):
    todo = batches(2) + batches(1, toy_study.fail) + batches(1, toy_study.skip)
    summary = toy(tmp_path, todo, jobs=2)
    assert summary.n_batches == 4
    assert summary.n_done_now == 2
    assert summary.failed == {"fail/000": "KeyError: 'no such table\\nand a second line'"}
    assert summary.skipped == {"skip/000": "the table is not on this machine"}
    about = runner.read_about(summary.path)
    assert about["skipped"] == summary.skipped
    assert about["n_done"] == 2
    todo[2] = todo[2]._replace(work=toy_study.draw)
    todo[3] = todo[3]._replace(arguments={"seed": 9, "absent": False})
    todo[2].arguments["seed"] = 8
    summary = toy(tmp_path, todo, resume=True)
    assert summary[1:6] == (4, 2, 2, {}, {})
    assert runner.read_about(summary.path)["skipped"] == {}


def give(*, what):
    row = Row("d", "m", 0.5, "s", 0, 0, "auc", 0.5)
    if what == "leave":
        sys.exit("enough")
    return {
        "number": 3,
        "twice": Outcome([row, row]),
        "half": Outcome([row._replace(fold=0.5)]),
        "text": Outcome([row._replace(value="high")]),
        "short": Outcome([row[:5]]),
        "objects": Outcome([], {"a": np.array([None])}),
    }[what]


def test_an_outcome_that_cannot_be_stored_is_a_failure_and_leaves_no_trace(tmp_path):
    names = ["leave", "number", "twice", "half", "text", "short", "objects"]
    failed = toy(tmp_path, [Batch(name, give, {"what": name}) for name in names]).failed
    assert failed["leave"] == "SystemExit: enough"
    assert failed["number"] == "TypeError: A batch must return an Outcome. Received: int"
    assert failed["twice"] == "ResultsError: one of its results is there already, or twice"
    assert "cannot be interpreted as an integer" in failed["half"]
    assert "could not convert string to float" in failed["text"]
    assert failed["short"].startswith("ValueError")
    assert failed["objects"] == "TypeError: Array 'a' must hold numbers or text. Received: object"
    path = tmp_path / "results.sqlite"
    assert runner.read(path).empty
    assert runner.read_about(path)["n_done"] == 0


def test_what_is_finished_is_not_done_again(tmp_path):
    trace = tmp_path / "trace"
    trace.mkdir()
    toy(tmp_path / "out", batches(2), context={"trace": str(trace)})
    summary = toy(tmp_path / "out", batches(5), context={"trace": str(trace)}, resume=True)
    assert (summary.n_done_now, summary.n_done_before) == (3, 2)
    assert sorted(p.name.split("-")[0] for p in trace.iterdir()) == list("01234")
    summary = toy(tmp_path / "out", batches(5), resume=True, jobs=2)
    assert (summary.n_done_now, summary.n_done_before) == (0, 5)
    toy(tmp_path / "whole", batches(5), resume=True)
    assert export(tmp_path / "out") == export(tmp_path / "whole")


def test_progress_is_shown_when_asked_for_and_not_to_a_file(tmp_path, capsys):
    toy(tmp_path / "a", progress=True)
    assert re.search(r"toy 4/4 batches .*0:00:0", capsys.readouterr().err)
    toy(tmp_path / "b")
    assert capsys.readouterr() == ("", "")


def test_importing_it_loads_nothing_heavy():
    code = "import sys, studies; print(*sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"numpy", "pandas", "sklearn", "jax", "sqlite3"} & set(out.stdout.split())
    code = "import sys, studies.runner; print(*sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"pandas", "sklearn", "jax", "joblib", "rich"} & set(out.stdout.split())


# What is refused


def other_study(path):
    connection = sqlite3.connect(path)
    connection.execute("UPDATE runs SET study = 'other'")
    connection.commit()
    connection.close()


def pragma(path, text):
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA {text}")
    connection.close()


def changed(**arguments):
    todo = batches(4)
    todo[2] = todo[2]._replace(arguments={"seed": 7})
    return todo


REFUSED = {
    "not resumed": (None, {"resume": False}, "exists. Give --resume to go on with it, or another"),
    "no database": (lambda p: p.write_text("a,b\n" * 99), {}, "cannot be read as an SQLite file"),
    "not ours": (lambda p: pragma(p, "application_id = 7"), {}, "but not one with results of pro"),
    "empty": (lambda p: p.write_bytes(b""), {}, "but not one with results of promissing"),
    "other protocol": (
        lambda p: pragma(p, "user_version = 99"),
        {},
        "follows version 99 of the protocol, and this promissing version 1: .* another --out",
    ),
    "other study": (other_study, {}, "holds the study 'other', not 'toy'. Give another --out"),
    "other settings": (
        None,
        {"settings": {"epochs": 20, "ratios": [0.1, 0.5], "gain": True}},
        "other settings: epochs was 400 and is 20; gain was not given and is true. Give the same",
    ),
    "other arguments": (
        None,
        {"todo": changed()},
        "batch 'draw/002' with other arguments: they were .*2} and are .*7}. Give another --out",
    ),
    "batch gone": (None, {"todo": batches(3)}, "finished batch 'draw/003', which is not among"),
    "cut off": (
        lambda p: p.write_bytes(p.read_bytes()[:5000]),
        {},
        "cannot be used|cannot be read as an SQLite file",
    ),
}


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    return toy(tmp_path_factory.mktemp("finished")).path


@pytest.mark.parametrize("name", REFUSED)
def test_a_file_that_does_not_fit_is_refused_and_left_alone(name, finished, tmp_path):
    change, keywords, message = REFUSED[name]
    path = tmp_path / "results.sqlite"
    path.write_bytes(finished.read_bytes())
    if change:
        change(path)
    before = path.read_bytes()
    with pytest.raises(ResultsError, match=message) as error:
        toy(tmp_path, **{"resume": True, **keywords})
    assert "\n" not in str(error.value)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["results.sqlite"]


BAD = {
    "names": ({"todo": batches(2) * 2}, "names must be unique. Received twice: 'draw/000'"),
    "arguments": ({"todo": batches(2, a=object())}, "arguments of batch 'draw/000' must be plain"),
    "nan": ({"todo": batches(2, a=np.nan)}, "arguments of batch 'draw/000' must be plain JSON"),
    "tuple": ({"todo": batches(2, a=(1, 2))}, "must be plain JSON values: lists, and keys"),
    "settings": ({"settings": {"epochs": np.int64(3)}}, "The settings must be plain JSON values"),
    "context": ({"context": {"seed": 3}}, "Batch 'draw/000' and the context both have 'seed'"),
    "jobs": ({"jobs": 0}, "`jobs` must be a whole number from 1, or None. Received: 0"),
    "none": ({"todo": []}, "There is nothing to run: no batches were given"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_refused_before_there_is_a_file(name, tmp_path):
    keywords, message = BAD[name]
    with pytest.raises(ResultsError, match=message) as error:
        toy(tmp_path / "out", **keywords)
    assert "\n" not in str(error.value)
    assert not list(tmp_path.iterdir())


def test_a_place_that_cannot_be_written_to_is_refused(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    with pytest.raises(ResultsError, match="file is a file, not a directory. Give another --out"):
        toy(tmp_path / "file")
    with pytest.raises(ResultsError, match=r"Cannot write to the directory .*Not a directory"):
        toy(tmp_path / "file" / "out")

    def refuse(*_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)  # The tests may be run by root, whom nothing stops.
    with pytest.raises(ResultsError, match=r"Cannot write to the directory .*Permission denied"):
        toy(tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


def test_what_is_no_results_file_is_not_read(tmp_path):
    with pytest.raises(FileNotFoundError, match="There is no file"):
        runner.read(tmp_path / "results.sqlite")
    (tmp_path / "text").write_text("a,b\n" * 99)
    with pytest.raises(ResultsError, match="cannot be read as an SQLite file"):
        runner.read_about(tmp_path / "text")


# What goes wrong on the way


def test_a_full_disk_costs_only_what_is_not_finished(tmp_path, monkeypatch):
    def small(path):
        connection = store.connect(path)
        connection.execute("PRAGMA max_page_count = 22")
        return connection

    with monkeypatch.context() as patch:
        patch.setattr(_opening, "connect", small)
        with pytest.raises(RuntimeError, match="disk is full.*is kept: make room, .*--resume") as e:
            toy(tmp_path / "out", batches(12), jobs=2)
    assert "\n" not in str(e.value)
    assert 0 < runner.read_about(tmp_path / "out" / "results.sqlite")["n_done"] < 12
    toy(tmp_path / "out", batches(12), resume=True)
    toy(tmp_path / "whole", batches(12))
    assert export(tmp_path / "out") == export(tmp_path / "whole")


def test_a_worker_that_is_killed_ends_the_run_with_one_line(tmp_path):
    todo = batches(2) + [b._replace(cost=0) for b in batches(2, toy_study.crash)]
    with pytest.raises(RuntimeError, match="A worker was killed.* in batch '.*--resume") as error:
        toy(tmp_path, todo, jobs=2)
    assert "\n" not in str(error.value)
    assert runner.read_about(tmp_path / "results.sqlite")["n_done"] <= 2
    todo = batches(2) + batches(2, toy_study.fail)
    assert len(toy(tmp_path, todo, jobs=2, resume=True).failed) == 2


def press_ctrl_c(*, seed):
    signal.raise_signal(signal.SIGINT)


@pytest.fixture
def ctrl_c_interrupts():
    """In the background shells have Ctrl-C ignored, and Python leaves it so."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("ctrl_c_interrupts")
def test_ctrl_c_without_workers_keeps_what_is_finished(tmp_path):
    todo = batches(2) + batches(1, press_ctrl_c) + batches(1, toy_study.skip)
    summary = toy(tmp_path, todo, order=lambda batch: 0)
    assert summary.interrupted
    assert (summary.n_done_now, summary.skipped) == (2, {})
    assert len(runner.read(summary.path)) == 2 * 4


class Study:
    """The toy study in a process of its own, whose descendants are known by a mark."""

    def __init__(self, out, trace, n, seconds, *options):
        self.mark = f"TOY_STUDY={uuid.uuid4().hex}"
        here = os.pathsep.join(map(str, Path(__file__).parents[1:3]))
        name, _, value = self.mark.partition("=")
        self.process = subprocess.Popen(
            [sys.executable, "-c", "import toy_study; toy_study.main()"]
            + [str(option) for option in (out, trace, n, seconds, *options)],
            env={**os.environ, name: value, "PYTHONPATH": here, "PYTHONWARNINGS": "error"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def alive(self):
        """The processes with the mark, trackers of resources included."""
        found = []
        for path in Path("/proc").glob("[0-9]*/environ"):
            try:
                if self.mark.encode() in path.read_bytes().split(b"\0"):
                    found.append(int(path.parent.name))
            except OSError:  # It has just ended.
                continue
        return found

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        self.process.stderr.close()
        return wait_until(lambda: not self.alive())


def wait_until(true, seconds=60):
    """Whether it came true; most things here take less than a second on a machine at leisure."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if true():
            return True
        time.sleep(0.02)
    return False


@pytest.fixture
def trace(tmp_path):
    (tmp_path / "trace").mkdir()
    return tmp_path / "trace"


@PROCESSES
def test_killed_ten_times_it_gives_what_an_undisturbed_run_gives(tmp_path, trace):
    rng = np.random.default_rng(0)
    out, n = tmp_path / "out", 90
    started = killed_at_work = 0
    for i in range(10):
        study = Study(out, trace, n, 0.1)
        if i % 2:  # Amid the work ...
            assert wait_until(lambda: len(os.listdir(trace)) > started)  # noqa: B023
            time.sleep(rng.uniform(0, 0.4))
        else:  # ... or whenever, as a rule before.
            time.sleep(rng.uniform(0, 1.2))
        killed_at_work += study.process.poll() is None
        assert study.kill(), "processes were left behind"
        started = len(os.listdir(trace))
    assert killed_at_work == 10
    summary = toy(out, batches(n), resume=True)
    assert 0 < summary.n_done_before < n
    assert summary.n_done_now + summary.n_done_before == n
    toy(tmp_path / "whole", batches(n))
    assert export(out) == export(tmp_path / "whole")


@PROCESSES
def test_two_runs_at_once_are_refused_and_workers_end_amid_a_call_with_their_parent(
    tmp_path, trace
):
    study = Study(tmp_path / "out", trace, 2, 1, "hold")
    assert wait_until(lambda: len(os.listdir(trace)) == 2)
    assert len(study.alive()) >= 3
    with pytest.raises(ResultsError, match="Another run is writing to .*Wait for its end, or give"):
        toy(tmp_path / "out", batches(2, toy_study.hold), resume=True)
    assert study.kill()
    summary = toy(tmp_path / "out", batches(2, toy_study.hold), resume=True)
    assert summary.n_done_now == 2


@pytest.mark.usefixtures("ctrl_c_interrupts")
@PROCESSES
@pytest.mark.parametrize("moment", ["early", "at work"])
def test_ctrl_c_keeps_what_is_finished_and_is_quiet(moment, tmp_path, trace):
    early = moment == "early"
    study = Study(tmp_path / "out", trace, 40, 0.2, *["interrupt"] * early)
    if not early:
        assert wait_until(lambda: len(os.listdir(trace)) > 4)
        os.killpg(study.process.pid, signal.SIGINT)
    out, err = study.process.communicate(timeout=60)
    assert err == ""
    summary = json.loads(out)
    assert summary["interrupted"]
    assert wait_until(lambda: not study.alive())
    about = runner.read_about(tmp_path / "out" / "results.sqlite")
    assert about["n_done"] == summary["n_done_now"]
    assert 0 < about["n_done"] < 40 or early
    assert about["finished"]
