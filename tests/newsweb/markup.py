"""Article markup of the simulated sites, as data: which element holds what, by CSS path.

A path such as ``div.post-content div[itemprop=articleBody]`` is both the HTML that is written
(:func:`element`) and the selector that finds it, so the generated selector sets cannot disagree
with the pages. Class names are facts about public templates; texts and layout are our own.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_COMPOUND = re.compile(r"^([a-z0-9]+)?((?:[#.][\w-]+|\[[^\]]+\])*)$")
_PIECE = re.compile(r"#([\w-]+)|\.([\w-]+)|\[([\w:-]+)=\"?([^\"\]]*)\"?\]")


def element(path: str, extra: str = "") -> tuple[str, str]:
    """(opening, closing) tags of a CSS path; ``extra`` attributes go on the innermost element."""
    steps = _split(path)
    opening, closing = "", ""
    for i, step in enumerate(steps):
        match = _COMPOUND.match(step)
        if not match:
            raise ValueError(f"markup path not understood: {step!r} in {path!r}")
        tag = match[1] or "div"
        classes, attrs = [], ""
        for ident, cls, name, value in _PIECE.findall(match[2]):
            if ident:
                attrs += f' id="{ident}"'
            elif cls:
                classes.append(cls)
            else:
                attrs += f' {name}="{value}"'
        if classes:
            attrs = f' class="{" ".join(classes)}"' + attrs
        if i == len(steps) - 1 and extra:
            attrs += " " + extra
        opening += f"<{tag}{attrs}>"
        closing = f"</{tag}>" + closing
    return opening, closing


def _split(path: str) -> list[str]:
    return re.findall(r"(?:\[[^\]]*\]|[^\s\[])+", path)


@dataclass(frozen=True)
class Markup:
    """How one template writes an article page. Paths are CSS; see the module's head."""

    title: str = "h1.detail-title"
    sapo: str = "h2.detail-sapo"
    body: str = "div.detail-content"
    date: str = "div.detail-time"
    author: str = ""  # path of the author box; "" = no box
    tail_author: str = ""  # path of a last paragraph of the body that holds the writer
    para: str = "p"
    subhead: str = "h3"
    wrap: str = "div.main-content article"
    date_form: str = "plain"  # dates.VISIBLE
    date_attr: str = ""  # datetime | title | data-time: machine date on the visible element
    date_prefix: str = ""  # words in front, such as "Cập nhật: "
    updated: bool = False  # a second visible date, "Cập nhật …", beside the first
    bylines: tuple[str, ...] = ("name",)  # language.BYLINES, drawn per article
    avatar: bool = False  # author box is letter + name + time
    sapo_in_body: bool = False
    sapo_repeated: bool = False  # the lead stands again as the first paragraph
    sapo_prefix: str = ""
    br: bool = False  # one <p> with <br><br> between the paragraphs
    wrapped: bool = False  # hard line breaks inside sentences
    caption: str = "figcaption"
    related: str = "div.related-news"  # box of links inside the body
    inline_related: str = ""  # one-line link paragraph inside the body
    extra_boxes: tuple[str, ...] = ()  # promo or game boxes inside the body
    comments: bool = False  # HTML comments with text and dates inside the body
    tail: tuple[str, ...] = ()  # lines after the text, inside the body
    end_mark: str = ""  # "./." after the last sentence
    source: str = ""  # path of a source line inside the body
    jsonld: str = ""  # "" | person | org | empty | list | graph | broken | escaped | headline
    metas: tuple[
        str, ...
    ] = ()  # og, og-time, og-time-naive, og-time-ms, pubdate, cms-date, itemprop, writer, facebook
    author_meta: bool = True  # meta[name=author] = the site's own name
    refresh: bool = False  # <meta http-equiv=refresh content=1800>
    exclude: tuple[
        str, ...
    ] = ()  # what a selector set drops inside the body, beside caption and boxes

    @property
    def excludes(self) -> list[str]:
        found = [
            "figure",
            "figcaption",
            "script",
            "style",
            _last(self.related),
            _last(self.caption),
        ]
        found += [
            _last(p)
            for p in (self.inline_related, *self.extra_boxes, self.source, self.tail_author)
            if p
        ]
        found += self.exclude
        return list(dict.fromkeys(found))


def _last(path: str) -> str:
    """The first compound of a path: dropping it drops what is inside."""
    return _split(path)[0]
