"""The paper's simulation study: XOR with missing values, learning curves and neutralizers.

A repetition draws 1,000 points, removes values from one random column, splits the points into two
halves and trains the network of every strategy, all from the same initial weights. The settings
are those of the paper. `docs/simulation.md` discusses the results.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import ranksums

from promissing import missingness
from promissing._formula import COMPENSATIONS, Layout, neutralizers
from promissing.compare import strategies
from promissing.datasets import make_xor
from promissing.networks.losses import LogLoss
from studies import reporting
from studies.networks import Job, Training, auc, run_jobs
from studies.reporting import markdown, write_table
from studies.runner import Batch, Outcome, Row, Summary, read, run, write

__all__ = ["KINDS", "MECHANISMS", "OURS", "RATIOS", "STRATEGIES", "check_at_least"]
__all__ += ["check_mechanisms", "draw", "kinds_of", "report", "run_study", "simulate", "summarise"]

Array = NDArray[Any]

MECHANISMS = ("mcar", "mar", "mnar")
RATIOS = (0.3, 0.5)
# The other boosters add nothing to HGB here.
STRATEGIES = tuple(
    name for name in strategies.NAMES if name not in ("lightgbm", "xgboost", "catboost")
)
TESTS = ("complete", "incomplete")
HIDDEN = (4,)
TOGETHER = 20  # Repetitions in a batch.
OURS = ("promissing", "mpromissing", "fpromissing")
# Strategies in colour in the figures; all others are grey.
HIGHLIGHTED = {"full": "#111111", "mean": "#1f7a6d", "mean+indicator": "#3b5ba9",
               "knn": "#6a4c93", "mpromissing": "#c2410c"}  # fmt: skip
KINDS = ("zero", "mean of a feature", "extreme", "own view")
MOST = 0.25  # A larger bias is written as a number and not drawn to scale.
NOISE = 0.25  # The deviation of the points around their corner.


def run_study(
    out: Path,
    *,
    repetitions: int = 100,
    mechanisms: Sequence[str] = MECHANISMS,
    ratios: Sequence[float] = RATIOS,
    names: Sequence[str] = STRATEGIES,
    epochs: int = 400,
    seed: int = 0,
    **how: Any,
) -> Summary:
    """Run the study, or the rest of it, and store the results in `out`.

    Parameters
    ----------
    out : Path
        Directory for the results.
    repetitions : int, default=100
        Number of repetitions.
    mechanisms, ratios, names : sequences
        How values are removed, which share of them, and the strategies.
    epochs : int, default=400
        Epochs of every network.
    seed : int, default=0
        Random seed.
    **how
        `resume`, `jobs` and `progress` of `studies.runner.run`.
    """
    names = strategies.check(names)
    mechanisms, ratios = check_mechanisms(mechanisms, ratios)
    check_at_least(1, repetitions=repetitions, epochs=epochs)
    shared = {"names": list(names), "epochs": epochs, "seed": seed}
    batches = []
    for mechanism, ratio in product(mechanisms, ratios):
        for start in range(0, repetitions, TOGETHER):
            some = list(range(start, min(start + TOGETHER, repetitions)))
            arguments = {"mechanism": mechanism, "ratio": ratio, "repetitions": some, **shared}
            batches.append(Batch(f"{mechanism}/{ratio:g}/{start:03d}", simulate, arguments))
    settings = {"repetitions": repetitions, "mechanisms": list(mechanisms), "ratios": list(ratios)}
    settings |= {"strategies": list(names), "epochs": epochs, "seed": seed}
    return run("simulation", batches, out, settings=settings, **how)


def check_at_least(least: int, **values: int | None) -> None:
    """Refuse a value that is too small. None means that it was not given."""
    for name, value in values.items():
        if value is not None and value < least:
            raise ValueError(f"`{name}` must be at least {least}. Received: {value}")


def check_mechanisms(
    mechanisms: Sequence[str], ratios: Sequence[float]
) -> tuple[tuple[str, ...], tuple[float, ...]]:
    """The mechanisms and ratios without duplicates, if they are valid."""
    for name in mechanisms:
        if name not in MECHANISMS:
            known = ", ".join(MECHANISMS)
            raise ValueError(f"There is no mechanism {name!r} in this study. They are: {known}.")
    for ratio in ratios:
        if not 0 <= ratio <= 1:
            raise ValueError(f"A ratio must lie between 0 and 1. Received: {ratio}")
    if not mechanisms or not ratios:
        raise ValueError("Name at least one mechanism and one ratio.")
    return tuple(dict.fromkeys(mechanisms)), tuple(dict.fromkeys(map(float, ratios)))


class World(NamedTuple):
    """The data of one repetition: one half for training, the other for testing."""

    X_full: Array  # (n, 2)
    X_train: Array  # The same with missing values.
    y_train: Array
    tests: tuple[Array, Array]  # Complete and incomplete.
    y_test: Array


def draw(mechanism: str, ratio: float, repetition: int, seed: int, n: int = 1000) -> World:
    """Draw points, remove values from one random column, and split the points into halves.

    Points and halves depend on the repetition and not on the mechanism.
    """
    X, y = make_xor(n, random_state=np.random.default_rng([seed, repetition, 0]))
    rng = np.random.default_rng(
        [seed, repetition, 1, MECHANISMS.index(mechanism), int(ratio * 1e6)]
    )
    gaps = missingness.Mechanism(mechanism)(X, ratio=ratio, random_state=rng, n_columns=1)
    order = np.random.default_rng([seed, repetition, 2]).permutation(n)
    train, test = order[: n // 2], order[n // 2 :]
    return World(X[train], gaps[train], y[train], (X[test], gaps[test]), y[test])


def simulate(
    mechanism: str,
    ratio: float,
    repetitions: Sequence[int],
    names: Sequence[str],
    epochs: int,
    seed: int,
) -> Outcome:
    """Train and score all strategies for some repetitions of one mechanism and ratio."""
    recipe = Training(LogLoss(), "tanh", learning_rate=0.1, batch_size=10, epochs=epochs)
    nets = [name for name in names if strategies.STRATEGIES[name].family != "trees"]
    worlds = [draw(mechanism, ratio, r, seed) for r in repetitions]
    plans = [(k, name, i) for k, name in enumerate(nets) for i in range(len(worlds))]
    jobs, spent, able = [], [], []
    for number, (_, name, i) in enumerate(plans):
        start = perf_counter()
        job = _job(name, worlds[i], (seed, repetitions[i], 3))
        spent.append(perf_counter() - start)
        if job is not None:
            jobs.append(job)
            able.append(number)
    labels = np.stack([worlds[plans[number][2]].y_test for number in able])[:, None]

    def watch(outputs: Array, numbers: list[int]) -> Array:
        return auc(labels[numbers], outputs.reshape(len(numbers), 2, -1)).astype(np.float32)

    trainees = dict(zip(able, run_jobs(jobs, recipe, watch=watch), strict=True))
    rows: list[Row] = []

    def record(name: str, repetition: int, scores: Any, seconds: float) -> None:
        for test, value in zip(TESTS, scores, strict=True):
            metric = f"auc_{test}"
            rows.append(
                Row("xor", mechanism, ratio, name, repetition, 0, metric, float(value), seconds)
            )

    curves = np.full((len(nets), len(worlds), 2, epochs), np.nan, np.float32)
    arrays: dict[str, Array] = {
        f"neutralizers/{name}": np.full((len(worlds), *HIDDEN, 2), np.nan, np.float32)
        for name in nets
        if strategies.STRATEGIES[name].family == "native"
    }
    for number, (k, name, i) in enumerate(plans):
        seconds = spent[number]
        if number in trainees:
            trainee = trainees[number]
            seconds += trainee.seconds
            curves[k, i] = trainee.outputs
            if f"neutralizers/{name}" in arrays:
                arrays[f"neutralizers/{name}"][i] = _read_out(trainee.params, name)
        record(name, repetitions[i], curves[k, i, :, -1], seconds)
    for name in names:
        for i, world in enumerate(worlds if name not in nets else ()):
            start = perf_counter()
            model = strategies.make(name, "classification", random_state=repetitions[i])
            model.fit(world.X_train, world.y_train)
            scores = [auc(world.y_test, model.predict_proba(X)[:, 1]) for X in world.tests]
            record(name, repetitions[i], scores, perf_counter() - start)
    arrays["auc"] = curves
    arrays["observed"] = np.stack([_observed(world.X_train) for world in worlds])
    return Outcome(rows, arrays)


def _job(name: str, world: World, seed: tuple[int, ...]) -> Job | None:
    """The job of a strategy; None if no row or no column is left."""
    train, tests = world.X_train, world.tests
    if name == "full":
        train, tests = world.X_full, (world.tests[0],) * 2
    ready = strategies.prepare(name, train, tests, random_state=seed[1])
    if not len(ready.rows) or not ready.train.shape[1]:
        return None
    compensation = strategies.STRATEGIES[name].compensation
    others = np.concatenate(ready.others)
    return Job(ready.train, world.y_train, ready.rows, others, compensation, HIDDEN, seed)


def _read_out(params: dict[str, Array], name: str) -> Array:
    """The neutralizers (s, p) of a trained network."""
    weight = params.get("compensation_weight")
    compensation = COMPENSATIONS[strategies.STRATEGIES[name].compensation]
    layout = Layout(2).arrays(np, per_feature=compensation.per_feature)
    kernel, bias = params["kernel_0"], params["bias_0"]
    return neutralizers(kernel, bias, weight, layout, compensation, xp=np)


def _observed(X: Array) -> Array:
    """Minimum, mean and maximum of the observed values of every column (p, 3)."""
    if np.isnan(X).all(axis=0).any():
        return np.full((X.shape[1], 3), np.nan)
    return np.stack([np.nanmin(X, 0), np.nanmean(X, 0), np.nanmax(X, 0)], axis=1)


# The report


def report(out: Path) -> None:
    """Write the tables and figures of the results in `out`."""
    results, arrays, about = read(out)
    settings = about["settings"]
    summary = summarise(results)
    write_table(out, "summary", summary, _as_markdown(summary))
    nets = [n for n in settings["strategies"] if strategies.STRATEGIES[n].family != "trees"]
    curves = _collect(arrays, "auc", axis=1)
    curves_table = _curve_table(curves, nets)
    write(out / "curves.csv", curves_table.to_csv(index=False, float_format="%.5f"))
    kinds = _kind_table(arrays)
    if len(kinds):
        write_table(out, "kinds", kinds, markdown(kinds))
        _draw_neutralizers(arrays, kinds, settings["seed"], out)
    for ratio in sorted(set(curves_table["ratio"])):
        draw_curves(curves_table, ratio, out)
    _draw_biases(summary, out)
    _draw_data(settings, out)


def summarise(results: pd.DataFrame) -> pd.DataFrame:
    """Mean and deviation of the AUC, both biases, and rank-sum tests against ours.

    *Training bias* is the AUC of the full model minus the AUC of the strategy, both on the complete
    test set. *Test bias* is the AUC on the complete minus the AUC on the incomplete test set.
    `p_promissing` and `p_mpromissing` are two-sided; they are missing for the strategy itself.
    """
    wide = results.pivot_table(
        index=["mechanism", "ratio", "strategy", "repetition"],
        columns="metric",
        values="value",
        dropna=False,
        observed=True,
    )
    wide["seconds"] = results.groupby(wide.index.names)["seconds"].first()
    lines = []
    order = wide.groupby(level=["mechanism", "ratio"])
    for (mechanism, ratio), cell in sorted(order, key=lambda one: _place(*one[0])):
        cell = cell.droplevel(["mechanism", "ratio"])
        here = list(dict.fromkeys(cell.index.get_level_values("strategy")))
        for name in sorted(here, key=strategies.NAMES.index):
            mine = cell.loc[name]
            line = {"mechanism": mechanism, "ratio": ratio, "strategy": name}
            for test in TESTS:
                scores = mine[f"auc_{test}"].dropna()
                line |= {f"auc_{test}": scores.mean(), f"sd_{test}": scores.std(ddof=1)}
            if "full" in here:
                full = cell.loc["full"]["auc_complete"].mean()
                line["training_bias"] = full - line["auc_complete"]
            line["test_bias"] = line["auc_complete"] - line["auc_incomplete"]
            for ours in ("promissing", "mpromissing"):
                for test in TESTS:
                    if ours in here and ours != name:
                        both = (one[f"auc_{test}"].dropna() for one in (cell.loc[ours], mine))
                        line[f"p_{ours}_{test}"] = float(ranksums(*both).pvalue)
            line["seconds"] = mine["seconds"].mean()
            lines.append(line)
    return pd.DataFrame(lines)


def _place(mechanism: str, ratio: float) -> tuple[int, float]:
    return MECHANISMS.index(mechanism), ratio


def _as_markdown(summary: pd.DataFrame) -> str:
    parts = []
    for (mechanism, ratio), cell in summary.groupby(["mechanism", "ratio"], sort=False):
        shown = pd.DataFrame({"strategy": [reporting.title(name) for name in cell["strategy"]]})
        for test in TESTS:
            pairs = zip(cell[f"auc_{test}"], cell[f"sd_{test}"], strict=True)
            shown[f"AUC, {test} test"] = [f"{mean:.3f} ± {sd:.3f}" for mean, sd in pairs]
        names = {"training_bias": "training bias", "test_bias": "test bias"}
        for ours, label in (("promissing", "PROMISSING"), ("mpromissing", "mPROMISSING")):
            names |= {f"p_{ours}_{test}": f"p, {label}, {test}" for test in TESTS}
        for column, label in names.items():
            if column in cell:
                style = ".0e" if column.startswith("p_") else ".3f"
                shown[label] = [
                    "" if np.isnan(v) else _p(v) if style == ".0e" else f"{v:.3f}"
                    for v in cell[column]
                ]
        parts.append(f"### {mechanism.upper()}, {ratio:.0%} missing\n\n{markdown(shown)}")
    return "\n".join(parts)


def _p(value: float) -> str:
    return f"{value:.2f}" if value >= 0.01 else f"{value:.0e}"


def _collect(arrays: dict[str, Any], name: str, axis: int) -> dict[tuple[str, float], Array]:
    """The arrays of one name by mechanism and ratio, with all repetitions joined."""
    found: dict[tuple[str, float], list[Array]] = {}
    for batch in sorted(arrays):
        if name in arrays[batch]:
            mechanism, ratio, _ = batch.split("/")
            found.setdefault((mechanism, float(ratio)), []).append(arrays[batch][name])
    return {
        key: np.concatenate(found[key], axis) for key in sorted(found, key=lambda k: _place(*k))
    }


def _curve_table(curves: dict[tuple[str, float], Array], nets: Sequence[str]) -> pd.DataFrame:
    """Mean and deviation by epoch: the first ten epochs, then every tenth."""
    lines = []
    for (mechanism, ratio), values in curves.items():
        epochs = np.arange(1, values.shape[-1] + 1)
        for e in epochs[(epochs <= 10) | (epochs % 10 == 0)]:
            for k, name in enumerate(nets):
                for t, test in enumerate(TESTS):
                    seen = values[k, :, t, e - 1]
                    seen = seen[~np.isnan(seen)]
                    if len(seen) > 1:
                        spread = seen.mean(dtype=float), seen.std(ddof=1, dtype=float)
                        lines.append((mechanism, ratio, name, test, e, *spread))
    columns = ["mechanism", "ratio", "strategy", "test", "epoch", "mean", "sd"]
    return pd.DataFrame(lines, columns=columns)


def kinds_of(u: Array, observed: Array) -> str:
    """The kind of solution of one network, from its neutralizers (s, 2).

    The first kind that applies, where "near" means within 0.25, the deviation of the points around
    their corner:

    - "zero": every neutralizer is near 0, as in zero imputation;
    - "mean of a feature": for some feature, the neutralizers of all neurons are near its mean;
    - "extreme": some neutralizer lies outside the observed range of its feature;
    - "own view": otherwise, where each neuron replaces a missing value by a value of its own.
    """
    low, mean, high = observed[:, 0], observed[:, 1], observed[:, 2]
    if (np.abs(u) <= NOISE).all():
        return KINDS[0]
    if (np.abs(u - mean) <= NOISE).all(axis=0).any():
        return KINDS[1]
    if ((u < low) | (u > high)).any():
        return KINDS[2]
    return KINDS[3]


def _kind_table(arrays: dict[str, Any]) -> pd.DataFrame:
    lines = []
    observed = _collect(arrays, "observed", axis=0)
    for name in OURS:
        for key, all_u in _collect(arrays, f"neutralizers/{name}", axis=0).items():
            known = ~np.isnan(all_u).any(axis=(1, 2))
            kinds = [kinds_of(u, o) for u, o in zip(all_u, observed[key], strict=True)]
            counts = {kind: int(np.sum((np.array(kinds) == kind) & known)) for kind in KINDS}
            mechanism, ratio = key
            lines.append({"mechanism": mechanism, "ratio": ratio, "strategy": name, **counts})
    return pd.DataFrame(lines)


def draw_curves(curves: pd.DataFrame, ratio: float, out: Path) -> None:
    """Draw the mean AUC by epoch: the highlighted strategies in colour, all others in grey."""
    curves = curves[curves["ratio"] == ratio]
    mechanisms = list(dict.fromkeys(curves["mechanism"]))
    size = (3.9 * len(mechanisms) + 1.2, 6.0)
    with reporting.figure(2, len(mechanisms), sharex=True, sharey=True, figsize=size) as (
        fig,
        axes,
    ):
        for (t, test), (column, mechanism) in product(enumerate(TESTS), enumerate(mechanisms)):
            ax, ends = axes[t, column], {}
            mine = curves[(curves["mechanism"] == mechanism) & (curves["test"] == test)]
            for name, lines in mine.groupby("strategy", sort=False):
                shown = HIGHLIGHTED.get(name, "#c4c8ce")
                bold = name in HIGHLIGHTED
                ax.plot(lines["epoch"], lines["mean"], color=shown, lw=1.8 if bold else 0.8,
                        zorder=2 + bold)  # fmt: skip
                ends[name] = lines["mean"].iloc[-1]
            ax.set(ylim=(0.65, 1.0), xlim=(0, 1.02 * mine["epoch"].max()))
            if column == len(mechanisms) - 1:
                named = {name: end for name, end in ends.items() if name in HIGHLIGHTED}
                beside = ax.get_yaxis_transform()
                for name, place in reporting.spread(named, 0.024).items():
                    ax.text(1.03, place, reporting.title(name), color=HIGHLIGHTED[name],
                            transform=beside, va="center", fontsize=9)  # fmt: skip
            if t == 0:
                ax.set_title(f"{mechanism.upper()}, {ratio:.0%} of one column missing")
            else:
                ax.set_xlabel("epoch")
            if column == 0:
                ax.set_ylabel(f"AUC, {test} test set")
        reporting.save(fig, out, f"curves_{ratio:g}")


def _draw_biases(summary: pd.DataFrame, out: Path) -> None:
    """Training and test bias of every strategy, one panel per mechanism and ratio."""
    if "training_bias" not in summary:
        return
    cells = list(summary.groupby(["mechanism", "ratio"], sort=False))
    names = [n for n in strategies.NAMES if n in set(summary["strategy"]) and n != "full"]
    size = (2.6 * len(cells) + 1.2, 0.3 * len(names) + 1.3)
    with reporting.figure(1, len(cells), sharey=True, sharex=True, figsize=size) as (fig, axes):
        for ax, ((mechanism, ratio), cell) in zip(axes[0], cells, strict=True):
            rows = cell.set_index("strategy").reindex(names)
            places = np.arange(len(names))[::-1]
            colors = [reporting.LOOKS[name].color for name in names]
            ax.barh(places + 0.2, rows["training_bias"], 0.36, color=colors)
            ax.barh(places - 0.2, rows["test_bias"], 0.36, color=colors, alpha=0.45, hatch="////",
                    edgecolor="white", lw=0)  # fmt: skip
            ax.set_yticks(places, [reporting.title(name) for name in names])
            ax.set_title(f"{mechanism.upper()}, {ratio:.0%}")
            ax.axvline(0, color="#111111", lw=0.8)
            ax.grid(False, axis="y")
            for place, bias in zip(places, rows["training_bias"], strict=True):
                if bias > MOST:
                    ax.annotate(f"{bias:.2f}", (MOST, place + 0.2), ha="right", va="center",
                                fontsize=8, color="white")  # fmt: skip
            ax.set_xlim(right=MOST)
        fig.supxlabel("loss of AUC: training bias (solid), test bias (hatched)", fontsize=9)
        reporting.save(fig, out, "biases")


def _draw_data(settings: dict[str, Any], out: Path) -> None:
    """The training half of the first repetition, and the values that each imputer fills in."""
    fillers = [
        n
        for n in ("zero", "mean", "knn", "iterative", "gain")
        if n in settings["strategies"] and strategies.STRATEGIES[n].family == "imputation"
    ]
    ratio, mechanisms = max(settings["ratios"]), settings["mechanisms"]
    size = (2.1 * (len(fillers) + 1), 2.2 * len(mechanisms) + 0.4)
    shape = (len(mechanisms), len(fillers) + 1)
    with reporting.figure(*shape, sharex=True, sharey=True, figsize=size) as (fig, axes):
        for row, mechanism in enumerate(mechanisms):
            world = draw(mechanism, ratio, 0, settings["seed"])
            lost = np.isnan(world.X_train).any(axis=1)
            tables = {"as drawn": world.X_full}
            for name in fillers:
                ready = strategies.prepare(name, world.X_train, [], random_state=0)
                tables[reporting.title(name)] = ready.train
            for ax, (name, X) in zip(axes[row], tables.items(), strict=True):
                for label, color, mark in ((0, "#3b5ba9", "o"), (1, "#e8871e", "^")):
                    mine = world.y_train == label
                    for points, alpha, size_ in ((mine & ~lost, 0.25, 6), (mine & lost, 0.9, 9)):
                        ax.scatter(*X[points].T, s=size_, c=color, marker=mark, alpha=alpha, lw=0)
                if row == 0:
                    ax.set_title(name)
                ax.set_aspect("equal")
            axes[row, 0].set_ylabel(mechanism.upper())
        fig.supxlabel(
            f"{ratio:.0%} of one column missing: points that lost a value are drawn strongly",
            fontsize=9,
        )
        reporting.save(fig, out, "data")


def _draw_neutralizers(arrays: dict[str, Any], kinds: pd.DataFrame, seed: int, out: Path) -> None:
    """The neutralizers of every network and the simulated points, at the larger ratio."""
    ratio = kinds["ratio"].max()
    name = next(n for n in OURS if n in set(kinds["strategy"]))
    observed = _collect(arrays, "observed", axis=0)
    found = {
        mechanism: u
        for (mechanism, r), u in _collect(arrays, f"neutralizers/{name}", axis=0).items()
        if r == ratio
    }
    colors = dict(zip(KINDS, ("#111111", "#3b5ba9", "#d1495b", "#8a9a5b"), strict=True))
    marks = dict(zip(KINDS, "sD^o", strict=True))
    size = (4.0 * len(found), 4.6)
    with reporting.figure(1, len(found), sharex=True, sharey=True, figsize=size) as (fig, axes):
        for ax, (mechanism, all_u) in zip(axes[0], found.items(), strict=True):
            world = draw(mechanism, ratio, 0, seed)
            for label, color in ((0, "#3b5ba9"), (1, "#e8871e")):
                ax.scatter(*world.X_full[world.y_train == label].T, s=5, c=color, alpha=0.15, lw=0)
            for u, o in zip(all_u, observed[mechanism, ratio], strict=True):
                if not np.isnan(u).any():
                    kind = kinds_of(u, o)
                    ax.scatter(*np.clip(u, -2.4, 3.4).T, s=14, c=colors[kind], marker=marks[kind],
                               alpha=0.65, lw=0)  # fmt: skip
            row = kinds[(kinds["mechanism"] == mechanism) & (kinds["strategy"] == name)]
            row = row[row["ratio"] == ratio].iloc[0]
            ax.set_title(f"{mechanism.upper()}, {ratio:.0%} missing")
            ax.set_xlabel("neutralizer of the first feature")
            ax.set(xlim=(-2.5, 3.5), ylim=(-2.5, 3.5), aspect="equal")
            for kind in KINDS:
                ax.scatter([], [], s=20, c=colors[kind], marker=marks[kind],
                           label=f"{kind}: {row[kind]}")  # fmt: skip
            ax.legend(loc="upper left", fontsize=8)
        axes[0, 0].set_ylabel("neutralizer of the second feature")
        title = f"Neutralizers of {reporting.title(name)}: four per run, and numbers of runs"
        fig.suptitle(title, fontsize=10)
        reporting.save(fig, out, "neutralizers")
