"""The SQLite file: connections, tables, and SQLite's errors as StoreUnavailable.

``article`` holds the current state of every article, with a number that rises with each change of
any of them: what follows the file (the full-text index) asks for the changes after the last one it
knows.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw

from newscrawler.store import codec, near_duplicates
from newscrawler.store.base import StoreGone, StoreUnavailable
from newscrawler.store.sqlite import view
from newscrawler.store.transaction import immediate

log = logging.getLogger(__name__)

VERSION = 8
#: The version from which on articles have change numbers, and words are in an index beside the
#: file.
CHANGES_SINCE = 5
#: The version from which on current articles are plain JSON, for the view.
PLAIN_SINCE = 6
BUSY_MS = 10_000

_TABLES = """
CREATE TABLE IF NOT EXISTS article(
    n INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    change INTEGER,            -- of its last change; rises over all articles
    url TEXT NOT NULL,
    canonical TEXT,            -- in canonical form, where it differs from url
    version INTEGER NOT NULL,
    gone INTEGER NOT NULL DEFAULT 0,
    digest BLOB NOT NULL,
    cluster INTEGER,           -- label shared by near-duplicates; NULL when alone
    order_ms INTEGER NOT NULL, -- published, else first seen
    stored_ms INTEGER NOT NULL,
    data TEXT NOT NULL         -- the fields: JSON, which the view ``news`` reads
);
CREATE INDEX IF NOT EXISTS article_url ON article(url);
CREATE INDEX IF NOT EXISTS article_canonical ON article(canonical) WHERE canonical IS NOT NULL;
CREATE INDEX IF NOT EXISTS article_cluster ON article(cluster) WHERE cluster IS NOT NULL;
CREATE INDEX IF NOT EXISTS article_stored ON article(stored_ms);
CREATE INDEX IF NOT EXISTS article_gone ON article(n) WHERE gone = 1;
CREATE TABLE IF NOT EXISTS version(
    n INTEGER NOT NULL, version INTEGER NOT NULL, data BLOB NOT NULL, -- JSON, zlib
    PRIMARY KEY(n, version)
);
-- The last change of each transaction. A file that is put back from a backup has another history.
CREATE TABLE IF NOT EXISTS history(change INTEGER PRIMARY KEY, token INTEGER NOT NULL);
-- What is told to sinks (outbox.py): an event for each version, and one when the article goes.
CREATE TABLE IF NOT EXISTS event(
    change INTEGER PRIMARY KEY, -- of the article, which is written in the same transaction
    n INTEGER NOT NULL, version INTEGER NOT NULL, kind TEXT NOT NULL, at_ms INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS sink(
    name TEXT PRIMARY KEY,
    position INTEGER NOT NULL,  -- the change up to which it has been told
    served_ms INTEGER NOT NULL
) WITHOUT ROWID;
-- Events that a sink's receiver will not take.
CREATE TABLE IF NOT EXISTS letter(
    sink TEXT NOT NULL, id TEXT NOT NULL, version INTEGER NOT NULL, kind TEXT NOT NULL,
    at_ms INTEGER NOT NULL, reason TEXT NOT NULL, refused_ms INTEGER NOT NULL,
    PRIMARY KEY(sink, id, version, kind)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS band(
    key INTEGER NOT NULL, n INTEGER NOT NULL, PRIMARY KEY(key, n)
) WITHOUT ROWID;
-- Keys on their way into band (bands.py). seq counts new articles and never comes again.
CREATE TABLE IF NOT EXISTS band_fresh(
    seq INTEGER PRIMARY KEY, n INTEGER NOT NULL UNIQUE, keys BLOB NOT NULL -- int64, little-endian
);
CREATE TABLE IF NOT EXISTS band_round(position INTEGER NOT NULL); -- the last seq
INSERT INTO band_round SELECT 0 WHERE NOT EXISTS (SELECT 1 FROM band_round);
-- Programs of schema 7 that had the file open before its conversion go on writing, and take the
-- keys of what they change or purge out of band alone.
CREATE TRIGGER IF NOT EXISTS band_fresh_changed AFTER UPDATE OF digest ON article BEGIN
    DELETE FROM band_fresh WHERE n = OLD.n;
END;
CREATE TRIGGER IF NOT EXISTS band_fresh_purged AFTER DELETE ON article BEGIN
    DELETE FROM band_fresh WHERE n = OLD.n;
END;
"""
#: After a file of an earlier version has its numbers.
_INDEXES = """
CREATE UNIQUE INDEX IF NOT EXISTS article_change ON article(change);
CREATE INDEX IF NOT EXISTS article_order ON article(order_ms) WHERE gone = 0;
"""
_FIRST_OF_HISTORY = """
INSERT OR IGNORE INTO history SELECT max(change), abs(random()) >> 1 FROM article HAVING count(*);
"""
#: The words were a table of FTS5 until version 4, with narrow tables for facets beside it.
_WORDS_OF_OLD = ("fts", "doc_label", "label", "doc", "site")


def connect(path: Path, *, create: bool) -> apsw.Connection:
    """A connection for one thread at a time. ``create`` makes file and tables, else the
    file must be there.

    :raises StoreUnavailable: the file cannot be opened or made
    """
    with translated(path):
        if create:
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
            except OSError as exc:
                raise StoreUnavailable(
                    f"article store {path}: cannot create its folder: {exc}"
                ) from exc
        flags = apsw.SQLITE_OPEN_READWRITE | (apsw.SQLITE_OPEN_CREATE if create else 0)
        connection = apsw.Connection(str(path), flags=flags)
        try:
            connection.set_busy_timeout(BUSY_MS)
            connection.execute("PRAGMA temp_store = MEMORY; PRAGMA mmap_size = 268435456")
            if create:
                # FULL: what was put is on the disk before the URL is acked, also when
                # the power fails.
                connection.execute(
                    "PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 4000; PRAGMA cache_size"
                    # What is deleted is overwritten: a take-down leaves no text in free pages.
                    " = -32768; PRAGMA secure_delete = ON"
                )
                _prepare(connection, path)
            connection.execute(
                "SELECT 1 FROM sqlite_schema LIMIT 1"
            )  # a damaged file is seen here, by its right name
        except BaseException:
            connection.close()
            raise
        return connection


class OpenedFile:
    """Which file a connection writes to. SQLite goes on writing to one that was
    deleted, and says nothing."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._path = Path(name)
        self._known = self._path.stat() if name else None

    def check(self) -> None:
        """:raises StoreGone: another file is at its path, or none"""
        if self._known is None:
            return
        try:
            if os.path.samestat(self._path.stat(), self._known):
                return
        except OSError:
            pass
        raise StoreGone(
            f"article store {self._path}: was deleted while it was in use; what it held is lost"
        )


def is_older(path: Path) -> bool:
    """Whether the file was last written by a program of an earlier version. Raises StoreGone where
    it is of a later one."""
    with translated(path):
        connection = connect(path, create=False)
        try:
            found: int = connection.pragma("user_version")
        finally:
            connection.close()
    _refuse_newer(found, path)
    return found < VERSION


def _refuse_newer(found: int, path: Path) -> None:
    if found > VERSION:
        raise StoreGone(
            f"article store {path} is of a newer version ({found}, this program: {VERSION})"
        )


def _prepare(connection: apsw.Connection, path: Path) -> None:
    if not connection.readonly("main"):
        _use_wal(connection)
    found = connection.pragma("user_version")
    if found == VERSION and view.is_current(connection):
        return
    _refuse_newer(found, path)
    with immediate(connection):
        found = connection.pragma("user_version")  # another process may have been first
        if found == 1:
            _rebuild_bands(connection)
        if 0 < found < CHANGES_SINCE:
            _number_changes(connection, path)
        if 0 < found < PLAIN_SINCE:
            _make_plain(connection, path)
        if found < VERSION:
            connection.execute(_TABLES)  # those that are missing
            connection.execute(_INDEXES)
            connection.execute(_FIRST_OF_HISTORY)
        view.create(connection)
        connection.pragma("user_version", VERSION)


def _number_changes(connection: apsw.Connection, path: Path) -> None:
    """Gives each article a change number and takes the words out of the file.

    Every row is written once: 100,000 articles take some seconds, in which other writers wait.
    """
    many = connection.execute("SELECT count(*) FROM article").get
    started = time.monotonic()
    log.warning("article store %s: of an earlier version; %d articles are converted", path, many)
    for table in _WORDS_OF_OLD:
        connection.execute(f"DROP TABLE IF EXISTS {table}")
    connection.execute("ALTER TABLE article RENAME COLUMN row TO change")
    connection.execute("UPDATE article SET change = n")
    took_s = time.monotonic() - started
    log.warning("article store %s: converted in %.1f s; its words are indexed now", path, took_s)


def _make_plain(connection: apsw.Connection, path: Path) -> None:
    """Writes the current articles as JSON; until version 5 they were compressed. The file is 1.8
    times as large then."""
    started, done = time.monotonic(), 0
    next_ones = "SELECT n, data FROM article WHERE n > ? ORDER BY n LIMIT 500"
    while True:
        rows: list[Any] = connection.execute(next_ones, (done,)).fetchall()
        if not rows:
            break
        connection.executemany(
            "UPDATE article SET data = ? WHERE n = ?",
            [(codec.plain_of(data), n) for n, data in rows],
        )
        done = rows[-1][0]
    log.warning(
        "article store %s: of an earlier version; its articles were made readable for other"
        " programs in %.1f s", path, time.monotonic() - started,
    )  # fmt: skip


def _rebuild_bands(connection: apsw.Connection) -> None:
    """Version 1 hashed words one by one: its keys say nothing about those of today. 3,000
    articles a second."""
    connection.execute("DELETE FROM band")
    articles = connection.execute("SELECT n, data FROM article WHERE gone = 0")
    for n, data in articles:
        text = codec.unpack(data, version=0, cluster=None, gone=False).content
        keys = near_duplicates.candidate_keys(near_duplicates.shingles_of(text))
        connection.executemany(
            "INSERT OR IGNORE INTO band(key, n) VALUES(?,?)", [(k, n) for k in sorted(keys)]
        )


def _use_wal(connection: apsw.Connection) -> None:
    """Two processes that create the file at once: SQLite answers busy here without
    waiting, so we wait."""
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
    """:raises StoreGone: the file is damaged
    :raises StoreUnavailable: locked, full, read-only or not to be opened
    """
    try:
        yield
    except apsw.BusyError as exc:
        raise StoreUnavailable(
            f"article store {path}: locked by another process for {BUSY_MS // 1000} s"
        ) from exc
    except apsw.FullError as exc:
        raise StoreUnavailable(
            f"article store {path}: the disk is full; free some space, nothing was lost"
        ) from exc
    except (apsw.ReadOnlyError, apsw.PermissionsError) as exc:
        raise StoreUnavailable(
            f"article store {path}: read-only; this user may not write there, which SQLite needs"
            " for reading too (its -shm file)"
        ) from exc
    except apsw.CantOpenError as exc:
        raise StoreUnavailable(
            f"article store {path}: cannot be opened; is its folder there and writable?"
        ) from exc
    except (apsw.CorruptError, apsw.NotADBError) as exc:
        raise StoreGone(
            f"article store {path}: damaged ({exc}); put a backup in its place, or move it away "
            "and fill a new one with `scrapy reparse`"
        ) from exc
    except (apsw.IOError, apsw.NoMemError) as exc:
        raise StoreUnavailable(
            f"article store {path}: {exc}; look at the disk (dmesg, df)"
        ) from exc
