"""Opens what the settings name: Redis, the stores, the sinks of events, the selector sets. One
place for each, for crawls and commands alike.

Services never see settings; adapters and commands ask here.
"""

from __future__ import annotations

import atexit
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from newscrawler.crawl import plugins
from newscrawler.fleet.identity import worker_id
from newscrawler.frontier import redis_server as embedded
from newscrawler.frontier.queue import FrontierConfig

if TYPE_CHECKING:
    from redis.asyncio import Redis
    from scrapy.settings import BaseSettings

    from newscrawler.crawl.announce import Direct, Dispatcher
    from newscrawler.crawl.processes import StoreProcess
    from newscrawler.rawstore import RawStore
    from newscrawler.rawstore.sealing import Keys
    from newscrawler.selectorsets.store import SelectorStore
    from newscrawler.store.base import ArticleStore
    from newscrawler.store.events import EventSink
    from newscrawler.store.finished import FinishedStore
    from newscrawler.store.semantic.embedder import Embedder


class StartRefused(ValueError):
    """The crawl must not start like this; the text says why and what to do."""


def data_dir(settings: BaseSettings) -> Path:
    return Path(settings["DATA_DIR"]).resolve()


def json_log_dir(settings: BaseSettings) -> Path:
    """Where workers write their log as JSON lines (LOG_JSON)."""
    return data_dir(settings) / "logs" / "json"


def is_scrapyd_job() -> bool:
    """scrapyd names the project in the environment of its jobs; nothing else does."""
    return bool(os.environ.get("SCRAPY_PROJECT"))


def job_of(spider: Any) -> str:
    """scrapyd's id of the job that this process is, "" = none. Since 1.3 scrapyd hands it over as
    the spider's argument ``_job`` and no longer in the environment (SCRAPY_JOB)."""
    return str(getattr(spider, "_job", "") or os.environ.get("SCRAPY_JOB", ""))


def redis_url(settings: BaseSettings) -> str:
    """REDIS_URL, or that of the embedded server, which is started when it is not running.

    :raises StartRefused: in a scrapyd job without REDIS_URL
    :raises newscrawler.frontier.queue.FrontierUnavailable: no server could be started
    """
    url = settings.get("REDIS_URL") or ""
    if url:
        return str(url)
    if is_scrapyd_job():
        raise StartRefused(
            "REDIS_URL is not set: a worker started by scrapyd would crawl from a queue of its own,"
            " beside the fleet's. Set REDIS_URL in scrapyd's environment or schedule with -d"
            " setting=REDIS_URL=redis://host:6379/0"
        )
    url = embedded.ensure(data_dir(settings), settings.get("REDIS_SERVER_BIN") or "")
    atexit.register(
        embedded.stop_if_last, data_dir(settings)
    )  # whatever way this process ends in order
    return url


def stop_embedded(settings: BaseSettings) -> None:
    """The embedded server, where it is used and nobody else uses it: a command that has done its
    work does not wait for its own end to say so. A server of REDIS_URL is its owner's."""
    if not settings.get("REDIS_URL"):
        embedded.stop_if_last(data_dir(settings))


def frontier_config(settings: BaseSettings, *, loopback_only: bool) -> FrontierConfig:
    def ms(name: str) -> int:
        return round(settings.getfloat(name) * 1000)

    return FrontierConfig(
        shards=settings.getint("FRONTIER_SHARDS"),
        lease_ms=ms("FRONTIER_LEASE_S"),
        max_tries=settings.getint("FRONTIER_MAX_TRIES"),
        local_links=settings.getint("FRONTIER_LOCAL_LINKS"),
        queue_limit=settings.getint("FRONTIER_QUEUE_LIMIT"),
        obey_robots=settings.getbool("ROBOTSTXT_OBEY"),
        robots_max_age_ms=ms("ROBOTS_MAX_AGE_S"),
        autothrottle=settings.getbool("AUTOTHROTTLE_ENABLED"),
        autothrottle_start_ms=ms("AUTOTHROTTLE_START_DELAY"),
        autothrottle_max_ms=ms("AUTOTHROTTLE_MAX_DELAY"),
        autothrottle_target=settings.getfloat("AUTOTHROTTLE_TARGET_CONCURRENCY"),
        robots_retry_ms=ms("ROBOTS_RETRY_S"),
        backoff_start_ms=ms("BACKOFF_START_S"),
        backoff_max_ms=ms("BACKOFF_MAX_S"),
        requests_per_minute=settings.getint("FRONTIER_REQUESTS_PER_MINUTE"),
        bytes_per_minute=settings.getint("FRONTIER_BYTES_PER_MINUTE"),
        pattern_budget=settings.getint("FRONTIER_PATTERN_BUDGET"),
        finished_limit=settings.getint("FRONTIER_FINISHED_LIMIT"),
        loopback_only=loopback_only,
    )


async def try_stores(settings: BaseSettings) -> None:
    """Opens and closes what articles and pages are written to, and sinks of other projects.

    :raises newscrawler.store.base.StoreUnavailable,
        newscrawler.rawstore.RawStoreUnavailable: with the reason
    :raises ValueError: a sink cannot be made from the settings
    """
    for sink in plugins.event_sinks(settings).values():
        await sink.close()
    open_raw_store(settings, worker_id("start")).close()
    store = open_article_store(settings)
    try:
        await store.open()
    finally:
        await store.close()


def open_article_store(
    settings: BaseSettings,
    elsewhere: StoreProcess | None = None,
    *,
    must_exist: bool = False,
    query_s: float | None = None,
) -> ArticleStore:
    """The store of ARTICLE_STORE: one of ARTICLE_STORES, or one of ours.

    :param elsewhere: what a file is written by, when it is not to be this process
    :param must_exist: readers do not create an empty one
    :param query_s: seconds that a search waits for the vector of its query, other than
        SEMANTIC_QUERY_MS
    """
    from newscrawler.crawl import embedding
    from newscrawler.store import open_store

    embedder: Embedder | str
    try:
        embedder = embedding.open_embedder(settings)
    except embedding.Off as exc:
        embedder = str(exc)
    return plugins.article_store(settings) or open_store(
        settings.get("ARTICLE_STORE") or "",
        data_dir(settings),
        index=settings.get("ARTICLE_INDEX"),
        must_exist=must_exist,
        elsewhere=elsewhere,
        embedder=embedder,
        query_s=query_s or settings.getfloat("SEMANTIC_QUERY_MS") / 1000,
        ca_file=settings.get("ARTICLE_STORE_CA_FILE") or "",
    )


def open_event_sinks(settings: BaseSettings, client: Redis | None) -> dict[str, EventSink]:
    """The stream in Redis, those that settings name, and those of EVENT_SINKS, by the names of
    their cursors."""
    from newscrawler.store.events import EventStream

    stream = EventStream(client)
    return {
        "stream": stream, **event_sinks_by_settings(settings), **plugins.event_sinks(settings)
    }  # fmt: skip


def event_sinks_by_settings(settings: BaseSettings) -> dict[str, EventSink]:
    """:raises ValueError: a setting is wrong"""
    sinks: dict[str, EventSink] = {}
    if settings.get("EVENT_WEBHOOK_URL"):
        from newscrawler.crawl.webhook import WebhookSink

        sinks["webhook"] = WebhookSink.from_settings(settings)
    if settings.get("EVENT_KAFKA_SERVERS"):
        from newscrawler.crawl.kafka import KafkaSink

        sinks["kafka"] = KafkaSink.from_settings(settings)
    return sinks


def open_announcer(
    settings: BaseSettings, store: ArticleStore, client: Redis
) -> Dispatcher | Direct:
    """Opens the dispatcher of a store's events; :meth:`Dispatcher.start` sets it to work."""
    from newscrawler.crawl.announce import Direct, Dispatcher
    from newscrawler.store.events import outbox_of

    outbox, sinks = outbox_of(store), open_event_sinks(settings, client)
    return Direct(store, sinks) if outbox is None else Dispatcher(outbox, sinks)


def open_finished_store(settings: BaseSettings) -> FinishedStore | None:
    """Where the frontier's oldest finished records go; None = nowhere, they stay in Redis. It must
    be one place for all that share a Redis: a fleet over local stores has none."""
    from newscrawler.store.finished import open_finished

    uri = settings.get("ARTICLE_STORE") or ""
    is_shared = uri.startswith(("http://", "https://"))
    if settings.getint("FRONTIER_FINISHED_LIMIT") <= 0 or (
        settings.get("REDIS_URL") and not is_shared
    ):
        return None
    return open_finished(
        uri,
        data_dir(settings),
        index=settings.get("ARTICLE_INDEX"),
        ca_file=settings.get("ARTICLE_STORE_CA_FILE") or "",
    )


def open_raw_store(settings: BaseSettings, worker: str = "reader") -> RawStore:
    from newscrawler.rawstore import RawStore

    return RawStore.open(
        settings.get("RAW_STORE") or str(data_dir(settings) / "warc"),
        worker,
        rotate_bytes=settings.getint("RAW_ROTATE_BYTES"),
        rotate_s=settings.getfloat("RAW_ROTATE_S"),
        spool=data_dir(settings) / "warc-spool",
        keys=raw_keys(settings),
    )


def raw_keys(settings: BaseSettings) -> Keys:
    """The keys that raw pages are sealed with.

    :raises RawStoreUnavailable: a key is none; one line, without it
    """
    from newscrawler.rawstore.sealing import keys_from

    return keys_from(os.environ, settings["RAW_KEY_ENV"], str(settings.get("RAW_KEY_FILE") or ""))


def open_selector_store(settings: BaseSettings, client: Any | None) -> SelectorStore:
    from newscrawler.selectorsets.store import SelectorStore, default_folder

    return SelectorStore(client, default_folder(settings.get("SELECTORS_DIR") or ""))
