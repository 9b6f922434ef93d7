"""Which page links to which, as the crawl reads them: noted in Redis, for the fleet and the API.

A page is a field of its site's hash, its value the time, the address, the title and five bytes for
each link; what it linked to at an earlier visit is forgotten. A site keeps LINK_GRAPH_PAGES pages;
above them the oldest of ten random ones goes, as in Redis' own eviction.

    {links}:sites     set   site ids that have a hash
    {links}:s:<site>  hash  first bytes of the page's url id -> when, address, title, ids of links
"""

from __future__ import annotations

import math
import struct
import time
from collections import Counter, deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from redis.asyncio import Redis

from newscrawler.frontier.errors import translated
from newscrawler.frontier.taken import URL, Taken
from newscrawler.items import Link
from newscrawler.web.urls import domain_of

SITES = "{links}:sites"
#: Bytes of a url id: of 2,000 pages with 50 links one in ten thousand sites has a wrong line.
ID_BYTES = 5
#: Links of one page; titles and addresses are cut here, bytes.
MOST_LINKS, MOST_TITLE, MOST_URL = 300, 120, 500
#: Seconds between two writes of a worker, and pages that are written at once at the latest.
FLUSH_S, FLUSH_PAGES = 1.0, 200
_HEAD = struct.Struct(">IBH")  # when, bytes of the title, bytes of the address
#: The last second that the head can write (2106): a clock that is simulated may be beyond it.
_LAST_S = 2**32 - 1


def site_key(site: str) -> str:
    return f"{{links}}:s:{site}"


def short(url_id: bytes) -> bytes:
    return url_id[:ID_BYTES]


@dataclass(slots=True)
class PageLinks:
    """A page and what it linked to when it was last read."""

    id: bytes
    url: str
    title: str
    when_s: int
    to: list[bytes] = field(default_factory=list)


def pack(when_s: int, url: str, title: str, links: Iterable[Link]) -> bytes:
    name = title.encode("utf-8", "replace")[:MOST_TITLE]
    address = url.encode("utf-8", "replace")[:MOST_URL]
    ids = [link.url_id[:ID_BYTES] for link in links]
    head = _HEAD.pack(min(max(when_s, 0), _LAST_S), len(name), len(address))
    return b"".join([head, name, address, *ids[:MOST_LINKS]])


def unpack(page_id: bytes, data: bytes) -> PageLinks:
    when_s, name, address = _HEAD.unpack_from(data)
    at = _HEAD.size
    title = data[at : at + name].decode("utf-8", "ignore")
    url = data[at + name : at + name + address].decode("utf-8", "ignore")
    start = at + name + address
    to = [data[i : i + ID_BYTES] for i in range(start, len(data), ID_BYTES)]
    return PageLinks(page_id, url, title, when_s, to)


class LinkNotes:
    """What a worker found, written together.

    :param pages: of a site that are kept; 0 = nothing is noted
    :param taken: what was taken down is not noted; None: nothing was taken down
    """

    def __init__(self, client: Redis, pages: int, taken: Taken | None = None) -> None:
        self.client: Any = client
        self.pages = pages
        self._taken = taken
        self._found: dict[str, dict[bytes, bytes]] = {}  # site -> url id -> packed page
        self._count = 0
        self._next = 0.0

    def note(
        self, site: str, url_id: bytes, url: str, title: str, links: Iterable[Link], now_s: int
    ) -> None:
        if self.pages:
            page = pack(now_s, url, title, links)
            self._found.setdefault(site, {})[url_id] = page
            self._count += 1

    async def flush(self, *, is_last: bool = False) -> None:
        """Writes what is due. What cannot be written now is dropped: the next visit notes it again.

        :raises FrontierUnavailable: Redis does not answer
        """
        is_due = time.monotonic() >= self._next or self._count >= FLUSH_PAGES or is_last
        if not self._count or not is_due:
            return
        found, self._found, self._count = self._found, {}, 0
        self._next = time.monotonic() + FLUSH_S
        found = await self._not_taken_down(found)
        if not found:
            return
        pipe = self.client.pipeline(transaction=False)
        pipe.sadd(SITES, *found)
        for site, pages in found.items():
            fields = {short(url_id): page for url_id, page in pages.items()}
            pipe.hset(site_key(site), mapping=fields)
            pipe.hlen(site_key(site))
        with translated():
            answers = await pipe.execute()
            for site, size in zip(found, answers[2::2], strict=True):
                await self._trim(site_key(site), size - self.pages)

    async def _not_taken_down(
        self, found: dict[str, dict[bytes, bytes]]
    ) -> dict[str, dict[bytes, bytes]]:
        """Without pages that were in flight when they were taken down, and sites that have no
        other. Asked just before they are written: what is written in between is found by the look
        that ends a take-down."""
        if self._taken is None or not await self._taken.has_any():
            return found
        named = [(site, url_id) for site, pages in found.items() for url_id in pages]
        asked = [
            (f"{URL}{url_id.hex()}", domain_of(unpack(url_id, found[site][url_id]).url))
            for site, url_id in named
        ]
        for place in await self._taken.which(asked):
            site, url_id = named[place]
            del found[site][url_id]
        return {site: pages for site, pages in found.items() if pages}

    async def _trim(self, key: str, over: int) -> None:
        """Drops the oldest of ten times as many, drawn at random."""
        most = min(over, FLUSH_PAGES)
        if most > 0:
            sample = await self.client.hrandfield(key, 10 * most, withvalues=True)
            pairs = sorted(
                zip(sample[::2], sample[1::2], strict=True), key=lambda pair: pair[1][:4]
            )
            await self.client.hdel(key, *(page_id for page_id, _ in pairs[:most]))


# ---------------------------------------------------------------- reading
async def pages_of(client: Any, site: str) -> dict[bytes, PageLinks]:
    with translated():
        raw = await client.hgetall(site_key(site))
    return {page_id: unpack(page_id, data) for page_id, data in raw.items()}


async def sites_of(client: Any) -> list[str]:
    with translated():
        return sorted(name.decode() for name in await client.smembers(SITES))


async def linking_to(client: Any, url_id: bytes, most: int) -> list[PageLinks]:
    """Pages of all sites that link to a URL, last read first. Reads every site's hash: some 100 ms
    for 33 full ones."""
    wanted = short(url_id)
    found: list[PageLinks] = []
    for site in await sites_of(client):
        with translated():
            raw = await client.hgetall(site_key(site))
        found += [
            page
            for page_id, data in raw.items()
            if wanted in data  # most have it nowhere: only those that do are taken apart
            and wanted in (page := unpack(page_id, data)).to
        ]
    return sorted(found, key=lambda page: -page.when_s)[:most]


async def forget(client: Any, url_ids: Iterable[bytes]) -> int:
    """Pages that were taken down, and the links that lead to them. How many pages there were."""
    gone = {short(url_id) for url_id in url_ids}
    done = 0
    for site in await sites_of(client):
        key = site_key(site)
        with translated():
            raw = await client.hgetall(key)
            done += await client.hdel(key, *gone) if gone else 0
        changed = {
            page_id: _without(data, gone)
            for page_id, data in raw.items()
            if page_id not in gone and any(one in data for one in gone)
        }
        changed = {page_id: data for page_id, data in changed.items() if data != raw[page_id]}
        if changed:
            with translated():
                await client.hset(key, mapping=changed)
    return done


def _without(data: bytes, gone: set[bytes]) -> bytes:
    _, name, address = _HEAD.unpack_from(data)
    start = _HEAD.size + name + address
    ids = (data[i : i + ID_BYTES] for i in range(start, len(data), ID_BYTES))
    return data[:start] + b"".join(one for one in ids if one not in gone)


@dataclass(slots=True)
class Node:
    id: str  # hex of the first bytes of its url id
    url: str
    title: str
    depth: int  # links from a root
    links_in: int  # pages of the graph's sites that link to it
    x: float = 0.0
    y: float = 0.0


@dataclass(slots=True)
class Graph:
    nodes: list[Node]
    edges: list[tuple[int, int]]  # places in nodes
    left_out: int  # nodes within depth that the limit left out


def graph(
    pages: Mapping[bytes, PageLinks], roots: Iterable[bytes], depth: int, limit: int
) -> Graph:
    """The pages within ``depth`` links of the roots; above ``limit`` those with most in-links. Only
    pages that were read: of others no address is known."""
    links_in = Counter(to for page in pages.values() for to in set(page.to) if to != page.id)
    depths = _depths(pages, roots, depth)
    chosen = sorted(depths, key=lambda one: (depths[one] > 0, -links_in[one], depths[one]))[:limit]
    place = {page_id: number for number, page_id in enumerate(chosen)}
    nodes = [
        Node(one.hex(), pages[one].url, pages[one].title, depths[one], links_in[one])
        for one in chosen
    ]
    edges = sorted(
        {(place[one], place[to]) for one in chosen for to in pages[one].to if to in place}
    )
    made = Graph(nodes, [edge for edge in edges if edge[0] != edge[1]], len(depths) - len(chosen))
    lay_out(made)
    return made


def _depths(
    pages: Mapping[bytes, PageLinks], roots: Iterable[bytes], most: int
) -> dict[bytes, int]:
    depths = {root: 0 for root in roots if root in pages}
    waiting = deque(depths)
    while waiting:
        page_id = waiting.popleft()
        if depths[page_id] >= most:
            continue
        for to in pages[page_id].to:
            if to in pages and to not in depths:
                depths[to] = depths[page_id] + 1
                waiting.append(to)
    return depths


def lay_out(made: Graph) -> None:
    """Rings by depth, each as wide as its nodes need, most linked first; a place beside the page
    that leads there. Linear in nodes and edges, and the same each time."""
    rings: dict[int, list[int]] = {}
    for number, node in enumerate(made.nodes):
        rings.setdefault(node.depth, []).append(number)
    leads: dict[int, int] = {}
    for one, to in made.edges:
        if made.nodes[one].depth < made.nodes[to].depth:
            leads.setdefault(to, one)
    angle: dict[int, float] = {}
    radius = 0.0
    for depth in sorted(rings):
        ring = sorted(rings[depth], key=lambda n: (angle.get(leads.get(n, -1), 0.0), n))
        needed = len(ring) * 26 / (2 * math.pi)
        radius = 0.0 if depth == 0 and len(ring) == 1 else max(radius + 70, needed)
        for place, number in enumerate(ring):
            turn = 2 * math.pi * (place + 0.5 * (depth % 2)) / len(ring)
            angle[number] = turn
            node = made.nodes[number]
            node.x = round(radius * math.cos(turn), 1)
            node.y = round(radius * math.sin(turn), 1)
