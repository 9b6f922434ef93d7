"""What a take-down looks through and changes while other processes use the files."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from newscrawler.crawl import takedown_look as looking
from newscrawler.crawl.takedown_look import search_files
from newscrawler.store import open_store
from tests.contract.articles import article, filler

NEEDLES = looking.Needles(["Tin bị gỡ bỏ"])


def test_a_row_goes_under_the_hands_of_who_is_appending(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    with path.open("ab", buffering=0) as writer:
        for title in ("Một", "Tin bị gỡ bỏ", "Ba"):
            writer.write(json.dumps({"title": title}).encode() + b"\n")
        size = path.stat().st_size
        assert looking.mend_export(path, NEEDLES) == 1
        assert path.stat().st_size == size
        writer.write('{"title": "Tin bị gỡ bỏ", "te'.encode())
        assert looking.mend_export(path, NEEDLES) == 0, "half of a row"
        writer.write(b'xt": ""}\r\n{"title": "N\xc4\x83m"}\n')
        assert looking.mend_export(path, NEEDLES) == 1
        writer.write('{"title": "Tin bị gỡ bỏ"}'.encode())
        assert looking.mend_export(path, NEEDLES) == 1, "a whole row without its end"
    rows = [json.loads(row) for row in path.read_text().splitlines()]
    assert rows == [{"title": "Một"}, {}, {"title": "Ba"}, {}, {"title": "Năm"}, {}]


def test_a_table_that_is_written_to_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "out.csv"
    path.write_text("title\nMột\nTin bị gỡ bỏ\n")
    mend = looking._mend_csv

    def beside_a_writer(*parts: Any) -> int:
        with path.open("a") as writer:
            writer.write("Ba\n")
        return mend(*parts)

    with monkeypatch.context() as patch:
        patch.setattr(looking, "_mend_csv", beside_a_writer)
        assert looking.mend_export(path, NEEDLES) is None
    assert path.read_text().splitlines()[-1] == "Ba" and list(tmp_path.iterdir()) == [path]
    assert looking.mend_export(path, NEEDLES) == 1
    assert path.read_text().split() == ["title", "Một", "Ba"]


def test_who_changed_what_is_not_rewritten(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    path.write_text('{"target": "Tin bị gỡ bỏ"}\n')
    assert looking.mend_export(path, NEEDLES) == 0
    assert "Tin" in path.read_text()


_OTHER = """
import asyncio, sys
from pathlib import Path
from newscrawler.store import open_store
from tests.contract.articles import article, filler
async def put():
    store = open_store("", Path(sys.argv[1]))
    await store.put([article(name, "Tin " + name, filler(9)) for name in sys.argv[2:]])
    await store.close()
asyncio.run(put())
"""


async def test_an_open_store_keeps_its_locks(tmp_path: Path) -> None:
    """A process that closes a file drops all its locks on it. Then another one that closes the
    store takes itself for the last, and deletes the log of what was written."""

    def other(*names: str) -> None:
        command = [sys.executable, "-c", _OTHER, str(tmp_path), *names]
        subprocess.run(command, check=True, timeout=120)

    store = open_store("", tmp_path)
    await store.put([article("one", "Giá vàng tăng mạnh hôm nay", filler(7))])
    assert await store.stats()
    found = await search_files(tmp_path, ["Giá vàng tăng mạnh hôm nay"])
    assert [path.name for path in found if path.name.startswith("articles.db")]
    other("two", "three")
    assert (tmp_path / "articles.db-wal").exists(), "it was deleted under an open store"
    assert {a.title async for a in store.scan()} == {
        "Giá vàng tăng mạnh hôm nay", "Tin two", "Tin three",
    }  # fmt: skip
    await store.put([article("four", "Bão số 5 vào bờ", filler(8))])
    other("five")
    assert len([a async for a in store.scan()]) == 5
    await store.close()


async def test_files_elsewhere_and_what_is_left_out(tmp_path: Path) -> None:
    inside, outside = tmp_path / "in", tmp_path / "out"
    for folder, name in [(inside, "a.txt"), (inside, "plan.pending"), (outside, "b.db")]:
        folder.mkdir(exist_ok=True)
        (folder / name).write_text("… một câu dài của bài báo …")
    found = await search_files(
        inside,
        ["một câu dài", "khác"],
        [inside / "plan.pending"],
        [outside / "b.db", outside / "c"],
    )
    assert found == {inside / "a.txt": {"một câu dài"}, outside / "b.db": {"một câu dài"}}
