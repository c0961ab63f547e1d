"""Explanations of predictions, by making values missing.

All functions work with any estimator that predicts where values are missing: the estimators of
this package, gradient boosting, pipelines that impute. Nothing is trained, no background data is
needed, the table is never modified, and the model predicts a block of rows at a time.
"""

from promissing.inspection._information_loss import Trajectories, information_loss
from promissing.inspection._shapley import ShapleyValues, shapley
from promissing.inspection._smallest_change import SmallestChange, smallest_change
from promissing.inspection._what_if import Effects, importance, what_if
from promissing.inspection.displays import (
    CounterfactualDisplay,
    ModalityDecisionDisplay,
    NeutralizerDisplay,
    TrajectoryDisplay,
)

__all__ = [
    "CounterfactualDisplay",
    "Effects",
    "ModalityDecisionDisplay",
    "NeutralizerDisplay",
    "ShapleyValues",
    "SmallestChange",
    "Trajectories",
    "TrajectoryDisplay",
    "importance",
    "information_loss",
    "shapley",
    "smallest_change",
    "what_if",
]
