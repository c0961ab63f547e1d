"""The smallest set of values without which a decision changes."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import combinations, islice
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from promissing._validation import expect, is_whole
from promissing.encoding.columns import Float, Key
from promissing.inspection.asking import Inquiry
from promissing.inspection.blanking import Groups
from promissing.missingness import Mask

__all__ = ["SmallestChange", "smallest_change"]

_MOST_EXACT = 12  # Known groups of which all sets are tried.
_PIECE = 10_000  # Sets listed at a time.
Sets = Callable[["_Search", int], Iterable[Mask]]


@dataclass(frozen=True, eq=False)
class SmallestChange:
    """What it takes to change decisions: what `smallest_change` returns.

    Attributes
    ----------
    sets : tuple (n,) of tuples of names, or None
        For every row the groups without which another class is decided for; None if none was found.
    exact : ndarray of bool (n,)
        Whether that is certain: that no smaller set does it, or that, for None, no set does.
    prediction, prediction_without : ndarray (n,)
        The probability of the class `explained` as the row is, and without the set (NaN for None),
        as in `what_if`.
    decision, decision_without : ndarray (n,)
        The class decided for, and without the set (the same for None).
    index : ndarray (n,)
        The index of the rows.
    explained : ndarray (n,)
        The class whose probability `prediction` is: of two classes the positive one, of several by
        default the one decided for.
    """

    sets: tuple[tuple[Key, ...] | None, ...]
    exact: NDArray[np.bool_]
    prediction: Float
    prediction_without: Float
    decision: NDArray[Any]
    decision_without: NDArray[Any]
    index: NDArray[Any]
    explained: NDArray[Any]

    def to_frame(self) -> pd.DataFrame:
        """One line for every row, with its index.

        Returns
        -------
        DataFrame
            With the columns `set`, `exact`, `class`, whose probabilities `prediction` and
            `prediction_without` are, `decision` and `decision_without`.
        """
        fields = ("prediction", "prediction_without", "decision", "decision_without")
        columns = {
            "set": pd.Series(self.sets, dtype=object),
            "exact": self.exact,
            "class": self.explained,
            **{name: getattr(self, name) for name in fields},
        }
        return pd.DataFrame(columns).set_axis(self.index)


def smallest_change(
    model: Any,
    X: Any,
    *,
    groups: Groups = None,
    exact_up_to: int | None = None,
    target: Any = None,
    positive: Any = None,
) -> SmallestChange:
    """For each row the smallest set of known groups without which the decision changes.

    All sets of up to `exact_up_to` groups are tried; if any of them changes the decision, then
    the answer is as small as can be, and of equally small ones that which changes it most. Beyond,
    the search is greedy: the group goes whose loss does most, until the decision changes or all is
    unknown, and then whatever can be given back is. Such a set has no part that could be given
    back alone, but a smaller one may exist elsewhere.

    Parameters
    ----------
    model : fitted classifier
        As in `what_if`. Its decision is the most probable class.
    X : frame, array or list of rows (n, p)
        As in `what_if`.
    groups : mapping of a name to columns, "modalities" or None, default=None
        As in `what_if`.
    exact_up_to : int, optional
        How large a set is looked for exhaustively. By default of any size in rows in which at most
        12 groups are known, which takes up to 4,095 predictions for a row, and of up to 2 in
        others, where of G groups there are G (G - 1) / 2 pairs.
    target, positive : label, optional
        The class whose probability is given, as in `what_if`. The sets do not depend on it.

    Returns
    -------
    SmallestChange

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.impute import SimpleImputer
    >>> from sklearn.pipeline import make_pipeline
    >>> from promissing.inspection import smallest_change
    >>> X = np.random.default_rng(0).normal(size=(300, 3))
    >>> model = make_pipeline(SimpleImputer(), LogisticRegression())
    >>> model.fit(X, X.sum(axis=1) > 0)[-1].classes_
    array([False,  True])
    >>> smallest_change(model, [[3, -1, -1], [2, 2, -1]]).sets
    ((0,), (0, 1))
    """
    good = exact_up_to is None or (is_whole(exact_up_to) and exact_up_to >= 1)
    expect(good, "exact_up_to", "a whole number >= 1", exact_up_to)
    inquiry = Inquiry(model, X, groups)
    if inquiry.decision is None:
        raise ValueError(
            f"`model` must be a classifier: {type(model).__name__} takes no decision that could "
            f"change. See `what_if` for how far its predictions change."
        )
    columns = inquiry.target_columns(target, positive)
    search = _Search(inquiry)
    if exact_up_to is None:
        tried = np.where(search.n_known <= _MOST_EXACT, search.n_known, 2)
    else:
        tried = np.minimum(search.n_known, exact_up_to)
    for size in range(1, tried.max() + 1):
        search.round(~search.flipped & (size <= tried), _combinations_of(size))
    exact = search.flipped | (tried == search.n_known)
    while (more := ~search.flipped & (search.gone.sum(axis=1) < search.n_known)).any():
        search.round(more, _one_more)
    active = search.flipped & ~exact
    while active.any():
        before = search.gone.copy()
        search.round(active, _one_less, only_flips=True)
        active &= (search.gone != before).any(axis=1)
    return search.result(exact, columns)


class _Search:
    """The best set found so far for every row: where it is, and how far it changes the decision."""

    def __init__(self, inquiry: Inquiry) -> None:
        self.inquiry, self.known = inquiry, inquiry.blanks.known
        n = len(self.known)
        self.n_known = self.known.sum(axis=1)
        self.gone = np.zeros_like(self.known)
        self.flipped = np.zeros(n, bool)
        self.outputs = inquiry.base.copy()

    def round(self, active: NDArray[np.bool_], sets: Sets, *, only_flips: bool = False) -> None:
        """Ask for the sets of every active row, and move each to the best of its own.

        The best is the one with the least margin of the decided class over the next; with
        `only_flips` a row stays where it is unless the decision is still changed.
        """
        decision = self.inquiry.decision
        assert decision is not None
        listed: deque[tuple[int, Mask]] = deque()

        def pieces() -> Iterator[tuple[int, Mask]]:
            for i in np.flatnonzero(active):
                for gone in sets(self, int(i)):
                    listed.append((int(i), gone))
                    yield listed[-1]

        best: dict[int, tuple[tuple[bool, float], Mask, Float]] = {}
        for out in self.inquiry.answers(pieces()):
            i, gone = listed.popleft()
            others = np.delete(out, decision[i], axis=1)
            margin = out[:, decision[i]] - others.max(axis=1, initial=-np.inf)
            flips = out.argmax(axis=1) != decision[i]
            if only_flips and not flips.any():
                continue
            k = int(np.lexsort((margin, ~flips))[0])
            rank = (not flips[k], float(margin[k]))
            if i not in best or rank < best[i][0]:
                best[i] = (rank, gone[k], out[k])
        for i, (_, gone_from_i, out_of_i) in best.items():
            self.gone[i], self.outputs[i] = gone_from_i, out_of_i
            self.flipped[i] = out_of_i.argmax() != decision[i]

    def result(self, exact: NDArray[np.bool_], columns: NDArray[np.intp]) -> SmallestChange:
        inquiry, names = self.inquiry, self.inquiry.blanks.names
        decision = inquiry.decision
        assert decision is not None
        rows = np.arange(len(decision))
        without = np.where(self.flipped, self.outputs.argmax(axis=1), decision)
        return SmallestChange(
            sets=tuple(
                tuple(names[g] for g in np.flatnonzero(gone)) if flipped else None
                for gone, flipped in zip(self.gone, self.flipped, strict=True)
            ),
            exact=exact,
            prediction=inquiry.base[rows, columns],
            prediction_without=np.where(self.flipped, self.outputs[rows, columns], np.nan),
            decision=inquiry.classes[decision],
            decision_without=inquiry.classes[without],
            index=inquiry.blanks.index,
            explained=inquiry.classes[columns],
        )


def _combinations_of(size: int) -> Sets:
    def sets(search: _Search, i: int) -> Iterator[Mask]:
        known = np.flatnonzero(search.known[i])
        chosen = combinations(known.tolist(), size)
        while some := list(islice(chosen, _PIECE)):
            gone = np.zeros((len(some), search.known.shape[1]), bool)
            np.put_along_axis(gone, np.array(some), True, axis=1)
            yield gone

    return sets


def _one_more(search: _Search, i: int) -> Iterator[Mask]:
    left = np.flatnonzero(search.known[i] & ~search.gone[i])
    gone = np.repeat(search.gone[[i]], len(left), axis=0)
    gone[np.arange(len(left)), left] = True
    yield gone


def _one_less(search: _Search, i: int) -> Iterator[Mask]:
    lost = np.flatnonzero(search.gone[i])
    gone = np.repeat(search.gone[[i]], len(lost), axis=0)
    gone[np.arange(len(lost)), lost] = False
    yield gone
