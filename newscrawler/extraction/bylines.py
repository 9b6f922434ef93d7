"""Where a page names its authors: JSON-LD, itemprop, rel, meta, byline nodes, text around
the article. Pure."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from itertools import chain, islice

from selectolax.lexbor import LexborNode

from newscrawler.extraction import (
    agreement,
    authors,
    byline_text,
    lexicon,
    page_metadata,
    regions,
    title,
)
from newscrawler.extraction.blocks import collapse
from newscrawler.extraction.context import PageContext
from newscrawler.extraction.document import Document
from newscrawler.extraction.regions import foreign
from newscrawler.items import FieldValue

# An element named after authors that is longer is no byline; up to this many characters, all of
# its text may be names.
_BYLINE_CHARS = 300
_NAMES_CHARS = 160
# A byline of so few characters is a name and a body: "[name, paper]"; a longer one is a box
# about the writer.
_EAST_CHARS = 30
_KANJI = re.compile("[぀-ヿ㐀-鿿]")
_TRANSLATOR = lexicon.Pattern(r"\b(?:<byline.translated>)\W*$")
MARKED_FOREIGN_TAGS = tuple(
    tag for tag in byline_text.FOREIGN_TAGS if tag != "nav"
)  # a byline may be a row of links
# An address, or who has made the template: "Jane Roe - http://roe.example", "Jane Roe designed".
_MAKER = re.compile(r"https?://|\bdesign(?:ed|er)?\b|\btheme\b|\btemplate\b", re.I)
# Where libraries and journals write "Roe, Jane"; one name an element.
_FAMILY_FIRST = ("dc.creator", "dcterms.creator", "dc.author", "citation_author")
_REVERSED = re.compile(r"^([^\W\d_][^\s,;]*),\s+([^\W\d_][^,;]{1,30})$")
# An address behind a name: "Jane Roe (http://roe.example)".
_IN_BRACKETS = re.compile(r"(?<!\s)\s*+[(<](?=[^\s()<>./@]*+[./@])[^\s()<>]++[)>]")
_PATH = re.compile(r"[\w./%~+-]{4,200}")  # of an author's page; it becomes part of a selector
_NETWORK = re.compile(r"(?:facebook|twitter|instagram|linkedin|youtube|google|wikipedia|x)\.\w+$")
_AUTHOR_PATHS = ("author", "autor", "auteur", "tac-gia")
_AUTHOR_PAGE = re.compile(r"/(?:authors?|autor(?:en|es)?|auteurs?|tac-gia)/[^/?#]+/?$")
_VCARD = re.compile(r"\b(?:vcard|fn)(?:\s|$)")
_CLASSES = (
    "author", "Author", "byline", "Byline", "autor", "Autor", "writer", "journalist", "tacgia",
    "tac-gia",
    "redakteur", "firma", "auteur", "contributor", "creator", "signature", "verfasser", "reporter",
    "AUTHOR",
)  # fmt: skip
ITEMPROP, REL = '[itemprop~="author"]', '[rel~="author"]'
#: More marked names than this may be those of everybody who works for the paper.
_MANY = 8
_NAME_CSS = (
    '[class*="name"],[rel~="author"],[itemprop~="name"],'
    'a[href*="author"],a[href*="autor"],a[href*="/profile"],a[href*="tac-gia"]'
)
_CLASSES_CSS = "h1," + ",".join(f'[class*="{w}"],[id*="{w}"]' for w in _CLASSES)
_LINKS_CSS = "h1,h2," + ",".join(f'a[href*="/{word}"]' for word in _AUTHOR_PATHS)
NO_BYLINE_TAGS = ("body", "html", "main", "article", "form", "img", "nav", "footer")
# What readers do not see, and elements that set their text apart from the one before.
_UNSEEN_TAGS = ("script", "style", "noscript", "button")
_PARTING_TAGS = ("div", "p", "li", "br", "a", "time", "td", "h2", "h3", "h4", "h5")

Found = tuple[list[str], str]  # names, origin
# So many further places are asked whether they agree.
_MORE = 4


def by_rules(doc: Document, context: PageContext) -> FieldValue:
    """The authors that the rules find, with their origin; value [] when the page names no person.
    What is stored is weighed beside other candidates (author_choice)."""
    sites = title.site_names(doc, context.site_name)
    named = page_metadata.of(doc)
    from_ld = agreement.clean(doc, context, named.authors_raw, sites, nicknames=True)
    from_meta = _from_meta(doc, context, sites)
    seen = visible_names(doc, context, sites)
    visible = next(seen, None)
    if visible is None and not from_ld and from_meta is None:
        if (linked := _linked(doc, context, sites)) is not None:
            return FieldValue(*linked, 0.8)  # a statement and the text of what it leads to
    from_ld = _spelled(from_ld, from_meta, visible)
    if from_ld:
        return _beside_json_ld(from_ld, from_meta, visible)
    if from_meta and visible is not None and visible[1] == "byline:end":
        # Where the page states its author, who signs the end is a source or a person of the story.
        visible = None
    found = _beside_meta(from_meta, visible, seen) if from_meta else None
    if found is not None:
        return found
    if visible is not None:
        return FieldValue(*visible)
    return _of_the_feed(doc, context, sites)


def _beside_json_ld(
    stated: list[str], meta: Found | None, visible: byline_text.Named | None
) -> FieldValue:
    """What JSON-LD states, unless what readers see says more."""
    if visible is not None:
        names, _, trust = visible
        if _set(names) == _set(stated):
            return FieldValue(stated, "json-ld", 0.97)
        if trust >= 0.65 and _says_more(names, stated):
            return FieldValue(*visible)
    return _fuller(stated, meta, visible) or FieldValue(stated, "json-ld", 0.88)


def _beside_meta(
    meta: Found, visible: byline_text.Named | None, more: Iterator[byline_text.Named]
) -> FieldValue | None:
    """What a meta element states, unless readers surely see another name: a template may name the
    uploader or the publisher there."""
    names, origin = meta
    if visible is None:
        return FieldValue(names, origin, 0.75)
    said = _set(names)
    if any(_set(others) == said for others, _, _ in chain([visible], islice(more, _MORE))):
        return FieldValue(names, origin, 0.9)
    return FieldValue(names, origin, 0.7) if visible[2] < 0.7 else None


def _of_the_feed(doc: Document, context: PageContext, sites: list[str]) -> FieldValue:
    """What the entry of the feed named; [] after the last place was noted for the credits."""
    hint = (context.hint or {}).get("authors")
    if isinstance(hint, list):
        from_hint = agreement.clean(doc, context, [str(h) for h in hint], sites)
        if from_hint:
            return FieldValue(from_hint, "feed", 0.6)
    for node in doc.tree.css('header [class~="credit"]')[:3]:  # of the article, not of a picture
        if not _pictured(node):
            byline_text.note(doc, visible(node))
    return FieldValue([])


def _pictured(node: LexborNode) -> bool:
    return (
        any(n.tag in ("figure", "figcaption") for n in _above(node))
        or node.css_first("img") is not None
    )


def _above(node: LexborNode) -> Iterator[LexborNode]:
    parent = node.parent
    while parent is not None and parent.tag not in ("header", "body"):
        yield parent
        parent = parent.parent


def _set(names: list[str]) -> frozenset[str]:
    return frozenset(map(authors.key, names))


def _spelled(stated: list[str], meta: Found | None, visible: byline_text.Named | None) -> list[str]:
    """The same names as people write them, where a template states those of
    accounts ("jane-doe")."""

    def letters(names: list[str]) -> list[str]:
        return [
            "".join(filter(str.isalpha, unicodedata.normalize("NFKD", name).casefold()))
            for name in names
        ]

    if any(name.islower() and len(name.split()) == 1 for name in stated):
        for names in (found[0] for found in (meta, visible) if found is not None):
            if letters(names) == letters(stated):
                return names
    return stated


def _fuller(
    stated: list[str], meta: Found | None, visible: byline_text.Named | None
) -> FieldValue | None:
    """The longer list of names that meta and byline share: templates often state the
    first author alone."""
    if visible is None or meta is None:
        return None
    own, in_meta = _set(stated), _set(meta[0])
    names, origin, trust = visible
    if not own < _set(names) or len(names) > len(stated) + 3:
        return None
    if any(len(name.split()) < 2 for name in names):
        return None
    if in_meta == own and trust >= 0.75 and len(names) <= len(stated) + 2:
        return FieldValue(names, origin, 0.8)  # one plugin writes both machine places
    return FieldValue(names, origin, 0.85) if in_meta == _set(names) else None


def _says_more(visible: list[str], stated: list[str]) -> bool:
    """The reader sees a full name where the machine place has a user name."""
    full = [n for n in visible if len(n.split()) > 1]
    if not full or not "".join(stated).isascii():
        return False
    return all(len(n.split()) == 1 for n in stated)


def _from_meta(doc: Document, context: PageContext, sites: list[str]) -> Found | None:
    for name in page_metadata.AUTHOR_META:
        found = agreement.clean(doc, context, stated_in(doc, name), sites)
        # The first datum of a card on Twitter may be anything: a price, a time to read.
        if found and not (name == "twitter:data1" and len(found[0].split()) < 2):
            return found, f"meta:{name}"
    return None


def stated_in(doc: Document, name: str) -> list[str]:
    """What the meta elements of that name state, without addresses; who made the template is
    left out."""
    stated = (_IN_BRACKETS.sub("", value) for value in doc.meta.get(name, ()))
    values = [value for value in stated if not _MAKER.search(value)]
    if name in _FAMILY_FIRST:
        return [_REVERSED.sub(r"\2 \1", value) for value in values]
    return values


def _linked(doc: Document, context: PageContext, sites: list[str]) -> Found | None:
    """The text of the link to the page that a meta element states as the author's."""
    for name in ("article:author", "author"):
        for value in doc.meta.get(name, ())[:3]:
            path = re.sub(r"^https?://(?:www\.)?", "", value.strip()).partition("?")[0].rstrip("/")
            host, _, rest = path.partition("/")
            if value == path or _NETWORK.search(host) or not _PATH.fullmatch(rest):
                continue
            nodes = doc.tree.css(f'a[href$="/{rest}"],a[href$="/{rest}/"]')[:6]
            shown = filter(None, map(visible, nodes))
            found = agreement.clean(doc, context, list(islice(shown, 1)), sites)
            if found and len(found[0].split()) > 1:
                return found, f"meta:{name}"
    return None


def visible_names(
    doc: Document, context: PageContext, sites: list[str] | None = None
) -> Iterator[byline_text.Named]:
    """What a reader sees, best place first; lazy, as the last one reads the whole page.
    ``sites``: the site's names."""
    sites = title.site_names(doc, context.site_name) if sites is None else sites
    for source in (_from_marked, _from_classes, _from_links, byline_text.find):
        yield from source(doc, context, sites)


def _from_marked(
    doc: Document, context: PageContext, sites: list[str]
) -> Iterator[byline_text.Named]:
    """itemprop=author and rel=author: all of them that are not in a comment or a related box."""
    for css, origin, trust in (
        (ITEMPROP, "itemprop", 0.85),
        (REL, "rel", 0.8),
    ):
        raw = list(_marked(doc, css))
        names = agreement.clean(doc, context, raw, sites, nicknames=True)
        if names and not (len(names) > _MANY and _has_shorter_byline(doc, context, sites)):
            yield names, origin, trust


def _has_shorter_byline(doc: Document, context: PageContext, sites: list[str]) -> bool:
    """Whether a byline names a few: then a long list of marked names is that of the staff."""
    sources = (_from_classes, byline_text.find)
    return any(
        0 < len(names) <= _MANY for source in sources for names, _, _ in source(doc, context, sites)
    )


def marked_nodes(doc: Document, css: str) -> list[LexborNode]:
    """What one of ITEMPROP and REL selects, read once per document."""
    found = page_metadata.of(doc).marked
    if css not in found:
        found[css] = doc.tree.css(css)[: authors.MAX_NAMES]
    nodes: list[LexborNode] = found[css]
    return nodes


def _marked(doc: Document, css: str) -> Iterator[str]:
    """What the elements that are marked as an author's say, of one article alone."""
    parts = regions.of(doc)
    near: set[int] = set()
    for node in marked_nodes(doc, css):
        if node.tag in ("meta", "link"):
            content = node.attributes.get("content")
            if content and not content.startswith("http"):
                yield content
            continue
        if foreign(node, byline_text.FOREIGN, parts, MARKED_FOREIGN_TAGS, byline_text.OWN):
            continue
        around = _around(node)
        if near and not near & around:
            continue  # another article's
        near |= around
        for name in _marked_names(node):
            byline_text.note(doc, name)
            yield name


def _marked_names(node: LexborNode) -> list[str]:
    """The names that are marked in an author's element, or its text."""
    inner = node.css('[itemprop~="name"]')
    return [
        one.attributes.get("content") or visible(one)
        for one in inner[: authors.MAX_NAMES] or [node]
    ]


def _around(node: LexborNode) -> set[int]:
    """``mem_id`` of the node and the three elements above it: names of one byline share one."""
    ids: set[int] = set()
    one: LexborNode | None = node
    for _ in range(4):
        if one is None or one.tag in ("body", "main", "article"):
            break
        ids.add(one.mem_id)
        one = one.parent
    return ids


def _from_classes(
    doc: Document, context: PageContext, sites: list[str]
) -> Iterator[byline_text.Named]:
    """Nodes whose class or id names an author, first in the page first."""
    parts = regions.of(doc)
    below_headline = False
    early: byline_text.Named | None = None  # above the headline: perhaps another article's
    for node in classed(doc):
        if node.tag == "h1":
            below_headline = True
            continue
        if node.tag in NO_BYLINE_TAGS or node.first_child is None:
            continue
        if foreign(node, byline_text.FOREIGN, parts, byline_text.FOREIGN_TAGS, byline_text.OWN):
            continue
        text = visible(node)
        if not 0 < len(text) <= _BYLINE_CHARS:
            continue
        byline_text.note(doc, text)
        names = _names_in(node, text, doc, context, sites)
        found = names, "byline", 0.78 if len(text) < 120 else 0.65
        if names and below_headline:
            yield found
        elif names:
            early = early or found
    if early is not None:
        yield early


def classed(doc: Document) -> list[LexborNode]:
    """Elements whose class or id is named after authors, and the headings between them."""
    found = page_metadata.of(doc)
    if found.classed is None:
        found.classed = doc.tree.css(_CLASSES_CSS)[:80]
    nodes: list[LexborNode] = found.classed
    return nodes


def _names_in(
    node: LexborNode, text: str, doc: Document, context: PageContext, sites: list[str]
) -> list[str]:
    """Who wrote it, of an element that is named after authors; [] where it does not say."""
    inner = _named_pieces(node, text)
    if inner:
        marked = agreement.clean(doc, context, inner, sites, nicknames=True)
        names = [name for name in marked if len(name.split()) > 1]
        if not names and marked and _is_of_author(node):
            names = marked[:1]
        names = names or _names_of_text(node, text, doc, context, sites)
        # A word alone is believed once, in an element of its own.
        return names if len(names) == 1 or any(map(_is_full, names)) else []
    is_eastern = _KANJI.search(text) is not None
    if is_eastern and (len(text) > _EAST_CHARS or "\n" in text):
        return []
    names = _names_of_text(node, text, doc, context, sites)
    if is_eastern:
        names = list(filter(byline_text.EAST.match, names)) or names
    return names if any(map(_is_full, names)) else []


def _names_of_text(
    node: LexborNode, text: str, doc: Document, context: PageContext, sites: list[str]
) -> list[str]:
    """All of an element's text as names, where it is short and no breadcrumb."""
    if len(text) > _NAMES_CHARS or _is_trail(node):
        return []
    return _whole(agreement.clean(doc, context, [text], sites))


def _named_pieces(node: LexborNode, text: str) -> list[str]:
    """Texts of the elements within that are named after names or lead to an author's page, without
    who translated it."""
    inner = [
        visible(piece) for piece in node.css(_NAME_CSS)[: authors.MAX_NAMES] if not _is_crumb(piece)
    ]
    return [t for t in inner if t and not _TRANSLATOR.search(text.partition(t)[0][-40:])]


def _is_full(name: str) -> bool:
    """A given name and a surname, or a name in a script that sets no space between them."""
    return len(name.split()) > 1 or byline_text.EAST.match(name) is not None


def _whole(names: list[str]) -> list[str]:
    """Beside a full name one word is a place: "Jane Roe, Berlin"."""
    return [name for name in names if _is_full(name)] or names


def _is_of_author(node: LexborNode) -> bool:
    """A card, or one link to the page of an author: a given name alone is believed there."""
    if _VCARD.search(node.attributes.get("class") or ""):
        return True
    links = node.css("a[href]")
    return len(links) == 1 and _leads_to_author(links[0])


def _leads_to_author(link: LexborNode) -> bool:
    return _AUTHOR_PAGE.search(link.attributes.get("href") or "") is not None


def _is_trail(node: LexborNode) -> bool:
    """A box that holds a breadcrumb beside the name."""
    return node.css_first('[itemtype*="BreadcrumbList"],[class*="breadcrumb"]') is not None


def _is_crumb(node: LexborNode) -> bool:
    """A name in a breadcrumb's list item: itemprop=name stands there as well."""
    parent = node.parent
    for _ in range(3):
        if parent is None:
            return False
        if "ListItem" in (parent.attributes.get("itemtype") or ""):
            return True
        parent = parent.parent
    return False


def _from_links(
    doc: Document, context: PageContext, sites: list[str]
) -> Iterator[byline_text.Named]:
    """The first link to an author's page behind the headline, and those beside it."""
    parts = regions.of(doc)
    below, near = parts.first is None, set[int]()
    raw: list[str] = []
    for node in doc.tree.css(_LINKS_CSS)[:80]:
        below = below or node.mem_id == parts.first
        if not below or node.tag != "a" or not _leads_to_author(node):
            continue
        if foreign(node, byline_text.FOREIGN, parts, byline_text.FOREIGN_TAGS, byline_text.OWN):
            continue
        around = _around(node)
        if raw and not near & around:
            break  # another article's
        near |= around
        raw.append(visible(node))
    names = [n for n in agreement.clean(doc, context, raw, sites) if len(n.split()) > 1]
    if names:
        yield names, "byline:link", 0.72


def visible(node: LexborNode) -> str:
    """Text with the children's pieces set apart, scripts left out."""
    if node.first_child is None:
        return ""
    parts: list[str] = []
    is_blank = True
    for count, child in enumerate(node.traverse(include_text=True)):
        if count > 120:
            return ""
        if child.tag == "-text":
            if _is_unseen(child):
                continue
            text = child.text_content or ""
            if parts and text[:1].isupper() and parts[-1][-1:].isalpha():
                parts.append("\n")  # "Jane Doe" + "Staff Writer" in two elements without a space
            parts.append(text)
            is_blank = is_blank and not text.strip()
        elif child.tag in _PARTING_TAGS and not is_blank:
            parts.append(" " if child.tag == "a" else "\n")
    return "\n".join(filter(None, map(collapse, "".join(parts).split("\n"))))


def _is_unseen(text: LexborNode) -> bool:
    parent = text.parent
    return parent is not None and parent.tag in _UNSEEN_TAGS
