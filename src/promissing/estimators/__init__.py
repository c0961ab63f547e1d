"""The estimators: how they are trained, predict and are saved."""

from promissing.estimators.base import Prediction, SelectivePrediction
from promissing.estimators.fusion import NanFusionClassifier, NanFusionRegressor, build
from promissing.estimators.mlp import NanMLPClassifier, NanMLPRegressor
from promissing.estimators.persistence import load, save
from promissing.estimators.recipe import PAPER, PLAIN, Recipe

__all__ = [
    "PAPER",
    "PLAIN",
    "NanFusionClassifier",
    "NanFusionRegressor",
    "NanMLPClassifier",
    "NanMLPRegressor",
    "Prediction",
    "Recipe",
    "SelectivePrediction",
    "build",
    "load",
    "save",
]
