"""Spider traps and full queues: what a site makes without end is bounded, and each refusal is
counted by its reason."""

from __future__ import annotations

from typing import Any

from newscrawler.frontier import keys
from newscrawler.frontier.queue import FrontierConfig
from newscrawler.items import Kind
from tests.redis.helpers import advance, check, done, drain, frontier, link, links


def pages(n: int, form: str, start: int = 0, **fields: Any) -> list[Any]:
    fields.setdefault("kind", Kind.PAGE)
    return [link(form.format(i), **fields) for i in range(start, start + n)]


async def test_a_calendar_gets_its_budget_and_the_rest_is_refused_and_counted(r: Any) -> None:
    f = await frontier(r, pattern_budget=50)
    result = await f.add(pages(400, "/lich/2026/11/{}"))
    assert (result.added, result.refused) == (50, {"trap": 350})
    assert (await f.add(pages(20, "/xem?trang={}"))).added == 20, (
        "another shape has a budget of its own"
    )
    assert (await f.add(pages(5, "/lich/2026/12/{}"))).refused == {"trap": 5}
    assert (await f.operator.stats())["trap"] == 355
    assert (await f.add(pages(50, "/lich/2026/11/{}"))).seen == 50, (
        "what was let in is not counted again"
    )
    await check(r)
    assert len(await drain(f)) == 70


async def test_links_of_an_ack_are_counted_too(r: Any) -> None:
    f = await frontier(r, pattern_budget=10)
    await f.add(links(1))
    (lease,) = (await f.step(1)).leases
    step = await f.step(0, [done(lease, links=pages(30, "/loc?mau={}"))])
    assert (step.added.added, step.added.refused) == (10, {"trap": 20})


async def test_two_workers_share_the_budget_and_another_domain_has_its_own(r: Any) -> None:
    f, g = (
        await frontier(r, domains=("a.vn", "b.vn"), pattern_budget=10),
        await frontier(r, "w2", pattern_budget=10),
    )
    assert (await f.add(pages(6, "/x/{}"))).added == 6
    assert (await g.add(pages(6, "/x/{}", 6))).added == 4
    assert (await g.add(pages(6, "/x/{}", domain="b.vn"))).added == 6


async def test_articles_lists_and_what_was_asked_for_are_not_held_by_it(r: Any) -> None:
    f = await frontier(r, pattern_budget=5)
    assert (await f.add(pages(100, "/tin/{}.html", kind=Kind.ARTICLE))).added == 100
    assert (await f.add(pages(100, "/muc/{}", kind=Kind.SECTION))).added == 100
    assert (await f.add(pages(100, "/rss/{}", kind=Kind.FEED))).added == 100
    result = await f.add(pages(100, "/bai?id={}", kind=Kind.ARTICLE))
    assert (result.added, result.refused) == (50, {"trap": 50}), (
        "articles by a parameter get ten times as much"
    )
    assert (await f.add(pages(20, "/bai?id={}", 500, kind=Kind.ARTICLE, revisit=True))).added == 20


async def test_the_budget_is_new_each_day(r: Any) -> None:
    f = await frontier(r, pattern_budget=5)
    await f.add(pages(9, "/x/{}"))
    ttl = await r.ttl(keys.patterns(0, "a.vn"))
    assert 86_300 < ttl <= 86_400
    await r.delete(keys.patterns(0, "a.vn"))
    assert (await f.add(pages(9, "/x/{}"))).added == 4
    await r.delete(keys.patterns(0, "a.vn"))
    await r.hset(keys.clock(0), mapping={"factor": 864, "offset": 0})
    await f.add(pages(1, "/x/{}", 100))
    assert 90 <= await r.ttl(keys.patterns(0, "a.vn")) <= 100, "a simulated day is over sooner"


async def test_shapes_without_end_share_one_budget(r: Any) -> None:
    """Each URL of another shape: /aa, /ab, ... The table stays small, and so does
    what is queued."""
    f = await frontier(r, pattern_budget=100)
    words = [
        f"/{chr(97 + i // 676)}{chr(97 + i // 26 % 26)}{chr(97 + i % 26)}" for i in range(6000)
    ]
    taken = 0
    for start in range(0, 6000, 250):
        taken += (await f.add([link(w, kind=Kind.PAGE) for w in words[start : start + 250]])).added
    assert taken == 2100
    assert await r.hlen(keys.patterns(0, "a.vn")) == 2001


async def test_without_a_budget_nothing_is_counted(r: Any) -> None:
    f = await frontier(r)
    assert (await f.add(pages(300, "/x/{}"))).added == 300
    assert not await r.exists(keys.patterns(0, "a.vn"))
    assert FrontierConfig().pattern_budget == 0


async def test_a_queue_is_bounded_and_nothing_is_dropped_silently(r: Any) -> None:
    """A site that makes links without end: every offer ends in exactly one count, and the queue
    stops at three limits."""
    f = await frontier(r, queue_limit=100)
    offered = 0
    sums = {"added": 0, "seen": 0, "queue_full": 0, "dropped": 0}
    for _ in range(4):
        for start in range(0, 1000, 250):
            for band in (0, 1, 2):
                result = await f.add(links(250, start=start + band * 1000, band=band))
                offered += 250
                sums["added"] += result.added
                sums["seen"] += result.seen
                for reason, n in result.refused.items():
                    sums[reason] += n
    assert sum(sums.values()) == offered
    state = await f.operator.state("a.vn")
    assert (
        state is not None
        and state.queued == sums["added"] == 300
        and state.dropped == sums["dropped"] > 0
    )
    stats = await f.operator.stats()
    assert (stats["queue_full"], stats["dropped"]) == (sums["queue_full"], sums["dropped"])
    assert await r.hlen(keys.offers(0, "a.vn")) <= 1001, (
        "the table of refused offers is bounded as well"
    )
    await check(r)
    await advance(r, 1)
    assert len(await drain(f)) == 300
