"""`scrapy trends`: terms that rise on a day against their own past, with their articles."""

from __future__ import annotations

import argparse
from datetime import datetime
from typing import cast

from newscrawler import cli
from newscrawler.commands.search import with_store
from newscrawler.store.base import ArticleStore, QueryError, WholeStore
from newscrawler.store.days import day as read_day
from newscrawler.store.days import zone_of
from newscrawler.store.trends import PAST_DAYS, Trends, trends


class Command(cli.Command):
    requires_project = True
    requires_crawler_process = False
    own_settings = {"LOG_ENABLED": False}

    def syntax(self) -> str:
        return "[options]"

    def short_desc(self) -> str:
        return "Terms that are in more titles of a day than before"

    def long_desc(self) -> str:
        return (
            f"Each term is compared with its own share of the titles of the {PAST_DAYS} days"
            " before. Spellings with and without diacritics are one term."
        )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        cli.add_json_option(parser)
        parser.add_argument("--day", help="31/8/2026 or 2026-08-31 (default: today)")
        parser.add_argument("--site", default="", help="of this site alone")
        parser.add_argument("--limit", type=int, default=20, metavar="N", help="default 20")

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        assert self.settings is not None
        if args:
            raise cli.UsageError(f"unknown argument: {args[0]}", print_help=False)
        zone = zone_of(self.settings["READER_ZONE"])
        try:
            start = read_day("--day", opts.day, zone) if opts.day else datetime.now(zone)
        except QueryError as exc:
            raise cli.UsageError(str(exc), print_help=False) from exc
        day = start.astimezone(zone).date()

        async def look(store: ArticleStore) -> Trends:
            if not hasattr(store, "headlines"):
                cli.fail("this store does not know the titles of a day")
            return await trends(cast(WholeStore, store), day, zone, opts.site, max(1, opts.limit))

        found = with_store(self.settings, look)
        rows = [
            {
                "term": term.text,
                "titles": term.articles,
                "sites": term.sites,
                "expected": term.expected,
                "score": term.score,
                "newest": term.headlines[0].title,
            }
            | (
                {"reason": term.reason, "articles": [h.id for h in term.headlines]}
                if opts.as_json
                else {}
            )
            for term in found.terms
        ]
        if rows:
            cli.print_rows(
                rows, ("term", "titles", "sites", "expected", "score", "newest"), opts.as_json
            )
        cli.note(_summary(found))


def _summary(found: Trends) -> str:
    text = f"{found.day}: {found.titles:,} titles, {found.past:,} of the {PAST_DAYS} days before"
    if not found.titles or not found.past:
        return f"{text}: nothing to compare"
    return text if found.terms else f"{text}: nothing rises"
