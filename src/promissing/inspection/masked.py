"""Predictions of a fitted model for rows in which groups of columns are made missing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.exceptions import NotFittedError

from promissing._validation import expect
from promissing.encoding.columns import Float, Key
from promissing.missingness import Columns, Mask, Source, observed, open_source, positions, remove

__all__ = ["Groups", "MaskedPredictions", "MaskedTable", "long_frame", "random_generator"]

Groups: TypeAlias = Mapping[str, Columns] | str | None

_BLOCK_CELLS = 2**22  # Cells predicted at a time: 32 MB of numbers.
_BLOCK_ROWS = 100_000
_PROBE_ROWS = 8
_ONE_TARGET = "{} must predict one target: a class, or a number, for every row."


class MaskedPredictions:
    """A fitted model and a table, for predictions with some groups of columns made missing.

    Attributes
    ----------
    table : MaskedTable
        The table and its G groups of columns.
    outputs : ndarray (n, K)
        The outputs for the table as it is. They are class probabilities, or decision scores (-s
        and s for two classes) of a classifier without `predict_proba`, or predicted numbers. With
        `with_std`, they are the predicted number and its standard deviation.
    classes : ndarray (K,) or None
        The classes; None for a regressor.
    decision : ndarray of int (n,) or None
        The position of the most probable class; None for a regressor.
    """

    def __init__(
        self, model: Any, X: Any, groups: Groups = None, *, with_std: bool = False
    ) -> None:
        self._model = model
        self._options = {"return_std": True} if with_std else {}
        steps = [type(step).__name__ for _, step in getattr(model, "steps", [])]
        self._name = type(model).__name__ + (f" ({', '.join(steps)})" if steps else "")
        self.classes, self._method = _classes_and_method(model, self._name)
        self.table = MaskedTable(X, groups, model)
        # Our own models do not need a masked copy of every row.
        own = hasattr(model, "predict_masked")
        self._block_rows = _BLOCK_ROWS if own else self.table.block_rows
        self.outputs = self._predict(self.table.X, complete=self.table.complete)
        self.decision = None if self.classes is None else self.outputs.argmax(axis=1)
        self._probe()

    def without(self, masks: Iterable[tuple[Any, Mask]]) -> Iterator[tuple[Any, Mask, Float]]:
        """Yield the row, its masks (s, G) and the outputs (s, K), for every pair of row and masks.

        A mask is True for the groups that are made missing. Instead of a row, there may be one row
        (s,) for every mask. Pairs are collected into blocks, and the model predicts one block at a
        time.
        """
        block: list[tuple[Any, Mask]] = []
        size = 0
        for row, missing in masks:
            if block and size + len(missing) > self._block_rows:
                yield from self._predict_block(block)
                block, size = [], 0
            block.append((row, missing))
            size += len(missing)
        if block:
            yield from self._predict_block(block)

    def _predict_block(self, block: list[tuple[Any, Mask]]) -> Iterator[tuple[Any, Mask, Float]]:
        sizes = [len(missing) for _, missing in block]
        rows = np.concatenate(
            [np.broadcast_to(r, n) for (r, _), n in zip(block, sizes, strict=True)]
        )
        missing = np.concatenate([missing for _, missing in block])
        outputs = np.split(self.pairs(rows, missing), np.cumsum(sizes)[:-1])
        return ((row, masks, out) for (row, masks), out in zip(block, outputs, strict=True))

    def pairs(self, rows: NDArray[np.intp], missing: Mask) -> Float:
        """Return the outputs (N, K) of rows (N,), each without the groups True in (N, G)."""
        step = self._block_rows
        parts = [np.empty((0, self.outputs.shape[1]))]
        for start in range(0, len(rows), step):
            part = slice(start, start + step)
            parts.append(self._predict_masked(rows[part], missing[part]))
        return np.concatenate(parts)

    def under(self, masks: Mask) -> Float:
        """Return the outputs (n, m, K) of every row under its masks (n, m, G)."""
        n, m, size = masks.shape
        rows = np.repeat(np.arange(n), m)
        outputs = self.pairs(rows, masks.reshape(n * m, size))
        return outputs.reshape(n, m, self.outputs.shape[1])

    def _predict_masked(self, rows: NDArray[np.intp], missing: Mask) -> Float:
        """Return the outputs (m, K) of rows (m,) without the groups that are True in (m, G)."""
        if not hasattr(self._model, "predict_masked"):
            return self._predict(self.table.without(rows, missing))
        # Our own models predict many masks of the same row faster than masked rows.
        own, position = np.unique(rows, return_inverse=True)
        X = self.table.without(own, np.zeros((len(own), missing.shape[1]), bool))
        order = np.argsort(position, kind="stable")
        outputs = np.empty((len(rows), self.outputs.shape[1]))
        outputs[order] = self._predict(X, masks=(position[order], missing[order]))
        return outputs

    def _predict(self, X: Any, *, complete: bool = False, masks: Any = None) -> Float:
        """Return the outputs (n, K) of the model: the only place that calls it."""
        try:
            if masks is None:
                raw = getattr(self._model, self._method)(X, **self._options)
            else:
                units = self.table.group_of
                raw = self._model.predict_masked(X, *masks, units=units, **self._options)
        except (NotFittedError, Warning):
            raise
        except Exception as error:
            if complete:
                raise
            raise ValueError(self._cannot(f"the error was: {error}")) from error
        out = np.asarray(np.column_stack(raw) if self._options else raw, dtype=np.float64)
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
        """Try a few rows as they are and with all groups missing, before any long work."""
        rows = np.arange(min(_PROBE_ROWS, len(self.outputs)))
        missing = np.zeros((2 * len(rows), len(self.table.groups)), bool)
        missing[len(rows) :] = True
        out = self._predict(self.table.without(np.tile(rows, 2), missing))
        if not np.isfinite(out).all():
            raise ValueError(self._cannot("it predicts NaN"))
        if not np.allclose(out[: len(rows)], self.outputs[rows], rtol=1e-4, atol=1e-6):
            raise ValueError(
                f"The predictions of {self._name} change when columns get a dtype that can hold "
                f"missing values (int64: float64, bool: boolean). Train it on such dtypes, and "
                f"give X with them."
            )

    def _cannot(self, why: str) -> str:
        last = getattr(self._model, "steps", [("", self._model)])[-1][1]
        if getattr(last, "min_known", 0):
            return (
                f"{self._name} refuses rows with too few known values, and values are made "
                f"missing here. Set `min_known=0` on it before; {why}"
            )
        return (
            f"{self._name} cannot predict where values are missing, and values are made missing "
            f"here; {why}\nPut an imputer before it, as in "
            f"`make_pipeline(SimpleImputer(), "
            f"model)`, or use a model that accepts NaN, such as NanMLPClassifier or "
            f"HistGradientBoostingClassifier."
        )

    def target_columns(self, target: Any, positive: Any) -> NDArray[np.intp]:
        """Return the position (n,) of the output that is explained in every row."""
        n, n_outputs = self.outputs.shape
        choices = list(range(n_outputs)) if self.classes is None else self.classes.tolist()
        if positive is not None:
            if self.classes is None or n_outputs != 2:
                what = "predicts a number" if self.classes is None else "has more than two classes"
                raise ValueError(
                    f"`positive` names one of two classes, and {self._name} {what}. "
                    f"Received: {positive!r}"
                )
            expect(positive in choices, "positive", f"one of the classes {choices}", positive)
            if target is not None and target != positive:
                raise ValueError(
                    f"`target={target!r}` and `positive={positive!r}` name different classes. The "
                    "probability of the positive class is explained: give one of them."
                )
            target = positive
        elif target is None and self.decision is not None and n_outputs > 2:
            return np.asarray(self.decision)
        elif target is None and (self.decision is not None or n_outputs == 1):
            target = choices[-1]
        expected = f"one of the classes {choices}"
        if self.classes is None:
            expected = f"the position of one of the {n_outputs} outputs of {self._name}"
        expect(target in choices, "target", expected, target)
        return np.full(n, choices.index(target))

    def explained(self, columns: NDArray[np.intp]) -> NDArray[Any] | None:
        """Return the class of the explained output of every row; None for a regressor."""
        return None if self.classes is None else np.asarray(self.classes[columns])


class MaskedTable:
    """A table of n rows in which any of G groups of columns can be made missing.

    Attributes
    ----------
    X : frame or array
        The table itself.
    groups : tuple
        The names of the groups.
    known : ndarray of bool (n, G)
        Whether any value of a group is known in a row.
    complete : bool
        Whether the table has no missing values.
    index : ndarray (n,)
        The index of the rows.
    block_rows : int
        The number of rows that a model should predict at a time.
    group_of : ndarray of int (p,)
        The position of the group of each column; -1 for a column in no group.
    """

    def __init__(self, X: Any, groups: Groups, model: Any) -> None:
        source = open_source(X)
        self.X, (n, p) = source.X, source.table.shape
        members = _read_groups(source, groups, model)
        self.groups: tuple[Key, ...] = tuple(members)
        cells = observed(source, range(p))
        self.complete = bool(cells.all())
        self.known = np.column_stack([cells[:, own].any(axis=1) for own in members.values()])
        framed = isinstance(self.X, pd.DataFrame)
        self.index = self.X.index.to_numpy() if framed else np.arange(n)
        self.block_rows = min(max(1, _BLOCK_CELLS // p), _BLOCK_ROWS)
        self.group_of = np.full(p, -1)  # -1: the column is in no group.
        for g, own in enumerate(members.values()):
            self.group_of[own] = g
        # One more row, with all groups missing. Cells are made missing by copying from it, so
        # that a column that needs another dtype gets it once, and for all rows.
        mask = np.zeros((n + 1, p), bool)
        mask[n] = self.group_of >= 0
        rows = np.append(np.arange(n), 0)
        longer = self.X.take(rows).reset_index(drop=True) if framed else self.X[rows]
        self._table = remove(longer, mask)
        self._columns = _columns_of(self._table)

    def without(self, rows: NDArray[np.intp], missing: Mask) -> Any:
        """Return the given rows (m,), each without the groups that are True in its mask (m, G)."""
        if isinstance(self._table, np.ndarray):
            # `take` and `copyto` are several times faster than indexing and `where`.
            never = np.zeros((len(rows), 1), bool)
            cells = np.hstack([missing, never]).take(self.group_of, axis=1)
            out = self._table.take(rows, axis=0)
            np.copyto(out, self._table[-1], where=cells)
            return out
        last = len(self._table) - 1
        # The rows to take for each group; the last are those for columns in no group.
        places = [np.where(lost, last, rows) for lost in np.ascontiguousarray(missing.T)] + [rows]
        columns = [
            column.gather(places[g]) if hasattr(column, "gather") else column.take(places[g])
            for column, g in zip(self._columns, self.group_of, strict=True)
        ]
        if isinstance(self._table, pd.DataFrame):
            frame = pd.DataFrame(dict(enumerate(columns)), copy=False)
            frame.columns = self._table.columns
            return frame
        return type(self._table)(columns)


def _columns_of(table: Any) -> list[Any]:
    """Return the columns of a frame as arrays, or as series of polars; none for an array."""
    if isinstance(table, np.ndarray):
        return []
    if isinstance(table, pd.DataFrame):
        columns = [series for _, series in table.items()]
        return [c.to_numpy() if isinstance(c.dtype, np.dtype) else c.array for c in columns]
    return list(table.get_columns())


def _read_groups(source: Source, groups: Groups, model: Any) -> dict[Key, list[int]]:
    """Find the positions of the columns of every group."""
    if groups is None:
        return {name: [j] for j, name in enumerate(source.names)}
    if isinstance(groups, str):
        expect(groups == "modalities", "groups", 'a mapping, "modalities" or None', groups)
        groups = getattr(model, "modalities_", None)
        if groups is None:
            raise ValueError(
                f'`groups="modalities"` needs a model with modalities, and '
                f"{type(model).__name__} has none. Give a mapping of names to columns."
            )
    good = isinstance(groups, Mapping) and len(groups) > 0
    expect(good, "groups", "a mapping with at least one group", groups)
    found: dict[Key, list[int]] = {}
    owner: dict[int, Any] = {}
    for name, columns in groups.items():
        found[name] = positions(source, columns, f"groups[{name!r}]")
        if not found[name]:
            raise ValueError(f"`groups[{name!r}]` has no columns. Name some, or leave it out.")
        for j in found[name]:
            if j in owner:
                where = f"{owner[j]!r} and {name!r}" if owner[j] != name else f"{name!r}, twice"
                raise ValueError(
                    f"`groups`: column {source.names[j]!r} is in {where}. A column can be in one "
                    f"group only."
                )
            owner[j] = name
    return found


def _classes_and_method(model: Any, name: str) -> tuple[NDArray[Any] | None, str]:
    """Find the classes of a model, None for a regressor, and the method that gives its outputs."""
    classes = getattr(model, "classes_", None)
    if isinstance(classes, list):  # One array of classes for each of several targets.
        raise ValueError(_ONE_TARGET.format(name))
    if classes is not None and len(classes) == 0:
        classes = None  # CatBoost's regressors have an empty array.
    if classes is None:
        methods = ("decision_function", "predict")
    else:
        methods = ("predict_proba", "decision_function")
    for method in methods:
        if hasattr(model, method):
            return (None if classes is None else np.asarray(classes)), method
    raise TypeError(
        f"`model` must have {methods[0]} or {methods[1]}; {name} has neither. Classifiers are "
        f"explained by probabilities or scores: CalibratedClassifierCV adds probabilities."
    )


def long_frame(result: Any, columns: dict[str, Any]) -> pd.DataFrame:
    """Return one line per row and group of a result, with the given columns (n, G) at the end."""
    n, size = result.known.shape
    names = np.empty(size, dtype=object)  # Names may be tuples, which `np.array` would unpack.
    names[:] = result.groups
    frame = {
        "row": np.repeat(result.index, size),
        "group": np.tile(names, n),
        "known": result.known.ravel(),
    }
    if result.explained is not None:
        frame["class"] = np.repeat(result.explained, size)
    return pd.DataFrame(frame | {name: values.ravel() for name, values in columns.items()})


def random_generator(random_state: Any) -> np.random.Generator:
    """Return a generator from anything that scikit-learn or NumPy takes as a random state."""
    if isinstance(random_state, np.random.RandomState):
        random_state = random_state.randint(2**31 - 1)
    return np.random.default_rng(random_state)
