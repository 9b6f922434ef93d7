"""From the hrefs of a page to links for the frontier."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import pytest

from newscrawler.discovery.links import FoundLinks, LinkFinder
from newscrawler.discovery.sitefile import site_from_dict
from newscrawler.discovery.sites import Sites
from newscrawler.items import Kind, Link

NOW_MS = 1_793_000_000_000
PARENT = b"p" * 16
SITES = Sites(
    [
        site_from_dict(
            {
                "id": "bao.vn",
                "home": "https://bao.vn/",
                "article_pattern": r"-(\d+)\.htm$",
                "id_group": 1,
            }
        )
    ]
)


class Seen:
    """What the frontier's local filter answers."""

    def __init__(self, *known: str) -> None:
        self.known = set(known)
        self.asked: list[str] = []

    def seen_local(
        self, url: str, link: object = None, parent: bytes | None = None, depth: int = 0
    ) -> bool:
        self.asked.append(url)
        return url in self.known

    def unseen_local(
        self, links: Sequence[Link], parent: bytes, depth: int, *, verify: bool
    ) -> list[Link]:
        return [link for link in links if not self.seen_local(link.url)]


@dataclass
class Entry:
    url: str
    title: str | None = None
    published: datetime | None = None
    lastmod: datetime | None = None


def find(
    finder: LinkFinder,
    *hrefs: str,
    depth: int = 1,
    max_depth: int = 5,
    base: str = "https://bao.vn/thoi-su/",
    **more: int,
) -> FoundLinks:
    return finder.find(
        hrefs, base, parent=PARENT, depth=depth, now_ms=NOW_MS, max_depth=max_depth, **more
    )


def test_links_are_joined_admitted_and_given_parent_and_depth() -> None:
    found = find(
        LinkFinder(SITES, Seen()), "a-b-1.htm", "/c-d-2.htm?utm_source=x", "//m.bao.vn/e-f-3.htm"
    )
    assert [link.url for link in found.links] == [
        "https://bao.vn/thoi-su/a-b-1.htm",
        "https://bao.vn/c-d-2.htm",
        "https://bao.vn/e-f-3.htm",
    ]
    assert {(link.kind, link.parent, link.depth) for link in found.links} == {
        (Kind.ARTICLE, PARENT, 2)
    }
    assert found.total == 3 and found.ids == {link.url_id for link in found.links}


def test_what_is_not_offered_is_counted_by_reason() -> None:
    finder = LinkFinder(SITES, Seen())
    found = finder.find(
        [
            "mailto:a@bao.vn",
            "javascript:void(0)",
            "https://other.vn/x",
            "/anh.jpg",
            "/x/x/x",
            "http://",
        ],
        "https://bao.vn/",
        parent=PARENT,
        depth=0,
        now_ms=NOW_MS,
        max_depth=5,
        nofollow=1,
    )
    assert found.links == [] and found.ids == set()
    assert found.refused == {"scheme": 3, "offsite": 1, "type": 1, "trap": 1, "nofollow": 1}
    assert sum(found.refused.values()) == found.total == 7


def test_a_link_that_stands_twice_is_offered_once() -> None:
    found = find(LinkFinder(SITES, Seen()), "/a-1.htm", "/other-slug-1.htm", "/a-1.htm#binh-luan")
    assert len(found.links) == len(found.ids) == 1 and found.total == 3


def test_a_known_link_is_in_the_link_set_but_not_offered() -> None:
    found = find(LinkFinder(SITES, Seen("https://bao.vn/a-1.htm")), "/a-1.htm", "/b-2.htm")
    assert [link.url for link in found.links] == ["https://bao.vn/b-2.htm"]
    assert found.known == 1 and len(found.ids) == 2


@pytest.mark.parametrize(("depth", "offered"), [(3, 1), (4, 1), (5, 0), (6, 0)])
def test_depth_limit(depth: int, offered: int) -> None:
    found = find(LinkFinder(SITES, Seen()), "/a-1.htm", depth=depth, max_depth=5)
    assert len(found.links) == offered
    assert found.refused == ({} if offered else {"depth": 1})
    assert len(found.ids) == 1  # the page's link set does not depend on it


@pytest.mark.parametrize(("limit", "offered"), [(0, 5), (5, 5), (3, 3)])
def test_children_limit(limit: int, offered: int) -> None:
    hrefs = [f"/a-{i}.htm" for i in range(5)]
    found = find(LinkFinder(SITES, Seen(), max_children=limit), *hrefs, hrefs[0])
    assert [link.url for link in found.links] == [
        f"https://bao.vn/a-{i}.htm" for i in range(offered)
    ], "the first ones"
    assert found.refused == ({} if offered == 5 else {"children": 5 - offered})
    assert len(found.ids) == 5  # the page's link set does not depend on it


def test_a_remembered_link_gets_the_parent_and_depth_of_the_new_page() -> None:
    finder = LinkFinder(SITES, Seen())
    first = find(finder, "/a-1.htm", depth=0).links[0]
    again = finder.find(
        ["/a-1.htm"], "https://bao.vn/", parent=b"q" * 16, depth=3, now_ms=NOW_MS, max_depth=5
    )
    assert (first.depth, first.parent) == (1, PARENT)
    assert (again.links[0].depth, again.links[0].parent) == (4, b"q" * 16)
    assert again.links[0] is not first


@pytest.mark.parametrize("size", [1, 3, 100])
def test_memory_is_bounded_and_changes_no_answer(size: int) -> None:
    finder = LinkFinder(SITES, Seen(), size=size)
    hrefs = [f"/tin-{i}.htm" for i in range(10)]
    for _ in range(2):
        assert len(find(finder, *hrefs).links) == 10
    assert sum(map(len, finder._known.values())) <= size + 1


def entries(finder: LinkFinder, *listed: Entry) -> FoundLinks:
    return finder.entry_links(listed, parent=PARENT, depth=0, now_ms=NOW_MS)


def at(age_s: float) -> datetime:
    return datetime.fromtimestamp(NOW_MS / 1000 - age_s, UTC)


def test_title_and_date_of_an_entry_become_its_hint() -> None:
    found = entries(
        LinkFinder(SITES, Seen()),
        Entry("https://bao.vn/a-1.htm", "Giá vàng", at(60)),
        Entry("https://bao.vn/b-2.htm"),
    )
    assert found.links[0].hint == {"title": "Giá vàng", "published": at(60).isoformat()}
    assert found.links[0].band == 0 and found.links[0].depth == 1
    assert found.links[1].hint is None


@pytest.mark.parametrize(("age_s", "taken"), [(3599, True), (3600, True), (3601, False)])
@pytest.mark.parametrize("name", ["published", "lastmod"])
def test_old_entries_are_counted_not_queued(name: str, age_s: float, taken: bool) -> None:
    finder = LinkFinder(SITES, Seen(), max_age_s=3600)
    entry = Entry("https://bao.vn/a-1.htm")
    setattr(entry, name, at(age_s))
    found = entries(finder, entry)
    assert len(found.links) == taken
    assert found.refused == ({} if taken else {"age": 1})


def test_without_a_limit_any_age_is_taken() -> None:
    assert (
        len(
            entries(
                LinkFinder(SITES, Seen()), Entry("https://bao.vn/a-1.htm", None, at(10**8))
            ).links
        )
        == 1
    )


def test_entries_of_other_sites_and_known_ones_are_not_offered() -> None:
    finder = LinkFinder(SITES, Seen("https://bao.vn/a-1.htm"))
    found = entries(
        finder,
        Entry("https://bao.vn/a-1.htm"),
        Entry("https://x.vn/a"),
        Entry("https://bao.vn/c-1.htm"),
    )
    assert (
        found.links == []
        and found.known == 1
        and found.refused == {"offsite": 1}
        and found.total == 3
    )
