"""What an operator changes at run time: sites switched on or off, seeds added or
removed, sites added.

Kept beside the data, not in sites.json, so that an update of that file and the operator's choice do
not fight::

    {"enabled": {site: bool},
     "seeds": {site: {"added": {url: kind}, "removed": [url]}},
     "sites": [entry as in sites.json],
     "learnt": {site: as contact.learnt},
     "render": {site: bool}}

What an operator added or removed comes after what `scrapy sites check --apply` learnt.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from newscrawler.discovery import contact
from newscrawler.discovery.sitefile import SeedUrl, Site, SitesError, site_from_dict
from newscrawler.discovery.sites import Sites
from newscrawler.items import Kind

STATE_FILE = "sites-state.json"


@dataclass
class OverlayState:
    """The file's content. ``seeds`` of a site: ``{"added": {url: kind}, "removed": [url]}``."""

    enabled: dict[str, bool] = field(default_factory=dict)
    seeds: dict[str, dict[str, Any]] = field(default_factory=dict)
    sites: list[dict[str, Any]] = field(default_factory=list)
    learnt: dict[str, dict[str, Any]] = field(default_factory=dict)
    render: dict[str, bool] = field(default_factory=dict)

    def add_seed(self, site: str, url: str, kind: Kind) -> None:
        entry = self._entry(site)
        entry["removed"] = [u for u in entry["removed"] if u != url]
        entry["added"][url] = str(kind)

    def remove_seed(self, site: str, url: str) -> None:
        entry = self._entry(site)
        entry["added"].pop(url, None)
        if url not in entry["removed"]:
            entry["removed"].append(url)

    def _entry(self, site: str) -> dict[str, Any]:
        entry = self.seeds.setdefault(site, {})
        entry.setdefault("added", {})
        entry.setdefault("removed", [])
        return entry


def read(folder: Path) -> OverlayState:
    """An absent file is no change at all.

    :raises SitesError: the file is there and cannot be used; ignoring it would crawl
        what was switched off
    """
    path = folder / STATE_FILE
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return OverlayState()
    except (OSError, ValueError) as exc:
        raise SitesError(str(path), "", "", f"cannot be read: {exc}; mend or delete it") from exc
    if not isinstance(data, dict):
        raise SitesError(str(path), "", "", "must be an object; mend or delete it")
    state = OverlayState(
        **{name: data[name] for name in OverlayState.__dataclass_fields__ if name in data}
    )
    _check(state, str(path))
    return state


def _is_map_of(kind: type, value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(one, kind) for one in value.values())


def _check(state: OverlayState, path: str) -> None:
    if not _is_map_of(bool, state.enabled):
        raise SitesError(path, "", "enabled", "must be an object: site -> true or false")
    if not _is_map_of(bool, state.render):
        raise SitesError(path, "", "render", "must be an object: site -> true or false")
    if not isinstance(state.sites, list):
        raise SitesError(path, "", "sites", "must be a list")
    if not isinstance(state.learnt, dict) or not all(map(contact.is_learnt, state.learnt.values())):
        raise SitesError(path, "", "learnt", "is not what `scrapy sites check --apply` writes")
    if not isinstance(state.seeds, dict):
        raise SitesError(path, "", "seeds", "must be an object: site -> changes")
    for site, entry in state.seeds.items():
        added = entry.get("added", {}) if isinstance(entry, dict) else None
        if not isinstance(added, dict) or not isinstance(entry.get("removed", []), list):
            raise SitesError(
                path, site, "seeds", 'must be {"added": {url: kind}, "removed": [url]}'
            )


def write(folder: Path, state: OverlayState) -> None:
    """In one step: a crash leaves the old or the new file. OSError if the folder
    cannot be written."""
    folder.mkdir(parents=True, exist_ok=True)
    partial = folder / f"{STATE_FILE}.{os.getpid()}"
    data = {name: value for name, value in vars(state).items() if value}
    partial.write_text(
        json.dumps(data, ensure_ascii=False, indent=1, sort_keys=True) + "\n", encoding="utf-8"
    )
    partial.replace(folder / STATE_FILE)


def applied(sites: Sites, folder: Path, *, learnt: bool = True) -> Sites:
    """The sites with the operator's changes of ``folder``. A site of the operator's that has come
    into sites.json since is the file's.

    :param learnt: with what `scrapy sites check --apply` kept; the next check begins without it
    """
    state = read(folder)
    if not learnt:
        state.learnt = {}
    if state == OverlayState():
        return sites
    taken = {name for site in sites for name in (site.id, *site.hosts, *site.aliases)}
    own = [
        site_from_dict(entry, str(folder / STATE_FILE), f"#{n}")
        for n, entry in enumerate(state.sites, 1)
    ]
    own = [site for site in own if not taken & {site.id, *site.hosts, *site.aliases}]
    return sites.replaced([_changed(site, state) for site in [*sites, *own]])


def _changed(site: Site, state: OverlayState) -> Site:
    if site.id in state.learnt:
        site = contact.applied(site, state.learnt[site.id])
    entry = state.seeds.get(site.id, {})
    removed = set(entry.get("removed", ()))
    added: dict[str, str] = entry.get("added", {})

    def of_kind(kind: Kind) -> list[str]:
        return [url for url, name in added.items() if name == kind]

    def seed_urls(old: tuple[SeedUrl, ...], kind: Kind) -> tuple[SeedUrl, ...]:
        known = {seed.url for seed in old}
        new = [url for url in of_kind(kind) if url not in known]
        more = [SeedUrl(url, note="added by an operator") for url in new]
        return tuple(seed for seed in (*old, *more) if seed.url not in removed)

    new = [url for url in of_kind(Kind.SECTION) if url not in site.sections]
    return replace(
        site,
        enabled=state.enabled.get(site.id, site.enabled),
        render=state.render.get(site.id, site.render),
        sections=tuple(url for url in (*site.sections, *new) if url not in removed),
        feeds=seed_urls(site.feeds, Kind.FEED),
        sitemaps=seed_urls(site.sitemaps, Kind.SITEMAP),
    )
