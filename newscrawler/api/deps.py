"""What the API reads from: handed to ``create_app``, made from settings by :func:`open_deps`."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, tzinfo
from typing import TYPE_CHECKING, Any, Protocol

from newscrawler.api.access import Access
from newscrawler.api.audit import AuditLog
from newscrawler.api.cors import Cors
from newscrawler.api.limits import RequestLimits
from newscrawler.api.probe import data_mark
from newscrawler.api.rate import Rate
from newscrawler.crawl.websub import public_url
from newscrawler.fleet.registry import Registry
from newscrawler.store.base import ArticleStore
from newscrawler.store.days import zone_of

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings
    from starlette.requests import Request

    from newscrawler.crawl.article_pictures import ArticlePictures
    from newscrawler.rawstore import RawStore
    from newscrawler.selectorsets.store import SelectorStore

logger = logging.getLogger(__name__)


class FrontierReader(Protocol):
    """The part of frontier.queue.Frontier that is read here."""

    async def counts(self) -> Any: ...
    async def report(self) -> dict[str, Any]: ...


@dataclass(frozen=True, slots=True)
class SiteFacts:
    """A site of sites.json, as far as it is shown."""

    id: str
    name: str
    hosts: tuple[str, ...] = ()
    cls: str = "mid"
    enabled: bool = True
    zone: str = "+07:00"
    language: str = "vi"


@dataclass(slots=True)
class Deps:
    """None where a part could not be had: the page says so and the rest works."""

    store: ArticleStore
    access: Access = field(default_factory=Access)
    limits: RequestLimits = field(default_factory=RequestLimits)
    cors: Cors = field(default_factory=Cors)
    rate: Rate | None = None  # None: this process counts the requests of a caller for itself
    sites: dict[str, SiteFacts] = field(default_factory=dict)
    frontier: FrontierReader | None = None
    registry: Registry | None = None
    selectors: SelectorStore | None = None
    raw: RawStore | None = None  # read only, for examples and validation
    redis_error: str = ""  # why frontier and registry are None
    clock: Callable[[], float] = time.time  # seconds since the epoch
    zone: tzinfo = UTC  # whose days searches mean and count
    settings: BaseSettings | None = None  # of the crawl, for what operators ask and change
    pictures: ArticlePictures | None = None  # None = none are shown
    audit: AuditLog = field(default_factory=lambda: AuditLog(None, time.time))
    mark: str = ""  # names the data that is served, see api.probe.data_mark
    # Work beside the page until the event (the watch over the fleet); None = none.
    beside: Callable[[asyncio.Event], Awaitable[None]] | None = None

    def base_url(self, request: Request) -> str:
        """The beginning of every address that is handed out, a slash at its end: PUBLIC_URL, else
        as this server was asked. A proxy says there whether readers come by TLS, and whoever makes
        that up is told addresses of their own."""
        public = public_url(self.settings) if self.settings is not None else ""
        if public:
            return f"{public}/"
        is_tls = request.headers.get("x-forwarded-proto", "").strip().lower() == "https"
        return str(request.base_url.replace(scheme="https") if is_tls else request.base_url)

    async def close(self) -> None:
        if self.pictures is not None:
            await self.pictures.close()
        await self.store.close()
        if self.registry is not None:
            client: Any = self.registry.client
            await client.aclose()


def site_facts(sites: Iterable[Any]) -> dict[str, SiteFacts]:
    """From discovery.sites.Site objects."""
    return {
        site.id: SiteFacts(
            id=site.id,
            name=site.name,
            hosts=tuple(site.hosts),
            cls=site.cls,
            enabled=site.enabled,
            zone=site.zone or "+00:00",
            language=site.language or "",
        )
        for site in sites
    }


def mark_of(settings: BaseSettings) -> str:
    from newscrawler.crawl import opening

    return data_mark(
        opening.data_dir(settings),
        settings.get("ARTICLE_STORE") or "",
        settings.get("ARTICLE_INDEX") or "",
    )


def open_deps(settings: BaseSettings, access: Access) -> Deps:
    """Stores, sites and Redis of these settings. A Redis or a sites file that cannot be had costs a
    log line and a notice on the page, not the search."""
    from newscrawler.crawl import opening, site_choice
    from newscrawler.crawl.article_pictures import open_pictures

    deps = Deps(
        store=opening.open_article_store(settings),
        access=access,
        limits=RequestLimits(per_minute=settings.getint("API_REQUESTS_PER_MINUTE")),
        cors=Cors.parse(settings.get("API_CORS_ORIGINS") or ""),
        settings=settings,
        pictures=open_pictures(settings),
        audit=AuditLog(opening.data_dir(settings), time.time),
        mark=mark_of(settings),
        zone=zone_of(settings["READER_ZONE"]),
    )
    try:
        deps.sites = site_facts(site_choice.load_sites(settings))
    except Exception as exc:  # SitesError, or the file cannot be read
        logger.error("Sites are not known to the search page error=%s", exc)
    try:
        deps.raw = opening.open_raw_store(settings)
    except Exception as exc:  # RawStoreUnavailable: sets are judged without pages
        logger.error("Raw pages are not known to the search page error=%s", exc)
    try:
        from newscrawler.frontier import connect
        from newscrawler.frontier.queue import Frontier, FrontierConfig

        client = connect(opening.redis_url(settings), single=False)
        deps.registry = Registry(client)
        deps.selectors = opening.open_selector_store(settings, client)
        deps.frontier = Frontier(
            client, FrontierConfig(shards=settings.getint("FRONTIER_SHARDS")), "search-page"
        )
    except Exception as exc:  # no server, none to start, StartRefused
        deps.redis_error = str(exc)
        logger.error("Frontier and workers are not known to the search page error=%s", exc)
    return deps
