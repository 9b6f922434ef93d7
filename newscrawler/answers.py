"""What the spider takes from an answer, its lease and what was read on the page. Pure."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from newscrawler.extraction.context import PageContext
from newscrawler.extraction.extract import Extraction, article_values
from newscrawler.items import Article, Kind, Page

if TYPE_CHECKING:
    from scrapy.http import Response

    from newscrawler.discovery.sites import Site
    from newscrawler.frontier.types import Lease


def header(response: Response, name: bytes) -> str | None:
    value = response.headers.get(name)
    return value.decode("latin-1") if value else None


def robots_of(response: Response) -> frozenset[str]:
    """Directives of X-Robots-Tag that are for everybody or for us."""
    words: set[str] = set()
    for value in response.headers.getlist(b"X-Robots-Tag"):
        text = value.decode("latin-1").lower()
        agent, colon, rest = text.partition(":")
        if colon and agent.strip() != "newscrawler" and "unavailable_after" not in agent:
            continue
        words |= {w.strip() for w in (rest if colon else text).split(",")}
    return frozenset({"noindex", "nofollow"} | words if "none" in words else words)


def challenge_of(response: Response) -> str | None:
    for flag in response.flags:
        if flag.startswith("challenge:"):
            return flag.partition(":")[2]
    return None


def is_asked_for(lease: Lease) -> bool:
    return bool((lease.hint or {}).get("asked"))


def context_of(lease: Lease, page: Page, site: Site) -> PageContext:
    return PageContext(
        site_name=site.name,
        language=site.language,
        zone=site.zone,
        fetched=page.fetched or datetime.now(UTC),
        hint=lease.hint,
        url_is_article=(page.kind is Kind.ARTICLE and not is_asked_for(lease)) or None,
    )


def claims_article(body: bytes) -> bool:
    """A page that no URL rule calls an article, but that says it is one."""
    return b"NewsArticle" in body or b'content="article"' in body


def fields_digest(extraction: Extraction) -> bytes:
    """Equal when title, text, dates and authors compare equal; one digit makes it another."""
    published = extraction.published.value
    parts = (
        extraction.title.value or "",
        extraction.content.value or "",
        published.isoformat() if published else "",
        "|".join(extraction.authors.value or []),
    )
    return hashlib.blake2b("\x00".join(parts).encode("utf-8", "surrogatepass"), digest_size=16).digest()


def article_of(extraction: Extraction, lease: Lease, page: Page) -> Article:
    return Article(
        id=lease.url_id.hex(),
        url=lease.url,
        site=lease.site,
        discovered=datetime.fromtimestamp(lease.discovered_ms / 1000, UTC),
        fetched=page.fetched,
        **article_values(extraction),
    )
