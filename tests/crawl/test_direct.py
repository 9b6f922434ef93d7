"""A crawl that meets a page no rule reads: a scripted model is asked beside it, and the
site is not asked again."""

from __future__ import annotations

import asyncio
import json
import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.crawl.harness import Scrapy
from tests.crawl.small import QUICK
from tests.fixtures_direct import ANSWER, LINES, story_page
from tests.fixtures_llm import ScriptedLLM, dumps

pytestmark = pytest.mark.slow

PATH = "/thoi-su/bao-so-5-do-bo-4954005.html"


@dataclass
class Web:
    host: str
    hits: Counter[str] = field(default_factory=Counter)


@pytest.fixture
def web() -> Iterator[Web]:
    pages = {
        "/": f"<html><body><h1>Báo</h1><a href={PATH}>Bão số 5</a></body></html>".encode(),
        PATH: story_page(),
    }

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            served.hits[self.path] += 1
            body = pages.get(self.path)
            self.send_response(200 if body else 404)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(body or b"")))
            self.end_headers()
            self.wfile.write(body or b"")

        def log_message(self, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    served = Web(f"127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield served
    server.shutdown()
    server.server_close()
    thread.join(10)


def crawled(folder: Path, web: Web, **settings: str) -> Scrapy:
    site = {
        "id": web.host,
        "name": "Báo",
        "class": "mid",
        "home": f"http://{web.host}/",
        "hosts": [web.host],
    }
    site |= {"language": "vi", "zone": "Asia/Ho_Chi_Minh", "article_pattern": r"-(\d{7})\.html$"}
    (folder / "sites.json").write_text(json.dumps({"sites": [site]}))
    (folder / "sets").mkdir()
    places = {"SITES_FILE": folder / "sites.json", "SELECTORS_DIR": folder / "sets"}
    return Scrapy(folder, {**QUICK, **places, "SELECTOR_GENERATION_IDLE_S": "30", **settings})


def stored(scrapy: Scrapy) -> list[Any]:
    from newscrawler.store import open_store

    async def read() -> list[Any]:
        store = open_store("", scrapy.data)
        try:
            return [article async for article in store.scan()]
        finally:
            await store.close()

    return asyncio.run(read())


@pytest.mark.long
def test_the_text_comes_from_the_stored_page(
    web: Web, tmp_path: Path, scripted_llm_thread: ScriptedLLM
) -> None:
    scripted_llm_thread.script = [dumps(ANSWER)]
    scrapy = crawled(
        tmp_path,
        web,
        SELECTOR_GENERATION="rules_then_llm",
        LLM_BASE_URL=scripted_llm_thread.base_url,
        LLM_MODEL="m",
    )
    done = scrapy.run("crawl", "news", timeout=100)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stat("page/reason/NOT_ARTICLE(no content)") == 1, done.stats
    assert (done.stat("llm/extraction/grounded"), done.stat("llm/calls")) == (1, 1), done.stderr[
        -3000:
    ]
    (article,) = stored(scrapy)
    assert article.content == "\n\n".join(LINES) and article.origins["content"] == "llm"
    assert web.hits[PATH] == 1, "the site was not asked a second time"


def test_without_a_model_nothing_waits_for_one(web: Web, tmp_path: Path) -> None:
    scrapy = crawled(tmp_path, web, SELECTOR_GENERATION="rules_then_llm")
    done = scrapy.run("crawl", "news", timeout=100)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stat("page/reason/NOT_ARTICLE(no content)") == 1
    assert stored(scrapy) == [] and not [name for name in done.stats if name.startswith("llm/")]
