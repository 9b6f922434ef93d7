"""Another number of shards for a frontier that is in use: `scrapy frontier reshard`.

Domains are moved in steps, some ten thousand URLs each. A step (docs/frontier.md has the picture):

1. *Closed*: meta and each shard say that no caller may change anything (layout.py). Workers wait as
   they do for a Redis that is away; leases, acks and links stay with them.
2. *Copied*: queue, records, leases with their fencing numbers, gate, robots.txt and log of each
   domain, and what the seen filter has learnt since the step before. Nothing is taken away yet.
   What lies in the new place is counted against the old one.
3. *Committed* by one write: the cursor. Before it a kill leaves the old map, after it the new one.
4. *Swept*: the old places are emptied, the counters set to what was worked out before the commit.
5. *Open* again under the next epoch; workers read the new map when their first call is refused.

Each part can be repeated, so a killed reshard goes on where it was. One at a time works, by a lock
that runs out.

Finished records and the seen filter know url ids and no domains. The filter's generations are
copied whole to the shards that get domains, as closed generations, which run out like any other;
finished records stay, and are asked for when a link is offered that the filter knows and the
domain's shard does not (Frontier._look_elsewhere). Those of a shard that goes are spread over the
others.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from math import gcd
from typing import Any
from zlib import crc32

import msgpack
from redis.exceptions import NoPermissionError, ResponseError

from newscrawler.frontier import keys, records
from newscrawler.frontier.errors import translated
from newscrawler.frontier.layout import OPEN, PLACES, Layout
from newscrawler.frontier.layout import read as read_layout
from newscrawler.frontier.operator import Operator
from newscrawler.frontier.schema import QUARANTINE
from newscrawler.frontier.scripts import Scripts
from newscrawler.frontier.types import Counts, FrontierError, FrontierRefused, FrontierUnavailable

#: URLs that one step moves, more only where a single place of the cursor has them: half a second
#: to two in which the fleet waits.
STEP_URLS = 20_000
#: Milliseconds that the lock lasts without a sign of life.
LOCK_MS = 10_000
#: Seconds in which the lock of one that was killed runs out.
WAIT_S = 15.0
#: Buckets of the generation of the seen filter in which is written while domains move.
SMALL_FILTER = 1024
#: Seconds in which the fleet works between two steps.
PAUSE_S = 0.5
MOVING, SWEEPING = "moving", "sweeping"
#: Keys that a pipeline carries, and buckets of finished records.
_KEYS = 256


@dataclass(slots=True)
class Done:
    """What a reshard did; ``before`` and ``after``: counts of the whole frontier at both ends of
    the steps (a crawl goes on between them)."""

    shards: int
    steps: int = 0
    domains: int = 0
    urls: int = 0
    closed_s: float = 0.0  # the longest step, or the end of shards that go
    before: Counts = field(default_factory=Counts)
    after: Counts = field(default_factory=Counts)


class Resharder:
    """
    :param client: of the frontier's Redis or Redis Cluster
    :param step_urls: see STEP_URLS
    :param pause_s: see PAUSE_S
    :param say: is told a line a step
    """

    def __init__(
        self,
        client: Any,
        *,
        step_urls: int = STEP_URLS,
        pause_s: float = PAUSE_S,
        say: Callable[[str], None] = lambda line: None,
    ) -> None:
        self.client = client
        self.scripts = Scripts(client)
        self.step_urls, self.pause_s, self.say = step_urls, pause_s, say
        self._token = secrets.token_hex(8)
        self._layout = Layout.of_count(1)
        self.done = Done(1)

    # ------------------------------------------------------------------ the whole
    async def run(self, shards: int) -> Done:
        """Until the frontier has so many shards. A reshard that was killed is ended first, whatever
        its number was.

        :raises FrontierRefused: groups of domains, which lie in one shard; a number out of bounds;
            another reshard is at work
        :raises FrontierError: what was copied is not what was there; the step is not committed
        """
        if not 1 <= shards <= 1024:
            raise FrontierRefused(f"{shards} shards: 1 to 1024 are possible")
        with translated():
            await self._lock()
            try:
                return await self._run(shards)
            finally:
                if (await self.client.get(keys.RESHARD) or b"").decode() == self._token:
                    await self.client.delete(keys.RESHARD)

    async def _run(self, shards: int) -> Done:
        await self._refuse_without_rights()
        self._layout = await read_layout(self.client)
        self.done = Done(shards, before=await self._counts())
        if not self._layout.is_open:
            self.say("A step that was killed is ended first")
            await self._end_step()
        elif self._layout.epoch:
            await self._open()  # one that was killed may have said so in meta only
        while not (self._layout.is_whole and self._layout.shards == shards):
            if self._layout.is_whole:
                await self._begin(shards)
            elif self._layout.cursor < PLACES:
                await self._step()
                await asyncio.sleep(self.pause_s)
            else:
                await self._finish()
        self.done.after = await self._counts()
        return self.done

    async def _counts(self) -> Counts:
        return await Operator(self.client, self._layout).counts()

    async def _lock(self) -> None:
        """Waits for the end of one that was killed, not for one that is at work."""
        until = time.monotonic() + WAIT_S
        while not await self.client.set(keys.RESHARD, self._token, nx=True, px=LOCK_MS):
            if time.monotonic() > until:
                raise FrontierRefused("another `scrapy frontier reshard` is at work")
            await asyncio.sleep(0.2)

    async def _write(self, **values: Any) -> None:
        """Writes fields of meta; none = a sign of life."""
        fields = [x for name, value in values.items() for x in (name, str(value))]
        packed = msgpack.packb(fields, use_bin_type=False)
        if not await self.scripts.run("layout", "{frontier}", self._token, LOCK_MS, packed):
            raise FrontierUnavailable("another `scrapy frontier reshard` has taken over")
        if values:
            self._layout = await read_layout(self.client)

    async def _refuse_without_rights(self) -> None:
        """A step that fails half way leaves the frontier closed. The workers' user has no RESTORE
        (deploy/redis-users.acl), which of an empty text is refused in any case.

        :raises FrontierRefused:
        """
        try:
            await self.client.restore(f"{keys.RESHARD}:rights", 0, b"")
        except NoPermissionError as exc:
            raise FrontierRefused(
                "the user of REDIS_URL may not copy keys (RESTORE): reshard as `admin` of"
                " docs/securing.md; nothing was changed"
            ) from exc
        except ResponseError:
            return

    async def _refuse_groups(self) -> None:
        """Gates of groups that were taken away stay in Redis, and say nothing.

        :raises FrontierRefused: a domain is in a group
        """
        async for state in Operator(self.client, self._layout).states():
            if state.extra.group:
                raise FrontierRefused(
                    "domains with one gate (`group`, FRONTIER_GROUP_BY) lie in one shard; take the"
                    f" groups away before there are several: {state.domain} is in"
                    f" {state.extra.group!r}"
                )
        for shard in range(self._layout.shards):
            await self.client.delete(keys.groups(shard))

    # ------------------------------------------------------------------ begin and end
    async def _begin(self, shards: int) -> None:
        """From now on there are both: no domain has moved yet, the seen filter is being copied."""
        before = self._layout.shards
        if shards > 1:
            await self._refuse_groups()
        await self._write(
            schema=(await self.client.hget(keys.META, "schema") or b"1").decode(),
            before=before, after=shards, cursor=0, shards=max(before, shards),
            epoch=self._layout.epoch + 1, phase=MOVING, next=0, changed_s=await self._now_s(),
            counters="{}",
        )  # fmt: skip
        self.say(f"{before} shards become {shards}")
        await self._end_step()

    async def _now_s(self) -> int:
        return int(await Operator(self.client, self._layout).now_ms()) // 1000 + 1

    async def _finish(self) -> None:
        """All domains are where they belong: shards that go are emptied, closed meanwhile."""
        after = self._layout.after
        await self._write(epoch=self._layout.epoch + 1, phase=SWEEPING, next=PLACES)
        began = time.monotonic()
        await self._close()
        for shard in range(after, self._layout.before):
            await self._empty(shard)
        await self._write(
            shards=after, before=after, after=after, cursor=PLACES, phase=OPEN, counters="{}",
        )  # fmt: skip
        await self._open()
        self.done.closed_s = max(self.done.closed_s, time.monotonic() - began)

    async def _empty(self, shard: int) -> None:
        """Finished records to the shards that stay, the counters as well; the rest is deleted."""
        after = self._layout.after
        target = shard % after
        for first in range(0, keys.BUCKETS, _KEYS):
            await self._write()
            numbers = range(first, first + _KEYS)
            pipe = self.client.pipeline(transaction=False)
            for number in numbers:
                pipe.hgetall(keys.bucket(shard, number))
            contents = await pipe.execute()
            pipe = self.client.pipeline(transaction=False)
            for number, held in zip(numbers, contents, strict=True):
                for name, data in held.items():
                    pipe.hsetnx(keys.bucket(target, number), name, records.without_file(data))
            await pipe.execute()
        sums = await self.client.hgetall(keys.stat(shard))
        if sums:  # as one command and away with them: a kill between counts them twice
            pipe = self.client.pipeline(transaction=True)
            for name, value in sums.items():
                pipe.hincrby(keys.stat(target), name, int(value))
            await pipe.execute()
            await self.client.delete(keys.stat(shard))
        batch: list[bytes] = []
        async for key in self.client.scan_iter(f"{keys.prefix(shard)}:*", count=1000):
            batch.append(key)
        for start in range(0, len(batch), _KEYS):
            await self._write()
            pipe = self.client.pipeline(transaction=False)
            for key in batch[start : start + _KEYS]:
                pipe.execute_command("UNLINK", key)  # of a cluster unlink() is another
            await pipe.execute()
        # A worker that slept through all of it is refused here as elsewhere.
        await self.client.hset(keys.state(shard), "layout", "gone")

    # ------------------------------------------------------------------ closed and open
    async def _close(self) -> None:
        """No script of a caller changes any shard from here on."""
        for shard in range(self._layout.shards):
            await self.client.hset(keys.state(shard), "layout", self._layout.closed_word)

    async def _open(self) -> None:
        for shard in range(self._layout.shards):
            await self.client.hset(keys.state(shard), "layout", self._layout.word)

    # ------------------------------------------------------------------ a step
    async def _step(self) -> None:
        following = await self._next_cursor()
        await self._write(epoch=self._layout.epoch + 1, phase=MOVING, next=following)
        await self._end_step()

    async def _next_cursor(self) -> int:
        """How far the next step goes, by the URLs of the domains that move."""
        layout = self._layout
        moving: Counter[int] = Counter()
        for shard in range(layout.before):
            async for name, data in self.client.hscan_iter(keys.domains(shard), count=1000):
                domain = name.decode()
                place = crc32(name) >> 16
                if place >= layout.cursor and _goes(domain, layout):
                    state = records.unpack_domain(domain, data)
                    moving[place] += 1 + state.queued + state.due
        urls = 0
        for place in sorted(moving):
            urls += moving[place]
            if urls >= self.step_urls:
                return place + 1
        return PLACES

    async def _end_step(self) -> None:
        """From wherever the step is to its end."""
        began = time.monotonic()
        await self._close()
        if self._layout.phase == MOVING:
            await self._prepare_shards()
            moved = await self._copy()
            await self._write(cursor=await self._next(), phase=SWEEPING, counters=json.dumps(moved))
        await self._sweep()
        await self._write(phase=OPEN, counters="{}")
        await self._open()
        seconds = time.monotonic() - began
        self.done.steps += 1
        self.done.closed_s = max(self.done.closed_s, seconds)
        part = self._layout.cursor / PLACES
        self.say(
            f"{part:.0%} moved domains={self.done.domains} urls={self.done.urls}"
            f" closed_s={seconds:.2f}"
        )

    async def _next(self) -> int:
        """Where the cursor will be after the step."""
        return int(await self.client.hget(keys.META, "next") or 0)

    async def _prepare_shards(self) -> None:
        """A new shard tells the time as the others, and knows which process answers."""
        for source, target in self._pairs():
            clock = await self.client.hgetall(keys.clock(source))
            if clock:
                await self.client.hset(keys.clock(target), mapping=clock)
            names = ("fence", "run", "reborn")
            own = await self.client.hmget(keys.state(source), names)
            theirs = await self.client.hmget(keys.state(target), names)
            fence = max(int(own[0] or 0), int(theirs[0] or 0))
            reborn = max(int(own[2] or 0), int(theirs[2] or 0))
            values: dict[str, Any] = {"fence": fence}
            if own[1]:
                values["run"] = own[1]
            if reborn:
                values["reborn"] = reborn
            await self.client.hset(keys.state(target), mapping=values)
            # What was taken down is in every shard.
            taken = keys.taken(source), keys.taken(target)
            await self._copy_keys([taken])
        await self._copy_filters()

    def _pairs(self) -> list[tuple[int, int]]:
        """(from, to) of every way that a domain may go."""
        layout = self._layout
        step = gcd(layout.before, layout.after)
        return [
            (a, b)
            for a in range(layout.before)
            for b in range(layout.after)
            if a != b and a % step == b % step
        ]

    # ------------------------------------------------------------------ the seen filter
    async def _copy_filters(self) -> None:
        """Generations of the sources that the targets do not have yet, and what was added to the
        youngest since. Each carries a name that its copies keep (``u``), so that none comes twice
        to a shard, however often shards are changed; ``w`` of a copy: it is whole."""
        sources = sorted({source for source, _ in self._pairs()})
        if self._layout.cursor == 0 and await self._next() == 0:
            for source in sources:
                await self._cut_filter(source)
        own = {source: await self._named(source) for source in sources}
        for source, target in self._pairs():
            for gen in own[source]:
                theirs = (await self._filter(target) or {"live": []})["live"]
                copy = next((one for one in theirs if one.get("u") == gen["u"]), None)
                if copy is None or (not copy.get("w") and copy["c"] != gen["c"]):
                    await self._copy_generation(source, gen, target, copy)

    async def _named(self, shard: int) -> list[dict[str, Any]]:
        """Generations of a shard, each of which has a name from now on."""
        held = await self._filter(shard)
        if held is None:
            return []
        if not all(gen.get("u") for gen in held["live"]):
            for gen in held["live"]:
                gen.setdefault("u", f"{shard}/{gen['g']}/{self._layout.epoch}")
            await self._put_filter(shard, held)
        return list(held["live"])

    async def _cut_filter(self, shard: int) -> None:
        """Closes its open generation and begins a small one: from then on little is to be copied
        with each step."""
        held = await self._filter(shard)
        if held is None or not held["live"][-1]["c"]:
            return
        last, now_ms = held["live"][-1], await Operator(self.client, self._layout).now_ms()
        last["closed"] = now_ms
        buckets = min(int(last["n"]), SMALL_FILTER)
        held["live"].append({"g": held["next"], "n": buckets, "c": 0, "o": now_ms, "closed": 0})
        held["next"] += 1
        await self._put_filter(shard, held)

    async def _put_filter(self, shard: int, held: dict[str, Any]) -> None:
        packed = msgpack.packb(held, use_bin_type=False)
        await self.client.set(keys.seen(shard), packed)

    async def _filter(self, shard: int) -> Any:
        raw = await self.client.get(keys.seen(shard))
        return None if raw is None else msgpack.unpackb(raw, strict_map_key=False)

    async def _copy_generation(
        self, source: int, gen: dict[str, Any], target: int, copy: dict[str, Any] | None
    ) -> None:
        """Its sets, then its entry in the target's list: closed, before the open one.

        :param copy: what the target has of it already
        """
        held = await self._filter(target)
        number = 2
        if copy is not None:
            number = copy["g"]
        elif held is not None:
            number = held["next"]
        for first in range(0, int(gen["n"]), _KEYS):
            await self._write()
            numbers = range(first, min(first + _KEYS, int(gen["n"])))
            await self._copy_keys(
                [
                    (
                        keys.seen_part(source, gen["g"], n),
                        keys.seen_part(target, number, n),
                    )
                    for n in numbers
                ]
            )
        now_ms = await Operator(self.client, self._layout).now_ms()
        if held is None:
            opened = {"g": number + 1, "n": gen["n"], "c": 0, "o": now_ms, "closed": 0}
            held = {"next": number + 2, "dying": [], "live": [opened]}
        entry = {**gen, "g": number, "closed": gen["closed"] or now_ms, "w": int(gen["closed"] > 0)}
        others = [one for one in held["live"] if one["g"] != number]
        held["live"] = [entry, *others]
        held["next"] = max(held["next"], number + 1)
        await self._put_filter(target, held)

    async def _copy_keys(self, pairs: Sequence[tuple[str, str]]) -> None:
        """By DUMP and RESTORE, from one shard to another each; what is not there is deleted
        there."""
        pipe = self.client.pipeline(transaction=False)
        for source, _ in pairs:
            pipe.dump(source)
            pipe.pttl(source)
        answers = await pipe.execute()
        put = self.client.pipeline(transaction=False)
        for (_, target), data, left_ms in zip(pairs, answers[::2], answers[1::2], strict=True):
            if data is None:
                put.execute_command("UNLINK", target)  # of a cluster unlink() is another
            else:
                put.restore(target, max(0, left_ms), data, replace=True)
        await put.execute()

    # ------------------------------------------------------------------ domains
    async def _moving(self, upto: int) -> AsyncIterator[tuple[int, int, list[str]]]:
        """(from, to, domains) of the step, by the map before it."""
        layout = self._layout
        found: dict[tuple[int, int], list[str]] = {}
        # What was swept before is no longer here.
        first = layout.cursor if layout.phase == MOVING else 0
        for shard in range(layout.before):
            for name in await self.client.hkeys(keys.domains(shard)):
                number = crc32(name)
                source, target = number % layout.before, number % layout.after
                if first <= number >> 16 < upto and source == shard != target:
                    found.setdefault((source, target), []).append(name.decode())
        for (source, target), names in sorted(found.items()):
            yield source, target, sorted(names)

    async def _copy(self) -> dict[str, list[int]]:
        """The domains of the step. Returns what the counters of the shards will be: shard ->
        queued, waiting."""
        upto = await self._next()
        sums: dict[int, list[int]] = {}
        for shard in range(self._layout.shards):
            held = await self.client.hmget(keys.state(shard), "queued", "waiting")
            sums[shard] = [int(x or 0) for x in held]
        total = [sum(column) for column in zip(*sums.values(), strict=True)]
        domains = urls = 0
        async for source, target, names in self._moving(upto):
            for domain in names:
                await self._write()
                queued, waiting = await self._copy_domain(source, target, domain)
                for shard, sign in ((source, -1), (target, 1)):
                    sums[shard][0] += sign * queued
                    sums[shard][1] += sign * waiting
                domains, urls = domains + 1, urls + queued + waiting
            await self._copy_entries(source, target, set(names))
        if [sum(column) for column in zip(*sums.values(), strict=True)] != total:
            raise FrontierError("the counters of the shards do not add up; nothing was moved")
        self.done.domains += domains
        self.done.urls += urls
        return {str(shard): counts for shard, counts in sums.items()}

    async def _copy_domain(self, source: int, target: int, domain: str) -> tuple[int, int]:
        """All of its own keys, its state, its places among the ready ones and those that gave way,
        and the marks of bounded crawls. (queued, waiting) as the counters have them.

        :raises FrontierError: the copy has not as many URLs as there were
        """
        await self._copy_keys([(one(source, domain), one(target, domain)) for one in _OF_DOMAIN])
        pipe = self.client.pipeline(transaction=False)
        pipe.hget(keys.domains(source), domain)
        pipe.sismember(keys.public(source), domain)
        for number in range(3):
            pipe.zscore(keys.ready(source, number), domain)
        pipe.zscore(keys.later(source), domain)
        pipe.zcard(keys.queue(source, domain))
        pipe.zrange(keys.due(source, domain), 0, -1)
        pipe.hkeys(keys.records(source, domain))
        state, is_public, *answers = await pipe.execute()
        scores, (gave_way, queued, due, ids) = answers[:3], answers[3:]
        put = self.client.pipeline(transaction=False)
        put.hset(keys.domains(target), domain, state)
        if is_public:
            put.sadd(keys.public(target), domain)
        for number, score in enumerate(scores):
            if score is not None:
                put.zadd(keys.ready(target, number), {domain: score})
        if gave_way is not None:
            put.zadd(keys.later(target), {domain: gave_way})
        put.zcard(keys.queue(target, domain))
        put.zcard(keys.due(target, domain))
        put.hlen(keys.records(target, domain))
        there = (await put.execute())[-3:]
        if there != [queued, len(due), len(ids)]:
            raise FrontierError(
                f"{domain} has {[queued, len(due), len(ids)]} URLs queued, waiting and recorded in"
                f" shard {source}, and {there} in shard {target}; nothing was taken away"
            )
        await self._copy_marks(source, target, ids)
        planned = await self._planned(source, domain, due)
        return queued + len(due) - planned, planned

    async def _copy_marks(self, source: int, target: int, ids: Sequence[bytes]) -> None:
        if not ids or not await self.client.exists(keys.want(source)):
            return
        for first in range(0, len(ids), 1000):
            part = ids[first : first + 1000]
            marks = await self.client.hmget(keys.want(source), part)
            held = {i: mark for i, mark in zip(part, marks, strict=True) if mark is not None}
            if held:
                await self.client.hset(keys.want(target), mapping=held)

    async def _planned(self, shard: int, domain: str, due: Sequence[bytes]) -> int:
        """How many of those not yet due are visits of known pages, which a crawl does not wait
        for (is_waiting() of _records.lua)."""
        planned = 0
        for first in range(0, len(due), 1000):
            part = due[first : first + 1000]
            for url_id, data in zip(
                part, await self.client.hmget(keys.records(shard, domain), part), strict=True
            ):
                outcome = records.unpack_queued(url_id, domain, data).outcome if data else None
                planned += outcome not in (None, "RETRY", "CHALLENGE")
        return planned

    async def _copy_entries(self, source: int, target: int, names: set[str]) -> None:
        """Copies the hashes of the whole shard: leases, quarantine, URLs that left."""
        async for url_id, data in self.client.hscan_iter(keys.leases(source), count=500):
            if records.unpack_lease_entry(data).domain in names:
                deadline = await self.client.zscore(keys.deadlines(source), url_id)
                await self.client.hset(keys.leases(target), url_id, data)
                if deadline is not None:
                    await self.client.zadd(keys.deadlines(target), {url_id: deadline})
        async for url_id, data in self.client.hscan_iter(keys.quarantine(source), count=500):
            if _quarantined_domain(data) in names:
                await self.client.hset(keys.quarantine(target), url_id, data)
        async for name, to in self.client.hscan_iter(keys.moved(source), count=500):
            if name[16:].decode() in names:
                # Where the URL lives on is looked at within a shard only; "" = in another.
                there = to if to.decode() in names else b""
                await self.client.hset(keys.moved(target), name, there)

    # ------------------------------------------------------------------ sweep
    async def _sweep(self) -> None:
        """After the commit: what was moved leaves its old place."""
        async for source, _, names in self._moving(self._layout.cursor):
            for domain in names:
                await self._write()
                await self._remove_domain(source, domain)
            await self._remove_entries(source, set(names))
        counters = json.loads(await self.client.hget(keys.META, "counters") or b"{}")
        for shard, (queued, waiting) in counters.items():
            values = {"queued": queued, "waiting": waiting}
            await self.client.hset(keys.state(int(shard)), mapping=values)

    async def _remove_domain(self, shard: int, domain: str) -> None:
        ids = await self.client.hkeys(keys.records(shard, domain))
        pipe = self.client.pipeline(transaction=False)
        for first in range(0, len(ids), 1000):
            pipe.hdel(keys.want(shard), *ids[first : first + 1000])
        for one in _OF_DOMAIN:
            pipe.execute_command("UNLINK", one(shard, domain))
        for number in range(3):
            pipe.zrem(keys.ready(shard, number), domain)
        pipe.zrem(keys.later(shard), domain)
        pipe.srem(keys.public(shard), domain)
        await pipe.execute()

    async def _remove_entries(self, shard: int, names: set[str]) -> None:
        leases = [
            url_id
            async for url_id, data in self.client.hscan_iter(keys.leases(shard), count=500)
            if records.unpack_lease_entry(data).domain in names
        ]
        if leases:
            await self.client.zrem(keys.deadlines(shard), *leases)
            await self.client.hdel(keys.leases(shard), *leases)
        poor = [
            url_id
            async for url_id, data in self.client.hscan_iter(keys.quarantine(shard), count=500)
            if _quarantined_domain(data) in names
        ]
        if poor:
            await self.client.hdel(keys.quarantine(shard), *poor)
        async for name, to in self.client.hscan_iter(keys.moved(shard), count=500):
            if name[16:].decode() in names:
                await self.client.hdel(keys.moved(shard), name)
            elif to.decode() in names:
                await self.client.hset(keys.moved(shard), name, b"")
        # Last, as a repeated sweep finds its domains here.
        await self.client.hdel(keys.domains(shard), *names)


def _goes(domain: str, layout: Layout) -> bool:
    number = crc32(domain.encode())
    return number % layout.before != number % layout.after


def _quarantined_domain(data: bytes) -> str:
    _, size, _ = QUARANTINE.unpack_from(data)
    return data[QUARANTINE.size : QUARANTINE.size + size].decode()


#: Keys that are one domain's.
_OF_DOMAIN: tuple[Callable[[int, str], str], ...] = (
    keys.queue,
    keys.due,
    keys.records,
    keys.offers,
    keys.patterns,
    keys.robots,
    keys.found,
    keys.log,
    keys.hours,
)
