"""XML from the open web, read without its dangers: entities, bombs, wrong encodings,
cut-off files. Pure."""

from __future__ import annotations

import re
import zlib
from dataclasses import dataclass

from lxml import etree

from newscrawler.web import charset

#: Bytes of a feed or sitemap, unpacked: sitemaps.org allows 50 MB, what we fetch is limited to 10.
MAX_BYTES = 50 * 1024 * 1024
#: Most elements, attributes and references each of a document; what lies behind the last one is
#: left off, as of a cut-off file. libxml2 keeps 120 to 220 bytes for each, a reference to a name
#: that was never declared included, so that 50 MB of "<a/>" (46 kB packed) would take 1.5 GB.
#: 50,000 addresses (sitemaps.org) with four facts and pictures are half of it.
MAX_NODES = 1_000_000
_NODE_MARKS = (b"<", b"=", b"&")
_SEARCH_STEP = 1 << 16
_ENTITY = re.compile(rb"<!ENTITY", re.I)
_ENTITY_16 = (b"<\0!\0E\0N\0T\0I\0T\0Y\0", b"\0<\0!\0E\0N\0T\0I\0T\0Y")
_DECLARATION = re.compile(r"^\s*<\?xml[^>]*\?>", re.I)
_DOCTYPE = re.compile(r"<!DOCTYPE[^>]{0,2000}>", re.I)
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")


class XmlRefused(ValueError):
    """The document is not read; the text says why in a few words."""


@dataclass(slots=True)
class Parsed:
    root: etree._Element
    cut_off: bool  # the end is missing or broken: what is there was read


def parse(body: bytes) -> Parsed:
    """:raises XmlRefused: empty, too large, with entity declarations, a page instead of
    XML, or unreadable"""
    body = guarded(body)
    whole_bytes = len(body)
    body = _bounded(body)
    root, errors = _tree(body)
    if root is None or _wrong_letters(errors):
        text = charset.decode(body, None)
        again, errors_again = _tree(
            _CONTROL.sub("", _DECLARATION.sub("", text.lstrip("\ufeff")))
            .strip()
            .encode("utf-8", "replace")
        )
        root, errors = (again, errors_again) if again is not None else (root, errors)
    if root is None:
        raise XmlRefused("not XML")
    if not isinstance(root.tag, str) or local(root.tag) in ("html", "body", "div", "p"):
        raise XmlRefused("a page instead of XML")
    return Parsed(root, bool(errors) or len(body) < whole_bytes)


def _bounded(body: bytes) -> bytes:
    """The body up to where one of the marks that make nodes of a tree has come MAX_NODES times."""
    for mark in _NODE_MARKS:
        if body.count(mark) > MAX_NODES:
            body = body[: _place_of(body, mark, MAX_NODES)]
    return body


def _place_of(body: bytes, mark: bytes, number: int) -> int:
    """Where the mark stands for the ``number``-th time, which it does; found in steps, as
    there are millions of it."""
    at = 0
    while (count := body.count(mark, at, at + _SEARCH_STEP)) < number:
        number -= count
        at += _SEARCH_STEP
    for _ in range(number):
        at = body.index(mark, at) + 1
    return at - 1


def guarded(body: bytes) -> bytes:
    """The unpacked body. :raises XmlRefused: see :func:`unpacked`; empty, or with
    entity declarations"""
    body = unpacked(body)
    if not body.strip():
        raise XmlRefused("empty")
    # Entities expand (billion laughs) and read files (XXE). No feed needs them, so the
    # whole document goes.
    if _ENTITY.search(body) or any(mark in body for mark in _ENTITY_16):
        raise XmlRefused("entity declarations")
    return body


def decoded(body: bytes) -> str:
    """The text of a guarded body, without XML declaration, document type and control characters.

    :raises XmlRefused: entity declarations that only the decoding brought to light
    """
    text = _DECLARATION.sub("", charset.decode(body, None).lstrip("\ufeff"))
    if "<!entity" in text.lower():
        raise XmlRefused("entity declarations")
    return _DOCTYPE.sub("", _CONTROL.sub("", text), count=1)


def unpacked(body: bytes) -> bytes:
    """The body, out of gzip where it is packed. :raises XmlRefused: broken, or larger than
    MAX_BYTES unpacked"""
    if body[:2] == b"\x1f\x8b":
        unpack = zlib.decompressobj(wbits=31)
        try:
            body = unpack.decompress(body, MAX_BYTES + 1)
        except zlib.error as exc:
            raise XmlRefused("broken gzip") from exc
    if len(body) > MAX_BYTES:
        raise XmlRefused("too large")
    return body


def _tree(body: bytes) -> tuple[etree._Element | None, list[str]]:
    parser = etree.XMLParser(
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        dtd_validation=False,
        huge_tree=False,
        recover=True,
        remove_comments=True,
        remove_pis=True,
        strip_cdata=False,
    )
    try:
        root = etree.fromstring(body, parser)
    except (etree.XMLSyntaxError, ValueError):
        return None, ["unreadable"]
    return root, [entry.message for entry in parser.error_log]


def _wrong_letters(errors: list[str]) -> bool:
    return any(
        "encoding" in message.lower() or "not proper utf-8" in message.lower() for message in errors
    )


def local(tag: object) -> str:
    """Name without its namespace, lower case; "" for what is no element."""
    return tag.rpartition("}")[2].lower() if isinstance(tag, str) else ""


def child_text(node: etree._Element, *names: str) -> str | None:
    """Text of the first child with one of these local names, in the order of ``names``."""
    for name in names:
        for child in node:
            if local(child.tag) == name:
                text = "".join(child.itertext()).strip()
                if text:
                    return text
    return None
