"""What a list or a page says of an article beside its title."""

from __future__ import annotations

from typing import Any

from newscrawler.api import text
from newscrawler.api.data import DataReader, plain
from newscrawler.items import Article


def byline_of(article: Article, reader: DataReader) -> dict[str, Any]:
    facts = reader.deps.sites.get(article.site)
    zone = text.zone_of(facts.zone) if facts else None
    published = article.published
    return {
        "site": article.site,
        "site_name": facts.name if facts else article.site,
        "published": published,
        "published_text": text.moment(published, zone),
        "published_iso": plain(published),
        "ago": text.ago(published, reader.now()),
        "authors": article.authors or article.credits,
        "section": article.section,
        "lang": article.language or (facts.language if facts else ""),
        "rtl": text.is_right_to_left(article.language),
    }


def site_name(site: str, reader: DataReader) -> str:
    facts = reader.deps.sites.get(site)
    return facts.name if facts else site
