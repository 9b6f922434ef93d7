"""Pictures with captions and credits, beside the plain text."""

from __future__ import annotations

import time

import pytest

from newscrawler.extraction import generic
from newscrawler.extraction import pictures as pictures_
from newscrawler.extraction.context import PageContext
from newscrawler.extraction.document import Document
from newscrawler.extraction.extract import article_values, extract
from newscrawler.extraction.selectors import SelectorSet
from newscrawler.items import FieldValue
from tests.measured import least
from tests.unit.extraction.story import HEAD, paragraphs

URL = "https://www.example.com/news/bridge.html"
SET = SelectorSet.from_dict(
    {"domain": "example.com", "state": "active", "variants": [{"template": "article", "fields": {
        "title": [{"css": "h1"}], "content": {"root": ["div.body"], "exclude": ["figure"]},
    }}]}
)  # fmt: skip
LEAD_SET = SelectorSet.from_dict(
    {"domain": "example.com", "state": "active", "variants": [{"template": "article", "fields": {
        "title": [{"css": "h1"}],
        "content": {"root": ["h2.lead, div.body"], "exclude": ["figure", ".related-news"]},
    }}]}
)  # fmt: skip


def pictures(body: str, selectors: SelectorSet | None = None) -> list[tuple[str, str, str]]:
    """``(url, caption, credit)`` of each."""
    page = (
        f"<html lang=en><head><title>{HEAD}</title></head><body><article><h1>{HEAD}</h1>"
        f"<h2 class=lead>{LEAD}</h2><div class=body>{paragraphs(4)}{body}{paragraphs(4, 4)}</div></article></body></html>"
    )
    found = extract(Document(page.encode(), URL), PageContext(), selectors)
    values = article_values(found)
    return [(one["url"], one["caption"], one["credit"]) for one in values["pictures"]]


LEAD = "What the story of the new bridge is about is said here in one sentence."
BRIDGE = "https://www.example.com/i/bridge.jpg"
SAID = "The new bridge on the day of its opening."


@pytest.mark.parametrize(
    "selectors", [None, SET, LEAD_SET], ids=["generic", "set", "lead and text"]
)
@pytest.mark.parametrize(
    ("markup", "credit"),
    [
        (f"<figure><img src=/i/bridge.jpg><figcaption>{SAID}</figcaption></figure>", ""),
        (f"<figure><img src=/i/bridge.jpg><figcaption>{SAID} Photo: Jane Doe</figcaption></figure>",
         "Jane Doe"),
        (f"<figure><img src=/i/bridge.jpg><figcaption>{SAID} (Foto: Max Muster/dpa)</figcaption>"
         "</figure>", "Max Muster/dpa"),
        (f"<figure><img src=/i/bridge.jpg><figcaption>{SAID} © Reuters</figcaption></figure>",
         "Reuters"),
        (f"<figure><img src=/i/bridge.jpg><figcaption>{SAID} <span class=credit>Jane Doe / AP"
         "</span></figcaption></figure>", "Jane Doe / AP"),
        (f"<figure><img src=/i/bridge.jpg><figcaption>{SAID}</figcaption>"
         "<small>Bild: Jane Doe</small></figure>", "Jane Doe"),
        (f"<div class=wp-caption><img src=/i/bridge.jpg><p class=wp-caption-text>{SAID}</p></div>",
         ""),
        ("<table class=tplCaption><tr><td><img data-src=/i/bridge.jpg src='data:image/gif;base64,"
         f"R0lGODlh'></td></tr><tr><td class=caption>{SAID} Ảnh: Minh An</td></tr></table>",
         "Minh An"),
        ("<figure><picture><source srcset='/i/small.jpg 300w, /i/bridge.jpg 900w'></picture>"
         f"<figcaption>{SAID}</figcaption></figure>", ""),
        ("<figure><picture><source srcset='/i/bridge.jpg 900w,/i/small.jpg 300w'></picture>"
         f"<figcaption>{SAID}</figcaption></figure>", ""),
        ("<figure><picture><source srcset='/i/a,b/s.jpg, /i/bridge.jpg 2x'></picture>"
         f"<figcaption>{SAID}</figcaption></figure>", ""),
        (f"<figure><a href=/i/large.jpg><img src=/i/bridge.jpg></a><figcaption>{SAID}</figcaption>"
         "</figure>", ""),
    ],
)  # fmt: skip
def test_a_picture_is_listed_with_its_words(
    markup: str, credit: str, selectors: SelectorSet | None
) -> None:
    assert pictures(markup, selectors) == [(BRIDGE, SAID, credit)]


def test_nothing_but_a_credit_is_no_caption() -> None:
    markup = "<figure><img src=/i/bridge.jpg><figcaption>Foto: dpa</figcaption></figure>"
    assert pictures(markup) == [(BRIDGE, "", "dpa")]


def test_a_picture_that_is_shown_twice_is_listed_once() -> None:
    figure = f"<figure><img src=/i/bridge.jpg><figcaption>{SAID}</figcaption></figure>"
    assert pictures(figure * 2) == [(BRIDGE, SAID, "")]


@pytest.mark.parametrize(
    "selectors", [None, SET, LEAD_SET], ids=["generic", "set", "lead and text"]
)
@pytest.mark.parametrize(
    "markup",
    [
        "<figure><img src=/i/bridge.jpg></figure>",  # not a word
        f"<figure><figcaption>{SAID}</figcaption></figure>",
        f"<figure><a href=/news/other.html><img src=/i/a.jpg></a><figcaption>{SAID}</figcaption>"
        "</figure>",  # announces another page
        f"<figure><img src='data:image/gif;base64,R0lG'><figcaption>{SAID}</figcaption></figure>",
        f"<figure><img src=/i/a.jpg><figcaption>{SAID * 40}</figcaption></figure>",
        f"<figure><video><source src=/i/a.mp4></video><figcaption>{SAID}</figcaption></figure>",
        f"<figure><audio><source src=/i/a.mp3></audio><figcaption>{SAID}</figcaption></figure>",
        "<p>A caption stands below a picture, says <b class=name>Jane Doe</b>.</p>",
    ],
)
def test_what_is_none(markup: str, selectors: SelectorSet | None) -> None:
    assert pictures(markup, selectors) == []


SUMMIT = "JAPAN hosts the APEC leaders on its MAP"


@pytest.mark.parametrize(
    "inner",
    [
        f"<figcaption>{SUMMIT}</figcaption><small>AP</small>",
        f"<figcaption>{SUMMIT} <span class=credit>AP</span></figcaption>",
        f"<figcaption><span class=credit>AP</span> {SUMMIT}</figcaption>",
        f"<figcaption>{SUMMIT} AP</figcaption><small>AP</small>",
    ],
)
def test_a_credit_is_not_cut_out_of_words(inner: str) -> None:
    assert pictures(f"<figure><img src=/i/bridge.jpg>{inner}</figure>") == [(BRIDGE, SUMMIT, "AP")]


@pytest.mark.parametrize("selectors", [None, SET, LEAD_SET], ids=["generic", "set", "lead"])
def test_a_box_of_several_pictures_is_no_caption(selectors: SelectorSet | None) -> None:
    one = "<div><img src=/i/{0}.jpg><p class=caption>Picture {0} of the opening day.</p></div>"
    found = pictures(f"<div class=captions>{one.format(1)}{one.format(2)}</div>", selectors)
    assert [caption for _, caption, _ in found] == [
        "Picture 1 of the opening day.", "Picture 2 of the opening day."
    ]  # fmt: skip


def test_what_a_set_excludes_as_other_stories_has_no_picture_of_the_article() -> None:
    figure = f"<figure><img src=/i/bridge.jpg><figcaption>{SAID}</figcaption></figure>"
    other = f"<div class=related-news>{figure.replace('bridge', 'other')}</div>"
    assert pictures(figure + other, LEAD_SET) == [(BRIDGE, SAID, "")]


def test_nested_captions_cost_no_square_of_their_text(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []
    written = pictures_._written
    monkeypatch.setattr(pictures_, "_written", lambda node: read.append(1) or written(node))
    figure = f"<figure><img src=/i/bridge.jpg><figcaption>{SAID}</figcaption></figure>"
    found = pictures(f"{'<div class=caption>' * 100}{figure}{'</div>' * 100}", SET)
    assert found == [(BRIDGE, SAID, "")] and len(read) < 10


def test_boxes_of_other_stories_are_not_the_articles() -> None:
    figure = f"<figure><img src=/i/bridge.jpg><figcaption>{SAID}</figcaption></figure>"
    page = (
        f"<html><head><title>{HEAD}</title></head><body><article><h1>{HEAD}</h1>{paragraphs(6)}"
        f"</article><aside>{figure}</aside><div class=related>{figure}</div></body></html>"
    )
    assert extract(Document(page.encode(), URL), PageContext()).pictures.value == []


def test_the_text_of_one_element_is_folded_once_for_all_its_short_blocks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    folded: list[int] = []
    collapse = generic.collapse
    monkeypatch.setattr(
        generic, "collapse", lambda said: folded.append(len(said)) or collapse(said)
    )
    gallery = "<div><img src=/i/a.jpg>" + "<div>A short line of it</div>" * 300 + "</div>"
    pictures(gallery)
    assert sum(size > 300 * 10 for size in folded) < 10


@pytest.mark.parametrize("shape", ["one box", "a box in each", "credits"])
def test_many_captions_of_one_box_read_it_once(shape: str) -> None:
    """Four times the captions and four times the rest: 4 in linear time, 16 where each caption
    reads its box anew."""

    def cpu_s(captions: int, others: int) -> float:
        lines = {
            "one box": f"<div>{'<figcaption>Said</figcaption>' * captions}",
            "a box in each": "<div><div><figcaption>Said</figcaption></div>" * captions,
            "credits": f"<div class=source>{'<p class=caption>Said</p>' * captions}<img src=/a.jpg>",
        }[shape]
        rest = "<b>other</b>" if shape == "credits" else "<img src=data:>"
        page = f"<html><body><article><h1>{HEAD}</h1>{lines}{rest * others}".encode()
        took = []
        for _ in range(3):
            doc = Document(page, URL)
            started = time.process_time()
            pictures_.find(doc, FieldValue("A text.", "own"))
            took.append(time.process_time() - started)
        return min(took)

    if cpu_s(140, 20_000) >= 0.05:
        assert least(lambda: cpu_s(140, 20_000) / cpu_s(35, 5_000), 9) < 9
