"""The contract of an article store: what is put in, what is asked, what comes back, how it fails.

Two implementations, one contract suite (tests/contract): ``local`` (SQLite in the data folder) and
``elastic`` (Elasticsearch 9). Coroutines throughout; neither blocks the event loop.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol

from newscrawler.items import Article
from newscrawler.pickling import by_fields

if TYPE_CHECKING:
    from newscrawler.store.local.job import Elsewhere

#: Totals are counted up to here and then said as "10,000+": counting on costs more than ranking.
COUNT_CAP = 10_000
#: ``page * size + size`` may not go beyond; Elasticsearch refuses it as well. Narrow the query instead.
DEEPEST = 10_000

PutStatus = Literal["new", "updated", "unchanged", "twin"]
Sort = Literal["relevance", "date"]
Relaxed = Literal["", "folded", "corrected", "any"]


class StoreError(Exception):
    """Base of the errors that leave a store."""


class StoreUnavailable(StoreError):
    """The store cannot take or answer anything now (away, disk full, read-only, overloaded). Nothing was
    half-written: what raised is to be offered again. The text says what to do."""


class StoreRefused(StoreError):
    """Some articles of a batch are not acceptable to the store; all the others of the batch are stored."""

    def __init__(self, ids: Sequence[str], reason: str, results: Sequence[PutResult] = ()) -> None:
        super().__init__(f"{len(ids)} article(s) refused by the store: {reason} ids={','.join(ids[:5])}")
        self.ids = list(ids)
        self.reason = reason
        self.results = list(results)  # of the articles that were stored


class QueryError(ValueError):
    """The query cannot be answered as written (bad date, page too deep); the text says which part."""


@by_fields
@dataclass(frozen=True, slots=True)
class PutResult:
    id: str
    status: PutStatus
    version: int
    twin_of: str = ""  # id of the article that is stored, when this one is its twin


@dataclass(frozen=True, slots=True)
class Query:
    """What is asked. ``text`` is what a person types, see store.search for its grammar; the other
    restrictions are added to those inside the text. An empty text finds everything, newest first."""

    text: str = ""
    page: int = 0  # from 0
    size: int = 20  # 1..100
    sort: Sort = "relevance"
    sites: tuple[str, ...] = ()  # any of these site ids
    after: datetime | None = None  # published at or after; aware
    before: datetime | None = None  # published before; aware
    facets: bool = False
    collapse: bool = False  # one hit per near-duplicate cluster


#: Start and end offsets (code points) of the matched words in a text.
Marks = list[tuple[int, int]]


@dataclass(slots=True)
class Hit:
    article: Article  # content included
    score: float
    snippet: str  # about 240 characters of the content around the best match
    snippet_marks: Marks = field(default_factory=list)
    title_marks: Marks = field(default_factory=list)
    similar: int = 0  # other stored articles of its near-duplicate cluster


@dataclass(slots=True)
class SearchResult:
    hits: list[Hit]
    total: int  # at most COUNT_CAP
    total_is_capped: bool = False  # True: there are more than ``total``
    # "site" -> {site id: articles}, "day" -> {"2026-08-31": articles (UTC day)}; most first / newest first.
    facets: dict[str, dict[str, int]] = field(default_factory=dict)
    # How the query was relaxed to find something: "" all words as typed, "folded" without regard to
    # diacritics, "corrected" some words replaced (``corrections``), "any" the rarest words, any of them.
    relaxed: Relaxed = ""
    corrections: dict[str, str] = field(default_factory=dict)
    took_ms: float = 0.0


class ArticleStore(Protocol):
    """All coroutines may raise StoreUnavailable; each opens the store by itself when that was not done."""

    async def open(self) -> None:
        """Connect and create what is missing. Optional: fails early where there is no store to be had."""
        ...

    async def put(self, articles: Sequence[Article]) -> list[PutResult]:
        """Store a batch, durable on return, one result per article in order. An article whose title, content,
        published and authors equal the stored ones is "unchanged" and writes nothing (a gone one comes
        back). A new one of which its site has the same text under an address that one of the two names as its
        canonical one is a "twin" and not stored (store.twins). ``version`` and ``cluster`` of what is handed in
        are not read. Raises StoreRefused."""
        ...

    async def get(self, article_id: str) -> Article | None:
        """The current version, also of a gone article (``gone`` is set)."""
        ...

    async def find_url(self, url: str) -> Article | None:
        """By its URL or the canonical URL that it declares."""
        ...

    async def versions(self, article_id: str) -> list[Article]:
        """Every version, oldest first; the last one is the current."""
        ...

    async def mark_gone(self, ids: Sequence[str]) -> int:
        """The site answers 404 or 410 for good: kept, but no longer found. Returns how many were not gone yet."""
        ...

    async def search(self, query: Query) -> SearchResult:
        """Raises QueryError."""
        ...

    async def facets(self, query: Query) -> dict[str, dict[str, int]]:
        """As SearchResult.facets, over the newest 10,000 matches."""
        ...

    async def cluster(self, cluster_id: str) -> list[Article]:
        """The articles of a near-duplicate cluster, first published first."""
        ...

    async def refresh(self) -> None:
        """Make everything that was put so far findable by search (Elasticsearch needs up to a second)."""
        ...

    async def stats(self) -> dict[str, int | str | None]:
        """``articles``, ``gone``, ``versions`` (all versions), ``clusters`` (of 2 and more), ``bytes``,
        ``newest`` (ISO time published, None when empty), ``kind`` ("sqlite" or "elasticsearch")."""
        ...

    def scan(self, since: datetime | None = None) -> AsyncIterator[Article]:
        """Every current, not gone article; with ``since`` only those stored or changed at or after it."""
        ...

    async def close(self) -> None: ...


def open_store(
    uri: str,
    data_dir: str | Path,
    *,
    index: str = "articles",
    must_exist: bool = False,
    elsewhere: Elsewhere | None = None,
) -> ArticleStore:
    """The store of ``ARTICLE_STORE``: "" is ``<data_dir>/articles.db``, ``http(s)://…`` Elasticsearch
    (``index`` is its alias), ``sqlite:///path`` or a path that file. Nothing is opened yet.

    ``must_exist``: readers do not create an empty store. ``elsewhere``: what a file is written by, when it is not
    to be this process. Raises ValueError for another scheme and
    StoreUnavailable when a store that must exist does not."""
    if uri.startswith(("http://", "https://")):
        from newscrawler.store.elastic_store import ElasticStore

        # A secret, hence no setting. Only needed where the server asks for one.
        return ElasticStore(uri, index=index, api_key=os.environ.get("ARTICLE_STORE_API_KEY") or None)
    if "://" in uri and not uri.startswith("sqlite:///"):
        raise ValueError(f'ARTICLE_STORE="{uri}": must be empty, a file, sqlite:///file or http(s)://host:9200')
    from newscrawler.store.local import LocalStore

    path = Path(uri.removeprefix("sqlite://")) if uri else Path(data_dir) / "articles.db"
    if must_exist and not path.is_file():
        raise StoreUnavailable(f"no articles stored yet: {path} does not exist (is DATA_DIR right? crawl first)")
    return LocalStore(path, elsewhere=elsewhere)
