"""Several workers on one Redis of the test's own, what kills them, and what a judge
needs to know of it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import os
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any

import redis as redis_py

from newscrawler.discovery.sites import Sites
from newscrawler.frontier import connect, keys, records, redis_server
from newscrawler.frontier.operator import Operator
from newscrawler.frontier.queue import Counts, DomainPolicy, Frontier, FrontierConfig
from newscrawler.frontier.records import LeaseEntry
from newscrawler.items import Link, Outcome
from newscrawler.rawstore import RawStore
from tests.crawl.harness import Finished, Running, Scrapy, until
from tests.newsweb.process import NewswebProcess
from tests.redis.helpers import check

#: Seconds that redis-server may take to answer after a start, the loading of its file included.
UP_S = 30.0


def free_port() -> int:
    """Below the range that clients' ends of connections come from, so that it is still free after a
    restart; a cluster's node takes the port 10,000 higher as well."""
    while True:
        port = random.SystemRandom().randrange(12_000, 22_000)
        with contextlib.suppress(OSError), socket.socket() as sock, socket.socket() as bus:
            sock.bind(("127.0.0.1", port))
            bus.bind(("127.0.0.1", port + 10_000))
            return port


class RedisServer:
    """A redis-server with an append-only file, on a port of its own: to be
    killed and started again."""

    def __init__(self, folder: Path, **options: Any) -> None:
        """``options``: further settings of redis.conf, underscores for hyphens."""
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.options = folder, options
        self.port = free_port()
        self.process: subprocess.Popen[bytes] | None = None
        self.start()

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def start(self) -> None:
        settings: dict[str, Any] = {
            "port": self.port,
            "bind": "127.0.0.1",
            "dir": self.folder,
            "logfile": self.folder / "redis.log",
            "appendonly": "yes",
            "appendfsync": "everysec",
            "aof-load-truncated": "yes",
            "save": "",
            "maxmemory-policy": "noeviction",
            **{name.replace("_", "-"): value for name, value in self.options.items()},
        }
        command = [
            redis_server.find_binary(),
            *(str(p) for name, value in settings.items() for p in (f"--{name}", value)),
        ]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, start_new_session=True)
        until(
            self.is_up, f"redis-server on port {self.port}, see {self.folder / 'redis.log'}", UP_S
        )

    def is_up(self) -> bool:
        assert self.process is not None and self.process.poll() is None, (
            self.folder / "redis.log"
        ).read_text()[-800:]
        try:
            with redis_py.Redis(port=self.port, socket_timeout=2) as client:
                return bool(client.ping())
        except redis_py.RedisError:
            return False

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait(10)

    def stop(self) -> None:
        """In order: the append-only file is written and synced first."""
        if self.process is None or self.process.poll() is not None:
            return
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.kill()

    def remembered(self) -> dict[bytes, str]:
        """url id -> place, of what its file holds: read by another server from a copy,
        while this one is dead."""
        assert self.process is not None and self.process.poll() is not None
        with tempfile.TemporaryDirectory(prefix="newscrawler-aof-") as folder:
            shutil.copytree(self.folder, folder, dirs_exist_ok=True)
            copy = RedisServer(Path(folder), **self.options)
            try:
                return copy.ask(lambda frontier, client: check(client))
            finally:
                copy.stop()

    def ask(self, work: Callable[[Frontier, Any], Any], shards: int = 1) -> Any:
        """Runs ``work(frontier, client)``, a coroutine function."""
        return ask(self.url, work, shards)

    def counts(self) -> Counts:
        return self.ask(lambda frontier, client: frontier.counts())

    def leases(self) -> list[tuple[bytes, LeaseEntry]]:
        return self.ask(lambda frontier, client: Operator(client, 1).leases())

    def to_do(self) -> int:
        """URLs that are leased, queued, or tried in vain and to be tried again; not those behind a
        challenge page, which rest for hours, and not revisits."""

        async def count(frontier: Frontier, client: Any) -> int:
            n = await client.zcard(keys.deadlines(0))
            async for state in frontier.operator.states():
                n += state.queued
                stored = await client.hgetall(keys.records(0, state.domain))
                for url_id in await client.zrange(keys.due(0, state.domain), 0, -1):
                    # None: a suspect of having killed its worker, which rests
                    outcome = records.unpack_queued(url_id, state.domain, stored[url_id]).outcome
                    n += outcome in (Outcome.RETRY, None)
            return n

        return self.ask(count)


def ask(url: str, work: Callable[[Frontier, Any], Any], shards: int = 1) -> Any:
    async def run() -> Any:
        client = connect(url, single=False)
        try:
            return await work(
                Frontier(client, FrontierConfig(loopback_only=True, shards=shards), "test"), client
            )
        finally:
            await client.aclose()

    return asyncio.run(run())


class Webs:
    """One or more simulated webs as one: their sites, hits and truth together."""

    def __init__(self, folder: Path, webs: list[NewswebProcess]) -> None:
        self.webs = webs
        self.sites_file, self.selectors_dir = folder / "sites.json", folder / "selectors"
        self.selectors_dir.mkdir(parents=True)
        entries = [
            entry for web in webs for entry in json.loads(web.sites_file.read_text())["sites"]
        ]
        self.sites_file.write_text(json.dumps({"sites": entries}))
        for web in webs:
            for path in web.selectors_dir.glob("*.json"):
                shutil.copy(path, self.selectors_dir)
        self.sites = Sites.load(str(self.sites_file))

    def hits(self) -> list[dict[str, Any]]:
        return [hit for web in self.webs for hit in web.hits()]

    def hit_count(self) -> int:
        return sum(int(web.stats()["hits"]) for web in self.webs)

    def truth(self) -> list[dict[str, Any]]:
        return [row for web in self.webs for row in web.truth()]

    def articles_fetched(self, until_s: float = math.inf) -> Counter[bytes]:
        """url id -> how often its page was sent whole, of requests up to a moment (seconds since
        the epoch); every spelling of an article counts as the one URL."""
        urls = [row["url"] for row in self.truth() if row["type"] == "article"]
        wanted = {link.url_id for url in urls if isinstance(link := self.sites.identify(url), Link)}
        assert wanted
        found: Counter[bytes] = Counter()
        for hit in self.hits():
            if hit["status"] != 200 or hit["time"] > until_s:
                continue
            link = self.sites.identify(f"http://{hit['host']}{hit['path']}")
            if isinstance(link, Link) and link.url_id in wanted:
                found[link.url_id] += 1
        return found


class Fleet:
    """Worker processes of one crawl. ``toll``: url id -> how often it may be fetched
    again, as kills explain."""

    def __init__(self, scrapy: Scrapy, redis: RedisServer, workers: int) -> None:
        self.scrapy, self.redis = scrapy, redis
        self.running: list[Running] = []
        self.ended: list[Finished] = []
        self.toll: Counter[bytes] = Counter()
        self.kills = self.redis_kills = 0
        self.held: list[int] = []  # leases of each killed worker
        self.held_fetched: list[int] = []  # those of them whose page it had
        self.forgotten = 0  # fetches that a killed Redis did not remember
        for _ in range(workers):
            self.start_one()

    def start_one(self) -> None:
        self.running.append(self.scrapy.start("crawl", "news"))

    def at_work(self) -> list[Running]:
        return [
            run
            for run in self.running
            if run.process.poll() is None and "Visit ended" in run.text()
        ]

    def kill_one(self, moments: random.Random) -> None:
        """kill -9 of one that is at work, if any is. It is stopped first, for as long as it takes
        to read from Redis what it holds: no other worker can take that away meanwhile, and exactly
        that may be fetched again."""
        victim = moments.choice(self.at_work() or self.running)
        self.running.remove(victim)
        if victim.process.poll() is None:
            os.killpg(victim.process.pid, signal.SIGSTOP)
            until(lambda: is_stopped(victim.process.pid), "the worker stands still")
        mine = f"-{victim.process.pid}-"
        held = [
            (url_id, entry.fetched) for url_id, entry in self.redis.leases() if mine in entry.worker
        ]
        victim.kill()
        self.kills += 1
        self.toll.update(url_id for url_id, _ in held)
        self.held.append(len(held))
        self.held_fetched.append(sum(is_fetched for _, is_fetched in held))

    def kill_redis(self, outage_s: float, webs: Webs, delay_s: float) -> None:
        """kill -9, away for a while, started again on its file. The last things that it was told
        need not be in there: an article that was fetched, and that the file has as queued, leased
        or not at all, is fetched once more. What was granted and forgotten is fetched while Redis
        is away, and nothing of a domain is granted within its delay after the start."""
        self.redis.kill()
        places = self.redis.remembered()
        time.sleep(outage_s)  # the outage itself, not a wait for something
        began = time.time()
        self.redis.start()
        self.redis_kills += 1
        time.sleep(max(0.0, began + delay_s - time.time()))
        for url_id, fetches in webs.articles_fetched(began + delay_s).items():
            if places.get(url_id) not in ("finished", "waiting") and fetches > self.toll[url_id]:
                self.forgotten += places.get(url_id) != "leased"
                self.toll[url_id] = fetches

    def replace_ended(self) -> None:
        """One that could not start, as Redis was just away, is started again;
        anything else is a failure."""
        for run in [run for run in self.running if run.process.poll() is not None]:
            self.running.remove(run)
            text = run.text()
            assert could_not_start(run.process.returncode, text), (
                f"a worker ended by itself:\n{text[-2000:]}"
            )
            self.start_one()

    def wait(self, timeout: float) -> None:
        """Until each has ended by itself; each must end with 0, those excepted that Redis' last
        outage let not start."""
        deadline = time.monotonic() + timeout
        while self.running:
            done = self.running.pop().wait(max(1.0, deadline - time.monotonic()))
            if not could_not_start(done.returncode, done.stderr):
                assert done.returncode == 0, done.stderr[-2000:]
                self.ended.append(done)

    def interrupt(self, timeout: float = 150) -> None:
        for run in self.running:
            # one that was started while Redis was away has ended, or is about to: wait() judges it
            until(
                lambda run=run: run.process.poll() is not None or "Seeds offered" in run.text(),
                "a start that can be ended in order",
                120,
            )
            if run.process.poll() is None:
                run.interrupt()
        self.wait(timeout)

    def close(self) -> None:
        for run in self.running:
            if run.process.poll() is None:
                run.kill()


def is_stopped(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "TZ"


def could_not_start(returncode: int, text: str) -> bool:
    return returncode == 1 and "Redis does not answer" in text and "Visit ended" not in text


def hold(redis_url: str, sites: Sites, floor_s: float) -> list[str]:
    """Makes the frontier's domains and pauses them, so that a fleet can gather.
    Returns the domains."""
    site_of = {host: site.id for site in sites.enabled() for host in site.hosts}

    async def work(frontier: Frontier, client: Any) -> None:
        await frontier.open()
        await frontier.put_domains(
            [DomainPolicy(d, site_of[d], "mid", round(floor_s * 1000)) for d in site_of]
        )
        for domain in site_of:
            await frontier.operator.pause(domain)

    ask(redis_url, work)
    return list(site_of)


def let_go(redis_url: str, domains: Iterable[str]) -> None:
    async def work(frontier: Frontier, client: Any) -> None:
        for domain in domains:
            await frontier.operator.resume(domain)

    ask(redis_url, work)


#: Seconds of Retry-After that these faults of the simulated web send; its robots.txt of kind 5xx
#: says 1 as well.
RETRY_AFTER = {"429-once": 2.0, "503-once": 1.0, "robots": 1.0}


def too_soon(
    hits: Iterable[dict[str, Any]], truth: Iterable[dict[str, Any]], backoff_s: float
) -> list[str]:
    """What each host could complain of by its own clock, without any tolerance: a request sooner
    after the one before than its delay, or, where that was answered 429, with Retry-After or was
    the third failure in a row, than Retry-After or the back-off."""
    rows = list(truth)
    delays = {
        host: row["delay_s"] for row in rows if row["type"] == "site" for host in row["hosts"]
    }
    faults = {
        row["url"].partition("://")[2]: row["fault"] for row in rows if row["type"] == "fault"
    }
    by_host: dict[str, list[dict[str, Any]]] = {}
    for hit in sorted(hits, key=lambda h: h["time"]):
        by_host.setdefault(hit["host"], []).append(hit)
    found = []
    for host, visits in by_host.items():
        failures = 0  # in a row, of pages: three are the domain's
        for before, after in pairwise(visits):
            needed, status = delays[host], before["status"]
            is_robots = before["path"] == "/robots.txt"
            fault = "robots" if is_robots else faults.get(host + before["path"], "")
            if status in (0, 429, 503):
                failures += not is_robots
            elif status < 400 or status in (404, 410):
                failures = 0
            if status == 429 or (status == 503 and fault in RETRY_AFTER):
                needed = max(needed, RETRY_AFTER.get(fault, backoff_s))
            elif status in (0, 503) and not is_robots and failures >= 3:
                needed = max(needed, backoff_s)
            gap = after["time"] - before["time"]
            if gap < needed - 0.0001:  # the log has four places
                found.append(
                    f"{host} gap={gap:.4f} s, {needed} s asked: {before['path']} then {after['path']}"
                )
    return found


def backed_off(hits: Iterable[dict[str, Any]]) -> int:
    """How often a host was asked again after it had answered 429 or 503, or nothing."""
    last: dict[str, int] = {}
    n = 0
    for hit in sorted(hits, key=lambda h: h["time"]):
        n += last.get(hit["host"]) in (0, 429, 503)
        last[hit["host"]] = hit["status"]
    return n


def unreadable(articles: Iterable[Any], data: Path) -> list[str]:
    """Articles whose raw page cannot be read back; pages that forbid it
    (noarchive) were not kept."""
    raw = RawStore.open(
        str(data / "warc"), "reader", rotate_bytes=1, rotate_s=1, spool=data / "warc-spool"
    )
    found = []
    for article in articles:
        if article.raw_ref is None:
            continue
        try:
            page = raw.read(article.raw_ref)
        except Exception as exc:
            found.append(f"{article.url} {article.raw_ref}: {exc}")
            continue
        if not page.body:
            found.append(f"{article.url} {article.raw_ref}: empty")
    raw.close()
    return found


def cpu_s(session: int) -> float:
    """User and system seconds so far of the living processes of a session: a worker and
    those that read for it."""
    ticks = 0
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            fields = (process / "stat").read_text().rpartition(")")[2].split()
            if int(fields[3]) == session:
                ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")
