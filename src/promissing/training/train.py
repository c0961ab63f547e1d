"""The engine: trains any number of replicas of a network in one compiled program.

A replica is one network on one view of the data: its own start, seed, rows, and if need be its own
weights and hyperparameters. Members of an ensemble, folds and repetitions are all replicas.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import numpy as np

from promissing.networks.base import Network, Params
from promissing.training import optimiser, step
from promissing.training.batches import Batches, bucket, stacked
from promissing.training.lanes import Lanes
from promissing.training.options import Options
from promissing.training.processes import claim_jax
from promissing.training.step import Plan, Replicas, State, Table

__all__ = ["Data", "Epoch", "Trained", "train"]

# Batches for validation, and for training if `batch_size` allows, have at least this many places,
# so that small tables share a program.
PLACES = 256


@dataclass(frozen=True)
class Data:
    """The data of R replicas.

    Parameters
    ----------
    X : array (n, p), or a sequence of such arrays
        NaN where missing. Several arrays are stacked, for example training and validation data. It
        is copied at most once. A list is emptied once it is copied, so that large tables are not
        held twice during training.
    y : array (n, m)
        Targets, as the loss of the network encodes them.
    rows : sequence of R arrays of int
        The rows of X each replica is trained on. A row may occur more than once.
    val_rows : sequence of R arrays of int, optional
        The rows each replica is validated on after every epoch.
    weights : array (n,) or (R, n), optional
        Sample weights. They also weigh the validation loss.
    """

    X: np.ndarray | Sequence[np.ndarray]
    y: np.ndarray
    rows: Sequence[np.ndarray]
    val_rows: Sequence[np.ndarray] | None = None
    weights: np.ndarray | None = None


class Epoch(NamedTuple):
    """The result of one epoch for all R replicas, passed to `on_epoch`.

    `number` counts from 1. `params` are stacked (averages, if these are kept) and must not be
    changed. The losses are NaN for replicas that have finished. `active` marks replicas that
    continue.
    """

    number: int
    params: Params
    train_loss: np.ndarray
    val_loss: np.ndarray
    active: np.ndarray


class Trained(NamedTuple):
    """The result of training R replicas.

    The loss curves are (epochs, R), NaN where a replica had finished or without validation. With
    validation, `params` are those of the lowest validation loss, else the last.
    """

    params: dict[str, np.ndarray]
    opt_state: list[np.ndarray]
    train_loss: np.ndarray
    val_loss: np.ndarray
    n_epochs: np.ndarray
    best_epoch: np.ndarray
    converged: np.ndarray
    interrupted: bool


def train(
    network: Network,
    params: Params,
    data: Data,
    options: Options,
    *,
    rngs: Sequence[np.random.Generator],
    fixed: Params | None = None,
    opt_state: list[np.ndarray] | None = None,
    on_epoch: Callable[[Epoch], object] | None = None,
) -> Trained:
    """Train R replicas of a network until each has stopped improving.

    Parameters
    ----------
    network : Network
        A hashable description with a loss per row.
    params : dict of arrays (R, ...)
        Initial parameters of the replicas.
    data : Data
        Tables, targets, rows and weights.
    options : Options
        How the replicas are trained.
    rngs : sequence of R generators
        Each replica shuffles and drops with its own generator, so that it does not depend on the
        other replicas.
    fixed : dict of arrays, optional
        Parameters of the network that are equal for all replicas and are not trained.
    opt_state : list of arrays, optional
        The `opt_state` of an earlier run, to continue from it.
    on_epoch : callable, optional
        Called with an `Epoch` after each epoch.

    Returns
    -------
    Trained
        Ctrl-C returns what was reached so far, with a warning.

    Raises
    ------
    RuntimeError
        In a process that was forked from a process that had used JAX.
    """
    claim_jax()
    n_replicas = _check(data, params, rngs)
    table = _place(data)
    plan, hyper = _plan(options, params, n_replicas, n_columns=table.X.shape[1])
    if plan.multipliers:
        table = table._replace(multipliers=_pack_multipliers(options.multipliers, plan.shapes))
    if fixed:
        table = table._replace(fixed=jax.device_put(dict(fixed)))
    longest = max(len(rows) for rows in data.rows)
    batches = Batches(data.rows, min(options.batch_size, max(PLACES, bucket(longest))))
    val_batches = val_steps = None
    if data.val_rows is not None:
        val = Batches(data.val_rows, PLACES)
        val_batches, val_steps = val.deal(range(n_replicas)), val.steps
    params = {name: np.asarray(a, np.float32) for name, a in params.items()}
    start = optimiser.pack(params, plan.shapes, xp=np)
    averaged = (start, np.zeros(n_replicas, np.float32)) if options.average else None
    best = None if val_batches is None else start
    state = State(start, _start_optimiser(plan, start, opt_state), averaged, best)
    work = batches.shape[2] * sum(a[0].size for a in params.values())
    each = np.arange(n_replicas, dtype=np.int32)
    replicas = jax.device_put(Replicas(each, hyper, batches.steps, val_steps, val_batches))
    watch = _Watch(n_replicas, val_batches is not None, options)
    interrupted = False

    def deal(ids: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        keys = np.zeros(n_replicas, np.uint32)
        keys[ids] = [rngs[r].integers(2**32, dtype=np.uint32) for r in ids]
        return keys, batches.deal(ids, rngs if options.shuffle else None)

    def fetch(packed: Any) -> dict[str, np.ndarray]:
        return optimiser.unpack(jax.device_get(packed), plan.shapes)

    try:
        dealt = None
        with Lanes() as lanes:
            for number in range(options.max_epochs):
                ids = np.flatnonzero(watch.active)
                if not ids.size:
                    break
                done = number * int(batches.steps.max())
                plan = plan._replace(width=step.next_width(plan.width, ids.size, work, done))
                keys, rows = deal(ids) if dealt is None else dealt
                now = replicas._replace(key=keys, batches=rows, best_loss=watch.best_loss)
                clock = np.array([number, options.max_epochs], np.float32)
                finish = lanes.begin(network, plan, table, now, state, ids, clock)
                # Deal the next batches while the device works, unless they take much memory.
                ahead = number + 1 < options.max_epochs and rows.nbytes < 2**24
                dealt = deal(ids) if ahead else None
                reached, (train_loss, val_loss) = finish()
                # First: an interrupt here must not count an epoch and lose its weights.
                state = reached
                watch.see(train_loss, val_loss)
                if on_epoch is not None:
                    judged = fetch(state.judged)
                    on_epoch(Epoch(number + 1, judged, train_loss, val_loss, watch.active))
    except KeyboardInterrupt:
        if not watch.history:
            raise
        interrupted = True
        warnings.warn(
            f"Training was interrupted after epoch {len(watch.history)} of at most "
            f"{options.max_epochs}; what was reached is kept.",
            UserWarning,
            stacklevel=2,
        )
    return _result(state, watch, fetch, interrupted)


def _plan(
    options: Options, params: Params, n_replicas: int, *, n_columns: int
) -> tuple[Plan, dict[str, np.ndarray]]:
    """Return what is fixed when the program is compiled, and the numbers of the replicas."""
    hyper, lost = options.numbers(n_replicas), options.augmentation
    units = tuple(range(n_columns) if lost.units is None else lost.units)
    if lost.others is not None and np.any(lost.others):
        if len(lost.others) != max(units) + 1:
            raise ValueError("`others` must have one entry for each unit.")
        hyper["augment_others"] = np.tile(np.asarray(lost.others, np.float32), (n_replicas, 1))
    augments = bool(hyper["augment"].any()) or "augment_others" in hyper
    plan = Plan(
        solver=options.solver,
        momentum=options.solver == "sgd" and bool(hyper["momentum"].any()),
        nesterov=options.nesterov,
        penalty=bool(hyper["alpha"].any()),
        cosine=options.schedule == "cosine",
        dropout=bool(hyper["dropout"].any()),
        units=units if augments else None,
        shapes=tuple((name, np.shape(a)[1:]) for name, a in params.items()),
        width=0,
        law=lost.law if augments else "number",
        allow_empty=bool(lost.allow_empty) or not augments,
        multipliers=bool(options.multipliers),
    )
    return plan, hyper


def _result(
    state: State, watch: _Watch, fetch: Callable[[Any], dict[str, np.ndarray]], interrupted: bool
) -> Trained:
    kept = state.judged if state.best is None else state.best
    curves = np.array(watch.history).reshape(-1, 2, len(watch.active))
    return Trained(
        params={name: np.array(a) for name, a in fetch(kept).items()},
        opt_state=[np.array(leaf) for leaf in jax.tree.leaves(state.opt)],
        train_loss=curves[:, 0],
        val_loss=curves[:, 1],
        n_epochs=watch.n_epochs,
        best_epoch=watch.best_epoch,
        converged=~watch.active,
        interrupted=interrupted,
    )


class _Watch:
    """Decides after every epoch which replicas continue.

    A replica continues until its loss has failed to fall by `tol` more than `n_iter_no_change`
    times in a row. With validation, the validation loss decides, else the training loss.
    """

    def __init__(self, n_replicas: int, validated: bool, options: Options) -> None:
        self.validated = validated
        self.tol, self.patience = options.tol, options.n_iter_no_change
        self.active = np.ones(n_replicas, bool)
        self.best_loss = np.full(n_replicas, np.inf, np.float32)
        self.n_epochs, self.best_epoch, self.stalled = np.zeros((3, n_replicas), int)
        self.history: list[np.ndarray] = []

    def see(self, train_loss: np.ndarray, val_loss: np.ndarray) -> None:
        """Record the losses (R,) of an epoch, NaN for replicas that were not trained."""
        # New arrays throughout: JAX and the callback may hold the old ones.
        loss = val_loss if self.validated else train_loss
        self.n_epochs = self.n_epochs + self.active
        self.best_epoch = np.where(loss < self.best_loss, self.n_epochs, self.best_epoch)
        # A loss that is not a number is no progress.
        fell = loss <= self.best_loss - self.tol
        self.stalled = np.where(fell, 0, self.stalled + 1)
        self.best_loss = np.fmin(self.best_loss, loss)
        self.active = self.active & (self.stalled <= self.patience)
        self.history.append(np.stack([train_loss, val_loss]))


def _place(data: Data) -> Table:
    """Hand the data to JAX, which takes over the memory instead of copying it where possible."""

    def put(blocks: Sequence[np.ndarray], axis: int) -> Any:
        return jax.device_put(stacked(blocks, axis), may_alias=True)

    X = put([data.X] if isinstance(data.X, np.ndarray) else data.X, 0)
    if isinstance(data.X, list):
        data.X.clear()
    weights = None if data.weights is None else put([data.weights], data.weights.ndim - 1)
    return Table(X=X, y=put([data.y], 0), weights=weights)


def _pack_multipliers(multipliers: Mapping[str, Any] | None, shapes: optimiser.Shapes) -> Any:
    given = multipliers or {}
    whole = {name: np.broadcast_to(np.float32(given.get(name, 1)), shape) for name, shape in shapes}
    return jax.device_put(optimiser.pack(whole, shapes, xp=np))


def _start_optimiser(plan: Plan, start: Any, opt_state: list[np.ndarray] | None) -> Any:
    """Return the state of the optimiser, in NumPy: JAX would compile every operation by itself."""
    names = ("momentum", "beta_1", "beta_2", "epsilon", "weight_decay")
    made = optimiser.make_optimiser(plan, dict.fromkeys(names, 0.5), 0.5)
    leaves, tree = jax.tree.flatten(jax.eval_shape(jax.vmap(made.init), start))
    if opt_state is None:
        opt_state = [np.zeros(leaf.shape, leaf.dtype) for leaf in leaves]
    elif [a.shape for a in opt_state] != [leaf.shape for leaf in leaves]:
        raise ValueError("`opt_state` is that of another network, solver or number of replicas.")
    return jax.tree.unflatten(tree, opt_state)


def _check(data: Data, params: Params, rngs: Sequence[np.random.Generator]) -> int:
    """Return the number of replicas; refuse parts that do not fit together."""
    if not len(data.X):
        raise ValueError("`X` is empty. A list of tables serves one training, which empties it.")
    n_replicas = len(data.rows)
    counts = {f"params[{name!r}]": len(value) for name, value in params.items()}
    counts["rngs"] = len(rngs)
    if data.val_rows is not None:
        counts["val_rows"] = len(data.val_rows)
    for name, count in counts.items():
        if count != n_replicas:
            raise ValueError(
                f"`rows` make {n_replicas} replicas, but `{name}` is for {count} of them."
            )
    n = len(data.y)
    for name, all_rows in (("rows", data.rows), ("val_rows", data.val_rows or ())):
        for r, rows in enumerate(all_rows):
            if len(rows) == 0 or np.min(rows) < 0 or np.max(rows) >= n:
                raise ValueError(
                    f"`{name}` of replica {r} must name some of the rows 0 to {n - 1}."
                )
            if data.weights is not None:
                weights = data.weights if data.weights.ndim == 1 else data.weights[r]
                if not weights[rows].sum() > 0:
                    raise ValueError(f"The weights of the `{name}` of replica {r} sum to nothing.")
    return n_replicas
