"""Networks for tables of many modalities, some of which may be missing altogether."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from promissing import _formula
from promissing.estimators.estimator import NanEstimator
from promissing.estimators.mlp import NanMLPClassifier, NanMLPRegressor
from promissing.estimators.modalities import find_columns, is_position, settle_units
from promissing.estimators.tasks import NanClassifier, NanRegressor
from promissing.networks.fusion import Fusion
from promissing.networks.targets import Classes

__all__ = ["PAPER", "NanFusionClassifier", "NanFusionRegressor", "build"]

Array = NDArray[Any]

# The paper's clinical study as parameters of NanFusionClassifier, which also takes the modalities
# and the compensation: "none" for PROMISSING, "shared" for mPROMISSING. Neither epochs nor batch
# are in the paper.
PAPER: Mapping[str, Any] = MappingProxyType(
    {
        "units": "paper",
        "fusion_units": 5,
        "dropout": 0.1,
        "input_dropout": "zero",
        "prior_correction": False,
        "resample": True,
        "alpha": 0.0,
        "learning_rate": "constant",
        "learning_rate_init": 3e-4,
        "batch_size": 32,
        "max_iter": 200,
        "n_iter_no_change": np.inf,  # All epochs.
    }
)


@dataclass(frozen=True, eq=False)
class _Softmax(Classes):
    """Class labels with an output each, for two classes too."""

    @property
    def loss(self) -> str:
        """The name of the network's loss."""
        return "log" if self.multilabel else "softmax"

    @property
    def n_outputs(self) -> int:
        """The number of outputs of every decision."""
        return len(self.labels)


class _Decisions(NamedTuple):
    """The part of a network that decides by modality."""

    network: Fusion

    def prune(self, x: Any, *, xp: Any) -> Any:
        return self.network.prune(x, xp=xp)

    def forward(self, params: Any, x: Any, *, xp: Any, pruned: Any = None) -> Any:
        return self.network.decisions(params, x, xp=xp, pruned=pruned)


class _NanFusion(NanEstimator):
    """What classifier and regressor share: modalities and the network."""

    modalities: Mapping[str, Any] | None
    units: Any
    compensation: str
    modalities_: dict[str, list[int]]
    _given: tuple[Any, str]
    _network_type = Fusion
    _facts = (*NanEstimator._facts, "modalities_")

    def __init__(
        self,
        modalities: Mapping[str, Any] | None = None,
        units: Any = None,
        *,
        remainder: str = "error",
        fusion_units: int = 16,
        activation: str = "relu",
        compensation: str = "feature",
        n_members: int | str = 1,
        augment: bool | float = False,
        augment_by: str = "number",
        augment_empty: bool = True,
        prior_correction: bool = True,
        min_known: float = 0.0,
        below_min_known: str = "abstain",
        dropout: float = 0.3,
        input_dropout: str = "unknown",
        solver: str = "adam",
        alpha: float = 1e-4,
        batch_size: int | str = 64,
        learning_rate: str = "cosine",
        learning_rate_init: float = 1e-3,
        max_iter: int | str = 200,
        shuffle: bool = True,
        random_state: Any = None,
        tol: float = 1e-4,
        verbose: bool = False,
        warm_start: bool = False,
        momentum: float = 0.9,
        nesterovs_momentum: bool = True,
        early_stopping: bool | str = False,
        validation_fraction: float = 0.1,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-8,
        n_iter_no_change: float = 10,
        kinds: Mapping[Any, str] | None = None,
        n_bins: int = 0,
        max_categories: int = 64,
        unseen: str = "ignore",
    ) -> None:
        self.modalities = modalities
        self.units = units
        self.remainder = remainder
        self.fusion_units = fusion_units
        self.activation = activation
        self.compensation = compensation
        self.n_members = n_members
        self.augment = augment
        self.augment_by = augment_by
        self.augment_empty = augment_empty
        self.prior_correction = prior_correction
        self.min_known = min_known
        self.below_min_known = below_min_known
        self.dropout = dropout
        self.input_dropout = input_dropout
        self.solver = solver
        self.alpha = alpha
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.learning_rate_init = learning_rate_init
        self.max_iter = max_iter
        self.shuffle = shuffle
        self.random_state = random_state
        self.tol = tol
        self.verbose = verbose
        self.warm_start = warm_start
        self.momentum = momentum
        self.nesterovs_momentum = nesterovs_momentum
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.beta_1 = beta_1
        self.beta_2 = beta_2
        self.epsilon = epsilon
        self.n_iter_no_change = n_iter_no_change
        self.kinds = kinds
        self.n_bins = n_bins
        self.max_categories = max_categories
        self.unseen = unseen

    @property
    def modality_columns_(self) -> dict[str, list[str | int]]:
        """The columns of every modality by name, or by position if they have no names."""
        key = self.encoder_._key
        return {name: [key(j) for j in columns] for name, columns in self.modalities_.items()}

    @property
    def neutralizers_(self) -> dict[str | int, Array]:
        """U by feature, {name: (members, neurons of its modality, columns of the feature)}.

        The value which, put in the gap, gives the activation the gap gives; in the units of the
        encoded table, so that for a number 0 is its mean and 1 a standard deviation above it.
        """
        network, encoder = self._network, self.encoder_
        u = np.stack(
            [
                _formula.neutralizers(
                    *network.first_layer({k: v[m] for k, v in self.params_.items()}), xp=np
                )
                for m in range(self.n_members_)
            ]
        )
        neuron = np.repeat(np.arange(len(network.units)), network.units)
        return {
            encoder._key(j): u[:, neuron == i][:, :, encoder.groups_ == j]
            for i, columns in enumerate(self.modalities_.values())
            for j in columns
        }

    def decision_by_modality(self, X: Any) -> dict[str, NDArray[np.float64]]:
        """What each modality says by itself, the mean of the members.

        By name of the modality, what `predict_proba` gives, (n, K), or in regression `predict`.
        A modality of which nothing is known says what it has learnt to say then.
        """
        check_is_fitted(self)
        says = self._members(X, _Decisions(self._network)).mean(axis=0)
        return {name: says[:, i] for i, name in enumerate(self.modalities_)}

    def _settle(self, X: Any, *, resume: bool) -> list[str]:
        given = (self.modalities, self.remainder)
        if resume and given[0] is self._given[0] and given[1] == self._given[1]:
            return []
        found = find_columns(*given, X, self.encoder_)
        if resume and found != self.modalities_:
            return ["modalities"]
        self.modalities_, self._given = found, given
        return []

    def _make_network(self, n_outputs: int, loss: str) -> Fusion:
        return Fusion(
            len(self.encoder_.groups_),
            n_outputs,
            loss,
            modalities=self._modality_of_columns(),
            units=settle_units(self.units, self.modalities_),
            fusion_units=int(self.fusion_units),
            activation=self.activation,
            compensation=self.compensation,
            groups=tuple(self.encoder_.groups_.tolist()),
            input_dropout=self.input_dropout,
        )

    def _modality_of_columns(self) -> tuple[int, ...]:
        """The number of the modality of each encoded column, -1 for what is not used."""
        number = np.full(self.encoder_.n_features_in_, -1)
        for i, columns in enumerate(self.modalities_.values()):
            number[columns] = i
        return tuple(number[self.encoder_.groups_].tolist())

    def _augmentation(self, gaps: Array) -> dict[str, Any]:
        """How augmentation loses things: whole modalities."""
        return {
            "units": [max(number, 0) for number in self._network.modalities],
            "augment_by": self.augment_by,
            "augment_empty": bool(self.augment_empty),
        }

    def _learns_gaps(self) -> bool:
        return bool(self.augment or (self.dropout and self.input_dropout == "unknown"))

    def _in_use(self) -> NDArray[np.bool_]:
        used = np.zeros(self.encoder_.n_features_in_, bool)
        for columns in self.modalities_.values():
            used[columns] = True
        return used

    def _storable_params(self) -> dict[str, Any]:
        """The parameters, with the columns that a callable or dtype has found in its place."""
        params = super()._storable_params()
        if isinstance(params["modalities"], Mapping):
            params["modalities"] = {
                name: given if _is_plain(given) else self.modality_columns_.get(name, given)
                for name, given in params["modalities"].items()
            }
        return params

    def _restored(self) -> None:
        self._given = (self.modalities, self.remainder)
        used = [j for columns in self.modalities_.values() for j in columns]
        network, features = self._network, range(self.encoder_.n_features_in_)
        if (
            not all(is_position(j) and j in features for j in used)
            or network.groups != tuple(self.encoder_.groups_.tolist())
            or network.modalities != self._modality_of_columns()
            or len(network.units) != len(self.modalities_)
        ):
            raise ValueError("the modalities are not those of the network")


class NanFusionClassifier(NanClassifier, _NanFusion):
    """A classifier for tables of many modalities, with gaps in them or without some of them.

    Every modality, such as a questionnaire or a scan, gets a representation in which what is
    missing is pruned, and a decision of its own. A fusion layer sees all representations and
    decisions and makes the final one. All are trained at once, on the sum of their losses.

    Parameters
    ----------
    modalities : mapping, optional
        The columns of every modality by its name: a list of names (str) or positions (int), one
        name, a slice of positions, the kind or dtype of its columns ("number", "boolean",
        "category", "date", or what pandas' `select_dtypes` takes), or a callable that takes the
        table and returns a list, such as scikit-learn's `make_column_selector`. By default one
        modality, "all", of all columns.
    units : int, sequence, mapping or "paper", optional
        The size of each modality's representation: one for all, by the order or the name of the
        modalities, or as in the paper, whose modalities are twelve. By default four times the
        square root of the number of the modality's columns, rounded up.
    remainder : {"error", "drop", "modality"}, default="error"
        What becomes of columns in no modality: an error that names them; they are ignored, though
        read; or they make one more, "remainder".
    fusion_units : int, default=16
        The size of the fusion layer; 5 in the paper.
    activation : {"identity", "logistic", "tanh", "relu", "gelu", "silu"}, default="relu"
    compensation : {"none", "shared", "feature"}, default="feature"
        What a neuron adds for what is missing: nothing (PROMISSING), one learned weight times the
        share of its modality that is missing (mPROMISSING), or one learned weight per missing
        feature.
    n_members : int or "auto", default=1
        Networks in the ensemble, trained at once from different starts; predictions are averaged.
        "auto" is 12, and 8 for more than 5,000 rows.
    augment : bool or float, default=False
        Share of the rows of a batch that lose modalities while training (True: 0.5), so that the
        network learns to do without, and predicts the prior where nothing is known.
    augment_by : {"number", "subset"}, default="number"
        Whether such a row loses any number of modalities equally often, each being lost with a
        probability of the row's own, drawn from U(0, 1); or any subset, each being lost with
        probability 1/2. Drawn anew in every step.
    augment_empty : bool, default=True
        Whether a row may lose all of them, which teaches the prior. If not, the law is the same,
        given that at least one is kept.
    class_weight : dict or "balanced", optional
        Weights of the classes, as elsewhere in scikit-learn.
    resample : bool, default=False
        Whether rows of the smaller classes are drawn again, with replacement, until all classes
        have as many rows as the largest. Only rows trained on are drawn, by each member anew; rows
        that judge the epochs are weighed instead. The prior is then even.
    prior_correction : bool, default=True
        Whether the outputs are corrected so that a row without known values predicts the training
        prior exactly. The correction is zero for complete rows and grows with the fourth
        power of the share of features that are missing.
    min_known : float, default=0
        The model abstains from rows with a smaller share of known features: their probabilities
        and predicted numbers are NaN, and their predicted class is None.
    below_min_known : {"abstain", "raise"}, default="abstain"
        With "raise", a row below `min_known` is an error instead.
    dropout : float, default=0.3
        Dropout rate in front of every layer; 0.1 in the paper.
    input_dropout : {"unknown", "zero"}, default="unknown"
        What dropout makes of an input value: unknown, or zero, which is ordinary dropout and
        leaves alone what is missing (the paper).
    batch_size : int or "auto", default=64
        "auto" is 64, from 16,384 rows on 128, from 65,536 on 256; or all rows, if fewer.
    n_iter_no_change : float, default=10
        As in scikit-learn; infinity runs all `max_iter` epochs.
    solver, alpha, learning_rate, learning_rate_init, max_iter, shuffle, random_state, tol, \
verbose, warm_start, momentum, nesterovs_momentum, early_stopping, validation_fraction, beta_1, \
beta_2, epsilon, kinds, n_bins, max_categories, unseen
        As in `NanMLPClassifier`. The loss of rows set aside is that of the final decision alone.

    Attributes
    ----------
    modalities_ : dict
        The positions of the columns of every modality, by name.
    modality_columns_ : dict
        The same by the names of the columns.
    classes_ : array (K,)
        The class labels, sorted; the numbers of the labels if a row may have several.
    prior_ : array (K,)
        The weighted shares of the classes in training, resampled if they were.
    prior_offset_ : array (members, outputs) or None
        The correction of the outputs of an empty row; None without `prior_correction`.
    neutralizers_ : dict
        What each neuron sees in the place of a missing value, by feature.
    n_outputs_ : int
        Outputs of every decision, one for each class.
    encoder_, params_, loss_curve_, validation_loss_curve_, loss_, best_loss_, n_iter_, \
n_members_, n_features_in_, feature_names_in_, missing_values_, target_name_, reading_
        As in `NanMLPClassifier`.

    Examples
    --------
    >>> import pandas as pd
    >>> from promissing.estimators.fusion import NanFusionClassifier
    >>> frame = pd.DataFrame(
    ...     {"age": [20, None, 40, 61], "sex": ["f", "m", None, "m"], "crp": [1.0, 9.0, 2.0, None]}
    ... )
    >>> table, y = pd.concat([frame] * 20, ignore_index=True), [0, 1, 0, 1] * 20
    >>> model = NanFusionClassifier(
    ...     {"person": ["age", "sex"], "blood": ["crp"]}, max_iter=50, random_state=0
    ... )
    >>> model.fit(table, y).predict(frame)
    array([0, 1, 0, 1])
    >>> {name: p.shape for name, p in model.decision_by_modality(frame).items()}
    {'person': (4, 2), 'blood': (4, 2)}
    """

    _classes_type = _Softmax

    def __init__(
        self,
        modalities: Mapping[str, Any] | None = None,
        units: Any = None,
        *,
        remainder: str = "error",
        fusion_units: int = 16,
        activation: str = "relu",
        compensation: str = "feature",
        n_members: int | str = 1,
        augment: bool | float = False,
        augment_by: str = "number",
        augment_empty: bool = True,
        class_weight: Mapping[Any, float] | Literal["balanced"] | None = None,
        resample: bool = False,
        prior_correction: bool = True,
        min_known: float = 0.0,
        below_min_known: str = "abstain",
        dropout: float = 0.3,
        input_dropout: str = "unknown",
        solver: str = "adam",
        alpha: float = 1e-4,
        batch_size: int | str = 64,
        learning_rate: str = "cosine",
        learning_rate_init: float = 1e-3,
        max_iter: int | str = 200,
        shuffle: bool = True,
        random_state: Any = None,
        tol: float = 1e-4,
        verbose: bool = False,
        warm_start: bool = False,
        momentum: float = 0.9,
        nesterovs_momentum: bool = True,
        early_stopping: bool | str = False,
        validation_fraction: float = 0.1,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-8,
        n_iter_no_change: float = 10,
        kinds: Mapping[Any, str] | None = None,
        n_bins: int = 0,
        max_categories: int = 64,
        unseen: str = "ignore",
    ) -> None:
        super().__init__(
            modalities,
            units,
            remainder=remainder,
            fusion_units=fusion_units,
            activation=activation,
            compensation=compensation,
            n_members=n_members,
            augment=augment,
            augment_by=augment_by,
            augment_empty=augment_empty,
            prior_correction=prior_correction,
            min_known=min_known,
            below_min_known=below_min_known,
            dropout=dropout,
            input_dropout=input_dropout,
            solver=solver,
            alpha=alpha,
            batch_size=batch_size,
            learning_rate=learning_rate,
            learning_rate_init=learning_rate_init,
            max_iter=max_iter,
            shuffle=shuffle,
            random_state=random_state,
            tol=tol,
            verbose=verbose,
            warm_start=warm_start,
            momentum=momentum,
            nesterovs_momentum=nesterovs_momentum,
            early_stopping=early_stopping,
            validation_fraction=validation_fraction,
            beta_1=beta_1,
            beta_2=beta_2,
            epsilon=epsilon,
            n_iter_no_change=n_iter_no_change,
            kinds=kinds,
            n_bins=n_bins,
            max_categories=max_categories,
            unseen=unseen,
        )
        self.class_weight = class_weight
        self.resample = resample

    def partial_fit(
        self,
        X: Any,
        y: Any,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Go over the given rows once, at a constant rate.

        The first call needs all `classes`, and settles the encoding and the modalities.
        """
        if self.resample:
            raise ValueError(
                "`resample` needs all rows at once. For partial_fit pass a dict of class weights."
            )
        return super().partial_fit(X, y, classes, sample_weight)

    def _make_target(self, y: Array, weight: Array, classes: Any) -> Classes:
        if self.resample and y.ndim == 2:
            raise ValueError("`resample` is for one label a row, and y has several.")
        if self.resample and isinstance(self.class_weight, str):
            raise ValueError(
                "`resample` and `class_weight` 'balanced' both balance the classes. Use one of "
                "them."
            )
        return super()._make_target(y, weight, classes)

    def _draw(
        self, rows: list[Array], val_rows: list[Array] | None, targets: Array, weights: Array
    ) -> tuple[list[Array], Array]:
        if not self.resample:
            return rows, weights
        number = targets[:, 0].astype(int)
        drawn, own = [], np.tile(weights, (len(rows), 1))
        for r, (mine, rng) in enumerate(zip(rows, self._rngs, strict=True)):
            by_class = [mine[number[mine] == k] for k in range(len(self.classes_))]
            most = max(map(len, by_class))
            more = [rng.choice(some, most - len(some)) for some in by_class if len(some)]
            drawn.append(np.concatenate([mine, *more]))
            if val_rows is not None:
                times = np.array([most / max(len(some), 1) for some in by_class])
                own[r, val_rows[r]] *= times[number[val_rows[r]]]
        return drawn, weights if val_rows is None else own

    def _update_prior(self, y: Array, weight: Array, total: float, *, resume: bool) -> None:
        if self.resample:
            _, number, counts = np.unique(y, return_inverse=True, return_counts=True)
            weight = weight * counts.max() / counts[number]
        super()._update_prior(y, weight, total, resume=resume)


class NanFusionRegressor(NanRegressor, _NanFusion):
    """A regressor for tables of many modalities, with gaps in them or without some of them.

    As `NanFusionClassifier`, with decisions that are numbers. One target or several; the network
    sees them standardised, and the losses are in that unit.

    Parameters
    ----------
    modalities, units, remainder, fusion_units, activation, compensation, n_members, augment, \
augment_by, augment_empty, prior_correction, min_known, below_min_known, dropout, input_dropout, \
solver, alpha, batch_size, learning_rate, learning_rate_init, max_iter, shuffle, random_state, \
tol, verbose, warm_start, momentum, nesterovs_momentum, early_stopping, validation_fraction, \
beta_1, beta_2, epsilon, n_iter_no_change, kinds, n_bins, max_categories, unseen
        As in `NanFusionClassifier`.

    Attributes
    ----------
    prior_ : array (k,)
        The weighted mean of the targets in training.
    n_outputs_ : int
        Number of targets.
    modalities_, modality_columns_, neutralizers_, encoder_, params_, loss_curve_, \
validation_loss_curve_, loss_, best_loss_, n_iter_, n_members_, n_features_in_, \
feature_names_in_, missing_values_, target_name_, reading_
        As in `NanFusionClassifier`.

    Examples
    --------
    >>> import numpy as np
    >>> from promissing.estimators.fusion import NanFusionRegressor
    >>> X = np.random.default_rng(0).normal(size=(500, 4))
    >>> y = X.sum(axis=1)
    >>> X[::5, :2] = np.nan
    >>> model = NanFusionRegressor({"left": [0, 1], "right": [2, 3]}, random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.8)
    True
    """


def _is_plain(given: Any) -> bool:
    """Whether JSON can hold what a modality's columns are given by."""
    if isinstance(given, Sequence) and not isinstance(given, str | range):
        return all(isinstance(item, str) or is_position(item) for item in given)
    return isinstance(given, str) or is_position(given)


def build(problem: Any, *, random_state: int | None = 0, **settings: Any) -> Any:
    """Make the default estimator for a task.

    Parameters
    ----------
    problem : promissing.io.task.Problem
        The table, the target and the modalities.
    random_state : int or None, default=0
        Random seed.
    **settings
        Parameters of the estimator that differ from its defaults.

    Returns
    -------
    estimator
        A `NanFusionClassifier` or `NanFusionRegressor` if there are modalities, else a
        `NanMLPClassifier` or `NanMLPRegressor`. It is not fitted.
    """
    usual: dict[str, Any] = {"random_state": random_state}
    classifies = problem.task == "classification"
    if problem.modalities is None:
        kind: Any = NanMLPClassifier if classifies else NanMLPRegressor
        return kind(**usual | settings)
    usual |= {"augment": True, "n_members": 4, "early_stopping": "auto"}
    if len(problem.y) >= 10_000:
        usual["batch_size"] = 1000
    kind = NanFusionClassifier if classifies else NanFusionRegressor
    return kind(problem.modalities, **usual | settings)
