"""Lists that the sites of a crawl announced: feeds, sitemaps, sections of their menus. Shared by
the fleet, in Redis.

The frontier plans their visits, as those of any list; here stands which they are, so that a report
can name them and a start can offer them again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import msgpack
from redis.asyncio import Redis

from newscrawler.frontier import keys
from newscrawler.frontier.errors import translated
from newscrawler.frontier.layout import Layout
from newscrawler.frontier.scripts import Scripts
from newscrawler.items import Kind

#: Most addresses of a site by kind: a menu has 10 to 60 sections, a page of feeds
#: names one for each.
MOST = {Kind.FEED: 60, Kind.SITEMAP: 20, Kind.SECTION: 80}


@dataclass(frozen=True, slots=True)
class FoundSeed:
    """``via``: the address of the page that named it. ``is_lead``: it shows what is
    new of the whole site."""

    url: str
    kind: Kind
    found_ms: int
    via: str = ""
    is_lead: bool = False


class FoundSeeds:
    """
    :param layout: which shard a domain is in, now
    """

    def __init__(self, client: Redis, layout: Callable[[], Layout]) -> None:
        self.client: Any = client  # answers are bytes, which the stubs do not know
        self.layout = layout
        self.scripts = Scripts(client)

    async def note(self, domain: str, seeds: Sequence[FoundSeed]) -> list[FoundSeed]:
        """Remembers what is not known yet; returns that. ``domain``: of the site's home page.

        :raises FrontierUnavailable: Redis does not answer, or the shards have changed and
            ``layout`` does not know it yet
        """
        if not seeds:
            return []
        layout = self.layout()
        self.scripts.word = layout.word
        rows: list[Any] = []
        for seed in seeds:
            record = msgpack.packb([seed.found_ms, seed.via, seed.is_lead])
            rows += [str(seed.kind), seed.url, record]
        most = {str(kind): number for kind, number in MOST.items()}
        with translated():
            answer = await self.scripts.run(
                "found",
                keys.prefix(layout.of(domain)),
                domain,
                msgpack.packb(rows, use_bin_type=False),
                msgpack.packb(most),
            )
        return [seed for seed, is_new in zip(seeds, answer, strict=True) if is_new]

    async def of(self, domain: str) -> list[FoundSeed]:
        """All of a site, oldest first."""
        key = keys.found(self.layout().of(domain), domain)
        with translated():
            stored: dict[bytes, bytes] = await self.client.hgetall(key)
        seeds = []
        for name, record in stored.items():
            kind, _, url = name.decode().partition(" ")
            found_ms, via, is_lead = msgpack.unpackb(record)
            seeds.append(FoundSeed(url, Kind(kind), found_ms, via, is_lead))
        return sorted(seeds, key=lambda seed: (seed.found_ms, seed.url))
