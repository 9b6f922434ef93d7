"""Names of people from bylines: who wrote it, without sources, roles, agencies, sites, dates. Pure.

Vietnamese, English and German bylines are known in detail, some forms of other languages as well.
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Iterable
from functools import cache, lru_cache

from newscrawler.extraction import lexicon, personal

#: Of an article, at most: joint investigations have some twenty; more is a list of a staff.
MAX_NAMES = 40
MAX_WORDS = 6
# One word of so many capitals is a wire service or a desk (ERBOL), not a given name.
_ACRONYM_CHARS = 5
# Characters of a text that can be a name with what stands around it.
_LONGEST = 400

_URL = re.compile(r"https?://\S+|www\.\S+|\S+@\S+\.\w+", re.I)
_HANDLE = re.compile(r"(?:^|\s)\(?@[\w.]+\)?")
# "Nguồn: X" names where a text was taken from; so does "Theo X" on Vietnamese pages, elsewhere Theo
# is a first name.
_THEO = lexicon.Pattern(r"^\W*(?:<source.according_to>)\s+")
_SOURCE = lexicon.Pattern(r"^\W*(?:<source.label>)\s*(?::|\s)\s*")
_CREDIT = lexicon.Pattern(
    r"\s*[-–—;|/,.(]*\s*(?:<credit.label>)\s*:.*$|\s*[-–;|,(]?\s*(?:<credit.by>) .*$"
)
_LABEL = lexicon.Pattern(r"^\W*(?:<byline.label>)(?:\s*[:：]\s*|\s+)(?=\S)")
_LABEL_COLON = lexicon.Pattern(
    r"^\W*(?:ein\s+)?(?:\w+\s+){0,3}?(?:<byline.label_before_colon>)\s*[:：]\s*"
)
_ROLE = lexicon.Pattern(
    r"^(?:<role.with_more>|(?:[\w&.-]+ ){0,3}(?:<role.post>)|(?:[\w&.-]+ ){1,4}(?:<role.rank>))$"
)
# What journalists in the Far East put behind a name.
_ROLE_SUFFIX = lexicon.Pattern(r"(?:(?<!\s)\s++)?(?:<role.suffix>)$")
# Names of places that a column or a tag is often called after, as key() writes them.
#: Words in the names of bodies.
CORPORATE = lexicon.Pattern(r"\b(?:<body.word>)\b")
BAD_WORD = lexicon.Pattern(r"\b(?:<name.never>|(?-i:đăng))\b")  # Đăng is a given name
_TITLES = lexicon.Pattern(
    r"^(?:(?:<name.title_abbreviated>)\.[\s-]*|(?:<name.title>)(?:\.[\s-]*|[\s-]+))+(?=\w)"
)
_SPLIT = lexicon.Pattern(
    r"\s*(?:[;|•·\n、，]|,(?!\s*(?:<name.suffix>)\b)|\s/\s|/(?=\s*[A-ZĐÀ-Ỹ][\w]+\s)"
    r"|\s+[-–—]\s+|\s+[-–—](?=(?-i:[^\W\d_a-zß-öø-ÿ]))|(?<=\w)[-–—]\s+(?=(?-i:[^\W\d_a-zß-öø-ÿ]))"
    r"|\s*&\s*|\s\+\s"
    r"|\s+(?:<name.and>)\s+(?=(?-i:[^\W\d_a-zß-öø-ÿ])))\s*"
)
# Degrees and licences behind a name and a comma.
_DEGREE = lexicon.Pattern(r"(?:<name.degree>)\.?", flags=0)
# Two Vietnamese names with a bare hyphen between them: a double-barrelled one has no accents.
_TWO_GLUED = re.compile(
    r"^(?=[^-]*[ăâđêôơưáàảãạấầẩẫậắằẳẵặéèẻẽẹếềểễệíìỉĩịóòỏõọốồổỗộớờởỡợúùủũụứừửữựýỳỷỹỵ])"
    r"((?:[^\W\d_]{1,7} ){1,4}[^\W\d_]{1,7})-((?:[^\W\d_]{1,7} ){1,4}[^\W\d_]{1,7})$",
    re.I,
)
_TAIL = lexicon.Pattern(
    # The signs before it are taken whole, from their first one: a run of spaces is read once, not
    # from each of them.
    r"(?<![\s,(\[|•·–—-])[\s,(\[|•·–—-]*+(?:(?<!\w)(?:<date.label>)\b:?\s*)*"
    r"(?:(?:(?:<date.weekday_short>)[,.]|(?:<date.weekday_bare>|\w{3,6}day|\w{3,7}tag)[,.]?)\s+)?"
    r"(?:\d{1,2}[:.h]\d{2}|\d{1,2}[./-] ?\d{1,2}[./-]\d{2,4}|\d{1,2}\.?\s+\w{3,9}\.?,?\s+\d{4}"
    r"|\w{3,9}\.?\s+\d{1,2}(?:st|nd|rd|th)?,?\s+\d{4}|\d{4}-\d\d-\d\d|\d+\s*(?:<date.unit>)\b).*$",
    re.I | re.S,
)
_FILED = lexicon.Pattern(r"(?<!\s)\s++(?:<byline.filed_under>)(?!\w).*$", re.I | re.S)
_SUFFIX = lexicon.Pattern(
    r"(?:(?:(?<!\s)\s++)?(?:\((?:(?:<source.according_to>)"
    r" [^)]{0,400}|[^)]{1,40})\)|\[[^\]]{1,40}\])"
    r"|(?<!\s)\s++(?:<byline.done>))\s*+$"
)
_ROLE_TAIL = lexicon.Pattern(
    r"(?:(?<!\s)\s++)?(?:,|–|—|(?<=\s)-|\||:|\b(?:<role.behind_name>)\b)(?:\s(?s:.*))?$"
)
# What follows is a source, or who has put the text into another language.
_NOT_BY = lexicon.Pattern(r"^\W*(?:<source.word>|(?:<byline.translated>)\s*:?)\s.*")
# What Vietnamese papers put before a name, one or several of them: "Tin, ảnh: ", "Nội
# dung: ", "Viết bởi ".
VIET_LABEL = lexicon.Pattern(
    r"^\W*(?:(?:(?:<label.picture>)\s*(?:,|<label.and>|-|&|/|\+)\s*)?(?:<label.text>)"
    r"(?:\s*(?:,|<label.and>|-|&|/|\+)\s*(?:<label.part>))*\s*:\s*|(?:<label.writer>)\s*:\s*"
    r"|(?:<label.by>)\s*:?\s+|(?:<label.piece>)\s+của\s+(?=(?-i:[A-ZĐÀ-Ý]|[Ạ-Ỹ])))"
)
_EDITED_BY = lexicon.Pattern(r"(?<!\W)\W++(?:<byline.edited_by>)\s(?s:.*)$")
_ACCORDING_TO = lexicon.Pattern(r"^\W*(?:<byline.according_to>)\s.*$")
_ACCOUNT = lexicon.Pattern(r"^(?:<byline.account>)\b\s*")
_GLUED = lexicon.Pattern(r"^(?:<byline.glued>)(?=[A-ZÄÖÜ][a-zäöü])", flags=0)
_BUTTON = lexicon.Pattern(r"(?<!\s)\s++(?:<byline.button>)(?!\w)(?s:.*)$")
_THEO_BEHIND = lexicon.Pattern(r"^([^()]*\w)[\s,;|–-]+(?:<source.according_to>)\s+\S(?s:.*)$")
_SOURCE_IN_BRACKETS = lexicon.Pattern(r"\((?:<source.in_brackets>)[^)]{0,400}\)")
_VIET_LETTER = re.compile("[ăđơưĂĐƠƯ\u1ea0-\u1ef9]")
_NICKNAME = re.compile(r"[^\W\d_][\w.-]{1,18}")
# A byline has no more characters; what is longer is text.
_MOST_CHARS = 400
# Signs around a name.
_EDGES = " .,;:|-–—•·\"'„“”‚‘’()[]*_>»«…"
# The letter of an avatar before a name of several words.
_AVATAR = re.compile(r"(\w)\s+(?=(?:\w+\s+){1,5}\w+$)")
# Scripts that set no spaces between words.
_UNSPACED = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3\u0e00-\u0e7f]")
_JUNK = re.compile(r"[\u200b\ufeff\u00ad©®™]")


def clean(
    raw: Iterable[str],
    site_name: str | None = None,
    sites: Iterable[str] = (),
    *,
    nicknames: bool = False,
    known: frozenset[str] = frozenset(),
    vietnamese: bool | None = None,
) -> list[str]:
    """Names in order, without repeats; [] when there is none. ``sites``: what the
    site calls itself.

    ``nicknames``: a single word in lower case counts as a name (blogs); for places
        that are marked as author.
    ``known``: keys of names that the page states in two places: taken as they are
        written (agreement.py).
    ``vietnamese``: the page's language, None where nothing tells it; "Theo" is "from" there
        and a name elsewhere.
    """
    own = _keys((site_name, *sites))
    found: dict[str, str] = {}  # key -> name
    for item in raw:
        for part in parts(item, known, vietnamese):
            if key(part) not in known:
                name = _one(part, own, nicknames)
            else:
                name = None if is_own(part, own) else part
            if name and not _is_said(key(name), found):
                found[key(name)] = name
                if len(found) >= MAX_NAMES:
                    return list(found.values())
    return list(found.values())


def _is_said(folded: str, seen: Iterable[str]) -> bool:
    """Whether that name was found, or one that has this single word in it."""
    if folded in seen:
        return True
    words = set(folded.split())
    return len(words) == 1 and any(words < set(other.split()) for other in seen)


def parts(item: str, known: frozenset[str], vietnamese: bool | None) -> tuple[str, ...]:
    """A byline cut into names; one that is ``known`` as a whole is not cut."""
    if known and len(item) <= _MOST_CHARS:
        for text in (item, without_label(item)):
            if key(text) in known:
                return (" ".join(text.split()).strip(_EDGES),)
    return split(item, vietnamese)


def without_label(text: str) -> str:
    """A byline without the word that stands before its names."""
    text = VIET_LABEL.sub("", text)
    return _LABEL.sub("", _LABEL_COLON.sub("", text) if ":" in text[:60] else text)


def is_no_person(name: str) -> bool:
    """A role, a body or a place by its own words, whoever states it."""
    return bool(
        _is_role(name)
        or CORPORATE.search(name)
        or personal.is_body(name)
        or is_agency(name)
        or key(name) in lexicon.words("place.name")
    )


@lru_cache(maxsize=1024)
def _keys(names: tuple[str | None, ...]) -> frozenset[str]:
    return frozenset(key(n) for n in names if n)


def is_agency(name: str) -> bool:
    agencies = lexicon.words("agency.name")
    return name.casefold() in agencies or key(name) in agencies


def _is_role(name: str) -> bool:
    """What a person or a page part is, in place of a name: "staff writer",
    "Redaktion", "chủ nhật"."""
    return name.casefold() in lexicon.words("role.name") or bool(_ROLE.match(name))


def without_tail(part: str) -> str:
    """A part of a byline without a lead word, the date and the signs at its ends; "" where
    it is too long for one."""
    if len(part) > _MOST_CHARS:
        return ""
    return _TAIL.sub("", _LABEL.sub("", part)).strip(_EDGES)


def key(name: str) -> str:
    folded = unicodedata.normalize("NFC", name).casefold()
    return " ".join("".join(c if c.isalnum() else " " for c in folded).split())


@lru_cache(maxsize=1024)
def split(text: str, vietnamese: bool | None = None) -> tuple[str, ...]:
    """A byline cut into names, its lead word, credits, roles and dates off."""
    text = html.unescape(unicodedata.normalize("NFC", text))
    text = " ".join(_JUNK.sub("", text.replace("\n", " ; ")).split())
    if not text or len(text) > _MOST_CHARS:
        return ()
    if personal.is_vietnamese_name(text):
        return (text,)
    theo_is_from = vietnamese is not False or bool(_VIET_LETTER.search(text))
    if theo_is_from and (theo := _THEO.match(text)):
        # Where an author is to stand, "Theo" and a person's whole name is that person.
        rest = text[theo.end() :].strip(_EDGES)
        return (rest,) if personal.is_plain_vietnamese_name(rest) else ()
    text = VIET_LABEL.sub("", re.sub(r"<[^<>]{1,200}>", " ; ", text))
    if _SOURCE.match(text) and not _LABEL.match(text):
        return ()
    text = _without_labels(text, bool(vietnamese))
    parts = filter(None, map(str.strip, _SPLIT.split(text)))
    return tuple(part for part in parts if not (theo_is_from and _THEO.match(part)))


def _without_labels(text: str, vietnamese: bool) -> str:
    """Addresses, accounts, labels, sources and buttons off a byline; names and what parts them
    are left."""
    text = _URL.sub(" ; ", text)
    text = _HANDLE.sub(" ", text)
    text = _GLUED.sub("", text)
    for _ in range(2):
        if ":" in text[:60]:
            text = _LABEL_COLON.sub("", text)
        text = _LABEL.sub("", text)
    text = _CREDIT.sub("", text)
    text = _EDITED_BY.sub("", _ACCORDING_TO.sub("", text))
    if vietnamese or _VIET_LETTER.search(text):
        # "Thu Hà Theo Nhịp sống kinh tế"; Theo is a name elsewhere.
        text = _THEO_BEHIND.sub(r"\1", text)
    text = _SOURCE_IN_BRACKETS.sub(" ", _BUTTON.sub("", text))
    text = re.sub(r"\s\([^()]{20,120}\)", " ", text)  # an explanation, "and" in it
    return _TWO_GLUED.sub(r"\1 - \2", text)


@lru_cache(maxsize=4096)
def _one(name: str, own: frozenset[str], nicknames: bool) -> str | None:
    """One cleaned name; None when it is not a person's. Those who write for a site write often."""
    if not personal.is_vietnamese_name(name):
        name = _bare(name)
        if not name or _is_role(name):
            return None
        if nicknames and _may_be_nickname(name):
            return None if _is_known_body(name, own) else name
        if len(name) > 60 or any(map(str.isdigit, name)) or _BAD_SIGN.search(name):
            return None
    return name if looks_like_person(name, own) else None


@lru_cache(maxsize=4096)
def trimmed(name: str) -> str:
    """Without what stands around a name, whatever is left: nothing is refused for its shape. What
    is far too long for a name is left as it is."""
    if len(name) > _LONGEST:
        return name
    return name if personal.is_vietnamese_name(name) else _bare(name)


def _is_known_body(name: str, own: frozenset[str]) -> bool:
    """The site, an agency or an acronym in place of a nickname."""
    is_acronym = name.isupper() and 2 < len(name) <= _ACRONYM_CHARS
    return is_acronym or key(name) in own or key(name) in lexicon.words("agency.name")


def _bare(name: str) -> str:
    """Without what stands around a name: labels, dates, bodies, roles, titles; "" where it is the
    name of a desk or a degree."""
    name = _NOT_BY.sub("", name)
    for _ in range(2):
        name = _LABEL.sub("", name)
        name = _SUFFIX.sub("", name)
    name = _ACCOUNT.sub("", name)
    name = _FILED.sub("", _TAIL.sub("", name))
    name = name.partition("/")[0]  # "Văn Giáp/Bnews/vnanet.vn": the agency stands behind
    if len(name.split()) > 2:
        whole, name = name, _ROLE_TAIL.sub("", name)
        if name != whole and name.isupper() and len(name.split()) == 1:
            return ""  # "HLNF Staff Report": a desk
    half = len(name) // 2
    if half > 3 and name[:half].strip() == name[-half:].strip():
        name = name[:half]  # the name of a picture and of a link, without a space
    if _DEGREE.fullmatch(name):
        return ""
    name = _ROLE_SUFFIX.sub("", name)
    name = _TITLES.sub("", name).strip(" .,;:|-–—•·/\"'„“”‚‘’()[]*_>»«…")
    return _without_avatar(name)


def _may_be_nickname(name: str) -> bool:
    if not _NICKNAME.fullmatch(name) or CORPORATE.search(name):
        return False
    return not (personal.is_body(name) or BAD_WORD.search(name))


_BAD_SIGN = re.compile(r"[<>{}=@#$%\\!?…:]|\.\w{2,3}$")


@cache
def _particles() -> frozenset[str]:
    return lexicon.words("name.particle") | lexicon.words("name.particle_prefix")


def _without_avatar(name: str) -> str:
    """Without the letter of an avatar before the name ("H Hoàng Anh"): it is the first one of
    the word that follows."""
    avatar = _AVATAR.match(name)
    if avatar is None or not avatar[1].isupper():
        return name
    rest = name[avatar.end() :]
    return rest if rest[0].upper() == avatar[1] else name


def is_own(name: str, own: frozenset[str]) -> bool:
    """Whether the site calls itself so, or a part of the name is what it calls itself."""
    folded = key(name)
    if folded in own or any(len(o) > 5 and o in folded for o in own):
        return True
    return personal.is_site(name, own)


def looks_like_person(name: str, own: frozenset[str] = frozenset()) -> bool:
    folded = key(name)
    if not folded or is_own(name, own) or is_agency(name) or folded in lexicon.words("place.name"):
        return False
    if personal.is_vietnamese_name(name):
        return True
    if _UNSPACED.search(name):
        return 2 <= len(name) <= 30
    words = len(name.split())
    if words > MAX_WORDS or CORPORATE.search(name) or personal.is_body(name):
        return False
    return _is_given_name(name) if words == 1 else _is_of_names(name)


def _is_given_name(word: str) -> bool:
    is_acronym = word.isupper() and len(word) <= _ACRONYM_CHARS
    return 3 <= len(word) <= 25 and word[0].isupper() and not is_acronym


def _is_of_names(name: str) -> bool:
    """Words with capitals and small words of names between them, or all in lower case."""
    parts = name.split()
    particles = {part for part in parts if part.lower() in _particles()}
    # "Will Smith", "April Jones": what a sentence or a date begins with, and nothing
    # but a name behind it.
    asked = " ".join(parts[parts[0] in lexicon.words("name.like_a_word") :])
    if BAD_WORD.search(asked) and particles.isdisjoint(parts[1:-1]):
        return False
    letters = sum(unicodedata.category(c)[0] in "LM" for c in name)  # vowels of Hindi are marks
    if letters < 0.7 * len(name.replace(" ", "")):
        return False
    # "Zu billig" is no name.
    if all(not part[:1].islower() or part in _particles() for part in parts):
        return True
    return name.islower() and len(parts) in (2, 3) and not particles
