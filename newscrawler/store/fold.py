"""Folding and words: the one place that says when two spellings are the same. Pure;
both stores use it.

*Exact* form: NFC, lower case, and the tone of Vietnamese oa, oe, uy on the first letter: hoà and
hòa, thuỷ and thủy are one word in two orthographies. *Folded* form: diacritics off as well,
đ -> d, full-width -> ASCII. Both are one-to-one on NFC text (same length), so that offsets found
in a folded text mark the original.

Words are runs of letters, digits and marks. Scripts written without spaces (Chinese, Japanese,
Thai, Lao, Khmer, Burmese) and Hangul become one word per character: a piece of such a text is found
as a phrase wherever it was cut. Marks of their own (Thai tones, Arabic vowels) are kept in the
exact form and dropped from folded words.
"""

from __future__ import annotations

import codecs
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

# Letters with a stroke have no decomposition.
_STROKED = {
    "đ": "d", "Đ": "d", "ð": "d", "Ð": "d", "ø": "o", "Ø": "o", "ł": "l", "Ł": "l",
    "ħ": "h", "Ħ": "h", "ŧ": "t", "Ŧ": "t", "ı": "i", "İ": "i",
}  # fmt: skip
#: Scripts that are cut per character: kana, Bopomofo, ideographs, Hangul, Thai, Lao,
#: Burmese, Khmer.
_PER_CHARACTER = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u1100-\u11ff\u3005-\u3007\u3040-\u312f"
    "\u3130-\u318f\u31a0-\u31bf\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af"
    "\uf900-\ufaff\uff66-\uffdc\U00020000-\U0003134f"
)
#: Vowels whose tone is written on either letter: "oà" -> "òa".
_TONE_FIRST = {
    unicodedata.normalize("NFC", first + second + tone): unicodedata.normalize(
        "NFC", first + tone + second
    )
    for first, second in ("oa", "oe", "uy")
    for tone in "\u0300\u0301\u0303\u0309\u0323"
}
#: The same as classes of letters: o, then any a or e that bears a tone; u, then such a y.
_TONED_PAIRS = (b"oa", b"uy")
_PLAIN = re.compile(r"[^\W_]+")


def nfc(text: str) -> str:
    """NFC without lone surrogates, which no store can write."""
    text = unicodedata.normalize("NFC", text)
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        text = text.encode("utf-8", "replace").decode("utf-8")
    return text


def exact(text: str) -> str:
    """Lower case, tones in one place, same length; ``text`` is NFC."""
    lower = _lower(text)
    if lower.isascii():
        return lower
    # No pair overlaps another one, and none comes of a replacement.
    for second, first in _TONE_FIRST.items():
        lower = lower.replace(second, first)
    return lower


def _lower(text: str) -> str:
    lower = text.lower()
    return lower if len(lower) == len(text) else "".join(_lower_one(c) for c in text)


def folded(text: str) -> str:
    """Lower case without diacritics, same length; ``text`` is NFC."""
    if text.isascii():
        return text.lower()
    lower = _lower(text)
    alphabet = _alphabet()
    try:
        coded = codecs.charmap_encode(lower, "strict", alphabet.codes)[0]
    except UnicodeEncodeError:
        return lower.translate(_tables()[0])
    plain: str = codecs.charmap_decode(coded, "strict", alphabet.plain)[0]
    return plain


def bare(text: str) -> str:
    """``folded`` without marks, which changes the length: for a look whether words can be there."""
    return _lower(text).translate(_tables()[1])


def has_diacritics(text: str) -> bool:
    """Whether folding loses something: the person who typed it means these diacritics."""
    return not text.isascii() and folded_words(text) != exact_words(text)


def has_marks(text: str) -> bool:
    """Whether it has characters that are words by themselves or marks inside words."""
    if text.isascii():
        return False
    try:
        codecs.charmap_encode(_lower(text), "strict", _alphabet().codes)
    except UnicodeEncodeError:
        return _special().search(text) is not None
    return False  # the alphabet has none of them, and is a tenth of the price


def exact_words(text: str) -> list[str]:
    """The words of a text in exact form, for the index and for queries."""
    return _words(exact(nfc(text)))


def folded_words(text: str) -> list[str]:
    """The words of a text in folded form, for the index and for queries."""
    text = _lower(nfc(text))
    if not text.isascii():
        text = text.translate(_tables()[1])
    return _words(text)


def fold_words(words: list[str]) -> list[str]:
    """``folded_words`` of a text from its ``exact_words``: a third of the
    price, most words are known."""
    return [folded for word in words if (folded := _fold_word(word))]


@dataclass(frozen=True, slots=True)
class IndexWords:
    """The words of one field as the index takes them: in order, with spaces between."""

    exact: str
    folded: str


#: Texts of more characters are not remembered, as they would be much memory; shorter ones neither:
#: titles and names are folded as quickly as they are found, and push articles out.
_REMEMBERED_CHARS = range(300, 20_000)
#: Between the two meetings lie the articles of two batches, of 200 at most (crawl.ingest).
_REMEMBERED = 512


def index_words(text: str) -> IndexWords:
    """Word by word the same as ``exact_words`` and ``fold_words``. Do not change what it returns:
    the last texts are remembered, since who writes an article looks for its near-duplicates first
    and indexes it a moment later."""
    return _recent_index_words(text) if len(text) in _REMEMBERED_CHARS else _index_words(text)


@lru_cache(maxsize=_REMEMBERED)
def _recent_index_words(text: str) -> IndexWords:
    return _index_words(text)


def _index_words(text: str) -> IndexWords:
    """Text of the letters of :func:`_alphabet` is cut and folded as bytes, by tables: a look-up per
    word costs more than all else that is done to an article, as each is a walk through cold memory.
    """
    alphabet = _alphabet()
    try:
        # The alphabet has no mark that could be composed with a letter: what can be coded is NFC.
        coded: bytes = codecs.charmap_encode(_lower(text), "strict", alphabet.codes)[0]
    except UnicodeEncodeError:
        words = exact_words(text)
        return IndexWords(" ".join(words), " ".join(fold_words(words)))
    coded = _tones_first(coded, alphabet)
    found: str = codecs.charmap_decode(coded.translate(alphabet.words), "strict", alphabet.letters)[
        0
    ]
    return IndexWords(found, coded.translate(alphabet.folded).decode("ascii"))


def _tones_first(coded: bytes, alphabet: _Alphabet) -> bytes:
    """As :func:`exact`: two searches instead of one for each pair, as few words have one."""
    classes = coded.translate(alphabet.vowels)
    moved = bytearray(coded)
    for pair in _TONED_PAIRS:
        at = classes.find(pair)
        while at >= 0:
            moved[at : at + 2] = alphabet.tones[coded[at : at + 2]]
            at = classes.find(pair, at + 2)
    return bytes(moved)


@dataclass(frozen=True)
class _Alphabet:
    """A character set of one byte a letter: its letters in order, and what each becomes."""

    letters: str
    codes: Any  # codecs' own map for encoding
    words: bytes  # code -> the same, or a space for what is no part of a word
    folded: bytes  # code -> its base letter in ASCII, or a space
    plain: str  # code -> its base letter, or the same where it is no letter
    vowels: bytes  # code -> its class in _TONED_PAIRS, or a space
    tones: dict[bytes, bytes]  # _TONE_FIRST


@cache
def _alphabet() -> _Alphabet:
    """ASCII, the small letters of Vietnamese and of western Europe, and the signs
    that news are set with."""
    other = "".join(
        dict.fromkeys(
            "ăâđêôơưàảãáạằẳẵắặầẩẫấậèẻẽéẹềểễếệìỉĩíịòỏõóọồổỗốộờởỡớợùủũúụừửữứựỳỷỹýỵ"
            "äåçëïîñöøûüÿ\u00a0“”‘’„‚«»‹›–—…•·°©®™€£¥§×÷−→►▶■●★✓¿¡"
            "\u2009\u200a\u2002\u2003\u3000\ufffd"
        )
    )
    letters = "".join(map(chr, range(128))) + other
    letters += "\ufffe" * (256 - len(letters))  # no character: nothing is coded so
    words, bases = bytearray(b" " * 256), bytearray(b" " * 256)
    for code, char in enumerate(letters):
        if char.isalnum():
            words[code], bases[code] = code, ord(_fold_word(char))
    plain = "".join(_tables()[0].get(ord(char), char) for char in letters)
    codes = codecs.charmap_build(letters)
    vowels = bytearray(b" " * 256)
    for second in _TONE_FIRST:
        pair = _TONED_PAIRS[second[0] == "u"]
        vowels[letters.index(second[0])], vowels[letters.index(second[1])] = pair
    tones = {
        codecs.charmap_encode(second, "strict", codes)[0]: codecs.charmap_encode(
            first, "strict", codes
        )[0]
        for second, first in _TONE_FIRST.items()
    }
    return _Alphabet(letters, codes, bytes(words), bytes(bases), plain, bytes(vowels), tones)


def word_spans(text: str) -> Iterator[tuple[int, int, str, str]]:
    """``(start, end, exact word, folded word)`` over NFC text, in order; offsets into ``text``."""
    lower, plain = exact(text), folded(text)
    drop = _tables()[1]
    for match in (_pattern() if _special().search(lower) else _PLAIN).finditer(lower):
        start, end = match.span()
        word = plain[start:end]
        yield start, end, match.group(), word if word.isascii() else word.translate(drop)


def _lower_one(char: str) -> str:
    lower = char.lower()
    return lower if len(lower) == 1 else lower[0]


def _words(lower: str) -> list[str]:
    # The plain pattern is a third of the price and right for every alphabet without
    # marks of its own.
    return (_pattern() if _special().search(lower) else _PLAIN).findall(lower)


@lru_cache(maxsize=50_000)
def _fold_word(word: str) -> str:
    return word if word.isascii() else word.translate(_tables()[1])


@cache
def _marks() -> str:
    return "".join(
        _ranges(c for c in range(0x10000) if unicodedata.category(chr(c)) in ("Mn", "Mc"))
    )


@cache
def _special() -> re.Pattern[str]:
    return re.compile(f"[{_PER_CHARACTER}{_marks()}]")


@cache
def _pattern() -> re.Pattern[str]:
    one = f"[{_PER_CHARACTER}]"
    return re.compile(rf"(?:(?!{one})(?:[^\W_]|[{_marks()}]))+|(?=[^\W_]|[{_marks()}]){one}")


@cache
def _tables() -> tuple[dict[int, str], dict[int, str | None]]:
    """Two translation tables for lower-case text: one-to-one, and the same with
    the marks dropped."""
    one_to_one: dict[int, str] = {}
    marks: dict[int, str | None] = {}
    for code in range(0x80, 0x10000):
        char = chr(code)
        if 0xD800 <= code < 0xE000:
            continue
        if unicodedata.category(char) == "Mn":
            marks[code] = None
            continue
        parts = unicodedata.normalize("NFD", char)
        if len(parts) > 1 and all(unicodedata.category(p) == "Mn" for p in parts[1:]):
            one_to_one[code] = _lower_one(parts[0])
    one_to_one |= {code: chr(code - 0xFEE0).lower() for code in range(0xFF01, 0xFF5F)}
    one_to_one |= {ord(a): b for a, b in _STROKED.items()}
    return one_to_one, {**one_to_one, **marks}


def _ranges(codes: Iterator[int]) -> Iterator[str]:
    start = last = -2
    for code in codes:
        if code != last + 1:
            if start >= 0:
                yield f"{chr(start)}-{chr(last)}"
            start = code
        last = code
    if start >= 0:
        yield f"{chr(start)}-{chr(last)}"
