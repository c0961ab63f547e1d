"""The runner: what is stored, what is refused, and that nothing is lost or left behind."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path

import joblib
import numpy as np
import pytest
import toy_study
from joblib.parallel import LokyBackend
from studies.runner import Batch, Outcome, ResultsError, Row, read, run
from toy_study import SETTINGS, batches

PROCESSES = pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="needs /proc")


def toy(out, todo=None, **keywords):
    keywords = {"settings": SETTINGS, "jobs": 1, **keywords}
    return run("toy", batches(4) if todo is None else todo, out, **keywords)


@pytest.fixture
def trace(tmp_path):
    (tmp_path / "trace").mkdir()
    return tmp_path / "trace"


def export(out):
    """All that must not depend on when, where and in how many pieces a study was run."""
    rows, arrays, _ = read(out)
    named = {
        (batch, name): (array.dtype.str, array.shape, array.tobytes())
        for batch, found in arrays.items()
        for name, array in found.items()
    }
    return rows.drop(columns="seconds").to_csv(float_format="%.17g"), named


def files(out):
    """Every file below a directory with its contents."""
    return {str(p.relative_to(out)): p.read_bytes() for p in Path(out).rglob("*") if p.is_file()}


# What is stored


def test_results_are_a_frame_and_a_file_per_batch(tmp_path):
    out = toy(tmp_path / "new" / "out").out
    frame = read(out).rows
    assert list(frame) == ["study", *Row._fields]
    assert len(frame) == 4 * 4
    assert set(frame["study"]) == {"toy"}
    assert frame["repetition"].dtype == frame["fold"].dtype == np.int64
    assert frame["value"].between(0, 1).all()
    batch_files = [f"batches/draw%2F{i:03d}.npz" for i in range(4)]
    assert sorted(files(out)) == [*batch_files, "run.json"]


def nothing(*, seed):
    row = Row("d", "m", np.float32(np.nan), "s", seed, 0, "auc", np.float32("nan"))
    return Outcome([row, row._replace(metric="smse", value=np.inf)][seed:])


def test_nan_comes_back_as_nan_and_infinity_as_infinity(tmp_path):
    rows = read(toy(tmp_path, batches(1, nothing)).out).rows
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
    found = read(toy(tmp_path, batches(1, kinds)).out).arrays["kinds/000"]
    for name, array in kinds(seed=0).arrays.items():
        assert found[name].dtype == array.dtype
        assert found[name].shape == array.shape
        np.testing.assert_array_equal(found[name], array)
        assert found[name].flags.writeable


def test_settings_versions_and_times_are_recorded_and_no_names_of_machines(tmp_path):
    summary = toy(tmp_path)
    about = read(summary.out).about
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
    again = read(summary.out).about
    assert len(again["runs"]) == 2
    assert again["started"] == about["started"]
    assert again["seconds"] > about["seconds"]
    assert again["n_done"] == 6


# How it is run


def test_results_depend_neither_on_jobs_nor_on_order(tmp_path):
    summary = toy(tmp_path / "one")
    toy(tmp_path / "two", jobs=2)
    toy(tmp_path / "back", [batch._replace(cost=i) for i, batch in enumerate(batches(4))])
    assert export(tmp_path / "one") == export(tmp_path / "two") == export(tmp_path / "back")
    assert summary[1:6] == (4, 4, 0, {}, {})
    assert not summary.interrupted


def test_work_has_one_native_thread_and_a_context_of_its_own(tmp_path):
    context = {"table": np.zeros(300_000)}
    for jobs in (1, 2):
        out = tmp_path / str(jobs)
        toy(out, batches(3, toy_study.threads), jobs=jobs)
        for found in read(out).arrays.values():
            assert set(found["threads"]) == {1}
        summary = toy(out / "s", batches(3, toy_study.scribble), context=context, jobs=jobs)
        assert not summary.failed
        assert set(read(summary.out).rows["value"]) == {300_000}
    assert not context["table"].any()


def test_the_most_expensive_batches_run_first(tmp_path, trace):
    toy(tmp_path / "out", batches(5), context={"trace": str(trace)})
    times = {p.name.split("-")[0]: p.stat().st_mtime_ns for p in trace.iterdir()}
    assert sorted(times, key=times.get) == list("21403")


class ListBackend(LokyBackend):
    """A backend that cannot return a generator, as that of Ray."""

    supports_return_generator = False


def test_a_backend_without_generators_gives_the_same_results(tmp_path):
    joblib.register_parallel_backend("lists", ListBackend)
    toy(tmp_path / "here", batches(9))
    with joblib.parallel_config("lists"):
        summary = toy(tmp_path / "there", batches(9) + batches(1, toy_study.fail), jobs=2)
    assert summary.n_done_now == 9
    assert list(summary.failed) == ["fail/000"]
    assert export(tmp_path / "here") == export(tmp_path / "there")


def test_what_fails_is_reported_and_what_is_skipped_recorded_and_both_are_tried_again(tmp_path):
    todo = batches(2) + batches(1, toy_study.fail) + batches(1, toy_study.skip)
    summary = toy(tmp_path, todo, jobs=2)
    assert summary.n_batches == 4
    assert summary.n_done_now == 2
    assert summary.failed == {"fail/000": "KeyError: 'no such table\\nand a second line'"}
    assert summary.skipped == {"skip/000": "the table is not on this machine"}
    about = read(summary.out).about
    assert about["skipped"] == summary.skipped
    assert about["n_done"] == 2
    todo[2] = todo[2]._replace(work=toy_study.draw)
    todo[3] = todo[3]._replace(arguments={"seed": 9, "absent": False})
    todo[2].arguments["seed"] = 8
    summary = toy(tmp_path, todo, resume=True)
    assert summary[1:6] == (4, 2, 2, {}, {})
    assert read(summary.out).about["skipped"] == {}


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
    assert failed["twice"] == "ResultsError: The batch has one of its results twice."
    assert "cannot be interpreted as an integer" in failed["half"]
    assert "could not convert string to float" in failed["text"]
    assert failed["short"].startswith("ValueError")
    assert failed["objects"] == "TypeError: Array 'a' must hold numbers or text. Received: object"
    assert read(tmp_path).rows.empty
    assert read(tmp_path).about["n_done"] == 0


def test_what_is_finished_is_not_done_again(tmp_path, trace):
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
    assert not {"numpy", "pandas", "sklearn", "jax"} & set(out.stdout.split())
    code = "import sys, studies.runner; print(*sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"pandas", "sklearn", "jax", "joblib", "rich"} & set(out.stdout.split())


# What is refused


def log(**changed):
    """A function that changes entries of run.json."""

    def change(out):
        path = out / "run.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | changed))

    return change


def cut_off(out):
    path = out / "batches" / "draw%2F001.npz"
    path.write_bytes(path.read_bytes()[:300])


def changed(**arguments):
    todo = batches(4)
    todo[2] = todo[2]._replace(arguments={"seed": 7})
    return todo


REFUSED = {
    "not resumed": (None, {"resume": False}, "Continue them with --resume, or choose another"),
    "no JSON": (lambda p: (p / "run.json").write_text("a,b"), {}, "run.json cannot be read as the"),
    "not ours": (lambda p: (p / "run.json").write_text("[7]"), {}, "run.json cannot be read as"),
    "empty": (lambda p: (p / "run.json").write_bytes(b""), {}, "run.json cannot be read as the"),
    "other protocol": (
        log(protocol=99),
        {},
        "follows version 99 of the protocol, and this program version 2: .* another --out",
    ),
    "other study": (log(study="other"), {}, "holds the study 'other', not 'toy'. Choose another"),
    "other settings": (
        None,
        {"settings": {"epochs": 20, "ratios": [0.1, 0.5], "gain": True}},
        "other settings: epochs was 400 and is 20; gain was not given and is true. Use the same",
    ),
    "other arguments": (
        None,
        {"todo": changed()},
        "batch 'draw/002' with other arguments: they were .*2} and are .*7}. Choose another --out",
    ),
    "batch gone": (None, {"todo": batches(3)}, "finished batch 'draw/003', which is not among"),
    "cut off": (cut_off, {}, "draw%2F001.npz cannot be read as .* Delete it, then .*--resume"),
}


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    return toy(tmp_path_factory.mktemp("finished")).out


@pytest.mark.parametrize("name", REFUSED)
def test_results_that_do_not_fit_are_refused_and_left_alone(name, finished, tmp_path):
    change, keywords, message = REFUSED[name]
    out = shutil.copytree(finished, tmp_path / "out")
    if change:
        change(out)
    before = files(out)
    with pytest.raises(ResultsError, match=message) as error:
        toy(out, **{"resume": True, **keywords})
    assert "\n" not in str(error.value)
    assert files(out) == before


BAD = {
    "names": ({"todo": batches(2) * 2}, "names must be unique. Received twice: 'draw/000'"),
    "arguments": ({"todo": batches(2, a=object())}, "arguments of batch 'draw/000' must be plain"),
    "nan": ({"todo": batches(2, a=np.nan)}, "arguments of batch 'draw/000' must be plain JSON"),
    "tuple": ({"todo": batches(2, a=(1, 2))}, "must be plain JSON values: lists, and keys"),
    "settings": ({"settings": {"epochs": np.int64(3)}}, "The settings must be plain JSON values"),
    "context": ({"context": {"seed": 3}}, "Batch 'draw/000' and the context both have 'seed'"),
    "jobs": ({"jobs": 0}, "`jobs` must be a positive integer or None. Received: 0"),
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
    with pytest.raises(ResultsError, match="file is a file, not a directory. Choose another"):
        toy(tmp_path / "file")
    with pytest.raises(ResultsError, match=r"Cannot write to the directory .*Not a directory"):
        toy(tmp_path / "file" / "out")

    def refuse(*_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)  # The tests may be run by root, whom nothing stops.
    with pytest.raises(ResultsError, match=r"Cannot write to the directory .*Permission denied"):
        toy(tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


def test_a_directory_without_results_is_not_read(tmp_path):
    with pytest.raises(FileNotFoundError, match="There are no results of a study in"):
        read(tmp_path)
    (tmp_path / "run.json").write_text("a,b\n" * 99)
    with pytest.raises(ResultsError, match="cannot be read as the record of a study"):
        read(tmp_path)


# What goes wrong on the way


def test_a_full_disk_costs_only_what_is_not_finished(tmp_path, monkeypatch):
    replace, n = os.replace, 0

    def refuse_later(draft, path):
        nonlocal n
        n += path.suffix == ".npz"
        if n > 5:
            raise OSError(28, "No space left on device")
        replace(draft, path)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", refuse_later)
        with pytest.raises(RuntimeError, match="No space left.*free some space, .*--resume") as e:
            toy(tmp_path / "out", batches(12), jobs=2)
    assert "\n" not in str(e.value)
    assert read(tmp_path / "out").about["n_done"] == 5
    assert not list(tmp_path.rglob("*.part"))
    toy(tmp_path / "out", batches(12), resume=True)
    toy(tmp_path / "whole", batches(12))
    assert export(tmp_path / "out") == export(tmp_path / "whole")


def test_a_worker_that_is_killed_ends_the_run_with_one_line(tmp_path):
    todo = batches(2) + [b._replace(cost=0) for b in batches(2, toy_study.crash)]
    with pytest.raises(RuntimeError, match="A worker was killed.* in batch '.*--resume") as error:
        toy(tmp_path, todo, jobs=2)
    assert "\n" not in str(error.value)
    assert read(tmp_path).about["n_done"] <= 2
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
    summary = toy(tmp_path, [batch._replace(cost=1) for batch in todo])
    assert summary.interrupted
    assert (summary.n_done_now, summary.skipped) == (2, {})
    assert len(read(summary.out).rows) == 2 * 4


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


@pytest.mark.slow
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
    with pytest.raises(ResultsError, match="Another run is writing to .*Wait until it ends, or"):
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
    about = read(tmp_path / "out").about
    assert about["n_done"] == summary["n_done_now"]
    assert 0 < about["n_done"] < 40 or early
    assert about["finished"]
