"""What is known of a page beside its bytes. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from newscrawler.extraction.metadata_rules import MetadataRule


@dataclass(frozen=True)
class PageContext:
    """Facts that the caller has; every one may be missing.

    ``zone`` is an IANA name or an offset ("+07:00"), used for times that carry none. ``fetched`` is
    the moment that relative dates ("3 giờ trước") and the bound "not in the future" are counted
    from. ``hint`` is what a feed, news sitemap or list said: ``title``, ``published`` (ISO),
    ``authors``. ``url_is_article``: True or False when the site's own article pattern decided, None
    when nothing did. ``needs_evidence``: neither the address nor a person calls the page an
    article, so that it has to show that it is one (kinds.py). ``others_are_articles``: of such a
    page, that its site taught that others of its address's shape are. ``rules``: what they state
    comes behind a selector set and before all else.
    """

    site_name: str | None = None
    language: str | None = None
    zone: str | None = None
    fetched: datetime | None = None
    hint: dict[str, Any] | None = None
    url_is_article: bool | None = None
    needs_evidence: bool = False
    others_are_articles: bool = False
    rules: tuple[MetadataRule, ...] = ()

    @property
    def title_hint(self) -> str | None:
        """The headline that the hint has."""
        hint = (self.hint or {}).get("title")
        return hint if isinstance(hint, str) else None

    def now(self) -> datetime:
        """The fetch time, or a bound that refuses nothing when the caller did not give it."""
        return self.fetched or datetime(9000, 1, 1, tzinfo=UTC)
