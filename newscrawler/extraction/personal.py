"""What a person is called, beside the words that a name must not hold: Vietnamese names,
sites' own names. Pure.

authors.py refuses by words. Words cannot do it alone: Đăng, Đài and Ban are given names as well as
"posted", "station" and "desk". Here is what outweighs them: the form of a whole name, and what two
places of a page state alike.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import cache, lru_cache

from newscrawler.extraction import lexicon

MAX_WORDS = 6


_SYLLABLE = re.compile(
    r"(?:ngh|ng|nh|ch|gh|gi|kh|ph|qu|th|tr|[bcdđghklmnprstvx])?"
    r"[aăâeêioôơuưyáàảãạấầẩẫậắằẳẵặéèẻẽẹếềểễệíìỉĩịóòỏõọốồổỗộớờởỡợúùủũụứừửữựýỳỷỹỵ]{1,3}"
    r"(?:ch|ng|nh|[cmnpt])?"
)
# Behind a name what was done with a text: "Lê Minh Tổng Hợp".
_DONE = lexicon.Pattern(r" (?:<name.done_with_text>)$", flags=0)
# The first word of a body's name, and what follows where it may be a person's too ("Ban
# Mai", "Đài Trang").
_BODY = lexicon.Pattern(r"(?:<body.begins>)(?:\s|$)", flags=0)
_DESK = lexicon.Pattern(r"(?:<body.desk>)(?:$|\s(?:<body.of_desk>)\b)", flags=0)
# "Thời Báo", "Ngày Đăng": what ends so is a paper or a label.
_BODY_END = lexicon.Pattern(r"(?:^|\s)(?:<body.ends>)$", flags=0)
_BUTTON = lexicon.Pattern(r"(?:<body.button>)\b", flags=0)
_WORD = re.compile(r"[^\W\d_](?:[^\W\d_]|[\u0300-\u036f'’.-])*+")
# Ends of a host.
_TOP_LEVELS = frozenset(
    {
        *("com", "net", "org", "info", "biz", "edu", "gov", "co", "asia", "news", "online", "tv"),
        *("at", "be", "br", "ch", "cn", "de", "es", "eu", "fr", "io", "it", "jp", "kr", "me", "mx"),
        *("nl", "pl", "pt", "ru", "uk", "us", "vn"),
    }
)
_LEAST_FORM = 3
_LEAST_CUT = 5


@lru_cache(maxsize=4096)
def is_vietnamese_name(text: str) -> bool:
    """A surname and one to five syllables, every one with a capital: nothing in it is to be
    cut off or refused."""
    return _is_name_after(text, _surnames())


def is_plain_vietnamese_name(text: str) -> bool:
    """The same with a surname that no paper, place or rubric begins with: for places that
    name those as well."""
    return _is_name_after(text, lexicon.words("name.surname"))


@cache
def _surnames() -> frozenset[str]:
    return lexicon.words("name.surname") | lexicon.words("name.surname_rare")


def _is_name_after(text: str, surnames: frozenset[str]) -> bool:
    words = text.split()
    if not 2 <= len(words) <= MAX_WORDS or len(text) > 60:
        return False
    if not (text.isupper() or all(map(_is_capitalised, words))):
        return False
    lower = text.lower()
    if lower.split()[0] not in surnames or is_body(text) or _DONE.search(lower):
        return False
    return all(word[0].isupper() and _SYLLABLE.fullmatch(word.lower()) for word in words)


def _is_capitalised(word: str) -> bool:
    return len(word) == 1 or (word[0].isupper() and not word[1:].isupper())


def is_body(name: str) -> bool:
    """Whether a Vietnamese desk, paper, station or label is called so: by how the
    name begins and ends."""
    lower = " ".join(name.lower().split())
    words = lower.split()
    has_middle = len(words) > 2 and words[1] in lexicon.words("name.middle")
    if has_middle and words[0] == "ban" and _DESK.match(lower) is None:
        return False
    return bool(
        _BODY.match(lower) or _DESK.match(lower) or _BODY_END.search(lower) or _BUTTON.match(lower)
    )


def has_shape(name: str) -> bool:
    """Two to six words of letters with capitals, particles between them: what a page
    may call a person."""
    words = name.split()
    if not 2 <= len(words) <= MAX_WORDS or len(name) > 60:
        return False
    particles = lexicon.words("name.between")
    if not _is_capital(words[-1]):
        return False
    return all(w in particles or (_is_capital(w) and _WORD.fullmatch(w)) for w in words)


def _is_capital(word: str) -> bool:
    return word[:1].isupper() or word[:2].lower() in ("d'", "d’", "o'")


def folded(text: str) -> str:
    """Lower case without accents, words and digits alone."""
    plain = unicodedata.normalize("NFKD", text.casefold().replace("đ", "d"))
    letters = (c for c in plain if not unicodedata.combining(c))
    return " ".join("".join(c if c.isalnum() else " " for c in letters).split())


def is_site(name: str, own: frozenset[str]) -> bool:
    """Whether ``name`` is one of the site's own names written otherwise: its host, with or without
    the end of it, without accents and spaces, with or without "Báo", "Online" and the like."""
    forms, hosts = _all_forms(own)
    mine = _forms(folded(name))
    if mine & forms:
        return True
    words = folded(name).split()
    initials = "".join(word[0] for word in words)
    return len(words) > 2 and initials in hosts and not is_vietnamese_name(name)


@lru_cache(maxsize=1024)
def _all_forms(own: frozenset[str]) -> tuple[frozenset[str], frozenset[str]]:
    """Every form of the site's names; the short ones of one word, which may be initials ("nld")."""
    forms = {form for name in own for form in _forms(folded(name))}
    forms |= {cut for form in forms for cut in _without_frame(form)}
    return frozenset(forms), frozenset(f for f in forms if _LEAST_FORM <= len(f) <= 5)


def _without_frame(form: str) -> Iterator[str]:
    """ "baotuoitre" -> "tuoitre", "tuoitreonline" -> "tuoitre"."""
    for head in lexicon.words("site.head"):
        if form.startswith(head) and len(form) - len(head) >= _LEAST_CUT:
            yield form[len(head) :]
    for tail in lexicon.words("site.tail"):
        if form.endswith(tail) and len(form) - len(tail) >= _LEAST_CUT:
            yield form[: -len(tail)]


def _forms(text: str) -> set[str]:
    words = text.split()
    frame = lexicon.words("site.frame")
    forms = {"".join(words)}
    while len(words) > 1 and words[-1] in _TOP_LEVELS:
        words.pop()
    forms.add("".join(words))
    while len(words) > 1 and words[0] in frame:
        del words[0]
        forms.add("".join(words))
    while len(words) > 1 and words[-1] in frame:
        words.pop()
        forms.add("".join(words))
    return {form for form in forms if len(form) >= _LEAST_FORM}
