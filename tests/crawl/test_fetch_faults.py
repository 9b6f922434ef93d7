"""What the network can do to a crawl: each fault ends in its word, through the real
handler in a real Scrapy."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.crawl.fault_server import PAGE, FaultServer
from tests.fixtures_tls import TestCA

ROOT = Path(__file__).resolve().parents[2]
LIMIT = 2_000_000
OPEN = "ALLOWED_PRIVATE_NETWORKS=127.0.0.0/8"


@dataclass
class Run:
    """One crawl of everything: what came out per URL, and the server that saw it."""

    results: dict[str, dict[str, Any]]
    server: FaultServer
    seconds: float
    loop: str


def crawl(
    urls: list[str], *settings: str, check: bool = True
) -> tuple[dict[str, dict[str, Any]], str]:
    lines = "\n".join(url if " " in url else f"{url} article" for url in urls)
    done = subprocess.run(
        [
            sys.executable,
            "-W",
            "ignore::DeprecationWarning",
            "-m",
            "tests.crawl.fault_crawl",
            *settings,
        ],
        input=lines,
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=120,
    )
    if check:
        assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    return {row["url"]: row for row in rows}, done.stderr


def closed_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


FAULTS = [
    ("/announced-50mb", "size"),
    ("/chunked-50mb", "size"),
    ("/bomb", "size"),
    ("/members", "size"),
    ("/binary", "type"),
    ("/cut-length", "truncated"),
    ("/cut-chunked", "truncated"),
    ("/cut-gzip", "truncated"),
    ("/lying-gzip", "bad_encoding"),
    ("/odd-coding", "bad_encoding"),
    ("/drip", "timeout"),
    ("/silent", "timeout"),
    ("/drop", "connect"),
    ("/garbage", "protocol"),
    ("/huge-header", "protocol"),
    ("/many-headers", "protocol"),
]
GOOD = ["/ok", "/gzip", "/empty", "/to-private", "/long-headers", "/odd-headers"]
PAGES = ["/page/1", "/page/2", "/page/3"]


@pytest.fixture(scope="module")
def server(tls_ca: TestCA) -> Iterator[FaultServer]:
    faults = FaultServer()
    faults.start(
        {
            "plain": ("127.0.1.1", None),
            "pages": ("127.0.1.2", None),
            "tls": ("127.0.1.3", tls_ca.server_context("good.example")),
            "expired": (
                "127.0.1.4",
                tls_ca.server_context("expired.example", valid_days=(-20, -1)),
            ),
            "early": ("127.0.1.5", tls_ca.server_context("early.example", valid_days=(2, 9))),
        }
    )
    yield faults
    faults.stop()


@pytest.fixture(scope="module")
def run(server: FaultServer, tls_ca: TestCA) -> Run:
    ports = server.ports
    plain = f"http://127.0.1.1:{ports['plain']}"
    # each fault under a name of its own, so that they are all met at the same time
    urls = [f"http://fault{n}.example{path}" for n, (path, _) in enumerate(FAULTS)] + [
        plain + path for path in GOOD
    ]
    urls += [f"http://pages.example{path}" for path in PAGES]
    urls += [
        f"https://{name}.example/ok" for name in ("good", "expired", "early", "wrong", "plain")
    ]
    urls += [
        f"http://127.0.0.1:{closed_port()}/",
        "http://10.0.0.1/",
        "http://169.254.169.254/latest/",
        "http://[::1]/",
    ]
    urls += ["http://2130706433/", "http://[::ffff:10.0.0.1]/", "http://unknown.invalid/"]
    override = ",".join(
        [
            f"pages.example=127.0.1.2:{ports['pages']}",
            f"good.example=127.0.1.3:{ports['tls']}",
            f"wrong.example=127.0.1.3:{ports['tls']}",
            f"plain.example=127.0.1.1:{ports['plain']}",
            f"expired.example=127.0.1.4:{ports['expired']}",
            f"early.example=127.0.1.5:{ports['early']}",
            *(f"fault{n}.example=127.0.1.1:{ports['plain']}" for n in range(len(FAULTS))),
        ]
    )
    start = time.monotonic()
    results, _ = crawl(
        urls,
        OPEN,
        f"RESOLVE_OVERRIDE={override}",
        f"EXTRA_CA_FILE={tls_ca.ca_file}",
        f"DOWNLOAD_MAXSIZE={LIMIT}",
        "DOWNLOAD_TIMEOUT=5",
        "DOWNLOAD_DELAY=0.01",
        "CONCURRENT_REQUESTS_PER_DOMAIN=1",
        "CONCURRENT_REQUESTS=40",
    )
    loop = results.pop("")["loop"]
    assert len(results) == len(urls)
    return Run(results, server, time.monotonic() - start, loop)


def of(run: Run, path: str) -> dict[str, Any]:
    found = [row for url, row in run.results.items() if url.endswith(path)]
    assert len(found) == 1, path
    return found[0]


@pytest.mark.parametrize(("path", "reason"), FAULTS)
def test_every_fault_has_its_reason(run: Run, path: str, reason: str) -> None:
    row = of(run, path)
    assert row.get("reason") == reason, row
    assert path in row["error"]


def test_good_pages_come_through(run: Run) -> None:
    for path in ("/ok", "/gzip", "/long-headers", "/odd-headers"):
        row = of(run, "127.0.1.1:" + str(run.server.ports["plain"]) + path)
        assert (row.get("status"), row.get("bytes"), row.get("type")) == (
            200,
            len(PAGE),
            "HtmlResponse",
        ), row
        assert 0 < row["latency"] < 5
    assert "Content-Encoding" not in of(run, "/gzip")["headers"]
    assert "Content-Encoding" in of(run, "/gzip")["raw"]
    assert of(run, "/odd-headers")["headers"]["X-Odd"] == "caf\xe9 \xff"


def test_an_empty_page_is_an_answer_and_says_so(run: Run) -> None:
    row = of(run, "/empty")
    assert (row["status"], row["bytes"], row["flags"]) == (200, 0, ["empty"])


def test_a_redirect_is_handed_on_and_not_followed(run: Run) -> None:
    row = of(run, "/to-private")
    assert row["status"] == 302
    assert row["headers"]["Location"].startswith("http://169.254.169.254/")


def test_large_answers_are_not_read_to_their_end(run: Run) -> None:
    # what the sockets' buffers of both sides hold comes on top of the limit
    assert LIMIT <= run.server.sent["/chunked-50mb"] < 15_000_000


@pytest.mark.parametrize(
    "url",
    [
        "http://10.0.0.1/",
        "http://169.254.169.254/latest/",
        "http://[::1]/",
        "http://[::ffff:10.0.0.1]/",
        "http://2130706433/",
    ],
)
def test_private_addresses_are_refused_whatever_their_spelling(run: Run, url: str) -> None:
    row = next(
        row
        for found, row in run.results.items()
        if found.startswith(url[:14]) and "ssrf" in str(row)
    )
    assert row["reason"] == "ssrf"


def test_addresses_hidden_in_names_are_refused_after_resolution(server: FaultServer) -> None:
    # nothing is opened here: the C library reads these names as 127.0.0.1
    urls = [
        f"http://0x7f.1:{server.ports['plain']}/ok",
        f"http://localhost:{server.ports['plain']}/ok",
    ]
    before = len(server.hits)
    results, _ = crawl([*urls, f"http://127.0.1.1:{server.ports['plain']}/ok"])
    assert [row.get("reason") for url, row in results.items() if url] == ["ssrf"] * 3
    assert len(server.hits) == before


def test_unknown_names_and_closed_ports_have_their_words(run: Run) -> None:
    # without a name server that answers, the look-up ends by the time limit
    assert of(run, "unknown.invalid/")["reason"] in ("dns", "timeout")
    closed = [row for url, row in run.results.items() if url.startswith("http://127.0.0.1:")]
    assert [row["reason"] for row in closed] == ["connect"]


@pytest.mark.parametrize(
    ("name", "problem"),
    [("expired", "expired"), ("early", "not yet valid"), ("wrong", "wrong name")],
)
def test_bad_certificates_are_refused_by_name_of_the_fault(
    run: Run, name: str, problem: str
) -> None:
    row = run.results[f"https://{name}.example/ok"]
    assert (row["reason"], row["problem"]) == ("tls", problem), row
    assert row["error"].startswith("CertificateRefused")
    assert not [hit for hit in run.server.hits if hit[1].startswith(name)]


def test_a_server_without_tls_is_no_https_site(run: Run) -> None:
    assert run.results["https://plain.example/ok"]["reason"] == "tls"


def test_a_good_certificate_is_accepted_under_its_real_name(run: Run) -> None:
    assert run.results["https://good.example/ok"]["status"] == 200
    assert [host for path, host, _ in run.server.hits if host.startswith("good")] == [
        "good.example"
    ]


@pytest.mark.long
def test_an_authority_that_is_not_ours_is_untrusted(server: FaultServer) -> None:
    override = f"RESOLVE_OVERRIDE=good.example=127.0.1.3:{server.ports['tls']}"
    results, _ = crawl(["https://good.example/ok"], OPEN, override)
    assert results["https://good.example/ok"]["problem"] == "untrusted"
    results, _ = crawl(
        ["https://good.example/ok"], OPEN, override, "DOWNLOAD_VERIFY_CERTIFICATES=False"
    )
    assert results["https://good.example/ok"]["status"] == 200


def test_names_are_kept_connections_reused_and_cookies_forgotten(run: Run) -> None:
    hits = [headers for path, host, headers in run.server.hits if host == "pages.example"]
    assert len(hits) == 3
    assert [h.get("cookie") for h in hits] == [None] * 3
    assert {h["user-agent"].split("/")[0] for h in hits} == {"newscrawler"}
    assert {h["accept-encoding"] for h in hits} == {"gzip, deflate, br, zstd"}
    assert [h.get("connection", "keep-alive") for h in hits] == ["keep-alive"] * 3


@pytest.mark.long
def test_three_pages_of_a_host_take_one_connection(server: FaultServer) -> None:
    before = server.connections
    results, _ = crawl(
        [f"http://127.0.1.2:{server.ports['pages']}{path}" for path in PAGES],
        OPEN,
        "CONCURRENT_REQUESTS_PER_DOMAIN=1",
    )
    assert [row["status"] for url, row in results.items() if url] == [200] * 3
    assert server.connections - before == 1


def test_the_crawl_runs_on_uvloop(run: Run) -> None:
    assert run.loop.startswith("uvloop")


def test_environment_proxies_are_not_used(
    server: FaultServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "all_proxy"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{closed_port()}")
    url = f"http://127.0.1.1:{server.ports['plain']}/ok"
    assert crawl([url], OPEN)[0][url]["status"] == 200


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("RESOLVE_OVERRIDE=*=10.0.0.1:80", "not a loopback address"),
        ("RESOLVE_OVERRIDE=*=127.0.0.1:80", "ALLOWED_PRIVATE_NETWORKS=127"),
        ("ALLOWED_PRIVATE_NETWORKS=loopback", "not a range"),
        ("EXTRA_CA_FILE=/nonexistent.pem", "EXTRA_CA_FILE"),
        ("USER_AGENT= ", "USER_AGENT is empty"),
        ("DOWNLOAD_DELAY=-1", "DOWNLOAD_DELAY is -1"),
        ("DOWNLOAD_MAXSIZE=0", "DOWNLOAD_MAXSIZE"),
    ],
)
def test_a_wrong_setting_stops_the_crawl_before_it_fetches(
    server: FaultServer, setting: str, message: str
) -> None:
    before = len(server.hits)
    results, errors = crawl([f"http://127.0.1.1:{server.ports['plain']}/ok"], setting, check=False)
    assert message in errors
    assert not [row for row in results.values() if "status" in row]
    assert len(server.hits) == before
