"""Distributions of the columns, and their associations with the target."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import spearmanr
from scipy.stats.contingency import association
from sklearn.metrics import roc_auc_score

__all__ = ["describe_columns"]

Array = NDArray[Any]

_BINS = 12
_MOST_LEVELS = 12  # Categories drawn, the most frequent ones.
_MOST_COLUMNS = 500


def describe_columns(X: pd.DataFrame, y: Array, classes: Array | None, positive: Any) -> Any:
    """Describe every column, and its association with the target.

    Parameters
    ----------
    X : DataFrame of shape (n, p)
        The features.
    y : ndarray of shape (n,)
        The target.
    classes : ndarray or None
        The classes; None for numbers.
    positive : label or None
        The positive one of two classes.

    Returns
    -------
    dict
        `items`, one for each of at most 500 columns, the strongest association first: `name`,
        `kind`, `bars` (the shares of the bins or of the most frequent categories), a `summary`,
        the share `missing`, the `association` from 0 to 1, and the mean target, or the share of the
        positive class, if the column is `known` or missing (`unknown`).
    """
    target = y == positive if positive is not None else y
    items = []
    for name in list(X.columns)[:_MOST_COLUMNS]:
        column = X[name]
        known = column.notna().to_numpy()
        numbers = _as_numbers(column)
        kind = "category" if numbers is None else "number"
        parts = _categories(column[known]) if numbers is None else _histogram(numbers[known])
        item = {"name": str(name), "kind": kind, "missing": float(1 - known.mean()), **parts}
        if pd.api.types.is_datetime64_any_dtype(column.dtype) and item["summary"]:
            dates = pd.to_datetime(pd.Series(item["summary"]).astype("int64"))
            item |= {"kind": "date", "summary": dates.dt.strftime("%Y-%m-%d").tolist()}
        item["association"] = _association(column, numbers, known, y, classes)
        for key, rows in (("known", known), ("unknown", ~known)):
            single = positive is not None or classes is None
            item[key] = float(target[rows].mean()) if single and rows.any() else None
        items.append(item)
    items.sort(key=lambda item: -(item["association"] or 0))
    return {"items": items, "left_out": X.shape[1] - len(items)}


def _as_numbers(column: pd.Series) -> Array | None:
    """Return the values of a column of numbers or dates; None for categories."""
    if pd.api.types.is_bool_dtype(column.dtype):
        return None
    if pd.api.types.is_numeric_dtype(column.dtype):
        return np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan))
    if pd.api.types.is_datetime64_any_dtype(column.dtype):
        since = column.astype("datetime64[ns]").to_numpy()
        return np.where(np.isnat(since), np.nan, since.astype(np.int64).astype(np.float64))
    return None


def _histogram(values: Array) -> dict[str, Any]:
    if not len(values):
        return {"bars": [], "summary": []}
    low, middle, high = np.quantile(values, [0.01, 0.5, 0.99])
    counts, _ = np.histogram(np.clip(values, low, high), bins=_BINS)
    ends = np.quantile(values, [0.1, 0.9])
    summary = [float(middle), float(ends[0]), float(ends[1])]
    return {"bars": (counts / len(values)).tolist(), "summary": summary}


def _categories(values: pd.Series) -> dict[str, Any]:
    shares = values.astype(str).value_counts(normalize=True)
    top = [[str(name), float(share)] for name, share in shares.head(3).items()]
    return {"bars": shares.head(_MOST_LEVELS).tolist(), "summary": top, "levels": len(shares)}


def _association(
    column: pd.Series, numbers: Array | None, known: Array, y: Array, classes: Array | None
) -> float | None:
    """Return how closely the known values go with the target, from 0 to 1; None if unknown."""
    truth = y[known]
    if known.sum() < 3 or len(np.unique(truth)) < 2:
        return None
    if numbers is None:
        codes = pd.factorize(column[known].astype(str))[0]
        if codes.max() == 0:
            return 0.0
        if classes is not None:
            return float(association(pd.crosstab(codes, truth).to_numpy(), method="cramer"))
        means = pd.Series(truth).groupby(codes).transform("mean")
        return float(np.sqrt(means.var(ddof=0) / truth.var()))
    values = numbers[known]
    if np.ptp(values) == 0:
        return 0.0
    if classes is None:
        return float(abs(spearmanr(values, truth).statistic))
    present = np.unique(truth)
    return float(max(abs(2 * roc_auc_score(truth == one, values) - 1) for one in present))
