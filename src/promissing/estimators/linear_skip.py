"""Straight lines: what a linear model tells of a target with long tails; a network learns the rest.

Sums and multiples of columns that go on far out are hard for a network of bounded columns and easy
for a straight line. Where nothing is far out, a network learns them as well as anything else.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from promissing.encoding.columns import NEAR, Float

__all__ = ["Lines", "draw_lines"]

PENALTIES = np.logspace(-5, 2, 15)  # Beside columns of variance 1.
MOST_LEFT = 1 / 3  # Of the variance: if lines leave more, what is left is no easier than the whole.
FARTHER = 0.01  # Of the variance: what lines have to lose if they end where networks do.
LEAST = 1e-3  # What is left counts as at least so much of the target's deviation.
MOST_COLUMNS = 400  # The work grows with their square, to seconds.
_BLOCK = 4_096


class Lines(NamedTuple):
    """A linear model of k targets, in units of what it leaves.

    ``y = mean + scale * (pruned @ weights + rest)``; `rest` has a deviation of about 1, and
    `pruned` is what the network's `prune` makes of a table.
    """

    weights: Float  # (q, k)
    mean: Float  # (k,)
    scale: Float  # (k,)


def draw_lines(
    table: NDArray[Any], y: Float, weight: Float, *, encoder: Any, network: Any, target: Any
) -> Lines | None:
    """Lines through the encoded table (n, p) for those of the targets y (n, k) that need them.

    They explain two thirds of the variance, of rows left out one by one: a line that only remembers
    rows, or is led astray by those far out, does not do. And they explain less if numbers end at
    three deviations. Any other target has no line and keeps its mean and scale. None if no target
    has a line.
    """
    columns, units = encoder._straightest()
    if len(columns) > MOST_COLUMNS:
        return None
    Z = table[:, columns] * units.astype(table.dtype)
    if not (np.abs(Z) > NEAR).any():
        return None
    y = target.standardise(y)  # Their variances are 1, or 0 if they are constant.
    coefs, centre, errors = _ridge(Z, y, weight)
    good = errors <= MOST_LEFT
    if good.any():
        good &= _ridge(np.clip(Z, -NEAR, NEAR), y, weight)[2] >= errors + FARTHER
    if not good.any():
        return None
    left = np.where(good, np.maximum(np.sqrt(errors), LEAST), 1.0)
    coefs = np.where(good, coefs, 0.0)
    weights = np.zeros((network.n_columns + network.n_extras, network.n_outputs))
    weights[columns] = coefs * units[:, None]
    # What is missing is an average one, whatever else it tells; so nothing known is the mean.
    average = centre[:, None] * coefs
    owner = encoder.groups_[columns] * (network.compensation == "feature")
    np.add.at(weights, network.n_columns + owner, average)
    return Lines(
        weights / left, target.mean - target.scale * average.sum(axis=0), target.scale * left
    )


def _ridge(Z: NDArray[Any], y: Float, weight: Float) -> tuple[Float, Float, Float]:
    """Ridge regressions (q, k) of columns Z (n, q) less their means (q,), and squared errors (k,).

    The targets y (n, k) have means of 0; what is missing in Z counts as the mean of its column. The
    errors are means over rows left out one by one, and the penalty of each target is the best for
    them. This is what scikit-learn's RidgeCV finds; it decomposes the whole table for that, where
    the products of its columns are enough, in a fifth of the time for 20,000 x 200.
    """
    blocks = [slice(start, start + _BLOCK) for start in range(0, len(Z), _BLOCK)]
    share = weight / weight.sum()
    sums, seen = np.zeros(Z.shape[1]), np.zeros(Z.shape[1])
    for rows in blocks:
        sums += share[rows] @ np.nan_to_num(Z[rows])
        seen += share[rows] @ ~np.isnan(Z[rows])
    centre = sums / np.where(seen > 0, seen, 1.0)
    products, along = np.zeros((Z.shape[1], Z.shape[1])), np.zeros((Z.shape[1], y.shape[1]))
    for rows in blocks:
        z = np.nan_to_num(Z[rows] - centre)
        weighted = share[rows, None] * z
        products += z.T @ weighted
        along += weighted.T @ y[rows]
    values, turn = np.linalg.eigh(products)
    damped, along = 1 / (np.maximum(values, 0)[:, None] + PENALTIES), turn.T @ along
    errors = np.zeros((y.shape[1], len(PENALTIES)))
    for rows in blocks:
        z = np.nan_to_num(Z[rows] - centre) @ turn
        pull = share[rows, None] * (1 + z**2 @ damped)  # Of a row on what is fitted to it.
        for k in range(y.shape[1]):
            left = y[rows, k, None] - z @ (along[:, k, None] * damped)
            left /= np.maximum(1 - pull, 1e-9)
            errors[k] += share[rows] @ left**2
    best = errors.argmin(axis=1)
    return turn @ (along * damped[:, best]), centre, errors.min(axis=1)
