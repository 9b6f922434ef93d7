"""Dates that cannot be: what a template states when it has none, while the address or the
page tells the day."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from newscrawler.extraction.context import PageContext
from newscrawler.extraction.document import Document
from newscrawler.extraction.extract import extract
from newscrawler.extraction.selectors import SelectorSet
from tests.unit.extraction.story import HEAD, paragraphs

CONTEXT = PageContext(language="en", zone="+00:00", fetched=datetime(2026, 11, 20, tzinfo=UTC))
DATED = "https://example.com/2019/11/19/council-approves-the-bridge.html"
PLAIN = "https://example.com/council-approves-the-new-bridge.html"
PLACEHOLDERS = [
    "0001-01-01T00:00:00Z", "1900-01-01T00:00:00Z", "1970-01-01T00:00:00+00:00", "1970-01-01T07:00:00+07:00", "0", "1980-01-01",
    "2000-01-01T00:00:00Z", "2001-01-01T00:00:00Z", "2001-01-01", "2001-01-01T00:00:00+07:00", "2001-01-01T07:00:00+07:00",
    "31 Dec 2000 19:00 -0500", "0000-00-00 00:00:00", "2019-01-01T00:00:00Z",
]  # fmt: skip


def page(url: str, machine: str, shown: str = "", place: str = "json-ld") -> Document:
    ld = json.dumps({"@type": "NewsArticle", "headline": HEAD, "datePublished": machine})
    head = {
        "json-ld": f'<script type="application/ld+json">{ld}</script>',
        "meta": f'<meta property="article:published_time" content="{machine}">',
    }.get(place, "")
    body = (
        f'<span itemprop="datePublished" content="{machine}"></span>' if place == "itemprop" else ""
    )
    html = (
        f"<html lang=en><head><title>{HEAD}</title>{head}</head><body><h1>{HEAD}</h1>{body}<p class=date>{shown}</p>"
        f"<main>{paragraphs(6)}</main></body></html>"
    )
    return Document(html.encode(), url)


@pytest.mark.parametrize("place", ["json-ld", "meta", "itemprop"])
@pytest.mark.parametrize("machine", PLACEHOLDERS)
def test_the_day_in_the_address_outweighs_a_placeholder(machine: str, place: str) -> None:
    found = extract(page(DATED, machine, place=place), CONTEXT).published.value
    assert found is not None and found.date().isoformat() == "2019-11-19"


@pytest.mark.parametrize("place", ["json-ld", "meta", "itemprop"])
@pytest.mark.parametrize("machine", PLACEHOLDERS[:-1])
def test_what_a_reader_sees_outweighs_a_placeholder(machine: str, place: str) -> None:
    shown = page(PLAIN, machine, "November 19, 2019 at 3:45 p.m.", place)
    found = extract(shown, CONTEXT).published.value
    assert found is not None and found.isoformat() == "2019-11-19T15:45:00+00:00"
    assert extract(page(PLAIN, machine, place=place), CONTEXT).published.value is None


def test_a_set_reads_no_placeholder_either() -> None:
    doc = {
        "domain": "example.com", "version": 1, "state": "active", "provenance": {"made_by": "person"},
        "variants": [{"template": "a", "fields": {
            "title": [{"css": "h1"}], "published": [{"kind": "ld"}], "content": {"root": ["main"], "exclude": []}}}],
    }  # fmt: skip
    made = SelectorSet.from_dict(doc)
    found = extract(page(DATED, "2001-01-01T00:00:00Z"), CONTEXT, made).published.value
    assert found is not None and found.date().isoformat() == "2019-11-19"
    found = extract(page(DATED, "2019-11-19T08:15:00Z"), CONTEXT, made).published.value
    assert found is not None and found.isoformat() == "2019-11-19T08:15:00+00:00"


@pytest.mark.parametrize(
    ("url", "machine", "expected"),
    [
        (PLAIN, "2001-01-01T09:30:00Z", "2001-01-01T09:30:00+00:00"),
        (PLAIN, "2001-01-02T00:00:00Z", "2001-01-02T00:00:00+00:00"),
        (PLAIN, "2019-01-01T00:00:00Z", "2019-01-01T00:00:00+00:00"),
        ("https://example.com/2019/01/01/bridge.html", "2019-01-01T00:00:00Z", "2019-01-01T00:00:00+00:00"),
    ],
)  # fmt: skip
def test_dates_that_can_be_stay(url: str, machine: str, expected: str) -> None:
    found = extract(page(url, machine), CONTEXT).published.value
    assert found is not None and found.isoformat() == expected


def test_new_years_day_of_2001_as_a_reader_sees_it_is_a_date() -> None:
    found = extract(page(PLAIN, "", "January 1, 2001", "none"), CONTEXT).published.value
    assert found is not None and found.date().isoformat() == "2001-01-01"
