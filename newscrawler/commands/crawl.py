"""`scrapy crawl news`: Scrapy's own command, with the faults of a start said in one line each."""

from __future__ import annotations

import argparse
import gc
import logging

from scrapy.commands.crawl import Command as CrawlCommand

from newscrawler import cli, wiring
from newscrawler.discovery.sites import SitesError
from newscrawler.frontier.queue import FrontierUnavailable
from newscrawler.rawstore import RawStoreUnavailable
from newscrawler.store.base import StoreUnavailable

logger = logging.getLogger(__name__)


class Command(CrawlCommand):
    def short_desc(self) -> str:
        return "Crawl: news [-a sites=a.vn,b.vn] [-a urls=https://...] [-a since=3d]"

    def long_desc(self) -> str:
        return (
            "Run the spider `news` as one worker. Without REDIS_URL it uses the embedded Redis in DATA_DIR. "
            "Arguments of the spider: sites= ids of sites.json, urls= addresses to crawl whether their site is "
            "known or not, since= a day (2026-11-01) or an age (3d, 12h)."
        )

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        assert self.settings is not None
        for arg in args:
            if arg.startswith("-"):
                raise cli.UsageError(f"unknown option {arg}", print_help=False)
            if self.crawler_process is not None and arg not in self.crawler_process.spider_loader.list():
                raise cli.UsageError(f"unknown spider {arg}; there is one: news", print_help=False)
        if args == ["news"]:
            check(self.settings, opts.spargs)
        # What start-up made stays; of what a page makes nearly all is freed by counting references alone.
        gc.freeze()
        gc.set_threshold(20_000, 20, 50)
        super().run(args, opts)
        for crawler in self.finished():
            if getattr(crawler.spider, "stop_reason", ""):
                cli.note(f"Crawl stopped: {crawler.spider.stop_reason}")
                self.exitcode = 1

    def _create_crawler(self, spider_name):  # type: ignore[no-untyped-def]
        self.crawler = super()._create_crawler(spider_name)
        return self.crawler

    def finished(self):  # type: ignore[no-untyped-def]
        return [self.crawler] if getattr(self, "crawler", None) is not None and self.crawler.spider else []


def check(settings, spider_args):  # type: ignore[no-untyped-def]
    """Wrong arguments leave with exit code 2, a missing Redis with 1; each says what to do."""
    try:
        sites = wiring.preflight(settings, spider_args)
        cli.run_apart(wiring.try_stores(settings))
        return sites
    except (FrontierUnavailable, StoreUnavailable, RawStoreUnavailable, wiring.StartRefused) as exc:
        if wiring.is_scrapyd_job():
            logger.critical("Start refused reason=%s", exc)  # stderr is scrapyd's own log, not the job's
        cli.fail(str(exc))
    except (SitesError, ValueError) as exc:
        raise cli.UsageError(str(exc), print_help=False) from exc
