"""A batch of the benchmark: remove values, split, impute, standardise, train, score.

All strategies of a repetition share its missing values, its folds and the initial weights. Networks
of one shape, whatever their strategy, ratio, repetition and fold, are replicas of one program.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
import sklearn
from numpy.typing import NDArray
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import KFold, StratifiedKFold

from promissing import datasets, missingness
from promissing.compare import strategies
from promissing.encoding.table_encoder import TableEncoder
from promissing.networks.losses import LogLoss, SquaredError
from studies.networks import Job, Training, auc, run_jobs, smse
from studies.runner import Outcome, Row, Skipped
from studies.simulation import MECHANISMS

__all__ = ["COMPLETE", "FOLDS", "FOREST", "GRID", "MECHANISMS", "NEIGHBOR_ROWS", "TASKS", "World"]
__all__ += ["alike", "hidden", "is_tree", "load", "score", "why_incomplete"]

Array = NDArray[Any]

COMPLETE = "none"  # The mechanism of complete tables.
GRID = "grid-"  # Before the share of the features, as in "grid-0.25".
FOREST = "random-forest"
FOLDS = 2
NEIGHBOR_ROWS = 10_000  # Nearest neighbours are searched among at most this many rows.
BYTES = 2**28  # Size of the tables that are trained on at a time.
TASKS = {"binary": "classification", "regression": "regression"}
METRICS = {"binary": "auc", "regression": "smse"}


class World(NamedTuple):
    """A complete table as numbers. Nominal columns are integer codes."""

    slug: str
    task: str
    X: Array  # (n, p)
    y: Array  # (n,)
    nominal: tuple[int, ...]


class Unit(NamedTuple):
    """One model to train and score."""

    name: str
    ratio: float
    repetition: int
    fold: int


class Ready(NamedTuple):
    """The job of a network, and the mean and scale of its target."""

    job: Job
    mean: float
    scale: float


@lru_cache(maxsize=2)
def load(table: str, max_rows: int | None, seed: int, data: str | None) -> World:
    """A table with at most `max_rows` rows, drawn at random."""
    found = datasets.load(table, data=data)
    frame, y = found.X, found.y.to_numpy()
    if max_rows is not None and len(y) > max_rows:
        rng = np.random.default_rng([seed, 0])
        kept = np.sort(rng.choice(len(y), max_rows, replace=False))
        frame, y = frame.iloc[kept], y[kept]
    # Every category has its own code, however rare it is.
    X = TableEncoder(scale=False, max_categories=max(2, len(y))).fit(frame).read(frame)
    gaps = int(np.count_nonzero(np.isnan(X)))
    if gaps:
        raise Skipped(why_incomplete(table, gaps))
    nominal = tuple(j for j, name in enumerate(found.X) if name in found.nominal)
    return World(found.slug, found.task, X, y.astype(np.float64), nominal)


def why_incomplete(table: str, gaps: int) -> str:
    """Why a table with missing values of its own is left out."""
    return f"Table {table!r} has {gaps} missing values of its own. Complete tables are needed."


@lru_cache(maxsize=2)
def ranking(table: str, max_rows: int | None, seed: int, data: str | None) -> list[Any]:
    """The columns by mutual information with the target, highest first."""
    world = load(table, max_rows, seed, data)
    task = TASKS[world.task]
    return missingness.most_informative(world.X, world.y, task=task, nominal=world.nominal or None)


def lose(
    X: Array, mechanism: str, ratio: float, ranked: Sequence[Any], repetition: int, seed: int
) -> Array:
    """X with missing values in its most informative column, or in several ("grid-...").

    Under MAR the second most informative column decides which rows lose the value.
    """
    part, share = int(ratio * 1e6), 0.0
    if mechanism.startswith(GRID):
        share = float(mechanism.removeprefix(GRID))
        rng = np.random.default_rng([seed, repetition, 1, len(MECHANISMS), part, int(share * 1e6)])
        return np.asarray(
            missingness.mcar_grid(X, ratio=ratio, column_ratio=share, random_state=rng), np.float64
        )
    rng = np.random.default_rng([seed, repetition, 1, MECHANISMS.index(mechanism), part])
    driver = ranked[1] if mechanism == "mar" else None
    lost = missingness.Mechanism(mechanism)(
        X, ratio=ratio, random_state=rng, columns=ranked[0], drivers=driver
    )
    return np.asarray(lost, np.float64)


def split(world: World, repetition: int, seed: int) -> list[tuple[Array, Array]]:
    """Training and test rows of each fold, shuffled and stratified by class."""
    kind = StratifiedKFold if world.task == "binary" else KFold
    cutter = kind(FOLDS, shuffle=True, random_state=_number(seed, repetition, 2))
    return [(train, test) for train, test in cutter.split(world.X, world.y)]


def _number(*key: int) -> int:
    """A seed for scikit-learn."""
    return int(np.random.SeedSequence(key).generate_state(1)[0] >> 1)


def hidden(p: int) -> tuple[int, int]:
    """The hidden layers of the paper's network for p columns."""
    return max(1, p // 2), 2


def alike(name: str) -> int:
    """A number for the shape of a strategy's network. Equal shapes are trained together."""
    if name in ("mean+share", "mean+indicator"):
        return 1
    return {"drop-features": 2, "mpromissing": 3, "fpromissing": 4}.get(name, 0)


def score(
    table: str,
    mechanism: str,
    ratios: Sequence[float],
    repetitions: Sequence[int],
    names: Sequence[str],
    max_rows: int | None,
    epochs: int,
    seed: int,
    data: str | None = None,
    absent: Mapping[str, str] | None = None,
) -> Outcome:
    """All models of one table and mechanism, for some repetitions."""
    if table in (absent or {}):
        raise Skipped((absent or {})[table])
    world = load(table, max_rows, seed, data)
    ranked: list[Any] = []
    if mechanism in MECHANISMS:
        ranked = ranking(table, max_rows, seed, data)
        if mechanism == "mar" and len(ranked) < 2:
            raise Skipped(f"Table {table!r} has one column; MAR needs another to decide.")
    folds = {r: split(world, r, seed) for r in repetitions}
    gaps = {
        (ratio, r): world.X
        if mechanism == COMPLETE
        else lose(world.X, mechanism, ratio, ranked, r, seed)
        for ratio in ratios
        for r in repetitions
    }
    units = [
        Unit(name, ratio, r, fold)
        for name in sorted(names, key=alike)
        for ratio in ratios
        for r in repetitions
        for fold in range(FOLDS)
    ]
    rows: list[Row] = []

    def record(unit: Unit, value: float, seconds: float) -> None:
        found = [(METRICS[world.task], value)] + [("diverged", 1.0)] * (not np.isfinite(value))
        name, ratio, r, fold = unit
        for metric, number in found:
            rows.append(Row(table, mechanism, ratio, name, r, fold, metric, number, seconds))

    for unit in (u for u in units if is_tree(u.name)):
        start = perf_counter()
        train, test = folds[unit.repetition][unit.fold]
        value = _score_trees(unit, world, gaps[unit.ratio, unit.repetition], train, test, seed)
        record(unit, value, perf_counter() - start)
    for part in _parts([u for u in units if not is_tree(u.name)], world):
        for unit, value, seconds in _score_nets(part, world, gaps, folds, epochs, seed):
            record(unit, value, seconds)
    return Outcome(rows)


def is_tree(name: str) -> bool:
    """Whether a strategy uses trees instead of a network."""
    return name == FOREST or strategies.STRATEGIES[name].family == "trees"


def _parts(units: list[Unit], world: World) -> Iterator[list[Unit]]:
    """As many units at a time as fit into memory. Networks of one shape stay together."""
    most = max(1, BYTES // (4 * world.X.size))
    for number in sorted({alike(unit.name) for unit in units}):
        mine = [unit for unit in units if alike(unit.name) == number]
        for start in range(0, len(mine), most):
            yield mine[start : start + most]


def _score_trees(unit: Unit, world: World, X: Array, train: Array, test: Array, seed: int) -> float:
    state = _number(seed, unit.repetition, unit.fold)
    model: Any
    if unit.name == FOREST:
        kind = RandomForestClassifier if world.task == "binary" else RandomForestRegressor
        model = kind(random_state=state)
    else:
        model = strategies.make(unit.name, TASKS[world.task], random_state=state)
    y = world.y.astype(int) if world.task == "binary" else world.y
    model.fit(X[train], y[train])
    if world.task == "binary":
        return float(auc(y[test], model.predict_proba(X[test])[:, 1]))
    return float(smse(y[test], model.predict(X[test])))


def _score_nets(
    units: Sequence[Unit],
    world: World,
    gaps: Mapping[tuple[float, int], Array],
    folds: Mapping[int, list[tuple[Array, Array]]],
    epochs: int,
    seed: int,
) -> Iterator[tuple[Unit, float, float]]:
    """The score and the seconds of every unit. Their networks are trained together."""
    length = max(len(test) for pairs in folds.values() for _, test in pairs)
    ready: dict[Unit, Ready] = {}
    spent: dict[Unit, float] = {}
    for unit in units:
        start = perf_counter()
        train, test = folds[unit.repetition][unit.fold]
        X = world.X if unit.name == "full" else gaps[unit.ratio, unit.repetition]
        try:
            one = prepare(unit, world, X, train, test, length, seed)
        except FloatingPointError:
            yield unit, np.nan, perf_counter() - start
            continue
        spent[unit] = perf_counter() - start
        if one is None:
            yield unit, _prior_score(world, train, test), spent[unit]
        else:
            ready[unit] = one
    binary = world.task == "binary"
    # The engine's loss is half the squared error, the paper's the whole of it: twice the rate.
    recipe = Training(
        LogLoss() if binary else SquaredError(), "relu", 0.01 if binary else 0.02, 10, epochs
    )
    keys = {unit: _fingerprint(one.job) for unit, one in ready.items()}
    # Without the incomplete column all ratios give the same job, and with one incomplete column
    # its share and its indicator are the same.
    distinct = {keys[unit]: one.job for unit, one in ready.items()}
    trained = run_jobs(list(distinct.values()), recipe) if distinct else []
    trainees = dict(zip(distinct, trained, strict=True))
    for unit, one in ready.items():
        trainee = trainees[keys[unit]]
        _, test = folds[unit.repetition][unit.fold]
        outputs = trainee.outputs[: len(test)].astype(np.float64)
        seconds = spent[unit] + trainee.seconds
        value = np.nan
        if np.isfinite(outputs).all():
            measure = auc if binary else smse
            value = float(measure(world.y[test], outputs * one.scale + one.mean))
        yield unit, value, seconds


def prepare(
    unit: Unit, world: World, X: Array, train: Array, test: Array, length: int, seed: int
) -> Ready | None:
    """The job of a network: values imputed or left missing, then standardised on observed values.

    None if no row, no column or only one class is left. FloatingPointError if GAIN diverged. Test
    rows are padded to `length` with zeros, so that all folds share one program.
    """
    state = _number(seed, unit.repetition, unit.fold)
    with warnings.catch_warnings(), sklearn.config_context(working_memory=128):
        # The protocol has ten rounds, converged or not.
        warnings.simplefilter("ignore", ConvergenceWarning)
        # A few missing values may all fall into the test rows.
        warnings.filterwarnings("ignore", "Without a gap in training", UserWarning)
        try:
            ready = strategies.prepare(
                unit.name, X[train], [X[test]], max_rows=NEIGHBOR_ROWS, random_state=state
            )
        except ValueError as error:
            if unit.name == "gain" and str(error).startswith("Training diverged"):
                raise FloatingPointError(str(error)) from error
            raise
    rows, y = ready.rows, world.y[train]
    binary = world.task == "binary"
    if not len(rows) or not ready.train.shape[1] or (binary and len(np.unique(y[rows])) < 2):
        return None
    mean, scale = (0.0, 1.0) if binary else (float(y[rows].mean()), float(y[rows].std()) or 1.0)
    center, spread = _observed(ready.train[rows])
    others = np.zeros((length, ready.train.shape[1]), np.float32)
    others[: len(test)] = (ready.others[0] - center) / spread
    job = Job(
        ((ready.train - center) / spread).astype(np.float32),
        ((y - mean) / scale).astype(np.float32),
        rows,
        others,
        strategies.STRATEGIES[unit.name].compensation,
        hidden(world.X.shape[1]),
        (seed, unit.repetition, unit.fold),
    )
    return Ready(job, mean, scale)


def _fingerprint(job: Job) -> bytes:
    """A digest of everything that a job is trained on and applied to."""
    found = blake2b(repr((job.X.shape, job.compensation, job.hidden, job.seed)).encode())
    for array in (job.X, job.y, job.rows, job.others):
        found.update(np.ascontiguousarray(array).data)
    return found.digest()


def _observed(X: Array) -> tuple[Array, Array]:
    """Mean and deviation of the observed values of every column; 0 and 1 if there are none."""
    known = ~np.isnan(X)
    count = np.maximum(known.sum(axis=0), 1)
    center = np.where(known, X, 0.0).sum(axis=0) / count
    spread = np.sqrt(np.where(known, (X - center) ** 2, 0.0).sum(axis=0) / count)
    return center, np.where(spread > 0, spread, 1.0)


def _prior_score(world: World, train: Array, test: Array) -> float:
    """The score of the prior, known from the targets of the training rows."""
    if world.task == "binary":
        return 0.5
    return float(smse(world.y[test], np.full(len(test), world.y[train].mean())))
