"""Training of GAIN with JAX: a generator fills missing values, a discriminator detects them.

One compiled program makes a hundred steps. The numbers of rows and steps and all settings are its
arguments, so tables of the same width share one program.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import lax

from promissing._validation import warn
from promissing.compare.imputers import forward
from promissing.training.batches import stacked
from promissing.training.numerics import Uniform
from promissing.training.processes import claim_jax
from promissing.training.programs import program

__all__ = ["train"]

# The layers of a network, each (units, inputs + 1) with the biases in the last column.
Layers = list[Any]

STEPS = 100  # Per call: enough to hide the overhead of a call, few enough to be interrupted.
NOISE = 0.01
TINY = 1e-8


def train(
    x: np.ndarray,
    *,
    rng: np.random.Generator,
    n_steps: int,
    batch_size: int,
    hint_rate: float,
    alpha: float,
    learning_rate: float,
    on_call: Callable[[Any], object] | None = None,
) -> tuple[list[np.ndarray], int]:
    """Train a generator on a table (n, p) scaled to 0 .. 1 with NaN for missing values.

    The parameters are those of `GAINImputer`. After every call of the program, `on_call` receives
    the number of steps made and the mean loss of the generator. Ctrl-C ends training early with a
    warning.

    Returns
    -------
    tuple of (list of ndarray, int)
        The layers of the generator, and the number of steps made.
    """
    claim_jax()
    n, p = x.shape
    size = min(batch_size, n)
    # Tables shorter than a batch share programs too: the places left over have weight 0.
    places = min(batch_size, 1 << (size - 1).bit_length())
    observed = ~np.isnan(x)
    table = np.concatenate([np.where(observed, x, 0.0), observed], axis=1, dtype=np.float32)
    table = jax.device_put(stacked([table], 0), may_alias=True)
    layers = [_initial_layers(rng, p), _initial_layers(rng, p)]
    shapes = jax.eval_shape(optax.adam(0.5).init, layers[0])
    # In NumPy, because JAX would compile every operation by itself.
    opts = [jax.tree.map(lambda a: np.zeros(a.shape, a.dtype), shapes) for _ in layers]
    state, done = (*layers, *opts), 0
    settings = np.array([hint_rate, alpha, learning_rate], np.float32)
    key = rng.integers(2**32, dtype=np.uint32)

    def draw_batches() -> np.ndarray:
        rows = np.zeros((STEPS, places), np.int32)  # A new array: JAX may still read the last one.
        if size == n:
            rows[:, :n] = np.arange(n)
        else:
            for batch in rows:
                batch[:] = rng.choice(n, size, replace=False, shuffle=False)
        return rows

    try:
        rows = draw_batches()
        while done < n_steps:
            count = min(STEPS, n_steps - done)
            steps = np.array([done, count, size], np.int32)
            args = (table, rows, steps, key, settings, state)
            reached, loss = program(_make_steps, (), *args)(*args)
            if done + count < n_steps:
                rows = draw_batches()  # While the device computes.
            mean_loss = float(loss) / count
            state, done = reached, done + count
            if on_call is not None:
                on_call(SimpleNamespace(number=done, train_loss=mean_loss, val_loss=np.nan))
    except KeyboardInterrupt:
        if not done:
            raise
        warn(
            f"Training was interrupted after step {done} of {n_steps}. The generator of this step "
            "is kept."
        )
    return [np.array(layer) for layer in state[0]], done


def _initial_layers(rng: np.random.Generator, p: int) -> Layers:
    """Draw weights with standard deviation 1 / sqrt(inputs / 2). The biases are 0."""
    layers = []
    for n_inputs in (2 * p, p, p):
        layer = np.zeros((p, n_inputs + 1), np.float32)
        layer[:, :-1] = rng.normal(0.0, (n_inputs / 2) ** -0.5, (p, n_inputs))
        layers.append(layer)
    return layers


def _make_steps(
    table: jax.Array,
    rows: jax.Array,
    steps: jax.Array,
    key: jax.Array,
    settings: jax.Array,
    state: Any,
) -> tuple[Any, jax.Array]:
    """Make training steps on the batches `rows`, and sum the losses of the generator.

    `steps` holds the number of the first step, the number of steps, and the rows in a batch.
    `state` holds the generator, the discriminator, and their optimiser states.
    """
    first, count, size = steps
    hint_rate, alpha, learning_rate = settings
    places, p = rows.shape[1], table.shape[1] // 2
    weight = (lax.iota(jnp.int32, places) < size).astype(jnp.float32)
    cells = (size * p).astype(jnp.float32)
    solver = optax.adam(learning_rate)

    def update(layers: Layers, opt: Any, gradient: Layers) -> Any:
        updates, opt = solver.update(gradient, opt)
        return optax.apply_updates(layers, updates), opt

    def run(layers: Layers, *inputs: Any) -> Any:
        return jax.nn.sigmoid(forward(layers, jnp.concatenate(inputs), xp=jnp))

    def step(i: Any, carry: Any) -> Any:
        (generator, discriminator, generator_opt, discriminator_opt), total = carry
        batch = table[rows[i]].T  # Rows last: the small matrices multiply twice as fast.
        x, observed = batch[:p], batch[p:]
        # One draw per cell is enough: missing cells need noise, observed cells need hints.
        draw = Uniform(key, first + i)((p, places))
        hint = jnp.where(draw < hint_rate, observed, 0.0)
        noisy = jnp.where(observed > 0, x, NOISE * draw)
        made, back = jax.vjp(lambda layers: run(layers, noisy, observed), generator)

        def discriminate(layers: Layers, made: Any) -> Any:
            """Compute the probability that a cell was observed."""
            return run(layers, jnp.where(observed > 0, x, made), hint)

        def discriminator_loss(layers: Layers) -> Any:
            belief = discriminate(layers, made)
            right = jnp.where(observed > 0, belief, 1.0 - belief)
            return -jnp.sum(weight * jnp.log(right + TINY)) / cells

        gradient = jax.grad(discriminator_loss)(discriminator)
        discriminator, discriminator_opt = update(discriminator, discriminator_opt, gradient)

        def generator_loss(made: Any) -> Any:
            seen, missing = weight * observed, weight * (1.0 - observed)
            belief = discriminate(discriminator, made)
            deception = -jnp.sum(missing * jnp.log(belief + TINY)) / cells
            # The mean over all cells divided by the mean of the mask. A batch may be all missing.
            error = jnp.sum(seen * (x - made) ** 2) / jnp.maximum(jnp.sum(seen), 1.0)
            return deception + alpha * error

        loss, gradient = jax.value_and_grad(generator_loss)(made)
        # The generator has not changed since, so its forward pass serves both updates.
        generator, generator_opt = update(generator, generator_opt, *back(gradient))
        return (generator, discriminator, generator_opt, discriminator_opt), total + loss

    return lax.fori_loop(0, count, step, (state, jnp.float32(0)))  # type: ignore[no-any-return]
