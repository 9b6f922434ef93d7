"""How the answers of a first contact are judged, and what of them is believed."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from newscrawler.discovery import contact, overlay
from newscrawler.discovery.contact import ArticleSeen, Contact, SeedSeen, SiteAnswer
from newscrawler.discovery.sitefile import SeedUrl, Site, SitesError
from newscrawler.discovery.sites import Sites
from newscrawler.items import Kind

SITE = Site(
    id="a.vn",
    name="A",
    home="https://a.vn/",
    hosts=("a.vn",),
    aliases={"www.a.vn": "a.vn"},
    feeds=(SeedUrl("https://a.vn/1.rss"), SeedUrl("https://a.vn/2.rss", status="live")),
    sections=("https://a.vn/thoi-su", "https://a.vn/the-thao"),
    article_pattern=r"-(\d{6,})\.html$",
)
SITES = Sites([SITE])


def home_of(host: str, links: int) -> bytes:
    return "".join(
        f'<a href="https://{host}/mot-tin-moi-{480000 + n}.html">tin</a>' for n in range(links)
    ).encode()


def feed(*urls: str) -> bytes:
    items = "".join(f"<item><link>{url}</link></item>" for url in urls)
    return f'<?xml version="1.0"?><rss version="2.0"><channel>{items}</channel></rss>'.encode()


def page(
    url: str, body: bytes, status: int = 200, *, asked: str = "", hop: int = 301
) -> SiteAnswer:
    hops = [(hop, asked)] if asked else []
    kind = "application/rss+xml" if body[:5] == b"<?xml" else "text/html; charset=utf-8"
    return SiteAnswer(asked or url, url, status, body, kind, hops)


@pytest.mark.parametrize(("links", "state"), [(0, "empty"), (2, "empty"), (3, "ok"), (50, "ok")])
def test_a_section_shows_articles_of_its_site(links: int, state: str) -> None:
    seen = contact.judge_seed(
        page("https://a.vn/thoi-su", home_of("a.vn", links)), Kind.SECTION, SITE, SITES
    )
    assert (seen.state, seen.articles) == (state, links)


@pytest.mark.parametrize(
    ("answer", "state", "detail"),
    [
        (page("https://a.vn/1.rss", b"", 404), "dead", "status 404"),
        (page("https://a.vn/1.rss", b"", 410), "dead", "status 410"),
        (page("https://a.vn/1.rss", b"", 500), "failed", "status 500"),
        (page("https://a.vn/1.rss", b"", 403), "failed", "status 403"),
        (page("https://a.vn/1.rss", b"<html><body>Trang moi</body></html>"), "dead", "a page instead"),
        (page("https://a.vn/1.rss", feed()), "empty", "no entries"),
        (page("https://a.vn/1.rss", b""), "empty", "empty"),
        (page("https://a.vn/1.rss", feed("https://b.vn/x-480001.html")), "empty", "no article of"),
        (page("https://a.vn/1.rss", feed("https://a.vn/x-480001.html")), "ok", ""),
        (
            page("https://a.vn/tin.rss", feed("https://a.vn/x-480001.html"), asked="https://a.vn/1.rss"),
            "moved",
            "to https://a.vn/tin.rss",
        ),
        (
            page("https://www.a.vn/1.rss", feed("https://a.vn/x-480001.html"), asked="https://a.vn/1.rss"),
            "ok",
            "",
        ),
        (
            page("https://b.vn/1.rss", feed("https://a.vn/x-480001.html"), asked="https://a.vn/1.rss"),
            "dead",
            "leads to b.vn",
        ),
    ],
)  # fmt: skip
def test_a_feed(answer: SiteAnswer, state: str, detail: str) -> None:
    seen = contact.judge_seed(answer, Kind.FEED, SITE, SITES)
    assert seen.state == state and detail in seen.detail, seen
    assert not detail or seen.detail


def test_a_section_that_leads_home_is_gone() -> None:
    answer = page("https://a.vn/", home_of("a.vn", 9), asked="https://a.vn/thoi-su")
    seen = contact.judge_seed(answer, Kind.SECTION, SITE, SITES)
    assert (seen.state, seen.detail) == ("dead", "leads to the home page")


@pytest.mark.parametrize(
    ("host", "hop", "links", "is_followed"),
    [
        ("www.a.vn", 302, 3, True),  # a host of its own, an alias until now
        ("tin.a.vn", 302, 3, True),
        ("b.vn", 301, contact.SAME_SITE_LINKS, True),  # for ever, and shows the site's articles
        ("b.vn", 302, contact.SAME_SITE_LINKS, False),
        ("b.vn", 301, contact.SAME_SITE_LINKS - 1, False),
        ("xa.vn", 302, 9, False),  # ends alike, is no host of a.vn
    ],
)
def test_a_home_that_moved_is_followed_where_it_is_the_same_site(
    host: str, hop: int, links: int, is_followed: bool
) -> None:
    answer = page(f"https://{host}/", home_of(host, links), asked="https://a.vn/", hop=hop)
    seen, site = contact.judge_home(answer, SITE)
    if not is_followed:
        assert site is SITE and seen.state == "dead" and not seen.moved_to
        return
    assert (seen.state, seen.moved_to) == ("moved", f"https://{host}/")
    assert site.hosts[0] == host and site.aliases["a.vn"] == host and host not in site.aliases
    seeds = Sites([site])
    assert seeds.identify("https://a.vn/1.rss", kind=Kind.FEED).url == f"https://{host}/1.rss"


def whole() -> Contact:
    return Contact(
        "a.vn",
        checked="2026-11-20T08:00:00+00:00",
        complete=True,
        home=SeedSeen("https://a.vn/", "home", "ok", articles=30),
        seeds=[
            SeedSeen("https://a.vn/1.rss", "feed", "moved", moved_to="https://a.vn/tin.rss"),
            SeedSeen("https://a.vn/2.rss", "feed", "dead", "status 404"),
            SeedSeen("https://a.vn/thoi-su", "section", "failed", "timeout"),
            SeedSeen("https://a.vn/the-thao", "section", "dead", "status 410"),
        ],
        articles=[ArticleSeen("https://a.vn/x.html", "article", fields={"title": "agrees"})],
        selectors="a.vn@1",
    )


def test_only_what_is_proved_changes_a_site() -> None:
    site = contact.applied(SITE, contact.learnt(whole()))
    assert [(f.url, f.status) for f in site.feeds] == [
        ("https://a.vn/tin.rss", "live"),
        ("https://a.vn/2.rss", "dead"),
    ]
    assert site.sections == ("https://a.vn/thoi-su",), "what failed today stays"
    assert contact.applied(SITE, contact.learnt(Contact("a.vn"))) == SITE


def test_what_an_operator_did_comes_after_what_was_learnt(tmp_path: Path) -> None:
    state = overlay.OverlayState(learnt={"a.vn": contact.learnt(whole())})
    state.remove_seed("a.vn", "https://a.vn/tin.rss")
    overlay.write(tmp_path, state)
    kept = overlay.applied(SITES, tmp_path).get("a.vn")
    assert kept is not None and [f.url for f in kept.feeds] == ["https://a.vn/2.rss"]
    without = overlay.applied(SITES, tmp_path, learnt=False).get("a.vn")
    assert without is not None and without.feeds == SITE.feeds


@pytest.mark.parametrize(
    "told",
    [[], {"dead": "x"}, {"moved": {"a": 1}}, {"home": "javascript:x"}, {"moved": {"a": "file:///x"}}],
)  # fmt: skip
def test_a_broken_overlay_is_named(tmp_path: Path, told: object) -> None:
    (tmp_path / overlay.STATE_FILE).write_text(json.dumps({"learnt": {"a.vn": told}}))
    with pytest.raises(SitesError, match="learnt"):
        overlay.read(tmp_path)


def test_the_file_keeps_everything_and_a_broken_one_is_none(tmp_path: Path) -> None:
    assert contact.read(tmp_path) == {}
    contact.write(tmp_path, [whole()])
    assert contact.read(tmp_path) == {"a.vn": whole()}
    for text in ("", "{", "[]", '{"schema": 99, "sites": []}', '{"schema": 1, "sites": [{}]}'):
        (tmp_path / contact.CHECK_FILE).write_text(text)
        assert contact.read(tmp_path) == {}, text


@pytest.mark.parametrize(
    ("age", "said"), [(timedelta(hours=3), "today"), (timedelta(days=1), "a day ago"), (timedelta(days=9), "9 days ago")]
)  # fmt: skip
def test_how_long_ago_it_was_is_told(tmp_path: Path, age: timedelta, said: str) -> None:
    now = datetime(2026, 11, 20, 12, tzinfo=UTC)
    assert "never looked at" in contact.told_when(tmp_path, [SITE], now)
    seen = replace(whole(), checked=(now - age).isoformat())
    contact.write(tmp_path, [seen])
    assert said in contact.told_when(tmp_path, [SITE], now)
    assert "1 of them never" in contact.told_when(tmp_path, [SITE, replace(SITE, id="b.vn")], now)
    contact.write(tmp_path, [replace(seen, complete=False)])
    assert "never looked at" in contact.told_when(tmp_path, [SITE], now)


@pytest.mark.parametrize(
    ("fields", "selectors", "verdict"),
    [
        ([{"title": "agrees", "published": "agrees"}], "a@1", "agrees"),
        ([{"title": "agrees"}, {"published": "differs", "title": "missing"}], "a@1", "differs: title, published"),
        ([{}], "a@1", "no article"),
        ([], "", "no set"),
    ],
)  # fmt: skip
def test_the_verdict_on_a_set(fields: list[dict[str, str]], selectors: str, verdict: str) -> None:
    articles = [ArticleSeen("https://a.vn/x.html", "article", fields=f) for f in fields]
    assert Contact("a.vn", articles=articles, selectors=selectors).set_verdict == verdict


PLAIN = Site(id="b.de", name="B", home="https://b.de/", hosts=("b.de",))


@pytest.mark.parametrize(
    ("site", "expected"),
    [(PLAIN, ("ok", 4)), (replace(PLAIN, article_pattern=r"-x$"), ("empty", 0))],
)
def test_lists_of_addresses_that_look_like_nobody_s(site: Site, expected: tuple[str, int]) -> None:
    """A feed's title and date, and headlines, say that they are articles'; a pattern decides."""
    sites, numbers = Sites([site]), range(4)
    items = "".join(
        f"<item><title>Nachricht {n}</title><link>https://b.de/news?id={n}</link>"
        f"<pubDate>Sat, 21 Nov 2026 0{n}:30:00 +0100</pubDate></item>"
        for n in numbers
    )
    rss = f'<?xml version="1.0"?><rss version="2.0"><channel>{items}</channel></rss>'.encode()
    seen = contact.judge_seed(page("https://b.de/rss.xml", rss), Kind.FEED, site, sites)
    assert (seen.state, seen.articles) == expected
    cards = "".join(
        f'<p><a href="/news?id={n}">Der Rat der Stadt beschließt den Bau Nummer {n}</a></p>'
        for n in numbers
    )
    body = f'<a href="/impressum">Impressum</a>{cards}'.encode()
    seen = contact.judge_seed(page("https://b.de/politik/", body), Kind.SECTION, site, sites)
    assert (seen.state, seen.articles) == expected
    menu = b'<a href="/impressum">Impressum</a><a href="/kontakt">Kontakt</a>' * 4
    seen = contact.judge_seed(page("https://b.de/politik/", menu), Kind.SECTION, site, sites)
    assert seen.state == "empty"
