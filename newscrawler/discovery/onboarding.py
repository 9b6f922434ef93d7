"""A site from its home page: feeds, sitemaps, sections, language. Pure; the
caller fetched the page.

What is found is a proposal for an operator: only named seeds are visited every few minutes, so that
a menu entry too many costs a fetch now and then, and one too few is found through the links anyway.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from selectolax.lexbor import LexborNode

from newscrawler.discovery import articles
from newscrawler.extraction.document import Document
from newscrawler.web import urls

#: A menu has 10 to 60 sections; a site map of thousands is cut here.
MAX_SECTIONS = 80
MAX_FEEDS = 60
_MAX_NAME = 40
_MAX_LINKS = 5_000

_MENUS = (
    "nav, header, [role=navigation], [class*=menu], [id*=menu], [class*=nav], [id*=nav],"
    " [class*=category]"
)
#: A menu's name of a section is short; a headline in a menu is longer.
_MAX_NAME_WORDS = 7
_MAX_SEGMENTS = 4
#: Lists of one word or one writer: as many as there are words, and all that they show stands in a
#: section as well.
_TAG = re.compile(
    r"/(?:tags?|tu-khoa|tukhoa|keywords?|hashtags?|authors?|tac-gia|profile|user)"
    r"(?:/|-\d|\.\w+$|$)",
    re.I,
)
_FEED_TYPES = (
    "application/rss+xml",
    "application/atom+xml",
    "application/rdf+xml",
    "application/feed+json",
)
_FEED_URL = re.compile(r"\.(?:rss|atom|rdf)$|/(?:rss|feeds?|atom)(?:/[^?#]*)?/?$|/rss\.xml$", re.I)
#: A page of a site's feeds or sections, made for people: what it links to is what we
#: are looking for.
_INDEX_URL = re.compile(
    r"/(?:rss|feeds?|sitemap|site-map|so-do-trang|so-do-site|so-do-website|ban-do-trang)"
    r"(?:\.html?|\.aspx?|\.php)?/?$",
    re.I,
)
MAX_INDEXES = 3
_PAGING = re.compile(r"[?&](?:page|pg|p|trang|paged)=\d+|/page/\d+/?\?", re.I)
#: A menu's link is a section's whatever it looks like, up to here: a slug of six words with
#: an id, or a date.
_SURELY_ARTICLE = 0.9
_COMMENTS = re.compile(r"/comments?(?:/|$)|/binh-luan(?:/|$)", re.I)
_RSS_PAGE = re.compile(r"/(?:rss|feeds?)(?:\.\w+)?/?$", re.I)
_SERVICE = re.compile(
    r"(?:^|[/-])(?:lien-he|contact|gioi-thieu|about|quang-cao|advert|toa-soan|dieu-khoan|terms|"
    r"privacy|chinh-sach-bao-mat|cookie|imprint|impressum|dat-bao|subscribe|newsletter|rss|sitemap|"
    r"app|ung-dung|video|videos|photo|anh|podcast|tv|"
    r"e-?paper|help|faq|careers|shop|store|login|account|tim-kiem|search)(?:[/.-]|$)",
    re.I,
)


@dataclass(slots=True)
class Found:
    """What a home page names. URLs are canonical, in the order of the page, on
    hosts of the site only."""

    name: str = ""
    language: str = ""
    feeds: list[str] = field(default_factory=list)
    sitemaps: list[str] = field(default_factory=list)
    sections: list[str] = field(default_factory=list)
    doubtful: list[str] = field(default_factory=list)  # in a menu, but they look like articles
    indexes: list[str] = field(
        default_factory=list
    )  # pages that list feeds or sections for people: to be read as well


def examine(page: Document, robots_sitemaps: list[str] | None = None) -> Found:
    """``robots_sitemaps``: the Sitemap lines of the site's robots.txt."""
    host = urls.domain_of(page.url).removeprefix("www.")
    base = urls.Base(page.base_url)
    found = Found(name=_name(page), language=_language(page))
    for listed in robots_sitemaps or []:
        _take(found.sitemaps, urls.canonicalize(listed), host)
    for node in page.tree.css("link[href]"):
        if _is_feed_link(node):
            _take(found.feeds, _address(base, node), host)
        elif "sitemap" in _rel(node):
            _take(found.sitemaps, _address(base, node), host)
    for node in page.tree.css("a[href]")[:_MAX_LINKS]:
        address = _address(base, node) or ""
        path = urlsplit(address).path
        if _INDEX_URL.search(path):
            if len(found.indexes) < MAX_INDEXES:
                _take(found.indexes, address, host)
        elif articles.is_sitemap_name(path):
            _take(found.sitemaps, address, host)
        elif _FEED_URL.search(path) and len(found.feeds) < MAX_FEEDS:
            _take(found.feeds, address, host)
    _sections(page, base, host, found)
    return found


def _rel(node: LexborNode) -> list[str]:
    return (node.attrs.get("rel") or "").lower().split()


def _is_feed_link(node: LexborNode) -> bool:
    kind = (node.attrs.get("type") or "").strip().lower()
    return "alternate" in _rel(node) and kind.startswith(_FEED_TYPES)


def add_index(found: Found, page: Document) -> None:
    """Takes over what one of ``found.indexes`` lists: feeds, and of a site map all of its links
    that look like sections. An address that turned out to be a feed itself is the caller's to see.
    """
    more = examine(page)
    host = urls.domain_of(page.url).removeprefix("www.")
    base = urls.Base(page.base_url)
    for feed in more.feeds[: MAX_FEEDS - len(found.feeds)]:
        _take(found.feeds, feed, host)
    for sitemap in more.sitemaps:
        _take(found.sitemaps, sitemap, host)
    if not _RSS_PAGE.search(urlsplit(page.url).path):
        for node in page.tree.css("a[href]")[:_MAX_LINKS]:
            address = _address(base, node)
            if not address or address in found.feeds or _is_surely_article(address):
                continue
            if _is_section(address, _name_of(node)):
                _take(found.sections, address, host)
    del found.sections[MAX_SECTIONS:]


def announced_feeds(page: Document) -> list[str]:
    """Canonical addresses of the feeds that the page's head names, in its order; comments of
    readers are left out."""
    host = urls.domain_of(page.url).removeprefix("www.")
    base = urls.Base(page.base_url)
    found: list[str] = []
    for node in page.tree.css("link[href][rel]"):
        address = _address(base, node) if _is_feed_link(node) else None
        if address and not _COMMENTS.search(urlsplit(address).path):
            _take(found, address, host)
    return found[:MAX_FEEDS]


def menu(page: Document) -> tuple[list[str], list[str]]:
    """Canonical addresses of the sections that the page's menus name, top-level ones first; and of
    those that look like an article's, which may be sections all the same."""
    found = Found()
    _sections(page, urls.Base(page.base_url), urls.domain_of(page.url).removeprefix("www."), found)
    return found.sections, found.doubtful


def _name_of(node: LexborNode) -> str:
    """The name of a section in a menu: the link's text, else the text of its picture."""
    name = " ".join((node.text(deep=True) or "").split())
    return name or (node.attrs.get("title") or node.attrs.get("aria-label") or "").strip()


def _sections(page: Document, base: urls.Base, host: str, found: Found) -> None:
    """Top-level sections first: where the list is cut, what they hold stands on them as well."""
    named: list[str] = []
    nodes = [node for menu in page.tree.css(_MENUS) for node in menu.css("a[href]")]
    for node in nodes[:_MAX_LINKS]:
        address = _address(base, node)
        if address and address not in found.feeds and _is_section(address, _name_of(node)):
            _take(found.doubtful if _is_surely_article(address) else named, address, host)
    del found.doubtful[MAX_SECTIONS:]
    named.sort(key=lambda address: urlsplit(address).path.strip("/").count("/"))
    found.sections = named[:MAX_SECTIONS]


def _is_section(address: str, name: str) -> bool:
    """A menu entry under a short name, whatever its address looks like, and no tag,
    service page or picture."""
    parts = urlsplit(address)
    path = parts.path
    is_short = 2 <= len(name) <= _MAX_NAME and name.count(" ") < _MAX_NAME_WORDS
    is_home = path in ("", "/") and not parts.query
    if not is_short or is_home or path.strip("/").count("/") >= _MAX_SEGMENTS:
        return False
    if _SERVICE.search(path) or articles.is_sitemap_name(path) or _TAG.search(path):
        return False
    is_paged = _PAGING.search(f"{path}?{parts.query}") is not None
    return not is_paged and articles.refuse(path, parts.query) is None


def _is_surely_article(address: str) -> bool:
    parts = urlsplit(address)
    return articles.path_score(parts.path, parts.query) >= _SURELY_ARTICLE


def _address(base: urls.Base, node: LexborNode) -> str | None:
    joined = urls.join(base, (node.attrs.get("href") or "").strip())
    return urls.canonicalize(joined) if joined else None


def _take(into: list[str], address: str | None, host: str) -> None:
    if address and address not in into and urls.domain_of(address).removeprefix("www.") == host:
        into.append(address)


def _name(page: Document) -> str:
    name = page.meta_first("og:site_name", "application-name")
    if not name:
        title = page.tree.css_first("title")
        name = re.split(r"\s[-|–:·]\s", title.text().strip())[0] if title else ""
    return " ".join(name.split())[:80]


def _language(page: Document) -> str:
    """Two letters of <html lang>, og:locale or Content-Language; "" where the page does not say."""
    root = page.tree.css_first("html")
    said = (root.attrs.get("lang") if root else "") or page.meta_first(
        "og:locale", "content-language", "language"
    )
    match = re.match(r"[A-Za-z]{2}(?![A-Za-z])", (said or "").strip())
    return match.group(0).lower() if match else ""


def looks_like_feed(url: str) -> bool:
    return bool(_FEED_URL.search(urlsplit(url).path))


def looks_like_sitemap(url: str) -> bool:
    path = urlsplit(url).path
    return articles.is_sitemap_name(path) or articles.is_in_sitemap_folder(path)
