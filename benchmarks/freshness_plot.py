"""The picture of bench_freshness as one SVG, without a plotting library: what was stored within so
many minutes, by the hour of the day, and what it cost in requests."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from itertools import pairwise

from benchmarks.freshness import Result, percentile

#: Colour of each run: blue and orange differ for every kind of eye.
COLOURS = ("#1f6fb4", "#d9822b")
WIDTH, HEIGHT = 960, 420
TARGET_MIN, MOST_MIN = 10, 30
_INK, _GRID = "#333", "#ddd"


def _text(
    x: float, y: float, text: str, anchor: str = "start", size: int = 12, colour: str = _INK
) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}"'
        f' fill="{colour}">{escape(text)}</text>'
    )


def _line(x1: float, y1: float, x2: float, y2: float, colour: str = _GRID, more: str = "") -> str:
    return (
        f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}" {more}/>'
    )


def _path(points: Iterable[tuple[float, float]], colour: str) -> str:
    steps = " L".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return f'<path d="M{steps}" fill="none" stroke="{colour}" stroke-width="2"/>'


class Panel:
    """A frame with axes; ``x`` and ``y`` from values to pixels."""

    def __init__(
        self, left: float, top: float, width: float, height: float, most_x: float, most_y: float
    ) -> None:
        self.left, self.top, self.width, self.height = left, top, width, height
        self.most_x, self.most_y = most_x, most_y
        self.parts: list[str] = []

    def x(self, value: float) -> float:
        return self.left + self.width * min(value, self.most_x) / self.most_x

    def y(self, value: float) -> float:
        return self.top + self.height * (1 - min(value, self.most_y) / self.most_y)

    def axes(
        self, title: str, xs: Iterable[float], ys: Iterable[float], unit_x: str, unit_y: str = ""
    ) -> None:
        self.parts.append(_text(self.left, self.top - 14, title, size=13))
        for value in ys:
            self.parts.append(
                _line(self.left, self.y(value), self.left + self.width, self.y(value))
            )
            self.parts.append(
                _text(self.left - 6, self.y(value) + 4, f"{value:g}{unit_y}", "end", 11)
            )
        for value in xs:
            self.parts.append(
                _text(self.x(value), self.top + self.height + 16, f"{value:g}", "middle", 11)
            )
        self.parts.append(
            _text(self.left + self.width, self.top + self.height + 32, unit_x, "end", 11)
        )


def draw(results: list[Result], hours: float) -> str:
    """SVG of one or two runs."""
    parts = [*_within(results), *_by_hour(results), *_requests(results)]
    for number, result in enumerate(results):
        x = 60 + 220 * number
        parts.append(
            f'<rect x="{x}" y="{HEIGHT - 20}" width="14" height="4" fill="{COLOURS[number]}"/>'
        )
        parts.append(_text(x + 20, HEIGHT - 13, result.name))
    total = len(results[0].lags)
    parts.append(
        _text(
            WIDTH - 20,
            HEIGHT - 13,
            f"{total} articles of 33 simulated sites in {hours:g} hours",
            "end",
            11,
        )
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}"'
        f' font-family="sans-serif"><rect width="{WIDTH}" height="{HEIGHT}"'
        f' fill="#fff"/>{"".join(parts)}</svg>\n'
    )


def _within(results: list[Result]) -> list[str]:
    panel = Panel(60, 50, 360, 290, MOST_MIN, 100)
    panel.axes(
        "articles stored within so many minutes",
        range(0, MOST_MIN + 1, 5),
        range(0, 101, 25),
        "minutes",
        " %",
    )
    panel.parts.append(
        _line(
            panel.x(TARGET_MIN),
            panel.y(0),
            panel.x(TARGET_MIN),
            panel.y(100),
            "#888",
            'stroke-dasharray="4 3"',
        )
    )
    panel.parts.append(
        _line(
            panel.x(0),
            panel.y(95),
            panel.x(MOST_MIN),
            panel.y(95),
            "#888",
            'stroke-dasharray="4 3"',
        )
    )
    panel.parts.append(_text(panel.x(MOST_MIN) - 4, panel.y(95) + 14, "95 %", "end", 11, "#666"))
    for number, result in enumerate(results):
        ordered = sorted(result.lags)
        step = max(1, len(ordered) // 200)  # as many points as can be seen
        points = [
            (panel.x(lag / 60), panel.y(100 * (i + 1) / len(ordered)))
            for i, lag in enumerate(ordered)
            if lag <= 60 * MOST_MIN and i % step == 0
        ]
        panel.parts.append(_path([(panel.x(0), panel.y(0)), *points], COLOURS[number]))
    return panel.parts


def _by_hour(results: list[Result]) -> list[str]:
    panel = Panel(490, 50, 290, 290, 24, MOST_MIN)
    panel.axes(
        "p95 by the hour of publication (Hanoi)",
        range(0, 25, 6),
        range(0, MOST_MIN + 1, 10),
        "hour",
        " min",
    )
    counts = {hour: len(lags) for hour, lags in results[0].by_hour.items()}
    most = max(counts.values(), default=1)
    for hour, count in counts.items():
        top = panel.y(8 * count / most)
        panel.parts.append(
            f'<rect x="{panel.x(hour) + 1:.1f}" y="{top:.1f}" width="{panel.width / 24 - 2:.1f}" '
            f'height="{panel.y(0) - top:.1f}" fill="#e3e3e3"/>'
        )
    panel.parts.append(
        _text(
            panel.left, panel.top + panel.height + 32, "grey: articles an hour", "start", 11, "#777"
        )
    )
    for number, result in enumerate(results):
        points = [
            (panel.x(hour + 0.5), panel.y(percentile(lags, 95) / 60))
            for hour, lags in sorted(result.by_hour.items())
        ]
        for a, b in pairwise(points):
            panel.parts.append(_line(*a, *b, COLOURS[number], 'stroke-width="2"'))
    return panel.parts


def _requests(results: list[Result]) -> list[str]:
    rows = [result.row() for result in results]
    most = max(row["requests_per_new"] for row in rows) or 1
    panel = Panel(850, 50, 90, 290, 1, most * 1.1)
    panel.axes("requests a new article", (), (), "")
    panel.parts[0] = _text(
        panel.left + panel.width, panel.top - 14, "requests a new article", "end", 13
    )
    wide = panel.width / max(1, len(rows)) - 10
    for number, row in enumerate(rows):
        x = panel.left + number * (wide + 10)
        for value, shade in ((row["requests_per_new"], 0.35), (row["list_requests_per_new"], 1.0)):
            top = panel.y(value)
            panel.parts.append(
                f'<rect x="{x:.1f}" y="{top:.1f}" width="{wide:.1f}"'
                f' height="{panel.y(0) - top:.1f}" fill="{COLOURS[number]}"'
                f' fill-opacity="{shade}"/>'
            )
            panel.parts.append(_text(x + wide / 2, top - 4, f"{value:.1f}", "middle", 11))
    panel.parts.append(
        _text(panel.left + panel.width, panel.top + panel.height + 16, "dark: of lists", "end", 11)
    )
    return panel.parts
