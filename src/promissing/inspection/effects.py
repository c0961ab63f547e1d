"""What a prediction would be if something were unknown."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from promissing.encoding.columns import Float
from promissing.inspection.asking import Inquiry
from promissing.inspection.blanking import Groups
from promissing.missingness import Mask

__all__ = ["Effects", "what_if"]

Array = NDArray[Any]

_SAME = 1e-9  # A smaller change of a probability or score is none.


@dataclass(frozen=True, eq=False)
class Effects:
    """What making groups unknown does to predictions: what `what_if` returns.

    Attributes
    ----------
    groups : tuple
        The names of the G groups; pairs of names for pairs.
    prediction : ndarray (n,)
        The prediction for the rows as they are: the probability of the class `explained`, or the
        number.
    effects : ndarray (n, G)
        The prediction without the group minus `prediction`; exactly 0 where it was unknown anyway.
    known : ndarray of bool (n, G)
        Whether anything of the group was known in the row.
    kinds : ndarray of str (n, G) or None
        What that does to the decision, the most probable class; None for a regressor.

        ========== ==========================================================================
        "flips"    another class is decided for: the group is decisive
        "supports" the decided class becomes less probable: the group spoke for the decision
        "opposes"  it becomes more probable: the group spoke against it
        "none"     its probability stays the same (to 1e-9), as when the group was unknown
        ========== ==========================================================================
    decision : ndarray (n,) or None
        The class decided for; None for a regressor.
    classes : ndarray (K,) or None
        The classes of the model; None for a regressor.
    index : ndarray (n,)
        The index of the rows.
    explained : ndarray (n,) or None
        The class whose probability `prediction` and `effects` are about: of two classes the
        positive one. None for a regressor.
    """

    groups: tuple[Any, ...]
    prediction: Float
    effects: Float
    known: Mask
    kinds: Array | None
    decision: Array | None
    classes: Array | None
    index: Array
    explained: Array | None = None

    @property
    def positive(self) -> Any:
        """The positive one of two classes; None for several classes and for a regressor."""
        if self.classes is None or len(self.classes) != 2:
            return None
        if self.explained is None or not len(self.explained):
            return self.classes.tolist()[1]
        return self.explained.tolist()[0]

    def outcomes(self, y: ArrayLike) -> Array:
        """Tell for every row, given the truth, which of the four outcomes its decision is.

        Parameters
        ----------
        y : array-like (n,)
            The true classes.

        Returns
        -------
        ndarray of str (n,)
            "true negative", "true positive", "false negative" or "false positive", where the
            positive class is `positive`.
        """
        if self.classes is None or self.decision is None or len(self.classes) != 2:
            raise ValueError("The four outcomes are those of a decision between two classes.")
        truth = np.asarray(y)
        if truth.shape != self.decision.shape:
            raise ValueError(
                f"`y` must have one class for each of the {len(self.decision)} rows. "
                f"Received: shape {truth.shape}"
            )
        right = np.where(truth == self.decision, "true", "false")
        sign = np.where(self.decision == self.positive, " positive", " negative")
        return np.char.add(right, sign)

    def to_frame(self) -> pd.DataFrame:
        """One line for every row and group.

        Returns
        -------
        DataFrame
            With the columns `row`, `group`, `known`, `prediction` and `effect`; for a classifier
            also `class`, whose probability `prediction` is, and `kind`.
        """
        n, size = self.effects.shape
        names = np.empty(size, dtype=object)
        names[:] = self.groups
        frame = pd.DataFrame(
            {
                "row": np.repeat(self.index, size),
                "group": np.tile(names, n),
                "known": self.known.ravel(),
                "prediction": np.repeat(self.prediction, size),
                "effect": self.effects.ravel(),
            }
        )
        if self.explained is not None:
            frame.insert(3, "class", np.repeat(self.explained, size))
        return frame if self.kinds is None else frame.assign(kind=self.kinds.ravel())


def what_if(
    model: Any,
    X: Any,
    *,
    groups: Groups = None,
    pairs: bool = False,
    cumulative: bool = False,
    target: Any = None,
    positive: Any = None,
) -> Effects:
    """The change in prediction when each feature, or group of features, is made unknown.

    The paper's counterfactual: no other value is made up, a value is just taken away.

    Parameters
    ----------
    model : fitted estimator
        Any that predicts with NaN in its input: NaN-native or a pipeline that imputes. What is
        explained is the probability of a class; without `predict_proba` the decision function; of
        a regressor the prediction.
    X : frame, array or list of rows (n, p)
        Never modified. Frames stay frames, and dtypes change only where a gap demands it.
    groups : mapping of a name to columns, "modalities" or None, default=None
        What is made unknown together, by the names or positions of columns. A column in no group
        is kept as it is throughout. None makes each column a group of its own; "modalities" takes
        those of a fusion model.
    pairs : bool, default=False
        Whether to make every pair of groups unknown instead of every single one.
    cumulative : bool, default=False
        Whether to make each group unknown together with all before it, in the order of `groups`.
    target : optional
        The class whose probability is explained, by its label. By default the positive one of two
        classes; of several the one that is predicted for the row. Of a regressor with several
        outputs, the position of one.
    positive : label, optional
        The positive one of two classes: its probability is explained, and `Effects.outcomes` are
        about it. By default the second in sorted order.

    Returns
    -------
    Effects

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.ensemble import HistGradientBoostingClassifier
    >>> from promissing.inspection import what_if
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> model = HistGradientBoostingClassifier(max_iter=20).fit(X, X[:, 0] > 0)
    >>> what_if(model, [[1.5, 0.3], [np.nan, 0.3]], groups={"dose": [0], "noise": [1]}).kinds
    array([['flips', 'none'],
           ['none', 'none']], dtype='<U8')
    """
    if pairs and cumulative:
        raise ValueError("Ask for `pairs` or for `cumulative`, not for both at once.")
    inquiry = Inquiry(model, X, groups)
    blanks, base, decision = inquiry.blanks, inquiry.base, inquiry.decision
    columns = inquiry.target_columns(target, positive)
    names: tuple[Any, ...] = blanks.names
    sets = np.eye(len(names), dtype=bool)
    if pairs:
        chosen = list(combinations(range(len(names)), 2))
        names = tuple((names[a], names[b]) for a, b in chosen)
        first, second = np.array(chosen, dtype=int).reshape(-1, 2).T
        sets = sets[first] | sets[second]
    elif cumulative:
        sets = np.tri(len(names), dtype=bool)
    # Whether any of the set is known; NumPy has no fast product of booleans.
    known = blanks.known.astype(np.float32) @ sets.T.astype(np.float32) > 0

    effects = np.zeros(known.shape)
    kinds = np.full(known.shape, "none", dtype="<U8")
    rows = range(len(base))
    for i, out in zip(rows, inquiry.answers((i, sets[known[i]]) for i in rows), strict=True):
        here = known[i]
        effects[i, here] = out[:, columns[i]] - base[i, columns[i]]
        if decision is not None:
            change = out[:, decision[i]] - base[i, decision[i]]
            flips = out.argmax(axis=1) != decision[i]
            conditions = [flips, change < -_SAME, change > _SAME]
            kinds[i, here] = np.select(conditions, ["flips", "supports", "opposes"], "none")
    return Effects(
        groups=names,
        prediction=np.take_along_axis(base, columns[:, None], axis=1)[:, 0],
        effects=effects,
        known=known,
        kinds=None if decision is None else kinds,
        decision=None if decision is None else inquiry.classes[decision],
        classes=inquiry.classes,
        index=blanks.index,
        explained=inquiry.explained(columns),
    )
