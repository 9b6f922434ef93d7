"""`scrapy reparse`: stored raw pages once more through extraction, without touching a site."""

from __future__ import annotations

import argparse
import asyncio
from typing import Any

from scrapy.settings import BaseSettings

from newscrawler import cli
from newscrawler.crawl import plugins, services
from newscrawler.crawl.ingest import Block, Ingest
from newscrawler.crawl.reparse import Choice, Reparser, ReparseReport
from newscrawler.discovery.sites import SitesError
from newscrawler.frontier import connect
from newscrawler.frontier.taken import Taken
from newscrawler.frontier.types import FrontierError
from newscrawler.rawstore import RawNotFound, RawStoreUnavailable
from newscrawler.store.base import StoreError


class Command(cli.Command):
    requires_project = True
    requires_crawler_process = False
    own_settings = {"LOG_LEVEL": "WARNING"}

    def syntax(self) -> str:
        return "[options]"

    def short_desc(self) -> str:
        return "Extract stored raw pages again with the selector sets of today"

    def long_desc(self) -> str:
        return (
            "Reads the newest raw page of each URL, extracts it with the active selector sets and"
            " puts what changed into the article store as a new version. Nothing is fetched. An"
            " article that today's extraction would not call one stays as it is and is counted as"
            " lost."
        )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        cli.add_json_option(parser)
        parser.add_argument("--site", metavar="ID", help="only pages of this site")
        parser.add_argument(
            "--since", metavar="TIME", help="only pages fetched since then: 3d, 12h or 2026-08-31"
        )
        parser.add_argument("--limit", metavar="N", type=int, help="at most so many pages")
        parser.add_argument(
            "--dry-run", action="store_true", help="say what would change, store nothing"
        )

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        assert self.settings is not None
        if args:
            raise cli.UsageError(f"unknown argument: {args[0]}", print_help=False)
        if opts.limit is not None and opts.limit < 1:
            raise cli.UsageError(f"--limit {opts.limit}: must be 1 or more", print_help=False)
        choice = Choice(opts.site, cli.since(opts.since) if opts.since else None, opts.limit)
        try:
            report = asyncio.run(_reparse(self.settings, choice, opts.dry_run))
        except SitesError as exc:
            raise cli.UsageError(str(exc), print_help=False) from exc
        except (StoreError, RawStoreUnavailable, RawNotFound, FrontierError) as exc:
            cli.fail(f"reparse failed: {exc}")
        _print(report, opts.dry_run, opts.as_json)


async def _reparse(settings: BaseSettings, choice: Choice, dry_run: bool) -> ReparseReport:
    sites = services.load_sites(
        settings, only=choice.site
    )  # an unknown one is an error, not an empty result
    redis: Any = connect(services.redis_url(settings), single=False)
    store = services.open_article_store(settings)
    raw = services.open_raw_store(settings)
    announcer = services.open_announcer(settings, store, redis)
    try:
        await store.open()
        selectors = services.open_selector_store(settings, redis)
        await selectors.refresh()
        if not dry_run:
            announcer.start()
        block = Block(Taken(redis, settings.getint("FRONTIER_SHARDS")))
        ingest = Ingest(store, announcer=announcer, block=block)
        rules = plugins.metadata_rules(settings)
        reparser = Reparser(raw, ingest, selectors, sites, rules, dry_run=dry_run)
        report = await reparser.run(choice)
        await announcer.drain()
        return report
    finally:
        await announcer.close()
        raw.close()
        await store.close()
        await redis.aclose()
        services.stop_embedded(settings)


def _print(report: ReparseReport, dry_run: bool, as_json: bool) -> None:
    counts: dict[str, Any] = {
        name: getattr(report, name)
        for name in (
            "pages",
            "new",
            "changed",
            "unchanged",
            "not_article",
            "lost",
            "offsite",
            "refused",
        )
    }
    if as_json:
        cli.print_object({**counts, "fields": dict(report.fields), "dry_run": dry_run})
        return
    rows = [{"field": name, "changed": n} for name, n in report.fields.most_common()]
    cli.print_rows(rows, ("field", "changed"), False)
    words = ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in counts.items())
    cli.note(words + (" (dry run: nothing was stored)" if dry_run else ""))
