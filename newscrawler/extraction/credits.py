"""Who a page credits where an author would stand and is no person: an agency, a desk, the site itself. Pure.

Stored beside the authors, never among them. Costs next to nothing: it reads what the search for authors has read.
"""

from __future__ import annotations

import re

from newscrawler.extraction import authors, title, witnesses
from newscrawler.extraction.context import PageContext
from newscrawler.extraction.document import Document
from newscrawler.items import FieldValue

MAX_CREDITS = 4
# An accredited body says so by its name. Beside it stand authors.CORPORATE and the agencies by name.
_BODY = re.compile(
    r"\b(?:redact\w*|redacc\w*|redaz\w*|redak\w*|rédac\w*|webteam|newsdesk|wires?|pool|agenzia|агентство|редакция|통신"
    r"|staff|bureau|desk|e\.?\s?v|s\.?a|se|eg|plc|co|corp)\b"
    r"|新聞|通信社|通訊社|编辑部|編集部|デジタル|オンライン|ニュース|뉴스|신문|일보|خبرگزاری|وكالة|press\b|\bpress",
    re.I,
)
_ACRONYM = re.compile(r"[^\W\d_a-zß-öø-ÿ]{3,6}\d?")  # capitals alone: WABC, PTI, BNEWS
_DOMAIN = re.compile(r"[\w-]+(?:\.[\w-]+)*\.[a-z]{2,6}", re.I)
_NOBODY = re.compile(
    r"^(?:unknown|anonymous|anonym|admin|administrator|webmaster|no author|author|authors|autor|autorin|n/?a|none|null"
    r"|undefined|user|guest|gast|by|von|share|edit|print|comments?|kommentare?|follow|folgen|profile|mehr|more|home"
    r"|news|nachrichten|publisher|team|other|various|interview|analyse|opinion|video|live)$",
    re.I,
)
# Words of a clause, a date or a label: no name.
_NO_NAME = re.compile(
    r"[<>{}=@#$%\\!?…:]|\d{3}|\bvor \d|\b(?:ago|par|recipe|rezept)\b|^(?:mon|diens|mitt|donners|frei|sams|sonn)tag$",
    re.I,
)


def find(doc: Document, context: PageContext, people: list[str]) -> FieldValue:
    """The names with their origin; value [] when nobody is credited beside ``people``, or in place of them.

    Asked after the authors: the bylines that it reads (:attr:`Witnesses.bylines`) are those that their search read.
    """
    seen = witnesses.of(doc)
    if people and all(p.name in people for p in seen.persons):
        return FieldValue([])
    own = {_run_on(n) for n in title.site_names(doc, context.site_name)}
    stated = _names([p.name for p in seen.persons if "organi" not in p.kind], own, people)
    stated += [
        n for n in _names([p.name for p in seen.persons if "organi" in p.kind], own, people, True) if n not in stated
    ]
    if stated or people:
        return FieldValue(stated[:MAX_CREDITS], "json-ld" if stated else "", 0.8 if stated else 0.0)
    for name in witnesses.AUTHOR_META:
        values = [v for v in doc.meta.get(name, ()) if not v.startswith(("http://", "https://"))]
        stated = _names(values, own, people) if values else []
        if stated:
            return FieldValue(stated[:MAX_CREDITS], f"meta:{name}", 0.6)
    for text in seen.bylines:
        stated = _names([text], own, people)
        if stated:
            return FieldValue(stated[:MAX_CREDITS], "byline", 0.5)
    return FieldValue([])


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
    return bool(_ACRONYM.fullmatch(name) or _DOMAIN.fullmatch(name))
