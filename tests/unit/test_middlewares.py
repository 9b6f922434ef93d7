"""Politeness before a fetch, conditional GET, and the checks on what came back."""

from __future__ import annotations

import asyncio
import gzip
from types import SimpleNamespace
from typing import Any

import pytest
from scrapy import Request
from scrapy.http import Response
from scrapy.settings import Settings

from newscrawler import middlewares
from newscrawler.middlewares import (
    ConditionalGetMiddleware,
    PolitenessMiddleware,
    Refused,
    ResponseGuardMiddleware,
)
from newscrawler.web.robots import RobotsRules

HTML = (
    b"<!doctype html><html><head><title>Tin</title></head><body><p>"
    + b"Noi dung bai viet. " * 200
    + b"</p></body></html>"
)
RSS = b'<?xml version="1.0" encoding="utf-8"?><rss version="2.0"><channel><title>Tin</title></channel></rss>'
SITEMAP = (
    b'<?xml version="1.0"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"></urlset>'
)
PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 20
URL = "https://news.example/a.html"


def crawler(**changes: Any) -> Any:
    settings = Settings()
    settings.setmodule("newscrawler.settings", priority="project")
    settings.update(changes, priority="cmdline")
    services = SimpleNamespace(loopback_only=changes.get("loopback", False))
    return SimpleNamespace(settings=settings, spider=SimpleNamespace(services=services))


def lease(kind: str = "article", **values: Any) -> Any:
    return SimpleNamespace(
        **{
            "kind": kind,
            "digest": b"",
            "etag": None,
            "last_modified": None,
            "wants_links": False,
            **values,
        }
    )


def request(url: str = URL, rules: str | None = "", **values: Any) -> Request:
    """``rules``: text of robots.txt, None = not known."""
    parsed = None if rules is None else RobotsRules.parse(rules.encode(), "newscrawler")
    return Request(url, meta={"lease": lease(**values), "robots": parsed})


# ---------------------------------------------------------------- politeness
def test_what_robots_allows_goes_through_and_what_it_forbids_does_not() -> None:
    polite = PolitenessMiddleware.from_crawler(crawler())
    rules = "User-agent: *\nDisallow: /private\n\nUser-agent: newscrawler\nDisallow: /a.html\n"
    assert polite.process_request(request("https://news.example/private", rules)) is None
    with pytest.raises(Refused) as caught:
        polite.process_request(request(URL, rules))
    assert caught.value.reason == "robots"


def test_without_known_rules_nothing_is_fetched() -> None:
    polite = PolitenessMiddleware.from_crawler(crawler())
    with pytest.raises(Refused) as caught:
        polite.process_request(request(rules=None))
    assert caught.value.reason == "robots_unknown"
    with pytest.raises(Refused):
        polite.process_request(Request(URL))  # scrapy shell, scrapy fetch
    assert (
        polite.process_request(request("https://news.example/robots.txt", None, kind="robots"))
        is None
    )


def test_robots_can_be_switched_off_by_the_operator() -> None:
    polite = PolitenessMiddleware.from_crawler(crawler(ROBOTSTXT_OBEY=False))
    assert polite.process_request(request(rules=None)) is None


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"USER_AGENT": ""}, "USER_AGENT is empty"),
        ({"USER_AGENT": "  "}, "USER_AGENT is empty"),
        ({"DOWNLOAD_DELAY": -0.1}, "DOWNLOAD_DELAY is -0.1"),
        ({"DOWNLOAD_DELAY": 0}, "DOWNLOAD_DELAY is 0"),
        (
            {
                "DOWNLOAD_DELAY": 0,
                "RESOLVE_OVERRIDE": "a.example=127.0.0.1",
                "ALLOWED_PRIVATE_NETWORKS": "127.0.0.0/8",
            },
            "DOWNLOAD_DELAY is 0",
        ),
        ({"RESOLVE_OVERRIDE": "*=8.8.8.8"}, "not a loopback"),
        ({"ALLOWED_PRIVATE_NETWORKS": "everything"}, "ALLOWED_PRIVATE_NETWORKS"),
        ({"EXTRA_CA_FILE": "/nonexistent.pem"}, "EXTRA_CA_FILE"),
        ({"DOWNLOAD_TIMEOUT": 0}, "DOWNLOAD_TIMEOUT"),
    ],
)
def test_a_rude_or_wrong_set_up_does_not_start(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        PolitenessMiddleware.from_crawler(crawler(**changes))


@pytest.mark.parametrize(
    "changes",
    [
        {"DOWNLOAD_DELAY": 0, "loopback": True},
        {
            "DOWNLOAD_DELAY": 0,
            "RESOLVE_OVERRIDE": "*=127.0.0.1:9000",
            "ALLOWED_PRIVATE_NETWORKS": "127.0.0.0/8",
        },
        {"DOWNLOAD_DELAY": 0, "REPLAY_DIR": "somewhere"},
        {"DOWNLOAD_DELAY": 0.01},
    ],
)
def test_no_delay_is_fine_where_nobody_is_disturbed(changes: dict[str, Any]) -> None:
    made = PolitenessMiddleware.from_crawler(crawler(**changes))
    assert isinstance(made, PolitenessMiddleware)


# ---------------------------------------------------------------- conditional GET
def test_conditions_are_sent_only_for_a_page_that_was_seen() -> None:
    conditional = ConditionalGetMiddleware()
    known = request(digest=b"x" * 16, etag='W/"abc"', last_modified="Wed, 04 Mar 2026 05:00:00 GMT")
    conditional.process_request(known)
    assert known.headers[b"If-None-Match"] == b'W/"abc"'
    assert known.headers[b"If-Modified-Since"] == b"Wed, 04 Mar 2026 05:00:00 GMT"
    followed = request(digest=b"x" * 16, etag='"abc"', wants_links=True)
    for other in (request(etag='"abc"'), request(digest=b"x" * 16), Request(URL), followed):
        conditional.process_request(other)
        assert b"If-None-Match" not in other.headers
        assert b"If-Modified-Since" not in other.headers


def test_no_conditions_are_sent_on_a_hop_of_robots() -> None:
    """What the lease knows is of another address: a 304 from there would leave the
    domain without rules."""
    hop = request(kind="robots", digest=b"x" * 16, etag='"abc"', last_modified="yesterday")
    hop.meta["robots_hop"] = True
    ConditionalGetMiddleware().process_request(hop)
    assert not hop.headers


def test_304_is_marked_when_it_was_asked_for_and_refused_when_not() -> None:
    conditional = ConditionalGetMiddleware()
    known = request(digest=b"x" * 16, etag='"abc"')
    conditional.process_request(known)
    assert conditional.process_response(known, Response(URL, 304)).flags == ["not-modified"]
    with pytest.raises(Refused) as caught:
        conditional.process_response(request(), Response(URL, 304))
    assert caught.value.reason == "unasked_304"
    assert conditional.process_response(request(), Response(URL, 200)).flags == []


# ---------------------------------------------------------------- response guard
def guarded(
    kind: str,
    body: bytes,
    content_type: str | None = "text/html",
    status: int = 200,
    limit: int = 100_000,
) -> Response:
    headers = {"Content-Type": content_type} if content_type else {}
    response = Response(URL, status, headers=headers, body=body)
    guard = ResponseGuardMiddleware(limit)
    return asyncio.run(guard.process_response(request(kind=kind), response))


@pytest.mark.parametrize(
    ("kind", "body", "content_type"),
    [
        ("article", HTML, "text/html; charset=utf-8"),
        ("article", HTML, None),
        ("home", HTML, "text/html"),
        ("section", HTML, "application/xhtml+xml"),
        ("feed", RSS, "application/rss+xml"),
        ("feed", RSS, "text/html"),  # declared wrongly, as many are
        ("sitemap", SITEMAP, "application/xml"),
        ("sitemap", b"https://news.example/1\nhttps://news.example/2\n", "text/plain"),
        ("robots", b"User-agent: *\n", "text/plain"),
        ("robots", PNG, "image/png"),
    ],
)
def test_the_expected_type_passes(kind: str, body: bytes, content_type: str | None) -> None:
    assert guarded(kind, body, content_type).body == body


@pytest.mark.parametrize(
    ("kind", "body", "content_type"),
    [
        ("article", PNG, "image/png"),
        ("article", PNG, "text/html"),
        ("article", RSS, "application/rss+xml"),
        ("home", b"%PDF-1.7 " + bytes(range(256)) * 4, "application/pdf"),
        ("feed", HTML, "text/html"),
        ("sitemap", PNG, "application/xml"),
    ],
)
def test_another_type_is_refused(kind: str, body: bytes, content_type: str) -> None:
    with pytest.raises(Refused) as caught:
        guarded(kind, body, content_type)
    assert caught.value.reason == "type"


@pytest.mark.parametrize("status", [301, 304, 403, 404, 410, 429, 500, 503])
def test_answers_without_a_page_are_left_to_the_spider(status: int) -> None:
    assert guarded("article", PNG, "image/png", status).status == status


@pytest.mark.parametrize(("size", "fits"), [(99_999, True), (100_000, True), (100_001, False)])
def test_the_size_limit_is_exact(size: int, fits: bool) -> None:
    body = HTML + b" " * (size - len(HTML))
    if fits:
        assert len(guarded("article", body).body) == size
    else:
        with pytest.raises(Refused) as caught:
            guarded("article", body)
        assert caught.value.reason == "size"


@pytest.mark.parametrize("body", [b"", b" \r\n\t"])
def test_an_empty_page_is_flagged(body: bytes) -> None:
    assert guarded("article", body).flags == ["empty"]


def test_a_sitemap_that_is_a_gzip_file_is_opened() -> None:
    assert guarded("sitemap", gzip.compress(SITEMAP), "application/gzip").body == SITEMAP


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (gzip.compress(bytes(5_000_000)), "size"),
        (gzip.compress(SITEMAP)[:-9], "truncated"),
        (b"\x1f\x8b" + HTML, "bad_encoding"),
    ],
    ids=[
        "size",
        "truncated",
        "bad_encoding",
    ],  # the time is in a gzip file: two workers would not agree on its name
)
def test_a_bad_gzip_sitemap_is_refused(body: bytes, reason: str) -> None:
    with pytest.raises(Refused) as caught:
        guarded("sitemap", body, "application/gzip")
    assert caught.value.reason == reason


@pytest.mark.parametrize("status", [200, 403, 503])
def test_a_challenge_is_named_and_never_refused_for_its_type(
    status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # what a challenge looks like is web.challenge's business and tested there
    monkeypatch.setattr(
        middlewares,
        "challenge_reason",
        lambda status, body, headers: "cloudflare" if headers["server"] == "cf" else None,
    )
    response = Response(URL, status, headers={"Server": "cf"}, body=HTML)
    guard = ResponseGuardMiddleware(10**6)
    for kind, flags in [
        ("article", ["challenge:cloudflare"]),
        ("feed", ["challenge:cloudflare"]),
        ("robots", []),
    ]:
        checked = asyncio.run(guard.process_response(request(kind=kind), response.copy()))
        assert checked.flags == flags
