import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from scipy.stats import ranksums
from sklearn.metrics import roc_auc_score
from studies import simulation
from studies.__main__ import main
from studies.networks import Job, Training, auc, run_jobs, smse, start_as_paper
from studies.runner import Row, read
from studies.simulation import KINDS, kinds_of, summarise

from promissing import cli
from promissing.networks.losses import LogLoss
from promissing.networks.mlp import MLP

TINY = ["--repetitions", "2", "--epochs", "3", "--jobs", "1"]
FEW = ["--strategies", "full,mean,mean+indicator,promissing,mpromissing"]


def call(*arguments):
    return CliRunner().invoke(main, ["simulation", *map(str, arguments)])


# ------------------------------------------------------------------------------------ scores


def test_many_areas_at_once_are_scikit_learns():
    rng = np.random.default_rng(0)
    y, scores = rng.integers(0, 2, (3, 2, 40)), rng.normal(size=(3, 2, 40))
    scores[1] = scores[1].round(1)  # Ties.
    expected = [
        [roc_auc_score(*pair) for pair in zip(*both, strict=True)]
        for both in zip(y, scores, strict=True)
    ]
    np.testing.assert_allclose(auc(y, scores), expected)
    np.testing.assert_allclose(auc(y[0, 0], scores[0, 0]), expected[0][0])


def test_an_area_that_does_not_exist_is_nan():
    assert np.isnan(auc(np.ones(3), np.arange(3.0)))
    assert np.isnan(auc(np.array([0, 1, 1]), np.array([0.1, np.nan, 0.3])))


def test_smse_of_the_mean_is_one_and_of_a_diverged_net_nan():
    y = np.arange(10.0)
    predictions = np.stack([np.full(10, y.mean()), y, np.full(10, np.inf)])
    np.testing.assert_allclose(smse(y, predictions), [1, 0, np.nan])


# ---------------------------------------------------------------------------------- networks


def test_strategies_of_a_repetition_start_alike_without_bias():
    kernels = []
    for compensation in ("none", "shared", "feature"):
        net = MLP(2, 1, LogLoss(), (4,), "tanh", compensation)
        params = start_as_paper(net, np.random.default_rng(5))
        kernels.append(params["kernel_0"])
        assert not params["bias_0"].any()
        if compensation == "shared":
            assert params["compensation_weight"].all()
            assert (np.abs(params["compensation_weight"]) <= np.sqrt(6 / 7)).all()
    assert all((kernel == kernels[0]).all() for kernel in kernels)
    assert (np.abs(kernels[0]) <= 1).all()


def test_a_job_does_not_depend_on_its_neighbours():
    rng = np.random.default_rng(0)
    jobs = []
    for i in range(3):
        X, y = rng.normal(size=(30, 2)), rng.integers(0, 2, 30).astype(float)
        X[i::3, 0] = np.nan
        jobs.append(Job(X, y, np.arange(30 - i), rng.normal(size=(7, 2)), "none", (4,), (1, i)))
    recipe = Training(LogLoss(), "tanh", 0.1, 10, 5)
    together = run_jobs(jobs, recipe)
    alone = run_jobs(jobs[1:2], recipe)
    np.testing.assert_allclose(together[1].outputs, alone[0].outputs, atol=1e-5)
    seen = run_jobs(jobs, recipe, watch=lambda outputs, numbers: outputs)
    assert seen[0].outputs.shape == (7, 5)
    np.testing.assert_allclose(seen[2].outputs[:, -1], together[2].outputs, atol=1e-6)


# ------------------------------------------------------------------------------------- study


@pytest.mark.parametrize("mechanism", simulation.MECHANISMS)
def test_a_world_loses_its_share_of_one_column_and_is_split_in_halves(mechanism):
    world = simulation.draw(mechanism, 0.3, 4, seed=0)
    lost = np.isnan(np.concatenate([world.X_train, world.tests[1]]))
    assert sorted(lost.sum(axis=0)) == [0, 300]
    assert world.X_train.shape == world.tests[0].shape == (500, 2)
    seen = ~np.isnan(world.X_train)
    np.testing.assert_array_equal(world.X_train[seen], world.X_full[seen])
    other = simulation.draw("mcar", 0.5, 4, seed=0)
    np.testing.assert_array_equal(world.X_full, other.X_full)


def test_kinds_of_neutralizers_by_the_rule():
    observed = np.array([[-0.5, 0.5, 1.5], [-0.5, 0.4, 1.5]])
    own = np.array([[0.9, -0.3], [0.1, 1.2], [-0.2, 0.5], [1.0, 0.0]])
    assert kinds_of(np.full((4, 2), 0.1), observed) == KINDS[0]
    assert kinds_of(np.column_stack([np.full(4, 0.45), own[:, 1]]), observed) == KINDS[1]
    assert kinds_of(np.vstack([own[:3], [[2.0, 0.0]]]), observed) == KINDS[2]
    assert kinds_of(own, observed) == KINDS[3]
    assert kinds_of(np.full((4, 2), np.inf), observed) == KINDS[2]


def test_the_study_from_the_command_line(tmp_path):
    out = tmp_path / "out"
    result = call("--out", out, *TINY, *FEW, "--mechanisms", "mnar", "--ratios", "0.5")
    assert result.exit_code == 0, result.output
    made = {path.name for path in out.iterdir()}
    pictures = {f"{name}.png" for name in ("data", "biases", "curves_0.5", "neutralizers")}
    tables = {"summary.csv", "summary.md", "curves.csv", "kinds.csv", "kinds.md", "run.json"}
    assert pictures | tables <= made
    results, arrays, _ = read(out)
    assert len(results) == 5 * 2 * 2
    assert set(results["metric"]) == {"auc_complete", "auc_incomplete"}
    full = results[results["strategy"] == "full"].pivot(
        index="repetition", columns="metric", values="value"
    )
    assert (full["auc_complete"] == full["auc_incomplete"]).all()
    (batch,) = arrays.values()
    assert batch["auc"].shape == (5, 2, 2, 3)
    assert batch["neutralizers/promissing"].shape == (2, 4, 2)

    again = call("--out", out, *TINY, *FEW, "--mechanisms", "mnar", "--ratios", "0.5")
    assert again.exit_code == 2
    assert "--resume" in again.stderr
    resumed = call("--out", out, *TINY, *FEW, "--mechanisms", "mnar", "--ratios", "0.5", "--resume")
    assert resumed.exit_code == 0
    assert resumed.stdout.startswith("0 batches")


def test_the_summary_is_means_biases_and_rank_sums():
    rng = np.random.default_rng(0)
    lines = []
    values = {}
    for name in ("full", "mean", "promissing", "mpromissing"):
        for metric in ("auc_complete", "auc_incomplete"):
            values[name, metric] = rng.random(6)
            for r, value in enumerate(values[name, metric]):
                lines.append(("xor", "mar", 0.5, name, r, 0, metric, value, 1.0))
    summary = summarise(pd.DataFrame(lines, columns=Row._fields)).set_index("strategy")
    mean = summary.loc["mean"]
    complete, incomplete = values["mean", "auc_complete"], values["mean", "auc_incomplete"]
    assert mean["auc_complete"] == pytest.approx(complete.mean())
    assert mean["sd_complete"] == pytest.approx(complete.std(ddof=1))
    assert mean["training_bias"] == pytest.approx(
        values["full", "auc_complete"].mean() - complete.mean()
    )
    assert mean["test_bias"] == pytest.approx(complete.mean() - incomplete.mean())
    expected = ranksums(values["promissing", "auc_incomplete"], incomplete).pvalue
    assert mean["p_promissing_incomplete"] == pytest.approx(expected)
    assert np.isnan(summary.loc["promissing", "p_promissing_complete"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--ratios", "0.5,1.5"], "A ratio must lie between 0 and 1. Received: 1.5"),
        (["--ratios", "half"], "is not a list of numbers"),
        (["--mechanisms", "mcar,nmar"], "There is no mechanism 'nmar'"),
        (["--strategies", "men"], "There is no strategy 'men'. Did you mean 'mean'"),
        (["--mechanisms", ","], "Name at least one mechanism"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(tmp_path, arguments, message):
    result = call("--out", tmp_path / "out", *TINY, *arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stderr.strip().splitlines()[-1].startswith("Error: ")
    assert "Traceback" not in result.stderr
    assert not (tmp_path / "out").exists()


def test_a_foreign_record_and_a_bad_directory_are_refused(tmp_path):
    (tmp_path / "run.json").write_text("not a record, but a poem")
    for extra in ([], ["--resume"]):
        result = call("--out", tmp_path, *TINY, *extra)
        assert result.exit_code == 2
        assert result.stderr.count("\n") == 1
    assert (tmp_path / "run.json").read_text() == "not a record, but a poem"
    result = call("--out", tmp_path / "run.json", *TINY)
    assert result.exit_code == 2


@pytest.mark.parametrize("arguments", [["simulation", "--out", "OUT"], ["--help"], []])
def test_the_old_command_names_its_replacement(arguments):
    result = CliRunner().invoke(cli.main, ["experiment", *arguments])
    assert result.exit_code == 2
    assert f"python -m studies {'simulation' if 'OUT' in arguments else 'NAME'}" in result.stderr
