"""Another number of shards while the frontier is in use: nothing is lost, doubled or hurried."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import msgpack
import pytest

from newscrawler.frontier import keys, operator, reshard
from newscrawler.frontier.found import FoundSeed, FoundSeeds
from newscrawler.frontier.layout import PLACES, Layout
from newscrawler.frontier.layout import read as read_layout
from newscrawler.frontier.queue import (
    Ack,
    DomainPolicy,
    Fetched,
    Frontier,
    FrontierRefused,
    FrontierUnavailable,
    RobotsAnswer,
)
from newscrawler.frontier.reshard import Resharder
from newscrawler.items import Kind, Link, Outcome
from newscrawler.store.finished import LocalFinished
from tests.redis.helpers import advance, check, done, drain, ended, freeze, frontier, link, links

NAMES = tuple(f"d{i}.vn" for i in range(24))


@pytest.fixture(autouse=True)
def layout_is_looked_at_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operator, "LOOK_AGAIN_S", 0.0)


def resharder(client: Any, step_urls: int = 25) -> Resharder:
    return Resharder(client, step_urls=step_urls, pause_s=0)


async def filled(r: Any, **changes: Any) -> Frontier:
    """Domains in every state: queued, waiting, retries, leased, finished, in quarantine."""
    f = await frontier(r, domains=NAMES, max_tries=1, seen_buckets=64, **changes)
    await f.add([one for name in NAMES for one in links(6, name)])
    first = (await f.step(24)).leases
    await f.step(0, [done(x) for x in first[:12]], [ended(x) for x in first])
    retries = [done(x, Outcome.FAILED, reason="http_500", status=500) for x in first[12:16]]
    visited = [done(x, next_visit_ms=9_000_000_000_000) for x in first[16:20]]
    await f.step(0, [*retries, *visited])
    return f


async def places(r: Any) -> dict[bytes, str]:
    layout = await read_layout(r)
    assert layout.is_whole
    return await check(r, layout.shards)


@pytest.mark.long
async def test_counts_and_invariants_are_those_of_before(r: Any) -> None:
    f = await filled(r)
    before, counts = await places(r), await f.counts()
    assert counts.leased and counts.waiting and counts.quarantined == 4
    for shards in (3, 2, 5, 1):
        told: list[str] = []
        run = resharder(r)
        run.say = told.append
        found = await run.run(shards)
        assert found.before == found.after == counts
        assert found.steps >= 3 and told, "in steps"
        assert await places(r) == before
        layout = await read_layout(r)
        assert layout.shards == shards
        for name in NAMES:
            assert await r.hexists(keys.domains(layout.of(name)), name)
        gone = [key async for key in r.scan_iter(f"{keys.prefix(shards)}:*")]
        held = msgpack.unpackb(await r.get("{f0}:seen"), strict_map_key=False)["live"]
        assert len({gen["u"] for gen in held[:-1]}) == len(held[:-1]), "a filter came twice"
        assert set(gone) <= {f"{keys.prefix(shards)}:state".encode()}
    assert await f.counts() == counts  # by a worker that knew nothing of it


async def test_a_worker_notices_and_its_leases_hold(r: Any) -> None:
    f = await filled(r)
    held = list(f._held.values())
    assert held
    await resharder(r).run(3)
    with pytest.raises(FrontierUnavailable, match="reshard"):
        await f.step(0, [done(x) for x in held])
    step = await f.step(0, [done(x) for x in held], [ended(x) for x in held])
    assert not step.rejected and f.layout.shards == 3
    assert not await r.hlen(keys.leases(0)) + await r.hlen(keys.leases(1))
    rest = await drain(f)
    assert len(rest) == len(set(rest)) > 50
    assert (await f.counts()).queued == 0


async def test_who_starts_later_takes_the_shards_that_redis_names(r: Any) -> None:
    await filled(r)
    await resharder(r).run(3)
    late = await frontier(r, "late", domains=())  # FRONTIER_SHARDS is 1 still
    assert late.layout.shards == 3
    assert len((await late.step(8)).leases) == 8


async def test_gate_robots_and_log_go_with_the_domain(r: Any) -> None:
    names = NAMES[:8]
    f = await frontier(r, domains=names, obey_robots=True, floor_ms=5_000)
    await freeze(r)
    await f.add([one for name in names for one in links(3, name)])
    robots = (await f.step(8)).leases
    rules = RobotsAnswer(200, b"User-agent: *\nDisallow: /x", 7.0)
    await f.step(0, [done(x, robots=rules) for x in robots], [ended(x) for x in robots])
    opens = {name: (await f.operator.state(name)).ready_at for name in names}  # type: ignore[union-attr]
    await resharder(r).run(3)
    for shard in (1, 2):
        assert await r.hgetall(keys.clock(shard)) == await r.hgetall(keys.clock(0))
    with pytest.raises(FrontierUnavailable):
        await f.robots(NAMES[1] if Layout.of_count(3).of(NAMES[1]) else NAMES[2])
    assert (await f.step(8)).leases == []
    for name in names:
        entry, state = await f.robots(name), await f.operator.state(name)
        assert entry is not None and entry.body == rules.body
        assert state is not None and state.ready_at == opens[name]
        assert (await f.operator.audit(name)).fetches == 1
    for shard in range(3):
        await advance(r, 7_002, shard)
    assert len((await f.step(8)).leases) == 8


async def test_a_domain_that_gave_way_is_still_among_those(r: Any) -> None:
    """Else its second looks would wait for an hour at most in the new shard."""
    f = await frontier(r, domains=NAMES)
    await f.add([one for name in NAMES for one in links(1, name)])
    await r.zadd(keys.later(0), dict.fromkeys(NAMES, 7))
    await resharder(r).run(3)
    for shard in range(3):
        here = {name.encode() for name in NAMES if Layout.of_count(3).of(name) == shard}
        assert here and set(await r.zrange(keys.later(shard), 0, -1)) == here


@pytest.mark.parametrize("with_archive", [False, True])
async def test_what_was_finished_is_known_in_its_new_shard(
    r: Any, tmp_path: Any, with_archive: bool
) -> None:
    archive = LocalFinished(tmp_path / "finished.db") if with_archive else None
    f = await frontier(r, domains=NAMES, archive=archive, finished_limit=10**6, seen_buckets=64)
    known = [one for name in NAMES for one in links(4, name)]
    await f.add(known)
    assert len(await drain(f)) == len(known)
    for shards in (3, 2):
        await resharder(r, 5).run(shards)
        other = await frontier(
            r, f"other{shards}", domains=(), archive=archive, finished_limit=10**6
        )
        assert (await other.add(known[:40])).seen == 40
        (lease,) = await _one(other, f"/page{shards}")
        step = await other.step(0, [done(lease, links=known)], [ended(lease)])
        assert step.added.added == 0 and step.added.seen == len(known)
        assert (await other.counts()).queued == 0
        assert "failed" not in str(await other.record(known[0].url_id, known[0].domain))
    found = await places(r)
    assert len(found) == len(known) + 2 and set(found.values()) == {"finished"}
    if archive is not None:
        await archive.close()


async def _one(f: Frontier, path: str) -> list[Any]:
    await f.add([link(path, NAMES[0])])
    return (await f.step(1)).leases


async def test_failed_url_comes_again_in_its_new_shard_when_its_time_has_come(r: Any) -> None:
    f = await frontier(r, domains=NAMES, max_tries=1, failed_due_ms=1_000)
    wanted = [one for name in NAMES for one in links(1, name)]
    await freeze(r)
    await f.add(wanted)
    leases = (await f.step(24)).leases
    acks = [done(x, Outcome.FAILED, reason="http_500", status=500) for x in leases]
    await f.step(0, acks, [ended(x) for x in leases])
    await resharder(r).run(3)
    other = await frontier(r, "other", domains=(), max_tries=1, failed_due_ms=1_000)
    assert (await other.add(wanted)).added == 0
    for shard in range(3):
        await advance(r, 3_000, shard)
    other.local.clear()
    assert (await other.add(wanted)).added == len(wanted)
    assert (await other.counts()).quarantined == 0


class Killed(BaseException):
    """As kill -9 between two commands."""


class Mortal:
    """A client that dies at its n-th command or pipeline."""

    def __init__(self, client: Any, left: int) -> None:
        self._client, self.left = client, left

    def _count(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise Killed

    def __getattr__(self, name: str) -> Any:
        real = getattr(self._client, name)
        if name in ("pipeline", "hscan_iter", "scan_iter"):
            self._count()
            return real
        if not callable(real):
            return real

        async def call(*args: Any, **options: Any) -> Any:
            self._count()
            return await real(*args, **options)

        return call


async def test_killed_anywhere_it_goes_on_and_nothing_differs(r: Any) -> None:
    f = await filled(r)
    before, counts = await places(r), await f.counts()
    whole = Mortal(r, 10**9)
    await resharder(whole).run(3)
    commands = 10**9 - whole.left
    assert commands > 200 and await places(r) == before
    await resharder(r).run(1)
    rng = random.Random(commands)
    for shards in (3, 2, 1, 4, 2):
        killed = 0
        for _ in range(5):
            try:
                await resharder(Mortal(r, rng.randrange(commands))).run(shards)
            except Killed:
                killed += 1
            await r.delete(keys.RESHARD)  # it runs out by itself
        await resharder(r).run(shards)
        assert await places(r) == before, f"{shards} shards, killed {killed} times"
        assert await f.counts() == counts
        late = await frontier(r, f"late{shards}", domains=())
        assert (await late.step(0)).leases == []  # each shard answers
    assert len((await late.step(4)).leases) == 4


@pytest.mark.parametrize("shards", [3, 1])
async def test_killed_before_the_last_shards_are_open(r: Any, shards: int) -> None:
    """Meta says already that all is done, and the shards refuse everybody."""
    await filled(r)
    await resharder(r).run(2)
    run = resharder(r)
    really = run._open

    async def killed() -> None:
        if run._layout.is_whole and run._layout.shards == shards:
            raise Killed
        await really()

    run._open = killed  # type: ignore[method-assign]
    with pytest.raises(Killed):
        await run.run(shards)
    with pytest.raises(FrontierUnavailable, match="reshard"):
        await frontier(r, "late", domains=())
    await resharder(r).run(shards)
    late = await frontier(r, "late", domains=())
    assert len((await late.step(4)).leases) == 4


async def finished_elsewhere(r: Any, **changes: Any) -> tuple[list[Link], dict[bytes, str]]:
    """Pages of all domains were read, then three shards became of one: their records are in the
    first."""
    f = await frontier(r, domains=NAMES, seen_buckets=64, **changes)
    known = [one for name in NAMES for one in links(20, name)]
    await f.add(known)
    assert len(await drain(f)) == len(known)
    await resharder(r, 10**6).run(3)
    return known, await places(r)


@pytest.mark.parametrize("look_from", [0, 10**9])  # before they are offered, after it
async def test_a_call_that_got_late_deletes_no_record_that_it_did_not_decide_on(
    r: Any, look_from: int
) -> None:
    known, before = await finished_elsewhere(r)
    late = await frontier(r, "late", domains=(), call_ms=0)
    late.look_from = look_from
    for again in range(2):
        late.local.clear()
        result = await late.add(known)
        assert (result.added, result.seen) == (0, len(known)), f"offered {again + 1} times"
    assert await places(r) == before


async def test_a_refused_link_leaves_its_record_where_it_is(r: Any) -> None:
    known, before = await finished_elsewhere(r)
    f = await frontier(r, "other", domains=())
    await f.put_domains([DomainPolicy(name, name, "mid", 0, enabled=False) for name in NAMES])
    assert (await f.add(known)).seen < len(known)
    assert await places(r) == before
    await f.put_domains([DomainPolicy(name, name, "mid", 0) for name in NAMES])
    assert (await f.add(known)).added == 0


async def test_a_failed_call_is_repeated_with_the_same_records(
    r: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    known, before = await finished_elsewhere(r)
    f = await frontier(r, "other", domains=())
    really = f._offer

    async def away(*args: Any, **options: Any) -> bytes:
        monkeypatch.setattr(f, "_offer", really)
        raise FrontierUnavailable("Redis does not answer")

    f.look_from = 0  # the first call looks, the next one asks the other shards
    for _ in range(3):
        monkeypatch.setattr(f, "_offer", away)
        with pytest.raises(FrontierUnavailable):
            await f.add(known)
    result = await f.add(known)
    assert (result.added, result.seen) == (0, len(known))
    assert await places(r) == before


async def test_a_url_that_left_keeps_its_record_under_the_other_domain(r: Any) -> None:
    known, before = await finished_elsewhere(r)
    layout = await read_layout(r)
    gone = [one for one in known if layout.of(one.domain) != 0]
    for one in gone:  # as the ack of a redirect notes it
        moved = f"{keys.prefix(layout.of(one.domain))}:moved"
        await r.hset(moved, one.url_id + one.domain.encode(), b"")
    f = await frontier(r, "other", domains=())
    f.look_from = 0
    assert (await f.add(gone)).seen == len(gone)
    assert await places(r) == before
    for one in gone[:5]:
        assert await r.hexists(*keys.finished(0, one.url_id))


async def crawl(f: Frontier, got: list[str], total: int, rng: random.Random) -> None:
    """A worker that fetches until all are done; a frontier that is closed is asked again."""
    acks: list[Ack] = []
    fetched: list[Fetched] = []
    until = asyncio.get_running_loop().time() + 120
    while len(got) < total or acks:
        assert asyncio.get_running_loop().time() < until, f"{len(got)} of {total}"
        try:
            step = await f.step(rng.randrange(1, 6), acks, fetched)
        except FrontierUnavailable:
            await asyncio.sleep(0.01)
            continue
        # An ack may come twice, when only one shard had taken the first: then it is refused.
        got += [x.url for x in step.leases]
        acks = [
            done(x, links=[link(f"/more{i}", rng.choice(NAMES)) for i in range(2)])
            for x in step.leases
        ]
        fetched = [ended(x) for x in step.leases]
        await asyncio.sleep(0)


async def crawled_meanwhile(clients: list[Any], per_domain: int) -> None:
    """Four workers over 24 domains with a delay, while the shards go 1 -> 3 -> 2."""
    first = await frontier(clients[0], "w0", domains=NAMES, floor_ms=30)
    wanted = [one for name in NAMES for one in links(per_domain, name)]
    await first.add(wanted)
    total = len(wanted) + 2 * len(NAMES)
    workers = [
        first,
        *[await frontier(c, f"w{i}", domains=()) for i, c in enumerate(clients[1:], 1)],
    ]
    got: list[str] = []
    tasks = [
        asyncio.create_task(crawl(f, got, total, random.Random(i))) for i, f in enumerate(workers)
    ]
    try:
        for shards in (3, 2):
            run = resharder(clients[-1], 40)
            run.pause_s = 0.05
            await run.run(shards)
            assert len(got) < total, "the crawl was over before the shards were changed"
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
    assert len(got) == len(set(got)) == total
    other = await frontier(clients[0], "judge", domains=())
    for name in NAMES:
        audit = await other.operator.audit(name)
        assert audit.fetches == per_domain + 2 and audit.too_soon == 0, name
    counts = await other.counts()
    assert (counts.queued, counts.leased, counts.domains) == (0, 0, len(NAMES))


@pytest.mark.long
async def test_workers_fetch_each_url_once_and_politely_meanwhile(r: Any) -> None:
    await crawled_meanwhile([r] * 4, 25)
    found = await places(r)
    assert set(found.values()) == {"finished"} and len(found) == 24 * 27


async def test_an_announced_list_is_written_by_no_old_map(r: Any) -> None:
    f = await filled(r)
    found = FoundSeeds(r, lambda: f.layout)
    first, second = (FoundSeed(f"https://d1.vn/{n}.rss", Kind.FEED, 1) for n in range(2))
    assert await found.note(NAMES[1], [first]) == [first]
    await resharder(r).run(3)
    with pytest.raises(FrontierUnavailable, match="reshard"):
        await found.note(NAMES[1], [second])
    with pytest.raises(FrontierUnavailable):
        await f.step(0)
    await f.step(0)
    assert await found.note(NAMES[1], [first, second]) == [second]
    assert await found.of(NAMES[1]) == [first, second]


async def test_groups_and_wrong_numbers_are_refused(r: Any) -> None:
    f = await frontier(r)
    await f.put_domains([DomainPolicy("a.vn", "a", "mid", 0, group="one")])
    with pytest.raises(FrontierRefused, match="group"):
        await resharder(r).run(2)
    assert (await read_layout(r)).epoch == 0
    with pytest.raises(FrontierRefused, match="1 to 1024"):
        await resharder(r).run(0)


async def test_one_at_a_time(r: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    await frontier(r)
    monkeypatch.setattr(reshard, "WAIT_S", 0.1)
    await r.set(keys.RESHARD, "another")
    with pytest.raises(FrontierRefused, match="is at work"):
        await resharder(r).run(2)
    assert await r.get(keys.RESHARD) == b"another"


async def test_a_closed_frontier_is_waited_for(r: Any) -> None:
    """A reshard that was killed within a step: workers wait, those that start as well."""
    f = await filled(r)
    mortal = Mortal(r, 10**9)
    run = resharder(mortal)

    async def killed(*_: Any) -> Any:
        raise Killed

    run._copy = killed  # type: ignore[method-assign]
    with pytest.raises(Killed):
        await run.run(3)
    for _ in range(2):
        with pytest.raises(FrontierUnavailable, match="scrapy frontier reshard"):
            await f.step(1)
            await f.step(1)
    with pytest.raises(FrontierUnavailable, match="scrapy frontier reshard"):
        await frontier(r, "late", domains=())
    await resharder(r).run(3)
    assert len((await f.step(4)).leases) == 4


def test_map_follows_the_cursor() -> None:
    names = [f"site{i}.vn" for i in range(500)]
    old, new = Layout.of_count(3), Layout.of_count(5)
    half = Layout(5, 3, 5, PLACES // 2, 7)
    moved = sum(half.of(name) == new.of(name) != old.of(name) for name in names)
    assert all(half.of(name) in (old.of(name), new.of(name)) for name in names)
    assert 100 < moved < 300
    assert all(Layout(5, 3, 5, PLACES, 8).of(name) == new.of(name) for name in names)
    assert all(Layout(5, 3, 5, 0, 6).of(name) == old.of(name) for name in names)


async def test_groups_are_kept_where_refused_and_their_domains_move_without_them(r: Any) -> None:
    """The way that the refusal names: the groups are taken away, then there may be several shards;
    a group whose members happen to lie in one of them is taken there, another one is not."""
    names = NAMES[:6]
    f = await frontier(r, domains=())
    await freeze(r)
    await f.put_domains([DomainPolicy(name, name, "mid", 2_000, group="host") for name in names])
    await f.add([one for name in names for one in links(3, name)])
    (lease,) = (await f.step(9)).leases
    before, counts = await places(r), await f.counts()
    with pytest.raises(FrontierRefused, match="take the groups away"):
        await resharder(r).run(3)
    assert await places(r) == before and await f.counts() == counts
    assert (await f.step(9)).leases == [], "one fetch at a time in the group, as before"
    await f.step(0, [done(lease)], [ended(lease)])
    assert (await f.step(9)).leases == [], "and its delay"

    await f.put_domains([DomainPolicy(name, name, "mid", 2_000, group="") for name in names])
    assert await r.exists(keys.groups(0)), "their gates stay, and must not be taken for groups"
    counts = await f.counts()
    found = await resharder(r).run(3)
    assert found.before == found.after == counts
    other = await frontier(r, "other", domains=())
    for shard in range(3):
        await advance(r, 2_001, shard)
    leases = (await other.step(9)).leases
    assert sorted(one.domain for one in leases) == sorted(names), "each by itself now"

    layout = await read_layout(r)
    by_shard: dict[int, list[str]] = {}
    for name in NAMES:
        by_shard.setdefault(layout.of(name), []).append(name)
    together, apart = by_shard[0][:2], [by_shard[0][0], by_shard[1][0]]
    with pytest.raises(FrontierRefused, match="lie in two of the 3 shards"):
        await other.put_domains([DomainPolicy(n, n, "mid", 2_000, group="cdn") for n in apart])
    await other.put_domains([DomainPolicy(n, n, "mid", 2_000, group="cdn") for n in together])
    with pytest.raises(FrontierRefused, match="take the groups away"):
        await resharder(r).run(2)
