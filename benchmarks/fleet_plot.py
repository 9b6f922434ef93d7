"""The picture of simulate_fleet as one SVG, without a plotting library: pages a second by workers,
and how busy each shard's processor is."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from benchmarks.freshness_plot import _line, _path, _text

if TYPE_CHECKING:
    from benchmarks.simulate_fleet import Row

WIDTH, HEIGHT = 960, 420
#: Colours that differ for every kind of eye (Okabe and Ito).
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#555")
SERIES = ("1 shard", "4 shards", "16 shards", "16 shards, all asked")


class LogPanel:
    """A frame with a logarithmic axis to the right, and one upwards unless ``most_y`` is a
    share."""

    def __init__(self, left: float, most_y: float, is_share: bool) -> None:
        self.left, self.top, self.width, self.height = left, 50.0, 380.0, 290.0
        self.most_y, self.is_share = most_y, is_share

    def x(self, value: float) -> float:
        return self.left + self.width * math.log10(max(1.0, value)) / 3

    def y(self, value: float) -> float:
        part = value / self.most_y
        if not self.is_share:
            part = (math.log10(max(10.0, value)) - 1) / (math.log10(self.most_y) - 1)
        return self.top + self.height * (1 - min(1.0, part))

    def axes(self, title: str) -> list[str]:
        parts = [_text(self.left, self.top - 14, title, size=13)]
        ys = [0, 0.25, 0.5, 0.75, 1.0] if self.is_share else [10, 100, 1_000, 10_000, 100_000]
        for value in ys:
            label = f"{value:.0%}" if self.is_share else f"{value:,}"
            y = self.y(value)
            parts.append(_line(self.left, y, self.left + self.width, y))
            parts.append(_text(self.left - 6, y + 4, label, "end", 11))
        for value in (1, 10, 100, 1000):
            x = self.x(value)
            parts.append(_text(x, self.top + self.height + 16, f"{value:,}", "middle", 11))
        parts.append(
            _text(self.left + self.width, self.top + self.height + 32, "workers", "end", 11)
        )
        return parts


def draw(rows: list[tuple[str, Row]]) -> str:
    """SVG of the series by workers."""
    pages = LogPanel(70, 100_000, is_share=False)
    busy = LogPanel(550, 1.0, is_share=True)
    parts = pages.axes("pages a second of the fleet") + busy.axes("each shard's processor is busy")
    first = rows[0][1].fleet
    bounds = [(n, first.workers and n * first.concurrency / first.latency_s) for n in (1, 1000)]
    parts.append(_path([(pages.x(n), pages.y(value)) for n, value in bounds], "#bbb"))
    parts.append(_text(pages.x(2), pages.y(220), "connections of the workers", "start", 11, "#888"))
    for number, name in enumerate(SERIES):
        found = [row for series, row in rows if series == name]
        if not found:
            continue
        colour = COLOURS[number]
        for panel, value in ((pages, "pages_per_s"), (busy, "redis_busy")):
            points = [(panel.x(r.fleet.workers), panel.y(getattr(r, value))) for r in found]
            parts.append(_path(points, colour))
            parts += [
                f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in points
            ]
        x = 70 + 215 * number
        parts.append(f'<rect x="{x}" y="{HEIGHT - 22}" width="14" height="4" fill="{colour}"/>')
        parts.append(_text(x + 20, HEIGHT - 15, name))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}"'
        f' font-family="sans-serif"><rect width="{WIDTH}" height="{HEIGHT}"'
        f' fill="#fff"/>{"".join(parts)}</svg>\n'
    )
