"""The page of a search: hits with their copies, filters, what was asked."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Annotated, Any, Literal

from fastapi import Depends, FastAPI
from fastapi import Query as Parameter
from fastapi.responses import Response

from newscrawler.api import text
from newscrawler.api.asked import Asked, chosen_labels
from newscrawler.api.byline import byline_of
from newscrawler.api.data import DataReader
from newscrawler.api.language import day_text, say
from newscrawler.api.rendering import render
from newscrawler.items import Article, Field
from newscrawler.store.base import DEEPEST, Hit, Query, SearchResult
from newscrawler.store.labels import FACETED, folded

#: Values of a facet that are shown beside the hits.
SITES_SHOWN = 12
LABELS_SHOWN = 12
DAYS_SHOWN = 14


def add_search(app: FastAPI, reader: DataReader, build_query: Callable[..., Query]) -> None:
    @app.get("/", include_in_schema=False)
    async def search_page(
        q: Annotated[str, Parameter(max_length=2_000)] = "",
        page: Annotated[int, Parameter(ge=0, le=DEEPEST)] = 0,
        sort: Literal["relevance", "date"] = "relevance",
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
        return render(
            "search.html",
            asked=asked,
            result=result,
            # Facets count articles, also where a hit stands for several.
            articles=sum(result.facets.get("site", {}).values()),
            hits=[_hit(hit, reader) for hit in result.hits],
            facets=_facets(result, asked, reader),
            chips=chips(asked, reader),
            pages=_pages(query, result, asked),
            first=page * query.size + 1,
            status=await reader.status(),
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
    names = {field.key: field.label for field in FACETED}
    found += [
        {"label": say(names[key]), "name": value, "link": asked.without(key, value)}
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


def site_name(site: str, reader: DataReader) -> str:
    facts = reader.deps.sites.get(site)
    return facts.name if facts else site


# ---------------------------------------------------------------- facets
def _facets(result: SearchResult, asked: Asked, reader: DataReader) -> dict[str, Any]:
    lists = [
        _site_facet(result, asked, reader),
        *(_label_facet(field, result, asked) for field in FACETED),
        _day_facet(result, asked, reader),
    ]
    return {"lists": [one for one in lists if one["rows"]]}


def _facet(key: str, label: str, rows: list[dict[str, Any]], zone: str = "") -> dict[str, Any]:
    return {"key": key, "label": label, "rows": rows, "zone": zone, "more": ""}


def _site_facet(result: SearchResult, asked: Asked, reader: DataReader) -> dict[str, Any]:
    rows = []
    for site, number in list(result.facets.get("site", {}).items())[:SITES_SHOWN]:
        is_on = site in asked.sites
        link = asked.link(site=() if is_on else (site,))
        rows.append({"name": site_name(site, reader), "count": number, "link": link, "on": is_on})
    return _facet("site", say("Site"), rows)


def _label_facet(field: Field, result: SearchResult, asked: Asked) -> dict[str, Any]:
    key, on = field.key, {folded(value) for value in asked.of(field.key)}
    rows = []
    for value, number in list(result.facets.get(key, {}).items())[:LABELS_SHOWN]:
        is_on = folded(value) in on
        link = asked.without(key, value) if is_on else asked.link(**{key: (*asked.of(key), value)})
        rows.append({"name": value, "count": number, "link": link, "on": is_on})
    return _facet(key, say(field.label), rows)


def _day_facet(result: SearchResult, asked: Asked, reader: DataReader) -> dict[str, Any]:
    days = sorted(result.facets.get("day", {}).items(), reverse=True)[:DAYS_SHOWN]
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
    return _facet("day", say("Day"), rows, str(reader.deps.zone))
