"""What a query asks for: the tree that was typed (store.query_tree) as a plan that both stores
translate into their own language. Pure.

Words that stand for themselves are ``Plan.terms``, which the ladder (store.ladder) may relax.
Fields, alternatives and exclusions are ``Plan.conditions``, which always hold.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, tzinfo

from newscrawler.store import query_tree
from newscrawler.store.base import DEEPEST, Query, QueryError, QueryTooLarge, Relaxed
from newscrawler.store.days import day
from newscrawler.store.fold import exact_words, folded_words
from newscrawler.store.labels import BY_WORDS, KEYS, SINGLE, compared
from newscrawler.store.query_tree import And, Leaf, Node, Not, Or

#: So many words in a row are a quotation: who has them comes before everything else.
QUOTATION = 5
#: Words of a name.
LONGEST_NAME = 5
#: Words of a query beyond this are ignored (a pasted page would be an expensive AND).
MOST_TERMS = 32
#: Words of a phrase beyond this are ignored.
LONGEST_PHRASE = 64
#: Characters of a query.
LONGEST_QUERY = 10_000
#: Letters of a word, at most: what is longer is no word of any language but a key or an attack.
LONGEST_WORD = 100
#: Letters of a value that is filtered by.
LONGEST_LABEL = 200
#: Sites that one query may name.
MOST_SITES = 100


@dataclass(frozen=True, slots=True)
class Term:
    """Words that must stand next to one another. Both forms have the same meaning, not
    always the same length. ``spellings``: other ways to write it, folded, each of them as good."""

    exact: tuple[str, ...]
    folded: tuple[str, ...]
    quoted: bool = False
    spellings: tuple[tuple[str, ...], ...] = ()

    @classmethod
    def of(cls, text: str, quoted: bool = False) -> Term:
        exact, folded = exact_words(text), folded_words(text)
        return cls(tuple(exact[:LONGEST_PHRASE]), tuple(folded[:LONGEST_PHRASE]), quoted)

    def words(self, is_exact: bool) -> tuple[str, ...]:
        return self.exact if is_exact else self.folded

    @property
    def has_diacritics(self) -> bool:
        return self.exact != self.folded


# ---------------------------------------------------------------- conditions
@dataclass(frozen=True, slots=True)
class Words:
    """``where``: "" in title or text, "title", or "author" (a list of names, compared folded)."""

    term: Term
    where: str = ""


@dataclass(frozen=True, slots=True)
class Value:
    """A whole value: ``key`` is "site" or one of ``labels.KEYS``, whose values are folded."""

    key: str
    value: str


@dataclass(frozen=True, slots=True)
class Published:
    """At or after ``after``, before ``before``; aware."""

    after: datetime | None = None
    before: datetime | None = None


@dataclass(frozen=True, slots=True)
class AllOf:
    parts: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
    parts: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class NoneOf:
    """Words below it are compared exactly where they were typed with diacritics."""

    part: Condition


Condition = Words | Value | Published | AllOf | AnyOf | NoneOf


def wanted(conditions: Iterable[Condition]) -> list[Words]:
    """The words in title or text that articles are looked for by, not those to be without."""
    found: list[Words] = []
    for one in conditions:
        if isinstance(one, (AllOf, AnyOf)):
            found += wanted(one.parts)
        elif isinstance(one, Words) and one.where != "author":
            found.append(one)
    return found


# ---------------------------------------------------------------- the plan
@dataclass(frozen=True, slots=True)
class Plan:
    """One way to ask: what the stores translate into their own language."""

    terms: tuple[Term, ...] = ()  # each of them in title or content
    any_of: tuple[Term, ...] = ()  # and one of these, when there are any
    conditions: tuple[Condition, ...] = ()  # and each of these
    is_exact: bool = False  # compare words with diacritics
    # Other ways to match than by all ``terms`` that are not quoted: all but so many of them in the
    # title (folded); one of these, as it stands.
    by_all: bool = True  # False: only these other ways
    title_misses: int = 0
    instead: tuple[Term, ...] = ()
    # All words in a row: articles that have them like this come first.
    whole: Term | None = None
    relaxed: Relaxed = ""
    corrections: tuple[tuple[str, str], ...] = ()
    # How it was read, as a query, and what was not read as it looks.
    read_as: str = ""
    notes: tuple[str, ...] = ()

    @property
    def wanted(self) -> tuple[Words, ...]:
        return tuple(wanted(self.conditions))

    @property
    def is_filter_only(self) -> bool:
        return not self.terms and not self.any_of and not self.wanted

    @property
    def shown(self) -> tuple[Term, ...]:
        """Words to mark in a text."""
        return self.terms + self.any_of + tuple(w.term for w in self.wanted if not w.where)

    @property
    def shown_in_title(self) -> tuple[Term, ...]:
        return self.terms + self.any_of + tuple(w.term for w in self.wanted)

    @property
    def row(self) -> Plan | None:
        """Of the matches those that have all words in a row, as a compound; None where that is no
        question."""
        if self.whole is None or len(self.terms) < 2 or self.any_of:
            return None
        return replace(self, terms=(self.whole,), by_all=True, title_misses=0, instead=())

    @property
    def byline(self) -> Term | None:
        """The words as a name: who typed one means its articles as well."""
        name = self.whole
        if name is None or len(self.terms) < 2 or any(term.quoted for term in self.terms):
            return None
        is_name = len(name.folded) <= LONGEST_NAME and all(map(str.isalpha, name.folded))
        return name if is_name else None

    @property
    def loose(self) -> tuple[Term, ...]:
        """The terms that may be given up."""
        return tuple(t for t in self.terms if not t.quoted and t.folded)


def parse(query: Query) -> Plan:
    """The query as typed, compared exactly where it was typed with diacritics.
    Raises QueryError."""
    _refuse_pages(query)
    if len(query.text) > LONGEST_QUERY:
        raise QueryTooLarge(
            f"a query of {len(query.text):,} characters; {LONGEST_QUERY:,} are the most"
        )
    read = query_tree.read(query.text)
    tree = read.tree
    _refuse_large(tree, query)
    if query.text.strip():
        _refuse_without_words(query.text, tree)
    terms: list[Term] = []
    conditions: list[Condition] = []
    for part in _parts(tree):
        if isinstance(part, Leaf) and not part.field:
            terms.append(Term.of(part.text, part.is_quoted))
        else:
            conditions.append(_condition(part, query.zone))
    kept = tuple(terms[:MOST_TERMS])
    asked_for = (*(t for t in kept), *(w.term for w in wanted(conditions)))
    return Plan(
        terms=kept,
        conditions=(*conditions, *_parameters(query)),
        is_exact=any(t.has_diacritics for t in asked_for),
        whole=in_a_row(kept),
        read_as=query_tree.written(tree),
        notes=read.notes,
    )


def in_a_row(terms: tuple[Term, ...]) -> Term | None:
    return row(terms) if len(terms) > 1 else None


def row(terms: tuple[Term, ...]) -> Term:
    return Term(
        tuple(w for t in terms for w in t.exact),
        tuple(w for t in terms for w in t.folded),
        quoted=True,
    )


# ---------------------------------------------------------------- from tree to conditions
def _parts(tree: Node | None) -> tuple[Node, ...]:
    if tree is None:
        return ()
    return tree.parts if isinstance(tree, And) else (tree,)


def _condition(node: Node, zone: tzinfo) -> Condition:
    if isinstance(node, Not):
        return NoneOf(_condition(node.part, zone))
    if isinstance(node, And):
        return AllOf(tuple(_condition(part, zone) for part in node.parts))
    if isinstance(node, Or):
        return AnyOf(tuple(_condition(part, zone) for part in node.parts))
    if node.field == "after":
        return Published(after=day(node.field, node.text, zone))
    if node.field == "before":
        return Published(before=day(node.field, node.text, zone))
    if node.field == "site":
        return Value("site", node.text.lower())
    if node.field in KEYS and node.field not in BY_WORDS:
        return Value(node.field, compared(node.field, node.text))
    return Words(Term.of(node.text, node.is_quoted), node.field)


def _parameters(query: Query) -> list[Condition]:
    """The restrictions beside the text."""
    found: list[Condition] = []
    if query.sites:
        found.append(AnyOf(tuple(Value("site", site) for site in dict.fromkeys(query.sites))))
    by_key: dict[str, dict[Condition, None]] = {}
    for key, value in query.labels[:MOST_TERMS]:
        if words := compared(key, value):
            by_key.setdefault(key, {})[Value(key, words)] = None
    for key, values in by_key.items():
        found += [AnyOf(tuple(values))] if key in SINGLE else list(values)
    if query.after or query.before:
        found.append(Published(query.after, query.before))
    return found


# ---------------------------------------------------------------- what is refused
def _refuse_pages(query: Query) -> None:
    if query.page < 0 or not 1 <= query.size <= 100:
        raise QueryError(
            f"page={query.page} size={query.size}: page counts from 0, size is 1 to 100"
        )
    if (query.page + 1) * query.size > DEEPEST:
        raise QueryError(
            f"page {query.page} is too deep ({DEEPEST:,} hits at most): narrow the query, e.g. by"
            " before:"
        )


def _refuse_without_words(text: str, tree: Node | None) -> None:
    """A site, a language or a day is no word, and what must not be there finds nothing."""
    leaves = query_tree.leaves(tree, wanted_only=True)
    if not any(leaf.field not in query_tree.RESTRICTIONS for leaf in leaves):
        raise QueryError(
            f"{text.strip()[:40]}: no word to look for; add one, or leave the query empty and"
            " narrow the newest articles by site, after and before as parameters (`scrapy search"
            " '' --site A --after DAY`, /api/search?site=A, Query(site=...))"
        )


def _refuse_large(tree: Node | None, query: Query) -> None:
    leaves = query_tree.leaves(tree)
    words = (word for leaf in leaves if leaf.field != "site" for word in exact_words(leaf.text))
    longest = max(words, key=len, default="")
    if len(longest) > LONGEST_WORD:
        raise QueryTooLarge(
            f"{longest[:20]}…: a word of {len(longest)} letters; {LONGEST_WORD} are the most"
        )
    sites = [*query.sites, *(leaf.text for leaf in leaves if leaf.field == "site")]
    if len(sites) > MOST_SITES:
        raise QueryTooLarge(f"{len(sites)} sites are named; {MOST_SITES} are the most")
    if any(len(site) > 255 for site in sites):
        raise QueryTooLarge("site: a name of more than 255 letters")
    typed = ((leaf.field, leaf.text) for leaf in leaves if leaf.field not in BY_WORDS)
    values = [*query.labels, *(one for one in typed if one[0] in KEYS)]
    for key, value in values:
        if len(value) > LONGEST_LABEL:
            raise QueryTooLarge(
                f"{key}:{value[:20]}…: a value of {len(value)} letters;"
                f" {LONGEST_LABEL} are the most"
            )
