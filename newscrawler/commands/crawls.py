"""`scrapy crawls VERB`: bounded crawls of one site, done by the workers of the fleet."""

from __future__ import annotations

import argparse
import asyncio
import re
from collections.abc import Awaitable, Callable
from typing import Any

from scrapy.settings import BaseSettings

from newscrawler import cli
from newscrawler.crawl import bounded_crawls, opening, site_choice
from newscrawler.crawl.bounded_crawls import CrawlBook, CrawlRefused
from newscrawler.discovery.sites import SitesError
from newscrawler.fleet import identity
from newscrawler.fleet.registry import Registry, RegistryUnavailable
from newscrawler.frontier import connect
from newscrawler.frontier.operator import layout_of
from newscrawler.frontier.queue import Frontier, FrontierConfig, FrontierError

VERBS = {
    "list": ("", "those that run, and those that ended within a week"),
    "start": ("URL [--levels 1] [--max-pages 100]", "ask for one; workers do it"),
    "show": ("ID [--pages]", "how far it is, what it waits for, why it ended"),
    "cancel": ("ID", "what is queued for it leaves the queue"),
}
EXAMPLES = """\
  scrapy crawls start https://example.vn/the-thao --levels 2 --max-pages 200
  scrapy crawls show 1f0c3a9b --pages"""
COLUMNS = (
    "id", "state", "site", "levels", "max_pages", "fetched", "queued", "articles", "created",
    "waits_for", "why",
)  # fmt: skip
_ID = re.compile(r"[0-9a-f]{8}")


class Command(cli.Command):
    requires_project = True
    requires_crawler_process = False
    own_settings = {"LOG_ENABLED": False}

    def syntax(self) -> str:
        return "list | start URL [options] | show ID | cancel ID"

    def short_desc(self) -> str:
        return "Crawls of one site with bounds, through the queue of all others"

    def long_desc(self) -> str:
        verbs = [f"  {f'{verb} {usage}':<46} {text}" for verb, (usage, text) in VERBS.items()]
        tail = [
            "Levels are links from the start, as in Scrapy's DEPTH_LIMIT: 1 = the page and what it",
            "links to. A site that no file knows may be crawled; it is left when the crawl ends.",
        ]
        head = [f"{self.short_desc()}.", "Without a verb, list."]
        return "\n".join([*head, "", *verbs, "", *tail, "", "Examples", "", EXAMPLES])

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.formatter_class = cli.VerbsHelp
        cli.add_json_option(parser)
        parser.add_argument("--levels", type=int, default=1, metavar="N", help="default: 1")
        parser.add_argument("--max-pages", type=int, default=100, metavar="N", help="default: 100")
        parser.add_argument("--pages", action="store_true", help="show: the URLs of the crawl, too")

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        assert self.settings is not None
        verb, rest = cli.verb_of(args, VERBS, "list")
        if len(rest) != (0 if verb == "list" else 1):
            raise cli.UsageError(f"scrapy crawls {verb} {VERBS[verb][0]}".strip(), print_help=False)
        if verb in ("show", "cancel") and not _ID.fullmatch(rest[0]):
            raise cli.UsageError(
                f"{rest[0]!r} is no id of a crawl; see `scrapy crawls list`", print_help=False
            )
        self.exitcode = with_frontier(
            self.settings, lambda frontier: _done(verb, rest, opts, frontier, self.settings)
        )


Work = Callable[[Frontier], Awaitable[int]]


def with_frontier(settings: BaseSettings, work: Work) -> int:
    """Runs ``work``; an embedded server is started for it and stopped after."""

    async def run() -> int:
        client: Any = connect(opening.redis_url(settings), single=False)
        try:
            config = FrontierConfig(shards=(await layout_of(client)).shards)
            return await work(Frontier(client, config, identity.worker_id()))
        finally:
            await client.aclose()

    try:
        return asyncio.run(run())
    except (FrontierError, opening.StartRefused, SitesError) as exc:
        cli.fail(str(exc))
    except CrawlRefused as exc:
        cli.refuse(str(exc))
    finally:
        opening.stop_embedded(settings)


async def _done(
    verb: str,
    rest: list[str],
    opts: argparse.Namespace,
    frontier: Frontier,
    settings: Any,
) -> int:
    book = CrawlBook(frontier.client)
    if verb == "list":
        found = await book.newest()
        rows = [await _row(frontier, crawl) for crawl in found]
        cli.print_rows(rows, COLUMNS, opts.as_json)
        return 0
    if verb == "start":
        crawl, _ = await bounded_crawls.begin(
            settings,
            frontier,
            site_choice.all_sites(settings),
            url=rest[0],
            levels=opts.levels,
            max_pages=opts.max_pages,
            by="command",
        )
    else:
        known = await book.get(rest[0])
        if verb == "cancel" and known is not None:
            known = await bounded_crawls.cancel(frontier, rest[0], "command")
        if known is None:
            cli.fail(f"no crawl has the id {rest[0]}; see `scrapy crawls list`")
        crawl = known
    _show(await _row(frontier, crawl), opts.as_json)
    if opts.pages:
        pages = await book.pages(crawl.id, crawl.max_pages + 1)
        rows = [{"level": one.level, "outcome": one.outcome, "url": one.link.url} for one in pages]
        cli.print_rows(rows, ("level", "outcome", "url"), opts.as_json)
    return 0


def _show(row: dict[str, Any], as_json: bool) -> None:
    if as_json:
        cli.print_object(row)
        return
    for name, value in row.items():
        if value not in ("", None):
            cli.show(f"{name.replace('_', ' '):<14}{value}")


async def _row(frontier: Frontier, crawl: bounded_crawls.Crawl) -> dict[str, Any]:
    try:
        beats = await Registry(frontier.client).workers()
    except RegistryUnavailable:
        alive = None
    else:
        alive = sum(1 for row in beats if row["alive"])
    return await bounded_crawls.status(frontier, crawl, alive)
