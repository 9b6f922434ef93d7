"""What a page says of itself in machine places: JSON-LD, OpenGraph, meta, itemprop, time. Pure."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from newscrawler.extraction.document import Document


@dataclass(slots=True)
class Witnesses:
    headline: str | None = None
    published_raw: list[str] = field(default_factory=list)
    modified_raw: list[str] = field(default_factory=list)
    authors_raw: list[str] = field(default_factory=list)


def of(doc: Document) -> Witnesses:
    """The page's witnesses, read once per document."""
    cached: Witnesses | None = getattr(doc, "_witnesses", None)
    if cached is None:
        cached = doc._witnesses = _read(doc)  # type: ignore[attr-defined]
    return cached


def _read(doc: Document) -> Witnesses:
    found = Witnesses()
    for node in doc.tree.css('script[type="application/ld+json"]'):
        try:
            data: Any = json.loads(node.text(), strict=False)
        except ValueError:
            continue
        if isinstance(data, dict) and "headline" in data:
            found.headline = str(data["headline"])
            if isinstance(data.get("datePublished"), str):
                found.published_raw.append(data["datePublished"])
    return found
