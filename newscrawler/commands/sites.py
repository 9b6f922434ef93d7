"""`scrapy sites VERB`: the sites that are crawled, how quick we are on each; switch one on or off."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Sequence
from typing import Any

from scrapy.commands import ScrapyCommand
from scrapy.settings import BaseSettings

from newscrawler import cli, wiring
from newscrawler.discovery import overlay
from newscrawler.discovery.sites import Site, Sites, SitesError
from newscrawler.fleet.freshness import DAYS, STAGES, figures, span
from newscrawler.fleet.registry import Registry, RegistryUnavailable, SiteSums
from newscrawler.frontier import connect
from newscrawler.frontier import server as embedded

VERBS = {
    "list": "[SITE ...]           every site: class, delay, seeds, how far its facts can be trusted",
    "show": "SITE ...             all that is known of a site, with the operator's changes",
    "enable": "SITE ...             crawl it from the next start on",
    "disable": "SITE ...             crawl it no more; what is queued stays",
    "freshness": "[SITE ...]           how long new articles of the last days took from publication to the search",
}
COLUMNS = ("site", "enabled", "class", "delay_s", "feeds", "live", "sitemaps", "sections", "confidence", "name")


class Command(ScrapyCommand):
    requires_project = True
    requires_crawler_process = False
    default_settings = {"LOG_ENABLED": False}

    def syntax(self) -> str:
        return "VERB [SITE ...] [options]"

    def short_desc(self) -> str:
        return "List and show the sites; enable or disable one"

    def long_desc(self) -> str:
        verbs = "; ".join(f"{verb} {' '.join(text.split())}" for verb, text in VERBS.items())
        return (
            f"Verbs: {verbs}. A site is named by its id, a host or an alias. The sites are in sites.json (SITES_FILE); "
            "what is switched here is kept in DATA_DIR/sites-state.json."
        )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        cli.add_json_option(parser)

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        assert self.settings is not None
        verb, names = (args[0], args[1:]) if args else ("list", [])
        if verb not in VERBS:
            raise cli.UsageError(f"unknown verb {verb!r}; there are: {', '.join(VERBS)}", print_help=False)
        sites = load(self.settings)
        if verb == "freshness":
            freshness(self.settings, [site.id for site in named(sites, names)], opts.as_json)
            return
        if verb == "list":
            cli.print_rows([row(site) for site in named(sites, names) or sites], COLUMNS, opts.as_json)
            if sites.errors:
                self.exitcode = 1
            return
        if not names:
            raise cli.UsageError(f"which site? scrapy sites {verb} SITE; see `scrapy sites list`", print_help=False)
        chosen = named(sites, names)
        if verb == "show":
            for site in chosen:
                show(site, opts.as_json)
        else:
            switch(self.settings, chosen, verb == "enable")
            cli.print_rows([row(site) for site in named(load(self.settings), names)], COLUMNS, opts.as_json)


def load(settings: BaseSettings) -> Sites:
    """The sites with the operator's changes. What is left out of the file is said; a file that cannot be read
    at all ends the command (exit 1)."""
    try:
        sites = wiring.load_sites(settings)
    except SitesError as exc:
        cli.fail(str(exc))
    for error in sites.errors:
        cli.note(f"site left out: {error}")
    return sites


def named(sites: Sites, names: Sequence[str]) -> list[Site]:
    """:raises UsageError: with near matches, for a name that is no site"""
    found = []
    for name in names:
        site = sites.find(name)
        if site is None:
            near = sites.near(name)
            hint = f"did you mean {', '.join(near)}?" if near else "see `scrapy sites list`"
            raise cli.UsageError(f"unknown site {name!r}; {hint}", print_help=False)
        found.append(site)
    return found


def row(site: Site) -> dict[str, Any]:
    alive = [feed for feed in site.feeds if feed.status != "dead"]
    return {
        "site": site.id,
        "name": site.name,
        "enabled": site.enabled,
        "class": site.cls,
        "delay_s": site.delay_s,
        "feeds": len(alive),
        "live": sum(feed.status == "live" for feed in alive),
        "sitemaps": sum(sitemap.status != "dead" for sitemap in site.sitemaps),
        "sections": len(site.sections),
        "confidence": site.confidence.get("overall") or "-",
    }


def facts(site: Site) -> dict[str, Any]:
    """Everything, in the names of sites.json."""
    return {
        "site": site.id,
        "name": site.name,
        "enabled": site.enabled,
        "class": site.cls,
        "class_reason": site.cls_reason,
        "delay_s": site.delay_s,
        "language": site.language,
        "zone": site.zone,
        "home": site.home,
        "hosts": list(site.hosts),
        "aliases": dict(site.aliases),
        "article_pattern": site.article_pattern,
        "id_group": site.id_group,
        "id_time": site.id_time,
        "path_rewrites": [f"{pattern} -> {new}" for pattern, new in site.path_rewrites],
        "sections": list(site.sections),
        "feeds": [{"url": f.url, "status": f.status, "confidence": f.confidence, "note": f.note} for f in site.feeds],
        "sitemaps": [
            {"url": s.url, "kind": s.kind, "status": s.status, "confidence": s.confidence, "note": s.note}
            for s in site.sitemaps
        ],
        "confidence": dict(site.confidence),
        "source": site.source,
        "notes": list(site.notes),
    }


def freshness(settings: BaseSettings, names: Sequence[str], as_json: bool) -> None:
    """A row per site that had a new article in the last days, the slowest first; --json: seconds."""

    async def ask() -> dict[str, SiteSums]:
        client = connect(wiring.redis_url(settings), single=False)
        try:
            return await Registry(client).sites()
        finally:
            await client.aclose()

    try:
        sums = asyncio.run(ask())
    except (RegistryUnavailable, wiring.StartRefused) as exc:
        cli.fail(str(exc))
    finally:
        if not settings.get("REDIS_URL"):
            embedded.stop_if_last(wiring.data_dir(settings))
    rows: list[dict[str, Any]] = []
    for site, row in sums.items():
        whole = figures(row.lags)
        if whole.articles and (not names or site in names):
            rows.append({"site": site, "articles": whole.articles, "p50_s": whole.p50_s, "p95_s": whole.p95_s})
            rows[-1] |= {f"{stage}_p95_s": figures(row.lags, stage).p95_s for stage in STAGES if stage != "total"}
    rows.sort(key=lambda row: -(row["p95_s"] or 0))
    if not rows:
        cli.note(f"no article of the last {DAYS} days came out after its site was first visited")
    if not as_json:
        rows = [{k.removesuffix("_s"): span(v) if k.endswith("_s") else v for k, v in row.items()} for row in rows]
    columns = ("site", "articles", "p50", "p95", "discovered_p95", "fetched_p95", "searchable_p95")
    cli.print_rows(rows, columns if not as_json else tuple(rows[0]) if rows else columns, as_json)


def show(site: Site, as_json: bool) -> None:
    everything = facts(site)
    if as_json:
        cli.print_object(everything)
        return
    for name, value in everything.items():
        lines = _lines(value)
        print(f"{name.replace('_', ' ') + ':':17}{lines[0] if lines else '-'}")
        for line in lines[1:]:
            print(f"{'':17}{line}")
    print()


def _lines(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [f"{key}: {item}" for key, item in value.items()]
    if not isinstance(value, list):
        return [str(value)] if value not in ("", None) else []
    return [item if isinstance(item, str) else "  ".join(str(part) for part in item.values() if part) for item in value]


def switch(settings: BaseSettings, sites: Sequence[Site], on: bool) -> None:
    """Keeps the choice in DATA_DIR. Workers that run now keep their sites until they start again."""
    folder = wiring.data_dir(settings)
    try:
        state = overlay.read(folder)
        state.enabled.update({site.id: on for site in sites})
        overlay.write(folder, state)
    except (SitesError, OSError) as exc:
        cli.fail(f"cannot be kept in {folder / overlay.STATE_FILE}: {exc}")
