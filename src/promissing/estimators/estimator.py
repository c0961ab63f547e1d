"""What every estimator does: it is trained, predicts in NumPy, and is kept in a file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from promissing._validation import listed, warn
from promissing.estimators.fitting import Fitting
from promissing.networks.base import evaluate_members
from promissing.networks.targets import Classes

__all__ = ["NanEstimator", "SelectivePrediction"]

Array = NDArray[Any]

# Cells encoded at a time to predict, 32 MB, in whole blocks of the rows networks are evaluated on.
CELLS, ROWS = 2**22, 2048


# The correction to the prior grows with this power of the share of a row that is missing. In trials
# with 800 training rows, 1, 2 and 4 are level for the default. Without augmentation, 4 has the
# lowest log loss on rows with half or more missing, and changes nearly complete rows the least.
PRIOR_POWER = 4


@dataclass(frozen=True, eq=False)
class SelectivePrediction:
    """Predictions of a model that may abstain.

    Attributes
    ----------
    prediction : ndarray (n,) or (n, k)
        The predictions. Where the model abstains, NaN for a number and None for a class.
    known_share : ndarray (n,)
        The share of the features of each row that is known.
    abstained : ndarray of bool (n,)
        The rows the model abstains from.
    reason : ndarray of str (n,)
        Why it abstains; empty where it does not.
    """

    prediction: Array
    known_share: NDArray[np.float64]
    abstained: NDArray[np.bool_]
    reason: Array

    def to_frame(self) -> Any:
        """Return the result as a frame with one row per row of X.

        Returns
        -------
        pandas.DataFrame
            The columns are "prediction" (or "prediction_0", ... for several outputs),
            "known_share", "abstained" and "reason".
        """
        columns: dict[str, Any] = {"prediction": self.prediction}
        if self.prediction.ndim == 2:
            columns = {f"prediction_{k}": p for k, p in enumerate(self.prediction.T)}
        columns |= {"known_share": self.known_share, "abstained": self.abstained}
        return pd.DataFrame(columns | {"reason": self.reason})

    def __repr__(self) -> str:
        return f"SelectivePrediction({len(self.abstained)} rows, {self.abstained.sum()} abstained)"


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
        "target_name_",
        "reading_",
    )
    _classes_type = Classes
    # What else stood for missing in the file it was fitted on; the command line knows, and asks.
    missing_values_: tuple[str, ...] = ()
    prior_offset_ = None  # Files of earlier formats have none.
    # The name of the target, and options that file was read with, if the command line fitted it.
    target_name_: str | None = None
    reading_: dict[str, Any] | None = None

    def _outputs(self, X: Any, network: Any = None) -> NDArray[np.float64]:
        """The outputs of all members, (members, n, k); of another part of the network if given.

        Rows that are abstained from are NaN; see `min_known`.
        """
        check_is_fitted(self)
        absent, unseen, outputs = [], [], []
        for block, new in self._encoded_blocks(X):
            absent.append(np.isnan(block[:, self._first_columns()]))
            unseen.append(new)
            outputs.append(evaluate_members(network or self._network, self.params_, block))
        gaps, strange = np.concatenate(absent), np.concatenate(unseen) & self._in_use()
        out = np.concatenate(outputs, axis=1)
        if strange.any():
            self.encoder_._warn_of_unseen(self._open(X), strange, self._warned)
        self._warn_of_new_gaps(gaps)
        if network is None and self.prior_offset_ is not None:
            # An empty row predicts the prior, and a complete row is left as it is.
            out += self._missing_share(gaps)[:, None] ** PRIOR_POWER * self.prior_offset_[:, None]
        out[:, self._too_poor(self._known_share(gaps | strange))] = np.nan
        return out

    def _encoded_blocks(self, X: Any) -> Iterator[tuple[Array, Array]]:
        """The encoded table, some rows at a time: it may be 50 times as large as X.

        With each block come its categories never seen in training, marked in (rows, F).
        """
        table = self._open(X)
        step = max(1, CELLS // self.encoder_.n_columns_out_ // ROWS) * ROWS
        for start in range(0, table.shape[0], step):
            rows = slice(start, min(start + step, table.shape[0]))
            unseen = np.zeros((rows.stop - start, table.shape[1]), bool)
            yield self.encoder_._encode(table, np.float64, rows, unseen), unseen

    def _warn_of_new_gaps(self, absent: Array) -> None:
        """Warn of features (n, F) with gaps that training never saw."""
        new = self._in_use() & ~self.encoder_.gaps_in_training_
        if not self._learns_gaps() and new.any():
            columns = np.flatnonzero(absent.any(axis=0) & new)
            names = [str(self.encoder_._key(int(j))) for j in columns]
            names = [name for name in names if name not in self._warned]
            if names:
                self._warned.update(names)
                warn(
                    f"{listed(names)} had no missing values in training. The model has not learned "
                    "what a missing value means there. Train with `augment` to teach it."
                )

    def _too_poor(self, known: Array) -> Array:
        """Which rows have a known share below `min_known`; refused if so asked."""
        poor = known < self.min_known
        if poor.any() and self.below_min_known == "raise":
            row = int(np.argmax(poor))
            raise ValueError(
                f"{np.count_nonzero(poor)} of {len(known)} rows have a known share below "
                f"min_known={self.min_known}: the first is row {row} with {known[row]:.2f}. Leave "
                "such rows out (see `known_share`), lower `min_known`, or set "
                "`below_min_known='abstain'`."
            )
        return np.asarray(poor)

    def known_share(self, X: Any) -> NDArray[np.float64]:
        """How much of each row is known: the share of its features that is observed, (n,).

        A category never seen in training is not known. Features that were never observed in
        training do not count.
        """
        check_is_fitted(self)
        first = self._first_columns()
        unknown = [np.isnan(block[:, first]) | unseen for block, unseen in self._encoded_blocks(X)]
        return self._known_share(np.concatenate(unknown))

    def _known_share(self, absent: Array) -> NDArray[np.float64]:
        return 1 - self._missing_share(absent)

    def _missing_share(self, absent: Array) -> NDArray[np.float64]:
        """The share (n,) of the features that are missing, of those observed in training."""
        which = self._in_use() & self.encoder_._observed
        return np.asarray(absent[:, which].mean(axis=1) if which.any() else np.ones(len(absent)))

    def predict_selective(self, X: Any) -> SelectivePrediction:
        """Predict, and say for which rows the model abstains.

        A row is abstained from if its known share is below `min_known`, or if no value of it is
        known.

        Parameters
        ----------
        X : frame or array (n, p)
            Missing values, categories and text as they are.

        Returns
        -------
        SelectivePrediction
            The predictions, the known share of each row, and which rows are abstained from.

        Examples
        --------
        >>> import numpy as np
        >>> from promissing import NanMLPRegressor
        >>> X = np.random.default_rng(0).normal(size=(100, 2))
        >>> model = NanMLPRegressor(min_known=0.6, n_members=1, random_state=0)
        >>> result = model.fit(X, X[:, 0]).predict_selective([[1.0, 2.0], [np.nan, 2.0]])
        >>> result.abstained
        array([False,  True])
        >>> result.to_frame()["reason"].tolist()
        ['', 'known share 0.50 is below 0.6']
        """
        known = self.known_share(X)
        reason = np.full(len(known), "", dtype=object)
        reason[known == 0] = "no value is known"
        for row in np.flatnonzero((known < self.min_known) & (known > 0)):
            reason[row] = f"known share {known[row]:.2f} is below {self.min_known:g}"
        abstained = reason != ""
        prediction = self._with_blanks(self.predict(X), abstained)
        return SelectivePrediction(prediction, known, abstained, reason)

    @staticmethod
    def _with_blanks(prediction: Array, abstained: Array) -> Array:
        """Predictions with NaN where a number is abstained from, and None where a class is."""
        if abstained.any():
            numbers = prediction.dtype.kind == "f"
            prediction = prediction.astype(prediction.dtype if numbers else object)
            prediction[abstained] = np.nan if numbers else None
        return prediction

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
        from promissing.estimators import persistence as persist

        persist.save(self, path)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a model of this class from a file that `save` wrote. Nothing in it is executed."""
        from promissing.estimators import persistence as persist

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
        tags.input_tags.sparse = True
        return tags
