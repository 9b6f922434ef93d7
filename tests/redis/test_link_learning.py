"""What the links of a site are is learned by one worker and known to all."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from newscrawler.crawl import link_learning
from newscrawler.crawl.decision import HtmlRead
from newscrawler.crawl.link_learning import LinkLearning
from newscrawler.discovery import sitefile
from newscrawler.discovery.link_classes import LinkClass
from newscrawler.discovery.links import FoundLinks, LinkFinder
from newscrawler.discovery.sitefile import Site
from newscrawler.discovery.sites import Sites
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
    assert learning.of(site.id).pages == 0, "a text that was not read says nothing"
    learning.note_page(page, HtmlRead(FoundLinks(), form="list"))
    lease.content_state = b"x"
    learning.note_page(page, HtmlRead(FoundLinks(), form="list"))
    assert learning.of(site.id).pages == 1


async def test_second_addresses_are_asked_for_no_more(r: Any) -> None:
    known, site = sites()
    one, other = LinkLearning(r), LinkLearning(r)
    for number in range(3):
        one.note_twin(site.id, f"{HOME}/bai-{number}?box=moi", f"{HOME}/bai-{number}")
    await one.flush(is_last=True)
    await other.load([site.id])
    hrefs = [f"/bai-{n}-cua-bao?box=moi" for n in range(4, 8)]
    where: dict[str, Any] = {"parent": b"", "depth": 1, "now_ms": 0, "max_depth": 9}
    found = LinkFinder(known, NothingSeen(), classes=other).find(hrefs, HOME, **where)
    assert sum("?" in link.url for link in found.links) <= 1, "but one in fifty"
    other.note_own(site.id, f"{HOME}/bai-9?box=moi")
    again = LinkFinder(known, NothingSeen(), classes=other).find(hrefs, HOME, **where)
    assert all("?" in link.url for link in again.links), "an article is at home there"
