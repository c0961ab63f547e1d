"""Pictures of what a model makes of unknowns, in the manner of scikit-learn's displays.

A display stores the data and draws it: `from_estimator` computes and draws at once, `plot` draws
what is there, on axes that are given or made. Nothing is told by colour alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from promissing.explain import Effects, Trajectories, information_loss, what_if

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
        What `promissing.explain.information_loss` returns, by the title of the panel.

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
    >>> from promissing.displays import TrajectoryDisplay
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
        random_state: Any = 0,
        ax: Any = None,
    ) -> Self:
        """Compute and draw the trajectories of one fitted model, or of a mapping of them."""
        models = estimator if isinstance(estimator, Mapping) else {_name(estimator): estimator}
        found = {
            title: information_loss(
                model, X, groups, orders=orders, prior=prior, random_state=random_state
            )
            for title, model in models.items()
        }
        return cls(found).plot(ax=ax)

    def plot(
        self, *, ax: Any = None, rows: Sequence[int] | None = None, bands: bool = True
    ) -> Self:
        """Draw one panel per model, for all rows or some of them by position."""
        self.figure_, self.axes_ = _new_axes(len(self.trajectories), 4.0, 3.4, ax)
        for panel, (title, found) in zip(self.axes_, self.trajectories.items(), strict=True):
            if found.predictions.ndim != 3:
                raise ValueError(
                    "With several classes, follow one: `information_loss(..., target=...)`."
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
        followed = self.trajectories[next(iter(self.trajectories))]
        self.axes_[0].set_ylabel(_what(followed.classes))
        return self


class CounterfactualDisplay:
    """What would change if a group were unknown: bars for each row, longest first.

    A bar to the left says that the prediction would fall without the group. Its kind, by colour
    and hatch, says what that means for the decision.

    Parameters
    ----------
    effects : Effects
        What `promissing.explain.what_if` returns.
    y : array (n,), optional
        The true classes: titles then say which of the four outcomes the decision is.
    title : optional
        What a panel is called, as a format of the row's index and prediction.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> import numpy as np
    >>> from sklearn.ensemble import HistGradientBoostingClassifier
    >>> from promissing.displays import CounterfactualDisplay
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
        max_groups: int = 15,
        ax: Any = None,
    ) -> Self:
        """Compute and draw the effects of a fitted model."""
        found = what_if(estimator, X, groups=groups, target=target)
        return cls(found, y=y).plot(ax=ax, max_groups=max_groups)

    def plot(
        self, *, ax: Any = None, rows: Sequence[int] | None = None, max_groups: int = 15
    ) -> Self:
        """Draw one panel per row, for all rows or some by position, with the largest effects."""
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
            said = f"{found.index[i]}: {found.prediction[i]:.2f}"
            panel.set_title(said if outcomes is None else f"{said}, {outcomes[i]}")
            panel.set_xlabel("change of the prediction if it were unknown")
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
    names : sequence of str, optional
        The columns.
    """

    def __init__(self, neutralizers: ArrayLike, names: Sequence[Any] | None = None) -> None:
        self.neutralizers = np.asarray(neutralizers, dtype=float)
        if self.neutralizers.ndim != 2:
            raise ValueError(
                "`neutralizers` must have shape (neurons, columns). "
                f"Received: {self.neutralizers.shape}"
            )
        self.names = None if names is None else [_label(name) for name in names]

    @classmethod
    def from_estimator(cls, estimator: Any, *, member: int = 0, ax: Any = None) -> Self:
        """Draw the neutralizers of one member of a fitted `NanMLPClassifier` or regressor.

        Of a number they are those of its first column, in deviations from the mean; its bins, if it
        has some, are left out.
        """
        kinds, every = estimator.encoder_.kinds_, estimator.neutralizers_
        by_feature = {
            name: u[..., :1] if kind in ("number", "date") else u
            for kind, (name, u) in zip(kinds, every.items(), strict=True)
        }
        names = [
            name if u.shape[2] == 1 else f"{name} [{k}]"
            for name, u in by_feature.items()
            for k in range(u.shape[2])
        ]
        u = np.concatenate([one[member] for one in by_feature.values()], axis=1)
        return cls(u, names).plot(ax=ax)

    def plot(self, *, ax: Any = None, limit: float = 3.0) -> Self:
        """Draw the map; values beyond `limit` are drawn as the limit and marked with a dot."""
        u = self.neutralizers
        size = 1.5 + 0.28 * u.shape[1], min(1.2 + 0.16 * u.shape[0], 12)
        self.figure_, self.axes_ = _new_axes(1, *size, ax)
        (panel,) = self.axes_
        image = panel.imshow(
            np.clip(np.nan_to_num(u, nan=0.0), -limit, limit),
            cmap="PuOr",
            vmin=-limit,
            vmax=limit,
            aspect="auto",
            interpolation="none",
        )
        rows, columns = np.nonzero(~(np.abs(u) <= limit))
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
        The probability of the second class, or the value, by modality.
    final : array (n,)
        That of the whole model.
    known : mapping of str to array of bool (n,), optional
        Whether anything of the modality was known.
    index : sequence, optional
        What the rows are called.
    """

    def __init__(
        self,
        decisions: Mapping[str, ArrayLike],
        final: ArrayLike,
        *,
        known: Mapping[str, ArrayLike] | None = None,
        index: Sequence[Any] | None = None,
    ) -> None:
        self.decisions = {name: np.asarray(value) for name, value in decisions.items()}
        self.final = np.asarray(final)
        self.known = None if known is None else {k: np.asarray(v) for k, v in known.items()}
        self.index = list(range(len(self.final)) if index is None else index)

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, *, ax: Any = None) -> Self:
        """Draw the decisions of a fitted `NanFusionClassifier` or regressor for the rows of X."""
        decisions = estimator.decision_by_modality(X)
        if hasattr(estimator, "predict_proba"):
            if len(estimator.classes_) != 2:
                raise ValueError("Decisions are drawn for two classes or for a number.")
            decisions = {name: proba[:, 1] for name, proba in decisions.items()}
            final = estimator.predict_proba(X)[:, 1]
        else:
            final = estimator.predict(X)
        found = what_if(estimator, X, groups="modalities")
        known = {str(name): found.known[:, g] for g, name in enumerate(found.groups)}
        return cls(decisions, final, known=known, index=list(found.index)).plot(ax=ax)

    def plot(self, *, ax: Any = None, rows: Sequence[int] | None = None) -> Self:
        """Draw one panel per row, for all rows or some by position."""
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
            panel.set_xlabel("its own decision (hollow: it is unknown)")
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


def _what(classes: Array | None) -> str:
    return "prediction" if classes is None else f"probability of {classes[-1]}"
