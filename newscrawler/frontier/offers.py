"""The frontier's way in: links are offered, confirmed, and remembered by this worker. Part of queue.Frontier."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import msgpack

from newscrawler.frontier import keys, packing
from newscrawler.frontier.archive import Mover
from newscrawler.frontier.errors import translated
from newscrawler.frontier.scripts import Scripts
from newscrawler.frontier.seen import LocalSeen
from newscrawler.frontier.types import AddResult, FrontierConfig, Lease
from newscrawler.items import Link

T = TypeVar("T", Lease, Link)

#: Most links, and most acks, of one script call: a script stops Redis for everybody while it runs.
#: As many new links, or acks, take some 2 ms, by estimate.
MAX_LINKS = 128
MAX_ACKS = 32


class Offers:
    """What it needs of the frontier whose part it is."""

    config: FrontierConfig
    scripts: Scripts
    local: LocalSeen
    mover: Mover | None

    async def add(self, links: Sequence[Link]) -> AddResult:
        """Offers links, one round trip per shard (and per MAX_LINKS of them)."""
        result = AddResult()
        by_shard = self._by_shard(links) if self.config.shards > 1 else {0: list(links)}
        for shard, batch in by_shard.items():
            for start in range(0, len(batch), MAX_LINKS):
                result.merge(await self._add(shard, batch[start : start + MAX_LINKS]))
        return result

    async def _add(self, shard: int, links: Sequence[Link], *, moved: bool = False) -> AddResult:
        groups, order = packing.group_links(links, moved=moved)
        letters = await self._offer(shard, groups)
        result = self._confirmed(order, letters)
        if b"?" in letters:
            result.merge(await self._ask_archive(shard, order, letters))
        return result

    async def _offer(self, shard: int, groups: list[list[Any]], archived: bytes = b"") -> bytes:
        with translated():
            letters: bytes = await self.scripts.run(
                "add", keys.prefix(shard), msgpack.packb(groups, use_bin_type=False), archived
            )
        return letters

    async def _ask_archive(self, shard: int, order: Sequence[Link], letters: bytes) -> AddResult:
        """The filter knows these (letter ?), and no record in Redis does: offered again with what the archive says.

        :raises FrontierUnavailable: the archive does not answer; the links are to be offered again
        """
        assert self.mover is not None
        links = [link for link, letter in zip(order, letters, strict=True) if letter == ord("?")]
        archived = await self.mover.look([link.url_id for link in links])
        groups, order = packing.group_links(links, asked=True)
        return self._confirmed(order, await self._offer(shard, groups, msgpack.packb(archived, use_bin_type=False)))

    def _confirmed(self, links: Sequence[Link], letters: bytes) -> AddResult:
        """``letters``: of all links, or of the first ones where the script stopped to have the archive asked."""
        result = AddResult(added=letters.count(b"a"), seen=letters.count(b"s"))
        add = self.local.add
        for link, letter in zip(links, letters.decode(), strict=False):
            if letter in "asd" and not link.revisit:
                add(link.url)
            if letter not in "as?":
                reason = packing.REFUSALS[letter]
                result.refused[reason] = result.refused.get(reason, 0) + 1
        return result

    def seen_local(self, url: str, link: Link | None = None, parent: bytes | None = None, depth: int = 0) -> bool:
        """True: this canonical URL need not be offered. Never ask for ``revisit`` links.

        :param link: what would be offered, under ``parent`` and ``depth``: only with it the whole filter is asked, as
            its hits are verified later, see :class:`LocalSeen`
        """
        return self.local.knows(url, link, parent, depth)

    def note_seen(self, url: str) -> None:
        """The caller knows from elsewhere that the frontier has this canonical URL."""
        self.local.add(url)

    def _by_shard(self, items: Sequence[T]) -> dict[int, list[T]]:
        found: dict[int, list[T]] = {}
        for item in items:
            found.setdefault(self._shard(item.domain), []).append(item)
        return found

    def _shard(self, domain: str) -> int:
        return keys.shard_of(domain, self.config.shards)
