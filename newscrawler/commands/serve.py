"""scrapy serve: the search page and the HTTP API."""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import platform
from collections.abc import Awaitable, Callable
from urllib.parse import urlsplit

import redis
from scrapy.settings import BaseSettings

from newscrawler import cli
from newscrawler.api.access import (
    PREVIOUS_SECRET_ENV,
    ROLES,
    SECRET_ENV,
    Access,
    AccessRefused,
    access_for,
)
from newscrawler.api.processes import MOST as MOST_PROCESSES
from newscrawler.api.processes import supervise
from newscrawler.api.tokens import TokenBook, TokenFileError
from newscrawler.cli import UsageError
from newscrawler.commands.token import create
from newscrawler.crawl.opening import StartRefused, data_dir
from newscrawler.frontier import connect_blocking
from newscrawler.utils.display import url_shown

logger = logging.getLogger(__name__)

#: Seconds that the look at Redis at the start may take.
REDIS_S = 2.0

Beside = Callable[[asyncio.Event], Awaitable[None]]


class Command(cli.Command):
    requires_project = True
    requires_crawler_process = False
    own_settings = {"LOG_LEVEL": "WARNING"}

    def syntax(self) -> str:
        return "[options]"

    def short_desc(self) -> str:
        return "Serve the search page and the HTTP API"

    def long_desc(self) -> str:
        return (
            "Serves the search page, the HTTP API (/docs) and /metrics over what was crawled; it"
            " fetches nothing. Ends on Ctrl-C or SIGTERM with exit code 0. Addresses other than"
            " loopback need API_TOKEN_SECRET in the environment; --token prints a token for one"
            " reader and ends (more: `scrapy token`)."
        )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.add_argument("--host", help="address to bind (default: API_HOST, 127.0.0.1)")
        parser.add_argument(
            "--port", type=cli.port, help="port, 0 = a free one (default: API_PORT, 8642)"
        )
        parser.add_argument(
            "--processes",
            type=int,
            default=1,
            metavar="N",
            help="that answer at this address, for many readers (default: 1; more: Linux only)",
        )
        parser.add_argument(
            "--token", action="store_true", help="print a bearer token made with API_TOKEN_SECRET"
        )
        parser.add_argument(
            "--days",
            type=float,
            default=30,
            help="with --token: days until it expires (default: 30)",
        )
        parser.add_argument(
            "--role", default="reader", choices=ROLES, help="with --token: default reader"
        )

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        if args:
            raise UsageError(
                f"scrapy serve takes no argument, got {' '.join(args)}", print_help=False
            )
        secret = os.environ.get(SECRET_ENV, "").strip()
        settings = self.settings
        assert settings is not None
        book = TokenBook(data_dir(settings))
        if opts.token:
            try:
                cli.show(create(book, opts.role, opts.days, "scrapy serve --token"))
            except TokenFileError as exc:
                cli.fail(str(exc))
            return
        host = opts.host or settings.get("API_HOST") or "127.0.0.1"
        port = settings.getint("API_PORT") if opts.port is None else opts.port
        try:
            access = access_for(
                host,
                secret,
                _allowed_hosts(settings),
                previous=os.environ.get(PREVIOUS_SECRET_ENV, "").strip(),
                book=book,
            )
        except (AccessRefused, ValueError) as exc:
            cli.fail(str(exc))
        if not 1 <= opts.processes <= MOST_PROCESSES:
            raise UsageError(
                f"--processes {opts.processes}: must be 1 to {MOST_PROCESSES}", print_help=False
            )
        if opts.processes > 1 and platform.system() != "Linux":
            raise UsageError(
                f"--processes {opts.processes}: on Linux only; else several behind a proxy",
                print_help=False,
            )
        self._serve(settings, access, host, port, opts.processes)

    def _serve(
        self, settings: BaseSettings, access: Access, host: str, port: int, processes: int
    ) -> None:
        from newscrawler.api.app import create_app
        from newscrawler.api.deps import open_deps
        from newscrawler.api.rate import SharedRate
        from newscrawler.api.server import CannotServe, address, bind, serve
        from newscrawler.crawl.fleet import watch_of_server
        from newscrawler.fleet.nodes import TargetError
        from newscrawler.frontier import redis_server as embedded

        try:
            watch = watch_of_server(settings)
        except (StartRefused, TargetError) as exc:
            cli.refuse(f"FLEET_WATCH: {exc}")
        monitor, hubs = _monitor(settings), _hubs(settings)
        try:
            sock = bind(host, port)
        except CannotServe as exc:
            cli.fail(str(exc))
        _say_if_redis_is_away(settings)
        rate = SharedRate(settings.getint("API_REQUESTS_PER_MINUTE")) if processes > 1 else None

        def answer(number: int) -> None:
            try:
                deps = open_deps(settings, access)
            except ValueError as exc:  # ARTICLE_STORE is none
                cli.fail(str(exc))
            deps.rate = rate
            deps.beside = _together(watch, monitor, hubs) if number == 0 else None
            app = create_app(deps)
            if number == 0:
                cli.show(f"Search page: {address(sock)}", flush=True)
            serve(app, sock)

        try:
            if processes == 1:
                answer(0)
            else:
                self.exitcode = supervise(processes, answer)
        finally:
            if not settings.get("REDIS_URL"):
                embedded.stop_if_last(data_dir(settings))


def _say_if_redis_is_away(settings: BaseSettings) -> None:
    """A note and no refusal: search needs no Redis, and what is away may come back."""
    url = str(settings.get("REDIS_URL") or "")
    if not url:
        return  # the embedded one is started by what needs it first
    try:
        with connect_blocking(
            url, socket_connect_timeout=REDIS_S, socket_timeout=REDIS_S
        ) as client:
            client.ping()
    except (redis.RedisError, OSError, ValueError) as exc:
        cli.note(
            f"Redis does not answer at {url_shown(url)}: {exc}. Searching works; what shows or"
            " changes the crawl answers 503 until it is back."
        )


def _allowed_hosts(settings: BaseSettings) -> str:
    """:raises ValueError: PUBLIC_URL is no address"""
    from newscrawler.crawl.websub import public_url

    host = urlsplit(public_url(settings)).hostname or ""
    return f"{settings.get('API_ALLOWED_HOSTS') or ''},{host}"


def _hubs(settings: BaseSettings) -> Beside | None:
    from newscrawler.crawl.hub_requests import beside

    try:
        return beside(settings)
    except ValueError as exc:
        cli.refuse(str(exc))


def _monitor(settings: BaseSettings) -> Beside | None:
    if str(settings.get("FLEET_MONITOR_S") or 0) == "0":
        return None  # without its imports
    from newscrawler.crawl.monitoring import monitor_beside

    try:
        return monitor_beside(settings)
    except ValueError as exc:
        cli.refuse(f"the monitor beside the page: {exc}")


def _together(*works: Beside | None) -> Beside | None:
    """What runs beside the page; a work that fails ends no other."""
    wanted = [work for work in works if work is not None]
    if not wanted:
        return None

    async def run(end: asyncio.Event) -> None:
        await asyncio.gather(*(_told(work, end) for work in wanted))

    return run


async def _told(work: Beside, end: asyncio.Event) -> None:
    """Says at once, not at the end of all, that a work failed."""
    try:
        await work(end)
    except Exception as exc:
        logger.exception("Work beside the page failed error=%s", exc)
