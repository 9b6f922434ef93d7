"""What people do with selector sets: try, edit, approve. The commands and the web page
share these functions.

Nothing is approved on somebody's word: a set is run on the newest stored pages of its site
and validated first. Where fewer pages are stored than validation needs, that is
said, and a person may go on.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from newscrawler.crawl.page_context import context_of
from newscrawler.discovery.sites import Sites
from newscrawler.extraction.context import PageContext
from newscrawler.extraction.selectors import SelectorSet
from newscrawler.items import Kind, Link
from newscrawler.rawstore import RawNotFound, RawStore, RawStoreUnavailable
from newscrawler.selectorsets import schema, validation
from newscrawler.selectorsets.bylines import label_bylines
from newscrawler.selectorsets.propose import LEAST_PAGES, split
from newscrawler.selectorsets.samples import Sample, distinct, make_sample
from newscrawler.selectorsets.store import SAMPLE_PAGES, SelectorStore
from newscrawler.store.base import ArticleStore, Query, StoreError
from newscrawler.web import urls

MOST_PAGES = 2 * SAMPLE_PAGES

ContextOf = Callable[[str, datetime | None], PageContext]


@dataclass(frozen=True)
class Stored:
    """One stored page; the fields of rawstore.RawPage that are needed, and its
    reference ("" = a file)."""

    url: str
    body: bytes
    fetched: datetime
    ref: str = ""
    content_type: str | None = None


@dataclass
class Judged:
    """``report`` None: too few distinct article pages, ``note`` says how many."""

    report: validation.ValidationReport | None
    samples: list[Sample] = field(default_factory=list)
    note: str = ""

    @property
    def refused(self) -> bool:
        return self.report is not None and not self.report.passed

    def rows(self) -> list[dict[str, Any]]:
        """For a table: field, passed, coverage, agree, vary, reason."""
        if self.report is None:
            return []
        names = ("passed", "coverage", "agree", "vary", "reason")
        return [
            {"field": n, **{k: getattr(f, k) for k in names}} for n, f in self.report.fields.items()
        ]


class ValidationRefused(ValueError):
    """A set that would be used does not pass; the text says which field fails why."""

    def __init__(self, domain: str, judged: Judged) -> None:
        assert judged.report is not None
        wrong = {
            n: why
            for n, why in judged.report.failed.items()
            if n in validation.REQUIRED or why != "no selector"
        }
        faults = "; ".join(f"{name}: {reason}" for name, reason in wrong.items())
        super().__init__(
            f"{domain}: validation refuses it on {judged.report.pages} stored pages: {faults}"
        )
        self.judged = judged


# ---------------------------------------------------------------- stored pages
def context_by(sites: Sites) -> ContextOf:
    def context(url: str, fetched: datetime | None) -> PageContext:
        return context_of(sites.by_host(urls.domain_of(url)), fetched=fetched)

    return context


async def newest_pages(
    store: ArticleStore, raw: RawStore, domain: str, most: int = MOST_PAGES
) -> list[Stored]:
    """Raw pages of the site's newest articles, oldest first; those that are not on this
    machine are left out."""
    try:
        found = await store.search(Query(sites=(domain,), sort="date", size=min(100, 2 * most)))
    except StoreError:
        return []
    pages = []
    for hit in found.hits:
        ref = hit.article.raw_ref
        if not ref:
            continue
        try:
            page = await asyncio.to_thread(raw.read, ref)
        except (RawNotFound, RawStoreUnavailable):
            continue
        pages.append(Stored(page.url, page.body, page.fetched, ref, page.content_type))
        if len(pages) == most:
            break
    return pages[::-1]


def scanned_pages(raw: RawStore, sites: Sites, domain: str, most: int = MOST_PAGES) -> list[Stored]:
    """The same from the whole raw store, for sites whose articles are not in the article
    store. Reads every file."""
    found: dict[str, Stored] = {}
    for ref, page in raw.scan():
        host = urls.domain_of(page.url)
        site = sites.by_host(host)
        if host != domain and (site is None or site.id != domain):
            continue
        found.pop(page.url, None)  # the newest visit counts, and stands last
        found[page.url] = Stored(page.url, page.body, page.fetched, ref, page.content_type)
    articles = [page for page in found.values() if _is_article(sites, page.url)]
    return (articles or list(found.values()))[-most:]


def _is_article(sites: Sites, url: str) -> bool:
    """By the site's pattern or the heuristic on addresses; tag pages and the like are no
    evidence of a template."""
    link = sites.identify(url)
    return isinstance(link, Link) and link.kind is Kind.ARTICLE


# ---------------------------------------------------------------- validation, for people
def judge_pages(selectors: SelectorSet, pages: list[Stored], context_of: ContextOf) -> Judged:
    """Runs the set on the pages and judges it; blocking, some ms a page."""
    made = (make_sample(p.url, p.body, context_of(p.url, p.fetched), p.content_type) for p in pages)
    samples = label_bylines(distinct([s for s in made if s is not None]))
    if len(samples) < LEAST_PAGES:
        note = f"Validation needs {LEAST_PAGES} distinct article pages; these are {len(samples)}."
        return Judged(None, samples, note)
    # Nobody made the set from these pages: each is as unseen as the next.
    report = validation.judge(selectors, *split(samples))
    return Judged(report, samples)


async def approve(
    store: SelectorStore,
    domain: str,
    version: int | str | None,
    pages: list[Stored],
    context_of: ContextOf,
    *,
    who: str = "person",
    force: bool = False,
) -> tuple[str, Judged]:
    """Makes a version active when it passes validation. :raises ValidationRefused: it does not, and
    ``force`` is not given"""
    chosen = await store.version_to_approve(domain, version)
    selectors = schema.parse(await store.document(domain, chosen), domain)
    judged = await asyncio.to_thread(judge_pages, selectors, pages, context_of)
    if judged.refused and not force:
        raise ValidationRefused(domain, judged)
    return await store.approve(domain, chosen, who=who), judged


async def save_edit(
    store: SelectorStore,
    domain: str,
    text: str,
    pages: list[Stored],
    context_of: ContextOf,
    *,
    who: str = "person",
    force: bool = False,
) -> tuple[int, Judged]:
    """A person's document as a new version, which is not used before it is approved.

    :raises schema.SetError: it is not valid; the text names the field
    :raises ValidationRefused: it does not pass on the stored pages, and ``force`` is not given
    """
    doc = schema.from_json(text, domain, "(the whole document)")
    if not isinstance(doc, dict):
        raise schema.SetError(
            domain, "(the whole document)", f"must be an object, is {type(doc).__name__}"
        )
    if doc.get("domain", domain) != domain:
        raise schema.SetError(domain, "domain", f"must be {domain!r}, is {doc['domain']!r}")
    parent = doc.get("version")
    before = doc.get("provenance")
    kept = (
        {k: v for k, v in before.items() if k in ("source", "confidence", "notes")}
        if isinstance(before, dict)
        else {}
    )
    if isinstance(parent, int):  # what was generated is said by that version
        kept["source"] = f"edited from version {parent}"
    provenance = {**kept, "made_by": "person", "edited_by": who, "parent": parent, "edited": _now()}
    doc = {**doc, "domain": domain, "version": 1, "state": "candidate", "provenance": provenance}
    selectors = schema.parse(doc, domain)
    judged = await asyncio.to_thread(judge_pages, selectors, pages, context_of)
    if judged.refused and not force:
        raise ValidationRefused(domain, judged)
    if judged.report is not None:
        doc["provenance"]["metrics"] = judged.report.metrics()
    return await store.add_version(domain, doc, who=who), judged


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def described(doc: dict[str, Any]) -> list[str]:
    """A set for people: its selectors, where it comes from, what validation found; a line each."""
    out: list[str] = []
    out.append(f"{doc['domain']} version {doc['version']} ({doc['state']})")
    for variant in doc["variants"]:
        out += _variant_told(variant)
    provenance = dict(doc["provenance"])
    metrics = provenance.pop("metrics", {})
    compared = provenance.pop("compared", {})
    out += [f"  {name}: {provenance_told(name, value)}" for name, value in provenance.items()]
    if fields := metrics.get("fields"):
        out.append(
            f"  validation over {metrics.get('pages')} pages,"
            f" {metrics.get('held_out')} of them held out:"
        )
        for name, row in fields.items():
            verdict = "passed" if row["passed"] else "left to the page's own statements"
            shares = f"found {_share(row['coverage'])} agrees {_share(row['agree'])}"
            reason = f": {row['reason']}" if row["reason"] else ""
            out.append(f"    {name:<10} {shares}  {verdict}{reason}")
    if compared:
        out.append(
            f"  compared with the set before on {compared.get('pages')} pages:"
            f" {compared.get('reason')}"
        )
    return out


def _variant_told(variant: dict[str, Any]) -> list[str]:
    when = f", only where {variant['when']}" if variant.get("when") else ""
    out = [f"  template {variant.get('template', 'article')}{when}"]
    for name, value in variant["fields"].items():
        if name == "content":
            out.append(f"    content    {' | '.join(value['root'])}")
            out += [f"      without  {css}" for css in value.get("exclude", [])]
            repeats = value.get("repeats", [])
            out += [f"      without  paragraphs that begin {line!r}" for line in repeats]
        else:
            out.append(f"    {name:<10} {' | '.join(map(_candidate, value))}")
    return out


def provenance_told(name: str, value: Any) -> str:
    """A row of provenance in words. Digests of pages are counted: the document has them."""
    if name in ("samples", "held_out"):
        return f"{len(value)} stored pages"
    if isinstance(value, dict):
        return ", ".join(f"{k} {v}" for k, v in value.items())
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _share(value: float | None) -> str:
    return "   -" if value is None else f"{value:4.0%}"


def _candidate(candidate: dict[str, Any] | str) -> str:
    if isinstance(candidate, str):
        return candidate
    css = candidate.get("css") or ""
    if candidate.get("kind", "css") != "css":
        return f"({candidate['kind']}) {css}".strip()
    behind = f" behind {candidate['label']!r}" if candidate.get("label") else ""
    return css + (f"@{candidate['attr']}" if candidate.get("attr") else "") + behind
