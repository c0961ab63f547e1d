"""Models, asked what they predict when something is unknown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import NotFittedError

from promissing.encoding.columns import Float
from promissing.inspection.blanking import Blanks, Groups
from promissing.missingness import Mask

__all__ = ["Inquiry"]

_PROBED = 8  # Rows tried before any work is done.
_ONE_TARGET = "{} must predict one target: a class, or a number, for every row."


class Inquiry:
    """A model and a table, opened for questions of the form "and if these were unknown?".

    Attributes
    ----------
    blanks : Blanks
    base : ndarray (n, K)
        The outputs for the table as it is: the probabilities of the classes; without
        `predict_proba` their scores (for two classes -s and s); for a regressor its predictions.
    classes : ndarray (K,) or None
        None for a regressor.
    decision : ndarray of int (n,) or None
        Which class is the most probable.
    """

    def __init__(self, model: Any, X: Any, groups: Groups) -> None:
        self._name = _name_of(model)
        self.classes, self._method = _open_model(model, self._name)
        self._model = model
        self.blanks = blanks = Blanks(X, groups, model)
        self.base = self._ask(blanks.X, gaps=not blanks.complete)
        self._probe()
        self.decision = None if self.classes is None else self.base.argmax(axis=1)

    def answers(self, pieces: Iterable[tuple[int, Mask]]) -> Iterator[Float]:
        """The outputs (s, K) for every piece: a row, and s sets (s, G) of groups to be unknown.

        Pieces are gathered into blocks, and the model is asked once for a block.
        """
        waiting: list[tuple[int, Mask]] = []
        size = 0
        for row, gone in pieces:
            if waiting and size + len(gone) > self.blanks.block_rows:
                yield from self._answer(waiting)
                waiting, size = [], 0
            waiting.append((row, gone))
            size += len(gone)
        if waiting:
            yield from self._answer(waiting)

    def _answer(self, pieces: list[tuple[int, Mask]]) -> list[Float]:
        sizes = [len(gone) for _, gone in pieces]
        rows = np.repeat([row for row, _ in pieces], sizes)
        gone = np.concatenate([gone for _, gone in pieces])
        step = self.blanks.block_rows
        parts = [np.empty((0, self.base.shape[1]))]
        for start in range(0, len(rows), step):
            block = slice(start, start + step)
            parts.append(self._ask(self.blanks.without(rows[block], gone[block]), gaps=True))
        return np.split(np.concatenate(parts), np.cumsum(sizes)[:-1])

    def _ask(self, table: Any, *, gaps: bool) -> Float:
        try:
            raw = getattr(self._model, self._method)(table)
        except (NotFittedError, Warning):
            raise
        except Exception as error:
            if not gaps:
                raise
            raise ValueError(self._cannot(f"it says: {error}")) from error
        out = np.asarray(raw, dtype=np.float64)
        if out.ndim == 1:
            out = out[:, None] if self.classes is None else np.column_stack([-out, out])
        if self.classes is not None:
            one_each = out.shape[1] == len(self.classes)
            if self._method == "predict_proba":  # Those of several labels need not sum to 1.
                one_each = one_each and not (np.abs(out.sum(axis=1) - 1) > 1e-3).any()
            if not one_each:
                raise ValueError(_ONE_TARGET.format(self._name))
        return out

    def _probe(self) -> None:
        """Try a few rows as they are and with nothing known, before any work is done."""
        few = np.arange(min(_PROBED, len(self.base)))
        gone = np.zeros((2 * len(few), len(self.blanks.names)), bool)
        gone[len(few) :] = True
        out = self._ask(self.blanks.without(np.tile(few, 2), gone), gaps=True)
        if not np.isfinite(out).all():
            raise ValueError(self._cannot("it predicts NaN"))
        if not np.allclose(out[: len(few)], self.base[few], rtol=1e-4, atol=1e-6):
            raise ValueError(
                f"{self._name} predicts otherwise once columns have the dtype that a gap demands "
                f"(int64: float64, bool: boolean). Give X, and train, with such dtypes."
            )

    def _cannot(self, why: str) -> str:
        last = getattr(self._model, "steps", [("", self._model)])[-1][1]
        if getattr(last, "min_known", 0):
            return (
                f"{self._name} refuses rows of which too little is known, and explaining makes "
                f"values unknown. Set `min_known=0` on it before; {why}"
            )
        return (
            f"{self._name} cannot predict where values are missing, and explaining makes values "
            f"missing; {why}\nPut an imputer before it, as in `make_pipeline(SimpleImputer(), "
            f"model)`, or take a model that accepts NaN, such as NanMLPClassifier or "
            f"HistGradientBoostingClassifier."
        )

    def target_columns(self, target: Any, positive: Any = None) -> NDArray[np.intp]:
        """Which output (n,) is explained in every row.

        Of two classes that of the positive one, by default the second; of several by default the
        predicted one.
        """
        (n, n_outputs), column = self.base.shape, None
        if positive is not None:
            self._check_positive(positive, target)
            target = positive
        if self.classes is not None:
            if target is None:
                if self.decision is not None and n_outputs > 2:
                    return np.asarray(self.decision)
                column = n_outputs - 1
            else:
                labels = self.classes.tolist()
                column = labels.index(target) if target in labels else None
            known = f"one of the classes {self.classes.tolist()}"
        else:
            if target is None and n_outputs == 1:
                column = 0
            elif isinstance(target, int | np.integer) and 0 <= target < n_outputs:
                column = int(target)
            known = f"the position of one of the {n_outputs} outputs of {self._name}"
        if column is None:
            raise ValueError(f"`target` must be {known}. Received: {target!r}")
        return np.full(n, column)

    def explained(self, columns: NDArray[np.intp]) -> NDArray[Any] | None:
        """The class whose output is explained in every row; None for a regressor."""
        return None if self.classes is None else np.asarray(self.classes[columns])

    def _check_positive(self, positive: Any, target: Any) -> None:
        if self.classes is None or len(self.classes) != 2:
            what = "predicts a number" if self.classes is None else "has more than two classes"
            raise ValueError(
                f"`positive` names one of two classes, and {self._name} {what}. "
                f"Received: {positive!r}"
            )
        if positive not in self.classes.tolist():
            raise ValueError(
                f"`positive` must be one of the classes {self.classes.tolist()}. "
                f"Received: {positive!r}"
            )
        if target is not None and target != positive:
            raise ValueError(
                f"`target={target!r}` and `positive={positive!r}` name different classes. The "
                "probability of the positive class is explained: give one of them."
            )


def _name_of(model: Any) -> str:
    steps = [type(step).__name__ for _, step in getattr(model, "steps", [])]
    return type(model).__name__ + (f" ({', '.join(steps)})" if steps else "")


def _open_model(model: Any, name: str) -> tuple[Any, str]:
    """Find the classes of a model, None if it has none, and the method that gives its outputs."""
    classes = getattr(model, "classes_", None)
    if isinstance(classes, list):  # One array of classes for each of several targets.
        raise ValueError(_ONE_TARGET.format(name))
    if classes is None:
        wanted = ("decision_function", "predict")
    else:
        wanted = ("predict_proba", "decision_function")
    for method in wanted:
        if hasattr(model, method):
            return (None if classes is None else np.asarray(classes)), method
    raise TypeError(
        f"`model` must have {wanted[0]} or {wanted[1]}; {name} has neither. A classifier is "
        f"explained by probabilities or scores: CalibratedClassifierCV gives it the former."
    )
