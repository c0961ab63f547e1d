"""A record of what was missing in training, and what the loss of each feature costs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["MissingRecord"]

Array = NDArray[Any]

MOST_PATTERNS = 2_000  # Distinct patterns that are kept, the most frequent ones.


@dataclass(frozen=True, eq=False, repr=False)
class MissingRecord:
    """What was missing in training. It holds no values of any row.

    Parameters
    ----------
    n_rows : int
        Training rows.
    missing : ndarray of int (F,)
        Rows in which each feature is missing.
    patterns : ndarray of bool (P, F)
        The distinct patterns of missing features, the most frequent first; at most 2,000.
    counts : ndarray of int (P,)
        Rows with each pattern.
    n_patterns : int
        The number of distinct patterns in training, kept or not.
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
    patterns: Array
    counts: Array
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
        return cls._of_patterns(absent, np.ones(len(absent), np.int64))

    @classmethod
    def _of_patterns(cls, absent: Array, weights: Array) -> MissingRecord:
        packed = np.packbits(absent, axis=1)
        _, first, which = np.unique(packed, axis=0, return_index=True, return_inverse=True)
        counts = np.bincount(which.ravel(), weights).astype(np.int64)
        order = np.argsort(-counts, kind="stable")[:MOST_PATTERNS]
        return cls(
            n_rows=int(weights.sum()),
            missing=(weights @ absent).astype(np.int64),
            patterns=absent[first[order]],
            counts=counts[order],
            n_patterns=len(counts),
        )

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
        both = self._of_patterns(
            np.concatenate([self.patterns, other.patterns]),
            np.concatenate([self.counts, other.counts]),
        )
        return replace(
            both, n_rows=self.n_rows + other.n_rows, missing=self.missing + other.missing
        )

    def __repr__(self) -> str:
        return f"MissingRecord({self.n_rows} rows, {self.n_patterns} patterns)"
