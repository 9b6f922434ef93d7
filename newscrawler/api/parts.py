"""The parts that a search and a crawl consist of: whether each answers, its version, its load."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
from collections.abc import Awaitable, Callable
from typing import Any

from newscrawler import __version__
from newscrawler.api.data import DataReader
from newscrawler.crawl import opening
from newscrawler.crawl.fleet import nodes_of_config
from newscrawler.fleet.ledger import Ledger, NodeState
from newscrawler.fleet.nodes import Node, TargetError
from newscrawler.fleet.registry import ProcessMeter, RegistryUnavailable
from newscrawler.frontier.schema import SCHEMA

Row = dict[str, Any]

#: Seconds after which a part that has not answered counts as away.
PART_S = 5.0
WORKER_LOAD = ("cpu_percent", "memory_bytes", "pages_per_s", "leases", "in_flight", "host", "pid")
REDIS_LOAD = (
    "used_memory",
    "maxmemory",
    "connected_clients",
    "instantaneous_ops_per_sec",
    "uptime_in_seconds",
)
NODE_LOAD = ("host", "cores", "free_cores", "memory_bytes", "free_memory_bytes", "crashes")
#: Seconds for a scrapyd: less than a part has, so that one that hangs hides no other.
NODE_S = 4.0
#: Of a data folder, which fills up without a word.
LEAST_FREE_BYTES = 1_000_000_000
_METER = ProcessMeter()


async def parts(reader: DataReader) -> list[Row]:
    """A row for each, those that do not answer too."""
    asked = (_server, _folder, _store, _raw, _redis, _frontier, _workers, _scrapyd)
    found = await asyncio.gather(*(_of(look, reader) for look in asked))
    return [row for rows in found for row in rows]


async def _of(look: Callable[[DataReader], Awaitable[list[Row]]], reader: DataReader) -> list[Row]:
    try:
        async with asyncio.timeout(PART_S):
            return await look(reader)
    except Exception as exc:  # whatever keeps a part from answering is the finding
        name = look.__name__.strip("_").replace("_", " ")
        return [_row(_NAMES.get(name, name), "", f"does not answer: {exc or type(exc).__name__}")]


_NAMES = {
    "store": "article store",
    "raw": "raw pages",
    "folder": "data folder",
    "scrapyd": "scrapyd nodes",
}


def _row(
    part: str, name: str, problem: str = "", load: Row | None = None, version: str = ""
) -> Row:
    return {
        "part": part,
        "name": name,
        "version": version,
        "reachable": not problem,
        "problem": problem,
        "load": load or {},
    }


async def _server(reader: DataReader) -> list[Row]:
    load = {"cpu_percent": _METER.cpu_percent(), "memory_bytes": _METER.memory_bytes()}
    return [_row("server", f"process {os.getpid()}", "", load, __version__)]


async def _folder(reader: DataReader) -> list[Row]:
    settings = reader.deps.settings
    if settings is None:
        return []
    folder = opening.data_dir(settings)
    usage = await asyncio.to_thread(shutil.disk_usage, folder)
    few = f"{usage.free:,} bytes are left on its disk" if usage.free < LEAST_FREE_BYTES else ""
    load = {"free_bytes": usage.free, "total_bytes": usage.total}
    return [{**_row("data folder", str(folder), few, load), "reachable": True}]


async def _store(reader: DataReader) -> list[Row]:
    store = reader.deps.store
    name = type(store).__name__
    stats, problem = await reader.store_stats()
    if problem:
        return [_row("article store", name, problem)]
    stats = dict(stats)
    index = {key: stats.pop(key) for key in list(stats) if key.startswith("index_")}
    meaning = {key: stats.pop(key) for key in list(stats) if key.startswith("vectors")}
    nodes = await _nodes(store)
    version = nodes[0]["version"] if nodes else ""
    if stats.get("kind") == "sqlite":
        import apsw

        version = f"SQLite {apsw.sqlite_lib_version()}"
    rows = [_row("article store", name, "", stats, version), *nodes]
    if index:
        rows.append(_row("search index", "tantivy", str(index.pop("index_problem") or ""), index))
    if meaning:
        model = str(meaning.pop("vectors_model"))
        rows.append(_row("meaning", model, str(meaning.pop("vectors_problem") or ""), meaning))
    return rows


async def _nodes(store: Any) -> list[Row]:
    """Of Elasticsearch."""
    ask = getattr(store, "nodes", None)
    rows = await ask() if ask is not None else []
    return [
        _row("article store node", row.pop("name"), "", row, row.pop("version")) for row in rows
    ]


async def _raw(reader: DataReader) -> list[Row]:
    raw = reader.deps.raw
    if raw is None:
        return []
    settings = reader.deps.settings
    place = (settings.get("RAW_STORE") if settings is not None else "") or "DATA_DIR/warc"
    return [_row("raw pages", str(place).rpartition("@")[2])]


async def _redis(reader: DataReader) -> list[Row]:
    registry = reader.deps.registry
    if registry is None:
        return [_row("redis", "", reader.deps.redis_error or "no Redis")]
    client: Any = registry.client
    info = await client.info()
    # A cluster answers for each node by its name.
    nodes = {"": info} if "redis_version" in info else info
    return [
        _row(
            "redis",
            name,
            "",
            {key: node[key] for key in REDIS_LOAD if key in node},
            str(node.get("redis_version", "")),
        )
        for name, node in nodes.items()
    ]


async def _frontier(reader: DataReader) -> list[Row]:
    counts, problem = await reader.counts()
    shown = ("queued", "leased", "waiting", "quarantined")
    load = {name: value for name, value in counts.items() if name in shown}
    return [_row("frontier", "queue of the fleet", problem, load, f"schema {SCHEMA}")]


async def _workers(reader: DataReader) -> list[Row]:
    workers, problem = await reader.workers()
    if problem:
        return [_row("workers", "", problem)]
    rows = []
    for row in workers:
        silent = "" if row["alive"] else f"silent for {row['age_s']:.0f} s"
        load = {name: value for name, value in row.items() if name in WORKER_LOAD}
        rows.append(_row("worker", row["id"], silent, load, row.get("version") or ""))
    return rows


async def _scrapyd(reader: DataReader) -> list[Row]:
    """The nodes that scrapy.cfg names here and those that a watch over the fleet has noted. The
    scrapyd of a plain [deploy] is no part before a fleet has used it: that section ships."""
    if reader.deps.settings is None:
        return []
    noted: dict[str, NodeState] = {}
    if reader.deps.registry is not None:
        with contextlib.suppress(RegistryUnavailable):  # the row of Redis says so
            noted = (await Ledger(reader.deps.registry.client, "check").read()).nodes
    named = {n: node for n, node in _configured().items() if n != "default" or n in noted}
    names = sorted({*named, *noted})
    return await asyncio.gather(*(_node(n, named.get(n), noted.get(n)) for n in names))


def _configured() -> dict[str, Node]:
    try:
        return nodes_of_config()
    except TargetError:  # a page without a fleet has no scrapy.cfg of nodes
        return {}


async def _node(name: str, node: Node | None, noted: NodeState | None) -> Row:
    load: Row = {}
    if noted is not None:
        load = {key: getattr(noted, key) for key in NODE_LOAD}
    if node is None:
        return _row("scrapyd node", name, "the scrapy.cfg of this server does not name it", load)
    try:
        async with asyncio.timeout(NODE_S):
            view = await asyncio.to_thread(node.view)
    except TimeoutError:
        return _row("scrapyd node", name, f"does not answer within {NODE_S:g} s", load)
    load |= {"running": len(view.running), "pending": len(view.pending)}
    return _row("scrapyd node", name, view.error, load, view.versions[-1] if view.versions else "")
