"""The visible headline: the h1 that the page's own witnesses agree with, site suffix off. Pure."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable

from selectolax.lexbor import LexborNode

from newscrawler.extraction import witnesses
from newscrawler.extraction.document import Document
from newscrawler.extraction.text import clean_line
from newscrawler.items import FieldValue

_SEPARATOR = re.compile(r"\s+[|\-–—·•»«:/~*]+\s+|\s*[|»｜ㅣ]\s*|\s+--\s+|(?<=\S)[：]")
_WORD = re.compile(r"\w+")
_CJK = re.compile(r"[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3]")
_KICKER = re.compile(r"kick|topline|overline|dachzeile|roofline|spitzmarke|eyebrow|supertitle|pretitle|label|rubrik")
# Headings of a page that are never an article's headline.
_NOT_HEADLINE = re.compile(
    r"^(?:home|homepage|news|menu|search|login|sign in|subscribe|newsletter|blog|video|videos|untitled|index"
    r"|trang chủ"
    r"|tin tức|startseite|aktuelles|nachrichten|accueil|inicio|404.*|page not found|not found|error|access denied"
    r"|just a moment.*|attention required.*|are you a robot.*|comments?|kommentare?|related.*|about.*|by .{1,30})$",
    re.IGNORECASE,
)


def clean(raw: str, site_name: str | None = None) -> str:
    """One line, NFC, entities resolved (some sites escape twice), the site's name off its ends."""
    value = html.unescape(html.unescape(raw))
    if "<" in value:
        value = re.sub(r"</?[a-zA-Z][^<>]{0,200}>", "", value)
    value = " ".join(clean_line(value).split())
    if _CJK.search(value[-3:]):
        # Chinese, Japanese and Korean titles carry rubric or site behind a bare hyphen or underscore.
        value = re.sub(r"[-_–|｜][\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3]{2,8}$", "", value)
    return cut_site(value, [site_name] if site_name else [])


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
            value = value[: last.start()].strip()
        elif _is_site(value[: first.start()], keys):
            value = value[first.end() :].strip()
        else:
            return value
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
    names = [
        given,
        doc.meta_first("og:site_name", "application-name", "apple-mobile-web-app-title", "dc.publisher"),
        witnesses.of(doc).publisher,
        host,
        word,
        *(doc.meta.get("twitter:site", [])[:1]),
    ]
    return [n.lstrip("@") for n in names if n]


def find(doc: Document, site_name: str | None = None, hint: str | None = None) -> FieldValue:
    """The headline with its origin; value None when the page has none."""
    names = site_names(doc, site_name)
    said: list[tuple[str, str, float]] = []  # value, origin, trust
    seen = witnesses.of(doc)
    for raw, origin, trust in (
        (seen.headline, "json-ld", 1.0),
        (doc.meta_first("og:title"), "og", 1.0),
        (doc.meta_first("twitter:title", "dc.title", "parsely-title", "sailthru.title", "title"), "meta", 0.7),
        (of_document(doc), "title", 0.8),
        (hint, "feed", 0.8),
    ):
        value = cut_site(clean(raw), names) if raw else ""
        if value and has_shape(value) and _key(value) not in {_key(n) for n in names}:
            said.append((value, origin, trust))
    best: tuple[float, str, str, float] | None = None
    for order, (value, origin) in enumerate(headings(doc, names)):
        agreed = [agreement(value, other) * trust for other, _, trust in said]
        support = max(agreed, default=0.0)
        rank = support + (0.3 if origin != "h2" else 0.0) - 0.01 * order
        if support >= 0.45 and (best is None or rank > best[0]):
            best = (rank, value, origin, min(1.0, 0.55 + 0.2 * sum(a > 0.8 for a in agreed)))
    if best is not None:
        best = (best[0], _without_neighbours(best[1], said), *best[2:])
        return FieldValue(best[1], f"generic:{best[2]}", best[3])
    if said:
        # No visible heading agrees: the statement that the others support most.
        def support_of(item: tuple[str, str, float]) -> float:
            return item[2] + sum(agreement(item[0], o[0]) for o in said if o is not item)

        value, origin, _ = max(said, key=support_of)
        return FieldValue(_short(value, said), origin, 0.6 if len(said) > 1 else 0.45)
    for value, origin in headings(doc, names):
        return FieldValue(value, f"generic:{origin}", 0.35)
    return FieldValue(None)


def _without_neighbours(heading: str, said: list[tuple[str, str, float]]) -> str:
    """A heading that holds a date, rubric or site beside the headline, cut to what a witness calls it."""
    for other, _, _ in said:
        if len(other) < len(heading) and len(other) >= 0.4 * len(heading) and len(tokens(other)) >= 3:
            if heading.endswith(other):
                return other
            # A witness that is only the beginning may be cut by its CMS: what is left must look foreign.
            if heading.startswith(other) and re.match(r"\s*(?:\d|[|•·»–—-]\s)", heading[len(other) :]):
                return other
    return heading


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
            return kicker + (" " if kicker[-1] in ":.!?–-|/" or rest[0] in ":–-|" else ": ") + rest
    return text if len(filled) < 2 else " ".join(p for p, _ in filled) if any(o for _, o in filled) else text


def _in_ruby_reading(node: LexborNode) -> bool:
    parent = node.parent
    return parent is not None and parent.tag in ("rt", "rp")


def headings(doc: Document, names: list[str]) -> list[tuple[str, str]]:
    """h1s, then headline-like nodes, then h2s: ``(text, what it is)``."""
    out: list[tuple[str, str]] = []
    site_keys = {_key(n) for n in names}
    for css, what, limit in (
        ("h1", "h1", 12),
        ('[itemprop="headline"]', "itemprop", 4),
        ('[class*="headline"],[class*="title"]', "class", 12),
        ("h2", "h2", 15),
    ):
        for node in doc.tree.css(css)[:limit]:
            if node.tag in ("meta", "title", "body", "html", "a", "img") and what == "class":
                continue
            if node.tag == "meta":
                value = clean(node.attributes.get("content") or "")
            else:
                value = clean(heading_text(node))
            value = re.sub(r"\s+([,.])(?=\s|$)", r"\1", cut_site(value, names))
            if value and has_shape(value) and _key(value) not in site_keys:
                out.append((value, what))
    return out
