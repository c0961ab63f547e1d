"""How networks are trained: options of the engine. This module does not import JAX."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

__all__ = ["LAWS", "SCHEDULES", "SOLVERS", "Augmentation", "Options"]

SOLVERS = ("sgd", "adam", "adamw")
SCHEDULES = ("constant", "cosine")
LAWS = ("number", "subset")


@dataclass(frozen=True)
class Augmentation:
    """Which values the rows of a batch lose. They are drawn again in every step.

    Parameters
    ----------
    share : float, default=0
        Share of the rows of a batch that lose values.
    units : sequence of p int, optional
        The unit of each column: the columns of a unit are lost together. Units are features or
        modalities. By default every column is a unit.
    law : {"number", "subset"}, default="number"
        With "number", such a row loses each unit with its own probability u ~ U(0, 1), so that all
        numbers of lost units are equally likely. With "subset", all subsets are equally likely.
    allow_empty : bool, default=True
        Whether a row may lose all units. If False, each row keeps at least one; otherwise the
        distribution is unchanged.
    others : sequence of float in [0, 1], optional
        One number per unit. The other rows lose the unit with this number times a probability
        u ~ U(0, 1) of their own. It needs ``law="number"`` and ``allow_empty=True``.
    """

    share: Any = 0.0
    units: Sequence[int] | None = None
    law: str = "number"
    allow_empty: bool = True
    others: Sequence[float] | None = None

    def __post_init__(self) -> None:
        _check_choice("augment_by", self.law, LAWS)
        loses_others = self.others is not None and np.any(self.others)
        if loses_others and (self.law != "number" or not self.allow_empty):
            raise ValueError("`others` needs the law 'number' and `allow_empty=True`.")


@dataclass(frozen=True)
class Options:
    """Options of `promissing.training.train.train`.

    Every number is one for all R replicas, or an array (R,).

    Parameters
    ----------
    solver : {"sgd", "adam", "adamw"}, default="adam"
        The optimiser.
    learning_rate : float, default=1e-3
        Initial learning rate.
    schedule : {"constant", "cosine"}, default="constant"
        "cosine" lowers the rate to 0 over `max_epochs`, step by step.
    batch_size, max_epochs : int, default=200
        Rows of a batch, and the largest number of epochs.
    shuffle : bool, default=True
        Whether rows are permuted in every epoch.
    momentum : float, default=0.9
        Momentum of "sgd".
    nesterov : bool, default=True
        Whether "sgd" uses Nesterov's momentum.
    beta_1, beta_2, epsilon : float
        Constants of "adam" and "adamw".
    alpha : float, default=0
        L2 penalty as in scikit-learn: ``alpha ||W||^2 / 2`` over the sum of weights of a batch,
        for matrices, not for biases.
    weight_decay : float, default=0.01
        Decoupled weight decay of "adamw", for matrices.
    dropout : float, default=0
        Dropout rate, passed to the network.
    augmentation : Augmentation
        Which values rows lose during training.
    multipliers : mapping of str to array, optional
        Learning-rate multipliers by the name of an array of parameters. They do not change the
        weight decay.
    average : bool, default=False
        Whether a running average of the parameters, over the last twentieth of the steps but at
        most 2,000, is validated and returned.
    tol, n_iter_no_change : float
        A replica stops when its validation loss, or its training loss without validation, has not
        fallen by `tol` for more than `n_iter_no_change` epochs in a row, as in scikit-learn.
    """

    solver: str = "adam"
    learning_rate: Any = 1e-3
    schedule: str = "constant"
    batch_size: int = 200
    max_epochs: int = 200
    shuffle: bool = True
    momentum: Any = 0.9
    nesterov: bool = True
    beta_1: Any = 0.9
    beta_2: Any = 0.999
    epsilon: Any = 1e-8
    alpha: Any = 0.0
    weight_decay: Any = 0.01
    dropout: Any = 0.0
    augmentation: Augmentation = field(default_factory=Augmentation)
    multipliers: Mapping[str, Any] | None = None
    average: bool = False
    tol: float = 1e-4
    n_iter_no_change: float = 10

    def __post_init__(self) -> None:
        _check_choice("solver", self.solver, SOLVERS)
        _check_choice("schedule", self.schedule, SCHEDULES)

    def numbers(self, n_replicas: int) -> dict[str, np.ndarray]:
        """Return the numbers that may differ between replicas, as arrays (R,)."""
        names = ("learning_rate", "momentum", "beta_1", "beta_2", "epsilon")
        values = {name: getattr(self, name) for name in (*names, "alpha", "weight_decay")}
        values |= {"dropout": self.dropout, "augment": self.augmentation.share}
        return {name: np.full(n_replicas, value, np.float32) for name, value in values.items()}


def _check_choice(name: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise ValueError(f"`{name}` must be one of {allowed}. Received: {name}={value!r}")
