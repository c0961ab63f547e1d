"""The charts of a report, each drawn from its part of the dict."""

from __future__ import annotations

from typing import Any

from markupsafe import Markup

from promissing.report.charts import Plot, tick, ticks
from promissing.report.formats import clip, count, number, percent

__all__ = ["draw"]

Found = dict[str, Any]

_SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)
_AT = (1.0, 0.8, 0.5)  # Coverages that are labelled.
_FEW = 10  # Rows below which a mean is no more than a hint.


def draw(report: Found) -> dict[str, Markup]:
    """Every chart of the report, by name."""
    charts = {"gaps": _gaps(report), "fading": _fading(report), "paths": _paths(report)}
    charts |= {"coverage": _coverage(report), "by_missing": _by_missing(report)}
    if report["kind"] == "regression":
        return charts | {"scatter": _scatter(report), "spread": _spread(report)}
    return charts | {"histogram": _histogram(report), "reliability": _reliability(report)}


def _whole(value: float) -> str:
    return f"{value:,.0f}"


def _gaps(report: Found) -> Markup:
    """How many rows have how many gaps."""
    lines = report["missing"]["by_row"]
    most = max(line["gaps"] for line in lines) if lines else 0
    width = max(1, -(-(most + 1) // 40))
    bins: dict[int, int] = {}
    for line in lines:
        bins[line["gaps"] // width] = bins.get(line["gaps"] // width, 0) + line["rows"]
    top = max(bins.values(), default=1)
    plot = Plot(
        "gaps",
        "Rows by the number of their gaps",
        f"Most rows have between 0 and {most} gaps. The numbers are in the table below.",
        x=(-0.5 * width, (most // width + 1) * width - 0.5 * width),
        y=(0, top * 1.05),
        x_label="gaps in a row",
        y_label="rows",
        x_format=_whole,
        y_format=_whole,
        x_ticks=[t for t in ticks(0, max(most, 1)) if t == int(t)],
        y_ticks=[t for t in ticks(0, top) if t == int(t)],
    )
    for k, rows in sorted(bins.items()):
        low, high = k * width, k * width + width - 1
        said = f"{low}" if low == high else f"{low} to {high}"
        left = low - 0.5 * width
        plot.bar(left, left + width, 0, rows, "main", f"{count(rows, 'row')} with {said} gaps")
    return plot.svg()


def _histogram(report: Found) -> Markup:
    """How often which probability was given: upwards for one group of rows, downwards for one."""
    found = report["prediction"]["histogram"]
    edges, (up, down) = found["edges"], found["groups"]
    top, low = max(*up["counts"], 1), max(*down["counts"], 1)
    binary = report["kind"] == "binary"
    of = f"probability of {clip(report['positive'], 30)}" if binary else "how sure it was"
    plot = Plot(
        "histogram",
        "How often which probability was given",
        f"Upwards rows {up['name']}, downwards rows {down['name']}, by the {of}.",
        x=(0, 1),
        y=(-low * 1.12, top * 1.12),
        x_label=of,
        y_label="rows",
        x_format=percent,
        y_format=lambda value: _whole(abs(value)),
        x_ticks=_SHARES,
        y_ticks=[t for t in ticks(-low, top) if t == int(t)],
    )
    for a, b, n, m in zip(edges[:-1], edges[1:], up["counts"], down["counts"], strict=True):
        said = f"{percent(a)} to {percent(b)}"
        if n:
            plot.bar(a, b, 0, n, "main", f"{said}: {count(n, 'row')} {up['name']}")
        if m:
            plot.bar(a, b, -m, 0, "other", f"{said}: {count(m, 'row')} {down['name']}")
    plot.rule((0, 0), (1, 0), "axis")
    return plot.svg()


def _by_missing(report: Found) -> Markup:
    """How sure and how right it is, by how much of the row is missing."""
    lines = report["prediction"]["by_missing"]
    numbers_ = report["kind"] == "regression"
    series = (
        (("error", "main"), ("spread", "other"))
        if numbers_
        else (("certainty", "main"), ("accuracy", "other"))
    )
    values = [line[name] for line in lines for name, _ in series]
    plot = Plot(
        "by-missing",
        "By how much of the row is missing",
        " and ".join(name for name, _ in series) + " by the share of the row that is missing",
        x=(0, 1),
        y=(0, max(values, default=1) * 1.1 or 1) if numbers_ else (min([0.5, *values]) - 0.02, 1),
        x_label="share of the row that is missing",
        y_label="mean error and ensemble spread" if numbers_ else "share of rows, and how sure",
        x_format=percent,
        y_format=tick if numbers_ else percent,
        x_ticks=_SHARES,
    )
    for name, style in series:
        many = [line for line in lines if line["n"] >= _FEW]
        plot.line([line["missing"] for line in many], [line[name] for line in many], style)
        for line in lines:
            value = number(line[name]) if numbers_ else percent(line[name])
            plot.point(
                line["missing"],
                line[name],
                style,
                f"{name} {value} in {count(line['n'], 'row')}",
                3 if line["n"] < _FEW else 5,
            )
    return plot.svg()


def _reliability(report: Found) -> Markup:
    """Probabilities against frequencies."""
    found = report["calibration"]
    plot = Plot(
        "reliability",
        "What it said, and what came true",
        f"Calibration error {number(found['error'], 2)}. On the diagonal, probabilities and "
        "frequencies agree.",
        x=(0, 1),
        y=(0, 1),
        x_label="probability it gave",
        y_label="how often it came true",
        x_format=percent,
        y_format=percent,
        x_ticks=_SHARES,
        y_ticks=_SHARES,
    )
    plot.rule((0, 0), (1, 1))
    plot.label(0.02, 0.9, "above: it was too cautious")
    plot.label(0.98, 0.04, "below: it promised too much", "end")
    bins = found["bins"]
    plot.line([b["predicted"] for b in bins], [b["observed"] for b in bins], "main thin")
    for b in bins:
        plot.whisker(b["predicted"], b["low"], b["high"], "main")
        said = (
            f"said {percent(b['predicted'])}, came true in {percent(b['observed'])} of "
            f"{count(b['n'])}"
        )
        plot.point(b["predicted"], b["observed"], "main", said)
    return plot.svg()


def _fading(report: Found) -> Markup:
    """The mean distance from the prior as groups vanish."""
    found = report["fading"]
    numbers_ = report["kind"] == "regression"
    plot = Plot(
        "fading",
        "Distance from the prior as information is lost",
        f"From {number(found['distance'][0], 2)} with all there is to "
        f"{number(found['distance'][-1], 2)} with nothing.",
        x=(0, 1),
        y=(0, max(*found["high"], *found["distance"]) * 1.08 or 1),
        x_label="share made unknown",
        y_label="distance from the prior",
        x_format=percent,
        y_format=tick if numbers_ else percent,
        x_ticks=_SHARES,
    )
    plot.band(found["steps"], found["low"], found["high"], "main")
    plot.line(found["steps"], found["distance"], "main", "mean distance from the prior")
    return plot.svg()


def _paths(report: Found) -> Markup:
    """What becomes of the predictions for a few rows."""
    found, kind = report["fading"], report["kind"]
    values = [value for path in found["paths"] for value in path["values"]]
    margin = 0.05 * (max(values) - min(values)) or 0.5
    short = clip(report["target_short"], 30)
    label = {
        "binary": f"probability of {clip(report['positive'], 30)}",
        "multiclass": "probability of the first decision",
        "regression": f"predicted {short}",
    }[kind]
    plot = Plot(
        "paths",
        "A few rows as they are told less and less",
        f"The predictions for {len(found['paths'])} rows, each a mean over random orders.",
        x=(0, 1),
        y=(min(values) - margin, max(values) + margin) if kind == "regression" else (0, 1),
        x_label="share made unknown",
        y_label=label,
        x_format=percent,
        y_format=tick if kind == "regression" else percent,
        x_ticks=_SHARES,
        y_ticks=None if kind == "regression" else _SHARES,
    )
    prior = found["prior"]
    for path in found["paths"]:
        above = prior is None or path["values"][0] >= prior
        style = "main fine" if above else "other fine"
        plot.line(found["steps"], path["values"], style, f"row {path['name']}")
    if prior is not None:
        plot.rule((0, prior), (1, prior))
        plot.label(0.995, prior, "prior", "end")
    return plot.svg()


def _coverage(report: Found) -> Markup:
    """Accuracy among the most certain rows, or the error among the most complete ones."""
    found = report["coverage"]
    numbers_ = report["kind"] == "regression"
    values = found["value"]
    low, high = min(values), max(values)
    margin = 0.1 * (high - low) or 0.05
    plot = Plot(
        "coverage",
        "Mean error on the most complete rows"
        if numbers_
        else "How good it is on the rows it is most certain of",
        f"{found['measure']} by the share of the rows that are decided: "
        f"{number(found['points'][0]['value'])} of all.",
        x=(0, 1),
        y=(0, high * 1.08) if numbers_ else (max(0.0, low - margin), min(1.0, high + margin)),
        x_label="share of rows predicted, the most complete first"
        if numbers_
        else "share of rows decided, the most certain first",
        y_label=found["measure"],
        x_format=percent,
        y_format=tick if numbers_ else percent,
        x_ticks=_SHARES,
    )
    plot.line(found["coverage"], values, "main")
    points = found["points"]
    near = {min(range(len(points)), key=lambda k: abs(points[k]["coverage"] - at)) for at in _AT}
    for k in sorted(near):
        point, end = points[k], points[k]["coverage"] == 1
        value = number(point["value"]) if numbers_ else percent(point["value"])
        said = f"{'predicting' if numbers_ else 'deciding'} {percent(point['coverage'])}: {value}"
        plot.point(point["coverage"], point["value"], "main", said)
        plot.label(point["coverage"], point["value"], value, "end" if end else "middle", 9)
    return plot.svg()


def _scatter(report: Found) -> Markup:
    """Predicted numbers by true ones."""
    found = report["prediction"]["scatter"]
    both = [*found["truth"], *found["predicted"]]
    low, high = min(both), max(both)
    plot = Plot(
        "scatter",
        "Predicted and true values",
        "Every dot is a row. On the diagonal the prediction is right.",
        x=(low, high),
        y=(low, high),
        x_label=f"true {clip(report['target_short'], 40)}",
        y_label="predicted",
        size=(400, 320),
    )
    plot.rule((low, low), (high, high))
    for truth, told in zip(found["truth"], found["predicted"], strict=True):
        plot.point(truth, told, "main faint", radius=2.5)
    return plot.svg()


def _spread(report: Found) -> Markup:
    """The size of errors by the ensemble spread."""
    found = report["calibration"]
    points, bins = found["points"], found["bins"]
    top = sorted(points["error"])[int(0.98 * (len(points["error"]) - 1))]
    plot = Plot(
        "spread",
        "Errors by how far the networks disagree",
        "Every dot is a row; the line is the mean error of rows of similar spread.",
        x=(0, max(points["spread"]) * 1.02),
        y=(0, max(top, *(b["error"] for b in bins)) * 1.1),
        x_label="ensemble spread",
        y_label="size of the error",
        size=(400, 320),
    )
    for spread, error in zip(points["spread"], points["error"], strict=True):
        plot.point(spread, error, "other faint", radius=2.5)
    plot.line([b["spread"] for b in bins], [b["error"] for b in bins], "main")
    for b in bins:
        said = f"spread {number(b['spread'])}, mean error {number(b['error'])}, {b['n']} rows"
        plot.point(b["spread"], b["error"], "main", said)
    return plot.svg()
