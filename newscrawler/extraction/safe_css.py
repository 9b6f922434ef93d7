"""The CSS that a selector set may hold: a whitelist, so that what a model or a stranger wrote is harmless. Pure."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

MAX_CSS_CHARS = 200
MAX_COMPOUNDS = 8


class SelectorError(ValueError):
    """A selector set that is not taken. ``field``: where in the document; ``reason``: what is wrong with it."""

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(f"{field}: {reason}")
        self.field = field
        self.reason = reason


_ESCAPE = r"\\[^\n0-9a-fA-F]|\\[0-9a-fA-F]{1,6}\s?"
# Letters, _ and everything from U+00A0 on, then digits and - as well. Written by what is left out: with \w and a
# range up to \uffff in one class, compiling _COMPOUND takes half a second at every start.
_FIRST, _LATER = r"[^\x00-@\[-^`{-\x9f]", r"[^\x00-,./:-@\[-^`{-\x9f]"
_IDENT = rf"-?(?:{_FIRST}|{_ESCAPE})(?:{_LATER}|{_ESCAPE})*"
_ATTRIBUTE = rf"""\[\s*{_IDENT}(?:\s*[~|^$*]?=\s*(?:{_IDENT}|"[^"\\\n]*"|'[^'\\\n]*')\s*(?:[iIsS]\s*)?)?\s*\]"""
_SIMPLE = rf"(?:\.{_IDENT}|\#{_IDENT}|{_ATTRIBUTE})"
_PLAIN_COMPOUND = rf"(?:(?:{_IDENT}|\*){_SIMPLE}*|{_SIMPLE}+)"
_PSEUDO = (
    rf"(?::first-child|:last-child|:first-of-type|:last-of-type|:only-child"
    rf"|:nth-(?:last-)?(?:of-type|child)\(\s*(?:odd|even|[+-]?\d{{0,3}}n?\s*(?:[+-]\s*\d{{1,3}})?)\s*\)"
    rf"|:(?:not|is)\(\s*{_PLAIN_COMPOUND}(?:\s*,\s*{_PLAIN_COMPOUND}){{0,5}}\s*\))"
)
_COMPOUND = re.compile(rf"(?:(?:{_IDENT}|\*)(?:{_SIMPLE}|{_PSEUDO})*|(?:{_SIMPLE}|{_PSEUDO})+)")
_COMBINATOR = re.compile(r"\s*[>+~]\s*|\s+")
_COMMA = re.compile(r"\s*,\s*")
_TOO_BROAD = frozenset({"*", "html", "body"})


def check_css(css: Any, where: str) -> None:
    """Raises :class:`SelectorError` unless ``css`` is inside the grammar of docs/extraction.md.

    A whitelist: types, classes, ids, attributes, descendant, child and sibling combinators, :not() and
    :is() of plain compounds, positions. No :has (quadratic), nothing that a library adds to CSS.
    """
    if not isinstance(css, str) or not css.strip():
        raise SelectorError(where, "must be a CSS selector")
    if len(css) > MAX_CSS_CHARS:
        raise SelectorError(where, f"is longer than {MAX_CSS_CHARS} characters")
    problem = _css_problem(css)
    if problem:
        raise SelectorError(where, f"{problem}: {css!r}")


@lru_cache(maxsize=4096)
def _css_problem(css: str) -> str | None:
    text = css.strip()
    if text.startswith(("/", "./", "(/")) or "::" in text:
        return "is not CSS that is allowed here (XPath or pseudo-element)"
    position = compounds = 0
    narrow = False  # the part between two commas names something that not every page has everywhere
    while True:
        match = _COMPOUND.match(text, position)
        if not match or match.end() == position:
            return "ends with a combinator" if position >= len(text) else _where(position)
        compounds += 1
        narrow = narrow or match[0].lower() not in _TOO_BROAD
        if compounds > MAX_COMPOUNDS:
            return f"has more than {MAX_COMPOUNDS} compounds"
        position = match.end()
        comma = _COMMA.match(text, position)
        combinator = comma or _COMBINATOR.match(text, position)
        if combinator is None or comma:
            if not narrow:
                return "matches everything"
            narrow = False
        if combinator is None:
            return None if position == len(text) else _where(position)
        position = combinator.end()


def _where(position: int) -> str:
    return f"not in the allowed grammar at character {position + 1}"
