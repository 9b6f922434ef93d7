"""Stories in the words of a language: sentences, headlines and names of other stored
articles, mixed anew."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.newsweb.language import Language, language

_SENTENCE = re.compile(r"(?<=[.!?。])\s+|(?<=。)")
_QUOTES = re.compile("[\"“”„‟«»‹›「」『』]|(?<!\\w)['‘’‚]|['‘’‚](?!\\w)")
#: People of two plain names. Desks and signs have tests of their own; here a wrong name is to be
#: the set's fault.
_NAME = re.compile(r"[^\W\d_]{3,} [^\W\d_]{3,}")
_NO_PERSON = re.compile(
    r"Press|Foundation|Today|Reporter|Justice|Hora|Frau|Redaktion|News|Presse", re.I
)
#: Where it appeared: cut off in front of a paragraph with reason, and no part of a story.
_NOTICE = re.compile(
    r"(?:originally|first) (?:published|appeared)\b|zuerst (?:erschienen|veröffentlicht)\b", re.I
)
#: Fewer sentences of a language than this would repeat too often: then English serves.
_LEAST_SENTENCES = 150


@dataclass
class Story:
    """``short``: texts for sub-headings; ``paragraphs`` enough for any page."""

    title: str
    authors: list[str]
    paragraphs: list[str]
    short: list[str]
    teaser: str


class Texts:
    """Of one language, without the words of one site."""

    def __init__(self, gold: Sequence[Mapping[str, Any]], lang: str, without_site: str) -> None:
        self.made: Language | None = language(5) if lang == "vi" else None
        rows = [r for r in gold if r["site"] != without_site]
        mine = [r for r in rows if r["lang"] == lang]
        self.sentences = _sentences(mine)
        self.lang = lang
        if len(self.sentences) < _LEAST_SENTENCES and self.made is None:
            self.lang, mine = "en", [r for r in rows if r["lang"] == "en"]
            self.sentences = _sentences(mine)
        titles = {
            r["title"].replace("\xad", "") for r in mine if 20 <= len(r.get("title", "")) <= 140
        }
        self.titles = sorted(titles)
        people = {
            a for r in rows for a in r.get("authors", []) if r["lang"] in ("en", "de", "fr", "es")
        }
        names = sorted(
            a for a in people if _NAME.fullmatch(a) and a == a.title() and not _NO_PERSON.search(a)
        )
        self.first, self.last = ([a.split()[i] for a in names] for i in (0, 1))

    def sentence(self, rng: random.Random) -> str:
        return self.made.sentence(rng) if self.made else rng.choice(self.sentences)

    def headline(self, rng: random.Random) -> str:
        if self.made:
            return self.made.title(rng)
        if len(self.titles) < 60:
            return self.sentence(rng)[:110].rstrip(" .,;:")
        # Two half headlines: no two stories of a run share one.
        first, second = rng.choice(self.titles).split(), rng.choice(self.titles).split()
        mixed = " ".join([*first[: max(3, len(first) // 2)], *second[len(second) // 2 :]])
        mixed = _QUOTES.sub("", mixed)  # one of a pair may be in the half that was left out
        return mixed if len(mixed) >= 20 else rng.choice(self.titles)

    def person(self, rng: random.Random) -> str:
        return (
            self.made.person(rng)
            if self.made
            else f"{rng.choice(self.first)} {rng.choice(self.last)}"
        )

    def story(self, rng: random.Random, authors: int) -> Story:
        names: list[str] = []
        while len(names) < authors:
            name = self.person(rng)
            if name not in names:
                names.append(name)
        # No sentence twice in one story as far as they reach: repeated lines are taken for
        # boilerplate, and rightly.
        deck = [] if self.made else rng.sample(self.sentences, len(self.sentences))
        paragraphs = []
        for _ in range(400):
            parts = [deck.pop() if deck else self.sentence(rng) for _ in range(rng.randint(1, 4))]
            paragraphs.append(" ".join(parts))
        short = [self.sentence(rng)[:55].rstrip(" .,;:") for _ in range(90)]
        return Story(self.headline(rng), names, paragraphs, short, self.sentence(rng))


def _sentences(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    found = {
        " ".join(s.replace("\xad", "").split())
        for r in rows
        for paragraph in r.get("content", "").split("\n")
        for s in _SENTENCE.split(paragraph)
    }
    return sorted(s for s in found if 30 <= len(s) <= 300 and not _NOTICE.match(s))
