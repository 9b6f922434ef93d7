"""What operators see and change by the API: over a real Redis with a frontier."""

from __future__ import annotations

import asyncio
import fcntl
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx
import pytest
import redis.asyncio

from newscrawler.api.access import Access, make_token
from newscrawler.api.app import create_app
from newscrawler.api.audit import FILE as AUDIT_FILE
from newscrawler.api.audit import AuditLog
from newscrawler.api.deps import Deps
from newscrawler.api.server import start_in_thread
from newscrawler.api.tokens import TokenBook
from newscrawler.crawl import site_choice
from newscrawler.crawl.keeping import alone
from newscrawler.discovery import overlay
from newscrawler.fleet.ledger import NODES
from newscrawler.fleet.registry import Beat, Registry
from newscrawler.frontier import connect, keys
from newscrawler.frontier.bounded import MOST_RUNNING
from newscrawler.frontier.operator import Operator
from newscrawler.frontier.queue import Frontier, FrontierConfig
from newscrawler.items import Article
from newscrawler.selectorsets.store import SelectorStore
from newscrawler.store import open_store
from tests.contract.articles import article, filler
from tests.fixtures_browser import SITES
from tests.fixtures_scrapyd import free_port
from tests.unit.api.test_schema import crawl_settings

SECRET = "0123456789abcdef" * 2
PAGE = "https://vnexpress.net/mot-bai-bao-moi-4999999.html"
SITE = "vnexpress.net"


@dataclass
class Fleet:
    url: str
    folder: Path
    redis_url: str

    def ask(self, role: str, method: str, path: str, **kwargs: object) -> httpx.Response:
        token = self.token(role)[1]
        headers = {"Authorization": f"Bearer {token}"}
        return httpx.request(method, self.url + path, headers=headers, timeout=60, **kwargs)  # type: ignore[arg-type]

    def token(self, role: str) -> tuple[str, str]:
        now = int(time.time())
        issued = TokenBook(self.folder).add(role, now, now + 3_600)
        return issued.id, make_token(SECRET, days=1, role=role, token_id=issued.id)

    def state(self, domain: str) -> object:
        async def read() -> object:
            async with redis.asyncio.Redis.from_url(self.redis_url) as client:
                return await Operator(client, 1).state(domain)

        return asyncio.run(read())


#: For tests that hold on a Redis Cluster as well, with more shards than one.
ANY_REDIS = pytest.mark.parametrize("fleet", ["one server", "cluster"], indirect=True)


@pytest.fixture
def fleet(request: Any, filled_folder: Path, tmp_path: Path) -> Iterator[Fleet]:
    shards = 1
    if getattr(request, "param", "one server") == "cluster":
        url, shards = request.getfixturevalue("redis_cluster").url, 7
    else:
        url = request.getfixturevalue("selector_redis_url")

    async def empty() -> None:
        client = connect(url)
        nodes = {"target_nodes": redis.asyncio.RedisCluster.PRIMARIES} if shards > 1 else {}
        await client.flushall(**nodes)
        await client.aclose()

    asyncio.run(empty())
    client = connect(url, single=False)
    settings = crawl_settings(tmp_path, url)
    settings.set("FRONTIER_SHARDS", shards, "cmdline")
    settings.set("ALLOWED_PRIVATE_NETWORKS", "127.0.0.0/8", "cmdline")
    deps = Deps(
        store=open_store("", filled_folder),
        access=Access(SECRET, host="0.0.0.0", book=TokenBook(tmp_path)),
        settings=settings,
        audit=AuditLog(tmp_path, time.time),
        sites=SITES,
        registry=Registry(client),
        frontier=Frontier(client, FrontierConfig(shards=shards), "search-page"),
        selectors=SelectorStore(client, tmp_path / "none"),
    )
    running = start_in_thread(create_app(deps))
    yield Fleet(running.url, tmp_path, url)
    running.stop()


@ANY_REDIS
def test_a_page_is_fetched_again_and_its_domain_paused(fleet: Fleet) -> None:
    assert fleet.ask("reader", "GET", f"/api/why?url={PAGE}").json()["record"] is None
    assert fleet.ask("operator", "POST", "/api/domains/vnexpress.net/pause").status_code == 404
    done = fleet.ask("operator", "POST", "/api/recheck", json={"url": PAGE})
    assert done.status_code == 200, done.text
    why = fleet.ask("reader", "GET", f"/api/why?url={PAGE}").json()
    assert why["record"] is not None and why["domain"]["domain"] == "vnexpress.net"
    assert fleet.ask("operator", "POST", "/api/domains/vnexpress.net/pause").status_code == 200
    assert "pause" in fleet.ask("reader", "GET", f"/api/why?url={PAGE}").json()["text"]
    assert fleet.ask("operator", "POST", "/api/domains/vnexpress.net/resume").status_code == 200
    assert "pause" not in fleet.ask("reader", "GET", f"/api/why?url={PAGE}").json()["text"]
    actions = [row["action"] for row in fleet.ask("admin", "GET", "/api/audit").json()]
    assert actions == ["domain.resume", "domain.pause", "url.recheck"]


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/api/domains/vnexpress.net/pause", None),
        ("/api/domains/vnexpress.net/resume", None),
        ("/api/recheck", {"url": PAGE}),
        ("/api/seeds", {"url": "https://vnexpress.net/rss/x.rss", "kind": "feed"}),
        ("/api/crawls", {"url": "http://127.0.0.1:9/"}),
    ],
)
def test_a_reader_changes_nothing(fleet: Fleet, path: str, body: object) -> None:
    refused = fleet.ask("reader", "POST", path, json=body)
    assert refused.status_code == 403 and "operator" in refused.json()["error"]
    assert httpx.post(fleet.url + path, json=body).status_code == 401
    assert not (fleet.folder / AUDIT_FILE).exists()
    assert fleet.state("vnexpress.net") is None
    assert fleet.ask("operator", "GET", "/api/audit").status_code == 403


def test_a_revoked_token_ends_with_the_next_request(fleet: Fleet) -> None:
    token_id, token = fleet.token("operator")
    headers = {"Authorization": f"Bearer {token}"}
    assert httpx.get(fleet.url + "/api/check", headers=headers).status_code == 200
    TokenBook(fleet.folder).revoke(token_id, int(time.time()))
    refused = httpx.get(fleet.url + "/api/check", headers=headers)
    assert refused.status_code == 401 and "revoked" in refused.json()["error"]


def test_a_change_that_cannot_be_noted_is_not_made(fleet: Fleet) -> None:
    (fleet.folder / AUDIT_FILE).mkdir()
    refused = fleet.ask("operator", "POST", "/api/recheck", json={"url": PAGE})
    assert refused.status_code == 503 and "nothing was changed" in refused.json()["error"]
    assert fleet.state("vnexpress.net") is None


def test_a_seed_is_kept_for_every_command(fleet: Fleet) -> None:
    url = "https://vnexpress.net/rss/thu-nghiem.rss"
    done = fleet.ask("operator", "POST", "/api/seeds", json={"url": url, "kind": "feed"})
    assert done.status_code == 200, done.text
    settings = crawl_settings(fleet.folder, fleet.redis_url)
    site = site_choice.load_sites(settings).get("vnexpress.net")
    assert site is not None and url in [feed.url for feed in site.feeds]
    assert overlay.read(fleet.folder) is not None


@pytest.mark.parametrize(
    ("path", "body", "said"),
    [
        ("/api/recheck", {"url": "https://elsewhere.example/a"}, "offsite"),
        ("/api/recheck", {"url": "ftp://vnexpress.net/a"}, "url"),
        ("/api/recheck", {"url": PAGE, "depth": 3}, "depth"),
        ("/api/seeds", {"url": "https://elsewhere.example/rss", "kind": "feed"}, "no site"),
        ("/api/seeds", {"url": "https://vnexpress.net/rss", "kind": "home"}, "kind"),
    ],
)
def test_what_cannot_be_meant_is_refused(fleet: Fleet, path: str, body: object, said: str) -> None:
    refused = fleet.ask("operator", "POST", path, json=body)
    assert refused.status_code == 422 and said in refused.json()["error"], refused.text


def test_the_parts_are_told_with_what_they_hold(fleet: Fleet) -> None:
    rows = {row["part"]: row for row in fleet.ask("reader", "GET", "/api/check").json()}
    assert rows["redis"]["reachable"] and rows["redis"]["load"]["used_memory"] > 0
    assert rows["article store"]["reachable"] and rows["article store"]["load"]["articles"] > 0


def test_a_worker_is_told_with_its_version(fleet: Fleet) -> None:
    async def beat() -> None:
        async with redis.asyncio.Redis.from_url(fleet.redis_url) as client:
            beat = Beat("w1", "host", 7, beat_ms=time.time_ns() // 1_000_000, version="1.2-egg")
            await Registry(client).beat(beat)

    asyncio.run(beat())
    rows = fleet.ask("reader", "GET", "/api/check").json()
    (worker,) = [row for row in rows if row["part"] == "worker"]
    assert (worker["name"], worker["version"], worker["reachable"]) == ("w1", "1.2-egg", True)


def test_the_scrapyds_of_a_fleet_are_parts(
    fleet: Fleet, scrapyd: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    there, away = scrapyd(), f"http://127.0.0.1:{free_port()}/"
    sections = (
        f"[deploy]\nurl = {away}\n[deploy:a]\nurl = {there.url}\n[deploy:b]\nurl = {away}x/\n"
    )
    (fleet.folder / "scrapy.cfg").write_text(sections)
    monkeypatch.chdir(fleet.folder)

    async def note() -> None:
        async with redis.asyncio.Redis.from_url(fleet.redis_url) as client:
            noted = json.dumps({"name": "gone", "host": "h9", "cores": 8})
            await client.hset(NODES, "gone", noted)

    asyncio.run(note())
    rows = fleet.ask("reader", "GET", "/api/check").json()
    nodes = {row["name"]: row for row in rows if row["part"] == "scrapyd node"}
    assert sorted(nodes) == ["a", "b", "gone"], "a plain [deploy] is no node before it is used"
    assert nodes["a"]["reachable"] and nodes["a"]["load"] == {"running": 0, "pending": 0}
    assert not nodes["b"]["reachable"] and "cannot be reached" in nodes["b"]["problem"]
    assert "scrapy.cfg" in nodes["gone"]["problem"] and nodes["gone"]["load"]["host"] == "h9"


def test_without_redis_the_parts_say_so(filled_folder: Path, tmp_path: Path) -> None:
    running = start_in_thread(
        create_app(Deps(store=open_store("", filled_folder), redis_error="no Redis here"))
    )
    try:
        rows = httpx.get(running.url + "/api/check").json()
        why = httpx.get(running.url + "/api/why", params={"url": PAGE})
    finally:
        running.stop()
    assert [row["problem"] for row in rows if row["part"] == "redis"] == ["no Redis here"]
    assert why.status_code == 503


def test_seed_routes_answer_whole_texts(fleet: Fleet) -> None:
    answer = fleet.ask("reader", "GET", "/api/search/keyword?q=bóng đá&size=4&page=1").json()
    assert (answer["total"], answer["total_pages"], answer["page"]) == (10, 3, 1)
    assert len(answer["content"]) == 4
    assert all(one["url"] and one["title"] and one["content"] for one in answer["content"])
    refused = fleet.ask("reader", "GET", "/api/search/semantic?q=bóng đá")
    assert refused.status_code == 400 and "no search by meaning" in refused.json()["error"]


START = "http://127.0.0.1:9/"


@ANY_REDIS
def test_a_crawl_is_begun_told_of_and_cancelled(fleet: Fleet) -> None:
    body = {"url": START, "levels": 2, "max_pages": 5}
    begun = fleet.ask("operator", "POST", "/api/crawls", json=body)
    assert begun.status_code == 201, begun.text
    told = begun.json()
    assert begun.headers["Location"] == f"/api/crawls/{told['id']}"
    assert told["state"] == "waiting" and "a worker: none is running" in told["waits_for"]
    assert (told["levels"], told["max_pages"], told["queued"], told["fetched"]) == (2, 5, 1, 0)
    assert fleet.ask("reader", "GET", "/api/crawls").json() == [told]
    pages = fleet.ask("reader", "GET", f"/api/crawls/{told['id']}/pages").json()
    assert pages == [{"url": START, "level": 0, "kind": "home", "outcome": None}]
    assert fleet.ask("reader", "DELETE", f"/api/crawls/{told['id']}").status_code == 403
    for _ in range(2):
        done = fleet.ask("operator", "DELETE", f"/api/crawls/{told['id']}").json()
        assert done["state"] == "cancelled" and done["queued"] == 0 and done["ended"]
    rows = fleet.ask("admin", "GET", "/api/audit").json()
    assert [row["action"] for row in rows][-1] == "crawl.start"
    assert {(row["target"], row["detail"]) for row in rows} == {
        (START, "levels=2 max_pages=5"), (told["id"], ""),
    }  # fmt: skip
    assert all(row["who"] and row["role"] == "operator" for row in rows)


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ({"url": START, "levels": 0}, "levels"),
        ({"url": START, "levels": -3}, "levels"),
        ({"url": START, "levels": 21}, "levels is 21; it must be 1 to 20"),
        ({"url": START, "max_pages": 0}, "max_pages"),
        ({"url": START, "max_pages": 10**12}, "max_pages is"),
        ({"url": START, "depth": 1}, "depth"),
        ({"url": "ftp://vnexpress.net/"}, "url"),
        ({"url": "http://169.254.169.254/"}, "link-local"),
        ({"url": "http://khong-co.invalid/"}, "has no address"),
        ({"url": "http://127.0.0.1:9/a.png"}, "image"),
    ],
)
def test_a_crawl_that_cannot_be_is_refused_at_once(
    fleet: Fleet, body: dict[str, object], told: str
) -> None:
    refused = fleet.ask("operator", "POST", "/api/crawls", json=body)
    assert refused.status_code == 422 and told in refused.text, refused.text
    assert fleet.ask("reader", "GET", "/api/crawls").json() == []


def test_robots_txt_that_is_known_refuses_a_crawl(fleet: Fleet) -> None:
    async def know() -> None:
        async with redis.asyncio.Redis.from_url(fleet.redis_url) as client:
            entry = {"status": 200, "body": b"User-agent: *\nDisallow: /kin", "fetched": 1}
            await client.hset(keys.robots(0, "127.0.0.1:9"), mapping={**entry, "version": 1})

    asyncio.run(know())
    refused = fleet.ask("operator", "POST", "/api/crawls", json={"url": START + "kin/a.html"})
    assert refused.status_code == 422 and "robots.txt of 127.0.0.1:9 forbids" in refused.text
    assert fleet.ask("operator", "POST", "/api/crawls", json={"url": START}).status_code == 201


@ANY_REDIS
def test_too_many_crawls_and_unknown_ones(fleet: Fleet) -> None:
    for number in range(MOST_RUNNING):
        body = {"url": f"{START}trang/{number}"}
        assert fleet.ask("operator", "POST", "/api/crawls", json=body).status_code == 201
    refused = fleet.ask("operator", "POST", "/api/crawls", json={"url": START})
    assert refused.status_code == 409 and "are running" in refused.text
    for method, path in (("GET", ""), ("DELETE", ""), ("GET", "/pages")):
        assert fleet.ask("operator", method, f"/api/crawls/00000000{path}").status_code == 404
    assert fleet.ask("operator", "GET", "/api/crawls/nothing").status_code == 422


# ---------------------------------------------------------------- take-down
def stored_article(fleet: Fleet) -> Article:
    one = replace(article("x", "Giá vàng tăng mạnh hôm nay", filler(3)), url=PAGE, site=SITE)

    async def put() -> None:
        store = open_store("", fleet.folder)
        await store.put([one, article("y", "Bão số 5 vào bờ", filler(4))])
        await store.close()

    asyncio.run(put())
    return one


def ids_in(folder: Path) -> set[str]:
    async def read() -> set[str]:
        store = open_store("", folder)
        found = {a.id async for a in store.scan()}
        await store.close()
        return found

    return asyncio.run(read())


def taken_down(fleet: Fleet) -> dict[str, Any]:
    end = time.monotonic() + 60
    while True:
        (run, *_) = fleet.ask("admin", "GET", "/api/takedown").json()
        if run["state"] != "running":
            return dict(run)
        assert time.monotonic() < end, run
        time.sleep(0.05)


def test_an_article_is_taken_down_with_its_proof_and_two_entries(fleet: Fleet) -> None:
    one = stored_article(fleet)
    body = {"target": PAGE, "reason": "court order 12/2026"}
    planned = fleet.ask("admin", "POST", "/api/takedown", json={**body, "dry_run": True})
    assert planned.status_code == 200 and planned.json()["state"] == "planned"
    assert planned.json()["report"]["articles"] == {one.id: PAGE}
    assert len(ids_in(fleet.folder)) == 2 and fleet.ask("admin", "GET", "/api/audit").json() == []

    begun = fleet.ask("admin", "POST", "/api/takedown", json=body)
    assert begun.status_code == 202 and begun.json()["state"] == "running", begun.text
    done = taken_down(fleet)
    assert done["state"] == "done", done
    assert done["report"]["removed"]["articles"] == 1 and done["report"]["left"] == []
    assert done["report"]["looked_at"]["texts"] > 2, "the proof of the command"
    assert one.id not in ids_in(fleet.folder) and len(ids_in(fleet.folder)) == 1
    audit = fleet.ask("admin", "GET", "/api/audit").json()
    assert [row["action"] for row in audit] == ["takedown.done", "takedown"]
    assert audit[1]["detail"] == "court order 12/2026" and audit[1]["role"] == "admin"
    (row,) = fleet.ask("admin", "GET", "/api/takedown/blocked").json()
    assert (row["target"], row["reason"]) == (PAGE, body["reason"])
    assert row["who"] == audit[1]["who"], "the token that asked"
    again = fleet.ask("operator", "POST", "/api/recheck", json={"url": PAGE})
    assert again.status_code == 422, "it is blocked"


@pytest.mark.parametrize("role", ["reader", "operator"])
@pytest.mark.parametrize("path", ["/api/takedown", "/api/takedown/blocked"])
def test_take_downs_are_the_admins(fleet: Fleet, role: str, path: str) -> None:
    assert fleet.ask(role, "GET", path).status_code == 403
    body = {"target": PAGE, "reason": "asked"}
    assert fleet.ask(role, "POST", "/api/takedown", json=body).status_code == 403


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"target": "not a target", "reason": "asked"}, "neither a URL"),
        ({"target": "*.vnexpress.net", "reason": "asked", "confirm": True}, "neither a URL"),
        ({"target": "desk@vnexpress.net", "reason": "asked", "confirm": True}, "neither a URL"),
        ({"target": "com.vn", "reason": "asked", "confirm": True}, "public suffix"),
        ({"target": "blogspot.com", "reason": "asked", "confirm": True}, "public suffix"),
        ({"target": "vnexpress.net", "reason": "asked"}, "confirm"),
        ({"target": PAGE, "reason": " "}, "reason"),
        ({"target": PAGE}, "reason"),
        ({"target": PAGE, "reason": "asked", "yes": True}, "yes"),
    ],
)
def test_a_take_down_that_is_asked_wrongly_changes_nothing(
    fleet: Fleet, body: dict[str, Any], said: str
) -> None:
    stored_article(fleet)
    refused = fleet.ask("admin", "POST", "/api/takedown", json=body)
    assert refused.status_code == 422 and said in refused.text
    assert (
        len(ids_in(fleet.folder)) == 2 and fleet.ask("admin", "GET", "/api/takedown").json() == []
    )


@pytest.mark.long
def test_all_processes_of_a_server_know_of_a_take_down(fleet: Fleet, filled_folder: Path) -> None:
    """A second application over the same DATA_DIR, as that of another process."""
    stored_article(fleet)
    settings = crawl_settings(fleet.folder, fleet.redis_url)
    access = Access(SECRET, host="0.0.0.0", book=TokenBook(fleet.folder))
    audit = AuditLog(fleet.folder, time.time)
    store = open_store("", filled_folder)
    running = start_in_thread(
        create_app(Deps(store=store, access=access, settings=settings, audit=audit, sites=SITES))
    )
    other = replace(fleet, url=running.url)
    body = {"target": PAGE, "reason": "asked"}
    try:
        with (fleet.folder / "takedown-runs.lock").open("ab") as held:  # as who is at work does
            fcntl.flock(held, fcntl.LOCK_EX)
            for one in (fleet, other):
                refused = one.ask("admin", "POST", "/api/takedown", json=body)
                assert refused.status_code == 409 and "one at a time" in refused.text
        assert fleet.ask("admin", "POST", "/api/takedown", json=body).status_code == 202
        assert taken_down(other)["state"] == "done"
        rows = [one.ask("admin", "GET", "/api/takedown").json() for one in (fleet, other)]
        assert rows[0] == rows[1] and len(rows[0]) == 1
        path = fleet.folder / "takedown-runs.pending"
        assert path.stat().st_mode & 0o777 == 0o600
        killed = rows[0][0] | {"state": "running", "ended": None, "report": None}
        path.write_text(json.dumps([killed]))
        assert taken_down(other)["state"] == "interrupted", "nobody holds the lock"
    finally:
        running.stop()


@pytest.mark.long
def test_one_take_down_at_a_time_and_what_fails_is_said(fleet: Fleet) -> None:
    stored_article(fleet)
    body = {"target": PAGE, "reason": "asked"}
    with alone(fleet.folder):
        assert fleet.ask("admin", "POST", "/api/takedown", json=body).status_code == 202
        failed = taken_down(fleet)
    assert failed["state"] == "failed" and "at work here" in failed["said"]
    assert fleet.ask("admin", "POST", "/api/takedown", json=body).status_code == 202
    other = fleet.ask(
        "admin", "POST", "/api/takedown", json={**body, "target": "b.vn", "confirm": True}
    )
    assert other.status_code in (202, 409), other.text
    if other.status_code == 409:
        assert "one at a time" in other.text
    assert taken_down(fleet)["state"] == "done"
    assert len(ids_in(fleet.folder)) == 1
