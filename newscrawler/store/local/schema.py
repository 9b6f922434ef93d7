"""The SQLite file: connections, tables, and SQLite's errors as StoreUnavailable.

One contentless FTS5 table holds the words (``t`` title and ``b`` content exact, ``ft`` ``fb`` folded, ``m``
site, authors, credits). Its rowid is the minute of publication << 8 | a sequence: newest-first order, date
limits and the day facet then need no join. ``doc`` is narrow, for facets; ``article`` holds the rest.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw

from newscrawler.store import codec, neardup
from newscrawler.store.base import StoreUnavailable

VERSION = 3
BUSY_MS = 10_000
#: Bits of the sequence inside a minute; what does not fit goes to the next minute that has room.
SEQUENCE_BITS = 8
SEQUENCES = 1 << SEQUENCE_BITS
#: Words of the column ``m`` that no text can contain: private-use characters (category Co).
EVERY, SITE, BETWEEN = "\ue000", "\ue001", "\ue002"

_TABLES = """
CREATE TABLE IF NOT EXISTS site(n INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE);
CREATE TABLE IF NOT EXISTS article(
    n INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    row INTEGER,               -- rowid in fts and doc; NULL when gone
    url TEXT NOT NULL,
    canonical TEXT,            -- in canonical form, where it differs from url
    version INTEGER NOT NULL,
    gone INTEGER NOT NULL DEFAULT 0,
    digest BLOB NOT NULL,
    cluster INTEGER,           -- label shared by near-duplicates; NULL when alone
    order_ms INTEGER NOT NULL, -- published, else first seen
    stored_ms INTEGER NOT NULL,
    data BLOB NOT NULL         -- the fields: JSON, zlib
);
CREATE INDEX IF NOT EXISTS article_url ON article(url);
CREATE INDEX IF NOT EXISTS article_canonical ON article(canonical) WHERE canonical IS NOT NULL;
CREATE INDEX IF NOT EXISTS article_cluster ON article(cluster) WHERE cluster IS NOT NULL;
CREATE INDEX IF NOT EXISTS article_stored ON article(stored_ms);
CREATE INDEX IF NOT EXISTS article_gone ON article(n) WHERE gone = 1;
CREATE TABLE IF NOT EXISTS version(
    n INTEGER NOT NULL, version INTEGER NOT NULL, data BLOB NOT NULL, PRIMARY KEY(n, version)
);
CREATE TABLE IF NOT EXISTS doc(row INTEGER PRIMARY KEY, n INTEGER NOT NULL, site INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS band(key INTEGER NOT NULL, n INTEGER NOT NULL, PRIMARY KEY(key, n)) WITHOUT ROWID;
-- What is written are words already, with spaces between: "ascii" has the least to do, and takes all others as letters.
CREATE VIRTUAL TABLE IF NOT EXISTS fts USING fts5(
    t, b, ft, fb, m, content='', contentless_delete=1,
    tokenize="ascii"
);
"""

# automerge: segments of one size that are merged; half the writing of the default (4), a query opens a few more of them.
# hashsize: bytes of new words that are held until the commit; with the default (1 MB) a batch of 50 is written in pieces.
_INDEX_SETTINGS = """
INSERT INTO fts(fts, rank) VALUES('automerge', 8);
INSERT INTO fts(fts, rank) VALUES('hashsize', 16777216);
"""


def site_word(site: str) -> str:
    return SITE + "".join(c if c.isalnum() else SITE for c in site.lower())


def connect(path: Path, *, create: bool) -> apsw.Connection:
    """A connection for one thread at a time. ``create`` makes file and tables, else the file must be there."""
    with translated(path):
        if create:
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
            except OSError as exc:
                raise StoreUnavailable(f"article store {path}: cannot create its folder: {exc}") from exc
        flags = apsw.SQLITE_OPEN_READWRITE | (apsw.SQLITE_OPEN_CREATE if create else 0)
        connection = apsw.Connection(str(path), flags=flags)
        try:
            connection.set_busy_timeout(BUSY_MS)
            connection.execute("PRAGMA temp_store = MEMORY; PRAGMA mmap_size = 268435456")
            if create:
                # FULL: what was put is on the disk before the URL is acked, also when the power fails.
                connection.execute(
                    "PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 4000; PRAGMA cache_size = -32768"
                )
                _prepare(connection, path)
            connection.execute("SELECT 1 FROM sqlite_schema LIMIT 1")  # a damaged file is seen here, by its right name
        except BaseException:
            connection.close()
            raise
        return connection


def _prepare(connection: apsw.Connection, path: Path) -> None:
    if not connection.readonly("main"):
        _use_wal(connection)
    found = connection.pragma("user_version")
    if found == VERSION:
        return
    if found > VERSION:
        raise StoreUnavailable(f"article store {path} is of a newer version ({found}, this program: {VERSION})")
    with immediate(connection):
        found = connection.pragma("user_version")  # another process may have been first
        if found == 1:
            _rebuild_bands(connection)
        elif found == 0:
            connection.execute(_TABLES)
        if found < VERSION:
            connection.execute(_INDEX_SETTINGS)
        connection.pragma("user_version", VERSION)


def _rebuild_bands(connection: apsw.Connection) -> None:
    """Version 1 hashed words one by one: its keys say nothing about those of today. 3,000 articles a second."""
    connection.execute("DELETE FROM band")
    articles = connection.execute("SELECT n, data FROM article WHERE gone = 0")
    for n, data in articles:
        text = codec.unpack(data, version=0, cluster=None, gone=False).content
        keys = neardup.band_keys(neardup.shingles_of(text))
        connection.executemany("INSERT OR IGNORE INTO band(key, n) VALUES(?,?)", [(k, n) for k in sorted(keys)])


def _use_wal(connection: apsw.Connection) -> None:
    """Two processes that create the file at once: SQLite answers busy here without waiting, so we wait."""
    deadline = time.monotonic() + BUSY_MS / 1000
    while True:
        try:
            connection.pragma("journal_mode", "wal")
            return
        except apsw.BusyError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.02)


@contextmanager
def immediate(connection: apsw.Connection) -> Iterator[None]:
    """A write transaction: all of it or nothing."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:  # SQLite rolls back by itself after some errors (disk full)
            connection.execute("ROLLBACK")
        raise


@contextmanager
def snapshot(connection: apsw.Connection) -> Iterator[None]:
    """One state of the file for several reads."""
    connection.execute("BEGIN")
    try:
        yield
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


@contextmanager
def translated(path: Path) -> Iterator[None]:
    try:
        yield
    except apsw.BusyError as exc:
        raise StoreUnavailable(f"article store {path}: locked by another process for {BUSY_MS // 1000} s") from exc
    except apsw.FullError as exc:
        raise StoreUnavailable(f"article store {path}: the disk is full; free some space, nothing was lost") from exc
    except (apsw.ReadOnlyError, apsw.PermissionsError) as exc:
        raise StoreUnavailable(f"article store {path}: read-only; this user may not write there") from exc
    except apsw.CantOpenError as exc:
        raise StoreUnavailable(f"article store {path}: cannot be opened; is its folder there and writable?") from exc
    except (apsw.CorruptError, apsw.NotADBError) as exc:
        raise StoreUnavailable(
            f"article store {path}: damaged ({exc}); put a backup in its place, or move it away "
            "and fill a new one with `scrapy reparse`"
        ) from exc
    except (apsw.IOError, apsw.NoMemError) as exc:
        raise StoreUnavailable(f"article store {path}: {exc}; look at the disk (dmesg, df)") from exc
