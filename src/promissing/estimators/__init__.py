"""The estimators: how they are trained, predict and are saved."""

from typing import TYPE_CHECKING, Any

from promissing.estimators.base import Prediction, SelectivePrediction
from promissing.estimators.fusion import NanFusionClassifier, NanFusionRegressor, build
from promissing.estimators.missing_record import MissingRecord
from promissing.estimators.mlp import NanMLPClassifier, NanMLPRegressor
from promissing.estimators.recipe import PAPER, PLAIN, Recipe

if TYPE_CHECKING:
    from promissing.estimators.persistence import load, save

__all__ = [
    "PAPER",
    "PLAIN",
    "MissingRecord",
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


def __getattr__(name: str) -> Any:
    # Reading and writing files needs PyArrow, which takes a moment to import.
    if name in ("load", "save"):
        from promissing.estimators import persistence

        return getattr(persistence, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
