"""The visible headline: the h1 that the page's own witnesses agree with, site suffix off. Pure."""

from __future__ import annotations

import html
import re
from collections import deque
from collections.abc import Iterable
from itertools import pairwise

from selectolax.lexbor import LexborNode

from newscrawler.extraction import witnesses
from newscrawler.extraction.blocks import walk
from newscrawler.extraction.document import Document
from newscrawler.extraction.text import one_line
from newscrawler.items import FieldValue

_SEPARATOR = re.compile(r"\s+[|\-–—·•»«:/~*]+\s+|\s*[|»｜ㅣ]\s*|\s+--\s+|(?<=\S)[：]")
_WORD = re.compile(r"\w+")
_CJK = re.compile(r"[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3]")
# Full-width signs bring their own space: what stands beside them comes from elements of their own.
_FULL_WIDTH = re.compile(r" ?([：；，。！？、（）「」『』【】])(?: (?![|–—-]))?")
_KICKER = re.compile(r"kick|topline|overline|dachzeile|roofline|spitzmarke|eyebrow|supertitle|pretitle|label|rubrik")
# The last step of a breadcrumb is often an h1 with a title for search engines; the headline stands below it.
_CRUMB = re.compile(r"bread-?(?:crumb|bar)", re.IGNORECASE)
_CRUMB_LEVELS = 6
#: Words that a heading without any witness needs to be believed over statements that name something else.
_LONE_WORDS = 4
# Words of what a site says of itself behind its name.
_SLOGAN_WORDS = 5
# A title of so little confidence is held against the heading above the text, looked for in so many blocks.
_WEAK = 0.45
_ABOVE = 8
_BEGIN = 60
# A date, a clock or a sign that parts: not the article's own words ("... of 19/10 at the border").
_BEHIND_TITLE = re.compile(
    r"\s*(?:\d{1,2}[./-]\d{1,2}[./-]\d{2,4}|\d{4}[./-]\d{1,2}[./-]\d{1,2}|\d{1,2}[:h.]\d{2}(?!\d)"
    r"|\d{1,2}\.?\s\w{3,9}\.?\s\d{4}|[|•·»–—-]\s)"
)
_HEADLINE_CLASS = re.compile(r"head-?line|tieu-?_?de|(?:^|[\s_-])title", re.IGNORECASE)
HEADLINE_CSS = ",".join(
    f'[class*="{word}"]' for word in ("headline", "title", "titul", "titel", "titre", "tieude", "tieu-de")
)
# Headings of a page that are never an article's headline.
_NOT_HEADLINE = re.compile(
    r"^(?:home|homepage|news|menu|search|login|sign in|subscribe|newsletter|blog|video|videos|untitled|index"
    r"|trang chủ"
    r"|tin tức|startseite|aktuelles|nachrichten|accueil|inicio"
    r"|404(?:\W*|\s*[-–—|:].*|\s(?:error|not|page|lỗi|không|trang|seite|fehler|página)\b.*)"
    r"|page not found|not found|error|access denied"
    r"|just a moment.*|attention required.*|are you a robot.*|comments?|kommentare?|related.*|about.*|by .{1,30})$",
    re.IGNORECASE,
)


def clean(raw: str, site_name: str | None = None) -> str:
    """One line, NFC, entities resolved (some sites escape twice), the site's name off its ends."""
    value = html.unescape(html.unescape(raw))
    if "<" in value:
        value = re.sub(r"</?[a-zA-Z][^<>]{0,200}>", "", value)
    value = _FULL_WIDTH.sub(r"\1", _without_cjk_rubric(one_line(value)))
    return cut_site(value, [site_name] if site_name else [])


def _without_cjk_rubric(value: str) -> str:
    """Chinese, Japanese and Korean titles carry rubric or site behind a bare hyphen or underscore."""
    if not _CJK.search(value[-3:]):
        return value
    value = re.sub(r"[-_–|｜][\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3]{2,8}$", "", value)
    return re.sub(r"_[\u3400-\u9fff]{2,8}$", "", value)  # "headline_channel_site"


def has_shape(value: str, site_name: str | None = None) -> bool:
    if not 4 <= len(value) <= 400 and not (_CJK.search(value) and 2 <= len(value) <= 400):
        return False
    if site_name and value.casefold() == site_name.casefold():
        return False
    return not _NOT_HEADLINE.match(value)


def cut_site(value: str, names: Iterable[str]) -> str:
    """Without outer parts that are one of ``names`` (a site, its domain's word)."""
    keys = {_key(n) for n in names if n}
    keys.discard("")
    for _ in range(3):
        parts = list(_SEPARATOR.finditer(value))
        if not parts or not keys:
            return value
        last, first = parts[-1], parts[0]
        if _is_site(value[last.end() :], keys):
            value = _without_cjk_rubric(value[: last.start()].strip())
        elif _is_site(value[: first.start()], keys):
            value = value[first.end() :].strip()
        else:
            return _before_site(value, parts, keys)
    return value


def _before_site(value: str, parts: list[re.Match[str]], keys: set[str]) -> str:
    """A headline that the site's name follows and its slogan behind that, of five words at most."""
    for left, right in pairwise(parts):
        head, tail = value[: left.start()].strip(), value[left.end() :]
        name = value[left.end() : right.start()]
        if _key(name) and _is_site(name, keys):
            return head if len(tail.split()) <= _SLOGAN_WORDS + 2 and len(head) > len(tail) else value
    return value


def _key(text: str) -> str:
    return re.sub(r"[\W_]+", "", text.casefold())


def _is_site(part: str, keys: set[str]) -> bool:
    key = _key(part)
    if not key:
        return True
    return any(
        key == k
        or (len(k) > 3 and (key.startswith(k) or key.endswith(k)) and len(key) <= len(k) + 14)
        or (len(key) > 3 and len(key) >= 0.5 * len(k) and (k.startswith(key) or k.endswith(key)))
        for k in keys
    )


def tokens(text: str) -> list[str]:
    out: list[str] = []
    for word in _WORD.findall(text.casefold()):
        out.extend(word if _CJK.search(word) else (word,))
    return out


def agreement(a: str, b: str) -> float:
    """0..1: F1 over word sets; a headline inside a longer one counts as 0.9 at least."""
    x, y = set(tokens(a)), set(tokens(b))
    if not x or not y:
        return 0.0
    both = len(x & y)
    f1 = 2 * both / (len(x) + len(y))
    small = min(len(x), len(y))
    if both == small and small >= 3:
        return max(f1, 0.9)
    return f1


def site_names(doc: Document, given: str | None = None) -> list[str]:
    """What the site calls itself: the caller's name, og:site_name, publisher, the domain and its first word."""
    host = re.sub(r"^https?://(?:www\.)?", "", doc.url).partition("/")[0].partition(":")[0].lower()
    labels = host.split(".")
    word = labels[-2] if len(labels) > 1 else host
    if word in ("com", "co", "org", "net", "gov", "edu", "ac") and len(labels) > 2:
        word = labels[-3]
    stated = [
        doc.meta_first("og:site_name", "application-name", "apple-mobile-web-app-title", "dc.publisher"),
        witnesses.of(doc).publisher,
    ]
    if any(n and len(n.split()) > 5 for n in stated):  # some templates put the headline there
        own = _key(of_document(doc) or "")
        stated = [n for n in stated if n and _key(n) != own]
    names = [given, *stated, host, word, *(doc.meta.get("twitter:site", [])[:1])]
    return [n.lstrip("@") for n in names if n]


def find(doc: Document, site_name: str | None = None, hint: str | None = None) -> FieldValue:
    """The headline with its origin; value None when the page has none."""
    names = site_names(doc, site_name)
    names += home_links(doc)
    said = statements(doc, names, hint)
    strong = {_key(other) for other, origin, _ in said if origin in ("json-ld", "og")}
    every = {_key(other) for other, _, _ in said}
    seen = headings(doc, names)
    lone = _lone_headline([item for item in seen if ":" not in item[1]])
    whole = ""
    best: tuple[float, str, str, float] | None = None
    for order, (value, origin) in enumerate(seen):
        origin, _, kind = origin.partition(":")
        whole = whole if kind == "part" else _key(value)
        if (kind == "part" and whole in every) or (kind == "crumb" and strong != {_key(value)}):
            continue  # the breadcrumb's title counts where every strong statement says the same
        agreed = [agreement(value, other) * trust for other, _, trust in said]
        support = max(agreed, default=0.0)
        rank = support + (0.3 if origin != "h2" else 0.0) - 0.01 * order
        if origin == "class" and best is None and lone is not None:
            continue  # the page's only h1 is a headline that no statement knows: what one knows is a teaser
        if support >= 0.45 and (best is None or rank > best[0]):
            best = (rank, value, origin, min(1.0, 0.55 + 0.2 * sum(a > 0.8 for a in agreed)))
    if best is not None:
        value = _without_neighbours(best[1], said, names)
        return FieldValue(_with_kicker(value, said, doc), f"generic:{best[2]}", best[3])
    seen = [item for item in seen if ":" not in item[1]] or seen
    if said and lone is None:
        # No visible heading agrees: the statement that the others support most.
        def support_of(item: tuple[str, str, float]) -> float:
            return item[2] + sum(agreement(item[0], o[0]) for o in said if o is not item)

        value, origin, _ = max(said, key=support_of)
        return FieldValue(_short(value, said), origin, 0.6 if len(said) > 1 else 0.45)
    if lone is not None or seen:
        value, origin = lone or seen[0]
        return FieldValue(value, f"generic:{origin.partition(':')[0]}", 0.4 if lone and said else 0.35)
    return FieldValue(None)


def above_text(doc: Document, content: str, found: FieldValue, site_name: str | None = None) -> FieldValue:
    """For a title that nothing confirms: the heading that stands right above the text, whatever the page is called.

    Templates without a headline's mark, whose every page has the site's or the section's name as its title.
    """
    if found.confidence > _WEAK or doc.tree.body is None:
        return found
    begin = content[:_BEGIN]
    best: tuple[int, str] | None = None  # level, text: the nearest of the highest level
    above: deque[tuple[int, str]] = deque(maxlen=_ABOVE)
    for block in walk(doc.tree.body):
        if block.text[:_BEGIN] == begin:
            break
        level = int(block.tag[1]) if block.tag[0] == "h" and block.tag[1:].isdigit() else 9
        marked = (
            level == 9 and len(block.text) < 300 and _HEADLINE_CLASS.search(block.node.attributes.get("class") or "")
        )
        above.append((1 if marked else level, block.text))
    else:
        return found
    names = site_names(doc, site_name)
    for level, text in above:
        value = cut_site(clean(text), names)
        if level == 9 or not has_shape(value, site_name) or len(tokens(value)) < _LONE_WORDS:
            continue
        if found.value and _key(value) == _key(found.value):
            return found
        if best is None or level <= best[0]:
            best = level, value
    return found if best is None else FieldValue(best[1], "generic:above", 0.4)


def statements(doc: Document, names: list[str], hint: str | None = None) -> list[tuple[str, str, float]]:
    """What machine places call the page: ``(value, origin, trust)``; ``names`` of the site are cut off."""
    out: list[tuple[str, str, float]] = []
    site_keys = {_key(n) for n in names}
    for raw, origin, trust in (
        (witnesses.of(doc).headline, "json-ld", 1.0),
        (doc.meta_first("og:title"), "og", 1.0),
        (doc.meta_first("headline"), "itemprop", 0.8),
        (doc.meta_first("twitter:title", "title"), "meta", 0.7),
        (doc.meta_first("dc.title", "parsely-title", "sailthru.title"), "meta", 0.7),
        (of_document(doc), "title", 0.8),
        (hint, "feed", 0.8),
    ):
        value = cut_site(clean(raw), names) if raw else ""
        if value and has_shape(value) and _key(value) not in site_keys:
            out.append((value, origin, trust))
    return out


def _lone_headline(seen: list[tuple[str, str]]) -> tuple[str, str] | None:
    """The only h1 of a page when it reads like a headline: believed although no statement agrees with it.

    Templates whose machine places hold the rubric, the shop or an older headline.
    """
    first = [item for item in seen if item[1] == "h1"]
    return first[0] if len(first) == 1 and len(tokens(first[0][0])) >= _LONE_WORDS else None


def _without_neighbours(heading: str, said: list[tuple[str, str, float]], names: list[str]) -> str:
    """A heading that holds a date, rubric or site beside the headline, cut to what a witness calls it."""
    site_keys = {_key(n) for n in names} - {""}
    for other, _, _ in said:
        if ": " in other and ": " not in heading and _key(other) == _key(heading):
            return other  # two lines on the page, set apart where there are no lines
        if len(other) < len(heading) and len(other) >= 0.4 * len(heading) and len(tokens(other)) >= 3:
            if heading.endswith(other):
                return other
            # A witness that is only the beginning may be cut by its CMS: what is left must look foreign.
            rest = heading[len(other) :]
            if heading.startswith(other) and (_BEHIND_TITLE.match(rest) or _is_site(rest, site_keys)):
                return other
    return heading


def _with_kicker(heading: str, said: list[tuple[str, str, float]], doc: Document) -> str:
    """The kicker from an element of its own above the heading, when both strong statements put it before it."""
    strong = [other for other, origin, _ in said if origin in ("json-ld", "og")]
    if len(strong) < 2 or len({_key(other) for other in strong}) > 1 or doc.tree.body is None:
        return heading
    kicker, _, rest = strong[0].partition(": ")
    if _key(rest) != _key(heading) or not kicker:
        return heading
    return strong[0] if kicker in doc.tree.body.text(deep=True, separator=" ") else heading


def _short(value: str, said: list[tuple[str, str, float]]) -> str:
    """Of a statement and its own beginning (the others' suffixes cut) the shorter one."""
    for other, _, _ in said:
        if other != value and len(other) >= 12 and value.startswith(other) and _SEPARATOR.match(value, len(other)):
            value = other
    return value


def of_document(doc: Document) -> str | None:
    node = doc.tree.css_first("head > title") or doc.tree.css_first("title")
    return node.text(deep=True) if node is not None else None


def heading_text(node: LexborNode) -> str:
    """Text of a heading; a kicker in an element of its own is set off by a colon, ruby readings are left out."""
    return heading_pieces(node)[0]


def heading_pieces(node: LexborNode) -> list[str]:
    """:func:`heading_text`, and behind it the pieces that stand in elements of their own when there are several."""
    parts: list[tuple[str, bool]] = []  # text, starts a new element that looks like a line of its own
    for child in node.iter(include_text=True):
        if child.tag == "-text":
            parts.append((child.text_content or "", False))
        elif child.tag not in ("script", "style", "svg", "button", "noscript") and child.first_child is not None:
            value = "".join(
                t.text_content or "" if t.tag == "-text" else " " if t.tag in ("br", "div", "span", "p") else ""
                for t in child.traverse(include_text=True)
                if not (t.tag == "-text" and _in_ruby_reading(t))
            )
            parts.append((value, child.tag in ("span", "div", "p", "small", "em", "strong", "b")))
    text = " ".join("".join(p for p, _ in parts).split())
    filled = [(" ".join(p.split()), own) for p, own in parts if p.strip()]
    if len(filled) == 2 and filled[0][1]:
        kicker, rest = filled[0][0], filled[1][0]
        css = " ".join(c.attributes.get("class") or "" for c in node.iter()).lower()
        if len(kicker.split()) <= 6 and len(rest) > len(kicker) and (filled[1][1] or _KICKER.search(css)):
            return [kicker + (" " if kicker[-1] in ":.!?–-|/" or rest[0] in ":–-|" else ": ") + rest, kicker, rest]
    if len(filled) < 2 or not any(own for _, own in filled):
        return [text]
    # A colon in an element of its own, for screen readers, belongs to the piece before it.
    whole = re.sub(r"\s+([:;])(?=\s)", r"\1", " ".join(p for p, _ in filled))
    return [whole, *(p for p, own in filled if own)]


def _in_ruby_reading(node: LexborNode) -> bool:
    parent = node.parent
    return parent is not None and parent.tag in ("rt", "rp")


def home_links(doc: Document) -> list[str]:
    """Texts of h1 and h2 that are nothing but a link to the site's front, or to the folder that the page is in: the
    name of a blog."""
    out = []
    own = doc.url.rpartition("//")[2].partition("?")[0].rstrip("/")
    path = own[len(own.partition("/")[0]) :]
    for node in doc.tree.css("h1,h2")[:4]:
        links = node.css("a[href]")
        if len(links) != 1:
            continue
        # The last "//" counts: an archive keeps the address behind its own.
        _, slashes, rest = (links[0].attributes.get("href") or "").strip().rpartition("//")
        is_front = "/" not in rest.rstrip("/") if slashes else rest == "/"
        is_front = is_front or (len(rest) > 1 and (own if slashes else path).startswith(f"{rest.rstrip('/')}/"))
        text = clean(heading_text(node))
        if is_front and text and _key(text) == _key(clean(links[0].text(deep=True))):
            out.append(text)
    return out


def in_breadcrumb(node: LexborNode) -> bool:
    one: LexborNode | None = node
    for _ in range(_CRUMB_LEVELS):
        if one is None or one.tag in ("article", "main", "body"):
            return False
        attributes = one.attributes
        names = f"{attributes.get('class') or ''} {attributes.get('id') or ''} {attributes.get('itemtype') or ''}"
        if one.tag == "nav" or (len(names) < 300 and _CRUMB.search(names)) or _behind_links(one):
            return True
        one = one.parent
    return False


def _behind_links(node: LexborNode) -> bool:
    """Two links or more stand before it in one row, and nothing else: a trail of sections."""
    links = 0
    before = node.prev
    while before is not None and links < 3:
        if before.tag == "-text":
            if len((before.text_content or "").strip()) > 1:
                return False
        elif before.tag == "a" or (before.tag == "li" and before.css_first("a[href]") is not None):
            links += 1
        elif before.first_child is not None:
            return False
        before = before.prev
    return links > 1


def leads_elsewhere(node: LexborNode, doc: Document) -> bool:
    """A teaser's heading: it stands in a link, or is one, to another page than this."""
    link = node.css_first("a[href]")
    above = node.parent
    for _ in range(3):
        if link is not None or above is None:
            break
        link, above = (above if above.tag == "a" else None), above.parent
    if link is None:
        return False
    href = (link.attributes.get("href") or "").partition("#")[0].partition("?")[0].strip().rstrip("/")
    path = re.sub(r"^(?:https?:)?//[^/]*", "", href)
    if len(path) < 2 or href.startswith(("javascript", "mailto")):
        return False
    return not any(own.partition("?")[0].rstrip("/").endswith(path) for own in (doc.url, doc.canonical) if own)


def headings(doc: Document, names: list[str]) -> list[tuple[str, str]]:
    """h1s, then headline-like nodes, then h2s: ``(text, what it is)``.

    ``h1:crumb`` is the last step of a breadcrumb; ``h1:part`` a piece, in an element of its own, of the one before.
    """
    out: list[tuple[str, str]] = []
    site_keys = {_key(n) for n in names}
    for css, what, limit in (
        ("h1", "h1", 12),
        ('[itemprop="headline"]', "itemprop", 4),
        (HEADLINE_CSS, "class", 12),
        ("h2", "h2", 15),
    ):
        for node in doc.tree.css(css)[:limit]:
            if node.tag in ("meta", "title", "body", "html", "a", "img"):
                continue
            crumb = in_breadcrumb(node)
            if crumb and what != "h1":
                continue
            if what in ("class", "h2") and leads_elsewhere(node, doc):
                continue
            if what == "class" and node.parent is not None and node.parent.tag in ("h1", "h2"):
                continue  # a piece of one that is there anyway
            for piece, text in enumerate(heading_pieces(node)):
                whole = clean(text)
                value = re.sub(r"\s+([,.])(?=\s|$)", r"\1", cut_site(whole, names))
                if piece and len(tokens(value)) < 3:
                    continue
                if value and has_shape(value) and not {_key(value), _key(whole)} & site_keys:
                    out.append((value, f"{what}:crumb" if crumb else f"{what}:part" if piece else what))
    return out
