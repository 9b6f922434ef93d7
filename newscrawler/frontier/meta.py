"""What must not change under a filled frontier: the schema of its records, its number of shards."""

from __future__ import annotations

from typing import Any

from newscrawler.frontier import keys, records
from newscrawler.frontier.operator import Operator
from newscrawler.frontier.scripts import Scripts
from newscrawler.frontier.types import FrontierRefused


async def check(client: Any, shards: int, scripts: Scripts) -> None:
    """:raises FrontierRefused: it was filled with another number of shards, or by a newer version"""
    meta = await client.hgetall(keys.META)
    wanted: dict[Any, Any] = {b"schema": str(records.SCHEMA).encode(), b"shards": str(shards).encode()}
    if not meta:
        await client.hset(keys.META, mapping=wanted)
        return
    if int(meta[b"schema"]) > records.SCHEMA:
        raise FrontierRefused(
            f"the frontier was written by a newer version (schema {meta[b'schema'].decode()}, "
            f"this one reads {records.SCHEMA}); update this worker"
        )
    if meta[b"shards"] != wanted[b"shards"]:
        counts = await Operator(client, int(meta[b"shards"]), scripts).counts()
        if counts.queued + counts.waiting + counts.leased:
            raise FrontierRefused(
                f"FRONTIER_SHARDS is {shards}, but the frontier was filled with {meta[b'shards'].decode()}; "
                "set it back, or purge the frontier first"
            )
        await client.hset(keys.META, mapping=wanted)
