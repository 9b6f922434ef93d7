"""The language of an article: what page or site state, held against the text; where they cannot be
right, the text's. Pure.

A template's ``lang="en"`` over Vietnamese text is common, and many pages state nothing. The check
of what is stated looks for the language's script or its most frequent words and costs some
microseconds; only where it finds too few is the language identified by the model of py3langid,
which is unpacked once for all processes (language_model.py).
"""

from __future__ import annotations

import logging
import re
from functools import lru_cache
from typing import Any

from newscrawler.extraction import lexicon, page_metadata
from newscrawler.extraction.context import PageContext
from newscrawler.extraction.document import Document
from newscrawler.items import FieldValue

logger = logging.getLogger(__name__)

#: Characters of title and text that the model reads.
MODEL_CHARS = 1500
# Characters that are enough to see a script or frequent words.
_CHECK_CHARS = 600
# Bytes of letters, in UTF-8, below which a text decides nothing against a statement: two lines of
# Latin letters, forty ideographs.
_ENOUGH_BYTES = 120
# So sure must the model be to contradict what the page or the site's entry states.
_CONTRADICTS = 0.9
# How sure a statement is, and one that the text does not bear out.
_STATED, _UNCONFIRMED = 0.8, 0.5

# Codes of countries that templates write where a language is asked for, and codes
# that were withdrawn.
_MEANT = {
    "cn": "zh", "tw": "zh", "jp": "ja", "vn": "vi", "ua": "uk", "gr": "el", "cz": "cs", "dk": "da",
    "us": "en",
    "gb": "en", "iw": "he", "in": "id", "ji": "yi",
}  # fmt: skip
# Labels of the model that have a two-letter code; the others of three letters are passed over.
_FOLDED = {
    "arz": "ar", "ary": "ar", "wuu": "zh", "yue": "zh", "sdh": "ku", "uzs": "uz", "pcm": "en",
    "grc": "el", "hbo": "he",
    "gug": "gn", "kik": "ki",
}  # fmt: skip
# Languages that a text of ordinary news does not tell apart well enough to contradict a statement.
_ALIKE = {"nb": "no", "nn": "no", "bs": "sh", "hr": "sh", "sr": "sh", "me": "sh", "ms": "id"}
# The model's label of code, tables and the like.
_NO_LANGUAGE = "zxx"
# Labels of the model in which no news are written.
_NO_NEWS = frozenset({"vo", "la"})


def _share_of(letters: str) -> re.Pattern[str]:
    return re.compile(f"[{letters}]+")


# Letters that are the language's own, and the least share of a text's characters that they are.
_LETTERS = {
    "vi": (_share_of("ăĂđĐơƠưƯ\u1ea0-\u1ef9"), 0.04),
    "zh": (_share_of("\u4e00-\u9fff"), 0.6),  # a Japanese text has less
    "ja": (_share_of("\u3040-\u30ff"), 0.15),
    "ko": (_share_of("\uac00-\ud7af"), 0.3),
    "th": (_share_of("\u0e00-\u0e7f"), 0.4),
    "lo": (_share_of("\u0e80-\u0eff"), 0.4),
    "km": (_share_of("\u1780-\u17ff"), 0.4),
    "my": (_share_of("\u1000-\u109f"), 0.4),
    "he": (_share_of("\u0590-\u05ff"), 0.4),
    "el": (_share_of("\u0370-\u03ff"), 0.4),
    "hi": (_share_of("\u0900-\u097f"), 0.4),
    "bn": (_share_of("\u0980-\u09ff"), 0.4),
    "ta": (_share_of("\u0b80-\u0bff"), 0.4),
    "te": (_share_of("\u0c00-\u0c7f"), 0.4),
    "ka": (_share_of("\u10a0-\u10ff"), 0.4),
    "hy": (_share_of("\u0530-\u058f"), 0.4),
}

_LEAST_WORDS = 0.08


def stated(doc: Document, context: PageContext) -> FieldValue:
    """The page's own words, then its JSON-LD's, then what is known of the site; value None where
    none says anything."""
    for said, origin in (
        (doc.lang, "html"),
        (page_metadata.of(doc).language, "json-ld"),
        (context.language, "site"),
    ):
        match = re.match(r"\s*([a-zA-Z]{2})(?![a-zA-Z])", said or "")
        if match:
            code = match[1].lower()
            return FieldValue(_MEANT.get(code, code), origin, _STATED)
    return FieldValue(None)


def find(title: str | None, content: str | None, said: FieldValue) -> FieldValue:
    """``said`` where the text bears it out or is too short to tell; else the language
    that the text is in."""
    sample = f"{title or ''}\n{(content or '')[:MODEL_CHARS]}"[:MODEL_CHARS]
    if said.value and bears_out(sample, said.value):
        return said
    if not any(map(str.isalpha, sample)):
        return said
    language, sure = identify(sample)
    read = FieldValue(language, "text", sure) if language else FieldValue(None)
    if not said.value:
        return read
    if language and _ALIKE.get(language, language) == _ALIKE.get(said.value, said.value):
        return said
    if read.confidence >= _CONTRADICTS and _is_enough(sample):
        return read
    return FieldValue(said.value, said.origin, min(said.confidence, _UNCONFIRMED))


def bears_out(sample: str, language: str) -> bool:
    """Whether the beginning has the letters or the frequent words of ``language``; False also for
    languages not listed."""
    sample = sample[:_CHECK_CHARS]
    if language in _LETTERS:
        letters, least = _LETTERS[language]
        return len("".join(letters.findall(sample))) >= least * len(sample)
    if language in ("nb", "nn"):
        language = "no"
    known = lexicon.words_of(language, "text.frequent")
    if not known:
        return False
    words = sample.lower().split()
    return sum(map(known.__contains__, words)) >= _LEAST_WORDS * max(len(words), 8)


def _is_enough(sample: str) -> bool:
    return len("".join(filter(str.isalpha, sample)).encode("utf-8", "replace")) >= _ENOUGH_BYTES


def identify(sample: str) -> tuple[str, float]:
    """Two-letter code and how sure the model is of it, from 0 to 1; ("", 0.0) where it has
    no model or no such code."""
    model = _model()
    ranks = model.rank(sample[:MODEL_CHARS])[:8] if model is not None else []
    if not ranks or ranks[0][0] == _NO_LANGUAGE:
        return "", 0.0
    sums: dict[str, float] = {}
    for label, probability in ranks:
        code = _FOLDED.get(label, label)
        if len(code) == 2 and code not in _NO_NEWS:
            sums[code] = sums.get(code, 0.0) + probability
    if not sums:
        return "", 0.0
    best = max(sums, key=sums.__getitem__)
    return best, min(1.0, sums[best])


@lru_cache(maxsize=1)
def _model() -> Any:
    """Read at the first page that needs it. None where the model cannot be unpacked (it
    takes a temporary file)."""
    try:
        from newscrawler.extraction import language_model  # numpy and 70 MB: not before

        return language_model.load(language_model.cache_folder())
    except OSError as error:
        logger.warning(
            "Languages are taken from what pages state; the model of py3langid: %s", error
        )
        return None
