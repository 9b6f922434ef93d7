"""`scrapy replay DIR` (`make replay PAGES=DIR`): the whole program over stored pages, under
their real addresses."""

from __future__ import annotations

import argparse
import time
from collections import Counter
from pathlib import Path
from typing import Any

from newscrawler import cli
from newscrawler.commands.crawl import check
from newscrawler.crawl import opening, site_choice
from newscrawler.discovery.sites import Refusal
from newscrawler.frontier import connect
from newscrawler.frontier import redis_server as embedded
from newscrawler.frontier.queue import Frontier
from newscrawler.items import Kind, Link
from newscrawler.rawstore.replay import ReplayError, load_index
from newscrawler.store.base import ArticleStore
from newscrawler.utils.display import number_of
from newscrawler.web.urls import canonicalize


class Command(cli.Command):
    requires_project = True
    requires_crawler_process = True

    def syntax(self) -> str:
        return "[options] DIR"

    def short_desc(self) -> str:
        return "Run the whole program over a folder of stored pages (make replay PAGES=DIR)"

    def long_desc(self) -> str:
        return (
            "DIR holds gold.jsonl (one JSON object a line with id, url, html) and"
            " html/<id>.html.gz. All pages go through frontier, robots.txt (DIR/robots/<host>.txt,"
            " else 404), middlewares, extraction, raw store, article store and search. Nothing is"
            " fetched from a network. What is not stored is listed with its reason."
        )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        cli.add_json_option(parser)
        parser.add_argument(
            "--data",
            metavar="FOLDER",
            help="queue, articles and raw pages go there; without it DATA_DIR/replay",
        )

    def process_options(self, args: list[str], opts: argparse.Namespace) -> None:
        super().process_options(args, opts)
        assert self.settings is not None
        if len(args) != 1:
            raise cli.UsageError("one folder is needed: scrapy replay DIR", print_help=False)
        data = Path(opts.data) if opts.data else Path(self.settings["DATA_DIR"]) / "replay"
        own = {"LOG_LEVEL": "WARNING", "CONCURRENT_REQUESTS": 32, "SELECTOR_GENERATION": "off"}
        cli.set_own(self.settings, own)
        # The rest makes it a replay, whatever was said.
        fixed: dict[str, Any] = {
            "DATA_DIR": str(data),
            "REPLAY_DIR": str(Path(args[0]).resolve()),
            # nobody is asked for anything, so there is nobody to be polite to
            "DOWNLOAD_DELAY": 0,
            "AUTOTHROTTLE_ENABLED": False,
            "DOWNLOAD_HANDLERS": {
                **dict.fromkeys(("file", "ftp", "s3", "data")),
                **dict.fromkeys(("http", "https"), "newscrawler.handlers.ReplayHandler"),
            },
            "ARTICLE_MAX_AGE_DAYS": 0,
            "FRONTIER_MAX_DEPTH": 0,
            "REDIS_URL": "",
        }
        self.settings.setdict(fixed, priority="cmdline")

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        assert self.settings is not None and self.crawler_process is not None
        try:
            index = load_index(Path(args[0]))
        except ReplayError as exc:
            cli.fail(str(exc))
        urls = list(index.urls())
        usable = [
            url for url in urls if canonicalize(url)
        ]  # the others are listed below with their reason
        if not usable:
            cli.fail(f"{args[0]}: no page has an http(s) address")
        check(self.settings, {"urls": usable})
        begun_ms = int(time.time()) * 1000  # a record knows the second of its visit
        self.crawler_process.crawl("news", urls=usable)
        self.crawler_process.start()
        try:
            rows = cli.run_apart(self._rows(index, urls))
        finally:
            embedded.stop_if_last(opening.data_dir(self.settings))
        self._print(rows, opts.as_json, begun_ms)

    async def _rows(self, index: Any, urls: list[str]) -> list[dict[str, Any]]:
        assert self.settings is not None
        sites = site_choice.load_sites(
            self.settings, urls=[url for url in urls if canonicalize(url)]
        )
        client = connect(opening.redis_url(self.settings), single=False)
        frontier = Frontier(
            client, opening.frontier_config(self.settings, loopback_only=True), "replay-report"
        )
        store = opening.open_article_store(self.settings)
        try:
            await store.open()
            return [
                {"id": index.page_id(url), "url": url}
                | await _fate(sites.identify(url, kind=Kind.ARTICLE), store, frontier)
                for url in urls
            ]
        finally:
            await store.close()
            await client.aclose()

    def _print(self, rows: list[dict[str, Any]], as_json: bool, begun_ms: int) -> None:
        missing = [row for row in rows if not row["stored"]]
        shown = rows if as_json else missing
        if shown:
            cli.print_rows(shown, ("id", "outcome", "reason", "url"), as_json)
        by_reason = Counter(f"{row['outcome']}({row['reason']})" for row in missing)
        cli.note(
            f"{number_of(len(rows), 'page')}, {len(rows) - len(missing)} stored,"
            f" {len(missing)} not stored"
        )
        for reason, count in by_reason.most_common():
            cli.note(f"  {count:5d}  {reason}")
        # What is no article is not asked for again: the verdict is that of the
        # release that read the page.
        earlier = sum(0 < (row["visited_ms"] or 0) < begun_ms for row in missing)
        if earlier:
            cli.note(
                f"{earlier} of the missing were read by an earlier run in this folder, not by this"
                " one: for a new"
            )
            cli.note("verdict use an empty folder (--data FOLDER)")
        assert self.settings is not None
        cli.note(f"Search them: scrapy search 'words' -s DATA_DIR={self.settings['DATA_DIR']}")
        self.exitcode = 0 if len(missing) < len(rows) else 1


async def _fate(link: Link | Refusal, store: ArticleStore, frontier: Frontier) -> dict[str, Any]:
    """The outcome of a page."""
    if isinstance(link, Refusal):
        return {"stored": False, "outcome": "REFUSED", "reason": link.reason, "visited_ms": None}
    article = await store.get(link.url_id.hex())
    stored = {"article": article.id if article else None, "stored": article is not None}
    record = await frontier.record(link.url_id, link.domain)
    if record is None:
        return {**stored, "outcome": "not queued", "reason": "", "visited_ms": None}
    return {
        **stored,
        "outcome": str(record.outcome or record.state),
        "reason": record.reason,
        "visited_ms": record.last_visit_ms,
    }
