"""How GAIN is trained: a generator fills gaps, a discriminator looks for what was filled.

One compiled program makes a hundred steps. The numbers of rows and steps and all settings are its
arguments, so tables of the same width share it.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import lax

from promissing.training.batches import stacked
from promissing.training.processes import claim_jax
from promissing.training.programs import program
from promissing.training.tools import Uniform

__all__ = ["Call", "Layers", "Trained", "train"]

# The layers of a network, each (units, inputs + 1) with the biases as its last column.
Layers = list[Any]

STEPS = 100  # In one call: enough to hide what calling takes, few enough to be interrupted.
NOISE = 0.01
TINY = 1e-8


class Call(NamedTuple):
    """What `on_call` is told: the steps made so far, and the generator's mean loss in the last."""

    number: int
    train_loss: float
    val_loss: float = np.nan


class Trained(NamedTuple):
    """The generator and the number of steps that made it."""

    generator: list[np.ndarray]
    n_steps: int


class _State(NamedTuple):
    generator: Layers
    discriminator: Layers
    generator_opt: Any
    discriminator_opt: Any


def train(
    network: Callable[..., Any],
    x: np.ndarray,
    *,
    rng: np.random.Generator,
    n_steps: int,
    batch_size: int,
    hint_rate: float,
    alpha: float,
    learning_rate: float,
    on_call: Callable[[Call], object] | None = None,
) -> Trained:
    """Train a generator on a table (n, p) scaled to 0 .. 1, NaN where missing.

    `network(layers, inputs, xp=)` gives the outputs (p, n), before the sigmoid, for inputs (2p, n).
    The other parameters are those of `GAINImputer`. Ctrl-C returns what was reached so far, with a
    warning.
    """
    claim_jax()
    n, p = x.shape
    size = min(batch_size, n)
    # Tables shorter than a batch share programs too: what is left over weighs nothing.
    places = min(batch_size, 1 << (size - 1).bit_length())
    observed = ~np.isnan(x)
    table = np.concatenate([np.where(observed, x, 0.0), observed], axis=1, dtype=np.float32)
    table = jax.device_put(stacked([table], 0), may_alias=True)
    layers = [_start(rng, p), _start(rng, p)]
    shapes = jax.eval_shape(optax.adam(0.5).init, layers[0])
    # In NumPy: JAX would compile every operation by itself.
    opts = [jax.tree.map(lambda a: np.zeros(a.shape, a.dtype), shapes) for _ in layers]
    state, done = _State(*layers, *opts), 0
    settings = np.array([hint_rate, alpha, learning_rate], np.float32)
    key = rng.integers(2**32, dtype=np.uint32)

    def deal() -> np.ndarray:
        rows = np.zeros((STEPS, places), np.int32)  # A new one: JAX may still be at the last.
        if size == n:
            rows[:, :n] = np.arange(n)
        else:
            for batch in rows:
                batch[:] = rng.choice(n, size, replace=False, shuffle=False)
        return rows

    try:
        rows = deal()
        while done < n_steps:
            count = min(STEPS, n_steps - done)
            steps = np.array([done, count, size], np.int32)
            args = (table, rows, steps, key, settings, state)
            reached, loss = program(_make_steps, (network,), *args)(*args)
            if done + count < n_steps:
                rows = deal()  # While the device is at work.
            mean_loss = float(loss) / count
            state, done = reached, done + count
            if on_call is not None:
                on_call(Call(done, mean_loss))
    except KeyboardInterrupt:
        if not done:
            raise
        warnings.warn(
            f"Training was interrupted after step {done} of {n_steps}; what was reached is kept.",
            UserWarning,
            stacklevel=4,
        )
    return Trained([np.array(layer) for layer in state.generator], done)


def _start(rng: np.random.Generator, p: int) -> Layers:
    """Draw weights of deviation 1 / sqrt(inputs / 2), with biases of 0."""
    layers = []
    for n_inputs in (2 * p, p, p):
        layer = np.zeros((p, n_inputs + 1), np.float32)
        layer[:, :-1] = rng.normal(0.0, (n_inputs / 2) ** -0.5, (p, n_inputs))
        layers.append(layer)
    return layers


def _make_steps(
    network: Callable[..., Any],
    table: jax.Array,
    rows: jax.Array,
    steps: jax.Array,
    key: jax.Array,
    settings: jax.Array,
    state: _State,
) -> tuple[_State, jax.Array]:
    """Make some steps on the batches `rows`, and sum the losses of the generator.

    To be compiled for a network.

    `steps` are the number of the first one, how many there are, and the rows in a batch.
    """
    first, count, size = steps
    hint_rate, alpha, learning_rate = settings
    places, p = rows.shape[1], table.shape[1] // 2
    weight = (lax.iota(jnp.int32, places) < size).astype(jnp.float32)
    cells = (size * p).astype(jnp.float32)
    solver = optax.adam(learning_rate)

    def move(layers: Layers, opt: Any, gradient: Layers) -> Any:
        updates, opt = solver.update(gradient, opt)
        return optax.apply_updates(layers, updates), opt

    def run(layers: Layers, *inputs: Any) -> Any:
        return jax.nn.sigmoid(network(layers, jnp.concatenate(inputs), xp=jnp))

    def step(i: Any, carry: Any) -> Any:
        state, total = carry
        batch = table[rows[i]].T  # Rows last: the small matrices multiply twice as fast.
        x, observed = batch[:p], batch[p:]
        # One draw per cell does: noise is for the missing ones, hints are of the observed ones.
        draw = Uniform(key, first + i)((p, places))
        hint = jnp.where(draw < hint_rate, observed, 0.0)
        noisy = jnp.where(observed > 0, x, NOISE * draw)
        made, back = jax.vjp(lambda layers: run(layers, noisy, observed), state.generator)

        def believe(layers: Layers, made: Any) -> Any:
            """How sure the discriminator is that a cell was observed."""
            return run(layers, jnp.where(observed > 0, x, made), hint)

        def discriminator_loss(layers: Layers) -> Any:
            belief = believe(layers, made)
            right = jnp.where(observed > 0, belief, 1.0 - belief)
            return -jnp.sum(weight * jnp.log(right + TINY)) / cells

        gradient = jax.grad(discriminator_loss)(state.discriminator)
        discriminator, discriminator_opt = move(
            state.discriminator, state.discriminator_opt, gradient
        )

        def generator_loss(made: Any) -> Any:
            seen, gaps = weight * observed, weight * (1.0 - observed)
            deception = -jnp.sum(gaps * jnp.log(believe(discriminator, made) + TINY)) / cells
            # The mean over all cells divided by the mean of the mask; a batch may have seen none.
            error = jnp.sum(seen * (x - made) ** 2) / jnp.maximum(jnp.sum(seen), 1.0)
            return deception + alpha * error

        loss, gradient = jax.value_and_grad(generator_loss)(made)
        # The generator has not changed since: its first pass serves the discriminator and itself.
        generator, generator_opt = move(state.generator, state.generator_opt, *back(gradient))
        state = _State(generator, discriminator, generator_opt, discriminator_opt)
        return state, total + loss

    return lax.fori_loop(0, count, step, (state, jnp.float32(0)))  # type: ignore[no-any-return]
