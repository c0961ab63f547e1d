"""Every way to cope with gaps, tried on one table: which is best, and whether that means anything.

All strategies see the same folds, the same extra gaps and the same seeds, so that what differs is
what is done about the gaps.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from promissing.compare import folds as _folds
from promissing.compare import strategies
from promissing.compare.paired import corrected_t_test, holm

__all__ = ["Comparison", "compare"]

Progress = Callable[[int, int, str], object]

LEVEL = 0.05  # Of significance, after Holm's correction.
_METRICS = {"classification": "AUC", "regression": "R2"}
_UNFILLED = ("native", "trees")  # The families that need no value in a gap.
_FULL = "it is the reference on a table without gaps, and no way to cope with them"


@dataclass(frozen=True)
class Comparison:
    """Strategies on one table.

    Parameters
    ----------
    table : DataFrame
        A line for every strategy, the best first: `strategy`, `title`, the `mean` score over all
        folds, its `spread` (the standard deviation over the folds), the `seconds` of all folds
        together, the `difference` from the best mean, and `p` of the corrected resampled t-test
        against the best, Holm-corrected; NaN for the best itself.
    scores : DataFrame
        A line for every fold: `strategy`, `repetition`, `fold`, `score`, `seconds`.
    metric : {"AUC", "R2"}
        Higher is better. With several classes the AUC is the mean of each class against the rest.
    recommendation : str
        What to take, in a sentence that says what is significant and what is preference.
    skipped : dict of str to str
        The strategies that did not run, with the reason.
    notes : tuple of str
        What strategies warned about.
    about : dict
        Task, folds, repetitions, extra gaps, settings, seed, rows, columns and the share missing.
    """

    table: pd.DataFrame
    scores: pd.DataFrame
    metric: str
    recommendation: str
    skipped: dict[str, str]
    notes: tuple[str, ...]
    about: dict[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """All of it as what JSON knows; NaN is None."""
        return {
            "metric": self.metric,
            **self.about,
            "level": LEVEL,
            "recommendation": self.recommendation,
            "table": _records(self.table),
            "scores": _records(self.scores),
            "skipped": dict(self.skipped),
            "notes": list(self.notes),
        }


def compare(
    X: Any,
    y: Any,
    *,
    task: str,
    names: Iterable[str] | None = None,
    modalities: Mapping[str, Any] | None = None,
    folds: int = 5,
    repetitions: int = 1,
    extra: float = 0.0,
    mechanism: str = "mcar",
    settings: Mapping[str, Any] | None = None,
    random_state: int = 0,
    progress: Progress | None = None,
) -> Comparison:
    """Cross-validate strategies on a table with its own gaps and, if wished, with more.

    A strategy that fails is listed with its reason, and the others go on.

    Parameters
    ----------
    X : frame or array (n, p)
    y : array-like (n,)
        Without gaps.
    task : {"classification", "regression"}
    names : iterable of str, optional
        Names of `promissing.compare.strategies`; by default all but "full", which needs a
        table without gaps. A strategy whose package is not installed is skipped.
    modalities : mapping, optional
        The modalities of the table, for a network of fusion.
    folds : int, default=5
        Of cross-validation, shuffled; stratified for classification.
    repetitions : int, default=1
        Of the whole, with other folds and other extra gaps.
    extra : float, default=0
        The share of the observed cells that is taken away, in training and test rows alike.
    mechanism : str, default="mcar"
        How they are taken away: a name of `promissing.missingness`, in all columns; under MAR in
        all but a random one, which drives the losses.
    settings : mapping, optional
        Parameters of the network, such as `{"max_iter": 50}`; the default is the estimators'.
    random_state : int, default=0
    progress : callable, optional
        Called with (fits done, fits in all, what comes next).

    Examples
    --------
    >>> import numpy as np
    >>> from promissing.compare.comparison import compare
    >>> X = np.random.default_rng(0).normal(size=(200, 3))
    >>> y = X[:, 0] + X[:, 1]
    >>> X[::4, 1] = np.nan
    >>> found = compare(X, y, task="regression", names=["zero", "hgb"], settings={"max_iter": 5})
    >>> found.metric, found.table["strategy"][0]
    ('R2', 'hgb')
    """
    wanted, skipped = _choose(names)
    X = X if hasattr(X, "iloc") else np.asarray(X)
    truth = _folds.read_target(X, y, task, folds, repetitions)
    how = (folds, repetitions, extra, mechanism, random_state)
    rounds = list(_folds.rounds(X, truth, task, *how))
    lines: list[tuple[Any, ...]] = []
    notes: list[str] = []
    for k, name in enumerate(wanted):
        title, own = strategies.STRATEGIES[name].title, []
        try:
            for i, one in enumerate(rounds):
                if progress is not None:
                    progress(k * len(rounds) + i, len(wanted) * len(rounds), title)
                model = strategies.make(
                    name, task, network=settings, modalities=modalities, random_state=one.seed
                )
                score, seconds, warned = _folds.run(model, task, one, truth)
                own.append((name, one.repetition, one.fold, score, seconds))
                notes += [f"{title}: {text}" for text in warned]
        except Exception as error:  # Whatever it is, the others can go on without it.
            skipped[name] = " ".join(str(error).split()) or type(error).__name__
        else:
            lines += own
    if progress is not None:
        progress(len(wanted) * len(rounds), len(wanted) * len(rounds), "")
    if not lines:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in skipped.items())
        raise RuntimeError(f"No strategy could be compared. {reasons}")
    scores = pd.DataFrame(lines, columns=["strategy", "repetition", "fold", "score", "seconds"])
    table = _summarise(scores, float(np.mean([len(r.test) / len(r.train) for r in rounds])))
    metric = _METRICS[task]
    about = {
        "task": task,
        "rows": len(truth),
        "columns": int(X.shape[1]),
        "missing": float(np.mean([np.asarray(pd.isna(r.X)).mean() for r in rounds[::folds]])),
        "folds": folds,
        "repetitions": repetitions,
        "extra": float(extra),
        "mechanism": mechanism if extra else None,
        "settings": dict(settings or {}),
        "modalities": None if modalities is None else list(modalities),
        "seed": random_state,
    }
    said = tuple(dict.fromkeys(notes))
    return Comparison(table, scores, metric, _recommend(table, metric), skipped, said, about)


def _choose(names: Iterable[str] | None) -> tuple[tuple[str, ...], dict[str, str]]:
    """The strategies to run, and why others do not."""
    installed = strategies.available()
    wanted = strategies.NAMES if names is None else strategies.known(names)
    if not wanted:
        raise ValueError(f"`names` is empty. The strategies are: {', '.join(strategies.NAMES)}.")
    skipped = {"full": _FULL} if names is None else {}
    for name in wanted:
        if name not in installed:
            package = strategies.STRATEGIES[name].package
            skipped[name] = f"{package} is not installed: pip install 'promissing[trees]'"
    return tuple(name for name in wanted if name not in skipped), skipped


def _summarise(scores: pd.DataFrame, test_share: float) -> pd.DataFrame:
    """A line for every strategy, the best first."""
    by_name = scores.groupby("strategy", sort=False)
    table = by_name["score"].agg(mean="mean", spread="std")
    table["seconds"] = by_name["seconds"].sum()
    table = table.sort_values("mean", ascending=False, kind="stable")
    table["difference"] = table["mean"] - table["mean"].iloc[0]
    wide = {name: group["score"].to_numpy() for name, group in by_name}
    best, *others = table.index
    p = [corrected_t_test(wide[name] - wide[best], test_share) for name in others]
    table["p"] = [math.nan, *holm(p)]
    table.insert(0, "title", [strategies.STRATEGIES[name].title for name in table.index])
    return table.reset_index(names="strategy")


def _records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    rows = frame.to_dict("records")
    return [{k: None if v != v else v for k, v in row.items()} for row in rows]


def _recommend(table: pd.DataFrame, metric: str) -> str:
    """One sentence: what is best, what that is worth, and what we should take."""
    best, others = table.iloc[0], table.iloc[1:]
    chance = {"AUC": 0.5, "R2": 0.0}[metric]
    lead = f"{best['title']} has the highest mean {metric}, {best['mean']:.3f}"
    if best["mean"] <= chance:
        return f"{lead}, which is no better than chance ({chance:g}): do not use any of them."
    if others.empty:
        return f"{lead}, with nothing to compare it with."
    worse = others["p"] < LEVEL
    if worse.all():
        return f"{lead}, significantly more than {_list(others['title'])}: take it."
    if worse.any():
        lead += f", significantly more than {_list(others.loc[worse, 'title'])}"
        rest = f"not significantly more than {_list(others.loc[~worse, 'title'])}"
    else:
        rest = "no difference from the others is significant"
    level = table[[True, *~worse]]
    whole = [strategies.STRATEGIES[name].family in _UNFILLED for name in level["strategy"]]
    if whole[0]:
        return f"{lead}, but {rest}: take it, or whichever suits you."
    if not any(whole):
        return f"{lead}, but {rest}: take whichever suits you."
    own = level[whole].iloc[0]
    return (
        f"{lead}, but {rest}: we would take {own['title']} ({own['mean']:.3f}), for no better "
        "reason than that it fills nothing in."
    )


def _list(titles: Iterable[str]) -> str:
    *first, last = titles
    return f"{', '.join(first)} and {last}" if first else last
