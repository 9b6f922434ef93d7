"""Stored pages that answer instead of the network."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from newscrawler.rawstore.replay import ReplayError, load_index


def folder_with(
    tmp_path: Path, rows: list[dict[str, str]], robots: dict[str, str] | None = None
) -> Path:
    (tmp_path / "html").mkdir()
    for row in rows:
        (tmp_path / "html" / f"{row['id']}.html.gz").write_bytes(
            gzip.compress(f"<h1>{row['id']}</h1>".encode())
        )
    (tmp_path / "gold.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows) + "\n")
    (tmp_path / "robots").mkdir()
    for name, text in (robots or {}).items():
        (tmp_path / "robots" / name).write_text(text)
    return tmp_path


def test_pages_answer_under_their_url_and_its_canonical_form(tmp_path: Path) -> None:
    written = "https://News.example/a?utm_source=rss&b=2&a=1#top"
    index = load_index(
        folder_with(
            tmp_path, [{"id": "p1", "url": written}, {"id": "p2", "url": "http://b.example/x"}]
        )
    )
    assert index.urls() == [written, "http://b.example/x"]
    for url in (written, "https://news.example/a?a=1&b=2", "https://news.example/a?b=2&a=1"):
        assert index.page(url) == b"<h1>p1</h1>", url
        assert index.page_id(url) == "p1"
    assert index.page("https://news.example/b") is None
    assert index.page_id("https://news.example/b") is None


def test_the_first_of_two_pages_of_a_url_answers(tmp_path: Path) -> None:
    url = "http://b.example/x"
    index = load_index(folder_with(tmp_path, [{"id": "p1", "url": url}, {"id": "p2", "url": url}]))
    assert (index.urls(), index.page_id(url)) == ([url], "p1")


def test_robots_come_from_the_folder(tmp_path: Path) -> None:
    index = load_index(folder_with(tmp_path, [], {"a.example": "A", "b.example.txt": "B"}))
    assert (index.robots("a.example"), index.robots("b.example"), index.robots("c.example")) == (
        b"A",
        b"B",
        None,
    )
    assert index.robots("../gold.jsonl") is None


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{not json", "line 1: not a JSON object"),
        ('{"id": "x"}', "line 1"),
        ("[1]", "line 1"),
        ('{"id": "x", "url": "http://x/"}', "html/x.html.gz is missing"),
    ],
)
def test_a_wrong_folder_says_what_is_wrong(tmp_path: Path, line: str, message: str) -> None:
    with pytest.raises(ReplayError, match="has no gold"):
        load_index(tmp_path)
    (tmp_path / "gold.jsonl").write_text(line + "\n")
    with pytest.raises(ReplayError, match=message):
        load_index(tmp_path)


def test_the_stored_real_pages_load(shared_pages: Path) -> None:
    index = load_index(shared_pages)
    assert len(index.urls()) > 800
    assert all(index.page(url) for url in index.urls()[:50])
