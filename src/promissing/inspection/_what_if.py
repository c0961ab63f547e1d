"""The change of a prediction when groups of features are made missing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from promissing.inspection._shapley import ShapleyValues
from promissing.inspection.masked import Groups, MaskedPredictions, long_frame

__all__ = ["Effects", "importance", "what_if"]

Array = NDArray[Any]

_NO_CHANGE = 1e-9  # A smaller change of a probability or score counts as none.


@dataclass(frozen=True, eq=False, repr=False)
class Effects:
    """Effects of missing groups on predictions, as returned by `what_if`.

    Parameters
    ----------
    groups : tuple
        The names of the G groups, or pairs of names if pairs were made missing.
    prediction : ndarray of shape (n,)
        The prediction for the rows as they are: the probability of the class `explained`, or the
        predicted number.
    effects : ndarray of shape (n, G)
        The prediction without the group minus `prediction`. It is exactly 0 where the group was
        missing before.
    known : ndarray of bool of shape (n, G)
        Whether any value of the group is known in the row.
    kinds : ndarray of str of shape (n, G) or None
        The effect on the decision, which is the most probable class. None for a regressor.

        - `"flips"`: the decision changes; the group is decisive.
        - `"supports"`: the decided class becomes less probable without the group.
        - `"opposes"`: the decided class becomes more probable without the group.
        - `"none"`: the probability changes by less than 1e-9, or the group was missing before.
    decision : ndarray of shape (n,) or None
        The decided class; None for a regressor.
    classes : ndarray of shape (K,) or None
        The classes of the model; None for a regressor.
    index : ndarray of shape (n,)
        The index of the rows.
    explained : ndarray of shape (n,) or None, default=None
        The class whose probability is explained in every row. With two classes it is the positive
        class. None for a regressor.

    See Also
    --------
    CounterfactualDisplay : Draws the effects.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from promissing.inspection import what_if
    >>> X = np.arange(10.0)[:, None]
    >>> model = DecisionTreeClassifier(random_state=0).fit(X, X[:, 0] > 3)
    >>> what_if(model, [[2.0], [8.0]])
    Effects(2 rows, 1 groups)
    """

    groups: tuple[Any, ...]
    prediction: NDArray[np.float64]
    effects: NDArray[np.float64]
    known: NDArray[np.bool_]
    kinds: Array | None
    decision: Array | None
    classes: Array | None
    index: Array
    explained: Array | None = None

    def __repr__(self) -> str:
        return f"Effects({len(self.index)} rows, {len(self.groups)} groups)"

    @property
    def positive(self) -> Any:
        """The positive class of two; None with more classes and for a regressor.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.tree import DecisionTreeClassifier
        >>> from promissing.inspection import what_if
        >>> X = np.arange(10.0)[:, None]
        >>> y = np.where(X[:, 0] > 3, "ill", "well")
        >>> model = DecisionTreeClassifier(random_state=0).fit(X, y)
        >>> what_if(model, X).positive, what_if(model, X, positive="ill").positive
        ('well', 'ill')
        """
        if self.classes is None or len(self.classes) != 2:
            return None
        if self.explained is None or not len(self.explained):
            return self.classes.tolist()[1]
        return self.explained.tolist()[0]

    def outcomes(self, y: ArrayLike) -> Array:
        """Compare the decisions of a model of two classes with the truth.

        Parameters
        ----------
        y : array-like of shape (n,)
            The true classes.

        Returns
        -------
        ndarray of str of shape (n,)
            `"true negative"`, `"true positive"`, `"false negative"` or `"false positive"`, for
            the class `positive`.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.tree import DecisionTreeClassifier
        >>> from promissing.inspection import what_if
        >>> X = np.arange(10.0)[:, None]
        >>> model = DecisionTreeClassifier(random_state=0).fit(X, X[:, 0] > 3)
        >>> what_if(model, [[2.0], [8.0]]).outcomes([True, True]).tolist()
        ['false negative', 'true positive']
        """
        if self.classes is None or self.decision is None or len(self.classes) != 2:
            raise ValueError("`outcomes` is defined for a decision between two classes only.")
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
        """Return the effects as a table with one line for every row and group.

        Returns
        -------
        DataFrame
            The columns `row`, `group`, `known`, `prediction` and `effect`. For a classifier there
            are also `class`, the class whose probability is explained, and `kind`.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.tree import DecisionTreeClassifier
        >>> from promissing.inspection import what_if
        >>> X = np.arange(10.0)[:, None]
        >>> model = DecisionTreeClassifier(random_state=0).fit(X, X[:, 0] > 3)
        >>> what_if(model, [[2.0], [8.0]]).to_frame()
           row  group  known  class  prediction  effect   kind
        0    0      0   True   True         0.0     1.0  flips
        1    1      0   True   True         1.0     0.0   none
        """
        prediction = np.repeat(self.prediction, len(self.groups))
        columns = {"prediction": prediction, "effect": self.effects}
        return long_frame(self, columns if self.kinds is None else columns | {"kind": self.kinds})

    def plot(self, *, ax: Any = None, rows: Sequence[int] | None = None) -> Any:
        """Draw the effects as bars, one panel per row.

        Parameters
        ----------
        ax : Axes or sequence of Axes, default=None
            One for each row. By default there is a new figure.
        rows : sequence of int, default=None
            The positions of the rows to draw; by default all.

        Returns
        -------
        CounterfactualDisplay
            The display.

        Examples
        --------
        >>> import matplotlib
        >>> matplotlib.use("agg")
        >>> import numpy as np
        >>> from sklearn.tree import DecisionTreeClassifier
        >>> from promissing.inspection import what_if
        >>> X = np.arange(10.0)[:, None]
        >>> model = DecisionTreeClassifier(random_state=0).fit(X, X[:, 0] > 3)
        >>> len(what_if(model, X[:3]).plot(rows=[0, 2]).axes_)
        2
        """
        from promissing.inspection.displays import CounterfactualDisplay

        return CounterfactualDisplay(self).plot(ax=ax, rows=rows)


def what_if(
    model: Any,
    X: Any,
    groups: Groups = None,
    *,
    pairs: bool = False,
    cumulative: bool = False,
    target: Any = None,
    positive: Any = None,
) -> Effects:
    """Compute the change of the prediction when each feature, or group of features, is missing.

    No other value is put in its place: the value is only taken away.

    Parameters
    ----------
    model : fitted estimator
        Any estimator that predicts with NaN in its input: a NaN-native one, or a pipeline that
        imputes. The probability of a class is explained, or the decision function if there is no
        `predict_proba`, or the prediction of a regressor.
    X : DataFrame, array or list of rows of shape (n, p)
        The rows to explain. They are never modified. Frames stay frames, and a dtype changes only
        if it cannot hold missing values.
    groups : mapping of str to columns, "modalities" or None, default=None
        The columns that are made missing together, by name or position. A column in no group is
        never changed. None makes each column a group; `"modalities"` takes the modalities of a
        fusion model.
    pairs : bool, default=False
        Whether to make every pair of groups missing instead of every single group.
    cumulative : bool, default=False
        Whether to make each group missing together with all groups before it.
    target : label or int, default=None
        The class whose probability is explained. By default it is the positive class of two, and
        the predicted class of the row if there are more. For a regressor with several outputs, it
        is the position of one output.
    positive : label, default=None
        The positive class of two. Its probability is explained, and `Effects.outcomes` refers to
        it. By default it is the second class in sorted order.

    Returns
    -------
    Effects
        The effect of every group in every row.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from promissing.inspection import what_if
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> model = DecisionTreeClassifier(random_state=0).fit(X, X[:, 0] > 0)
    >>> what_if(model, [[1.5, 0.3], [np.nan, 0.3]], {"dose": [0], "noise": [1]}).kinds
    array([['flips', 'none'],
           ['none', 'none']], dtype='<U8')
    """
    if pairs and cumulative:
        raise ValueError("Use `pairs` or `cumulative`, not both.")
    predictions = MaskedPredictions(model, X, groups)
    outputs, decision, table = predictions.outputs, predictions.decision, predictions.table
    columns = predictions.target_columns(target, positive)
    names: tuple[Any, ...] = table.groups
    masks = np.eye(len(names), dtype=bool)
    if pairs:
        chosen = list(combinations(range(len(names)), 2))
        names = tuple((names[a], names[b]) for a, b in chosen)
        first, second = np.array(chosen, dtype=int).reshape(-1, 2).T
        masks = masks[first] | masks[second]
    elif cumulative:
        masks = np.tri(len(names), dtype=bool)
    # Whether any group of a mask is known. NumPy has no fast product of booleans.
    known = table.known.astype(np.float32) @ masks.T.astype(np.float32) > 0

    effects = np.zeros(known.shape)
    kinds = np.full(known.shape, "none", dtype="<U8")
    for i, _, out in predictions.without((i, masks[own]) for i, own in enumerate(known)):
        effects[i, known[i]] = out[:, columns[i]] - outputs[i, columns[i]]
        if decision is not None:
            change = out[:, decision[i]] - outputs[i, decision[i]]
            flips = out.argmax(axis=1) != decision[i]
            conditions = [flips, change < -_NO_CHANGE, change > _NO_CHANGE]
            kinds[i, known[i]] = np.select(conditions, ["flips", "supports", "opposes"], "none")
    return Effects(
        groups=names,
        prediction=outputs[np.arange(len(outputs)), columns],
        effects=effects,
        known=known,
        kinds=None if decision is None else kinds,
        decision=None if decision is None else predictions.explained(decision),
        classes=predictions.classes,
        index=table.index,
        explained=predictions.explained(columns),
    )


def importance(result: Effects | ShapleyValues) -> pd.DataFrame:
    """Compute the importance of every group: the mean absolute effect over all rows.

    Parameters
    ----------
    result : Effects or ShapleyValues
        The result of `what_if` or `shapley` for some rows.

    Returns
    -------
    DataFrame
        One line per group, the most important first. The column `importance` is the mean absolute
        effect, which counts as 0 where the group is missing, `standard_error` is its standard
        error over the rows, and `known` is the share of rows in which any value of the group is
        known.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> from promissing.inspection import importance, shapley
    >>> X = np.random.default_rng(0).normal(size=(300, 3))
    >>> model = DecisionTreeRegressor(random_state=0).fit(X, 2 * X[:, 2] + X[:, 1])
    >>> importance(shapley(model, X[:50])).index.tolist()
    [2, 1, 0]
    """
    if not isinstance(result, Effects | ShapleyValues):
        raise TypeError(
            "`importance` takes the result of `what_if` or `shapley`. Received: "
            f"{type(result).__name__}"
        )
    sizes = np.abs(result.values if isinstance(result, ShapleyValues) else result.effects)
    n = len(sizes)
    deviation = sizes.std(axis=0, ddof=1) if n > 1 else np.full(sizes.shape[1], np.nan)
    frame = pd.DataFrame(
        {
            "importance": sizes.mean(axis=0),
            "standard_error": deviation / np.sqrt(n),
            "known": result.known.mean(axis=0),
        },
        index=pd.Index(result.groups, name="group", tupleize_cols=False),
    )
    return frame.sort_values("importance", ascending=False, kind="stable")
