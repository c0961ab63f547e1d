"""One epoch of many replicas as one compiled program.

The program loops over chunks of replicas, and inside a chunk over batches. Both counts are
arguments, so that neither a replica that has finished nor a fold with one row less needs another
program. The replicas of a chunk are trained side by side by `vmap`. This helps the smallest
networks, whose time is spent on starting operations; larger ones are trained one by one (see
`next_width`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import lax

from promissing.networks.base import Network
from promissing.training.augmentation import draw_lost
from promissing.training.numerics import Uniform, xp
from promissing.training.optimiser import Shapes, coefficients, make_optimiser, pack, unpack

__all__ = ["Plan", "Replicas", "State", "Table", "next_width", "run_epoch"]


# The average of the parameters covers one in RECENT of all steps so far, so that the start is soon
# forgotten, and at most LONGEST steps. It takes every EACH-th step: the steps between are similar,
# and updating the average takes a tenth of a step.
RECENT, LONGEST, EACH = 20, 2000, 4


class Plan(NamedTuple):
    """What is fixed when the program is compiled."""

    solver: str
    momentum: bool
    nesterov: bool
    penalty: bool
    cosine: bool
    dropout: bool
    units: tuple[int, ...] | None
    shapes: Shapes
    width: int
    law: str = "number"  # See `Augmentation`.
    allow_empty: bool = True
    multipliers: bool = False


class Table(NamedTuple):
    """The data, shared by all replicas; arrays with a leading axis R differ between them."""

    X: Any  # (n, p)
    y: Any  # (n, m)
    weights: Any  # None, (n,) or (R, n)
    multipliers: Any = None  # Learning-rate multipliers of the parameters, as `pack` returns them.
    fixed: Any = None  # Parameters that are not trained, by name.


class Replicas(NamedTuple):
    """What differs between replicas; every array has a leading axis R."""

    number: Any  # The index of the replica in arrays of the table.
    hyper: dict[str, Any]
    steps: Any
    val_steps: Any  # None without validation.
    val_batches: Any
    # New in every epoch:
    key: Any = None
    batches: Any = None  # (R, steps, places): rows of the table, and -1 where there is none
    best_loss: Any = None


class State(NamedTuple):
    """What training changes; every array has a leading axis R.

    Parameters are packed by `optimiser.pack`. If there is an average, it is validated and kept.
    """

    params: dict[str, Any]
    opt: Any
    average: Any  # The average and its number of steps; None without averaging.
    best: Any  # The parameters of the lowest validation loss; None without validation.

    @property
    def judged(self) -> Any:
        """The parameters that are validated, reported and kept."""
        return self.params if self.average is None else self.average[0]


def next_width(now: int, n_active: int, work: int, steps: int) -> int:
    """Return how many replicas to train side by side.

    Parameters
    ----------
    now : int
        The present width, 0 before the first epoch.
    n_active : int
        The number of replicas that continue.
    work : int
        The rows of a batch times the parameters of a replica.
    steps : int
        The steps made so far; as many are expected to follow.

    Returns
    -------
    int
        The width.
    """
    # Measured on two cores: beyond about 16,000, more replicas side by side gain nothing; beyond
    # 130,000 they no longer fit the cache. This does not hold for accelerators.
    most = 64 if work < 2**14 else 8 if work < 2**17 else 1
    if jax.default_backend() != "cpu":
        most = n_active
    width = _ceil(n_active, _ceil(n_active, most))
    if now == 0:
        return width
    # Another width needs another program, so it changes only if that saves more than it costs.
    # Nothing is timed here, because results must not depend on the clock.
    width = 1 << (width - 1).bit_length()
    spared = _ceil(n_active, now) * now - _ceil(n_active, width) * width
    seconds = spared * steps * (1e-6 + 3e-10 * work)
    return width if width < now and seconds > 1 else now


def _ceil(a: int, b: int) -> int:
    return -(-a // b)


def run_epoch(
    network: Network,
    plan: Plan,
    table: Table,
    replicas: Replicas,
    state: State,
    order: jax.Array,
    n_chunks: jax.Array,
    clock: jax.Array,
) -> tuple[State, jax.Array]:
    """Train some replicas for one epoch; to be compiled for a network and a plan.

    `order` lists the positions of the replicas to train in its first `n_chunks * plan.width`
    entries; the number of replicas R marks an unused entry. `clock` is (this epoch, all epochs).
    Returns the new state and the training and validation losses (2, R), NaN where there is none.
    """
    # A single replica needs no axis, so that its products are plain matrix products.
    lift: Callable[[Any], Any] = jax.vmap if plan.width > 1 else _alone

    def chunk(c: Any, carry: Any) -> Any:
        state, losses = carry
        ids = lax.dynamic_slice_in_dim(order, c * plan.width, plan.width)
        mine, old = jax.tree.map(lambda a: a.at[ids].get(mode="clip"), (replicas, state))
        zero = jnp.zeros(plan.width, jnp.float32)

        def train(i: Any, carry: Any) -> Any:
            return lift(partial(_train_step, network, plan, table, clock, i))(mine, carry)

        draw = partial(draw_lost, plan.units, plan.law, plan.allow_empty)
        lost = lift(partial(draw, jnp.int32(0)))(mine)
        start = (old.params, old.opt, old.average, (zero, zero), lost)
        ended = lax.fori_loop(0, jnp.max(mine.steps), train, start)
        params, opt, average, sums, _ = ended
        new = State(params, opt, average, best=None)
        train_loss, val_loss = _mean(*sums), jnp.full_like(zero, jnp.nan)
        if old.best is not None:

            def validate(i: Any, sums: Any) -> Any:
                step = lift(partial(_val_step, network, plan, table, i))
                return step(mine, new.judged, sums)

            val_loss = _mean(*lax.fori_loop(0, jnp.max(mine.val_steps), validate, (zero, zero)))
            best = lift(_choose)(val_loss < mine.best_loss, new.judged, old.best)
            new = new._replace(best=best)
        # Index R marks an empty place: nothing is written there.
        state = jax.tree.map(lambda a, b: a.at[ids].set(b, mode="drop"), state, new)
        return state, losses.at[:, ids].set(jnp.stack([train_loss, val_loss]), mode="drop")

    losses = jnp.full((2, replicas.key.shape[0]), jnp.nan, jnp.float32)
    return lax.fori_loop(0, n_chunks, chunk, (state, losses))  # type: ignore[no-any-return]


def _alone(f: Callable[..., Any]) -> Callable[..., Any]:
    """Return `vmap` for an axis of length 1."""

    def lifted(*args: Any) -> Any:
        return jax.tree.map(lambda a: a[None], f(*jax.tree.map(lambda a: a[0], args)))

    return lifted


def _train_step(
    network: Network,
    plan: Plan,
    table: Table,
    clock: Any,
    i: Any,
    mine: Any,
    carry: Any,
) -> Any:
    params, opt, average, sums, lost = carry
    x, y, weights = _batch(table, mine.number, mine.batches[i])
    if plan.units is not None:
        x = jnp.where(lost, jnp.nan, x)
    uniform = Uniform(mine.key, i)
    total = jnp.sum(weights)

    def mean_loss(params: Any) -> Any:
        dropout = mine.hyper["dropout"] if plan.dropout else None
        params = params | (table.fixed or {})
        rows = network.row_loss(params, x, y, xp=xp, dropout=dropout, uniform=uniform)
        return _mean(jnp.sum(weights * rows), total)

    # With respect to the arrays: for packed vectors, the gradient would be a sum of padded ones.
    loss, gradient = jax.value_and_grad(mean_loss)(unpack(params, plan.shapes))
    gradient = pack(gradient, plan.shapes, xp=jnp)
    if plan.penalty:
        penalty = _mean(mine.hyper["alpha"], total)
        for home, penalised in coefficients(plan.shapes).items():
            if penalised:
                gradient[home] += penalty * params[home]
    rate = mine.hyper["learning_rate"]
    if plan.cosine:
        passed = (clock[0] + i.astype(jnp.float32) / mine.steps) / clock[1]
        rate = rate * 0.5 * (1 + jnp.cos(jnp.pi * passed))
    optimiser = make_optimiser(plan, mine.hyper, rate, table.multipliers)

    def update(gradient: Any, params: Any, opt: Any) -> Any:
        updates, opt = optimiser.update(gradient, opt, params)
        return optax.apply_updates(params, updates), opt

    # Adam also moves and counts a step if the gradients are zero. `cond` instead of `where`: with
    # `where`, XLA would copy all parameters before it changes them.
    params, opt = lax.cond(total > 0, update, lambda *old: old[1:], gradient, params, opt)
    if average is not None:
        average = lax.cond(i % EACH == 0, _averaged, lambda *old: old[0], average, params, total)
    # Lost values are drawn one step ahead: as part of the state they are computed once, instead of
    # wherever x is used.
    lost = draw_lost(plan.units, plan.law, plan.allow_empty, i + 1, mine)
    return params, opt, average, (sums[0] + loss * total, sums[1] + total), lost


def _averaged(old: Any, params: Any, total: Any) -> Any:
    """Return the average including one more step, if it had rows, and the number of steps."""
    average, steps = old[0], old[1] + (total > 0)
    share = jnp.maximum(EACH / LONGEST, 1 / (1 + steps / RECENT))
    share = jnp.where(total > 0, share, 0.0)
    return jax.tree.map(lambda a, b: a + share * (b - a), average, params), steps


def _val_step(
    network: Network,
    plan: Plan,
    table: Table,
    i: Any,
    mine: Any,
    params: Any,
    sums: Any,
) -> Any:
    x, y, weights = _batch(table, mine.number, mine.val_batches[i])
    params = unpack(params, plan.shapes) | (table.fixed or {})
    rows = network.row_loss(params, x, y, xp=xp)
    return sums[0] + jnp.sum(weights * rows), sums[1] + jnp.sum(weights)


def _batch(table: Table, number: Any, rows: Any) -> tuple[Any, Any, Any]:
    """Return one batch of one replica: x (B, p), y (B, m) and weights (B,)."""
    x, y = (a.at[rows].get(mode="clip") for a in (table.X, table.y))
    weights: Any = np.float32(1)
    if table.weights is not None:
        own = table.weights.ndim == 2
        weights = table.weights.at[(number, rows) if own else rows].get(mode="clip")
    return x, y, jnp.where(rows >= 0, weights, np.float32(0))


def _mean(total: Any, weight: Any) -> Any:
    return total / jnp.where(weight > 0, weight, 1.0)


def _choose(condition: Any, new: Any, old: Any) -> Any:
    return jax.tree.map(partial(jnp.where, condition), new, old)
