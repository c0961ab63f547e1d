"""Our defaults against the defaults of others, on tables with gaps.

    python benchmarks/accuracy.py --data DIR --out results/accuracy
    python benchmarks/accuracy.py --data DIR --out OUT --quick     # a handful of tables
    python benchmarks/accuracy.py --data DIR --out OUT --methods "ours,ours:n_bins=0,hgb"

Every table of the directory with at least 500 rows, at most 10,000 of them, two shuffled folds:
as it is, with 25 and 50 % of all cells missing, and with half and nine tenths of its most
informative column missing by MCAR, MAR and MNAR. All methods see the same gaps and folds. Scores
are AUC or R2; a tie is a difference of less than 0.001, and ranks take no notice of ties.
Resumable: the results are those of the experiment runner. `ours:name=value+name=value` is our
default with some parameters changed. Where only ours has changed, `--methods ours --beside EARLIER`
takes what others scored, on the same gaps and folds, from an earlier record.

The default was chosen on every second table in alphabetical order, and is judged by the others,
which come first. Seconds are shown where one model is trained at a time (`--jobs 1`); on many rows:

    python benchmarks/accuracy.py --data DIR --out OUT --large
"""

from __future__ import annotations

import argparse
import ast
import shlex
import sys
import warnings
from functools import lru_cache
from itertools import islice
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
from studies import looks
from studies.runner import Batch, Outcome, Row, run
from studies.store import read
from studies.tables import describe, markdown, write

METHODS = (
    "ours", "hgb", "lightgbm", "xgboost", "catboost", "sklearn-mlp-mean",
    "sklearn-mlp-mean+indicator", "mean+indicator",
)  # fmt: skip
SETTINGS = (
    "complete", "cells-0.25", "cells-0.5",
    *(f"{how}-{ratio}" for how in ("mcar", "mar", "mnar") for ratio in (0.5, 0.9)),
)  # fmt: skip
LARGE = ("airlines", "bike_sharing_demand", "bng_echomonths", "eeg_eye_state", "elevators",
         "house_8L", "mozilla4", "mv", "electricity", "run_or_walk")  # fmt: skip
QUICK = ("phoneme", "bank_marketing", "compas_two_years", "wind", "elevators", "thyroid_sick")
GROUPS = {"all": "all settings", "complete": "complete", "cells": "cells missing",
          "column": "one column missing"}  # fmt: skip
NAMES = {"ours": "promissing", "hgb": "HGB", "lightgbm": "LightGBM", "xgboost": "XGBoost",
         "catboost": "CatBoost", "sklearn-mlp-mean": "MLP, mean",
         "sklearn-mlp-mean+indicator": "MLP, mean + indicator",
         "mean+indicator": "our net, mean + indicator"}  # fmt: skip
LEAST_ROWS, TIE, FAR, RESAMPLES = 500, 0.001, 0.02, 2000
CASES = {"score": "scores.csv", "log_loss": "log_losses.csv"}
TASKS = {"binary": "classification", "regression": "regression"}


def halves(data: str) -> dict[str, str]:
    """Which tables there are, and to which half each belongs: every second one is for choosing."""
    loaded = datasets.load_many(data=data).datasets
    slugs = sorted(one.slug for one in loaded if len(one.X) >= LEAST_ROWS)
    return {slug: ("choose", "report")[i % 2] for i, slug in enumerate(slugs)}


@lru_cache(maxsize=1)
def load(table: str, max_rows: int, data: str) -> tuple[pd.DataFrame, Any, str, list[str]]:
    """A table, at most some rows of it, and its columns from the most informative one."""
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
    """X with more gaps."""
    if setting == "complete":
        return X
    how, _, ratio = setting.partition("-")
    rng = np.random.default_rng([seed, SETTINGS.index(setting)])
    if how == "cells":
        return missingness.mcar_grid(X, ratio=float(ratio), column_ratio=1.0, rng=rng)
    driver = ranked[1] if how == "mar" else None
    mechanism = missingness.Mechanism(how)
    return mechanism(X, ratio=float(ratio), rng=rng, columns=ranked[0], drivers=driver)


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
        if task == "regression":  # It does not scale its target, as we and trees need not.
            model = TransformedTargetRegressor(model, transformer=StandardScaler())
        return make_pipeline(TableEncoder(), fill, model)
    # Our default, which here will meet no gaps.
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
    """One method on the folds of one table with some gaps."""
    X, y, task, ranked = load(table, max_rows, data)
    X = lose(X, ranked, setting, repetition)
    classes = task == "classification"
    cutter = (StratifiedKFold if classes else KFold)(2, shuffle=True, random_state=repetition)
    rows = []
    for fold, (train, test) in islice(enumerate(cutter.split(X, y)), folds):
        # Workers have one thread each, which is fair only where all cores have work.
        with warnings.catch_warnings(), threadpool_limits(threads):
            # Rounds are at most 200 by default, converged or not; gaps that fall to the test rows.
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


def report(out: Path, half_of: dict[str, str], *, alone: bool, earlier: Path | None) -> None:
    """Ranks, differences, wins and seconds, on the reporting half and on the other."""
    results = read(out / "results.sqlite")
    # Before anything is written: `earlier` may be `out` itself.
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
    if alone:  # Beside others on the same cores, trees have threads and we have none.
        took = seconds(results)
        write(out / "seconds.csv", took.to_csv(index=False, float_format="%.4g"))
        texts.append("## Seconds, medians over tables\n\n" + markdown(took, dict.fromkeys(
            took.columns[1:], ".2f")))  # fmt: skip
    write(out / "summary.md", "\n".join(texts))


def compared(results: pd.DataFrame, metric: str) -> pd.DataFrame:
    """Means over folds and repetitions, by table, setting and method, of what all have finished."""
    mine = results[results["metric"] == metric]
    case = ["dataset", "mechanism"]
    wide = mine.pivot_table(
        index=[*case, "repetition", "fold"], columns="strategy", values="value"
    ).dropna()
    return wide.groupby(level=case).mean()


def beside(wide: pd.DataFrame, earlier: Path | None, metric: str) -> pd.DataFrame:
    """What was scored, and what the methods not among it scored in an earlier record."""
    if earlier is None or not (path := earlier / CASES[metric]).exists():
        return wide
    others = pd.read_csv(path).set_index(wide.index.names)
    return wide.join(others[[name for name in others if name not in wide]], how="inner")


def behind(wide: pd.DataFrame, half_of: dict[str, str]) -> list[str]:
    """Where we are far behind the best of the rivals."""
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
    """Medians over tables of the seconds, and of how many times as long we take."""
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
    with looks.figure(down, across, figsize=(4.6 * across, tall * down)) as (fig, axes):
        for ax in axes.flat[len(groups) :]:
            ax.set_axis_off()
        for ax, name in zip(axes.flat, groups, strict=False):
            cell = frame[frame["settings"] == name].reset_index(drop=True)
            places = np.arange(len(cell))[::-1]
            for place, line in zip(places, cell.itertuples(), strict=True):
                color = "#c2410c" if line.method == "ours" else "#52606d"
                ax.plot([line.low, line.high], [place, place], color=color, lw=2.2, alpha=0.6)
                ax.plot(line.rank, place, marker="o", color=color, ms=6)
            ax.set_yticks(places, [NAMES.get(method, method) for method in cell["method"]])
            ax.grid(False, axis="y")
            ax.set(xlabel="mean rank (95 %, tables drawn again)", title=GROUPS[name])
        looks.save(fig, out, f"ranks_{half}")


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
        drawn = rng.integers(len(ranks), size=(RESAMPLES, len(ranks)))
        low, high = np.quantile(ranks.to_numpy()[drawn].mean(axis=1), [0.025, 0.975], axis=0)
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


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", required=True, help="directory above datasets and clinical")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--settings", default=",".join(SETTINGS))
    parser.add_argument("--tables", help="all of at least 500 rows by default")
    parser.add_argument("--half", choices=("choose", "report"), help="only one half of the tables")
    parser.add_argument("--max-rows", type=int, default=10_000)
    parser.add_argument("--repetitions", type=int, default=1)
    parser.add_argument("--quick", action="store_true", help="a handful of tables, 4,000 rows")
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--beside", type=Path, help="an earlier record, for methods not run now")
    parser.add_argument("--folds", type=int, default=2, choices=(1, 2), help="how many to score")
    parser.add_argument("--large", action="store_true", help="seconds: large tables, all rows")
    parser.add_argument("--jobs", type=int, default=1, help="1 by default: seconds then compare")
    asked = parser.parse_args()
    if asked.large:
        asked.tables, asked.max_rows = ",".join(LARGE), 100_000
        asked.methods, asked.settings, asked.folds = "ours,catboost,hgb", "complete", 1

    half_of = halves(asked.data)
    tables = asked.tables.split(",") if asked.tables else list(half_of)
    if asked.quick:
        tables, asked.max_rows = [name for name in QUICK if name in half_of], 4000
    tables = sorted(tables, key=lambda name: (half_of.get(name) != "report", name))
    if asked.half:
        tables = [name for name in tables if half_of.get(name) == asked.half]
    batches = [
        Batch(
            f"{table}/{setting}/{method}/{repetition}",
            score,
            {"table": table, "setting": setting, "method": method}
            | {"max_rows": asked.max_rows, "repetition": repetition, "folds": asked.folds},
        )
        for table in tables
        for repetition in range(asked.repetitions)
        for setting in asked.settings.split(",")
        for method in asked.methods.split(",")
    ]
    settings = {"tables": tables, "max_rows": asked.max_rows, "methods": asked.methods}
    settings |= {"repetitions": asked.repetitions, "settings": asked.settings}
    settings |= {"folds": asked.folds, "ours": str(NanMLPClassifier().get_params())}
    context = {"data": asked.data, "threads": max(1, cpu_count() // asked.jobs)}
    summary = run("accuracy", batches, asked.out, settings=settings, context=context,
                  resume=asked.resume, jobs=asked.jobs)  # fmt: skip
    for name, reason in {**summary.skipped, **summary.failed}.items():
        print(f"{name}: {reason}")
    report(asked.out, half_of, alone=asked.jobs == 1, earlier=asked.beside)
    describe(asked.out, shlex.join(["python", *sys.argv]).replace(asked.data, "DIR"))
    print(f"{summary.n_done_now} batches in {summary.seconds:.0f} s; see {asked.out}/summary.md")


if __name__ == "__main__":
    from accuracy import main as start  # Workers know what they are to do by this name.

    start()
