"""The view ``news`` of a store's file, read as a stranger reads it: by sqlite3 and sqlite-utils."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import apsw
import pytest
import sqlite_utils

from newscrawler.items import FIELDS
from newscrawler.store import codec
from newscrawler.store.base import Query
from newscrawler.store.sqlite import LocalStore, schema, view
from tests.contract.articles import START, article, article_id, filler

STORM = article(
    "bao",
    "Bão số 5 đổ bộ Hà Nội",
    "Mưa lớn ở thủ đô.\n\nNhiều tuyến phố ngập.",
    site="tuoitre.vn",
    authors=["Nguyễn Văn An", "Trần Thị Bình"],
    keywords=["Thời tiết", "bão"],
    section="Thời sự",
    language="vi",
    published=datetime(2026, 8, 2, 1, 30, tzinfo=timezone(timedelta(hours=7))),
    fetched=datetime(2026, 8, 2, 3, 0, 0, 123456, tzinfo=UTC),
)
PLAIN = article("vang", "Giá vàng 'tăng'", filler(1), published=None)
LEFT = article("ma", "Ngôi nhà ma", filler(2))


@pytest.fixture
async def path(tmp_path: Path) -> Path:
    store = LocalStore(tmp_path / "articles.db", now_ms=lambda: codec.ms(START) or 0)
    await store.put([replace(STORM, title="Bão số 4"), PLAIN, LEFT])
    await store.put([STORM])
    await store.mark_gone([LEFT.id])
    await store.close()
    return tmp_path / "articles.db"


@pytest.fixture
def other_sqlite(path: Path) -> Iterator[sqlite3.Connection]:
    """Python's own SQLite, which knows none of our functions."""
    db = sqlite3.connect(path)
    db.row_factory = sqlite3.Row
    yield db
    db.close()


def test_a_row_has_the_fields_of_an_article(other_sqlite: sqlite3.Connection) -> None:
    row = dict(
        other_sqlite.execute("SELECT * FROM news WHERE id = ?", (article_id("bao"),)).fetchone()
    )
    assert set(row) == {f.name for f in FIELDS if f.exported} | {"day", "stored", "order_ms"}
    assert row["title"] == STORM.title and row["content"] == STORM.content
    assert (row["site"], row["section"], row["language"]) == ("tuoitre.vn", "Thời sự", "vi")
    assert json.loads(row["authors"]) == STORM.authors
    assert json.loads(row["keywords"]) == STORM.keywords
    assert row["published"] == "2026-08-01T18:30:00Z" and row["day"] == "2026-08-01"
    assert row["fetched"] == "2026-08-02T03:00:00Z" and row["stored"] == "2026-08-01T07:00:00Z"
    assert (row["version"], row["cluster"]) == (2, None)


def test_what_an_article_does_not_have_is_empty(other_sqlite: sqlite3.Connection) -> None:
    row = other_sqlite.execute("SELECT * FROM news WHERE title LIKE 'Giá%'").fetchone()
    assert (row["published"], row["section"], row["authors"]) == (None, None, "[]")
    assert row["day"] == "2026-08-01"  # first seen


def test_an_article_that_is_gone_is_not_in_it(other_sqlite: sqlite3.Connection) -> None:
    ids = {row["id"] for row in other_sqlite.execute("SELECT id FROM news")}
    assert ids == {STORM.id, PLAIN.id}


def test_the_newest_are_found_by_an_index(other_sqlite: sqlite3.Connection) -> None:
    sql = "EXPLAIN QUERY PLAN SELECT title FROM news ORDER BY order_ms DESC LIMIT 5"
    plan = " ".join(row[3] for row in other_sqlite.execute(sql))
    assert "article_order" in plan and "TEMP B-TREE" not in plan


async def test_copies_share_the_first_of_them(tmp_path: Path) -> None:
    text = filler(3)
    later = article("b", "Bản sao", text, site="tuoitre.vn", published=START + timedelta(hours=9))
    store = LocalStore(tmp_path / "articles.db")
    await store.put([article("a", "Bản đầu", text), later])
    await store.close()
    with sqlite3.connect(tmp_path / "articles.db") as db:
        clusters = {row[0] for row in db.execute("SELECT cluster FROM news")}
    assert clusters == {article_id("a")}


async def test_the_shell_of_sqlite_reads_it_while_articles_are_stored(path: Path) -> None:
    shell = shutil.which("sqlite3")
    if shell is None:
        text = "the shell sqlite3 is not installed (Debian: apt install sqlite3)"
        if os.environ.get("CI"):
            pytest.fail(text)
        pytest.skip(f"skipped: {text}")
    store = LocalStore(path)
    await store.put([article("moi", "Mới", filler(4))])  # its connection stays open
    sql = "SELECT title, json_extract(authors, '$[1]') AS second FROM news ORDER BY order_ms"
    said = await asyncio.to_thread(
        subprocess.run,
        [shell, "-readonly", "-json", str(path), sql],
        capture_output=True,
        text=True,
        timeout=60,
    )
    await store.close()
    assert said.returncode == 0, said.stderr
    rows = {row["title"]: row["second"] for row in json.loads(said.stdout)}
    assert rows == {"Mới": None, STORM.title: "Trần Thị Bình", PLAIN.title: None}


def test_sqlite_utils_reads_it(path: Path) -> None:
    db = sqlite_utils.Database(path)
    try:
        assert "news" in db.view_names()
        rows: list[dict[str, Any]] = list(db["news"].rows_where("site = ?", ["tuoitre.vn"]))
        assert [row["title"] for row in rows] == [STORM.title]
        assert {c.name for c in db["news"].columns} >= {"title", "content", "authors", "published"}
    finally:
        db.close()


def datasette(path: Path, asked: str) -> Any:
    """What Datasette answers to a request, by a process of its own."""
    command = [sys.executable, "-W", "ignore", "-m", "datasette", str(path), "--get", asked]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


def test_datasette_shows_sorts_and_counts_it(path: Path) -> None:
    """As docs/search.md says it: the newest first, with a facet of sites and one of authors."""
    asked = "_sort_desc=order_ms&_facet=site&_facet_array=authors&_shape=objects"
    page = datasette(path, f"/articles/news.json?{asked}")
    assert [row["title"] for row in page["rows"]] == [STORM.title, PLAIN.title]
    counts = {
        name: {row["value"]: row["count"] for row in facet["results"]}
        for name, facet in page["facet_results"].items()
    }
    assert counts["site"] == {"tuoitre.vn": 1, "vnexpress.net": 1}
    assert counts["authors"] == {"Nguyễn Văn An": 1, "Trần Thị Bình": 1}


# ---------------------------------------------------------------- files of other programs
def _statement(path: Path, *statements: str) -> None:
    db = apsw.Connection(str(path))
    try:
        for sql in statements:
            db.execute(sql)
    finally:
        db.close()


def _as_of_version_5(path: Path) -> None:
    """As the program before wrote it: compressed, without a view."""
    db = apsw.Connection(str(path))
    try:
        for n, data in db.execute("SELECT n, data FROM article").fetchall():
            db.execute("UPDATE article SET data = ? WHERE n = ?", (codec.packed(data), n))
        db.execute("DROP VIEW news")
        db.pragma("user_version", 5)
    finally:
        db.close()


@pytest.mark.parametrize("opened_by", ["writer", "reader"])
async def test_a_compressed_file_becomes_readable(path: Path, opened_by: str) -> None:
    _as_of_version_5(path)
    store = LocalStore(path)
    if opened_by == "writer":
        await store.open()
    assert (await store.search(Query("bão"))).total == 1
    assert [a.title for a in await store.versions(STORM.id)] == ["Bão số 4", STORM.title]
    left = await store.get(LEFT.id)
    assert left is not None and left.gone and left.content == LEFT.content
    assert [r.status for r in await store.put([STORM])] == ["unchanged"]
    await store.close()
    with sqlite3.connect(path) as db:
        assert db.execute("SELECT count(*) FROM news WHERE content <> ''").fetchone() == (2,)


async def test_a_view_of_other_fields_is_made_anew(path: Path) -> None:
    _statement(path, "DROP VIEW news", "CREATE VIEW news AS SELECT id FROM article")
    store = LocalStore(path)
    await store.open()
    await store.close()
    with sqlite3.connect(path) as db:
        assert db.execute("SELECT count(title) FROM news").fetchone() == (2,)


async def test_a_table_that_somebody_named_so_stays(path: Path) -> None:
    _statement(path, "DROP VIEW news", "CREATE TABLE news(mine)", "INSERT INTO news VALUES(1)")
    store = LocalStore(path)
    await store.put([article("moi", "Mới", filler(4))])
    await store.close()
    with sqlite3.connect(path) as db:
        assert db.execute("SELECT mine FROM news").fetchall() == [(1,)]


def test_its_columns_are_those_of_an_export() -> None:
    for field in FIELDS:
        assert (f" AS {field.name}" in view.SQL) == field.exported, field.name
    assert schema.PLAIN_SINCE <= schema.VERSION
