"""What the index holds of an article: fields, documents, the mark of how far it has come.

Words are cut and folded by store.fold and handed over apart by spaces; the engine only cuts at
white space. Elasticsearch is handed the same words.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

from newscrawler.items import Article
from newscrawler.store import codec
from newscrawler.store.fold import folded_words, index_words
from newscrawler.store.fulltext.engine import tantivy
from newscrawler.store.labels import KEYS, labels_of

#: Raised when documents are made in another way: an index of another number is made anew.
VERSION = 3
#: Words that no text can contain (private-use characters): between title and text and between two
#: names, so that no phrase runs from one into the next; around a title, so that a whole one is
#: found.
BETWEEN, FIRST, LAST = "\ue002", "\ue003", "\ue004"

#: Title and text, exact and folded; the title alone; names.
WORDS = ("ea", "fa", "et", "ft", "m")
#: Values as a whole: the site, and of each facet what is compared (label) and what is counted
#: (spelt: folded value, a tab, one spelling).
VALUES = ("site", *(f"label_{key}" for key in KEYS), *(f"spelt_{key}" for key in KEYS))
#: ``n`` the article's number in SQLite, ``at`` its place in time (see ``time_key``), ``newest`` its
#: place where the newest comes first (articles without a date behind all others), ``day`` since
#: 1970, ``cluster`` its near-duplicates (0: none), ``kind`` one of the two below; ``done``,
#: ``boundary`` and ``token`` only in the mark; ``schema_<VERSION>`` is never filled.
NUMBERS = (
    "n", "at", "newest", "day", "cluster", "kind", "done", "boundary", "token", f"schema_{VERSION}",
)  # fmt: skip
ARTICLE, MARK = 1, 2

_SEQUENCE_BITS = 20
_DAY_MS = 86_400_000


@dataclass(frozen=True, slots=True)
class Change:
    """The state of one article after a change. ``article`` is None when it is gone."""

    change: int
    n: int
    article: Article | None = None
    order_ms: int = 0
    cluster: int = 0


@dataclass(frozen=True, slots=True)
class Mark:
    """How far an index has come: every change up to ``done`` is in it. ``boundary`` and ``token``
    name the last transaction of that history, which a replaced file does not have."""

    done: int = 0
    boundary: int = 0
    token: int = 0


def time_key(order_ms: int, n: int = 0) -> int:
    """Orders articles by time, those of one millisecond by when they were stored first."""
    return order_ms << _SEQUENCE_BITS | (n & ((1 << _SEQUENCE_BITS) - 1))


def time_of(key: int) -> int:
    return key >> _SEQUENCE_BITS


def day_of(order_ms: int) -> int:
    return order_ms // _DAY_MS


@cache
def schema() -> Any:
    builder = tantivy().SchemaBuilder()
    for name in WORDS:
        builder.add_text_field(name, tokenizer_name="whitespace", index_option="position")
    for name in VALUES:
        builder.add_text_field(name, tokenizer_name="raw", fast=True, index_option="basic")
    for name in NUMBERS:
        builder.add_unsigned_field(name, indexed=True, fast=True)
    return builder.build()


def is_current(meta: dict[str, Any]) -> bool:
    """Whether an index whose ``meta.json`` this is has the fields of today."""
    names = [field.get("name") for field in meta.get("schema", ())]
    return names == [*WORDS, *VALUES, *NUMBERS]  # in this order: the engine knows them by number


def document(change: Change) -> Any:
    article = change.article
    assert article is not None
    title, body = index_words(article.title), index_words(article.content)
    made = tantivy().Document()
    made.add_text("ea", f"{title.exact} {BETWEEN} {body.exact}")
    made.add_text("fa", f"{title.folded} {BETWEEN} {body.folded}")
    made.add_text("et", f"{FIRST} {title.exact} {LAST}")
    made.add_text("ft", f"{FIRST} {title.folded} {LAST}")
    names = (" ".join(folded_words(name)) for name in codec.values_of(article, "author"))
    made.add_text("m", f" {BETWEEN} ".join(names))
    made.add_text("site", article.site.lower())
    for label in labels_of(article):
        made.add_text(f"label_{label.key}", label.folded)
        made.add_text(f"spelt_{label.key}", f"{label.folded}\t{label.text}")
    made.add_unsigned("n", change.n)
    made.add_unsigned("at", time_key(change.order_ms, change.n))
    # Seen now is the beginning of 1970 there: still in order among themselves.
    newest_ms = change.order_ms if article.published else change.order_ms // 1_000
    made.add_unsigned("newest", time_key(newest_ms, change.n))
    made.add_unsigned("day", day_of(change.order_ms))
    made.add_unsigned("cluster", change.cluster)
    made.add_unsigned("kind", ARTICLE)
    return made


def mark_document(mark: Mark) -> Any:
    made = tantivy().Document()
    made.add_unsigned("kind", MARK)
    for name in ("done", "boundary", "token"):
        made.add_unsigned(name, getattr(mark, name))
    return made
