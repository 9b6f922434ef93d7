"""Random interleavings of everything that workers, their deaths, Redis and time can do,
judged after each.

``FRONTIER_SEED`` repeats one run, ``FRONTIER_RUNS`` makes more of them.
"""

from __future__ import annotations

import os
import random
from typing import Any

import pytest

from newscrawler.frontier import keys, records
from newscrawler.frontier.queue import (
    Ack,
    DomainPolicy,
    Fetched,
    Frontier,
    FrontierUnavailable,
    Lease,
    RobotsAnswer,
)
from newscrawler.frontier.seen import LocalSeen
from newscrawler.items import Kind, Outcome
from tests.redis.helpers import advance, check, frontier, link

#: Everything that scripts do, in any order.
REDIS_VERSIONS = ("6.2", "7")

DOMAINS = tuple(f"d{i}.vn" for i in range(5))
OUTCOMES = list(Outcome)
KINDS = [Kind.ARTICLE, Kind.ARTICLE, Kind.PAGE, Kind.SECTION, Kind.HOME, Kind.FEED]
RUNS = int(os.environ.get("FRONTIER_RUNS", "6"))
#: In make test, and in make chaos: after each all that Redis holds is looked at.
STEPS, MANY_STEPS = 120, 250
FLOOR_MS = 1000


class Archive:
    """A dictionary that outlives the workers, and is away one time in twenty."""

    def __init__(self, rng: random.Random) -> None:
        self.rng, self.held = rng, dict[bytes, bytes]()

    async def put(self, found: Any) -> None:
        if self.rng.random() < 0.05:
            raise OSError("away")
        self.held.update(found)

    async def get(self, url_ids: Any) -> dict[bytes, bytes]:
        if self.rng.random() < 0.05:
            raise OSError("away")
        return {i: self.held[i] for i in url_ids if i in self.held}


class World:
    """Workers with what they hold, and the site's side of the story."""

    def __init__(self, r: Any, rng: random.Random, shards: int) -> None:
        self.r, self.rng, self.shards = r, rng, shards
        self.workers: list[Frontier] = []
        self.held: dict[str, list[Lease]] = {}
        self.late: list[Lease] = []  # of dead workers: their acks may still come
        self.fetching: dict[str, Lease] = {}  # domain -> what a site sees being fetched
        self.last_end: dict[str, int] = {}  # domain -> clock when its last fetch ended
        self.fences: dict[bytes, int] = {}
        self.accepted: set[bytes] = set()  # url ids that add or step said were added or seen
        self.gone: set[bytes] = set()  # purged
        self.isolated_retries = 0

    async def open(self) -> None:
        self.archive = Archive(self.rng)
        self.changes: dict[str, Any] = {
            "archive": self.archive,
            "finished_limit": self.rng.choice([0, 1]),
            "floor_ms": FLOOR_MS,
            "domains": DOMAINS,
            "shards": self.shards,
            "obey_robots": self.rng.random() < 0.5,
            "queue_limit": self.rng.choice([5, 1000]),
            "seen_bits": self.rng.choice([3, 32]),
            "seen_buckets": 1,
            "seen_per_bucket": 20,
            "max_tries": 3,
            "poison_candidate_after": 1,
            "max_isolated_retries": 2,
            "call_ms": self.rng.choice([0, 60_000]),  # each call ends as early as it may, or none
        }
        for i in range(3):
            await self.worker(f"w{i}")

    async def worker(self, name: str) -> None:
        self.workers = [w for w in self.workers if w.worker != name]
        made = await frontier(self.r, name, **self.changes)
        if self.rng.random() < 0.3:  # a local filter that knows nearly everything
            made.local = LocalSeen(links=2, capacity=3, reset_s=3600, error_rate=0.3)
            for i in range(5):
                made.local.add(f"https://d0.vn/before/{i}")
        made.look_from = self.rng.choice(
            [0, 32]
        )  # whether what is known is found out before it is offered
        self.workers.append(made)
        self.held.setdefault(name, [])

    def pick(self) -> Frontier:
        return self.rng.choice(self.workers)

    def links(self, n: int) -> list[Any]:
        return [
            link(
                f"/{self.rng.randrange(60)}", self.rng.choice(DOMAINS), kind=self.rng.choice(KINDS),
                band=self.rng.randrange(3), score=self.rng.randrange(-5, 5), revisit=self.rng.random() < 0.2,
            )
            for _ in range(n)
        ]  # fmt: skip

    async def add(self) -> None:
        worker = self.pick()
        found = self.links(self.rng.randrange(1, 12))
        batch = [x for x in found if x.revisit or not worker.seen_local(x.url, x)]
        try:
            result = await worker.add(batch)
        except FrontierUnavailable:  # the archive is away: a part may have been added
            return
        assert result.added + result.seen + sum(result.refused.values()) == len(batch)
        if not result.refused:
            self.accepted |= {x.url_id for x in batch}

    async def step(self) -> None:
        worker = self.pick()
        held = self.held[worker.worker]
        self.rng.shuffle(held)
        ending = [held.pop() for _ in range(self.rng.randrange(0, min(4, len(held)) + 1))]
        told = [x for x in held + ending if self.rng.random() < 0.5]
        fetched = [
            Fetched(x, self.rng.random() * 500, self.rng.choice([200, 200, 404, 500, 503, 0]))
            for x in told
        ]
        acks = [self.ack(x) for x in ending]
        now = await worker.operator.now_ms()
        for lease in told + ending:
            self.end(lease, now)
        if worker.mover is not None:
            worker.mover._due = 0.0  # every round moves
        k, is_again = self.rng.randrange(0, 5), False
        while True:
            try:
                step = await worker.step(k, acks, fetched)
                break
            except FrontierUnavailable:  # the archive is away: the lease loop sends the same again
                await check(self.r, self.shards)
                is_again = True
        refused = set(step.rejected) & {x.url_id for x in ending if x not in self.late}
        assert is_again or not refused, "a right ack was refused"
        if not step.added.refused:
            self.accepted |= {
                x.url_id for a in acks for x in a.links if a.lease.url_id not in step.rejected
            }
        for lease in step.leases:
            self.grant(lease, step.now_ms)
        held += step.leases

    def ack(self, lease: Lease) -> Ack:
        outcome = self.rng.choice(OUTCOMES)
        ack = Ack(
            lease, outcome, "test", 200, digest=b"x" * 16, links=self.links(self.rng.randrange(4))
        )
        if lease.kind == Kind.ROBOTS:
            ack.robots = RobotsAnswer(self.rng.choice([200, 404, 500]), b"r")
        elif outcome is Outcome.RETRY and self.rng.random() < 0.3:
            ack.moved_to = f"https://{self.rng.choice(DOMAINS)}/moved/{self.rng.randrange(9)}"
        return ack

    def grant(self, lease: Lease, now: int) -> None:
        """What a site would see: never two at once, never too early."""
        assert lease.fence > self.fences.get(lease.url_id, 0), "the fence must grow"
        self.fences[lease.url_id] = lease.fence
        assert lease.domain not in self.fetching, (
            f"{lease.domain} is fetched twice at the same time"
        )
        early = self.last_end.get(lease.domain, 0) + FLOOR_MS - now
        assert early <= 0, f"{lease.domain} was opened {early} ms too early"
        self.fetching[lease.domain] = lease

    def end(self, lease: Lease, now: int) -> None:
        if self.fetching.get(lease.domain) is lease:
            del self.fetching[lease.domain]
            self.last_end[lease.domain] = now

    async def give_back(self) -> None:
        worker = self.pick()
        held = self.held[worker.worker]
        back = [x for x in held if self.fetching.get(x.domain) is x and self.rng.random() < 0.5]
        for lease in back:
            held.remove(lease)
            del self.fetching[lease.domain]  # never started
        assert await worker.give_back(back) == len(back)

    async def renew(self) -> None:
        worker = self.pick()
        assert await worker.renew(self.held[worker.worker]) == []

    async def isolated_retry(self) -> None:
        worker = self.pick()
        for lease in self.held[worker.worker]:
            if worker.is_poison_candidate(lease):
                assert await worker.begin_isolated_retry(lease)
                self.isolated_retries += 1

    async def die(self) -> None:
        """kill -9, then either a restart under the same name or leases that run out."""
        worker = self.pick()
        lost = self.held[worker.worker]
        self.held[worker.worker] = []
        self.late += lost
        now = await worker.operator.now_ms()
        for lease in lost:
            self.end(lease, now)
        if self.rng.random() < 0.5:
            await self.worker(worker.worker)
            return
        for lease in lost:
            shard = keys.shard_of(lease.domain, self.shards)
            await self.r.zadd(keys.deadlines(shard), {lease.url_id: 1})
        await self.worker(worker.worker + "x" if len(worker.worker) < 6 else worker.worker[:2])
        self.workers = [w for w in self.workers if w is not worker]

    async def late_ack(self) -> None:
        if not self.late:
            return
        lease = self.late.pop()
        # Not yet taken back: the ack of a silent worker is as good as any.
        entry = await self.r.hget(
            keys.leases(keys.shard_of(lease.domain, self.shards)), lease.url_id
        )
        is_its = entry is not None and records.unpack_lease_entry(entry).fence == lease.fence
        worker = self.pick()
        worker.local.unverified.clear()  # a call of its own might fail on the archive, and be sent again
        step = await worker.step(0, [Ack(lease, Outcome.DONE, robots=RobotsAnswer(404))])
        assert (step.rejected == []) == is_its, "a late ack must lose to the new lease"

    async def operator(self) -> None:
        worker, domain = self.pick(), self.rng.choice(DOMAINS)
        verb = self.rng.choice(["pause", "resume", "resume", "class", "policy", "purge", "replay"])
        if verb == "pause":
            await worker.operator.pause(domain)
        elif verb == "resume":
            await worker.operator.resume(domain)
        elif verb == "class":
            await worker.operator.set_class(domain, self.rng.choice(["high", "mid", "low", None]))
        elif verb == "policy":
            enabled = self.rng.random() < 0.8
            await worker.put_domains([DomainPolicy(domain, domain, "mid", FLOOR_MS, enabled)])
        elif verb == "purge" and self.rng.random() < 0.2:
            before = await check(self.r, self.shards)
            await worker.operator.purge(domain)
            self.gone |= set(before) - set(await check(self.r, self.shards))
        elif verb == "replay":
            await worker.operator.replay(await worker.operator.quarantined())

    async def verify(self) -> None:
        """What only the local filters knew is in the frontier in the end, or was
        refused and counted."""
        for worker in self.workers:
            hidden, refused = list(worker.local.unverified.values()), 0
            for _ in range(100):
                try:
                    step = await worker.step(0)
                except FrontierUnavailable:
                    continue
                refused += sum(step.added.refused.values())
                if not worker.local.unverified:
                    break
            places = await check(self.r, self.shards)
            lost = [
                x for x in hidden if x.url_id not in places and x.url_id not in self.archive.held
            ]
            assert len(lost) <= refused, f"lost: {[x.url for x in lost]}"

    async def pass_time(self) -> None:
        ms = self.rng.choice([1, 500, 1000, 60_000, 3_600_000, 90_000_000])
        for shard in range(self.shards):
            await advance(self.r, ms, shard)


@pytest.mark.parametrize("steps", [STEPS, pytest.param(MANY_STEPS, marks=pytest.mark.chaos)])
@pytest.mark.parametrize("run", range(RUNS))
async def test_invariants_hold_under_any_interleaving(r: Any, run: int, steps: int) -> None:
    seed = int(os.environ.get("FRONTIER_SEED", run + 1))
    print(f"FRONTIER_SEED={seed}")
    rng = random.Random(seed)
    shards = rng.choice([1, 1, 3])
    if shards > 1:  # each shard has its own clock key; they must agree
        for shard in range(shards):
            await advance(r, 0, shard)
    world = World(r, rng, shards)
    await world.open()
    actions = [
        world.add,
        world.step,
        world.give_back,
        world.renew,
        world.isolated_retry,
        world.die,
        world.late_ack,
        world.operator,
        world.pass_time,
    ]
    leased = 0
    for _ in range(steps):
        (action,) = rng.choices(actions, [4, 12, 1, 1, 2, 1, 1, 1, 4])
        await action()
        places = await check(r, shards)
        leased = max(leased, sum(p == "leased" for p in places.values()))
        missing = world.accepted - world.gone - set(places) - set(world.archive.held)
        assert not missing, f"lost: {[i.hex() for i in missing]}"
    print(f"isolated retries {world.isolated_retries}")
    assert leased and len(world.fences) > 3 and len(world.accepted) > 10, "nothing happened"
    await world.verify()
