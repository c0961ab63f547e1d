"""The paper's nets, many at once: a job is one network on one table, jobs alike are replicas."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from time import perf_counter
from typing import Any, NamedTuple

import jax
import numpy as np
from numpy.typing import NDArray

from promissing.networks.base import Params, stack
from promissing.networks.mlp import MLP
from promissing.training.tools import xp
from promissing.training.train import Data, train

__all__ = ["Job", "Recipe", "Trainee", "run_jobs"]

Array = NDArray[Any]


class Job(NamedTuple):
    """One network to be trained, and the tables it is then applied to."""

    X: Array  # (n, q), NaN where missing.
    y: Array  # (n,)
    rows: Array  # The rows to learn from.
    others: Array  # (m, q)
    compensation: str
    hidden: tuple[int, ...]
    seed: tuple[int, ...]  # The same for all strategies of a repetition, so they start alike.


class Recipe(NamedTuple):
    """How all jobs are trained: plain SGD, as in the paper."""

    loss: str
    activation: str
    learning_rate: float
    batch_size: int
    epochs: int


class Trainee(NamedTuple):
    """What became of a job."""

    params: dict[str, Array]
    outputs: Array  # (m,), or by epoch what `watch` made of them (..., epochs).
    seconds: float  # Its share of the time of its program.


def run_jobs(
    jobs: Sequence[Job],
    recipe: Recipe,
    *,
    watch: Callable[[Array, list[int]], Array] | None = None,
) -> list[Trainee]:
    """Train all jobs, those of one shape as replicas of one program.

    `watch(outputs, numbers)` gets the outputs (R, m) of the jobs of these numbers after every
    epoch and returns what to keep of them, (R, ...).
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
    recipe: Recipe,
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

    def see(epoch: Any) -> None:
        assert watch is not None
        kept.append(watch(np.asarray(_outputs(network, epoch.params, others)), numbers))

    trained = train(
        network,
        stack([start_as_paper(network, rng) for rng in rngs]),
        data,
        rngs=rngs,
        solver="sgd",
        momentum=0.0,
        alpha=0.0,
        learning_rate=recipe.learning_rate,
        schedule="constant",
        batch_size=recipe.batch_size,
        max_epochs=recipe.epochs,
        tol=0.0,
        n_iter_no_change=np.inf,
        on_epoch=see if watch else None,
    )
    outputs = np.asarray(_outputs(network, trained.params, others))
    if watch:
        outputs = np.stack(kept, axis=-1)
    seconds = (perf_counter() - start) / len(jobs)
    return [
        Trainee({name: value[r] for name, value in trained.params.items()}, outputs[r], seconds)
        for r in range(len(jobs))
    ]


def start_as_paper(network: MLP, rng: np.random.Generator) -> dict[str, Array]:
    """Glorot uniform kernels and no biases; the shared compensation is one more row of the kernel.

    The kernels are drawn first, so that strategies of one seed start with the same.
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
