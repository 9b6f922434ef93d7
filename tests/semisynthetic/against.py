"""python -m tests.semisynthetic.against: are the sets that rules make ever worse than no set?

Per site: a set of the first article pages as in a crawl; then fresh pages, of which the truth is
known, each read with the set and without one. A field of a site is worse (better) where the set is
wrong on more (fewer) of its pages than the generic chain. "Beyond noise": so many more that a
fair coin gives it less than one time in twenty.

Sites are drawn by seed: structures of stored real pages (life.py), each with a trouble, and
templates of the simulated web, whose signatures and addresses are drawn as well (unknown.py).
"""

from __future__ import annotations

import argparse
import asyncio
import html
import json
import math
import random
import re
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Protocol

import lxml.html

from newscrawler.extraction.context import PageContext
from newscrawler.extraction.document import Document
from newscrawler.extraction.extract import extract
from newscrawler.extraction.selectors import SelectorSet, apply
from newscrawler.items import Article
from newscrawler.selectorsets import tie_break
from newscrawler.selectorsets.jobs import Jobs, ModelBudget
from newscrawler.selectorsets.propose import Proposer
from newscrawler.selectorsets.samples import distinct, make_sample
from newscrawler.selectorsets.store import SAMPLE_PAGES, SHADOW_BOUND, SHADOW_PAGES, wilson_lower
from newscrawler.selectorsets.validation import agrees_with
from tests.newsweb.render import Frame, article_page
from tests.newsweb.templates import TEMPLATES
from tests.newsweb.unknown import drawn
from tests.newsweb.world import SimClock, WebSite, World
from tests.semisynthetic.awkward import Awkward, _paragraph, _written
from tests.semisynthetic.life import FIELDS, structures, wrong_fields
from tests.semisynthetic.structure import Filled, Truth
from tests.semisynthetic.texts import Texts

#: Chance of a fair coin below which a difference is no noise.
NOISE = 0.05


class Pages(Protocol):
    """What is measured: fresh pages without end, and what a crawl knows of the last one."""

    def page(self) -> Filled: ...

    def context(self) -> PageContext: ...


# ---------------------------------------------------------------- troubles
def header_clock(made: Filled, rng: random.Random, texts: Texts) -> Filled:
    """The day on which the page was fetched, in the header of every page; articles are of today."""
    tree = lxml.html.document_fromstring(made.body.decode())
    clock = f'<div class="date-time">{fetched_at(made.truth):%d/%m/%Y}</div>'
    tree.body.insert(0, lxml.html.fragment_fromstring(clock))
    return replace(made, body=_written(tree))


def paper_as_author(made: Filled, rng: random.Random, texts: Texts) -> Filled:
    """Metadata state the newspaper; who wrote it stands below the text, and nowhere else."""
    if not made.truth.authors:
        return made
    tree = lxml.html.document_fromstring(made.body.decode())
    paper = "The Morning Paper"
    for node in tree.iter():
        if not isinstance(node.tag, str):
            continue
        for name in made.truth.authors:
            for key, value in list(node.attrib.items()):
                if name in value:
                    node.set(key, value.replace(name, paper))
            if node.text and name in node.text:
                node.text = node.text.replace(name, paper if node.tag == "script" else "")
            if node.tail and name in node.tail:
                node.tail = node.tail.replace(name, "")
    last = _paragraph(tree, made.truth.content.split("\n\n")[-1])
    if last is None:
        return made
    names = html.escape(", ".join(made.truth.authors))
    last.addnext(lxml.html.fragment_fromstring(f'<p class="writer"><strong>{names}</strong></p>'))
    return replace(made, body=_written(tree))


_REFRAIN = "As this paper reported earlier, the council had put the decision off until the autumn."


def sentence_of_many(made: Filled, rng: random.Random, texts: Texts) -> Filled:
    """A running story: three articles of five say the same sentence, each somewhere in its text."""
    if rng.random() > 0.6:
        return made
    tree = lxml.html.document_fromstring(made.body.decode())
    paragraphs = made.truth.content.split("\n\n")
    at = rng.randrange(1, max(2, len(paragraphs) - 1))
    node = _paragraph(tree, paragraphs[at])
    if node is None or node.tag not in ("p", "div"):
        return made
    more = lxml.html.fragment_fromstring(f"<{node.tag}>{_REFRAIN}</{node.tag}>")
    for key, value in node.attrib.items():
        more.set(key, value)
    node.addnext(more)
    paragraphs.insert(at + 1, _REFRAIN)
    return replace(
        made, body=_written(tree), truth=replace(made.truth, content="\n\n".join(paragraphs))
    )


def note_at_end(made: Filled, rng: random.Random, texts: Texts) -> Filled:
    """A call to subscribe that ends three articles of four; no article's text."""
    if rng.random() > 0.75:
        return made
    tree = lxml.html.document_fromstring(made.body.decode())
    last = _paragraph(tree, made.truth.content.split("\n\n")[-1])
    if last is None or last.tag not in ("p", "div"):
        return made
    more = lxml.html.fragment_fromstring(
        f"<{last.tag}>Sign up here to have the stories of the week sent to you.</{last.tag}>"
    )
    for key, value in last.attrib.items():
        more.set(key, value)
    last.addnext(more)
    return replace(made, body=_written(tree))


def half_hidden(made: Filled, rng: random.Random, texts: Texts) -> Filled:
    """On every second page the text is cut in two by a box, each half in an element of its own."""
    if rng.random() > 0.5:
        return made
    tree = lxml.html.document_fromstring(made.body.decode())
    paragraphs = made.truth.content.split("\n\n")
    middle = _paragraph(tree, paragraphs[len(paragraphs) // 2])
    if middle is None or middle.getparent() is None:
        return made
    above = middle.getparent()
    rest = [middle, *middle.itersiblings()]
    offer = lxml.html.fragment_fromstring(
        '<div class="promo-slot"><p>Our shop has the book of the year. Order it now for only ten'
        " euros, with free delivery to your door until the end of the month.</p></div>"
    )
    second = lxml.html.fragment_fromstring('<section class="text-part"></section>')
    middle.addprevious(offer)
    for node in rest:
        second.append(node)
    above.append(second)
    return replace(made, body=_written(tree))


TROUBLES = {
    "none": None,
    "clock": header_clock,
    "paper": paper_as_author,
    "refrain": sentence_of_many,
    "note": note_at_end,
    "halves": half_hidden,
}


def fetched_at(truth: Truth) -> datetime:
    """A crawl fetches what came out some hours ago."""
    when = truth.published if truth.published.tzinfo else truth.published.replace(tzinfo=UTC)
    return when + timedelta(hours=2, minutes=len(truth.title))


class Troubled(Awkward):
    """Pages of one structure with one trouble, fetched some hours after they came out."""

    last: Filled | None = None

    def page(self) -> Filled:
        self.last = super().page()
        return self.last

    def context(self) -> PageContext:
        assert self.last is not None
        return replace(super().context(), fetched=fetched_at(self.last.truth))


class WebPages:
    """Articles of one template of the simulated web, signed and addressed as drawn."""

    def __init__(self, key: str, number: int, seed: int) -> None:
        self.world = World(seed, SimClock())
        unknown = drawn(seed, key, number)
        own = unknown.template(TEMPLATES[key])
        self.site = self.world.add_site(
            WebSite(self.world, key, key, own, "http", key, list(unknown.sections))
        )
        self.name = f"{key}{' signed at the end' if unknown.signature else ''}"
        self.now = self.world.clock.now()
        count = 140
        self._stories = [
            self.world.new_story(self.site, self.now - 1800.0 * (i + 1)) for i in range(count)
        ]
        self._frame, self._next = Frame(self.site), 0

    def page(self) -> Filled:
        index = self._next % len(self._stories)
        story = self._stories[index]
        self._next += 1
        side = self._stories[index % 20 + 3 : index % 20 + 12]
        body = article_page(
            story, story.first, self._frame, self.now, [s for s in side if s is not story]
        )
        version = story.first
        content = "\n\n".join([version.sapo, *(text for _, text in version.blocks)])
        when = datetime.fromtimestamp(story.published, UTC)
        truth = Truth(story.url, version.title, content, list(story.byline.authors), when)
        return Filled(body.encode(), truth)

    def context(self) -> PageContext:
        return PageContext(
            site_name=self.site.name, language="vi", zone="Asia/Ho_Chi_Minh", url_is_article=True,
            fetched=datetime.fromtimestamp(self.now, UTC),
        )  # fmt: skip


# ---------------------------------------------------------------- one site
@dataclass
class Row:
    """``won``, ``lost``: fresh pages on which the set alone, the generic chain alone, is right."""

    site: str
    state: str = "no set"  # no set | differed | active
    reason: str = ""
    pages: int = 0
    won: Counter[str] = field(default_factory=Counter)
    lost: Counter[str] = field(default_factory=Counter)
    right: Counter[str] = field(default_factory=Counter)
    examples: list[str] = field(default_factory=list)
    doc: dict[str, Any] | None = None
    #: (field, confidence, right) of what the set read, for the calibration.
    sure: list[tuple[str, float, bool]] = field(default_factory=list)

    def verdict(self, name: str) -> str:
        won, lost = self.won[name], self.lost[name]
        if won == lost:
            return "equal"
        word = "better" if won > lost else "worse"
        return word if by_chance(max(won, lost), won + lost) < NOISE else f"{word} within noise"


def by_chance(heads: int, tosses: int) -> float:
    """That a fair coin shows so many heads or more."""
    return sum(math.comb(tosses, n) for n in range(heads, tosses + 1)) / 2**tosses


def judge(name: str, site: Pages, fresh: int) -> Row:
    row = Row(name)
    proposer = Proposer(Jobs(None, ModelBudget()), None, "rules", 0)
    samples: list[Any] = []
    made = 0
    for want in (SAMPLE_PAGES, 2 * SAMPLE_PAGES, 3 * SAMPLE_PAGES):
        while made < want:
            page, made = site.page(), made + 1
            sample = make_sample(page.truth.url, page.body, site.context())
            samples += [sample] if sample is not None else []
        samples = distinct(samples)
        result = asyncio.run(proposer.propose("example.vn", samples))
        row.reason = result.reason
        if result.doc is not None:
            break
    else:
        return row
    row.doc = result.doc
    selectors = SelectorSet.from_dict(result.doc)
    row.state = _shadow(site, selectors, row)
    for _ in range(fresh):
        _compare(site, selectors, row)
    return row


def _shadow(site: Pages, selectors: SelectorSet, row: Row) -> str:
    """As a crawl proves it: active | differed. Pages that are no articles do not count."""
    good = seen = 0
    stored = []
    for _ in range(2 * SHADOW_PAGES):
        page, context = site.page(), site.context()
        sample = make_sample(page.truth.url, page.body, context)
        if sample is None:
            continue
        labels = sample.labels
        article = Article(
            id="x", url=sample.url, site="example.vn", discovered=context.fetched,  # type: ignore[arg-type]
            fetched=context.fetched, title=labels.title, content=labels.content,  # type: ignore[arg-type]
            published=labels.published, authors=labels.authors,
        )  # fmt: skip
        good, seen = good + agrees_with(article, apply(sample.doc, selectors, context)), seen + 1
        stored.append(sample)
        if seen >= SHADOW_PAGES and wilson_lower(good, seen) >= SHADOW_BOUND:
            return "active"
        if seen % SHADOW_PAGES == 0:
            opinion = tie_break.opinion(selectors, distinct(stored))
            row.reason = (
                f"{good} of {seen} agreed; {opinion.fault or 'the second opinion is for it'}"
            )
            if not opinion.fault:
                return "active"
    return "differed"


def _compare(site: Pages, selectors: SelectorSet, row: Row) -> None:
    page, context = site.page(), site.context()
    generic = extract(Document(page.body, page.truth.url), context)
    by_set = extract(Document(page.body, page.truth.url), context, selectors)
    if not generic.is_article and not by_set.is_article:
        return
    row.pages += 1
    without, wrong = (wrong_fields(found, page.truth) for found in (generic, by_set))
    for name in FIELDS:
        row.right[name] += name not in wrong
        if name in wrong and name not in without:
            row.lost[name] += 1
            row.examples.append(f"{name}: {wrong[name]}")
        elif name in without and name not in wrong:
            row.won[name] += 1
        value = getattr(by_set, name)
        if value.value and value.origin.startswith("selector:"):
            row.sure.append((name, value.confidence, name not in wrong))


# ---------------------------------------------------------------- all of them
def sites(pages: Path, seed: int, web: int, real: int) -> Iterator[tuple[str, Pages]]:
    rng = random.Random(seed)
    for number, key in enumerate(rng.sample(sorted(TEMPLATES), min(web, len(TEMPLATES)))):
        made = WebPages(key, number, seed)
        yield f"web {made.name}", made
    if real:
        found = list(structures(pages))
        kinds = list(TROUBLES)
        for number, one in enumerate(rng.sample(found, min(real, len(found)))):
            kind = kinds[number % len(kinds)]
            yield f"{one[0].site} {kind}", Troubled([one], twist=TROUBLES[kind], seed=seed)


def report(rows: list[Row]) -> None:
    made = [row for row in rows if row.doc is not None]
    active = [row for row in made if row.state == "active"]
    print(f"sites {len(rows)}, with a set through the gate {len(made)}, active {len(active)}")
    for stage, of in (("through the gate", made), ("active", active)):
        for name in FIELDS:
            told = Counter(row.verdict(name) for row in of)
            won, lost = sum(row.won[name] for row in of), sum(row.lost[name] for row in of)
            right, pages = sum(row.right[name] for row in of), sum(row.pages for row in of)
            print(
                f"  {stage:17} {name:10} better {told['better']} (+{told['better within noise']}"
                f" within noise), equal {told['equal']}, worse {told['worse']}"
                f" (+{told['worse within noise']} within noise); right on {right} of"
                f" {pages} pages, won {won}, lost {lost}"
            )
    calibration(active)


def calibration(rows: list[Row]) -> None:
    """How often the fields that sets read are right, by how sure they say they are."""
    bands: dict[tuple[str, float], list[bool]] = {}
    for row in rows:
        for name, confidence, right in row.sure:
            bands.setdefault((name, round(confidence, 2)), []).append(right)
    for name in FIELDS:
        mine = {c: values for (field, c), values in bands.items() if field == name}
        of = sum(map(len, mine.values()))
        error = sum(abs(sum(v) - c * len(v)) for c, v in mine.items()) / max(1, of)
        told = ", ".join(f"{c:.2f}: {sum(v)}/{len(v)}" for c, v in sorted(mine.items()))
        print(f"  {name:10} expected error of the confidence {error:.3f}, n {of} ({told})")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--pages", type=Path, default=Path(__file__).resolve().parents[3] / "shared" / "pages"
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--web", type=int, default=24, help="sites of the simulated web")
    parser.add_argument("--real", type=int, default=24, help="structures of real pages")
    parser.add_argument("--fresh", type=int, default=20)
    parser.add_argument("--only", default="", help="sites whose name matches this pattern")
    parser.add_argument("--show", action="store_true")
    args = parser.parse_args()
    rows = []
    for name, site in sites(args.pages, args.seed, args.web, args.real):
        if not re.search(args.only, name):
            continue
        start = time.process_time()
        row = judge(name, site, args.fresh)
        rows.append(row)
        fields = " ".join(f"{n}={row.right[n]}({row.won[n]:+d}-{row.lost[n]})" for n in FIELDS)
        print(
            f"{name:44} {row.state:8} of {row.pages} {fields} {row.reason[:160]}"
            f" ({time.process_time() - start:.0f} s)",
            flush=True,
        )
        for example in row.examples[: 20 if args.show else 2]:
            print(f"    {example[:300]}", flush=True)
        if args.show and row.doc is not None:
            print(json.dumps(row.doc["variants"], ensure_ascii=False))
    report(rows)


if __name__ == "__main__":
    main()
