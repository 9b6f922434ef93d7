"""What every answer of the API has: form of errors, compression, tags, limits, origins; and what
/openapi.json says of it."""

from __future__ import annotations

import gzip
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import APIRouter
from openapi_spec_validator import validate
from pydantic import TypeAdapter

from newscrawler.api.access import Access, make_token
from newscrawler.api.app import create_app
from newscrawler.api.cors import Cors
from newscrawler.api.deps import Deps
from newscrawler.api.examples import EXAMPLES, TEXTS
from newscrawler.api.limits import RequestLimits
from newscrawler.api.rate import MOST_CALLERS, Rate
from newscrawler.api.server import start_in_thread
from newscrawler.api.tokens import TokenBook
from newscrawler.store import open_store

SECRET = "0123456789abcdef" * 2
PER_MINUTE = 30
FRIEND = "https://bao.example"


@dataclass
class Server:
    url: str
    folder: Path

    def token(self, role: str = "reader") -> str:
        now = int(time.time())
        issued = TokenBook(self.folder).add(role, now, now + 3_600)
        return make_token(SECRET, days=1, role=role, token_id=issued.id)

    def get(self, path: str, token: str = "", method: str = "GET", **headers: str) -> Any:
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        if token:
            sent["Authorization"] = f"Bearer {token}"
        return httpx.request(method, self.url + path, headers=sent, timeout=60)


@pytest.fixture(scope="module")
def server(filled_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("gate")
    app = create_app(
        Deps(
            store=open_store("", filled_folder),
            access=Access(SECRET, host="0.0.0.0", book=TokenBook(folder)),
            limits=RequestLimits(per_minute=PER_MINUTE),
            cors=Cors.parse(FRIEND),
        )
    )

    async def broken() -> None:
        raise RuntimeError("secret words of a traceback")

    router = APIRouter()
    router.add_api_route("/api/broken", broken)
    app.include_router(router)
    running = start_in_thread(app)
    yield Server(running.url, folder)
    running.stop()


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/api/search?page=-1", 422),
        ("/api/search?q=-a", 400),
        ("/api/articles/00000000", 404),
        ("/api/none", 404),
        ("/api/frontier", 503),
        ("/api/audit", 403),
        ("/api/broken", 500),
    ],
)
def test_every_error_is_a_problem(server: Server, path: str, status: int) -> None:
    answer = server.get(path, server.token())
    assert answer.status_code == status, answer.text
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    body = answer.json()
    assert body["status"] == status and body["type"] == "about:blank" and body["title"]
    assert body["detail"] == body["error"] != ""
    assert "traceback" not in answer.text


def test_errors_of_the_gate_are_problems_too(server: Server) -> None:
    cases = [
        (server.get("/api/search"), 401),
        (server.get("/api/search", host="evil.example"), 421),
        (server.get("/api/search", server.token(), "POST"), 405),
        (server.get("/api/search", method="POST", origin="https://evil.example"), 403),
    ]
    for answer, status in cases:
        assert answer.status_code == status, answer.text
        assert answer.headers["Content-Type"] == "application/problem+json"
        assert answer.json()["status"] == status


def test_answers_are_compressed_for_who_can_read_it(server: Server) -> None:
    token = server.token()
    path = server.url + "/openapi.json"
    headers = {"Authorization": f"Bearer {token}"}
    with httpx.stream("GET", path, headers={**headers, "Accept-Encoding": "gzip"}) as packed:
        raw = b"".join(packed.iter_raw())
    plain = httpx.get(path, headers={**headers, "Accept-Encoding": "identity"})
    assert packed.headers["Content-Encoding"] == "gzip" and "Content-Encoding" not in plain.headers
    assert gzip.decompress(raw) == plain.content and len(raw) < len(plain.content) / 3
    assert "Accept-Encoding" in packed.headers["Vary"]
    assert packed.headers["ETag"] == plain.headers["ETag"]


@pytest.mark.parametrize("path", ["/openapi.json", "/api/articles/{id}"])
def test_what_is_known_is_not_sent_again(server: Server, path: str) -> None:
    token = server.token()
    (first, *_) = server.get("/api/search?q=vàng OR bão", token).json()["hits"]
    path = path.format(id=first["id"])
    whole = server.get(path, token)
    tag = whole.headers["ETag"]
    assert whole.status_code == 200 and whole.content and tag.startswith('W/"')
    for known in (tag, f'"other", {tag}', "*"):
        same = server.get(path, token, if_none_match=known)
        assert same.status_code == 304 and not same.content and same.headers["ETag"] == tag
    assert server.get(path, token, if_none_match='"other"').content == whole.content
    head = server.get(path, token, "HEAD")
    assert head.status_code == 200 and head.headers["ETag"] == tag and not head.content
    missing = server.get("/api/articles/00000000", token, if_none_match="*")
    assert missing.status_code == 404 and "ETag" not in missing.headers


def test_a_token_has_so_many_requests_a_minute(server: Server) -> None:
    token, other = server.token(), server.token()
    answers = [server.get("/api/articles/00000000", token) for _ in range(PER_MINUTE + 15)]
    refused = [answer for answer in answers if answer.status_code == 429]
    assert refused and {a.status_code for a in answers} == {404, 429}
    assert 1 <= int(refused[0].headers["Retry-After"]) <= 60
    assert refused[0].json()["status"] == 429
    assert server.get("/api/articles/00000000", other).status_code == 404, "others are not held up"
    assert server.get("/healthz").status_code == 200


def test_the_bucket_of_a_caller() -> None:
    now = [100.0]
    rate = Rate(60, clock=lambda: now[0])
    assert [rate.take("a") for _ in range(61)] == [0] * 60 + [1]
    assert rate.take("b") == 0
    now[0] += 1.0
    assert rate.take("a") == 0 and rate.take("a") == 1
    now[0] += 3_600
    assert [rate.take("a") for _ in range(61)].count(0) == 60, "not more than a minute's is saved"
    for number in range(MOST_CALLERS + 10):
        rate.take(f"caller {number}")
    assert len(rate._left) == MOST_CALLERS
    assert Rate(2, clock=lambda: 0.0).take("x") == 0
    assert [Rate(0).take("x") for _ in range(1_000)] == [0] * 1_000


def test_only_named_origins_may_read(server: Server) -> None:
    token = server.token()
    friend = server.get("/api/search?q=x", token, origin=FRIEND)
    assert friend.headers["Access-Control-Allow-Origin"] == FRIEND
    assert "Origin" in friend.headers["Vary"]
    assert "Access-Control-Allow-Credentials" not in friend.headers
    stranger = server.get("/api/search?q=x", token, origin="https://evil.example")
    assert "Access-Control-Allow-Origin" not in stranger.headers
    assert "Origin" in stranger.headers["Vary"], "a cache must not hand one the other's answer"
    page = server.get("/", token, origin=FRIEND)
    assert "Access-Control-Allow-Origin" not in page.headers
    asked = {"origin": FRIEND, "access_control_request_method": "POST"}
    before = server.get("/api/recheck", method="OPTIONS", **asked)
    assert before.status_code == 204 and "Authorization" in str(before.headers)
    asked["origin"] = "https://evil.example"
    assert server.get("/api/recheck", method="OPTIONS", **asked).status_code == 403


def test_another_origin_changes_nothing_without_a_token_of_its_own(server: Server) -> None:
    """A form that a page of it sends brings the cookie along."""
    operator = server.token("operator")
    cookie = f"newscrawler_token={operator}"
    path = "/api/domains/a.vn/pause"
    assert server.get(path, method="POST", origin=FRIEND, cookie=cookie).status_code == 403
    assert server.get(path, operator, "POST", origin=FRIEND).status_code == 503  # no Redis here
    evil = server.get(path, operator, "POST", origin="https://evil.example")
    assert evil.status_code == 403


@pytest.mark.parametrize(
    "text", ["bao.example", "https://bao.example/path", "ftp://x", "https://a b"]
)
def test_an_origin_that_is_none_is_named(text: str) -> None:
    with pytest.raises(ValueError, match="API_CORS_ORIGINS"):
        Cors.parse(text)


def test_a_feed_may_be_read_with_a_token_in_its_address(server: Server) -> None:
    feed, reader = server.token("feed"), server.token("reader")
    for form in ("rss", "atom", "json"):
        answer = server.get(f"/feed.{form}?q=a&token={feed}")
        assert answer.status_code == 200, answer.text
        assert feed not in answer.text, "who passes the feed on does not pass the token on"
        assert server.get(f"/feed.{form}?q=a", reader).status_code == 200
    refused = server.get(f"/feed.rss?q=a&token={reader}")
    assert refused.status_code == 401 and "role feed" in refused.json()["detail"]
    for path in ("/api/search?q=a", "/", "/api/status"):
        assert server.get(f"{path}{'&' if '?' in path else '?'}token={feed}").status_code == 401
        assert server.get(path, feed).status_code == 401, "a feed's token reads nothing else"
    assert server.get("/feed.rss?q=a&token=x").status_code == 401


# ---------------------------------------------------------------- the description
def document() -> tuple[Any, dict[str, Any]]:
    app = create_app(Deps(store=open_store("", "unused")))
    return app, app.openapi()


def test_the_description_is_valid_openapi() -> None:
    _, described = document()
    validate(described)
    assert set(described["components"]["securitySchemes"]) == {"bearer", "cookie", "feed"}
    for path, methods in described["paths"].items():
        for method, operation in methods.items():
            assert operation["summary"] and operation["tags"], (method, path)
            for status, answer in operation["responses"].items():
                if status in ("401", "404", "422", "429"):
                    assert list(answer["content"]) == ["application/problem+json"], (path, status)
    assert described["paths"]["/healthz"]["get"]["security"] == []
    assert {"feed": []} in described["paths"]["/feed.rss"]["get"]["security"]
    assert {"feed": []} not in described["paths"]["/api/search"]["get"]["security"]


def test_examples_are_answers_that_the_routes_may_give() -> None:
    app, described = document()
    models = {
        f"{method} {route.path}": route.response_model
        for route in app.routes
        for method in getattr(route, "methods", None) or ()
        if getattr(route, "response_model", None) is not None
    }
    assert set(EXAMPLES) <= set(models)
    for name, example in EXAMPLES.items():
        TypeAdapter(models[name]).validate_python(example)
        method, path = name.split()
        shown = examples_of(described["paths"][path][method.lower()])
        assert shown["application/json"] == example


def examples_of(operation: dict[str, Any]) -> dict[str, Any]:
    """Media type -> example of an answer that is no error; None: it has none."""
    return {
        media: content.get("example")
        for status, answer in operation["responses"].items()
        if status.startswith("2")
        for media, content in answer.get("content", {}).items()
    }


def test_every_route_has_an_example_of_each_form_of_its_answer() -> None:
    _, described = document()
    named, without = set(), set()
    for path, methods in described["paths"].items():
        for method, operation in methods.items():
            examples = examples_of(operation)
            assert examples, (method, path)
            named.add(f"{method.upper()} {path}")
            without |= {(path, media) for media, one in examples.items() if not one}
    assert without == {("/api/export", "application/vnd.apache.parquet")}, "no text at all"
    assert set(EXAMPLES) | set(TEXTS) == named, "an example of a route that is gone"
