"""The index beside the SQLite file: it follows, is taken over, and is made anew, whatever
happened to it."""

from __future__ import annotations

import asyncio
import logging
import os
import random
import shutil
import subprocess
import sys
import time
from pathlib import Path

import apsw
import pytest
from scrapy.settings import Settings

from newscrawler.cli import doctor
from newscrawler.items import Article
from newscrawler.store.base import Query, StoreUnavailable
from newscrawler.store.fulltext import engine, folder, indexer
from newscrawler.store.fulltext import schema as index_schema
from newscrawler.store.fulltext.correct import Dictionary
from newscrawler.store.fulltext.folder import META
from newscrawler.store.fulltext.lock import Lock
from newscrawler.store.sqlite import LocalStore
from newscrawler.store.sqlite import schema as sqlite_schema
from newscrawler.store.sqlite.changes import Feed
from tests.crawl.harness import until
from tests.fixtures_disk import Disk
from tests.unit.store.test_local import ROOT, article, check

_WORKER = """
import asyncio, sys
from pathlib import Path
from tests.unit.store.test_local import article
from newscrawler.store.sqlite import LocalStore

async def main(path, first, last, size):
    store = LocalStore(Path(path))
    await store.open()
    print("open", flush=True)
    for line in sys.stdin:
        for at in range(first, last, size):
            await store.put([article(i) for i in range(at, at + size)])
            print(at, flush=True)
        break
    await asyncio.to_thread(sys.stdin.read)
    await store.close()

asyncio.run(main(sys.argv[1], *map(int, sys.argv[2:])))
"""


class Worker:
    """A process that writes articles when it is told to, and ends when its input does."""

    def __init__(self, path: Path, *numbers: int) -> None:
        command = [sys.executable, "-c", _WORKER, str(path), *map(str, numbers)]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe, text=True)
        assert self.read() == "open"

    def go(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write("go\n")
        self.process.stdin.flush()

    def read(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def kill(self) -> list[int]:
        """What it had acknowledged and nobody has read yet."""
        self.process.kill()
        rest = self.process.communicate()[0]
        return [int(line) for line in rest.splitlines(keepends=True) if line.endswith("\n")]

    def end(self) -> None:
        self.process.communicate(timeout=60)
        assert self.process.returncode == 0


async def found(path: Path, text: str = "tin") -> list[str]:
    """By a process that only reads, as ``scrapy search``: what the index lacks it
    takes over first."""
    store = LocalStore(path)
    try:
        ids: list[str] = []
        page = 0
        while True:
            result = await store.search(Query(text, size=100, page=page))
            ids += [h.article.id for h in result.hits]
            page += 1
            if len(result.hits) < 100:
                assert result.total == len(ids)
                return ids
    finally:
        await store.close()


def ids(numbers: range) -> set[str]:
    return {article(i).id for i in numbers}


async def test_kill_9_at_any_moment_leaves_what_was_acknowledged_to_be_found(
    tmp_path: Path,
) -> None:
    path = tmp_path / "articles.db"
    seed = random.randrange(1 << 30)
    rng = random.Random(seed)
    said: set[str] = set()
    for turn in range(5):
        first = turn * 1_000
        worker = Worker(path, first, first + 1_000, 5)
        worker.go()
        for _ in range(rng.randrange(1, 40)):
            at = int(worker.read())
            said |= ids(range(at, at + 5))
        await asyncio.sleep(
            rng.random() * 0.5
        )  # in the middle of a commit of either, or between them
        for at in worker.kill():
            said |= ids(range(at, at + 5))
        hits = await found(path)
        assert said <= set(hits), f"seed={seed}"
        assert len(hits) == len(set(hits)), f"seed={seed}: found twice"
        check(path)


@pytest.mark.long
async def test_one_process_indexes_what_another_writes_and_is_followed_when_killed(
    tmp_path: Path,
) -> None:
    path = tmp_path / "articles.db"
    first = Worker(path, 0, 100, 10)  # has the lock
    second = Worker(path, 100, 200, 10)
    reader = LocalStore(path)
    try:
        second.go()
        until = time.monotonic() + 20
        while (await reader.search(Query("tin"))).total < 100:
            assert time.monotonic() < until, "what the second wrote is indexed by the first"
            await asyncio.sleep(0.05)
        assert not Lock(path.with_suffix(".index.lock")).take(), "the first has the lock"
        first.kill()
        first = Worker(path, 200, 300, 10)
        first.go()
        for _ in range(10):
            first.read()
        while (await reader.search(Query("tin"))).total < 200:
            assert time.monotonic() < until + 20, "the second has taken over"
            await asyncio.sleep(0.05)
    finally:
        await reader.close()
        first.kill()
        second.end()
    check(path)


async def _filled(path: Path, many: int = 60) -> None:
    store = LocalStore(path)
    await store.put([article(i) for i in range(many)])
    await store.close()


async def test_articles_that_keep_coming_share_a_commit_unless_somebody_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(indexer.Indexer.__init__.__kwdefaults__, "commit_s", 3600.0)
    monkeypatch.setitem(indexer.Indexer.__init__.__kwdefaults__, "period_s", 0.02)
    path = tmp_path / "articles.db"
    index = path.with_suffix(".index")

    def committed() -> int:
        if not (index / META).exists():
            return 0
        return folder.mark_of(folder.open_index(index).searcher()).done

    store = LocalStore(path)
    await store.open()
    try:
        await store.put([article(0)])
        until(lambda: committed() == 1, "the first is committed, though nobody asked")
        await store.put([article(1)])
        await asyncio.sleep(0.3)  # fifteen looks at the store
        assert committed() == 1
        await store.refresh()
        assert committed() == 2
        await store.put([article(2)])
    finally:
        await store.close()
    assert committed() == 3


async def test_closing_leaves_an_index_that_is_complete(tmp_path: Path) -> None:
    await _filled(tmp_path / "articles.db")
    check(tmp_path / "articles.db")


def _lose(folder: Path) -> None:
    aside = folder.rename(
        folder.with_name("lost")
    )  # at once: a running indexer mends what is half deleted
    shutil.rmtree(aside)


def _garble_meta(folder: Path) -> None:
    (folder / META).write_bytes(b"\x00garbage\xff" * 50)


def _garble_words(folder: Path) -> None:
    for file in (*folder.glob("*.term"), *folder.glob("*.idx")):
        file.write_bytes(os.urandom(file.stat().st_size))


def _cut_off(folder: Path) -> None:
    for file in folder.glob("*.fast"):
        file.write_bytes(file.read_bytes()[:20])


def _take_a_segment(folder: Path) -> None:
    for file in folder.glob("*.pos"):
        file.unlink()


def _other_schema(folder: Path) -> None:
    meta = (folder / META).read_text(encoding="utf-8")
    assert f"schema_{index_schema.VERSION}" in meta
    (folder / META).write_text(meta.replace(f"schema_{index_schema.VERSION}", "schema_0"))


def _a_file_in_its_place(folder: Path) -> None:
    shutil.rmtree(folder)
    folder.write_text("x")


DAMAGE = [_lose, _garble_meta, _garble_words, _cut_off, _take_a_segment, _other_schema, _a_file_in_its_place]  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGE, ids=lambda f: f.__name__)
async def test_an_index_that_is_of_no_use_is_made_anew(
    tmp_path: Path, damage: object, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "articles.db"
    await _filled(path)
    damage(tmp_path / "articles.index")  # type: ignore[operator]
    with caplog.at_level(logging.WARNING):
        assert set(await found(path)) == ids(range(60))
    assert "made anew" in caplog.text
    check(path)


@pytest.mark.parametrize("damage", [_lose, _garble_meta, _other_schema], ids=lambda f: f.__name__)
async def test_an_index_that_breaks_under_a_running_store_is_made_anew(
    tmp_path: Path, damage: object
) -> None:
    store = LocalStore(tmp_path / "articles.db")
    try:
        await store.put([article(i) for i in range(40)])
        await store.refresh()
        damage(tmp_path / "articles.index")  # type: ignore[operator]
        await store.put([article(i) for i in range(40, 60)])
        until = time.monotonic() + 20
        while (await store.search(Query("tin"))).total < 60:
            assert time.monotonic() < until
            await asyncio.sleep(0.05)
    finally:
        await store.close()
    check(tmp_path / "articles.db")


async def test_a_backup_that_is_put_back_takes_the_index_with_it(tmp_path: Path) -> None:
    path, backup = tmp_path / "articles.db", tmp_path / "backup.db"
    await _filled(path, 30)
    shutil.copy(path, backup)
    store = LocalStore(path)
    await store.put([article(i) for i in range(30, 60)])
    await store.close()
    shutil.copy(backup, path)
    assert set(await found(path)) == ids(range(30)), "nothing that the file does not have"
    # As many changes as before, of other articles: by the numbers alone it would look the same.
    store = LocalStore(path)
    await store.put([article(i) for i in range(30, 60)])
    await store.close()
    shutil.copy(backup, path)
    folder = tmp_path / "articles.index"
    shutil.move(folder, tmp_path / "kept")
    store = LocalStore(path)
    await store.put([article(i) for i in range(100, 130)])
    await store.close()
    shutil.rmtree(folder)
    shutil.move(tmp_path / "kept", folder)
    assert set(await found(path)) == ids(range(30)) | ids(range(100, 130))
    check(path)


async def test_a_row_that_is_gone_from_the_file_is_no_hit(tmp_path: Path) -> None:
    path = tmp_path / "articles.db"
    await _filled(path, 3)
    db = apsw.Connection(str(path))
    db.execute("UPDATE article SET gone = 1 WHERE id = ?", (article(1).id,))  # as between two looks
    db.close()
    store = LocalStore(path)
    result = await store.search(Query("tin"))
    assert {h.article.id for h in result.hits} == {article(0).id, article(2).id}
    await store.close()


# ---------------------------------------------------------------- the disk of the index
async def test_a_full_disk_of_the_index_stops_no_article(
    tmp_path: Path, disk: Disk, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(indexer, "RETRY_S", 0.1)
    (tmp_path / "articles.index").symlink_to(disk.path / "index")
    (disk.path / "index").mkdir()
    filler = disk.path / "filler"
    store = LocalStore(tmp_path / "articles.db")
    with caplog.at_level(logging.WARNING):
        try:
            await store.put([article(i) for i in range(20)])
            await store.refresh()
            _fill(filler)
            await store.put([article(i) for i in range(20, 60)])
            with pytest.raises(StoreUnavailable, match="No space left"):
                await store.refresh()
            stats = await store.stats()
            assert (stats["articles"], stats["index_behind"]) == (60, 40)
            assert "No space left" in str(stats["index_problem"])
            assert (await store.search(Query("tin"))).total == 20, "what it has is found"
            said = [r for r in caplog.records if "not found until" in r.message]
            assert len(said) == 1, "once a minute"
            filler.unlink()
            until = time.monotonic() + 20
            while (await store.search(Query("tin"))).total < 60:
                assert time.monotonic() < until
                await asyncio.sleep(0.05)
            stats = await store.stats()
            assert (stats["index_behind"], stats["index_problem"]) == (0, "")
        finally:
            await store.close()
    assert "works again" in caplog.text
    check(tmp_path / "articles.db")


def _fill(file: Path) -> None:
    with file.open("wb", buffering=0) as out:
        for size in (1 << 20, 1 << 12, 1):
            try:
                while True:
                    out.write(b"x" * size)
            except OSError:
                continue


async def test_a_read_only_disk_of_the_index_stops_no_article(tmp_path: Path, disk: Disk) -> None:
    (disk.path / "index").mkdir()
    (tmp_path / "articles.index").symlink_to(disk.path / "index")
    await _filled(tmp_path / "articles.db", 20)
    disk.becomes("ro")
    store = LocalStore(tmp_path / "articles.db")
    try:
        assert [r.status for r in await store.put([article(99)])] == ["new"]
        with pytest.raises(StoreUnavailable, match="Read-only"):
            await store.refresh()
    finally:
        await store.close()
    disk.becomes("rw")
    assert len(await found(tmp_path / "articles.db")) == 21


async def test_who_may_not_make_the_index_is_told_so(tmp_path: Path) -> None:
    await _filled(tmp_path / "articles.db", 5)
    shutil.rmtree(tmp_path / "articles.index")
    (tmp_path / "articles.index.lock").unlink()
    (tmp_path / "articles.index.lock").mkdir()  # cannot be opened, as by another user
    with pytest.raises(StoreUnavailable, match=r"articles\.index"):
        await found(tmp_path / "articles.db")


async def test_the_doctor_says_what_keeps_the_index_behind(tmp_path: Path) -> None:
    await _filled(tmp_path / "articles.db", 5)
    settings = Settings(
        {"DATA_DIR": str(tmp_path), "ARTICLE_STORE": "", "ARTICLE_INDEX": "articles"}
    )
    assert [f.state for f in await doctor.articles(settings)] == ["ok"]
    shutil.rmtree(tmp_path / "articles.index")
    holder = Lock(tmp_path / "articles.index.lock")
    assert holder.take()
    holder.note("No space left on device")
    _, finding = await doctor.articles(settings)
    assert (finding.check, finding.state) == ("article index", "warn")
    assert finding.found == "5 changes are not found yet: No space left on device"
    holder.release()
    assert [f.state for f in await doctor.sqlite(settings)] == ["ok", "ok"]


async def searched_until_it_fails(store: LocalStore) -> None:
    async with asyncio.timeout(20):
        while True:
            await store.search(Query("tin"))
            await asyncio.sleep(0.02)


async def test_without_the_engine_articles_are_stored_and_a_search_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine.tantivy.cache_clear()
    index_schema.schema.cache_clear()
    with monkeypatch.context() as without:
        without.setitem(sys.modules, "tantivy", None)
        store = LocalStore(tmp_path / "articles.db")
        assert [r.status for r in await store.put([article(1)])] == ["new"]
        # The indexer finds it out in its own time.
        with pytest.raises(StoreUnavailable, match="tantivy cannot be imported") as caught:
            await searched_until_it_fails(store)
        assert "\n" not in str(caught.value)
        await store.close()
    assert await found(tmp_path / "articles.db") == [article(1).id]


def test_the_engine_is_not_imported_before_it_is_needed() -> None:
    code = (
        "import sys, newscrawler.store.sqlite, newscrawler.store; print('tantivy' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout.strip() == "False", done.stderr


# ---------------------------------------------------------------- what follows the file
async def test_every_change_has_a_number_of_its_own_that_rises(tmp_path: Path) -> None:
    path = tmp_path / "articles.db"
    store = LocalStore(path)
    text = " ".join(f"w{i}" for i in range(100))

    def numbers() -> dict[str, int]:
        db = apsw.Connection(str(path))
        rows = dict(db.execute("SELECT id, change FROM article"))
        db.close()
        return rows

    one, other = article(1, text=text), article(2, text=text + " thêm")
    await store.put([one])
    before = numbers()
    await store.put([one])
    assert numbers() == before, "unchanged"
    await store.put([other])  # a cluster: the first one changes too
    after = numbers()
    assert after[one.id] > before[one.id] and len(set(after.values())) == 2
    await store.mark_gone([one.id])
    assert numbers()[one.id] > max(after.values())
    gone = numbers()
    await store.put([Article(**{**_fields(one), "title": "Khác"})])
    assert numbers()[one.id] > max(gone.values())
    await store.close()
    check(path)


def _fields(one: Article) -> dict[str, object]:
    return {name: getattr(one, name) for name in Article.__slots__}


def test_candidates_are_one_edit_away() -> None:
    words = Dictionary([("vaccine", 5), ("vaccines", 9), ("vacine", 1), ("cave", 7), ("x", 100)])
    assert words.near("vaccien", 8) == ["vaccine"]  # a swap
    assert words.near("vaccine", 8) == ["vaccines", "vacine"]  # the most frequent first
    assert words.near("vakcines", 8) == ["vaccines"]
    assert words.near("cav", 8) == ["cave"] and words.near("qqqq", 8) == []


def test_a_file_whose_tables_are_not_made_yet_has_nothing_to_follow(tmp_path: Path) -> None:
    """Who follows may open it between its creation and the first commit of its writer."""
    path = tmp_path / "articles.db"
    apsw.Connection(str(path)).close()
    feed = Feed(sqlite_schema.connect(path, create=False))
    assert (
        feed.last() == 0
        and feed.knows(index_schema.Mark())
        and not feed.knows(index_schema.Mark(3, 2, 1))
    )
    assert feed.after(0, 10) == ([], index_schema.Mark())
    writer = sqlite_schema.connect(path, create=True)
    assert feed.after(0, 10)[0] == [] and feed.knows(index_schema.Mark())
    feed.close()
    writer.close()
