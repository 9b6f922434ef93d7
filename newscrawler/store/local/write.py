"""Writing to the SQLite store: versions, the words of the index, near-duplicate clusters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import apsw

from newscrawler.items import Article
from newscrawler.store import codec, neardup, twins
from newscrawler.store.base import PutResult
from newscrawler.store.fold import folded_words, index_words
from newscrawler.store.local.schema import BETWEEN, EVERY, SEQUENCE_BITS, SEQUENCES, immediate, site_word

#: Entries of bands looked at, and articles verified: a boilerplate text fills a band.
_CANDIDATES, _VERIFIED = 500, 4
_SHARED = f"SELECT n FROM band WHERE key IN ({','.join('?' * neardup.BANDS)}) LIMIT ?"
_MINUTE_MS = 60_000
#: Who names this address as canonical; whose address it is.
_NAMING = "SELECT id, version, data FROM article WHERE canonical = ? AND NOT gone LIMIT 4"
_NAMED = "SELECT id, version, data FROM article WHERE url = ? AND NOT gone LIMIT 4"


@dataclass(slots=True)
class _Ready:
    """An article with everything that is computed before the write lock is taken."""

    article: Article
    digest: bytes
    data: bytes
    words: tuple[str, str, str, str, str]  # columns t b ft fb m
    shingles: Any
    bands: list[int]
    order_ms: int
    other: str | None  # its canonical address, where it has another


@dataclass(slots=True)
class _Old:
    n: int
    row: int | None
    version: int
    gone: bool
    digest: bytes
    cluster: int | None


class Writer:
    """One writing connection, used by one thread. ``now_ms`` is the clock of ``stored_ms``."""

    def __init__(self, connection: apsw.Connection, now_ms: Callable[[], int]) -> None:
        self._db = connection
        self._now_ms = now_ms
        self._sites: dict[str, int] = {}
        self._full: dict[int, int] = {}  # minute -> the next one that had room

    def put(self, articles: Sequence[Article]) -> list[PutResult]:
        """Articles as from ``codec.cleaned``, none that ``codec.refusal`` refuses. One transaction."""
        digests = [codec.digest(a) for a in articles]
        same = [old is not None and old.digest == d and not old.gone for old, d in self._lookups(articles, digests)]
        ready = [None if s else self._ready(a, d) for a, d, s in zip(articles, digests, same, strict=True)]
        if not any(ready):
            return [self._unchanged(a.id) for a in articles]
        self._sites.clear()  # a transaction that was rolled back may have taken sites with it
        with immediate(self._db):
            now = self._now_ms()
            results, rows = [], []
            for article, digest, prepared in zip(articles, digests, ready, strict=True):
                old = self._old(article.id)
                if old is not None and old.digest == digest and not old.gone:
                    results.append(PutResult(article.id, "unchanged", old.version))
                    continue
                new = prepared or self._ready(article, digest)  # changed by another process meanwhile
                twin = self._twin(new) if old is None else None
                if twin is not None:
                    results.append(twin)
                    continue
                row, result = self._write(new, old, now)
                rows.append((row, *new.words))
                results.append(result)
            # An article that is twice in the batch: only its last row is in the index.
            last = {r[0]: r for r in rows}
            live = [last[row] for row in sorted(last) if self._is_live(row)]
            self._db.executemany("INSERT INTO fts(rowid, t, b, ft, fb, m) VALUES(?,?,?,?,?,?)", live)
        return results

    def mark_gone(self, ids: Sequence[str]) -> int:
        done = 0
        with immediate(self._db):
            for article_id in ids:
                old = self._old(article_id)
                if old is None or old.gone:
                    continue
                self._unindex(old)
                self._db.execute(
                    "UPDATE article SET gone = 1, row = NULL, stored_ms = ? WHERE n = ?", (self._now_ms(), old.n)
                )
                done += 1
        return done

    # ------------------------------------------------------------------ one article
    def _write(self, new: _Ready, old: _Old | None, now: int) -> tuple[int, PutResult]:
        a = new.article
        row = self._free_row(new.order_ms, old)
        version = old.version + 1 if old else 1
        fields = (row, a.url, new.other, version, new.digest, new.order_ms, now, new.data)
        if old is None:
            self._db.execute(
                "INSERT INTO article(row, url, canonical, version, digest, order_ms, stored_ms, data, id) "
                "VALUES(?,?,?,?,?,?,?,?,?)",
                (*fields, a.id),
            )
            n = self._db.last_insert_rowid()
        else:
            n = old.n
            self._db.execute(
                "INSERT OR REPLACE INTO version(n, version, data) SELECT n, version, data FROM article WHERE n = ?",
                (n,),
            )
            self._unindex(old)
            self._forget_bands(old)
            self._db.execute(
                "UPDATE article SET row = ?, url = ?, canonical = ?, version = ?, digest = ?, order_ms = ?, "
                "stored_ms = ?, data = ?, gone = 0, cluster = NULL WHERE n = ?",
                (*fields, n),
            )
        self._db.execute("INSERT INTO doc(row, n, site) VALUES(?,?,?)", (row, n, self._site(a.site)))
        self._join_cluster(n, version, new)
        return row, PutResult(a.id, "updated" if old else "new", version)

    def _ready(self, article: Article, digest: bytes) -> _Ready:
        title, body = index_words(article.title), index_words(article.content)
        names = [" ".join(folded_words(a)) for a in (*article.authors, *article.credits)]
        about = f" {BETWEEN} ".join([f"{EVERY} {site_word(article.site)}", *names])
        columns = (title.exact, body.exact, title.folded, body.folded, about)
        hashes = neardup.shingles(body.folded)
        at = codec.order_ms(article, self._now_ms())
        bands, other = neardup.band_keys(hashes), twins.other_address(article)
        return _Ready(article, digest, codec.pack(article), columns, hashes, bands, at, other)

    def _twin(self, new: _Ready) -> PutResult | None:
        a = new.article
        named: list[Any] = self._db.execute(_NAMING, (a.url,)).fetchall()
        if new.other:
            for query in (_NAMED, _NAMING):
                named += self._db.execute(query, (new.other,)).fetchall()
        for article_id, version, data in named:
            stored = codec.unpack(data, version=version, cluster=None, gone=False)
            if stored.site == a.site and twins.is_alike(a.content, new.shingles, stored.content):
                return PutResult(a.id, "twin", version, article_id)
        return None

    def _unindex(self, old: _Old) -> None:
        if old.row is not None:
            self._db.execute("DELETE FROM fts WHERE rowid = ?", (old.row,))
            self._db.execute("DELETE FROM doc WHERE row = ?", (old.row,))

    def _free_row(self, order_ms: int, old: _Old | None) -> int:
        minute = order_ms // _MINUTE_MS
        if old is not None and old.row is not None and old.row >> SEQUENCE_BITS == minute:
            return old.row
        first = minute
        minute = self._full.get(minute, minute)
        while True:
            base = minute << SEQUENCE_BITS
            top = self._db.execute(
                "SELECT max(row) FROM doc WHERE row BETWEEN ? AND ?", (base, base + SEQUENCES - 1)
            ).get
            if top is None or top < base + SEQUENCES - 1:
                break
            minute += 1
        if minute != first:
            if len(self._full) > 10_000:
                self._full.clear()
            self._full[first] = minute
        return base if top is None else top + 1

    # ------------------------------------------------------------------ near-duplicates
    def _join_cluster(self, n: int, version: int, new: _Ready) -> None:
        shared: Counter[int] = Counter()
        if new.bands:
            shared.update(n for (n,) in self._db.execute(_SHARED, (*new.bands, _CANDIDATES)))
        self._db.executemany("INSERT OR IGNORE INTO band(key, n) VALUES(?,?)", [(k, n) for k in sorted(new.bands)])
        for other, _ in shared.most_common(_VERIFIED):
            if other == n:
                continue
            data, cluster = self._db.execute("SELECT data, cluster FROM article WHERE n = ?", (other,)).get
            text = codec.unpack(data, version=0, cluster=None, gone=False).content
            if neardup.jaccard(new.shingles, neardup.shingles_of(text)) < neardup.SAME:
                continue
            # The version makes the label unique: an article may leave a cluster that it gave its label to.
            label = (n << 16 | min(version, 0xFFFF)) if cluster is None else cluster
            self._db.execute("UPDATE article SET cluster = ? WHERE n IN (?, ?)", (label, n, other))
            return

    def _forget_bands(self, old: _Old) -> None:
        data = self._db.execute("SELECT data FROM article WHERE n = ?", (old.n,)).get
        text = codec.unpack(data, version=0, cluster=None, gone=False).content
        keys = neardup.band_keys(neardup.shingles_of(text))
        self._db.executemany("DELETE FROM band WHERE key = ? AND n = ?", [(k, old.n) for k in keys])
        if old.cluster is not None:
            rest = [
                n
                for (n,) in self._db.execute(
                    "SELECT n FROM article WHERE cluster = ? AND n <> ? LIMIT 2", (old.cluster, old.n)
                )
            ]
            if len(rest) == 1:
                self._db.execute("UPDATE article SET cluster = NULL WHERE n = ?", rest)

    # ------------------------------------------------------------------ lookups
    def _lookups(self, articles: Sequence[Article], digests: list[bytes]) -> list[tuple[_Old | None, bytes]]:
        return [(self._old(a.id), d) for a, d in zip(articles, digests, strict=True)]

    def _old(self, article_id: str) -> _Old | None:
        row = self._db.execute(
            "SELECT n, row, version, gone, digest, cluster FROM article WHERE id = ?", (article_id,)
        ).fetchone()
        return None if row is None else _Old(row[0], row[1], row[2], bool(row[3]), row[4], row[5])

    def _unchanged(self, article_id: str) -> PutResult:
        old = self._old(article_id)
        assert old is not None
        return PutResult(article_id, "unchanged", old.version)

    def _is_live(self, row: int) -> bool:
        return bool(self._db.execute("SELECT 1 FROM doc WHERE row = ?", (row,)).fetchall())

    def _site(self, site: str) -> int:
        if site not in self._sites:
            self._db.execute("INSERT OR IGNORE INTO site(id) VALUES(?)", (site,))
            self._sites[site] = self._db.execute("SELECT n FROM site WHERE id = ?", (site,)).get
        return self._sites[site]
