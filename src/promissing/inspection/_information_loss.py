"""Trajectories of predictions as more and more groups of features are missing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from promissing import metrics
from promissing._validation import expect, is_whole
from promissing.inspection.masked import Groups, MaskedPredictions, random_generator

__all__ = ["Trajectories", "information_loss"]

Array = NDArray[Any]
Float = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False, repr=False)
class Trajectories:
    """Predictions while groups are made missing one by one, as returned by `information_loss`.

    Parameters
    ----------
    groups : tuple
        The names of the G groups.
    orders : ndarray of int of shape (n_orders, G)
        The orders in which the groups, by position, are made missing.
    predictions : ndarray of shape (n_orders, n, G + 1) or (n_orders, n, G + 1, K)
        The predictions from complete information at step 0 to none at step G. The last axis
        exists only if the model has more than two classes, or several outputs, and no `target`
        was given.
    known : ndarray of bool of shape (n, G)
        Whether any value of the group is known in the row at step 0.
    prior : float, ndarray of shape (K,) or None
        The prediction to expect for a row with no known values.
    classes : ndarray of shape (K,) or None
        The classes of the model; None for a regressor.
    index : ndarray of shape (n,)
        The index of the rows.
    explained : label or None, default=None
        The class whose probability is followed. With two classes it is the positive class. None
        if all of several classes are followed, and for a regressor.

    See Also
    --------
    TrajectoryDisplay : Draws the trajectories.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from promissing.inspection import information_loss
    >>> X = np.arange(20.0).reshape(10, 2)
    >>> model = DecisionTreeClassifier(random_state=0).fit(X, X[:, 0] > 6)
    >>> information_loss(model, X[:3], orders=4, random_state=0)
    Trajectories(4 orders, 3 rows, 2 groups)
    """

    groups: tuple[Any, ...]
    orders: NDArray[np.intp]
    predictions: Float
    known: Mask
    prior: float | Float | None
    classes: Array | None
    index: Array
    explained: Any = None

    def __repr__(self) -> str:
        n_orders, n_groups = self.orders.shape
        return f"Trajectories({n_orders} orders, {len(self.index)} rows, {n_groups} groups)"

    @property
    def mean(self) -> Float:
        """The mean trajectory of every row, of shape (n, G + 1) or (n, G + 1, K).

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.tree import DecisionTreeRegressor
        >>> from promissing.inspection import information_loss
        >>> X = np.arange(10.0)[:, None]
        >>> model = DecisionTreeRegressor(max_depth=1).fit(X, X[:, 0] > 3)
        >>> information_loss(model, [[2.0]], orders=2).mean
        array([[0., 1.]])
        """
        return np.asarray(self.predictions.mean(axis=0))

    @property
    def spread(self) -> Float:
        """The standard deviation over the orders, in the shape of `mean`.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.tree import DecisionTreeRegressor
        >>> from promissing.inspection import information_loss
        >>> X = np.arange(10.0)[:, None]
        >>> model = DecisionTreeRegressor(max_depth=1).fit(X, X[:, 0] > 3)
        >>> information_loss(model, [[2.0]], orders=2).spread
        array([[0., 0.]])
        """
        return np.asarray(self.predictions.std(axis=0))

    @property
    def share_missing(self) -> Float:
        """The share of the groups that is missing at every step, of shape (n_orders, n, G + 1).

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.tree import DecisionTreeRegressor
        >>> from promissing.inspection import information_loss
        >>> X = np.arange(20.0).reshape(10, 2)
        >>> model = DecisionTreeRegressor(max_depth=1).fit(X, X[:, 0] > 3)
        >>> information_loss(model, [[2.0, 3.0]], orders=1).share_missing
        array([[[0. , 0.5, 1. ]]])
        """
        lost = self.known[:, self.orders].swapaxes(0, 1).cumsum(axis=2)
        lost = np.insert(lost, 0, 0, axis=2)
        return np.asarray((lost + (~self.known).sum(axis=1)[:, None]) / len(self.groups))

    @property
    def distance(self) -> Float:
        """The distance of the predictions from the prior, of shape (n_orders, n, G + 1).

        See Also
        --------
        promissing.metrics.distance_from_prior : Defines the distance.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.tree import DecisionTreeRegressor
        >>> from promissing.inspection import information_loss
        >>> X = np.arange(10.0)[:, None]
        >>> model = DecisionTreeRegressor(max_depth=1).fit(X, X[:, 0] > 3)
        >>> information_loss(model, [[2.0]], orders=1, prior=0.75).distance
        array([[[0.75, 0.25]]])
        """
        if self.prior is None:
            raise ValueError(
                "The model has no `prior_`. Give `information_loss(..., prior=...)`: the class "
                "shares, or the mean target, of the training data."
            )
        return metrics.distance_from_prior(self.predictions, self.prior)

    @property
    def monotonicity(self) -> metrics.Monotonicity:
        """Whether the mean distance from the prior falls from step to step.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.tree import DecisionTreeRegressor
        >>> from promissing.inspection import information_loss
        >>> X = np.arange(10.0)[:, None]
        >>> model = DecisionTreeRegressor(max_depth=1).fit(X, X[:, 0] > 3)
        >>> information_loss(model, [[2.0]], orders=1, prior=0.75).monotonicity.always
        True
        """
        return metrics.monotonicity(self.distance)

    def measures(self, y: ArrayLike | None = None) -> pd.DataFrame:
        """Compute the mean prediction and its quality at every step, over all rows and orders.

        Parameters
        ----------
        y : array-like of shape (n,), default=None
            The true classes. If one of several classes is followed, it is compared with the rest.

        Returns
        -------
        DataFrame
            One line per step. If a single output is followed, `prediction` is the mean prediction
            and `spread` its standard deviation over the orders. With a prior, `distance` is the
            mean distance from it. With `y`, there are `brier_score`, `calibration_error` and
            `accuracy`, as in `promissing.metrics`.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.tree import DecisionTreeClassifier
        >>> from promissing.inspection import information_loss
        >>> X = np.arange(10.0)[:, None]
        >>> model = DecisionTreeClassifier(random_state=0).fit(X, X[:, 0] > 3)
        >>> result = information_loss(model, [[2.0], [8.0]], orders=2, prior=0.5)
        >>> result.measures([False, True])[["prediction", "distance", "accuracy"]]
              prediction  distance  accuracy
        step
        0            0.5       0.5       1.0
        1            1.0       0.5       0.5
        """
        columns: dict[str, Any] = {}
        if self.predictions.ndim == 3:
            columns["prediction"] = self.mean.mean(axis=0)
            columns["spread"] = self.spread.mean(axis=0)
        if self.prior is not None:
            columns["distance"] = self.distance.mean(axis=(0, 1))
        if y is not None:
            columns |= self._scores(y)
        return pd.DataFrame(columns, index=pd.RangeIndex(len(self.groups) + 1, name="step"))

    def _scores(self, y: ArrayLike) -> dict[str, list[float]]:
        """Return the Brier score, the calibration error and the accuracy of every step."""
        if self.classes is None:
            raise ValueError("`y` is compared with probabilities, and a regressor gives none.")
        n_orders, n, n_steps = self.predictions.shape[:3]
        truth = np.asarray(y)
        if len(truth) != n:
            raise ValueError(f"`y` must have one class for each of the {n} rows.")
        truth, labels = np.tile(truth, n_orders), {"classes": self.classes}
        if self.explained is not None:
            truth, labels = truth == self.explained, {}
        flat = self.predictions.reshape(n_orders * n, n_steps, *self.predictions.shape[3:])
        return {
            score.__name__: [score(truth, flat[:, step], **labels) for step in range(n_steps)]
            for score in (metrics.brier_score, metrics.calibration_error, metrics.accuracy)
        }

    def to_frame(self) -> pd.DataFrame:
        """Return the predictions as a table with one line for every order, row and step.

        Returns
        -------
        DataFrame
            The columns `order`, `row`, `step`, `lost` (the group that was made missing last),
            `class` (the class that is followed) and `prediction`. If all of several classes are
            followed, there is one column per class instead of the last two.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.tree import DecisionTreeRegressor
        >>> from promissing.inspection import information_loss
        >>> X = np.arange(10.0)[:, None]
        >>> model = DecisionTreeRegressor(max_depth=1).fit(X, X[:, 0] > 3)
        >>> information_loss(model, [[2.0]], orders=1).to_frame()
           order  row  step  lost  prediction
        0      0    0     0  None         0.0
        1      0    0     1     0         1.0
        """
        n_orders, n, n_steps = self.predictions.shape[:3]
        lines = [range(n_orders), self.index, range(n_steps)]
        index = pd.MultiIndex.from_product(lines, names=["order", "row", "step"])
        frame = index.to_frame(index=False)
        names = np.array([None, *self.groups], dtype=object)
        lost = np.insert(self.orders + 1, 0, 0, axis=1)[:, None].repeat(n, axis=1)
        frame["lost"] = names[lost.ravel()]
        if self.explained is not None:
            frame["class"] = self.explained
        labels: list[Any] = ["prediction"]
        if self.predictions.ndim == 4 and self.classes is not None:
            labels = self.classes.tolist()
        elif self.predictions.ndim == 4:
            labels = list(range(self.predictions.shape[3]))
        frame[labels] = self.predictions.reshape(len(frame), -1)
        return frame

    def plot(self, *, ax: Any = None, rows: Sequence[int] | None = None) -> Any:
        """Draw the trajectories of a single output, one line per row.

        Parameters
        ----------
        ax : Axes or sequence of Axes, default=None
            The axes to draw on. By default there is a new figure.
        rows : sequence of int, default=None
            The positions of the rows to draw; by default all.

        Returns
        -------
        TrajectoryDisplay
            The display.

        Examples
        --------
        >>> import matplotlib
        >>> matplotlib.use("agg")
        >>> import numpy as np
        >>> from sklearn.tree import DecisionTreeClassifier
        >>> from promissing.inspection import information_loss
        >>> X = np.arange(10.0)[:, None]
        >>> model = DecisionTreeClassifier(random_state=0).fit(X, X[:, 0] > 3)
        >>> information_loss(model, X[:3], orders=2).plot().axes_[0].get_ylabel()
        'probability of True'
        """
        from promissing.inspection.displays import TrajectoryDisplay

        return TrajectoryDisplay({"": self}).plot(ax=ax, rows=rows)


def information_loss(
    model: Any,
    X: Any,
    groups: Groups = None,
    *,
    orders: int = 100,
    target: Any = None,
    positive: Any = None,
    prior: ArrayLike | None = None,
    random_state: Any = None,
) -> Trajectories:
    """Follow the predictions while groups are made missing in random orders.

    Parameters
    ----------
    model : fitted estimator
        Any estimator that predicts with NaN in its input, as in `what_if`.
    X : DataFrame, array or list of rows of shape (n, p)
        The rows to explain. They are never modified.
    groups : mapping of str to columns, "modalities" or None, default=None
        The columns that are made missing together, as in `what_if`.
    orders : int, default=100
        The number of random orders, which are the same for all rows.
    target : label or int, default=None
        The class whose probability is followed. By default it is the positive class of two, and
        all classes if there are more. For a regressor with several outputs, it is the position of
        one output; by default all are followed.
    positive : label, default=None
        The positive class of two, as in `what_if`.
    prior : float or array-like of shape (K,), default=None
        The class shares, or the mean target, of the training data. A single number is the prior
        of the class that is followed. By default it is the `prior_` of the model, which the
        estimators of this package have.
    random_state : int, numpy Generator, RandomState or None, default=None
        The seed of the random orders.

    Returns
    -------
    Trajectories
        The predictions of every order, row and step.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from promissing.inspection import information_loss
    >>> X = np.random.default_rng(0).normal(size=(300, 4))
    >>> model = DecisionTreeClassifier(random_state=0).fit(X, X[:, 0] + X[:, 1] > 0)
    >>> result = information_loss(model, X[:5], orders=10, prior=0.5, random_state=0)
    >>> result.predictions.shape
    (10, 5, 5)
    >>> result.measures().columns.tolist()
    ['prediction', 'spread', 'distance']
    """
    expect(is_whole(orders) and orders >= 1, "orders", "a whole number >= 1", orders)
    rng = random_generator(random_state)
    predictions = MaskedPredictions(model, X, groups)
    classes, table = predictions.classes, predictions.table
    (n, size), n_outputs = table.known.shape, predictions.outputs.shape[1]
    followed: int | None = None  # The position of the output that is followed; None for all.
    single = n_outputs <= (1 if classes is None else 2)
    if target is not None or positive is not None or single:
        followed = int(predictions.target_columns(target, positive)[0])

    drawn = rng.permuted(np.tile(np.arange(size), (orders, 1)), axis=1)
    missing = drawn.argsort(axis=1)[:, None, :] < np.arange(size + 1)[:, None]
    distinct, which = _distinct(missing.reshape(-1, size))
    places: dict[int, NDArray[np.intp]] = {}  # Which mask of a row is each order and step.

    def masks() -> Iterator[tuple[int, Mask]]:
        for i, known in enumerate(table.known):
            own, places[i] = distinct, which
            if not known.all():  # Groups that were missing before make masks equal.
                own, merged = _distinct(distinct & known)
                places[i] = merged[which]
            yield i, own

    shape = (orders, n, size + 1)
    paths = np.empty(shape if followed is not None else (*shape, n_outputs))
    for i, _, out in predictions.without(masks()):
        path = out[places.pop(i)].reshape(orders, size + 1, n_outputs)
        path[:, 0] = predictions.outputs[i]
        paths[:, i] = path if followed is None else path[..., followed]
    return Trajectories(
        groups=table.groups,
        orders=drawn,
        predictions=paths,
        known=table.known,
        prior=_read_prior(model, prior, n_outputs, followed),
        classes=classes,
        index=table.index,
        explained=None if classes is None or followed is None else classes.tolist()[followed],
    )


def _distinct(masks: Mask) -> tuple[Mask, NDArray[np.intp]]:
    """Return the different rows of masks (m, G), and for each of the m its position in them."""
    # Comparing packed bytes is much faster than `np.unique(masks, axis=0)`.
    packed = np.ascontiguousarray(np.packbits(masks, axis=1))
    keys = packed.view(np.dtype((np.void, packed.shape[1])))[:, 0]
    _, first, which = np.unique(keys, return_index=True, return_inverse=True)
    return masks[first], which


def _read_prior(
    model: Any, prior: ArrayLike | None, n_outputs: int, followed: int | None
) -> float | Float | None:
    """Return the prior of the outputs that are followed: a number, or an array (K,)."""
    if prior is None:
        last = getattr(model, "steps", [("", model)])[-1][1]
        prior = getattr(last, "prior_", None)
        if prior is None:
            return None
    values = np.asarray(prior, dtype=np.float64)
    if followed is not None and values.size == 1:
        return values.item()
    if values.shape == (n_outputs,):
        return values if followed is None else float(values[followed])
    raise ValueError(
        f"`prior` must have one number for each of the {n_outputs} outputs of the model. "
        f"Received: {np.asarray(prior).tolist()}"
    )
