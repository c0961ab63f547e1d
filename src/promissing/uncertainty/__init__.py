"""Uncertainty: prediction sets and intervals, abstention, what to measure next, and drift."""

from promissing.uncertainty.acquisition import (
    AcquisitionCurve,
    AcquisitionPlan,
    NextMeasurement,
    acquisition_curve,
    next_measurement,
)
from promissing.uncertainty.conformal import ConformalClassifier, ConformalRegressor
from promissing.uncertainty.drift import MissingnessDrift, missingness_drift
from promissing.uncertainty.results import CoverageByMissing, PredictionIntervals, PredictionSets
from promissing.uncertainty.selective import SelectiveClassifier, SelectiveRegressor

__all__ = [
    "AcquisitionCurve",
    "AcquisitionPlan",
    "ConformalClassifier",
    "ConformalRegressor",
    "CoverageByMissing",
    "MissingnessDrift",
    "NextMeasurement",
    "PredictionIntervals",
    "PredictionSets",
    "SelectiveClassifier",
    "SelectiveRegressor",
    "acquisition_curve",
    "missingness_drift",
    "next_measurement",
]
