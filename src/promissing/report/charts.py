"""The charts of a report as SVG.

Colours, dashes and fonts come from the style sheet of the page by class names, so charts follow
light and dark themes. All text in a chart is escaped.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from promissing.report.words import MINUS, clip, count, number, percent

__all__ = ["Axis", "Plot", "draw_charts", "tick", "ticks"]

Found = dict[str, Any]
Floats = Sequence[float]

_LEFT, _RIGHT, _TOP, _BOTTOM = 48.0, 16.0, 30.0, 46.0
_LABELLED_COVERAGES = (1.0, 0.8, 0.5)
_FEW_ROWS = 10  # The means of fewer rows are not joined by a line.


def ticks(low: float, high: float, most: int = 5) -> list[float]:
    """Return at most `most + 1` round numbers between two numbers."""
    if not high > low:
        return [low]
    raw = (high - low) / most
    base = 10.0 ** math.floor(math.log10(raw))
    step = next(base * k for k in (1, 2, 2.5, 5, 10) if base * k >= raw * (1 - 1e-9))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [k * step for k in range(first, last + 1)]


def tick(value: float) -> str:
    """Format a round number at an axis."""
    return f"{value:,.6g}".replace("-", MINUS)


@dataclass(frozen=True)
class Axis:
    """An axis of a chart. By default it shows shares from 0 to 1 as percentages."""

    label: str
    low: float = 0.0
    high: float = 1.0
    format: Callable[[float], str] = percent
    ticks: Floats = (0.0, 0.25, 0.5, 0.75, 1.0)

    @classmethod
    def of(cls, label: str, low: float, high: float, format: Callable[[float], str] = tick) -> Axis:
        """Return an axis with round ticks; a range of one point is widened."""
        low, high = (low, high) if high > low else (low - 0.5, high + 0.5)
        return cls(label, low, high, format, ticks(low, high))

    @classmethod
    def counts(cls, label: str, low: float, high: float, shown: tuple[float, float]) -> Axis:
        """Return an axis of whole numbers, with ticks in the range `shown`; no sign is shown."""
        whole = [t for t in ticks(*shown) if t == int(t)]
        return cls(label, low, high, lambda value: f"{abs(value):,.0f}", whole)

    def place(self, value: float, start: float, end: float) -> float:
        """Return the position of a value between the pixels `start` and `end`."""
        share = (min(max(value, self.low), self.high) - self.low) / (self.high - self.low)
        return round(start + (end - start) * share, 1)


class Plot:
    """A chart to which marks are added one by one.

    Parameters
    ----------
    name : str
        The name of the chart in the page, which must be unique.
    title, text : str
        The description for screen readers.
    x, y : Axis
        The axes.
    height : float, default=280
        The height in pixels; the width is 400.
    """

    def __init__(
        self, name: str, title: str, text: str, *, x: Axis, y: Axis, height: float = 280
    ) -> None:
        self._name, self._title, self._text = name, title, text
        self._x, self._y, self._width, self._height = x, y, 400, height
        self._marks: list[Markup] = []

    def x(self, value: float) -> float:
        """Return the distance of a value from the left."""
        return self._x.place(value, _LEFT, self._width - _RIGHT)

    def y(self, value: float) -> float:
        """Return the distance of a value from the top."""
        return self._y.place(value, self._height - _BOTTOM, _TOP)

    def line(self, xs: Floats, ys: Floats, style: str, title: str = "") -> None:
        """Join points by a line."""
        points = " ".join(self._points(xs, ys))
        self._add("polyline", _tip(title), class_=f"line {style}", points=points)

    def band(self, xs: Floats, low: Floats, high: Floats, style: str) -> None:
        """Fill the area between two lines."""
        points = " ".join(self._points(xs, high) + self._points(xs, low)[::-1])
        self._add("polygon", class_=f"band {style}", points=points)

    def point(self, x: float, y: float, style: str, title: str = "", radius: float = 4) -> None:
        """Add a dot with a tooltip."""
        place = {"cx": self.x(x), "cy": self.y(y), "r": radius}
        self._add("circle", _tip(title), class_=f"point {style}", **place)

    def bar(
        self, left: float, right: float, low: float, high: float, style: str, title: str
    ) -> None:
        """Add a filled rectangle with a tooltip."""
        a, top = self.x(left), self.y(high)
        width = round(max(self.x(right) - a - 1, 0.5), 1)
        height = round(max(self.y(low) - top, 0), 1)
        place = {"x": a + 0.5, "y": top, "width": width, "height": height}
        self._add("rect", _tip(title), class_=f"bar {style}", **place)

    def rule(self, x: tuple[float, float], y: tuple[float, float], style: str) -> None:
        """Add a straight line."""
        self._line(style, (self.x(x[0]), self.x(x[1])), (self.y(y[0]), self.y(y[1])))

    def label(self, x: float, y: float, text: str, anchor: str = "start", lift: float = 5) -> None:
        """Add a text slightly above a point."""
        self._write("note", self.x(x), round(self.y(y) - lift, 1), text, anchor)

    def svg(self) -> Markup:
        """Return the whole chart."""
        name, marks = self._name, self._marks
        self._marks = []
        self._add("title", self._title, id=f"{name}-t")
        self._add("desc", self._text, id=f"{name}-d")
        self._add_axes()
        content = Markup("").join(self._marks + marks)
        return _element(
            "svg",
            content,
            class_="chart",
            viewBox=f"0 0 {self._width} {self._height}",
            role="img",
            aria_labelledby=f"{name}-t {name}-d",
        )

    def _add_axes(self) -> None:
        bottom, right = self._height - _BOTTOM, self._width - _RIGHT
        for value in self._y.ticks:
            y = self.y(value)
            self._line("gridline", (_LEFT, right), (y, y))
            self._write("tick", _LEFT - 6, y + 4, self._y.format(value), "end")
        for value in self._x.ticks:
            x = self.x(value)
            self._line("mark", (x, x), (bottom, bottom + 4))
            self._write("tick", x, bottom + 18, self._x.format(value), "middle")
        self._line("axis", (_LEFT, right), (bottom, bottom))
        self._write("name", right, self._height - 8, self._x.label, "end")
        self._write("name", 0, 13, self._y.label, "start")

    def _points(self, xs: Floats, ys: Floats) -> list[str]:
        return [f"{self.x(a)},{self.y(b)}" for a, b in zip(xs, ys, strict=True)]

    def _line(self, style: str, x: tuple[float, float], y: tuple[float, float]) -> None:
        self._add("line", class_=style, x1=x[0], x2=x[1], y1=y[0], y2=y[1])

    def _write(self, style: str, x: float, y: float, text: str, anchor: str) -> None:
        self._add("text", text, class_=style, x=x, y=y, text_anchor=anchor)

    def _add(self, tag: str, content: str = "", **attributes: object) -> None:
        self._marks.append(_element(tag, content, **attributes))


def _element(tag: str, content: str = "", **attributes: object) -> Markup:
    """Return an SVG element. Text that is no `Markup` is escaped."""
    pairs = [
        Markup(' {}="{}"').format(name.rstrip("_").replace("_", "-"), value)
        for name, value in attributes.items()
    ]
    return Markup("<{0}{1}>{2}</{0}>").format(tag, Markup("").join(pairs), content)


def _tip(title: str) -> str:
    return _element("title", title) if title else ""


# ---- the charts


def draw_charts(report: Found) -> dict[str, Markup]:
    """Draw every chart of a report.

    Parameters
    ----------
    report : dict
        The result of `gather`.

    Returns
    -------
    dict of str to Markup
        The charts by name.
    """
    charts = {
        "gaps": _missing_per_row,
        "information_loss": _information_loss,
        "paths": _paths,
        "coverage": _coverage,
        "by_missing": _by_missing,
    }
    charts |= {"next": _next} | ({"sets": _sets} if report["sets"] else {})
    if report["kind"] == "regression":
        charts |= {"scatter": _scatter} | ({"std": _error_by_std} if report["calibration"] else {})
    else:
        charts |= {"histogram": _histogram, "reliability": _reliability}
    return {name: draw(report) for name, draw in charts.items()}


def _missing_per_row(report: Found) -> Markup:
    """Number of rows by their number of missing values."""
    lines = report["missing"]["by_row"]
    most = max((line["gaps"] for line in lines), default=0)
    width = max(1, -(-(most + 1) // 40))
    bins: dict[int, int] = {}
    for line in lines:
        bins[line["gaps"] // width] = bins.get(line["gaps"] // width, 0) + line["rows"]
    top = max(bins.values(), default=1)
    end = (most // width + 1) * width - 0.5 * width
    plot = Plot(
        "gaps",
        "Rows by number of missing values",
        f"Rows have between 0 and {most} missing values. The numbers are in the table below.",
        x=Axis.counts("missing values in a row", -0.5 * width, end, (0, max(most, 1))),
        y=Axis.counts("rows", 0, top * 1.05, (0, top)),
    )
    for k, rows in sorted(bins.items()):
        low, high = k * width, k * width + width - 1
        said = f"{low}" if low == high else f"{low} to {high}"
        left, tip = low - 0.5 * width, f"{count(rows, 'row')} with {said} missing values"
        plot.bar(left, left + width, 0, rows, "main", tip)
    return plot.svg()


def _histogram(report: Found) -> Markup:
    """Distribution of probabilities: upwards for one group of rows, downwards for the other."""
    found = report["prediction"]["histogram"]
    edges, (up, down) = found["edges"], found["groups"]
    top, low = max(*up["counts"], 1), max(*down["counts"], 1)
    shown = "certainty"
    if report["kind"] == "binary":
        shown = f"probability of {clip(report['positive'], 30)}"
    plot = Plot(
        "histogram",
        "Distribution of predicted probabilities",
        f"Rows by the {shown}. Upwards: {up['name']}. Downwards: {down['name']}.",
        x=Axis(shown),
        y=Axis.counts("rows", -low * 1.12, top * 1.12, (-low, top)),
    )
    for a, b, n, m in zip(edges[:-1], edges[1:], up["counts"], down["counts"], strict=True):
        said = f"{percent(a)} to {percent(b)}"
        if n:
            plot.bar(a, b, 0, n, "main", f"{said}: {count(n, 'row')}, {up['name']}")
        if m:
            plot.bar(a, b, -m, 0, "other", f"{said}: {count(m, 'row')}, {down['name']}")
    plot.rule((0, 1), (0, 0), "axis")
    return plot.svg()


def _by_missing(report: Found) -> Markup:
    """Certainty and accuracy, or error and standard deviation, by the share of missing values."""
    lines = report["prediction"]["by_missing"]
    if report["kind"] == "regression":
        names = tuple(name for name in ("error", "std") if name in lines[0])
        top = max((line[name] for line in lines for name in names), default=1) * 1.1
        y = Axis.of("mean error", 0, top or 1)
    else:
        names = ("certainty", "accuracy")
        low = min([0.5, *(line[name] for line in lines for name in names)]) - 0.02
        y = Axis.of("certainty and accuracy", low, 1, percent)
    plot = Plot(
        "by-missing",
        "Performance by share of missing values",
        f"{' and '.join(names)} by the share of missing values in a row",
        x=Axis("share of missing values in a row"),
        y=y,
    )
    many, show = [line for line in lines if line["n"] >= _FEW_ROWS], _show(report)
    for name, style in zip(names, ("main", "other"), strict=False):
        plot.line([line["missing"] for line in many], [line[name] for line in many], style)
        for line in lines:
            said = f"{name} {show(line[name])} in {count(line['n'], 'row')}"
            radius = 3 if line["n"] < _FEW_ROWS else 5
            plot.point(line["missing"], line[name], style, said, radius)
    return plot.svg()


def _reliability(report: Found) -> Markup:
    """Observed frequencies by predicted probabilities."""
    found = report["calibration"]
    plot = Plot(
        "reliability",
        "Reliability diagram",
        f"Calibration error {number(found['error'], 2)}. On the diagonal, probabilities and "
        "frequencies agree.",
        x=Axis("predicted probability"),
        y=Axis("observed frequency"),
    )
    plot.rule((0, 1), (0, 1), "reference")
    plot.label(0.02, 0.9, "above: probabilities too low")
    plot.label(0.98, 0.04, "below: probabilities too high", "end")
    bins = found["bins"]
    plot.line([b["predicted"] for b in bins], [b["observed"] for b in bins], "main thin")
    for b in bins:
        x = b["predicted"]
        plot.rule((x, x), (b["low"], b["high"]), "whisker main")
        said = f"predicted {percent(x)}, observed {percent(b['observed'])} of {count(b['n'])}"
        plot.point(x, b["observed"], "main", said)
    return plot.svg()


def _information_loss(report: Found) -> Markup:
    """Mean distance from the prior as groups are removed."""
    found = report["information_loss"]
    top = max(*found["high"], *found["distance"]) * 1.08 or 1
    is_regression = report["kind"] == "regression"
    plot = Plot(
        "information-loss",
        "Distance from the prior as information is lost",
        f"From {number(found['distance'][0], 2)} with all known values to "
        f"{number(found['distance'][-1], 2)} without any.",
        x=Axis("share removed"),
        y=Axis.of("distance from the prior", 0, top, tick if is_regression else percent),
    )
    plot.band(found["steps"], found["low"], found["high"], "main")
    plot.line(found["steps"], found["distance"], "main", "mean distance from the prior")
    return plot.svg()


def _show(report: Found) -> Callable[[float], str]:
    """How predictions and scores are written."""
    return number if report["kind"] == "regression" else percent


def _paths(report: Found) -> Markup:
    """Predictions of single rows as groups are removed."""
    found = report["information_loss"]
    if report["kind"] == "regression":
        values = [value for path in found["paths"] for value in path["values"]]
        margin = 0.05 * (max(values) - min(values)) or 0.5
        label = f"predicted {clip(report['target_short'], 30)}"
        y = Axis.of(label, min(values) - margin, max(values) + margin)
    elif report["kind"] == "binary":
        y = Axis(f"probability of {clip(report['positive'], 30)}")
    else:
        y = Axis("probability of the first predicted class")
    plot = Plot(
        "paths",
        "Predictions of single rows as information is lost",
        f"The predictions of {len(found['paths'])} rows, each a mean over random orders.",
        x=Axis("share removed"),
        y=y,
    )
    prior = found["prior"]
    for path in found["paths"]:
        above = prior is None or path["values"][0] >= prior
        style = "main fine" if above else "other fine"
        plot.line(found["steps"], path["values"], style, f"row {path['name']}")
    if prior is not None:
        plot.rule((0, 1), (prior, prior), "reference")
        plot.label(0.995, prior, "prior", "end")
    return plot.svg()


def _coverage(report: Found) -> Markup:
    """Accuracy of the most certain rows, or error of the most complete rows."""
    found, points = report["coverage"], report["coverage"]["points"]
    low, high = min(found["value"]), max(found["value"])
    if report["kind"] == "regression":
        title = "Error by coverage"
        order = "the most certain first" if found["by"] == "std" else "the most complete first"
        y = Axis.of(found["measure"], 0, high * 1.08)
    else:
        title, order = "Accuracy by coverage", "the most certain first"
        margin = 0.1 * (high - low) or 0.05
        limits = max(0.0, low - margin), min(1.0, high + margin)
        y = Axis.of(found["measure"], *limits, percent)
    plot = Plot(
        "coverage",
        title,
        f"{found['measure']} by coverage: {number(points[0]['value'])} on all rows.",
        x=Axis(f"coverage: share of rows, {order}"),
        y=y,
    )
    plot.line(found["coverage"], found["value"], "main")
    show = _show(report)
    near = {
        min(range(len(points)), key=lambda k: abs(points[k]["coverage"] - coverage))
        for coverage in _LABELLED_COVERAGES
    }
    for k in sorted(near):
        x, value = points[k]["coverage"], points[k]["value"]
        plot.point(x, value, "main", f"coverage {percent(x)}: {show(value)}")
        plot.label(x, value, show(value), "end" if x == 1 else "middle", 9)
    return plot.svg()


def _scatter(report: Found) -> Markup:
    """Predicted by true values."""
    found = report["prediction"]["scatter"]
    both = [*found["truth"], *found["predicted"]]
    low, high = min(both), max(both)
    plot = Plot(
        "scatter",
        "Predicted and true values",
        "Each dot is a row. On the diagonal, predicted and true values are equal.",
        x=Axis.of(f"true {clip(report['target_short'], 40)}", low, high),
        y=Axis.of("predicted", low, high),
        height=320,
    )
    plot.rule((low, high), (low, high), "reference")
    for truth, predicted in zip(found["truth"], found["predicted"], strict=True):
        plot.point(truth, predicted, "main faint", radius=2.5)
    return plot.svg()


def _error_by_std(report: Found) -> Markup:
    """Absolute errors by the predicted standard deviation."""
    points, bins = report["calibration"]["points"], report["calibration"]["bins"]
    top = sorted(points["error"])[int(0.98 * (len(points["error"]) - 1))]
    end = max(*points["std"], *(b["std"] for b in bins)) * 1.02
    high = max(top, *(b["deviation"] for b in bins)) * 1.1
    plot = Plot(
        "std",
        "Error by predicted standard deviation",
        "Each dot is a row. The line is the root mean squared error of rows with a similar "
        "predicted standard deviation.",
        x=Axis.of("predicted standard deviation", 0, end),
        y=Axis.of("error", 0, high),
        height=320,
    )
    for std, error in zip(points["std"], points["error"], strict=True):
        plot.point(std, error, "other faint", radius=2.5)
    plot.rule((0, min(end, high)), (0, min(end, high)), "reference")
    plot.line([b["std"] for b in bins], [b["deviation"] for b in bins], "main")
    for b in bins:
        said = f"predicted {number(b['std'])}, observed {number(b['deviation'])}, {b['n']} rows"
        plot.point(b["std"], b["deviation"], "main", said)
    return plot.svg()


def _sets(report: Found) -> Markup:
    """Coverage of prediction sets or intervals by the share of missing values."""
    found = report["sets"]
    lines = found["by_missing"]
    low = max(0.0, min(0.7, *(line["low"] for line in lines), found["level"] - 0.1) - 0.02)
    last = len(lines) - 0.5
    plot = Plot(
        "sets",
        "Coverage by share of missing values",
        f"The share of rows whose set or interval holds the truth. The goal is "
        f"{percent(found['level'])}.",
        x=Axis("share of missing values in a row", -0.5, last, lambda k: lines[round(k)]["missing"],
               [float(k) for k in range(len(lines))]),
        y=Axis.of("coverage", low, 1, percent),
    )  # fmt: skip
    plot.rule((-0.5, last), (found["level"], found["level"]), "reference")
    for k, line in enumerate(lines):
        plot.rule((k, k), (line["low"], line["high"]), "whisker main")
        said = f"{line['missing']}: {percent(line['coverage'], 1)} of {count(line['n'], 'row')}"
        plot.point(k, line["coverage"], "main", said, 3 if line["n"] < 20 else 5)
    return plot.svg()


def _next(report: Found) -> Markup:
    """Expected loss that is left as values are obtained in the best order."""
    lines = report["next_measurement"]["order"]
    left = [1.0, *(line["left"] for line in lines)]
    most, unit = len(lines), report["next_measurement"]["unit"]
    plot = Plot(
        "next-measurement",
        "Expected loss as values are obtained",
        f"From 100 % without any known value to {percent(left[-1])} with all.",
        x=Axis.counts("columns obtained" if unit == "column" else "modalities obtained", 0, most,
                      (0, most)),
        y=Axis.of("expected loss that is left", min(0.0, *left), max(1.0, *left), percent),
    )  # fmt: skip
    plot.line(list(range(most + 1)), left, "main")
    for k, line in enumerate(lines[:40], start=1):
        said = f"{k}: {line['name']}, {percent(max(line['left'], 0))} left"
        plot.point(k, line["left"], "main", said, 3)
    return plot.svg()
