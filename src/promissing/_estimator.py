"""What every estimator does: it is trained, predicts in NumPy, and is kept in a file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from promissing._fitting import Fitting
from promissing._networks import evaluate_members
from promissing._targets import Classes
from promissing._warn import listed, warn

__all__ = ["NanEstimator"]

Array = NDArray[Any]

# Cells encoded at a time to predict, 32 MB, in whole blocks of the rows networks are evaluated on.
CELLS, ROWS = 2**22, 2048


class NanEstimator(Fitting, BaseEstimator):
    """Base of the estimators; see `Fitting` for what a subclass defines."""

    # What persist writes and reads besides the weights, and makes of the classes.
    _facts: tuple[str, ...] = (
        "loss_curve_",
        "validation_loss_curve_",
        "loss_",
        "best_loss_",
        "n_iter_",
        "n_outputs_",
    )
    _classes_type = Classes
    # What else stood for missing in the file it was fitted on; the command line knows, and asks.
    missing_values_: tuple[str, ...] = ()

    def _outputs(self, X: Any, network: Any = None) -> NDArray[np.float64]:
        """The outputs of all members, (members, n, k); of another part of the network if given."""
        check_is_fitted(self)
        network = self._network if network is None else network
        absent, outputs = [], []
        for block in self._encoded_blocks(X):
            absent.append(np.isnan(block[:, self._first_columns()]))
            outputs.append(evaluate_members(network, self.params_, block))
        self._say_what_is_new(np.concatenate(absent))
        return np.concatenate(outputs, axis=1)

    def _encoded_blocks(self, X: Any) -> Iterator[Array]:
        """The encoded table, some rows at a time: it may be 50 times as large as X."""
        table = self._open(X)
        step = max(1, CELLS // self.encoder_.n_columns_out_ // ROWS) * ROWS
        for start in range(0, table.shape[0], step):
            yield self.encoder_._encode(table, np.float64, slice(start, start + step))

    def _say_what_is_new(self, absent: Array) -> None:
        """Warn of gaps that training never saw; refuse rows of which too little is known.

        `absent` (n, F) says what is missing.
        """
        new = self._in_use() & ~self.encoder_.gaps_in_training_
        if not self._learns_gaps() and new.any():
            columns = np.flatnonzero(absent.any(axis=0) & new)
            names = [str(self.encoder_._key(int(j))) for j in columns]
            names = [name for name in names if name not in self._warned]
            if names:
                self._warned.update(names)
                warn(
                    f"{listed(names)} had no gap in training and now there is: the model has not "
                    "learnt what that means. Train with `augment` to teach it."
                )
        if self.min_known > 0:
            known = self._known_share(absent)
            poor = np.flatnonzero(known < self.min_known)
            if len(poor):
                raise ValueError(
                    f"{len(poor)} of {len(absent)} rows are known less than min_known="
                    f"{self.min_known}: row {poor[0]} to {known[poor[0]]:.2f}. Leave such rows out "
                    "(see `known_share`), or lower `min_known`."
                )

    def known_share(self, X: Any) -> NDArray[np.float64]:
        """How much of each row is known: the share of its features that is observed, (n,).

        Features that were never observed in training do not count.
        """
        check_is_fitted(self)
        first = self._first_columns()
        absent = [np.isnan(block[:, first]) for block in self._encoded_blocks(X)]
        return self._known_share(np.concatenate(absent))

    def _known_share(self, absent: Array) -> NDArray[np.float64]:
        # Nothing was learnt of what training never observed, and nothing is read there.
        which = self._in_use() & self.encoder_._observed
        known = ~absent[:, which]
        return np.asarray(known.mean(axis=1) if which.any() else np.zeros(len(absent)))

    def _learns_gaps(self) -> bool:
        """Whether training made gaps in every column."""
        return bool(self.augment)

    def _in_use(self) -> NDArray[np.bool_]:
        """Which features the network looks at."""
        return np.ones(self.encoder_.n_features_in_, bool)

    def _storable_params(self) -> dict[str, Any]:
        """The parameters as a file is to hold them."""
        return dict(self.get_params(deep=False))

    def _restored(self) -> None:
        """Complete a model that was read from a file, or refuse what does not fit together."""

    def save(self, path: str | Path) -> None:
        """Write the fitted model to one safetensors file; see `promissing.load`."""
        from promissing import persist

        persist.save(self, path)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a model of this class from a file that `save` wrote. Nothing in it is executed."""
        from promissing import persist

        model = persist.load(path)
        if not isinstance(model, cls):
            raise ValueError(
                f"{path} holds a {type(model).__name__}, not a {cls.__name__}. Use "
                "`promissing.load` to read a model of any class."
            )
        return model

    def __getstate__(self) -> dict[str, Any]:
        state = super().__getstate__()
        state["_warned"] = set()
        return dict(state)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "params_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        return tags
