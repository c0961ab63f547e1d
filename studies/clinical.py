"""The paper's clinical study: patients with many modalities, some of them missing.

There are four parts. The first two also run on real tables of a directory:

- *scores*: repeated cross-validation of every strategy with the paper's fusion network;
- *fading*: trained on the incomplete patients and applied to the complete ones while modalities
  are removed in random order;
- *knowing*: trained without balancing; calibration on newly generated patients by the number of
  their missing modalities;
- *why*: the effect of each modality on predictions, and the importance of the modalities.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.dummy import DummyClassifier
from sklearn.model_selection import StratifiedKFold

from promissing import datasets, inspection, metrics
from promissing.compare import strategies
from promissing.estimators.fusion import PAPER
from promissing.inspection import Effects, Trajectories
from promissing.inspection.displays import (
    CounterfactualDisplay,
    ModalityDecisionDisplay,
    TrajectoryDisplay,
)
from studies import reporting
from studies.networks import auc
from studies.reporting import markdown, plus_minus, write_table
from studies.runner import Batch, Outcome, Row, Skipped, Summary, read, run
from studies.simulation import check_at_least

__all__ = ["COHORT", "FADING", "STRATEGIES", "load", "removed", "report", "run_study"]
__all__ += ["summarise", "validate"]

Array = NDArray[Any]

STRATEGIES = (
    *("drop-features", "knn", "mean+indicator", "hgb", "promissing", "mpromissing"),
    "fpromissing",
)
FADING = ("knn", "hgb", "promissing", "mpromissing", "fpromissing")
COHORT = "cohort"
KINDS = ("none", "supports", "opposes", "flips")
NEIGHBORS = 1  # As in the paper.
LEAST_COMPLETE = 5  # The second part needs at least this many complete patients.
MOST_COMPLETE = 60
BLOCK = 4000  # Newly generated patients that are predicted at a time.


def run_study(
    out: Path,
    *,
    tables: Sequence[str] = (COHORT,),
    names: Sequence[str] = STRATEGIES,
    folds: int = 10,
    repetitions: int = 10,
    orders: int = 100,
    epochs: int = 200,
    fresh: int = 20_000,
    data: Path | None = None,
    seed: int = 0,
    **how: Any,
) -> Summary:
    """Run the study, or the rest of it, and store the results in `out`.

    Parameters
    ----------
    out : Path
        Directory for the results.
    tables : sequence of str
        "cohort", which is generated, and tables of `data` that have modalities.
    names : sequence of str
        Strategies, among `STRATEGIES`.
    folds, repetitions : int, default=10
        Folds and repetitions of the cross-validation.
    orders : int, default=100
        Number of random orders in which modalities are removed.
    epochs : int, default=200
        Epochs of every network.
    fresh : int, default=20,000
        Number of newly generated patients to measure calibration.
    data : Path, optional
        Directory of the tables: see `promissing.datasets.load`.
    seed : int, default=0
        Random seed.
    **how
        `resume`, `jobs` and `progress` of `studies.runner.run`.
    """
    names = strategies.check(names)
    for name in names:
        if name not in STRATEGIES:
            known = ", ".join(STRATEGIES)
            raise ValueError(f"The strategy {name!r} is not part of this study: {known}.")
    check_at_least(1, repetitions=repetitions, orders=orders, epochs=epochs)
    check_at_least(2, folds=folds)
    check_at_least(100, fresh=fresh)
    tables = [_slug(table, data) for table in dict.fromkeys(tables)]
    if not tables:
        raise ValueError('Name at least one table, such as "cohort".')
    shared = {"epochs": epochs, "seed": seed}
    batches = []
    for table, name, repetition in product(tables, names, range(repetitions)):
        arguments = {"table": table, "name": name, "repetition": repetition, "folds": folds}
        label = f"scores/{table}/{name}/{repetition:02d}"
        batches.append(Batch(label, score, arguments | shared))
    fading = [name for name in FADING if name in names]
    for table, name in product(tables, fading):
        arguments = {"table": table, "name": name, "orders": orders}
        batches.append(Batch(f"fading/{table}/{name}", fade, arguments | shared, cost=2.0))
    for name in fading if COHORT in tables else ():
        arguments = {"name": name, "fresh": fresh}
        batches.append(Batch(f"knowing/{COHORT}/{name}", know, arguments | shared, cost=8.0))
        if name == "mpromissing":
            batches.append(Batch(f"why/{COHORT}/{name}", why, {"name": name} | shared, cost=3.0))
    settings = {"tables": tables, "strategies": list(names), "folds": folds, "orders": orders}
    settings |= {"repetitions": repetitions, "fresh": fresh, **shared}
    context = {"data": None if data is None else str(data)}
    return run("clinical", batches, out, settings=settings, context=context, **how)


def _slug(table: str, data: Path | None) -> str:
    """The slug of a table that is available and has modalities."""
    if table == COHORT:
        return COHORT
    found = datasets.load(table, data=data)
    if not found.modalities:
        raise ValueError(f"Table {table!r} has no modalities, which this study is about.")
    return found.slug


# The batches


def load(table: str, data: str | None) -> tuple[pd.DataFrame, Array, dict[str, list[str]]]:
    """The columns, the target and the modalities of a table."""
    if table == COHORT:
        cohort = datasets.make_cohort()
        return cohort.X, cohort.y.to_numpy(), cohort.modalities
    try:
        found = datasets.load(table, data=data)
    except datasets.DatasetError as error:
        raise Skipped(str(error)) from error
    columns = [name for part in found.modalities.values() for name in part]
    return found.X[columns], found.y.to_numpy(), found.modalities


def removed(
    X: pd.DataFrame, modalities: Mapping[str, Sequence[str]]
) -> tuple[Array, dict[str, list[str]]]:
    """Feature removal as in the paper: the patients that stay, and their complete columns.

    Patients without any value of some modality are removed first, then every incomplete column and
    every modality without columns.
    """
    gaps = X.isna()
    stay = np.ones(len(X), bool)
    for columns in modalities.values():
        stay &= ~gaps[list(columns)].all(axis=1).to_numpy()
    whole = ~gaps[stay].any(axis=0)
    kept = {name: [c for c in columns if whole[c]] for name, columns in modalities.items()}
    return stay, {name: columns for name, columns in kept.items() if columns}


def learn(
    name: str,
    X: pd.DataFrame,
    y: Array,
    modalities: Mapping[str, Sequence[str]],
    seed: int,
    epochs: int,
    *,
    balance: bool = True,
    careful: bool = False,
) -> Any:
    """Train a strategy with the paper's network and training on a table with modalities.

    To balance the classes, rows of the smaller one are drawn again, for trees and networks.
    `careful` trains models for the parts other than the scores: with a penalty and as an ensemble
    of four, and native strategies with modalities removed at random.
    """
    native = strategies.STRATEGIES[name].family == "native"
    if name == "hgb":
        model = strategies.make(name, "classification", random_state=seed)
        rows = _balanced(y, seed) if balance else np.arange(len(y))
        return model.fit(X.iloc[rows], y[rows])
    network: dict[str, Any] = dict(PAPER) | {"max_iter": epochs, "resample": balance}
    if len(modalities) != len(datasets.make_cohort(20).modalities):
        network["units"] = None  # Those of the paper are for its twelve modalities.
    if careful:
        # The paper does not specify this training. With so few patients, a penalty, a falling
        # learning rate and a small ensemble are needed.
        network |= {"learning_rate": "cosine", "learning_rate_init": 1e-3}
        network |= {"alpha": 1.0, "n_members": 4, "augment": 1.0 if native else False}
    model = strategies.make(
        name,
        "classification",
        settings=network,
        modalities=modalities,
        n_neighbors=NEIGHBORS,
        random_state=seed,
    )
    return model.fit(X, y)


def _balanced(y: Array, seed: int) -> Array:
    """All rows, and rows of the smaller class drawn again until both classes have equal size."""
    rng = np.random.default_rng(seed)
    classes = [np.flatnonzero(y == k) for k in (0, 1)]
    more = [rng.choice(rows, max(map(len, classes)) - len(rows)) for rows in classes]
    return np.concatenate([np.arange(len(y)), *more])


def score(
    table: str, name: str, repetition: int, folds: int, epochs: int, seed: int, data: str | None
) -> Outcome:
    """One repetition of the cross-validation of one strategy."""
    return Outcome(validate(table, name, load(table, data), repetition, folds, epochs, seed))


def validate(
    table: str,
    name: str,
    loaded: tuple[pd.DataFrame, Array, dict[str, list[str]]],
    repetition: int,
    folds: int,
    epochs: int,
    seed: int,
) -> list[Row]:
    """Cross-validate a strategy on columns, target and modalities."""
    X, y, modalities = loaded
    if name == "drop-features":
        stay, modalities = removed(X, modalities)
        X, y = X.loc[stay, [c for columns in modalities.values() for c in columns]], y[stay]
        if len(np.unique(y)) < 2 or np.bincount(y).min() < folds:
            raise Skipped(f"feature removal leaves {len(y)} patients of {table}, too few to split")
    splitter = StratifiedKFold(folds, shuffle=True, random_state=seed + repetition)
    rows = []
    for fold, (train, test) in enumerate(splitter.split(X, y)):
        start = perf_counter()
        known, truth = X.iloc[train], y[train]
        model: Any
        if modalities:
            used = "full" if name == "drop-features" else name
            model = learn(used, known, truth, modalities, seed + repetition, epochs)
        else:
            model = DummyClassifier(strategy="prior").fit(known, truth)
        with warnings.catch_warnings():
            # As in the paper, no values are removed in training.
            warnings.filterwarnings("ignore", ".* had no missing values in training", UserWarning)
            proba = model.predict_proba(X.iloc[test])[:, 1]
        seconds = perf_counter() - start
        found = {
            "auc": float(auc(y[test], proba)),
            "brier": metrics.brier_score(y[test], proba, classes=[0, 1]),
        }
        rows += [
            Row(table, "own", np.nan, name, repetition, fold, metric, value, seconds)
            for metric, value in found.items()
        ]
    return rows


def fade(table: str, name: str, orders: int, epochs: int, seed: int, data: str | None) -> Outcome:
    """Train on incomplete patients; predict complete ones while modalities are removed."""
    X, y, modalities = load(table, data)
    complete = np.flatnonzero(~X.isna().any(axis=1))
    if len(complete) < LEAST_COMPLETE or len(complete) > 0.9 * len(X):
        raise Skipped(f"{table} has {len(complete)} complete patients of {len(X)}")
    train = np.setdiff1d(np.arange(len(X)), complete)
    rng = np.random.default_rng(seed)
    test = np.sort(rng.permutation(complete)[:MOST_COMPLETE])
    start = perf_counter()
    model = learn(name, X.iloc[train], y[train], modalities, seed, epochs, careful=True)
    found = inspection.information_loss(
        model, X.iloc[test], modalities, orders=orders, prior=0.5, random_state=seed
    )
    seconds = perf_counter() - start
    end = found.predictions[..., -1]
    measures = {
        "end_mean": end.mean(),
        "end_distance": np.abs(end - 0.5).max(),
        "falls": float(found.monotonicity.always),
        "auc": float(auc(y[test], found.predictions[0, :, 0])),
    }
    rows = [
        Row(table, "fading", np.nan, name, 0, 0, metric, float(value), seconds)
        for metric, value in measures.items()
    ]
    for step, distance in enumerate(found.distance.mean(axis=(0, 1))):
        share = step / len(found.groups)
        rows.append(Row(table, "fading", share, name, 0, 0, "distance", float(distance), seconds))
    arrays = {"predictions": found.predictions.astype(np.float32), "y": y[test], "rows": test}
    return Outcome(rows, arrays | {"orders": found.orders})


def know(name: str, fresh: int, epochs: int, seed: int, data: str | None) -> Outcome:
    """Train without balancing; measure calibration on new patients with modalities removed."""
    cohort = datasets.make_cohort()
    X, y, modalities = cohort.X, cohort.y.to_numpy(), cohort.modalities
    start = perf_counter()
    model = learn(name, X, y, modalities, seed, epochs, balance=False, careful=True)
    judges = datasets.make_cohort(fresh, random_state=seed + 1)
    truth, prior = judges.y.to_numpy(), y.mean()
    rng = np.random.default_rng(seed)
    order = rng.permuted(np.tile(np.arange(len(modalities)), (fresh, 1)), axis=1)
    rows = []
    probabilities = np.empty((len(modalities) + 1, fresh), np.float32)
    names = list(modalities)
    for step in range(len(modalities) + 1):
        gone = np.zeros((fresh, len(names)), bool)
        np.put_along_axis(gone, order[:, :step], True, axis=1)
        table = judges.complete.copy()
        for g, modality in enumerate(names):
            lost = gone[:, g]
            if lost.any():
                for column in modalities[modality]:
                    table[column] = table[column].mask(lost)
        proba = np.concatenate(
            [
                model.predict_proba(table.iloc[first : first + BLOCK])[:, 1]
                for first in range(0, fresh, BLOCK)
            ]
        )
        probabilities[step] = proba
        measures = {
            "calibration_error": metrics.calibration_error(truth, proba, classes=[0, 1]),
            "brier": metrics.brier_score(truth, proba, classes=[0, 1]),
            "auc": float(auc(truth, proba)),
            "distance": float(np.abs(proba - prior).mean()),
        }
        share = step / len(names)
        rows += [
            Row(COHORT, "knowing", share, name, 0, 0, metric, value, perf_counter() - start)
            for metric, value in measures.items()
        ]
    coverage = metrics.accuracy_coverage(
        np.tile(truth, len(probabilities)), probabilities.ravel(), classes=[0, 1]
    )
    thin = np.unique(np.linspace(0, len(coverage.coverage) - 1, 200).astype(int))
    arrays = {
        "coverage": np.stack([coverage.coverage[thin], coverage.accuracy[thin]]),
        "prior": np.array([prior]),
    }
    return Outcome(rows, arrays)


def why(name: str, epochs: int, seed: int, data: str | None) -> Outcome:
    """Counterfactuals of the complete patients, and the importance of the modalities."""
    X, y, modalities = load(COHORT, data)
    complete = ~X.isna().any(axis=1).to_numpy()
    model = learn(name, X[~complete], y[~complete], modalities, seed, epochs, careful=True)
    found = inspection.what_if(model, X[complete], groups=modalities)
    values = inspection.shapley(model, X[complete], groups=modalities)
    weight = inspection.importance(values).loc[list(modalities)]
    truth = datasets.make_cohort().truth.importance[list(modalities)]
    columns = {"importance": weight["importance"], "standard_error": weight["standard_error"]}
    rows = [
        Row(COHORT, f"why: {group}", np.nan, name, 0, 0, metric, float(column[group]))
        for metric, column in (columns | {"truth": truth}).items()
        for group in modalities
    ]
    arrays = {
        "effects": found.effects,
        "prediction": found.prediction,
        "kinds": np.array([[KINDS.index(kind) for kind in row] for row in found.kinds]),
        "y": y[complete],
        "decisions": np.stack(
            [proba[:, 1] for proba in model.decision_by_modality(X[complete]).values()], axis=1
        ),
        "shapley": values.values,
    }
    return Outcome(rows, arrays)


# The report


def report(out: Path) -> None:
    """Write the tables and figures of the results in `out`."""
    results, arrays, about = read(out)
    scores = summarise(results)
    write_table(out, "scores", scores, _scores_as_markdown(scores))
    _draw_scores(scores, out)
    fading = results[results["mechanism"] == "fading"]
    if len(fading):
        kept = fading.drop(columns="seconds")
        write_table(out, "fading", kept, _fading_as_markdown(fading))
    for table in about["settings"]["tables"]:
        _draw_fading(arrays, table, out)
    known = results[results["mechanism"] == "knowing"]
    if len(known):
        kept = known.drop(columns="seconds")
        write_table(out, "knowing", kept, _knowing_as_markdown(known))
        _draw_knowing(known, arrays, out)
    importance = results[results["mechanism"].str.startswith("why: ")]
    if len(importance):
        wide = importance.assign(modality=importance["mechanism"].str.removeprefix("why: "))
        wide = wide.pivot_table(index="modality", columns="metric", values="value").reset_index()
        wide = wide.sort_values("truth", ascending=False)
        formats = dict.fromkeys(("importance", "standard_error", "truth"), ".3f")
        write_table(out, "importance", wide, markdown(wide, formats))
        _draw_why(arrays, out)


def summarise(results: pd.DataFrame) -> pd.DataFrame:
    """AUC and Brier score by table and strategy.

    The score of a repetition is the mean over its folds. Mean and deviation are over repetitions.
    """
    own = results[results["mechanism"] == "own"]
    keys = ["dataset", "strategy", "repetition", "metric"]
    by_repetition = own.groupby(keys, sort=False)["value"].mean().unstack("metric")
    seconds = own.groupby(["dataset", "strategy"])["seconds"].mean()
    lines = []
    for (table, name), group in by_repetition.groupby(level=["dataset", "strategy"]):
        line = {"table": table, "strategy": name}
        for metric in ("auc", "brier"):
            line |= {metric: group[metric].mean(), f"{metric}_sd": group[metric].std(ddof=1)}
        lines.append(line | {"seconds": seconds[table, name]})
    order = {name: i for i, name in enumerate(strategies.NAMES)}
    frame = pd.DataFrame(lines)
    first = (frame["table"] != COHORT).astype(int)
    return (
        frame.assign(first=first, place=frame["strategy"].map(order))
        .sort_values(["first", "table", "place"])
        .drop(columns=["first", "place"])
        .reset_index(drop=True)
    )


def _scores_as_markdown(scores: pd.DataFrame) -> str:
    shown = scores[["table"]].assign(strategy=[reporting.title(n) for n in scores["strategy"]])
    for metric, label in (("auc", "AUC"), ("brier", "Brier score")):
        pairs = zip(scores[metric], scores[f"{metric}_sd"], strict=True)
        shown[label] = [plus_minus(*pair) for pair in pairs]
    shown["seconds a fold"] = scores["seconds"]
    return markdown(shown, {"seconds a fold": ".2f"})


def _fading_as_markdown(fading: pd.DataFrame) -> str:
    lines = []
    for (table, name), group in fading.groupby(["dataset", "strategy"], sort=False):
        single = group[group["ratio"].isna()].set_index("metric")["value"]
        steps = group[group["metric"] == "distance"].sort_values("ratio")["value"].to_numpy()
        lines.append(
            {
                "table": table,
                "strategy": reporting.title(name),
                "distance, all known": f"{steps[0]:.3f}",
                "distance, half known": f"{steps[len(steps) // 2]:.3f}",
                "distance, nothing known": f"{steps[-1]:.3f}",
                "prediction, nothing known": f"{single['end_mean']:.3f}",
                "falls at every step": "yes" if single["falls"] else "no",
            }
        )
    return markdown(pd.DataFrame(lines))


def _knowing_as_markdown(known: pd.DataFrame) -> str:
    wide = known.pivot_table(index=["strategy", "ratio"], columns="metric", values="value")
    lines = []
    for name, group in wide.groupby(level="strategy"):
        error = group["calibration_error"].to_numpy()
        lines.append(
            {
                "strategy": reporting.title(name),
                "calibration error, all known": error[0],
                "the largest": error.max(),
                "the largest, above all known": error.max() - error[0],
                "Brier, all known": group["brier"].to_numpy()[0],
                "Brier, nothing known": group["brier"].to_numpy()[-1],
                "distance from the prior, nothing known": group["distance"].to_numpy()[-1],
                "AUC, all known": group["auc"].to_numpy()[0],
            }
        )
    frame = pd.DataFrame(lines)
    return markdown(frame, dict.fromkeys(frame.columns[1:], ".3f"))


def _draw_scores(scores: pd.DataFrame, out: Path) -> None:
    tables = list(dict.fromkeys(scores["table"]))
    columns = min(4, len(tables))
    rows = -(-len(tables) // columns)
    names = [n for n in strategies.NAMES if n in set(scores["strategy"])]
    size = (3.4 * columns + 0.6, rows * (0.3 * len(names) + 0.9))
    with reporting.figure(rows, columns, sharey=True, figsize=size) as (fig, axes):
        for ax in axes.ravel()[len(tables) :]:
            ax.set_axis_off()
        for ax, table in zip(axes.ravel(), tables, strict=False):
            mine = scores[scores["table"] == table].set_index("strategy").reindex(names)
            for place, name in enumerate(names[::-1]):
                style, line = reporting.LOOKS[name], mine.loc[name]
                ax.errorbar(line["auc"], place, xerr=np.nan_to_num(line["auc_sd"]),
                            color=style.color, marker=style.mark, ms=7, capsize=3)  # fmt: skip
            ax.set_yticks(range(len(names)), [reporting.title(name) for name in names[::-1]])
            ax.set_title(table)
        fig.supxlabel("AUC, mean and deviation over repetitions", fontsize=9)
        reporting.save(fig, out, "scores")


def _draw_fading(arrays: dict[str, Any], table: str, out: Path) -> None:
    found: dict[str, Trajectories] = {}
    for name in FADING:
        kept = arrays.get(f"fading/{table}/{name}")
        if kept:
            predictions = kept["predictions"].astype(float)
            size = predictions.shape[2] - 1
            found[reporting.title(name)] = Trajectories(
                groups=tuple(range(size)),
                orders=kept["orders"],
                predictions=predictions,
                known=np.ones((predictions.shape[1], size), bool),
                prior=0.5,
                classes=np.array([0, 1]),
                index=kept["rows"],
            )
    if not found:
        return
    size = (3.1 * len(found), 3.3)
    with reporting.figure(1, len(found), sharey=True, figsize=size) as (fig, axes):
        TrajectoryDisplay(found).plot(ax=axes[0], bands=False)
        for ax in axes[0]:
            ax.set_xlabel("modalities made unknown")
        axes[0, 0].set_ylabel("probability of remission" if table == COHORT else "probability")
        reporting.save(fig, out, f"fading_{table}")


def _draw_knowing(known: pd.DataFrame, arrays: dict[str, Any], out: Path) -> None:
    names = [name for name in FADING if name in set(known["strategy"])]
    panels = {"calibration_error": "calibration error", "brier": "Brier score",
              "distance": "mean distance from the prior"}  # fmt: skip
    with reporting.figure(1, 4, figsize=(14, 3.4)) as (fig, axes):
        for ax, (metric, label) in zip(axes[0], panels.items(), strict=False):
            for name in names:
                style = reporting.LOOKS[name]
                chosen = known[(known["metric"] == metric) & (known["strategy"] == name)]
                chosen = chosen.sort_values("ratio")
                ax.plot(chosen["ratio"], chosen["value"], color=style.color, ls=style.line,
                        marker=style.mark, ms=4, lw=1.4, label=reporting.title(name))  # fmt: skip
            ax.set(xlabel="share of the modalities missing", title=label)
            ax.set_ylim(bottom=0)
        for name in names:
            style = reporting.LOOKS[name]
            coverage, accuracy = arrays[f"knowing/{COHORT}/{name}"]["coverage"]
            axes[0, 3].plot(coverage, accuracy, color=style.color, ls=style.line, lw=1.4)
        axes[0, 3].set(
            xlabel="share decided, the most certain first", title="accuracy", xlim=(0, 1)
        )
        handles, labels = axes[0, 0].get_legend_handles_labels()
        fig.legend(handles, labels, loc="outside right center")
        reporting.save(fig, out, "knowing")


def _draw_why(arrays: dict[str, Any], out: Path) -> None:
    kept = next(value for key, value in arrays.items() if key.startswith("why/"))
    cohort = datasets.make_cohort()
    groups = tuple(cohort.modalities)
    index = np.flatnonzero(~cohort.X.isna().any(axis=1))
    prediction, effects = kept["prediction"], kept["effects"]
    found = Effects(
        groups=groups,
        prediction=prediction,
        effects=effects,
        known=np.ones(effects.shape, bool),
        kinds=np.array(KINDS)[kept["kinds"]],
        decision=(prediction > 0.5).astype(int),
        classes=np.array([0, 1]),
        index=np.array([f"patient {i}" for i in index]),
    )
    outcomes = found.outcomes(kept["y"])
    certain = np.argsort(-np.abs(prediction - 0.5))
    rows = []
    for outcome in ("true negative", "true positive", "false negative", "false positive"):
        mine = [int(i) for i in certain if outcomes[i] == outcome]
        rows += mine[:1]
    display = CounterfactualDisplay(found, y=kept["y"]).plot(rows=rows)
    _keep(display, out, "why")
    decisions = {name: kept["decisions"][:, g] for g, name in enumerate(groups)}
    shown = ModalityDecisionDisplay(decisions, prediction, index=list(found.index)).plot(rows=rows)
    _keep(shown, out, "decisions")


def _keep(display: Any, out: Path, name: str) -> None:
    from matplotlib import pyplot as plt

    reporting.save(display.figure_, out, name)
    plt.close(display.figure_)
