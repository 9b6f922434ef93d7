"""Sites of a sites.json, as the names layout serves them: every address of the file exists."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests.newsweb.language import slugify
from tests.newsweb.templates import TEMPLATES, Template
from tests.newsweb.world import WebSite, World

#: Sections that list the stories of all the others.
_EVERYTHING = re.compile(r"/(tin-moi|tin-tuc-24h|tin-24h|doc-nhanh|tin-moi-cap-nhat)\b")


def read_sites(path: Path) -> list[dict[str, Any]]:
    data = json.loads(path.read_text(encoding="utf-8"))
    rows = data["sites"] if isinstance(data, dict) and "sites" in data else data
    if isinstance(rows, dict):
        rows = [{"id": key, **value} for key, value in rows.items()]
    return [row for row in rows if row.get("enabled", True)]


def _path(url: str) -> str:
    parts = urlsplit(url)
    return (parts.path or "/") + (f"?{parts.query}" if parts.query else "")


def named_site(world: World, entry: dict[str, Any]) -> WebSite:
    """The site of one entry of a sites.json, with all its addresses."""
    ident = str(entry["id"])
    hosts = [str(h).lower() for h in entry.get("hosts") or []]
    home = str(entry.get("home") or f"https://{(hosts or [ident])[0]}/")
    host = urlsplit(home).netloc.lower()
    template = (
        TEMPLATES.get(ident) or TEMPLATES.get(host.removeprefix("www.")) or _unknown(entry, host)
    )
    sections = [
        (p, _label(p)) for url in entry.get("sections") or [] if (p := _path(_url(url))) != "/"
    ]
    sections = sections or template.sections()
    template = _fitting(template, entry, host, sections)
    seeds = {
        name: [_url(v) for v in entry.get(name) or [] if not _dead(v)]
        for name in ("feeds", "sitemaps", "sections")
    }
    others = [
        *hosts,
        *map(str, entry.get("aliases") or {}),
        *(urlsplit(u).netloc.lower() for us in seeds.values() for u in us),
    ]
    aliases = tuple(dict.fromkeys(h for h in others if h and h != host))
    twin = next(
        (h for h in aliases if h.startswith("amp." if template.twin == "amp" else "m.")), ""
    )
    maps = [_path(u) for u in seeds["sitemaps"]]
    site = WebSite(
        world, ident, ident, template, "https", host, sections, home=_path(home), twin_host=twin,
        feeds=[(_path(u), _section_of(_path(u), sections)) for u in seeds["feeds"]],
        sitemaps=[m for m in maps if "{" not in m], sitemap_rules=[_rule(m) for m in maps if "{" in m],
        aliases=tuple(a for a in aliases if a != twin), floor_s=float(entry.get("delay_s") or 0.0),
        robots=template.robots, challenge=template.challenge,
    )  # fmt: skip
    site.latest = frozenset(p for p, _ in sections if _EVERYTHING.search(p))
    site.news_sitemaps = [
        m
        for m in site.sitemaps
        if "news" in m and not re.search(r"sitemap-index|latest|/news-\d", m)
    ]
    return site


def _dead(value: Any) -> bool:
    return isinstance(value, dict) and value.get("status") == "dead"


def _rule(path: str) -> re.Pattern[str]:
    """/sitemaps/news-{year}-{month}.xml as a pattern."""
    return re.compile("^" + re.sub(r"\\\{\w+\\\}", r"\\d+", re.escape(path)) + "$")


def _url(value: Any) -> str:
    return str(value["url"]) if isinstance(value, dict) else str(value)


def _label(path: str) -> str:
    return path.strip("/").split("/")[-1].split(".")[0].replace("-", " ").capitalize() or "Tin"


def _section_of(path: str, sections: list[tuple[str, str]]) -> int | None:
    """The section that a feed belongs to, by its last word; None = all of the site."""
    word = re.sub(r"(-\d+)?(\.rss)?$", "", path.rsplit("/", 1)[-1])
    found = [i for i, (p, _) in enumerate(sections) if word and slugify(_label(p)) == word]
    return found[0] if found else None


def _unknown(entry: dict[str, Any], host: str) -> Template:
    return replace(
        TEMPLATES["tienphong.vn"],
        name=str(entry.get("name") or host),
        shape="/{slug}-post{id}.html",
    )


def _fitting(
    template: Template, entry: dict[str, Any], host: str, sections: list[tuple[str, str]]
) -> Template:
    """The template with a shape of address that the site's article_pattern matches;
    says so when none does."""
    pattern = entry.get("article_pattern")
    if not pattern:
        return template
    shapes = dict.fromkeys((template.shape, *(t.shape for t in TEMPLATES.values())))
    for shape in shapes:
        for ids, sample in (
            (template.ids, _sample_id(template)),
            ("seq", "4954454"),
            ("seq", "777777"),
            ("stamp", "20261001172513622"),
        ):
            path = shape.format(
                slug="tin-thu-mot-hai-ba",
                id=sample,
                section=sections[0][0].strip("/").split("/")[0].split(".")[0],
                num=41,
            )
            if re.search(str(pattern), path):
                same = (shape, ids) == (template.shape, template.ids)
                return template if same else replace(template, shape=shape, ids=ids)
    print(
        f"newsweb: no shape of address fits article_pattern site={entry['id']} pattern={pattern}",
        file=sys.stderr,
    )
    return template


def _sample_id(template: Template) -> str:
    if template.ids == "seq":
        return str(template.first_id + 11)
    return "20261001172513622" if template.ids == "stamp" else template.ids[3:] + "261001172513622"
