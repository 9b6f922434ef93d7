"""What the links of a site are is learned by one worker and known to all."""

from __future__ import annotations

import dataclasses
import random
from types import SimpleNamespace
from typing import Any

import pytest

from newscrawler.crawl import link_learning
from newscrawler.crawl.decision import HtmlRead, ListRead
from newscrawler.crawl.link_learning import LinkLearning
from newscrawler.discovery import sitefile
from newscrawler.discovery.link_classes import LinkClass
from newscrawler.discovery.links import FoundLinks, LinkFinder
from newscrawler.discovery.sitefile import Site
from newscrawler.discovery.sites import Sites
from newscrawler.extraction.result import Extraction
from newscrawler.items import Kind, Link
from newscrawler.spiders.news import NothingSeen

HOME = "https://bao.vn"
TEXT = '{"sites": [{"id": "bao.vn", "home": "https://bao.vn/"}]}'


def sites() -> tuple[Sites, Site]:
    found = Sites(sitefile.parse(TEXT, "test")[0])
    return found, next(iter(found))


def link(path: str, known: Sites) -> Link:
    found = known.identify(HOME + path)
    assert isinstance(found, Link)
    return found


async def test_workers_share_what_they_learned(r: Any) -> None:
    known, site = sites()
    one, other = LinkLearning(r), LinkLearning(r)
    assert one.kind_of(site, link("/a/123456", known)) is Kind.PAGE
    for number in range(3):
        one.note_read(site.id, f"{HOME}/a/12345{number}", LinkClass.ARTICLE)
        one.note_read(site.id, f"{HOME}/tin/{number}-the-thao-moi-nhat-hom-nay-a-b", LinkClass.LIST)
    assert one.kind_of(site, link("/a/123459", known)) is Kind.ARTICLE, "at once"
    assert other.kind_of(site, link("/a/123459", known)) is Kind.PAGE
    await one.flush(is_last=True)
    await other.load([site.id])
    assert other.kind_of(site, link("/a/123459", known)) is Kind.ARTICLE
    await one.flush(is_last=True)  # nothing is written twice
    counts = await r.hgetall(link_learning.key(site.id))
    assert counts[b"page article /=a/#6"] == b"3"
    other.note_read(site.id, f"{HOME}/a/123458", LinkClass.ARTICLE)
    await other.flush(is_last=True)
    assert await r.hget(link_learning.key(site.id), "page article /=a/#6") == b"4"


async def test_a_site_has_so_many_counts_at_most(r: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(link_learning, "MOST_FIELDS", 5)
    learning = LinkLearning(r)
    for number in range(20):
        learning.note_read("bao.vn", f"{HOME}/f{number}-x/bai-viet", LinkClass.LIST)
    await learning.flush(is_last=True)
    learning.note_read("bao.vn", f"{HOME}/f1-x/bai-viet", LinkClass.LIST)
    await learning.flush(is_last=True)
    assert await r.hlen(link_learning.key("bao.vn")) <= 5


def test_the_first_pages_of_a_shape_are_read_soon() -> None:
    known, site = sites()
    learning = LinkLearning(None)
    finder = LinkFinder(known, NothingSeen(), classes=learning)
    hrefs = [f"/t/chu-de-{word}" for word in "abcdefgh"]
    where: dict[str, Any] = {"parent": b"", "depth": 1, "now_ms": 0, "max_depth": 9}
    found = finder.find(hrefs, HOME, **where)
    assert [x.band for x in found.links] == [1] * link_learning.EXPLORED + [2] * 5
    for href in hrefs[:2]:
        learning.note_read(site.id, HOME + href, LinkClass.LIST)
    finder.use(known)
    assert {x.band for x in finder.find(["/t/chu-de-x"], HOME, **where).links} == {2}


def test_a_link_of_the_menu_that_looks_like_an_article_is_looked_at_first() -> None:
    known, site = sites()
    learning, path = LinkLearning(None), "/tin-moi-nhat-ve-doi-song-o-day-c123456.html"
    assert link(path, known).kind is Kind.ARTICLE
    learning.note_doubtful(site, [HOME + path])
    assert learning.kind_of(site, link(path, known)) is Kind.PAGE
    found = LinkFinder(known, NothingSeen(), classes=learning).find(
        [path], HOME, parent=b"", depth=1, now_ms=0, max_depth=9
    )
    assert found.links[0].band == 1
    learning.note_read(site.id, HOME + path, LinkClass.LIST)
    assert learning.is_list(site, HOME + path)


def test_a_feed_s_entry_with_title_and_time_is_an_article_s() -> None:
    known, site = sites()
    learning = LinkLearning(None)
    found = link("/t/bai-moi", known)
    assert learning.kind_of(site, found, is_named=True) is Kind.ARTICLE
    for number in range(60):
        learning.note_read(site.id, f"{HOME}/t/muc-{number}", LinkClass.LIST)
    assert learning.kind_of(site, found) is Kind.PAGE
    assert learning.kind_of(site, found, is_named=True) is Kind.ARTICLE, "more than its shape"
    learning.note_menu(site.id, [HOME + "/t/bai-moi"])
    assert learning.kind_of(site, found, is_named=True) is Kind.PAGE


def test_pages_say_what_they_are_once() -> None:
    _, site = sites()
    learning = LinkLearning(None)
    lease = SimpleNamespace(url=f"{HOME}/t/a-b", content_state=b"", kind=Kind.PAGE)
    page: Any = SimpleNamespace(site=site, lease=lease, kind=Kind.PAGE)
    learning.note_page(page, HtmlRead(FoundLinks(), form="text"))
    unproved = Extraction(reason="page")
    learning.note_page(page, HtmlRead(FoundLinks(), extraction=unproved, form="text"))
    assert learning.of(site.id).pages == 0, "a text that was not read says nothing"
    learning.note_page(page, HtmlRead(FoundLinks(), form="list"))
    lease.content_state = b"x"
    learning.note_page(page, HtmlRead(FoundLinks(), form="list"))
    assert learning.of(site.id).pages == 1


def test_a_feed_teaches_of_pages_that_were_linked_to_before() -> None:
    """Home pages are read before the feeds that they announce."""
    known, site = sites()
    learning = LinkLearning(None)
    entries = FoundLinks()
    for number in range(3):
        entry = link(f"/news?id={number}", known)
        assert entry.kind is Kind.PAGE
        entry.kind, entry.hint = Kind.ARTICLE, {"title": "t", "published": "2026-11-20T08:00:00Z"}
        entries.admitted.append(entry)  # not in links: they are known
    lease = SimpleNamespace(url=f"{HOME}/rss.xml", content_state=b"", kind=Kind.FEED)
    learning.note_list(
        SimpleNamespace(site=site, lease=lease, kind=Kind.FEED),  # type: ignore[arg-type]
        ListRead(entries),
        (),
    )
    assert learning.kind_now(site, f"{HOME}/news?id=1", Kind.PAGE) is Kind.ARTICLE
    assert (learning.named(f"{HOME}/news?id=1") or {})["title"] == "t"
    assert learning.class_of(site, f"{HOME}/news?id=77") is LinkClass.ARTICLE
    assert learning.kind_now(site, f"{HOME}/impressum", Kind.PAGE) is Kind.PAGE


async def test_second_addresses_are_asked_for_no_more(r: Any) -> None:
    known, site = sites()
    one, other = LinkLearning(r), LinkLearning(r)
    for number in range(3):
        one.note_second_address(site.id, f"{HOME}/bai-{number}?box=moi", f"{HOME}/bai-{number}")
    await one.flush(is_last=True)
    await other.load([site.id])
    hrefs = [f"/bai-{n}-cua-bao?box=moi" for n in range(4, 8)]
    where: dict[str, Any] = {"parent": b"", "depth": 1, "now_ms": 0, "max_depth": 9}
    found = LinkFinder(known, NothingSeen(), classes=other).find(hrefs, HOME, **where)
    assert sum("?" in link.url for link in found.links) <= 1, "but one in fifty"
    other.note_own(site.id, f"{HOME}/bai-9?box=moi")
    again = LinkFinder(known, NothingSeen(), classes=other).find(hrefs, HOME, **where)
    assert all("?" in link.url for link in again.links), "an article is at home there"


#: Of two schemes of a site's addresses the first becomes the second one day.
SCHEMES = (
    ("/{section}/{words}-{id}.html", "/{section}/{page}"),
    ("/{words}", "/chuyen-muc/{page}/"),
    ("/bai/{id}", "/muc/{id}/{page}"),
    ("/{day}/{words}.html", "/{page}.html"),
    ("/{page}/{id}", "/{words}"),
    ("/{words}-c{id}.html", "/{section}/{page}.htm"),
)


def drawn_address(form: str, rng: random.Random) -> str:
    words = "-".join(rng.choice(("gia", "vang", "hom", "nay", "tang")) for _ in range(7))
    return form.format(
        section=rng.choice(("the-thao", "kinh-te", "giai-tri")),
        words=words,
        id=rng.randrange(100_000, 999_999),
        page=rng.choice(("viet-nam", "chau-au", "bong-da", "doi-song", "phap-luat")),
        day=f"2026/11/{rng.randrange(10, 30)}",
    )


def read_day(learning: LinkLearning, forms: tuple[str, str], pages: int, seed: int) -> list[bool]:
    """Notes so many pages, one list to five articles; whether each was right before it was read."""
    rng, right = random.Random(seed), []
    for number in range(pages):
        label = LinkClass.LIST if number % 6 == 0 else LinkClass.ARTICLE
        url = HOME + drawn_address(forms[label is LinkClass.LIST], rng)
        verdict = learning.of("bao.vn").judge(*link_learning.split(url))
        right.append(verdict is not None and verdict.class_ is label)
        learning.note_read("bao.vn", url, label)
    return right


@pytest.mark.parametrize("seed", range(6))
async def test_a_site_that_changes_its_addresses_is_learned_anew(r: Any, seed: int) -> None:
    """Lists and articles even change places in every second draw."""
    rng = random.Random(seed)
    old, new = rng.sample(SCHEMES, 2)
    if seed % 2:
        new = (old[1], old[0])
    learning = LinkLearning(r)
    for part in range(8):
        read_day(learning, old, 500, seed + 10 * part)
        await learning.flush(is_last=True)
    assert sum(read_day(learning, old, 100, 77)) >= 99, old
    for part in range(4):
        read_day(learning, new, 100, 100 + part)
        await learning.flush(is_last=True)
    assert sum(read_day(learning, new, 200, 99)) >= 198, (old, new)
    await learning.flush(is_last=True)
    other = LinkLearning(r)  # a worker that starts then
    await other.load(["bao.vn"])
    assert sum(read_day(other, new, 200, 98)) >= 198, (old, new)


async def test_what_a_site_uses_no_more_leaves_room(r: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(link_learning, "MOST_SHAPES", 30)
    learning = LinkLearning(r)
    for number in range(200):
        url = f"{HOME}/cu-{'abcdefghijklmnop'[number % 16]}x/{'bai-' * (1 + number % 3)}x.html"
        learning.note_read("bao.vn", url, LinkClass.ARTICLE)
    await learning.flush(is_last=True)
    assert await r.hlen(link_learning.key("bao.vn")) == 30
    for number in range(4_000):
        learning.note_read("bao.vn", f"{HOME}/moi-{number % 8}x/muc-a", LinkClass.LIST)
        if number % 200 == 0:
            await learning.flush(is_last=True)
    await learning.flush(is_last=True)
    names = [name.decode() for name in await r.hkeys(link_learning.key("bao.vn"))]
    assert any("moi" in name or "page list" in name for name in names), names
    assert len([name for name in names if "/cu" in name or "=cu" in name]) < 30


async def test_a_page_that_became_an_article_is_none_of_another_class(r: Any) -> None:
    known, site = sites()
    learning, path = LinkLearning(r), "/tin/mot-trang-co-bon-tu-1234567.html"
    for number in range(3):
        url = f"{HOME}/tin/bai-viet-thu-may-{1_234_560 + number}.html"
        learning.note_read(site.id, url, LinkClass.ARTICLE)
    learning.note_read(site.id, HOME + path, LinkClass.OTHER)
    await learning.flush(is_last=True)
    assert learning.kind_of(site, link(path, known)) is Kind.PAGE
    learning.note_read(site.id, HOME + path, LinkClass.ARTICLE)
    await learning.flush(is_last=True)
    other = LinkLearning(r)
    await other.load([site.id])
    for one in (learning, other):
        assert one.kind_of(site, link(path, known)) is Kind.ARTICLE


def test_a_doubtful_address_is_doubtful_until_its_page_was_read() -> None:
    _, site = sites()
    learning, url = LinkLearning(None), HOME + "/tin-moi-nhat-ve-doi-song-o-day-c123456.html"
    learning.note_doubtful(site, [url])
    assert learning.is_doubtful(site.id, url) and not learning.is_doubtful("khac.vn", url)
    learning.note_read(site.id, url, LinkClass.LIST)
    assert not learning.is_doubtful(site.id, url)
    learning.note_doubtful(site, [url])
    assert not learning.is_doubtful(site.id, url), "its page said what it is"


def test_doubtful_addresses_of_one_site_take_no_room_of_another() -> None:
    _, site = sites()
    learning = LinkLearning(None)
    many = [f"{HOME}/tin-moi-nhat-ve-doi-song-o-day-c{n}.html" for n in range(100_000, 102_000)]
    learning.note_doubtful(site, many)
    assert sum(learning.is_doubtful(site.id, url) for url in many) == link_learning.MOST_DOUBTFUL
    other = dataclasses.replace(site, id="khac.vn")
    learning.note_doubtful(other, many[:1])
    assert learning.is_doubtful("khac.vn", many[0])


def test_what_one_site_teaches_leaves_the_remembered_links_of_others() -> None:
    text = '{"sites": [{"id": "bao.vn", "home": "https://bao.vn/"}, {"id": "khac.vn", "home": "https://khac.vn/"}]}'
    known = Sites(sitefile.parse(text, "test")[0])
    learning = LinkLearning(None)
    finder = LinkFinder(known, NothingSeen(), classes=learning)
    where: dict[str, Any] = {"parent": b"", "depth": 1, "now_ms": 0, "max_depth": 9}
    for home in ("https://bao.vn", "https://khac.vn"):
        finder.find(["/a/123456"], home, **where)
    judged: list[str] = []
    inner = known.identify
    known.identify = lambda url, **more: (judged.append(url), inner(url, **more))[1]  # type: ignore[method-assign]
    for number in range(3):
        learning.note_read("bao.vn", f"{HOME}/a/12345{number}", LinkClass.ARTICLE)
    finder.use(known)
    (mine,) = finder.find(["/a/123456"], "https://bao.vn", **where).links
    finder.find(["/a/123456"], "https://khac.vn", **where)
    assert mine.kind is Kind.ARTICLE and set(judged) == {"https://bao.vn/a/123456"}
