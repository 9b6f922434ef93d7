"""Pages to learn from who wrote a page, and pages that nobody signed.

Stored pages with gold authors; of these a second copy without them; stored pages without gold
authors on which a script finds nothing that names one; pages of the simulated news web with the
author lines of Vietnamese papers, desks and sources among them, and signatures behind the text of
pages that state the newspaper as author.
"""

from __future__ import annotations

import gzip
import html
import json
import random
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from evaluation import scorer
from newscrawler.extraction import authors
from newscrawler.extraction.author_choice import candidates
from newscrawler.extraction.context import PageContext
from newscrawler.extraction.document import Document
from tests.newsweb.build import Plan, names_world
from tests.newsweb.language import Byline, rng_for
from tests.newsweb.markup import Markup
from tests.newsweb.render import Frame, article_page
from tests.newsweb.world import SimClock, Story, WebSite

#: Kinds of pages: ``gold`` with authors, ``taken`` the same with the authors taken out, ``none``
#: without a byline as far as a script sees, ``vi`` and ``vi-none`` generated.
KINDS = ("gold", "taken", "none", "vi", "vi-none")
ROOT = Path(__file__).resolve().parents[1]
# The clock of generated pages stands still: the same pages in every run.
_WHEN = 1_790_000_000.0
_STATED = ("ld:", "meta:", "mark:", "line:")
#: Where Vietnamese papers set a signature, as paths of tests.newsweb.markup.
_SIGNATURES = (
    "p[style=text-align:right] strong", "p.Normal[style=text-align:right] strong",
    "p.tacgia strong", "p strong", "p", "p em", "div.author-end b", "p.text-right",
)  # fmt: skip
_FORMS = ("name", "name", "two-dash", "two-comma", "two-and", "slash-ttxvn", "thuc-hien",
          "tong-hop", "tac-gia", "theo-after")  # fmt: skip
_PEN_NAMES = ("Hải Đăng", "Trang Đài", "Ban Mai", "Di Linh", "An Nhiên", "Bảo Ban", "Thiên Ý",
              "Phương Đài", "Khánh Đăng", "Hoài Báo")  # fmt: skip


@dataclass(frozen=True)
class Page:
    """``authors``: as the gold data have them, () where nobody is credited."""

    id: str
    site: str
    kind: str
    body: bytes
    url: str
    authors: tuple[str, ...] = ()


def stored(folder: Path) -> Iterator[Page]:
    """Pages of a folder with gold.jsonl: kinds ``gold``, ``taken`` and ``none``."""
    with (folder / "gold.jsonl").open(encoding="utf-8") as lines:
        for line in lines:
            gold: dict[str, Any] = json.loads(line)
            body = gzip.decompress((folder / gold["html"]).read_bytes())
            site = str(gold.get("site") or gold["id"])
            named = tuple(map(str, gold.get("authors") or ()))
            page = Page(gold["id"], site, "gold" if named else "none", body, gold["url"], named)
            if named:
                yield page
                if (other := without_authors(page)) is not None:
                    yield other
            elif names_nobody(page):
                yield page


def without_authors(page: Page) -> Page | None:
    """The page with its authors taken out of markup and text, every second one with the site's
    name in their place; None where a name is left in another spelling."""
    text = unicodedata.normalize("NFC", Document(page.body, page.url).text_html)
    site = page.site.partition(".")[0].capitalize() if len(page.id.encode()) % 2 else ""
    for name in sorted(page.authors, key=len, reverse=True):
        spelled = unicodedata.normalize("NFC", name).strip()
        taken_out = 0
        forms = {spelled, html.escape(spelled), json.dumps(spelled)[1:-1]}
        for form in filter(None, forms):
            pattern = r"\s+".join(map(re.escape, form.split()))
            text, times = re.subn(pattern, lambda _: site, text, flags=re.I)
            taken_out += times
        if not taken_out:
            return None  # the page spells it otherwise
    left = authors.key(re.sub(r"<[^>]*>", " ", text))
    if any(key in left for key in map(authors.key, page.authors)):
        return None
    taken = Page(f"{page.id}-taken", page.site, "taken", text.encode(), page.url)
    return None if _still_named(taken, page.authors) else taken


def _still_named(page: Page, named: tuple[str, ...]) -> bool:
    """Whether a candidate shares two words, or its only one, with an author that was taken out."""
    gold = [set(scorer.name_key(name).split()) for name in named]
    found = candidates.find(Document(page.body, page.url), PageContext()).found
    words = [set(key.split()) for key in found]
    return any(len(w & g) >= min(2, len(g)) for w in words for g in gold)


def names_nobody(page: Page) -> bool:
    """Whether no statement, marked element or byline of the page names anybody but a body."""
    found = candidates.find(Document(page.body, page.url), PageContext())
    return not any(
        place.kind.startswith(_STATED) and not candidates.is_body(one, found.own)
        for one in found.found.values()
        for place in one.places
        if not place.foreign
    )


@dataclass
class _Signed(WebSite):
    """A site with another markup than its template's."""

    signed: Markup = field(default_factory=Markup)

    def markup(self, now: float) -> Markup:
        return self.signed


def generated(seed: int, pages: int) -> Iterator[Page]:
    """Kinds ``vi`` and ``vi-none``: so many for each site of sites.json as the templates have
    them, and as many with a signature behind the text and the newspaper in meta and JSON-LD."""
    clock = SimClock(factor=0.0, offset_s=_WHEN)
    world = names_world(Plan(seed, articles=3 * pages, rate=0.0), clock, ROOT / "sites.json")
    for site in world.sites:
        frame = Frame(site)
        stories = [s for s in site.stories if not s.special and s.published < _WHEN]
        for number, story in enumerate(stories[: 2 * pages]):
            if number % 2:
                story = _signed(story, site, rng_for(seed, "signature", site.key, number))
            yield _rendered(story, frame, stories)


def _signed(story: Story, site: WebSite, rng: random.Random) -> Story:
    """The story with another author line: set behind the text, the newspaper as stated author."""
    markup = replace(
        site.template.markup,
        author="",
        avatar=False,
        tail_author=rng.choice(_SIGNATURES),
        jsonld=rng.choice(("org", "org", "", "empty")),
        author_meta=True,
    )
    own = {one.name: getattr(site, one.name) for one in fields(WebSite)}
    byline = _byline(story, rng)
    return replace(story, site=_Signed(**own, signed=markup), byline=byline)


def _byline(story: Story, rng: random.Random) -> Byline:
    words = story.site.world.language
    dice = rng.random()
    if dice < 0.15:
        pen_name = rng.choice(_PEN_NAMES)
        return Byline(pen_name, (pen_name,))
    if dice < 0.25:
        name = words.person(rng)
        while len(name.split()) < 3:
            name = words.person(rng)
        return Byline(f"Theo {name}", (name,))
    if dice < 0.4:
        return words.byline(rng, rng.choice(("theo", "pv", "nhom-pv", "bbt", "none")))
    return words.byline(rng, rng.choice(_FORMS))


def _rendered(story: Story, frame: Frame, stories: list[Story]) -> Page:
    text = article_page(story, story.first, frame, _WHEN, stories)
    named = tuple(story.byline.authors)
    ident = f"vi-{story.site.key}-{story.number}"
    kind = "vi" if named else "vi-none"
    return Page(ident, story.site.key, kind, text.encode(), story.url, named)
