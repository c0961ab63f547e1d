"""Shapley values, with unknown as absent."""

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
from promissing.encoding.columns import Float, Key
from promissing.inspection.asking import Inquiry
from promissing.inspection.blanking import Groups
from promissing.missingness import Mask, Rng

__all__ = ["ShapleyValues", "generator", "shapley"]

_MOST_EXACT = 12  # Known groups whose subsets, 4,096, are all asked for.


@dataclass(frozen=True, eq=False)
class ShapleyValues:
    """What `shapley` returns.

    Attributes
    ----------
    groups : tuple
        The names of the G groups.
    prediction : ndarray (n,)
        The prediction for the rows as they are: the probability of the class `explained`, or the
        number.
    nothing : ndarray (n,)
        The prediction with all groups unknown; `values` sum to `prediction - nothing`.
    values : ndarray (n, G)
        What each group contributes; exactly 0 where it is unknown.
    errors : ndarray (n, G)
        Standard errors of the values; 0 where they are exact.
    exact : ndarray of bool (n,)
        Whether the values of a row are exact, not sampled.
    known : ndarray of bool (n, G)
        Whether anything of the group is known in the row.
    index : ndarray (n,)
        The index of the rows.
    explained : ndarray (n,) or None
        The class whose probability is shared out: of two classes the positive one. None for a
        regressor.
    """

    groups: tuple[Key, ...]
    prediction: Float
    nothing: Float
    values: Float
    errors: Float
    exact: NDArray[np.bool_]
    known: Mask
    index: NDArray[Any]
    explained: NDArray[Any] | None = None

    def to_frame(self) -> pd.DataFrame:
        """One line for every row and group.

        Returns
        -------
        DataFrame
            With the columns `row`, `group`, `known`, `value` and `error`; for a classifier also
            `class`, whose probability is shared out.
        """
        n, size = self.values.shape
        frame = pd.DataFrame(
            {
                "row": np.repeat(self.index, size),
                "group": np.tile(np.array(self.groups, dtype=object), n),
                "known": self.known.ravel(),
                "value": self.values.ravel(),
                "error": self.errors.ravel(),
            }
        )
        if self.explained is not None:
            frame.insert(3, "class", np.repeat(self.explained, size))
        return frame


def shapley(
    model: Any,
    X: Any,
    *,
    groups: Groups = None,
    n_samples: int = 100,
    target: Any = None,
    positive: Any = None,
    random_state: Any = None,
) -> ShapleyValues:
    """Share the prediction out among features or groups, fairly.

    The Shapley value of a group is what knowing it adds to the prediction, averaged over all orders
    in which the groups may become known. The values of a row sum to its prediction minus the
    model's prediction with all groups unknown. A row in which at most 12 groups are known gets
    exact values, from all subsets of them. Beyond, orders are drawn, each together with its
    reverse, which makes the errors smaller; the values sum to the same.

    Parameters
    ----------
    model, X, groups, target, positive
        As in `what_if`.
    n_samples : int, default=100
        How many orders are drawn for a row with more than 12 known groups: an even number, at
        least 4. Each costs as many predictions as there are groups.
    random_state : int, numpy Generator, RandomState or None, default=None
        The seed of the orders that are drawn.

    Returns
    -------
    ShapleyValues

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.ensemble import HistGradientBoostingRegressor
    >>> from promissing.inspection import shapley
    >>> X = np.random.default_rng(0).normal(size=(300, 3))
    >>> model = HistGradientBoostingRegressor(max_iter=20).fit(X, X[:, 0] + X[:, 1])
    >>> result = shapley(model, X[:5])
    >>> gap = result.values.sum(axis=1) - (result.prediction - result.nothing)
    >>> bool(np.abs(gap).max() < 1e-12)
    True
    """
    good = is_whole(n_samples) and n_samples >= 4 and n_samples % 2 == 0
    expect(good, "n_samples", "an even number >= 4", n_samples)
    rng = generator(random_state)
    inquiry = Inquiry(model, X, groups)
    known, columns = inquiry.blanks.known, inquiry.target_columns(target, positive)
    prediction = np.take_along_axis(inquiry.base, columns[:, None], axis=1)[:, 0]
    exact = known.sum(axis=1) <= _MOST_EXACT
    orders: dict[int, NDArray[np.intp]] = {}

    def pieces() -> Iterator[tuple[int, Mask]]:
        for i, here in enumerate(known):
            if exact[i]:
                sets = ~_present(int(here.sum()))[:-1]
            else:
                orders[i] = _antithetic(int(here.sum()), n_samples, rng)
                sets = _prefixes(orders[i])
            gone = np.zeros((len(sets), len(here)), bool)
            gone[:, here] = sets
            yield i, gone

    values, errors, nothing = np.zeros(known.shape), np.zeros(known.shape), prediction.copy()
    for i, out in enumerate(inquiry.answers(pieces())):
        here, worth = known[i], out[:, columns[i]]
        if not here.any():
            continue
        nothing[i] = worth[0]
        if exact[i]:
            values[i, here] = np.append(worth, prediction[i]) @ _weights(int(here.sum()))
        else:
            each = _contributions(orders.pop(i), prediction[i], worth)
            values[i, here] = each.mean(axis=0)
            errors[i, here] = each.std(axis=0, ddof=1) / np.sqrt(len(each))
    return ShapleyValues(
        groups=inquiry.blanks.names,
        prediction=prediction,
        nothing=nothing,
        values=values,
        errors=errors,
        exact=exact,
        known=known,
        index=inquiry.blanks.index,
        explained=inquiry.explained(columns),
    )


def generator(random_state: Any) -> Rng:
    """A generator from whatever scikit-learn or NumPy calls a random state."""
    if isinstance(random_state, np.random.RandomState):
        random_state = random_state.randint(2**31 - 1)
    return np.random.default_rng(random_state)


@cache
def _present(k: int) -> Mask:
    """All subsets of k groups (2^k, k), from none to all."""
    return (np.arange(2**k)[:, None] >> np.arange(k) & 1).astype(bool)


@cache
def _weights(k: int) -> Float:
    """What turns the worths of all subsets into Shapley values: (2^k, k).

    A subset of size s counts 1 / (s C(k, s)) for its members and -1 / ((k - s) C(k, s)) for the
    others.
    """
    present = _present(k)
    size = present.sum(axis=1, keepdims=True)
    of_size = np.array([comb(k, s) for s in range(k + 1)])[size]
    rivals = np.where(present, size, k - size)
    return np.asarray(np.where(present, 1.0, -1.0) / (rivals * of_size))


def _antithetic(k: int, n_samples: int, rng: Rng) -> NDArray[np.intp]:
    """Orders (n_samples, k) of k groups: the second half are the first in reverse."""
    first = rng.permuted(np.tile(np.arange(k), (n_samples // 2, 1)), axis=1)
    return np.concatenate([first, first[:, ::-1]])


def _prefixes(orders: NDArray[np.intp]) -> Mask:
    """The sets (1 + m (k - 1), k) that must be unknown: all, then each order's 1, ..., k - 1."""
    m, k = orders.shape
    places = orders.argsort(axis=1)[:, None, :]
    gone = places < np.arange(1, k)[:, None]
    return np.concatenate([np.ones((1, k), bool), gone.reshape(m * (k - 1), k)])


def _contributions(orders: NDArray[np.intp], complete: float, worth: Float) -> Float:
    """What each group's loss costs (m / 2, k), an order and its reverse averaged."""
    m, k = orders.shape
    path = np.empty((m, k + 1))
    path[:, 0], path[:, 1:k], path[:, k] = complete, worth[1:].reshape(m, k - 1), worth[0]
    costs = np.empty((m, k))
    np.put_along_axis(costs, orders, -np.diff(path, axis=1), axis=1)
    return np.asarray(costs.reshape(2, m // 2, k).mean(axis=0))
