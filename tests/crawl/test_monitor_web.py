"""The monitor beside real workers that crawl the simulated web, whose clock runs 60 times as fast:
what they write while they work is what the monitor judges by. The day's faults: `make chaos`."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from newscrawler.fleet.history import HOUR_MS, History
from newscrawler.frontier import connect
from newscrawler.frontier.operator import Operator
from tests.crawl.harness import until
from tests.crawl.small import QUIET, Queue, crawler
from tests.crawl.test_monitor_day import said
from tests.fixtures_webhook import Receiver

pytestmark = pytest.mark.timeout(600)


def preload(queue: Queue, per_hour: dict[str, int]) -> None:
    """Four weeks of so many articles an hour, up to three hours ago."""

    async def run() -> None:
        client: Any = connect(queue.url)
        try:
            now = await Operator(client, 1).now_ms() // HOUR_MS
            past = {
                site: dict.fromkeys(range(now - 28 * 24, now - 3), many)
                for site, many in per_hour.items()
            }
            await History(client).preload(past)
        finally:
            await client.aclose()

    asyncio.run(run())


@pytest.mark.long
def test_a_crawl_that_nothing_ever_answered_is_told(
    tmp_path: Path, newsweb: Any, queue: Queue
) -> None:
    """Not "Nothing is wrong.", as when too few visits failed to speak of a share."""
    web = newsweb("ip", sites=2, articles=3, **QUIET)
    web.stop()
    scrapy = crawler(
        tmp_path, web, CRAWL_FOREVER=True, REDIS_URL=queue.url, MONITOR_DISK_FREE_BYTES=1
    )
    first = scrapy.run("monitor")
    assert first.returncode == 0
    assert "no worker has visited a site yet" in first.stderr, first.stderr
    running = scrapy.start("crawl", "news")
    try:
        until(lambda: running.text().count("outcome=RETRY(connect)") >= 3, "visits", 60)

        def is_told() -> bool:
            look = scrapy.run("monitor", "--json")
            return look.returncode == 1 and '"no_answer"' in look.stdout

        until(is_told, "the monitor to say that nothing answers", 30)
        look = scrapy.run("monitor")
        assert "no answer: RETRY(connect)" in look.stdout, look.stdout
        assert "errors" not in look.stdout, "the same said twice"
        assert "scrapy doctor" in look.stderr
    finally:
        running.kill()


@pytest.mark.chaos
def test_faults_of_a_real_crawl_are_told(
    tmp_path: Path, newsweb: Any, queue: Queue, webhook: Receiver
) -> None:
    web = newsweb(
        "ip", sites=3, articles=10, **{**QUIET, "rate": 40, "delay": 0.1, "factor": 60, "duration": 4}
    )  # fmt: skip
    queue.set_clock(web.about["clock"])
    sites = list(web.about["sites"])
    scrapy = crawler(
        tmp_path, web, CRAWL_FOREVER=True, REDIS_URL=queue.url, ALERT_WEBHOOK_URL=webhook.url,
        MONITOR_DISK_FREE_BYTES=1, MONITOR_FLOOD_FROM=30,
    )  # fmt: skip

    def raised() -> set[str]:
        return set(said(webhook, "raised"))

    running = {}
    monitor = None
    try:
        for node in ("a", "b"):
            scrapy.settings["FLEET_NODE"] = node
            running[node] = scrapy.start("crawl", "news")
        until(lambda: running["b"].text().count("kind=article outcome=DONE") > 3, "articles", 120)
        until(lambda: running["a"].text().count("kind=article outcome=DONE") > 3, "articles", 120)
        monitor = scrapy.start("monitor", "--every", "1")
        until(lambda: "looks every" in monitor.text(), "the monitor", 60)
        until(lambda: queue_looked(queue), "a look", 60)
        assert raised() == set(), "a healthy crawl"

        preload(queue, {sites[0]: 4, sites[1]: 150})

        def is_told() -> bool:
            # Of all sites together enough comes, or they would be told of instead of the one.
            web.publish(sites[2], 4)
            return f"site_silent/{sites[1]}" in raised()

        until(is_told, "too little of a site", 120, every_s=1.0)

        for _ in range(2):
            web.publish(sites[0], 40)
        until(lambda: f"site_flood/{sites[0]}" in raised(), "a flood", 120)

        running["b"].kill()
        until(lambda: any(one.startswith("worker_gone/") for one in raised()), "a death", 60)
        assert "no_worker/fleet" not in raised()

        web.stop()
        until(lambda: any(one.startswith("errors/") for one in raised()), "errors", 180)
        running["a"].kill()
        kinds = {one.partition("/")[0] for one in raised()}
        # A busy machine is late and slow by this clock, and a web that is gone gives nothing.
        also = {"slow", "slow_node", "no_data", "no_worker"}
        assert kinds - also == {"site_silent", "site_flood", "worker_gone", "errors"}, raised()
        assert len(said(webhook, "raised")) == len(raised()), "each once"
        monitor.interrupt()
        assert monitor.wait(60).returncode == 0
    finally:
        for process in [*running.values(), *([monitor] if monitor else [])]:
            if process.process.poll() is None:
                process.kill()


def queue_looked(queue: Queue) -> bool:
    async def run() -> bool:
        client: Any = connect(queue.url)
        try:
            return bool(await client.get("{fleet}:monitor"))
        finally:
            await client.aclose()

    return asyncio.run(run())
