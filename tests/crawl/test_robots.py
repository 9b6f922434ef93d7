"""RFC 9309 row by row in one crawl: many small sites, each with another robots.txt, judged
by what they were asked."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.crawl.harness import Finished, Scrapy
from tests.crawl.small import QUICK, Queue

pytestmark = pytest.mark.slow

FORBID = b"User-agent: *\nDisallow: /cam\n"
#: Linked on every home page.
LINKS = ("/mo-1.html", "/cam-1.html", "/tep-1.pdf.html", "/rieng-1.html")


@dataclass
class Reply:
    status: int = 200
    body: bytes = b""
    location: str = ""
    headers: dict[str, str] = field(default_factory=dict)


def hops(n: int, last: Reply) -> dict[str, Reply]:
    """n redirects, then ``last``."""
    chain = {"/robots.txt": Reply(301, location="/r1") if n else last}
    chain |= {f"/r{i}": Reply(302, location=f"/r{i + 1}") for i in range(1, n)}
    return {**chain, f"/r{n}": last} if n else chain


#: site -> its answers around robots.txt; None = the connection is closed without an answer
SITES: dict[str, dict[str, Reply | None]] = {
    "plain": {"/robots.txt": Reply(body=FORBID)},
    "hops5": {**hops(5, Reply(body=FORBID))},
    "hops6": {**hops(6, Reply(body=FORBID))},
    "abroad": {"/robots.txt": Reply(301, location="http://{plain}/robots.txt")},
    "s403": {"/robots.txt": Reply(403, FORBID)},
    "s404": {"/robots.txt": Reply(404, FORBID)},
    "s500": {"/robots.txt": Reply(500, FORBID)},
    "s503": {"/robots.txt": Reply(503, b"", headers={"Retry-After": "900"})},
    "s429": {"/robots.txt": Reply(429, FORBID)},
    "dead": {"/robots.txt": None},
    "huge": {
        "/robots.txt": Reply(
            body=b"User-agent: *\nDisallow: /cam\n" + b"# x\n" * 150_000 + b"Disallow: /mo\n"
        )
    },
    "group": {
        "/robots.txt": Reply(
            body=b"User-agent: *\nDisallow: /\n\nUser-agent: NewsCrawler\nDisallow: /rieng\n"
        )
    },
    "wild": {
        "/robots.txt": Reply(
            body=b"User-agent: *\nDisallow: /*.pdf\nDisallow: /*-1.html$\nAllow: /mo-*.html\n"
        )
    },
    "announces": {
        "/robots.txt": Reply(
            body=b"User-agent: *\nAllow: /\nSitemap: http://{announces}/bi-mat.xml\n"
        ),
        "/bi-mat.xml": Reply(
            body=b'<?xml version="1.0"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">'
            b"<url><loc>http://{announces}/chi-trong-so-do-9.html</loc></url></urlset>",
            headers={"Content-Type": "application/xml"},
        ),
    },
}
PAGE = "<html><head><title>Trang</title></head><body><h1>Trang</h1>{}</body></html>"


class Web:
    """Every site of SITES on a port of its own; ``asked``: (site, path, time) in their order."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, float]] = []
        self.servers: dict[str, ThreadingHTTPServer] = {}
        for name in SITES:
            self.servers[name] = ThreadingHTTPServer(("127.0.0.1", 0), self.handler(name))
            threading.Thread(target=self.servers[name].serve_forever, daemon=True).start()

    def host(self, name: str) -> str:
        return f"127.0.0.1:{self.servers[name].server_address[1]}"

    def handler(web: Web, name: str) -> type[BaseHTTPRequestHandler]:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                web.asked.append((name, self.path, time.monotonic()))
                page = (
                    ""
                    if self.path != "/"
                    else "".join(f'<p><a href="{u}">x</a></p>' for u in LINKS)
                )
                reply = SITES[name].get(self.path, Reply(body=PAGE.format(page).encode()))
                if reply is None:
                    self.close_connection = True
                    return
                hosts = {n: web.host(n) for n in SITES}
                self.send_response(reply.status)
                body = reply.body
                for n, host in hosts.items():
                    body = body.replace(b"{%s}" % n.encode(), host.encode())
                headers = {"Content-Type": "text/html; charset=utf-8", **reply.headers}
                if self.path == "/robots.txt":
                    headers["Content-Type"] = "text/plain"
                if reply.location:
                    headers["Location"] = reply.location.format(**hosts)
                for key, value in headers.items():
                    self.send_header(key, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *args: Any) -> None:
                pass

        return Handler

    def paths(self, name: str) -> list[str]:
        return [path for site, path, _ in self.asked if site == name]

    def close(self) -> None:
        for server in self.servers.values():
            server.shutdown()
            server.server_close()


@pytest.fixture(scope="module")
def crawled(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[Web, Finished, Queue, dict[str, str]]]:
    folder = tmp_path_factory.mktemp("robots")
    web = Web()
    sites = [
        {
            "id": name,
            "name": name,
            "home": f"http://{web.host(name)}/",
            "hosts": [web.host(name)],
            "delay_s": 0.02,
        }
        for name in SITES
    ]
    (folder / "sites.json").write_text(json.dumps({"sites": sites}))
    (folder / "data").mkdir()
    queue = Queue(folder / "data")
    conf = {
        **QUICK,
        "SITES_FILE": folder / "sites.json",
        "BACKOFF_START_S": 300,
        "ROBOTS_RETRY_S": 300,
        "CRAWL_LONGEST_WAIT_S": 3,
    }
    done = Scrapy(folder, conf).run("crawl", "news")
    yield web, done, queue, {name: web.host(name) for name in SITES}
    queue.close()
    web.close()


Crawled = tuple[Web, Finished, Queue, dict[str, str]]


@pytest.mark.parametrize(
    ("site", "forbidden"),
    [
        ("plain", {"/cam-1.html"}),
        ("hops5", {"/cam-1.html"}),  # 2.3.1.2: at least five are followed
        ("hops6", set()),  # more: as if there were none
        ("abroad", {"/cam-1.html"}),  # also to another host, and the rules are ours
        ("s403", set()),  # 2.3.1.3: 4xx = free
        ("s404", set()),
        ("huge", {"/cam-1.html"}),  # 2.5: 500 KiB are read, the rest is not
        ("group", {"/rieng-1.html"}),  # 2.2.1: our group instead of the one for all
        ("wild", {"/cam-1.html", "/tep-1.pdf.html", "/rieng-1.html"}),  # 2.2.3
        ("announces", set()),
    ],
)
def test_known_rules_are_obeyed_and_the_rest_is_fetched(
    crawled: Crawled, site: str, forbidden: set[str]
) -> None:
    web, done, _, _ = crawled
    assert done.returncode == 0, done.stderr[-3000:]
    asked = set(web.paths(site))
    assert {"/", *LINKS} & asked == {"/", *LINKS} - forbidden
    assert (
        web.paths(site)[0] == "/robots.txt" and web.paths(site).count("/robots.txt") <= 2
    )  # "plain" is asked by "abroad"


@pytest.mark.parametrize("site", ["s500", "s503", "s429", "dead"])
def test_while_robots_does_not_answer_nothing_else_is_asked(crawled: Crawled, site: str) -> None:
    web, _, queue, hosts = crawled
    assert set(web.paths(site)) == {"/robots.txt"}

    async def state(frontier: Any, client: Any) -> Any:
        return await frontier.operator.state(hosts[site]), await frontier.operator.now_ms()

    found, now = queue._ask(state)
    assert found.queued == 1, "the home page stays queued"
    least_s = 800 if site == "s503" else 250
    assert found.ready_at - now > least_s * 1000, (
        "Retry-After, or the back-off, before it is asked again"
    )


def test_hops_keep_the_distance(crawled: Crawled) -> None:
    web = crawled[0]
    times = [at for site, _, at in web.asked if site == "hops5"]
    assert min(b - a for a, b in pairwise(times)) >= 0.019


def test_a_sitemap_that_is_announced_there_is_found_and_read(crawled: Crawled) -> None:
    asked = crawled[0].paths("announces")
    assert asked.index("/bi-mat.xml") < asked.index("/chi-trong-so-do-9.html")


def test_why_names_the_robots_txt_that_announced_it(crawled: Crawled) -> None:
    _, _, queue, hosts = crawled
    from newscrawler.web.urls import url_id

    async def why(frontier: Any, client: Any) -> Any:
        return await frontier.operator.why(
            url_id(f"http://{hosts['announces']}/bi-mat.xml"), hosts["announces"]
        )

    found = queue._ask(why)
    assert found["found_on"].endswith(f"{hosts['announces']}/robots.txt")


def test_refused_pages_say_robots(crawled: Crawled, tmp_path: Path) -> None:
    stats = crawled[1].stats
    assert stats["page/reason/REFUSED(robots)"] == 8, {
        k: v for k, v in stats.items() if k.startswith("page/")
    }
