"""The egg on a real scrapyd: deploy, two workers on one queue, and the refusal to crawl
from a queue of its own."""

from __future__ import annotations

import asyncio
import json
import zipfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from newscrawler.fleet.registry import Registry
from newscrawler.frontier import connect, redis_server
from newscrawler.store import open_store
from tests.crawl.harness import until
from tests.fixtures_scrapyd import PROJECT, Scrapyd

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def redis_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("fleet-redis")
    yield redis_server.ensure(folder)
    redis_server.stop(folder)


@pytest.fixture(scope="module")
def deployed(redis_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scrapyd]:
    """A node that the egg was deployed to as a user would: once, it takes five seconds of CPU."""
    node = Scrapyd(tmp_path_factory.mktemp("node") / "scrapyd", {"REDIS_URL": redis_url})
    try:
        done = node.deploy()
        assert done.returncode == 0 and '"status": "ok"' in done.stdout, done.stdout + done.stderr
        assert '"spiders": 1' in done.stdout, done.stdout
        assert node.get("listspiders.json", project=PROJECT)["spiders"] == ["news"]
        yield node
    finally:
        node.stop()


async def stored_urls(data: Path) -> list[str]:
    store = open_store("", data)
    await store.open()
    try:
        return [article.url async for article in store.scan()]
    finally:
        await store.close()


async def workers(redis_url: str) -> list[dict[str, Any]]:
    client = connect(redis_url, single=False)
    try:
        return await Registry(client).workers()
    finally:
        await client.aclose()


def test_two_jobs_share_the_queue_and_finish_the_web(
    deployed: Scrapyd, newsweb: Any, redis_url: str, tmp_path: Path
) -> None:
    node = deployed
    web = newsweb("ip", sites=6, articles=8, rate=0, delay=0.05, faults="none")
    started = datetime.now(UTC)  # the web publishes further articles while it runs
    settings = {
        "DATA_DIR": str(tmp_path / "data"),
        "SITES_FILE": str(web.sites_file),
        "SELECTORS_DIR": str(web.selectors_dir),
        "ALLOWED_PRIVATE_NETWORKS": "127.0.0.0/8",
        "DOWNLOAD_DELAY": "0.05",
        "PROGRESS": "off",
        "ARTICLE_MAX_AGE_DAYS": "0",
        "SELECTOR_GENERATION": "off",
        "AUTOTHROTTLE_ENABLED": "False",
        "SCHEDULER_IDLE_BEFORE_CLOSE": "3",
    }
    for job in ("one", "two"):
        node.schedule(job, {**settings, "STATS_FILE": str(tmp_path / f"{job}.json")})
    jobs: set[str] = set()

    def both_finished() -> bool:
        jobs.update(row["job"] for row in asyncio.run(workers(redis_url)) if row["alive"])
        return {"one", "two"} <= node.finished()

    try:
        until(both_finished, "both jobs to finish", timeout=150)
    except AssertionError as exc:
        raise AssertionError(
            f"{exc}\n{node.job_log('one')[-3000:]}\n{node.text()[-2000:]}"
        ) from None
    stats = {job: json.loads((tmp_path / f"{job}.json").read_text()) for job in ("one", "two")}
    assert jobs == {"one", "two"}, "heartbeats name scrapyd's jobs"
    assert all(s.get("raw/bytes", 0) > 100 * s["raw/records"] > 0 for s in stats.values())
    pages = {job: s.get("page/fetched", 0) for job, s in stats.items()}
    assert min(pages.values()) >= 10, f"both worked on the one queue: {pages}"
    expected = {
        row["url"]
        for row in web.truth()
        if row["type"] == "article"
        and row["should_be_found"]
        and not row["optional"]
        and datetime.fromisoformat(row["published"]) < started
    }
    assert len(expected) > 20
    stored = asyncio.run(stored_urls(tmp_path / "data"))
    assert not expected - set(stored), (
        f"{len(expected - set(stored))} of {len(expected)} articles were not stored"
    )
    assert len(stored) == len(set(stored))
    assert sum(s.get("article/new", 0) for s in stats.values()) == len(stored), (
        "no article was stored twice"
    )
    for job in ("one", "two"):
        assert stats[job]["finish_reason"] == "finished"


def test_without_redis_url_the_worker_refuses_and_says_why(
    deployed: Scrapyd, scrapyd: Any, newsweb: Any, tmp_path: Path
) -> None:
    """On a node that has the egg of the other one, as after a restart without the variable."""
    web = newsweb("ip", sites=1, articles=3, rate=0, faults="none")
    node = scrapyd(deployed.folder / "eggs")
    settings = {
        "DATA_DIR": str(tmp_path / "data"),
        "SITES_FILE": str(web.sites_file),
        "ALLOWED_PRIVATE_NETWORKS": "127.0.0.0/8",
    }
    node.schedule("alone", settings)
    until(lambda: "alone" in node.finished(), "the job to end", timeout=60)
    assert "REDIS_URL is not set" in node.text(), node.text()[
        -3000:
    ]  # scrapyd's own log takes a job's stderr
    assert "exitstatus=1" in node.text()
    assert not (tmp_path / "data" / "redis").exists(), "no queue of its own was made"
    assert not web.hits()


def test_egg_carries_what_is_read_at_run_time(deployed: Scrapyd) -> None:
    egg = next((deployed.folder / "eggs" / PROJECT).glob("*.egg"))
    names = set(zipfile.ZipFile(egg).namelist())
    root = Path(__file__).resolve().parents[2]
    package = root / "newscrawler"
    for pattern in (
        "**/*.lua",
        "**/prompts/*",
        "**/templates/*.html",
        "**/static/*",
        "**/*.schema.json",
        "**/lexicon/*.json",
    ):
        for path in package.glob(pattern):
            if path.is_file():
                assert f"newscrawler/{path.relative_to(package).as_posix()}" in names, path.name
    shipped = {
        f"newscrawler/_shipped/selectors/{p.name}" for p in (root / "selectors").glob("*.json")
    }
    assert shipped <= names and "newscrawler/_shipped/sites.json" in names
    assert not [n for n in names if n.startswith(("tests/", "evaluation/"))]
