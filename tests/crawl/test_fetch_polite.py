"""A page that a command asks for: same robots.txt, same gate, same guard as the crawl, on a
real Redis and server."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import AsyncIterator, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from scrapy.settings import Settings

from newscrawler.crawl import opening
from newscrawler.crawl.polite_fetch import fetch_polite
from newscrawler.fetch.client import FetchError, FetchFailed, FetchRefused
from newscrawler.frontier import connect
from newscrawler.frontier.queue import DomainPolicy, Frontier, FrontierRefused
from newscrawler.items import Kind
from tests.crawl.fault_server import PAGE, FaultServer, whole

DELAY_S = 0.4


@pytest.fixture
def server() -> Iterator[FaultServer]:
    timed = FaultServer()
    timed.start({"one": ("127.0.2.1", None), "two": ("127.0.2.2", None)})
    timed._answers["/robots.txt"] = whole(b"User-agent: *\nDisallow: /secret\n", kind="text/plain")
    timed._answers["/secret"] = whole(PAGE)
    timed._answers["/hop"] = whole(
        b"", f"Location: http://127.0.2.2:{timed.ports['two']}/ok", status="302 Found"
    )
    timed._answers["/loop"] = whole(b"", "Location: /loop", status="302 Found")
    yield timed
    timed.stop()


@pytest_asyncio.fixture
async def settings(r: Any, redis_server: str, tmp_path: Path) -> AsyncIterator[Settings]:
    """``r``: the server, emptied."""
    (tmp_path / "sites.json").write_text('{"sites": []}')
    made = Settings()
    made.setmodule("newscrawler.settings", priority="project")
    made.update(
        {
            "REDIS_URL": redis_server,
            "DATA_DIR": str(tmp_path / "data"),
            "SITES_FILE": str(tmp_path / "sites.json"),
            "ALLOWED_PRIVATE_NETWORKS": "127.0.0.0/8",
            "DOWNLOAD_DELAY": DELAY_S,
            "AUTOTHROTTLE_ENABLED": False,
            "DOWNLOAD_TIMEOUT": 5,
            "DOWNLOAD_MAXSIZE": 1_000_000,
        },
        priority="cmdline",
    )
    yield made


def url(server: FaultServer, path: str, name: str = "one") -> str:
    return f"http://127.0.2.{1 if name == 'one' else 2}:{server.ports[name]}{path}"


async def test_robots_first_then_the_page_a_delay_later(
    server: FaultServer, settings: Settings
) -> None:
    page = await fetch_polite(url(server, "/ok"), settings)
    assert (page.status, page.body, page.url) == (200, PAGE, url(server, "/ok"))
    assert page.header("Content-Type") == "text/html"
    assert [path for path, _ in server.times] == ["/robots.txt", "/ok"]
    assert server.times[1][1] - server.times[0][1] >= DELAY_S
    assert server.hits[1][2]["user-agent"].startswith("newscrawler/")


async def test_callers_beside_each_other_share_one_gate(
    server: FaultServer, settings: Settings
) -> None:
    pages = [url(server, f"/page/{n}") for n in (1, 2, 3)]
    results = await asyncio.gather(*(fetch_polite(page, settings) for page in pages))
    assert [r.body for r in results] == [PAGE] * 3
    assert sorted(path for path, _ in server.times) == [
        "/page/1",
        "/page/2",
        "/page/3",
        "/robots.txt",
    ]
    gaps = [b - a for (_, a), (_, b) in zip(server.times, server.times[1:], strict=False)]
    assert min(gaps) >= DELAY_S, gaps


async def test_what_robots_forbids_is_refused_and_never_asked_for(
    server: FaultServer, settings: Settings
) -> None:
    with pytest.raises(FetchRefused) as caught:
        await fetch_polite(url(server, "/secret"), settings)
    assert caught.value.reason == "robots"
    assert [path for path, _ in server.times] == ["/robots.txt"]
    await fetch_polite(
        url(server, "/ok"), settings
    )  # the turn was given back, nobody waits for a lost lease
    assert [path for path, _ in server.times] == ["/robots.txt", "/ok"]


async def test_a_robots_that_fails_means_no_fetch(server: FaultServer, settings: Settings) -> None:
    server._answers["/robots.txt"] = whole(b"", status="503 Service Unavailable")
    with pytest.raises(FetchFailed) as caught:
        await fetch_polite(url(server, "/ok"), settings, patience_s=2)
    assert caught.value.reason == "gate"
    assert [path for path, _ in server.times] == ["/robots.txt"]


async def test_a_site_that_is_away_is_said_at_once_with_its_cause(settings: Settings) -> None:
    """Once: 165 seconds of silence, and then when the next turn would be."""
    waits: list[str] = []
    with pytest.raises(FetchFailed) as caught:
        await fetch_polite("http://127.0.2.9:9/x", settings, say=waits.append)
    assert caught.value.reason == "connect"
    said = str(caught.value)
    assert "robots.txt of 127.0.2.9:9 could not be fetched (connection failed: " in said, said
    assert said.endswith("url=http://127.0.2.9:9/x") and not waits


async def test_a_wait_that_a_person_would_notice_is_told(
    server: FaultServer, settings: Settings
) -> None:
    settings.set("DOWNLOAD_DELAY", 3.2, priority="cmdline")
    waits: list[str] = []
    page = await fetch_polite(url(server, "/ok"), settings, say=waits.append)
    assert page.status == 200, "robots.txt, a delay, the page"
    [line] = waits
    assert line.startswith(f"waiting 3 s for the next turn of 127.0.2.1:{server.ports['one']}:")


async def test_redirects_of_robots_keep_the_delay_and_lead_to_the_rules(
    server: FaultServer, settings: Settings
) -> None:
    rules = server._answers["/robots.txt"]
    for n in range(3):
        here = "/robots.txt" if n == 0 else f"/r{n}"
        server._answers[here] = whole(b"", f"Location: /r{n + 1}", status="301 Moved Permanently")
    server._answers["/r3"] = rules
    with pytest.raises(FetchRefused):
        await fetch_polite(url(server, "/secret"), settings)
    await fetch_polite(url(server, "/ok"), settings)
    asked = [path for path, _ in server.times]
    assert asked == ["/robots.txt", "/r1", "/r2", "/r3", "/ok"]
    gaps = [b - a for (_, a), (_, b) in pairwise(server.times)]
    assert min(gaps) >= DELAY_S, gaps


async def test_redirects_go_through_the_gate_of_their_own_host(
    server: FaultServer, settings: Settings
) -> None:
    page = await fetch_polite(url(server, "/hop"), settings)
    assert (page.status, page.url) == (200, url(server, "/ok", "two"))
    assert [path for path, _ in server.times] == ["/robots.txt", "/hop", "/robots.txt", "/ok"]


async def test_a_redirect_loop_ends(server: FaultServer, settings: Settings) -> None:
    settings.set("DOWNLOAD_DELAY", 0.05, priority="cmdline")
    with pytest.raises(FetchFailed) as caught:
        await fetch_polite(url(server, "/loop"), settings)
    assert caught.value.reason == "redirects"
    assert [path for path, _ in server.times].count(
        "/loop"
    ) == 1  # asked again it would answer the same


async def test_a_redirect_to_a_private_address_is_refused(
    server: FaultServer, settings: Settings
) -> None:
    server._answers["/in"] = whole(b"", "Location: http://10.0.0.1/", status="302 Found")
    with pytest.raises(FetchError) as caught:
        await fetch_polite(url(server, "/in"), settings, patience_s=2)
    assert caught.value.reason in (
        "ssrf",
        "gate",
    )  # its robots.txt is refused first: nothing is known, nothing is fetched


@pytest.mark.parametrize(
    ("path", "reason"), [("/bomb", "size"), ("/drop", "connect"), ("/cut-gzip", "truncated")]
)
async def test_faults_have_their_words_here_too(
    server: FaultServer, settings: Settings, path: str, reason: str
) -> None:
    with pytest.raises(FetchError) as caught:
        await fetch_polite(url(server, path), settings)
    assert caught.value.reason == reason


@pytest.mark.parametrize("bad", ["ftp://127.0.0.1/x", "nonsense", "mailto:a@b.example", "https://"])
async def test_what_is_no_web_address_is_refused_at_once(settings: Settings, bad: str) -> None:
    with pytest.raises(ValueError, match="not an http"):
        await fetch_polite(bad, settings)


async def test_a_paused_host_is_not_fetched(server: FaultServer, settings: Settings) -> None:
    await fetch_polite(url(server, "/ok"), settings)
    frontier = await opened(settings)
    domain = f"127.0.2.1:{server.ports['one']}"
    await frontier.operator.pause(domain)
    await frontier.close()
    with pytest.raises(FrontierRefused, match="paused"):
        await fetch_polite(url(server, "/page/1"), settings)


async def opened(settings: Settings, worker: str = "test") -> Frontier:
    config = opening.frontier_config(settings, loopback_only=True)
    frontier = Frontier(connect(settings["REDIS_URL"]), config, worker)
    await frontier.open()
    return frontier


async def test_a_turn_waits_for_the_crawls_own_fetch_and_frees_what_it_took(
    server: FaultServer, settings: Settings
) -> None:
    frontier = await opened(settings)
    await frontier.put_domains([DomainPolicy("a.example", "a.example", "low", 100, enabled=False)])
    with pytest.raises(FrontierRefused, match="not known"):
        await frontier.reserve("b.example", "http://b.example/")
    first = await frontier.reserve("a.example", "http://a.example/x")
    assert not isinstance(first, int)
    assert (first.kind, first.url) == (Kind.ROBOTS, "https://a.example/robots.txt")
    other = await opened(settings, "other")
    assert (
        await other.reserve("a.example", "http://a.example/x") == 100
    )  # one fetch of a domain at a time
    await frontier.close()  # gives back
    again = await other.reserve("a.example", "http://a.example/x")
    assert not isinstance(again, int)
    counts = await other.counts()
    assert (counts.queued, counts.leased) == (0, 1)
    await other.close()


# ---------------------------------------------------------------- what can never be fetched is said at once
@pytest.mark.parametrize(
    ("url", "reason", "said"),
    [
        ("https://no-such-name.invalid/", "dns", "name not found: no-such-name.invalid"),
        ("http://10.0.0.1/", "ssrf", "10.0.0.1 is not fetched: private address"),
        ("http://[::1]/", "ssrf", "::1 is not fetched: loopback address; ALLOWED_PRIVATE_NETWORKS"),
        ("http://inside.test/", "ssrf", "inside.test leads to 192.168.1.9 (private address)"),
    ],
)
async def test_a_host_without_an_address_for_us_is_named_at_once(
    settings: Settings, r: Any, monkeypatch: pytest.MonkeyPatch, url: str, reason: str, said: str
) -> None:
    async def look_up(self: Any, host: str, *args: Any, **kwargs: Any) -> Any:
        if host == "inside.test":
            return [(2, 1, 6, "", ("192.168.1.9", 80))]
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr("asyncio.BaseEventLoop.getaddrinfo", look_up)
    began = time.monotonic()
    with pytest.raises(FetchError) as found:
        await fetch_polite(url, settings)
    assert found.value.reason == reason and said in str(found.value)
    assert time.monotonic() - began < 10, "no turn, no back-off was waited for"
    assert not [k for k in await r.keys() if b":dom" in k], "nothing of it is kept"
