"""Names that say how a box looks or what made it, boxes that are foreign whatever they
hold; made-up pages."""

from __future__ import annotations

import json

import pytest

from newscrawler.extraction.context import PageContext
from newscrawler.extraction.document import Document
from newscrawler.extraction.extract import Extraction, extract
from tests.unit.extraction.story import HEAD, lines, paragraphs


def read(body: str, head: str = "") -> Extraction:
    page = f"<html lang=en><head><title>{HEAD}</title>{head}</head><body>{body}</body></html>"
    return extract(
        Document(page.encode(), "https://www.example.com/news/bridge.html"), PageContext()
    )


def content(body: str, heading: str = f"<h1>{HEAD}</h1>") -> list[str]:
    found = read(heading + body).content.value
    return [] if found is None else found.split("\n\n")


@pytest.mark.parametrize(
    "names",
    [
        "elementor-element elementor-widget elementor-widget-text-editor",
        "clearfix text-formatted field field--name-field-text field--label-hidden field__item",
        "text overflow-hidden",
        "row hidden-xs",
        "post-7 post type-post status-publish format-standard hentry category-promo tag-cookies tag-newsletter",
    ],
)
def test_styling_and_tags_of_a_part_do_not_take_it_away(names: str) -> None:
    """Each part is less than the share of the text that protects any element."""
    parts = "".join(f"<div class='{names}'>{paragraphs(2, 2 * n)}</div>" for n in range(5))
    assert content(f"<main><div class=all>{parts}</div></main>") == lines(10)


@pytest.mark.parametrize(
    "names",
    [
        "elementor-widget elementor-widget-share-buttons",
        "saboxplugin-wrap",
        "author-text",
        "related-field field--label-hidden",
    ],
)
def test_a_box_is_one_whatever_made_it(names: str) -> None:
    box = f"<div class='{names}'><p>This box says something else that nobody who reads of the bridge has asked for.</p></div>"
    assert content(f"<article>{paragraphs(4)}{box}{paragraphs(4, 4)}</article>") == lines(8)


def test_an_anchor_of_the_table_of_contents_names_no_box() -> None:
    parts = "".join(f"<div id=TOC_TITLE_{n}>{paragraphs(2, 2 * n)}</div>" for n in range(5))
    assert content(f"<article>{parts}</article>") == lines(10)


@pytest.mark.parametrize(
    "box",
    [
        "<div id='onetrust-consent-sdk'>{}</div>",
        "<div class='cookie-banner'>{}</div>",
        "<div class='sp-dsgvo sp-dsgvo-popup-overlay'>{}</div>",
        "<section id=comments>{}</section>",
        "<div class='sect_commentlinks'><h1>Readers</h1>{}</div>",
        "<ul class=commentlist>{}</ul>",
        "<div class='column sidebar'>{}</div>",
    ],
)
def test_consent_and_comments_are_off_even_where_they_hold_most_of_the_text(box: str) -> None:
    words = "".join(
        f"<p>{'We and our partners or readers say this and that at length. ' * 6}{n}</p>"
        for n in range(20)
    )
    assert content(f"<div class=story>{paragraphs(5)}</div>{box.format(words)}") == lines(5)


def test_a_page_that_is_called_after_its_comments_keeps_its_text() -> None:
    """The wrapper's class names the box, and holds the headline."""
    assert content(f"<div class='page comments'><h1>{HEAD}</h1>{paragraphs(6)}</div>", "") == lines(
        6
    )


def test_a_page_of_nothing_but_a_thread_keeps_it() -> None:
    assert content(f"<div id=comments>{paragraphs(6)}</div>", "") == lines(6)


def test_soft_hyphens_do_not_part_the_two_readings() -> None:
    words = [
        text.replace("council", "coun\xadcil").replace("bridge", "bri\xaddge") for text in lines(6)
    ]
    found = read(
        f"<h1>{HEAD}</h1><article>{''.join(f'<p>{w}</p>' for w in words)}</article>"
    ).content
    assert found.value == "\n\n".join(lines(6))
    assert found.origin == "generic:vote"
    assert found.confidence > 0.8


def test_how_a_word_is_read_is_not_read_twice() -> None:
    bare, marked = (
        "<ruby>漢字<rt>かんじ</rt></ruby>",
        "<ruby>橋<rp>（</rp><rt>はし</rt><rp>）</rp></ruby>",
    )
    text = f"市議会は{bare}の新しい{marked}を川に架けることを決めたと発表した。工事は来年の春に始まり三年かかる見込みだ。"
    found = "\n".join(content(f"<article>{f'<p>{text}</p>' + paragraphs(3)}</article>"))
    assert "市議会は漢字の新しい橋（はし）を川に" in found


def test_a_sentence_in_angle_quotes_does_not_lead_away() -> None:
    quoted = "»How do I get them to ask questions about a bridge?«"
    assert content(f"<article>{paragraphs(3)}<p>{quoted}</p>{paragraphs(3, 3)}</article>") == [
        *lines(3),
        quoted,
        *lines(3, 3),
    ]
    assert content(
        f"<article>{paragraphs(3)}<p>» All about bridges</p>{paragraphs(3, 3)}</article>"
    ) == lines(6)


def test_the_standfirst_in_the_header_of_the_headline_is_kept() -> None:
    lead = "Risks are not only those of building, but also those of doing nothing for another twenty years."
    header = f"<header><h1>{HEAD}</h1><h2>{lead}</h2></header>"
    assert content(f"<article>{header}{paragraphs(6)}</article>", "") == [lead, *lines(6)]


def test_a_second_heading_that_says_the_title_again_is_no_lead() -> None:
    heading = f"<h1>{HEAD}</h1><h2>Town news: {HEAD}, as was expected</h2>"
    assert content(f"<article>{paragraphs(6)}</article>", heading) == lines(6)


def test_a_lead_above_a_line_that_repeats_the_headline_is_kept() -> None:
    lead = "The council has met on Monday, and for once all of its members have been of one mind about the matter."
    above = f"<h1>{HEAD}</h1><p>{lead}</p><div>by Jane Doe</div><div><a href=/x>{HEAD}</a></div>"
    assert content(f"<div>{above}</div><article>{paragraphs(6)}</article>", "") == [lead, *lines(6)]


def test_a_quotation_in_a_figure_is_text() -> None:
    quote = (
        "The river has parted us for a hundred years, and nobody who lives here will miss the ferry. "
        * 3
    )
    figure = f"<figure><blockquote><p>{quote}</p></blockquote><figcaption>The mayor</figcaption></figure>"
    assert content(f"<article>{paragraphs(4)}{figure}{paragraphs(4, 4)}</article>") == [
        *lines(4),
        quote.strip(),
        *lines(4, 4),
    ]


def test_text_that_script_shows_in_place_of_a_noscript() -> None:
    rest = "".join(
        f"<li><a href=/{n}.html>An older post that has the number {n} in the archive</a></li>"
        for n in range(90)
    )
    assert content(
        f"<div class=post><noscript>{paragraphs(12)}</noscript></div><ul id=archive>{rest}</ul>"
    ) == lines(12)


# ---------------------------------------------------------------- text in scripts alone
def stream(markup: str) -> str:
    """As a framework streams it: a string of JSON in a call."""
    held = json.dumps(json.dumps({"title": HEAD, "contentHtml": markup})).replace("<", "\\u003c")
    return f"<main></main><script>self.__stream.push([1,{held}])</script>"


def test_markup_in_a_script_is_the_text_of_a_page_without_any() -> None:
    picture = (
        "<figure><img src=a.jpg><figcaption><p>The mayor at the river.</p></figcaption></figure>"
    )
    found = read(
        stream(f"<div class=box>{picture}</div>{paragraphs(3)}$$AD1$${paragraphs(3, 3)}")
    ).content
    assert found.value == "\n\n".join(lines(6))
    assert found.origin == "script:markup"


def test_several_posts_in_a_script_are_no_text() -> None:
    other = "".join(
        f"<p>Quite another story of number {n}, which says nothing of any bridge at all.</p>"
        for n in range(6)
    )
    assert read(stream(paragraphs(6)) + stream(other)).content.value is None


def test_markup_in_a_script_does_not_replace_the_page_s_own() -> None:
    other = "".join(
        f"<p>Quite another story of number {n}, which says nothing of any bridge at all.</p>"
        for n in range(9)
    )
    assert content(f"<article>{paragraphs(6)}</article>{stream(other)}") == lines(6)


# ---------------------------------------------------------------- inside a line; behind a press release
@pytest.mark.parametrize(
    "inside",
    [
        "<span class=sr-only>(opens in a new window)</span>",
        "<span class='tooltip-content'>A body of the town that meets on Mondays</span>",
        "<span class='rollover-people-block'><b>Jane Doe</b> Other stories of hers</span>",
        "<span style='display: none'>never shown to anybody</span>",
        "<span hidden>never shown to anybody</span>",
    ],
)
def test_what_a_line_does_not_show_is_no_part_of_it(inside: str) -> None:
    said = "The council{} has said about the bridge that it will be paid for by the town and by nobody else."
    body = f"<article>{paragraphs(3)}<p>{said.format(inside)}</p>{paragraphs(3, 3)}</article>"
    assert content(body) == [*lines(3), said.format(""), *lines(3, 3)]


def test_a_term_with_a_mark_of_its_own_stays_in_its_line() -> None:
    said = "The <span class='glossary-term'>council</span> has said that the bridge will be paid for by the town and by nobody else."
    assert "The council has said that" in "\n".join(
        content(f"<article>{paragraphs(3)}<p>{said}</p>{paragraphs(3, 3)}</article>")
    )


FIRM = (
    "<p>Acme Bridges is a leading provider of steel bridges and of all that belongs to them in forty countries.</p>"
    "<p>Acme Bridges is headquartered in Baden, and employs 1,300 people. Its shares are listed in Zurich.</p>"
)


def test_a_firm_that_describes_itself_behind_its_news_is_off_without_a_heading() -> None:
    assert content(f"<article>{paragraphs(7)}{FIRM}</article>") == lines(7)


def test_an_article_about_a_firm_keeps_what_it_is() -> None:
    found = content(f"<article>{paragraphs(4)}{FIRM}{paragraphs(7, 4)}</article>")
    assert len(found) == 13
    assert found[4].startswith("Acme Bridges is a leading provider")


@pytest.mark.parametrize(
    "title", ["Pressekontakt:", "Media contact", "Rückfragehinweis:", "Liên hệ báo chí:"]
)
def test_whom_the_press_may_ask_is_off(title: str) -> None:
    contact = f"<p>{title}</p><p>Jane Doe, press office of the council, telephone 040 374709, extension 40.</p>"
    assert content(f"<article>{paragraphs(7)}{contact}</article>") == lines(7)
