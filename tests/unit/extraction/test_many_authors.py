"""Articles of many authors: every one of them is stored (lists were cut at eight names)."""

from __future__ import annotations

import json

import pytest

from newscrawler.extraction.context import PageContext
from newscrawler.extraction.document import Document
from newscrawler.extraction.extract import extract
from tests.unit.extraction.story import HEAD, paragraphs

NAMES = [
    "Jane Roe", "Max Muster", "Anna Weber", "Peter Miller", "Laura Santos", "Tom Keller",
    "Clara Haas", "Hugo Berger", "Nina Novak", "Paul Stein", "Rosa Lang", "Emil Vogt",
]  # fmt: skip
LD = json.dumps(
    {"@type": "NewsArticle", "headline": HEAD,
     "author": [{"@type": "Person", "name": name} for name in NAMES]}
)  # fmt: skip
LINE = f"By {', '.join(NAMES[:-1])} and {NAMES[-1]}"
LINKS = ", ".join(f"<a rel=author href=/a/{n}>{name}</a>" for n, name in enumerate(NAMES))


@pytest.mark.parametrize(
    ("head", "body"),
    [
        (f'<script type="application/ld+json">{LD}</script>', ""),
        ("".join(f'<meta name=author content="{name}">' for name in NAMES), ""),
        ("", f"<p class=byline>{LINE}</p>"),
        ("", f"<div class=authors>{LINKS}</div>"),
        (f'<script type="application/ld+json">{LD}</script>', f"<p class=byline>{LINE}</p>"),
    ],
    ids=["json-ld", "meta", "byline", "links", "both"],
)
def test_a_list_of_twelve_is_stored_whole(head: str, body: str) -> None:
    page = (
        f"<html lang=en><head><title>{HEAD}</title>{head}</head><body><article><h1>{HEAD}</h1>"
        f"{body}{paragraphs(8)}</article></body></html>"
    )
    found = extract(Document(page.encode(), "https://www.example.com/a.html"), PageContext())
    assert found.authors.value == NAMES


@pytest.mark.parametrize(
    "byline",
    [
        "<div class=byline>By Jane Roe</div>",
        "<p class=author>Jane Roe</p>",
        "<p>By <b>Jane Roe</b></p>",
    ],
)
def test_the_staff_of_a_paper_are_not_the_authors(byline: str) -> None:
    staff = "".join(f"<li><a rel=author href=/a/{n}>{name}</a>" for n, name in enumerate(NAMES[1:]))
    page = (
        f"<html lang=en><head><title>{HEAD}</title></head><body><article><h1>{HEAD}</h1>"
        f"{byline}{paragraphs(8)}</article><div class=staff><h3>Our reporters</h3><ul>{staff}</ul>"
        "</div></body></html>"
    )
    found = extract(Document(page.encode(), "https://www.example.com/a.html"), PageContext())
    assert found.authors.value == ["Jane Roe"]
