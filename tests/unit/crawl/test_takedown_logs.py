"""Addresses that are masked in logs, packed or being written, and others that stay."""

from __future__ import annotations

import gzip
import json
import re
import shutil
import subprocess
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
        (f"{ONE}?utm_source=x#top", True),
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


PAGE = "https://example.vn/a-1.html"


@pytest.mark.parametrize(
    "text",
    [
        f"{PAGE}: read timeout",
        f"{PAGE}.",
        f"Not stored: {PAGE}. Asked again",
        f"`{PAGE}`",
        f"{PAGE}|",
        f"**{PAGE}**",
        f"\u201c{PAGE}\u201d",
        f"{PAGE}\u2026",
        f"{PAGE},200,3",
        f"{PAGE}?utm_source=x.",
        f"https://b.vn/?u={PAGE}&x=1",
        "https://example.vn:443/a-1.html",
        "http://example.vn/a-1.html",
        "HTTPS://Example.VN/a-1.html",
        "https://user:word@example.vn/a-1.html",
        "//example.vn/a-1.html",
        "GET example.vn/a-1.html 200",
        "https://b.vn/share?u=https%3A%2F%2Fexample.vn%2Fa-1.html",
        "https://b.vn/share?u=https%3a%2f%2fexample.vn%2fa-1.html&t=x",
        "u=https%3A%2F%2Fexample.vn%2Fa-1.html%3Futm_source%3Dx",
        "https://c.vn/?v=https%3A%2F%2Fb.vn%2F%3Fu%3Dhttps%253A%252F%252Fexample.vn%252Fa-1.html",
        "https://example.vn/a%2D1.html",
    ],
)
def test_an_address_is_found_however_it_is_written(tmp_path: Path, text: str) -> None:
    path = tmp_path / "x.log"
    path.write_text(f"before {text} after\n{text}\n")
    size = path.stat().st_size
    addresses = Addresses([PAGE])
    assert logs.left(tmp_path, addresses) == [path]
    assert logs.mask(tmp_path, addresses) == 2
    assert "1.html" not in path.read_text().lower() and path.stat().st_size == size
    assert logs.left(tmp_path, addresses) == []


@pytest.mark.parametrize(
    "text",
    [
        f"{PAGE}?x=2",
        f"{PAGE}5",
        f"{PAGE}.bak",
        f"{PAGE}:8",
        f"{PAGE}-2",
        f"{PAGE}%20x",
        f"{PAGE}%2F2",
        f"{PAGE}%2520x",
        "u=https%3A%2F%2Fexample.vn%2Fa-1.html5",
        "u=https%3A%2F%2Fexample.vn%2Fa-1.html%3Fx%3D2",
        "u=https%3A%2F%2Fmyexample.vn%2Fa-1.html",
        f"{PAGE}\u1ebft",
        "https://myexample.vn/a-1.html",
        "https://m.example.vn/a-1.html",
        "https://example.vn.other.com/a-1.html",
        "https://example.vn/A-1.html",
    ],
)
def test_a_longer_address_and_another_host_stay(tmp_path: Path, text: str) -> None:
    path = tmp_path / "x.log"
    path.write_text(f"before {text} after\n{text}\n")
    addresses = Addresses([PAGE])
    assert logs.left(tmp_path, addresses) == [] and logs.mask(tmp_path, addresses) == 0


LETTERS = "https://example.vn/tin-\u1ebf-1.html"
CODED = "https://example.vn/tin-%E1%BA%BF-1.html"


@pytest.mark.parametrize("url", [LETTERS, CODED])
@pytest.mark.parametrize("text", [LETTERS, CODED, CODED.lower(), CODED.replace("%", "%25")])
def test_letters_are_found_as_they_are_and_by_their_numbers(url: str, text: str) -> None:
    line = f"before {text} after".encode()
    addresses = Addresses([url])
    assert addresses.is_in(line)
    masked, many = addresses.masked(line)
    assert many == 1 and len(masked) == len(line) and not addresses.is_in(masked)
    assert masked.startswith(b"before taken-down") and masked.endswith(b"- after")


def test_what_stands_beside_coded_bytes_stays() -> None:
    line = b"a%41%42 u=%2F%2Fexample.vn%2Fa-1.html%26 x=%41 https://example.vn/a-1.html z%25"
    masked, many = Addresses([PAGE]).masked(line)
    assert many == 2
    assert (
        masked == b"a%41%42 u=taken-down-----------------%26 x=%41 taken-down----------------- z%25"
    )


@pytest.mark.parametrize(
    ("text", "is_masked"),
    [
        ("https://Example.vn/a", True),
        ("https://user@example.vn/a", True),
        ("https://example.vn: no answer", True),
        ("https://example.vn.", True),
        ("//example.vn/a", True),
        ("GET m.example.vn/a 200", True),
        ("u=https%3A%2F%2Fm.example.vn%2Fa", True),
        ("u=https%3A%2F%2Fmyexample.vn%2Fa", False),
        ("https://myexample.vn/a", False),
        ("https://example.vn.other.com/a", False),
        ("https://example.vn@other.com/a", False),
        ("https://example.vn-x.com/a", False),
        ("selectors/example.vn/set.json", False),
        ("site=example.vn mail=desk@example.vn", False),
    ],
)
def test_a_domain_is_found_however_it_is_written(
    tmp_path: Path, text: str, is_masked: bool
) -> None:
    path = tmp_path / "x.log"
    path.write_text(f"before {text} after\n{text}\n")
    addresses = Addresses([], "example.vn")
    assert logs.left(tmp_path, addresses) == [path] * is_masked
    assert logs.mask(tmp_path, addresses) == 2 * is_masked
    assert ("example.vn" not in path.read_text().lower()) == is_masked
    assert logs.left(tmp_path, addresses) == []


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("url=https://example.vn/nguyen-van-a's-bi-bat-123.html ok", "url= ok"),
        ("url=https://example.vn/nguyen-van-a''bi-bat-123.html ok", "url= ok"),
        ("url=https://example.vn/a?q=nguyen's&b=bi-bat ok", "url= ok"),
        ('{"m":"url=https://example.vn/b\\u00e0i-bi-bat.html ok","n":1}', '{"m":"url= ok","n":1}'),
        ('{"m":"\\u201chttps://example.vn/a\\u201d ok"}', '{"m":"\\u201c\\u201d ok"}'),
        ('{"m":"\\u003chttps://example.vn/a\\u003e ok"}', '{"m":"\\u003c\\u003e ok"}'),
        ('{"m":"https://example.vn/a\\nbi-bat"}', '{"m":"\\nbi-bat"}'),
        ("{'url':'https://example.vn/a','n':1}", "{'url':'','n':1}"),
        ("['https://example.vn/a', 'https://b.vn/c']", "['', 'https://b.vn/c']"),
        ("of 'https://example.vn/a'.", "of ''."),
    ],
)
def test_an_address_is_masked_to_its_end_and_no_further(text: str, left: str) -> None:
    masked, many = Addresses([], "example.vn").masked(text.encode())
    assert many == 1 and len(masked) == len(text.encode())
    assert re.sub(rb"taken-down-*", b"", masked).decode() == left


def test_of_a_list_only_the_domains_own_are_masked() -> None:
    text = b"[https://example.vn/a,https://b.vn/x|https://example.vn/b]"
    masked, many = Addresses([], "example.vn").masked(text)
    assert many == 2 and b",https://b.vn/x|" in masked and len(masked) == len(text)


def test_what_is_overlooked_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The proof looks in its own way: were the masker blind, it would be told."""
    path = tmp_path / "x.log"
    path.write_text(f"{PAGE}: read timeout\n")
    monkeypatch.setattr(Addresses, "places", lambda self, data: iter(()))
    for addresses in (Addresses([PAGE]), Addresses([], "example.vn")):
        assert logs.mask(tmp_path, addresses) == 0 and logs.left(tmp_path, addresses) == [path]


def test_a_file_that_cannot_be_written_is_named_and_the_others_are_masked(tmp_path: Path) -> None:
    """A program that runs cannot be opened for writing, whoever asks."""
    for name in ("a.log", "z.log"):
        (tmp_path / name).write_text(f"{ONE}\n")
    busy = tmp_path / "busy"
    shutil.copy(shutil.which("sleep") or "/bin/sleep", busy)
    with busy.open("ab") as file:
        file.write(f"\n{ONE}\n".encode())
    process = subprocess.Popen([busy, "60"])
    try:
        assert logs.mask(tmp_path, Addresses([ONE])) == 2
        assert logs.left(tmp_path, Addresses([ONE])) == [busy]
    finally:
        process.kill()
        process.wait()


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
