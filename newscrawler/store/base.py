"""The contract of an article store: what is put in, what is asked, what comes back, how it fails.

Two implementations, one contract suite (tests/contract): ``sqlite`` (a file in the data folder) and
``elasticsearch`` (version 9). Coroutines throughout; neither blocks the event loop.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, tzinfo
from typing import Literal, Protocol, cast

from newscrawler.items import Article

#: Elasticsearch counts totals up to here, which are then said as "10,000+"; the local store counts
#: all.
COUNT_CAP = 10_000
#: ``page * size + size`` may not go beyond; Elasticsearch refuses it as well. Narrow
#: the query instead.
DEEPEST = 10_000

#: Copies of one article that are shown below it.
MOST_COPIES = 20
#: Nearest articles that are looked at for related ones, copies among them.
RELATED_LOOKED_AT = 60
#: Cosine (without the mean of all) from which on an article is called related: one strange pair in
#: a hundred passes (benchmarks.bench_related, chosen on 241 articles; of 242 others .901 of the
#: pairs that belong together pass and .0107 of strange ones).
LEAST_RELATED = 0.26

PutStatus = Literal["new", "updated", "unchanged", "duplicate"]
#: "best": relevance, and what is new gains; "relevance": by the words alone, whatever its age.
Sort = Literal["best", "relevance", "date"]
#: How hits are looked for: by words alone, by meaning alone, by words and where they
#: are weak by both.
Mode = Literal["keyword", "semantic", "hybrid"]
Relaxed = Literal["", "folded", "corrected", "unquoted", "any"]


class StoreError(Exception):
    """Base of the errors that leave a store."""


class StoreUnavailable(StoreError):
    """The store cannot take or answer anything now (away, disk full, read-only, overloaded).
    Nothing was half-written: what raised is to be offered again. The text says what to do."""


class StoreGone(StoreUnavailable):
    """What was written to is not there any more or cannot be used: deleted, damaged, of a newer
    version. Waiting brings nothing back."""


class StoreRefused(StoreError):
    """Some articles of a batch are not acceptable to the store; all the others
    of the batch are stored."""

    def __init__(self, ids: Sequence[str], reason: str, results: Sequence[PutResult] = ()) -> None:
        super().__init__(
            f"{len(ids)} article(s) refused by the store: {reason} ids={','.join(ids[:5])}"
        )
        self.ids = list(ids)
        self.reason = reason
        self.results = list(results)  # of the articles that were stored


class SearchTimeout(StoreUnavailable):
    """The search took longer than its Query allows. The store is well; a narrower
    query may be answered."""

    def __init__(self, limit_s: float) -> None:
        super().__init__(
            f"the search took longer than {limit_s:g} s: narrow it by more words, a site or dates"
        )


class QueryError(ValueError):
    """The query cannot be answered as written (bad date, page too deep); the text
    says which part."""


class QueryTooLarge(QueryError):
    """A part of the query is beyond what is searched for: a word of a thousand letters,
    hundreds of sites."""


@dataclass(frozen=True, slots=True)
class PutResult:
    id: str
    status: PutStatus
    version: int
    duplicate_of: str = ""  # id of the stored article that this one is the duplicate of


@dataclass(frozen=True, slots=True)
class Query:
    """What is asked. ``text`` is what a person types, see store.query_language for its
    grammar; the other restrictions are added to those inside the text. An empty text finds
    everything, newest first."""

    text: str = ""
    page: int = 0  # from 0
    size: int = 20  # 1..100
    sort: Sort = "best"
    sites: tuple[str, ...] = ()  # any of these site ids
    # (key, value) of fields that are declared ``facet``: all of them, compared folded
    labels: tuple[tuple[str, str], ...] = ()
    after: datetime | None = None  # published at or after; aware
    before: datetime | None = None  # published before; aware
    zone: tzinfo = UTC  # whose days are meant in ``text`` and counted in facets
    facets: bool = False
    # One hit per near-duplicate cluster: of its matches the one that was published first.
    collapse: bool = False
    limit_s: float | None = None  # seconds until the search is given up; None = never
    # "hybrid" is answered by words alone where a store has no vectors, "semantic" is refused there
    mode: Mode = "hybrid"
    # Only what has all of it as typed, as for a feed or an alert: no word is corrected, folded or
    # left out. For ``mode`` "keyword".
    strict: bool = False


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
    by_meaning: bool = False  # no word has found it, only its vector
    # With ``Query.collapse``: the other matches of its cluster, first published first, at most
    # ``MOST_COPIES``; the hit itself is the first of them all.
    copies: list[Article] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class MeaningUsed:
    """What part meaning had in an answer."""

    model: str
    words: float  # weights of both, where they were joined
    vectors: float
    why_not: str = ""  # why it was not asked, "" = it was
    found: int = 0  # of the total: articles that no word has found


@dataclass(slots=True)
class SearchResult:
    hits: list[Hit]
    total: int
    total_is_capped: bool = False  # True: there are more than ``total``
    # Of ``total``: articles with all the words in a row, as a compound, which come before those
    # that have them anywhere. None: no question of this query.
    in_a_row: int | None = None
    # "site" -> {site id: articles}, "day" -> {"2026-08-31": articles (day of ``zone``)}; most first
    # / newest first. Key of a field that is declared ``facet`` -> {value: articles}, the 50
    # with most articles.
    facets: dict[str, dict[str, int]] = field(default_factory=dict)
    # How the query was relaxed to find something: "" all words as typed, "folded" without
    # regard to diacritics, "corrected" some words replaced (``corrections``), "unquoted" the
    # words of a phrase that nothing has, anywhere, "any" the rarest words, any of them.
    relaxed: Relaxed = ""
    corrections: dict[str, str] = field(default_factory=dict)
    # How the text was read: a query that means the same with every operator written out; and what
    # was not read as it looks, a sentence each.
    read_as: str = ""
    notes: tuple[str, ...] = ()
    took_ms: float = 0.0
    # How it was answered, and the part of meaning in it (None: the store has no vectors).
    mode: Mode = "keyword"
    meaning: MeaningUsed | None = None
    # Changes that are stored and not searched yet, where the index of the local store is far
    # behind: it is being made anew.
    behind: int = 0


class ArticleStore(Protocol):
    """All coroutines may raise StoreUnavailable; each opens the store by itself when
    that was not done."""

    async def open(self) -> None:
        """Connect and create what is missing. Optional: fails early where there
        is no store to be had."""
        ...

    async def put(self, articles: Sequence[Article]) -> list[PutResult]:
        """Store a batch, durable on return, one result per article in order. An article whose
        title, content, published and authors equal the stored ones is "unchanged" and writes
        nothing (a gone one comes back). A new one of which its site has the same text under an
        address that one of the two names as its canonical one is a "duplicate" and not stored
        (store.canonical_duplicates). ``version`` and ``cluster`` of what is handed in are not read.
        Raises StoreRefused."""
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
        """The site answers 404 or 410 for good: kept, but no longer found. Returns how many
        were not gone yet."""
        ...

    async def search(self, query: Query) -> SearchResult:
        """Raises QueryError, and SearchTimeout when ``limit_s`` is over."""
        ...

    async def facets(self, query: Query) -> dict[str, dict[str, int]]:
        """As SearchResult.facets."""
        ...

    async def cluster(self, cluster_id: str) -> list[Article]:
        """The articles of a near-duplicate cluster, first published first."""
        ...

    async def related(self, article_id: str, size: int = 6) -> list[Article]:
        """Articles that are near in meaning, the nearest first, without its copies and copies of
        one another. Empty where there are no vectors, or none of this article yet."""
        ...

    async def refresh(self) -> None:
        """Make everything that was put so far findable by search (Elasticsearch
        needs up to a second)."""
        ...

    async def stats(self) -> dict[str, int | str | None]:
        """``articles``, ``gone``, ``versions`` (all versions), ``clusters`` (of 2 and
        more), ``bytes``, ``newest`` (ISO time published, None when empty), ``kind``
        ("sqlite" or "elasticsearch")."""
        ...

    def scan(self, since: datetime | None = None) -> AsyncIterator[Article]:
        """Every current, not gone article; with ``since`` only those stored or
        changed at or after it."""
        ...

    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Portion:
    """Some of the articles that match a query, and how to go on."""

    articles: list[Article]
    cursor: str  # "" = these were the last
    total: int  # matches when it was begun; Elasticsearch stops counting at COUNT_CAP
    relaxed: Relaxed = ""
    read_as: str = ""


@dataclass(frozen=True, slots=True)
class Headline:
    id: str
    site: str
    title: str
    at: datetime  # published, else first seen


@dataclass(frozen=True, slots=True)
class Kept:
    """An article as a store keeps it. ``digest`` is what was computed when it was written."""

    article: Article
    digest: bytes


@dataclass(frozen=True, slots=True)
class VersionState:
    version: int
    gone: bool
    digest: bytes


class WholeStore(ArticleStore, Protocol):
    """A store that can be copied, checked and counted over as a whole: both of ours. One of another
    project need not be."""

    def walk(self) -> AsyncIterator[Kept]:
        """Every current article once, gone ones too, in an order of the store's own."""
        ...

    async def states(self, ids: Sequence[str]) -> dict[str, VersionState]:
        """Of those that are stored, as they are now."""
        ...

    async def purge(self, ids: Sequence[str]) -> int:
        """Removes articles with all their versions, vectors, fingerprints and events, as if they
        had never been stored. How many there were. Nobody is told of it."""
        ...

    async def prune_versions(self, before: datetime, *, dry_run: bool = False) -> int:
        """Removes older versions that were fetched before; how many there are. The current one of
        an article always stays."""
        ...

    async def scrub(self, *, rewrite: bool = False) -> list[str]:
        """What was purged leaves the disk: logs of writes are emptied and deleted documents merged
        away. What could not be done, a line each.

        :param rewrite: everything is written anew, for what earlier programs left behind
        """
        ...

    async def inspect(self) -> list[str]:
        """What is wrong with what the store keeps beside the articles: older versions, the index,
        vectors. A line for each; empty: nothing."""
        ...

    async def portion(self, query: Query, cursor: str = "", size: int = 100) -> Portion:
        """The next ``size`` of all articles that the words of a query find, without an end at
        ``DEEPEST`` and in an order of the store's own. ``query`` is only read without a ``cursor``.
        What matches all the time comes exactly once, whatever is written meanwhile; what is stored
        after the first portion does not come. Raises QueryError, also for a cursor that is not one
        of this store's or too old."""
        ...

    async def values(self, query: Query, key: str, within: str = "") -> dict[str, int]:
        """Values of a facet (``site`` or one of ``labels.KEYS``) over all matches with their
        articles, most first, 500 at most: of those whose words begin with the words of ``within``.
        Raises QueryError."""
        ...

    async def days(self, query: Query) -> dict[str, dict[str, int]]:
        """Day of ``query.zone`` ("2026-08-31") -> site -> articles published then, over everything
        that the words of a query find. Days without any are left out. Raises QueryError."""
        ...

    async def headlines(self, after: datetime, before: datetime) -> list[Headline]:
        """Of everything published at or after ``after`` and before ``before``, oldest first."""
        ...


def whole(store: ArticleStore) -> WholeStore:
    """:raises StoreError: it is of another project, and cannot be walked"""
    if not hasattr(store, "walk"):
        raise StoreError("this article store cannot be walked: only those of this project can")
    return cast(WholeStore, store)
