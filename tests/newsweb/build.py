"""Make the worlds of the layouts: which sites, on which hosts, with which stories."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests.newsweb.faults import BAD_FEEDS, BAD_SITEMAPS, FAULTS
from tests.newsweb.language import rng_for, slugify
from tests.newsweb.templates import IP_SITES, TEMPLATES, Template
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
    faults: str = "all"  # all | none | quiet (nothing that makes a crawler back off) | names, comma-separated
    too_old_days: float = 30.0
    relayout: str = ""  # "site@hours": that site is redesigned then


#: Oddities that ordinary sites have beside plain stories; two or three of them per site, in turn.
_SPECIALS = ("noindex", "xrobots", "noarchive", "disallowed", "gone", "missing", "nofollow-page", "rel-nofollow")


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
        world.add_site(site)
    if plan.faults != "none":
        for number, (key, name) in enumerate((("tienphong.vn", "Báo Lỗi"), ("tienphong.vn", "Báo Bận")), 200):
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
        world.add_site(_named_site(world, entry))
    fill(world, replace(plan, faults="none"))
    return world


def read_sites(path: Path) -> list[dict[str, Any]]:
    data = json.loads(path.read_text(encoding="utf-8"))
    rows = data["sites"] if isinstance(data, dict) and "sites" in data else data
    if isinstance(rows, dict):
        rows = [{"id": key, **value} for key, value in rows.items()]
    return [row for row in rows if row.get("enabled", True)]


def _path(url: str) -> str:
    parts = urlsplit(url)
    return (parts.path or "/") + (f"?{parts.query}" if parts.query else "")


def _named_site(world: World, entry: dict[str, Any]) -> WebSite:
    ident = str(entry["id"])
    hosts = [str(h).lower() for h in entry.get("hosts") or [ident]]
    home = str(entry.get("home") or f"https://{hosts[0]}/")
    host = urlsplit(home).netloc.lower() or hosts[0]
    template = TEMPLATES.get(ident) or TEMPLATES.get(host.removeprefix("www.")) or _unknown(entry, host)
    sections = [
        (p, _label(p)) for url in entry.get("sections") or [] if (p := _path(_url(url))) != "/"
    ] or template.sections()
    aliases = tuple(h for h in [*hosts, *map(str, entry.get("aliases") or [])] if h != host)
    feeds = [(_path(_url(f)), _section_of(_path(_url(f)), sections)) for f in entry.get("feeds") or []]
    maps = [_path(_url(m)) for m in entry.get("sitemaps") or []]
    for url in [*(entry.get("feeds") or []), *(entry.get("sitemaps") or []), *(entry.get("sections") or [])]:
        other = urlsplit(_url(url)).netloc.lower()
        if other and other != host and other not in aliases:
            aliases += (other,)
    twin = next((h for h in aliases if h.startswith(("m.", "amp."))), "")
    template = _fitting(template, entry, host, sections)
    site = WebSite(
        world,
        ident,
        ident,
        template,
        "https",
        host,
        sections,
        home=_path(home),
        feeds=feeds,
        sitemaps=maps,
        twin_host=twin,
        aliases=tuple(a for a in aliases if a != twin),
        crawl_delay=0.0,
        floor_s=float(entry.get("delay_s") or 0.0),
        robots=template.robots,
        challenge=template.challenge,
    )
    site.latest = frozenset(
        p for p, _ in sections if re.search(r"/(tin-moi|tin-tuc-24h|tin-24h|doc-nhanh|tin-moi-cap-nhat)\b", p)
    )
    site.news_sitemaps = [
        m for m in maps if re.search("news", m) and not re.search(r"sitemap-index|latest|/news-\d", m)
    ]
    return site


def _url(value: Any) -> str:
    return str(value["url"]) if isinstance(value, dict) else str(value)


def _label(path: str) -> str:
    return path.strip("/").split("/")[-1].split(".")[0].replace("-", " ").capitalize() or "Tin"


def _section_of(path: str, sections: list[tuple[str, str]]) -> int | None:
    """The section that a feed belongs to, by its last word; None = all of the site."""
    word = re.sub(r"(-\d+)?(\.rss)?$", "", path.rsplit("/", 1)[-1])
    found = [i for i, (p, _) in enumerate(sections) if word and slugify(_label(p)) == word]
    return found[0] if found else None


def _unknown(entry: dict[str, Any], host: str) -> Template:
    return replace(TEMPLATES["tienphong.vn"], name=str(entry.get("name") or host), shape="/{slug}-post{id}.html")


def _fitting(template: Template, entry: dict[str, Any], host: str, sections: list[tuple[str, str]]) -> Template:
    """The template with a shape of address that the site's article_pattern matches; says so when none does."""
    pattern = entry.get("article_pattern")
    if not pattern:
        return template
    shapes = dict.fromkeys((template.shape, *(t.shape for t in TEMPLATES.values())))
    for shape in shapes:
        for ids, sample in (
            (template.ids, _sample_id(template)),
            ("seq", "4954454"),
            ("seq", "777777"),
            ("stamp", "20261001172513622"),
        ):
            path = shape.format(
                slug="tin-thu-mot-hai-ba",
                id=sample,
                section=sections[0][0].strip("/").split("/")[0].split(".")[0],
                num=41,
            )
            if re.search(str(pattern), f"https://{host}{path}"):
                return (
                    template
                    if (shape, ids) == (template.shape, template.ids)
                    else replace(template, shape=shape, ids=ids)
                )
    print(f"newsweb: no shape of address fits article_pattern site={entry['id']} pattern={pattern}", file=sys.stderr)
    return template


def _sample_id(template: Template) -> str:
    if template.ids == "seq":
        return str(template.first_id + 11)
    return "20261001172513622" if template.ids == "stamp" else template.ids[3:] + "261001172513622"


def _own_feeds(site: WebSite) -> None:
    site.feeds = [("/rss/home.rss", None)] + [
        (f"/rss/{slugify(label)}.rss", i) for i, (_, label) in enumerate(site.sections[:2])
    ]
    site.sitemaps = ["/sitemap.xml", "/sitemaps/google-news.xml"]
    site.news_sitemaps = ["/sitemaps/google-news.xml"]


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
        and not any(re.search(rule, p) and what in ("empty", "404", "loop") for rule, what in quirks.items())
    ]
    return bool(good)


def _fill_site(world: World, site: WebSite, plan: Plan, index: int) -> None:
    rng = rng_for(plan.seed, "fill", site.key)
    start = world.started
    single = [("list",)] + ([("feed",)] if _feed_works(site) else []) + ([("sitemap",)] if site.sitemaps else [])
    specials = {3 + 4 * k: _SPECIALS[(index * 3 + k) % len(_SPECIALS)] for k in range(3)}
    if index % 4 == 1:
        specials[15] = "video"
    for number in range(plan.articles):
        special = specials.get(number, "")
        channels: tuple[str, ...] = CHANNELS if special or rng.random() < 0.7 else rng.choice(single)
        if special in ("nofollow-page", "rel-nofollow"):
            channels = ()
        age = rng.uniform(0.02, 1.0) * 3 * DAY if number % 3 else rng.uniform(0.01, 0.5) * DAY
        story = world.new_story(site, start - age, special=special, channels=channels)
        story.optional = special == "video"
        if number == 9:
            old = f"/tin-cu-{story.number}.html"
            site.redirects[old] = story.path
    for _ in range(2 if site.sitemaps else 0):
        world.new_story(
            site, start - plan.too_old_days * DAY * rng.uniform(1, 3), special="too-old", channels=("sitemap",)
        )
    at = start
    while plan.rate > 0:
        at += rng.expovariate(plan.rate) * HOUR
        if at > start + plan.duration_h * HOUR:
            break
        world.new_story(site, at, channels=CHANNELS if rng.random() < 0.8 else rng.choice(single))


def _syndicate(world: World, sites: list[WebSite], plan: Plan) -> None:
    rng = rng_for(plan.seed, "syndicate")
    plain = [
        s for site in sites for s in site.stories if not s.special and s.channels == CHANNELS and not site.challenge
    ]
    for story in rng.sample(plain, k=min(len(plain), max(1, len(plain) // 14))):
        others = [s for s in sites if s is not story.site]
        for site in rng.sample(others, k=min(len(others), rng.randint(1, 3))):
            world.syndicate(story, site, story.published + rng.uniform(0.1, 3) * HOUR)


def _fill_faults(world: World, site: WebSite, plan: Plan) -> None:
    rng = rng_for(plan.seed, "faults", site.key)
    busy = site.name == "Báo Bận"
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
