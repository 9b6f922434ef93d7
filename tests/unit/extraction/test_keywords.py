"""Keywords: where pages state them, and what is none."""

from __future__ import annotations

import json
import unicodedata

import pytest

from newscrawler.extraction.document import Document
from newscrawler.extraction.extract import PageContext, article_values, extract
from newscrawler.extraction.keywords import LONGEST, MOST, statements
from newscrawler.items import FieldValue

URL = "https://www.bao.vn/the-thao/bong-da/doi-tuyen-thang-tran-1234.html"
TITLE = "Đội tuyển Việt Nam thắng trận cuối cùng tại Hà Nội"
TEXT = "".join(
    f"<p>Đoạn {i} của bài báo kể lại diễn biến trận đấu, các bàn thắng và lời của huấn luyện viên sau trận.</p>"
    for i in range(8)
)


def page(head: str = "", below: str = "", ld: object = None) -> bytes:
    article = {
        "@type": "NewsArticle",
        "headline": TITLE,
        "datePublished": "2026-08-01T08:00:00+07:00",
    }
    article |= {
        "author": {"@type": "Person", "name": "Nguyễn Văn An"},
        "articleSection": "Thể thao",
    }
    if ld is not None:
        article["keywords"] = ld
    return (
        f'<html lang="vi"><head><title>{TITLE}</title><meta property="og:site_name" content="Báo Mới">'
        f'<script type="application/ld+json">{json.dumps(article, ensure_ascii=False)}</script>{head}</head>'
        f"<body><main><article><h1>{TITLE}</h1>{TEXT}{below}</article></main></body></html>"
    ).encode()


def keywords(body: bytes) -> FieldValue:
    found = extract(Document(body, URL), PageContext(site_name="Báo Mới"))
    assert found.is_article, found.reason
    return found.keywords


def metas(name: str, *values: str) -> str:
    return "".join(f'<meta property="{name}" content="{v}">' for v in values)


@pytest.mark.parametrize(
    ("head", "below", "ld", "origin"),
    [
        (metas("article:tag", "World Cup", "U23 Việt Nam"), "", None, "meta:article:tag"),
        ("", "", "World Cup, U23 Việt Nam", "json-ld"),
        ("", "", [{"@type": "DefinedTerm", "name": "World Cup"}, "U23 Việt Nam"], "json-ld"),
        (metas("news_keywords", "World Cup; U23 Việt Nam"), "", None, "meta:news_keywords"),
        (metas("keywords", "World Cup,U23 Việt Nam"), "", None, "meta:keywords"),
        ("", '<p><a rel="tag" href="/t/1">World Cup</a>, <a rel="tag" href="/t/2">U23 Việt Nam</a></p>', None, "shown"),
        ("", '<ul class="article-tags"><li><a href="/t/1">#World Cup</a><li><a href="/t/2">U23 Việt Nam</a></ul>', None, "shown"),
    ],
)  # fmt: skip
def test_every_place_is_read(head: str, below: str, ld: object, origin: str) -> None:
    found = keywords(page(head, below, ld))
    assert (found.value, found.origin) == (["World Cup", "U23 Việt Nam"], origin)


def test_tags_shown_come_before_what_is_written_for_search_engines() -> None:
    tags = '<div class="tags"><a href="/t/1">World Cup</a></div>'
    assert keywords(page(metas("keywords", "tin tức, báo, 24h"), tags)).value == ["World Cup"]
    assert keywords(page(metas("article:tag", "SEA Games"), tags)).value == ["SEA Games"]


def test_names_of_site_section_writer_and_headline_are_none() -> None:
    ld = ["Báo Mới", "bao.vn", "Thể thao", "Bóng đá", "Nguyễn Văn An", TITLE, "World Cup"]
    assert keywords(page(ld=ld)).value == ["World Cup"]


def test_a_list_cut_out_of_the_headline_is_none() -> None:
    cut = "đội, tuyển, việt, nam, thắng, trận"
    assert keywords(page(metas("news_keywords", cut))).value == []
    assert keywords(page(metas("news_keywords", cut) + metas("keywords", "World Cup"))).value == ["World Cup"]  # fmt: skip


def test_values_are_clean_unique_and_bounded() -> None:
    decomposed = unicodedata.normalize("NFD", "Bão số 5")
    ld = [decomposed, "bão số 5", " #Covid-19 ", "&quot;AT&amp;amp;T&quot;", "type:article", "Category: News", "2026", "x" * (LONGEST + 1), "https://a.vn/x"]  # fmt: skip
    assert keywords(page(ld=ld)).value == ["Bão số 5", "Covid-19", "AT&T"]
    assert len(keywords(page(ld=[f"tag {i}" for i in range(90)])).value) == MOST
    assert keywords(page(ld={"a": 1})).value == []


def test_menus_margins_and_other_articles_tags_are_none() -> None:
    menu = '<nav><ul class="tags"><li><a href="/a">Trang chủ</a></ul></nav>'
    cloud = '<div class="tag-cloud"><div class="tags"><a href="/a">Xem nhiều</a></div></div>'
    category = '<a rel="category tag" href="/c">Bóng rổ</a>'
    assert keywords(page(below=f"{menu}{cloud}{category}")).value == []
    own = '<p><a rel="tag" href="/t/1">World Cup</a></p>'
    other = '<div><p>Tin khác</p><p><a rel="tag" href="/t/2">Giá vàng</a></p></div>'
    assert keywords(page(below=own + other)).value == ["World Cup"]


def test_they_are_part_of_the_article_and_independent_statements_are_told_apart() -> None:
    body = page(
        metas("article:tag", "World Cup"), '<div class="tags"><a href="/t/1">World Cup</a></div>'
    )
    found = extract(Document(body, URL), PageContext())
    values = article_values(found)
    assert values["keywords"] == ["World Cup"]
    assert values["origins"]["keywords"] == "meta:article:tag"
    assert dict(statements(Document(body, URL))) == {
        "meta:article:tag": ["World Cup"],
        "shown": ["World Cup"],
    }
    assert article_values(extract(Document(page(), URL), PageContext()))["keywords"] == []
