"""Values by which articles are filtered and counted as a whole: of the fields that are
declared ``facet``. Pure.

Two spellings are one value when their folded words are the same: "Bóng đá",
"bóng-đá" and "bong da".
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from newscrawler.items import FIELDS, Article, Field
from newscrawler.store.fold import folded_words

#: Not a field: what an article lacks. "date": the day it was published on.
WITHOUT = Field("without", "texts", label="Without", key="without", facet=True)
FACETED = (*(f for f in FIELDS if f.facet), WITHOUT)
#: Keys of the query language, and names of the facets.
KEYS = tuple(f.key for f in FACETED)
#: Typed in a query, some words of such a value are enough; chosen from a list, it is compared as a
#: whole.
BY_WORDS = ("author",)
#: Those of which an article has one value: two that are asked for are alternatives.
SINGLE = tuple(f.key for f in FACETED if f.type != "texts")
_CODES = tuple(f.key for f in FACETED if f.type == "code")
#: Values of a facet that are answered: those with the most articles, beside a search and alone.
MOST, MOST_ALONE = 50, 500


@dataclass(frozen=True, slots=True)
class Label:
    """``key`` of the field, ``folded`` what is compared, ``text`` as the article has it."""

    key: str
    folded: str
    text: str


def folded(text: str) -> str:
    """The form in which values are compared; "" when it has no word."""
    return " ".join(folded_words(text))


def compared(key: str, text: str) -> str:
    """As ``folded``; of a code its first part: "en-GB" is "en"."""
    words = folded(text)
    return words.partition(" ")[0] if key in _CODES else words


def labels_of(article: Article) -> list[Label]:
    """Each value once. ``article`` is from ``codec.cleaned``."""
    found: dict[tuple[str, str], Label] = {}
    for field in FACETED:
        if field is WITHOUT:
            value = [] if article.published else ["date"]
        else:
            value = getattr(article, field.name) or []
        for text in [value] if isinstance(value, str) else value:
            if words := compared(field.key, text):
                said = words if field.key in _CODES else text
                found.setdefault((field.key, words), Label(field.key, words, said))
    return list(found.values())


def counted(found: Iterable[tuple[str, str, int]], most: int = MOST) -> dict[str, int]:
    """A facet from ``(folded, text, articles)``: values under their most frequent spelling,
    most articles first."""
    spellings: dict[str, dict[str, int]] = {}
    for words, text, count in found:
        spellings.setdefault(words, {})[text] = count
    sums = {_most_frequent(of): sum(of.values()) for of in spellings.values()}
    return dict(sorted(sums.items(), key=lambda item: (-item[1], item[0]))[:most])


def matched_values(found: Iterable[tuple[str, int]], within: str) -> dict[str, int]:
    """Of values with their articles, as an index keeps them (``folded value, a tab, a spelling``;
    a site without a tab), those that have the words of ``within`` at the beginning of theirs."""
    asked = folded(within).split()
    rows = []
    for kept, articles in found:
        value, tab, text = kept.partition("\t")
        words = value.split() if tab else folded(kept).split()
        if all(any(word.startswith(one) for word in words) for one in asked):
            rows.append((value, text if tab else kept, articles))
    return counted(rows, MOST_ALONE)


def _most_frequent(counts: dict[str, int]) -> str:
    return min(counts, key=lambda text: (-counts[text], text))
