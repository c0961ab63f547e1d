"""The commands describe, simulate, fit, predict and explain."""

import json
import os
import re
import shlex
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import promissing
from promissing.cli import main
from promissing.cli._options import one_line_errors, with_option_names
from promissing.cli._terminal import printable
from promissing.cli.simulate import MECHANISMS
from promissing.missingness import NAMES

DOCUMENT = Path(__file__).parents[2] / "docs" / "cli.md"
N = 150


def run(*arguments, code=0, **options):
    """Run a command; it ends as expected, and never with a traceback."""
    result = CliRunner().invoke(main, [str(a) for a in arguments], **options)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == code, result.output
    return result


def refused(*arguments, **options):
    """The one line a command that was refused says on standard error."""
    result = run(*arguments, code=2, **options)
    (line,) = [line for line in result.stderr.splitlines() if line.startswith("Error: ")]
    assert "Traceback" not in result.output
    assert not result.stdout
    return line


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A directory with a table, its modalities, and a model of each kind."""
    path = tmp_path_factory.mktemp("cli")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "id": [f"{i:04}" for i in range(N)],
            "age": rng.normal(50, 10, N),
            "marker": rng.normal(size=N),
            "ward": rng.choice(["north", "south"], N),
            "code": rng.choice(["007", "010", "x1"], N),
        }
    )
    score = frame["marker"] + 0.3 * rng.normal(size=N)
    frame = frame.mask(rng.random(frame.shape) < [0, 0.2, 0.2, 0.2, 0.2])
    frame["relapse"] = np.where(score > 0, "yes", "no")
    frame["length"] = 3 * score + 10
    frame.to_csv(path / "table.csv", index=False)
    (path / "m.toml").write_text(
        '[modalities]\nperson = ["age", "ward"]\nblood = ["marker", "code"]\n'
    )
    common = [path / "table.csv", "--epochs", 60, "--members", 2]
    for name, options in {
        "classes": ["--target", "relapse", "--drop", "length,id"],
        "number": ["--target", "length", "--drop", "relapse,id"],
        "fusion": ["--target", "relapse", "--modalities", path / "m.toml"],
    }.items():
        run("fit", *common, *options, "--out", path / f"{name}.safetensors")
    return path


def test_help_and_completion_load_click_and_rich_only():
    """In half a second; the least of a few, as the machine has other things to do."""
    code = (
        "import sys; from click.testing import CliRunner; from promissing.cli import main; "
        "assert 'describe' in CliRunner().invoke(main, ['--help']).output; "
        "from click.shell_completion import BashComplete; "
        "done = BashComplete(main, {}, 'promissing', '_X').get_completions(['fit'], '--'); "
        "assert '--target' in [one.value for one in done]; "
        "print(*{m.split('.')[0] for m in sys.modules})"
    )
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        seconds.append(time.perf_counter() - start)
        assert not out.returncode, out.stderr
        heavy = {"sklearn", "pandas", "jax", "numpy", "scipy", "pyarrow", "matplotlib"}
        assert not heavy & set(out.stdout.split())
        if seconds[-1] < 0.5:
            return
    assert min(seconds) < 2, "a busy machine may be slow, but not so slow"


def test_help_shows_whole_summaries():
    said = run("--help").stdout
    for name in main.list_commands(None):
        if name != "experiment":
            assert main.get_command(None, name).help.splitlines()[0] in said


def test_mechanisms_are_those_of_the_library():
    assert sorted(MECHANISMS) == sorted(NAMES)


# What is missing


def test_describe_shows_what_is_missing(place):
    said = run("describe", place / "table.csv", "--target", "relapse").stdout
    for word in ("150 rows, 7 columns", "By column", "By row", "Patterns", "relapse *", "marker"):
        assert word in said


def test_describe_tells_machines(place):
    found = json.loads(run("describe", place / "table.csv", "--json").stdout)
    assert found["rows"] == N
    assert next(c for c in found["by_column"] if c["name"] == "ward")["kind"] == "category"


def test_describe_suspects_sentinels():
    table = "a,b,[red]\x1b[1m\n1,?,1\n-999,x,2\n3,y,3\n4,?,4\n"
    result = run("describe", "-", input=table)
    assert "Values that may mean missing" in result.stdout
    assert "-999" in result.stdout
    assert "'?'" in result.stdout
    assert "--missing-values '-999,?'" in result.stderr
    assert "[red]" in result.stdout  # A name is no markup,
    assert "\x1b" not in result.stdout  # and nothing a terminal would obey.
    found = json.loads(
        run("describe", "-", "--json", "--missing-values", "-999,?", input=table).stdout
    )
    assert found["missing"] == 3
    assert not any(column["suspects"] for column in found["by_column"])


def test_describe_refuses_an_unknown_target(place):
    line = refused("describe", place / "table.csv", "--target", "relaps")
    assert "--target: there is no column 'relaps'. Did you mean 'relapse'?" in line


def test_a_model_remembers_what_stood_for_missing(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=80), "y": np.resize(["a", "b"], 80)})
    frame.loc[::4, "x"] = -999
    frame.to_csv(tmp_path / "t.csv", index=False)
    out = tmp_path / "m.safetensors"
    few = ["--epochs", 2, "--members", 1]
    told = ["--missing-values", "-999"]
    run("fit", tmp_path / "t.csv", "--target", "y", "--out", out, *few, *told)
    silent = run("predict", out, tmp_path / "t.csv")
    assert "As when the model was fitted, these count as missing: '-999'." in silent.stderr
    said = run("predict", out, tmp_path / "t.csv", *told)
    assert "As when" not in said.stderr
    assert silent.stdout == said.stdout
    page = tmp_path / "r.html"
    again = run("report", tmp_path / "t.csv", "--target", "y", "--model", out, "--out", page,
                "--no-compare", "--held-out")  # fmt: skip
    assert "As when the model was fitted" in again.stderr


def test_a_model_remembers_its_target_its_identifier_and_how_its_file_was_read(tmp_path):
    rng = np.random.default_rng(0)
    n = 80
    frame = pd.DataFrame(
        {
            "case": [f"{i:03}" for i in range(n)],
            "crp": [f"{x:.2f}".replace(".", ",") for x in rng.normal(5, 2, n)],
            "cost": [f"{x} EUR" for x in rng.integers(100, 900, n)],
            "seen": [f"{d:02}.03.2024" for d in rng.integers(1, 28, n)],
            "y": np.resize(["a", "b", "."], n),
        }
    )
    frame.loc[4, "crp"] = "2.1"
    frame.to_csv(tmp_path / "t.csv", index=False, sep=";")
    out = tmp_path / "m.safetensors"
    call = ["fit", tmp_path / "t.csv", "--target", "y", "--out", out, "--epochs", 2]
    call += ["--members", 1, "--id", "case"]
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        line = refused(*call)
        assert "The target 'y' holds '.' in 26 of 80 rows" in line
        assert "--missing-values '.'. To learn them as they are, pass --kinds y=category." in line
        told = run(*call, "--missing-values", ".").stderr
        assert "'cost' is text that reads as numbers with the unit" in told or "money" in told
        assert "pass --kinds cost=number." in told
        assert "pass --dates seen." in told
        assert "Column 'crp' has decimal commas and decimal points" in told
        assert "`" not in told
        options = ["--missing-values", ".", "--kinds", "cost=number", "--dates", "seen"]
        options += ["--positive", "a"]
        assert "reads as" not in run(*call, *options).stderr
        model = promissing.load(out)
        assert model.encoder_.kinds_ == ["number", "number", "date"]
        assert model.target_name_ == "y"
        why = run("explain", out, tmp_path / "t.csv", "--rows", 0).stdout
        assert "the probability of a is" in " ".join(why.split())
        result = run("predict", out, tmp_path / "t.csv")
        explained = run("explain", out, tmp_path / "t.csv", "--rows", "2", "--out", "-").stdout
    made = pd.read_csv(pd.io.common.StringIO(result.stdout), dtype={"case": str})
    assert made.columns.tolist() == ["case", "prediction", "p_a", "p_b", "known", "unsure"]
    assert made["case"][2] == "002"
    assert (made["known"] == 1).all()
    assert "Column 'y' is the target of the model: it is not used." in result.stderr
    assert "unknown to the model" not in result.stderr
    assert explained.splitlines()[1].startswith("002,2,")


def test_columns_that_options_name_must_exist(place):
    table = place / "table.csv"
    assert "--dates: there is no column 'agee'. Did you mean 'age'" in refused(
        "describe", table, "--dates", "agee"
    )
    assert "--id: there is no column 'idd'" in refused("describe", table, "--id", "idd")
    result = run("describe", table, "--kinds", "age=text", code=2)
    assert "'age=text' is not COLUMN=KIND with one of the kinds number" in result.stderr
    fit = ["fit", table, "--target", "relapse", "--out", place / "no.safetensors"]
    assert "--id and --target both name column 'relapse'" in refused(*fit, "--id", "relapse")


def test_simulate_leaves_the_identifier_alone(place):
    how = ["--mechanism", "mcar", "--ratio", 0.5, "--id", "id", "--out", "-"]
    made = run("simulate", place / "table.csv", *how).stdout
    assert pd.read_csv(pd.io.common.StringIO(made), dtype={"id": str})["id"][3] == "0003"


def test_an_unpacked_file_may_be_allowed_to_be_larger(tmp_path):
    path = tmp_path / "t.csv.gz"
    pd.DataFrame({"a": np.zeros(1000)}).to_csv(path, index=False)
    assert "more: --max-bytes 400." in refused("describe", path, "--max-bytes", 100)
    run("describe", path, "--max-bytes", 10_000)


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("No gap in training. Train with `augment` to teach it.",
         "No gap in training. Train with --augment to teach it."),
        ("It diverged. Lower `learning_rate_init`, or raise `max_iter`.",
         "It diverged. Raise --epochs."),
        ("`model` must be a classifier. See `what_if`.", "model must be a classifier."),
        ("Pass `kinds={'a b': 'number', 'c': 'date'}`.", "Pass --kinds 'a b=number,c=date'."),
        ("Pass `missing_values=['<0,5', '?']`.", "Pass --missing-values '\"<0,5\",?'."),
        ("It needs x: `pip install x`.", "It needs x: `pip install x`."),
        ("Pass `augment=False`.", "Pass --no-augment."),
    ],
)  # fmt: skip
def test_messages_are_in_terms_of_the_command_line(said, shown):
    assert with_option_names(said) == shown


# Gaps on demand


@pytest.mark.parametrize("mechanism", ["mcar", "mar", "mnar"])
def test_simulate_makes_gaps(place, tmp_path, mechanism):
    source, out = tmp_path / "full.csv", tmp_path / "gaps.csv"
    pd.DataFrame({"a": range(100), "b": range(100), "y": range(100)}).to_csv(source, index=False)
    how = ["--mechanism", mechanism, "--ratio", 0.3, "--columns", "a", "--keep", "y"]
    result = run("simulate", source, *how, "--out", out, "--seed", 1)
    frame = pd.read_csv(out)
    assert frame.isna().sum().tolist() == [30, 0, 0]
    assert "30 values removed" in result.stderr
    run("simulate", source, *how, "--out", tmp_path / "again.csv", "--seed", 1)
    assert (tmp_path / "again.csv").read_bytes() == out.read_bytes()


def test_simulate_loses_values_in_all_columns_but_those_kept(tmp_path):
    result = run(
        *("simulate", "--xor", 200, "--mechanism", "mcar", "--ratio", 0.5, "--out", "-"),
    )
    frame = pd.read_csv(pd.io.common.StringIO(result.stdout))
    assert frame.columns.tolist() == ["x1", "x2", "label"]
    assert frame.isna().sum().tolist() == [100, 100, 0]


def test_simulate_writes_a_cohort_and_its_modalities(tmp_path):
    out, groups = tmp_path / "cohort.parquet", tmp_path / "m.toml"
    run("simulate", "--cohort", 30, "--out", out, "--modalities-out", groups)
    frame = pd.read_parquet(out)
    assert frame.shape == (30, 212)
    from promissing.io.task import define_task, read_modalities

    problem = define_task(frame, "remission", modalities=read_modalities(groups))
    assert len(problem.modalities) == 12


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "Give exactly one of FILE, --cohort N and --xor N"),
        (["t.csv", "--xor", 3], "exactly one of"),
        (["t.csv"], "FILE needs --mechanism and --ratio"),
        (["--xor", 9, "--ratio", 0.1], "--mechanism and --ratio must be given together"),
        (["--xor", 9, "--modalities-out", "m.toml"], "--modalities-out requires --cohort"),
        (["--xor", 9, "--mechanism", "mcar", "--ratio", 1.5], "1.5 is not in the range"),
        (["--xor", 9, "--mechanism", "mcar", "--ratio", 0.1, "--columns", "x3"], "mean 'x2'|'x1'"),
    ],
)
def test_simulate_refuses(arguments, said, tmp_path):
    result = run("simulate", *arguments, "--out", tmp_path / "out.csv", code=2)
    assert re.search(said, result.stderr)
    assert not os.listdir(tmp_path)


# A model


def test_fit_says_what_was_learnt_from_what(place, tmp_path):
    out = tmp_path / "model.safetensors"
    fit = ["fit", place / "table.csv", "--target", "relapse", "--epochs", 3, "--members", 2]
    result = run(*fit, "--out", out, "--drop", "length,id")
    assert "relapse (classification)" in result.stdout
    assert "150 rows, 4 columns" in result.stdout
    assert re.search(r"Scores on \d+ held-out rows", result.stdout)
    assert "auc: " in result.stdout
    model = promissing.load(out)
    assert model.feature_names_in_.tolist() == ["age", "marker", "ward", "code"]
    assert (model.n_members, model.augment, model.verbose) == (2, "auto", False)
    told = json.loads(
        run(*fit, "--drop", "length,id", "--out", out, "--json", "--hold-out", 0).stdout
    )
    assert told["trained_on"] == N
    assert told["scores"] == {}
    assert told["classes"] == ["no", "yes"]


def test_fit_of_a_number_and_of_modalities(place):
    number = promissing.load(place / "number.safetensors")
    assert isinstance(number, promissing.NanMLPRegressor)
    fusion = promissing.load(place / "fusion.safetensors")
    assert fusion.modality_columns_ == {"person": ["age", "ward"], "blood": ["marker", "code"]}


def test_fit_keeps_the_best_so_far_when_interrupted(place, tmp_path, monkeypatch):
    from promissing.training import train as _training

    real = _training.train

    def interrupted(*arguments, **options):
        def stop(epoch):
            if epoch.number >= 2:
                raise KeyboardInterrupt

        return real(*arguments, **{**options, "on_epoch": stop})

    monkeypatch.setattr(_training, "train", interrupted)
    out = tmp_path / "model.safetensors"
    call = ["fit", place / "table.csv", "--target", "relapse", "--members", 2]
    call += ["--drop", "length,id", "--out", out]
    with warnings.catch_warnings():
        warnings.simplefilter("default")  # Errors in tests, said in life.
        result = run(*call)
    assert "Training was interrupted after epoch" in result.stderr
    assert out.exists()


# Predictions


def test_predict_writes_what_it_knows_and_does_not_know(place, tmp_path):
    out = tmp_path / "out.csv"
    result = run(
        *("predict", place / "classes.safetensors", place / "table.csv", "--out", out),
        *("--unsure-below", 0.55, "--min-known", 0.5, "--keep", "id"),
    )
    made = pd.read_csv(out, dtype={"id": str})
    assert made.columns.tolist() == ["id", "prediction", "p_no", "p_yes", "known", "unsure"]
    assert made["id"].tolist()[:2] == ["0000", "0001"]
    np.testing.assert_allclose(made["p_no"] + made["p_yes"], 1)
    certainty = made[["p_no", "p_yes"]].max(axis=1)
    assert (made["unsure"] == ((certainty < 0.55) | (made["known"] < 0.5))).all()
    assert 0 < made["unsure"].sum() < N
    assert f"{made['unsure'].sum()} of them unsure" in result.stderr
    model = promissing.load(place / "classes.safetensors")
    assert set(made["known"]) <= {0, 0.25, 0.5, 0.75, 1}
    assert (made["prediction"] == np.where(made["p_yes"] > made["p_no"], "yes", "no")).all()
    assert model.classes_.tolist() == ["no", "yes"]


def test_predict_of_a_number_tells_how_far_the_members_lie_apart(place):
    call = ["predict", place / "number.safetensors", place / "table.csv"]
    result = run(*call, "--max-spread", 0.5, "--min-known", 0.5)
    made = pd.read_csv(pd.io.common.StringIO(result.stdout))
    assert made.columns.tolist() == ["prediction", "spread", "known", "unsure"]
    assert (made["unsure"] == ((made["spread"] > 0.5) | (made["known"] < 0.5))).all()
    assert "--unsure-below is for classes" in refused(*call, "--unsure-below", 0.6)


def test_a_small_spread_never_accepts_a_row_with_missing_values(place):
    call = ["predict", place / "number.safetensors", place / "table.csv", "--max-spread", 1e9]
    for more in ((), ("--min-known", 0)):
        result = run(*call, *more)
        made = pd.read_csv(pd.io.common.StringIO(result.stdout))
        assert (made["unsure"] == (made["known"] < 1)).all()
        assert 0 < made["unsure"].sum() < N
        assert "--max-spread alone accepts complete rows only" in result.stderr


def test_a_row_of_which_nothing_is_known_is_unsure(place):
    table = "age,marker,ward,code\n,,,\n50,1,north,007\n"
    result = run("predict", place / "classes.safetensors", "-", input=table)
    made = pd.read_csv(pd.io.common.StringIO(result.stdout))
    assert made["unsure"].tolist() == [True, False]
    assert made["known"].tolist() == [0, 1]


def test_codes_stay_text_although_they_look_like_numbers(place):
    """In training there was x1 among them; alone they must not be taken for numbers."""
    call = ["predict", place / "classes.safetensors", "-"]
    rows = "age,marker,ward,code\n50,1,north,{}\n40,0,south,007\n"
    one, other = (run(*call, input=rows.format(code)).stdout for code in ("010", "never"))
    assert one.splitlines()[1] != other.splitlines()[1]


def test_a_column_that_is_lacking_is_unknown(place, tmp_path):
    table = tmp_path / "short.csv"
    full = pd.read_csv(place / "table.csv", dtype={"code": str})
    full[["age", "ward", "code"]].assign(more=1).to_csv(table, index=False)
    call = ["predict", place / "classes.safetensors", table]
    result = run(*call, "--out", tmp_path / "a.csv")
    assert "lacks column 'marker' of the model: missing in every row" in result.stderr
    assert "has column 'more' unknown to the model: ignored" in result.stderr
    full.assign(marker=np.nan).to_csv(tmp_path / "gaps.csv", index=False)
    run("predict", call[1], tmp_path / "gaps.csv", "--out", tmp_path / "b.csv")
    assert (tmp_path / "a.csv").read_text() == (tmp_path / "b.csv").read_text()
    line = refused(*call, "--strict", "--out", tmp_path / "c.csv")
    assert "lacks column 'marker' of the model. Without --strict" in line
    assert not (tmp_path / "c.csv").exists()


# Why


def test_explain_draws_bars(place):
    result = run("explain", place / "classes.safetensors", place / "table.csv", "--rows", "0,5")
    assert "Row 0, " in result.stdout
    assert "Row 5, " in result.stdout
    assert "the probability of yes is" in result.stdout
    result = run("explain", place / "fusion.safetensors", place / "table.csv")
    assert "blood" in result.stdout
    assert "The first 3 of 150 rows" in result.stderr


@pytest.mark.parametrize("kind", ["what-if", "smallest", "shapley", "importance"])
@pytest.mark.parametrize("model", ["classes", "fusion"])
def test_explain_writes_all_of_it(place, tmp_path, kind, model):
    out = tmp_path / "why.csv"
    file = f"{model}.safetensors"
    call = ["explain", place / file, place / "table.csv", "--kind", kind, "--rows", "0,1,7"]
    result = run(*call, "--out", out)
    assert result.stdout
    table = pd.read_csv(out)
    groups = 2 if model == "fusion" else 4
    assert len(table) == {"smallest": 3, "importance": groups}.get(kind, 3 * groups)
    told = json.loads(run(*call, "--json").stdout)
    assert told["kind"] == kind
    assert len(told["records"]) == len(table)
    if kind != "importance":
        assert {line["row"] for line in told["records"]} == {0, 1, 7}


@pytest.mark.parametrize("kind", ["what-if", "smallest", "shapley"])
def test_explain_names_the_class_and_lets_it_be_chosen(place, kind):
    call = ["explain", place / "classes.safetensors", place / "table.csv", "--rows", 0]
    for more, label in (((), "yes"), (("--positive", "no"), "no")):
        told = run(*call, "--kind", kind, *more)
        assert f"the probability of {label} is" in " ".join(told.stdout.split())
        records = json.loads(run(*call, "--kind", kind, *more, "--json").stdout)["records"]
        assert {record["class"] for record in records} == {label}
    assert "there is no class 'maybe'" in refused(*call, "--positive", "maybe")
    number = ("explain", place / "number.safetensors", place / "table.csv", "--positive", "no")
    assert "the model predicts a number" in refused(*number)


def test_explain_of_a_number(place):
    call = ["explain", place / "number.safetensors", place / "table.csv", "--rows", 1]
    assert "change if missing" in run(*call).stdout
    assert "must be a classifier" in refused(*call, "--kind", "smallest")


def test_explain_draws_a_picture(place, tmp_path):
    call = ["explain", place / "classes.safetensors", place / "table.csv", "--rows", "0,1"]
    run(*call, "--plot", tmp_path / "why.png")
    assert (tmp_path / "why.png").read_bytes().startswith(b"\x89PNG")
    assert "--plot draws what-if, not shapley" in refused(
        *call, "--kind", "shapley", "--plot", tmp_path / "no.png"
    )
    assert "unknown suffix '.bmp'. Known: .png, .svg" in refused(
        *call, "--plot", tmp_path / "no.bmp"
    )
    assert os.listdir(tmp_path) == ["why.png"]


def test_explain_refuses_rows_and_groups_that_are_not_there(place):
    call = ["explain", place / "classes.safetensors", place / "table.csv"]
    assert "there is no row 150. The table has 150 rows, from 0" in refused(*call, "--rows", "150")
    assert "has no modalities. Fit with --modalities" in refused(*call, "--groups", "modalities")


# Bad input


@pytest.mark.parametrize(
    ("table", "options", "said"),
    [
        (None, {}, "There is no file"),
        ("", {}, "is empty."),
        ("a,y\n", {}, "is empty: it has a header and no rows."),
        ("größe,y\n1,2\n".encode("latin-1"), {}, "is not utf-8 text. Pass its --encoding"),
        ("a,a,y\n1,2,3\n", {}, "more than one column called 'a'"),
        ("a,Y2\n1,2\n", {}, "There is no column 'y'. Did you mean 'Y2'?"),
        ("a,y\n1,\n2,\n", {}, "The target 'y' is missing in every row"),
        ("a,y\n" + "1,x\n" * 30, {}, "holds one class only, 'x'"),
        ("a,y\n" + "".join(f"{i},n{i}\n" for i in range(10_000)), {}, "has 10,000 classes"),
        ("a,y\n" + "1,u\ninf,v\n" * 30, {}, "Column 'a' contains infinity"),
        ("a,y\n" + "1,u\n2,v\n" * 30, {"--modalities": "none.toml"}, "There is no file none.toml"),
        ("a,y\n" + "1,u\n2,v\n" * 30, {"--drop": "b"}, "--drop: there is no column 'b'"),
        ("y\n" + "u\nv\n" * 30, {}, "There is no column to predict 'y' from"),
        ("a,y\n" + "1,u\n2,v\n" * 30, {"--out": "m.csv"}, "unknown suffix '.csv'"),
        ("a,y\n" + "1,u\n2,v\n" * 30, {"--out": "no/m.safetensors"}, "There is no directory no"),
        (
            "a,y\n" + "1,u\n2,v\n" * 30,
            {"--out": "-"},
            "A model cannot be written to standard output",
        ),
    ],
)
def test_fit_refuses_bad_input_in_one_line(tmp_path, monkeypatch, table, options, said):
    monkeypatch.chdir(tmp_path)
    if table is not None:
        content = table if isinstance(table, bytes) else table.encode()
        Path("table.csv").write_bytes(content)
    given = {"--target": "y", "--out": "model.safetensors", **options}
    assert said in refused("fit", "table.csv", *(word for pair in given.items() for word in pair))
    assert set(os.listdir()) <= {"table.csv"}


def test_a_target_with_gaps_and_an_identifier_are_told_of(place, tmp_path):
    frame = (
        pd.read_csv(place / "table.csv")
        .drop(columns=["length", "id"])
        .assign(name=[f"n{i}" for i in range(N)])
    )
    frame.loc[:8, "relapse"] = np.nan
    frame.to_csv(tmp_path / "t.csv", index=False)
    result = run(
        *("fit", tmp_path / "t.csv", "--target", "relapse", "--epochs", 1, "--members", 2),
        *("--out", tmp_path / "model.safetensors"),
    )
    assert "9 of 150 rows lack the target 'relapse' and are left out." in result.stderr
    assert "Column 'name' is text and different in every row" in result.stderr


def test_models_that_are_none(place, tmp_path):
    table = place / "table.csv"
    assert "There is no file" in refused("predict", tmp_path / "no.safetensors", table)
    assert "is not a model file, or is damaged" in refused("predict", table, table)
    stranger = tmp_path / "other.csv"
    stranger.write_text("u,v\n1,2\n")
    line = refused("explain", place / "classes.safetensors", stranger)
    assert "has none of the 4 columns of the model: 'age'" in line
    assert "--keep: there is no column 'ident'. Did you mean 'id'" in refused(
        "predict", place / "classes.safetensors", table, "--keep", "ident"
    )


def test_a_model_of_several_targets_is_refused(tmp_path):
    X = np.arange(40.0).reshape(20, 2)
    (tmp_path / "t.csv").write_text("a,b\n1,2\n")
    for name, model, y in (
        ("labels", promissing.NanMLPClassifier((2,), max_iter=1), X % 3 > 1),
        ("numbers", promissing.NanMLPRegressor((2,), max_iter=1), X),
    ):
        path = tmp_path / f"{name}.safetensors"
        model.set_params(n_members=1, random_state=0).fit(X, y).save(path)
        assert "predicts several targets at once" in refused("predict", path, tmp_path / "t.csv")


def test_text_where_a_number_was_is_named(place):
    line = refused(
        *("predict", place / "classes.safetensors", "-"), input="age,marker\nold,1\n50,2\n"
    )
    assert "Column 'age' must hold numbers, and holds 'old'" in line
    rows = 'age,marker\n"50,5",1\n"41,25",2\n'
    result = run("predict", place / "classes.safetensors", "-", input=rows, code=2)
    assert "'age' is text that reads as numbers with decimal commas" in result.stderr
    assert "If so, pass --decimal ','." in result.stderr
    run("predict", place / "classes.safetensors", "-", "--decimal", ",", input=rows)


def test_what_fails_is_told_from_what_is_wrong():
    import click

    for error, code in ((ValueError("a\nb"), 2), (OSError("disk"), 1), (RuntimeError("no"), 1)):
        with pytest.raises(click.ClickException) as caught, one_line_errors():
            raise error
        assert caught.value.exit_code == code
        assert "\n" not in caught.value.message
    assert printable("a\x1b[31mb\n") == "a\ufffd[31mb\ufffd"


# The guide


@pytest.mark.filterwarnings("ignore:No threshold reaches")  # The model was hardly trained.
def test_commands_of_the_guide_run(tmp_path, monkeypatch):
    """Every line of a shell block that calls a command of this file, on small tables."""
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^```sh\n(.*?)^```$", DOCUMENT.read_text(), flags=re.M | re.S)
    lines = [line for block in blocks for line in block.replace("\\\n", " ").splitlines()]
    calls = [shlex.split(line, comments=True) for line in lines]
    calls = [call[1:] for call in calls if call and call[0] == "promissing"]
    calls = [call[: call.index(">")] if ">" in call else call for call in calls]
    ours = ("describe", "simulate", "fit", "predict", "explain", "next", "drift")
    assert {call[0] for call in calls} >= {*ours}
    for call in calls:
        if call[0] not in ours:
            continue
        if call[0] == "fit":
            call = [*call, "--epochs", "2", "--members", "2"]
        if "--cohort" in call:
            call[call.index("--cohort") + 1] = "80"
        run(*call)


def test_the_guide_names_every_command_and_option():
    text = DOCUMENT.read_text()
    for name in main.list_commands(None):
        assert f"promissing {name}" in text
        command = main.get_command(None, name)
        if name != "experiment":
            for option in (o for p in command.params for o in p.opts if o.startswith("--")):
                assert option in text, (name, option)
