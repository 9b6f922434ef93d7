"""First contact with a site: what its home page, feeds, sections and two articles answered. Pure.

The facts of sites.json were collected without asking the sites. `scrapy sites check` asks each
address once; here is how the answers are judged, what of it may be believed without a person, and
the file that keeps it (DATA_DIR/sites-check.json).
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from newscrawler.discovery.feeds import parse_feed
from newscrawler.discovery.sitefile import SeedUrl, Site
from newscrawler.discovery.sitemaps import parse_sitemap
from newscrawler.discovery.sites import Sites
from newscrawler.extraction import teasers
from newscrawler.extraction.document import Document
from newscrawler.items import Kind, Link
from newscrawler.utils.display import number_of
from newscrawler.web import urls
from newscrawler.web.challenge import challenge_reason

CHECK_FILE = "sites-check.json"
#: A list that shows fewer articles of its site is no list of news any more.
LEAST_LINKS = 3
#: A home page that moved to another domain is believed to be the same site when it shows so
#: many of its articles.
SAME_SITE_LINKS = 5
#: A site that was looked at this lately is not asked again.
FRESH = timedelta(hours=12)
_PERMANENT = frozenset({301, 308})
#: Reasons of a fetch with which nothing of the site itself was heard: they say more of this
#: machine's network.
_SILENT = frozenset({"dns", "connect", "timeout", "tls", "proxy", "ssrf", "robots_unknown"})
_SCHEMA = 1


@dataclass(slots=True)
class SiteAnswer:
    """What came back for an address. ``url`` is the last one; ``hops``: (status, from
    where) of each redirect."""

    asked: str
    url: str
    status: int
    body: bytes
    content_type: str | None = None
    hops: list[tuple[int, str]] = field(default_factory=list)


@dataclass(slots=True)
class SeedSeen:
    """``state``: ok | moved | empty | dead | challenge | refused | failed; ``detail`` says
    more in a few words."""

    url: str
    kind: str  # home | feed | sitemap | section
    state: str
    detail: str = ""
    articles: int = 0  # links to articles of the site
    newest: str | None = None  # ISO, of a feed's entries
    moved_to: str = ""

    @property
    def is_good(self) -> bool:
        return self.state in ("ok", "moved")


@dataclass(slots=True)
class ArticleSeen:
    """``fields``: what the selector set says beside the generic chain: agrees | differs | missing
    (the set finds nothing, the chain does). Empty: the site has no set, or the page is no article.
    """

    url: str
    state: str  # article | not article | dead | failed | refused | challenge
    detail: str = ""
    fields: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Contact:
    """Everything that was learnt of one site. ``checked``: ISO, when the last answer came."""

    site: str
    checked: str = ""
    complete: bool = False
    robots: str = ""  # status, or why it could not be had
    crawl_delay_s: float | None = None  # that robots.txt asks of us
    home: SeedSeen | None = None
    seeds: list[SeedSeen] = field(default_factory=list)
    articles: list[ArticleSeen] = field(default_factory=list)
    selectors: str = ""  # version of the set that was tried; "" = the site has none

    def seed(self, url: str) -> SeedSeen | None:
        return next((seen for seen in self.seeds if seen.url == url), None)

    def count(self, *kinds: str) -> tuple[int, int]:
        """(good ones, all) of the seeds of these kinds."""
        chosen = [seen for seen in self.seeds if seen.kind in kinds]
        return sum(seen.is_good for seen in chosen), len(chosen)

    @property
    def set_verdict(self) -> str:
        """One word and the fields: agrees | differs: published, authors | no set | no article."""
        if not self.selectors:
            return "no set"
        read = [article for article in self.articles if article.fields]
        if not read:
            return "no article"
        order = ("title", "published", "authors", "content")
        wrong = [
            name
            for name in order
            if any(article.fields.get(name, "agrees") != "agrees" for article in read)
        ]
        return f"differs: {', '.join(wrong)}" if wrong else "agrees"

    @property
    def is_heard(self) -> bool:
        """Whether the site answered anything: a status, a page, a robots.txt that
        forbids the page."""
        seen: list[SeedSeen | ArticleSeen] = [*self.seeds, *self.articles]
        if self.home is not None:
            seen.append(self.home)
        return any(_is_answer(one) for one in seen)

    def is_fresh(self, now: datetime) -> bool:
        return bool(self.checked) and now - datetime.fromisoformat(self.checked) < FRESH


def _is_answer(seen: SeedSeen | ArticleSeen) -> bool:
    if seen.state == "refused":
        return seen.detail == "robots"
    return seen.detail not in _SILENT


# ---------------------------------------------------------------- judging one answer
def judge_seed(page: SiteAnswer, kind: Kind, site: Site, sites: Sites) -> SeedSeen:
    """:param sites: with ``site`` enabled and its home where it is now"""
    seen = SeedSeen(page.asked, str(kind), "ok")
    if page.status != 200:
        is_gone = page.status in (404, 410)
        seen.state, seen.detail = ("dead" if is_gone else "failed"), f"status {page.status}"
        return seen
    challenge = challenge_reason(page.status, page.body)
    if challenge is not None:
        seen.state, seen.detail = "challenge", challenge
        return seen
    if kind in (Kind.FEED, Kind.SITEMAP):
        _read_entries(seen, page, kind, sites)
    else:
        seen.articles = len(article_links(page, sites))
        if seen.articles < LEAST_LINKS:
            seen.state, seen.detail = "empty", f"{number_of(seen.articles, 'link')} to articles"
    _see_where(seen, page, kind, site, sites)
    return seen


def _read_entries(seen: SeedSeen, page: SiteAnswer, kind: Kind, sites: Sites) -> None:
    error, entries, children = _entries(page, kind)
    if children and not entries:
        seen.detail = f"{children} sitemaps"
        return
    if not entries:
        is_list = error in ("", "empty", "cut off")
        seen.state, seen.detail = ("empty", error or "no entries") if is_list else ("dead", error)
        return
    times = [entry.when for entry in entries if entry.when is not None]
    seen.newest = max(times).isoformat() if times else None
    seen.articles = sum(_is_article(e.url, sites, is_named=e.is_named) for e in entries)
    if not seen.articles:
        seen.state, seen.detail = "empty", f"{len(entries)} entries, no article of the site"


@dataclass(slots=True)
class _Entry:
    """``is_named``: with a title and a time of publication, as articles are."""

    url: str
    when: datetime | None
    is_named: bool


def _entries(page: SiteAnswer, kind: Kind) -> tuple[str, list[_Entry], int]:
    """What is wrong with the list ("" = nothing), its entries, and how many sitemaps it names."""
    if kind is Kind.FEED:
        feed = parse_feed(page.body, page.url, page.content_type)
        named = [_Entry(e.url, e.published, bool(e.title and e.published)) for e in feed.entries]
        return feed.error, named, 0
    sitemap = parse_sitemap(page.body, page.url)
    entries = [
        _Entry(e.url, e.published or e.lastmod, bool(e.title and e.published))
        for e in sitemap.entries
    ]
    return sitemap.error, entries, len(sitemap.children)


def _see_where(seen: SeedSeen, page: SiteAnswer, kind: Kind, site: Site, sites: Sites) -> None:
    """Where redirects led. The spelling that the crawl asks for is no move, nor is
    the other form of a host."""
    if not page.hops or not seen.is_good:
        return
    was, now = sites.identify(page.asked, kind=kind), sites.identify(page.url, kind=kind)
    if isinstance(was, Link) and isinstance(now, Link) and _bare(was.url) == _bare(now.url):
        return
    if not isinstance(now, Link):
        seen.state, seen.detail = "dead", f"leads to {urls.domain_of(page.url)}"
    elif kind is not Kind.HOME and _bare(now.url) == _bare(site.home):
        seen.state, seen.detail = "dead", "leads to the home page"
    else:
        seen.state, seen.moved_to = "moved", now.url
        seen.detail = f"to {now.url}"


def _bare(url: str) -> str:
    return url.partition("://")[2].rstrip("/")


def _is_article(url: str, sites: Sites, *, is_named: bool = False) -> bool:
    return _article(url, sites, is_named=is_named) is not None


def _article(url: str, sites: Sites, *, is_named: bool) -> str | None:
    """The article's address, None of another page. ``is_named``: a feed's title and time or a
    headline say so, which counts where no pattern of the site's articles decides."""
    link = sites.identify(url)
    if not isinstance(link, Link):
        return None
    if link.kind is Kind.ARTICLE:
        return link.url
    site = sites.by_host(link.domain)
    is_believed = is_named and site is not None and not site.article_pattern
    return link.url if is_believed and link.kind is Kind.PAGE else None


def article_links(page: SiteAnswer, sites: Sites) -> list[str]:
    """Articles of the site that a page or feed leads to, each once, in its order."""
    if (page.content_type and "xml" in page.content_type) or page.body.lstrip()[:5] == b"<?xml":
        entries = _entries(page, Kind.FEED)[1]
        return _each_once(_article(e.url, sites, is_named=e.is_named) for e in entries)
    document = Document(page.body, page.url, page.content_type)
    base = urls.Base(document.base_url)
    hrefs = [href for href, _ in document.links()]
    found = _each_once(_article(u, sites, is_named=False) for u in _joined(base, hrefs))
    if len(found) >= LEAST_LINKS:
        return found
    # The look of its addresses says nothing: what stands under headlines does.
    headlines = _joined(base, teasers.headline_hrefs(document))
    return _each_once([*found, *(_article(u, sites, is_named=True) for u in headlines)])


def _joined(base: urls.Base, hrefs: Iterable[str]) -> list[str]:
    return [joined for href in hrefs if (joined := urls.join(base, href))]


def _each_once(found: Iterable[str | None]) -> list[str]:
    return list(dict.fromkeys(url for url in found if url is not None))


def judge_home(page: SiteAnswer, site: Site) -> tuple[SeedSeen, Site]:
    """The home page, and the site with its home where it is now. To another domain it is followed
    only where the redirect is for ever and the page shows the articles that we know the site by;
    else a person has to look."""
    host = urls.domain_of(page.url)
    moved = page.status == 200 and host != urls.domain_of(page.asked)
    if not moved or host in site.hosts:
        alone = Sites([replace(site, enabled=True)])
        return judge_seed(page, Kind.HOME, site, alone), site
    after = with_home(site, page.url)
    sites = Sites([replace(after, enabled=True)])
    seen = judge_seed(page, Kind.HOME, after, sites)
    if not seen.is_good:
        return seen, site
    is_for_ever = all(status in _PERMANENT for status, _ in page.hops)
    shows_it = bool(site.article_pattern) and seen.articles >= SAME_SITE_LINKS
    seen.state, seen.moved_to, seen.detail = "moved", after.home, f"to {after.home}"
    if _same_owner(host, site) or (is_for_ever and shows_it):
        return seen, after
    seen.state, seen.moved_to = "dead", ""
    seen.detail = f"leads to {host}, which may be another site: look at it"
    return seen, site


def _same_owner(host: str, site: Site) -> bool:
    """A host above or below one that the site names: www.a.vn and a.vn, tin.a.vn and a.vn."""
    return any(
        host.endswith(f".{known}") or known.endswith(f".{host}") or host == known
        for known in (urls.domain_of(site.home).removeprefix("www."), *site.hosts, *site.aliases)
    )


def with_home(site: Site, home: str) -> Site:
    """The site with another home: its host comes first, and what was on the old host
    is asked for there."""
    host, old = urls.domain_of(home), urls.domain_of(site.home)
    if host == old:
        return replace(site, home=home)
    hosts = (host, *(h for h in site.hosts if h not in (old, host)))
    aliases = {alias: {old: host}.get(h, h) for alias, h in site.aliases.items() if alias != host}
    return replace(site, home=home, hosts=hosts, aliases={**aliases, old: host})


# ---------------------------------------------------------------- what may be believed
def learnt(contact: Contact) -> dict[str, Any]:
    """The part of a contact that goes into the operator's overlay: only what an answer proves. What
    failed, was refused or was empty may be well tomorrow."""
    home = contact.home
    by_state: dict[str, list[SeedSeen]] = {}
    for seen in contact.seeds:
        by_state.setdefault(seen.state, []).append(seen)
    told = {
        "checked": contact.checked,
        "home": home.moved_to if home is not None and home.state == "moved" else "",
        "live": [seen.url for seen in by_state.get("ok", ())],
        "dead": [seen.url for seen in by_state.get("dead", ())],
        "moved": {seen.url: seen.moved_to for seen in by_state.get("moved", ())},
    }
    return {name: value for name, value in told.items() if value}


def is_learnt(told: Any) -> bool:
    """Whether a value of the overlay has the shape of :func:`learnt`, addresses that can be
    asked for included."""
    if not isinstance(told, dict) or not isinstance(told.get("moved", {}), dict):
        return False
    lists = (told.get("live", []), told.get("dead", []))
    if not all(isinstance(x, list) and all(isinstance(u, str) for u in x) for x in lists):
        return False
    new = [*told.get("moved", {}).values(), *([told["home"]] if "home" in told else [])]
    return all(isinstance(url, str) and urls.canonicalize(url) == url for url in new)


def applied(site: Site, told: Mapping[str, Any]) -> Site:
    """The site with what a check of it told, see :func:`learnt`."""
    day = str(told.get("checked", ""))[:10]
    live, dead = set(told.get("live", ())), set(told.get("dead", ()))
    moved: Mapping[str, str] = told.get("moved", {})
    if told.get("home"):
        site = with_home(site, told["home"])

    def judged(seed: SeedUrl) -> SeedUrl:
        if seed.url in live and seed.status != "live":
            return replace(seed, status="live", note=f"answered on {day}")
        if seed.url in dead and seed.status != "dead":
            return replace(seed, status="dead", note=f"dead on {day}")
        return seed

    def seen(seeds: tuple[SeedUrl, ...]) -> tuple[SeedUrl, ...]:
        out: list[SeedUrl] = []
        for seed in seeds:
            if seed.url not in moved:
                out.append(judged(seed))
                continue
            url = moved[seed.url]
            if url not in {other.url for other in (*seeds, *out)}:
                note = f"moved from {seed.url}, {day}"
                out.append(replace(seed, url=url, status="live", note=note))
        return tuple(out)

    sections = dict.fromkeys(moved.get(url, url) for url in site.sections if url not in dead)
    return replace(
        site, sections=tuple(sections), feeds=seen(site.feeds), sitemaps=seen(site.sitemaps)
    )


# ---------------------------------------------------------------- the file
def read(folder: Path) -> dict[str, Contact]:
    """Site -> what the last checks told; {} where there is none, or it is of another version."""
    try:
        data = json.loads((folder / CHECK_FILE).read_text(encoding="utf-8"))
        if data["schema"] != _SCHEMA:
            return {}
        return {row["site"]: _contact(row) for row in data["sites"]}
    except (OSError, ValueError, KeyError, TypeError):
        return {}


def _contact(row: dict[str, Any]) -> Contact:
    home = row.pop("home")
    seeds, articles = row.pop("seeds"), row.pop("articles")
    return Contact(
        **row,
        home=SeedSeen(**home) if home else None,
        seeds=[SeedSeen(**seed) for seed in seeds],
        articles=[ArticleSeen(**article) for article in articles],
    )


def write(folder: Path, contacts: Iterable[Contact]) -> None:
    """In one step: a crash leaves the old or the new file. OSError if the folder
    cannot be written."""
    folder.mkdir(parents=True, exist_ok=True)
    partial = folder / f"{CHECK_FILE}.{os.getpid()}"
    data = {"schema": _SCHEMA, "sites": [asdict(contact) for contact in contacts]}
    partial.write_text(json.dumps(data, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    partial.replace(folder / CHECK_FILE)


def told_when(folder: Path, sites: Iterable[Site], now: datetime | None = None) -> str:
    """For who starts a crawl: how long ago these sites were looked at, in one line."""
    now = now or datetime.now(UTC)
    known, wanted = read(folder), [site.id for site in sites]
    ages = [
        now - datetime.fromisoformat(known[name].checked)
        for name in wanted
        if name in known and known[name].complete
    ]
    if not ages:
        return (
            "Sites were never looked at from here; `scrapy sites check` tells which feeds and"
            " sections answer"
        )
    days = max(ages).days
    ago = {0: "today", 1: "a day ago"}.get(days, f"{days} days ago")
    of_all = "" if len(ages) == len(wanted) else f", {len(wanted) - len(ages)} of them never"
    return f"{number_of(len(wanted), 'site')}, looked at {ago}{of_all} (`scrapy sites check`)"
