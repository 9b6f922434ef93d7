"""The log as JSON lines: what a line says, how files are begun and removed, how they are searched."""

from __future__ import annotations

import fcntl
import gzip
import json
import logging
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from newscrawler.crawl.log_files import JsonLogHandler
from newscrawler.crawl.log_search import Faults, Wanted, follow, search
from newscrawler.frontier.types import Lease
from newscrawler.items import Kind, Outcome, Visit
from tests.fixtures_disk import Disk

LEASE = Lease("https://a.vn/1", b"\x01" * 16, "a.vn", Kind.ARTICLE, 1, None, 2, 77, 0)
REQUEST = "01" * 16 + ".77"


def visit(**values: Any) -> Visit:
    known: dict[str, Any] = {
        "url": LEASE.url, "outcome": Outcome.DONE, "kind": Kind.ARTICLE, "site": "a.vn",
        "domain": "a.vn", "status": 200, "lease": LEASE, "size": 4321, "fetch_ms": 12.5,
    }  # fmt: skip
    return Visit(**{**known, **values})


@pytest.fixture
def handler(tmp_path: Path) -> Iterator[JsonLogHandler]:
    made = JsonLogHandler(
        tmp_path, "w1", max_bytes=10**6, keep=5,
        request_of=lambda url: REQUEST if url == LEASE.url else "",
    )  # fmt: skip
    yield made
    made.close()


def lines(folder: Path) -> list[dict[str, Any]]:
    texts = "".join(path.read_text() for path in sorted(folder.glob("*.jsonl")))
    return [json.loads(line) for line in texts.splitlines()]


def record(message: Any, *args: Any, **values: Any) -> logging.LogRecord:
    made = logging.LogRecord("some.part", logging.WARNING, "f.py", 1, message, args, None)
    vars(made).update(values)
    return made


def test_a_visit_is_a_line_with_all_its_parts(handler: JsonLogHandler, tmp_path: Path) -> None:
    handler.visit(visit(parse_ms=3.1, store_ms=40.0, raw_ref="w.warc.gz:1:2"), Outcome.DONE, "")
    [line] = lines(tmp_path)
    at = datetime.fromisoformat(line.pop("@timestamp"))
    assert timedelta(0) <= datetime.now(UTC) - at < timedelta(minutes=5)
    assert line == {
        "level": "INFO", "event": "visit", "worker": "w1", "request": REQUEST,
        "url": "https://a.vn/1", "site": "a.vn", "domain": "a.vn", "kind": "article",
        "outcome": "DONE", "reason": "", "status": 200, "bytes": 4321, "fetch_ms": 12.5,
        "parse_ms": 3.1, "store_ms": 40.0, "tries": 2, "stored": "", "raw": "w.warc.gz:1:2",
    }  # fmt: skip


def test_a_record_names_its_url_and_the_visit_that_it_is_of(
    handler: JsonLogHandler, tmp_path: Path
) -> None:
    handler.emit(record("%d%% of it failed url=%s error=%r", 5, LEASE.url, ValueError("x")))
    handler.emit(record("Dropped url=%(url)s reason=%(reason)s", {"url": "u", "reason": "r"}))

    class Request:
        url = LEASE.url

    handler.emit(record("Spider error processing %(request)s", {"request": Request()}))
    handler.emit(record("url=%s is of a visit that has ended", "https://b.vn/", request_id="b.1"))
    handler.emit(record("nothing named"))
    handler.emit(record("Visit ended url=%s", LEASE.url))  # is a line of its own
    found = lines(tmp_path)
    assert [one.get("request") for one in found] == [REQUEST, "", REQUEST, "b.1", None]
    assert found[0]["message"] == "5% of it failed url=https://a.vn/1 error=ValueError('x')"
    assert (found[0]["error"], found[0]["domain"], found[1]["reason"]) == ("x", "a.vn", "r")
    assert {one["event"] for one in found} == {"log"}


def test_every_line_is_one_line_whatever_is_logged(
    handler: JsonLogHandler, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    hostile = "\x1b[2J\nfake line\r\u202e\ud800\x00 redis://me:secret@host/"
    try:
        raise RuntimeError(hostile)
    except RuntimeError:
        handler.emit(record("Broken url=%s", hostile, exc_info=sys.exc_info()))
    handler.visit(visit(url=hostile), Outcome.RETRY, hostile)
    raw = b"".join(path.read_bytes() for path in tmp_path.glob("*.jsonl"))
    assert raw.count(b"\n") == 2 and b"\x1b" not in raw
    first, second = lines(tmp_path)
    assert "RuntimeError" in first["exception"] and "secret" not in second["url"] + first["url"]
    handler.emit(record("%d", "no number"))  # a fault of who logs is told, and costs no more
    assert "no number" in capfd.readouterr().err


def test_files_are_begun_by_size_and_the_oldest_go(tmp_path: Path) -> None:
    other = tmp_path / "other-0001.jsonl"
    with other.open("wb") as held:  # of a worker that says nothing for long
        fcntl.flock(held, fcntl.LOCK_SH)
        handler = JsonLogHandler(tmp_path, "w1", max_bytes=1500, keep=4)
        for _ in range(60):
            handler.visit(visit(), Outcome.DONE, "")
        names = sorted(path.name for path in tmp_path.iterdir())
        assert other.name in names, "what is written stays"
        assert len(names) in (4, 5) and names[1].startswith("other") is False
        assert all(path.stat().st_size <= 1500 for path in tmp_path.iterdir())
        handler.close()
    last = JsonLogHandler(tmp_path, "w2", max_bytes=1500, keep=1)
    last.visit(visit(), Outcome.DONE, "")
    assert [path.name for path in tmp_path.iterdir()] == ["w2-0001.jsonl"]
    last.close()


WRITER = """
import sys
from pathlib import Path
from tests.unit.crawl.test_log_files import JsonLogHandler, Outcome, visit
handler = JsonLogHandler(Path(sys.argv[1]), sys.argv[2], max_bytes=20_000, keep=400)
for n in range(500):
    handler.visit(visit(url=f"https://{sys.argv[2]}.vn/{n}"), Outcome.DONE, "")
"""


def test_processes_beside_one_another_lose_and_mix_nothing(tmp_path: Path) -> None:
    root = Path(__file__).resolve().parents[3]
    running = [
        subprocess.Popen([sys.executable, "-c", WRITER, tmp_path, f"w{n}"], cwd=root)
        for n in range(3)
    ]
    assert [one.wait(120) for one in running] == [0, 0, 0]
    found = list(search(tmp_path, Wanted(), faults := Faults()))
    assert faults.counts == {}
    assert {one["url"] for one in found} == {
        f"https://w{w}.vn/{n}" for w in range(3) for n in range(500)
    }
    assert len(found) == 1500
    assert [one["@timestamp"] for one in found] == sorted(one["@timestamp"] for one in found)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_full_disk_costs_lines_and_says_so(disk: Disk, caplog: pytest.LogCaptureFixture) -> None:
    folder = disk.path / "logs"
    handler = JsonLogHandler(folder, "w1", max_bytes=10**8, keep=5)
    handler.visit(visit(), Outcome.DONE, "")
    logging.root.addHandler(handler)
    try:
        with (disk.path / "filler").open("wb", buffering=0) as filler:
            try:
                while filler.write(b"x" * 65536) == 65536:
                    pass
            except OSError:
                pass
        for _ in range(50):
            handler.visit(visit(reason="x" * 200), Outcome.RETRY, "x" * 200)
        assert caplog.text.count("Log file cannot be written") == 1
        (disk.path / "filler").unlink()
        handler.visit(visit(url="https://after.vn/"), Outcome.DONE, "")
    finally:
        logging.root.removeHandler(handler)
        handler.close()
    found = list(search(folder, Wanted(), faults := Faults()))
    assert sum(faults.counts.values()) <= 1, "at most the line that was cut"
    assert found[0]["url"] == LEASE.url and found[-1]["url"] == "https://after.vn/"
    assert any("Lines of the log were lost lines=" in one.get("message", "") for one in found)


# ---------------------------------------------------------------- the search
def put(path: Path, *found: dict[str, Any]) -> None:
    text = "".join(json.dumps(one) + "\n" for one in found).encode()
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)


def line(second: int, **values: Any) -> dict[str, Any]:
    at = datetime(2026, 11, 22, 10, 0, second, tzinfo=UTC).isoformat()
    return {"@timestamp": at, "event": "visit", "worker": "w", **values}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    put(
        tmp_path / "a-0001.jsonl.gz",
        line(1, url="https://a.vn/1", domain="a.vn", outcome="RETRY", reason="timeout"),
        line(5, url="https://a.vn/1", domain="a.vn", outcome="DONE", reason=""),
    )
    put(
        tmp_path / "b-0001.jsonl",
        line(2, url="https://m.a.vn/2", domain="m.a.vn:81", outcome="FAILED", reason="timeout"),
        line(3, url="https://ba.vn/2", domain="ba.vn", outcome="RETRY", reason="dns", request="r"),
    )
    return tmp_path


@pytest.mark.parametrize(
    ("wanted", "seconds"),
    [
        (Wanted(), [1, 2, 3, 5]),
        (Wanted(urls=frozenset({"https://a.vn/1"})), [1, 5]),
        (Wanted(domain="a.vn"), [1, 2, 5]),
        (Wanted(domain="m.a.vn:81"), [2]),
        (Wanted(reason="timeout"), [1, 2]),
        (Wanted(reason="RETRY"), [1, 3]),
        (Wanted(reason="RETRY(timeout)"), [1]),
        (Wanted(request="r"), [3]),
        (Wanted(since=datetime(2026, 11, 22, 10, 0, 3, tzinfo=UTC)), [3, 5]),
        (Wanted(domain="a.vn", reason="DONE"), [5]),
        (Wanted(domain="c.vn"), []),
    ],
)
def test_lines_are_found_in_all_files_by_time(
    folder: Path, wanted: Wanted, seconds: list[int]
) -> None:
    found = list(search(folder, wanted, faults := Faults()))
    assert [datetime.fromisoformat(one["@timestamp"]).second for one in found] == seconds
    assert not faults.counts


def test_bad_lines_are_counted_and_told(folder: Path) -> None:
    with (folder / "b-0001.jsonl").open("ab") as file:
        file.write(b'{"@timestamp": "2026-11-22T10:0\n\nno json\n[1]\n{"@timestamp": 7}\n"x"\n')
        file.write(b'{"@timestamp": "2026-11-22T10:00:09+00:00", "half')  # is being written
    whole = (folder / "a-0001.jsonl.gz").read_bytes()
    (folder / "a-0001.jsonl.gz").write_bytes(whole[:-9])
    (folder / "c-0001.jsonl.gz").write_bytes(b"no gzip at all")
    found = list(search(folder, Wanted(), faults := Faults()))
    assert len(found) in (3, 4), "what comes before the damage counts"
    assert faults.counts["b-0001.jsonl", "not a line of the log"] == 5
    assert {name for name, _ in faults.counts} == {
        "a-0001.jsonl.gz", "b-0001.jsonl", "c-0001.jsonl.gz",
    }  # fmt: skip


def test_what_is_written_is_followed_into_new_files(folder: Path) -> None:
    turns: list[int] = []

    def sleep(_: float) -> None:
        """Stands for the time in which workers write."""
        turns.append(1)
        if len(turns) == 1:
            with (folder / "b-0001.jsonl").open("a") as file:
                file.write(json.dumps(line(10, domain="a.vn")) + "\n" + '{"@timest')
        elif len(turns) == 2:
            with (folder / "b-0001.jsonl").open("a") as file:
                file.write('amp": "2026-11-22T10:00:11+00:00", "domain": "a.vn"}\n')
            put(folder / "d-0001.jsonl", line(12, domain="a.vn"), line(13, domain="z.vn"))
        elif len(turns) == 3:
            (folder / "b-0001.jsonl").unlink()
            put(folder / "d-0002.jsonl", line(14, domain="a.vn"))

    following = follow(folder, Wanted(domain="a.vn"), faults := Faults(), sleep)
    found = [next(following)["@timestamp"][17:19] for _ in range(4)]
    assert found == ["10", "11", "12", "14"] and not faults.counts
