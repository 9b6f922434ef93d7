"""Addresses that are masked in logs, packed or being written, and others that stay."""

from __future__ import annotations

import gzip
import json
import threading
from pathlib import Path

import pytest

from newscrawler.crawl import takedown_logs as logs
from newscrawler.crawl.takedown_logs import Addresses

ONE = "https://a.vn/tin-1.htm"


@pytest.mark.parametrize(
    ("text", "is_masked"),
    [
        (ONE, True),
        (f"{ONE}?utm=x#top", True),
        (f"url={ONE} site=a", True),
        (f'{{"url":"{ONE}","n":1}}', True),
        (f"[{ONE}, b]", True),
        (f"{ONE}l", False),
        (f"{ONE}/2", False),
        ("https://a.vn/tin-1", False),
        (f"https://b.vn/?u={ONE}", True),
    ],
)
def test_an_address_ends_where_it_ends(text: str, is_masked: bool) -> None:
    masked, many = Addresses([ONE]).masked(text.encode())
    assert (many == 1) == is_masked and len(masked) == len(text.encode())
    assert (masked != text.encode()) == is_masked
    assert ONE.encode() not in masked or not is_masked


@pytest.mark.parametrize(
    ("url", "is_masked"),
    [
        ("http://a.vn", True),
        ("https://a.vn/x?y=1", True),
        ("https://m.tin.a.vn:8443/x", True),
        ("https://ba.vn/x", False),
        ("https://a.vn.b.com/x", False),
    ],
)
def test_a_domain_and_what_is_below_it(url: str, is_masked: bool) -> None:
    line = f"Visit ended url={url} site=s\n".encode()
    masked, many = Addresses([], "a.vn").masked(line)
    assert (many == 1) == is_masked and len(masked) == len(line)
    assert masked.endswith(b" site=s\n")


def test_every_file_keeps_its_lines(tmp_path: Path) -> None:
    rows = [{"url": url, "outcome": "DONE"} for url in (ONE, "https://a.vn/tin-10.htm", ONE)]
    text = "".join(json.dumps(row) + "\n" for row in rows).encode()
    folder = tmp_path / "logs"
    (folder / "json").mkdir(parents=True)
    (folder / "json/w1.jsonl").write_bytes(text)
    (folder / "json/w0.jsonl.gz").write_bytes(gzip.compress(text))
    (folder / "json/damaged.jsonl.gz").write_bytes(gzip.compress(text)[:40])
    (folder / "crawl.log.1").write_bytes(f"Visit ended url={ONE} site=a\n".encode())
    addresses = Addresses([ONE])
    assert len(logs.left(folder, addresses)) == 3
    assert logs.mask(folder, addresses) == 5
    assert logs.left(folder, addresses) == [] and logs.mask(folder, addresses) == 0
    packed = gzip.decompress((folder / "json/w0.jsonl.gz").read_bytes())
    for data in ((folder / "json/w1.jsonl").read_bytes(), packed):
        found = [json.loads(line)["url"] for line in data.splitlines()]
        assert found == ["taken-down------------", "https://a.vn/tin-10.htm", found[0]]
    assert sorted(p.name for p in folder.rglob("*.masked")) == []
    assert logs.mask(tmp_path / "none", addresses) == 0


def test_a_worker_may_write_meanwhile_and_no_line_is_lost(tmp_path: Path) -> None:
    path = tmp_path / "w1.jsonl"
    path.touch()
    rows = 3_000

    def write() -> None:
        with path.open("ab", buffering=0) as file:
            for number in range(rows):
                file.write(json.dumps({"n": number, "url": ONE}).encode() + b"\n")

    writer = threading.Thread(target=write)
    writer.start()
    while writer.is_alive():
        logs.mask(tmp_path, Addresses([ONE]))
    writer.join()
    logs.mask(tmp_path, Addresses([ONE]))
    found = [json.loads(line) for line in path.read_text().splitlines()]
    assert [row["n"] for row in found] == list(range(rows))
    assert not any(row["url"] == ONE for row in found)


def test_a_line_longer_than_a_block_is_masked_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logs, "_BLOCK", 10_000)
    path = tmp_path / "x.log"
    path.write_text(f"{'x' * 9_990} {ONE} {'y' * 30_000} {ONE} end")
    assert logs.mask(tmp_path, Addresses([ONE])) == 2
    assert ONE not in path.read_text()
