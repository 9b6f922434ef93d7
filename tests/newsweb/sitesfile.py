"""What a crawl needs to be pointed at a simulated web: a sites.json and
selector sets for some sites."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from tests.newsweb.bench import ARTICLE_PATTERN, CSS, BenchApp
from tests.newsweb.markup import Markup
from tests.newsweb.world import WebSite, World

#: Every third site has no selector set: the generic chain has to read it.
WITHOUT_SET = 3


def css(path: str) -> str:
    """A path of markup.py as CSS, with quoted attribute values."""
    return re.sub(r'\[([\w:-]+)="?([^"\]]*)"?\]', r'[\1="\2"]', path)


def site_entry(site: WebSite) -> dict[str, Any]:
    template = site.template
    if site.unknown is not None:
        return {"id": site.id, "home": site.base + site.home, "delay_s": site.floor_s}
    entry: dict[str, Any] = {
        "id": site.id,
        "name": site.name,
        "class": "mid",
        "class_reason": "simulated site",
        "delay_s": site.floor_s,
        "home": site.base + site.home,
        "hosts": [site.host],
        "aliases": {host: site.host for host in (site.twin_host, *site.aliases) if host},
        "sections": [site.base + path for path, _ in site.sections],
        "feeds": [site.base + path for path, _ in site.feeds],
        "sitemaps": [site.base + path for path in site.sitemaps],
        "article_pattern": template.path_regex.pattern,
        "id_group": 1,
        "id_time": {"stamp": "stamp", "vc:": "prefix3"}.get(
            template.ids[:3] if ":" in template.ids else template.ids, ""
        ),
        "notes": [f"template {template.key}"],
    }
    if template.twin == ".amp":
        entry["path_rewrites"] = [[r"\.amp$", "." + template.shape.rpartition(".")[2]]]
    return entry


def bench_entry(host: str) -> dict[str, Any]:
    return {
        "id": host,
        "name": f"Bench {host}",
        "class": "mid",
        "class_reason": "benchmark",
        "delay_s": 0,
        "home": f"http://{host}/",
        "hosts": [host],
        "article_pattern": ARTICLE_PATTERN,
        "id_group": 1,
    }


def selector_set(domain: str, m: Markup) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "title": [{"css": css(m.title)}],
        "published": (
            [{"css": css(m.date), "attr": m.date_attr}]
            if m.date_attr in ("datetime", "title")
            else []
        )
        + [{"css": css(m.date)}],
        "content": {
            "root": [css(m.body) if m.sapo_in_body else f"{css(m.sapo)}, {css(m.body)}"],
            "exclude": [css(p) for p in m.excludes],
        },
    }
    author = m.author or m.tail_author
    if author:
        fields["authors"] = [{"css": css(author)}]
    return _document(domain, fields)


def bench_set(domain: str) -> dict[str, Any]:
    return _document(
        domain,
        {
            "title": [{"css": CSS["title"]}],
            "published": [{"css": CSS["published"], "attr": "datetime"}],
            "authors": [{"css": CSS["authors"]}],
            "content": {"root": [CSS["content"]], "exclude": []},
        },
    )


def _document(domain: str, fields: dict[str, Any]) -> dict[str, Any]:
    return {
        "domain": domain,
        "version": 1,
        "state": "active",
        "variants": [{"template": "article", "fields": fields}],
        "provenance": {"made_by": "person", "source": "tests/newsweb", "confidence": "high"},
    }


def write_world(world: World, sites_file: Path | None, selectors: Path | None) -> None:
    if sites_file:
        _write_sites(sites_file, [site_entry(s) for s in world.sites])
    if selectors:
        selectors.mkdir(parents=True, exist_ok=True)
        for number, site in enumerate(s for s in world.sites if s.unknown is None):
            if number % WITHOUT_SET != 1:
                _write_set(selectors, selector_set(site.id, site.template.markup))


def write_bench(app: BenchApp, sites_file: Path | None, selectors: Path | None) -> None:
    if sites_file:
        _write_sites(sites_file, [bench_entry(h) for h in app.hosts])
    if selectors:
        selectors.mkdir(parents=True, exist_ok=True)
        for host in app.hosts:
            _write_set(selectors, bench_set(host))


def _write_sites(path: Path, entries: list[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        json.dumps({"sites": entries}, ensure_ascii=False, indent=1) + "\n", encoding="utf-8"
    )


def _write_set(folder: Path, document: dict[str, Any]) -> None:
    (folder / f"{document['domain']}.json").write_text(
        json.dumps(document, ensure_ascii=False, indent=1) + "\n", encoding="utf-8"
    )
