"""Results of the wrappers: arrays and frames that know what they hold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import binomtest

__all__ = ["CoverageByMissing", "PredictionIntervals", "PredictionSets"]

Array = NDArray[Any]


class _Labelled(np.ndarray):
    """An array with the confidence levels and the index of its rows."""

    levels: tuple[float, ...]
    index: Any

    @classmethod
    def _of(cls, values: Array, levels: Sequence[float], index: Any, *, single: bool) -> Self:
        made = (values[..., 0] if single else values).view(cls)
        made.levels, made.index = tuple(levels), index
        return made

    def __array_finalize__(self, other: Any) -> None:
        self.levels = getattr(other, "levels", ())
        self.index = getattr(other, "index", None)

    def __reduce__(self) -> Any:
        found: tuple[Any, ...] = super().__reduce__()  # type: ignore[assignment]
        make, arguments, state = found
        return make, arguments, (state, dict(self.__dict__))

    def __setstate__(self, state: Any) -> None:
        values, own = state
        super().__setstate__(values)
        self.__dict__.update(own)

    def _by_level(self) -> dict[float, Array]:
        """Return the plain array (n, ...) of every level."""
        plain = np.asarray(self)
        if len(self.levels) == 1 and plain.ndim == 2:
            plain = plain[..., None]
        return {level: plain[..., i] for i, level in enumerate(self.levels)}

    def _frame(self, by_level: dict[float, pd.DataFrame]) -> pd.DataFrame:
        """Return one frame; with several levels, the level is the first line of column names."""
        if len(by_level) == 1:
            return next(iter(by_level.values()))
        return pd.concat(by_level, axis=1, names=["confidence_level"])


class PredictionSets(_Labelled):
    """Prediction sets of classes: a boolean array (n, K), or (n, K, L) for L confidence levels.

    A slice of it is an ordinary array in all but name: `to_frame` needs the whole result.

    Examples
    --------
    >>> import numpy as np
    >>> from promissing.uncertainty import PredictionSets
    >>> sets = PredictionSets.of(np.array([[[True], [False]]]), ["a", "b"], [0.9], range(1))
    >>> sets.shape
    (1, 2)
    """

    classes: Array

    @classmethod
    def of(
        cls,
        values: Array,
        classes: Any,
        levels: Sequence[float],
        index: Any,
        *,
        single: bool = True,
    ) -> Self:
        """Make the result.

        Parameters
        ----------
        values : ndarray of bool (n, K, L)
            Whether a class is in the set of a row, for every level.
        classes : array (K,)
            The classes.
        levels : sequence of float
            The confidence levels.
        index : array (n,)
            The index of the rows.
        single : bool, default=True
            Whether one level was asked for, so that the array has two dimensions.

        Returns
        -------
        PredictionSets
            The result.

        Examples
        --------
        >>> import numpy as np
        >>> from promissing.uncertainty import PredictionSets
        >>> values = np.array([[[True], [False]]])
        >>> PredictionSets.of(values, ["a", "b"], [0.9], range(1)).levels
        (0.9,)
        """
        made = cls._of(values, levels, index, single=single)
        made.classes = np.asarray(classes)
        return made

    def __array_finalize__(self, other: Any) -> None:
        super().__array_finalize__(other)
        self.classes = getattr(other, "classes", np.empty(0))

    def to_frame(self) -> pd.DataFrame:
        """Return the sets as a frame: one column per class, the size, and the set as text.

        Returns
        -------
        DataFrame
            One line per row. With several confidence levels, these are the first line of the
            column names.

        Examples
        --------
        >>> import numpy as np
        >>> from promissing.uncertainty import PredictionSets
        >>> values = np.array([[[True], [True]], [[False], [True]]])
        >>> PredictionSets.of(values, ["a", "b"], [0.9], range(2)).to_frame()
               a     b  size   set
        0   True  True     2  a, b
        1  False  True     1     b
        """
        names = [str(label) for label in self.classes.tolist()]
        if {"size", "set"} & {*names}:  # Classes with the names of the other columns.
            names = [f"class {name}" for name in names]
        frames = {}
        for level, sets in self._by_level().items():
            columns: dict[str, Any] = dict(zip(names, sets.T, strict=True))
            text = [
                ", ".join(n for n, here in zip(names, row, strict=True) if here) for row in sets
            ]
            more = {"size": sets.sum(axis=1), "set": text}
            frames[level] = pd.DataFrame(columns | more, index=self.index)
        return self._frame(frames)


class PredictionIntervals(_Labelled):
    """Prediction intervals: an array (n, 2), or (n, 2, L) for L confidence levels.

    Examples
    --------
    >>> import numpy as np
    >>> from promissing.uncertainty import PredictionIntervals
    >>> PredictionIntervals.of(np.array([[[1.0], [3.0]]]), [0.9], range(1)).shape
    (1, 2)
    """

    @classmethod
    def of(cls, values: Array, levels: Sequence[float], index: Any, *, single: bool = True) -> Self:
        """Make the result.

        Parameters
        ----------
        values : ndarray (n, 2, L)
            Lower and upper ends for every level.
        levels : sequence of float
            The confidence levels.
        index : array (n,)
            The index of the rows.
        single : bool, default=True
            Whether one level was asked for, so that the array has two dimensions.

        Returns
        -------
        PredictionIntervals
            The result.

        Examples
        --------
        >>> import numpy as np
        >>> from promissing.uncertainty import PredictionIntervals
        >>> PredictionIntervals.of(np.array([[[1.0], [3.0]]]), [0.9], range(1)).levels
        (0.9,)
        """
        return cls._of(values, levels, index, single=single)

    def to_frame(self) -> pd.DataFrame:
        """Return the intervals as a frame with the columns "lower", "upper" and "width".

        Returns
        -------
        DataFrame
            One line per row. With several confidence levels, these are the first line of the
            column names.

        Examples
        --------
        >>> import numpy as np
        >>> from promissing.uncertainty import PredictionIntervals
        >>> PredictionIntervals.of(np.array([[[1.0], [3.0]]]), [0.9], range(1)).to_frame()
           lower  upper  width
        0    1.0    3.0    2.0
        """
        frames = {
            level: pd.DataFrame(
                {"lower": ends[:, 0], "upper": ends[:, 1], "width": ends[:, 1] - ends[:, 0]},
                index=self.index,
            )
            for level, ends in self._by_level().items()
        }
        return self._frame(frames)


class CoverageByMissing(pd.DataFrame):
    """Coverage by the share of missing values, as returned by `coverage_by_missing`.

    It is a frame with one line per group: `missing`, the shares in the group; `n`, its rows;
    `coverage`, the share of rows whose set or interval holds the truth, with a Wilson interval from
    `low` to `high`; and `size`, the mean number of classes or the mean width.

    Examples
    --------
    >>> import numpy as np
    >>> from promissing.uncertainty import CoverageByMissing
    >>> hit, size = np.array([True, True, False]), np.array([1.0, 1.0, 2.0])
    >>> table = CoverageByMissing.of(hit, size, np.array([0.0, 0.0, 0.4]), 0.9)
    >>> table[["missing", "n", "coverage"]]
         missing  n  coverage
    0        0 %  2       1.0
    1  25 - 50 %  1       0.0
    """

    _metadata = ["level"]  # noqa: RUF012 - pandas reads a list

    @property
    def _constructor(self) -> Any:
        return pd.DataFrame  # A part of it is an ordinary frame.

    @classmethod
    def of(
        cls,
        covered: Array,
        size: Array,
        share_missing: Array,
        level: float,
        edges: Sequence[float] = (0.25, 0.5, 0.75, 1.0),
    ) -> Self:
        """Make the table.

        Parameters
        ----------
        covered : ndarray of bool (n,)
            Whether the set or interval of a row holds the truth.
        size : ndarray (n,)
            Its size.
        share_missing : ndarray (n,)
            The share of missing values of each row.
        level : float
            The confidence level.
        edges : sequence of float, default=(0.25, 0.5, 0.75, 1.0)
            Upper ends of the groups. Complete rows are a group of their own.

        Returns
        -------
        CoverageByMissing
            The table.

        Examples
        --------
        >>> import numpy as np
        >>> from promissing.uncertainty import CoverageByMissing
        >>> CoverageByMissing.of(np.array([True]), np.ones(1), np.zeros(1), 0.9)["n"].tolist()
        [1]
        """
        ends = np.array([0.0, *edges])
        which = np.searchsorted(np.round(ends, 12), np.round(share_missing, 12))
        lines = []
        for group in np.unique(which):
            rows = which == group
            hits, n = int(covered[rows].sum()), int(rows.sum())
            interval = binomtest(hits, n).proportion_ci(method="wilson")
            name = "0 %" if group == 0 else f"{100 * ends[group - 1]:g} - {100 * ends[group]:g} %"
            line = {"missing": name, "n": n, "coverage": hits / n}
            line |= {"low": interval.low, "high": interval.high, "size": float(size[rows].mean())}
            lines.append(line)
        made = cls(lines)
        made.level = level
        return made

    def to_frame(self) -> pd.DataFrame:
        """Return an ordinary frame.

        Returns
        -------
        DataFrame
            The table.

        Examples
        --------
        >>> import numpy as np
        >>> from promissing.uncertainty import CoverageByMissing
        >>> table = CoverageByMissing.of(np.array([True]), np.ones(1), np.zeros(1), 0.9)
        >>> type(table.to_frame()).__name__
        'DataFrame'
        """
        return pd.DataFrame(self)

    def plot(self, *, ax: Any = None) -> Any:
        """Draw the coverage of every group with its Wilson interval, and the level.

        Parameters
        ----------
        ax : Axes, default=None
            By default there is a new figure.

        Returns
        -------
        Axes
            The axes.

        Examples
        --------
        >>> import matplotlib
        >>> matplotlib.use("agg")
        >>> import numpy as np
        >>> from promissing.uncertainty import CoverageByMissing
        >>> table = CoverageByMissing.of(np.array([True]), np.ones(1), np.zeros(1), 0.9)
        >>> table.plot().get_ylabel()
        'coverage'
        """
        import matplotlib.pyplot as plt

        if ax is None:
            _, ax = plt.subplots(figsize=(5.5, 3.2), layout="constrained")
        places = np.arange(len(self))
        errors = [self["coverage"] - self["low"], self["high"] - self["coverage"]]
        ax.axhline(self.level, color="0.5", linewidth=1, linestyle="--")
        ax.set_title(f"dashed: confidence level {self.level:g}", loc="right", fontsize="small")
        ax.errorbar(places, self["coverage"], np.abs(errors), fmt="o", capsize=3, color="C0")
        ax.set_xticks(
            places, [f"{m}\nn = {n:,}" for m, n in zip(self["missing"], self["n"], strict=True)]
        )
        ax.set(xlabel="share of missing values", ylabel="coverage", ylim=(None, 1.01))
        return ax
