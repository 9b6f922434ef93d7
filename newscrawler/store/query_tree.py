"""The query language: from what a person types to a tree, and back to text. Pure.

    query       = alternative { "OR" alternative }
    alternative = part { ["AND"] part }                 binds closer than OR
    part        = ("NOT" | "-") part | [field ":"] ( word | "phrase" | "(" query ")" )

    title:  author:  site:  section:  lang:  keyword:  without:  after:  before:  ``SEARCH_FIELDS``

Every text has a tree. Three steps make it: ``_tokens`` cuts the text, ``_meant`` turns every
operator that cannot be one into a word or drops it (``OR`` at the end, a parenthesis without its
partner, NOT in a shouted headline), and ``_Parser`` builds the tree, which then has nothing to
refuse. ``written`` gives the tree back as a query with the same tree: what a reader is shown.

AND binds closer than OR because a word of Vietnamese is several syllables with spaces between:
``giá vàng OR giá bạc`` are two of these words.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum, auto

from newscrawler.items import FIELDS
from newscrawler.store.base import QueryError
from newscrawler.store.days import day
from newscrawler.store.fold import exact_words

#: What may stand before a colon: the declared keys of an article's fields, its site, its day.
SEARCH_FIELDS = tuple(
    dict.fromkeys((*(f.key for f in FIELDS if f.key), "site", "without", "after", "before"))
)
#: An article has one of each of these: two of them side by side can only mean either.
EITHER = ("site", *(f.key for f in FIELDS if f.facet and f.type != "texts"))
#: Fields whose value is a day.
DAYS = ("after", "before")
#: What restricts a search and is never looked for itself.
RESTRICTIONS = ("site", "lang", *DAYS)
#: Words and phrases of a query beyond this are not regarded: a pasted page would be an expensive
#: AND.
MOST_OPERANDS = 64
#: Parentheses deeper than this are not regarded.
DEEPEST_GROUP = 16
#: A headline in capitals has so many words: ``AND``, ``OR`` and ``NOT`` in it are no operators.
SHOUTED = 6
#: A hyphen before a word is text where so many words and parts stand around it.
COPIED_WORDS, COPIED_PARTS = 6, 8


# ---------------------------------------------------------------- the tree
@dataclass(frozen=True, slots=True)
class Leaf:
    """One word or phrase, of a field or ("") anywhere."""

    text: str
    field: str = ""
    is_quoted: bool = False


@dataclass(frozen=True, slots=True)
class And:
    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Or:
    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Not:
    part: Node


Node = Leaf | And | Or | Not


@dataclass(frozen=True, slots=True)
class Read:
    """``tree`` is None when nothing was typed. ``notes`` say what was not read as it looks."""

    tree: Node | None
    notes: tuple[str, ...] = ()


def read(text: str) -> Read:
    tokens, notes = _meant(_tokens(text))
    return Read(_Parser(tokens).query() if tokens else None, notes)


# ---------------------------------------------------------------- tokens
class Kind(Enum):
    WORD = auto()
    PHRASE = auto()
    FIELD = auto()
    OPEN = auto()
    CLOSE = auto()
    OR = auto()
    AND = auto()
    NOT = auto()
    MINUS = auto()


@dataclass(frozen=True, slots=True)
class _Token:
    kind: Kind
    text: str


_OPERATORS = {"OR": Kind.OR, "AND": Kind.AND, "NOT": Kind.NOT}
_STARTS = {Kind.WORD, Kind.PHRASE, Kind.FIELD, Kind.OPEN, Kind.NOT, Kind.MINUS}
_ENDS = {Kind.WORD, Kind.PHRASE, Kind.CLOSE}
_MARKS = re.compile('["“”]')
_TOKEN = re.compile(
    rf"""
      (?P<MINUS> (?<![^\s(]) - (?=["“”(\w]) (?!\d) )    # "-5 độ" is a word
    | (?P<FIELD> (?:{"|".join(SEARCH_FIELDS)}) : (?=[^\s)]) )
    | ["“”] (?P<PHRASE> [^"“”]* ) ["“”]
    | (?P<OPEN> \( )
    | (?P<CLOSE> \) )
    | (?P<WORD> [^\s"“”()]+ (?: \( [^\s"“”()]* \) [^\s"“”()]* )* )  # "từ(s)" is one word
    """,
    re.VERBOSE | re.IGNORECASE,
)


def _tokens(text: str) -> list[_Token]:
    """A quotation mark without a partner, the last one, is a space. What has no letter and no
    digit is nothing to look for."""
    marks = [match.start() for match in _MARKS.finditer(text)]
    if len(marks) % 2:
        text = f"{text[: marks[-1]]} {text[marks[-1] + 1 :]}"
    found = []
    for match in _TOKEN.finditer(text):
        name = match.lastgroup or ""
        said = match[name]
        if name in ("WORD", "PHRASE") and not exact_words(said):
            continue
        kind = _OPERATORS.get(said, Kind.WORD) if name == "WORD" else Kind[name]
        found.append(_Token(kind, said))
    return found


# ---------------------------------------------------------------- what is meant
def _meant(tokens: list[_Token]) -> tuple[list[_Token], tuple[str, ...]]:
    """Tokens that the parser can read to the end, and what was changed."""
    notes: list[str] = []
    tokens = _bounded(tokens, notes)
    tokens = _paired(tokens)
    if _is_shouted(tokens):
        tokens = [_as_word(t) if t.text in _OPERATORS else t for t in tokens]
        notes.append("a text in capitals: AND, OR and NOT are read as words")
    tokens = _without_hyphens(tokens)
    tokens = _with_days(tokens, notes)
    return _with_operands(tokens, notes), tuple(dict.fromkeys(notes))


def _bounded(tokens: list[_Token], notes: list[str]) -> list[_Token]:
    operands = [i for i, t in enumerate(tokens) if t.kind in (Kind.WORD, Kind.PHRASE)]
    if len(operands) <= MOST_OPERANDS:
        return tokens
    notes.append(f"of {len(operands)} words the first {MOST_OPERANDS} are looked for")
    return tokens[: operands[MOST_OPERANDS]]


def _paired(tokens: list[_Token]) -> list[_Token]:
    """Without parentheses that are alone, empty or too deep."""
    kept: list[_Token | None] = []
    opened: list[tuple[int, int]] = []  # where, and how much was inside of any before
    content = 0
    for token in tokens:
        if token.kind is not Kind.CLOSE:
            if token.kind is Kind.OPEN:
                opened.append((len(kept), content))
            else:
                content += 1
            kept.append(token)
        elif opened:
            start, before = opened.pop()
            if content == before or len(opened) >= DEEPEST_GROUP:
                kept[start] = None
            else:
                kept.append(token)
    for start, _ in opened:
        kept[start] = None
    return [token for token in kept if token is not None]


def _is_shouted(tokens: list[_Token]) -> bool:
    """Whether all of it is a headline in capitals."""
    if any(t.kind in (Kind.PHRASE, Kind.OPEN, Kind.FIELD, Kind.MINUS) for t in tokens):
        return False
    words = [t.text for t in tokens if t.kind is Kind.WORD and t.text.upper() != t.text.lower()]
    return (
        len(words) >= SHOUTED
        and all(word == word.upper() for word in words)
        and any(t.text in _OPERATORS for t in tokens)
    )


def _without_hyphens(tokens: list[_Token]) -> list[_Token]:
    """Without the minus of ``-word`` in the middle of a sentence that somebody copied
    ("Börsenkenner und -einsteiger"): plain words on both sides, and enough of them. Who excludes a
    word does it in a short query or at its end."""
    plain = [
        t.kind is Kind.WORD and (i == 0 or tokens[i - 1].kind not in (Kind.MINUS, Kind.FIELD))
        for i, t in enumerate(tokens)
    ]
    parts = sum(t.kind in (Kind.WORD, Kind.PHRASE) for t in tokens)
    if parts < COPIED_PARTS or sum(plain) < COPIED_WORDS:
        return tokens
    kept = []
    for i, token in enumerate(tokens):
        around = plain[i - 1 : i] + plain[i + 2 : i + 3]
        is_word = tokens[i + 1 : i + 2] and tokens[i + 1].kind is Kind.WORD
        if token.kind is Kind.MINUS and is_word and around == [True, True]:
            continue
        kept.append(token)
    return kept


def _with_days(tokens: list[_Token], notes: list[str]) -> list[_Token]:
    """A field of days takes one day; with anything else it is a word."""
    made: list[_Token] = []
    for token in tokens:
        field = made[-1].text.lower().removesuffix(":") if made else ""
        if field not in DAYS or made[-1].kind is not Kind.FIELD:
            made.append(token)
            continue
        try:
            day(field, token.text if token.kind in (Kind.WORD, Kind.PHRASE) else "")
        except QueryError as exc:
            notes.append(f"{exc}; it is read as words")
            if token.kind in (Kind.WORD, Kind.PHRASE):
                made[-1] = _Token(Kind.WORD, f"{field}:{token.text}")
                continue
            made[-1] = _as_word(made[-1])
        made.append(token)
    return made


def _with_operands(tokens: list[_Token], notes: list[str]) -> list[_Token]:
    """Operators without something to work on are words; signs are dropped."""
    made: list[_Token] = []
    for token in reversed(tokens):  # what stands on the right must be known first
        is_wanting = token.kind in (Kind.OR, Kind.AND, Kind.NOT, Kind.FIELD, Kind.MINUS)
        if is_wanting and not (made and made[-1].kind in _STARTS):
            if token.kind is Kind.MINUS:
                continue
            token = _noted(token, notes)
        made.append(token)
    made.reverse()
    for i, token in enumerate(made):
        if token.kind in (Kind.OR, Kind.AND) and not (i and made[i - 1].kind in _ENDS):
            made[i] = _noted(token, notes)
    return made


def _noted(token: _Token, notes: list[str]) -> _Token:
    notes.append(f"{token.text} is read as a word: it has nothing to work on")
    return _as_word(token)


def _as_word(token: _Token) -> _Token:
    return _Token(Kind.WORD, token.text.removesuffix(":"))


# ---------------------------------------------------------------- the parser
class _Parser:
    """Recursive descent over tokens as ``_meant`` leaves them; never fails on those."""

    def __init__(self, tokens: list[_Token]) -> None:
        self._tokens, self._at = tokens, 0

    def query(self, field: str = "") -> Node:
        alternatives = [self._alternative(field)]
        while self._takes(Kind.OR):
            alternatives.append(self._alternative(field))
        return _one_of(_with_common_restrictions(alternatives))

    def _alternative(self, field: str) -> Node:
        parts = [self._part(field)]
        while self._next() not in (None, Kind.OR, Kind.CLOSE):
            if not self._takes(Kind.AND):
                parts.append(self._part(field))
        return _all_of(parts)

    def _part(self, field: str) -> Node:
        is_not = False
        while (token := self._tokens[self._at]).kind in (Kind.NOT, Kind.MINUS, Kind.FIELD):
            if token.kind is Kind.FIELD:
                field = token.text[:-1].lower()
            else:
                is_not = not is_not
            self._at += 1
        self._at += 1
        if token.kind is Kind.OPEN:
            part = self.query(field)
            self._at += 1  # its partner, see _paired
        else:
            part = Leaf(token.text, field, token.kind is Kind.PHRASE)
        if not is_not:
            return part
        return part.part if isinstance(part, Not) else Not(part)

    def _next(self) -> Kind | None:
        return self._tokens[self._at].kind if self._at < len(self._tokens) else None

    def _takes(self, kind: Kind) -> bool:
        if self._next() is not kind:
            return False
        self._at += 1
        return True


def _one_of(parts: list[Node]) -> Node:
    flat = [p for part in parts for p in (part.parts if isinstance(part, Or) else (part,))]
    return flat[0] if len(flat) == 1 else Or(tuple(flat))


def _all_of(parts: list[Node]) -> Node:
    flat = [p for part in parts for p in (part.parts if isinstance(part, And) else (part,))]
    for field in EITHER:
        same = [p for p in flat if isinstance(p, Leaf) and p.field == field]
        if len(same) > 1:
            first = flat.index(same[0])
            flat = [p for p in flat if p not in same]
            flat.insert(first, _one_of(list(dict.fromkeys(same))))
    return flat[0] if len(flat) == 1 else And(tuple(flat))


def _with_common_restrictions(alternatives: list[Node]) -> list[Node]:
    """``bão OR lũ site:a.vn``: what restricts the last alternative alone, after its words, is meant
    for all of them."""
    *others, last = alternatives
    if not others or not isinstance(last, And) or any(map(_restricts, others)):
        return alternatives
    words = [part for part in last.parts if not _restricts(part)]
    common = [part for part in last.parts if _restricts(part)]
    if not words or not common or list(last.parts) != words + common:
        return alternatives
    return [_all_of([_one_of([*others, _all_of(words)]), *common])]


def _restricts(node: Node) -> bool:
    """Whether it is made of restrictions, or has one among its parts."""
    return any(leaf.field in RESTRICTIONS for leaf in leaves(node))


# ---------------------------------------------------------------- walking and writing
def leaves(node: Node | None, *, wanted_only: bool = False) -> list[Leaf]:
    """In order; ``wanted_only``: without those that must not be there."""
    if node is None or (wanted_only and isinstance(node, Not)):
        return []
    if isinstance(node, Leaf):
        return [node]
    parts: Iterable[Node] = (node.part,) if isinstance(node, Not) else node.parts
    return [leaf for part in parts for leaf in leaves(part, wanted_only=wanted_only)]


def written(node: Node | None) -> str:
    """A query with this tree: every operator stands there, words that look like one are quoted."""
    if node is None:
        return ""
    if isinstance(node, Or):
        return " OR ".join(_inside(part, (And, Or)) for part in node.parts)
    if isinstance(node, And):
        return " ".join(_inside(part, (Or, And)) for part in node.parts)
    if isinstance(node, Not):
        return f"NOT {_inside(node.part, (And, Or))}"
    field = f"{node.field}:" if node.field else ""
    return f"{field}{_word(node)}"


def unquoted(text: str) -> str:
    """The query with the words of its phrases for themselves; those of a field, of an alternative
    and of what must not be there stay."""
    tree = read(text).tree
    if tree is None:
        return ""
    loose: list[Node] = []
    for part in tree.parts if isinstance(tree, And) else (tree,):
        if isinstance(part, Leaf) and part.is_quoted and not part.field:
            loose += map(Leaf, part.text.split())
        else:
            loose.append(part)
    return written(And(tuple(loose)) if len(loose) != 1 else loose[0])


def _inside(node: Node, in_parentheses: tuple[type, ...]) -> str:
    text = written(node)
    return f"({text})" if isinstance(node, in_parentheses) else text


def _word(leaf: Leaf) -> str:
    again = [token.kind for token in _tokens(leaf.text)]
    is_plain = again == [Kind.WORD] and not leaf.is_quoted
    return leaf.text if is_plain else f'"{leaf.text}"'
