"""The view ``news``: the articles as other programs read them (sqlite3, Datasette, sqlite-utils,
pandas), a row an article, without any function of ours.

Times are UTC. Lists are JSON arrays, which Datasette makes facets of. An article that its site has
taken down is not in it.
"""

from __future__ import annotations

from typing import Any

import apsw

from newscrawler.items import FIELDS, Field

NAME = "news"
_TIME = "'%Y-%m-%dT%H:%M:%SZ'"
#: Columns of the table itself; everything else is in its JSON.
_OWN = {
    "id": "a.id",
    "url": "a.url",
    "version": "a.version",
    # The article of a near-duplicate cluster that was published first.
    "cluster": "(SELECT c.id FROM article c WHERE c.cluster = a.cluster"
    " ORDER BY c.order_ms, c.n LIMIT 1)",
}


def _column(field: Field) -> str:
    if field.name in _OWN:
        return f"{_OWN[field.name]} AS {field.name}"
    value = f"json_extract(a.data, '$.{field.name}')"
    if field.type == "time":
        value = f"strftime({_TIME}, {value})"
    elif field.type == "texts":
        value = f"coalesce({value}, '[]')"
    return f"{value} AS {field.name}"


_COLUMNS = ",\n    ".join(
    [
        *(_column(f) for f in FIELDS if f.exported),
        # Published, else first seen: the day that a search counts the article under.
        "date(a.order_ms / 1000, 'unixepoch') AS day",
        f"strftime({_TIME}, a.stored_ms / 1000, 'unixepoch') AS stored",
        # ORDER BY order_ms uses an index, which no other column does.
        "a.order_ms AS order_ms",
    ]
)
SQL = f"CREATE VIEW {NAME} AS SELECT\n    {_COLUMNS}\nFROM article a WHERE a.gone = 0"


def is_current(connection: apsw.Connection) -> bool:
    """Whether the file has the view with the fields of today."""
    return _found(connection) in (("view", SQL), ("table", ""))


def create(connection: apsw.Connection) -> None:
    """Inside of a write transaction. A table of this name that somebody has made stays."""
    kind, sql = _found(connection)
    if kind == "view" and sql != SQL:
        connection.execute(f"DROP VIEW {NAME}")
    if sql != SQL and kind != "table":
        connection.execute(SQL)


def _found(connection: apsw.Connection) -> tuple[str, str]:
    row: Any = connection.execute(
        "SELECT type, sql FROM sqlite_schema WHERE name = ?", (NAME,)
    ).fetchone()
    if row is None:
        return "", ""
    return ("view", row[1]) if row[0] == "view" else ("table", "")
