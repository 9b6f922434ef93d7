"""What in a set is likely to fail on pages that nobody has tried it on: found by reading the set
alone. Pure.

A finding is no proof: validation, on pages, decides what a set is worth (validation.py).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from newscrawler.extraction import lexicon
from newscrawler.extraction.selectors import SelectorSet, Variant
from newscrawler.selectorsets import css

#: Rule -> what it says; the words of ``scrapy selectors lint``.
RULES = {
    "tag": "the article's own lead is found under one tag alone: sites change h2 to p;"
    " name the class",
    "teasers": "a lead by a name that teasers of a list have too, under any tag:"
    " name a tag or more",
    "lead": "a form of the lead that the summary knows is not in the content root: it is lost",
    "lead-excluded": "the lead is excluded from the content",
    "caption": "no exclude takes captions out",
    "position": "a position: another element before it, and it finds something else",
    "generated": "nothing but a name that a program made, or that says how it looks:"
    " it does not last",
}
_LEAD = lexicon.Pattern(r"\b(?:<class.standfirst>|<class.standfirst_above>)\b")
#: Names of a lead that no teaser has ("detail-sapo"): it may stand under any tag. Of a name without
#: them ("sapo") the tag is what keeps lists of other stories out of the text, which is worse than a
#: lead that is lost.
_OF_ARTICLE = lexicon.Pattern(r"(?<![a-z])(?:<class.of_article>)(?![a-z])")
_POSITION = re.compile(r":(?:nth|first|last|only)-")
#: A compound of a selector: tag, and what narrows it. Nothing is read twice.
_COMPOUND = re.compile(r"([a-zA-Z][a-zA-Z0-9]*+)?((?:[.#][\w-]++|\[[^\[\]]*+\]|:not\([^()]*+\))*+)")
_BRACKETS = re.compile(r"[(\[)\],]")
_NAMES = re.compile(r"[.#]([a-zA-Z_][\w-]*)")
#: Tags that one class of a lead moves between.
_TEXT_TAGS = frozenset({"p", "h2", "h3", "h4", "h5", "div", "span", "strong"})
#: Of a lead or of a teaser, as a class of one word.
_TEASER_NAME = lexicon.Pattern(r"<class.lead_or_teaser>")
#: A part of a row.
_COLUMN = re.compile(r"col(?:-[a-z]{2})?(?:-\d{1,2})?")
_CAPTION = re.compile(r"figure|caption|\.image|picture", re.I)


@dataclass(frozen=True)
class Finding:
    """``where``: the variant and the field; ``selector``: what is meant, '' for what is absent."""

    domain: str
    where: str
    rule: str
    selector: str


def lint(selectors: SelectorSet) -> list[Finding]:
    """In the order of the set; each selector of a field is told of once per rule."""
    found: dict[tuple[str, str, str], Finding] = {}
    for variant in selectors.variants:
        for field, rule, selector in _of_variant(variant):
            finding = Finding(selectors.domain, f"{variant.template}.{field}", rule, selector)
            found.setdefault((field, rule, selector), finding)
    return list(found.values())


def _of_variant(variant: Variant) -> Iterator[tuple[str, str, str]]:
    leads = [p for c in variant.fields.get("summary", ()) if c.kind == "css" for p in parts(c.css)]
    roots = [part for root in variant.content_root for part in parts(root)]
    yield from (("content", "tag", part) for part in _of_one_tag(roots))
    yield from (("summary", "tag", part) for part in _of_one_tag(leads))
    yield from (("content", "teasers", part) for part in roots if _may_be_teasers(part))
    if any(part in leads or _is_lead(part) for part in roots):
        yield from (("content", "lead", part) for part in leads if not _covered(part, roots))
    excluded = {part for one in variant.content_exclude for part in parts(one)}
    yield from (("content", "lead-excluded", part) for part in leads if part in excluded)
    if not any(map(_CAPTION.search, variant.content_exclude)):
        yield "content", "caption", ""
    for field, selector in _all(variant):
        if _POSITION.search(selector):
            yield field, "position", selector
        if not all(map(_lasts, parts(selector))):
            yield field, "generated", selector


def parts(selector: str) -> list[str]:
    """The selectors of a list, at commas outside of brackets."""
    found, start, depth = [], 0, 0
    for match in _BRACKETS.finditer(selector):
        if match[0] == "," and depth == 0:
            found.append(selector[start : match.start()])
            start = match.end()
        elif match[0] != ",":
            depth = depth + 1 if match[0] in "([" else max(0, depth - 1)
    found.append(selector[start:])
    return [part.strip() for part in found if part.strip()]


def _all(variant: Variant) -> Iterator[tuple[str, str]]:
    for name, candidates in variant.fields.items():
        yield from ((name, c.css) for c in candidates if c.kind == "css")
    yield from (("content", root) for root in variant.content_root)
    if variant.when:
        yield "when", variant.when


def _of_one_tag(selectors: list[str]) -> list[str]:
    """Of the selectors those that name a lead under a tag, with none that has it under another."""
    tags: dict[str, set[str]] = {}
    for selector in selectors:
        tag, rest = _last(selector)
        tags.setdefault(rest, set()).add(tag)
    return [
        selector
        for selector in selectors
        if (last := _last(selector))[0] in _TEXT_TAGS
        and _is_lead(selector)
        and _is_of_article(last[1])
        and tags[last[1]] == {last[0]}
    ]


def _may_be_teasers(selector: str) -> bool:
    """A lead by a class alone that stands in lists of other stories as well."""
    return selector.startswith(".") and _TEASER_NAME.fullmatch(selector[1:]) is not None


def _is_of_article(rest: str) -> bool:
    """Whether what narrows a compound says that it is the article's own: an id, or a name."""
    return "#" in rest or any(map(_OF_ARTICLE.search, _NAMES.findall(rest)))


def _lasts(selector: str) -> bool:
    """Whether all names do; one of how it looks may pick the part of an element with a name."""
    box, _, last = selector.rpartition(" ")
    names, inner = _NAMES.findall(box), _NAMES.findall(last)
    if names and all(map(css.stable, names)):
        return all(css.stable(name) or _COLUMN.fullmatch(name) for name in inner)
    return all(map(css.stable, [*names, *inner]))


def _is_lead(selector: str) -> bool:
    """By what narrows its last compound."""
    return bool(_LEAD.search(_last(selector)[1].replace("_", "-")))


def _covered(lead: str, roots: list[str]) -> bool:
    """Whether a part of the root finds it, be it by the class without the tag."""
    return any(root == lead or _narrows(lead, root) for root in roots)


def _narrows(lead: str, root: str) -> bool:
    """``h2.lead[role=lead]`` is one of those that ``.lead`` finds."""
    tag, rest = _last(root)
    own_tag, own = _last(lead)
    return root == tag + rest and bool(rest) and rest in own and tag in ("", own_tag)


def _last(selector: str) -> tuple[str, str]:
    """The last compound: tag, and what narrows it; "" where it ends in something else."""
    tag, rest = "", ""
    for match in _COMPOUND.finditer(selector):
        if match[0] and match.end() == len(selector):
            tag, rest = match[1] or "", match[2]
    return tag, rest
