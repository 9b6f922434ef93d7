"""Where a page names its authors: JSON-LD, itemprop, rel, meta, byline nodes, text around the article. Pure."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from itertools import chain, islice

from selectolax.lexbor import LexborNode

from newscrawler.extraction import authors, lines, regions, title, witnesses
from newscrawler.extraction.blocks import collapse
from newscrawler.extraction.context import PageContext
from newscrawler.extraction.document import Document
from newscrawler.extraction.regions import foreign
from newscrawler.items import FieldValue

# A byline of so few characters is a name and a body: "[name, paper]"; a longer one is a box about the writer.
_EAST_CHARS = 30
_KANJI = re.compile("[぀-ヿ㐀-鿿]")
_TRANSLATOR = re.compile(
    r"\b(?:übersetzung|übersetzt|translated|translation|traduction|traduit|traducción|traducido|vertaling)"
    r"(?: (?:von|by|de|par|por|door))?\W*$",
    re.I,
)
_MARKED_FOREIGN_TAGS = tuple(tag for tag in lines.FOREIGN_TAGS if tag != "nav")  # a byline may be a row of links
# An address, or who has made the template: "Jane Roe - http://roe.example", "Jane Roe designed".
_MAKER = re.compile(r"https?://|\bdesign(?:ed|er)?\b|\btheme\b|\btemplate\b", re.I)
# Where libraries and journals write "Roe, Jane"; one name an element.
_FAMILY_FIRST = ("dc.creator", "dcterms.creator", "dc.author", "citation_author")
_REVERSED = re.compile(r"^([^\W\d_][^\s,;]*),\s+([^\W\d_][^,;]{1,30})$")
# An address behind a name: "Jane Roe (http://roe.example)".
_IN_BRACKETS = re.compile(r"\s*[(<](?:https?://|mailto:)?[^\s()<>]*[./@][^\s()<>]*[)>]")
_PATH = re.compile(r"[\w./%~+-]{4,200}")  # of an author's page; it becomes part of a selector
_NETWORK = re.compile(r"(?:facebook|twitter|instagram|linkedin|youtube|google|wikipedia|x)\.\w+$")
_AUTHOR_PATHS = ("author", "autor", "auteur", "tac-gia")
_AUTHOR_PAGE = re.compile(r"/(?:authors?|autor(?:en|es)?|auteurs?|tac-gia)/[^/?#]+/?$")
_VCARD = re.compile(r"\b(?:vcard|fn)(?:\s|$)")
_META = re.compile(r"meta|info|byline|credit|sign", re.I)
_CLASSES = (
    "author", "Author", "byline", "Byline", "autor", "Autor", "writer", "journalist", "tacgia", "tac-gia",
    "redakteur", "firma", "auteur", "contributor", "creator", "signature", "verfasser", "reporter", "AUTHOR",
)  # fmt: skip
_NAME_CSS = (
    '[class*="name"],[rel~="author"],[itemprop~="name"],'
    'a[href*="author"],a[href*="autor"],a[href*="/profile"],a[href*="tac-gia"]'
)


Found = tuple[list[str], str]  # names, origin
# So many further places are asked whether they agree.
_MORE = 4


def find(doc: Document, context: PageContext) -> FieldValue:
    """The authors with their origin; value [] when the page names no person."""
    sites = title.site_names(doc, context.site_name)
    named = witnesses.of(doc)
    from_ld = authors.clean(named.authors_raw, context.site_name, sites, nicknames=True)
    from_meta = _from_meta(doc, context, sites)
    seen = visible_names(doc, context, sites)
    visible = next(seen, None)
    if visible is None and not from_ld and from_meta is None:
        from_meta = _linked(doc, context, sites)
    from_ld = _spelled(from_ld, from_meta, visible)
    if from_ld:
        if visible is not None and _set(visible[0]) == _set(from_ld):
            return FieldValue(from_ld, "json-ld", 0.97)
        if visible is not None and visible[2] >= 0.65 and _says_more(visible[0], from_ld):
            return FieldValue(visible[0], visible[1], visible[2])
        whole = _fuller(from_ld, from_meta, visible)
        return whole or FieldValue(from_ld, "json-ld", 0.88)
    if visible is not None and visible[1] == "byline:end" and (from_meta or _states_another(named, sites)):
        visible = None  # the page states its author: who signs the end is a source or a person of the story
    if from_meta:
        # A template may name the uploader or the publisher there: a reader must see the same.
        said = _set(from_meta[0])
        if visible is None or any(_set(names) == said for names, _, _ in chain([visible], islice(seen, _MORE))):
            return FieldValue(from_meta[0], from_meta[1], 0.75 if visible is None else 0.9)
        if visible[2] < 0.7:
            return FieldValue(from_meta[0], from_meta[1], 0.7)
    if visible is not None:
        return FieldValue(visible[0], visible[1], visible[2])
    hint = (context.hint or {}).get("authors")
    if isinstance(hint, list):
        from_hint = authors.clean([str(h) for h in hint], context.site_name, sites)
        if from_hint:
            return FieldValue(from_hint, "feed", 0.6)
    for node in doc.tree.css('header [class~="credit"]')[:3]:  # of the article, not of a picture
        if not _pictured(node):
            lines.note(doc, _visible(node))
    return FieldValue([])


def _pictured(node: LexborNode) -> bool:
    return any(n.tag in ("figure", "figcaption") for n in _above(node)) or node.css_first("img") is not None


def _above(node: LexborNode) -> Iterator[LexborNode]:
    parent = node.parent
    while parent is not None and parent.tag not in ("header", "body"):
        yield parent
        parent = parent.parent


def _set(names: list[str]) -> frozenset[str]:
    return frozenset(map(authors.key, names))


def _spelled(stated: list[str], meta: Found | None, visible: lines.Named | None) -> list[str]:
    """The same names as people write them, where a template states those of accounts ("jane-doe")."""

    def letters(names: list[str]) -> list[str]:
        return ["".join(filter(str.isalpha, unicodedata.normalize("NFKD", name).casefold())) for name in names]

    if any(name.islower() and len(name.split()) == 1 for name in stated):
        for names in (found[0] for found in (meta, visible) if found is not None):
            if letters(names) == letters(stated):
                return names
    return stated


def _states_another(named: witnesses.Witnesses, sites: list[str]) -> bool:
    """JSON-LD names an author that is not the site itself; a template's own name says nothing about who wrote."""
    own = {authors.key(site).replace(" ", "") for site in sites}
    return any(
        authors.key(person.name).replace(" ", "") not in own for person in named.persons if "organi" not in person.kind
    )


def _fuller(stated: list[str], meta: Found | None, visible: lines.Named | None) -> FieldValue | None:
    """The longer list of names that meta and byline share: templates often state the first author alone."""
    own = _set(stated)
    if visible is None or not own < _set(visible[0]) or len(visible[0]) > len(stated) + 3:
        return None
    if any(len(name.split()) < 2 for name in visible[0]):
        return None
    wanted, origin = _set(visible[0]), visible[1]
    if meta is not None and _set(meta[0]) == own and visible[2] >= 0.75 and len(visible[0]) <= len(stated) + 2:
        return FieldValue(visible[0], origin, 0.8)  # one plugin writes both machine places
    return FieldValue(visible[0], origin, 0.85) if meta is not None and _set(meta[0]) == wanted else None


def _says_more(visible: list[str], stated: list[str]) -> bool:
    """The reader sees a full name where the machine place has a user name."""
    full = [n for n in visible if len(n.split()) > 1]
    if not full or not "".join(stated).isascii():
        return False
    return all(len(n.split()) == 1 for n in stated)


def _from_meta(doc: Document, context: PageContext, sites: list[str]) -> Found | None:
    for name in witnesses.AUTHOR_META:
        values = [v for v in (_IN_BRACKETS.sub("", v) for v in doc.meta.get(name, ())) if not _MAKER.search(v)]
        if name in _FAMILY_FIRST:
            values = [_REVERSED.sub(r"\2 \1", v) for v in values]
        found = authors.clean(values, context.site_name, sites)
        if found and name == "twitter:data1" and len(found[0].split()) < 2:
            continue
        if found:
            return found, f"meta:{name}"
    return None


def _linked(doc: Document, context: PageContext, sites: list[str]) -> Found | None:
    """The text of the link to the page that a meta element states as the author's."""
    for name in ("article:author", "author"):
        for value in doc.meta.get(name, ())[:3]:
            path = re.sub(r"^https?://(?:www\.)?", "", value.strip()).partition("?")[0].rstrip("/")
            host, _, rest = path.partition("/")
            if value == path or _NETWORK.search(host) or not _PATH.fullmatch(rest):
                continue
            nodes = doc.tree.css(f'a[href$="/{rest}"],a[href$="/{rest}/"]')[:6]
            found = authors.clean([t for n in nodes if (t := _visible(n))][:1], context.site_name, sites)
            if found and len(found[0].split()) > 1:
                return found, f"meta:{name}"
    return None


def visible_names(doc: Document, context: PageContext, sites: list[str] | None = None) -> Iterator[lines.Named]:
    """What a reader sees, best place first; lazy, as the last one reads the whole page. ``sites``: the site's names."""
    sites = title.site_names(doc, context.site_name) if sites is None else sites
    for source in (_from_marked, _from_classes, _from_names, _from_links, lines.find):
        yield from source(doc, context, sites)


def _from_marked(doc: Document, context: PageContext, sites: list[str]) -> Iterator[lines.Named]:
    """itemprop=author and rel=author: all of them that are not in a comment or a related box."""
    parts = regions.of(doc)
    for css, origin, trust in (('[itemprop~="author"]', "itemprop", 0.85), ('[rel~="author"]', "rel", 0.8)):
        raw: list[str] = []
        near: set[int] = set()
        for node in doc.tree.css(css)[:12]:
            if node.tag in ("meta", "link"):
                content = node.attributes.get("content")
                if content and not content.startswith("http"):
                    raw.append(content)
                continue
            if foreign(node, lines.FOREIGN, parts, _MARKED_FOREIGN_TAGS, lines.OWN):
                continue
            around = _around(node)
            if near and not near & around:
                continue  # another article's
            near |= around
            inner = node.css('[itemprop~="name"]')
            for one in inner[:6] or [node]:
                raw.append(one.attributes.get("content") or _visible(one))
                lines.note(doc, raw[-1])
        names = authors.clean(raw, context.site_name, sites, nicknames=True)
        if names:
            yield names, origin, trust


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


def _from_classes(doc: Document, context: PageContext, sites: list[str]) -> Iterator[lines.Named]:
    """Nodes whose class or id names an author, first in the page first."""
    parts = regions.of(doc)
    css = "h1," + ",".join(f'[class*="{w}"],[id*="{w}"]' for w in _CLASSES)
    below_headline = False
    early: lines.Named | None = None  # above the headline: perhaps another article's
    for node in doc.tree.css(css)[:80]:
        if node.tag == "h1":
            below_headline = True
            continue
        if node.tag in ("body", "html", "main", "article", "form", "img", "nav", "footer") or node.first_child is None:
            continue
        if foreign(node, lines.FOREIGN, parts, lines.FOREIGN_TAGS, lines.OWN):
            continue
        text = _visible(node)
        if not text or len(text) > 300:
            continue
        lines.note(doc, text)
        inner = [t for n in node.css(_NAME_CSS)[:8] if not _is_crumb(n) and (t := _visible(n))]
        inner = [t for t in inner if not _TRANSLATOR.search(text.partition(t)[0][-40:])]
        names = authors.clean(inner, context.site_name, sites, nicknames=True) if inner else []
        names = (
            [n for n in names if len(n.split()) > 1]
            or (names[:1] if _VCARD.search(node.attributes.get("class") or "") or _links_author(node) else [])
            or (
                _whole(authors.clean([text], context.site_name, sites))
                if len(text) <= 160 and not _is_trail(node)
                else []
            )
        )
        if _KANJI.search(text) and not inner:
            if len(text) > _EAST_CHARS or "\n" in text:
                continue
            names = [n for n in names if lines.EAST.match(n)] or names
        short = all(len(n.split()) == 1 and not lines.EAST.match(n) for n in names)
        if not names or (short and (len(names) > 1 or not inner)):
            continue
        found = names, "byline", 0.78 if len(text) < 120 else 0.65
        if below_headline:
            yield found
        elif early is None:
            early = found
    if early is not None:
        yield early


def _whole(names: list[str]) -> list[str]:
    """Beside a full name one word is a place: "Jane Roe, Berlin"."""
    return [n for n in names if len(n.split()) > 1 or lines.EAST.match(n)] or names


def _links_author(node: LexborNode) -> bool:
    """One link, to the page of an author: a given name alone is believed there."""
    links = node.css("a[href]")
    return len(links) == 1 and bool(_AUTHOR_PAGE.search(links[0].attributes.get("href") or ""))


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


def _from_names(doc: Document, context: PageContext, sites: list[str]) -> Iterator[lines.Named]:
    """A node classed "name" in the line of date and author."""
    parts = regions.of(doc)
    for node in doc.tree.css('[class~="name"]')[:20]:
        parent = node.parent
        around = (parent.attributes.get("class") or "") if parent is not None else ""
        if not _META.search(around) or foreign(node, lines.FOREIGN, parts, lines.FOREIGN_TAGS, lines.OWN):
            continue
        names = [n for n in authors.clean([_visible(node)], context.site_name, sites) if len(n.split()) > 1]
        if names:
            yield names, "byline", 0.72


def _from_links(doc: Document, context: PageContext, sites: list[str]) -> Iterator[lines.Named]:
    """The first link to an author's page behind the headline, and those beside it."""
    parts = regions.of(doc)
    below, near = parts.first is None, set[int]()
    raw: list[str] = []
    for node in doc.tree.css("h1,h2," + ",".join(f'a[href*="/{word}"]' for word in _AUTHOR_PATHS))[:80]:
        below = below or node.mem_id == parts.first
        if node.tag != "a" or not below or not _AUTHOR_PAGE.search(node.attributes.get("href") or ""):
            continue
        if foreign(node, lines.FOREIGN, parts, lines.FOREIGN_TAGS, lines.OWN):
            continue
        around = _around(node)
        if raw and not near & around:
            break  # another article's
        near |= around
        raw.append(_visible(node))
    names = [n for n in authors.clean(raw, context.site_name, sites) if len(n.split()) > 1]
    if names:
        yield names, "byline:link", 0.72


def _visible(node: LexborNode) -> str:
    """Text with the children's pieces set apart, scripts left out."""
    if node.first_child is None:
        return ""
    parts: list[str] = []
    for count, child in enumerate(node.traverse(include_text=True)):
        if count > 120:
            return ""
        if child.tag == "-text":
            parent = child.parent
            if parent is not None and parent.tag in ("script", "style", "noscript", "button"):
                continue
            text = child.text_content or ""
            if parts and text[:1].isupper() and parts[-1][-1:].isalpha():
                parts.append("\n")  # "Jane Doe" + "Staff Writer" in two elements without a space
            parts.append(text)
        elif child.tag in ("div", "p", "li", "br", "a", "time", "td", "h2", "h3", "h4", "h5") and any(
            p.strip() for p in parts
        ):
            parts.append("\n" if child.tag != "a" else " ")
    lines = [collapse(line) for line in "".join(parts).split("\n")]
    return "\n".join(line for line in lines if line)
