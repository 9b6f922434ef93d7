"""`scrapy search QUERY`: find stored articles."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from scrapy.commands import ScrapyCommand
from scrapy.settings import BaseSettings

from newscrawler import cli, wiring
from newscrawler.store.base import ArticleStore, Hit, Query, QueryError, SearchResult, StoreError, open_store
from newscrawler.store.search import day

T = TypeVar("T")


def with_store(settings: BaseSettings, work: Callable[[ArticleStore], Awaitable[T]]) -> T:
    """Run ``work`` on the configured store, which must exist, and close it. Store errors end the command."""

    async def run() -> T:
        store = open_store(
            settings.get("ARTICLE_STORE") or "",
            wiring.data_dir(settings),
            index=settings["ARTICLE_INDEX"],
            must_exist=True,
        )
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


class Command(ScrapyCommand):
    requires_project = True
    requires_crawler_process = False
    default_settings = {"LOG_ENABLED": False}

    def syntax(self) -> str:
        return "[options] QUERY"

    def short_desc(self) -> str:
        return "Find stored articles, with or without diacritics"

    def long_desc(self) -> str:
        return (
            'All words are wanted; "a phrase" as written; -word without it; title:word, author:name, '
            "site:vnexpress.net, after:2026-08-01, before:2026-09. Typed with diacritics they are meant; typed "
            "without, every spelling is found. A query that starts with a minus goes after --."
        )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        cli.add_json_option(parser)
        parser.add_argument("--limit", type=int, default=20, metavar="N", help="hits on a page, 1 to 100 (default 20)")
        parser.add_argument("--page", type=int, default=0, metavar="N", help="page, counted from 0")
        parser.add_argument("--sort", choices=("relevance", "date"), default="relevance")
        parser.add_argument("--site", default="", metavar="SITE[,SITE]", help="only articles of these sites")
        parser.add_argument("--after", metavar="DAY", help="published on or after this day (2026-08-31, 2026-08, 2026)")
        parser.add_argument("--before", metavar="DAY", help="published before this day")
        parser.add_argument("--facets", action="store_true", help="count the matches by site and by day")
        parser.add_argument("--collapse", action="store_true", help="one hit per group of near-duplicates")

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        assert self.settings is not None
        if not args:
            raise cli.UsageError('a query is needed: scrapy search "thời tiết" ("" lists the newest)', print_help=False)
        try:
            query = Query(
                text=" ".join(args),
                page=opts.page,
                size=opts.limit,
                sort=opts.sort,
                sites=tuple(s.strip().lower() for s in opts.site.split(",") if s.strip()),
                after=day("after", opts.after) if opts.after else None,
                before=day("before", opts.before) if opts.before else None,
                facets=opts.facets,
                collapse=opts.collapse,
            )
        except QueryError as exc:
            raise cli.UsageError(str(exc), print_help=False) from exc
        result = with_store(self.settings, lambda store: store.search(query))
        _print(result, query, opts.as_json)


def _print(result: SearchResult, query: Query, as_json: bool) -> None:
    if as_json:
        for hit in result.hits:
            by = {"authors": hit.article.authors, "credits": hit.article.credits}
            cli.print_object(_row(hit) | {"score": hit.score, "snippet": hit.snippet, **by})
        if query.facets:
            cli.print_object({"facets": result.facets})
        return
    if result.hits:
        cli.print_rows([_row(h) for h in result.hits], ("published", "site", "title", "url"), False)
    for name, counts in result.facets.items():
        print()
        cli.print_rows([{name: k, "articles": n} for k, n in counts.items()], (name, "articles"), False)
    cli.note(_summary(result, query))


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
    total = f"{result.total:,}{'+' if result.total_is_capped else ''} article{'' if result.total == 1 else 's'}"
    first = query.page * query.size
    shown = (
        f"{first + 1}-{first + len(result.hits)} of {total}" if result.hits else (total if first else "nothing found")
    )
    how = {
        "": "",
        "folded": ", diacritics not regarded",
        "corrected": ", corrected: " + ", ".join(f"{a} -> {b}" for a, b in result.corrections.items()),
        "any": ", none has all of the words: these have the rarest of them",
    }[result.relaxed]
    return f"{shown}{how} ({result.took_ms:.0f} ms)"
