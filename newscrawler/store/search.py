"""The query language and how a query is relaxed until it finds something. Pure; both stores use it.

    words            all of them, anywhere in title or content
    "a phrase"       as written; “…” works as well
    -word -"phrase"  not with it (a minus before a digit is a word: "-5 độ")
    title:word title:"a phrase"       in the title
    author:name author:"full name"    in the list of authors, or of credits (agencies, desks)
    site:vnexpress.net                several: any of them
    after:2026-08-01 before:2026-09-01   published from / before that day, UTC; also 2026-08 and 2026

A query typed with diacritics means them: exact words first. When that finds fewer than ``FEW``, words
are compared folded, then unknown words are corrected, then any of the rarest words will do. A quoted
phrase, a field and an exclusion are never given up, only folded.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from newscrawler.store.base import DEEPEST, Query, QueryError, Relaxed
from newscrawler.store.fold import exact_words, folded_words

#: Fewer exact matches than this, and the folded ones are shown below them.
FEW = 10
#: Words in more than this share of the articles say nothing about what is looked for.
COMMON = 0.05
#: How many of the rarest words an OR asks for: a plain OR of all is slow and finds everything.
OR_WORDS = 4
#: So many words in a row are a quotation: who has them comes before everything else.
QUOTATION = 5
#: Words of a query beyond this are ignored (a pasted page would be an expensive AND).
MOST_TERMS = 32

_PART = re.compile(
    r"""(?P<minus>-(?=["“”\w])(?!\d))?
        (?:(?P<key>title|author|site|after|before):(?=\S))?
        (?:["“”](?P<phrase>[^"“”]*)["“”]|(?P<word>[^\s"“”]+))""",
    re.VERBOSE | re.IGNORECASE,
)
_DAY = re.compile(r"(\d{4})(?:-(\d{1,2}))?(?:-(\d{1,2}))?")


@dataclass(frozen=True, slots=True)
class Term:
    """Words that must stand next to one another. Both forms have the same meaning, not always the same length."""

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
    sites: tuple[str, ...] = ()
    after: datetime | None = None
    before: datetime | None = None
    is_exact: bool = False  # compare ``terms`` and ``title`` with diacritics
    # All words in a row: articles that have them like this come first.
    whole: Term | None = None
    relaxed: Relaxed = ""
    corrections: tuple[tuple[str, str], ...] = ()

    @property
    def is_filter_only(self) -> bool:
        return not self.terms and not self.any_of and not self.title


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
    """The most frequent known word within one edit of each unknown folded word; {} where there is none."""

    words: tuple[str, ...]


Ask = Count | Frequencies | Correct


def parse(query: Query) -> Plan:
    """The query as typed, compared exactly where it was typed with diacritics. Raises QueryError."""
    if query.page < 0 or not 1 <= query.size <= 100:
        raise QueryError(f"page={query.page} size={query.size}: page counts from 0, size is 1 to 100")
    if (query.page + 1) * query.size > DEEPEST:
        raise QueryError(f"page {query.page} is too deep ({DEEPEST:,} hits at most): narrow the query, e.g. by before:")
    fields: dict[str, list[Term]] = {"": [], "title": [], "author": [], "not": []}
    sites = list(query.sites)
    after, before = query.after, query.before
    parts = list(_PART.finditer(_balanced(query.text)))
    for place, match in enumerate(parts):
        key, quoted = (match["key"] or "").lower(), match["phrase"] is not None
        text = match["phrase"] if quoted else match["word"]
        if key == "site":
            sites.append(text.lower())
        elif key == "after":
            after = max(day(key, text), after) if after else day(key, text)
        elif key == "before":
            before = min(day(key, text), before) if before else day(key, text)
        else:
            term = Term.of(text, quoted)
            if term.exact or term.folded:
                is_not = bool(match["minus"]) and not _is_quoted_text(parts, place)
                fields["not" if is_not else key].append(term)
    terms = tuple(fields[""][:MOST_TERMS])
    titles = tuple(fields["title"])
    return Plan(
        terms=terms,
        title=titles,
        authors=tuple(fields["author"]),
        exclude=tuple(fields["not"]),
        sites=tuple(dict.fromkeys(sites)),
        after=after,
        before=before,
        is_exact=any(t.has_diacritics for t in terms + titles),
        whole=_in_a_row(terms),
    )


def _is_quoted_text(parts: list[re.Match[str]], place: int) -> bool:
    """Whether a ``-word`` stands in the middle of a sentence that somebody copied ("Börsenkenner und -einsteiger"):
    among eight words or more, plain ones on both sides. Who excludes a word does it in a short query or at its end."""
    plain = [not (m["minus"] or m["key"] or m["phrase"] is not None) for m in parts]
    if len(parts) < 8 or sum(plain) < 6 or not 0 < place < len(parts) - 1:
        return False
    return plain[place - 1] and plain[place + 1]


def ladder(plan: Plan) -> Generator[Ask, object, Plan]:
    """Find the plan to answer with: yields what it has to know, returns the plan. See the head of the module."""
    if plan.is_filter_only:
        return plan
    found = yield Count(plan, FEW)
    if not plan.is_exact:
        if found:
            return plan
    elif found >= FEW:  # type: ignore[operator]
        return plan
    else:
        folded = replace(plan, is_exact=False)
        wider = yield Count(folded, FEW)
        if wider:
            return folded if found else replace(folded, relaxed="folded")
        plan = folded
    return (yield from _relax(plan))


def _relax(plan: Plan) -> Generator[Ask, object, Plan]:
    loose = [t for t in plan.terms if not t.quoted]
    if not loose:
        return plan
    words = tuple(dict.fromkeys(w for t in loose for w in _pieces(t)))
    share = yield Frequencies(words)
    assert isinstance(share, dict)
    unknown = tuple(t.folded[0] for t in words if len(t.folded) == 1 and not share[t] and len(t.folded[0]) > 2)
    better = (yield Correct(unknown)) if unknown else {}
    assert isinstance(better, dict)
    if better:
        terms = tuple(t if t.quoted else _corrected(t, better) for t in plan.terms)
        corrected = replace(
            plan, terms=terms, whole=_in_a_row(terms), relaxed="corrected", corrections=tuple(better.items())
        )
        if (yield Count(corrected, 1)):
            return corrected
        new = tuple(Term((w,), (w,)) for w in better.values())
        share = share | (yield Frequencies(new))  # type: ignore[operator]
        words = tuple(dict.fromkeys(_corrected(t, better) for t in words))
    known = sorted((t for t in words if share.get(t)), key=lambda t: (share[t], t.folded))
    rarest = [t for t in known if share[t] < COMMON] or known
    if not rarest:
        return plan
    return replace(
        plan,
        terms=tuple(t for t in plan.terms if t.quoted),
        any_of=tuple(rarest[:OR_WORDS]),
        relaxed="any",
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
    if len(terms) < 2:
        return None
    return Term(tuple(w for t in terms for w in t.exact), tuple(w for t in terms for w in t.folded), quoted=True)


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
        raise QueryError(f"{key}:{text}: not a day; write {key}:2026-08-31, {key}:2026-08 or {key}:2026") from None
