"""A site that says "too much" with something in its answer that cannot be read has
said "too much"."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from newscrawler.fetch import address_guard
from newscrawler.fetch.client import Answer, FetchError, FetchRules, HttpClient
from tests.crawl.fault_server import CLOSING, PAGE, FaultServer, head, whole
from tests.crawl.harness import Scrapy
from tests.crawl.small import QUICK, Queue

BUSY = "429 Too Many Requests"
#: What makes the answer odd -> all of it.
ODD: dict[str, bytes] = {
    "superscript": whole(PAGE, "Retry-After: ²", status=BUSY),
    "endless": whole(PAGE, "Retry-After: " + "9" * 400, status=BUSY),
    "no date": whole(PAGE, "Retry-After: Thu, 99 Foo 2026 99:99:99 GMT", status=BUSY),
    "negative": whole(PAGE, "Retry-After: -1", status=BUSY),
    "lying gzip": whole(PAGE, "Content-Encoding: gzip", status=BUSY),
    "odd coding": whole(PAGE, "Content-Encoding: compress", status=BUSY),
    "too large": head(BUSY, "Retry-After: 600", length=50_000_000) + PAGE,
    "plain": whole(PAGE, status=BUSY),
}


@pytest.fixture
def server() -> Iterator[FaultServer]:
    made = FaultServer()
    made.start({str(n): (f"127.0.10.{n + 1}", None) for n in range(len(ODD))})
    yield made
    made.stop()


@pytest.mark.slow
def test_after_a_429_nothing_is_asked_whatever_else_it_says(
    tmp_path: Path, server: FaultServer, queue: Queue
) -> None:
    hosts, asked = [], [f"/tin-so-{k}-48{{}}000{k}.html" for k in range(5)]
    for n, answer in enumerate(ODD.values()):
        paths = [path.format(n) for path in asked]
        links = "".join(f'<p><a href="{path}">Bài viết số {path}</a></p>' for path in paths)
        server._answers[f"/bao-{n}"] = whole(f"<html><body>{links}</body></html>".encode())
        server._answers |= dict.fromkeys(paths, answer)
        hosts.append(f"127.0.10.{n + 1}:{server.ports[str(n)]}")
    sites = [{"id": f"bao-{n}", "home": f"http://{host}/bao-{n}"} for n, host in enumerate(hosts)]
    (tmp_path / "sites.json").write_text(json.dumps({"sites": sites}), "utf-8")
    conf = {**QUICK, "BACKOFF_START_S": 300, "CRAWL_LONGEST_WAIT_S": 3, "REDIS_URL": queue.url}
    done = Scrapy(tmp_path, {**conf, "SITES_FILE": tmp_path / "sites.json"}).run("crawl", "news")
    assert done.returncode == 0, done.stderr[-3000:]

    async def state(frontier: Any, client: Any) -> list[Any]:
        return [await frontier.operator.state(host) for host in hosts]

    for n, (name, found) in enumerate(zip(ODD, queue._ask(state), strict=True)):
        pages = [path for path, _, _ in server.hits if f"-48{n}000" in path]
        assert len(pages) == 1, f"{name}: asked {len(pages)} times"
        # Four articles and the one that was refused, the next look at the home page, and the two
        # addresses at which a sitemap is looked for where robots.txt names none, unless one was
        # asked before the refusal.
        assert 5 + 1 <= found.queued + found.due <= 5 + 1 + 2, f"{name}: what was not fetched stays"
        least_s = 600 if name == "too large" else 86_400 if name == "endless" else 300
        assert found.backoff_until - found.last_fetch >= least_s * 1000 - 1, name


async def _fetch(server: FaultServer, path: str) -> Answer:
    rules = FetchRules(
        max_bytes=100_000, timeout_s=1.0, allowed=address_guard.parse_networks("127.0.0.0/8")
    )
    client = HttpClient(rules)
    try:
        return await client.fetch(f"http://127.0.10.1:{server.ports['0']}{path}", [])
    finally:
        await client.close()


@pytest.mark.parametrize(
    "status", [BUSY, "503 Service Unavailable", "404 Not Found", "301 Moved Permanently"]
)
@pytest.mark.parametrize(
    "body", ["lying gzip", "odd coding", "too large", "breaks off", "stands still"]
)
async def test_the_head_of_an_answer_outlives_its_body(
    server: FaultServer, monkeypatch: pytest.MonkeyPatch, status: str, body: str
) -> None:
    lines = ("Retry-After: 600", "Location: /there")

    async def breaks_off() -> Any:
        yield head(status, *lines, length=len(PAGE) + 500) + PAGE

    async def stands_still() -> Any:
        yield head(status, *lines, length=len(PAGE) + 500) + PAGE
        await asyncio.sleep(60)

    monkeypatch.setitem(CLOSING, "/breaks-off", breaks_off)
    monkeypatch.setitem(CLOSING, "/stands-still", stands_still)
    server._answers["/lying-gzip"] = whole(PAGE, "Content-Encoding: gzip", *lines, status=status)
    server._answers["/odd-coding"] = whole(PAGE, "Content-Encoding: lz", *lines, status=status)
    server._answers["/too-large"] = head(status, *lines, length=50_000_000) + PAGE
    answer = await _fetch(server, "/" + body.replace(" ", "-"))
    assert (answer.status, answer.body) == (int(status[:3]), b"")
    assert {(b"Retry-After", b"600"), (b"Location", b"/there")} <= set(answer.headers)


async def test_of_a_good_status_the_body_must_be_whole(server: FaultServer) -> None:
    for path, reason in (("/lying-gzip", "bad_encoding"), ("/cut-length", "truncated")):
        with pytest.raises(FetchError) as caught:
            await _fetch(server, path)
        assert caught.value.reason == reason
