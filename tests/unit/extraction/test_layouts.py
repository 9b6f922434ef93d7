"""Layouts in which text, headline or date stand in unusual places, in made-up pages."""

from __future__ import annotations

import pytest

from evaluation.score_tables import predict
from newscrawler.extraction.context import PageContext
from newscrawler.extraction.document import Document
from newscrawler.extraction.extract import Extraction, extract
from tests.unit.extraction.story import HEAD, line, lines, paragraphs


def read(
    body: str,
    head: str = f"<title>{HEAD}</title>",
    url: str = "https://www.example.com/news/bridge.html",
) -> Extraction:
    return extract(
        Document(f"<html lang=en><head>{head}</head><body>{body}</body></html>".encode(), url),
        PageContext(),
    )


def content(body: str) -> list[str]:
    found = read(f"<h1>{HEAD}</h1>{body}").content.value
    return [] if found is None else found.split("\n\n")


def test_a_row_of_a_table_is_one_line() -> None:
    table = (
        "<table><tr><th>Pos.</th><th>Driver</th><th>Points</th></tr>"
        "<tr class='odd player-2020-17'><td>1</td><td>Jane Doe</td><td>5040</td></tr>"
        "<tr><td>2</td><td>John Roe</td><td>5035</td></tr></table>"
    )
    found = content(f"<article>{paragraphs(4)}{table}{paragraphs(4, 4)}</article>")
    assert found == [
        *lines(4),
        "Pos. Driver Points",
        "1 Jane Doe 5040",
        "2 John Roe 5035",
        *lines(4, 4),
    ]


def test_a_table_that_lays_out_the_page_is_no_row() -> None:
    assert content(f"<table><tr><td>Menu</td><td>{paragraphs(6)}</td></tr></table>") == lines(6)


def test_teasers_behind_the_title_of_a_box_are_off() -> None:
    teasers = "".join(
        f"<table><tr><td><a href=/{n}.html>Another story of this very day</a></td></tr></table>"
        f"<div class=n1><div>The other story number {n} tells of something that has happened elsewhere today.</div></div>"
        for n in range(3)
    )
    body = f"<div><div class=w><div class=x>{paragraphs(7)}</div></div><div class=q>Related links:</div>{teasers}</div>"
    assert content(body) == lines(7)


def test_byline_behind_the_lead_is_off() -> None:
    assert content(f"<div><p>{line(0)}</p><p>By Jane Doe</p>{paragraphs(5, 1)}</div>") == lines(6)


@pytest.mark.parametrize(
    "clutter",
    [
        "<x-inline-teaser><p>More on the bridge and on the river can be read in the other story.</p></x-inline-teaser>",
        "<div class=news-letter-section><p>News and tips of every day, many exciting topics for you.</p></div>",
        "<p class=imagecaption_wide>The bridge as it will look from the market, in a drawing of the city.</p>",
        "<div class=editorial-disclosure><p>This post has references to products of one of our partners.</p></div>",
        "<p>All about the other bridges you will <a href=/b>find it here</a>.</p>",
        "<p>Want more? <a href=/n>Sign up</a> for our newsletter and get the best stories in your inbox every week.</p>",
    ],
)
def test_clutter_between_paragraphs_is_off(clutter: str) -> None:
    assert content(f"<article>{paragraphs(4)}{clutter}{paragraphs(4, 4)}</article>") == lines(8)


def test_a_newsletter_may_be_what_the_article_is_about() -> None:
    about = "The council said that people can sign up for a newsletter about the bridge in spring."
    assert about in content(f"<article>{paragraphs(4)}<p>{about}</p>{paragraphs(4, 4)}</article>")


def test_the_firm_describes_itself_behind_its_press_release() -> None:
    firm = "<h3>About Example Bridges</h3><p>Example Bridges is a leading maker of bridges with offices in two cities.</p>"
    assert content(f"<article>{paragraphs(8)}{firm}</article>") == lines(8)
    chapter = "<h3>About the river</h3>" + paragraphs(6, 8)
    assert content(f"<article>{paragraphs(8)}{chapter}</article>") == [
        *lines(8),
        "About the river",
        *lines(6, 8),
    ]


def test_noscript_closed_out_of_order_does_not_swallow_the_page() -> None:
    found = read(
        f"<noscript><div id=nojs></noscript><div class=page><h1>{HEAD}</h1>{paragraphs(12)}</div>"
    )
    assert found.content.value == "\n\n".join(lines(12))
    assert found.title.value == HEAD


def test_an_author_box_above_the_text_is_no_summary() -> None:
    box = "<div class='row author-box'><div class=description><p>Jane Doe heads the desk and has studied the rivers.</p></div></div>"
    assert content(f"<p>{line(0)}</p>{box}<div>{paragraphs(6, 1)}</div>")[-6:] == lines(6, 1)
    assert "heads the desk" not in "\n".join(content(f"{box}<div>{paragraphs(6)}</div>"))


@pytest.mark.parametrize(
    "heading",
    ["<h2>{}</h2>", "<h4>{}</h4>", "<div class=news_title>{}</div>", "<div class=tieude>{}</div>"],
)
def test_headline_above_the_text_where_the_page_is_called_as_its_section(heading: str) -> None:
    body = f"<h1>Offers</h1><h2>Upcoming events</h2><div>{heading.format(HEAD)}<p>May 3, 2024</p>{paragraphs(6)}</div>"
    assert read(body, "<title>Traffic news</title>").title.value == HEAD


def test_a_headline_that_is_confirmed_stays() -> None:
    body = f"<h1>{HEAD}</h1><div><h2>What is going to happen until then</h2>{paragraphs(6)}</div>"
    assert read(body).title.value == HEAD


@pytest.mark.parametrize(
    ("heading", "stated", "title"),
    [
        (
            "Two arrested on 19/10 at the border of the town",
            "Two arrested on",
            "Two arrested on 19/10 at the border of the town",
        ),
        ("Council approves bridge 3.5.2024", "Council approves bridge", "Council approves bridge"),
        ("Council approves bridge 12:30", "Council approves bridge", "Council approves bridge"),
        ("Council approves bridge | Traffic", "Council approves bridge", "Council approves bridge"),
    ],
)
def test_what_stands_behind_the_headline(heading: str, stated: str, title: str) -> None:
    assert (
        read(f"<h1>{heading}</h1>{paragraphs(6)}", f"<title>{stated}</title>").title.value == title
    )


@pytest.mark.parametrize(
    ("host", "day"),
    [("example.ph", "2024-05-03"), ("example.ca", "2024-05-03"), ("example.com.au", "2024-03-05")],
)
def test_english_month_first_where_the_country_writes_so(host: str, day: str) -> None:
    body = f"<h1>{HEAD}</h1><p class=date>05/03/2024</p>{paragraphs(6)}"
    found = read(body, url=f"https://www.{host}/bridge.html").published.value
    assert found is not None and found.date().isoformat() == day


def test_utc_is_shown_on_the_clock_of_the_country() -> None:
    head = f"<title>{HEAD}</title><meta property='article:published_time' content='2024-05-04T01:10:00Z'>"
    found = read(
        f"<h1>{HEAD}</h1>{paragraphs(6)}", head, "https://www.example.ca/bridge.html"
    ).published.value
    assert found is not None and found.isoformat() == "2024-05-03T21:10:00-04:00"


def test_a_day_without_an_hour_is_scored_as_it_is_stored() -> None:
    page = f"<html lang=de><title>{HEAD}</title><h1>{HEAD}</h1><p class=date>3. Mai 2024</p>{paragraphs(6)}</html>"
    assert (
        predict("x", page.encode(), "https://www.example.de/a.html")["published"]
        == "2024-05-03T00:00:00+02:00"
    )


def test_a_given_name_that_links_to_its_page_is_an_author() -> None:
    byline = "<span class=documentAuthor>posted by <a href='https://www.example.com/author/jane'>Jane</a> &mdash;</span>"
    assert read(f"<h1>{HEAD}</h1>{byline}{paragraphs(6)}").authors.value == ["Jane"]
