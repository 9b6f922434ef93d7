"""Other ways to write what is looked for: joined, split, abbreviated. Pure.

    covid19 = covid-19 = covid 19        letters, then digits
    500000 = 500.000 = 500 000           groups of three digits
    saigon = sài gòn                     a word of another language's papers is several syllables
    TPHCM = TP.HCM = thành phố Hồ Chí Minh
    Mỹ = Mĩ, bác sỹ = bác sĩ, quý = quí      see ``ways``

All of it is compared folded. Of a word that stands beside others the spelling is given to each of
them: (sài or saigon) and (gòn or saigon) is what (sài and gòn) or saigon is.
"""

from __future__ import annotations

import importlib.resources
import json
import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache, lru_cache
from itertools import pairwise, product
from typing import Any

from newscrawler.store.fold import exact, folded
from newscrawler.store.query_language import Term

Spelling = tuple[str, ...]

#: Syllables that a word is split into, and spellings of one term, at most.
MOST_SYLLABLES, MOST_SPELLINGS = 3, 8
#: Neighbours are joined in queries of so many terms: of a longer one the other words are enough.
MOST_JOINED = 6
#: Syllables of one row that are looked for with i and with y.
MOST_I_OR_Y = 3
#: Folded syllables that are written with either.
_I_OR_Y = re.compile("(?:qu|[hklmstv])?[iy]")
_LETTERS_AND_DIGITS = re.compile(r"([a-z]+)(\d+)")
_THOUSANDS = re.compile(r"[1-9]\d{0,2}(\d{3})+")
_GROUP = re.compile(r"\d{3}")


def spelt(terms: Sequence[Term]) -> tuple[Term, ...]:
    """The terms of a query with their other spellings; what is quoted is meant as it stands."""
    found: list[dict[Spelling, None]] = [{} for _ in terms]
    for of_one, term in zip(found, terms, strict=True):
        if not term.quoted:
            of_one |= dict.fromkeys(_of_one(term.folded))
    for first, second in pairwise(range(len(terms) if len(terms) <= MOST_JOINED else 0)):
        a, b = terms[first], terms[second]
        if not (a.quoted or b.quoted) and len(a.folded) == len(b.folded) == 1:
            for joined in _joined((a.folded[0], b.folded[0])):
                found[first][joined] = found[second][joined] = None
    for places, spellings in _abbreviated(terms):
        for place in places:
            found[place] |= dict.fromkeys(spellings)
    return tuple(
        replace(term, spellings=tuple(of_one)[:MOST_SPELLINGS]) if of_one else term
        for term, of_one in zip(terms, found, strict=True)
    )


def _of_one(words: Spelling) -> Iterator[Spelling]:
    """Of one word, or of one that signs divide: "covid-19"."""
    if len(words) > 1:
        yield from _joined(words)
        return
    for word in words:
        if parts := _LETTERS_AND_DIGITS.fullmatch(word):
            yield parts[1], parts[2]
        elif _THOUSANDS.fullmatch(word):
            start = len(word) % 3
            groups = (word[:start], *(word[i : i + 3] for i in range(start, len(word), 3)))
            yield tuple(group for group in groups if group)


def _joined(words: Spelling) -> Iterator[Spelling]:
    """As one word, if that is not another one: "to a" is no "toa", "2 9" no "29"."""
    joined = "".join(words)
    if joined.isdigit():
        if _THOUSANDS.fullmatch(joined) and all(map(_GROUP.fullmatch, words[1:])):
            yield (joined,)
    elif joined.isascii() and not (words[0][-1:].isdigit() or is_syllable(joined)):
        yield (joined,)


def _abbreviated(terms: Sequence[Term]) -> Iterator[tuple[list[int], list[Spelling]]]:
    """Which terms, in a row, are one of the known forms, and the others."""
    words: list[tuple[int, str]] = []
    for place, term in enumerate(terms):
        words += [(place, word) for word in (("",) if term.quoted else term.folded)]
    by_form = _abbreviations()
    longest = max(map(len, by_form))
    for start in range(len(words)):
        for length in range(min(longest, len(words) - start), 0, -1):
            row = words[start : start + length]
            if others := by_form.get(tuple(word for _, word in row)):
                yield list(dict.fromkeys(place for place, _ in row)), others
                break


@lru_cache(maxsize=1_000)
def ways(words: Spelling) -> tuple[Spelling, ...]:
    """Words in a row, exact or folded, as they stand and with i for y and y for i where Vietnamese
    writes both: a paper has one of them, a reader types the other. At most ``MOST_SPELLINGS``."""
    other = [_with_i_or_y(word) for word in words]
    places = [i for i, word in enumerate(other) if word][:MOST_I_OR_Y]
    found = []
    for taken in product((False, True), repeat=len(places)):
        changed = {place for place, is_taken in zip(places, taken, strict=True) if is_taken}
        found.append(tuple(other[i] if i in changed else w for i, w in enumerate(words)))
    return tuple(found)


def _with_i_or_y(word: str) -> str:
    """The other one of two spellings, "" where there is none. After qu the exact form has the tone
    on the u where a y follows, on the i otherwise."""
    if len(word) > 3 or not _I_OR_Y.fullmatch(folded(word)):
        return ""
    letters = unicodedata.normalize("NFD", word)
    tone = "".join(c for c in letters if unicodedata.combining(c))
    base = "".join(c for c in letters if not unicodedata.combining(c))
    if len(base) == 1 and not tone:
        return ""  # "i" and "y" alone are letters
    swapped = base[:-1] + ("i" if base[-1] == "y" else "y") + tone
    return exact(unicodedata.normalize("NFC", swapped))


@lru_cache(maxsize=1_000)
def splits(word: str) -> tuple[Spelling, ...]:
    """A folded word as Vietnamese syllables: "hanoi" -> (ha, noi), (han, oi). None of what is one
    itself, or no Vietnamese."""
    if not 3 <= len(word) <= MOST_SYLLABLES * _longest_syllable() or is_syllable(word):
        return ()
    if not word.isalpha() or not word.isascii():
        return ()
    return tuple(_split(word, MOST_SYLLABLES))[:MOST_SPELLINGS]


def _split(word: str, most: int) -> Iterator[Spelling]:
    if is_syllable(word):
        yield (word,)
    if most > 1:
        for end in range(1, len(word)):
            if is_syllable(word[:end]):
                yield from ((word[:end], *rest) for rest in _split(word[end:], most - 1))


@cache
def _longest_syllable() -> int:
    return max(map(len, _syllables()))


def is_syllable(word: str) -> bool:
    """Whether Vietnamese has syllables that fold to it."""
    return word in _syllables()


@cache
def _data() -> dict[str, Any]:
    file = importlib.resources.files("newscrawler.store") / "vietnamese.json"
    found: dict[str, Any] = json.loads(file.read_text("utf-8"))
    return found


@cache
def _syllables() -> frozenset[str]:
    data = _data()
    return frozenset(onset + rime for onset in ("", *data["onsets"]) for rime in data["rimes"])


@cache
def _abbreviations() -> dict[Spelling, list[Spelling]]:
    """Each known form with the other ones of the same thing."""
    made: dict[Spelling, list[Spelling]] = {}
    for forms in _data()["abbreviations"]:
        split = [tuple(form.split()) for form in forms]
        for form in split:
            made[form] = [other for other in split if other != form]
    return made
