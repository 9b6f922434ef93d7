"""Making selectors that last: from nodes of several pages to CSS that finds just them. Pure.

After ROBULA+ (Leotta 2016): start general, specialise until unique; itemprop, id, class before
position; generated names (hashes, digits, states) are not used.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import combinations

from selectolax.lexbor import LexborHTMLParser, LexborNode

from newscrawler.extraction.selectors import MAX_LABEL

_NAME = re.compile(r"^[a-zA-Z_][a-zA-Z0-9_-]{1,60}$")
_STATE = re.compile(
    r"^(active|open|opened|hidden|show|shown|hide|current|selected|first|last|odd|even|loaded|lazy|"
    r"lazyload\w*|col-.*|row|clearfix|js-.*|is-.*|has-.*|wow|fade\w*|animated|d-.*|m[tblrxy]?-\d"
    r"|p[tblrxy]?-\d|w-\d+|"
    r"left|right|fl|fr|pull-(left|right)|mobile|desktop|ng-.*|svelte-.*|css-.*|sc-.*|jsx-.*"
    r"|chakra-.*)$",
    re.I,
)
#: The last two: styled-components (hqmKvI, bxcKHB), by capitals too near to each other and
#: by no vowel at all.
_HASHY = re.compile(
    r"\d{3,}|__(?=[a-z]*[A-Z0-9])[a-zA-Z0-9]{5,}$|[a-z][A-Z][a-z]?[A-Z][a-z]?[A-Z]|^[a-f0-9]{6,}$|"
    r"^(?=[a-zA-Z]{5,7}$)[a-z]+[A-Z][a-z]{0,2}[A-Z]|^(?=[a-zA-Z]{5,7}$)(?=.*[A-Z])[^aeiouyAEIOUY]+$"
)
#: CSS modules: the file, a hash, the name that a person gave ("Teaser-module__Y44zPW__author").
_HASH_BETWEEN = re.compile(
    r"^([a-zA-Z][\w-]{2,60}__)(?=\w*\d|\w*[A-Z]\w*[A-Z])[a-zA-Z0-9]{5,8}(__[a-zA-Z]{3,30})$"
)
#: The same with the hash at the end ("Teaser_text__sB4sT").
_HASH_BEHIND = re.compile(r"^([a-zA-Z][\w-]{3,60}__)(?=\w*\d|\w*[A-Z]\w*[A-Z])[a-zA-Z0-9]{5,8}$")
#: A value of a data-* attribute that names a kind of thing, not this one: letters only.
_WORDS = re.compile(r"^[a-zA-Z][a-zA-Z_-]{2,30}$")
_ANCHOR_TAGS = frozenset({"article", "main", "header"})


def stable(name: str) -> bool:
    generated = _HASHY.search(name) or _HASH_BETWEEN.match(name) or _generated_end(name)
    return bool(_NAME.match(name)) and not _STATE.match(name) and not generated


def _generated_end(name: str) -> str:
    """The part before a generated end ("BaseText-" of BaseText-fEohGt), '' without one."""
    module = _HASH_BEHIND.match(name)
    if module:
        return module[1]
    before, dash, end = name.rpartition("-")
    return before + dash if before and len(end) >= 5 and _HASHY.search(end) else ""


def classes(node: LexborNode) -> list[str]:
    return [c for c in (node.attributes.get("class") or "").split() if stable(c)]


def own_selectors(node: LexborNode) -> list[str]:
    """Ways to name the node by itself, most lasting first."""
    tag = node.tag or "*"
    attributes = node.attributes
    names = classes(node)
    found = [
        *_by_attributes(tag, attributes),
        *(f"{tag}.{name}" for name in names),
        *_by_parts_of_classes(tag, (attributes.get("class") or "").split()),
        *(f"{tag}.{a}.{b}" for a, b in combinations(names[:4], 2)),
    ]
    if tag in ("h1", "time", "article", "address", "main"):
        found.append(tag)
    return list(dict.fromkeys(found))


def _by_attributes(tag: str, attributes: dict[str, str | None]) -> Iterator[str]:
    itemprop = attributes.get("itemprop") or ""
    if re.fullmatch(r"[a-zA-Z]{3,30}", itemprop):
        yield f'[itemprop="{itemprop}"]'
        yield f'{tag}[itemprop="{itemprop}"]'
    if attributes.get("rel") == "author":
        yield f'{tag}[rel="author"]'
    identity = attributes.get("id") or ""
    if identity and stable(identity):
        yield f"#{identity}"
    for name, value in attributes.items():
        if value and _names_a_kind(name, value):
            yield f'{tag}[{name}="{value}"]'


def _names_a_kind(name: str, value: str) -> bool:
    """Whether an attribute says what a thing is, not which one it is."""
    if name not in ("role", "type") and not name.startswith("data-"):
        return False
    return _WORDS.match(value) is not None and stable(value)


def _by_parts_of_classes(tag: str, names: list[str]) -> Iterator[str]:
    """By what stands around a hash in a class name."""
    for name in names:
        between = _HASH_BETWEEN.match(name)
        if between:
            yield f'{tag}[class*="{between[1]}"][class*="{between[2]}"]'
        lasting = _generated_end(name)
        if len(lasting) > 4 and stable(lasting.rstrip("-_")) and not lasting.endswith("-sc-"):
            yield f'{tag}[class*="{lasting}"]'


def ancestors(node: LexborNode, most: int = 6) -> Iterator[LexborNode]:
    current = node.parent
    while current is not None and most > 0 and current.tag not in ("body", "html", None):
        yield current
        current = current.parent
        most -= 1


def selectors_for(node: LexborNode, most: int = 60) -> list[str]:
    """Candidates for one node: itself, then below one lasting ancestor, then
    its bare tag below one."""
    own = own_selectors(node)
    found = list(own)
    tag = node.tag or ""
    for level, above in enumerate(ancestors(node)):
        for anchor in _anchors(above)[:3]:
            found += [f"{anchor} {s}" for s in own[:3]]
            if tag and tag not in ("div", "span"):
                found.append(f"{anchor} {tag}")
            elif level == 0:
                found.append(f"{anchor} > {tag}")
    return list(dict.fromkeys(s for s in found if len(s) <= 200))[:most]


def _anchors(node: LexborNode) -> list[str]:
    """Names of an ancestor; a bare tag is one of few."""
    names = own_selectors(node)
    if node.tag in _ANCHOR_TAGS:
        return names
    return [s for s in names if s.startswith(("[", "#")) or "." in s]


def first_child(node: LexborNode) -> list[str]:
    """Names by the one position that lasts: the beginning of an article's text. Of the block and of
    what alone is in it."""
    block, inner = node, ""
    if node.tag in ("strong", "b", "em", "i", "span") and node.parent is not None:
        block, inner = node.parent, f" > {node.tag}"
    above = block.parent
    if block.tag not in ("p", "div", "h3", "h4", "h5") or above is None or _element_before(block):
        return []
    return [f"{anchor} > {block.tag}:first-child{inner}" for anchor in own_selectors(above)[:3]]


def _element_before(node: LexborNode) -> bool:
    before = node.prev
    while before is not None and (before.tag or "-").startswith("-"):
        before = before.prev
    return before is not None


def label_before(text: str, value: str) -> str:
    """The text before a value in its line, "Author:" or a paper's name; '' for
    nothing, or no label."""
    label = text[: max(0, text.find(value))].rstrip()
    if not 2 <= len(label) <= MAX_LABEL or any(map(str.isdigit, label)):
        return ""
    return label if any(map(str.isalpha, label)) else ""


def rank(css: str) -> float:
    """How likely the selector is to live long, 0..1."""
    if "nth-" in css:
        return 0.2
    if "itemprop" in css or "rel=" in css:
        base = 1.0
    elif "#" in css:
        base = 0.95
    elif "." in css:
        base = 0.9
    elif "[class*=" in css or css in ("h1", "article h1", "main h1"):
        base = 0.85
    else:
        base = 0.6
    return base - 0.05 * css.count(" ") - len(css) / 4000


def hits(tree: LexborHTMLParser | LexborNode, css: str) -> list[LexborNode]:
    """Matching nodes; a selector that the engine refuses has none."""
    try:
        return list(tree.css(css))
    except Exception:  # selectolax raises its own and ValueError, by version
        return []
