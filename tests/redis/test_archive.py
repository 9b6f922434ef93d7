"""The oldest finished records go to a real SQLite file, and everything is as if they had stayed."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from newscrawler.frontier import keys, records, schema
from newscrawler.frontier.queue import Frontier, FrontierUnavailable
from newscrawler.items import Kind, Link, Outcome
from newscrawler.store.base import StoreUnavailable
from newscrawler.store.finished import LocalFinished
from tests.redis.helpers import advance, check, done, drain, ended, frontier, link, links, run_out

DAY = 86_400_000


class Archive(LocalFinished):
    """The real one; ``away`` makes it fail as a full disk would."""

    away = False

    async def put(self, found: Sequence[tuple[bytes, bytes]]) -> None:
        if self.away:
            raise StoreUnavailable("disk is full")
        await super().put(found)

    async def get(self, url_ids: Sequence[bytes]) -> dict[bytes, bytes]:
        if self.away:
            raise StoreUnavailable("disk is full")
        return await super().get(url_ids)


@pytest.fixture
async def archive(tmp_path: Path) -> AsyncIterator[Archive]:
    made = Archive(tmp_path / "finished.db")
    yield made
    await made.close()


async def opened(r: Any, archive: Archive | None, worker: str = "w1", **changes: Any) -> Frontier:
    """``finished_limit=1``: no bucket may keep anything, so all that is finished moves."""
    changes.setdefault("finished_limit", 1)
    return await frontier(r, worker, archive=archive, **changes)


async def move_all(f: Frontier) -> int:
    """How many it has moved in all: on a slow machine some of them go in the steps before."""
    assert f.mover is not None
    for _ in range(2000):
        f.mover._due = 0.0
        f.mover.note(0)
        if not await f.mover.move():
            return f.mover.moved
    raise AssertionError("never done")


async def crawled(
    r: Any, archive: Archive, n: int = 40, **changes: Any
) -> tuple[Frontier, list[Link]]:
    """``n`` URLs fetched, acked and moved; the worker's own filter is empty."""
    f = await opened(r, archive, **changes)
    found = links(n)
    await f.add(found)
    await drain(f)
    await move_all(f)
    assert await archive.count() == n and await r.keys("{f0}:f:*") == []
    f.local.clear()
    return f, found


async def test_what_was_moved_is_still_seen_and_not_fetched_again(r: Any, archive: Archive) -> None:
    f, found = await crawled(r, archive)
    assert (await f.add(found)).seen == 40
    assert await drain(f) == []
    assert f.mover is not None and f.mover.asked == 40
    assert (await f.operator.stats())["archived"] == 40


async def test_without_the_archive_it_would_have_been_fetched_again(
    r: Any, archive: Archive
) -> None:
    """The test before this one can fail: the filter alone does not tell."""
    _, found = await crawled(r, archive)
    assert (await (await frontier(r, "w2")).add(found)).added == 40


async def test_what_was_asked_for_is_kept_in_redis_again(r: Any, archive: Archive) -> None:
    f, found = await crawled(r, archive)
    await f.add(found[:10])
    places = await check(r)
    assert set(places) == {x.url_id for x in found[:10]}
    f.local.clear()
    before = f.mover.asked  # type: ignore[union-attr]
    assert (await f.add(found[:10])).seen == 10
    assert f.mover.asked == before, "the archive is asked once"  # type: ignore[union-attr]


async def test_a_new_link_does_not_ask_the_archive(r: Any, archive: Archive) -> None:
    f, _ = await crawled(r, archive)
    assert (await f.add(links(100, start=1000))).added == 100
    assert f.mover.asked == 0  # type: ignore[union-attr]


async def test_a_lie_of_the_filter_is_admitted_when_the_archive_does_not_know_it_either(
    r: Any, archive: Archive
) -> None:
    f = await opened(r, archive, seen_buckets=1, seen_per_bucket=10_000, seen_bits=1)
    assert (await f.add(links(300))).added == 300
    assert (await f.operator.stats())["filter_lied"] >= 290
    assert f.mover.asked >= 290  # type: ignore[union-attr]
    assert len(await drain(f)) == 300


async def test_the_youngest_stay_and_redis_is_bounded(r: Any, archive: Archive) -> None:
    f = await opened(r, archive, finished_limit=keys.BUCKETS * 8)
    # ids of one bucket: 20 URLs that share their first 14 bits
    found = [
        Link(f"https://a.vn/{i}", bytes(2) + i.to_bytes(14, "big"), "a.vn", Kind.ARTICLE)
        for i in range(20)
    ]
    for one in found:
        await f.add([one])
        await drain(f)
        await advance(r, 60_000)
        await move_all(f)
    held = await r.hkeys(keys.bucket(0, 0))
    assert 7 <= len(held) <= 8
    kept = {keys.finished_id(0, field) for field in held}
    assert kept == {x.url_id for x in found[-len(held) :]}, "the oldest go first"
    assert await archive.count() == 20 - len(held)
    f.local.clear()
    assert (await f.add(found)).seen == 20


async def test_what_was_asked_for_outlives_what_was_fetched_before_it_was_asked(
    r: Any, archive: Archive
) -> None:
    f = await opened(r, archive, finished_limit=keys.BUCKETS * 4)
    found = [
        Link(f"https://a.vn/{i}", bytes(2) + i.to_bytes(14, "big"), "a.vn", Kind.ARTICLE)
        for i in range(8)
    ]
    for one in found[:5]:
        await f.add([one])
        await drain(f)
        await advance(r, 60_000)
    await move_all(f)
    f.local.clear()
    assert (await f.add(found[:1])).seen == 1, "the oldest is asked for"
    await advance(r, 60_000)
    await f.add(found[5:6])
    await drain(f)
    await move_all(f)
    held = {keys.finished_id(0, field) for field in await r.hkeys(keys.bucket(0, 0))}
    assert found[0].url_id in held and found[5].url_id in held
    record = await f.record(found[0].url_id, "a.vn")
    assert record is not None and record.outcome is Outcome.DONE, (
        "its mark is no part of what is read"
    )


async def test_a_failed_url_comes_back_from_the_archive_when_due(r: Any, archive: Archive) -> None:
    f = await opened(r, archive, max_tries=1, failed_due_ms=7 * DAY)
    (one,) = links(1)
    await f.add([one])
    (lease,) = (await f.step(1)).leases
    discovered = lease.discovered_ms
    await f.step(0, [done(lease, Outcome.RETRY, reason="status 500", status=500)])
    assert await move_all(f) == 1
    f.local.clear()
    assert (await f.add([one])).seen == 1
    await advance(r, 7 * DAY + 1000)
    f.local.clear()
    await move_all(f)
    assert (await f.add([one])).added == 1
    assert (await f.counts()).quarantined == 0
    (again,) = (await f.step(1)).leases
    assert again.url == one.url and again.discovered_ms == discovered, (
        "its history came back with it"
    )
    await check(r)


async def test_a_revisit_of_an_archived_url_is_admitted_when_due(r: Any, archive: Archive) -> None:
    f, _ = await crawled(r, archive, 1)
    (again,) = links(1, revisit=True)
    assert (await f.add([again])).seen == 1
    await advance(r, 25 * 3_600_000)
    await move_all(f)
    assert (await f.add([again])).added == 1
    await check(r)


async def test_the_links_of_an_ack_ask_the_archive_before_the_visit_ends(
    r: Any, archive: Archive
) -> None:
    f, found = await crawled(r, archive)
    await f.add([link("/hub")])
    (lease,) = (await f.step(1)).leases
    step = await f.step(0, [done(lease, links=[*found[:5], link("/new")])], [ended(lease)])
    assert (step.added.seen, step.added.added, step.rejected) == (5, 1, [])
    assert (step.queued, step.leased) == (1, 0)
    places = await check(r)
    assert places[lease.url_id] == "finished" and places[link("/new").url_id] == "queued"


async def test_an_ack_that_moves_its_url_waits_for_the_archive_too(
    r: Any, archive: Archive
) -> None:
    f, found = await crawled(r, archive, domains=("a.vn", "m.a.vn"))
    await f.add([link("/tin-1.html", "m.a.vn")])
    (lease,) = (await f.step(1)).leases
    ack = done(
        lease, Outcome.RETRY, reason="moved", moved_to="https://a.vn/tin-1.html", links=found[:3]
    )
    step = await f.step(1, [ack])
    (again,) = step.leases or (await f.step(1)).leases
    assert (again.url, again.url_id) == ("https://a.vn/tin-1.html", lease.url_id)
    assert (await check(r))[lease.url_id] == "leased"


async def test_an_archive_that_is_away_loses_neither_links_nor_acks(
    r: Any, archive: Archive
) -> None:
    f, found = await crawled(r, archive)
    await f.add([link("/hub"), link("/other")])
    archive.away = True
    with pytest.raises(
        FrontierUnavailable, match="archive of finished records does not answer: disk is full"
    ):
        await f.add([*found[:3], link("/first")])
    (lease,) = (await f.step(1)).leases
    with pytest.raises(FrontierUnavailable):
        await f.step(1, [done(lease, links=[found[0], link("/new")])])
    archive.away = False
    step = await f.step(1, [done(lease, links=[found[0], link("/new")])])
    assert (step.rejected, step.leased, step.wait_ms) == ([], 0, 0), (
        "the turn is free again: ask at once"
    )
    assert len((await f.step(1)).leases) == 1
    assert (await check(r))[lease.url_id] == "finished"
    assert link("/new").url_id in await check(r)


async def test_a_worker_that_dies_while_the_archive_is_asked_repeats_the_visit(
    r: Any, archive: Archive
) -> None:
    f, found = await crawled(r, archive)
    await f.add([link("/hub")])
    (lease,) = (await f.step(1)).leases
    archive.away = True
    with pytest.raises(FrontierUnavailable):
        await f.step(0, [done(lease, links=[found[0], link("/new")])])
    await run_out(r, lease)  # and the worker never came back
    archive.away = False
    g = await opened(r, archive, "w2")
    (again,) = (await g.step(1)).leases
    assert again.url_id == lease.url_id
    step = await g.step(0, [done(again, links=[found[0], link("/new")])])
    assert step.added.seen == 2, "the new link had been taken with the first try"
    assert len(await check(r)) == 3


async def test_an_archive_that_is_full_leaves_the_records_in_redis(
    r: Any, archive: Archive, caplog: Any
) -> None:
    f = await opened(r, archive)
    await f.add(links(30))
    archive.away = True
    await drain(f)
    f.mover._due = 0.0  # type: ignore[union-attr]
    assert await f.mover.move() == 0  # type: ignore[union-attr]
    assert "Finished records stay in Redis" in caplog.text
    assert set((await check(r)).values()) == {"finished"}
    archive.away = False
    assert await move_all(f) == 30


async def test_a_crash_between_archive_and_redis_changes_nothing(r: Any, archive: Archive) -> None:
    f = await opened(r, archive)
    await f.add(links(10))
    await drain(f)
    held = {k: await r.hgetall(k) for k in await r.keys("{f0}:f:*")}
    put = [
        (keys.finished_id(int(k.rsplit(b":", 1)[1]), i), v)
        for k, fields in held.items()
        for i, v in fields.items()
    ]
    await archive.put(put)  # and the worker died here
    f.local.clear()
    assert (await f.add(links(10))).seen == 10
    assert await move_all(f) == 10 and await archive.count() == 10


async def test_a_record_that_changed_while_it_was_moved_stays(r: Any, archive: Archive) -> None:
    f = await opened(r, archive)
    await f.add(links(1))
    await drain(f)
    bucket, field = keys.finished(0, links(1)[0].url_id)
    old = await r.hget(bucket, field)
    await r.hset(bucket, field, old + b"x")
    from msgpack import packb

    number = int(bucket.rsplit(":", 1)[1])
    assert (
        await f.scripts.run("forget", "{f0}", packb([number, field, old], use_bin_type=False)) == 0
    )
    assert await r.hget(bucket, field) == old + b"x"


async def test_what_is_moved_is_known_to_the_filter_for_a_window_more(
    r: Any, archive: Archive
) -> None:
    f = await opened(r, archive, seen_window_ms=DAY)
    await f.add(links(5))
    await drain(f)
    await advance(r, DAY / 2 + 1000)
    await f.add(links(1, start=100))  # a new generation begins
    await move_all(f)
    await advance(r, DAY - 60_000)
    for i in range(40):
        await f.add(links(1, start=200 + i))
    f.local.clear()
    assert (await f.add(links(5))).seen == 5


async def test_why_answers_for_an_archived_url(r: Any, archive: Archive) -> None:
    f, found = await crawled(r, archive, 3)
    record = await f.record(found[0].url_id, "a.vn")
    assert record is not None
    assert (record.state, record.outcome, record.status) == ("finished", Outcome.DONE, 200)


async def test_the_age_of_a_record_reads_all_its_forms() -> None:
    head = schema.FINISHED.pack(schema.SCHEMA * 16 + 5, 1, 0, 0, 200, 7, 1000)
    assert records.finished_age(head + b"why") == 1000
    for flags, size in ((16, 0), (17, 4), (18, 16), (20, 10), (24, 4), (31, 34), (48, 3), (63, 37)):
        packed = (
            head[:3] + bytes((flags,)) + head[4:] + bytes(size) + (2000).to_bytes(4, "big") + b"why"
        )
        assert records.finished_age(packed) == 2000, flags
    assert records.finished_age(b"") == 0


async def test_a_frontier_without_an_archive_keeps_all(r: Any) -> None:
    f = await frontier(r, finished_limit=1)
    await f.add(links(20))
    await drain(f)
    assert await r.exists(keys.full(0)) == 0 and f.mover is None
    assert (await f.add(links(20))).seen == 20


async def test_shards_move_each_their_own(r: Any, archive: Archive) -> None:
    names = tuple(f"d{i}.vn" for i in range(6))
    f = await opened(r, archive, shards=3, domains=names)
    found = [x for name in names for x in links(5, name)]
    await f.add(found)
    await drain(f)
    for _ in range(200):
        f.mover._due = 0.0  # type: ignore[union-attr]
        await f.step(0)
    assert await archive.count() == 30
    f.local.clear()
    assert (await f.add(found)).seen == 30
    await check(r, 3)
