"""Compare strategies for missing values on one table by cross-validation.

All strategies see the same folds, the same removed values and the same seeds, so that they differ
only in their treatment of missing values. Every fitted model is scored twice: on the test rows as
they are, and on test rows from which half of the features are removed at random, as if inputs went
missing in use.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import wraps
from numbers import Real
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy import stats
from sklearn.base import clone
from sklearn.metrics import log_loss, r2_score, roc_auc_score
from sklearn.model_selection import KFold, StratifiedKFold

from promissing import metrics
from promissing._validation import expect, renamed_arguments, warn
from promissing.compare import strategies as registry
from promissing.missingness import Mechanism, remove

__all__ = ["Comparison", "Round", "compare", "corrected_t_test", "holm", "read_target", "rounds"]

Array = NDArray[Any]
Progress = Callable[[int, int, str], object]
Function = TypeVar("Function", bound=Callable[..., Any])

LEVEL = 0.05  # Level of significance, after Holm's correction.
_METRICS = {"classification": "AUC", "regression": "R2"}
POWER = 0.8  # Probability with which the stated difference would be found.
_MOST_NAMED = 4  # Strategies whose calibration error the advice names.
_FULL = "it is the reference on a table without missing values"
_DIGITS = 12  # Scores that agree to this digit are equal: the order of a sum changes the rest.


@dataclass(frozen=True, repr=False)
class Comparison:
    """The scores of several strategies on one table.

    Parameters
    ----------
    table : DataFrame
        One row per strategy, the best first: `strategy`, `title`, the `mean` score over all folds,
        its `spread` (the standard deviation over the folds), the `seconds` of all folds together,
        the `difference` from the best mean, and the Holm-corrected `p` of the corrected resampled
        t-test against the best. The best has no `p` (NaN). For classification, also `log_loss` and
        `calibration_error`. Columns that end in `_missing` are the same for test rows from which
        half of the features are removed; they are NaN if a strategy cannot predict such rows.
    scores : DataFrame
        One row per fold: `strategy`, `repetition`, `fold`, `score`, `seconds`, `score_missing`,
        and for classification `log_loss` and `log_loss_missing`.
    metric : {"AUC", "R2"}
        The score; higher is better. For several classes, the AUC is the mean of each class against
        the rest.
    recommendation : str
        Advice in a few sentences: the best strategy and the significant differences, the power of
        the comparison, and which strategy is best if inputs go missing in use.
    skipped : dict of str to str
        The strategies that did not run, with the reason.
    notes : tuple of str
        The warnings of the strategies.
    about : dict
        Task, folds, repetitions, removed values, settings, seed, rows, columns and the share of
        missing values.

    Examples
    --------
    >>> import numpy as np
    >>> from promissing.compare import compare
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> compare(X, X[:, 0], task="regression", strategies=["hgb"], folds=2).skipped
    {}
    """

    table: pd.DataFrame
    scores: pd.DataFrame
    metric: str
    recommendation: str
    skipped: dict[str, str]
    notes: tuple[str, ...]
    about: dict[str, Any]

    def __repr__(self) -> str:
        return f"<Comparison of {len(self.table)} strategies: {self.recommendation}>"

    def to_frame(self) -> pd.DataFrame:
        """Return the table with one row per strategy, indexed by its name.

        Returns
        -------
        DataFrame
            The columns of `table`, the best strategy first.

        Examples
        --------
        >>> import numpy as np
        >>> from promissing.compare import compare
        >>> X = np.random.default_rng(0).normal(size=(60, 2))
        >>> found = compare(X, X[:, 0], task="regression", strategies=["hgb"], folds=2)
        >>> found.to_frame().index.tolist()
        ['hgb']
        """
        return self.table.set_index("strategy")

    def to_dict(self) -> dict[str, Any]:
        """Return everything as values that JSON can hold. NaN becomes None.

        Returns
        -------
        dict
            The metric, everything in `about`, the level of significance, the recommendation, the
            rows of `table` and `scores`, the skipped strategies and the notes.

        Examples
        --------
        >>> import numpy as np
        >>> from promissing.compare import compare
        >>> X = np.random.default_rng(0).normal(size=(60, 2))
        >>> found = compare(X, X[:, 0], task="regression", strategies=["hgb"], folds=2)
        >>> found.to_dict()["rows"]
        60
        """
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


def _accept_old_extra(function: Function) -> Function:
    """Accept `extra` as a share, and `mechanism`, with a FutureWarning until release 0.3."""

    @wraps(function)
    def with_old_extra(*args: Any, **arguments: Any) -> Any:
        share, old = arguments.get("extra"), "mechanism" in arguments
        mechanism = arguments.pop("mechanism", None)
        if old or isinstance(share, Real):
            pair = (mechanism or "mcar", share if isinstance(share, Real) else 0.0)
            warn(
                "A share for `extra`, and `mechanism`, are now one argument: "
                f"`extra_missing={pair!r}`. The old ones will be removed in release 0.3.",
                FutureWarning,
            )
        if isinstance(share, Real):
            arguments["extra"] = None
            arguments["extra_missing"] = (mechanism or "mcar", share)
        return function(*args, **arguments)

    return cast(Function, with_old_extra)


@renamed_arguments(names="strategies")
@_accept_old_extra
def compare(
    X: Any,
    y: Any,
    *,
    task: str,
    strategies: Iterable[str] | None = None,
    extra: Mapping[str, Any] | None = None,
    modalities: Mapping[str, Any] | None = None,
    folds: int = 5,
    repetitions: int = 1,
    extra_missing: float | tuple[str, float] = 0.0,
    settings: Mapping[str, Any] | None = None,
    random_state: int = 0,
    progress: Progress | None = None,
) -> Comparison:
    """Cross-validate strategies on a table with missing values.

    A strategy that fails is listed with the reason, and the others continue.

    Parameters
    ----------
    X : DataFrame or array of shape (n, p)
        The features, with missing values.
    y : array-like of shape (n,)
        The target, without missing values.
    task : {"classification", "regression"}
        The kind of target.
    strategies : iterable of str, optional
        Names of `promissing.compare.strategies`. By default all except "full", which needs a table
        without missing values. A strategy whose package is not installed is skipped.
    extra : mapping of str to estimator, optional
        More strategies for this call: estimators or pipelines that take X with its missing values,
        by name. They are cloned for every fold and keep their own `random_state`.
    modalities : mapping, optional
        The columns of each modality, for a fusion network.
    folds : int, default=5
        Number of folds, shuffled, and stratified for classification.
    repetitions : int, default=1
        Number of repetitions, each with other folds and other removed values.
    extra_missing : float or tuple of (str, float), default=0.0
        Share of the observed values to remove from training and test rows, completely at random or
        by a mechanism: `("mnar", 0.3)`. The mechanism is a name of `promissing.missingness` and
        applies to all columns. A MAR mechanism spares one random column, which drives the losses.
    settings : mapping, optional
        Parameters of the network, such as `{"max_iter": 50}`.
    random_state : int, default=0
        Seed for the folds, the removed values and the models.
    progress : callable, optional
        Called with the number of finished fits, the number of all fits, and the title of the next
        strategy.

    Returns
    -------
    Comparison
        The scores, the tests against the best strategy, and a recommendation.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.dummy import DummyRegressor
    >>> from promissing.compare import compare
    >>> X = np.random.default_rng(0).normal(size=(200, 3))
    >>> y = X[:, 0] + X[:, 1]
    >>> X[::4, 1] = np.nan
    >>> found = compare(
    ...     X, y, task="regression", strategies=["hgb"], extra={"prior": DummyRegressor()}
    ... )
    >>> found.metric, found.table["strategy"].tolist()
    ('R2', ['hgb', 'prior'])
    """
    extra = _check_extra(extra)
    wanted, skipped = _choose(strategies, extra)
    X = X if hasattr(X, "iloc") else np.asarray(X)
    truth = read_target(X, y, task, folds, repetitions)
    mechanism, share = _check_extra_missing(extra_missing)
    how = (folds, repetitions, share, mechanism, random_state)
    parts = list(rounds(X, truth, task, *how))
    n_fits = len(wanted) * len(parts)
    lines: list[dict[str, Any]] = []
    errors: dict[str, dict[str, float]] = {}
    notes: list[str] = []
    for k, name in enumerate(wanted):
        title = _title(name)
        own: list[_Scored] = []
        try:
            for i, one in enumerate(parts):
                if progress is not None:
                    progress(k * len(parts) + i, n_fits, title)
                if name in extra:
                    model = clone(extra[name])
                else:
                    model = registry.make(
                        name, task, settings=settings, modalities=modalities, random_state=one.seed
                    )
                own.append(_fit_and_score(model, task, one, truth))
                notes += [f"{title}: {text}" for text in own[-1].notes]
        except Exception as error:  # The other strategies do not depend on this one.
            skipped[name] = _reason(error)
            if name in extra:
                warn(f"{name!r} of `extra` was left out: {skipped[name]}")
        else:
            heads = ({"strategy": name, "repetition": r, "fold": f} for r, f, *_ in parts)
            lines += [head | found.scores for head, found in zip(heads, own, strict=True)]
            errors[name] = _calibration(own, parts, truth) if task == "classification" else {}
    if progress is not None:
        progress(n_fits, n_fits, "")
    if not lines:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in skipped.items())
        raise RuntimeError(f"No strategy could be compared. {reasons}")
    scores = pd.DataFrame(lines)
    test_share = float(np.mean([len(one.test) / len(one.train) for one in parts]))
    table = _summarise(scores, test_share, errors)
    about = {
        "task": task,
        "rows": len(truth),
        "columns": int(X.shape[1]),
        "missing": float(np.mean([np.asarray(pd.isna(one.X)).mean() for one in parts[::folds]])),
        "folds": folds,
        "repetitions": repetitions,
        "extra": float(share),
        "mechanism": mechanism if share else None,
        "settings": dict(settings or {}),
        "modalities": None if modalities is None else list(modalities),
        "seed": random_state,
    }
    metric = _METRICS[task]
    advice = _advise(table, scores, metric, test_share)
    return Comparison(table, scores, metric, advice, skipped, tuple(dict.fromkeys(notes)), about)


def _check_extra(extra: Mapping[str, Any] | None) -> dict[str, Any]:
    if extra is not None and not isinstance(extra, Mapping):
        raise TypeError(f"`extra` must map names to estimators. Received: {extra!r}")
    for name, estimator in (extra or {}).items():
        if name in registry.STRATEGIES:
            raise ValueError(
                f"There is already a strategy {name!r}. Choose another name in `extra`."
            )
        registry.validate_estimator(name, estimator)
    return dict(extra or {})


def _check_extra_missing(extra_missing: Any) -> tuple[str, float]:
    """Return the mechanism and the share."""
    pair = extra_missing if isinstance(extra_missing, tuple | list) else ("mcar", extra_missing)
    valid = len(pair) == 2 and isinstance(pair[1], Real) and 0 <= float(pair[1]) <= 1
    expected = 'a share between 0 and 1, or a pair such as ("mnar", 0.3)'
    expect(valid, "extra_missing", expected, extra_missing)
    return pair[0], pair[1]


def _choose(
    names: Iterable[str] | None, extra: Mapping[str, Any]
) -> tuple[list[str], dict[str, str]]:
    """Return the strategies to run, and the reasons why others do not run."""
    installed = registry.available()
    wanted = tuple(registry.STRATEGIES) if names is None else registry.known(names)
    if not wanted and not extra:
        every = ", ".join(registry.STRATEGIES)
        raise ValueError(f"`strategies` is empty. The strategies are: {every}.")
    skipped = {"full": _FULL} if names is None else {}
    for name in wanted:
        if name not in installed:
            strategy = registry.STRATEGIES[name]
            skipped[name] = f"{strategy.package} is not installed: {strategy.install_command}"
    return [name for name in (*wanted, *extra) if name not in skipped], skipped


def _reason(error: Exception) -> str:
    """Return the message of an error in one line."""
    text = " ".join(str(error).split()) or type(error).__name__
    if "contains NaN" in text:
        return f"its estimator cannot take missing values, put an imputer in front of it: {text}"
    return text


def _title(name: str) -> str:
    return registry.STRATEGIES[name].title if name in registry.STRATEGIES else name


# ---------------------------------------------------------------------------------------- folds


def read_target(X: Any, y: Any, task: str, folds: int, repetitions: int) -> Array:
    """Return the target as an array, or raise if it cannot be cross-validated.

    Parameters
    ----------
    X : DataFrame or array of shape (n, p)
        The features.
    y : array-like of shape (n,)
        The target.
    task : {"classification", "regression"}
        The kind of target.
    folds : int
        Number of folds, at least 2.
    repetitions : int
        Number of repetitions, at least 1.

    Returns
    -------
    ndarray of shape (n,)
        The target. Floats for regression.

    Examples
    --------
    >>> from promissing.compare.comparison import read_target
    >>> read_target([[1], [2], [3], [4]], [1, 2, 3, 4], "regression", 2, 1)
    array([1., 2., 3., 4.])
    """
    expect(task in registry.TASKS, "task", f"one of {registry.TASKS}", task)
    expect(folds >= 2, "folds", "at least 2", folds)
    expect(repetitions >= 1, "repetitions", "at least 1", repetitions)
    truth = np.asarray(y)
    if truth.shape != (len(X),):
        raise ValueError(f"`y` must have one value for each of {len(X)} rows: {truth.shape}")
    if pd.isna(truth).any():
        raise ValueError(f"`y` lacks {pd.isna(truth).sum()} values. Leave these rows out.")
    if len(truth) < 2 * folds:
        raise ValueError(f"{len(truth)} rows are too few for {folds} folds: each needs 2 rows.")
    if task == "regression":
        return truth.astype(np.float64)
    counts = pd.Series(truth).value_counts()
    labels = counts.index.tolist()
    if len(labels) < 2:
        raise ValueError(f"`y` has one class only, {labels[0]!r}. There is nothing to learn.")
    # An AUC needs two classes. If the second largest is in every fold, each fold has two.
    if counts.iloc[1] < folds:
        raise ValueError(
            f"The class {labels[1]!r} has {counts.iloc[1]} rows, fewer than the {folds} folds, and "
            "every fold needs one. Use fewer folds."
        )
    return truth


class Round(NamedTuple):
    """One fold of one repetition.

    Parameters
    ----------
    repetition, fold : int
        Their numbers, from 0.
    X : DataFrame or array of shape (n, p)
        The table of the repetition, with its removed values.
    train, test : ndarray of int
        The rows for training and for the test.
    seed : int
        Seed of the model.

    Examples
    --------
    >>> from promissing.compare.comparison import Round
    >>> Round(0, 1, None, [0, 1], [2], seed=3).test
    [2]
    """

    repetition: int
    fold: int
    X: Any
    train: Array
    test: Array
    seed: int


def rounds(
    X: Any,
    y: Array,
    task: str,
    folds: int,
    repetitions: int = 1,
    extra: float = 0.0,
    mechanism: str = "mcar",
    random_state: int = 0,
) -> Iterator[Round]:
    """Return every fold of every repetition.

    Parameters
    ----------
    X : DataFrame or array of shape (n, p)
        The features.
    y : ndarray of shape (n,)
        The target from `read_target`.
    task : {"classification", "regression"}
        Classification is stratified.
    folds : int
        Number of folds.
    repetitions : int, default=1
        Number of repetitions.
    extra : float, default=0.0
        Share of the observed values to remove from training and test rows.
    mechanism : str, default="mcar"
        The mechanism that removes them.
    random_state : int, default=0
        Seed for folds, removed values and the seeds of the models.

    Yields
    ------
    Round
        One fold.

    Examples
    --------
    >>> import numpy as np
    >>> from promissing.compare.comparison import rounds
    >>> X = np.zeros((4, 1))
    >>> [len(one.test) for one in rounds(X, X[:, 0], "regression", 2)]
    [2, 2]
    """
    rng = np.random.default_rng(random_state)
    kind = StratifiedKFold if task == "classification" else KFold
    for repetition in range(repetitions):
        seeds = rng.integers(2**31 - 1, size=folds + 2).tolist()
        less = X
        if extra:
            less = Mechanism(mechanism)(X, ratio=extra, n_columns="all", random_state=seeds[-1])
        splitter = kind(folds, shuffle=True, random_state=seeds[-2])
        with warnings.catch_warnings():
            # A class may have fewer rows than there are folds. It is scored where it occurs.
            warnings.simplefilter("ignore", UserWarning)
            parts = list(splitter.split(np.zeros(len(y)), y))
        for fold, (train, test) in enumerate(parts):
            yield Round(repetition, fold, less, train, test, seeds[fold])


class _Scored(NamedTuple):
    """The scores of one fit, its probabilities for both kinds of test rows, and its warnings."""

    scores: dict[str, float]
    probabilities: dict[str, Array]
    notes: list[str]


def _fit_and_score(model: Any, task: str, one: Round, y: Array) -> _Scored:
    """Fit a model, and score it on the test rows as they are and with half of the features."""
    train, test = (
        one.X.iloc[rows] if hasattr(one.X, "iloc") else one.X[rows]
        for rows in (one.train, one.test)
    )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        start = time.perf_counter()
        model.fit(train, y[one.train])
        output = model.predict_proba(test) if task == "classification" else model.predict(test)
        seconds = time.perf_counter() - start
    notes = [" ".join(str(w.message).split()) for w in caught]
    scores, proba = _judge(model, task, one, y, output)
    found = {"": proba}
    n, p = test.shape
    lost = np.random.default_rng(one.seed).random((n, p)).argsort(axis=1) < max(1, p // 2)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            less = remove(test, lost)
            output = model.predict_proba(less) if task == "classification" else model.predict(less)
        again, found["_missing"] = _judge(model, task, one, y, output)
    except Exception as error:  # It was fitted to rows without missing values.
        again = dict.fromkeys(scores, math.nan)
        notes.append(f"not measured with inputs missing: {_reason(error)}")
    scores |= {f"{name}_missing": value for name, value in again.items()}
    return _Scored(scores | {"seconds": seconds}, found, notes)


def _judge(
    model: Any, task: str, one: Round, y: Array, output: Array
) -> tuple[dict[str, float], Array]:
    """Return the scores of outputs for the test rows, and probabilities (n, K) of all classes."""
    if task == "regression":
        return {"score": float(r2_score(y[one.test], output))}, output
    classes = np.unique(y)
    proba = np.zeros((len(output), len(classes)))
    # A class without training rows has no probability.
    proba[:, np.searchsorted(classes, model.classes_)] = output
    scores = {"score": _auc(y, one.test, output, model.classes_)}
    return scores | {"log_loss": float(log_loss(y[one.test], proba, labels=classes))}, proba


def _calibration(own: list[_Scored], parts: list[Round], y: Array) -> dict[str, float]:
    """Return the calibration error over all folds, as it is and with inputs missing."""
    classes, truth = np.unique(y), np.concatenate([y[one.test] for one in parts])
    found = {}
    for suffix in ("", "_missing"):
        if all(suffix in one.probabilities for one in own):
            proba = np.concatenate([one.probabilities[suffix] for one in own])
            error = metrics.calibration_error(truth, proba, classes=classes)
            found[f"calibration_error{suffix}"] = float(error)
    return found


def _auc(y: Array, rows: Array, proba: Array, classes: Array) -> float:
    """Return the AUC of the second of two classes, or the mean of each class against the rest."""
    by_class = {label: proba[:, k] for k, label in enumerate(classes.tolist())}
    truth = y[rows]
    scored = np.unique(truth).tolist()
    if len(np.unique(y)) == 2:
        scored = scored[1:]
    # A class without training rows has no probability, which counts as chance.
    areas = [roc_auc_score(truth == c, by_class.get(c, np.zeros(len(rows)))) for c in scored]
    return float(np.mean(areas))


# ---------------------------------------------------------------------------------------- tests


def corrected_t_test(differences: ArrayLike, test_share: float) -> float:
    """Compute the p-value of the corrected resampled t-test of Nadeau and Bengio (2003).

    The training sets of different folds overlap, so the variance of the scores is far too small.
    The test uses (1 / J + n_test / n_train) s^2 as the variance of the mean of J differences
    instead of s^2 / J, with J - 1 degrees of freedom. It is two-sided.

    Parameters
    ----------
    differences : array-like of shape (J,)
        Differences of the scores of two models on the same folds. At least two.
    test_share : float
        n_test / n_train, which is 1 / (k - 1) in k-fold cross-validation.

    Returns
    -------
    float
        The p-value.

    Examples
    --------
    >>> from promissing.compare.comparison import corrected_t_test
    >>> round(corrected_t_test([0.01, 0.02, 0.03, 0.02, 0.02], 0.25), 4)
    0.0135
    """
    d = np.round(np.asarray(differences, dtype=np.float64), _DIGITS)
    if d.ndim != 1 or len(d) < 2:
        raise ValueError(f"`differences` must be two or more. Received: shape {d.shape}")
    mean, variance = d.mean(), d.var(ddof=1)
    if mean == 0:
        return 1.0
    if variance == 0:
        return 0.0
    t = mean / np.sqrt((1 / len(d) + test_share) * variance)
    return float(2 * stats.t.sf(abs(t), len(d) - 1))


def holm(p: ArrayLike) -> NDArray[np.float64]:
    """Correct p-values for their number by Holm's step-down method.

    Parameters
    ----------
    p : array-like of shape (m,)
        The p-values.

    Returns
    -------
    ndarray of shape (m,)
        The corrected p-values, in the same order.

    Examples
    --------
    >>> from promissing.compare.comparison import holm
    >>> holm([0.01, 0.04, 0.03])
    array([0.03, 0.06, 0.06])
    """
    p = np.asarray(p, dtype=np.float64)
    order = np.argsort(p, kind="stable")
    stepped = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    corrected = np.empty_like(p)
    corrected[order] = np.minimum(stepped, 1.0)
    return corrected


# -------------------------------------------------------------------------------------- summary


def _summarise(
    scores: pd.DataFrame, test_share: float, errors: Mapping[str, Mapping[str, float]]
) -> pd.DataFrame:
    """Return one row per strategy, the best first."""
    by_name = scores.groupby("strategy", sort=False)
    table = by_name["score"].agg(mean="mean", spread="std")
    table["seconds"] = by_name["seconds"].sum()
    table = table.sort_values("mean", ascending=False, kind="stable")
    table["difference"] = table["mean"] - table["mean"].iloc[0]
    table["p"] = _p_values(scores, "score", table.index.tolist(), test_share)
    if "log_loss" in scores:
        table["log_loss"] = by_name["log_loss"].mean()
        table["calibration_error"] = [errors[name]["calibration_error"] for name in table.index]
    table["mean_missing"] = by_name["score_missing"].mean()
    if "log_loss" in scores:
        table["log_loss_missing"] = by_name["log_loss_missing"].mean()
        late = [errors[name].get("calibration_error_missing", math.nan) for name in table.index]
        table["calibration_error_missing"] = late
    table.insert(0, "title", [_title(name) for name in table.index])
    return table.reset_index(names="strategy")


def _p_values(
    scores: pd.DataFrame, column: str, names: list[str], test_share: float
) -> list[float]:
    """Return the corrected p-values against the first strategy, which has none."""
    wide = {name: group[column].to_numpy() for name, group in scores.groupby("strategy")}
    best, *others = names
    p = [corrected_t_test(wide[name] - wide[best], test_share) for name in others]
    return [math.nan, *holm(p)]


def _records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the rows as dicts, with None for NaN."""
    return frame.astype(object).where(frame.notna(), None).to_dict("records")  # type: ignore[no-any-return]


def _advise(table: pd.DataFrame, scores: pd.DataFrame, metric: str, test_share: float) -> str:
    """Return the advice: the best strategy, the power, and inputs that go missing in use."""
    parts = [_recommend(table, metric)]
    if len(table) > 1:
        parts.append(_power(table, scores, test_share))
    return " ".join([*parts, _with_inputs_missing(table, scores, metric, test_share)]).strip()


def _recommend(table: pd.DataFrame, metric: str) -> str:
    """Return one sentence: the best strategy, and which differences are significant."""
    best, others = table.iloc[0], table.iloc[1:]
    chance = {"AUC": 0.5, "R2": 0.0}[metric]
    lead = f"{best['title']} has the highest mean {metric}, {best['mean']:.3f}"
    if best["mean"] <= chance:
        return f"{lead}, which is no better than chance ({chance:g}): do not use any of them."
    if others.empty:
        return f"{lead}, with nothing to compare it with."
    worse = others["p"] < LEVEL
    if worse.all():
        return f"{lead}, significantly more than {_list(others['title'])}."
    if worse.any():
        lead += f", significantly more than {_list(others.loc[worse, 'title'])}"
        return f"{lead}, but not significantly more than {_list(others.loc[~worse, 'title'])}."
    return f"{lead}, but there is no clear winner: no difference from the others is significant."


def _power(table: pd.DataFrame, scores: pd.DataFrame, test_share: float) -> str:
    """Return one sentence: how large a difference would probably be found."""
    wide = {name: group["score"].to_numpy() for name, group in scores.groupby("strategy")}
    best, *others = table["strategy"]
    n = len(wide[best])
    variance = float(np.median([(wide[name] - wide[best]).var(ddof=1) for name in others]))
    # The first step of Holm's method is the hardest.
    quantiles = stats.t.ppf([1 - LEVEL / len(others) / 2, POWER], n - 1)
    least = float(quantiles.sum() * np.sqrt((1 / n + test_share) * variance))
    if not least < 0.5:  # Also if it is NaN.
        return "With so few folds, hardly any difference would be found: use more repetitions."
    return (
        f"A difference of {max(least, 0.001):.3f} would be found with a probability of "
        f"{POWER:.0%}; more repetitions find smaller ones."
    )


def _with_inputs_missing(
    table: pd.DataFrame, scores: pd.DataFrame, metric: str, test_share: float
) -> str:
    """Return one sentence: which strategy is best if inputs go missing in use."""
    by_loss = "log_loss_missing" in table
    column, name = ("log_loss_missing", "log loss") if by_loss else ("mean_missing", metric)
    known = table[table[column].notna()].sort_values(column, ascending=by_loss, kind="stable")
    if len(known) < 2:
        return ""
    own = "log_loss_missing" if by_loss else "score_missing"
    p = _p_values(scores, own, known["strategy"].tolist(), test_share)
    best, worse = known.iloc[0], known[np.asarray(p) < LEVEL]
    text = f"If half of the inputs are missing in use, {best['title']} has the "
    text += f"{'lowest' if by_loss else 'highest'} mean {name}, {best[column]:.3f}"
    if worse.empty:
        text += ", but no difference from the others is significant"
    else:
        compared = "less" if by_loss else "more"
        text += f", significantly {compared} than {_list(worse['title'])}"
    if not by_loss:
        return text + "."
    errors = known[["title", "calibration_error_missing"]].itertuples(index=False)
    first, *others = [f"{title} {error:.3f}" for title, error in errors]
    shown = others[:_MOST_NAMED]
    return f"{text}. Calibration errors there: {', '.join([first, *shown])}."


def _list(titles: Iterable[str]) -> str:
    *first, last = titles
    return f"{', '.join(first)} and {last}" if first else last
