"""`scrapy crawl news`: Scrapy's own command, with the faults of a start said in one line each."""

from __future__ import annotations

import argparse
import gc
import logging
from typing import Any

from scrapy import Spider
from scrapy.commands.crawl import Command as CrawlCommand
from scrapy.crawler import Crawler
from scrapy.settings import BaseSettings

from newscrawler import cli, metrics
from newscrawler.crawl import opening, preflight
from newscrawler.discovery.sites import Sites, SitesError
from newscrawler.fleet.verdict import nothing_due, nothing_fetched
from newscrawler.frontier.queue import FrontierUnavailable
from newscrawler.rawstore import RawStoreUnavailable
from newscrawler.store.base import StoreUnavailable

logger = logging.getLogger(__name__)


class Command(cli.KnownOptions, CrawlCommand):
    def short_desc(self) -> str:
        return "Crawl: news [-a sites=a.vn,b.vn] [-a urls=https://...] [-a since=3d]"

    def long_desc(self) -> str:
        return (
            "Run the spider `news` as one worker. Without REDIS_URL it uses the embedded Redis in"
            " DATA_DIR. Arguments of the spider: sites= ids of sites.json, urls= addresses to crawl"
            " whether their site is known or not, since= a day (2026-11-01) or an age (3d, 12h)."
        )

    def process_options(self, args: list[str], opts: argparse.Namespace) -> None:
        super().process_options(args, opts)
        assert self.settings is not None
        cli.begin(self.settings)

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        assert self.settings is not None
        for arg in args:
            if self.crawler_process is None:
                continue
            known = sorted(self.crawler_process.spider_loader.list())
            if arg not in known:
                raise cli.UsageError(
                    f"unknown spider {arg}; known: {', '.join(known)}", print_help=False
                )
        if args == ["news"]:
            with cli.interruptible(cli.NOT_BEGUN):
                check(self.settings, opts.spargs)
        # What start-up made stays; of what a page makes nearly all is freed by counting
        # references alone.
        gc.freeze()
        gc.set_threshold(20_000, 20, 50)
        super().run(args, opts)
        for crawler in self.finished():
            self._conclude(crawler)

    def _conclude(self, crawler: Crawler) -> None:
        stats = metrics.stats_of(crawler)
        if reason := getattr(crawler.spider, "stop_reason", ""):
            cli.note(f"Crawl stopped: {reason}")
            self.exitcode = 1
        elif metrics.nothing_was_due(stats):
            cli.note(nothing_due(stats))
        elif text := nothing_fetched(stats):
            cli.note(text)
            self.exitcode = 1

    def _create_crawler(self, spidercls: str | type[Spider]) -> Crawler:
        self.crawler = super()._create_crawler(spidercls)
        return self.crawler

    def finished(self) -> list[Crawler]:
        """The crawl, if it began."""
        crawler = getattr(self, "crawler", None)
        return [crawler] if crawler is not None and crawler.spider else []


def check(settings: BaseSettings, spider_args: dict[str, Any]) -> Sites:
    """Wrong arguments leave with exit code 2, a missing Redis with 1; each says what to do.

    :raises UsageError: a wrong argument
    """
    try:
        sites = preflight.check(settings, spider_args)
        cli.run_apart(opening.try_stores(settings))
        return sites
    except (
        FrontierUnavailable,
        StoreUnavailable,
        RawStoreUnavailable,
        opening.StartRefused,
    ) as exc:
        _log_refusal(exc)
        cli.fail(str(exc))
    except (SitesError, ValueError) as exc:
        _log_refusal(exc)
        raise cli.UsageError(str(exc), print_help=False) from exc


def _log_refusal(exc: Exception) -> None:
    """In the log of a job of scrapyd, whose stderr is scrapyd's own log."""
    if opening.is_scrapyd_job():
        logger.critical("Start refused reason=%s", exc)


def _tell_job(refusal: Exception) -> None:
    """stderr is scrapyd's own log: the job's has the refusal as well."""
    if opening.is_scrapyd_job():
        logger.critical("Start refused reason=%s", refusal)
