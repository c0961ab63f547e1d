"""Every strategy for missing values by name, and the registry for strategies of your own.

`make("knn", "classification")` returns a pipeline that takes a table with missing values, imputes
them from the nearest neighbours and trains the same network that
`make("promissing", "classification")` trains without imputation. `prepare` does the first half for
numeric matrices, for studies that train many networks at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, SimpleImputer
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import check_random_state, get_tags

from promissing._validation import did_you_mean, expect, renamed_arguments, warn
from promissing.compare.imputers import GAINImputer, NeighborsImputer, share_missing
from promissing.compare.wrappers import (
    CategoryColumns,
    CategoryFrame,
    CompleteCases,
    CompleteFeatures,
    ImputedFusion,
    LabelCodes,
)
from promissing.encoding.table_encoder import TableEncoder
from promissing.estimators.parameters import RENAMED

__all__ = [
    "FAMILIES",
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
    "register",
    "unregister",
    "validate_estimator",
]

Array = NDArray[Any]
TASKS = ("classification", "regression")
FAMILIES = ("reference", "deletion", "imputation", "native", "trees", "other")
_SUFFIX = {"classification": "Classifier", "regression": "Regressor"}


@dataclass(frozen=True)
class Strategy:
    """A strategy for missing values.

    Parameters
    ----------
    name : str
        The name that `make` and `compare` accept.
    title : str
        The name in figures and tables.
    family : str
        One of `FAMILIES`. The families "native" and "trees" impute nothing.
    description : str
        One sentence about what the strategy does.
    compensation : str, default="none"
        The compensation of the network's first layer. "none" is an ordinary layer if no value is
        missing.
    package : str, default="sklearn"
        The package that must be installed.
    imputer : transformer, optional
        The imputer that precedes the network. It is cloned.
    factory : callable, optional
        Returns a complete estimator. It is called with the task and `random_state`. Without it, the
        estimator is a network of this package.

    Examples
    --------
    >>> from promissing.compare import strategies
    >>> strategies.STRATEGIES["knn"].title
    'KNN'
    """

    name: str
    title: str
    family: str
    description: str
    compensation: str = "none"
    package: str = "sklearn"
    imputer: Any = None
    factory: Callable[..., Any] | None = None

    @property
    def install_command(self) -> str:
        """Return the command that installs `package`.

        Returns
        -------
        str
            A command for the shell.

        Examples
        --------
        >>> from promissing.compare import strategies
        >>> strategies.STRATEGIES["xgboost"].install_command
        "pip install 'promissing[trees]'"
        """
        own = any(one.package == self.package for one in _BUILT_IN)
        return "pip install 'promissing[trees]'" if own else f"pip install {self.package}"

    @property
    def what(self) -> str:
        """Return `description` under its old name.

        Returns
        -------
        str
            The description.

        Examples
        --------
        >>> from promissing.compare import strategies
        >>> strategies.STRATEGIES["zero"].what  # doctest: +SKIP
        'Impute 0.'
        """
        warn(
            "`Strategy.what` is now `Strategy.description`. The old name will be removed in "
            "release 0.3.",
            FutureWarning,
        )
        return self.description


def _booster(
    module: str,
    prefix: str,
    task: str,
    random_state: Any,
    seed: str = "random_state",
    **options: Any,
) -> Any:
    """Return a gradient boosting estimator of some package, with an integer seed."""
    if random_state is not None:
        random_state = check_random_state(random_state).randint(2**31 - 1)
    return getattr(import_module(module), prefix + _SUFFIX[task])(**{seed: random_state}, **options)


def _hgb(task: str, random_state: Any) -> Any:
    model = _booster("sklearn.ensemble", "HistGradientBoosting", task, random_state)
    return make_pipeline(CategoryFrame(), model)


def _lightgbm(task: str, random_state: Any) -> Any:
    model = _booster("lightgbm", "LGBM", task, random_state, verbosity=-1)
    return make_pipeline(CategoryFrame(), model)


def _xgboost(task: str, random_state: Any) -> Any:
    model = _booster("xgboost", "XGB", task, random_state, enable_categorical=True)
    return make_pipeline(CategoryFrame(), LabelCodes(model) if task == TASKS[0] else model)


def _catboost(task: str, random_state: Any) -> Any:
    quiet = {"verbose": False, "allow_writing_files": False}
    model = _booster("catboost", "CatBoost", task, random_state, "random_seed", **quiet)
    return make_pipeline(CategoryFrame(as_text=True), CategoryColumns(model))


_MEAN = SimpleImputer(keep_empty_features=True)
_SHARE = FunctionTransformer(share_missing)

_BUILT_IN = (
    Strategy("full", "full data", "reference",
             "Train the network on data without missing values."),
    Strategy("complete-case", "complete cases", "deletion",
             "Train on the rows without missing values. In prediction, impute the mean."),
    Strategy("drop-features", "drop features", "deletion",
             "Train on the columns without missing values. If there is none, predict the prior."),
    Strategy("zero", "zero", "imputation", "Impute 0.",
             imputer=SimpleImputer(strategy="constant", fill_value=0.0, keep_empty_features=True)),
    Strategy("mean", "mean", "imputation", "Impute the column's mean.", imputer=_MEAN),
    Strategy("mean+share", "mean + share", "imputation",
             "Impute the mean, and add the share of missing values of the row as a column.",
             imputer=FeatureUnion([("mean", _MEAN), ("share", _SHARE)])),
    Strategy("mean+indicator", "mean + indicator", "imputation",
             "Impute the mean, and add a 0/1 column for every column with missing values.",
             imputer=SimpleImputer(add_indicator=True, keep_empty_features=True)),
    Strategy("knn", "KNN", "imputation", "Impute the mean of the five nearest rows.",
             imputer=NeighborsImputer()),
    Strategy("iterative", "iterative", "imputation",
             "Impute by regression of each column on the others, in ten rounds (MICE).",
             imputer=IterativeImputer(keep_empty_features=True)),
    Strategy("gain", "GAIN", "imputation", "Impute with a generative adversarial network.",
             imputer=GAINImputer()),
    Strategy("promissing", "PROMISSING", "native",
             "Prune missing inputs from the first layer, scale the bias by the observed share."),
    Strategy("mpromissing", "mPROMISSING", "native",
             "PROMISSING with a learned weight per neuron, times the share of missing values.",
             compensation="shared"),
    Strategy("fpromissing", "fPROMISSING", "native",
             "PROMISSING with a learned weight per neuron and missing feature.",
             compensation="feature"),
    Strategy("hgb", "HGB", "trees", "scikit-learn's histogram gradient boosting.", factory=_hgb),
    Strategy("lightgbm", "LightGBM", "trees", "LightGBM's gradient boosting.",
             package="lightgbm", factory=_lightgbm),
    Strategy("xgboost", "XGBoost", "trees", "XGBoost's gradient boosting.",
             package="xgboost", factory=_xgboost),
    Strategy("catboost", "CatBoost", "trees", "CatBoost's gradient boosting.",
             package="catboost", factory=_catboost),
)  # fmt: skip

# The strategies of this package, and those that were registered.
STRATEGIES: dict[str, Strategy] = {one.name: one for one in _BUILT_IN}
# The names of the strategies of this package.
NAMES = tuple(STRATEGIES)


def register(
    name: str,
    factory: Callable[..., Any],
    *,
    title: str | None = None,
    family: str = "other",
    description: str = "",
    package: str = "sklearn",
) -> Strategy:
    """Add a strategy under a name, for the rest of this process.

    The name then works in `make`, in `promissing.compare.compare`, in reports and on the command
    line of the same process.

    Parameters
    ----------
    name : str
        A new name.
    factory : callable
        Called as `factory(task, random_state)`. It returns an estimator or pipeline that takes
        tables with missing values. `task` is "classification" or "regression".
    title : str, optional
        The name in figures and tables. The default is `name`.
    family : str, default="other"
        One of `FAMILIES`. Use "native" or "trees" if nothing is imputed: among strategies that do
        not differ significantly, `compare` prefers these.
    description : str, default=""
        One sentence about what the strategy does.
    package : str, default="sklearn"
        The package that must be installed. Without it the strategy is left out of comparisons.

    Returns
    -------
    Strategy
        The new strategy.

    Examples
    --------
    >>> from sklearn.ensemble import HistGradientBoostingRegressor
    >>> from promissing.compare import strategies
    >>> def stumps(task, random_state):
    ...     return HistGradientBoostingRegressor(max_depth=1, random_state=random_state)
    >>> strategies.register("stumps", stumps, family="trees").title
    'stumps'
    >>> strategies.make("stumps", "regression", random_state=0)
    HistGradientBoostingRegressor(max_depth=1, random_state=0)
    >>> strategies.unregister("stumps")
    """
    expect(isinstance(name, str) and bool(name.strip()), "name", "a non-empty text", name)
    if name in STRATEGIES:
        raise ValueError(
            f"There is already a strategy {name!r}. Choose another name, or call "
            f"`unregister({name!r})` first if you registered it."
        )
    if not callable(factory):
        raise TypeError(
            "`factory` must be a function of the task and `random_state` that returns an "
            f"estimator. Received: {factory!r}"
        )
    expect(family in FAMILIES, "family", f"one of {FAMILIES}", family)
    strategy = Strategy(name, title or name, family, description, "none", package, None, factory)
    STRATEGIES[name] = strategy
    return strategy


def unregister(name: str) -> None:
    """Remove a strategy that was added with `register`.

    Parameters
    ----------
    name : str
        The name of the strategy.

    Examples
    --------
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> from promissing.compare import strategies
    >>> strategy = strategies.register("tree", lambda task, random_state: DecisionTreeRegressor())
    >>> strategies.unregister("tree")
    >>> "tree" in strategies.STRATEGIES
    False
    """
    known(name)
    if name in NAMES:
        raise ValueError(f"The strategy {name!r} is part of the package and cannot be removed.")
    del STRATEGIES[name]


def available() -> tuple[str, ...]:
    """Return the names of the strategies whose packages are installed.

    Returns
    -------
    tuple of str
        The names, registered ones last.

    Examples
    --------
    >>> from promissing.compare import strategies
    >>> "hgb" in strategies.available()
    True
    """
    return tuple(one.name for one in STRATEGIES.values() if find_spec(one.package) is not None)


def known(names: str | Iterable[str]) -> tuple[str, ...]:
    """Check that names are names of strategies, installed or not.

    Parameters
    ----------
    names : str or iterable of str
        One name or several.

    Returns
    -------
    tuple of str
        Each name once, in the given order.

    Examples
    --------
    >>> from promissing.compare import strategies
    >>> strategies.known(["mean", "catboost", "mean"])
    ('mean', 'catboost')
    """
    wanted = tuple(dict.fromkeys([names] if isinstance(names, str) else names))
    for name in wanted:
        if name not in STRATEGIES:
            raise ValueError(
                f"There is no strategy {name!r}.{did_you_mean(name, STRATEGIES, show=0)} The "
                f"strategies are: {', '.join(STRATEGIES)}."
            )
    return wanted


def check(names: str | Iterable[str]) -> tuple[str, ...]:
    """Check that names are names of strategies whose packages are installed.

    Parameters
    ----------
    names : str or iterable of str
        One name or several.

    Returns
    -------
    tuple of str
        Each name once, in the given order.

    Examples
    --------
    >>> from promissing.compare import strategies
    >>> strategies.check("mean")
    ('mean',)
    """
    wanted = known(names)
    for name in wanted:
        package = STRATEGIES[name].package
        if find_spec(package) is None:
            command = STRATEGIES[name].install_command
            raise ImportError(f"The strategy {name!r} needs {package}: {command}")
    return wanted


def imputer(
    name: str,
    *,
    n_neighbors: int = 5,
    max_rows: int | None = None,
    random_state: Any = None,
    verbose: bool = False,
) -> Any:
    """Return the imputer of a strategy, for matrices of numbers.

    A column that was never observed is kept, and filled with 0.

    Parameters
    ----------
    name : str
        A strategy of the family "imputation".
    n_neighbors : int, default=5
        Number of neighbours of "knn".
    max_rows : int, optional
        Largest number of training rows of "knn" if several columns have missing values.
    random_state : int, RandomState or None, default=None
        Seed of "gain", "iterative" and "knn".
    verbose : bool, default=False
        Whether "gain" and "iterative" show their progress.

    Returns
    -------
    transformer
        An imputer that is not fitted.

    Examples
    --------
    >>> import numpy as np
    >>> from promissing.compare import strategies
    >>> X = np.array([[1.0, 2.0], [3.0, np.nan]])
    >>> strategies.imputer("mean+indicator").fit_transform(X)
    array([[1., 2., 0.],
           [3., 2., 1.]])
    """
    prototype = STRATEGIES[check(name)[0]].imputer
    if prototype is None:
        raise ValueError(f"The strategy {name!r} has no imputer.")
    options = {
        "n_neighbors": n_neighbors,
        "max_rows": max_rows,
        "random_state": random_state,
        "verbose": verbose,
    }
    own = prototype.get_params(deep=False)
    return clone(prototype).set_params(**{key: options[key] for key in options if key in own})


@renamed_arguments(network="settings")
def make(
    name: str,
    task: str,
    *,
    settings: Mapping[str, Any] | None = None,
    modalities: Mapping[str, Any] | None = None,
    n_neighbors: int = 5,
    random_state: Any = None,
    verbose: bool = False,
) -> Any:
    """Return the estimator of a strategy, for data frames and arrays.

    Parameters
    ----------
    name : str
        The name of a strategy.
    task : {"classification", "regression"}
        The kind of target.
    settings : mapping, optional
        Parameters of the network, which all strategies share except trees and registered ones:
        `NanMLPClassifier` or `NanMLPRegressor`, or with `modalities` `NanFusionClassifier` or
        `NanFusionRegressor`.
    modalities : mapping, optional
        The columns of each modality, for a fusion network. The deletion strategies do not support
        them.
    n_neighbors : int, default=5
        Number of neighbours of "knn".
    random_state : int, RandomState or None, default=None
        Seed of the imputer and of the model.
    verbose : bool, default=False
        Whether networks and "gain" show a progress bar.

    Returns
    -------
    estimator
        An estimator or pipeline that is not fitted.

    Examples
    --------
    >>> from promissing.compare import strategies
    >>> strategies.make("hgb", "regression").steps[-1][1]
    HistGradientBoostingRegressor()
    """
    (name,) = check(name)
    expect(task in TASKS, "task", f"one of {TASKS}", task)
    strategy = STRATEGIES[name]
    if strategy.factory is not None:
        return validate_estimator(name, strategy.factory(task, random_state))
    parameters = {"random_state": random_state, "verbose": verbose} | dict(settings or {})
    for old in RENAMED.keys() & parameters.keys():
        warn(f"`{old}` was renamed to `{RENAMED[old]}`. Use the new name.", FutureWarning)
        parameters[RENAMED[old]] = parameters.pop(old)
    parameters["compensation"] = strategy.compensation
    fill = FunctionTransformer(_refuse_missing)
    if strategy.imputer is not None:
        fill = imputer(name, n_neighbors=n_neighbors, random_state=random_state, verbose=verbose)
    if modalities is not None:
        return _fusion(strategy, task, fill, parameters | {"modalities": modalities})
    from promissing.estimators import mlp

    # The default depends on the number of columns, which some imputers change.
    parameters.setdefault("n_fine_bins", 0)
    network = getattr(mlp, "NanMLP" + _SUFFIX[task])
    if strategy.family == "native":
        return network(**parameters)
    encoding = ("kinds", "max_categories", "unknown_categories")
    encoder = TableEncoder(
        scale=False, **{key: parameters.pop(key) for key in encoding if key in parameters}
    )
    model = network(**parameters)
    if strategy.family == "deletion":
        delete = CompleteCases if name == "complete-case" else CompleteFeatures
        return make_pipeline(encoder, delete(model))
    if name == "gain":
        encoder.set_output(transform="pandas")  # Its warnings name columns.
    return make_pipeline(encoder, fill, model)


def _fusion(strategy: Strategy, task: str, fill: Any, settings: dict[str, Any]) -> Any:
    """Return a fusion network, behind an imputer if the strategy is not native."""
    from promissing.estimators import fusion

    if strategy.family == "deletion":
        raise ValueError(
            f"The strategy {strategy.name!r} is not offered with `modalities`: delete rows or "
            'columns first, and use "full".'
        )
    model = getattr(fusion, "NanFusion" + _SUFFIX[task])(**settings)
    return model if strategy.family == "native" else ImputedFusion(model, fill)


def _refuse_missing(X: Array) -> Array:
    n_missing = np.count_nonzero(np.isnan(X))
    if n_missing:
        raise ValueError(
            'The strategy "full" is the reference on data without missing values, and X has '
            f"{n_missing} missing values. Choose another strategy."
        )
    return X


def validate_estimator(name: str, estimator: Any) -> Any:
    """Check that an object is an estimator that takes missing values, as far as its tags tell.

    Parameters
    ----------
    name : str
        The name of the strategy, for error messages.
    estimator : estimator or pipeline
        The estimator of the strategy.

    Returns
    -------
    estimator or pipeline
        The same estimator.

    Examples
    --------
    >>> from sklearn.ensemble import HistGradientBoostingRegressor
    >>> from promissing.compare import strategies
    >>> strategies.validate_estimator("trees", HistGradientBoostingRegressor())
    HistGradientBoostingRegressor()
    """
    methods = ("fit", "predict", "get_params")
    if isinstance(estimator, type) or not all(hasattr(estimator, one) for one in methods):
        raise TypeError(
            f"The strategy {name!r} must be an estimator or pipeline with `fit` and `predict`. "
            f"Received: {estimator!r}"
        )
    first = estimator
    while isinstance(first, Pipeline):
        used = [step for _, step in first.steps if step not in (None, "passthrough")]
        expect(bool(used), "pipeline", "a pipeline with an estimator", first)
        first = used[0]
    if _refuses_missing_values(first):
        raise ValueError(
            f"The strategy {name!r} cannot take missing values: {type(first).__name__} does not "
            "accept NaN. Put an imputer in front of it, for example with "
            "`sklearn.pipeline.make_pipeline(SimpleImputer(), ...)`."
        )
    return estimator


def _refuses_missing_values(estimator: Any) -> bool:
    """Return whether the tags of scikit-learn's own estimators exclude NaN.

    Other packages often leave the tags at their defaults, and so do scikit-learn's estimators that
    contain others. These are tried instead.
    """
    own = type(estimator).__module__.startswith("sklearn.")
    if not own or any("__" in name for name in estimator.get_params()):
        return False
    tags = get_tags(estimator)
    return not (tags.input_tags.allow_nan or tags.no_validation)


class Prepared(NamedTuple):
    """Matrices as a strategy passes them to the network.

    Parameters
    ----------
    train : ndarray of shape (n, q)
        The training rows.
    others : list of ndarray of shape (m, q)
        The other tables.
    rows : ndarray of int
        The rows of `train` to learn from.

    Examples
    --------
    >>> import numpy as np
    >>> from promissing.compare import strategies
    >>> strategies.prepare("complete-case", np.array([[1.0], [np.nan]]), []).rows
    array([0])
    """

    train: Array
    others: list[Array]
    rows: Array


def prepare(
    name: str,
    X: Array,
    others: Sequence[Array],
    *,
    n_neighbors: int = 5,
    max_rows: int | None = None,
    random_state: Any = None,
) -> Prepared:
    """Delete or impute the missing values of matrices, for one network.

    Nothing is learned from `others`. "full" and the strategies without an imputer change nothing.
    "drop-features" may leave no column (q = 0), "complete-case" no row.

    Parameters
    ----------
    name : str
        The name of a strategy.
    X : ndarray of shape (n, p)
        The training rows.
    others : sequence of ndarray of shape (m, p)
        Other tables with the same columns, such as test rows.
    n_neighbors : int, default=5
        Number of neighbours of "knn".
    max_rows : int, optional
        Largest number of training rows of "knn" if several columns have missing values.
    random_state : int, RandomState or None, default=None
        Seed of the imputer.

    Returns
    -------
    Prepared
        The matrices, and the rows to learn from.

    Examples
    --------
    >>> import numpy as np
    >>> from promissing.compare import strategies
    >>> X = np.array([[1.0, 2.0], [3.0, np.nan]])
    >>> strategies.prepare("drop-features", X, [X[:1]]).train
    array([[1.],
           [3.]])
    """
    strategy = STRATEGIES[check(name)[0]]
    rows, fill = np.arange(len(X)), None
    if name == "drop-features":
        kept = ~np.isnan(X).any(axis=0)
        X, others = X[:, kept], [one[:, kept] for one in others]
    if name == "complete-case":
        rows = np.flatnonzero(~np.isnan(X).any(axis=1))
    if strategy.family == "deletion":
        fill = imputer("mean")
    elif strategy.imputer is not None:
        fill = imputer(name, n_neighbors=n_neighbors, max_rows=max_rows, random_state=random_state)
    if fill is None or not X.shape[1]:
        return Prepared(X, list(others), rows)
    train = fill.fit_transform(X)
    return Prepared(train, [fill.transform(one) for one in others], rows)
