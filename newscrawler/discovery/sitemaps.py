"""Sitemaps, sitemap indexes, news sitemaps and plain lists of addresses (sitemaps.org,
Google News). Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from lxml import etree

from newscrawler.discovery import xmltext
from newscrawler.discovery.feeds import parse_date, parse_feed, plain
from newscrawler.discovery.xmltext import child_text, local

#: sitemaps.org: at most this many addresses in one file.
MAX_URLS = 50_000
#: Children that are followed of one index, newest first: an archive of years is not queued at once.
MAX_CHILDREN = 50


@dataclass(slots=True)
class SitemapEntry:
    url: str
    lastmod: datetime | None = None
    title: str | None = None  # of news:news
    published: datetime | None = None  # of news:news


@dataclass(slots=True)
class Sitemap:
    entries: list[SitemapEntry] = field(default_factory=list)
    children: list[SitemapEntry] = field(default_factory=list)  # of an index
    error: str = ""


def parse_sitemap(body: bytes, url: str) -> Sitemap:
    """Never raises: what cannot be read is in ``error``, which is "cut off"
    where a part was read."""
    try:
        body = xmltext.unpacked(body)
        listed = _text_list(body)
        if listed is not None:
            return Sitemap(entries=listed)
        parsed = xmltext.parse(body)
    except xmltext.XmlRefused as exc:
        return Sitemap(error=str(exc))
    root = parsed.root
    sitemap = Sitemap(error="cut off" if parsed.cut_off else "")
    kind = local(root.tag)
    if kind in ("rss", "feed", "rdf"):
        # sitemaps.org allows feeds, and some sites have them under such a name
        feed = parse_feed(body, url)
        sitemap.entries = [
            SitemapEntry(e.url, title=e.title, published=e.published) for e in feed.entries
        ]
        return sitemap
    if kind not in ("urlset", "sitemapindex"):
        sitemap.error = f"no sitemap: <{kind[:40]}>"
        return sitemap
    for node in root:
        name = local(node.tag)
        if name == "url" and len(sitemap.entries) < MAX_URLS:
            sitemap.entries += _entry(node)
        elif name == "sitemap":
            sitemap.children += _entry(node)
    sitemap.children.sort(key=_changed_s, reverse=True)
    del sitemap.children[MAX_CHILDREN:]
    return sitemap


def _changed_s(entry: SitemapEntry) -> float:
    return entry.lastmod.timestamp() if entry.lastmod else 0.0


def _entry(node: etree._Element) -> list[SitemapEntry]:
    """Nothing where it has no address."""
    address = child_text(node, "loc")
    if not address or not address.startswith(("http://", "https://")):
        return []
    entry = SitemapEntry(url=address, lastmod=parse_date(child_text(node, "lastmod")))
    for child in node:
        if local(child.tag) == "news":
            entry.title = plain(child_text(child, "title"))
            entry.published = parse_date(child_text(child, "publication_date"))
    return [entry]


def _text_list(body: bytes) -> list[SitemapEntry] | None:
    """One address a line (sitemaps.org allows it); None when it is something else."""
    head = body[:2048].lstrip(b"\xef\xbb\xbf \r\n\t")
    if not head.startswith((b"http://", b"https://")):
        return None
    lines = body.split(b"\n", MAX_URLS)[:MAX_URLS]
    listed = (line.decode("utf-8", "replace").strip("\ufeff \r\t") for line in lines)
    return [SitemapEntry(url=line) for line in listed if line.startswith(("http://", "https://"))]
