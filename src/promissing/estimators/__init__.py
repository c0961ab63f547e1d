"""The estimators, and how they are trained and saved."""

from promissing.estimators.fusion import NanFusionClassifier, NanFusionRegressor
from promissing.estimators.mlp import NanMLPClassifier, NanMLPRegressor
from promissing.estimators.persistence import load

__all__ = [
    "NanFusionClassifier",
    "NanFusionRegressor",
    "NanMLPClassifier",
    "NanMLPRegressor",
    "load",
]
