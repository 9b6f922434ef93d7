"""From stored pages to a set in use: a new site's first set, or a new set for one
that no longer fits.

One generation per domain in the fleet (jobs.py). What validation refuses is never written as a
version. A first set starts on probation, in shadow. A set for a site that changed has to beat the
one in use and the generic chain on the same pages; then it is used at once, or waits for an admin
(SELECTOR_APPROVAL).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import datetime
from typing import Any, Protocol

from newscrawler.extraction.context import PageContext
from newscrawler.extraction.selectors import MAX_VARIANTS, SelectorSet
from newscrawler.selectorsets import keys, model_prompt, tie_break
from newscrawler.selectorsets.candidate_runs import read_all
from newscrawler.selectorsets.compare import Comparison, compare
from newscrawler.selectorsets.drift import Drift, Evidence
from newscrawler.selectorsets.jobs import COOL_DOWN_MS, Job, Jobs
from newscrawler.selectorsets.propose import LEAST_PAGES, Proposer, Result, Spent, split
from newscrawler.selectorsets.samples import Sample, distinct, make_sample, title_agrees
from newscrawler.selectorsets.store import SAMPLE_PAGES, SHADOW_PAGES, SelectorStore, StaleFence
from newscrawler.selectorsets.validation import COVERAGE

__all__ = ["LEAST_PAGES", "MODES", "Generator", "Result", "Spent", "split"]

MODES = ("rules_then_llm", "llm", "rules", "off")
APPROVALS = ("auto", "admin")
#: Versions that were in use before, the last one first, that are tried on a site that changed
#: before a new one is made.
EARLIER_TRIED = 4
#: What a site's generations after failures look at, at most.
MOST_SAMPLES = 4 * SAMPLE_PAGES


class StoredPage(Protocol):
    url: str
    body: bytes
    headers: Any
    fetched: datetime


LoadPage = Callable[[str], Awaitable[StoredPage | None]]


class Generator:
    """``context_of(url)`` says what is known of a page's site (its name, zone, language)."""

    def __init__(
        self,
        store: SelectorStore,
        jobs: Jobs,
        load_page: LoadPage,
        context_of: Callable[[str], PageContext],
        *,
        llm: model_prompt.Model | None = None,
        mode: str = "rules_then_llm",
        max_input_chars: int = 90_000,
        approval: str = "auto",
    ) -> None:
        if mode not in MODES:
            raise ValueError(
                f"SELECTOR_GENERATION is {mode!r}; it must be one of {', '.join(MODES)}"
            )
        if approval not in APPROVALS:
            raise ValueError(
                f"SELECTOR_APPROVAL is {approval!r}; it must be one of {', '.join(APPROVALS)}"
            )
        self.store = store
        self.jobs = jobs
        self.drift = Drift(jobs.client)
        self.approval = approval
        self._load_page = load_page
        self._context_of = context_of
        self._proposer = Proposer(jobs, llm, mode, max_input_chars)

    async def run_due(self) -> Result | None:
        """Runs the job that is due longest; None when there is none for this worker."""
        if self._proposer.mode == "off":
            return None
        domain = await self.jobs.due()
        return await self.run(domain) if domain else None

    async def run(
        self, domain: str, *, forced: bool = False, refs: list[tuple[str, str]] | None = None
    ) -> Result:
        """One generation under the domain's lock. ``refs``: (url, raw ref) instead of the
        collected samples."""
        job = await self.jobs.begin(domain, forced=forced)
        if isinstance(job, str):
            return Result(domain, "skipped", job)
        async with self.jobs.held(job):
            job.again_in_ms = COOL_DOWN_MS[0]  # what stands if the next lines raise
            old = (
                self.store.active(domain)
                if refs is None and await self.store.is_drifting(domain)
                else None
            )
            shadow = await self.store.shadow_of(domain) if refs is None and old is None else None
            if old is not None:
                result = await self._renew(job, old)
            elif shadow is not None:
                result = await self._second_opinion(job, *shadow)
            else:
                result = await self._first(
                    job, refs if refs is not None else await self.store.samples(domain)
                )
            await self._finish(job, result)
        return result

    # ------------------------------------------------------------ a site without a set
    async def _first(self, job: Job, refs: list[tuple[str, str]]) -> Result:
        samples = await self._samples(refs)
        if len(samples) < LEAST_PAGES:
            return _too_few(job.domain, samples, refs)
        result = await self._proposer.propose(job.domain, samples)
        if result.doc is None:
            if result.more:
                result.state = "waiting"
            return result
        try:
            result.version = await self.store.add_version(
                job.domain, result.doc, who="generator", fence=job.fence
            )
        except StaleFence as exc:
            result.state, result.reason = "skipped", str(exc)
            return result
        await self.store.put_on_probation(
            job.domain,
            result.version,
            who="generator",
            reason=f"validation passed, made by {result.made_by}",
        )
        await self.store.forget_samples(job.domain)
        result.state = "probation"
        return result

    # ------------------------------------------------------------ a set on probation that differs
    async def _second_opinion(
        self, job: Job, selectors: SelectorSet, good: int, seen: int
    ) -> Result:
        """Who is right, the set or what the generic chain stored: all shadow pages together
        say (tie_break.py)."""
        samples = await self._samples(await self.store.samples(job.domain))
        opinion = await asyncio.to_thread(tie_break.opinion, selectors, samples)
        result = Result(job.domain, "probation", opinion.fault, version=selectors.version)
        if not opinion.fault:
            result.state, result.promoted = "active", True
            result.reason = (
                f"{good} of {seen} pages agreed; on all {opinion.read} together it is right where"
                " they differed"
            )
            if opinion.unread:
                result.reason += f"; {opinion.unread} are of templates that it does not know"
                result = await self._widened(job, selectors, samples, result)
            await self.store.activate(
                job.domain, result.version or selectors.version, who="shadow", reason=result.reason
            )
            await self.store.forget_samples(job.domain)
        elif seen >= 2 * SHADOW_PAGES:
            result.state = "approval"
            await self.store.end_probation(job.domain, opinion.fault)
        return result

    async def _widened(
        self, job: Job, known: SelectorSet, samples: list[Sample], result: Result
    ) -> Result:
        """A version that reads the other templates too, where their pages are enough for
        one and it is better on all of them; else ``result`` as it is, and the generic chain
        goes on reading them."""
        wider = await self._proposer.propose(job.domain, samples)
        result.spent = wider.spent
        if wider.doc is None:
            return result
        keep_what_fits(wider.doc, known, samples)
        verdict = await asyncio.to_thread(compare, SelectorSet.from_dict(wider.doc), known, samples)
        if not verdict.better:
            return result
        source = {
            "source": "generated for templates that the first set did not know",
            "parent": known.version,
        }
        wider.doc["provenance"] |= {**source, "compared": verdict.metrics()}
        try:
            wider.version = await self.store.add_version(
                job.domain, wider.doc, who="generator", fence=job.fence
            )
        except StaleFence:
            return result
        wider.state, wider.promoted = "active", True
        wider.reason = f"{result.reason}; a set for them as well: {verdict.reason}"
        return wider

    # ------------------------------------------------------------ a set that no longer fits
    async def _renew(self, job: Job, old: SelectorSet) -> Result:
        evidence = await self.drift.evidence(job.domain)
        failing = await self._samples(evidence.failing)
        good = await self._samples(evidence.good)
        samples = distinct([*failing, *good])
        if len(samples) < LEAST_PAGES:
            return _too_few(job.domain, samples, evidence.failing)
        if (
            self.approval == "auto"
            and (known := await self._earlier(job, old, evidence, samples)) is not None
        ):
            return known
        result = await self._proposer.propose(job.domain, samples)
        if result.doc is None:
            return result
        keep_what_fits(result.doc, old, samples)
        fresh = SelectorSet.from_dict(result.doc)
        verdict = await asyncio.to_thread(compare, fresh, old, samples)
        result.reason = verdict.reason
        if not verdict.better:
            result.state = "kept"
            return result
        return await self._promote(job, old, evidence, verdict, result)

    async def _earlier(
        self, job: Job, old: SelectorSet, evidence: Evidence, samples: list[Sample]
    ) -> Result | None:
        """The site went back to what it was: a version of before that reads all of these pages is
        used, none is made."""
        used = [
            int(e["version"]) for e in await self.store.history(job.domain) if e["what"] == "active"
        ]
        for number in [n for n in dict.fromkeys(used) if n != old.version][:EARLIER_TRIED]:
            before = SelectorSet.from_dict(await self.store.document(job.domain, number))
            verdict = await asyncio.to_thread(compare, before, old, samples)
            if not (verdict.better and verdict.new.cover >= COVERAGE):
                continue
            reason = f"version {number} fits again: {verdict.reason}"
            await self.store.activate(
                job.domain,
                number,
                who="generator",
                reason=reason,
                since_ms=evidence.since_ms or None,
            )
            return Result(job.domain, "active", reason, version=number)
        return None

    async def _promote(
        self, job: Job, old: SelectorSet, evidence: Evidence, verdict: Comparison, result: Result
    ) -> Result:
        assert result.doc is not None
        result.doc["provenance"] |= {
            "source": "generated after the site had changed",
            "parent": old.version,
            "drift": {
                "onset_ms": evidence.onset_ms,
                "since_ms": evidence.since_ms,
                "template": evidence.template,
                "field": evidence.field,
            },
            "compared": verdict.metrics(),
        }
        try:
            result.version = await self.store.add_version(
                job.domain, result.doc, who="generator", fence=job.fence
            )
        except StaleFence as exc:
            result.state, result.reason = "skipped", str(exc)
            return result
        if self.approval == "admin":
            result.state = "approval"
            await self.store.await_admin(
                job.domain, f"version {result.version} waits for approval: {verdict.reason}"
            )
        else:
            result.state = "active"
            await self.store.activate(
                job.domain, result.version, who="generator", reason=verdict.reason
            )
        return result

    # ------------------------------------------------------------ pages
    async def _samples(self, refs: list[tuple[str, str]]) -> list[Sample]:
        found = []
        for url, ref in refs:
            page = await self._load_page(ref)
            if page is None:
                continue
            sample = await asyncio.to_thread(
                make_sample, url, page.body, self._context(url, page), _content_type(page)
            )
            if sample is not None:
                found.append(sample)
        return distinct(found)

    def _context(self, url: str, page: StoredPage) -> PageContext:
        known = self._context_of(url)
        return replace(known, fetched=page.fetched, hint=None, url_is_article=True)

    # ------------------------------------------------------------ what becomes of the job
    async def _finish(self, job: Job, result: Result) -> None:
        row = keys.domain(job.domain)
        if result.state in ("probation", "skipped", "active", "approval"):
            job.again_in_ms = None
            await self.jobs.client.hdel(row, "attempts")
            return
        drifting = await self.store.is_drifting(job.domain)
        if result.state in ("waiting", "failed"):
            await self.store.note_failure(job.domain, result.state, result.reason)
        if result.state == "waiting":
            job.again_in_ms = COOL_DOWN_MS[0]
            if result.more:  # the pages are good, there are too few of them
                await self.store.want_samples(job.domain, result.more)
            elif not drifting:
                await self.store.forget_samples(job.domain)  # the next pages are collected anew
        elif result.state == "kept":
            job.again_in_ms = None
            await self.store.keep(job.domain, result.reason)
            await self.drift.rearm(job.domain, learn=True)
            return
        else:
            attempts = int(await self.jobs.client.hincrby(row, "attempts", 1))
            if attempts > len(COOL_DOWN_MS):
                result.state, job.again_in_ms = "await_admin", None
                await self.store.await_admin(job.domain, result.reason)
            else:
                job.again_in_ms = COOL_DOWN_MS[attempts - 1]
                await self._want_others(job.domain)
        if drifting:
            await self.drift.rearm(job.domain, learn=False)

    async def _want_others(self, domain: str) -> None:
        """The next attempt sees twelve pages more: the same ones would say the same."""
        had = len(await self.store.samples(domain))
        if had >= SAMPLE_PAGES and not await self.store.is_drifting(domain):
            await self.store.want_samples(domain, min(had + SAMPLE_PAGES, MOST_SAMPLES))


def _too_few(domain: str, samples: list[Sample], refs: list[tuple[str, str]]) -> Result:
    return Result(
        domain,
        "waiting",
        f"{len(samples)} of {len(refs)} stored pages are distinct articles; {LEAST_PAGES} are"
        " needed",
    )


def keep_what_fits(doc: dict[str, Any], old: SelectorSet, samples: list[Sample]) -> None:
    """A template of the old set that pages still have, and that the new variants do not
    read, stays behind them."""
    fresh = SelectorSet.from_dict(doc)
    unread = [s for s in samples if not {"title", "content"} <= read_all(s, fresh).keys()]
    old_variants = old.to_dict()["variants"]
    for variant, plain in zip(old.variants, old_variants, strict=True):
        alone = replace(old, variants=(variant,))
        fitting = sum(_fits(sample, alone) for sample in unread)
        if fitting >= 2 and len(doc["variants"]) < MAX_VARIANTS:
            name = plain["template"]
            if any(known["template"] == name for known in doc["variants"]):
                name = f"{name}-before"
            doc["variants"].append({**plain, "template": name})


def _fits(sample: Sample, selectors: SelectorSet) -> bool:
    """Whether the set finds a text on the page, and its headline."""
    found = read_all(sample, selectors)
    if "content" not in found or "title" not in found:
        return False
    return title_agrees(found["title"].value, sample.labels.title or "")


def _content_type(page: StoredPage) -> str | None:
    headers = page.headers
    pairs = headers.items() if hasattr(headers, "items") else headers or []
    for name, value in pairs:
        if _latin(name).lower() == "content-type":
            return _latin(value)
    return None


def _latin(raw: Any) -> str:
    return raw.decode("latin-1") if isinstance(raw, bytes) else str(raw)
