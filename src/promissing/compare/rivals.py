"""Transformers the rivals of the NaN-native network need, and scikit-learn does not have.

Nearest neighbours that are quick where one column has gaps, the share missing as a column, and
frames for trees that know categories.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.neighbors import NearestNeighbors
from sklearn.utils.validation import check_is_fitted, validate_data

from promissing.encoding.table_encoder import TableEncoder

__all__ = ["CategoryFrame", "NeighborsImputer", "share_missing"]

Array = NDArray[Any]
CELLS = 2**23  # Distances held at a time.


class _Donors:
    """The rows that gaps are filled from, and how near they are to others."""

    def __init__(self, rows: Array) -> None:
        self.known = ~np.isnan(rows)
        self.values = np.where(self.known, rows, 0.0)
        count = self.known.sum(axis=0)
        self.means = self.values.sum(axis=0) / np.maximum(count, 1)
        self.shares = np.maximum(count, 1) / len(rows)

    def distances(self, X: Array, known: Array) -> Array:
        """Mean squares of the differences where both are known; infinite where none is."""
        here, there = (known.astype(np.float64), self.known.astype(np.float64))
        values = np.where(known, X, 0.0)
        left = np.hstack([values**2, here, -2 * values])
        right = np.hstack([there, self.values**2, self.values])
        found: Array = left @ right.T
        np.maximum(found, 0.0, out=found)
        both = here @ there.T
        with np.errstate(divide="ignore", invalid="ignore"):
            found /= both
        found[both == 0] = np.inf
        return found

    def fill(self, X: Array, k: int) -> Array:
        """X with every gap filled with the mean of its k nearest donors."""
        known = ~np.isnan(X)
        distances = self.distances(X, known)
        gaps = np.flatnonzero(~known.all(axis=0))
        # Among so many most find the k that know the value.
        sizes = np.minimum(len(self.known), (2 * k / self.shares[gaps]).astype(int) + k)
        n_near = sizes.max()
        near = np.argpartition(distances, n_near - 1, axis=1)[:, :n_near]
        order = np.argsort(np.take_along_axis(distances, near, axis=1), axis=1)
        near = np.take_along_axis(near, order, axis=1)
        finite = np.isfinite(np.take_along_axis(distances, near, axis=1))
        filled = np.where(known, X, 0.0)
        for j, size in zip(gaps, sizes, strict=True):
            rows = np.flatnonzero(~known[:, j])
            who = near[rows, :size]
            give = self.known[:, j][who] & finite[rows, :size]
            give &= give.cumsum(axis=1) <= k
            count = give.sum(axis=1)
            total = np.where(give, self.values[:, j][who], 0.0).sum(axis=1)
            filled[rows, j] = np.where(count > 0, total / np.maximum(count, 1), self.means[j])
            donors = np.flatnonzero(self.known[:, j])
            few = (count < min(k, len(donors))) & finite[rows, 0]
            if size < len(self.known) and few.any():
                filled[rows[few], j] = self._from_all(distances[rows[few]], donors, int(j), k)
        return filled

    def _from_all(self, distances: Array, donors: Array, j: int, k: int) -> Array:
        """The gaps of one column from all who know the value, however far."""
        distances = distances[:, donors]
        if k < len(donors):
            near = np.argpartition(distances, k - 1, axis=1)[:, :k]
            distances = np.take_along_axis(distances, near, axis=1)
            donors = donors[near]
        give = np.isfinite(distances)
        count = give.sum(axis=1)
        total = np.where(give, self.values[donors, j], 0.0).sum(axis=1)
        found = np.where(count > 0, total / np.maximum(count, 1), self.means[j])
        return np.asarray(found)


class NeighborsImputer(TransformerMixin, BaseEstimator):
    """Fill a gap with the mean of the nearest training rows that know the value.

    The result is that of scikit-learn's `KNNImputer`, but for ties. Where no more than one column
    has gaps, the neighbours are looked up in a tree of the others. Elsewhere the rows nearest to a
    row are sorted once, and every gap takes the first of them that know its value; scikit-learn
    sorts for every gap. Either way no matrix of all distances is kept.

    Parameters
    ----------
    n_neighbors : int, default=5
    max_rows : int, optional
        With gaps in several columns, learn from at most so many rows, drawn at random.
    random_state : int, RandomState or None
        Draws those rows.
    """

    def __init__(
        self, n_neighbors: int = 5, *, max_rows: int | None = None, random_state: Any = None
    ) -> None:
        self.n_neighbors = n_neighbors
        self.max_rows = max_rows
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Keep the rows of X (n, p)."""
        X = validate_data(self, X, dtype=np.float64, ensure_all_finite="allow-nan")
        self._rows = X
        self._tree = None
        gaps = np.isnan(X).any(axis=0)
        self._whole = np.flatnonzero(~gaps)
        if np.count_nonzero(gaps) == 1 and len(self._whole):
            (self._column,) = np.flatnonzero(gaps)
            donors = X[~np.isnan(X[:, self._column])]
            if len(donors):
                self._values = donors[:, self._column]
                k = min(self.n_neighbors, len(donors))
                self._tree = NearestNeighbors(n_neighbors=k).fit(donors[:, self._whole])
        self._donors: _Donors | None = None
        return self

    def transform(self, X: Any) -> Array:
        """Fill the gaps of X (n, p); a column never observed becomes 0."""
        check_is_fitted(self)
        X = validate_data(
            self, X, dtype=np.float64, ensure_all_finite="allow-nan", reset=False, copy=True
        )
        missing = np.isnan(X)
        if not missing.any():
            return X  # type: ignore[no-any-return]
        if self._tree is not None and not missing[:, self._whole].any():
            rows = missing[:, self._column]
            near = self._tree.kneighbors(X[rows][:, self._whole], return_distance=False)
            X[rows, self._column] = self._values[near].mean(axis=1)
            return X  # type: ignore[no-any-return]
        if self._donors is None:
            rows = self._rows
            if self.max_rows is not None and len(rows) > self.max_rows:
                rng = np.random.default_rng(self.random_state)
                rows = rows[np.sort(rng.choice(len(rows), self.max_rows, replace=False))]
            self._donors = _Donors(rows)
        gaps = np.flatnonzero(missing.any(axis=1))
        for start in range(0, len(gaps), step := max(1, CELLS // len(self._donors.known))):
            rows = gaps[start : start + step]
            X[rows] = self._donors.fill(X[rows], self.n_neighbors)
        return X  # type: ignore[no-any-return]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


def share_missing(X: Array) -> Array:
    """The share missing of every row (n, 1)."""
    return np.isnan(np.asarray(X, dtype=np.float64)).mean(axis=1, keepdims=True)  # type: ignore[no-any-return]


class CategoryFrame(TransformerMixin, BaseEstimator):
    """A frame of numbers and pandas categories, as trees that know categories want it.

    Parameters
    ----------
    max_categories : int, default=254
        The most a column may have: the rarest share one. scikit-learn's trees take 255.
    as_text : bool, default=False
        Whether categories are text, "missing" among them, as CatBoost wants it.
    """

    def __init__(self, *, max_categories: int = 254, as_text: bool = False) -> None:
        self.max_categories = max_categories
        self.as_text = as_text

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the categories of every column."""
        self.encoder_ = TableEncoder(max_categories=self.max_categories, scale=False).fit(X)
        kinds = self.encoder_.kinds_
        self.nominal_ = [j for j, kind in enumerate(kinds) if kind == "category"]
        return self

    def transform(self, X: Any) -> pd.DataFrame:
        """Return X as a frame; a category never seen in training is missing."""
        check_is_fitted(self)
        readings = self.encoder_.read(X)
        columns: dict[str, Any] = {}
        for j in range(readings.shape[1]):
            column: Any = readings[:, j]
            if j in self.nominal_:
                places = np.nan_to_num(column, nan=-1).astype(int)
                n_levels = np.count_nonzero(self.encoder_.groups_ == j)
                column = pd.Categorical.from_codes(places, categories=np.arange(n_levels))
                if self.as_text:
                    column = column.rename_categories(str).add_categories("missing")
                    column = pd.Series(column).fillna("missing").astype(str)
            columns[str(j)] = column
        return pd.DataFrame(columns)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        return tags
