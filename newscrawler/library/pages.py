"""``extract``: one page to an article. A URL is fetched as politely as the crawl does it."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from newscrawler.crawl import opening, plugins, site_choice
from newscrawler.crawl.page_context import context_of
from newscrawler.crawl.polite_fetch import fetch_polite
from newscrawler.extraction import extract as extraction
from newscrawler.extraction.document import Document
from newscrawler.fetch.client import FetchFailed
from newscrawler.items import Article, Link
from newscrawler.library.background import Background
from newscrawler.library.settings import project_settings
from newscrawler.web import urls

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

    from newscrawler.extraction.context import PageContext
    from newscrawler.extraction.selectors import SelectorSet

log = logging.getLogger(__name__)

_URL = re.compile(r"https?://[^\s<>\"]+", re.IGNORECASE)


class NotAnArticle(ValueError):
    """The page is read, and it is no article: a list, an error page, a challenge.
    ``reason`` says which."""

    def __init__(self, url: str, reason: str) -> None:
        super().__init__(f"not an article: {reason} url={url or '-'}")
        self.url = url
        self.reason = reason


class StatusFailed(FetchFailed, ValueError):
    """The address answered with another ``status`` than 200."""

    reason = "status"

    def __init__(self, url: str, status: int) -> None:
        super().__init__(url, f"status {status}")
        self.status = status


def extract(
    page: str | bytes, *, url: str = "", settings: Mapping[str, Any] | None = None
) -> Article:
    """The article of one page, read with the site's selector set where it has one.
    Nothing is stored.

    :param page: HTML, as text or as the bytes that were received; or an http(s) address,
        which is fetched first: through robots.txt, the address guard and the gate that a
        crawl with the same queue keeps to
    :param url: the address that the HTML was fetched from. It names the site; relative
        links are joined to it
    :param settings: changes to ``newscrawler/settings.py``, e.g. ``{"DATA_DIR": "/srv/news"}``
    :raises NotAnArticle: the page is none
    :raises newscrawler.FetchError: it was not fetched, or answered another status than 200;
        ``reason`` is robots, ssrf, connect, timeout, size, status ...
    :raises newscrawler.frontier.queue.FrontierError: the queue is away, or its
        operator has closed the host
    :raises ValueError: an address or a setting is wrong
    """
    own = project_settings(settings)
    doc = _document(page, url, own)
    selectors, context = known_of(own, doc.url)
    found = extraction.extract(doc, context, selectors)
    if not found.is_article:
        raise NotAnArticle(doc.url, found.reason)
    return _article(found, doc.url or found.canonical_url.value or "", own, context)


def known_of(settings: BaseSettings, url: str) -> tuple[SelectorSet | None, PageContext]:
    """The active set and the facts of the configured site that an address is on.

    :raises newscrawler.discovery.sites.SitesError: the sites cannot be read
    """
    now = datetime.now(UTC)
    site = site_choice.load_sites(settings).by_host(urlsplit(url).netloc.lower())
    context = context_of(site, fetched=now, rules=plugins.metadata_rules(settings))
    if site is None:
        return None, context
    return opening.open_selector_store(settings, None).active(site.id), context


def _document(page: str | bytes, url: str, settings: BaseSettings) -> Document:
    if isinstance(page, bytes):
        return Document(page, url)
    if not isinstance(page, str):
        raise TypeError(f"page must be HTML or an address, as str or bytes, not {page!r:.40}")
    if "<" not in page:
        _refuse_what_is_no_address(page.strip())
    if _URL.fullmatch(page.strip()) is None:
        return Document(page.encode("utf-8", "replace"), url, "text/html; charset=utf-8")
    if url:
        raise ValueError("url= is for HTML; the page is an address itself")
    with Background("newscrawler-extract") as background:
        answer = background.run(fetch_polite(page.strip(), settings, say=log.warning))
    if answer.status != 200:
        raise StatusFailed(answer.url, answer.status)
    return Document(answer.body, answer.url, answer.header("content-type"))


def _refuse_what_is_no_address(text: str) -> None:
    """Of a text without a tag, which can be no HTML."""
    if _URL.fullmatch(text) is None:
        raise ValueError(
            f"{text[:80]!r} is neither HTML nor an http(s) address; a file is read by"
            " extract(Path(NAME).read_bytes(), url=...)"
        )


def _article(
    found: extraction.Extraction, url: str, settings: BaseSettings, context: PageContext
) -> Article:
    """With the id that a crawl of the same address would store it under."""
    canonical = urls.canonicalize(url) if url else None
    host = urls.domain_of(canonical) if canonical else ""
    sites = site_choice.load_sites(settings)
    site = sites.by_host(host)
    link = sites.identify(canonical) if canonical and site is not None else None
    if isinstance(link, Link):
        ident, url = link.url_id.hex(), link.url
    else:
        ident, url = urls.url_id(canonical or url).hex(), canonical or url
    return Article(
        id=ident,
        url=url,
        site=site.id if site is not None else host,
        fetched=context.fetched,
        **extraction.article_values(found),
    )
