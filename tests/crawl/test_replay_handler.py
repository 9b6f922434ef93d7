"""Stored pages answer under their real addresses; the network is out of reach."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.crawl.fault_server import PAGE, FaultServer
from tests.crawl.test_fetch_faults import OPEN, crawl


@pytest.fixture
def server() -> Iterator[FaultServer]:
    faults = FaultServer()
    faults.start({"one": ("127.0.2.9", None)})
    yield faults
    faults.stop()


def folder_of(tmp_path: Path) -> Path:
    (tmp_path / "html").mkdir()
    (tmp_path / "robots").mkdir()
    (tmp_path / "html" / "p1.html.gz").write_bytes(gzip.compress(PAGE))
    (tmp_path / "robots" / "vnexpress.example.txt").write_text("User-agent: *\nAllow: /\n")
    rows = [{"id": "p1", "url": "https://vnexpress.example/tin-1.html?utm_source=rss"}]
    (tmp_path / "gold.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return tmp_path


@pytest.mark.long
def test_stored_pages_answer_and_nothing_else_does(server: FaultServer, tmp_path: Path) -> None:
    live = f"http://127.0.2.9:{server.ports['one']}/ok"
    page = "https://vnexpress.example/tin-1.html"
    robots = [
        "https://vnexpress.example/robots.txt robots",
        "https://other.example/robots.txt robots",
    ]
    urls = [page, page + "?utm_source=rss", live, "https://vnexpress.example/other.html", *robots]
    results, _ = crawl(
        urls,
        OPEN,
        f"REPLAY_DIR={folder_of(tmp_path)}",
        "DOWNLOAD_DELAY=0",
        "CONCURRENT_REQUESTS_PER_DOMAIN=8",
    )
    found = {url: (row.get("status"), row.get("bytes")) for url, row in results.items() if url}
    assert found == {
        page: (200, len(PAGE)),
        page + "?utm_source=rss": (200, len(PAGE)),
        live: (404, 0),
        "https://vnexpress.example/other.html": (404, 0),
        "https://vnexpress.example/robots.txt": (200, 23),
        "https://other.example/robots.txt": (404, 0),
    }
    assert server.hits == []
    assert results[page]["headers"] == {"Content-Type": "text/html"}


def test_a_wrong_folder_fetches_nothing_and_says_why(server: FaultServer, tmp_path: Path) -> None:
    live = f"http://127.0.2.9:{server.ports['one']}/ok"
    results, errors = crawl([live], OPEN, f"REPLAY_DIR={tmp_path}", check=False)
    assert "has no gold.jsonl" in errors
    assert "status" not in results.get(live, {})
    assert server.hits == []
