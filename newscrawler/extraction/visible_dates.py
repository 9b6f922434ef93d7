"""Dates as a reader sees them: beside the headline, labelled, at the head of a paragraph, in a
script's data. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from selectolax.lexbor import LexborNode

from newscrawler.extraction import dates, lexicon, page_metadata, regions, title
from newscrawler.extraction.blocks import block_list, collapse
from newscrawler.extraction.dates import Rules, When
from newscrawler.extraction.document import Document
from newscrawler.extraction.regions import Parts, foreign

UPDATED = lexicon.Pattern(r"<date.updated>")
_STATES_PUBLISHED = r"<date.published>|\b(?:<date.posted>)\b(?! (?:<date.posted_not>))"
PUBLISHED = lexicon.Pattern(_STATES_PUBLISHED)
_DATE_LINE = lexicon.Pattern(r"\W*(?:<date.word_and_posted>|<date.word>)\b\W{0,3}\d")
_DATE_LABEL = lexicon.Pattern(rf"{_STATES_PUBLISHED}|^\W*(?:<date.word>|<date.word_alone>)\W*$")
FOREIGN = lexicon.Pattern(r"<class.date>")
_ANOTHER = lexicon.Pattern(r"<class.date_of_another>")
_LEADING_DATE = re.compile(
    r"[(\[]\d{1,2} \w{3,9}\.? \d{4}[)\]]"
    r"|[(\[]?\d{1,2}\.\s?(?:\d{1,2}\.|\w{3,9})\s?\d{4}\b|[A-Z][a-z]{2,8}\.? \d{1,2},"
    r" \d{4}\s?(?:--|[–—])"
)
# A day that links to the others of that day: nothing but a date and a clock.
_LINKED_DAY = re.compile(
    r"(?:[^\W\d_]{2,10},? )?(?:\d{1,2}[ ./-]+(?:de )?(?:\d{1,2}|[^\W\d_]{3,10}\.?)[ ./-]+(?:de"
    r" )?|[^\W\d_]{3,9}\.? \d{1,2}, )\d{4}"
    r"(?:[\s,–-]{0,3}(?:at )?\d{1,2}[:.h]\d{2}.{0,6})?$"
)
_TODAY = lexicon.Pattern(r"<class.today>")
_PARTED = re.compile(r"(?:(?<!\s)\s++)?[|()\[\]•·»]\s*|\s[-–—]{1,2}\s")
_STATED_CHARS, _DAY_CHARS, _DAY_WORDS = 400, 40, 6
# Parts of classes and ids of elements that hold a date or stand beside one; and elements that never
# are one.
_NAMES = (
    "date", "Date", "time", "Time", "publish", "posted", "byline", "meta", "datum", "fecha",
    "stamp", "created", "info", "dato", "DATE", "author", "autor", "details", "data", "subline",
    "kicker",
)  # fmt: skip
_NAMED_CSS = "h1,h2," + ",".join(f'[class*="{name}"],[id*="{name}"]' for name in _NAMES)
_NO_DATE_TAGS = ("body", "html", "main", "article", "form", "nav", "footer", "h1")
_MAX_NODES = 80
# Blocks of a page that are read for a date.
_MAX_BLOCKS = 1500
_SCRIPT_DATE = re.compile(
    r"""["'](date_?published|(?:first_?|original_?)?publi(?:sh|cation)(?:ed)?_?"""
    r"""(?:at|on|date|time)?|pub_?date)\\?["']\s*:\s*"""
    r"""\\?["']?(\d{4}-\d\d-\d\d[^"'\\<]{0,22}|1[0-9]\d{8}(?:\d{3})?(?!\d))""",
    re.I,
)


@dataclass(slots=True)
class Stamp:
    """A date with where it came from. ``trust`` 0..1. ``raw``: as it is written there."""

    when: When
    origin: str
    trust: float
    raw: str = ""


def parsed(raw: str, how: Rules, origin: str, trust: float) -> Iterator[Stamp]:
    when = dates.parse(raw, how)
    if when:
        yield Stamp(when, origin, trust, raw)


def from_text(doc: Document, how: Rules) -> Iterator[Stamp]:
    """Nodes named after dates, then the texts around the headline: the best."""
    best = max(named_stamps(doc, how), key=lambda s: s.trust, default=None)
    if best is None or best.trust < 0.65:
        best = max(
            filter(None, (best, near_headline(doc, how))), key=lambda s: s.trust, default=None
        )
    if best is not None:
        yield best


def named_stamps(doc: Document, how: Rules) -> Iterator[Stamp]:
    """Nodes named after dates, in page order."""
    seen = 0
    parts = regions.of(doc)
    before = parts.first is not None  # a site's header may show today's date
    css = f"{_NAMED_CSS},{title.HEADLINE_CSS}" if parts.by_class else _NAMED_CSS
    for order, node in enumerate(doc.tree.css(css)[:400]):
        if node.mem_id == parts.first:
            before = False
        text = _short_text(node, how)
        if not text:
            continue
        seen += 1
        if seen > _MAX_NODES:
            break
        if of_another(node, parts):
            page_metadata.of(doc).other_days.update(
                s.when.value.date() for s in parsed(text, how, "text", 0.0)
            )
            continue
        stamp = _text_stamp(text, node, how, order, parts)
        if stamp and before:
            # Right behind the day, "today" of a site's header has nothing more to say.
            stamp.trust -= 0.12 if _is_in_site_header(node) else 0.05
        if stamp:
            yield stamp


def _short_text(node: LexborNode, how: Rules) -> str:
    """The text of an element that may be a date, or its title where that is one; "" of others."""
    if node.tag in _NO_DATE_TAGS or node.first_child is None:
        return ""
    text = collapse(node.text(deep=True, separator=" "))
    if not 6 <= len(text) <= 160 or not _has_digit(text):
        return ""
    whole = node.attributes.get("title") or ""
    is_short = 8 <= len(whole) <= 50 and len(text) <= 40
    if is_short and dates.parse(whole, how) is not None:
        return whole  # "20 hours ago", the date behind it
    return text


def _has_digit(text: str) -> bool:
    return any(map(str.isdigit, text))


def labelled(doc: Document, how: Rules) -> Iterator[Stamp]:
    """A block that says "published:" and nothing else, and the date in the next one."""
    follows_label = False
    for order, block in enumerate(block_list(doc)):
        if order > _MAX_BLOCKS:
            return
        text = block.text
        is_dated = len(text) <= 45 and _has_digit(text)
        if is_dated and (follows_label or _DATE_LINE.match(text)):
            yield from parsed(text, how, "text", 0.74)
            return
        is_label = len(text) <= 25 and bool(_DATE_LABEL.search(text))
        follows_label = is_label and not UPDATED.search(text)


def from_script(doc: Document, how: Rules) -> Iterator[Stamp]:
    """The first date under a key that says "published" in the data of a page that script builds."""
    for match in _SCRIPT_DATE.finditer(doc.text_html):
        for stamp in parsed(match[2], how, f"script:{match[1]}", 0.5):
            yield stamp
            return


def from_statements(doc: Document, how: Rules) -> Iterator[Stamp]:
    """A day that stands alone, in brackets or between signs, in the page's title or description."""
    for raw in (
        title.of_document(doc),
        *doc.meta.get("description", [])[:1],
        *doc.meta.get("og:description", [])[:1],
    ):
        for part in _PARTED.split(" ".join((raw or "").split())[:_STATED_CHARS]):
            is_short = 8 <= len(part) <= _DAY_CHARS and len(part.split()) <= _DAY_WORDS
            if is_short and _has_digit(part):
                yield from parsed(part, how, "stated", 0.42)


def from_blocks(doc: Document, how: Rules) -> Iterator[Stamp]:
    """A short block that is a labelled date, or a paragraph that begins with one."""
    parts = regions.of(doc)
    for order, block in enumerate(block_list(doc)[: _MAX_BLOCKS + 1]):
        text = block.text[:60]
        if not _has_digit(text) or block.link_chars > 0.5 * len(block.text):
            continue
        if len(block.text) <= 60 or _LEADING_DATE.match(text):
            stamp = _text_stamp(text, block.node, how, order, parts)
            if stamp and stamp.trust > 0.3:
                stamp.trust = min(stamp.trust, 0.55)
                yield stamp
                return


def of_another(node: LexborNode, parts: Parts) -> bool:
    """In a comment, or in a list's item that is mostly the title of another page, linked:
    no date of this text."""
    return foreign(node, _ANOTHER, parts) or _in_teaser(node)


def _text_stamp(text: str, node: LexborNode, how: Rules, order: int, parts: Parts) -> Stamp | None:
    if of_another(node, parts):
        return None
    published = PUBLISHED.search(text)
    updated = UPDATED.search(text)
    if updated and updated.start() > 8 and _has_digit(text[: updated.start()]):
        text = text[: updated.start()]  # the first date of two is the first publication
        updated = None
    elif updated and published and published.start() > updated.end():
        text, published, updated = text[published.start() :], None, None
    stamp = _stamp_behind(text, published, how)
    if stamp is None:
        return None
    stamp.trust += 0.05 * bool(published) + 0.02 * stamp.when.has_time - 0.002 * min(order, 100)
    if len(text) > 80:
        stamp.trust -= 0.06
    if updated:
        stamp.trust -= 0.12
    if foreign(node, FOREIGN, parts) or is_inside(node, "blockquote"):
        stamp.trust -= 0.3  # a quoted post has its own time
    return stamp


def _is_in_site_header(node: LexborNode) -> bool:
    """In a header, or named as the clock of one."""
    around = node.parent.attributes if node.parent is not None else {}
    names = (node.attributes.get("class"), around.get("class"), around.get("id"))
    return is_inside(node, "header") or any(_TODAY.search(name) for name in names if name)


def is_inside(node: LexborNode, tag: str) -> bool:
    """Whether one of the four elements above is a ``tag``."""
    one: LexborNode | None = node
    for _ in range(4):
        one = one.parent if one is not None else None
        if one is None:
            return False
        if one.tag == tag:
            return True
    return False


def _stamp_behind(text: str, label: re.Match[str] | None, how: Rules) -> Stamp | None:
    """The date behind a label, or else anywhere in the text."""
    behind = text[label.start() :] if label and label.start() < 60 else text
    stamp = next(parsed(behind, how, "text", 0.68), None)
    if stamp is None and label:
        stamp = next(parsed(text, how, "text", 0.66), None)
    return stamp


def _in_teaser(node: LexborNode) -> bool:
    """In a list's item that is mostly the title of another page, linked."""
    one: LexborNode | None = node
    for _ in range(4):
        if one is None or one.tag in ("body", "main", "article", "section"):
            return False
        if one.tag == "li":
            linked = sum(len(collapse(link.text(deep=True))) for link in one.css("a[href]")[:4])
            return linked >= 12 and 2 * linked >= len(collapse(one.text(deep=True)))
        one = one.parent
    return False


def near_headline(doc: Document, how: Rules) -> Stamp | None:
    """Short texts that hold a date, within some nodes after or before the h1."""
    heading = doc.tree.css_first("h1") or doc.tree.css_first("h2")
    if heading is None:
        return None
    best: Stamp | None = None
    parts = regions.of(doc)
    around = heading.parent
    for level in range(5):
        if around is None or around.tag == "html":
            break
        for stamp, before in _stamps_around(around, heading, how, parts):
            stamp.trust -= 0.05 + 0.05 * level + 0.05 * before
            if best is None or stamp.trust > best.trust:
                best = stamp
        around = around.parent
    return best


def _stamps_around(
    around: LexborNode, heading: LexborNode, how: Rules, parts: Parts
) -> Iterator[tuple[Stamp, bool]]:
    """Stamps below an element, each with whether it stands before the heading: a site's header may
    show today's date."""
    before = True
    for position, child in enumerate(around.traverse(include_text=True)):
        if position > 400:
            return
        if child.tag != "-text":
            before = before and child.mem_id != heading.mem_id
            continue
        text = collapse(child.text_content or "")
        parent = child.parent
        if parent is None or not _may_be_date(text, parent.tag):
            continue
        stamp = _text_stamp(text, parent, how, position // 4, parts)
        if stamp:
            yield stamp, before


def _may_be_date(text: str, tag: str | None) -> bool:
    """A short text with a digit in an element of text; a link only where it is a day and nothing
    else, no sentence of the text."""
    if not 6 <= len(text) <= 90 or not _has_digit(text):
        return False
    if tag in ("script", "style", "h1", "option"):
        return False
    if tag == "a" and not _LINKED_DAY.match(text):
        return False
    is_sentence = len(text) > 60 and text[-1] in ".!?"
    return not is_sentence or PUBLISHED.search(text) is not None
