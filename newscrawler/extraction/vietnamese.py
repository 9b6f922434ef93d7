"""Lines around an article in Vietnamese: titles of boxes, buttons, notices. Whole lines, so that no
sentence is hit. Pure."""

from __future__ import annotations

import re
from functools import cache, lru_cache

from newscrawler.extraction import lexicon

_WORDS = re.compile(r"[^\W\d_]+")
#: A line of more characters is none of the fixed ones.
MAX_CHARS = 60
# So many signs and digits may stand before the first word.
_LEADING_SIGNS = 8


# What the paper says of itself, of its rights or to its readers, behind or in a text.
_NOTICE = lexicon.Pattern(
    r"^\W{0,4}(?:<notice.line>|(?:<notice.subject>)\b.{0,80}(?:<notice.asked>)"
    r"|(?:<notice.rating>)\s*+(?::\s*+)?\d[.,]?\d?\s?/\s?5\b)"
)
# Behind a text alone: there it is the paper's, before more text it may be the article's.
_TAIL = lexicon.Pattern(
    r"^\W{0,3}(?:(?:<tail.before_colon>)\s*:|(?:<tail.line>)\b|(?:<tail.back>) \w)"
)
# Who has done what, a name behind it.
_CRAFT = lexicon.Pattern(
    r"^\W{0,3}(?:<craft.first>)(?:\s*(?:,|<label.and>|-|&|/|\+)\s*(?:<craft.further>))*\s*:\s*"
    r"(?-i:[^\W\d_a-zà-ỹ])[^.!?:]{1,60}$"
)
# The paper's name before a lead.
_PAPER_NAME = re.compile(
    r"""
    ^(?:
        \(\s*(?P<name>[A-ZĐÀ-Ỹ][\w.&+ĐÀ-ỹ ]{1,24})\s*\)(?:\s*+[-–—])?\s++
      | (?P<code>
            [A-ZĐ][A-ZĐ&]{1,5}(?:\ Online)?
          | [A-Za-z]\w{1,14}\.(?:vn|VN)
          | [A-Za-z]{8,20}
          | Báo\ [A-ZĐ][\wĐÀ-ỹ]{1,8}(?:\ [\wĐÀ-ỹ]{1,8}){0,2}
        )
        (?:\s+(?:[-–—]{1,2}|\|)\s*|\s*[-–—]\s+)(?!.{3,60}\ [-–—]\ )
      | BNEWS\s+
    )
    (?=[A-ZĐÀ-Ỹ"“'])
    """,
    re.VERBOSE,
)
_VIETNAMESE = re.compile("[ăđơưạảấầẩẫậắằẳẵặẹẻẽếềểễệỉịọỏốồổỗộớờởỡợụủứừửữựỳỵỷỹ]", re.I)
_TWICE = re.compile(r"^(\w.{5,40}?)\1$")  # a link and its hover text


@cache
def _kinds() -> dict[str, str]:
    """A line that is one of the fixed ones -> "box", "end" or "away"."""
    found: dict[str, str] = {}
    for what, phrases in (
        ("away", lexicon.words("line.away")),
        ("end", lexicon.words("line.end")),
        ("box", lexicon.words("line.box")),
    ):
        found.update(dict.fromkeys(phrases, what))
    return found


@cache
def _first_words() -> frozenset[str]:
    return frozenset(phrase.partition(" ")[0] for phrase in _kinds())


@cache
def _first_words_of_notices() -> frozenset[str]:
    lists = ("notice.line", "notice.subject", "notice.rating")
    return frozenset(phrase.partition(" ")[0] for key in lists for phrase in lexicon.words(key))


def _first(line: str) -> str:
    word = _WORDS.search(line)
    return word[0].casefold() if word is not None and word.start() <= _LEADING_SIGNS else ""


@lru_cache(maxsize=2048)
def kind(line: str) -> str:
    """ "box", "end" or "away" of a line that is one of the fixed ones, else ""; templates
    write the same ones always."""
    if len(line) >= MAX_CHARS or _first(line) not in _first_words():
        return ""
    return _kinds().get(" ".join(_WORDS.findall(line.casefold())), "")


def is_box_title(line: str) -> bool:
    return kind(line) == "box"


def is_end(line: str) -> bool:
    """What the readers' comments are announced by."""
    return kind(line) == "end"


def leads_away(line: str) -> bool:
    """A button, a label or a notice: no text of an article wherever it stands. ``line``:
    fewer than 200 characters."""
    if kind(line) == "away":
        return True
    if _first(line) in _first_words_of_notices() and _NOTICE.match(line):
        return True
    return len(line) < 80 and line.find(line[:6], 6) > 0 and bool(_TWICE.match(line))


def is_tail(line: str) -> bool:
    return len(line) < 120 and bool(_TAIL.match(line) or _CRAFT.match(line))


def without_paper_name(line: str) -> str:
    """ "(Dân trí) - Hà Nội ..." -> "Hà Nội ...": the site's own name before a Vietnamese lead."""
    match = _PAPER_NAME.match(line)
    if match and is_vietnamese(line):
        return line[match.end() :]
    return line


def is_vietnamese(line: str) -> bool:
    """Whether a sentence has the letters that Vietnamese alone is full of."""
    return len(_VIETNAMESE.findall(line[:200])) >= 5
