"""A sites.json entry for a site that is not in it, from its home page. Pure; a person reads it
before it is used."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from importlib import resources
from typing import Any
from urllib.parse import urlsplit

from newscrawler.discovery import articles, sitefile
from newscrawler.discovery.onboarding import Found
from newscrawler.extraction.document import Document
from newscrawler.web import urls

#: Addresses of articles that are shown, so that a person can write the pattern.
EXAMPLES = 5
#: Least seconds between two fetches of a site of which nothing is known: as in sites.json, and more
#: than DOWNLOAD_DELAY, which is the floor under the delays of all sites, known ones included.
PROPOSED_DELAY_S = 3.0
_OFFSET = re.compile(r"T\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?([+-]\d\d:?\d\d)\b")


def article_examples(page: Document) -> list[str]:
    """Canonical addresses of the page's own host that look most like articles, in its order."""
    host = urls.domain_of(page.url).removeprefix("www.")
    base = urls.Base(page.base_url)
    found: list[str] = []
    for href, _ in page.links():
        joined = urls.join(base, href)
        address = urls.canonicalize(joined) if joined else None
        if (
            address is None
            or address in found
            or urls.domain_of(address).removeprefix("www.") != host
        ):
            continue
        parts = urlsplit(address)
        if (
            articles.refuse(parts.path, parts.query) is None
            and articles.looks_like_article(address) >= 0.75
        ):
            found.append(address)
            if len(found) >= EXAMPLES:
                break
    return found


def zone_of(page: Document, language: str) -> str:
    """The zone of a site: that of its country, by the end of its name, where the country
    has one zone and the page's own times do not contradict it; else the offset of most
    times on the page; else UTC."""
    stated = Counter(_OFFSET.findall(page.text_html))
    offset = stated.most_common(1)[0][0] if stated else ""
    if offset and ":" not in offset:
        offset = f"{offset[:3]}:{offset[3:]}"
    ending = urls.domain_of(page.url).rpartition(".")[2]
    country = {"uk": "gb"}.get(ending, ending)
    if country not in _zones() and language == "vi":
        country = "vn"
    zone = _zones().get(country, "")
    if zone and offset and sitefile.zone_offset_s(zone) != sitefile.zone_offset_s(offset):
        zone = ""  # summer time moves both
    return zone or offset or "+00:00"


@cache
def _zones() -> dict[str, str]:
    """Country (two letters, lower case) -> its zone, of countries with one; from the table
    of the tz database."""
    table = (resources.files("tzdata") / "zoneinfo" / "zone.tab").read_text(encoding="utf-8")
    zones: dict[str, list[str]] = {}
    for line in table.splitlines():
        if not line.startswith("#"):
            country, _, zone, *_ = line.split("\t")
            zones.setdefault(country.lower(), []).append(zone)
    # one zone for people: further names of a country are of single places, or differ
    # in the past only
    return {
        country: names[0]
        for country, names in zones.items()
        if len({sitefile.zone_offset_s(name) for name in names}) == 1
    }


def entry(found: Found, page: Document, day: str, asked: str = "") -> dict[str, Any]:
    """A site's entry for the list "sites". ``day``: of the fetch, for the note on where it comes
    from; ``asked``: the host that was asked for, an alias where the site answered from another.

    Seeds on the same host with or without www. are kept; seeds on other hosts are not in ``found``.
    """
    host = urls.domain_of(page.url)
    bare = host.removeprefix("www.")
    aliases = {}
    if not bare[:1].isdigit() and ":" not in bare:
        other = f"www.{bare}" if host == bare else bare
        aliases[other] = host
    if asked and asked != host:
        aliases[asked] = host
    proposed: dict[str, Any] = {
        "id": bare,
        "name": found.name or bare,
        "class": "auto",
        "class_reason": "",
        "delay_s": PROPOSED_DELAY_S,
        "language": found.language,
        "zone": zone_of(page, found.language),
        "home": f"{urlsplit(page.url).scheme}://{host}/",
        "hosts": [host],
        "aliases": aliases,
        "sections": found.sections,
        "feeds": [{"url": url, "status": "unchecked"} for url in found.feeds],
        "sitemaps": [{"url": url, "kind": _sitemap_kind(url)} for url in found.sitemaps],
        "article_pattern": "",
        "id_group": 0,
        "article_examples": article_examples(page),
        "source": f"its home page of {day}",
        "notes": [],
    }
    sitefile.site_from_dict(proposed, "proposal")  # what is printed can be pasted
    return proposed


def _sitemap_kind(url: str) -> str:
    path = urlsplit(url).path.lower()
    if "latest" in path:
        return "latest"
    return "news" if "news" in path else "index"
