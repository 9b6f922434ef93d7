"""Gold that nobody reads: a value is taken where three independent places of a page say it. Pure.

Places are the data that people wrote down beside the page (``noted``), JSON-LD, meta elements, the
title of the document, the address, ``time`` elements and the text that a reader sees. Two meta
elements are one place, as one template writes both. What fewer places agree on, or what two groups
of three disagree on, stays undecided and the page is not scored for that field.

The rules that find fields are not asked: a place is read as it stands, and the only judgement is
whether two values are the same (:mod:`evaluation.scorer`).
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from functools import cache
from pathlib import Path
from typing import Any

from evaluation import scorer
from newscrawler.extraction import page_metadata
from newscrawler.extraction.blocks import walk
from newscrawler.extraction.document import Document

#: Places that have to agree.
PLACES = 3
# An article's text has more characters; and so much of it stands on the page as a reader sees it.
_BODY_CHARS = 600
_BODY_SHOWN = 0.9
# F1 of the data's text and the element that is marked as the text.
_LEAST_F1 = 0.85
_ARTICLE = re.compile(r"Article|Posting|Report$")
_TITLE_METAS = ("og:title", "twitter:title", "dc.title")
_AUTHOR_METAS = (
    "author",
    "article:author",
    "dc.creator",
    "parsely-author",
    "byl",
    "sailthru.author",
)
_NAME_CHARS = 60
_MONTHS = Path(page_metadata.__file__).parent / "lexicon" / "months.json"
_ADDRESS_DAY = re.compile(r"(?<!\d)((?:19|20)\d\d)[/_.-]?(\d{1,2})[/_.-]?(\d{1,2})(?!\d)")


@dataclass(frozen=True)
class Noted:
    """What people wrote down about a page, in the data of a package."""

    title: str = ""
    day: str = ""
    authors: tuple[str, ...] = ()
    wanted: tuple[str, ...] = ()
    unwanted: tuple[str, ...] = ()


@dataclass
class Page:
    """A page with what a reader sees of it, read once."""

    doc: Document
    noted: Noted = field(default_factory=Noted)
    shown: str = ""
    squashed: str = ""
    articles: list[dict[str, Any]] = field(default_factory=list)

    @classmethod
    def of(cls, body: bytes, url: str, noted: Noted) -> Page:
        doc = Document(body, url)
        root = doc.tree.body
        shown = "\n".join(block.text for block in walk(root)) if root is not None else ""
        nodes = page_metadata.json_ld(doc)
        articles = [n for n in nodes if _ARTICLE.search(str(n.get("@type") or "").strip("[]'"))]
        return cls(doc, noted, shown, scorer.squash(shown), articles)


def gold_of(page: Page) -> dict[str, Any]:
    """The fields that are decided; empty where none is."""
    found: dict[str, Any] = {
        "title": _title(page),
        "published": _published(page),
        "authors": _authors(page),
        "content": _content(page),
    }
    found["content_with"] = _shown_pieces(page)
    if found["content_with"]:
        found["content_without"] = list(page.noted.unwanted)
    return {name: value for name, value in found.items() if value}


def decide(
    said: Mapping[str, Iterable[str]], same: Callable[[str, str], bool], places: int = PLACES
) -> str | None:
    """The value that ``places`` places have, ``said`` by place; the shortest way to write it.
    None where no value has so many, or where another one has as many as the best."""
    values = [(value, place) for place, some in said.items() for value in some if value]
    support = {
        value: frozenset(place for other, place in values if same(value, other))
        for value, _ in values
    }
    most = max((len(of) for of in support.values()), default=0)
    best = [value for value, of in support.items() if len(of) == most]
    if most < places or any(not same(best[0], other) for other in best[1:]):
        return None
    return min(best, key=lambda value: (len(value), value))


# ---------------------------------------------------------------- title
def _title(page: Page) -> str | None:
    doc = page.doc
    heads = doc.tree.css("h1,h2,h3,[itemprop='headline']")[:60]
    named = doc.tree.css_first("head > title")
    said = {
        "noted": [page.noted.title],
        "json-ld": [_line(a.get("headline") or a.get("name")) for a in page.articles[:3]],
        "meta": [_line(doc.meta_first(name)) for name in _TITLE_METAS],
        "document": [_line(named.text(deep=True))] if named is not None else [],
        "shown": [_line(node.text(deep=True)) for node in heads],
    }
    # A heading of another story may equal nothing but itself: it has one place.
    return decide(said, scorer.title_is_right)


def _line(value: Any) -> str:
    return " ".join(value.split()) if isinstance(value, str) else ""


# ---------------------------------------------------------------- date
def _published(page: Page) -> str | None:
    stated = {
        "json-ld": [str(a.get("datePublished") or "") for a in page.articles[:3]],
        "meta": [v for _, v in page_metadata.meta_values(page.doc, page_metadata.PUBLISHED_META)],
        "element": [
            node.attributes.get("datetime") or "" for node in page.doc.tree.css("time")[:20]
        ],
    }
    read = {place: [w for w in map(scorer.read_when, v) if w] for place, v in stated.items()}
    days = {place: [str(when[0]) for when in some] for place, some in read.items()}
    noted = scorer.read_when(page.noted.day)
    days["noted"] = [str(noted[0])] if noted else []
    days["address"] = list(_days_of_address(page.doc.url))
    known = {day for some in days.values() for day in some}
    days["shown"] = [day for day in known if _is_shown(date.fromisoformat(day), page.shown)]
    day = decide(days, str.__eq__)
    return None if day is None else _minute(day, read, page.shown) or day


def _days_of_address(url: str) -> Iterator[str]:
    for year, month, day in _ADDRESS_DAY.findall(url):
        try:
            yield str(date(int(year), int(month), int(day)))
        except ValueError:
            continue


def _minute(
    day: str, read: Mapping[str, Iterable[tuple[date, datetime | None]]], shown: str
) -> str | None:
    """The instant on ``day`` that three places have: machine places with a zone, and the clock
    that a reader sees."""
    said: dict[str, list[str]] = defaultdict(list)
    for place, some in read.items():
        for written, time in some:
            if time is None or time.tzinfo is None or str(written) != day:
                continue
            said[place].append(time.isoformat())
            if _is_clock_shown(time, shown):
                said["shown"].append(time.isoformat())
    return decide(said, lambda a, b: bool(scorer.minute_is_right(a, b)))


def _is_clock_shown(time: datetime, shown: str) -> bool:
    if not time.hour and not time.minute:
        return False  # midnight is how a day without a clock is written
    half = time.hour % 12 or 12
    pattern = rf"(?<!\d)(?:0?{time.hour}|0?{half})[:.h]{time.minute:02d}(?!\d)"
    return re.search(pattern, shown) is not None


@cache
def _months() -> dict[int, str]:
    words: dict[str, list[str]] = json.loads(_MONTHS.read_text("utf-8"))
    return {
        int(number): "|".join(map(re.escape, sorted(names, key=len, reverse=True)))
        for number, names in words.items()
        if number.isdigit()
    }


def _is_shown(day: date, shown: str) -> bool:
    """Whether a reader sees this day, in figures or with the month's name of any language."""
    number, month, name = rf"0?{day.day}", rf"0?{day.month}", _months()[day.month]
    year = rf"(?:{day.year}|{day.year % 100:02d})"
    sign = r"\s*[./\-年月]\s*"
    ways = (
        rf"{day.year}{sign}{month}{sign}{number}",
        rf"{number}{sign}{month}{sign}{year}",
        rf"{month}{sign}{number}{sign}{year}",
        rf"{number}(?:st|nd|rd|th|er|º|\.)?[\s\-]*(?:de\s+)?(?:{name})\.?,?[\s\-]*(?:de\s+)?{year}",
        rf"(?:{name})\.?\s+{number}(?:st|nd|rd|th)?,?\s+{day.year}",
    )
    whole = rf"(?<![\d\w])(?:{'|'.join(ways)})(?!\d)"
    return re.search(whole, shown, re.IGNORECASE) is not None


# ---------------------------------------------------------------- authors
def _authors(page: Page) -> list[str] | None:
    """The names that three places have alike as a list; one that a reader does not see is none."""
    said = {
        "noted": [_joined(page.noted.authors)],
        "json-ld": [_joined(_persons(a.get("author"))) for a in page.articles[:3]],
        "meta": [_joined(page.doc.meta.get(name, ())) for name in _AUTHOR_METAS],
    }
    known = {value for some in said.values() for value in some if value}
    shown = scorer.squash(page.shown)
    said["shown"] = [v for v in known if all(scorer.squash(n) in shown for n in v.split("; "))]
    found = decide(said, _same_names)
    return found.split("; ") if found else None


def _joined(names: Iterable[str]) -> str:
    """One text of all names, or "" where one is an address or no name by its length."""
    cleaned = [_line(name) for name in names]
    if any("://" in name or len(name) > _NAME_CHARS for name in cleaned):
        return ""
    return "; ".join(filter(None, cleaned))


def _persons(value: Any) -> Iterator[str]:
    for one in page_metadata.as_list(value):
        name = one.get("name") if isinstance(one, dict) else one
        yield from (v for v in page_metadata.as_list(name) if isinstance(v, str))


def _same_names(a: str, b: str) -> bool:
    of_a, of_b = scorer.names_of({"authors": [a]}), scorer.names_of({"authors": [b]})
    return bool(of_a) and scorer.score_authors(of_a, of_b)["exact"]


# ---------------------------------------------------------------- content
def _content(page: Page) -> str | None:
    """The text of the page's data (JSON-LD), where the page shows nearly all of it, and either the
    pieces that people noted bear it out or an element that the template marks as the text."""
    for article in page.articles[:3]:
        body = article.get("articleBody")
        if not isinstance(body, str) or len(body) < _BODY_CHARS or "<p" in body:
            continue
        stated, shown = scorer.shingles(body), scorer.shingles(page.shown)
        if (stated & shown).total() < _BODY_SHOWN * stated.total():
            continue
        if _has_noted_pieces(page.noted, scorer.squash(body)) or _is_marked(page.doc, body):
            return body
    return None


def _has_noted_pieces(noted: Noted, body: str) -> bool:
    """All that people want of the text, and nothing that they do not want."""
    has_other = any(scorer.squash(piece) in body for piece in noted.unwanted)
    return (
        bool(noted.wanted)
        and not has_other
        and all(scorer.squash(piece) in body for piece in noted.wanted)
    )


def _is_marked(doc: Document, body: str) -> bool:
    """Whether an element that is named the text holds it and little else."""
    nodes = doc.tree.css("[itemprop~='articleBody'],article,main")[:8]
    texts = ("\n".join(block.text for block in walk(node)) for node in nodes)
    return any(scorer.score_content(body, text)[2] >= _LEAST_F1 for text in texts)


def _shown_pieces(page: Page) -> list[str]:
    """The wanted pieces that a reader sees word by word; these have two places, people and page."""
    return [piece for piece in page.noted.wanted if scorer.squash(piece) in page.squashed]
