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

#: Most links, acks, ended fetches and leases of one script call: a script stops Redis for everybody while it runs. As many
#: new links take 2 ms, the others together 1; three times that where Redis has just forked and each page it writes is
#: copied first.
MAX_LINKS = 64
MAX_ACKS = 16
MAX_FETCHED = 32
MAX_LEASES = 16
#: Most links that are only looked up in one call: half a millisecond.
MAX_LOOKS = 256
#: Of the links that were offered last, so many are remembered in known_share.
LOOK_BACK = 500


def _even_piece(links: Sequence[Link], most: int) -> tuple[Sequence[Link], Sequence[Link]]:
    """What goes first, and the rest: as few calls as may be, all of them alike, so that the longest is short."""
    calls = -(-len(links) // most) if most else 0
    piece = -(-len(links) // calls) if calls else 0
    return links[:piece], links[piece:]


class Offers:
    """What it needs of the frontier whose part it is."""

    config: FrontierConfig
    scripts: Scripts
    local: LocalSeen
    mover: Mover | None
    #: Known links of a batch from which on it pays to ask first which ones are known, by their ids alone and in a call of
    #: its own (look.lua): a known link that is not packed, sent and unpacked saves some 4 us, the call costs some 130.
    look_from: int = 32
    #: Part of the links offered lately that was known.
    known_share: float = 0.5

    async def add(self, links: Sequence[Link]) -> AddResult:
        """Offers links; one round trip per shard, or two, and one more per MAX_LINKS of them that are not known."""
        result = AddResult()
        by_shard = self._by_shard(links) if self.config.shards > 1 else {0: list(links)}
        for shard, batch in by_shard.items():
            result.merge(await self._add(shard, batch))
        return result

    async def _add(self, shard: int, links: Sequence[Link], *, moved: bool = False) -> AddResult:
        result, doubtful = AddResult(), list[Link]()
        unknown: Sequence[Link] = links
        if not moved and self._pays_to_look(len(links)):
            result, unknown, doubtful = await self._look(shard, links)
        while unknown or doubtful:
            asked, doubtful = doubtful[:MAX_LINKS], doubtful[MAX_LINKS:]
            offered, unknown = _even_piece(unknown, MAX_LINKS - len(asked))
            groups, order = packing.group_links(offered, moved=moved)
            archived = b""
            if asked:
                archived = await self._archived(asked)
                more, more_order = packing.group_links(asked, asked=True)
                groups, order = groups + more, order + more_order
            letters = await self._offer(shard, groups, archived, may_stop=True)
            result.merge(self._confirmed(order, letters))
            if b"?" in letters:
                result.merge(await self._ask_archive(shard, order, letters))
            if len(letters) < len(order):  # the call got late
                unknown = [*order[len(letters) : len(offered)], *unknown]
                doubtful = [*order[max(len(letters), len(offered)) :], *doubtful]
        self._learn(len(links), result.seen)
        return result

    def _pays_to_look(self, links: int) -> bool:
        return links * self.known_share >= self.look_from

    def _learn(self, links: int, known: int) -> None:
        if links:
            self.known_share += (known / links - self.known_share) * min(1.0, links / LOOK_BACK)

    async def _look(self, shard: int, links: Sequence[Link]) -> tuple[AddResult, list[Link], list[Link]]:
        """What is known for certain, the links that are to be offered, and those that the archive is to be asked for.
        What may be admitted though it is known is offered."""
        unknown = [link for link in links if link.revisit]
        doubtful: list[Link] = []
        known: list[str] = []
        rest = [link for link in links if not link.revisit] if unknown else links
        for start in range(0, len(rest), MAX_LOOKS):
            packed, order = packing.look_ups(rest[start : start + MAX_LOOKS])
            with translated():
                data = msgpack.packb(packed, use_bin_type=False)
                letters: bytes = await self.scripts.run("look", keys.prefix(shard), data)
            for link, letter in zip(order, letters.decode(), strict=True):
                if letter == "s":
                    known.append(link.url)
                else:
                    (doubtful if letter == "?" and self.mover is not None else unknown).append(link)
        self.local.add_all(known)
        return AddResult(seen=len(known)), unknown, doubtful

    async def _known(self, shard: int, links: Sequence[Link], result: AddResult) -> set[int]:
        """Which of an ack's links need not go with it: ids of the objects. Counted in ``result``."""
        if not self._pays_to_look(len(links)):
            return set()
        looked, unknown, doubtful = await self._look(shard, links)
        self._learn(len(links), looked.seen)
        result.merge(looked)
        return {id(link) for link in links} - {id(link) for link in unknown + doubtful}

    async def _archived(self, links: Sequence[Link]) -> bytes:
        """What the archive has of them, as the scripts want it.

        :raises FrontierUnavailable: the archive does not answer; the links are to be offered again
        """
        assert self.mover is not None
        found = await self.mover.look([link.url_id for link in links])
        return msgpack.packb(found, use_bin_type=False)  # type: ignore[no-any-return]

    async def _offer(
        self, shard: int, groups: list[list[Any]], archived: bytes = b"", *, may_stop: bool = False
    ) -> bytes:
        """Letters of the links in their order; of the first ones where the call got late and ``may_stop``."""
        with translated():
            data = msgpack.packb(groups, use_bin_type=False)
            letters: bytes = await self.scripts.run("add", keys.prefix(shard), data, archived, int(may_stop))
        return letters

    async def _ask_archive(self, shard: int, order: Sequence[Link], letters: bytes) -> AddResult:
        """The filter knows these (letter ?), and no record in Redis does: offered again with what the archive says.

        :raises FrontierUnavailable: see :meth:`_archived`
        """
        links = [link for link, letter in zip(order, letters, strict=True) if letter == ord("?")]
        archived = await self._archived(links)
        groups, order = packing.group_links(links, asked=True)
        return self._confirmed(order, await self._offer(shard, groups, archived))

    def _confirmed(self, links: Sequence[Link], letters: bytes) -> AddResult:
        """``letters``: of all links, or of the first ones where the script stopped to have the archive asked."""
        result = AddResult(added=letters.count(b"a"), seen=letters.count(b"s"))
        answered = zip(links, letters.decode(), strict=False)
        self.local.add_all([link.url for link, letter in answered if letter in "asd" and not link.revisit])
        for code, reason in packing.REFUSALS.items():
            if n := letters.count(code.encode()):
                result.refused[reason] = result.refused.get(reason, 0) + n
        return result

    def seen_local(self, url: str, link: Link | None = None, parent: bytes | None = None, depth: int = 0) -> bool:
        """True: this canonical URL need not be offered. Never ask for ``revisit`` links.

        :param link: what would be offered, under ``parent`` and ``depth``: only with it the whole filter is asked, as
            its hits are verified later, see :class:`LocalSeen`
        """
        return self.local.knows(url, link, parent, depth)

    def unseen_local(self, links: Sequence[Link], parent: bytes, depth: int, *, verify: bool) -> list[Link]:
        """Of a page's links, each a different URL, those that are to be offered, see :meth:`LocalSeen.unknown`."""
        return self.local.unknown(links, parent, depth, verify=verify)

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
