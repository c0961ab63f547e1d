"""A record of what was missing in training, and what the loss of each feature costs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["MissingRecord", "scramble"]

Array = NDArray[Any]

MOST_SAMPLED = 500  # Training rows whose masks are kept.
MOST_PATTERNS = 2**17  # Distinct patterns whose hashes are kept: 1 MB.
_BLOCK_ROWS = 2**15


@dataclass(frozen=True, eq=False, repr=False)
class MissingRecord:
    """What was missing in training. It holds no values of any row.

    Parameters
    ----------
    n_rows : int
        Training rows.
    missing : ndarray of int (F,)
        Rows in which each feature is missing.
    sample : ndarray of bool (S, F)
        Whether a feature is missing in a row, for at most 500 rows that are drawn at random.
    hashes : ndarray of int (P,)
        Hashes of the distinct patterns of missing features; at most 131,072 of them.
    n_patterns : int
        The number of distinct patterns in training. If there are more than hashes, it is not known
        whether a pattern is new.
    loss : ndarray of float (F,) or None
        Expected increase of the loss if the feature is missing in every row: of the log loss, or of
        the squared error in units of the variance of the predictions.
    accuracy : ndarray of float (F,) or None
        Expected fall of the accuracy, or share of the explained variance that is lost.

    Examples
    --------
    >>> import numpy as np
    >>> from promissing.estimators import MissingRecord
    >>> MissingRecord.of(np.array([[True, False], [False, False]]))
    MissingRecord(2 rows, 2 patterns)
    """

    n_rows: int
    missing: Array
    sample: Array
    hashes: Array
    n_patterns: int
    loss: Array | None = None
    accuracy: Array | None = None

    @classmethod
    def of(cls, absent: Array) -> MissingRecord:
        """Record which features are missing.

        Parameters
        ----------
        absent : ndarray of bool (n, F)
            Whether a feature is missing in a row.

        Returns
        -------
        MissingRecord
            The record, without costs.

        Examples
        --------
        >>> import numpy as np
        >>> from promissing.estimators import MissingRecord
        >>> MissingRecord.of(np.array([[True, False], [False, False]])).missing
        array([1, 0])
        """
        n = len(absent)
        drawn = np.random.default_rng(0).permutation(n)[:MOST_SAMPLED]
        found = np.unique(hash_patterns(absent))
        missing = absent.sum(axis=0, dtype=np.int64)
        return cls(n, missing, absent[drawn], found[:MOST_PATTERNS], len(found))

    def joined(self, other: MissingRecord) -> MissingRecord:
        """Return the record of the rows of both, as for `partial_fit`.

        Parameters
        ----------
        other : MissingRecord
            Another record.

        Returns
        -------
        MissingRecord
            The record of both. The number of patterns is that of the patterns kept.

        Examples
        --------
        >>> import numpy as np
        >>> from promissing.estimators import MissingRecord
        >>> one = MissingRecord.of(np.array([[True, False]]))
        >>> one.joined(one).n_rows
        2
        """
        n = self.n_rows + other.n_rows
        # Samples are in random order, so that any part of them is a sample.
        parts = [one.sample[: -(-MOST_SAMPLED * one.n_rows // n)] for one in (self, other)]
        found = np.union1d(self.hashes, other.hashes)
        return replace(
            self,
            n_rows=n,
            missing=self.missing + other.missing,
            sample=np.concatenate(parts),
            hashes=found[:MOST_PATTERNS],
            n_patterns=max(len(found), self.n_patterns, other.n_patterns),
        )

    def unseen(self, absent: Array) -> Array | None:
        """Return which patterns of missing features occurred in no training row.

        Parameters
        ----------
        absent : ndarray of bool (n, F)
            Whether a feature is missing in a row.

        Returns
        -------
        ndarray of bool (n,) or None
            None if training had too many patterns to remember all.

        Examples
        --------
        >>> import numpy as np
        >>> from promissing.estimators import MissingRecord
        >>> record = MissingRecord.of(np.array([[True, False]]))
        >>> record.unseen(np.array([[True, False], [True, True]]))
        array([False,  True])
        """
        if self.n_patterns > len(self.hashes):
            return None
        return ~np.isin(hash_patterns(absent), self.hashes)

    def __repr__(self) -> str:
        return f"MissingRecord({self.n_rows} rows, {self.n_patterns} patterns)"


def hash_patterns(absent: Array) -> Array:
    """Return a number for every pattern that is the same in all processes.

    Parameters
    ----------
    absent : ndarray of bool (n, F)
        Patterns.

    Returns
    -------
    ndarray of int (n,)
        Sums of one random number for each missing feature.
    """
    of_feature = scramble(np.arange(1, absent.shape[1] + 1, dtype=np.uint64))
    found = np.zeros(len(absent), np.uint64)
    for start in range(0, len(absent), _BLOCK_ROWS):
        part = slice(start, start + _BLOCK_ROWS)
        found[part] = absent[part].astype(np.uint64) @ of_feature  # Modulo 2**64.
    return found.view(np.int64)


def scramble(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Scramble 64-bit integers: one step of the generator SplitMix64.

    Parameters
    ----------
    x : ndarray of uint64
        Integers.

    Returns
    -------
    ndarray of uint64
        Other integers, which look random.
    """
    with np.errstate(over="ignore"):
        x = x + np.uint64(0x9E3779B97F4A7C15)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return x ^ (x >> np.uint64(31))
