"""More is due in a domain than can be fetched: lists, then what is new, newest first, then second
looks at what is old."""

from __future__ import annotations

import random
from datetime import UTC, datetime
from typing import Any

from newscrawler.discovery.sites import Sites
from newscrawler.frontier.queue import Frontier, Step
from newscrawler.items import Kind, Link
from tests.redis.helpers import advance, check, done, ended, freeze, frontier, link

MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000
SITES = Sites.load("").for_urls(["https://a.vn/"])


def found(path: str, now_ms: int, kind: Kind = Kind.ARTICLE, **more: Any) -> Link:
    """A link as discovery makes it."""
    link = SITES.identify(f"https://a.vn{path}", kind=kind, now_ms=now_ms, **more)
    assert isinstance(link, Link)
    return link


def published(ms: int) -> dict[str, Any]:
    return {"published": datetime.fromtimestamp(ms / 1000, UTC).isoformat()}


async def now_of(f: Frontier) -> int:
    return await f.operator.now_ms()


async def visit(f: Frontier, next_in_ms: int | None = None) -> str:
    """Fetches the next URL; its path."""
    step: Step = await f.step(1)
    (lease,) = step.leases
    next_ms = None if next_in_ms is None else step.now_ms + next_in_ms
    await f.step(0, [done(lease, next_visit_ms=next_ms)], [ended(lease)])
    return lease.url.removeprefix("https://a.vn")


async def test_what_is_new_goes_before_second_looks_and_lists_before_both(r: Any) -> None:
    f = await frontier(r)
    await freeze(r)
    start = await now_of(f)
    # The first hours: lists and 60 articles are read, each to be looked at again.
    lists = [found("/", start, Kind.HOME), found("/thoi-su", start, Kind.SECTION)]
    await f.add(lists)
    assert [await visit(f, 4 * HOUR - MINUTE) for _ in lists] == ["/", "/thoi-su"]
    old = []
    for n in range(60):
        now = await now_of(f)
        hint = published(now - HOUR) if n % 2 else None
        old.append(found(f"/cu-{n}.html", now, depth=1 + n % 2, hint=hint))
        await f.add(old[-1:])
        await visit(f, start + 4 * HOUR - now)
        await advance(r, MINUTE)
    await advance(r, start + 4 * HOUR + 2 * MINUTE - await now_of(f))
    # Everything is due, and new articles come.
    now = await now_of(f)
    fresh = [
        found(f"/moi-{n}.html", now, depth=1, hint=published(now - n * 3 * MINUTE))
        for n in range(20)
    ]
    undated = [found(f"/chua-ro-{n}.html", now, depth=1) for n in range(20)]
    deep = [found(f"/sau-{n}.html", now, depth=4) for n in range(5)]
    archive = [found(f"/kho-{n}.html", now, hint=published(now - (30 + n) * DAY)) for n in range(5)]
    new = [*fresh, *undated, *deep, *archive]
    random.Random(3).shuffle(new)
    assert (await f.add(new)).added == len(new)
    assert (await f.counts()).queued + (await f.counts()).waiting == len(new) + 62

    order = [await visit(f) for _ in range(len(new) + 62)]
    kinds = [
        path.lstrip("/").rsplit("-", 1)[0] if path.endswith("html") else path for path in order
    ]
    assert kinds == (
        ["/"] + ["moi"] * 20  # band 0: lists, articles younger than a day
        + ["/thoi-su"] + ["chua-ro"] * 20  # band 1: sections, what they show
        + ["sau"] * 5 + ["cu"] * 60 + ["kho"] * 5  # band 2: the rest
    )  # fmt: skip
    assert order[1:21] == [f"/moi-{n}.html" for n in range(20)], "newest first"
    assert [p for p in order if p.startswith("/cu-")] == [
        f"/cu-{n}.html" for n in reversed(range(60))
    ]
    await check(r)


async def test_a_busy_domain_fetches_all_that_is_new_on_its_second_day(r: Any) -> None:
    """Ten fetches an hour; eight new articles, twelve second looks and two visits of the
    home page are due in each."""
    f = await frontier(r)
    await freeze(r)
    start = await now_of(f)
    await f.add([found("/", start, Kind.HOME)])
    fetched: list[list[str]] = []
    for hour in range(36):
        now = await now_of(f)
        born = [now - n * MINUTE for n in range(8)]
        links = [
            found(f"/tin-{hour}-{n}.html", now, depth=1, hint=published(at) if n % 2 else None)
            for n, at in enumerate(born)
        ]
        await f.add(links)
        fetched.append([])
        for _ in range(10):
            fetched[-1].append(await visit(f, 30 * MINUTE))
            await advance(r, 6 * MINUTE)
    new = [{p for p in paths if p.startswith(f"/tin-{h}-")} for h, paths in enumerate(fetched)]
    assert [len(paths) for paths in new] == [8] * 36, "second looks went before what was new"
    assert min(paths.count("/") for paths in fetched) >= 1, "the home page starved"


async def test_a_list_that_is_due_comes_first_in_its_band_on_the_third_day_too(r: Any) -> None:
    f = await frontier(r)
    await freeze(r)
    await f.add([found("/", await now_of(f), Kind.HOME)])
    for _ in range(3):
        assert await visit(f, 15 * MINUTE) == "/"
        await advance(r, 15 * MINUTE)
        now = await now_of(f)
        hints = [published(now - n * MINUTE) for n in range(5)]
        await f.add([found(f"/tin-{now}-{n}.html", now, hint=hints[n]) for n in range(5)])
        assert await visit(f, DAY) == "/", "new articles kept the list from being read"
        assert len({await visit(f) for _ in range(5)}) == 5
        await advance(r, DAY)
    await check(r)


BUSY = [f"site-{n}.vn" for n in range(120)]


async def fetch(f: Frontier, slots: int, next_in_ms: int) -> list[str]:
    """A round of a fleet with so many fetches at once; ``domain/path`` of each."""
    step = await f.step(slots)
    acks = [done(x, next_visit_ms=step.now_ms + next_in_ms) for x in step.leases]
    await f.step(0, acks, [ended(x) for x in step.leases])
    await advance(f.client, 200)
    return [lease.url.removeprefix("https://") for lease in step.leases]


async def test_what_is_new_goes_before_second_looks_of_other_domains(r: Any) -> None:
    """Many domains, few fetches at once: domains that have nothing but second looks gave
    them a turn each before those that had news."""
    f = await frontier(r, domains=tuple(BUSY))
    await freeze(r)
    for domain in BUSY:
        await f.add([link("/cu-1.html", domain, band=1), link("/cu-2.html", domain, band=1)])
    for _ in range(2 * len(BUSY) // 8):
        assert len(await fetch(f, 8, HOUR)) == 8
    await advance(r, 2 * HOUR)  # all second looks are due, and wait since an hour
    news = BUSY[100:]
    for domain in news:
        await f.add([link(f"/moi-{n}.html", domain, band=0) for n in range(3)])

    order: list[str] = []
    for _ in range(20):
        order += await fetch(f, 8, 10 * DAY)
    new = [at for at, path in enumerate(order) if "/moi-" in path]
    assert len(new) == 3 * len(news), "all that is new was fetched"
    before = [path for path in order[: new[-1]] if "/cu-" in path]
    # In each call at most 2 * 8 + 16 domains are looked at: the first three find nothing new.
    assert len(before) <= 3 * 8 + len(new) // 9 + 8, f"{len(before)} second looks came first"
    assert before[3 * 8 :], "and second looks do not starve: one after each nine"
    while got := await fetch(f, 8, 10 * DAY):
        order += got
    assert len(order) == 3 * len(news) + 2 * len(BUSY), "whoever gave way comes when nothing is new"
    assert len(set(order)) == len(order)
    await check(r)


async def test_a_list_of_a_domain_that_gave_way_waits_half_a_minute_at_most(r: Any) -> None:
    f = await frontier(r, domains=tuple(BUSY))
    await freeze(r)
    await f.add([link("/", BUSY[0], kind=Kind.HOME)])
    assert await fetch(f, 1, HOUR) == ["site-0.vn/"]
    for domain in BUSY:
        await f.add([link("/cu.html", domain, band=1)])
    for _ in range(len(BUSY) // 8):
        await fetch(f, 8, HOUR // 2)
    await advance(r, HOUR - 5_000)  # the home page is due in a second or two
    for domain in BUSY[100:]:
        await f.add([link(f"/moi-{n}.html", domain, band=0) for n in range(40)])
    for _ in range(6):
        assert "site-0.vn/" not in await fetch(f, 8, 10 * DAY)
    await advance(r, 30_000)
    order: list[str] = []
    for _ in range(6):
        order += await fetch(f, 8, 10 * DAY)
    assert "site-0.vn/" in order
    assert sum("/moi-" in path for path in order) > 40, "the fleet was busy"


async def test_second_looks_take_all_fetches_that_nobody_else_needs(r: Any) -> None:
    f = await frontier(r, domains=tuple(BUSY))
    await freeze(r)
    for domain in BUSY:
        await f.add([link("/cu.html", domain, band=1)])
    for _ in range(len(BUSY) // 8):
        await fetch(f, 8, HOUR)
    await advance(r, HOUR)
    first = await f.step(8)
    assert len(first.leases) == 8
    rest = await f.step(64)
    assert len(rest.leases) == 64
    assert (await f.step(0)).wait_ms == 0, "who gave way may come now"
    assert len((await f.step(64)).leases) == 48
    await check(r)
