"""What an operator changes at run time: sites switched on or off, seeds added or removed.

Kept beside the data, not in sites.json, so that an update of that file and the operator's choice do
not fight: ``{"enabled": {site: bool}, "seeds": {site: {"added": {url: kind}, "removed": [url]}}}``.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from newscrawler.discovery.sitefile import SeedUrl, Site, SitesError
from newscrawler.discovery.sites import Sites
from newscrawler.items import Kind

STATE_FILE = "sites-state.json"


def read(folder: Path) -> dict[str, Any]:
    """:raises SitesError: the file is there and cannot be used"""
    path = folder / STATE_FILE
    try:
        state = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as exc:
        raise SitesError(str(path), "", "", f"cannot be read: {exc}") from exc
    if not isinstance(state, dict):
        raise SitesError(str(path), "", "", "must be an object")
    return state


def write(folder: Path, state: dict[str, Any]) -> None:
    """In one step: a crash leaves the old or the new file."""
    folder.mkdir(parents=True, exist_ok=True)
    partial = folder / f"{STATE_FILE}.part"
    partial.write_text(json.dumps(state, ensure_ascii=False, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    partial.replace(folder / STATE_FILE)


def applied(sites: Sites, folder: Path) -> Sites:
    """The sites with the operator's changes of ``folder``."""
    state = read(folder)
    if not state:
        return sites
    return sites.replaced([_changed(site, state) for site in sites])


def _changed(site: Site, state: dict[str, Any]) -> Site:
    seeds = state.get("seeds", {}).get(site.id, {})
    removed = set(seeds.get("removed", ()))
    added: dict[str, str] = seeds.get("added", {})

    def seed_urls(old: tuple[SeedUrl, ...], kind: Kind) -> tuple[SeedUrl, ...]:
        known = {seed.url for seed in old}
        more = [SeedUrl(url, note="added by an operator") for url, k in added.items() if k == kind and url not in known]
        return tuple(seed for seed in (*old, *more) if seed.url not in removed)

    sections = [*site.sections, *(u for u, k in added.items() if k == Kind.SECTION and u not in site.sections)]
    return replace(
        site,
        enabled=state.get("enabled", {}).get(site.id, site.enabled),
        sections=tuple(u for u in sections if u not in removed),
        feeds=seed_urls(site.feeds, Kind.FEED),
        sitemaps=seed_urls(site.sitemaps, Kind.SITEMAP),
    )
