"""Charts over time, of articles and of the fleet: what the templates draw, and how their steps are
called."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from datetime import date
from typing import Any

from newscrawler.api.asked import Asked
from newscrawler.api.byline import site_name
from newscrawler.api.data import DataReader
from newscrawler.api.language import (
    day_text,
    month_text,
    number_text,
    percent,
    say,
    thousands,
)
from newscrawler.store.attention import Per, Step, after
from newscrawler.store.attention import steps as in_steps

#: Sites that a plot tells apart; the others are one.
COLOURS = 5
#: Units of a plot: one step is so wide, and the whole so high.
_STEP, _HIGH = 10, 100
#: (name, a value of each step), the lowest first; None = nothing is known
Layers = Sequence[tuple[str, Sequence[float | None]]]


def by_site(steps: Sequence[Step]) -> Counter[str]:
    every: Counter[str] = Counter()
    for step in steps:
        every.update(step.sites)
    return every


def plot(
    steps: Sequence[Step], per: Per, show: str, asked: Asked, reader: DataReader
) -> dict[str, Any]:
    """Bars of the steps, each made of its sites; a step is a link to its articles."""
    per_site = by_site(steps)
    shown = [site for site, _ in per_site.most_common(COLOURS)]

    def value(step: Step) -> float:
        return step.share if show == "share" else step.articles

    top = nice(max(map(value, steps)) or 1)
    peak = max(steps, key=value)
    return {
        "wide": len(steps) * _STEP,
        "high": _HIGH,
        "step": _STEP,
        "bars": [
            _bar(at, step, per, asked, _stacked(step, shown, _HIGH * value(step) / top))
            for at, step in enumerate(steps)
        ],
        "scale": [axis(top, show), axis(top / 2, show), "0"],
        "days": _names_below(steps, per),
        "legend": _legend(per_site, shown, reader),
        "said": say(
            "Articles over time; most: {step}: {n}",
            step=step_name(peak.day, per),
            n=thousands(peak.articles),
        ),
        "peak": {
            "name": step_name(peak.day, per),
            "articles": peak.articles,
            "share": percent(peak.share),
        },
        "rows": [
            {
                "name": step_name(step.day, per),
                "articles": step.articles,
                "published": step.published,
                "share": percent(step.share),
            }
            for step in reversed(steps)
        ],
    }


def _bar(
    at: int, step: Step, per: Per, asked: Asked, parts: list[dict[str, Any]]
) -> dict[str, Any]:
    title = say(
        "{step}: {n} of {published} articles",
        step=step_name(step.day, per),
        n=thousands(step.articles),
        published=thousands(step.published),
    )
    last = after(step.day, per)
    link = asked.link(after=step.day.isoformat(), before=last.isoformat(), sort="date")
    return {"x": at * _STEP, "parts": parts, "title": title, "link": link}


def _stacked(step: Step, shown: Sequence[str], high: float) -> list[dict[str, Any]]:
    """The part of each site, the lowest first, and above them all that of the others."""
    of_shown = [step.sites.get(site, 0) for site in shown]
    parts, base = [], 0.0
    for colour, many in enumerate([*of_shown, step.articles - sum(of_shown)]):
        part = high * many / step.articles if many else 0.0
        if many:
            y = round(_HIGH - base - part, 3)
            parts.append({"y": y, "high": round(part, 3), "colour": colour})
        base += part
    return parts


def _names_below(steps: Sequence[Step], per: Per) -> list[str]:
    """Of the first step, the middle one where there are three, and the last."""
    middle = [steps[len(steps) // 2]] if len(steps) > 2 else []
    unit: Per = "month" if per == "month" else "day"
    return [step_name(step.day, unit) for step in (steps[0], *middle, steps[-1])]


def _legend(
    per_site: Counter[str], shown: Sequence[str], reader: DataReader
) -> list[dict[str, Any]]:
    legend = [
        {"name": site_name(site, reader), "articles": per_site[site], "colour": colour}
        for colour, site in enumerate(shown)
    ]
    if rest := per_site.total() - sum(per_site[site] for site in shown):
        name = say("{n} more", n=len(per_site) - len(shown))
        legend.append({"name": name, "articles": rest, "colour": COLOURS})
    return legend


def nice(value: float) -> float:
    """The next number above that people read at a glance, with a whole half: 2, 4, 10, 20, 40..."""
    unit = 0.001
    while True:
        for factor in (1, 2, 4, 6, 8):
            if factor * unit >= value:
                return factor * unit
        unit *= 10


def axis(value: float, show: str) -> str:
    return number_text(f"{100 * value:g} %" if show == "share" else f"{value:,g}")


def step_name(day: date, per: Per) -> str:
    if per == "month":
        return month_text(day)
    return day_text(day) if per == "day" else say("week of {day}", day=day_text(day))


def outline(days: dict[str, int], asked: Asked) -> dict[str, Any] | None:
    """A chart without sites and axes, to stand above the hits of a search: articles per day
    ("2026-08-31"). None where they are all of one day."""
    per, made = in_steps({day: {"": number} for day, number in days.items()}, {}, None)
    if len(made) < 2:
        return None
    top = max(step.articles for step in made)
    bars = []
    for at, step in enumerate(made):
        end = after(step.day, per)
        high = round(_HIGH * step.articles / top, 2)
        bars.append(
            {
                "x": at * _STEP,
                "y": _HIGH - high,
                "high": high,
                "title": say("{step}: {n}", step=step_name(step.day, per), n=step.articles),
                "link": asked.link(after=step.day.isoformat(), before=end.isoformat()),
            }
        )
    peak = max(made, key=lambda step: step.articles)
    return {
        "wide": len(made) * _STEP,
        "high": _HIGH,
        "step": _STEP,
        "bars": bars,
        "first": step_name(made[0].day, per),
        "last": step_name(made[-1].day, per),
        "said": say(
            "Articles over time; most: {step}: {n}",
            step=step_name(peak.day, per),
            n=thousands(peak.articles),
        ),
    }


def layered(
    name: str,
    layers: Layers,
    steps: Sequence[str],
    is_gap: Sequence[bool],
    *,
    top: Callable[[float], float],
    show: Callable[[float], str],
    add: bool = True,
) -> dict[str, Any]:
    """Bars of one thing, or of several upon one another; a gap is shaded, a zero is bare.

    :param layers: (name, a value of each step), the lowest first; None = nothing is known
    :param steps: what each step is called, "14:05"
    :param add: the values add up; False: each layer reaches as high as its value
    """
    combined = sum if add else max
    sums = [combined(values[at] or 0 for _, values in layers) for at in range(len(steps))]
    known = [at for at in range(len(steps)) if any(v[at] is not None for _, v in layers)]
    highest = top(max(sums, default=0) or 1)
    bars = [
        {
            "x": at * _STEP,
            "parts": _layers_of(at, layers, highest, add=add),
            "title": say("{step}: {n}", step=step, n=_said(at, layers, show, is_gap[at])),
            "is_gap": is_gap[at],
        }
        for at, step in enumerate(steps)
    ]
    peak = max(known, key=lambda at: sums[at], default=None)
    at_most = "–" if peak is None else show(sums[peak])
    now = "–" if not known else show(sums[known[-1]])
    return {
        "name": name,
        "wide": len(steps) * _STEP,
        "high": _HIGH,
        "step": _STEP,
        "bars": bars,
        "scale": [show(highest), show(highest / 2), "0"],
        "days": [steps[0], steps[len(steps) // 2], steps[-1]],
        "legend": [
            {"name": label, "colour": colour} for colour, (label, _) in enumerate(layers) if label
        ],
        "now": now,
        "most": at_most,
        "said": say("{name}: {now} now, {most} at most", name=name, now=now, most=at_most),
    }


def _layers_of(at: int, layers: Layers, highest: float, *, add: bool) -> list[dict[str, Any]]:
    parts, base = [], 0.0
    for colour, (_, values) in enumerate(layers):
        below = 0 if add else base
        high = max(_HIGH * (values[at] or 0) / highest - below, 0)
        if high:
            y = round(_HIGH - base - high, 3)
            parts.append({"y": y, "high": round(high, 3), "colour": colour})
        base += high
    return parts


def _said(at: int, layers: Layers, show: Callable[[float], str], is_gap: bool) -> str:
    """The values of a step in words; of several layers those that are not 0."""
    known = [(label, value) for label, values in layers if (value := values[at]) is not None]
    told = [f"{label} {show(value)}".strip() for label, value in known if value or len(layers) == 1]
    if told:
        return ", ".join(told)
    return say("no data") if is_gap else "–"


#: Seconds that people read at a glance.
_SPANS_S = (10, 20, 30, 60, 120, 240, 600, 1200, 1800, 3600, 7200, 14_400, 43_200, 86_400, 172_800)


def nice_span(seconds: float) -> float:
    """As :func:`nice`, of seconds."""
    return next((float(one) for one in _SPANS_S if one >= seconds), seconds)
