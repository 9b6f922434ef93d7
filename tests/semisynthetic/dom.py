"""What is done to a page's DOM when it is filled: finding text, cutting nodes out, changing what
stands around an article."""

from __future__ import annotations

import json
import random
import re
import unicodedata
from functools import lru_cache
from typing import Any

import lxml.html

SILENT = frozenset({"script", "style", "noscript", "template", "svg"})
SLOT, ROLE = "data-slot-of-test", "data-role-of-test"
LD = "application/ld+json"
_CHROME = ("header", "footer", "nav", "form")
_BY = re.compile(
    r"^(by|von|par|por|text|author|autor|di|af|av|door|tác giả|[:,|•·\-–—&]|und|and|et|y|\s)*$",
    re.I,
)


@lru_cache(maxsize=4096)
def key(text: str) -> str:
    """For finding: no white space, no typography, lower case."""
    text = unicodedata.normalize("NFKC", text).lower()
    return re.sub(r"[\s\u200b-\u200f\u00ad\ufeff\"'“”„‘’‚«»‹›]+", "", text)


def text_of(node: Any) -> str:
    parts = []
    for inner in node.iter():
        if inner.tag in SILENT or not isinstance(inner.tag, str):
            if inner is not node and inner.tail:
                parts.append(inner.tail)
            continue
        if inner.text and not any(a.tag in SILENT for a in inner.iterancestors()):
            parts.append(inner.text)
        if inner is not node and inner.tail:
            parts.append(inner.tail)
    return "".join(parts)


def cut(node: Any) -> None:
    """Without the text behind it, which lxml keeps with an element."""
    above, before = node.getparent(), node.getprevious()
    if node.tail:
        if before is not None:
            before.tail = (before.tail or "") + node.tail
        else:
            above.text = (above.text or "") + node.tail
    above.remove(node)


def related(node: Any, rng: random.Random, texts: Any, name: str) -> None:
    """A list of other articles between two paragraphs, named as sites name it or not at all."""
    items = "".join(
        f'<li><a href="/r-{rng.randrange(10**6)}">{_escape(texts.headline(rng))}</a></li>'
        for _ in range(rng.randint(1, 3))
    )
    box = lxml.html.fragment_fromstring(f"<div{name}><ul>{items}</ul></div>")
    node.addnext(box)


def _escape(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;")


def without_names(tree: Any, names: list[str]) -> bool:
    """Takes the byline and what metadata say of it away; False when a name is left."""
    keys = [key(n) for n in names]
    for node in list(tree.body.iter()):
        if not isinstance(node.tag, str) or node.tag in SILENT or node.getparent() is None:
            continue
        text = key(text_of(node))
        if len(text) < 200 and any(k in text for k in keys) and node.get(ROLE) is None:
            rest = text
            for k in keys:
                rest = rest.replace(k, "")
            if _BY.match(rest) or (len(rest) < 40 and not re.search(r"\d", rest)):
                cut(node)
    for meta in list(tree.iter("meta")):
        named = (meta.get("name") or meta.get("property") or "").lower()
        if "author" in named or any(k in key(meta.get("content") or "") for k in keys):
            cut(meta)
    for node in tree.iter("script"):
        if LD in (node.get("type") or "") and node.text:
            try:
                node.text = json.dumps(_no_author(json.loads(node.text), keys), ensure_ascii=False)
            except ValueError:
                return False
    lds = "".join(key(n.text or "") for n in tree.iter("script") if LD in (n.get("type") or ""))
    whole = key(text_of(tree.body)) + lds
    return not any(k in whole for k in keys)


def _no_author(value: Any, keys: list[str]) -> Any:
    if isinstance(value, dict):
        return {
            k: _no_author(v, keys)
            for k, v in value.items()
            if k not in ("author", "creator", "editor")
            and not (isinstance(v, str) and any(n in key(v) for n in keys))
        }
    return [_no_author(v, keys) for v in value] if isinstance(value, list) else value


def vary(tree: Any, rng: random.Random, texts: Any) -> None:
    """Related lists, teasers and captions are other ones on each page; some items are missing."""
    mine = {n for n in tree.body.iter() if isinstance(n.tag, str) and n.get(ROLE)}
    for node in list(tree.body.iter("a", "figcaption")):
        if node.getparent() is None or any(a.tag in _CHROME for a in node.iterancestors()):
            continue
        if any(a in mine for a in (node, *node.iterancestors())) or any(
            n in mine for n in node.iter()
        ):
            continue
        own = text_of(node)
        if len(own.strip()) < 25:
            continue
        for inner in node.iter():
            if (
                isinstance(inner.tag, str)
                and inner.tag not in SILENT
                and len((inner.text or "").strip()) >= 20
            ):
                inner.text = texts.headline(rng)
            if inner is not node and len((inner.tail or "").strip()) >= 20:
                inner.tail = texts.sentence(rng)
        item = node.getparent()
        if item.tag == "li" and rng.random() < 0.15 and not any(n in mine for n in item.iter()):
            cut(item)
