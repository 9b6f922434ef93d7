"""The write transaction of every SQLite file: articles and vectors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import apsw


@contextmanager
def immediate(connection: apsw.Connection) -> Iterator[None]:
    """A write transaction: all of it or nothing, and nobody else's write within."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:  # SQLite rolls back by itself after some errors (disk full)
            connection.execute("ROLLBACK")
        raise
