"""Citations, read back by the libraries that reference managers are built on."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone

import bibtexparser
import pytest
import rispy

from newscrawler.items import Article
from newscrawler.store.citation import STYLES, cite

ZONE = timezone(timedelta(hours=7))
VIETNAMESE = Article(
    id="ab" * 16,
    url="https://vnexpress.net/bao-so-5.html?a=1&b=2_c%20d",
    site="vnexpress.net",
    title="Bão số 5: 100% tàu & thuyền {về} bờ_an toàn #1",
    content="Mưa lớn.",
    published=datetime(2026, 8, 1, 18, 30, tzinfo=UTC),
    fetched=datetime(2026, 8, 3, 1, 0, tzinfo=UTC),
    authors=["Nguyễn Văn An", "Trần Bình"],
    language="vi",
    keywords=["Thời tiết", "Bão"],
    summary="Dòng một.\nER  - dòng hai",
)
ENGLISH = replace(
    VIETNAMESE,
    title="Rates stay where they are?",
    authors=["John Ronald Smith", "Jean-Luc Picard"],
    language="en-GB",
)


def said(article: Article, style: str) -> str:
    return cite(article, style, "VnExpress", ZONE)


def test_apa() -> None:
    assert said(VIETNAMESE, "apa") == (
        "Nguyễn Văn An, & Trần Bình. (2026, August 2)."
        f" {VIETNAMESE.title}. VnExpress. {VIETNAMESE.url}\n"
    )
    assert said(ENGLISH, "apa").startswith(
        "Smith, J. R., & Picard, J. L. (2026, August 2). Rates stay where they are? VnExpress."
    )


def test_apa_without_an_author_or_a_date() -> None:
    alone = replace(ENGLISH, authors=[], published=None, title="Rates")
    assert said(alone, "apa") == f"Rates. (n.d.). VnExpress. {ENGLISH.url}\n"
    agency = replace(alone, credits=["TTXVN"])
    assert said(agency, "apa").startswith("TTXVN. (n.d.). Rates.")


def test_apa_of_many_authors_has_the_last_one() -> None:
    many = replace(ENGLISH, authors=[f"A Nr{n}" for n in range(1, 26)])
    text = said(many, "apa")
    assert "Nr19, A., . . . Nr25, A." in text and "Nr20" not in text


def test_bibtex_is_read_by_a_parser() -> None:
    library = bibtexparser.parse_string(said(VIETNAMESE, "bibtex"))
    assert not library.failed_blocks
    (entry,) = library.entries
    assert entry.entry_type == "online" and entry.key.startswith("nguyen2026bao")
    assert entry["author"] == "{Nguyễn Văn An} and {Trần Bình}"
    assert entry["title"] == r"{Bão số 5: 100\% tàu \& thuyền \{về\} bờ\_an toàn \#1}"
    assert (entry["date"], entry["urldate"], entry["url"]) == (
        "2026-08-02",
        "2026-08-03",
        VIETNAMESE.url,
    )
    (other,) = bibtexparser.parse_string(said(ENGLISH, "bibtex")).entries
    assert other["author"] == "Smith, John Ronald and Picard, Jean-Luc"


def test_ris_is_read_by_a_parser() -> None:
    (entry,) = rispy.loads(said(VIETNAMESE, "ris"))
    assert entry["type_of_reference"] == "NEWS"
    assert entry["authors"] == ["Nguyễn Văn An", "Trần Bình"]
    assert entry["title"] == VIETNAMESE.title and entry["urls"] == [VIETNAMESE.url]
    assert (entry["year"], entry["date"]) == ("2026", "2026/08/02")
    assert entry["abstract"] == "Dòng một. ER - dòng hai"  # a line of a page ends no record
    assert entry["keywords"] == ["Thời tiết", "Bão"]


def test_csl_json() -> None:
    (item,) = json.loads(said(ENGLISH, "csl-json"))
    assert item["type"] == "article-newspaper" and item["container-title"] == "VnExpress"
    assert item["author"][0] == {"family": "Smith", "given": "John Ronald"}
    assert item["issued"] == {"date-parts": [[2026, 8, 2]]}
    (item,) = json.loads(said(VIETNAMESE, "csl-json"))
    assert item["author"][0] == {"literal": "Nguyễn Văn An"}


@pytest.mark.parametrize("style", STYLES)
def test_an_article_of_next_to_nothing_is_cited(style: str) -> None:
    bare = Article("c" * 32, "https://a.vn/1", "a.vn", "", "Nội dung", authors=["  "])
    text = said(bare, style)
    assert bare.url in text and "None" not in text
