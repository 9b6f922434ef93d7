"""A worker listens on no port: neither Scrapy's telnet console nor its remote control
is open in a crawl."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.crawl.harness import Running, until
from tests.crawl.small import QUIET, crawler
from tests.fixtures_newsweb import StartNewsweb

_LISTEN = "0A"  # TCP_LISTEN of the kernel's include/net/tcp_states.h, as /proc prints it


def family(pid: int) -> Iterator[int]:
    """The process and all that descend from it. One that ends meanwhile is passed over."""
    yield pid
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            children = task.read_text().split()
        except OSError:
            continue
        for child in children:
            yield from family(int(child))


def listening_ports(pid: int) -> set[int]:
    """TCP ports on which the process or one of its descendants accepts connections."""
    inodes: set[str] = set()
    for member in family(pid):
        for entry in Path(f"/proc/{member}/fd").glob("*"):
            try:
                target = str(entry.readlink())
            except OSError:
                continue
            if target.startswith("socket:["):
                inodes.add(target[8:-1])
    ports = set()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == _LISTEN and fields[9] in inodes:
                ports.add(int(fields[1].rpartition(":")[2], 16))
    return ports


@pytest.mark.parametrize(
    ("settings", "listens"),
    [
        pytest.param({}, False, id="as-shipped"),
        pytest.param({"REMOTE_CONTROL_ENABLED": "True"}, True, id="the-look-finds-a-port"),
    ],
)
def test_a_running_crawl_listens_nowhere_by_default(
    newsweb: StartNewsweb, tmp_path: Path, settings: dict[str, str], listens: bool
) -> None:
    web = newsweb("ip", articles=5, sites=2, **QUIET)
    scrapy = crawler(tmp_path, web, CRAWL_FOREVER=True, **settings)
    running: Running = scrapy.start("crawl", "news")
    try:
        until(lambda: len(web.hits()) > 10 or running.process.poll() is not None, "it crawls")
        assert running.process.poll() is None, running.text()[-3000:]
        if listens:
            until(lambda: listening_ports(running.process.pid), "the port that was asked for", 20)
        else:
            assert not listening_ports(running.process.pid)
        running.interrupt()
        assert running.wait(60).returncode == 0, running.text()[-3000:]
    finally:
        if running.process.poll() is None:
            running.kill()
