"""Where a page names its authors: JSON-LD, itemprop, rel, meta, byline nodes, text around the article. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain, islice

from selectolax.lexbor import LexborNode

from newscrawler.extraction import authors, regions, title, witnesses
from newscrawler.extraction.blocks import Block, collapse, walk
from newscrawler.extraction.context import PageContext
from newscrawler.extraction.document import Document
from newscrawler.extraction.regions import foreign
from newscrawler.extraction.text import SIGNED_ROLE, is_vietnamese
from newscrawler.items import FieldValue

_FOREIGN = re.compile(
    r"comment|kommentar|related|recommend|sidebar|(?<!post-)(?<!entry-)(?<!article-)(?<!story-)footer|widget"
    r"|latest|popular|teaser|most-?read|trending|disqus|reply|quote|zitat|about-?author|author-?bio|bio-?box"
    r"|caption|licen[cs]e|photo-?credit|image-?credit|newsletter|subscribe|login|menu|nav\b|breadcrumb|share|social|carousel"
    r"|slider",
    re.I,
)
_BYLINE_START = re.compile(
    r"^\W{0,3}(?:(?:(?:written|posted|reported|words|story|text|report|analysis|interview|review|photos? and text"
    r"|text and photos?)\s+by|(?:gespeichert|blog ?beitrag|beitrag|text|texte|bericht|kommentar|interview"
    r"|text und fotos?)\s+von|by|von|par|por|door|av|af|oleh"
    r"|verfasst von|geschrieben von|ein (?:beitrag|artikel|gastbeitrag|interview|kommentar) von"
    r"|autorin\s?/\s?autor|autor\s?/\s?autorin)(?:\s*:\s*|\s+)"
    r"|(?:autor(?:in|en|a|:in)?|author|auteure?|autore|tác giả|bài và ảnh|bài|text|texte|interview|автор|penulis)\s*:\s*"
    r"|(?:责任编辑|责编|编辑|作者|记者|記者|著者|文|كتبت?|بقلم|تحرير|लेखक|מאת|نویسنده|به قلم|خبرنگار|yazan|haber|muhabir"
    r"|รายงานโดย|โดย|автори?|текст)\s*[:：]\s*|(?:โดย|بقلم|מאת)\s+)(?=[^\W\d_])"
    r"|^\W{0,3}[가-힣]{2,4}\s?(?:선임기자|기자|특파원)(?=$|[\s=(·])",
    re.I,
)
# A label in an element of its own; the name follows in the next one.
_LABEL = re.compile(
    r"^\W{0,3}(?:autor(?:in|en|:in|\*in|in\s?/\s?autor)?|author|(?:written |posted )?by|von|text|verfasser(?:in)?|tác giả|auteur|par|autore"
    r"|写真・文|文|作者|记者)\s*:?\s*$",
    re.I,
)
_EAST = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3]{2,8}$")
_OWN = re.compile(
    r"(?<!comment-)(?<!related-)(?<!license-)(?<!photo-)(?<!image-)(?:author|byline|autor)(?!-?(?:bio|box|about|info|desc))(?!.*(?:comment|related|sidebar"
    r"|widget))",
    re.I,
)
_FOREIGN_TAGS = ("footer", "aside", "nav", "figure", "figcaption", "blockquote")
_MARKED_FOREIGN_TAGS = tuple(tag for tag in _FOREIGN_TAGS if tag != "nav")  # a byline may be a row of links
# A date and the name behind it in one line; elements set apart by style alone leave nothing between them.
_DATED = re.compile(
    r"^(?:[^\W\d_]{2,10}(?: [^\W\d_]{2,6})?,\s*)?(?:\d{1,2}\.\d{1,2}\.\d{4}|\d{1,2}/\d{1,2}/\d{4})[\s,|–-]*"
    r"(?:\d{1,2}:\d{2}(?::\d{2})?(?: Uhr| ?\(?(?:GMT|UTC) ?[+-]\d{1,2}\)?)?[\s,|–-]*)?(?:von\s+)?"
    r"(?P<name>[^\W\d_][^\d|]{4,60})$",
    re.I,
)
# An account or a given name, in a line that has a date as well.
_USER = re.compile(
    r"(?:^|[\s|])(?:by|von|par|(?:autor(?:in)?|author|verfasst von|erstellt von|posted by)\s*:)\s+([^\W\d_][\w.-]{1,20})"
    r"(?=\s*(?:$|[|—–@]|- |(?:on|am|um|under|at) (?:\w{3,10},?\.? )?\d|in rubrik\b))",
    re.I,
)
# Where a blog is often called as its owner is.
_BLOGS = re.compile(
    r"\.(?:wordpress\.com|blogspot\.\w|tumblr\.com|substack\.com|over-blog\.com|typepad\.com|livejournal\.com)"
)
_HAS_DAY = re.compile(r"\b(?:19|20)\d\d\b")
_AUTHOR_PAGE = re.compile(r"/(?:authors?|autor(?:en|es)?|auteurs?|tac-gia)/[^/?#]+/?$")
_VCARD = re.compile(r"\b(?:vcard|fn)(?:\s|$)")
_META = re.compile(r"meta|info|byline|credit|sign", re.I)
_LAST_LINE = re.compile(r"text-align:\s*right|text-right|align-?right", re.I)
_CLASSES = (
    "author", "Author", "byline", "Byline", "autor", "Autor", "writer", "journalist", "tacgia", "tac-gia",
    "redakteur", "auteur", "contributor", "creator", "signature", "verfasser", "reporter", "AUTHOR",
)  # fmt: skip
_NAME_CSS = (
    '[class*="name"],[rel~="author"],[itemprop~="name"],'
    'a[href*="author"],a[href*="autor"],a[href*="/profile"],a[href*="tac-gia"]'
)


Found = tuple[list[str], str]  # names, origin
Named = tuple[list[str], str, float]  # names, origin, trust
# Blocks of a page that are read for a byline; a long menu alone may have 500.
_MAX_BLOCKS = 1500
_FULL_STOP = '.!?…”"»'
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
    return FieldValue([])


def _set(names: list[str]) -> frozenset[str]:
    return frozenset(map(authors.key, names))


def _states_another(named: witnesses.Witnesses, sites: list[str]) -> bool:
    """JSON-LD names an author that is not the site itself; a template's own name says nothing about who wrote."""
    own = {authors.key(site).replace(" ", "") for site in sites}
    return any(authors.key(person.name).replace(" ", "") not in own for person in named.persons)


def _fuller(stated: list[str], meta: Found | None, visible: Named | None) -> FieldValue | None:
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
        values = [v for v in doc.meta.get(name, ()) if not v.startswith(("http://", "https://"))]
        found = authors.clean(values, context.site_name, sites)
        if found and name == "twitter:data1" and len(found[0].split()) < 2:
            continue
        if found:
            return found, f"meta:{name}"
    return None


def visible_names(doc: Document, context: PageContext, sites: list[str] | None = None) -> Iterator[Named]:
    """What a reader sees, best place first; lazy, as the last one reads the whole page. ``sites``: the site's names."""
    sites = title.site_names(doc, context.site_name) if sites is None else sites
    for source in (_from_marked, _from_classes, _from_names, _from_text):
        yield from source(doc, context, sites)


def _from_marked(doc: Document, context: PageContext, sites: list[str]) -> Iterator[Named]:
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
            if foreign(node, _FOREIGN, parts, _MARKED_FOREIGN_TAGS, _OWN):
                continue
            around = _around(node)
            if near and not near & around:
                continue  # another article's
            near |= around
            inner = node.css('[itemprop~="name"]')
            for one in inner[:6] or [node]:
                raw.append(one.attributes.get("content") or _visible(one))
                _note(doc, raw[-1])
        names = authors.clean(raw, context.site_name, sites, nicknames=True)
        if names:
            yield names, origin, trust


def _note(doc: Document, text: str) -> None:
    """For extraction.credits: what stands where authors stand, whether it names people or not."""
    if 2 <= len(text) <= 80:
        witnesses.of(doc).bylines.append(text)


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


def _from_classes(doc: Document, context: PageContext, sites: list[str]) -> Iterator[Named]:
    """Nodes whose class or id names an author, first in the page first."""
    parts = regions.of(doc)
    css = "h1," + ",".join(f'[class*="{w}"],[id*="{w}"]' for w in _CLASSES)
    below_headline = False
    early: Named | None = None  # above the headline: perhaps another article's
    for node in doc.tree.css(css)[:80]:
        if node.tag == "h1":
            below_headline = True
            continue
        if node.tag in ("body", "html", "main", "article", "form", "img", "nav", "footer") or node.first_child is None:
            continue
        if foreign(node, _FOREIGN, parts, _FOREIGN_TAGS, _OWN):
            continue
        text = _visible(node)
        if not text or len(text) > 300:
            continue
        _note(doc, text)
        inner = [t for n in node.css(_NAME_CSS)[:8] if not _is_crumb(n) and (t := _visible(n))]
        names = authors.clean(inner, context.site_name, sites, nicknames=True) if inner else []
        names = (
            [n for n in names if len(n.split()) > 1]
            or (names[:1] if _VCARD.search(node.attributes.get("class") or "") or _links_author(node) else [])
            or (authors.clean([text], context.site_name, sites) if len(text) <= 160 and not _is_trail(node) else [])
        )
        if not names or (all(len(n.split()) == 1 for n in names) and (len(names) > 1 or not inner)):
            continue
        found = names, "byline", 0.78 if len(text) < 120 else 0.65
        if below_headline:
            yield found
        elif early is None:
            early = found
    if early is not None:
        yield early


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


def _from_names(doc: Document, context: PageContext, sites: list[str]) -> Iterator[Named]:
    """A node classed "name" in the line of date and author."""
    parts = regions.of(doc)
    for node in doc.tree.css('[class~="name"]')[:20]:
        parent = node.parent
        around = (parent.attributes.get("class") or "") if parent is not None else ""
        if not _META.search(around) or foreign(node, _FOREIGN, parts, _FOREIGN_TAGS, _OWN):
            continue
        names = [n for n in authors.clean([_visible(node)], context.site_name, sites) if len(n.split()) > 1]
        if names:
            yield names, "byline", 0.72


def _from_text(doc: Document, context: PageContext, sites: list[str]) -> Iterator[Named]:
    """A short block or line that begins with "By", "Von", "Tác giả:" ..., or the name that closes an article."""
    body = doc.tree.body
    if body is None:
        return
    parts = regions.of(doc)
    closing: list[str] | None = None
    user: list[str] | None = None  # an account's name: the text may name its writer better
    label: Block | None = None
    since, vietnamese = 9, False  # blocks since running text, lists of links apart; whether it is Vietnamese
    beside: int | None = None  # the element that holds the closing line
    for order, block in enumerate(walk(body)):
        if order > _MAX_BLOCKS:
            break
        if (
            label is not None
            and len(block.text) <= 80
            and not foreign(block.node, _FOREIGN, parts, _FOREIGN_TAGS, _OWN)
        ):
            names = [n for n in authors.clean([block.text], context.site_name, sites) if len(n.split()) > 1]
            if names:
                yield names, "byline:text", 0.7
                return
        label = block if len(block.text) <= 20 and _LABEL.match(block.text) else None
        if len(block.text) <= 200:
            for line in block.text.split("\n"):
                dated = _DATED.match(line)
                account = _USER.search(line) if len(line) < 200 and _HAS_DAY.search(line) else None
                if not (dated or account or (len(line) <= 140 and _BYLINE_START.match(line))):
                    continue
                if foreign(block.node, _FOREIGN, parts, _FOREIGN_TAGS, _OWN):
                    break
                begins = dated or _BYLINE_START.match(line)
                names = authors.clean([dated["name"] if dated else line], context.site_name, sites) if begins else []
                names = [n for n in names if (len(n.split()) > 1 or _EAST.match(n)) and not n.islower()]
                if not names and user is None and account is not None:
                    own = [] if _BLOGS.search(doc.url) else sites
                    user = authors.clean([account[1]], context.site_name, own, nicknames=True) or None
                if names:
                    yield names, "byline:text", 0.7
                    return
                if begins and len(line) <= 60:
                    _note(doc, line)
            if since < 3 and (_closes(block) or (vietnamese and _is_bare_name(block))):
                names = authors.clean([block.text], context.site_name, sites)
                whole = bool(names) and all(2 <= len(n.split()) <= 5 for n in names)
                if whole and not foreign(block.node, _FOREIGN, parts, _FOREIGN_TAGS, _OWN):
                    closing, beside = names, block.holder
        runs = len(block.text) > 120 or (len(block.text) > 60 and block.text[-1] in _FULL_STOP and not block.link_chars)
        if closing and runs and block.node.tag == "p" and (len(block.text) > 200 or block.holder == beside):
            closing = None  # the text goes on: it was a sub-heading
        if runs:
            since, vietnamese = 0, is_vietnamese(block.text)
        elif block.link_chars < 0.5 * len(block.text):
            since += 1
    if closing:
        yield closing, "byline:end", 0.66
    elif user:
        yield user, "byline:text", 0.7


def _closes(block: Block) -> bool:
    """Set like a signature: bold, italic or to the right, not a heading."""
    if block.tag.startswith("h") or len(block.text) > 80 or block.text[-1] in ".?!:":
        return False
    style = " ".join(
        (n.attributes.get("style") or "") + (n.attributes.get("class") or "")
        for n in (block.node, block.node.parent)
        if n is not None
    )
    if block.bold_chars >= 0.8 * len(block.text) or _LAST_LINE.search(style) or "author" in style:
        return True
    return any(len(e.text(deep=True).strip()) >= 0.8 * len(block.text) for e in block.node.css("em,i")[:2])


def _is_bare_name(block: Block) -> bool:
    """Nothing but capitalised words, no link, no list: how Vietnamese papers sign whatever the element is called.

    Sub-headings and labels there have a capital in the first word alone; names of places have not.
    """
    if block.tag == "li" or block.tag.startswith("h") or block.link_chars or len(block.text) > 80:
        return False
    names = SIGNED_ROLE.sub("", block.text.partition("/")[0])
    words = [word for word in re.split(r"[\s,&–-]+", names) if word and word != "và"]
    return 2 <= len(words) <= 10 and all(word.isalpha() and word[0].isupper() for word in words)


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
