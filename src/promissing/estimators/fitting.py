"""How every estimator is trained: encode the table, settle the target, train the replicas."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from copy import copy
from dataclasses import fields
from types import MappingProxyType
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split
from sklearn.utils import _safe_indexing, check_consistent_length, check_random_state
from sklearn.utils.validation import validate_data

from promissing.encoding import columns as _columns
from promissing.encoding.table_encoder import TableEncoder, check_weight
from promissing.estimators import recipe as _automatic
from promissing.estimators.parameters import check_parameters
from promissing.estimators.progress import EpochBar
from promissing.networks.base import evaluate_members, stack
from promissing.networks.targets import Classes, Numbers

__all__ = ["Fitting"]

Array = NDArray[Any]
# The smallest ratio of two weights that single precision can work with.
LEAST_RATIO = 1e-30
_ENCODING = ("kinds", "n_bins", "fine_bins", "max_categories", "unseen")


class Fitting(ABC):
    """The training half of an estimator with the training parameters of `NanMLPClassifier`."""

    hidden_layer_sizes: Any
    activation: str
    solver: str
    alpha: float
    batch_size: int | str
    learning_rate: str
    learning_rate_init: float
    max_iter: int | str
    shuffle: bool
    random_state: Any
    tol: float
    verbose: bool
    warm_start: bool
    momentum: float
    nesterovs_momentum: bool
    early_stopping: bool | str
    validation_fraction: float
    beta_1: float
    beta_2: float
    epsilon: float
    n_iter_no_change: float
    dropout: float
    n_members: int | str
    average: bool = False  # Fusion has no such parameter.
    augment: bool | float | str
    prior_correction: bool
    min_known: float
    below_min_known: str
    kinds: Any
    n_bins: int
    fine_bins: int | str = 0  # Nor this one.
    max_categories: int
    unseen: str

    encoder_: TableEncoder
    params_: dict[str, Array]
    classes_: Array
    prior_: Array
    prior_offset_: Array | None
    n_iter_: int
    loss_curve_: list[float]
    validation_loss_curve_: list[float]
    _target: Any
    _warned: set[str]
    _fixed: Mapping[str, Array] = MappingProxyType({})  # Of all members alike, and not trained.
    # Whether an estimator that makes gaps also starts at the prior, is taught it by rows of which
    # nothing is known, and ends there; modalities that vanish teach it well enough.
    _has_empty_row = False
    _augments_by_gaps = False  # Whether `augment` may be "auto".

    @abstractmethod
    def _make_network(self, n_outputs: int, loss: str) -> Any:
        """Describe the network for the encoded table."""

    @abstractmethod
    def _check_y(self, y: Any) -> Array:
        """Return y as an array, or refuse it."""

    @abstractmethod
    def _make_target(self, y: Array, weight: Array, classes: Any) -> Any:
        """Settle what the network is trained on."""

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
        X : frame, array or SciPy sparse matrix (n, p)
            Missing values, categories and text as they are. The zeros of a sparse matrix are
            observed zeros; only a stored NaN is missing.
        y : array (n,) or (n, k)
            Classes, labels (0 or 1 in k columns) or numbers.
        sample_weight : array (n,), optional
            Rows of weight zero count as absent.
        X_val, y_val : optional
            Rows to judge every epoch by: the best epoch is kept, and training stops when they no
            longer improve. Without them and with `early_stopping=True`, a part of X is set aside.

        Returns
        -------
        estimator
            The fitted estimator itself.
        """
        if (X_val is None) != (y_val is None):
            raise ValueError("`X_val` and `y_val` go together: pass both or neither.")
        resume = self.warm_start and hasattr(self, "params_")
        with self._all_or_nothing():
            tables, y, weight = self._begin(X, y, sample_weight, resume=resume, same_classes=resume)
            if not resume:
                self._draw_lines(tables[0], y, weight)
            targets = self._target.encode(y)
            weights = _relative(self._target.row_weights(y, weight))
            if X_val is None:
                rows, val_rows = self._split(y)
            else:
                tables.append(self._encode(X_val, np.float32))
                y_val = self._check_y(y_val)
                check_consistent_length(tables[1], y_val)
                targets = np.concatenate([targets, self._target.encode(y_val, "y_val")])
                more = self._target.row_weights(y_val, np.ones(len(y_val)))
                weights = np.concatenate([weights, _relative(more)])
                rows = [np.arange(len(y))] * len(self._rngs)
                val_rows = [np.arange(len(y), len(targets))] * len(self._rngs)
            if val_rows is not None and not all(weights[mine].any() for mine in val_rows):
                raise ValueError(
                    "All rows to judge epochs by weigh nothing, by `class_weight`. Raise "
                    "`validation_fraction`, or give others as `X_val` and `y_val`."
                )
            rows, weights = self._draw(rows, val_rows, targets, weights)
            if self._learns_prior():
                prior = self._target.prior_targets(self.prior_)
                weight = weights[: len(y)].mean()
                rows, targets, weights = _with_empty_rows(
                    tables, rows, targets, weights, prior=prior, weight=weight
                )
            # A falling rate is meant to reach its end; only rows set aside can stop it before.
            constant = self.learning_rate == "constant"
            longest = max(len(mine) for mine in rows)
            batch = _automatic.batch_size(self.batch_size, longest)
            epochs = _automatic.epochs(self.max_iter, len(y), longest, batch)
            trained = self._train(
                tables,
                targets,
                weights,
                rows,
                val_rows,
                resume=resume,
                epochs=epochs,
                batch_size=batch,
                schedule=self.learning_rate,
                patience=self.n_iter_no_change if constant or val_rows is not None else np.inf,
                average=self.average,
            )
        unfinished = not (trained.converged.all() or trained.interrupted)
        # With a falling rate or unlimited patience, running all epochs is the plan. It is then no
        # sign of trouble, unless so few steps cannot have converged.
        steps = epochs * -(-longest // batch)
        planned = not constant or np.isinf(self.n_iter_no_change)
        if unfinished and (not planned or steps < _automatic.TOO_FEW_STEPS):
            warnings.warn(
                f"Stochastic Optimizer: Maximum iterations ({epochs}) reached and the optimization "
                f"hasn't converged yet: it made {steps} steps. Train for more epochs.",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self

    def _partial_fit(
        self, X: Any, y: Any, sample_weight: ArrayLike | None, classes: Any = None
    ) -> Self:
        """One epoch over the given rows; the first call settles encoding and classes."""
        if self.early_stopping not in (False, "auto"):
            raise ValueError("partial_fit does not support early_stopping=True")
        resume = hasattr(self, "params_")
        with self._all_or_nothing():
            tables, y, weight = self._begin(X, y, sample_weight, resume=resume, classes=classes)
            self._train(
                tables,
                self._target.encode(y),
                _relative(self._target.row_weights(y, weight)),
                [np.arange(len(y))] * len(self._rngs),
                None,
                resume=resume,
                epochs=1,
                batch_size=_automatic.batch_size(self.batch_size, len(y)),
                schedule="constant",  # Nobody knows how many calls will follow.
                patience=np.inf,
                average=False,  # The next call goes on from the weights themselves.
            )
        return self

    @contextmanager
    def _all_or_nothing(self) -> Iterator[None]:
        """Leave the model as it was if anything goes wrong: never half old and half new."""
        before = self.__dict__.copy()
        try:
            yield
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    def _begin(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None,
        *,
        resume: bool,
        classes: Any = None,
        same_classes: bool = False,
    ) -> tuple[list[Array], Array, Array]:
        """The encoded table, y and weights; encoder and target are settled on a new start.

        The table is the only one of a list, which alone holds it: training empties the list.
        """
        check_parameters(self)
        X = X.tocsr() if issparse(X) else X  # Rows can be taken from this format.
        if y is None:
            raise ValueError(
                f"This {type(self).__name__} estimator requires y to be passed, but the target y "
                "is None."
            )
        # First, so that errors in X come before those in y.
        table = _columns.open_table(X, self, accept_sparse=True)
        validate_data(self, table.named, reset=not resume, skip_check_array=True)
        check_consistent_length(X, y)
        weight = check_weight(sample_weight, table.shape[0])
        with np.errstate(over="ignore"):
            total = weight.sum()
        if not np.isfinite(total):
            raise ValueError("The sum of `sample_weight` is not finite. Divide the weights by it.")
        weight = _relative(weight)
        if not weight.all():
            seen = np.flatnonzero(weight)
            X, y, weight = _safe_indexing(X, seen), _safe_indexing(y, seen), weight[seen]
        y = self._check_y(y)
        if resume:
            self._check_unchanged(X)
            if isinstance(self._target, Numbers):
                self._target = self._target.resumed(y, weight)
            elif not self._target.multilabel:
                if same_classes and y.ndim == 1 and set(y.tolist()) != set(self.classes_.tolist()):
                    raise ValueError(
                        "warm_start can only be used where `y` has the same classes as in the "
                        f"previous call to fit. Previously got {self.classes_}, `y` has "
                        f"{np.unique(y)}. Use `partial_fit` to go on with rows of some of the "
                        "classes, and fit a new model for new classes."
                    )
                # The classes stay; what they weigh may have been changed.
                self._target = self._make_target(y, weight, self._target.labels)
        else:
            self.encoder_ = TableEncoder(**self._encoding()).fit(X, sample_weight=weight)
            self._settle(X, resume=False)
            self._target, self._fixed = self._make_target(y, weight, classes), {}
            self._network = self._make_network(self._target.n_outputs, self._target.loss)
            if isinstance(self._target, Classes):
                self.classes_ = self._target.labels
            self._begin_anew(_automatic.members(self.n_members, len(y)))
        encoded = self._encode(X, np.float32)
        if resume:  # What later rows lack has been learnt as well.
            gaps = np.isnan(encoded[:, self._first_columns()]).any(axis=0)
            self.encoder_ = copy(self.encoder_)  # The old one, should this fail, stays as it was.
            self.encoder_.gaps_in_training_ = self.encoder_.gaps_in_training_ | gaps
        self._update_prior(y, weight, total, resume=resume)
        return [encoded], y, weight

    def _encoding(self) -> dict[str, Any]:
        """The parameters of the encoder."""
        return {name: getattr(self, name) for name in _ENCODING}

    def _settle(self, X: Any, *, resume: bool) -> list[str]:
        """Settle what else there is to learn of the columns of X, once they are encoded.

        When going on, name the parameters that were changed instead.
        """
        return []

    def _draw_lines(self, table: Array, y: Array, weight: Array) -> None:
        """Settle what straight lines tell of the target, and change network and target for it."""
        return  # Nothing, unless an estimator knows better.

    def _begin_anew(self, n_members: int) -> None:
        """Set what is not part of a model but of working with it."""
        seed = check_random_state(self.random_state).randint(2**31)
        seeds = np.random.SeedSequence(seed).spawn(n_members)
        self._rngs = [np.random.default_rng(s) for s in seeds]
        self._opt_state: list[Array] | None = None
        self._opt_kind: Any = None
        self._prior_weight = 0.0
        self._warned = set()

    def _update_prior(self, y: Array, weight: Array, total: float, *, resume: bool) -> None:
        """Settle the prior, given relative weights and the sum of those that came.

        With partial_fit, each call counts in proportion to the sum of its weights.
        """
        self._target.encode(y)  # Complains of classes and shapes that are new.
        share = self._target.row_weights(y, weight).sum() / weight.sum()
        weight = self._target.row_weights(y, weight)
        if not weight.sum() > 0:
            raise ValueError("`class_weight` leaves no row with a weight above zero.")
        prior, before, now = self._target.prior(y, weight), self._prior_weight, total * share
        if resume and before > 0:
            prior = (self.prior_ * before + prior * now) / (before + now)
        self.prior_, self._prior_weight = prior, before + now

    def _check_unchanged(self, X: Any) -> None:
        """Refuse to go on with another network or encoding than the one that was trained."""
        changed = self._settle(X, resume=True)
        network = self._make_network(self._target.n_outputs, self._target.loss)
        changed += [
            {"hidden": "hidden_layer_sizes"}.get(field.name, field.name)
            for field in fields(network)
            if getattr(network, field.name) != getattr(self._network, field.name)
        ]
        encoding = self._encoding()
        changed += [n for n in _ENCODING if encoding[n] != getattr(self.encoder_, n)]
        if self.n_members not in ("auto", self.n_members_):
            changed.append("n_members")
        if changed:
            raise ValueError(
                f"`{changed[0]}` was changed since the model was fitted, and warm_start and "
                "partial_fit go on with the same network. Fit a new model."
            )

    @property
    def n_members_(self) -> int:
        """How many networks there are."""
        return len(next(iter(self.params_.values())))

    def _split(self, y: Array) -> tuple[list[Array], list[Array] | None]:
        """The rows each member is trained on, and those it is judged by."""
        rows = np.arange(len(y))
        if not _automatic.sets_aside(self.early_stopping, len(rows)):
            return [rows] * len(self._rngs), None
        n_val = int(np.ceil(self.validation_fraction * len(rows)))
        if n_val >= len(rows):
            raise ValueError(
                f"`validation_fraction`={self.validation_fraction} of {len(rows)} rows leaves none "
                "to train on."
            )
        if n_val < 2:
            raise ValueError(
                f"The validation set is too small: `validation_fraction`={self.validation_fraction}"
                f" of {len(rows)} rows is {n_val} row, and at least 2 are needed. Increase "
                "`validation_fraction` or the number of rows, pass `X_val` and `y_val`, or set "
                "`early_stopping=False`."
            )
        stratify = None
        if isinstance(self._target, Classes) and not self._target.multilabel:
            counts = np.unique(y, return_counts=True)[1]
            if counts.min() >= 2 and len(counts) <= min(n_val, len(rows) - n_val):
                stratify = y
        parts = [
            train_test_split(
                rows, test_size=n_val, random_state=int(rng.integers(2**31)), stratify=stratify
            )
            for rng in self._rngs
        ]  # Each member sets its own rows aside, so that together they have seen them all.
        return [part[0] for part in parts], [part[1] for part in parts]

    def _draw(
        self, rows: list[Array], val_rows: list[Array] | None, targets: Array, weights: Array
    ) -> tuple[list[Array], Array]:
        """What each member is trained on, given the rows it may be: those, and their weights."""
        return rows, weights

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
        batch_size: int,
        schedule: str,
        patience: float,
        average: bool,
    ) -> Any:
        from promissing.training import (
            train as _training,  # Imports JAX, which prediction does not need.
        )

        if resume:
            params = {n: value for n, value in self.params_.items() if n not in self._fixed}
            curves = [*self.loss_curve_], [*self.validation_loss_curve_]
        else:
            params = stack([self._network.init(rng) for rng in self._rngs])
            curves = [], []
            if self._learns_prior():
                self._network.start_at(params, self._target.prior_outputs(self.prior_))
        kind = (self.solver, self.solver == "sgd" and self.momentum > 0)
        opt_state = self._opt_state if kind == self._opt_kind else None
        gaps = self._gaps(tables[0])
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
                schedule=schedule,
                batch_size=batch_size,
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
                augment=_automatic.augment(self.augment, squared=self._target.loss == "squared"),
                **self._augmentation(gaps),
                rates=self._rates(gaps),
                fixed=self._fixed,
                average=average,
                tol=self.tol,
                n_iter_no_change=patience,
                opt_state=opt_state,
                on_epoch=bar,
            )
        finally:
            if bar is not None:
                bar.close()
        judged = trained.train_loss if val_rows is None else trained.val_loss
        lost = ~np.isfinite(judged).any(axis=0)
        if lost.any() or not all(np.isfinite(a).all() for a in trained.params.values()):
            raise ValueError(
                "Training diverged: the weights are no longer finite. Lower `learning_rate_init`, "
                "or look for extreme values in X, y or sample_weight."
            )
        self.params_ = trained.params | stack([self._fixed] * len(rows))
        self._opt_state, self._opt_kind = trained.opt_state, kind
        self.loss_curve_, self.validation_loss_curve_ = curves
        self.loss_curve_ += _means(trained.train_loss)
        if val_rows is not None:
            self.validation_loss_curve_ += _means(trained.val_loss)
        self.loss_, self.best_loss_ = self.loss_curve_[-1], float(np.nanmin(self.loss_curve_))
        self.n_iter_ = int(trained.n_epochs.max())
        self.n_outputs_ = self._target.n_outputs
        self._correct_to_prior()
        return trained

    def _correct_to_prior(self) -> None:
        """Settle what is added to the outputs of each member so that an empty row is the prior."""
        self.prior_offset_ = None
        if self.prior_correction:
            empty = np.full((1, self._network.n_columns), np.nan)
            outputs = evaluate_members(self._network, self.params_, empty)[:, 0]
            self.prior_offset_ = self._target.prior_outputs(self.prior_) - outputs

    def _learns_prior(self) -> bool:
        """Whether training starts at the prior and teaches it by empty rows."""
        return self._has_empty_row and bool(self.augment)

    def _gaps(self, table: Array) -> Array:
        """The share of gaps in every feature, NaN for those that were never observed."""
        first = self._first_columns()
        gaps = np.array([np.isnan(table[:, column]).mean() for column in first])
        gaps[~self.encoder_._observed] = np.nan
        return gaps

    def _rates(self, gaps: Array) -> dict[str, Array] | None:
        """What learns faster than the rest, by the name of the parameters."""
        return None

    def _augmentation(self, gaps: Array) -> dict[str, Any]:
        """How augmentation loses things: whole features, never a part of their columns."""
        return {
            "units": [int(g) for g in self.encoder_.groups_],
            "augment_others": _automatic.augment_others(self.augment, gaps),
        }

    def _encode(self, X: Any, dtype: Any) -> Array:
        """The table as a matrix."""
        return self.encoder_._encode(self._open(X), dtype)

    def _open(self, X: Any) -> _columns.Table:
        """The table, once its columns are seen to be those of training."""
        table = _columns.open_table(X, self, accept_sparse=True)
        validate_data(self, table.named, reset=False, skip_check_array=True)
        return table

    def _first_columns(self) -> Array:
        """One output column per feature: all of them are missing together."""
        return np.searchsorted(self.encoder_.groups_, np.arange(self.encoder_.n_features_in_))


def _with_empty_rows(
    tables: list[Array],
    rows: list[Array],
    targets: Array,
    weights: Array,
    *,
    prior: tuple[Array, Array],
    weight: float,
) -> tuple[list[Array], Array, Array]:
    """Rows of which nothing is known: a few in every batch of every member.

    `prior` are their targets (m, k), and how much of them each is, (m,). A sixteenth as many are
    added as there are rows, of the given weight; `tables` is added to.
    """
    added, shares = prior
    tables.append(np.full((len(added), tables[0].shape[1]), np.nan, np.float32))
    places = np.arange(len(targets), len(targets) + len(added))
    n = max(len(mine) for mine in rows)
    wanted = -(-n // _automatic.EMPTY)
    each = -(-wanted // len(added))  # Of many classes these are more than wanted, and weigh less.
    rows = [np.concatenate([mine, np.repeat(places, each)]) for mine in rows]
    targets = np.concatenate([targets, added.astype(targets.dtype)])
    return rows, targets, np.append(weights, weight * shares * wanted / each)


def _relative(weight: Array) -> Array:
    """Weights in units of the mean of those above zero: only their ratios matter.

    They are rounded to single precision, in which they are used. Weights that differ by a common
    factor then give the same model, bit for bit. All may be zero.
    """
    most = weight.max()
    if not most > 0:
        return weight
    ratio = weight / most
    least = ratio[weight > 0].min()
    if least < LEAST_RATIO:
        raise ValueError(
            f"The smallest weight above zero must be at least {LEAST_RATIO} times the largest. "
            f"`sample_weight`, times `class_weight` if there is one, has a ratio of {least:.3g}."
        )
    ratio = ratio.astype(np.float32).astype(np.float64)
    return np.asarray(ratio / ratio[ratio > 0].mean())


def _means(curves: Array) -> list[float]:
    """The mean over the members that were still training, by epoch."""
    finite = np.isfinite(curves)
    totals = np.where(finite, curves, 0.0).sum(axis=1)
    return np.where(finite.any(axis=1), totals / np.maximum(finite.sum(axis=1), 1), np.nan).tolist()  # type: ignore[no-any-return]
