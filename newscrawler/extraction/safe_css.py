"""The CSS that a selector set may hold: a whitelist, so that what a model or a stranger
wrote is harmless. Pure.

Read by one scanner that never goes back: the time is linear in the length of what it is given.
Selectors come from operators, from Redis and from models, so that a pattern which tries every way
to part a text must not read them.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

MAX_CSS_CHARS = 200
MAX_COMPOUNDS = 8
#: Compounds in one :not() or :is().
_MAX_ALTERNATIVES = 6


class SelectorError(ValueError):
    """A selector set that is not taken. ``field``: where in the document; ``reason``:
    what is wrong with it."""

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(f"{field}: {reason}")
        self.field = field
        self.reason = reason


# White space as CSS has it; the others of Unicode are letters of a name there.
_SPACE = " \t\r\n\f"
_BLANK = re.compile(rf"[{_SPACE}]*+")
# Letters, _ and everything from U+00A0 on, then digits and - as well. Written by what is left out:
# with \w and a range up to \uffff in one class, compiling takes half a second at every start. The
# quantifiers with a + behind them give nothing back: a digit behind an escape is the escape's or
# the name's, never tried as both.
_ESCAPE = rf"\\[^\n0-9a-fA-F]|\\[0-9a-fA-F]{{1,6}}+[{_SPACE}]?+"
_FIRST, _LATER = r"[^\x00-@\[-^`{-\x9f]", r"[^\x00-,./:-@\[-^`{-\x9f]"
_IDENT = re.compile(rf"-?(?:{_FIRST}|{_ESCAPE})(?:{_LATER}|{_ESCAPE})*+")
_STRING = re.compile(r""""[^"\\\n]*+"|'[^'\\\n]*+'""")
_OPERATOR = re.compile(r"[~|^$*]?=")
_POSITION = re.compile(
    r":(?:first-child|last-child|first-of-type|last-of-type|only-child)"
    r"|:nth-(?:last-)?(?:of-type|child)(?P<argument>\()"
)
_STEP = re.compile(rf"odd|even|[+-]?[0-9]{{0,3}}n?+(?:[{_SPACE}]*+[+-][{_SPACE}]*+[0-9]{{1,3}}+)?+")
_NESTED = re.compile(r":(?:not|is)\(")
_COMBINATORS = ">+~"
_TOO_BROAD = frozenset({"*", "html", "body"})


def check_css(css: Any, where: str) -> None:
    """Raises :class:`SelectorError` unless ``css`` is inside the grammar of docs/extraction.md.

    A whitelist: types, classes, ids, attributes, descendant, child and sibling combinators,
    :not() and :is() of plain compounds, positions. No :has (quadratic), nothing that a
    library adds to CSS.
    """
    if not isinstance(css, str) or not css.strip():
        raise SelectorError(where, "must be a CSS selector")
    if len(css) > MAX_CSS_CHARS:
        raise SelectorError(where, f"is longer than {MAX_CSS_CHARS} characters")
    problem = css_problem(css)
    if problem:
        raise SelectorError(where, f"{problem}: {css!r}")


@lru_cache(maxsize=4096)
def css_problem(css: str) -> str | None:
    """Why ``css`` is outside the grammar, whatever its length; None when it is inside."""
    text = css.strip(_SPACE)
    if text.startswith(("/", "./", "(/")) or "::" in text:
        return "is not CSS that is allowed here (XPath or pseudo-element)"
    return _Scanner(text).problem()


class _Scanner:
    """Reads from left to right. Each method takes what it names and is True, or stays where it was
    and is False; behind a bracket that was opened False means that the selector is refused,
    wherever it stands then."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def problem(self) -> str | None:
        compounds = 0
        narrow = (
            False  # the part between two commas names something that not every page has everywhere
        )
        while True:
            start = self.at
            if not self._compound():
                return "ends with a combinator" if start >= len(self.text) else self._where()
            compounds += 1
            narrow = narrow or self.text[start : self.at].lower() not in _TOO_BROAD
            if compounds > MAX_COMPOUNDS:
                return f"has more than {MAX_COMPOUNDS} compounds"
            joined = self._combinator()
            if joined in ("", ","):
                if not narrow:
                    return "matches everything"
                narrow = False
            if not joined:
                return None if self.at == len(self.text) else self._where()

    def _where(self) -> str:
        return f"not in the allowed grammar at character {self.at + 1}"

    def _combinator(self) -> str:
        """The sign between two compounds, a space for the descendant, "" for none."""
        start = self.at
        self._blank()
        sign = self.text[self.at : self.at + 1]
        if sign and sign in "," + _COMBINATORS:
            self.at += 1
            self._blank()
            return sign
        return " " if self.at > start else ""

    def _compound(self, plain: bool = False) -> bool:
        """A type, then classes, ids, attributes and, unless ``plain``, positions,
        :not() and :is()."""
        found = self._take(_IDENT) or self._sign("*")
        while self._simple() or (not plain and self._pseudo()):
            found = True
        return found

    def _simple(self) -> bool:
        start = self.at
        if self._sign(".") or self._sign("#"):
            return self._take(_IDENT) or self._back(start)
        return self._attribute()

    def _attribute(self) -> bool:
        start = self.at
        if not self._sign("["):
            return False
        self._blank()
        if not self._take(_IDENT):
            return self._back(start)
        self._blank()
        if self._take(_OPERATOR):
            self._blank()
            if not (self._take(_IDENT) or self._take(_STRING)):
                return self._back(start)
            self._blank()
            if any(self._sign(flag) for flag in "iIsS"):
                self._blank()
        return self._sign("]") or self._back(start)

    def _pseudo(self) -> bool:
        start = self.at
        position = _POSITION.match(self.text, start)
        if position:
            self.at = position.end()
            if position["argument"] is None:
                return True
            self._blank()
            self._take(_STEP)
            self._blank()
            return self._sign(")") or self._back(start)
        if not self._take(_NESTED):
            return False
        for _ in range(_MAX_ALTERNATIVES):
            self._blank()
            if not self._compound(plain=True):
                break
            self._blank()
            if self._sign(")"):
                return True
            if not self._sign(","):
                break
        return self._back(start)

    def _take(self, pattern: re.Pattern[str]) -> bool:
        match = pattern.match(self.text, self.at)
        if match:
            self.at = match.end()
        return match is not None

    def _sign(self, sign: str) -> bool:
        found = self.text.startswith(sign, self.at)
        self.at += found
        return found

    def _blank(self) -> None:
        self._take(_BLANK)

    def _back(self, start: int) -> bool:
        """Where the part began that is refused: nothing else is tried there, it
        ends the selector."""
        self.at = start
        return False
