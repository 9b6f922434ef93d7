"""The words and values that every part shares: kinds, outcomes, links, articles, visits. Pure.

The item that goes through the pipelines, to feeds and to monitors is the :class:`Article`. What
belongs to the visit of its page (:class:`Visit`) does not go with it: it waits in
newscrawler.crawl.visits for the frontier's ack.

Each field of an article is declared once, beside itself in :class:`Article`: stores,
export, API, pages and diff are driven by :data:`FIELDS`. docs/extending.md says
how a field is added.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from enum import StrEnum
from typing import Any, Literal


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
    # What the feed, news sitemap or list said of it: title, published (ISO); the page is held
    # against it.
    hint: dict[str, Any] | None = None
    # A seed refresh or an operator offers a known URL again: admitted when its next visit is due.
    revisit: bool = False


@dataclass(slots=True)
class FieldValue:
    """One extracted field. ``value`` is None when the page does not have it."""

    value: Any
    origin: str = ""  # "selector:h1.title", "json-ld", "og", "meta", "time", "feed", "generic", ...
    confidence: float = 0.0  # 0..1


def iso_time(when: datetime | None) -> str | None:
    """As feeds write a time: ISO 8601 with its zone, which Scrapy's own encoder leaves out."""
    return when.isoformat() if when else None


#: ``text`` is written by people and kept in NFC, ``texts`` a list of such; ``code`` is kept as it
#: is (ids, addresses, languages); ``time`` is aware; ``records`` a list of maps of texts.
FieldType = Literal["text", "texts", "code", "time", "map", "records", "number", "flag"]


@dataclass(frozen=True, slots=True)
class Field:
    """How the whole program treats one field of an article. ``name`` is the attribute's."""

    name: str
    type: FieldType
    label: str = ""  # on pages for people; "" = not in the table of fields
    read: bool = False  # read on the page: with an origin and a confidence
    by_selector: bool = False  # a selector set may say where it stands
    versioned: bool = False  # a change of it makes a new version
    compared: bool = False  # named when two versions are compared
    stored: bool = True  # False: the store sets it itself
    exported: bool = False  # a column of CSV and Parquet
    listed: bool = False  # in the listing of ``scrapy article``
    in_hit: bool = False  # part of a search hit
    counted: bool = False  # its presence is counted, for the coverage figures of monitors
    #: Its key in the query language: ``author:name`` looks for words in the values of all
    #: fields with this key.
    key: str = ""
    #: Its values are filtered by as a whole (``key:value``) and counted with a search; both stores
    #: keep them apart.
    facet: bool = False
    #: Where the page's own statements have it: names of meta elements, best first, and keys of the
    #: JSON-LD article. The search for titles, dates and authors has rules and places of its own.
    meta: tuple[str, ...] = ()
    json_ld: tuple[str, ...] = ()


def declared(type_: FieldType, **facts: Any) -> Mapping[str, Any]:
    """The metadata of a dataclass field with its declaration. Feeds write a
    time by :func:`iso_time`."""
    serializer: dict[str, Callable[..., Any]] = {"serializer": iso_time} if type_ == "time" else {}
    return {"type": type_, "facts": facts, **serializer}


@dataclass(slots=True)
class Article:
    """An article: the item of the crawl and what a store gives back. ``content`` is plain text,
    paragraphs apart by a blank line."""

    # hex of the url id (32 characters)
    id: str = field(metadata=declared("code", exported=True, in_hit=True))
    url: str = field(metadata=declared("code", exported=True, in_hit=True))
    # site id in sites.json, e.g. "vnexpress.net"
    site: str = field(metadata=declared("code", exported=True, in_hit=True))
    title: str = field(
        metadata=declared(
            "text", label="Title", read=True, by_selector=True, versioned=True, compared=True,
            exported=True, in_hit=True, counted=True, key="title",
        )
    )  # fmt: skip
    content: str = field(
        metadata=declared(
            "text", label="Text", read=True, versioned=True, compared=True, exported=True,
            counted=True,
        )
    )  # fmt: skip
    published: datetime | None = field(
        default=None,
        metadata=declared(
            "time", label="Published", read=True, by_selector=True, versioned=True, compared=True,
            exported=True, listed=True, in_hit=True, counted=True,
        ),
    )  # fmt: skip
    modified: datetime | None = field(
        default=None,
        metadata=declared(
            "time", label="Modified", read=True, by_selector=True, compared=True, exported=True,
            listed=True,
        ),
    )  # fmt: skip
    # People only.
    authors: list[str] = field(
        default_factory=list,
        metadata=declared(
            "texts", label="Authors", read=True, by_selector=True, versioned=True, compared=True,
            exported=True, listed=True, in_hit=True, counted=True, key="author", facet=True,
        ),
    )  # fmt: skip
    # Organisations, desks, the site itself, where the page credits them as it would an author;
    # never people. Not versioned: who re-labels an agency has not changed the article.
    credits: list[str] = field(
        default_factory=list,
        metadata=declared(
            "texts", label="Credits", read=True, compared=True, exported=True, listed=True,
            in_hit=True, key="author",
        ),
    )  # fmt: skip
    summary: str | None = field(
        default=None,
        metadata=declared(
            "text", label="Summary", read=True, by_selector=True, compared=True, exported=True,
            counted=True, meta=("og:description", "description", "twitter:description"),
            json_ld=("description",),
        ),
    )  # fmt: skip
    section: str | None = field(
        default=None,
        metadata=declared(
            "text", label="Section", read=True, by_selector=True, compared=True, exported=True,
            listed=True, in_hit=True, counted=True, key="section", facet=True,
            json_ld=("articleSection",),
            meta=("article:section", "og:article:section", "parsely-section", "sailthru.section"),
        ),
    )  # fmt: skip
    # What the publisher says it is about. Not versioned: tags are added to for days without a
    # change of the article.
    keywords: list[str] = field(
        default_factory=list,
        metadata=declared(
            "texts", label="Keywords", read=True, compared=True, exported=True, listed=True,
            in_hit=True, counted=True, key="keyword", facet=True, json_ld=("keywords",),
            meta=("article:tag", "news_keywords", "parsely-tags", "sailthru.tags", "keywords"),
        ),
    )  # fmt: skip
    # Paragraphs of the content that are headings of what follows them.
    subheadings: list[str] = field(
        default_factory=list, metadata=declared("texts", label="Sub-headings", read=True)
    )
    image: str | None = field(
        default=None,
        metadata=declared(
            "code", label="Image", read=True, by_selector=True, compared=True, exported=True,
            counted=True, json_ld=("image",),
            meta=("og:image", "og:image:url", "twitter:image", "twitter:image:src"),
        ),
    )  # fmt: skip
    # Of each picture with words of its own: "url", "caption", "credit". The picture itself is not
    # kept. Not versioned: captions are mended for days.
    pictures: list[dict[str, str]] = field(
        default_factory=list, metadata=declared("records", read=True)
    )
    language: str | None = field(
        default=None,
        metadata=declared(
            "code", label="Language", read=True, exported=True, listed=True, in_hit=True,
            counted=True, key="lang", facet=True,
        ),
    )  # fmt: skip
    canonical_url: str | None = field(
        default=None,
        metadata=declared(
            "code", label="Canonical", read=True, compared=True, exported=True, listed=True
        ),
    )
    # When the frontier first heard of the URL.
    discovered: datetime | None = field(
        default=None, metadata=declared("time", exported=True, listed=True)
    )
    fetched: datetime | None = field(
        default=None, metadata=declared("time", exported=True, listed=True)
    )
    # Field -> FieldValue.origin
    origins: dict[str, str] = field(default_factory=dict, metadata=declared("map"))
    confidence: dict[str, float] = field(default_factory=dict, metadata=declared("map"))
    # "<domain>@<version>"; None = page metadata and generic chain
    selector_version: str | None = field(default=None, metadata=declared("code"))
    raw_ref: str | None = field(default=None, metadata=declared("code"))  # rawstore reference
    version: int = field(default=1, metadata=declared("number", stored=False, exported=True))
    # Id of the canonical article of a near-duplicate cluster.
    cluster: str | None = field(
        default=None, metadata=declared("code", stored=False, exported=True)
    )
    gone: bool = field(default=False, metadata=declared("flag", stored=False))


#: Every field of an article, in the order of :class:`Article`, which is that of columns and JSON.
FIELDS: tuple[Field, ...] = tuple(
    Field(f.name, f.metadata["type"], **f.metadata["facts"]) for f in fields(Article)
)
#: A field that is less sure is marked wherever an article is shown. A quarter of the values below
#: are wrong, above it one in twenty-five (868 stored pages, `scrapy evaluate PAGES --calibration`).
UNSURE_BELOW = 0.75


def unsure(article: Article) -> list[str]:
    """The fields that a reader is warned of."""
    sure = article.confidence
    return [
        f.name for f in FIELDS if sure.get(f.name, 1.0) < UNSURE_BELOW and getattr(article, f.name)
    ]


#: Names of the fields that are read on a page.
READ = tuple(f.name for f in FIELDS if f.read)
#: Names of the fields whose change makes a new version.
VERSIONED = tuple(f.name for f in FIELDS if f.versioned)
#: Names of the fields that are compared: those that make a version, then those that only come along
#: with such a change.
COMPARED = (*VERSIONED, *(f.name for f in FIELDS if f.compared and not f.versioned))


@dataclass(slots=True)
class Visit:
    """How the visit of a URL ended (crawl.decision), for the frontier's ack and for who
    watches the crawl. No item."""

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
    content_state: bytes = (
        b""  # list pages: over the sorted set of link ids; articles: over the fields
    )
    next_visit_ms: int | None = None  # None = frontier's default for the kind
    retry_after_s: float | None = None  # what a 429 or 503 asked for
    moved_to: str | None = (
        None  # RETRY: the same URL id lives at this spelling (http -> https): fetch that next
    )
    robots: Any = None  # frontier.RobotsAnswer of a robots.txt page
    lease: Any = None  # frontier.Lease; the scheduler acks it
    raw_ref: str | None = None  # set when the page was kept (crawl.ingest)
    stored: str = ""  # set by the pipelines: store.base.PutStatus
    size: int = 0  # bytes of the body, decompressed
    fetch_ms: float = 0.0  # to the head of the answer; 0 = it was not asked for
    parse_ms: float = 0.0  # until it was known what stands on the page, waiting included
    store_ms: float = 0.0  # until its article was stored, waiting for its batch included
    # Set by SelectorGenerationMiddleware where a selector set can be learnt or tried on the page:
    # its body, or nothing where the kept page is read later.
    sample: bytes | None = None
