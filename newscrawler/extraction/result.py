"""What extraction found on a page. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field

from newscrawler.items import FieldValue


def _none() -> FieldValue:
    return FieldValue(None)


@dataclass(slots=True)
class Extraction:
    """Every field with its origin; ``value`` None (authors: []) where the page does not have it.

    ``published`` and ``modified`` are aware datetimes; ``published_day_only`` says that the hour is
    not known, ``published_zone_assumed`` that neither page nor site tells the zone. ``reason`` says
    why a page is not an article (:mod:`kinds`); "" when it is one.
    ``disagreements``: fields whose selector and metadata say different things (their confidence is
    at most 0.5), or that rules found and another good source on the page contradicts (their
    confidence is lower for that).
    """

    title: FieldValue = field(default_factory=_none)
    content: FieldValue = field(default_factory=_none)
    published: FieldValue = field(default_factory=_none)
    modified: FieldValue = field(default_factory=_none)
    authors: FieldValue = field(default_factory=lambda: FieldValue([]))
    credits: FieldValue = field(default_factory=lambda: FieldValue([]))
    summary: FieldValue = field(default_factory=_none)
    section: FieldValue = field(default_factory=_none)
    keywords: FieldValue = field(default_factory=lambda: FieldValue([]))
    subheadings: FieldValue = field(default_factory=lambda: FieldValue([]))
    image: FieldValue = field(default_factory=_none)
    pictures: FieldValue = field(default_factory=lambda: FieldValue([]))
    language: FieldValue = field(default_factory=_none)
    canonical_url: FieldValue = field(default_factory=_none)
    is_article: bool = False
    reason: str = ""
    selector_version: str | None = None
    published_day_only: bool = False
    published_zone_assumed: bool = False
    disagreements: list[str] = field(default_factory=list)
