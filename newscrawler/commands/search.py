"""`scrapy search QUERY`: find stored articles."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar, get_args

from scrapy.settings import BaseSettings

from newscrawler import cli
from newscrawler.crawl import opening
from newscrawler.items import FIELDS, Article, unsure
from newscrawler.store.base import (
    ArticleStore,
    Hit,
    Query,
    QueryError,
    SearchResult,
    Sort,
    StoreError,
)
from newscrawler.store.days import FORMS, day, zone_of
from newscrawler.store.labels import KEYS

T = TypeVar("T")
#: Seconds that a command waits for the vector of its query.
_QUERY_S = 10.0
_LISTS = tuple(f.name for f in FIELDS if f.in_hit and f.type == "texts")


def with_store(settings: BaseSettings, work: Callable[[ArticleStore], Awaitable[T]]) -> T:
    """Run ``work`` on the configured store, which must exist, and close it. Store
    errors end the command.

    :raises UsageError: the query or an option is wrong
    """

    async def run() -> T:
        # A command starts the model for its one query; nobody else waits for it.
        store = opening.open_article_store(settings, must_exist=True, query_s=_QUERY_S)
        try:
            return await work(store)
        finally:
            await store.close()

    try:
        return asyncio.run(run())
    except QueryError as exc:
        raise cli.UsageError(str(exc), print_help=False) from exc
    except (StoreError, ValueError) as exc:
        cli.fail(str(exc))


class Command(cli.Command):
    requires_project = True
    requires_crawler_process = False
    own_settings = {"LOG_ENABLED": False}
    takes_query = True

    def syntax(self) -> str:
        return "[options] QUERY"

    def short_desc(self) -> str:
        return "Find stored articles, with or without diacritics"

    def long_desc(self) -> str:
        return (
            'All words are wanted; "a phrase" as written; one OR another, AND, NOT, (groups); -word'
            " without it; title:word, author:name, "
            f"{''.join(f'{key}:value, ' for key in KEYS)}"
            "site:vnexpress.net, after:31/8/2026, before:2026-09. Typed with diacritics they are"
            " meant; typed "
            "without, every spelling is found. A query that starts with a minus goes after --."
        )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        cli.add_json_option(parser)
        parser.add_argument(
            "--limit",
            type=int,
            default=20,
            metavar="N",
            help="hits on a page, 1 to 100 (default 20)",
        )
        parser.add_argument("--page", type=int, default=0, metavar="N", help="page, counted from 0")
        parser.add_argument(
            "--sort",
            choices=get_args(Sort),
            default="best",
            help="best: the new gain (default); relevance: whatever their age; date: newest first",
        )
        parser.add_argument(
            "--mode",
            choices=("keyword", "semantic", "hybrid"),
            default="hybrid",
            help="by words, by meaning, or by both where words are weak (default)",
        )
        parser.add_argument(
            "--site", default="", metavar="SITE[,SITE]", help="only articles of these sites"
        )
        parser.add_argument(
            "--after",
            metavar="DAY",
            help=f"published on or after this day ({FORMS})",
        )
        parser.add_argument("--before", metavar="DAY", help="published before this day")
        parser.add_argument(
            "--facets",
            action="store_true",
            help=f"count the matches by {', '.join(('site', 'day', *KEYS))}",
        )
        parser.add_argument(
            "--collapse", action="store_true", help="one hit per group of near-duplicates"
        )

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        assert self.settings is not None
        if not args:
            raise cli.UsageError(
                'a query is needed: scrapy search "thời tiết" ("" lists the newest)',
                print_help=False,
            )
        try:
            zone = zone_of(self.settings["READER_ZONE"])
            query = Query(
                text=" ".join(args),
                page=opts.page,
                size=opts.limit,
                sort=opts.sort,
                sites=tuple(s.strip().lower() for s in opts.site.split(",") if s.strip()),
                after=day("after", opts.after, zone) if opts.after else None,
                before=day("before", opts.before, zone) if opts.before else None,
                zone=zone,
                facets=opts.facets,
                collapse=opts.collapse,
                mode=opts.mode,
            )
        except QueryError as exc:
            raise cli.UsageError(str(exc), print_help=False) from exc

        async def look(store: ArticleStore) -> tuple[SearchResult, bool]:
            found = await store.search(query)
            return found, not found.total and not (await store.stats())["articles"]

        result, is_empty = with_store(self.settings, look)
        if is_empty:
            cli.note("No article is stored yet: crawl first (is DATA_DIR right?)")
        else:
            _print(result, query, opts.as_json)


def _print(result: SearchResult, query: Query, as_json: bool) -> None:
    if as_json:
        for hit in result.hits:
            lists = {name: getattr(hit.article, name) for name in _LISTS}
            more = {
                "score": hit.score,
                "snippet": hit.snippet,
                "by_meaning": hit.by_meaning,
                "relaxed": result.relaxed,
                "unsure": unsure(hit.article),
                "copies": [{"id": c.id, "url": c.url, "site": c.site} for c in hit.copies],
            }
            cli.print_object(_row(hit) | more | lists)
        if query.facets:
            cli.print_object({"facets": result.facets})
        return
    if result.notes or result.read_as != " ".join(query.text.split()):
        read = (f"Read as: {result.read_as}",) if result.read_as else ()
        if lines := (*read, *result.notes):
            cli.note("; ".join(lines))
    if result.hits:
        rows = [row for hit in result.hits for row in (_row(hit), *map(_copy_row, hit.copies))]
        cli.print_rows(rows, ("published", "site", "title", "url"), False)
    for name, counts in result.facets.items():
        cli.show()
        cli.print_rows(
            [{name: k, "articles": n} for k, n in counts.items()], (name, "articles"), False
        )
    cli.note(_summary(result, query))
    if result.behind:
        cli.note(f"The index is being made: {result.behind:,} changes are not in it yet.")


def _copy_row(copy: Article) -> dict[str, Any]:
    """Below the first publisher of the same text."""
    row = _row(Hit(copy, 0.0, ""))
    return row | {"title": f"  = {row['title']}"}


def _row(hit: Hit) -> dict[str, Any]:
    a = hit.article
    return {
        "id": a.id,
        "url": a.url,
        "site": a.site,
        "title": a.title,
        "published": a.published.isoformat(timespec="minutes") if a.published else None,
        "similar": hit.similar,
    }


def _summary(result: SearchResult, query: Query) -> str:
    total = f"{result.total:,}{'+' if result.total_is_capped else ''} article"
    total += "" if result.total == 1 else "s"
    first = query.page * query.size
    shown = total if first else "nothing found"
    if result.hits:
        shown = f"{first + 1}-{first + len(result.hits)} of {total}"
    corrected = ", ".join(f"{a} -> {b}" for a, b in result.corrections.items())
    how = {
        "": "",
        "folded": ", diacritics not regarded",
        "corrected": f", corrected: {corrected}",
        "unquoted": ", read without quotation marks",
        "any": ", none has all of the words: these have most of them or the rarest",
    }[result.relaxed]
    if result.in_a_row and result.in_a_row < result.total:
        how += f", {result.in_a_row:,} of them with the words in a row, first"
    if result.mode == "semantic":
        how = ", by meaning"
    elif result.meaning is not None and result.meaning.found:
        how += f"; {result.meaning.found:,} found by meaning alone"
    return f"{shown}{how} ({result.took_ms:.0f} ms)"
