"""Who a page credits where an author would stand and is no person: an agency, a desk, the
site itself. Pure.

Stored beside the authors, never among them. Costs next to nothing: it reads what the search
for authors has read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from newscrawler.extraction import authors, lexicon, page_metadata, personal, title
from newscrawler.extraction.context import PageContext
from newscrawler.extraction.document import Document
from newscrawler.items import FieldValue

MAX_CREDITS = 4
Place = tuple[list[str], str, float]  # names, origin, trust
# Bylines of a page that are asked: those of its head come first, a list of teasers
# may have hundreds.
_MOST_BYLINES = 20
_DATELINE = re.compile(r"[^\W\d_][^\n().:;!?]{1,40}[.,]? ?\(([^()\n]{2,30})\)")
_SIGNED = re.compile(r"\(([^()\n]{2,30})\)\W*$")
# An accredited body says so by its name. Beside it stand authors.CORPORATE and the
# agencies by name.
_BODY = lexicon.Pattern(r"\b(?:<body.accredited>)\b|<body.inside>|press\b|\bpress")
_ACRONYM = re.compile(r"[^\W\d_]{3,6}\d?")  # in capitals alone: WABC, PTI, BNEWS
_DOMAIN = re.compile(r"[\w-]+(?:\.[\w-]+)*\.[a-z]{2,6}", re.I)
# Words of a clause, a date or a label: no name.
_NO_NAME = lexicon.Pattern(
    r"[<>{}=@#$%\\!?…:]|\d{3}|\bvor \d|\b(?:<credit.not_name>)\b|^(?:<date.weekday>)$"
)


def find(
    doc: Document, context: PageContext, people: list[str], content: str | None = None
) -> FieldValue:
    """The names with their origin; value [] when nobody is credited beside
    ``people``, or in place of them.

    Asked after the authors: the bylines that it reads (:attr:`PageMetadata.bylines`) are those that
    their search read. The site's own name is what is left where nobody else is named.
    """
    if people and all(p.name in people for p in page_metadata.of(doc).persons):
        return _beside(doc, people)
    sites = title.site_names(doc, context.site_name)
    own = frozenset(map(_run_on, sites)) | frozenset(map(authors.key, sites))
    best = FieldValue([])
    for names, origin, trust in _places(doc, people, own, content):
        if not best.value:
            best = FieldValue(names[:MAX_CREDITS], origin, trust)
        if any(_run_on(n) not in own and not personal.is_site(n, own) for n in names):
            return FieldValue(names[:MAX_CREDITS], origin, trust)
    return best


def _beside(doc: Document, people: list[str]) -> FieldValue:
    """A body in the byline that names the people: "Jane Doe and John Roe, AP"."""
    for text in page_metadata.of(doc).bylines[:_MOST_BYLINES]:
        parts = authors.split(text)
        if len(parts) > len(people) and people[0] in text:
            bare = list(map(authors.without_tail, parts))
            names = list(filter(authors.is_agency, bare))
            if not names and _is_station(bare[-1]):
                names = bare[-1:]  # "Jane Doe and John Roe, NDR"
            return FieldValue(names, "byline", 0.6 if names else 0.0)
    return FieldValue([])


def _is_station(name: str) -> bool:
    """A few capitals that are no degree, post or country."""
    if len(name) > 5 or not name.isupper() or name.lower() in lexicon.words("body.not"):
        return False
    return _ACRONYM.fullmatch(name) is not None


def _places(
    doc: Document, people: list[str], own: frozenset[str], content: str | None
) -> Iterator[Place]:
    """Where a body may be named, best place first. A source behind the text stands beside
    the site that is stated."""
    stated = _in_json_ld(doc, people, own)
    if stated:
        yield stated, "json-ld", 0.8
    if people:
        return
    if (in_meta := next(_in_meta(doc, own), None)) is not None:
        stated = stated or in_meta[0]
        yield in_meta
    seen = page_metadata.of(doc)
    in_bylines = (_names([text], own, people) for text in seen.bylines[:_MOST_BYLINES])
    if names := next(filter(None, in_bylines), None):
        yield names, "byline", 0.5
    if seen.source and (names := _names([seen.source], own, people, True)):
        yield [*stated, *names], "text:source", 0.5
    if content and (names := _in_text(content)):
        yield names, "text", 0.5


def _in_json_ld(doc: Document, people: list[str], own: frozenset[str]) -> list[str]:
    persons = page_metadata.of(doc).persons
    bodies = [p.name for p in persons if "organi" in p.kind]
    names = _names([p.name for p in persons if "organi" not in p.kind], own, people)
    return names + [n for n in _names(bodies, own, people, True) if n not in names]


def _in_meta(doc: Document, own: frozenset[str]) -> Iterator[Place]:
    for meta in page_metadata.AUTHOR_META:
        values = [v for v in doc.meta.get(meta, ()) if not v.startswith(("http://", "https://"))]
        if names := _names(values, own, []):
            yield names, f"meta:{meta}", 0.6


def _in_text(content: str) -> list[str]:
    """The agency in a dateline ("Hamburg (dpa/lno) - ...") or in brackets behind the
    last word of a text."""
    for match in (_DATELINE.match(content[:120]), _SIGNED.search(content[-60:])):
        if match and any(authors.is_agency(part) for part in re.split(r"[/,\s]+", match[1])):
            return [match[1].strip()]
    return []


def _run_on(name: str) -> str:
    return authors.key(name).replace(" ", "")


def _names(
    raw: list[str], own: frozenset[str], people: list[str], is_body: bool = False
) -> list[str]:
    """Of bylines the parts that name a body. ``is_body``: the page says so.

    Beside a person an account ("jane-doe") is the person, and the site's own name says nothing.
    """
    out: list[str] = []
    for item in raw:
        parts = authors.split(item)
        for name in map(authors.without_tail, parts):
            if name in out or not _may_be_name(name) or _is_of_people(name, own, people):
                continue
            if (is_body and len(parts) == 1) or _is_body(name, _run_on(name), own):
                out.append(name)
    return out


def _is_of_people(name: str, own: frozenset[str], people: list[str]) -> bool:
    """Beside people: one of them, or the site."""
    if not people:
        return False
    key = _run_on(name)
    return key in "".join(map(_run_on, people)) or key in own or bool(authors.clean([name]))


def _may_be_name(name: str) -> bool:
    if not 2 <= len(name) <= 60 or len(name.split()) > authors.MAX_WORDS:
        return False
    if not any(map(str.isalpha, name)) or name.casefold() in lexicon.words("credit.nobody"):
        return False
    return not _NO_NAME.search(name)


def _is_body(name: str, key: str, own: frozenset[str]) -> bool:
    if any(_is_like(key, other) for other in own):
        return True
    if authors.is_agency(name) or authors.CORPORATE.search(name) or _BODY.search(name):
        return True
    if personal.is_body(name) or personal.is_site(name, own):
        return True
    return bool((name.isupper() and _ACRONYM.fullmatch(name)) or _DOMAIN.fullmatch(name))


def _is_like(key: str, own: str) -> bool:
    """One of the site's names, or one in the other if neither is short."""
    if key == own:
        return True
    return len(own) > 4 and (own in key or (len(key) > 4 and key in own))
