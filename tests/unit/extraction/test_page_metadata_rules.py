"""Rules that weigh a page's statements against what its reader sees: headline, byline,
date, text. Pages of our own."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from newscrawler.extraction import generic, published, text, title
from newscrawler.extraction.author_choice import find as author_find
from newscrawler.extraction.blocks import walk
from newscrawler.extraction.context import PageContext
from newscrawler.extraction.document import Document
from newscrawler.extraction.extract import article_values, extract
from newscrawler.extraction.selectors import SelectorSet

URL = "https://www.example.com/region/story-1.html"
NEWS = "Harbour bridge reopens after nine months of repair"
SEARCH = "Harbour bridge open again: all you need to know"
PARAGRAPH = "The ferry company said that it would keep its boats running until the end of the month for all commuters."
TEXT = "".join(f"<p>{PARAGRAPH} Part {i}.</p>" for i in range(6))


def page(body: str, head: str = "", url: str = URL, lang: str = "en") -> Document:
    return Document(
        f"<html lang={lang}><head>{head}</head><body>{body}</body></html>".encode(), url
    )


def ld(**values: Any) -> str:
    data = {"@type": "NewsArticle", **values}
    return f'<script type="application/ld+json">{json.dumps(data)}</script>'


def og(value: str) -> str:
    return f'<meta property="og:title" content="{value}">'


# ---------------------------------------------------------------- headline
@pytest.mark.parametrize(
    "crumb",
    [
        "<nav><ul><li><a href=/a>Region</a></li><li><h1>{}</h1></li></ul></nav>",
        "<ol class=breadcrumb><li><a href=/a>Region</a></li><li><h1>{}</h1></li></ol>",
        "<div><a href=/>Home</a> <a href=/a>Region</a> <h1>{}</h1></div>",
    ],
)
def test_the_headline_below_a_breadcrumb_that_is_an_h1(crumb: str) -> None:
    head = f"<title>{SEARCH}</title>" + og(NEWS)
    assert title.find(page(crumb.format(SEARCH) + f"<h2>{NEWS}</h2>{TEXT}", head)).value == NEWS


def test_a_breadcrumb_counts_where_every_strong_statement_says_the_same() -> None:
    head = f"<title>{SEARCH}</title>" + og(SEARCH) + ld(headline=SEARCH)
    body = f"<nav><ul><li><h1>{SEARCH}</h1></li></ul></nav><h2>Harbour bridge open again: what to know</h2>{TEXT}"
    assert title.find(page(body, head)).value == SEARCH


def test_a_blog_name_that_links_to_the_front_is_no_headline() -> None:
    body = f"<h1><a href='https://www.example.com/'>Notes from a quiet harbour</a></h1><h2>{NEWS}</h2>{TEXT}"
    head = f"<title>{NEWS} | Notes from a quiet harbour</title>"
    assert title.find(page(body, head)).value == NEWS
    itself = f"<h1><a href='.'>{NEWS}</a></h1>{TEXT}"
    assert title.find(page(itself, f"<title>{NEWS}</title>")).value == NEWS


def test_a_colon_in_an_element_of_its_own() -> None:
    body = f"<h1><span>Harbour</span><span class=hidden>: </span><span>{NEWS}</span></h1>{TEXT}"
    assert title.find(page(body, og(f"Harbour: {NEWS}"))).value == f"Harbour: {NEWS}"


def test_a_lone_h1_is_believed_over_statements_about_something_else() -> None:
    body = f"<h1>{NEWS}</h1>{TEXT}<div class=title>Our shop of maps</div>"
    assert (
        title.find(page(body, "<title>Our shop of maps</title>" + og("Our shop of maps"))).value
        == NEWS
    )


def test_a_kicker_that_both_strong_statements_have() -> None:
    both = f"Traffic: {NEWS}"
    body = f"<div class=kicker>Traffic</div><h1>{NEWS}</h1>{TEXT}"
    assert title.find(page(body, og(both) + ld(headline=both))).value == both
    assert title.find(page(body, og(both) + ld(headline=NEWS))).value == NEWS


def test_the_rubric_behind_a_bare_hyphen_of_a_korean_title() -> None:
    doc = page(
        TEXT,
        og("항만 다리 아홉 달 만에 다시 열렸다-사회ㅣ예시일보")
        + "<meta property=og:site_name content=예시일보>",
        lang="ko",
    )
    assert title.find(doc).value == "항만 다리 아홉 달 만에 다시 열렸다"


# ---------------------------------------------------------------- names
def names(doc: Document) -> list[str]:
    found: list[str] = author_find.find(doc, PageContext()).value
    return found


def test_a_teaser_s_byline_is_another_article_s() -> None:
    teasers = "".join(
        f"<article><h3><a href=/other-{i}.html>Another story {i}</a></h3><span class=byline>Paul Other</span></article>"
        for i in range(4)
    )
    assert names(page(f"<h1>{NEWS}</h1>{TEXT}{teasers}")) == []


def test_meta_wins_where_a_reader_sees_the_same_and_loses_where_not() -> None:
    head = "<meta name=author content='Jane Doe'>"
    shown = f"<h1>{NEWS}</h1><div class=author>Tom Ray</div><p>By Jane Doe</p>{TEXT}"
    assert names(page(shown, head)) == ["Jane Doe"]
    assert names(page(f"<h1>{NEWS}</h1><div class=author>Tom Ray</div>{TEXT}", head)) == ["Tom Ray"]


def test_a_list_that_meta_and_byline_share_is_longer_than_json_ld() -> None:
    head = ld(headline=NEWS, author={"@type": "Person", "name": "Jane Doe"})
    body = f"<h1>{NEWS}</h1><div class=author>By Jane Doe, Tom Ray</div>{TEXT}"
    assert names(page(body, head)) == ["Jane Doe"]
    assert names(page(body, head + "<meta name=author content='Jane Doe, Tom Ray'>")) == [
        "Jane Doe",
        "Tom Ray",
    ]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("<dl><dt>Autor</dt><dd>Anna Weber</dd></dl>", ["Anna Weber"]),
        ("<p>Autorin/Autor Anna Weber</p>", ["Anna Weber"]),
        ("<p>Interview: Anna Weber</p>", ["Anna Weber"]),
        ("<p><em>Text von Anna Weber Illustration von Jan Roth</em></p>", ["Anna Weber"]),
        ("<p>erstellt von Dominik — veröffentlicht 28.01.2022 06:00</p>", ["Dominik"]),
        ("<p>Von Rechtsanwältin Anna Weber</p>", ["Anna Weber"]),
        ("<p>By Anna Weber Published in Traffic December 14, 2016 2:24 pm</p>", ["Anna Weber"]),
        ("<div>(责编：王小明、李大海)</div>", ["王小明", "李大海"]),
        (
            "<nav class=info><span itemprop=author><span itemprop=name>Anna Weber</span></span></nav>",
            ["Anna Weber"],
        ),
        ("<p>By HARBOUR Staff Report</p>", []),
        ("<span class=license-author>Paul Photo</span>", []),
    ],
)
def test_forms_of_bylines(body: str, expected: list[str]) -> None:
    assert names(page(f"<h1>{NEWS}</h1>{body}{TEXT}", lang="de")) == expected


def test_credits_are_beside_the_people_and_never_among_them() -> None:
    persons = [{"@type": "Person", "name": "Jane Doe"}, {"@type": "Organization", "name": "AP"}]
    doc = page(f"<h1>{NEWS}</h1>{TEXT}", ld(headline=NEWS, author=persons))
    assert names(doc) == ["Jane Doe"]
    assert credited(doc) == ["AP"]
    alone = page(
        f"<h1>{NEWS}</h1>{TEXT}", ld(headline=NEWS, author={"@type": "Person", "name": "dpa"})
    )
    assert names(alone) == [] and credited(alone) == ["dpa"]
    nobody = page(f"<h1>{NEWS}</h1>{TEXT}", "<meta name=author content=admin>")
    assert credited(nobody) == []


def credited(doc: Document) -> list[str]:
    credits: list[str] = extract(doc, PageContext()).credits.value
    return credits


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("<p class=author>TTXVN</p>", ["TTXVN"]),
        ("<p class=author>Theo Reuters</p>", []),  # where a text was taken from
        ("<span class=byline>Redaktion</span>", ["Redaktion"]),
        ("<span class=byline>BWW News Desk</span>", ["BWW News Desk"]),
        ("<p class=author>surfguard77</p>", []),  # an account may be a person
        ("<p class=author>mf</p>", []),
        ("<p class=author>Donnerstag</p>", []),
        ("<div class=related-author>Reuters</div>", []),
        (
            "<a rel=author>Le Figaro</a> <p>1</p>",
            [],
        ),  # a name, but of a body nobody knows and no word tells
        (
            "<p class=author>Jane Doe</p><p class=author>AFP</p>",
            [],
        ),  # beside a person only what the page states
    ],
)
def test_credits_name_bodies_and_never_people(body: str, expected: list[str]) -> None:
    assert credited(page(f"<h1>{NEWS}</h1>{body}{TEXT}")) == expected


def test_the_site_is_a_credit_where_nobody_else_is() -> None:
    site = (
        "<meta property='og:site_name' content='Le Figaro'><meta name=author content='Le Figaro'>"
    )
    assert credited(page(f"<h1>{NEWS}</h1>{TEXT}", site)) == ["Le Figaro"]
    person = f"<h1>{NEWS}</h1><p class=author>Jane Doe</p>{TEXT}"
    assert credited(page(person, site)) == []


def test_a_selector_set_gives_credits_of_the_places_that_it_names() -> None:
    chosen = SelectorSet.from_dict(
        {
            "domain": "x.vn",
            "version": 1,
            "state": "active",
            "variants": [
                {
                    "template": "article",
                    "fields": {
                        "title": [{"css": "h1.t"}],
                        "authors": [{"css": "p.by"}],
                        "content": {"root": ["div.text"], "exclude": []},
                    },
                }
            ],
        }
    )
    doc = page(f"<h1 class=t>{NEWS}</h1><p class=by>TTXVN</p><div class=text>{TEXT}</div>")
    found = extract(doc, PageContext(), chosen)
    assert found.content.origin == "selector:div.text"
    assert (found.authors.value, found.credits.value) == ([], ["TTXVN"])
    assert article_values(found)["credits"] == ["TTXVN"]


# ---------------------------------------------------------------- dates
def when(doc: Document) -> datetime | None:
    found = published.find(doc, PageContext()).published
    return found.when.value if found else None


def iso(doc: Document) -> str:
    value = when(doc)
    return value.isoformat() if value else "none"


META = '<meta property="article:published_time" content="{}">'


def test_the_same_instant_with_an_offset_tells_the_site_s_clock() -> None:
    body = (
        f"<h1>{NEWS}</h1><time datetime='2023-11-08T21:11:03-05:00'>November 8, 2023</time>{TEXT}"
    )
    assert iso(page(body, META.format("2023-11-09T02:11:03+00:00"))) == "2023-11-08T21:11:03-05:00"


def test_the_one_offset_of_the_page_s_data_is_the_site_s() -> None:
    head = META.format("2020-05-02T02:54:29Z")
    one = '<script>var a = {"t": "2020-05-01T23:00:00-04:00"}</script>'
    assert iso(page(f"<h1>{NEWS}</h1>{one}{TEXT}", head)) == "2020-05-01T22:54:29-04:00"
    two = one + '<script>var b = {"t": "2020-05-01T23:00:00+07:00"}</script>'
    assert iso(page(f"<h1>{NEWS}</h1>{two}{TEXT}", head)) == "2020-05-02T02:54:29+00:00"


def test_a_local_clock_that_is_labelled_utc_keeps_the_day_that_is_shown() -> None:
    body = f"<h1>{NEWS}</h1><time itemprop=datePublished datetime='2019-12-26T23:07:45+00:00'>26/12/2019</time>{TEXT}"
    assert iso(page(body, url="https://www.example.de/a.html", lang="de"))[:10] == "2019-12-26"


def test_a_label_that_says_published_beats_the_attribute_beside_it() -> None:
    body = (
        f"<h1>{NEWS}</h1><time datetime='2019-07-03T10:18:46Z'>Published 29 June 2019</time>{TEXT}"
    )
    assert iso(page(body))[:10] == "2019-06-29"


def test_a_visible_date_beats_a_meta_that_often_names_the_day_of_print() -> None:
    body = f"<h1>{NEWS}</h1><time>29.04.2020, 12:01 Uhr</time>{TEXT}"
    doc = page(body, "<meta name=date content=2020-04-30>", "https://www.example.de/a.html", "de")
    assert iso(doc) == "2020-04-29T12:01:00+02:00"


def test_a_label_in_one_block_and_the_date_in_the_next() -> None:
    body = f"<h1>{NEWS}</h1>{TEXT}<div>Erschienen am:</div><h4>13.10.2021</h4>"
    assert iso(page(body, "<meta name=dc.date content=2021-10-15>", lang="de"))[:10] == "2021-10-13"


def test_today_s_date_above_the_headline_comes_last() -> None:
    body = f"<div class=date>14 January 2020</div><h1>{NEWS}</h1><p>News desk<br>13 Jan 2020, 22:11 GMT+10</p>{TEXT}"
    assert iso(page(body)) == "2020-01-13T22:11:00+10:00"


def test_forms_that_machines_print() -> None:
    assert (
        iso(page(TEXT, META.format("Mon Aug 03 12:45:00 EDT 2015"))) == "2015-08-03T12:45:00-04:00"
    )
    state = '<script>window.state = {"publishedAt": "2022-01-10T22:06:08Z"}</script>'
    assert when(page(f"<h1>{NEWS}</h1>{TEXT}{state}")) == datetime(
        2022, 1, 10, 22, 6, 8, tzinfo=UTC
    )
    assert (
        iso(
            page(f"<h1>{NEWS}</h1>{TEXT}", url="https://www.example.com/topics/alert20190402.html")
        )[:10]
        == "2019-04-02"
    )
    stamp = "<time datetime='2022-10-17 16:01:26'>10/17/2022 04:01 PM EDT</time>"
    assert iso(page(f"<h1>{NEWS}</h1>{stamp}{TEXT}")) == "2022-10-17T16:01:26-04:00"


def test_day_first_where_the_address_names_the_country() -> None:
    doc = page(
        f"<h1>{NEWS}</h1><div class=date>02/10/2020</div>{TEXT}",
        url="https://www.example.com/en-gb/news/a.html",
    )
    assert iso(doc)[:10] == "2020-10-02"


# ---------------------------------------------------------------- text
def content(doc: Document) -> str:
    return generic.content(doc, NEWS).value or ""


def test_class_names_that_a_build_tool_made_are_no_clutter() -> None:
    marked = f"<p id=block-id-n1AuAdJlVL>{PARAGRAPH} Marked.</p>"
    assert "Marked." in content(page(f"<article><h1>{NEWS}</h1>{TEXT}{marked}{TEXT}</article>"))


def test_a_widget_of_the_article_is_text() -> None:
    lead = "<div class='article-widget article-widget-text'><p>Lead. Nobody had told the fishermen, and so they were late for the ceremony.</p></div>"
    assert "Lead." in content(page(f"<article><h1>{NEWS}</h1>{lead}{TEXT}</article>"))


def test_who_the_author_is_and_an_introduction_to_a_box_close_no_article() -> None:
    tail = "<p>Jane Doe is a staff writer who covers the harbour and its bridges.</p><p>More of it in our live blog:</p>"
    found = content(page(f"<article><h1>{NEWS}</h1>{TEXT}{tail}</article>"))
    assert "Part 5" in found and "staff writer" not in found and "live blog" not in found


def test_sentences_over_pictures_are_kept_at_the_end_of_a_gallery() -> None:
    headings = "<h3>1. The bridge seen from the old customs house.</h3><h3>More pictures</h3>"
    body = page(f"<div>{TEXT}{headings}</div>").tree.body
    assert body is not None
    found = text.content_of(walk(body)) or ""
    assert found.endswith("1. The bridge seen from the old customs house.")


def test_the_box_right_below_the_headline_is_its_own_whatever_its_name() -> None:
    box = "<div class=teaser-small__metadata><p class=byline>By <a href=/x>JANE DOE</a></p></div>"
    assert names(page(f"<article><h1>{NEWS}</h1>{box}{TEXT}</article>")) == ["JANE DOE"]
    assert names(page(f"<article><h1>{NEWS}</h1>{TEXT}<p>{NEWS}</p>{box}</article>")) == []


def test_a_longer_byline_stands_where_one_plugin_wrote_both_statements() -> None:
    first = ld(headline=NEWS, author="Jane Doe") + "<meta name=author content='Jane Doe'>"
    both = f"<h1>{NEWS}</h1><p class=author>Jane Doe, John Roe</p>{TEXT}"
    assert names(page(both, first)) == ["Jane Doe", "John Roe"]
    other = f"<h1>{NEWS}</h1><p class=author>Mary Major, John Roe</p>{TEXT}"
    assert names(page(other, first)) == ["Jane Doe"]


@pytest.mark.parametrize(
    ("begin", "end", "expected"),
    [
        ("Hamburg (dpa/lno) - ", "", ["dpa/lno"]),
        ("", " (AFP)", ["AFP"]),
        ("Hamburg (the largest port) - ", "", []),
        ("", " (laughs)", []),
    ],
)
def test_an_agency_in_dateline_or_brackets_is_a_credit(
    begin: str, end: str, expected: list[str]
) -> None:
    story = "".join(
        f"<p>{begin * (i == 0)}{PARAGRAPH} Part {i}.{end * (i == 5)}</p>" for i in range(6)
    )
    assert credited(page(f"<h1>{NEWS}</h1><article>{story}</article>")) == expected


def test_an_agency_in_the_byline_of_people_is_a_credit() -> None:
    doc = page(f"<h1>{NEWS}</h1><p class=author>By Jane Doe and John Roe, AP</p>{TEXT}")
    assert (names(doc), credited(doc)) == (["Jane Doe", "John Roe"], ["AP"])


def test_a_body_that_signs_comes_before_the_site_itself() -> None:
    site = (
        "<meta property='og:site_name' content='Le Figaro'><meta name=author content='Le Figaro'>"
    )
    assert credited(page(f"<h1>{NEWS}</h1><p>Por Agencia EFE</p>{TEXT}", site)) == ["Agencia EFE"]


def test_a_clock_that_stands_with_an_offset_elsewhere_is_no_utc() -> None:
    stated = '<meta property="article:published_time" content="2022-05-06T02:00:00Z">'
    same = '<meta name="cXenseParse:publishtime" content="2022-05-06T02:00:00-05:00">'
    found = published.find(page(f"<h1>{NEWS}</h1>{TEXT}", stated + same), PageContext()).published
    assert found is not None and found.when.value.isoformat() == "2022-05-06T02:00:00-05:00"
    alone = published.find(page(f"<h1>{NEWS}</h1>{TEXT}", stated), PageContext()).published
    assert alone is not None and alone.when.value.isoformat() == "2022-05-06T02:00:00+00:00"


def test_full_width_signs_bring_their_own_space() -> None:
    assert (
        title.clean("最新SSDを比較してみた ： さらば水冷 （1/2 ページ）")
        == "最新SSDを比較してみた：さらば水冷（1/2 ページ）"
    )


def test_a_page_of_decomposed_letters_reads_as_one_of_composed_ones() -> None:
    """Rules and the library that votes compare words: "e" + accent were other words, and
    the lead was lost."""
    import unicodedata

    lead = "<h2 class=sapo>Cơn bão số 5 đã vào đất liền các tỉnh miền Trung trong sáng nay, gây mưa rất to.</h2>"
    story = "".join(
        f"<p>Đoạn {i}: người dân thành phố đã được sơ tán đến nơi an toàn từ chiều hôm trước.</p>"
        for i in range(8)
    )
    html = f"<h1>Bão số 5 đổ bộ miền Trung</h1><p class=author>Tác giả: Nguyễn Thị Hồng</p>{lead}<div class=detail>{story}</div>"
    composed, decomposed = (
        extract(page(unicodedata.normalize(form, html), lang="vi"), PageContext())
        for form in ("NFC", "NFD")
    )
    assert composed.content.origin == "generic:vote" and composed.authors.value == [
        "Nguyễn Thị Hồng"
    ]
    for name in ("title", "authors", "content"):
        assert getattr(decomposed, name) == getattr(composed, name), name


def test_the_author_s_name_before_the_lead_is_no_paragraph() -> None:
    lead = "(Dân trí) - Cơn bão số 5 đã vào đất liền các tỉnh miền Trung trong sáng nay, gây mưa rất to."
    story = "".join(
        f"<p>Đoạn {i}: người dân thành phố đã được sơ tán đến nơi an toàn từ chiều hôm trước.</p>"
        for i in range(8)
    )
    byline = "<p class=author>Nguyễn Thị Hồng</p>"
    html = f"<h1>Bão số 5 đổ bộ miền Trung</h1>{byline}<div class=detail><p>Nguyễn Thị Hồng</p><p>{lead}</p>{story}</div>"
    found = extract(page(html, lang="vi"), PageContext())
    assert found.authors.value == ["Nguyễn Thị Hồng"]
    assert found.content.value.startswith("Cơn bão số 5 đã vào")


@pytest.mark.parametrize(
    ("line", "stays"),
    [
        ("Zum Thema Sicherheit sagte der Minister am Abend nichts.", True),
        ("Teilen wollte er sein Wissen mit niemandem.", True),
        ("Loading trucks takes longer at this time of the year.", True),
        ("Zum Thema", False),
        ("Mehr zu diesem Thema", False),
        ("Weitere Informationen: hier klicken", False),
        ("Sponsored", False),
    ],
)
def test_a_sentence_that_begins_like_a_link_to_more_is_text(line: str, stays: bool) -> None:
    doc = page(
        f"<h1>{NEWS}</h1><article>{TEXT}<p>{line}</p>{TEXT.replace('Part', 'Piece')}</article>"
    )
    assert (line in extract(doc, PageContext()).content.value) is stays
