"""Rows as numbers and masks: reading them, drawing masks, and finding the nearest masks."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from promissing._validation import expect
from promissing.encoding.table_encoder import TableEncoder
from promissing.estimators.missing_record import scramble
from promissing.missingness import open_source, positions

__all__ = [
    *("MaskBank", "RowReader"),
    *("draw_masks", "feature_weights", "read_masks", "row_uniforms"),
]

Float = NDArray[np.float64]
Mask = NDArray[np.bool_]

_BLOCK = 2**24  # Distances in memory at a time, 64 MB.
_BITS = 22  # Precision of weights in distances: twice their sum is exact in single precision.
# Share of the distance that is divided equally among all features: those of no importance count.
_EQUAL = 0.1


class RowReader:
    """Reads rows as numbers, the same for every spelling of the same values.

    Parameters
    ----------
    model : estimator
        A fitted model. The encoder of our own models is used.
    X : frame or array (n, p)
        Rows from which categories are learned, if the model has no encoder.
    """

    def __init__(self, model: Any, X: Any) -> None:
        self._encoder: Any = getattr(model, "encoder_", None)
        if self._encoder is None:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # The model decides what it accepts.
                self._encoder = TableEncoder(scale=False, max_categories=10**6).fit(X)

    def read(self, X: Any) -> Float:
        """Return the values of X as numbers (n, p), NaN where missing.

        Parameters
        ----------
        X : frame or array (n, p)
            The rows.

        Returns
        -------
        ndarray (n, p)
            Numbers; a category is its position.
        """
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return np.asarray(self._encoder.read(X))


def draw_masks(
    n_rows: int, n_features: int, n_masks: int, *, patterns: Mask | None, rng: np.random.Generator
) -> Mask:
    """Draw the features that each calibration row loses.

    The first mask of a row is empty: the row as it is. The shares of missing values in the others
    are spread evenly from 0 to 1, so that there are rows with few and with many missing values.

    Parameters
    ----------
    n_rows, n_features, n_masks : int
        Numbers of rows, features and masks of every row.
    patterns : ndarray of bool (P, n_features) or None
        Masks to draw from instead.
    rng : Generator
        Random generator.

    Returns
    -------
    ndarray of bool (n_rows, n_masks, n_features)
        The masks.
    """
    masks = np.zeros((n_rows, n_masks, n_features), bool)
    drawn = n_masks - 1
    if patterns is not None:
        masks[:, 1:] = patterns[rng.integers(len(patterns), size=(n_rows, drawn))]
        return masks
    low = np.arange(drawn)[:, None] / max(drawn, 1)
    shares = low + rng.random((n_rows, drawn, 1)) / max(drawn, 1)
    masks[:, 1:] = rng.random((n_rows, drawn, n_features)) < shares
    return masks


def read_masks(masks: Any, X: Any) -> Mask | None:
    """Read the masks that a user expects: a boolean array, or groups of columns by name.

    Parameters
    ----------
    masks : array of bool (P, p), mapping of str to columns, or None
        Masks, True where a value is missing, or columns that go missing together.
    X : frame or array (n, p)
        The table.

    Returns
    -------
    ndarray of bool (P, p) or None
        The masks.
    """
    if masks is None:
        return None
    source = open_source(X)
    p = source.table.shape[1]
    if isinstance(masks, Mapping):
        found = np.zeros((len(masks), p), bool)
        for i, (name, columns) in enumerate(masks.items()):
            found[i, positions(source, columns, f"masks[{name!r}]")] = True
    else:
        found = np.asarray(masks)
    good = found.ndim == 2 and found.shape[1] == p and len(found) > 0 and found.dtype == bool
    expected = f"an array of booleans with {p} columns, or a mapping of names to columns"
    expect(good, "masks", expected, masks if not good and found.ndim == 0 else found.shape)
    return found


def feature_weights(masks: Mask, changes: Float) -> Float:
    """Compute how much each feature counts in the distance between masks.

    Parameters
    ----------
    masks : ndarray of bool (E, p)
        The features that were removed.
    changes : ndarray (E,)
        How much the prediction changed.

    Returns
    -------
    ndarray (p,)
        Weights with a sum of 1: the part of each feature in the change, by linear regression.
    """
    p = masks.shape[1]
    A = np.column_stack([np.ones(len(masks)), masks])
    gram = A.T @ A + 1e-3 * len(A) * np.diag(np.r_[0.0, np.ones(p)])
    slopes = np.maximum(np.linalg.solve(gram, A.T @ changes)[1:], 0.0)
    shares = slopes / slopes.sum() if slopes.sum() > 0 else np.full(p, 1 / p)
    return np.asarray((1 - _EQUAL) * shares + _EQUAL / p)


@dataclass(frozen=True, eq=False)
class MaskBank:
    """Calibration rows under several masks each, with the score of each.

    Parameters
    ----------
    masks : ndarray of bool (n, m, p)
        The missing features of every row under each of its masks. The first mask is the row as it
        was observed.
    scores : ndarray (n, m)
        The scores.
    folds : ndarray of int (n,)
        The position of the model that scored each row.
    labels : ndarray of int (n,)
        The position of the class of each row; 0 in regression.
    weights : ndarray (p,)
        The weight of each feature in the distance between masks.
    """

    masks: Mask
    scores: Float
    folds: NDArray[np.intp]
    labels: NDArray[np.intp]
    weights: Float

    def __len__(self) -> int:
        return len(self.masks)

    def __repr__(self) -> str:
        n, m, _ = self.masks.shape
        return f"MaskBank({n} rows, {m} masks each)"

    def subset(self, rows: NDArray[np.intp]) -> MaskBank:
        """Return the bank of some of the calibration rows.

        Parameters
        ----------
        rows : ndarray of int (r,)
            Positions of calibration rows.

        Returns
        -------
        MaskBank
            Their masks and scores.
        """
        own = (self.masks[rows], self.scores[rows], self.folds[rows], self.labels[rows])
        return MaskBank(*own, self.weights)

    def nearest(
        self, masks: Mask, k: int, rows: NDArray[np.intp] | None = None
    ) -> tuple[NDArray[np.intp], Float]:
        """Return the calibration rows with the nearest masks, and their scores under these masks.

        Every calibration row counts once, with the nearest of its masks.

        Parameters
        ----------
        masks : ndarray of bool (u, p)
            The masks to compare with.
        k : int
            The number of calibration rows.
        rows : ndarray of int, optional
            The calibration rows to choose from.

        Returns
        -------
        rows : ndarray of int (u, k)
            Positions of calibration rows.
        scores : ndarray (u, k)
            Their scores.
        """
        bank, scores = self.masks, self.scores
        if rows is not None:
            bank, scores = bank[rows], scores[rows]
        n, m, p = bank.shape
        k = min(k, n)
        entries = bank.reshape(n * m, p).astype(np.float32)
        # Sums of these whole numbers are exact in any order, so that the neighbours of a mask do
        # not depend on the other masks of the call.
        weights = np.rint(self.weights * 2**_BITS).astype(np.float32)
        found = np.empty((len(masks), k), np.intp), np.empty((len(masks), k))
        step = max(1, _BLOCK // (n * m))
        for start in range(0, len(masks), step):
            part = masks[start : start + step].astype(np.float32) * weights
            # |a - b| is a + b - 2 a b for zeros and ones. The sum of a is the same for all b.
            distances = (entries @ weights - 2 * part @ entries.T).reshape(-1, n, m)
            best = distances.argmin(axis=2)[..., None]
            least = np.take_along_axis(distances, best, axis=2)[..., 0]
            near = np.argpartition(least, k - 1, axis=1)[:, :k] if k < n else np.arange(n)[None]
            near = np.broadcast_to(near, (len(part), k))
            block = slice(start, start + len(part))
            found[0][block] = near
            found[1][block] = scores[near, np.take_along_axis(best[..., 0], near, axis=1)]
        return (found[0] if rows is None else rows[found[0]]), found[1]


def row_uniforms(codes: Float, seed: int) -> Float:
    """Return a number between 0 and 1 for each row that depends only on its values and the seed.

    Parameters
    ----------
    codes : ndarray (n, p)
        The values as numbers, NaN where missing.
    seed : int
        The seed.

    Returns
    -------
    ndarray (n,)
        The numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from promissing.uncertainty.masks import row_uniforms
    >>> both = row_uniforms(np.array([[1.0, np.nan], [2.0, 3.0]]), seed=0)
    >>> bool(row_uniforms(np.array([[2.0, 3.0]]), seed=0)[0] == both[1])
    True
    """
    codes = np.where(np.isnan(codes), np.nan, codes) + 0.0  # One NaN, and no negative zero.
    bits = np.ascontiguousarray(codes, np.float64).view(np.uint64)
    state = scramble(np.full(len(codes), seed, np.uint64))
    for column in bits.T:
        state = scramble(state ^ column)
    return (state >> np.uint64(11)).astype(np.float64) * 2.0**-53
