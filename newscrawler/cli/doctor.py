"""What `scrapy doctor` looks at: each check is a coroutine that returns one or more findings.

A finding says what was found and, unless it is ok, what to do. Nothing is changed: the embedded
Redis is started and stopped again, a file of a few bytes is written into DATA_DIR and removed (into
RAW_STORE as at each start of a crawl). No site is asked, only where three of them are (DNS).
"""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from redis.exceptions import ReadOnlyError, RedisError

from newscrawler.crawl import opening, rendering, site_choice, virus_scan
from newscrawler.fetch import clamav
from newscrawler.fetch.address_guard import is_literal, parse_overrides, split_host
from newscrawler.fetch.browser import Browser, BrowserUnavailable
from newscrawler.fetch.render import RenderRules
from newscrawler.rawstore import RawStoreUnavailable
from newscrawler.store.base import StoreUnavailable
from newscrawler.utils import optional
from newscrawler.utils.display import url_shown

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

    from newscrawler.fetch.client import GuardedResolver

State = Literal["ok", "warn", "fail"]

#: Free bytes in DATA_DIR below which a crawl is not worth starting, and below which it is soon
#: full: a day of 33 sites is about 1 GB of WARC and articles.
DISK_FAIL = 500 * 1000**2
DISK_WARN = 5 * 1000**3
#: Seconds that this machine's clock may differ from that of Redis. Leases and delays are on Redis'
#: clock; fetch times, "published in the future" and tokens are on ours.
CLOCK_WARN_S = 5.0
OLDEST_PYTHON, NEWEST_PYTHON = (3, 11), (3, 13)
LEAST_REDIS = (6, 2)
#: Signatures of ClamAV that are older are warned of, seconds; freshclam brings new ones daily.
SIGNATURES_OLD_S = 7 * 86_400
#: Names of sites that are looked up, and how long that may take, seconds.
NAMES, NAMES_S = 3, 10.0


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
        return [
            Finding(
                "python",
                "fail",
                text,
                "use Python 3.11, 3.12 or 3.13: make PYTHON=/path/to/python3.12 run",
            )
        ]
    if version > NEWEST_PYTHON:
        return [Finding("python", "warn", text, "tried on 3.11 to 3.13 only")]
    return [Finding("python", "ok", text)]


async def identity(settings: BaseSettings) -> list[Finding]:
    agent = (settings.get("USER_AGENT") or "").strip()
    if not agent:
        return [
            Finding(
                "user agent",
                "fail",
                "empty",
                "set USER_AGENT with a contact; the crawl refuses to start",
            )
        ]
    if "newscrawler.example" in agent:
        return [
            Finding(
                "user agent",
                "warn",
                agent,
                "put a contact of your own into USER_AGENT: sites must reach you",
            )
        ]
    return [Finding("user agent", "ok", agent)]


async def disk(settings: BaseSettings) -> list[Finding]:
    folder = opening.data_dir(settings)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(b"newscrawler")
            file.flush()
            os.fsync(file.fileno())
    except OSError as exc:
        why = f"{folder} cannot be written: {exc.strerror}"
        return [
            Finding(
                "data folder", "fail", why, "make it writable, free some space, or set DATA_DIR"
            )
        ]
    free = shutil.disk_usage(folder).free
    text = f"{folder}, {free / 1000**3:.1f} GB free"
    if free < DISK_FAIL:
        return [
            Finding("data folder", "fail", text, "free some space or set DATA_DIR to another disk")
        ]
    if free < DISK_WARN:
        return [Finding("data folder", "warn", text, "a day of the shipped sites takes about 1 GB")]
    return [Finding("data folder", "ok", text)]


@asynccontextmanager
async def _redis(settings: BaseSettings) -> AsyncIterator[tuple[Any, str]]:
    """A client of the Redis of these settings and where it is; an embedded one is
    started for it."""
    from newscrawler.frontier import connect
    from newscrawler.frontier import redis_server as embedded

    given = bool(settings.get("REDIS_URL"))
    url = opening.redis_url(settings)
    client: Any = connect(url, single=False)
    try:
        yield (
            client,
            (
                url_shown(url)
                if given
                else f"embedded ({embedded.find_binary(settings.get('REDIS_SERVER_BIN') or '')})"
            ),
        )
    finally:
        await client.aclose()
        if not given:
            embedded.stop_if_last(opening.data_dir(settings))


#: What is written to see whether it can be: a key that a worker may write to, gone in a moment.
PROBE_KEY, PROBE_MS = "newscrawler:doctor", 5_000
_REDIS_TODO = (
    ("WRONGPASS", "correct the user and the password in REDIS_URL"),
    ("invalid username-password", "correct the user and the password in REDIS_URL"),
    ("invalid password", "correct the password in REDIS_URL"),
    ("Authentication required", "put the password into REDIS_URL"),
    ("wants a password", "put the password into REDIS_URL"),
    ("refuses the password", "correct the password in REDIS_URL"),
    ("DB index is out of range", "correct the number of the database in REDIS_URL"),
    ("certificate", "ssl_ca_certs in REDIS_URL must name the CA of that Redis (docs/securing.md)"),
    ("SSL", "use rediss:// for a Redis with TLS, redis:// for one without (docs/securing.md)"),
    ("No such file", "a file that REDIS_URL names, such as ssl_ca_certs or a socket, is not there"),
)


def _redis_todo(settings: BaseSettings, fault: str) -> str:
    if not settings.get("REDIS_URL"):
        return f"see {opening.data_dir(settings) / 'redis' / 'redis.log'}"
    start = "start that Redis, or correct REDIS_URL"
    return next((todo for sign, todo in _REDIS_TODO if sign in fault), start)


async def _redis_writes(client: Any) -> Finding:
    """A crawl needs more than an answer: a full Redis and a user that may only read give one."""
    check = "redis writes"
    try:
        await client.set(PROBE_KEY, "1", px=PROBE_MS)
    except RedisError as exc:
        fault = f"{type(exc).__name__}: {exc}"
        if "no permissions" in fault.lower() or "NOPERM" in fault:
            todo = "a crawl needs a user that may write (deploy/redis-users.acl: worker)"
        elif isinstance(exc, ReadOnlyError):
            todo = "point REDIS_URL at the primary: this is a replica"
        elif "OutOfMemory" in fault or "OOM" in fault:
            todo = "give it memory (maxmemory), or purge a domain: workers wait meanwhile"
        else:
            todo = "see its log: workers wait until it can be written"
        return Finding(check, "fail", str(exc), todo)
    return Finding(check, "ok", "yes")


async def redis(settings: BaseSettings) -> list[Finding]:
    """Reachable, new enough, takes writes, append-only, never evicting; its clock beside ours."""
    try:
        async with _redis(settings) as (client, where):
            info = await client.info()
            seconds, micros = await client.time()
            writes = await _redis_writes(client)
    except Exception as exc:  # FrontierUnavailable, StartRefused, RedisError: each says what to do
        fault = str(exc)
        return [Finding("redis", "fail", fault, _redis_todo(settings, fault))]
    findings = [_redis_version(info, where), writes]
    if not info.get("aof_enabled"):
        todo = (
            "CONFIG SET appendonly yes, and in redis.conf: without it a restart forgets the queue"
        )
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
    return Finding("redis eviction", "fail", text, todo)  # a crawl does not start


async def sqlite(settings: BaseSettings) -> list[Finding]:
    try:
        import apsw
    except ImportError as exc:
        return [
            Finding(
                "sqlite", "fail", f"{type(exc).__name__}: {exc}", "pip install -r requirements.txt"
            )
        ]
    return [Finding("sqlite", "ok", apsw.sqlite_lib_version()), _full_text()]


def _full_text() -> Finding:
    """The engine of the local store's index."""
    from newscrawler.store.fulltext.engine import tantivy

    try:
        return Finding("full text", "ok", f"tantivy {tantivy().__version__}")
    except StoreUnavailable as exc:
        return Finding("full text", "fail", str(exc), "pip install -r requirements.txt")


async def articles(settings: BaseSettings) -> list[Finding]:
    uri = settings.get("ARTICLE_STORE") or ""
    path = opening.data_dir(settings) / "articles.db"
    if not uri and not path.exists():
        return [Finding("article store", "ok", f"{path} (not made yet)")]
    try:
        store = opening.open_article_store(settings)
        try:
            stats = await store.stats()
        finally:
            await store.close()
    except Exception as exc:  # StoreUnavailable, ValueError: a scheme that is none
        todo = "start Elasticsearch or correct ARTICLE_STORE; empty = SQLite in DATA_DIR"
        if not uri:
            todo = "mend what it says, or set DATA_DIR to a folder that you may write to"
        return [Finding("article store", "fail", str(exc), todo)]
    text = f"{stats.get('kind')}: {stats.get('articles')} articles at {url_shown(uri or str(path))}"
    found = [Finding("article store", "ok", text)]
    if stats.get("index_problem"):
        behind = f"{stats['index_behind']} changes are not found yet: {stats['index_problem']}"
        todo = "mend that, or delete the folder articles.index: it is made anew"
        found.append(Finding("article index", "warn", behind, todo))
    return found


async def raw_pages(settings: BaseSettings) -> list[Finding]:
    """Where raw pages go, if that is not the data folder: it is written to, as
    at the start of a crawl."""
    from newscrawler.rawstore import raw_store

    uri = str(settings.get("RAW_STORE") or "")
    lacks_package = (
        raw_store.uri_scheme(uri) in ("s3", "s3a") and optional.missing("s3") is not None
    )
    if not uri or lacks_package:  # `extras` says the command
        return []
    try:
        await asyncio.to_thread(raw_store.prove, uri)
    except RawStoreUnavailable as exc:
        todo = "correct RAW_STORE, or the keys and the address in the environment (AWS_…)"
        return [Finding("raw store", "fail", str(exc), todo)]
    return [Finding("raw store", "ok", f"{uri} can be written to")]


async def scanner(settings: BaseSettings) -> list[Finding]:
    """ClamAV, where pages are shown to it: whether it answers, how old its signatures are, and
    whether it takes pages as large as those that are fetched."""
    name = "virus scanner"
    try:
        daemon = virus_scan.scanner_of(settings)
    except ValueError as exc:
        return [Finding(name, "fail", str(exc), "correct the setting; empty = no scan")]
    if daemon is None:
        return []
    try:
        version = await daemon.version()
        found = f"{version} at {daemon.name}"
        await daemon.scan(bytes(settings.getint("DOWNLOAD_MAXSIZE")))
    except clamav.ScannerUnavailable as exc:
        waits = "waits" if settings["CLAMAV_AWAY"] == "wait" else "stores pages unscanned"
        todo = f"start clamd, or correct CLAMAV; until then a crawl {waits}"
        return [Finding(name, "fail", str(exc), todo)]
    except clamav.TooLargeToScan:
        todo = "raise StreamMaxLength in clamd.conf to DOWNLOAD_MAXSIZE: larger pages are refused"
        return [Finding(name, "warn", found, todo)]
    except clamav.ScanFailed as exc:
        return [Finding(name, "fail", f"{found}: {exc}", "see clamd's log")]
    _, _, day = version.partition("/")[2].partition("/")
    if not day:
        todo = "run freshclam: only signatures of your own are loaded"
        return [Finding(name, "warn", found, todo)]
    if time.time() - _time_of(day) > SIGNATURES_OLD_S:
        return [Finding(name, "warn", found, "run freshclam: its signatures are old")]
    return [Finding(name, "ok", found)]


def _time_of(day: str) -> float:
    """Of "Sun Nov 22 09:00:00 2026"; 0 where it is none."""
    try:
        return time.mktime(time.strptime(day, "%a %b %d %H:%M:%S %Y"))
    except (ValueError, OverflowError):
        return 0.0


async def model(settings: BaseSettings) -> list[Finding]:
    """The variables only: asking a model costs money."""
    url, name = url_shown(settings.get("LLM_BASE_URL") or ""), settings.get("LLM_MODEL") or ""
    variable = settings.get("LLM_API_KEY_ENV") or "LLM_API_KEY"
    has_key = bool(os.environ.get(variable))
    if not any((url, name, has_key)):
        return [Finding("model", "ok", "none: selector sets come from rules alone")]
    missing = [n for n, value in (("LLM_BASE_URL", url), ("LLM_MODEL", name)) if not value]
    if missing:
        return [
            Finding(
                "model",
                "warn",
                f"{' and '.join(missing)} not set",
                "set all of them, or none for rules alone",
            )
        ]
    if not has_key:
        todo = f"set {variable} in the environment, unless this server needs no key"
        return [Finding("model", "warn", f"{name} at {url}, no key", todo)]
    return [Finding("model", "ok", f"{name} at {url}, key in {variable}")]


async def sites(settings: BaseSettings) -> list[Finding]:
    try:
        loaded = site_choice.load_sites(settings)
    except Exception as exc:  # SitesError names file, site, field
        return [Finding("sites", "fail", str(exc), "correct the file or set SITES_FILE")]
    findings = [
        Finding("sites", "fail", str(error), "correct it; the site is left out until then")
        for error in loaded.errors
    ]
    count = len(loaded.enabled())
    if not count:
        findings.append(Finding("sites", "fail", "none is enabled", "scrapy sites enable SITE"))
    elif not findings:
        findings.append(Finding("sites", "ok", f"{count} enabled"))
    return findings


async def selectors(settings: BaseSettings) -> list[Finding]:
    from newscrawler.selectorsets import schema
    from newscrawler.selectorsets.store import default_folder

    folder = default_folder(settings.get("SELECTORS_DIR") or "")
    good, findings = 0, []
    try:
        for name, found in schema.read_folder(folder):
            if isinstance(found, Exception):
                text = str(found) if name in str(found) else f"{name}: {found}"
                findings.append(
                    Finding(
                        "selector sets", "fail", text, "correct the file; nothing of it is loaded"
                    )
                )
            else:
                good += 1
    except OSError as exc:
        return [Finding("selector sets", "fail", f"{folder}: {exc.strerror}", "set SELECTORS_DIR")]
    if not findings and not good:
        findings.append(
            Finding("selector sets", "warn", f"none in {folder}", "pages are read by generic rules")
        )
    elif not findings:
        findings.append(Finding("selector sets", "ok", f"{good} in {folder}"))
    return findings


async def port(settings: BaseSettings) -> list[Finding]:
    from newscrawler.api.access import SECRET_ENV, AccessRefused, access_for
    from newscrawler.api.deps import mark_of
    from newscrawler.api.probe import owner
    from newscrawler.api.server import CannotServe, bind

    host, number = settings.get("API_HOST") or "127.0.0.1", settings.getint("API_PORT")
    try:
        access_for(host, os.environ.get(SECRET_ENV, "").strip())
        bind(host, number).close()
    except AccessRefused as exc:
        return [Finding("search page", "fail", str(exc), f"set {SECRET_ENV} or API_HOST=127.0.0.1")]
    except CannotServe as exc:
        whose = owner(host, number, mark_of(settings))
        if whose == "ours":
            return [Finding("search page", "ok", f"served at http://{host}:{number} already")]
        if whose == "other":
            text = f"http://{host}:{number} is served for another data folder"
            return [Finding("search page", "ok", f"{text}; `make run` takes the next free port")]
        return [
            Finding(
                "search page",
                "warn",
                str(exc),
                "the crawl goes on, but its search page is not served",
            )
        ]
    return [Finding("search page", "ok", f"{host}:{number} is free")]


async def network(settings: BaseSettings) -> list[Finding]:
    """A default route, from the kernel's table; nothing is sent."""
    overrides = parse_overrides(settings.get("RESOLVE_OVERRIDE") or "")
    if overrides.all_names or settings.get("REPLAY_DIR"):
        return [Finding("network", "ok", "not needed: answers come from this machine")]
    try:
        routes = _default_routes()
    except OSError:
        return [Finding("network", "ok", "not known: no /proc/net/route")]
    if not routes:
        return [
            Finding(
                "network",
                "warn",
                "no default route",
                "sites cannot be reached; connect this machine",
            )
        ]
    return [Finding("network", "ok", f"default route through {routes[0]}")]


def _default_routes() -> list[str]:
    """Names of the devices."""
    lines = Path("/proc/net/route").read_text(encoding="ascii").splitlines()[1:]
    lines6 = Path("/proc/net/ipv6_route").read_text(encoding="ascii").splitlines()
    rows, rows6 = [line.split() for line in lines], [line.split() for line in lines6]
    routes = [row[0] for row in rows if len(row) > 1 and row[1] == "00000000"]
    routes6 = [row[-1] for row in rows6 if row[:2] == ["0" * 32, "00"]]
    # The unreachable catch-all of a machine without IPv6 is on "lo".
    return routes + [device for device in routes6 if device != "lo"]


async def names(settings: BaseSettings) -> list[Finding]:
    """Whether the names of some sites lead anywhere, looked up as a crawl does it."""
    from newscrawler.fetch.client import FetchRules, GuardedResolver

    if settings.get("REPLAY_DIR"):
        return []
    try:
        rules = FetchRules.from_settings(settings)
        enabled = site_choice.load_sites(settings).enabled()
    except Exception:  # SitesError, a wrong setting: said by `sites`, or by the start
        return []
    named = [split_host(site.hosts[0])[0] for site in enabled if site.hosts]
    hosts = [host for host in named if not is_literal(host)]
    hosts = [host for host in hosts if rules.proxy_for(f"https://{host}/") is None][:NAMES]
    if not hosts:
        return []  # addresses, or the proxy looks names up
    resolver = GuardedResolver(rules)
    found = await asyncio.gather(*(_is_found(resolver, host) for host in hosts))
    good = [host for host, is_good in zip(hosts, found, strict=True) if is_good]
    if good:
        return [Finding("names", "ok", f"found: {', '.join(good)}")]
    todo = "sites cannot be reached; is there a network, and a name server (/etc/resolv.conf)?"
    return [Finding("names", "warn", f"not found: {', '.join(hosts)}", todo)]


async def _is_found(resolver: GuardedResolver, host: str) -> bool:
    from newscrawler.fetch.client import FetchError

    try:
        return bool(await asyncio.wait_for(resolver.resolve(host, 443), NAMES_S))
    except (OSError, UnicodeError, TimeoutError):
        return False
    except FetchError:
        return True  # found, and its address is not one to be fetched: the crawl says so


async def extras(settings: BaseSettings) -> list[Finding]:
    """Packages beside requirements.txt: one that a setting asks for and that is not
    here is a failure."""
    uri = str(settings.get("RAW_STORE") or "")
    is_s3 = uri.startswith(("s3://", "s3a://"))
    found = []
    for extra, needed, who in (
        ("s3", is_s3, "RAW_STORE=s3://"),
        ("parquet", False, "`scrapy export --format parquet`"),
    ):
        package = optional.EXTRAS[extra][0]
        command = optional.missing(extra)
        if command is None:
            found.append(Finding("extras", "ok", f"{package} is here, for {who}"))
        elif needed:
            found.append(Finding("extras", "fail", f"{who} needs {package}", command))
        else:
            found.append(Finding("extras", "ok", f"{package} is not here; only {who} needs it"))
    return found


async def semantic(settings: BaseSettings) -> list[Finding]:
    """Whether articles are found by meaning too, and why not."""
    from newscrawler.crawl import embedding

    try:
        embedder = embedding.open_embedder(settings)
    except embedding.Off as exc:
        todo = optional.missing("semantic")
        hint = f"; {todo}" if todo and "not installed" in str(exc) else ""
        return [Finding("search by meaning", "ok", f"off: {exc}; words are searched{hint}")]
    except ValueError as exc:
        return [Finding("search by meaning", "fail", str(exc), "correct the setting")]
    await embedder.close()
    if str(settings.get("ARTICLE_STORE") or "").startswith(("http://", "https://")):
        return [Finding("search by meaning", "ok", "off: not built for Elasticsearch yet")]
    return [Finding("search by meaning", "ok", f"on: {embedder.model}")]


async def browser(settings: BaseSettings) -> list[Finding]:
    """Whether pages that scripts fill can be read. A browser is started and ended where a site
    needs one."""
    check = "pages by script"
    try:
        rules = RenderRules.from_settings(settings)
    except ValueError as exc:
        return [Finding(check, "fail", str(exc), "correct the setting")]
    wanting = [site.id for site in site_choice.load_sites(settings).enabled() if site.render]
    try:
        executable = rendering.browser_of(settings)
        if not wanting:
            return [Finding(check, "ok", f"on: {executable} is started when a page needs it")]
        version = await _started(executable, rules)
    except BrowserUnavailable as exc:
        if not wanting:
            return [Finding(check, "ok", f"off: {exc}")]
        shown = ", ".join(wanting[:3])
        todo = "mend it, or `scrapy sites render SITE off`"
        if "sandbox" in str(exc).lower():
            todo = "allow user namespaces, or RENDER_SANDBOX=off where a container is the wall"
        return [Finding(check, "warn", f"{shown}: read without scripts: {exc}", todo)]
    walls = "" if rules.sandbox else ", without its sandbox (RENDER_SANDBOX)"
    return [Finding(check, "ok", f"on: Chromium {version}{walls}, for {len(wanting)} sites")]


async def _started(executable: str, rules: RenderRules) -> str:
    """The version of a browser that was started and ended."""
    found = Browser(executable, rules.memory_bytes, sandbox=rules.sandbox)
    try:
        async with found.lent():
            return found.version
    finally:
        await found.close()


CHECKS: tuple[Check, ...] = (
    python,
    identity,
    disk,
    redis,
    sqlite,
    articles,
    raw_pages,
    scanner,
    model,
    sites,
    selectors,
    port,
    network,
    names,
    extras,
    semantic,
    browser,
)


async def examine(settings: BaseSettings) -> list[Finding]:
    """All checks. One that breaks is a failure of its own and hides none of the others."""
    findings: list[Finding] = []
    for check in CHECKS:
        try:
            findings += await check(settings)
        except Exception as exc:  # a doctor must not die of the illness
            name = getattr(check, "__name__", "?")
            findings.append(
                Finding(
                    name, "fail", f"{type(exc).__name__}: {exc}", "this is a fault of the program"
                )
            )
    return findings
