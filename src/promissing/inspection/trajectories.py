"""How predictions fade as more and more becomes unknown."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from promissing import metrics as knowing
from promissing._validation import expect, is_whole
from promissing.encoding.columns import Float, Key
from promissing.inspection.asking import Inquiry
from promissing.inspection.blanking import Groups
from promissing.inspection.shapley import generator
from promissing.missingness import Mask

__all__ = ["Trajectories", "information_loss"]

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Trajectories:
    """Predictions as groups vanish one by one: what `information_loss` returns.

    Attributes
    ----------
    groups : tuple
        The names of the G groups.
    orders : ndarray of int (orders, G)
        The order in which the groups, by position, vanish.
    predictions : ndarray (orders, n, G + 1) or (orders, n, G + 1, K)
        From complete information at step 0 to none at step G. The last axis, of the probabilities
        of all classes, is there only for more than two classes (or outputs) and no `target`.
    known : ndarray of bool (n, G)
        Whether anything of the group was known in the row to begin with.
    prior : float, ndarray (K,) or None
        What is to be expected of somebody of whom nothing is known.
    classes : ndarray (K,) or None
        The classes of the model; None for a regressor.
    index : ndarray (n,)
        The index of the rows.
    explained : label or None
        The class whose probability is followed: of two classes the positive one. None if all of
        several classes are followed, and for a regressor.
    """

    groups: tuple[Key, ...]
    orders: NDArray[np.intp]
    predictions: Float
    known: Mask
    prior: float | Float | None
    classes: Array | None
    index: Array
    explained: Any = None

    @property
    def mean(self) -> Float:
        """The mean trajectory of every row, (n, G + 1) or (n, G + 1, K)."""
        return np.asarray(self.predictions.mean(axis=0))

    @property
    def spread(self) -> Float:
        """The standard deviation over the orders, in the shape of `mean`."""
        return np.asarray(self.predictions.std(axis=0))

    @property
    def share_missing(self) -> Float:
        """The share of the groups that is unknown at every step, (orders, n, G + 1)."""
        lost = self.known[:, self.orders].swapaxes(0, 1).cumsum(axis=2)
        lost = np.insert(lost, 0, 0, axis=2)
        return np.asarray((lost + (~self.known).sum(axis=1)[:, None]) / len(self.groups))

    @property
    def distance(self) -> Float:
        """How far predictions are from the prior, (orders, n, G + 1).

        See `promissing.metrics.distance_from_prior`.
        """
        if self.prior is None:
            raise ValueError(
                "The model does not tell its prior. Give `information_loss(..., prior=...)`: the "
                "class shares, or the mean target, of the data it was trained on."
            )
        return knowing.distance_from_prior(self.predictions, self.prior)

    @property
    def monotonicity(self) -> knowing.Monotonicity:
        """Whether the distance from the prior falls from step to step, on average."""
        return knowing.monotonicity(self.distance)

    def measures(self, y: ArrayLike | None = None) -> pd.DataFrame:
        """Measures of knowing by step, over all rows and orders.

        Parameters
        ----------
        y : array-like (n,), optional
            The true classes. If one of several classes is followed, it is compared with the rest.

        Returns
        -------
        DataFrame
            By step: the mean `prediction` (of the class `explained`, or of the number) and its
            `spread` over the orders; the `distance` from the prior if there is one; for
            probabilities and with `y` also `brier_score`, `calibration_error` and `accuracy`, as in
            `promissing.metrics`.
        """
        single = self.predictions.ndim == 3
        columns: dict[str, Any] = {}
        if single:
            columns["prediction"] = self.mean.mean(axis=0)
            columns["spread"] = self.spread.mean(axis=0)
        if self.prior is not None:
            columns["distance"] = self.distance.mean(axis=(0, 1))
        if y is not None:
            columns |= self._scores(y)
        frame = pd.DataFrame(columns, index=range(len(self.groups) + 1))
        return frame.rename_axis(index="step")

    def _scores(self, y: ArrayLike) -> dict[str, list[float]]:
        if self.classes is None:
            raise ValueError("`y` is compared with probabilities, and a regressor gives none.")
        n_orders, n = self.predictions.shape[:2]
        truth = np.tile(np.asarray(y), n_orders)
        if len(truth) != n * n_orders:
            raise ValueError(f"`y` must have one class for each of the {n} rows.")
        known: dict[str, Any] = {"classes": self.classes}
        if self.explained is not None:
            truth, known = truth == self.explained, {}
        steps = range(self.predictions.shape[2])
        flat = [
            self.predictions[:, :, t].reshape(len(truth), *self.predictions.shape[3:])
            for t in steps
        ]
        return {
            measure.__name__: [measure(truth, p, **known) for p in flat]
            for measure in (knowing.brier_score, knowing.calibration_error, knowing.accuracy)
        }

    def to_frame(self) -> pd.DataFrame:
        """One line for every order, row and step: what vanished last, and the prediction.

        Returns
        -------
        DataFrame
            With the columns `order`, `row`, `step`, `lost` and `prediction`; `class` names the
            class that is followed. If all of several classes are followed, there is one column for
            each, named after it.
        """
        n_orders, n, n_steps = self.predictions.shape[:3]
        names = np.array([None, *self.groups], dtype=object)
        lost = np.insert(self.orders + 1, 0, 0, axis=1)[:, None].repeat(n, axis=1)
        columns: dict[Any, Any] = {
            "order": np.repeat(np.arange(n_orders), n * n_steps),
            "row": np.tile(np.repeat(self.index, n_steps), n_orders),
            "step": np.tile(np.arange(n_steps), n_orders * n),
            "lost": names[lost.ravel()],
        }
        if self.predictions.ndim == 3:
            if self.explained is not None:
                columns["class"] = self.explained
            columns["prediction"] = self.predictions.ravel()
        else:
            count = self.predictions.shape[3]
            labels = range(count) if self.classes is None else self.classes.tolist()
            columns |= {label: self.predictions[..., k].ravel() for k, label in enumerate(labels)}
        return pd.DataFrame(columns)


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
    """Trajectories of the prediction as groups vanish in random order, until nothing is left.

    Parameters
    ----------
    model, X, groups
        As in `what_if`.
    orders : int, default=100
        How many random orders, the same for all rows.
    target : optional
        The class whose probability is followed, by its label. By default the positive one of two
        classes, and all of several; of a regressor all outputs.
    positive : label, optional
        The positive one of two classes, as in `what_if`.
    prior : float or array (K,), optional
        The class shares, or the mean target, of the data the model was trained on; a single number
        is the prior of the class that is followed. By default the model's `prior_`, which our
        estimators have.
    random_state : int, numpy Generator, RandomState or None, default=None
        The seed of the orders.

    Returns
    -------
    Trajectories

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.ensemble import HistGradientBoostingClassifier
    >>> from promissing.inspection import information_loss
    >>> X = np.random.default_rng(0).normal(size=(300, 4))
    >>> model = HistGradientBoostingClassifier(max_iter=20).fit(X, X[:, 0] + X[:, 1] > 0)
    >>> result = information_loss(model, X[:5], orders=10, prior=0.5, random_state=0)
    >>> result.predictions.shape
    (10, 5, 5)
    >>> result.measures().columns.tolist()
    ['prediction', 'spread', 'distance']
    """
    expect(is_whole(orders) and orders >= 1, "orders", "a whole number >= 1", orders)
    rng = generator(random_state)
    inquiry = Inquiry(model, X, groups)
    blanks, base = inquiry.blanks, inquiry.base
    n, size = blanks.known.shape
    n_outputs = base.shape[1]
    chosen: int | None = None  # The output that is followed; None for all.
    single = n_outputs <= (1 if inquiry.classes is None else 2)
    if target is not None or positive is not None or single:
        chosen = int(inquiry.target_columns(target, positive)[0])
    followed = None if chosen is None or inquiry.classes is None else inquiry.classes[chosen]

    drawn = rng.permuted(np.tile(np.arange(size), (orders, 1)), axis=1)
    gone = drawn.argsort(axis=1)[:, None, :] < np.arange(size + 1)[:, None]
    sets, which = _distinct(gone.reshape(-1, size))
    waiting: deque[NDArray[np.intp]] = deque()  # Where the answers to a piece belong.

    def pieces() -> Iterator[tuple[int, Mask]]:
        for i, here in enumerate(blanks.known):
            own, places = sets, which
            if not here.all():  # What was unknown makes no difference: fewer sets do.
                own, merged = _distinct(sets & here)
                places = merged[which]
            waiting.append(places)
            yield i, own

    shape = (orders, n, size + 1)
    predictions = np.empty(shape if chosen is not None else (*shape, n_outputs))
    for i, out in enumerate(inquiry.answers(pieces())):
        path = out[waiting.popleft()].reshape(orders, size + 1, n_outputs)
        path[:, 0] = base[i]
        predictions[:, i] = path if chosen is None else path[..., chosen]
    return Trajectories(
        groups=blanks.names,
        orders=drawn,
        predictions=predictions,
        known=blanks.known,
        prior=_read_prior(model, prior, n_outputs, chosen),
        classes=inquiry.classes,
        index=blanks.index,
        explained=followed.item() if isinstance(followed, np.generic) else followed,
    )


def _distinct(sets: Mask) -> tuple[Mask, NDArray[np.intp]]:
    """The different ones among sets (m, G), and for each of the m which of them it is."""
    packed = np.ascontiguousarray(np.packbits(sets, axis=1))
    keys = packed.view(np.dtype((np.void, packed.shape[1])))[:, 0]
    _, first, which = np.unique(keys, return_index=True, return_inverse=True)
    return sets[first], which


def _read_prior(
    model: Any, given: ArrayLike | None, n_outputs: int, chosen: int | None
) -> float | Float | None:
    """The prior of what is followed: a number, or an array (K,)."""
    if given is None:
        steps = getattr(model, "steps", None)
        given = getattr(steps[-1][1] if steps else model, "prior_", None)
        if given is None:
            return None
    prior = np.asarray(given, dtype=np.float64)
    if chosen is not None:
        if prior.size == 1:
            return prior.item()
        if prior.shape == (n_outputs,):
            return float(prior[chosen])
    elif prior.shape == (n_outputs,):
        return prior
    raise ValueError(
        f"`prior` must have one number for each of the {n_outputs} outputs of the model. "
        f"Received: {np.asarray(given).tolist()}"
    )
