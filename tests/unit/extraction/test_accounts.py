"""Names of accounts in metadata, where the page spells the person's out."""

from __future__ import annotations

import pytest

from newscrawler.extraction.context import PageContext
from newscrawler.extraction.document import Document
from newscrawler.extraction.extract import extract

TEXT = "".join(
    f"<p>A paragraph of the article that says something about the matter, number {i}.</p>"
    for i in range(9)
)


def authors_of(stated: str, meta: str, byline: str) -> list[str]:
    page = (
        f'<html><head><meta name="author" content="{meta}"><script type="application/ld+json">'
        f'{{"@type": "NewsArticle", "headline": "A headline of some words", "author": {{"name": "{stated}"}}}}</script></head>'
        f"<body><h1>A headline of some words</h1>{byline}<article>{TEXT}</article></body></html>"
    )
    return list(
        extract(
            Document(page.encode(), "https://a.example/news/1.html"), PageContext()
        ).authors.value
    )


@pytest.mark.parametrize(
    ("stated", "meta", "byline", "found"),
    [
        ("jane-doe", "Jane Doe", "", ["Jane Doe"]),
        ("jane.doe", "", '<span class="author">Jane Doe</span>', ["Jane Doe"]),
        ("zoe-muller", "Zoë Müller", "", ["Zoë Müller"]),
        ("jane-doe", "The Example Post", "", ["jane-doe"]),  # nothing better is known
        ("jane-doe", "John Roe", "", ["jane-doe"]),  # another one's name is not hers
        ("Jane Doe", "JANE DOE", "", ["Jane Doe"]),
    ],
)
def test_the_name_of_an_account_gives_way_to_the_same_one_spelled_out(
    stated: str, meta: str, byline: str, found: list[str]
) -> None:
    assert authors_of(stated, meta, byline) == found
