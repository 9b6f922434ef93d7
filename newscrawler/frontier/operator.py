"""Looking into the frontier and steering it: what commands, API and display use. No
lease is taken here."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import msgpack
from redis.asyncio import Redis

from newscrawler.frontier import keys, records, state_text
from newscrawler.frontier.errors import translated
from newscrawler.frontier.layout import Layout
from newscrawler.frontier.layout import read as read_layout
from newscrawler.frontier.schema import CAPS, HOUR, HOUR_MS, HOURS_KEPT, LOG, QUARANTINE
from newscrawler.frontier.scripts import Scripts
from newscrawler.frontier.types import (
    CLASSES,
    Counts,
    FrontierConfig,
    FrontierRefused,
    Record,
    RobotsEntry,
)
from newscrawler.items import LIST_KINDS

#: Most URLs that one script call removes or replays.
BATCH = 500
#: Seconds after which the layout of the shards is looked at again.
LOOK_AGAIN_S = 1.0


@dataclass(slots=True)
class Quarantined:
    url_id: bytes
    domain: str
    url: str | None  # None: the record cannot be read
    reason: str
    since_ms: int


@dataclass(slots=True)
class Audit:
    """What the fetch log of one domain proves, and before it the sums of whole
    hours. Times in ms."""

    domain: str
    fetches: int  # in the log and in the sums
    since_ms: (
        int  # the first that was looked at; of an hour of which the sum is known its beginning
    )
    least_gap_ms: int | None  # between the end of a fetch and the grant of the next
    violations: list[dict[str, int]]  # in the log: at_ms, gap_ms, delay_ms
    is_whole: bool = True  # False: what is known does not reach as far back as was asked for
    log_fetches: int = 0
    log_since_ms: int = 0
    #: Of what the log has no more: from_ms, fetches, least_gap_ms, delay_ms (asked at that
    #: gap), too_soon. The first hour is told whole, also where the time that was asked for
    #: begins within it.
    hours: list[dict[str, int]] = field(default_factory=list)
    too_soon: int = 0  # violations, and those that the sums count


class Operator:
    """
    :param layout: of the frontier that is looked at; :func:`layout.read` reads it, a number
        stands for that many shards which were never changed
    """

    def __init__(
        self,
        client: Redis,
        layout: Layout | int,
        scripts: Scripts | None = None,
        changed: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        """:param changed: is awaited where the layout in use is another one by now; it calls
        :meth:`use`. None: :meth:`use` is called here"""
        self.client: Any = client  # answers are bytes, which the stubs do not know
        self.scripts = scripts or Scripts(client)
        self._changed = changed
        self._looked = -LOOK_AGAIN_S
        self.use(Layout.of_count(layout) if isinstance(layout, int) else layout)

    def use(self, layout: Layout) -> None:
        """From now on."""
        self.layout = layout
        self.scripts.word = layout.word

    @property
    def shards(self) -> int:
        return self.layout.shards

    async def _look(self) -> None:
        """Whether the layout has changed, at most once a second: some look at a frontier for
        hours."""
        if time.monotonic() - self._looked < LOOK_AGAIN_S:
            return
        with translated():
            layout = await read_layout(self.client)
        self._looked = time.monotonic()
        if layout.epoch == self.layout.epoch or not layout.is_open:
            return
        if self._changed is None:
            self.use(layout)
        else:
            await self._changed()

    # ------------------------------------------------------------------ reading
    async def now_ms(self) -> int:
        """The frontier's clock."""
        with translated():
            seconds, micros = await self.client.time()
            factor, offset = await self.client.hmget(keys.clock(0), "factor", "offset")
        real = seconds * 1000 + micros / 1000
        return int(real * float(factor) + float(offset)) if factor and offset else int(real)

    async def clock_factor(self) -> float:
        """How many of the frontier's ms pass in one of real time; 1 but for simulated days."""
        with translated():
            factor = await self.client.hget(keys.clock(0), "factor")
        return float(factor) if factor else 1.0

    async def counts(self) -> Counts:
        await self._look()
        counts = Counts()
        with translated():
            for shard in range(self.shards):
                pipe = self.client.pipeline(transaction=True)
                pipe.hmget(keys.state(shard), "queued", "waiting")
                pipe.zcard(keys.deadlines(shard))
                pipe.hlen(keys.quarantine(shard))
                pipe.hlen(keys.domains(shard))
                (queued, waiting), leased, quarantined, domains = await pipe.execute()
                counts.queued += int(queued or 0)
                counts.waiting += int(waiting or 0)
                counts.leased += leased
                counts.quarantined += quarantined
                counts.domains += domains
        return counts

    async def states(self) -> AsyncIterator[records.DomainState]:
        """Every domain of the frontier, in no order."""
        await self._look()
        with translated():
            for shard in range(self.shards):
                async for name, data in self.client.hscan_iter(keys.domains(shard), count=500):
                    yield records.unpack_domain(name.decode(), data)

    async def state(self, domain: str) -> records.DomainState | None:
        await self._look()
        with translated():
            data = await self.client.hget(keys.domains(self._shard(domain)), domain)
        return None if data is None else records.unpack_domain(domain, data)

    async def delay_s(self, domain: str) -> float | None:
        """The delay that the fleet keeps between two fetches of a domain; None: not known yet."""
        state = await self.state(domain)
        return None if state is None else state.delay / 1000

    async def leases(self) -> list[tuple[bytes, records.LeaseEntry]]:
        """All that are out, with their url ids."""
        await self._look()
        found = []
        with translated():
            for shard in range(self.shards):
                async for url_id, data in self.client.hscan_iter(keys.leases(shard), count=500):
                    found.append((url_id, records.unpack_lease_entry(data)))
        return found

    async def groups(self) -> dict[str, tuple[int, str]]:
        """Groups of domains with one gate -> :func:`explain.group_gate`."""
        found = {}
        with translated():
            for shard in range(self.shards):
                async for name, data in self.client.hscan_iter(keys.groups(shard), count=500):
                    found[name.decode()] = state_text.group_gate(data)
        return found

    async def caps(self) -> dict[str, int]:
        """The fleet's caps as the last worker that had any left them, all shards
        together; empty = none."""
        sums = [0.0] * 4
        with translated():
            for shard in range(self.shards):
                data = await self.client.get(keys.caps(shard))
                if data is not None:
                    _, requests, size, _, most_requests, most_bytes = CAPS.unpack(data)
                    sums = [
                        a + b
                        for a, b in zip(
                            sums, (most_requests, requests, most_bytes, size), strict=True
                        )
                    ]
        names = ("requests_per_minute", "requests_now", "bytes_per_minute", "bytes_now")
        found = {name: int(value) for name, value in zip(names, sums, strict=True)}
        kinds = [kind for kind in ("requests", "bytes") if found[f"{kind}_per_minute"]]
        return {name: value for name, value in found.items() if name.partition("_")[0] in kinds}

    async def report(self) -> dict[str, Any]:
        """``domains``: a row each (largest queue first); ``totals``, ``classes`` and ``shards``:
        sums; ``workers``: id -> leases; ``caps``; ``stats``: counters since the frontier was made.
        Reads every domain: for people, not for loops."""
        now = await self.now_ms()
        leases = await self.leases()
        holders: dict[str, list[str]] = {}
        for _, entry in leases:
            holders.setdefault(entry.domain, []).append(entry.worker)
        groups = await self.groups()
        rows = [
            state_text.row(state, holders.get(state.domain, []), now, groups)
            async for state in self.states()
        ]
        rows.sort(key=lambda row: (-row["queued"], -row["waiting"], row["domain"]))
        counts = await self.counts()
        return {
            "now_ms": now,
            "totals": {
                "queued": counts.queued,
                "waiting": counts.waiting,
                "leased": counts.leased,
                "quarantined": counts.quarantined,
                "domains": counts.domains,
            },
            "classes": {
                name: _sums([row for row in rows if row["class"] == name], now) for name in CLASSES
            },
            "shards": {
                str(shard): _sums([row for row in rows if self._shard(row["domain"]) == shard], now)
                for shard in range(self.shards)
            },
            "workers": dict(Counter(entry.worker for _, entry in leases)),
            "caps": await self.caps(),
            "stats": await self.stats(),
            "domains": rows,
        }

    async def stats(self) -> dict[str, int]:
        await self._look()
        total: Counter[str] = Counter()
        with translated():
            for shard in range(self.shards):
                for name, value in (await self.client.hgetall(keys.stat(shard))).items():
                    word = name.decode()
                    if word.startswith("outcome:"):
                        word = f"outcome/{records.OUTCOMES[int(word[8:]) - 1]}"
                    total[word] += int(value)
        return dict(sorted(total.items()))

    async def record(self, url_id: bytes, domain: str) -> Record | None:
        """The record of a URL; ``None`` = it has none."""
        await self._look()
        shard = self._shard(domain)
        bucket, field = keys.finished(shard, url_id)
        with translated():
            pipe = self.client.pipeline(transaction=True)
            pipe.hget(keys.records(shard, domain), url_id)
            pipe.hget(keys.leases(shard), url_id)
            pipe.zscore(keys.deadlines(shard), url_id)
            pipe.zscore(keys.due(shard, domain), url_id)
            pipe.hget(bucket, field)
            pipe.hget(keys.quarantine(shard), url_id)
            queued, lease, deadline, due, done, quarantined = await pipe.execute()
        if queued is not None:
            record = records.unpack_queued(url_id, domain, queued)
            if lease is not None:
                entry = records.unpack_lease_entry(lease)
                record.state, record.worker, record.deadline_ms = (
                    "leased",
                    entry.worker,
                    int(deadline or 0),
                )
                record.on_trial = entry.on_trial
            elif due is not None:
                record.due_ms = int(due)
                if record.outcome not in (None, "RETRY", "CHALLENGE"):
                    record.state, record.next_visit_ms = "waiting", int(due)
            return record
        if done is None and self.layout.epoch:
            done = await self._elsewhere(shard, url_id)
        if done is not None:
            return await self._finished(shard, url_id, domain, done, quarantined)
        return None

    async def _elsewhere(self, shard: int, url_id: bytes) -> bytes | None:
        """A finished record that stayed in the shard which its domain left."""
        with translated():
            for other in range(self.shards):
                data = await self.client.hget(*keys.finished(other, url_id))
                if data is not None and other != shard:
                    return records.without_file(data)
        return None

    async def _finished(
        self, shard: int, url_id: bytes, domain: str, data: bytes, quarantined: bytes | None
    ) -> Record:
        record, raw = records.unpack_finished(url_id, domain, data)
        if raw is not None and record.last_visit_ms >= self.layout.changed_s * 1000:
            with translated():
                name = await self.client.hget(keys.files(shard), f"#{raw[0]}")
            record.raw_ref = None if name is None else f"{name.decode()}:{raw[1]}:{raw[2]}"
        if quarantined is not None:
            record.state = "quarantined"
            record.url = _quarantined(url_id, quarantined).url
        return record

    async def why(
        self, url_id: bytes, domain: str, archived: bytes | None = None
    ) -> dict[str, Any]:
        """Everything that explains what happens to a URL: ``text`` (a sentence), ``record``,
        ``domain`` (its row), ``found_on`` (URL of its parent, where that is still known),
        ``refused_full`` (offers that a full queue refused).

        :param archived: its record out of the archive, for when Redis has none any more
        """
        record = await self.record(url_id, domain)
        if record is None and archived is not None:
            record = await self._finished(self._shard(domain), url_id, domain, archived, None)
        state = await self.state(domain)
        now = await self.now_ms()
        row, waits, refused, site = None, "", 0, ""
        if state is not None:
            site = state.site
            holders = [entry.worker for _, entry in await self.leases() if entry.domain == domain]
            row = state_text.row(state, holders, now, await self.groups())
            waits = str(row["note"])
            offers = keys.offers(self._shard(domain), domain)
            with translated():
                refused = int(await self.client.hget(offers, url_id[:8]) or 0)
        found_on = None
        if record is not None and (record.parent or record.parent_start):
            found_on = await self._found_on(record, site)
        text = state_text.why(record, state, now, waits)
        if record is None and refused:
            text = (
                f"refused {refused} times, as the queue of its domain was full; the third time it"
                " is dropped"
            )
        return {
            "record": record,
            "domain": row,
            "text": text,
            "found_on": found_on,
            "refused_full": refused,
        }

    async def _found_on(self, record: Record, site: str) -> str | None:
        """The URL of the page that linked to it: on its domain, else on another of its site.
        Finished pages keep no URL, but those that lead to articles are never finished."""
        start = record.parent or record.parent_start
        others = [state.domain async for state in self.states() if site and state.site == site]
        for name in dict.fromkeys([record.domain, *others]):
            if records.robots_id(name).startswith(start):
                return f"https://{name}/robots.txt"
            with translated():
                if record.parent:
                    url = await self._url_of(name, record.parent)
                else:
                    url = await self._list_url_of(name, start)
            if url is not None:
                return url
        return None

    async def _url_of(self, domain: str, url_id: bytes) -> str | None:
        data = await self.client.hget(keys.records(self._shard(domain), domain), url_id)
        return None if data is None else records.unpack_queued(url_id, domain, data).url

    async def _list_url_of(self, domain: str, start: bytes) -> str | None:
        """Of a list whose url id begins so."""
        key = keys.records(self._shard(domain), domain)
        async for url_id, data in self.client.hscan_iter(key, count=1000):
            if url_id.startswith(start):
                found = records.unpack_queued(url_id, domain, data)
                if found.kind in LIST_KINDS:
                    return found.url
        return None

    async def robots(self, domain: str) -> RobotsEntry | None:
        """The robots.txt that the fleet shares; ``None`` = none was fetched yet."""
        with translated():
            entry: Any = await self.client.hgetall(keys.robots(self._shard(domain), domain))
        if not entry:
            return None
        return RobotsEntry(
            status=int(entry[b"status"]),
            body=entry[b"body"],
            fetched_ms=int(entry[b"fetched"]),
            version=int(entry[b"version"]),
        )

    async def audit(self, domain: str, last_ms: int = 86_400_000) -> Audit:
        """Whether the delay was kept between every two fetches: each gap in the log, and before
        that the sums of the hours, which reach back for 48."""
        now = await self.now_ms()
        since = now - last_ms
        shard = self._shard(domain)
        with translated():
            # Together, or a fetch could go from the log to the sums between the two answers.
            pipe = self.client.pipeline(transaction=True)
            pipe.lrange(keys.log(shard, domain), 0, -1)
            # By its name: redis-py hands the reader of hgetall's answer what it does not know, in a
            # transaction of a cluster.
            pipe.execute_command("HGETALL", keys.hours(shard, domain))
            entries, sums = await pipe.execute()
        kept = [LOG.read(entry) for entry in entries]
        log = [entry for entry in kept if entry.ended >= since]
        gaps = _gaps(log)
        violations = [gap for gap in gaps if gap["gap_ms"] < gap["delay_ms"]]
        log_reaches = len(log) < len(kept)
        hours = [] if log_reaches else _hours(sums, since, now)
        log_since = int(log[0].granted) if log else now
        least = [gap["gap_ms"] for gap in gaps] + [hour["least_gap_ms"] for hour in hours]
        return Audit(
            domain=domain,
            fetches=len(log) + sum(hour["fetches"] for hour in hours),
            since_ms=max(hours[0]["from_ms"], int(sums[b"from"])) if hours else log_since,
            is_whole=log_reaches or _sums_reach(sums, len(kept), since, now),
            least_gap_ms=min(least, default=None),
            violations=violations,
            log_fetches=len(log),
            log_since_ms=log_since,
            hours=hours,
            too_soon=len(violations) + sum(hour["too_soon"] for hour in hours),
        )

    async def fetches(self, url_id: bytes, domain: str) -> list[dict[str, int | None]]:
        """Its fetches among the last of its domain, oldest first: ``granted_ms``, ``ended_ms``,
        ``status`` (0: no answer, ``None``: the worker never said)."""
        with translated():
            entries = await self.client.lrange(keys.log(self._shard(domain), domain), 0, -1)
        found = []
        for entry in entries:
            if entry[LOG.size :] == url_id[:8]:
                end = LOG.read(entry)
                told = None if end.status == 65535 else end.status
                found.append(
                    {"granted_ms": int(end.granted), "ended_ms": int(end.ended), "status": told}
                )
        return found

    # ------------------------------------------------------------------ steering
    async def pause(self, domain: str) -> None:
        await self._verb(domain, "pause")

    async def resume(self, domain: str) -> None:
        """Ends a pause and a block; the delay since the last fetch still holds."""
        await self._verb(domain, "resume")

    async def block(self, domain: str, until_ms: int) -> None:
        """Nothing is fetched before that time by the frontier's clock; 0 = unblock."""
        await self._verb(domain, "block", until_ms)

    async def set_delay(self, domain: str, delay_ms: int | None) -> None:
        """A delay of the operator's own; it can only raise the site's. ``None`` takes it back."""
        await self._verb(domain, "delay", delay_ms or 0)

    async def set_class(self, domain: str, cls: str | None) -> None:
        """``None`` = that of sites.json again."""
        await self._verb(domain, "class", 9 if cls is None else CLASSES.index(cls))

    async def set_quota(
        self, domain: str, pages: int | None, window_s: int = 86_400, *, policy_pages: int = 0
    ) -> None:
        """So many fetches in ``window_s`` (0 = from now on, without an end), beginning now. What is
        over it stays queued until the window ends, or another quota is set. 0 pages = none at all;
        ``None`` = the policy's ``policy_pages`` a day again.

        :raises FrontierRefused: less than 0 or more than a counter holds
        """
        if pages is None:
            await self._verb(domain, "quota", policy_pages, 86_400, 0)
            return
        if not (0 <= pages < 2**32 and 0 <= window_s < 2**32):
            raise FrontierRefused(
                f"a quota of {pages} pages in {window_s} s; both must be 0 or more, under 4 billion"
            )
        await self._verb(domain, "quota", pages, window_s, 1)

    async def _verb(self, domain: str, verb: str, value: int = 0, *more: int) -> None:
        with translated():
            done = await self.scripts.run(
                "domain", keys.prefix(self._shard(domain)), domain, verb, value, *more
            )
        if not done:
            raise FrontierRefused(
                f"the frontier does not know the domain {domain}; `scrapy frontier report --top 0`"
                " lists its domains"
            )

    async def purge(self, domain: str) -> int:
        """Removes what is queued and waiting; leased URLs stay. Returns how many went.

        :raises FrontierRefused: the frontier does not know the domain
        """
        removed, left = 0, 1
        while left:
            with translated():
                answer = await self.scripts.run(
                    "purge", keys.prefix(self._shard(domain)), domain, BATCH
                )
            if answer is None:
                raise FrontierRefused(
                    f"the frontier does not know the domain {domain}; `scrapy frontier report --top"
                    " 0` lists its domains"
                )
            n, left = answer
            removed += n
            if not n:
                break
        return removed

    async def quarantined(self, domain: str | None = None, limit: int = 1000) -> list[Quarantined]:
        found: list[Quarantined] = []
        with translated():
            for shard in range(self.shards):
                async for url_id, data in self.client.hscan_iter(keys.quarantine(shard), count=500):
                    entry = _quarantined(url_id, data)
                    if domain is None or entry.domain == domain:
                        found.append(entry)
                    if len(found) >= limit:
                        return found
        return found

    async def replay(self, entries: Iterable[Quarantined]) -> int:
        """Queues them again with all their tries."""
        return await self._quarantine("replay", entries)

    async def drop(self, entries: Iterable[Quarantined]) -> int:
        """Forgets the bytes; the URLs stay finished as FAILED."""
        return await self._quarantine("drop", entries)

    async def _quarantine(self, verb: str, entries: Iterable[Quarantined]) -> int:
        by_shard: dict[int, list[bytes]] = {}
        for entry in entries:
            by_shard.setdefault(self._shard(entry.domain), []).append(entry.url_id)
        n = 0
        for shard, ids in by_shard.items():
            for start in range(0, len(ids), BATCH):
                packed = msgpack.packb(ids[start : start + BATCH], use_bin_type=False)
                with translated():
                    n += await self.scripts.run("quarantine", keys.prefix(shard), verb, packed)
        return n

    async def set_clock(self, factor: float, offset_ms: int | None = None) -> None:
        """See Frontier.set_clock.

        :raises FrontierRefused: the factor is out of bounds, or the frontier is not empty,
            or has domains that are not in 127.0.0.0/8
        """
        if not 0 < factor <= 5000:
            raise FrontierRefused(
                f"a clock of {factor} times the real one; it must be above 0 and at most 5000"
            )
        if offset_ms is None:
            offset_ms = round(time.time() * 1000 * (1 - factor))
        with translated():
            for shard in range(self.shards):
                held, leased, public = await self.scripts.run("free", keys.prefix(shard))
                if held or leased or public:
                    raise FrontierRefused(
                        "the clock can be set only on an empty frontier whose domains are all in"
                        f" 127.0.0.0/8: there are {held} URLs queued, {leased} leased, {public}"
                        " domains elsewhere"
                    )
            for shard in range(self.shards):
                if not await self.scripts.run(
                    "set_clock", keys.prefix(shard), repr(float(factor)), offset_ms
                ):
                    raise FrontierRefused(
                        "the frontier was filled while its clock was being set; empty it and repeat"
                    )

    def _shard(self, domain: str) -> int:
        return self.layout.of(domain)


async def layout_of(client: Redis) -> Layout:
    """The one that is in use; one shard for a frontier that is empty."""
    with translated():
        return await read_layout(client)


def _quarantined(url_id: bytes, data: bytes) -> Quarantined:
    since_s, domain_size, reason_size = QUARANTINE.unpack_from(data)
    at = QUARANTINE.size
    domain = data[at : at + domain_size].decode()
    reason = data[at + domain_size : at + domain_size + reason_size].decode("utf-8", "replace")
    try:
        url = records.unpack_queued(url_id, domain, data[at + domain_size + reason_size :]).url
    except records.BadRecord:
        url = None
    return Quarantined(url_id, domain, url, reason, since_s * 1000)


def _gaps(log: list[Any]) -> list[dict[str, int]]:
    """Between every two fetches of a log, oldest first."""
    return [
        {
            "at_ms": int(after.granted),
            "gap_ms": int(after.granted - before.ended),
            "delay_ms": before.delay,
        }
        for before, after in pairwise(log)
    ]


def _hours(sums: dict[bytes, bytes], since: int, now: int) -> list[dict[str, int]]:
    """The sums that belong to the time from ``since``, oldest first. What is over 48 hours old has
    not been written over yet, and is not complete."""
    first = max(since // HOUR_MS, now // HOUR_MS - HOURS_KEPT + 1)
    found = sorted(HOUR.unpack(data) for name, data in sums.items() if name != b"from")
    return [
        {
            "from_ms": hour * HOUR_MS,
            "fetches": fetches,
            "least_gap_ms": gap,
            "delay_ms": delay,
            "too_soon": too_soon,
        }
        for hour, fetches, gap, delay, too_soon in found
        if hour >= first
    ]


def _sums_reach(sums: dict[bytes, bytes], logged: int, since: int, now: int) -> bool:
    """Whether nothing that came after ``since`` is missing before the oldest entry of the log."""
    if not sums:
        # A full log may have lost entries before there were sums, or before a purge.
        return logged < FrontierConfig().log_entries
    begin = int(sums[b"from"])
    oldest = (now // HOUR_MS - HOURS_KEPT + 1) * HOUR_MS
    return since >= max(begin, oldest)


def _sums(rows: list[dict[str, Any]], now: int) -> dict[str, int]:
    """Of a class or a shard: URLs, and how many domains may be fetched now, wait for their
    time, or are held."""
    sums = {name: sum(row[name] for row in rows) for name in ("queued", "waiting", "leased")}
    sums["domains"] = len(rows)
    sums["ready"] = sum(
        row["next_ms"] is not None and row["next_ms"] <= now and not row["note"] for row in rows
    )
    sums["held"] = sum(bool(row["note"]) for row in rows)
    return sums
