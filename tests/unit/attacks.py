"""Strings that make a pattern work hardest, derived from the pattern itself."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from re import _constants as sre  # type: ignore[attr-defined]
from re import _parser as sre_parser  # type: ignore[attr-defined]
from typing import Any

#: Characters that stand for a class: of each kind one, so that two classes that overlap share one.
_POOL = " \na1A-,.:/<(\"é'&;#_{[=@>|à\u00a0ß中"
_LAST_RESORT = "".join(map(chr, range(33, 0x250))) + "가ไ한あ\u2013\u2014\u00b7"
_SAMPLES_A_CLASS = 2
#: What no pattern wants next: the match fails at the end of the run and is tried anew.
ENDS = ("\x00", "\n\x00")
_REPEATS = (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT)
_LONG = 64


def attacks(pattern: re.Pattern[str]) -> Iterator[tuple[str, str, str]]:
    """(before, part, behind): the text is the part, as often as wanted, between the two."""
    found: dict[tuple[str, str, str], None] = {}
    for before, part in _runs(sre_parser.parse(pattern.pattern, pattern.flags), "", pattern.flags):
        for end in ENDS:
            found[before, part, end] = None
            if before:
                found["", before + part, end] = None
                found["", before, end] = None
    yield from found


def _runs(nodes: Any, before: str, flags: int) -> Iterator[tuple[str, str]]:
    """Each long repeat: the shortest text that leads to it, and what it repeats."""
    for op, value in nodes:
        if op in _REPEATS:
            _, most, body = value
            if most > _LONG:
                parts = _parts(body, flags)
                yield from ((before, part) for part in parts if part)
                yield from ((before, a + b) for a, b in pairwise(parts))
            yield from _runs(body, before, flags)
        else:
            for inner in _inside(op, value):
                yield from _runs(inner, before, flags)
        before += _shortest([(op, value)], flags)


def _inside(op: Any, value: Any) -> list[Any]:
    if op is sre.SUBPATTERN:
        return [value[3]]
    if op is sre.BRANCH:
        return list(value[1])
    if op is sre.ATOMIC_GROUP:
        return [value]
    if op in (sre.ASSERT, sre.ASSERT_NOT):
        return [value[1]]
    if op is sre.GROUPREF_EXISTS:
        return [branch for branch in value[1:] if branch]
    return []


def _parts(body: Any, flags: int) -> list[str]:
    """Texts that one round of the repeat takes: a few of its characters, or its
    shortest and its longer."""
    if len(body) == 1 and body[0][0] in (sre.IN, sre.ANY, sre.NOT_LITERAL, sre.LITERAL):
        return _characters(body[0], flags)[:_SAMPLES_A_CLASS]
    if len(body) == 1 and body[0][0] is sre.SUBPATTERN:
        return _parts(body[0][1][3], flags)
    if len(body) == 1 and body[0][0] is sre.BRANCH:
        return [_shortest(branch, flags, 1) for branch in body[0][1][1]][:6]
    return list(dict.fromkeys((_shortest(body, flags), _shortest(body, flags, 1))))


def _characters(node: Any, flags: int) -> list[str]:
    """Characters that this class takes."""
    op, value = node
    if op is sre.LITERAL:
        return [chr(value)]
    one = sre_parser.SubPattern(sre_parser.State(), [node])
    one.state.flags = flags & ~re.VERBOSE
    one.state.str = ""
    takes = _compiled(one)
    return [c for c in _POOL if takes.match(c)] or [c for c in _LAST_RESORT if takes.match(c)][:1]


def _compiled(parsed: Any) -> re.Pattern[str]:
    from re import _compiler  # type: ignore[attr-defined]

    code = _compiler._code(parsed, parsed.state.flags)
    return _compiler._sre.compile("", parsed.state.flags, code, 0, {}, (None,))  # type: ignore[no-any-return]


def _shortest(nodes: Any, flags: int, rounds: int = 0) -> str:
    """A short text that these nodes take; an optional repeat is taken ``rounds`` times."""
    text = ""
    for op, value in nodes:
        if op in _REPEATS:
            least, most, body = value
            text += _shortest(body, flags, rounds) * min(max(least, rounds), most)
        elif op in (sre.IN, sre.ANY, sre.NOT_LITERAL, sre.LITERAL):
            text += "".join(_characters((op, value), flags)[:1])
        elif op is sre.BRANCH:
            text += min((_shortest(branch, flags, rounds) for branch in value[1]), key=len)
        elif op in (sre.SUBPATTERN, sre.ATOMIC_GROUP):
            text += _shortest(_inside(op, value)[0], flags, rounds)
    return text
