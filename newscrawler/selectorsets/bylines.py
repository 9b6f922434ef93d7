"""Who wrote it, on pages whose metadata does not say: the one place that holds another person's
name on each page. Pure.

No single page tells a byline from the name of a minister. Several pages of one template do: a
byline stands below the headline in the same node of nearly every page, once, holds nothing but a
name, and changes.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice

from selectolax.lexbor import LexborNode

from newscrawler.extraction import authors as authors_
from newscrawler.extraction import bylines as extraction_bylines
from newscrawler.extraction import lexicon
from newscrawler.extraction.blocks import collapse
from newscrawler.extraction.selectors import Candidate, is_line_of_names
from newscrawler.selectorsets import css
from newscrawler.selectorsets.content import valid
from newscrawler.selectorsets.samples import Sample, authors_agree, norm, title_agrees

#: With a name on this share of the pages there is nothing to guess.
_LABELLED = 0.4
#: Pages with a name there, of all (agencies and desks sign the rest), and of those where
#: anything stands there.
_NAMED = 0.4
_PURE = 0.75
_LEAST_NAMES = 3
_DISTINCT = 0.3
#: With names from metadata on this share, a page where only its layout gives one has most likely
#: none: what stands there belongs to a related article.
_STATED = 0.6
#: One name on this share of the pages, of so many at least, is an account that files
#: everything, or who writes alone: whether another place names somebody else on this share
#: of the pages tells which.
_FILED = 0.9
_LEAST_FILED = 6
_SIGNED = 0.5
#: Of the pages that name somebody: a place that agrees with the names on so many is believed on the
#: others too, where those names were read from running text.
_OUTVOTES = 0.7
#: A name that stands on this share of the pages and is thought the author of few: an editor, a
#: columnist in the menu.
_FIXTURE = 0.6
_LONGEST = 90
#: A part of the page with so much text is named after the article's section or tags, not
#: after what it holds.
_WHOLE_CHARS = 1500
_NODES = "span, a, p, strong, b, em, i, cite, address, div, li, small, h4, h5, h6"
_MOST_NODES = 5000
#: Visible bylines of a page that are asked who wrote it instead of the account.
_MOST_SHOWN = 4
_NO_BYLINE = lexicon.Pattern(r"<class.byline_place>")
_NO_BYLINE_TAGS = frozenset(
    {"nav", "footer", "aside", "figure", "figcaption", "menu", "form", "header", "button"}
)


def label_bylines(samples: list[Sample]) -> list[Sample]:
    """The samples, with names where no metadata had any and the pages together
    show where they stand."""
    samples = _as_stated(_without_fixtures(samples))
    if len(samples) < 4:
        return samples
    account = _account(samples)
    labelled = [i for i, s in enumerate(samples) if s.labels.authors]
    guessed = [i for i in labelled if samples[i].labels.authors_by.startswith("byline")]
    known = account is None and len(labelled) >= _LABELLED * len(samples)
    if known and len(guessed) < len(labelled) / 2:
        return samples
    places = _places_of_names(samples, account)
    if known:
        return _outvoted(samples, labelled, guessed, list(places.values()))
    if not places:
        return samples if account is None else _seen_instead(samples, account)
    best = places[max(places, key=lambda place: place[0])]
    if account is None:
        return _with_names(samples, best, [i for i in range(len(samples)) if i not in labelled])
    if len(best) < _SIGNED * len(samples):
        return samples
    return [_named(s, best.get(i, [])) for i, s in enumerate(samples)]


def _places_of_names(
    samples: list[Sample], account: str | None
) -> dict[tuple[float, Candidate], dict[int, list[str]]]:
    """``(score, place)`` -> page -> names there, other than the account's; a byline's places
    alone."""
    found: dict[Candidate, dict[int, list[str]]] = defaultdict(dict)
    for index, sample in enumerate(samples):
        for place, names in _candidates(sample).items():
            if account is None or account not in map(norm, names):
                found[place][index] = names
    scored = ((_score(place, by_page, samples), place) for place, by_page in found.items())
    return {(score, place): found[place] for score, place in scored if score is not None}


def _with_names(
    samples: list[Sample], by_page: dict[int, list[str]], pages: list[int]
) -> list[Sample]:
    """The samples, with the names of ``by_page`` on ``pages`` where it has any."""
    out = list(samples)
    for i in pages:
        if names := by_page.get(i):
            out[i] = _named(samples[i], names)
    return out


def _seen_instead(samples: list[Sample], account: str) -> list[Sample]:
    """Where the account is the paper's: who the byline that readers see names, another
    person on most pages."""
    seen: list[list[str]] = []
    for sample in samples:
        shown = islice(extraction_bylines.visible_names(sample.doc, sample.context), _MOST_SHOWN)
        seen.append(next((n for n, _, _ in shown if account not in map(norm, n)), []))
    named = [norm(names[0]) for names in seen if names]
    if len(named) < _SIGNED * len(samples) or len(set(named)) < max(
        _LEAST_NAMES, _DISTINCT * len(named)
    ):
        return samples
    return [_named(s, names) for s, names in zip(samples, seen, strict=True)]


def _outvoted(
    samples: list[Sample],
    labelled: list[int],
    guessed: list[int],
    places: list[dict[int, list[str]]],
) -> list[Sample]:
    """What was read from running text on a few pages, by the place where the
    names of most pages stand."""

    def agreed(place: dict[int, list[str]]) -> int:
        return sum(authors_agree(place.get(i), samples[i].labels.authors) for i in labelled)

    best = max(places, key=agreed, default={})
    if agreed(best) < _OUTVOTES * len(labelled):
        return samples
    return _with_names(samples, best, guessed)


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
    """Without names that belong to the site's frame: such as stand on most pages and are taken for
    the author on few, and a paper's that stands beside each person's."""
    if len(samples) < _LEAST_FILED:
        return samples
    frame = _beside_each_author(samples) | _on_most_pages(samples)
    out = []
    for sample in samples:
        kept = [n for n in sample.labels.authors if norm(n) not in frame]
        out.append(_named(sample, kept) if len(kept) < len(sample.labels.authors) else sample)
    return out


def _beside_each_author(samples: list[Sample]) -> set[str]:
    signed = [s.labels.authors for s in samples if s.labels.authors]
    shared = (names for names in signed if len(names) > 1)
    beside = Counter(norm(name) for names in shared for name in set(names))
    return {name for name, pages in beside.items() if pages >= _FILED * len(signed)}


def _on_most_pages(samples: list[Sample]) -> set[str]:
    """Of the names that are taken for the author on few pages."""
    labelled = Counter(norm(name) for s in samples for name in set(s.labels.authors))
    few = {name for name, pages in labelled.items() if pages < _LABELLED * len(samples)}
    if not few:
        return set()
    texts = list(map(_whole_text, samples))
    return {name for name in few if sum(name in t for t in texts) >= _FIXTURE * len(samples)}


def _whole_text(sample: Sample) -> str:
    body = sample.doc.tree.body
    return "" if body is None else norm(body.text(deep=True, separator=" "))


def _as_stated(samples: list[Sample]) -> list[Sample]:
    """Without the names that were read from bylines, where metadata state enough of them."""
    stated = sum(bool(s.labels.authors) and not _is_guessed(s) for s in samples)
    if stated < _STATED * len(samples):
        return samples
    return [_named(s, []) if _is_guessed(s) else s for s in samples]


def _is_guessed(sample: Sample) -> bool:
    """Whether its names were read from a byline."""
    return bool(sample.labels.authors) and sample.labels.authors_by.startswith("byline")


def _score(place: Candidate, by_page: dict[int, list[str]], samples: list[Sample]) -> float | None:
    """None: not a byline's place."""
    named = [names for names in by_page.values() if names]
    if len(named) < max(_LEAST_NAMES, _NAMED * len(samples)):
        return None
    texts = [_texts_at(place, sample) for sample in samples]
    if any(len(found) > 1 for found in texts):
        return None
    filled = [found[0] for found in texts if any(found)]
    if ":" in place.css:
        # A first child may be any paragraph: the executor takes lines of names alone.
        filled = list(filter(is_line_of_names, filled))
    if len(named) < _PURE * len(filled):  # what else stands there now and then: no byline's place
        return None
    distinct = len({norm(n) for names in named for n in names})
    if _has_label(named) or distinct < max(_LEAST_NAMES, _DISTINCT * len(named)):
        return None
    cost_of_label = 0.1 if place.label else 0.0
    return len(named) / len(samples) + 0.2 * css.rank(place.css) - cost_of_label


def _texts_at(place: Candidate, sample: Sample) -> list[str]:
    texts = map(_text, css.hits(sample.doc.tree, place.css))
    return [text for text in texts if text.startswith(place.label)]


def _has_label(named: list[list[str]]) -> bool:
    """Whether one name stands beside the person's on most pages: a paper's, as its label."""
    shared = (names for names in named if len(names) > 1)
    often = Counter(norm(name) for names in shared for name in names)
    return bool(often) and max(often.values()) >= _FILED * len(named)


def _text(node: LexborNode) -> str:
    return collapse(node.text(deep=True, separator=" "))


def _candidates(sample: Sample) -> dict[Candidate, list[str]]:
    """Place -> names, for nodes below the headline that hold a name and nothing else,
    where it hits once."""
    whole = norm(sample.labels.content or "")
    out: dict[Candidate, list[str]] = {}
    for node in _below_headline(sample):
        text = _text(node)
        if not 4 <= len(text) <= _LONGEST or _is_elsewhere(node):
            continue
        if _in_running_text(node, text, whole):
            continue
        for label, names in _lines(node, text, sample.context.site_name):
            for place in (Candidate(s, label=label) for s in _places(node)):
                if place not in out and _hits_once(sample, place):
                    out[place] = names
    return out


def _below_headline(sample: Sample) -> list[LexborNode]:
    """Nodes that may hold a name, behind the first heading that says the headline."""
    body = sample.doc.tree.body
    if body is None:
        return []
    ordered = list(body.css(_NODES + ", h1, h2"))[:_MOST_NODES]
    title = sample.labels.title or "-"
    for position, node in enumerate(ordered):
        is_heading = node.tag in ("h1", "h2")
        if is_heading and title_agrees(node.text(deep=True, separator=" "), title):
            return ordered[position + 1 :]
    return []


def _lines(node: LexborNode, text: str, site: str | None) -> Iterator[tuple[str, list[str]]]:
    """Label and names: of a line that holds names of two words and more, and nothing else but a
    label before them."""
    for label in _labels(node, text, site):
        line = re.sub(r"\([^)]{0,300}\)", "", text[len(label) :])
        names = authors_.clean([line], site)
        if names and all(2 <= len(n.split()) <= 5 for n in names) and is_line_of_names(line, site):
            yield label, names


def _labels(node: LexborNode, text: str, site: str | None) -> list[str]:
    """What may be a label before the names of a line, "" first."""
    first = next((n for n in authors_.clean([text], site) if len(n.split()) > 1), "")
    signs = (sign for sign in (" / ", " | ", ": ") if sign in text)
    heads = [text.partition(sign)[0] + sign.rstrip() for sign in signs]
    heads += map(_text, node.css("strong, b, span, em")[:1])  # "<strong>Author</strong> Jane Doe"
    rests = [first, *(text[len(head) :].lstrip() for head in heads if text.startswith(head))]
    labels = (css.label_before(text, rest) for rest in rests if rest)
    return list(dict.fromkeys(["", *labels]))


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
