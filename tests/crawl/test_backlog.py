"""What is fetched and not yet read would be fetched again if the worker died: it takes no
more than it can read."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from tests.crawl.harness import until
from tests.crawl.small import QUIET, Queue, complaints, crawler, page_hits, stored
from tests.crawl.test_killer import readers
from tests.fixtures_newsweb import StartNewsweb

pytestmark = pytest.mark.slow

CONCURRENCY = 8


@pytest.mark.long
def test_a_worker_whose_reader_stands_still_stops_fetching(
    tmp_path: Path, newsweb: StartNewsweb, queue: Queue
) -> None:
    web = newsweb("ip", sites=8, articles=12, **{**QUIET, "delay": 0.1})
    worker = crawler(tmp_path, web, DOWNLOAD_DELAY=0.1, CONCURRENT_REQUESTS=CONCURRENCY).start(
        "crawl", "news"
    )
    try:
        until(lambda: worker.text().count("Visit ended") >= 40, "40 visits", 120)
        (reader,) = readers(worker.process.pid)
        os.kill(reader, signal.SIGSTOP)
        before, since = -1, time.monotonic()
        deadline = since + 30
        while time.monotonic() - since < 2:  # every domain's turn has come many times
            assert time.monotonic() < deadline, "it fetches on and on"
            if (hits := int(web.stats()["hits"])) != before:
                before, since = hits, time.monotonic()
            time.sleep(0.05)
        leased = queue.counts().leased
        os.kill(reader, signal.SIGCONT)
        end = worker.wait(150)
    finally:
        if worker.process.poll() is None:
            worker.kill()
    # as many as wait to be read, and a batch that was leased just before the bound was reached
    assert CONCURRENCY <= leased <= 2 * CONCURRENCY, f"{leased} pages in hand"
    assert end.returncode == 0, end.stderr[-2000:]
    assert complaints(web, stored(tmp_path / "data")) == []
    assert [url for url, n in page_hits(web).items() if n > 1] == []
