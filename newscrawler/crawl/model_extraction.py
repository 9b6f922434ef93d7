"""The last resort: the fields of a page by a model, held against the page.
Never in the crawl's way.

Part of newscrawler.crawl.selector_jobs.SelectorGeneration, which hands over each page and runs the
loop. A page that the site's rules call an article and of which nothing reads the text is noted in
Redis with its reference in the raw store; an idle worker reads it from there again, asks the model
under the same budget as for selector sets, and stores what is grounded (extraction.grounding). No
site is asked a second time.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from newscrawler import metrics
from newscrawler.crawl import renamed_settings
from newscrawler.crawl.page_context import context_of
from newscrawler.crawl.services import Services
from newscrawler.extraction.document import Document
from newscrawler.extraction.extract import (
    STUB_CHARS,
    Extraction,
    PageContext,
    article_values,
    calibrate,
    extract,
)
from newscrawler.extraction.grounding import (
    MENDABLE,
    NotGrounded,
    Visible,
    ground,
    is_stated_article,
)
from newscrawler.extraction.text import one_line
from newscrawler.items import Article, Kind, Link, Outcome, Visit
from newscrawler.llm import LENGTH_KEPT_S, LLM, LLMError
from newscrawler.rawstore.errors import RawNotFound, RawStoreUnavailable
from newscrawler.selectorsets.jobs import BudgetSpent, Jobs
from newscrawler.selectorsets.model_queue import (
    ANSWER_SCHEMA,
    MOST_TRIES,
    ExtractionLimits,
    ModelQueue,
    Question,
    Waiting,
    question,
    system_prompt,
)
from newscrawler.selectorsets.propose import MOST_CUTS, KnownFailure, Spent, cached_answer
from newscrawler.store.base import StoreRefused, StoreUnavailable

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

logger = logging.getLogger(__name__)

#: Before a page is tried again: a model that is away or busy, a limit of the minute, one of the day
#: (looked at hourly: an operator may raise it).
_AWAY_MS, _MINUTE_MS, _SPENT_MS = 15 * 60_000, 60_000, 3_600_000
#: A page too long for the model is tried a last time when what was learnt of its length is
#: forgotten: a proxy that was set wrongly may be mended by then. Each of the MOST_TRIES - 1 waits.
_TOO_LONG_MS = round(LENGTH_KEPT_S * 1000 / (MOST_TRIES - 1)) + _MINUTE_MS
#: Pages noted and not yet in Redis, at most.
_NOTED = 200


def limits_of(settings: BaseSettings) -> ExtractionLimits:
    return ExtractionLimits(
        renamed_settings.integer(settings, "LLM_EXTRACTION_PAGES_PER_DAY"),
        renamed_settings.integer(settings, "LLM_EXTRACTION_PAGES_PER_DOMAIN_PER_DAY"),
    )


@dataclass
class Read:
    """A stored page, read. ``why`` it is not a page to ask about: "" when it is one."""

    doc: Document
    context: PageContext
    found: Extraction
    page: Visible
    why: str


class ModelExtractor:
    """One page at a time: :meth:`run` says what came of it. Parts as in crawl.services.Services."""

    def __init__(
        self,
        services: Any,
        jobs: Jobs,
        queue: ModelQueue,
        llm: LLM,
        max_input_chars: int,
        count: Callable[[str, int], Any],
    ) -> None:
        self.services, self.jobs, self.queue, self.llm = services, jobs, queue, llm
        self.max_input_chars = max_input_chars
        self._counted = count

    async def run(self, waiting: Waiting) -> str:
        """What became of the page: stored by rules ("mended") or from an answer
        ("grounded"), or why neither."""
        spent = Spent()
        try:
            result = await self._one(waiting, spent)
        except BudgetSpent as exc:
            result = "budget"
            await self.queue.later(
                waiting, _MINUTE_MS if "MINUTE" in str(exc) else _SPENT_MS, counts=False
            )
            logger.info("Model extraction waits url=%s reason=%s", waiting.url, exc)
        except (LLMError, KnownFailure) as exc:
            result = exc.kind
            logger.info(
                "Model extraction got no answer url=%s kind=%s reason=%s",
                waiting.url,
                exc.kind,
                exc,
            )
            if exc.kind in ("busy", "server", "network", "config", "auth"):
                await self.queue.later(waiting, _AWAY_MS)
            elif exc.kind == "too_long" and self.llm.most_chars is not None:
                await self.queue.later(waiting, _TOO_LONG_MS)
            else:
                await self.queue.done(waiting)
        except (StoreUnavailable, RawStoreUnavailable) as exc:
            result = "store"
            await self.queue.later(waiting, _AWAY_MS, counts=False)
            logger.warning("Model extraction waits for a store url=%s error=%s", waiting.url, exc)
        if spent.attempts:
            self._count(metrics.LLM_CALLS, spent.attempts)
            self._count(metrics.labelled(metrics.LLM_TOKENS, "in"), spent.tokens_in)
            self._count(metrics.labelled(metrics.LLM_TOKENS, "out"), spent.tokens_out)
        self._count(metrics.labelled(metrics.LLM_EXTRACTION, result))
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
        context = context_of(
            self.services.sites.get(waiting.domain),
            fetched=raw.fetched,
            url_is_article=True,
            rules=self.services.metadata_rules,
        )
        doc = Document(raw.body, raw.url, raw.content_type, language=context.language).composed()
        selectors = self.services.selectors.active(waiting.domain)
        found = extract(doc, context, selectors, calibrated=False)  # grounding asks the rules
        page = Visible.of(doc)
        why = ""
        if not found.is_article:
            if found.reason not in MENDABLE:
                why = "other"
            elif not is_stated_article(doc):
                why = "no_metadata"
            elif len(page.flat) < STUB_CHARS:
                why = (  # made by script: there is nothing that an answer could be held against
                    "no_text"
                )
        return Read(doc, context, found, page, why)

    async def _ask(self, waiting: Waiting, read: Read, spent: Spent) -> str:
        forbidden = await self.queue.reserve(waiting.domain)
        if forbidden:
            logger.info("Model extraction waits url=%s reason=%s", waiting.url, forbidden)
            await self.queue.later(waiting, _SPENT_MS, counts=False)
            return "budget"
        try:
            asked, answer = await self._asked(waiting, read, spent)
        finally:
            if not spent.attempts:
                await self.queue.unreserve(waiting.domain)
        try:
            if asked.cut and (read.found.content.value is None or read.found.reason == "stub"):
                _check_end(asked, answer)
            await asyncio.to_thread(ground, read.doc, read.context, read.found, answer)
        except NotGrounded as exc:
            logger.warning("Answer of the model is refused url=%s reason=%s", waiting.url, exc)
            return "not_grounded"
        return "grounded" if read.found.is_article else "no_article"

    async def _asked(
        self, waiting: Waiting, read: Read, spent: Spent
    ) -> tuple[Question, dict[str, Any]]:
        """The question that the server took and its answer: fewer blocks of the page are shown
        where it says that its model takes no question so long. With none left nobody is asked.

        :raises LLMError, KnownFailure, BudgetSpent: there is no answer
        """
        refused: LLMError | None = None
        shown = ""
        for cut in range(1 + MOST_CUTS):
            most = self.max_input_chars
            if self.llm.most_chars is not None:
                most = max(1, min(most, self.llm.most_chars - len(system_prompt())))
            asked = question(read.page.blocks, most)
            if not asked.last:
                raise LLMError("too_long", f"no block of the page fits into {most:,} characters")
            if refused is not None and asked.digest == shown:
                raise refused  # it would be refused again
            shown = asked.digest
            told = (system_prompt(), asked.prompt, ANSWER_SCHEMA, asked.most_tokens)
            try:
                answer = await cached_answer(
                    self.jobs, self.llm, waiting.domain, asked.digest, told, spent
                )
                return asked, answer
            except LLMError as exc:
                if exc.kind != "too_long" or cut == MOST_CUTS:
                    raise
                refused = exc
        raise AssertionError("unreachable")

    async def _store(self, waiting: Waiting, found: Extraction, raw: Any) -> str:
        """ "" when it is stored, else why not."""
        calibrate(found)
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
        ingest = self.services.ingest
        if not ingest.clean(article):
            return "empty"
        try:
            result = await ingest.put(article)
        except StoreRefused as exc:
            logger.error("Article was refused by the store url=%s error=%s", waiting.url, exc)
            return "refused_by_store"
        logger.info(
            "Article of the last resort is stored url=%s status=%s", waiting.url, result.status
        )
        return ""

    def _count(self, name: str, count: int = 1) -> None:
        self._counted(name, count)


def _check_end(asked: Question, answer: Mapping[str, Any]) -> None:
    """:raises NotGrounded: the text ends where the page was cut for the model, or nothing was shown
    of it: what is stored would be the beginning of an article"""
    paragraphs = answer.get("paragraphs")
    last = one_line(str(paragraphs[-1])) if isinstance(paragraphs, list) and paragraphs else ""
    if not asked.last or (last and one_line(asked.last).endswith(last)):
        raise NotGrounded("content", "the text ends where the page was cut for the model")


class ModelExtractionService:
    """``note()`` on each page that ended, ``look()`` by a loop."""

    def __init__(
        self, services: Services, jobs_limits: Any, llm: LLM, max_input_chars: int
    ) -> None:
        self.services = services
        self.limits = limits_of(services.settings)
        self._jobs_limits, self._llm, self._max_input_chars = jobs_limits, llm, max_input_chars
        self._noted: deque[Waiting] = deque(maxlen=_NOTED)
        self._reader: ModelExtractor | None = None
        self._running = self._more = False  # _more: the last look found one

    @property
    def is_on(self) -> bool:
        return (
            self._llm.configured
            and min(self.limits.pages_per_day, self.limits.pages_per_domain_per_day) > 0
        )

    @property
    def busy(self) -> bool:
        return self._running or self._more or bool(self._noted)

    def note(self, visit: Visit) -> None:
        """A page that should be an article and says nothing that rules can read. Its raw
        page is on the disk by now."""
        if (
            visit.outcome is Outcome.NOT_ARTICLE
            and visit.reason in MENDABLE
            and visit.kind is Kind.ARTICLE
            and visit.raw_ref
        ):
            self._noted.append(Waiting(visit.url, visit.site, visit.raw_ref))

    async def look(self, is_idle: bool) -> None:
        """Tells Redis what was noted; an idle worker reads one page that waits."""
        services = self.services
        if self._reader is None:
            queue = ModelQueue(services.redis, self.limits)
            jobs = Jobs(services.redis, self._jobs_limits)
            self._reader = ModelExtractor(
                services, jobs, queue, self._llm, self._max_input_chars, services.count
            )
        queue = self._reader.queue
        while self._noted:
            if not await queue.note(self._noted[0]):
                services.count(metrics.labelled(metrics.LLM_EXTRACTION, "queue_full"), 1)
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
