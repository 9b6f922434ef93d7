"""Schemathesis over every route of a running server: no input answers 500, every
answer is as documented.

``NEWSCRAWLER_TEST_SEED`` chooses other inputs than those of every run; the seed is printed.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import httpx
import pytest
import redis.asyncio
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from schemathesis.checks import (
    negative_data_rejection,
    not_a_server_error,
    positive_data_acceptance,
)
from scrapy.settings import Settings

from newscrawler.api.app import create_app
from newscrawler.api.audit import AuditLog
from newscrawler.api.deps import Deps
from newscrawler.api.server import start_in_thread
from newscrawler.fleet.registry import Beat, Registry
from newscrawler.frontier.queue import Frontier, FrontierConfig
from newscrawler.selectorsets.store import SelectorStore
from newscrawler.store import open_store
from tests.fixtures_browser import NOW, SITES

SEED = int(os.environ.get("NEWSCRAWLER_TEST_SEED", "20261122"))
#: Inputs for each route, in make test and in make chaos.
EXAMPLES = pytest.mark.parametrize("examples", [10, pytest.param(100, marks=pytest.mark.chaos)])
DOMAIN = "vnexpress.net"


def crawl_settings(folder: Path, redis_url: str) -> Settings:
    found = Settings()
    found.setmodule("newscrawler.settings")
    for name, value in {"DATA_DIR": str(folder), "REDIS_URL": redis_url}.items():
        found.set(name, value, "cmdline")
    return found


def bounded(examples: int) -> settings:
    return settings(
        max_examples=examples,
        deadline=None,
        database=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )


async def fill(redis_url: str, folder: Path) -> None:
    """A selector set and a worker; what was there before is gone."""
    client = redis.asyncio.Redis.from_url(redis_url)
    await client.flushall()
    sets = SelectorStore(client, folder / "none")
    doc = {
        "domain": DOMAIN,
        "version": 1,
        "state": "candidate",
        "variants": [
            {
                "template": "article",
                "fields": {"title": [{"css": "h1"}], "content": {"root": ["article"]}},
            }
        ],
        "provenance": {"made_by": "person", "source": "test"},
    }
    await sets.add_version(DOMAIN, doc, who="person")
    now_ms = int(NOW.timestamp() * 1000)
    registry = Registry(client, clock=NOW.timestamp)
    await registry.beat(Beat("w1-1-abcd1234", "w1", 1, beat_ms=now_ms, started_ms=now_ms))
    await client.aclose()


def all_parts(redis_url: str, articles: Path, data: Path) -> Deps:
    """Articles, a frontier, a worker and a selector set, all of them real."""
    asyncio.run(fill(redis_url, articles))
    client = redis.asyncio.Redis.from_url(redis_url)
    return Deps(
        store=open_store("", articles),
        settings=crawl_settings(data, redis_url),
        audit=AuditLog(data, NOW.timestamp),
        sites=SITES,
        clock=NOW.timestamp,
        registry=Registry(client, clock=NOW.timestamp),
        frontier=Frontier(client, FrontierConfig(shards=1), "search-page"),
        selectors=SelectorStore(client, articles / "none"),
    )


@pytest.fixture(scope="module")
def address(
    filled_folder: Path, selector_redis_url: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    deps = all_parts(selector_redis_url, filled_folder, tmp_path_factory.mktemp("data"))
    running = start_in_thread(create_app(deps))
    yield running.url
    running.stop()


def schema_of(is_whole: bool) -> Any:
    """The OpenAPI of the app; ``is_whole``: with the pages and forms, which the
    published one leaves out."""
    app = create_app(Deps(store=open_store("", "unused")))
    if is_whole:
        for route in app.routes:
            route.include_in_schema = True  # type: ignore[attr-defined]
    return schemathesis.openapi.from_dict(app.openapi())


PUBLISHED = schema_of(False)
WHOLE = schema_of(True)
OPERATIONS = {
    f"{op.ok().method.upper()} {op.ok().path}": op.ok() for op in PUBLISHED.get_all_operations()
}
PAGES = {
    name: op.ok()
    for op in WHOLE.get_all_operations()
    if (name := f"{op.ok().method.upper()} {op.ok().path}") not in OPERATIONS
}


#: Pages go as deep as hit 10,000, which is a rule of two parameters: no schema can say it.
#: A query may be without a word, a day, zone or cursor may be none, and this store has no vectors.
EXCLUDED = {
    f"GET /api/search{route}": [positive_data_acceptance] for route in ("", "/keyword", "/semantic")
}
QUERIES = ("articles", "export", "attention", "trends")
EXCLUDED |= {f"GET /api/{name}": [positive_data_acceptance] for name in QUERIES}
EXCLUDED |= {f"GET /feed.{form}": [positive_data_acceptance] for form in ("rss", "atom", "json")}
#: One text is as good as a list of one, which a schema of lists calls wrong.
for _name in ("search", "articles", "export", "attention"):
    EXCLUDED[f"GET /api/{_name}"].append(negative_data_rejection)
#: Links are taken of hosts that a site has: no schema can say it.
EXCLUDED |= {
    f"POST /api/{route}": [positive_data_acceptance] for route in ("recheck", "seeds", "takedown")
}
#: A graph is of a site or a topic, and not every address can be crawled.
EXCLUDED |= {f"GET /api/{route}": [positive_data_acceptance] for route in ("graph", "links")}


def can_be_wrong(operation: Any) -> bool:
    """Whether a parameter is more than any text."""
    schemas = [p.definition["schema"] for p in (*operation.query, *operation.path_parameters)]
    return any(
        set(schema) - {"type", "title", "default"} or schema["type"] != "string"
        for schema in schemas
    )


def asked_of(operations: dict[str, Any]) -> list[tuple[str, schemathesis.GenerationMode]]:
    """What may be read, with right and, where there are such, with wrong parameters."""
    right, wrong = schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE
    # The stream of events has no end; it has tests of its own.
    reading = [n for n in operations if n.startswith("GET ") and n != "GET /api/events"]
    return [(n, right) for n in reading] + [
        # Of a feed any text is right but one that is too long: test_feeds.
        (n, wrong)
        for n in reading
        if can_be_wrong(operations[n]) and "/feed." not in n
    ]


def test_the_schema_has_every_route() -> None:
    assert len(OPERATIONS) >= 9
    assert {"GET /", "GET /static/{name}", "POST /selectors/{domain}/approve"} <= set(PAGES)


@EXAMPLES
@pytest.mark.parametrize(("name", "mode"), asked_of(OPERATIONS))
def test_json_routes_answer_as_documented(
    address: str, name: str, mode: schemathesis.GenerationMode, examples: int
) -> None:
    print(f"NEWSCRAWLER_TEST_SEED={SEED}")
    operation = OPERATIONS[name]

    @bounded(examples)
    @seed(SEED)
    @given(case=operation.as_strategy(mode))
    def answers(case: Any) -> None:
        case.call_and_validate(base_url=address, excluded_checks=EXCLUDED.get(name))

    answers()


@EXAMPLES
@pytest.mark.parametrize(("name", "mode"), asked_of(PAGES))
def test_pages_never_answer_500(
    address: str, name: str, mode: schemathesis.GenerationMode, examples: int
) -> None:
    print(f"NEWSCRAWLER_TEST_SEED={SEED}")
    operation = PAGES[name]

    @bounded(examples)
    @seed(SEED)
    @given(case=operation.as_strategy(mode))
    def answers(case: Any) -> None:
        answer = case.call(base_url=address, headers={"Accept": "text/html"}, allow_redirects=False)
        case.validate_response(answer, checks=[not_a_server_error])

    answers()


FORMS = ["/login", f"/selectors/{DOMAIN}/approve", f"/selectors/{DOMAIN}/edit"]
FIELDS = st.dictionaries(
    st.sampled_from(["token", "next", "version", "document"]),
    st.text(max_size=40) | st.recursive(st.none() | st.text(), st.lists).map(json.dumps),
)


@EXAMPLES
@pytest.mark.parametrize("path", FORMS)
def test_forms_never_answer_500(address: str, path: str, examples: int) -> None:
    print(f"NEWSCRAWLER_TEST_SEED={SEED}")

    @bounded(examples)
    @seed(SEED)
    @given(
        body=FIELDS.map(lambda fields: urlencode(fields, errors="replace").encode()) | st.binary()
    )
    def answers(body: bytes) -> None:
        assert http.post(path, content=body).status_code < 500

    with httpx.Client(base_url=address) as http:
        answers()


@pytest.mark.parametrize(
    "path",
    [
        "/static/%00.css",
        "/static/" + "x" * 5000,
        "/static/" + "x" * 5000 + ".css",
        "/static/%F0%9F%98%80.css",
        "/static/..css",
        "/article/%00",
        "/article/" + "0" * 5000,
        f"/selectors/{DOMAIN}?version=" + "9" * 400,
        f"/selectors/{DOMAIN}?version=" + "9" * 5000,
        f"/selectors/{DOMAIN}?version=%C2%B2",
        f"/selectors/{DOMAIN}/example?page=%C2%B2",
        "/selectors/%00",
        "/?page=" + "9" * 30,
        "/api/search?page=" + "9" * 30,
        "/api/search?after=0001-01-01T00:00:00%2B23:59",
        "/api/search?before=9999-12-31T23:59:59-23:59",
        "/api/search?q=after:0000",
        "/api/search?q=%00",
        "/api/search?q=site:%00%22",
        "/login?next=%00",
        "/login?next=//[",
    ],
)
@pytest.mark.parametrize("accept", ["text/html", "application/json"])
def test_known_bytes_are_no_fault_of_the_server(address: str, path: str, accept: str) -> None:
    answer = httpx.get(address + path, headers={"Accept": accept})
    assert answer.status_code in (200, 303, 400, 404, 422), answer.text


@pytest.mark.parametrize(
    ("verb", "fields", "status"),
    [
        ("approve", {"version": "²"}, 422),
        ("approve", {"version": "9" * 19}, 422),
        ("approve", {"version": "9" * 5000}, 422),
        ("approve", {"version": "١"}, 422),
        ("approve", {"version": "0"}, 422),
        ("approve", {"version": "999999"}, 404),
        ("approve", {}, 422),
        ("edit", {"document": "[" * 100_000}, 422),
        ("edit", {"document": '{"a":' * 10_000 + "1" + "}" * 10_000}, 422),
        ("edit", {"document": json.dumps({"variants": [[[[]]]] * 50})}, 422),
        ("edit", {"document": "x" * 100_001}, 413),
        ("edit", {"document": "9" * 5000}, 422),
        ("edit", {"document": '{"domain": "\\ud800"}'}, 422),
        ("edit", {"document": '{"version": NaN}'}, 422),
        ("edit", {"document": "\x00"}, 422),
    ],
)
def test_known_fields_are_no_fault_of_the_server(
    address: str, verb: str, fields: dict[str, str], status: int
) -> None:
    answer = httpx.post(f"{address}/selectors/{DOMAIN}/{verb}", data=fields)
    assert answer.status_code == status, answer.text[:500]
