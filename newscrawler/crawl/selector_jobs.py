"""Selector sets that make themselves while a crawl runs: what is missing is noticed, sampled,
generated, proved.

Nothing here is waited for by a page. middlewares.SelectorGenerationMiddleware says of which pages
something can be learnt; the extension takes them when they are stored, and works in the background,
one job at a time, the heavy parts in a thread, and asks a model only through newscrawler.llm.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from scrapy import signals
from scrapy.exceptions import DontCloseSpider

from newscrawler import metrics
from newscrawler.crawl.drift import DriftService
from newscrawler.crawl.model_extraction import ModelExtractionService
from newscrawler.crawl.page_context import context_of
from newscrawler.crawl.services import Services, is_redis_away, services_of
from newscrawler.crawl.waits import REDIS
from newscrawler.extraction.context import PageContext
from newscrawler.extraction.document import Document
from newscrawler.extraction.selectors import apply
from newscrawler.items import Article, Outcome, Visit
from newscrawler.llm import LLM
from newscrawler.rawstore.errors import RawNotFound, RawStoreUnavailable
from newscrawler.selectorsets.generate import APPROVALS, MODES, Generator, Result
from newscrawler.selectorsets.jobs import Jobs, ModelBudget
from newscrawler.selectorsets.validation import agrees_with
from newscrawler.web import urls

if TYPE_CHECKING:
    from scrapy import Spider
    from scrapy.crawler import Crawler
    from scrapy.settings import BaseSettings

logger = logging.getLogger(__name__)

#: Article pages noted and not yet worked on, at most: what comes above is only one sample less.
_WAITING_PAGES = 200
#: A job that is due this long is run on a busy worker too, seconds.
_PATIENCE_S = 60.0
#: One for a site that changed: meanwhile its articles are read by the generic chain.
_PATIENCE_DRIFT_S = 3.0
_LOOK_S = 0.5
_FLUSH_S = 0.25


@dataclass(frozen=True)
class GenerationConfig:
    """Settings of generation; times in seconds."""

    mode: str
    refresh_s: float
    idle_s: float  # how long an otherwise finished crawl waits for jobs
    limits: ModelBudget
    max_input_chars: int
    watches: bool = True  # SELECTOR_DRIFT
    approval: str = "auto"

    @classmethod
    def of(cls, settings: BaseSettings) -> GenerationConfig:
        """:raises ValueError: SELECTOR_GENERATION or SELECTOR_APPROVAL is no known word"""
        mode = settings["SELECTOR_GENERATION"]
        if mode not in MODES:
            raise ValueError(
                f"SELECTOR_GENERATION is {mode!r}; it must be one of {', '.join(MODES)}"
            )
        approval = settings["SELECTOR_APPROVAL"]
        if approval not in APPROVALS:
            raise ValueError(
                f"SELECTOR_APPROVAL is {approval!r}; it must be one of {', '.join(APPROVALS)}"
            )
        limits = ModelBudget(
            calls_per_domain_per_day=settings.getint("LLM_CALLS_PER_DOMAIN_PER_DAY"),
            calls_per_day=settings.getint("LLM_CALLS_PER_DAY"),
            tokens_per_day=settings.getint("LLM_TOKENS_PER_DAY"),
            calls_per_minute=settings.getint("LLM_CALLS_PER_MINUTE"),
            tokens_per_domain_per_day=settings.getint("LLM_TOKENS_PER_DOMAIN_PER_DAY"),
            money_per_day=settings.getfloat("LLM_MONEY_PER_DAY"),
            money_per_domain_per_day=settings.getfloat("LLM_MONEY_PER_DOMAIN_PER_DAY"),
            price_in=settings.getfloat("LLM_PRICE_IN"),
            price_out=settings.getfloat("LLM_PRICE_OUT"),
        )
        return cls(
            mode,
            settings.getfloat("SELECTOR_REFRESH_S"),
            settings.getfloat("SELECTOR_GENERATION_IDLE_S"),
            limits,
            # llm.estimate_tokens: 2.5 bytes a token at least
            round(settings.getint("LLM_MAX_INPUT_TOKENS") * 2.5),
            settings.getbool("SELECTOR_DRIFT"),
            approval,
        )


def make_llm(settings: BaseSettings) -> LLM:
    """The configured model; without LLM_BASE_URL one that says so when it is asked."""
    key = os.environ.get(settings["LLM_API_KEY_ENV"], "")
    return LLM(
        settings["LLM_BASE_URL"], key, settings["LLM_MODEL"], settings.getfloat("LLM_TIMEOUT_S")
    )


def make_generator(services: Services, config: GenerationConfig, llm: LLM) -> Generator:
    async def load_page(ref: str) -> Any:
        try:
            return await asyncio.to_thread(services.raw.read, ref)
        except (RawNotFound, RawStoreUnavailable) as exc:  # another node's folder, or cleaned up
            logger.info("Sample page cannot be read ref=%s reason=%s", ref, exc)
            return None

    def context(url: str) -> PageContext:
        return context_of(services.sites.by_host(urls.domain_of(url)))

    return Generator(
        services.selectors, Jobs(services.redis, config.limits), load_page, context,
        llm=llm, mode=config.mode, max_input_chars=config.max_input_chars, approval=config.approval,
    )  # fmt: skip


class SelectorGeneration:
    """Extension: keeps the local sets fresh, collects samples, runs jobs in idle time,
    compares in shadow."""

    def __init__(self, crawler: Crawler, services: Services, config: GenerationConfig) -> None:
        self.crawler = crawler
        self.services = services
        self.stats = crawler.stats
        self.config = config
        self._pages: deque[tuple[Article, str, bytes, PageContext]] = deque(maxlen=_WAITING_PAGES)
        self._tasks: list[asyncio.Task[None]] = []
        self._llm = make_llm(crawler.settings)
        self._job: asyncio.Task[Result | None] | None = None
        self._due_since: float | None = None
        self._drift = (
            DriftService(services, regenerates=config.mode != "off") if config.watches else None
        )
        self._direct: ModelExtractionService | None = None
        if config.mode in ("rules_then_llm", "llm"):
            service = ModelExtractionService(
                services, config.limits, self._llm, config.max_input_chars
            )
            self._direct = service if service.is_on else None
        self._idle_since: float | None = None

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> SelectorGeneration:
        services = services_of(crawler)
        extension = cls(crawler, services, GenerationConfig.of(crawler.settings))
        crawler.signals.connect(extension.spider_opened, signals.spider_opened)
        services.visits.listen(extension.visit_ended)
        crawler.signals.connect(extension.spider_idle, signals.spider_idle)
        crawler.signals.connect(extension.spider_closed, signals.spider_closed)
        return extension

    # ------------------------------------------------------------ signals
    async def spider_opened(self, spider: Spider) -> None:
        services = self.services
        self._tasks = [
            asyncio.ensure_future(self._loop(self._refresh, self.config.refresh_s)),
            asyncio.ensure_future(self._loop(self._work_on_pages, _LOOK_S)),
        ]
        if self.config.mode != "off":
            generator = make_generator(services, self.config, self._llm)
            self._tasks.append(
                asyncio.ensure_future(self._loop(lambda: self._look_for_job(generator), _LOOK_S))
            )
        if self._drift is not None:
            self._tasks.append(asyncio.ensure_future(self._loop(self._drift.flush, _FLUSH_S)))
            self._tasks.append(
                asyncio.ensure_future(self._loop(self._drift.repair_due, 2 * _LOOK_S))
            )
        if (direct := self._direct) is not None:
            self._tasks.append(
                asyncio.ensure_future(self._loop(lambda: direct.look(self._is_idle()), _LOOK_S))
            )

    def visit_ended(self, visit: Visit, outcome: Outcome, reason: str) -> None:
        """After the commit: the raw page is on the disk by now."""
        self._idle_since = None
        if outcome is not visit.outcome:  # it comes again
            return
        if self._drift is not None:
            self._drift.note(visit)
        if self._direct is not None:
            self._direct.note(visit)
        if visit.article is None or visit.sample is None:
            return
        context = context_of(self.services.sites.by_host(visit.domain), fetched=visit.fetched)
        self._pages.append((visit.article, visit.site, visit.sample, context))
        visit.sample = None

    def spider_idle(self, spider: Spider) -> None:
        """A crawl that has nothing left to fetch waits a while for the sets
        that it made possible.

        :raises DontCloseSpider: a set is being made
        """
        now = time.monotonic()
        busy = self._job is not None or self._due_since is not None or bool(self._pages)
        busy = busy or any(
            service is not None and service.busy for service in (self._drift, self._direct)
        )
        self._idle_since = self._idle_since or now
        if busy and now - self._idle_since < self.config.idle_s:
            raise DontCloseSpider

    async def spider_closed(self, spider: Spider) -> None:
        if self._drift is not None:
            try:
                await self._drift.flush()
            except Exception as exc:  # Redis is away: what is lost are some counts
                logger.warning("What the last pages said of their sets was not told error=%s", exc)
        tasks = [*self._tasks, *([self._job] if self._job else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._llm.close()
        client = self.services.selectors.client
        if client is not None:
            await (
                client.aclose()
            )  # a job that was cancelled gave its lock back after the services had closed

    # ------------------------------------------------------------ background
    async def _loop(self, work: Any, seconds: float) -> None:
        while True:
            await asyncio.sleep(seconds)
            if self._closing():
                return
            try:
                await work()
            except Exception as exc:  # the crawl and the next round go on
                if is_redis_away(exc):
                    self.services.waits.failed(REDIS, str(exc))
                else:  # a page that breaks a rule
                    self.stats.inc_value(metrics.SELECTOR_ERRORS)
                    logger.exception("Selector work failed, will be tried again")
                await asyncio.sleep(5 * seconds)

    def _closing(self) -> bool:
        slot = getattr(self.crawler.engine, "_slot", None)
        return slot is None or slot.closing is not None

    async def _refresh(self) -> None:
        changed = await self.services.selectors.refresh()
        if changed:
            logger.info("Selector sets read again domains=%d", changed)

    async def _work_on_pages(self) -> None:
        while self._pages:
            article, domain, body, context = self._pages.popleft()
            await self._one_page(article, domain, body, context)

    async def _one_page(
        self, article: Article, domain: str, body: bytes, context: PageContext
    ) -> None:
        selectors = self.services.selectors
        on_probation = selectors.probation(domain)
        if on_probation is not None and body:
            agreed = await asyncio.to_thread(
                lambda: agrees_with(
                    article, apply(Document(body, article.url), on_probation, context)
                )
            )
            self.stats.inc_value(
                metrics.labelled(metrics.SELECTOR_SHADOW, "agreed" if agreed else "differed")
            )
            if not agreed:
                logger.info("Shadow differs url=%s set=%s", article.url, on_probation.label)
            page = (
                (article.url, article.raw_ref)
                if article.raw_ref and self.config.mode != "off"
                else None
            )
            if await selectors.note_shadow(domain, on_probation.version, agreed, page):
                self.stats.inc_value(metrics.SELECTOR_PROMOTED)
                logger.info(
                    "Selector set is active domain=%s version=%s", domain, on_probation.version
                )
        elif article.raw_ref and selectors.is_missing(domain):
            count = await selectors.report_missing(domain, article.raw_ref, article.url)
            if count:
                self.stats.inc_value(metrics.SELECTOR_SAMPLES)
                logger.debug("Sample page noted domain=%s samples=%d", domain, count)

    async def _look_for_job(self, generator: Generator) -> None:
        if self._job is not None:
            if not self._job.done():
                return
            job, self._job = self._job, None
            self._due_since = None
            self._report(job.result())
        domain = await generator.jobs.due()
        if domain is None:
            self._due_since = None
            return
        self._due_since = self._due_since or time.monotonic()
        drifting = self.services.selectors.active(domain) is not None
        patience = _PATIENCE_DRIFT_S if drifting else _PATIENCE_S
        if self._is_idle() or time.monotonic() - self._due_since > patience:
            logger.info("Selector generation starts domain=%s mode=%s", domain, self.config.mode)
            self._job = asyncio.ensure_future(generator.run(domain))

    def _is_idle(self) -> bool:
        """Less than half of the fetch slots are in use."""
        engine = self.crawler.engine
        active = len(engine.downloader.active) if engine is not None else 0
        return active < self.crawler.settings.getint("CONCURRENT_REQUESTS") / 2

    def _report(self, result: Result | None) -> None:
        if result is None:
            return
        stats = self.stats
        stats.inc_value(metrics.labelled(metrics.SELECTOR_JOBS, result.state))
        if result.promoted:
            stats.inc_value(metrics.SELECTOR_PROMOTED)
        stats.inc_value(metrics.LLM_CALLS, result.spent.attempts)
        stats.inc_value(metrics.labelled(metrics.LLM_TOKENS, "in"), result.spent.tokens_in)
        stats.inc_value(metrics.labelled(metrics.LLM_TOKENS, "out"), result.spent.tokens_out)
        logger.info(
            "Selector generation ended domain=%s state=%s made_by=%s version=%s calls=%d"
            " tokens=%d reason=%s",
            result.domain,
            result.state,
            result.made_by,
            result.version,
            result.spent.attempts,
            result.spent.tokens_in + result.spent.tokens_out,
            result.reason,
        )
