"""Where our own reading would drop text that the library found: the causes, in made-up pages."""

from __future__ import annotations

import pytest

from evaluation.score_tables import predict
from newscrawler.extraction import generic
from newscrawler.extraction.document import Document
from tests.unit.extraction.story import HEAD, line, lines, paragraphs

URL = "https://www.example.com/news/bridge.html"


def content(body: str) -> list[str]:
    page = f"<html lang=en><head><title>{HEAD}</title></head><body>{body}</body></html>"
    found = predict("page", page.encode(), URL).get("content") or ""
    return found.split("\n\n")


@pytest.mark.parametrize("wrap", ["article", "main", "div"])
@pytest.mark.parametrize(
    "name", ["widget", "teaser", "share-block", "module promo", "item__comment", "info-box", "text"]
)
def test_a_text_in_parts_of_one_name_is_kept(name: str, wrap: str) -> None:
    """One element of that name which holds most of the text was kept before; four were not."""
    parts = "".join(f'<div class="{name}">{paragraphs(3, 3 * n)}</div>' for n in range(1, 5))
    body = f"<{wrap}><h1>{HEAD}</h1><div class=intro>{paragraphs(3)}</div>{parts}</{wrap}>"
    assert content(body) == lines(15)


def test_parts_that_each_stand_in_a_row_of_their_own() -> None:
    parts = "".join(
        f"<div class=row><div class=widget>{paragraphs(3, 3 * n)}</div></div>" for n in range(1, 5)
    )
    body = f"<article><h1>{HEAD}</h1><div class=intro>{paragraphs(3)}</div>{parts}</article>"
    assert content(body) == lines(15)


def test_teasers_of_one_name_are_no_text_however_many() -> None:
    teasers = "".join(
        f"<div class=teaser><p><a href=/news/{n}.html>The other story number {n} tells of what has"
        " happened elsewhere in the country today</a></p></div>"
        for n in range(9)
    )
    assert content(f"<article><h1>{HEAD}</h1>{paragraphs(5)}</article>{teasers}") == lines(5)


def test_a_notice_that_stands_in_many_places_is_no_text() -> None:
    notice = (
        "<div class=social-placeholder><p>External content is not shown, as your settings of"
        " privacy do not allow that it is loaded from another site.</p></div>"
    )
    body = "".join(f"<p>{line(n)}</p>{notice}" for n in range(8))
    assert content(f"<article><h1>{HEAD}</h1>{body}</article>") == lines(8)


def test_short_lines_behind_a_text_are_kept() -> None:
    """Verses or a list of names weigh nothing to our own scorer; the library has them all."""
    verses = [f"Bridge {n} is there" for n in range(10, 70)]
    held = "".join(f"<p>{verse}</p>" for verse in verses)
    body = (
        f"<div class=page><h1>{HEAD}</h1><div class=a>{paragraphs(6)}</div>"
        f"<div class=b>{held}</div></div>"
    )
    doc = Document(f"<html><body>{body}</body></html>".encode(), URL)
    assert verses[-1] in (generic.library_text(doc) or "")
    assert content(body) == [*lines(6), *verses]


@pytest.mark.parametrize("where", [0, 3, 7])
@pytest.mark.parametrize(
    "names",
    ["class=modal", "class=paywall", "class=c-dialog", "class=reg-wall", "class=piano-offer",
     "class=x9 role=dialog", "class=x9 aria-modal=true", "role=alertdialog"],
)  # fmt: skip
def test_an_offer_to_subscribe_that_is_laid_over_the_page_is_no_text(
    names: str, where: int
) -> None:
    offer = (
        f"<div {names}><h2>Subscribe to continue reading</h2><p>Already a subscriber? Log in to"
        " read this story and all others without limits today.</p><p>Get full access to our"
        " journalism for only one euro a week.</p></div>"
    )
    body = f"<h1>{HEAD}</h1>{paragraphs(where)}{offer}{paragraphs(7 - where, where)}"
    assert content(f"<article>{body}</article>") == lines(7)


@pytest.mark.parametrize("name", ["widget", "teaser", "share-block", "module promo", "info-box"])
def test_short_parts_between_long_ones_of_one_name_are_kept(name: str) -> None:
    """They were lost: the long parts were freed from their name, the short ones were not."""
    short = [f"Nobody knows it, says engineer {n}." for n in range(1, 5)]
    parts = "".join(
        f'<div class="{name}">{paragraphs(2, 2 * n)}</div><div class="{name}"><p>{one}</p></div>'
        for n, one in enumerate(short)
    )
    body = f"<article><h1>{HEAD}</h1>{parts}<div class='{name}'>{paragraphs(2, 8)}</div></article>"
    held = content(body)
    assert [one for one in held if one in short] == short
    assert [one for one in held if one not in short] == lines(10)


def test_short_boxes_of_links_between_long_parts_are_none() -> None:
    parts = "".join(
        f"<div class=widget>{paragraphs(2, 2 * n)}</div>"
        f"<div class=widget><a href=/news/{n}.html>What happened in town number {n}</a></div>"
        for n in range(4)
    )
    assert content(f"<article><h1>{HEAD}</h1>{parts}</article>") == lines(8)


def pictured(text: str, name: str = "k1") -> str:
    """A picture and a text in a box of their own, whose name says nothing."""
    return f"<div class={name}><img src=/i/1.jpg alt=''><div><p>{text}</p></div></div>"


SAID = (
    "Engineers of the city look at the bridge from the northern bank, on the day before it opens."
)


def test_a_caption_whose_name_says_nothing_is_no_text() -> None:
    body = f"{paragraphs(3)}{pictured(SAID)}{paragraphs(3, 3)}{pictured(SAID[::-1])}"
    assert content(f"<article><h1>{HEAD}</h1>{body}{paragraphs(3, 6)}</article>") == lines(9)


def test_a_text_beside_the_main_picture_may_be_the_summary() -> None:
    body = f"{pictured(line(0))}{paragraphs(8, 1)}"
    assert content(f"<article><h1>{HEAD}</h1>{body}</article>") == lines(9)


def test_a_gallery_tells_by_its_captions() -> None:
    body = paragraphs(1) + "".join(pictured(line(n)) for n in range(1, 9))
    assert content(f"<article><h1>{HEAD}</h1>{body}</article>") == lines(9)


def test_a_paragraph_that_holds_a_picture_with_others_is_text() -> None:
    part = f"<div class=k1><img src=/i/1.jpg alt=''>{paragraphs(2, 3)}</div>"
    body = f"{paragraphs(3)}{part}{paragraphs(4, 5)}"
    assert content(f"<article><h1>{HEAD}</h1>{body}</article>") == lines(9)


def test_a_row_of_a_table_with_a_picture_is_text() -> None:
    """A wiki's table of things: a small picture, a name, what it is."""
    rows = "".join(
        f"<tr><td><img src=/i/{n}.png alt=''></td><td>Thing {n}</td><td>A drink that is made of"
        f" fruit number {n}.</td></tr>"
        for n in range(1, 5)
    )
    body = f"{paragraphs(6)}<table>{rows}</table>{paragraphs(3, 6)}"
    held = content(f"<article><h1>{HEAD}</h1>{body}</article>")
    assert [one for one in held if one.startswith("Thing ")] == [
        f"Thing {n} A drink that is made of fruit number {n}." for n in range(1, 5)
    ]


def test_steps_that_each_have_a_picture_are_text() -> None:
    """A workshop's page: what is set as the other paragraphs are is no caption."""
    steps = "".join(f"<div class=k1><img src=/i/{n}.jpg alt=''>{line(n)}</div>" for n in (6, 7))
    texts = "".join(f"<div class=k1>{line(n)}</div>" for n in range(6))
    more = "".join(f"<div class=k1>{line(n)}</div>" for n in range(8, 12))
    assert content(f"<article><h1>{HEAD}</h1>{texts}{steps}{more}</article>") == lines(12)


def test_three_steps_in_a_row_are_text_however_they_are_set() -> None:
    steps = "".join(pictured(line(n)) for n in (5, 6, 7))
    body = f"{paragraphs(5)}{steps}{paragraphs(12, 8)}"
    assert content(f"<article><h1>{HEAD}</h1>{body}</article>") == lines(20)
