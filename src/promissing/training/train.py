"""The engine: trains any number of replicas of a network in one compiled program.

A replica is one network on one view of the data: its own start, seed, rows, and if need be its
own mask, targets, weights and hyperparameters. Members of an ensemble, folds, repetitions and the
methods of a comparison are all replicas.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import numpy as np

from promissing.networks.base import Network, Params
from promissing.training import LAWS, RATES, SOLVERS, packing
from promissing.training import step as epoch
from promissing.training.batches import Batches, bucket, stacked
from promissing.training.lanes import Lanes
from promissing.training.processes import claim_jax
from promissing.training.step import Plan, Replicas, State, Table
from promissing.training.watch import Watch

__all__ = ["Data", "Epoch", "Trained", "train"]

# Batches for validation, and for training where `batch_size` allows, have at least this many
# places: the small tables all share a program.
PLACES = 256


@dataclass(frozen=True)
class Data:
    """The data of R replicas.

    Parameters
    ----------
    X : array (n, p), or a sequence of such
        NaN where missing. Several are stacked: this is how validation data come in, and how
        replicas work on matrices of their own. It is copied at most once; a list is emptied once
        it is copied, so that nothing large is held twice while training, and serves once.
    y : array (n, k) or (R, n, k)
        Targets as the network's loss wants them, shared or each replica's own.
    rows : sequence of R arrays of int
        The rows of X each replica is trained on; a row may occur more than once.
    val_rows : sequence of R arrays of int, optional
        The rows each replica is validated on after every epoch.
    weights : array (n,) or (R, n), optional
        Sample weights; they weigh the validation loss too.
    mask : array of bool (R, n, p), optional
        What each replica is to miss besides what is missing in X.
    """

    X: np.ndarray | Sequence[np.ndarray]
    y: np.ndarray
    rows: Sequence[np.ndarray]
    val_rows: Sequence[np.ndarray] | None = None
    weights: np.ndarray | None = None
    mask: np.ndarray | None = None


class Epoch(NamedTuple):
    """What `on_epoch` is told after an epoch, for all R replicas.

    `number` counts from 1, `params` are stacked, averages if these are kept, and not to be changed,
    the losses are NaN for replicas that had finished, and `active` says who goes on.
    """

    number: int
    params: Params
    train_loss: np.ndarray
    val_loss: np.ndarray
    active: np.ndarray


class Trained(NamedTuple):
    """What training made of R replicas.

    The loss curves are (epochs, R), NaN where a replica had finished, or where there is no
    validation. With validation, `params` are those of the lowest validation loss, else the last.
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
    *,
    rngs: Sequence[np.random.Generator],
    solver: str = "adam",
    learning_rate: Any = 1e-3,
    schedule: str = "constant",
    batch_size: int = 200,
    max_epochs: int = 200,
    shuffle: bool = True,
    momentum: Any = 0.9,
    nesterov: bool = True,
    beta_1: Any = 0.9,
    beta_2: Any = 0.999,
    epsilon: Any = 1e-8,
    alpha: Any = 0.0,
    weight_decay: Any = 0.01,
    clip: Any = None,
    dropout: Any = 0.0,
    augment: Any = 0.0,
    augment_by: str = "number",
    augment_empty: bool = True,
    augment_others: Sequence[float] | None = None,
    units: Sequence[int] | None = None,
    rates: Mapping[str, Any] | None = None,
    fixed: Params | None = None,
    average: bool = False,
    tol: float = 1e-4,
    n_iter_no_change: float = 10,
    opt_state: list[np.ndarray] | None = None,
    on_epoch: Callable[[Epoch], object] | None = None,
) -> Trained:
    """Train R replicas of a network until each has stopped improving.

    Every hyperparameter that is a number is one for all replicas or an array (R,).

    Parameters
    ----------
    network : Network
        A hashable description with a loss per row.
    params : dict of arrays (R, ...)
        Where the replicas start.
    data : Data
    rngs : sequence of R generators
        Each replica shuffles and drops with its own and no other, so that it does not depend on
        its neighbours.
    solver : {"sgd", "adam", "adamw"}
    learning_rate : float
    schedule : {"constant", "cosine"}
        "cosine" lets the rate fall to 0 over `max_epochs`, step by step.
    batch_size, max_epochs : int
    shuffle : bool
        Whether rows are permuted in every epoch.
    momentum, nesterov
        Of "sgd".
    beta_1, beta_2, epsilon
        Of "adam" and "adamw".
    alpha : float
        scikit-learn's L2: ``alpha ||W||^2 / 2`` over the sum of weights of a batch, W being all
        matrices and no biases.
    weight_decay : float
        Of "adamw", on all matrices.
    clip : float, optional
        The largest norm of a replica's gradient.
    dropout : float
        Handed to the network.
    augment : float
        The share of the rows of a batch that get extra gaps.
    augment_by : {"number", "subset"}
        Whether every number of units lost is equally likely, such a row losing each unit with a
        probability u ~ U(0, 1) of its own, or every subset, each unit lost with probability 1/2.
    augment_empty : bool
        Whether all units may be lost. If not, it is the same law, given that one is kept.
    augment_others : sequence of float in [0, 1], optional
        By unit: the rows that `augment` leaves out lose it with so much of a probability
        u ~ U(0, 1) of their own. Only by "number", and where all units may be lost.
    units : sequence of p int, optional
        The unit each column is lost with; by default every column is one.
    rates : mapping, optional
        By the name of an array of parameters: how many times as fast it learns, a number or an
        array of a shape that fits. Weight decay stays as it is.
    fixed : dict of arrays, optional
        Parameters of the network that are the same for all replicas and are not trained.
    average : bool
        Whether a running average of the parameters, over the last twentieth of the steps but no
        more than 2,000, of which it takes every fourth, is what is validated, told and returned.
        Whoever goes on from it, with or without `opt_state`, goes on from the average.
    tol, n_iter_no_change
        A replica stops when its validation loss, or its training loss without validation, has not
        fallen by `tol` for more than `n_iter_no_change` epochs in a row, as in scikit-learn.
    opt_state : list of arrays, optional
        The `opt_state` of an earlier run, to go on from it.
    on_epoch : callable, optional
        Called with an `Epoch` after each.

    Returns
    -------
    Trained
        Ctrl-C returns what was reached so far, with a warning.

    Raises
    ------
    RuntimeError
        In a process that was forked from one that had used JAX.
    """
    claim_jax()
    n_replicas = _check(data, params, rngs, solver=solver, schedule=schedule, augment_by=augment_by)
    numbers = {
        "learning_rate": learning_rate,
        "momentum": momentum,
        "beta_1": beta_1,
        "beta_2": beta_2,
        "epsilon": epsilon,
        "alpha": alpha,
        "weight_decay": weight_decay,
        "clip": np.inf if clip is None else clip,
        "dropout": dropout,
        "augment": augment,
    }
    hyper = {name: np.full(n_replicas, value, np.float32) for name, value in numbers.items()}
    table = _place(data)
    if units is None:
        units = range(table.X.shape[1])
    if augment_others is not None and np.any(augment_others):
        if np.shape(augment_others) != (max(units) + 1,):
            raise ValueError("`augment_others` must have one entry for each unit.")
        if (augment_by, bool(augment_empty)) != ("number", True):
            raise ValueError("`augment_others` goes by 'number', and all units may be lost.")
        hyper["augment_others"] = np.tile(np.asarray(augment_others, np.float32), (n_replicas, 1))
    plan = Plan(
        solver=solver,
        momentum=solver == "sgd" and bool(hyper["momentum"].any()),
        nesterov=nesterov,
        clip=clip is not None,
        penalty=bool(hyper["alpha"].any()),
        cosine=schedule == "cosine",
        dropout=bool(hyper["dropout"].any()),
        units=tuple(units) if hyper["augment"].any() or "augment_others" in hyper else None,
        shapes=tuple((name, np.shape(a)[1:]) for name, a in params.items()),
        width=0,
        rates=bool(rates),
    )
    if rates:
        table = table._replace(rates=_pack_rates(rates, plan.shapes))
    if fixed:
        table = table._replace(fixed=jax.device_put(dict(fixed)))
    if plan.units is not None:
        plan = plan._replace(law=(augment_by, bool(augment_empty)))
    longest = max(len(rows) for rows in data.rows)
    batches = Batches(data.rows, min(batch_size, max(PLACES, bucket(longest))))
    val_batches = val_steps = None
    if data.val_rows is not None:
        val = Batches(data.val_rows, PLACES)
        val_batches, val_steps = val.deal(range(n_replicas)), val.steps
    params = {name: np.asarray(a, np.float32) for name, a in params.items()}
    start = packing.pack(params, plan.shapes, xp=np)
    opt = _start_solver(plan, start, opt_state)
    averaged = (start, np.zeros(n_replicas, np.float32)) if average else None
    state = State(start, opt, averaged, None if val_batches is None else start)
    work = batches.shape[2] * sum(a[0].size for a in params.values())
    each = np.arange(n_replicas, dtype=np.int32)
    replicas = jax.device_put(Replicas(each, hyper, batches.steps, val_steps, val_batches))
    watch = Watch(n_replicas, val_batches is not None, tol, n_iter_no_change)
    interrupted = False

    def deal(ids: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        keys = np.zeros(n_replicas, np.uint32)
        keys[ids] = [rngs[r].integers(2**32, dtype=np.uint32) for r in ids]
        return keys, batches.deal(ids, rngs if shuffle else None)

    def fetch(packed: Any) -> dict[str, np.ndarray]:
        return packing.unpack(jax.device_get(packed), plan.shapes)

    try:
        dealt = None
        with Lanes() as lanes:
            for number in range(max_epochs):
                ids = np.flatnonzero(watch.active)
                if not ids.size:
                    break
                done = number * int(batches.steps.max())
                plan = plan._replace(width=epoch.next_width(plan.width, ids.size, work, done))
                keys, rows = deal(ids) if dealt is None else dealt
                finish = lanes.begin(
                    network,
                    plan,
                    table,
                    replicas._replace(key=keys, batches=rows, best_loss=watch.best_loss),
                    state,
                    ids,
                    np.array([number, max_epochs], np.float32),
                )
                # The next batches, while the device is at work, unless they take much memory.
                ahead = number + 1 < max_epochs and rows.nbytes < 2**24
                dealt = deal(ids) if ahead else None
                reached, (train_loss, val_loss) = finish()
                # First: an interrupt here must not count an epoch and lose its weights.
                state = reached
                watch.see(train_loss, val_loss)
                if on_epoch is not None:
                    now = fetch(state.judged)
                    on_epoch(Epoch(number + 1, now, train_loss, val_loss, watch.active))
    except KeyboardInterrupt:
        if not watch.history:
            raise
        interrupted = True
        warnings.warn(
            f"Training was interrupted after epoch {len(watch.history)} of at most {max_epochs}; "
            "what was reached is kept.",
            UserWarning,
            stacklevel=2,
        )
    kept = state.judged if state.best is None else state.best
    curves = np.array(watch.history).reshape(-1, 2, n_replicas)
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


def _place(data: Data) -> Table:
    """Hand the data to JAX, which takes over the memory instead of copying it where it can."""

    def put(blocks: Sequence[np.ndarray], axis: int, dtype: Any = np.float32) -> Any:
        return jax.device_put(stacked(blocks, axis, dtype), may_alias=True)

    def maybe(a: np.ndarray | None, shared: int, dtype: Any = np.float32) -> Any:
        return None if a is None else put([a], a.ndim - shared, dtype)

    X = put([data.X] if isinstance(data.X, np.ndarray) else data.X, 0)
    if isinstance(data.X, list):
        data.X.clear()
    return Table(
        X=X,
        y=put([data.y], data.y.ndim - 2),
        weights=maybe(data.weights, 1),
        mask=maybe(data.mask, 2, np.bool_),
    )


def _pack_rates(rates: Mapping[str, Any], shapes: packing.Shapes) -> Any:
    whole = {name: np.broadcast_to(np.float32(rates.get(name, 1)), shape) for name, shape in shapes}
    return jax.device_put(packing.pack(whole, shapes, xp=np))


def _start_solver(plan: Plan, start: Any, opt_state: list[np.ndarray] | None) -> Any:
    """The state of the solver, in NumPy: JAX would compile every operation by itself."""
    numbers = dict.fromkeys(
        ("clip", "momentum", "beta_1", "beta_2", "epsilon", "weight_decay"), 0.5
    )
    wanted = jax.eval_shape(jax.vmap(epoch.make_solver(plan, numbers, 0.5).init), start)
    leaves, tree = jax.tree.flatten(wanted)
    if opt_state is None:
        opt_state = [np.zeros(leaf.shape, leaf.dtype) for leaf in leaves]
    elif [a.shape for a in opt_state] != [leaf.shape for leaf in leaves]:
        raise ValueError("`opt_state` is that of another network, solver or number of replicas.")
    return jax.tree.unflatten(tree, opt_state)


def _check(
    data: Data,
    params: Params,
    rngs: Sequence[np.random.Generator],
    *,
    solver: str,
    schedule: str,
    augment_by: str,
) -> int:
    """The number of replicas, if all is well."""
    for name, value, allowed in (
        ("solver", solver, SOLVERS),
        ("schedule", schedule, RATES),
        ("augment_by", augment_by, LAWS),
    ):
        if value not in allowed:
            raise ValueError(f"`{name}` must be one of {allowed}. Received: {name}={value!r}")
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
    n = data.y.shape[-2]
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
