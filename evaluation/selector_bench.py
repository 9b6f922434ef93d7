"""`scrapy selectors bench`: what a model's selectors are worth on stored pages, for people to
measure and publish.

Of each site twelve pages are shown or held out, as in a generation; the rest is never seen by model
or gate. On those each field is compared with the page's own metadata (JSON-LD, meta elements, what
all pages together say of the text): this is agreement with metadata, not with a person's gold
data, and only pages that state the field count. A site on which the model was not reached, or not
asked for want of budget, says nothing of it and counts nowhere.
"""

from __future__ import annotations

import asyncio
import os
import time
from typing import Any

from scrapy.settings import BaseSettings

from newscrawler import cli
from newscrawler.crawl.selector_admin import ContextOf, Stored
from newscrawler.crawl.selector_jobs import GenerationConfig
from newscrawler.extraction.selectors import SelectorSet
from newscrawler.llm import LLM
from newscrawler.selectorsets.candidate_runs import read_all
from newscrawler.selectorsets.jobs import BudgetSpent, Jobs
from newscrawler.selectorsets.propose import Proposer
from newscrawler.selectorsets.samples import Sample, distinct, make_sample
from newscrawler.selectorsets.store import SAMPLE_PAGES, wilson_lower
from newscrawler.selectorsets.validation import JUDGED_FIELDS, value_agrees
from newscrawler.utils.display import url_shown

MOST_PAGES = 60
#: Fewer pages leave too few that were not shown.
LEAST = SAMPLE_PAGES + 6


class PatientJobs(Jobs):
    """Waits for the next minute where a generation would give up: whoever measures has
    asked for all of it."""

    async def reserve(self, domain: str, tokens_in: int, tokens_out: int = 0) -> None:
        """:raises BudgetSpent: for a limit of the day; a limit of 0 calls a minute is one too"""
        while True:
            try:
                return await super().reserve(domain, tokens_in, tokens_out)
            except BudgetSpent as exc:
                if "LLM_CALLS_PER_MINUTE" not in str(exc) or self.limits.calls_per_minute < 1:
                    raise
            cli.note(
                f"{domain}: {self.limits.calls_per_minute} calls were made this minute"
                " (LLM_CALLS_PER_MINUTE); waiting"
            )
            await self.wait(60.5 - self._clock() % 60)

    async def wait(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


async def measure(
    settings: BaseSettings,
    client: Any,
    domain: str,
    pages: list[Stored],
    context_of: ContextOf,
    base_url: str,
    model: str,
) -> dict[str, Any] | None:
    """One site's row; None when too few pages are stored, which is said. The model is asked afresh,
    within the budget."""
    made = [make_sample(p.url, p.body, context_of(p.url, p.fetched), p.content_type) for p in pages]
    samples = distinct([s for s in made if s is not None])
    if len(samples) < LEAST:
        if pages:
            cli.note(
                f"{domain}: {len(samples)} stored article pages that differ, {LEAST} are needed"
            )
        return None
    cli.note(
        f"{domain}: asking {model} about {SAMPLE_PAGES} pages, {len(samples) - SAMPLE_PAGES} more"
        " to judge it by"
    )
    config = GenerationConfig.of(settings)
    llm = LLM(
        base_url,
        os.environ.get(settings["LLM_API_KEY_ENV"], ""),
        model,
        settings.getfloat("LLM_TIMEOUT_S"),
    )
    proposer = Proposer(
        PatientJobs(client, config.limits), llm, "llm", config.max_input_chars, cached=False
    )
    start = time.monotonic()
    try:
        result = await proposer.propose(domain, samples[:SAMPLE_PAGES])
    finally:
        await llm.close()
    unseen = samples[SAMPLE_PAGES:]
    fields = await asyncio.to_thread(_fields, result.doc, unseen)
    spent = result.spent
    return {
        "domain": domain, "passed": result.doc is not None,
        "answered": result.doc is not None or not result.unanswered,
        "reason": result.reason, "pages_unseen": len(unseen),
        "fields": fields, "calls": spent.attempts, "tokens_in": spent.tokens_in,
        "tokens_out": spent.tokens_out,
        "cost": round(config.limits.micro(spent.tokens_in, spent.tokens_out) / 1e6, 6),
        "form": llm.mode, "seconds": round(time.monotonic() - start, 1),
    }  # fmt: skip


def _fields(doc: dict[str, Any] | None, unseen: list[Sample]) -> dict[str, dict[str, Any]]:
    """Field -> {"right", "of"}; a set that did not pass is right nowhere: the site
    would have none."""
    found = {name: {"right": 0, "of": 0} for name in JUDGED_FIELDS}
    selectors = SelectorSet.from_dict(doc) if doc else None
    for sample in unseen:
        values = read_all(sample, selectors) if selectors else {}
        for name in JUDGED_FIELDS:
            label = getattr(sample.labels, name)
            if label:
                found[name]["of"] += 1
                value = values[name].value if name in values else None
                found[name]["right"] += value_agrees(name, value, label)
    return found


def show(rows: list[dict[str, Any]], base_url: str, model: str, as_json: bool) -> None:
    scripted = model.lower().startswith("scripted")
    if as_json:
        for row in rows:
            cli.print_object(
                {**row, "model": model, "server": url_shown(base_url), "is_model": not scripted}
            )
        return
    if scripted:
        cli.show(
            "The model is scripted: its answers are made by rule. These are NOT figures of any"
            " model.\n"
        )
    columns = ("domain", "passed", *JUDGED_FIELDS, "calls", "tokens", "cost", "seconds", "reason")
    cli.print_rows(list(map(_table_row, rows)), columns, False)
    silent = [row["domain"] for row in rows if not row["answered"]]
    if silent:
        cli.show(f"\nWithout an answer, and in no figure below: {', '.join(silent)}")
    answered = [row for row in rows if row["answered"]]
    sites = "1 site" if len(answered) == 1 else f"{len(answered)} sites"
    cli.show(
        f"\n{model} at {url_shown(base_url)}, {sites}; agreement with the pages' own witnesses on"
        " pages it never saw:"
    )
    _show_sums(answered)


def _table_row(row: dict[str, Any]) -> dict[str, Any]:
    fields = {name: f"{f['right']}/{f['of']}" for name, f in row["fields"].items()}
    return {**row, **fields, "tokens": row["tokens_in"] + row["tokens_out"]}


def _show_sums(rows: list[dict[str, Any]]) -> None:
    """What the sites that were answered for have together."""
    for name in JUDGED_FIELDS:
        right, of = (sum(row["fields"][name][key] for row in rows) for key in ("right", "of"))
        if of:
            cli.show(
                f"  {name:<10} {right / of:6.1%}  of {of} pages (at least"
                f" {wilson_lower(right, of):.1%} with 95 % certainty)"
            )
    passed = sum(row["passed"] for row in rows)
    tokens, cost = sum(r["tokens_in"] + r["tokens_out"] for r in rows), sum(r["cost"] for r in rows)
    cli.show(
        f"  sets that passed the gate: {passed} of {len(rows)}; {tokens:,} tokens, cost {cost:.4f}"
        " by LLM_PRICE_IN/OUT"
    )
