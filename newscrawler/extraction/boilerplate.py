"""Which elements of a page are not its article, by tag, name or style: boxes, menus,
comments, consent. Pure.

General rules only: page builders, content systems and consent tools may be named
here, no publisher.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from selectolax.lexbor import LexborNode

from newscrawler.extraction import lexicon, regions
from newscrawler.extraction.blocks import walk
from newscrawler.extraction.document import Document, words

# Words of class and id that name what is not the article. Whole words or parts cut by
# - and _ or camelCase.
_NAMED = lexicon.Pattern(r"(?:^|[\s_-])(?:<class.content>)(?:$|[\s_-])")
_NAMED_PARAGRAPH = lexicon.Pattern(r"(?:^|[\s_-])(?:<class.paragraph>)(?:$|[\s_-])")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
# What a build tool made of a name ("n1AuAdJlVL", "kfEGwZ"): pieces of one or two characters
# among three or more.
_TOKEN = re.compile(r"(?<!\w)[A-Za-z0-9]{5,12}(?!\w)")
_HASH_PIECES = re.compile(r"[a-z0-9]*(?:[A-Z][a-z0-9]*){2,}")
_SHORT_PIECE = re.compile(r"[A-Z][a-z0-9]?(?![a-z0-9])")
# Boxes that an article is built of.
_PART_OF_TEXT = re.compile(
    r"(?<!\S)(?:article|content|story|text|body)[-_]?widgets?(?:[-_](?:text|content|body)\w*)?"
    r"(?!\S)",
    re.I,
)
_OWN_TAG = re.compile(r"<([a-zA-Z][a-zA-Z0-9]{0,20}(?:-[a-zA-Z0-9]{1,20}){1,4})[\s>/]")
_MAX_OWN = 20
# Longer lists of names style a page, they name nothing.
_MOST_NAMES = 300
# Says how a box looks or what made it, not what it is: hidden on one kind of screen, label
# hidden, text cut off; the words of a page builder; what a post is filed under (a post
# about forms is no form).
_STYLING = re.compile(
    r"(?<!\S)(?:\S*overflow-\S+|\S*label-{1,2}(?:visually[-_])?hidden"
    r"|hidden-(?:x[sl]|sm|md|lg|print|phone|mobile|tablet|desktop)(?:-\w+)?"
    r")(?!\S)|elementor-(?:widget-(?:container|wrap)\b|widget\b)",
    re.I,
)
_POST = re.compile(r"(?<!\S)(?:hentry|type-post|status-publish)(?!\S)")
_FILED = re.compile(r"(?<!\S)(?:tag|category|post_tag|topic|author|format)-\S+")
# An address as an id, a heading's anchor: no names.
_NO_NAME = re.compile(
    r"\S*(?:://|%[0-9a-f]{2})\S*|(?<!\S)toc[-_](?:title|section|heading)\S*", re.I
)
# Consent tools and comments: not the article even where they hold most of the page's text.
_FOREIGN = lexicon.Pattern(
    r"<class.consent>|(?<!\S)(?:<class.foreign_alone>)(?!\S)|(?:^|[\s_-])(?:<class.comments>"
    r"|(?<!no-)(?<!has-)(?:<class.comments_or_state>)"
    r"(?!-(?:open|closed|off|on|enabled|disabled|count|link)))(?:$|[\s_-])"
)
# Inside a line: what is shown to nobody, or only when it is pointed at.
_UNSEEN = lexicon.Pattern(r"(?:^|[\s_-])(?:<class.unseen>)(?:$|[\s_-])")
_INLINE = words("span sup small label")
# So many characters of paragraphs must stand outside such elements.
_LEAST_ELSE = 200
_TEXT_TAGS = words("p h2 h3 h4 blockquote tr td th")
_SKIPPED_TAGS = words("nav footer aside form figure figcaption header dialog menu")
_NEVER_TEXT = words("figure figcaption nav menu dialog footer")
# What may be boilerplate: all that has a name, a style or a tag that says so.
_ASKED_CSS = (
    "[class],[id],div[type],nav,footer,aside,form,figure,figcaption,header,dialog,menu,[hidden],"
    "[style],[role=dialog],[role=alertdialog],[aria-modal=true]"
)
_HIDDEN_STYLE = re.compile(r"display:\s*none|visibility:\s*hidden", re.I)
# Shorter paragraphs do not tell where the text is.
_PARAGRAPH_CHARS = 60
# An element that holds this share of the page's paragraphs is the text, whatever it is called.
_MOST = 0.35
# A part of the text has less of itself in links; a teaser's heading alone is about as much.
_MOST_LINKED = 0.4


def find(doc: Document) -> tuple[set[int], set[int], set[int]]:
    """``(boilerplate, foreign, unseen)``: ``mem_id`` of the elements that are not article by tag,
    name or style, without those that hold most of the text; of consent tools and comments, which
    are boilerplate whatever they hold; of parts of a line that are not shown."""
    body = doc.tree.body
    if body is None:
        return set(), set(), set()
    boilerplate, foreign = _named(doc, body)
    mass, total = _mass(body)
    headline = _above_headline(doc)
    apart = {n.mem_id for n in foreign} - headline
    if apart and total - _outermost(foreign, apart, mass) < _LEAST_ELSE:
        apart = set()
    most = _MOST * total
    skipped = [n for n in boilerplate if n.tag in _NEVER_TEXT or mass.get(n.mem_id, 0) < most]
    others = {n.mem_id for n in foreign}  # comments are none, however much they hold
    text = _texts_in_parts([n for n in skipped if n.mem_id not in others], mass, most)
    if text:
        skipped = [n for n in skipped if n.mem_id not in text]
    unseen = {n.mem_id for n in skipped if n.tag in _INLINE and _is_unseen(n)}
    return {n.mem_id for n in skipped} | apart, apart, unseen


def _texts_in_parts(boilerplate: list[LexborNode], mass: dict[int, int], most: float) -> set[int]:
    """Elements of one name that hold most of the text together, each a part of it: what one element
    of that name could hold, several can. Teasers, which lead to other pages, are none."""
    alike: dict[tuple[str | None, ...], list[LexborNode]] = {}
    for node in boilerplate:
        if node.tag not in _NEVER_TEXT and node.parent is not None:
            names = node.attributes.get("class"), node.parent.attributes.get("class")
            alike.setdefault((node.tag, node.parent.tag, *names), []).append(node)
    found: set[int] = set()
    for every in alike.values():
        nodes = [n for n in every if mass.get(n.mem_id, 0)]
        if len(nodes) < 2 or sum(mass[n.mem_id] for n in nodes) < most:
            continue
        # What says the same in each place is a notice.
        own = {n.text(deep=True): n for n in nodes if _is_part(n, mass[n.mem_id], _MOST_LINKED)}
        if len(own) > 1 and sum(mass[n.mem_id] for n in own.values()) >= most:
            found |= {n.mem_id for n in nodes if _is_part(n, mass[n.mem_id], 1.0)}
            found |= _short_parts(every, found)
    return found


def _short_parts(nodes: list[LexborNode], long: set[int]) -> set[int]:
    """Of elements of one name, in page order, those that stand between two that are text: a
    sentence or a verse of it, whatever its length. No list of links, nothing that is said twice."""
    places = [at for at, node in enumerate(nodes) if node.mem_id in long]
    between = [n for n in nodes[places[0] : places[-1]] if n.mem_id not in long]
    said = [n.text(deep=True).strip() for n in between]
    times = Counter(said)
    return {
        node.mem_id
        for node, line in zip(between, said, strict=True)
        if times[line] == 1 and _is_part(node, len(line), _MOST_LINKED)
    }


def _is_part(node: LexborNode, chars: int, most: float) -> bool:
    """Whether less than ``most`` of its paragraphs (``chars``) is in links."""
    return sum(len(link.text(deep=True)) for link in node.css("a[href]")) < most * chars


def _above_headline(doc: Document) -> set[int]:
    """The elements that hold the page's headline."""
    first = regions.of(doc).first
    if first is None:
        return set()
    node = next((h for h in doc.tree.css("h1,h2") if h.mem_id == first), None)
    ids: set[int] = set()
    while node is not None:
        ids.add(node.mem_id)
        node = node.parent
    return ids


def _is_unseen(node: LexborNode) -> bool:
    attributes = node.attributes
    return _is_hidden(attributes) or bool(_UNSEEN.search(attributes.get("class") or ""))


def _named(doc: Document, body: LexborNode) -> tuple[list[LexborNode], list[LexborNode]]:
    """Elements that are not the article by tag, name or style; and of them consent tools and
    comments."""
    cache: dict[tuple[bool, str], tuple[bool, bool]] = {}
    boilerplate: list[LexborNode] = []
    foreign: list[LexborNode] = []
    for node in body.css(_ASKED_CSS):
        tag = node.tag
        if tag in ("body", "main", "article", "html"):
            continue
        attributes = node.attributes
        names = (
            f"{attributes.get('class') or ''} {attributes.get('id') or ''}"
            f" {attributes.get('type') or ''}"
        )
        # A paragraph is text unless its name says caption, credit ...; "teaser" or "widget"
        # on it is styling.
        is_text = tag in _TEXT_TAGS
        answer = cache.get((is_text, names))
        if answer is None:
            answer = cache[is_text, names] = _judged(is_text, names)
        is_named, is_foreign = answer
        if is_foreign:
            foreign.append(node)
        is_skipped = tag in _SKIPPED_TAGS and not _is_quotation(node)
        if is_named or is_skipped or _is_hidden(attributes) or _is_dialog(attributes):
            boilerplate.append(node)
    # <amp-ad>, <x-inline-teaser>: elements that a site has made and named.
    made = dict.fromkeys(m[1].lower() for m in _OWN_TAG.finditer(doc.text_html))
    own = list(filter(_NAMED.search, made))
    if own:
        boilerplate.extend(body.css(",".join(own[:_MAX_OWN])))
    return boilerplate, foreign


def _is_hidden(attributes: dict[str, str | None]) -> bool:
    if "hidden" in attributes:
        return True
    return "style" in attributes and bool(_HIDDEN_STYLE.search(attributes["style"] or ""))


def _is_dialog(attributes: dict[str, str | None]) -> bool:
    """An offer or a question that is laid over the page."""
    if "role" in attributes and attributes["role"] in ("dialog", "alertdialog"):
        return True
    return "aria-modal" in attributes and attributes["aria-modal"] == "true"


def _is_quotation(node: LexborNode) -> bool:
    """A figure that holds no picture but a text of several sentences; its figcaption says whose."""
    if node.tag != "figure" or node.css_first("img") is not None:
        return False
    quoted = node.css_first("blockquote")
    return quoted is not None and len(quoted.text(deep=True)) > _LEAST_ELSE


def _judged(is_text: bool, names: str) -> tuple[bool, bool]:
    """Whether an element's names say boilerplate, and foreign."""
    if len(names) >= _MOST_NAMES or not names.strip():
        return False, False
    if "/" in names or "%" in names or "toc" in names.lower():
        names = _NO_NAME.sub("", names)
    if "-" in names:
        if _POST.search(names):
            names = _FILED.sub("", names)
        names = _STYLING.sub(" ", names)
    if not names.islower():
        names = _CAMEL.sub("-", _TOKEN.sub(_without_hash, names))
    names = _PART_OF_TEXT.sub("", names)
    pattern = _NAMED_PARAGRAPH if is_text else _NAMED
    return bool(pattern.search(names)), not is_text and bool(_FOREIGN.search(names))


def _mass(body: LexborNode) -> tuple[dict[int, int], int]:
    """Characters of paragraphs below each element, and of all; pages without paragraphs: of all
    text that is not linked."""
    found = _long((p, len(p.text(deep=True))) for p in body.css("p"))
    if sum(length for _, length in found) < _LEAST_ELSE:
        unlinked = (b for b in walk(body) if 2 * b.link_chars < len(b.text))
        found = _long((b.node, len(b.text)) for b in unlinked)
    mass: dict[int, int] = {}
    for node, length in found:
        one: LexborNode | None = node
        while one is not None and one.tag != "html":
            ident = one.mem_id
            mass[ident] = mass.get(ident, 0) + length
            one = one.parent
    return mass, sum(length for _, length in found)


def _long(found: Iterable[tuple[LexborNode, int]]) -> list[tuple[LexborNode, int]]:
    return [(node, length) for node, length in found if length > _PARAGRAPH_CHARS]


def _outermost(nodes: list[LexborNode], chosen: set[int], mass: dict[int, int]) -> int:
    """Characters below the chosen ones, those inside one another counted once."""
    held = 0
    for node in nodes:
        if node.mem_id not in chosen:
            continue
        above = node.parent
        while above is not None and above.mem_id not in chosen:
            above = above.parent
        if above is None:
            held += mass.get(node.mem_id, 0)
    return held


def _without_hash(token: re.Match[str]) -> str:
    name = token[0]
    return "" if _HASH_PIECES.fullmatch(name) and _SHORT_PIECE.search(name) else name
