"""Multi-layer perceptrons for tables with gaps, in the manner of scikit-learn's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from promissing import _formula
from promissing.estimators import linear_skip as _lines
from promissing.estimators import recipe as _automatic
from promissing.estimators.estimator import NanEstimator
from promissing.estimators.tasks import NanClassifier, NanRegressor
from promissing.networks.mlp import FIXED, MLP

__all__ = ["PLAIN", "NanMLPClassifier", "NanMLPRegressor"]

Array = NDArray[Any]

# One plain network, as scikit-learn's: parameters of NanMLPClassifier and NanMLPRegressor.
PLAIN: Mapping[str, Any] = MappingProxyType(
    {
        "hidden_layer_sizes": (100,),
        "compensation_rate": 0.0,
        "gate_rate": 0.0,
        "n_members": 1,
        "augment": False,
        "dropout": 0.0,
        "solver": "adam",
        "alpha": 1e-4,
        "batch_size": 200,
        "learning_rate_init": 1e-3,
        "max_iter": 200,
        "early_stopping": False,
        "average": False,
        "n_bins": 0,
        "fine_bins": 0,
    }
)


class _NanMLP(NanEstimator):
    """What classifier and regressor share: the network."""

    compensation: str
    compensation_rate: float
    straight: bool
    _network_type = MLP
    _has_empty_row = True
    _augments_by_gaps = True

    def __init__(
        self,
        hidden_layer_sizes: Any = (128, 128),
        activation: str = "relu",
        *,
        compensation: str = "feature",
        compensation_rate: float = 2.0,
        gate_rate: float = 100.0,
        straight: bool = True,
        n_members: int | str = "auto",
        augment: bool | float | str = "auto",
        prior_correction: bool = True,
        min_known: float = 0.0,
        below_min_known: str = "abstain",
        dropout: float = 0.1,
        solver: str = "adamw",
        alpha: float = 1.0,
        batch_size: int | str = "auto",
        learning_rate: str = "cosine",
        learning_rate_init: float = 2e-3,
        max_iter: int | str = "auto",
        shuffle: bool = True,
        random_state: Any = None,
        tol: float = 1e-4,
        verbose: bool = False,
        warm_start: bool = False,
        momentum: float = 0.9,
        nesterovs_momentum: bool = True,
        early_stopping: bool | str = "auto",
        validation_fraction: float = 0.1,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-8,
        n_iter_no_change: float = 10,
        average: bool = True,
        kinds: Mapping[Any, str] | None = None,
        n_bins: int = 16,
        fine_bins: int | str = "auto",
        max_categories: int = 64,
        unseen: str = "ignore",
    ) -> None:
        self.hidden_layer_sizes = hidden_layer_sizes
        self.activation = activation
        self.compensation = compensation
        self.compensation_rate = compensation_rate
        self.gate_rate = gate_rate
        self.straight = straight  # Of the regressor alone.
        self.n_members = n_members
        self.augment = augment
        self.prior_correction = prior_correction
        self.min_known = min_known
        self.below_min_known = below_min_known
        self.dropout = dropout
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
        self.average = average
        self.kinds = kinds
        self.n_bins = n_bins
        self.fine_bins = fine_bins
        self.max_categories = max_categories
        self.unseen = unseen

    @property
    def neutralizers_(self) -> dict[str | int, Array]:
        """U by feature, {name: (members, neurons, columns of the feature)}.

        The value which, put in the gap, gives the activation the gap gives; in the units of the
        encoded table. In the first column of a number 0 is its mean and 1 a standard deviation
        above it.
        """
        members = []
        for m in range(self.n_members_):
            params = {name: value[m] for name, value in self.params_.items()}
            members.append(self._network.neutralizers(params))
        u, encoder = np.stack(members), self.encoder_
        return {
            encoder._key(j): u[:, :, encoder.groups_ == j] for j in range(encoder.n_features_in_)
        }

    def _encoding(self) -> dict[str, Any]:
        encoding = super()._encoding()
        if not self.gate_rate and encoding["fine_bins"] == "auto":
            encoding["fine_bins"] = 0  # Without gates nothing holds them back.
        return encoding

    def _fine(self) -> tuple[bool, ...] | None:
        return tuple(self.encoder_.fine_.tolist()) if self.encoder_.fine_.any() else None

    def _draw_lines(self, table: Array, y: Array, weight: Array) -> None:
        if not (self.straight and self.n_bins and self._target.loss == "squared"):
            return
        lines = _lines.draw_lines(
            table,
            y.reshape(len(y), -1),
            weight,
            encoder=self.encoder_,
            network=self._network,
            target=self._target,
        )
        if lines is not None:
            self._network = replace(self._network, straight=True)
            self._fixed = self._network.straighten(lines.weights)
            self._target = replace(self._target, mean=lines.mean, scale=lines.scale)

    def _restored(self) -> None:
        network = self._network
        self._fixed = {n: a[0] for n, a in self.params_.items() if n in FIXED}
        if (network.groups, network.fine) != (tuple(self.encoder_.groups_.tolist()), self._fine()):
            raise ValueError("the columns are not those of the network")

    def _rates(self, gaps: Array) -> dict[str, Array] | None:
        faster = {}
        rates = _automatic.compensation_rates(self.compensation_rate, gaps)
        if self.compensation == "feature" and (rates != 1).any():
            faster["compensation_weight"] = rates[:, None]
        if self.gate_rate and self.solver == "sgd":
            # The network multiplies gates by their rate, and so their gradients too. Adam divides
            # that out again; without this, SGD would move gates by the square of the rate.
            faster["gate"] = np.array(1 / self.gate_rate)
        return faster or None

    def _make_network(self, n_outputs: int, loss: str) -> MLP:
        given = self.hidden_layer_sizes
        sizes = np.atleast_1d(np.asarray(given, dtype=object)).tolist()
        if not all(_formula.is_count(size) for size in sizes):
            raise ValueError(f"`hidden_layer_sizes` must be positive integers. Received: {given!r}")
        groups = tuple(int(g) for g in self.encoder_.groups_)
        return MLP(
            len(groups),
            n_outputs,
            loss,
            hidden=tuple(int(s) for s in sizes),
            activation=self.activation,
            compensation=self.compensation,
            groups=groups,
            gate_rate=float(self.gate_rate),
            fine=self._fine(),
            straight=bool(self._fixed) and self.straight,
        )


class NanMLPClassifier(NanClassifier, _NanMLP):
    """A multi-layer perceptron classifier for tables with gaps, categories and text.

    What is missing is pruned inside the first layer; nothing is imputed. Change one word in code
    that uses `sklearn.neural_network.MLPClassifier`: the parameters have the same names. The
    defaults are a strong recipe, chosen by measurement (see the page on accuracy in the
    documentation): an ensemble on piecewise-linear encodings, with gates. `PLAIN`
    holds the parameters of one plain network: ``NanMLPClassifier(**PLAIN)``.

    Parameters
    ----------
    hidden_layer_sizes : int or sequence of int, default=(128, 128)
        The sizes of the hidden layers; empty for a linear model.
    activation : {"identity", "logistic", "tanh", "relu", "gelu", "silu"}, default="relu"
    compensation : {"none", "shared", "feature"}, default="feature"
        What a neuron adds for what is missing: nothing (PROMISSING), one learned weight times the
        share missing (mPROMISSING), or one learned weight per missing feature.
    compensation_rate : float, default=2
        With one compensation per feature, that of a feature with gaps learns this number over the
        standard deviation of its absence times as fast as a weight: what a rare gap tells is learnt
        as soon as what a frequent one does. 0 lets it learn as any other weight.
    gate_rate : float, default=100
        The weights of every feature are multiplied with its gate, a number that starts at 1 and
        learns so many times as fast as a weight: what does not matter is soon shut out. The fine
        bins of a number have a second gate, which starts at a tenth: they count where they have
        proved themselves. 0 does without gates, and "auto" then without fine bins.
    n_members : int or "auto", default="auto"
        Networks in the ensemble, trained at once from different starts; predictions are averaged.
        "auto" is 12, and 8 for more than 5,000 rows; who goes on with a model has as many as it
        began with.
    augment : bool, float or "auto", default="auto"
        Share of the rows of a batch that get extra gaps while training (True: 0.5; "auto": 0.1, for
        regression 0.02). Such a row loses each feature with a probability of its own, drawn from
        U(0, 1), so that the network learns to do without. By "auto" the other rows lose some too,
        with probabilities from U(0, 0.5), but only of the features that have gaps anyway, and where
        gaps are many: if more than an eighth of the cells are missing, and from a quarter of them
        on in full, no feature counting for more than that quarter. One more row in 16 is
        empty and has the prior as its target. With any `augment`, `prior_correction` makes an empty
        row predict the prior exactly.
    class_weight : dict or "balanced", optional
        Weights of the classes, as elsewhere in scikit-learn.
    prior_correction : bool, default=True
        Whether the outputs are corrected so that a row without known values predicts the training
        prior exactly. The correction is zero for complete rows and grows with the fourth
        power of the share of features that are missing.
    min_known : float, default=0
        The model abstains from rows with a smaller share of known features: their probabilities
        and predicted numbers are NaN, and their predicted class is None.
    below_min_known : {"abstain", "raise"}, default="abstain"
        With "raise", a row below `min_known` is an error instead.
    dropout : float, default=0.1
        Dropout rate of the hidden layers.
    solver : {"adamw", "adam", "sgd"}, default="adamw"
    alpha : float, default=1
        Strength of the decoupled weight decay with "adamw", for which the default is meant; of the
        L2 penalty, over the sum of weights of a batch, with the others.
    batch_size : int or "auto", default="auto"
        "auto" is 64, from 16,384 rows on 128, from 65,536 on 256; or all rows, if fewer.
    learning_rate : {"cosine", "constant"}, default="cosine"
        "cosine" lets the rate fall to 0 over `max_iter` epochs, and without validation runs all of
        them; "constant" stops when the training loss no longer falls, as scikit-learn does. A
        `ConvergenceWarning` tells if "constant" ends before that, or if training ends after fewer
        than 100 steps.
    learning_rate_init : float, default=2e-3
    max_iter : int or "auto", default="auto"
        The most epochs. "auto" is 64, and 24 for more than 5,000 rows; fewer, but at least 12,
        where they would go over more than 350,000 rows in all, and more where they would make
        fewer than 300 steps.
    shuffle, tol, n_iter_no_change, momentum, nesterovs_momentum, beta_1, beta_2, epsilon
        As in scikit-learn.
    average : bool, default=True
        Whether the weights that are judged after every epoch and kept are an average over the last
        twentieth of the steps so far, at most 2,000. Who goes on with a model goes on from these;
        `partial_fit` does not average.
    early_stopping : bool or "auto", default="auto"
        Set `validation_fraction` of the rows aside, keep the best epoch and stop when the loss on
        them has not improved by `tol` for `n_iter_no_change` epochs. Each member sets its own
        rows aside, at least two. "auto" does so from 100 rows on.
    validation_fraction : float, default=0.1
    warm_start : bool, default=False
        Whether `fit` goes on from where the last one ended, with the encoding of the first and on
        the same classes.
    random_state : int, RandomState or None, default=None
        Seed of the initial weights, the split and the order of the rows.
    verbose : bool, default=False
        Whether to show a progress bar.
    kinds, n_bins, fine_bins, max_categories, unseen
        How columns are encoded, by default on 16 bins and if they are few on 32 fine ones besides:
        see `promissing.encoding.table_encoder.TableEncoder`.

    Attributes
    ----------
    classes_ : array (K,)
        The class labels, sorted; the numbers of the labels if a row may have several.
    prior_ : array (K,)
        The weighted shares of the classes in training.
    prior_offset_ : array (members, outputs) or None
        The correction of the outputs of an empty row; None without `prior_correction`.
    encoder_ : TableEncoder
        The fitted encoder of the columns.
    params_ : dict of arrays
        The weights, each with a leading axis for the members.
    loss_curve_, validation_loss_curve_ : list of float
        The loss by epoch, averaged over the members; the second is empty without validation. With
        `warm_start` and `partial_fit` they continue.
    loss_, best_loss_ : float
        The last and the least training loss of `loss_curve_`.
    n_iter_ : int
        Epochs run by the last call of `fit` or `partial_fit`.
    n_members_ : int
        Networks in the ensemble.
    neutralizers_ : dict
        What each neuron sees in the place of a missing value, by feature.
    n_features_in_ : int
        Columns of the table.
    feature_names_in_ : array of str
        Names of the columns. Only if the table has names, all strings.
    n_outputs_ : int
        Outputs of the network: one for two classes.
    missing_values_ : tuple of str
        Texts that were read as missing in the file the model was fitted on. Set by the command
        line; otherwise empty.
    target_name_ : str or None
        The name of the target column. Set by the command line; otherwise None.
    reading_ : dict or None
        Options the table was read with. Set by the command line; otherwise None.

    Examples
    --------
    >>> import pandas as pd
    >>> from promissing import NanMLPClassifier
    >>> frame = pd.DataFrame({"age": [20, None, 40, 61] * 20, "sex": ["f", "m", None, "m"] * 20})
    >>> model = NanMLPClassifier(n_members=2, random_state=0)
    >>> y = [0, 1, 0, 1] * 20
    >>> model.fit(frame, y).predict(frame[:4])
    array([0, 1, 0, 1])
    >>> model.known_share(frame[:4])
    array([1. , 0.5, 0.5, 1. ])
    """

    def __init__(
        self,
        hidden_layer_sizes: Any = (128, 128),
        activation: str = "relu",
        *,
        compensation: str = "feature",
        compensation_rate: float = 2.0,
        gate_rate: float = 100.0,
        n_members: int | str = "auto",
        augment: bool | float | str = "auto",
        class_weight: Mapping[Any, float] | Literal["balanced"] | None = None,
        prior_correction: bool = True,
        min_known: float = 0.0,
        below_min_known: str = "abstain",
        dropout: float = 0.1,
        solver: str = "adamw",
        alpha: float = 1.0,
        batch_size: int | str = "auto",
        learning_rate: str = "cosine",
        learning_rate_init: float = 2e-3,
        max_iter: int | str = "auto",
        shuffle: bool = True,
        random_state: Any = None,
        tol: float = 1e-4,
        verbose: bool = False,
        warm_start: bool = False,
        momentum: float = 0.9,
        nesterovs_momentum: bool = True,
        early_stopping: bool | str = "auto",
        validation_fraction: float = 0.1,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-8,
        n_iter_no_change: float = 10,
        average: bool = True,
        kinds: Mapping[Any, str] | None = None,
        n_bins: int = 16,
        fine_bins: int | str = "auto",
        max_categories: int = 64,
        unseen: str = "ignore",
    ) -> None:
        super().__init__(
            hidden_layer_sizes,
            activation,
            compensation=compensation,
            compensation_rate=compensation_rate,
            gate_rate=gate_rate,
            straight=False,
            n_members=n_members,
            augment=augment,
            prior_correction=prior_correction,
            min_known=min_known,
            below_min_known=below_min_known,
            dropout=dropout,
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
            average=average,
            kinds=kinds,
            n_bins=n_bins,
            fine_bins=fine_bins,
            max_categories=max_categories,
            unseen=unseen,
        )
        self.class_weight = class_weight


class NanMLPRegressor(NanRegressor, _NanMLP):
    """A multi-layer perceptron regressor for tables with gaps, categories and text.

    What is missing is pruned inside the first layer; nothing is imputed. Change one word in code
    that uses `sklearn.neural_network.MLPRegressor`: the parameters have the same names. One target
    or several; the network sees them standardised, or what lines leave of them (see `straight`),
    and the losses are in that unit.

    Parameters
    ----------
    straight : bool, default=True
        If straight lines through the columns explain two thirds of a target's variance, of rows
        left out one by one, and it matters that they go on for what is far out, a linear layer
        leads straight to it, and the network learns what that leaves: sums of columns with long
        tails go on where a network would end. Gaps are pruned there as well. Only where there are
        bins and at most 400 columns, a category counting for as many as it has values. A first call
        of `partial_fit` draws none.
    hidden_layer_sizes, activation, compensation, compensation_rate, gate_rate, n_members, \
augment, prior_correction, min_known, below_min_known, \
dropout, solver, alpha, batch_size, learning_rate, learning_rate_init, \
max_iter, shuffle, random_state, tol, verbose, warm_start, momentum, nesterovs_momentum, \
early_stopping, validation_fraction, beta_1, beta_2, epsilon, n_iter_no_change, average, kinds, \
n_bins, fine_bins, max_categories, unseen
        As in `NanMLPClassifier`.

    Attributes
    ----------
    prior_ : array (k,)
        The weighted mean of the targets in training.
    encoder_, params_, loss_curve_, validation_loss_curve_, loss_, best_loss_, n_iter_, \
n_members_, neutralizers_, n_features_in_, feature_names_in_, n_outputs_, missing_values_, \
target_name_, reading_
        As in `NanMLPClassifier`.

    Examples
    --------
    >>> import numpy as np
    >>> from promissing import NanMLPRegressor
    >>> X = np.random.default_rng(0).normal(size=(500, 3))
    >>> y = X.sum(axis=1)
    >>> X[::5, 0] = np.nan
    >>> model = NanMLPRegressor(n_members=2, random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.85)
    True
    """
