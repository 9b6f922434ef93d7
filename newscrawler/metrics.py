"""The name, unit and meaning of every counter and gauge. Pure.

A stat is declared once, here: ``stats.inc_value(metrics.PAGES)``, never a literal. ``STATS`` is
what /metrics and the tests read.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

STATS: dict[str, Stat] = {}


@dataclass(frozen=True)
class Stat:
    name: str
    unit: str
    meaning: str
    kind: str = "counter"  # or "gauge", "histogram"
    bounds: tuple[float, ...] = ()  # of a histogram: upper bounds of its buckets, rising


def _stat(name: str, unit: str, meaning: str, kind: str = "counter") -> str:
    STATS[name] = Stat(name, unit, meaning, kind)
    return name


def _histogram(name: str, meaning: str, bounds: tuple[float, ...]) -> str:
    STATS[name] = Stat(name, "seconds", meaning, "histogram", bounds)
    return name


def observe(stats: Any, name: str, seconds: float) -> None:
    """Counts one value of a histogram: in its bucket ("fetch/time/4") and in the sum of all
    ("fetch/time/ms"), which are counters and can be added up over a fleet.

    :param stats: a crawl's stats collector
    :param name: of the histogram, with its label where it has one
    """
    bounds, buckets, total = _names_of(name)
    count = stats.inc_value
    count(buckets[bisect_left(bounds, seconds)])
    count(total, round(seconds * 1000))


@lru_cache(maxsize=512)
def _names_of(histogram: str) -> tuple[tuple[float, ...], list[str], str]:
    """Its bounds, the counter of each bucket, the counter of the sum."""
    stat = stat_of(histogram)
    assert stat is not None, histogram
    buckets = [labelled(histogram, str(number)) for number in range(len(stat.bounds) + 1)]
    return stat.bounds, buckets, labelled(histogram, "ms")


def labelled(name: str, label: str) -> str:
    """The stat of one label value, e.g. ``page/outcome`` + ``DONE`` -> ``page/outcome/DONE``."""
    return f"{name}/{label}"


def stats_of(crawler: Any) -> dict[str, Any]:
    """The counts of a crawl (Scrapy's Crawler) so far; empty where it ended before it began."""
    return crawler.stats.get_stats() if crawler.stats else {}


def nothing_was_due(stats: Mapping[str, Any]) -> bool:
    """The crawl ended, or waits, without having been handed a single URL, as all that
    there is comes later."""
    return not stats.get(LEASES) and FRONTIER_NEXT in stats


#: Old name -> name. Sums that are in Redis from before, and workers of the version before beside
#: those of this one, say the old names; /metrics tells the sums under both.
RENAMED = {"article/twin": "article/duplicate", "llm/direct": "llm/extraction"}


def renamed(name: str) -> str:
    """The name of today of a counted name, its label kept."""
    for old, new in RENAMED.items():
        if name == old or name.startswith(f"{old}/"):
            return new + name[len(old) :]
    return name


@lru_cache(maxsize=4096)  # every name is asked for each second
def stat_of(name: str) -> Stat | None:
    """The declared stat behind a counted name, its label cut off; None for Scrapy's own stats."""
    parts = name.split("/")
    for length in range(len(parts), 0, -1):
        if stat := STATS.get("/".join(parts[:length])):
            return stat
    return None


# pages
PAGES = _stat("page/fetched", "pages", "answers received from sites, of any status")
PAGE_OUTCOME = _stat("page/outcome", "pages", "visits by outcome; label: outcome")
PAGE_REASON = _stat(
    "page/reason", "pages", "visits that were not DONE by reason; label: OUTCOME(reason)"
)
PAGE_BYTES = _stat("page/bytes", "bytes", "bytes of body received, decompressed")
PAGE_STATUS = _stat("page/status", "pages", "answers by HTTP status; label: status")

FETCH_TIME = _histogram(
    "fetch/time",
    "from the request to the head of the answer",
    (0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60),
)
PARSE_TIME = _histogram(
    "page/parse_time",
    "from an answer to what is known of the page, the wait for a parse process included",
    (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10),
)

# under Scrapy's names, for monitors made for any Scrapy project: the frontier tries again,
# not RetryMiddleware
RETRIES = _stat("retry/count", "pages", "visits after which a URL is queued again")
RETRIES_SPENT = _stat("retry/max_reached", "pages", "visits after which a URL was given up")
RETRY_REASON = _stat("retry/reason_count", "pages", "retries by reason; label: reason")

# pages that were read with a browser
RENDERED = _stat("render/pages", "pages", "pages read with a browser; label: site, learnt or trial")
RENDER_FAILED = _stat(
    "render/failed", "pages", "pages that a browser could not read; label: reason"
)
RENDER_PARTIAL = _stat(
    "render/partial", "pages", "pages that were still at work when their time was over"
)
RENDER_REQUESTS = _stat("render/requests", "requests", "requests that scripts of pages had made")
RENDER_REFUSED = _stat(
    "render/refused", "requests", "requests of pages that were not made; label: reason"
)
RENDER_CACHED = _stat(
    "render/cached", "requests", "scripts that were taken from an earlier page of their site"
)
RENDER_BYTES = _stat("render/bytes", "bytes", "bytes that those requests brought")
RENDER_CPU = _stat("render/cpu_ms", "milliseconds", "time of the CPU that the browser took")
RENDER_TIME = _histogram(
    "render/time",
    "from a page's document to its text after its scripts, waits for turns included",
    (0.5, 1, 2.5, 5, 10, 20, 40, 60, 90),
)

# virus scanner
SCANNED = _stat(
    "scan/pages", "pages", "pages shown to ClamAV; label: clean, found, failed, or passed unscanned"
)
SCAN_TIME = _histogram(
    "scan/time",
    "of a page at ClamAV, the wait for a free place included",
    (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5, 30),
)

# articles
ARTICLES_NEW = _stat("article/new", "articles", "articles stored for the first time")
ARTICLES_UPDATED = _stat("article/updated", "articles", "articles stored as a new version")
ARTICLES_UNCHANGED = _stat(
    "article/unchanged", "articles", "articles parsed again with equal fields"
)
ARTICLES_DUPLICATE = _stat(
    "article/duplicate", "articles", "articles that are stored under another address of their site"
)
ARTICLE_FIELD = _stat(
    "article/field", "articles", "stored articles with the field present; label: field"
)
ARTICLE_ORIGIN = _stat("article/origin", "articles", "where fields came from; label: field/origin")
ARTICLE_FIELD_CONFLICTS = _stat(
    "article/contested",
    "articles",
    "articles with a field that another good source of the page contradicts; label: field",
)
ARTICLE_LAG = _histogram(
    "article/lag",
    "the way of new articles that came out after their site was first visited; label: total, or"
    " its stage: discovered, fetched or searchable",
    (10, 30, 60, 120, 180, 300, 480, 600, 720, 900, 1200, 1800, 3600, 7200, 21_600, 86_400),
)
ARTICLE_DATE_DROPPED = _stat(
    "article/date_dropped", "articles", "publication times in the future, taken out"
)

# links and frontier
LINKS_FOUND = _stat("link/found", "links", "hrefs on fetched pages")
LINKS_OFFERED = _stat("link/offered", "links", "links that were offered to the frontier")
LINKS_KNOWN = _stat("link/known", "links", "links that this worker knew to be in the frontier")
LINKS_ADDED = _stat("link/added", "links", "links that were new and queued")
LINKS_SEEN = _stat(
    "link/seen", "links", "offered links that the frontier had: queued, leased, finished or seen"
)
LINKS_REFUSED = _stat(
    "link/refused", "links", "links that were not offered or not admitted; label: reason"
)
FEEDS_PUSHED = _stat("feed/pushed", "feeds", "feeds that a hub sent, read by this worker")
FEEDS_PUSHED_LINKS = _stat("feed/pushed_links", "links", "links of them that were new")
LINKS_LOCAL_HIT = _stat(
    "link/local_hit", "links", "links that the worker's own filters knew; label: lru or bloom"
)
LEASES = _stat("frontier/leases", "urls", "URLs leased by this worker")
LEASES_LOST = _stat("frontier/leases_lost", "urls", "leases that ran out or were refused at ack")
LEASES_RETURNED = _stat("frontier/leases_returned", "urls", "leases given back unfetched")
FRONTIER_CALLS = _stat("frontier/calls", "calls", "script calls to Redis by the lease loop")
LEASE_LOOP_ERRORS = _stat(
    "frontier/pump_errors", "errors", "unexpected errors in the lease loop that it survived"
)
FRONTIER_QUEUED = _stat("frontier/queued", "urls", "URLs queued in the whole frontier", "gauge")
FRONTIER_LEASED = _stat("frontier/leased", "urls", "URLs leased in the whole frontier", "gauge")
FRONTIER_WAITING = _stat(
    "frontier/waiting", "urls", "visited URLs in the whole frontier that come again later", "gauge"
)
FRONTIER_NEXT = _stat(
    "frontier/next_s",
    "seconds",
    "until something was due, when nothing was left to do; -1 = nothing is planned",
    "gauge",
)
CHOSEN_QUEUED = _stat(
    "frontier/chosen_queued",
    "urls",
    "URLs queued of the sites that the crawl is for, when nothing was due",
    "gauge",
)
CHOSEN_WAITING = _stat(
    "frontier/chosen_waiting",
    "urls",
    "visited URLs of the sites that the crawl is for that come again later, when nothing was due",
    "gauge",
)
FRONTIER_POISON_CANDIDATES = _stat(
    "frontier/suspects",
    "urls",
    "queued URLs that may kill workers and rest, when nothing was left to do",
    "gauge",
)

# processes
CHILDREN_PEAK = _stat(
    "process/children_peak_kb",
    "kilobytes",
    "most memory of the worker's own processes, summed",
    "gauge",
)
PAGES_UNREADABLE = _stat(
    "page/unreadable", "pages", "pages that ended the process that read them, twice"
)

# raw store
RAW_RECORDS = _stat("raw/records", "records", "pages written to WARC")
RAW_BYTES = _stat("raw/bytes", "bytes", "bytes written to WARC, compressed")

# selector sets and models
SELECTOR_MISSING = _stat(
    "selector/missing", "pages", "article pages of sites without a selector set"
)
SELECTOR_SAMPLES = _stat("selector/samples", "pages", "stored pages noted as samples for a set")
SELECTOR_JOBS = _stat("selector/jobs", "jobs", "generations by how they ended; label: state")
SELECTOR_SHADOW = _stat(
    "selector/shadow", "pages", "pages compared with a set on probation; label: agreed or differed"
)
SELECTOR_PROMOTED = _stat(
    "selector/promoted", "sets", "sets that became active after their shadow pages"
)
SELECTOR_ALARMS = _stat(
    "selector/alarms",
    "alarms",
    "what pages said of their sets; label: drift, ready, blocked or open",
)
SELECTOR_REPAIRED = _stat(
    "selector/repaired", "pages", "stored pages parsed again after a set had failed; label: result"
)
SELECTOR_ERRORS = _stat("selector/errors", "errors", "background work on selector sets that failed")
LLM_EXTRACTION = _stat(
    "llm/extraction",
    "pages",
    "pages that rules cannot read, by what came of asking a model for their fields; label: result",
)
LLM_CALLS = _stat("llm/calls", "calls", "HTTP requests to the model, answered or not")
LLM_TOKENS = _stat(
    "llm/tokens", "tokens", "tokens that the model's server counted; label: in or out"
)

# monitors
MONITOR_FAILED = _stat("monitor/failed", "checks", "checks of the Spidermon suites that failed")
