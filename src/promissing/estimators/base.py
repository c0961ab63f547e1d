"""The base of the estimators: one `fit`, one `partial_fit`, one path of prediction."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, fields, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, Self, cast

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split
from sklearn.utils import _safe_indexing, check_consistent_length, check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from promissing._validation import listed, warn
from promissing.encoding.columns import Table, open_table
from promissing.encoding.table_encoder import TableEncoder, check_weight
from promissing.estimators import recipe
from promissing.estimators.linear_skip import fit_linear_skip
from promissing.estimators.missing_record import MissingRecord
from promissing.estimators.parameters import check_parameters, current_parameters
from promissing.estimators.progress import EpochBar
from promissing.estimators.recipe import Recipe
from promissing.estimators.targets import (
    check_classes,
    check_numbers,
    class_weights,
    find_labels,
    relative_weights,
)
from promissing.networks.base import MaskedRows, evaluate_members, stack
from promissing.networks.losses import REGRESSION_LOSSES, ClassLoss, NumberLoss
from promissing.training.options import Augmentation, Options

__all__ = [
    *("NanClassifier", "NanEstimator", "NanRegressor", "Prediction", "SelectivePrediction"),
    "with_blanks",
]

Array = NDArray[Any]
Float = NDArray[np.float64]

# Rows, times features, on which the cost of a missing feature is estimated after training.
OUTAGES = 2**13
# Cells encoded at a time in prediction, 32 MB, in whole blocks of the rows that networks evaluate.
CELLS, ROWS = 2**22, 2048
ENCODING = ("kinds", "n_bins", "max_categories", "unknown_categories")


@dataclass(frozen=True, eq=False)
class Prediction:
    """The predictions of an ensemble and of its members, and how much of each row is known.

    Parameters
    ----------
    mean : ndarray (n,), (n, K) or (n, k)
        Mean of the members: probabilities of classes, or predicted numbers. NaN where the model
        abstains.
    members : ndarray (members, n, ...)
        The same for each member.
    known_share : ndarray (n,)
        Share of the features of each row that is known.

    Examples
    --------
    >>> import numpy as np
    >>> from promissing.estimators import Prediction
    >>> Prediction(np.array([0.5]), np.array([[0.4], [0.6]]), np.array([1.0]))
    Prediction(1 rows, 2 members)
    """

    mean: Float
    members: Float
    known_share: Float

    @property
    def spread(self) -> Float:
        """Ensemble spread: the standard deviation of the members.

        It is a diagnostic of how far the members disagree, not the uncertainty of a prediction.

        Examples
        --------
        >>> import numpy as np
        >>> from promissing.estimators import Prediction
        >>> Prediction(np.array([0.5]), np.array([[0.4], [0.6]]), np.array([1.0])).spread
        array([0.1])
        """
        return np.asarray(self.members.std(axis=0))

    def __repr__(self) -> str:
        return f"Prediction({len(self.known_share)} rows, {len(self.members)} members)"


@dataclass(frozen=True, eq=False)
class SelectivePrediction:
    """Predictions of a model that may abstain.

    Parameters
    ----------
    prediction : ndarray (n,) or (n, k)
        The predictions. Where the model abstains, NaN for a number and None for a class.
    known_share : ndarray (n,)
        The share of the features of each row that is known.
    abstained : ndarray of bool (n,)
        The rows from which the model abstains.
    reason : ndarray of str (n,)
        The reason for abstaining; empty elsewhere.

    Examples
    --------
    >>> import numpy as np
    >>> from promissing.estimators import SelectivePrediction
    >>> reason = np.array(["", "no value is known"], dtype=object)
    >>> SelectivePrediction(np.array([3.0, np.nan]), np.array([1.0, 0.0]), reason != "", reason)
    SelectivePrediction(2 rows, 1 abstained)
    """

    prediction: Array
    known_share: Float
    abstained: NDArray[np.bool_]
    reason: Array

    def to_frame(self) -> Any:
        """Return the result as a frame with one row per row of X.

        Returns
        -------
        pandas.DataFrame
            The columns are "prediction" (or "prediction_0", ... for several outputs),
            "known_share", "abstained" and "reason".

        Examples
        --------
        >>> import numpy as np
        >>> from promissing.estimators.base import SelectivePrediction
        >>> known = np.array([1.0, 0.0])
        >>> reason = np.array(["", "no value is known"], dtype=object)
        >>> result = SelectivePrediction(np.array([3.0, np.nan]), known, reason != "", reason)
        >>> result.to_frame()["abstained"].tolist()
        [False, True]
        """
        columns: dict[str, Any] = {"prediction": self.prediction}
        if self.prediction.ndim == 2:
            columns = {f"prediction_{k}": p for k, p in enumerate(self.prediction.T)}
        columns |= {"known_share": self.known_share, "abstained": self.abstained}
        return pd.DataFrame(columns | {"reason": self.reason})

    def __repr__(self) -> str:
        return f"SelectivePrediction({len(self.abstained)} rows, {self.abstained.sum()} abstained)"


class _Rows(NamedTuple):
    """A validated and encoded table with its targets."""

    table: list[Array]  # The only reference to the table, which training empties.
    y: Array
    targets: Array
    weights: Array


class _Fitted:
    """Attributes of a fitted estimator. They are no fields of the dataclasses below."""

    encoder_: TableEncoder
    params_: dict[str, Array]
    classes_: Array
    recipe_: Recipe
    loss_curve_: list[float]
    validation_loss_curve_: list[float]
    loss_: float
    best_loss_: float
    n_iter_: int
    n_outputs_: int
    prior_offset_: Array | None = None  # Files of earlier formats have none.
    # What the command line knows of the file the model was fitted on.
    missing_values_: tuple[str, ...] = ()
    missing_record_: MissingRecord | None = None  # Files of earlier formats have none.
    # Parts that were calibrated for the model, as JSON and arrays; see `promissing.uncertainty`.
    calibration_: Mapping[str, tuple[dict[str, Any], dict[str, Array]]] = MappingProxyType({})
    target_name_: str | None = None
    reading_: dict[str, Any] | None = None
    _loss: Any
    _prior: Array  # Parameters of the prior, such as mean and standard deviation.
    _network: Any
    _fixed: Mapping[str, Array] = MappingProxyType({})  # Equal for all members, and not trained.
    _rngs: list[np.random.Generator]
    _opt_state: list[Array] | None
    _opt_kind: Any
    _prior_weight: float
    _warned: set[str]


@dataclass(eq=False, repr=False, kw_only=True)
class NanEstimator(_Fitted, BaseEstimator):
    """Base class of the estimators: the parameters that all of them share, and what they do.

    A subclass defines its network (`_make_network`), what augmentation removes (`_augmentation`),
    how targets are validated (`_check_y`) and which loss is used (`_make_loss`).
    """

    compensation: str = "feature"
    n_members: int | str = "auto"
    augment: bool | float | str = "auto"
    prior_correction: bool = True
    min_known: float = 0.0
    below_min_known: str = "abstain"
    dropout: float = 0.1
    solver: str = "adamw"
    alpha: float | str = "auto"
    batch_size: int | str = "auto"
    learning_rate: str = "cosine"
    learning_rate_init: float = 2e-3
    max_iter: int | str = "auto"
    shuffle: bool = True
    random_state: Any = None
    tol: float = 1e-4
    verbose: bool = False
    warm_start: bool = False
    momentum: float = 0.9
    nesterovs_momentum: bool = True
    early_stopping: bool | str = "auto"
    validation_fraction: float = 0.1
    beta_1: float = 0.9
    beta_2: float = 0.999
    epsilon: float = 1e-8
    n_iter_no_change: float = 10
    average: bool = True
    kinds: Mapping[Any, str] | None = None
    n_bins: int = 16
    max_categories: int = 64
    unknown_categories: str = "ignore"
    unseen: str = "deprecated"

    # --------------------------------------------------------------- what subclasses define

    @abstractmethod
    def _make_network(self, X: Any, *, resume: bool = False) -> Any:
        """Return the network for the encoder and the loss; with `resume`, of a fitted model."""

    @abstractmethod
    def _augmentation(self, gaps: Array) -> Augmentation:
        """Return what rows lose during training, given the share of gaps in each feature."""

    @abstractmethod
    def _empty_rows(self) -> bool:
        """Return whether rows without known values teach the prior."""

    @abstractmethod
    def _learns_gaps(self) -> bool:
        """Return whether training makes gaps in every column."""

    @abstractmethod
    def _check_restored(self) -> None:
        """Refuse a model from a file whose parts do not fit together."""

    @abstractmethod
    def _check_y(self, y: Any) -> Array:
        """Return y as an array, or refuse it."""

    @abstractmethod
    def _make_loss(self, y: Array, weight: Array, classes: Any) -> Any:
        """Return the loss for the targets."""

    @abstractmethod
    def _resume_loss(self, y: Array, weight: Array, *, same_classes: bool) -> Any:
        """Return the loss with which training continues on further rows."""

    @abstractmethod
    def _predicted(self, mean: Float) -> Array:
        """Return what `predict` returns, given the mean of the members."""

    # --------------------------------------------------------------------------- training

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        *,
        X_val: Any = None,
        y_val: Any = None,
    ) -> Self:
        """Train the networks on a table and its targets.

        If training fails, the model stays as it was.

        Parameters
        ----------
        X : frame, array or SciPy sparse matrix (n, p)
            Missing values, categories and text are passed as they are. The zeros of a sparse
            matrix are observed zeros; only a stored NaN is missing.
        y : array (n,) or (n, k)
            Classes, labels (0 or 1 in k columns) or numbers.
        sample_weight : array (n,), optional
            Sample weights. Rows of weight zero are ignored.
        X_val, y_val : frame or array, optional
            Validation rows: the best epoch on them is kept, and training stops when they no longer
            improve. Without them and with early stopping, a part of X is set aside.

        Returns
        -------
        self : estimator
            The fitted estimator.

        Examples
        --------
        >>> import numpy as np
        >>> from promissing import NanMLPRegressor
        >>> X = np.random.default_rng(0).normal(size=(100, 2))
        >>> model = NanMLPRegressor(n_members=1, max_iter=2, random_state=0)
        >>> model.fit(X, X[:, 0], X_val=X[:20], y_val=X[:20, 0]).n_iter_
        2
        """
        if (X_val is None) != (y_val is None):
            raise ValueError("`X_val` and `y_val` go together: pass both or neither.")
        params = current_parameters(self)
        resume = self.warm_start and hasattr(self, "params_")
        with self._all_or_nothing():
            tables, y, targets, weights = self._begin(
                X, y, sample_weight, resume=resume, same_classes=resume
            )
            if X_val is None:
                rows, val_rows = self._split(y)
            else:
                self.recipe_ = replace(self.recipe_, early_stopping=True)
                tables.append(self._encode(X_val))
                y_val = self._check_y(y_val)
                check_consistent_length(tables[1], y_val)
                targets = np.concatenate([targets, self._loss.encode(y_val, "y_val")])
                more = self._loss.row_weights(y_val, np.ones(len(y_val)))
                weights = np.concatenate([weights, relative_weights(more)])
                rows = [np.arange(len(y))] * len(self._rngs)
                val_rows = [np.arange(len(y), len(targets))] * len(self._rngs)
            if val_rows is not None and not all(weights[mine].any() for mine in val_rows):
                raise ValueError(
                    "All validation rows have weight zero, because of `class_weight`. Increase "
                    "`validation_fraction`, or pass other rows as `X_val` and `y_val`."
                )
            if self.recipe_.resample:
                rows, weights = _resample(
                    rows, val_rows, targets, weights, n_classes=len(self.classes_), rngs=self._rngs
                )
            if self._empty_rows():
                prior = self._loss.prior_targets(self._prior)
                weight = weights[..., : len(y)].mean()
                rows, targets, weights = _with_empty_rows(
                    tables, rows, targets, weights, prior=prior, weight=weight
                )
            longest = max(len(mine) for mine in rows)
            self.recipe_ = self.recipe_.with_rows(params, len(y), longest)
            # A falling rate is meant to reach its end; only validation can stop it before.
            constant = self.learning_rate == "constant"
            patience = self.n_iter_no_change if constant or val_rows is not None else np.inf
            options = self._options(params, tables[0], n_iter_no_change=patience)
            trained = self._train(
                tables, targets, weights, rows, val_rows, options=options, resume=resume
            )
        self._warn_if_unfinished(trained, longest)
        return self

    def _partial_fit(self, X: Any, y: Any, sample_weight: ArrayLike | None, classes: Any) -> Self:
        """Train for one epoch; the first call determines encoding and classes."""
        if self.early_stopping not in (False, "auto"):
            raise ValueError("partial_fit does not support early_stopping=True")
        params = current_parameters(self)
        resume = hasattr(self, "params_")
        with self._all_or_nothing():
            tables, y, targets, weights = self._begin(
                X, y, sample_weight, resume=resume, classes=classes, whole=False
            )
            rows = [np.arange(len(y))] * len(self._rngs)
            made = self.recipe_.with_rows(params, len(y), len(y))
            self.recipe_ = replace(
                made, max_iter=1, early_stopping=False, linear_skip=bool(self._fixed)
            )
            # The number of further calls is unknown: the rate is constant, and the next call
            # continues from the weights themselves, not from their average.
            options = self._options(
                params, tables[0], schedule="constant", average=False, n_iter_no_change=np.inf
            )
            self._train(tables, targets, weights, rows, None, options=options, resume=resume)
        return self

    @contextmanager
    def _all_or_nothing(self) -> Iterator[None]:
        """Leave the model as it was if anything goes wrong."""
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
        whole: bool = True,
    ) -> _Rows:
        """Validate and encode the table, the targets and the weights, each once.

        A new start also determines the encoder, the loss and the network. `whole` is false if
        further rows will follow, with `partial_fit`.
        """
        check_parameters(self)
        X, y, weight, total = self._validate(X, y, sample_weight, reset=not resume)
        if resume:
            self._check_unchanged(X)
            self._loss = self._resume_loss(y, weight, same_classes=same_classes)
            self.recipe_ = replace(self._resolve(len(y)), n_members=self.n_members_)
        else:
            self._start(X, y, weight, classes)
        table = self._encode(X)
        absent = np.isnan(table[:, self.encoder_.first_columns_])
        record = MissingRecord.of(absent)
        before = self.missing_record_ if resume else None
        self.missing_record_ = record if before is None else before.joined(record)
        self.calibration_ = {}  # It was for another model.
        if resume:  # The model also learns from gaps in these rows.
            gaps = absent.any(axis=0)
            self.encoder_ = copy(self.encoder_)  # If this fit fails, the old encoder is unchanged.
            self.encoder_.gaps_in_training_ = self.encoder_.gaps_in_training_ | gaps
        elif whole and self.recipe_.linear_skip:
            found = fit_linear_skip(table, y, weight, self.encoder_, self._network)
            if found is not None:
                self._network, self._fixed, self._loss = found
        targets = self._loss.encode(y)
        weights = self._loss.row_weights(y, weight)
        if not weights.sum() > 0:
            raise ValueError("`class_weight` leaves no row with a weight above zero.")
        self._update_prior(y, weight, weights, total, resume=resume)
        return _Rows([table], y, targets, relative_weights(weights))

    def _validate(
        self, X: Any, y: Any, sample_weight: ArrayLike | None, *, reset: bool
    ) -> tuple[Any, Array, Array, float]:
        """Return X and y without rows of weight zero, relative weights, and their original sum."""
        X = X.tocsr() if issparse(X) else X  # Rows can be taken from this format.
        if y is None:
            raise ValueError(
                f"This {type(self).__name__} estimator requires y to be passed, but the target y "
                "is None."
            )
        # First, so that errors in X come before those in y.
        table = open_table(X, self, accept_sparse=True)
        validate_data(self, table.named, reset=reset, skip_check_array=True)
        check_consistent_length(X, y)
        weight = check_weight(sample_weight, table.shape[0])
        with np.errstate(over="ignore"):
            total = weight.sum()
        if not np.isfinite(total):
            raise ValueError("The sum of `sample_weight` is not finite. Divide the weights by it.")
        weight = relative_weights(weight)
        if not weight.all():
            seen = np.flatnonzero(weight)
            X, y, weight = _safe_indexing(X, seen), _safe_indexing(y, seen), weight[seen]
        return X, self._check_y(y), weight, total

    def _start(self, X: Any, y: Array, weight: Array, classes: Any) -> None:
        """Determine the encoder, the loss, the recipe and the network."""
        self._loss = self._make_loss(y, weight, classes)
        self.recipe_ = self._resolve(len(y))
        self.encoder_ = TableEncoder(**self._encoding()).fit(X, sample_weight=weight)
        self._fixed = {}
        self._network = self._make_network(X)
        if isinstance(self._loss, ClassLoss):
            self.classes_ = self._loss.labels
        self._set_generators(self.recipe_.n_members)

    def _resolve(self, n_rows: int) -> Recipe:
        params = current_parameters(self, silent=True)
        return recipe.resolve(params, n_rows=n_rows, loss=self._loss)

    def _encoding(self) -> dict[str, Any]:
        """Return the parameters of the encoder."""
        params = current_parameters(self, silent=True)
        return {name: params[name] for name in ENCODING} | {
            "n_fine_bins": self._resolve(1).n_fine_bins
        }

    def _set_generators(self, n_members: int) -> None:
        """Set what is not part of a model but of working with it."""
        seed = check_random_state(self.random_state).randint(2**31)
        seeds = np.random.SeedSequence(seed).spawn(n_members)
        self._rngs = [np.random.default_rng(s) for s in seeds]
        self._opt_state, self._opt_kind = None, None
        self._prior_weight = 0.0
        self._warned = set()

    def _check_unchanged(self, X: Any) -> None:
        """Refuse to continue with another network or encoding than the one that was trained."""
        network = self._make_network(X, resume=True)
        changed = [
            {"hidden": "hidden_layer_sizes"}.get(field.name, field.name)
            for field in fields(network)
            if getattr(network, field.name) != getattr(self._network, field.name)
        ]
        encoding = self._encoding()
        changed += [name for name in encoding if encoding[name] != getattr(self.encoder_, name)]
        if self.n_members not in ("auto", self.n_members_):
            changed.append("n_members")
        if changed:
            raise ValueError(
                f"`{changed[0]}` was changed since the model was fitted, but warm_start and "
                "partial_fit continue with the same network. Fit a new model."
            )

    def _update_prior(
        self, y: Array, weight: Array, weights: Array, total: float, *, resume: bool
    ) -> None:
        """Compute the prior, given the relative weights with and without those of the classes.

        With `partial_fit`, each call counts in proportion to the sum `total` of its weights.
        """
        if self.recipe_.resample:
            _, number, counts = np.unique(y, return_inverse=True, return_counts=True)
            even = counts.max() / counts[number]
            weight, weights = weight * even, weights * even
        prior = self._loss.prior(y, weights)
        before, now = self._prior_weight, total * (weights.sum() / weight.sum())
        if resume and before > 0:
            prior = self._loss.pooled_prior(self._prior, before, prior, now)
        self._prior, self._prior_weight = prior, before + now

    def _split(self, y: Array) -> tuple[list[Array], list[Array] | None]:
        """Return the training rows of each member, and its validation rows."""
        rows = np.arange(len(y))
        if not self.recipe_.early_stopping:
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
        if isinstance(self._loss, ClassLoss) and not self._loss.multilabel:
            counts = np.unique(y, return_counts=True)[1]
            if counts.min() >= 2 and len(counts) <= min(n_val, len(rows) - n_val):
                stratify = y
        # Each member sets its own rows aside, so that together they have seen all rows.
        parts = [
            train_test_split(
                rows, test_size=n_val, random_state=int(rng.integers(2**31)), stratify=stratify
            )
            for rng in self._rngs
        ]
        return [part[0] for part in parts], [part[1] for part in parts]

    def _options(self, params: Mapping[str, Any], table: Array, **changed: Any) -> Options:
        """Return the options of the engine, and complete the recipe."""
        gaps = np.array([np.isnan(table[:, j]).mean() for j in self.encoder_.first_columns_])
        gaps[~self.encoder_.observed_] = np.nan
        augmentation = self._augmentation(gaps)
        if augmentation.others is not None:
            self.recipe_ = replace(self.recipe_, augment_others=tuple(augmentation.others))
        decoupled = self.solver == "adamw"
        options = Options(
            solver=self.solver,
            learning_rate=self.learning_rate_init,
            schedule=self.learning_rate,
            batch_size=self.recipe_.batch_size,
            max_epochs=self.recipe_.max_iter,
            shuffle=self.shuffle,
            momentum=self.momentum,
            nesterov=self.nesterovs_momentum,
            beta_1=self.beta_1,
            beta_2=self.beta_2,
            epsilon=self.epsilon,
            alpha=0.0 if decoupled else self.recipe_.alpha,
            weight_decay=self.recipe_.alpha if decoupled else 0.0,
            dropout=self.dropout,
            augmentation=augmentation,
            multipliers=recipe.learning_rate_multipliers(params, gaps),
            average=self.average,
            tol=self.tol,
        )
        return replace(options, **changed)

    def _train(
        self,
        tables: list[Array],
        targets: Array,
        weights: Array,
        rows: list[Array],
        val_rows: list[Array] | None,
        *,
        options: Options,
        resume: bool,
    ) -> Any:
        """Train the members, and keep what was learned."""
        from promissing.training.train import Data, train  # Imports JAX: not for prediction.

        if resume:
            params = {n: value for n, value in self.params_.items() if n not in self._fixed}
            curves = [*self.loss_curve_], [*self.validation_loss_curve_]
        else:
            params = stack([self._network.init(rng) for rng in self._rngs])
            curves = [], []
            if self._empty_rows():
                self._network.start_at(params, self._loss.prior_outputs(self._prior))
        kind = (self.solver, self.solver == "sgd" and self.momentum > 0)
        bar = EpochBar(type(self).__name__, options.max_epochs) if self.verbose else None
        try:
            some = tables[0][:: -(-len(tables[0]) * len(self.encoder_.first_columns_) // OUTAGES)]
            trained = train(
                self._network,
                params,
                Data(tables, targets, rows, val_rows, weights.astype(np.float32)),
                options,
                rngs=self._rngs,
                fixed=self._fixed,
                opt_state=self._opt_state if kind == self._opt_kind else None,
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
        self.n_outputs_ = self._loss.n_outputs
        self._correct_to_prior()
        self._estimate_outages(some)
        return trained

    def _estimate_outages(self, table: Array) -> None:
        """Estimate what it costs if a feature is missing in every row, on some encoded rows.

        No labels are needed: for calibrated probabilities p, the expected log loss of q is their
        cross-entropy, and the expected accuracy of a class is its probability.
        """
        encoder = self.encoder_
        n, size = len(table), len(encoder.first_columns_)
        table = table.astype(np.float64)
        outputs = evaluate_members(self._network, self.params_, table)
        full = self._loss.decode(outputs).mean(axis=0).reshape(n, -1)
        rows = MaskedRows(self._network, self.params_, table, encoder.groups_)
        pairs = np.repeat(np.arange(n), size), np.tile(np.eye(size, dtype=bool), (n, 1))
        masked = self._loss.decode(rows.outputs(*pairs)).mean(axis=0).reshape(n, size, -1)
        cost, lost = self._loss.outage(full[:, None], masked)
        record = cast(MissingRecord, self.missing_record_)
        self.missing_record_ = replace(record, loss=cost.mean(axis=0), accuracy=lost.mean(axis=0))

    def _correct_to_prior(self) -> None:
        """Compute what is added to the outputs so that an empty row predicts the prior."""
        self.prior_offset_ = None
        if self.prior_correction:
            empty = np.full((1, self._network.n_columns), np.nan)
            outputs = evaluate_members(self._network, self.params_, empty)[:, 0]
            self.prior_offset_ = self._loss.prior_outputs(self._prior) - outputs

    def _warn_if_unfinished(self, trained: Any, longest: int) -> None:
        """Warn if training ended before it converged."""
        # With a falling rate or unlimited patience, running all epochs is the plan, unless so few
        # steps cannot have converged.
        steps = self.recipe_.max_iter * -(-longest // self.recipe_.batch_size)
        planned = self.learning_rate != "constant" or np.isinf(self.n_iter_no_change)
        unfinished = not (trained.converged.all() or trained.interrupted)
        if unfinished and (not planned or steps < recipe.STEPS_TOO_FEW):
            warnings.warn(
                f"Stochastic Optimizer: Maximum iterations ({self.recipe_.max_iter}) reached and "
                f"the optimization hasn't converged yet: it made {steps} steps. Train for more "
                "epochs.",
                ConvergenceWarning,
                stacklevel=3,
            )

    # ------------------------------------------------------------------------- prediction

    def predict_full(self, X: Any) -> Prediction:
        """Predict in one pass: the mean of the ensemble, its members and the known share.

        Parameters
        ----------
        X : frame or array (n, p)
            The rows.

        Returns
        -------
        Prediction
            Mean, members, ensemble spread and known share.

        Examples
        --------
        >>> import numpy as np
        >>> from promissing import NanMLPRegressor
        >>> X = np.random.default_rng(0).normal(size=(100, 2))
        >>> model = NanMLPRegressor(n_members=3, max_iter=2, random_state=0).fit(X, X[:, 0])
        >>> result = model.predict_full([[1.0, np.nan]])
        >>> result.members.shape, result.mean.shape, result.known_share
        ((3, 1), (1,), array([0.5]))
        """
        outputs, known = self._evaluate(X)
        members = self._loss.decode(outputs)
        return Prediction(np.asarray(members.mean(axis=0)), members, known)

    def _evaluate(self, X: Any, part: str = "forward") -> tuple[Float, Float]:
        """Return the outputs (members, n, k) of the networks, and the known share of each row.

        Rows from which the model abstains are NaN; see `min_known`. `part` is the method of the
        network that computes the outputs.
        """
        check_is_fitted(self)
        table = self._open(X)
        absent, unknown, outputs = [], [], []
        for block, new in self._encoded_blocks(table):
            absent.append(np.isnan(block[:, self.encoder_.first_columns_]))
            unknown.append(new)
            outputs.append(evaluate_members(self._network, self.params_, block, part=part))
        gaps, strange = np.concatenate(absent), np.concatenate(unknown) & self._in_use()
        out = np.concatenate(outputs, axis=1)
        if strange.any():
            self.encoder_.warn_of_unknown_categories(table, strange, self._warned)
        some = strange if strange.any() else None
        return out, self._finish(out, gaps, some, corrected=part == "forward")

    def predict_masked(
        self, X: Any, rows: ArrayLike, masks: ArrayLike, *, units: ArrayLike | None = None
    ) -> Float:
        """Predict rows of X under many masks, several times as fast as masked copies of the rows.

        Parameters
        ----------
        X : frame or array (n, p)
            The rows.
        rows : array of int (N,)
            The positions of the rows to predict, in rising order. A row may occur many times.
        masks : array of bool (N, U)
            The units of features that are made missing in each.
        units : array of int (p,), optional
            The unit of each feature, numbered from 0; -1 for a feature that is never made missing.
            By default each feature is a unit.

        Returns
        -------
        ndarray (N,), (N, K) or (N, k)
            Probabilities or predicted numbers, the mean of the members.

        Examples
        --------
        >>> import numpy as np
        >>> from promissing import NanMLPRegressor
        >>> X = np.random.default_rng(0).normal(size=(100, 2))
        >>> model = NanMLPRegressor(n_members=1, max_iter=2, random_state=0).fit(X, X[:, 0])
        >>> masked = model.predict_masked(X[:1], [0, 0], [[False, False], [True, False]])
        >>> bool(np.allclose(masked, model.predict([X[0], [np.nan, X[0, 1]]])))
        True
        """
        outputs = self._evaluate_masked(X, rows, masks, units)
        return np.asarray(self._loss.decode(outputs).mean(axis=0))

    def _evaluate_masked(
        self, X: Any, rows: ArrayLike, masks: ArrayLike, units: ArrayLike | None
    ) -> Float:
        """Return the outputs (members, N, k) of rows under masks; see `predict_masked`."""
        check_is_fitted(self)
        table = self._open(X)
        rows, masks = np.asarray(rows, np.intp), np.asarray(masks, bool)
        unit_of = np.arange(table.shape[1]) if units is None else np.asarray(units, np.intp)
        rising = (np.diff(rows, prepend=0, append=table.shape[0] - 1) >= 0).all()
        shapes = (1, *rows.shape, unit_of.max(initial=-1) + 1, *table.shape[1:])
        if not (rising and (rows.ndim, *masks.shape, *unit_of.shape) == shapes):
            raise ValueError(
                "`rows` must be positions of rows in rising order, `masks` must have one line for "
                "each of them and one column for each unit, and `units` one entry for each of the "
                f"{table.shape[1]} features. Received: shapes {rows.shape}, {masks.shape} and "
                f"{unit_of.shape}"
            )
        lost = masks
        if not np.array_equal(unit_of, np.arange(masks.shape[1])):
            never = np.zeros((len(masks), 1), bool)  # The last column, at position -1.
            lost = np.hstack([masks, never])[:, unit_of]
        parts, start = [], 0
        for block, unknown in self._encoded_blocks(table):
            own = slice(*np.searchsorted(rows, [start, start + len(block)]))
            here = rows[own] - start
            masked = MaskedRows(self._network, self.params_, block, unit_of[self.encoder_.groups_])
            out = masked.outputs(here, masks[own])
            absent = np.isnan(block[:, self.encoder_.first_columns_])[here] | lost[own]
            strange = unknown & self._in_use()
            self._finish(out, absent, strange[here] & ~lost[own] if strange.any() else None)
            parts.append(out)
            start += len(block)
        return np.concatenate(parts, axis=1)

    def _finish(
        self, out: Float, gaps: Array, strange: Array | None, *, corrected: bool = True
    ) -> Float:
        """Correct outputs (members, n, k) to the prior in place, and return the known shares.

        `gaps` and `strange` mark missing features and unknown categories, (n, F); without any,
        `strange` is None. Rows from which the model abstains become NaN.
        """
        self._warn_of_new_gaps(gaps)
        share = self._missing_share(gaps)
        if corrected and self.prior_offset_ is not None:
            # An empty row predicts the prior, and a complete row is not changed.
            out += share[:, None] ** recipe.PRIOR_POWER * self.prior_offset_[:, None]
        known = 1 - (share if strange is None else self._missing_share(gaps | strange))
        out[:, self._below_min_known(known)] = np.nan
        return known

    def _encoded_blocks(self, table: Table) -> Iterator[tuple[Array, Array]]:
        """Yield the encoded rows in blocks: the encoded table may be 50 times as large as X.

        Each block comes with its unknown categories, marked in (rows, F).
        """
        step = max(1, CELLS // self.encoder_.n_columns_out_ // ROWS) * ROWS
        for start in range(0, table.shape[0], step):
            rows = slice(start, min(start + step, table.shape[0]))
            unknown = np.zeros((rows.stop - start, table.shape[1]), bool)
            block = self.encoder_.encode_table(table, dtype=np.float64, rows=rows, unknown=unknown)
            yield block, unknown

    def _warn_of_new_gaps(self, absent: Array) -> None:
        """Warn of features (n, F) with missing values that had none in training."""
        new = self._in_use() & ~self.encoder_.gaps_in_training_
        if self._learns_gaps() or not new.any():
            return
        columns = np.flatnonzero(absent.any(axis=0) & new)
        names = [str(self.encoder_.feature_key(int(j))) for j in columns]
        names = [name for name in names if name not in self._warned]
        if names:
            self._warned.update(names)
            warn(
                f"{listed(names)} had no missing values in training. The model has not learned "
                "what a missing value means there. Train with `augment` to teach it."
            )

    def _below_min_known(self, known: Array) -> Array:
        """Return which rows have a known share below `min_known`; refuse them if asked to."""
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

    def known_share(self, X: Any) -> Float:
        """Return the share of the features of each row that is known.

        A category never seen in training is not known. Features that were never observed in
        training do not count.

        Parameters
        ----------
        X : frame or array (n, p)
            The rows.

        Returns
        -------
        ndarray (n,)
            Shares between 0 and 1.

        Examples
        --------
        >>> import numpy as np
        >>> from promissing import NanMLPRegressor
        >>> X = np.random.default_rng(0).normal(size=(100, 2))
        >>> model = NanMLPRegressor(n_members=1, max_iter=2, random_state=0).fit(X, X[:, 0])
        >>> model.known_share([[1.0, np.nan]])
        array([0.5])
        """
        check_is_fitted(self)
        return 1 - self._missing_share(self._missing(X, unknown=True))

    def missing_features(self, X: Any) -> NDArray[np.bool_]:
        """Return which features of each row are missing.

        Parameters
        ----------
        X : frame or array (n, p)
            The rows.

        Returns
        -------
        ndarray of bool (n, p)
            Whether a feature is missing.

        Examples
        --------
        >>> import numpy as np
        >>> from promissing import NanMLPRegressor
        >>> X = np.random.default_rng(0).normal(size=(100, 2))
        >>> model = NanMLPRegressor(n_members=1, max_iter=2, random_state=0).fit(X, X[:, 0])
        >>> model.missing_features([[1.0, np.nan]])
        array([[False,  True]])
        """
        check_is_fitted(self)
        return self._missing(X, unknown=False)

    def _missing(self, X: Any, *, unknown: bool) -> NDArray[np.bool_]:
        """Return which features are missing; with `unknown`, or have an unknown category."""
        first = self.encoder_.first_columns_
        blocks = self._encoded_blocks(self._open(X))
        return np.concatenate(
            [np.isnan(block[:, first]) | (new & unknown) for block, new in blocks]
        )

    def _missing_share(self, absent: Array) -> Float:
        """Return the missing share (n,) of the features that were observed in training."""
        which = self._in_use() & self.encoder_.observed_
        if not which.any():
            return np.ones(len(absent))
        own = absent if which.all() else absent[:, which]
        return np.asarray(np.count_nonzero(own, axis=1) / own.shape[1])

    def predict_selective(self, X: Any) -> SelectivePrediction:
        """Predict, and report from which rows the model abstains.

        The model abstains from a row if its known share is below `min_known`, or if no value of it
        is known.

        Parameters
        ----------
        X : frame or array (n, p)
            Missing values, categories and text are passed as they are.

        Returns
        -------
        SelectivePrediction
            The predictions, the known share of each row, and the rows the model abstains from.

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
        full = self.predict_full(X)
        known, reason = full.known_share, np.full(len(full.known_share), "", dtype=object)
        reason[known == 0] = "no value is known"
        for row in np.flatnonzero((known < self.min_known) & (known > 0)):
            reason[row] = f"known share {known[row]:.2f} is below {self.min_known:g}"
        abstained = reason != ""
        prediction = with_blanks(self._predicted(full.mean), abstained)
        return SelectivePrediction(prediction, known, abstained, reason)

    def spread(self, X: Any) -> Float:
        """Return the ensemble spread: the standard deviation of the members' predictions.

        It is a diagnostic of how far the members disagree, not the uncertainty of a prediction. It
        falls as values go missing, because all members then predict the prior.

        Parameters
        ----------
        X : frame or array (n, p)
            The rows.

        Returns
        -------
        ndarray (n,), (n, K) or (n, k)
            One number for each probability or target; 0 if there is only one member.

        Examples
        --------
        >>> import numpy as np
        >>> from promissing import NanMLPRegressor
        >>> X = np.random.default_rng(0).normal(size=(100, 2))
        >>> model = NanMLPRegressor(n_members=1, max_iter=2, random_state=0).fit(X, X[:, 0])
        >>> model.spread(X[:2])
        array([0., 0.])
        """
        return self.predict_full(X).spread

    @property
    def prior_(self) -> Float:
        """Prediction for an empty row: weighted class shares in training, or mean targets.

        With ``loss="quantile"`` it is the median.

        Examples
        --------
        >>> import numpy as np
        >>> from promissing import NanMLPRegressor
        >>> X = np.random.default_rng(0).normal(size=(100, 2))
        >>> model = NanMLPRegressor(n_members=1, max_iter=2, random_state=0).fit(X, [1, 3] * 50)
        >>> model.prior_
        array([2.])
        """
        return np.asarray(self._loss.prior_prediction(self._prior))

    @property
    def n_members_(self) -> int:
        """Number of networks in the ensemble.

        Examples
        --------
        >>> import numpy as np
        >>> from promissing import NanMLPRegressor
        >>> X = np.random.default_rng(0).normal(size=(100, 2))
        >>> NanMLPRegressor(n_members=3, max_iter=2, random_state=0).fit(X, X[:, 0]).n_members_
        3
        """
        return len(next(iter(self.params_.values())))

    def _encode(self, X: Any) -> Array:
        """Return the table as a matrix in single precision."""
        return self.encoder_.encode_table(self._open(X), dtype=np.float32)

    def _open(self, X: Any) -> Table:
        """Return the table, after checking that its columns are those of training."""
        table = open_table(X, self, accept_sparse=True)
        validate_data(self, table.named, reset=False, skip_check_array=True)
        return table

    def _in_use(self) -> NDArray[np.bool_]:
        """Return which features the network reads."""
        return np.asarray(self._network.columns_in_use()[self.encoder_.first_columns_])

    # ------------------------------------------------------------------------------ files

    def save(self, path: str | Path) -> None:
        """Write the fitted model to one safetensors file.

        Parameters
        ----------
        path : str or Path
            The file. An existing file is replaced.

        See Also
        --------
        promissing.load : Read a model.

        Examples
        --------
        >>> import numpy as np, pathlib, tempfile
        >>> from promissing import NanMLPRegressor
        >>> X = np.random.default_rng(0).normal(size=(100, 2))
        >>> model = NanMLPRegressor(n_members=1, max_iter=2, random_state=0).fit(X, X[:, 0])
        >>> model.save(pathlib.Path(tempfile.mkdtemp()) / "model.safetensors")
        """
        from promissing.estimators import persistence

        persistence.save(self, path)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a model of this class from a file. Nothing in the file is executed.

        Parameters
        ----------
        path : str or Path
            A file that `save` wrote.

        Returns
        -------
        estimator
            The fitted model.

        Examples
        --------
        >>> import numpy as np, pathlib, tempfile
        >>> from promissing import NanMLPRegressor
        >>> X = np.random.default_rng(0).normal(size=(100, 2))
        >>> model = NanMLPRegressor(n_members=1, max_iter=2, random_state=0).fit(X, X[:, 0])
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "model.safetensors"
        >>> model.save(path)
        >>> NanMLPRegressor.load(path).n_members_
        1
        """
        from promissing.estimators import persistence

        model = persistence.load(path)
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


@dataclass(eq=False, repr=False, kw_only=True)
class NanClassifier(ClassifierMixin, NanEstimator):
    """Base class of the classifiers."""

    class_weight: Mapping[Any, float] | Literal["balanced"] | None = None
    resample: bool = False

    _estimator_type = "classifier"  # yellowbrick reads it; scikit-learn's mixins no longer set it.

    def partial_fit(
        self,
        X: Any,
        y: Any,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Train for one epoch on the given rows, at a constant rate.

        Parameters
        ----------
        X : frame or array (n, p)
            The rows.
        y : array (n,) or (n, L)
            Their classes or labels.
        classes : array, optional
            All classes. The first call needs them; it also determines the encoding.
        sample_weight : array (n,), optional
            Sample weights.

        Returns
        -------
        self : estimator
            The estimator.

        Examples
        --------
        >>> import numpy as np
        >>> from promissing import NanMLPClassifier
        >>> X = np.random.default_rng(0).normal(size=(100, 2))
        >>> model = NanMLPClassifier(n_members=1, random_state=0)
        >>> model.partial_fit(X, X[:, 0] > 0, classes=[False, True]).n_iter_
        1
        """
        if isinstance(self.class_weight, str):
            raise ValueError(
                "`class_weight` 'balanced' needs all rows at once. For partial_fit pass a dict."
            )
        if self.resample:
            raise ValueError(
                "`resample` needs all rows at once. For partial_fit pass a dict of class weights."
            )
        if not hasattr(self, "params_"):
            if classes is None:
                raise ValueError("classes must be passed on the first call to partial_fit.")
        elif classes is not None and not np.array_equal(self.classes_, np.unique(classes)):
            raise ValueError(
                f"`classes={np.asarray(classes).tolist()}` is not the same as on last call to "
                f"partial_fit, was: {self.classes_.tolist()}"
            )
        return self._partial_fit(X, y, sample_weight, classes)

    def predict_proba(self, X: Any) -> Float:
        """Return the probability of every class, or of every label.

        Parameters
        ----------
        X : frame or array (n, p)
            The rows.

        Returns
        -------
        ndarray (n, K)
            Probabilities, the mean of the members. NaN where the model abstains; see `min_known`.

        Examples
        --------
        >>> import numpy as np
        >>> from promissing import NanMLPClassifier
        >>> X = np.random.default_rng(0).normal(size=(100, 2))
        >>> model = NanMLPClassifier(n_members=1, max_iter=2, random_state=0)
        >>> model.fit(X, [0, 1] * 50).predict_proba([[np.nan, np.nan]])
        array([[0.5, 0.5]])
        """
        return self.predict_full(X).mean

    def __call__(self, X: Any) -> Float:
        """Return `predict_proba(X)`: `shap.Explainer(model, X)` calls the model."""
        return self.predict_proba(X)

    def predict_log_proba(self, X: Any) -> Float:
        """Return the logarithm of `predict_proba`.

        Parameters
        ----------
        X : frame or array (n, p)
            The rows.

        Returns
        -------
        ndarray (n, K)
            Logarithms of probabilities; -inf for a probability of 0.

        Examples
        --------
        >>> import numpy as np
        >>> from promissing import NanMLPClassifier
        >>> X = np.random.default_rng(0).normal(size=(100, 2))
        >>> model = NanMLPClassifier(n_members=1, max_iter=2, random_state=0)
        >>> model.fit(X, [0, 1] * 50).predict_log_proba([[np.nan, np.nan]]).round(2)
        array([[-0.69, -0.69]])
        """
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.predict_proba(X)))

    def predict(self, X: Any) -> Array:
        """Return the most probable class of each row.

        Parameters
        ----------
        X : frame or array (n, p)
            The rows.

        Returns
        -------
        ndarray (n,) or (n, L)
            Classes; for several labels, 1 where a label is more probable than not. None where the
            model abstains; see `min_known`.

        Examples
        --------
        >>> import numpy as np
        >>> from promissing import NanMLPClassifier
        >>> X = np.random.default_rng(0).normal(size=(100, 2))
        >>> model = NanMLPClassifier(n_members=1, random_state=0).fit(X, X[:, 0] > 0)
        >>> model.predict([[2.0, np.nan], [-2.0, np.nan]])
        array([ True, False])
        """
        return self._predicted(self.predict_proba(X))

    def _predicted(self, mean: Float) -> Array:
        abstained = np.asarray(np.isnan(mean).any(axis=1))
        return with_blanks(self._loss.decide(mean), abstained)

    @abstractmethod
    def _loss_type(self, labels: Array, *, multilabel: bool) -> type[ClassLoss]:
        """Return the loss for these labels."""

    def _check_y(self, y: Any) -> Array:
        return check_classes(y, self)

    def _make_loss(self, y: Array, weight: Array, classes: Any) -> ClassLoss:
        labels, multilabel = find_labels(y, classes, type(self).__name__), y.ndim == 2
        self._check_balancing(multilabel=multilabel)
        weights = class_weights(self.class_weight, y, weight, labels)
        return self._loss_type(labels, multilabel=multilabel)(labels, weights)

    def _check_balancing(self, *, multilabel: bool) -> None:
        """Refuse `resample` where it has no meaning."""
        if self.resample and multilabel:
            raise ValueError("`resample` is for one label per row, but y has several.")
        if self.resample and isinstance(self.class_weight, str):
            raise ValueError(
                "`resample` and `class_weight` 'balanced' both balance the classes. Use one of "
                "them."
            )

    def _resume_loss(self, y: Array, weight: Array, *, same_classes: bool) -> ClassLoss:
        if self._loss.multilabel:
            self._check_balancing(multilabel=True)
            class_weights(self.class_weight, self._loss.encode(y), weight, self._loss.labels)
            return self._loss  # type: ignore[no-any-return]
        if same_classes and y.ndim == 1 and set(y.tolist()) != set(self.classes_.tolist()):
            raise ValueError(
                "warm_start can only be used where `y` has the same classes as in the previous "
                f"call to fit. Previously got {self.classes_}, `y` has {np.unique(y)}. Use "
                "`partial_fit` to continue with rows of some of the classes, and fit a new model "
                "for new classes."
            )
        # The classes stay; their weights may have been changed.
        return self._make_loss(y, weight, self._loss.labels)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags


@dataclass(eq=False, repr=False, kw_only=True)
class NanRegressor(RegressorMixin, NanEstimator):
    """Base class of the regressors."""

    loss: str | NumberLoss = "mean_std"

    _estimator_type = "regressor"  # As for classifiers.

    def partial_fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Train for one epoch on the given rows, at a constant rate.

        Parameters
        ----------
        X : frame or array (n, p)
            The rows. The first call determines the encoding.
        y : array (n,) or (n, k)
            Their targets.
        sample_weight : array (n,), optional
            Sample weights.

        Returns
        -------
        self : estimator
            The estimator.

        Examples
        --------
        >>> import numpy as np
        >>> from promissing import NanMLPRegressor
        >>> X = np.random.default_rng(0).normal(size=(100, 2))
        >>> NanMLPRegressor(n_members=1, random_state=0).partial_fit(X, X[:, 0]).n_iter_
        1
        """
        return self._partial_fit(X, y, sample_weight, None)

    def predict(self, X: Any, *, return_std: bool = False) -> Any:
        """Return the predicted targets.

        Parameters
        ----------
        X : frame or array (n, p)
            The rows.
        return_std : bool, default=False
            Whether to return the predictive standard deviation as well. It needs a loss that
            provides one: "mean_std", which is the default, or "gaussian".

        Returns
        -------
        mean : ndarray (n,) or (n, k)
            Predictions, the mean of the members. NaN where the model abstains; see `min_known`.
        std : ndarray (n,) or (n, k)
            Standard deviations. Only with `return_std`.

        Examples
        --------
        >>> import numpy as np
        >>> from promissing import NanMLPRegressor
        >>> X = np.random.default_rng(0).normal(size=(100, 2))
        >>> model = NanMLPRegressor(n_members=1, max_iter=2, random_state=0)
        >>> mean, std = model.fit(X, X[:, 0]).predict([[np.nan, np.nan]], return_std=True)
        >>> bool(np.isclose(std, X[:, 0].std()).all())
        True
        """
        if not return_std:
            return self.predict_full(X).mean
        check_is_fitted(self)
        self._loss.std(np.zeros((1, 0, self._loss.n_outputs)))  # Refuse before the work is done.
        outputs, _ = self._evaluate(X)
        return np.asarray(self._loss.decode(outputs).mean(axis=0)), self._loss.std(outputs)

    def predict_masked(
        self,
        X: Any,
        rows: ArrayLike,
        masks: ArrayLike,
        *,
        units: ArrayLike | None = None,
        return_std: bool = False,
    ) -> Any:
        """Predict rows of X under many masks, several times as fast as masked copies of the rows.

        Parameters
        ----------
        X : frame or array (n, p)
            The rows.
        rows : array of int (N,)
            The positions of the rows to predict, in rising order. A row may occur many times.
        masks : array of bool (N, U)
            The units of features that are made missing in each.
        units : array of int (p,), optional
            The unit of each feature, numbered from 0; -1 for a feature that is never made missing.
            By default each feature is a unit.
        return_std : bool, default=False
            Whether to return the predictive standard deviation as well, as in `predict`.

        Returns
        -------
        mean : ndarray (N,) or (N, k)
            Predictions, the mean of the members.
        std : ndarray (N,) or (N, k)
            Standard deviations. Only with `return_std`.

        Examples
        --------
        >>> import numpy as np
        >>> from promissing import NanMLPRegressor
        >>> X = np.random.default_rng(0).normal(size=(100, 2))
        >>> model = NanMLPRegressor(n_members=1, max_iter=2, random_state=0).fit(X, X[:, 0])
        >>> masked = model.predict_masked(X[:1], [0, 0], [[False, False], [True, False]])
        >>> bool(np.allclose(masked, model.predict([X[0], [np.nan, X[0, 1]]])))
        True
        """
        outputs = self._evaluate_masked(X, rows, masks, units)
        mean = np.asarray(self._loss.decode(outputs).mean(axis=0))
        return (mean, self._loss.std(outputs)) if return_std else mean

    def predict_quantiles(self, X: Any, quantiles: Sequence[float] | None = None) -> Float:
        """Return predictive quantiles.

        Parameters
        ----------
        X : frame or array (n, p)
            The rows.
        quantiles : sequence of float, optional
            Levels between 0 and 1. By default those of the loss.

        Returns
        -------
        ndarray (n, q) or (n, k, q)
            Quantiles in the order of `quantiles`.

        Examples
        --------
        >>> import numpy as np
        >>> from promissing import NanMLPRegressor
        >>> X = np.random.default_rng(0).normal(size=(100, 2))
        >>> model = NanMLPRegressor(loss="quantile", n_members=1, max_iter=2, random_state=0)
        >>> model.fit(X, X[:, 0]).predict_quantiles(X[:3], quantiles=[0.1, 0.5, 0.9]).shape
        (3, 3)
        """
        check_is_fitted(self)
        levels = None if quantiles is None else np.atleast_1d(np.asarray(quantiles, float)).tolist()
        if levels is not None and not (levels and all(0 < level < 1 for level in levels)):
            raise ValueError(
                f"`quantiles` must be numbers between 0 and 1. Received: quantiles={quantiles!r}"
            )
        self._loss.quantiles(np.zeros((1, 0, self._loss.n_outputs)), levels)
        return np.asarray(self._loss.quantiles(self._evaluate(X)[0], levels))

    def __call__(self, X: Any) -> Float:
        """Return `predict(X)`: `shap.Explainer(model, X)` calls the model."""
        return np.asarray(self.predict(X))

    def _predicted(self, mean: Float) -> Array:
        return mean

    def _check_y(self, y: Any) -> Array:
        return np.asarray(check_numbers(y, self))

    def _make_loss(self, y: Array, weight: Array, classes: Any) -> NumberLoss:
        return self._chosen_loss().fitted(y, weight)

    def _chosen_loss(self) -> NumberLoss:
        return REGRESSION_LOSSES[self.loss]() if isinstance(self.loss, str) else self.loss

    def _resume_loss(self, y: Array, weight: Array, *, same_classes: bool) -> NumberLoss:
        if self._chosen_loss() != self._loss:
            raise ValueError(
                "`loss` was changed since the model was fitted, but warm_start and partial_fit "
                "continue with the same network. Fit a new model."
            )
        return self._loss.resumed(y, weight)  # type: ignore[no-any-return]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


def with_blanks(prediction: Array, abstained: Array) -> Array:
    """Return predictions with NaN (numbers) or None (classes) where the model abstains.

    Parameters
    ----------
    prediction : ndarray (n,) or (n, k)
        Predictions.
    abstained : ndarray of bool (n,)
        The rows from which the model abstains.

    Returns
    -------
    ndarray
        The predictions with blanks.
    """
    if abstained.any():
        numbers = prediction.dtype.kind == "f"
        prediction = prediction.astype(prediction.dtype if numbers else object)
        prediction[abstained] = np.nan if numbers else None
    return prediction


def _with_empty_rows(
    tables: list[Array],
    rows: list[Array],
    targets: Array,
    weights: Array,
    *,
    prior: tuple[Array, Array],
    weight: float,
) -> tuple[list[Array], Array, Array]:
    """Add rows without known values: a few in every batch of every member.

    `prior` holds their targets (m, k) and the share of each, (m,). One row in sixteen is added, of
    the given weight; `tables` is extended.
    """
    added, shares = prior
    tables.append(np.full((len(added), tables[0].shape[1]), np.nan, np.float32))
    places = np.arange(len(targets), len(targets) + len(added))
    n = max(len(mine) for mine in rows)
    wanted = -(-n // recipe.EMPTY_ROWS)
    each = -(-wanted // len(added))  # With many classes there are more than wanted, of less weight.
    rows = [np.concatenate([mine, np.repeat(places, each)]) for mine in rows]
    targets = np.concatenate([targets, added.astype(targets.dtype)])
    more = np.broadcast_to(weight * shares * wanted / each, (*weights.shape[:-1], len(added)))
    return rows, targets, np.concatenate([weights, more], axis=-1)


def _resample(
    rows: list[Array],
    val_rows: list[Array] | None,
    targets: Array,
    weights: Array,
    *,
    n_classes: int,
    rngs: list[np.random.Generator],
) -> tuple[list[Array], Array]:
    """Draw rows of the smaller classes repeatedly, until all classes have the same size.

    Only training rows are drawn, for each member separately; validation rows are weighted instead.
    """
    number = targets[:, 0].astype(int)
    drawn, own = [], np.tile(weights, (len(rows), 1))
    for r, (mine, rng) in enumerate(zip(rows, rngs, strict=True)):
        by_class = [mine[number[mine] == k] for k in range(n_classes)]
        most = max(map(len, by_class))
        more = [rng.choice(some, most - len(some)) for some in by_class if len(some)]
        drawn.append(np.concatenate([mine, *more]))
        if val_rows is not None:
            times = np.array([most / max(len(some), 1) for some in by_class])
            own[r, val_rows[r]] *= times[number[val_rows[r]]]
    return drawn, weights if val_rows is None else own


def _means(curves: Array) -> list[float]:
    """Return the mean by epoch over the members that were still training."""
    finite = np.isfinite(curves)
    totals = np.where(finite, curves, 0.0).sum(axis=1)
    means = np.where(finite.any(axis=1), totals / np.maximum(finite.sum(axis=1), 1), np.nan)
    return list(means.tolist())
