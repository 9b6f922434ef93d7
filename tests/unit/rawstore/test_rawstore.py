"""The raw store: what is written is read back, by us and by warcio; crashes and full disks
leave whole records."""

from __future__ import annotations

import gzip
import os
import random
import subprocess
import sys
import textwrap
from datetime import UTC, datetime, timedelta
from io import BytesIO
from pathlib import Path

import pytest
from warcio.archiveiterator import ArchiveIterator
from warcio.checker import Checker
from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

from newscrawler.rawstore import READER, RawNotFound, RawPage, RawStore, RawStoreUnavailable
from newscrawler.rawstore import files as raw_files

NOON = datetime(2026, 3, 4, 12, 0, 0, 123456, tzinfo=UTC)
HEADERS = [
    (b"Content-Type", b"text/html; charset=utf-8"),
    (b"Content-Encoding", b"gzip"),
    (b"Content-Length", b"77"),
]


def body(number: int, size: int = 3000) -> bytes:
    return (
        f"<html><h1>Bài {number}</h1>".encode() + random.Random(number).randbytes(size) + b"</html>"
    )


def put(store: RawStore, number: int, **kwargs: object) -> str:
    moment = kwargs.pop("fetched", NOON)
    return store.write(
        f"https://news.example/{number}", body(number), HEADERS, 200, moment, b"\x01" * 16
    )  # type: ignore[arg-type]


def names(folder: Path) -> list[str]:
    return sorted(p.name for p in folder.iterdir())


def numbers(store: RawStore) -> list[int]:
    return sorted(int(page.url.rsplit("/", 1)[1]) for _, page in store.scan())


def test_a_page_is_read_back_by_its_reference(tmp_path: Path) -> None:
    store = RawStore.open(str(tmp_path), "w1")
    refs = [put(store, n) for n in range(5)]
    store.flush()
    expected = RawPage("https://news.example/3", body(3), HEADERS, 200, NOON)
    assert store.read(refs[3]) == expected  # while the file is open
    store.close()
    assert store.read(refs[3]) == expected  # and when it is complete
    assert RawStore.open(str(tmp_path), READER).read(refs[3]) == expected
    assert [ref for ref, _ in store.scan()] == refs


def test_warcio_reads_the_same_and_checks_every_digest(tmp_path: Path) -> None:
    store = RawStore.open(str(tmp_path), "w1")
    for n in range(3):
        put(store, n)
    store.write(
        "https://news.example/gone?q=đ x", b"", [(b"X-Odd", b"a\r\nInjected: 1")], 599, NOON
    )
    store.close()
    (name,) = names(tmp_path)
    with (tmp_path / name).open("rb") as stream:
        records = [
            (r.rec_type, r.rec_headers, r.http_headers, r.content_stream().read())
            for r in ArchiveIterator(stream)
        ]
    assert [r[0] for r in records] == ["warcinfo"] + ["response"] * 4
    assert records[0][1]["WARC-Filename"] == name
    _, warc, http, content = records[2]
    assert content == body(1)
    assert warc["WARC-Target-URI"] == "https://news.example/1"
    assert warc["WARC-Date"] == "2026-03-04T12:00:00.123456Z"
    assert warc["WARC-Warcinfo-ID"] == records[0][1]["WARC-Record-ID"]
    assert http.statusline == "200 OK"
    assert http["X-Crawler-Content-Encoding"] == "gzip"
    assert int(http["Content-Length"]) == len(body(1))
    assert records[4][1]["WARC-Target-URI"] == "https://news.example/gone?q=%C4%91%20x"
    assert records[4][2].get_header("Injected") is None

    class Args:
        inputs = [str(tmp_path / name)]
        verbose = False

    checker = Checker(Args())
    checker.process_all()
    assert checker.exit_value == 0


def test_every_record_is_a_gzip_member_of_its_own(tmp_path: Path) -> None:
    store = RawStore.open(str(tmp_path), "w1")
    name, offset, length = put(store, 7).split(":")
    store.close()
    data = (tmp_path / name).read_bytes()
    assert gzip.decompress(data[int(offset) : int(offset) + int(length)]).startswith(
        b"WARC/1.1\r\nWARC-Type: response"
    )
    assert int(offset) + int(length) == len(data)


def test_files_rotate_by_size_and_by_age(tmp_path: Path) -> None:
    clock = [NOON]
    store = RawStore.open(str(tmp_path), "w1", rotate_bytes=8000, rotate_s=60, now=lambda: clock[0])
    for n in range(4):  # about 3.2 kB each: three in the first file
        put(store, n)
    assert names(tmp_path) == [
        "w1-20260304120000123-00001.warc.gz",
        "w1-20260304120000123-00002.warc.gz.open",
    ]
    clock[0] += timedelta(seconds=59.9)
    put(store, 4)
    assert len(names(tmp_path)) == 2
    clock[0] += timedelta(seconds=0.1)
    put(store, 5)
    store.close()
    assert names(tmp_path)[-1] == "w1-20260304120100123-00003.warc.gz"
    assert numbers(store) == [0, 1, 2, 3, 4, 5]


def test_a_worker_that_restarts_at_once_overwrites_nothing(tmp_path: Path) -> None:
    for n in range(3):
        store = RawStore.open(str(tmp_path), "w1", now=lambda: NOON)
        put(store, n)
        if n == 1:
            put(
                RawStore.open(str(tmp_path), "w1", now=lambda: NOON), 9
            )  # two of the same name beside each other
        store.close()
    assert numbers(store) == [0, 1, 2, 9]


def test_a_torn_tail_is_cut_wherever_it_was_torn(tmp_path: Path) -> None:
    store = RawStore.open(str(tmp_path / "whole"), "w1")
    refs = [put(store, n) for n in range(3)]
    store.close()
    name, offset, length = refs[2].split(":")
    data = (tmp_path / "whole" / name).read_bytes()
    start = int(offset)
    for cut in (
        start,
        start + 1,
        start + 10,
        start + 23,
        start + 24,
        start + 1000,
        start + int(length) - 1,
    ):
        folder = tmp_path / f"cut{cut}"
        folder.mkdir()
        (folder / (name + ".open")).write_bytes(data[:cut])
        again = RawStore.open(str(folder), "w2")
        assert names(folder) == [name], cut
        assert (folder / name).stat().st_size == start, cut
        put(again, 9)
        again.close()
        assert numbers(again) == [0, 1, 9], cut


def test_holes_left_by_a_loss_of_power_are_cut_too(tmp_path: Path) -> None:
    store = RawStore.open(str(tmp_path), "w1")
    refs = [put(store, n) for n in range(4)]
    store.close()
    name, offset, length = refs[2].split(":")
    data = bytearray((tmp_path / name).read_bytes())
    middle = int(offset) + int(length) // 2
    data[middle : middle + 512] = bytes(512)
    (tmp_path / name).unlink()
    (tmp_path / (name + ".open")).write_bytes(data + bytes(4096))
    assert numbers(RawStore.open(str(tmp_path), "w2")) == [0, 1]


def test_a_file_without_a_page_is_removed(tmp_path: Path) -> None:
    store = RawStore.open(str(tmp_path), "w1")
    ref = put(store, 0)
    store.close()
    name, offset, _ = ref.split(":")
    data = (tmp_path / name).read_bytes()
    (tmp_path / name).unlink()
    (tmp_path / ("a" + name + ".open")).write_bytes(data[: int(offset)])
    (tmp_path / ("b" + name + ".open")).write_bytes(b"")
    RawStore.open(str(tmp_path), "w2")
    assert names(tmp_path) == []


def test_the_file_of_a_living_worker_is_left_alone(tmp_path: Path) -> None:
    first = RawStore.open(str(tmp_path), "w1")
    ref = put(first, 0)
    second = RawStore.open(str(tmp_path), "w2")
    assert names(tmp_path) == [ref.split(":")[0] + ".open"]
    ref = put(first, 1)
    assert second.read(ref).url == "https://news.example/1"
    first.close()
    second.close()


def test_kill_9_while_writing_loses_nothing_that_was_flushed(tmp_path: Path) -> None:
    code = f"""
        import sys
        sys.path.insert(0, {str(Path.cwd())!r})
        from tests.unit.rawstore.test_rawstore import put
        from newscrawler.rawstore import RawStore
        store = RawStore.open({str(tmp_path)!r}, "w1")
        n = 0
        while True:
            put(store, n)
            store.flush()
            print(n, flush=True)
            n += 1
    """
    child = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)], stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    acked = [int(child.stdout.readline()) for _ in range(20)]
    child.kill()
    acked += [
        int(line) for line in child.stdout.read().splitlines(keepends=True) if line.endswith("\n")
    ]
    child.stdout.close()
    child.wait()
    store = RawStore.open(str(tmp_path), "w2")
    assert not [n for n in names(tmp_path) if n.endswith(".open")]
    assert numbers(store)[: len(acked)] == acked
    store.close()


FULL_DISK = """
    import sys
    from pathlib import Path
    sys.path.insert(0, {cwd!r})
    from tests.unit.rawstore.test_rawstore import put, body, HEADERS, NOON
    from newscrawler.rawstore import RawStore, RawStoreUnavailable
    {limit}
    store = RawStore.open({folder!r}, "w1")
    refs, error = [], None
    for n in range(1000):
        try:
            refs.append(put(store, n))
            store.flush()
        except RawStoreUnavailable as exc:
            error = str(exc)
            break
    assert error, "no error after 1000 pages"
    small, last = None, []
    try:
        small = store.write("https://news.example/1000", b"x", HEADERS, 200, NOON)  # fits where the large one did not
        last = ["https://news.example/1000"]
    except RawStoreUnavailable:  # unless the large ones happened to fill the disk to its end
        size = sum(path.stat().st_size for path in Path({folder!r}).iterdir())
        assert size > 80 * 1024 - 600, size
    store.flush()
    store.close()
    print(len(refs))
    print(error)
    pages = [page.url for _, page in store.scan()]
    assert pages == ["https://news.example/%d" % n for n in range(len(refs))] + last, pages
    assert small is None or store.read(small).body == b"x"
"""


def run_full(
    folder: Path, limit: str, prefix: list[str] | None = None, setup: str = ""
) -> tuple[int, str]:
    code = textwrap.dedent(FULL_DISK).format(cwd=str(Path.cwd()), limit=limit, folder=str(folder))
    command = [sys.executable, "-c", code]
    if setup:
        command = ["sh", "-c", f'{setup} && exec "$@"', "sh", *command]
    done = subprocess.run([*(prefix or []), *command], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    count, error = done.stdout.splitlines()
    return int(count), error


def test_a_file_limit_leaves_only_whole_records(tmp_path: Path) -> None:
    count, error = run_full(
        tmp_path / "raw",
        "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (52_000, 52_000))",
    )
    assert 10 < count < 17
    assert "File too large" in error and "RAW_ROTATE_BYTES" in error


def test_a_full_disk_leaves_only_whole_records(tmp_path: Path) -> None:
    probe = ["unshare", "-rm", "sh", "-c", f"mount -t tmpfs -o size=80k none {tmp_path}"]
    try:
        able = subprocess.run(probe, capture_output=True).returncode == 0
    except FileNotFoundError:
        able = False
    if not able:
        pytest.skip(
            "skipped: no small file system can be mounted here; the file limit test covers the same code"
        )
    count, error = run_full(
        tmp_path, "", ["unshare", "-rm"], f"mount -t tmpfs -o size=80k none {tmp_path}"
    )
    assert 10 < count < 26
    assert "the disk is full" in error and "RAW_STORE" in error


def test_a_read_only_folder_is_refused_at_once(tmp_path: Path) -> None:
    folder = tmp_path / "raw"
    folder.mkdir()
    folder.chmod(0o555)
    code = f"""
        import os, sys
        sys.path.insert(0, {str(Path.cwd())!r})
        from newscrawler.rawstore import RawStore, RawStoreUnavailable
        if os.geteuid() == 0:
            os.seteuid(65534)  # rights do not bind root
        try:
            RawStore.open({str(folder)!r}, "w1")
        except RawStoreUnavailable as exc:
            print(exc)
    """
    tmp_path.chmod(0o755)
    for parent in tmp_path.parents[:2]:  # pytest's own folders are closed to others
        parent.chmod(0o755)
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True
    )
    assert "cannot be written to: check its rights" in done.stdout, done.stderr


def test_after_a_failed_flush_nothing_counts_as_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = RawStore.open(str(tmp_path), "w1")
    put(store, 0)

    def failing(fd: int) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "fdatasync", failing)
    with pytest.raises(RawStoreUnavailable, match="Input/output error"):
        store.flush()
    monkeypatch.undo()
    store.flush()  # nothing open, nothing owed
    put(store, 1)
    store.flush()
    store.close()
    assert 1 in numbers(RawStore.open(str(tmp_path), "w2"))


def test_a_failed_rotation_fails_the_flush_of_earlier_pages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = RawStore.open(str(tmp_path), "w1", rotate_bytes=1000)
    put(store, 0)

    def failing(fd: int) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "fdatasync", failing)
    with pytest.raises(RawStoreUnavailable):
        put(store, 1)
    monkeypatch.undo()
    with pytest.raises(RawStoreUnavailable, match="may be lost"):
        store.flush()
    put(store, 2)
    store.flush()
    store.close()


@pytest.mark.parametrize(
    "ref",
    [
        "",
        "x",
        "a.warc.gz:0",
        "../a.warc.gz:0:10",
        "a.warc.gz:-1:5",
        "a.warc.gz:0:5x",
        "missing.warc.gz:0:100",
        "a.txt:0:5",
    ],
)
def test_a_wrong_reference_is_not_found(tmp_path: Path, ref: str) -> None:
    with pytest.raises(RawNotFound):
        RawStore.open(str(tmp_path), READER).read(ref)


def test_a_reference_to_the_middle_of_a_record_is_not_found(tmp_path: Path) -> None:
    store = RawStore.open(str(tmp_path), "w1")
    name, offset, length = put(store, 0).split(":")
    store.close()
    with pytest.raises(RawNotFound):
        store.read(f"{name}:{int(offset) + 5}:{length}")
    with pytest.raises(RawNotFound):
        store.read(f"{name}:{offset}:{int(length) - 3}")
    with pytest.raises(RawNotFound, match="another type"):
        store.read(f"{name}:0:{offset}")


def test_a_reader_writes_nothing(tmp_path: Path) -> None:
    reader = RawStore.open(str(tmp_path / "none"), READER)
    assert list(reader.scan()) == []
    assert not (tmp_path / "none").exists()
    with pytest.raises(RawStoreUnavailable, match="reading only"):
        put(reader, 0)


def test_scan_since_gives_the_later_pages(tmp_path: Path) -> None:
    store = RawStore.open(str(tmp_path), "w1")
    for n in range(4):
        put(store, n, fetched=NOON + timedelta(hours=n))
    store.close()
    found = [page.url for _, page in store.scan(since=NOON + timedelta(hours=2))]
    assert found == ["https://news.example/2", "https://news.example/3"]


def test_scan_goes_on_behind_a_damaged_record_and_a_damaged_file(tmp_path: Path) -> None:
    for worker in ("w1", "w2"):
        store = RawStore.open(str(tmp_path), worker)
        refs = [put(store, n + (10 if worker == "w2" else 0)) for n in range(3)]
        store.close()
        if worker == "w1":
            name, offset, _length = refs[1].split(":")
            data = bytearray((tmp_path / name).read_bytes())
            data[int(offset) + 40 : int(offset) + 60] = bytes(20)  # the content of record 1
            last = int(refs[2].split(":")[1])
            data[last : last + 4] = b"junk"  # the head of record 2
            (tmp_path / name).write_bytes(data)
    assert numbers(store) == [0, 10, 11, 12]


@pytest.mark.filterwarnings(
    "ignore::pytest.PytestUnraisableExceptionWarning"
)  # warcio leaves a spool file open
def test_files_of_other_programs_are_read(tmp_path: Path) -> None:
    with (tmp_path / "other.warc.gz").open("wb") as out:
        writer = WARCWriter(out, gzip=True)
        for n in range(2):
            http = StatusAndHeaders("200 OK", [("Content-Type", "text/html")], protocol="HTTP/1.1")
            writer.write_record(
                writer.create_warc_record(
                    f"http://old.example/{n}",
                    "response",
                    payload=BytesIO(body(n)),
                    http_headers=http,
                )
            )
    pages = [page for _, page in RawStore.open(str(tmp_path), READER).scan()]
    assert [p.url for p in pages] == ["http://old.example/0", "http://old.example/1"]
    assert pages[1].body == body(1)
    assert pages[1].content_type == "text/html"


def test_a_remote_store_uploads_complete_files_and_reads_both(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    uri = f"memory://bucket-{request.node.name}/raw"
    store = RawStore.open(uri, "w1", spool=tmp_path, rotate_bytes=8000)
    refs = [put(store, n) for n in range(4)]
    store.flush()
    assert store.read(refs[3]).body == body(3)  # from the spool
    store.close()
    assert names(tmp_path) == []
    reader = RawStore.open(uri, READER, spool=tmp_path / "elsewhere")
    assert reader.read(refs[0]).body == body(0)
    assert numbers(reader) == [0, 1, 2, 3]
    assert [p.url for _, p in reader.scan(since=NOON + timedelta(hours=1))] == []


def test_what_could_not_be_uploaded_stays_and_goes_up_later(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    uri = f"memory://bucket-{request.node.name}/raw"
    spool = tmp_path / "spool"
    blocked = RawStore.open("memory://", "w1", spool=spool)
    blocked.remote.upload = _raise_unavailable  # type: ignore[attr-defined]
    ref = put(blocked, 0)
    blocked.close()
    assert len(names(spool)) == 1
    RawStore.open(uri, "w2", spool=spool).close()
    assert names(spool) == []
    assert RawStore.open(uri, READER, spool=spool).read(ref).body == body(0)


def _raise_unavailable(path: Path) -> None:
    raise RawStoreUnavailable("bucket is away")


def test_an_unknown_kind_of_store_says_what_is_missing() -> None:
    with pytest.raises(RawStoreUnavailable, match="RAW_STORE=nosuch://x"):
        RawStore.open("nosuch://x", READER)


def test_members_are_walked_without_inflating(tmp_path: Path) -> None:
    store = RawStore.open(str(tmp_path), "w1")
    refs = [put(store, n) for n in range(3)]
    store.close()
    path = tmp_path / refs[0].split(":")[0]
    with path.open("rb") as file:
        places = list(raw_files.members(file, path.stat().st_size))
    assert [f"{path.name}:{o}:{n}" for o, n in places[1:]] == refs
