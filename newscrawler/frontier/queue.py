"""The frontier of the fleet: what to fetch next, for every worker, in Redis.

One object per worker, one task that uses it. Everything that must be right is done by the scripts
in ``lua/``, each within one shard; here values are packed, calls are ordered so that a crash
between two of them only repeats work, and errors become :class:`FrontierUnavailable`.
docs/frontier.md has the states.
"""

from __future__ import annotations

import logging
import secrets
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import msgpack
from redis.asyncio import Redis

from newscrawler.frontier import keys, packing, records, schema
from newscrawler.frontier.archive import Archive, Mover
from newscrawler.frontier.errors import translated
from newscrawler.frontier.layout import Layout
from newscrawler.frontier.layout import read as read_layout
from newscrawler.frontier.operator import Operator
from newscrawler.frontier.scripts import Scripts
from newscrawler.frontier.seen import LocalSeen
from newscrawler.frontier.taken import Taken
from newscrawler.frontier.types import (
    Ack,
    AddResult,
    Counts,
    DomainPolicy,
    Fetched,
    FrontierConfig,
    FrontierError,
    FrontierGone,
    FrontierRefused,
    FrontierUnavailable,
    Lease,
    Record,
    RobotsAnswer,
    RobotsEntry,
    Step,
    Wanted,
)
from newscrawler.items import Kind, Link, Outcome

__all__ = [
    "Ack",
    "AddResult",
    "Counts",
    "DomainPolicy",
    "Fetched",
    "Frontier",
    "FrontierConfig",
    "FrontierError",
    "FrontierGone",
    "FrontierRefused",
    "FrontierUnavailable",
    "Lease",
    "Record",
    "RobotsAnswer",
    "RobotsEntry",
    "Step",
]

logger = logging.getLogger(__name__)

T = TypeVar("T", Lease, Link)

#: Most links, acks, ended fetches and leases of one script call: a script stops Redis for everybody
#: while it runs. As many new links take 2 ms, the others together 1; three times that where Redis
#: has just forked and each page it writes is copied first.
MAX_LINKS = 64
MAX_ACKS = 16
MAX_FETCHED = 32
MAX_LEASES = 16
#: Most links that are only looked up in one call: half a millisecond.
MAX_LOOKS = 256
#: Of the links that were offered last, so many are remembered in known_share.
LOOK_BACK = 500
#: While a step of `scrapy frontier reshard` is at work.
CLOSED = (
    "domains are being moved to other shards (`scrapy frontier reshard`); if none is at work, start"
    " it again: it goes on where it was killed"
)


def _even_piece(links: Sequence[Link], most: int) -> tuple[Sequence[Link], Sequence[Link]]:
    """What goes first, and the rest: as few calls as may be, all of them alike, so
    that the longest is short."""
    calls = -(-len(links) // most) if most else 0
    piece = -(-len(links) // calls) if calls else 0
    return links[:piece], links[piece:]


class Frontier:
    """One worker's client of the shared frontier.

    :param client: from :func:`newscrawler.frontier.connect`; closed by :meth:`close`
    :param worker: names this process in its leases; a process that restarts under the
        same name frees them
    :param archive: takes the oldest finished records; the same for all of the fleet. None:
        they all stay in Redis
    :param is_dead: whether a worker of another name is known to have ended; its
        leases are freed as well
    """

    #: Known links of a batch from which on it pays to ask first which ones are known, by their ids
    #: alone and in a call of its own (look.lua): a known link that is not packed, sent and unpacked
    #: saves some 4 us, the call costs some 130.
    look_from: int = 32
    #: Part of the links offered lately that was known.
    known_share: float = 0.5

    def __init__(
        self,
        client: Redis,
        config: FrontierConfig,
        worker: str,
        archive: Archive | None = None,
        is_dead: Callable[[str], bool] = lambda worker: False,
    ) -> None:
        self.is_dead = is_dead
        self.client: Any = client  # answers are bytes, which the stubs do not know
        if archive is None:
            config = replace(config, finished_limit=0)
        self.config = config
        self.worker = worker
        #: As the settings have it, until open() has read the one in use.
        self.layout = Layout.of_count(config.shards)
        self.scripts = Scripts(client, packing.config(config))
        self.operator = Operator(client, self.layout, self.scripts, self._layout_changed)
        self.taken = Taken(client, self.layout, self.scripts)
        self.local = LocalSeen(config.local_links, config.local_capacity, config.local_reset_s)
        self.mover: Mover | None = None
        if archive is not None and config.finished_limit > 0:
            share = packing.finished_per_bucket(config)
            self.mover = Mover(self.client, self.scripts, archive, share)
        self._held: dict[int, Lease] = {}  # by fence
        self._poisoned: list[Ack] = []
        self._server_id = ""
        self._is_unsure = (
            False  # a call ended in an error: it may have granted leases that never reached us
        )
        self._turn = 0
        self._totals = [(0, 0, 0)] * config.shards  # queued, waiting, leased of each shard

    # ------------------------------------------------------------------ life
    async def open(self) -> None:
        """Loads the scripts and frees what this worker id, or one that is known to be dead, still
        holds from before.

        :raises FrontierRefused: the frontier was filled with another number of shards
            or by a newer version
        """
        with translated():
            await self._check_meta()
            await self.scripts.load_all()
            await self._is_another_server()
        if self.mover is not None:
            for shard in range(self.layout.shards):
                self.mover.note(shard)  # what a worker that died had not moved
        freed = await self._free(own_held=False, how="lost", is_dead=self.is_dead)
        if freed:
            logger.info(
                "Leases of an earlier run were freed worker=%s leases=%d", self.worker, freed
            )

    async def close(self) -> None:
        """Gives back what is still held, then closes the client. A Redis that
        is away is only logged."""
        held = list(self._held.values())
        try:
            if held:
                await self.give_back(held)
        except FrontierError as exc:
            logger.warning(
                "Leases could not be given back, they run out by themselves error=%s", exc
            )
        finally:
            await self.client.aclose()

    async def _check_meta(self) -> None:
        """What must not change under a filled frontier: the schema of its records,
        its number of shards.

        :raises FrontierRefused: it was filled with another number of shards, or by a newer version
        """
        meta = await self.client.hgetall(keys.META)
        wanted: dict[Any, Any] = {
            b"schema": str(schema.SCHEMA).encode(),
            b"shards": str(self.config.shards).encode(),
        }
        if not meta:
            await self.client.hset(keys.META, mapping=wanted)
            return
        if int(meta[b"schema"]) > schema.SCHEMA:
            raise FrontierRefused(
                f"the frontier was written by a newer version (schema {meta[b'schema'].decode()}, "
                f"this one reads {schema.SCHEMA}); update this worker"
            )
        layout = Layout.of_meta(meta)
        if layout.epoch:
            self._use(layout)  # shards that were changed in use: Redis knows better than settings
            if not layout.is_open:
                self.scripts.is_moved = True
                raise FrontierUnavailable(CLOSED)
            return
        if meta[b"shards"] != wanted[b"shards"]:
            counts = await Operator(self.client, layout, self.scripts).counts()
            if counts.queued + counts.waiting + counts.leased:
                raise FrontierRefused(
                    f"FRONTIER_SHARDS is {self.config.shards}, but the frontier was filled with"
                    f" {layout.shards}; set it back, and change it by `scrapy frontier reshard"
                    f" {self.config.shards}`, or purge the frontier first"
                )
            await self.client.hset(keys.META, mapping=wanted)
            self._use(Layout.of_count(self.config.shards))

    def _use(self, layout: Layout) -> None:
        """From now on. Caps and shares of the archive are those of as many shards."""
        if layout == self.layout:
            return
        self.layout = layout
        self.operator.use(layout)
        self.taken.layout = layout
        config = replace(self.config, shards=layout.shards)
        made = packing.config(config)
        if layout.epoch:
            made["asks_elsewhere"] = True
        self.scripts.configure(made)
        if self.mover is not None:
            self.mover.share = packing.finished_per_bucket(config)
        self._totals = (self._totals + [(0, 0, 0)] * layout.shards)[: layout.shards]

    async def _layout_changed(self) -> None:
        self.scripts.is_moved = True
        await self._settle_layout()

    async def _settle_layout(self) -> None:
        """Before anything that asks for a domain's shard: where a call was refused by its map,
        the new one is read.

        :raises FrontierUnavailable: a step of `scrapy frontier reshard` is at work, or was killed
        """
        if not self.scripts.is_moved:
            return
        with translated():
            layout = await read_layout(self.client)
            if not layout.is_open:
                raise FrontierUnavailable(CLOSED)
            self._use(layout)
            self.scripts.is_moved = False
            self._server_id = ""  # new shards are told which process answers
            await self._is_another_server()

    async def _is_another_server(self) -> bool:
        """Looks which process answers, and tells the shards: after a restart no domain is
        leased before its delay."""
        info = await self.client.info("server")
        server_id = str(info.get("run_id", ""))
        if server_id == self._server_id:
            return False
        for shard in range(self.layout.shards):
            await self.scripts.run("restarted", keys.prefix(shard), server_id)
        self._server_id = server_id
        return True

    # ------------------------------------------------------------------ domains
    async def put_domains(self, policies: Iterable[DomainPolicy]) -> None:
        """Takes over the admin's policy; loading it again changes nothing and opens no gate.

        :raises FrontierRefused: a delay of 0 on the open web, a public domain under a simulated
            clock, a group over several shards
        """
        await self._settle_layout()
        by_shard: dict[int, list[list[Any]]] = {}
        policies = await self.taken.disabled(policies)
        packing.check_groups(policies, self.layout)
        for policy in policies:
            row = packing.policy(policy, loopback_only=self.config.loopback_only)
            by_shard.setdefault(self._shard(policy.domain), []).append(row)
        throttle = self.config.autothrottle_start_ms if self.config.autothrottle else 0
        with translated():
            for shard, rows in by_shard.items():
                for start in range(0, len(rows), MAX_LINKS):
                    batch = msgpack.packb(rows[start : start + MAX_LINKS], use_bin_type=False)
                    refused = await self.scripts.run(
                        "put_domains", keys.prefix(shard), batch, throttle
                    )
                    if refused:
                        raise FrontierRefused(
                            f"the frontier runs on a simulated clock, and {refused.decode()} is not"
                            " on 127.0.0.0/8"
                        )

    async def set_clock(self, factor: float, offset_ms: int | None = None) -> None:
        """now = TIME * factor + offset; ``None`` = the simulated clock starts at the real time.

        :raises FrontierRefused: the frontier is not empty, or a domain is not on loopback
        """
        await self.operator.set_clock(factor, offset_ms)

    # ------------------------------------------------------------------ links
    async def add(self, links: Sequence[Link]) -> AddResult:
        """Offers links; one round trip per shard, or two, and one more per MAX_LINKS of
        them that are not known."""
        await self._settle_layout()
        result = AddResult()
        by_shard = self._by_shard(links) if self.layout.shards > 1 else {0: list(links)}
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
            archived, places = b"", dict[bytes, int]()
            if asked:
                archived, places = await self._archived(shard, asked)
                more, more_order = packing.group_links(asked, asked=True)
                groups, order = groups + more, order + more_order
            statuses = await self._offer(shard, groups, archived, may_stop=True)
            result.merge(self._confirmed(order, statuses))
            n = len(offered)
            await self._taken_over(shard, order[n:], statuses[n:], places)
            if b"?" in statuses:
                answered = order[: len(statuses)]
                result.merge(await self._ask_archive(shard, answered, statuses))
            if len(statuses) < len(order):  # the call got late
                unknown = [*order[len(statuses) : len(offered)], *unknown]
                doubtful = [*order[max(len(statuses), len(offered)) :], *doubtful]
        self._learn(len(links), result.seen)
        return result

    def _pays_to_look(self, links: int) -> bool:
        return links * self.known_share >= self.look_from

    def _learn(self, links: int, known: int) -> None:
        if links:
            self.known_share += (known / links - self.known_share) * min(1.0, links / LOOK_BACK)

    async def _look(
        self, shard: int, links: Sequence[Link]
    ) -> tuple[AddResult, list[Link], list[Link]]:
        """What is known for certain, the links that are to be offered, and those that the archive
        is to be asked for. What may be admitted though it is known is offered."""
        unknown = [link for link in links if link.revisit]
        doubtful: list[Link] = []
        known: list[str] = []
        rest = [link for link in links if not link.revisit]
        for start in range(0, len(rest), MAX_LOOKS):
            packed, order = packing.look_ups(rest[start : start + MAX_LOOKS])
            with translated():
                data = msgpack.packb(packed, use_bin_type=False)
                statuses: bytes = await self.scripts.run("look", keys.prefix(shard), data)
            for link, status in zip(order, statuses.decode(), strict=True):
                if status == "s":
                    known.append(link.url)
                elif status == "?" and (self.mover is not None or self.layout.epoch):
                    doubtful.append(link)
                else:
                    unknown.append(link)
        self.local.add_all(known)
        return AddResult(seen=len(known)), unknown, doubtful

    async def _known(self, shard: int, links: Sequence[Link], result: AddResult) -> set[int]:
        """Which of an ack's links need not go with it: ids of the objects.
        Counted in ``result``."""
        if not self._pays_to_look(len(links)):
            return set()
        looked, unknown, doubtful = await self._look(shard, links)
        self._learn(len(links), looked.seen)
        result.merge(looked)
        return {id(link) for link in links} - {id(link) for link in unknown + doubtful}

    async def _archived(self, shard: int, links: Sequence[Link]) -> tuple[bytes, dict[bytes, int]]:
        """What the archive has of them, or other shards where domains were moved, as the scripts
        want it, and which of these shards has it: see :meth:`_taken_over`.

        :raises FrontierUnavailable: the archive does not answer; the links are to be offered again
        """
        ids = [link.url_id for link in links]
        elsewhere = await self._look_elsewhere(shard, ids) if self.layout.epoch else {}
        found = {i: records.without_file(record) for i, (_, record) in elsewhere.items()}
        missing = [i for i in ids if i not in found]
        if missing and self.mover is not None:
            for i, record in (await self.mover.look(missing)).items():
                found[i] = records.without_file(record) if self.layout.epoch else record
        packed: bytes = msgpack.packb(found, use_bin_type=False)
        return packed, {i: other for i, (other, _) in elsewhere.items()}

    async def _look_elsewhere(
        self, shard: int, ids: Sequence[bytes]
    ) -> dict[bytes, tuple[int, bytes]]:
        """Finished records, which say nothing of their domain, stayed in the shard where they were
        made when their domain went to another. The newest of each and its shard. They are used
        without the number of the raw file, as each shard numbers the files for itself."""
        found: dict[bytes, tuple[int, bytes]] = {}
        for other in range(self.layout.shards):
            if other == shard:
                continue
            with translated():
                pipe = self.client.pipeline(transaction=False)
                for url_id in ids:
                    pipe.hget(*keys.finished(other, url_id))
                answers = await pipe.execute()
            for url_id, data in zip(ids, answers, strict=True):
                if data is None:
                    continue
                known = found.get(url_id)
                if known is None or records.finished_age(known[1]) < records.finished_age(data):
                    found[url_id] = other, data
        return found

    async def _taken_over(
        self, shard: int, links: Sequence[Link], statuses: bytes, places: Mapping[bytes, int]
    ) -> None:
        """Records of other shards by which the domain's own shard has decided are not needed there
        any more: the URL is queued, or its record was copied. Any other one stays: the call ended
        before the link, refused it, or the URL lives on under a domain of the other shard. A crash
        before leaves them in both, which changes nothing.

        :param statuses: of the links in their order, or of the first ones
        :param places: url id -> shard that has the record
        """
        decided = [
            (link.url_id, status)
            for link, status in zip(links, statuses, strict=False)
            if link.url_id in places and status in b"as"
        ]
        if not decided:
            return
        with translated():
            pipe = self.client.pipeline(transaction=False)
            for url_id, _ in decided:
                pipe.hexists(*keys.finished(shard, url_id))
            copied = await pipe.execute()
            for (url_id, status), is_copied in zip(decided, copied, strict=True):
                if is_copied or status == ord("a"):
                    await self.client.hdel(*keys.finished(places[url_id], url_id))

    async def _offer(
        self, shard: int, groups: list[list[Any]], archived: bytes = b"", *, may_stop: bool = False
    ) -> bytes:
        """Letters of the links in their order; of the first ones where the call got
        late and ``may_stop``."""
        with translated():
            data = msgpack.packb(groups, use_bin_type=False)
            statuses: bytes = await self.scripts.run(
                "add", keys.prefix(shard), data, archived, int(may_stop)
            )
        return statuses

    async def _ask_archive(self, shard: int, order: Sequence[Link], statuses: bytes) -> AddResult:
        """The filter knows these (status ?), and no record in Redis does: offered again
        with what the archive says.

        :raises FrontierUnavailable: see :meth:`_archived`
        """
        links = [link for link, status in zip(order, statuses, strict=True) if status == ord("?")]
        archived, places = await self._archived(shard, links)
        groups, order = packing.group_links(links, asked=True)
        statuses = await self._offer(shard, groups, archived)
        result = self._confirmed(order, statuses)
        await self._taken_over(shard, order, statuses, places)
        return result

    def _confirmed(self, links: Sequence[Link], statuses: bytes) -> AddResult:
        """``statuses``: of all links, or of the first ones where the script stopped to have
        the archive asked."""
        result = AddResult(added=statuses.count(b"a"), seen=statuses.count(b"s"))
        answered = zip(links, statuses.decode(), strict=False)
        self.local.add_all(
            [link.url for link, status in answered if status in "asd" and not link.revisit]
        )
        for code, reason in packing.REFUSALS.items():
            if n := statuses.count(code.encode()):
                result.refused[reason] = result.refused.get(reason, 0) + n
        return result

    def seen_local(
        self, url: str, link: Link | None = None, parent: bytes | None = None, depth: int = 0
    ) -> bool:
        """True: this canonical URL need not be offered. Never ask for ``revisit`` links.

        :param link: what would be offered, under ``parent`` and ``depth``: only with it the whole
            filter is asked, as its hits are verified later, see :class:`LocalSeen`
        """
        return self.local.knows(url, link, parent, depth)

    def unseen_local(
        self, links: Sequence[Link], parent: bytes, depth: int, *, verify: bool
    ) -> list[Link]:
        """Of a page's links, each a different URL, those that are to be offered, see
        :meth:`LocalSeen.unknown`."""
        return self.local.unknown(links, parent, depth, verify=verify)

    def note_seen(self, url: str) -> None:
        """The caller knows from elsewhere that the frontier has this canonical URL."""
        self.local.add(url)

    # ------------------------------------------------------------------ bounded crawls
    async def want(
        self, links: Sequence[Link], wanted: Wanted, fresh_from_s: int | None = None
    ) -> dict[bytes, str]:
        """Queues links for a bounded crawl, due or not. Url id -> status of want.lua.

        :param links: each with ``revisit``
        :param fresh_from_s: what was read since, by the frontier's clock, is not fetched again
        """
        await self._settle_layout()
        found: dict[bytes, str] = {}
        for shard, batch in self._by_shard(links).items():
            for start in range(0, len(batch), MAX_LINKS):
                piece = batch[start : start + MAX_LINKS]
                found |= await self._want(shard, piece, wanted, fresh_from_s)
                asked = [link for link in piece if found[link.url_id] == "?"]
                if asked:
                    archived, _ = await self._archived(shard, asked)
                    found |= await self._want(shard, asked, wanted, fresh_from_s, archived)
        return found

    async def _want(
        self,
        shard: int,
        links: Sequence[Link],
        wanted: Wanted,
        fresh_from_s: int | None,
        archived: bytes = b"",
    ) -> dict[bytes, str]:
        groups, order = packing.group_links(links, asked=bool(archived), wanted=True)
        fresh = "" if fresh_from_s is None else fresh_from_s
        with translated():
            statuses: bytes = await self.scripts.run(
                "want",
                keys.prefix(shard),
                msgpack.packb(groups, use_bin_type=False),
                archived,
                wanted.tag,
                fresh,
            )
        pairs = zip(order, statuses.decode(), strict=True)
        return {link.url_id: status for link, status in pairs}

    async def unwant(self, crawl: str, links: Sequence[Link], *, drop_known: bool) -> int:
        """A bounded crawl is over for these: see unwant.lua. How many left the queue."""
        await self._settle_layout()
        n = 0
        for shard, batch in self._by_shard(links).items():
            for start in range(0, len(batch), MAX_LINKS):
                groups: dict[str, list[bytes]] = {}
                for link in batch[start : start + MAX_LINKS]:
                    groups.setdefault(link.domain, []).append(link.url_id)
                packed = msgpack.packb(list(groups.items()), use_bin_type=False)
                with translated():
                    n += await self.scripts.run(
                        "unwant", keys.prefix(shard), crawl, packed, int(drop_known)
                    )
        return n

    # ------------------------------------------------------------------ the round
    async def step(self, k: int, acks: Sequence[Ack] = (), fetched: Sequence[Fetched] = ()) -> Step:
        """Tells what was fetched, acks what is done (with its links), leases up to ``k`` URLs.

        After an error the same acks may be sent again: what had been taken is refused by its fence.
        Shards are asked in turns until ``k`` URLs have come, beside those that are told something;
        with nothing to tell and ``k`` = 0 all of them are, for the counts.
        """
        await self._settle_layout()
        with translated():
            await self._after_error()
        step = Step.empty()
        step.wait_ms = -1
        plan = await self._plan([*self._poisoned, *acks], fetched, step)
        self._poisoned = []
        left, is_complete = k, True
        try:
            for shard in self._order():
                share = plan.get(shard)
                if share is None and left <= 0 and (k or plan):
                    # Nothing to tell it, nothing wanted. Whether it has something due is not
                    # known, so the next call does not wait. Asked all the same, every shard would
                    # answer every round of every worker: more work than all pages make.
                    is_complete = False
                    continue
                left -= await self._serve(shard, left, share or packing.Share(), step)
            if not is_complete:
                step.wait_ms = 0
            with translated():
                await self._after_error()
            if self.mover is not None:
                await self.mover.move()
            await self._verify(step)
        except FrontierUnavailable:
            for (
                lease
            ) in step.leases:  # of other shards: the caller never sees them, so they are freed
                self._held.pop(lease.fence, None)
            raise
        step.server_id = self._server_id
        return step

    async def _serve(self, shard: int, k: int, share: packing.Share, step: Step) -> int:
        """As many calls as the share and ``k`` URLs need, each of them short. Returns
        how many URLs came.

        What is told later belongs to domains that are held until then, so no lease
        can come too early.
        """
        wait_ms, left, got = step.wait_ms, k, 0
        for batch in share.batches(MAX_ACKS, MAX_FETCHED):
            step.wait_ms = wait_ms  # the last call knows
            got = await self._step_shard(shard, min(left, MAX_LEASES), batch, step)
            left -= got
        while got == MAX_LEASES and left > 0:
            step.wait_ms = wait_ms
            got = await self._step_shard(shard, min(left, MAX_LEASES), packing.Share(), step)
            left -= got
        return k - left

    async def _verify(self, step: Step) -> None:
        """Offers links that the local filter alone knew: its false positives are queued
        now. Sums up the step."""
        step.queued, step.waiting, step.leased = (
            sum(column) for column in zip(*self._totals, strict=True)
        )
        links = self.local.to_verify(MAX_LINKS, is_idle=not step.leases)
        if not links:
            return
        try:
            result = await self.add(links)
        except FrontierUnavailable as exc:
            self.local.keep(links)  # the step itself is done; the next call says what is wrong
            logger.info("Links wait to be verified links=%d error=%s", len(links), exc)
            return
        self.local.false_positives += result.added
        step.added.merge(result)
        if result.added or self.local.unverified:  # there is more to do than the scripts knew
            step.queued += result.added
            step.wait_ms = 0

    async def _plan(
        self, acks: Sequence[Ack], fetched: Sequence[Fetched], step: Step
    ) -> dict[int, packing.Share]:
        """Sorts by shard. Links that cannot go with their ack's call are added first:
        the ack comes last."""
        plan: defaultdict[int, packing.Share] = defaultdict(packing.Share)
        for end in fetched:
            plan[self._shard(end.lease.domain)].fetched.append(packing.fetched(end))
        known = await self._known_links(acks, step)
        room = MAX_LINKS
        ahead: list[Link] = []
        for ack in acks:
            shard = self._shard(ack.lease.domain)
            if not (ack.links or ack.moved_to):
                plan[shard].acks.append((ack, packing.ack(ack, []), []))
                continue
            own, others = self._parted(ack.links, shard)
            own = [link for link in own if id(link) not in known]
            ahead += others
            if len(own) > room:
                ahead += own
                own = []
            room -= len(own)
            ack, moved = packing.resolve_move(ack)
            is_away = False
            if moved is not None and self._shard(moved.domain) == shard:
                own.append(moved)
            elif moved is not None:
                is_away = await self._move_away(ack, moved)
            groups, order = packing.group_links(own, moved_last=moved)
            plan[shard].acks.append((ack, packing.ack(ack, groups, moved_away=is_away), order))
        if ahead:
            step.added.merge(await self.add(ahead))
        return plan

    def _parted(self, links: Sequence[Link], shard: int) -> tuple[list[Link], list[Link]]:
        """Those of the shard, and the others."""
        own = [link for link in links if self._shard(link.domain) == shard]
        if len(own) == len(links):
            return own, []
        return own, [link for link in links if self._shard(link.domain) != shard]

    async def _move_away(self, ack: Ack, moved: Link) -> bool:
        """Offers the other spelling to its own shard. False: that is full, and the visit ends
        refused."""
        if (await self._add(self._shard(moved.domain), [moved], moved=True)).taken:
            return True
        ack.outcome, ack.reason, ack.moved_to = Outcome.REFUSED, "queue_full", None
        return False

    async def _known_links(self, acks: Sequence[Ack], step: Step) -> set[int]:
        """Links of the acks' own shards that need not be sent, where many of them are
        likely to be known."""
        if not self._pays_to_look(sum([len(ack.links) for ack in acks])):
            return set()
        links: dict[int, list[Link]] = {}
        for ack in acks:
            shard = self._shard(ack.lease.domain)
            links.setdefault(shard, []).extend(
                x for x in ack.links if self._shard(x.domain) == shard
            )
        known = [await self._known(shard, found, step.added) for shard, found in links.items()]
        return set().union(*known)

    def _order(self) -> list[int]:
        """Another shard comes first each time, so that all are served alike."""
        count = self.layout.shards
        self._turn = (self._turn + 1) % count
        return [(self._turn + i) % count for i in range(count)]

    async def _step_shard(self, shard: int, k: int, share: packing.Share, step: Step) -> int:
        """One script call. Returns how many URLs it granted."""
        fetched = b"".join(share.fetched)
        acks, has_links = b"", 0
        if share.acks:
            has_links = int(any(packed.groups for _, packed, _ in share.acks))
            acks = msgpack.packb([packed.sent() for _, packed, _ in share.acks], use_bin_type=False)
        try:
            with translated():
                answer = await self.scripts.run(
                    "step", keys.prefix(shard), self.worker, k, fetched, acks, has_links
                )
        except FrontierUnavailable:
            self._is_unsure = True
            raise
        (
            granted,
            deadline_ms,
            wait_ms,
            queued,
            waiting,
            leased,
            step.now_ms,
            step.server_ms,
            *answer,
        ) = answer
        rejected, statuses, full = answer
        again = self._settle(share, statuses, step)
        if full and self.mover is not None:
            self.mover.note(shard)
        step.rejected += rejected
        step.wait_ms = wait_ms if step.wait_ms < 0 else min(step.wait_ms, wait_ms)
        self._totals[shard] = (queued, waiting, leased)
        for data in granted:
            self._take(data, deadline_ms, step)
        if again.acks:
            await self._finish_asked(shard, again, statuses, step)
        return len(granted)

    def _settle(self, share: packing.Share, statuses: Sequence[bytes], step: Step) -> packing.Share:
        """Takes over what became of the links of each ack; returns the acks that wait for the
        archive's word on one of theirs."""
        again = packing.Share()
        for (ack, packed, order), links in zip(share.acks, statuses, strict=True):
            if links:
                confirmed = self._confirmed(order, links)
                step.added.merge(confirmed)
                self._learn(len(links), confirmed.seen)
            if b"?" in links:
                again.acks.append((ack, packed, order))
            else:
                self._held.pop(ack.lease.fence, None)
        return again

    async def _finish_asked(
        self, shard: int, again: packing.Share, statuses: list[bytes], step: Step
    ) -> None:
        """Acks that wait for the archive's word on some of their links: those are offered first,
        then the ack is sent without them. A crash between repeats the visit."""
        try:
            for (_, _, order), links in zip(
                again.acks, [x for x in statuses if b"?" in x], strict=True
            ):
                step.added.merge(await self._ask_archive(shard, order[: len(links)], links))
        except FrontierUnavailable:
            self._is_unsure = True  # the leases of this call never reach the caller
            raise
        again.acks = [
            (ack, packed.without_links(), order[-1:]) for ack, packed, order in again.acks
        ]
        await self._step_shard(shard, 0, again, step)

    def _take(self, granted: bytes, deadline_ms: int, step: Step) -> None:
        lease, error = packing.lease(granted, deadline_ms)
        if error is not None:
            # Poison: it ends in quarantine with the next call instead of breaking
            # every worker in turn.
            logger.error(
                "Record cannot be read, goes to quarantine url_id=%s error=%s",
                lease.url_id.hex(),
                error,
            )
            self._poisoned.append(Ack(lease, Outcome.FAILED, "poison"))
            return
        self._held[lease.fence] = lease
        step.leases.append(lease)

    async def _after_error(self) -> None:
        """Frees leases that a failed call granted, and finds out whether Redis is
        still the same process."""
        if not (self._is_unsure or self.scripts.is_cut or self.scripts.reloads):
            return
        if await self._is_another_server():
            # A killed Redis comes back a second older: what it forgot may be in the local filter.
            self.local.clear()
        if self._is_unsure:
            await self._free(own_held=True, how="unfetched")
        self._is_unsure = self.scripts.is_cut = False
        self.scripts.reloads = 0

    # ------------------------------------------------------------------ leases
    async def renew(self, leases: Sequence[Lease]) -> list[bytes]:
        """Pushes the deadlines; returns the url ids whose lease is lost."""
        await self._settle_layout()
        lost: list[bytes] = []
        with translated():
            for shard, batch in self._by_shard(leases).items():
                deadline, gone = await self.scripts.run(
                    "renew", keys.prefix(shard), self.config.lease_ms, packing.fences(batch)
                )
                lost += gone
                for lease in batch:
                    if lease.url_id not in gone:
                        lease.deadline_ms = deadline
        return lost

    def is_poison_candidate(self, lease: Lease) -> bool:
        """Whether it may be what kills workers: to be fetched by itself, after
        :meth:`begin_isolated_retry`."""
        return lease.crashes >= self.config.poison_candidate_after

    async def begin_isolated_retry(self, lease: Lease) -> bool:
        """From now until its ack the death of this worker counts against the URL. False:
        the lease is lost."""
        await self._settle_layout()
        with translated():
            deadline: int = await self.scripts.run(
                "isolated_retry",
                keys.prefix(self._shard(lease.domain)),
                self.config.lease_ms,
                lease.url_id,
                lease.fence,
            )
        if not deadline:
            return False
        lease.deadline_ms = deadline
        return True

    async def give_back(self, leases: Sequence[Lease], fetched: Sequence[Fetched] = ()) -> int:
        """Returns URLs untried, e.g. at a graceful stop; how many were still ours.

        :param fetched: of those of them that were asked of the site although nothing came
            of it (a store that is away): their gate must open late. Not needed where a
            step() told it before.
        """
        await self._settle_layout()
        if fetched:
            await self.step(0, (), fetched)
        n = 0
        for shard, batch in self._by_shard(leases).items():
            n += await self._give_back(shard, batch, "unfetched")
        for lease in leases:
            self._held.pop(lease.fence, None)
        return n

    async def _give_back(self, shard: int, leases: Sequence[Lease], how: str) -> int:
        with translated():
            return int(
                await self.scripts.run("give_back", keys.prefix(shard), how, packing.fences(leases))
            )

    async def free_dead(self, is_dead: Callable[[str], bool]) -> int:
        """Returns the leases of workers that are known to have ended or to be stuck: their URLs
        come again as after a crash, under new fencing numbers. How many there were."""
        return await self._free(own_held=True, how="lost", is_dead=is_dead)

    async def _free(
        self, *, own_held: bool, how: str, is_dead: Callable[[str], bool] | None = None
    ) -> int:
        """Ends leases in this worker's name that it does not hold, and those of
        workers that are dead."""
        await self._settle_layout()
        n = 0
        others: dict[str, bool] = {}
        for shard in range(self.layout.shards):
            stray: list[Any] = []
            with translated():
                async for url_id, data in self.client.hscan_iter(keys.leases(shard), count=500):
                    entry = records.unpack_lease_entry(data)
                    if entry.worker == self.worker:
                        is_stray = not (own_held and entry.fence in self._held)
                    else:
                        if entry.worker not in others:
                            others[entry.worker] = is_dead is not None and is_dead(entry.worker)
                        is_stray = others[entry.worker]
                    if is_stray:
                        stray += [url_id, entry.fence]
                if stray:
                    packed = msgpack.packb(stray, use_bin_type=False)
                    n += int(await self.scripts.run("give_back", keys.prefix(shard), how, packed))
        return n

    async def reserve(self, domain: str, url: str) -> Lease | int:
        """Asks once for a turn at one domain's gate, for a single fetch outside the queue
        (`scrapy extract URL`).

        A lease of kind ROBOTS means: fetch robots.txt first and ack it by ``step`` like the crawl
        does. Any other lease is for ``url``: end it by :meth:`release`.

        :returns: the lease, or the real milliseconds after which to ask again
        :raises FrontierRefused: the domain is unknown to the frontier, paused by its operator, its
            quota is spent, or the URL was taken down
        """
        await self._settle_layout()
        if await self.taken.has(url):
            raise FrontierRefused(f"{url} was taken down (scrapy takedown --list)")
        turn_id = secrets.token_bytes(16)
        shard = self._shard(domain)
        with translated():
            granted, deadline_ms, wait_ms = await self.scripts.run(
                "reserve", keys.prefix(shard), self.worker, domain, turn_id
            )
        if wait_ms == -1:
            raise FrontierRefused(f"{domain} is not known to the frontier")
        if wait_ms == -2:
            raise FrontierRefused(f"{domain} is paused; `scrapy frontier resume {domain}` opens it")
        if wait_ms == -3:
            raise FrontierRefused(
                f"the quota of {domain} is spent; `scrapy frontier quota {domain}` shows and"
                " sets it"
            )
        if not granted:
            return int(wait_ms)
        lease, _ = packing.lease(granted[0], deadline_ms)
        if lease.url_id == turn_id:
            lease.url, lease.kind = url, Kind.PAGE
        self._held[lease.fence] = lease
        return lease

    async def release(self, lease: Lease, fetched: Fetched) -> None:
        """The fetch ended: the gate opens after the domain's delay; nothing of it is
        kept in the queue."""
        await self.give_back([lease], [fetched])

    # ------------------------------------------------------------------ reading
    async def counts(self) -> Counts:
        return await self.operator.counts()

    async def report(self) -> dict[str, Any]:
        return await self.operator.report()

    async def record(self, url_id: bytes, domain: str) -> Record | None:
        record = await self.operator.record(url_id, domain)
        if record is None and self.mover is not None:
            data = (await self.mover.look([url_id])).get(url_id)
            record = None if data is None else records.unpack_finished(url_id, domain, data)[0]
        return record

    async def robots(self, domain: str) -> RobotsEntry | None:
        """The robots.txt that the fleet shares; ``None`` = none was fetched yet.

        :raises FrontierUnavailable: Redis does not answer, or the shards are being moved
        """
        await self._settle_layout()
        try:
            entry = await self.operator.robots(domain)
            with translated():
                word = await self.client.hget(keys.state(self._shard(domain)), "layout")
        except FrontierUnavailable:
            self.scripts.is_cut = True
            raise
        if (word or b"0").decode() != self.layout.word:
            # The domain may have left the shard before it was read: no entry would mean no rules.
            self.scripts.is_moved = True
            raise FrontierUnavailable(CLOSED)
        return entry

    # ------------------------------------------------------------------ shards
    def _by_shard(self, items: Sequence[T]) -> dict[int, list[T]]:
        found: dict[int, list[T]] = {}
        for item in items:
            found.setdefault(self._shard(item.domain), []).append(item)
        return found

    def _shard(self, domain: str) -> int:
        return self.layout.of(domain)
