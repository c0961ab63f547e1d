"""Calibrated parts inside a model, so that they are saved in its file.

A part is a section of the model's attribute `calibration_`: values for JSON, and arrays. It holds
scores, orders and masks, never the values of a row: models are shared, and the people in a table
are not.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from promissing.estimators.base import NanEstimator

__all__ = ["LARGEST", "empty_row", "put", "require_own", "take"]

Array = NDArray[Any]

# Bytes of the sections that grow with the calibration rows; all sections take at most 20 MB.
LARGEST = {"conformal": 16 * 10**6, "selective": 3 * 10**6}
_ADVICE = {
    "conformal": "`ConformalClassifier(model, prefit=True).conformalize(X, y).store()`",
    "selective": "`SelectiveClassifier(model, prefit=True).calibrate(X, y).store()`",
    "acquisition": "`AcquisitionPlan(model, background).store()`",
}


def require_own(model: Any) -> None:
    """Refuse models of other packages, whose files are not written here.

    Parameters
    ----------
    model : estimator
        Any model.
    """
    if not isinstance(model, NanEstimator):
        raise ValueError(
            f"A calibration can be stored only in models of promissing, and the estimator is of "
            f"type {type(model).__name__}. Keep the wrapper itself, for example with skops or "
            "joblib."
        )


def empty_row(model: Any) -> Any:
    """Return a row without known values, in the form in which the model takes rows.

    Parameters
    ----------
    model : NanEstimator
        The fitted model.

    Returns
    -------
    ndarray or DataFrame (1, p)
        The row.
    """
    row = np.full((1, model.n_features_in_), np.nan)
    names = getattr(model, "feature_names_in_", None)
    return row if names is None else pd.DataFrame(row, columns=names)


def put(model: Any, section: str, values: Mapping[str, Any], arrays: Mapping[str, Array]) -> None:
    """Store a section in a model; an earlier one of the same name is replaced.

    Parameters
    ----------
    model : NanEstimator
        The fitted model.
    section : str
        The name of the section.
    values : mapping
        Values for JSON.
    arrays : mapping of ndarray
        Arrays by name.
    """
    plain = {k: v.item() if isinstance(v, np.generic) else v for k, v in values.items()}
    model.calibration_ = {**model.calibration_, section: (plain, dict(arrays))}


def take(
    model: Any, section: str, types: Mapping[str, str]
) -> tuple[dict[str, Any], dict[str, Array]]:
    """Return a section of a model; refuse a model without it, and arrays of other types.

    Parameters
    ----------
    model : NanEstimator
        The fitted model.
    section : str
        The name of the section.
    types : mapping of str to str
        The name of the dtype of every array.

    Returns
    -------
    values : dict
        Values.
    arrays : dict of ndarray
        Arrays by name.
    """
    require_own(model)
    if section not in model.calibration_:
        raise ValueError(
            f"The model holds no calibration for this. Store one with {_ADVICE[section]}, and save "
            "the model again."
        )
    values, arrays = model.calibration_[section]
    if {name: array.dtype.name for name, array in arrays.items()} != types:
        raise ValueError(f"The section {section!r} of the model is damaged: its arrays do not fit.")
    return values, arrays
