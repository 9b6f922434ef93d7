"""The monitor beyond a day's faults (tests/crawl/test_monitor_day.py): Redis away, two monitors, a
receiver that is away, suites of the operator's, the weeks before from the article store."""

from __future__ import annotations

import asyncio
import json
import tempfile
import time
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from scrapy.settings import Settings
from spidermon import MonitorSuite
from spidermon.contrib.scrapy import monitors as stock

from newscrawler.crawl import monitoring
from newscrawler.crawl.alert_ways import ways_of
from newscrawler.crawl.monitoring import AwayFile, Monitor, monitor_for_ever, preload
from newscrawler.fleet.history import HOUR_MS, History
from newscrawler.fleet.incidents import ALERTS, GIVEN_UP_MS
from newscrawler.fleet.ledger import LEADER, Ledger, Wanted
from newscrawler.fleet.registry import Beat, Registry, SiteDelta, worker_key
from newscrawler.frontier import connect
from newscrawler.items import Article
from newscrawler.store.sqlite import LocalStore
from tests.fixtures_redis import until
from tests.fixtures_webhook import Receiver


class StockSuite(MonitorSuite):
    """Of Spidermon's own monitors, as for any Scrapy project."""

    monitors = [stock.ItemCountMonitor, stock.UnwantedHTTPCodesMonitor]


@pytest.fixture
def settings(tmp_path: Path, webhook: Receiver) -> Settings:
    made = Settings()
    made.setmodule("newscrawler.settings", priority="project")
    (tmp_path / "sites.json").write_text(
        json.dumps({"sites": [{"id": "a.vn", "home": "https://a.vn/"}]})
    )
    values = {
        "DATA_DIR": str(tmp_path), "SITES_FILE": str(tmp_path / "sites.json"), "SEMANTIC": "off",
        "ALERT_WEBHOOK_URL": webhook.url, "MONITOR_DISK_FREE_BYTES": 1, "FRONTIER_SHARDS": 1,
    }  # fmt: skip
    for name, value in values.items():
        made.set(name, value, priority="cmdline")
    return made


def monitor_of(settings: Settings, client: Any) -> Monitor:
    return Monitor(settings, client, ways_of(settings), lambda: None)


def told(webhook: Receiver) -> list[tuple[str, str]]:
    return [
        (alert["event"].removeprefix("fleet."), f"{alert['kind']}/{one['subject']}")
        for alert in webhook.alerts
        for one in alert["incidents"]
    ]


async def test_a_new_fleet_is_well(r: Any, settings: Settings, webhook: Receiver) -> None:
    report = await monitor_of(settings, r).round()
    assert report.is_well and webhook.alerts == []
    assert (await monitor_of(settings, r).incidents.last_look())["at_ms"] == report.at_ms


async def test_a_fleet_that_nothing_ever_answered_is_told(
    r: Any, settings: Settings, webhook: Receiver
) -> None:
    """Too few visits for the share that fails, and "Nothing is wrong." was said."""
    monitor, registry = monitor_of(settings, r), Registry(r)
    assert (await monitor.round()).is_unused
    failed = SiteDelta(pages=2, outcomes=Counter({"RETRY(dns)": 2}), last_error="RETRY(dns)")
    await registry.add({}, {"a.vn": failed}, 0)
    report = await monitor.round()
    assert report.is_well and not report.is_unused, "two visits: its sites may be away"
    await registry.add({}, {"b.vn": replace(failed, pages=1)}, 0)
    [incident] = (await monitor.round()).open
    assert (incident.kind, incident.subject) == ("no_answer", "fleet")
    assert incident.reason.startswith("3 visits of 2 sites since the start, and no answer: RETRY")
    answered = SiteDelta(pages=1, outcomes=Counter({"DONE": 1}), last_fetch_ms=report.at_ms)
    await registry.add({}, {"b.vn": answered}, 0)
    assert (await monitor.round()).is_well
    assert told(webhook) == [("raised", "no_answer/fleet"), ("recovered", "no_answer/fleet")]


async def test_a_fleet_that_nobody_watches_is_told(
    r: Any, settings: Settings, webhook: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The watch was killed. One that is started anew leads within seconds, and is no news."""
    monitor, ledger = monitor_of(settings, r), Ledger(r, "watch")
    await monitor.round()
    assert (await monitor.facts()).is_watched is None, "no fleet is kept"
    await ledger.want(Wanted(least=0, most=2), 1)
    await ledger.lead()
    assert (await monitor.facts()).is_watched
    await r.delete(LEADER)  # its lock runs out
    now_ms = (await monitor.round()).at_ms
    assert told(webhook) == [], "not yet"
    at = [now_ms + 60_000]

    async def later() -> int:
        return at[0]

    monkeypatch.setattr(monitor.operator, "now_ms", later)
    [incident] = (await monitor.round()).open
    assert (incident.kind, incident.subject) == ("nobody_watches", "fleet")
    assert webhook.alerts[0]["explained_by"].startswith("scrapy fleet watch")
    await ledger.lead()
    assert (await monitor.round()).is_well
    assert told(webhook) == [
        ("raised", "nobody_watches/fleet"),
        ("recovered", "nobody_watches/fleet"),
    ]
    await ledger.resign()
    await ledger.want(Wanted(), 2)
    at[0] += 600_000
    assert (await monitor.round()).is_well, "the operator ended it"


async def test_silence_while_redis_refused_writes_is_no_death(
    r: Any, settings: Settings, webhook: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(monitoring, "_PAUSE_S", 0.01)
    monitor, registry = monitor_of(settings, r), Registry(r)
    monkeypatch.setattr(monitor._ledger, "up_s", always_up)
    await monitor.round()
    await registry.beat(Beat("host-1", "host", 1, beat_ms=int(time.time() * 1000)))
    await r.config_set("maxmemory", "1")
    try:
        assert [one.kind for one in (await monitor.round()).open] == ["away"]
    finally:
        await r.config_set("maxmemory", "0")
    await r.delete(worker_key("host-1"))  # what its expiry did meanwhile
    assert (await monitor.round()).is_well
    monkeypatch.setattr(monitoring, "GRACE_S", 0)
    assert [one.kind for one in (await monitor.round()).open] == ["worker_gone"]


async def always_up() -> float:
    return float("inf")


async def test_a_redis_that_is_away_is_told_once_by_a_machine(
    r: Any, settings: Settings, webhook: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(monitoring, "_PAUSE_S", 0.01)
    away: Any = connect("redis://127.0.0.1:1/0", single=False)
    for _ in range(3):  # each as by cron
        report = await monitor_of(settings, away).round()
        assert [one.kind for one in report.open] == ["away"]
    assert told(webhook) == [("raised", "away/redis")]
    assert "127.0.0.1:1" in webhook.alerts[0]["incidents"][0]["reason"]
    assert (await monitor_of(settings, r).round()).is_well
    await monitor_of(settings, r).round()
    assert told(webhook)[1:] == [("recovered", "away/redis")]


async def test_a_password_is_in_no_message(
    settings: Settings, webhook: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(monitoring, "_PAUSE_S", 0.01)
    away: Any = connect("redis://:s3cret-word@127.0.0.1:1/0", single=False)
    report = await monitor_of(settings, away).round()
    assert "s3cret-word" not in str(report) + str(webhook.alerts)


async def test_two_monitors_tell_once(
    r: Any, redis_server: str, settings: Settings, webhook: Receiver
) -> None:
    settings.set("SITES_FILE", "/nowhere/sites.json", priority="cmdline")
    clients = [connect(redis_server, single=False) for _ in range(4)]
    try:
        for _ in range(2):
            await asyncio.gather(*(monitor_of(settings, c).round() for c in clients))
        assert told(webhook) == [("raised", "away/sites file")]
    finally:
        for client in clients:
            await client.aclose()


async def test_a_receiver_that_is_away_gets_it_later(
    r: Any, settings: Settings, webhook: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    webhook.status = lambda body: 503
    settings.set("SITES_FILE", "/nowhere/sites.json", priority="cmdline")
    monitor = monitor_of(settings, r)
    report = await monitor.round()
    assert len(report.undelivered) == 1 and len(webhook.alerts) == 1
    await monitor.round()
    assert len(webhook.alerts) == 1, "not before its time"
    webhook.status = lambda body: 204
    [waiting] = await monitor.incidents.waiting()
    waiting.next_ms = 0
    await r.hset("{fleet}:alerts", waiting.id, json.dumps({"alert": waiting.alert, "tries": 1}))
    report = await monitor.round()
    assert report.undelivered == [] and webhook.alerts[0] == webhook.alerts[1]
    assert len(report.open) == 1 and not report.is_well


async def test_stock_monitors_run_over_the_fleet(
    r: Any, settings: Settings, webhook: Receiver
) -> None:
    path = "tests.unit.crawl.test_monitoring.StockSuite"
    settings.set("FLEET_MONITOR_SUITES", [path], priority="cmdline")
    settings.set("SPIDERMON_MIN_ITEMS", 3, priority="cmdline")
    settings.set("SPIDERMON_UNWANTED_HTTP_CODES", {"500": 2}, priority="cmdline")
    now = int((await r.time())[0]) * 1000
    stats = {"article/new": 2, "page/status/500": 3, "page/status/200": 9}
    delta = SiteDelta(pages=12, new=2, last_fetch_ms=now)
    await Registry(r).add(stats, {"a.vn": delta}, now)
    report = await monitor_of(settings, r).round()
    assert len(report.open) == 2 and {one.kind for one in report.open} == {"monitor"}
    reasons = " ".join(one.reason for one in report.open)
    assert "'>=' to '3.0'. Current value: '2.0'" in reasons and "status code=500" in reasons
    await Registry(r).add({"article/new": 5, "page/status/200": 900}, {}, now)
    settings.set("SPIDERMON_UNWANTED_HTTP_CODES", {"500": 20}, priority="cmdline")
    await monitor_of(settings, r).round()
    await until(lambda: told(webhook), "an alert")
    assert {event for event, _ in told(webhook)} == {"raised"}, "well again, and not for long yet"
    assert all(one.well_ms for one in await monitor_of(settings, r).incidents.open())


async def test_weeks_before_come_from_the_article_store(
    r: Any, settings: Settings, tmp_path: Path
) -> None:
    now = datetime(2026, 11, 18, 12, 30, tzinfo=UTC)
    store = LocalStore(tmp_path / "articles.db")
    articles = []
    for number, back in enumerate((1, 1, 24, 27 * 24, 40 * 24)):
        at = now - timedelta(hours=back)
        articles.append(
            Article(f"{number:032x}", f"https://a.vn/{number}", "a.vn", f"Tin {number}", f"x{number}", published=at)
        )  # fmt: skip
    await store.put(articles)
    await store.close()
    history, now_ms = History(r), round(now.timestamp() * 1000)
    assert await preload(settings, history, now_ms) == (1, 4, 3)
    hour = now_ms // HOUR_MS
    assert (await history.hours(["a.vn"], now_ms))["a.vn"] == {
        hour - 1: 2, hour - 24: 1, hour - 27 * 24: 1,
    }  # fmt: skip
    assert await preload(settings, history, now_ms) == (1, 4, 0)


async def test_a_service_lives_through_a_look_that_fails(
    r: Any, settings: Settings, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monitor, end, reports = monitor_of(settings, r), asyncio.Event(), list[Any]()
    facts, calls = monitor.facts, list[int]()

    async def first_fails() -> Any:
        calls.append(1)
        if len(calls) == 1:
            raise RuntimeError("a fault of ours")
        return await facts()

    monkeypatch.setattr(monitor, "facts", first_fails)
    service = asyncio.ensure_future(monitor_for_ever(monitor, 0.01, reports.append, end))
    await until(lambda: reports, "a look after the one that failed", 30)
    end.set()
    await service
    assert "A look of the monitor failed, goes on" in caplog.text


async def test_a_monitor_without_ways_leaves_alerts_to_those_that_have_some(
    r: Any, settings: Settings, webhook: Receiver
) -> None:
    settings.set("SITES_FILE", "/nowhere/sites.json", priority="cmdline")
    mute = Monitor(settings, r, {}, lambda: None)
    report = await mute.round()
    assert len(report.told) == 1 and report.undelivered == [] and webhook.alerts == []
    assert (await mute.round()).told == [], "it says what is new"
    await monitor_of(settings, r).round()
    assert told(webhook) == [("raised", "away/sites file")]
    await r.hdel("{fleet}:incidents", "away/sites file")
    await mute.round()
    [waiting] = await mute.incidents.waiting()
    waiting.alert["at_ms"] -= GIVEN_UP_MS + 1
    row = {"alert": waiting.alert, "tries": 0, "next_ms": 0}
    await r.hset(ALERTS, waiting.id, json.dumps(row))
    await mute.round()
    assert await mute.incidents.waiting() == [], "kept for a day, not for ever"


@pytest.mark.parametrize("has_temp", [True, False], ids=["temporary-file", "memory"])
async def test_a_data_folder_that_cannot_be_written_tells_once_too(
    r: Any, settings: Settings, webhook: Receiver, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch, has_temp: bool,
) -> None:  # fmt: skip
    monkeypatch.setattr(monitoring, "_PAUSE_S", 0.01)
    (tmp_path / "monitor-redis.json").mkdir()  # no file can be put in its place
    (tmp_path / "temp").mkdir()
    temp = tmp_path / ("temp" if has_temp else "none")
    monkeypatch.setattr(tempfile, "tempdir", str(temp))
    away: Any = connect("redis://127.0.0.1:1/0", single=False)
    service = monitor_of(settings, away)
    for _ in range(3):
        monitor = monitor_of(settings, away) if has_temp else service
        await monitor.round()
    assert told(webhook) == [("raised", "away/redis")]
    for _ in range(2):
        monitor = monitor_of(settings, r)
        if not has_temp:  # one process, as a service
            monitor._away = service._away
        assert (await monitor.round()).is_well
    assert told(webhook)[1:] == [("recovered", "away/redis")]


async def test_a_receiver_that_is_away_gets_that_redis_is_back(
    r: Any, settings: Settings, webhook: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(monitoring, "_PAUSE_S", 0.01)
    away: Any = connect("redis://127.0.0.1:1/0", single=False)
    await monitor_of(settings, away).round()
    await Monitor(settings, r, {}, lambda: None).round()  # has nobody to tell
    webhook.status = lambda body: 503
    await monitor_of(settings, r).round()
    webhook.status = lambda body: 204
    for _ in range(2):
        await monitor_of(settings, r).round()
    assert [event for event, _ in told(webhook)] == ["raised", "recovered", "recovered"]


def test_a_row_that_cannot_be_deleted_is_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "temp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temp"))
    path = tmp_path / "data" / "away.json"
    file = AwayFile(path)
    file.write({"since_ms": 1, "done": []})
    assert AwayFile(path).read() == {"since_ms": 1, "done": []}
    path.unlink()
    path.mkdir()  # neither deleted as a file nor replaced by one
    file.forget()
    assert AwayFile(path).read() is None and list((tmp_path / "temp").iterdir())
    path.rmdir()
    file.write({"since_ms": 2, "done": []})
    assert AwayFile(path).read() == {"since_ms": 2, "done": []}
    assert list((tmp_path / "temp").iterdir()) == []
    assert [one.name for one in path.parent.iterdir()] == ["away.json"]
