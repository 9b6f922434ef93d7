"""The SQLite store on bad days: no room, no right, damage, kill -9, several processes; and
what it writes where."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import apsw
import pytest
from tantivy import Query as IndexQuery

from newscrawler.items import Article
from newscrawler.store import open_store
from newscrawler.store.base import COUNT_CAP, Query, StoreUnavailable
from newscrawler.store.fulltext.folder import Folder
from newscrawler.store.fulltext.schema import schema as fulltext_schema
from newscrawler.store.sqlite import LocalStore, job, schema
from newscrawler.store.sqlite.read import StoreReader
from newscrawler.store.sqlite.write import Writer
from tests.patience import Deadline

ROOT = Path(__file__).resolve().parents[3]
DAY = datetime(2026, 8, 1, tzinfo=UTC)


def article(number: int, text: str = "", **fields: object) -> Article:
    made = Article(
        id=f"{number:032x}", url=f"https://a.vn/{number}.html", site="a.vn", title=f"Tin {number}",
        content=text or f"Nội dung số {number} " + " ".join(f"w{number}x{i}" for i in range(40)),
        published=DAY + timedelta(minutes=number % 5000),
    )  # fmt: skip
    return replace(made, **fields)  # type: ignore[arg-type]


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[LocalStore]:
    store = LocalStore(tmp_path / "articles.db")
    yield store
    await store.close()


def check(path: Path) -> None:
    """SQLite finds nothing wrong, every change has its number, and the index has what is
    not gone, each once."""
    db = apsw.Connection(str(path))
    try:
        assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert db.execute("SELECT count(*) FROM article WHERE change IS NULL").get == 0
        last = db.execute("SELECT max(change) FROM article").get
        assert last == db.execute("SELECT max(change) FROM history").get
        live = sorted(n for (n,) in db.execute("SELECT n FROM article WHERE gone = 0"))
    finally:
        db.close()
    view = Folder(path.with_suffix(".index")).view()
    assert view is not None and view.mark.done == last
    every = IndexQuery.term_query(fulltext_schema(), "kind", 1)
    hits = view.searcher.search(every, limit=len(live) + 10, order_by_field="n").hits
    assert sorted(n for n, _ in hits) == live


async def test_a_full_disk_stores_nothing_of_the_batch_and_says_so(
    store: LocalStore, tmp_path: Path
) -> None:
    await store.put([article(i) for i in range(50)])
    assert store._writer is not None
    db = store._writer._db
    pages = db.pragma("page_count")
    db.pragma("max_page_count", pages + 3)
    with pytest.raises(StoreUnavailable, match="disk is full"):
        await store.put([article(i) for i in range(50, 150)])
    assert (await store.stats())["articles"] == 50
    assert await store.get(article(50).id) is None
    db.pragma("max_page_count", 1 << 30)  # room again
    assert {r.status for r in await store.put([article(i) for i in range(50, 150)])} == {"new"}
    await store.refresh()
    check(tmp_path / "articles.db")


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that other users may enter; pytest's are not."""
    folder = Path(tempfile.mkdtemp(prefix="newscrawler-store-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


async def test_a_read_only_store_can_be_read_but_not_written(open_folder: Path) -> None:
    path = open_folder / "articles.db"
    store = LocalStore(path)
    await store.put([article(1)])
    await store.close()
    path.chmod(0o444)
    open_folder.chmod(0o555)
    me = os.geteuid()
    if me == 0:
        os.seteuid(65534)  # root may write everywhere
    try:
        store = LocalStore(path)
        with pytest.raises(StoreUnavailable, match=r"read-only|cannot be opened"):
            await store.put([article(2)])
        await store.close()
    finally:
        os.seteuid(me)
        open_folder.chmod(0o755)


async def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    store = LocalStore(tmp_path / "file" / "articles.db")
    with pytest.raises(StoreUnavailable, match="cannot create its folder"):
        await store.open()
    await store.close()


async def test_a_damaged_file_is_said_to_be_damaged(tmp_path: Path) -> None:
    (tmp_path / "articles.db").write_bytes(b"not a database " * 1000)
    store = LocalStore(tmp_path / "articles.db")
    with pytest.raises(StoreUnavailable, match="damaged"):
        await store.put([article(1)])
    with pytest.raises(StoreUnavailable, match="damaged"):
        await store.search(Query("x"))
    await store.close()


async def test_a_store_of_a_newer_program_is_not_touched(tmp_path: Path) -> None:
    db = apsw.Connection(str(tmp_path / "articles.db"))
    db.pragma("user_version", schema.VERSION + 1)
    db.close()
    store = LocalStore(tmp_path / "articles.db")
    with pytest.raises(StoreUnavailable, match="newer version"):
        await store.open()
    await store.close()


async def test_a_lock_held_by_another_process_is_waited_for_and_then_named(
    store: LocalStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schema, "BUSY_MS", 1500)
    await store.put([article(1)])
    await store.refresh()
    other = apsw.Connection(str(tmp_path / "articles.db"))
    other.execute("BEGIN IMMEDIATE")
    waiting = asyncio.create_task(store.put([article(2)]))
    await asyncio.sleep(0.2)
    assert not waiting.done()
    other.execute("COMMIT")
    assert (await waiting)[0].status == "new"
    await store.refresh()
    other.execute("BEGIN IMMEDIATE")
    try:
        with pytest.raises(StoreUnavailable, match="locked by another process"):
            await store.put([article(3)])
        assert (await store.search(Query("tin"))).total == 2, "reading goes on"
    finally:
        other.execute("ROLLBACK")
        other.close()


async def test_a_closed_store_says_so(store: LocalStore) -> None:
    await store.put([article(1)])
    await store.close()
    with pytest.raises(StoreUnavailable, match="closed"):
        await store.get(article(1).id)


def test_open_store_chooses_by_uri(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="ARTICLE_STORE"):
        open_store("mongodb://x", tmp_path)
    with pytest.raises(StoreUnavailable, match="no articles stored yet"):
        open_store("", tmp_path, must_exist=True)
    assert not list(tmp_path.iterdir()), "a reader creates nothing"


# ---------------------------------------------------------------- several processes, kill -9
_WORKER = """
import asyncio, sys
from pathlib import Path
from tests.unit.store.test_local import article
from newscrawler.store.sqlite import LocalStore

async def main(path, first, last, size):
    store = LocalStore(Path(path))
    for at in range(first, last, size):
        results = await store.put([article(i) for i in range(at, at + size)])
        print(at, sum(r.status == "new" for r in results), flush=True)
    await store.close()

asyncio.run(main(sys.argv[1], *map(int, sys.argv[2:])))
"""


def start(path: Path, *numbers: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", _WORKER, str(path), *map(str, numbers)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)


@pytest.mark.long
async def test_processes_that_start_at_once_share_one_file(tmp_path: Path) -> None:
    path = tmp_path / "new" / "articles.db"
    workers = [start(path, *numbers) for numbers in ((0, 300, 20), (150, 450, 20), (0, 450, 30))]
    outputs = [w.communicate(timeout=120)[0] for w in workers]
    assert [w.returncode for w in workers] == [0, 0, 0]
    new = sum(int(line.split()[1]) for out in outputs for line in out.splitlines())
    assert new == 450, "each article was new exactly once"
    store = LocalStore(path)
    assert (await store.search(Query("tin"))).total == 450
    await store.close()
    check(path)


@pytest.mark.slow
async def test_kill_9_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    path = tmp_path / "articles.db"
    said: set[int] = set()
    for turn in range(4):
        worker = start(path, turn * 100_000, (turn + 1) * 100_000, 10)
        assert worker.stdout is not None
        deadline = Deadline(60)
        lines = 0
        while lines < 15 + 7 * turn and not deadline.is_over():
            said.add(int(worker.stdout.readline().split()[0]))
            lines += 1
        worker.send_signal(signal.SIGKILL)
        said |= {
            int(line.split()[0])
            for line in worker.communicate()[0].splitlines()
            if line.endswith(("10", "0"))
        }
    assert len(said) >= 60
    store = LocalStore(path)
    lost = [at for at in said for i in range(at, at + 10) if await store.get(article(i).id) is None]
    assert not lost
    for turn in range(4):  # the next start goes on where the killed one stopped
        again = await store.put([article(i) for i in range(turn * 100_000, turn * 100_000 + 150)])
        assert {r.status for r in again} == {"unchanged"}
    await store.refresh()
    await store.close()
    check(path)


# ---------------------------------------------------------------- what is written where
async def test_articles_of_one_moment_keep_their_day(store: LocalStore, tmp_path: Path) -> None:
    midnight = [article(i, published=DAY) for i in range(700)]
    assert {r.status for r in await store.put(midnight)} == {"new"}
    await store.put([article(9999, published=DAY + timedelta(minutes=1))])
    await store.refresh()
    day = {"after": DAY, "before": DAY + timedelta(days=1)}
    result = await store.search(Query(**day, facets=True, size=1))
    assert (result.total, result.facets["day"]) == (701, {"2026-08-01": 701})
    assert result.hits[0].article.id == article(9999).id
    check(tmp_path / "articles.db")


async def test_deep_pages_show_every_match_once(store: LocalStore) -> None:
    titles = [
        article(i, title="chung" if i % 10 == 0 else "khác", content="chung từ") for i in range(130)
    ]
    await store.put(titles)
    await store.refresh()
    seen = []
    for page in range(14):
        result = await store.search(Query("chung", page=page, size=10))
        assert result.total == 130
        seen += [h.article.id for h in result.hits]
    assert len(seen) == len(set(seen)) == 130
    # Also old ones with it in the title; the three newest among them.
    in_titles = {a.id for a in titles if a.title == "chung"}
    assert in_titles <= set(seen[:16]) and set(seen[:16]) - in_titles == {a.id for a in titles[-3:]}


async def test_totals_and_facets_count_every_match(store: LocalStore) -> None:
    many = COUNT_CAP + 101
    for at in range(0, many, 2_000):
        batch = range(at, min(many, at + 2_000))
        await store.put([article(i, text=f"chung {i}") for i in batch])
    await store.refresh()
    result = await store.search(Query("chung", facets=True, size=1))
    assert (result.total, result.total_is_capped) == (many, False)
    assert result.facets["site"] == {"a.vn": many}
    await store.mark_gone([article(0).id])
    await store.refresh()
    assert (await store.search(Query("tin"))).total == many - 1


async def test_updates_leave_nothing_behind(store: LocalStore, tmp_path: Path) -> None:
    for turn in range(5):
        await store.put(
            [
                article(i, text=f"lần {turn} " + " ".join(f"t{turn}w{k}" for k in range(30)))
                for i in range(30)
            ]
        )
    await store.mark_gone([article(i).id for i in range(5)])
    await store.refresh()
    check(tmp_path / "articles.db")
    # Of an old version nothing is found; what is found instead is a correction, and said.
    assert (await store.search(Query('"t3w1"'))).relaxed == "corrected"
    assert (await store.search(Query('title:"t3w1"'))).total == 0
    assert (await store.search(Query('"t4w1"'))).total == 25
    db = apsw.Connection(str(tmp_path / "articles.db"))
    assert db.execute("SELECT count(DISTINCT n) FROM band").get == 30
    assert db.execute("SELECT max(c) FROM (SELECT count(*) c FROM band GROUP BY n)").get <= 21
    db.close()


def test_an_error_in_the_middle_of_a_batch_undoes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    db = schema.connect(tmp_path / "articles.db", create=True)
    writer = Writer(db, lambda: 1)
    real, calls = Writer._join_cluster, []

    def fails_at_third(self: Writer, *args: object) -> None:
        calls.append(1)
        if len(calls) == 3:
            raise apsw.IOError("disk I/O error")
        real(self, *args)  # type: ignore[arg-type]

    monkeypatch.setattr(Writer, "_join_cluster", fails_at_third)
    with pytest.raises(apsw.IOError):
        writer.put([article(i) for i in range(5)])
    assert not db.in_transaction
    assert writer.put([article(i) for i in range(5)])[4].status == "new"
    index = job.index_of(tmp_path / "articles.db")
    reader = StoreReader(schema.connect(tmp_path / "articles.db", create=False), index)
    assert reader.search(Query("tin")).total == 5
    index.close()
    reader._db.close()
    db.close()
    check(tmp_path / "articles.db")


async def test_a_mark_alone_is_found_nowhere(store: LocalStore) -> None:
    await store.put([article(1)])
    await store.refresh()
    result = await store.search(Query("\u0301", facets=True, collapse=True))
    assert (result.total, result.hits) == (0, [])
