"""Which words of an article answer a query, and the piece of its text to show. Pure;
both stores use it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from newscrawler.store.base import Marks
from newscrawler.store.fold import bare, exact, folded, has_marks, word_spans
from newscrawler.store.query_language import Plan, Term
from newscrawler.store.spellings import ways

SNIPPET = 240  # characters
#: Highlighting looks for the best place in so many characters of a content; further down only where
#: a word of the query is not there as it was typed.
LOOKED_AT, LONGEST_LOOKED_AT = 20_000, 500_000
#: Scripts that need the slow way are read in pieces of so many characters, which overlap by the
#: longest row of words that is found across their ends.
PIECE, OVERLAP = 6_000, 200
#: Start, end, and which term of the plan stands there.
_Span = tuple[int, int, int]
#: Start, end and a word of a text.
_Word = tuple[int, int, str]


def title_marks(title: str, plan: Plan) -> Marks:
    terms = plan.shown_in_title
    return _marks(_places(title, _look(title, terms, plan)[0], plan))


def snippet(content: str, plan: Plan) -> tuple[str, Marks]:
    """About ``SNIPPET`` characters around the place with the most different words of the query,
    cut at spaces, and what to mark in them."""
    text = content[:LOOKED_AT]
    spans, is_all = _look(text, plan.shown, plan)
    if not is_all and len(content) > LOOKED_AT:
        text = content[:LONGEST_LOOKED_AT]
        spans, _ = _look(text, plan.shown, plan)
    places = _places(text, spans, plan)
    start, end = _window(text, places, [len(term.folded) or 1 for term in plan.shown])
    piece = text[start:end].replace("\n", " ")
    inside = [
        (max(a, start) - start, min(b, end) - start)
        for a, b in _marks(places)
        if a < end and b > start
    ]
    if start > 0:
        piece, inside = "… " + piece, [(a + 2, b + 2) for a, b in inside]
    return (piece + " …" if end < len(content) else piece), inside


def mark(text: str, marks: Marks, before: str, after: str) -> str:
    """``text`` with every marked part between ``before`` and ``after``."""
    out, last = [], 0
    for start, end in marks:
        out += [text[last:start], before, text[start:end], after]
        last = end
    return "".join([*out, text[last:]])


def _look(text: str, terms: tuple[Term, ...], plan: Plan) -> tuple[list[_Span], bool]:
    """Where the terms stand, in any of their spellings, and whether each of them does as it was
    typed: a word that was typed with diacritics and stands there without them is marked, but may
    stand further down as it was typed."""
    if not terms or not text:
        return [], True
    ways_of = [_Ways.of(term, plan, terms) for term in terms]
    return (_slowly if has_marks(text) else _quickly)(text, ways_of)


@dataclass(frozen=True, slots=True)
class _Ways:
    """What a term is looked for as: as typed (``exact``), else without regard to diacritics
    (``plain``), and its other spellings, which are compared folded. Nothing of a kind: not so."""

    exact: tuple[tuple[str, ...], ...]
    plain: tuple[tuple[str, ...], ...]
    spellings: tuple[tuple[str, ...], ...]

    @classmethod
    def of(cls, term: Term, plan: Plan, terms: tuple[Term, ...]) -> _Ways:
        is_typed = plan.is_exact or any(t.has_diacritics for t in terms)
        return cls(
            ways(term.exact) if is_typed and term.exact else (),
            ways(term.folded) if not plan.is_exact and term.folded else (),
            tuple(filter(None, term.spellings)),
        )


def _quickly(text: str, ways_of: Sequence[_Ways]) -> tuple[list[_Span], bool]:
    """For texts whose words are runs of letters and digits."""
    spans: list[_Span] = []
    is_all = True
    forms: dict[str, str] = {}

    def search(form: str, phrases: tuple[tuple[str, ...], ...]) -> Marks:
        if phrases and form not in forms:
            forms[form] = exact(text) if form == "exact" else folded(text)
        return _search(forms[form], phrases) if phrases else []

    for number, one in enumerate(ways_of):
        other = search("folded", one.spellings)
        own = search("exact", one.exact) if one.exact else search("folded", one.plain)
        is_all &= bool(own or other)
        if one.exact and not own:
            own = search("folded", one.plain)
        spans += [(a, b, number) for a, b in own + other]
    return sorted(spans), is_all


@dataclass(slots=True)
class _Standing:
    """Where one term stands in a text that is read piece by piece: as it was typed, without regard
    to diacritics, in other spellings."""

    ways: _Ways
    typed: set[tuple[int, int]] = field(default_factory=set)
    plain: set[tuple[int, int]] = field(default_factory=set)
    spelt: set[tuple[int, int]] = field(default_factory=set)

    def look(self, as_typed: list[_Word], as_folded: list[_Word]) -> None:
        self.typed.update(_find(as_typed, self.ways.exact))
        self.plain.update(_find(as_folded, self.ways.plain))
        self.spelt.update(_find(as_folded, self.ways.spellings))

    @property
    def is_found(self) -> bool:
        """As it was typed: else it may stand further down."""
        return bool(self.spelt or (self.typed if self.ways.exact else self.plain))

    @property
    def places(self) -> set[tuple[int, int]]:
        return (self.typed or self.plain) | self.spelt

    def may_stand(self, lower: str, plain: str) -> bool:
        """Whether a piece has the words of one of the ways, anywhere."""
        ways = self.ways
        return any(all(word in lower for word in way) for way in ways.exact) or any(
            all(word in plain for word in way) for way in (*ways.plain, *ways.spellings)
        )


def _slowly(text: str, ways_of: Sequence[_Ways]) -> tuple[list[_Span], bool]:
    """For texts with marks inside of words and with characters that are words by themselves: the
    first piece, and of the others those that may have what was not found yet."""
    terms = [_Standing(one) for one in ways_of]
    for start, piece in _pieces(text):
        missing = [one for one in terms if not one.is_found]
        if not missing:
            break
        if start and not _may_stand(missing, piece):
            continue
        words = [(start + a, start + b, e, f) for a, b, e, f in word_spans(piece)]
        as_typed = [(a, b, e) for a, b, e, _ in words]
        as_folded = [(a, b, f) for a, b, _, f in words if f]
        for one in terms:
            one.look(as_typed, as_folded)
    found = sorted((a, b, n) for n, one in enumerate(terms) for a, b in one.places)
    return found, all(one.is_found for one in terms)


def _may_stand(missing: Iterable[_Standing], piece: str) -> bool:
    lower, plain = exact(piece), bare(piece)
    return any(one.may_stand(lower, plain) for one in missing)


def _pieces(text: str) -> Iterator[tuple[int, str]]:
    for at in range(0, len(text), PIECE):
        start = max(0, at - OVERLAP)
        # At a space, where there is one: half a word would be another word.
        start = text.find(" ", start, at) + 1 or start
        end = max(at + PIECE, text.find(" ", at + PIECE, at + PIECE + OVERLAP))
        yield start, text[start:end]


def _search(text: str, phrases: Iterable[tuple[str, ...]]) -> Marks:
    """As ``_find`` for texts whose words are runs of letters and digits. Looked for one by one:
    one pattern of all of them is tried at each letter, which costs thirty times as much."""
    found: Marks = []
    for phrase in dict.fromkeys(phrases):
        if not all(word in text for word in phrase):
            continue
        if len(phrase) == 1:
            found += _places_of(text, phrase[0])
        elif phrase:
            pattern = r"[\W_]+".join(map(re.escape, phrase))
            found += [m.span() for m in re.finditer(rf"(?<![^\W_]){pattern}(?![^\W_])", text)]
    return found


def _places_of(text: str, word: str) -> Iterator[tuple[int, int]]:
    start = text.find(word)
    while start >= 0:
        end = start + len(word)
        if not (text[start - 1 : start].isalnum() or text[end : end + 1].isalnum()):
            yield start, end
        start = text.find(word, end)


def _find(spans: list[_Word], phrases: Iterable[tuple[str, ...]]) -> Marks:
    """As ``_search`` over words with their places."""
    firsts: dict[str, list[tuple[str, ...]]] = {}
    for phrase in phrases:
        firsts.setdefault(phrase[0], []).append(phrase)
    found: Marks = []
    for i, (start, _, word) in enumerate(spans if firsts else ()):
        for phrase in firsts.get(word, ()):
            row = spans[i : i + len(phrase)]
            if tuple(one for _, _, one in row) == phrase:
                found.append((start, row[-1][1]))
    return found


@dataclass(slots=True)
class _Stretch:
    """A stretch of the text that is marked, the terms that stand there, and whether it follows the
    one before as the two do in the query: neighbours are one mark, as a compound is one word."""

    start: int
    end: int
    terms: set[int]
    follows: bool = False


def _places(text: str, spans: list[_Span], plan: Plan) -> list[_Stretch]:
    places: list[_Stretch] = []
    for start, end, number in spans:
        if places and start <= places[-1].end:
            places[-1].end = max(end, places[-1].end)
            places[-1].terms.add(number)
        else:
            places.append(_Stretch(start, end, {number}))
    behind = _behind(plan)
    for before, place in pairwise(places):
        is_near = not text[before.end : place.start].strip(" \u00a0")
        place.follows = is_near and any(n in behind and n - 1 in before.terms for n in place.terms)
    return places


def _behind(plan: Plan) -> set[int]:
    """Terms that stand behind another one in the query, as words side by side."""
    first = len(plan.terms)
    return {*range(1, first), *range(first + 1, first + len(plan.any_of))}


def _marks(places: list[_Stretch]) -> Marks:
    marks: Marks = []
    for place in places:
        if place.follows:
            marks[-1] = marks[-1][0], place.end
        else:
            marks.append((place.start, place.end))
    return marks


def _window(text: str, places: list[_Stretch], words: list[int]) -> tuple[int, int]:
    """The best stretch of ``SNIPPET`` characters, moved to word borders.

    :param words: how many each term has
    """
    if len(text) <= SNIPPET:
        return 0, len(text)
    first, last = _best(places, words)
    lead = max(0, min(SNIPPET // 4, SNIPPET - (last - first)))
    start = max(0, min(first - lead, len(text) - SNIPPET))
    if start > 0:
        space = text.find(" ", start, start + 20)
        start = space + 1 if 0 <= space < first else start
    end = min(len(text), start + SNIPPET)
    if end < len(text):
        space = text.rfind(" ", end - 20, end)
        end = space if space >= last or start < space < end < last else end
    return start, end


def _best(places: list[_Stretch], words: list[int]) -> tuple[int, int]:
    """Where the stretch with the most different words of the query begins and ends; of several
    the one in which most of them stand together, then the one with the most marks."""
    best, found = (0, 0, 0), (0, 0)
    inside = [0] * len(words)  # how often each term stands in the stretch
    different = together = first = 0
    for at, place in enumerate(places):
        for number in place.terms:
            different += 0 if inside[number] else words[number]
            inside[number] += 1
        together += place.follows and at > first
        while first < at and places[first].start < place.end - SNIPPET:
            for number in places[first].terms:
                inside[number] -= 1
                different -= 0 if inside[number] else words[number]
            first += 1
            together -= places[first].follows  # what it follows is left out
        weight = different, together, at - first
        if weight > best:
            best, found = weight, (places[first].start, place.end)
    return found
