"""An article as it is cited: APA (7th edition), BibTeX, RIS, CSL-JSON. Pure.

Names are split into family and given name only in languages where the family name comes last; a
Vietnamese or Chinese name stays whole, as such names are cited.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, tzinfo
from typing import Any

from newscrawler.items import Article
from newscrawler.store.fold import folded

STYLES = ("apa", "bibtex", "ris", "csl-json")
MEDIA = {
    "apa": "text/plain; charset=utf-8",
    "bibtex": "application/x-bibtex; charset=utf-8",
    "ris": "application/x-research-info-systems; charset=utf-8",
    "csl-json": "application/vnd.citationstyles.csl+json; charset=utf-8",
}
#: What a file is called.
SUFFIX = {"apa": "txt", "bibtex": "bib", "ris": "ris", "csl-json": "json"}
#: Languages whose names end with the family name.
_FAMILY_LAST = frozenset(["da", "de", "en", "es", "fi", "fr", "it", "nl", "no", "pl", "pt", "sv"])
_MONTHS = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
]
_TEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
}
_NOT_WORD = re.compile(r"[^a-z0-9]+")
#: Authors that APA lists; of more the first 19, an ellipsis and the last.
_MOST_IN_APA = 20


@dataclass(frozen=True, slots=True)
class _Name:
    whole: str
    family: str = ""
    given: str = ""


@dataclass(frozen=True, slots=True)
class _Cited:
    """What all styles are made of; times are those of the site."""

    article: Article
    site: str
    names: list[_Name]
    is_group: bool  # the names are of organisations
    published: datetime | None
    seen: datetime | None
    title: str


def cite(article: Article, style: str, site_name: str, zone: tzinfo) -> str:
    """:param style: one of ``STYLES``"""
    language = (article.language or "").partition("-")[0].lower()
    people = [" ".join(name.split()) for name in article.authors]
    groups = [" ".join(name.split()) for name in article.credits]
    names = [_name(one, language) for one in people] or [_Name(one) for one in groups]
    cited = _Cited(
        article,
        site_name,
        [name for name in names if name.whole],
        not people,
        article.published.astimezone(zone) if article.published else None,
        article.fetched.astimezone(zone) if article.fetched else None,
        " ".join(article.title.split()),
    )
    make: dict[str, Callable[[_Cited], str]] = {
        "apa": _apa,
        "bibtex": _bibtex,
        "ris": _ris,
        "csl-json": _csl,
    }
    return make[style](cited)


def _name(text: str, language: str) -> _Name:
    given, _, family = text.rpartition(" ")
    if language in _FAMILY_LAST and given:
        return _Name(text, family, given)
    return _Name(text)


def _reversed(name: _Name) -> str:
    return f"{name.family}, {name.given}" if name.family else name.whole


# ---------------------------------------------------------------- styles
def _apa(cited: _Cited) -> str:
    names = [_with_initials(name) for name in cited.names]
    if len(names) > _MOST_IN_APA:
        who = f"{', '.join(names[: _MOST_IN_APA - 1])}, . . . {names[-1]}"
    elif len(names) > 1:
        who = f"{', '.join(names[:-1])}, & {names[-1]}"
    else:
        who = "".join(names)
    when = "n.d."
    if cited.published:
        day = cited.published
        when = f"{day.year}, {_MONTHS[day.month - 1]} {day.day}"
    title = cited.title or "[Untitled]"
    begin = [who, f"({when})", title] if who else [title, f"({when})"]
    parts = " ".join(part if part.endswith((".", "?", "!")) else f"{part}." for part in begin)
    return f"{parts} {cited.site}. {cited.article.url}\n"


def _with_initials(name: _Name) -> str:
    if not name.family:
        return name.whole
    initials = " ".join(f"{part[0]}." for part in re.split(r"[\s-]+", name.given) if part)
    return f"{name.family}, {initials}"


def _bibtex(cited: _Cited) -> str:
    article = cited.article
    # Braces keep a name that is not split, and the capitals of a title, as they are.
    names = [
        _tex(_reversed(name)) if name.family else f"{{{_tex(name.whole)}}}" for name in cited.names
    ]
    fields = {
        "author": " and ".join(names),
        "title": f"{{{_tex(cited.title)}}}",
        "organization": _tex(cited.site),
        "year": str(cited.published.year) if cited.published else "",
        "month": str(cited.published.month) if cited.published else "",
        "date": cited.published.date().isoformat() if cited.published else "",
        "url": _tex_url(article.url),
        "urldate": cited.seen.date().isoformat() if cited.seen else "",
        "langid": article.language or "",
        "keywords": _tex(", ".join(article.keywords)),
    }
    lines = [f"  {name} = {{{value}}}" for name, value in fields.items() if value]
    return f"@online{{{_key(cited)},\n" + ",\n".join(lines) + "\n}\n"


def _key(cited: _Cited) -> str:
    """As people write them: nguyen2026bao; of an article without words its id."""
    name = cited.names[0].family or cited.names[0].whole.split()[0] if cited.names else ""
    year = str(cited.published.year) if cited.published else ""
    word = next((w for w in map(_ascii, cited.title.split()) if w), "")
    return f"{_ascii(name)}{year}{word}{cited.article.id[:6]}"


def _ascii(text: str) -> str:
    return _NOT_WORD.sub("", folded(text).lower())


def _tex(text: str) -> str:
    return "".join(_TEX.get(sign, sign) for sign in text)


def _tex_url(url: str) -> str:
    return url.replace("\\", "%5C").replace("{", "%7B").replace("}", "%7D")


def _ris(cited: _Cited) -> str:
    article = cited.article
    lines = [("TY", "NEWS"), *(("AU", _reversed(name)) for name in cited.names)]
    lines += [("TI", cited.title), ("T2", cited.site), ("PB", cited.site)]
    if cited.published:
        lines += [("PY", f"{cited.published:%Y}"), ("DA", f"{cited.published:%Y/%m/%d}")]
    if cited.seen:
        lines.append(("Y2", f"{cited.seen:%Y/%m/%d}"))
    lines += [("UR", article.url), ("LA", article.language or "")]
    lines += [("AB", article.summary or ""), *(("KW", word) for word in article.keywords)]
    kept = [(tag, " ".join(value.split())) for tag, value in lines]
    return "".join(f"{tag}  - {value}\r\n" for tag, value in kept if value) + "ER  - \r\n"


def _csl(cited: _Cited) -> str:
    article = cited.article
    item: dict[str, Any] = {
        "id": article.id,
        "type": "article-newspaper",
        "title": cited.title,
        "container-title": cited.site,
        "publisher": cited.site,
        "author": [
            {"family": name.family, "given": name.given} if name.family else {"literal": name.whole}
            for name in cited.names
        ],
        "issued": _date_parts(cited.published),
        "accessed": _date_parts(cited.seen),
        "URL": article.url,
        "language": article.language,
        "section": article.section,
        "abstract": article.summary,
        "keyword": ", ".join(article.keywords),
    }
    kept = {name: value for name, value in item.items() if value}
    return json.dumps([kept], ensure_ascii=False, indent=2) + "\n"


def _date_parts(when: datetime | None) -> dict[str, Any] | None:
    return {"date-parts": [[when.year, when.month, when.day]]} if when else None
