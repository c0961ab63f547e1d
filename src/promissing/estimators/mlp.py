"""Multi-layer perceptrons for tables with missing values, in the manner of scikit-learn's."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from promissing._formula import is_count
from promissing.estimators import recipe
from promissing.estimators.base import NanClassifier, NanEstimator, NanRegressor
from promissing.estimators.documentation import documented
from promissing.estimators.parameters import current_parameters
from promissing.estimators.recipe import PLAIN
from promissing.networks.losses import ClassLoss, CrossEntropy, LogLoss, MultiLabelLogLoss
from promissing.networks.mlp import FIXED, MLP
from promissing.training.options import Augmentation

__all__ = ["PLAIN", "NanMLPClassifier", "NanMLPRegressor"]

Array = NDArray[Any]


@dataclass(eq=False, repr=False)
class _NanMLP(NanEstimator):
    """What classifier and regressor share: the network."""

    hidden_layer_sizes: Any = (128, 128)
    activation: str = "relu"
    _: KW_ONLY
    compensation_rate: float = 2.0
    gate_rate: float = 100.0
    n_fine_bins: int | str = "auto"
    fine_bins: int | str = "deprecated"

    @property
    def neutralizers_(self) -> dict[str | int, Array]:
        """The values that have the same effect as a missing value, by feature.

        The arrays are (members, neurons, columns of the feature), in the units of the encoded
        table. In the first column of a number, 0 is its mean and 1 is a standard deviation above.

        Examples
        --------
        >>> import numpy as np
        >>> from promissing import NanMLPRegressor
        >>> X = np.random.default_rng(0).normal(size=(100, 2))
        >>> model = NanMLPRegressor(n_members=1, n_bins=0, max_iter=2, random_state=0)
        >>> model.fit(X, X[:, 0]).neutralizers_[0].shape
        (1, 128, 1)
        """
        encoder = self.encoder_
        members = [
            self._network.neutralizers({name: value[m] for name, value in self.params_.items()})
            for m in range(self.n_members_)
        ]
        u = np.stack(members)
        return {
            encoder.feature_key(j): u[:, :, encoder.groups_ == j]
            for j in range(encoder.n_features_in_)
        }

    def _make_network(self, X: Any, *, resume: bool = False) -> MLP:
        given = self.hidden_layer_sizes
        sizes = np.atleast_1d(np.asarray(given, dtype=object)).tolist()
        if not all(is_count(size) for size in sizes):
            raise ValueError(f"`hidden_layer_sizes` must be positive integers. Received: {given!r}")
        groups = tuple(int(g) for g in self.encoder_.groups_)
        return MLP(
            len(groups),
            self._loss.n_outputs,
            self._loss,
            hidden=tuple(int(s) for s in sizes),
            activation=self.activation,
            compensation=self.compensation,
            groups=groups,
            gate_rate=float(self.gate_rate),
            fine=self._fine(),
            linear_skip=bool(self._fixed)
            and bool(current_parameters(self, silent=True).get("linear_skip")),
        )

    def _fine(self) -> tuple[bool, ...] | None:
        return tuple(self.encoder_.fine_.tolist()) if self.encoder_.fine_.any() else None

    def _augmentation(self, gaps: Array) -> Augmentation:
        return Augmentation(
            share=self.recipe_.augment,
            units=[int(g) for g in self.encoder_.groups_],
            others=recipe.augment_others(self.augment, gaps),
        )

    def _empty_rows(self) -> bool:
        return bool(self.augment)

    def _learns_gaps(self) -> bool:
        return bool(self.augment)

    def _check_restored(self) -> None:
        network = self._network
        self._fixed = {n: a[0] for n, a in self.params_.items() if n in FIXED}
        if (network.groups, network.fine) != (tuple(self.encoder_.groups_.tolist()), self._fine()):
            raise ValueError("the columns are not those of the network")


@documented
@dataclass(eq=False, repr=False)
class NanMLPClassifier(_NanMLP, NanClassifier):
    """Multi-layer perceptron classifier for tables with missing values, categories and text.

    Missing values are pruned inside the first layer; nothing is imputed. The parameters have the
    names of `sklearn.neural_network.MLPClassifier`, so that one word changes in existing code. The
    defaults are a strong recipe, chosen by measurement: an ensemble on piecewise-linear encodings,
    with gates. ``NanMLPClassifier(**promissing.estimators.PLAIN)`` is one plain network.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    {attributes}

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

    def _loss_type(self, labels: Array, *, multilabel: bool) -> type[ClassLoss]:
        if multilabel:
            return MultiLabelLogLoss
        return LogLoss if len(labels) == 2 else CrossEntropy


@documented
@dataclass(eq=False, repr=False)
class NanMLPRegressor(_NanMLP, NanRegressor):
    """Multi-layer perceptron regressor for tables with missing values, categories and text.

    Missing values are pruned inside the first layer; nothing is imputed. The parameters have the
    names of `sklearn.neural_network.MLPRegressor`, so that one word changes in existing code. There
    may be several targets. The network predicts standardised targets, or what a linear skip
    connection leaves of them (see `linear_skip`), and the losses are in that unit.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    {attributes}

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

    _: KW_ONLY
    linear_skip: bool = True
    straight: bool | str = "deprecated"
