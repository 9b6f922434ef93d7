"""What `scrapy doctor` looks at: each check is a coroutine that returns one or more findings.

A finding says what was found and, unless it is ok, what to do. Nothing is changed: the embedded Redis is
started and stopped again, a file of a few bytes is written into DATA_DIR and removed. No site is asked.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
import urllib.request
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from newscrawler import wiring

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

State = Literal["ok", "warn", "fail"]

#: Free bytes in DATA_DIR below which a crawl is not worth starting, and below which it is soon full: a day
#: of 33 sites is about 1 GB of WARC and articles.
DISK_FAIL = 500 * 1000**2
DISK_WARN = 5 * 1000**3
#: Seconds that this machine's clock may differ from that of Redis. Leases and delays are on Redis' clock;
#: fetch times, "published in the future" and tokens are on ours.
CLOCK_WARN_S = 5.0
OLDEST_PYTHON, NEWEST_PYTHON = (3, 11), (3, 13)
LEAST_REDIS = (6, 2)


@dataclass(frozen=True, slots=True)
class Finding:
    check: str
    state: State
    found: str
    todo: str = ""


Check = Callable[["BaseSettings"], Awaitable[list[Finding]]]


async def python(settings: BaseSettings) -> list[Finding]:
    version = sys.version_info[:2]
    text = f"{sys.version.split()[0]} at {sys.executable}"
    if version < OLDEST_PYTHON:
        return [Finding("python", "fail", text, "use Python 3.11, 3.12 or 3.13: make PYTHON=/path/to/python3.12 run")]
    if version > NEWEST_PYTHON:
        return [Finding("python", "warn", text, "tried on 3.11 to 3.13 only")]
    return [Finding("python", "ok", text)]


async def identity(settings: BaseSettings) -> list[Finding]:
    agent = (settings.get("USER_AGENT") or "").strip()
    if not agent:
        return [Finding("user agent", "fail", "empty", "set USER_AGENT with a contact; the crawl refuses to start")]
    if "newscrawler.example" in agent:
        return [Finding("user agent", "warn", agent, "put a contact of your own into USER_AGENT: sites must reach you")]
    return [Finding("user agent", "ok", agent)]


async def disk(settings: BaseSettings) -> list[Finding]:
    folder = wiring.data_dir(settings)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(b"newscrawler")
            file.flush()
            os.fsync(file.fileno())
    except OSError as exc:
        why = f"{folder} cannot be written: {exc.strerror}"
        return [Finding("data folder", "fail", why, "make it writable, free some space, or set DATA_DIR")]
    free = shutil.disk_usage(folder).free
    text = f"{folder}, {free / 1000**3:.1f} GB free"
    if free < DISK_FAIL:
        return [Finding("data folder", "fail", text, "free some space or set DATA_DIR to another disk")]
    if free < DISK_WARN:
        return [Finding("data folder", "warn", text, "a day of the shipped sites takes about 1 GB")]
    return [Finding("data folder", "ok", text)]


@asynccontextmanager
async def _redis(settings: BaseSettings) -> AsyncIterator[tuple[Any, str]]:
    """A client of the Redis of these settings and where it is; an embedded one is started for it."""
    from newscrawler.frontier import connect
    from newscrawler.frontier import server as embedded

    given = bool(settings.get("REDIS_URL"))
    url = wiring.redis_url(settings)
    client: Any = connect(url, single=False)
    try:
        yield client, url if given else f"embedded ({embedded.find_binary(settings.get('REDIS_SERVER_BIN') or '')})"
    finally:
        await client.aclose()
        if not given:
            embedded.stop_if_last(wiring.data_dir(settings))


async def redis(settings: BaseSettings) -> list[Finding]:
    """Reachable, new enough, append-only, never evicting; and its clock beside ours."""
    try:
        async with _redis(settings) as (client, where):
            info = await client.info()
            seconds, micros = await client.time()
    except Exception as exc:  # FrontierUnavailable, StartRefused, RedisError: each says what to do
        todo = "start that Redis, or leave REDIS_URL empty for the embedded one"
        return [Finding("redis", "fail", str(exc), todo if settings.get("REDIS_URL") else "see data/redis/redis.log")]
    findings = [_redis_version(info, where)]
    if not info.get("aof_enabled"):
        todo = "CONFIG SET appendonly yes, and in redis.conf: without it a restart forgets the queue"
        findings.append(Finding("redis append-only", "warn", "off", todo))
    else:
        findings.append(Finding("redis append-only", "ok", "on"))
    findings.append(_redis_eviction(info))
    off_s = time.time() - (seconds + micros / 1e6)
    text = f"{off_s:+.1f} s beside Redis, {time.strftime('%Y-%m-%d %H:%M:%S %Z')}"
    if abs(off_s) > CLOCK_WARN_S:
        findings.append(Finding("clock", "warn", text, "set the clocks of both machines by NTP"))
    else:
        findings.append(Finding("clock", "ok", text))
    return findings


def _redis_version(info: dict[str, Any], where: str) -> Finding:
    version = str(info.get("redis_version", "0"))
    text = f"{version}, {where}"
    if tuple(int(part) for part in version.split(".")[:2]) < LEAST_REDIS:
        return Finding("redis", "fail", text, "6.2 or newer is needed")
    return Finding("redis", "ok", text)


def _redis_eviction(info: dict[str, Any]) -> Finding:
    policy = str(info.get("maxmemory_policy", "unknown"))
    limit = int(info.get("maxmemory", 0) or 0)
    text = f"{policy}, {'no limit' if not limit else f'limit {limit / 1000**2:.0f} MB'}"
    if policy == "noeviction":
        return Finding("redis eviction", "ok", text)
    todo = "CONFIG SET maxmemory-policy noeviction, and in redis.conf: eviction loses URLs"
    return Finding("redis eviction", "fail" if limit else "warn", text, todo)


async def sqlite(settings: BaseSettings) -> list[Finding]:
    try:
        import apsw
        import sqlite_vec

        connection = apsw.Connection(":memory:")
        connection.execute("CREATE VIRTUAL TABLE t USING fts5(a, content='', contentless_delete=1)")
        connection.enable_load_extension(True)
        connection.load_extension(sqlite_vec.loadable_path())
        (vec,) = next(connection.execute("SELECT vec_version()"))
        connection.close()
    except Exception as exc:  # ImportError, apsw.Error
        return [Finding("sqlite", "fail", f"{type(exc).__name__}: {exc}", "pip install -r requirements.txt")]
    return [Finding("sqlite", "ok", f"{apsw.sqlite_lib_version()} with FTS5, sqlite-vec {vec}")]


async def articles(settings: BaseSettings) -> list[Finding]:
    uri = settings.get("ARTICLE_STORE") or ""
    path = wiring.data_dir(settings) / "articles.db"
    if not uri and not path.exists():
        return [Finding("article store", "ok", f"{path} (not made yet)")]
    try:
        store = wiring.open_article_store(settings)
        try:
            stats = await store.stats()
        finally:
            await store.close()
    except Exception as exc:  # StoreUnavailable, ValueError: a scheme that is none
        todo = "start Elasticsearch or correct ARTICLE_STORE; empty = SQLite in DATA_DIR"
        return [Finding("article store", "fail", str(exc), todo)]
    return [Finding("article store", "ok", f"{stats.get('kind')}: {stats.get('articles')} articles at {uri or path}")]


async def model(settings: BaseSettings) -> list[Finding]:
    """The variables only: asking a model costs money."""
    url, name = settings.get("LLM_BASE_URL") or "", settings.get("LLM_MODEL") or ""
    variable = settings.get("LLM_API_KEY_ENV") or "LLM_API_KEY"
    has_key = bool(os.environ.get(variable))
    if not url and not name and not has_key:
        return [Finding("model", "ok", "none: selector sets come from rules alone")]
    missing = [n for n, value in (("LLM_BASE_URL", url), ("LLM_MODEL", name)) if not value]
    if missing:
        return [
            Finding("model", "warn", f"{' and '.join(missing)} not set", "set all of them, or none for rules alone")
        ]
    if not has_key:
        todo = f"set {variable} in the environment, unless this server needs no key"
        return [Finding("model", "warn", f"{name} at {url}, no key", todo)]
    return [Finding("model", "ok", f"{name} at {url}, key in {variable}")]


async def sites(settings: BaseSettings) -> list[Finding]:
    try:
        loaded = wiring.load_sites(settings)
    except Exception as exc:  # SitesError names file, site, field
        return [Finding("sites", "fail", str(exc), "correct the file or set SITES_FILE")]
    findings = [
        Finding("sites", "fail", str(error), "correct it; the site is left out until then") for error in loaded.errors
    ]
    count = len(loaded.enabled())
    if not count:
        findings.append(Finding("sites", "fail", "none is enabled", "scrapy sites enable SITE"))
    elif not findings:
        findings.append(Finding("sites", "ok", f"{count} enabled"))
    return findings


async def selectors(settings: BaseSettings) -> list[Finding]:
    from newscrawler.selectorstore import schema
    from newscrawler.selectorstore.store import default_folder

    folder = default_folder(settings.get("SELECTORS_DIR") or "")
    good, findings = 0, []
    try:
        for name, found in schema.read_folder(folder):
            if isinstance(found, Exception):
                text = str(found) if name in str(found) else f"{name}: {found}"
                findings.append(Finding("selector sets", "fail", text, "correct the file; nothing of it is loaded"))
            else:
                good += 1
    except OSError as exc:
        return [Finding("selector sets", "fail", f"{folder}: {exc.strerror}", "set SELECTORS_DIR")]
    if not findings and not good:
        findings.append(Finding("selector sets", "warn", f"none in {folder}", "pages are read by generic rules"))
    elif not findings:
        findings.append(Finding("selector sets", "ok", f"{good} in {folder}"))
    return findings


def _is_search_page(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/healthz", timeout=3) as answer:
            return b"newscrawler" in answer.read(4096)
    except OSError:
        return False


async def port(settings: BaseSettings) -> list[Finding]:
    from newscrawler.api.access import SECRET_ENV, AccessRefused, access_for
    from newscrawler.api.server import CannotServe, bind

    host, number = settings.get("API_HOST") or "127.0.0.1", settings.getint("API_PORT")
    try:
        access_for(host, os.environ.get(SECRET_ENV, "").strip())
        bind(host, number).close()
    except AccessRefused as exc:
        return [Finding("search page", "fail", str(exc), f"set {SECRET_ENV} or API_HOST=127.0.0.1")]
    except CannotServe as exc:
        if _is_search_page(f"http://{host}:{number}"):
            return [Finding("search page", "ok", f"served at http://{host}:{number} already")]
        return [Finding("search page", "warn", str(exc), "the crawl goes on, but its search page is not served")]
    return [Finding("search page", "ok", f"{host}:{number} is free")]


async def network(settings: BaseSettings) -> list[Finding]:
    """A default route, from the kernel's table; nothing is sent."""
    if settings.get("RESOLVE_OVERRIDE") or settings.get("REPLAY_DIR"):
        return [Finding("network", "ok", "not needed: answers come from this machine")]
    try:
        rows = [line.split() for line in Path("/proc/net/route").read_text(encoding="ascii").splitlines()[1:]]
        rows6 = [line.split() for line in Path("/proc/net/ipv6_route").read_text(encoding="ascii").splitlines()]
    except OSError:
        return [Finding("network", "ok", "not known: no /proc/net/route")]
    routes = [row[0] for row in rows if len(row) > 1 and row[1] == "00000000"]
    # the unreachable catch-all of a machine without IPv6 is on "lo"
    routes += [row[-1] for row in rows6 if row[0] == "0" * 32 and row[1] == "00" and row[-1] != "lo"]
    if not routes:
        return [Finding("network", "warn", "no default route", "sites cannot be reached; connect this machine")]
    return [Finding("network", "ok", f"default route through {routes[0]}")]


CHECKS: tuple[Check, ...] = (
    python,
    identity,
    disk,
    redis,
    sqlite,
    articles,
    model,
    sites,
    selectors,
    port,
    network,
)


async def examine(settings: BaseSettings) -> list[Finding]:
    """All checks. One that breaks is a failure of its own and hides none of the others."""
    findings: list[Finding] = []
    for check in CHECKS:
        try:
            findings += await check(settings)
        except Exception as exc:  # a doctor must not die of the illness
            name = getattr(check, "__name__", "?")
            findings.append(Finding(name, "fail", f"{type(exc).__name__}: {exc}", "this is a fault of the program"))
    return findings
