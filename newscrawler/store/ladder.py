"""The ladder: how a query is relaxed until it finds something. Pure; both stores climb it.

Each word gets its other spellings first (store.spellings).

A query typed with diacritics means them: exact words first. When that finds fewer than ``FEW``,
words are compared folded, then unknown words are corrected, then any of the rarest words will do. A
field, an alternative and an exclusion are never given up, only folded.

A quoted phrase is meant as it stands, and what has it is all that is shown. Only where nothing has
it may a word of it be mistyped: then it is looked for with one word corrected, still as a phrase,
and else its words without the quotation marks, of which none is given up but a wrong one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise

from newscrawler.store import query_tree
from newscrawler.store.query_language import (
    MOST_TERMS,
    AllOf,
    AnyOf,
    Condition,
    NoneOf,
    Plan,
    Term,
    Words,
    in_a_row,
    row,
)
from newscrawler.store.spellings import spelt, splits

#: Fewer exact matches than this, and the folded ones are shown below them.
FEW = 10
#: Fewer matches than this of a query of ``LONG`` words and more, and one of its words may be wrong:
#: in a store of many articles of some hundred words, chance alone has any four common ones
#: somewhere.
NEAR = 2_000
LONG = 4
#: From so many words on a part of them as it stands is proof enough, and two may be missing in a
#: title.
LONGER = 6
#: Share of the words of a query that a title must have when nothing else is found.
MOST_OF_TITLE = 0.6
#: Words in more than this share of the articles say nothing about what is looked for.
COMMON = 0.05
#: How many of the rarest words an OR asks for: a plain OR of all is slow and finds everything.
OR_WORDS = 4
#: Longer words are not corrected: each letter of one is a hundred candidates more.
LONGEST_CORRECTED = 32
#: Known words that an unknown one may be meant as.
CANDIDATES = 8
#: Phrases of one query that are corrected, and ways to write them that are compared. More of a word
#: than above: its neighbours say more than how frequent it is.
MOST_MENDED, MOST_WAYS = 2, 24
#: Letters of a word of a phrase that is corrected, at least.
SHORTEST_CORRECTED = 2
#: Places of a phrase at which its wrong word may be, of those that its beginning and its end leave.
MOST_PLACES = 3
#: Words of one query that are corrected, and plans that are compared to choose among the candidates
#: of one.
MOST_CORRECTED, MOST_TRIES = 8, 6
#: Said of a query whose phrases nothing has.
UNQUOTED = "nothing has the words within quotation marks as they stand; they are read without them"


# What the ladder asks of a store, and what it is sent back.
@dataclass(frozen=True, slots=True)
class Count:
    """How many articles match ``plan``; the answer may stop at ``enough``."""

    plan: Plan
    enough: int


@dataclass(frozen=True, slots=True)
class Frequencies:
    """Share of the articles (0..1) with each term, folded; 0.0 = in none at all."""

    terms: tuple[Term, ...]


@dataclass(frozen=True, slots=True)
class Near:
    """Known words within one edit of each of these folded words, the most frequent first."""

    words: tuple[str, ...]
    most: int = CANDIDATES  # of each


@dataclass(frozen=True, slots=True)
class Counts:
    """How many articles match each plan."""

    plans: tuple[Plan, ...]


@dataclass(frozen=True, slots=True)
class Scores:
    """The score of the best match of each plan."""

    plans: tuple[Plan, ...]


Ask = Count | Frequencies | Near | Counts | Scores


def ladder(plan: Plan) -> Generator[Ask, object, Plan]:
    """Find the plan to answer with: yields what it has to know, returns the plan. See the head of
    the module."""
    if plan.is_filter_only:
        return plan
    plan = yield from _spelt(plan)
    found = yield from _count(plan, NEAR)
    if plan.is_exact and found < FEW:
        folded = replace(plan, is_exact=False)
        wider = yield from _count(folded, NEAR)
        plan = folded if found or not wider else replace(folded, relaxed="folded")
        found = wider
    if found:
        return (yield from _widen(plan, found))
    if any(term.quoted for term in plan.terms) and not (yield from _has_phrases(plan)):
        return (yield from _mend(plan))
    return (yield from _relax(plan))


def _has_phrases(plan: Plan) -> Generator[Ask, object, bool]:
    """Whether something has the phrases, so that it is the other words that are in the way."""
    quoted = tuple(term for term in plan.terms if term.quoted)
    return quoted != plan.terms and bool((yield from _count(_only(plan, quoted), 1)))


def _only(plan: Plan, terms: tuple[Term, ...]) -> Plan:
    """These words alone, with what restricts the query."""
    return replace(plan, terms=terms, whole=None)


def _mend(plan: Plan) -> Generator[Ask, object, Plan]:
    """Nothing has the phrases: one word of each may be mistyped."""
    terms = list(plan.terms)
    better: dict[str, str] = {}
    phrases = [place for place, term in enumerate(terms) if term.quoted]
    ways = MOST_WAYS // min(len(phrases), MOST_MENDED)
    for place in phrases[:MOST_MENDED]:
        if not (yield from _count(_only(plan, (terms[place],)), 1)):
            terms[place], corrections = yield from _mended(plan, terms[place], ways)
            better |= corrections
    if better:
        mended_plan = replace(
            plan,
            terms=tuple(terms),
            whole=in_a_row(tuple(terms)),
            relaxed="corrected",
            corrections=tuple(better.items()),
        )
        if found := (yield from _count(mended_plan, NEAR)):
            return (yield from _widen(mended_plan, found))
        if (yield from _has_phrases(mended_plan)):
            return (yield from _relax(mended_plan))
    return (yield from _unquote(plan))


def _mended(
    plan: Plan, phrase: Term, most_ways: int
) -> Generator[Ask, object, tuple[Term, dict[str, str]]]:
    """The phrase with the word in the place of another one that makes it a phrase which most
    articles have, and that word; the phrase itself where there is none.

    The word is wrong where what stands before it is still found and what stands after it as well:
    so a few questions find the place, also of a slip that made another real word."""
    words = phrase.folded
    before = yield from _longest(plan, len(words), lambda n: words[:n])
    after = yield from _longest(plan, len(words), lambda n: words[len(words) - n :])
    # At least one word has to be right, or any word would do.
    places = range(max(0, len(words) - after - 1), min(before, len(words) - 1) + 1)
    if (len(words) > 1 and not before and not after) or len(places) > MOST_PLACES:
        return phrase, {}
    lengths = range(SHORTEST_CORRECTED, LONGEST_CORRECTED + 1)
    asked = tuple(words[at] for at in places if len(words[at]) in lengths)
    if not asked:
        return phrase, {}
    near = yield Near(asked, most_ways // len(asked))
    assert isinstance(near, dict)
    tries: dict[tuple[str, str], Term] = {}
    for at in places:
        for candidate in near.get(words[at], ()):
            made = (*words[:at], candidate, *words[at + 1 :])
            tries[words[at], candidate] = Term(made, made, quoted=True)
    if not tries:
        return phrase, {}
    counts = yield Counts(tuple(_only(plan, (term,)) for term in tries.values()))
    assert isinstance(counts, list)
    most, best = max(zip(counts, tries, strict=True), key=lambda found: found[0])
    return (tries[best], dict([best])) if most else (phrase, {})


def _longest(
    plan: Plan, most: int, piece: Callable[[int], tuple[str, ...]]
) -> Generator[Ask, object, int]:
    """Words of the longest piece that something has as it stands, below ``most``: what has a longer
    one has the shorter ones."""
    low, high = 0, most
    while high - low > 1:
        middle = (low + high) // 2
        words = piece(middle)
        asked = _only(plan, (Term(words, words, quoted=True),))
        if (yield from _count(asked, 1)):
            low = middle
        else:
            high = middle
    return low


def _unquote(plan: Plan) -> Generator[Ask, object, Plan]:
    """The words of the phrases for themselves. Never a few of them: who quotes wants all."""
    terms = tuple(word for term in plan.terms for word in _words_of(term))[:MOST_TERMS]
    loose = replace(
        plan,
        terms=terms,
        whole=in_a_row(terms),
        relaxed="unquoted",
        read_as=query_tree.unquoted(plan.read_as),
        notes=(*plan.notes, UNQUOTED),
    )
    if found := (yield from _count(loose, NEAR)):
        return (yield from _widen(loose, found))
    relaxed = yield from _relax(loose)
    return plan if relaxed.any_of or not relaxed.relaxed else relaxed


def _words_of(term: Term) -> tuple[Term, ...]:
    """Of a phrase each of its words; of one that is written without spaces the run of it."""
    if not term.quoted:
        return (term,)
    if max(map(len, term.folded), default=0) < 2:
        return (replace(term, quoted=False),)
    return tuple(Term.of(word) for word in term.exact)


def _spelt(plan: Plan) -> Generator[Ask, object, Plan]:
    """With other spellings: those that are known, and of a word that may be several syllables
    ("hanoi") those ways that no fewer articles write."""
    terms = list(spelt(plan.terms))
    for place, term in enumerate(terms):
        ways = splits(term.folded[0]) if len(term.folded) == 1 and not term.quoted else ()
        if not ways:
            continue
        asked = tuple(Term(way, way, quoted=True) for way in ways)
        share = yield Frequencies((Term(term.folded, term.folded), *asked))
        assert isinstance(share, dict)
        joined = share[Term(term.folded, term.folded)]
        found = tuple(way.folded for way in asked if share[way] and share[way] >= joined)
        terms[place] = replace(term, spellings=term.spellings + found)
    conditions = tuple(_spelt_condition(one) for one in plan.conditions)
    return replace(plan, terms=tuple(terms), conditions=conditions)


def _spelt_condition(one: Condition) -> Condition:
    if isinstance(one, (AllOf, AnyOf)):
        return type(one)(tuple(map(_spelt_condition, one.parts)))
    if isinstance(one, NoneOf):
        return NoneOf(_spelt_condition(one.part))
    if isinstance(one, Words) and one.where != "author":
        return replace(one, term=spelt([one.term])[0])
    return one


def _count(plan: Plan, enough: int) -> Generator[Ask, object, int]:
    found = yield Count(plan, enough)
    assert isinstance(found, int)
    return found


def _widen(plan: Plan, found: int) -> Generator[Ask, object, Plan]:
    """Few articles have all of many words: those count that have them by more than chance."""
    loose = plan.loose
    if len(loose) < LONG:
        return plan
    near = replace(plan, title_misses=1) if found < NEAR else plan
    if len(loose) < LONGER or plan.whole is None:
        return near
    if (yield from _count(replace(plan, terms=(plan.whole,)), 1)):
        return near  # somebody has it word for word
    if near.title_misses and (yield from _count(replace(near, by_all=False), 1)):
        return near
    return replace(near, instead=_parts(loose, 2))


def _relax(plan: Plan) -> Generator[Ask, object, Plan]:
    """Nothing has all the words."""
    if not plan.loose:
        return plan
    words = tuple(dict.fromkeys(w for t in plan.loose for w in _pieces(t)))[:MOST_TERMS]
    share = yield Frequencies(words)
    assert isinstance(share, dict)
    unknown = _unknown(words, share)
    better = (yield from _corrections(unknown, plan)) if unknown else {}
    if better:
        plan = corrected(plan, better)
        if found := (yield from _count(plan, NEAR)):
            return (yield from _widen(plan, found))
        new = tuple(Term((w,), (w,)) for w in better.values())
        of_the_new = yield Frequencies(new)
        assert isinstance(of_the_new, dict)
        share = share | of_the_new
        words = tuple(dict.fromkeys(_corrected(t, better) for t in words))
    plan = replace(plan, relaxed="any")
    for looser in _looser(plan):
        if (yield from _count(looser, 1)):
            return looser
    return _any_of(plan, words, share)


def _unknown(words: tuple[Term, ...], share: Mapping[Term, float]) -> tuple[str, ...]:
    """Words that no article has and that may be another one with a slip."""
    single = (t for t in words if len(t.folded) == 1 and not share[t])
    return tuple(t.folded[0] for t in single if 2 < len(t.folded[0]) <= LONGEST_CORRECTED)


def _any_of(plan: Plan, words: tuple[Term, ...], share: Mapping[Term, float]) -> Plan:
    """The rarest words, of which one is enough."""
    known = sorted((t for t in words if share.get(t)), key=lambda t: (share[t], t.folded))
    rarest = [t for t in known if share[t] < COMMON] or known
    if not rarest:
        return replace(plan, relaxed="")
    quoted = tuple(t for t in plan.terms if t.quoted)
    return replace(plan, terms=quoted, any_of=tuple(rarest[:OR_WORDS]))


def _looser(plan: Plan) -> Iterable[Plan]:
    """Ways to match without all words, the strictest first."""
    loose = plan.loose
    many = len(loose)
    if many >= LONG - 1:
        yield replace(plan, title_misses=1)
    if many >= LONGER:
        yield replace(plan, title_misses=2, instead=_parts(loose, 2))
    if many >= LONGER * 3 // 2:
        yield replace(plan, title_misses=2, instead=_parts(loose, 3))
    if many >= LONG:
        yield replace(plan, title_misses=many - math.ceil(MOST_OF_TITLE * many))


def _parts(terms: tuple[Term, ...], count: int) -> tuple[Term, ...]:
    """The words in so many phrases of about the same length: a word that is wrong spoils only one
    of them."""
    borders = [round(i * len(terms) / count) for i in range(count + 1)]
    return tuple(row(terms[a:b]) for a, b in pairwise(borders))


def _corrections(words: tuple[str, ...], plan: Plan) -> Generator[Ask, object, dict[str, str]]:
    """Per unknown word the candidate that goes best with the words before it and those that are
    known; no entry where there is none."""
    near = yield Near(words[:MOST_CORRECTED])
    assert isinstance(near, dict)
    better: dict[str, str] = {}
    unknown = set(words)
    for word, candidates in near.items():
        if not candidates:
            continue
        unknown.discard(word)
        rest = tuple(t for t in plan.terms if unknown.isdisjoint(t.folded))
        around = replace(plan, terms=rest)
        better[word] = yield from _choice(around, word, candidates, better)
    return better


def _choice(
    plan: Plan, word: str, candidates: list[str], better: dict[str, str]
) -> Generator[Ask, object, str]:
    tries = {c: corrected(plan, {**better, word: c}) for c in candidates}
    found = yield from _that_match(tries)
    if not found:
        found = yield from _that_match(
            {candidate: _beside(one, candidate) for candidate, one in tries.items()}
        )
    if len(found) < 2 or len(plan.terms) == 1:
        return next(iter(found), candidates[0])
    kept = dict(list(found.items())[:MOST_TRIES])
    scores = yield Scores(tuple(kept.values()))
    assert isinstance(scores, list)
    return max(zip(scores, kept, strict=True), key=lambda pair: pair[0])[1]


def _that_match(tries: dict[str, Plan]) -> Generator[Ask, object, dict[str, Plan]]:
    counts = yield Counts(tuple(tries.values()))
    assert isinstance(counts, list)
    return {c: one for (c, one), found in zip(tries.items(), counts, strict=True) if found}


def _beside(plan: Plan, candidate: str) -> Plan:
    """The candidate next to a word that stands beside it in the query."""
    at = next((i for i, t in enumerate(plan.terms) if candidate in t.folded), 0)
    words = tuple(w for t in plan.terms[max(0, at - 1) : at + 2] for w in t.folded)
    return Plan(terms=(Term(words, words, quoted=True),))


def corrected(plan: Plan, better: dict[str, str]) -> Plan:
    """With words in the place of others; quoted ones stay."""
    terms = tuple(t if t.quoted else _corrected(t, better) for t in plan.terms)
    return replace(
        plan,
        terms=terms,
        whole=in_a_row(terms),
        relaxed="corrected",
        corrections=tuple((dict(plan.corrections) | better).items()),
    )


def _corrected(term: Term, better: dict[str, str]) -> Term:
    if not any(w in better for w in term.folded):
        return term
    words = tuple(better.get(w, w) for w in term.folded)
    return Term(words, words, term.quoted)


def _pieces(term: Term) -> Iterable[Term]:
    """The words of a term; of a run without spaces (Chinese, Thai) its pairs of characters."""
    if len(term.folded) < 2:
        return [Term(term.folded, term.folded)] if term.folded else []
    if max(map(len, term.folded)) > 1:
        return [Term((w,), (w,)) for w in term.folded]
    pairs = zip(term.folded, term.folded[1:], strict=False)
    return [Term(pair, pair) for pair in pairs]
