"""Who wrote it where no element is marked as author's: lines, accounts, sources, other people's
names. Pages of our own."""

from __future__ import annotations

import json

import pytest

from newscrawler.extraction.context import PageContext
from newscrawler.extraction.document import Document
from newscrawler.extraction.extract import extract

URL = "https://www.example.com/region/story-1.html"
NEWS = "Harbour bridge reopens after nine months of repair"
PARAGRAPH = "The ferry company said that it would keep its boats running until the end of the month for all commuters."
TEXT = "".join(f"<p>{PARAGRAPH} Part {i}.</p>" for i in range(6))


def both(body: str, head: str = "", lang: str = "en") -> tuple[list[str], list[str]]:
    """Authors and credits of a page."""
    html = f"<html lang={lang}><head>{head}</head><body>{body}</body></html>"
    found = extract(Document(html.encode(), URL), PageContext())
    return found.authors.value, found.credits.value


@pytest.mark.parametrize(
    ("byline", "people"),
    [
        ("<p class=author>Mới đây</p>", []),
        ("<p>Von Zu billig</p>", []),  # a small word that names have is no name beside another small one
        ("<p>Von Ludwig van Beethoven</p>", ["Ludwig van Beethoven"]),
        ("<p class=author>[田中宏昌，PaperToday]</p>", ["田中宏昌"]),
        ("<p class=author>この記事を書いた人 渡辺洋介 専門・関心分野 戦争、平和、核問題、東日本大震災、防災、医療</p>", []),
        ("<p>by <span class='author vcard fn'>oz</span> on <abbr class=published>December 4, 2006</abbr></p>", ["oz"]),
        ("<div class='row footerRow'><div class=documentByLine><span class=documentAuthor>by <a href=/author/jo>Joanna</a></span></div></div>", ["Joanna"]),
    ],
)  # fmt: skip
def test_what_is_a_name(byline: str, people: list[str]) -> None:
    assert both(f"<h1>{NEWS}</h1>{byline}{TEXT}")[0] == people


def test_a_translator_is_not_the_author() -> None:
    byline = (
        "<div class=author><p>Autor <span>Mark Newton:</span></p>"
        "<p>Übersetzung <a href=/author/sarah>Sarah Jungblut</a>, 12.12.22</p></div>"
    )
    assert both(f"<h1>{NEWS}</h1>{byline}{TEXT}", lang="de")[0] == ["Mark Newton"]
    alone = "<div class=author><a href=/author/sarah>Sarah Jungblut</a></div>"
    assert both(f"<h1>{NEWS}</h1>{alone}{TEXT}", lang="de")[0] == ["Sarah Jungblut"]


def test_who_made_the_template_is_not_the_author() -> None:
    byline = "<aside class=author-meta><a rel=author href=/author/h>Harald Bauer</a></aside>"
    page_author = json.dumps(
        {
            "@graph": [
                {"@type": "WebPage", "name": NEWS, "author": {"@id": "#h"}},
                {"@type": ["Person"], "@id": "#h9", "name": "Harald Bauer"},
            ]
        }
    ).replace('"#h"', '"#h9"')
    head = f'<script type="application/ld+json">{page_author}</script>'
    for maker in ("Peter Amende and Fox designed", "Frank Smith - http://smith.example"):
        meta = f'<meta name=author content="{maker}">'
        assert both(f"<h1>{NEWS}</h1>{TEXT}", meta)[0] == []
        assert both(f"<h1>{NEWS}</h1>{TEXT}{byline}", meta + head)[0] == ["Harald Bauer"]


def test_a_comment_in_an_article_element_of_its_own_is_not_the_article() -> None:
    comments = "".join(
        f"<li class=comment><article id=comment-{i} class=comment-body><span class=author>{who}</span>"
        f"<p>I think so too.</p></article></li>"
        for i, who in enumerate(("Chris Anaman", "Sabrina Kay"), 939)
    )
    assert both(f"<h1>{NEWS}</h1><article>{TEXT}</article><ol>{comments}</ol>")[0] == []


def test_a_wire_service_in_the_place_of_the_author_is_a_credit() -> None:
    assert both(f"<h1>{NEWS}</h1><p class=author>ERBOL</p>{TEXT}") == ([], ["ERBOL"])
    head = f"<header><h1>{NEWS}</h1><p class=credit>JIJI</p></header>"
    assert both(f"<article>{head}{TEXT}</article>") == ([], ["JIJI"])
    picture = (
        f"<header><h1>{NEWS}</h1><figure><img src=a.jpg><p class=credit>JIJI</p></figure></header>"
    )
    assert both(f"<article>{picture}{TEXT}</article>") == ([], [])


@pytest.mark.parametrize(
    ("byline", "credit"),
    [
        ("By Jane Doe and John Roe, NDR", ["NDR"]),
        ("By Jane Doe and John Roe, PhD", []),
        ("By Jane Doe and John Roe, CEO", []),
    ],
)
def test_a_body_in_capitals_behind_the_people(byline: str, credit: list[str]) -> None:
    assert both(f"<h1>{NEWS}</h1><p class=author>{byline}</p>{TEXT}") == (
        ["Jane Doe", "John Roe"],
        credit,
    )


SITE = "<meta property='og:site_name' content='Wochenblatt'>"


@pytest.mark.parametrize(
    ("line", "credit"),
    [
        ("<p>Quelle: kathpress</p>", ["kathpress"]),
        ("<p>Wochenblatt / Última Hora</p>", ["Última Hora"]),
        ("<p>Theo TTXVN</p>", ["TTXVN"]),
        ("<p>(Theo Tuổi Trẻ)</p>", ["Tuổi Trẻ"]),
        ("<p>Nguồn: VietnamPlus</p>", ["VietnamPlus"]),
        ("<p>Theo đó, anh bị phạt.</p>", []),  # "accordingly ..."
        ("<p>Theo Bộ Y tế, dịch đã giảm.</p>", []),  # "according to the ministry ..."
        ("<p>Theo dõi chúng tôi</p>", []),
        ("<p>Nguồn: Internet</p>", []),
        ("<figure><figcaption>Quelle: dpa</figcaption></figure>", []),
        ("<p>Beirut / Paris</p>", []),
    ],
)
def test_the_source_behind_the_text_is_a_credit_where_nobody_signs(
    line: str, credit: list[str]
) -> None:
    assert both(
        f"<h1>{NEWS}</h1><div>{TEXT}{line}</div><ul><li><a href=/b>Share</a></li></ul>", SITE
    ) == ([], credit)
    assert (
        both(f"<h1>{NEWS}</h1><div>{line}{TEXT}</div>", SITE)[1] == []
    )  # above the text it is no source of it
    assert both(f"<h1>{NEWS}</h1><p class=author>Jane Doe</p><div>{TEXT}{line}</div>", SITE) == (
        ["Jane Doe"],
        [],
    )


def test_the_source_stands_beside_the_site_that_the_page_states() -> None:
    head = SITE + "<meta name=author content=Wochenblatt>"
    assert both(f"<h1>{NEWS}</h1><div>{TEXT}<p>Bron: Belga</p></div>", head) == (
        [],
        ["Wochenblatt", "Belga"],
    )


def test_a_teaser_s_date_and_rubric_are_no_byline() -> None:
    teaser = "<div>04/05/2022 Regional Football</div><div><a href=/n>The club flies to Peru with a small squad</a></div>"
    assert both(f"<h1>{NEWS}</h1><div>{TEXT}</div>{teaser}")[0] == []
    assert both(f"<h1>{NEWS}</h1><div>04/05/2022 Jane Doe</div><div>{TEXT}</div>")[0] == [
        "Jane Doe"
    ]


def test_an_explanation_in_brackets_is_not_cut_at_its_and() -> None:
    byline = "<p class=author>Empa (Swiss Laboratories for Materials and Technology)</p>"
    assert both(f"<h1>{NEWS}</h1>{byline}{TEXT}")[0] in ([], ["Empa"])
