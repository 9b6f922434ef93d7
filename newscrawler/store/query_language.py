"""The query language and how a query is relaxed until it finds something. Pure; both stores use it.

    words            all of them, anywhere in title or content "a phrase"       as written;
    “…” works as well -word -"phrase"  not with it (a minus before a digit is a word: "-5
    độ") title:word title:"a phrase"       in the title author:name author:"full name"    in
    the list of authors, or of credits (agencies, desks) site:vnexpress.net
    several: any of them after:2026-08-01 before:2026-09-01   published from / before that
    day, UTC; also 2026-08 and 2026

A query typed with diacritics means them: exact words first. When that finds fewer than ``FEW``,
words are compared folded, then unknown words are corrected, then any of the rarest words will do. A
quoted phrase, a field and an exclusion are never given up, only folded.
"""

from __future__ import annotations

import math
import re
from collections.abc import Generator, Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import pairwise

from newscrawler.items import FIELDS
from newscrawler.store.base import DEEPEST, Query, QueryError, QueryTooLarge, Relaxed
from newscrawler.store.fold import exact_words, folded_words
from newscrawler.store.labels import KEYS, folded

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
#: So many words in a row are a quotation: who has them comes before everything else.
QUOTATION = 5
#: Words of a query beyond this are ignored (a pasted page would be an expensive AND).
MOST_TERMS = 32
#: Letters of a word, at most: what is longer is no word of any language but a key or an attack.
LONGEST_WORD = 100
#: Longer words are not corrected: each letter of one is a hundred candidates more.
LONGEST_CORRECTED = 32
#: Letters of a value that is filtered by.
LONGEST_LABEL = 200
#: Sites that one query may name.
MOST_SITES = 100

#: Keys of fields whose words are looked for.
WORD_KEYS = tuple(dict.fromkeys(f.key for f in FIELDS if f.key and not f.facet))
_PART = re.compile(
    rf"""(?P<minus>-(?=["“”\w])(?!\d))?
        (?:(?P<key>{"|".join((*WORD_KEYS, *KEYS))}|site|after|before):(?=\S))?
        (?:["“”](?P<phrase>[^"“”]*)["“”]|(?P<word>[^\s"“”]+))""",
    re.VERBOSE | re.IGNORECASE,
)
_DAY = re.compile(r"(\d{4})(?:-(\d{1,2}))?(?:-(\d{1,2}))?")


@dataclass(frozen=True, slots=True)
class Term:
    """Words that must stand next to one another. Both forms have the same meaning, not
    always the same length."""

    exact: tuple[str, ...]
    folded: tuple[str, ...]
    quoted: bool = False

    @classmethod
    def of(cls, text: str, quoted: bool = False) -> Term:
        return cls(tuple(exact_words(text)), tuple(folded_words(text)), quoted)

    def words(self, is_exact: bool) -> tuple[str, ...]:
        return self.exact if is_exact else self.folded

    @property
    def has_diacritics(self) -> bool:
        return self.exact != self.folded


@dataclass(frozen=True, slots=True)
class Plan:
    """One way to ask: what the stores translate into their own language."""

    terms: tuple[Term, ...] = ()  # each of them in title or content
    any_of: tuple[Term, ...] = ()  # and one of these, when there are any
    title: tuple[Term, ...] = ()
    authors: tuple[Term, ...] = ()  # always compared folded
    exclude: tuple[Term, ...] = ()  # exact where typed with diacritics
    without_title: tuple[Term, ...] = ()
    without_authors: tuple[Term, ...] = ()
    sites: tuple[str, ...] = ()
    without_sites: tuple[str, ...] = ()
    labels: tuple[tuple[str, str], ...] = ()  # key and folded value: each of them
    without_labels: tuple[tuple[str, str], ...] = ()
    after: datetime | None = None
    before: datetime | None = None
    is_exact: bool = False  # compare ``terms`` and ``title`` with diacritics
    # Other ways to match than by all ``terms`` that are not quoted: all but so many of them in the
    # title (folded); one of these, as it stands.
    by_all: bool = True  # False: only these other ways
    title_misses: int = 0
    instead: tuple[Term, ...] = ()
    # All words in a row: articles that have them like this come first.
    whole: Term | None = None
    relaxed: Relaxed = ""
    corrections: tuple[tuple[str, str], ...] = ()

    @property
    def is_filter_only(self) -> bool:
        return not self.terms and not self.any_of and not self.title

    @property
    def has_filters(self) -> bool:
        """Whether anything but words and their exclusion restricts it."""
        return bool(
            self.authors or self.sites or self.labels or self.after or self.before
            or self.without_title or self.without_authors or self.without_sites
            or self.without_labels
        )  # fmt: skip

    @property
    def loose(self) -> tuple[Term, ...]:
        """The terms that may be given up."""
        return tuple(t for t in self.terms if not t.quoted and t.folded)


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
class Correct:
    """The known word within one edit of each unknown folded word of ``plan`` that goes best with
    the others; no entry where there is none."""

    words: tuple[str, ...]
    plan: Plan


Ask = Count | Frequencies | Correct


def parse(query: Query) -> Plan:
    """The query as typed, compared exactly where it was typed with diacritics.
    Raises QueryError."""
    if query.page < 0 or not 1 <= query.size <= 100:
        raise QueryError(
            f"page={query.page} size={query.size}: page counts from 0, size is 1 to 100"
        )
    if (query.page + 1) * query.size > DEEPEST:
        raise QueryError(
            f"page {query.page} is too deep ({DEEPEST:,} hits at most): narrow the query, e.g. by"
            " before:"
        )
    fields: dict[str, list[Term]] = {key: [] for key in ("", *WORD_KEYS)}
    without: dict[str, list[Term]] = {key: [] for key in fields}
    sites, without_sites = list(query.sites), list[str]()
    labels = [(key, _label(key, value)) for key, value in query.labels]
    without_labels: list[tuple[str, str]] = []
    after, before = query.after, query.before
    parts = list(_PART.finditer(_balanced(query.text)))
    for place, match in enumerate(parts):
        key, quoted = (match["key"] or "").lower(), match["phrase"] is not None
        text = match["phrase"] if quoted else match["word"]
        is_not = bool(match["minus"])
        if key == "site":
            (without_sites if is_not else sites).append(text.lower())
        elif key in KEYS:
            (without_labels if is_not else labels).append((key, _label(key, text)))
        elif key in ("after", "before"):
            at = day(key, text)
            if (key == "after") != is_not:
                after = max(at, after) if after else at
            else:
                before = min(at, before) if before else at
        else:
            term = Term.of(text, quoted)
            if term.exact or term.folded:
                is_not = is_not and not _is_quoted_text(parts, place)
                (without if is_not else fields)[key].append(term)
    terms, titles, authors = (tuple(fields[k][:MOST_TERMS]) for k in ("", "title", "author"))
    no_terms, no_titles, no_authors = (
        tuple(without[k][:MOST_TERMS]) for k in ("", "title", "author")
    )
    _refuse_large(
        (*terms, *titles, *authors, *no_terms, *no_titles, *no_authors), sites + without_sites
    )
    plan = Plan(
        terms=terms,
        title=titles,
        authors=authors,
        exclude=no_terms,
        without_title=no_titles,
        without_authors=no_authors,
        sites=tuple(dict.fromkeys(sites)),
        without_sites=tuple(dict.fromkeys(without_sites)),
        labels=_labels(labels),
        without_labels=_labels(without_labels),
        after=after,
        before=before,
        is_exact=any(t.has_diacritics for t in terms + titles),
        whole=_in_a_row(terms),
    )
    if query.text.strip() and plan.is_filter_only and not plan.has_filters:
        raise QueryError(
            f"{query.text.strip()[:40]}: no word to look for; add one, or a field as in "
            "site:vnexpress.net"
        )
    return plan


def _label(key: str, value: str) -> str:
    """What is compared of a value. Raises QueryTooLarge."""
    if len(value) > LONGEST_LABEL:
        raise QueryTooLarge(
            f"{key}:{value[:20]}…: a value of {len(value)} letters; {LONGEST_LABEL} are the most"
        )
    return folded(value)


def _labels(found: list[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """Each once; what has no word is left out, as elsewhere in a query."""
    return tuple(dict.fromkeys(label for label in found if label[1]))[:MOST_TERMS]


def _refuse_large(terms: Iterable[Term], sites: list[str]) -> None:
    longest = max((word for term in terms for word in term.exact), key=len, default="")
    if len(longest) > LONGEST_WORD:
        raise QueryTooLarge(
            f"{longest[:20]}…: a word of {len(longest)} letters; {LONGEST_WORD} are the most"
        )
    if len(sites) > MOST_SITES:
        raise QueryTooLarge(f"{len(sites)} sites are named; {MOST_SITES} are the most")
    if any(len(site) > 255 for site in sites):
        raise QueryTooLarge("site: a name of more than 255 letters")


def _is_quoted_text(parts: list[re.Match[str]], place: int) -> bool:
    """Whether a ``-word`` stands in the middle of a sentence that somebody copied ("Börsenkenner
    und -einsteiger"): among eight words or more, plain ones on both sides. Who excludes a word does
    it in a short query or at its end."""
    plain = [not (m["minus"] or m["key"] or m["phrase"] is not None) for m in parts]
    if len(parts) < 8 or sum(plain) < 6 or not 0 < place < len(parts) - 1:
        return False
    return plain[place - 1] and plain[place + 1]


def ladder(plan: Plan) -> Generator[Ask, object, Plan]:
    """Find the plan to answer with: yields what it has to know, returns the plan. See the head of
    the module."""
    if plan.is_filter_only:
        return plan
    found = yield from _count(plan, NEAR)
    if plan.is_exact and found < FEW:
        folded = replace(plan, is_exact=False)
        wider = yield from _count(folded, NEAR)
        plan = folded if found or not wider else replace(folded, relaxed="folded")
        found = wider
    return (yield from _widen(plan, found) if found else _relax(plan))


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
    unknown = tuple(
        t.folded[0]
        for t in words
        if len(t.folded) == 1 and not share[t] and 2 < len(t.folded[0]) <= LONGEST_CORRECTED
    )
    better = (yield Correct(unknown, plan)) if unknown else {}
    assert isinstance(better, dict)
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
    return tuple(_row(terms[a:b]) for a, b in pairwise(borders))


def corrected(plan: Plan, better: dict[str, str]) -> Plan:
    """With words in the place of others; quoted ones stay."""
    terms = tuple(t if t.quoted else _corrected(t, better) for t in plan.terms)
    return replace(
        plan,
        terms=terms,
        whole=_in_a_row(terms),
        relaxed="corrected",
        corrections=tuple(better.items()),
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


def _in_a_row(terms: tuple[Term, ...]) -> Term | None:
    return _row(terms) if len(terms) > 1 else None


def _row(terms: tuple[Term, ...]) -> Term:
    return Term(
        tuple(w for t in terms for w in t.exact),
        tuple(w for t in terms for w in t.folded),
        quoted=True,
    )


def _balanced(text: str) -> str:
    """The last quotation mark without a partner is a space."""
    marks = [m.start() for m in re.finditer('["“”]', text)]
    if len(marks) % 2:
        text = text[: marks[-1]] + " " + text[marks[-1] + 1 :]
    return text


def day(key: str, text: str) -> datetime:
    """First moment, UTC, of a day, month or year. Raises QueryError naming ``key``."""
    match = _DAY.fullmatch(text)
    try:
        if match is None:
            raise ValueError
        year, month, day = (int(g) if g else 1 for g in match.groups())
        return datetime(year, month, day, tzinfo=UTC)
    except ValueError:
        raise QueryError(
            f"{key}:{text}: not a day; write {key}:2026-08-31, {key}:2026-08 or {key}:2026"
        ) from None
