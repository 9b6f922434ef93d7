"""Which words of an article answer a query, and the piece of its text to show. Pure;
both stores use it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from newscrawler.store.base import Marks
from newscrawler.store.fold import exact, folded, has_marks, word_spans
from newscrawler.store.query_language import Plan, Term
from newscrawler.store.spellings import ways

SNIPPET = 240  # characters
#: Highlighting looks for the best place in so many characters of a content; further down only for
#: words that are not there.
LOOKED_AT, LONGEST_LOOKED_AT = 20_000, 500_000
LOOKED_AT_MARKED = 6_000  # the first of these for scripts that need the slow way


def title_marks(title: str, plan: Plan) -> Marks:
    return _marks(title, plan.shown_in_title, plan)


def snippet(content: str, plan: Plan) -> tuple[str, Marks]:
    """About ``SNIPPET`` characters around the densest match, cut at spaces, and
    what to mark in them."""
    terms = plan.shown
    text = content[:LOOKED_AT]
    marks = _marks(text, terms, plan)
    if len(content) > LOOKED_AT and len({text[a:b].lower() for a, b in marks}) < len(terms):
        text = content[:LONGEST_LOOKED_AT]  # a word of the query stands further down, perhaps
        marks = _marks(text, terms, plan)
    start, end = _window(text, marks)
    piece = text[start:end].replace("\n", " ")
    inside = [(a - start, b - start) for a, b in marks if start <= a and b <= end]
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


def _marks(text: str, terms: tuple[Term, ...], plan: Plan) -> Marks:
    """Spans of the terms in any of their spellings."""
    if not terms or not text:
        return []
    found = _as_typed(text, terms, plan)
    other = list(dict.fromkeys(s for term in terms for s in term.spellings))
    if not other:
        return found
    return _merged(found + _search(folded(text), other))


def _as_typed(text: str, terms: tuple[Term, ...], plan: Plan) -> Marks:
    """Spans of the terms. Where the query was typed with diacritics, and the text has
    it so, only those."""
    typed = any(t.has_diacritics for t in terms)
    if not has_marks(text):
        if plan.is_exact or typed:
            found = _search(exact(text), _written(t.exact for t in terms))
            if found or plan.is_exact:
                return found
        return _search(folded(text), _written(t.folded for t in terms))
    found = _slowly(text[:LOOKED_AT_MARKED], terms, plan, typed)
    if len(text) > LOOKED_AT_MARKED and not found:
        found = _slowly(text, terms, plan, typed)
    return found


def _written(phrases: Iterable[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """In each way that finds them."""
    return [way for phrase in phrases for way in ways(phrase)]


def _slowly(text: str, terms: tuple[Term, ...], plan: Plan, typed: bool) -> Marks:
    """For texts with marks inside of words and with characters that are words by themselves."""
    spans = list(word_spans(text))
    if plan.is_exact or typed:
        found = _find([(a, b, e) for a, b, e, _ in spans], _written(t.exact for t in terms))
        if found or plan.is_exact:
            return found
    return _find([(a, b, f) for a, b, _, f in spans if f], _written(t.folded for t in terms))


def _search(text: str, phrases: list[tuple[str, ...]]) -> Marks:
    """As ``_find`` for texts whose words are runs of letters and digits. Looked for one by one:
    one pattern of all of them is tried at each letter, which costs thirty times as much."""
    found: Marks = []
    for phrase in dict.fromkeys(phrases):
        if not all(word in text for word in phrase):
            continue
        if len(phrase) == 1:
            found += _word(text, phrase[0])
        elif phrase:
            pattern = r"[\W_]+".join(map(re.escape, phrase))
            found += [m.span() for m in re.finditer(rf"(?<![^\W_]){pattern}(?![^\W_])", text)]
    return _merged(found)


def _word(text: str, word: str) -> Iterator[tuple[int, int]]:
    start = text.find(word)
    while start >= 0:
        end = start + len(word)
        if not (text[start - 1 : start].isalnum() or text[end : end + 1].isalnum()):
            yield start, end
        start = text.find(word, end)


def _find(spans: list[tuple[int, int, str]], phrases: list[tuple[str, ...]]) -> Marks:
    words = [w for _, _, w in spans]
    firsts: dict[str, list[tuple[str, ...]]] = {}
    for phrase in phrases:
        if phrase:
            firsts.setdefault(phrase[0], []).append(phrase)
    found: Marks = []
    for i, word in enumerate(words):
        for phrase in firsts.get(word, ()):
            if len(phrase) == 1 or tuple(words[i : i + len(phrase)]) == phrase:
                found.append((spans[i][0], spans[i + len(phrase) - 1][1]))
    return _merged(found)


def _merged(found: Marks) -> Marks:
    merged: Marks = []
    for start, end in sorted(found):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def _window(text: str, marks: Marks) -> tuple[int, int]:
    """The stretch of ``SNIPPET`` characters with the most marked characters,
    moved to word borders."""
    if len(text) <= SNIPPET:
        return 0, len(text)
    best, best_weight, j, weight = 0, 0, 0, 0
    for start, end in marks:
        weight += end - start
        while marks[j][0] < end - SNIPPET:
            weight -= marks[j][1] - marks[j][0]
            j += 1
        if weight > best_weight:
            best, best_weight = j, weight
    start = 0
    if best_weight:
        start = max(0, marks[best][0] - SNIPPET // 4)
    if start > 0:
        space = text.find(" ", start, start + 20)
        start = space + 1 if 0 <= space < marks[best][0] else start
    end = min(len(text), start + SNIPPET)
    if end < len(text):
        space = text.rfind(" ", end - 20, end)
        end = space if space > start else end
    return start, end
