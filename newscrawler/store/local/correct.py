"""Typing errors: the known word within one edit of an unknown one."""

from __future__ import annotations

from collections.abc import Iterator

import apsw

#: Words of one query that are corrected, and how exactly the frequency of a candidate is known.
MOST_WORDS, ENOUGH = 8, 200
_LATIN = "abcdefghijklmnopqrstuvwxyz0123456789"
_ALPHABETS = (("а", "я", "абвгдежзийклмнопрстуфхцчшщъыьэюяіїєґ"), ("α", "ω", "αβγδεζηθικλμνξοπρστυφχψω"))


def edits(word: str) -> Iterator[str]:
    """Every word one deletion, swap, replacement or insertion away (P. Norvig, "How to write a spelling corrector")."""
    letters = next((abc for first, last, abc in _ALPHABETS if first <= word[0] <= last), _LATIN)
    seen = {word}
    for i in range(len(word) + 1):
        head, tail = word[:i], word[i:]
        made = [head + c + tail for c in letters]
        if tail:
            made.append(head + tail[1:])
            made += [head + c + tail[1:] for c in letters]
        if len(tail) > 1:
            made.append(head + tail[1] + tail[0] + tail[2:])
        for candidate in made:
            if candidate and candidate not in seen:
                seen.add(candidate)
                yield candidate


def best(connection: apsw.Connection, words: tuple[str, ...]) -> dict[str, str]:
    """The most frequent candidate per folded word. About 10 ms a word."""
    found: dict[str, str] = {}
    for word in words[:MOST_WORDS]:
        top = 0
        for candidate in edits(word):
            if len(candidate) < 2:
                continue
            articles = connection.execute(
                "SELECT count(*) FROM (SELECT 1 FROM fts WHERE fts MATCH ? LIMIT ?)",
                (f'{{ft fb}} : "{candidate}"', ENOUGH),
            ).get
            if articles > top:
                top, found[word] = articles, candidate
    return found
