"""The unpacked model of languages: what is kept of it, and every way in which that may be wrong."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from newscrawler.extraction import language_model
from newscrawler.extraction.language_model import _HEAD_BYTES, _NAME, load

TEXT = "Byrådet godkjente fredag byggingen av en ny bro over elven, og arbeidet begynner til våren."


def test_what_is_kept_answers_as_the_package_does(tmp_path: Path) -> None:
    load(tmp_path)
    before = (tmp_path / _NAME).stat()
    kept, packed = load(tmp_path), load(None)
    after = (tmp_path / _NAME).stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    assert after.st_size > 50_000_000
    assert isinstance(kept.tk_nextmove, memoryview), "mapped"
    for text in (TEXT, "", "x", "中国经济第三季度增长", "def f(x): return {1: 2}", "Đường phố Hà Nội", "\ud800"):  # fmt: skip
        assert kept.rank(text) == packed.rank(text)
    assert kept.labels == packed.labels


@pytest.fixture
def unpacked(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> list[Any]:
    """One entry for each time that the package's file was read. It is a small one here, of two
    languages and one feature, the letter a, as py3langid writes it."""
    from py3langid import langid, modelio

    to_a = [1 if letter == ord("a") else 0 for letter in range(256)]
    model = ([[0.5, -0.5]], [0.0, 0.0], ["no", "en"], [*to_a, *([0] * 256)], [0, 1], [-1, 0])
    small = tmp_path_factory.mktemp("package") / "model.npz.xz"
    modelio.save_model(small, model)
    os.utime(small, ns=(1, 1))
    monkeypatch.setattr(langid, "MODEL_FILE", str(small))
    read: list[Any] = []
    really = langid.LanguageIdentifier.from_model_file

    def noted(*args: Any, **kwargs: Any) -> Any:
        read.append(args)
        return really(*args, **kwargs)

    monkeypatch.setattr(langid.LanguageIdentifier, "from_model_file", noted)
    return read


@pytest.fixture
def cache(tmp_path: Path, unpacked: list[Any]) -> Path:
    """A folder with the small model in it."""
    load(tmp_path)
    load(tmp_path)
    assert len(unpacked) == 1
    unpacked.clear()
    return tmp_path


@pytest.fixture
def written(cache: Path) -> bytes:
    return (cache / _NAME).read_bytes()


def _flip(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: b"",
        lambda data: data[:100],
        lambda data: data[:-1],
        lambda data: data[: len(data) // 2],
        lambda data: _flip(data, _HEAD_BYTES),
        lambda data: _flip(data, len(data) - 1),
        lambda data: b"{" * len(data),
        lambda data: b"\xff" * len(data),
        lambda data: data.replace(b'"crc32"', b'"crc33"', 1),
        lambda data: data.replace(b'"nb_pc"', b'"nb_pd"', 1),
        lambda data: data.replace(b'"made_of": ["', b'"made_of": ["9', 1),
        lambda data: data.replace(b'"parts"', b'"party"', 1),
    ],
    ids=["empty", "head cut", "cut", "half", "first byte", "last byte", "braces", "ones",
         "no checksum", "no part", "another version", "no parts"],
)  # fmt: skip
def test_what_is_damaged_is_made_anew(
    cache: Path, unpacked: list[Any], written: bytes, damage: Callable[[bytes], bytes]
) -> None:
    broken = damage(written)
    assert broken != written
    (cache / _NAME).write_bytes(broken)
    assert load(cache).rank("aaa")[0][0] == "no"
    assert len(unpacked) == 1
    assert (cache / _NAME).read_bytes() == written and (cache / _NAME).stat().st_mode & 0o77 == 0
    load(cache)
    assert len(unpacked) == 1, "what was made anew is used"


def test_a_model_of_another_file_of_the_package_is_made_anew(
    cache: Path, unpacked: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("py3langid.__version__", "9.9.9")
    load(cache)
    load(cache)
    assert len(unpacked) == 1


def test_what_others_can_write_is_not_read(cache: Path, unpacked: list[Any]) -> None:
    (cache / _NAME).chmod(0o666)
    load(cache)
    assert len(unpacked) == 1 and (cache / _NAME).stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("place", ["file", "file/below", "/proc/nothing"])
def test_without_a_folder_to_write_to_the_package_is_read(
    tmp_path: Path, unpacked: list[Any], place: str
) -> None:
    (tmp_path / "file").write_text("no folder")
    assert load(tmp_path / place).rank("aaa")[0][0] == "no"
    assert len(unpacked) == 1
    assert list(tmp_path.iterdir()) == [tmp_path / "file"]


def test_a_disk_that_is_full_leaves_nothing(
    tmp_path: Path, unpacked: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    import resource

    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (5_000, limits[1]))  # SIGXFSZ is ignored here
    try:
        assert load(tmp_path).rank("aaa")[0][0] == "no"
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert [p.name for p in tmp_path.iterdir()] == [f"{_NAME}.lock"]
    assert len(unpacked) == 1


def test_what_a_killed_process_left_is_in_nobodys_way(cache: Path, written: bytes) -> None:
    (cache / _NAME).unlink()
    (cache / f"{_NAME}.new").write_bytes(b"half of it")
    load(cache)
    assert (cache / _NAME).read_bytes() == written
    assert not (cache / f"{_NAME}.new").exists()


def test_while_another_process_writes_it_nobody_waits(cache: Path, unpacked: list[Any]) -> None:
    (cache / _NAME).unlink()
    with (cache / f"{_NAME}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        load(cache)
    assert len(unpacked) == 1 and not (cache / _NAME).exists()


@pytest.mark.long
def test_processes_that_start_at_once_all_have_it_and_one_keeps_it(tmp_path: Path) -> None:
    code = (
        "from newscrawler.extraction import language as l; import sys;"
        f"sys.exit(l.identify({TEXT!r})[0] != 'no')"
    )
    env = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
    running = [subprocess.Popen([sys.executable, "-c", code], env=env) for _ in range(2)]
    assert [process.wait(120) for process in running] == [0, 0]
    folder = tmp_path / "newscrawler"
    assert sorted(p.name for p in folder.iterdir()) == [_NAME, f"{_NAME}.lock"]
    assert isinstance(load(folder).tk_nextmove, memoryview)


def test_the_folder_is_the_users_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/lan")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert language_model.cache_folder() == Path("/home/lan/.cache/newscrawler")
    monkeypatch.setenv("XDG_CACHE_HOME", "not/absolute")
    assert language_model.cache_folder() == Path("/home/lan/.cache/newscrawler")
    monkeypatch.setenv("XDG_CACHE_HOME", "/var/cache/lan")
    assert language_model.cache_folder() == Path("/var/cache/lan/newscrawler")
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(Path, "home", lambda: (_ for _ in ()).throw(RuntimeError("no home")))
    assert language_model.cache_folder() is None
