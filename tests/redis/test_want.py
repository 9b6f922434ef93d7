"""What a bounded crawl wants: any state of a URL, in any order, and back again."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import pytest

from newscrawler.frontier import keys
from newscrawler.frontier.bounded import MOST_RUNNING, Crawl, CrawlBook, CrawlRefused, Ended
from newscrawler.frontier.layout import Layout
from newscrawler.frontier.queue import Frontier
from newscrawler.frontier.types import Wanted
from newscrawler.items import Kind, Link, Outcome
from tests.redis.helpers import check, done, drain, frontier, link, links

REDIS_VERSIONS = ("6.2", "7")
ONE, TWO = Wanted("aaaa1111", 1, 2), Wanted("bbbb2222", 2, 2)


def asked(path: str = "/1", **fields: Any) -> Link:
    return link(path, revisit=True, band=0, score=-2_000_000_000, **fields)


async def status(f: Frontier, wanted: Wanted = ONE, **more: Any) -> str:
    one = asked()
    return (await f.want([one], wanted, **more))[one.url_id]


async def test_a_new_url_is_queued_and_its_lease_says_who_wants_it(r: Any) -> None:
    f = await frontier(r)
    await f.add(links(20))
    assert await status(f) == "a"
    assert await status(f, TWO) == "q", "two crawls share it"
    await check(r)
    (lease,) = (await f.step(1)).leases
    assert lease.url.endswith("/1") and lease.wanted == (ONE, TWO), "before all that is older"
    assert lease.wants_links
    assert await status(f, Wanted("cccc3333", 0, 1)) == "l"
    await CrawlBook(r).unmark([asked()], Layout.of_count(1))
    await f.step(0, [done(lease)])
    assert not await r.exists(keys.want(0))
    await check(r)
    assert all(not other.wanted for other in (await f.step(16)).leases)


@pytest.mark.parametrize("outcome", [Outcome.DONE, Outcome.NOT_ARTICLE, Outcome.GONE])
async def test_a_finished_url_comes_at_once_unless_it_is_fresh(r: Any, outcome: Outcome) -> None:
    f = await frontier(r)
    await f.add([link("/1")])
    await drain_with(f, outcome)
    now_s = int(time.time())
    fresh = await status(f, fresh_from_s=now_s - 3_600)
    assert fresh == ("a" if outcome is Outcome.GONE else "w")
    if outcome is not Outcome.GONE:
        assert not await r.exists(keys.want(0))
        assert await status(f, fresh_from_s=now_s + 60) == "a"
    (lease,) = (await f.step(1)).leases
    assert lease.wanted == (ONE,)
    await check(r)


async def drain_with(f: Frontier, outcome: Outcome, **more: Any) -> None:
    (lease,) = (await f.step(1)).leases
    await f.step(0, [done(lease, outcome, **more)])


async def test_what_waits_for_its_next_visit_keeps_its_record(r: Any) -> None:
    f = await frontier(r)
    await f.add([link("/1", kind=Kind.SECTION)])
    later = int(time.time() * 1000) + 3_600_000
    await drain_with(f, Outcome.DONE, next_visit_ms=later, etag='"x"', digest=b"d" * 16)
    assert (await f.counts()).waiting == 1
    assert await status(f) == "q"
    await check(r)
    (lease,) = (await f.step(1)).leases
    assert (lease.etag, lease.digest, lease.kind) == ('"x"', b"d" * 16, Kind.SECTION)
    assert lease.wanted == (ONE,)


async def test_a_retry_keeps_its_time(r: Any) -> None:
    """A site that has trouble is not asked sooner."""
    f = await frontier(r)
    await f.add([link("/1")])
    await drain_with(f, Outcome.RETRY, status=500)
    assert await status(f) == "r"
    assert not (await f.step(1)).leases
    await check(r)


@pytest.mark.parametrize(
    "ack",
    [
        {"outcome": Outcome.REFUSED, "reason": "robots"},
        {"outcome": Outcome.FAILED, "reason": "status"},
    ],
    ids=["robots", "quarantine"],
)
async def test_what_may_not_come_does_not(r: Any, ack: dict[str, Any]) -> None:
    f = await frontier(r)
    await f.add([link("/1")])
    (lease,) = (await f.step(1)).leases
    await f.step(0, [done(lease, **ack)])
    assert await status(f) == "s"
    assert not await r.exists(keys.want(0))
    await check(r)


async def test_unknown_disabled_and_full_domains(r: Any) -> None:
    f = await frontier(r, queue_limit=2)
    stranger = replace(asked(), domain="la.vn", url="https://la.vn/1")
    assert list((await f.want([stranger], ONE)).values()) == ["o"]
    await f.add(links(2, score=0))
    many = [asked(f"/x/{i}") for i in range(200)]
    assert set((await f.want(many, ONE)).values()) == {"a"}, "bounded by the crawl, not the queue"
    assert len(await drain(f)) == 202
    await check(r)


async def test_cancelling_puts_everything_back(r: Any) -> None:
    f = await frontier(r)
    queued = [link("/q", band=2, score=7), link("/other", band=1, score=0)]
    await f.add(queued)
    before = {record.url: (record.band, record.score) for record in await records(f, queued)}
    new = [asked("/new"), asked("/both")]
    await f.want([asked("/q"), *new], ONE)
    await f.want([asked("/both")], TWO)
    assert await f.unwant(ONE.crawl, [asked("/q"), *new], drop_known=False) == 1
    await check(r)
    after = {record.url: (record.band, record.score) for record in await records(f, queued)}
    assert after == before
    assert await f.record(asked("/new").url_id, "a.vn") is None
    assert [x async for x in r.hscan_iter(keys.want(0))] == [
        (asked("/both").url_id, b"n bbbb2222:2:2")
    ]
    assert await f.unwant(TWO.crawl, [asked("/both")], drop_known=False) == 1
    assert set(await drain(f)) == {one.url for one in queued}
    await f.add([link("/new")])
    assert await drain(f) == ["https://a.vn/new"], "it may be found again"


async def records(f: Frontier, of: list[Link]) -> list[Any]:
    return [await f.record(one.url_id, one.domain) for one in of]


async def test_what_is_leased_when_its_crawl_is_cancelled_ends_as_any_other(r: Any) -> None:
    f = await frontier(r)
    await f.want([asked()], ONE)
    (lease,) = (await f.step(1)).leases
    assert await f.unwant(ONE.crawl, [asked()], drop_known=True) == 0
    step = await f.step(0, [done(lease)])
    assert not step.rejected
    await check(r)


async def test_a_lost_lease_comes_back_wanted(r: Any) -> None:
    f = await frontier(r, lease_ms=1_000)
    await f.want([asked()], ONE)
    (first,) = (await f.step(1)).leases
    other = await frontier(r, worker="w2")
    await r.hset(keys.state(0), "reborn", 0)
    leases: list[Any] = []
    until = time.monotonic() + 60
    while not leases and time.monotonic() < until:
        leases = (await other.step(1)).leases
    assert [lease.wanted for lease in leases] == [(ONE,)]
    assert first.url_id in (await f.step(0, [done(first)])).rejected


async def test_shards_have_marks_of_their_own(r: Any) -> None:
    names = ("a.vn", "b.vn", "c.vn", "d.vn")
    f = await frontier(r, domains=names, shards=4)
    found = await f.want([link("/1", name, revisit=True) for name in names], ONE)
    assert list(found.values()) == ["a"] * 4
    marks = [await r.hlen(keys.want(shard)) for shard in range(4)]
    assert sum(marks) == 4 and max(marks) < 4
    assert await f.unwant(ONE.crawl, [link("/1", name) for name in names], drop_known=False) == 4
    await check(r, 4)


# ---------------------------------------------------------------- the book
async def begun(r: Any, **more: Any) -> tuple[CrawlBook, Crawl]:
    book = CrawlBook(r)
    given = {"levels": 2, "max_pages": 5, "by": "t", "is_configured": True, **more}
    return book, await book.begin(link("/"), site="a.vn", now_ms=1_000, **given)


FETCHED = Ended("DONE", ("fetched",))


async def test_pages_are_counted_once_and_never_beyond_the_bound(r: Any) -> None:
    book, crawl = await begun(r)
    many = links(9)
    for _ in range(2):  # an ack that is sent again
        taken = await book.page_ended(
            crawl.id, link("/").url_id, FETCHED, level=1, links=many, now_ms=2_000
        )
    known = await book.get(crawl.id)
    assert known is not None and (known.pages, known.fetched, known.open) == (5, 1, 4)
    assert known.left_out == 10 and not taken
    refused = Ended("REFUSED(robots)", ("refused",), is_free=True)
    taken = await book.page_ended(
        crawl.id, many[0].url_id, refused, level=2, links=many, now_ms=2_000
    )
    assert len(taken) == 1, "what was never asked of the site leaves its place"


async def test_it_ends_with_the_last_page(r: Any) -> None:
    book, crawl = await begun(r, max_pages=50)
    three = links(3)
    await book.page_ended(crawl.id, link("/").url_id, FETCHED, level=1, links=three, now_ms=2_000)
    for one in three:
        assert (await book.get(crawl.id)).is_running  # type: ignore[union-attr]
        await book.page_ended(crawl.id, one.url_id, FETCHED, level=2, links=(), now_ms=3_000)
    ended = await book.get(crawl.id)
    assert ended is not None and ended.state == "finished" and ended.ended_ms == 3_000
    assert ended.why == "every page within 2 level(s) was fetched"
    assert await book.running() == []
    assert await r.ttl(keys.crawl_facts(crawl.id)) > 86_400
    assert await r.ttl(keys.crawl_urls(crawl.id)) > 86_400
    assert [one.id for one in await book.newest()] == [crawl.id]
    await r.delete(keys.crawl_facts(crawl.id))
    assert await book.newest() == [] and not await r.zcard(keys.CRAWL_INDEX)


@pytest.mark.parametrize(
    ("ended", "state"),
    [
        (Ended("REFUSED(robots)", ("refused",), is_free=True), "refused"),
        (Ended("FAILED(404)", ("failed",)), "failed"),
    ],
)
async def test_a_start_that_is_not_fetched(r: Any, ended: Ended, state: str) -> None:
    book, crawl = await begun(r)
    await book.page_ended(crawl.id, link("/").url_id, ended, level=1, links=(), now_ms=2_000)
    known = await book.get(crawl.id)
    assert known is not None and known.state == state and ended.outcome in known.why


async def test_so_many_crawls_run_at_once(r: Any) -> None:
    for _ in range(MOST_RUNNING):
        await begun(r)
    with pytest.raises(CrawlRefused, match="are running"):
        await begun(r)


async def test_a_cancelled_crawl_takes_no_links(r: Any) -> None:
    book, crawl = await begun(r)
    assert await book.cancel(crawl.id, "enough", 5_000)
    assert not await book.cancel(crawl.id, "again", 6_000)
    assert not await book.cancel("nobody", "x", 6_000)
    taken = await book.page_ended(
        crawl.id, link("/").url_id, FETCHED, level=1, links=links(3), now_ms=6_000
    )
    known = await book.get(crawl.id)
    assert not taken and known is not None
    assert (known.state, known.why, known.fetched) == ("cancelled", "enough", 1)
    assert await book.running() == []
