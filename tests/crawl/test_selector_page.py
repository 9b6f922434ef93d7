"""/selectors in a running server over real stores: read, approved and edited only through
the gate, seen in Chromium."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
import redis.asyncio

from newscrawler.api.access import Access, make_token
from newscrawler.api.app import create_app
from newscrawler.api.deps import Deps, SiteFacts
from newscrawler.api.server import start_in_thread
from newscrawler.fleet.registry import Registry
from newscrawler.items import Article
from newscrawler.rawstore import READER, RawStore
from newscrawler.selectorsets.store import SelectorStore
from newscrawler.store import open_store
from tests.crawl.test_browser import SCREENS, Screen
from tests.fixtures_browser import ATTACK, NOW
from tests.fixtures_selectors import made_pages

pytestmark = pytest.mark.slow

DOMAIN = "vnexpress.net"
SECRET = "0123456789abcdef" * 2
GOOD = {
    "title": [{"css": "h1.title-detail"}],
    "content": {
        "root": ["p.description, article.fck_detail"],
        "exclude": ["p.Image", "figure", "div[data-component-type]", ".width_common", "table"],
    },
}
BAD = {**GOOD, "title": [{"css": "a.logo"}]}


def a_doc(fields: dict[str, Any]) -> dict[str, Any]:
    return {
        "domain": DOMAIN,
        "version": 1,
        "state": "candidate",
        "variants": [{"template": "article", "fields": fields}],
        "provenance": {"made_by": "person", "source": ATTACK},
    }


@pytest.fixture
def deps(tmp_path: Path, selector_redis_url: str) -> Deps:
    """Twelve stored pages, one of them hostile; version 1 is good and active, version 2 is bad."""

    async def fill() -> None:
        client = redis.asyncio.Redis.from_url(selector_redis_url)
        await client.flushall()
        store = open_store("", tmp_path)
        await store.open()
        raw = RawStore.open(str(tmp_path / "warc"), "w1")
        articles = []
        for number, page in enumerate(made_pages(DOMAIN, 12)):
            body = page.body.replace(
                b"</h1>",
                b"</h1><p>" + ATTACK.replace("<", "&lt;").encode() + b"</p>" + ATTACK.encode(),
            )
            ref = raw.write(page.url, body, page.headers, 200, page.fetched)
            first = page.story.first
            articles.append(
                Article(
                    f"{number:032x}",
                    page.url,
                    DOMAIN,
                    first.title,
                    first.content,
                    fetched=page.fetched,
                    raw_ref=ref,
                )
            )
        raw.close()
        await store.put(articles)
        await store.close()
        sets = SelectorStore(client, tmp_path / "none")
        await sets.add_version(DOMAIN, a_doc(GOOD), who="person")
        await sets.approve(DOMAIN, 1)
        await sets.add_version(DOMAIN, a_doc(BAD), who="person")
        await client.aclose()

    with ThreadPoolExecutor(1) as thread:  # Playwright has a loop running in this one
        thread.submit(asyncio.run, fill()).result()
    client = redis.asyncio.Redis.from_url(selector_redis_url)
    return Deps(
        store=open_store("", tmp_path),
        sites={DOMAIN: SiteFacts(DOMAIN, "VnExpress", (DOMAIN,))},
        registry=Registry(client),  # closes the client with the server
        selectors=SelectorStore(client, tmp_path / "none"),
        raw=RawStore.open(str(tmp_path / "warc"), READER),
        clock=lambda: NOW.timestamp(),
    )


@pytest.fixture
def server(deps: Deps) -> Iterator[str]:
    running = start_in_thread(create_app(deps))
    yield running.url
    running.stop()


def active(client: httpx.Client) -> str:
    return client.get(f"/selectors/{DOMAIN}", headers={"Accept": "text/html"}).text


def test_approve_and_edit_run_the_gate(server: str) -> None:
    with httpx.Client(base_url=server, headers={"Accept": "text/html"}, timeout=180) as http:
        assert DOMAIN in http.get("/selectors").text
        refused = http.post(f"/selectors/{DOMAIN}/approve", data={"version": "2"})
        assert (
            refused.status_code == 409
            and "validation refuses it" in refused.text
            and "title" in refused.text
        )
        assert "1 (active)" in http.get(f"/selectors/{DOMAIN}").text

        bad = http.post(f"/selectors/{DOMAIN}/edit", data={"document": json.dumps(a_doc(BAD))})
        assert bad.status_code == 409 and "title" in bad.text
        broken = http.post(f"/selectors/{DOMAIN}/edit", data={"document": "{"})
        assert broken.status_code == 422 and "not JSON" in broken.text
        xpath = http.post(
            f"/selectors/{DOMAIN}/edit",
            data={"document": json.dumps(a_doc({**GOOD, "title": ["//h1"]}))},
        )
        assert xpath.status_code == 422 and "XPath" in xpath.text
        assert "version=3" not in http.get(f"/selectors/{DOMAIN}").text

        good = http.post(f"/selectors/{DOMAIN}/edit", data={"document": json.dumps(a_doc(GOOD))})
        assert good.status_code == 303 and "version=" in good.headers["location"], good.text[-500:]
        saved = good.headers["location"].rpartition("=")[2]
        assert "1 (active)" in http.get(f"/selectors/{DOMAIN}").text, (
            "an edit is not used by itself"
        )
        approved = http.post(f"/selectors/{DOMAIN}/approve", data={"version": saved})
        assert approved.status_code == 303
        assert f"{saved} (active)" in http.get(f"/selectors/{DOMAIN}").text


def test_only_operators_change_sets_and_other_sites_may_not(deps: Deps) -> None:
    deps.access = Access(secret=SECRET)
    running = start_in_thread(create_app(deps))
    with httpx.Client(base_url=running.url, timeout=180) as http:  # the gate runs
        path, form = f"/selectors/{DOMAIN}/approve", {"version": "1"}
        assert http.post(path, data=form).status_code == 401

        def as_role(role: str, **headers: str) -> int:
            token = make_token(SECRET, days=1, role=role, clock=lambda: NOW.timestamp())
            return http.post(
                path, data=form, headers={"Authorization": f"Bearer {token}", **headers}
            ).status_code

        assert as_role("reader") == 403
        assert as_role("operator", Origin="http://evil.example") == 403
        assert as_role("operator") == 303
    running.stop()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", list(SCREENS))
def test_set_is_shown_with_its_example_and_nothing_of_a_page_runs(
    chromium: Any,
    server: str,
    size: str,
    scheme: Any,
) -> None:
    width, height = SCREENS[size]
    context = chromium.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
    screen = Screen(context.new_page(), server, width)
    screen.open("/selectors")
    screen.page.get_by_role("link", name=DOMAIN).click()
    frame = screen.page.frame_locator("iframe.example")
    frame.locator("p[data-kind=title]").first.wait_for()
    assert frame.locator("p[data-kind=title]").count() == 1
    assert frame.locator("p[data-kind=content]").count() >= 3
    for kind in ("title", "content", "excluded"):  # marked: told from what stands around it
        one, other = (frame.locator(f"p[data-kind={k}]").first for k in (kind, "other"))
        colour = "e => getComputedStyle(e).backgroundColor"
        assert one.evaluate(colour) != other.evaluate(colour), f"{kind} is not marked"
    assert frame.locator("p[data-kind=other]").count() >= 1
    assert screen.page.get_by_role("heading", name="History").is_visible()
    assert frame.locator("body").evaluate("window.stolen") is None
    assert frame.locator("script, img").count() == 0
    assert frame.get_by_role("link", name="next page").get_attribute("href") == "?version=1&page=1"
    screen.check()
    context.close()


@pytest.mark.long
def test_set_is_edited_and_approved_in_a_browser(chromium: Any, server: str) -> None:
    """Browsers say where a form comes from, in their own way: programs do not show what
    they would be told."""
    context = chromium.new_context()
    screen = Screen(context.new_page(), server, 1280)
    page = screen.page
    page.set_default_timeout(120_000)  # the gate runs
    screen.open(f"/selectors/{DOMAIN}")
    written = page.get_by_label("The set as JSON")
    assert '"variants"' in written.input_value()[:120], "what is edited stands first"
    written.fill(json.dumps(a_doc(BAD)))
    page.get_by_role("button", name="Check and save").click()
    alert = page.get_by_role("alert")
    alert.wait_for()
    assert "validation refuses it" in alert.inner_text()
    page.get_by_label("The set as JSON").fill(json.dumps(a_doc(GOOD)))
    page.get_by_role("button", name="Check and save").click()
    page.get_by_role("button", name="Approve version 3").click()
    page.get_by_role("link", name="3 (active)").wait_for()
    context.close()


def test_token_is_taken_in_a_browser(chromium: Any, deps: Deps) -> None:
    deps.access = Access(secret=SECRET)
    running = start_in_thread(create_app(deps))
    context = chromium.new_context()
    page = context.new_page()
    page.goto(f"{running.url}/selectors")
    page.get_by_label("Token").fill(
        make_token(SECRET, days=1, role="operator", clock=lambda: NOW.timestamp())
    )
    page.get_by_role("button", name="Continue").click()
    page.get_by_role("link", name=DOMAIN).wait_for()
    assert page.get_by_label("Token").count() == 0, "it is not asked for again"
    context.close()
    running.stop()


@pytest.mark.long
def test_headline_below_the_root_is_marked_as_the_title(chromium: Any, server: str) -> None:
    """A set may exclude it from the text; it was struck out as if nothing had been found."""
    inside = {**GOOD, "content": {**GOOD["content"], "root": ["div.sidebar-1"]}}
    inside["content"]["exclude"] = [*GOOD["content"]["exclude"], "h1.title-detail"]
    with httpx.Client(base_url=server, headers={"Accept": "text/html"}, timeout=180) as http:
        saved = http.post(f"/selectors/{DOMAIN}/edit", data={"document": json.dumps(a_doc(inside))})
    assert saved.status_code == 303, saved.text[-500:]
    context = chromium.new_context()
    page = context.new_page()
    page.goto(server + saved.headers["location"])
    frame = page.frame_locator("iframe.example")
    frame.locator("p[data-kind=content]").first.wait_for()
    assert frame.locator("p[data-kind=title]").count() == 1
    assert "GMT+7" not in " ".join(frame.locator("p[data-kind=content]").all_inner_texts()), (
        "the line of the date"
    )
    context.close()
