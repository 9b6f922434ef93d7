"""Who wrote it, on pages whose metadata does not say: the one place that holds another person's name on each page. Pure.

No single page tells a byline from the name of a minister. Several pages of one template do: a byline stands
below the headline in the same node of nearly every page, once, holds nothing but a name, and changes.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import replace

from selectolax.lexbor import LexborNode

from newscrawler.extraction import authors as authors_
from newscrawler.selectorstore import css
from newscrawler.selectorstore.samples import Sample, norm, title_agrees

#: With a witness on this share of the pages there is nothing to guess.
_WITNESSED = 0.4
#: Pages with a name there, of all (agencies and desks sign the rest), and of those where anything stands there.
_NAMED = 0.4
_PURE = 0.75
_LEAST_NAMES = 3
_DISTINCT = 0.3
#: With names from metadata on this share, a page where only its layout gives one has most likely none: what stands there
#: belongs to a related article.
_STATED = 0.6
_LONGEST = 90
_NODES = "span, a, p, strong, b, em, i, cite, address, div, li, small, h4, h5, h6"
_MOST_NODES = 5000
_NO_BYLINE = re.compile(
    r"caption|related|lien-?quan|tags?\b|topic|chu-?de|categ|section|breadcrumb|menu|nav|share|social|comment|"
    r"location|place|dateline|kicker|advert|banner|photo|image|credit|source|nguon|footer|trending|popular",
    re.I,
)
_NO_BYLINE_TAGS = frozenset({"nav", "footer", "aside", "figure", "figcaption", "menu", "form", "header", "button"})


def label_bylines(samples: list[Sample]) -> list[Sample]:
    """The samples, with names where no witness had any and the pages together show where they stand."""
    samples = _as_stated(samples)
    witnessed = sum(bool(s.labels.authors) for s in samples)
    if witnessed >= _WITNESSED * len(samples) or len(samples) < 4:
        return samples
    found: dict[str, dict[int, list[str]]] = defaultdict(dict)
    for index, sample in enumerate(samples):
        for selector, names in _candidates(sample).items():
            found[selector][index] = names
    best: tuple[float, str] | None = None
    for selector, by_page in found.items():
        score = _score(selector, by_page, samples)
        if score is not None and (best is None or score > best[0]):
            best = (score, selector)
    if best is None:
        return samples
    by_page = found[best[1]]
    return [
        s if s.labels.authors or not by_page.get(i) else replace(s, labels=replace(s.labels, authors=by_page[i]))
        for i, s in enumerate(samples)
    ]


def _as_stated(samples: list[Sample]) -> list[Sample]:
    guessed = [bool(s.labels.authors) and s.labels.authors_by.startswith("byline") for s in samples]
    stated = sum(bool(s.labels.authors) for s in samples) - sum(guessed)
    if stated < _STATED * len(samples):
        return samples
    return [
        replace(s, labels=replace(s.labels, authors=[])) if guess else s
        for s, guess in zip(samples, guessed, strict=True)
    ]


def _score(selector: str, by_page: dict[int, list[str]], samples: list[Sample]) -> float | None:
    """None: not a byline's place."""
    named = [names for names in by_page.values() if names]
    if len(named) < max(_LEAST_NAMES, _NAMED * len(samples)):
        return None
    filled = 0
    for sample in samples:
        nodes = css.hits(sample.doc.tree, selector)
        if len(nodes) > 1:
            return None
        filled += any(n.text(deep=True).strip() for n in nodes)
    if len(named) < _PURE * filled:  # what else stands there now and then: no byline's place
        return None
    distinct = len({norm(n) for names in named for n in names})
    if distinct < max(_LEAST_NAMES, _DISTINCT * len(named)):
        return None
    return len(named) / len(samples) + 0.2 * css.rank(selector)


def _candidates(sample: Sample) -> dict[str, list[str]]:
    """Selector -> names, for nodes below the headline that hold a name and nothing else, where it hits once."""
    body = sample.doc.tree.body
    if body is None:
        return {}
    ordered = list(body.css(_NODES + ", h1, h2"))[:_MOST_NODES]
    start = next(
        (i for i, n in enumerate(ordered)
         if n.tag in ("h1", "h2") and title_agrees(n.text(deep=True, separator=" "), sample.labels.title or "-")),
        None,
    )  # fmt: skip
    if start is None:
        return {}
    whole = norm(sample.labels.content or "")
    out: dict[str, list[str]] = {}
    for node in ordered[start + 1 :]:
        text = " ".join(node.text(deep=True, separator=" ").split())
        if not 4 <= len(text) <= _LONGEST or _is_elsewhere(node):
            continue
        names = authors_.clean([text], sample.context.site_name)
        if not names or not all(2 <= len(n.split()) <= 5 for n in names):
            continue
        letters = sum(c.isalpha() for c in re.sub(r"\([^)]*\)", "", text))
        if sum(c.isalpha() for n in names for c in n) < 0.6 * letters or _in_running_text(node, text, whole):
            continue
        for selector in css.selectors_for(node, 12):
            if selector not in out and len(css.hits(sample.doc.tree, selector)) == 1:
                out[selector] = names
    return out


def _is_elsewhere(node: LexborNode) -> bool:
    for one in (node, *css.ancestors(node, 5)):
        if one.tag in _NO_BYLINE_TAGS:
            return True
        if _NO_BYLINE.search(f"{one.attributes.get('class') or ''} {one.attributes.get('id') or ''}"):
            return True
    return False


def _in_running_text(node: LexborNode, text: str, whole: str) -> bool:
    """A name inside a paragraph, not a line of its own."""
    above = node.parent
    if above is None or above.tag not in ("p", "li", "blockquote", "td"):
        return False
    around = norm(above.text(deep=True, separator=" "))
    return len(around) > 2 * len(text) + 20 and around[:80] in whole
