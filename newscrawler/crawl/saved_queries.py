"""Saved queries and what they have found since: in Redis, which a fleet shares.

An article is noted for a query once, with one script, so that an event that is told twice, or an
article that changes, is no second alert. What is noted waits in a list until a digest with it has
been sent (crawl.digests).
"""

from __future__ import annotations

import re
import tempfile
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import orjson

from newscrawler.items import Article
from newscrawler.store import open_store
from newscrawler.store.base import Query, QueryError
from newscrawler.store.events import Event

#: In braces, so that a cluster keeps all of them on one server.
_KEY = "{newscrawler:follow}"
NAME = re.compile(r"[\w.-]{1,64}")
#: An article is remembered for so long as one that was told, ms.
_REMEMBERED_MS = 90 * 86_400_000
#: KEYS: articles that a query has found, entries that wait. ARGV: id, time and entry of each.
_NOTE = """
local added = 0
for i = 1, #ARGV, 3 do
  if redis.call('ZADD', KEYS[1], 'NX', ARGV[i + 1], ARGV[i]) == 1 then
    redis.call('RPUSH', KEYS[2], ARGV[i + 2])
    added = added + 1
  end
end
return added
"""
_PAGE = 100


@dataclass(frozen=True, slots=True)
class SavedQuery:
    name: str
    text: str
    webhook: str = ""  # may hold a secret: never shown
    mail: tuple[str, ...] = ()
    every_s: int = 3600  # at most one digest in so many seconds
    since_ms: int = 0  # what happened before is no news
    sites: tuple[str, ...] = ()

    def query(self) -> Query:
        return Query(
            self.text, sites=self.sites, sort="date", mode="keyword", strict=True, size=_PAGE
        )


@dataclass(slots=True)
class Digest:
    """What is sent together. The id and the entries stay the same until all channels have it."""

    id: str
    count: int
    done: list[str] = field(default_factory=list)
    entries: list[dict[str, Any]] = field(default_factory=list)


def entry(event: Event) -> dict[str, Any]:
    return event.plain()


class SavedQueries:
    """``client``: redis.asyncio. Raises redis' own errors."""

    def __init__(self, client: Any) -> None:
        self._client = client

    async def add(self, query: SavedQuery) -> None:
        """One of the same name is replaced; what it has found waits on."""
        await self._client.hset(f"{_KEY}:queries", query.name, orjson.dumps(asdict(query)))

    async def remove(self, name: str) -> bool:
        pipeline = self._client.pipeline(transaction=True)
        pipeline.hdel(f"{_KEY}:queries", name)
        pipeline.hdel(f"{_KEY}:sent", name)
        pipeline.delete(*(f"{_KEY}:{part}:{name}" for part in ("found", "waiting", "digest")))
        return bool((await pipeline.execute())[0])

    async def all(self) -> list[SavedQuery]:
        found = await self._client.hgetall(f"{_KEY}:queries")
        queries = []
        for _, value in sorted(found.items()):
            known = orjson.loads(value)
            known |= {"mail": tuple(known["mail"]), "sites": tuple(known["sites"])}
            queries.append(SavedQuery(**known))
        return queries

    async def get(self, name: str) -> SavedQuery | None:
        return next((query for query in await self.all() if query.name == name), None)

    async def note(self, name: str, events: Sequence[Event]) -> int:
        """How many of the articles were not noted for it before."""
        values: list[Any] = []
        for event in events:
            ms = round(event.at.timestamp() * 1000)
            values += [event.article.id, ms, orjson.dumps(entry(event))]
        if not values:
            return 0
        keys = (f"{_KEY}:found:{name}", f"{_KEY}:waiting:{name}")
        return int(await self._client.eval(_NOTE, 2, *keys, *values))

    async def waiting(self, name: str) -> int:
        return int(await self._client.llen(f"{_KEY}:waiting:{name}"))

    async def last_sent_ms(self, name: str) -> int:
        return int(await self._client.hget(f"{_KEY}:sent", name) or 0)

    async def digest(self, name: str, most: int) -> Digest | None:
        """The one that is to be sent: that of an attempt before, or one of what waits."""
        key = f"{_KEY}:digest:{name}"
        begun = await self._client.get(key)
        if begun is None:
            count = min(most, await self.waiting(name))
            if not count:
                return None
            first = orjson.loads(await self._client.lindex(f"{_KEY}:waiting:{name}", 0))
            made = {
                "id": f"{name}-{time.time_ns():x}-{first['id'][:8]}",
                "count": count,
                "done": [],
            }
            await self._client.set(key, orjson.dumps(made), nx=True)
            begun = await self._client.get(key)
        digest = Digest(**orjson.loads(begun))
        rows = await self._client.lrange(f"{_KEY}:waiting:{name}", 0, digest.count - 1)
        digest.entries = [orjson.loads(row) for row in rows]
        return digest

    async def sent_by(self, name: str, digest: Digest, channel: str) -> None:
        digest.done.append(channel)
        kept = {"id": digest.id, "count": digest.count, "done": digest.done}
        await self._client.set(f"{_KEY}:digest:{name}", orjson.dumps(kept))

    async def end(self, name: str, digest: Digest, now_ms: int) -> None:
        """All channels have it."""
        pipeline = self._client.pipeline(transaction=True)
        pipeline.ltrim(f"{_KEY}:waiting:{name}", digest.count, -1)
        pipeline.delete(f"{_KEY}:digest:{name}")
        pipeline.hset(f"{_KEY}:sent", name, now_ms)
        pipeline.zremrangebyscore(f"{_KEY}:found:{name}", 0, now_ms - _REMEMBERED_MS)
        await pipeline.execute()

    async def forget(self, article_ids: Collection[str]) -> int:
        """Articles that were taken down leave what waits to be sent. How many entries."""
        done = 0
        for query in await self.all():
            key, begun_key = f"{_KEY}:waiting:{query.name}", f"{_KEY}:digest:{query.name}"
            raw = await self._client.get(begun_key)
            begun = None if raw is None else orjson.loads(raw)
            first = begun["count"] if begun else 0
            rows = await self._client.lrange(key, 0, -1)
            for place, row in enumerate(rows):
                if orjson.loads(row)["id"] not in article_ids:
                    continue
                done += int(await self._client.lrem(key, 1, row))
                if begun is not None and place < first:
                    begun["count"] -= 1  # the digest that is being sent has one entry less
            if begun is not None and begun["count"]:
                await self._client.set(begun_key, orjson.dumps(begun))
            elif begun is not None:
                await self._client.delete(begun_key)
        return done

    async def claim(self, name: str, ms: int) -> bool:
        """Whether no other process sends the digest of this query now."""
        return bool(await self._client.set(f"{_KEY}:claim:{name}", "1", nx=True, px=ms))

    async def release(self, name: str) -> None:
        await self._client.delete(f"{_KEY}:claim:{name}")


async def matches(
    queries: Sequence[SavedQuery],
    events: Sequence[Event],
    failed: Callable[[str, str], object] = lambda name, why: None,
) -> dict[str, list[Event]]:
    """By the name of the query, which of the events it finds: as the search of the local store
    does, in a small store of these articles alone.

    :param failed: told of a query that cannot be asked (name, reason)
    """
    latest = {event.article.id: event for event in events if event.kind != "gone"}
    found: dict[str, list[Event]] = {}
    if not latest or not queries:
        return found
    with tempfile.TemporaryDirectory(prefix="newscrawler-follow-") as folder:
        store = open_store("", Path(folder))
        try:
            articles: list[Article] = [replace(event.article) for event in latest.values()]
            await store.put(articles)
            await store.refresh()
            for query in queries:
                try:
                    ids = await _all_ids(store, query.query())
                except QueryError as exc:
                    failed(query.name, str(exc))
                    continue
                found[query.name] = [
                    event
                    for event in (latest[i] for i in ids)
                    if event.at.timestamp() * 1000 >= query.since_ms
                ]
        finally:
            await store.close()
    return found


async def _all_ids(store: Any, query: Query) -> list[str]:
    ids: list[str] = []
    while True:
        result = await store.search(replace(query, page=len(ids) // _PAGE))
        ids += [hit.article.id for hit in result.hits]
        if len(result.hits) < _PAGE:
            return ids
