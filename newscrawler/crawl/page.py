"""A fetched page as plain values: what its response, its lease and its site say, before
anything is made of it. Pure.

:func:`page_of` judges the status; newscrawler.crawl.page_parser reads the body;
newscrawler.crawl.decision says how the visit ends.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import xxhash

from newscrawler.items import LIST_KINDS, Kind, Outcome
from newscrawler.web.outcomes import judge_status, retry_after_s

if TYPE_CHECKING:
    from scrapy.http import Response

    from newscrawler.discovery.list_revisits import Leads
    from newscrawler.discovery.rhythm import Rhythm
    from newscrawler.discovery.sites import Site
    from newscrawler.frontier.types import Lease


@dataclass(slots=True)
class Page:
    """``outcome``, ``reason``: what the status alone says; DONE = the body is to be read. ``etag``,
    ``last_modified``: to be sent at the next visit, of the answer where its body counts, else those
    of the lease. ``status`` 0: no answer.
    ``is_unchanged``: the site said so (304), or sent the same bytes as at the last visit."""

    lease: Lease
    site: Site
    kind: Kind
    is_lead: bool  # a list that shows what is new of its whole site (list_revisits.Leads)
    is_list: bool
    now_ms: int  # of the frontier's clock
    fetched: datetime  # the same
    url: str
    etag: str | None
    last_modified: str | None
    status: int = 0
    outcome: Outcome = Outcome.FAILED
    reason: str = ""
    is_unchanged: bool = False
    body: bytes = b""
    digest: bytes = b""  # 16 bytes over the body
    content_type: str | None = None
    location: str | None = None  # of a redirect, as it was sent
    retry_after_s: float | None = None
    robots: frozenset[str] = frozenset()  # directives of the header
    headers: list[tuple[bytes, bytes]] = field(default_factory=list)  # as received
    rhythm: Rhythm | None = None  # of its site, for a list; None = not known
    is_pushed: bool = False  # a feed that its hub has sent: there are no headers of the site


def page_of(
    response: Response,
    lease: Lease,
    site: Site,
    leads: Leads,
    now_ms: int,
    *,
    kind: Kind | None = None,
    rhythm: Rhythm | None = None,
) -> Page:
    """:param kind: what the page is known to be by now; None: as which it was queued"""
    page = unanswered(lease, site, now_ms, kind)
    page.rhythm = rhythm
    page.is_lead = page.is_list and leads.has(site, page.kind, lease.url, lease.hint)
    page.url, page.status, page.body = response.url, response.status, response.body
    page.outcome, page.reason = judge_status(response.status)
    if challenge := _challenge(response):
        page.outcome, page.reason = Outcome.CHALLENGE, challenge
    page.retry_after_s = retry_after_s(response.headers.get(b"Retry-After"), now_ms)
    if page.outcome is Outcome.REDIRECTED:
        location = response.headers.get(b"Location")
        page.location = location.decode("utf-8", "replace") if location else None
    elif page.outcome is Outcome.DONE and page.kind is not Kind.ROBOTS:
        page.digest = xxhash.xxh3_128_digest(response.body)
        page.etag = _header(response, b"ETag")
        page.last_modified = _header(response, b"Last-Modified")
        page.content_type = _header(response, b"Content-Type")
        page.robots = _robots(response)
        page.headers = response.meta.get("raw_headers") or []
    if page.outcome is Outcome.DONE:
        page.is_unchanged = page.digest == lease.digest and not lease.wants_links
    else:
        page.is_unchanged = page.outcome is Outcome.UNCHANGED
    return page


def unanswered(lease: Lease, site: Site, now_ms: int, kind: Kind | None = None) -> Page:
    """The page of a fetch that brought nothing."""
    kind = kind or Kind(lease.kind)
    return Page(
        lease=lease,
        site=site,
        kind=kind,
        is_list=kind in LIST_KINDS,
        is_lead=False,
        now_ms=now_ms,
        fetched=datetime.fromtimestamp(now_ms / 1000, UTC),
        url=lease.url,
        etag=lease.etag,
        last_modified=lease.last_modified,
    )


def _header(response: Response, name: bytes) -> str | None:
    value = response.headers.get(name)
    return value.decode("latin-1") if value else None


def _robots(response: Response) -> frozenset[str]:
    """Directives of X-Robots-Tag that are for everybody or for us."""
    words: set[str] = set()
    for value in response.headers.getlist(b"X-Robots-Tag"):
        text = value.decode("latin-1").lower()
        agent, colon, rest = text.partition(":")
        if colon and agent.strip() != "newscrawler" and "unavailable_after" not in agent:
            continue
        directives = rest if colon else text
        words.update(word.strip() for word in directives.split(","))
    if "none" in words:
        words |= {"noindex", "nofollow"}
    return frozenset(words)


def _challenge(response: Response) -> str | None:
    """The challenge that ResponseGuardMiddleware found."""
    for flag in response.flags:
        if flag.startswith("challenge:"):
            return flag.partition(":")[2]
    return None
