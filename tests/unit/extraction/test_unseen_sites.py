"""What pages of sites that no rule was made with taught: titles, dates, names. Pages of our
own in their shapes."""

from __future__ import annotations

import json

import pytest

from newscrawler.extraction import published, title
from newscrawler.extraction.author_choice import find as author_find
from newscrawler.extraction.context import PageContext
from newscrawler.extraction.document import Document
from newscrawler.extraction.extract import extract

URL = "https://www.example.com/region/story-1.html"
NEWS = "Harbour bridge reopens after nine months of repair"
PARAGRAPH = "The ferry company said that it would keep its boats running until the end of the month for all commuters."
TEXT = "".join(f"<p>{PARAGRAPH} Part {i}.</p>" for i in range(6))


def page(body: str, head: str = "", url: str = URL, lang: str = "en") -> Document:
    return Document(
        f"<html lang={lang}><head>{head}</head><body>{body}</body></html>".encode(), url
    )


def meta(name: str, content: str) -> str:
    return f'<meta name="{name}" content="{content}">'


def ld(**values: object) -> str:
    return f'<script type="application/ld+json">{json.dumps({"@type": "NewsArticle", **values})}</script>'


# ---------------------------------------------------------------- headline
@pytest.mark.parametrize(
    "front", ["https://www.example.com/harbour/", "/harbour", "http://www.example.com/harbour"]
)
def test_the_front_of_a_blog_in_a_folder_is_no_headline(front: str) -> None:
    head = "<title>Quiet harbour days » Blog Archive » Standing tall</title>"
    body = f"<h1><a href='{front}'>Quiet harbour days</a></h1><h2><a href=/harbour/2013/standing>Standing tall</a></h2>"
    found = title.find(page(body + TEXT, head, "https://www.example.com/harbour/2013/standing/"))
    assert found.value == "Standing tall"


def test_a_headline_that_links_to_itself_is_one() -> None:
    url = "https://www.example.com/harbour/2013/"
    doc = page(f"<h1><a href='{url}'>{NEWS}</a></h1>{TEXT}", f"<title>{NEWS} – Days</title>", url)
    assert title.find(doc).value == NEWS


@pytest.mark.parametrize(
    ("stated", "expected"),
    [
        (f"{NEWS} - example.com - The port's own paper", NEWS),
        (f"{NEWS} | Example | Region", NEWS),
        (f"Region - Example - {NEWS}", f"Region - Example - {NEWS}"),
        ("In «Port»: – boats", "In «Port»: – boats"),
    ],
)
def test_the_slogan_behind_the_site_s_name(stated: str, expected: str) -> None:
    assert title.cut_site(stated, ["example.com", "example"]) == expected


def test_channel_and_site_behind_underscores() -> None:
    assert (
        title.clean("海外留学生看两会：关注点大不同_教育频道_中国青年网")
        == "海外留学生看两会：关注点大不同"
    )


def test_a_headline_s_class_in_another_language() -> None:
    body = f"<div class=fecha>Lunes</div><div class=titulo>{NEWS}</div>{TEXT}"
    found = title.find(
        page(body, f"<title>{NEWS} ::: La casa de todos los puertos</title>", lang="es")
    )
    assert (found.value, found.origin) == (NEWS, "generic:class")


# ---------------------------------------------------------------- date
def iso(doc: Document) -> str | None:
    stamp = published.find(doc, PageContext()).published
    return stamp.when.value.isoformat() if stamp else None


def test_a_local_clock_beside_its_copy_labelled_utc() -> None:
    copy = meta("article:modified_time", "2019-10-11T16:43:20+00:00") + meta(
        "x", "2019-10-11T16:43:20+02:00"
    )
    doc = page(
        f"<h1>{NEWS}</h1>{TEXT}", meta("article:published_time", "2019-10-11T16:43:20+00:00") + copy
    )
    assert iso(doc) == "2019-10-11T16:43:20+02:00"


def test_a_clock_without_zone_takes_the_offset_that_it_stands_with_elsewhere() -> None:
    head = ld(datePublished="2017-11-03 03:01:00.000") + meta(
        "publication", "2017-11-03T03:01:00-04:00"
    )
    assert iso(page(f"<h1>{NEWS}</h1>{TEXT}", head)) == "2017-11-03T03:01:00-04:00"
    assert (
        iso(page(f"<h1>{NEWS}</h1>{TEXT}", ld(datePublished="2017-11-03 03:01:00")))
        == "2017-11-03T03:01:00+00:00"
    )


def test_the_day_that_is_shown_comes_before_the_one_in_the_address() -> None:
    at = "2015-11-13T07:40:07+0000"
    body = f"<h1>{NEWS}</h1><time datetime={at}>Friday 13 November 2015 07.40 GMT</time>{TEXT}"
    doc = page(
        body, meta("article:published_time", at), "https://www.example.com/2015/nov/12/story"
    )
    assert iso(doc) == "2015-11-13T07:40:07+00:00"


def test_the_template_s_own_day_is_not_the_article_s() -> None:
    body = f"<div class=timer>Fri, 2 May 2014 | 08:54</div><h1>{NEWS}</h1>{TEXT}"
    assert iso(page(body, meta("dc.created", "2001-03-03"))) == "2014-05-02T08:54:00+00:00"


def test_the_clock_of_a_site_s_header_in_a_time_element() -> None:
    head = "<div><time class=date>12:46 GMT, Nov 25, 2015</time></div>"
    body = f"{head}<h1>{NEWS}</h1><time class=date>Published time: 18 Nov, 2015 15:41</time>{TEXT}"
    assert iso(page(body)) == "2015-11-18T15:41:00+00:00"


def test_a_clock_of_a_comment_does_not_complete_the_day() -> None:
    comments = "<div class=comentario><span class=fecha_hora>28.oct.2012 | 11:26</span><p>Que se pudra.</p></div>"
    body = f"<h1>{NEWS}</h1><b class=fecha>domingo 28/10/2012</b>{TEXT}{comments}"
    doc = page(
        body,
        meta("date", "2012-10-28T02:48:29+0100"),
        "https://www.example.es/2012/10/28/a.html",
        "es",
    )
    assert iso(doc) == "2012-10-28T02:48:29+01:00"


def test_an_english_dateline_begins_the_text() -> None:
    body = f"<h2>{NEWS}</h2><p>Feb. 23, 2015 -- {PARAGRAPH}</p>{TEXT}"
    assert iso(page(body, f"<title>{NEWS}</title>")) == "2015-02-23T00:00:00+00:00"


def test_today_s_date_above_a_headline_that_is_known_by_its_class_alone() -> None:
    today = "<div><span class=fecha2>Lunes, 24 de Agosto de 2026</span></div>"
    body = f"{today}<div class=titulo>{NEWS}</div><div class=volanta_fecha>Viernes, 30 de abril de 2021</div>{TEXT}"
    assert (
        iso(page(body, f"<title>{NEWS} - Corrientes</title>", lang="es"))
        == "2021-04-30T00:00:00+00:00"
    )


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        (f"<title>{NEWS} - 07.12.2017 - THE PORT</title>", "2017-12-07T00:00:00+00:00"),
        (meta("description", f"{NEWS} (Notizia del 14 Gennaio 2020)"), "2020-01-14T00:00:00+00:00"),
        (meta("description", "The album of the band comes out on 4 February 2022 at last"), None),
    ],
)
def test_a_day_that_stands_alone_in_a_statement(head: str, expected: str | None) -> None:
    assert iso(page(f"<h1>{NEWS}</h1>{TEXT}", head)) == expected


def test_a_day_that_links_to_the_others_of_that_day() -> None:
    line = "<div><span>Released</span> <a href=/all>{}</a></div>"
    assert (
        iso(page(f"<h1>{NEWS}</h1>{line.format('4 February 2022')}{TEXT}"))
        == "2022-02-04T00:00:00+00:00"
    )
    assert iso(page(f"<h1>{NEWS}</h1>{line.format('The fire of 4 February 2022')}{TEXT}")) is None


def test_a_date_that_is_stated_of_a_video_is_not_the_article_s() -> None:
    video = "<div itemscope itemtype='http://schema.org/VideoObject'><meta itemprop=datePublished content='{}'></div>"
    article = "<div itemscope itemtype='http://schema.org/Article'><meta itemprop=datePublished content='{}'></div>"
    body = (
        video.format("2015-03-12T13:11:07Z")
        + f"<h1>{NEWS}</h1>"
        + article.format("2015-03-11T19:46:14Z")
        + TEXT
    )
    assert iso(page(body)) == "2015-03-11T19:46:14+00:00"
    assert (
        iso(page(f"<h1>{NEWS}</h1>{video.format('2015-03-12T13:11:07Z')}{TEXT}"))
        == "2015-03-12T13:11:07+00:00"
    )


def names(body: str, head: str = "", url: str = URL, lang: str = "en") -> list[str]:
    found: list[str] = author_find.find(
        page(f"<h1>{NEWS}</h1>{body}{TEXT}", head, url, lang), PageContext()
    ).value
    return found


# ---------------------------------------------------------------- names
@pytest.mark.parametrize(
    ("byline", "expected"),
    [
        ("<p>Tuesday 15 October 2019 by Bradley M. Roe</p>", ["Bradley M. Roe"]),
        ("<p>Posted on March 3, 2015 by Jane Roe</p>", ["Jane Roe"]),
        ("<p>On 5 May 2015 the town bought a book by John Smith</p>", []),
        ("<p>2/26/2015 7:11 AM PST BY PORT STAFF</p>", []),
        ("<p class=author>Brenda Goodman, MA</p>", ["Brenda Goodman"]),
        ("<p class=author>By Phil Stewart</p>", ["Phil Stewart"]),
        ("<p class=author>Dipl.-Ing. Karl Roe</p>", ["Karl Roe"]),
        (
            "<p class=author>By JANE ROE and RACHEL DOE - AP Technology Writers</p>",
            ["JANE ROE", "RACHEL DOE"],
        ),
        ("<p class=byline>Posted by Jane Roe, Product Marketing Manager</p>", ["Jane Roe"]),
        ("<p class=firma><em>Ángeles Roe</em> | <span>Madrid</span></p>", ["Ángeles Roe"]),
        ("<p class=author>User Admin</p>", []),
        ("<div class=journalistLink>CBC's Journalistic Standards and Practices</div>", []),
        ("<div class=author>Jane Roe 10/ 5/11 09:19 PM ET</div>", ["Jane Roe"]),
    ],
)
def test_forms_of_bylines(byline: str, expected: list[str]) -> None:
    assert names(byline) == expected


def test_a_desk_behind_the_day_is_a_credit() -> None:
    found = extract(
        page(f"<h1>{NEWS}</h1><h5>2/26/2015 7:11 AM PST BY PORT STAFF</h5>{TEXT}"), PageContext()
    )
    assert (found.authors.value, found.credits.value) == ([], ["PORT STAFF"])


@pytest.mark.parametrize(
    ("end", "expected"),
    [
        ("(By Alison Roe) Enditem/", ["Alison Roe"]),
        ("(Reporting by Jane Roe and Phil Doe; editing by Mary Foe)", ["Jane Roe", "Phil Doe"]),
        ("It was steered by a pilot (by trade a fisher).", []),
    ],
)
def test_who_signs_in_brackets_behind_the_last_word(end: str, expected: list[str]) -> None:
    assert names(f"{TEXT}<p>{PARAGRAPH} {end}</p>") == expected


def test_a_line_with_a_colon_behind_the_text_is_no_signature() -> None:
    assert names(f"{TEXT}<p><b>Original Print Headline: More reasons</b></p>") == []


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        (meta("author", "Bradley M. Roe (http://roe.example/bradley/)"), ["Bradley M. Roe"]),
        (
            meta("dc.creator", "Roe, Jane") + meta("dc.creator", "Doe, John de"),
            ["Jane Roe", "John de Doe"],
        ),
        (meta("author", "Jane Roe, John Doe"), ["Jane Roe", "John Doe"]),
    ],
)
def test_forms_of_statements(head: str, expected: list[str]) -> None:
    assert names("", head) == expected


def test_the_link_to_the_page_that_is_stated_as_the_author_s() -> None:
    box = "<aside class=sidebar>The author <a href='/source/jane-roe'>Jane Roe</a></aside>"
    other = "<aside class=sidebar>The editor <a href='/source/mary-foe'>Mary Foe</a></aside>"
    stated = '<meta property="article:author" content="https://www.example.com/source/jane-roe">'
    assert names(TEXT + other + box, stated) == ["Jane Roe"]
    assert names(TEXT + other + box) == []
    network = '<meta property="article:author" content="https://www.facebook.com/source/jane-roe">'
    assert names(TEXT + other + box, network) == []


def test_a_post_in_the_widget_of_a_blog_system() -> None:
    body = f"<div class='widget Blog'><div class=post>{TEXT}<b class=byline-author>Posted by Jane Roe</b></div></div>"
    assert names(body) == ["Jane Roe"]
    assert names(body.replace("class=post", "class=box")) == []


# ---------------------------------------------------------------- doubt
OTHER = "Nine months of noise: what the old bridge cost the town"


def found_of(body: str, head: str) -> tuple[list[str], float, float]:
    found = extract(page(body, head), PageContext(), calibrated=False)
    return found.disagreements, found.title.confidence, found.published.confidence


def test_a_headline_that_a_good_witness_contradicts_is_half_as_sure() -> None:
    body = f"<h1>{NEWS}</h1>{TEXT}"
    agreed = f'<meta property="og:title" content="{NEWS}">'
    assert found_of(body, agreed + ld(headline=NEWS))[:2] == ([], pytest.approx(0.95))
    names_it, sure, _ = found_of(body, agreed + ld(headline=OTHER))
    assert (names_it, sure) == (["title"], pytest.approx(0.75 / 2))


@pytest.mark.parametrize(
    ("other", "contested"),
    [
        (meta("article:published_time", "2023-06-09T08:00:00Z"), True),
        (meta("article:published_time", "2023-05-02T10:00:00Z"), False),  # the next day: a change
        (meta("article:modified_time", "2023-06-09T08:00:00Z"), False),
        (meta("date", "2023-06-09"), False),  # the day of print
    ],
)
def test_a_date_that_a_good_witness_contradicts_is_half_as_sure(
    other: str, contested: bool
) -> None:
    body = f"<h1>{NEWS}</h1>{TEXT}"
    names_it, _, sure = found_of(
        body, ld(headline=NEWS, datePublished="2023-05-01T09:00:00+02:00") + other
    )
    assert (names_it, sure) == (
        (["published"], pytest.approx(0.485)) if contested else ([], pytest.approx(0.97))
    )
