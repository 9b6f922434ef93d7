"""What a model says stands on a page, held against the page: every word is found there, or the
answer is refused. Pure.

The last resort for a page that is an article by its own statements and of which neither set nor
generic chain reads the text. Nothing of an answer is believed: a paragraph must stand in the
visible text as it is given (white space folded), whole sentences, in page order; a name and a date
as well. One that does not refuses the whole answer.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from selectolax.lexbor import LexborNode

from newscrawler.extraction import authors, dates, language, page_metadata, published, title
from newscrawler.extraction.blocks import walk
from newscrawler.extraction.context import PageContext
from newscrawler.extraction.document import Document
from newscrawler.extraction.extract import Extraction, why_not
from newscrawler.extraction.text import one_line
from newscrawler.items import FieldValue
from newscrawler.web.hostile import hides

ORIGIN = "llm"
#: Below what any rule gives: a rule that finds the field later is believed over it.
CONFIDENCE = 0.3
#: Reasons of an extraction for which a model may be asked.
MENDABLE = frozenset({"no content", "no title", "stub"})
MOST_PARAGRAPHS = 400

_SENTENCE_END = re.compile(r"[.!?…。！？:;»”\"'’)\]]$")


class NotGrounded(ValueError):
    """A part of an answer does not stand on the page. ``field``: which; the
    text says what, shortened."""

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(f"{field}: {reason}")
        self.field = field


@dataclass(frozen=True)
class Visible:
    """The page's visible text: blocks with white space folded, and all of them in one
    string, a space between."""

    blocks: Sequence[str]
    flat: str
    starts: frozenset[int]  # offsets at which a block begins, and ends, in ``flat``
    ends: frozenset[int]

    @classmethod
    def of(cls, doc: Document) -> Visible:
        body = doc.tree.body
        asked = doc.tree.css("[hidden],[style],[aria-hidden]")
        hidden = {node.mem_id for node in asked if _is_hidden(node)}
        texts = (one_line(block.text) for block in walk(body, hidden)) if body is not None else ()
        blocks = list(filter(None, texts))
        starts, ends, at = set(), set(), 0
        for block in blocks:
            starts.add(at)
            ends.add(at + len(block))
            at += len(block) + 1
        return cls(blocks, " ".join(blocks), frozenset(starts), frozenset(ends))

    def find(self, piece: str, start: int) -> int:
        """Offset at or behind ``start`` where ``piece`` stands as whole sentences or
        blocks; -1 when nowhere."""
        at = self.flat.find(piece, start)
        while at >= 0:
            end = at + len(piece)
            begins = at in self.starts or bool(_SENTENCE_END.search(self.flat[:at][-3:].rstrip()))
            if begins and (end in self.ends or _SENTENCE_END.search(piece)):
                return at
            at = self.flat.find(piece, at + 1)
        return -1

    def has_words(self, words: str) -> bool:
        """Whether ``words`` stand somewhere, not as a part of longer ones."""
        return bool(words) and re.search(rf"(?<!\w){re.escape(words)}(?!\w)", self.flat) is not None


def _is_hidden(node: LexborNode) -> bool:
    attributes = node.attributes
    if "hidden" in attributes or attributes.get("aria-hidden") == "true":
        return True
    return hides(attributes.get("style") or "")


def is_stated_article(doc: Document) -> bool:
    """The page calls itself an article, in a place for machines, and not one that is paid for."""
    if page_metadata.of(doc).is_free is False:
        return False
    if page_metadata.of(doc).has_article or doc.meta_first("article:published_time"):
        return True
    return (doc.meta_first("og:type") or "").strip().lower() in ("article", "newsarticle")


def ground(
    doc: Document, context: PageContext, found: Extraction, answer: Mapping[str, Any]
) -> Extraction:
    """``found`` with what it lacked, taken from ``answer``: {title, published, authors,
    paragraphs}; "" and [] are none.

    ``doc`` is the one that ``found`` was read from. What rules had found stays. Check
    ``is_article`` of the result.

    :raises NotGrounded: nothing of the answer is used
    """
    page = Visible.of(doc)
    if found.content.value is None or found.reason == "stub":
        found.content = FieldValue(_content(page, answer.get("paragraphs")), ORIGIN, CONFIDENCE)
    if found.title.value is None:
        found.title = FieldValue(
            _title(doc, page, answer.get("title"), context), ORIGIN, CONFIDENCE
        )
    names = _names(page, answer.get("authors"), context)
    if not found.authors.value and names:
        found.authors = FieldValue(names, ORIGIN, CONFIDENCE)
    when = _when(doc, page, answer.get("published"), context)
    if found.published.value is None and when is not None:
        found.published = FieldValue(when.value, ORIGIN, CONFIDENCE)
        found.published_day_only, found.published_zone_assumed = (
            not when.has_time,
            not when.has_zone,
        )
    found.reason = why_not(found, doc, context)
    found.is_article = not found.reason
    if found.is_article:
        found.language = language.find(found.title.value, found.content.value, found.language)
    return found


def _content(page: Visible, raw: Any) -> str:
    paragraphs = _lines(raw)
    if not 0 < len(paragraphs) <= MOST_PARAGRAPHS:
        raise NotGrounded("content", f"{len(paragraphs)} paragraphs")
    at = 0
    for number, paragraph in enumerate(paragraphs, 1):
        start = page.find(paragraph, at)
        if start < 0:
            where = "not in the page's visible text as whole sentences"
            if page.find(paragraph, 0) >= 0:
                where = "out of order"
            raise NotGrounded("content", f"paragraph {number} is {where}: {paragraph[:80]!r}")
        at = start + len(paragraph)
    return "\n\n".join(paragraphs)


def _lines(raw: Any) -> list[str]:
    """The texts of a list, each on one line; of anything else none."""
    if not isinstance(raw, list):
        return []
    return list(filter(None, (one_line(text) for text in raw if isinstance(text, str))))


def _title(doc: Document, page: Visible, raw: Any, context: PageContext) -> str:
    value = one_line(raw) if isinstance(raw, str) else ""
    stated = (title.of_document(doc), page_metadata.of(doc).headline, doc.meta_first("og:title"))
    if not title.has_shape(value, context.site_name):
        raise NotGrounded("title", f"is no headline: {value[:80]!r}")
    if value not in page.blocks and not any(value in said for said in _lines(list(stated))):
        raise NotGrounded("title", f"is not on the page: {value[:80]!r}")
    return value


def _names(page: Visible, raw: Any, context: PageContext) -> list[str]:
    given = _lines(raw)
    for name in given:
        if not page.has_words(name):
            raise NotGrounded("authors", f"is not on the page: {name[:80]!r}")
    return authors.clean(given, context.site_name)


def _when(doc: Document, page: Visible, raw: Any, context: PageContext) -> dates.When | None:
    value = one_line(raw) if isinstance(raw, str) else ""
    if not value:
        return None
    if not page.has_words(value):
        raise NotGrounded("published", f"is not on the page: {value[:80]!r}")
    when = dates.parse(value, published.rules_for(doc, context))
    if when is None:
        raise NotGrounded("published", f"cannot be read: {value[:80]!r}")
    return when
