"""A new index of the articles behind the same alias, while articles are written and searched.

The documents are made again from the stored fields, in the program's own form: words that are not
kept in the documents could not be copied by the server. They carry their external versions, so what
a worker has written meanwhile is never replaced by something older, and a copy that was interrupted
can be begun again.

What is written between two looks is taken over in rounds; when a round finds next to nothing the
alias is moved in one step, and a last round takes over what was written in that moment.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

from newscrawler.store import codec, near_duplicates
from newscrawler.store.base import StoreUnavailable
from newscrawler.store.elasticsearch import query as dsl
from newscrawler.store.elasticsearch.connection import Server

#: Documents of one request.
_BATCH = 200
#: A round starts so much before the one before it began, ms: clocks of workers differ, and a search
#: finds a document up to a second late.
_MARGIN_MS = 120_000
#: So few new documents in a round, or so many rounds, and the alias is moved.
_FEW, _ROUNDS = 50, 6
_KEEP_ALIVE = "5m"
#: Of the old document; the rest is made anew.
_KEPT = ("version", "gone", "cluster", "digest", "stored", "at", "before")


class CannotReindex(StoreUnavailable):
    """The indices are not as this program makes them; the text says which."""


@dataclass(frozen=True, slots=True)
class Reindexed:
    old: str
    new: str
    copied: int  # documents that were written into the new index
    documents: int  # of the new index at the end


class Reindexing:
    """``say`` is told how far it is."""

    def __init__(self, server: Server, now_ms: Callable[[], int], say: Callable[[str], None]):
        self._server, self._now_ms, self._say = server, now_ms, say
        self._alias = server.index

    async def run(self) -> Reindexed:
        await self._server.open()
        old = await self._behind_alias()
        new = await self._target(old)
        self._say(f"{old} -> {new}")
        copied, since, found = 0, 0, _FEW + 1
        for _ in range(_ROUNDS):
            if found <= _FEW:
                break
            began = self._now_ms()
            found = await self._round(old, new, since)
            copied, since = copied + found, began - _MARGIN_MS
        await self._server.refresh(new)  # the first search after the move finds all of it
        actions: list[dict[str, Any]] = [
            {"remove": {"index": old, "alias": self._alias, "must_exist": True}},
            {"remove": {"index": old, "alias": self._server.readers, "must_exist": False}},
            {"add": {"index": new, "alias": self._alias}},
            {"add": {"index": new, "alias": self._server.readers, **dsl.NOT_GONE}},
        ]
        await self._server.ask(lambda es: es.indices.update_aliases(actions=actions))
        self._say(f"{self._alias} is {new} now")
        copied += await self._round(old, new, since)
        await self._server.refresh(new)
        return Reindexed(old, new, copied, await self._documents(new))

    async def _behind_alias(self) -> str:
        found = await self._server.ask(lambda es: es.indices.get_alias(name=self._alias))
        names = sorted(found)
        if len(names) != 1:
            raise CannotReindex(
                f"{self._server.name}: {self._alias} names {len(names)} indices"
                f" ({', '.join(names)}), it must name one"
            )
        return names[0]

    async def _target(self, old: str) -> str:
        """An index of this program's schema that the alias does not name: one that an interrupted
        run has left, or a new one."""
        for name in self._names():
            if name == old:
                continue
            found = await self._server.ask(
                # Called before the loop goes on.
                lambda es: es.indices.get(index=name, ignore_unavailable=True)  # noqa: B023
            )
            if name not in found:
                await self._server.make_from_template(name, {})
                return name
            if not found[name]["aliases"] and not await self._is_left_over(name, old):
                self._say(f"{name} is there already, from a run that did not end: it is completed")
                return name
        raise CannotReindex(f"{self._server.name}: no name is left for a new index")

    async def _is_left_over(self, name: str, old: str) -> bool:
        """Whether ``name`` was left behind by an earlier, finished run: made before the one that is
        in use."""
        created = await self._server.ask(
            lambda es: es.indices.get_settings(index=[name, old], name="index.creation_date")
        )

        def when(of: str) -> int:
            return int(created[of]["settings"]["index"]["creation_date"])

        return when(name) < when(old)

    def _names(self) -> Iterator[str]:
        first = f"{self._alias}-{dsl.SCHEMA}"
        yield first
        for number in count(1):
            if number > 1_000:
                return
            yield f"{first}-{number}"

    # ------------------------------------------------------------------ copying
    async def _round(self, old: str, new: str, since_ms: int) -> int:
        """Everything that was stored at or after ``since_ms``; how much of it was not there yet."""
        await self._server.refresh(old)
        view = await self._server.ask(
            lambda es: es.open_point_in_time(index=old, keep_alive=_KEEP_ALIVE)
        )
        body: dict[str, Any] = {
            "size": _BATCH,
            "_source": ["data", "url", "canonical", *_KEPT],
            "version": True,
            "query": {"range": {"stored": {"gte": since_ms}}},
            "sort": [{"_shard_doc": "asc"}],
            "pit": {"id": view["id"], "keep_alive": _KEEP_ALIVE},
        }
        written = seen = 0
        try:
            while hits := await self._server.hits(body):
                written += await self._copy(hits, new)
                seen += len(hits)
                self._say(f"{seen:,} documents looked at, {written:,} written")
                body["search_after"] = hits[-1]["sort"]
        finally:
            await self._server.ask(lambda es: es.close_point_in_time(id=view["id"]))
        return written

    async def _copy(self, hits: Sequence[dict[str, Any]], new: str) -> int:
        operations: list[dict[str, Any]] = []
        for hit in hits:
            action = {"_id": hit["_id"], "version": hit["_version"], "version_type": "external"}
            operations += [{"index": action}, made_anew(hit["_source"])]
        answers = await self._server.bulk(new, operations)
        for hit, (status, reason) in zip(hits, answers, strict=True):
            if status >= 300 and status != 409:  # 409: it is there, this version or a newer one
                raise CannotReindex(f"{self._server.name}: {hit['_id']} is refused: {reason}")
        return sum(status < 300 for status, _ in answers)

    async def _documents(self, name: str) -> int:
        counted = await self._server.ask(lambda es: es.count(index=name))
        return int(counted["count"])


def made_anew(source: dict[str, Any]) -> dict[str, Any]:
    """A document of today's form of the same article, with what the store has given it."""
    article = codec.from_dict(
        source["data"], version=source["version"], cluster=None, gone=source["gone"]
    )
    bands = near_duplicates.candidate_keys(near_duplicates.shingles_of(article.content))
    made = dsl.document(
        article,
        digest=bytes.fromhex(source["digest"]),
        version=source["version"],
        bands=bands,
        now_ms=source["stored"],
    )
    return made | {name: source[name] for name in _KEPT if name in source}
