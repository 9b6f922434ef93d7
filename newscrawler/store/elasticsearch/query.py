"""The Elasticsearch store's JSON: mapping, documents, plans as queries. Pure;
store.elasticsearch.connection sends it.

Words are made and folded in Python (store.fold) and handed over apart by spaces, so that both
stores find the same: the server only has to cut at white space.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime, tzinfo
from itertools import pairwise
from typing import Any

import orjson

from newscrawler.items import FIELDS, Article, Field
from newscrawler.store import canonical_duplicates, codec, newest
from newscrawler.store.base import COUNT_CAP, MOST_COPIES, Query
from newscrawler.store.fold import folded_words, index_words
from newscrawler.store.labels import BY_WORDS, KEYS, MOST, counted, labels_of
from newscrawler.store.ladder import LONG, SHORTEST_CORRECTED
from newscrawler.store.query_language import (
    AllOf,
    AnyOf,
    Condition,
    NoneOf,
    Plan,
    Published,
    Term,
    Value,
)
from newscrawler.store.spellings import ways

#: 2: the fields of an article are fields of the document, for Kibana and others.
SCHEMA = 2
BETWEEN = "\ue002"  # between two authors: a phrase does not run from one name into the next
FACET_SITES, FACET_DAYS = 100, 31
#: Values of one facet that are looked through; the server answers 65,536 buckets at most.
VALUES = 20_000
TITLE_BOOST, EXACT_BOOST, PAIR_BOOST, WHOLE_BOOST = 3.0, 0.15, 0.5, 2.0
#: More articles than an index has.
MOST_ARTICLES = 1_000_000_000
#: Above any other score, in this order: all words in a row; words as typed where others only fold
#: to them; a title that is the query.
ROW_BOOST, TYPED_FIRST, SAME_TITLE = 1_000.0, 10_000.0, 100_000.0
#: A name of the author; a part of a long query as it stands; a long query as typed.
BYLINE_BOOST, PART_BOOST, TYPED_BOOST = 500.0, 300.0, 10.0
#: Around a title, so that a whole one is found: words that no text can contain.
FIRST, LAST = "\ue003", "\ue004"
#: Of a word with i for y: the rarer of the two would score more than the one that was typed.
OTHER_WAY = 0.5
RECENT, HALF_LIFE = 0.25, "3d"
#: Characters; a longer one is stored but not found by. A term may have 32,766 bytes.
LONGEST_URL = 8_000
_KEPT_ONLY = {"type": "keyword", "index": False, "doc_values": False}
_WORDS = {"type": "text", "analyzer": "whitespace"}

#: Of each field that is a facet: what is filtered by, and what is counted (folded value, a tab, one
#: spelling). An index that has no such field yet gets it when it is opened.
LABEL_FIELDS: dict[str, Any] = {}
for _key in KEYS:
    LABEL_FIELDS[f"label_{_key}"] = {
        "type": "keyword",
        "doc_values": False,
        "ignore_above": LONGEST_URL,
    }
    LABEL_FIELDS[f"spelt_{_key}"] = {"type": "keyword", "index": False, "ignore_above": LONGEST_URL}


def _readable(field: Field) -> dict[str, Any]:
    """How a field of an article is mapped for other programs: what is written is searched by words,
    what is chosen from a list as a whole, and each the other way by a field below it."""
    if field.type == "time":
        return {"type": "date", "ignore_malformed": True}
    if field.type == "code":
        return _WHOLE if field.name == "language" else _KEPT_ONLY
    if (field.facet and field.key not in BY_WORDS) or field.name == "section":
        return _WHOLE | {"fields": {"text": {"type": "text"}}}
    if field.type == "texts" or field.name == "title":
        return {"type": "text", "fields": {"keyword": _WHOLE}}
    return {"type": "text"}


_WHOLE: dict[str, Any] = {"type": "keyword", "ignore_above": 512}
#: Fields of an article that are fields of its document under their own names. ``data`` has the
#: others, and all of them in a document that a program of schema 1 has written.
READABLE: dict[str, Any] = {
    f.name: _readable(f)
    for f in FIELDS
    if f.exported and f.stored and f.name not in ("id", "url", "site")
}
#: What an article is made of again, see ``with_data``.
SOURCE = ("data", *READABLE)

SETTINGS = {"number_of_shards": 1, "number_of_replicas": 0, "refresh_interval": "1s"}
ARTICLES: dict[str, Any] = {
    "dynamic": "strict",
    "_meta": {"schema": SCHEMA},
    # The words are made from ``data`` again when needed; keeping them would double the index.
    "_source": {"excludes": ["t", "b", "ft", "fb", "a", "bands", *LABEL_FIELDS]},
    "properties": {
        "t": _WORDS, "b": _WORDS, "ft": _WORDS, "fb": _WORDS, "a": _WORDS,
        "url": {"type": "keyword", "ignore_above": LONGEST_URL},
        "canonical": {"type": "keyword", "ignore_above": LONGEST_URL},
        "site": {"type": "keyword"},
        "at": {"type": "date", "format": "epoch_millis"},
        "stored": {"type": "date", "format": "epoch_millis"},
        "version": {"type": "integer"},
        "gone": {"type": "boolean"},
        "digest": _KEPT_ONLY,
        "cluster": {"type": "keyword"},
        "bands": {"type": "keyword", "doc_values": False},
        # Earlier events of the article with the sequence numbers of their writes (outbox.py).
        "before": {"type": "object", "enabled": False},
        "before_seqs": {"type": "long", "doc_values": False},
        "data": {"type": "object", "enabled": False},
        **READABLE,
        **LABEL_FIELDS,
    },
}  # fmt: skip
#: Options of the alias for other programs.
NOT_GONE: dict[str, Any] = {"filter": {"term": {"gone": False}}}
VERSIONS: dict[str, Any] = {
    "dynamic": "strict",
    "_meta": {"schema": SCHEMA},
    "properties": {
        "id": {"type": "keyword"},
        "version": {"type": "integer"},
        "data": {"type": "object", "enabled": False},
    },
}


def document(
    article: Article, *, digest: bytes, version: int, bands: list[int], now_ms: int
) -> dict[str, Any]:
    """All of a document but its cluster. ``article`` is from ``codec.cleaned``."""
    title, body = index_words(article.title), index_words(article.content)
    plain = orjson.loads(orjson.dumps(codec.to_dict(article)))
    doc: dict[str, Any] = {
        "t": title.exact,
        "b": body.exact,
        "ft": f"{FIRST} {title.folded} {LAST}",
        "fb": body.folded,
        "a": f" {BETWEEN} ".join(
            " ".join(folded_words(a)) for a in codec.values_of(article, "author")
        ),
        "url": article.url,
        "site": article.site.lower(),
        "at": codec.order_ms(article, now_ms),
        "stored": now_ms,
        "version": version,
        "gone": False,
        "digest": digest.hex(),
        "bands": [str(b) for b in bands],
        "data": {name: value for name, value in plain.items() if name not in READABLE},
        **{name: value for name, value in plain.items() if name in READABLE},
    }
    if other := canonical_duplicates.other_address(article):
        doc["canonical"] = other
    for label in labels_of(article):
        doc.setdefault(f"label_{label.key}", []).append(label.folded)
        doc.setdefault(f"spelt_{label.key}", []).append(f"{label.folded}\t{label.text}")
    return doc


def with_data(source: dict[str, Any]) -> dict[str, Any]:
    """A source whose ``data`` has every field of the article, whichever program has written it."""
    if not isinstance(source.get("data"), dict):
        return source  # of another index
    rest = {name: value for name, value in source.items() if name not in READABLE}
    readable = {name: source[name] for name in READABLE if name in source}
    return rest | {"data": source["data"] | readable}


def readable(source: dict[str, Any]) -> dict[str, Any]:
    """The opposite: as ``document`` makes it."""
    data = source["data"]
    kept = {name: value for name, value in data.items() if name not in READABLE}
    return source | {"data": kept} | {n: v for n, v in data.items() if n in READABLE}


def external_version(version: int, gone: bool) -> int:
    """Grows with every change, also when an article goes and comes back (as its next version)."""
    return 2 * version + gone


# ---------------------------------------------------------------- plans
def matching(plan: Plan) -> dict[str, Any]:
    """The query of what the plan finds, without an order."""
    exact = plan.is_exact
    must = [_anywhere(t, exact) for t in plan.terms if t.quoted and t.words(exact)]
    must += _ways(plan)
    if some := [_anywhere(t, exact) for t in plan.any_of if t.words(exact)]:
        must.append(_one_of(some))
    conditions: list[dict[str, Any]] = [{"term": {"gone": False}}]
    without = []
    for one in plan.conditions:
        if isinstance(one, NoneOf):
            without.append(_condition(one.part, None))
        else:
            conditions.append(_condition(one, exact))
    scored = [_condition(one, exact) for one in plan.wanted]
    return {"bool": {"must": must, "filter": conditions, "must_not": without, "should": scored}}


def condition(one: Condition) -> dict[str, Any]:
    """One without words: of values and times, which vectors have as well."""
    return _condition(one, None)


def _condition(one: Condition, exact: bool | None) -> dict[str, Any]:
    """``exact`` None: as each word was typed."""
    if isinstance(one, AllOf):
        return {"bool": {"filter": [_condition(part, exact) for part in one.parts]}}
    if isinstance(one, AnyOf):
        return _one_of([_condition(part, exact) for part in one.parts])
    if isinstance(one, NoneOf):
        return {"bool": {"must_not": [_condition(one.part, None)]}}
    if isinstance(one, Value):
        return {"term": {"site" if one.key == "site" else f"label_{one.key}": one.value}}
    if isinstance(one, Published):
        limits = {"gte": codec.ms(one.after), "lt": codec.ms(one.before)}
        return {"range": {"at": {name: at for name, at in limits.items() if at is not None}}}
    if one.where == "author":
        return _in("a", one.term.folded)
    is_exact = one.term.has_diacritics if exact is None else exact
    return _title(one.term, is_exact) if one.where == "title" else _anywhere(one.term, is_exact)


def _ways(plan: Plan) -> list[dict[str, Any]]:
    """What must match of the words that are not quoted: all of them, or what else the plan
    accepts."""
    exact = plan.is_exact
    all_of = [_anywhere(t, exact) for t in plan.terms if not t.quoted and t.words(exact)]
    others = _other_ways(plan)
    if not others:
        return all_of if plan.by_all else []
    ways = [{"bool": {"must": all_of}}, *others] if plan.by_all else others
    return [{"dis_max": {"queries": ways}}]


def _other_ways(plan: Plan) -> list[dict[str, Any]]:
    """Most of the words in the title, a name, parts of the words."""
    others: list[dict[str, Any]] = []
    least = len(plan.loose) - plan.title_misses
    if plan.title_misses and least > 0:
        titles = [_title(t, False) for t in plan.loose]
        others.append({"bool": {"should": titles, "minimum_should_match": least}})
    if plan.byline and plan.by_all:
        others.append({"constant_score": {"filter": _in("a", plan.byline.folded)}})
    if plan.instead:
        parts = _one_of([_anywhere(t, False) for t in plan.instead])
        others.append({"constant_score": {"filter": parts, "boost": PART_BOOST}})
    return others


def ranked(plan: Plan, typed: Plan | None, *, new_gains: bool = True) -> dict[str, Any]:
    """``matching`` with scores. ``typed``: the plan as typed; what it finds comes first.
    ``new_gains``: see Sort."""
    query = matching(plan)
    exact = plan.is_exact
    terms = [t for t in plan.terms if t.words(exact)]
    better: list[dict[str, Any]] = []
    fields = (("t", 2.0), ("b", 1.0)) if exact else (("ft", 2.0), ("fb", 1.0))
    for first, second in list(pairwise(terms))[:8]:
        pair = first.words(exact) + second.words(exact)
        better += [_in(name, pair, PAIR_BOOST * weight) for name, weight in fields]
    if plan.whole is not None:
        words = plan.whole.words(exact)
        better += [_in(name, words, WHOLE_BOOST * weight) for name, weight in fields]
    if not exact:
        better += [_in(name, t.folded, EXACT_BOOST) for t in terms for name in ("t", "b")]
    query["bool"]["should"] += better
    if not new_gains:
        return {"bool": {"must": [query], "should": _first(plan, typed)}}
    recent = {"exp": {"at": {"origin": "now", "scale": HALF_LIFE, "decay": 0.5}}, "weight": RECENT}
    scored = {
        "function_score": {
            "query": query,
            "functions": [recent, {"weight": 1.0}],
            "score_mode": "sum",
            "boost_mode": "multiply",
        }
    }
    return {"bool": {"must": [scored], "should": _first(plan, typed)}}


def _first(plan: Plan, typed: Plan | None) -> list[dict[str, Any]]:
    """The clauses that come before everything else, whatever the score of the rest."""
    found: list[dict[str, Any]] = []
    found.extend(_rows(plan))
    if plan.byline:
        name = _in("a", plan.byline.folded)
        found.append({"constant_score": {"filter": name, "boost": BYLINE_BOOST}})
    title = plan.whole or next(iter(plan.terms), None)
    if title is not None and title.folded:
        row = _in("ft", (FIRST, *title.folded, LAST))
        found.append({"constant_score": {"filter": row, "boost": SAME_TITLE}})
    if typed is not None:
        # Of a long query few words must be wrong for chance to have all of them somewhere.
        gain = TYPED_FIRST if len(plan.terms) < LONG else TYPED_BOOST
        found.append({"constant_score": {"filter": matching(typed), "boost": gain}})
    return found


def _rows(plan: Plan) -> list[dict[str, Any]]:
    if plan.row is None:
        return []
    return [{"constant_score": {"filter": matching(plan.row), "boost": ROW_BOOST}}]


def search_body(plan: Plan, typed: Plan | None, query: Query) -> dict[str, Any]:
    by_date = query.sort == "date" or plan.is_filter_only
    body: dict[str, Any] = {
        **(_by_date(plan) if by_date else _by_relevance(plan, typed, query.sort == "best")),
        "from": query.page * query.size,
        "size": query.size,
        "track_total_hits": COUNT_CAP,
        "aggs": {},
    }
    if plan.row is not None:
        body["aggs"]["row"] = {"filter": matching(plan.row)}
    if query.collapse:
        copies = {
            "name": "copies",
            "size": MOST_COPIES + 1,
            "sort": [{"at": "asc"}, {"stored": "asc"}],
            "_source": [*SOURCE, "version", "gone", "cluster"],
        }
        body["collapse"] = {"field": "cluster", "inner_hits": copies}
        body["aggs"]["clusters"] = {
            "cardinality": {"field": "cluster", "precision_threshold": 10_000}
        }
    if query.facets:
        body["aggs"] |= facets(query.zone)
    return body


def _by_date(plan: Plan) -> dict[str, Any]:
    """The score says only whether the words stand in a row, and whether the article has a date."""
    dated = {"bool": {"must_not": {"term": {"label_without": "date"}}}}
    should = [*_rows(plan), {"constant_score": {"filter": dated}}]
    tiers = {"bool": {"filter": matching(plan), "should": should}}
    return {"query": tiers, "sort": ["_score", {"at": "desc"}, {"stored": "desc"}]}


def _by_relevance(plan: Plan, typed: Plan | None, new_gains: bool = True) -> dict[str, Any]:
    return {"query": ranked(plan, typed, new_gains=new_gains), "sort": ["_score", {"at": "desc"}]}


def first_bodies(plan: Plan) -> list[dict[str, Any]]:
    """The ids of the best matches and of the newest ones, see store.newest."""
    ids: dict[str, Any] = {"_source": False, "track_total_hits": False}
    return [
        ids | _by_relevance(plan, None) | {"size": newest.FIRST_PAGE},
        ids | _by_date(plan) | {"size": len(newest.PLACES)},
    ]


def around(body: dict[str, Any], moved: dict[int, str], query: Query) -> None:
    """Makes ``body`` ask for the page without the articles that stand at fixed places."""
    start = query.page * query.size
    body["from"] = start - sum(place < start for place in moved)
    # A filter behind the search: totals and facets count these articles as well.
    body["post_filter"] = {"bool": {"must_not": {"ids": {"values": list(moved.values())}}}}


def facets(zone: tzinfo) -> dict[str, Any]:
    """The counts beside a search; days are those of ``zone``."""
    # Days of a zone without a name (an offset) are counted by the offset.
    name = getattr(zone, "key", "") or datetime(2000, 1, 1, tzinfo=zone).strftime("%z")
    return {
        "site": {
            "terms": {
                "field": "site",
                "size": FACET_SITES,
                "order": [{"_count": "desc"}, {"_key": "asc"}],
            }
        },
        "day": {
            "date_histogram": {
                "field": "at",
                "calendar_interval": "1d",
                "time_zone": name,
                "min_doc_count": 1,
                "order": {"_key": "desc"},
            }
        },
        **{
            # Twice as many as are shown: spellings of one value are counted together.
            key: {"terms": {"field": f"spelt_{key}", "size": 2 * MOST}}
            for key in KEYS
        },
    }


def facets_of(aggregations: dict[str, Any], zone: tzinfo) -> dict[str, dict[str, int]]:
    days = aggregations["day"]["buckets"][:FACET_DAYS]
    return {
        "site": {b["key"]: b["doc_count"] for b in aggregations["site"]["buckets"]},
        "day": {
            datetime.fromtimestamp(b["key"] / 1000, zone).date().isoformat(): b["doc_count"]
            for b in days
        },
        **{
            key: counted(
                (*b["key"].split("\t", 1), b["doc_count"]) for b in aggregations[key]["buckets"]
            )
            for key in KEYS
        },
    }


def values_body(plan: Plan, key: str) -> dict[str, Any]:
    field = key if key == "site" else f"spelt_{key}"
    terms = {"field": field, "size": VALUES}
    return {"size": 0, "query": matching(plan), "aggs": {key: {"terms": terms}}}


def frequencies_body(terms: tuple[Term, ...]) -> dict[str, Any]:
    filters = {str(i): _anywhere(t, False) for i, t in enumerate(terms)}
    return {
        "size": 0,
        "track_total_hits": True,
        "query": {"term": {"gone": False}},
        "aggs": {"with": {"filters": {"filters": filters}}},
    }


def count_body(plan: Plan, enough: int) -> dict[str, Any]:
    return {"size": 0, "track_total_hits": enough, "query": matching(plan)}


def word_frequencies_body(words: Sequence[str]) -> dict[str, Any]:
    """How many articles have each word, as it stands ("e...") and folded ("f...")."""
    asked = {}
    for word in words:
        for key, fields in (("e", ("t", "b")), ("f", ("ft", "fb"))):
            asked[key + word] = _one_of([{"term": {name: word}} for name in fields])
    return {
        "size": 0,
        "query": {"term": {"gone": False}},
        "aggs": {"with": {"filters": {"filters": asked}}},
    }


def coverage_body(words: Sequence[str], ids: Sequence[str]) -> dict[str, Any]:
    """Which of the words, folded, some articles have, and how many articles have each."""
    having = {word: _one_of([_in(name, (word,)) for name in ("ft", "fb")]) for word in words}
    named = [{"bool": {**one["bool"], "_name": word}} for word, one in having.items()]
    counted = {
        "filter": {"term": {"gone": False}},
        "aggs": {"with": {"filters": {"filters": having}}},
    }
    return {
        "size": len(ids),
        "_source": False,
        "track_total_hits": False,
        "query": {"bool": {"filter": [{"ids": {"values": list(ids)}}], "should": named}},
        "aggs": {"every": {"global": {}, "aggs": {"there": counted}}},
    }


def coverage_of(words: Sequence[str], found: dict[str, Any]) -> dict[str, float]:
    """Id -> share of the words, each weighing as much as it is rare."""
    there = found["aggregations"]["every"]["there"]
    articles, having = there["doc_count"], there["with"]["buckets"]
    weights = {word: _idf(articles, having[word]["doc_count"]) for word in words}
    every = sum(weights.values())
    return {
        hit["_id"]: sum(weights[word] for word in hit.get("matched_queries", ())) / every
        for hit in found["hits"]["hits"]
    }


def _idf(articles: int, having: int) -> float:
    """As BM25 has it."""
    return math.log1p((max(0, articles - having) + 0.5) / (having + 0.5))


def among_body(plan: Plan, ids: Sequence[str]) -> dict[str, Any]:
    """Those of some articles that match."""
    conditions = [matching(plan), {"ids": {"values": list(ids)}}]
    return {
        "size": len(ids),
        "_source": False,
        "track_total_hits": False,
        "query": {"bool": {"filter": conditions}},
    }


def members_body(plan: Plan | None, labels: Sequence[str], size: int) -> dict[str, Any]:
    """Articles of some clusters that match, the first published first."""
    conditions: list[dict[str, Any]] = [{"terms": {"cluster": list(labels)}}]
    conditions.append({"term": {"gone": False}} if plan is None else matching(plan))
    return {
        "size": size,
        "_source": [*SOURCE, "version", "gone", "cluster"],
        "track_total_hits": False,
        "query": {"bool": {"filter": conditions}},
        "sort": [{"at": "asc"}, {"stored": "asc"}],
    }


def best_body(plan: Plan) -> dict[str, Any]:
    return {"size": 1, "_source": False, "track_total_hits": False, "query": ranked(plan, None)}


def near_body(words: tuple[str, ...], most: int) -> dict[str, Any]:
    suggest = {
        "suggest_mode": "always",
        "max_edits": 1,
        "prefix_length": 0,
        "min_word_length": SHORTEST_CORRECTED,
        # A mistyped word may be another one that many articles have.
        "max_term_freq": MOST_ARTICLES,
        "size": most,
        "sort": "frequency",
    }
    return {
        "size": 0,
        "suggest": {
            f"{i}{field}": {"text": word, "term": {"field": field, **suggest}}
            for i, word in enumerate(words)
            for field in ("fb", "ft")
        },
    }


def near_of(words: tuple[str, ...], suggest: dict[str, Any], most: int) -> dict[str, list[str]]:
    """Per word those one edit away, the most frequent first."""
    found: dict[str, list[str]] = {}
    for i, word in enumerate(words):
        options: dict[str, int] = {}
        for field in ("fb", "ft"):
            for entry in suggest[f"{i}{field}"]:
                for option in entry["options"]:
                    freq = options.get(option["text"], 0)
                    options[option["text"]] = max(freq, option["freq"])
        found[word] = sorted(options, key=lambda text: (-options[text], text))[:most]
    return found


def near_duplicates(bands: list[int], article_id: str, most: int) -> dict[str, Any]:
    """Articles with the most band keys in common."""
    return {
        "size": most,
        "_source": ["cluster", "content", "data.content"],
        "query": {
            "bool": {
                "should": [{"term": {"bands": str(b)}} for b in bands],
                "minimum_should_match": 1,
                "must_not": [{"ids": {"values": [article_id]}}],
            }
        },
    }


def named(articles: Sequence[Article]) -> dict[str, Any]:
    """Articles at an address that one of these names as its canonical one, or that name
    theirs, or the same."""
    own = [a.url for a in articles if len(a.url) <= LONGEST_URL]
    others = [
        o
        for a in articles
        if (o := canonical_duplicates.other_address(a)) and len(o) <= LONGEST_URL
    ]
    should = [{"terms": {"canonical": own + others}}, {"terms": {"url": others}}]
    conditions = [{"term": {"gone": False}}]
    query = {"bool": {"should": should, "minimum_should_match": 1, "filter": conditions}}
    fields = ["url", "canonical", "version", "content", "data.content", "data.site"]
    return {"size": 4 * len(articles), "_source": fields, "query": query, "sort": ["stored"]}


def clusters_body(labels: list[str]) -> dict[str, Any]:
    """Per label how many articles have it and which of them was published first."""
    first = {"top_hits": {"size": 1, "_source": False, "sort": [{"at": "asc"}, {"stored": "asc"}]}}
    terms = {"field": "cluster", "size": len(labels), "min_doc_count": 2}
    return {
        "size": 0,
        "query": {"terms": {"cluster": labels}},
        "aggs": {"of": {"terms": terms, "aggs": {"first": first}}},
    }


def _one_of(queries: list[dict[str, Any]]) -> dict[str, Any]:
    return {"bool": {"should": queries, "minimum_should_match": 1}}


def _anywhere(term: Term, exact: bool) -> dict[str, Any]:
    body = _spelt("b" if exact else "fb", "fb", term, exact)
    return {"dis_max": {"queries": [_title(term, exact), body], "tie_breaker": 0.3}}


def _title(term: Term, exact: bool) -> dict[str, Any]:
    return _spelt("t" if exact else "ft", "ft", term, exact, TITLE_BOOST)


def _spelt(
    field: str, folded_field: str, term: Term, exact: bool, boost: float = 1.0
) -> dict[str, Any]:
    """As typed, or in one of its other spellings, which are compared folded."""
    own = _in(field, term.words(exact), boost)
    others = [_in(folded_field, spelling, boost) for spelling in term.spellings]
    return {"dis_max": {"queries": [own, *others]}} if others else own


def _in(field: str, words: tuple[str, ...], boost: float = 1.0) -> dict[str, Any]:
    """In a row, also with i for y where both are written (spellings.ways)."""
    own, *others = (
        _row(field, way, boost * (1.0 if way == words else OTHER_WAY)) for way in ways(words)
    )
    return {"dis_max": {"queries": [own, *others]}} if others else own


def _row(field: str, words: tuple[str, ...], boost: float) -> dict[str, Any]:
    if len(words) == 1:
        return {"term": {field: {"value": words[0], "boost": boost}}}
    return {"match_phrase": {field: {"query": " ".join(words), "boost": boost}}}
