"""What GAIN imputes, what it leaves alone, that its steps are those of the paper; neighbours."""

import pickle
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.impute import KNNImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import estimator_checks
from sklearn.utils.estimator_checks import parametrize_with_checks

from promissing.compare import gan, imputers
from promissing.compare.imputers import GAINImputer, NeighborsImputer
from promissing.training import programs
from promissing.training.numerics import Uniform

NAN = np.nan


@parametrize_with_checks([GAINImputer(n_steps=5)])
def test_scikit_learn(estimator, check):
    check(estimator)


# The check itself mixes frames and bare arrays.
@pytest.mark.filterwarnings(
    "ignore:X (has|does not have valid) feature names:UserWarning:sklearn.*"
)
@pytest.mark.parametrize(
    "check",
    [
        "check_dataframe_column_names_consistency",
        "check_global_output_transform_pandas",
        "check_set_output_transform",
        "check_set_output_transform_pandas",
        "check_set_output_transform_polars",
        "check_transformer_get_feature_names_out",
        "check_transformer_get_feature_names_out_pandas",
    ],
)
def test_scikit_learn_names(check):
    getattr(estimator_checks, check)("GAINImputer", GAINImputer(n_steps=5))


def table(n=400, p=5, *, missing=0.25, seed=0):
    """Correlated columns of several scales, whole and with gaps."""
    rng = np.random.default_rng(seed)
    mixed = rng.normal(size=(n, 2)) @ np.random.default_rng(0).normal(size=(2, p))
    whole = (mixed + 0.2 * rng.normal(size=(n, p))) * 10.0 ** (np.arange(p) - 1) + np.arange(p)
    return whole, np.where(rng.random((n, p)) < missing, NAN, whole)


WHOLE, X = table()
NEW_WHOLE, NEW = table(seed=1)


@pytest.fixture(scope="module")
def fitted():
    return GAINImputer(n_steps=2000, random_state=0).fit(X)


# ------------------------------------------------------------------------------- what comes out


def error(imputed):
    """The root of the mean squared error in the gaps of NEW, in deviations."""
    return np.sqrt(np.mean(((imputed - NEW_WHOLE) / NEW_WHOLE.std(axis=0))[np.isnan(NEW)] ** 2))


@pytest.mark.parametrize("seed", range(3))
def test_it_beats_the_mean_on_rows_it_has_not_seen(seed):
    imputer = GAINImputer(n_steps=2000, random_state=seed).fit(X)
    assert error(imputer.transform(NEW)) < 0.8 * error(np.nanmean(X, axis=0))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_observed_values_come_back_bit_for_bit_and_gaps_are_filled(fitted, dtype):
    x = NEW.astype(dtype)
    before = x.copy()
    out = fitted.transform(x)
    assert out.dtype == dtype
    assert np.isfinite(out).all()
    seen = ~np.isnan(x)
    assert_array_equal(out[seen].view(np.uint8), x[seen].view(np.uint8))
    assert_array_equal(x, before)
    assert not np.shares_memory(fitted.transform(WHOLE), WHOLE)


def test_what_is_filled_in_lies_within_what_was_observed(fitted):
    extreme = NEW * 100
    filled = np.where(np.isnan(extreme), fitted.transform(extreme), NAN)
    assert (np.nanmin(filled, axis=0) >= fitted.data_min_).all()
    assert (np.nanmax(filled, axis=0) <= fitted.data_max_).all()
    assert_array_equal(fitted.data_min_, np.nanmin(X, axis=0))
    assert np.isfinite(fitted.transform([[1e308, -1e308, NAN, NAN, NAN]])).all()


def test_a_row_is_imputed_alike_whatever_is_around_it(fitted):
    out = fitted.transform(NEW)
    assert_array_equal(fitted.transform(NEW), out)
    assert_allclose(fitted.transform(NEW[::-1]), out[::-1], rtol=1e-9)
    assert_allclose(np.vstack([fitted.transform(row[None]) for row in NEW[:20]]), out[:20], 1e-9)
    many = np.tile(NEW, (12, 1))  # More than one block.
    assert_allclose(fitted.transform(many), np.tile(out, (12, 1)), rtol=1e-9)


def test_the_same_seed_gives_the_same_bits(fitted):
    again = GAINImputer(n_steps=2000, random_state=0)
    assert_array_equal(again.fit_transform(X), fitted.transform(X))
    other = clone(again).set_params(random_state=1).fit(X)
    assert not np.array_equal(other.transform(X), fitted.transform(X))
    assert_array_equal(pickle.loads(pickle.dumps(fitted)).transform(NEW), fitted.transform(NEW))


def test_rows_without_any_value(fitted):
    out = fitted.transform(np.full((3, 5), NAN))
    assert np.isfinite(out).all()
    empty = GAINImputer(n_steps=5, batch_size=1, random_state=0)
    mostly = np.where(np.arange(400)[:, None] < 390, NAN, WHOLE)  # Batches of nothing at all.
    assert np.isfinite(empty.fit_transform(mostly)).all()


# ------------------------------------------------------------------------- all kinds of tables


def test_a_table_smaller_than_a_batch():
    x = table(30)[1]
    imputer = GAINImputer(n_steps=1500, random_state=0).fit(x)
    assert error(imputer.transform(NEW)) < error(np.nanmean(x, axis=0))


def test_three_rows_of_one_column():
    x = np.array([[0.0], [NAN], [0.25]])
    out = GAINImputer(n_steps=5, round=False, random_state=0).fit_transform(x)
    assert_array_equal(out[[0, 2]], x[[0, 2]])
    assert 0 < out[1, 0] < 0.25


def test_without_gaps_there_is_nothing_to_learn():
    """The discriminator would see observed cells only: later gaps get the mean, with a warning."""
    frame = pd.DataFrame({"age": [20.0, 40.0, 90.0], "dose": [1.0, 2.0, 4.5]})
    imputer = GAINImputer(random_state=0).fit(frame)
    assert imputer.n_steps_ == 0
    assert imputer.generator_ is None
    assert_array_equal(imputer.transform(frame), frame)
    with pytest.warns(
        UserWarning, match="none in training: column 'age'. GAIN has not .* the mean"
    ):
        out = imputer.transform(frame.assign(age=NAN))
    assert_array_equal(out[:, 0], [50.0] * 3)
    assert_array_equal(out[:, 1], frame["dose"])


def test_a_gap_that_is_new_does_not_disturb_the_others():
    x = X.copy()
    x[:, 1] = WHOLE[:, 1]
    imputer = GAINImputer(n_steps=50, random_state=0).fit(x)
    one = NEW[:1].copy()
    one[0, :2] = NAN
    with pytest.warns(UserWarning, match="column 1"):
        out = imputer.transform(one)
    assert out[0, 1] == pytest.approx(x[:, 1].mean())
    one[0, 1] = out[0, 1]  # As if the mean had been observed.
    assert_allclose(imputer.transform(one), out)


def test_a_column_of_which_nothing_is_known_is_filled_with_zeros():
    """As SimpleImputer(keep_empty_features=True) does; the number of columns is kept."""
    x = np.insert(X, 2, NAN, axis=1)
    imputer = GAINImputer(n_steps=200, random_state=0).fit(x)
    out = imputer.transform(np.insert(NEW, 2, NAN, axis=1))
    assert_array_equal(out[:, 2], 0)
    without = GAINImputer(n_steps=200, random_state=0).fit(X).transform(NEW)
    assert_array_equal(np.delete(out, 2, axis=1), without)
    known = imputer.transform(np.insert(NEW, 2, 7.0, axis=1))
    assert_array_equal(known[:, 2], 7)
    assert_array_equal(np.delete(known, 2, axis=1), without)
    assert_array_equal(GAINImputer().fit_transform([[NAN], [NAN]]), [[0], [0]])


@pytest.mark.parametrize("value", [0.0, 1 / 3, 1e-9, -1e12])
def test_a_constant_column_stays_constant(value):
    x = X.copy()
    x[:, 0] = np.where(np.isnan(x[:, 0]), NAN, value)
    assert_array_equal(GAINImputer(n_steps=5, random_state=0).fit_transform(x)[:, 0], value)


def test_frames_of_any_spelling_of_missing():
    frame = pd.DataFrame(X[:, :3], columns=list("abc"))
    frame["d"] = pd.array([1, None, 3, 4] * 100, dtype="Int64")
    frame["e"] = pd.Series([True, None, False, pd.NA] * 100, dtype=object)
    imputer = GAINImputer(n_steps=50, random_state=0).set_output(transform="pandas")
    out = imputer.fit_transform(frame)
    assert list(out) == list("abcde")
    assert set(out["e"]) <= {0.0, 1.0}
    assert set(out["d"]) <= {1.0, 2.0, 3.0, 4.0}
    plain = frame.astype({"d": float}).assign(e=[1.0, NAN, 0.0, NAN] * 100)
    assert_array_equal(clone(imputer).fit_transform(plain.to_numpy()), out)
    out = clone(imputer).fit_transform(pl.from_pandas(plain, nan_to_null=True))
    assert_array_equal(out, clone(imputer).fit_transform(plain))


def test_gives_a_pipeline_that_takes_nan():
    y = WHOLE[:, 0] > 0
    imputer = GAINImputer(n_steps=200, random_state=0)
    model = make_pipeline(imputer, StandardScaler(), LogisticRegression()).fit(X, y)
    assert model.score(NEW, NEW_WHOLE[:, 0] > 0) > 0.75


# ------------------------------------------------------------------------------------ rounding


def coded(values, n=200):
    """A column of a few values and one of which there are many, both with gaps."""
    rng = np.random.default_rng(0)
    x = np.column_stack([np.resize(values, n), rng.normal(size=n)])
    x[rng.random(x.shape) < 0.2] = NAN
    return x


@pytest.mark.parametrize(
    ("values", "decimals"), [(np.arange(19.0), 0), ([0.25, -1.5, 3], 2), ([1e15, 1e-3], 3)]
)
def test_columns_of_fewer_than_20_values_get_as_many_decimals_as_these_have(values, decimals):
    x = coded(values)
    out = GAINImputer(n_steps=5, random_state=0).fit_transform(x)
    assert_array_equal(out[:, 0], out[:, 0].round(decimals))
    filled = out[np.isnan(x[:, 1]), 1]
    assert (filled != filled.round(decimals)).all()
    assert not np.signbit(out[out == 0]).any()


def test_other_columns_are_not_rounded():
    for values, settings in [(np.arange(20.0), {}), ([1.0, 2.0], {"round": False})]:
        x = coded(values)
        out = GAINImputer(n_steps=5, random_state=0, **settings).fit_transform(x)
        filled = out[np.isnan(x[:, 0]), 0]
        assert (filled != filled.round()).all()
    few = np.random.default_rng(0).normal(size=15)  # Few, but not codes.
    out = GAINImputer(n_steps=5, random_state=0).fit_transform(coded(few))
    assert set(out[:, 0].round(9)) - set(few.round(9))


def test_float32_is_rounded_to_its_own_decimals():
    x = coded([0.1, 0.2, 0.7]).astype(np.float32)
    out = GAINImputer(n_steps=5, random_state=0).fit_transform(x)
    assert set(out[:, 0]) <= set(np.arange(1, 8, dtype=np.float32) / np.float32(10))


# --------------------------------------------------------------------------------- how it learns


def spelled_out(x, seed, *, n_steps, hint_rate, alpha, rate):
    """GAIN the long way: rows first, weights and biases apart, each player's loss by itself."""
    n, p = x.shape
    rng = np.random.default_rng(seed)
    players = []
    for _ in range(2):
        players.append([(layer[:, :-1].T, layer[:, -1]) for layer in gan._initial_layers(rng, p)])
    key = jnp.asarray(rng.integers(2**32, dtype=np.uint32))
    m = (~np.isnan(x)).astype(np.float32)
    x = np.nan_to_num(x).astype(np.float32)

    def play(player, *inputs):
        (w1, b1), (w2, b2), (w3, b3) = player
        h = jax.nn.relu(jnp.concatenate(inputs, axis=1) @ w1 + b1)
        return jax.nn.sigmoid(jax.nn.relu(h @ w2 + b2) @ w3 + b3)

    def judge(generator, discriminator, z, hint):
        made = play(generator, m * x + (1 - m) * z, m)
        return made, play(discriminator, m * x + (1 - m) * made, hint)

    def discriminator_loss(discriminator, generator, z, hint):
        _, d = judge(generator, discriminator, z, hint)
        return -jnp.mean(m * jnp.log(d + 1e-8) + (1 - m) * jnp.log(1 - d + 1e-8))

    def generator_loss(generator, discriminator, z, hint):
        made, d = judge(generator, discriminator, z, hint)
        error = jnp.mean((m * x - m * made) ** 2) / jnp.mean(m)
        return -jnp.mean((1 - m) * jnp.log(d + 1e-8)) + alpha * error

    def adam(player, gradient, moments, t):
        first, second = moments
        first = jax.tree.map(lambda a, g: 0.9 * a + 0.1 * g, first, gradient)
        second = jax.tree.map(lambda a, g: 0.999 * a + 0.001 * g * g, second, gradient)

        def move(w, a, b):
            return w - rate * (a / (1 - 0.9**t)) / (jnp.sqrt(b / (1 - 0.999**t)) + 1e-8)

        return jax.tree.map(move, player, first, second), (first, second)

    @jax.jit
    def step(generator, discriminator, moments, t):
        u = Uniform(key, t - 1)((p, 1 << (n - 1).bit_length()))[:, :n].T
        z, hint = 0.01 * u, m * (u < hint_rate)
        gradient = jax.grad(discriminator_loss)(discriminator, generator, z, hint)
        discriminator, for_d = adam(discriminator, gradient, moments[1], t)
        gradient = jax.grad(generator_loss)(generator, discriminator, z, hint)
        generator, for_g = adam(generator, gradient, moments[0], t)
        return generator, discriminator, (for_g, for_d)

    state = *players, tuple((jax.tree.map(np.zeros_like, player),) * 2 for player in players)
    for t in range(n_steps):
        state = step(*state, np.int32(t + 1))
    return [np.column_stack([w.T, b]) for w, b in state[0]]


def test_its_steps_are_those_of_gain():
    x = np.random.default_rng(0).random((30, 5))
    x[np.random.default_rng(1).random(x.shape) < 0.4] = NAN
    settings = {"n_steps": 20, "hint_rate": 0.8, "alpha": 3.0}
    generator, _ = gan.train(
        x,
        rng=np.random.default_rng(5),
        batch_size=128,
        learning_rate=0.01,
        **settings,
    )
    expected = spelled_out(x, 5, rate=0.01, **settings)
    for layer, wanted in zip(generator, expected, strict=True):
        assert_allclose(layer, wanted, rtol=1e-4, atol=1e-5)


def test_both_networks_start_as_pinned():
    layers = gan._initial_layers(np.random.default_rng(0), 60)
    assert [layer.shape for layer in layers] == [(60, 121), (60, 61), (60, 61)]
    for layer, inputs in zip(layers, (120, 60, 60), strict=True):
        assert layer[:, :-1].std() == pytest.approx(1 / np.sqrt(inputs / 2), rel=0.03)
        assert not layer[:, -1].any()


def test_a_batch_has_no_row_twice_and_every_row_has_its_turn(monkeypatch):
    seen = []

    def note(table, rows, steps, key, settings, state):
        seen.append((np.asarray(rows), np.asarray(steps)))
        return state, 0.0

    monkeypatch.setattr(gan, "program", lambda *args: note)
    GAINImputer(n_steps=250, batch_size=32, random_state=0).fit(X)
    assert [steps.tolist() for _, steps in seen] == [[0, 100, 32], [100, 100, 32], [200, 50, 32]]
    rows = np.concatenate([rows for rows, _ in seen])
    assert all(len(set(batch)) == 32 for batch in rows.tolist())
    assert set(rows.ravel()) == set(range(400))


def test_the_settings_of_the_protocol_are_the_defaults():
    assert GAINImputer().get_params() == {
        "n_steps": 10_000,
        "batch_size": 128,
        "hint_rate": 0.9,
        "alpha": 100.0,
        "learning_rate": 1e-3,
        "round": True,
        "random_state": None,
        "verbose": False,
    }


def test_another_number_of_rows_or_steps_runs_the_same_program():
    before = programs._program.cache_info().misses
    for n, n_steps, rate in [(399, 3, 1e-3), (398, 250, 1e-2), (390, 1, 1e-3)]:
        GAINImputer(n_steps=n_steps, learning_rate=rate, random_state=0).fit(X[:n])
    assert programs._program.cache_info().misses <= before + 1


class Impatient:
    """A progress bar that interrupts training at some step."""

    at = 200

    def __init__(self, title, steps):
        assert (title, steps) == ("GAINImputer", 1000)

    def __call__(self, call):
        if call.number >= self.at:
            raise KeyboardInterrupt

    def close(self):
        pass


def test_interrupt_keeps_what_was_reached(monkeypatch):
    monkeypatch.setattr(imputers, "EpochBar", Impatient)
    imputer = GAINImputer(n_steps=1000, random_state=0, verbose=True)
    with pytest.warns(
        UserWarning, match="interrupted after step 200 of 1000. The generator"
    ) as caught:
        imputer.fit(X)
    assert caught[0].filename == __file__
    assert imputer.n_steps_ == 200
    assert np.isfinite(imputer.transform(NEW)).all()


def test_interrupt_before_anything_was_learnt_is_passed_on(monkeypatch):
    def interrupt(*args):
        raise KeyboardInterrupt

    imputer = GAINImputer(n_steps=5, random_state=0).fit(X)
    monkeypatch.setattr(gan, "program", interrupt)
    with pytest.raises(KeyboardInterrupt):
        imputer.fit(X[:, :3])
    with pytest.raises(ValueError, match="not fitted yet"):  # And not half of each fit.
        imputer.transform(X)


def test_progress_is_shown_on_stderr(capfd):
    GAINImputer(n_steps=150, random_state=0, verbose=True).fit(X)
    out, err = capfd.readouterr()
    assert not out
    assert "loss" in err
    assert "100%" in err


# --------------------------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_steps": 0}, "`n_steps` must be a positive integer. Received: 0"),
        ({"batch_size": 2.5}, "`batch_size` must be a positive integer. Received: 2.5"),
        ({"hint_rate": 1.1}, "`hint_rate` must be between 0 and 1. Received: 1.1"),
        ({"alpha": -1}, "`alpha` must be a non-negative number. Received: -1"),
        ({"alpha": NAN}, "`alpha` must be a non-negative number. Received: nan"),
        ({"learning_rate": "fast"}, "`learning_rate` must be a positive number. .*'fast'"),
        ({"learning_rate": 0}, "`learning_rate` must be a positive number. Received: 0"),
        (
            {"alpha": 1e20, "learning_rate": 1e30},
            "Training diverged.* Lower `learning_rate` or `alpha`.",
        ),
    ],
)
def test_bad_parameters(settings, message):
    with pytest.raises(ValueError, match=message):
        GAINImputer(**{"n_steps": 100, "random_state": 0, **settings}).fit(X)


def test_bad_tables(fitted):
    frame = pd.DataFrame({"age": [20.0, NAN, np.inf], "city": ["Ulm", None, "Bonn"]})
    with pytest.raises(ValueError, match="Column 'age' contains infinity .*inf. Correct it, or"):
        GAINImputer().fit(frame[["age"]])
    with pytest.raises(ValueError, match="Column 1 contains infinity"):
        fitted.transform(np.where(np.arange(5) == 1, -np.inf, NEW))
    with pytest.raises(ValueError, match="Column 0 contains infinity or a value too large"):
        GAINImputer().fit([[1.7e308], [NAN], [-1.7e308]])
    with pytest.raises((TypeError, ValueError), match="'city'.*Ulm"):
        GAINImputer().fit(frame[["city"]])
    with pytest.raises(ValueError, match="X has 3 features, but GAINImputer is expecting 5"):
        fitted.transform(X[:, :3])


# ------------------------------------------------------------------------------- what it stands on


def test_imputing_needs_no_jax(fitted, tmp_path):
    (tmp_path / "gain.pickle").write_bytes(pickle.dumps(fitted))
    np.save(tmp_path / "new.npy", NEW)
    code = (
        "import sys; sys.modules['jax'] = None\n"
        "import pickle, numpy as np, promissing.compare\n"
        f"imputer = pickle.load(open({str(tmp_path / 'gain.pickle')!r}, 'rb'))\n"
        f"print(imputer.transform(np.load({str(tmp_path / 'new.npy')!r})).sum())"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert out.returncode == 0, out.stderr
    assert float(out.stdout) == pytest.approx(fitted.transform(NEW).sum())


# -------------------------------------------------------------------------------- neighbours


@pytest.mark.parametrize("k", [1, 5])
def test_neighbours_of_one_column_with_gaps_are_scikit_learns(k):
    rng = np.random.default_rng(1)
    X, new = rng.normal(size=(200, 4)), rng.normal(size=(50, 4))
    X[rng.random(200) < 0.4, 2] = np.nan
    new[::3, 2] = np.nan
    ours = NeighborsImputer(k).fit(X)
    theirs = KNNImputer(n_neighbors=k).fit(X)
    assert ours._tree is not None
    for table in (X, new):
        np.testing.assert_allclose(ours.transform(table), theirs.transform(table), atol=1e-14)
    new[0, 1] = np.nan  # A column that was whole in training.
    np.testing.assert_allclose(ours.transform(new), theirs.transform(new), atol=1e-14)


def test_neighbours_with_gaps_everywhere_are_scikit_learns_up_to_a_cap():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(80, 4))
    X[rng.random(X.shape) < 0.3] = np.nan
    ours = NeighborsImputer().fit_transform(X)
    np.testing.assert_allclose(ours, KNNImputer().fit_transform(X))
    capped = NeighborsImputer(max_rows=20, random_state=0).fit(X)
    assert not np.isnan(capped.transform(X)).any()
    assert len(capped._donors.known) == 20


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("k", [1, 5])
def test_neighbours_are_scikit_learns_where_few_know_a_value_or_nothing_is_shared(share, k):
    rng = np.random.default_rng(3)
    X, new = rng.normal(size=(300, 4)), rng.normal(size=(90, 4))
    for table in (X, new):
        table[rng.random(table.shape) < share] = np.nan
    X[:3, 3], X[3:, 3] = (0.1, 0.7, 1.9), np.nan  # Fewer than five know it.
    new[0] = np.nan
    ours, theirs = NeighborsImputer(k).fit(X), KNNImputer(n_neighbors=k).fit(X)
    for table in (X, new):
        np.testing.assert_allclose(ours.transform(table), theirs.transform(table), atol=1e-12)


@parametrize_with_checks([NeighborsImputer()])
def test_neighbours_pass_scikit_learns_checks(estimator, check):
    check(estimator)
