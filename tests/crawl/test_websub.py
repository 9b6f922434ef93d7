"""A feed names a hub: what the hub sends is fetched at once, behind robots.txt and admission."""

from __future__ import annotations

import json
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from newscrawler.api.server import bind
from tests.crawl.fault_server import FaultServer, whole
from tests.crawl.harness import Running, Scrapy, until
from tests.crawl.small import QUICK, Queue
from tests.websub_hub import Hub

RSS = (
    '<?xml version="1.0"?><rss version="2.0" xmlns:atom="http://www.w3.org/2005/Atom"><channel>'
    '<title>t</title><atom:link rel="hub" href="{hub}"/>{items}</channel></rss>'
)


class Site(FaultServer):
    """A newspaper of one feed. ``hub``: its address, which the feed names."""

    def open(self, hub: str) -> None:
        self.start({"bao": ("127.0.9.62", None)})
        self.base = f"http://127.0.9.62:{self.ports['bao']}"
        self.hub = hub
        self._answers["/"] = whole(b"<html><body><p>Trang chu</p></body></html>")
        self._answers["/robots.txt"] = whole(b"User-agent: *\nDisallow: /cam/\n", kind="text/plain")
        self.show(["/tin-cu-so-mot-4800001.html"])

    def show(self, paths: list[str]) -> None:
        items = "".join(
            f"<item><link>{path if '://' in path else self.base + path}</link></item>"
            for path in paths
        )
        rss = RSS.format(hub=self.hub, items=items)
        self._answers["/rss"] = whole(rss.encode(), kind="application/rss+xml")

    def asked(self, path: str) -> int:
        return sum(hit[0] == path for hit in self.hits)


@pytest.fixture
def hub() -> Iterator[Hub]:
    made = Hub("127.0.9.63")
    yield made
    made.stop()


@pytest.fixture
def site(hub: Hub) -> Iterator[Site]:
    made = Site()
    made.open(hub.url)
    yield made
    made.stop()


@pytest.mark.long
@pytest.mark.slow
def test_what_a_hub_sends_is_fetched_at_once(
    tmp_path: Path, site: Site, hub: Hub, queue: Queue
) -> None:
    sock = bind("127.0.0.1", 0)
    port = sock.getsockname()[1]
    sock.close()
    entry = {"id": "bao.vn", "home": f"{site.base}/", "feeds": [f"{site.base}/rss"]}
    (tmp_path / "sites.json").write_text(json.dumps({"sites": [entry]}), encoding="utf-8")
    more = {
        "SITES_FILE": tmp_path / "sites.json",
        "REDIS_URL": queue.url,
        "CRAWL_FOREVER": True,
        "API_PORT": port,
        "PUBLIC_URL": f"http://127.0.0.1:{port}",
    }
    scrapy = Scrapy(tmp_path, {**QUICK, **more})
    started: list[Running] = [scrapy.start("crawl", "news"), scrapy.start("serve")]
    try:
        until(lambda: hub.subscribers, "a subscription", 60)
        until(lambda: site.asked("/tin-cu-so-mot-4800001.html"), "the first article", 30)
        visits = site.asked("/rss")
        elsewhere = "http://127.0.9.64:8000/tin-ngoai-4800009.html"
        site.show(["/tin-moi-so-hai-4800002.html", "/cam/tin-kin-4800003.html", elsewhere])
        told = time.monotonic()
        form = urllib.parse.urlencode({"hub.mode": "publish", "hub.url": f"{site.base}/rss"})
        urllib.request.urlopen(hub.url, form.encode(), timeout=10).close()
        until(lambda: site.asked("/tin-moi-so-hai-4800002.html"), "the pushed article", 30)
        took_s = time.monotonic() - told
        until(lambda: "Pushed feed read" in started[0].text(), "its line in the log")
        rows = scrapy.run("seeds", "hubs", "--json")
        started[0].interrupt()
        done = started[0].wait(30)
        assert done.returncode == 0, done.stderr[-2000:]
    finally:
        for running in started:
            if running.process.poll() is None:
                running.interrupt()
                running.wait(30)
    print(f"fetched {took_s:.1f} s after the hub was told")
    assert took_s < 15
    assert site.asked("/rss") == visits + 1, "the hub's own look, and no visit of ours"
    assert not site.asked("/cam/tin-kin-4800003.html")
    assert done.stat("feed/pushed") == 1
    (row,) = [json.loads(line) for line in rows.stdout.splitlines()]
    assert (row["site"], row["state"], row["pushes"]) == ("bao.vn", "active", 1)
    assert "secret" not in row and "token" not in row
