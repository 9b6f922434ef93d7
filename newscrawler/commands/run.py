"""`scrapy run` (`make run`): everything on one machine: Redis, selector sets, seeds, crawl, search page."""

from __future__ import annotations

import argparse
import contextlib
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

from scrapy.commands import ScrapyCommand
from scrapy.settings import BaseSettings

from newscrawler import cli, metrics, wiring
from newscrawler.commands.crawl import check
from newscrawler.frontier import connect
from newscrawler.frontier import server as embedded


class Command(ScrapyCommand):
    requires_project = True
    requires_crawler_process = True

    def syntax(self) -> str:
        return "[options]"

    def short_desc(self) -> str:
        return "Crawl all enabled sites and serve the search page (make run)"

    def long_desc(self) -> str:
        return (
            "Starts what is missing (embedded Redis), loads sites and selector sets, crawls until Ctrl-C or a limit, "
            "and serves the search page meanwhile. A second start goes on where the first one stopped."
        )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.add_argument("--sites", metavar="A,B", help="only these sites (ids of `scrapy sites list`)")
        parser.add_argument("--pages", type=positive, metavar="N", help="stop after this many pages")
        parser.add_argument("--minutes", type=positive_float, metavar="M", help="stop after this many minutes")
        parser.add_argument(
            "--since", metavar="3d", help="only articles of the last days (3d) or from a day on (2026-11-01)"
        )
        parser.add_argument("--until-done", action="store_true", help="stop when nothing is left to fetch")
        parser.add_argument("--no-serve", action="store_true", help="do not serve the search page")

    def process_options(self, args: list[str], opts: argparse.Namespace) -> None:
        super().process_options(args, opts)
        assert self.settings is not None
        own: dict[str, Any] = {"CRAWL_FOREVER": not opts.until_done, "SCHEDULER_IDLE_BEFORE_CLOSE": 3}
        if opts.pages:
            own["CLOSESPIDER_PAGECOUNT"] = opts.pages
        if opts.minutes:
            own["CLOSESPIDER_TIMEOUT"] = round(opts.minutes * 60)
        if not self.settings.get("LOG_FILE"):  # the terminal is for the display and the summary
            log = wiring.data_dir(self.settings) / "logs" / "crawl.log"
            try:
                log.parent.mkdir(parents=True, exist_ok=True)
            except OSError as exc:
                cli.fail(f"DATA_DIR cannot be written: {log.parent}: {exc.strerror}")
            own["LOG_FILE"] = str(log)
        self.settings.setdict(own, priority="command")

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        assert self.settings is not None and self.crawler_process is not None
        if args and args[0].startswith("-"):
            raise cli.UsageError(f"unknown option {args[0]}", print_help=False)
        if args:
            raise cli.UsageError(
                f"unexpected argument: {args[0]} (sites are given as --sites {args[0]})", print_help=False
            )
        spider_args = {name: value for name, value in (("sites", opts.sites), ("since", opts.since)) if value}
        sites = check(self.settings, spider_args)
        for error in sites.errors:
            cli.note(f"site left out: {error}")
        self._load_selectors()
        server = None if opts.no_serve else SearchPage.start(self.settings)
        cli.note(f"Crawling {len(sites.enabled())} sites; Ctrl-C stops gracefully")
        crawler = self.crawler_process.create_crawler("news")
        try:
            self.crawler_process.crawl(crawler, **spider_args)
            self.crawler_process.start()
            self.exitcode = self._verdict(crawler)
            if server is not None and sys.stdin.isatty() and (opts.pages or opts.minutes or opts.until_done):
                server.wait_for_ctrl_c()
        finally:
            if server is not None:
                server.stop()
            if not self.settings.get("REDIS_URL"):
                embedded.stop_if_last(wiring.data_dir(self.settings))

    def _load_selectors(self) -> None:
        assert self.settings is not None

        async def load() -> None:
            assert self.settings is not None
            client = connect(wiring.redis_url(self.settings), single=False)
            try:
                report = await wiring.open_selector_store(self.settings, client).load_folder()
                for error in report.errors:
                    cli.note(f"selector set left out: {error}")
            finally:
                await client.aclose()

        cli.run_apart(load())

    def _verdict(self, crawler) -> int:  # type: ignore[no-untyped-def]
        """0 when anything was fetched; a crawl that got nothing, or that had to stop, is a failure."""
        stop = getattr(crawler.spider, "stop_reason", "") if crawler.spider else "the crawl did not start"
        if stop:
            cli.note(f"Crawl stopped: {stop}")
            return 1
        if not crawler.stats.get_value(metrics.PAGES, 0):
            cli.note("Nothing at all could be fetched. Is there a network? `scrapy doctor` checks this machine.")
            return 1
        return 0


class SearchPage:
    """`scrapy serve` as a process beside the crawl, so that a busy crawl does not slow the page."""

    def __init__(self, process: subprocess.Popen[bytes] | None, url: str) -> None:
        self.process = process
        self.url = url

    @classmethod
    def start(cls, settings: BaseSettings) -> SearchPage:
        host, port = settings["API_HOST"], settings.getint("API_PORT")
        url = f"http://{host}:{port}"
        if _listening(host, port):
            if _is_ours(url):
                cli.note(f"Search page: {url} (served already)")
            else:
                cli.note(f"Search page not served: port {port} is taken by another program; set API_PORT")
            return cls(None, url)
        log = wiring.data_dir(settings) / "logs" / "serve.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "scrapy", "serve", "--host", str(host), "--port", str(port)]
        for name in ("DATA_DIR", "REDIS_URL", "ARTICLE_STORE", "ARTICLE_INDEX", "SITES_FILE"):
            if settings.get(name):
                command += ["-s", f"{name}={settings.get(name)}"]
        with log.open("ab") as out:
            # its own session: Ctrl-C in the terminal ends the crawl first, and the crawl ends the page
            process = subprocess.Popen(command, stdout=out, stderr=out, start_new_session=True)
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline and process.poll() is None and not _listening(host, port):
            time.sleep(0.05)
        if process.poll() is not None:
            cli.note(f"Search page could not be served, see {log}: {_last_line(log)}")
        else:
            cli.note(f"Search page: {url}")
        return cls(process, url)

    def wait_for_ctrl_c(self) -> None:
        if self.process is None or self.process.poll() is not None:
            return
        cli.note(f"The search page stays at {self.url}; Ctrl-C ends it.")
        with contextlib.suppress(KeyboardInterrupt):
            signal.signal(signal.SIGINT, signal.default_int_handler)
            self.process.wait()

    def stop(self) -> None:
        if self.process is None or self.process.poll() is not None:
            return
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()


def _listening(host: str, port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection((host, port), timeout=1):
        return True
    return False


def _is_ours(url: str) -> bool:
    with contextlib.suppress(Exception), urllib.request.urlopen(f"{url}/healthz", timeout=3) as answer:
        return b"newscrawler" in answer.read(4096)
    return False


def _last_line(path: Path) -> str:
    lines = path.read_text(errors="replace").strip().splitlines() if path.exists() else []
    return lines[-1] if lines else "no output"


def positive(text: str) -> int:
    value = int(text)
    if value <= 0:
        raise argparse.ArgumentTypeError(f"{text}: must be more than 0")
    return value


def positive_float(text: str) -> float:
    value = float(text)
    if value <= 0:
        raise argparse.ArgumentTypeError(f"{text}: must be more than 0")
    return value
