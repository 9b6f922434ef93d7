"""The visible headline: the h1 that the page's own statements agree with, site suffix off. Pure."""

from __future__ import annotations

import html
import re
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import pairwise

from selectolax.lexbor import LexborNode

from newscrawler.extraction import lexicon, page_metadata
from newscrawler.extraction.blocks import Block, walk
from newscrawler.extraction.document import Document
from newscrawler.extraction.text import one_line
from newscrawler.items import FieldValue
from newscrawler.utils.numbers import is_digits

_SEPARATOR = re.compile(r"(?<!\s)\s++[|\-–—·•»«:/~*]+\s+|(?:(?<!\s)\s++)?[|»｜ㅣ]\s*|(?<=\S)[：]")
_WORD = re.compile(r"\w+")
_CJK = re.compile(r"[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3]")
# Full-width signs bring their own space: what stands beside them comes from elements of their own.
_FULL_WIDTH = re.compile(r" ?([：；，。！？、（）「」『』【】])(?: (?![|–—-]))?")
_KICKER = lexicon.Pattern(r"<class.kicker>", flags=0)
# The last step of a breadcrumb is often an h1 with a title for search engines; the headline
# stands below it.
_CRUMB = lexicon.Pattern(r"<class.breadcrumb>")
_CRUMB_LEVELS = 6
#: Words that a heading that no statement names needs to be believed over statements that name
#: something else.
_LONE_WORDS = 4
# Words of what a site says of itself behind its name.
_SLOGAN_WORDS = 5
# A title of so little confidence is held against the heading above the text, looked
# for in so many blocks.
_WEAK = 0.45
_ABOVE = 8
_BEGIN = 60
_NO_LEVEL = 9  # of a block that is no heading
# How much a statement must agree with a heading to confirm it; and the origins of those that the
# site's own editors read.
_LEAST_SUPPORT = 0.45
_STRONG = ("json-ld", "og")
# A date, a clock or a sign that parts: not the article's own words ("... of 19/10 at the border").
_BEHIND_TITLE = re.compile(
    r"\s*(?:\d{1,2}[./-]\d{1,2}[./-]\d{2,4}|\d{4}[./-]\d{1,2}[./-]\d{1,2}|\d{1,2}[:h.]\d{2}(?!\d)"
    r"|\d{1,2}\.?\s\w{3,9}\.?\s\d{4}|[|•·»–—-]\s)"
)
_HEADLINE_CLASS = lexicon.Pattern(r"<class.headline>|(?:^|[\s_-])title")
HEADLINE_CSS = ",".join(
    f'[class*="{word}"]'
    for word in ("headline", "title", "titul", "titel", "titre", "tieude", "tieu-de")
)
_NO_HEADING_TAGS = ("meta", "title", "body", "html", "a", "img")
_SPACE_BEFORE_COLON = re.compile(r"(?<=\S)\s+:(?=\s)")
# Within a heading: what holds no text of it, and what looks like a line of its own.
_NO_TEXT_TAGS = ("script", "style", "svg", "button", "noscript")
_LINE_TAGS = ("span", "div", "p", "small", "em", "strong", "b")
# Headings of a page that are never an article's headline.
_NOT_HEADLINE = lexicon.Pattern(
    r"^(?:<heading.never>|(?:<heading.never_begins>).*|(?:<heading.by>) .{1,30}"
    r"|404(?:\W*|\s*[-–—|:].*|\s(?:<heading.of_missing>)\b.*))$"
)

Statement = tuple[str, str, float]  # what a machine place calls the page, origin, trust
Heading = tuple[str, str]  # text, what it is


def clean(raw: str, site_name: str | None = None) -> str:
    """One line, NFC, entities resolved (some sites escape twice), the site's name off its ends."""
    value = html.unescape(html.unescape(raw))
    if "<" in value:
        value = re.sub(r"</?[a-zA-Z][^<>]{0,200}>", "", value)
    value = _FULL_WIDTH.sub(r"\1", _without_cjk_rubric(one_line(value)))
    return cut_site(value, [site_name] if site_name else [])


def _without_cjk_rubric(value: str) -> str:
    """Chinese, Japanese and Korean titles carry rubric or site behind a bare
    hyphen or underscore."""
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
            return (
                head if len(tail.split()) <= _SLOGAN_WORDS + 2 and len(head) > len(tail) else value
            )
    return value


def _key(text: str) -> str:
    return re.sub(r"[\W_]+", "", text.casefold())


def _is_site(part: str, keys: set[str]) -> bool:
    """Whether it is nothing, or one of the names with a few letters more or less at one end."""
    key = _key(part)
    return not key or any(_is_name(key, name) for name in keys)


def _is_name(key: str, name: str) -> bool:
    if key == name:
        return True
    if len(name) > 3 and len(key) <= len(name) + 14 and _has_at_end(key, name):
        return True
    return len(key) > 3 and len(key) >= 0.5 * len(name) and _has_at_end(name, key)


def _has_at_end(key: str, part: str) -> bool:
    return key.startswith(part) or key.endswith(part)


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
    """What the site calls itself: the caller's name, og:site_name, publisher, the domain
    and its first word."""
    host = re.sub(r"^https?://(?:www\.)?", "", doc.url).partition("/")[0].partition(":")[0].lower()
    stated = [
        doc.meta_first(
            "og:site_name", "application-name", "apple-mobile-web-app-title", "dc.publisher"
        ),
        page_metadata.of(doc).publisher,
    ]
    if any(n and len(n.split()) > 5 for n in stated):  # some templates put the headline there
        own = _key(of_document(doc) or "")
        stated = [n for n in stated if n and _key(n) != own]
    account = doc.meta.get("twitter:site", [])[:1]
    names = filter(None, [given, *stated, host, _word_of(host), *account])
    return [name.lstrip("@") for name in names]


def _word_of(host: str) -> str:
    """ "news.example.co.uk" -> "example"."""
    labels = host.split(".")
    if len(labels) < 2:
        return host
    is_second_level = labels[-2] in ("com", "co", "org", "net", "gov", "edu", "ac")
    return labels[-3] if is_second_level and len(labels) > 2 else labels[-2]


def find(doc: Document, site_name: str | None = None, hint: str | None = None) -> FieldValue:
    """The headline with its origin; value None when the page has none."""
    names = site_names(doc, site_name)
    names += home_links(doc)
    said = statements(doc, names, hint)
    seen = headings(doc, names)
    plain = [item for item in seen if ":" not in item[1]]
    lone = _lone_headline(plain)
    best = _confirmed(seen, said, lone is not None)
    if best is not None:
        value = _without_neighbours(best.value, said, names)
        return replace(best, value=_with_kicker(value, said, doc))
    if lone is not None:
        return _unconfirmed(_without_kicker(lone, seen), 0.4 if said else 0.35)
    if said:
        return _most_supported(said)
    if seen:
        return _unconfirmed(_without_kicker((plain or seen)[0], seen), 0.35)
    return FieldValue(None)


def _without_kicker(heading: Heading, seen: list[Heading]) -> Heading:
    """A heading that no statement knows, without the kicker that its class calls so."""
    for value, what in seen[seen.index(heading) + 1 :]:
        origin, _, kind = what.partition(":")
        if kind == "rest":
            return value, origin
        if kind != "part":
            break
    return heading


def _unconfirmed(heading: Heading, trust: float) -> FieldValue:
    value, what = heading
    return FieldValue(value, f"generic:{what.partition(':')[0]}", trust)


def _confirmed(
    seen: list[Heading], said: list[Statement], has_lone_headline: bool
) -> FieldValue | None:
    """Of the visible headings the one that the page's statements agree with most."""
    highest = 0.0
    best: FieldValue | None = None
    for order, (value, origin) in _asked(seen, said):
        if origin == "class" and best is None and has_lone_headline:
            continue  # no statement knows the page's only h1: what one knows is a teaser
        agreed = [agreement(value, other) * trust for other, _, trust in said]
        support = max(agreed, default=0.0)
        rank = support + (0.0 if origin == "h2" else 0.3) - 0.01 * order
        if support >= _LEAST_SUPPORT and (best is None or rank > highest):
            trust = min(1.0, 0.55 + 0.2 * sum(a > 0.8 for a in agreed))
            best, highest = FieldValue(value, f"generic:{origin}", trust), rank
    return best


def _asked(seen: list[Heading], said: list[Statement]) -> Iterator[tuple[int, Heading]]:
    """Positions, texts and origins of headings, without pieces of one that is stated as a whole
    and the breadcrumb's title where not every strong statement says the same."""
    strong = {_key(other) for other, origin, _ in said if origin in _STRONG}
    every = {_key(other) for other, _, _ in said}
    whole = ""  # key of the heading that pieces belong to
    for order, (value, what) in enumerate(seen):
        origin, _, kind = what.partition(":")
        is_part = kind in ("part", "rest")
        if not is_part:
            whole = _key(value)
        is_stated_whole = is_part and whole in every
        is_of_section = kind == "crumb" and strong != {_key(value)}
        if not is_stated_whole and not is_of_section:
            yield order, (value, origin)


def _most_supported(said: list[Statement]) -> FieldValue:
    """Where no visible heading agrees: the statement that the others support most."""

    def support_of(item: Statement) -> float:
        return item[2] + sum(agreement(item[0], other[0]) for other in said if other is not item)

    value, origin, _ = max(said, key=support_of)
    is_short = len(tokens(value)) < _LONE_WORDS  # the site or a section, as often as a headline
    trust = 0.6 if len(said) > 1 and not is_short else _WEAK
    return FieldValue(_short(value, said), origin, trust)


def above_text(
    doc: Document, content: str, found: FieldValue, site_name: str | None = None
) -> FieldValue:
    """For a title that nothing confirms: the heading that stands right above the text,
    whatever the page is called.

    Templates without a headline's mark, whose every page has the site's or the section's
    name as its title.
    """
    if found.confidence > _WEAK or doc.tree.body is None:
        return found
    line = _line_of_its_own(doc.tree.body, found.value or "")
    if line:
        return FieldValue(line, found.origin, found.confidence)
    names = site_names(doc, site_name)
    best: tuple[int, str] | None = None  # level, text: the nearest of the highest level
    for level, text in _levels_above(doc.tree.body, content[:_BEGIN]):
        value = cut_site(clean(text), names) if level != _NO_LEVEL else ""
        if not has_shape(value, site_name) or len(tokens(value)) < _LONE_WORDS:
            continue
        own, is_shown = _key(found.value or ""), found.origin.startswith("generic:")
        if _key(value) == own or (is_shown and _key(value).endswith(own)):
            return found  # itself, or with its kicker
        if best is None or level <= best[0]:
            best = level, value
    return found if best is None else FieldValue(best[1], "generic:above", 0.4)


def _line_of_its_own(body: LexborNode, value: str) -> str:
    """The beginning or end of a stated title that the page shows as a line: what stands beside it,
    behind a sign, is the site or a section whatever its name. "" where there is none."""
    signs = list(_SEPARATOR.finditer(value))
    if not signs:
        return ""
    ends = (value[: signs[-1].start()], value[signs[0].end() :])
    parts = {_key(end): end.strip() for end in ends if len(tokens(end)) >= _LONE_WORDS}
    longest = max(map(len, ends)) + 20
    whole = _key(value)
    found = ""
    for block in walk(body) if parts else ():
        if len(block.text) > longest:
            continue
        shown = _key(block.text)
        if shown == whole:
            return ""
        found = found or parts.get(shown, "")
    return found


def _levels_above(body: LexborNode, begin: str) -> Iterable[tuple[int, str]]:
    """``(level of a heading, text)`` of the blocks before the one that begins so; none where
    no block does."""
    above: deque[tuple[int, str]] = deque(maxlen=_ABOVE)
    for block in walk(body):
        if block.text[:_BEGIN] == begin:
            return above
        above.append((_level(block), block.text))
    return ()


def _level(block: Block) -> int:
    """1 to 6 of a heading, 1 of what is named a headline."""
    if block.tag[0] == "h" and is_digits(block.tag[1:]):
        return int(block.tag[1])
    is_short = len(block.text) < 300
    if is_short and _HEADLINE_CLASS.search(block.node.attributes.get("class") or ""):
        return 1
    return _NO_LEVEL


def _without_site(raw: str, names: list[str]) -> str:
    """A headline without the names of the site at its ends, as one line.

    In Japanese a wide space alone may part the two. It parts the headline's own lines as well, so
    that it counts only beside a name.
    """
    head, has_space, tail = raw.strip().rpartition("\u3000")
    if has_space and head and _is_site(tail, {_key(n) for n in names if n} - {""}):
        raw = head
    return cut_site(clean(raw), names)


def statements(doc: Document, names: list[str], hint: str | None = None) -> list[Statement]:
    """What machine places call the page; ``names`` of the site are cut off."""
    out: list[Statement] = []
    site_keys = {_key(n) for n in names}
    for raw, origin, trust in (
        (page_metadata.of(doc).headline, "json-ld", 1.0),
        (doc.meta_first("og:title"), "og", 1.0),
        (doc.meta_first("headline"), "itemprop", 0.8),
        (doc.meta_first("twitter:title", "title"), "meta", 0.7),
        (doc.meta_first("dc.title", "parsely-title", "sailthru.title"), "meta", 0.7),
        (of_document(doc), "title", 0.8),
        (hint, "feed", 0.8),
    ):
        value = _without_site(raw, names) if raw else ""
        if value and has_shape(value) and _key(value) not in site_keys:
            out.append((value, origin, trust))
    return out


def _lone_headline(seen: list[Heading]) -> Heading | None:
    """The only h1 of a page, or without any the only element that is marked as its headline, when
    it reads like one: believed although no statement agrees with it.

    Templates whose machine places hold the rubric, the shop or an older headline.
    """
    first = [item for item in seen if item[1] == "h1"]
    first = first or [item for item in seen if item[1] == "itemprop"]
    return first[0] if len(first) == 1 and len(tokens(first[0][0])) >= _LONE_WORDS else None


def _without_neighbours(heading: str, said: list[Statement], names: list[str]) -> str:
    """A heading that holds a date, rubric or site beside the headline, cut to
    what a statement calls it."""
    site_keys = {_key(n) for n in names} - {""}
    tidy = _SPACE_BEFORE_COLON.sub(":", heading)
    if tidy != heading and any(
        _key(other) == _key(heading) and not _SPACE_BEFORE_COLON.search(other)
        for other, _, _ in said
    ):
        heading = tidy  # the template's space, not the author's: French writes it everywhere
    for other, _, _ in said:
        if ": " in other and ": " not in heading and _key(other) == _key(heading):
            return other  # two lines on the page, set apart where there are no lines
        is_part = 0.4 * len(heading) <= len(other) < len(heading) and len(tokens(other)) >= 3
        if is_part and _is_headline_of(other, heading, site_keys):
            return other
    return heading


def _is_headline_of(part: str, heading: str, site_keys: set[str]) -> bool:
    """Whether the rest of the heading is something else. A statement that is only the beginning may
    be cut by its CMS: what is left must look foreign."""
    if heading.endswith(part):
        return True
    if not heading.startswith(part):
        return False
    rest = heading[len(part) :]
    return _BEHIND_TITLE.match(rest) is not None or _is_site(rest, site_keys)


def _with_kicker(heading: str, said: list[Statement], doc: Document) -> str:
    """The kicker from an element of its own above the heading, when both strong
    statements put it before it."""
    strong = [other for other, origin, _ in said if origin in _STRONG]
    if len(strong) < 2 or len({_key(other) for other in strong}) > 1 or doc.tree.body is None:
        return heading
    kicker, _, rest = strong[0].partition(": ")
    if _key(rest) != _key(heading) or not kicker:
        return heading
    return strong[0] if kicker in doc.tree.body.text(deep=True, separator=" ") else heading


def _short(value: str, said: list[Statement]) -> str:
    """Of a statement and its own beginning (the others' suffixes cut) the shorter one."""
    for other, _, _ in said:
        is_beginning = other != value and len(other) >= 12 and value.startswith(other)
        if is_beginning and _SEPARATOR.match(value, len(other)):
            value = other
    return value


def of_document(doc: Document) -> str | None:
    node = doc.tree.css_first("head > title") or doc.tree.css_first("title")
    return node.text(deep=True) if node is not None else None


def heading_text(node: LexborNode) -> str:
    """Text of a heading; a kicker in an element of its own is set off by a colon, ruby
    readings are left out."""
    return heading_pieces(node)[0]


def heading_pieces(node: LexborNode) -> list[str]:
    """:func:`heading_text`, and behind it the pieces that stand in elements of their own
    when there are several."""
    parts = list(_parts(node))
    filled = [(" ".join(p.split()), own) for p, own in parts if p.strip()]
    if len(filled) == 2 and filled[0][1]:
        (kicker, _), (rest, is_own) = filled
        if _is_kicker(kicker, rest, is_own, node):
            return [kicker + _between(kicker, rest) + rest, kicker, rest]
    own_lines = [p for p, own in filled if own]
    if len(filled) < 2 or not own_lines:
        return [" ".join("".join(p for p, _ in parts).split())]
    # A colon in an element of its own, for screen readers, belongs to the piece before it.
    whole = re.sub(r"(?<!\s)\s++([:;])(?=\s)", r"\1", " ".join(p for p, _ in filled))
    return [whole, *own_lines]


def _parts(node: LexborNode) -> Iterator[tuple[str, bool]]:
    """``(text, whether it starts an element that looks like a line of its own)``."""
    for child in node.iter(include_text=True):
        if child.tag == "-text":
            yield child.text_content or "", False
        elif child.tag == "br":
            yield " ", False
        elif child.tag not in _NO_TEXT_TAGS and child.first_child is not None:
            value = "".join(map(_piece, child.traverse(include_text=True)))
            yield value, child.tag in _LINE_TAGS


def _piece(node: LexborNode) -> str:
    """The node's own text; a space for an element that parts its text from the one before."""
    if node.tag != "-text":
        return " " if node.tag in ("br", "div", "span", "p") else ""
    return "" if _in_ruby_reading(node) else node.text_content or ""


def _is_kicker(kicker: str, rest: str, is_own: bool, node: LexborNode) -> bool:
    """A few words before the longer headline, set apart by elements or by name."""
    if len(kicker.split()) > 6 or len(rest) <= len(kicker):
        return False
    if is_own:
        return True
    css = " ".join(child.attributes.get("class") or "" for child in node.iter()).lower()
    return _KICKER.search(css) is not None


def _between(kicker: str, rest: str) -> str:
    is_parted = kicker[-1] in ":.!?–-|/" or rest[0] in ":–-|"
    return " " if is_parted else ": "


def _in_ruby_reading(node: LexborNode) -> bool:
    parent = node.parent
    return parent is not None and parent.tag in ("rt", "rp")


def home_links(doc: Document) -> list[str]:
    """Texts of h1 and h2 that are nothing but a link to the site's front, or to the folder that the
    page is in: the name of a blog."""
    out = []
    for node in doc.tree.css("h1,h2")[:4]:
        links = node.css("a[href]")
        if len(links) != 1:
            continue
        is_front = _leads_to_front(links[0].attributes.get("href") or "", doc.url)
        text = clean(heading_text(node))
        if is_front and text and _key(text) == _key(clean(links[0].text(deep=True))):
            out.append(text)
    return out


def _leads_to_front(href: str, url: str) -> bool:
    own = url.rpartition("//")[2].partition("?")[0].rstrip("/")
    # The last "//" counts: an archive keeps the address behind its own.
    _, has_host, rest = href.strip().rpartition("//")
    if has_host:
        return "/" not in rest.rstrip("/") or own.startswith(f"{rest.rstrip('/')}/")
    path = own[len(own.partition("/")[0]) :]
    return rest == "/" or (len(rest) > 1 and path.startswith(f"{rest.rstrip('/')}/"))


def in_breadcrumb(node: LexborNode) -> bool:
    one: LexborNode | None = node
    for _ in range(_CRUMB_LEVELS):
        if one is None or one.tag in ("article", "main", "body"):
            return False
        if one.tag == "nav" or _is_named_breadcrumb(one) or _behind_links(one):
            return True
        one = one.parent
    return False


def _is_named_breadcrumb(node: LexborNode) -> bool:
    attributes = node.attributes
    names = " ".join(attributes.get(name) or "" for name in ("class", "id", "itemtype"))
    return len(names) < 300 and _CRUMB.search(names) is not None


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
    if link is None:
        link = _link_above(node)
    if link is None:
        return False
    href = link.attributes.get("href") or ""
    href = href.partition("#")[0].partition("?")[0].strip().rstrip("/")
    path = re.sub(r"^(?:https?:)?//[^/]*", "", href)
    if len(path) < 2 or href.startswith(("javascript", "mailto")):
        return False
    addresses = filter(None, (doc.url, doc.canonical))
    return not any(own.partition("?")[0].rstrip("/").endswith(path) for own in addresses)


def _link_above(node: LexborNode) -> LexborNode | None:
    above = node.parent
    for _ in range(3):
        if above is None or above.tag == "a":
            return above
        above = above.parent
    return None


def headings(doc: Document, names: list[str]) -> list[Heading]:
    """h1s, then headline-like nodes, then h2s.

    ``h1:crumb`` is the last step of a breadcrumb; ``h1:part`` a piece, in an element of its
    own, of the one before; ``h1:rest`` that without the kicker, which is named so.
    """
    out: list[Heading] = []
    site_keys = {_key(n) for n in names}
    for css, what, limit in (
        ("h1", "h1", 12),
        ('[itemprop="headline"]', "itemprop", 4),
        (HEADLINE_CSS, "class", 12),
        ("h2", "h2", 15),
    ):
        for node in doc.tree.css(css)[:limit]:
            if node.tag in _NO_HEADING_TAGS:
                continue
            crumb = in_breadcrumb(node)
            if _is_no_heading(node, what, crumb, doc):
                continue
            for order, text in enumerate(heading_pieces(node)):
                value = _heading(text, names, site_keys)
                is_part = order > 0
                if not value or (is_part and len(tokens(value)) < 3):
                    continue
                is_rest = order == 2 and _has_named_kicker(node)
                out.append((value, _kind(what, crumb, is_part, is_rest)))
    return out


def _kind(what: str, in_crumb: bool, is_part: bool, is_rest: bool) -> str:
    if in_crumb:
        return f"{what}:crumb"
    if is_rest:
        return f"{what}:rest"
    return f"{what}:part" if is_part else what


def _has_named_kicker(node: LexborNode) -> bool:
    """Whether the first element of a heading of two pieces is named as a kicker."""
    first = next((child for child in node.iter() if child.first_child is not None), None)
    return (
        first is not None
        and _KICKER.search((first.attributes.get("class") or "").lower()) is not None
    )


def _is_no_heading(node: LexborNode, what: str, in_crumb: bool, doc: Document) -> bool:
    """In a breadcrumb, a teaser's, or a piece of one that is there anyway; an h1 always is one."""
    if what == "h1":
        return False
    if in_crumb or (what in ("class", "h2") and leads_elsewhere(node, doc)):
        return True
    return what == "class" and node.parent is not None and node.parent.tag in ("h1", "h2")


def _heading(text: str, names: list[str], site_keys: set[str]) -> str:
    """The text without the site's name; "" where nothing else is left or it is no headline's."""
    whole = clean(text)
    value = re.sub(r"(?<!\s)\s++([,.])(?=\s|$)", r"\1", cut_site(whole, names))
    if not value or not has_shape(value) or {_key(value), _key(whole)} & site_keys:
        return ""
    return value
