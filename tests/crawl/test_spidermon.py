"""Spidermon watches a real crawl: at close and while it runs, with alerts to a real receiver."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from newscrawler.crawl.monitors import SIGNATURE_HEADER, sign
from tests.crawl.harness import Scrapy, until
from tests.fixtures_webhook import Receiver

pytestmark = pytest.mark.slow


def a_crawl(folder: Path, web: Any, webhook: Receiver, **settings: str) -> Scrapy:
    return Scrapy(
        folder,
        {
            "SITES_FILE": str(web.sites_file),
            "SELECTORS_DIR": str(web.selectors_dir),
            "DOWNLOAD_DELAY": "0.05",
            "AUTOTHROTTLE_ENABLED": "False",
            "ALERT_WEBHOOK_URL": webhook.url,
            **settings,
        },
        {"ALERT_WEBHOOK_SECRET": "s3cret"},
    )


def test_good_crawl_is_quiet_and_was_watched(
    newsweb: Any, tmp_path: Path, webhook: Receiver
) -> None:
    web = newsweb("ip", sites=2, articles=12, rate=0, delay=0.05, faults="none")
    done = a_crawl(tmp_path, web, webhook, MONITOR_MAX_ERROR_SHARE="0.5").run("crawl", "news")
    assert done.returncode == 0, done.stderr[-3000:]
    assert webhook.alerts == []
    assert "[Spidermon]" in done.stderr and "Field coverage" in done.stderr


@pytest.mark.long
def test_a_healthy_crawl_is_quiet_at_every_look(
    newsweb: Any, tmp_path: Path, webhook: Receiver
) -> None:
    """Looks fall between the batches of the store: what is counted of an
    article is counted at once."""
    web = newsweb("ip", sites=3, articles=40, rate=0, delay=0.01, faults="none")
    done = a_crawl(
        tmp_path,
        web,
        webhook,
        DOWNLOAD_DELAY="0.01",
        SPIDERMON_PERIODIC_MONITORS='{"newscrawler.crawl.monitors.PeriodicSuite": 0.02}',
        MONITOR_COVERAGE_FROM="1",
        MONITOR_MIN_TITLE="1",
        MONITOR_MIN_CONTENT="1",
        MONITOR_MAX_ERROR_SHARE="1",
    ).run("crawl", "news")
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stat("article/new") >= 100
    looks = done.stderr.count("Field coverage/title")
    assert looks > 20, done.stderr[-6000:]
    failed = {f["monitor"] for alert in webhook.alerts for f in alert["failures"]}
    assert failed & {"Field coverage/title", "Field coverage/content"} == set()


def test_alert_at_close_is_signed_and_says_what(
    newsweb: Any, tmp_path: Path, webhook: Receiver
) -> None:
    web = newsweb("ip", sites=1, articles=6, rate=0, delay=0.05, faults="none")
    done = a_crawl(tmp_path, web, webhook, MONITOR_MIN_ARTICLES="1000").run("crawl", "news")
    assert done.returncode == 0, done.stderr[-3000:]
    assert len(webhook.alerts) == 1
    failure = webhook.alerts[0]["failures"][0]
    assert failure["monitor"].startswith("Items") and "of at least 1000" in failure["reason"]
    assert webhook.headers[0][SIGNATURE_HEADER] == sign(webhook.bodies[0], "s3cret")


def test_periodic_suite_raises_an_alert_while_the_crawl_runs(
    newsweb: Any, tmp_path: Path, webhook: Receiver
) -> None:
    web = newsweb("ip", sites=1, articles=60, rate=0, delay=0.3, faults="none")
    running = a_crawl(
        tmp_path,
        web,
        webhook,
        SPIDERMON_PERIODIC_MONITORS='{"newscrawler.crawl.monitors.PeriodicSuite": 1}',
        MONITOR_COVERAGE_FROM="1",
        MONITOR_MIN_AUTHORS="2",
        MONITOR_MAX_ERROR_SHARE="1",
    ).start("crawl", "news")
    try:
        until(lambda: webhook.alerts, "an alert from the running crawl", timeout=60)
        assert running.process.poll() is None, "the crawl had ended"
        assert webhook.alerts[0]["failures"][0]["monitor"] == "Field coverage/authors"
        running.interrupt()
        running.wait(60)
    finally:
        if running.process.poll() is None:
            running.kill()
