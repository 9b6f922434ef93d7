"""How large a fleet must be: from sites and articles a day to CPU, Redis, disk and network. Pure.

Each constant was measured; docs/operations.md, "How large", says where and by which command.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

#: CPU milliseconds of a page, all processes of a worker: with a selector set, by the generic chain.
CPU_MS_WITH_SET, CPU_MS_GENERIC = 5.0, 14.0
#: CPU milliseconds of a page that a browser reads, and what its scripts ask for beside it.
CPU_MS_RENDERED, REQUESTS_RENDERED = 1100.0, 2
#: CPU milliseconds of a page in Redis.
REDIS_CPU_MS = 0.25
#: CPU milliseconds of an article's vector, SEMANTIC on.
EMBED_CPU_MS = 90.0
#: Bytes in Redis: of a URL that is queued or waits for its next visit, of a finished one's record,
#: of one that was merely seen.
QUEUED_B, FINISHED_B, SEEN_B = 206, 64, 4.7
#: Bytes of a page over the network (compressed) and in the raw store (WARC, with headers).
PAGE_NET_B, PAGE_RAW_B = 35_000, 38_000
#: Pages kept of an article: the first, and now and then a changed one. Unchanged ones are not kept.
VERSIONS = 1.2
#: Bytes of an article in the local store with its index of words; of its vector.
ARTICLE_B, VECTOR_B = 15_500, 768
#: Processors are planned to be busy this part of the time: news come at certain hours.
BUSY = 0.5
#: Requests that politeness allows are planned to be used this far.
POLITE = 0.5
DAY_S = 86_400


@dataclass(frozen=True, slots=True)
class Plan:
    """What is asked for.

    :param articles: new ones a day, of all sites
    :param lists: requests to feeds, sitemaps, sections and homes for one new article
    :param revisits: visits of an article after the first
    :param links: links that are seen for the first time, for one new article
    :param set_share: part of the articles whose site has a selector set
    :param delay_s: least seconds between two requests to a site
    :param days: that raw pages are kept
    :param semantic: whether articles get vectors
    :param rendered: pages a day that a browser reads, as scripts fill them
    """

    sites: int
    articles: int
    lists: float = 12.0
    revisits: float = 4.0
    links: float = 3.0
    set_share: float = 0.5
    delay_s: float = 2.0
    days: int = 365
    semantic: bool = True
    rendered: int = 0

    def __post_init__(self) -> None:
        if self.sites < 1 or self.articles < 1:
            raise ValueError("sites and articles must be 1 or more")
        if (
            self.delay_s < 0
            or self.days < 0
            or min(self.lists, self.revisits, self.links, self.rendered) < 0
        ):
            raise ValueError("no number may be negative")
        if not 0 <= self.set_share <= 1:
            raise ValueError("the share of articles with a set is between 0 and 1")


@dataclass(frozen=True, slots=True)
class Size:
    """What it takes. Bytes, and processors that are never busier than planned."""

    requests_a_day: int
    requests_a_second: float
    site_allows_a_day: int  # requests of one site by its delay; 0 = as many as it answers
    site_needs_a_day: int
    worker_cpus: float
    redis_cpus: float
    embed_cpus: float
    workers: int
    redis_bytes: int  # after a year
    store_bytes_a_year: int
    raw_bytes: int
    network_bytes_a_day: int

    @property
    def is_polite(self) -> bool:
        """Whether the sites can be asked so often without asking one too often."""
        return not self.site_allows_a_day or (
            self.site_needs_a_day <= POLITE * self.site_allows_a_day
        )


def size(plan: Plan) -> Size:
    a = plan.articles
    requests = math.ceil(a * (1 + plan.revisits + plan.lists))
    page_ms = plan.set_share * CPU_MS_WITH_SET + (1 - plan.set_share) * CPU_MS_GENERIC
    # An unchanged page and a list are not extracted: dear are articles that are read once.
    work_ms = a * page_ms + (requests - a) * CPU_MS_WITH_SET
    work_ms += plan.rendered * CPU_MS_RENDERED
    asked = requests + plan.rendered * REQUESTS_RENDERED  # of the sites
    worker_cpus = work_ms / 1000 / DAY_S / BUSY
    year = 365 * a
    queued = a * 7  # what is visited again within a week
    return Size(
        requests_a_day=requests,
        requests_a_second=requests / DAY_S,
        site_allows_a_day=int(DAY_S / plan.delay_s) if plan.delay_s else 0,
        site_needs_a_day=math.ceil(asked / plan.sites),
        worker_cpus=worker_cpus,
        redis_cpus=requests * REDIS_CPU_MS / 1000 / DAY_S / BUSY,
        embed_cpus=a * EMBED_CPU_MS / 1000 / DAY_S / BUSY if plan.semantic else 0.0,
        # One worker uses up to two processors: its own and its parse process'.
        workers=max(1, math.ceil(worker_cpus / 2)),
        redis_bytes=int(queued * QUEUED_B + year * FINISHED_B + year * plan.links * SEEN_B),
        store_bytes_a_year=int(year * (ARTICLE_B + (VECTOR_B if plan.semantic else 0))),
        raw_bytes=int(plan.days * a * VERSIONS * PAGE_RAW_B),
        network_bytes_a_day=int(asked * PAGE_NET_B),
    )
