"""A real small proxy on loopback: what it is asked for, what it is not, and who
sees its password."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from newscrawler.fetch import address_guard
from newscrawler.fetch.client import AddressRefused, FetchFailed, FetchRules, HttpClient
from newscrawler.fetch.proxies import Proxies, from_environment, parse_proxy
from tests.crawl.harness import ROOT, Scrapy
from tests.crawl.small import QUICK
from tests.newsweb.tls import Authority

PASSWORD = "mat-khau-cua-proxy"
OPEN = address_guard.parse_networks("127.0.0.0/8")
PAGE = (ROOT / "tests" / "crawl" / "library_page.html").read_bytes()


class ProxyServer:
    """Speaks HTTP/1.1 as a proxy does: absolute URLs, and CONNECT. Every name leads to its own two
    pages, plain and by TLS. ``asked``: the request lines; ``users``: what stood in
    Proxy-Authorization; ``inside``: headers that sites saw."""

    def __init__(self, folder: Path, *, password: str = "") -> None:
        self.asked: list[str] = []
        self.users: list[str] = []
        self.inside: list[str] = []
        self._password = password
        authority = Authority.make()
        self.ca_file = folder / "proxy-ca.pem"
        self.ca_file.write_bytes(authority.pem())
        self._tls: ssl.SSLContext = authority.context(folder, ["tin.example.com"])
        self._ready, self.port = threading.Event(), 0
        self._thread = threading.Thread(target=lambda: asyncio.run(self._main()), daemon=True)
        self._thread.start()
        assert self._ready.wait(20), "the proxy did not start"

    async def _main(self) -> None:
        self._loop, self._end = asyncio.get_running_loop(), asyncio.Event()
        site = await asyncio.start_server(self._answer_tls, "127.0.2.8", 0, ssl=self._tls)
        self._site_port = site.sockets[0].getsockname()[1]
        server = await asyncio.start_server(self._serve, "127.0.2.9", 0)
        self.port = int(server.sockets[0].getsockname()[1])
        async with site, server:
            self._ready.set()
            await self._end.wait()

    @property
    def url(self) -> str:
        user = f"ai:{self._password}@" if self._password else ""
        return f"http://{user}127.0.2.9:{self.port}"

    async def _head(self, reader: asyncio.StreamReader) -> list[str]:
        data = await reader.readuntil(b"\r\n\r\n")
        return data.decode("latin-1").split("\r\n")

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            lines = await self._head(reader)
            self.asked.append(lines[0].rpartition(" ")[0])
            given = [
                v
                for k, _, v in (x.partition(": ") for x in lines)
                if k.lower() == "proxy-authorization"
            ]
            self.users += given
            wanted = "Basic " + base64.b64encode(f"ai:{self._password}".encode()).decode()
            if self._password and given != [wanted]:
                writer.write(
                    b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n"
                )
            elif lines[0].startswith("CONNECT "):
                await self._tunnel(reader, writer)
            else:
                self._page(lines, writer)
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def _tunnel(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection("127.0.2.8", self._site_port)
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")

        async def pipe(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
            with contextlib.suppress(ConnectionError):
                while data := await source.read(65536):
                    target.write(data)
                    await target.drain()
            target.close()

        await asyncio.gather(pipe(reader, back), pipe(there, writer))

    async def _answer_tls(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            self._page(await self._head(reader), writer)
            await writer.drain()
        writer.close()

    def _page(self, lines: list[str], writer: asyncio.StreamWriter) -> None:
        self.inside += [line.lower() for line in lines[1:] if " http://" not in lines[0]]
        body, kind = PAGE, "text/html; charset=utf-8"
        if "/robots.txt" in lines[0]:
            body, kind = b"User-agent: *\nDisallow: /cam/\n", "text/plain"
        status, more = "200 OK", ""
        if "/chuyen " in lines[0]:
            status, more = "302 Found", "Location: http://10.0.0.1/noi-bo.html\r\n"
        head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\n{more}Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        writer.write(head.encode() + body)

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._end.set)
        self._thread.join(10)


@pytest.fixture
def proxy(tmp_path: Path) -> Iterator[ProxyServer]:
    server = ProxyServer(tmp_path, password=PASSWORD)
    yield server
    server.stop()


def rules(
    server: ProxyServer, allowed: tuple[address_guard.Network, ...] = OPEN, **more: Any
) -> FetchRules:
    found = from_environment({"HTTP_PROXY": server.url, "HTTPS_PROXY": server.url, **more})
    return FetchRules(allowed=allowed, proxies=found, ca_file=str(server.ca_file), timeout_s=10)


async def fetched(own: FetchRules, url: str, **more: Any) -> int:
    client = HttpClient(own)
    try:
        answer = await client.fetch(url, [("User-Agent", "newscrawler-test")], **more)
        assert answer.body == PAGE
        return answer.status
    finally:
        await client.close()


@pytest.mark.parametrize(
    ("url", "asked"),
    [
        ("http://tin.example.com/a.html", "GET http://tin.example.com/a.html"),
        ("https://tin.example.com/a.html", "CONNECT tin.example.com:443"),
    ],
)
async def test_a_page_comes_through_the_proxy(proxy: ProxyServer, url: str, asked: str) -> None:
    assert await fetched(rules(proxy), url) == 200
    assert proxy.asked == [asked] and len(proxy.users) == 1
    if url.startswith("https"):  # what stood inside the tunnel
        assert "user-agent: newscrawler-test" in proxy.inside
        assert not [line for line in proxy.inside if line.startswith("proxy-auth")]


async def test_the_certificate_is_the_sites(proxy: ProxyServer) -> None:
    with pytest.raises(FetchFailed) as caught:
        await fetched(rules(proxy), "https://other.example.com/a.html")
    assert caught.value.reason == "tls" and proxy.asked == ["CONNECT other.example.com:443"]


@pytest.mark.parametrize(
    "url",
    [
        "http://10.0.0.1/a.html",
        "https://169.254.169.254/latest/meta-data/",
        "http://intranet/a.html",
        "http://db.internal/a.html",
        "http://127.1/a.html",
        "http://0x7f000001/a.html",
        "http://10.0.0.1.nip.io/a.html",
    ],
)
async def test_nothing_private_is_asked_of_the_proxy(proxy: ProxyServer, url: str) -> None:
    with pytest.raises(AddressRefused) as caught:
        await fetched(rules(proxy), url)
    assert caught.value.reason == "ssrf" and proxy.asked == []


async def test_the_proxys_own_address_passes_the_guard(proxy: ProxyServer) -> None:
    with pytest.raises(ValueError, match="ALLOWED_PRIVATE_NETWORKS") as caught:
        rules(proxy, ()).check_proxy(parse_proxy(proxy.url))
    assert PASSWORD not in str(caught.value)
    own = FetchRules(proxies=Proxies({"http": parse_proxy(f"http://proxy.example.com:{proxy.port}")}),
                     overrides=address_guard.parse_overrides("proxy.example.com=127.0.2.9"))  # fmt: skip
    with pytest.raises(FetchFailed) as failed:  # its name leads where the guard does not let us
        await fetched(own, "http://tin.example.com/a.html")
    assert failed.value.reason == "connect" and "its address is refused" in str(failed.value)
    assert proxy.asked == []


async def test_no_proxy_and_what_is_looked_up_here_go_directly(proxy: ProxyServer) -> None:
    direct = rules(proxy, NO_PROXY="example.com")
    assert direct.proxy_for("http://tin.example.com/") is None
    here = FetchRules(
        proxies=direct.proxies,
        overrides=address_guard.parse_overrides("*=127.0.2.8:1"),
        allowed=OPEN,
    )
    assert here.proxy_for("http://anything.vn/") is None
    assert rules(proxy).proxy_for("http://anything.vn/") is not None
    assert (
        FetchRules(proxies=rules(proxy).proxies, loopback_only=True).proxy_for("http://a.vn/")
        is None
    )


async def test_a_proxy_that_refuses_or_is_away_is_no_answer_of_the_site(proxy: ProxyServer) -> None:
    for url in ("http://127.0.2.9:1", f"http://ai:falsch-{PASSWORD}@127.0.2.9:{proxy.port}"):
        own = FetchRules(proxies=from_environment({"HTTPS_PROXY": url}), allowed=OPEN, timeout_s=5)
        with pytest.raises(FetchFailed) as caught:
            await fetched(own, "https://tin.example.com/a.html")
        assert caught.value.reason == "connect" and "proxy http://127.0.2.9" in str(caught.value)
        assert PASSWORD not in str(caught.value)


def test_a_command_and_a_redirect_keep_to_it_and_tell_no_password(
    proxy: ProxyServer, tmp_path: Path
) -> None:
    env = {"HTTP_PROXY": proxy.url, "HTTPS_PROXY": proxy.url}
    settings = {**QUICK, "EXTRA_CA_FILE": proxy.ca_file, "LOG_LEVEL": "DEBUG"}
    scrapy = Scrapy(tmp_path, settings, env)
    done = scrapy.run("extract", "https://tin.example.com/gia-vang-giam-4954454.html", "--json")
    assert done.returncode == 0, done.stderr
    assert "Giá vàng hôm nay giảm mạnh" in done.stdout
    assert proxy.asked == ["CONNECT tin.example.com:443"] * 2  # robots.txt, the page
    moved = scrapy.run("extract", "http://tin.example.com/chuyen")
    assert moved.returncode == 1 and "10.0.0.1" in moved.stderr, moved.stderr
    assert not [line for line in proxy.asked if "10.0.0.1" in line]
    crawl = scrapy.run(
        "crawl", "news", "-a", "urls=http://tin.example.com/gia-vang-giam-4954454.html"
    )
    assert "GET http://tin.example.com/gia-vang-giam-4954454.html" in proxy.asked, crawl.stderr[
        -2000:
    ]
    for text in (done.stdout, done.stderr, moved.stderr, crawl.stdout, crawl.stderr):
        assert PASSWORD not in text


@pytest.mark.long
def test_a_proxy_that_must_not_be_asked_stops_the_start(tmp_path: Path) -> None:
    env = {"PATH": "/usr/bin:/bin", "HTTP_PROXY": f"http://ai:{PASSWORD}@10.9.8.7:3128"}
    done = subprocess.run(
        [sys.executable, "-m", "scrapy", "crawl", "news", "-s", f"DATA_DIR={tmp_path}"],
        cwd=ROOT, env=env, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.returncode == 2 and "10.9.8.7" in done.stderr and "Traceback" not in done.stderr
    assert PASSWORD not in done.stderr + done.stdout
