"""Lists that sites announce while a crawl runs: feeds of home and sections, sitemaps,
sections of the menu.

What is new is remembered for the fleet (frontier/found.py) and offered as a list of the site; its
visits are planned as those of any list.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from newscrawler.discovery import list_revisits
from newscrawler.discovery.seeds import seeds
from newscrawler.discovery.sitefile import Site
from newscrawler.frontier.found import FoundSeed, FoundSeeds
from newscrawler.frontier.types import FrontierUnavailable
from newscrawler.items import Kind, Link

if TYPE_CHECKING:
    from newscrawler.discovery.sites import Sites
    from newscrawler.frontier.types import Lease

logger = logging.getLogger(__name__)

#: Where a sitemap is looked for once where robots.txt names none (sitemaps.org, and what news
#: plugins write).
PROBED = ("/sitemap.xml", "/news-sitemap.xml")
#: Addresses that this worker has told already; forgotten when there are more.
_MOST_TOLD = 50_000
#: A feed or section that the site's own pages name is believed before one that
#: only a link leads to.
_BANDS = {Kind.FEED: 0, Kind.SITEMAP: 2, Kind.SECTION: 1}


class Announced:
    """:param sites: of the crawl; asked anew each time, as a worker may be handed
    URLs of further sites"""

    def __init__(self, store: FoundSeeds) -> None:
        self.store = store
        self._told: set[str] = set()
        self._named: dict[str, frozenset[str]] = {}

    async def of_page(
        self,
        sites: Sites,
        site: Site,
        lease: Lease,
        feeds: Sequence[str],
        menu: Sequence[str],
        now_ms: int,
    ) -> list[Link]:
        """Links to what a home or section page announces and the fleet did not know.

        Feeds of the home page are leads where they are of everything. An address that the site's
        own pattern calls an article's is none of a section.
        """
        is_home = lease.kind is Kind.HOME
        leads = set(list_revisits.lead_feeds(list(feeds))) if is_home else set()
        named = [(url, Kind.FEED) for url in feeds]
        named += [(url, Kind.SECTION) for url in menu if not sites.is_pattern_article(url)]
        return await self._noted(sites, site, lease, named, leads, now_ms)

    async def of_robots(
        self, sites: Sites, site: Site, lease: Lease, sitemaps: Sequence[str], now_ms: int
    ) -> list[Link]:
        """Links to the sitemaps of a robots.txt; where it names none, and no file does, to
        where they often are."""
        if sitemaps:
            named = [(url, Kind.SITEMAP) for url in sitemaps]
            return await self._noted(sites, site, lease, named, set(), now_ms)
        if site.sitemaps or site.source == "ad hoc" or lease.domain != site.host:
            return []
        base = "{0.scheme}://{0.netloc}".format(urlsplit(site.home))
        probes = (sites.identify(base + path, kind=Kind.SITEMAP, depth=1) for path in PROBED)
        links = [link for link in probes if isinstance(link, Link)]
        for link in links:
            link.parent, link.hint = lease.url_id, {"probe": True}
        return links

    async def note_probe(self, site: Site, lease: Lease, now_ms: int) -> None:
        """A sitemap that was looked for is there."""
        seed = FoundSeed(lease.url, Kind.SITEMAP, now_ms, "looked for")
        with contextlib.suppress(FrontierUnavailable):  # the next visit finds it as well
            await self.store.note(site.host, [seed])

    async def links(self, sites: Sites, site: Site) -> list[Link]:
        """Everything that the fleet has found of a site, as links that are admitted when
        their visit is due."""
        return _links(sites, await self.store.of(site.host))

    async def _noted(
        self,
        sites: Sites,
        site: Site,
        lease: Lease,
        named: Sequence[tuple[str, Kind]],
        leads: set[str],
        now_ms: int,
    ) -> list[Link]:
        in_file = self._in_file(site, now_ms)
        if len(self._told) > _MOST_TOLD:
            self._told.clear()
        new: dict[str, FoundSeed] = {}
        for url, kind in named:
            link = sites.identify(url, kind=kind)
            if not isinstance(link, Link) or link.kind is not kind or link.url in new:
                continue
            if link.url not in self._told and link.url not in in_file:
                new[link.url] = FoundSeed(link.url, kind, now_ms, lease.url, url in leads)
        try:
            added = await self.store.note(site.host, list(new.values()))
        except FrontierUnavailable as exc:
            logger.warning(
                "Announced lists wait for the next visit url=%s error=%s", lease.url, exc
            )
            return []
        self._told.update(new)
        links = _links(sites, added)
        for link in links:
            link.parent, link.depth = lease.url_id, 1
        return links

    def _in_file(self, site: Site, now_ms: int) -> frozenset[str]:
        """Addresses of the seeds that the site's file names, the dead ones too; without a
        slash at the end as well."""
        named = self._named.get(site.id)
        if named is None:
            listed = [seed.url for seed in seeds(site, now_ms)]
            both = [form for url in listed for form in (url, url.rstrip("/"), url + "/")]
            named = self._named[site.id] = frozenset(both)
        return named


def _links(sites: Sites, found: Sequence[FoundSeed]) -> list[Link]:
    links = []
    for seed in found:
        hint = {"found": True, "lead": True} if seed.is_lead else {"found": True}
        link = sites.identify(seed.url, kind=seed.kind, hint=hint)
        if isinstance(link, Link):
            link.revisit, link.band = True, _BANDS[seed.kind]
            links.append(link)
    return links
