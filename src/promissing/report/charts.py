"""Small charts as SVG: a frame with axes, and marks on it.

Colours, dashes and fonts come from the style of the page, by class, so that a chart follows light
and dark. Whatever is written into a chart is escaped.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from markupsafe import Markup

from promissing.report.formats import MINUS

__all__ = ["Plot", "tick", "ticks"]

Pair = tuple[float, float]

_LEFT, _RIGHT, _TOP, _BOTTOM = 48.0, 16.0, 30.0, 46.0


def ticks(low: float, high: float, most: int = 5) -> list[float]:
    """Round numbers between two numbers, at most so many and one."""
    if not high > low:
        return [low]
    raw = (high - low) / most
    base = 10.0 ** math.floor(math.log10(raw))
    step = next(base * k for k in (1, 2, 2.5, 5, 10) if base * k >= raw * (1 - 1e-9))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [k * step for k in range(first, last + 1)]


def tick(value: float) -> str:
    """A round number as it stands at an axis."""
    return f"{value:,.6g}".replace("-", MINUS)


class Plot:
    """A chart in the making: marks are added one by one, `svg` gives the whole.

    Parameters
    ----------
    name : str
        What its parts are called in the page; unique there.
    title, text : str
        Read aloud instead of the picture.
    x, y : pairs of float
        The range of the axes.
    x_label, y_label : str
    x_format, y_format : callable
        How a number at a tick is written.
    """

    def __init__(
        self,
        name: str,
        title: str,
        text: str,
        *,
        x: Pair,
        y: Pair,
        x_label: str,
        y_label: str,
        x_format: Callable[[float], str] = tick,
        y_format: Callable[[float], str] = tick,
        x_ticks: Sequence[float] | None = None,
        y_ticks: Sequence[float] | None = None,
        size: Pair = (400, 280),
    ) -> None:
        self._name, self._title, self._text = name, title, text
        self._x, self._y, self._size = _widened(x), _widened(y), size
        self._labels, self._formats = (x_label, y_label), (x_format, y_format)
        self._x_ticks = ticks(*self._x) if x_ticks is None else x_ticks
        self._y_ticks = ticks(*self._y) if y_ticks is None else y_ticks
        self._marks: list[Markup] = []

    def x(self, value: float) -> float:
        """Where a value lies from the left."""
        low, high = self._x
        width = self._size[0] - _LEFT - _RIGHT
        return round(_LEFT + width * (min(max(value, low), high) - low) / (high - low), 1)

    def y(self, value: float) -> float:
        """Where a value lies from the top."""
        low, high = self._y
        height = self._size[1] - _TOP - _BOTTOM
        return round(_TOP + height * (high - min(max(value, low), high)) / (high - low), 1)

    def line(self, xs: Sequence[float], ys: Sequence[float], style: str, title: str = "") -> None:
        """Join points by a line."""
        places = " ".join(f"{self.x(a)},{self.y(b)}" for a, b in zip(xs, ys, strict=True))
        self._add('<polyline class="line {}" points="{}">{}</polyline>', style, places, _tip(title))

    def band(
        self, xs: Sequence[float], low: Sequence[float], high: Sequence[float], style: str
    ) -> None:
        """Fill what lies between two lines."""
        there = [f"{self.x(a)},{self.y(b)}" for a, b in zip(xs, high, strict=True)]
        back = [f"{self.x(a)},{self.y(b)}" for a, b in zip(xs, low, strict=True)]
        self._add('<polygon class="band {}" points="{}"/>', style, " ".join(there + back[::-1]))

    def point(self, x: float, y: float, style: str, title: str = "", radius: float = 4) -> None:
        """A dot; `title` is shown when it is pointed at."""
        self._add(
            '<circle class="point {}" cx="{}" cy="{}" r="{}">{}</circle>',
            style, self.x(x), self.y(y), round(radius, 1), _tip(title),
        )  # fmt: skip

    def whisker(self, x: float, low: float, high: float, style: str) -> None:
        """An upright line: how uncertain a dot is."""
        place = self.x(x)
        self._add(
            '<line class="whisker {}" x1="{}" x2="{}" y1="{}" y2="{}"/>',
            style, place, place, self.y(low), self.y(high),
        )  # fmt: skip

    def bar(self, left: float, right: float, low: float, high: float, style: str,
            title: str = "") -> None:  # fmt: skip
        """A filled rectangle."""
        a, b, top, bottom = self.x(left), self.x(right), self.y(high), self.y(low)
        self._add(
            '<rect class="bar {}" x="{}" y="{}" width="{}" height="{}">{}</rect>',
            style, a + 0.5, top, round(max(b - a - 1, 0.5), 1), round(max(bottom - top, 0), 1),
            _tip(title),
        )  # fmt: skip

    def rule(self, start: Pair, end: Pair, style: str = "reference") -> None:
        """A straight line to compare with."""
        self._add(
            '<line class="{}" x1="{}" y1="{}" x2="{}" y2="{}"/>',
            style, self.x(start[0]), self.y(start[1]), self.x(end[0]), self.y(end[1]),
        )  # fmt: skip

    def label(self, x: float, y: float, text: str, anchor: str = "start", lift: float = 5) -> None:
        """A few words at a place, a little above it."""
        self._add(
            '<text class="note" x="{}" y="{}" text-anchor="{}">{}</text>',
            self.x(x), round(self.y(y) - lift, 1), anchor, text,
        )  # fmt: skip

    def svg(self) -> Markup:
        """The whole chart."""
        width, height = self._size
        return Markup(
            '<svg class="chart" viewBox="0 0 {w} {h}" role="img" aria-labelledby="{n}-t {n}-d">'
            '<title id="{n}-t">{title}</title><desc id="{n}-d">{text}</desc>{axes}{marks}</svg>'
        ).format(
            w=f"{width:g}", h=f"{height:g}", n=self._name, title=self._title, text=self._text,
            axes=self._axes(), marks=Markup("").join(self._marks),
        )  # fmt: skip

    def _axes(self) -> Markup:
        width, height = self._size
        bottom, right = height - _BOTTOM, width - _RIGHT
        parts = []
        for value in self._y_ticks:
            place = self.y(value)
            text = self._formats[1](value)
            parts.append(
                Markup(
                    '<line class="gridline" x1="{}" x2="{}" y1="{}" y2="{}"/>'
                    '<text class="tick" x="{}" y="{}" text-anchor="end">{}</text>'
                ).format(_LEFT, right, place, place, _LEFT - 6, place + 4, text)
            )
        for value in self._x_ticks:
            place = self.x(value)
            text = self._formats[0](value)
            parts.append(
                Markup(
                    '<line class="mark" x1="{}" x2="{}" y1="{}" y2="{}"/>'
                    '<text class="tick" x="{}" y="{}" text-anchor="middle">{}</text>'
                ).format(place, place, bottom, bottom + 4, place, bottom + 18, text)
            )
        parts.append(
            Markup(
                '<line class="axis" x1="{}" x2="{}" y1="{}" y2="{}"/>'
                '<text class="name" x="{}" y="{}" text-anchor="end">{}</text>'
                '<text class="name" x="0" y="13">{}</text>'
            ).format(_LEFT, right, bottom, bottom, right, height - 8, *self._labels)
        )
        return Markup("").join(parts)

    def _add(self, pattern: str, *values: object) -> None:
        self._marks.append(Markup(pattern).format(*values))


def _tip(title: str) -> Markup:
    return Markup("<title>{}</title>").format(title) if title else Markup("")


def _widened(pair: Pair) -> Pair:
    """A range that is more than a point."""
    low, high = pair
    return (low, high) if high > low else (low - 0.5, high + 0.5)
