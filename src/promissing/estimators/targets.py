"""Validation of targets, class weights and sample weights."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import _check_y, column_or_1d

__all__ = ["check_classes", "check_numbers", "class_weights", "find_labels", "relative_weights"]

Array = NDArray[Any]
# The smallest ratio of two weights that single precision can represent.
LEAST_RATIO = 1e-30


def check_classes(y: Any, estimator: Any) -> Array:
    """Return labels (n,), or (n, L) of 0 and 1 if a row may have several; refuse bad ones."""
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
                f"has the label and 0 where it has not. Received: {np.unique(y).tolist()}."
            )
        return np.asarray(y)
    if kind.endswith("multioutput"):
        raise ValueError(
            f"`y` has {np.shape(y)[1]} columns of several classes each. Fit one model per column, "
            "or use sklearn.multioutput.MultiOutputClassifier."
        )
    return np.asarray(column_or_1d(y, warn=True))


def check_numbers(y: Any, estimator: Any) -> NDArray[np.float64]:
    """Return targets (n,) or (n, k) as float64; refuse gaps, infinities, dates and text.

    Text that reads as numbers is refused too, as in a column of X that holds numbers.
    """
    y = _without_gaps(y, "targets")
    if isinstance(y, np.ndarray) and y.dtype.kind in "OSUT":
        for cell in np.ravel(y).tolist():
            if isinstance(cell, str | bytes):
                raise ValueError(
                    f"`y` must hold numbers, and holds the text {cell!r:.60}. Correct it or leave "
                    "the row out; turn text into numbers with `pandas.to_numeric(y)`."
                )
    if isinstance(y, np.ndarray) and y.dtype.kind in "mM":
        raise ValueError(
            "`y` holds dates or durations, but a regressor predicts numbers. Turn them into "
            "numbers of days or seconds first."
        )
    y = np.asarray(_check_y(y, multi_output=True, y_numeric=True, estimator=estimator), np.float64)
    if y.ndim == 2 and y.shape[1] == 1:
        y = column_or_1d(y, warn=True)
    return np.asarray(y)


def find_labels(y: Array, declared: Any, estimator: str) -> Array:
    """Return the sorted labels of y, or the declared ones; at least two."""
    if y.ndim == 2:
        return np.arange(y.shape[1])
    labels = np.unique(y if declared is None else declared)
    if len(labels) < 2:
        raise ValueError(
            f"{estimator} needs at least two classes; y holds only one class, "
            f"{labels.tolist()[0]!r}."
        )
    return labels


def class_weights(asked: Any, y: Array, weight: Array, labels: Array) -> Array | None:
    """Return the weight of each class, given the parameter `class_weight`."""
    if asked is None:
        return None
    if y.ndim == 2:
        raise ValueError("`class_weight` is for one label per row, but y has several.")
    if isinstance(asked, str) and asked == "balanced":
        totals = np.array([weight[y == label].sum() for label in labels])
        return np.asarray(
            np.divide(weight.sum() / len(labels), totals, where=totals > 0, out=totals)
        )
    if not isinstance(asked, Mapping):
        raise ValueError(f"`class_weight` must be a dict or 'balanced'. Received: {asked!r}")
    unknown = [key for key in asked if key not in labels.tolist()]
    if unknown:
        raise ValueError(f"`class_weight` names classes that y does not have: {unknown}.")
    weights = np.array([float(asked.get(label, 1.0)) for label in labels.tolist()])
    if not (np.isfinite(weights) & (weights >= 0)).all() or not weights.any():
        raise ValueError(
            f"`class_weight` must not be negative, infinite or all zero. Received: {asked}"
        )
    return weights


def relative_weights(weight: Array) -> Array:
    """Return weights in units of the mean of those above zero: only their ratios matter.

    They are rounded to single precision, in which they are used. Weights that differ by a common
    factor then give the same model, bit for bit. All may be zero.
    """
    most = weight.max()
    if not most > 0:
        return weight
    ratio = weight / most
    least = ratio[weight > 0].min()
    if least < LEAST_RATIO:
        raise ValueError(
            f"The smallest weight above zero must be at least {LEAST_RATIO} times the largest. "
            f"`sample_weight`, times `class_weight` if there is one, has a ratio of {least:.3g}."
        )
    ratio = ratio.astype(np.float32).astype(np.float64)
    return np.asarray(ratio / ratio[ratio > 0].mean())


def _without_gaps(y: Any, what: str) -> Any:
    """Return y with its list or masked array as an array of objects; refuse missing targets."""
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
                f"{missing[0]}. Leave rows without a target out."
            )
    return y


def _plain_labels(y: Any) -> Any:
    """Return labels of one type; numbers and booleans are no longer objects."""
    if not (isinstance(y, np.ndarray) and y.dtype == object):
        return y
    kinds = {type(label) for label in np.ravel(y)}
    if len(kinds) > 1 and any(issubclass(kind, str) for kind in kinds):
        raise ValueError(f"`y` mixes text with other types: {sorted(k.__name__ for k in kinds)}.")
    if any(issubclass(kind, str) for kind in kinds):
        return y
    return pd.DataFrame(y).infer_objects().to_numpy().reshape(y.shape)
