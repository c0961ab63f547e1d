"""What the benchmark found: drops, ranks, wins, seconds, and figures of them.

A score is the mean over the folds of a repetition. A *drop* is what gaps cost against the network
on the complete table: its AUC minus the strategy's, or the strategy's SMSE minus its. Trees also
have one against themselves on the complete table. A diverged network counts as worse than all:
its drop is infinite, which a median bears; where drops are averaged it is left out and counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from promissing.compare import strategies
from studies import _openml_figures as figures
from studies import looks
from studies._openml_tasks import COMPLETE, FOREST, GRID, MECHANISMS
from studies.store import FILE, read
from studies.tables import markdown, write

__all__ = ["baseline", "compare", "drops", "grid", "ranks", "report", "summarise", "timings"]

OURS = ("promissing", "mpromissing", "fpromissing")
METRICS = ("auc", "smse")
TIE = 0.001  # A smaller difference is a draw.
RESAMPLES = 2000
CELL = ["dataset", "metric", "mechanism", "ratio"]


def report(out: Path) -> None:
    """Write tables and figures beside `out`/results.sqlite."""
    results = read(out / FILE)
    complete = baseline(results)
    _keep(out, "baseline", complete, _pretty(complete))
    figures.draw_baseline(complete, out)
    found = drops(results)
    single = found[found["mechanism"].isin(MECHANISMS)]
    if len(single):
        summary, ranked = summarise(single), ranks(results)
        _keep(out, "drops", summary, _as_markdown(summary, "mechanism"))
        _keep(out, "ranks", ranked, _pretty(ranked))
        figures.draw_drops(summary, out)
        figures.draw_ranks(ranked, out)
        by_table = _by_table(single)
        _keep(out, "tables", by_table, _tables_as_markdown(by_table))
        figures.draw_tables(by_table, out)
        wins = compare(results)
        if len(wins):
            _keep(out, "wins", wins, _pretty(wins))
    several = found[found["mechanism"].str.startswith(GRID)]
    if len(several):
        averaged = grid(several)
        _keep(out, "grid", averaged, _as_markdown(averaged, "features"))
        figures.draw_grid(averaged, out)
    took = timings(results)
    _keep(out, "seconds", took, _pretty(took))


def _keep(out: Path, name: str, frame: pd.DataFrame, text: str) -> None:
    write(out / f"{name}.csv", frame.to_csv(index=False, float_format="%.6g"))
    write(out / f"{name}.md", text)


def scores(results: pd.DataFrame) -> pd.DataFrame:
    """The mean over the folds of every repetition; NaN if one of them diverged."""
    known = results[results["metric"].isin(METRICS)]
    folds = known.groupby([*CELL, "strategy", "repetition"], sort=False)["value"]
    return folds.agg(lambda values: values.mean(skipna=False)).rename("score").reset_index()


def drops(results: pd.DataFrame) -> pd.DataFrame:
    """The drop of every score with gaps: against the network, and of trees against themselves.

    A table and repetition without a score on complete data, or with a network that diverged
    there, has no drops.
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
    """As in the paper: the mean over tables and repetitions, by shares of features and of rows."""
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
    """In the order of strategies and mechanisms that everything else has."""
    places = {
        "strategy": strategies.NAMES.index,
        "mechanism": MECHANISMS.index,
    }
    return frame.sort_values(
        [
            c
            for c in ("metric", "mechanism", "features", "ratio", "strategy", "against")
            if c in frame
        ],
        key=lambda c: c.map(places[c.name]) if c.name in places else c,
        ignore_index=True,
    )


def _cells(results: pd.DataFrame) -> pd.DataFrame:
    """Scores by table and condition, one column per strategy; higher is better, -inf diverged.

    Only cells that every strategy has, so that all are compared on the same.
    """
    found = scores(results)
    found = found[found["mechanism"].isin(MECHANISMS) & (found["strategy"] != "full")].copy()
    found["score"] *= np.where(found["metric"] == "auc", 1.0, -1.0)
    found["score"] = found["score"].fillna(-np.inf)
    wide = found.groupby([*CELL, "strategy"])["score"].mean().unstack("strategy")
    wide = wide[[name for name in strategies.NAMES if name in wide]]
    return wide.dropna()


def ranks(results: pd.DataFrame, *, seed: int = 0) -> pd.DataFrame:
    """Mean ranks over tables and conditions, 1 being best, with a bootstrap over tables.

    The interval holds 95 % of the means over tables drawn again with replacement.
    """
    placed = _cells(results).rank(axis=1, ascending=False)
    lines = []
    rng = np.random.default_rng(seed)
    for metric, cells in [("both", placed), *placed.groupby(level="metric")]:
        means = cells.groupby(level="dataset").mean()
        drawn = rng.integers(len(means), size=(RESAMPLES, len(means)))
        low, high = np.quantile(means.to_numpy()[drawn].mean(axis=1), [0.025, 0.975], axis=0)
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
    """On how many tables ours are better than, level with and worse than each rival.

    A table counts by the mean difference over its conditions; less than 0.001 is a draw.
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
    """Seconds of one model, from filling gaps to predicting, and of all together."""
    known = results[results["metric"].isin(METRICS)]
    groups = known.groupby("strategy")["seconds"]
    found = pd.DataFrame(
        {"mean": groups.mean(), "median": groups.median(), "models": groups.size()}
    )
    found["total"] = groups.sum()
    order = [name for name in (*strategies.NAMES, FOREST) if name in found.index]
    return found.loc[order].reset_index()


def _by_table(found: pd.DataFrame) -> pd.DataFrame:
    """The mean drop of every table over mechanisms, ratios and repetitions; inf if it diverged."""
    net = found[found["against"] == "net"]
    wide = net.groupby(["metric", "dataset", "strategy"])["drop"].mean().unstack("strategy")
    wide = wide[[name for name in strategies.NAMES if name in wide]]
    return wide.reset_index().rename_axis(columns=None)


def name_of(strategy: str, against: str = "net") -> str:
    """What tables call a strategy."""
    title = "random forest" if strategy == FOREST else looks.title(strategy)
    return f"{title}, own" if against == "own" else title


def _as_markdown(summary: pd.DataFrame, part: str) -> str:
    """Drops by ratio, a table for every measure and part (a mechanism or a share of features)."""
    texts = []
    for (metric, kind), cell in summary.groupby(["metric", part], sort=False):
        who = [name_of(*both) for both in zip(cell["strategy"], cell["against"], strict=True)]
        spread = cell["sd"] if "sd" in cell else cell["drop"] * np.nan
        text = [
            f"{drop:.3f}" + (f" ± {sd:.3f}" if np.isfinite(sd) else "")
            for drop, sd in zip(cell["drop"], spread, strict=True)
        ]
        columns = [f"{ratio:.0%}" for ratio in cell["ratio"]]
        flat = pd.DataFrame({"strategy": who, "ratio": columns, "drop": text})
        shown = flat.pivot(index="strategy", columns="ratio", values="drop")
        shown = shown.loc[list(dict.fromkeys(who)), list(dict.fromkeys(columns))]
        title = kind.upper() if isinstance(kind, str) else f"{kind:.0%} of the features"
        title = f"### {title}, drop of {metric.upper()}, {cell['tables'].max()} tables"
        if "diverged" in cell and cell["diverged"].any():
            title += f" ({cell['diverged'].sum()} diverged networks left out)"
        texts.append(f"{title}\n\n{markdown(shown.reset_index())}")
    return "\n".join(texts)


def _tables_as_markdown(by_table: pd.DataFrame) -> str:
    shown = by_table.rename(columns={n: looks.title(n) for n in strategies.NAMES})
    return markdown(shown, dict.fromkeys(shown.columns[2:], ".3f"))


def _pretty(frame: pd.DataFrame) -> str:
    """A frame as Markdown, strategies by their titles and numbers to three places."""
    shown = frame.copy()
    for column in ("strategy", "ours", "rival"):
        if column in shown:
            shown[column] = [name_of(name) for name in shown[column]]
    floats: Sequence[str] = list(shown.select_dtypes("float").columns)
    return markdown(shown, dict.fromkeys(floats, ".3f"))
