"""Raw pages that only who has the key can read: written, read, checked, given another key."""

from __future__ import annotations

import base64
import os
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path

import pytest
from warcio.archiveiterator import ArchiveIterator

from newscrawler.rawstore import (
    READER,
    RawNotFound,
    RawStore,
    RawStoreUnavailable,
    compact,
    erasing,
    record,
)
from newscrawler.rawstore.sealing import MARKER, Keys, RawLocked, keys_from

NOON = datetime(2026, 3, 4, 12, tzinfo=UTC)
SECRET = "Điều không ai được đọc".encode() * 40
OLD, NEW = (base64.b64encode(bytes([n]) * 32).decode() for n in (1, 2))


def keys(*texts: str) -> Keys:
    return Keys.from_text("\n".join(texts), "RAW_KEY")


def write(folder: Path, own: Keys | None, start: int = 0, worker: str = "w1") -> list[str]:
    store = RawStore.open(str(folder), worker, keys=own)
    refs = [
        store.write(f"https://secret.example/{n}", SECRET, [], 200, NOON)
        for n in range(start, start + 4)
    ]
    store.close()
    return refs


def read_by(folder: Path, own: Keys | None) -> RawStore:
    return RawStore.open(str(folder), READER, keys=own)


def rekeyed(folder: Path, own: Keys) -> list[Path]:
    paths = RawStore.open(str(folder), READER).local_files()
    return [made for path in paths if (made := compact.rekey(path, own)) is not None]


def inflated_text(folder: Path) -> str:
    """All that can be read in WARC files without a key, headers too."""
    texts = [p.read_bytes() for p in folder.glob("*.warc.gz*")]
    for path in folder.glob("*.warc.gz"):
        for found in ArchiveIterator(BytesIO(path.read_bytes())):
            texts += [found.content_stream().read(), str(found.rec_headers).encode()]
    return b"\n".join(texts).decode("utf-8", "replace")


def in_clear(folder: Path) -> bool:
    """Whether a page or its address can be read without a key."""
    text = inflated_text(folder)
    return SECRET[:60].decode("utf-8", "ignore") in text or "secret.example" in text


def test_sealed_pages_are_read_with_the_key_alone(tmp_path: Path) -> None:
    refs = write(tmp_path, keys(OLD))
    assert not in_clear(tmp_path)
    store = read_by(tmp_path, keys(OLD))
    assert [store.read(ref).body for ref in refs] == [SECRET] * 4
    assert [ref for ref, _ in store.scan()] == refs
    assert set(dict(store.verify()).values()) == {""}
    for own in (None, keys(NEW)):
        locked = read_by(tmp_path, own)
        with pytest.raises(RawLocked, match="sealed with key"):
            locked.read(refs[0])
        with pytest.raises(RawLocked):
            list(locked.scan())
        with pytest.raises(RawLocked):
            dict(locked.verify())


def test_a_sealed_store_is_not_written_to_without_a_key(tmp_path: Path) -> None:
    write(tmp_path, keys(OLD))
    before = sorted(p.name for p in tmp_path.iterdir())
    with pytest.raises(RawStoreUnavailable, match="no key for the next ones"):
        RawStore.open(str(tmp_path), "w2")
    assert sorted(p.name for p in tmp_path.iterdir()) == before and MARKER in before


def test_an_altered_page_is_found_by_the_check(tmp_path: Path) -> None:
    refs = write(tmp_path, keys(OLD))
    (path,) = tmp_path.glob("*.warc.gz")
    _, offset, length = (int(x) if x.isdigit() else x for x in refs[1].rsplit(":", 2))
    store = read_by(tmp_path, keys(OLD))
    member = path.read_bytes()[offset : offset + length]
    head, content = record.metadata(member)
    forged = content[:-1] + bytes([content[-1] ^ 1])
    made = record.encode_metadata(head, forged, is_stored=True)
    assert len(made) == length
    path.write_bytes(path.read_bytes()[:offset] + made + path.read_bytes()[offset + length :])
    faults = {ref: fault for ref, fault in store.verify() if fault}
    assert list(faults) == [refs[1]] and "altered" in faults[refs[1]]
    with pytest.raises(RawNotFound, match="altered"):
        store.read(refs[1])


def test_a_new_key_takes_the_place_of_an_old_one(tmp_path: Path) -> None:
    """Plain pages, pages of the old key and of the new one: afterwards the new one opens all, and
    every reference leads where it led."""
    refs = write(tmp_path, None)
    refs += write(tmp_path, keys(OLD), 4, "w2")
    refs += write(tmp_path, keys(NEW, OLD), 8, "w3")
    assert in_clear(tmp_path)
    with pytest.raises(RawLocked):
        rekeyed(tmp_path, keys(NEW))
    assert [read_by(tmp_path, keys(OLD, NEW)).read(ref).body for ref in refs] == [SECRET] * 12
    assert len(rekeyed(tmp_path, keys(NEW, OLD))) >= 1
    assert rekeyed(tmp_path, keys(NEW, OLD)) == []
    assert not in_clear(tmp_path)
    store = read_by(tmp_path, keys(NEW))
    assert [store.read(ref).url[-1:] for ref in refs[:3]] == ["0", "1", "2"]
    assert sorted(ref for ref, _ in store.scan()) == sorted(refs)
    assert set(dict(store.verify()).values()) == {""}

    pruned = [
        compact.compact(path, lambda _, page: page.url[-1] in "02468", keys(NEW))
        for path in store.local_files()
    ]
    assert sum(one.dropped for one in pruned if one) == 6
    assert len(list(store.scan())) == 6
    gone = erasing.erase(store, lambda ref, _: ref == refs[2], lambda _: None, lambda _: None)
    assert gone == [refs[2]] and len(list(store.scan())) == 5
    assert rekeyed(tmp_path, keys(OLD, NEW)) and len(list(store_of(tmp_path, OLD).scan())) == 5


def store_of(folder: Path, key: str) -> RawStore:
    return read_by(folder, keys(key))


@pytest.mark.parametrize("step", ["fsync", "replace", "unlink"])
def test_a_crash_while_the_key_is_changed_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    refs = write(tmp_path, keys(OLD))

    class Killed(BaseException):
        pass

    def killed(*_: object, **__: object) -> None:
        raise Killed

    with monkeypatch.context() as patch, pytest.raises(Killed):
        if step == "fsync":
            patch.setattr(os, "fsync", killed)
        else:
            patch.setattr(Path, step, killed)
        rekeyed(tmp_path, keys(NEW, OLD))
    both = read_by(tmp_path, keys(NEW, OLD))
    assert [both.read(ref).body for ref in refs] == [SECRET] * 4
    rekeyed(tmp_path, keys(NEW, OLD))
    assert [store_of(tmp_path, NEW).read(ref).body for ref in refs] == [SECRET] * 4


def test_a_wrong_key_is_one_line_without_the_key(tmp_path: Path) -> None:
    short = base64.b64encode(b"short").decode()
    for text in ("not base64!", short, f"{OLD},{short}"):
        with pytest.raises(RawStoreUnavailable) as caught:
            keys_from({"RAW_KEY": text}, "RAW_KEY", "")
        said = str(caught.value)
        assert "32 bytes in base64" in said and text not in said and "\n" not in said
    with pytest.raises(RawStoreUnavailable, match="No such file"):
        keys_from({}, "RAW_KEY", str(tmp_path / "none"))
    (tmp_path / "empty").write_text("\n")
    with pytest.raises(RawStoreUnavailable, match="no key"):
        keys_from({}, "RAW_KEY", str(tmp_path / "empty"))
    (tmp_path / "keys").write_text(f"{NEW}\n{OLD}\n")
    assert keys_from({}, "RAW_KEY", str(tmp_path / "keys")).id == keys(NEW).id
    assert keys_from({"RAW_KEY": OLD}, "RAW_KEY", str(tmp_path / "keys")).id == keys(OLD).id
    assert not keys_from({}, "RAW_KEY", "")
