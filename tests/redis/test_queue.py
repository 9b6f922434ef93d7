"""Admission, order, leases and ends of visits, on a real Redis."""

from __future__ import annotations

from typing import Any

import pytest

from newscrawler.frontier import keys
from newscrawler.frontier.queue import Ack, FrontierRefused
from newscrawler.items import Kind, Outcome
from tests.redis.helpers import (
    advance,
    check,
    done,
    drain,
    ended,
    freeze,
    frontier,
    link,
    links,
    run_out,
)

MINUTE = 60_000


async def test_a_link_is_queued_once_and_fetched_once(r: Any) -> None:
    f = await frontier(r)
    first = await f.add(links(10))
    again = await f.add(links(12))
    assert (first.added, first.seen) == (10, 0)
    assert (again.added, again.seen) == (2, 10)
    urls = await drain(f)
    assert sorted(urls) == [x.url for x in links(12)]
    assert (await f.add(links(12))).seen == 12, "finished URLs stay seen"
    assert set((await check(r)).values()) == {"finished"}


async def test_links_off_the_sites_are_refused_and_counted(r: Any) -> None:
    f = await frontier(r)
    result = await f.add([link("/x", "elsewhere.com"), link("/1")])
    assert (result.added, result.refused) == (1, {"offsite": 1})


async def test_a_lease_carries_what_was_known_of_the_url(r: Any) -> None:
    f = await frontier(r)
    hint = {"title": "Giá vàng hôm nay", "published": "2026-11-21T08:00:00+07:00"}
    parent = bytes(range(16))
    await f.add(
        [
            link(
                "/tin?id=1&x=ă",
                kind=Kind.ARTICLE,
                depth=3,
                parent=parent,
                band=0,
                score=-17.6,
                hint=hint,
            )
        ]
    )
    (lease,) = (await f.step(1)).leases
    assert lease.url == "https://a.vn/tin?id=1&x=ă"
    assert (lease.kind, lease.depth, lease.parent, lease.hint) == (Kind.ARTICLE, 3, parent, hint)
    assert (lease.site, lease.tries, lease.band, lease.score) == ("a.vn", 0, 0, -18)
    assert lease.discovered_ms > 0 and lease.last_visit_ms == 0


@pytest.mark.parametrize(
    "url", ["http://a.vn/x", "https://a.vn", "https://a.vn?x=1", "https://a.vn.evil.com/x"]
)
async def test_every_form_of_url_survives_packing(r: Any, url: str) -> None:
    f = await frontier(r)
    one = link()
    one.url = url
    await f.add([one])
    assert [x.url for x in (await f.step(1)).leases] == [url]


async def test_inside_a_domain_band_then_score_then_age(r: Any) -> None:
    f = await frontier(r)
    await f.add(
        [link("/late-low", band=2), link("/old", band=1, score=5), link("/next", band=1, score=5)]
    )
    await f.add(
        [
            link("/fresh", band=0, score=-1_795_000_100),
            link("/fresher", band=0, score=-1_795_000_200),
        ]
    )
    await f.add([link("/first", band=1, score=-2)])
    assert [u.rsplit("/", 1)[1] for u in await drain(f)] == [
        "fresher",
        "fresh",
        "first",
        "old",
        "next",
        "late-low",
    ]


async def test_order_of_age_holds_over_a_long_queue(r: Any) -> None:
    f = await frontier(r)
    await f.add(links(1500))
    assert await drain(f) == [x.url for x in links(1500)]


async def test_classes_are_served_five_three_one(r: Any) -> None:
    f = await frontier(r)
    per_class = {}
    for cls in ("high", "mid", "low"):
        names = tuple(f"{cls}{i}.vn" for i in range(60))
        per_class[cls] = set(names)
        g = await frontier(r, domains=names, cls=cls)
        await g.add([x for name in names for x in links(40, name)])
    taken = {"high": 0, "mid": 0, "low": 0}
    acks: list[Ack] = []
    for _ in range(90):
        step = await f.step(10, acks)
        acks = [done(x) for x in step.leases]
        for lease in step.leases:
            taken[next(c for c, names in per_class.items() if lease.domain in names)] += 1
    assert taken == {"high": 500, "mid": 300, "low": 100}


async def test_an_empty_class_passes_its_turn_on(r: Any) -> None:
    f = await frontier(r, domains=tuple(f"h{i}.vn" for i in range(40)), cls="high")
    await (await frontier(r, domains=tuple(f"l{i}.vn" for i in range(40)), cls="low")).put_domains(
        []
    )
    await f.add([x for i in range(40) for x in links(30, f"h{i}.vn") + links(30, f"l{i}.vn")])
    step = await f.step(36)
    assert sum(x.domain.startswith("h") for x in step.leases) == 30
    assert sum(x.domain.startswith("l") for x in step.leases) == 6


async def test_the_domain_that_waited_longest_comes_first(r: Any) -> None:
    names = tuple(f"d{i}.vn" for i in range(5))
    f = await frontier(r, domains=names)
    for name in names:
        await f.add(links(3, name))
        await advance(r, 10)
    order = []
    acks: list[Ack] = []
    for _ in range(10):
        step = await f.step(1, acks)
        acks = [done(x) for x in step.leases]
        order += [x.domain for x in step.leases]
        await advance(r, 10)
    assert order == [*names, *names]


async def test_a_domain_is_in_one_fetch_at_a_time(r: Any) -> None:
    f, g = await frontier(r), await frontier(r, "w2")
    await f.add(links(5))
    (lease,) = (await f.step(8)).leases
    assert (await g.step(8)).leases == [], "another worker must not get the domain"
    await f.step(0, (), [ended(lease)])
    (second,) = (await g.step(8)).leases
    assert second.url != lease.url
    assert not (await f.step(0, [done(lease)])).rejected, (
        "the ack may come while the next fetch is at work"
    )
    await check(r)


async def test_fence_grows_and_a_late_ack_loses_to_the_new_lease(r: Any) -> None:
    f, g = await frontier(r), await frontier(r, "w2")
    await f.add(links(1))
    (old,) = (await f.step(1)).leases
    await run_out(r, old)
    (new,) = (await g.step(1)).leases
    assert new.url_id == old.url_id and new.fence > old.fence
    late = await f.step(0, [done(old, links=[link("/from-late")])], [ended(old)])
    assert late.rejected == [old.url_id, old.url_id]
    assert (await f.record(old.url_id, "a.vn")).worker == "w2"  # type: ignore[union-attr]
    assert not (await g.step(0, [done(new)])).rejected
    assert (await g.step(0, [done(new)])).rejected == [new.url_id], "the same ack twice"
    await check(r)


async def test_a_fence_is_never_given_twice_though_redis_forgets_a_second(r: Any) -> None:
    """A killed Redis comes back a second older: what it granted in that second, it grants again,
    under another number. A number that only grew by one would be the same, and the first worker's
    late ack would end the second's visit."""
    f, g = await frontier(r), await frontier(r, "w2")
    await f.add(links(1))
    before = {key: await r.dump(key) for key in await r.keys("*")}
    (forgotten,) = (await f.step(1)).leases
    await r.flushall()
    for key, value in before.items():
        await r.restore(key, 0, value)
    (lease,) = (await g.step(1)).leases
    assert lease.url_id == forgotten.url_id and lease.fence > forgotten.fence
    late = await f.step(0, [done(forgotten)], [ended(forgotten)])
    assert late.rejected == [lease.url_id, lease.url_id]
    assert await f.renew([forgotten]) == [lease.url_id]
    assert not (await g.step(0, [done(lease)], [ended(lease)])).rejected


async def test_a_late_renewal_loses_to_the_new_lease(r: Any) -> None:
    f, g = await frontier(r), await frontier(r, "w2", lease_ms=1000)
    await f.add(links(1))
    (old,) = (await f.step(1)).leases
    await run_out(r, old)
    (new,) = (await g.step(1)).leases
    before = await r.zscore(keys.deadlines(0), new.url_id)
    assert await f.renew([old]) == [old.url_id], "the worker must learn that it lost the page"
    assert await r.zscore(keys.deadlines(0), new.url_id) == before, "another's lease was prolonged"
    assert await g.renew([new]) == []


async def test_renewal_keeps_fence_and_lease(r: Any) -> None:
    f = await frontier(r, lease_ms=60_000)
    await f.add(links(1))
    (lease,) = (await f.step(1)).leases
    await run_out(r, lease)
    before = lease.deadline_ms
    assert await f.renew([lease]) == []
    assert lease.deadline_ms >= before
    assert (await f.step(4)).leases == []
    assert not (await f.step(0, [done(lease)])).rejected
    assert await f.renew([lease]) == [lease.url_id], "what is acked cannot be renewed"


async def test_a_restarted_worker_frees_its_own_leases_only(r: Any) -> None:
    f, other = await frontier(r, domains=("a.vn", "b.vn")), await frontier(r, "w2")
    await f.add(links(2) + links(2, "b.vn"))
    (mine,) = (await f.step(1)).leases
    (theirs,) = (await other.step(1)).leases
    again = await frontier(r)
    assert (await again.counts()).leased == 1
    assert (await again.step(0, [done(mine)])).rejected == [mine.url_id]
    assert not (await other.step(0, [done(theirs)])).rejected
    assert len(await drain(again)) == 3
    await check(r)


async def test_give_back_opens_the_domain_at_once_and_keeps_the_order(r: Any) -> None:
    f = await frontier(r, floor_ms=60_000)
    await f.add(links(3))
    (lease,) = (await f.step(1)).leases
    assert await f.give_back([lease]) == 1
    (again,) = (await f.step(1)).leases
    assert (again.url, again.tries) == (lease.url, 0)
    assert await f.give_back([lease]) == 0, "the old number has no power over the new lease"
    await check(r)


async def test_give_back_of_what_was_fetched_leaves_the_gate_closed(r: Any) -> None:
    f = await frontier(r, floor_ms=60_000)
    await f.add(links(3))
    (lease,) = (await f.step(1)).leases
    await f.give_back([lease], [ended(lease)])
    assert (await f.step(1)).leases == []
    assert (await f.counts()).queued == 3


async def test_close_gives_back(r: Any) -> None:
    f = await frontier(r, domains=("a.vn", "b.vn"))
    await f.add(links(2) + links(2, "b.vn"))
    assert len((await f.step(4)).leases) == 2
    await f.close()
    assert (await f.counts()).leased == 0
    assert (await f.counts()).queued == 4


async def test_retry_comes_back_when_due_with_its_tries_counted(r: Any) -> None:
    f = await frontier(r, retry_ms=MINUTE, max_tries=3)
    await f.add(links(1))
    (lease,) = (await f.step(1)).leases
    step = await f.step(4, [done(lease, Outcome.RETRY, reason="status 500", status=500)])
    assert (step.leases, step.queued, step.waiting) == ([], 1, 0), "a retry is work that is left"
    assert MINUTE - 20_000 < step.wait_ms <= MINUTE
    await advance(r, MINUTE - 1000)
    assert (await f.step(4)).leases == []
    await advance(r, 1000)
    (lease,) = (await f.step(4)).leases
    assert lease.tries == 1
    await f.step(0, [done(lease, Outcome.RETRY)])
    await advance(r, 3 * MINUTE)
    assert (await f.step(4)).leases == [], "the second retry waits four times as long"
    await advance(r, MINUTE)
    (lease,) = (await f.step(4)).leases
    await f.step(0, [done(lease, Outcome.RETRY, reason="status 500")])
    assert (await f.record(lease.url_id, "a.vn")).outcome == Outcome.FAILED  # type: ignore[union-attr]
    assert (await f.counts()).quarantined == 1
    await check(r)


async def test_retry_waits_for_what_the_site_asked(r: Any) -> None:
    f = await frontier(r)
    await f.add(links(1))
    (lease,) = (await f.step(1)).leases
    await f.step(0, [done(lease, Outcome.RETRY, status=503, retry_after_s=1800)])
    await advance(r, 29 * MINUTE)
    assert (await f.step(1)).leases == []
    await advance(r, 5 * MINUTE)  # back-off adds up to 10 %
    assert len((await f.step(1)).leases) == 1


async def test_a_failed_url_may_be_offered_again_when_due_and_replayed_before(r: Any) -> None:
    f = await frontier(r, max_tries=1, failed_due_ms=7 * 86_400_000)
    await f.add(links(2))
    for _ in range(2):
        (lease,) = (await f.step(1)).leases
        await f.step(0, [done(lease, Outcome.RETRY, reason="status 500")])
    assert (await f.add(links(2))).seen == 2
    listed = await f.operator.quarantined()
    assert {q.url for q in listed} == {x.url for x in links(2)} and {q.reason for q in listed} == {
        "status 500"
    }
    assert await f.operator.replay(listed[:1]) == 1
    assert (await f.counts()).queued == 1 and (await f.counts()).quarantined == 1
    await advance(r, 7 * 86_400_000 + 1000)
    assert (await f.add(links(2))).added == 1
    assert (await f.counts()).quarantined == 0
    await check(r)
    assert len(await drain(f)) == 2


async def test_quarantine_can_be_dropped(r: Any) -> None:
    f = await frontier(r)
    await f.add(links(1))
    (lease,) = (await f.step(1)).leases
    await f.step(0, [done(lease, Outcome.FAILED, reason="redirect loop")])
    assert await f.operator.drop(await f.operator.quarantined("a.vn")) == 1
    assert await f.operator.quarantined() == []
    assert (await f.add(links(1))).seen == 1


async def test_list_pages_come_back_and_are_not_what_the_crawl_waits_for(r: Any) -> None:
    f = await frontier(r)
    await f.add([link("/", kind=Kind.HOME, band=0, revisit=True)])
    (home,) = (await f.step(1)).leases
    step = await f.step(
        1, [done(home, etag='"1"', last_modified="Sat", digest=b"d" * 16, content_state=b"l" * 16)]
    )
    assert (step.queued, step.waiting, step.leases) == (0, 1, [])
    assert (await f.add([link("/", kind=Kind.HOME, revisit=True)])).seen == 1
    await advance(r, 15 * MINUTE)
    (again,) = (await f.step(1)).leases
    assert (again.etag, again.last_modified, again.digest, again.content_state) == (
        '"1"',
        "Sat",
        b"d" * 16,
        b"l" * 16,
    )
    assert again.last_visit_ms > 0
    step = await f.step(
        0, [done(again, Outcome.UNCHANGED, next_visit_ms=again.last_visit_ms + 100 * MINUTE)]
    )
    record = await f.record(home.url_id, "a.vn")
    assert record is not None and record.state == "waiting" and record.etag == '"1"', (
        "304 tells no etag: the old stays"
    )
    assert record.next_visit_ms == again.last_visit_ms + 100 * MINUTE
    await check(r)


async def test_a_dead_home_page_is_asked_for_ever_without_holding_up_the_crawl(r: Any) -> None:
    f = await frontier(r, max_tries=2)
    await f.add([link("/", kind=Kind.HOME, band=0)])
    for _ in range(4):
        (home,) = (await f.step(1)).leases
        step = await f.step(0, [done(home, Outcome.RETRY, reason="status 500")])
        await advance(r, 7 * 3_600_000)
    assert (step.queued, step.waiting) == (0, 1)
    await check(r)


async def test_an_article_with_a_next_visit_comes_back_once_due(r: Any) -> None:
    f = await frontier(r)
    await f.add(links(1))
    step = await f.step(1)
    await f.step(0, [done(step.leases[0], next_visit_ms=step.now_ms + 15 * MINUTE)])
    assert (await f.step(1)).leases == []
    await advance(r, 16 * MINUTE)
    (again,) = (await f.step(1)).leases
    await f.step(0, [done(again)])
    assert (await f.record(again.url_id, "a.vn")).state == "finished"  # type: ignore[union-attr]


async def test_a_link_with_a_due_time_waits_for_it(r: Any) -> None:
    f = await frontier(r)
    now = (await f.step(0)).now_ms
    await f.add([link("/later", due_ms=now + MINUTE), link("/now")])
    assert await drain(f) == ["https://a.vn/now"]
    await advance(r, MINUTE)
    assert await drain(f) == ["https://a.vn/later"]


async def test_a_revisit_offer_readmits_a_finished_url_when_due(r: Any) -> None:
    f = await frontier(r)
    await f.add(links(1))
    await drain(f)
    assert (await f.add(links(1, revisit=True))).seen == 1
    await advance(r, 25 * 3_600_000)
    assert (await f.add(links(1))).seen == 1
    assert (await f.add(links(1, revisit=True))).added == 1
    await check(r)


async def test_a_url_refused_by_robots_is_offered_again_when_robots_change(r: Any) -> None:
    f = await frontier(r)
    await f.add(links(1))
    (lease,) = (await f.step(1)).leases
    await f.step(0, [done(lease, Outcome.REFUSED, reason="robots", status=0)])
    assert (await f.add(links(1))).seen == 1
    g = await frontier(r, obey_robots=True)
    await g.add([link("/other")])
    (robots,) = (await g.step(1)).leases
    from newscrawler.frontier.queue import RobotsAnswer

    await g.step(0, [done(robots, robots=RobotsAnswer(200, b"User-agent: *"))])
    assert (await f.add(links(1))).added == 1


async def test_a_moved_url_keeps_its_id_on_the_same_domain(r: Any) -> None:
    f = await frontier(r)
    one = link("/tin-1.html")
    one.url = "http://a.vn/tin-1.html"
    await f.add([one])
    (lease,) = (await f.step(1)).leases
    step = await f.step(
        1, [done(lease, Outcome.RETRY, reason="moved", moved_to="https://a.vn/tin-mot-1.html")]
    )
    (again,) = step.leases
    assert (again.url, again.url_id, again.tries) == ("https://a.vn/tin-mot-1.html", one.url_id, 1)
    await check(r)


async def test_a_moved_url_keeps_its_id_on_another_domain(r: Any) -> None:
    f = await frontier(r, domains=("a.vn", "m.a.vn"))
    await f.add([link("/tin-1.html", "m.a.vn")])
    (lease,) = (await f.step(1)).leases
    step = await f.step(
        1, [done(lease, Outcome.RETRY, reason="moved", moved_to="https://a.vn/tin-1.html")]
    )
    (again,) = step.leases
    assert (again.url, again.domain, again.url_id) == (
        "https://a.vn/tin-1.html",
        "a.vn",
        lease.url_id,
    )
    assert await check(r) == {lease.url_id: "leased"}
    old = link("/tin-1.html", "m.a.vn")
    assert (await f.add([old])).seen == 1, "links to the place that it left are known"
    await f.step(0, [done(again)])
    assert (await f.add([old])).seen == 1
    assert await check(r) == {lease.url_id: "finished"}


@pytest.mark.parametrize(("shards", "place"), [(1, "queued"), (16, "queued"), (16, "leased")])
async def test_a_url_that_moves_to_where_it_is_known_is_one_page(
    r: Any, shards: int, place: str
) -> None:
    """Both spellings were queued before the site said that one leads to the other."""
    old, new = link("/tin-1.html", "m.a.vn", band=0), link("/tin-1.html", "a.vn")
    is_apart = keys.shard_of(old.domain, shards) != keys.shard_of(new.domain, shards)
    assert is_apart == (shards > 1), "with several shards the two must lie apart"
    f = await frontier(r, domains=(old.domain, new.domain), shards=shards)
    await f.add([old])
    (lease,) = (await f.step(4)).leases
    new.url_id = lease.url_id
    assert (await f.add([new])).added == 1
    held = (await f.step(4)).leases if place == "leased" else []
    moved = done(lease, Outcome.RETRY, reason="moved", moved_to=new.url)
    assert not (await f.step(0, [moved], [ended(lease)])).rejected
    assert await check(r, shards) == {lease.url_id: place}, "the old place holds nothing more"
    (again,) = held or (await f.step(4)).leases
    assert again.url == new.url
    await f.step(0, [done(again)], [ended(again)])
    assert await check(r, shards) == {lease.url_id: "finished"}
    assert (await f.record(lease.url_id, new.domain)).outcome is Outcome.DONE  # type: ignore[union-attr]


@pytest.mark.parametrize("at_once", [True, False])
async def test_one_page_queued_under_two_hosts_has_one_lease_at_a_time(
    r: Any, at_once: bool
) -> None:
    """A second lease of the same url id took the place of the first, and the first host was
    never fetched again."""
    hosts = ("a.vn", "m.a.vn")
    f = await frontier(r, domains=hosts)
    await freeze(r)
    pages = [link("/tin-1.html", host) for host in hosts]
    pages[1].url_id = pages[0].url_id
    for page in pages:
        assert (await f.add([page])).added == 1
    (first,) = (await f.step(4 if at_once else 1)).leases
    await f.add([x for host in hosts for x in links(1, host)])
    beside = (await f.step(4)).leases
    assert [x.domain for x in beside] == [host for host in hosts if host != first.domain]
    assert first.url_id not in {x.url_id for x in beside}
    told = [first, *beside]
    assert not (await f.step(0, [done(x) for x in told], [ended(x) for x in told])).rejected
    await advance(r, 11_000)
    rest = (await f.step(4)).leases
    assert {x.domain for x in rest} == set(hosts), "a host waits for a fetch that ended"
    assert not (await f.step(0, [done(x) for x in rest], [ended(x) for x in rest])).rejected
    assert [(await f.operator.state(host)).fetching for host in hosts] == [None, None]  # type: ignore[union-attr]
    assert (await f.counts()).queued == 0


@pytest.mark.parametrize("is_done", [True, False])
async def test_a_redirect_to_a_url_already_seen_ends_and_fetches_nothing_twice(
    r: Any, is_done: bool
) -> None:
    f = await frontier(r, domains=("a.vn", "b.vn"))
    target = link("/target", "b.vn")
    await f.add([link("/old"), target])
    leases = {x.domain: x for x in (await f.step(4)).leases}
    if is_done:
        await f.step(0, [done(leases["b.vn"])], [ended(leases["b.vn"])])
    ack = done(leases["a.vn"], Outcome.REDIRECTED, status=301, links=[target])
    step = await f.step(4, [ack], [ended(leases["a.vn"], 301)])
    assert (step.rejected, step.leases, step.added.seen) == ([], [], 1)
    record = await f.record(leases["a.vn"].url_id, "a.vn")
    assert record is not None and (record.state, record.outcome) == (
        "finished",
        Outcome.REDIRECTED,
    )
    await check(r)


async def test_a_url_that_wanders_between_domains_is_given_up(r: Any) -> None:
    f = await frontier(r, domains=("a.vn", "m.a.vn"))
    await f.add([link("/tin-1.html", "m.a.vn")])
    other = {"a.vn": "m.a.vn", "m.a.vn": "a.vn"}
    for _ in range(6):
        (lease,) = (await f.step(1)).leases
        moved = f"https://{other[lease.domain]}/tin-1.html"
        await f.step(0, [done(lease, Outcome.RETRY, reason="moved", moved_to=moved)])
        assert len(await check(r)) == 1
    assert [q.reason for q in await f.operator.quarantined()] == ["redirect loop"]


async def test_links_of_an_ack_are_queued_with_it(r: Any) -> None:
    f = await frontier(r, domains=("a.vn", "b.vn"))
    await f.add(links(1))
    (lease,) = (await f.step(1)).leases
    found = [*links(3), link("/b", "b.vn"), link("/x", "off.com")]
    step = await f.step(0, [done(lease, links=found)])
    assert (step.added.added, step.added.seen, step.added.refused) == (3, 1, {"offsite": 1})
    assert step.queued == 3
    assert f.seen_local(found[1].url) and not f.seen_local(found[4].url)


async def test_a_page_with_thousands_of_links_is_split(r: Any) -> None:
    f = await frontier(r)
    await f.add([link("/sitemap.xml", kind=Kind.SITEMAP)])
    (lease,) = (await f.step(1)).leases
    step = await f.step(0, [done(lease, links=links(3000))])
    assert step.added.added == 3000 and step.queued == 3000 and step.waiting == 1


async def test_many_acks_in_one_step(r: Any) -> None:
    names = tuple(f"d{i}.vn" for i in range(200))
    f = await frontier(r, domains=names)
    await f.add([link("/", n) for n in names])
    leases = (await f.step(200)).leases
    assert len(leases) == 200
    step = await f.step(1, [done(x) for x in leases])
    assert (step.queued, step.leased, step.rejected) == (0, 0, [])


async def test_a_full_queue_lowers_the_band_then_drops_and_counts(r: Any) -> None:
    f = await frontier(r, queue_limit=10)
    assert (await f.add(links(10))).added == 10
    over = link("/over", band=2)
    assert (await f.add([over])).refused == {"queue_full": 1}
    assert (await f.add([link("/section", band=1)])).added == 1, "falls into the last band"
    assert (await f.record(link("/section").url_id, "a.vn")).band == 2  # type: ignore[union-attr]
    assert (await f.add([over])).refused == {"queue_full": 1}
    assert (await f.add([over])).refused == {"dropped": 1}
    assert (await f.add([over])).seen == 1
    row = (await f.report())["domains"][0]
    assert (row["dropped"], row["queued"]) == (1, 11)
    await advance(r, 86_400_000 + 1000)
    await drain(f)
    assert (await f.add([over])).added == 1, "a drop is not for ever"
    await check(r)


async def test_urls_that_wait_for_their_time_count_for_the_limit(r: Any) -> None:
    f = await frontier(r, queue_limit=10)
    later = (await f.step(0)).now_ms + 3_600_000
    found = [*links(5, band=0), *links(25, start=5, band=0, due_ms=later)]
    assert (await f.add(found)).refused == {}
    bands = [(await f.record(x.url_id, "a.vn")).band for x in links(30)]  # type: ignore[union-attr]
    assert bands == [0] * 10 + [1] * 10 + [2] * 10
    for due_ms in (0, later):
        over = link(f"/over/{due_ms}", band=0, due_ms=due_ms)
        assert (await f.add([over])).refused == {"queue_full": 1}
    assert (await f.counts()).queued == 30
    await check(r)


@pytest.mark.parametrize(
    ("held", "band", "expected"), [(9, 0, 0), (10, 0, 1), (19, 0, 1), (20, 0, 2), (30, 0, None)]
)
async def test_bands_fall_by_whole_limits(
    r: Any, held: int, band: int, expected: int | None
) -> None:
    f = await frontier(r, queue_limit=1000)
    await f.add(links(held))
    g = await frontier(r, "w2", queue_limit=10)
    result = await g.add([link("/x", band=band)])
    if expected is None:
        assert result.refused == {"queue_full": 1}
    else:
        assert (await g.record(link("/x").url_id, "a.vn")).band == expected  # type: ignore[union-attr]


async def test_a_disabled_domain_is_not_leased_and_takes_no_links(r: Any) -> None:
    from newscrawler.frontier.queue import DomainPolicy

    f = await frontier(r)
    await f.add(links(2))
    await f.put_domains([DomainPolicy("a.vn", "a.vn", "mid", 0, enabled=False)])
    assert (await f.step(4)).leases == []
    assert (await f.add(links(3, start=10))).refused == {"disabled": 3}
    await f.put_domains([DomainPolicy("a.vn", "a.vn", "mid", 0)])
    assert len(await drain(f)) == 2


@pytest.mark.parametrize(
    "poison", [b"", b"x", b"\x09" + b"\x00" * 60], ids=["empty", "short", "schema 9"]
)
async def test_a_record_that_cannot_be_read_goes_to_quarantine(r: Any, poison: bytes) -> None:
    f = await frontier(r)
    await f.add(links(3))
    bad = links(1)[0].url_id
    await r.hset(keys.records(0, "a.vn"), bad, poison)
    assert await drain(f) == [x.url for x in links(2, start=1)]
    (listed,) = await f.operator.quarantined()
    assert (listed.url_id, listed.reason, listed.url) == (bad, "poison", None)
    assert (await f.counts()).leased == 0


@pytest.mark.parametrize(
    "rest", [b"\xc1", b"\x01\x01", b"\x90", b"\x91\xa1\xff"], ids=["type", "extra", "empty", "text"]
)
async def test_a_record_whose_body_is_poison_goes_to_quarantine_with_its_bytes(
    r: Any, rest: bytes
) -> None:
    f = await frontier(r)
    await f.add(links(2))
    bad = links(1)[0].url_id
    data = await r.hget(keys.records(0, "a.vn"), bad)
    await r.hset(keys.records(0, "a.vn"), bad, data[:37] + rest)
    assert (await f.step(1)).leases == []
    assert await drain(f) == [links(2)[1].url]
    assert (await r.hvals(keys.quarantine(0)))[0].endswith(data[:37][-16:] + rest)


async def test_another_number_of_shards_is_refused_while_urls_are_queued(r: Any) -> None:
    f = await frontier(r)
    await f.add(links(1))
    with pytest.raises(
        FrontierRefused, match="FRONTIER_SHARDS is 4, but the frontier was filled with 1"
    ):
        await frontier(r, shards=4)
    await f.operator.purge("a.vn")
    assert (await (await frontier(r, shards=4)).counts()).queued == 0


async def test_a_newer_schema_is_refused(r: Any) -> None:
    await frontier(r)
    await r.hset(keys.META, "schema", 99)
    with pytest.raises(FrontierRefused, match="newer version"):
        await frontier(r)


async def test_four_shards_behave_like_one(r: Any) -> None:
    names = tuple(f"d{i}.vn" for i in range(12))
    f = await frontier(r, domains=names, shards=4)
    assert len({keys.shard_of(n, 4) for n in names}) == 4
    await f.add([x for n in names for x in links(5, n)])
    got: list[str] = []
    acks: list[Ack] = []
    for _ in range(60):
        step = await f.step(7, acks)
        assert not step.rejected
        got += [x.url for x in step.leases]
        acks = [done(x, links=[link("/new", x.domain)]) for x in step.leases]
        if not step.leases and not step.pending:
            break
    assert len(got) == len(set(got)) == 12 * 6
    assert set((await check(r, shards=4)).values()) == {"finished"}
