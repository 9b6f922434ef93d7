"""`scrapy run` (make run) as it is shipped: the 33 sites under their real names, and a machine
without a network."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections import Counter
from pathlib import Path

import pytest

from newscrawler.items import Article
from newscrawler.store import open_store
from tests.crawl.harness import ROOT, until
from tests.fixtures_newsweb import StartNewsweb
from tests.newsweb import judge


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


def stored(data: Path) -> list[Article]:
    async def read() -> list[Article]:
        store = open_store("", data)
        await store.open()
        try:
            return [article async for article in store.scan()]
        finally:
            await store.close()

    return asyncio.run(read())


def own_environment(data: Path, port: int, **more: str) -> dict[str, str]:
    kept = {
        k: v for k, v in os.environ.items() if not k.startswith(("SCRAPY_", "LLM_", "REDIS_URL"))
    }
    return {**kept, "DATA_DIR": str(data), "API_PORT": str(port), "PROGRESS": "plain", **more}


def test_the_shipped_configuration_crawls_33_sites_and_serves_them(
    newsweb: StartNewsweb, tmp_path: Path
) -> None:
    web = newsweb("names", articles=8)
    assert len(web.about["sites"]) == 33
    port, data = free_port(), tmp_path / "data"
    env = own_environment(
        data,
        port,
        RESOLVE_OVERRIDE=web.about["resolve_override"],
        EXTRA_CA_FILE=str(web.ca_file),
        ALLOWED_PRIVATE_NETWORKS="127.0.0.0/8",
    )
    crawl = subprocess.Popen(
        [sys.executable, "-m", "scrapy", "run", "--pages", "600", "--minutes", "4"],
        cwd=ROOT, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip

    def page() -> str:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=5) as answer:
                return answer.read().decode()
        except OSError:
            return ""

    try:
        assert "<html" in until(page, "the search page is served while the crawl runs", 90)
        output, _ = crawl.communicate(timeout=300)
    finally:
        crawl.kill()
    assert crawl.returncode == 0, output[-3000:]
    assert "33 sites" in output
    assert output.count("never looked at from here; `scrapy sites check`") == 1
    articles = stored(data)
    coverage = judge.coverage(web.truth(), articles)
    assert len(coverage.found) > 60, output[-3000:]
    assert not coverage.unexpected
    assert not judge.politeness(web.hits(), web.truth())
    sites = Counter(article.site for article in articles)
    # Of 33: one is a challenge page, some have more seeds than a site is visited in
    # these 600 pages.
    assert len(sites) >= 22, sites
    agents = {hit["ua"] for hit in web.hits()}
    assert agents == {next(iter(agents))} and "newscrawler" in next(iter(agents))


@pytest.mark.skipif(
    os.geteuid() != 0 or not shutil.which("unshare"),
    reason="skipped: needs root and unshare for a namespace without a network",
)
def test_without_a_network_each_site_says_so_and_the_exit_code_is_1(tmp_path: Path) -> None:
    data, port = tmp_path / "data", free_port()
    command = f"ip link set lo up 2>/dev/null; exec {sys.executable} -m scrapy run --minutes 0.3 --sites vnexpress.net,dantri.com.vn"
    started = time.monotonic()
    done = subprocess.run(
        ["unshare", "-n", "sh", "-c", command],
        cwd=ROOT, env=own_environment(data, port), capture_output=True, text=True, timeout=90,
    )  # fmt: skip
    output = done.stdout + done.stderr
    assert done.returncode == 1, output[-3000:]
    assert time.monotonic() - started > 15, "it goes on and keeps serving until its time is over"
    assert "Nothing at all could be fetched" in output
    for site in ("vnexpress.net", "dantri.com.vn"):
        rows = [line for line in output.splitlines() if line.strip().startswith(site)]
        assert rows and any("dns" in row or "connect" in row for row in rows), output[-3000:]
    assert "Traceback" not in output
