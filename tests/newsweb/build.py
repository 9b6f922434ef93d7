"""Make the worlds of the layouts: which sites, on which hosts, with which stories."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path

from tests.newsweb.dates import local
from tests.newsweb.faults import BAD_FEEDS, BAD_SITEMAPS, FAULTS
from tests.newsweb.language import rng_for, slugify
from tests.newsweb.named import named_site, read_sites
from tests.newsweb.templates import IP_SITES, TEMPLATES
from tests.newsweb.unknown import drawn, drawn_template
from tests.newsweb.world import CHANNELS, DAY, HOUR, SimClock, WebSite, World


@dataclass(frozen=True)
class Plan:
    """What to build. Times are simulated."""

    seed: int = 1
    articles: int = 30  # per site at the start
    rate: float = 0.5  # further articles per site and hour
    duration_h: float = 24.0  # for how long articles go on appearing and being edited
    sites: int = len(IP_SITES)  # of the ip layout, without the two fault sites
    delay: float = -1.0  # floor of every site's delay, seconds; < 0 = each site's own
    faults: str = (
        "all"  # all | none | quiet (nothing that makes a crawler back off) | names, comma-separated
    )
    too_old_days: float = 30.0
    relayout: str = ""  # "site@hours": that site is redesigned then
    home_only: bool = False  # ip: of each site nothing is told but its home (unknown.py)
    unknown: int = 0  # ip: so many further sites of which nothing is told but the home
    scripted: int = (
        0  # ip: pages of so many sites, the first ones, are filled by scripts (scripted.py)
    )
    rhythm: bool = False  # articles follow the hours of a newsroom and sites differ; else evenly, all sites alike


#: The last number of the first address of those of ``Plan.unknown``.
UNKNOWN_FROM = 20
#: Share of an even day's articles by the hour in Hanoi: little at night, most in the
#: morning and in the afternoon.
NEWSROOM = (
    *(0.25, 0.15, 0.1, 0.1, 0.25, 0.7, 1.2, 1.5, 1.7, 1.8, 1.7, 1.4),
    *(1.0, 1.1, 1.5, 1.7, 1.6, 1.4, 1.1, 1.0, 1.0, 0.9, 0.6, 0.35),
)
#: Oddities that ordinary sites have beside plain stories; two or three of them per site, in turn.
_SPECIALS = (
    "noindex",
    "xrobots",
    "noarchive",
    "disallowed",
    "gone",
    "missing",
    "nofollow-page",
    "rel-nofollow",
)


def ip_world(plan: Plan, clock: SimClock, port: int, subnet: int = 5) -> World:
    """Every site on 127.0.<subnet>.N:port; twins (m., amp.) on 127.0.<subnet>.(100+N)."""
    world = World(plan.seed, clock)
    for number, key in enumerate(IP_SITES[: plan.sites], 1):
        template = TEMPLATES[key]
        host = f"127.0.{subnet}.{number}:{port}"
        twin = f"127.0.{subnet}.{100 + number}:{port}" if template.twin in ("m", "amp") else ""
        site = WebSite(
            world,
            host,
            key,
            template,
            "http",
            host,
            template.sections(),
            twin_host=twin,
            crawl_delay=template.delay,
            floor_s=max(plan.delay, 0.0),
            robots=template.robots,
            challenge=template.challenge,
        )
        if plan.delay >= 0:
            site.crawl_delay = plan.delay * 1.5 if template.delay else 0.0
        _own_feeds(site)
        site.scripted = number <= plan.scripted
        if plan.home_only:
            _make_unknown(site, number)
        world.add_site(site)
    for number in range(plan.unknown):
        world.add_site(
            _unknown_site(world, plan, number, f"127.0.{subnet}.{UNKNOWN_FROM + number}:{port}")
        )
    if plan.faults != "none":
        for number, (key, name) in enumerate(
            (("tienphong.vn", "Báo Lỗi"), ("tienphong.vn", "Báo Bận")), 200
        ):
            host = f"127.0.{subnet}.{number}:{port}"
            template = replace(TEMPLATES[key], name=name, robots="plain", etag="none")
            site = WebSite(
                world,
                host,
                f"fault-{number}",
                template,
                "http",
                host,
                template.sections(),
                floor_s=max(plan.delay, 0.0),
            )
            _own_feeds(site)
            world.add_site(site)
            if number == 200:
                site.feeds += [(path, None) for path in BAD_FEEDS]
                site.sitemaps += BAD_SITEMAPS
    fill(world, plan)
    return world


def names_world(plan: Plan, clock: SimClock, sites_file: Path) -> World:
    """Every enabled site of a sites.json under its own names, over HTTPS."""
    world = World(plan.seed, clock)
    for entry in read_sites(sites_file):
        world.add_site(named_site(world, entry))
    fill(world, replace(plan, faults="none"))
    return world


def _own_feeds(site: WebSite) -> None:
    site.feeds = [("/rss/home.rss", None)] + [
        (f"/rss/{slugify(label)}.rss", i) for i, (_, label) in enumerate(site.sections[:2])
    ]
    site.sitemaps = ["/sitemap.xml", "/sitemaps/google-news.xml"]
    site.news_sitemaps = ["/sitemaps/google-news.xml"]


def _unknown_site(world: World, plan: Plan, number: int, host: str) -> WebSite:
    template = drawn_template(world.seed, number)
    site = WebSite(
        world, host, f"unknown-{number}", template, "http", host, template.sections(),
        crawl_delay=template.delay, floor_s=max(plan.delay, 0.0), robots=template.robots,
    )  # fmt: skip
    if plan.delay >= 0:
        site.crawl_delay = plan.delay * 1.5 if template.delay else 0.0
    _make_unknown(site, number)
    return site


def _make_unknown(site: WebSite, number: int) -> None:
    site.unknown = what = drawn(site.world.seed, site.key, number)
    site.template = what.template(site.template)
    site.sections = list(what.sections)
    site.twin_host = ""
    if what.is_named and site.robots == "404":
        site.robots = "plain"
    words = [(f"/rss/{slugify(label)}.rss", i) for i, (_, label) in enumerate(site.sections)]
    own: dict[str, list[tuple[str, int | None]]] = {
        "none": [],
        "home": [("/rss/home.rss", None)],
        "home and sections": [("/rss/home.rss", None), *words],
    }
    site.feeds = own[what.feeds]
    site.sitemaps = [what.sitemap_path] if what.sitemap_path else []
    site.news_sitemaps = [path for path in site.sitemaps if "news" in path]


def fill(world: World, plan: Plan) -> None:
    """Stories of the past days, those to come, copies on other sites, edits, oddities."""
    start = world.started
    ordinary = [s for s in world.sites if not s.key.startswith("fault-")]
    for index, site in enumerate(ordinary):
        _fill_site(world, site, plan, index)
    _syndicate(world, ordinary, plan)
    for site in world.sites:
        if site.key.startswith("fault-"):
            _fill_faults(world, site, plan)
    for site in ordinary:
        _edits(world, site, start, plan)
    if plan.relayout:
        name, _, hours = plan.relayout.partition("@")
        for site in world.sites:
            if name in (site.id, site.key):
                site.relayout_at = start + float(hours or 1) * HOUR


def _feed_works(site: WebSite) -> bool:
    quirks = site.template.feed_quirks
    good = [
        p
        for p, section in site.feeds
        if section is None
        and not any(
            re.search(rule, p) and what in ("empty", "404", "loop") for rule, what in quirks.items()
        )
    ]
    return bool(good)


def _sitemap_works(site: WebSite) -> bool:
    """A sitemap lists all articles, not those of two days only."""
    return bool(site.sitemap_rules) or any(
        site.sitemap_kind(m) in ("index", "month", "all") for m in site.sitemaps
    )


def _fill_site(world: World, site: WebSite, plan: Plan, index: int) -> None:
    rng = rng_for(plan.seed, "fill", site.key)
    start = world.started
    single = (
        [("list",)]
        + ([("feed",)] if _feed_works(site) else [])
        + ([("sitemap",)] if _sitemap_works(site) else [])
    )
    specials = {3 + 4 * k: _SPECIALS[(index * 3 + k) % len(_SPECIALS)] for k in range(3)}
    if index % 4 == 1:
        specials[15] = "video"
    for number in range(plan.articles):
        special = specials.get(number, "")
        channels: tuple[str, ...] = (
            CHANNELS if special or rng.random() < 0.7 else rng.choice(single)
        )
        if special in ("nofollow-page", "rel-nofollow"):
            channels = ()
        age = rng.uniform(0.02, 1.0) * 3 * DAY if number % 3 else rng.uniform(0.01, 0.5) * DAY
        story = world.new_story(site, start - age, special=special, channels=channels)
        story.optional = special == "video"
        if number == 9:
            old = f"/tin-cu-{story.number}.html"
            site.redirects[old] = story.path
    for _ in range(2 if _sitemap_works(site) else 0):
        world.new_story(
            site,
            start - plan.too_old_days * DAY * rng.uniform(1, 3),
            special="too-old",
            channels=("sitemap",),
        )
    at = start
    # A rank among 33: the busiest site publishes nine times as much as the
    # quietest, the mean stays.
    share = 2.44 * 9 ** (-(index * 7 % 33) / 32) if plan.rhythm else 1.0
    busiest = plan.rate * share * max(NEWSROOM) if plan.rhythm else plan.rate
    while plan.rate > 0:
        at += rng.expovariate(busiest) * HOUR
        if at > start + plan.duration_h * HOUR:
            break
        if plan.rhythm and rng.random() > NEWSROOM[local(at).hour] / max(NEWSROOM):
            continue
        world.new_story(site, at, channels=CHANNELS if rng.random() < 0.8 else rng.choice(single))


def _syndicate(world: World, sites: list[WebSite], plan: Plan) -> None:
    rng = rng_for(plan.seed, "syndicate")
    plain = [
        s
        for site in sites
        for s in site.stories
        if not s.special and s.channels == CHANNELS and not site.challenge
    ]
    for story in rng.sample(plain, k=min(len(plain), max(1, len(plain) // 14))):
        others = [s for s in sites if s is not story.site]
        for site in rng.sample(others, k=min(len(others), rng.randint(1, 3))):
            world.syndicate(story, site, story.published + rng.uniform(0.1, 3) * HOUR)


def _fill_faults(world: World, site: WebSite, plan: Plan) -> None:
    rng = rng_for(plan.seed, "faults", site.key)
    busy = site.busy = site.name == "Báo Bận"
    wanted = set(FAULTS) if plan.faults in ("all", "quiet") else set(plan.faults.split(","))
    names = [
        f.name
        for f in FAULTS.values()
        if f.busy == busy and f.name in wanted and not (plan.faults == "quiet" and f.busy)
    ]
    for _ in range(5):
        world.new_story(site, world.started - rng.uniform(0.1, 2) * DAY)
    for name in names:
        story = world.new_story(site, world.started - rng.uniform(0.1, 2) * DAY)
        story.optional = FAULTS[name].optional
        site.faults[story.ident] = name


def _edits(world: World, site: WebSite, start: float, plan: Plan) -> None:
    """One story in eight is corrected later: while the world runs, or before it for older ones."""
    rng = rng_for(plan.seed, "edits", site.key)
    kinds = ("digit", "paragraph", "title", "digit")
    for number, story in enumerate(s for s in site.stories if s.special in ("", "noarchive")):
        if number % 8 != 2:
            continue
        late = start + rng.uniform(0.05, max(0.06, plan.duration_h * 0.7)) * HOUR
        at = (
            max(late, story.published + 0.3 * HOUR)
            if number % 16 == 2
            else story.published + rng.uniform(0.2, 2) * HOUR
        )
        story.edits.append((at, kinds[number // 8 % 4]))
        if number % 24 == 10:
            story.edits.append((at + HOUR, "digit"))
