"""The words and values that every part shares: kinds, outcomes, links, articles, pages. Pure.

One item per fetched page (:class:`Page`) goes through the pipelines. It carries the article, if
the page is one, and everything that the frontier has to hear about the page when it is stored.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from newscrawler.pickling import by_fields


class Kind(StrEnum):
    """What a URL is expected to be. Decides its band in the queue and how its page is read."""

    ROBOTS = "robots"
    HOME = "home"
    FEED = "feed"
    SITEMAP = "sitemap"
    SECTION = "section"
    ARTICLE = "article"
    PAGE = "page"


#: Kinds that only lead to articles: never stored as one, judged unchanged by their set of links.
LIST_KINDS = frozenset({Kind.HOME, Kind.FEED, Kind.SITEMAP, Kind.SECTION})


class Outcome(StrEnum):
    """How a visit of a URL ended. The same word in Redis, stats, logs and the API."""

    DONE = "DONE"
    UNCHANGED = "UNCHANGED"
    NOT_ARTICLE = "NOT_ARTICLE"
    REDIRECTED = "REDIRECTED"
    RETRY = "RETRY"  # with a reason; comes back when due
    GONE = "GONE"
    REFUSED = "REFUSED"  # robots | offsite | type | size | ssrf | trap | quota | noindex | scheme
    CHALLENGE = "CHALLENGE"
    FAILED = "FAILED"  # tries spent: quarantine


@dataclass(slots=True)
class Link:
    """A URL offered to the frontier, already canonical and admitted (discovery.sites)."""

    url: str
    url_id: bytes  # 16 bytes, see web.urls.url_id
    domain: str  # lower-case host[:port] that will be fetched: the unit of politeness
    kind: Kind
    depth: int = 0
    parent: bytes | None = None  # url_id of the page it was found on
    band: int = 2  # 0 first .. 2 last, see DESIGN section 3
    score: float = 0.0  # inside the band, lower first; discovery puts -published_s or the age there
    due_ms: int = 0  # not before, ms since the epoch by the frontier's clock; 0 = at once
    # What the feed, news sitemap or list said of it: title, published (ISO), kept as a witness.
    hint: dict[str, Any] | None = None
    # A seed refresh or an operator offers a known URL again: admitted when its next visit is due.
    revisit: bool = False


@by_fields
@dataclass(slots=True)
class FieldValue:
    """One extracted field. ``value`` is None when the page does not have it."""

    value: Any
    origin: str = ""  # "selector:h1.title", "json-ld", "og", "meta", "time", "feed", "generic", ...
    confidence: float = 0.0  # 0..1


@by_fields
@dataclass(slots=True)
class Article:
    """A stored article. Times are aware; ``content`` is plain text, paragraphs apart by a blank line."""

    id: str  # hex of the url id (32 characters)
    url: str
    site: str  # site id in sites.json, e.g. "vnexpress.net"
    title: str
    content: str
    published: datetime | None = None
    modified: datetime | None = None
    authors: list[str] = field(default_factory=list)  # people only
    # Organisations, desks, the site itself, where the page credits them as it would an author; never people.
    credits: list[str] = field(default_factory=list)
    summary: str | None = None
    section: str | None = None
    image: str | None = None
    language: str | None = None
    canonical_url: str | None = None
    discovered: datetime | None = None  # when the frontier first heard of the URL
    fetched: datetime | None = None
    origins: dict[str, str] = field(default_factory=dict)  # field -> FieldValue.origin
    confidence: dict[str, float] = field(default_factory=dict)
    selector_version: str | None = None  # "<domain>@<version>", None = witnesses and generic chain
    raw_ref: str | None = None  # rawstore reference
    # Set by the store:
    version: int = 1
    cluster: str | None = None  # id of the canonical article of a near-duplicate cluster
    gone: bool = False


@dataclass(slots=True)
class Page:
    """The one item: what a fetched page was, for the pipelines and then for the frontier's ack."""

    url: str
    outcome: Outcome
    reason: str = ""
    kind: Kind = Kind.PAGE
    site: str = ""
    domain: str = ""
    status: int = 0
    article: Article | None = None
    links: list[Link] = field(default_factory=list)
    body: bytes | None = None  # as received (decompressed); written to WARC when ``keep_raw``
    response_headers: list[tuple[bytes, bytes]] = field(default_factory=list)
    keep_raw: bool = False
    fetched: datetime | None = None
    etag: str | None = None
    last_modified: str | None = None
    digest: bytes = b""  # 16 bytes over the body
    links_digest: bytes = b""  # list pages: over the sorted set of link ids; articles: over the fields
    next_visit_ms: int | None = None  # None = frontier's default for the kind
    retry_after_s: float | None = None  # what a 429 or 503 asked for
    moved_to: str | None = None  # RETRY: the same URL id lives at this spelling (http -> https): fetch that next
    robots: Any = None  # frontier.RobotsAnswer of a robots.txt page
    lease: Any = None  # frontier.Lease; the scheduler acks it
    raw_ref: str | None = None  # set by RawStorePipeline
    stored: str = ""  # set by ArticleStorePipeline: new | updated | unchanged
