"""One article at two addresses of its site: a page names the other as ``rel=canonical``,
and their texts are alike.

The name alone proves nothing. Every page of a badly made template may name one address, and the
second page of a long article names its first: such pages are articles of their own, or what they
hold would be lost. Pure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from newscrawler.items import Article
from newscrawler.web.urls import canonicalize

if TYPE_CHECKING:
    import numpy as np

#: Jaccard index of the shingles from which two pages of one site hold one text; an edit between the
#: two fetches is well above it, two pages of one long article are near 0.
ALIKE = 0.8


def other_address(article: Article) -> str | None:
    """The canonical form of the address that the page names, None when it is its own."""
    named = canonicalize(article.canonical_url) if article.canonical_url else None
    return None if named == article.url else named


def is_alike(content: str, shingles: np.ndarray, other: str) -> bool:
    """``shingles``: :func:`near_duplicates.shingles` of ``content``, empty for a text too
    short to have some."""
    if content == other:
        return True
    # numpy, which a crawl that hands its articles to another process does not need
    from newscrawler.store import near_duplicates

    return near_duplicates.jaccard(shingles, near_duplicates.shingles_of(other)) >= ALIKE


def are_alike(content: str, other: str) -> bool:
    """Whether two texts of one site are one."""
    if content == other:
        return True
    from newscrawler.store import near_duplicates

    return is_alike(content, near_duplicates.shingles_of(content), other)
