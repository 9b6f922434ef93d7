"""Writing to the SQLite store: versions, change numbers, near-duplicate clusters."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from typing import Any

import apsw

from newscrawler.items import Article
from newscrawler.store import canonical_duplicates, codec, near_duplicates
from newscrawler.store.base import PutResult, PutStatus
from newscrawler.store.sqlite.bands import Bands
from newscrawler.store.sqlite.changes import Numbers, numbered, present
from newscrawler.store.sqlite.schema import OpenedFile
from newscrawler.store.transaction import immediate

#: A key that so many articles hold is of a text or a sentence that a site repeats: the next article
#: is not noted under it, so that it hides no other. Files of earlier versions hold more.
_HOLDERS = 32
#: Articles looked at closely.
_VERIFIED = 4
#: Seconds that readers are waited for before their log can be emptied.
_SCRUB_S = 60.0
#: Versions of one transaction; others write between two.
_PRUNE_BATCH = 500
_UNTOLD = "SELECT n, version FROM event WHERE change > (SELECT min(position) FROM sink)"
#: Where it is there, articles may lack their oldest versions.
_PRUNED = "CREATE TABLE IF NOT EXISTS pruned(at INTEGER)"
_EVENT = "INSERT INTO event(change, n, version, kind, at_ms) VALUES(?,?,?,?,?)"
#: Who names this address as canonical; whose address it is.
_NAMING = "SELECT id, version, data FROM article WHERE canonical = ? AND NOT gone LIMIT 4"
_NAMED = "SELECT id, version, data FROM article WHERE url = ? AND NOT gone LIMIT 4"


@dataclass(slots=True)
class _Ready:
    """An article with everything that is computed before the write lock is taken."""

    article: Article
    digest: bytes
    data: str
    shingles: Any
    keys: list[int]  # near_duplicates.candidate_keys
    runs: frozenset[int]  # those of runs among them
    order_ms: int
    other: str | None  # its canonical address, where it has another


@dataclass(slots=True)
class _Old:
    n: int
    version: int
    gone: bool
    digest: bytes
    cluster: int | None


class Writer:
    """One writing connection, used by one thread. ``now_ms`` is the clock of ``stored_ms``."""

    def __init__(self, connection: apsw.Connection, now_ms: Callable[[], int]) -> None:
        self._db = connection
        self._now_ms = now_ms
        self._bands = Bands(connection)
        self.place = OpenedFile(connection.db_filename("main"))

    def put(self, articles: Sequence[Article]) -> list[PutResult]:
        """Articles as from ``codec.cleaned``, none that ``codec.refusal`` refuses.
        One transaction."""
        digests = [codec.digest(a) for a in articles]
        same = [
            old is not None and old.digest == d and not old.gone
            for old, d in self._lookups(articles, digests)
        ]
        ready = [
            None if s else self._ready(a, d)
            for a, d, s in zip(articles, digests, same, strict=True)
        ]
        if not any(ready):
            return [self._unchanged(a.id) for a in articles]
        with self._writing() as numbers:
            now = self._now_ms()
            results = []
            for article, digest, prepared in zip(articles, digests, ready, strict=True):
                old = self._old(article.id)
                if old is not None and old.digest == digest and not old.gone:
                    results.append(PutResult(article.id, "unchanged", old.version))
                    continue
                # Without ``prepared`` it was changed by another process meanwhile.
                new = prepared or self._ready(article, digest)
                duplicate = self._duplicate(new) if old is None else None
                results.append(duplicate or self._write(new, old, now, numbers))
        return results

    def mark_gone(self, ids: Sequence[str]) -> int:
        done = 0
        with immediate(self._db), numbered(self._db) as numbers:
            for article_id in ids:
                old = self._old(article_id)
                if old is None or old.gone:
                    continue
                change, now = numbers.next(), self._now_ms()
                self._db.execute(
                    "UPDATE article SET gone = 1, change = ?, stored_ms = ? WHERE n = ?",
                    (change, now, old.n),
                )
                self._db.execute(_EVENT, (change, old.n, old.version, "gone", now))
                done += 1
        return done

    def purge(self, ids: Sequence[str]) -> list[int]:
        """Removes articles with all that is kept of them; their numbers. Nobody is told."""
        numbers_gone: list[int] = []
        with self._writing() as numbers:
            for article_id in ids:
                self._db.execute("DELETE FROM letter WHERE id = ?", (article_id,))
                old = self._old(article_id)
                if old is None:
                    continue
                self._forget_bands(old, numbers)
                for table in ("version", "event", "article"):
                    self._db.execute(f"DELETE FROM {table} WHERE n = ?", (old.n,))
                numbers.next()
                numbers_gone.append(old.n)
        return numbers_gone

    def present(self, numbers: Sequence[int]) -> set[int]:
        """Those of them that an article has."""
        return present(self._db, numbers)

    def prune_versions(self, before_ms: int, *, dry_run: bool) -> int:
        """Removes older versions that were fetched before; how many. Of an article always the
        oldest ones, and none of which a sink still has to be told."""
        going: list[tuple[int, int]] = []
        waiting = {tuple(row) for row in self._db.execute(_UNTOLD)}
        stopped = -1  # number of the article whose other versions stay
        for n, version, data in self._db.execute(
            "SELECT n, version, data FROM version ORDER BY n, version"
        ):
            if n == stopped:
                continue
            article = codec.unpack(data, version=version, cluster=None, gone=False)
            fetched_ms = codec.ms(article.fetched)
            if fetched_ms is None or fetched_ms >= before_ms or (n, version) in waiting:
                stopped = n
            else:
                going.append((n, version))
        if not dry_run and going:
            self._db.execute(_PRUNED)
        for at in range(0, 0 if dry_run else len(going), _PRUNE_BATCH):
            with immediate(self._db):
                self._db.executemany(
                    "DELETE FROM version WHERE n = ? AND version = ?", going[at : at + _PRUNE_BATCH]
                )
        return len(going)

    def scrub(self, *, rewrite: bool) -> bool:
        """Takes the pages of what was purged off the disk: freed pages are zeros by secure_delete,
        the log of writes is emptied here. False: another process reads from it all the time.

        :param rewrite: the whole file is written anew (VACUUM); others that write wait for it
        """
        if rewrite:
            self._db.execute("VACUUM")
        deadline = time.monotonic() + _SCRUB_S
        while True:
            busy = self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()[0][0]
            if not busy or time.monotonic() > deadline:
                return busy == 0
            time.sleep(0.05)

    @contextmanager
    def _writing(self) -> Iterator[Numbers]:
        """A transaction in which articles come or go."""
        try:
            with immediate(self._db), numbered(self._db) as numbers:
                self._bands.begin()
                yield numbers
                self._bands.end()
        except BaseException:
            self._bands.undone()
            raise

    # ------------------------------------------------------------------ one article
    def _write(self, new: _Ready, old: _Old | None, now: int, numbers: Numbers) -> PutResult:
        a = new.article
        version = old.version + 1 if old else 1
        fields = (
            numbers.next(), a.url, new.other, version, new.digest, new.order_ms, now, new.data,
        )  # fmt: skip
        if old is None:
            self._db.execute(
                "INSERT INTO article(change, url, canonical, version, digest, order_ms, stored_ms, "
                "data, id) VALUES(?,?,?,?,?,?,?,?,?)",
                (*fields, a.id),
            )
            n = self._db.last_insert_rowid()
        else:
            n = old.n
            self._keep_version(n)
            self._forget_bands(old, numbers)
            self._db.execute(
                "UPDATE article SET change = ?, url = ?, canonical = ?, version = ?, digest = ?, "
                "order_ms = ?, stored_ms = ?, data = ?, gone = 0, cluster = NULL WHERE n = ?",
                (*fields, n),
            )
        status: PutStatus = "updated" if old else "new"
        self._db.execute(_EVENT, (fields[0], n, version, status, now))
        self._join_cluster(n, version, new, numbers)
        return PutResult(a.id, status, version)

    def _keep_version(self, n: int) -> None:
        """The version that is about to be replaced."""
        version, data = self._db.execute("SELECT version, data FROM article WHERE n = ?", (n,)).get
        self._db.execute(
            "INSERT OR REPLACE INTO version(n, version, data) VALUES(?,?,?)",
            (n, version, codec.packed(data)),
        )

    def _ready(self, article: Article, digest: bytes) -> _Ready:
        hashes = near_duplicates.shingles_of(article.content)
        bands, runs = near_duplicates.band_keys(hashes), near_duplicates.run_keys(hashes)
        return _Ready(
            article,
            digest,
            codec.plain(article),
            hashes,
            list(dict.fromkeys(bands + runs)),
            frozenset(runs).difference(bands),
            codec.order_ms(article, self._now_ms()),
            canonical_duplicates.other_address(article),
        )

    def _duplicate(self, new: _Ready) -> PutResult | None:
        a = new.article
        named: list[Any] = self._db.execute(_NAMING, (a.url,)).fetchall()
        if new.other:
            for query in (_NAMED, _NAMING):
                named += self._db.execute(query, (new.other,)).fetchall()
        for article_id, version, data in named:
            stored = codec.unpack(data, version=version, cluster=None, gone=False)
            if stored.site == a.site and canonical_duplicates.is_alike(
                a.content, new.shingles, stored.content
            ):
                return PutResult(a.id, "duplicate", version, article_id)
        return None

    # ------------------------------------------------------------------ near-duplicates
    def _join_cluster(self, n: int, version: int, new: _Ready, numbers: Numbers) -> None:
        holders = self._bands.holders(new.keys)
        candidates = self._candidates(n, new, holders)
        noted = self._bands.add if version == 1 else self._bands.write
        noted(n, [key for key in new.keys if len(holders[key]) < _HOLDERS])
        if not candidates:
            return
        story = near_duplicates.Story.of(new.article.content, new.shingles)
        for other in candidates:
            cluster, data = self._db.execute(
                "SELECT cluster, CAST(data AS BLOB) FROM article WHERE n = ?", (other,)
            ).get
            text = codec.unpack(data, version=0, cluster=None, gone=False).content
            if not near_duplicates.is_same(story, near_duplicates.Story.of(text)):
                continue
            # The version makes the label unique: an article may leave a cluster that it
            # gave its label to.
            label = (n << 16 | min(version, 0xFFFF)) if cluster is None else cluster
            self._db.execute("UPDATE article SET cluster = ? WHERE n = ?", (label, n))
            if cluster is None:
                self._set_cluster(other, label, numbers)
            return

    def _candidates(self, n: int, new: _Ready, holders: dict[int, list[int]]) -> list[int]:
        """Articles that may be copies of a new one or excerpts, those with the most keys in common
        first."""
        shared = Counter(chain.from_iterable(holders.values()))
        if not shared:
            return []
        of_bands = (found for key, found in holders.items() if key not in new.runs)
        by_bands = set(chain.from_iterable(of_bands))
        del shared[n]
        return [
            other
            for other, count in shared.most_common(_VERIFIED)
            if other in by_bands or self._may_be_excerpt(count, new, other)
        ]

    def _may_be_excerpt(self, shared: int, new: _Ready, other: int) -> bool:
        size = self._db.execute("SELECT octet_length(data) FROM article WHERE n = ?", (other,)).get
        return near_duplicates.may_be_excerpt(shared, len(new.runs), size)

    def _set_cluster(self, n: int, label: int | None, numbers: Numbers) -> None:
        """Of an article that does not change otherwise."""
        self._db.execute(
            "UPDATE article SET cluster = ?, change = ? WHERE n = ?", (label, numbers.next(), n)
        )

    def _forget_bands(self, old: _Old, numbers: Numbers) -> None:
        data = self._db.execute("SELECT data FROM article WHERE n = ?", (old.n,)).get
        text = codec.unpack(data, version=0, cluster=None, gone=False).content
        keys = near_duplicates.candidate_keys(near_duplicates.shingles_of(text))
        self._bands.forget(old.n, keys)
        if old.cluster is not None:
            rest = [
                n
                for (n,) in self._db.execute(
                    "SELECT n FROM article WHERE cluster = ? AND n <> ? LIMIT 2",
                    (old.cluster, old.n),
                )
            ]
            if len(rest) == 1:
                self._set_cluster(rest[0], None, numbers)

    # ------------------------------------------------------------------ lookups
    def _lookups(
        self, articles: Sequence[Article], digests: list[bytes]
    ) -> list[tuple[_Old | None, bytes]]:
        return [(self._old(a.id), d) for a, d in zip(articles, digests, strict=True)]

    def _old(self, article_id: str) -> _Old | None:
        row = self._db.execute(
            "SELECT n, version, gone, digest, cluster FROM article WHERE id = ?", (article_id,)
        ).fetchone()
        return None if row is None else _Old(row[0], row[1], bool(row[2]), row[3], row[4])

    def _unchanged(self, article_id: str) -> PutResult:
        old = self._old(article_id)
        assert old is not None
        return PutResult(article_id, "unchanged", old.version)
