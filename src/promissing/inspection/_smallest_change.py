"""The smallest set of groups that changes a decision when it is missing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import combinations, islice
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from promissing._validation import expect, is_whole
from promissing.inspection.masked import Groups, MaskedPredictions

__all__ = ["SmallestChange", "smallest_change"]

Array = NDArray[Any]
Mask = NDArray[np.bool_]

_MAX_EXACT = 12  # With at most this many known groups, all subsets are tried by default.
_CHUNK = 10_000  # Subsets listed at a time.


@dataclass(frozen=True, eq=False, repr=False)
class SmallestChange:
    """Smallest sets of groups that change decisions, as returned by `smallest_change`.

    Parameters
    ----------
    sets : tuple of tuples of names, or None, of length n
        For every row, the groups without which another class is decided. None if there is no such
        set, or if none was found.
    exact : ndarray of bool of shape (n,)
        Whether it is certain that no smaller set changes the decision, or, for None, that no set
        does.
    prediction : ndarray of shape (n,)
        The probability of the class `explained` for the rows as they are.
    prediction_without : ndarray of shape (n,)
        The same without the set; NaN for None.
    decision : ndarray of shape (n,)
        The decided class.
    decision_without : ndarray of shape (n,)
        The decided class without the set; the same as `decision` for None.
    index : ndarray of shape (n,)
        The index of the rows.
    explained : ndarray of shape (n,)
        The class whose probability `prediction` is. With two classes it is the positive class,
        with more, by default, the decided one.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from promissing.inspection import smallest_change
    >>> X = np.arange(10.0)[:, None]
    >>> model = DecisionTreeClassifier(random_state=0).fit(X, X[:, 0] > 3)
    >>> smallest_change(model, [[2.0], [8.0]])
    SmallestChange(2 rows, 1 changed)
    """

    sets: tuple[tuple[Any, ...] | None, ...]
    exact: Mask
    prediction: NDArray[np.float64]
    prediction_without: NDArray[np.float64]
    decision: Array
    decision_without: Array
    index: Array
    explained: Array

    def __repr__(self) -> str:
        changed = sum(found is not None for found in self.sets)
        return f"SmallestChange({len(self.sets)} rows, {changed} changed)"

    def to_frame(self) -> pd.DataFrame:
        """Return the sets as a table with one line for every row.

        Returns
        -------
        DataFrame
            The columns `set`, `exact`, `class` (the class whose probability is given),
            `prediction`, `prediction_without`, `decision` and `decision_without`.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.tree import DecisionTreeClassifier
        >>> from promissing.inspection import smallest_change
        >>> X = np.arange(10.0)[:, None]
        >>> model = DecisionTreeClassifier(random_state=0).fit(X, X[:, 0] > 3)
        >>> frame = smallest_change(model, [[2.0], [8.0]]).to_frame()
        >>> frame[["set", "exact", "decision", "decision_without"]]
            set  exact  decision  decision_without
        0  (0,)   True     False              True
        1  None   True      True              True
        """
        columns = {
            "set": pd.Series(self.sets, dtype=object),
            "exact": self.exact,
            "class": self.explained,
            "prediction": self.prediction,
            "prediction_without": self.prediction_without,
            "decision": self.decision,
            "decision_without": self.decision_without,
        }
        return pd.DataFrame(columns).set_axis(self.index)


def smallest_change(
    model: Any,
    X: Any,
    groups: Groups = None,
    *,
    exact_up_to: int | None = None,
    target: Any = None,
    positive: Any = None,
) -> SmallestChange:
    """Find, for each row, the smallest set of known groups without which the decision changes.

    All sets of up to `exact_up_to` groups are tried. If one of them changes the decision, the
    result is the smallest set, and among sets of equal size the one with the largest change. If
    none does, the search is greedy: the group with the largest effect is removed until the
    decision changes or everything is missing, and then groups that are not needed are restored. No
    single group of such a set can be restored, but a smaller set may exist.

    Parameters
    ----------
    model : fitted classifier
        Any classifier that predicts with NaN in its input, as in `what_if`. Its decision is the
        most probable class.
    X : DataFrame, array or list of rows of shape (n, p)
        The rows to explain. They are never modified.
    groups : mapping of str to columns, "modalities" or None, default=None
        The columns that are made missing together, as in `what_if`.
    exact_up_to : int, default=None
        The size up to which all sets are tried. By default, all sets are tried in rows with at
        most 12 known groups, which takes up to 4,095 predictions per row, and sets of up to 2
        groups in other rows.
    target : label, default=None
        The class whose probability is reported, as in `what_if`. The sets do not depend on it.
    positive : label, default=None
        The positive class of two, as in `what_if`. The sets do not depend on it.

    Returns
    -------
    SmallestChange
        The set of every row, and the predictions with and without it.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.impute import SimpleImputer
    >>> from sklearn.pipeline import make_pipeline
    >>> from promissing.inspection import smallest_change
    >>> X = np.random.default_rng(0).normal(size=(300, 3))
    >>> model = make_pipeline(SimpleImputer(), LogisticRegression()).fit(X, X.sum(axis=1) > 0)
    >>> smallest_change(model, [[3, -1, -1], [2, 2, -1]]).sets
    ((0,), (0, 1))
    """
    good = exact_up_to is None or (is_whole(exact_up_to) and exact_up_to >= 1)
    expect(good, "exact_up_to", "a whole number >= 1", exact_up_to)
    predictions = MaskedPredictions(model, X, groups)
    classes, table = predictions.classes, predictions.table
    if classes is None:
        raise ValueError(
            f"`model` must be a classifier: {type(model).__name__} has no decision that could "
            f"change. Use `what_if` for the change of its predictions."
        )
    columns = predictions.target_columns(target, positive)
    search = _Search(predictions)
    n_known = table.known.sum(axis=1)
    if exact_up_to is None:
        tried = np.where(n_known <= _MAX_EXACT, n_known, 2)
    else:
        tried = np.minimum(n_known, exact_up_to)
    for size in range(1, tried.max() + 1):
        search.step(~search.flipped & (size <= tried), search.subsets(size))
    exact = search.flipped | (tried == n_known)
    while (unchanged := ~search.flipped & (search.missing.sum(axis=1) < n_known)).any():
        search.step(unchanged, search.one_more)
    active = search.flipped & ~exact
    while active.any():
        before = search.missing.copy()
        search.step(active, search.one_less, only_flips=True)
        active &= (search.missing != before).any(axis=1)

    rows, flipped = np.arange(len(columns)), search.flipped
    without = np.where(flipped, search.outputs.argmax(axis=1), search.decision)
    return SmallestChange(
        sets=tuple(
            tuple(table.groups[g] for g in np.flatnonzero(missing)) if changed else None
            for missing, changed in zip(search.missing, flipped, strict=True)
        ),
        exact=exact,
        prediction=predictions.outputs[rows, columns],
        prediction_without=np.where(flipped, search.outputs[rows, columns], np.nan),
        decision=classes[search.decision],
        decision_without=classes[without],
        index=table.index,
        explained=classes[columns],
    )


class _Search:
    """The best set found so far for every row, its outputs, and whether it flips the decision."""

    def __init__(self, predictions: MaskedPredictions) -> None:
        self.predictions, self.known = predictions, predictions.table.known
        self.decision: Any = predictions.decision
        self.missing = np.zeros_like(self.known)
        self.outputs = predictions.outputs.copy()
        self.flipped = np.zeros(len(self.known), bool)

    def step(
        self, active: Mask, candidates: Callable[[int], Iterable[Mask]], *, only_flips: bool = False
    ) -> None:
        """Predict the candidate sets of every active row, and move each row to its best set.

        The best set is the one with the smallest margin of the decided class over the next. With
        `only_flips`, a row does not move unless the decision stays changed.
        """
        rows = np.flatnonzero(active).tolist()
        masks = ((i, missing) for i in rows for missing in candidates(i))
        best: dict[int, tuple[tuple[bool, float], Mask, Array]] = {}
        for i, missing, out in self.predictions.without(masks):
            others = np.delete(out, self.decision[i], axis=1)
            margin = out[:, self.decision[i]] - others.max(axis=1, initial=-np.inf)
            flips = out.argmax(axis=1) != self.decision[i]
            if only_flips and not flips.any():
                continue
            k = int(np.lexsort((margin, ~flips))[0])
            rank = (not flips[k], float(margin[k]))
            if i not in best or rank < best[i][0]:
                best[i] = (rank, missing[k], out[k])
        for i, ((stays, _), mask, out) in best.items():
            self.missing[i], self.outputs[i], self.flipped[i] = mask, out, not stays

    def subsets(self, size: int) -> Callable[[int], Iterator[Mask]]:
        """Return a function that lists all sets of known groups of this size for a row."""

        def candidates(i: int) -> Iterator[Mask]:
            chosen = combinations(np.flatnonzero(self.known[i]).tolist(), size)
            while chunk := list(islice(chosen, _CHUNK)):
                missing = np.zeros((len(chunk), self.known.shape[1]), bool)
                np.put_along_axis(missing, np.array(chunk), True, axis=1)
                yield missing

        return candidates

    def one_more(self, i: int) -> list[Mask]:
        """List the current set of a row with one more group."""
        return self._toggled(i, np.flatnonzero(self.known[i] & ~self.missing[i]))

    def one_less(self, i: int) -> list[Mask]:
        """List the current set of a row with one group restored."""
        return self._toggled(i, np.flatnonzero(self.missing[i]))

    def _toggled(self, i: int, groups: NDArray[np.intp]) -> list[Mask]:
        missing = np.repeat(self.missing[[i]], len(groups), axis=0)
        missing[np.arange(len(groups)), groups] ^= True
        return [missing]
