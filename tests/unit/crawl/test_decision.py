"""How visits end: a row for each way, with what the frontier is told and what is kept
(docs/frontier.md)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from scrapy.http import HtmlResponse, Request

from newscrawler.crawl.decision import (
    MAX_REDIRECTS,
    SECOND_LOOK_S,
    HtmlRead,
    ListRead,
    NoAnswer,
    NoList,
    Redirect,
    Result,
    RobotsRead,
    Unparsed,
    VisitRules,
    decide,
    fields_digest,
    is_section,
)
from newscrawler.crawl.page import Page, page_of, unanswered
from newscrawler.discovery.links import FoundLinks
from newscrawler.discovery.list_revisits import (
    FIRST_S,
    LEAD_LONGEST_S,
    MISSES_S,
    MOVED_S,
    Leads,
    Memory,
)
from newscrawler.discovery.sitefile import site_from_dict
from newscrawler.discovery.sites import Refusal
from newscrawler.extraction.result import Extraction
from newscrawler.frontier.types import Lease, RobotsAnswer
from newscrawler.items import FieldValue, Kind, Link, Outcome, Visit

NOW_S = 1_793_000_000
NOW_MS = NOW_S * 1000
URL = "https://bao.vn/tin/vang-len-gia-4598765.html"
SITE = site_from_dict(
    {
        "id": "bao.vn",
        "home": "https://bao.vn/",
        "sitemaps": [{"url": "https://bao.vn/google-news.xml", "kind": "news"}],
    }
)
BODY = b"<html><h1>Tin</h1></html>"
RULES = VisitRules(max_tries=4, max_age_s=30 * 86_400.0, list_sample=1.0)
D, U, N, X, R, G, F, C, F0 = (
    Outcome.DONE, Outcome.UNCHANGED, Outcome.NOT_ARTICLE, Outcome.REDIRECTED, Outcome.RETRY,
    Outcome.GONE, Outcome.REFUSED, Outcome.CHALLENGE, Outcome.FAILED,
)  # fmt: skip


def uid(n: int) -> bytes:
    return bytes([n]) * 16


def link(n: int, kind: Kind = Kind.ARTICLE) -> Link:
    return Link(f"https://bao.vn/{n}.html", uid(n), "bao.vn", kind)


def found(*numbers: int) -> FoundLinks:
    return FoundLinks([link(n) for n in numbers], {uid(n) for n in numbers}, total=len(numbers))


def lease(kind: Kind, **changes: Any) -> Lease:
    values: dict[str, Any] = {"site": "bao.vn", "discovered_ms": NOW_MS - 60_000, **changes}
    url = values.pop("url", URL)
    return Lease(url, uid(200), "bao.vn", kind, 1, None, values.pop("tries", 0), 7, 0, **values)


def page(
    kind: Kind = Kind.ARTICLE,
    status: int = 200,
    *,
    body: bytes = BODY,
    headers: dict[str, str] | None = None,
    flags: tuple[str, ...] = (),
    **changes: Any,
) -> Page:
    held = lease(kind, **changes)
    response = HtmlResponse(held.url, status, headers or {}, body, list(flags), Request(held.url))
    return page_of(response, held, SITE, Leads(), NOW_MS)


def extraction(**changes: Any) -> Extraction:
    made = Extraction(
        title=FieldValue("Vàng lên giá", "h1", 0.9),
        content=FieldValue("Giá vàng sáng nay.\n\nLên thêm.", "generic", 0.7),
        published=FieldValue(datetime.fromtimestamp(NOW_S - 3600, UTC), "json-ld", 0.9),
        is_article=True,
    )
    return replace(made, **changes)


def remembered(*numbers: int, interval_s: int = 900) -> bytes:
    """The schedule of a list that showed these links a quarter of an hour ago."""
    first = decide(page(Kind.SECTION), ListRead(found(*numbers)), RULES)
    return replace(Memory.read(first.content_state), interval_s=interval_s).pack()


@dataclass
class Row:
    """``told``: fields of the visit, None of them left to chance."""

    name: str
    page: Page
    result: Result
    outcome: Outcome
    reason: str = ""
    told: dict[str, Any] = field(default_factory=dict)
    rules: VisitRules = RULES


OLD = datetime.fromtimestamp(NOW_S, UTC) - timedelta(days=40)
EDITED = extraction()
READ = page().digest
SOON_MS = NOW_MS - 60_000 + 15 * 60_000  # the first of ARTICLE_REVISITS_S
SECTION_MS = NOW_MS + round(FIRST_S[Kind.SECTION] * 1000)
MISSING_MS = NOW_MS + round(MISSES_S[0] * 1000)
MOVED_MS = NOW_MS + round(MOVED_S * 1000)
ELSEWHERE = Redirect("https://bao.vn/5.html", link(5))

ROWS = [
    # ------------------------------------------------------------ the status says enough
    Row("not found", page(status=404), None, G, "status 404", {"status": 404, "next_visit_ms": None}),
    Row("list not found", page(Kind.FEED, 404), None, G, "status 404", {"next_visit_ms": MISSING_MS}),
    Row("looked for and not there", page(Kind.SITEMAP, 404, hint={"probe": True}), None, G, "status 404",
        {"next_visit_ms": 0, "content_state": b""}),
    Row("server error", page(status=503, headers={"Retry-After": "30"}), None, R, "status 503",
        {"retry_after_s": 30.0, "digest": b""}),
    Row("no content", page(status=204), None, N, "status 204"),
    Row("no such method", page(status=405), None, F0, "status 405"),
    Row("challenge", page(flags=("challenge:captcha",), headers={"ETag": "x"}, etag="old"), None, C, "captcha",
        {"etag": "old", "keep_raw": False}),
    # ------------------------------------------------------------ unchanged
    Row("304 of an article", page(status=304, digest=b"d" * 16, content_state=b"f" * 16, etag="e"), None, U, "",
        {"next_visit_ms": SOON_MS, "etag": "e", "digest": b"d" * 16, "content_state": b"f" * 16}),
    Row("304 of a page", page(Kind.PAGE, 304, digest=b"d" * 16), None, U, "", {"next_visit_ms": None}),
    Row("304 of a list", page(Kind.SECTION, 304, content_state=remembered(1)), None, U, "",
        {"next_visit_ms": NOW_MS + 1350 * 1000}),
    Row("the same bytes", page(digest=READ, headers={"ETag": "new"}), None, U, "",
        {"etag": "new", "digest": READ, "body": None}),
    # ------------------------------------------------------------ no answer
    Row("no connection", unanswered(lease(Kind.ARTICLE), SITE, NOW_MS), NoAnswer(R, "connect"), R, "connect",
        {"status": 0, "robots": None}),
    Row("picture instead of a page", unanswered(lease(Kind.ARTICLE), SITE, NOW_MS), NoAnswer(F, "type"), F, "type",
        {"next_visit_ms": None}),
    Row("page instead of a feed", unanswered(lease(Kind.FEED), SITE, NOW_MS), NoAnswer(F, "type"), F, "type",
        {"next_visit_ms": MISSING_MS}),
    Row("robots.txt unreachable", unanswered(lease(Kind.ROBOTS), SITE, NOW_MS), NoAnswer(R, "timeout"), R, "timeout",
        {"robots": RobotsAnswer(0, b"")}),
    Row("robots.txt", page(Kind.ROBOTS, 301), RobotsRead(RobotsAnswer(200, b"User-agent: *"), [link(1)]), D, "",
        {"status": 200, "robots": RobotsAnswer(200, b"User-agent: *"), "links": [link(1)]}),
    # ------------------------------------------------------------ redirects
    Row("moved", page(status=301), ELSEWHERE, X, "",
        {"links": [replace(link(5), hint={"hops": 1})], "next_visit_ms": None}),
    Row("a stored article moved, looked at again", page(status=301, content_state=b"f" * 16, digest=b"d" * 16), ELSEWHERE,
        X, "", {"next_visit_ms": SOON_MS, "digest": b"d" * 16}),
    Row("moved, the hint goes along", page(status=302, hint={"title": "t", "hops": 1}), ELSEWHERE, X, "",
        {"links": [replace(link(5), hint={"title": "t", "hops": 2})]}),
    Row("what is expected goes along", page(Kind.ARTICLE, 302), Redirect("https://bao.vn/x", link(5, Kind.PAGE)), X, "",
        {"links": [replace(link(5), hint={"hops": 1})]}),
    Row("list moved", page(Kind.HOME, 301, url="https://bao.vn/"), Redirect("https://bao.vn/new", link(5, Kind.SECTION)),
        X, "", {"links": [replace(link(5, Kind.SECTION), hint={"hops": 1, "lead": True})], "next_visit_ms": MOVED_MS}),
    Row("another spelling", page(status=301), Redirect("http://bao.vn/x", replace(link(5), url_id=uid(200))), R, "moved",
        {"moved_to": "http://bao.vn/x", "links": []}),
    Row("a chain without end", page(status=301, hint={"hops": MAX_REDIRECTS}), ELSEWHERE, F0, "redirect loop"),
    Row("to another site", page(status=301), Redirect("https://x.vn/", Refusal("offsite")), F, "offsite",
        {"next_visit_ms": None}),
    Row("list sent to another site", page(Kind.FEED, 301), Redirect("https://x.vn/", Refusal("offsite")), F, "offsite",
        {"next_visit_ms": MOVED_MS}),
    Row("to a file", page(status=301, headers={"Location": "file:///etc/passwd"}), Redirect(), F, "scheme"),
    Row("to nowhere", page(status=301), Redirect(), F0, "redirect without a target"),
    # ------------------------------------------------------------ lists
    Row("list for the first time", page(Kind.SECTION), ListRead(found(1, 2), may_keep=True), D, "",
        {"links": [link(1), link(2)], "digest": READ, "keep_raw": True, "next_visit_ms": NOW_MS + 900_000}),
    Row("list with the same links", page(Kind.SECTION, content_state=remembered(1, 2)), ListRead(found(2, 1), may_keep=True),
        U, "", {"keep_raw": False, "links": [link(2), link(1)], "next_visit_ms": NOW_MS + 1350_000}),
    Row("list with a new link", page(Kind.SECTION, content_state=remembered(1, 2)), ListRead(found(1, 2, 3)), D, "",
        {"keep_raw": False}),
    Row("list out of the sample", page(Kind.SECTION), ListRead(found(1), may_keep=True), D, "", {"keep_raw": False},
        replace(RULES, list_sample=0.0)),
    Row("announced lists come first, once", page(Kind.HOME), ListRead(found(1, 2), announced=[link(9), link(2, Kind.FEED)]),
        D, "", {"links": [link(9), link(2, Kind.FEED), link(1)], "next_visit_ms": NOW_MS + 300_000}),
    Row("every list at one interval", page(Kind.HOME), ListRead(found(1)), D, "", {"next_visit_ms": NOW_MS + 700_000},
        replace(RULES, list_fixed_s=700.0)),
    Row("but for one that died", page(Kind.HOME, 404), None, G, "status 404", {"next_visit_ms": MISSING_MS},
        replace(RULES, list_fixed_s=700.0)),
    Row("no feed, tried again", page(Kind.FEED, tries=2, digest=b"d" * 16), NoList("feed: bad"), R, "feed: bad",
        {"digest": b"d" * 16, "next_visit_ms": None}),
    Row("no feed, for the last time", page(Kind.FEED, tries=3), NoList("feed: bad"), G, "feed: bad",
        {"next_visit_ms": MISSING_MS}),
    # ------------------------------------------------------------ pages
    Row("too much for the processes", page(digest=b"d" * 16), Unparsed("killed"), R, "unreadable: killed",
        {"digest": b"d" * 16, "body": None}),
    Row("article", page(), HtmlRead(found(1), extraction=EDITED), D, "",
        {"keep_raw": True, "links": [link(1)], "content_state": fields_digest(EDITED), "next_visit_ms": SOON_MS,
         "body": BODY, "digest": READ}),
    Row("article, not to be archived", page(), HtmlRead(found(), frozenset({"noarchive"}), EDITED), D, "",
        {"keep_raw": False}),
    Row("only its surroundings changed", page(content_state=fields_digest(EDITED), digest=b"d" * 16),
        HtmlRead(found(), extraction=EDITED), U, "", {"keep_raw": False, "next_visit_ms": SOON_MS, "digest": READ}),
    Row("noindex", page(), HtmlRead(found(1), frozenset({"noindex"})), F, "noindex",
        {"keep_raw": False, "links": [link(1)], "next_visit_ms": None}),
    Row("page that was not read as an article", page(Kind.PAGE), HtmlRead(found(1)), N, "page",
        {"keep_raw": False, "links": [link(1)]}),
    Row("no article where one was expected", page(),
        HtmlRead(found(), extraction=extraction(is_article=False, reason="no content")), N, "no content", {"keep_raw": True}),
    Row("no article, and none was expected", page(Kind.PAGE),
        HtmlRead(found(), extraction=extraction(is_article=False, reason="list")), N, "list", {"keep_raw": False}),
    Row("a text of which nothing says what it is, looked at again", page(Kind.PAGE, headers={"ETag": "x"}),
        HtmlRead(found(1), extraction=extraction(is_article=False, reason="page"), form="text", is_open=True), N, "page",
        {"next_visit_ms": NOW_MS + round(SECOND_LOOK_S * 1000), "digest": b"", "etag": None}),
    Row("but once", page(Kind.PAGE, last_visit_ms=NOW_MS - 4_000_000),
        HtmlRead(found(1), extraction=extraction(is_article=False, reason="page"), form="text", is_open=True), N, "page",
        {"next_visit_ms": None, "digest": READ}),
    Row("a text where the site has taught what it is", page(Kind.PAGE), HtmlRead(found(1), form="text"), N, "page",
        {"next_visit_ms": None, "digest": READ}),
    Row("no article, and a menu names it", page(),
        HtmlRead(found(1), form="list", in_menu=True, announced=[link(7, Kind.FEED)]), N, "page",
        {"links": [link(1), link(7, Kind.FEED)], "next_visit_ms": SECTION_MS}),
    Row("an article, and a menu names it", page(), HtmlRead(found(1), extraction=EDITED, in_menu=True), D, "",
        {"links": [link(1)], "next_visit_ms": SOON_MS}),
    Row("no article, and no menu names it", page(), HtmlRead(found(1), form="list"), N, "page",
        {"next_visit_ms": None}),
    Row("section that is not to be indexed", page(),
        HtmlRead(found(1), frozenset({"noindex"}), form="list", in_menu=True), F, "noindex", {"next_visit_ms": None}),
    Row("too old", page(), HtmlRead(found(1), extraction=extraction(published=FieldValue(OLD))), F, "age",
        {"keep_raw": False, "links": [link(1)]}),
    Row("too old, but stored before", page(digest=b"d" * 16),
        HtmlRead(found(), extraction=extraction(published=FieldValue(OLD))), D, ""),
    Row("of any age", page(), HtmlRead(found(), extraction=extraction(published=FieldValue(OLD))), D, "", {},
        replace(RULES, max_age_s=None)),
]  # fmt: skip


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_visit_ends(row: Row) -> None:
    visit = decide(row.page, row.result, row.rules)
    assert (visit.outcome, visit.reason) == (row.outcome, row.reason)
    assert {name: getattr(visit, name) for name in row.told} == row.told
    assert (visit.article is not None) == (
        visit.outcome is Outcome.DONE and isinstance(row.result, HtmlRead)
    )
    assert (visit.url, visit.lease, visit.domain) == (
        row.page.lease.url, row.page.lease, row.page.lease.domain,
    )  # fmt: skip


def test_every_outcome_has_a_row() -> None:
    assert {row.outcome for row in ROWS} == set(Outcome)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_the_same_again_is_decided_the_same(row: Row) -> None:
    """Nothing of page and result is changed, and no clock is read."""
    before = repr((row.page, row.result))
    visits = [decide(row.page, row.result, row.rules) for _ in range(2)]
    assert visits[0] == visits[1]
    assert repr((row.page, row.result)) == before


def test_the_article_is_what_was_read() -> None:
    article = decide(page(), HtmlRead(found(), extraction=EDITED), RULES).article
    assert article is not None
    assert (article.id, article.url, article.site) == (uid(200).hex(), URL, "bao.vn")
    assert (article.title, article.authors) == ("Vàng lên giá", [])
    assert article.origins["title"] == "h1"
    assert article.discovered == datetime.fromtimestamp(NOW_S - 60, UTC)
    assert article.fetched == datetime.fromtimestamp(NOW_S, UTC)


def entry(title: str | None, published: Any, lastmod: Any = None) -> Any:
    return SimpleNamespace(title=title, published=published, lastmod=lastmod)


def test_a_news_sitemap_of_robots_txt_leads_also_when_it_answers_304() -> None:
    when = datetime.fromtimestamp(NOW_S - 60, UTC)
    news = ListRead(found(1), [entry("Giá vàng", when)])

    def visited(
        result: Result, status: int = 200, url: str = "https://bao.vn/x.xml", **more: Any
    ) -> Visit:
        return decide(page(Kind.SITEMAP, status, url=url, **more), result, RULES)

    first = visited(news)
    assert first.next_visit_ms == NOW_MS + 300_000
    archive = visited(ListRead(found(1), [entry(None, None, when)]))
    assert archive.next_visit_ms == NOW_MS + 900_000
    again = first
    for _ in range(4):
        again = visited(
            None, 304, content_state=again.content_state, last_visit_ms=NOW_MS - 300_000
        )
        assert again.outcome is Outcome.UNCHANGED
    assert again.next_visit_ms == NOW_MS + LEAD_LONGEST_S * 1000
    named = visited(ListRead(found(1)), url="https://bao.vn/google-news.xml")
    assert named.next_visit_ms == NOW_MS + 300_000, "the site's file names it"


def test_a_wrong_fixed_interval_is_an_error_with_its_value() -> None:
    with pytest.raises(ValueError, match="LIST_INTERVAL_FIXED_S is -1"):
        VisitRules(max_tries=4, list_fixed_s=-1)


def test_a_page_that_is_known_to_be_a_section_by_now_is_one() -> None:
    held = lease(Kind.PAGE)
    response = HtmlResponse(held.url, 200, {}, BODY, request=Request(held.url))
    section = page_of(response, held, SITE, Leads(), NOW_MS, kind=Kind.SECTION)
    assert (section.kind, section.is_list, section.is_lead) == (Kind.SECTION, True, False)
    assert decide(section, ListRead(found(1)), RULES).kind is Kind.SECTION


@pytest.mark.parametrize(
    ("form", "reason", "section"),
    [("list", "", True), ("", "", True), (None, "", False), ("text", "", False),
     (None, "listing", True), (None, "page", True), (None, "no content", False)],
)  # fmt: skip
def test_a_page_of_a_menu_is_a_section_where_its_body_says_so(
    form: str | None, reason: str, section: bool
) -> None:
    read = extraction(is_article=False, reason=reason) if reason else None
    assert is_section(HtmlRead(found(), extraction=read, form=form, in_menu=True)) is section
    assert not is_section(HtmlRead(found(), extraction=read, form=form))
