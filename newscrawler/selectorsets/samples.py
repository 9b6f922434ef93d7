"""Stored pages as evidence: each with what its own metadata say of it. No Redis, no network."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any

from newscrawler.extraction.context import PageContext
from newscrawler.extraction.document import Document
from newscrawler.extraction.extract import extract
from newscrawler.utils.numbers import share

#: Origins that are no more than the generic chain's opinion: not independent evidence of a value.
_WEAK = ("generic", "trafilatura", "blocks", "h1", "title-tag", "")

#: Of the pages that have a label, for induction and validation: labels are right on about so many.
AGREE = 0.9
#: Of the pages on which a headline has to be the label word for word. The label
#: itself is wrong on some.
WHOLE = 0.7
#: Pages on which a date is the moment of the fetch, at least, and how near to it, for
#: it to be a clock.
LEAST_CLOCKS = 3
CLOCK_S = 300
#: Confidence of a headline that a heading and a statement agree on (extraction.title.find).
_SURE = 0.75


@dataclass
class Labels:
    """What the page says by itself. None: nothing. ``strong``: fields with evidence
    outside the layout."""

    title: str | None
    published: datetime | None
    authors: list[str]
    content: str | None
    strong: frozenset[str]
    title_sure: bool = False  # a visible heading that a statement for machines agrees with
    authors_by: str = (
        ""  # origin of the names: metadata state them, a byline is read from the layout
    )


@dataclass
class Sample:
    url: str
    doc: Document
    context: PageContext
    labels: Labels
    digest: str  # of the bytes: provenance names the pages that a set was made from

    @property
    def label_words(self) -> Counter[str]:
        return Counter(words(self.labels.content or ""))


def make_sample(
    url: str, body: bytes, context: PageContext, content_type: str | None = None
) -> Sample | None:
    """None when the page is no article by the generic chain: it is no evidence
    of a template either."""
    doc = Document(body, url, content_type)
    found = extract(doc, context, None, calibrated=False)
    if not found.is_article:
        return None
    values = {name: getattr(found, name) for name in ("title", "content", "published", "authors")}
    strong = frozenset(
        name
        for name, field in values.items()
        if field.value and not field.origin.lower().startswith(_WEAK[:-1])
    )
    labels = Labels(
        title=values["title"].value,
        published=values["published"].value,
        authors=list(values["authors"].value or []),
        content=values["content"].value,
        strong=strong,
        # A title with a field conflict is half as sure; for a template it counts that a statement
        # agrees with the heading.
        title_sure=found.title.origin.startswith("generic:")
        and found.title.confidence * (2 if "title" in found.disagreements else 1) >= _SURE,
        authors_by=values["authors"].origin,
    )
    return Sample(url, doc, context, labels, hashlib.sha256(body).hexdigest()[:32])


def distinct(samples: list[Sample]) -> list[Sample]:
    """Without pages of equal text: duplicates prove a selector no better than one page does."""
    seen: set[str] = set()
    kept = []
    for sample in samples:
        key = norm(sample.labels.content or "")[:2000]
        if key not in seen:
            seen.add(key)
            kept.append(sample)
    return kept


# The same texts of a sample are compared again for each selector: a tenth of a generation's time.
@lru_cache(maxsize=4096)
def norm(text: str) -> str:
    """For comparing: NFC, lower case, one space between words."""
    return " ".join(unicodedata.normalize("NFC", text).lower().split())


_WORD = re.compile(r"\w+")


def words(text: str) -> list[str]:
    return _WORD.findall(norm(text))


def f1(left: Counter[str], right: Counter[str]) -> float:
    """Overlap of two bags of words, 0..1; two empty ones agree."""
    total = left.total() + right.total()
    return share(2 * (left & right).total(), total, 1.0)


def title_agrees(value: Any, label: str) -> bool:
    left, right = norm(str(value or "")), norm(label)
    if not left:
        return False
    # A label may carry the site's name behind the headline, so that containment is enough.
    return (
        left == right
        or (len(left) >= 12 and (left in right or right in left))
        or f1(Counter(words(left)), Counter(words(right))) >= 0.9
    )


def same_words(value: Any, label: str) -> bool:
    """A headline that is whole and nothing more, signs apart."""
    return words(str(value or "")) == words(label)


def authors_agree(value: Any, label: list[str]) -> bool:
    return {norm(n) for n in value or []} == {norm(n) for n in label}


def dates_agree(value: Any, label: datetime) -> bool:
    """The same moment, or the same day where one of them has no time of its own or a zone
    was taken for another.

    Another time of the same day is another date: a reader's comment, an update.
    """
    if not isinstance(value, datetime):
        return False
    if not (value.tzinfo and label.tzinfo):
        return value.date() == label.date()
    away = abs((value - label).total_seconds())
    if away < 120:
        return True
    if value.date() != label.date() and value.astimezone(label.tzinfo).date() != label.date():
        return False
    day_only = any((d.hour, d.minute, d.second) == (0, 0, 0) for d in (value, label))
    return day_only or (away % 1800 < 60 or away % 1800 > 1740)


def date_read(value: Any, label: datetime) -> bool:
    """The label's date, and its minute where the label has one: a set that reads the day
    alone is worse than none."""
    if not dates_agree(value, label):
        return False
    return not (_is_midnight(value) and not _is_midnight(label))


def _is_midnight(value: datetime) -> bool:
    return (value.hour, value.minute, value.second) == (0, 0, 0)


def is_clock(samples: list[Sample], values: list[Any]) -> bool:
    """Whether the dates tell when the pages were fetched, not when the articles came out:
    the clock of a header.

    A day alone that is on every page the day of the fetch proves nothing
    either: all may be of today.
    """
    read = [
        (value, sample.context.fetched)
        for value, sample in zip(values, samples, strict=True)
        if isinstance(value, datetime) and sample.context.fetched
    ]
    if len(read) < LEAST_CLOCKS:
        return False
    today = sum(
        value.date() == fetched.astimezone(value.tzinfo).date()
        if _is_midnight(value)
        else abs((fetched - value).total_seconds()) < CLOCK_S
        for value, fetched in read
    )
    return today >= AGREE * len(read)
