"""The simulated news world: sites, their stories over simulated time, and the
truth about each story."""

from __future__ import annotations

import random
import re
import time
from bisect import bisect_right, insort
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from tests.newsweb.dates import DAY_ONLY, iso, local
from tests.newsweb.language import BYLINES, Byline, Language, language, rng_for, slugify
from tests.newsweb.markup import Markup
from tests.newsweb.markups import REDESIGN
from tests.newsweb.templates import Template
from tests.newsweb.unknown import Unknown

HOUR = 3600.0
DAY = 86_400.0
#: How a story may be found: on section lists and home, in feeds, in sitemaps.
CHANNELS = ("list", "feed", "sitemap")


@dataclass
class SimClock:
    """sim_now = real_now * factor + offset; the same meaning as the frontier's
    clock key. Seconds."""

    factor: float = 1.0
    offset_s: float = 0.0
    set_to: float = 0.0  # the simulated time that it was set to last; 0 = never

    def now(self) -> float:
        return self.at(time.time())

    def at(self, real_s: float) -> float:
        return real_s * self.factor + self.offset_s

    def set(self, factor: float, sim_now: float | None = None) -> None:
        """Another speed; the simulated time goes on from ``sim_now`` (None = from where it is)."""
        at = self.now() if sim_now is None else sim_now
        self.factor, self.set_to = factor, at
        self.offset_s = at - time.time() * factor


@dataclass(frozen=True)
class Version:
    """What a story says from ``at`` on. ``blocks`` are (kind, text), kind p or h (subhead)."""

    at: float
    title: str
    sapo: str
    blocks: tuple[tuple[str, str], ...]
    change: str = "first"

    @property
    def content(self) -> str:
        return "\n\n".join([self.sapo, *(text for _, text in self.blocks)])


@dataclass
class Story:
    """One article of one site. Times are simulated seconds since the epoch."""

    site: WebSite
    number: int
    published: float
    title: str
    section: int
    ident: str = ""
    path: str = ""
    byline: Byline = field(default_factory=lambda: Byline("", ()))
    #: "" or what is odd about it: noindex, xrobots, noarchive, disallowed, too-old, gone, missing,
    #: nofollow-page, rel-nofollow, redirect, video, or a fault (faults.py)
    special: str = ""
    channels: tuple[str, ...] = CHANNELS
    cluster: str = ""
    source: Story | None = None  # the story that this one repeats, on another site
    edits: list[tuple[float, str]] = field(default_factory=list)  # (at, digit | title | paragraph)
    optional: bool = False  # a crawler may keep it or not

    @property
    def url(self) -> str:
        return self.site.base + self.path

    @cached_property
    def first(self) -> Version:
        rng = rng_for(self.site.world.seed, "text", self.site.key, self.number)
        words = self.site.world.language
        if self.source is not None:
            return self._copy(rng, self.source.first)
        sapo = words.sentence(rng)
        while len(sapo.split()) < 24:
            sapo += " " + words.sentence(rng)
        blocks: list[tuple[str, str]] = []
        count = (
            0 if self.special == "video" else max(5, min(40, int(rng.lognormvariate(2.45, 0.42))))
        )
        subheads = rng.random() < 0.5
        for i in range(count):
            if subheads and i % 5 == 3 and i + 1 < count:
                blocks.append(("h", words.title(rng)))
            blocks.append(("p", words.paragraph(rng)))
        return Version(self.published, self.title, sapo, tuple(blocks))

    def _copy(self, rng: random.Random, original: Version) -> Version:
        """The text of another site, as sites take it over: one paragraph off,
        some words changed."""
        words = self.site.world.language
        blocks = list(original.blocks)
        if len(blocks) > 4:
            del blocks[rng.randrange(1, len(blocks))]
        for i in rng.sample(range(len(blocks)), k=min(3, len(blocks))):
            kind, text = blocks[i]
            parts = text.split()
            if len(parts) > 6:
                parts[rng.randrange(1, len(parts) - 1)] = words.words(rng, 1)[0]
            blocks[i] = (kind, " ".join(parts))
        return Version(self.published, self.title, original.sapo, tuple(blocks))

    @property
    def versions(self) -> list[Version]:
        found = [self.first]
        for at, kind in self.edits:
            found.append(
                _edited(found[-1], at, kind, self.site.world.language, rng_for(self.path, at, kind))
            )
        return found

    def current(self, now: float) -> Version:
        """The version that the page shows at ``now``."""
        found = self.first
        if self.edits and self.edits[0][0] <= now:
            found = [v for v in self.versions if v.at <= now][-1]
        return found

    @property
    def why_not(self) -> str:
        """Why a polite crawler must not have it; "" = it should be found."""
        reasons = {
            "disallowed": "robots",
            "noindex": "noindex",
            "xrobots": "noindex",
            "too-old": "too old",
            "gone": "gone",
            "missing": "gone",
            "nofollow-page": "nofollow",
            "rel-nofollow": "nofollow",
        }
        if self.site.challenge:
            return "challenge"
        if self.special == "disallowed" and self.site.robots == "404":
            return ""  # no robots.txt forbids nothing
        return reasons.get(self.special, self.site.fault_reason(self))

    def truth(self) -> dict[str, Any]:
        why = self.why_not
        form = self.site.template.markup.date_form
        return {
            "type": "article",
            "url": self.url,
            "site": self.site.id,
            "host": self.site.host,
            "id": self.ident,
            "title": self.first.title,
            "sapo": self.first.sapo,
            "content": self.first.content,
            "authors": list(self.byline.authors),
            "byline": self.byline.text,
            "published": iso(self.published),
            "precision": "day"
            if form in DAY_ONLY and not self.site.template.markup.jsonld
            else "minute",
            "first_visible": max(self.published, 0.0),
            "section": self.site.sections[self.section][1],
            "edits": [
                {"at": v.at, "change": v.change, "title": v.title, "content": v.content}
                for v in self.versions[1:]
            ],
            "should_be_found": not why,
            "why_not": why or None,
            "optional": self.optional,
            "special": self.special or None,
            "channels": list(self.channels),
            "cluster": self.cluster or None,
            "twins": self.site.twins(self),
        }


def _edited(old: Version, at: float, kind: str, words: Language, rng: random.Random) -> Version:
    title, blocks = old.title, list(old.blocks)
    spots = [i for i, (_, text) in enumerate(blocks) if any(c.isdigit() for c in text)]
    if kind == "title" or not blocks:
        title = f"{title} {words.words(rng, 1)[0]}"
    elif kind == "digit" and spots:
        i = rng.choice(spots)
        text = blocks[i][1]
        at_char = rng.choice([n for n, c in enumerate(text) if c.isdigit()])
        other = rng.choice([d for d in "123456789" if d != text[at_char]])
        blocks[i] = (blocks[i][0], text[:at_char] + other + text[at_char + 1 :])
    else:
        blocks.append(("p", words.paragraph(rng)))
    return Version(at, title, old.sapo, tuple(blocks), kind)


@dataclass
class WebSite:
    """One site as it is served."""

    world: World
    id: str
    key: str  # key of the template, stable over runs: seeds of texts hang on it
    template: Template
    scheme: str
    host: str  # host[:port], lower case
    sections: list[tuple[str, str]]  # (path, label)
    home: str = "/"
    latest: frozenset[str] = frozenset()  # section paths that list everything, such as /tin-tuc-24h
    feeds: list[tuple[str, int | None]] = field(
        default_factory=list
    )  # (path, section or None for all)
    sitemaps: list[str] = field(default_factory=list)  # paths
    sitemap_rules: list[re.Pattern[str]] = field(default_factory=list)  # monthly and other shards
    news_sitemaps: list[str] = field(default_factory=list)
    twin_host: str = ""
    aliases: tuple[str, ...] = ()  # further hosts that answer as this site
    path_regex: Any = None
    crawl_delay: float = 0.0
    floor_s: float = 0.0  # delay_s of sites.json
    robots: str = "plain"
    robots_503: int = 1  # with robots = 5xx: so many answers are 503 first
    challenge: bool = False
    scripted: bool = False  # pages are empty frames that a script fills (scripted.py)
    unknown: Unknown | None = None  # only its home is told (unknown.py); None = sites.json has all
    busy: bool = False  # has answers that make a polite crawler back off for long
    relayout_at: float | None = None
    faults: dict[str, str] = field(default_factory=dict)  # article id -> fault name (faults.py)
    stories: list[Story] = field(default_factory=list)  # ordered by published
    by_id: dict[str, Story] = field(default_factory=dict)
    redirects: dict[str, str] = field(default_factory=dict)  # old path -> path

    @property
    def base(self) -> str:
        return f"{self.scheme}://{self.host}"

    @property
    def name(self) -> str:
        return self.template.name

    @property
    def delay_s(self) -> float:
        """The least gap that the site asks for, simulated seconds."""
        return max(self.crawl_delay, self.floor_s)

    def section_for(self, number: int) -> int:
        """Stories go round the sections, so that none is empty."""
        own = [i for i, (path, _) in enumerate(self.sections) if path not in self.latest]
        return own[number % len(own)] if own else 0

    def markup(self, now: float) -> Markup:
        if self.relayout_at is not None and now >= self.relayout_at:
            return REDESIGN
        return self.template.markup

    def visible(self, now: float) -> list[Story]:
        """Stories that exist at ``now``, oldest first."""
        return self.stories[: bisect_right(self.stories, now, key=lambda s: s.published)]

    def fault_reason(self, story: Story) -> str:
        from tests.newsweb.faults import FAULTS  # faults.py builds on this module

        fault = FAULTS.get(self.faults.get(story.ident, ""))
        return "" if fault is None or fault.found else f"fault: {fault.name}"

    def twins(self, story: Story) -> list[str]:
        """Other addresses that serve the same story."""
        found = [
            f"{story.url}?utm_source=home&utm_medium=box",
            f"{story.url}?fbclid=IwAR0{story.number}",
        ]
        if self.template.ids != "slug":
            found.append(self.base + self.story_path("ban-doc", story))
        if self.unknown is not None and self.unknown.twin:
            found.append(story.url.rstrip("/") + self.unknown.twin)
        if self.twin_host:
            found.append(f"{self.scheme}://{self.twin_host}{story.path}")
        if self.template.twin == ".amp":
            found.append(story.url.rpartition(".")[0] + ".amp")
        found += [self.base + old for old, new in self.redirects.items() if new == story.path]
        return found

    def sitemap_kind(self, path: str) -> str:
        """What the sitemap at ``path`` holds; "" = there is no sitemap at that path."""
        if any(rule.match(path) for rule in self.sitemap_rules):
            return "month"
        if path not in self.sitemaps and not re.match(
            r"/sitemaps/(articles-\d|categories\.xml)", path
        ):
            return ""
        if path in self.news_sitemaps:
            return "news"
        if re.search("categor|topics", path):
            return "sections"
        if path.endswith(".rss"):
            return "feed"
        if re.search(r"\d{4}-\d{1,2}", path):
            return "month"
        return "index" if re.search(r"/sitemap(-index)?\.xml$", path) else "all"

    def story_path(self, slug: str, story: Story) -> str:
        shape = self.template.shape
        section = self.sections[story.section][0].strip("/").split("/")[0].split(".")[0] or "tin"
        if self.unknown is not None:
            section = slugify(self.sections[story.section][1])
        elif "{num}" in shape:
            section = section.rpartition("-c")[0] or section
        day = f"{local(story.published):%Y/%m/%d}"
        return shape.format(
            slug=slug, id=story.ident, section=section, num=40 + story.section, day=day
        )

    def add(self, story: Story, slug: str = "") -> Story:
        """Give the story its id and address and put it among the others."""
        rng = rng_for(self.world.seed, "id", self.key, story.number)
        kind = self.template.ids
        when, millis = local(story.published), rng.randrange(1000)
        story.ident = {
            "seq": str(self.template.first_id + 11 * story.number + rng.randrange(10)),
            "stamp": f"{when:%Y%m%d%H%M%S}{millis:03d}",
            "slug": slugify(story.title),
        }.get(kind) or f"{kind[3:]}{when:%y%m%d%H%M%S}{millis:03d}"
        if story.ident in self.by_id:
            story.ident += f"-{story.number}" if kind == "slug" else ""
        story.path = self.story_path(slug or slugify(story.title), story)
        if story.special == "disallowed" and self.template.ids != "slug":
            story.path = self.story_path("cam-" + slugify(story.title), story)
        self.by_id[story.ident] = story
        insort(self.stories, story, key=lambda s: s.published)
        return story

    def truth(self) -> dict[str, Any]:
        return {
            "type": "site",
            "site": self.id,
            "name": self.name,
            "host": self.host,
            "template": self.template.key,
            "hosts": [self.host, *([self.twin_host] if self.twin_host else []), *self.aliases],
            "delay_s": self.delay_s,
            "crawl_delay_s": self.crawl_delay,
            "robots": self.robots,
            "disallow": list(self.disallows()),
            "challenge": self.challenge,
            "busy": self.busy,
            "unknown": self.unknown.truth() if self.unknown else None,
            "feeds": [path for path, _ in self.feeds],
            "relayout_at": self.relayout_at,
            "home": self.base + self.home,
            "path_regex": self.template.path_regex.pattern,
            "stories": len(self.stories),
        }

    def disallows(self) -> Iterator[str]:
        yield from ("/tim-kiem", "/ajax/", "/lich/")
        for story in self.stories:
            if story.special == "disallowed":
                yield story.path


class World:
    """All sites, one language, one clock."""

    def __init__(self, seed: int, clock: SimClock) -> None:
        self.seed = seed
        self.clock = clock
        self.language = language(seed)
        self.sites: list[WebSite] = []
        self.by_host: dict[str, WebSite] = {}
        # What it was set to, in whole seconds: the same --start gives the same world, however long
        # a busy machine took.
        self.started = float(int(clock.set_to or clock.now()))
        self.titles: set[str] = set()

    def add_site(self, site: WebSite) -> WebSite:
        self.sites.append(site)
        for host in (site.host, site.twin_host, *site.aliases):
            if host:
                self.by_host[host] = site
        return site

    def new_story(
        self,
        site: WebSite,
        published: float,
        *,
        special: str = "",
        channels: tuple[str, ...] = CHANNELS,
    ) -> Story:
        number = len(site.stories)
        rng = rng_for(self.seed, "story", site.key, number)
        title = self.language.title(rng)
        while title in self.titles or len(title) < 25:
            title = self.language.title(rng)
        self.titles.add(title)
        form = rng.choice(site.template.markup.bylines)
        if number in (5, 6):  # over the sites, every form of author line occurs
            form = BYLINES[(self.sites.index(site) * 2 + number - 5) % len(BYLINES)]
        if not (site.template.markup.author or site.template.markup.tail_author):
            form = "none"
        story = Story(
            site,
            number,
            published,
            title,
            site.section_for(number),
            special=special,
            channels=channels,
            byline=self.language.byline(rng, form),
        )
        return site.add(story)

    def syndicate(self, story: Story, site: WebSite, published: float) -> Story:
        """``site`` repeats ``story`` with small changes."""
        number = len(site.stories)
        rng = rng_for(self.seed, "copy", site.key, number)
        title = (
            story.title if rng.random() < 0.4 else f"{story.title} {self.language.words(rng, 1)[0]}"
        )
        story.cluster = story.cluster or f"c{rng.getrandbits(32):08x}"
        form = rng.choice(("theo", "name", "theo-after", "none"))
        if not (site.template.markup.author or site.template.markup.tail_author):
            form = "none"
        copy = Story(
            site,
            number,
            published,
            title,
            site.section_for(number),
            cluster=story.cluster,
            source=story,
            byline=self.language.byline(rng, form),
        )
        return site.add(copy)

    def truth(self) -> Iterator[dict[str, Any]]:
        from tests.newsweb.faults import fault_truth

        yield {
            "type": "world",
            "seed": self.seed,
            "started": self.started,
            "factor": self.clock.factor,
            "offset_s": self.clock.offset_s,
            "now": self.clock.now(),
        }
        for site in self.sites:
            yield site.truth()
        for site in self.sites:
            for story in site.stories:
                yield story.truth()
        yield from fault_truth(self)
