"""Who wrote a page that no selector set reads: the rules' answer where two places of the page state
it, else what the weights choose of all candidates. Pure."""

from __future__ import annotations

from newscrawler.extraction import agreement, authors, byline_text, bylines
from newscrawler.extraction.author_choice import candidates, model
from newscrawler.extraction.author_choice.features import Rules
from newscrawler.extraction.context import PageContext
from newscrawler.extraction.document import Document
from newscrawler.items import FieldValue

#: From here on the weights won nothing over the rules, by cross-validation (docs/decisions.md).
SURE = 0.78
#: Origins of names that the weights chose and the rules did not: the kind of place stands behind.
CHOSEN = "chosen:"


def find(doc: Document, context: PageContext) -> FieldValue:
    """The authors with their origin; value [] where nobody is likely enough. The confidence is the
    share of pages that are right where names are so likely, by cross-validation."""
    answer = bylines.by_rules(doc, context)
    if answer.origin == "feed":
        return answer
    weights = model.shipped()
    if is_settled(doc, answer):
        sure = weights.sure_of_rules(answer.confidence)
        return FieldValue(answer.value, answer.origin, sure)
    page = candidates.find(doc, context, answer.value)
    chosen = model.choose(page, Rules.of(answer), weights)
    people = [one for one in chosen.candidates if not candidates.is_body(one, page.own)]
    if not people:
        for one in chosen.candidates:
            byline_text.note(doc, one.name)  # for extraction.credits
        return FieldValue([])
    names = [one.name for one in people]
    same = frozenset(one.key for one in people) == frozenset(map(authors.key, answer.value))
    origin = answer.origin if same else CHOSEN + (people[0].places or _NO_PLACE)[0].kind
    return FieldValue(answer.value if same else names, origin, weights.sure(chosen.weakest))


_NO_PLACE = [candidates.Place("line")]


def rated(doc: Document, context: PageContext) -> list[tuple[candidates.Candidate, float]]:
    """Every candidate with its probability, the likeliest first: for ``scrapy extract
    --explain``."""
    answer = bylines.by_rules(doc, context)
    page = candidates.find(doc, context, answer.value)
    return sorted(model.rate(page, Rules.of(answer), model.shipped()), key=lambda item: -item[1])


def is_settled(doc: Document, answer: FieldValue) -> bool:
    """Whether nothing is to be weighed: the rules are sure, or two independent places of the page
    state every name that they found."""
    if answer.confidence >= SURE:
        return True
    known = agreement.names(doc) if answer.value else frozenset()
    return bool(known) and all(authors.key(name) in known for name in answer.value)
