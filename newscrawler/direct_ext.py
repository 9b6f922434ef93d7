"""The last resort: the fields of a page by a model, held against the page. Never in the crawl's way.

Part of newscrawler.generation_ext.SelectorGeneration, which hands over each page and runs the loop. A page that the site's
rules call an article and of which nothing reads the text is noted in Redis with its reference in the raw store; an
idle worker reads it from there again, asks the model under the same budget as for selector sets, and stores what is
grounded (extraction.grounding). No site is asked a second time.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from newscrawler import metrics
from newscrawler.extraction.document import Document
from newscrawler.extraction.extract import STUB_CHARS, Extraction, PageContext, article_values, extract
from newscrawler.extraction.grounding import MENDABLE, NotGrounded, Visible, ground, is_stated_article
from newscrawler.items import Article, Kind, Link, Outcome, Page
from newscrawler.llm import LLM, LLMError
from newscrawler.pipelines import STORED_AS, CleanPipeline, origin_stat
from newscrawler.rawstore.errors import RawNotFound, RawStoreUnavailable
from newscrawler.selectorstore.direct import (
    ANSWER_SCHEMA,
    DirectLimits,
    DirectQueue,
    Waiting,
    question,
    system_prompt,
)
from newscrawler.selectorstore.jobs import BudgetSpent, Jobs
from newscrawler.selectorstore.propose import KnownFailure, Spent, cached_answer
from newscrawler.store.base import StoreRefused, StoreUnavailable
from newscrawler.store.events import EventStream
from newscrawler.wiring import Services

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from scrapy.settings import BaseSettings

logger = logging.getLogger(__name__)

#: Before a page is tried again: a model that is away or busy, a limit of the minute, one of the day (looked at hourly:
#: an operator may raise it).
_AWAY_MS, _MINUTE_MS, _SPENT_MS = 15 * 60_000, 60_000, 3_600_000
#: Pages noted and not yet in Redis, at most.
_NOTED = 200


def limits_of(settings: BaseSettings) -> DirectLimits:
    return DirectLimits(settings.getint("LLM_DIRECT_PER_DAY"), settings.getint("LLM_DIRECT_PER_DOMAIN_PER_DAY"))


@dataclass
class Read:
    """A stored page, read. ``why`` it is not a page to ask about: "" when it is one."""

    doc: Document
    context: PageContext
    found: Extraction
    page: Visible
    why: str


class DirectReader:
    """One page at a time: :meth:`run` says what came of it. Parts as in wiring.Services."""

    def __init__(
        self, services: Any, jobs: Jobs, queue: DirectQueue, llm: LLM, max_input_chars: int, stats: Any
    ) -> None:
        self.services, self.jobs, self.queue, self.llm = services, jobs, queue, llm
        self.max_input_chars = max_input_chars
        self.stats = stats
        self._clean = CleanPipeline(self)  # type: ignore[arg-type]  # of a crawler it needs the stats

    async def run(self, waiting: Waiting) -> str:
        """What became of the page: stored by rules ("mended") or from an answer ("grounded"), or why neither."""
        spent = Spent()
        try:
            result = await self._one(waiting, spent)
        except BudgetSpent as exc:
            result = "budget"
            await self.queue.later(waiting, _MINUTE_MS if "MINUTE" in str(exc) else _SPENT_MS, counts=False)
            logger.info("Direct extraction waits url=%s reason=%s", waiting.url, exc)
        except (LLMError, KnownFailure) as exc:
            result = exc.kind
            logger.info("Direct extraction got no answer url=%s kind=%s reason=%s", waiting.url, exc.kind, exc)
            if exc.kind in ("busy", "server", "network", "config", "auth"):
                await self.queue.later(waiting, _AWAY_MS)
            else:
                await self.queue.done(waiting)
        except (StoreUnavailable, RawStoreUnavailable) as exc:
            result = "store"
            await self.queue.later(waiting, _AWAY_MS, counts=False)
            logger.warning("Direct extraction waits for a store url=%s error=%s", waiting.url, exc)
        if spent.attempts:
            self._count(metrics.LLM_CALLS, spent.attempts)
            self._count(metrics.labelled(metrics.LLM_TOKENS, "in"), spent.tokens_in)
            self._count(metrics.labelled(metrics.LLM_TOKENS, "out"), spent.tokens_out)
        self._count(metrics.labelled(metrics.LLM_DIRECT, result))
        return result

    async def _one(self, waiting: Waiting, spent: Spent) -> str:
        try:
            raw = await asyncio.to_thread(self.services.raw.read, waiting.ref)
        except RawNotFound:  # another node's folder, or cleaned up
            await self.queue.later(waiting, _AWAY_MS)
            return "no_page"
        read = await asyncio.to_thread(self._read, waiting, raw)
        if read.why:
            await self.queue.done(waiting)
            return read.why
        result = "mended"
        if not read.found.is_article:
            result = await self._ask(waiting, read, spent)
        if result in ("mended", "grounded"):
            result = await self._store(waiting, read.found, raw) or result
        if result != "budget":
            await self.queue.done(waiting)
        return result

    def _read(self, waiting: Waiting, raw: Any) -> Read:
        site = self.services.sites.get(waiting.domain)
        context = PageContext(
            site_name=site.name if site else None,
            language=site.language if site else None,
            zone=site.zone if site else None,
            fetched=raw.fetched,
            url_is_article=True,
        )
        doc = Document(raw.body, raw.url, raw.content_type, language=context.language).composed()
        found = extract(doc, context, self.services.selectors.active(waiting.domain))
        page = Visible.of(doc)
        why = ""
        if not found.is_article:
            if found.reason not in MENDABLE:
                why = "other"
            elif not is_stated_article(doc):
                why = "no_witness"
            elif len(page.flat) < STUB_CHARS:
                why = "no_text"  # made by script: there is nothing that an answer could be held against
        return Read(doc, context, found, page, why)

    async def _ask(self, waiting: Waiting, read: Read, spent: Spent) -> str:
        forbidden = await self.queue.reserve(waiting.domain)
        if forbidden:
            logger.info("Direct extraction waits url=%s reason=%s", waiting.url, forbidden)
            await self.queue.later(waiting, _SPENT_MS, counts=False)
            return "budget"
        try:
            prompt, digest, most = question(read.page.blocks, self.max_input_chars)
            asked = (system_prompt(), prompt, ANSWER_SCHEMA, most)
            answer = await cached_answer(self.jobs, self.llm, waiting.domain, digest, asked, spent)
        finally:
            if not spent.attempts:
                await self.queue.unreserve(waiting.domain)
        try:
            await asyncio.to_thread(ground, read.doc, read.context, read.found, answer)
        except NotGrounded as exc:
            logger.warning("Answer of the model is refused url=%s reason=%s", waiting.url, exc)
            return "not_grounded"
        return "grounded" if read.found.is_article else "no_article"

    async def _store(self, waiting: Waiting, found: Extraction, raw: Any) -> str:
        """ "" when it is stored, else why not."""
        link = self.services.sites.identify(waiting.url, kind=Kind.ARTICLE)
        if not isinstance(link, Link):
            return "offsite"
        article = Article(
            id=link.url_id.hex(),
            url=waiting.url,
            site=waiting.domain,
            discovered=raw.fetched,
            fetched=raw.fetched,
            raw_ref=waiting.ref,
            **article_values(found),
        )
        page = Page(url=article.url, outcome=Outcome.DONE, article=article, fetched=raw.fetched)
        page = self._clean.process_item(page)
        if page.article is None:
            return "empty"
        try:
            (result,) = await self.services.store.put([page.article])
        except StoreRefused as exc:
            logger.error("Article was refused by the store url=%s error=%s", waiting.url, exc)
            return "refused_by_store"
        logger.info("Article of the last resort is stored url=%s status=%s", waiting.url, result.status)
        for name, origin in article.origins.items():
            self._count(origin_stat(name, origin))
        self._count(STORED_AS[result.status])
        if result.status in ("new", "updated"):
            try:
                await EventStream(self.services.redis).announce([(page.article, result)])
            except Exception as exc:  # the article is safe
                logger.warning("Events were not told url=%s error=%s", waiting.url, exc)
        return ""

    def _count(self, name: str, count: int = 1) -> None:
        self.stats.inc_value(name, count)


class DirectDesk:
    """``note()`` on each page that ended, ``look()`` by a loop."""

    def __init__(self, crawler: Crawler, jobs_limits: Any, llm: LLM, max_input_chars: int) -> None:
        self.crawler = crawler
        self.limits = limits_of(crawler.settings)
        self._jobs_limits, self._llm, self._max_input_chars = jobs_limits, llm, max_input_chars
        self._noted: deque[Waiting] = deque(maxlen=_NOTED)
        self._reader: DirectReader | None = None
        self._running = self._more = False  # _more: the last look found one

    @property
    def is_on(self) -> bool:
        return self._llm.configured and min(self.limits.pages_per_day, self.limits.pages_per_domain_per_day) > 0

    @property
    def busy(self) -> bool:
        return self._running or self._more or bool(self._noted)

    def note(self, page: Page) -> None:
        """A page that should be an article and says nothing that rules can read. Its raw page is on the disk by now."""
        if (
            page.outcome is Outcome.NOT_ARTICLE
            and page.reason in MENDABLE
            and page.kind is Kind.ARTICLE
            and page.raw_ref
        ):
            self._noted.append(Waiting(page.url, page.site, page.raw_ref))

    async def look(self, is_idle: bool) -> None:
        """Tells Redis what was noted; an idle worker reads one page that waits."""
        services = Services.of(self.crawler)
        if self._reader is None:
            queue = DirectQueue(services.redis, self.limits)
            jobs = Jobs(services.redis, self._jobs_limits)
            self._reader = DirectReader(services, jobs, queue, self._llm, self._max_input_chars, self.crawler.stats)
        queue = self._reader.queue
        while self._noted:
            if not await queue.note(self._noted[0]):
                self.crawler.stats.inc_value(metrics.labelled(metrics.LLM_DIRECT, "queue_full"))
            self._noted.popleft()
        if not is_idle or self._running:
            return
        self._running = True
        try:
            waiting = await queue.take()
            self._more = waiting is not None
            if waiting is not None:
                await asyncio.to_thread(services.raw.flush)
                await self._reader.run(waiting)
        finally:
            self._running = False
