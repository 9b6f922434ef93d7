"""Words of languages as data: one file a language, read once; patterns are put together from them
when first used. Pure.

``<language>.json`` (ISO 639-1; "mul": words of no one language) holds lists of forms,
``lexicon.schema.json`` says what each list is for. A list is the union over all languages: a page
is read before its language is certain, and many pages mix two. To teach the crawler a word, add it
to its language's file; no code is touched.

``class_names.json`` is the one list of class and id names that say what an element is, with the
uses of each name; a use is read as the list ``class.<use>``.

``months.json`` has the names of the months in some forty languages, case-folded and without dots,
made from Unicode CLDR's names: month -> names.

A form is text in lower case with five signs: ``[x]`` may be there, ``<x|y>`` one of these
(``[x|y]`` one or none), ``~`` any further letters of the word, ``…`` up to 40 characters of
anything, ``!`` the edge of a word.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from functools import cache, cached_property
from importlib.resources import files
from typing import Any

_CLASS_NAMES = "class_names.json"
_MONTHS = "months.json"
# "<byline.label>" in a template: the point sets it apart from what regular expressions
# write with such signs.
_PLACE = re.compile(r"<([a-z_]+\.[a-z_]+)>")
# "(?<!<class.post>-)": a look behind has one width, so each spelling gets one of its own.
_NOT_BEHIND = re.compile(r"\(\?<!<([a-z_]+\.[a-z_]+)>(-?)\)")
_SIGNS = {
    "[": "(?:",
    "]": ")?",
    "<": "(?:",
    ">": ")",
    "|": "|",
    "~": r"\w*",
    "…": r".{0,40}",
    "!": r"\b",
}


def languages() -> dict[str, dict[str, Any]]:
    """The files as they are, by language."""
    folder = files(__package__)
    found = {
        path.name.removesuffix(".json"): json.loads(path.read_text(encoding="utf-8"))
        for path in folder.iterdir()
        if re.fullmatch(r"[a-z]{2,3}\.json", path.name)
    }
    return dict(sorted(found.items()))


def class_names() -> dict[str, dict[str, Any]]:
    """``uses``: what each means; ``names``: form -> its uses."""
    found: dict[str, dict[str, Any]] = json.loads(_read(_CLASS_NAMES))
    return found


def _read(name: str) -> str:
    return (files(__package__) / name).read_text(encoding="utf-8")


@cache
def _lists() -> dict[str, tuple[str, ...]]:
    merged: dict[str, dict[str, None]] = {}
    for file in languages().values():
        for key, forms in file["words"].items():
            merged.setdefault(key, {}).update(dict.fromkeys(forms))
    for form, uses in class_names()["names"].items():
        for use in uses:
            merged.setdefault(f"class.{use}", {})[form] = None
    return {key: tuple(forms) for key, forms in merged.items()}


def forms(key: str) -> tuple[str, ...]:
    """The forms of a list in all languages; KeyError when no file has it."""
    return _lists()[key]


@cache
def words(key: str) -> frozenset[str]:
    """Every spelling that the forms of a list stand for; for lists whose forms are whole
    words and phrases."""
    return frozenset(spelling for form in forms(key) for spelling in spellings(form))


@cache
def words_of(language: str, key: str) -> frozenset[str]:
    """The forms of one language; empty where it has no file or no such list."""
    return frozenset(languages().get(language, {"words": {}})["words"].get(key, ()))


@cache
def months() -> dict[str, int]:
    """Name of a month, in lower case and without dots -> 1 to 12."""
    found: dict[str, list[str]] = json.loads(_read(_MONTHS))
    return {name: int(month) for month, names in found.items() for name in names}


def spellings(form: str) -> Iterator[str]:
    """ "text[e]" -> "text", "texte".

    :raises ValueError: the form has "~" or "…", and so no end of spellings
    """
    if "~" in form or "…" in form:
        raise ValueError(f"{form!r} stands for any number of words and cannot be a word of a set")
    if (bracket := re.search(r"[\[<]", form)) is None:
        yield form
        return
    start = bracket.start()
    end = _closing(form, start)
    choices = _choices(form[start + 1 : end])
    for choice in choices + [""] * (form[start] == "["):
        yield from spellings(form[:start] + choice + form[end + 1 :])


def _closing(form: str, start: int) -> int:
    depth = 0
    for at in range(start, len(form)):
        depth += (form[at] in "[<") - (form[at] in "]>")
        if depth == 0:
            return at
    raise ValueError(f"{form!r}: a bracket is not closed")


def _choices(inner: str) -> list[str]:
    found, depth = [""], 0
    for sign in inner:
        depth += (sign in "[<") - (sign in "]>")
        if sign == "|" and depth == 0:
            found.append("")
        else:
            found[-1] += sign
    return found


def source(*keys: str) -> str:
    """The forms of lists as alternatives of a regular expression, the longest first: no
    word hides a phrase."""
    found = {
        form: "".join(_SIGNS.get(c) or re.escape(c) for c in form)
        for k in keys
        for form in forms(k)
    }
    return "|".join(found[form] for form in sorted(found, key=len, reverse=True))


def _not_behind(place: re.Match[str]) -> str:
    return "".join(f"(?<!{re.escape(word)}{place[2]})" for word in sorted(words(place[1])))


class Pattern:
    """A regular expression with lists of the lexicon in it: ``<byline.label>`` stands for
    the forms of that list.

    Compiled when it is first used: most commands import the extraction and never run it.
    """

    def __init__(self, template: str, flags: int = re.IGNORECASE) -> None:
        self.template, self.flags = template, flags

    @cached_property
    def compiled(self) -> re.Pattern[str]:
        template = _NOT_BEHIND.sub(_not_behind, self.template)
        return re.compile(_PLACE.sub(lambda place: source(place[1]), template), self.flags)

    # Methods of the compiled pattern, each looked up once: a byline is matched against
    # thirty patterns.
    @cached_property
    def match(self) -> Callable[..., re.Match[str] | None]:
        return self.compiled.match

    @cached_property
    def fullmatch(self) -> Callable[..., re.Match[str] | None]:
        return self.compiled.fullmatch

    @cached_property
    def search(self) -> Callable[..., re.Match[str] | None]:
        return self.compiled.search

    @cached_property
    def finditer(self) -> Callable[..., Iterator[re.Match[str]]]:
        return self.compiled.finditer

    @cached_property
    def split(self) -> Callable[..., list[str | Any]]:
        return self.compiled.split

    @cached_property
    def sub(self) -> Callable[..., str]:
        return self.compiled.sub

    @cached_property
    def pattern(self) -> str:
        return self.compiled.pattern
