"""Our defaults against the defaults of others, on tables with missing values.

Every table of the directory with at least 500 rows, at most 10,000 of them, in two shuffled folds:
as it is, with 25 and 50 % of all cells missing, and with half and nine tenths of its most
informative column missing by MCAR, MAR and MNAR. All methods see the same missing values and folds.
Scores are AUC or R2. A tie is a difference of less than 0.001; ranks ignore ties.

The method `ours:name=value+name=value` is our default with some parameters changed. If only our
default has changed, `--methods ours --beside EARLIER` takes the scores of the other methods, on the
same missing values and folds, from an earlier record.

The default was chosen on every second table in alphabetical order. The other tables judge it and
come first in the report. Seconds are reported if one model is trained at a time (`--jobs 1`).
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Sequence
from functools import lru_cache
from itertools import islice, product
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import pandas as pd
from joblib import cpu_count
from sklearn.compose import TransformedTargetRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.impute import SimpleImputer
from sklearn.metrics import log_loss, r2_score, roc_auc_score
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from promissing import NanMLPClassifier, NanMLPRegressor, datasets, missingness
from promissing.compare import strategies
from promissing.encoding.table_encoder import TableEncoder
from studies import reporting
from studies.openml_tasks import TASKS
from studies.reporting import markdown
from studies.runner import Batch, Outcome, Row, Summary, read, run, write

__all__ = ["LARGE", "METHODS", "QUICK", "SETTINGS", "report", "run_study"]

METHODS = (
    "ours", "hgb", "lightgbm", "xgboost", "catboost", "sklearn-mlp-mean",
    "sklearn-mlp-mean+indicator", "mean+indicator",
)  # fmt: skip
SETTINGS = (
    "complete", "cells-0.25", "cells-0.5",
    *(f"{how}-{ratio}" for how in ("mcar", "mar", "mnar") for ratio in (0.5, 0.9)),
)  # fmt: skip
LARGE = {
    "tables": ("airlines", "bike_sharing_demand", "bng_echomonths", "eeg_eye_state", "elevators",
               "house_8L", "mozilla4", "mv", "electricity", "run_or_walk"),
    "max_rows": 100_000, "methods": ("ours", "catboost", "hgb"), "settings": ("complete",),
    "folds": 1,
}  # fmt: skip
QUICK = ("phoneme", "bank_marketing", "compas_two_years", "wind", "elevators", "thyroid_sick")
GROUPS = {"all": "all settings", "complete": "complete", "cells": "cells missing",
          "column": "one column missing"}  # fmt: skip
NAMES = {"ours": "promissing", "hgb": "HGB", "lightgbm": "LightGBM", "xgboost": "XGBoost",
         "catboost": "CatBoost", "sklearn-mlp-mean": "MLP, mean",
         "sklearn-mlp-mean+indicator": "MLP, mean + indicator",
         "mean+indicator": "our net, mean + indicator"}  # fmt: skip
LEAST_ROWS, TIE, FAR = 500, 0.001, 0.02
CASES = {"score": "scores.csv", "log_loss": "log_losses.csv"}


# The tables of the paper that served to choose the default.
CHOOSING = (
    *("2dplanes", "analcatdata_supreme", "bank_marketing", "bng_breast_w", "bng_lowbwt"),
    *("compas_two_years", "delta_elevators", "electricity", "fried", "mammography", "mv"),
    *("pollen", "run_or_walk", "sylvine", "visualizing_soil", "wine_quality"),
)


def run_study(
    out: Path,
    *,
    data: str,
    methods: Sequence[str] = METHODS,
    settings: Sequence[str] = SETTINGS,
    tables: Sequence[str] | None = None,
    half: str | None = None,
    max_rows: int = 10_000,
    repetitions: int = 1,
    folds: int = 2,
    jobs: int = 1,
    **how: Any,
) -> Summary:
    """Run the comparison, or the rest of it, and store the results in `out`.

    Parameters
    ----------
    out : Path
        Directory for the results.
    data : str
        Directory of the tables: see `promissing.datasets.load`.
    methods, settings : sequences of str
        Methods, and ways to lose values.
    tables : sequence of str, optional
        By default all tables with at least 500 rows.
    half : {"choose", "report"}, optional
        Only one half of the tables.
    max_rows : int, default=10,000
        Maximum number of rows of every table, drawn at random.
    repetitions : int, default=1
        Number of repetitions.
    folds : {1, 2}, default=2
        Number of folds to score.
    jobs : int, default=1
        Worker processes. Seconds can be compared if there is one.
    **how
        `resume` and `progress` of `studies.runner.run`.
    """
    for setting in settings:
        if setting not in SETTINGS:
            known = ", ".join(SETTINGS)
            raise ValueError(f"There is no setting {setting!r} in this study. They are: {known}.")
    half_of = halves(data)
    chosen = sorted(
        half_of if tables is None else tables,
        key=lambda name: (half_of.get(name) != "report", name),
    )
    if half:
        chosen = [name for name in chosen if half_of.get(name) == half]
    batches = []
    for case in product(chosen, range(repetitions), settings, methods):
        table, repetition, setting, method = case
        arguments = {"table": table, "setting": setting, "method": method, "max_rows": max_rows}
        arguments |= {"repetition": repetition, "folds": folds}
        batches.append(Batch(f"{table}/{setting}/{method}/{repetition}", score, arguments))
    record = {"tables": chosen, "max_rows": max_rows, "methods": list(methods)}
    record |= {"repetitions": repetitions, "settings": list(settings), "folds": folds}
    record |= {"ours": str(NanMLPClassifier().get_params())}
    context = {"data": data, "threads": max(1, cpu_count() // jobs)}
    return run("accuracy", batches, out, settings=record, context=context, jobs=jobs, **how)


def halves(data: str) -> dict[str, str]:
    """The tables and the half of each: every second one served to choose the default.

    From OpenML come more tables than served for that; the others are reported.
    """
    if data == "openml":
        chosen = dict.fromkeys(CHOOSING, "choose")
        slugs = [table.slug for table in datasets.tables(excluded=False)]
        return {slug: chosen.get(slug, "report") for slug in sorted(slugs)}
    loaded = datasets.load_many(data=data).datasets
    slugs = sorted(one.slug for one in loaded if len(one.X) >= LEAST_ROWS)
    return {slug: ("choose", "report")[i % 2] for i, slug in enumerate(slugs)}


@lru_cache(maxsize=1)
def load(table: str, max_rows: int, data: str) -> tuple[pd.DataFrame, Any, str, list[str]]:
    """A table with at most `max_rows` rows, and its columns, the most informative one first."""
    found = datasets.load(table, data=data)
    X, y = found.X, found.y.to_numpy()
    if len(X) > max_rows:
        kept = np.sort(np.random.default_rng(0).choice(len(X), max_rows, replace=False))
        X, y = X.iloc[kept].reset_index(drop=True), y[kept]
    codes = TableEncoder(scale=False, max_categories=len(X)).fit(X).read(X)
    codes = SimpleImputer(strategy="median", keep_empty_features=True).fit_transform(codes)
    nominal = [j for j, name in enumerate(X) if name in found.nominal]
    ranked = missingness.most_informative(codes, y, task=TASKS[found.task], nominal=nominal or None)
    return X, y, TASKS[found.task], [X.columns[j] for j in ranked]


def lose(X: pd.DataFrame, ranked: list[str], setting: str, seed: int) -> pd.DataFrame:
    """X with more missing values."""
    if setting == "complete":
        return X
    how, _, ratio = setting.partition("-")
    rng = np.random.default_rng([seed, SETTINGS.index(setting)])
    if how == "cells":
        return missingness.mcar_grid(X, ratio=float(ratio), column_ratio=1.0, random_state=rng)
    driver = ranked[1] if how == "mar" else None
    mechanism = missingness.Mechanism(how)
    return mechanism(X, ratio=float(ratio), random_state=rng, columns=ranked[0], drivers=driver)


def build(method: str, task: str, seed: int) -> Any:
    """A model with its defaults."""
    name, _, changed = method.partition(":")
    if name == "ours":
        kind = NanMLPClassifier if task == "classification" else NanMLPRegressor
        pairs = [part.split("=") for part in changed.split("+") if part]
        return kind(random_state=seed, **{key: _value(text) for key, text in pairs})
    if name.startswith("sklearn-mlp"):
        kind = MLPClassifier if task == "classification" else MLPRegressor
        fill = SimpleImputer(add_indicator=name.endswith("indicator"), keep_empty_features=True)
        model = kind(early_stopping=True, random_state=seed)
        if task == "regression":  # It needs a scaled target; ours and trees do not.
            model = TransformedTargetRegressor(model, transformer=StandardScaler())
        return make_pipeline(TableEncoder(), fill, model)
    # Our default, which has no missing values to learn from here.
    network = {"augment": False, "fine_bins": "auto"} if name == "mean+indicator" else None
    return strategies.make(name, task, settings=network, random_state=seed)


def _value(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def score(
    table: str,
    setting: str,
    method: str,
    max_rows: int,
    repetition: int,
    folds: int,
    threads: int,
    data: str,
) -> Outcome:
    """Score one method on the folds of one table with some missing values."""
    X, y, task, ranked = load(table, max_rows, data)
    X = lose(X, ranked, setting, repetition)
    classes = task == "classification"
    cutter = (StratifiedKFold if classes else KFold)(2, shuffle=True, random_state=repetition)
    rows = []
    for fold, (train, test) in islice(enumerate(cutter.split(X, y)), folds):
        # One thread per worker would be unfair to trees if some cores have no work.
        with warnings.catch_warnings(), threadpool_limits(threads):
            # Iterations are limited to 200 by default; some columns are incomplete in test only.
            warnings.simplefilter("ignore", ConvergenceWarning)
            warnings.simplefilter("ignore", UserWarning)
            start = perf_counter()
            model = build(method, task, repetition).fit(X.iloc[train], y[train])
            fitted = perf_counter()
            found = (
                model.predict_proba(X.iloc[test])[:, 1] if classes else model.predict(X.iloc[test])
            )
            end = perf_counter()
        values = {"fit_seconds": fitted - start, "predict_seconds": end - fitted}
        if classes:
            values["score"] = roc_auc_score(y[test], found)
            values["log_loss"] = log_loss(y[test], found)
        else:
            values["score"] = r2_score(y[test], found)
        rows += [
            Row(table, setting, np.nan, method, repetition, fold, metric, float(value))
            for metric, value in values.items()
        ]
    return Outcome(rows)


def report(out: Path, *, data: str, earlier: Path | None = None) -> None:
    """Write ranks, differences, wins and seconds, for the reporting half and for the other.

    `earlier` is the directory of an earlier record, for methods that were not run now.
    """
    half_of = halves(data)
    results, _, about = read(out)
    # Read before anything is written, because `earlier` may be `out`.
    known = {metric: beside(compared(results, metric), earlier, metric) for metric in CASES}
    classification = set(results[results["metric"] == "log_loss"]["dataset"])
    texts = []
    for half in ("report", "choose"):
        title = {"report": "The reporting half", "choose": "The half the default was chosen on"}
        wide, losses = (
            known[metric][[half_of.get(name) == half for name, _ in known[metric].index]]
            for metric in CASES
        )
        if wide.empty:
            continue
        n_tables = wide.index.get_level_values("dataset").nunique()
        texts.append(f"## {title[half]}, {n_tables} tables, {len(wide)} cases\n")
        frame = summarise(wide, classification)
        write(out / f"summary_{half}.csv", frame.to_csv(index=False, float_format="%.5g"))
        texts.append(_as_markdown(frame))
        draw(frame, out, half)
        if len(losses) and set(losses) == set(wide):  # An earlier record may lack them.
            losses = summarise(-losses, classification)
            write(out / f"log_loss_{half}.csv", losses.to_csv(index=False, float_format="%.5g"))
            texts.append("Log loss, classification only:\n\n" + _as_markdown(losses))
    for metric, name in CASES.items():
        cases = known[metric].reset_index()
        write(out / name, cases.to_csv(index=False, float_format="%.5f"))
    texts += behind(known["score"], half_of)
    if about["jobs"] == 1:  # Otherwise trees have threads and our networks have none.
        took = seconds(results)
        write(out / "seconds.csv", took.to_csv(index=False, float_format="%.4g"))
        texts.append("## Seconds, medians over tables\n\n" + markdown(took, dict.fromkeys(
            took.columns[1:], ".2f")))  # fmt: skip
    write(out / "summary.md", "\n".join(texts))


def compared(results: pd.DataFrame, metric: str) -> pd.DataFrame:
    """Means over folds and repetitions by table, setting and method, if all methods have them."""
    mine = results[results["metric"] == metric]
    case = ["dataset", "mechanism"]
    wide = mine.pivot_table(
        index=[*case, "repetition", "fold"], columns="strategy", values="value"
    ).dropna()
    return wide.groupby(level=case).mean()


def beside(wide: pd.DataFrame, earlier: Path | None, metric: str) -> pd.DataFrame:
    """The scores of this run, and of other methods in an earlier record."""
    if earlier is None or not (path := earlier / CASES[metric]).exists():
        return wide
    others = pd.read_csv(path).set_index(wide.index.names)
    return wide.join(others[[name for name in others if name not in wide]], how="inner")


def behind(wide: pd.DataFrame, half_of: dict[str, str]) -> list[str]:
    """The cases where our default is far behind the best other method."""
    rivals = wide.drop(columns=[name for name in wide if name.startswith("ours")])
    if "ours" not in wide or rivals.empty:
        return []
    found = pd.DataFrame({"ours": wide["ours"], "best": rivals.max(axis=1)})
    found["by"] = rivals.dropna(how="all").idxmax(axis=1)
    found["difference"] = found["ours"] - found["best"]
    found = found[found["difference"] < -FAR].sort_values("difference").reset_index()
    found.insert(0, "half", [half_of.get(name, "") for name in found["dataset"]])
    text = markdown(found, dict.fromkeys(("ours", "best", "difference"), ".4f"))
    return [f"## More than {FAR} behind the best rival\n\n{text}"]


def seconds(results: pd.DataFrame) -> pd.DataFrame:
    """Medians over tables of the seconds, and of our seconds relative to each method."""
    lines: dict[str, dict[str, float]] = {}
    for what in ("fit", "predict"):
        took = results[results["metric"] == f"{what}_seconds"]
        took = took.pivot_table(index="dataset", columns="strategy", values="value")
        for method in took:
            line = lines.setdefault(method, {})
            line[what] = took[method].median()
            if "ours" in took:
                line[f"{what}, ours / it"] = (took["ours"] / took[method]).median()
    return pd.DataFrame([{"method": name, **line} for name, line in lines.items()])


def draw(frame: pd.DataFrame, out: Path, half: str) -> None:
    """Mean ranks with their intervals, best first, by group of settings."""
    groups = [name for name in GROUPS if name in set(frame["settings"])]
    tall = 0.3 * frame["method"].nunique() + 1.1
    across, down = min(2, len(groups)), -(-len(groups) // 2)
    with reporting.figure(down, across, figsize=(4.6 * across, tall * down)) as (fig, axes):
        for ax in axes.flat[len(groups) :]:
            ax.set_axis_off()
        for ax, name in zip(axes.flat, groups, strict=False):
            cell = frame[frame["settings"] == name]
            names = [NAMES.get(method, method) for method in cell["method"]]
            colors = ["#c2410c" if one == "ours" else "#52606d" for one in cell["method"]]
            reporting.draw_ranks(ax, cell, names, colors, "o" * len(cell))
            ax.set(xlabel="mean rank (95 %, tables drawn again)", title=GROUPS[name])
        reporting.save(fig, out, f"ranks_{half}")


def summarise(wide: pd.DataFrame, classification: set[str]) -> pd.DataFrame:
    """By group of settings and method: mean rank with its interval, and ours against each."""
    classes = wide.index.get_level_values("dataset").isin(classification)
    kinds = wide.index.get_level_values("mechanism")
    single = kinds.str.match("mcar|mar|mnar")
    groups = {"all": kinds == kinds, "cells": kinds.str.startswith("cells"), "column": single}
    groups |= {setting: kinds == setting for setting in SETTINGS}
    lines = []
    rng = np.random.default_rng(0)
    for name, chosen in groups.items():
        cells = wide[chosen]
        if cells.empty:
            continue
        ranks = cells.rank(axis=1, ascending=False).groupby(level="dataset").mean()
        low, high = reporting.bootstrap(ranks, rng)
        which = classes[chosen]
        for j, method in enumerate(cells.columns):
            gain = (cells["ours"] - cells[method]) if "ours" in cells else cells[method] * np.nan
            lines.append(
                {"settings": name, "method": method, "rank": ranks[method].mean()}
                | {"low": low[j], "high": high[j], "mean": cells[method].mean()}
                | {"ours_minus": gain.mean(), "of_auc": gain[which].mean()}
                | {"of_r2": gain[~which].mean(), "wins": int((gain >= TIE).sum())}
                | {"ties": int((gain.abs() < TIE).sum()), "losses": int((gain <= -TIE).sum())}
                | {"worst": gain.min()}
            )
    frame = pd.DataFrame(lines)
    order = {name: i for i, name in enumerate(groups)}
    return frame.sort_values(["settings", "rank"], key=lambda c: c.map(order) if c.name ==
                             "settings" else c, ignore_index=True)  # fmt: skip


def _as_markdown(frame: pd.DataFrame) -> str:
    formats = {"rank": ".2f", "low": ".2f", "high": ".2f"}
    formats |= dict.fromkeys(("mean", "ours_minus", "of_auc", "of_r2", "worst"), ".4f")
    return "\n".join(
        f"### {name}\n\n{markdown(part.drop(columns='settings'), formats)}"
        for name, part in frame.groupby("settings", sort=False)
    )
