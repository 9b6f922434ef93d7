"""Dates as a reader sees them: beside the headline, labelled, at the head of a paragraph, in a script's data. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from selectolax.lexbor import LexborNode

from newscrawler.extraction import dates, regions, title, witnesses
from newscrawler.extraction.blocks import collapse, walk
from newscrawler.extraction.dates import Rules, When
from newscrawler.extraction.document import Document
from newscrawler.extraction.regions import Parts, foreign

UPDATED = re.compile(
    r"updat|modif|edited|last[-_ ]?change|revis|changed|cập nhật|aktualisiert|stand:|geändert|mis à jour"
    r"|mise à jour|actualizad"
    r"|aggiornat|atualizad|oppdatert|opdateret|uppdaterad|bijgewerkt|обновлен|更新|수정|갱신",
    re.I,
)
PUBLISHED = re.compile(
    r"publish|posted|created|first|original|pubdate|release|issued|xuất bản|\bđăng\b(?! nhập| ký)|veröffentlicht"
    r"|erschienen|erstellt|publié"
    r"|publicado|pubblicato|publicerad|publisert|gepubliceerd|опубликован|発売|公開|掲載|入力|입력|등록|发布",
    re.I,
)
_DATE_LINE = re.compile(r"\W*(?:datum|date|fecha|data|dato|ngày(?: đăng)?|дата)\b\W{0,3}\d", re.I)
_DATE_LABEL = re.compile(rf"{PUBLISHED.pattern}|^\W*(?:datum|date|fecha|data|dato|ngày|дата|日期|日付)\W*$", re.I)
FOREIGN = re.compile(
    r"comment|kommentar|comentari|related|recommend|sidebar|footer|widget|latest|popular|teaser|more-|mostread|trending"
    r"|newest|aside"
    r"|event|calendar|kalender|termin|weather|copyright|archive|replies|reply|disqus|carousel|slider|ticker|promo"
    r"|binh-luan"
    r"|lien-?quan|tin-khac|cung-chuyen-muc|newsletter|next|prev",
    re.I,
)
_ANOTHER = re.compile(
    r"comment|kommentar|comentari|binh-?luan|disqus|repl(?:y|ies)\b|lien-?quan|tin-khac|cung-chuyen-muc", re.I
)
_LEADING_DATE = re.compile(
    r"[(\[]?\d{1,2}\.\s?(?:\d{1,2}\.|\w{3,9})\s?\d{4}\b|[A-Z][a-z]{2,8}\.? \d{1,2}, \d{4}\s?(?:--|[–—])"
)
# A day that links to the others of that day: nothing but a date and a clock.
_LINKED_DAY = re.compile(
    r"(?:[^\W\d_]{2,10},? )?(?:\d{1,2}[ ./-]+(?:de )?(?:\d{1,2}|[^\W\d_]{3,10}\.?)[ ./-]+(?:de )?|[^\W\d_]{3,9}\.? \d{1,2}, )\d{4}"
    r"(?:[\s,–-]{0,3}(?:at )?\d{1,2}[:.h]\d{2}.{0,6})?$"
)
_PARTED = re.compile(r"\s*[|()\[\]•·»]\s*|\s[-–—]{1,2}\s")
_STATED_CHARS, _DAY_CHARS, _DAY_WORDS = 400, 40, 6
_MAX_NODES = 80
# Blocks of a page that are read for a date.
_MAX_BLOCKS = 1500
_SCRIPT_DATE = re.compile(
    r"""["'](date_?published|(?:first_?|original_?)?publi(?:sh|cation)(?:ed)?_?(?:at|on|date|time)?|pub_?date)\\?["']\s*:\s*"""
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
        best = max(filter(None, (best, near_headline(doc, how))), key=lambda s: s.trust, default=None)
    if best is not None:
        yield best


def named_stamps(doc: Document, how: Rules) -> Iterator[Stamp]:
    """Nodes named after dates, in page order."""
    seen = 0
    parts = regions.of(doc)
    before = parts.first is not None  # a site's header may show today's date
    css = "h1,h2," + ",".join(
        f'[class*="{w}"],[id*="{w}"]'
        for w in (
            "date",
            "Date",
            "time",
            "Time",
            "publish",
            "posted",
            "byline",
            "meta",
            "datum",
            "fecha",
            "stamp",
            "created",
            "info",
            "dato",
            "DATE",
            "author",
            "autor",
            "details",
            "data",
            "subline",
            "kicker",
        )
    )
    for order, node in enumerate(doc.tree.css(f"{css},{title.HEADLINE_CSS}" if parts.by_class else css)[:400]):
        if node.mem_id == parts.first:
            before = False
        if node.tag in ("body", "html", "main", "article", "form", "nav", "footer", "h1") or node.first_child is None:
            continue
        text = collapse(node.text(deep=True, separator=" "))
        if not 6 <= len(text) <= 160 or not any(c.isdigit() for c in text):
            continue
        whole = node.attributes.get("title") or ""
        if 8 <= len(whole) <= 50 and len(text) <= 40 and dates.parse(whole, how) is not None:
            text = whole  # "20 hours ago", the date behind it
        seen += 1
        if seen > _MAX_NODES:
            break
        if of_another(node, parts):
            witnesses.of(doc).other_days.update(s.when.value.date() for s in parsed(text, how, "text", 0.0))
            continue
        stamp = _text_stamp(text, node, how, order, parts)
        if stamp and before:
            stamp.trust -= 0.05
        if stamp:
            yield stamp


def labelled(doc: Document, how: Rules) -> Iterator[Stamp]:
    """A block that says "published:" and nothing else, and the date in the next one."""
    if doc.tree.body is None:
        return
    label = False
    for order, block in enumerate(walk(doc.tree.body)):
        if order > _MAX_BLOCKS:
            return
        length = len(block.text)
        if length <= 45 and (label or _DATE_LINE.match(block.text)) and any(c.isdigit() for c in block.text):
            yield from parsed(block.text, how, "text", 0.74)
            return
        label = length <= 25 and bool(_DATE_LABEL.search(block.text)) and not UPDATED.search(block.text)


def from_script(doc: Document, how: Rules) -> Iterator[Stamp]:
    """The first date under a key that says "published" in the data of a page that script builds."""
    for match in _SCRIPT_DATE.finditer(doc.text_html):
        for stamp in parsed(match[2], how, f"script:{match[1]}", 0.5):
            yield stamp
            return


def from_statements(doc: Document, how: Rules) -> Iterator[Stamp]:
    """A day that stands alone, in brackets or between signs, in the page's title or description."""
    for raw in (title.of_document(doc), *doc.meta.get("description", [])[:1], *doc.meta.get("og:description", [])[:1]):
        for part in _PARTED.split(" ".join((raw or "").split())[:_STATED_CHARS]):
            if 8 <= len(part) <= _DAY_CHARS and len(part.split()) <= _DAY_WORDS and any(map(str.isdigit, part)):
                yield from parsed(part, how, "stated", 0.42)


def from_blocks(doc: Document, how: Rules) -> Iterator[Stamp]:
    """A short block that is a labelled date, or a paragraph that begins with one."""
    if doc.tree.body is None:
        return
    parts = regions.of(doc)
    for order, block in enumerate(walk(doc.tree.body)):
        if order > _MAX_BLOCKS:
            return
        text = block.text[:60]
        if not any(c.isdigit() for c in text) or block.link_chars > 0.5 * len(block.text):
            continue
        if len(block.text) <= 60 or _LEADING_DATE.match(text):
            stamp = _text_stamp(text, block.node, how, order, parts)
            if stamp and stamp.trust > 0.3:
                stamp.trust = min(stamp.trust, 0.55)
                yield stamp
                return


def of_another(node: LexborNode, parts: Parts) -> bool:
    """In a comment, or in a list's item that is mostly the title of another page, linked: no date of this text."""
    return foreign(node, _ANOTHER, parts) or _in_teaser(node)


def _text_stamp(text: str, node: LexborNode, how: Rules, order: int, parts: Parts) -> Stamp | None:
    if of_another(node, parts):
        return None
    published = PUBLISHED.search(text)
    updated = UPDATED.search(text)
    if updated and any(c.isdigit() for c in text[: updated.start()]) and updated.start() > 8:
        text = text[: updated.start()]  # the first date of two is the first publication
        updated = None
    elif updated and published and published.start() > updated.end():
        text, published, updated = text[published.start() :], None, None
    stamp = next(
        parsed(text[published.start() :] if published and published.start() < 60 else text, how, "text", 0.68), None
    )
    if stamp is None and published:
        stamp = next(parsed(text, how, "text", 0.66), None)
    if stamp is None:
        return None
    stamp.trust += 0.05 * bool(published) + 0.02 * stamp.when.has_time - 0.002 * min(order, 100)
    if len(text) > 80:
        stamp.trust -= 0.06
    if updated:
        stamp.trust -= 0.12
    if foreign(node, FOREIGN, parts):
        stamp.trust -= 0.3
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
    node: LexborNode | None = heading
    for level in range(5):
        node = node.parent if node is not None else None
        if node is None or node.tag in ("html",):
            break
        before = True  # the heading: a site's header may show today's date
        for position, child in enumerate(node.traverse(include_text=True)):
            if position > 400:
                break
            if child.tag != "-text":
                before = before and child.mem_id != heading.mem_id
                continue
            text = collapse(child.text_content or "")
            if not 6 <= len(text) <= 90 or not any(c.isdigit() for c in text):
                continue
            parent = child.parent
            if parent is None or parent.tag in ("script", "style", "h1", "option"):
                continue
            if parent.tag == "a" and not _LINKED_DAY.match(text):
                continue
            if len(text) > 60 and text[-1] in ".!?" and not PUBLISHED.search(text):
                continue  # a sentence of the text
            stamp = _text_stamp(text, parent, how, position // 4, parts)
            if stamp:
                stamp.trust -= 0.05 + 0.05 * level + 0.05 * before
                if best is None or stamp.trust > best.trust:
                    best = stamp
        if best is not None:
            return best
    return best
