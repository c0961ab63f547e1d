"""Why a model predicts what it predicts, answered by making things unknown.

All of it works with any estimator that predicts where values are missing: ours, gradient boosting,
pipelines that impute. Nothing is trained, no background data is needed, the table is never
modified, and the model is asked a block of rows at a time.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from promissing.inspection.effects import Effects, what_if
from promissing.inspection.shapley import ShapleyValues, shapley
from promissing.inspection.smallest import SmallestChange, smallest_change
from promissing.inspection.trajectories import Trajectories, information_loss

__all__ = [
    "Effects",
    "ShapleyValues",
    "SmallestChange",
    "Trajectories",
    "importance",
    "information_loss",
    "shapley",
    "smallest_change",
    "what_if",
]


def importance(result: Effects | ShapleyValues) -> pd.DataFrame:
    """The importance of every group over all rows: the mean size of its effects.

    Parameters
    ----------
    result : Effects or ShapleyValues
        What `what_if` or `shapley` returned for the rows.

    Returns
    -------
    DataFrame
        With the groups as index, the most important first: `importance`, the mean absolute effect
        over all rows, 0 where the group is unknown; its `standard_error` over the rows; and
        `known`, the share of the rows in which anything of the group is known.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.ensemble import HistGradientBoostingRegressor
    >>> from promissing.inspection import importance, shapley
    >>> X = np.random.default_rng(0).normal(size=(300, 3))
    >>> model = HistGradientBoostingRegressor(max_iter=20).fit(X, 2 * X[:, 2] + X[:, 1])
    >>> importance(shapley(model, X[:50])).index.tolist()
    [2, 1, 0]
    """
    if not isinstance(result, Effects | ShapleyValues):
        raise TypeError(
            "`importance` takes what `what_if` or `shapley` returned for some rows. Received: "
            f"{type(result).__name__}"
        )
    sizes = np.abs(result.values if isinstance(result, ShapleyValues) else result.effects)
    n = len(sizes)
    deviation = sizes.std(axis=0, ddof=1) if n > 1 else np.full(sizes.shape[1], np.nan)
    groups = pd.Index(result.groups, name="group", tupleize_cols=False)
    columns = {
        "importance": sizes.mean(axis=0),
        "standard_error": deviation / np.sqrt(n),
        "known": result.known.mean(axis=0),
    }
    frame = pd.DataFrame(columns, index=groups)
    return frame.sort_values("importance", ascending=False, kind="stable")
