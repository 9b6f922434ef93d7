"""Secrets planted in every setting that may hold one are in no log, page, table,
metric or alert of a crawl."""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi.routing import APIRoute

from newscrawler.api.app import create_app
from newscrawler.api.deps import Deps
from newscrawler.frontier.redis_server import find_binary
from newscrawler.store import open_store
from tests.crawl.harness import Scrapy, until
from tests.crawl.small import QUICK, QUIET
from tests.fixtures_llm import ScriptedLLM
from tests.fixtures_webhook import Receiver
from tests.patience import Deadline

pytestmark = pytest.mark.slow

#: Each is found by its own name. Slash and hash are what people forget to encode.
SECRETS = {
    "redis": "sesame-redis-4711",
    "llm key": "sesame-llmkey-4711",
    "llm url": "sesame-llmurl-4711",
    "api": "sesame-apitoken-4711-0123456789abcdef",
    "webhook": "sesame-webhook-4711",
    "webhook url": "sesame-hookurl-4711",
    "store": "sesame-store-4711",
    "store key": "sesame-storekey-4711",
    "proxy": "sesame-proxy-4711",
}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="module")
def locked_redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """A real server that wants a password; its port."""
    folder = tmp_path_factory.mktemp("locked-redis")
    port = free_port()
    server = subprocess.Popen(
        [
            *(find_binary(), "--port", str(port), "--bind", "127.0.0.1", "--dir", str(folder)),
            *("--requirepass", SECRETS["redis"], "--appendonly", "yes"),
        ],
        stdout=subprocess.DEVNULL,
    )
    deadline = Deadline(20)
    while not deadline.is_over():
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                break
    yield port
    server.terminate()
    server.wait(20)


@dataclass
class Told:
    """Everything that was said, by where."""

    texts: dict[str, str]

    def assert_silent(self) -> None:
        found = [
            f"{where}: {name}: …{text[max(0, text.index(secret) - 120) : text.index(secret) + 60]}…"
            for where, text in self.texts.items()
            for name, secret in SECRETS.items()
            if secret in text
        ]
        assert not found, "\n".join(found)


def planted(folder: Path, port: int, **settings: Any) -> Scrapy:
    environment = {
        "LLM_API_KEY": SECRETS["llm key"],
        "API_TOKEN_SECRET": SECRETS["api"],
        "ALERT_WEBHOOK_SECRET": SECRETS["webhook"],
        "ARTICLE_STORE_API_KEY": SECRETS["store key"],
        "HTTP_PROXY": "",
        "PYTHONWARNINGS": "default",
    }
    redis_url = f"redis://:{SECRETS['redis']}@127.0.0.1:{port}/0"
    return Scrapy(folder, {"REDIS_URL": redis_url} | settings, environment)


def everything_below(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): path.read_bytes().decode("utf-8", "replace")
        for path in folder.rglob("*")
        if path.is_file()
    }


def is_served(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


#: What addresses of pages and routes are made of.
PATH_PARTS = {"crawl_id": "0" * 8, "name": "app.css", "token": "t" * 32, "domain": "127.0.0.1"}
QUERY = {"q": "b\u00e3o", "url": "http://127.0.0.1/", "site": "127.0.0.1"}
NEED_A_QUERY = {"/api/why": ("url",), "/api/links": ("url",), "/api/graph": ("site",)}


def every_page(base_url: str, token: str) -> dict[str, str]:
    """What each page and route of a server tells that reads: body and headers, as HTML and JSON."""
    app = create_app(Deps(store=open_store("", "unused")))
    paths = [r.path for r in app.routes if isinstance(r, APIRoute) and "GET" in r.methods]
    told, answered = {}, set()
    with httpx.Client(
        base_url=base_url, headers={"Authorization": f"Bearer {token}"}, timeout=60
    ) as http:
        found = until(
            lambda: http.get("/api/search", params={"size": 1}).json()["hits"], "an article", 90
        )
        parts = {**PATH_PARTS, "article_id": found[0]["id"]}
        for path in paths:
            asked = path.format(**parts)
            query = {name: QUERY[name] for name in NEED_A_QUERY.get(path, ())}
            for accept in ("text/html", "application/json"):
                if path == "/api/events":  # without an end
                    with http.stream("GET", asked) as answer:
                        text = str(answer.status_code)
                else:
                    answer = http.get(asked, params=query, headers={"Accept": accept})
                    text = answer.text
                assert answer.status_code < 500 or answer.status_code == 503, (path, text[:300])
                told[f"{accept} {path}"] = text + repr(answer.headers)
                if answer.status_code == 200:
                    answered.add(path)
        told["metrics"] = http.get("/metrics").text
    silent = set(paths) - answered
    assert len(answered) > 30 and "/metrics" in answered, (len(answered), sorted(silent))
    told["401"] = httpx.get(f"{base_url}/api/status").text
    return told


def test_a_crawl_its_pages_and_metrics_tell_no_secret(
    newsweb: Any,
    tmp_path: Path,
    locked_redis: int,
    scripted_llm_thread: ScriptedLLM,
    webhook: Receiver,
) -> None:
    web = newsweb("ip", sites=1, articles=30, **QUIET)
    (tmp_path / "no-sets").mkdir()
    llm_url = scripted_llm_thread.base_url.replace("://", f"://user:{SECRETS['llm url']}@")
    webhook_url = webhook.url.replace("://", f"://user:{SECRETS['webhook url']}@")
    scripted_llm_thread.script = ["status:500"]  # each question fails and is told of
    port = free_port()
    scrapy = planted(
        tmp_path,
        locked_redis,
        **{**QUICK, "SPIDERMON_ENABLED": True},
        SITES_FILE=web.sites_file,
        SELECTORS_DIR=tmp_path / "no-sets",
        SELECTOR_GENERATION="llm",
        SELECTOR_REFRESH_S="0.5",
        SELECTOR_GENERATION_IDLE_S="10",
        LLM_BASE_URL=llm_url,
        LLM_MODEL="scripted",
        ALERT_WEBHOOK_URL=webhook_url,
        MONITOR_MIN_ARTICLES="100000",
        LOG_LEVEL="DEBUG",
        API_PORT=port,
    )
    crawl = scrapy.run("crawl", "news", timeout=150)
    assert crawl.returncode == 0, crawl.stderr[-3000:]
    assert crawl.stat("article/new") >= 10, "next to nothing was crawled"
    assert scripted_llm_thread.requests, "the model was not asked"
    assert webhook.alerts, "no alert was sent"
    told = {"crawl": crawl.stdout + crawl.stderr, "alert": repr(webhook.bodies)}

    for args in (
        ("doctor",),
        ("frontier", "report"),
        ("frontier", "audit"),
        ("sites", "list"),
        ("selectors", "list"),
        ("search", "bão"),
    ):
        done = scrapy.run(*args)
        told[" ".join(args)] = done.stdout + done.stderr
    assert "***@127.0.0.1" in told["doctor"], told["doctor"]

    running = scrapy.start("serve", "--port", str(port))
    try:
        until(lambda: "Search page" in running.text(), "the search page", 60)
        token = scrapy.run("token", "create", "--role", "admin").stdout.strip()
        told |= every_page(f"http://127.0.0.1:{port}", token)
        running.interrupt()
        running.wait(30)
        told["serve"] = running.text()
    finally:
        if running.process.poll() is None:
            running.kill()
    # stats, logs and what else was left behind; web is the other side's
    left = everything_below(tmp_path)
    assert any(name.startswith("stats-") for name in left)
    Told({**told, **left}).assert_silent()


def test_run_and_its_pages_tell_no_secret(
    newsweb: Any, tmp_path: Path, locked_redis: int, webhook: Receiver
) -> None:
    """`scrapy run`: crawl and pages in one terminal."""
    web = newsweb("ip", sites=1, articles=12, **QUIET)
    llm_url = f"http://user:{SECRETS['llm url']}@127.0.0.1:{free_port()}/v1"
    port = free_port()
    scrapy = planted(
        tmp_path,
        locked_redis,
        **{**QUICK, "SPIDERMON_ENABLED": True},
        REDIS_URL=f"redis://:{SECRETS['redis']}@127.0.0.1:{locked_redis}/1",
        SITES_FILE=web.sites_file,
        SELECTORS_DIR=web.selectors_dir,
        LLM_BASE_URL=llm_url,
        LLM_MODEL="scripted",
        ALERT_WEBHOOK_URL=webhook.url.replace("://", f"://user:{SECRETS['webhook url']}@"),
        API_PORT=port,
        LOG_LEVEL="DEBUG",
    )
    running = scrapy.start("run")
    try:
        until(lambda: is_served(port), "the search page", 60)
        token = scrapy.run("token", "create", "--role", "admin").stdout.strip()
        told = every_page(f"http://127.0.0.1:{port}", token)
        running.interrupt()
        running.wait(60)
    finally:
        if running.process.poll() is None:
            running.kill()
    told["run"] = running.text()
    assert told["run"]
    Told({**told, **everything_below(tmp_path)}).assert_silent()


#: What is broken, and a word of the message that proves that it was met.
BROKEN = {
    "wrong password": (
        {"REDIS_URL": f"redis://:{SECRETS['redis']}x@127.0.0.1:{{redis}}/0"},
        "password",
    ),
    "redis away": (
        {"REDIS_URL": f"redis://u:{SECRETS['redis']}@127.0.0.1:{{closed}}/0"},
        "127.0.0.1",
    ),
    "odd password": (
        {"REDIS_URL": f"redis://:{SECRETS['redis']}/#@127.0.0.1:{{redis}}/0"},
        "REDIS_URL",
    ),
    "no scheme": ({"REDIS_URL": f"foo://:{SECRETS['redis']}@127.0.0.1/0"}, "REDIS_URL"),
    "odd cluster": (
        {"REDIS_URL": f"redis+cluster://:{SECRETS['redis']}@127.0.0.1:{{closed}},nonsense/0"},
        "REDIS_URL",
    ),
    "store away": (
        {"ARTICLE_STORE": f"http://elastic:{SECRETS['store']}@127.0.0.1:{{closed}}"},
        "cannot be reached",
    ),
    "odd store": (
        {"ARTICLE_STORE": f"mongodb://u:{SECRETS['store']}@127.0.0.1/x"},
        "ARTICLE_STORE",
    ),
}


@pytest.mark.parametrize("fault", BROKEN)
@pytest.mark.parametrize("args", [("doctor",), ("crawl", "news")], ids=" ".join)
def test_what_is_broken_is_named_without_its_secret(
    newsweb: Any, tmp_path: Path, locked_redis: int, fault: str, args: tuple[str, ...]
) -> None:
    web = newsweb("ip", sites=1, articles=3, **QUIET)
    settings, word = BROKEN[fault]
    filled = {
        name: value.format(redis=locked_redis, closed=free_port())
        for name, value in settings.items()
    }
    scrapy = planted(tmp_path, locked_redis, **QUICK, SITES_FILE=web.sites_file, **filled)
    done = scrapy.run(*args, timeout=100)
    said = done.stdout + done.stderr
    assert done.returncode in (1, 2), said[-2000:]
    assert word in said, said[-2000:]
    Told({"output": said, **everything_below(tmp_path)}).assert_silent()


def test_a_proxy_and_an_alert_that_cannot_be_reached_keep_their_passwords(
    newsweb: Any, tmp_path: Path, locked_redis: int
) -> None:
    web = newsweb("ip", sites=1, articles=3, **QUIET)
    scrapy = planted(
        tmp_path,
        locked_redis,
        **{**QUICK, "SPIDERMON_ENABLED": True, "CRAWL_LONGEST_WAIT_S": 3},
        SITES_FILE=web.sites_file,
        SELECTORS_DIR=web.selectors_dir,
        MONITOR_MIN_ARTICLES="100000",
        ALERT_WEBHOOK_URL=f"http://u:{SECRETS['webhook url']}@127.0.0.1:{free_port()}/x",
        CLOSESPIDER_TIMEOUT="20",
    )
    proxy = f"http://u:{SECRETS['proxy']}@127.0.0.1:{free_port()}"
    scrapy.env.update({"HTTP_PROXY": proxy, "http_proxy": proxy, "HTTPS_PROXY": proxy})
    done = scrapy.run("crawl", "news", timeout=100)
    said = done.stdout + done.stderr
    assert "Alert not delivered" in said, said[-3000:]
    Told({"output": said, **everything_below(tmp_path)}).assert_silent()
