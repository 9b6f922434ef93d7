"""The shape of a URL: what calendars, filters and endless parameters make again and again. Pure."""

from __future__ import annotations

import re
from zlib import crc32

_DIGITS = re.compile(r"\d+")
_HEX = re.compile(r"^(?=.*\d)[0-9a-f]{8,}(?:-[0-9a-f]{4,})*$")
#: Segments of more letters, or of more words, are titles: each page has its own.
_SLUG_LETTERS = 24
_SLUG_WORDS = 4
#: Deeper segments are all one: a path that grows for ever has one shape from here on.
_SEGMENTS = 6


def pattern_of(path: str) -> str:
    """``/lich/2026/11/21?ngay=3&thang=11`` -> ``/lich/0/0/0?ngay&thang``: numbers are 0,
    ids are x, titles are ~, a segment that repeats the one before is +; of the query only
    the sorted names count."""
    path, _, query = path.partition("?")
    shaped: list[str] = []
    segments = path.lower().split("/")
    for segment, before in zip(segments, [None, *segments], strict=False):
        if len(shaped) > _SEGMENTS:
            shaped.append("*")
            break
        is_repeated = segment and segment == before and not segment.isdigit()
        if not is_repeated:
            shaped.append(_segment(segment))
        elif shaped[-1] != "+":
            shaped.append("+")
    return "/".join(shaped) + _names(query)


def _names(query: str) -> str:
    if not query:
        return ""
    names = {pair.partition("=")[0] for pair in query.lower().split("&")}
    return "?" + "&".join(_DIGITS.sub("0", name) for name in sorted(names))


def _segment(segment: str) -> str:
    stem, dot, ending = segment.partition(".")
    if _HEX.match(stem):
        stem = "x"
    elif len(stem) > _SLUG_LETTERS or stem.count("-") + stem.count("_") >= _SLUG_WORDS - 1:
        stem = "~"
    else:
        stem = _DIGITS.sub("0", stem)
    return stem + dot + ending if len(ending) < 6 else stem


def pattern_id(path: str) -> int:
    """32 bits of the shape."""
    return crc32(pattern_of(path).encode())
