"""Drift of missing values: what is missing more or less often than in training."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import false_discovery_control, fisher_exact
from sklearn.utils.validation import check_is_fitted

from promissing._validation import expect
from promissing.estimators.missing_record import MissingRecord
from promissing.inspection.masked import random_generator
from promissing.uncertainty.storage import require_own

__all__ = ["MissingnessDrift", "missingness_drift"]

Float = NDArray[np.float64]
Mask = NDArray[np.bool_]

_MOST_ROWS = 500  # New rows in the joint test; the record holds as many of training.
_PERMUTATIONS = 999
_MOST_BARS = 20


@dataclass(frozen=True, eq=False, repr=False)
class MissingnessDrift:
    """Missing values in new rows beside those in training, as returned by `missingness_drift`.

    Parameters
    ----------
    features : tuple
        The names of the F features.
    before : ndarray (F,)
        The share of training rows in which each feature is missing.
    after : ndarray (F,)
        The same for the new rows.
    p_values : ndarray (F,)
        P-values of Fisher's exact test, corrected for the number of features (Benjamini-Hochberg).
    drifted : ndarray of bool (F,)
        Whether the share has changed, at the given level.
    loss : ndarray (F,)
        Expected increase of the loss if the feature is missing in every row; NaN if it is unknown.
    accuracy : ndarray (F,)
        Expected fall of the accuracy, or share of the explained variance that is lost.
    n_rows : int
        The number of new rows.
    unseen : ndarray of bool (n,) or None
        Whether a new row has a pattern of missing features that no training row had. None if
        training had more than 131,072 patterns, too many to remember.
    joint_p_value : float
        P-value of a permutation test of all features together.

    Examples
    --------
    >>> import numpy as np
    >>> from promissing.uncertainty import MissingnessDrift
    >>> one, no = np.ones(1), np.array([False])
    >>> MissingnessDrift(("age",), one * 0, one, one, no, one, one, 1, no, 1.0)
    MissingnessDrift(1 rows, 0 of 1 features drifted)
    """

    features: tuple[Any, ...]
    before: Float
    after: Float
    p_values: Float
    drifted: Mask
    loss: Float
    accuracy: Float
    n_rows: int
    unseen: Mask | None
    joint_p_value: float

    def __repr__(self) -> str:
        count = f"{self.drifted.sum()} of {len(self.features)} features drifted"
        return f"MissingnessDrift({self.n_rows} rows, {count})"

    def to_frame(self) -> pd.DataFrame:
        """Return one line for every feature, the largest change first.

        Returns
        -------
        DataFrame
            The columns `feature`, `before` and `after` (shares of rows in which it is missing),
            `change`, `p_value`, `drifted`, `loss` and `accuracy` (what it costs if the feature is
            missing in every row) and `expected_fall` (of the accuracy, given the change).

        Examples
        --------
        >>> import numpy as np
        >>> from promissing import NanMLPClassifier
        >>> from promissing.uncertainty import missingness_drift
        >>> X = np.random.default_rng(0).normal(size=(300, 2))
        >>> model = NanMLPClassifier(n_members=1, max_iter=20, random_state=0)
        >>> X_new = X[:100].copy()
        >>> X_new[:, 1] = np.nan
        >>> found = missingness_drift(model.fit(X, X[:, 1] > 0), X_new).to_frame()
        >>> found[["feature", "before", "after", "drifted"]]
           feature  before  after  drifted
        0        1     0.0    1.0     True
        1        0     0.0    0.0    False
        """
        names = np.empty(len(self.features), dtype=object)
        names[:] = self.features
        change = self.after - self.before
        frame = pd.DataFrame(
            {
                "feature": names,
                "before": self.before,
                "after": self.after,
                "change": change,
                "p_value": self.p_values,
                "drifted": self.drifted,
                "loss": self.loss,
                "accuracy": self.accuracy,
                "expected_fall": np.maximum(change, 0) * self.accuracy,
            }
        )
        order = np.argsort(-np.abs(change), kind="stable")
        return frame.iloc[order].reset_index(drop=True)

    def plot(self, *, ax: Any = None) -> Any:
        """Draw the shares of missing values in training and now.

        The 20 features with the largest changes are shown; those that have drifted are in colour.

        Parameters
        ----------
        ax : Axes, default=None
            By default there is a new figure.

        Returns
        -------
        Axes
            The axes.

        Examples
        --------
        >>> import matplotlib
        >>> matplotlib.use("agg")
        >>> import numpy as np
        >>> from promissing.uncertainty import MissingnessDrift
        >>> one, no = np.ones(1), np.array([False])
        >>> found = MissingnessDrift(("age",), one * 0, one, one, no, one, one, 1, no, 1.0)
        >>> found.plot().get_xlabel()
        'share of rows in which the feature is missing'
        """
        import matplotlib.pyplot as plt

        lines = self.to_frame().head(_MOST_BARS)[::-1]
        if ax is None:
            size = (6, 0.28 * len(lines) + 1.2)
            _, ax = plt.subplots(figsize=size, layout="constrained")
        places = np.arange(len(lines))
        colors = np.where(lines["drifted"], "C1", "0.6")
        ax.hlines(places, lines["before"], lines["after"], color=colors, linewidth=2)
        ax.scatter(lines["before"], places, facecolor="white", edgecolor=colors, zorder=3, s=30)
        ax.scatter(lines["after"], places, color=colors, zorder=3, s=30)
        ax.set_yticks(places, [str(name) for name in lines["feature"]])
        ax.set(xlabel="share of rows in which the feature is missing", xlim=(-0.02, 1.02))
        ax.set_title("training (open circle) and now", loc="left", fontsize="medium")
        return ax


def missingness_drift(
    model: Any, X_new: Any, *, level: float = 0.05, random_state: Any = 0
) -> MissingnessDrift:
    """Compare the missing values of new rows with those in training.

    Parameters
    ----------
    model : fitted estimator of this package
        It holds a record of the missing values in training, but no values.
    X_new : frame or array (n, p)
        New rows.
    level : float, default=0.05
        The rate of false discoveries among features that are reported as drifted.
    random_state : int, numpy Generator, RandomState or None, default=0
        Random seed of the joint test.

    Returns
    -------
    MissingnessDrift
        Shares, tests and costs by feature, the rows with a pattern that was never seen, and a joint
        test; `to_frame` has one line per feature, and `plot` draws them.

    Examples
    --------
    >>> import numpy as np
    >>> from promissing import NanMLPClassifier
    >>> from promissing.uncertainty import missingness_drift
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> model = NanMLPClassifier(n_members=1, max_iter=20, random_state=0)
    >>> missingness_drift(model.fit(X, X[:, 1] > 0), X[:100])
    MissingnessDrift(100 rows, 0 of 2 features drifted)
    """
    good = isinstance(level, float | np.floating) and 0 < level < 1
    expect(bool(good), "level", "a number between 0 and 1", level)
    require_own(model)
    check_is_fitted(model)
    record = model.missing_record_
    if record is None:
        raise ValueError(
            "The model holds no record of the missing values in training: it is from a file of an "
            "earlier version. Fit it again."
        )
    missing = model.missing_features(X_new)
    if not len(missing):
        raise ValueError("`X_new` has no rows.")
    n, size = missing.shape
    p_values = np.ones(size)
    for j, count in enumerate(missing.sum(axis=0)):
        table = [[count, n - count], [record.missing[j], record.n_rows - record.missing[j]]]
        p_values[j] = fisher_exact(table).pvalue
    p_values = false_discovery_control(p_values) if size else p_values
    unknown = np.full(size, np.nan)
    return MissingnessDrift(
        features=tuple(model.encoder_.feature_key(j) for j in range(size)),
        before=record.missing / record.n_rows,
        after=missing.mean(axis=0),
        p_values=p_values,
        drifted=p_values <= level,
        loss=unknown if record.loss is None else record.loss,
        accuracy=unknown if record.accuracy is None else record.accuracy,
        n_rows=n,
        unseen=record.unseen(missing),
        joint_p_value=_joint_test(missing, record, random_generator(random_state)),
    )


def _joint_test(masks: Mask, record: MissingRecord, rng: np.random.Generator) -> float:
    """Return the p-value of a permutation test with the energy distance between masks.

    The distance between masks is the square root of the number of features in which they differ.
    Without the root, only the shares of single features would count.
    """
    old, new = record.sample, masks[rng.permutation(len(masks))[:_MOST_ROWS]]
    both = np.concatenate([old, new]).astype(np.float64)
    ones = both.sum(axis=1)
    distances = np.sqrt(np.maximum(ones[:, None] + ones - 2 * both @ both.T, 0))
    is_new = np.arange(len(both)) >= len(old)
    orders = [np.arange(len(both)), *(rng.permutation(len(both)) for _ in range(_PERMUTATIONS))]
    groups = np.stack([is_new[order] for order in orders]).astype(np.float64)
    weights = groups / len(new) - (1 - groups) / len(old)
    # Twice the distance between the groups, less the distances within each.
    energy = -np.einsum("ij,ij->i", weights @ distances, weights)
    return float((energy >= energy[0] - 1e-12).mean())
