"""The fleet over the last hours, for operators without Grafana: a page with plots that the server
draws, and the same as JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from operator import itemgetter
from typing import Annotated, Any, Literal

from fastapi import FastAPI, HTTPException
from fastapi import Query as Parameter
from fastapi.responses import Response

from newscrawler.api import models, text
from newscrawler.api.asked import Asked
from newscrawler.api.data import DataReader
from newscrawler.api.language import say, thousands
from newscrawler.api.plots import COLOURS, layered, nice, nice_span
from newscrawler.api.rendering import render
from newscrawler.api.text import span_text
from newscrawler.crawl.alert_ways import explain_of
from newscrawler.fleet.alarms import KINDS
from newscrawler.fleet.incidents import Incident, Incidents
from newscrawler.fleet.minutes import OTHER, Minutes, Point, steps
from newscrawler.fleet.registry import RegistryUnavailable

#: Hours that can be looked at -> minutes of a step.
SPANS = {1: 1, 6: 5, 24: 15}
Hours = Annotated[
    Literal["1", "6", "24"], Parameter(description="up to now; in steps of 1, 5 and 15 minutes")
]


class FleetReader:
    """The steps of a span, and why there are none ("" = they are known)."""

    def __init__(self, reader: DataReader) -> None:
        self.reader = reader

    async def steps(self, hours: int) -> tuple[int, list[Point | None], str]:
        """The first minute (since the epoch), and a step for each place of the plot."""
        registry, step = self.reader.deps.registry, SPANS[hours]
        if registry is None:
            return 0, [], self.reader.deps.redis_error or "no Redis"
        minutes = Minutes(registry.client)
        try:
            now, points = await self.reader.kept.get(
                f"minutes-{hours}", lambda: minutes.read(60 * hours)
            )
        except RegistryUnavailable as exc:
            return 0, [], str(exc)
        first = (now // step + 1) * step - 60 * hours
        return first, steps(points, now, 60 * hours, step), ""

    async def incidents(self) -> list[dict[str, Any]]:
        """Those that were told and are open, the oldest first.

        :raises RegistryUnavailable: Redis does not answer
        """
        registry = self.reader.deps.registry
        if registry is None:
            raise RegistryUnavailable(self.reader.deps.redis_error or "no Redis")
        client = registry.client
        found = await self.reader.kept.get("incidents", Incidents(client).open)
        return [_incident(one) for one in found]


def _incident(one: Incident) -> dict[str, Any]:
    known = KINDS.get(one.kind)
    return {
        "kind": one.kind,
        "severity": known.severity if known else "warning",
        "subject": one.subject,
        "reason": one.reason,
        "since": text.from_ms(one.since_ms),
        "well_since": text.from_ms(one.well_ms) if one.well_ms else None,
        "explain": explain_of(one.kind, one.subject),
    }


async def _incidents_of(fleet: FleetReader) -> list[dict[str, Any]]:
    """For the page, which says by itself that Redis is away."""
    try:
        return await fleet.incidents()
    except RegistryUnavailable:
        return []


def add_fleet(app: FastAPI, reader: DataReader) -> None:
    fleet = FleetReader(reader)

    @app.get(
        "/api/fleet/history",
        summary="The fleet over the last hours: pages, articles, queue, errors, workers, freshness",
        tags=["crawl"],
        response_model=models.FleetHistory,
        responses=models.errors(422, 503),
    )
    async def history(hours: Hours = "1") -> dict[str, Any]:
        first, found, problem = await fleet.steps(int(hours))
        if problem:
            raise HTTPException(503, problem)
        step = SPANS[int(hours)]
        rows = [_row(first + at * step, one) for at, one in enumerate(found)]
        return {"hours": int(hours), "step_minutes": step, "steps": rows}

    @app.get(
        "/api/incidents",
        summary="What the monitor has told of and is not over yet",
        tags=["crawl"],
        response_model=models.OpenIncidents,
        responses=models.errors(503),
    )
    async def incidents() -> dict[str, Any]:
        try:
            return {"incidents": await fleet.incidents()}
        except RegistryUnavailable as exc:
            raise HTTPException(503, str(exc)) from exc

    @app.get("/fleet", include_in_schema=False)
    async def fleet_page(hours: Hours = "1") -> Response:
        first, found, problem = await fleet.steps(int(hours))
        workers, _ = await reader.workers()
        for worker in workers:
            started = text.from_ms(worker.get("started_ms", 0))
            worker["started_text"] = text.ago(started, reader.now())
        names = [_clock(first + at * SPANS[int(hours)], reader) for at in range(len(found))]
        return render(
            "fleet.html",
            hours=int(hours),
            spans=list(SPANS),
            problem=problem,
            is_empty=not any(found),
            has_gaps=any(_gaps(found)),
            plots=_plots(found, names) if any(found) else [],
            rows=_table(found, names),
            tiles=_tiles(found),
            workers=workers,
            incidents=[
                {**one, "age": text.ago(one["since"], reader.now())}
                for one in await _incidents_of(fleet)
            ],
            status=await reader.status(),
            zone=str(reader.deps.zone),
            asked=Asked(),
        )


def _row(minute: int, one: Point | None) -> dict[str, Any]:
    at = datetime.fromtimestamp(minute * 60, UTC).isoformat()
    if one is None:
        return {"at": at}
    return {
        "at": at,
        "covered_s": one.covered_s,
        "pages": one.pages,
        "articles_new": one.new,
        "articles_updated": one.updated,
        "pages_per_minute": one.per_minute(one.pages),
        "articles_per_minute": one.per_minute(one.new + one.updated),
        "errors": dict(one.errors.most_common()),
        "workers": one.workers,
        "in_flight": one.in_flight,
        "queued": one.queued,
        "waiting": one.waiting,
        "freshness_p50_s": one.lag_s(0.5),
        "freshness_p95_s": one.lag_s(0.95),
    }


def _clock(minute: int, reader: DataReader) -> str:
    return f"{datetime.fromtimestamp(minute * 60, UTC).astimezone(reader.deps.zone):%H:%M}"


# ---------------------------------------------------------------- what is drawn
Values = list[float | None]


def _plots(found: Sequence[Point | None], names: Sequence[str]) -> list[dict[str, Any]]:
    def of(value: Callable[[Point], float | None]) -> Values:
        return [None if one is None else value(one) for one in found]

    def rate(value: Callable[[Point], int]) -> Values:
        return of(lambda one: one.per_minute(value(one)))

    is_gap = _gaps(found)
    half, most = of(lambda one: one.lag_s(0.5)), of(lambda one: one.lag_s(0.95))
    drawn: list[tuple[str, list[tuple[str, Values]]]] = [
        (say("Pages per minute"), [("", rate(lambda one: one.pages))]),
        (
            say("Articles per minute"),
            [
                (say("new"), rate(lambda one: one.new)),
                (say("updated"), rate(lambda one: one.updated)),
            ],
        ),
        (say("Queued URLs"), [("", of(lambda one: one.queued))]),
        (say("Fetches open, the most at once"), [("", of(lambda one: one.in_flight))]),
        (say("Workers"), [("", of(lambda one: one.workers))]),
        (say("Errors by reason"), _errors(found)),
    ]
    made = [layered(name, layers, names, is_gap, top=nice, show=_short) for name, layers in drawn]
    made.append(
        layered(
            say("From publication to the search"),
            [(say("half of the articles"), half), (say("95 % of the articles"), most)],
            names,
            is_gap,
            top=nice_span,
            show=span_text,
            add=False,
        )
    )
    return made


def _gaps(found: Sequence[Point | None]) -> list[bool]:
    """A step that has just begun is none: nobody has looked yet."""
    gaps = [one is None for one in found]
    if len(gaps) > 1:
        gaps[-1] = gaps[-1] and gaps[-2]
    return gaps


def _short(value: float) -> str:
    return thousands(round(value) if value >= 20 or value == int(value) else round(value, 1))


def _errors(found: Sequence[Point | None]) -> list[tuple[str, Values]]:
    """A layer for each of the most frequent reasons, and one for the rest."""
    every: Counter[str] = Counter()
    for one in found:
        every.update(one.errors if one else {})
    shown = [reason for reason, _ in every.most_common() if reason != OTHER][:COLOURS]

    def values(count: Callable[[Counter[str]], int]) -> Values:
        return [None if one is None else count(one.errors) for one in found]

    layers = [(reason, values(itemgetter(reason))) for reason in shown]
    if every.keys() - set(shown) or not shown:
        rest = values(lambda errors: sum(n for r, n in errors.items() if r not in shown))
        layers.append((say("other") if shown else "", rest))
    return layers


def _table(found: Sequence[Point | None], names: Sequence[str]) -> list[dict[str, Any]]:
    """The newest first, without the gaps."""
    return [
        {
            "name": name,
            "pages": _or_dash(one.per_minute(one.pages)),
            "articles": _or_dash(one.per_minute(one.new + one.updated)),
            "queued": one.queued,
            "in_flight": one.in_flight,
            "workers": one.workers,
            "errors": one.errors.most_common(),
            "fresh": span_text(one.lag_s(0.95)),
        }
        for name, one in reversed(list(zip(names, found, strict=True)))
        if one is not None
    ]


def _or_dash(value: float | None) -> str:
    return "–" if value is None else _short(value)


def _tiles(found: Sequence[Point | None]) -> dict[str, str]:
    """Of the whole span."""
    whole = Point(0)
    for one in found:
        if one is not None:
            whole.add(one)
    return {
        "pages": thousands(whole.pages),
        "articles": thousands(whole.new + whole.updated),
        "errors": thousands(whole.errors.total()),
        "fresh": span_text(whole.lag_s(0.95)) or "–",
    }
