"""Versions, states and the local copy, on a real Redis."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from newscrawler.selectorsets import keys, schema
from newscrawler.selectorsets.store import (
    SAMPLE_PAGES,
    SHADOW_PAGES,
    SelectorStore,
    StaleFence,
    UnknownSet,
    wilson_lower,
)


def a_set(domain: str = "a.vn", css: str = "h1.title", **more: Any) -> dict[str, Any]:
    fields = {"title": [{"css": css}], "content": {"root": ["div.body"], "exclude": [".related"]}}
    return {
        "domain": domain,
        "version": 1,
        "state": "active",
        "variants": [{"template": "article", "fields": fields}],
        "provenance": {"made_by": "person"},
        **more,
    }


def write(folder: Path, name: str, doc: Any) -> None:
    (folder / f"{name}.json").write_text(
        doc if isinstance(doc, str) else json.dumps(doc), encoding="utf-8"
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "selectors").mkdir()
    return tmp_path / "selectors"


def css_of(store: SelectorStore, domain: str = "a.vn") -> str | None:
    active = store.active(domain)
    return active.variants[0].fields["title"][0].css if active else None


async def test_shipped_files_serve_without_redis(folder: Path) -> None:
    write(folder, "a.vn", a_set())
    write(folder, "b.vn", a_set("b.vn", state="probation"))
    store = SelectorStore(None, folder)
    assert css_of(store) == "h1.title"
    assert store.active("b.vn") is None
    assert store.probation("b.vn") is not None
    assert not store.is_missing("b.vn")
    assert store.is_missing("c.vn")
    assert await store.refresh() == 0


@pytest.mark.parametrize(
    ("broken", "field", "reason"),
    [
        ("{", "(the whole file)", "not JSON"),
        (a_set("other.vn"), "domain", "file's name"),
        (a_set(state="great"), "state", "great"),
        (a_set(css="//h1"), "variants[0].fields.title[0].css", "XPath"),
        (a_set(css="div:has(p)"), "variants[0].fields.title[0].css", ""),
        (a_set(provenance={}), "provenance.made_by", "None"),
        (a_set(variants=[]), "variants", ""),
    ],
)
async def test_bad_file_is_named_and_the_rest_works(
    folder: Path, selector_redis: Any, broken: Any, field: str, reason: str
) -> None:
    write(folder, "a.vn", broken)
    write(folder, "b.vn", a_set("b.vn"))
    store = SelectorStore(selector_redis, folder)
    done = await store.load_folder()
    assert done.new == ["b.vn"]
    assert len(done.errors) == 1
    assert done.errors[0].startswith(f"a.vn.json: {field}")
    assert reason in done.errors[0]
    assert store.active("a.vn") is None
    assert css_of(store, "b.vn")


async def test_load_is_idempotent_and_a_changed_file_is_a_new_version(
    folder: Path, selector_redis: Any
) -> None:
    write(folder, "a.vn", a_set())
    assert (await SelectorStore(selector_redis, folder).load_folder()).new == ["a.vn"]
    again = SelectorStore(selector_redis, folder)
    assert (await again.load_folder()).unchanged == ["a.vn"]
    assert await selector_redis.hlen(keys.versions("a.vn")) == 1
    write(folder, "a.vn", a_set(css="h1.new"))
    store = SelectorStore(selector_redis, folder)
    assert (await store.load_folder()).new == ["a.vn"]
    assert css_of(store) == "h1.new"
    assert store.active("a.vn").version == 2  # type: ignore[union-attr]


async def test_other_workers_see_a_change_after_refresh(
    folder: Path, selector_redis: Any, tmp_path: Path
) -> None:
    worker = SelectorStore(selector_redis, tmp_path / "none")
    assert worker.active("a.vn") is None
    write(folder, "a.vn", a_set())
    await SelectorStore(selector_redis, folder).load_folder()
    assert worker.active("a.vn") is None
    assert await worker.refresh() == 1
    assert css_of(worker) == "h1.title"
    assert await worker.refresh() == 0


async def test_redis_beats_the_shipped_file(folder: Path, selector_redis: Any) -> None:
    write(folder, "a.vn", a_set())
    store = SelectorStore(selector_redis, folder)
    await store.load_folder()
    number = await store.add_version("a.vn", a_set(css="h1.better"), who="person")
    assert css_of(store) == "h1.title", "a version is not used by being stored"
    await store.approve("a.vn", number)
    assert css_of(store) == "h1.better"
    fresh = SelectorStore(selector_redis, folder)
    await fresh.refresh()
    assert css_of(fresh) == "h1.better"
    # a new file does not replace what a person approved
    write(folder, "a.vn", a_set(css="h1.shipped2"))
    newer = SelectorStore(selector_redis, folder)
    await newer.load_folder()
    await newer.refresh()
    assert css_of(newer) == "h1.better"


async def test_rollback_goes_back_and_forward(folder: Path, selector_redis: Any) -> None:
    store = SelectorStore(selector_redis, folder)
    first = await store.add_version("a.vn", a_set(css="h1.one"), who="person")
    second = await store.add_version("a.vn", a_set(css="h1.two"), who="person")
    await store.approve("a.vn", first)
    await store.approve("a.vn", second)
    assert await store.rollback("a.vn") == str(first)
    assert css_of(store) == "h1.one"
    assert await store.rollback("a.vn", second) == str(second)
    assert css_of(store) == "h1.two"
    assert [e["what"] for e in await store.history("a.vn")][:2] == ["active", "active"]
    with pytest.raises(UnknownSet, match="has no version 9; it has 1, 2"):
        await store.rollback("a.vn", 9)
    with pytest.raises(UnknownSet, match="no selector set for x"):
        await store.rollback("x.vn")


async def test_disabled_domain_has_no_set_until_one_is_approved(
    folder: Path, selector_redis: Any
) -> None:
    write(folder, "a.vn", a_set())
    store = SelectorStore(selector_redis, folder)
    await store.load_folder()
    await store.disable("a.vn")
    assert store.active("a.vn") is None
    assert not store.is_missing("a.vn"), "a disabled domain asks for no generation"
    assert await store.report_missing("a.vn", "f:0:1", "https://a.vn/1") == 0
    await store.approve("a.vn", 1)
    assert css_of(store) == "h1.title"


async def test_stale_generation_cannot_write(folder: Path, selector_redis: Any) -> None:
    store = SelectorStore(selector_redis, folder)
    await selector_redis.hset(keys.domain("a.vn"), "fence", 5)
    with pytest.raises(StaleFence):
        await store.add_version("a.vn", a_set(), who="generator", fence=4)
    assert await selector_redis.hlen(keys.versions("a.vn")) == 0
    assert await store.add_version("a.vn", a_set(), who="generator", fence=5)


@pytest.mark.parametrize(("agreed", "active"), [(30, True), (29, True), (28, False)])
async def test_shadow_pages_promote(
    folder: Path, selector_redis: Any, agreed: int, active: bool
) -> None:
    store = SelectorStore(selector_redis, folder)
    number = await store.add_version("a.vn", a_set(), who="generator")
    await store.put_on_probation("a.vn", number, who="generator", reason="gate")
    assert store.probation("a.vn") is not None and store.active("a.vn") is None
    for page in range(SHADOW_PAGES):
        assert css_of(store) is None
        await store.note_shadow("a.vn", number, page < agreed)
    assert (css_of(store) == "h1.title") is active
    assert (store.probation("a.vn") is None) is active


async def test_shadow_that_differs_waits_for_a_person(folder: Path, selector_redis: Any) -> None:
    store = SelectorStore(selector_redis, folder)
    number = await store.add_version("a.vn", a_set(), who="generator")
    await store.put_on_probation("a.vn", number, who="generator", reason="gate")
    for page in range(2 * SHADOW_PAGES):
        await store.note_shadow("a.vn", number, page % 2 == 0)
    described = await store.describe("a.vn")
    assert described.state == "await_admin"
    assert "30 of 60" in described.reason
    assert store.active("a.vn") is None


async def test_twelve_distinct_pages_queue_one_job(folder: Path, selector_redis: Any) -> None:
    store, other = SelectorStore(selector_redis, folder), SelectorStore(selector_redis, folder)
    for page in range(SAMPLE_PAGES - 1):
        for _ in range(2):  # the same page twice is one sample
            await store.report_missing("a.vn", f"f:{page}:1", f"https://a.vn/{page}")
    assert await selector_redis.zcard(keys.JOBS) == 0
    assert await other.report_missing("a.vn", "f:99:1", "https://a.vn/99") == SAMPLE_PAGES
    assert await selector_redis.zcard(keys.JOBS) == 1
    assert len(await store.samples("a.vn")) == SAMPLE_PAGES
    assert (await store.samples("a.vn"))[0] == ("https://a.vn/0", "f:0:1")


def test_wilson_bounds() -> None:
    assert round(wilson_lower(30, 30), 3) == 0.917
    assert round(wilson_lower(29, 30), 3) == 0.864
    assert round(wilson_lower(12, 12), 3) == 0.816
    assert wilson_lower(0, 0) == 0.0


def test_digest_ignores_version_and_state() -> None:
    assert schema.content_digest(a_set(version=1)) == schema.content_digest(
        a_set(version=9, state="probation")
    )
    assert schema.content_digest(a_set()) != schema.content_digest(a_set(css="h1.other"))
