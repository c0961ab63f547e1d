import gc
import multiprocessing
import subprocess
import sys
from dataclasses import dataclass
from functools import lru_cache
from types import SimpleNamespace

import numpy as np
import pytest
from engine import LOSSES, generators, row_loss, run, table, train
from jax.extend import backend
from scipy.special import logsumexp
from sklearn.neural_network import MLPClassifier, MLPRegressor

from promissing.networks.activations import ACTIVATIONS
from promissing.networks.base import evaluate, stack
from promissing.networks.mlp import MLP
from promissing.training import batches as engine_batches
from promissing.training import lanes as engine_lanes
from promissing.training import programs as engine_programs
from promissing.training import step as engine_epoch
from promissing.training.augmentation import draw_lost
from promissing.training.train import Data

COMPENSATIONS = ("none", "shared", "feature")
NEVER = {"tol": 0.0, "n_iter_no_change": np.inf}
SGD = {"solver": "sgd", "momentum": 0.0, "learning_rate": 0.1}


def difference(a, b):
    return max(np.abs(a[name] - b[name]).max() for name in a)


def replica(params, r):
    return {name: value[r] for name, value in params.items()}


# ------------------------------------------------------------------------------------- networks


@pytest.mark.parametrize("groups", [None, (0, 2, 1, 0)], ids=["columns", "groups"])
@pytest.mark.parametrize("compensation", COMPENSATIONS)
def test_numpy_forward_equals_jax_forward(compensation, groups):
    import jax.numpy as jnp

    X, _ = table(gaps=0.5)
    for activation in ACTIVATIONS:
        net = MLP(4, 2, LOSSES["squared"], (3,), activation, compensation, groups)
        rng = np.random.default_rng(0)
        params = {name: rng.normal(size=a.shape) for name, a in net.init(rng).items()}
        exact = evaluate(net, params, X)
        assert exact.dtype == np.float64
        arrays = {name: jnp.asarray(value, jnp.float32) for name, value in params.items()}
        np.testing.assert_allclose(net.forward(arrays, X, xp=jnp), exact, atol=1e-5)


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_activations_of_large_values_neither_overflow_nor_warn(activation):
    out = ACTIVATIONS[activation](np.array([-1e3, -1.0, 0.0, 1.0, 1e3]), np)
    assert np.isfinite(out).all()
    assert (np.diff(out[2:]) >= 0).all()


@pytest.mark.parametrize("compensation", COMPENSATIONS)
def test_an_empty_row_sees_only_what_the_compensation_says(compensation):
    net = MLP(4, 1, LOSSES["log"], (), compensation=compensation)
    params = net.init(np.random.default_rng(0))
    empty = np.full((1, 4), np.nan)
    assert evaluate(net, params, empty) == 0  # The compensation starts at 0.
    if compensation != "none":
        params["compensation_weight"] += 1.5
        expected = 1.5 if compensation == "shared" else 4 * 1.5
        assert evaluate(net, params, empty) == pytest.approx(expected)


@pytest.mark.parametrize(("activation", "factor"), [("relu", 6), ("logistic", 2)])
def test_starts_like_scikit_learn(activation, factor):
    params = MLP(10, 3, LOSSES["softmax"], (40,), activation).init(np.random.default_rng(0))
    for i, (fan_in, fan_out) in enumerate([(10, 40), (40, 3)]):
        bound = np.sqrt(factor / (fan_in + fan_out))
        kernel = params[f"kernel_{i}"]
        assert kernel.shape == (fan_in, fan_out)
        assert 0.9 * bound < np.abs(kernel).max() <= bound
        assert np.abs(params[f"bias_{i}"]).max() <= bound


def test_blocks_do_not_show():
    X, _ = table(50)
    net = MLP(4, 2, LOSSES["softmax"], (5,))
    params = net.init(np.random.default_rng(0))
    whole = evaluate(net, params, X)
    np.testing.assert_allclose(evaluate(net, params, X, block=7), whole, rtol=1e-12)
    assert evaluate(net, params, X[:0]).shape == (0, 2)


def test_losses_are_what_they_are_called():
    rng = np.random.default_rng(0)
    z, labels = rng.normal(size=(8, 3)) * 5, rng.integers(0, 2, (8, 3))
    p = 1 / (1 + np.exp(-z))
    log = -(labels * np.log(p) + (1 - labels) * np.log(1 - p)).sum(1)
    np.testing.assert_allclose(row_loss("log", z, labels, xp=np), log)
    classes = rng.integers(0, 3, (8, 1))
    softmax = logsumexp(z, axis=1) - z[np.arange(8), classes[:, 0]]
    np.testing.assert_allclose(row_loss("softmax", z, classes, xp=np), softmax)
    squared = 0.5 * ((z - labels) ** 2).sum(1)
    np.testing.assert_allclose(row_loss("squared", z, labels, xp=np), squared)
    assert np.isfinite(row_loss("log", np.array([[1e4], [-1e4]]), np.ones((2, 1)), xp=np)).all()


def test_prediction_needs_no_jax():
    code = "import sys, promissing.networks.mlp; assert 'jax' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"activation": "swish"}, "`activation` must be one of"),
        ({"compensation": "all"}, '`compensation` must be "none", "shared" or "feature"'),
    ],
)
def test_a_network_says_what_it_does_not_know(wrong, message):
    with pytest.raises(ValueError, match=message):
        MLP(**{"n_columns": 3, "n_outputs": 1, "loss": LOSSES["log"]} | wrong)


# --------------------------------------------------------------------------------- one step


def test_a_step_of_sgd_is_the_one_done_by_hand():
    X, y = table()
    weights = np.random.default_rng(1).uniform(0.5, 2.0, len(X)).astype(np.float32)
    net, alpha = MLP(4, 1, LOSSES["log"], ()), 0.7
    start = stack([net.init(np.random.default_rng(3))])
    new = run(net, X, y, start=start, weights=weights, alpha=alpha, max_epochs=1, **SGD).params

    kernel, bias = start["kernel_0"][0], start["bias_0"][0]
    missing = np.isnan(X)
    known, rho = np.where(missing, 0, X), missing.mean(axis=1, keepdims=True)
    z = known @ kernel + (1 - rho) * bias
    slope = weights[:, None] * (1 / (1 + np.exp(-z)) - y) / weights.sum()
    by_kernel = known.T @ slope + alpha * kernel / weights.sum()
    by_bias = ((1 - rho) * slope).sum(axis=0)
    np.testing.assert_allclose(new["kernel_0"][0], kernel - 0.1 * by_kernel, atol=1e-6)
    np.testing.assert_allclose(new["bias_0"][0], bias - 0.1 * by_bias, atol=1e-6)


class Given:
    """Makes scikit-learn's MLP start from given weights."""

    def _init_coef(self, fan_in, fan_out, dtype):
        i = len(self.coefs_)
        start = self.start
        return start[f"kernel_{i}"].astype(float), start[f"bias_{i}"].astype(float)


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        ("binary", {"solver": "adam", "batch_size": 60}),
        ("multi-class", {"solver": "adam", "batch_size": 25}),
        ("multi-label", {"solver": "sgd", "batch_size": 60, "momentum": 0.8}),
        ("regression", {"solver": "sgd", "batch_size": 25, "nesterovs_momentum": False}),
    ],
)
def test_complete_data_train_as_in_scikit_learn(kind, settings):
    X, y = table(gaps=0.0)
    rng = np.random.default_rng(0)
    loss, outputs, target = "log", 1, y[:, 0]
    if kind == "multi-class":
        loss, outputs, target = "softmax", 3, rng.integers(0, 3, len(X))
        y = target[:, None].astype(np.float32)
    elif kind == "multi-label":
        outputs, target = 2, rng.integers(0, 2, (len(X), 2))
        y = target.astype(np.float32)
    elif kind == "regression":
        loss, target = "squared", X[:, 0] + rng.normal(size=len(X))
        y = target[:, None].astype(np.float32)
    net = MLP(4, outputs, LOSSES[loss], (6, 3), "tanh")
    start = net.init(rng)
    common = {"shuffle": False, "alpha": 0.5, "tol": 0.0, "n_iter_no_change": np.inf}
    base = MLPRegressor if kind == "regression" else MLPClassifier
    peer = type("Peer", (Given, base), {"start": start})()
    peer.set_params(
        hidden_layer_sizes=(6, 3), activation="tanh", learning_rate_init=0.05, max_iter=6
    )
    with pytest.warns(UserWarning, match="Maximum iterations"):
        peer.set_params(**common, **settings).fit(X.astype(float), target)
    nesterov = settings.pop("nesterovs_momentum", True)
    ours = run(
        net, X, y, start=stack([start]), learning_rate=0.05, nesterov=nesterov, max_epochs=6,
        **common, **settings,
    )  # fmt: skip
    for i, (kernel, bias) in enumerate(zip(peer.coefs_, peer.intercepts_, strict=True)):
        np.testing.assert_allclose(ours.params[f"kernel_{i}"][0], kernel, atol=2e-5)
        np.testing.assert_allclose(ours.params[f"bias_{i}"][0], bias, atol=2e-5)


def test_adamw_decays_matrices_and_spares_vectors():
    X, y = table()
    net = MLP(4, 1, LOSSES["log"], (3,), compensation="shared")
    settings = {"solver": "adamw", "learning_rate": [0.01, 0.01], "max_epochs": 1, "shuffle": False}
    start = stack([net.init(np.random.default_rng(0))] * 2)
    new = run(net, X, y, replicas=2, start=start, weight_decay=[0.0, 0.3], **settings).params
    for name, value in start.items():
        decay = 0.01 * 0.3 * value[0] if value[0].ndim > 1 else 0.0
        np.testing.assert_allclose(new[name][0] - new[name][1], decay, atol=1e-6)


def test_cosine_lets_the_rate_fall_to_nothing():
    """The slope of a loss that is linear in the bias is constant, so the path shows the rates."""
    net = MLP(1, 1, LOSSES["log"], ())
    X, y = np.zeros((40, 1), np.float32), np.ones((40, 1), np.float32)
    start = {"kernel_0": np.zeros((1, 1, 1)), "bias_0": np.full((1, 1), -60.0)}
    path = [-60.0]
    run(
        net, X, y, start=start, schedule="cosine", batch_size=10, max_epochs=3,
        on_epoch=lambda e: path.append(float(e.params["bias_0"][0, 0])), **NEVER, **SGD,
    )  # fmt: skip
    rates = 0.1 * 0.5 * (1 + np.cos(np.pi * np.arange(12) / 12))
    np.testing.assert_allclose(np.diff(path), rates.reshape(3, 4).sum(axis=1), rtol=1e-4)


# ------------------------------------------------------------------------------------ weights


def test_a_batch_of_zero_weight_changes_nothing():
    """Neither the parameters nor what the solver remembers, its count of steps included."""
    X, y = table(40)
    net = MLP(4, 1, LOSSES["log"], (3,))
    weights = np.ones(40, np.float32)
    weights[10:20] = 0
    settings = {"batch_size": 10, "shuffle": False, "max_epochs": 2, "alpha": 1.0}
    rest = np.flatnonzero(weights)
    with_empty = run(net, X, y, weights=weights, **settings)
    without = run(net, X, y, weights=weights, rows=[rest], **settings)
    assert difference(with_empty.params, without.params) == 0
    for a, b in zip(with_empty.opt_state, without.opt_state, strict=True):
        assert (a == b).all()
    assert (with_empty.train_loss == without.train_loss).all()


def test_weights_equal_repetition():
    X, y = table(60)
    times = np.random.default_rng(0).integers(0, 4, 60)
    net = MLP(4, 1, LOSSES["log"], (3,), compensation="feature")
    settings = {"batch_size": 1000, "shuffle": False, "max_epochs": 20, "alpha": 0.1}
    weighted = run(net, X, y, weights=times.astype(np.float32), **settings)
    rows = [np.repeat(np.arange(60), times)]
    repeated = run(net, X, y, rows=rows, weights=np.ones(60, np.float32), **settings)
    assert difference(weighted.params, repeated.params) < 1e-4
    np.testing.assert_allclose(weighted.train_loss, repeated.train_loss, rtol=1e-4)


def test_rates_make_some_parameters_learn_faster_and_leave_decay_alone():
    X, y = table()
    net = MLP(4, 1, LOSSES["log"], (3,), compensation="feature")
    start = stack([net.init(np.random.default_rng(0))])
    one = {"start": start, "max_epochs": 1, "batch_size": 60}

    def moved(**settings):
        after = run(net, X, y, **one, **settings).params
        return {name: after[name] - start[name] for name in start}

    plain = moved(solver="sgd", momentum=0.0, learning_rate=0.1)
    faster = np.array([[1.0], [3.0], [0.0], [10.0]])
    rated = moved(
        solver="sgd",
        momentum=0.0,
        learning_rate=0.1,
        multipliers={"compensation_weight": faster, "bias_1": 2.0},
    )
    for name, times in {
        **dict.fromkeys(start, 1),
        "compensation_weight": faster,
        "bias_1": 2,
    }.items():
        np.testing.assert_allclose(rated[name], times * plain[name], atol=1e-6)
    decayed = moved(
        solver="adamw", learning_rate=0.1, weight_decay=0.5, multipliers={"kernel_0": 0.0}
    )
    np.testing.assert_allclose(decayed["kernel_0"], -0.05 * start["kernel_0"], rtol=1e-4)


# ----------------------------------------------------------------------------------- replicas


def crowd(hidden, n):
    """Replicas that differ in their rows, with everything on that is drawn at random."""
    rng = np.random.default_rng(0)
    X, y = table()
    order = [np.split(rng.permutation(60), [rng.integers(40, 51)]) for _ in range(n)]
    parts = {"rows": [o[0] for o in order], "val_rows": [o[1] for o in order]}
    settings = {"batch_size": 60, "max_epochs": 3, "dropout": 0.3, "augment": 0.5, "alpha": 0.01,
                "average": True, "augment_others": [0, 0, 0.5, 0],
                "multipliers": {"compensation_weight": [[2.0], [1.0], [5.0]]}}  # fmt: skip
    gates = {"gate_rate": 100.0, "fine": (False, False, True, False)}
    net = MLP(4, 1, LOSSES["log"], hidden, compensation="feature", groups=(0, 1, 1, 2), **gates)
    return {"network": net, "X": X, "y": y, "replicas": n, "schedule": "cosine"} | parts | settings


@pytest.mark.parametrize(
    ("hidden", "n", "batch_size"),
    [((3,), 64, 60), ((3,), 64, 5), ((600,), 2, 60)],
    ids=["side by side", "unlike numbers of steps", "one by one"],
)
def test_a_replica_does_not_depend_on_its_neighbours(hidden, n, batch_size):
    everyone = crowd(hidden, n) | {"batch_size": batch_size}
    together = run(**everyone)
    for r in (0, n - 1):
        alone = run(**everyone, pick=slice(r, r + 1))
        assert difference(replica(alone.params, 0), replica(together.params, r)) < 1e-5
        for curve in ("train_loss", "val_loss"):
            ours, theirs = getattr(alone, curve)[:, 0], getattr(together, curve)[:, r]
            np.testing.assert_allclose(ours, theirs, rtol=1e-4)


@pytest.mark.parametrize(
    ("hidden", "n", "cores"),
    [((600,), 5, 2), ((600,), 5, 3), ((600,), 5, 16), ((3,), 69, 2)],
    ids=["two", "three", "more than needed", "chunks of many, the last not full"],
)
def test_any_number_of_cores_gives_the_same_bits(hidden, n, cores, monkeypatch):
    everyone = crowd(hidden, n) | {"n_iter_no_change": 1, "max_epochs": 6}
    everyone["learning_rate"] = np.where(np.arange(n) % 3 == 1, 1e-9, 0.01)

    def on(cores):
        monkeypatch.setattr(engine_lanes, "usable_cores", lambda: cores)
        return run(**everyone)

    one, many = on(1), on(cores)
    assert difference(one.params, many.params) == 0
    for name in ("train_loss", "val_loss", "n_epochs", "best_epoch"):
        np.testing.assert_array_equal(getattr(one, name), getattr(many, name))
    assert len(set(one.n_epochs)) > 1, "some should have stopped before others"


@pytest.mark.parametrize(
    ("cores", "said", "usable"),
    [(8, "", 8), (8, "2", 2), (8, "64", 8), (8, "0", 1), (8, "all", 8), (1, "", 1)],
)
@pytest.mark.parametrize("where", ["NPROC", "OMP_NUM_THREADS"])
def test_what_holds_others_to_fewer_threads_holds_us(where, cores, said, usable, monkeypatch):
    monkeypatch.setattr(engine_lanes, "cpu_count", lambda: cores)
    for name in ("NPROC", "OMP_NUM_THREADS"):
        monkeypatch.setenv(name, said if name == where else "")
    assert engine_lanes.usable_cores() == usable


def test_what_goes_wrong_on_one_core_is_told(monkeypatch):
    monkeypatch.setattr(engine_lanes, "usable_cores", lambda: 2)
    real = engine_lanes.program

    def failing(*args):
        run_epoch = real(*args)

        def fail(*args):
            if 4 in args[1].number:  # The first of the second half.
                raise MemoryError("too much")
            return run_epoch(*args)

        return fail

    monkeypatch.setattr(engine_lanes, "program", failing)
    with pytest.raises(MemoryError, match="too much"):
        run(**crowd((600,), 8))


def test_the_same_seed_gives_the_same_bits():
    first, second = (run(**crowd((3,), 64)) for _ in range(2))
    assert difference(first.params, second.params) == 0
    assert (first.train_loss == second.train_loss).all()


@pytest.mark.parametrize(("hidden", "n"), [((3,), 1), ((600,), 2)], ids=["one", "two lanes"])
def test_double_precision_elsewhere_changes_nothing(hidden, n, monkeypatch):
    """Whoever has switched it on for other work gets the same networks."""
    import jax

    monkeypatch.setattr(engine_lanes, "usable_cores", lambda: 2)
    first = crowd(hidden, 64) | {"pick": slice(0, n)}
    usual = run(**first)
    with jax.enable_x64(True):
        other = run(**first)
    assert {a.dtype for a in other.params.values()} == {np.dtype(np.float32)}
    assert difference(usual.params, other.params) < 1e-5


@pytest.mark.parametrize(("hidden", "cores"), [((3,), 1), ((2400,), 2)], ids=["chunk", "lanes"])
def test_weights_of_its_own_are_the_same_as_data_of_its_own(hidden, cores, monkeypatch):
    """Weights by replica, and matrices one after the other."""
    monkeypatch.setattr(engine_lanes, "usable_cores", lambda: cores)
    X, y = table(40, gaps=0.3)
    rng = np.random.default_rng(0)
    weights = rng.uniform(0.5, 2.0, (2, 40)).astype(np.float32)
    net = MLP(4, 1, LOSSES["log"], hidden)
    settings = {"batch_size": 16, "max_epochs": 3}
    split = {"rows": [np.arange(30)] * 2, "val_rows": [np.arange(30, 40)] * 2}
    ours = run(net, X, y, replicas=2, weights=weights, **split, **settings)
    matrices = (X, X)  # A list would be emptied.
    split = {key: [rows + 40 * r for r, rows in enumerate(split[key])] for key in split}
    theirs = run(
        net, matrices, np.concatenate([y, y]), replicas=2, weights=weights.ravel(), **split,
        **settings,
    )  # fmt: skip
    assert difference(ours.params, theirs.params) < 1e-6
    np.testing.assert_allclose(ours.val_loss, theirs.val_loss, rtol=1e-5)
    best = ours.best_epoch[1] - 1
    outputs = evaluate(net, replica(ours.params, 1), matrices[1][30:])
    by_hand = row_loss("log", outputs, y[30:], xp=np)
    weighted = np.average(by_hand, weights=weights[1, 30:])
    assert ours.val_loss[best, 1] == pytest.approx(weighted, rel=1e-5)


# --------------------------------------------------------------------------- when to stop


def overfit(rates, **settings):
    """Replicas that learn few rows by heart, each judged by rows of its own."""
    X, y = table(120, gaps=0.1)
    order = [np.random.default_rng(r).permutation(120) for r in range(len(rates))]
    parts = {"rows": [o[:20] for o in order], "val_rows": [o[20:] for o in order]}
    net, seen = MLP(4, 1, LOSSES["log"], (20,)), []
    settings = {"max_epochs": 40, "n_iter_no_change": 5, "on_epoch": seen.append} | settings
    trained = run(net, X, y, replicas=len(rates), learning_rate=rates, **parts, **settings)

    def val_loss(r):
        outputs = evaluate(net, replica(trained.params, r), X[order[r][20:]])
        return row_loss("log", outputs, y[order[r][20:]], xp=np).mean()

    return trained, seen, val_loss


def test_early_stopping_keeps_the_best_weights():
    trained, seen, val_loss = overfit([0.1, 0.05, 0.02, 1e-6])
    assert trained.converged.all()
    assert len(seen) == trained.n_epochs.max() == len(trained.val_loss)
    assert len(set(trained.n_epochs.tolist())) > 1
    for r in range(4):
        curve = trained.val_loss[:, r]
        best, last = trained.best_epoch[r], trained.n_epochs[r]
        assert best == np.nanargmin(curve) + 1
        assert np.isfinite(curve[:last]).all()
        assert np.isnan(curve[last:]).all()
        assert difference(replica(trained.params, r), replica(seen[best - 1].params, r)) == 0
        assert val_loss(r) == pytest.approx(curve[best - 1], rel=1e-5)
        assert sum(epoch.active[r] for epoch in seen) == last - 1
    assert trained.n_epochs[3] == 7  # No progress worth the name: 1 + n_iter_no_change + 1.


def test_a_loss_that_is_not_a_number_ends_the_training_of_that_replica_only():
    trained, _, val_loss = overfit([1e30, 0.05, 0.02, 0.01], max_epochs=12)
    assert trained.n_epochs[0] < 12
    assert np.isfinite(trained.val_loss[:, 3]).all()
    assert np.isfinite([val_loss(r) for r in (1, 2, 3)]).all()


def test_interrupt_keeps_the_best_so_far():
    seen = []

    def interrupt(epoch):
        seen.append(epoch)
        if epoch.number == 4:
            raise KeyboardInterrupt

    with pytest.warns(UserWarning, match="interrupted after epoch 4 of at most 50"):
        trained, _, _ = overfit([0.3, 0.2, 0.1, 0.05], max_epochs=50, on_epoch=interrupt)
    assert trained.interrupted
    assert trained.n_epochs.tolist() == [4] * 4
    for r, best in enumerate(trained.best_epoch):
        assert difference(replica(trained.params, r), replica(seen[best - 1].params, r)) == 0


def test_without_validation_the_training_loss_decides_and_the_last_weights_stay():
    X, y = table()
    seen = []
    trained = run(
        MLP(4, 1, LOSSES["log"], (3,)), X, y, replicas=2, learning_rate=[1e-7, 0.01], max_epochs=30,
        on_epoch=seen.append,
    )  # fmt: skip
    assert trained.n_epochs.tolist() == [12, 30]
    assert trained.converged.tolist() == [True, False]
    assert np.isnan(trained.val_loss).all()
    assert difference(trained.params, seen[-1].params) == 0


def test_going_narrower_changes_nothing_for_those_who_go_on(monkeypatch):
    """When replicas have finished, the others move together into a smaller program."""
    X, y = table()
    net = MLP(4, 1, LOSSES["log"], (3,))
    rate = np.where(np.arange(12) % 4 == 1, 0.01, 1e-9)
    settings = {"replicas": 12, "learning_rate": rate, "batch_size": 16, "max_epochs": 8}
    settings["n_iter_no_change"] = 1
    wide = run(net, X, y, **settings)
    active = []

    def narrow(now, n_active, work, steps):
        active.append(n_active)
        return 12 if n_active > 6 else 4

    monkeypatch.setattr(engine_epoch, "next_width", narrow)
    trained = run(net, X, y, **settings)
    assert active[0] == 12
    assert active[-1] == 3
    assert trained.n_epochs.tolist() == wide.n_epochs.tolist()
    assert difference(trained.params, wide.params) < 1e-6


def test_a_program_goes_narrower_only_where_that_pays():
    tiny, small, large = 10 * 70, 30_000, 10**6
    assert engine_epoch.next_width(0, 64, tiny, 0) == 64
    assert engine_epoch.next_width(0, 65, tiny, 0) == 33
    assert engine_epoch.next_width(0, 64, small, 0) == 8
    assert engine_epoch.next_width(0, 64, large, 0) == 1
    assert engine_epoch.next_width(64, 10, tiny, 100) == 64  # Compiling would take longer.
    assert engine_epoch.next_width(64, 10, tiny, 100_000) == 16
    assert engine_epoch.next_width(16, 1, tiny, 1_000_000) == 1
    assert engine_epoch.next_width(16, 16, tiny, 1_000_000) == 16


def test_interrupt_before_anything_was_learned_is_passed_on(monkeypatch):
    def interrupt(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr(engine_lanes, "program", interrupt)
    with pytest.raises(KeyboardInterrupt):
        run(MLP(4, 1, LOSSES["log"], (3,)), *table())


def test_going_on_is_the_same_as_never_having_stopped():
    X, y = table()
    net = MLP(4, 1, LOSSES["log"], (5,))
    settings = {"batch_size": 16, **NEVER}
    straight = run(net, X, y, max_epochs=4, **settings)
    rngs = generators(1)
    params, state = stack([net.init(rng) for rng in rngs]), None
    for _ in range(2):
        data = Data(X, y, [np.arange(60)])
        part = train(net, params, data, rngs=rngs, max_epochs=2, opt_state=state, **settings)
        params, state = part.params, part.opt_state
    assert difference(params, straight.params) == 0


# ----------------------------------------------------------------------------------- programs


@dataclass(frozen=True)
class Counting(MLP):
    """A network that counts how often its loss is traced: once in each new program."""

    def row_loss(self, *args, **kwargs):
        TRACED.append(kwargs)
        return super().row_loss(*args, **kwargs)


TRACED: list[dict] = []


def test_folds_of_nearly_equal_size_compile_once(monkeypatch):
    # Sizes are shared with whatever was trained before: here, with nothing.
    monkeypatch.setattr(engine_batches, "_sizes", set())
    TRACED.clear()
    net = Counting(4, 1, LOSSES["log"], (3,))
    for n in (416, 417, 418, 416, 415, 410, 421):
        X, y = table(n)
        run(net, X, y, max_epochs=2, batch_size=32)
    assert len(TRACED) == 1
    for n in (119, 121, 120):  # Smaller than a batch.
        X, y = table(n)
        run(net, X, y, max_epochs=2, batch_size=200)
    assert len(TRACED) == 2


def test_numbers_are_arguments_and_compile_nothing(monkeypatch):
    monkeypatch.setattr(engine_batches, "_sizes", set())
    TRACED.clear()
    X, y = table()
    for i in range(3):
        run(
            Counting(4, 1, LOSSES["log"], (3,)), X, y, learning_rate=0.01 * (i + 1),
            alpha=0.1 + 0.1 * i, beta_1=0.9 - 0.1 * i, dropout=0.1 + 0.1 * i,
            augment=0.2 + 0.1 * i, max_epochs=1 + i,
        )  # fmt: skip
    assert len(TRACED) == 1


def test_the_programs_used_last_are_kept(monkeypatch):
    two = lru_cache(maxsize=2)(engine_programs._program.__wrapped__)
    monkeypatch.setattr(engine_programs, "_program", two)
    X, y = table()

    def fit(n_units):
        return run(MLP(4, 1, LOSSES["log"], (n_units,)), X, y, max_epochs=2)

    def alive():
        gc.collect()
        return len(backend.get_backend().live_executables())

    first = fit(1), fit(2)
    before = alive()
    fit(1)
    assert two.cache_info().misses == 2
    fit(3)  # Replaces 2, which was not used for longer.
    assert two.cache_info().misses == 3
    assert alive() == before
    fit(1)
    assert two.cache_info().misses == 3
    assert difference(fit(2).params, first[1].params) == 0
    assert two.cache_info().misses == 4
    assert alive() == before


def test_what_jax_traced_is_forgotten_from_time_to_time(monkeypatch):
    cleared = []
    fresh = lru_cache(maxsize=2)(engine_programs._program.__wrapped__)
    monkeypatch.setattr(engine_programs, "_program", fresh)
    monkeypatch.setattr(engine_programs, "CLEARED", 3)
    monkeypatch.setattr(engine_programs.jax, "clear_caches", lambda: cleared.append(True))
    for i in [0, *range(7), 6]:
        engine_programs.program(engine_epoch.run_epoch, (i,), np.zeros(2))
    assert len(cleared) == 2


def test_a_long_table_is_not_copied_and_a_short_one_padded():
    n = engine_batches.LONG + 1
    long = np.zeros((n, 2), np.float32)
    assert np.shares_memory(engine_batches.stacked([long], 0), long)
    two = engine_batches.stacked([long[:3] + 1, long], 0)
    assert two.shape == (n + 3, 2)
    assert two.ctypes.data % 64 == 0
    assert two.sum() == 6
    short = engine_batches.stacked([np.ones((2, 50, 3))], 1)
    assert short.dtype == np.float32
    assert short.shape[1] > 50
    assert short.sum() == 300


# ------------------------------------------------------------------------- averages


def averages(weights):
    """The averages after every step, given the start and the weights after every step."""
    average, found = weights[0], []
    for t, now in enumerate(weights[1:], start=1):
        share = max(1 / 2000, 1 / (1 + t / 20))
        average = average + share * (now - average)
        found.append(average)
    return found


def test_the_average_goes_back_no_further_than_2000_steps():
    old = {"w": np.float32(0)}, np.float32(10**6)
    average, seen = engine_epoch._averaged(old, {"w": 1.0}, 60.0)
    assert average["w"] == pytest.approx(4 / 2000)  # Of every fourth step.
    assert seen == 10**6 + 1
    average, seen = engine_epoch._averaged(old, {"w": 1.0}, 0.0)  # A step without rows.
    assert average["w"] == 0
    assert seen == 10**6


def test_the_average_is_of_every_fourth_step():
    X, y = table()
    net = MLP(4, 1, LOSSES["log"], (3,))
    settings = SGD | {"shuffle": False, "max_epochs": 1, "replicas": 1} | NEVER
    start = stack([net.init(rng) for rng in generators(1)])
    # After 1 and after 5 steps of ten rows: the first of an epoch, and four more.
    after = [run(net, X, y, **settings, rows=[np.arange(10 * k)], batch_size=10) for k in (1, 5)]
    told = run(net, X, y, **settings, rows=[np.arange(60)], batch_size=10, average=True)
    for name in start:
        expected = averages([start[name], *(one.params[name] for one in after)])[-1]
        np.testing.assert_allclose(told.params[name], expected, atol=1e-6)


def test_the_average_is_what_is_told_and_kept():
    X, y = table()
    net = MLP(4, 1, LOSSES["log"], (3,))
    settings = SGD | {"batch_size": 60, "max_epochs": 12, "replicas": 2} | NEVER
    start = stack([net.init(rng) for rng in generators(2)])
    steps, told = [start], []
    plain = run(net, X, y, **settings, on_epoch=lambda epoch: steps.append(epoch.params))
    trained = run(
        net, X, y, **settings, average=True, on_epoch=lambda epoch: told.append(epoch.params)
    )
    np.testing.assert_array_equal(trained.train_loss, plain.train_loss)  # Training is the same.
    for name in start:
        expected = averages([one[name] for one in steps])
        np.testing.assert_allclose([one[name] for one in told], expected, atol=1e-6)
        np.testing.assert_array_equal(trained.params[name], told[-1][name])


def test_validation_judges_the_average_and_keeps_the_best_of_them():
    X, y = table(200)
    net = MLP(4, 1, LOSSES["log"], (3,))
    rows = {"rows": [np.arange(150)], "val_rows": [np.arange(150, 200)]}
    told = []
    trained = run(
        net, X, y, **rows, average=True, learning_rate=0.3, batch_size=50, max_epochs=8, **NEVER,
        on_epoch=lambda epoch: told.append(epoch.params),
    )  # fmt: skip
    for now, loss in zip(told, trained.val_loss[:, 0], strict=True):
        output = evaluate(net, replica(now, 0), X[150:])
        assert row_loss("log", output, y[150:], xp=np).mean() == pytest.approx(loss, rel=1e-5)
    best = told[int(trained.val_loss[:, 0].argmin())]
    assert trained.val_loss[:, 0].argmin() < 7
    assert not difference(trained.params, best)


# ------------------------------------------------------------------------- augmentation


def lost(share, n_units, n=4000, **more):
    import jax
    import jax.numpy as jnp

    @jax.jit
    def draw(step):
        mine = SimpleNamespace(
            key=jnp.uint32(3), hyper={"augment": share, **more}, batches=np.empty((1, n))
        )
        return draw_lost(tuple(range(n_units)), "number", True, step, mine)

    return np.concatenate([draw(0), draw(1)])


def test_augmentation_loses_every_number_of_features_equally_often():
    """u ~ U(0, 1) for every row makes 0 to all of them lost with the same probability."""
    gone = lost(1.0, 4)
    shares = np.bincount(gone.sum(axis=1), minlength=5) / len(gone)
    np.testing.assert_allclose(shares, 0.2, atol=0.02)
    first, second = np.split(gone, 2)
    assert (first != second).any()


def test_augmentation_spares_the_other_rows():
    untouched = ~lost(0.3, 40).any(axis=1)
    assert untouched.mean() == pytest.approx(0.7 + 0.3 / 41, abs=0.02)
    assert not lost(0.0, 3).any()


def test_the_other_rows_lose_each_feature_with_its_share():
    shares = np.float32([0.0, 0.4, 1.0])
    gone = lost(0.0, 3, augment_others=shares)
    np.testing.assert_allclose(gone.mean(axis=0), shares / 2, atol=0.02)
    gone = lost(0.5, 3, augment_others=shares)
    np.testing.assert_allclose(gone.mean(axis=0), (shares / 2 + 0.5) / 2, atol=0.02)


def test_shares_of_the_other_rows_reach_the_batches():
    X, y = table(gaps=0.0)
    net = MLP(4, 1, LOSSES["log"], (3,))
    plain = run(net, X, y, max_epochs=2)
    for others in (None, np.zeros(4)):
        assert not difference(
            run(net, X, y, augment_others=others, max_epochs=2).params, plain.params
        )
    assert difference(
        run(net, X, y, augment_others=[0, 0, 0, 1], max_epochs=2).params, plain.params
    )


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"augment_others": [1, 1]}, "one entry for each unit"),
        ({"augment_others": [1] * 4, "augment_by": "subset"}, "needs the law 'number'"),
        ({"augment_others": [1] * 4, "augment_empty": False}, "`allow_empty=True`"),
    ],
)
def test_shares_that_make_no_sense_are_refused(given, said):
    X, y = table()
    with pytest.raises(ValueError, match=said):
        run(MLP(4, 1, LOSSES["log"], (3,)), X, y, **given)


def test_augmentation_loses_the_columns_of_a_feature_together():
    import jax

    seen = []

    @dataclass(frozen=True)
    class Peeping(MLP):
        def row_loss(self, params, x, y, *, xp, **rest):
            jax.debug.callback(lambda x: seen.append(np.isnan(x)), x)
            return super().row_loss(params, x, y, xp=xp, **rest)

    X, y = np.ones((60, 5), np.float32), np.ones((60, 1), np.float32)
    net = Peeping(5, 1, LOSSES["log"], ())
    run(net, X, y, augment=1.0, units=(0, 1, 0, 2, 1), batch_size=30, max_epochs=1)
    jax.effects_barrier()
    gone = np.concatenate(seen)
    assert (gone[:, 0] == gone[:, 2]).all()
    assert (gone[:, 1] == gone[:, 4]).all()
    assert (gone[:, 0] != gone[:, 3]).any()
    assert gone.all(axis=1).any()


def test_after_augmentation_an_empty_row_predicts_the_prior():
    X, y = table(800, gaps=0.0)
    net = MLP(4, 1, LOSSES["log"], (16,))
    settings = {"learning_rate": 0.01, "batch_size": 100, "max_epochs": 60}
    trained = run(net, X, y, augment=0.5, **settings, **NEVER)
    logit = evaluate(net, replica(trained.params, 0), np.full((1, 4), np.nan))
    assert 1 / (1 + np.exp(-logit)) == pytest.approx(y.mean(), abs=0.06)


def test_draws_are_uniform_and_differ():
    import jax.numpy as jnp

    from promissing.training.numerics import Uniform

    draws = []
    for key in (0, 1):
        for step in (0, 1):
            uniform = Uniform(jnp.uint32(key), jnp.int32(step))
            draws += [np.asarray(uniform((100, 200))).ravel() for _ in range(2)]
    draws = np.array(draws)
    assert ((draws >= 0) & (draws < 1)).all()
    np.testing.assert_allclose(draws.mean(axis=1), 0.5, atol=0.01)
    np.testing.assert_allclose(draws.std(axis=1), np.sqrt(1 / 12), atol=0.01)
    assert np.abs(np.corrcoef(draws) - np.eye(8))[~np.eye(8, dtype=bool)].max() < 0.04
    neighbours = np.corrcoef(draws[0][:-1], draws[0][1:])[0, 1]
    assert abs(neighbours) < 0.03


def test_dropout_keeps_the_expectation():
    net = MLP(2, 1, LOSSES["squared"], (2000,), "identity")
    params = net.init(np.random.default_rng(0))
    x = np.array([[1.0, -2.0]])
    rng = np.random.default_rng(0)
    outs = [
        net.forward(params, x, xp=np, dropout=0.4, uniform=rng.random)[0, 0] for _ in range(300)
    ]
    assert np.std(outs) > 0
    exact = evaluate(net, params, x)[0, 0]
    assert abs(np.mean(outs) - exact) < 4 * np.std(outs) / np.sqrt(300)


# ---------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"solver": "lbfgs"}, "`solver` must be one of"),
        ({"schedule": "adaptive"}, "`schedule` must be one of"),
        ({"rows": [np.arange(0)]}, "`rows` of replica 0 must name some of the rows 0 to 59"),
        ({"rows": [np.array([60])]}, "`rows` of replica 0 must name some of the rows 0 to 59"),
        ({"rows": [np.arange(9)] * 2}, "`rows` make 2 replicas, but `.*` is for 1 of them"),
        ({"val_rows": [np.arange(9)] * 2}, "`rows` make 1 replicas, but `val_rows` is for 2"),
        ({"weights": np.zeros(60)}, "The weights of the `rows` of replica 0 sum to nothing"),
        ({"opt_state": [np.zeros(3)]}, "`opt_state` is that of another network"),
    ],
)
def test_errors_name_the_culprit(wrong, message):
    with pytest.raises(ValueError, match=message):
        run(MLP(4, 1, LOSSES["log"], (3,)), *table(), **wrong)


def test_a_list_of_tables_is_taken_over_and_serves_once():
    X, y = table()
    network = MLP(4, 1, LOSSES["log"], (3,))
    halves = [X[:30], X[30:]]
    whole = run(network, X, y, max_epochs=2)
    taken = [*halves]
    again = run(network, taken, y, max_epochs=2)
    assert difference(again.params, whole.params) == 0
    assert taken == []
    with pytest.raises(ValueError, match="`X` is empty. A list of tables serves one training"):
        run(network, taken, y, max_epochs=2)
    kept = tuple(halves)
    run(network, kept, y, max_epochs=1)
    assert len(kept) == 2


def test_memory_is_given_back_where_there_is_a_way(monkeypatch):
    from promissing.training import programs

    asked = []
    library = SimpleNamespace(malloc_trim=asked.append)
    monkeypatch.setattr(programs.ctypes, "CDLL", lambda name: library)
    programs.give_back()
    assert asked == [0]
    del library.malloc_trim
    programs.give_back()


# ------------------------------------------------------------------------------------- processes

FORKS = """
import multiprocessing, sys, warnings
warnings.simplefilter("ignore")  # JAX warns about every fork.
import numpy as np
import promissing

y = np.arange(20.0)
X = np.column_stack([np.where(y % 5, y, np.nan), y])

def fit():
    settings = {**promissing.estimators.mlp.PLAIN, "max_iter": 2, "random_state": 0}
    return promissing.NanMLPRegressor(**settings).fit(X, y)

def impute():
    return promissing.GAINImputer(n_steps=3).fit_transform(X)

def child(method, function, *args):
    with multiprocessing.get_context(method).Pool(1) as pool:
        return pool.apply_async(function, args).get(timeout=120)

def refused(function):
    try:
        child("fork", function)
    except RuntimeError as error:
        return "'spawn'" in str(error) and "'loky'" in str(error)

if __name__ == "__main__":
    model = child("fork", fit)  # The parent has only imported the package,
    expected = model.predict(X)  # and then predicted.
    print("jax" not in sys.modules)
    print((child("fork", fit).predict(X) == expected).all())
    import jax
    print((child("fork", fit).predict(X) == expected).all())
    jax.device_put(0.0)
    print(refused(fit))
    print((fit().predict(X) == expected).all())  # The parent itself may train.
    print(refused(fit), refused(impute))
    print((child("fork", model.predict, X) == expected).all())
    print((child("spawn", fit).predict(X) == expected).all())
"""


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="no forks")
def test_training_in_a_fork_of_a_process_that_used_jax_is_refused(tmp_path, monkeypatch):
    """The other children train, and all of them predict."""
    monkeypatch.setenv("JAX_DISABLE_MOST_OPTIMIZATIONS", "1")
    script = tmp_path / "forks.py"
    script.write_text(FORKS)
    out = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, check=False, timeout=600
    )
    assert out.stdout.split() == ["True"] * 9, out.stderr
