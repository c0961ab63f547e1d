"""Displays of explanations, in the manner of scikit-learn.

A display holds the data of a figure. `from_estimator` computes the data and draws it, and `plot`
draws it on given axes or on new ones. Colours never stand alone: hatches, line styles or text
tell the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from textwrap import fill
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import block_diag

from promissing._validation import expect
from promissing.inspection._information_loss import Trajectories, information_loss
from promissing.inspection._what_if import Effects, what_if
from promissing.inspection.masked import Groups

__all__ = [
    "CounterfactualDisplay",
    "ModalityDecisionDisplay",
    "NeutralizerDisplay",
    "TrajectoryDisplay",
]

_INK, _GREY, _BLUE, _ORANGE, _RED = "#222222", "#8a8f98", "#2f6db3", "#d9822b", "#c2334d"
_KINDS = {  # Colour, hatch and meaning of a bar.
    "flips": (_RED, "xxx", "decisive: without it the decision changes"),
    "supports": (_BLUE, "", "supports the decision"),
    "opposes": (_ORANGE, "///", "opposes the decision"),
    "none": (_GREY, "...", "no effect on the decision"),
}


class TrajectoryDisplay:
    """Draw predictions while groups are made missing in random orders, one panel per model.

    Complete information is on the left, none on the right. Every row has a line, the mean over the
    orders, with a band of one standard deviation. The dotted line is the prior. A line is solid if
    the prediction falls from left to right, and dashed if it rises.

    Parameters
    ----------
    trajectories : mapping of str to Trajectories
        The results of `information_loss`, by the title of the panel.

    Attributes
    ----------
    trajectories : dict of str to Trajectories
        The data of the panels.
    figure_ : matplotlib Figure
        The figure, after `plot`.
    axes_ : list of matplotlib Axes
        The panels, after `plot`.

    See Also
    --------
    information_loss : Computes the trajectories.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> import numpy as np
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from promissing.inspection import TrajectoryDisplay, information_loss
    >>> X = np.random.default_rng(0).normal(size=(100, 4))
    >>> model = DecisionTreeClassifier(random_state=0).fit(X, X[:, 0] + X[:, 1] > 0)
    >>> trajectories = information_loss(model, X[:5], orders=10, prior=0.5, random_state=0)
    >>> TrajectoryDisplay({"tree": trajectories}).plot().axes_[0].get_title()
    'tree'
    """

    def __init__(self, trajectories: Mapping[str, Trajectories]) -> None:
        self.trajectories = dict(trajectories)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        groups: Groups = None,
        *,
        orders: int = 100,
        prior: ArrayLike | None = None,
        target: Any = None,
        positive: Any = None,
        random_state: Any = 0,
        ax: Any = None,
    ) -> Self:
        """Compute and draw the trajectories of one fitted model or several.

        Parameters
        ----------
        estimator : fitted estimator, or mapping of str to fitted estimators
            The model, or several by the titles of their panels.
        X : DataFrame, array or list of rows of shape (n, p)
            The rows to explain.
        groups : mapping of str to columns, "modalities" or None, default=None
            The columns that are made missing together, as in `information_loss`.
        orders : int, default=100
            The number of random orders.
        prior : float or array-like of shape (K,), default=None
            The class shares, or the mean target, of the training data, as in `information_loss`.
        target : label or int, default=None
            The class or output that is followed, as in `information_loss`.
        positive : label, default=None
            The positive class of two, as in `information_loss`.
        random_state : int, numpy Generator, RandomState or None, default=0
            The seed of the random orders.
        ax : Axes or sequence of Axes, default=None
            One for each panel. By default there is a new figure.

        Returns
        -------
        TrajectoryDisplay
            The display, after `plot`.

        Examples
        --------
        >>> import matplotlib
        >>> matplotlib.use("agg")
        >>> import numpy as np
        >>> from sklearn.tree import DecisionTreeClassifier
        >>> from promissing.inspection import TrajectoryDisplay
        >>> X = np.random.default_rng(0).normal(size=(100, 4))
        >>> model = DecisionTreeClassifier(random_state=0).fit(X, X[:, 0] + X[:, 1] > 0)
        >>> display = TrajectoryDisplay.from_estimator(model, X[:5], orders=10, prior=0.5)
        >>> display.axes_[0].get_title()
        'DecisionTreeClassifier'
        """
        if isinstance(estimator, Mapping):
            models = dict(estimator)
        else:  # The title of a pipeline is the name of its last step.
            last = estimator.steps[-1][1] if hasattr(estimator, "steps") else estimator
            models = {type(last).__name__: estimator}
        settings = {"orders": orders, "prior": prior, "random_state": random_state}
        trajectories = {
            title: information_loss(model, X, groups, target=target, positive=positive, **settings)
            for title, model in models.items()
        }
        return cls(trajectories).plot(ax=ax)

    def plot(
        self, *, ax: Any = None, rows: Sequence[int] | None = None, bands: bool = True
    ) -> Self:
        """Draw one panel per model.

        Parameters
        ----------
        ax : Axes or sequence of Axes, default=None
            One for each panel. By default there is a new figure.
        rows : sequence of int, default=None
            The positions of the rows to draw; by default all.
        bands : bool, default=True
            Whether to draw the standard deviation over the orders.

        Returns
        -------
        TrajectoryDisplay
            The display itself.

        Examples
        --------
        >>> import matplotlib
        >>> matplotlib.use("agg")
        >>> import numpy as np
        >>> from sklearn.tree import DecisionTreeClassifier
        >>> from promissing.inspection import TrajectoryDisplay, information_loss
        >>> X = np.random.default_rng(0).normal(size=(100, 4))
        >>> model = DecisionTreeClassifier(random_state=0).fit(X, X[:, 0] + X[:, 1] > 0)
        >>> trajectories = information_loss(model, X[:5], orders=10, random_state=0)
        >>> display = TrajectoryDisplay({"tree": trajectories}).plot(rows=[0, 1], bands=False)
        >>> len(display.axes_[0].lines)
        2
        """
        self.figure_, self.axes_ = _panels(len(self.trajectories), 4.0, 3.4, ax)
        for panel, (title, found) in zip(self.axes_, self.trajectories.items(), strict=True):
            if found.predictions.ndim != 3:
                raise ValueError(
                    "With several classes, the probability of one is drawn: choose it by `target`."
                )
            steps = np.arange(found.predictions.shape[2])
            mean, spread = found.mean, found.spread
            shown = range(len(mean)) if rows is None else rows
            for i in shown:
                if bands:
                    low, high = mean[i] - spread[i], mean[i] + spread[i]
                    panel.fill_between(steps, low, high, color=_GREY, alpha=0.12, lw=0)
                falls = mean[i, 0] >= mean[i, -1]
                panel.plot(steps, mean[i], color=_BLUE if falls else _ORANGE, lw=1.2,
                           ls="-" if falls else (0, (5, 1)),
                           alpha=0.9 if len(shown) <= 20 else 0.4)  # fmt: skip
            if found.prior is not None:
                panel.axhline(float(found.prior), color=_INK, ls=":", lw=1)
                panel.annotate("prior", (steps[-1], float(found.prior)), (-2, 3),
                               textcoords="offset points", ha="right", fontsize=8)  # fmt: skip
            panel.set(title=title, xlim=steps[[0, -1]])
            panel.set_xlabel("groups made missing, from none to all")
            if found.classes is not None:
                panel.set_ylim(-0.02, 1.02)
            _despine(panel)
        first = next(iter(self.trajectories.values()))
        if first.classes is None:
            self.axes_[0].set_ylabel("prediction")
        else:
            label = first.classes[-1] if first.explained is None else first.explained
            self.axes_[0].set_ylabel(f"probability of {_text(label)}")
        return self


class CounterfactualDisplay:
    """Draw the effects of missing groups as bars, one panel per row.

    A bar to the left means that the prediction falls if the group is missing. Colour and hatch show
    the effect on the decision.

    Parameters
    ----------
    effects : Effects
        The result of `what_if`.
    y : array-like of shape (n,), default=None
        The true classes of two. If given, the titles compare the decisions with them.

    Attributes
    ----------
    effects : Effects
        The data of the bars.
    y : ndarray of shape (n,) or None
        The true classes.
    figure_ : matplotlib Figure
        The figure, after `plot`.
    axes_ : list of matplotlib Axes
        The panels, after `plot`.

    See Also
    --------
    what_if : Computes the effects.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> import numpy as np
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from promissing.inspection import CounterfactualDisplay, what_if
    >>> X = np.random.default_rng(0).normal(size=(100, 4))
    >>> model = DecisionTreeClassifier(random_state=0).fit(X, X[:, 0] + X[:, 1] > 0)
    >>> display = CounterfactualDisplay(what_if(model, X[:2])).plot()
    >>> len(display.axes_)
    2
    """

    def __init__(self, effects: Effects, *, y: ArrayLike | None = None) -> None:
        self.effects = effects
        self.y = None if y is None else np.asarray(y)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        groups: Groups = None,
        *,
        y: ArrayLike | None = None,
        target: Any = None,
        positive: Any = None,
        max_groups: int = 15,
        ax: Any = None,
    ) -> Self:
        r"""Compute and draw the effects for a fitted model.

        Parameters
        ----------
        estimator : fitted estimator
            The model, as in `what_if`.
        X : DataFrame, array or list of rows of shape (n, p)
            The rows to explain.
        groups : mapping of str to columns, "modalities" or None, default=None
            The columns that are made missing together, as in `what_if`.
        y : array-like of shape (n,), default=None
            The true classes of two. If given, the titles compare the decisions with them.
        target : label or int, default=None
            The class or output that is explained, as in `what_if`.
        positive : label, default=None
            The positive class of two, as in `what_if`.
        max_groups : int, default=15
            The largest number of bars in a panel.
        ax : Axes or sequence of Axes, default=None
            One for each row. By default there is a new figure.

        Returns
        -------
        CounterfactualDisplay
            The display, after `plot`.

        Examples
        --------
        >>> import matplotlib
        >>> matplotlib.use("agg")
        >>> import numpy as np
        >>> from sklearn.tree import DecisionTreeClassifier
        >>> from promissing.inspection import CounterfactualDisplay
        >>> X = np.random.default_rng(0).normal(size=(100, 4))
        >>> y = X[:, 0] + X[:, 1] > 0
        >>> model = DecisionTreeClassifier(random_state=0).fit(X, y)
        >>> display = CounterfactualDisplay.from_estimator(model, X[:1], y=y[:1])
        >>> display.axes_[0].get_title()
        '0: P(True) = 0.00\ntrue negative for True'
        """
        effects = what_if(estimator, X, groups, target=target, positive=positive)
        return cls(effects, y=y).plot(ax=ax, max_groups=max_groups)

    def plot(
        self, *, ax: Any = None, rows: Sequence[int] | None = None, max_groups: int = 15
    ) -> Self:
        """Draw one panel per row, with the largest effects.

        Parameters
        ----------
        ax : Axes or sequence of Axes, default=None
            One for each row. By default there is a new figure, with a legend.
        rows : sequence of int, default=None
            The positions of the rows to draw; by default all.
        max_groups : int, default=15
            The largest number of bars in a panel.

        Returns
        -------
        CounterfactualDisplay
            The display itself.

        Examples
        --------
        >>> import matplotlib
        >>> matplotlib.use("agg")
        >>> import numpy as np
        >>> from sklearn.tree import DecisionTreeClassifier
        >>> from promissing.inspection import CounterfactualDisplay, what_if
        >>> X = np.random.default_rng(0).normal(size=(100, 4))
        >>> model = DecisionTreeClassifier(random_state=0).fit(X, X[:, 0] + X[:, 1] > 0)
        >>> display = CounterfactualDisplay(what_if(model, X[:5])).plot(rows=[3], max_groups=2)
        >>> len(display.axes_[0].patches)
        2
        """
        found = self.effects
        shown = range(len(found.prediction)) if rows is None else rows
        n_bars = min(max_groups, len(found.groups))
        self.figure_, self.axes_ = _panels(len(shown), 5.2, 1.2 + 0.24 * n_bars, ax)
        outcomes = None if self.y is None else found.outcomes(self.y)
        bars: dict[str, Any] = {}  # One bar of each kind, for the legend.
        for panel, i in zip(self.axes_, shown, strict=True):
            order = np.argsort(-np.abs(found.effects[i]), kind="stable")[:n_bars]
            for place, g in enumerate(order):
                effect = found.effects[i, g]
                if found.kinds is not None:
                    kind = str(found.kinds[i, g])
                else:
                    kind = "opposes" if effect > 0 else "supports" if effect < 0 else "none"
                color, hatch, meaning = _KINDS[kind]
                bars[kind] = panel.barh(place, effect, 0.72, color=color, hatch=hatch,
                                        edgecolor="white", lw=0, label=meaning)  # fmt: skip
                if not found.known[i, g]:
                    panel.annotate("missing", (0, place), (3, 0), textcoords="offset points",
                                   va="center", fontsize=7, color=_GREY)  # fmt: skip
            panel.set_yticks(range(n_bars), [_text(found.groups[g]) for g in order])
            panel.invert_yaxis()
            panel.axvline(0, color=_INK, lw=0.8)
            label = found.positive if found.explained is None else found.explained[i]
            what = "the prediction" if label is None else f"P({_text(label)})"
            title = f"{found.index[i]}: " + ("" if found.classes is None else f"{what} = ")
            title += f"{found.prediction[i]:.2f}"
            if outcomes is not None:
                title += f"\n{outcomes[i]} for {_text(found.positive)}"
            panel.set_title(title)
            panel.set_xlabel(f"change of {what} if missing")
            _despine(panel)
            panel.grid(False, axis="y")
        if found.kinds is not None and ax is None:
            handles = [bars[kind] for kind in _KINDS if kind in bars]
            self.figure_.legend(handles=handles, loc="outside lower center", ncols=2, frameon=False)
        return self


class NeutralizerDisplay:
    """Draw neutralizers, the values by which neurons replace missing values, as a map.

    Parameters
    ----------
    neutralizers : array-like of shape (s, p)
        The neutralizers of s neurons and p columns, as returned by the method `neutralizers` of a
        layer. A masked entry is a column that is not connected to the neuron.
    names : sequence of str, default=None
        The names of the columns.

    Attributes
    ----------
    neutralizers : masked array of shape (s, p)
        The data of the map.
    names : list of str or None
        The names of the columns.
    figure_ : matplotlib Figure
        The figure, after `plot`.
    axes_ : list of matplotlib Axes
        The panel, after `plot`.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> from promissing.inspection import NeutralizerDisplay
    >>> display = NeutralizerDisplay([[0.5, -1.0], [2.0, 0.0]], ["age", "crp"]).plot()
    >>> display.axes_[0].get_ylabel()
    'neuron'
    """

    def __init__(self, neutralizers: ArrayLike, names: Sequence[Any] | None = None) -> None:
        self.neutralizers: Any = np.ma.asarray(neutralizers, dtype=float)
        if self.neutralizers.ndim != 2:
            raise ValueError(
                "`neutralizers` must have shape (neurons, columns). "
                f"Received: {self.neutralizers.shape}"
            )
        self.names = None if names is None else [_text(name) for name in names]

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, member: int = 0, modality: str | None = None, ax: Any = None
    ) -> Self:
        """Draw the neutralizers of one member of a fitted `NanMLP*` or `NanFusion*` model.

        For a number or a date they are those of its first encoded column, in standard deviations
        from the mean; its bins are not drawn. The neurons of a fusion model are connected to the
        columns of their own modality only: the rest of the map is empty.

        Parameters
        ----------
        estimator : fitted NanMLPClassifier, NanMLPRegressor, NanFusionClassifier or \
NanFusionRegressor
            The model.
        member : int, default=0
            The position of the ensemble member.
        modality : str, default=None
            The modality of a fusion model; by default all.
        ax : Axes, default=None
            The axes to draw on. By default there is a new figure.

        Returns
        -------
        NeutralizerDisplay
            The display, after `plot`.

        Examples
        --------
        >>> import matplotlib
        >>> matplotlib.use("agg")
        >>> import numpy as np
        >>> from promissing import NanFusionRegressor
        >>> from promissing.inspection import NeutralizerDisplay
        >>> X = np.array([[0.0, np.nan], [1.0, 0.5], [np.nan, 2.0], [3.0, 1.0]])
        >>> model = NanFusionRegressor({"blood": [0], "scan": [1]}, 2, max_iter=1, random_state=0)
        >>> _ = model.fit(X, [0.0, 1.0, 2.0, 3.0])
        >>> display = NeutralizerDisplay.from_estimator(model, modality="scan")
        >>> display.neutralizers.shape
        (2, 1)
        """
        neutralizers, kinds = estimator.neutralizers_, estimator.encoder_.kinds_
        if hasattr(estimator, "modalities_"):
            kinds = [kinds[j] for columns in estimator.modalities_.values() for j in columns]
        kind_of = dict(zip(neutralizers, kinds, strict=True))
        modalities = getattr(estimator, "modality_columns_", {})
        choices = f"one of {list(modalities)}" if modalities else "None for a model without any"
        expect(modality is None or modality in modalities, "modality", choices, modality)
        # The features that are connected to the same neurons.
        connected = list(modalities.values()) or [list(neutralizers)]
        connected = connected if modality is None else [modalities[modality]]
        names: list[Any] = []
        blocks: list[Any] = []
        for features in connected:
            parts = []
            for name in features:
                u = neutralizers[name][member]
                if kind_of[name] in ("number", "date"):
                    u = u[:, :1]
                parts.append(u)
                size = u.shape[1]
                names += [name] if size == 1 else [f"{name} [{k}]" for k in range(size)]
            blocks.append(np.concatenate(parts, axis=1))
        absent = block_diag(*[np.ones(block.shape) for block in blocks]) == 0
        whole = np.ma.array(block_diag(*blocks), mask=absent)
        return cls(whole, names).plot(ax=ax)

    def plot(self, *, ax: Any = None, limit: float = 3.0) -> Self:
        """Draw the map. Values beyond `limit` get the colour of the limit and a dot.

        Parameters
        ----------
        ax : Axes, default=None
            The axes to draw on. By default there is a new figure.
        limit : float, default=3.0
            The absolute value at which the colours end.

        Returns
        -------
        NeutralizerDisplay
            The display itself.

        Examples
        --------
        >>> import matplotlib
        >>> matplotlib.use("agg")
        >>> from promissing.inspection import NeutralizerDisplay
        >>> display = NeutralizerDisplay([[0.5, -1.0], [2.0, 0.0]]).plot(limit=1)
        >>> display.axes_[0].lines[0].get_xdata()
        array([0])
        """
        u, mask = self.neutralizers.data, np.ma.getmaskarray(self.neutralizers)
        n_neurons, n_columns = u.shape
        size = 1.5 + 0.28 * n_columns, min(1.2 + 0.16 * n_neurons, 12)
        self.figure_, self.axes_ = _panels(1, *size, ax)
        (panel,) = self.axes_
        values = np.ma.array(np.clip(np.nan_to_num(u, nan=0.0), -limit, limit), mask=mask)
        image = panel.imshow(values, cmap="PuOr", vmin=-limit, vmax=limit, aspect="auto",
                             interpolation="none")  # fmt: skip
        rows, columns = np.nonzero(~(np.abs(u) <= limit) & ~mask)
        panel.plot(columns, rows, ".", color=_INK, ms=3)
        panel.set_xticks(range(n_columns), self.names or range(n_columns), rotation=90)
        panel.set(xlabel="column", ylabel="neuron", title="Neutralizers of missing values")
        bar = self.figure_.colorbar(image, ax=panel)
        bar.set_label(f"deviations from the mean\n(dots: beyond {limit:g})")
        return self


class ModalityDecisionDisplay:
    """Draw the predictions of each modality alone and of the whole model, one panel per row.

    Parameters
    ----------
    decisions : mapping of str to array-like of shape (n,)
        The probability of the positive class, or the predicted number, by modality.
    final : array-like of shape (n,)
        The same of the whole model.
    known : mapping of str to array-like of bool of shape (n,), default=None
        Whether any value of the modality is known.
    index : sequence, default=None
        The names of the rows.
    positive : label, default=None
        The class whose probability is drawn; None for numbers.

    Attributes
    ----------
    decisions : dict of str to ndarray of shape (n,)
        The predictions by modality.
    final : ndarray of shape (n,)
        The predictions of the whole model.
    known : dict of str to ndarray of bool of shape (n,)
        Whether any value of the modality is known.
    index : list
        The names of the rows.
    positive : label or None
        The class whose probability is drawn.
    figure_ : matplotlib Figure
        The figure, after `plot`.
    axes_ : list of matplotlib Axes
        The panels, after `plot`.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> from promissing.inspection import ModalityDecisionDisplay
    >>> decisions = {"blood": [0.2], "scan": [0.4]}
    >>> ModalityDecisionDisplay(decisions, [0.3], positive="ill").plot().axes_[0].get_xlabel()
    'P(ill) of the modality alone (hollow: missing)'
    """

    def __init__(
        self,
        decisions: Mapping[str, ArrayLike],
        final: ArrayLike,
        *,
        known: Mapping[str, ArrayLike] | None = None,
        index: Sequence[Any] | None = None,
        positive: Any = None,
    ) -> None:
        self.decisions = {name: np.asarray(value) for name, value in decisions.items()}
        self.final = np.asarray(final)
        self.known = {name: np.asarray(value) for name, value in (known or {}).items()}
        self.index = list(range(len(self.final)) if index is None else index)
        self.positive = positive

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, *, positive: Any = None, ax: Any = None
    ) -> Self:
        """Draw the predictions of a fitted fusion model for the rows of X.

        Parameters
        ----------
        estimator : fitted NanFusionClassifier or NanFusionRegressor
            The model, of two classes or of a number.
        X : DataFrame or array of shape (n, p)
            The rows.
        positive : label, default=None
            The class whose probability is drawn; by default the second in sorted order.
        ax : Axes or sequence of Axes, default=None
            One for each row. By default there is a new figure.

        Returns
        -------
        ModalityDecisionDisplay
            The display, after `plot`.

        Examples
        --------
        >>> import matplotlib
        >>> matplotlib.use("agg")
        >>> import numpy as np
        >>> from promissing import NanFusionRegressor
        >>> from promissing.inspection import ModalityDecisionDisplay
        >>> X = np.array([[0.0, np.nan], [1.0, 0.5], [np.nan, 2.0], [3.0, 1.0]])
        >>> model = NanFusionRegressor({"blood": [0], "scan": [1]}, 2, max_iter=1, random_state=0)
        >>> _ = model.fit(X, [0.0, 1.0, 2.0, 3.0])
        >>> display = ModalityDecisionDisplay.from_estimator(model, X[:1])
        >>> display.known["scan"].tolist()
        [False]
        """
        if len(getattr(estimator, "classes_", (0, 1))) != 2:
            raise ValueError("Decisions are drawn for two classes or for a number.")
        found = what_if(estimator, X, "modalities", positive=positive)
        decisions = estimator.decision_by_modality(X)
        if found.classes is not None:
            column = found.classes.tolist().index(found.positive)
            decisions = {name: proba[:, column] for name, proba in decisions.items()}
        display = cls(
            decisions,
            found.prediction,
            known={str(name): found.known[:, g] for g, name in enumerate(found.groups)},
            index=list(found.index),
            positive=found.positive,
        )
        return display.plot(ax=ax)

    def plot(self, *, ax: Any = None, rows: Sequence[int] | None = None) -> Self:
        """Draw one panel per row.

        Parameters
        ----------
        ax : Axes or sequence of Axes, default=None
            One for each row. By default there is a new figure.
        rows : sequence of int, default=None
            The positions of the rows to draw; by default all.

        Returns
        -------
        ModalityDecisionDisplay
            The display itself.

        Examples
        --------
        >>> import matplotlib
        >>> matplotlib.use("agg")
        >>> from promissing.inspection import ModalityDecisionDisplay
        >>> decisions = {"blood": [0.2, 0.7], "scan": [0.4, 0.9]}
        >>> display = ModalityDecisionDisplay(decisions, [0.3, 0.8], index=["Ann", "Bo"])
        >>> display.plot(rows=[1]).axes_[0].get_title()
        'Bo'
        """
        shown = range(len(self.final)) if rows is None else rows
        values = np.array(list(self.decisions.values()))
        n_modalities = len(values)
        what = "prediction" if self.positive is None else f"P({_text(self.positive)})"
        self.figure_, self.axes_ = _panels(len(shown), 4.2, 1.2 + 0.24 * n_modalities, ax)
        for panel, i in zip(self.axes_, shown, strict=True):
            final = self.final[i]
            for place, name in enumerate(self.decisions):
                known = name not in self.known or self.known[name][i]
                panel.hlines(place, final, values[place, i], color=_GREY, lw=1, alpha=0.6)
                panel.plot(values[place, i], place, "o", color=_BLUE, ms=6,
                           mfc=_BLUE if known else "white")  # fmt: skip
            panel.axvline(final, color=_INK, lw=1.2)
            high = final > values[:, i].mean()  # The text goes to the emptier side of the line.
            panel.annotate(f"all modalities: {final:.2f}", (final, -0.7), (-3 if high else 3, 0),
                           textcoords="offset points", ha="right" if high else "left",
                           fontsize=8, annotation_clip=False)  # fmt: skip
            panel.set_yticks(range(n_modalities), [_text(name) for name in self.decisions])
            panel.set(ylim=(n_modalities - 0.4, -1.1), title=f"{self.index[i]}")
            panel.set_xlabel(f"{what} of the modality alone (hollow: missing)")
            if values.min() >= 0 and values.max() <= 1:
                panel.set_xlim(-0.02, 1.02)
            _despine(panel)
        return self


def _panels(n: int, width: float, height: float, ax: Any) -> tuple[Any, list[Any]]:
    """Return the figure and n axes: the given ones, or new ones of this size."""
    if ax is not None:
        given = list(np.ravel(np.asarray(ax, dtype=object)))
        if len(given) != n:
            raise ValueError(f"`ax` must hold {n} axes, one for each panel. Received: {len(given)}")
        return given[0].figure, given
    from matplotlib import pyplot as plt

    rows = -(-n // max(1, int(16 // width)))
    columns = -(-n // rows)  # Four panels are drawn two by two.
    size = (width * columns, height * rows)
    figure, grid = plt.subplots(rows, columns, figsize=size, squeeze=False, layout="constrained")
    for spare in grid.ravel()[n:]:
        spare.set_axis_off()
    return figure, list(grid.ravel()[:n])


def _despine(panel: Any) -> None:
    panel.spines[["top", "right"]].set_visible(False)
    panel.grid(alpha=0.2, linewidth=0.5)
    panel.set_axisbelow(True)


def _text(name: Any) -> str:
    """Return a name in full, wrapped, and without characters that matplotlib takes for math."""
    text = " + ".join(map(str, name)) if isinstance(name, tuple) else str(name)
    return fill(text, 32).replace("$", r"\$")
