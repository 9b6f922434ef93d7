"""One article at several addresses is one article: a redirect, a canonical address, a slug,
tracking parameters."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from newscrawler.fleet.history import History
from tests.crawl.fault_server import FaultServer, whole
from tests.crawl.harness import Scrapy
from tests.crawl.small import QUICK, Queue, stored

pytestmark = pytest.mark.slow

SENTENCE = "Sáng {n} tháng 11, đoàn công tác số {n} của thành phố đã đến thăm {n} hộ dân ở ven sông và trao {n} suất quà."


def article(title: str, seed: int, canonical: str = "") -> bytes:
    text = "".join(
        f"<p>{SENTENCE.format(n=seed * 100 + i)} {SENTENCE.format(n=seed * 77 + i)}</p>"
        for i in range(8)
    )
    link = f'<link rel="canonical" href="{canonical}">' if canonical else ""
    return whole(
        f'<html lang="vi"><head><meta charset="utf-8"><title>{title}</title>{link}'
        f'<meta property="og:type" content="article"><meta property="og:title" content="{title}"></head>'
        f"<body><article><h1>{title}</h1>{text}</article></body></html>".encode()
    )


@pytest.fixture
def site() -> Iterator[FaultServer]:
    server = FaultServer()
    server.start({"bao": ("127.0.9.12", None)})
    base = f"http://127.0.9.12:{server.ports['bao']}"
    paths = [
        "/tin-goc-4800001.html",
        "/tin-goc-4800001.html?utm_source=zalo&fbclid=1",  # tracking
        "/an-ban-khac-4800002.html",  # names the first, same text
        "/doi-cho-4800003.html",  # 301 to the first
        "/mau-hong-4800004.html",  # names the first, another text: a template that lies
    ]
    home = "".join(f'<a href="{path}">Bài viết số {path[-6]} của hôm nay</a>' for path in paths)
    answers = server._answers
    answers["/"] = whole(f"<html><body>{home}</body></html>".encode())
    answers[paths[0]] = article("Đoàn công tác thăm dân", 1)
    answers[paths[2]] = article("Đoàn công tác thăm dân - Bản in", 1, base + paths[0])
    answers[paths[3]] = whole(b"", f"Location: {paths[0]}", status="301 Moved Permanently")
    answers[paths[4]] = article("Đội bóng vào chung kết", 9, base + paths[0])
    yield server
    server.stop()


def test_an_article_at_several_addresses_is_stored_once(tmp_path: Path, site: FaultServer) -> None:
    base = f"http://127.0.9.12:{site.ports['bao']}"
    (tmp_path / "sites.json").write_text(
        json.dumps({"sites": [{"id": "bao.vn", "home": f"{base}/"}]}), "utf-8"
    )
    scrapy = Scrapy(tmp_path, {**QUICK, "SITES_FILE": tmp_path / "sites.json"})
    done = scrapy.run("crawl", "news")
    assert done.returncode == 0, done.stderr[-2000:]
    print(done.stderr[-4000:])
    titles = sorted(
        a.title.removesuffix(" - Bản in") for a in stored(scrapy.data)
    )  # whichever came first
    assert titles == ["Đoàn công tác thăm dân", "Đội bóng vào chung kết"]
    assert (done.stat("article/new"), done.stat("article/duplicate")) == (2, 1)
    asked = [path for path, _, _ in site.hits]
    assert all(asked.count(path) == 1 for path in set(asked)), asked
    said = [
        scrapy.run("frontier", "why", base + path).stdout
        for path in sorted(set(asked))
        if "480000" in path
    ]
    assert sum("REDIRECTED(canonical)" in text for text in said) == 1, said
    # The site's own sums, which an alarm and the report of the day name: not the fleet's alone.
    with contextlib.closing(Queue(scrapy.data)) as queue:
        (window,) = queue._ask(
            lambda _, client: History(client).windows(round(time.time() * 1000), 60)
        )
    assert window.sites["bao.vn"]["new"] == 2
    assert window.sites["bao.vn"]["duplicates"] == 1
