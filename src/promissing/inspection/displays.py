"""Pictures of what a model makes of unknowns, in the manner of scikit-learn's displays.

A display stores the data and draws it: `from_estimator` computes and draws at once, `plot` draws
what is there, on axes that are given or made. Nothing is told by colour alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import block_diag

from promissing.inspection._information_loss import Trajectories, information_loss
from promissing.inspection._what_if import Effects, what_if

__all__ = [
    "CounterfactualDisplay",
    "ModalityDecisionDisplay",
    "NeutralizerDisplay",
    "TrajectoryDisplay",
]

Array = NDArray[Any]

_INK, _SOFT, _FOR, _AGAINST = "#222222", "#8a8f98", "#2f6db3", "#d9822b"
_KINDS = {  # Colour and hatch of a bar; hatches tell them apart in grey.
    "flips": ("#c2334d", "xxx"),
    "supports": (_FOR, ""),
    "opposes": (_AGAINST, "///"),
    "none": (_SOFT, "..."),
}
_WHAT = {
    "flips": "decisive: without it the decision changes",
    "supports": "speaks for the decision",
    "opposes": "speaks against it",
    "none": "makes no difference",
}


def _new_axes(n: int, width: float, height: float, axes: Any) -> tuple[Any, list[Any]]:
    """The figure and n axes, those given or new ones side by side."""
    if axes is not None:
        given = list(np.ravel(np.asarray(axes, dtype=object)))
        if len(given) != n:
            raise ValueError(f"`ax` must hold {n} axes, one for each panel. Received: {len(given)}")
        return given[0].figure, given
    from matplotlib import pyplot as plt

    rows = -(-n // max(1, int(16 // width)))
    columns = -(-n // rows)  # As even as can be: four are two and two.
    fig, grid = plt.subplots(
        rows,
        columns,
        figsize=(width * columns, height * rows),
        squeeze=False,
        layout="constrained",
        sharey=False,
    )
    for spare in grid.ravel()[n:]:
        spare.set_axis_off()
    return fig, list(grid.ravel()[:n])


def _plain(ax: Any) -> None:
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    ax.grid(alpha=0.2, linewidth=0.5)
    ax.set_axisbelow(True)


class TrajectoryDisplay:
    """How predictions fade as groups vanish in random order, one panel per model.

    Complete information is on the left, none on the right. Every row has a line, the mean over the
    orders, and a band of one standard deviation; the dashed line is the prior.

    Parameters
    ----------
    trajectories : mapping of str to Trajectories
        What `promissing.inspection.information_loss` returns, by the title of the panel.

    Attributes
    ----------
    figure_, axes_
        Set by `plot`.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> import numpy as np
    >>> from sklearn.ensemble import HistGradientBoostingClassifier
    >>> from promissing.inspection.displays import TrajectoryDisplay
    >>> X = np.random.default_rng(0).normal(size=(300, 4))
    >>> model = HistGradientBoostingClassifier(max_iter=20).fit(X, X[:, 0] + X[:, 1] > 0)
    >>> display = TrajectoryDisplay.from_estimator(model, X[:5], orders=10, prior=0.5)
    >>> display.axes_[0].get_title()
    'HistGradientBoostingClassifier'
    """

    def __init__(self, trajectories: Mapping[str, Trajectories]) -> None:
        self.trajectories = dict(trajectories)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        groups: Any = None,
        *,
        orders: int = 100,
        prior: ArrayLike | None = None,
        target: Any = None,
        positive: Any = None,
        random_state: Any = 0,
        ax: Any = None,
    ) -> Self:
        """Compute and draw the trajectories of one fitted model, or of a mapping of them.

        Parameters
        ----------
        estimator : fitted estimator, or mapping of str to fitted estimators
            One model, or several by the title of their panels.
        X, groups, orders, target, positive, prior, random_state
            As in `promissing.inspection.information_loss`.
        ax : Axes or sequence of Axes, optional
            One for each panel; by default a new figure.

        Returns
        -------
        TrajectoryDisplay
        """
        models = estimator if isinstance(estimator, Mapping) else {_name(estimator): estimator}
        found = {
            title: information_loss(
                model,
                X,
                groups,
                orders=orders,
                target=target,
                positive=positive,
                prior=prior,
                random_state=random_state,
            )
            for title, model in models.items()
        }
        return cls(found).plot(ax=ax)

    def plot(
        self, *, ax: Any = None, rows: Sequence[int] | None = None, bands: bool = True
    ) -> Self:
        """Draw one panel per model.

        Parameters
        ----------
        ax : Axes or sequence of Axes, optional
            One for each panel; by default a new figure.
        rows : sequence of int, optional
            The positions of the rows to draw; by default all.
        bands : bool, default=True
            Whether to draw the standard deviation over the orders.

        Returns
        -------
        TrajectoryDisplay
        """
        self.figure_, self.axes_ = _new_axes(len(self.trajectories), 4.0, 3.4, ax)
        for panel, (title, found) in zip(self.axes_, self.trajectories.items(), strict=True):
            if found.predictions.ndim != 3:
                raise ValueError(
                    "With several classes, the probability of one is drawn: choose it by `target`."
                )
            steps = np.arange(found.predictions.shape[2])
            mean, spread = found.mean, found.spread
            shown = range(len(mean)) if rows is None else rows
            alpha = 0.9 if len(shown) <= 20 else 0.4
            for i in shown:
                if bands:
                    low, high = mean[i] - spread[i], mean[i] + spread[i]
                    panel.fill_between(steps, low, high, color=_SOFT, alpha=0.12, lw=0)
                color = _FOR if mean[i, 0] >= mean[i, -1] else _AGAINST
                style = "-" if mean[i, 0] >= mean[i, -1] else (0, (5, 1))
                panel.plot(steps, mean[i], color=color, ls=style, lw=1.2, alpha=alpha)
            if found.prior is not None and np.ndim(found.prior) == 0:
                panel.axhline(float(found.prior), color=_INK, ls=":", lw=1)
                panel.annotate("prior", (steps[-1], float(found.prior)), (-2, 3),
                               textcoords="offset points", ha="right", fontsize=8)  # fmt: skip
            panel.set_title(title)
            panel.set_xlabel("groups made unknown, from none to all")
            if found.classes is not None:
                panel.set_ylim(-0.02, 1.02)
            panel.set_xlim(steps[0], steps[-1])
            _plain(panel)
        self.axes_[0].set_ylabel(_what(self.trajectories[next(iter(self.trajectories))]))
        return self


class CounterfactualDisplay:
    """What would change if a group were unknown: bars for each row, longest first.

    A bar to the left says that the prediction would fall without the group. Its kind, by colour
    and hatch, says what that means for the decision.

    Parameters
    ----------
    effects : Effects
        What `promissing.inspection.what_if` returns.
    y : array (n,), optional
        The true classes: titles then say which of the four outcomes the decision is, for the
        positive class.

    Attributes
    ----------
    figure_, axes_
        Set by `plot`.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> import numpy as np
    >>> from sklearn.ensemble import HistGradientBoostingClassifier
    >>> from promissing.inspection.displays import CounterfactualDisplay
    >>> X = np.random.default_rng(0).normal(size=(300, 4))
    >>> y = X[:, 0] + X[:, 1] > 0
    >>> model = HistGradientBoostingClassifier(max_iter=20).fit(X, y)
    >>> display = CounterfactualDisplay.from_estimator(model, X[:2], y=y[:2])
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
        groups: Any = None,
        *,
        y: ArrayLike | None = None,
        target: Any = None,
        positive: Any = None,
        max_groups: int = 15,
        ax: Any = None,
    ) -> Self:
        """Compute and draw the effects of a fitted model.

        Parameters
        ----------
        estimator : fitted estimator
            As the `model` of `promissing.inspection.what_if`.
        X, groups, target, positive
            As in `promissing.inspection.what_if`.
        y : array (n,), optional
            The true classes.
        max_groups : int, default=15
            How many bars are drawn at most.
        ax : Axes or sequence of Axes, optional
            One for each row; by default a new figure.

        Returns
        -------
        CounterfactualDisplay
        """
        found = what_if(estimator, X, groups=groups, target=target, positive=positive)
        return cls(found, y=y).plot(ax=ax, max_groups=max_groups)

    def plot(
        self, *, ax: Any = None, rows: Sequence[int] | None = None, max_groups: int = 15
    ) -> Self:
        """Draw one panel per row, with the largest effects.

        Parameters
        ----------
        ax : Axes or sequence of Axes, optional
            One for each row; by default a new figure.
        rows : sequence of int, optional
            The positions of the rows to draw; by default all.
        max_groups : int, default=15
            How many bars are drawn at most.

        Returns
        -------
        CounterfactualDisplay
        """
        found = self.effects
        shown = list(range(len(found.prediction)) if rows is None else rows)
        bars = min(max_groups, len(found.groups))
        self.figure_, self.axes_ = _new_axes(len(shown), 5.2, 1.2 + 0.24 * bars, ax)
        outcomes = None if self.y is None else found.outcomes(self.y)
        used: set[str] = set()
        for panel, i in zip(self.axes_, shown, strict=True):
            order = np.argsort(-np.abs(found.effects[i]), kind="stable")[:bars]
            names = [_label(found.groups[g]) for g in order]
            for place, g in enumerate(order):
                kind = "none" if found.kinds is None else str(found.kinds[i, g])
                if found.kinds is None and found.effects[i, g]:
                    kind = "opposes" if found.effects[i, g] > 0 else "supports"
                color, hatch = _KINDS[kind]
                used.add(kind)
                panel.barh(place, found.effects[i, g], 0.72, color=color, hatch=hatch,
                           edgecolor="white", lw=0)  # fmt: skip
                if not found.known[i, g]:
                    panel.annotate("unknown", (0, place), (3, 0), textcoords="offset points",
                                   va="center", fontsize=7, color=_SOFT)  # fmt: skip
            panel.set_yticks(range(len(order)), names)
            panel.invert_yaxis()
            panel.axvline(0, color=_INK, lw=0.8)
            panel.set_title(_title(found, i, None if outcomes is None else outcomes[i]))
            panel.set_xlabel(f"change of {_short(found, i)} if it were unknown")
            _plain(panel)
            panel.grid(False, axis="y")
        if found.kinds is not None and ax is None:
            from matplotlib.patches import Patch

            marks = [
                Patch(
                    facecolor=_KINDS[kind][0],
                    hatch=_KINDS[kind][1],
                    edgecolor="white",
                    label=_WHAT[kind],
                )
                for kind in _KINDS
                if kind in used
            ]
            self.figure_.legend(handles=marks, loc="outside lower center", ncols=2, frameon=False)
        return self


class NeutralizerDisplay:
    """What each neuron takes a gap for: the neutralizers U as a map of neurons and columns.

    Parameters
    ----------
    neutralizers : ndarray (s, p)
        As layers' `neutralizers()` and, by feature, estimators' `neutralizers_` give them.
        A masked entry is a column that does not reach the neuron.
    names : sequence of str, optional
        The columns.

    Attributes
    ----------
    figure_, axes_
        Set by `plot`.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> from promissing.inspection.displays import NeutralizerDisplay
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
        self.names = None if names is None else [_label(name) for name in names]

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, member: int = 0, modality: str | None = None, ax: Any = None
    ) -> Self:
        """Draw the neutralizers of one member of a fitted `NanMLP*` or `NanFusion*` model.

        Of a number they are those of its first column, in deviations from the mean; its bins, if it
        has some, are left out. The neurons of a fusion model see the columns of their own modality
        only: the rest of the map is empty.

        Parameters
        ----------
        estimator : fitted NanMLPClassifier, NanMLPRegressor, NanFusionClassifier or \
NanFusionRegressor
            The model.
        member : int, default=0
            Which member of the ensemble.
        modality : str, optional
            Which modality of a fusion model; by default all.
        ax : Axes, optional
            By default a new figure.

        Returns
        -------
        NeutralizerDisplay
        """
        every, kinds = estimator.neutralizers_, estimator.encoder_.kinds_
        if hasattr(estimator, "modalities_"):
            kinds = [kinds[j] for columns in estimator.modalities_.values() for j in columns]
        kind_of = dict(zip(every, kinds, strict=True))
        names: list[Any] = []
        blocks: list[Array] = []
        for features in _features_by_modality(estimator, modality):
            parts = []
            for name in features:
                u = every[name][member]
                if kind_of[name] in ("number", "date"):
                    u = u[:, :1]
                parts.append(u)
                columns = range(u.shape[1])
                names += [name] if len(columns) == 1 else [f"{name} [{k}]" for k in columns]
            blocks.append(np.concatenate(parts, axis=1))
        connected = block_diag(*[np.ones(block.shape) for block in blocks])
        whole = np.ma.array(block_diag(*blocks), mask=connected == 0)
        return cls(whole, names).plot(ax=ax)

    def plot(self, *, ax: Any = None, limit: float = 3.0) -> Self:
        """Draw the map; values beyond `limit` are drawn as the limit and marked with a dot.

        Parameters
        ----------
        ax : Axes, optional
            By default a new figure.
        limit : float, default=3
            Where the colours end.

        Returns
        -------
        NeutralizerDisplay
        """
        u, mask = self.neutralizers.data, np.ma.getmaskarray(self.neutralizers)
        size = 1.5 + 0.28 * u.shape[1], min(1.2 + 0.16 * u.shape[0], 12)
        self.figure_, self.axes_ = _new_axes(1, *size, ax)
        (panel,) = self.axes_
        image = panel.imshow(
            np.ma.array(np.clip(np.nan_to_num(u, nan=0.0), -limit, limit), mask=mask),
            cmap="PuOr",
            vmin=-limit,
            vmax=limit,
            aspect="auto",
            interpolation="none",
        )
        rows, columns = np.nonzero(~(np.abs(u) <= limit) & ~mask)
        panel.plot(columns, rows, ".", color=_INK, ms=3)
        names = self.names or [str(j) for j in range(u.shape[1])]
        panel.set_xticks(range(u.shape[1]), names, rotation=90)
        panel.set_xlabel("column")
        panel.set_ylabel("neuron")
        panel.set_title("What a gap is taken for")
        bar = self.figure_.colorbar(image, ax=panel)
        bar.set_label(f"in deviations from the mean; dots lie beyond {limit:g}")
        return self


class ModalityDecisionDisplay:
    """What each modality says by itself, and the decision of all: one panel per row.

    Parameters
    ----------
    decisions : mapping of str to array (n,)
        The probability of the positive class, or the predicted number, by modality.
    final : array (n,)
        The same of the whole model.
    known : mapping of str to array of bool (n,), optional
        Whether anything of the modality was known.
    index : sequence, optional
        What the rows are called.
    positive : label, optional
        The class whose probability is drawn; None for numbers.

    Attributes
    ----------
    figure_, axes_
        Set by `plot`.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> from promissing.inspection.displays import ModalityDecisionDisplay
    >>> decisions = {"blood": [0.2], "scan": [0.4]}
    >>> ModalityDecisionDisplay(decisions, [0.3], positive="ill").plot().axes_[0].get_xlabel()
    'P(ill) by itself (hollow: it is unknown)'
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
        self.known = None if known is None else {k: np.asarray(v) for k, v in known.items()}
        self.index = list(range(len(self.final)) if index is None else index)
        self.positive = positive

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, *, positive: Any = None, ax: Any = None
    ) -> Self:
        """Draw the decisions of a fitted `NanFusionClassifier` or regressor for the rows of X.

        Parameters
        ----------
        estimator : fitted NanFusionClassifier or NanFusionRegressor
            The model, of two classes or of a number.
        X : frame or array (n, p)
            The rows.
        positive : label, optional
            The class whose probability is drawn; by default the second in sorted order.
        ax : Axes or sequence of Axes, optional
            One for each row; by default a new figure.

        Returns
        -------
        ModalityDecisionDisplay
        """
        if len(getattr(estimator, "classes_", (0, 1))) != 2:
            raise ValueError("Decisions are drawn for two classes or for a number.")
        found = what_if(estimator, X, groups="modalities", positive=positive)
        decisions = estimator.decision_by_modality(X)
        if found.classes is not None:
            column = found.classes.tolist().index(found.positive)
            decisions = {name: proba[:, column] for name, proba in decisions.items()}
        known = {str(name): found.known[:, g] for g, name in enumerate(found.groups)}
        display = cls(
            decisions,
            found.prediction,
            known=known,
            index=list(found.index),
            positive=found.positive,
        )
        return display.plot(ax=ax)

    def plot(self, *, ax: Any = None, rows: Sequence[int] | None = None) -> Self:
        """Draw one panel per row.

        Parameters
        ----------
        ax : Axes or sequence of Axes, optional
            One for each row; by default a new figure.
        rows : sequence of int, optional
            The positions of the rows to draw; by default all.

        Returns
        -------
        ModalityDecisionDisplay
        """
        shown = list(range(len(self.final)) if rows is None else rows)
        names = list(self.decisions)
        self.figure_, self.axes_ = _new_axes(len(shown), 4.2, 1.2 + 0.24 * len(names), ax)
        for panel, i in zip(self.axes_, shown, strict=True):
            for place, name in enumerate(names):
                seen = self.known is None or bool(self.known.get(name, np.ones(1, bool))[i])
                value = float(self.decisions[name][i])
                panel.hlines(place, self.final[i], value, color=_SOFT, lw=1, alpha=0.6)
                panel.plot(value, place, "o", color=_FOR, ms=6,
                           mfc=_FOR if seen else "white")  # fmt: skip
            panel.axvline(self.final[i], color=_INK, lw=1.2)
            said = f"all together: {self.final[i]:.2f}"
            high = self.final[i] > np.mean([v[i] for v in self.decisions.values()])
            panel.annotate(said, (self.final[i], -0.7), (-3 if high else 3, 0),
                           textcoords="offset points", ha="right" if high else "left",
                           fontsize=8, annotation_clip=False)  # fmt: skip
            panel.set_yticks(range(len(names)), [_label(name) for name in names])
            panel.set_ylim(len(names) - 0.4, -1.1)
            panel.set_title(f"{self.index[i]}")
            what = "decision" if self.positive is None else f"P({_label(self.positive)})"
            panel.set_xlabel(f"{what} by itself (hollow: it is unknown)")
            if min(map(np.min, self.decisions.values())) >= 0 and (
                max(map(np.max, self.decisions.values())) <= 1
            ):
                panel.set_xlim(-0.02, 1.02)
            _plain(panel)
        return self


def _name(estimator: Any) -> str:
    """What a model is called: a pipeline by its last step."""
    last = estimator.steps[-1][1] if hasattr(estimator, "steps") else estimator
    return type(last).__name__


def _label(name: Any) -> str:
    """A name in full, wrapped instead of cut, with nothing taken for a formula."""
    from textwrap import fill

    text = " + ".join(map(str, name)) if isinstance(name, tuple) else str(name)
    return fill(text, 32).replace("$", r"\$")


def _what(found: Trajectories) -> str:
    if found.classes is None:
        return "prediction"
    label = found.classes[-1] if found.explained is None else found.explained
    return f"probability of {_label(label)}"


def _short(found: Effects, i: int) -> str:
    """What the bars of a row change, in a word: the prediction, or the probability of a class."""
    label = found.positive if found.explained is None else found.explained[i]
    return "the prediction" if label is None else f"P({_label(label)})"


def _title(found: Effects, i: int, outcome: str | None) -> str:
    """The name of a row, its prediction, and the outcome if the truth is known."""
    what, value = _short(found, i), f"{found.prediction[i]:.2f}"
    said = (
        f"{found.index[i]}: {value}"
        if found.classes is None
        else f"{found.index[i]}: {what} = {value}"
    )
    return said if outcome is None else f"{said}\n{outcome} for {_label(found.positive)}"


def _features_by_modality(estimator: Any, modality: str | None) -> list[list[Any]]:
    """The names of the features that the same neurons see: of every modality, or of all columns."""
    if not hasattr(estimator, "modalities_"):
        if modality is not None:
            raise ValueError(
                f"`modality` is for fusion models; {type(estimator).__name__} has no modalities. "
                f"Received: {modality!r}"
            )
        return [list(estimator.neutralizers_)]
    known = estimator.modality_columns_
    if modality is not None and modality not in known:
        raise ValueError(f"`modality` must be one of {list(known)}. Received: {modality!r}")
    return list(known.values()) if modality is None else [known[modality]]
