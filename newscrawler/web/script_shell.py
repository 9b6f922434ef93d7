"""Pages that are an empty frame until a script fills them. Pure."""

from __future__ import annotations

import re

#: Letters of visible text from which on a page says something by itself. The menus and the footer
#: of a shell that was looked at have under 200; the shortest news items have 400.
_LEAST_TEXT = 300
#: Larger pages carry their content, in some form. The application state that some frames bring
#: along is in scripts and makes them large, so this is a limit on the work and no sign.
_MOST_BYTES = 1_000_000
_DROPPED = re.compile(
    rb"<!--.*?-->|<(script|style|noscript|template|svg|head)\b.*?</\1\s*>", re.I | re.S
)
_TAG = re.compile(rb"<[^>]*>")
_SPACE = re.compile(rb"\s+")
_SCRIPT = re.compile(rb"<script\b", re.I)
#: The element that the common frameworks fill (React, Vue, Angular, Svelte, Next, Nuxt, Gatsby,
#: Ember), empty or with a spinner in it.
_APP_ROOT = re.compile(
    rb"""<[a-z-]+\b[^>]*\bid\s*=\s*["']?
         (?:root|app|app-root|main-app|__next|__nuxt|__layout|___gatsby|svelte|ember-app|q-app)
         ["'\s>]
       |<app-root\b|<[a-z]+\b[^>]*\bng-app\b|\bdata-reactroot\b|\bdata-server-rendered\b""",
    re.I | re.X,
)
_NOSCRIPT = re.compile(rb"<noscript\b[^>]*>(.*?)</noscript\s*>", re.I | re.S)
_ASKS_FOR_SCRIPT = re.compile(rb"javascript", re.I)
#: The text is there, as data that page metadata reads.
_STATED_TEXT = re.compile(rb'"articleBody"\s*:\s*"[^"]{200}', re.I)


def is_script_shell(body: bytes) -> bool:
    """Whether a page shows next to nothing and has a script that is to fill it: the element of a
    framework, or a line for readers without JavaScript."""
    if len(body) > _MOST_BYTES or not _SCRIPT.search(body) or _STATED_TEXT.search(body):
        return False
    asks = any(_ASKS_FOR_SCRIPT.search(found) for found in _NOSCRIPT.findall(body))
    if not asks and not _APP_ROOT.search(body):
        return False
    text = _SPACE.sub(b" ", _TAG.sub(b" ", _DROPPED.sub(b" ", body))).strip()
    return len(text.decode("utf-8", "replace")) < _LEAST_TEXT
