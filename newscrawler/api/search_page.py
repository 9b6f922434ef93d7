"""The page of a search: hits with their copies, filters, what was asked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Annotated, Any, Literal

from fastapi import Depends, FastAPI
from fastapi import Query as Parameter
from fastapi.responses import Response

from newscrawler.api import text
from newscrawler.api.article_picture import picture_of
from newscrawler.api.asked import Asked, chosen_labels
from newscrawler.api.byline import byline_of, site_name
from newscrawler.api.data import DataReader, only_by_meaning, whole_store
from newscrawler.api.language import day_text, language_name, say
from newscrawler.api.limits import TooManySearches
from newscrawler.api.plots import outline
from newscrawler.api.rendering import render
from newscrawler.items import Article, Field
from newscrawler.store.base import (
    DEEPEST,
    Hit,
    Query,
    QueryError,
    SearchResult,
    Sort,
    StoreUnavailable,
)
from newscrawler.store.labels import FACETED, KEYS, MOST_ALONE, folded

#: Values of a facet that are shown beside the hits.
SITES_SHOWN = 8
LABELS_SHOWN = 6
DAYS_SHOWN = 10
FacetKey = Annotated[str, Parameter(pattern=f"^({'|'.join(('site', *KEYS, 'day'))})$")]
#: Hits from which on a chart of them says something.
LEAST_CHARTED = 5


def add_search(app: FastAPI, reader: DataReader, build_query: Callable[..., Query]) -> None:
    @app.get("/", include_in_schema=False)
    async def search_page(
        q: Annotated[str, Parameter(max_length=2_000)] = "",
        page: Annotated[int, Parameter(ge=0, le=DEEPEST)] = 0,
        sort: Sort = "best",
        copies: Literal["", "together", "apart"] = "",
        site: Annotated[list[str] | None, Parameter()] = None,
        after: str = "",
        before: str = "",
        labels: Annotated[tuple[tuple[str, str], ...], Depends(chosen_labels)] = (),
    ) -> Response:
        query = build_query(
            q,
            page=page,
            sort=sort,
            site=site,
            after=after,
            before=before,
            labels=labels,
            collapse=copies != "apart",
            zone=reader.deps.zone,
        )
        asked = Asked(
            query.text, sort, query.sites, after.strip(), before.strip(), page, labels,
            "apart" if copies == "apart" else "",
        )  # fmt: skip
        result = await reader.search(query)
        charted = query.text and not page and result.total >= LEAST_CHARTED
        return render(
            "search.html",
            asked=asked,
            result=result,
            only_near=only_by_meaning(result),
            # Facets count articles, also where a hit stands for several.
            articles=sum(result.facets.get("site", {}).values()),
            hits=[_hit(hit, reader) for hit in result.hits],
            facets=_facets(result, asked, reader),
            chips=chips(asked, reader),
            pages=_pages(query, result, asked),
            chart=await _chart(query, asked, reader) if charted else None,
            first=page * query.size + 1,
            status=await reader.status(),
            has_tokens=bool(reader.deps.access.secret),
        )


# ---------------------------------------------------------------- hits
def _hit(hit: Hit, reader: DataReader) -> dict[str, Any]:
    article = hit.article
    copies = [_copy(copy, reader) for copy in hit.copies]
    return {
        "id": article.id,
        "title": text.highlighted(article.title, hit.title_marks),
        "snippet": text.highlighted(hit.snippet, hit.snippet_marks),
        "url": text.web_url(article.url),
        "picture": picture_of(article, reader, in_hit=True)["src"],
        "similar": hit.similar,
        "by_meaning": hit.by_meaning,
        "copies": copies,
        "copy_sites": list(dict.fromkeys(copy["site_name"] for copy in copies)),
        **byline_of(article, reader),
    }


def _copy(article: Article, reader: DataReader) -> dict[str, Any]:
    return {"id": article.id, "title": article.title, **byline_of(article, reader)}


def _pages(query: Query, result: SearchResult, asked: Asked) -> dict[str, Any]:
    last = max(0, min(result.total, DEEPEST) - 1) // query.size
    numbers: list[dict[str, Any] | None] = []
    for n in text.page_numbers(min(query.page, last), last):
        if n is None:
            numbers.append(None)  # a gap
        else:
            numbers.append({"number": n + 1, "link": asked.link(page=n), "on": n == query.page})
    return {
        "numbers": numbers if last else [],
        "previous": asked.link(page=query.page - 1) if query.page else "",
        "next": asked.link(page=query.page + 1) if query.page < last else "",
    }


async def _chart(query: Query, asked: Asked, reader: DataReader) -> dict[str, Any] | None:
    """The matches over time, small; None where that cannot be had now: hits are what was asked for.
    It counts what words find, not what is near in meaning alone."""
    try:
        store = whole_store(reader)
        by_words = replace(query, mode="keyword", facets=False, limit_s=reader.deps.limits.search_s)
        async with reader.turn():
            days = await store.days(by_words)
    except (QueryError, StoreUnavailable, TooManySearches):
        return None
    return outline({day: sum(sites.values()) for day, sites in days.items()}, asked)


# ---------------------------------------------------------------- what was chosen
def chips(asked: Asked, reader: DataReader, path: str = "") -> list[dict[str, str]]:
    """Each filter of a search with the address without it, of the search or of another page
    (``path``)."""
    found = [
        {
            "label": say("Site"),
            "name": site_name(site, reader),
            "link": asked.link(site=tuple(s for s in asked.sites if s != site)),
        }
        for site in asked.sites
    ]
    found += [
        {
            "label": facet_label(key),
            "name": value_name(key, value),
            "link": asked.without(key, value),
        }
        for key, value in asked.labels
    ]
    if asked.after or asked.before:
        span, link = _span_text(asked.after, asked.before), asked.link(after="", before="")
        found.append({"label": say("Published"), "name": span, "link": link})
    if path:
        for chip in found:
            chip["link"] = path + chip["link"].removeprefix("/")
    return found


def _span_text(after: str, before: str) -> str:
    """A day of the facet by its name; else both ends as they were given."""
    try:
        first, last = datetime.fromisoformat(after), datetime.fromisoformat(before)
        if last - first == timedelta(days=1):
            return day_text(first.date(), weekday=True)
    except (ValueError, TypeError):  # other ways to write a day; with and without a zone
        pass
    if after and before:
        return say("from {after} to before {before}", after=after, before=before)
    return say("from {after}", after=after) if after else say("before {before}", before=before)


# ---------------------------------------------------------------- facets
def _facets(result: SearchResult, asked: Asked, reader: DataReader) -> dict[str, Any]:
    lists = [
        _facet("site", _site_rows(result.facets.get("site", {}), asked, reader), asked, SITES_SHOWN)
    ]
    for field in FACETED:
        rows = _label_rows(result.facets.get(field.key, {}), field, asked)
        lists.append(_facet(field.key, rows, asked, LABELS_SHOWN))
    days = sorted(result.facets.get("day", {}).items(), reverse=True)
    zone = str(reader.deps.zone)
    lists.append(_facet("day", _day_rows(days, asked), asked, DAYS_SHOWN, zone))
    return {"lists": [one for one in lists if one["rows"]]}


def facet_label(key: str) -> str:
    names = {field.key: field.label for field in FACETED} | {"site": "Site", "day": "Day"}
    return say(names[key])


def _facet(
    key: str, rows: list[dict[str, Any]], asked: Asked, shown: int, zone: str = ""
) -> dict[str, Any]:
    """``more`` leads to all values, where there are more than are shown."""
    more = asked.at("/facet", key=key) if len(rows) > shown else ""
    label = facet_label(key)
    return {"key": key, "label": label, "rows": rows[:shown], "zone": zone, "more": more}


def _site_rows(found: dict[str, int], asked: Asked, reader: DataReader) -> list[dict[str, Any]]:
    rows = []
    for site, number in found.items():
        is_on = site in asked.sites
        others = tuple(one for one in asked.sites if one != site)
        link = asked.link(site=others if is_on else (*asked.sites, site))
        rows.append({"name": site_name(site, reader), "count": number, "link": link, "on": is_on})
    return rows


def _label_rows(found: dict[str, int], field: Field, asked: Asked) -> list[dict[str, Any]]:
    key, on = field.key, {folded(value) for value in asked.of(field.key)}
    rows = []
    for value, number in found.items():
        is_on = folded(value) in on
        link = asked.without(key, value) if is_on else asked.link(**{key: (*asked.of(key), value)})
        name = value_name(key, value)
        rows.append({"name": name, "count": number, "link": link, "on": is_on})
    return rows


def value_name(key: str, value: str) -> str:
    """Codes in words."""
    if key == "without" and folded(value) == "date":
        return say("a date")
    return language_name(value) if key == "lang" else value


def _day_rows(days: list[tuple[str, int]], asked: Asked) -> list[dict[str, Any]]:
    top = max((number for _, number in days), default=1)
    rows = []
    for day, number in days:
        start = datetime.fromisoformat(day).date()
        after = (start + timedelta(days=1)).isoformat()
        is_on = (asked.after, asked.before) == (day, after)
        link = asked.link(after="", before="") if is_on else asked.link(after=day, before=after)
        rows.append(
            {
                "name": day_text(start, weekday=True),
                "count": number,
                "width": max(1, round(100 * number / top)),
                "link": link,
                "on": is_on,
            }
        )
    return rows


def add_facets(app: FastAPI, reader: DataReader, asked_query: Callable[..., Query]) -> None:
    @app.get("/facet", include_in_schema=False)
    async def facet_page(
        key: FacetKey,
        within: Annotated[str, Parameter(max_length=100)] = "",
        after: str = "",
        before: str = "",
        # A name of this function is no annotation.
        query: Query = Depends(asked_query),  # noqa: B008  # as FastAPI has it
    ) -> Response:
        """All values of one facet of a search, and those with some words."""
        asked = Asked(
            query.text, "best", query.sites, after.strip(), before.strip(), 0, query.labels
        )
        async with reader.turn():
            rows = await _all_rows(key, within.strip(), query, asked, reader)
        return render(
            "facet.html",
            asked=asked,
            key=key,
            label=facet_label(key),
            within=within.strip(),
            rows=rows[:MOST_ALONE],
            more=len(rows) >= MOST_ALONE,
            chips=chips(asked, reader),
        )


async def _all_rows(
    key: str, within: str, query: Query, asked: Asked, reader: DataReader
) -> list[dict[str, Any]]:
    store = whole_store(reader)
    if key == "day":
        found = await store.days(query)
        days = [(day, sum(of.values())) for day, of in sorted(found.items(), reverse=True)]
        return [
            row
            for (day, _), row in zip(days, _day_rows(days, asked), strict=True)
            if not within or within in day or within in _written(day)
        ]
    if key == "site":  # by its name as well, which no store knows
        rows = _site_rows(await store.values(query, key), asked, reader)
        words = folded(within).split()
        return [row for row in rows if all(word in folded(row["name"]) for word in words)]
    field = next(field for field in FACETED if field.key == key)
    return _label_rows(await store.values(query, key, within), field, asked)


def _written(day: str) -> str:
    """As days are typed: "31/8/2026"."""
    date = datetime.fromisoformat(day).date()
    return f"{date.day}/{date.month}/{date.year}"
