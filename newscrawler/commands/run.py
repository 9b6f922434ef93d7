"""`scrapy run` (`make run`): everything on one machine: Redis, selector sets, seeds,
crawl, search page."""

from __future__ import annotations

import argparse
import contextlib
import math
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import redis
from scrapy.crawler import Crawler
from scrapy.settings import BaseSettings

from newscrawler import cli, metrics
from newscrawler.api.probe import Owner, can_be_taken, listening, owner
from newscrawler.commands.crawl import check
from newscrawler.crawl import opening
from newscrawler.discovery import contact
from newscrawler.fleet.verdict import NOTHING_FETCHED, nothing_due, nothing_fetched
from newscrawler.frontier import connect
from newscrawler.frontier.keeper import tied
from newscrawler.utils.display import number_of
from newscrawler.utils.numbers import whole_number


class Command(cli.Command):
    requires_project = True
    requires_crawler_process = True

    def syntax(self) -> str:
        return "[options]"

    def short_desc(self) -> str:
        return "Crawl all enabled sites and serve the search page (make run)"

    def long_desc(self) -> str:
        return (
            "Starts what is missing (embedded Redis), loads sites and selector sets, crawls until"
            " Ctrl-C or a limit, and serves the search page meanwhile. A second start goes on where"
            " the first one stopped."
        )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.add_argument(
            "--sites", metavar="A,B", help="only these sites (ids of `scrapy sites list`)"
        )
        parser.add_argument(
            "--pages", type=positive, metavar="N", help="stop after this many pages"
        )
        parser.add_argument(
            "--minutes", type=positive_float, metavar="M", help="stop after this many minutes"
        )
        parser.add_argument(
            "--since",
            metavar="3d",
            help="only articles of the last days (3d) or from a day on (2026-11-01)",
        )
        parser.add_argument(
            "--until-done", action="store_true", help="stop when nothing is left to fetch"
        )
        parser.add_argument("--no-serve", action="store_true", help="do not serve the search page")

    def process_options(self, args: list[str], opts: argparse.Namespace) -> None:
        super().process_options(args, opts)
        assert self.settings is not None
        own: dict[str, Any] = {
            "CRAWL_FOREVER": not opts.until_done,
            "SCHEDULER_IDLE_BEFORE_CLOSE": 3,
        }
        if opts.pages:
            own["CRAWL_PAGES"] = opts.pages
        if opts.minutes:
            own["CLOSESPIDER_TIMEOUT"] = round(opts.minutes * 60)
        if not self.settings.get("LOG_FILE"):  # the terminal is for the display and the summary
            log = opening.data_dir(self.settings) / "logs" / "crawl.log"
            try:
                log.parent.mkdir(parents=True, exist_ok=True)
                log.open("a").close()  # logging would tell a file of somebody else by a traceback
            except OSError as exc:
                cli.fail(f"DATA_DIR cannot be written: {exc.filename or log}: {exc.strerror}")
            own["LOG_FILE"] = str(log)
        cli.set_own(self.settings, own)

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        assert self.settings is not None and self.crawler_process is not None
        _refuse_arguments(args)
        if opts.sites is not None and not opts.sites.strip(", "):
            raise cli.UsageError(
                "--sites names no site; without it all enabled sites are crawled", print_help=False
            )
        given = {"sites": opts.sites, "since": opts.since}
        spider_args = {name: value for name, value in given.items() if value}
        has_limit = opts.pages or opts.minutes or opts.until_done
        with cli.interruptible(cli.NOT_BEGUN):
            sites = check(self.settings, spider_args)
            for error in sites.errors:
                cli.note(f"site left out: {error}")
            self._load_selectors()
            server = None if opts.no_serve else SearchPage.start(self.settings)
        cli.note(f"Crawling {number_of(len(sites.enabled()), 'site')}; Ctrl-C stops gracefully")
        cli.note(contact.told_when(opening.data_dir(self.settings), sites.enabled()))
        crawler = self.crawler_process.create_crawler("news")
        try:
            self.crawler_process.crawl(crawler, **spider_args)
            self.crawler_process.start()
            self.exitcode = self._verdict(crawler)
            if server is not None and has_limit and sys.stdin.isatty():
                server.wait_for_ctrl_c()
        finally:
            self._stop(server)

    def _stop(self, server: SearchPage | None) -> None:
        assert self.settings is not None
        if server is not None:
            server.stop()
        opening.stop_embedded(self.settings)

    def _load_selectors(self) -> None:
        assert self.settings is not None

        async def load() -> None:
            assert self.settings is not None
            client = connect(opening.redis_url(self.settings), single=False)
            try:
                report = await opening.open_selector_store(self.settings, client).load_folder()
                for error in report.errors:
                    cli.note(f"selector set left out: {error}")
            except redis.RedisError as exc:  # full, or gone since it was looked at: the crawl waits
                cli.note(f"Selector sets could not be loaded, those in Redis are used: {exc}")
            finally:
                await client.aclose()

        cli.run_apart(load())

    def _verdict(self, crawler: Crawler) -> int:
        """0 when anything was fetched or nothing was due; a crawl that got nothing, or that had to
        stop, is a failure."""
        stop = (
            getattr(crawler.spider, "stop_reason", "")
            if crawler.spider
            else "the crawl did not start"
        )
        if stop:
            cli.note(f"Crawl stopped: {stop}")
            return 1
        stats = metrics.stats_of(crawler)
        if metrics.nothing_was_due(stats):
            cli.note(nothing_due(stats))
            return 0
        if not stats.get(metrics.PAGES, 0):
            cli.note(nothing_fetched(stats) or NOTHING_FETCHED)
            return 1
        return 0


def _refuse_arguments(args: list[str]) -> None:
    if args:
        raise cli.UsageError(
            f"unexpected argument: {args[0]} (sites are given as --sites {args[0]})",
            print_help=False,
        )


class SearchPage:
    """`scrapy serve` as a process beside the crawl, so that a busy crawl does not slow the page.

    A thread of its own starts it and stays as long as the crawl: the kernel ends the page with the
    thread that started it. Where another run serves the page already, the thread takes it over when
    that run has ended.
    """

    #: Seconds between two looks at a page that another run serves.
    LOOK_S = 3.0
    #: So many ports behind API_PORT are tried where that one serves another data folder.
    PORTS = 20

    def __init__(self, settings: BaseSettings) -> None:
        self.settings = settings
        self.host, self.port = str(settings["API_HOST"]), settings.getint("API_PORT")
        from newscrawler.api.deps import mark_of  # pydantic and starlette: not for each command

        self.mark = mark_of(settings)
        self.process: subprocess.Popen[bytes] | None = None
        self._said = threading.Event()
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._keep, name="search-page", daemon=True)

    @property
    def url(self) -> str:
        return f"http://{self.host}:{self.port}"

    @classmethod
    def start(cls, settings: BaseSettings) -> SearchPage:
        """Returns when it is served, or when a line said why it is not."""
        page = cls(settings)
        page._thread.start()
        try:
            page._said.wait(30)
        except BaseException:  # Ctrl-C
            page.stop()
            raise
        return page

    def _keep(self) -> None:
        try:
            while not self._end.is_set() and not self._is_settled():
                pass
        finally:
            self._said.set()
        self._end.wait()

    def _is_settled(self) -> bool:
        """Finds a port and serves there. False where another program took the port in between."""
        whose = self._find_port()
        if whose == "program":
            cli.note(
                f"Search page not served: port {self.port} is taken by another program; set"
                " API_PORT"
            )
            return True
        if whose == "ours":
            cli.note(f"Search page: {self.url} (served already)")
            self._said.set()
            self._wait_until_free()
        return self._end.is_set() or self._serve()

    def _find_port(self) -> Owner:
        """Moves on to the next port while one serves another data folder."""
        first = self.port
        whose = self._owner()
        if whose != "other" or first == 0:
            return whose
        for port in range(first + 1, min(first + self.PORTS, cli.LAST_PORT) + 1):
            whose = owner(self.host, port, self.mark)
            if whose == "ours" or (whose == "free" and can_be_taken(self.host, port)):
                cli.note(f"Port {first} serves another data folder; this one is on port {port}")
                self.port = port
                return whose
        return "program"

    def _wait_until_free(self) -> None:
        while not self._end.wait(self.LOOK_S):
            if not listening(self.host, self.port):
                cli.note("The run that served the search page has ended; this one serves it now")
                return

    def _serve(self) -> bool:
        settings = self.settings
        log = opening.data_dir(settings) / "logs" / "serve.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "scrapy", "serve"]
        command += ["--host", self.host, "--port", str(self.port)]
        for name in (
            "DATA_DIR",
            "REDIS_URL",
            "ARTICLE_STORE",
            "ARTICLE_STORE_CA_FILE",
            "ARTICLE_INDEX",
            "SITES_FILE",
        ):
            if settings.get(name):
                command += ["-s", f"{name}={settings.get(name)}"]
        with log.open("ab") as out:
            # its own session: Ctrl-C in the terminal ends the crawl first, and the crawl ends the
            # page and where the crawl is killed, the kernel ends the page
            process = subprocess.Popen(
                command, stdout=out, stderr=out, start_new_session=True, preexec_fn=tied()
            )
        self.process = process
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline and not self._has_begun_or_ended(process):
            time.sleep(0.05)
        if self._end.is_set():
            return True
        if process.poll() is None:
            cli.note(f"Search page: {self.url}")
            return True
        if self._owner() in ("free", "program"):
            cli.note(f"Search page could not be served, see {log}: {_last_line(log)}")
            return True
        return False

    def _has_begun_or_ended(self, process: subprocess.Popen[bytes]) -> bool:
        if process.poll() is not None or self._end.is_set():
            return True
        return self._owner() == "ours"

    def _owner(self) -> Owner:
        return owner(self.host, self.port, self.mark)

    def wait_for_ctrl_c(self) -> None:
        if self.process is None or self.process.poll() is not None:
            return
        cli.note(f"The search page stays at {self.url}; Ctrl-C ends it.")
        with contextlib.suppress(KeyboardInterrupt):
            signal.signal(signal.SIGINT, signal.default_int_handler)
            self.process.wait()

    def stop(self) -> None:
        self._end.set()
        process = self.process
        if process is not None and process.poll() is None:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
        self._thread.join(10)


def _last_line(path: Path) -> str:
    lines = path.read_text(errors="replace").strip().splitlines() if path.exists() else []
    return lines[-1] if lines else "no output"


def positive(text: str) -> int:
    """:raises argparse.ArgumentTypeError: no whole number above 0"""
    value = whole_number(text)
    if value is None or value <= 0:
        raise argparse.ArgumentTypeError(f"{text}: must be a whole number above 0")
    return value


def positive_float(text: str) -> float:
    """:raises argparse.ArgumentTypeError: no number above 0"""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"{text}: must be a number above 0")
    return value
