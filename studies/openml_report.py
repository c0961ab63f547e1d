"""The report of the benchmark: drops, ranks, wins, seconds and their figures.

A score is the mean over the folds of a repetition. A *drop* compares a strategy with the network
on the complete table: AUC of the network minus AUC of the strategy, or SMSE of the strategy minus
SMSE of the network. Trees also have a drop against themselves on the complete table. The drop of a
diverged network is infinite: medians include it, means leave it out and count it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from promissing.compare import strategies
from studies import reporting
from studies.openml_tasks import COMPLETE, FOREST, GRID, MECHANISMS
from studies.reporting import markdown, plus_minus, write_table
from studies.runner import read
from studies.simulation import OURS

__all__ = ["baseline", "compare", "drops", "grid", "ranks", "report", "summarise", "timings"]

METRICS = {"auc": "AUC", "smse": "SMSE"}
STRONG = (*OURS, "hgb", "mean+indicator")  # Drawn with thicker lines.
TIE = 0.001  # A smaller difference is a draw.
CELL = ["dataset", "metric", "mechanism", "ratio"]


def report(out: Path) -> None:
    """Write the tables and figures of the results in `out`."""
    results = read(out).rows
    complete = baseline(results)
    _keep(out, "baseline", complete, _pretty(complete))
    _draw_baseline(complete, out)
    found = drops(results)
    single = found[found["mechanism"].isin(MECHANISMS)]
    if len(single):
        summary, ranked = summarise(single), ranks(results)
        _keep(out, "drops", summary, _as_markdown(summary, "mechanism"))
        _keep(out, "ranks", ranked, _pretty(ranked))
        _draw_drops(summary, "mechanism", out, "drops")
        _draw_ranks(ranked, out)
        by_table = _by_table(single)
        _keep(out, "tables", by_table, _tables_as_markdown(by_table))
        _draw_tables(by_table, out)
        wins = compare(results)
        if len(wins):
            _keep(out, "wins", wins, _pretty(wins))
    several = found[found["mechanism"].str.startswith(GRID)]
    if len(several):
        averaged = grid(several)
        _keep(out, "grid", averaged, _as_markdown(averaged, "features"))
        _draw_drops(averaged, "features", out, "grid")
    took = timings(results)
    _keep(out, "seconds", took, _pretty(took))


def _keep(out: Path, name: str, frame: pd.DataFrame, text: str) -> None:
    write_table(out, name, frame, text, float_format="%.6g")


def scores(results: pd.DataFrame) -> pd.DataFrame:
    """The mean over the folds of every repetition; NaN if one of them diverged."""
    known = results[results["metric"].isin(METRICS)]
    folds = known.groupby([*CELL, "strategy", "repetition"], sort=False)["value"]
    return folds.agg(lambda values: values.mean(skipna=False)).rename("score").reset_index()


def drops(results: pd.DataFrame) -> pd.DataFrame:
    """The drop of every score: against the network, and of trees against themselves.

    A table and repetition without a score on complete data, or with a network that diverged on
    complete data, has no drops.
    """
    found = scores(results)
    keys = ["dataset", "metric", "repetition"]
    complete = found[found["mechanism"] == COMPLETE]
    incomplete = found[found["mechanism"] != COMPLETE]
    net = complete[complete["strategy"] == "full"].rename(columns={"score": "reference"})
    against_net = incomplete.merge(net[[*keys, "reference"]], on=keys).assign(against="net")
    trees = [name for name, one in strategies.STRATEGIES.items() if one.family == "trees"]
    own = complete[complete["strategy"].isin(trees)].rename(columns={"score": "reference"})
    own_keys = [*keys, "strategy"]
    against_own = incomplete.merge(own[[*own_keys, "reference"]], on=own_keys).assign(against="own")
    both = pd.concat([against_net, against_own], ignore_index=True).dropna(subset="reference")
    sign = np.where(both["metric"] == "auc", -1.0, 1.0)
    both["drop"] = (sign * (both["score"] - both["reference"])).fillna(np.inf)
    return both.drop(columns=["score", "reference"])


def summarise(found: pd.DataFrame) -> pd.DataFrame:
    """As in the paper: the median over tables in every repetition, then mean and deviation."""
    keys = ["metric", "mechanism", "ratio", "strategy", "against"]
    medians = found.groupby([*keys, "repetition"])["drop"].median()
    groups = medians.groupby(level=keys)
    summary = pd.DataFrame({"drop": groups.mean(), "sd": groups.std(ddof=1)})
    summary["tables"] = found.groupby(keys)["dataset"].nunique()
    summary["repetitions"] = groups.size()
    return _sorted(summary.reset_index())


def grid(found: pd.DataFrame) -> pd.DataFrame:
    """As in the paper: the mean over tables and repetitions, by share of features and of rows."""
    found = found.assign(features=found["mechanism"].str.removeprefix(GRID).astype(float))
    found["finite"] = found["drop"].where(np.isfinite(found["drop"]))
    keys = ["metric", "features", "ratio", "strategy", "against"]
    groups = found.groupby(keys)
    averaged = pd.DataFrame(
        {"drop": groups["finite"].mean(), "tables": groups["dataset"].nunique()}
    )
    averaged["repetitions"] = groups["repetition"].nunique()
    averaged["diverged"] = groups.size() - groups["finite"].count()
    return _sorted(averaged.reset_index())


def _sorted(frame: pd.DataFrame) -> pd.DataFrame:
    """Sort lines by the usual order of strategies and mechanisms."""
    places = {"strategy": strategies.NAMES.index, "mechanism": MECHANISMS.index}
    keys = ("metric", "mechanism", "features", "ratio", "strategy", "against")
    return frame.sort_values(
        [key for key in keys if key in frame],
        key=lambda c: c.map(places[c.name]) if c.name in places else c,
        ignore_index=True,
    )


def _cells(results: pd.DataFrame) -> pd.DataFrame:
    """Scores by table and condition, one column per strategy. Higher is better; -inf is diverged.

    Only conditions with scores of all strategies are kept, so that the comparison is fair.
    """
    found = scores(results)
    found = found[found["mechanism"].isin(MECHANISMS) & (found["strategy"] != "full")].copy()
    found["score"] *= np.where(found["metric"] == "auc", 1.0, -1.0)
    found["score"] = found["score"].fillna(-np.inf)
    wide = found.groupby([*CELL, "strategy"])["score"].mean().unstack("strategy")
    wide = wide[[name for name in strategies.NAMES if name in wide]]
    return wide.dropna()


def ranks(results: pd.DataFrame, *, seed: int = 0) -> pd.DataFrame:
    """Mean ranks over tables and conditions, where 1 is best, with 95 % bootstrap intervals."""
    placed = _cells(results).rank(axis=1, ascending=False)
    lines = []
    rng = np.random.default_rng(seed)
    for metric, cells in [("both", placed), *placed.groupby(level="metric")]:
        means = cells.groupby(level="dataset").mean()
        low, high = reporting.bootstrap(means, rng)
        lines += [
            {"metric": metric, "strategy": name, "rank": mean, "low": a, "high": b}
            | {"tables": len(means)}
            for name, mean, a, b in zip(means, means.mean(), low, high, strict=True)
        ]
    ranked = pd.DataFrame(lines)
    if ranked["metric"].nunique() == 2:  # One kind of table: it and both are the same.
        ranked = ranked[ranked["metric"] != "both"]
    order = {"both": 0, "auc": 1, "smse": 2}
    return ranked.sort_values(
        ["metric", "rank"],
        key=lambda c: c.map(order) if c.name == "metric" else c,
        ignore_index=True,
    )


def compare(results: pd.DataFrame) -> pd.DataFrame:
    """The number of tables on which our strategies win, draw and lose against each rival.

    The mean difference over the conditions of a table decides; less than 0.001 is a draw.
    """
    cells = _cells(results)
    parts = [("all", cells)] + [
        (mechanism, cells[cells.index.get_level_values("mechanism") == mechanism])
        for mechanism in MECHANISMS
    ]
    lines = []
    for mechanism, part in parts:
        for ours in (name for name in OURS if name in part and len(part)):
            for rival in (name for name in part if name != ours):
                with np.errstate(invalid="ignore"):
                    gain = (part[ours] - part[rival]).fillna(0.0)  # Both diverged.
                gain = gain.groupby(level="dataset").mean()
                wins, losses = int((gain >= TIE).sum()), int((gain <= -TIE).sum())
                lines.append(
                    {"mechanism": mechanism, "ours": ours, "rival": rival, "wins": wins}
                    | {"ties": len(gain) - wins - losses, "losses": losses}
                )
    return pd.DataFrame(lines)


def baseline(results: pd.DataFrame) -> pd.DataFrame:
    """Network, random forest and boosting on every complete table: mean and deviation."""
    found = scores(results)
    found = found[found["mechanism"] == COMPLETE]
    groups = found.groupby(["metric", "dataset", "strategy"])["score"]
    wide = groups.mean().unstack("strategy")
    order = [name for name in ("full", FOREST, *strategies.NAMES[1:]) if name in wide]
    spread = groups.std(ddof=1).unstack("strategy")[order].add_suffix("_sd")
    return wide[order].join(spread).reset_index().rename_axis(columns=None)


def timings(results: pd.DataFrame) -> pd.DataFrame:
    """Seconds of one model, from imputation to prediction, and of all models together."""
    known = results[results["metric"].isin(METRICS)]
    groups = known.groupby("strategy")["seconds"]
    found = pd.DataFrame(
        {"mean": groups.mean(), "median": groups.median(), "models": groups.size()}
    )
    found["total"] = groups.sum()
    order = [name for name in (*strategies.NAMES, FOREST) if name in found.index]
    return found.loc[order].reset_index()


def _by_table(found: pd.DataFrame) -> pd.DataFrame:
    """The mean drop of every table over mechanisms, ratios and repetitions; inf if diverged."""
    net = found[found["against"] == "net"]
    wide = net.groupby(["metric", "dataset", "strategy"])["drop"].mean().unstack("strategy")
    wide = wide[[name for name in strategies.NAMES if name in wide]]
    return wide.reset_index().rename_axis(columns=None)


def name_of(strategy: str, against: str = "net") -> str:
    """The name of a strategy in tables."""
    title = "random forest" if strategy == FOREST else reporting.title(strategy)
    return f"{title}, own" if against == "own" else title


def _as_markdown(summary: pd.DataFrame, part: str) -> str:
    """Drops by ratio, a table for every measure and part (a mechanism or a share of features)."""
    texts = []
    for (metric, kind), cell in summary.groupby(["metric", part], sort=False):
        who = [name_of(*both) for both in zip(cell["strategy"], cell["against"], strict=True)]
        spread = cell["sd"] if "sd" in cell else cell["drop"] * np.nan
        text = [plus_minus(*pair) for pair in zip(cell["drop"], spread, strict=True)]
        columns = [f"{ratio:.0%}" for ratio in cell["ratio"]]
        flat = pd.DataFrame({"strategy": who, "ratio": columns, "drop": text})
        shown = flat.pivot(index="strategy", columns="ratio", values="drop")
        shown = shown.loc[list(dict.fromkeys(who)), list(dict.fromkeys(columns))]
        title = f"### {_part_title(kind)}, drop of {metric.upper()}, {cell['tables'].max()} tables"
        if "diverged" in cell and cell["diverged"].any():
            title += f" ({cell['diverged'].sum()} diverged networks left out)"
        texts.append(f"{title}\n\n{markdown(shown.reset_index())}")
    return "\n".join(texts)


def _tables_as_markdown(by_table: pd.DataFrame) -> str:
    shown = by_table.rename(columns={n: reporting.title(n) for n in strategies.NAMES})
    return markdown(shown, dict.fromkeys(shown.columns[2:], ".3f"))


def _pretty(frame: pd.DataFrame) -> str:
    """A frame as Markdown, with titles of strategies and three decimal places."""
    shown = frame.copy()
    for column in ("strategy", "ours", "rival"):
        if column in shown:
            shown[column] = [name_of(name) for name in shown[column]]
    return markdown(shown, dict.fromkeys(shown.select_dtypes("float").columns, ".3f"))


# Figures


def _draw_drops(drops: pd.DataFrame, part: str, out: Path, name: str) -> None:
    """Drops by ratio: a column of panels per mechanism or share of features, a row per measure."""
    metrics = [metric for metric in METRICS if metric in set(drops["metric"])]
    kinds = list(dict.fromkeys(drops[part]))
    several = part == "features"
    labels = ("share of rows", "mean") if several else (
        "share of the most informative column missing", "median")  # fmt: skip
    shape = (len(metrics), len(kinds))
    size = (2.5 * len(kinds) + 1.4, 3.0 * len(metrics)) if several else (
        3.6 * len(kinds) + 1.4, 3.3 * len(metrics))  # fmt: skip
    with reporting.figure(*shape, sharex=True, sharey="row", figsize=size) as (fig, axes):
        for i, j in np.ndindex(shape):
            ax, metric, kind = axes[i, j], metrics[i], kinds[j]
            cell = drops[(drops["metric"] == metric) & (drops[part] == kind)]
            for (strategy, against), line in cell.groupby(["strategy", "against"], sort=False):
                _line(ax, strategy, line, own=against == "own")
            ax.axhline(0, color="#111111", lw=0.8)
            if i == 0:
                ax.set_title(_part_title(kind))
            if i == len(metrics) - 1:
                ax.set_xlabel(labels[0])
            if j == 0:
                ax.set_ylabel(f"drop of {METRICS[metric]}, {labels[1]} of tables")
        _legend(fig, axes)
        reporting.save(fig, out, name)


def _part_title(kind: str | float) -> str:
    return kind.upper() if isinstance(kind, str) else f"{kind:.0%} of the features"


def _line(ax: Any, name: str, line: pd.DataFrame, *, own: bool) -> None:
    style, width = reporting.LOOKS[name], 1.7 if name in STRONG else 1.0
    x, y = line["ratio"], line["drop"].where(np.isfinite(line["drop"]))
    if "sd" in line:
        band = line["sd"].where(np.isfinite(line["sd"]), 0.0)
        ax.fill_between(x, y - band, y + band, color=style.color, alpha=0.08, lw=0)
    label = f"{reporting.title(name)}, own" if own else reporting.title(name)
    fill = "none" if own else style.color
    ax.plot(x, y, color=style.color, ls=style.line, lw=width, marker=style.mark, ms=4, label=label,
            mfc=fill, alpha=0.6 if own else 1.0)  # fmt: skip


def _legend(fig: Any, axes: Any) -> None:
    known: dict[str, Any] = {}
    for ax in axes.flat:
        handles, labels = ax.get_legend_handles_labels()
        known |= dict(zip(labels, handles, strict=True))
    fig.legend(list(known.values()), list(known), loc="outside right center")


def _draw_baseline(complete: pd.DataFrame, out: Path) -> None:
    """The network against the random forest on complete tables, one point per table."""
    metrics = [m for m in METRICS if m in set(complete["metric"])]
    with reporting.figure(1, len(metrics), figsize=(4.4 * len(metrics), 4.4)) as (fig, axes):
        for ax, metric in zip(axes[0], metrics, strict=True):
            cell = complete[complete["metric"] == metric].reset_index(drop=True)
            ax.errorbar(cell[FOREST], cell["full"], xerr=cell[f"{FOREST}_sd"].fillna(0.0),
                        yerr=cell["full_sd"].fillna(0.0), fmt="o", ms=5, lw=0.8,
                        color=reporting.LOOKS["promissing"].color)  # fmt: skip
            for i, table in enumerate(cell["dataset"]):
                if np.isfinite(cell["full"][i]):
                    ax.annotate(table, (cell[FOREST][i], cell["full"][i]), fontsize=5.5,
                                xytext=(3, 3), textcoords="offset points")  # fmt: skip
            both = cell[[FOREST, "full"]].to_numpy()
            ends = (np.nanmin(both), np.nanmax(both))
            ax.plot(ends, ends, color="#111111", lw=0.8, ls="--")
            better = "higher" if metric == "auc" else "lower"
            if metric == "auc":
                ax.set_ylim(top=1.02)  # A deviation may reach beyond what is possible.
            ax.set(xlabel=f"random forest, {METRICS[metric]}",
                   ylabel=f"network, {METRICS[metric]}",
                   title=f"Complete tables ({better} is better)")  # fmt: skip
        reporting.save(fig, out, "baseline")


def _draw_ranks(ranked: pd.DataFrame, out: Path) -> None:
    """Mean ranks with their intervals, best first."""
    kinds = list(dict.fromkeys(ranked["metric"]))
    titles = {"both": "all tables", "auc": "classification", "smse": "regression"}
    tall = 0.27 * ranked["strategy"].nunique() + 1.1
    with reporting.figure(1, len(kinds), figsize=(3.7 * len(kinds), tall)) as (fig, axes):
        for ax, kind in zip(axes[0], kinds, strict=True):
            cell = ranked[ranked["metric"] == kind]
            looks = [reporting.LOOKS[name] for name in cell["strategy"]]
            names = [reporting.title(name) for name in cell["strategy"]]
            reporting.draw_ranks(ax, cell, names, [one.color for one in looks],
                                 [one.mark for one in looks])  # fmt: skip
            n = cell["tables"].max()
            ax.set(xlabel="mean rank, 95 % bootstrap over tables",
                   title=f"{titles[kind]} ({n})")  # fmt: skip
        reporting.save(fig, out, "ranks")


def _draw_tables(by_table: pd.DataFrame, out: Path) -> None:
    """The mean drop of every table and strategy as a heat map."""
    metrics = [m for m in METRICS if m in set(by_table["metric"])]
    columns = [name for name in strategies.NAMES if name in by_table]
    heights = [int((by_table["metric"] == m).sum()) for m in metrics]
    size = (0.62 * len(columns) + 2.6, 0.27 * sum(heights) + 1.6 * len(metrics))
    ratios = {"height_ratios": [h + 1 for h in heights]}
    with reporting.figure(len(metrics), 1, figsize=size, gridspec_kw=ratios) as (fig, axes):
        for ax, metric in zip(axes[:, 0], metrics, strict=True):
            cell = by_table[by_table["metric"] == metric]
            values = cell[columns].to_numpy(float)
            seen = np.abs(values[np.isfinite(values)])
            top = float(np.quantile(seen, 0.95)) if len(seen) else 1.0
            image = ax.imshow(np.clip(values, -top, top), cmap="RdBu_r", vmin=-top or -1,
                              vmax=top or 1, aspect="auto")  # fmt: skip
            for (i, j), value in np.ndenumerate(values):
                dark = np.isfinite(value) and abs(value) < 0.6 * top
                text = "" if np.isnan(value) else f"{value:.2f}"
                ax.text(j, i, text, ha="center", va="center", fontsize=5.5,
                        color="#111111" if dark else "white")  # fmt: skip
            ax.set_xticks(range(len(columns)), [reporting.title(c) for c in columns], rotation=40,
                          ha="right")  # fmt: skip
            ax.set_yticks(range(len(cell)), cell["dataset"])
            ax.grid(False)
            ax.set_title(f"mean drop of {METRICS[metric]}")
            fig.colorbar(image, ax=ax)
        reporting.save(fig, out, "tables")
