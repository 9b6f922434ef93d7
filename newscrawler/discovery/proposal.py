"""A sites.json entry for a site that is not in it, from its home page. Pure; a person reads it before it is used."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from newscrawler.discovery import articles, sitefile
from newscrawler.discovery.onboarding import Found
from newscrawler.extraction.document import Document
from newscrawler.web import urls

#: Addresses of articles that are shown, so that a person can write the pattern.
EXAMPLES = 5
#: Least seconds between two fetches of a site of which nothing is known.
DELAY_S = 3.0


def article_examples(page: Document) -> list[str]:
    """Canonical addresses of the page's own host that look most like articles, in its order."""
    host = urls.domain_of(page.url).removeprefix("www.")
    base = urls.Base(page.base_url)
    found: list[str] = []
    for href, _ in page.links():
        joined = urls.join(base, href)
        address = urls.canonicalize(joined) if joined else None
        if address is None or address in found or urls.domain_of(address).removeprefix("www.") != host:
            continue
        parts = urlsplit(address)
        if articles.refuse(parts.path, parts.query) is None and articles.looks_like_article(address) >= 0.75:
            found.append(address)
            if len(found) >= EXAMPLES:
                break
    return found


def entry(found: Found, page: Document, day: str, asked: str = "") -> dict[str, Any]:
    """What to put into the list "sites". ``day``: of the fetch, for the note on where it comes from; ``asked``: the
    host that was asked for, an alias where the site answered from another.

    Seeds on a twin host (www. or not) are kept; seeds on other hosts are not in ``found``.
    """
    host = urls.domain_of(page.url)
    bare = host.removeprefix("www.")
    aliases = {} if bare[:1].isdigit() or ":" in bare else {bare if host != bare else f"www.{bare}": host}
    if asked and asked != host:
        aliases[asked] = host
    proposed: dict[str, Any] = {
        "id": bare,
        "name": found.name or bare,
        "class": "auto",
        "class_reason": "",
        "delay_s": DELAY_S,
        "language": found.language,
        "zone": "Asia/Ho_Chi_Minh" if found.language == "vi" or bare.endswith(".vn") else "+00:00",
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
    return "news" if "news" in path and "latest" not in path else "latest" if "latest" in path else "index"
