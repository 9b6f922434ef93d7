"""Who wrote it, on pages whose metadata does not say: the one place that holds another person's name on each page. Pure.

No single page tells a byline from the name of a minister. Several pages of one template do: a byline stands
below the headline in the same node of nearly every page, once, holds nothing but a name, and changes.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import replace

from selectolax.lexbor import LexborNode

from newscrawler.extraction import authors as authors_
from newscrawler.extraction.blocks import collapse
from newscrawler.extraction.selectors import Candidate, is_line_of_names
from newscrawler.selectorstore import css
from newscrawler.selectorstore.content import valid
from newscrawler.selectorstore.samples import Sample, authors_agree, norm, title_agrees

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
#: One name on this share of the pages, of so many at least, is an account that files everything, or who writes alone:
#: whether another place names somebody else on this share of the pages tells which.
_FILED = 0.9
_LEAST_FILED = 6
_SIGNED = 0.5
#: Of the pages that name somebody: a place that agrees with the names on so many is believed on the others too, where
#: those names were read from running text.
_OUTVOTES = 0.7
#: A name that stands on this share of the pages and is thought the author of few: an editor, a columnist in the menu.
_FIXTURE = 0.6
_LONGEST = 90
#: A part of the page with so much text is named after the article's section or tags, not after what it holds.
_WHOLE_CHARS = 1500
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
    samples = _as_stated(_without_fixtures(samples))
    if len(samples) < 4:
        return samples
    account = _account(samples)
    witnessed = [i for i, s in enumerate(samples) if s.labels.authors]
    guessed = [i for i in witnessed if samples[i].labels.authors_by.startswith("byline")]
    many = len(witnessed) >= _WITNESSED * len(samples)
    if many and account is None and len(guessed) < len(witnessed) / 2:
        return samples
    found: dict[Candidate, dict[int, list[str]]] = defaultdict(dict)
    for index, sample in enumerate(samples):
        for place, names in _candidates(sample).items():
            if account is None or account not in map(norm, names):
                found[place][index] = names
    scored = [(score, place) for place in found if (score := _score(place, found[place], samples)) is not None]
    if many and account is None:
        return _outvoted(samples, witnessed, guessed, [found[place] for _, place in scored])
    if not scored:
        return samples
    by_page = found[max(scored, key=lambda s: s[0])[1]]
    if account is not None:
        signed = len(by_page) >= _SIGNED * len(samples)
        return [_named(s, by_page.get(i, [])) for i, s in enumerate(samples)] if signed else samples
    return [_named(s, by_page[i]) if not s.labels.authors and by_page.get(i) else s for i, s in enumerate(samples)]


def _outvoted(
    samples: list[Sample], witnessed: list[int], guessed: list[int], places: list[dict[int, list[str]]]
) -> list[Sample]:
    """What was read from running text on a few pages, by the place where the names of most pages stand."""

    def agreed(place: dict[int, list[str]]) -> int:
        return sum(authors_agree(place.get(i), samples[i].labels.authors) for i in witnessed)

    best = max(places, key=agreed, default={})
    if agreed(best) < _OUTVOTES * len(witnessed):
        return samples
    return [_named(s, best[i]) if i in guessed and best.get(i) else s for i, s in enumerate(samples)]


def _named(sample: Sample, names: list[str]) -> Sample:
    return replace(sample, labels=replace(sample.labels, authors=names))


def _account(samples: list[Sample]) -> str | None:
    """The one name that metadata give on every page."""
    names = Counter(norm(s.labels.authors[0]) for s in samples if len(s.labels.authors) == 1)
    if not names or len(samples) < _LEAST_FILED:
        return None
    name, pages = names.most_common(1)[0]
    return name if pages >= _FILED * len(samples) else None


def _without_fixtures(samples: list[Sample]) -> list[Sample]:
    """Without names that belong to the site's frame: such as stand on most pages and are taken for the author on few,
    and a paper's that stands beside each person's."""
    if len(samples) < _LEAST_FILED:
        return samples
    labelled = Counter(norm(name) for s in samples for name in set(s.labels.authors))
    beside = Counter(norm(name) for s in samples if len(s.labels.authors) > 1 for name in set(s.labels.authors))
    frame = {name for name, pages in beside.items() if pages >= _FILED * sum(bool(s.labels.authors) for s in samples)}
    few = {name for name, pages in labelled.items() if pages < _WITNESSED * len(samples)}
    texts = [norm(s.doc.tree.body.text(deep=True, separator=" ")) if few and s.doc.tree.body else "" for s in samples]
    frame |= {name for name in few if sum(name in text for text in texts) >= _FIXTURE * len(samples)}
    out = []
    for sample in samples:
        kept = [n for n in sample.labels.authors if norm(n) not in frame]
        out.append(_named(sample, kept) if len(kept) < len(sample.labels.authors) else sample)
    return out


def _as_stated(samples: list[Sample]) -> list[Sample]:
    guessed = [bool(s.labels.authors) and s.labels.authors_by.startswith("byline") for s in samples]
    stated = sum(bool(s.labels.authors) for s in samples) - sum(guessed)
    if stated < _STATED * len(samples):
        return samples
    return [
        replace(s, labels=replace(s.labels, authors=[])) if guess else s
        for s, guess in zip(samples, guessed, strict=True)
    ]


def _score(place: Candidate, by_page: dict[int, list[str]], samples: list[Sample]) -> float | None:
    """None: not a byline's place."""
    named = [names for names in by_page.values() if names]
    if len(named) < max(_LEAST_NAMES, _NAMED * len(samples)):
        return None
    filled = 0
    for sample in samples:
        texts = [t for t in (_text(n) for n in css.hits(sample.doc.tree, place.css)) if t.startswith(place.label)]
        if len(texts) > 1:
            return None
        # A first child may be any paragraph: the executor takes lines of names alone.
        filled += any(texts) and (":" not in place.css or is_line_of_names(texts[0]))
    if len(named) < _PURE * filled:  # what else stands there now and then: no byline's place
        return None
    often = Counter(norm(n) for names in named if len(names) > 1 for n in names)
    if often and max(often.values()) >= _FILED * len(named):  # a paper's name beside the person's: its label
        return None
    distinct = len({norm(n) for names in named for n in names})
    if distinct < max(_LEAST_NAMES, _DISTINCT * len(named)):
        return None
    return len(named) / len(samples) + 0.2 * css.rank(place.css) - (0.1 if place.label else 0.0)


def _text(node: LexborNode) -> str:
    return collapse(node.text(deep=True, separator=" "))


def _candidates(sample: Sample) -> dict[Candidate, list[str]]:
    """Place -> names, for nodes below the headline that hold a name and nothing else, where it hits once."""
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
    out: dict[Candidate, list[str]] = {}
    for node in ordered[start + 1 :]:
        text = _text(node)
        if not 4 <= len(text) <= _LONGEST or _is_elsewhere(node) or _in_running_text(node, text, whole):
            continue
        for label, names in _lines(node, text, sample.context.site_name):
            for place in (Candidate(s, label=label) for s in _places(node)):
                if place not in out and _hits_once(sample, place):
                    out[place] = names
    return out


def _lines(node: LexborNode, text: str, site: str | None) -> Iterator[tuple[str, list[str]]]:
    """Label and names: of a line that holds names of two words and more, and nothing else but a label before them."""
    first = next((n for n in authors_.clean([text], site) if len(n.split()) > 1), "")
    heads = [text.partition(sign)[0] + sign.rstrip() for sign in (" / ", " | ", ": ") if sign in text]
    heads += [_text(child) for child in node.css("strong, b, span, em")[:1]]  # "<strong>Author</strong> Jane Doe"
    rests = [first, *(text[len(head) :].lstrip() for head in heads if text.startswith(head))]
    for label in dict.fromkeys(["", *(css.label_before(text, rest) for rest in rests if rest)]):
        line = re.sub(r"\([^)]*\)", "", text[len(label) :])
        names = authors_.clean([line], site)
        if names and all(2 <= len(n.split()) <= 5 for n in names) and is_line_of_names(line, site):
            yield label, names


def _places(node: LexborNode) -> list[str]:
    return [s for s in [*css.selectors_for(node, 12), *css.first_child(node)] if valid(s)]


def _hits_once(sample: Sample, place: Candidate) -> bool:
    texts = [_text(n) for n in css.hits(sample.doc.tree, place.css)[:300]]
    return sum(t.startswith(place.label) for t in texts) == 1


def _is_elsewhere(node: LexborNode) -> bool:
    for one in (node, *css.ancestors(node, 5)):
        if one.tag in _NO_BYLINE_TAGS:
            return True
        named = f"{one.attributes.get('class') or ''} {one.attributes.get('id') or ''}"
        if _NO_BYLINE.search(named) and len(one.text(deep=True)) < _WHOLE_CHARS:
            return True
    return False


def _in_running_text(node: LexborNode, text: str, whole: str) -> bool:
    """A name inside a paragraph, not a line of its own."""
    above = node.parent
    if above is None or above.tag not in ("p", "li", "blockquote", "td"):
        return False
    around = norm(above.text(deep=True, separator=" "))
    return len(around) > 2 * len(text) + 20 and around[:80] in whole
