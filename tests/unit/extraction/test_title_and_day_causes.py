"""Causes of wrong titles and days on sites that nobody tuned for, each on a made-up page."""

from __future__ import annotations

import json
from typing import Any

import pytest

from newscrawler.extraction.context import PageContext
from newscrawler.extraction.document import Document
from newscrawler.extraction.extract import Extraction, extract
from tests.unit.extraction.story import HEAD, paragraphs

TEXT = paragraphs(6)
URL = "https://www.example.com/news/bridge.html"
#: A page whose statements name the site alone.
SITE = "<title>The Mill Post - News of all</title><meta property=og:title content='The Mill Post'>"


def read(head: str, body: str, url: str = URL) -> Extraction:
    page = f"<html lang=en><head>{head}</head><body>{body}</body></html>"
    return extract(Document(page.encode(), url), PageContext())


def day(head: str, body: str) -> str:
    found = read(head, f"<article><h1>{HEAD}</h1>{body}</article>").published.value
    return found.isoformat() if found is not None else ""


def stated(when: str) -> str:
    return f"<meta property=article:published_time content='{when}'>"


# ---------------------------------------------------------------- title
@pytest.mark.parametrize(
    "heading",
    [
        f"<h2>{HEAD}</h2>", f"<h3>{HEAD}</h3>", f"<div class=story-headline>{HEAD}</div>",
        f"<span itemprop=headline>{HEAD}</span>",
        f"<div class=headline><span><style>.a{{b:c}}</style>{HEAD}</span></div>",
    ],
)  # fmt: skip
def test_a_headline_that_is_no_h1_where_the_page_is_called_as_its_site(heading: str) -> None:
    assert read(SITE, f"{heading}{TEXT}").title.value == HEAD


def test_a_short_headline_that_statements_share_stays_where_no_heading_is() -> None:
    head = "<title>Snow in May</title><meta property=og:title content='Snow in May'>"
    assert read(head, f"<div>{TEXT}</div>").title.value == "Snow in May"


@pytest.mark.parametrize("sign", ["|", "-", "–", "»"])
def test_a_site_of_unknown_name_is_off_where_the_page_shows_the_rest(sign: str) -> None:
    for whole in (f"{HEAD} {sign} Evening Standard", f"Evening Standard {sign} {HEAD}"):
        body = f"<div class=x>{HEAD}</div>{TEXT}"
        assert read(f"<title>{whole}</title>", body).title.value == HEAD
    kept = f"{HEAD} {sign} what it means"  # the page shows it whole
    body = f"<div class=x>{kept}</div><div>{HEAD}</div>{TEXT}"
    assert read(f"<title>{kept}</title>", body).title.value == kept


@pytest.mark.parametrize(
    ("heading", "title"),
    [
        ("<h1><style>.a{color:red}</style>{}</h1>", HEAD),
        ("<h1><div><script>var a=1;</script>{}</div></h1>", HEAD),
        ("<h1>Bridge<span>: </span>council approves it</h1>", "Bridge: council approves it"),
        ("<h1><span>Bridge</span> <span>:</span> council agrees now</h1>", "Bridge: council agrees now"),
    ],
)  # fmt: skip
def test_what_spoils_the_text_of_a_heading(heading: str, title: str) -> None:
    page = heading.replace("{}", HEAD)
    assert read(f"<title>{title}</title>", f"{page}{TEXT}").title.value == title


TWO = "Bridge over the river: council approves it"
APART = TWO.replace(":", " :")


@pytest.mark.parametrize(
    ("heading", "statement", "title"),
    [
        (APART, TWO, TWO),
        (APART.replace(" :", "&nbsp;:"), TWO, TWO),
        (APART, APART, APART),  # its own text, as French writes it
        (TWO, APART, TWO),
    ],
)
def test_a_space_before_the_colon_that_a_statement_does_not_have(
    heading: str, statement: str, title: str
) -> None:
    head = (
        f"<title>{statement} | The Mill Post</title><meta property=og:title content='{statement}'>"
    )
    assert read(head, f"<h1>{heading}</h1>{TEXT}").title.value == title


def test_lines_of_a_heading_are_words_apart() -> None:
    lines = "Council approves<br>the bridge<br/>across the river"
    for head in ("", SITE, "<title>Council approves the bridge across the river</title>"):
        assert read(head, f"<h1>{lines}</h1>{TEXT}").title.value == lines.replace(
            "<br>", " "
        ).replace("<br/>", " ")


@pytest.mark.parametrize(
    ("heading", "title"),
    [
        ("<span class=kicker>Economy</span> {}", HEAD),
        ("<span class=kicker>Economy</span><span class=title>{}</span>", HEAD),
        ("<div class=topline>Mill town</div><div>{}</div>", HEAD),
        ("<span>Economy</span><span>{}</span>", f"Economy: {HEAD}"),  # nothing calls it a kicker
    ],
)
def test_a_kicker_that_no_statement_knows_and_its_class_calls_so(heading: str, title: str) -> None:
    for head in (SITE, "<title>Home</title>", ""):
        assert read(head, f"<h1>{heading.replace('{}', HEAD)}</h1>{TEXT}").title.value == title
    known = f"<title>Economy: {HEAD}</title>"  # both lines are its name
    heading = f"<h1>{heading.replace('{}', HEAD)}</h1>"
    assert HEAD in (read(known, heading + TEXT).title.value or "")


WIDE = "橋の工事が始まる\u3000市議会が承認"


def test_an_ideographic_space_is_a_space() -> None:
    plain = WIDE.replace("\u3000", " ")
    for statement in (WIDE, plain):
        found = read(f"<title>{statement}</title>", f"<h1>\u3000{WIDE}</h1>{TEXT}")
        assert found.title.value == plain
    assert read(f"<title>{WIDE}</title>", TEXT).title.value == plain


def test_a_site_behind_an_ideographic_space_alone() -> None:
    site = "<meta property=og:site_name content=毎朝新聞>"
    for body in (f"<h1>{WIDE}</h1>", ""):
        found = read(f"{site}<title>{WIDE}\u3000毎朝新聞</title>", body + TEXT)
        assert found.title.value == WIDE.replace("\u3000", " ")


# ---------------------------------------------------------------- day
@pytest.mark.parametrize(
    ("written", "when"),
    [
        ("2024-03-05T23:15:0Z", "2024-03-05T23:15:00+00:00"),
        ("2024-03-05T9:5:0Z", "2024-03-05T09:05:00+00:00"),
        ("2024-03-05T9:05:7+01:00", "2024-03-05T09:05:07+01:00"),
    ],
)
def test_figures_that_a_machine_did_not_fill_up(written: str, when: str) -> None:
    assert day(stated(written), TEXT) == when


def test_the_name_of_the_meta_element_with_a_second_colon() -> None:
    head = "<meta property=article:published:time content='2024-03-05T09:15:00+01:00'>"
    assert day(head, TEXT) == "2024-03-05T09:15:00+01:00"


@pytest.mark.parametrize(
    "embedded",
    [
        "<blockquote class=instagram-media><p>A post shared by X on <time"
        " datetime='2024-01-09T10:00:00+00:00'>Jan 9, 2024 at 2:00am PST</time></p></blockquote>",
        "<blockquote class=twitter-tweet><p>This is it</p><a href=https://x.example/1>January 9,"
        " 2024</a></blockquote>",
        "<div itemprop=review itemscope itemtype=https://schema.org/Review>"
        "<meta itemprop=datePublished content=2024-04-09><p>Good</p></div>",
        "<div class=comments><div class=comment><time datetime=2024-04-09T10:00:00Z>April 9</time>"
        "<p>I think so</p></div></div>",
    ],
)
def test_an_embedded_post_a_review_and_a_comment_have_days_of_their_own(embedded: str) -> None:
    assert day("", f"<p>Tuesday, 5 March 2024</p>{TEXT}{embedded}").startswith("2024-03-05")


def test_a_review_s_own_day_is_the_page_s() -> None:
    body = (
        "<div itemscope itemtype=https://schema.org/Review>"
        f"<meta itemprop=datePublished content=2024-04-09><h1>{HEAD}</h1>{TEXT}</div>"
    )
    assert str(read("", body).published.value).startswith("2024-04-09")


@pytest.mark.parametrize(
    "clock",
    [
        "<header><div class=date>Sunday, November 22, 2026</div></header>",
        "<div id=topbar><span class=current-date>22 November 2026 22:10</span></div>",
    ],
)
def test_today_in_the_header_of_a_site(clock: str) -> None:
    body = f"{clock}<article><h1>{HEAD}</h1><p>5 March 2024</p>{TEXT}</article>"
    assert str(read("", body).published.value).startswith("2024-03-05")


@pytest.mark.parametrize(
    ("shown", "when"),
    [
        ("6 March 2024 06:30", "2024-03-06T06:30:00+07:00"),
        ("5 March 2024, 18:30", "2024-03-05T18:30:00-05:00"),
        ("5 March 2024, 23:30", "2024-03-05T23:30:00+00:00"),  # it is UTC that is shown
        ("6 March 2024 06:41", "2024-03-05T23:30:00+00:00"),  # another minute: another time
    ],
)
def test_utc_beside_the_clock_that_is_shown(shown: str, when: str) -> None:
    body = f"<p class=date>{shown}</p>{TEXT}"
    assert day(stated("2024-03-05T23:30:00Z"), body) == when


def test_a_day_in_brackets_begins_the_text() -> None:
    assert day("", f"<p>(5 March 2024) The council has met again.</p>{TEXT}").startswith(
        "2024-03-05"
    )


@pytest.mark.parametrize(
    "shown",
    [
        "March 5, 2024 9:15 PM", "March 5, 2024, 9:15 p.m.", "Mar 5, 2024 9:15PM",
        "Mar 5, 2024 <span>9:15</span> <span>PM</span>", "9:15 PM, March 5, 2024",
        "9:15 PM | March 5, 2024",
    ],
)  # fmt: skip
def test_the_afternoon_is_not_lost(shown: str) -> None:
    assert day("", f"<p class=date>{shown}</p>{TEXT}").startswith("2024-03-05T21:15")


@pytest.mark.parametrize(
    "empty",
    ["1970-01-01T00:00:00Z", "0001-01-01T00:00:00", "1969-12-31T19:00:00-05:00", "2001-01-01"],
)
def test_a_placeholder_is_no_date(empty: str) -> None:
    data: dict[str, Any] = {"@type": "NewsArticle", "headline": HEAD, "datePublished": empty}
    held = f"<script type='application/ld+json'>{json.dumps(data)}</script>"
    for head in (stated(empty), held):
        assert day(head, f"<p class=date>March 5, 2024</p>{TEXT}").startswith("2024-03-05")
