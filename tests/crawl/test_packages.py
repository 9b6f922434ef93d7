"""Each of the packages that the program is built on, seen at work in one crawl: in stats,
logs and on the other side (Redis, Elasticsearch, the model's server). scrapyd and
scrapyd-client are seen in test_scrapyd.py."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.crawl.harness import Finished
from tests.crawl.small import QUIET, Queue, crawler
from tests.fixtures_llm import ScriptedLLM, dumps
from tests.fixtures_newsweb import StartNewsweb

pytestmark = pytest.mark.slow

INDEX = "packages"


class Evidence:
    """One crawl, and what its neighbours saw of it."""

    def __init__(
        self,
        done: Finished,
        redis_info: dict[str, Any],
        index: list[dict[str, Any]],
        model: ScriptedLLM,
    ) -> None:
        self.done, self.redis_info, self.index, self.model = done, redis_info, index, model


def documents(url: str) -> list[dict[str, Any]]:
    for path in (f"/{INDEX}/_refresh", f"/{INDEX}/_search?size=100"):
        with urllib.request.urlopen(
            urllib.request.Request(url + path, method="POST"), timeout=30
        ) as answer:
            body = json.load(answer)
    return [hit["_source"] for hit in body["hits"]["hits"]]


@pytest.fixture
def evidence(
    tmp_path: Path,
    newsweb: StartNewsweb,
    elasticsearch_server: str,
    scripted_llm_thread: ScriptedLLM,
) -> Iterator[Evidence]:
    web = newsweb("ip", sites=1, articles=30, **{**QUIET, "delay": 0.05})
    scripted_llm_thread.script = [dumps({
        "title": ["h1.title-detail"], "published": [], "authors": [], "content_root": ["article.fck_detail"],
        "content_exclude": []})]  # fmt: skip
    (tmp_path / "no-sets").mkdir()
    (tmp_path / "queue").mkdir()
    queue = Queue(tmp_path / "queue")
    try:
        scrapy = crawler(
            tmp_path, web, REDIS_URL=queue.url, SELECTORS_DIR=tmp_path / "no-sets", DOWNLOAD_DELAY=0.05,
            ARTICLE_STORE=elasticsearch_server, ARTICLE_INDEX=INDEX, SPIDERMON_ENABLED=True,
            SELECTOR_GENERATION="llm", LLM_BASE_URL=scripted_llm_thread.base_url, LLM_MODEL="scripted",
            SELECTOR_REFRESH_S=0.5, SELECTOR_GENERATION_IDLE_S=20, FRONTIER_LOCAL_LINKS=16,
        )  # fmt: skip
        done = scrapy.run("crawl", "news")
        assert done.returncode == 0, done.stderr[-3000:]
        yield Evidence(
            done,
            queue.info("commandstats"),
            documents(elasticsearch_server),
            scripted_llm_thread,
        )
    finally:
        queue.close()


def test_each_package_is_at_work(evidence: Evidence) -> None:
    done = evidence.done
    stored = done.stat("article/new")
    assert stored > 20
    # Scrapy: its engine fetched the pages, its log says so
    assert "[scrapy.core.engine] INFO: Spider opened" in done.stderr
    assert done.stat("response_received_count") >= done.stat("page/fetched") > 50
    # scrapy-redis: its scheduler's own code handed every lease to the engine
    assert done.stat("scheduler/dequeued/redis") == done.stat("frontier/leases") - done.stat(
        "frontier/leases_returned"
    )
    # redis: the server counted our script calls
    calls = sum(
        int(evidence.redis_info.get(f"cmdstat_{name}", {}).get("calls", 0))
        for name in ("evalsha", "fcall")
    )
    assert calls >= done.stat("frontier/calls") > 20
    # pybloom-live: links that the short exact table had forgotten were known to the filter
    assert done.stat("link/local_hit/bloom") > 50
    assert done.stat("link/local_hit/bloom") + done.stat("link/local_hit/lru") >= done.stat(
        "link/known"
    )
    # itemadapter: the pipeline read the fields of each stored article through it
    assert done.stat("article/field/title") == done.stat("article/field/content") == stored
    # elasticsearch: the index holds what was stored
    assert len({doc["url"] for doc in evidence.index}) == len(evidence.index) == stored
    # openai: the server was asked by its SDK, as often as we counted
    assert 1 <= len(evidence.model.requests) == done.stat("llm/calls")
    agents = {headers.get("User-Agent", "") for headers in evidence.model.headers}
    assert all("OpenAI/Python" in agent for agent in agents), agents
    # spidermon: the suite ran at the close and passed
    assert "[Spidermon]" in done.stderr and "monitors in" in done.stderr, done.stderr[-3000:]
