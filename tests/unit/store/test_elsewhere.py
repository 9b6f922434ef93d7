"""Articles written by another process: its end fails a batch and nothing else."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import apsw
import pytest

from newscrawler.crawl.processes import StoreProcess
from newscrawler.store.base import Query, StoreRefused, StoreUnavailable
from newscrawler.store.near_duplicates import BANDS, candidate_keys, shingles_of
from newscrawler.store.sqlite import LocalStore
from tests.contract.articles import article


def text(name: str) -> str:
    return " ".join(f"{name}{n}" for n in range(100))


async def test_a_killed_writer_fails_its_batch_and_the_next_one_is_written(tmp_path: Path) -> None:
    elsewhere = StoreProcess()
    store = LocalStore(tmp_path / "articles.db", elsewhere=elsewhere)
    await store.put([article("a1", "Tin 1", text("t1"))])
    pid = elsewhere.pid
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)  # so that it is surely at the batch when it dies
    batch = asyncio.ensure_future(store.put([article("a2", "Tin 2", text("t2"))]))
    await asyncio.sleep(0)
    os.kill(pid, signal.SIGKILL)
    with pytest.raises(StoreUnavailable, match="the process that writes it ended"):
        await batch
    assert [
        r.status
        for r in await store.put(
            [article("a2", "Tin 2", text("t2")), article("a1", "Tin 1", text("t1"))]
        )
    ] == ["new", "unchanged"]
    assert elsewhere.pid != pid
    await store.refresh()  # by the new process: the killed one held the lock of the index
    found = await store.search(Query("tin"))
    assert sorted(h.article.title for h in found.hits) == ["Tin 1", "Tin 2"]
    await store.close()


async def test_what_cannot_be_written_is_said_as_by_a_thread(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    store = LocalStore(tmp_path / "file" / "articles.db", elsewhere=StoreProcess())
    with pytest.raises(StoreUnavailable, match="cannot create its folder"):
        await store.open()
    await store.close()
    store = LocalStore(tmp_path / "articles.db", elsewhere=StoreProcess())
    with pytest.raises(StoreRefused) as caught:
        await store.put([article("a1", "Tin 1", text("t1")), article("a2", title="", content="")])
    assert [r.status for r in caught.value.results] == ["new"]
    await store.close()
    with pytest.raises(StoreUnavailable, match="is closed"):
        await store.put([article("a3", "Tin 3", text("t3"))])


async def test_keys_of_an_earlier_version_are_made_anew(tmp_path: Path) -> None:
    path = tmp_path / "articles.db"
    store = LocalStore(path)
    await store.put([article("a1", "Tin", text("a")), article("a2", "Tin", text("b"))])
    await store.close()
    with apsw.Connection(str(path)) as db:
        texts = {1: text("a"), 2: text("b")}
        right = sorted((k, n) for n, of in texts.items() for k in candidate_keys(shingles_of(of)))
        assert len(right) >= 2 * BANDS  # and the keys by which excerpts are found
        db.execute("DROP TRIGGER band_fresh_changed; DROP TRIGGER band_fresh_purged")
        db.execute("INSERT INTO band VALUES(5, 1); DROP TABLE band_fresh; DROP TABLE band_round")
        db.execute("DROP INDEX article_change; DROP INDEX article_order; DROP TABLE history")
        db.execute("ALTER TABLE article RENAME COLUMN change TO row")
        db.pragma("user_version", 1)
    store = LocalStore(path, elsewhere=StoreProcess())
    await store.open()
    await store.close()
    with apsw.Connection(str(path)) as db:
        assert db.execute("SELECT key, n FROM band ORDER BY key").fetchall() == right
