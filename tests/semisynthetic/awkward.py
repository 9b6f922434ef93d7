"""python -m tests.semisynthetic.awkward: sites that are not one template with
everything on every page.

Two templates, the same stories under two templates, bylines on half of the pages, no date that
readers see, a long list of other articles beside or in the text, a third behind a paywall. What is
printed: pages until a set is active, fields right on fresh pages with it and without any set, and
what the set reads wrong by its own selectors.
"""

from __future__ import annotations

import argparse
import html
import json
import random
import re
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import lxml.html

from newscrawler.extraction.document import Document
from newscrawler.extraction.extract import extract
from newscrawler.extraction.selectors import SelectorSet
from newscrawler.selectorsets import templates as templates_module
from newscrawler.selectorsets.samples import make_sample
from tests.semisynthetic.dom import SILENT, cut, key, text_of
from tests.semisynthetic.life import FIELDS, Life, Site, live, structures, wrong_fields
from tests.semisynthetic.structure import Filled, Structure
from tests.semisynthetic.texts import Texts

#: Changes a page of a site; the truth may change with it.
Twist = Callable[[Filled, random.Random, Texts], Filled]
_DAY = re.compile(r"\d{1,4}\D{1,12}\d{1,4}|\d{4}")


class Awkward(Site):
    """Pages of several structures by weight; ``twin``: each story under the first and then
    under the second one."""

    def __init__(
        self,
        parts: list[tuple[Structure, Texts]],
        weights: tuple[float, ...] = (1.0,),
        twist: Twist | None = None,
        *,
        nameless: float = 0.08,
        twin: bool = False,
        seed: int = 1,
    ) -> None:
        super().__init__(*parts[0], seed)
        self._parts = [structure for structure, _ in parts]
        self._weights, self._twist, self._nameless, self._twin = weights, twist, nameless, twin
        self._waiting: Filled | None = None

    def page(self) -> Filled:
        rng = self._rng
        if self._waiting is not None:
            made, self._waiting = self._waiting, None
            return made
        structure = rng.choices(self._parts, self._weights)[0]
        made, again = self._fill(structure, rng)
        if self._twin:
            self._waiting = again
        return made

    def _fill(self, structure: Structure, rng: random.Random) -> tuple[Filled, Filled | None]:
        story = self.texts.story(rng, len(structure.authors))
        bare = rng.random() < self._nameless
        made = structure.fill(story, None, rng, self.texts, nameless=bare)
        twin = (
            self._parts[1].fill(story, None, rng, self.texts, nameless=bare) if self._twin else None
        )
        if self._twist is not None:
            made = self._twist(made, rng, self.texts)
        return made, twin


# ---------------------------------------------------------------- twists
def _written(tree: Any) -> bytes:
    return b"<!doctype html>" + lxml.html.tostring(tree, encoding="utf-8")


def _paragraph(tree: Any, text: str) -> Any:
    """The deepest element that holds this paragraph and nothing else; None where inline
    markup made it another text."""
    found = [
        n for n in tree.body.iter() if isinstance(n.tag, str) and n.tag not in SILENT and len(n) < 4
    ]
    same = [n for n in found if key(text_of(n)) == key(text)]
    return same[-1] if same else None


def no_seen_date(made: Filled, rng: random.Random, texts: Texts) -> Filled:
    """Metadata and JSON-LD alone know the day."""
    tree = lxml.html.document_fromstring(made.body.decode())
    for node in list(tree.body.iter("time")):
        node.attrib.pop("datetime", None)
        node.tag = "span"
    for node in tree.body.iter():
        if not isinstance(node.tag, str) or node.tag in SILENT:
            continue
        for name in ("text", "tail"):
            text = getattr(node, name) or ""
            if len(text) < 80 and str(made.truth.published.year) in text and _DAY.search(text):
                setattr(node, name, "")
    return replace(made, body=_written(tree))


def date_in_script(made: Filled, rng: random.Random, texts: Texts) -> Filled:
    """Neither readers nor metadata are told: a script of the page's own has it."""
    tree = lxml.html.document_fromstring(no_seen_date(made, rng, texts).body.decode())
    for meta in list(tree.iter("meta")):
        if re.search(r"\d{4}-\d\d-\d\d|\d{4}\d\d\d\d", meta.get("content") or ""):
            meta.getparent().remove(meta)
    for node in list(tree.iter("script")):
        if "ld+json" not in (node.get("type") or ""):
            cut(node)  # the site's own state has the structure's day in it
        elif node.text:
            node.text = re.sub(
                r'"date(?:Published|Modified|Created)"\s*:\s*"[^"]*",?', "", node.text
            )
    script = lxml.html.fragment_fromstring("<script></script>")
    script.text = json.dumps(
        {"page": {"publishedAt": made.truth.published.isoformat(), "type": "article"}}
    )
    script.text = f"window.__STATE__ = {script.text};"
    tree.body.append(script)
    url = re.sub(
        r"/\d{4}/\d\d?(?:/\d\d?)?/", "/", made.truth.url
    )  # the structure's own day may stand there
    return replace(made, body=_written(tree), truth=replace(made.truth, url=url))


def _listed(texts: Texts, rng: random.Random, stories: list[tuple[str, str]], name: str) -> Any:
    rows = "".join(
        f'<li><h3><a href="/m-{rng.randrange(10**6)}">{html.escape(title)}</a></h3><p>{html.escape(line)}</p></li>'
        for title, line in stories
    )
    return lxml.html.fragment_fromstring(f"<div{name}><h2>Most read</h2><ol>{rows}</ol></div>")


class OfTheDay:
    """Twelve of the eighteen most read articles with a line of each; others after forty pages."""

    def __init__(self) -> None:
        self.pages = 0
        self.stories: list[tuple[str, str]] = []

    def __call__(self, rng: random.Random, texts: Texts) -> list[tuple[str, str]]:
        if self.pages % 40 == 0:
            self.stories = [(texts.headline(rng), texts.sentence(rng)) for _ in range(18)]
        self.pages += 1
        return rng.sample(self.stories, 12)


def new_ones(rng: random.Random, texts: Texts) -> list[tuple[str, str]]:
    """Five related articles, others on each page."""
    return [(texts.headline(rng), texts.sentence(rng)) for _ in range(5)]


def box(
    stories: Callable[[random.Random, Texts], list[tuple[str, str]]],
    name: str,
    *,
    below: bool = False,
) -> Twist:
    """Between two paragraphs, or ``below`` the last one, in the element that holds the text."""

    def twist(made: Filled, rng: random.Random, texts: Texts) -> Filled:
        tree = lxml.html.document_fromstring(made.body.decode())
        paragraphs = made.truth.content.split("\n\n")
        spots = [
            n
            for p in (paragraphs[-1:] if below else paragraphs[2:-1])
            if (n := _paragraph(tree, p)) is not None
        ]
        if not spots:
            return made
        spots[min(len(spots) - 1, 2)].addnext(_listed(texts, rng, stories(rng, texts), name))
        return replace(made, body=_written(tree))

    return twist


def paywall(share: float) -> Twist:
    """Two paragraphs and an offer on some pages; the truth is what is shown."""

    def twist(made: Filled, rng: random.Random, texts: Texts) -> Filled:
        if rng.random() >= share:
            return made
        tree = lxml.html.document_fromstring(made.body.decode())
        paragraphs = made.truth.content.split("\n\n")
        nodes = [_paragraph(tree, p) for p in paragraphs]
        if sum(n is None for n in nodes) > 0:
            return made
        offer = lxml.html.fragment_fromstring(
            '<div class="paywall-offer"><h3>Continue reading with a subscription</h3><p>Subscribe now and read all '
            "articles for 1 euro a week. Cancel at any time.</p><button>Subscribe</button></div>"
        )
        nodes[1].addnext(offer)
        for node in nodes[2:]:
            node.getparent().remove(node)
        for node in tree.iter("script"):
            if "ld+json" in (node.get("type") or "") and node.text:
                node.text = re.sub(r'"articleBody"\s*:\s*"(?:[^"\\]|\\.)*",?', "", node.text)
        truth = replace(made.truth, content="\n\n".join(paragraphs[:2]))
        return Filled(_written(tree), truth)

    return twist


# ---------------------------------------------------------------- the table
@dataclass
class Told:
    life: Life
    generic: Counter[str]
    refused: int  # fresh pages that are not stored as articles
    templates: int


def measure(site: Awkward, fresh: int) -> Told:
    life = live(site, fresh=0)
    told = Told(life, Counter(), 0, len((life.doc or {}).get("variants", [])))  # type: ignore[arg-type]
    selectors = (
        SelectorSet.from_dict(life.doc) if life.doc is not None and life.state == "active" else None
    )
    for _ in range(fresh):
        page = site.page()
        plain = extract(Document(page.body, page.truth.url), site.context())
        found = (
            extract(Document(page.body, page.truth.url), site.context(), selectors)
            if selectors
            else plain
        )
        if not found.is_article:
            told.refused += 1
            continue
        life.fresh += 1
        told.generic.update(n for n in FIELDS if n not in wrong_fields(plain, page.truth))
        wrong = wrong_fields(found, page.truth)
        life.right.update(n for n in FIELDS if n not in wrong)
        life.misread.update(n for n in wrong if getattr(found, n).origin.startswith("selector:"))
        life.wrong += [f"{n}: {what}" for n, what in wrong.items()]
    return told


def kinds(parts: list[tuple[Structure, Texts]], seed: int) -> dict[str, Awkward]:
    """``parts``: three structures that the same stories fit into."""
    one, two = parts[:1], parts[:2]
    return {
        "two templates, 75 and 25 %": Awkward(two, (0.75, 0.25), seed=seed),
        "two templates, half and half": Awkward(two, (0.5, 0.5), seed=seed),
        "three templates, 60, 25, 15 %": Awkward(parts, (0.6, 0.25, 0.15), seed=seed),
        "each story under two templates": Awkward(two, (1.0, 0.0), twin=True, seed=seed),
        "bylines on half of the pages": Awkward(one, nameless=0.5, seed=seed),
        "dates in metadata alone": Awkward(one, twist=no_seen_date, seed=seed),
        "dates in a script alone": Awkward(one, twist=date_in_script, seed=seed),
        "most read in the text, named": Awkward(
            one, twist=box(OfTheDay(), ' class="most-read"'), seed=seed
        ),
        "most read in the text, unnamed": Awkward(one, twist=box(OfTheDay(), ""), seed=seed),
        "most read below the text": Awkward(
            one, twist=box(OfTheDay(), ' class="block-7"', below=True), seed=seed
        ),
        "related in the text, unnamed": Awkward(one, twist=box(new_ones, ""), seed=seed),
        "a third behind a paywall": Awkward(one, twist=paywall(0.3), seed=seed),
    }


def triples(folder: Path, most: int) -> list[list[tuple[Structure, Texts]]]:
    """Three structures of different sites, of one language and number of authors."""
    waiting: dict[tuple[str, int], list[tuple[Structure, Texts]]] = {}
    found = []
    for one in structures(folder):
        mine = waiting.setdefault((one[0].lang, len(one[0].authors)), [])
        if all(one[0].site != other.site for other, _ in mine):
            mine.append(one)
        if len(mine) == 3:
            found.append(waiting.pop((one[0].lang, len(one[0].authors))))
        if len(found) == most:
            break
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--pages", type=Path, default=Path(__file__).resolve().parents[3] / "shared" / "pages"
    )
    parser.add_argument("--most", type=int, default=4, help="sites of each kind")
    parser.add_argument("--fresh", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="kinds whose name holds this")
    parser.add_argument("--site", type=int, help="one of the sites alone, by number")
    parser.add_argument("--show", action="store_true", help="the sets and what was wrong")
    args = parser.parse_args()
    for number, parts in enumerate(triples(args.pages, args.most)):
        if args.site not in (None, number):
            continue
        print("site", number, *(s.site for s, _ in parts), flush=True)
        for name, site in kinds(parts, args.seed).items():
            if args.only not in name:
                continue
            start = time.process_time()
            told = measure(site, args.fresh)
            life = told.life
            shares = " ".join(
                f"{n}={life.right[n] / max(1, life.fresh):.2f}({told.generic[n] / max(1, life.fresh):.2f})"
                for n in FIELDS
            )
            print(
                f"  {name:32} {life.state:8} pages={life.pages:3} templates={told.templates} {shares} "
                f"refused={told.refused} misread={dict(life.misread)} {life.reason[:200]} "
                f"({time.process_time() - start:.0f} s)",
                flush=True,
            )
            if args.show:
                print(json.dumps((life.doc or {}).get("variants"), ensure_ascii=False))
                print(
                    [
                        len(g)
                        for g in templates_module.groups(_samples(kinds(parts, args.seed)[name]))
                    ]
                )
            for what in life.wrong[: 20 if args.show else 1]:
                print(f"      {what[:300]}")


def _samples(site: Awkward) -> list[Any]:
    made = [site.page() for _ in range(12)]
    return [s for p in made if (s := make_sample(p.truth.url, p.body, site.context())) is not None]


if __name__ == "__main__":
    main()
