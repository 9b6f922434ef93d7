"""`scrapy follow VERB`: saved queries, and who is told of what they find."""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import Awaitable, Callable
from email.utils import parseaddr
from typing import Any, TypeVar

from redis.exceptions import RedisError
from scrapy.settings import BaseSettings

from newscrawler import cli
from newscrawler.crawl import opening
from newscrawler.crawl.digests import Channels, NotSent
from newscrawler.crawl.saved_queries import NAME, Digest, SavedQueries, SavedQuery, entry
from newscrawler.crawl.webhook import checked_url
from newscrawler.frontier import connect
from newscrawler.frontier.types import FrontierError
from newscrawler.store.base import QueryError, StoreError
from newscrawler.store.events import Event
from newscrawler.store.query_language import parse

T = TypeVar("T")
VERBS = {
    "list": ("", "a row per saved query: what waits to be sent, and by which way"),
    "add": ("NAME QUERY [options]", "from now on; one of the same name is replaced"),
    "remove": ("NAME", "and forget what it has found"),
    "test": ("NAME", "send the newest that it finds in the store, marked as a test"),
}
EXAMPLES = """\
  scrapy follow add gold '"giá vàng" -quảng' --mail desk@example.vn --every 1h
  scrapy follow add storm 'bão site:vnexpress.net' --webhook https://example.vn/hook --every 5m"""
_TESTED = 3


class Command(cli.Command):
    requires_project = True
    requires_crawler_process = False
    own_settings = {"LOG_LEVEL": "WARNING"}
    takes_query = True

    def syntax(self) -> str:
        return "list | add NAME QUERY [options] | remove NAME | test NAME"

    def short_desc(self) -> str:
        return "Saved queries: alerts on new matches by webhook and mail"

    def long_desc(self) -> str:
        verbs = [f"  {f'{verb} {usage}':<34} {text}" for verb, (usage, text) in VERBS.items()]
        tail = [
            "A crawl compares every new or changed article with them, as the search does, all",
            "words as typed, and sends one digest per interval. They are kept in Redis.",
        ]
        head = [f"{self.short_desc()}.", "Without a verb: list.", ""]
        return "\n".join([*head, *verbs, "", *tail, "", "Examples:", EXAMPLES])

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.formatter_class = cli.VerbsHelp
        cli.add_json_option(parser)
        parser.add_argument("--webhook", metavar="URL", default="", help="add: post digests there")
        parser.add_argument(
            "--mail", metavar="ADDRESS", action="append", default=[], help="add: repeatable"
        )
        parser.add_argument(
            "--every",
            type=cli.span_s,
            metavar="TIME",
            default="1h",
            help="add: one digest in 5m, 1h (default), 1d",
        )
        parser.add_argument("--site", metavar="A,B", default="", help="add: only of these sites")

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        assert self.settings is not None
        settings = self.settings
        verb, rest = cli.verb_of(args, VERBS, "list")
        if verb == "add":
            query = _made(rest, opts)
            _with_saved(settings, lambda saved: saved.add(query))
            cli.note(f"{query.name} is followed; a crawl must run to find something")
            return
        if verb == "list":
            if rest:
                raise cli.UsageError(f"scrapy follow list takes no {rest[0]}", print_help=False)
            rows = _with_saved(settings, _rows)
            cli.print_rows(rows, ("name", "text", "to", "every_s", "waiting"), opts.as_json)
            return
        if len(rest) != 1:
            raise cli.UsageError(f"scrapy follow {verb} takes one NAME", print_help=False)
        if verb == "remove":
            if not _with_saved(settings, lambda saved: saved.remove(rest[0])):
                cli.fail(f"no saved query is called {rest[0]}")
            cli.note(f"{rest[0]} is not followed any more")
            return
        _with_saved(settings, lambda saved: _test(settings, saved, rest[0]))


def _made(args: list[str], opts: argparse.Namespace) -> SavedQuery:
    if len(args) < 2:
        raise cli.UsageError("scrapy follow add takes NAME and QUERY", print_help=False)
    name, text = args[0], " ".join(args[1:]).strip()
    if not NAME.fullmatch(name):
        raise cli.UsageError(
            f"{name}: a name has up to 64 letters, digits, '.', '-' and '_'", print_help=False
        )
    if opts.every < 1:
        raise cli.UsageError("--every must be a second or more: 5m, 1h, 1d", print_help=False)
    for address in opts.mail:
        if parseaddr(address)[1] != address or "@" not in address.strip("@"):
            raise cli.UsageError(f"--mail {address}: must be an address", print_help=False)
    if not opts.webhook and not opts.mail:
        raise cli.UsageError("name a receiver: --webhook URL or --mail ADDRESS", print_help=False)
    query = SavedQuery(
        name=name,
        text=text,
        webhook=opts.webhook,
        mail=tuple(opts.mail),
        every_s=int(opts.every),
        since_ms=time.time_ns() // 1_000_000,
        sites=tuple(site.strip() for site in opts.site.split(",") if site.strip()),
    )
    try:
        if opts.webhook:
            checked_url("--webhook", opts.webhook)
        if not text:
            raise QueryError("an empty query finds everything: name at least a word or a field")
        parse(query.query())
    except ValueError as exc:
        raise cli.UsageError(str(exc), print_help=False) from exc
    return query


def _with_saved(settings: BaseSettings, work: Callable[[SavedQueries], Awaitable[T]]) -> T:
    async def run() -> T:
        client: Any = connect(opening.redis_url(settings), single=False)
        try:
            return await work(SavedQueries(client))
        finally:
            await client.aclose()

    try:
        return asyncio.run(run())
    except (RedisError, FrontierError, StoreError) as exc:
        cli.fail(str(exc))
    finally:
        opening.stop_embedded(settings)


async def _rows(saved: SavedQueries) -> list[dict[str, Any]]:
    return [
        {
            "name": query.name,
            "text": query.text,
            # Of many services the path is the secret.
            "to": ", ".join([*query.mail, *(["webhook"] if query.webhook else [])]),
            "every_s": query.every_s,
            "waiting": await saved.waiting(query.name),
        }
        for query in await saved.all()
    ]


async def _test(settings: BaseSettings, saved: SavedQueries, name: str) -> None:
    query = await saved.get(name)
    if query is None:
        cli.fail(f"no saved query is called {name}")
    store = opening.open_article_store(settings)
    try:
        found = await store.search(query.query())
    finally:
        await store.close()
    now_ms = time.time_ns() // 1_000_000
    entries = []
    for hit in found.hits[:_TESTED]:
        when = hit.article.fetched or hit.article.published
        if when is not None:
            entries.append(entry(Event("new", hit.article.version, when, hit.article)))
    cli.note(f"{name} finds {found.total} of the stored articles")
    digest = Digest(f"{name}-test-{now_ms:x}", len(entries), entries=entries)
    channels = Channels.from_settings(settings)
    failed = False
    for channel in channels.of(query):
        try:
            await channels.send(channel, query, digest, test=True)
            cli.note(f"{channel}: sent")
        except NotSent as exc:
            failed = True
            cli.note(f"{channel}: not sent: {exc}")
    if failed:
        raise SystemExit(1)
