"""Pages that are an empty frame until a script fills them. Pure."""

from __future__ import annotations

import re
from itertools import islice

#: Letters of visible text from which on a page says something by itself. The menus and the footer
#: of a shell that was looked at have under 200; the shortest news items have 400.
_LEAST_TEXT = 300
#: Larger pages carry their content, in some form. The application state that some frames bring
#: along is in scripts and makes them large, so this is a limit on the work and no sign.
_MOST_BYTES = 1_000_000
#: Elements whose text no reader sees; and comments.
_OPENING = re.compile(rb"<(?:!--|(script|style|noscript|template|svg|head)(?![\w-]))")
_TAG = re.compile(rb"<[^<>]*>")
_SPACE = re.compile(rb"\s+")
#: The element that the common frameworks fill (React, Vue, Angular, Svelte, Next, Nuxt, Gatsby,
#: Ember), empty or with a spinner in it. Begins with its letters, which are searched for quickly.
_ROOT_ID = re.compile(
    rb"""id(?<=[\s"']id)\s{0,9}=\s{0,9}["']?
         (?:root|app|app-root|main-app|__next|__nuxt|__layout|___gatsby|svelte|ember-app|q-app)
         ["'\s>]""",
    re.X,
)
_ROOT_WORDS = (b"<app-root", b" ng-app", b" data-reactroot", b" data-server-rendered")
#: A page of so many paragraphs has a text. Nearly every page ends here, within its first bytes.
_PARAGRAPHS = 5
_PARAGRAPH = re.compile(rb"<p[ >]")
_ASKS_FOR_SCRIPT = re.compile(rb"javascript", re.I)
#: The text is there, as data that page metadata reads.
_STATED_TEXT = re.compile(rb'"articleBody"\s*:\s*"[^"]{200}', re.I)


def is_script_shell(body: bytes) -> bool:
    """Whether a page shows next to nothing and has a script that is to fill it: the element of a
    framework, or a line for readers without JavaScript."""
    if len(body) > _MOST_BYTES or _has_text(body):
        return False
    folded = body.lower()
    if b"<script" not in folded or _STATED_TEXT.search(body):
        return False
    shown, noscript = _parts(body, folded)
    has_root = any(word in folded for word in _ROOT_WORDS) or _ROOT_ID.search(folded)
    if not has_root and not _ASKS_FOR_SCRIPT.search(noscript):
        return False
    text = _SPACE.sub(b" ", _TAG.sub(b" ", shown)).strip()
    return len(text.decode("utf-8", "replace")) < _LEAST_TEXT


def _has_text(body: bytes) -> bool:
    return any(islice(_PARAGRAPH.finditer(body), _PARAGRAPHS - 1, None))


def _parts(body: bytes, folded: bytes) -> tuple[bytes, bytes]:
    """What a reader may see, and what stands in noscript elements. Each byte is looked at a fixed
    number of times: where the end of an element is missing the rest of the page is in it."""
    shown: list[bytes] = []
    noscript: list[bytes] = []
    start = 0
    while (found := _OPENING.search(folded, start)) is not None:
        shown.append(body[start : found.start()])
        name = found[1]
        close = b"-->" if name is None else b"</" + name
        end = folded.find(close, found.end())
        inside = body[found.end() : end if end >= 0 else len(body)]
        if name == b"noscript":
            noscript.append(inside)
        if end < 0:
            return b" ".join(shown), b" ".join(noscript)
        start = end + len(close)
    shown.append(body[start:])
    return b" ".join(shown), b" ".join(noscript)
