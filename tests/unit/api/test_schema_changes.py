"""Schemathesis over every route that changes something, of a running server that asks for tokens:
no input answers 500, every answer is as documented, and no role reaches beyond its own.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import redis.asyncio
import schemathesis
from hypothesis import given, seed
from schemathesis.checks import (
    content_type_conformance,
    not_a_server_error,
    response_schema_conformance,
    status_code_conformance,
)

from newscrawler.api.access import Access, make_token
from newscrawler.api.app import create_app
from newscrawler.api.deps import Deps
from newscrawler.api.server import start_in_thread
from newscrawler.crawl import site_choice
from newscrawler.discovery.sites import Sites
from newscrawler.frontier.queue import Frontier, FrontierConfig
from newscrawler.items import Kind, Link
from newscrawler.store import open_store
from tests.fixtures_browser import NOW, article_id
from tests.unit.api.test_schema import DOMAIN, EXAMPLES, OPERATIONS, SEED, all_parts, bounded

SECRET = "5e" * 32
#: Of the documented: what the gate and the route answer. What is right to generate may still be
#: refused (a host of no site, an address that cannot be crawled), so acceptance is no check here.
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]
CHANGES = [name for name in OPERATIONS if not name.startswith("GET ")]
ROLE = {name: "admin" if name == "POST /api/takedown" else "operator" for name in CHANGES}
BELOW = {"operator": "reader", "admin": "operator"}


def headers(role: str) -> dict[str, str]:
    token = make_token(SECRET, days=1, role=role, token_id=role, clock=NOW.timestamp)
    return {"Authorization": f"Bearer {token}"}


@pytest.fixture(scope="module")
def guarded(
    filled_folder: Path, selector_redis_url: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """With tokens, and a frontier that knows DOMAIN; names lead to this machine. Its articles are
    a copy: a take-down removes some."""
    folder = tmp_path_factory.mktemp("changes") / "data"
    shutil.copytree(filled_folder, folder)
    deps = all_parts(selector_redis_url, folder, folder)
    assert deps.settings is not None and isinstance(deps.frontier, Frontier)
    deps.settings.set("RESOLVE_OVERRIDE", "*=127.0.0.1:9", "cmdline")
    deps.settings.set("ALLOWED_PRIVATE_NETWORKS", "127.0.0.0/8", "cmdline")
    running = start_in_thread(create_app(replace(deps, access=Access(secret=SECRET))))

    async def known() -> None:
        client = redis.asyncio.Redis.from_url(selector_redis_url)
        frontier = Frontier(client, FrontierConfig(shards=1), "schema")
        sites: Sites = site_choice.load_sites(deps.settings)
        await frontier.put_domains(site_choice.domain_policies(sites, deps.settings))
        home = sites.identify(f"https://{DOMAIN}/", kind=Kind.HOME)
        assert isinstance(home, Link)
        await frontier.add([home])
        await client.aclose()

    asyncio.run(known())
    yield running.url
    running.stop()


def test_the_changes_are_found() -> None:
    assert {
        "POST /api/crawls",
        "DELETE /api/crawls/{crawl_id}",
        "POST /api/seeds",
        "POST /api/recheck",
        "POST /api/takedown",
        "POST /api/domains/{domain}/pause",
        "POST /api/domains/{domain}/resume",
    } <= set(CHANGES)


@EXAMPLES
@pytest.mark.parametrize("mode", list(schemathesis.GenerationMode))
@pytest.mark.parametrize("name", CHANGES)
def test_changes_answer_as_documented(
    guarded: str, name: str, mode: schemathesis.GenerationMode, examples: int
) -> None:
    print(f"NEWSCRAWLER_TEST_SEED={SEED}")
    seen = set()

    @bounded(examples)
    @seed(SEED)
    @given(case=OPERATIONS[name].as_strategy(mode))
    def answers(case: Any) -> None:
        answer = case.call(base_url=guarded, headers=headers(ROLE[name]))
        case.validate_response(answer, checks=CHECKS)
        seen.add(answer.status_code)
        assert answer.status_code not in (401, 403)
        if mode is schemathesis.GenerationMode.NEGATIVE:
            assert answer.status_code >= 400

    answers()
    assert seen


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_asks_for_its_role(guarded: str, name: str) -> None:
    print(f"NEWSCRAWLER_TEST_SEED={SEED}")

    @bounded(3)
    @seed(SEED)
    @given(case=OPERATIONS[name].as_strategy(schemathesis.GenerationMode.POSITIVE))
    def answers(case: Any) -> None:
        for given_headers, status in (
            ({}, 401),
            ({"Authorization": "Bearer none"}, 401),
            (headers(BELOW[ROLE[name]]), 403),
        ):
            answer = case.call(base_url=guarded, headers=given_headers)
            assert answer.status_code == status
            case.validate_response(answer, checks=CHECKS)

    answers()


KNOWN = [
    ("POST /api/domains/{domain}/pause", {"domain": DOMAIN}, None, 200),
    ("POST /api/domains/{domain}/resume", {"domain": DOMAIN}, None, 200),
    ("POST /api/domains/{domain}/pause", {"domain": "nobody.example"}, None, 404),
    ("POST /api/seeds", {}, {"url": f"https://{DOMAIN}/rss/new.rss", "kind": "feed"}, 200),
    ("POST /api/seeds", {}, {"url": "https://nobody.example/rss", "kind": "feed"}, 422),
    ("POST /api/recheck", {}, {"url": f"https://{DOMAIN}/a-story-4801234.html"}, 200),
    ("POST /api/crawls", {}, {"url": f"https://{DOMAIN}/"}, 201),
    ("DELETE /api/crawls/{crawl_id}", {"crawl_id": "0" * 8}, None, 404),
    ("POST /api/takedown", {}, {"target": DOMAIN, "reason": "asked", "dry_run": True}, 200),
    ("POST /api/takedown", {}, {"target": DOMAIN, "reason": "asked"}, 422),
    (
        "POST /api/takedown",
        {},
        {"target": f"https://{DOMAIN}/a-story-4801234.html", "reason": "asked"},
        202,
    ),
]


@pytest.mark.parametrize(("name", "path", "body", "status"), KNOWN)
def test_a_right_change_answers_as_documented(
    guarded: str, name: str, path: dict[str, str], body: dict[str, Any] | None, status: int
) -> None:
    """What generated requests seldom are: ones that this server can carry out."""
    found = {"body": body, "media_type": "application/json"} if body is not None else {}
    case = OPERATIONS[name].Case(path_parameters=path, **found)
    answer = case.call(base_url=guarded, headers=headers(ROLE[name]))
    assert answer.status_code == status, answer.text
    case.validate_response(answer, checks=CHECKS)


@pytest.mark.parametrize("name", [name for name in CHANGES if "takedown" not in name])
def test_a_change_without_redis_or_settings_says_so(name: str, filled_folder: Path) -> None:
    deps = Deps(store=open_store("", filled_folder), access=Access(secret=SECRET), redis_error="no")
    running = start_in_thread(create_app(replace(deps, clock=NOW.timestamp)))
    body = {"url": f"https://{DOMAIN}/rss", "kind": "feed"}
    wanted = OPERATIONS[name].definition.raw.get("requestBody")
    found = {"body": body, "media_type": "application/json"} if wanted else {}
    if "seeds" not in name:
        body.pop("kind")
    try:
        case = OPERATIONS[name].Case(
            path_parameters={"domain": DOMAIN, "crawl_id": "0" * 8}, **found
        )
        answer = case.call(base_url=running.url, headers=headers(ROLE[name]))
    finally:
        running.stop()
    assert answer.status_code == 503, answer.text
    case.validate_response(answer, checks=[c for c in CHECKS if c is not not_a_server_error])


FILES = [
    *(("/api/export", {"format": form}) for form in ("csv", "jsonl", "parquet")),
    *(
        (f"/api/articles/{article_id('edited')}/cite", {"style": style})
        for style in ("apa", "bibtex", "ris", "csl-json")
    ),
    ("/api/attention", {"format": "csv"}),
    ("/api/attention", {"format": "json"}),
]


@pytest.mark.parametrize(("path", "query"), FILES)
def test_a_file_has_a_type_and_a_schema(guarded: str, path: str, query: dict[str, str]) -> None:
    name = "GET " + path.replace(article_id("edited"), "{article_id}")
    for status, answer in OPERATIONS[name].definition.raw["responses"].items():
        assert all(one["schema"] for one in answer["content"].values()), status
    case = OPERATIONS[name].Case(path_parameters={"article_id": article_id("edited")}, query=query)
    answer = case.call(base_url=guarded, headers=headers("reader"))
    assert answer.status_code == 200
    case.validate_response(answer, checks=CHECKS)


def test_every_answer_has_a_schema() -> None:
    for name, operation in OPERATIONS.items():
        for status, answer in operation.definition.raw["responses"].items():
            for media, told in answer.get("content", {}).items():
                assert told.get("schema"), (name, status, media)
