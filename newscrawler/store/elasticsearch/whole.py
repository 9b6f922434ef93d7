"""An Elasticsearch store as a whole: walked, compared, inspected."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

from newscrawler.store import codec
from newscrawler.store.base import Headline, Kept, State
from newscrawler.store.elasticsearch import query as dsl
from newscrawler.store.elasticsearch.connection import Server

_BATCH = 200
#: Ids of old versions of one request; ids of documents of one request.
_BUCKETS, _LOOKED_AT = 1_000, 1_000
_NAMED = 3
_KEEP_ALIVE = "5m"


async def view(server: Server, index: str, body: dict[str, Any]) -> AsyncIterator[list[Any]]:
    """Every hit of ``body``, in batches, as the index is now."""
    await server.refresh(index)
    opened = await server.ask(lambda es: es.open_point_in_time(index=index, keep_alive=_KEEP_ALIVE))
    asked = body | {
        "sort": [{"_shard_doc": "asc"}],
        "pit": {"id": opened["id"], "keep_alive": _KEEP_ALIVE},
    }
    try:
        while hits := await server.hits(asked):
            yield hits
            asked["search_after"] = hits[-1]["sort"]
    finally:
        await server.ask(lambda es: es.close_point_in_time(id=opened["id"]))


async def walk(server: Server) -> AsyncIterator[Kept]:
    body = {"size": _BATCH, "_source": ["data", "version", "gone", "digest"]}
    async for hits in view(server, server.index, body):
        for hit in hits:
            source = hit["_source"]
            article = codec.from_dict(
                source["data"], version=source["version"], cluster=None, gone=source["gone"]
            )
            yield Kept(article, bytes.fromhex(source["digest"]))


async def states(server: Server, ids: Sequence[str]) -> dict[str, State]:
    found = await server.look(server.index, list(ids), ["version", "gone", "digest"])
    return {
        doc["_id"]: State(
            doc["_source"]["version"],
            doc["_source"]["gone"],
            bytes.fromhex(doc["_source"]["digest"]),
        )
        for doc in found
    }


async def headlines(server: Server, after: datetime, before: datetime) -> list[Headline]:
    span = {"range": {"at": {"gte": codec.ms(after), "lt": codec.ms(before)}}}
    body = {
        "size": _LOOKED_AT,
        "_source": ["title", "data.title", "data.site", "at"],
        "query": {"bool": {"filter": [{"term": {"gone": False}}, span]}},
    }
    found = []
    async for hits in view(server, server.index, body):
        for hit in hits:
            source = hit["_source"]
            data = dsl.with_data(source)["data"]
            at = datetime.fromtimestamp(source["at"] / 1000, UTC)
            found.append(Headline(hit["_id"], data["site"], data.get("title", ""), at))
    return sorted(found, key=lambda one: one.at)


async def inspect(server: Server) -> list[str]:
    older = await _older_versions(server)
    changed: dict[str, int] = {}
    body = {"size": _LOOKED_AT, "_source": ["version"], "query": {"range": {"version": {"gt": 1}}}}
    async for hits in view(server, server.index, body):
        changed |= {hit["_id"]: hit["_source"]["version"] for hit in hits}
    lines: list[str] = []
    unknown = [i for i in older if i not in changed]
    stored: set[str] = set()
    for at in range(0, len(unknown), _LOOKED_AT):
        stored |= set(await states(server, unknown[at : at + _LOOKED_AT]))
    _add(lines, "older versions belong to no article", (i for i in unknown if i not in stored))
    _add(
        lines,
        "articles lack some of their older versions",
        (i for i, version in changed.items() if older.get(i, 0) < version - 1),
    )
    unreadable = await server.search(
        {
            "size": 0,
            "track_total_hits": True,
            "query": {
                "bool": {
                    "must_not": [{"exists": {"field": "title"}}, {"exists": {"field": "content"}}]
                }
            },
        }
    )
    if many := unreadable["hits"]["total"]["value"]:
        lines.append(
            f"{many:,} documents are of an earlier schema, which other programs cannot read:"
            " scrapy store migrate"
        )
    return lines


async def _older_versions(server: Server) -> dict[str, int]:
    """Id of an article -> how many older versions of it are kept."""
    await server.refresh(server.old_versions)
    composite: dict[str, Any] = {
        "size": _BUCKETS,
        "sources": [{"id": {"terms": {"field": "id"}}}],
    }
    found: dict[str, int] = {}
    while True:
        body = {"size": 0, "aggs": {"of": {"composite": composite}}}
        answer = await server.ask(
            lambda es: es.search(index=server.old_versions, body=body)  # noqa: B023
        )
        buckets = answer["aggregations"]["of"]["buckets"]
        if not buckets:
            return found
        found |= {b["key"]["id"]: b["doc_count"] for b in buckets}
        composite["after"] = answer["aggregations"]["of"]["after_key"]


def _add(lines: list[str], text: str, ids: Iterable[str]) -> None:
    if found := list(ids):
        named = ", ".join(found[:_NAMED])
        lines.append(f"{len(found):,} {text}: {named}{', ...' * (len(found) > _NAMED)}")
