"""A SQLite store as a whole: walked, compared, inspected. Functions of a reading connection."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import apsw

from newscrawler.store import codec
from newscrawler.store.base import Headline, Kept, VersionState

#: Examples that a line names.
_NAMED = 3
_WALK = "SELECT n, version, gone, digest, data FROM article WHERE n > ? ORDER BY n LIMIT ?"
_HEADLINES = (
    "SELECT id, json_extract(data, '$.site'), json_extract(data, '$.title'), order_ms FROM article"
    " WHERE gone = 0 AND order_ms >= ? AND order_ms < ? ORDER BY order_ms"
)
#: What is wrong -> the ids (or numbers) that it is wrong with.
_FAULTS = {
    "older versions belong to no article": (
        "SELECT DISTINCT v.n FROM version v LEFT JOIN article a ON a.n = v.n WHERE a.n IS NULL"
    ),
    "articles lack some of their older versions": (
        "SELECT a.id FROM article a WHERE a.version > 1"
        " AND a.version - {} <> (SELECT count(*) FROM version v WHERE v.n = a.n)"
    ),
    "fingerprints of near-duplicates belong to no article": (
        "SELECT b.n FROM (SELECT n FROM band UNION SELECT n FROM band_fresh) b"
        " LEFT JOIN article a ON a.n = b.n WHERE a.n IS NULL"
    ),
}


def walk(db: apsw.Connection, after: int, count: int) -> tuple[list[Kept], int]:
    """The next ones, and where to go on; none: that was all."""
    rows: list[Any] = db.execute(_WALK, (after, count)).fetchall()
    kept = [
        Kept(codec.unpack(data, version=version, cluster=None, gone=bool(gone)), digest)
        for _, version, gone, digest, data in rows
    ]
    return kept, rows[-1][0] if rows else after


def states(db: apsw.Connection, ids: Sequence[str]) -> dict[str, VersionState]:
    found: dict[str, VersionState] = {}
    for one in ids:
        row: Any = db.execute(
            "SELECT version, gone, digest FROM article WHERE id = ?", (one,)
        ).fetchone()
        if row is not None:
            found[one] = VersionState(row[0], bool(row[1]), row[2])
    return found


def headlines(db: apsw.Connection, after_ms: int, before_ms: int) -> list[Headline]:
    rows = db.execute(_HEADLINES, (after_ms, before_ms))
    return [
        Headline(one, site, title or "", datetime.fromtimestamp(at / 1000, UTC))
        for one, site, title, at in rows
    ]


def faults(db: apsw.Connection) -> list[str]:
    lines = [
        f"the file is damaged: {row[0]}"
        for row in db.execute("PRAGMA quick_check(5)")
        if row[0] != "ok"
    ]
    # The oldest ones may have been pruned: then those that are kept must have no gap.
    first = "1"
    if db.execute("SELECT 1 FROM sqlite_schema WHERE name = 'pruned'").get:
        oldest = "SELECT min(v.version) FROM version v WHERE v.n = a.n"
        first = f"coalesce(({oldest}), a.version)"
    for text, sql in _FAULTS.items():
        rows = db.execute(sql.replace("{}", first)).fetchall()
        if rows:
            named = ", ".join(str(row[0]) for row in rows[:_NAMED])
            lines.append(f"{len(rows):,} {text}: {named}{', ...' * (len(rows) > _NAMED)}")
    return lines
