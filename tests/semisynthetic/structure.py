"""One stored page as a template: where its article stands in the DOM, and pages with
other stories in it."""

from __future__ import annotations

import copy
import gzip
import json
import random
import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import lxml.html
from selectolax.lexbor import LexborHTMLParser

from newscrawler.extraction.document import Document
from newscrawler.extraction.extract import PageContext, extract
from tests.newsweb.language import slugify
from tests.semisynthetic.dates import Move
from tests.semisynthetic.dom import (
    LD,
    ROLE,
    SILENT,
    SLOT,
    cut,
    key,
    related,
    text_of,
    vary,
    without_names,
)
from tests.semisynthetic.texts import Story

_LEAST_FOUND = 0.95  # of the gold's characters have to stand in elements of their own
_ATTRIBUTES = ("content", "title", "alt", "aria-label", "href", "value", "datetime")
_BOXES = (
    ' class="inline-related"',
    ' class="c-embed"',
    ' class="story-card"',
    ' data-widget="more"',
    "",
)


class Unfit(ValueError):
    """The page cannot be filled with other texts without leaving something of its
    own; the text says what."""


@dataclass(frozen=True)
class Truth:
    url: str
    title: str
    content: str
    authors: list[str]
    published: datetime


@dataclass(frozen=True)
class Filled:
    body: bytes
    truth: Truth


class Structure:
    """:raises Unfit: with what could not be found"""

    def __init__(self, row: Mapping[str, Any], folder: Path) -> None:
        self.id, self.lang, self.site, self.url = row["id"], row["lang"], row["site"], row["url"]
        self.title, self.authors = row["title"], list(row["authors"])
        self.published = datetime.fromisoformat(row["published"])
        if any(len(n.split()) < 2 for n in self.authors):
            raise Unfit("an author who is no person of two names: the site itself, a sign")
        if any(len(key(n)) < 4 for n in self.authors):
            raise Unfit("an author's name too short to be told from other text")
        paragraphs = [
            p for part in row["content"].split("\n\n") for p in part.split("\n") if key(p)
        ]
        body = gzip.decompress((folder / row["html"]).read_bytes())
        doc = Document(body, row["url"])
        tree = LexborHTMLParser(doc.text_html)
        self.tree = lxml.html.document_fromstring(tree.html or "")
        self.lead = key(paragraphs[0])
        self.size = sum(map(len, paragraphs))
        self._mark(paragraphs)
        self._alts = self._other_titles()
        self.probe()

    # ------------------------------------------------------------ where things stand
    def _mark(self, paragraphs: list[str]) -> None:
        deepest: dict[str, list[Any]] = {}
        for node in self.tree.body.iter():
            if not isinstance(node.tag, str) or node.tag in SILENT or node.tag == "body":
                continue
            text = key(text_of(node))
            if 3 < len(text) < 6000:
                known = deepest.setdefault(text, [])
                above = set(node.iterancestors()) if known else ()
                known[:] = [n for n in known if n not in above] + [node]
        titles = deepest.get(key(self.title), [])
        if not any(
            n.tag in ("h1", "h2") or any(a.tag in ("h1", "h2") for a in n.iterancestors())
            for n in titles
        ):
            raise Unfit("the gold title is no heading of the page")
        for node in titles:
            node.set(ROLE, "title")
        found = 0
        for slot, paragraph in enumerate(paragraphs):
            nodes = [n for n in deepest.get(key(paragraph), []) if not _is_taken(n)]
            if nodes:
                found += len(paragraph)
                for node in nodes:
                    node.set(ROLE, "short" if len(paragraph) < 80 else "text")
                    node.set(SLOT, str(slot))
        if found < _LEAST_FOUND * self.size:
            raise Unfit(
                f"only {found / self.size:.0%} of the gold text stands in elements of its own"
            )
        if sum(n.get(ROLE) == "text" for n in self.tree.body.iter()) < 3:
            raise Unfit("fewer than three paragraphs")

    def _other_titles(self) -> dict[str, int]:
        """Headlines for search engines and networks that differ from the one on the page ->
        words that they lack."""
        found = [
            n.get("content") or ""
            for n in self.tree.iter("meta")
            if "title" in (n.get("property") or n.get("name") or "")
        ]
        for node in self._lds():
            found += re.findall(
                r'"(?:headline|alternativeHeadline)"\s*:\s*"((?:[^"\\]|\\.){8,300})"',
                node.text or "",
            )
        mine = key(self.title)
        out = {}
        for text in found:
            text = " ".join(text.split())
            if len(text) >= 12 and mine not in key(text) and key(text) not in mine:
                out[text] = 1 + len(out)
        return dict(sorted(out.items(), key=lambda item: -len(item[0])))

    def _lds(self) -> Iterator[Any]:
        for node in self.tree.iter("script"):
            if LD in (node.get("type") or ""):
                yield node

    # ------------------------------------------------------------ filling
    def probe(self) -> None:
        """Fills it once and looks for what of the old article is left."""
        rng = random.Random(1)
        story = Story("Zwxq vjkq pqxz wvqk", [f"Qwxzv{chr(97 + i)} Vkqzx{chr(97 + i)}" for i in range(len(self.authors))],
                      ["Qxzw vkqj. " * 12] * 400, ["Qxzw vkqj wvq"] * 90, "Qqxz wkvj teaser.")  # fmt: skip
        new = self._days()[0]
        filled = self.fill(story, new, rng, None)
        tree = lxml.html.document_fromstring(filled.body.decode())
        said = key(text_of(tree.body)) + "".join(
            key(n.get("content") or "") for n in tree.iter("meta")
        )
        lds = "".join(key(n.text or "") for n in tree.iter("script") if LD in (n.get("type") or ""))
        if key(self.title) in said + lds:
            raise Unfit("the title stands in a place that is not found")
        for name in self.authors:
            if key(name) in said + lds:
                raise Unfit("an author's name stands in a place that is not found")
        for name in story.authors:
            if key(name) not in said + lds:
                raise Unfit("an author of the gold row is not on the page")
        whole = Document(filled.body, self.url)
        if not self._moved(self.tree, tree, new):
            raise Unfit("no date of the page is of a form that can be moved")
        if whole.tree.body is None:
            raise Unfit("no body")
        read = extract(whole, PageContext(language=self.lang, url_is_article=True))
        if {key(n) for n in read.authors.value} & {key(n) for n in self.authors}:
            raise Unfit("an author's name stands in a place that only extraction finds")

    def _moved(self, before: Any, after: Any, new: date) -> bool:
        move = Move(self.published.date(), new)

        def dates(tree: Any) -> set[str]:
            texts = [
                n.get(a) or "" for n in tree.iter("meta", "time") for a in ("content", "datetime")
            ]
            texts += [n.text or "" for n in tree.iter("script") if LD in (n.get("type") or "")]
            texts += [t for t in tree.body.itertext() if len(t) < 150]
            return {t for t in texts if move.machine(t) != t or move.seen(t) != t}

        return bool(dates(before)) and not dates(after)

    def _days(self) -> list[date]:
        """Of the same month, so that its name may stay; away from the page's own, so that
        what was not moved shows."""
        day = self.published.date()
        days = [date(day.year - back, day.month, n) for n in range(3, 25) for back in (0, 1, 2)]
        return [d for d in days if abs((d - day).days) > 6]

    def fill(
        self,
        story: Story,
        day: date | None,
        rng: random.Random,
        texts: Any,
        *,
        nameless: bool = False,
    ) -> Filled:
        """``texts``: what related boxes are filled with
        (tests.semisynthetic.texts.Texts), None leaves them."""
        tree = copy.deepcopy(self.tree)
        day = day or rng.choice(self._days())
        move = Move(self.published.date(), day)
        url = self._url(story, rng, move)
        names = dict(zip(self.authors, story.authors, strict=False))
        content = _write_content(
            tree, story, rng, texts, _BOXES[sum(map(ord, self.id)) % len(_BOXES)]
        )
        swap = _Swap(self, story, names, url, move, content)
        swap.run(tree)
        gone = False
        if nameless:
            without = copy.deepcopy(tree)
            gone = without_names(without, list(names.values()))
            tree = without if gone else tree
        if texts is not None:
            vary(tree, rng, texts)
        for node in list(tree.iter()):
            if isinstance(node.tag, str):
                node.attrib.pop(SLOT, None)
                node.attrib.pop(ROLE, None)
        body = b"<!doctype html>" + lxml.html.tostring(tree, encoding="utf-8")
        authors = [] if gone else list(names.values())
        return Filled(
            body, Truth(url, story.title, "\n\n".join(content), authors, self.published + move.by)
        )

    def _url(self, story: Story, rng: random.Random, move: Move) -> str:
        parts = urlsplit(self.url)
        above = parts.path.rstrip("/").rsplit("/", 1)[0]
        name = f"{slugify(story.title) or 'story'}-{rng.randrange(10**6, 10**7)}"
        return f"{parts.scheme}://{parts.netloc}{move.machine(above)}/{name}"


def _is_taken(node: Any) -> bool:
    """It is another paragraph, part of one, or holds one."""
    return any(
        n.get(ROLE) is not None
        for n in (*node.iterancestors(), *node.iter())
        if isinstance(n.tag, str)
    )


class _Swap:
    """Everything outside the text: title, names, dates and addresses, in attributes,
    texts and JSON-LD."""

    def __init__(
        self,
        of: Structure,
        story: Story,
        names: dict[str, str],
        url: str,
        move: Move,
        content: list[str],
    ) -> None:
        self.of, self.story, self.names, self.url, self.move, self.content = (
            of,
            story,
            names,
            url,
            move,
            content,
        )
        words = story.title.split()
        self.pairs: list[tuple[str, str]] = [(of.url, url)]
        if urlsplit(of.url).path.count("/") > 1 or len(urlsplit(of.url).path) > 12:
            self.pairs.append((urlsplit(of.url).path, urlsplit(url).path))
        for alt, number in of._alts.items():
            self.pairs.append((alt, " ".join(words[: max(3, len(words) - number)])))
        self.pairs.append((of.title, story.title))
        for old, new in names.items():
            self.pairs += [(old, new), (old.upper(), new.upper()), (slugify(old), slugify(new))]
        self.pairs = [(a, b) for a, b in self.pairs if len(a) > 3]

    def text(self, text: str, visible: bool = True) -> str:
        for old, new in self.pairs:
            if old in text:
                text = text.replace(old, new)
            elif len(old) > 12 and key(old) in key(text):
                text = _loosely(text, old, new)
        if not visible or len(text) < 150:
            text = self.move.machine(text)
        return self.move.seen(text) if len(text) < 150 else text

    def run(self, tree: Any) -> None:  # noqa: C901 - one walk; what is left as it is stands first
        for node in tree.iter():
            if not isinstance(node.tag, str):
                continue
            role = node.get(ROLE)
            if role == "title":
                _set_text(node, self.story.title)
            for name, value in list(node.attrib.items()):
                if name in _ATTRIBUTES or (name.startswith("data-") and name not in (SLOT, ROLE)):
                    if node.tag == "meta":
                        value = self._description(value)
                    changed = self.text(value, visible=False)
                    if changed != node.get(name):
                        node.set(name, changed)
            if node.tag == "script":
                if LD in (node.get("type") or "") and node.text:
                    node.text = self._ld(node.text)
                continue
            if node.tag == "style":
                continue
            if node.text and role not in ("text", "short") and node.text.strip():
                node.text = self.text(node.text)
            if node.tail and node.tail.strip():
                node.tail = self.text(node.tail)

    def _description(self, value: str) -> str:
        if len(value) < 60 or self.of.title in value or value in self.of._alts:
            return value
        return self._summary(value)

    def _summary(self, value: str) -> str:
        mine = key(value).rstrip(".…")
        if len(mine) > 30 and (mine[:200] in self.of.lead or self.of.lead[:200] in mine):
            return self.content[0]
        return (
            self.story.teaser
            if " " in value and not value.startswith(("http", "/")) and "=" not in value
            else value
        )

    def _ld(self, raw: str) -> str:
        try:
            data = json.loads(raw, strict=False)
        except ValueError:
            return self.text(raw, visible=False)
        return json.dumps(self._walk(data, ""), ensure_ascii=False)

    def _walk(self, value: Any, name: str) -> Any:
        if isinstance(value, dict):
            return {k: self._walk(v, k) for k, v in value.items()}
        if isinstance(value, list):
            return [self._walk(v, name) for v in value]
        if not isinstance(value, str):
            return value
        if name == "articleBody":
            body = "\n".join(self.content)
            return body if len(value) > 0.6 * self.of.size else body[: len(value)]
        if name == "description" and len(value) > 60:
            value = self._summary(value)
        return self.text(value, visible=False)


def _loosely(text: str, old: str, new: str) -> str:
    """Replaced though white space or quotation marks differ."""
    letters = [re.escape(c) for c in key(old)]
    gap = r"[\s\u200b-\u200f\u00ad\ufeff\"'“”„‘’‚«»‹›]*"
    found = re.search(gap.join(letters), unicodedata.normalize("NFKC", text), re.I)
    if not found:
        return text
    plain = unicodedata.normalize("NFKC", text)
    return plain[: found.start()] + new + plain[found.end() :]


def _set_text(node: Any, text: str) -> None:
    for child in list(node):
        if child.tag not in SILENT:
            node.remove(child)
        else:
            child.tail = None
    node.text = text


def _write_content(tree: Any, story: Story, rng: random.Random, texts: Any, box: str) -> list[str]:
    """Fills the paragraphs, some cloned, some left out, as articles differ in length; the
    texts in the page's order."""
    paragraphs, short = iter(story.paragraphs), iter(story.short)
    nodes = [
        n for n in tree.body.iter() if isinstance(n.tag, str) and n.get(ROLE) in ("text", "short")
    ]
    slots = list(dict.fromkeys(n.get(SLOT) for n in nodes))
    many = rng.uniform(0.6, 1.6)
    written: list[str] = []
    by_slot: dict[str, list[Any]] = {}
    for node in nodes:
        by_slot.setdefault(node.get(SLOT), []).append(node)
    longs = [s for s in slots if by_slot[s][0].get(ROLE) == "text"]
    for slot in slots:
        group = by_slot[slot]
        if group[0].get(ROLE) == "short":
            text = next(short)
            written.append(text)
            for node in group:
                _inside(node, text, rng)
            continue
        inner = (
            slot not in (longs[0], longs[1], longs[-1])
            and group[0].tag in ("p", "div")
            and len(group) == 1
        )
        if inner and len(longs) > 4 and rng.random() > many:
            _drop(group[0])
            continue
        text = next(paragraphs)
        written.append(text)
        for node in group:
            _inside(node, text, rng)
        last = group[0]
        while inner and rng.random() < (many - 1) / many:
            twin = copy.deepcopy(last)
            twin.tail = None
            last.addnext(twin)
            last = twin
            written.append(next(paragraphs))
            _inside(twin, written[-1], rng)
        if texts is not None and inner and rng.random() < 0.06:
            related(last, rng, texts, box)
    return written


def _inside(node: Any, text: str, rng: random.Random) -> None:
    """The text, with a link or emphasis in it where the page had one."""
    inline = next(
        (c for c in node if c.tag in ("a", "strong", "em", "b", "i") and (c.text or "").strip()),
        None,
    )
    words = text.split()
    if inline is None or len(words) < 12:
        _set_text(node, text)
        return
    at = rng.randrange(1, len(words) - 6)
    inline = copy.deepcopy(inline)
    for child in list(inline):
        inline.remove(child)
    _set_text(node, " ".join(words[:at]) + " ")
    inline.text, inline.tail = " ".join(words[at : at + 3]), " " + " ".join(words[at + 3 :])
    node.insert(0, inline)


def _drop(node: Any) -> None:
    above = node.getparent()
    while above is not None and key(text_of(above)) == key(text_of(node)) and above.tag != "body":
        node, above = above, above.getparent()
    if above is not None:
        cut(node)
