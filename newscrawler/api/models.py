"""What the JSON routes answer, field by field: the schemas of /openapi.json,
checked on every answer.

Times are ISO texts with an offset. Rows that come from Redis may be of a newer worker and carry
more than is named here; all others have exactly these fields.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, create_model

from newscrawler.api import problem
from newscrawler.items import FIELDS, Article
from newscrawler.store.base import Relaxed, Sort

Mark = tuple[int, int]


class _Exact(BaseModel):
    model_config = ConfigDict(extra="forbid")


class _Open(BaseModel):
    model_config = ConfigDict(extra="allow")


class Error(_Exact):
    """Every error has this shape (RFC 9457)."""

    type: str = Field(description="about:blank: the status says it all")
    title: str = Field(description="the status in words")
    status: int
    detail: str = Field(description="what was wrong, for people")
    error: str = Field(description="the same as detail")


def _json_types() -> dict[str, Any]:
    """Field of an article -> what pydantic makes a field of: a time is a text, all others
    are what they are."""
    types = get_type_hints(Article)
    return {f.name: (str | None if f.type == "time" else types[f.name], ...) for f in FIELDS}


_TYPES = _json_types()
_IN_HIT = {f.name: _TYPES[f.name] for f in FIELDS if f.in_hit}
if TYPE_CHECKING:  # they are made from the declarations of items.py, which mypy cannot follow
    _ArticleFields = _Exact
    _HitFields = _Exact
else:
    _ArticleFields = create_model("_ArticleFields", __base__=_Exact, **_TYPES)
    _HitFields = create_model("_HitFields", __base__=_Exact, **_IN_HIT)


#: See items.unsure.
Unsure = Annotated[
    list[str],
    Field(
        description="fields whose values are wrong in one of four such cases or more: check them"
    ),
]


class ArticleAnswer(_ArticleFields):
    """An article, field by field."""

    unsure: Unsure


class CurrentArticle(ArticleAnswer):
    """An article as it is now."""

    moved_to: str | None = Field(
        description="of one that is gone: id of the article with its text under another address of"
        " its site"
    )


class Listed(_HitFields):
    """An article in a list."""

    unsure: Unsure


class Hit(_HitFields):
    unsure: Unsure
    snippet: str
    snippet_marks: list[Mark] = Field(description="start and end of the words that matched")
    title_marks: list[Mark]
    score: float
    similar: int = Field(description="other stored articles of its group of near-duplicates")
    by_meaning: bool = Field(description="no word has found it, only its meaning")
    copies: list[Listed] = Field(description="with collapse: its copies, first published first")


class Meaning(_Exact):
    """What part meaning had in an answer."""

    model: str
    words: float = Field(description="weight of what an article has of the words")
    vectors: float = Field(description="weight of how near it is in meaning")
    why_not: str = Field(description="why meaning was not asked; empty: it was")
    found: int = Field(description="of the total: articles that no word has found")


class Related(Listed):
    """An article that is near to another one in meaning."""


class SearchAnswer(_Exact):
    query: str
    mode: Literal["keyword", "semantic", "hybrid"] = Field(description="how it was answered")
    meaning: Meaning | None = Field(description="null: this store has no vectors")
    page: int
    size: int
    sort: Sort = Field(description="best: what is new gains; relevance: whatever its age")
    total: int = Field(description="exact; at most 10,000 where total_is_capped")
    total_is_capped: bool
    only_by_meaning: bool = Field(
        description="no article has the words: all hits are near in meaning only"
    )
    in_a_row: int | None = Field(
        description="of the total: with all words in a row, which come first; null: no question"
    )
    read_as: str = Field(description="a query that means what was read, every operator in it")
    notes: list[str] = Field(description="what was not read as it looks, and why")
    relaxed: Relaxed
    corrections: dict[str, str]
    behind: int = Field(
        description="stored changes that are not searched yet: the index is being made"
    )
    took_ms: float
    hits: list[Hit]
    facets: dict[str, dict[str, int]]


class AttentionStep(_Exact):
    start: str = Field(description="first day")
    articles: int
    published: int = Field(description="everything that was published then")
    share: float
    sites: dict[str, int]


class AttentionAnswer(_Exact):
    query: str
    read_as: str = Field(description="as of a search")
    notes: list[str]
    relaxed: Relaxed
    corrections: dict[str, str]
    per: Literal["day", "week", "month"]
    total: int
    steps: list[AttentionStep] = Field(description="without a gap, oldest first")


class TrendHeadline(_Exact):
    id: str
    site: str
    title: str
    published: str


class Trend(_Exact):
    term: str
    articles: int
    expected: float = Field(description="as the days before let expect")
    score: float = Field(description="log-likelihood ratio")
    sites: int = Field(description="that have these titles")
    before: int = Field(description="titles of the days before that have the term")
    reason: str = Field(description="why the term is shown, in a sentence")
    headlines: list[TrendHeadline]


class TrendsAnswer(_Exact):
    day: str
    titles: int
    past: int = Field(description="titles of the days before; 0: nothing to compare with")
    terms: list[Trend]


class PortionAnswer(_Exact):
    articles: list[ArticleAnswer]
    cursor: str = Field(description="of the next answer; empty: these were the last")
    total: int = Field(description="when it was begun; Elasticsearch counts to 10,000")
    relaxed: Relaxed
    read_as: str


class Freshness(_Exact):
    """From publication to the search; seconds, null of no article."""

    articles: int
    p50_s: float | None
    p95_s: float | None


class SiteFreshness(Freshness):
    days: int
    stages: dict[str, Freshness]


class SiteRow(_Exact):
    id: str
    name: str
    hosts: list[str]
    cls: str
    enabled: bool
    articles: int
    updated: int
    pages: int
    last_fetch: str | None
    last_new: str | None
    freshness: SiteFreshness
    errors: dict[str, int]
    error_count: int
    outcomes: dict[str, int]
    last_error: str
    queued: int | None
    leased: int | None
    delay_s: float | None
    state: str
    state_kind: Literal["good", "idle", "bad"]


class Counts(_Open):
    queued: int
    leased: int
    waiting: int
    quarantined: int
    domains: int


class DomainRow(_Open):
    domain: str
    site: str
    queued: int
    waiting: int
    leased: int
    delay_ms: float
    note: str


class FrontierAnswer(_Open):
    now_ms: int
    counts: Counts
    totals: Counts
    classes: dict[str, dict[str, int]]
    shards: dict[str, dict[str, int]]
    workers: dict[str, int] = Field(description="worker id -> leases")
    caps: Any
    stats: dict[str, int]
    domains: list[DomainRow]


class WorkerRow(_Open):
    """``alive`` false: it fell silent, and only these fields are known."""

    id: str
    alive: bool
    age_s: float
    beat_ms: int
    host: str = ""
    pid: int = 0
    job: str = Field("", description="scrapyd's job id")
    pages: int = 0
    pages_per_s: float = 0.0
    cpu_percent: float = 0.0
    memory_bytes: int = 0


class WorkersAnswer(_Exact):
    alive: int
    message: str
    workers: list[WorkerRow]


class StatusAnswer(_Exact):
    articles: int | None
    newest: str | None
    workers: int
    silent_workers: int
    pages: int
    pages_per_s: float
    in_flight: int
    queued: int | None
    leased: int | None
    waiting: int | None
    problems: list[str]


class FleetStep(_Exact):
    """Some minutes of the fleet. Only ``at``, all else null: nobody was there to look."""

    at: str = Field(description="when the step begins")
    covered_s: float | None = Field(None, description="what its counts are of")
    pages: int | None = None
    articles_new: int | None = None
    articles_updated: int | None = None
    pages_per_minute: float | None = None
    articles_per_minute: float | None = Field(None, description="new and updated")
    errors: dict[str, int] | None = Field(None, description="OUTCOME(reason) -> visits")
    workers: int | None = Field(None, description="the most at once")
    in_flight: int | None = Field(None, description="fetches open, the most at once")
    queued: int | None = None
    waiting: int | None = Field(None, description="URLs that come again later")
    freshness_p50_s: float | None = Field(None, description="from publication to the search")
    freshness_p95_s: float | None = None


class FleetHistory(_Exact):
    hours: int
    step_minutes: int
    steps: list[FleetStep] = Field(description="the oldest first; the last one is not over yet")


class OpenIncident(_Exact):
    kind: str = Field(description="what is wrong, a kind of docs/operations.md")
    severity: str = Field(description="critical, warning or info")
    subject: str = Field(description="of what: a site, a worker, a disk; may be empty")
    reason: str
    since: datetime
    well_since: datetime | None = Field(
        description="since when it is well again; it is over when it stays so"
    )
    explain: str = Field(description="the command or page that explains it")


class OpenIncidents(_Exact):
    incidents: list[OpenIncident] = Field(description="the oldest first")


class WhyAnswer(_Open):
    """Each part is null where there is none."""

    url: str
    text: str = Field(description="what happened to it and what happens next, in a sentence")
    refused: str | None = Field(description="why links to it are not followed")
    found_on: str | None = None
    record: Any = None
    domain: Any = None
    robots: Any = None
    selector_set: Any = None
    article: Any = None


class SelectorRow(_Exact):
    domain: str
    state: str
    active: str | None
    probation: str | None
    pinned: bool
    made_by: str
    versions: int
    shadow: str = Field(description="agreed/seen of the set on probation")
    samples: int
    reason: str


class PartRow(_Exact):
    part: str = Field(
        description="server, data folder, article store, article store node, search index, meaning,"
        " raw pages, redis, frontier, workers, worker, scrapyd node"
    )
    name: str = Field(description="class, address or id")
    version: str = Field(description="empty: it has none, or does not answer")
    reachable: bool
    problem: str
    load: dict[str, Any]


class AuditRow(_Exact):
    at: str
    who: str = Field(description="id of the token; local where none is asked for")
    role: str
    action: str
    target: str
    detail: str


class Done(_Exact):
    """A change was made."""

    done: str


class CrawlAnswer(_Exact):
    """A bounded crawl. ``queued``: pages that are still to be fetched; ``fresh``: read lately and
    not fetched again; ``left_out``: links that ``max_pages`` left out."""

    id: str
    url: str
    site: str
    levels: int
    max_pages: int
    state: Literal["waiting", "running", "finished", "refused", "failed", "cancelled"]
    waits_for: str = Field(description="what keeps it from going on, as a worker; empty = nothing")
    why: str = Field(description="why it ended")
    fetched: int
    queued: int
    fresh: int
    refused: int
    failed: int
    articles: int
    new_articles: int
    left_out: int
    by: str = Field(description="id of the token that asked for it")
    created: str
    ended: str | None


class CrawlPage(_Exact):
    url: str
    level: int = Field(description="links from the start")
    kind: str
    outcome: str | None = Field(description="null: still to be fetched")


class TakeDownReport(_Open):
    """What `scrapy takedown --json` prints. ``left``: where something still stands."""

    removed: dict[str, int]
    articles: dict[str, str] = Field(description="id -> URL")
    copies: dict[str, str] = Field(description="URL -> site of copies that stay")
    quoted: list[str] = Field(description="other articles whose raw pages quote it")
    looked_at: dict[str, int]
    left: list[str]
    notes: list[str]


class TakeDownAnswer(_Exact):
    target: str
    reason: str
    by: str = Field(description="id of the token that asked for it")
    began: str
    state: Literal["planned", "running", "done", "left", "refused", "failed", "interrupted"]
    said: str = Field(description="how far it is; at the end what was removed, or what failed")
    ended: str | None
    report: TakeDownReport | None = Field(description="null: not at its end")


class BlockedRow(_Exact):
    target: str
    at: str
    who: str
    reason: str
    blocked: int = Field(description="addresses and texts")
    removed: dict[str, int]


class GraphNode(_Exact):
    id: str
    url: str
    title: str
    depth: int = Field(description="links from the home or from a hit")
    links_in: int
    x: float = Field(description="where the layout puts it")
    y: float


class GraphAnswer(_Exact):
    nodes: list[GraphNode]
    edges: list[Mark] = Field(description="from, to: places in nodes")
    left_out: int = Field(description="pages within depth that the limit left out")


class LinkRow(_Exact):
    url: str
    title: str
    seen: str = Field(description="when the page was last read with the link")


class SeedHit(_Open):
    """An article as the routes of one page of hits answer it."""

    id: str
    url: str
    title: str
    content: str
    site: str
    published: str | None
    authors: list[str]
    score: float
    by_meaning: bool = Field(description="no word has found it, only its meaning")
    unsure: Unsure


class SeedAnswer(_Exact):
    mode: Literal["keyword", "semantic", "hybrid"] = Field(description="how it was answered")
    meaning: Meaning | None = Field(description="null: words alone")
    content: list[SeedHit]
    page: int = Field(description="from 0")
    size: int
    total: int
    total_pages: int


class HealthAnswer(_Exact):
    service: Literal["newscrawler"]
    status: Literal["ok", "failing"]
    store: str
    redis: str
    data: str  # names the data that is served, see api.probe.data_mark


_ERRORS = {
    400: "the query cannot be answered as written, or the body cannot be read",
    401: "a token is needed (only where API_TOKEN_SECRET is set)",
    403: "the request comes from another site, or the token's role is too low",
    404: "there is no such thing",
    409: "the set does not pass on the stored pages; as many crawls run as may",
    413: "the body is larger than this route takes",
    421: "the Host header names another server",
    422: "a parameter is not what it must be, or is not known",
    429: "too many requests of this caller, or searches at work; Retry-After says when to come",
    500: "a fault of this program, which is in its log",
    503: "a service behind this one does not answer, or not in time",
}
#: Answered before any route is looked at.
_OF_THE_GATE = (401, 403, 413, 421, 429, 500)


def errors(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """``responses=`` of a route: these and those that every route may answer.

    By reference: with ``"model": Error`` FastAPI would make a serializer for each status of each
    route, most of what an application costs to be made, and none is ever used.
    """
    content = {problem.MEDIA: {"schema": {"$ref": f"#/components/schemas/{Error.__name__}"}}}
    return {
        status: {"description": _ERRORS[status], "content": content}
        for status in sorted({*statuses, *_OF_THE_GATE})
    }


def files(schemas: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """The 200 of a route that answers with a file. ``schemas``: of each media type."""
    return {
        "description": "Successful Response",
        "content": {media: {"schema": dict(schema)} for media, schema in schemas.items()},
    }


TEXT = {"type": "string"}
BINARY = {"type": "string", "format": "binary"}
_CSL_TEXTS = (
    *("title", "container-title", "publisher", "URL", "language", "section", "abstract"),
    "keyword",
)
#: What `citation.cite` writes of CSL-JSON 1.0.2.
CSL_ITEMS = {
    "type": "array",
    "minItems": 1,
    "maxItems": 1,
    "items": {
        "type": "object",
        "required": ["id", "type"],
        "properties": {
            "id": TEXT,
            "type": {"const": "article-newspaper"},
            "author": {"type": "array", "items": {"type": "object"}},
            "issued": {"type": "object", "required": ["date-parts"]},
            "accessed": {"type": "object", "required": ["date-parts"]},
            **dict.fromkeys(_CSL_TEXTS, TEXT),
        },
    },
}
