"""`scrapy reparse`: stored raw pages once more through extraction, without touching a site."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import asdict
from typing import Any

from scrapy.settings import BaseSettings

from newscrawler import cli
from newscrawler.crawl import opening, plugins, site_choice
from newscrawler.crawl.ingest import Block, Ingest
from newscrawler.crawl.parse_queue import CHUNK, JobAtWork, ParseQueue, Progress
from newscrawler.crawl.reparse import Choice, Reparser, ReparseReport, newest
from newscrawler.discovery.sites import SitesError
from newscrawler.frontier import connect
from newscrawler.frontier.errors import translated
from newscrawler.frontier.taken import Taken
from newscrawler.frontier.types import FrontierError
from newscrawler.rawstore import RawNotFound, RawStoreUnavailable
from newscrawler.selectorsets.store import SelectorStore
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
        parser.add_argument(
            "--until", metavar="TIME", help="only pages fetched before then, written as --since"
        )
        parser.add_argument("--limit", metavar="N", type=int, help="at most so many pages")
        which = parser.add_mutually_exclusive_group()
        which.add_argument(
            "--queue",
            action="store_true",
            help="put the pages in a queue for `scrapy parse_worker` on many machines",
        )
        parser.add_argument(
            "--chunk", metavar="N", type=int, default=CHUNK,
            help=f"--queue: pages that a worker takes at a time (default {CHUNK})",
        )  # fmt: skip
        which.add_argument("--status", action="store_true", help="how far the queue is")
        which.add_argument("--cancel", action="store_true", help="drop what is left of the queue")
        parser.add_argument(
            "--dry-run", action="store_true", help="say what would change, store nothing"
        )

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        assert self.settings is not None
        if args:
            raise cli.UsageError(f"unknown argument: {args[0]}", print_help=False)
        choice = _choice(opts)
        is_of_queue = opts.queue or opts.status or opts.cancel
        if is_of_queue and opts.dry_run:
            raise cli.UsageError("--dry-run goes with no queue", print_help=False)
        try:
            if is_of_queue:
                asyncio.run(_queue(self.settings, choice, opts))
                return
            report = asyncio.run(_reparse(self.settings, choice, opts.dry_run))
        except (SitesError, JobAtWork) as exc:
            raise cli.UsageError(str(exc), print_help=False) from exc
        except (StoreError, RawStoreUnavailable, RawNotFound, FrontierError) as exc:
            cli.fail(f"reparse failed: {exc}")
        _print(report, opts.dry_run, opts.as_json)


def _choice(opts: argparse.Namespace) -> Choice:
    for name, number in (("chunk", opts.chunk), ("limit", opts.limit)):
        if number is not None and number < 1:
            raise cli.UsageError(f"--{name} {number}: must be 1 or more", print_help=False)
    since = cli.since(opts.since) if opts.since else None
    until = cli.since(opts.until) if opts.until else None
    return Choice(opts.site, since, until, opts.limit)


async def _queue(settings: BaseSettings, choice: Choice, opts: argparse.Namespace) -> None:
    client: Any = connect(opening.redis_url(settings), single=False)
    try:
        queue = ParseQueue(client)
        if opts.cancel:
            cli.note(f"{await queue.cancel()} chunks were dropped")
            return
        if opts.queue:
            sites = site_choice.load_sites(settings, only=choice.site)
            raw = opening.open_raw_store(settings)
            try:
                refs = await asyncio.to_thread(newest, raw, sites, choice)
            finally:
                raw.close()
            chunks = await queue.fill(refs, choice, opts.chunk)
            cli.note(f"{len(refs):,} pages in {chunks:,} chunks wait for `scrapy parse_worker`")
            return
        _show(await queue.progress(), opts.as_json)
    finally:
        await client.aclose()
        opening.stop_embedded(settings)


def _show(found: Progress, as_json: bool) -> None:
    if as_json:
        cli.print_object({**asdict(found), "is_done": found.is_done})
        return
    done = found.chunks - found.chunks_left
    cli.show(
        f"{done:,} of {found.chunks:,} chunks done, {found.sums.get('pages', 0):,} of"
        f" {found.pages:,} pages, {found.pages_per_s:.1f} pages/s; {found.set_aside} set aside"
    )
    for name, idle_ms in sorted(found.workers.items()):
        cli.show(f"  {name}  last seen {idle_ms / 1000:.0f} s ago")
    sums = ", ".join(f"{n} {name.replace('_', ' ')}" for name, n in sorted(found.sums.items()))
    cli.note(sums)


async def _reparse(settings: BaseSettings, choice: Choice, dry_run: bool) -> ReparseReport:
    async with tools(settings, choice.site, dry_run=dry_run) as (make, _, _):
        return await make().run(choice)


@contextlib.asynccontextmanager
async def tools(
    settings: BaseSettings, site: str | None = None, *, dry_run: bool = False
) -> AsyncIterator[tuple[Callable[[], Reparser], SelectorStore, Any]]:
    """What makes a Reparser, the selector sets and the client of Redis; closed afterwards, when
    all that was stored has been told.

    :raises SitesError: a site of this name is not known
    """
    sites = site_choice.load_sites(settings, only=site)
    redis: Any = connect(opening.redis_url(settings), single=False)
    store = opening.open_article_store(settings)
    raw = opening.open_raw_store(settings)
    announcer = opening.open_announcer(settings, store, redis)
    try:
        await store.open()
        selectors = opening.open_selector_store(settings, redis)
        with translated():
            await selectors.refresh()
        if not dry_run:
            announcer.start()
        block = Block(Taken(redis, settings.getint("FRONTIER_SHARDS")))
        ingest = Ingest(store, announcer=announcer, block=block)
        rules = plugins.metadata_rules(settings)

        def make() -> Reparser:
            return Reparser(raw, ingest, selectors, sites, rules, dry_run=dry_run)

        yield make, selectors, redis
        await announcer.drain()
    finally:
        await announcer.close()
        raw.close()
        await store.close()
        await redis.aclose()
        opening.stop_embedded(settings)


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
            "older",
            "missing",
        )
    }
    if as_json:
        cli.print_object({**counts, "fields": dict(report.fields), "dry_run": dry_run})
        return
    rows = [{"field": name, "changed": n} for name, n in report.fields.most_common()]
    cli.print_rows(rows, ("field", "changed"), False)
    words = ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in counts.items())
    cli.note(words + (" (dry run: nothing was stored)" if dry_run else ""))
