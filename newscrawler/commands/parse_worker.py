"""`scrapy parse_worker`: reads stored pages again that `scrapy reparse --queue` has queued."""

from __future__ import annotations

import argparse
import asyncio
import signal

from scrapy.settings import BaseSettings

from newscrawler import cli
from newscrawler.commands.reparse import tools
from newscrawler.crawl.parse_queue import LEASE_MS, ParseQueue, ParseWorker
from newscrawler.discovery.sites import SitesError
from newscrawler.fleet import identity
from newscrawler.frontier.types import FrontierError
from newscrawler.rawstore import RawStoreUnavailable
from newscrawler.selectorsets.store import SelectorsUnavailable
from newscrawler.store.base import StoreError


class Command(cli.Command):
    requires_project = True
    requires_crawler_process = False
    own_settings = {"LOG_LEVEL": "INFO"}

    def syntax(self) -> str:
        return "[--until-done]"

    def short_desc(self) -> str:
        return "Extract queued raw pages again (scrapy reparse --queue), beside a crawl"

    def long_desc(self) -> str:
        return (
            "Takes chunks of stored pages off the queue that `scrapy reparse --queue` fills, and"
            " puts what changed into the article store. Nothing is fetched. Start as many as you"
            " like, on every machine that reaches Redis, the raw pages and the article store; the"
            " chunk of one that was killed is given to another after half a minute. `scrapy"
            " reparse --status` shows how far they are. SIGTERM ends it after its chunk. With"
            " --until-done the exit code is 1 when chunks were set aside."
        )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.add_argument("--until-done", action="store_true", help="end when the queue is empty")
        parser.add_argument(
            "--lease", metavar="S", type=float, default=LEASE_MS / 1000,
            help=f"silence after which another takes the chunk (default {LEASE_MS // 1000})",
        )  # fmt: skip

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        assert self.settings is not None
        if args:
            raise cli.UsageError(f"unknown argument: {args[0]}", print_help=False)
        if opts.lease < 0.1:
            raise cli.UsageError(f"--lease {opts.lease}: 0.1 s or more", print_help=False)
        try:
            worker = asyncio.run(_work(self.settings, opts.until_done, round(opts.lease * 1000)))
        except SitesError as exc:
            raise cli.UsageError(str(exc), print_help=False) from exc
        except (StoreError, RawStoreUnavailable, FrontierError, SelectorsUnavailable) as exc:
            cli.fail(f"parse worker failed: {exc}")
        cli.note(f"{worker.name}: {worker.pages:,} pages in {worker.chunks:,} chunks")
        if worker.set_aside:
            cli.fail(
                f"{worker.set_aside:,} chunks were set aside: workers died or failed at them, see"
                " their logs; `scrapy reparse --queue` queues the pages again"
            )


async def _work(settings: BaseSettings, until_done: bool, lease_ms: int) -> ParseWorker:
    async with tools(settings) as (make, selectors, client):
        queue = ParseQueue(client, lease_ms)
        name = identity.worker_id()
        worker = ParseWorker(
            queue, name, make, selectors.refresh, until_done=until_done, say=cli.note
        )
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, worker.stop)
        await worker.run()
        return worker
