"""Estimators for tables of several modalities. A row may lack whole modalities."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from promissing.estimators.base import NanClassifier, NanEstimator, NanRegressor
from promissing.estimators.documentation import documented
from promissing.estimators.mlp import NanMLPClassifier, NanMLPRegressor
from promissing.estimators.modalities import find_columns, find_units, is_position
from promissing.estimators.recipe import PAPER
from promissing.networks.fusion import Fusion
from promissing.networks.losses import ClassLoss, CrossEntropy, MultiLabelLogLoss
from promissing.training.options import Augmentation

__all__ = ["PAPER", "NanFusionClassifier", "NanFusionRegressor", "build"]

Array = NDArray[Any]


@dataclass(eq=False, repr=False)
class _NanFusion(NanEstimator):
    """What classifier and regressor share: modalities and the network."""

    modalities: Mapping[str, Any] | None = None
    units: Any = None
    _: KW_ONLY
    remainder: str = "error"
    fusion_units: int = 16
    activation: str = "relu"
    augment_by: str = "number"
    augment_empty: bool = True
    dropout: float = 0.3
    input_dropout: str = "unknown"
    solver: str = "adam"
    learning_rate_init: float = 1e-3
    max_iter: int | str = 200
    average: bool = False
    n_bins: int = 0

    @property
    def modality_columns_(self) -> dict[str, list[str | int]]:
        """Names of the columns of every modality, or positions if they have no names.

        Examples
        --------
        >>> import numpy as np
        >>> from promissing import NanFusionRegressor
        >>> X = np.random.default_rng(0).normal(size=(100, 2))
        >>> model = NanFusionRegressor({"a": [0], "b": [1]}, n_members=1, max_iter=2)
        >>> model.fit(X, X[:, 0]).modality_columns_
        {'a': [0], 'b': [1]}
        """
        key = self.encoder_.feature_key
        return {name: [key(j) for j in columns] for name, columns in self.modalities_.items()}

    @property
    def neutralizers_(self) -> dict[str | int, Array]:
        """The values that have the same effect as a missing value, by feature.

        The arrays are (members, neurons of the modality, columns of the feature), in the units of
        the encoded table: for a number, 0 is its mean and 1 is a standard deviation above.

        Examples
        --------
        >>> import numpy as np
        >>> from promissing import NanFusionRegressor
        >>> X = np.random.default_rng(0).normal(size=(100, 2))
        >>> model = NanFusionRegressor(n_members=1, n_bins=0, max_iter=2, random_state=0)
        >>> model.fit(X, X[:, 0]).neutralizers_[0].shape
        (1, 8, 1)
        """
        network, encoder = self._network, self.encoder_
        members = [
            network.neutralizers({name: value[m] for name, value in self.params_.items()})
            for m in range(self.n_members_)
        ]
        u = np.stack(members)
        neuron = np.repeat(np.arange(len(network.units)), network.units)
        return {
            encoder.feature_key(j): u[:, neuron == i][:, :, encoder.groups_ == j]
            for i, columns in enumerate(self.modalities_.values())
            for j in columns
        }

    def decision_by_modality(self, X: Any) -> dict[str, NDArray[np.float64]]:
        """Return the decision of each modality alone, the mean of the members.

        Parameters
        ----------
        X : frame or array (n, p)
            The rows.

        Returns
        -------
        dict of ndarray
            By name of the modality, what `predict_proba` returns, (n, K), or `predict` in
            regression. An empty modality gives the decision it has learned for that case.

        Examples
        --------
        >>> import numpy as np
        >>> from promissing import NanFusionRegressor
        >>> X = np.random.default_rng(0).normal(size=(100, 2))
        >>> model = NanFusionRegressor({"a": [0], "b": [1]}, n_members=1, max_iter=2)
        >>> sorted(model.fit(X, X[:, 0]).decision_by_modality(X[:3]))
        ['a', 'b']
        """
        outputs, _ = self._evaluate(X, part="decisions")
        decisions = self._loss.decode(np.moveaxis(outputs, 2, 0)).mean(axis=1)
        return dict(zip(self.modalities_, decisions, strict=True))

    def _make_network(self, X: Any, *, resume: bool = False) -> Fusion:
        given = (self.modalities, self.remainder)
        # A callable may choose other columns of further rows, so it is not called again for them.
        if not resume or given[0] is not self._given[0] or given[1] != self._given[1]:
            self.modalities_ = find_columns(*given, X, self.encoder_)
            self._given: tuple[Any, str] = given
        return Fusion(
            len(self.encoder_.groups_),
            self._loss.n_outputs,
            self._loss,
            modalities=self._modality_of_columns(),
            units=find_units(self.units, self.modalities_),
            fusion_units=int(self.fusion_units),
            activation=self.activation,
            compensation=self.compensation,
            groups=tuple(self.encoder_.groups_.tolist()),
            input_dropout=self.input_dropout,
        )

    def _modality_of_columns(self) -> tuple[int, ...]:
        """Return the number of the modality of each encoded column, -1 if it is not used."""
        number = np.full(self.encoder_.n_features_in_, -1)
        for i, columns in enumerate(self.modalities_.values()):
            number[columns] = i
        return tuple(number[self.encoder_.groups_].tolist())

    def _augmentation(self, gaps: Array) -> Augmentation:
        return Augmentation(
            share=self.recipe_.augment,
            units=[max(number, 0) for number in self._network.modalities],
            law=self.augment_by,
            allow_empty=bool(self.augment_empty),
        )

    def _empty_rows(self) -> bool:
        return False  # Rows that lose all modalities teach the prior.

    def _learns_gaps(self) -> bool:
        return bool(self.augment or (self.dropout and self.input_dropout == "unknown"))

    def _check_restored(self) -> None:
        self._given = (self.modalities, self.remainder)
        used = [j for columns in self.modalities_.values() for j in columns]
        network, features = self._network, range(self.encoder_.n_features_in_)
        if (
            not all(is_position(j) and j in features for j in used)
            or len(set(used)) != len(used)
            or network.groups != tuple(self.encoder_.groups_.tolist())
            or network.modalities != self._modality_of_columns()
            or len(network.units) != len(self.modalities_)
        ):
            raise ValueError("the modalities are not those of the network")


@documented
@dataclass(eq=False, repr=False)
class NanFusionClassifier(_NanFusion, NanClassifier):
    """Classifier for tables of several modalities. A row may lack whole modalities.

    Every modality, such as a questionnaire or a scan, has a representation in which missing values
    are pruned, and a decision of its own. A fusion layer receives all representations and decisions
    and makes the final decision. All parts are trained at once, on the sum of their losses; the
    validation loss is that of the final decision.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    {attributes}

    Examples
    --------
    >>> import pandas as pd
    >>> from promissing import NanFusionClassifier
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

    def _loss_type(self, labels: Array, *, multilabel: bool) -> type[ClassLoss]:
        # Every decision has one output per class, for two classes too, as in the paper.
        return MultiLabelLogLoss if multilabel else CrossEntropy


@documented
@dataclass(eq=False, repr=False)
class NanFusionRegressor(_NanFusion, NanRegressor):
    """Regressor for tables of several modalities. A row may lack whole modalities.

    The network is that of `NanFusionClassifier`, with numbers as decisions. There may be several
    targets. The network predicts standardised targets, and the losses are in that unit.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    {attributes}

    Examples
    --------
    >>> import numpy as np
    >>> from promissing import NanFusionRegressor
    >>> X = np.random.default_rng(0).normal(size=(500, 4))
    >>> y = X.sum(axis=1)
    >>> X[::5, :2] = np.nan
    >>> model = NanFusionRegressor(
    ...     {"left": [0, 1], "right": [2, 3]}, n_members=2, loss="squared_error", random_state=0
    ... )
    >>> bool(model.fit(X, y).score(X, y) > 0.8)
    True
    """


def build(problem: Any, *, random_state: int | None = 0, **settings: Any) -> Any:
    """Return the default estimator for a task, not fitted.

    Parameters
    ----------
    problem : promissing.io.task.PredictionTask
        The table, the target and the modalities.
    random_state : int or None, default=0
        Random seed.
    **settings
        Parameters of the estimator that differ from its defaults.

    Returns
    -------
    estimator
        A `NanFusionClassifier` or `NanFusionRegressor` if there are modalities, otherwise a
        `NanMLPClassifier` or `NanMLPRegressor`.

    Examples
    --------
    >>> import pandas as pd
    >>> from promissing.estimators import build
    >>> from promissing.io import define_task
    >>> frame = pd.DataFrame({"x": range(10), "y": ["a", "b"] * 5})
    >>> build(define_task(frame, "y"))
    NanMLPClassifier(random_state=0)
    """
    classifies = problem.task == "classification"
    if problem.modalities is None:
        kind: Any = NanMLPClassifier if classifies else NanMLPRegressor
        return kind(random_state=random_state, **settings)
    kind = NanFusionClassifier if classifies else NanFusionRegressor
    return kind(problem.modalities, random_state=random_state, **settings)
