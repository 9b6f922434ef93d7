"""Values by which articles are filtered and counted as a whole: of the fields that are
declared ``facet``. Pure.

Two spellings are one value when their folded words are the same: "Bóng đá",
"bóng-đá" and "bong da".
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from newscrawler.items import FIELDS, Article
from newscrawler.store.fold import folded_words

FACETED = tuple(f for f in FIELDS if f.facet)
#: Keys of the query language, and names of the facets.
KEYS = tuple(f.key for f in FACETED)
#: Those of which an article has one value: two that are asked for are alternatives.
SINGLE = tuple(f.key for f in FACETED if f.type != "texts")
_CODES = tuple(f.key for f in FACETED if f.type == "code")
#: Values of a facet that are answered: those with the most articles.
MOST = 50


@dataclass(frozen=True, slots=True)
class Label:
    """``key`` of the field, ``folded`` what is compared, ``text`` as the article has it."""

    key: str
    folded: str
    text: str


def folded(text: str) -> str:
    """What is compared of a value; "" when it has no word."""
    return " ".join(folded_words(text))


def compared(key: str, text: str) -> str:
    """As ``folded``; of a code its first part: "en-GB" is "en"."""
    words = folded(text)
    return words.partition(" ")[0] if key in _CODES else words


def labels_of(article: Article) -> list[Label]:
    """Each value once. ``article`` is from ``codec.cleaned``."""
    found: dict[tuple[str, str], Label] = {}
    for field in FACETED:
        value = getattr(article, field.name) or []
        for text in [value] if isinstance(value, str) else value:
            if words := compared(field.key, text):
                said = words if field.key in _CODES else text
                found.setdefault((field.key, words), Label(field.key, words, said))
    return list(found.values())


def counted(found: Iterable[tuple[str, str, int]]) -> dict[str, int]:
    """A facet from ``(folded, text, articles)``: values under their most frequent spelling,
    most articles first."""
    spellings: dict[str, dict[str, int]] = {}
    for words, text, count in found:
        spellings.setdefault(words, {})[text] = count
    sums = {_most_frequent(of): sum(of.values()) for of in spellings.values()}
    return dict(sorted(sums.items(), key=lambda item: (-item[1], item[0]))[:MOST])


def _most_frequent(counts: dict[str, int]) -> str:
    return min(counts, key=lambda text: (-counts[text], text))
