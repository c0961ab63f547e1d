"""Every way to cope with gaps, by name: the vocabulary of experiments and comparisons.

`make("knn", "classification")` is a pipeline that takes a frame with gaps, fills them from the
nearest neighbours and trains the same network that `make("promissing", "classification")` trains
on the gaps themselves. `prepare` does the first half on matrices, for studies that train many
networks at once.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, SimpleImputer
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import check_random_state

from promissing.compare import rivals as _rivals
from promissing.compare import wrappers as _wrappers
from promissing.encoding.table_encoder import TableEncoder

__all__ = [
    "NAMES",
    "STRATEGIES",
    "TASKS",
    "Prepared",
    "Strategy",
    "available",
    "check",
    "imputer",
    "known",
    "make",
    "prepare",
]

Array = NDArray[Any]
TASKS = ("classification", "regression")
_SUFFIX = {"classification": "Classifier", "regression": "Regressor"}


@dataclass(frozen=True)
class Strategy:
    """One way to cope with gaps.

    Parameters
    ----------
    name : str
    title : str
        What figures and tables call it.
    family : {"reference", "deletion", "imputation", "native", "trees"}
    what : str
        What it does, in a sentence.
    compensation : str
        The compensation of the network's first layer; "none" is a plain one where nothing is
        missing.
    package : str
        What must be installed.
    """

    name: str
    title: str
    family: str
    what: str
    compensation: str = "none"
    package: str = "sklearn"


_ALL = (
    Strategy("full", "full data", "reference", "The network on data without gaps."),
    Strategy("complete-case", "complete cases", "deletion",
             "Learns from the rows without gaps; at prediction gaps get the mean."),
    Strategy("drop-features", "drop features", "deletion",
             "Learns from the columns without gaps; from none, the prior."),
    Strategy("zero", "zero", "imputation", "Fills gaps with 0."),
    Strategy("mean", "mean", "imputation", "Fills gaps with the column's mean."),
    Strategy("mean+share", "mean + share", "imputation",
             "Fills with the mean and adds the share of the row that is missing."),
    Strategy("mean+indicator", "mean + indicator", "imputation",
             "Fills with the mean and adds a 0/1 column for every column with gaps."),
    Strategy("knn", "KNN", "imputation", "Fills with the mean of the five nearest rows."),
    Strategy("iterative", "iterative", "imputation",
             "Fills by regression of each column on the others, ten rounds (MICE)."),
    Strategy("gain", "GAIN", "imputation", "Fills by a generative adversarial network."),
    Strategy("promissing", "PROMISSING", "native",
             "Prunes what is missing from the first layer and scales the bias by what is left."),
    Strategy("mpromissing", "mPROMISSING", "native",
             "As PROMISSING, and each neuron adds a learned weight times the share missing.",
             compensation="shared"),
    Strategy("fpromissing", "fPROMISSING", "native",
             "As PROMISSING, and each neuron adds a learned weight per missing feature.",
             compensation="feature"),
    Strategy("hgb", "HGB", "trees", "scikit-learn's histogram gradient boosting."),
    Strategy("lightgbm", "LightGBM", "trees", "LightGBM's gradient boosting.",
             package="lightgbm"),
    Strategy("xgboost", "XGBoost", "trees", "XGBoost's gradient boosting.", package="xgboost"),
    Strategy("catboost", "CatBoost", "trees", "CatBoost's gradient boosting.",
             package="catboost"),
)  # fmt: skip

STRATEGIES: Mapping[str, Strategy] = {one.name: one for one in _ALL}
NAMES = tuple(STRATEGIES)


def available() -> tuple[str, ...]:
    """The names of the strategies whose packages are installed."""
    return tuple(one.name for one in _ALL if find_spec(one.package) is not None)


def known(names: str | Iterable[str]) -> tuple[str, ...]:
    """Check that names are names of strategies, installed or not.

    Parameters
    ----------
    names : str or iterable of str

    Returns
    -------
    tuple of str
        Each name once, in the given order.

    Examples
    --------
    >>> from promissing import strategies
    >>> strategies.known(["mean", "catboost", "mean"])
    ('mean', 'catboost')
    """
    wanted = tuple(dict.fromkeys([names] if isinstance(names, str) else names))
    for name in wanted:
        if name not in STRATEGIES:
            near = difflib.get_close_matches(str(name), NAMES, n=3, cutoff=0.5)
            hint = f"Did you mean {', '.join(near)}? " if near else ""
            raise ValueError(
                f"There is no strategy {name!r}. {hint}The strategies are: {', '.join(NAMES)}."
            )
    return wanted


def check(names: str | Iterable[str]) -> tuple[str, ...]:
    """The names, if they are names of strategies that can be had here, each at most once."""
    wanted = known(names)
    for name in wanted:
        package = STRATEGIES[name].package
        if find_spec(package) is None:
            raise ImportError(
                f"The strategy {name!r} needs {package}: pip install 'promissing[trees]'"
            )
    return wanted


def imputer(
    name: str,
    *,
    n_neighbors: int = 5,
    max_rows: int | None = None,
    random_state: Any = None,
    verbose: bool = False,
) -> Any:
    """The transformer of a strategy that fills gaps, for matrices of numbers.

    A column that was never observed is kept, and filled with 0.

    Parameters
    ----------
    name : str
        A strategy of the family "imputation".
    n_neighbors : int, default=5
        Of "knn".
    max_rows : int, optional
        The most rows "knn" learns from where several columns have gaps.
    random_state : int, RandomState or None
        Of "gain", "iterative" and "knn".
    verbose : bool, default=False
        Whether "gain" shows its progress.

    Examples
    --------
    >>> import numpy as np
    >>> from promissing import strategies
    >>> X = np.array([[1.0, 2.0], [3.0, np.nan]])
    >>> strategies.imputer("mean+indicator").fit_transform(X)
    array([[1., 2., 0.],
           [3., 2., 1.]])
    """
    check(name)
    if name == "zero":
        return SimpleImputer(strategy="constant", fill_value=0.0, keep_empty_features=True)
    if name in ("mean", "mean+indicator"):
        return SimpleImputer(add_indicator=name != "mean", keep_empty_features=True)
    if name == "mean+share":
        share = FunctionTransformer(_rivals.share_missing)
        return FeatureUnion([("mean", SimpleImputer(keep_empty_features=True)), ("share", share)])
    if name == "knn":
        return _rivals.NeighborsImputer(n_neighbors, max_rows=max_rows, random_state=random_state)
    if name == "iterative":
        return IterativeImputer(keep_empty_features=True, random_state=random_state)
    if name == "gain":
        from promissing.compare.gain import GAINImputer

        return GAINImputer(random_state=random_state, verbose=verbose)
    raise ValueError(f"The strategy {name!r} fills nothing in.")


def make(
    name: str,
    task: str,
    *,
    network: Mapping[str, Any] | None = None,
    modalities: Mapping[str, Any] | None = None,
    n_neighbors: int = 5,
    random_state: Any = None,
    verbose: bool = False,
) -> Any:
    """An estimator that copes with gaps in the named way, for frames and arrays.

    Parameters
    ----------
    name : str
        One of `NAMES`.
    task : {"classification", "regression"}
    network : mapping, optional
        Parameters of `NanMLPClassifier` or `NanMLPRegressor`, the network of all strategies but
        the trees; with `modalities` of `NanFusionClassifier` or `NanFusionRegressor`.
    modalities : mapping, optional
        The modalities of the table: the network is then one of fusion. Not for the deletions.
    n_neighbors : int, default=5
        Of "knn".
    random_state : int, RandomState or None
    verbose : bool, default=False
        Whether to show progress.

    Examples
    --------
    >>> from promissing import strategies
    >>> strategies.make("hgb", "regression").steps[-1][1]
    HistGradientBoostingRegressor()
    """
    (name,) = check(name)
    if task not in TASKS:
        raise ValueError(f"`task` must be one of {TASKS}. Received: {task!r}")
    strategy = STRATEGIES[name]
    if strategy.family == "trees":
        return _trees(name, task, random_state, verbose)
    settings = {"random_state": random_state, "verbose": verbose} | dict(network or {})
    settings["compensation"] = strategy.compensation
    fill = None
    if strategy.family == "imputation":
        fill = imputer(name, n_neighbors=n_neighbors, random_state=random_state, verbose=verbose)
    if modalities is not None:
        return _fusion(strategy, task, fill, settings | {"modalities": modalities})
    from promissing.estimators import mlp

    # By default these depend on the number of columns, and what fills gaps makes other columns.
    settings.setdefault("fine_bins", 0)
    kind = getattr(mlp, "NanMLP" + _SUFFIX[task])
    if strategy.family == "native":
        return kind(**settings)
    encoding = {
        key: settings.pop(key) for key in ("kinds", "max_categories", "unseen") if key in settings
    }
    raw, model = TableEncoder(scale=False, **encoding), kind(**settings)
    if name == "full":
        return make_pipeline(raw, FunctionTransformer(_refuse_gaps), model)
    if name in ("complete-case", "drop-features"):
        part = "CompleteCase" if name == "complete-case" else "CompleteFeatures"
        return make_pipeline(raw, getattr(_wrappers, part + _SUFFIX[task])(model))
    if name == "gain":
        raw.set_output(transform="pandas")  # Its warnings name columns.
    return make_pipeline(raw, fill, model)


def _fusion(strategy: Strategy, task: str, fill: Any, settings: dict[str, Any]) -> Any:
    from promissing.estimators import fusion

    if strategy.family == "deletion":
        raise ValueError(
            f"The strategy {strategy.name!r} is not offered with `modalities`: delete rows or "
            'columns first, and use "full".'
        )
    model = getattr(fusion, "NanFusion" + _SUFFIX[task])(**settings)
    if strategy.family == "native":
        return model
    fill = FunctionTransformer(_refuse_gaps) if fill is None else fill
    return getattr(_wrappers, "FilledFusion" + _SUFFIX[task])(model, fill)


def _refuse_gaps(X: Array) -> Array:
    n_missing = np.count_nonzero(np.isnan(X))
    if n_missing:
        raise ValueError(
            'The strategy "full" is the reference on data without gaps, and X has '
            f"{n_missing} missing values. Choose another strategy."
        )
    return X


def _trees(name: str, task: str, random_state: Any, verbose: bool) -> Any:
    seed = random_state
    if seed is not None:
        seed = check_random_state(random_state).randint(2**31 - 1)
    home, kind, options = {
        "hgb": ("sklearn.ensemble", "HistGradientBoosting", {"random_state": seed}),
        "lightgbm": ("lightgbm", "LGBM", {"random_state": seed, "verbosity": int(verbose) - 1}),
        "xgboost": ("xgboost", "XGB", {"random_state": seed, "enable_categorical": True}),
        "catboost": (
            "catboost",
            "CatBoost",
            {"random_seed": seed, "verbose": verbose, "allow_writing_files": False},
        ),
    }[name]
    model = getattr(import_module(home), kind + _SUFFIX[task])(**options)
    if name == "catboost":
        wrapper = getattr(_wrappers, "TextCategories" + _SUFFIX[task])
        return make_pipeline(_rivals.CategoryFrame(as_text=True), wrapper(model))
    if name == "xgboost" and task == "classification":
        model = _wrappers.CodedLabelsClassifier(model)
    return make_pipeline(_rivals.CategoryFrame(), model)


class Prepared(NamedTuple):
    """Matrices as one strategy hands them to the network."""

    train: Array  # (n, q)
    others: list[Array]  # Each (m, q), as known as the strategy leaves them.
    rows: Array  # The rows of `train` to learn from.


def prepare(
    name: str,
    X: Array,
    others: Sequence[Array],
    *,
    n_neighbors: int = 5,
    max_rows: int | None = None,
    random_state: Any = None,
) -> Prepared:
    """Cope with the gaps of training rows X (n, p) and of other rows, for one network.

    Nothing is learned from `others`. "full" and the native strategies change nothing; trees need
    no network. "drop-features" may leave no column (q = 0), "complete-case" no row.
    """
    family = STRATEGIES[check(name)[0]].family
    everything = np.arange(len(X))
    if name == "complete-case":
        means = imputer("mean").fit(X)
        whole = np.flatnonzero(~np.isnan(X).any(axis=1))
        return Prepared(means.transform(X), [means.transform(one) for one in others], whole)
    if name == "drop-features":
        kept = ~np.isnan(X).any(axis=0)
        if not kept.any():
            return Prepared(X[:, kept], [one[:, kept] for one in others], everything)
        means = imputer("mean").fit(X[:, kept])
        return Prepared(X[:, kept], [means.transform(one[:, kept]) for one in others], everything)
    if family != "imputation":
        return Prepared(X, list(others), everything)
    fill = imputer(name, n_neighbors=n_neighbors, max_rows=max_rows, random_state=random_state)
    train = fill.fit_transform(X)
    return Prepared(train, [fill.transform(one) for one in others], everything)
