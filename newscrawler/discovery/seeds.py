"""Where a site's crawl starts, and how often each start is looked at again. Pure."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from newscrawler.discovery import sitefile
from newscrawler.discovery.sitefile import Site
from newscrawler.discovery.sites import Sites
from newscrawler.items import Kind, Link

#: Bounds of the interval between two visits of a seed, seconds.
SHORTEST_S = 300.0
LONGEST_S = 86_400.0
#: Share of known links above which a seed is looked at less often, and below which more often.
MANY_KNOWN = 0.67
FEW_KNOWN = 0.33
_STEP = 1.5


def next_interval(known_share: float, current_s: float) -> float:
    """Seconds until the next visit: longer where nearly all links were known, shorter where few were."""
    factor = _STEP if known_share > MANY_KNOWN else 1 / _STEP if known_share < FEW_KNOWN else 1.0
    return min(LONGEST_S, max(SHORTEST_S, current_s * factor))


def seed_links(site: Site, now_ms: int) -> list[Link]:
    """Home page, feeds, sitemaps, sections of a site, as links that are admitted when their visit is due.

    Feeds and sitemaps that are known to be dead are left out. A sitemap of a month or a few days stands
    for today's and, in its first days, the one before.
    """
    sites = Sites([site])
    now = datetime.fromtimestamp(now_ms / 1000, UTC) + timedelta(seconds=sitefile.zone_offset_s(site.zone))
    wanted = [(Kind.HOME, site.home)]
    wanted += [(Kind.FEED, feed.url) for feed in site.feeds if feed.status != "dead"]
    for sitemap in site.sitemaps:
        if sitemap.status != "dead":
            days = (now, now - timedelta(days=2)) if "{" in sitemap.url else (now,)
            wanted += [(Kind.SITEMAP, sitefile.expand(sitemap.url, day)) for day in days]
    wanted += [(Kind.SECTION, url) for url in site.sections]
    links: dict[bytes, Link] = {}
    for kind, address in wanted:
        found = sites.identify(address, kind=kind, now_ms=now_ms)
        if isinstance(found, Link) and found.url_id not in links:
            found.revisit = True
            links[found.url_id] = found
    return list(links.values())
