"""Rows of exports that are taken out while other processes use the files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from newscrawler.crawl import takedown_look as looking

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
