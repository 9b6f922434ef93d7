"""Scores without gold: how far the statements of a page agree."""

from __future__ import annotations

from evaluation.agreement import agreement, stated
from newscrawler.extraction.document import Document
from newscrawler.items import FIELDS

SECTION = next(f for f in FIELDS if f.name == "section")
PAGE = (
    '<meta property="article:section" content="{}"><script type="application/ld+json">'
    '{{"@type": "NewsArticle", "headline": "x", "articleSection": "{}"}}</script>'
)


def test_shares_are_of_the_pages_that_two_places_state() -> None:
    pages = [("Thời sự", "thời  sự"), ("Thể thao", "Bóng đá"), ("Giải trí", "")]
    docs = [Document(PAGE.format(*said).encode(), "https://a.vn/1") for said in pages]
    rows = agreement(stated(doc, SECTION) for doc in docs)
    row = next(r for r in rows if (r["first"], r["second"]) == ("json-ld", "meta"))
    assert (row["pages"], row["in_second"], row["any"]) == (2, 0.5, 0.5)
    assert agreement(iter([])) == []
