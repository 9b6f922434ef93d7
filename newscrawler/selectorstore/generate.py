"""From samples to a set on probation: rules first, a model for the fields that rules fail, the gate in between.

One generation per domain in the fleet (jobs.py). A model is asked three times at most. What the gate
refuses is never written as a version; what it takes starts on probation, in shadow.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Protocol

from newscrawler.extraction.context import PageContext
from newscrawler.extraction.selectors import SelectorError, SelectorSet
from newscrawler.selectorstore import ask, gate, keys, rules
from newscrawler.selectorstore.jobs import COOL_DOWN_MS, BudgetSpent, Job, Jobs
from newscrawler.selectorstore.samples import Sample, distinct, make_sample
from newscrawler.selectorstore.store import SelectorStore, StaleFence

MODES = ("rules_then_llm", "llm", "rules", "off")
#: Fewer article pages than this say too little of a template.
LEAST_PAGES = 6
REFINEMENTS = 2
ANSWER_KEPT_S = 7 * 86_400
#: What is asked of a model beyond title and content only where the pages have it.
_OPTIONAL = ("published", "authors")
_WANTED = ("title", "published", "authors", "content")


class StoredPage(Protocol):
    url: str
    body: bytes
    headers: Any
    fetched: datetime


LoadPage = Callable[[str], Awaitable[StoredPage | None]]


@dataclass
class Spent:
    """The model's part of one generation; the fields of newscrawler.llm.Usage, which it is handed as."""

    attempts: int = 0
    tokens_in: int = 0
    tokens_out: int = 0


@dataclass
class Result:
    """``state``: probation | failed | await_admin | waiting (too few pages) | skipped."""

    domain: str
    state: str
    reason: str = ""
    version: int | None = None
    made_by: str = ""
    report: gate.Report | None = None
    doc: dict[str, Any] | None = None
    spent: Spent = field(default_factory=Spent)


class Generator:
    """``context_of(url)`` says what is known of a page's site (its name, zone, language)."""

    def __init__(
        self,
        store: SelectorStore,
        jobs: Jobs,
        load_page: LoadPage,
        context_of: Callable[[str], PageContext],
        *,
        llm: ask.Model | None = None,
        mode: str = "rules_then_llm",
        max_input_chars: int = 90_000,
    ) -> None:
        if mode not in MODES:
            raise ValueError(f"SELECTOR_GENERATION is {mode!r}; it must be one of {', '.join(MODES)}")
        self.store = store
        self.jobs = jobs
        self.mode = mode
        self._load_page = load_page
        self._context_of = context_of
        self._llm = llm if llm is not None and llm.configured else None
        self._max_input_chars = max_input_chars

    async def run_due(self) -> Result | None:
        """Runs the job that is due longest; None when there is none for this worker."""
        if self.mode == "off":
            return None
        domain = await self.jobs.due()
        return await self.run(domain) if domain else None

    async def run(self, domain: str, *, forced: bool = False, refs: list[tuple[str, str]] | None = None) -> Result:
        """One generation under the domain's lock. ``refs``: (url, raw ref) instead of the collected samples."""
        job = await self.jobs.begin(domain, forced=forced)
        if isinstance(job, str):
            return Result(domain, "skipped", job)
        async with self.jobs.held(job):
            job.again_in_ms = COOL_DOWN_MS[0]  # what stands if the next lines raise
            result = await self._generate(job, refs if refs is not None else await self.store.samples(domain))
            await self._finish(job, result)
        return result

    async def _generate(self, job: Job, refs: list[tuple[str, str]]) -> Result:
        samples = await self._samples(refs)
        if len(samples) < LEAST_PAGES:
            return Result(
                job.domain,
                "waiting",
                f"{len(samples)} of {len(refs)} stored pages are distinct articles; {LEAST_PAGES} are needed",
            )
        induce, held_out = split(samples)
        result = Result(job.domain, "failed")
        fields: dict[str, Any] = {}
        if self.mode != "llm":
            induced = await asyncio.to_thread(rules.induce, induce)
            fields, result.made_by = induced.fields, "rule"
            await self._try(result, fields, induce, held_out, None)
        wanted = [n for n in _WANTED if n in self._failing(result, samples)]
        if wanted and self._llm is not None and self.mode in ("rules_then_llm", "llm"):
            await self._ask_model(job, result, fields, wanted, induce, held_out)
        elif wanted and self.mode == "llm":
            result.reason = "SELECTOR_GENERATION=llm, but no model is configured (LLM_BASE_URL, LLM_MODEL)"
        if result.doc is None:
            result.reason = result.reason or _why(result.report)
            return result
        result.doc["provenance"]["tokens"] = {
            "in": result.spent.tokens_in,
            "out": result.spent.tokens_out,
            "calls": result.spent.attempts,
        }
        return await self._keep(job, result)

    async def _samples(self, refs: list[tuple[str, str]]) -> list[Sample]:
        found = []
        for url, ref in refs:
            page = await self._load_page(ref)
            if page is None:
                continue
            sample = await asyncio.to_thread(make_sample, url, page.body, self._context(url, page), _content_type(page))
            if sample is not None:
                found.append(sample)
        return distinct(found)

    def _context(self, url: str, page: StoredPage) -> PageContext:
        known = self._context_of(url)
        return replace(known, fetched=page.fetched, hint=None, url_is_article=True)

    @staticmethod
    def _failing(result: Result, samples: list[Sample]) -> set[str]:
        """Fields that need another proposer: those that fail and that at least half of the pages seem to have."""
        failed = set(result.report.failed) if result.report else set(_WANTED)
        for name in _OPTIONAL:
            if sum(bool(getattr(s.labels, name)) for s in samples) < len(samples) / 2:
                failed.discard(name)
        return failed

    async def _try(
        self,
        result: Result,
        fields: dict[str, Any],
        induce: list[Sample],
        held_out: list[Sample],
        extra: dict[str, Any] | None,
    ) -> None:
        """Judges ``fields``; on a pass the set is in ``result.doc``, without the optional fields that failed."""
        if not fields.get("title") or not fields.get("content"):
            missing = [n for n in gate.REQUIRED if not fields.get(n)]
            result.reason = f"no selector for {' and '.join(missing)}"
            result.report = gate.Report(
                False,
                {n: gate.FieldReport(False, 0.0, None, 0.0, "no selector") for n in _WANTED if not fields.get(n)},
                len(induce),
                len(held_out),
            )
            return
        doc = self._document(result, fields, induce, held_out, extra)
        try:
            selectors = SelectorSet.from_dict(doc)
        except SelectorError as exc:
            result.reason = str(exc)
            return
        report = await asyncio.to_thread(gate.judge, selectors, induce, held_out)
        result.report = report
        if not report.passed:
            result.reason = _why(report)
            return
        kept = {n: c for n, c in fields.items() if n not in report.failed}  # the witnesses serve what is left out
        result.doc = self._document(result, kept, induce, held_out, extra)
        result.doc["provenance"]["metrics"] = report.metrics()
        result.reason = ""

    def _document(
        self,
        result: Result,
        fields: dict[str, Any],
        induce: list[Sample],
        held_out: list[Sample],
        extra: dict[str, Any] | None,
    ) -> dict[str, Any]:
        provenance = {
            "made_by": result.made_by or "rule",
            "source": "generated from stored pages",
            "confidence": "gate",
            "samples": [s.digest for s in induce],
            "held_out": [s.digest for s in held_out],
            **(extra or {}),
        }
        return {
            "domain": result.domain,
            "version": 1,
            "state": "candidate",
            "variants": [{"template": "article", "fields": fields}],
            "provenance": provenance,
        }

    # ------------------------------------------------------------ the model
    async def _ask_model(
        self,
        job: Job,
        result: Result,
        by_rule: dict[str, Any],
        wanted: list[str],
        induce: list[Sample],
        held_out: list[Sample],
    ) -> None:
        """Up to 1 + REFINEMENTS questions. Any trouble leaves the rules' result, with the reason noted."""
        assert self._llm is not None
        prompt, digest = await asyncio.to_thread(ask.question, induce, wanted, self._max_input_chars)
        note = ""
        for turn in range(1 + REFINEMENTS):
            try:
                answer = await self._answer(job.domain, prompt + note, f"{digest}-{turn}" if turn else digest, result)
            except Exception as exc:  # LLMError and BudgetSpent: the crawl goes on with what rules gave
                result.reason = f"{type(exc).__name__}: {exc}"
                if not _is_expected(exc):
                    raise
                return
            proposed, invalid = ask.to_fields(answer)
            fields = {**by_rule, **{n: proposed[n] for n in wanted if n in proposed}}
            before = result.doc
            attempt = Result(result.domain, "failed", made_by="llm")
            extra = {
                "model": self._llm.model,
                "server": _host(self._llm.base_url),
                "digest": digest,
                "prompt_version": ask.PROMPT_VERSION,
                "answer": json.dumps(answer, ensure_ascii=False)[:4000],
            }
            await self._try(attempt, fields, induce, held_out, extra)
            result.report = attempt.report
            if attempt.doc is not None and (
                before is None or not attempt.report or not (set(wanted) & set(attempt.report.failed))
            ):
                result.doc, result.made_by, result.reason = attempt.doc, "llm", ""
            if attempt.report is None or not set(wanted) & set(attempt.report.failed):
                return
            result.reason = attempt.reason
            note = "\n\n" + ask.refinement(answer, attempt.report, invalid)

    async def _answer(self, domain: str, prompt: str, digest: str, result: Result) -> dict[str, Any]:
        """The model's answer, from the cache when the same pages were asked about in the last week."""
        assert self._llm is not None
        client = self.jobs.client
        key = keys.answer(f"{self._llm.model}:{digest}")
        cached = await client.get(key)
        if cached:
            return dict(json.loads(cached))
        reserved: list[int] = []

        async def reserve(tokens: int) -> None:
            await self.jobs.reserve(domain, tokens)
            reserved.append(tokens)

        before = result.spent.tokens_in + result.spent.tokens_out
        answer = await self._llm.ask(
            ask.system_prompt(),
            prompt,
            ask.ANSWER_SCHEMA,
            max_tokens=ask.MAX_TOKENS,
            reserve=reserve,
            usage=result.spent,
        )
        used = result.spent.tokens_in + result.spent.tokens_out - before
        await self.jobs.settle(reserved[-1], used)
        await client.set(key, json.dumps(answer.data, ensure_ascii=False), ex=ANSWER_KEPT_S)
        return dict(answer.data)

    # ------------------------------------------------------------ what becomes of it
    async def _keep(self, job: Job, result: Result) -> Result:
        assert result.doc is not None
        try:
            result.version = await self.store.add_version(job.domain, result.doc, who="generator", fence=job.fence)
        except StaleFence as exc:
            result.state, result.reason = "skipped", str(exc)
            return result
        await self.store.put_on_probation(
            job.domain, result.version, who="generator", reason=f"gate passed, made by {result.made_by}"
        )
        await self.store.forget_samples(job.domain)
        result.state = "probation"
        return result

    async def _finish(self, job: Job, result: Result) -> None:
        row = keys.domain(job.domain)
        if result.state in ("probation", "skipped"):
            job.again_in_ms = None
            await self.jobs.client.hdel(row, "attempts")
        elif result.state == "waiting":
            job.again_in_ms = COOL_DOWN_MS[0]
            await self.store.forget_samples(job.domain)  # the next pages are collected anew
        else:
            attempts = int(await self.jobs.client.hincrby(row, "attempts", 1))
            if attempts > len(COOL_DOWN_MS):
                result.state, job.again_in_ms = "await_admin", None
                await self.store.await_admin(job.domain, result.reason)
            else:
                job.again_in_ms = COOL_DOWN_MS[attempts - 1]


def split(samples: list[Sample]) -> tuple[list[Sample], list[Sample]]:
    """Every third page is held out: 12 pages -> 8 and 4."""
    return [s for i, s in enumerate(samples) if i % 3 != 2], [s for i, s in enumerate(samples) if i % 3 == 2]


def _why(report: gate.Report | None) -> str:
    if report is None:
        return "nothing was proposed"
    return "; ".join(f"{name}: {reason}" for name, reason in report.failed.items())


def _content_type(page: StoredPage) -> str | None:
    headers = page.headers
    pairs = headers.items() if hasattr(headers, "items") else headers or []
    for name, value in pairs:
        text = name.decode("latin-1") if isinstance(name, bytes) else str(name)
        if text.lower() == "content-type":
            return value.decode("latin-1") if isinstance(value, bytes) else str(value)
    return None


def _is_expected(exc: Exception) -> bool:
    """LLMError has a ``kind``; it is not imported here, as services do not import one another."""
    return isinstance(exc, BudgetSpent) or hasattr(exc, "kind")


def _host(base_url: str) -> str:
    return re.sub(r"^https?://([^/@]*@)?([^/]+).*$", r"\2", base_url)
