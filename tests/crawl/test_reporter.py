"""What a crawl tells the terminal, the log file and the fleet's registry."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import sys
import termios
import time
from pathlib import Path
from typing import Any

import pytest
from warcio.archiveiterator import ArchiveIterator

from newscrawler.fleet.minutes import Minutes
from newscrawler.fleet.registry import Registry
from tests.crawl.harness import ROOT, Finished, Scrapy
from tests.crawl.small import QUICK, QUIET
from tests.fixtures_newsweb import StartNewsweb

pytestmark = pytest.mark.slow


def closed_sites(folder: Path) -> Path:
    """Two sites on ports where nothing listens: what a machine without a network sees."""
    hosts = ["127.0.0.8:1", "127.0.0.9:1"]
    rows = [
        {"id": host, "home": f"http://{host}/", "hosts": [host], "delay_s": 0} for host in hosts
    ]
    path = folder / "closed.json"
    path.write_text(json.dumps({"sites": rows}))
    return path


def crawler(folder: Path, sites: Path, **settings: Any) -> Scrapy:
    return Scrapy(
        folder,
        {
            "SITES_FILE": str(sites),
            "SELECTORS_DIR": str(folder / "none"),
            "DOWNLOAD_DELAY": 0,
            **settings,
        },
    )


def test_unreachable_sites_are_named_one_by_one(tmp_path: Path) -> None:
    scrapy = crawler(
        tmp_path,
        closed_sites(tmp_path),
        PROGRESS="plain",
        CLOSESPIDER_TIMEOUT=12,
        CRAWL_FOREVER=True,
    )
    done = scrapy.run("crawl", "news")
    for site in ("127.0.0.8:1", "127.0.0.9:1"):
        assert f"{site}: no network? cannot connect (connect)" in done.stderr
    assert "is there a network?" in done.stderr
    assert re.search(r"^00:00:1\d pages=0 .* tries=[1-9]", done.stderr, re.MULTILINE)


def visits(run: Finished) -> int:
    return sum(v for name, v in run.stats.items() if name.startswith("page/outcome/"))


async def test_the_registry_sums_two_crawls(
    tmp_path: Path, newsweb: StartNewsweb, r: Any, redis_server: str
) -> None:
    web = newsweb("ip", articles=3)
    scrapy = crawler(tmp_path, web.sites_file, REDIS_URL=redis_server, CLOSESPIDER_PAGECOUNT=12)
    runs = [scrapy.run("crawl", "news") for _ in range(2)]
    fetched = sum(run.stat("page/fetched") for run in runs)
    assert fetched >= 20, runs[0].stderr[-2000:]
    registry = Registry(r)
    totals = await registry.totals()
    assert totals["page/fetched"] == fetched
    sites = await registry.sites()
    ended = sum(map(visits, runs))
    assert sum(row.pages for row in sites.values()) == ended
    assert any(row.last_fetch_ms for row in sites.values())
    assert await registry.workers() == [], "a worker that ended in order is not listed"
    _, minutes = await Minutes(r).read(60)
    assert sum(one.pages for one in minutes) == fetched, "the page Fleet counts the same"
    assert max(one.workers for one in minutes) == 1
    lines = re.findall(
        r"Visit ended url=\S+ site=\S+ kind=\w+ outcome=.+ status=\d+ worker=\S+ tries=\d+",
        runs[0].stderr,
    )
    assert len(lines) == visits(runs[0])


def warc_bytes(folder: Path) -> int:
    """Compressed bytes of the pages in WARC files, read by another program."""
    total = 0
    for path in folder.rglob("*.warc.gz"):
        with path.open("rb") as file:
            records = ArchiveIterator(file)
            for record in records:
                record.content_stream().read()
                is_page = record.rec_type == "response"
                total += records.get_record_length() * is_page
    return total


def test_bytes_of_raw_pages_are_those_of_the_files(tmp_path: Path, newsweb: StartNewsweb) -> None:
    web = newsweb("ip", **{**QUIET, "sites": 2, "articles": 6})
    scrapy = crawler(tmp_path, web.sites_file, **QUICK)
    done = scrapy.run("crawl", "news")
    assert done.stat("raw/records") >= 3, str(done.stats)
    assert done.stat("raw/bytes") == warc_bytes(scrapy.data) > 1_000


@pytest.mark.parametrize("by", ["environment", "argument"])
async def test_a_heartbeat_names_the_job_of_scrapyd(
    tmp_path: Path, newsweb: StartNewsweb, r: Any, redis_server: str, by: str
) -> None:
    """scrapyd 1.6 hands its job over as an argument, earlier ones in the environment."""
    web = newsweb("ip", articles=3)
    scrapy = crawler(tmp_path, web.sites_file, REDIS_URL=redis_server, CRAWL_FOREVER=True)
    job = f"job-by-{by}"
    if by == "environment":
        scrapy.env["SCRAPY_JOB"] = job
    running = scrapy.start("crawl", "news", *(("-a", f"_job={job}") if by == "argument" else ()))
    registry = Registry(r)
    try:
        for _ in range(600):
            if workers := await registry.workers():
                break
            await asyncio.sleep(0.2)
        assert [worker["job"] for worker in workers] == [job], running.text()[-2000:]
        running.interrupt()
        running.wait(60)
    finally:
        if running.process.poll() is None:
            running.kill()


class Terminal:
    """`scrapy` in a terminal of its own, 110 by 30."""

    def __init__(self, scrapy: Scrapy, *args: str) -> None:
        command, _ = scrapy.command(*args)
        self.pid, self.fd = pty.fork()
        if self.pid == 0:  # pragma: no cover
            os.chdir(ROOT)
            os.execve(sys.executable, command, {**scrapy.env, "TERM": "xterm-256color"})
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 110, 0, 0))
        self.raw = ""

    def read_until(self, pattern: str, timeout: float = 40) -> None:
        deadline = time.monotonic() + timeout
        while not re.search(pattern, self.text):
            assert time.monotonic() < deadline, f"{pattern} not shown:\n{self.text[-3000:]}"
            if not self._read():
                raise AssertionError(f"ended before {pattern}:\n{self.text[-3000:]}")

    def _read(self) -> bool:
        if not select.select([self.fd], [], [], 0.2)[0]:
            return True
        try:
            data = os.read(self.fd, 65536)
        except OSError:  # the other side is closed
            return False
        self.raw += data.decode("utf-8", "replace")
        return bool(data)

    @property
    def text(self) -> str:
        return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", self.raw)

    def press_ctrl_c(self) -> None:
        os.write(self.fd, b"\x03")

    def wait(self, timeout: float = 40) -> int:
        deadline = time.monotonic() + timeout
        while self._read():
            if time.monotonic() > deadline:
                os.kill(self.pid, signal.SIGKILL)
                os.waitpid(self.pid, 0)
                raise AssertionError(f"still running:\n{self.text[-3000:]}")
        os.close(self.fd)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_ctrl_c_ends_the_live_display_with_a_table(tmp_path: Path, newsweb: StartNewsweb) -> None:
    web = newsweb("ip", articles=3)
    scrapy = crawler(tmp_path, web.sites_file, PROGRESS="live", CRAWL_FOREVER=True)
    terminal = Terminal(scrapy, "crawl", "news")
    terminal.read_until(r"pages/s +[1-9]\d* pages")
    terminal.read_until(r"(fetching|next in|next: now)")
    terminal.press_ctrl_c()
    code = terminal.wait()
    assert code == 0, terminal.text[-3000:]
    assert terminal.raw.rindex("\x1b[?25h") > terminal.raw.rindex("\x1b[?25l"), "the cursor is back"
    tail = terminal.text[terminal.text.rindex("what else") :]
    assert "ended: stopped" in tail and "sites" in tail
    log = (scrapy.data / "logs" / "crawl.log").read_text()
    assert "Visit ended" in log and "Spider closed (shutdown)" in log
    shown = terminal.text[terminal.text.index("pages/s") :]
    assert "Visit ended" not in shown, "log lines broke into the display"
