"""Bounded crawls: one site, so many links deep, so many pages. What is known of them, in Redis.

Their URLs are queued, leased and acked as all others, in the one frontier (``Frontier.want``); here
stands which URLs belong to which crawl, so that any worker can count a page that has ended and any
process can tell how far a crawl is. Every change is one script call or is repeated by the next look
(:class:`newscrawler.crawl.bounded_crawls.BoundedCrawls`), so a process that dies loses none.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import msgpack
from redis.asyncio import Redis

from newscrawler.frontier import keys
from newscrawler.frontier.errors import translated
from newscrawler.frontier.layout import Layout
from newscrawler.frontier.scripts import Scripts
from newscrawler.items import Kind, Link
from newscrawler.web.urls import domain_of

#: Crawls that may run at once: a URL is marked with the name of each that wants it.
MOST_RUNNING = 10
#: How long a crawl that has ended is kept, ms.
KEEP_MS = 7 * 86_400_000
#: Who took a link offers it within this time, or another worker does, ms.
GRACE_MS = 10_000
#: A URL that is queued is looked after so often, ms.
LOOK_MS = 60_000
#: One worker at a time looks after a crawl, for so long, ms.
TURN_MS = 900

RUNNING, CANCELLED = "running", "cancelled"


class CrawlRefused(ValueError):
    """The crawl cannot be begun; the text says why. ``status``: of HTTP."""

    status = 422


class TooManyCrawls(CrawlRefused):
    status = 409


@dataclass(slots=True)
class Crawl:
    """What was asked for and how far it is. ``state``: running | finished | refused | failed |
    cancelled. Counters are of pages, but for ``left_out``: links that ``max_pages`` left out."""

    id: str
    url: str
    site: str
    levels: int
    max_pages: int
    created_ms: int
    by: str = ""
    start: str = ""  # hex of the start's url id
    is_configured: bool = True  # False: no file knows the site, only this crawl asks for its pages
    asked_s: int = 0  # by the frontier's clock, when a worker took it; 0 = none has
    state: str = RUNNING
    why: str = ""
    ended_ms: int = 0
    pages: int = 1  # that belong to it now
    fetched: int = 0
    fresh: int = 0  # read lately, not fetched again
    refused: int = 0
    failed: int = 0
    articles: int = 0
    new_articles: int = 0
    left_out: int = 0
    open: int = field(default=0, metadata={"stored": False})  # still to be fetched

    @property
    def is_running(self) -> bool:
        return self.state == RUNNING


@dataclass(slots=True)
class Entry:
    """A URL of a crawl. ``tries``: how often it had to be queued."""

    link: Link
    level: int
    tries: int
    is_open: bool
    outcome: str = ""


@dataclass(slots=True)
class Ended:
    """How a page ended, for its crawl."""

    outcome: str  # as DONE or RETRY(500)
    counters: Sequence[str]
    is_free: bool = False  # never asked of the site: another page may take its place


_FIELDS = [f for f in fields(Crawl) if f.metadata.get("stored", True)]


class CrawlBook:
    def __init__(self, client: Redis, scripts: Scripts | None = None) -> None:
        self.client: Any = client  # answers are bytes, which the stubs do not know
        self.scripts = scripts or Scripts(client)

    # ------------------------------------------------------------------ reading
    async def get(self, crawl_id: str) -> Crawl | None:
        with translated():
            pipe = self.client.pipeline(transaction=True)
            pipe.hgetall(keys.crawl_facts(crawl_id))
            pipe.zcard(keys.crawl_open(crawl_id))
            facts, left = await pipe.execute()
        return _crawl(crawl_id, facts, left) if facts else None

    async def newest(self, most: int = 100) -> list[Crawl]:
        """The newest first. Those that are kept no longer leave the list here."""
        with translated():
            ids = await self.client.zrevrange(keys.CRAWL_INDEX, 0, most - 1)
        found = []
        for name in ids:
            crawl = await self.get(name.decode())
            if crawl is not None:
                found.append(crawl)
                continue
            with translated():
                await self.client.zrem(keys.CRAWL_INDEX, name)
        return found

    async def running(self) -> list[str]:
        """Ids of those that run, or were cancelled and are not yet out of the queue."""
        with translated():
            return sorted(name.decode() for name in await self.client.smembers(keys.CRAWLS_RUNNING))

    async def pages(self, crawl_id: str, most: int) -> list[Entry]:
        found: list[Entry] = []
        with translated():
            async for url_id, data in self.client.hscan_iter(
                keys.crawl_urls(crawl_id), count=min(most, 500)
            ):
                found.append(_entry(url_id, data))
                if len(found) >= most:
                    break
        return sorted(found, key=lambda one: (one.level, one.link.url))

    # ------------------------------------------------------------------ changes
    async def begin(
        self,
        link: Link,
        *,
        site: str,
        levels: int,
        max_pages: int,
        by: str,
        is_configured: bool,
        now_ms: int,
    ) -> Crawl:
        """:raises TooManyCrawls: as many run as may"""
        crawl = Crawl(
            id=secrets.token_hex(4),
            url=link.url,
            site=site,
            levels=levels,
            max_pages=max_pages,
            created_ms=now_ms,
            by=by,
            start=link.url_id.hex(),
            is_configured=is_configured,
            open=1,
        )
        facts = {f.name: _packed(getattr(crawl, f.name)) for f in _FIELDS if f.name != "id"}
        with translated():
            if await self.client.scard(keys.CRAWLS_RUNNING) >= MOST_RUNNING:
                raise TooManyCrawls(
                    f"{MOST_RUNNING} bounded crawls are running: wait for one, or cancel it"
                )
            pipe = self.client.pipeline(transaction=True)
            pipe.hset(keys.crawl_facts(crawl.id), mapping=facts)
            start = f"o\t0\t{link.kind}\t0\t\t{link.url}"
            pipe.hset(keys.crawl_urls(crawl.id), link.url_id, start)
            pipe.zadd(keys.crawl_open(crawl.id), {link.url_id: 0})
            pipe.zadd(keys.CRAWL_INDEX, {crawl.id: now_ms})
            pipe.sadd(keys.CRAWLS_RUNNING, crawl.id)
            await pipe.execute()
        return crawl

    async def taken(self, crawl_id: str, now_s: int) -> int:
        """A worker has it: since when, by the frontier's clock."""
        key = keys.crawl_facts(crawl_id)
        with translated():
            known = int(await self.client.hget(key, "asked_s") or 0)
            if not known:
                await self.client.hset(key, "asked_s", now_s)
        return known or now_s

    async def cancel(self, crawl_id: str, why: str, now_ms: int) -> bool:
        """False: it does not run. Its URLs leave the queue by :meth:`open_entries` and
        ``Frontier.unwant``."""
        facts = {"state": CANCELLED, "why": why, "ended_ms": str(now_ms)}
        crawl = await self.get(crawl_id)
        if crawl is None or not crawl.is_running:
            return False
        with translated():
            await self.client.hset(keys.crawl_facts(crawl_id), mapping=facts)
        return True

    async def page_ended(
        self,
        crawl_id: str,
        url_id: bytes,
        ended: Ended,
        *,
        level: int,
        links: Iterable[Link],
        now_ms: int,
    ) -> set[bytes]:
        """Counts a page once. Url ids of the links on it that are pages of the crawl from now."""
        packed = [part for x in links for part in (x.url_id, str(x.kind), x.url)]
        with translated():
            taken = await self.scripts.run(
                "crawl_page",
                keys.CRAWLS,
                crawl_id,
                url_id,
                ended.outcome,
                " ".join(ended.counters),
                int(ended.is_free),
                level,
                msgpack.packb(packed, use_bin_type=False),
                now_ms,
                GRACE_MS,
                KEEP_MS,
            )
        return set(taken)

    async def look_again(self, crawl_id: str, url_ids: Iterable[bytes], at_ms: int) -> None:
        """What is not open any more stays so."""
        places = dict.fromkeys(url_ids, at_ms)
        if places:
            with translated():
                await self.client.zadd(keys.crawl_open(crawl_id), places, xx=True)

    async def rewrite(self, crawl_id: str, url_id: bytes, entry: Entry) -> None:
        """Its tries or its address changed. Only for the holder of its lease, or of the
        crawl's turn."""
        text = f"o\t{entry.level}\t{entry.link.kind}\t{entry.tries}\t\t{entry.link.url}"
        with translated():
            known = await self.client.hget(keys.crawl_urls(crawl_id), url_id)
            if known is not None and known.startswith(b"o"):
                await self.client.hset(keys.crawl_urls(crawl_id), url_id, text)

    # ------------------------------------------------------------------ looking after
    async def turn(self, crawl_id: str) -> bool:
        """Whether this process looks after the crawl now."""
        with translated():
            key = keys.crawl_turn(crawl_id)
            return bool(await self.client.set(key, "1", nx=True, px=TURN_MS))

    async def open_entries(
        self, crawl_id: str, most: int, until_ms: int | None = None
    ) -> list[Entry]:
        """URLs that are still to be fetched and are to be looked at by now; None: all of them."""
        until = "+inf" if until_ms is None else until_ms
        with translated():
            ids = await self.client.zrangebyscore(
                keys.crawl_open(crawl_id), "-inf", until, start=0, num=most
            )
            if not ids:
                return []
            found = await self.client.hmget(keys.crawl_urls(crawl_id), ids)
        return [_entry(i, data) for i, data in zip(ids, found, strict=True) if data is not None]

    async def queued(self, crawl_id: str, links: Sequence[Link], layout: Layout) -> set[bytes]:
        """Those that the frontier has and that carry the mark of the crawl."""
        if not links:
            return set()
        mark = f" {crawl_id}:".encode()
        with translated():
            pipe = self.client.pipeline(transaction=False)
            for link in links:
                shard = layout.of(link.domain)
                pipe.hexists(keys.records(shard, link.domain), link.url_id)
                pipe.hget(keys.want(shard), link.url_id)
            answers = await pipe.execute()
        pairs = zip(links, answers[::2], answers[1::2], strict=True)
        return {link.url_id for link, known, wanted in pairs if known and mark in (wanted or b"")}

    async def unmark(self, links: Sequence[Link], layout: Layout) -> None:
        """Their visits have ended, for every crawl that was named in the lease."""
        if not links:
            return
        with translated():
            pipe = self.client.pipeline(transaction=False)
            for link in links:
                pipe.hdel(keys.want(layout.of(link.domain)), link.url_id)
            await pipe.execute()


def _packed(value: Any) -> str:
    return str(int(value)) if isinstance(value, bool) else str(value)


def _crawl(crawl_id: str, facts: dict[bytes, bytes], left: int) -> Crawl:
    values: dict[str, Any] = {"id": crawl_id, "open": left}
    for f in _FIELDS:
        raw = facts.get(f.name.encode())
        if raw is None:
            continue
        text = raw.decode()
        if f.type == "int":
            values[f.name] = int(text)
        else:
            values[f.name] = text == "1" if f.type == "bool" else text
    return Crawl(**values)


def _entry(url_id: bytes, data: bytes) -> Entry:
    state, level, kind, tries, outcome, url = data.decode().split("\t", 5)
    link = Link(url, url_id, domain_of(url), Kind(kind), depth=int(level), band=0, revisit=True)
    return Entry(link, int(level), int(tries), state == "o", outcome)
