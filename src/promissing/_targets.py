"""What is to be predicted: from y to what a network is trained on, and from its outputs back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import _check_y, column_or_1d

__all__ = ["Classes", "Numbers", "check_classes", "check_numbers"]

Array = NDArray[Any]


@dataclass(frozen=True)
class Classes:
    """Class labels, or with `multilabel` any number of labels out of several."""

    labels: Array
    multilabel: bool = False

    @property
    def loss(self) -> str:
        """The name of the network's loss."""
        return "softmax" if not self.multilabel and len(self.labels) > 2 else "log"

    @property
    def n_outputs(self) -> int:
        """The number of outputs of the network: one is enough for two classes."""
        return 1 if not self.multilabel and len(self.labels) == 2 else len(self.labels)

    def encode(self, y: Array) -> NDArray[np.float32]:
        """What the loss takes: 0 or 1 (n, k), or the number of the class (n, 1)."""
        if self.multilabel:
            return np.asarray(y, np.float32)
        unknown = sorted(set(np.unique(y).tolist()) - set(self.labels.tolist()), key=str)
        if unknown:
            raise ValueError(
                f"`y` has the classes {unknown}, which are not among the classes "
                f"{self.labels.tolist()} the model knows."
            )
        return np.searchsorted(self.labels, y).astype(np.float32)[:, None]

    def prior(self, y: Array, weight: Array) -> NDArray[np.float64]:
        """The weighted share of every class, or of every label."""
        hit = y > 0 if self.multilabel else y[:, None] == self.labels
        return np.asarray(np.average(hit, axis=0, weights=weight))

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


@dataclass(frozen=True)
class Numbers:
    """Numbers, which the network sees standardised with weighted mean and deviation."""

    mean: NDArray[np.float64]
    scale: NDArray[np.float64]
    flat: bool

    loss = "squared"

    @property
    def n_outputs(self) -> int:
        """The number of targets."""
        return len(self.mean)

    def encode(self, y: Array) -> NDArray[np.float32]:
        """The standardised targets (n, k)."""
        return ((y.reshape(len(y), -1) - self.mean) / self.scale).astype(np.float32)

    def prior(self, y: Array, weight: Array) -> NDArray[np.float64]:
        """The weighted mean of every target."""
        return self.mean

    def decode(self, outputs: Array) -> NDArray[np.float64]:
        """Predictions in the units of y, (..., n) or (..., n, k), from outputs (..., n, k)."""
        values = outputs * self.scale + self.mean
        return np.asarray(values[..., 0] if self.flat else values)


def check_classes(y: Any, estimator: Any) -> tuple[Array, bool]:
    """Labels as an array, and whether each row may have several; bad ones are refused."""
    y = _without_gaps(y, estimator)
    check_classification_targets(y)
    kind = type_of_target(y, input_name="y")
    if kind == "multilabel-indicator":
        return np.asarray(y.toarray() if hasattr(y, "toarray") else y), True
    if kind.endswith("multioutput"):
        raise ValueError(
            f"`y` has {np.shape(y)[1]} columns of several classes each. Fit one model per column, "
            "or use sklearn.multioutput.MultiOutputClassifier."
        )
    return np.asarray(column_or_1d(y, warn=True)), False


def check_numbers(y: Any, estimator: Any) -> NDArray[np.float64]:
    """Targets (n,) or (n, k) as float64; NaN, inf and text are refused."""
    y = _check_y(y, multi_output=True, y_numeric=True, estimator=estimator)
    if y.ndim == 2 and y.shape[1] == 1:
        y = column_or_1d(y, warn=True)
    return np.asarray(y, np.float64)


def _without_gaps(y: Any, estimator: Any) -> Any:
    """Labels of which none is missing, in any spelling."""
    if hasattr(y, "to_numpy"):  # pandas and polars; their NA would not compare.
        y = y.to_numpy()
    y = _check_y(y, multi_output=True, y_numeric=False, estimator=estimator)
    if isinstance(y, np.ndarray) and y.dtype == object:
        missing = np.flatnonzero(pd.isna(y).reshape(len(y), -1).any(axis=1))
        if len(missing):
            raise ValueError(
                f"Input y contains NaN: {len(missing)} labels are missing, the first in row "
                f"{missing[0]}. A row without a label cannot be learnt from: leave it out."
            )
        kinds = {type(label) for label in np.ravel(y)}
        if len(kinds) > 1 and str in kinds:
            raise ValueError(
                f"`y` mixes text with other types: {sorted(k.__name__ for k in kinds)}."
            )
    return y
