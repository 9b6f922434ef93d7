"""`scrapy store prune` over a crawled store: what goes, what stays, and what it refuses."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from newscrawler.crawl import opening
from newscrawler.frontier.schema import FINISHED, FINISHED_PARTS, SCHEMA
from newscrawler.items import Article
from newscrawler.rawstore import READER, RawStore
from newscrawler.store.base import WholeStore
from newscrawler.store.finished import LocalFinished
from tests.contract.articles import article, filler
from tests.contract.conftest import Twin, kind, open_one  # noqa: F401  # fixtures
from tests.crawl.harness import Scrapy
from tests.crawl.small import QUIET, crawler, in_store, stored, versions
from tests.fixtures_newsweb import StartNewsweb
from tests.fixtures_s3 import BUCKET, S3Server

pytestmark = pytest.mark.slow

OLD = datetime.now(UTC) - timedelta(days=40)


def aged(scrapy: Scrapy, uri: str = "") -> dict[str, list[str]]:
    """Articles of which each page was fetched 40 days ago: references that are current, of an
    older version, and of nothing."""
    raw = opening.open_raw_store(scrapy_settings(scrapy), "test")
    first = [raw.write(f"https://a.vn/{n}", b"x" * 900, [], 200, OLD) for n in range(4)]
    second = [raw.write("https://a.vn/0", b"y" * 900, [], 200, OLD)]
    unknown = [raw.write("https://a.vn/list", b"z" * 900, [], 200, OLD)]
    young = [raw.write("https://a.vn/new", b"n" * 900, [], 200, datetime.now(UTC))]
    raw.close()
    made = [article(str(n), f"Tin {n}", filler(n), raw_ref=first[n], fetched=OLD) for n in range(4)]

    async def put(store: WholeStore) -> None:
        await store.put(made)
        await store.put([replace(made[0], title="Tin sửa", raw_ref=second[0])])

    in_store(scrapy.data, put, uri)
    return {
        "current": [second[0], *first[1:]], "older": [first[0]], "unknown": unknown, "young": young,
    }  # fmt: skip


def scrapy_settings(scrapy: Scrapy):  # type: ignore[no-untyped-def]
    from scrapy.settings import Settings

    from newscrawler import settings as defaults

    return Settings({**{k: v for k, v in vars(defaults).items() if k.isupper()}, **scrapy.settings})


def left(scrapy: Scrapy) -> set[str]:
    raw = opening.open_raw_store(scrapy_settings(scrapy))
    try:
        return {ref for ref, _ in raw.scan()}
    finally:
        raw.close()


def prune(scrapy: Scrapy, *more: str, **limits: int) -> dict[str, int]:
    settings = [part for name, days in limits.items() for part in ("-s", f"{name}={days}")]
    done = scrapy.run("store", "prune", "--json", *more, *settings)
    assert done.returncode == 0, done.stderr
    found: dict[str, int] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("where", ["folder", "s3"])
def test_pages_go_by_age_and_by_what_refers_to_them(
    tmp_path: Path, newsweb: StartNewsweb, request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch, where: str,
) -> None:  # fmt: skip
    web = newsweb("ip", sites=1, articles=1, **QUIET)
    (tmp_path / "data").mkdir()
    scrapy = crawler(tmp_path, web)
    if where == "s3":
        server: S3Server = request.getfixturevalue("s3_server")
        scrapy.settings["RAW_STORE"] = f"s3://{BUCKET}/raw"
        scrapy.env |= server.env
        for name, value in server.env.items():
            monkeypatch.setenv(name, value)
    refs = aged(scrapy)
    everything = {ref for some in refs.values() for ref in some}
    assert left(scrapy) == everything

    assert prune(scrapy, "--dry-run", RAW_KEEP_DAYS=30)["raw_pages"] == 2
    assert left(scrapy) == everything
    assert prune(scrapy, RAW_UNREFERENCED_KEEP_DAYS=30)["raw_pages"] == 1
    assert left(scrapy) == everything - set(refs["unknown"])
    done = prune(scrapy, VERSION_KEEP_DAYS=30, RAW_UNREFERENCED_KEEP_DAYS=30)
    assert (done["versions"], done["raw_pages"]) == (1, 1)
    assert left(scrapy) == {*refs["current"], *refs["young"]}
    checked = scrapy.run("store", "check")
    assert checked.returncode == 0, checked.stdout
    (changed,) = [a for a in stored(scrapy.data) if a.version == 2]
    assert [v.version for v in versions(scrapy.data, changed)] == [2]

    done = prune(scrapy, RAW_KEEP_DAYS=30)
    assert (done["raw_pages"], done["raw_current"]) == (0, 4)
    assert prune(scrapy, "--current-too", RAW_KEEP_DAYS=30)["raw_pages"] == 4
    assert left(scrapy) == set(refs["young"])
    assert prune(scrapy, "--current-too", RAW_KEEP_DAYS=30)["raw_pages"] == 0


def test_what_cannot_be_meant_is_refused(tmp_path: Path, newsweb: StartNewsweb) -> None:
    web = newsweb("ip", sites=1, articles=1, **QUIET)
    scrapy = crawler(tmp_path, web, ARTICLE_MAX_AGE_DAYS=7)
    in_store(scrapy.data, lambda store: store.open())
    for settings, code, said in (
        ((), 0, "kept for ever"),
        (("-s", "RAW_KEEP_DAYS=-1"), 2, "RAW_KEEP_DAYS=-1"),
        (("-s", "VERSION_KEEP_DAYS=x"), 2, "VERSION_KEEP_DAYS=x"),
        (("-s", "FINISHED_KEEP_DAYS=5"), 2, "more than ARTICLE_MAX_AGE_DAYS"),
        (("-s", "FINISHED_KEEP_DAYS=30"), 0, ""),
    ):
        done = scrapy.run("store", "prune", *settings)
        assert done.returncode == code and said in done.stderr, done.stderr
    wrong = scrapy.run("store", "check", "--dry-run")
    assert wrong.returncode == 2 and "of prune" in wrong.stderr


async def test_finished_records_go_by_their_last_visit(tmp_path: Path) -> None:
    finished = LocalFinished(tmp_path / "finished.db")
    rows = [(bytes([n]) * 16, b"old" if n % 3 else b"new") for n in range(200)]
    await finished.put(rows)
    assert await finished.prune(lambda data: data == b"old", dry_run=True) == 133
    assert await finished.count() == 200
    assert await finished.prune(lambda data: data == b"old") == 133
    assert await finished.count() == 67
    await finished.close()


def finished_record(now: datetime, visited_days: float, asked_days: float | None = None) -> bytes:
    """As the frontier packs it: visited so long ago, and asked for again from the file."""
    visited = int((now - timedelta(days=visited_days)).timestamp())
    flags = 0 if asked_days is None else FINISHED_PARTS["ASKED"].flag
    head = FINISHED.pack(16 * SCHEMA, 1, 0, flags, 200, visited - 60, visited)
    if asked_days is None:
        return head
    asked = int((now - timedelta(days=asked_days)).timestamp())
    return head + asked.to_bytes(4, "big")


async def test_finished_records_older_than_the_setting_go_by_the_command(
    tmp_path: Path, newsweb: StartNewsweb
) -> None:
    web = newsweb("ip", sites=1, articles=1, **QUIET)
    scrapy = crawler(tmp_path, web, ARTICLE_MAX_AGE_DAYS=7)
    await asyncio.to_thread(in_store, scrapy.data, lambda store: store.open())
    now = datetime.now(UTC)
    hour = 1 / 24
    ages = {
        b"today": (0.0, None), b"a little younger": (30 - hour, None),
        b"a little older": (30 + hour, None), b"a year": (365.0, None),
        b"old, asked for": (365.0, 2.0), b"asked long ago": (365.0, 31.0),
    }  # fmt: skip
    packed = {name.ljust(16): finished_record(now, *days) for name, days in ages.items()}
    finished = LocalFinished(scrapy.data / "finished.db")
    await finished.put(list(packed.items()))
    old = {b"a little older", b"a year", b"asked long ago"}

    async def left_over() -> set[bytes]:
        return {name.rstrip() for name in await finished.get(list(packed))}

    run = asyncio.to_thread
    assert (await run(prune, scrapy, "--dry-run", FINISHED_KEEP_DAYS=30))["finished"] == 3
    assert await left_over() == set(ages)
    assert (await run(prune, scrapy, FINISHED_KEEP_DAYS=30))["finished"] == 3
    assert await left_over() == set(ages) - old
    assert (await run(prune, scrapy, FINISHED_KEEP_DAYS=30))["finished"] == 0
    await finished.close()


async def test_versions_go_from_the_oldest_on(open_one: Twin) -> None:  # noqa: F811  # a fixture
    """In each kind of store; the current one, and those of yesterday, stay."""
    store: WholeStore = open_one()  # type: ignore[assignment]
    now = datetime.now(UTC)
    first: Article = article("a", "Một", filler(1), fetched=OLD)
    try:
        await store.put([first])
        await store.put([replace(first, title="Hai", fetched=now - timedelta(days=35))])
        await store.put([replace(first, title="Ba", fetched=now - timedelta(days=5))])
        await store.put([replace(first, title="Bốn", fetched=now)])
        before = now - timedelta(days=30)
        assert await store.prune_versions(before, dry_run=True) == 2
        assert len(await store.versions(first.id)) == 4
        assert await store.inspect() == []
        assert await store.prune_versions(before) == 2
        assert [v.title for v in await store.versions(first.id)] == ["Ba", "Bốn"]
        assert await store.inspect() == []
        assert await store.prune_versions(before) == 0
        assert await store.prune_versions(now + timedelta(days=1)) == 1
        assert [v.title for v in await store.versions(first.id)] == ["Bốn"]
        assert await store.inspect() == []
    finally:
        await store.close()


def test_two_at_once_are_refused(tmp_path: Path) -> None:
    from newscrawler.crawl.keeping import alone
    from newscrawler.rawstore import RawStoreUnavailable

    with alone(tmp_path), pytest.raises(RawStoreUnavailable, match="at work"), alone(tmp_path):
        pass
    with alone(tmp_path):
        assert RawStore.open(str(tmp_path), READER) is not None
