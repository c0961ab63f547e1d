"""The networks of the paper, many at once, and their scores.

A job is one network on one table. Jobs of the same shape are trained as replicas of one program.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from time import perf_counter
from typing import Any, NamedTuple

import jax
import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from promissing.networks.base import Params, stack
from promissing.networks.losses import Loss
from promissing.networks.mlp import MLP
from promissing.training.numerics import xp
from promissing.training.options import Options
from promissing.training.train import Data, train

__all__ = ["Job", "Trainee", "Training", "auc", "run_jobs", "smse", "start_as_paper"]

Array = NDArray[Any]


class Job(NamedTuple):
    """One network to train, and the rows it is then applied to."""

    X: Array  # (n, q), NaN where missing.
    y: Array  # (n,)
    rows: Array  # The rows to train on.
    others: Array  # (m, q)
    compensation: str
    hidden: tuple[int, ...]
    seed: tuple[int, ...]  # All strategies of a repetition start with the same weights.


class Training(NamedTuple):
    """How all jobs are trained: plain SGD, as in the paper."""

    loss: Loss
    activation: str
    learning_rate: float
    batch_size: int
    epochs: int


class Trainee(NamedTuple):
    """A trained network and its outputs."""

    params: dict[str, Array]
    outputs: Array  # (m,), or what `watch` returned, by epoch (..., epochs).
    seconds: float  # Its share of the time of its program.


def run_jobs(
    jobs: Sequence[Job],
    recipe: Training,
    *,
    watch: Callable[[Array, list[int]], Array] | None = None,
) -> list[Trainee]:
    """Train all jobs, those of one shape as replicas of one program.

    After every epoch, `watch(outputs, numbers)` receives the outputs (R, m) of the jobs with these
    numbers and returns what to keep of them, (R, ...).
    """
    alike: dict[Any, list[int]] = {}
    for i, job in enumerate(jobs):
        shape = job.X.shape[1], job.others.shape, job.compensation, job.hidden
        alike.setdefault(shape, []).append(i)
    done: dict[int, Trainee] = {}
    for numbers in alike.values():
        trained = _run([jobs[i] for i in numbers], numbers, recipe, watch)
        done |= dict(zip(numbers, trained, strict=True))
    return [done[i] for i in range(len(jobs))]


def _run(
    jobs: list[Job],
    numbers: list[int],
    recipe: Training,
    watch: Callable[[Array, list[int]], Array] | None,
) -> list[Trainee]:
    first, start = jobs[0], perf_counter()
    network = MLP(
        first.X.shape[1],
        1,
        recipe.loss,
        hidden=first.hidden,
        activation=recipe.activation,
        compensation=first.compensation,
    )
    rngs = [np.random.default_rng(job.seed) for job in jobs]
    offsets = np.cumsum([0] + [len(job.X) for job in jobs[:-1]])
    data = Data(
        [job.X for job in jobs],
        np.concatenate([job.y for job in jobs])[:, None],
        [job.rows + offset for job, offset in zip(jobs, offsets, strict=True)],
    )
    others = np.stack([job.others for job in jobs]).astype(np.float32)
    kept: list[Array] = []

    def see(params: Params) -> None:
        assert watch is not None
        kept.append(watch(np.asarray(_outputs(network, params, others)), numbers))

    params = _train(network, data, rngs, recipe, see if watch else None)
    outputs = np.stack(kept, axis=-1) if watch else np.asarray(_outputs(network, params, others))
    seconds = (perf_counter() - start) / len(jobs)
    return [
        Trainee({name: value[r] for name, value in params.items()}, outputs[r], seconds)
        for r in range(len(jobs))
    ]


def _train(
    network: MLP,
    data: Data,
    rngs: list[np.random.Generator],
    recipe: Training,
    see: Callable[[Params], None] | None,
) -> Params:
    """Train replicas by plain SGD. `see` receives the parameters after every epoch."""
    options = Options(
        solver="sgd",
        momentum=0.0,
        learning_rate=recipe.learning_rate,
        batch_size=recipe.batch_size,
        max_epochs=recipe.epochs,
        tol=0.0,
        n_iter_no_change=np.inf,
    )
    trained = train(
        network,
        stack([start_as_paper(network, rng) for rng in rngs]),
        data,
        options,
        rngs=rngs,
        on_epoch=(lambda epoch: see(epoch.params)) if see else None,
    )
    return trained.params


def start_as_paper(network: MLP, rng: np.random.Generator) -> dict[str, Array]:
    """Glorot uniform kernels and zero biases. The shared compensation is drawn as a kernel row.

    The kernels are drawn first, so strategies with one seed start with the same kernels.
    """
    params = dict(network.init(rng))
    for name in params:
        if name.startswith("bias"):
            params[name] = np.zeros_like(params[name])
    if network.compensation == "shared":
        rows, units = params["kernel_0"].shape
        bound = np.sqrt(6 / (rows + 1 + units))
        params["compensation_weight"] = rng.uniform(-bound, bound, units)
    return params


@partial(jax.jit, static_argnames="network")
def _outputs(network: MLP, params: Params, X: Any) -> Any:
    return jax.vmap(lambda params, x: network.forward(params, x, xp=xp)[:, 0])(params, X)


def auc(y: NDArray[Any], scores: NDArray[Any]) -> NDArray[np.float64]:
    """The area under the ROC curve of every row of scores (..., n), given labels 0/1 (..., n).

    Ties count one half, as in `sklearn.metrics.roc_auc_score`, which takes one row at a time. The
    area is NaN if a score is NaN or a class is absent.
    """
    y, scores = np.broadcast_arrays(np.asarray(y, bool), scores)
    order = np.argsort(scores, axis=-1)  # NaN comes last.
    ordered = np.take_along_axis(scores, order, -1)
    positive = np.take_along_axis(y, order, -1)
    ranks = np.arange(1.0, scores.shape[-1] + 1)
    total = np.asarray(positive @ ranks)
    tied = (ordered[..., 1:] == ordered[..., :-1]).any(axis=-1)
    if tied.any():
        middle = rankdata(ordered[tied], axis=-1)
        total[tied] = (middle * positive[tied]).sum(axis=-1)
    n_positive = np.count_nonzero(y, axis=-1)
    pairs = n_positive * (y.shape[-1] - n_positive)
    unfit = np.isnan(ordered[..., -1]) | (pairs == 0)
    area = (total - n_positive * (n_positive + 1) / 2) / np.where(pairs > 0, pairs, 1)
    return np.where(unfit, np.nan, area)


def smse(y: NDArray[Any], predictions: NDArray[Any]) -> NDArray[np.float64]:
    """The mean squared error of every row (..., n) over the variance of y (..., n)."""
    with np.errstate(over="ignore", invalid="ignore"):
        error = np.mean((predictions - y) ** 2, axis=-1) / np.var(y, axis=-1)
    return np.asarray(np.where(np.isfinite(error), error, np.nan), np.float64)
