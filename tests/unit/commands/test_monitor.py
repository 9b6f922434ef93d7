"""`scrapy monitor`, as an operator types it."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import redis

from newscrawler.items import Article
from newscrawler.store.sqlite import LocalStore
from tests import warm
from tests.crawl.harness import until
from tests.fixtures_webhook import Receiver

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def env(tmp_path: Path, redis_server: str, webhook: Receiver) -> dict[str, str]:
    with redis.Redis.from_url(redis_server) as client:
        client.flushall()
    (tmp_path / "sites.json").write_text(json.dumps({"sites": []}))
    return {
        **os.environ, "DATA_DIR": str(tmp_path), "REDIS_URL": redis_server,
        "SITES_FILE": str(tmp_path / "sites.json"), "ALERT_WEBHOOK_URL": webhook.url,
    }  # fmt: skip


@pytest.fixture
def monitor(env: dict[str, str]) -> Run:
    def run(*args: str, **more: str) -> subprocess.CompletedProcess[str]:
        command = ["monitor", *args, "-s", "MONITOR_DISK_FREE_BYTES=1"]
        return warm.run(command, env={**env, **more}, timeout=120, text=True)

    return run


def test_a_look_says_what_is_wrong_and_what_explains_it(monitor: Run, webhook: Receiver) -> None:
    fine = monitor()
    assert (fine.returncode, fine.stdout) == (0, ""), fine.stderr
    assert "Nothing is wrong so far: no worker has visited a site yet." in fine.stderr
    wrong = monitor(ARTICLE_STORE="http://127.0.0.1:1")
    assert wrong.returncode == 1
    assert "away" in wrong.stdout and "article store" in wrong.stdout
    assert "away: see scrapy doctor" in wrong.stderr
    [row] = map(
        json.loads, monitor("--json", ARTICLE_STORE="http://127.0.0.1:1").stdout.splitlines()
    )
    assert (row["kind"], row["subject"], row["severity"]) == ("away", "article store", "critical")
    assert len(webhook.alerts) == 1, "one incident, one alert"


def test_a_look_that_lost_its_redis_is_no_content_one(monitor: Run) -> None:
    """As by cron, which has no variables: an embedded Redis that nobody uses is always well."""
    lost = monitor(REDIS_URL="")
    assert lost.returncode == 1 and "REDIS_URL is not set" in lost.stderr, lost.stderr


def test_a_redis_that_is_away_is_exit_code_1(monitor: Run, webhook: Receiver) -> None:
    done = monitor(REDIS_URL="redis://127.0.0.1:1/0")
    assert done.returncode == 1 and "away" in done.stdout and "Traceback" not in done.stderr
    assert webhook.alerts[0]["incidents"][0]["subject"] == "redis"


def test_a_service_tells_what_changes_until_it_is_ended(
    env: dict[str, str], tmp_path: Path, webhook: Receiver
) -> None:
    log = tmp_path / "log"
    with log.open("wb") as file:
        process = warm.popen(
            ["monitor", "--every", "1", "-s", "MONITOR_DISK_FREE_BYTES=1"],
            env={**env, "ARTICLE_STORE": "http://127.0.0.1:1"}, stdout=file, stderr=file,
        )  # fmt: skip
    try:
        until(lambda: webhook.alerts, "an alert", 60)
        until(lambda: "a part does not answer: article store" in log.read_text(), "its line", 60)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    finally:
        if process.poll() is None:
            process.kill()
    assert len(webhook.alerts) == 1


@pytest.mark.parametrize("command", [["serve", "--port", "0"], ["fleet", "watch"]], ids=" ".join)
def test_it_looks_inside_other_services_when_the_setting_says_so(
    env: dict[str, str], tmp_path: Path, webhook: Receiver, command: list[str]
) -> None:
    env |= {"ARTICLE_STORE": "http://127.0.0.1:1", "FLEET_MONITOR_S": "1"}
    log = tmp_path / "log"
    with log.open("wb") as file:
        process = warm.popen(command, env=env, stdout=file, stderr=file)
    try:
        until(lambda: webhook.alerts, f"an alert: {log.read_text()}", 60)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0, log.read_text()
    finally:
        if process.poll() is None:
            process.kill()
    [alert] = webhook.alerts
    assert [one["subject"] for one in alert["incidents"]] == ["article store"]
    assert "Traceback" not in log.read_text()


@pytest.mark.parametrize("command", [["serve", "--port", "0"], ["fleet", "watch"]], ids=" ".join)
def test_an_interval_that_is_none_is_said(env: dict[str, str], command: list[str]) -> None:
    done = warm.run(command, env={**env, "FLEET_MONITOR_S": "often"}, timeout=60, text=True)
    assert done.returncode == 2 and "FLEET_MONITOR_S" in done.stderr, done.stderr
    assert "'often'" in done.stderr and "Traceback" not in done.stderr


def test_a_test_alert_goes_by_every_way(monitor: Run, webhook: Receiver) -> None:
    done = monitor("test", ALERT_SLACK_URL="http://127.0.0.1:1/x")
    assert done.returncode == 1
    assert [line.split()[:2] for line in done.stdout.splitlines()[1:]] == [
        ["webhook", "sent"], ["slack", "127.0.0.1"],
    ]  # fmt: skip
    assert webhook.alerts[0]["text"] == "a test of the alerts"
    none = monitor("test", ALERT_WEBHOOK_URL="")
    assert none.returncode == 1 and "no way is set" in none.stderr


async def test_the_mail_server_is_read_from_the_environment(
    monitor: Run, mailbox: Any, tmp_path: Path
) -> None:
    """As the units have it in their EnvironmentFile; and what is kept for how long."""
    env = {
        "ALERT_WEBHOOK_URL": "",
        "ALERT_MAIL_TO": "desk@a.vn",
        "MAIL_HOST": "127.0.0.1",
        "MAIL_PORT": str(mailbox.port),
        "MAIL_FROM": "crawler@a.vn",
    }
    done = await asyncio.to_thread(monitor, "test", **env)
    assert done.returncode == 0, done.stderr
    [mail] = mailbox.mails
    assert (mail["To"], mail["From"]) == ("desk@a.vn", "crawler@a.vn")


@pytest.mark.parametrize(
    "name",
    [
        "VERSION_KEEP_DAYS",
        "RAW_KEEP_DAYS",
        "RAW_UNREFERENCED_KEEP_DAYS",
        "FINISHED_KEEP_DAYS",
        "LLM_PRICE_IN",
        "LLM_PRICE_OUT",
        "MAIL_USER",
        "MAIL_TLS",
        "MAIL_SSL",
    ],
)
def test_what_services_need_is_read_from_the_environment(env: dict[str, str], name: str) -> None:
    done = warm.run(["settings", "--get", name], env={**env, name: "17"}, timeout=60, text=True)
    assert done.stdout == "17\n", done.stderr


def test_four_weeks_are_preloaded(monitor: Run, tmp_path: Path) -> None:
    async def stored() -> None:
        store = LocalStore(tmp_path / "articles.db")
        at = datetime.now(UTC) - timedelta(days=2)
        one = Article("0" * 32, "https://a.vn/1", "a.vn", "Tin", "Nội dung", published=at)
        await store.put([one])
        await store.close()

    missing = monitor("preload")
    assert missing.returncode == 1 and "no articles stored yet" in missing.stderr
    asyncio.run(stored())
    done = monitor("preload")
    assert (done.returncode, done.stdout) == (0, "1 article of 1 site; 1 hour not known.\n")
    assert json.loads(monitor("preload", "--json").stdout) == {
        "sites": 1,
        "articles": 1,
        "hours": 0,
    }


@pytest.mark.parametrize(
    ("args", "env", "said"),
    [
        (["nonsense"], {}, "unknown verb"),
        (["look", "now"], {}, "takes no now"),
        (["test", "--every", "5"], {}, "--every is an option of look"),
        (["--every", "0"], {}, "--every is an option of look, from 1"),
        ([], {"ALERT_MAIL_TO": "nobody"}, "ALERT_MAIL_TO: nobody is no address"),
        ([], {"ALERT_TELEGRAM_CHAT": "5"}, "variable ALERT_TELEGRAM_TOKEN is not"),
    ],
)
def test_wrong_use_is_one_line(
    monitor: Run, args: list[str], env: dict[str, Any], said: str
) -> None:
    done = monitor(*args, **env)
    assert done.returncode == 2 and said in done.stderr, done.stderr
    assert "Traceback" not in done.stderr
