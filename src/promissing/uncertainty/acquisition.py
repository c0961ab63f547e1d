"""What to measure next: the order in which to obtain missing values, and when to stop.

The gain of a value is the fall of the expected loss when it becomes known. No labels are needed: if
the probabilities p of a model are calibrated, its expected log loss with fewer values, which give
q, is the cross-entropy of p and q. For numbers, the expected squared error grows by the squared
difference of both predictions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.spatial import cKDTree
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples

from promissing._validation import did_you_mean, expect, is_whole
from promissing.estimators.mlp import NanMLPRegressor
from promissing.inspection.masked import Groups, MaskedPredictions, random_generator
from promissing.uncertainty.conformal import class_positions, read_numbers, read_target
from promissing.uncertainty.storage import put, require_own, take

__all__ = [
    "AcquisitionCurve",
    "AcquisitionPlan",
    "NextMeasurement",
    "acquisition_curve",
    "next_measurement",
]

Float = NDArray[np.float64]
Mask = NDArray[np.bool_]

POLICIES = ("global", "learned", "importance", "greedy", "random")
# Predictions that finding an order may take: seconds with our own models.
_BUDGET = 150_000
_MOST_ROWS, _FEWEST_ROWS = 500, 50  # Background rows.
_MOST_GREEDY = 30  # Groups that are ordered by the greedy search; the others follow by importance.
_MASKS = 8  # Random masks of each background row that teach gains and changes.
# Masked background rows that a new row is compared with by the stopping rule, at least.
_NEIGHBORS = 100
_MOVE = 0.1  # A number changes if it moves by this many standard deviations of the predictions.
_TINY = 1e-12
_ARRAYS = {
    **{"order": "int32", "gains": "float64", "costs": "float64", "group_of": "int32"},
    **{"single": "float64", "changed": "bool", "places": "float64"},
}


@dataclass(frozen=True, eq=False, repr=False)
class NextMeasurement:
    """What to measure next in every row, as returned by `next_measurement`.

    Parameters
    ----------
    groups : tuple
        The names of the G features or groups of features.
    gains : ndarray (n, G)
        The expected fall of the loss when the group becomes known; NaN where it is known.
    costs : ndarray (G,)
        The cost of each group.
    ranks : ndarray (n, G)
        The place of each missing group in the order, from 1; 0 where it is known.
    change : ndarray (n,)
        The probability that knowing all missing groups would change the decision.
    stop : ndarray of bool (n,)
        Whether no further measurement would change the decision, at the given confidence.
    index : ndarray (n,)
        The index of the rows.

    Examples
    --------
    >>> import numpy as np
    >>> from promissing.uncertainty import NextMeasurement
    >>> one = np.ones((1, 1))
    >>> NextMeasurement(("age",), one, one[0], one, one[0] / 2, one[0] < 1, np.arange(1))
    NextMeasurement(1 rows, 1 groups)
    """

    groups: tuple[Any, ...]
    gains: Float
    costs: Float
    ranks: NDArray[np.intp]
    change: Float
    stop: Mask
    index: NDArray[Any]

    def __repr__(self) -> str:
        return f"NextMeasurement({len(self.index)} rows, {len(self.groups)} groups)"

    def to_frame(self) -> pd.DataFrame:
        """Return one line for every row and missing group, in the order to measure them.

        Returns
        -------
        DataFrame
            The columns `row`, `rank`, `group`, `gain`, `cost`, `gain_per_cost`, `change` and
            `stop`. Rows in which nothing is missing have no lines.

        Examples
        --------
        >>> import numpy as np
        >>> from promissing.uncertainty import NextMeasurement
        >>> gains, ranks = np.array([[0.1, 0.3]]), np.array([[2, 1]])
        >>> found = NextMeasurement(
        ...     ("age", "dose"), gains, np.ones(2), ranks, np.array([0.2]), np.array([False]),
        ...     np.arange(1),
        ... )
        >>> found.to_frame()["group"].tolist()
        ['dose', 'age']
        """
        rows, groups = np.nonzero(self.ranks)
        order = np.lexsort((self.ranks[rows, groups], rows))
        rows, groups = rows[order], groups[order]
        names = np.empty(len(self.groups), dtype=object)
        names[:] = self.groups
        gains, costs = self.gains[rows, groups], self.costs[groups]
        return pd.DataFrame(
            {
                "row": self.index[rows],
                "rank": self.ranks[rows, groups],
                "group": names[groups],
                "gain": gains,
                "cost": costs,
                "gain_per_cost": gains / costs,
                "change": self.change[rows],
                "stop": self.stop[rows],
            }
        )


@dataclass(frozen=True, eq=False, repr=False)
class AcquisitionCurve:
    """Loss against the values obtained, as returned by `acquisition_curve`.

    Parameters
    ----------
    losses : mapping of str to ndarray (n, steps)
        By policy, the loss of every row after 0, 1, 2, ... groups were obtained.
    spent : mapping of str to ndarray (n, steps)
        By policy, the cost of the groups obtained so far.
    kind : {"log loss", "squared error"}
        The loss.

    Examples
    --------
    >>> import numpy as np
    >>> from promissing.uncertainty import AcquisitionCurve
    >>> losses = np.array([[0.7, 0.2], [0.7, 0.4]])
    >>> AcquisitionCurve({"global": losses}, {"global": losses * 0}, "log loss")
    AcquisitionCurve(2 rows, policies 'global')
    """

    losses: Mapping[str, Float]
    spent: Mapping[str, Float]
    kind: str

    def __repr__(self) -> str:
        names = ", ".join(map(repr, self.losses))
        return f"AcquisitionCurve({len(next(iter(self.losses.values())))} rows, policies {names})"

    def to_frame(self) -> pd.DataFrame:
        """Return one line for every policy and step.

        Returns
        -------
        DataFrame
            The columns `policy`, `step`, `cost` (mean cost so far), `loss` with its
            `standard_error`, and `difference`, the paired difference from the first policy, with
            `difference_error`, its standard error.

        Examples
        --------
        >>> import numpy as np
        >>> from promissing.uncertainty import AcquisitionCurve
        >>> losses = np.array([[0.7, 0.2], [0.7, 0.4]])
        >>> curve = AcquisitionCurve({"global": losses}, {"global": losses * 0}, "log loss")
        >>> curve.to_frame()["loss"].tolist()
        [0.7, 0.30000000000000004]
        """
        first = next(iter(self.losses.values()))
        frames = []
        for name, losses in self.losses.items():
            ahead = losses - first
            frames.append(
                pd.DataFrame(
                    {
                        "policy": name,
                        "step": np.arange(losses.shape[1]),
                        "cost": self.spent[name].mean(axis=0),
                        "loss": losses.mean(axis=0),
                        "standard_error": _standard_error(losses),
                        "difference": ahead.mean(axis=0),
                        "difference_error": _standard_error(ahead),
                    }
                )
            )
        return pd.concat(frames, ignore_index=True)

    def plot(self, *, ax: Any = None, by: str = "step") -> Any:
        """Draw the mean loss of every policy.

        Parameters
        ----------
        ax : Axes, default=None
            By default there is a new figure.
        by : {"step", "cost"}, default="step"
            Whether the horizontal axis is the number of groups obtained, or their cost.

        Returns
        -------
        Axes
            The axes.

        Examples
        --------
        >>> import matplotlib
        >>> matplotlib.use("agg")
        >>> import numpy as np
        >>> from promissing.uncertainty import AcquisitionCurve
        >>> losses = np.array([[0.7, 0.2], [0.7, 0.4]])
        >>> AcquisitionCurve({"a": losses}, {"a": losses * 0}, "log loss").plot().get_ylabel()
        'log loss'
        """
        import matplotlib.pyplot as plt

        expect(by in ("step", "cost"), "by", '"step" or "cost"', by)
        if ax is None:
            _, ax = plt.subplots(figsize=(5, 3.4), layout="constrained")
        for name, lines in self.to_frame().groupby("policy", sort=False):
            ax.plot(lines[by], lines["loss"], marker=".", label=name)
            low, high = (lines["loss"] + sign * lines["standard_error"] for sign in (-1, 1))
            ax.fill_between(lines[by], low, high, alpha=0.15, linewidth=0)
        label = {"step": "values obtained", "cost": "mean cost of values obtained"}[by]
        ax.set(xlabel=label, ylabel=self.kind)
        ax.legend(frameon=False)
        return ax


class AcquisitionPlan:
    """The order in which to obtain missing values, learned from background rows.

    Parameters
    ----------
    model : fitted estimator
        Any estimator that predicts where values are missing.
    background : frame or array (n, p)
        Rows like those to come, such as the calibration rows. Labels are not needed.
    groups : mapping of str to columns, "modalities" or None, default=None
        Columns that are measured together, as in `promissing.inspection.what_if`. By default each
        column is a group.
    costs : mapping of str to float, default=None
        The cost of a group; 1 by default.
    policy : {"global", "learned"}, default="global"
        See `next_measurement`.
    random_state : int, numpy Generator, RandomState or None, default=None
        Random seed.

    Attributes
    ----------
    groups : tuple
        The names of the G groups.
    order : ndarray of int (G,)
        The positions of the groups in the order to obtain them.
    gains : ndarray (G,)
        The gain of each group, by position, when all groups before it in the order are known.
    single : ndarray (G,)
        The gain of each group when all other groups are known.
    costs : ndarray (G,)
        The cost of each group.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.ensemble import HistGradientBoostingClassifier
    >>> from promissing.uncertainty import AcquisitionPlan
    >>> X = np.random.default_rng(0).normal(size=(300, 3))
    >>> model = HistGradientBoostingClassifier(max_iter=20).fit(X, X[:, 1] > 0)
    >>> plan = AcquisitionPlan(model, X, random_state=0)
    >>> int(plan.order[0])
    1
    """

    def __init__(
        self,
        model: Any,
        background: Any,
        *,
        groups: Groups = None,
        costs: Mapping[Any, float] | None = None,
        policy: str = "global",
        random_state: Any = None,
    ) -> None:
        expect(policy in POLICIES, "policy", f"one of {POLICIES}", policy)
        rng = random_generator(random_state)
        n = _num_samples(background)
        kept = np.sort(rng.permutation(n)[:_MOST_ROWS])
        rows = MaskedPredictions(model, _safe_indexing(background, kept), groups)
        _require_one_target(rows)
        self._model, self.policy = model, policy
        self._given: Any = groups
        self.groups, self._group_of = rows.table.groups, rows.table.group_of
        self.costs = _read_costs(costs, self.groups)
        self.single = _single_gains(rows)
        self.order, path = _find_order(rows, self.single, self.costs, policy, rng)
        self.gains = np.empty(len(self.order))
        self.gains[self.order] = -np.diff(path)
        self._fit_changes(rows, rng)
        self._learner: Any = _fit_learner(rows, rng) if policy == "learned" else None

    def _fit_changes(self, rows: MaskedPredictions, rng: np.random.Generator) -> None:
        """Remember how often masked background rows change their decision when all is known."""
        n, size = rows.table.known.shape
        masks = _random_masks(n, size, rng)
        outputs = rows.under(masks)
        self._spread = float(rows.outputs[:, 0].std()) or 1.0
        full = np.broadcast_to(rows.outputs[:, None], outputs.shape)
        self._changed = self._differs(rows, outputs, full).ravel()
        missing = masks | ~rows.table.known[:, None]
        self._places = self._place(rows, outputs, missing).reshape(-1, 2)

    def _differs(self, rows: MaskedPredictions, one: Float, other: Float) -> Mask:
        """Return whether two outputs (..., K) decide differently."""
        if rows.classes is not None:
            return np.asarray(one.argmax(axis=-1) != other.argmax(axis=-1))
        return np.asarray(np.abs(one - other)[..., 0] > _MOVE * self._spread)

    def _place(self, rows: MaskedPredictions, outputs: Float, missing: Mask) -> Float:
        """Return what the stopping rule compares (..., 2): the margin, and how much is missing."""
        weights = np.maximum(self.gains, 0) + _TINY
        left = missing @ (weights / weights.sum())
        if rows.classes is None:
            return np.stack([left, left], axis=-1)
        ordered = np.sort(outputs, axis=-1)
        return np.stack([ordered[..., -1] - ordered[..., -2], left], axis=-1)

    def next(self, X: Any, *, confidence: float = 0.95) -> NextMeasurement:
        """Order the missing groups of every row.

        Parameters
        ----------
        X : frame or array (n, p)
            The rows.
        confidence : float, default=0.95
            The confidence of the stopping rule.

        Returns
        -------
        NextMeasurement
            Gains, ranks, and whether to stop.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.ensemble import HistGradientBoostingClassifier
        >>> from promissing.uncertainty import AcquisitionPlan
        >>> X = np.random.default_rng(0).normal(size=(300, 3))
        >>> model = HistGradientBoostingClassifier(max_iter=20).fit(X, X[:, 1] > 0)
        >>> found = AcquisitionPlan(model, X, random_state=0).next([[0.5, np.nan, np.nan]])
        >>> found.to_frame()["group"].tolist()
        [1, 2]
        """
        good = isinstance(confidence, float | np.floating) and 0 < confidence < 1
        expect(bool(good), "confidence", "a number between 0 and 1", confidence)
        # With k neighbours, the smallest probability of a change is 1 / (k + 1).
        needed = max(_NEIGHBORS, ceil(1 / (1 - confidence) - 1e-6))
        if needed > max(_NEIGHBORS, len(self._places)):
            raise ValueError(
                f"`confidence={confidence:g}` needs {needed:,} masked background rows, and there "
                f"are {len(self._places):,}. Pass more background rows, or lower it."
            )
        rows = MaskedPredictions(self._model, X, self._given)
        missing = ~rows.table.known
        found = self.gains if self._learner is None else self.learned_gains(rows.table.X)
        gains = np.where(missing, np.maximum(found, 0), np.nan)
        ranks = np.zeros(missing.shape, np.intp)
        if self._learner is None:
            for i, lost in enumerate(missing):
                own = self.order[lost[self.order]]
                ranks[i, own] = np.arange(1, len(own) + 1)
        else:
            worth = np.where(missing, -gains / self.costs, np.inf)
            place = worth.argsort(axis=1, kind="stable").argsort(axis=1)
            ranks[missing] = place[missing] + 1
        change = self._change(rows, missing, needed)
        stop = change <= 1 - confidence
        return NextMeasurement(
            self.groups, gains, self.costs, ranks, change, stop, rows.table.index
        )

    def store(self) -> Any:
        """Store the plan in the model, so that `model.save` writes it to the file.

        Orders, gains and costs are stored, and what the stopping rule compares, but no values of
        background rows. Models of other packages cannot hold a plan, and a file cannot hold the
        model of the policy "learned".

        Returns
        -------
        model : estimator
            The model that holds the plan.

        Examples
        --------
        >>> import numpy as np, pathlib, promissing, tempfile
        >>> from promissing import NanMLPClassifier
        >>> from promissing.uncertainty import AcquisitionPlan
        >>> X = np.random.default_rng(0).normal(size=(300, 3))
        >>> model = NanMLPClassifier(n_members=1, max_iter=20, random_state=0)
        >>> plan = AcquisitionPlan(model.fit(X, X[:, 1] > 0), X, random_state=0)
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "model.safetensors"
        >>> plan.store().save(path)
        >>> again = AcquisitionPlan.from_model(promissing.load(path))
        >>> again.next([[0.5, np.nan, np.nan]]).to_frame()["group"].tolist()
        [1, 2]
        """
        require_own(self._model)
        if self._learner is not None:
            raise ValueError(
                'A file cannot hold the model of `policy="learned"`. Make a plan with '
                '`policy="global"`.'
            )
        for name in self.groups:
            if not isinstance(name, str | int | np.integer):
                raise ValueError(
                    f"A file cannot hold the group {name!r}: names of groups must be text or whole "
                    "numbers. Pass `groups` with other names."
                )
        values = {"groups": [_plain(name) for name in self.groups], "spread": self._spread}
        arrays: dict[str, NDArray[Any]] = {
            "order": self.order.astype(np.int32),
            "gains": self.gains,
            "costs": self.costs,
            "single": self.single,
            "group_of": self._group_of.astype(np.int32),
            "changed": self._changed,
            "places": self._places,
        }
        put(self._model, "acquisition", values | {"policy": self.policy}, arrays)
        return self._model

    @classmethod
    def from_model(cls, model: Any, *, costs: Mapping[Any, float] | None = None) -> AcquisitionPlan:
        """Return the plan that was stored in a model.

        Parameters
        ----------
        model : estimator
            A fitted model of this package, as `promissing.load` returns it.
        costs : mapping of str to float, default=None
            Other costs of groups. The order is then by the gain of a group when all other groups
            are known, divided by its cost.

        Returns
        -------
        AcquisitionPlan
            The plan.

        Examples
        --------
        See `store`.
        """
        values, arrays = take(model, "acquisition", _ARRAYS)
        made = cls.__new__(cls)
        made._model, made._learner = model, None
        for name in ("order", "gains", "costs", "single"):
            setattr(made, name, arrays[name])
        made._group_of, made._changed = arrays["group_of"], arrays["changed"]
        made._places = arrays["places"]
        try:
            made.groups, made.policy = tuple(values["groups"]), str(values["policy"])
            made._spread = float(values["spread"])
        except (KeyError, TypeError) as error:
            raise ValueError(f"The plan in the model is damaged: {error!s:.80}") from None
        size, n = len(made.groups), len(made._changed)
        parts = (made.gains, made.costs, made.single, made._group_of, made._places)
        wanted = [(size,), (size,), (size,), (model.n_features_in_,), (n, 2)]
        ordered = np.array_equal(np.sort(made.order), np.arange(size))
        inside = ((made._group_of >= -1) & (made._group_of < size)).all()
        if not (n and [part.shape for part in parts] == wanted and ordered and inside):
            raise ValueError("The plan in the model is damaged: its arrays do not fit.")
        made._given = {
            name: np.flatnonzero(made._group_of == g).tolist() for g, name in enumerate(made.groups)
        }
        if costs is not None:
            made.costs = _read_costs(costs, made.groups)
            made.order = _by_worth(made.single, made.costs)
            made.gains = made.single
        return made

    def learned_gains(self, X: Any) -> Float:
        """Return the gain of every group (n, G) that the policy "learned" predicts.

        Parameters
        ----------
        X : frame or array (n, p)
            The rows.

        Returns
        -------
        ndarray (n, G)
            The gains.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.ensemble import HistGradientBoostingClassifier
        >>> from promissing.uncertainty import AcquisitionPlan
        >>> X = np.random.default_rng(0).normal(size=(300, 2))
        >>> model = HistGradientBoostingClassifier(max_iter=20).fit(X, X[:, 1] > 0)
        >>> plan = AcquisitionPlan(model, X, policy="learned", random_state=0)
        >>> int(plan.learned_gains([[np.nan, np.nan]]).argmax())
        1
        """
        if self._learner is None:
            raise ValueError('Only a plan with `policy="learned"` predicts gains for every row.')
        found = np.asarray(self._learner.predict(X)).reshape(-1, len(self.groups))
        return np.asarray(np.maximum(found, 0))

    def _change(self, rows: MaskedPredictions, missing: Mask, k: int) -> Float:
        """Return the probability (n,) that knowing what is missing would change the decision."""
        places = self._place(rows, rows.outputs, missing)
        k = min(k, len(self._places))
        near = cKDTree(self._places).query(places, k=k)[1].reshape(len(places), -1)
        # One more row that changes: the estimate is never exactly 0.
        share = (self._changed[near].sum(axis=1) + 1) / (k + 1)
        return np.where(missing.any(axis=1), share, 0.0)


def next_measurement(
    model: Any,
    X: Any,
    background: Any,
    *,
    groups: Groups = None,
    costs: Mapping[Any, float] | None = None,
    policy: str = "global",
    confidence: float = 0.95,
    random_state: Any = None,
) -> NextMeasurement:
    """Order the missing features of every row by what to measure next.

    Parameters
    ----------
    model : fitted estimator
        Any estimator that predicts where values are missing.
    X : frame or array (n, p)
        The rows.
    background : frame or array (m, p)
        Rows like those to come, such as the calibration rows. Labels are not needed.
    groups : mapping of str to columns, "modalities" or None, default=None
        Columns that are measured together, as in `promissing.inspection.what_if`. By default each
        column is a group.
    costs : mapping of str to float, default=None
        The cost of a group; 1 by default. The order is by gain per cost.
    policy : {"global", "learned"}, default="global"
        How the order is found:

        - "global": the same order for all rows, the better of two on the background rows: by
          importance (the gain when all other groups are known) and by greedy search;
        - "learned": a model that predicts the gains from the known values and the mask of a row. It
          is trained on masked background rows. It helps where one value tells which other value
          is informative.
    confidence : float, default=0.95
        The confidence of the stopping rule: `stop` is True if, among masked background rows with a
        similar margin and as much missing, at most ``1 - confidence`` changed their decision (or
        number, by a tenth of a standard deviation) when everything became known.
    random_state : int, numpy Generator, RandomState or None, default=None
        Random seed.

    Returns
    -------
    NextMeasurement
        The order, the gains and the stopping rule; `to_frame` has one line per missing group.

    See Also
    --------
    acquisition_curve : Measures how the loss falls as values are obtained.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.ensemble import HistGradientBoostingClassifier
    >>> from promissing.uncertainty import next_measurement
    >>> X = np.random.default_rng(0).normal(size=(300, 3))
    >>> model = HistGradientBoostingClassifier(max_iter=20).fit(X, X[:, 1] > 0)
    >>> found = next_measurement(model, [[0.5, np.nan, np.nan]], X, random_state=0)
    >>> found.to_frame()[["row", "rank", "group"]]
       row  rank group
    0    0     1     1
    1    0     2     2
    """
    plan = AcquisitionPlan(
        model, background, groups=groups, costs=costs, policy=policy, random_state=random_state
    )
    return plan.next(X, confidence=confidence)


def acquisition_curve(
    model: Any,
    X: Any,
    y: Any,
    policies: Sequence[str] = ("global", "random"),
    *,
    background: Any,
    groups: Groups = None,
    costs: Mapping[Any, float] | None = None,
    max_steps: int | None = None,
    random_state: Any = None,
) -> AcquisitionCurve:
    """Measure the loss as values are obtained one after the other, for several policies.

    Every row starts without known values. Groups that are missing in X cannot be obtained.

    Parameters
    ----------
    model : fitted estimator
        Any estimator that predicts where values are missing.
    X : frame or array (n, p)
        Rows that served neither for training nor as background.
    y : array (n,)
        Their targets.
    policies : sequence of str, default=("global", "random")
        The policies: "global", "learned", "importance", "greedy" or "random". The first is the one
        that the others are compared with.
    background : frame or array (m, p)
        Rows from which orders and gains are learned.
    groups : mapping of str to columns, "modalities" or None, default=None
        Columns that are measured together.
    costs : mapping of str to float, default=None
        The cost of a group; 1 by default.
    max_steps : int, default=None
        The largest number of groups to obtain; by default all.
    random_state : int, numpy Generator, RandomState or None, default=None
        Random seed.

    Returns
    -------
    AcquisitionCurve
        The losses of all rows; `to_frame` has means, paired differences and standard errors.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.ensemble import HistGradientBoostingClassifier
    >>> from promissing.uncertainty import acquisition_curve
    >>> X = np.random.default_rng(0).normal(size=(500, 3))
    >>> y = X[:, 1] > 0
    >>> model = HistGradientBoostingClassifier(max_iter=20).fit(X[:200], y[:200])
    >>> curve = acquisition_curve(
    ...     model, X[350:], y[350:], background=X[200:350], random_state=0
    ... )
    >>> means = curve.to_frame().set_index(["policy", "step"])["loss"]
    >>> bool(means["global", 1] < means["random", 1])
    True
    """
    named = not isinstance(policies, str) and len(policies) > 0
    expect(named, "policies", f"a sequence of names out of {POLICIES}", policies)
    good = max_steps is None or (is_whole(max_steps) and max_steps >= 0)
    expect(good, "max_steps", "a whole number >= 0", max_steps)
    rng = random_generator(random_state)
    target = read_target(y, X)
    rows = MaskedPredictions(model, X, groups)
    _require_one_target(rows)
    classes = rows.classes
    truth = read_numbers(target) if classes is None else class_positions(target, classes)
    steps = len(rows.table.groups) if max_steps is None else int(max_steps)
    losses: dict[str, Float] = {}
    spent: dict[str, Float] = {}
    for policy in policies:
        plan = AcquisitionPlan(
            model, background, groups=groups, costs=costs, policy=policy, random_state=rng
        )
        obtained = _obtain(plan, rows, steps, rng)
        masks = ~obtained & rows.table.known[:, None]
        outputs = rows.under(masks)
        losses[policy] = _true_losses(rows, outputs, truth)
        spent[policy] = (obtained & rows.table.known[:, None]) @ plan.costs
    kind = "squared error" if rows.classes is None else "log loss"
    return AcquisitionCurve(losses, spent, kind)


def _obtain(
    plan: AcquisitionPlan, rows: MaskedPredictions, steps: int, rng: np.random.Generator
) -> Mask:
    """Return the groups that are known (n, steps + 1, G) after each step of a policy."""
    known = rows.table.known
    n, size = known.shape
    steps = min(steps, size)
    obtained = np.zeros((n, steps + 1, size), bool)
    for step in range(1, steps + 1):
        obtained[:, step] = obtained[:, step - 1]
        left = known & ~obtained[:, step]
        if plan.policy == "random":
            worth = rng.random((n, size))
        elif plan.policy == "learned":
            here = rows.table.without(np.arange(n), ~obtained[:, step] & known)
            worth = plan.learned_gains(here) / plan.costs
        else:
            worth = np.empty((n, size))
            worth[:, plan.order] = -np.arange(size)
        best = np.where(left, worth, -np.inf).argmax(axis=1)
        obtained[np.arange(n), step, best] |= left.any(axis=1)
    return obtained


def _require_one_target(rows: MaskedPredictions) -> None:
    """Refuse a regressor of several targets; `MaskedPredictions` refuses such classifiers."""
    if rows.classes is None and rows.outputs.shape[1] > 1:
        raise ValueError(
            f"`model` must predict one target, and it predicts {rows.outputs.shape[1]}."
        )


def _find_order(
    rows: MaskedPredictions, single: Float, costs: Float, policy: str, rng: np.random.Generator
) -> tuple[NDArray[np.intp], Float]:
    """Return the order of the groups, and the expected loss (G + 1,) along it."""
    importance = _by_worth(single, costs)
    if policy == "importance":
        return importance, _path(rows, importance)
    if policy == "random":
        order = rng.permutation(len(costs))
        return order, _path(rows, order)
    greedy = _by_search(rows, costs, importance)
    if policy == "greedy":
        return greedy, _path(rows, greedy)
    found = [(order, _path(rows, order)) for order in (importance, greedy)]
    # The area below the loss, over the cost of what was obtained.
    areas = [(path[:-1] * costs[order]).sum() for order, path in found]
    return found[int(np.argmin(areas))]


def _single_gains(rows: MaskedPredictions) -> Float:
    """Return the gain (G,) of each group when all others are known."""
    n, size = rows.table.known.shape
    masks = np.zeros((size + 1, size), bool)
    masks[:size] = np.eye(size, dtype=bool)
    losses = _expected_losses(rows, np.broadcast_to(masks, (n, size + 1, size)))
    return np.asarray(losses[:size] - losses[size])


def _by_worth(gains: Float, costs: Float) -> NDArray[np.intp]:
    """Order groups by gain per cost."""
    return np.asarray(np.argsort(-_worth(gains, costs), kind="stable"))


def _worth(gains: Float, costs: Float) -> Float:
    """Return gains per cost. A cost makes no loss smaller."""
    return np.where(gains > 0, gains / costs, gains)


def _by_search(
    rows: MaskedPredictions, costs: Float, importance: NDArray[np.intp]
) -> NDArray[np.intp]:
    """Order groups by greedy search: next is the group with the largest gain per cost."""
    size = len(costs)
    steps = min(size, _MOST_GREEDY)
    work = steps * size
    some = np.arange(max(_FEWEST_ROWS, min(len(rows.outputs), _BUDGET // work)))[
        : len(rows.outputs)
    ]
    left: list[int] = importance.tolist()
    order: list[int] = []
    known = np.zeros(size, bool)
    while left and len(order) < steps:
        masks = np.tile(~known, (len(left), 1))
        masks[np.arange(len(left)), left] = False
        losses = _expected_losses(rows, np.broadcast_to(masks, (len(some), *masks.shape)), some)
        # The loss before this step is the same for all.
        before = _expected_losses(rows, np.broadcast_to(~known, (len(some), 1, size)), some)
        best = left[int(np.argmax(_worth(before - losses, costs[left])))]
        order.append(best)
        left.remove(best)
        known[best] = True
    return np.array([*order, *left], dtype=np.intp)


def _path(rows: MaskedPredictions, order: NDArray[np.intp]) -> Float:
    """Return the expected loss (G + 1,) after 0, 1, ..., G groups of an order are known."""
    n, size = rows.table.known.shape
    masks = np.ones((size + 1, size), bool)
    for step, group in enumerate(order):
        masks[step + 1 :, group] = False
    return _expected_losses(rows, np.broadcast_to(masks, (n, *masks.shape)))


def _expected_losses(
    rows: MaskedPredictions, masks: Mask, some: NDArray[np.intp] | None = None
) -> Float:
    """Return the mean expected loss (m,) of rows under masks (n, m, G)."""
    return np.asarray(_row_losses(rows, masks, some).mean(axis=0))


def _row_losses(
    rows: MaskedPredictions, masks: Mask, some: NDArray[np.intp] | None = None
) -> Float:
    """Return the expected loss (n, m) of rows under masks (n, m, G)."""
    n, m, size = masks.shape
    which = np.arange(n) if some is None else some
    outputs = rows.pairs(np.repeat(which, m), masks.reshape(n * m, size)).reshape(n, m, -1)
    full = rows.outputs[which][:, None]
    if rows.classes is None:
        return np.asarray(((outputs - full) ** 2).sum(axis=2))
    return np.asarray(-(full * np.log(np.maximum(outputs, _TINY))).sum(axis=2))


def _true_losses(rows: MaskedPredictions, outputs: Float, truth: NDArray[Any]) -> Float:
    """Return the loss (n, m) of outputs (n, m, K) for the true targets (n,)."""
    if rows.classes is None:
        return np.asarray((outputs[..., 0] - truth[:, None]) ** 2)
    right = np.take_along_axis(outputs, truth[:, None, None], axis=2)[..., 0]
    return np.asarray(-np.log(np.maximum(right, _TINY)))


def _random_masks(n: int, size: int, rng: np.random.Generator) -> Mask:
    """Draw masks (n, m, G) whose shares of missing groups are spread from 0 to 1."""
    shares = (np.arange(_MASKS) + rng.random((n, _MASKS))) / _MASKS
    return np.asarray(rng.random((n, _MASKS, size)) < shares[..., None])


def _fit_learner(rows: MaskedPredictions, rng: np.random.Generator) -> Any:
    """Train a model that predicts the gain of every group from the known values of a row."""
    n, size = rows.table.known.shape
    per_row = max(1, min(_MASKS, _BUDGET // (n * size)))
    masks = _random_masks(n, size, rng)[:, rng.permutation(_MASKS)[:per_row]]
    masks = masks & rows.table.known[:, None]
    # Each mask, and the same with one more group known.
    wider = np.repeat(masks[:, :, None], size + 1, axis=2)
    wider[:, :, np.arange(size), np.arange(size)] = False
    losses = _row_losses(rows, wider.reshape(n, -1, size)).reshape(n, per_row, size + 1)
    gains = losses[..., -1:] - losses[..., :-1]  # Exactly 0 where the group is known.
    table = rows.table.without(np.repeat(np.arange(n), per_row), masks.reshape(-1, size))
    learner = NanMLPRegressor(
        loss="squared_error", n_members=4, random_state=int(rng.integers(2**31))
    )
    return learner.fit(table, gains.reshape(-1, size))


def _read_costs(costs: Mapping[Any, float] | None, groups: tuple[Any, ...]) -> Float:
    """Return the costs (G,), or refuse them."""
    good = costs is None or isinstance(costs, Mapping)
    expect(good, "costs", "a mapping of names to numbers", costs)
    found = np.ones(len(groups))
    for name, cost in (costs or {}).items():
        if name not in groups:
            raise ValueError(
                f"`costs` names {name!r}, which is no feature or group.{did_you_mean(name, groups)}"
            )
        good = isinstance(cost, int | float | np.number) and np.isfinite(cost) and cost > 0
        expect(bool(good), f"costs[{name!r}]", "a positive number", cost)
        found[groups.index(name)] = cost
    return found


def _plain(name: Any) -> Any:
    """Return the name of a group as JSON holds it."""
    return name.item() if isinstance(name, np.generic) else name


def _standard_error(values: Float) -> Float:
    n = len(values)
    return np.asarray(
        values.std(axis=0, ddof=1) / np.sqrt(n) if n > 1 else np.full(values.shape[1], np.nan)
    )
