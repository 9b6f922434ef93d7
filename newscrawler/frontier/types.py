"""The values that go in and out of the frontier. Plain data, no Redis.

Times named ``_ms`` are milliseconds since the epoch by the frontier's clock (the server's TIME, or
the simulated clock of a test web). Only a lease's deadline is in the server's real time: a worker
dies in real time whatever the simulated day says.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from newscrawler.items import Kind, Link, Outcome

#: ``Step.wait_ms`` when nothing is scheduled at all, and the most that it ever says: an hour.
NOTHING_MS = 3_600_000


class FrontierError(Exception):
    """Base of what leaves this package."""


class FrontierUnavailable(FrontierError):
    """Redis cannot be reached or cannot write now. Wait or stop; nothing was lost.
    One clear line."""


class FrontierGone(FrontierError):
    """The data of the embedded Redis was deleted under a process that used it: waiting
    brings nothing back."""


class FrontierRefused(FrontierError):
    """The frontier does not accept the order: a delay of 0 on the open web, a clock on a real
    crawl, a changed number of shards. Says which value and what to do."""


#: The classes of domains, in the order of their turns 5:3:1.
CLASSES = ("high", "mid", "low")
#: A policy's class where the admin chose none.
AUTO = "auto"


@dataclass(frozen=True, slots=True)
class DomainPolicy:
    """What the admin says of one domain. Loading it again changes nothing and opens no gate."""

    domain: str  # lower-case host[:port]
    site: str
    cls: str = "mid"  # high | mid | low, or auto: worked out from what its fetches bring and cost
    floor_ms: int = 2000  # least time between two fetches, whole fleet
    enabled: bool = True  # False: what is queued stays, nothing is leased, links are refused
    pages_per_day: int = (
        0  # fetches in 24 h, whole fleet; 0 = no quota. The operator's own quota wins
    )
    # Domains of one group share one gate, as they are one host or one CDN. "" = none, None
    # = leave it as it is.
    group: str | None = None

    def __post_init__(self) -> None:
        if self.cls not in (*CLASSES, AUTO):
            raise ValueError(
                f"class of {self.domain} is {self.cls!r}; it must be one of {', '.join(CLASSES)} or"
                f" {AUTO}"
            )
        if not 0 <= self.pages_per_day < 2**32:
            raise ValueError(
                f"pages a day of {self.domain} are {self.pages_per_day}; they must be 0 or more"
            )
        if len((self.group or "").encode()) > 255:
            raise ValueError(f"the group of {self.domain} has a name of more than 255 bytes")
        if self.floor_ms < 0:
            raise ValueError(f"delay of {self.domain} is {self.floor_ms} ms; it must be 0 or more")
        if not self.domain or self.domain != self.domain.lower():
            raise ValueError(f"domain {self.domain!r} must be a lower-case host or host:port")


#: Time until a list page is looked at again when the ack does not say, and the least age at which
#: an offer with ``revisit`` re-admits a finished URL. Milliseconds; discovery adapts them per seed.
REVISIT_MS: Mapping[Kind, int] = {
    Kind.HOME: 15 * 60_000,
    Kind.FEED: 15 * 60_000,
    Kind.SITEMAP: 60 * 60_000,
    Kind.SECTION: 30 * 60_000,
    Kind.ARTICLE: 24 * 3_600_000,
    Kind.PAGE: 24 * 3_600_000,
}


@dataclass(frozen=True, slots=True)
class FrontierConfig:
    """How this frontier behaves. Milliseconds unless the name says otherwise."""

    shards: int = 1
    lease_ms: int = 90_000
    max_tries: int = 4
    # Deaths of workers that held a URL, among others, after which it is suspected to kill them and
    # tried by itself; and deaths during such retries that prove it. Rests of 1, 4, 16 and 64 leases
    # come before the retries, so that a storm that kills workers for another reason must last for
    # two hours before an innocent URL can be proved guilty.
    poison_candidate_after: int = 3
    max_isolated_retries: int = 4
    queue_limit: int = 50_000  # per domain
    retry_ms: int = 60_000  # first retry; four times as long with every further one
    retry_max_ms: int = 6 * 3_600_000
    failed_due_ms: int = 7 * 86_400_000  # a quarantined URL may be offered again after this
    obey_robots: bool = True
    robots_max_age_ms: int = 86_400_000
    autothrottle: bool = True
    autothrottle_start_ms: int = 2_000
    autothrottle_max_ms: int = 60_000
    autothrottle_target: float = 1.0
    # A robots.txt that fails is asked again after this, doubling: nothing of its domain is fetched
    # until it answers.
    robots_retry_ms: int = 5_000
    backoff_start_ms: int = 60_000
    backoff_max_ms: int = 86_400_000
    backoff_forgive_ms: int = 30 * 60_000
    # Every admitted host is in 127.0.0.0/8: the only case where a delay of 0 or a simulated
    # clock is accepted.
    loopback_only: bool = False
    revisit_ms: Mapping[Kind, int] = field(default_factory=lambda: dict(REVISIT_MS))
    # A script call that lasts longer ends where it may, as Redis serves nobody else meanwhile; the
    # rest comes with the next.
    call_ms: int = 3
    log_entries: int = 2_000  # fetches kept per domain for `scrapy frontier audit`
    # What the whole fleet may ask and read in any minute; 0 = no cap.
    requests_per_minute: int = 0
    bytes_per_minute: int = 0
    pattern_budget: int = (
        0  # URLs of one shape per domain and day that are no article; 0 = no limit
    )
    # Seen filter: buckets of the first generation (each further one has twice as many),
    # members per bucket until the next generation, bits kept of each id (32; tests force
    # false positives with few).
    seen_buckets: int = 4096
    seen_per_bucket: int = 256
    seen_bits: int = 32
    seen_window_ms: int = 90 * 86_400_000  # a generation is dropped this long after its end
    # About so many finished records stay in Redis (whole fleet), the oldest go to the
    # archive; 0 = all stay.
    finished_limit: int = 0
    # Worker's local filter: links met twice exactly, all in pybloom-live; emptied after
    # this many seconds.
    local_links: int = 65_536
    local_capacity: int = 500_000
    local_reset_s: float = 3_600.0

    def __post_init__(self) -> None:
        if not 1 <= self.shards <= 1024:
            raise ValueError(f"FRONTIER_SHARDS is {self.shards}; it must be 1 to 1024")
        if self.lease_ms < 1000:
            raise ValueError(
                f"a lease of {self.lease_ms} ms is shorter than any fetch; FRONTIER_LEASE_S must be"
                " >= 1"
            )
        if not 1 <= self.max_tries <= 15:
            raise ValueError(f"FRONTIER_MAX_TRIES is {self.max_tries}; it must be 1 to 15")
        if self.queue_limit < 1:
            raise ValueError(f"FRONTIER_QUEUE_LIMIT is {self.queue_limit}; it must be 1 or more")
        if self.robots_max_age_ms > 86_400_000:
            raise ValueError("ROBOTS_MAX_AGE_S is over 86400; RFC 9309 2.4 allows 24 h at most")
        for name in ("requests_per_minute", "bytes_per_minute", "pattern_budget"):
            if getattr(self, name) < 0:
                raise ValueError(
                    f"FRONTIER_{name.upper()} is {getattr(self, name)}; it must be 0 (no limit) or"
                    " more"
                )
        if 0 < self.requests_per_minute < self.shards:
            raise ValueError(
                f"FRONTIER_REQUESTS_PER_MINUTE is {self.requests_per_minute}; each of the"
                f" {self.shards} shards gets an equal part of it, so it must be at least their"
                " number"
            )
        if self.autothrottle_target <= 0:
            raise ValueError(
                f"AUTOTHROTTLE_TARGET_CONCURRENCY is {self.autothrottle_target}; it must be above 0"
            )


class Wanted(NamedTuple):
    """A bounded crawl wants a URL, which lies so many links from its start."""

    crawl: str
    level: int
    levels: int  # of the crawl

    @property
    def tag(self) -> str:
        return f"{self.crawl}:{self.level}:{self.levels}"


@dataclass(slots=True, eq=False)
class Lease:
    """The right to fetch one URL once. Compared by identity: there is one object per lease."""

    url: str
    url_id: bytes
    domain: str
    kind: Kind
    depth: int
    parent: bytes | None
    tries: int  # visits that failed before this one
    fence: int
    deadline_ms: int  # the server's real time
    etag: str | None = None
    last_modified: str | None = None
    digest: bytes = b""
    content_state: bytes = b""
    hint: dict[str, Any] | None = None
    discovered_ms: int = 0
    robots_version: int = (
        0  # changes when the domain's robots.txt does; 0 = none is needed or known
    )
    site: str = ""
    band: int = 2
    score: int = 0
    last_visit_ms: int = 0  # 0 = never visited
    raw_ref: str | None = None  # of the last visit that was kept
    crashes: int = (
        0  # FrontierConfig.poison_candidate_after or more: see Frontier.begin_isolated_retry
    )
    header: bytes = b""  # of its record as it was granted, goes back with the ack
    wanted: tuple[Wanted, ...] = ()  # by bounded crawls
    was_known: bool = True  # False: one of them brought it into the queue
    # For them: the links of its site that the page has (None: it was not read), and what became
    # of its article (new, updated, unchanged; "" = it has none).
    children: list[Link] | None = None
    article: str = ""

    @property
    def request_id(self) -> str:
        """Names this one visit in logs: the URL's id, which is that of its article, and the number
        of the lease, which only grows."""
        return f"{self.url_id.hex()}.{self.fence}"

    @property
    def wants_links(self) -> bool:
        """A bounded crawl follows the links of the page, so its body is read, changed or not."""
        return any(one.level < one.levels for one in self.wanted)


@dataclass(slots=True)
class RobotsAnswer:
    """What the fetch of a robots.txt gave, after redirects. Goes with the ack of a ROBOTS lease."""

    status: int  # 0 = unreachable
    body: bytes = b""
    crawl_delay_s: float | None = None  # of our user agent's group
    retry_after_s: float | None = None


@dataclass(slots=True)
class RobotsEntry:
    """The robots.txt that the fleet shares."""

    status: int
    body: bytes
    fetched_ms: int
    version: int


@dataclass(slots=True)
class Ack:
    """The end of a visit, sent after the article is stored."""

    lease: Lease
    outcome: Outcome
    reason: str = ""
    status: int = 0
    # When to look again: None = the default of the kind (list pages come back, articles do not),
    # 0 = never.
    next_visit_ms: int | None = None
    etag: str | None = None
    last_modified: str | None = None
    digest: bytes = b""
    content_state: bytes = b""
    raw_ref: str | None = None
    links: list[Link] = field(default_factory=list)
    robots: RobotsAnswer | None = None
    retry_after_s: float | None = None  # what the site asked for; a RETRY comes no sooner
    # RETRY: the same URL id lives at another spelling (http -> https, other slug): fetch that next.
    moved_to: str | None = None


@dataclass(slots=True)
class Fetched:
    """The answer has come (or the fetch failed): the gate of the domain opens
    ``delay`` from now."""

    lease: Lease
    latency_ms: float
    status: int = 0  # 0 = connection failure
    retry_after_s: float | None = None
    size: int = 0  # bytes of the body, for the fleet's cap of bytes


@dataclass(slots=True)
class AddResult:
    """Of one batch of links. ``refused``: queue_full, dropped, offsite, disabled, trap -> count."""

    added: int = 0
    seen: int = 0
    refused: dict[str, int] = field(default_factory=dict)

    @property
    def taken(self) -> int:
        """Links that are in the frontier now."""
        return self.added + self.seen

    def merge(self, other: AddResult) -> None:
        self.added += other.added
        self.seen += other.seen
        for reason, n in other.refused.items():
            self.refused[reason] = self.refused.get(reason, 0) + n


@dataclass(slots=True)
class Step:
    """The answer of one ``step()``."""

    leases: list[Lease]
    # Real milliseconds until a call may give something (a gate opens, a due time comes, a lease
    # runs out); 0 = call again at once, NOTHING_MS = nothing is scheduled.
    wait_ms: int
    queued: int  # URLs that this crawl still has to fetch: queued now, or a retry with a due time
    leased: int  # in the whole frontier
    waiting: int  # URLs visited before whose next visit is not due yet
    now_ms: int  # the frontier's clock
    server_ms: int  # the server's real time, in which leases run out
    rejected: list[bytes]  # url ids of acks and fetched that came too late or twice
    server_id: str  # changes when Redis was restarted
    added: AddResult = field(default_factory=AddResult)  # the links of the acks

    @property
    def pending(self) -> int:
        return self.queued + self.leased

    @classmethod
    def empty(cls) -> Step:
        """Before the first call."""
        return cls([], 0, 0, 0, 0, 0, 0, [], "")


@dataclass(slots=True)
class Counts:
    """Over all shards."""

    queued: int = 0
    leased: int = 0
    waiting: int = 0
    quarantined: int = 0
    domains: int = 0


@dataclass(slots=True)
class Record:
    """What is known of one URL. ``state``: queued | leased | waiting | finished | quarantined."""

    url_id: bytes
    domain: str
    state: str
    kind: Kind
    url: str | None = None  # finished records keep no URL
    depth: int = 0
    parent: bytes | None = None
    parent_start: bytes = b""  # of a finished record: what is kept of it
    tries: int = 0
    crashes: int = 0
    band: int = 2
    score: int = 0
    discovered_ms: int = 0
    due_ms: int | None = None
    outcome: Outcome | None = None
    reason: str = ""
    status: int = 0
    last_visit_ms: int = 0
    next_visit_ms: int | None = None
    etag: str | None = None
    last_modified: str | None = None
    digest: bytes = b""
    content_state: bytes = b""
    raw_ref: str | None = None
    hint: dict[str, Any] | None = None
    worker: str | None = None  # of the lease
    deadline_ms: int | None = None
    on_trial: bool = False  # leased, as the one poison candidate that its worker retries
