"""Where a site's crawl starts, and how often each start is looked at again. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from zlib import crc32

from newscrawler.discovery.sitefile import Site, expand, zone_offset_s
from newscrawler.discovery.sites import Sites
from newscrawler.items import Kind, Link

#: Bounds of the interval between two visits of a seed, seconds.
SHORTEST_S = 300.0
LONGEST_S = 86_400.0
#: Share of known links above which a seed is looked at less often, and below which more often.
MANY_KNOWN = 0.67
FEW_KNOWN = 0.33
_STEP = 1.5
#: A seed that the file calls dead is asked on one day of so many.
DEAD_DAYS = 30

#: In the first days of a month (or shard of days) the one before is still read: late
#: entries land there.
_OVERLAP = timedelta(days=2)


@dataclass(frozen=True, slots=True)
class Seed:
    """A start as an operator sees it. ``label``: home, feed, section, or the
    kind of the sitemap."""

    site: str
    label: str
    kind: Kind
    url: str
    status: str = ""
    confidence: str = ""
    via: str = ""  # address of the page that announced it; "" = the file names it

    @property
    def dead(self) -> bool:
        return self.status == "dead"


def next_interval(known_share: float, current_s: float) -> float:
    """Seconds until the next visit: longer where nearly all links were known, shorter where few
    were (see list_revisits.py)."""
    if known_share > MANY_KNOWN:
        current_s *= _STEP
    elif known_share < FEW_KNOWN:
        current_s *= 1 / _STEP
    return min(LONGEST_S, max(SHORTEST_S, current_s))


def seeds(site: Site, now_ms: int) -> list[Seed]:
    """All starts of a site, dead ones too. A sitemap of a month or a few days stands for that of
    ``now_ms`` and, in its first days, the one before."""
    now = datetime.fromtimestamp(now_ms / 1000 + zone_offset_s(site.zone), UTC)
    trust = site.confidence.get("sections", site.confidence.get("overall", ""))
    found = [Seed(site.id, "home", Kind.HOME, site.home)]
    for feed in site.feeds:
        found.append(Seed(site.id, "feed", Kind.FEED, feed.url, feed.status, feed.confidence))
    for sitemap in site.sitemaps:
        for url in dict.fromkeys(expand(sitemap.url, day) for day in (now, now - _OVERLAP)):
            found.append(
                Seed(site.id, sitemap.kind, Kind.SITEMAP, url, sitemap.status, sitemap.confidence)
            )
    for url in site.sections:
        found.append(Seed(site.id, "section", Kind.SECTION, url, confidence=trust))
    return found


def seed_links(site: Site, now_ms: int) -> list[Link]:
    """The starts of a site as links that are admitted when their visit is due; dead
    ones on one day a month."""
    sites = Sites([site])
    links: dict[bytes, Link] = {}
    for seed in seeds(site, now_ms):
        if seed.dead and not is_day_of_dead(seed.url, now_ms):
            continue
        found = sites.identify(seed.url, kind=seed.kind, now_ms=now_ms)
        if isinstance(found, Link) and found.url_id not in links:
            found.revisit = True
            links[found.url_id] = found
    return list(links.values())


def is_day_of_dead(url: str, now_ms: int) -> bool:
    """Whether a seed that the file calls dead is asked today: once a month it may
    prove the file wrong."""
    return (now_ms // 86_400_000 - crc32(url.encode())) % DEAD_DAYS == 0
