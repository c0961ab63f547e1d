"""Loss functions: what a network minimises, and how targets become predictions.

A loss is one object with two kinds of members:

- static ones, which the compiled training program uses: `row_loss`, `fused` and `n_outputs`;
- fitted ones, such as the class labels or the mean and scale of a target: they encode targets,
  decode outputs and compute the prior.

Equality and hash only look at the static part, so that models with the same loss share a compiled
program. A new loss is one class in this file: derive it from `Loss`, or from `NumberLoss` for
numbers, define its methods, and add it to `REGRESSION_LOSSES`.
"""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from promissing.encoding.columns import moments
from promissing.networks.activations import logistic

__all__ = [
    "REGRESSION_LOSSES",
    "ClassLoss",
    "CrossEntropy",
    "Gaussian",
    "LogLoss",
    "Loss",
    "MeanStd",
    "NumberLoss",
    "Pinball",
    "Poisson",
    "SquaredError",
]

Array = NDArray[Any]
Float = NDArray[np.float64]
# A target that varies by less than this part of its size is constant up to rounding.
ROUNDING = 64 * np.finfo(float).eps
MOST_SLICES = 7  # NumPy adds more numbers in another order.


@dataclass(frozen=True)
class Loss(ABC):
    """Base class of all losses.

    Attributes
    ----------
    name : str
        Name of the loss in `promissing.NanMLPRegressor` and in model files.
    linear_skip : bool
        Whether a linear skip connection may carry part of the prediction. It needs outputs that
        are the standardised target.

    Examples
    --------
    >>> from promissing.networks.losses import REGRESSION_LOSSES
    >>> sorted(REGRESSION_LOSSES)
    ['gaussian', 'mean_std', 'poisson', 'quantile', 'squared_error']
    """

    name: ClassVar[str]
    linear_skip: ClassVar[bool] = False

    @property
    @abstractmethod
    def n_outputs(self) -> int:
        """Number of network outputs.

        Examples
        --------
        >>> from promissing.networks.losses import Gaussian
        >>> Gaussian().n_outputs
        2
        """

    @abstractmethod
    def row_loss(self, outputs: Any, y: Any, *, xp: Any) -> Any:
        """Compute the loss of each row.

        Parameters
        ----------
        outputs : array (..., k)
            Outputs of the network.
        y : array (..., m)
            Targets, as `encode` returns them.
        xp : module
            Array namespace: NumPy or jax.numpy.

        Returns
        -------
        array (...)
            The losses.

        Examples
        --------
        >>> import numpy as np
        >>> from promissing.networks.losses import SquaredError
        >>> SquaredError().row_loss(np.array([[3.0]]), np.array([[1.0]]), xp=np)
        array([2.])
        """

    def validation_loss(self, outputs: Any, y: Any, *, xp: Any) -> Any:
        """Compute the loss by which the best epoch is chosen: by default, the loss of training.

        Parameters
        ----------
        outputs : array (..., k)
            Outputs of the network.
        y : array (..., m)
            Encoded targets.
        xp : module
            The array namespace: NumPy or jax.numpy.

        Returns
        -------
        array (...)
            Loss of every row.

        Examples
        --------
        >>> import numpy as np
        >>> from promissing.networks.losses import SquaredError
        >>> SquaredError().validation_loss(np.array([[1.0]]), np.array([[3.0]]), xp=np)
        array([2.])
        """
        return self.row_loss(outputs, y, xp=xp)

    def fused(self, outputs: Any, *, xp: Any) -> Any:
        """Return the outputs in the form in which a fusion layer receives them.

        Parameters
        ----------
        outputs : array (..., k)
            Outputs of the decision of a modality.
        xp : module
            Array namespace.

        Returns
        -------
        array (..., k)
            Probabilities for classes, the outputs themselves for numbers.

        Examples
        --------
        >>> import numpy as np
        >>> from promissing.networks.losses import LogLoss
        >>> LogLoss().fused(np.array([[0.0]]), xp=np)
        array([[0.5]])
        """
        return outputs

    @abstractmethod
    def encode(self, y: Array, name: str = "y") -> NDArray[np.float32]:
        """Encode targets for `row_loss`.

        Parameters
        ----------
        y : ndarray (n,) or (n, t)
            Targets.
        name : str, default="y"
            Name of the argument in errors.

        Returns
        -------
        ndarray of float32 (n, m)
            The encoded targets.

        Examples
        --------
        >>> import numpy as np
        >>> from promissing.networks.losses import LogLoss
        >>> LogLoss(labels=np.array(['no', 'yes'])).encode(np.array(['yes', 'no']))
        array([[1.],
               [0.]], dtype=float32)
        """

    def resumed(self, y: Array, weight: Array) -> Self:
        """Return the loss with which training continues on further rows.

        Parameters
        ----------
        y : ndarray
            Targets of the further rows.
        weight : ndarray (n,)
            Their weights.

        Returns
        -------
        Loss
            This loss, or a new one if all targets were equal until now.

        Examples
        --------
        >>> import numpy as np
        >>> from promissing.networks.losses import SquaredError
        >>> SquaredError().resumed(np.ones(3), np.ones(3)).scale
        array([1.])
        """
        return self

    def row_weights(self, y: Array, weight: Array) -> Array:
        """Return the weight of each row, including the weight of its class.

        Parameters
        ----------
        y : ndarray
            Targets.
        weight : ndarray (n,)
            Sample weights.

        Returns
        -------
        ndarray (n,)
            The weights.

        Examples
        --------
        >>> import numpy as np
        >>> from promissing.networks.losses import LogLoss
        >>> loss = LogLoss(class_weights=np.array([1.0, 3.0]))
        >>> loss.row_weights(np.array([0, 1]), np.ones(2))
        array([1., 3.])
        """
        return weight

    @abstractmethod
    def prior(self, y: Array, weight: Array) -> Float:
        """Compute the prediction for a row without known values.

        Parameters
        ----------
        y : ndarray
            Targets.
        weight : ndarray (n,)
            Weights.

        Returns
        -------
        ndarray
            Class shares, means or quantiles of the targets.

        Examples
        --------
        >>> import numpy as np
        >>> from promissing.networks.losses import LogLoss
        >>> LogLoss().prior(np.array([0, 0, 0, 1]), np.ones(4))
        array([0.75, 0.25])
        """

    def pooled_prior(self, old: Float, old_weight: float, new: Float, new_weight: float) -> Float:
        """Combine the priors of two sets of rows, for `partial_fit`.

        Parameters
        ----------
        old : ndarray
            Prior of the first rows.
        old_weight : float
            Their total weight.
        new : ndarray
            Prior of the other rows.
        new_weight : float
            Their total weight.

        Returns
        -------
        ndarray
            The weighted mean of the priors. For quantiles this is an approximation.

        Examples
        --------
        >>> import numpy as np
        >>> from promissing.networks.losses import LogLoss
        >>> LogLoss().pooled_prior(np.array([1.0, 0.0]), 1.0, np.array([0.0, 1.0]), 3.0)
        array([0.25, 0.75])
        """
        return np.asarray((old * old_weight + new * new_weight) / (old_weight + new_weight))

    def prior_prediction(self, prior: Array) -> Float:
        """Return what is predicted for a row without known values.

        Parameters
        ----------
        prior : ndarray
            As `prior` returns it.

        Returns
        -------
        ndarray (K,) or (t,)
            Probabilities, or predicted numbers.

        Examples
        --------
        >>> import numpy as np
        >>> from promissing.networks.losses import Gaussian
        >>> Gaussian().prior_prediction(np.array([5.0, 2.0]))  # mean and standard deviation
        array([5.])
        """
        return prior

    @abstractmethod
    def prior_outputs(self, prior: Array) -> Float:
        """Return the network outputs that correspond to a prior.

        Parameters
        ----------
        prior : ndarray
            As `prior` returns it.

        Returns
        -------
        ndarray (k,)
            The outputs.

        Examples
        --------
        >>> import numpy as np
        >>> from promissing.networks.losses import LogLoss
        >>> LogLoss().prior_outputs(np.array([0.5, 0.5]))
        array([0.])
        """

    def prior_targets(self, prior: Array) -> tuple[Float, Float]:
        """Return targets for rows without known values.

        Parameters
        ----------
        prior : ndarray
            As `prior` returns it.

        Returns
        -------
        targets : ndarray (r, m)
            Targets, as `encode` returns them. The outputs with the lowest loss are the prior.
        shares : ndarray (r,)
            The share of each target.

        Examples
        --------
        >>> import numpy as np
        >>> from promissing.networks.losses import CrossEntropy
        >>> targets, shares = CrossEntropy().prior_targets(np.array([0.75, 0.25]))
        >>> targets.ravel(), shares
        (array([0., 1.]), array([0.75, 0.25]))
        """
        return self.prior_outputs(prior)[None], np.ones(1)

    @abstractmethod
    def outage(self, full: Float, masked: Float) -> tuple[Float, Float]:
        """Estimate what predictions lose when some values are no longer known.

        Parameters
        ----------
        full : ndarray (n, 1, K) or (n, 1, t)
            Predictions with all values: probabilities or numbers.
        masked : ndarray (n, m, K) or (n, m, t)
            Predictions with some of them, under m masks.

        Returns
        -------
        loss : ndarray (n, m)
            Expected increase of the log loss, or of the squared error in units of the variance of
            the predictions; the mean over labels or targets.
        accuracy : ndarray (n, m)
            Expected fall of the accuracy, or share of the explained variance that is lost.

        Examples
        --------
        >>> import numpy as np
        >>> from promissing.networks.losses import LogLoss
        >>> loss, accuracy = LogLoss().outage(np.array([[[0.1, 0.9]]]), np.array([[[0.5, 0.5]]]))
        >>> loss.round(3)
        array([[0.368]])
        """

    @abstractmethod
    def decode(self, outputs: Array) -> Float:
        """Return the predictions of ensemble members.

        Parameters
        ----------
        outputs : ndarray (..., n, k)
            Outputs of the networks.

        Returns
        -------
        ndarray (..., n) or (..., n, t)
            Probabilities of classes, or predicted numbers.

        Examples
        --------
        >>> import numpy as np
        >>> from promissing.networks.losses import LogLoss
        >>> LogLoss().decode(np.array([[0.0]]))
        array([[0.5, 0.5]])
        """

    @abstractmethod
    def state(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """Return what a model file stores.

        Returns
        -------
        description : dict
            Values for JSON.
        arrays : dict of ndarray
            Arrays by name.

        Examples
        --------
        >>> from promissing.networks.losses import SquaredError
        >>> SquaredError().state()[0]
        {'flat': True}
        """


# ------------------------------------------------------------------------------------- classes


@dataclass(frozen=True)
class ClassLoss(Loss):
    """Base class of the losses for classes.

    Parameters
    ----------
    labels : ndarray (K,)
        The sorted class labels, or the numbers of the labels if a row may have several.
    class_weights : ndarray (K,), optional
        Factors of the weights of the rows of each class.

    Examples
    --------
    >>> from promissing.networks.losses import ClassLoss, CrossEntropy
    >>> issubclass(CrossEntropy, ClassLoss)
    True
    """

    labels: Array = field(default_factory=lambda: np.arange(2), compare=False)
    class_weights: Array | None = field(default=None, compare=False)
    multilabel: ClassVar[bool] = False

    def encode(self, y: Array, name: str = "y") -> NDArray[np.float32]:
        # Return the number of the class of each row, (n, 1).
        if y.ndim == 2:
            raise ValueError(
                f"`{name}` has {y.shape[1]} labels per row, but the model was fitted on one."
            )
        unknown = sorted(set(np.unique(y).tolist()) - set(self.labels.tolist()), key=str)
        if unknown:
            raise ValueError(
                f"`{name}` has the classes {unknown}, which are not among the classes "
                f"{self.labels.tolist()} the model knows."
            )
        return np.searchsorted(self.labels, y).astype(np.float32)[:, None]

    def row_weights(self, y: Array, weight: Array) -> Array:
        # Return the weights of the rows times those of their classes.
        if self.class_weights is None:
            return weight
        return np.asarray(weight * self.class_weights[np.searchsorted(self.labels, y)])

    def prior(self, y: Array, weight: Array) -> Float:
        # Return the weighted share of every class.
        hit = y > 0 if self.multilabel else y[:, None] == self.labels
        return np.asarray(np.average(hit, axis=0, weights=weight))

    def outage(self, full: Float, masked: Float) -> tuple[Float, Float]:
        # Compare cross-entropies, and the probabilities of the decided classes.
        if self.multilabel:  # Each label is a question of its own.
            full, masked = (np.stack([1 - p, p], axis=-1) for p in (full, masked))
        tiny = np.finfo(float).tiny
        ratio = np.log(np.maximum(full, tiny)) - np.log(np.maximum(masked, tiny))
        best = np.take_along_axis(
            np.broadcast_to(full, masked.shape), masked.argmax(axis=-1)[..., None], axis=-1
        )
        loss, fall = (full * ratio).sum(axis=-1), full.max(axis=-1) - best[..., 0]
        return (loss.mean(axis=-1), fall.mean(axis=-1)) if self.multilabel else (loss, fall)

    def decide(self, proba: Array) -> Array:
        """Return the most probable class of each row.

        Parameters
        ----------
        proba : ndarray (n, K)
            Probabilities.

        Returns
        -------
        ndarray (n,) or (n, K)
            The classes; for several labels, 1 where a label is more probable than not.

        Examples
        --------
        >>> import numpy as np
        >>> from promissing.networks.losses import LogLoss
        >>> LogLoss(labels=np.array(['no', 'yes'])).decide(np.array([[0.3, 0.7]]))
        array(['yes'], dtype='<U3')
        """
        return np.asarray(self.labels[proba.argmax(axis=-1)])

    def state(self) -> tuple[dict[str, Any], dict[str, Array]]:
        # Return what a model file stores.
        arrays = {} if self.class_weights is None else {"class_weights": self.class_weights}
        dtype = "object" if self.labels.dtype == object else self.labels.dtype.str
        return {"dtype": dtype, "labels": self.labels.tolist()}, arrays


@dataclass(frozen=True)
class LogLoss(ClassLoss):
    """Binary cross-entropy: one output for two classes.

    Parameters
    ----------
    labels : ndarray (K,)
        The sorted class labels, or the numbers of the labels if a row may have several.
    class_weights : ndarray (K,), optional
        Factors of the weights of the rows of each class.

    Examples
    --------
    >>> from promissing.networks.losses import LogLoss
    >>> LogLoss().n_outputs
    1
    """

    name: ClassVar[str] = "log"

    @property
    def n_outputs(self) -> int:
        # Number of network outputs.
        return 1

    def row_loss(self, outputs: Any, y: Any, *, xp: Any) -> Any:
        # Compute the cross-entropy, summed over labels.
        # log(1 + exp(z)), written so that it never overflows.
        softplus = xp.maximum(outputs, 0.0) + xp.log1p(xp.exp(-xp.abs(outputs)))
        return xp.sum(softplus - y * outputs, axis=-1)

    def fused(self, outputs: Any, *, xp: Any) -> Any:
        # Return the probabilities.
        return logistic(outputs, xp)

    def prior_outputs(self, prior: Array) -> Float:
        # Return the log-odds of the prior.
        share = np.clip(prior, 1e-6, 1 - 1e-6)
        odds = np.log(share / (1 - share))
        return np.asarray(odds if self.multilabel else odds[1:])

    def prior_targets(self, prior: Array) -> tuple[Float, Float]:
        # Return the prior itself: a target may be a probability.
        return np.asarray(prior if self.multilabel else prior[1:])[None], np.ones(1)

    def decode(self, outputs: Array) -> Float:
        # Return the probabilities of both classes.
        p = logistic(outputs, np)
        return np.asarray(p if self.multilabel else np.concatenate([1 - p, p], axis=-1))


@dataclass(frozen=True)
class MultiLabelLogLoss(LogLoss):
    """Binary cross-entropy for several labels per row, summed over the labels."""

    name: ClassVar[str] = "multilabel"
    multilabel: ClassVar[bool] = True

    @property
    def n_outputs(self) -> int:
        # Number of network outputs.
        return len(self.labels)

    def encode(self, y: Array, name: str = "y") -> NDArray[np.float32]:
        # Return 0 or 1 for each label, (n, K).
        if y.ndim != 2 or y.shape[1] != len(self.labels):
            raise ValueError(
                f"`{name}` must have one column for each of the {len(self.labels)} labels the "
                f"model knows. Received: shape {y.shape}."
            )
        return np.asarray(y, np.float32)

    def decide(self, proba: Array) -> Array:
        # Return 1 where a label is more probable than not.
        return (proba > 0.5).astype(int)


def _reduced(operation: Any, values: Any, *, xp: Any) -> Any:
    """Reduce the last axis, (..., 1). NumPy reduces short axes slowly, but adds slices fast."""
    if xp is not np or values.shape[-1] > MOST_SLICES:
        return operation.reduce(values, axis=-1, keepdims=True)
    return functools.reduce(operation, (values[..., k : k + 1] for k in range(values.shape[-1])))


@dataclass(frozen=True)
class CrossEntropy(ClassLoss):
    """Cross-entropy with one output per class.

    Parameters
    ----------
    labels : ndarray (K,)
        The sorted class labels, or the numbers of the labels if a row may have several.
    class_weights : ndarray (K,), optional
        Factors of the weights of the rows of each class.

    Examples
    --------
    >>> import numpy as np
    >>> from promissing.networks.losses import CrossEntropy
    >>> CrossEntropy(labels=np.arange(3)).n_outputs
    3
    """

    name: ClassVar[str] = "softmax"

    @property
    def n_outputs(self) -> int:
        # Number of network outputs.
        return len(self.labels)

    def row_loss(self, outputs: Any, y: Any, *, xp: Any) -> Any:
        # Compute the cross-entropy.
        top = xp.max(outputs, axis=-1, keepdims=True)
        total = xp.log(xp.sum(xp.exp(outputs - top), axis=-1)) + top[..., 0]
        # Comparing with every class is slower than indexing, but its gradient needs no scatter.
        chosen = xp.arange(outputs.shape[-1]) == y
        return total - xp.sum(xp.where(chosen, outputs, 0.0), axis=-1)

    def fused(self, outputs: Any, *, xp: Any) -> Any:
        # Return the probabilities.
        e = xp.exp(outputs - _reduced(xp.maximum, outputs, xp=xp))
        return e / _reduced(xp.add, e, xp=xp)

    def prior_outputs(self, prior: Array) -> Float:
        # Return the logarithms of the prior.
        return np.asarray(np.log(np.clip(prior, 1e-6, 1 - 1e-6)))

    def prior_targets(self, prior: Array) -> tuple[Float, Float]:
        # Return every class, with its share.
        return np.arange(len(prior), dtype=np.float64)[:, None], np.asarray(prior)

    def decode(self, outputs: Array) -> Float:
        # Return the probabilities of the classes.
        return np.asarray(self.fused(outputs, xp=np))


# ------------------------------------------------------------------------------------- numbers


@dataclass(frozen=True)
class NumberLoss(Loss):
    """Base class of the losses for numbers.

    The network predicts standardised targets: ``(y - mean) / scale``. The scale of a constant
    target is 0, and its prediction is the mean for any output.

    Parameters
    ----------
    mean : ndarray (t,)
        Mean of every target.
    scale : ndarray (t,)
        Scale of every target.
    flat : bool, default=True
        Whether y has one dimension.

    Examples
    --------
    >>> from promissing.networks.losses import NumberLoss, Poisson
    >>> issubclass(Poisson, NumberLoss)
    True
    """

    mean: Float = field(default_factory=lambda: np.zeros(1), compare=False)
    scale: Float = field(default_factory=lambda: np.ones(1), compare=False)
    flat: bool = field(default=True, compare=False)
    outputs_per_target: ClassVar[int] = 1

    @property
    def n_outputs(self) -> int:
        # Number of network outputs.
        return len(self.mean) * self.outputs_per_target

    def fitted(self, y: Float, weight: Array) -> Self:
        """Return a loss with the mean and the standard deviation of every target.

        Parameters
        ----------
        y : ndarray (n,) or (n, t)
            Targets.
        weight : ndarray (n,)
            Weights.

        Returns
        -------
        NumberLoss
            The fitted loss.

        Examples
        --------
        >>> import numpy as np
        >>> from promissing.networks.losses import SquaredError
        >>> SquaredError().fitted(np.array([1.0, 3.0]), np.ones(2)).mean
        array([2.])
        """
        columns = y.reshape(len(y), -1)
        mean, scale = np.array([moments(column, weight) for column in columns.T]).T
        with np.errstate(over="ignore"):
            constant = np.ptp(columns, axis=0) <= ROUNDING * np.abs(columns).max(axis=0)
        return replace(self, mean=mean, scale=np.where(constant, 0.0, scale), flat=y.ndim == 1)

    def encode(self, y: Array, name: str = "y") -> NDArray[np.float32]:
        # Return the standardised targets, (n, t).
        if (y.ndim == 1) != self.flat or (y.ndim == 2 and y.shape[1] != len(self.mean)):
            wanted = "(n,)" if self.flat else f"(n, {len(self.mean)})"
            raise ValueError(f"`{name}` must have the shape {wanted}. Received: {y.shape}.")
        return self.standardise(y.reshape(len(y), -1)).astype(np.float32)

    def standardise(self, y: Array) -> Float:
        """Subtract the mean and divide by the scale; return 0 where the scale is 0.

        Parameters
        ----------
        y : ndarray (..., t)
            Targets.

        Returns
        -------
        ndarray (..., t)
            Standardised targets.

        Examples
        --------
        >>> import numpy as np
        >>> from promissing.networks.losses import SquaredError
        >>> loss = SquaredError(mean=np.array([10.0]), scale=np.array([2.0]))
        >>> loss.standardise(np.array([[14.0]]))
        array([[2.]])
        """
        varies = self.scale > 0
        return np.asarray(np.where(varies, (y - self.mean) / np.where(varies, self.scale, 1.0), 0))

    def resumed(self, y: Array, weight: Array) -> Self:
        # Return the loss, with a scale for targets that are no longer constant.
        if self.scale.all():
            return self
        scale = self.fitted(y, weight).scale
        return replace(self, scale=np.where(self.scale > 0, self.scale, scale))

    def prior(self, y: Array, weight: Array) -> Float:
        # Return the weighted mean of every target.
        return np.asarray(np.average(y.reshape(len(y), -1), axis=0, weights=weight))

    def prior_outputs(self, prior: Array) -> Float:
        # Return the standardised prior.
        return self.standardise(prior)

    def decode(self, outputs: Array) -> Float:
        # Return the predictions in the units of y.
        return self._shaped(outputs * self.scale + self.mean)

    def outage(self, full: Float, masked: Float) -> tuple[Float, Float]:
        # Compare squared errors; both results are the same number.
        full, masked = self.standardise(full), self.standardise(masked)
        variance = np.maximum(full.var(axis=0), np.finfo(float).tiny)
        change = ((full - masked) ** 2 / variance).mean(axis=-1)
        return change, change

    def std(self, outputs: Array) -> Float:
        """Return the predictive standard deviation of an ensemble.

        Parameters
        ----------
        outputs : ndarray (members, n, k)
            Outputs of the members.

        Returns
        -------
        ndarray (n,) or (n, t)
            Standard deviations, in the units of y.

        Examples
        --------
        >>> import numpy as np
        >>> from promissing.networks.losses import Gaussian
        >>> Gaussian().std(np.array([[[0.0, 0.0]]]))
        array([1.])
        """
        raise ValueError(
            f"The loss {self.name!r} provides no standard deviation. Fit the model with "
            "`loss='mean_std'` or `loss='gaussian'`."
        )

    def quantiles(self, outputs: Array, levels: Sequence[float] | None) -> Float:
        """Return predictive quantiles of an ensemble.

        Parameters
        ----------
        outputs : ndarray (members, n, k)
            Outputs of the members.
        levels : sequence of float or None
            Levels between 0 and 1. By default those of the loss.

        Returns
        -------
        ndarray (n, q) or (n, t, q)
            Quantiles, in the units of y.

        Examples
        --------
        >>> import numpy as np
        >>> from promissing.networks.losses import Gaussian
        >>> Gaussian().quantiles(np.array([[[0.0, 0.0]]]), [0.5])
        array([[0.]])
        """
        raise ValueError(
            f"The loss {self.name!r} provides no quantiles. Fit the model with `loss='quantile'`, "
            "`loss='mean_std'` or `loss='gaussian'`."
        )

    def state(self) -> tuple[dict[str, Any], dict[str, Array]]:
        # Return what a model file stores.
        return {"flat": self.flat}, {"mean": self.mean, "scale": self.scale}

    def settings(self) -> dict[str, Any]:
        """Return the arguments that were chosen by the user.

        Returns
        -------
        dict
            Arguments of the constructor.

        Examples
        --------
        >>> from promissing.networks.losses import Pinball
        >>> Pinball(levels=(0.1, 0.9)).settings()
        {'levels': [0.1, 0.9]}
        """
        return {}

    def _split(self, outputs: Any) -> Any:
        """Outputs (..., t, outputs per target)."""
        *lead, k = outputs.shape
        each = self.outputs_per_target
        return outputs.reshape(*lead, k // each, each)

    def _shaped(self, values: Array) -> Float:
        """Values (..., n) if y has one dimension, else (..., n, t)."""
        return np.asarray(values[..., 0] if self.flat else values)


@dataclass(frozen=True)
class SquaredError(NumberLoss):
    """Half of the squared error, summed over targets. The network predicts the mean.

    Parameters
    ----------
    mean : ndarray (t,)
        Mean of every target.
    scale : ndarray (t,)
        Scale of every target.
    flat : bool, default=True
        Whether y has one dimension.

    Examples
    --------
    >>> from promissing.networks.losses import SquaredError
    >>> SquaredError().n_outputs
    1
    """

    name: ClassVar[str] = "squared_error"
    linear_skip: ClassVar[bool] = True

    def row_loss(self, outputs: Any, y: Any, *, xp: Any) -> Any:
        # Compute half of the squared error.
        return 0.5 * xp.sum((outputs - y) ** 2, axis=-1)


@dataclass(frozen=True)
class Poisson(NumberLoss):
    """Poisson deviance with a logarithmic link, for counts and rates.

    The network predicts the logarithm of the ratio to the mean.

    Parameters
    ----------
    mean : ndarray (t,)
        Mean of every target.
    scale : ndarray (t,)
        Scale of every target.
    flat : bool, default=True
        Whether y has one dimension.

    Examples
    --------
    >>> import numpy as np
    >>> from promissing.networks.losses import Poisson
    >>> Poisson().decode(np.array([[0.0]]))
    array([1.])
    """

    name: ClassVar[str] = "poisson"
    LARGEST: ClassVar[float] = 20.0  # The loss continues as a line: exp would overflow.

    def fitted(self, y: Float, weight: Array) -> Self:
        # Return a loss whose scale is the mean of every target.
        mean = np.average(y.reshape(len(y), -1), axis=0, weights=weight)
        made = replace(self, mean=np.zeros_like(mean), scale=mean, flat=y.ndim == 1)
        made.encode(y)
        if not (mean > 0).all():
            where = "" if y.ndim == 1 else f" in column {int(np.argmin(mean))}"
            raise ValueError(
                f"`loss='poisson'` needs some targets above 0 in the first call of `fit` or "
                f"`partial_fit`. All values of `y`{where} are 0."
            )
        return made

    def encode(self, y: Array, name: str = "y") -> NDArray[np.float32]:
        # Return the targets relative to the mean.
        if (y < 0).any():
            raise ValueError(
                f"`loss='poisson'` needs targets of at least 0. `{name}` holds {y.min():g}."
            )
        return super().encode(y, name)

    def resumed(self, y: Array, weight: Array) -> Self:
        # The scale of the first call stays.
        return self

    def row_loss(self, outputs: Any, y: Any, *, xp: Any) -> Any:
        # Compute the negative log-likelihood without its constant.
        top = np.float32(self.LARGEST)
        rate = xp.exp(xp.minimum(outputs, top)) * (1 + xp.maximum(outputs - top, 0))
        return xp.sum(rate - y * outputs, axis=-1)

    def prior_outputs(self, prior: Array) -> Float:
        # Return the logarithm of the ratio to the mean.
        return np.asarray(np.log(np.maximum(prior / self.scale, 1e-9)))

    def prior_targets(self, prior: Array) -> tuple[Float, Float]:
        # Return the prior, relative to the mean.
        return (prior / self.scale)[None], np.ones(1)

    def decode(self, outputs: Array) -> Float:
        # Return the predicted rates.
        return self._shaped(np.exp(np.minimum(outputs, 300.0)) * self.scale)


@dataclass(frozen=True)
class Gaussian(NumberLoss):
    """Gaussian negative log-likelihood: the network predicts a mean and a standard deviation.

    An ensemble is a mixture: its variance is the mean variance of the members plus the variance of
    their means.

    Parameters
    ----------
    mean : ndarray (t,)
        Mean of every target.
    scale : ndarray (t,)
        Scale of every target.
    flat : bool, default=True
        Whether y has one dimension.

    Examples
    --------
    >>> from promissing.networks.losses import Gaussian
    >>> Gaussian().n_outputs
    2
    """

    name: ClassVar[str] = "gaussian"
    outputs_per_target: ClassVar[int] = 2
    LIMIT: ClassVar[float] = 7.0  # Of the logarithm of the standard deviation, in units of y's.

    def row_loss(self, outputs: Any, y: Any, *, xp: Any) -> Any:
        # Compute the negative log-likelihood without its constant.
        error, spare, log_std = self._parts(outputs, y, xp=xp)
        return xp.sum(log_std + 0.5 * (error**2 + spare) * xp.exp(-2 * log_std), axis=-1)

    def encode(self, y: Array, name: str = "y") -> NDArray[np.float32]:
        # Return the standardised targets, and a variance of 0 for each: see `prior_targets`.
        encoded = super().encode(y, name)
        return np.hstack([encoded, np.zeros_like(encoded)])

    def prior(self, y: Array, weight: Array) -> Float:
        # Return the mean and the standard deviation of every target, (2 t,).
        made = NumberLoss.fitted(self, y, weight)
        return np.stack([made.mean, made.scale], axis=1).ravel()

    def pooled_prior(self, old: Float, old_weight: float, new: Float, new_weight: float) -> Float:
        # The variance of both sets of rows includes that between their means.
        mean, std = np.stack([old, new]).reshape(2, -1, 2).transpose(2, 0, 1)
        share = np.array([[old_weight], [new_weight]]) / (old_weight + new_weight)
        pooled = (share * mean).sum(axis=0)
        variance = (share * (std**2 + (mean - pooled) ** 2)).sum(axis=0)
        return np.stack([pooled, np.sqrt(variance)], axis=1).ravel()

    def prior_prediction(self, prior: Array) -> Float:
        # Return the means.
        return prior[::2]

    def prior_outputs(self, prior: Array) -> Float:
        # Return the standardised mean, and the logarithm of the standardised deviation.
        mean, std = prior.reshape(-1, 2).T
        ratio = std / np.where(self.scale > 0, self.scale, 1.0)
        return np.stack([self.standardise(mean), np.log(np.maximum(ratio, 1e-3))], axis=1).ravel()

    def prior_targets(self, prior: Array) -> tuple[Float, Float]:
        # Return the mean and variance of y: the loss of all targets at once.
        mean, std = prior.reshape(-1, 2).T
        variance = (std / np.where(self.scale > 0, self.scale, 1.0)) ** 2
        return np.hstack([self.standardise(mean), variance])[None], np.ones(1)

    def decode(self, outputs: Array) -> Float:
        # Return the predicted means.
        return self._shaped(self._split(outputs)[..., 0] * self.scale + self.mean)

    def std(self, outputs: Array) -> Float:
        # Return the standard deviation of the mixture of all members.
        return self._shaped(np.sqrt(self._moments(outputs)[1]))

    def quantiles(self, outputs: Array, levels: Sequence[float] | None) -> Float:
        # Return the quantiles of a normal distribution with the moments of the mixture.
        mean, variance = self._moments(outputs)
        found = mean[..., None] + np.sqrt(variance)[..., None] * ndtri(
            np.asarray((0.05, 0.5, 0.95) if levels is None else levels, float)
        )
        return np.asarray(found[..., 0, :] if self.flat else found)

    def _parts(self, outputs: Any, y: Any, *, xp: Any) -> tuple[Any, Any, Any]:
        """Return errors, variances of the targets and logarithms of predicted deviations."""
        outputs = self._split(outputs)
        t = outputs.shape[-2]
        log_std = xp.clip(outputs[..., 1], -self.LIMIT, self.LIMIT)
        return y[..., :t] - outputs[..., 0], y[..., t:], log_std

    def _moments(self, outputs: Array) -> tuple[Float, Float]:
        parts = self._split(outputs)
        means = parts[..., 0] * self.scale + self.mean
        stds = np.exp(np.clip(parts[..., 1], -self.LIMIT, self.LIMIT)) * self.scale
        return means.mean(axis=0), (stds**2).mean(axis=0) + means.var(axis=0)


@dataclass(frozen=True)
class MeanStd(Gaussian):
    """Squared error of the mean; the standard deviation of the error is learned beside it.

    The gradient of the mean is that of the squared error alone, and the best epoch is chosen by the
    squared error, so the mean is as accurate as with `SquaredError`. The standard deviation learns
    from the same rows. Its part of the loss is the Gaussian negative log-likelihood times a
    multiple of the variance, which gives its gradient the unit of a squared error.

    Parameters
    ----------
    mean : ndarray (t,)
        Mean of every target.
    scale : ndarray (t,)
        Scale of every target.
    flat : bool, default=True
        Whether y has one dimension.

    Examples
    --------
    >>> from promissing.networks.losses import MeanStd
    >>> MeanStd().n_outputs
    2
    """

    name: ClassVar[str] = "mean_std"
    linear_skip: ClassVar[bool] = True
    # Share of the standard deviation in the loss, and the largest variance, in units of that of y,
    # by which it is multiplied. The hidden layers serve it, too: with a share of 1, or without the
    # limit, the mean becomes less accurate.
    SHARE: ClassVar[float] = 0.1
    MOST: ClassVar[float] = 1.0

    def row_loss(self, outputs: Any, y: Any, *, xp: Any) -> Any:
        # Compute half of the squared error, and the part of the standard deviation.
        error, spare, log_std = self._parts(outputs, y, xp=xp)
        # NumPy computes no gradients.
        fixed = getattr(xp, "stop_gradient", lambda a: a)
        squares = fixed(error) ** 2 + spare
        weight = self.SHARE * fixed(xp.minimum(xp.exp(2 * log_std), self.MOST))
        scale_loss = weight * (log_std + 0.5 * squares * xp.exp(-2 * log_std))
        return xp.sum(0.5 * error**2 + scale_loss, axis=-1)

    def validation_loss(self, outputs: Any, y: Any, *, xp: Any) -> Any:
        # Compute half of the squared error.
        return 0.5 * xp.sum(self._parts(outputs, y, xp=xp)[0] ** 2, axis=-1)


@dataclass(frozen=True)
class Pinball(NumberLoss):
    """Pinball loss: the network predicts quantiles.

    `predict` returns the median, interpolated if it is not among the levels. Quantiles of one row
    are sorted, so that they never cross.

    Parameters
    ----------
    mean : ndarray (t,)
        Mean of every target.
    scale : ndarray (t,)
        Scale of every target.
    flat : bool, default=True
        Whether y has one dimension.
    levels : sequence of float, default=(0.05, 0.25, 0.5, 0.75, 0.95)
        Increasing levels between 0 and 1 that enclose 0.5.

    Examples
    --------
    >>> from promissing.networks.losses import Pinball
    >>> Pinball(levels=(0.1, 0.5, 0.9)).n_outputs
    3
    """

    levels: tuple[float, ...] = field(default=(0.05, 0.25, 0.5, 0.75, 0.95), kw_only=True)
    name: ClassVar[str] = "quantile"

    def __post_init__(self) -> None:
        levels = tuple(float(level) for level in self.levels)
        ordered = all(a < b for a, b in pairwise(levels))
        if not levels or not ordered or not 0 < levels[0] <= 0.5 <= levels[-1] < 1:
            raise ValueError(
                "`levels` must be increasing numbers between 0 and 1 that enclose 0.5, because "
                f"`predict` returns the median. Received: levels={self.levels!r}"
            )
        object.__setattr__(self, "levels", levels)

    @property
    def outputs_per_target(self) -> int:  # type: ignore[override]
        """Number of quantiles.

        Examples
        --------
        >>> from promissing.networks.losses import Pinball
        >>> Pinball().outputs_per_target
        5
        """
        return len(self.levels)

    def row_loss(self, outputs: Any, y: Any, *, xp: Any) -> Any:
        # Compute the pinball loss, summed over levels and targets.
        error = y[..., None] - self._split(outputs)
        levels = np.asarray(self.levels, np.float32)
        return xp.sum(xp.maximum(levels * error, (levels - 1) * error), axis=(-2, -1))

    def prior(self, y: Array, weight: Array) -> Float:
        # Return the weighted quantiles of every target, (t q,).
        found = []
        for column in y.reshape(len(y), -1).T:
            order = np.argsort(column, kind="stable")
            middle = np.cumsum(weight[order]) - weight[order] / 2
            found.append(np.interp(self.levels, middle / weight.sum(), column[order]))
        return np.concatenate(found)

    def prior_prediction(self, prior: Array) -> Float:
        # Return the medians.
        return np.asarray(self._interpolated(self._split(prior), [0.5])[..., 0])

    def prior_outputs(self, prior: Array) -> Float:
        # Return the standardised quantiles.
        return self.standardise(self._split(prior).T).T.ravel()

    def prior_targets(self, prior: Array) -> tuple[Float, Float]:
        # Return values between the quantiles, with the probabilities of these intervals.
        quantiles = self.prior_outputs(prior).reshape(-1, len(self.levels))
        ends = np.concatenate([quantiles[:, :1] - 0.5, quantiles, quantiles[:, -1:] + 0.5], axis=1)
        return (ends[:, :-1] + ends[:, 1:]).T / 2, np.diff([0.0, *self.levels, 1.0])

    def decode(self, outputs: Array) -> Float:
        # Return the predicted medians.
        return self._shaped(self._interpolated(self._members(outputs), [0.5])[..., 0])

    def quantiles(self, outputs: Array, levels: Sequence[float] | None) -> Float:
        # Return the quantiles, averaged over the members and interpolated between levels.
        found = self._members(outputs).mean(axis=0)
        if levels is not None:
            if not self.levels[0] <= min(levels) <= max(levels) <= self.levels[-1]:
                raise ValueError(
                    f"The model predicts quantiles from {self.levels[0]} to {self.levels[-1]}. "
                    f"Received: quantiles={list(levels)!r}. Fit it with these levels: "
                    "`loss=Pinball(levels=...)`."
                )
            found = self._interpolated(found, levels)
        return np.asarray(found[..., 0, :] if self.flat else found)

    def settings(self) -> dict[str, Any]:
        # Return the levels.
        return {"levels": list(self.levels)}

    def _members(self, outputs: Array) -> Array:
        values = self._split(outputs) * self.scale[:, None] + self.mean[:, None]
        return np.sort(values, axis=-1)

    def _interpolated(self, values: Array, levels: Sequence[float]) -> Array:
        """Values at `levels`, by linear interpolation between those at the levels of the loss."""
        place = np.interp(levels, self.levels, np.arange(len(self.levels)))
        low = np.floor(place).astype(int)
        high = np.minimum(low + 1, len(self.levels) - 1)
        return np.asarray(values[..., low] + (place - low) * (values[..., high] - values[..., low]))


# The losses for numbers by the name that `NanMLPRegressor(loss=...)` takes.
REGRESSION_LOSSES: Mapping[str, type[NumberLoss]] = {
    loss.name: loss for loss in (MeanStd, SquaredError, Poisson, Gaussian, Pinball)
}
# The losses for classes by the name in a model file.
CLASS_LOSSES: Mapping[str, type[ClassLoss]] = {
    loss.name: loss for loss in (LogLoss, CrossEntropy, MultiLabelLogLoss)
}
