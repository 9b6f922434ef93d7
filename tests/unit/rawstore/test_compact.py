"""Raw pages go, references stay: compaction and taking single records out."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path

import pytest
from warcio.archiveiterator import ArchiveIterator
from warcio.checker import Checker  # noqa: F401 - what it reads is what others read

from newscrawler.rawstore import READER, RawNotFound, RawStore, compact, erasing, record
from newscrawler.rawstore import files as raw_files
from newscrawler.rawstore.raw_store import RemoteRawStore
from newscrawler.rawstore.sealing import Keys

NO_KEYS = Keys([])
NOON = datetime(2026, 3, 4, 12, tzinfo=UTC)


def url(number: int) -> str:
    return f"https://news.example/{number}"


def filled(folder: Path, many: int = 8, worker: str = "w1") -> list[str]:
    store = RawStore.open(str(folder), worker)
    refs = [store.write(url(n), f"Bài {n} ".encode() * 200, [], 200, NOON) for n in range(many)]
    store.close()
    return refs


def urls_by_warcio(folder: Path) -> list[str]:
    return sorted(
        found.rec_headers.get_header("WARC-Target-URI")
        for path in folder.glob("*.warc.gz")
        for found in ArchiveIterator(BytesIO(path.read_bytes()))
        if found.rec_type == "response"
    )


def even(ref: str, page: object) -> bool:
    return int(page.url.rsplit("/", 1)[1]) % 2 == 0  # type: ignore[attr-defined]


def the_file(folder: Path) -> Path:
    (path,) = folder.glob("*.warc.gz")
    return path


def test_references_lead_to_the_same_pages_after_two_compactions(tmp_path: Path) -> None:
    refs = filled(tmp_path)
    size = the_file(tmp_path).stat().st_size
    done = compact.compact(the_file(tmp_path), even, NO_KEYS)
    assert done is not None and (done.kept, done.dropped) == (4, 4)
    assert done.path is not None and done.bytes_after < done.bytes_before == size
    store = RawStore.open(str(tmp_path), READER)
    for round_ in (1, 2):
        kept = [n for n in range(8) if n % (2 * round_) == 0]
        assert [store.read(refs[n]).url for n in kept] == [url(n) for n in kept]
        assert {ref for ref, _ in store.scan()} == {refs[n] for n in kept}
        checked = dict(store.verify())
        assert set(checked.values()) == {""} and {refs[n] for n in kept} < set(checked)
        assert urls_by_warcio(tmp_path) == [url(n) for n in kept]
        for n in set(range(8)) - set(kept):
            with pytest.raises(RawNotFound, match="pruned"):
                store.read(refs[n])
        again = compact.compact(
            the_file(tmp_path),
            lambda ref, page: int(page.url.rsplit("/", 1)[1]) % 4 == 0,
            NO_KEYS,
        )
        assert (again is not None) == (round_ == 1)
    assert compact.compact(the_file(tmp_path), lambda *_: False, NO_KEYS) is not None
    assert not list(tmp_path.iterdir())


def test_a_dry_run_changes_nothing(tmp_path: Path) -> None:
    filled(tmp_path)
    before = the_file(tmp_path).read_bytes()
    done = compact.compact(the_file(tmp_path), even, NO_KEYS, dry_run=True)
    assert done is not None and done.dropped == 4
    assert the_file(tmp_path).read_bytes() == before


@pytest.mark.parametrize("step", ["fsync", "replace", "unlink"])
def test_a_crash_at_any_step_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    refs = filled(tmp_path)

    class Killed(BaseException):
        pass

    def killed(*_: object, **__: object) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        if step == "fsync":
            patch.setattr(os, "fsync", killed)
        else:
            patch.setattr(Path, step, killed)
        with pytest.raises(Killed):
            compact.compact(the_file(tmp_path), even, NO_KEYS)
    store = RawStore.open(str(tmp_path), READER)
    assert [store.read(ref).url for ref in refs] == [url(n) for n in range(8)]
    assert sorted(ref for ref, _ in store.scan()) == sorted(refs)
    (old,) = [p for p in tmp_path.glob("*.warc.gz") if not compact.is_compact(p.name)]
    assert compact.compact(old, even, NO_KEYS) is not None
    assert [store.read(refs[n]).url for n in (0, 2, 4, 6)] == [url(n) for n in (0, 2, 4, 6)]
    assert not old.exists()


def test_a_record_that_is_damaged_stays_as_it_is(tmp_path: Path) -> None:
    refs = filled(tmp_path)
    _, offset, length = refs[3].rsplit(":", 2)
    path = the_file(tmp_path)
    data = bytearray(path.read_bytes())
    data[int(offset) + int(length) // 2] ^= 0xFF
    path.write_bytes(data)
    done = compact.compact(path, even, NO_KEYS)
    assert done is not None and (done.kept, done.dropped) == (5, 3)
    faults = dict(RawStore.open(str(tmp_path), READER).verify())
    assert faults[refs[3]] and not faults[refs[2]]


def test_a_page_is_taken_out_of_files_of_every_kind(tmp_path: Path) -> None:
    refs = filled(tmp_path)
    writing = RawStore.open(str(tmp_path), "w2")
    more = [writing.write(url(n), b"more " * 99, [], 200, NOON) for n in (20, 21)]
    writing.flush()
    compact.compact(next(p for p in tmp_path.glob("w1*")), even, NO_KEYS)
    told: list[str] = []
    wanted = {url(2), url(20)}
    gone = erasing.erase(
        RawStore.open(str(tmp_path), READER),
        lambda _, page: page.url in wanted,
        told.extend,
        lambda _: None,
    )
    assert sorted(gone) == sorted(told) == sorted([refs[2], more[0]])
    more.append(writing.write(url(22), b"again", [], 200, NOON))
    writing.close()
    store = RawStore.open(str(tmp_path), READER)
    assert {ref for ref, _ in store.scan()} == {refs[0], refs[4], refs[6], more[1], more[2]}
    for ref in gone:
        with pytest.raises(RawNotFound, match="another type"):
            store.read(ref)
    assert set(dict(store.verify()).values()) == {""}
    assert erasing.erase_named(store, [refs[4], more[1]]) == 2
    assert {page.url for _, page in store.scan()} == {url(0), url(6), url(22)}
    assert sorted(urls_by_warcio(tmp_path)) == sorted([url(0), url(6), url(22)])
    assert erasing.erase_named(store, ["gone-1.warc.gz:3:900"]) == 0
    done = compact.compact(next(tmp_path.glob("w2*")), lambda _, page: page.url != url(22), NO_KEYS)
    assert done is not None and done.path is None


@pytest.mark.parametrize("length", [233, 300, 1000, 65_570, 65_580, 131_110, 400_001])
def test_the_place_of_a_record_has_its_length(length: int) -> None:
    member = record.padding(length)
    assert len(member) == length and record.member_length(member) == length
    assert record.decode(member) is None and record.fault_of(member) == ""
    assert raw_files.whole_length(BytesIO(member * 2), 2 * length) == (2 * length, 2)


def test_a_place_that_is_too_small_is_refused() -> None:
    with pytest.raises(record.RecordError, match="too few"):
        record.padding(60)


def killed_between(folder: Path) -> tuple[list[str], Path]:
    """A file and its compacted one side by side, as a killed compaction leaves them."""
    refs = filled(folder)
    old = the_file(folder)
    data = old.read_bytes()
    compact.compact(old, even, NO_KEYS)
    old.write_bytes(data)
    return refs, old


def test_what_a_killed_compaction_left_is_taken_out_too(tmp_path: Path) -> None:
    refs, old = killed_between(tmp_path)
    part = tmp_path / (compact.compact_of(old.name) + compact.BODY)
    part.write_bytes(b"pages")
    store = RawStore.open(str(tmp_path), READER)
    gone = erasing.erase(store, lambda _, page: page.url == url(2), lambda _: None, lambda _: None)
    assert gone == [refs[2]] and not part.exists()
    assert erasing.erase_named(store, [refs[4]]) == 2
    old.unlink()
    assert {ref for ref, _ in store.scan()} == {refs[0], refs[6]}


def test_a_file_of_which_nothing_is_left_leaves_no_compacted_one(tmp_path: Path) -> None:
    _, old = killed_between(tmp_path)
    assert compact.compact(old, lambda *_: False, NO_KEYS) is not None
    assert not list(tmp_path.iterdir())


def test_a_walk_goes_on_in_the_file_that_took_the_place(tmp_path: Path) -> None:
    first, second = filled(tmp_path, worker="w1"), filled(tmp_path, worker="w2")
    store = RawStore.open(str(tmp_path), READER)
    for walk, more in ((store.scan(), set()), (store.verify(), {""})):
        found = [next(walk)[0]]
        for path in tmp_path.glob("w2*"):
            keep = even if more == set() else (lambda ref, _: ref == second[4])
            assert compact.compact(path, keep, NO_KEYS) is not None
        found += [ref for ref, _ in walk]
        kept = {second[n] for n in ((0, 2, 4, 6) if more == set() else (4,))}
        assert set(found) & set(second) == kept and set(first) <= set(found)


def test_a_copy_in_the_bucket_goes_with_that_in_the_spool(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """A crash between the upload and the removal leaves both; neither undoes what was done to the
    other."""
    uri = f"memory://bucket-{request.node.name}/raw"
    refs = filled(tmp_path)
    path = the_file(tmp_path)
    whole = path.read_bytes()
    store = RawStore.open(uri, READER, spool=tmp_path)
    assert isinstance(store, RemoteRawStore)
    store.remote.upload(path)
    gone = erasing.erase(store, lambda _, page: page.url == url(2), lambda _: None, lambda _: None)
    assert gone == [refs[2]]
    path.write_bytes(whole)  # as the spool of another machine has it
    RawStore.open(uri, "w2", spool=tmp_path).close()
    assert not list(tmp_path.glob("*.warc.gz"))
    assert {ref for ref, _ in store.scan()} == set(refs) - {refs[2]}

    path.write_bytes(whole)
    made = compact.compact(path, even, NO_KEYS)
    assert made is not None and made.path is not None
    store.remote.upload(made.path)
    store.remote.remove(path.name)
    made.path.unlink()
    path.write_bytes(whole)
    RawStore.open(uri, "w3", spool=tmp_path).close()
    assert not list(tmp_path.glob("*.warc.gz"))
    assert store.remote.names() == [made.path.name]
