"""A site's life on semi-synthetic pages: samples, generation by rules, shadow, and what is
stored afterwards."""

from __future__ import annotations

import asyncio
import json
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from newscrawler.extraction.context import PageContext
from newscrawler.extraction.document import Document
from newscrawler.extraction.extract import Extraction, extract
from newscrawler.extraction.selectors import SelectorSet, apply
from newscrawler.items import Article
from newscrawler.selectorsets import tie_break
from newscrawler.selectorsets.compare import compare
from newscrawler.selectorsets.generate import keep_what_fits
from newscrawler.selectorsets.jobs import Jobs, ModelBudget
from newscrawler.selectorsets.propose import Proposer
from newscrawler.selectorsets.samples import Sample, distinct, f1, make_sample, norm, words
from newscrawler.selectorsets.store import SAMPLE_PAGES, SHADOW_BOUND, SHADOW_PAGES, wilson_lower
from newscrawler.selectorsets.validation import agrees_with
from tests.semisynthetic.structure import Filled, Structure, Truth, Unfit
from tests.semisynthetic.texts import Texts

FIELDS = ("title", "published", "authors", "content")
NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
NAMELESS = 0.08


class Site:
    """Pages of one structure, a new story each. ``seed`` makes them repeatable."""

    def __init__(self, structure: Structure, texts: Texts, seed: int = 1) -> None:
        self.structure, self.texts = structure, texts
        self._rng = random.Random(f"{structure.id}-{seed}")

    def page(self) -> Filled:
        rng = self._rng
        story = self.texts.story(rng, len(self.structure.authors))
        return self.structure.fill(story, None, rng, self.texts, nameless=rng.random() < NAMELESS)

    def context(self) -> PageContext:
        return PageContext(language=self.structure.lang, fetched=NOW, url_is_article=True)


@dataclass
class Life:
    """``state``: active | failed (no set passed the gate) | differed (shadow).
    ``pages`` until then."""

    id: str
    site: str
    state: str
    pages: int
    reason: str = ""
    right: Counter[str] = field(default_factory=Counter)
    misread: Counter[str] = field(
        default_factory=Counter
    )  # wrong, and by a selector: not left to the generic chain
    fresh: int = 0
    wrong: list[str] = field(default_factory=list)
    doc: dict[str, object] | None = None

    @property
    def good(self) -> bool:
        return self.state == "active" and all(self.right[n] >= 0.99 * self.fresh for n in FIELDS)

    @property
    def silently_wrong(self) -> bool:
        """By its own selectors, on more than 1 % of the pages."""
        return self.state == "active" and any(n > 0.01 * self.fresh for n in self.misread.values())


def structures(
    folder: Path, most: int | None = None, every: int = 1
) -> Iterator[tuple[Structure, Texts]]:
    """Of the stored pages with a whole gold row, one per site and shape where possible."""
    gold = [json.loads(line) for line in (folder / "gold.jsonl").read_text("utf-8").splitlines()]
    whole = [r for r in gold if all(r.get(n) for n in FIELDS)]
    found = 0
    for row in whole[::every]:
        try:
            structure = Structure(row, folder)
        except Unfit:
            continue
        yield structure, Texts(gold, structure.lang, structure.site)
        found += 1
        if found == most:
            return


def _differing(found: str, wanted: str) -> str:
    """The first paragraphs that only one of the two has, cut short."""
    ours, theirs = found.split("\n\n"), wanted.split("\n\n")
    lines = [f"+{p[:60]!r}" for p in ours if p not in theirs] + [
        f"-{p[:60]!r}" for p in theirs if p not in ours
    ]
    return " ".join(lines[:6])


def wrong_fields(found: Extraction, truth: Truth) -> dict[str, str]:
    """Field -> "found | truth" of what is not as the page was made."""
    wrong = {}
    if norm(found.title.value or "") != norm(truth.title):
        wrong["title"] = f"{found.title.value} | {truth.title}"
    share = f1(Counter(words(found.content.value or "")), Counter(words(truth.content)))
    if share < 0.97:
        wrong["content"] = (
            f"{share:.3f} {found.content.origin} {_differing(found.content.value or '', truth.content)}"
        )
    if {norm(a) for a in found.authors.value or []} != {norm(a) for a in truth.authors}:
        wrong["authors"] = f"{found.authors.value} ({found.authors.origin}) | {truth.authors}"
    if not _same_time(found, truth):
        wrong["published"] = (
            f"{found.published.value} ({found.published.origin}) | {truth.published}"
        )
    return wrong


def _same_time(found: Extraction, truth: Truth) -> bool:
    when = found.published.value
    if not isinstance(when, datetime):
        return False
    told = truth.published if truth.published.tzinfo else truth.published.replace(tzinfo=UTC)
    if abs(when - told) < timedelta(seconds=61):
        return True
    # A page that shows a day, or a time without a zone, cannot be known better than that.
    if found.published_day_only or not (told.hour or told.minute):
        return abs(when.date() - told.date()) <= timedelta(days=1)
    away = abs((when - told).total_seconds())
    return found.published_zone_assumed and away <= 14 * 3600 and away % 1800 < 61


def live(site: Site, fresh: int = 25) -> Life:
    structure = site.structure
    life = Life(structure.id, structure.site, "failed", 0)
    proposer = Proposer(Jobs(None, ModelBudget()), None, "rules", 0)
    samples: list[Sample] = []
    want = SAMPLE_PAGES
    selectors: SelectorSet | None = None
    for _ in range(3):
        while life.pages < want:
            page = site.page()
            life.pages += 1
            sample = make_sample(page.truth.url, page.body, site.context())
            if sample is not None:
                samples.append(sample)
        samples = distinct(samples)
        if len(samples) < 6:
            life.reason = f"{len(samples)} of {life.pages} pages are articles"
            return life
        result = asyncio.run(proposer.propose(structure.site, samples))
        life.reason = result.reason
        if result.doc is not None:
            selectors = SelectorSet.from_dict(result.doc)
            life.doc = result.doc
            break
        want += SAMPLE_PAGES
    if selectors is None:
        return life
    life.state = _shadow(site, selectors, life)
    if life.state == "active" and life.doc is not None:
        _measure(site, SelectorSet.from_dict(life.doc), life, fresh)
    return life


def _shadow(site: Site, selectors: SelectorSet, life: Life) -> str:
    structure = site.structure
    good = seen = 0
    stored_pages: list[Sample] = []
    while seen < 2 * SHADOW_PAGES:
        page = site.page()
        life.pages += 1
        doc, context = Document(page.body, page.truth.url), site.context()
        found = extract(doc, context)
        if not found.is_article:
            continue
        stored = {name: getattr(found, name).value for name in FIELDS}
        article = Article(
            id="x", url=page.truth.url, site=structure.site, discovered=NOW, fetched=NOW, **stored
        )
        good, seen = good + agrees_with(article, apply(doc, selectors, context)), seen + 1
        sample = make_sample(page.truth.url, page.body, context)
        stored_pages += [sample] if sample is not None else []
        if seen >= SHADOW_PAGES and wilson_lower(good, seen) >= SHADOW_BOUND:
            return "active"
        if seen % SHADOW_PAGES == 0:
            judged = distinct(stored_pages)
            opinion = tie_break.opinion(selectors, judged)
            life.reason = f"{good} of {seen} pages agreed; {opinion.fault or 'all together say that the set is right'}"
            if not opinion.fault:
                if opinion.unread:
                    _widened(site, selectors, judged, life)
                return "active"
    return "differed"


def _widened(site: Site, known: SelectorSet, samples: list[Sample], life: Life) -> None:
    """As Generator._widened: other templates, if their pages are enough and the wider set
    is better on all of them."""
    life.reason += f"; {len(samples)} pages, some of other templates"
    result = asyncio.run(
        Proposer(Jobs(None, ModelBudget()), None, "rules", 0).propose(site.structure.site, samples)
    )
    if result.doc is None:
        return
    keep_what_fits(result.doc, known, samples)
    verdict = compare(SelectorSet.from_dict(result.doc), known, samples)
    if verdict.better:
        life.doc = result.doc
        life.reason += f"; wider: {verdict.reason}"


def _measure(site: Site, selectors: SelectorSet, life: Life, fresh: int) -> None:
    life.fresh = fresh
    for _ in range(fresh):
        page = site.page()
        found = extract(Document(page.body, page.truth.url), site.context(), selectors)
        wrong = wrong_fields(found, page.truth)
        life.right.update(n for n in FIELDS if n not in wrong)
        life.misread.update(n for n in wrong if getattr(found, n).origin.startswith("selector:"))
        life.wrong += [f"{n}: {what}" for n, what in wrong.items()]
