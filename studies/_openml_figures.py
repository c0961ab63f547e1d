"""Figures of the benchmark, from the tables of its report."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from promissing.compare import strategies
from studies import looks
from studies._openml_tasks import FOREST, MECHANISMS

__all__ = ["draw_baseline", "draw_drops", "draw_grid", "draw_ranks", "draw_tables"]

MEASURES = {"auc": "AUC", "smse": "SMSE"}
STRONG = ("promissing", "mpromissing", "fpromissing", "hgb", "mean+indicator")


def draw_drops(summary: pd.DataFrame, out: Path) -> None:
    """The drop by ratio: a panel per mechanism, a row for each measure."""
    metrics = [m for m in MEASURES if m in set(summary["metric"])]
    mechanisms = [m for m in MECHANISMS if m in set(summary["mechanism"])]
    size = (3.6 * len(mechanisms) + 1.4, 3.3 * len(metrics))
    shape = (len(metrics), len(mechanisms))
    with looks.figure(*shape, sharex=True, sharey="row", figsize=size) as (fig, axes):
        for i, j in np.ndindex(shape):
            ax, metric, mechanism = axes[i, j], metrics[i], mechanisms[j]
            cell = summary[(summary["metric"] == metric) & (summary["mechanism"] == mechanism)]
            for (name, against), line in cell.groupby(["strategy", "against"], sort=False):
                own = against == "own"
                _line(ax, name, line["ratio"], line["drop"], line["sd"], own=own)
            ax.axhline(0, color="#111111", lw=0.8)
            if i == 0:
                ax.set_title(mechanism.upper())
            if i == len(metrics) - 1:
                ax.set_xlabel("share of the most informative column missing")
            if j == 0:
                ax.set_ylabel(f"drop of {MEASURES[metric]}, median of tables")
        _legend(fig, axes)
        looks.save(fig, out, "drops")


def draw_grid(averaged: pd.DataFrame, out: Path) -> None:
    """The drop by the share of rows, a panel for every share of features."""
    metrics = [m for m in MEASURES if m in set(averaged["metric"])]
    shares = sorted(set(averaged["features"]))
    size = (2.5 * len(shares) + 1.4, 3.0 * len(metrics))
    shape = (len(metrics), len(shares))
    with looks.figure(*shape, sharex=True, sharey="row", figsize=size) as (fig, axes):
        for i, metric in enumerate(metrics):
            for j, share in enumerate(shares):
                ax = axes[i, j]
                cell = averaged[(averaged["metric"] == metric) & (averaged["features"] == share)]
                for (name, against), line in cell.groupby(["strategy", "against"], sort=False):
                    _line(ax, name, line["ratio"], line["drop"], None, own=against == "own")
                ax.axhline(0, color="#111111", lw=0.8)
                if i == 0:
                    ax.set_title(f"{share:.0%} of the features")
                if i == len(metrics) - 1:
                    ax.set_xlabel("share of rows")
                if j == 0:
                    ax.set_ylabel(f"drop of {MEASURES[metric]}, mean of tables")
        _legend(fig, axes)
        looks.save(fig, out, "grid")


def _line(ax: Any, name: str, x: Any, y: Any, sd: Any, *, own: bool) -> None:
    style, width = looks.look(name), 1.7 if name in STRONG else 1.0
    y = y.where(np.isfinite(y))
    if sd is not None:
        band = sd.where(np.isfinite(sd), 0.0)
        ax.fill_between(x, y - band, y + band, color=style.color, alpha=0.08, lw=0)
    label = f"{looks.title(name)}, own" if own else looks.title(name)
    fill = "none" if own else style.color
    ax.plot(x, y, color=style.color, ls=style.line, lw=width, marker=style.mark, ms=4, label=label,
            mfc=fill, alpha=0.6 if own else 1.0)  # fmt: skip


def _legend(fig: Any, axes: Any) -> None:
    known: dict[str, Any] = {}
    for ax in axes.flat:
        handles, labels = ax.get_legend_handles_labels()
        known |= dict(zip(labels, handles, strict=True))
    fig.legend(list(known.values()), list(known), loc="outside right center")


def draw_baseline(complete: pd.DataFrame, out: Path) -> None:
    """The network against the random forest on complete tables, one point per table."""
    metrics = [m for m in MEASURES if m in set(complete["metric"])]
    with looks.figure(1, len(metrics), figsize=(4.4 * len(metrics), 4.4)) as (fig, axes):
        for ax, metric in zip(axes[0], metrics, strict=True):
            cell = complete[complete["metric"] == metric].reset_index(drop=True)
            ax.errorbar(cell[FOREST], cell["full"], xerr=cell[f"{FOREST}_sd"].fillna(0.0),
                        yerr=cell["full_sd"].fillna(0.0), fmt="o", ms=5, lw=0.8,
                        color=looks.look("promissing").color)  # fmt: skip
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
            ax.set(xlabel=f"random forest, {MEASURES[metric]}",
                   ylabel=f"network, {MEASURES[metric]}",
                   title=f"Complete tables ({better} is better)")  # fmt: skip
        looks.save(fig, out, "baseline")


def draw_ranks(ranked: pd.DataFrame, out: Path) -> None:
    """Mean ranks with their intervals, best first."""
    kinds = list(dict.fromkeys(ranked["metric"]))
    names = {"both": "all tables", "auc": "classification", "smse": "regression"}
    tall = 0.27 * ranked["strategy"].nunique() + 1.1
    with looks.figure(1, len(kinds), figsize=(3.7 * len(kinds), tall)) as (fig, axes):
        for ax, kind in zip(axes[0], kinds, strict=True):
            cell = ranked[ranked["metric"] == kind].reset_index(drop=True)
            places = np.arange(len(cell))[::-1]
            for i, line in cell.iterrows():
                style, y = looks.look(line["strategy"]), places[i]
                ax.plot([line["low"], line["high"]], [y, y], color=style.color, lw=2.2, alpha=0.6)
                ax.plot(line["rank"], y, marker=style.mark, color=style.color, ms=6)
            ax.set_yticks(places, [looks.title(name) for name in cell["strategy"]])
            ax.grid(False, axis="y")
            n = cell["tables"].max()
            ax.set(xlabel="mean rank, 95 % bootstrap over tables",
                   title=f"{names[kind]} ({n})")  # fmt: skip
        looks.save(fig, out, "ranks")


def draw_tables(by_table: pd.DataFrame, out: Path) -> None:
    """The mean drop of every table and strategy as a heat map."""
    metrics = [m for m in MEASURES if m in set(by_table["metric"])]
    columns = [name for name in strategies.NAMES if name in by_table]
    heights = [int((by_table["metric"] == m).sum()) for m in metrics]
    size = (0.62 * len(columns) + 2.6, 0.27 * sum(heights) + 1.6 * len(metrics))
    ratios = {"height_ratios": [h + 1 for h in heights]}
    with looks.figure(len(metrics), 1, figsize=size, gridspec_kw=ratios) as (fig, axes):
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
            ax.set_xticks(range(len(columns)), [looks.title(c) for c in columns], rotation=40,
                          ha="right")  # fmt: skip
            ax.set_yticks(range(len(cell)), cell["dataset"])
            ax.grid(False)
            ax.set_title(f"mean drop of {MEASURES[metric]}")
            fig.colorbar(image, ax=ax)
        looks.save(fig, out, "tables")
