"""Attention over time, and what rises: JSON, CSV, pages with plots that the server draws."""

from __future__ import annotations

import csv
import io
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import date, timedelta
from typing import Annotated, Any, Literal
from urllib.parse import urlencode

from fastapi import Depends, FastAPI, Request
from fastapi import Query as Parameter
from fastapi.responses import Response

from newscrawler.api import models
from newscrawler.api.asked import Asked
from newscrawler.api.bulk import asked_query
from newscrawler.api.data import DataReader, plain, whole_store
from newscrawler.api.language import say
from newscrawler.api.plots import by_site, plot
from newscrawler.api.rendering import render
from newscrawler.api.search_page import chips
from newscrawler.store.attention import PERS, Per, Step, attention
from newscrawler.store.base import Query, QueryError, SearchResult
from newscrawler.store.days import day as read_day
from newscrawler.store.trends import PAST_DAYS, Trends, trends
from newscrawler.utils.display import cell

#: Seconds that the trends of a day are kept: they read some weeks of titles.
_KEPT_S, _KEPT = 300, 32


def add_over_time(app: FastAPI, reader: DataReader, build_query: Callable[..., Query]) -> None:
    _add_attention(app, reader, asked_query(reader, build_query))
    _add_trends(app, reader)


# ---------------------------------------------------------------- attention
def _add_attention(app: FastAPI, reader: DataReader, asked: Callable[..., Query]) -> None:
    async def looked(query: Query, per: Per | None) -> tuple[Per, list[Step]]:
        async with reader.turn():
            return await attention(whole_store(reader), query, per)

    async def how_read(query: Query) -> SearchResult:
        """A chart of corrected words is no chart of those that were typed: it has to say so."""
        return await reader.search(replace(query, size=1, mode="keyword", facets=False))

    @app.get(
        "/api/attention",
        summary="How many articles a query finds per day, week or month, and by site",
        tags=["articles"],
        response_model=models.AttentionAnswer,
        responses={
            **models.errors(400, 422, 429, 503),
            200: models.files({"text/csv": models.TEXT}),
        },
    )
    async def attention_json(
        per: Literal["day", "week", "month"] = "day",
        format: Literal["json", "csv"] = "json",
        query: Query = Depends(asked),  # noqa: B008  # as FastAPI has it
    ) -> Any:
        _, steps = await looked(query, per)
        if format == "csv":
            return Response(
                _csv(steps, per).encode(),
                media_type="text/csv; charset=utf-8",
                headers={"Content-Disposition": f'attachment; filename="attention-{per}.csv"'},
            )
        read = await how_read(query)
        return {
            "query": query.text,
            "read_as": read.read_as,
            "notes": list(read.notes),
            "relaxed": read.relaxed,
            "corrections": read.corrections,
            "per": per,
            "total": sum(step.articles for step in steps),
            "steps": [
                {
                    "start": step.day.isoformat(),
                    "articles": step.articles,
                    "published": step.published,
                    "share": step.share,
                    "sites": step.sites,
                }
                for step in steps
            ],
        }

    @app.get("/attention", include_in_schema=False)
    async def attention_page(
        request: Request,
        per: Literal["auto", "day", "week", "month"] = "auto",
        show: Literal["count", "share"] = "count",
        query: Query = Depends(asked),  # noqa: B008  # as FastAPI has it
    ) -> Response:
        chosen, steps = await looked(query, None if per == "auto" else per)
        values = request.query_params
        form = Asked(
            query.text, "best", query.sites, values.get("after", "").strip(),
            values.get("before", "").strip(), 0, query.labels,
        )  # fmt: skip
        return render(
            "attention.html",
            asked=form,
            result=await how_read(query),
            per=chosen,
            pers=PERS,
            show=show,
            total=sum(step.articles for step in steps),
            plot=plot(steps, chosen, show, form, reader) if steps else None,
            zone=str(query.zone),
            step_names={"day": say("Day"), "week": say("Week"), "month": say("Month")},
            chips=chips(form, reader, "/attention"),
        )


def _csv(steps: Sequence[Step], per: Per) -> str:
    """A column for each site."""
    sites = [site for site, _ in by_site(steps).most_common()]
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow([per, "articles", "published", "share", *map(cell, sites)])
    for step in steps:
        counts = [step.sites.get(site, 0) for site in sites]
        share = f"{step.share:.6f}"
        writer.writerow([step.day.isoformat(), step.articles, step.published, share, *counts])
    return out.getvalue()


# ---------------------------------------------------------------- trends
def _add_trends(app: FastAPI, reader: DataReader) -> None:
    kept: dict[tuple[date, str], tuple[float, Trends]] = {}

    async def looked(text: str, site: str) -> Trends:
        zone = reader.deps.zone
        today = reader.now().astimezone(zone).date()
        chosen = read_day("day", text.strip(), zone).astimezone(zone).date() if text else today
        if chosen > today:
            raise QueryError(f"day={text}: has not come yet")
        key = (chosen, site)
        found = kept.get(key)
        if found is None or time.monotonic() - found[0] > _KEPT_S:
            async with reader.turn():
                found = (
                    time.monotonic(),
                    await trends(whole_store(reader), chosen, zone, site, size=30),
                )
            if len(kept) >= _KEPT:
                kept.clear()
            kept[key] = found
        return found[1]

    Day = Annotated[str, Parameter(max_length=20, description="default: today; 31/8/2026")]
    Site = Annotated[str, Parameter(max_length=200, description="of this site alone")]

    async def trends_json(day: str = "", site: str = "") -> dict[str, Any]:
        return trends_plain(await looked(day, site))

    trends_json.__annotations__ |= {"day": Day, "site": Site}
    app.get(
        "/api/trends",
        summary="Terms that rise on a day against their own past, with their articles",
        tags=["articles"],
        response_model=models.TrendsAnswer,
        responses=models.errors(400, 422, 429, 503),
    )(trends_json)

    async def trends_page(day: str = "", site: str = "") -> Response:
        found = await looked(day, site)
        return render(
            "trends.html",
            found=found,
            site=site,
            sites=sorted(reader.deps.sites.values(), key=lambda one: one.name),
            names={one.id: one.name for one in reader.deps.sites.values()},
            top=max((term.score for term in found.terms), default=1),
            before=_trends_link(found.day - timedelta(days=1), site),
            after=_trends_link(found.day + timedelta(days=1), site)
            if found.day < reader.now().astimezone(reader.deps.zone).date()
            else "",
            past_days=PAST_DAYS,
            query=lambda text: urlencode({"q": f'"{text}"'}),
            zone=str(reader.deps.zone),
        )

    trends_page.__annotations__ |= {"day": Day, "site": Site}
    app.get("/trends", include_in_schema=False)(trends_page)


def _trends_link(day: date, site: str) -> str:
    return "/trends?" + urlencode({"day": day.isoformat()} | ({"site": site} if site else {}))


def trends_plain(found: Trends) -> dict[str, Any]:
    return {
        "day": found.day.isoformat(),
        "titles": found.titles,
        "past": found.past,
        "terms": [
            {
                "term": term.text,
                "articles": term.articles,
                "expected": term.expected,
                "score": term.score,
                "sites": term.sites,
                "before": term.before,
                "reason": term.reason,
                "headlines": [
                    {"id": h.id, "site": h.site, "title": h.title, "published": plain(h.at)}
                    for h in term.headlines
                ],
            }
            for term in found.terms
        ],
    }
