"""How often a list page is looked at again: by what it shows that it did not show before, and what
of that was known."""

from __future__ import annotations

import random
from collections.abc import Collection
from types import SimpleNamespace
from typing import Any

import msgpack
import pytest

from newscrawler.discovery.list_revisits import (
    LEAD_LONGEST_S,
    MISSES_S,
    MOST_PRINTS,
    SPARE_LEAD_LONGEST_S,
    TOMBSTONE_S,
    ListVisit,
    Memory,
    lead_urls,
    missing,
    moved,
    newest_s,
    plan,
    unchanged,
)
from newscrawler.discovery.sitefile import site_from_dict
from newscrawler.items import Kind, Link

NOW = 1_793_000_000


def uid(n: int) -> bytes:
    return random.Random(n).randbytes(16)


def article(n: int, *, age: float | None = None) -> Link:
    hint = None if age is None else {"published": "2026-10-26T08:00:00+07:00"}
    score = -NOW + 43_200.0 if age is None else -(NOW - age)
    return Link(f"https://bao.vn/{n}.html", uid(n), "bao.vn", Kind.ARTICLE, band=1 if age is None else 0, score=score, hint=hint)  # fmt: skip


def section(n: int) -> Link:
    return Link(f"https://bao.vn/{n}", uid(n), "bao.vn", Kind.PAGE)


def visit(ids: Collection[int], new: Collection[Link] = (), **more: Any) -> ListVisit:
    more = {"kind": Kind.SECTION, "last_s": NOW - 900, **more}
    return ListVisit(now_s=NOW, ids=[uid(n) for n in ids], new=new, **more)


def after(shown: Collection[int], interval: float = 900, **more: Any) -> Memory:
    """What a list remembers that showed these links at its last visit."""
    memory = plan(visit(shown, last_s=0), Memory())
    memory.interval_s = round(interval)
    for name, value in more.items():
        setattr(memory, name, value)
    return memory


# ---------------------------------------------------------------- first visits
@pytest.mark.parametrize(
    ("kind", "lead", "age", "seconds"),
    [
        (Kind.HOME, True, None, 300),
        (Kind.FEED, True, 60, 300),
        (Kind.FEED, False, 60, 900),
        (Kind.SECTION, False, None, 900),
        (Kind.SITEMAP, True, 60, 300),  # a news sitemap, whoever named it
        (Kind.SITEMAP, False, None, 6 * 3600),  # an index, or one that does not tell
        (Kind.SITEMAP, False, 60, 900),  # of this month
        (Kind.SITEMAP, False, 10 * 3600, 1800),
        (Kind.SITEMAP, False, 90 * 86_400, 86_400),  # an archive
        (Kind.FEED, False, 90 * 86_400, 86_400),
        (Kind.FEED, True, 90 * 86_400, 86_400),
    ],
)
def test_first_interval(kind: Kind, lead: bool, age: float | None, seconds: int) -> None:
    newest = None if age is None else NOW - age
    first = plan(
        visit(range(50), [article(n) for n in range(50)], kind=kind, is_lead=lead, newest_s=newest),
        Memory(),
    )
    assert first.interval_s == seconds


# ---------------------------------------------------------------- the share of known links
@pytest.mark.parametrize(
    ("fresh", "unknown", "seconds"),
    [
        (0, 0, 1350),  # nothing that it did not show before
        (100, 0, 1350),  # all of it was known
        (100, 1, 900),  # one piece that nobody else had: no less often
        (3, 1, 900),  # 67 % known
        (3, 2, 450),  # 33 % known, and two pieces waited
        (1, 1, 600),
        (2, 2, 450),
        (9, 9, 300),
    ],
)
def test_lists_adapt_to_what_they_show_that_nobody_knew(
    fresh: int, unknown: int, seconds: int
) -> None:
    new = [article(n) for n in range(1000, 1000 + unknown)]
    now = plan(visit([*range(50), *range(1000, 1000 + fresh)], new), after(range(50)))
    assert now.interval_s == seconds


def test_links_that_were_shown_before_are_not_new_to_a_worker_that_knows_nothing() -> None:
    everything = [article(n) for n in range(50)]
    assert plan(visit(range(49), everything[:49]), after(range(50))).interval_s == 1350


def test_links_that_are_no_articles_make_no_list_worth_a_visit() -> None:
    new = [section(n) for n in range(60, 70)]
    assert plan(visit(range(70), new), after(range(60))).interval_s == 1350


@pytest.mark.parametrize(
    ("interval", "seconds"), [(300, 450), (57_600, 86_400), (80_000, 86_400), (86_400, 86_400)]
)
def test_no_list_waits_for_longer_than_a_day(interval: int, seconds: int) -> None:
    assert unchanged(visit([]), after(range(3), interval)).interval_s == seconds


def test_a_list_that_has_much_of_its_own_is_visited_as_often_as_it_has_an_article() -> None:
    new = [article(n) for n in range(100, 124)]
    now = plan(visit(range(124), new, last_s=NOW - 86_400), after(range(100), 86_400))
    assert now.interval_s == 3600
    assert plan(visit(range(124), new, last_s=NOW - 600), after(range(100), 600)).interval_s == 300


def test_a_long_list_is_judged_by_what_the_worker_did_not_know() -> None:
    many = range(MOST_PRINTS + 1)
    first = plan(visit(many, [article(n) for n in many], kind=Kind.SITEMAP), Memory())
    assert first.prints == b""
    now = plan(visit([*many, 9000], [article(9000)], kind=Kind.SITEMAP), first)
    assert now.interval_s == first.interval_s / 1.5


# ---------------------------------------------------------------- leads
@pytest.mark.parametrize(
    ("quiet", "missed", "seconds"),
    [
        (60, 60, LEAD_LONGEST_S),
        (7200, 60, LEAD_LONGEST_S),
        (3 * 3600, 60, LEAD_LONGEST_S),
        (10 * 3600, 60, 1800),  # at night: a twentieth of the silence
        (30 * 86_400, 30 * 86_400, 7200),  # asleep: on its way to once a day
        (60, 6 * 86_400, LEAD_LONGEST_S),
        (60, 8 * 86_400, SPARE_LEAD_LONGEST_S),  # others show all of it in time
    ],
)
def test_a_lead_is_looked_at_every_few_minutes(quiet: int, missed: int, seconds: float) -> None:
    memory = after(range(5), 4800, fresh_s=NOW - quiet, missed_s=NOW - missed)
    assert unchanged(visit([], kind=Kind.FEED, is_lead=True), memory).interval_s == seconds


def test_a_home_page_is_never_spare() -> None:
    memory = after(range(5), 4800, fresh_s=NOW, missed_s=NOW - 30 * 86_400)
    assert unchanged(visit([], kind=Kind.HOME, is_lead=True), memory).interval_s == LEAD_LONGEST_S


def test_a_lead_that_wakes_up_is_back_at_once() -> None:
    memory = after(range(5), 40_000, fresh_s=NOW - 6 * 86_400, missed_s=NOW - 6 * 86_400)
    now = plan(visit(range(6), [article(5, age=60)], kind=Kind.HOME, is_lead=True), memory)
    assert now.interval_s == 300 and now.fresh_s == NOW


@pytest.mark.parametrize("interval", [300, 450, 600, 1800])
def test_a_lead_that_yields_is_looked_at_every_five_minutes(interval: int) -> None:
    """It went from ten minutes to five in two steps, and back to ten with the first visit
    that showed nothing."""
    memory = after(range(40), interval, missed_s=NOW)
    known = [section(n) for n in range(41, 45)]  # most of what it shows is not new
    now = plan(visit(range(2, 46), [*known, article(45)], kind=Kind.HOME, is_lead=True), memory)
    assert now.interval_s == 300
    spare = after(range(40), interval, missed_s=NOW - 8 * 86_400)
    other = plan(visit(range(2, 46), [article(45)], kind=Kind.FEED, is_lead=True), spare)
    assert other.interval_s > 300 or interval <= 450, "what it shows others show in time"


def test_the_yield_of_a_list_is_counted_over_its_visits() -> None:
    memory = plan(visit(range(3), [article(0), article(1), section(2)]), Memory())
    assert memory.articles == 2
    memory = plan(visit(range(5), [article(3)]), memory)
    memory = plan(visit(range(7), [article(5)]), memory)  # 6 is known from elsewhere
    memory = unchanged(visit(range(7)), memory)
    read = Memory.read(memory.pack())
    assert (read.articles, read.visits, read.doubles) == (4, 4, 2)


def test_a_memory_of_before_the_yield_was_counted_is_read() -> None:
    old = msgpack.packb([1, b"digest..", 450, NOW, NOW, 0, "", True, b"abc"])
    memory = Memory.read(old)
    assert (memory.interval_s, memory.lead, memory.prints, memory.articles) == (
        450,
        True,
        b"abc",
        0,
    )


@pytest.mark.parametrize(
    ("age", "late", "missed"), [(1000, False, True), (800, False, False), (1000, True, False)]
)
def test_an_article_that_no_other_list_showed_in_time_is_noted(
    age: float, late: bool, missed: bool
) -> None:
    memory = after(range(5), 600, missed_s=0)
    last_s = NOW - (7200 if late else 600)  # after a stop of the crawler everything is late
    now = plan(
        visit(range(6), [article(5, age=age)], kind=Kind.FEED, is_lead=True, last_s=last_s), memory
    )
    assert (now.missed_s == NOW) is missed


SITE = {
    "id": "bao.vn",
    "home": "https://bao.vn/",
    "sitemaps": [
        {"url": "https://bao.vn/google-news.xml", "kind": "news"},
        {"url": "https://bao.vn/sitemap.xml", "kind": "index"},
    ],
}


@pytest.mark.parametrize(
    ("feeds", "leads"),
    [
        (["rss/home.rss", "rss/the-thao.rss"], ["rss/home.rss"]),
        (["rss/tin-moi-nhat.rss", "rss/the-thao.rss"], ["rss/tin-moi-nhat.rss"]),
        (["rss.xml", "rss/the-thao.rss"], ["rss.xml"]),
        (["rss/feed.rss"], ["rss/feed.rss"]),
        (
            ["rss/the-thao.rss", "rss/kinh-te.rss"],
            ["rss/the-thao.rss", "rss/kinh-te.rss"],
        ),  # none is of everything
        ([f"rss/{n}" for n in range(9)], [f"rss/{n}" for n in range(6)]),
        (["nhan-dan-home-new-s.rss", "tin-moi.rss"], ["nhan-dan-home-new-s.rss", "tin-moi.rss"]),
    ],
)
def test_leads_are_the_feeds_of_everything_and_news_sitemaps(
    feeds: list[str], leads: list[str]
) -> None:
    site = site_from_dict({**SITE, "feeds": [f"https://bao.vn/{path}" for path in feeds]})
    assert lead_urls(site) == [
        *(f"https://bao.vn/{path}" for path in leads),
        "https://bao.vn/google-news.xml",
    ]


def entry(title: str | None, published: Any, lastmod: Any = None) -> Any:
    return SimpleNamespace(title=title, published=published, lastmod=lastmod)


# ---------------------------------------------------------------- dead and moved ones
def test_what_died_is_asked_a_few_times_and_then_once_a_month_until_it_answers() -> None:
    memory = after(range(5))
    waits = []
    for _ in range(6):
        memory = missing(memory, "404")
        waits.append(memory.interval_s)
    assert waits == [*MISSES_S, TOMBSTONE_S, TOMBSTONE_S, TOMBSTONE_S]
    assert memory.is_dead and memory.note == "404"
    back = plan(visit(range(6), kind=Kind.FEED, newest_s=NOW - 60.0), memory)
    assert not back.is_dead and back.interval_s == 900 and back.note == ""


def test_a_home_page_that_is_not_found_is_asked_every_day() -> None:
    memory = after(range(5))
    for _ in range(6):
        memory = missing(memory, "404", Kind.HOME)
    assert memory.interval_s == 86_400 and memory.is_dead


def test_three_misses_are_no_death() -> None:
    memory = Memory()
    for _ in MISSES_S:
        memory = missing(memory, "410")
        assert not memory.is_dead


@pytest.mark.parametrize("same", [True, False])
def test_a_list_that_comes_back_begins_anew(same: bool) -> None:
    for gone in (
        missing(missing(after(range(5)), "404"), "404"),
        moved(after(range(5)), "https://cand.vn/"),
    ):
        seen = visit(range(5), kind=Kind.SECTION)
        assert (unchanged(seen, gone) if same else plan(seen, gone)).interval_s == 900


def test_a_list_that_moved_is_asked_once_a_day_and_says_where_it_went() -> None:
    memory = moved(after(range(5)), "https://cand.vn/")
    assert memory.interval_s == 86_400 and memory.note == "moved to https://cand.vn/"


# ---------------------------------------------------------------- the memory itself
def test_a_memory_survives_the_record() -> None:
    memory = after(range(40), 450, misses=2, note="404", missed_s=NOW, lead=True)
    carried = msgpack.unpackb(msgpack.packb([memory.pack()], use_bin_type=False), raw=True)[
        0
    ]  # as records.py does
    assert Memory.read(carried) == memory
    assert len(carried) < 200


@pytest.mark.parametrize(
    "data", [b"", b"l" * 16, b"\xc1", msgpack.packb([2, 3]), msgpack.packb({"a": 1}), b"\x93\x01"]
)
def test_the_memory_of_another_version_is_none(data: bytes) -> None:
    assert Memory.read(data) == Memory()


def test_the_newest_of_entries() -> None:
    from datetime import UTC, datetime

    times = [datetime.fromtimestamp(NOW - n, UTC) for n in (50, 10, 30)]
    assert newest_s([entry("", times[0]), entry("", None, times[1]), entry("", None)]) == NOW - 10
    assert newest_s([entry("", None)]) is None
    assert newest_s([SimpleNamespace(published=None)]) is None
