"""Pages that scripts fill, in a real Chromium, with servers that note who was asked for what."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import threading
import time
from collections.abc import Awaitable, Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from newscrawler.fetch.address_guard import parse_networks
from newscrawler.fetch.browser import Browser, BrowserUnavailable, find_browser
from newscrawler.fetch.client import Answer, FetchRules, HttpClient, TooLarge
from newscrawler.fetch.render import Manners, Rendered, Renderer, RenderFailed, RenderRules
from tests.patience import Deadline

#: 127.0.0.1 may be fetched, this may not: as a private address is for a crawl of the open web.
PRIVATE = "127.9.9.9"
SCRIPTS = {
    "/app.js": b"fetch('/api').then(r => r.json()).then(d => {"
    b"document.getElementById('root').innerHTML = '<h1>' + d.title + '</h1><a href=/next>n</a>'})",
    "/api": b'{"title": "Tin \xc4\x91\xe1\xba\xa7u ng\xc3\xa0y"}',
}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        server: Any = self.server
        server.hits.append((time.monotonic(), self.path))
        status, body, headers = 200, SCRIPTS.get(self.path, b"secret"), {}
        if self.path == "/to-private":
            status, body = 302, b""
            headers = {"Location": f"http://{PRIVATE}:{server.private_port}/redirected"}
        elif self.path == "/busy":
            status = 429
        elif self.path.startswith("/large"):
            body = b"x" * 400_000
        kind = "text/javascript" if self.path.endswith(".js") else "application/json"
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Type", kind)
        self.send_header("Access-Control-Allow-Origin", "*")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_POST = do_GET

    def log_message(self, *_: object) -> None:
        pass


@contextlib.contextmanager
def serving(address: str) -> Iterator[Any]:
    server: Any = ThreadingHTTPServer((address, 0), Handler)
    server.hits, server.private_port = [], 0
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


class Place:
    """A browser, a site that may be fetched, and a private server beside it."""

    def __init__(self, executable: str, site: Any, private: Any) -> None:
        self.loop = asyncio.new_event_loop()
        self.site, self.private = site, private
        site.private_port = private.server_port
        self.base = f"http://127.0.0.1:{site.server_port}"
        self.inside = f"http://{PRIVATE}:{private.server_port}"
        self.browser = Browser(executable, 1 << 30, sandbox=os.geteuid() != 0)
        self.client = self.do(self._client())
        self.turns: list[str] = []
        self.forbidden = "/forbidden"

    async def _client(self) -> HttpClient:
        return HttpClient(FetchRules(allowed=parse_networks("127.0.0.1/32")))

    def do(self, work: Awaitable[Any]) -> Any:
        return self.loop.run_until_complete(work)

    def renderer(self, **rules: Any) -> Renderer:
        # a loaded machine is slow, and no test waits for the end of it but those that set it
        return Renderer(self.client, self.browser, replace(RenderRules(timeout_s=120), **rules))

    async def page(self, html: str, path: str = "/page", **rules: Any) -> Rendered:
        async def may_fetch(url: str) -> bool:
            return self.forbidden not in url

        async def turn(url: str) -> None:
            self.turns.append(url)

        async def told(url: str) -> None:
            pass

        kind = [(b"Content-Type", b"text/html; charset=utf-8"), (b"Set-Cookie", b"a=1")]
        answer = Answer(self.base + path, 200, kind, html.encode(), 0.0)
        manners = Manners(may_fetch, turn, told, [("User-Agent", "newscrawler/test")])
        return await self.renderer(**rules).render(answer, manners)

    def read(self, html: str, **rules: Any) -> Rendered:
        self.site.hits.clear()
        self.private.hits.clear()
        return self.do(self.page(html, **rules))

    def asked(self) -> list[str]:
        return [path for _, path in self.site.hits]


async def _cancelled() -> None:
    """What Playwright leaves of a driver that was killed."""
    left = asyncio.all_tasks() - {asyncio.current_task()}
    for task in left:
        task.cancel()
    await asyncio.gather(*left, return_exceptions=True)


@pytest.fixture(scope="module")
def place() -> Iterator[Place]:
    executable = find_browser()
    if executable is None:
        if os.environ.get("CI"):
            pytest.fail("no Chromium: make browser-deps")
        pytest.skip("no Chromium: make browser-deps")
    with serving("127.0.0.1") as site, serving(PRIVATE) as private:
        found = Place(executable, site, private)
        yield found
        found.do(found.browser.close())
        found.do(found.client.close())
        assert found.browser.pids == []
        found.do(_cancelled())
        found.loop.close()


SHELL = "<!doctype html><title>x</title><div id=root></div><script src=/app.js></script>"


def test_a_script_fills_the_page_and_is_fetched_once_for_all_pages(place: Place):
    async def two() -> list[Rendered]:
        return [await place.page(SHELL, path) for path in ("/a", "/b")]

    place.site.hits.clear()
    first, second = place.do(two())
    for found in (first, second):
        html = found.html.decode()
        assert "<h1>Tin đầu ngày</h1>" in html and 'href="/next"' in html
        assert html.startswith("<!DOCTYPE html>")
        assert found.is_whole and found.cpu_s > 0
    assert place.asked().count("/api") == 2
    assert first.requests + first.cached == 2


def test_nothing_that_a_page_tries_reaches_a_private_address(place: Place):
    inside = place.inside
    found = place.read(
        f"""<p id=out>x</p><iframe src="{inside}/frame"></iframe><img src="{inside}/image">
        <link rel=preload as=fetch href="{inside}/preload"><link rel=prefetch href="{inside}/pre">
        <link rel=stylesheet href="{inside}/style"><link rel=preconnect href="{inside}">
        <form id=form action="{inside}/form"></form><object data="{inside}/object"></object>
        <video src="{inside}/video"></video><script src="{inside}/script.js"></script>
        <script>
        const say = word => document.getElementById('out').textContent += ' ' + word;
        fetch('{inside}/fetch').then(r => r.text()).then(say, () => say('no-fetch'));
        fetch('/to-private').then(r => r.text()).then(say, () => say('no-redirect'));
        fetch('http://2130706433:{place.private.server_port}/number').then(say, () => say('no-number'));
        fetch('file:///etc/passwd').then(say, () => say('no-file'));
        for (const u of ['ws://{PRIVATE}:{place.private.server_port}/ws', 'ws://' + location.host + '/ws'])
          try {{ new WebSocket(u).onopen = () => say('socket') }} catch (e) {{}}
        try {{ new EventSource('{inside}/events') }} catch (e) {{}}
        navigator.sendBeacon('{inside}/beacon', 'x');
        const source = `fetch('{inside}/worker-fetch'); importScripts('{inside}/worker-import')`;
        new Worker(URL.createObjectURL(new Blob([source])));
        if (navigator.serviceWorker) navigator.serviceWorker.register('/service.js');
        if (window.RTCPeerConnection) say('rtc');
        window.open('{inside}/open'); document.getElementById('form').submit();
        location.href = '{inside}/navigation';
        </script>"""
    )
    html = found.html.decode()
    for word in ("no-fetch", "no-redirect", "no-number", "no-file"):
        assert word in html
    for word in ("secret", "socket", "rtc"):
        assert f" {word}" not in html.partition("</p>")[0]
    assert found.refused["ssrf"] >= 3
    assert place.private.hits == []
    assert set(place.asked()) == {"/to-private"}


def test_what_brings_no_text_is_not_fetched(place: Place):
    place.read(
        """<img src=/i.png><link rel=stylesheet href=/s.css><video src=/v.mp4></video>
        <script src="https://www.googletagmanager.com/gtag.js"></script>
        <script>fetch('/api', {method: 'POST', body: 'x'}); fetch('/forbidden');
        new FontFace('f', 'url(/f.woff2)').load().catch(() => 0)</script>"""
    )
    assert place.asked() == []


def test_no_cookie_comes_in_and_none_goes_out(place: Place):
    found = place.read("<p id=c></p><script>c.textContent = 'c=' + document.cookie</script>")
    assert ">c=</p>" in found.html.decode()


@pytest.mark.long
def test_dialogs_and_beforeunload_stop_nothing(place: Place):
    found = place.read(
        "<p id=a></p><script>window.onbeforeunload = () => 'stay'; alert(1); confirm(2); prompt(3);"
        "a.textContent = 'after them'</script>"
    )
    assert "after them" in found.html.decode()


@pytest.mark.long
def test_a_page_that_never_rests_is_read_when_its_time_is_over(place: Place):
    found = place.read(
        "<p id=a>x</p><script>setInterval(() => { fetch('/api?' + Math.random());"
        "document.body.append(document.createElement('b')) }, 20)</script>",
        timeout_s=6.0,
        requests=5,
    )
    assert not found.is_whole
    assert found.requests == 5 and found.refused["number"] > 0
    assert len(place.asked()) <= 5


@pytest.mark.long
def test_one_address_is_asked_for_three_times_at_most(place: Place):
    found = place.read("<p>x<script>setInterval(() => fetch('/api'), 20)</script>")
    assert found.is_whole
    assert place.asked() == ["/api"] * 3


@pytest.mark.long
def test_bytes_of_a_page_are_counted(place: Place):
    found = place.read(
        "<p>x<script>for (let i = 0; i < 9; i++) fetch('/large' + i)</script>", max_bytes=1_000_000
    )
    assert found.refused["bytes"] == 7
    with pytest.raises(TooLarge):
        place.read(
            "<p id=a></p><script>a.textContent = 'x'.repeat(2e6)</script>", max_bytes=1_000_000
        )


@pytest.mark.long
def test_a_host_that_says_429_is_left_alone(place: Place):
    found = place.read("<p>x<script>fetch('/busy').then(() => fetch('/api'))</script>")
    assert found.refused["busy"] == 1
    assert place.asked() == ["/busy"]


@pytest.mark.long
@pytest.mark.parametrize("script", ["while (true) {}", "setTimeout(() => { while (true) {} }, 50)"])
def test_a_script_without_an_end_costs_its_page_only(place: Place, script: str):
    async def both() -> list[Any]:
        bad = place.page(f"<p>x<script>{script}</script>", "/endless", script_s=4.0)
        return await asyncio.gather(bad, place.page(SHELL), return_exceptions=True)

    bad, good = place.do(both())
    assert isinstance(bad, RenderFailed) and bad.reason == "render"
    assert isinstance(good, Rendered)
    assert "Tin đầu ngày" in place.read(SHELL).html.decode()


@pytest.mark.long
def test_a_page_that_fills_the_memory_kills_the_browser_and_the_next_one_has_another(place: Place):
    place.browser._memory_bytes = place.browser.use().memory_bytes + 300_000_000
    try:
        with pytest.raises(RenderFailed, match="MB of memory"):
            place.read(
                "<p>x<script>const a = []; setInterval(() =>"
                " a.push(new Uint8Array(3e7).fill(1)), 5)</script>"
            )
    finally:
        place.browser._memory_bytes = 1 << 30
    assert "Tin đầu ngày" in place.read(SHELL).html.decode()


@pytest.mark.long
@pytest.mark.parametrize("whom", ["browser", "driver"])
def test_a_killed_browser_is_started_again(place: Place, whom: str):
    place.read(SHELL)
    before, starts = place.browser.pids, place.browser.starts

    async def killed() -> None:
        slow = asyncio.ensure_future(
            place.page("<p>x<script>setInterval(() => document.body.append('y'), 20);"
                       "setInterval(() => document.body.append(document.createElement('b')), 20)"
                       "</script>", timeout_s=60)
        )  # fmt: skip
        await asyncio.sleep(1)
        for pid in before[:1] if whom == "driver" else before[1:]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        await slow

    with pytest.raises(RenderFailed):
        place.do(killed())
    assert "Tin đầu ngày" in place.read(SHELL).html.decode()
    assert place.browser.starts == starts + 1
    deadline = Deadline(30)
    while [pid for pid in before if Path(f"/proc/{pid}").exists()]:
        assert not deadline.is_over(), "processes of the killed browser are left"
        time.sleep(0.1)


@pytest.mark.long
def test_a_killed_browser_is_noticed_before_its_driver_tells(place: Place):
    place.read(SHELL)
    starts, main = place.browser.starts, place.browser._main_pid
    os.kill(main, signal.SIGKILL)
    deadline = Deadline(30)
    while Path(f"/proc/{main}/cmdline").read_bytes():  # the event loop does not run meanwhile
        assert not deadline.is_over()
        time.sleep(0.01)
    assert "Tin đầu ngày" in place.read(SHELL).html.decode()
    assert place.browser.starts == starts + 1


@pytest.mark.long
def test_pages_at_once_are_read_two_at_a_time(place: Place):
    renderer = place.renderer(pages=2)
    most = 0

    async def may_fetch(url: str) -> bool:
        return True

    async def turn(url: str) -> None:
        nonlocal most
        most = max(most, place.browser._at_work)

    async def told(url: str) -> None:
        pass

    manners = Manners(may_fetch, turn, told, [])

    async def all_of_them() -> list[Rendered]:
        answers = [
            Answer(f"{place.base}/{n}", 200, [(b"Content-Type", b"text/html")], SHELL.encode(), 0)
            for n in range(5)
        ]
        return await asyncio.gather(*(renderer.render(answer, manners) for answer in answers))

    found = place.do(all_of_them())
    assert all("Tin đầu ngày" in one.html.decode() for one in found)
    assert most == 2


def test_a_program_that_is_no_browser_is_said_in_one_line():
    async def started() -> None:
        browser = Browser("/bin/false", 1 << 30, sandbox=False)
        async with browser.lent():
            pass

    with pytest.raises(BrowserUnavailable, match=r"^/bin/false does not start: [^\n]+$"):
        asyncio.run(started())
