"""Whole pages: fields with their origins, what is not an article and why, stored real pages."""

from __future__ import annotations

import gzip
import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from newscrawler.extraction import page_metadata
from newscrawler.extraction.document import Document
from newscrawler.extraction.explain import explain
from newscrawler.extraction.extract import Extraction, PageContext, extract, prediction

PARAGRAPHS = [
    f"Đoạn văn số {i} kể về sự việc ở Hà Nội, với đủ câu chữ để một bài báo có nội dung thật sự cho người đọc."
    for i in range(6)
]
BODY = "".join(f"<p>{p}</p>" for p in PARAGRAPHS)
VIETNAM = PageContext(
    site_name="Ví dụ", language="vi", zone="+07:00", fetched=datetime(2026, 11, 21, tzinfo=UTC)
)


def of(
    html: str,
    url: str = "https://www.example.vn/xa-hoi/bai-viet-4954005.html",
    context: PageContext = VIETNAM,
) -> Extraction:
    return extract(Document(html.encode(), url), context)


def article(
    head: str = "", byline: str = "", body: str = BODY, title: str = "Giá vàng trong nước giảm mạnh"
) -> str:
    return (
        f"<html lang=vi><head><title>{title} - Ví dụ</title>{head}</head><body><nav><a href=/>Trang chủ</a></nav><main><article>"
        f"<h1>{title}</h1>{byline}<div class=content>{body}</div></article></main><footer>© 2026 Ví dụ</footer></body></html>"
    )


def test_fields_of_a_plain_page_by_generic_rules() -> None:
    found = of(
        article(
            byline="<div class=meta><span class=author>Nguyễn Văn An</span><span class=date>Thứ bảy, 15/08/2026 06:54</span></div>"
        )
    )
    assert (found.is_article, found.reason) == (True, "")
    assert found.title.value == "Giá vàng trong nước giảm mạnh"
    assert found.content.value == "\n\n".join(PARAGRAPHS)
    assert found.authors.value == ["Nguyễn Văn An"]
    assert found.published.value.isoformat() == "2026-08-15T06:54:00+07:00"
    for value in (found.title, found.content, found.authors, found.published):
        assert value.origin and 0 < value.confidence <= 1


def test_json_ld_is_the_better_witness_of_time_and_people() -> None:
    ld = {
        "@context": "https://schema.org",
        "@graph": [
            {"@type": "WebPage", "datePublished": "2020-01-01T00:00:00Z"},
            {"@type": "Person", "@id": "#p", "name": "Trần Thị Bình"},
            {
                "@type": ["NewsArticle"],
                "headline": "Giá vàng trong nước giảm mạnh",
                "datePublished": "2026-08-15T06:54:00+07:00",
                "dateModified": "2026-08-15T09:00:00+07:00",
                "author": [{"@id": "#p"}, {"@type": "Organization", "name": "Ví dụ"}],
                "articleSection": "Kinh tế",
                "description": "Tóm tắt",
                "image": {"url": "/a.jpg"},
            },
        ],
    }
    found = of(article(head=f'<script type="application/ld+json">{json.dumps(ld)}</script>'))
    assert found.authors.value == ["Trần Thị Bình"]
    assert found.published.value.isoformat() == "2026-08-15T06:54:00+07:00"
    assert found.modified.value.isoformat() == "2026-08-15T09:00:00+07:00"
    assert (found.section.value, found.summary.value) == ("Kinh tế", "Tóm tắt")
    assert found.image.value == "https://www.example.vn/a.jpg"


def test_first_publication_is_not_the_update() -> None:
    found = of(
        article(byline="<p class=time>Cập nhật: 16/08/2026 08:00 | Đăng: 15/08/2026 06:54</p>")
    )
    assert found.published.value.day == 15
    found = of(article(byline="<p class=date>15/08/2026 06:54 (cập nhật 16/08/2026 08:00)</p>"))
    assert found.published.value.day == 15


def test_a_date_in_a_comment_node_or_a_related_box_is_not_the_article_s() -> None:
    found = of(
        article(
            byline="<!-- Sat Aug 15 2026 06:54:00 GMT+0700 --><div class=related><time datetime=2026-01-01>1</time></div>"
            "<span class=date>14/08/2026 05:00</span>"
        )
    )
    assert found.published.value.isoformat() == "2026-08-14T05:00:00+07:00"


def test_nothing_is_guessed() -> None:
    found = of(article())
    assert found.published.value is None
    assert found.authors.value == []
    assert prediction(found)["published"] is None


def test_feed_hint_fills_what_the_page_lacks() -> None:
    context = PageContext(
        zone="+07:00",
        language="vi",
        hint={"published": "2026-08-15T06:54:00+07:00", "authors": ["Lê Minh Châu"]},
    )
    found = of(article(), context=context)
    assert (found.published.origin, found.authors.value) == ("feed", ["Lê Minh Châu"])


def test_related_boxes_and_captions_stay_out_wherever_they_stand() -> None:
    boxes = (
        '<div class="VCSortableInPreviewMode" type="RelatedNewsBox"><p>Một tin khác mà tòa soạn muốn bạn đọc, có câu đầy đủ.</p></div>'
        "<figure><img src=x><figcaption>Một chú thích ảnh dài như một câu văn bình thường ở trong bài báo.</figcaption></figure>"
        "<div class=box-tinlienquan><a href=/x>Một tin liên quan nữa</a></div>"
        '<div class="comment-list"><p>Bình luận của bạn đọc cũng là một câu dài có dấu chấm ở cuối.</p></div>'
    )
    found = of(article(body=boxes.join(f"<p>{p}</p>" for p in PARAGRAPHS)))
    assert found.content.value == "\n\n".join(PARAGRAPHS)


def test_summary_under_the_headline_belongs_to_the_content() -> None:
    sapo = "Tóm tắt của bài báo nói ngắn gọn chuyện gì đã xảy ra, ở đâu và khi nào."
    found = of(
        article(
            head=f'<meta name=description content="{sapo}">',
            byline=f'<h2 class="detail-sapo">{sapo}</h2>',
        )
    )
    assert found.content.value is not None and found.content.value.startswith(
        f"{sapo}\n\n{PARAGRAPHS[0]}"
    )


@pytest.mark.parametrize(
    ("html", "reason"),
    [
        ("", "no title"),
        ("<html><script>document.cookie='D1N=abc';location.reload()</script></html>", "challenge"),
        ("<title>Giá vàng giảm</title><h1>Giá vàng giảm</h1>", "no content"),
        (article(body="<p>Chỉ một câu ngắn gọn của bài báo ở đây thôi.</p>"), "stub"),
        (article(head='<script type="application/ld+json">{"@type":"NewsArticle","headline":"Giá vàng","isAccessibleForFree":"False"}</script>',
                 body="".join(f"<p>{p}</p>" for p in PARAGRAPHS[:2])), "stub"),
        (article(head='<meta property="og:type" content="video.other">', body="<p>" + PARAGRAPHS[0] * 2 + "</p>"), "video"),
    ],
)  # fmt: skip
def test_what_is_no_article_says_why(html: str, reason: str) -> None:
    found = of(html)
    assert (found.is_article, found.reason) == (False, reason)


def test_section_page_is_a_listing() -> None:
    teasers = "".join(
        f"<article><h3><a href=/bai-{i}.html>Tiêu đề của bài báo số {i} trong chuyên mục</a></h3><p>Mô tả ngắn của bài số {i}, một câu.</p></article>"
        for i in range(30)
    )
    found = of(
        f"<title>Thời sự</title><h1>Thời sự trong nước</h1>{teasers}",
        "https://www.example.vn/thoi-su",
    )
    assert (found.is_article, found.reason) == (False, "listing")


@pytest.mark.parametrize(
    "script",
    [
        '{"@type":"NewsArticle","headline":"Giá \n vàng","datePublished":"2026-08-15",}',
        '<!-- {"@type":"NewsArticle","headline":"Giá vàng","datePublished":"2026-08-15"} -->',
        '//<![CDATA[\n{"@type":"NewsArticle","headline":"Giá vàng","datePublished":"2026-08-15"}\n//]]>',
        '{"@type":"NewsArticle","headline":"Giá vàng","datePublished":"2026-08-15"}{"@type":"WebSite"}',
        '[{"@type":"WebSite"},[{"@type":"https://schema.org/NewsArticle","headline":"Giá vàng","datePublished":"2026-08-15"}]]',
        '{&quot;@type&quot;:&quot;NewsArticle&quot;,&quot;headline&quot;:&quot;Giá vàng&quot;,&quot;datePublished&quot;:&quot;2026-08-15&quot;}',
        '{"@type":"NewsArticle","headline":"Giá \\\'vàng\\\'","datePublished":"2026-08-15"}',
        '{"@type":"NewsArticle",\n"headline":"Giá "vàng" tăng",\n"datePublished":"2026-08-15"}',
        '{"@type":"NewsArticle"\n"headline":"Giá vàng"\n"datePublished":"2026-08-15"}',
        '{\n"@type": "NewsArticle",\n// "x": 1,\n"headline": "Giá vàng",\n"datePublished": "2026-08-15"\n}',
        '{\n"@type": "NewsArticle",\n"headline": "Giá vàng",\n"datePublished": "2026-08-15",\n"description": \'broken\n',
    ],
)  # fmt: skip
def test_broken_json_ld_is_mended(script: str) -> None:
    doc = Document(
        f'<script type="application/ld+json">{script}</script>'.encode(), "https://example.vn/"
    )
    found = page_metadata.of(doc)
    assert found.published_raw == ["2026-08-15"]
    assert found.headline is not None and found.headline.startswith("Giá")


def test_explain_names_candidates_and_the_winner() -> None:
    head = "<meta name=author content=Admin><meta property=og:title content='Giá vàng trong nước giảm mạnh'>"
    byline = "<p class=author>Nguyễn Văn An</p><p class=date>Thứ bảy, 15/08/2026 06:54</p><div class=date>Cập nhật: 16/08/2026 09:00</div>"
    rows = explain(
        Document(article(head, byline).encode(), "https://www.example.vn/a-1.html"), VIETNAM
    )
    assert {r.field for r in rows} >= {
        "title",
        "published",
        "authors",
        "content",
        "language",
        "page",
    }
    for field in ("title", "published", "authors", "content"):
        assert sum(r.won for r in rows if r.field == field) == 1, f"one winner: {field}"
    dates = [r for r in rows if r.field == "published"]
    (winner,) = (r for r in dates if r.won)
    assert winner.raw == "Thứ bảy, 15/08/2026 06:54" and winner.note.startswith("trust ")
    assert any(r.raw == "Cập nhật: 16/08/2026 09:00" and not r.won for r in dates), (
        "every visible date is named"
    )
    refused = next(r for r in rows if r.origin == "meta:author")
    assert (refused.raw, refused.read, refused.note) == ("Admin", None, "no person's name")
    heading = next(r for r in rows if r.origin == "generic:h1")
    assert heading.won and heading.note == "agrees 1.00 with og"
    assert rows[-1].note == "article"


def test_explain_says_why_a_page_is_no_article() -> None:
    rows = explain(
        Document(b"<html><body><h1>Tin moi trong ngay</h1></body></html>", "https://x.vn/a-1.html"),
        VIETNAM,
    )
    assert rows[-1].note == "not an article: no content"
    assert not any(r.won for r in rows if r.field == "content")


def test_section_pages_of_real_sites_are_no_articles(shared_pages: Path) -> None:
    pages = sorted((shared_pages / "sections").iterdir())
    seen = 0
    for path in pages:
        if path.suffix not in (".html", ".gz"):
            continue
        body = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        found = extract(
            Document(body, f"https://{path.name.split('.')[0]}.vn/thoi-su.htm"), VIETNAM
        )
        assert not found.is_article, path.name
        seen += 1
    assert seen


def test_real_vietnamese_pages_are_right_in_every_field(shared_pages: Path) -> None:
    from evaluation import scorer

    gold = [
        json.loads(line) for line in (shared_pages / "gold.jsonl").read_text("utf-8").splitlines()
    ]
    pages = [g for g in gold if g["source"] == "vn-tracking_news"]
    assert pages
    for g in pages:
        doc = Document(gzip.decompress((shared_pages / g["html"]).read_bytes()), g["url"])
        score = scorer.score_page(g, prediction(extract(doc, PageContext())))
        assert score["four"] and score["minute"] and score["authors"]["exact"], g["id"]
        assert score["content"][2] > 0.97, g["id"]
