"""What a body is, by its bytes as well as by what the server declared. Pure."""

from __future__ import annotations

import re
from typing import Literal

Found = Literal["html", "xml", "other"]

#: File types whose first bytes say so; whatever the header says, they are no page.
_MAGIC = (
    b"\x89PNG", b"GIF8", b"\xff\xd8\xff", b"RIFF", b"%PDF", b"PK\x03\x04", b"PK\x05\x06", b"Rar!",
    b"7z\xbc\xaf",
    b"\x00\x00\x01\x00", b"OggS", b"ID3", b"\x1aE\xdf\xa3", b"MZ", b"\x7fELF", b"wOFF", b"wOF2",
    b"BM", b"fLaC",
    b"\xca\xfe\xba\xbe", b"\x28\xb5\x2f\xfd", b"BZh",
)  # fmt: skip
_BOMS = ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"))
_XML = re.compile(r"<\?xml\b|<(?:rss|feed|rdf:rdf|urlset|sitemapindex)\b", re.I)
_HTML = re.compile(
    r"<(?:!doctype\s+html|html|head|body|title|meta|link|script|style|div|p|h[1-6]|table|article"
    r"|main|section|nav|a|span|!--)\b|<!--",
    re.I,
)
_XHTML = re.compile(r"<!doctype\s+html|<html\b", re.I)
_TEXTUAL = re.compile(
    r"^\s*(?:text/html|application/xhtml\+xml|text/plain|application/(?:rss|atom|rdf)\+xml"
    r"|(?:text|application)/xml)\b",
    re.I,
)
_LOOK = 4096
_CONTROL = bytes((*range(1, 9), *range(14, 27), *range(28, 32)))


def sniff(body: bytes, content_type: str | None = None) -> Found:
    """``html`` for a page, ``xml`` for a feed or sitemap, ``other`` for everything that is neither.

    The bytes decide where they say something; the declared type only where they do not. An empty
    body is what it was declared to be, html when nothing was.
    """
    head = body[:_LOOK]
    text = None if head.startswith(_MAGIC) else _text(head)
    if text is None:
        return "other"
    stripped = text.lstrip("\ufeff \t\r\n")
    if _XML.match(stripped):
        return "html" if _XHTML.search(stripped) else "xml"
    if _HTML.search(stripped):
        return "html"
    if "\0" in text:
        return "other"
    declared = (content_type or "").partition(";")[0].strip().lower()
    if not stripped:
        is_page = not declared or _TEXTUAL.match(declared) is not None
        return "html" if is_page else "other"
    if not declared or "html" in declared:
        return "html"
    return "xml" if "xml" in declared else "other"


def _text(head: bytes) -> str | None:
    """The head as text for looking at its tags; None when it is binary."""
    for bom, name in _BOMS:
        if head.startswith(bom):
            return head[: len(head) // 2 * 2].decode(name, "replace")
    zeros = head.count(0)
    if zeros > len(head) // 4:  # UTF-16 without a mark has a zero in every other byte
        even, odd = head[0::2].count(0), head[1::2].count(0)
        if max(even, odd) > 0.8 * (len(head) // 2) and min(even, odd) <= len(head) // 20:
            return head[: len(head) // 2 * 2].decode(
                "utf-16-le" if odd > even else "utf-16-be", "replace"
            )
        return None
    # A page may hold a few (one zero that a text editor or a database left): browsers read it.
    control = zeros + len(head) - len(head.translate(None, _CONTROL))
    if control > max(8, len(head) // 50):
        return None
    return head.decode("latin-1")
