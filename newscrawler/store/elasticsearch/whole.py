"""An Elasticsearch store as a whole: walked, compared, inspected."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Iterable, Sequence
from datetime import UTC, datetime
from itertools import takewhile
from typing import Any

from newscrawler.store import codec
from newscrawler.store.base import Headline, Kept, VersionState
from newscrawler.store.elasticsearch import query as dsl
from newscrawler.store.elasticsearch.connection import Server

_BATCH = 200
#: Ids of old versions of one request; ids of documents of one request.
_BUCKETS, _LOOKED_AT = 1_000, 1_000
_NAMED = 3
_KEEP_ALIVE = "5m"
#: Settings of an index while it is scrubbed: a single deleted document is worth a merge.
_SCRUBBING = {"index.merge.policy.expunge_deletes_allowed": 0}
#: How often a merge is tried, and seconds between two: the server keeps what was deleted for copies
#: of a shard that may be behind, and lets go of it within some thirty seconds.
_MERGES, _MERGE_PAUSE_S = 60, 2.0


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


async def states(server: Server, ids: Sequence[str]) -> dict[str, VersionState]:
    found = await server.look(server.index, list(ids), ["version", "gone", "digest"])
    return {
        doc["_id"]: VersionState(
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


async def purge(server: Server, ids: Sequence[str]) -> int:
    """Documents of these articles in every index of ours: the one in use, one that a migration has
    left, older versions, vectors, dead letters."""
    stored = await states(server, ids)
    names = await _indices(server)
    # Articles first: a vector that comes later finds that it has none (vectors.Follower).
    for name, by in sorted(names.items(), key=lambda one: "-vectors-" in one[0]):
        query = {"ids": {"values": list(ids)}} if by == "_id" else {"terms": {by: list(ids)}}
        body = {"size": _LOOKED_AT, "_source": False, "query": query}
        gone = [hit["_id"] async for hits in view(server, name, body) for hit in hits]
        await delete(server, name, gone)
    return len(stored)


async def delete(server: Server, name: str, ids: Sequence[str]) -> None:
    for at in range(0, len(ids), _LOOKED_AT):
        lines = [{"delete": {"_id": one}} for one in ids[at : at + _LOOKED_AT]]
        # Called before the loop goes on.
        await server.ask(lambda es: es.bulk(index=name, operations=lines))  # noqa: B023
    await server.refresh(name)


async def prune_versions(server: Server, before: datetime, dry_run: bool) -> int:
    """Of each article the oldest ones that were fetched before."""
    found: dict[str, list[tuple[int, str, bool]]] = {}
    body = {"size": _BATCH, "_source": ["id", "version", "data"], "query": {"match_all": {}}}
    async for hits in view(server, server.old_versions, body):
        for hit in hits:
            source = hit["_source"]
            fetched = source["data"].get("fetched")
            is_old = fetched is not None and datetime.fromisoformat(fetched) < before
            found.setdefault(source["id"], []).append((source["version"], hit["_id"], is_old))
    going = [
        one
        for versions in found.values()
        for _, one, is_old in takewhile(lambda row: row[2], sorted(versions))
        if is_old
    ]
    if going and not dry_run:
        await server.ask(
            lambda es: es.indices.put_mapping(
                index=server.old_versions, meta=dsl.VERSIONS["_meta"] | {"pruned": True}
            )
        )
        await delete(server, server.old_versions, going)
    return len(going)


async def _is_pruned(server: Server) -> bool:
    found = await server.ask(lambda es: es.indices.get_mapping(index=server.old_versions))
    return any(one["mappings"].get("_meta", {}).get("pruned") for one in dict(found).values())


async def scrub(server: Server) -> list[str]:
    """Merges away what was deleted: until then the documents are on the disk."""
    left = []
    for name in await _indices(server):
        await server.ask(
            # Called before the loop goes on.
            lambda es: es.indices.put_settings(index=name, settings=_SCRUBBING)  # noqa: B023
        )
        deleted = 1
        for _ in range(_MERGES):
            deleted = await _merged(server, name)
            if not deleted:
                break
            await asyncio.sleep(_MERGE_PAUSE_S)
        as_before = dict.fromkeys(_SCRUBBING)
        await server.ask(
            # Called before the loop goes on.
            lambda es: es.indices.put_settings(index=name, settings=as_before)  # noqa: B023
        )
        if deleted:
            left.append(f"{name}: {deleted:,} deleted documents are not merged away yet")
    return left


async def _merged(server: Server, name: str) -> int:
    """Deleted documents that are still on the disk after one more merge."""
    await server.ask(lambda es: es.indices.flush(index=name, force=True, wait_if_ongoing=True))
    await server.ask(lambda es: es.indices.forcemerge(index=name, only_expunge_deletes=True))
    await server.ask(lambda es: es.indices.flush(index=name, force=True, wait_if_ongoing=True))
    await server.refresh(name)
    stats = await server.ask(lambda es: es.indices.stats(index=name, metric="docs"))
    return int(stats["_all"]["primaries"]["docs"]["deleted"])


async def _indices(server: Server) -> dict[str, str]:
    """Every index of ours -> the field that has the article's id."""
    found = await server.ask(
        lambda es: es.indices.get(index=f"{server.index}-*", features="aliases")
    )
    base = re.escape(server.index)
    forms = {
        rf"{base}-\d+(-\d+)?": "_id",
        rf"{base}-vectors-[0-9a-f]{{10}}-\d+": "_id",
        rf"{base}-versions-\d+": "id",
    }
    return {name: by for name in found for form, by in forms.items() if re.fullmatch(form, name)}


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
        ()
        if await _is_pruned(server)  # which of them are meant to be missing is not known
        else (i for i, version in changed.items() if older.get(i, 0) < version - 1),
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
            # Called before the loop goes on.
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
