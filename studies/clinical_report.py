"""What the clinical study found: tables and figures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from promissing import datasets
from promissing.compare import strategies
from promissing.inspection import Effects, Trajectories
from promissing.inspection.displays import (
    CounterfactualDisplay,
    ModalityDecisionDisplay,
    TrajectoryDisplay,
)
from studies import looks
from studies._clinical_tasks import COHORT, KINDS
from studies.clinical import FADING
from studies.store import read, read_about, read_arrays
from studies.tables import markdown, write

__all__ = ["report", "summarise"]


def report(out: Path) -> None:
    """Write tables and figures beside `out`/results.sqlite."""
    path = out / "results.sqlite"
    results, arrays, about = read(path), read_arrays(path), read_about(path)
    scores = summarise(results)
    write(out / "scores.csv", scores.to_csv(index=False))
    write(out / "scores.md", _scores_as_markdown(scores))
    _draw_scores(scores, out)
    fading = results[results["mechanism"] == "fading"]
    if len(fading):
        write(out / "fading.csv", fading.drop(columns="seconds").to_csv(index=False))
        write(out / "fading.md", _fading_as_markdown(fading))
    for table in about["settings"]["tables"]:
        _draw_fading(arrays, table, out)
    known = results[results["mechanism"] == "knowing"]
    if len(known):
        write(out / "knowing.csv", known.drop(columns="seconds").to_csv(index=False))
        write(out / "knowing.md", _knowing_as_markdown(known))
        _draw_knowing(known, arrays, out)
    importance = results[results["mechanism"].str.startswith("why: ")]
    if len(importance):
        wide = importance.assign(modality=importance["mechanism"].str.removeprefix("why: "))
        wide = wide.pivot_table(index="modality", columns="metric", values="value").reset_index()
        wide = wide.sort_values("truth", ascending=False)
        write(out / "importance.csv", wide.to_csv(index=False))
        formats = dict.fromkeys(("importance", "standard_error", "truth"), ".3f")
        write(out / "importance.md", markdown(wide, formats))
        _draw_why(arrays, out)


def summarise(results: pd.DataFrame) -> pd.DataFrame:
    """AUC and Brier score by table and strategy.

    A repetition's score is the mean over its folds; mean and deviation are over repetitions.
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
    shown = pd.DataFrame(
        {
            "table": scores["table"],
            "strategy": [looks.title(name) for name in scores["strategy"]],
            "AUC": [_both(*pair) for pair in zip(scores["auc"], scores["auc_sd"], strict=True)],
            "Brier score": [
                _both(*pair) for pair in zip(scores["brier"], scores["brier_sd"], strict=True)
            ],
            "seconds a fold": scores["seconds"],
        }
    )
    return markdown(shown, {"seconds a fold": ".2f"})


def _both(mean: float, sd: float) -> str:
    return f"{mean:.3f}" if np.isnan(sd) else f"{mean:.3f} ± {sd:.3f}"


def _fading_as_markdown(fading: pd.DataFrame) -> str:
    lines = []
    for (table, name), group in fading.groupby(["dataset", "strategy"], sort=False):
        single = group[group["ratio"].isna()].set_index("metric")["value"]
        steps = group[group["metric"] == "distance"].sort_values("ratio")["value"].to_numpy()
        lines.append(
            {
                "table": table,
                "strategy": looks.title(name),
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
                "strategy": looks.title(name),
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
    with looks.figure(rows, columns, sharey=True, figsize=size) as (fig, axes):
        for ax in axes.ravel()[len(tables) :]:
            ax.set_axis_off()
        for ax, table in zip(axes.ravel(), tables, strict=False):
            mine = scores[scores["table"] == table].set_index("strategy").reindex(names)
            for place, name in enumerate(names[::-1]):
                style, line = looks.look(name), mine.loc[name]
                ax.errorbar(line["auc"], place, xerr=np.nan_to_num(line["auc_sd"]),
                            color=style.color, marker=style.mark, ms=7, capsize=3)  # fmt: skip
            ax.set_yticks(range(len(names)), [looks.title(name) for name in names[::-1]])
            ax.set_title(table)
        fig.supxlabel("AUC, mean and deviation over repetitions", fontsize=9)
        looks.save(fig, out, "scores")


def _draw_fading(arrays: dict[str, Any], table: str, out: Path) -> None:
    found: dict[str, Trajectories] = {}
    for name in FADING:
        kept = arrays.get(f"fading/{table}/{name}")
        if kept:
            predictions = kept["predictions"].astype(float)
            size = predictions.shape[2] - 1
            found[looks.title(name)] = Trajectories(
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
    with looks.figure(1, len(found), sharey=True, figsize=size) as (fig, axes):
        TrajectoryDisplay(found).plot(ax=axes[0], bands=False)
        for ax in axes[0]:
            ax.set_xlabel("modalities made unknown")
        axes[0, 0].set_ylabel("probability of remission" if table == COHORT else "probability")
        looks.save(fig, out, f"fading_{table}")


def _draw_knowing(known: pd.DataFrame, arrays: dict[str, Any], out: Path) -> None:
    names = [name for name in FADING if name in set(known["strategy"])]
    panels = {"calibration_error": "calibration error", "brier": "Brier score",
              "distance": "mean distance from the prior"}  # fmt: skip
    with looks.figure(1, 4, figsize=(14, 3.4)) as (fig, axes):
        for ax, (metric, label) in zip(axes[0], panels.items(), strict=False):
            for name in names:
                style = looks.look(name)
                chosen = known[(known["metric"] == metric) & (known["strategy"] == name)]
                chosen = chosen.sort_values("ratio")
                ax.plot(chosen["ratio"], chosen["value"], color=style.color, ls=style.line,
                        marker=style.mark, ms=4, lw=1.4, label=looks.title(name))  # fmt: skip
            ax.set(xlabel="share of the modalities missing", title=label)
            ax.set_ylim(bottom=0)
        for name in names:
            style = looks.look(name)
            coverage, accuracy = arrays[f"knowing/{COHORT}/{name}"]["coverage"]
            axes[0, 3].plot(coverage, accuracy, color=style.color, ls=style.line, lw=1.4)
        axes[0, 3].set(
            xlabel="share decided, the most certain first", title="accuracy", xlim=(0, 1)
        )
        handles, labels = axes[0, 0].get_legend_handles_labels()
        fig.legend(handles, labels, loc="outside right center")
        looks.save(fig, out, "knowing")


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

    looks.save(display.figure_, out, name)
    plt.close(display.figure_)
