"""Whether the library says "I do not know" at the right time.

Four parts, each on our model, HGB and CatBoost:

- "synthetic": prediction intervals on the set-up of CP-MDA (Zaffran et al. 2023), where the length
  of the best interval for every mask is known;
- "coverage": sets and intervals on real tables. Training and calibration rows lose 10 % of their
  cells; test rows lose 0 to 100 % of them, or their most informative value;
- "decisions": models trained on complete tables, and test rows that lose 0 to 75 % of their cells:
  accuracy where the highest probability is at least 0.9, calibration, and risk by coverage. There
  are two more rivals here: a network on imputed means, and one on means and missing indicators
  that is trained with as many missing values as ours;
- "acquisition": the loss as values are obtained in the order of several policies, on real tables
  and on generated ones whose informative features are known by construction.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import product
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import pandas as pd
from joblib import cpu_count
from scipy.stats import beta, binom
from sklearn.metrics import log_loss, r2_score, roc_auc_score
from sklearn.model_selection import train_test_split
from threadpoolctl import threadpool_limits

from promissing import NanMLPClassifier, NanMLPRegressor, datasets, metrics, missingness
from promissing.compare import strategies
from promissing.compare.wrappers import AugmentedRows
from promissing.uncertainty import ConformalClassifier, ConformalRegressor, acquisition_curve
from promissing.uncertainty.acquisition import AcquisitionPlan
from studies import accuracy, reporting
from studies.reporting import markdown
from studies.runner import Batch, Outcome, Row, Summary, read, run, write

__all__ = ["MODELS", "PARTS", "report", "run_study"]

PARTS = ("synthetic", "coverage", "decisions", "acquisition")
MODELS = ("ours", "hgb", "catboost")
MORE_RIVALS = ("mean", "mean+indicator+augment")
NAMES = {"ours": "promissing", "hgb": "HGB", "catboost": "CatBoost", "mean": "mean + MLP",
         "mean+indicator+augment": "mean + indicator,\naugmented"}  # fmt: skip
LEVEL = 0.9
TRAIN_ROWS, CALIBRATION_ROWS, TEST_ROWS = 5000, 1000, 3000
MOST_ROWS = 20_000  # Rows of a table from which those are drawn, the same for every seed.
SHARES = (0.0, 0.25, 0.5, 0.75)
GROUPS = ("0 %", "1 - 25 %", "25 - 50 %", "50 - 75 %", "75 - 99 %", "100 %", "best column")
LAST = {
    "75 - 99 %": "75 - 100 %",
    "100 %": "75 - 100 %",
}  # Empty rows are shown by themselves, too.
CERTAIN = 0.9  # The probability from which on a decision counts as certain.
FEWEST = 20  # With fewer certain decisions, their accuracy is not counted.

# CP-MDA's set-up.
COEFFICIENTS = np.array([1, 2, -1, 3, -0.5, -1, 0.3, 1.7, 0.4, -0.3])
CORRELATION, SYNTHETIC_SHARE = 0.8, 0.2
SYNTHETIC_ROWS = (500, 250, 100)  # Training, calibration, test rows for each number of values.
AUDITS = 10  # Repetitions in which "exact" and "nested" are run: they predict again for every mask.

# Acquisition takes a minute for each table and seed. It uses at most this number of tables.
ACQUISITION_TABLES = 6
CUBES = ("cube", "cube_nm")
POLICIES = ("global", "importance", "greedy", "learned", "random")


def run_study(
    out: Path,
    *,
    data: str,
    parts: Sequence[str] = PARTS,
    models: Sequence[str] = MODELS,
    tables: Sequence[str] | None = None,
    half: str | None = "report",
    seeds: int = 3,
    repetitions: int = 100,
    jobs: int = 1,
    **how: Any,
) -> Summary:
    """Run the study, or the rest of it, and store the results in `out`.

    Parameters
    ----------
    out : Path
        Directory for the results.
    data : str
        Directory of the tables: see `promissing.datasets.load`.
    parts, models : sequences of str
        Parts of the study, and models.
    tables : sequence of str, optional
        By default all tables of the half.
    half : {"choose", "report"}, optional
        The half of the tables; the algorithms were chosen on "choose".
    seeds : int, default=3
        Number of seeds of every table.
    repetitions : int, default=100
        Repetitions of the synthetic part.
    jobs : int, default=1
        Worker processes.
    **how
        `resume` and `progress` of `studies.runner.run`.
    """
    half_of = accuracy.halves(data)
    chosen = list(tables or (name for name in half_of if half in (None, half_of[name])))
    _require("part", parts, PARTS)
    _require("model", models, MODELS)
    _require("table", chosen, tuple(half_of))
    task_of = {one.slug: one.task for one in datasets.load_many(chosen, data=data).datasets}
    batches = []
    for part, work in (("decisions", decisions), ("coverage", coverage)):
        for table, seed in product(chosen if part in parts else (), range(seeds)):
            more = part == "decisions" and task_of[table] == "binary"
            for model in (*models, *MORE_RIVALS) if more else models:
                arguments = {"table": table, "model": model, "seed": seed}
                batches.append(Batch(f"{part}/{table}/{model}/{seed}", work, arguments))
    if "acquisition" in parts:
        step = max(1, round(len(chosen) / ACQUISITION_TABLES))
        for table, seed in product((*chosen[::step][:ACQUISITION_TABLES], *CUBES), range(seeds)):
            arguments = {"table": table, "seed": seed}
            batches.append(Batch(f"acquisition/{table}/{seed}", acquisition, arguments))
    if "synthetic" in parts:
        for model, seed in product(models, range(repetitions)):
            arguments = {"model": model, "seed": seed}
            batches.append(Batch(f"synthetic/{model}/{seed}", synthetic, arguments))
    record = {"parts": list(parts), "tables": chosen, "models": list(models), "seeds": seeds}
    record |= {"repetitions": repetitions, "ours": str(NanMLPClassifier().get_params())}
    context = {"data": data, "threads": max(1, cpu_count() // jobs)}
    return run("uncertainty", batches, out, settings=record, context=context, jobs=jobs, **how)


def _require(what: str, given: Sequence[str], known: Sequence[str]) -> None:
    for name in given:
        if name not in known:
            raise ValueError(f"There is no {what} {name!r} here. Known: {', '.join(known)}.")


def build(model: str, task: str, seed: int) -> Any:
    """Return a model with its defaults."""
    if model == "ours":
        return (NanMLPClassifier if task == "classification" else NanMLPRegressor)(
            random_state=seed
        )
    if model not in MORE_RIVALS:
        return strategies.make(model, task, random_state=seed)
    settings = {"augment": False, "n_fine_bins": "auto"}
    name = model.removesuffix("+augment")
    made = strategies.make(name, task, settings=settings, random_state=seed)
    return AugmentedRows(made, random_state=seed) if name != model else made


@lru_cache(maxsize=1)
def load(table: str, seed: int, data: str) -> tuple[list[pd.DataFrame], list[Any], str, str]:
    """Return the training, calibration and test rows, their targets, the task and best column."""
    X, y, task, ranked = accuracy.load(table, MOST_ROWS, data)
    rows = np.arange(len(X))
    classes = y if task == "classification" else None
    test = min(TEST_ROWS, int(0.3 * len(X)))
    rest, test_rows = train_test_split(rows, test_size=test, random_state=seed, stratify=classes)
    rest = rest[: TRAIN_ROWS + CALIBRATION_ROWS]  # They are shuffled.
    calibration = min(CALIBRATION_ROWS, len(rest) // 4)
    parts = [rest[calibration:], rest[:calibration], test_rows]
    return [X.iloc[p].reset_index(drop=True) for p in parts], [y[p] for p in parts], task, ranked[0]


def lose(X: pd.DataFrame, share: Any, rng: np.random.Generator) -> pd.DataFrame:
    """Return X without the given share of its cells; there may be one share for every row."""
    return missingness.remove(X, rng.random(X.shape) < share)


# ------------------------------------------------------------------------------- the parts


def synthetic(model: str, seed: int, threads: int, data: str) -> Outcome:
    """Measure the length and coverage of intervals by the number of missing values."""
    rng = np.random.default_rng(seed)
    p = len(COEFFICIENTS)
    n_train, n_calibration, each = SYNTHETIC_ROWS
    covariance = CORRELATION * np.ones((p, p)) + (1 - CORRELATION) * np.eye(p)

    def draw(n: int) -> tuple[np.ndarray, np.ndarray]:
        X = rng.multivariate_normal(np.ones(p), covariance, size=n)
        return X, X @ COEFFICIENTS + rng.normal(size=n)

    X, y = draw(n_train + n_calibration)
    X[rng.random(X.shape) < SYNTHETIC_SHARE] = np.nan
    X_test, y_test = draw(each * (p + 1))
    count = np.repeat(np.arange(p + 1), each)
    X_test[rng.random(X_test.shape).argsort(axis=1) < count[:, None]] = np.nan
    best = 2 * 1.645 * np.sqrt([1 + _spare(np.isnan(row), covariance) for row in X_test])
    rows = []
    with warnings.catch_warnings(), threadpool_limits(threads):
        warnings.simplefilter("ignore")
        fitted = build(model, "regression", seed).fit(X[:n_train], y[:n_train])
        for method in ("nearest", "split", *(("exact", "nested") if seed < AUDITS else ())):
            conformal = ConformalRegressor(fitted, prefit=True, method=method, random_state=seed)
            conformal.conformalize(X[n_train:], y[n_train:])
            low, high = np.asarray(conformal.predict_interval(X_test)).T
            for k in range(p + 1):
                here = count == k
                found = {
                    "coverage": ((low <= y_test) & (y_test <= high))[here].mean(),
                    "length": (high - low)[here].mean(),
                    "oracle": best[here].mean(),
                }
                rows += [
                    Row(
                        "synthetic",
                        "synthetic",
                        k,
                        f"{model}/{method}",
                        seed,
                        0,
                        metric,
                        float(value),
                    )
                    for metric, value in found.items()
                ]
    return Outcome(rows)


def _spare(missing: np.ndarray, covariance: np.ndarray) -> float:
    """Return the variance of what missing values contribute, given the known ones."""
    m, o = np.flatnonzero(missing), np.flatnonzero(~missing)
    if not len(m):
        return 0.0
    left = covariance[np.ix_(m, m)]
    if len(o):
        cross = covariance[np.ix_(m, o)]
        left = left - cross @ np.linalg.solve(covariance[np.ix_(o, o)], cross.T)
    return float(COEFFICIENTS[m] @ left @ COEFFICIENTS[m])


def coverage(table: str, model: str, seed: int, threads: int, data: str) -> Outcome:
    """Measure coverage and size of sets or intervals by the share of missing values."""
    (X, X_cal, X_test), (y, y_cal, y_test), task, best = load(table, seed, data)
    rng = np.random.default_rng([seed, 1])
    X, X_cal = lose(X, 0.1, rng), lose(X_cal, 0.1, rng)
    # A sixth of the test rows is complete.
    share = np.where(rng.random(len(X_test)) < 1 / 6, 0.0, rng.random(len(X_test)))
    tests = {"cells": lose(X_test, share[:, None], rng), "best column": X_test.copy()}
    tests["best column"] = missingness.remove(
        X_test, np.tile(X_test.columns == best, (len(X_test), 1))
    )
    lost = tests["cells"].isna().mean(axis=1).to_numpy()
    groups = {"cells": np.array(GROUPS)[np.ceil(4 * lost).astype(int) + (lost == 1)]}
    groups["best column"] = np.full(len(X_test), "best column")
    rows = []
    with warnings.catch_warnings(), threadpool_limits(threads):
        warnings.simplefilter("ignore")
        fitted = build(model, task, seed).fit(X, y)
        for method, conformal in _wrappers(task, fitted, seed).items():
            start = perf_counter()
            conformal.conformalize(X_cal, y_cal)
            seconds = perf_counter() - start
            for test, X_lost in tests.items():
                start = perf_counter()
                hit, size = _hits(conformal, X_lost, y_test)
                took = perf_counter() - start
                for group in np.unique(groups[test]):
                    here = groups[test] == group
                    found = {"rows": here.sum(), "coverage": hit[here].mean()}
                    found |= {"size": size[here].mean(), "predict_seconds": took}
                    found |= {"conformalize_seconds": seconds, "calibration_rows": len(y_cal)}
                    rows += [
                        Row(table, group, np.nan, f"{model}/{method}", seed, 0, metric, float(v))
                        for metric, v in found.items()
                    ]
    return Outcome(rows)


def _wrappers(task: str, fitted: Any, seed: int) -> dict[str, Any]:
    """Return the wrappers to compare by name."""
    common = {"prefit": True, "confidence_level": LEVEL, "random_state": seed}
    if task == "classification":
        # Sets may be empty here: otherwise coverage is above the level for accurate classifiers.
        return {
            "nearest": ConformalClassifier(fitted, allow_empty=True, **common),
            "never empty": ConformalClassifier(fitted, **common),
            "split": ConformalClassifier(fitted, method="split", allow_empty=True, **common),
        }
    return {
        "nearest": ConformalRegressor(fitted, **common),
        "unscaled": ConformalRegressor(fitted, scaled=False, **common),
        "split": ConformalRegressor(fitted, method="split", **common),
    }


def _hits(conformal: Any, X: pd.DataFrame, y: Any) -> tuple[np.ndarray, np.ndarray]:
    if isinstance(conformal, ConformalClassifier):
        sets = np.asarray(conformal.predict_set(X))
        return sets[np.arange(len(y)), np.searchsorted(conformal.classes_, y)], sets.sum(axis=1)
    low, high = np.asarray(conformal.predict_interval(X)).T
    return (low <= y) & (y <= high), high - low


def decisions(table: str, model: str, seed: int, threads: int, data: str) -> Outcome:
    """Measure decisions of models that were trained on complete rows as values go missing."""
    (X, X_cal, X_test), (y, y_cal, y_test), task, _ = load(table, seed, data)
    rng = np.random.default_rng([seed, 2])
    losses = {share: lose(X_test, share, rng) for share in SHARES}
    # Each row loses one of the shares.
    which = rng.integers(len(SHARES), size=len(y_test))
    found: dict[tuple[str, float], float] = {}
    with warnings.catch_warnings(), threadpool_limits(threads):
        warnings.simplefilter("ignore")
        fitted = build(model, task, seed).fit(X, y)
        if task == "classification":
            outputs = {share: fitted.predict_proba(X_lost) for share, X_lost in losses.items()}
            truth = np.searchsorted(fitted.classes_, y_test)
            for share, proba in outputs.items():
                found |= {(name, share): v for name, v in _judged(truth, proba).items()}
            mixed = np.stack(list(outputs.values()))[which, np.arange(len(which))]
            right = mixed.argmax(axis=1) == truth
            area = metrics.risk_coverage(truth, mixed).area
            found["area", -1.0], found["at_random", -1.0] = area, 1 - right.mean()
        else:
            conformal = ConformalRegressor(fitted, prefit=True, random_state=seed)
            conformal.conformalize(X_cal, y_cal)
            outputs = {share: fitted.predict(X_lost) for share, X_lost in losses.items()}
            sizes = {share: conformal.error_size(X_lost) for share, X_lost in losses.items()}
            for share, values in outputs.items():
                found["r2", share] = r2_score(y_test, values)
            mixed, size = (
                np.stack(list(parts.values()))[which, np.arange(len(which))]
                for parts in (outputs, sizes)
            )
            curve = metrics.risk_coverage(y_test, mixed, std=size)
            found["area", -1.0] = curve.area / y_test.var()
            found["at_random", -1.0] = ((mixed - y_test) ** 2).mean() / y_test.var()
    rows = [
        Row(table, "decisions", share, model, seed, 0, metric, float(value))
        for (metric, share), value in found.items()
    ]
    return Outcome(rows)


def _judged(truth: np.ndarray, proba: np.ndarray) -> dict[str, float]:
    """Return the scores of probabilities (n, 2), and what happens at a threshold of 0.9."""
    certain = proba.max(axis=1) >= CERTAIN
    right = proba.argmax(axis=1) == truth
    return {
        "accuracy": right[certain].mean() if certain.sum() >= FEWEST else np.nan,
        "decided": certain.mean(),
        "calibration": metrics.calibration_error(truth, proba),
        "auc": roc_auc_score(truth, proba[:, 1]),
        "log_loss": log_loss(truth, proba, labels=[0, 1]),
    }


def acquisition(table: str, seed: int, threads: int, data: str) -> Outcome:
    """Measure the loss as values are obtained, for every policy."""
    if table in CUBES:
        rng = np.random.default_rng(seed)
        X, y = make_cube(6000, rng, hidden=table == "cube_nm")
        parts = [X[:4000], X[4000:4500], X[4500:]], [y[:4000], y[4000:4500], y[4500:]]
        task = "classification"
    else:
        *parts, task, _ = load(table, seed, data)
    (X, X_cal, X_test), (y, _, y_test) = parts
    rows = []
    with warnings.catch_warnings(), threadpool_limits(threads):
        warnings.simplefilter("ignore")
        fitted = build("ours", task, seed).fit(X, y)
        curve = acquisition_curve(
            fitted, X_test[:1000], y_test[:1000], POLICIES, background=X_cal, random_state=seed
        )
        scale = 1.0 if task == "classification" else float(np.var(y_test))
        # The mean loss over all steps but the last, at which everything is known.
        areas = {policy: found[:, :-1].mean(axis=1) for policy, found in curve.losses.items()}
        better = min(("importance", "greedy"), key=lambda policy: areas[policy].mean())
        for policy, area in areas.items():
            ahead = area - areas[better]
            found = {"area": area.mean() / scale, "difference": ahead.mean() / scale}
            found["error"] = ahead.std(ddof=1) / np.sqrt(len(ahead)) / scale
            rows += [
                Row(table, "acquisition", np.nan, policy, seed, 0, metric, float(value))
                for metric, value in found.items()
            ]
        if table in CUBES:
            plan = AcquisitionPlan(fitted, X_cal, random_state=seed)
            rows.append(
                Row(table, "acquisition", np.nan, "global", seed, 0, "first_useless",
                    float(_first_useless(plan.order, table)))
            )  # fmt: skip
    return Outcome(rows)


def make_cube(
    n: int, rng: np.random.Generator, *, hidden: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Return rows and classes in the manner of CUBE: the class fixes which features inform.

    There are 20 features and 8 classes. The features c, c + 1 and c + 2 of a row of class c are
    about the three bits of c, with a standard deviation of 0.3; the others are uniform. With
    `hidden`, ten blocks of three features exist instead, and one more feature tells which block
    holds the bits of the class: by itself it says nothing about the class.
    """
    y = rng.integers(8, size=n)
    bits = (y[:, None] >> np.arange(3)) & 1
    if not hidden:
        X, first = rng.random((n, 20)), y
    else:
        block = rng.integers(5, size=n)
        X, first = np.column_stack([rng.random((n, 15)), block]), 3 * block
    for k in range(3):
        X[np.arange(n), first + k] = bits[:, k] + 0.3 * rng.normal(size=n)
    return X, y


def _first_useless(order: np.ndarray, table: str) -> int:
    """Return the place, from 0, of the first feature of an order that informs about no class."""
    if table == "cube_nm":
        return int(np.argmax(order == 15))  # The place of the feature that names the block.
    return int(np.argmax(order >= 10))


# ------------------------------------------------------------------------------- the report


def report(out: Path) -> None:
    """Write tables and figures of all parts that were run."""
    rows = read(out).rows
    texts = ["# Results\n"]
    # The groups of rows stand for the part "coverage".
    part_of = rows["mechanism"].where(rows["mechanism"].isin(PARTS), "coverage")
    for name, write_part in _WRITERS.items():
        mine = rows[part_of == name]
        if len(mine):
            texts.append(write_part(out, mine))
    write(out / "summary.md", "\n".join(texts))


def _write_synthetic(out: Path, rows: pd.DataFrame) -> str:
    wide = rows.pivot_table(index=["strategy", "ratio"], columns="metric", values="value")
    wide["length / oracle"] = wide["length"] / wide["oracle"]
    wide = wide.reset_index().rename(columns={"ratio": "missing values"})
    write(out / "synthetic.csv", wide.to_csv(index=False, float_format="%.4f"))
    by_count = wide.pivot_table(
        index="strategy", columns="missing values", values=["coverage", "length / oracle"]
    )
    texts = ["## Synthetic data (CP-MDA)\n"]
    for what in ("coverage", "length / oracle"):
        part = by_count[what].rename(columns=lambda k: f"{k:.0f}").reset_index()
        texts.append(f"{what.capitalize()} by the number of missing values:\n")
        texts.append(markdown(part, dict.fromkeys(part.columns[1:], ".3f")))
    return "\n".join(texts)


def _write_coverage(out: Path, rows: pd.DataFrame) -> str:
    case = ["dataset", "mechanism", "strategy", "repetition"]
    wide = rows.pivot_table(index=case, columns="metric", values="value").reset_index()
    write(out / "coverage.csv", wide.to_csv(index=False, float_format="%.5g"))
    texts = ["## Coverage\n"]
    regression = set(wide.loc[wide["strategy"].str.endswith("/unscaled"), "dataset"])
    for task in ("classification", "regression"):
        mine = wide[wide["dataset"].isin(regression) == (task == "regression")]
        if mine.empty:
            continue
        lines = []
        for name, own in mine.groupby("strategy"):
            joined = own.assign(mechanism=own["mechanism"].replace(LAST))
            pooled = {
                group: np.average(part["coverage"], weights=part["rows"])
                for group, part in pd.concat([own, joined]).groupby("mechanism")
            }
            joined["hits"] = joined["coverage"] * joined["rows"]
            case = ["dataset", "repetition", "mechanism"]
            sums = joined.groupby(case)[["hits", "rows"]].sum().reset_index()
            sums = sums.merge(own[[*case[:2], "calibration_rows"]].drop_duplicates())
            sums["coverage"] = sums["hits"] / sums["rows"]
            worst = sums.groupby(["dataset", "repetition"])["coverage"].min().mean()
            sizes = (
                own[own["mechanism"] != "best column"]
                .groupby("dataset")
                .apply(
                    lambda part: np.average(part["size"], weights=part["rows"]),
                    include_groups=False,
                )
            )
            order = [*GROUPS[:4], "75 - 100 %", *GROUPS[4:]]
            line = {"method": name} | {group: pooled[group] for group in order if group in pooled}
            line |= {"worst group": worst, "exact would have": _exact_worst(sums)}
            lines.append(line | {"size": sizes.mean(), "_sizes": sizes})
        base = {line["method"]: line.pop("_sizes") for line in lines}
        for line in lines:
            model = line["method"].partition("/")[0]
            for other in ("split", "unscaled"):
                if f"{model}/{other}" in base:
                    ratio = (base[line["method"]] / base[f"{model}/{other}"]).mean()
                    line[f"size / {other}"] = ratio
        frame = pd.DataFrame(lines)
        write(out / f"coverage_{task}.csv", frame.to_csv(index=False, float_format="%.4f"))
        texts.append(f"### {task.capitalize()}, {mine['dataset'].nunique()} tables\n")
        texts.append(markdown(frame, dict.fromkeys(frame.columns[1:], ".3f")))
    return "\n".join(texts)


def _exact_worst(rows: pd.DataFrame, draws: int = 2000) -> float:
    """Return the mean coverage of the worst group that a method with exact coverage would have."""
    rng, found = np.random.default_rng(0), []
    for _, groups in rows.groupby(["dataset", "repetition"]):
        n = int(groups["calibration_rows"].iloc[0])
        rank = int(np.ceil((n + 1) * LEVEL))
        level = beta.rvs(rank, n + 1 - rank, size=(draws, 1), random_state=rng)
        sizes = groups["rows"].to_numpy().astype(int)
        hits = binom.rvs(sizes, level, size=(draws, len(sizes)), random_state=rng)
        found.append((hits / sizes).min(axis=1).mean())
    return float(np.mean(found))


def _write_decisions(out: Path, rows: pd.DataFrame) -> str:
    case = ["dataset", "strategy", "ratio", "repetition"]
    wide = rows.pivot_table(index=case, columns="metric", values="value").reset_index()
    write(out / "decisions.csv", wide.to_csv(index=False, float_format="%.5g"))
    texts = ["## Decisions\n"]
    classes = wide[wide["dataset"].isin(wide.loc[wide.get("auc", wide["area"]).notna() &
                                                 (wide["ratio"] >= 0), "dataset"])]  # fmt: skip
    numbers = wide[~wide["dataset"].isin(classes["dataset"])]
    if len(classes):
        means = _over_tables(in_common(classes[classes["ratio"] >= 0]), ["strategy", "ratio"])
        shown = ["accuracy", "decided", "calibration", "auc", "log_loss"]
        frame = means[["strategy", "ratio", *shown]]
        texts.append(markdown(frame, {"ratio": ".2f"} | dict.fromkeys(shown, ".3f")))
        draw_decisions(frame, out)
        texts.append(_certain_by_table(in_common(classes[classes["ratio"] >= 0])))
    for name, part in (("Classification", classes), ("Regression", numbers)):
        if len(part):
            means = _over_tables(part[part["ratio"] < 0], ["strategy"])
            frame = means[["strategy", "area", "at_random"]]
            frame = frame.assign(ratio=frame["area"] / frame["at_random"])
            texts.append(f"### {name}: area below the risk by coverage\n")
            texts.append(markdown(frame, dict.fromkeys(frame.columns[1:], ".3f")))
            if {"ours", "hgb", "catboost"} <= set(part["strategy"]):
                areas = part.pivot_table(index="dataset", columns="strategy", values="area")
                ratio = (areas["ours"] / areas[["hgb", "catboost"]].min(axis=1)).mean()
                texts.append(
                    f"Ours over the better of HGB and CatBoost, mean of tables: {ratio:.3f}\n"
                )
    return "\n".join(texts)


def _certain_by_table(frame: pd.DataFrame) -> str:
    """Return the accuracy of certain predictions by table, and of all of them together."""
    shown = frame[frame["strategy"].isin(("ours", "hgb"))]
    by_table = shown.pivot_table(
        index=["strategy", "dataset"], columns="ratio", values="accuracy"
    ).reset_index()
    right = frame.assign(right=frame["accuracy"] * frame["decided"])
    sums = right.groupby(["strategy", "ratio"])[["right", "decided"]].sum()
    pooled = (sums["right"] / sums["decided"]).unstack().reset_index()
    texts = ["### Accuracy of certain predictions by table\n"]
    for part in (by_table, pooled):
        part.columns = [c if isinstance(c, str) else f"{c:.0%}" for c in part.columns]
        texts.append(markdown(part, {name: ".3f" for name in part if name.endswith("%")}))
        texts.append("All certain predictions of all tables together:\n")
    return "\n".join(texts[:-1])


def in_common(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the lines of tables on which every model has certain predictions at every share."""
    counted = frame.groupby(["dataset", "strategy", "ratio"])["accuracy"].mean()
    complete = counted.notna().groupby("dataset").all()
    return frame[frame["dataset"].map(complete)]


def _over_tables(frame: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """Return the mean over tables of the means over seeds."""
    by_table = frame.groupby([*keys, "dataset"]).mean(numeric_only=True)
    return by_table.drop(columns="repetition").groupby(level=keys).mean().reset_index()


def draw_decisions(frame: pd.DataFrame, out: Path) -> None:
    """Draw accuracy and share of certain decisions, and calibration, by the share missing."""
    titles = {
        "accuracy": f"Accuracy where p ≥ {CERTAIN:g}",
        "decided": f"Share of rows with p ≥ {CERTAIN:g}",
        "calibration": "Calibration error",
    }
    for dark in (False, True):
        # Ours, and the rival that is also trained with removed values, in colour.
        colors = {"ours": "#fb923c" if dark else "#c2410c"}
        colors["mean+indicator+augment"] = "#79b8ff" if dark else "#2563a8"
        grey, other = ("#8b949e", "#b1bac4") if dark else ("#9aa0a8", "#5b616b")
        with reporting.figure(1, 3, figsize=(10.5, 3.3), dark=dark) as (fig, axes):
            for ax, (metric, title) in zip(axes[0], titles.items(), strict=True):
                ends = {}
                for name, lines in frame.groupby("strategy"):
                    ours = name == "ours"
                    look = {"color": colors.get(name, grey), "lw": 2.6 if ours else 1.4}
                    ax.plot(lines["ratio"], lines[metric], "o-", ms=3, zorder=2 + ours, **look)
                    ends[name] = lines[metric].iloc[-1]
                ax.set(title=title, xlabel="share of the values missing", xlim=(-0.03, 1.32))
                ax.set_ylim(min(0, ax.get_ylim()[0]) if metric != "accuracy" else None, None)
                low, high = ax.get_ylim()
                for name, place in reporting.spread(ends, 0.075 * (high - low)).items():
                    ax.text(0.79, place, NAMES[name], va="center", fontsize=8,
                            color=colors.get(name, other))  # fmt: skip
                ax.set_xticks(SHARES, [f"{share:.0%}" for share in SHARES])
            reporting.save(fig, out, "decisions-dark" if dark else "decisions", transparent=True)


def _write_acquisition(out: Path, rows: pd.DataFrame) -> str:
    wide = rows.pivot_table(
        index=["dataset", "strategy", "repetition"], columns="metric", values="value"
    ).reset_index()
    write(out / "acquisition.csv", wide.to_csv(index=False, float_format="%.5g"))
    shown = [name for name in wide.columns if name not in ("dataset", "strategy", "repetition")]
    means = wide.groupby(["dataset", "strategy"])[shown].mean().reset_index()
    means["errors away"] = means["difference"] / means["error"].replace(0, np.nan)
    text = "## Acquisition\n\n" + markdown(
        means, dict.fromkeys(shown, ".4f") | {"errors away": ".1f", "first_useless": ".1f"}
    )
    ours = wide[wide["strategy"] == "global"]
    worse = int((ours["difference"] > 2 * ours["error"]).sum())
    return text + (
        f'\n"global" is worse than the better order by more than two standard errors in {worse} '
        f"of {len(ours)} runs.\n"
    )


_WRITERS: dict[str, Callable[[Path, pd.DataFrame], str]] = {
    "decisions": _write_decisions,
    "coverage": _write_coverage,
    "synthetic": _write_synthetic,
    "acquisition": _write_acquisition,
}
