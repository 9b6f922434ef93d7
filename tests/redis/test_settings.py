"""Scrapy's settings of politeness keep their meaning, for the fleet: a test for each."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest
from scrapy.settings import Settings

from newscrawler import settings as defaults
from newscrawler.crawl import opening, preflight, site_choice
from newscrawler.crawl import services as services_module
from newscrawler.discovery.sites import Site, Sites
from newscrawler.fleet.identity import machine, worker_id
from newscrawler.fleet.registry import Beat, Registry
from newscrawler.frontier.queue import Frontier, RobotsAnswer
from newscrawler.items import Kind
from newscrawler.web.robots import RobotsRules
from tests.redis.helpers import advance, done, ended, link, opens_in

SECOND, HOUR = 1000, 3_600_000
HOST = "127.0.0.9:8080"
RULES = b"User-agent: newscrawler\nDisallow: /ours\n\nUser-agent: other\nDisallow: /theirs\n"


def settings(**changes: Any) -> Settings:
    made = Settings()
    made.setmodule(defaults, priority="project")
    made.setdict({"ROBOTSTXT_OBEY": False, **changes}, priority="cmdline")
    return made


class Fleet:
    """Two workers of one configuration, a clock that can be moved, one site."""

    def __init__(self, r: Any, conf: Settings, site: Site) -> None:
        self.r, self.conf = r, conf
        self.workers = [
            Frontier(r, opening.frontier_config(conf, loopback_only=True), f"w{i}")
            for i in range(2)
        ]
        self.policies = site_choice.domain_policies(Sites([site]), conf)
        self.n = 0

    @classmethod
    async def open(cls, r: Any, site_fields: dict[str, Any] | None = None, **changes: Any) -> Fleet:
        site = Site(
            id="a.vn", name="a", home=f"http://{HOST}/", hosts=(HOST,), **(site_fields or {})
        )
        fleet = cls(r, settings(**changes), site)
        for worker in fleet.workers:
            await worker.open()
            await worker.put_domains(fleet.policies)
        return fleet

    async def delay_after(self, latency_ms: float = 50, status: int = 200) -> int:
        """Fetches one page with one worker; the delay that the other one then has to wait, ms."""
        self.n += 1
        first, second = self.workers[self.n % 2], self.workers[(self.n + 1) % 2]
        await first.add([link(f"/{self.n}-{i}", HOST) for i in range(2)])
        await advance(self.r, HOUR)
        (lease,) = (await first.step(1)).leases
        await first.step(0, [done(lease)], [ended(lease, status, latency_ms)])
        assert (await second.step(1)).leases == []
        return round(await opens_in(second, HOST))


async def test_download_delay_is_kept_between_any_two_workers(r: Any) -> None:
    fleet = await Fleet.open(r, DOWNLOAD_DELAY=7, AUTOTHROTTLE_ENABLED=False)
    assert 6900 < await fleet.delay_after() <= 7001


async def test_download_delay_is_the_floor_under_a_sites_own(r: Any) -> None:
    fleet = await Fleet.open(r, {"delay_s": 9.0}, DOWNLOAD_DELAY=7, AUTOTHROTTLE_ENABLED=False)
    assert 8900 < await fleet.delay_after() <= 9001


async def test_autothrottle_enabled(r: Any) -> None:
    fleet = await Fleet.open(
        r, DOWNLOAD_DELAY=1, AUTOTHROTTLE_ENABLED=True, AUTOTHROTTLE_START_DELAY=0
    )
    assert 3900 < await fleet.delay_after(latency_ms=4000) <= 4001
    await r.flushall()
    fleet = await Fleet.open(
        r, DOWNLOAD_DELAY=1, AUTOTHROTTLE_ENABLED=False, AUTOTHROTTLE_START_DELAY=30
    )
    assert 900 < await fleet.delay_after(latency_ms=4000) <= 1001


async def test_autothrottle_start_delay(r: Any) -> None:
    fleet = await Fleet.open(r, DOWNLOAD_DELAY=1, AUTOTHROTTLE_START_DELAY=40)
    assert 19_900 < await fleet.delay_after(latency_ms=10) <= 20_006, (
        "(40 s + 10 ms) / 2: Scrapy's formula"
    )


async def test_autothrottle_max_delay(r: Any) -> None:
    fleet = await Fleet.open(r, DOWNLOAD_DELAY=1, AUTOTHROTTLE_MAX_DELAY=6)
    assert 5900 < await fleet.delay_after(latency_ms=25_000) <= 6001


async def test_autothrottle_target_concurrency(r: Any) -> None:
    fleet = await Fleet.open(
        r, DOWNLOAD_DELAY=1, AUTOTHROTTLE_START_DELAY=0, AUTOTHROTTLE_TARGET_CONCURRENCY=2.0
    )
    assert 3900 < await fleet.delay_after(latency_ms=8000) <= 4001


async def test_autothrottle_never_goes_under_download_delay(r: Any) -> None:
    fleet = await Fleet.open(r, DOWNLOAD_DELAY=5, AUTOTHROTTLE_START_DELAY=0)
    assert 4900 < await fleet.delay_after(latency_ms=10) <= 5001


async def test_autothrottle_by_scrapys_own_formula(r: Any) -> None:
    """The same latencies through Scrapy's AutoThrottle and through the gate
    give the same delays."""
    from scrapy.extensions.throttle import AutoThrottle
    from scrapy.http import Request, Response
    from scrapy.utils.test import get_crawler

    conf = {
        "DOWNLOAD_DELAY": 1,
        "AUTOTHROTTLE_ENABLED": True,
        "AUTOTHROTTLE_START_DELAY": 3,
        "AUTOTHROTTLE_MAX_DELAY": 8,
    }
    theirs = AutoThrottle(get_crawler(settings_dict={**conf, "TWISTED_REACTOR_ENABLED": False}))
    theirs.mindelay, theirs.maxdelay, theirs.target_concurrency = 1.0, 8.0, 1.0

    class Slot:
        delay = 3.0

    fleet = await Fleet.open(r, **conf)
    for latency_s, status in [
        (0.5, 200),
        (4.0, 200),
        (0.2, 500),
        (0.9, 404),
        (30.0, 200),
        (0.1, 200),
        (6.0, 500),
    ]:
        theirs._adjust_delay(
            Slot, latency_s, Response("http://x", status=status, request=Request("http://x"))
        )  # type: ignore[arg-type]
        ours = await fleet.delay_after(latency_s * 1000, status)
        assert Slot.delay * 1000 - 100 < ours <= Slot.delay * 1000 + 2, (latency_s, status)


@pytest.mark.parametrize("obey", [True, False])
async def test_robotstxt_obey(r: Any, obey: bool) -> None:
    fleet = await Fleet.open(r, ROBOTSTXT_OBEY=obey)
    await fleet.workers[0].add([link("/1", HOST)])
    (lease,) = (await fleet.workers[0].step(1)).leases
    assert (lease.kind is Kind.ROBOTS) == obey


@pytest.mark.parametrize(
    ("agent", "forbidden"), [("newscrawler", "/ours"), ("other", "/theirs"), ("third", None)]
)
async def test_robotstxt_user_agent(r: Any, agent: str, forbidden: str | None) -> None:
    """The group of that token is ours: read by one worker, obeyed by the other."""
    fleet = await Fleet.open(r, ROBOTSTXT_OBEY=True, ROBOTSTXT_USER_AGENT=agent)
    first, second = fleet.workers
    await first.add([link("/1", HOST)])
    (robots,) = (await first.step(1)).leases
    await first.step(0, [done(robots, robots=RobotsAnswer(200, RULES))], [ended(robots)])
    entry = await second.robots(HOST)
    assert entry is not None
    rules = RobotsRules.parse_answer(entry.status, entry.body, fleet.conf["ROBOTSTXT_USER_AGENT"])
    for path in ("/ours", "/theirs", "/free"):
        assert rules.allowed(f"http://{HOST}{path}") == (path != forbidden)


def test_another_robots_parser_is_refused_rather_than_ignored(tmp_path: Path) -> None:
    conf = settings(ROBOTSTXT_PARSER="scrapy.robotstxt.PythonRobotParser", DATA_DIR=str(tmp_path))
    with pytest.raises(opening.StartRefused, match="ROBOTSTXT_PARSER"):
        preflight.check(conf, {})


async def test_caps_quota_and_groups_come_from_settings(r: Any) -> None:
    fleet = await Fleet.open(
        r, DOWNLOAD_DELAY=1, FRONTIER_REQUESTS_PER_MINUTE=30, FRONTIER_BYTES_PER_MINUTE=10**6,
        FRONTIER_PAGES_PER_DAY=4, FRONTIER_PATTERN_BUDGET=6,
    )  # fmt: skip
    conf = fleet.workers[0].config
    assert (conf.requests_per_minute, conf.bytes_per_minute, conf.pattern_budget) == (30, 10**6, 6)
    assert [policy.pages_per_day for policy in fleet.policies] == [4]
    own = Site(
        id="b.vn",
        name="b",
        home="https://b.vn/",
        hosts=("b.vn", "m.b.vn"),
        pages_per_day=9,
        group="vccorp",
    )
    free = Site(id="c.vn", name="c", home="https://c.vn/", hosts=("c.vn", "d.c.vn"))
    found = {
        by: [
            (p.domain, p.group)
            for p in site_choice.domain_policies(Sites([own, free]), settings(FRONTIER_GROUP_BY=by))
        ]
        for by in ("", "site", "ip")
    }
    assert found[""] == [("b.vn", "vccorp"), ("m.b.vn", "vccorp"), ("c.vn", ""), ("d.c.vn", "")]
    assert found["site"] == [
        ("b.vn", "vccorp"),
        ("m.b.vn", "vccorp"),
        ("c.vn", "c.vn"),
        ("d.c.vn", "c.vn"),
    ]
    assert found["ip"] == [
        ("b.vn", "vccorp"),
        ("m.b.vn", "vccorp"),
        ("c.vn", None),
        ("d.c.vn", None),
    ]
    assert site_choice.domain_policies(Sites([own]), fleet.conf)[0].pages_per_day == 9, (
        "the site's own comes first"
    )
    with pytest.raises(ValueError, match="FRONTIER_GROUP_BY is 'host'"):
        site_choice.domain_policies(Sites([own]), settings(FRONTIER_GROUP_BY="host"))


async def test_group_by_ip_asks_where_names_lead(r: Any) -> None:
    conf = settings(
        FRONTIER_GROUP_BY="ip", RESOLVE_OVERRIDE="a.vn=127.0.0.5, b.vn=127.0.0.5, c.vn=127.0.0.6"
    )
    sites = Sites(
        [Site(id=d, name=d, home=f"https://{d}/", hosts=(d,)) for d in ("a.vn", "b.vn", "c.vn")]
    )
    sites = sites.replaced(
        [
            Site(
                id="e", name="e", home="http://127.0.0.6:1/", hosts=("127.0.0.6:1", "127.0.0.7:1")
            ),
            Site(id="f", name="f", home="https://nowhere.invalid/", hosts=("nowhere.invalid",)),
        ]
    )
    policies = await site_choice.with_addresses(site_choice.domain_policies(sites, conf), conf)
    assert {p.domain: p.group for p in policies} == {
        "a.vn": "ip:127.0.0.5",
        "b.vn": "ip:127.0.0.5",
        "c.vn": "ip:127.0.0.6",
        "127.0.0.6:1": "ip:127.0.0.6",
        "127.0.0.7:1": "",
        "nowhere.invalid": None,
    }


def test_addresses_join_groups_through_a_third() -> None:
    from newscrawler.crawl.gate_groups import by_address
    from newscrawler.frontier.types import DomainPolicy

    rows = [DomainPolicy(d, d) for d in ("a", "b", "c", "d", "e")] + [
        DomainPolicy("f", "f", group="own")
    ]
    found = by_address(rows, {"a": {"3", "9"}, "b": {"9", "2"}, "c": {"2"}, "d": {"5"}, "f": {"2"}})
    assert [(row.domain, row.group) for row in found] == [
        ("a", "ip:2"), ("b", "ip:2"), ("c", "ip:2"), ("d", ""), ("e", None), ("f", "own"),
    ]  # fmt: skip


async def test_a_run_of_a_few_sites_leaves_the_others_to_a_run_beside_it(
    r: Any, redis_server: str
) -> None:
    """Both in one data folder: the second run must not stop the first from fetching its sites."""
    sites = Sites([Site(id=i, name=i, home=f"http://{i}/", hosts=(i,)) for i in ("a.vn", "b.vn")])
    registry = Registry(r)

    def beat(worker: str) -> Beat:
        return Beat(worker, "here", os.getpid(), beat_ms=round(time.time() * 1000))

    def enabled() -> dict[str, bool]:
        services = services_module.Services(settings(), worker_id("second"), sites, ["a.vn"], False)
        services.redis_url = redis_server
        return {policy.site: policy.enabled for policy in services.policies()}

    alone = {"a.vn": True, "b.vn": False}
    assert enabled() == alone
    await registry.beat(beat(worker_id("second")))
    assert enabled() == alone, "its own beat is not another's"
    dead = f"{machine()}-4194305-full"  # above the highest pid that Linux gives
    await registry.beat(beat(dead))
    assert enabled() == alone, "a worker that was killed holds no sites"
    first = worker_id("first")
    await registry.beat(beat(first))
    assert enabled() == {"a.vn": True, "b.vn": True}
    await registry.leave(first)
    assert enabled() == alone


async def test_the_report_says_of_a_site_left_out_that_it_is_not_in_this_run(r: Any) -> None:
    sites = Sites([Site(id=i, name=i, home=f"http://{i}/", hosts=(i,)) for i in ("a.vn", "b.vn")])
    conf = settings()
    worker = Frontier(r, opening.frontier_config(conf, loopback_only=False), "w")
    await worker.open()
    await worker.put_domains(site_choice.domain_policies(sites, conf, chosen={"a.vn"}))
    notes = {row["site"]: row["note"] for row in (await worker.report())["domains"]}
    assert notes["a.vn"] != notes["b.vn"] == "not in this run"
