"""Who a page credits where an author would stand and is no person: an agency, a desk, the site itself. Pure.

Stored beside the authors, never among them. Costs next to nothing: it reads what the search for authors has read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from newscrawler.extraction import authors, title, witnesses
from newscrawler.extraction.context import PageContext
from newscrawler.extraction.document import Document, words
from newscrawler.items import FieldValue

MAX_CREDITS = 4
# Bylines of a page that are asked: those of its head come first, a list of teasers may have hundreds.
_MOST_BYLINES = 20
_DATELINE = re.compile(r"[^\W\d_][^\n().:;!?]{1,40}[.,]? ?\(([^()\n]{2,30})\)")
_SIGNED = re.compile(r"\(([^()\n]{2,30})\)\W*$")
# An accredited body says so by its name. Beside it stand authors.CORPORATE and the agencies by name.
_BODY = re.compile(
    r"\b(?:redact\w*|redacc\w*|redaz\w*|redak\w*|rédac\w*|webteam|newsdesk|wires?|pool|agenzia|агентство|редакция|통신"
    r"|staff|bureau|desk|e\.?\s?v|s\.?a|se|eg|plc|co|corp)\b"
    r"|新聞|通信社|通訊社|编辑部|編集部|デジタル|オンライン|ニュース|뉴스|신문|일보|خبرگزاری|وكالة|press\b|\bpress",
    re.I,
)
_ACRONYM = re.compile(r"[^\W\d_]{3,6}\d?")  # in capitals alone: WABC, PTI, BNEWS
# Degrees, posts and countries that stand behind a name as well.
_NO_BODY = words("phd mba msc bsc ceo cfo cto coo usa uae esq llm mph rdn cpa iii")
_DOMAIN = re.compile(r"[\w-]+(?:\.[\w-]+)*\.[a-z]{2,6}", re.I)
_NOBODY = re.compile(
    r"^(?:unknown|anonymous|anonym|admin|administrator|webmaster|no author|author|authors|autor|autorin|n/?a|none|null"
    r"|undefined|user|guest|gast|by|von|share|edit|print|comments?|kommentare?|follow|folgen|profile|mehr|more|home"
    r"|news|nachrichten|publisher|team|other|various|interview|analyse|opinion|video|live)$",
    re.I,
)
# Words of a clause, a date or a label: no name.
_NO_NAME = re.compile(
    r"[<>{}=@#$%\\!?…:]|\d{3}|\bvor \d|\b(?:ago|par|recipe|rezept|theo|nguồn)\b|^(?:mon|diens|mitt|donners|frei|sams|sonn)tag$",
    re.I,
)


def find(doc: Document, context: PageContext, people: list[str], content: str | None = None) -> FieldValue:
    """The names with their origin; value [] when nobody is credited beside ``people``, or in place of them.

    Asked after the authors: the bylines that it reads (:attr:`Witnesses.bylines`) are those that their search read.
    The site's own name is what is left where nobody else is named.
    """
    if people and all(p.name in people for p in witnesses.of(doc).persons):
        return _beside(doc, people)
    own = {_run_on(n) for n in title.site_names(doc, context.site_name)}
    best = FieldValue([])
    for names, origin, trust in _places(doc, people, own, content):
        if not best.value:
            best = FieldValue(names[:MAX_CREDITS], origin, trust)
        if any(_run_on(n) not in own for n in names):
            return FieldValue(names[:MAX_CREDITS], origin, trust)
    return best


def _beside(doc: Document, people: list[str]) -> FieldValue:
    """A body in the byline that names the people: "Jane Doe and John Roe, AP"."""
    for text in witnesses.of(doc).bylines[:_MOST_BYLINES]:
        parts = authors.split(text)
        if len(parts) > len(people) and people[0] in text:
            names = [n for part in parts if authors.is_agency(n := authors.without_tail(part))]
            last = authors.without_tail(parts[-1])
            if (
                not names
                and len(last) <= 5
                and last.isupper()
                and _ACRONYM.fullmatch(last)
                and last.lower() not in _NO_BODY
            ):
                names = [last]  # "Jane Doe and John Roe, NDR"
            return FieldValue(names, "byline", 0.6 if names else 0.0)
    return FieldValue([])


def _places(
    doc: Document, people: list[str], own: set[str], content: str | None
) -> Iterator[tuple[list[str], str, float]]:
    """Where a body may be named, best place first. A source behind the text stands beside the site that is stated."""
    seen = witnesses.of(doc)
    own_stated: list[str] = []
    stated = _names([p.name for p in seen.persons if "organi" not in p.kind], own, people)
    stated += [
        n for n in _names([p.name for p in seen.persons if "organi" in p.kind], own, people, True) if n not in stated
    ]
    if stated:
        own_stated = stated
        yield stated, "json-ld", 0.8
    if people:
        return
    for name in witnesses.AUTHOR_META:
        values = [v for v in doc.meta.get(name, ()) if not v.startswith(("http://", "https://"))]
        stated = _names(values, own, people) if values else []
        if stated:
            own_stated = own_stated or stated
            yield stated, f"meta:{name}", 0.6
            break
    for text in seen.bylines[:_MOST_BYLINES]:
        stated = _names([text], own, people)
        if stated:
            yield stated, "byline", 0.5
            break
    if seen.source:
        stated = _names([seen.source], own, people, True)
        if stated:
            yield [*own_stated, *stated], "text:source", 0.5
    if content:
        stated = _in_text(content)
        if stated:
            yield stated, "text", 0.5


def _in_text(content: str) -> list[str]:
    """The agency in a dateline ("Hamburg (dpa/lno) - ...") or in brackets behind the last word of a text."""
    for match in (_DATELINE.match(content[:120]), _SIGNED.search(content[-60:])):
        if match and any(authors.is_agency(part) for part in re.split(r"[/,\s]+", match[1])):
            return [match[1].strip()]
    return []


def _run_on(name: str) -> str:
    return authors.key(name).replace(" ", "")


def _names(raw: list[str], own: set[str], people: list[str], is_body: bool = False) -> list[str]:
    """Of bylines the parts that name a body. ``is_body``: the page says so.

    Beside a person an account ("jane-doe") is the person, and the site's own name says nothing.
    """
    run_on = "".join(map(_run_on, people))
    out: list[str] = []
    for item in raw:
        parts = authors.split(item)
        for part in parts:
            name = authors.without_tail(part)
            if not 2 <= len(name) <= 60 or len(name.split()) > authors.MAX_WORDS or not any(map(str.isalpha, name)):
                continue
            if _NOBODY.match(name) or _NO_NAME.search(name) or name in out:
                continue
            key = _run_on(name)
            if people and (key in run_on or key in own or authors.clean([name])):
                continue
            if (is_body and len(parts) == 1) or _is_body(name, key, own):
                out.append(name)
    return out


def _is_body(name: str, key: str, own: set[str]) -> bool:
    if any(key == o or (len(o) > 4 and (o in key or (len(key) > 4 and key in o))) for o in own):
        return True
    if authors.is_agency(name) or authors.CORPORATE.search(name) or _BODY.search(name):
        return True
    return bool((name.isupper() and _ACRONYM.fullmatch(name)) or _DOMAIN.fullmatch(name))
