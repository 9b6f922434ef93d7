"""Damaged raw files do not keep prune and rekey from the others."""

from __future__ import annotations

import base64
from datetime import UTC, datetime
from pathlib import Path

import pytest
from scrapy.settings import Settings

from newscrawler.commands import store as command
from newscrawler.crawl import retention
from newscrawler.crawl.keeping import Held
from newscrawler.rawstore import READER, RawStore
from newscrawler.rawstore.record import RawPage

OLD = datetime(2026, 1, 1, tzinfo=UTC)


def two_files(folder: Path) -> tuple[Path, bytes, list[str]]:
    """The first is cut off in its last page; its bytes, and the references of the second."""
    refs = []
    for worker in ("w1", "w2"):
        store = RawStore.open(str(folder), worker)
        refs = [store.write(f"https://a.vn/{n}", b"x" * 900, [], 200, OLD) for n in range(4)]
        store.close()
    (path,) = folder.glob("w1*")
    damaged = path.read_bytes()[:-40]
    path.write_bytes(damaged)
    return path, damaged, refs


def settings(folder: Path) -> Settings:
    found = Settings()
    found.setmodule("newscrawler.settings")
    found.setdict({"DATA_DIR": str(folder), "RAW_STORE": str(folder / "warc")})
    return found


def test_prune_goes_on_behind_a_damaged_file(tmp_path: Path) -> None:
    path, damaged, refs = two_files(tmp_path)
    raw = RawStore.open(str(tmp_path), READER)
    done = retention.Pruned()
    said: list[str] = []

    def keep(ref: str, page: RawPage) -> bool:
        return page.url.endswith("3")

    retention._prune_raw(raw, keep, done, said.append, False, Held(None, [], ""))  # type: ignore[arg-type]
    assert (done.raw_pages, done.raw_damaged) == (3, 1)
    assert path.read_bytes() == damaged and any(path.name in line for line in said)
    assert refs[3] in {ref for ref, _ in raw.scan()}


def test_rekey_goes_on_behind_a_damaged_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path, damaged, _ = two_files(tmp_path / "warc")
    monkeypatch.setenv("RAW_KEY", base64.b64encode(b"k" * 32).decode())
    with pytest.raises(SystemExit) as ended:
        command._rekey(settings(tmp_path), as_json=True)
    out, err = capsys.readouterr()
    assert ended.value.code == 1 and '"written_anew": 1' in out and '"damaged": 1' in out
    assert path.name in err and "1 damaged file(s)" in err.splitlines()[-1]
    assert path.read_bytes() == damaged
    assert list((tmp_path / "warc").glob("w2*.compact.warc.gz"))
