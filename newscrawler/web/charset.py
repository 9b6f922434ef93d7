"""Bytes to text: byte order mark, header, meta, then measured; a charset that lies is seen. Pure.

The order follows the WHATWG "encoding sniffing algorithm", with one change: what is declared is
checked against the bytes, because a crawler meets templates that say ISO-8859-1 over UTF-8 text.
"""

from __future__ import annotations

import codecs
import re
import unicodedata

from w3lib.encoding import html_body_declared_encoding, http_content_type_encoding, resolve_encoding

#: Bytes that are looked at when a charset has to be measured; enough for some thousand letters.
SAMPLE_BYTES = 65_536

_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
# Legacy charsets by language, most likely first: tried when nothing was declared, or a lie was.
_BY_LANGUAGE = {
    "vi": ("windows-1258", "windows-1252"),
    "ja": ("cp932", "euc_jp"),
    "zh": ("gb18030", "big5"),
    "ko": ("cp949",),
    "ru": ("windows-1251", "koi8_r"),
    "uk": ("windows-1251", "koi8_u"),
    "bg": ("windows-1251",),
    "pl": ("iso8859_2", "windows-1250"),
    "cs": ("windows-1250", "iso8859_2"),
    "hu": ("iso8859_2", "windows-1250"),
    "el": ("windows-1253",),
    "tr": ("windows-1254",),
    "he": ("windows-1255",),
    "ar": ("windows-1256",),
    "fa": ("windows-1256",),
    "th": ("cp874",),
}
_MEASURED = (
    "windows-1252",
    "cp932",
    "euc_jp",
    "gb18030",
    "big5",
    "cp949",
    "windows-1251",
    "iso8859_2",
    "windows-1258",
)
_MIXED = re.compile(
    "(?<=[A-Za-z])[\u0370-\u04ff\u3040-\u9fff\uac00-\ud7a3]|[\u0370-\u04ff](?=[a-z])"
)
_LANG = re.compile(rb"""<html[^>]{0,300}\blang\s*=\s*["']?([A-Za-z]{2})""", re.IGNORECASE)
_TAG = re.compile(rb"<[^<>]{0,2000}>")


def decode(body: bytes, content_type: str | None = None, language: str | None = None) -> str:
    """The page as text. Never raises: what cannot be decoded becomes U+FFFD."""
    return decode_named(body, content_type, language)[0]


def decode_named(
    body: bytes, content_type: str | None = None, language: str | None = None
) -> tuple[str, str]:
    """``(text, encoding)``: as :func:`decode`, with the name of the charset that was used."""
    for bom, name in _BOMS:
        if body.startswith(bom):
            return body[len(bom) :].decode(name, "replace"), name
    wide = _wide(body)
    if wide:
        return body.decode(wide, "replace"), wide
    declared = _declared(body, content_type)
    if declared in ("iso2022_jp", "hz"):  # seven-bit: every such page is valid UTF-8 too
        return body.decode(declared, "replace"), declared
    try:
        # Text in another charset is practically never valid UTF-8, so this overrules any label.
        return body.decode("utf-8"), "utf-8"
    except UnicodeDecodeError:
        pass
    is_declared = declared == "utf-8"
    text = body.decode("utf-8", "replace")
    if _is_nearly_utf8(text, body, 0.1 if is_declared else 0.02):
        return text, "utf-8"
    name = _measure(body, None if is_declared else declared, language)
    return body.decode(name, "replace"), name


def _is_nearly_utf8(text: str, body: bytes, share: float) -> bool:
    """A cut at the end or one bad advertisement does not make a UTF-8 page another charset."""
    good = sum(1 for b in body[:SAMPLE_BYTES] if b >= 0xC2) or 1
    return text.count("�") <= 2 + share * good


def _declared(body: bytes, content_type: str | None) -> str | None:
    header = http_content_type_encoding(content_type) if content_type else None
    name = header or html_body_declared_encoding(body[:8192])
    if not name:
        return None
    if name.startswith("utf-16"):  # WHATWG: a meta that can be read as ASCII cannot be UTF-16
        return None
    return resolve_encoding(name)


def _wide(body: bytes) -> str | None:
    """UTF-16 without a mark: nearly every second byte of markup is zero."""
    head = body[:400]
    if len(head) < 8 or b"\0" not in head:
        return None
    half = len(head) // 2
    if head[1::2].count(0) > 0.7 * half and head[0::2].count(0) < 0.2 * half:
        return "utf-16-le"
    if head[0::2].count(0) > 0.7 * half and head[1::2].count(0) < 0.2 * half:
        return "utf-16-be"
    return None


def _measure(body: bytes, declared: str | None, language: str | None) -> str:
    stated = _LANG.search(body[:2048])
    lang = (language or (stated[1].decode("ascii") if stated else ""))[:2].lower()
    own = _BY_LANGUAGE.get(lang, ())
    names: list[str] = []
    for name in (declared, *own, *_MEASURED):
        if name and name not in names:
            names.append(name)
    sample = _TAG.sub(b" ", body[:SAMPLE_BYTES])
    scored = []
    for order, name in enumerate(names):
        expected = 0.05 * (name == declared) + 0.1 * (name in own)
        scored.append((_plausible(sample, name, lang) + expected, -order, name))
    return max(scored)[2]


def _plausible(sample: bytes, name: str, language: str) -> float:
    """0..1: how much the non-ASCII part of the sample looks like text in this charset."""
    try:
        text = unicodedata.normalize("NFC", sample.decode(name, "replace"))
    except LookupError:
        return -1.0
    other = [c for c in text if c > "\x7f"]
    if not other:
        return 0.5
    # A Cyrillic, Greek or Chinese letter inside a Latin word is a Latin letter that
    # was read wrongly.
    points = -2.0 * len(_MIXED.findall(text))
    for c in other:
        points += _points(c, language)
    # Korean news has next to no Chinese characters, Japanese and Chinese have no Hangul at all.
    hangul = sum("\uac00" <= c <= "\ud7a3" for c in other)
    han = sum("\u4e00" <= c <= "\u9fff" for c in other)
    points -= 2.0 * min(hangul, han)
    return points / len(other)


def _points(c: str, language: str) -> float:
    """How much one character speaks for the charset."""
    kind = unicodedata.category(c)
    if c == "�" or kind in ("Cc", "Cn", "Co", "Mn"):
        return -2.0  # a combining mark that did not compose stands for a wrong charset
    if kind[0] == "L":
        return _letter_points(ord(c), language)
    if "\u3000" <= c <= "\u3002" or c in "，！？：；（）":
        return 1.0  # the full stop and comma of Chinese and Japanese
    return 0.6 if kind[0] in "PZ" else 0.1


# First and last letter of a range, and how much one of them speaks for the charset.
_LETTER_POINTS = (
    (0x1EA0, 0x1EF9, 0.9),  # Vietnamese letters exist only where they are meant
    (0x3040, 0x30FF, 1.0),
    (0xAC00, 0xD7A3, 1.0),
    (0x4E00, 0x9FFF, 0.9),
    (0x3105, 0x312F, -1.0),  # Bopomofo stands in school books only
    (0xFF61, 0xFF9F, 0.2),  # half-width kana: what other charsets look like read as Shift_JIS
    (0x0410, 0x044F, 0.9),
    (0x0400, 0x04FF, 0.3),
    (0xC0, 0x24F, 0.8),
)


def _letter_points(code: int, language: str) -> float:
    if 0x1EA0 <= code <= 0x1EF9 and language == "vi":
        return 1.2
    for first, last, points in _LETTER_POINTS:
        if first <= code <= last:
            return points
    return 0.7
