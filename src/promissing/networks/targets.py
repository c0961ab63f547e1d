"""What is to be predicted: from y to what a network is trained on, and from its outputs back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import _check_y, column_or_1d

from promissing.encoding.columns import moments

__all__ = ["Classes", "Numbers", "check_classes", "check_numbers", "make_classes", "make_numbers"]

Array = NDArray[Any]
# A target that varies by less than this part of its size is constant but for rounding.
ROUNDING = 64 * np.finfo(float).eps


@dataclass(frozen=True, eq=False)
class Classes:
    """Class labels, or with `multilabel` any number of labels out of several.

    `class_weights` (K,) multiply the weights of the rows of each class.
    """

    labels: Array
    multilabel: bool = False
    class_weights: Array | None = None

    @property
    def loss(self) -> str:
        """The name of the network's loss."""
        return "softmax" if not self.multilabel and len(self.labels) > 2 else "log"

    @property
    def n_outputs(self) -> int:
        """The number of outputs of the network: one is enough for two classes."""
        return 1 if not self.multilabel and len(self.labels) == 2 else len(self.labels)

    def encode(self, y: Array, name: str = "y") -> NDArray[np.float32]:
        """What the loss takes: 0 or 1 (n, k), or the number of the class (n, 1)."""
        if self.multilabel:
            if y.ndim != 2 or y.shape[1] != len(self.labels):
                raise ValueError(
                    f"`{name}` must have a column for each of the {len(self.labels)} labels the "
                    f"model knows. Received: shape {y.shape}."
                )
            return np.asarray(y, np.float32)
        if y.ndim == 2:
            raise ValueError(f"`{name}` has {y.shape[1]} labels a row, and the model knows one.")
        unknown = sorted(set(np.unique(y).tolist()) - set(self.labels.tolist()), key=str)
        if unknown:
            raise ValueError(
                f"`{name}` has the classes {unknown}, which are not among the classes "
                f"{self.labels.tolist()} the model knows."
            )
        return np.searchsorted(self.labels, y).astype(np.float32)[:, None]

    def row_weights(self, y: Array, weight: Array) -> Array:
        """The weights of rows, times those of their classes."""
        if self.class_weights is None:
            return weight
        return np.asarray(weight * self.class_weights[np.searchsorted(self.labels, y)])

    def prior(self, y: Array, weight: Array) -> NDArray[np.float64]:
        """The weighted share of every class, or of every label."""
        hit = y > 0 if self.multilabel else y[:, None] == self.labels
        return np.asarray(np.average(hit, axis=0, weights=weight))

    def prior_outputs(self, prior: Array) -> NDArray[np.float64]:
        """The outputs (k,) that mean the prior."""
        share = np.clip(prior, 1e-6, 1 - 1e-6)
        if self.loss == "softmax":
            return np.asarray(np.log(share))
        odds = np.log(share / (1 - share))
        return np.asarray(odds if self.multilabel else odds[1:])

    def prior_targets(self, prior: Array) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Targets (m, k) as `encode` makes them, and shares (m,), that together are the prior."""
        if self.loss == "softmax":
            return np.arange(len(prior), dtype=np.float64)[:, None], np.asarray(prior)
        return np.asarray(prior if self.multilabel else prior[1:])[None], np.ones(1)

    def proba(self, outputs: Array) -> NDArray[np.float64]:
        """Probabilities (..., n, K) from outputs (..., n, k)."""
        if self.loss == "softmax":
            e = np.exp(outputs - outputs.max(axis=-1, keepdims=True))
            return np.asarray(e / e.sum(axis=-1, keepdims=True))
        p = 0.5 * np.tanh(0.5 * outputs) + 0.5
        return p if self.multilabel else np.concatenate([1 - p, p], axis=-1)

    def decide(self, proba: Array) -> Array:
        """The most probable label of every row, or the labels more probable than not."""
        if self.multilabel:
            return (proba > 0.5).astype(int)
        return np.asarray(self.labels[proba.argmax(axis=-1)])


@dataclass(frozen=True, eq=False)
class Numbers:
    """Numbers, which the network sees less `mean` and over `scale`.

    These are the weighted mean and deviation, or those of what straight lines leave. The scale of a
    constant target is 0: its prediction is the mean, whatever the network gives.
    """

    mean: NDArray[np.float64]
    scale: NDArray[np.float64]
    flat: bool

    loss = "squared"

    @property
    def n_outputs(self) -> int:
        """The number of targets."""
        return len(self.mean)

    def encode(self, y: Array, name: str = "y") -> NDArray[np.float32]:
        """The standardised targets (n, k)."""
        if (y.ndim == 1) != self.flat or (y.ndim == 2 and y.shape[1] != len(self.mean)):
            wanted = "(n,)" if self.flat else f"(n, {len(self.mean)})"
            raise ValueError(f"`{name}` must have the shape {wanted}. Received: {y.shape}.")
        return self.standardise(y.reshape(len(y), -1)).astype(np.float32)

    def standardise(self, y: Array) -> NDArray[np.float64]:
        """Targets (..., k) less the mean and over the scale; 0 where that is 0."""
        varies = self.scale > 0
        return np.asarray(np.where(varies, (y - self.mean) / np.where(varies, self.scale, 1.0), 0))

    def resumed(self, y: Array, weight: Array) -> Numbers:
        """The same, with a scale for targets that were constant so far and no longer are."""
        if self.scale.all():
            return self
        scale = make_numbers(y, weight).scale
        return replace(self, scale=np.where(self.scale > 0, self.scale, scale))

    def row_weights(self, y: Array, weight: Array) -> Array:
        """The weights of rows."""
        return weight

    def prior(self, y: Array, weight: Array) -> NDArray[np.float64]:
        """The weighted mean of every target."""
        return np.asarray(np.average(y.reshape(len(y), -1), axis=0, weights=weight))

    def prior_outputs(self, prior: Array) -> NDArray[np.float64]:
        """The outputs (k,) that mean the prior."""
        return self.standardise(prior)

    def prior_targets(self, prior: Array) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Targets (m, k) as `encode` makes them, and shares (m,), that together are the prior."""
        return self.prior_outputs(prior)[None], np.ones(1)

    def decode(self, outputs: Array) -> NDArray[np.float64]:
        """Predictions in the units of y, (..., n) or (..., n, k), from outputs (..., n, k)."""
        values = outputs * self.scale + self.mean
        return np.asarray(values[..., 0] if self.flat else values)


def check_classes(y: Any, estimator: Any) -> Array:
    """Labels (n,), or (n, L) of 0 and 1 where a row may have several; bad ones are refused."""
    labels = _plain_labels(_without_gaps(y, "labels"))
    # As NumPy takes a list: text as text, and not as objects.
    y = np.asarray(y) if isinstance(y, list | tuple) and labels.dtype == object else labels
    y = _check_y(y, multi_output=True, y_numeric=False, estimator=estimator)
    check_classification_targets(y)
    kind = type_of_target(y, input_name="y")
    if kind == "multilabel-indicator":
        y = np.asarray(y.toarray() if hasattr(y, "toarray") else y)
        if not np.isin(y, (0, 1)).all():  # scikit-learn takes any two numbers.
            raise ValueError(
                f"`y` has {y.shape[1]} columns, one for each label, and must hold 1 where a row "
                f"has the label and 0 where not. Received: {np.unique(y).tolist()}."
            )
        return np.asarray(y)
    if kind.endswith("multioutput"):
        raise ValueError(
            f"`y` has {np.shape(y)[1]} columns of several classes each. Fit one model per column, "
            "or use sklearn.multioutput.MultiOutputClassifier."
        )
    return np.asarray(column_or_1d(y, warn=True))


def check_numbers(y: Any, estimator: Any) -> NDArray[np.float64]:
    """Targets (n,) or (n, k) as float64; gaps, inf, dates and text are refused.

    Text is refused also where it reads as numbers, as in a column of X that holds numbers.
    """
    y = _without_gaps(y, "targets")
    _refuse_text(y)
    if isinstance(y, np.ndarray) and y.dtype.kind in "mM":
        raise ValueError(
            "`y` holds dates or durations, and a regressor learns numbers: turn them into numbers "
            "of days or seconds first."
        )
    y = np.asarray(_check_y(y, multi_output=True, y_numeric=True, estimator=estimator), np.float64)
    if y.ndim == 2 and y.shape[1] == 1:
        y = column_or_1d(y, warn=True)
    return np.asarray(y)


def make_classes(
    y: Array, weight: Array, *, declared: Any, class_weight: Any, estimator: str
) -> Classes:
    """The classes in y, or those declared, and their weights."""
    multilabel = y.ndim == 2
    if multilabel:
        labels = np.arange(y.shape[1])
    else:
        labels = np.unique(y) if declared is None else np.unique(declared)
    if len(labels) < 2 and not multilabel:
        raise ValueError(
            f"{estimator} needs at least two classes to tell apart; y holds the one class "
            f"{labels.tolist()[0]!r} only."
        )
    if class_weight is None:
        return Classes(labels, multilabel)
    if multilabel:
        raise ValueError("`class_weight` is for one label a row, and y has several.")
    balance = isinstance(class_weight, str) and class_weight == "balanced"
    if not (balance or isinstance(class_weight, Mapping)):
        raise ValueError(f"`class_weight` must be a dict or 'balanced'. Received: {class_weight!r}")
    if balance:
        totals = np.array([weight[y == label].sum() for label in labels])
        balanced = np.divide(weight.sum() / len(labels), totals, where=totals > 0, out=totals)
        return Classes(labels, class_weights=balanced)
    unknown = [key for key in class_weight if key not in labels.tolist()]
    if unknown:
        raise ValueError(f"`class_weight` names classes that y does not have: {unknown}.")
    weights = np.array([float(class_weight.get(label, 1.0)) for label in labels.tolist()])
    if not (np.isfinite(weights) & (weights >= 0)).all() or not weights.any():
        raise ValueError(
            f"`class_weight` must not be negative, infinite or all zero. Received: {class_weight}"
        )
    return Classes(labels, class_weights=weights)


def make_numbers(y: NDArray[np.float64], weight: Array) -> Numbers:
    """The mean and deviation of every target."""
    columns = y.reshape(len(y), -1)
    mean, scale = np.array([moments(column, weight) for column in columns.T]).T
    size = np.abs(columns).max(axis=0)
    with np.errstate(over="ignore"):
        constant = np.ptp(columns, axis=0) <= ROUNDING * size
    return Numbers(mean, np.where(constant, 0.0, scale), flat=y.ndim == 1)


def _without_gaps(y: Any, what: str) -> Any:
    """Labels or targets of which none is missing, in any spelling; a list as an array of objects.

    The gaps of a masked array are those of its mask.
    """
    if hasattr(y, "to_numpy"):  # pandas and polars; their NA would not compare.
        y = y.to_numpy()
    if isinstance(y, list | tuple):
        y = np.asarray(y, dtype=object)
    elif isinstance(y, np.ma.MaskedArray):
        cells = np.ma.getdata(y).astype(object)
        cells[np.ma.getmaskarray(y)] = None
        y = cells
    if isinstance(y, np.ndarray) and y.ndim and y.dtype.kind in "Of":
        missing = np.flatnonzero(pd.isna(y).reshape(len(y), -1).any(axis=1))
        if len(missing):
            raise ValueError(
                f"Input y contains NaN: {len(missing)} {what} are missing, the first in row "
                f"{missing[0]}. A row without one cannot be learnt from: leave it out."
            )
    return y


def _refuse_text(y: Any) -> None:
    """Refuse targets of a regressor that are text."""
    if not isinstance(y, np.ndarray) or y.dtype.kind not in "OSUT":
        return
    for cell in np.ravel(y).tolist():
        if isinstance(cell, str | bytes):
            raise ValueError(
                f"`y` must hold numbers, and holds the text {cell!r:.60}. Correct it or leave the "
                "row out; turn text into numbers with `pandas.to_numeric(y)`."
            )


def _plain_labels(y: Any) -> Any:
    """Labels of one type; numbers and booleans no longer as objects."""
    if not (isinstance(y, np.ndarray) and y.dtype == object):
        return y
    kinds = {type(label) for label in np.ravel(y)}
    if len(kinds) > 1 and any(issubclass(kind, str) for kind in kinds):
        raise ValueError(f"`y` mixes text with other types: {sorted(k.__name__ for k in kinds)}.")
    if any(issubclass(kind, str) for kind in kinds):
        return y
    return pd.DataFrame(y).infer_objects().to_numpy().reshape(y.shape)
