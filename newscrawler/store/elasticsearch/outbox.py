"""The outbox of an Elasticsearch index: the documents themselves.

There are no transactions, so an event cannot be a document beside the article's. But each write has
a sequence number, which a shard gives out in order, and says up to which number nothing is missing
(its global checkpoint): the documents between a cursor and the checkpoint are what has changed. A
document that is written again before anybody looked brings its earlier events along in ``before``,
and is found by their sequence numbers; their texts are in the index of old versions.

Cursors, dead letters and the claim of the process that delivers are documents of one small index
(notes.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any, TypedDict

import orjson

from newscrawler.store import codec
from newscrawler.store.base import StoreUnavailable
from newscrawler.store.elasticsearch.connection import Server
from newscrawler.store.elasticsearch.notes import CLAIM_S, Notes
from newscrawler.store.events import Batch, DeadLetter, Event, Kind, event_id

#: Of an index that a cursor does not know (the articles were copied into a new one): what was
#: stored since the cursor's time, and so much before, is told again, ms.
_OVERLAP_MS = 600_000
#: Earlier events that a document brings along.
_MOST_BEFORE = 500
#: Documents that were written again, of which earlier events are read at once.
_MOST_AGAIN = 1_000
_FIELDS = ["data", "version", "gone", "stored", "before"]


class Before(TypedDict):
    """An event of an article, in its document."""

    kind: Kind
    version: int
    at: int  # ms
    seq: int  # sequence number of the write


def brought_along(doc: dict[str, Any]) -> dict[str, Any]:
    """The fields of a document's next state that tell of its earlier events."""
    events = _events_of(doc)
    return {"before": events, "before_seqs": [one["seq"] for one in events]}


def _events_of(doc: dict[str, Any]) -> list[Before]:
    """Those of a document, its own last."""
    source = doc["_source"]
    own = Before(
        kind=_kind(source), version=source["version"], at=source["stored"], seq=doc["_seq_no"]
    )
    return [*(source.get("before") or []), own][-_MOST_BEFORE:]


def _kind(source: dict[str, Any]) -> Kind:
    if source["gone"]:
        return "gone"
    return "new" if source["version"] == 1 else "updated"


class _Position:
    """Per shard ("<uuid of the index>/<number>") the last sequence number that was told.

    An index that the articles were copied into has numbers of its own: up to its checkpoint when it
    was first seen, events go by their time (``copied``: checkpoint and ms).
    """

    def __init__(self, text: str) -> None:
        known = orjson.loads(text)
        self.ms: int = known["ms"]
        self.shards: dict[str, int] = known["shards"]
        self.copied: dict[str, tuple[int, int]] = known.get("copied", {})

    def text(self) -> str:
        parts = {"ms": self.ms, "shards": self.shards, "copied": self.copied}
        return orjson.dumps(parts).decode()

    def since_ms(self, shard: str, checkpoint: int) -> int | None:
        """The time from which on what is read next is news; None: its number says it."""
        if shard not in self.shards:
            self.copied[shard] = (checkpoint, self.ms - _OVERLAP_MS)
            self.shards[shard] = -1
        end, since_ms = self.copied.get(shard, (-1, 0))
        return since_ms if self.shards[shard] < end else None


class ElasticOutbox:
    """See store.events.Outbox. ``server`` is the store's, which closes it."""

    def __init__(self, server: Server, now_ms: Callable[[], int], claim_s: float = CLAIM_S) -> None:
        self._server = server
        self._now_ms = now_ms
        self._notes = Notes(server, f"{server.index}-events", now_ms, claim_s)

    # ------------------------------------------------------------------ cursors
    async def begin(self, sinks: Sequence[str]) -> None:
        known = await self.cursors()
        new = [name for name in sinks if name not in known]
        if not new:
            return
        shards = {key: checkpoint for key, _, _, checkpoint in await shards_of(self._server)}
        end = _Position(orjson.dumps({"ms": self._now_ms(), "shards": shards}).decode()).text()
        for name in new:
            await self._notes.write(f"cursor:{name}", {"sink": name, "position": end}, "cursor", 1)

    async def cursors(self) -> dict[str, str]:
        found = await self._notes.all("cursor")
        return {d["_source"]["body"]["sink"]: d["_source"]["body"]["position"] for d in found}

    async def move(self, sink: str, position: str) -> None:
        """:raises StoreUnavailable: another process delivers as well"""
        found = await self._notes.get(f"cursor:{sink}")
        if found is None:
            return
        body = {"sink": sink, "position": position}
        if not await self._notes.write(f"cursor:{sink}", body, "cursor", found["_version"] + 1):
            raise StoreUnavailable(f"{self._server.name}: another process tells events as well")

    # ------------------------------------------------------------------ events
    async def after(self, position: str, limit: int) -> Batch:
        at = _Position(position)
        shards = await shards_of(self._server)
        if any(checkpoint > at.shards.get(key, -1) for key, _, _, checkpoint in shards):
            await self._server.ask(lambda es: es.indices.refresh(index=[self._server.index]))
        started = self._now_ms()
        events: list[Event] = []
        for key, index, number, checkpoint in shards:
            since_ms = at.since_ms(key, checkpoint)
            if checkpoint <= at.shards[key]:
                continue
            shard = _Shard(self._server, index, number, since_ms)
            if since_ms is not None:  # what is written behind it meanwhile has its numbers
                checkpoint = min(checkpoint, at.copied[key][0])
            found, at.shards[key] = await shard.after(at.shards[key], checkpoint, limit)
            events += found
            if len(events) >= limit:
                return Batch(events, at.text())
        if events:
            at.ms = started
        return Batch(events, at.text())

    # ------------------------------------------------------------------ the claim
    async def hold(self) -> bool:
        return await self._notes.hold()

    async def close(self) -> None:
        """Lets go of the claim, so that nobody has to wait for its end."""
        await self._notes.let_go()

    # ------------------------------------------------------------------ dead letters
    async def keep(self, letters: Sequence[DeadLetter]) -> None:
        """:raises StoreUnavailable: a dead letter is refused"""
        bodies = {
            _dead_letter_id(x): (
                x.refused_ms,
                {name: getattr(x, name) for name in DeadLetter.__slots__},
            )
            for x in letters
        }
        for status, reason in await self._notes.write_all(bodies, "letter"):
            if status >= 300:
                raise StoreUnavailable(f"{self._server.name}: a dead letter is refused: {reason}")

    async def dead_letters(self) -> list[DeadLetter]:
        return [DeadLetter(**d["_source"]["body"]) for d in await self._notes.all("letter")]

    async def read(self, letter: DeadLetter) -> Event | None:
        docs = await self._server.look(self._server.index, [letter.article_id], ["data", "version"])
        if docs and docs[0]["_source"]["version"] != letter.version:
            docs = await self._server.look(
                self._server.old_versions, [f"{letter.article_id}@{letter.version}"], ["data"]
            )
        if not docs:
            return None
        return _event(docs[0]["_source"]["data"], letter.kind, letter.version, letter.at_ms)

    async def forget(self, letters: Sequence[DeadLetter]) -> None:
        await self._notes.forget([_dead_letter_id(x) for x in letters])

    async def tidy(self, sinks: Sequence[str]) -> None:
        """Nothing is kept for the events alone."""


async def shards_of(server: Server) -> list[tuple[str, str, str, int]]:
    """Key, index, number and global checkpoint of each shard of the articles."""
    stats = await server.ask(
        lambda es: es.indices.stats(index=server.index, metric="docs", level="shards")
    )
    found = []
    for name, index in stats["indices"].items():
        for number, copies in index["shards"].items():
            primary = next((c for c in copies if c["routing"]["primary"]), copies[0])
            checkpoint = primary["seq_no"]["global_checkpoint"]
            found.append((f"{index['uuid']}/{number}", name, number, checkpoint))
    return sorted(found)


def _dead_letter_id(letter: DeadLetter) -> str:
    return f"letter:{letter.sink}:{letter.event_id}"


def _event(data: dict[str, Any], kind: Kind, version: int, at_ms: int) -> Event:
    article = codec.from_dict(data, version=version, cluster=None, gone=kind == "gone")
    return Event(kind, version, datetime.fromtimestamp(at_ms / 1000, UTC), article)


class _Shard:
    """:param since_ms: only of what was stored since then; None = all"""

    def __init__(self, server: Server, index: str, number: str, since_ms: int | None) -> None:
        self._server = server
        self._index, self._number = index, number
        self._since_ms = since_ms

    async def after(self, told: int, checkpoint: int, limit: int) -> tuple[list[Event], int]:
        """The next events, and the sequence number up to which they are all."""
        docs = await self._search([{"range": {"_seq_no": {"gt": told, "lte": checkpoint}}}], limit)
        end = docs[-1]["_seq_no"] if len(docs) >= limit else checkpoint
        while True:
            # What stood in the span as well and has been written again: behind it now.
            again = await self._search(
                [
                    {"range": {"before_seqs": {"gt": told, "lte": end}}},
                    {"range": {"_seq_no": {"gt": end}}},
                ],
                _MOST_AGAIN,
            )
            if len(again) < _MOST_AGAIN or end <= told + 1:
                break
            end = told + (end - told) // 2
        found: dict[str, tuple[int, dict[str, Any], Before]] = {}
        for doc in (*docs, *again):
            for one in _events_of(doc):
                if self._is_news(one, doc, told, end):
                    name = event_id(doc["_id"], one["version"], one["kind"])
                    found.setdefault(name, (one["seq"], doc, one))
        wanted = list(found.values())
        if self._since_ms is None:  # else earlier numbers are of another index
            wanted.sort(key=lambda each: each[0])
        return await self._read([(doc, one) for _, doc, one in wanted]), end

    def _is_news(self, event: Before, doc: dict[str, Any], told: int, end: int) -> bool:
        if self._since_ms is None:
            return told < event["seq"] <= end
        return event["at"] >= self._since_ms and doc["_seq_no"] <= end

    async def _search(self, conditions: list[dict[str, Any]], size: int) -> list[dict[str, Any]]:
        if self._since_ms is not None:
            conditions = [*conditions, {"range": {"stored": {"gte": self._since_ms}}}]
        body = {
            "size": size,
            "seq_no_primary_term": True,
            "_source": _FIELDS,
            "query": {"bool": {"filter": conditions}},
            "sort": [{"_seq_no": "asc"}],
        }
        where = f"_shards:{self._number}"
        return await self._server.hits(body, index=self._index, preference=where)

    async def _read(self, wanted: Sequence[tuple[dict[str, Any], Before]]) -> list[Event]:
        old_ids = [
            f"{doc['_id']}@{one['version']}"
            for doc, one in wanted
            if one["version"] != doc["_source"]["version"]
        ]
        found = await self._server.look(
            self._server.old_versions, list(dict.fromkeys(old_ids)), ["data"]
        )
        old = {d["_id"]: d["_source"]["data"] for d in found}
        events = []
        for doc, one in wanted:
            data = old.get(f"{doc['_id']}@{one['version']}", doc["_source"]["data"])
            events.append(_event(data, one["kind"], one["version"], one["at"]))
        return events
