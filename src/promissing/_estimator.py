"""What every estimator does: encode the table, train replicas of a network, predict in NumPy."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split
from sklearn.utils import check_consistent_length, check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from promissing import _columns
from promissing._networks import evaluate, stack
from promissing._parameters import check_parameters
from promissing._progress import EpochBar
from promissing._targets import Classes
from promissing.tables import TableEncoder, check_weight

__all__ = ["NanEstimator"]

Array = NDArray[Any]


class NanEstimator(BaseEstimator):
    """Base of the estimators; a subclass says what its network and its targets are.

    A subclass defines `_make_network(n_outputs, loss)`, `_check_y(y)`, `_make_target(y, weight)`
    and `_row_weights(y, weight)`, and has the training parameters of `NanMLPClassifier`.
    """

    hidden_layer_sizes: Any
    activation: str
    solver: str
    alpha: float
    batch_size: int | str
    learning_rate: str
    learning_rate_init: float
    max_iter: int
    shuffle: bool
    random_state: Any
    tol: float
    verbose: bool
    warm_start: bool
    momentum: float
    nesterovs_momentum: bool
    early_stopping: bool
    validation_fraction: float
    beta_1: float
    beta_2: float
    epsilon: float
    n_iter_no_change: int
    dropout: float
    n_members: int
    augment: bool | float
    min_known: float
    kinds: Any
    n_bins: int
    max_categories: int
    unseen: str

    encoder_: TableEncoder
    params_: dict[str, Array]
    classes_: Array
    prior_: Array
    n_iter_: int
    _target: Any
    _warned: set[str]

    def _make_network(self, n_outputs: int, loss: str) -> Any:
        raise NotImplementedError

    def _check_y(self, y: Any) -> Array:
        raise NotImplementedError

    def _make_target(self, y: Array, weight: Array) -> Any:
        raise NotImplementedError

    def _row_weights(self, y: Array, weight: Array) -> Array:
        return weight

    # ------------------------------------------------------------------ training

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        *,
        X_val: Any = None,
        y_val: Any = None,
    ) -> Self:
        """Train on a table and its targets.

        Parameters
        ----------
        X : frame or array (n, p)
            Gaps, categories and text as they are.
        y : array (n,) or (n, k)
        sample_weight : array (n,), optional
            Rows of weight zero count as absent.
        X_val, y_val : optional
            Rows to judge every epoch by: the best epoch is kept, and training stops when they no
            longer improve. Without them and with `early_stopping=True`, a part of X is set aside.
        """
        check_parameters(self)
        if (X_val is None) != (y_val is None):
            raise ValueError("`X_val` and `y_val` go together: pass both or neither.")
        resume = self.warm_start and hasattr(self, "params_")
        y, weight = self._begin(X, y, sample_weight, resume=resume)
        table = self._encode(X, np.float32)
        targets = self._target.encode(y)
        rows, val_rows = self._split(y, weight, X_val)
        tables, weights = [table], self._row_weights(y, weight)
        if X_val is not None:
            y_val = self._check_y(y_val)
            table_val = self._encode(X_val, np.float32)
            check_consistent_length(table_val, y_val)
            tables.append(table_val)
            targets = np.concatenate([targets, self._target.encode(y_val)])
            weights = np.concatenate([weights, self._row_weights(y_val, np.ones(len(y_val)))])
        trained = self._train(
            tables, targets, weights, rows, val_rows, resume=resume, epochs=self.max_iter
        )
        unfinished = not (trained.converged.all() or trained.interrupted)
        if unfinished and self._may_stop(val_rows):
            warnings.warn(
                f"Stochastic Optimizer: Maximum iterations ({self.max_iter}) reached and the "
                "optimization hasn't converged yet. Raise `max_iter` or set `early_stopping=True`.",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self

    def _partial_fit(self, X: Any, y: Any, sample_weight: ArrayLike | None) -> Self:
        """One epoch over the given rows; the first call settles encoding and classes."""
        check_parameters(self)
        resume = hasattr(self, "params_")
        y, weight = self._begin(X, y, sample_weight, resume=resume)
        rows = [np.flatnonzero(weight)] * self.n_members
        self._train(
            [self._encode(X, np.float32)],
            self._target.encode(y),
            self._row_weights(y, weight),
            rows,
            None,
            resume=resume,
            epochs=1,
        )
        return self

    def _begin(
        self, X: Any, y: Any, sample_weight: ArrayLike | None, *, resume: bool
    ) -> tuple[Array, Array]:
        """Check X, y and weights against each other; settle encoder and target on a new start."""
        if y is None:
            raise ValueError(
                f"This {type(self).__name__} estimator requires y to be passed, but the target y "
                "is None."
            )
        if not resume:
            # Encoding is settled before y is looked at, so that errors in X come first.
            table = _columns.open_table(X, self)
            validate_data(self, table.named, reset=True, skip_check_array=True)
        y = self._check_y(y)
        check_consistent_length(X, y)
        weight = check_weight(sample_weight, len(y))
        if not resume:
            self.encoder_ = TableEncoder(
                kinds=self.kinds,
                n_bins=self.n_bins,
                max_categories=self.max_categories,
                unseen=self.unseen,
            ).fit(X, sample_weight=weight)
            self._target = self._make_target(y, weight)
            if isinstance(self._target, Classes):
                self.classes_ = self._target.labels
            self.prior_ = self._target.prior(y, self._row_weights(y, weight))
            self._begin_anew()
        return y, weight

    def _begin_anew(self) -> None:
        """Set what is not part of a model but of working with it."""
        seed = check_random_state(self.random_state).randint(2**31)
        seeds = np.random.SeedSequence(seed).spawn(self.n_members)
        self._rngs = [np.random.default_rng(s) for s in seeds]
        self._opt_state: list[Array] | None = None
        self._warned = set()

    def _split(self, y: Array, weight: Array, X_val: Any) -> tuple[list[Array], list[Array] | None]:
        """The rows each member is trained on, and those it is judged by."""
        rows = np.flatnonzero(weight)
        if X_val is not None:
            n, m = len(y), _columns.open_table(X_val, self).shape[0]
            return [rows] * self.n_members, [np.arange(n, n + m)] * self.n_members
        if not self.early_stopping:
            return [rows] * self.n_members, None
        stratify = None
        if isinstance(self._target, Classes) and not self._target.multilabel:
            counts = np.unique(y[rows], return_counts=True)[1]
            n_val = int(np.ceil(self.validation_fraction * len(rows)))
            if counts.min() >= 2 and len(counts) <= min(n_val, len(rows) - n_val):
                stratify = y[rows]
        parts = [
            train_test_split(
                rows,
                test_size=self.validation_fraction,
                random_state=int(rng.integers(2**31)),
                stratify=stratify,
            )
            for rng in self._rngs
        ]  # Each member sets its own rows aside, so that together they have seen them all.
        return [part[0] for part in parts], [part[1] for part in parts]

    def _train(
        self,
        tables: list[Array],
        targets: Array,
        weights: Array,
        rows: list[Array],
        val_rows: list[Array] | None,
        *,
        resume: bool,
        epochs: int,
    ) -> Any:
        from promissing import _training  # Imports JAX, which prediction does not need.

        if not resume:
            self._network = self._make_network(self._target.n_outputs, self._target.loss)
            params = stack([self._network.init(rng) for rng in self._rngs])
            self.loss_curve_, self.validation_loss_curve_ = [], []
        else:
            params = self.params_
        decoupled = self.solver == "adamw"
        bar = EpochBar(type(self).__name__, epochs) if self.verbose else None
        try:
            trained = _training.train(
                self._network,
                params,
                _training.Data(tables, targets, rows, val_rows, weights.astype(np.float32)),
                rngs=self._rngs,
                solver=self.solver,
                learning_rate=self.learning_rate_init,
                schedule=self.learning_rate,
                batch_size=200 if self.batch_size == "auto" else int(self.batch_size),
                max_epochs=epochs,
                shuffle=self.shuffle,
                momentum=self.momentum,
                nesterov=self.nesterovs_momentum,
                beta_1=self.beta_1,
                beta_2=self.beta_2,
                epsilon=self.epsilon,
                alpha=0.0 if decoupled else self.alpha,
                weight_decay=self.alpha if decoupled else 0.0,
                dropout=self.dropout,
                augment=0.5 if self.augment is True else float(self.augment),
                units=self._units_to_drop(),
                tol=self.tol,
                n_iter_no_change=self.n_iter_no_change if self._may_stop(val_rows) else np.inf,
                opt_state=self._opt_state,
                on_epoch=bar,
            )
        finally:
            if bar is not None:
                bar.close()
        self.params_, self._opt_state = trained.params, trained.opt_state
        self.loss_curve_ += np.nanmean(trained.train_loss, axis=1).tolist()
        if val_rows is not None:
            self.validation_loss_curve_ += np.nanmean(trained.val_loss, axis=1).tolist()
        self.loss_, self.best_loss_ = self.loss_curve_[-1], min(self.loss_curve_)
        before = self.n_iter_ if resume and epochs == 1 else 0
        self.n_iter_ = before + int(trained.n_epochs.max())
        self.n_outputs_ = self._target.n_outputs
        return trained

    def _may_stop(self, val_rows: list[Array] | None) -> bool:
        """A falling rate is meant to reach its end; only rows set aside can stop it before."""
        return self.learning_rate == "constant" or val_rows is not None

    def _units_to_drop(self) -> list[int]:
        """Augmentation makes whole features unknown, never a part of their columns."""
        return [int(g) for g in self.encoder_.groups_]

    # ---------------------------------------------------------------- prediction

    def _encode(self, X: Any, dtype: Any) -> Array:
        """The table as a matrix, once its columns are seen to be those of training."""
        table = _columns.open_table(X, self)
        validate_data(self, table.named, reset=False, skip_check_array=True)
        return self.encoder_._encode(table, dtype)

    def _outputs(self, X: Any) -> NDArray[np.float64]:
        """The outputs of all members, (members, n, k)."""
        check_is_fitted(self)
        table = self._encode(X, np.float64)
        self._say_what_is_new(table)
        members = range(len(self.params_["bias_0"]))
        return np.stack(
            [
                evaluate(self._network, {k: v[m] for k, v in self.params_.items()}, table)
                for m in members
            ]
        )

    def _say_what_is_new(self, table: Array) -> None:
        """Warn of gaps that training never saw; refuse rows of which too little is known."""
        new = ~self.encoder_.gaps_in_training_
        if not self.augment and new.any():
            columns = np.flatnonzero(np.isnan(table[:, self._first_columns()]).any(axis=0) & new)
            names = [str(self.encoder_._key(int(j))) for j in columns]
            names = [name for name in names if name not in self._warned]
            if names:
                self._warned.update(names)
                warnings.warn(
                    f"{_listed(names)} had no gap in training and has one now: the model has not "
                    "learnt what that means. Train with `augment=True` to teach it.",
                    UserWarning,
                    stacklevel=4,
                )
        if self.min_known > 0:
            known = self._known_share(table)
            poor = np.flatnonzero(known < self.min_known)
            if len(poor):
                raise ValueError(
                    f"{len(poor)} of {len(table)} rows are known less than min_known="
                    f"{self.min_known}: row {poor[0]} to {known[poor[0]]:.2f}. Leave such rows out "
                    "(see `known_share`), or lower `min_known`."
                )

    def known_share(self, X: Any) -> NDArray[np.float64]:
        """How much of each row is known: the share of its features that is observed, (n,)."""
        check_is_fitted(self)
        return self._known_share(self._encode(X, np.float64))

    def _known_share(self, table: Array) -> NDArray[np.float64]:
        known = ~np.isnan(table[:, self._first_columns()])
        return np.asarray(known.mean(axis=1))

    def _first_columns(self) -> Array:
        """One output column per feature: all of them are missing together."""
        return np.searchsorted(self.encoder_.groups_, np.arange(self.encoder_.n_features_in_))

    # --------------------------------------------------------------------- files

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


def _listed(names: list[str], most: int = 5) -> str:
    shown = ", ".join(map(repr, names[:most]))
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return f"Column{'s' * (len(names) > 1)} {shown}{more}"
