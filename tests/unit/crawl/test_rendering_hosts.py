"""What a rendered page asks of other hosts: their robots.txt, their delay, their silence."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import threading
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace
from typing import Any

import pytest
import pytest_asyncio
from scrapy.settings import Settings

from newscrawler import settings as project
from newscrawler.crawl import rendering
from newscrawler.crawl.first_contact import read_article
from newscrawler.crawl.rendering import Rendering, _Hosts
from newscrawler.discovery.contact import SiteAnswer
from newscrawler.discovery.sites import Sites
from newscrawler.fetch.address_guard import parse_networks
from newscrawler.fetch.browser import find_browser
from newscrawler.fetch.client import Answer, FetchRules, HttpClient
from newscrawler.frontier.operator import Operator
from newscrawler.frontier.types import Lease
from newscrawler.items import Kind
from newscrawler.web.robots import RobotsRules
from newscrawler.web.urls import url_id

DELAY_S = 0.3
ROBOTS = b"User-agent: *\nDisallow: /forbidden\n"
SCRIPT = b"document.getElementById('root').innerHTML += '<p>' + '%s' + '</p>'"


class Handler(BaseHTTPRequestHandler):
    """Another host, with a robots.txt; ``server.robots``: status, or None = it hangs."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        server: Any = self.server
        server.hits.append((time.monotonic(), self.path))
        status, body = 200, SCRIPT % self.path.encode()
        if self.path == "/robots.txt":
            if server.robots is None:
                server.free.wait(20)
                self.close_connection = True
                return
            status, body = server.robots, ROBOTS if server.robots == 200 else b""
        self.send_response(status)
        self.send_header("Content-Type", "text/javascript")
        self.send_header("Access-Control-Allow-Origin", "*")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def other() -> Iterator[Any]:
    server: Any = ThreadingHTTPServer(("127.0.0.2", 0), Handler)
    server.hits, server.robots, server.free = [], 200, threading.Event()
    server.base = f"http://127.0.0.2:{server.server_port}"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.free.set()
    server.shutdown()
    server.server_close()


@pytest_asyncio.fixture
async def services(r: Any) -> AsyncIterator[Any]:
    settings = Settings()
    settings.setmodule(project, priority="project")
    settings.update({"DOWNLOAD_DELAY": DELAY_S}, priority="cmdline")
    counts: dict[str, int] = {}
    yield SimpleNamespace(
        settings=settings,
        render_operator=Operator(r, 1),
        loopback_only=True,
        counts=counts,
        count=lambda name, number: counts.update({name: counts.get(name, 0) + number}),
        observe=lambda name, seconds: None,
    )


@pytest_asyncio.fixture
async def client() -> AsyncIterator[HttpClient]:
    made = HttpClient(FetchRules(allowed=parse_networks("127.0.0.0/8"), timeout_s=1.0))
    yield made
    await made.close()


def paths(server: Any) -> list[str]:
    return [path for _, path in server.hits]


async def test_robots_txt_of_a_host_is_asked_once_and_again_when_it_is_old(
    services: Any, client: HttpClient, other: Any
) -> None:
    hosts = _Hosts(services, client)
    for _ in range(3):
        rules = await hosts.robots(other.base + "/a.js", [])
        assert rules is not None and rules.allowed(other.base + "/a.js")
        assert not rules.allowed(other.base + "/forbidden.js")
    assert paths(other) == ["/robots.txt"]
    hosts._host(f"127.0.0.2:{other.server_port}").robots_until = time.monotonic() - 1
    await hosts.robots(other.base + "/a.js", [])
    assert paths(other) == ["/robots.txt"] * 2
    kept_s = hosts._host(f"127.0.0.2:{other.server_port}").robots_until - time.monotonic()
    assert 86_000 < kept_s <= 86_400


async def test_a_host_that_hangs_holds_up_one_page_and_not_each(
    services: Any, client: HttpClient, other: Any
) -> None:
    other.robots = None
    hosts = _Hosts(services, client)
    began = time.monotonic()
    assert await hosts.robots(other.base + "/a.js", []) is None
    assert time.monotonic() - began > 0.5, "it was waited for"
    began = time.monotonic()
    for _ in range(5):
        assert await hosts.robots(other.base + "/b.js", []) is None
    assert time.monotonic() - began < 0.5 and paths(other) == ["/robots.txt"]
    other.robots = 200
    hosts._host(f"127.0.0.2:{other.server_port}").robots_until = 0  # its rest is over
    assert await hosts.robots(other.base + "/a.js", []) is not None


async def test_a_robots_txt_with_a_fault_is_asked_again_soon(
    services: Any, client: HttpClient, other: Any
) -> None:
    other.robots = 503
    hosts = _Hosts(services, client)
    rules = await hosts.robots(other.base + "/a.js", [])
    assert rules is None or not rules.allowed(other.base + "/a.js")
    left_s = hosts._host(f"127.0.0.2:{other.server_port}").robots_until - time.monotonic()
    assert 0 < left_s <= rendering._REST_S


async def test_requests_of_a_host_keep_its_delay_and_wait_for_one_another(
    services: Any, client: HttpClient
) -> None:
    hosts = _Hosts(services, client)
    began: list[float] = []

    async def one(number: int) -> None:
        url = f"http://127.0.0.2:9/{number}"
        await hosts.turn(url, is_own=False)
        began.append(time.monotonic())
        await asyncio.sleep(0.05)
        await hosts.told(url)

    await asyncio.gather(*map(one, range(3)))
    gaps = [b - a for a, b in itertools.pairwise(began)]
    assert min(gaps) >= DELAY_S + 0.05 - 0.01, "from one answer to the next request"
    assert not any(host.users or host.lock.locked() for host in hosts._known.values())


async def test_hosts_are_bounded_and_none_that_is_asked_is_forgotten(
    services: Any, client: HttpClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rendering, "_HOSTS", 10)
    hosts = _Hosts(services, client)
    await hosts.turn("http://held.example/x", is_own=False)
    waiting = asyncio.ensure_future(hosts.turn("http://held.example/y", is_own=False))
    for number in range(100):
        url = f"http://h{number}.example/x"
        await hosts.turn(url, is_own=False)
        await hosts.told(url)
    assert "held.example" in hosts._known and len(hosts._known) <= 11
    await hosts.told("http://held.example/x")
    await asyncio.wait_for(waiting, 5)
    waiting = asyncio.ensure_future(hosts.turn("http://held.example/z", is_own=False))
    await asyncio.sleep(0)
    waiting.cancel()  # the page's time is over
    with contextlib.suppress(asyncio.CancelledError):
        await waiting
    await hosts.told("http://held.example/y")
    assert hosts._known["held.example"].users == 0


async def test_a_script_of_another_host_is_fetched_as_its_robots_txt_says(
    services: Any, client: HttpClient, other: Any
) -> None:
    """With a real Chromium: the one that is allowed runs, the forbidden one is never asked for."""
    if find_browser() is None:
        if os.environ.get("CI"):
            pytest.fail("no Chromium: make browser-deps")
        pytest.skip("no Chromium: make browser-deps")
    url = "http://127.0.0.1:9/page"
    html = (
        f"<div id=root></div><script src={other.base}/forbidden.js></script>"
        f"<script src={other.base}/free.js></script><script>fetch('{other.base}/data',"
        " {method: 'POST', body: 'x'}).catch(() => 0)</script>"
    )
    kind = [(b"Content-Type", b"text/html; charset=utf-8")]
    answer = Answer(url, 200, kind, html.encode(), 0.0)
    lease = Lease(url, url_id(url), "127.0.0.1:9", Kind.ARTICLE, 0, None, 0, 0, 0)
    reading = Rendering(services, client)
    try:
        assert reading._is_on("site")
        meta = {"robots": RobotsRules.parse(b"", "newscrawler")}
        found = await reading._rendered(lease, meta, answer)
        reading._count("site", found)
    finally:
        await reading.close()
    assert b"<p>/free.js</p>" in found.html and b"<p>/forbidden.js</p>" not in found.html
    assert paths(other) == ["/robots.txt", "/free.js"]
    (first, _), (second, _) = other.hits
    assert second - first >= DELAY_S - 0.02, "its delay is kept"
    assert services.counts["render/refused/robots"] == 1
    assert services.counts["render/refused/method"] == 1, "a POST is refused and counted"


SHELL = b"<html><head><title>x</title></head><body><div id=root></div><script src=/a.js></script></body>"
FULL = b"<html><body><article><h1>Tin</h1><p>" + b"mot cau dai. " * 80 + b"</p></article></body>"


@pytest.mark.parametrize(
    ("render", "body", "needs"),
    [
        (True, FULL, True),
        (None, SHELL, True),
        (None, FULL, False),
        (False, SHELL, False),
    ],
)
def test_a_command_says_what_a_crawl_reads_with_a_browser(
    render: bool | None, body: bytes, needs: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = replace(Sites.load("").get("vnexpress.net") or pytest.fail("no site"), render=render)
    url = f"https://{site.hosts[0]}/tin-1.htm"
    monkeypatch.setattr(rendering.site_choice, "all_sites", lambda settings: Sites([site]))
    line = rendering.unrendered(Settings(), url, body)
    assert ("without its scripts" in line) == needs
    assert rendering.unrendered(Settings(), "https://unknown.vn/x", FULL) == ""
    seen = read_article(SiteAnswer(url, url, 200, body, "text/html", []), site, None)
    if body == SHELL:
        assert seen.state == "not article" and ("without its scripts" in seen.detail) == needs
