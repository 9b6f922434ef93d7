"""Which elements of a page are not its article, by tag, name or style: boxes, menus, comments, consent. Pure.

General rules only: page builders, content systems and consent tools may be named here, no publisher.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from selectolax.lexbor import LexborNode

from newscrawler.extraction import regions
from newscrawler.extraction.blocks import walk
from newscrawler.extraction.document import Document, words

# Words of class and id that name what is not the article. Whole words or parts cut by - and _ or camelCase.
_CLUTTER = re.compile(
    r"(?:^|[\s_-])(?:comments?|kommentare?|disqus|respond|replies|relate[ds]?|related\w*|\w*related|recommend\w*|empfehl\w*"
    r"|share|sharing|shares|social\w*|"
    r"news-?letter\w*|promo\w*|sidebar|side-bar|rail|footer|foot|nav|navi|navigation|navbar|menu\w*|breadcrumbs?"
    r"|cookies?|consent|banner|"
    r"ad|ads|adv|advert\w*|anzeige\w*|werbung|sponsor\w*|popup|modal|overlay|login|signin|signup|register"
    r"|registration|subscribe|subscription|abo|"
    r"tags?|taglist|keywords|topics|caption|captions|bildunterschrift|credit|credits|copyright|byline|dateline"
    r"|timestamp|teaser\w*|"
    r"widget\w*|most-?read|popular|trending|latest|more-?news|more-?stories|read-?more|readmore|readnext"
    r"|next-?prev|outbrain|taboola|"
    r"disclaimer|hidden|hide|visually-?hidden|sr-only|screen-reader-text|print-only|skip-?link|tooltip\w*|rollover[\w-]*block|popover\w*|hover-?card|ticker"
    r"|pagination|pager|paging|"
    r"rating|poll|quiz|vote|survey|toolbar|tools|buttons?|btn|icons?|carousel|slider|slideshow|gallery"
    r"|video-?player|audio-?player|player|"
    r"author-?(?:box|bio|info|card|about|text|desc(?:ription)?|details|profile)|sabox\w*|m-a-box\S*|abh-?box|starbox|ts-fab-\S*|pp-multiple-authors\S*|box-?author\w*|box-?tac-?gia|about-?author|bio|biography|meta|metadata|post-?meta|entry-?meta"
    r"|article-?meta|info-?box|"
    r"binh-?luan|lien-?quan|tin-?lien-?quan|tin-?khac|quang-?cao|relatednews\w*|box-?tin\w*|note-?box|box-?(?:game|note|news|quiz)|mini-?game|stock-?(?:box|info|ticker)|insert-?neww?s?|chi-?so-?chung-?khoan|chu-?thich\w*|ad(?:m|s|v)?-?zone\w*|toc|table-of-contents"
    r"|feedback|"
    r"search|suche|app-?download|donate|donation|spenden|paywall|legal|impressum|jump-?to|figcaption|sticky"
    r"|jp-relatedposts|sharedaddy|"
    r"wp-caption-text|nextpost|prevpost|post-nav\w*|similar|further|also-?read|see-?also|inline-?related|embed"
    r"|disclosures?|reviewed|vcard"
    r"|aside|supplement\w*|"
    r"list-?item-?link|follow-?us|follow|whatsapp|facebook|twitter|telegram|contact-?form|form"
    r"|language-?switch\w*|notification\w*)(?:$|[\s_-])",
    re.I,
)
_CLUTTER_PARAGRAPH = re.compile(
    r"(?:^|[\s_-])(?:\w*caption\w*|credits?|byline|dateline|timestamp|copyright|comments?|share|sharing|social|tags?"
    r"|autor(?:in)?|autorname|tac-?gia|chu-?thich\w*|date|disclaimer|newsletter\w*|promo\w*|"
    r"read-?more|readmore|related\w*|advert\w*|author|bio|hidden|sr-only|screen-reader-text|nav|menu|breadcrumbs?"
    r"|follow|subscribe|also-?read|"
    r"source|teaser-?(?:title|text)|postdate|post-?meta(?:data)?|ads?|wp-caption-text)(?:$|[\s_-])",
    re.I,
)
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
# What a build tool made of a name ("n1AuAdJlVL", "kfEGwZ"): pieces of one or two characters among three or more.
_TOKEN = re.compile(r"(?<!\w)[A-Za-z0-9]{5,12}(?!\w)")
_HASH_PIECES = re.compile(r"[a-z0-9]*(?:[A-Z][a-z0-9]*){2,}")
_SHORT_PIECE = re.compile(r"[A-Z][a-z0-9]?(?![a-z0-9])")
# Boxes that an article is built of.
_PART_OF_TEXT = re.compile(
    r"(?<!\S)(?:article|content|story|text|body)[-_]?widgets?(?:[-_](?:text|content|body)\w*)?(?!\S)", re.I
)
_OWN_TAG = re.compile(r"<([a-zA-Z][a-zA-Z0-9]{0,20}(?:-[a-zA-Z0-9]{1,20}){1,4})[\s>/]")
_MAX_OWN = 20
# Longer lists of names style a page, they name nothing.
_MOST_NAMES = 300
# Says how a box looks or what made it, not what it is: hidden on one kind of screen, label hidden, text cut off;
# the words of a page builder; what a post is filed under (a post about forms is no form).
_STYLING = re.compile(
    r"(?<!\S)(?:\S*overflow-\S+|\S*label-{1,2}(?:visually[-_])?hidden|hidden-(?:x[sl]|sm|md|lg|print|phone|mobile|tablet|desktop)(?:-\w+)?"
    r")(?!\S)|elementor-(?:widget-(?:container|wrap)\b|widget\b)",
    re.I,
)
_POST = re.compile(r"(?<!\S)(?:hentry|type-post|status-publish)(?!\S)")
_FILED = re.compile(r"(?<!\S)(?:tag|category|post_tag|topic|author|format)-\S+")
# An address as an id, a heading's anchor: no names.
_NO_NAME = re.compile(r"\S*(?:://|%[0-9a-f]{2})\S*|(?<!\S)toc[-_](?:title|section|heading)\S*", re.I)
# Consent tools and comments: not the article even where they hold most of the page's text.
_FOREIGN = re.compile(
    r"onetrust|(?<![a-z])ot-sdk-|cookie-?(?:banner|notice|consent|law|box|bar|popup|pref\w*|settings|modal|overlay|layer|manager)"
    r"|borlabs|cookiebot|didomi|usercentrics|dsgvo|gdpr|qc-cmp|cmp-?(?:box|container|wrapper|modal)|fc-consent|truste[-_]"
    r"|iubenda|(?<![a-z])cc-window|cookieyes|(?<![a-z])cky-|cmplz|complianz|osano|klaro|tarteaucitron|consent-?(?:banner|manager|modal|popup|layer)"
    r"|privacy-?(?:popup|banner|manager|modal)|update-browser|browser-?(?:update|upgrade|warning)"
    r"|(?:^|[\s_-])(?:(?<!no-)(?<!has-)comments(?!-(?:open|closed|off|on|enabled|disabled|count|link))|(?<!\S)comment(?!\S)|commentlist\w*|comment(?:link|er|body|section|area)\w*"
    r"|kommentare?|disqus\w*|(?<![\w-])sidebar(?![\w-])|fb-comments|binh-?luan|forum)(?:$|[\s_-])",
    re.I,
)
# Inside a line: what is shown to nobody, or only when it is pointed at.
_UNSEEN = re.compile(
    r"(?:^|[\s_-])(?:sr-only|screen-reader(?:-text)?|visually-?hidden|visuallyhidden|assistive-text|tooltip\w*|rollover[\w-]*block|popover\w*"
    r"|hover-?card)(?:$|[\s_-])",
    re.I,
)
_INLINE = words("span sup small label")
# So many characters of paragraphs must stand outside such elements.
_LEAST_ELSE = 200
_TEXT_TAGS = words("p h2 h3 h4 blockquote tr td th")
_SKIPPED_TAGS = words("nav footer aside form figure figcaption header dialog menu")
_NEVER_TEXT = words("figure figcaption nav menu dialog footer")
_HIDDEN_STYLE = re.compile(r"display:\s*none|visibility:\s*hidden", re.I)
# Shorter paragraphs do not tell where the text is.
_PARAGRAPH_CHARS = 60
# An element that holds this share of the page's paragraphs is the text, whatever it is called.
_MOST = 0.35


def find(doc: Document) -> tuple[set[int], set[int], set[int]]:
    """``(clutter, foreign, unseen)``: ``mem_id`` of the elements that are not article by tag, name or style, without those that
    hold most of the text; of consent tools and comments, which are clutter whatever they hold; of parts of a line that are not shown."""
    body = doc.tree.body
    if body is None:
        return set(), set(), set()
    suspects, foreign = _suspects(doc, body)
    mass, total = _mass(body)
    headline = _above_headline(doc)
    apart = {n.mem_id for n in foreign if n.mem_id not in headline}
    if apart and total - _outermost(foreign, apart, mass) < _LEAST_ELSE:
        apart = set()
    skip = {node.mem_id for node in suspects if node.tag in _NEVER_TEXT or mass.get(node.mem_id, 0) < _MOST * total}
    unseen = {n.mem_id for n in suspects if n.tag in _INLINE and n.mem_id in skip and _is_unseen(n)}
    return skip | apart, apart, unseen


def _above_headline(doc: Document) -> set[int]:
    """The elements that hold the page's headline."""
    first = regions.of(doc).first
    node = next((h for h in doc.tree.css("h1,h2") if h.mem_id == first), None) if first is not None else None
    ids: set[int] = set()
    while node is not None:
        ids.add(node.mem_id)
        node = node.parent
    return ids


def _is_unseen(node: LexborNode) -> bool:
    attributes = node.attributes
    if "hidden" in attributes or _HIDDEN_STYLE.search(attributes.get("style") or ""):
        return True
    return bool(_UNSEEN.search(attributes.get("class") or ""))


def _suspects(doc: Document, body: LexborNode) -> tuple[list[LexborNode], list[LexborNode]]:
    cache: dict[tuple[bool, str], tuple[bool, bool]] = {}
    suspects: list[LexborNode] = []
    foreign: list[LexborNode] = []
    for node in body.css(
        "[class],[id],div[type],nav,footer,aside,form,figure,figcaption,header,dialog,menu,[hidden],[style]"
    ):
        tag = node.tag
        if tag in ("body", "main", "article", "html"):
            continue
        if tag in _SKIPPED_TAGS and not (tag == "figure" and _is_quotation(node)):
            suspects.append(node)
        attributes = node.attributes
        names = f"{attributes.get('class') or ''} {attributes.get('id') or ''} {attributes.get('type') or ''}"
        # A paragraph is text unless its name says caption, credit ...; "teaser" or "widget" on it is styling.
        is_text = tag in _TEXT_TAGS
        answer = cache.get((is_text, names))
        if answer is None:
            answer = cache[is_text, names] = _judged(is_text, names)
        if answer[1]:
            foreign.append(node)
        hidden = "hidden" in attributes or ("style" in attributes and _HIDDEN_STYLE.search(attributes["style"] or ""))
        if answer[0] or hidden:
            suspects.append(node)
    # <amp-ad>, <x-inline-teaser>: elements that a site has made and named.
    own = [tag for tag in dict.fromkeys(m[1].lower() for m in _OWN_TAG.finditer(doc.text_html)) if _CLUTTER.search(tag)]
    if own:
        suspects.extend(body.css(",".join(own[:_MAX_OWN])))
    return suspects, foreign


def _is_quotation(figure: LexborNode) -> bool:
    """A figure that holds no picture but a text of several sentences; its figcaption says whose."""
    quoted = figure.css_first("blockquote")
    return quoted is not None and figure.css_first("img") is None and len(quoted.text(deep=True)) > _LEAST_ELSE


def _judged(is_text: bool, names: str) -> tuple[bool, bool]:
    """Whether an element's names say clutter, and foreign."""
    if len(names) >= _MOST_NAMES or not names.strip():
        return False, False
    if "/" in names or "%" in names or "toc" in names.lower():
        names = _NO_NAME.sub("", names)
    if "-" in names:
        names = _STYLING.sub(" ", _FILED.sub("", names) if _POST.search(names) else names)
    if not names.islower():
        names = _CAMEL.sub("-", _TOKEN.sub(_without_hash, names))
    names = _PART_OF_TEXT.sub("", names)
    pattern = _CLUTTER_PARAGRAPH if is_text else _CLUTTER
    return bool(pattern.search(names)), not is_text and bool(_FOREIGN.search(names))


def _mass(body: LexborNode) -> tuple[dict[int, int], int]:
    """Characters of paragraphs below each element, and of all; pages without paragraphs: of all text that is not linked."""
    found: Iterable[tuple[LexborNode, int]] = [
        (p, n) for p in body.css("p") if (n := len(p.text(deep=True))) > _PARAGRAPH_CHARS
    ]
    total = sum(n for _, n in found)
    if total < _LEAST_ELSE:
        found = [(b.node, n) for b in walk(body) if (n := len(b.text)) > _PARAGRAPH_CHARS and 2 * b.link_chars < n]
        total = sum(n for _, n in found)
    mass: dict[int, int] = {}
    for node, length in found:
        one: LexborNode | None = node
        while one is not None and one.tag != "html":
            ident = one.mem_id
            mass[ident] = mass.get(ident, 0) + length
            one = one.parent
    return mass, total


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
