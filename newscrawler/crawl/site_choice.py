"""Which sites a crawl is for, by the file, the operator's changes and the arguments of a spider,
and what the frontier is told of their hosts.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

from newscrawler.crawl import gate_groups, opening
from newscrawler.discovery import overlay
from newscrawler.discovery.sites import Site, Sites, SitesError
from newscrawler.fetch import address_guard
from newscrawler.frontier.queue import DomainPolicy
from newscrawler.web import urls as weburls

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings


def split_urls(urls: str | Iterable[str]) -> list[str]:
    """``-a urls=`` is one comma-separated string; commands hand a list."""
    given = urls.split(",") if isinstance(urls, str) else urls
    return [url.strip() for url in given if url.strip()]


def all_sites(settings: BaseSettings) -> Sites:
    """Every site of SITES_FILE, with the operator's changes.

    :raises newscrawler.discovery.sites.SitesError: the file or the overlay cannot be read
    """
    return overlay.applied(Sites.load(settings.get("SITES_FILE") or ""), opening.data_dir(settings))


def load_sites(
    settings: BaseSettings, *, only: str | None = None, urls: str | Iterable[str] | None = None
) -> Sites:
    """The sites that a crawl is for: those of SITES_FILE that are enabled, those named in ``only``
    (comma-separated ids, hosts or aliases), or those of ``urls``, made for the purpose where no
    file knows the host.

    :raises newscrawler.discovery.sites.SitesError: the file cannot be read, or a name
        or address is wrong
    """
    sites = all_sites(settings)
    if urls:
        return _sites_of_urls(sites, split_urls(urls))
    if not only:
        return sites
    try:
        return sites.only([name.strip() for name in only.split(",") if name.strip()])
    except KeyError as exc:
        near = ", ".join(sites.near(exc.args[0]))
        hint = f"; did you mean {near}?" if near else "; see `scrapy sites list`"
        raise SitesError("sites", exc.args[0], "", f"unknown site{hint}") from exc


def _sites_of_urls(sites: Sites, asked: list[str]) -> Sites:
    hosts = set()
    for url in asked:
        canonical = weburls.canonicalize(url)
        if canonical is None:
            raise SitesError("urls", "", "", f"{url!r} is not an http(s) address")
        hosts.add(weburls.domain_of(canonical))
    sites = sites.for_urls(asked)
    found = (sites.by_host(host) for host in hosts)
    return sites.only(sorted({site.id for site in found if site is not None}))


def domain_policies(
    sites: Sites, settings: BaseSettings, *, chosen: Collection[str] | None = None
) -> list[DomainPolicy]:
    """One per host of the sites. DOWNLOAD_DELAY is the floor under a site's own delay.

    :param chosen: ids of the only sites that are to be fetched; None = all that are enabled
    :raises ValueError: FRONTIER_GROUP_BY is no known way
    """
    floor = settings.getfloat("DOWNLOAD_DELAY")
    group_by = str(settings.get("FRONTIER_GROUP_BY") or "")
    if group_by not in ("", "site", "ip"):
        raise ValueError(f"FRONTIER_GROUP_BY is {group_by!r}; it must be site, ip or empty")

    return [
        DomainPolicy(
            domain=host,
            site=site.id,
            cls=site.cls,
            floor_ms=round(max(floor, site.delay_s) * 1000),
            enabled=site.enabled and (chosen is None or site.id in chosen),
            pages_per_day=site.pages_per_day or settings.getint("FRONTIER_PAGES_PER_DAY"),
            group=site.group or _group_of(site, group_by),
        )
        for site in sites
        for host in site.hosts
    ]


def _group_of(site: Site, group_by: str) -> str | None:
    """None: :func:`with_addresses` says it."""
    if group_by == "site" and len(site.hosts) > 1:
        return site.id
    return None if group_by == "ip" else ""


async def with_addresses(
    policies: list[DomainPolicy], settings: BaseSettings
) -> list[DomainPolicy]:
    """With FRONTIER_GROUP_BY=ip: hosts that lead to one address share one gate."""
    if settings.get("FRONTIER_GROUP_BY") != "ip":
        return policies
    return await gate_groups.looked_up(
        policies, address_guard.parse_overrides(settings.get("RESOLVE_OVERRIDE") or "")
    )


def all_loopback(sites: Sites, settings: BaseSettings) -> bool:
    """Whether every admitted host is on this machine: by its address, by RESOLVE_OVERRIDE, or as
    stored pages answer instead of the network (REPLAY_DIR)."""
    if settings.get("REPLAY_DIR"):
        return True
    override = address_guard.parse_overrides(settings.get("RESOLVE_OVERRIDE") or "")
    hosts = [host for site in sites.enabled() for host in site.hosts]
    return bool(hosts) and all(address_guard.is_loopback_host(host, override) for host in hosts)
