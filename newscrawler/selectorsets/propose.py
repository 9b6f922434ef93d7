"""A set for given pages: rules first, a model for the fields that rules fail, validation in
between. No state but budgets."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from newscrawler.extraction.safe_css import SelectorError
from newscrawler.extraction.selectors import MAX_VARIANTS, SelectorSet
from newscrawler.selectorsets import induction, keys, model_prompt, templates, validation
from newscrawler.selectorsets.bylines import label_bylines
from newscrawler.selectorsets.candidate_runs import read_all
from newscrawler.selectorsets.content import repeats_of
from newscrawler.selectorsets.jobs import BudgetSpent, Jobs
from newscrawler.selectorsets.samples import Sample
from newscrawler.selectorsets.validation import NOT_GIVEN
from newscrawler.web import urls

#: Fewer article pages than this say too little of a template.
LEAST_PAGES = 6
#: Of the pages, those of templates that get a variant at once; with fewer, and more templates to
#: come, more are asked for.
LEAST_COVERED = 0.7
REFINEMENTS = 2
#: How often a question is cut shorter after a server took none so long.
MOST_CUTS = 2
ANSWER_KEPT_S = 7 * 86_400
#: A refusal or nonsense is remembered too, for less long: models are exchanged.
FAILURE_KEPT_S = 86_400
MODE_KEPT_S = 86_400
#: What is asked of a model beyond title and content only where the pages have it.
_OPTIONAL = ("published", "authors")
WANTED = ("title", "published", "authors", "content")


@dataclass
class Spent:
    """The model's part of one generation; the fields of newscrawler.llm.Usage,
    which it is handed as."""

    attempts: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    unread: int = 0


@dataclass
class Result:
    """``state``: probation | active | kept | approval (an admin is asked) | failed | await_admin |
    waiting (too few pages) | skipped."""

    domain: str
    state: str
    reason: str = ""
    version: int | None = None
    made_by: str = ""
    report: validation.ValidationReport | None = None
    doc: dict[str, Any] | None = None
    spent: Spent = field(default_factory=Spent)
    more: int = 0  # samples that would help, 0 = no number would
    promoted: bool = False  # from shadow, by the second opinion
    # The model was not reached, or the budget forbade the question: nothing is known of it.
    unanswered: bool = False


class Proposer:
    """``mode``: rules_then_llm | llm | rules. Without a configured model rules work alone."""

    def __init__(
        self,
        jobs: Jobs,
        llm: model_prompt.Model | None,
        mode: str,
        max_input_chars: int,
        *,
        cached: bool = True,
    ) -> None:
        """``cached`` False: the model is asked again about pages that it was asked
        about, for measurements."""
        self.jobs = jobs
        self._cached = cached
        self.mode = mode
        self._llm = llm if llm is not None and llm.configured else None
        self._max_input_chars = max_input_chars

    async def propose(self, domain: str, samples: list[Sample]) -> Result:
        """The best set for these pages in ``result.doc``; None there when nothing
        passed validation."""
        samples = await asyncio.to_thread(label_bylines, samples)
        parts = await asyncio.to_thread(templates.groups, samples)
        if len(parts) > 1:
            samples, parts = await asyncio.to_thread(_labelled_apart, samples, parts)
        found: Result | None = None
        large = sum(len(part) >= LEAST_PAGES for part in parts)
        if large > 1:  # else a united set, if there is one, has to do
            found = await self._by_template(domain, parts, samples)
            if found.doc is not None:
                return found
        whole = Result(domain, "failed")
        by_rule = await self._by_rules(whole, samples)
        if whole.doc is None and len(parts) > 1:
            found = found or await self._by_template(domain, parts, samples)
            if found.doc is not None or found.more:
                return found
        await self._fill_in(whole, by_rule, samples)
        if whole.doc is None:
            whole.reason = whole.reason or why(whole.report)
        else:
            _tell_tokens(whole)
        return whole

    # ------------------------------------------------------------ one template
    async def _by_rules(self, result: Result, samples: list[Sample]) -> dict[str, Any]:
        """The fields that rules found, whether they pass or not; none in mode llm."""
        if self.mode == "llm":
            return {}
        induce, held_out = split(samples)
        induced = await asyncio.to_thread(induction.induce, induce)
        result.made_by = "rule"
        await self._try(result, induced.fields, induce, held_out, None)
        return induced.fields

    async def _fill_in(
        self, result: Result, by_rule: dict[str, Any], samples: list[Sample]
    ) -> None:
        """Asks the model for what rules failed, or for all in mode llm."""
        wanted = [n for n in WANTED if n in self._failing(result, samples)]
        if not wanted or self.mode == "rules":
            return
        if self._llm is None:
            if self.mode == "llm":
                result.reason = (
                    "SELECTOR_GENERATION=llm, but no model is configured (LLM_BASE_URL, LLM_MODEL)"
                )
            return
        induce, held_out = split(samples)
        await self._ask_model(result, by_rule, wanted, induce, held_out)

    @staticmethod
    def _failing(result: Result, samples: list[Sample]) -> set[str]:
        """Fields that need another proposer: those that fail and that at least half of the
        pages seem to have."""
        failed = set(result.report.failed) if result.report else set(WANTED)
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
        """Judges ``fields``; on a pass the set is in ``result.doc``, without the optional
        fields that failed."""
        lacking = [name for name in validation.REQUIRED if not fields.get(name)]
        if lacking:
            result.reason = f"no selector for {' and '.join(lacking)}"
            result.report = _not_found(fields, len(induce), len(held_out))
            return
        try:
            selectors = SelectorSet.from_dict(
                _document(result, [_variant(fields)], induce, held_out, extra)
            )
        except SelectorError as exc:
            result.reason = str(exc)
            return
        repeats = await asyncio.to_thread(repeats_of, selectors, induce)
        if repeats:
            fields = {**fields, "content": {**fields["content"], "repeats": repeats}}
            selectors = SelectorSet.from_dict(
                _document(result, [_variant(fields)], induce, held_out, extra)
            )
        report = await asyncio.to_thread(validation.judge, selectors, induce, held_out)
        result.report = report
        if not report.passed:
            result.reason = why(report)
            return
        # The page's metadata serve what is left out.
        kept = {name: found for name, found in fields.items() if name not in report.failed}
        result.doc = _document(result, [_variant(kept)], induce, held_out, extra)
        result.doc["provenance"]["metrics"] = report.metrics()
        result.reason = ""

    # ------------------------------------------------------------ several templates
    async def _by_template(
        self, domain: str, parts: list[list[Sample]], samples: list[Sample]
    ) -> Result:
        """One variant per template that has enough pages and passes; ``more`` when further pages
        might give another."""
        out = Result(domain, "failed", reason=f"{len(parts)} templates on {len(samples)} pages")
        done: list[tuple[list[Sample], Result]] = []
        for part in parts[:MAX_VARIANTS]:
            if len(part) < LEAST_PAGES:
                continue
            one = Result(domain, "failed", spent=out.spent)
            await self._fill_in(one, await self._by_rules(one, part), part)
            out.unanswered |= one.unanswered
            if one.doc is not None:
                done.append((part, one))
        has_small = any(3 <= len(part) < LEAST_PAGES for part in parts)
        if has_small and len(samples) < 3 * LEAST_PAGES * len(parts[:2]):
            # A template of which three pages came by has more: better one set for both than
            # two generations.
            out.more = max(2 * len(samples), 24)
        covered = sum(len(part) for part, _ in done)
        if not done:
            out.reason += "; none of them alone has enough pages"
        elif out.more and covered < LEAST_COVERED * len(samples):
            out.reason += "; too many pages in small ones"
        else:
            await self._join(out, done, samples)
        return out

    async def _join(
        self, out: Result, done: list[tuple[list[Sample], Result]], samples: list[Sample]
    ) -> None:
        """One set of the variants of several templates, judged as a whole."""
        variants, metrics = [], {}
        for number, (part, one) in enumerate(done):
            assert one.doc is not None
            others = [s for s in samples if s not in part]
            mark = await asyncio.to_thread(templates.mark_of, part, others, _needed(one.doc))
            name = f"article-{number + 1}" if number else "article"
            variants.append(_named_variant(name, mark, one.doc))
            metrics[name] = one.doc["provenance"]["metrics"]
        by_model = [one.doc for _, one in done if one.made_by == "llm"]
        out.made_by = "llm" if by_model else "rule"
        halves = [split(part) for part, _ in done]
        induce = list(chain.from_iterable(induced for induced, _ in halves))
        held_out = list(chain.from_iterable(unseen for _, unseen in halves))
        extra = _extra(next(iter(by_model), None))
        doc = _document(out, variants, induce, held_out, extra)
        selectors = SelectorSet.from_dict(doc)
        out.report = await asyncio.to_thread(validation.judge, selectors, induce, held_out)
        used = list(chain.from_iterable(part for part, _ in done))
        strangers = [s for s in samples if s not in used]
        intruding = await asyncio.to_thread(_intrudes, selectors, strangers)
        if not out.report.passed or intruding:
            out.reason = why(out.report) or f"it reads {intruding} pages of other templates wrongly"
            return
        doc["provenance"]["metrics"] = {
            **out.report.metrics(),
            "templates": metrics,
            "pages_of_none": len(strangers),
        }
        out.doc, out.more, out.reason = doc, 0, ""
        _tell_tokens(out)

    # ------------------------------------------------------------ the model
    async def _ask_model(
        self,
        result: Result,
        by_rule: dict[str, Any],
        wanted: list[str],
        induce: list[Sample],
        held_out: list[Sample],
    ) -> None:
        """Up to 1 + REFINEMENTS questions. Any trouble leaves the rules'
        result, with the reason noted."""
        assert self._llm is not None
        note = ""
        for turn in range(1 + REFINEMENTS):
            try:
                answer, digest = await self._asked(induce, wanted, note, turn, result)
            except Exception as exc:
                # LLMError and BudgetSpent: the crawl goes on with what rules gave.
                result.reason = f"{type(exc).__name__}: {exc}"
                if not _is_expected(exc):
                    raise
                result.unanswered = getattr(exc, "kind", "") not in ("refused", "unusable")
                return
            proposed, invalid = model_prompt.to_fields(answer)
            fields = {**by_rule, **{n: proposed[n] for n in wanted if n in proposed}}
            attempt = Result(result.domain, "failed", made_by="llm")
            extra = {
                "model": self._llm.model,
                "server": urls.domain_of(self._llm.base_url),
                "digest": digest,
                "prompt_version": model_prompt.PROMPT_VERSION,
                "answer": json.dumps(answer, ensure_ascii=False)[:4000],
            }
            await self._try(attempt, fields, induce, held_out, extra)
            result.report = attempt.report
            failed = set(wanted) & set(attempt.report.failed if attempt.report else ())
            if attempt.doc is not None and (result.doc is None or not failed):
                result.doc, result.made_by, result.reason = attempt.doc, "llm", ""
            if attempt.report is None or not failed:
                return
            result.reason = attempt.reason
            note = "\n\n" + model_prompt.refinement(answer, attempt.report, invalid)

    async def _asked(
        self, induce: list[Sample], wanted: list[str], note: str, turn: int, result: Result
    ) -> tuple[dict[str, Any], str]:
        """The answer, and the digest of the pages that were shown: fewer, or more of them cut away,
        when the server says that its model takes no question so long."""
        assert self._llm is not None
        system = model_prompt.system_prompt()
        for cut in range(1 + MOST_CUTS):
            most = self._max_input_chars
            if self._llm.most_chars is not None:
                most = max(1, min(most, self._llm.most_chars - len(system) - len(note)))
            prompt, digest = await asyncio.to_thread(model_prompt.question, induce, wanted, most)
            try:
                told = f"{digest}-{turn}" if turn else digest
                return await self._answer(prompt + note, told, result), digest
            except Exception as exc:
                if getattr(exc, "kind", "") != "too_long" or cut == MOST_CUTS:
                    raise
        raise AssertionError("unreachable")

    async def _answer(self, prompt: str, digest: str, result: Result) -> dict[str, Any]:
        """The model's answer, from the cache when the same pages were asked about in the last week.

        :raises LLMError, BudgetSpent: also from the cache, for a refusal or
            nonsense of the last day
        """
        assert self._llm is not None
        return await cached_answer(
            self.jobs,
            self._llm,
            result.domain,
            digest,
            (
                model_prompt.system_prompt(),
                prompt,
                model_prompt.ANSWER_SCHEMA,
                model_prompt.MAX_TOKENS,
            ),
            result.spent,
            cached=self._cached,
        )


async def cached_answer(
    jobs: Jobs,
    llm: model_prompt.Model,
    domain: str,
    digest: str,
    question: tuple[str, str, dict[str, Any], int],
    spent: Spent,
    *,
    cached: bool = True,
) -> dict[str, Any]:
    """One question to the model under the fleet's budget; ``question``: system, user, schema, most
    tokens of the answer.

    :raises KnownFailure: an answer about the same pages was of no use before
    """
    client = jobs.client
    key = keys.answer(f"{llm.model}:{digest}")
    if cached and (before_now := await client.get(key)):
        found = dict(json.loads(before_now))
        if "error" in found and "kind" in found:
            raise KnownFailure(
                str(found["kind"]), f"{found['error']} (said before about the same pages)"
            )
        return found
    reserved: list[tuple[int, int]] = []

    async def reserve(tokens_in: int, tokens_out: int) -> None:
        await jobs.reserve(domain, tokens_in, tokens_out)
        reserved.append((tokens_in, tokens_out))

    mode_key = keys.answer_mode(llm.base_url, llm.model)
    if known := await client.get(mode_key):
        llm.start_from(keys.text(known))
    before, system, user, schema, most = llm.mode, *question
    tokens, unread = (spent.tokens_in, spent.tokens_out), spent.unread
    try:
        answer = await llm.ask(system, user, schema, max_tokens=most, reserve=reserve, usage=spent)
    except Exception as exc:
        kind = getattr(exc, "kind", "")
        if kind in ("refused", "unusable"):
            failure = json.dumps({"kind": kind, "error": str(exc)[:500]})
            await client.set(key, failure, ex=FAILURE_KEPT_S)
        raise
    finally:
        for refused in reserved[: spent.unread - unread]:  # all of one question are alike
            await jobs.give_back(domain, refused)
        if len(reserved) > spent.unread - unread:
            await jobs.settle(
                domain, reserved[-1], (spent.tokens_in - tokens[0], spent.tokens_out - tokens[1])
            )
        if llm.mode != before:
            await client.set(mode_key, llm.mode, ex=MODE_KEPT_S)
    await client.set(key, json.dumps(answer.data, ensure_ascii=False), ex=ANSWER_KEPT_S)
    return dict(answer.data)


class KnownFailure(Exception):
    """What a model already answered about the same pages was of no use. ``kind`` as
    newscrawler.llm.LLMError's."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


def split(samples: list[Sample]) -> tuple[list[Sample], list[Sample]]:
    """Every third page is held out: 12 pages -> 8 and 4."""
    held_out = samples[2::3]
    return [sample for i, sample in enumerate(samples) if i % 3 != 2], held_out


def _labelled_apart(
    samples: list[Sample], parts: list[list[Sample]]
) -> tuple[list[Sample], list[list[Sample]]]:
    """Names by template: the place of one template's byline is no place on most
    pages of the site."""
    apart = [label_bylines(part) for part in parts]
    fresh = {
        id(s): n
        for part, named in zip(parts, apart, strict=True)
        for s, n in zip(part, named, strict=True)
    }
    return [fresh[id(s)] for s in samples], apart


def why(report: validation.ValidationReport | None) -> str:
    if report is None:
        return "nothing was proposed"
    return "; ".join(f"{name}: {reason}" for name, reason in report.failed.items())


def _not_found(fields: dict[str, Any], pages: int, held_out: int) -> validation.ValidationReport:
    """The report of a set that lacks a required field: nothing was executed."""
    lacking = [name for name in WANTED if not fields.get(name)]
    empty = {name: validation.FieldReport(False, 0.0, None, 0.0, NOT_GIVEN) for name in lacking}
    return validation.ValidationReport(False, empty, pages, held_out)


def _variant(fields: dict[str, Any]) -> dict[str, Any]:
    return {"template": "article", "fields": fields}


def _named_variant(name: str, mark: str | None, doc: dict[str, Any]) -> dict[str, Any]:
    """The only variant of ``doc`` under another name, for pages that have the mark."""
    variant: dict[str, Any] = {"template": name}
    if mark:
        variant["when"] = mark
    return {**variant, "fields": doc["variants"][0]["fields"]}


def _needed(doc: dict[str, Any]) -> list[str]:
    """The selectors without which the only variant of ``doc`` reads nothing."""
    fields = doc["variants"][0]["fields"]
    titles = [c["css"] for c in fields["title"] if c.get("kind", "css") == "css"]
    return [*(part.strip() for part in fields["content"]["root"][0].split(",")), *titles]


def _extra(doc: dict[str, Any] | None) -> dict[str, Any]:
    """What the provenance says of the model."""
    if doc is None:
        return {}
    names = ("model", "server", "digest", "prompt_version", "answer")
    return {k: v for k, v in doc["provenance"].items() if k in names}


def _document(
    result: Result,
    variants: list[dict[str, Any]],
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
        "variants": variants,
        "provenance": provenance,
    }


def _tell_tokens(result: Result) -> None:
    assert result.doc is not None
    result.doc["provenance"]["tokens"] = {
        "in": result.spent.tokens_in,
        "out": result.spent.tokens_out,
        "calls": result.spent.attempts,
    }


def _intrudes(selectors: SelectorSet, strangers: list[Sample]) -> int:
    """Pages of no variant's template from which the set takes a text that is not theirs."""
    wrong = 0
    for sample in strangers:
        found = read_all(sample, selectors)
        if "content" in found and "title" in found:
            wrong += not validation.value_agrees(
                "content", found["content"].value, sample.labels.content
            )
    return wrong


def _is_expected(exc: Exception) -> bool:
    """LLMError has a ``kind``; it is not imported here, as services do not import one another."""
    return isinstance(exc, BudgetSpent) or hasattr(exc, "kind")
