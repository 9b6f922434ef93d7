"""What is seen: the worker's own filter and the one in Redis, both made to lie, and what
counts as one page."""

from __future__ import annotations

import random
from types import SimpleNamespace
from typing import Any

import pytest
from scrapy import Request

from newscrawler.discovery.links import LinkFinder
from newscrawler.discovery.sitefile import Site
from newscrawler.discovery.sites import Sites
from newscrawler.frontier import keys
from newscrawler.frontier.queue import Ack, Frontier, FrontierUnavailable
from newscrawler.frontier.seen import LocalSeen, Strides
from newscrawler.items import Kind, Outcome
from newscrawler.scheduler import DupeFilter, Scheduler
from tests.redis.helpers import advance, check, done, drain, frontier, link, links

DAY = 86_400_000


def always_lying(clock: Any = None) -> LocalSeen:
    """A filter of three URLs that takes a tenth to a half of the unknown ones for known ones. Its
    seed is drawn at random: 3 to 70 % are taken, by the seed; here it is always the same."""
    state = random.getstate()
    random.seed(2)
    seen = LocalSeen(
        links=1, capacity=3, reset_s=3600, error_rate=0.5, **({"clock": clock} if clock else {})
    )
    random.setstate(state)
    for i in range(4):
        seen.add(f"https://a.vn/before/{i}")
    return seen


# ---------------------------------------------------------------- the worker's own filter
async def test_the_local_filter_knows_only_what_redis_confirmed(r: Any) -> None:
    f = await frontier(r, queue_limit=1)
    one, two, off = link("/1"), link("/2"), link("/3", "off.vn")
    assert not f.seen_local(one.url)
    await f.add([one, two, off])
    assert f.seen_local(one.url)
    assert not f.seen_local(two.url), "refused by a full queue: must be offered again"
    assert not f.seen_local(off.url)


def test_the_local_filter_is_emptied_hourly_and_holds_more_than_its_table() -> None:
    now = [0.0]
    seen = LocalSeen(links=10, capacity=100, reset_s=3600, clock=lambda: now[0])
    for i in range(90):
        seen.add(link(f"/{i}").url)
    assert all(seen.knows(link(f"/{i}").url, link(f"/{i}")) for i in range(90))
    assert seen.bloom_hits >= 80
    assert not seen.knows(link("/new").url, link("/new"))
    now[0] = 3601
    assert not seen.knows(link("/89").url, link("/89"))


def test_the_local_filter_survives_its_capacity() -> None:
    seen = LocalSeen(links=10, capacity=100, reset_s=3600)
    for i in range(1000):
        seen.add(f"https://a.vn/{i}")
    assert seen.knows("https://a.vn/999", link("/999"))
    assert sum(seen.knows(link(f"/x{i}").url, link(f"/x{i}")) for i in range(10_000)) <= 1


def test_the_filter_answers_the_second_time_and_the_table_from_the_third_on() -> None:
    seen = LocalSeen(links=100, capacity=500_000, reset_s=3600)
    one = link("/1")
    assert not seen.knows(one.url, one)
    seen.add(one.url)
    assert [seen.knows(one.url, one) for _ in range(4)] == [True] * 4
    assert (seen.bloom_hits, seen.lru_hits) == (1, 3)
    assert not seen.unverified, "a filter that is nearly empty is believed"


def test_a_filter_that_is_not_sure_needs_a_link_to_verify() -> None:
    seen = always_lying()
    assert seen._bloom.sure < seen._bloom.count
    assert "https://a.vn/before/0" not in seen
    assert seen.knows("https://a.vn/before/0", link("/before/0"))
    assert list(seen.unverified) == ["https://a.vn/before/0"]
    assert "https://a.vn/before/0" in seen, "the table knows it now"


def test_a_filter_with_too_much_to_verify_is_not_believed() -> None:
    seen = LocalSeen(links=1, capacity=6_000, reset_s=3600, error_rate=0.01)
    for i in range(5_100):
        seen.add(link(f"/{i}").url)
    assert seen._bloom.sure < 5_100
    known = sum(seen.knows(link(f"/{i}").url, link(f"/{i}")) for i in range(5_050))
    assert known == 5_000 and len(seen.unverified) == 5_000


@pytest.mark.parametrize(("capacity", "error_rate"), [(1_000, 1e-3), (20_000, 1e-2)])
def test_a_filter_lies_no_more_than_its_bound_says(capacity: int, error_rate: float) -> None:
    """The bound behind ``sure``, where lies are frequent enough to be counted: at a full filter."""
    bloom = Strides(capacity, error_rate)
    for i in range(capacity):
        bloom.add(f"https://a.vn/{i}", skip_check=True)
    lies = sum(f"https://a.vn/x{i}" in bloom for i in range(100_000))
    share = bloom.bitarray.count() / bloom.num_bits
    assert lies / 100_000 <= 10 * share ** (2 * bloom._row)
    assert bloom.sure < capacity / 2
    assert Strides(500_000, 1e-6).sure > 200_000, "an ordinary crawl's hour is far below it"


async def test_a_lie_of_the_local_filter_never_loses_an_article(r: Any) -> None:
    f = await frontier(r, queue_limit=10_000)
    f.local = always_lying()
    found = links(400, depth=2)
    parent = bytes(range(16))
    offered = [x for x in found if not f.seen_local(x.url, x, parent, 3)]
    assert 0 < len(offered) < 400, "the filter was to lie about a part"
    await f.add(offered)
    for _ in range(5):
        await f.step(0)
    assert f.local.false_positives == 400 - len(offered)
    assert len(await check(r)) == 400, "all of them are queued"
    hidden = next(x for x in found if x not in offered)
    record = await f.record(hidden.url_id, "a.vn")
    assert record is not None and (record.parent, record.depth) == (parent, 3)


async def test_a_lie_keeps_a_crawl_from_ending(r: Any) -> None:
    f = await frontier(r)
    f.local = always_lying()
    hidden = next(x for x in links(400) if f.seen_local(x.url, x))
    step = await f.step(4)
    assert (step.leases, step.queued, step.wait_ms) == ([], 1, 0), (
        "there is work, and it is to be asked for at once"
    )
    assert [x.url for x in (await f.step(4)).leases] == [hidden.url]


async def test_what_waits_to_be_verified_survives_a_redis_that_is_away(r: Any) -> None:
    f = await frontier(r)
    f.local = always_lying()
    hidden = [x for x in links(100) if f.seen_local(x.url, x)]
    add = f.add

    async def away(links: Any) -> Any:
        raise FrontierUnavailable("away")

    f.add = away  # type: ignore[method-assign]
    await f.step(0)
    assert len(f.local.unverified) == len(hidden) > 0
    f.add = add  # type: ignore[method-assign]
    while f.local.unverified:  # the random filter may have lied of more links than one batch holds
        await f.step(0)
    assert set(await check(r)) == {x.url_id for x in hidden}


async def test_a_link_that_redis_did_not_take_when_it_was_verified_is_not_known(r: Any) -> None:
    """The filter lied of it and the queue was full: the next page that links it
    must offer it again."""
    f = await frontier(r, queue_limit=1)
    f.local = always_lying()
    hidden = next(x for x in links(400) if f.seen_local(x.url, x))
    g = await frontier(r, "w2", queue_limit=1)
    await g.add(links(1, start=1000))
    assert (await f.step(0)).added.refused == {"queue_full": 1}
    assert not f.local.unverified
    assert len(await drain(g)) == 1
    if not f.seen_local(hidden.url, hidden):
        await f.add([hidden])
    await f.step(0)
    assert hidden.url_id in await check(r), "it was taken for known until the filter is emptied"


async def test_links_are_verified_in_batches_while_there_is_other_work(r: Any) -> None:
    now = [0.0]
    f = await frontier(r, domains=("a.vn", "b.vn"))
    f.local = always_lying(lambda: now[0])
    await f.add(links(20, "b.vn"))
    hidden = next(x for x in links(400) if f.seen_local(x.url, x))
    (lease,) = (await f.step(1)).leases
    assert f.local.unverified, "one link is not worth a call of its own"
    now[0] = 31
    (lease,) = (await f.step(1, [done(lease)])).leases
    assert not f.local.unverified and (await f.record(hidden.url_id, "a.vn")) is not None


async def test_the_links_of_a_page_reach_redis_although_the_filter_lies(r: Any) -> None:
    f = await frontier(r)
    f.local = always_lying()
    finder = LinkFinder(
        Sites([Site(id="a.vn", name="A", hosts=("a.vn",), home="https://a.vn/")]), f
    )
    hrefs = [f"/tin-tuc-so-{i}-hom-nay-{100000 + i}.html" for i in range(300)]
    found = finder.find(hrefs, "https://a.vn/", parent=bytes(16), depth=0, now_ms=0, max_depth=4)
    assert 30 <= found.known <= 150 and len(found.links) + found.known == 300
    await f.add(found.links)
    # What a script does not finish within its few milliseconds comes with the next call.
    for _ in range(300):
        await f.step(0)
        if len(queued := await check(r)) == 300:
            break
    assert len(queued) == 300


# ---------------------------------------------------------------- the filter in Redis
async def test_a_lie_of_the_shared_filter_never_loses_an_article(r: Any) -> None:
    """One bucket, one bit: from the third URL on the filter knows everything."""
    f = await frontier(r, seen_buckets=1, seen_per_bucket=10_000, seen_bits=1)
    assert (await f.add(links(500))).added == 500
    assert (await f.operator.stats())["filter_lied"] >= 490
    assert len(await drain(f)) == 500


async def test_a_generation_that_never_fills_is_closed_by_time(r: Any) -> None:
    f = await frontier(r, seen_window_ms=DAY)
    await f.add(links(3))
    await advance(r, DAY / 2 - 60_000)
    await f.add(links(1, start=10))
    assert len({k.split(b":")[2] for k in await r.keys("{f0}:s:*")}) == 1
    await advance(r, 61_000)
    await f.add(links(1, start=20))
    assert len({k.split(b":")[2] for k in await r.keys("{f0}:s:*")}) == 2
    await advance(r, DAY + 1000)
    for i in range(40):  # it goes in pieces, some buckets a call
        await f.add(links(1, start=30 + i))
    assert {k.split(b":")[2] for k in await r.keys("{f0}:s:*")} == {b"2", b"3"}


async def test_a_failed_url_comes_back_when_due_though_all_filters_know_it(r: Any) -> None:
    f = await frontier(r, max_tries=1, failed_due_ms=7 * DAY)
    (one,) = links(1)
    await f.add([one])
    (lease,) = (await f.step(1)).leases
    await f.step(0, [done(lease, Outcome.RETRY, reason="status 500")])
    assert f.seen_local(one.url)
    await advance(r, 7 * DAY + 1000)
    f.local.clear()  # an hour has passed as well
    assert not f.seen_local(one.url)
    assert (await f.add([one])).added == 1
    assert await drain(f) == [one.url]


# ---------------------------------------------------------------- one page, many addresses
TWINS = [
    "https://a.vn/gia-vang-hom-nay-4512345.html",
    "http://a.vn/gia-vang-hom-nay-4512345.html",
    "https://www.a.vn/gia-vang-hom-nay-4512345.html",
    "https://A.VN:443/gia-vang-hom-nay-4512345.html#binh-luan",
    "https://a.vn/gia-vang-hom-nay-4512345.html?utm_source=zalo&utm_medium=social",
    "https://a.vn/gia-vang-hom-nay-4512345.html?fbclid=IwAR0",
    "https://m.a.vn/gia-vang-hom-nay-4512345.html",
    "https://amp.a.vn/gia-vang-hom-nay-4512345.html",
    "https://a.vn/gia-vang-sjc-tang-manh-4512345.html",
]


def twin_sites() -> Sites:
    one = Site(
        id="a.vn", name="A", home="https://a.vn/", hosts=("a.vn",), article_pattern=r"-(\d{6,})\.html$", id_group=1
    )  # fmt: skip
    return Sites([one])


def offered(url: str) -> Any:
    judged = twin_sites().identify(
        url, kind=None, parent=None, depth=1, hint=None, max_age=None, now_ms=0
    )
    assert hasattr(judged, "url_id"), judged
    return judged


@pytest.mark.parametrize("url", TWINS[1:])
async def test_a_twin_is_the_same_page(r: Any, url: str) -> None:
    f = await frontier(r)
    assert (await f.add([offered(TWINS[0])])).added == 1
    assert (await f.add([offered(url)])).seen == 1, url
    await drain(f)
    assert (await f.add([offered(url)])).seen == 1, f"{url} after the visit"
    assert len(await check(r)) == 1


async def redirected(f: Frontier, target: str) -> Ack:
    (lease,) = (await f.step(1)).leases
    return done(lease, Outcome.REDIRECTED, status=301, links=[offered(target)])


async def test_the_target_of_a_redirect_is_one_page_with_the_links_to_it(r: Any) -> None:
    f = await frontier(r)
    target = "https://a.vn/tin-moi-4598765.html"
    await f.add([link("/r/4598765", kind=Kind.PAGE)])
    step = await f.step(1, [await redirected(f, target)])
    assert [x.url for x in step.leases] == [target]
    await f.step(0, [done(step.leases[0])])
    for twin in (
        target,
        "https://m.a.vn/tin-moi-4598765.html?utm_source=x",
        "https://a.vn/slug-khac-4598765.html",
    ):
        assert (await f.add([offered(twin)])).seen == 1, twin
    assert (await f.add([link("/r/4598765", kind=Kind.PAGE)])).seen == 1, (
        "the address that redirects is known too"
    )
    assert len(await r.keys(keys.queue(0, "a.vn"))) == 0


# ---------------------------------------------------------------- Scrapy's dupe filter
async def test_the_dupe_filter_asks_the_table_and_the_bloom_filter(r: Any) -> None:
    f = await frontier(r)
    scheduler = Scheduler.__new__(Scheduler)
    scheduler.services = SimpleNamespace(sites=twin_sites(), frontier=f)  # type: ignore[assignment]
    scheduler.lease_loop = SimpleNamespace(now_ms=0)  # type: ignore[assignment]
    dupes = DupeFilter(None)
    dupes.seen = scheduler._is_known
    assert not dupes.request_seen(Request(TWINS[0]))
    await f.add([offered(TWINS[0])])
    assert dupes.request_seen(Request(TWINS[0])) and f.local.bloom_hits == 1
    assert dupes.request_seen(Request(TWINS[4])), "another spelling of the same page"
    assert not dupes.request_seen(Request("https://a.vn/mot-tin-khac-4512399.html"))
    assert not dupes.request_seen(Request("https://b.vn/gia-vang-4512345.html"))
