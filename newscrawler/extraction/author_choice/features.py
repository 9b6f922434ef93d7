"""What describes a candidate for a page's author: features that know no site. Pure.

Every feature is a name that holds or does not. Those that begin with "rules:" say what the chain of
rules answered (bylines.by_rules); one of the two models does not see them.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from newscrawler.extraction import authors, byline_text, personal
from newscrawler.extraction.author_choice.candidates import Candidate, Candidates, Place, names_body
from newscrawler.items import FieldValue

#: Features that begin so tell the answer of the rules.
RULES = "rules:"
_STEPS = (0, 1, 2, 3, 5, 9, 17)
_SIGN = re.compile(r"[<>{}=@#$%\\!?…:]|\.\w{2,3}$")
_INITIAL = re.compile(r"(?:^|\s)[A-ZÀ-Ỹ]\.?(?=\s|$)")
_LANGUAGES = ("vi", "en", "de", "ja", "es", "fr")


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules' answer: keys of its names, how sure they are (0 to 1)."""

    keys: frozenset[str] = frozenset()
    sure: float = 0.0

    @classmethod
    def of(cls, answer: FieldValue) -> Rules:
        return cls(frozenset(map(authors.key, answer.value)), answer.confidence)


def describe(page: Candidates, rules: Rules) -> list[tuple[Candidate, list[str]]]:
    """Each candidate with the names of the features that hold for it."""
    view = _View(page, rules)
    return [(one, list(view.of(one))) for one in page.found.values()]


class _View:
    """What candidates of one page share."""

    def __init__(self, page: Candidates, rules: Rules) -> None:
        self.page, self.rules = page, rules
        every = list(page.found.values())
        self.words = {one.key: frozenset(one.key.split()) for one in every}
        self.groups = Counter(
            group for one in every for group in {p.group for p in one.places if p.group}
        )
        self.kinds = {one.key: _own_kinds(one) for one in every}
        self.most = max(map(len, self.kinds.values()), default=0)
        self.most_of_sorts = max((len(_sorts(k)) for k in self.kinds.values()), default=0)
        self.first: dict[str, str] = {}
        for one in every:
            for kind in self.kinds[one.key]:
                self.first.setdefault(kind, one.key)
        self.has = {sort for kinds in self.kinds.values() for sort in _sorts(kinds)}
        self.common = list(self._of_page(len(every)))

    def _of_page(self, count: int) -> Iterator[str]:
        yield "page:candidates:" + _step(count, (1, 2, 4, 8, 16, 32))
        language = self.page.language
        yield f"page:language:{language if language in _LANGUAGES else 'other'}"
        for sort in sorted(self.has):
            yield f"page:has:{sort}"
        if not self.rules.keys:
            yield f"{RULES}silent"

    def of(self, one: Candidate) -> Iterator[str]:
        yield from self.common
        yield from self._where(one)
        yield from self._among(one)
        yield from _shape(one.name, self.page.own)
        yield from self._said(one)

    def _where(self, one: Candidate) -> Iterator[str]:
        kinds = self.kinds[one.key]
        looks = authors.looks_like_person(one.name, self.page.own)
        for kind in kinds:
            yield f"place:{kind}"
            yield f"place:{kind}:{'person' if looks else 'other'}"
        for kind in {p.kind.partition(":")[0] for p in one.places if p.foreign}:
            yield f"foreign:{kind}"
        if not kinds:
            yield "foreign:alone"
        seen = [p for p in one.places if p.position is not None and not p.foreign]
        if not seen:
            yield "position:none"
        else:
            yield from self._distances(seen)
        shortest = min((p.chars - len(one.name) for p in one.places), default=0)
        yield "rest:" + _step(shortest, (1, 4, 12, 30, 60))
        yield f"piece:{min(min((p.piece for p in one.places), default=0), 3)}"

    def _distances(self, seen: Sequence[Place]) -> Iterator[str]:
        page = self.page
        for anchor, number in (
            ("headline", page.headline), ("start", page.start), ("end", page.end),
            ("date", page.date),
        ):  # fmt: skip
            if number is None:
                yield f"from:{anchor}:none"
                continue
            gaps = [(p.position or 0) - number for p in seen]
            gap = min(gaps, key=abs)
            side = "-" if gap < 0 else "+"
            yield f"from:{anchor}:{side}{_step(abs(gap), _STEPS)}"

    def _among(self, one: Candidate) -> Iterator[str]:
        kinds = self.kinds[one.key]
        sorts = _sorts(kinds)
        yield f"agree:{min(len(kinds), 5)}"
        yield f"agree:sorts:{len(sorts)}"
        yield f"behind:{min(self.most - len(kinds), 4)}"
        yield f"behind:sorts:{min(self.most_of_sorts - len(sorts), 3)}"
        crowd = max((self.groups[p.group] for p in one.places if p.group), default=1)
        yield "crowd:" + _step(crowd, (1, 2, 3, 5, 9))
        for kind in kinds:
            if self.first.get(kind) == one.key:
                yield f"first:{kind.partition(':')[0]}"
        mine = self.words[one.key]
        for key, words in self.words.items():
            if key != one.key and words and mine:
                if mine < words:
                    yield "inside another"
                elif words < mine and len(words) > 1:
                    yield "around another"
        shared = len(mine & self.page.headline_words)
        if shared:
            yield "headline:all" if shared == len(mine) else "headline:some"

    def _said(self, one: Candidate) -> Iterator[str]:
        keys = self.rules.keys
        if not keys:
            return
        band = _step(int(self.rules.sure * 100), (50, 65, 72, 80, 88, 95))
        if one.key in keys:
            yield f"{RULES}named"
            yield f"{RULES}named:{band}"
        else:
            mine = self.words[one.key]
            is_part = any(mine <= set(k.split()) or set(k.split()) <= mine for k in keys)
            yield f"{RULES}{'part' if is_part else 'another'}"
            yield f"{RULES}another:{band}"


def _own_kinds(one: Candidate) -> list[str]:
    """Kinds of its places that are the article's own, each once."""
    return list(dict.fromkeys(p.kind for p in one.places if not p.foreign))


def _sorts(kinds: list[str]) -> frozenset[str]:
    """Machine places, marked elements and lines: what is written apart."""
    return frozenset(kind.partition(":")[0] for kind in kinds)


def _step(value: int, edges: Sequence[int]) -> str:
    at = bisect_right(edges, value)
    return str(edges[at - 1]) if at else f"<{edges[0]}"


@lru_cache(maxsize=4096)
def _shape(name: str, own: frozenset[str]) -> tuple[str, ...]:
    return tuple(f"shape:{what}" for what in _shapes(name, own))


def _shapes(name: str, own: frozenset[str]) -> Iterator[str]:
    words = name.split()
    yield f"words:{min(len(words), 6)}"
    yield _case(name, words)
    holds = {
        "digit": any(map(str.isdigit, name)),
        "sign": _SIGN.search(name),
        "initial": _INITIAL.search(name),
        "eastern": byline_text.EAST.match(name),
        "accents": not name.isascii(),
        "vietnamese": personal.is_vietnamese_name(name),
        "own": authors.is_own(name, own),
        "agency": authors.is_agency(name),
        "no person": authors.is_no_person(name),
        "bad word": authors.BAD_WORD.search(name),
        "body": names_body(name, own),
        "person": personal.has_shape(name),
    }
    yield from (what for what, is_so in holds.items() if is_so)


def _case(name: str, words: list[str]) -> str:
    if name.isupper():
        return "upper"
    if name.islower():
        return "lower"
    return "title" if all(word[:1].isupper() for word in words) else "mixed"
