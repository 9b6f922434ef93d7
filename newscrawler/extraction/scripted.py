"""The text of a page that its scripts alone hold: the longest piece of markup among
their strings. Pure."""

from __future__ import annotations

import json
import re

from newscrawler.extraction.document import Document

#: Fewer characters and paragraphs are a box or a notice.
MIN_CHARS = 400
_MIN_PARAGRAPHS = 3
# Characters of scripts that are looked at, and of one string.
_MAX_CHARS = 2_000_000
# A string of a script's data that opens paragraphs, as JSON or a framework's stream writes it.
_STRING = re.compile(r'"((?:[^"\\]|\\.){400,}+)"', re.S)
_OPENS = re.compile(r"<p[\s>]|\\u003[cC]p(?:[\s>]|\\u003[eE])")
# Where script puts an advertisement: "$$AD$$", "{{ad 1}}".
_PLACEHOLDER = re.compile(r"\$\$\w{1,30}\$\$|\{\{[^{}<>]{1,60}\}\}|\[\[\w{1,30}\]\]")
# Data in a string of data.
_LEVELS = 2


def page(doc: Document) -> Document | None:
    """The one long piece of markup in the page's scripts as a page; None without one, or with
    several (a list of posts)."""
    found: dict[str, int] = {}
    for script in doc.tree.css("script"):
        held = script.text(deep=True)
        if MIN_CHARS < len(held) < _MAX_CHARS and _OPENS.search(held):
            for markup in _markup(held, _LEVELS):
                found[markup] = len(markup)
    if not found:
        return None
    longest = max(found, key=found.__getitem__)
    begin = longest[:200]
    others = sum(n for other, n in found.items() if other[:200] != begin)
    if 2 * others > found[longest]:
        return None
    return Document(
        _PLACEHOLDER.sub(" ", longest).encode("utf-8", "replace"),
        doc.url,
        "text/html; charset=utf-8",
    )


def _markup(data: str, levels: int) -> list[str]:
    """The strings in ``data`` that are markup of several paragraphs."""
    out = []
    for match in _STRING.finditer(data):
        if not _OPENS.search(match[1]):
            continue
        try:
            value = json.loads(f'"{match[1]}"', strict=False)
        except ValueError:
            continue
        if value.lstrip()[:1] == "<" and value.count("<p") >= _MIN_PARAGRAPHS:
            out.append(value)
        elif levels > 1:
            out.extend(_markup(value, levels - 1))
    return out
