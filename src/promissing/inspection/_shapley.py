"""Shapley values in which an absent feature is a missing value."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from math import comb
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from promissing._validation import expect, is_whole
from promissing.inspection.masked import (
    Groups,
    MaskedPredictions,
    long_frame,
    random_generator,
)

__all__ = ["ShapleyValues", "shapley"]

Float = NDArray[np.float64]
Mask = NDArray[np.bool_]

_MAX_EXACT = 12  # Known groups whose subsets, up to 4,096, are all predicted.


@dataclass(frozen=True, eq=False, repr=False)
class ShapleyValues:
    """Shapley values of predictions, as returned by `shapley`.

    Parameters
    ----------
    groups : tuple
        The names of the G groups.
    prediction : ndarray of shape (n,)
        The prediction for the rows as they are: the probability of the class `explained`, or the
        predicted number.
    nothing : ndarray of shape (n,)
        The prediction with all groups missing. The values of a row sum to `prediction - nothing`.
    values : ndarray of shape (n, G)
        The contribution of each group; exactly 0 where it is missing.
    errors : ndarray of shape (n, G)
        The standard errors of the values; 0 where they are exact.
    exact : ndarray of bool of shape (n,)
        Whether the values of a row are exact, not sampled.
    known : ndarray of bool of shape (n, G)
        Whether any value of the group is known in the row.
    index : ndarray of shape (n,)
        The index of the rows.
    explained : ndarray of shape (n,) or None, default=None
        The class whose probability is explained in every row. With two classes it is the positive
        class. None for a regressor.

    See Also
    --------
    importance : Averages the values over the rows.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> from promissing.inspection import shapley
    >>> X = np.arange(10.0)[:, None]
    >>> model = DecisionTreeRegressor(max_depth=1).fit(X, X[:, 0] > 3)
    >>> shapley(model, X[:2])
    ShapleyValues(2 rows, 1 groups)
    """

    groups: tuple[Any, ...]
    prediction: Float
    nothing: Float
    values: Float
    errors: Float
    exact: Mask
    known: Mask
    index: NDArray[Any]
    explained: NDArray[Any] | None = None

    def __repr__(self) -> str:
        return f"ShapleyValues({len(self.index)} rows, {len(self.groups)} groups)"

    def to_frame(self) -> pd.DataFrame:
        """Return the values as a table with one line for every row and group.

        Returns
        -------
        DataFrame
            The columns `row`, `group`, `known`, `value` and `error`. For a classifier there is
            also `class`, the class whose probability is explained.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.tree import DecisionTreeRegressor
        >>> from promissing.inspection import shapley
        >>> X = np.arange(10.0)[:, None]
        >>> model = DecisionTreeRegressor(max_depth=1).fit(X, X[:, 0] > 3)
        >>> shapley(model, [[2.0]]).to_frame()
           row  group  known  value  error
        0    0      0   True   -1.0    0.0
        """
        return long_frame(self, {"value": self.values, "error": self.errors})


def shapley(
    model: Any,
    X: Any,
    groups: Groups = None,
    *,
    n_samples: int = 100,
    target: Any = None,
    positive: Any = None,
    random_state: Any = None,
) -> ShapleyValues:
    """Compute Shapley values of features or groups of features.

    The Shapley value of a group is the change of the prediction when the group becomes known,
    averaged over all orders in which the groups may become known. The values of a row sum to its
    prediction minus the prediction with all groups missing. They are exact in a row with at most
    12 known groups, from all subsets of these. In other rows, random orders are drawn, each
    together with its reverse, which reduces the errors.

    Parameters
    ----------
    model : fitted estimator
        Any estimator that predicts with NaN in its input, as in `what_if`.
    X : DataFrame, array or list of rows of shape (n, p)
        The rows to explain. They are never modified.
    groups : mapping of str to columns, "modalities" or None, default=None
        The columns that are made missing together, as in `what_if`.
    n_samples : int, default=100
        The number of orders drawn for a row with more than 12 known groups: an even number, at
        least 4. Each order takes as many predictions as there are groups.
    target : label or int, default=None
        The class or output that is explained, as in `what_if`.
    positive : label, default=None
        The positive class of two, as in `what_if`.
    random_state : int, numpy Generator, RandomState or None, default=None
        The seed of the random orders.

    Returns
    -------
    ShapleyValues
        The value of every group in every row, with standard errors.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> from promissing.inspection import shapley
    >>> X = np.random.default_rng(0).normal(size=(300, 3))
    >>> model = DecisionTreeRegressor(random_state=0).fit(X, X[:, 0] + X[:, 1])
    >>> result = shapley(model, X[:5])
    >>> bool(np.allclose(result.values.sum(axis=1), result.prediction - result.nothing))
    True
    """
    even = is_whole(n_samples) and n_samples >= 4 and n_samples % 2 == 0
    expect(even, "n_samples", "an even number >= 4", n_samples)
    rng = random_generator(random_state)
    predictions = MaskedPredictions(model, X, groups)
    table, columns = predictions.table, predictions.target_columns(target, positive)
    prediction = predictions.outputs[np.arange(len(columns)), columns]
    exact = table.known.sum(axis=1) <= _MAX_EXACT
    orders: dict[int, NDArray[np.intp]] = {}

    def masks() -> Iterator[tuple[int, Mask]]:
        for i, known in enumerate(table.known):
            if exact[i]:
                missing = ~_subsets(int(known.sum()))[:-1]
            else:
                orders[i] = _antithetic_orders(int(known.sum()), n_samples, rng)
                missing = _prefixes(orders[i])
            mask = np.zeros((len(missing), len(known)), bool)
            mask[:, known] = missing
            yield i, mask

    values, errors = np.zeros(table.known.shape), np.zeros(table.known.shape)
    nothing = prediction.copy()
    for i, _, out in predictions.without(masks()):
        known, worth = table.known[i], out[:, columns[i]]
        if not known.any():
            continue
        nothing[i] = worth[0]
        if exact[i]:
            values[i, known] = np.append(worth, prediction[i]) @ _weights(int(known.sum()))
        else:
            samples = _contributions(orders.pop(i), prediction[i], worth)
            values[i, known] = samples.mean(axis=0)
            errors[i, known] = samples.std(axis=0, ddof=1) / np.sqrt(len(samples))
    return ShapleyValues(
        groups=table.groups,
        prediction=prediction,
        nothing=nothing,
        values=values,
        errors=errors,
        exact=exact,
        known=table.known,
        index=table.index,
        explained=predictions.explained(columns),
    )


@cache
def _subsets(k: int) -> Mask:
    """Return all subsets of k groups (2^k, k), from the empty to the full one."""
    return (np.arange(2**k)[:, None] >> np.arange(k) & 1).astype(bool)


@cache
def _weights(k: int) -> Float:
    """Return the matrix (2^k, k) from the predictions of all subsets to Shapley values.

    A subset of size s counts 1 / (s C(k, s)) for its members and -1 / ((k - s) C(k, s)) for the
    others.
    """
    subsets = _subsets(k)
    size = subsets.sum(axis=1, keepdims=True)
    of_size = np.array([comb(k, s) for s in range(k + 1)])[size]
    rivals = np.where(subsets, size, k - size)
    return np.asarray(np.where(subsets, 1.0, -1.0) / (rivals * of_size))


def _antithetic_orders(k: int, n_samples: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """Draw orders (n_samples, k) of k groups; the second half is the first in reverse."""
    first = rng.permuted(np.tile(np.arange(k), (n_samples // 2, 1)), axis=1)
    return np.concatenate([first, first[:, ::-1]])


def _prefixes(orders: NDArray[np.intp]) -> Mask:
    """Return the masks (1 + m (k - 1), k): all groups, then the first 1, ..., k - 1 of each order.

    An order is the one in which groups are made missing.
    """
    m, k = orders.shape
    places = orders.argsort(axis=1)[:, None, :]
    missing = places < np.arange(1, k)[:, None]
    return np.concatenate([np.ones((1, k), bool), missing.reshape(m * (k - 1), k)])


def _contributions(orders: NDArray[np.intp], complete: float, worth: Float) -> Float:
    """Return the contributions (m / 2, k), the mean of each order and its reverse."""
    m, k = orders.shape
    path = np.empty((m, k + 1))
    path[:, 0], path[:, 1:k], path[:, k] = complete, worth[1:].reshape(m, k - 1), worth[0]
    costs = np.empty((m, k))
    np.put_along_axis(costs, orders, -np.diff(path, axis=1), axis=1)
    return np.asarray(costs.reshape(2, m // 2, k).mean(axis=0))
