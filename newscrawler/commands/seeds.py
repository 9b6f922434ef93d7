"""`scrapy seeds VERB`: where crawls start: list, add, remove, and offer to the
frontier what is due."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import signal
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from scrapy.settings import BaseSettings

from newscrawler import cli
from newscrawler.commands import sites as sites_command
from newscrawler.crawl import opening, site_choice
from newscrawler.crawl.announced_lists import Announced
from newscrawler.crawl.websub import Subscription, Subscriptions
from newscrawler.discovery import list_revisits, onboarding, overlay, proposal, seed_worth
from newscrawler.discovery.feeds import parse_feed
from newscrawler.discovery.seeds import Seed, seed_links, seeds
from newscrawler.discovery.sites import Refusal, Site, Sites, SitesError
from newscrawler.extraction.document import Document
from newscrawler.fleet import identity
from newscrawler.fleet.freshness import span
from newscrawler.frontier import connect
from newscrawler.frontier.found import FoundSeeds
from newscrawler.frontier.queue import Frontier, FrontierError, Record
from newscrawler.items import Kind, Link, Outcome
from newscrawler.store.base import StoreError
from newscrawler.utils.display import number_of
from newscrawler.web import urls
from newscrawler.web.robots import RobotsRules

if TYPE_CHECKING:
    from newscrawler.crawl.polite_fetch import FetchedPage

VERBS = {
    "list": ("[SITE]", "a row per seed, those known to be dead too"),
    "add": (
        "URL [--kind KIND]",
        "a feed, sitemap or section; of a home page it shows what there is to add",
    ),
    "remove": ("URL", "visit it no more as a seed"),
    "refresh": ("[--site A,B] [--every 5m]", "offer the seeds that are due to the frontier"),
    "report": (
        "[SITE]",
        "how often each seed is visited, what it is worth, which to drop or ask less; the dead"
        " ones first",
    ),
    "hubs": ("[SITE]", "feeds whose hub tells of new entries at once (PUBLIC_URL)"),
}
EXAMPLES = """\
  scrapy seeds add https://example.vn/
  scrapy seeds add https://example.vn/rss/tin-moi.rss
  scrapy seeds refresh --site example.vn --every 5m"""
#: Seconds that an address to be added is waited for; statuses that none of a seed may have.
_LOOK_S = 60.0
_NO_SEED = frozenset({400, 401, 403, 404, 405, 406, 410, 451})
KINDS = {"feed": Kind.FEED, "sitemap": Kind.SITEMAP, "section": Kind.SECTION}


class Command(cli.Command):
    requires_project = True
    requires_crawler_process = False
    own_settings = {"LOG_ENABLED": False}

    def syntax(self) -> str:
        return (
            "list [SITE] | add URL | remove URL | refresh [options] | report [SITE] | hubs [SITE]"
        )

    def short_desc(self) -> str:
        return "List, add and remove the seeds of sites; offer those that are due to the frontier"

    def long_desc(self) -> str:
        verbs = [f"  {f'{verb} {usage}':<34} {text}" for verb, (usage, text) in VERBS.items()]
        tail = [
            "Changes are kept in DATA_DIR, sites.json stays as it is.",
            "The home page of a site that is not known yet gives an entry for sites.json.",
        ]
        return "\n".join(
            [
                f"{self.short_desc()}.",
                "Without a verb: list.",
                "",
                *verbs,
                "",
                *tail,
                "",
                "Examples:",
                EXAMPLES,
            ]
        )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.formatter_class = cli.VerbsHelp
        cli.add_json_option(parser)
        parser.add_argument(
            "--kind", choices=tuple(KINDS), help="add: what the URL is; default: by its look"
        )
        parser.add_argument(
            "--yes",
            action="store_true",
            help="add: take everything that a known home page names, or an address unseen",
        )
        parser.add_argument(
            "--site",
            metavar="A,B",
            help="refresh: these sites only (default: all that are enabled)",
        )
        parser.add_argument(
            "--every",
            type=cli.span_s,
            metavar="TIME",
            help="refresh: again and again, e.g. 5m, until Ctrl-C",
        )

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        assert self.settings is not None
        verb, rest = cli.verb_of(args, VERBS, "list")
        if verb == "refresh":
            self.exitcode = refresh(self.settings, rest, opts)
            return
        sites = sites_command.load(self.settings)
        if verb == "report":
            chosen = [_site(sites, name) for name in rest] or sites.enabled()
            report(self.settings, sites, chosen, opts.as_json)
            return
        if verb == "hubs":
            hubs(self.settings, sites, [_site(sites, name).id for name in rest], opts.as_json)
            return
        if verb == "list":
            _list([_site(sites, name) for name in rest] or list(sites), opts.as_json)
            return
        if len(rest) != 1 or urls.canonicalize(rest[0]) is None:
            raise cli.UsageError(
                f"one http(s) address is needed: scrapy seeds {verb} URL", print_help=False
            )
        if verb == "add":
            add(self.settings, sites, rest[0], opts)
        else:
            remove(self.settings, sites, rest[0], opts.as_json)


def _list(sites: Sequence[Site], as_json: bool) -> None:
    rows = [row for site in sites for row in seed_rows(site)]
    cli.print_rows(rows, ("site", "kind", "status", "url", "note"), as_json)


def _site(sites: Sites, name: str) -> Site:
    """:raises UsageError: no such site or host; names those that may have been meant"""
    site = sites.find(name)
    if site is None:
        near = sites.near(name)
        hint = (
            f"did you mean {', '.join(near)}?"
            if near
            else "see `scrapy sites list`; a new site is added by the address of its home page:"
            " scrapy seeds add https://HOST/ --yes"
        )
        raise cli.UsageError(f"unknown site {name!r}; {hint}", print_help=False)
    return site


def seed_rows(site: Site) -> list[dict[str, Any]]:
    """Every seed as the file and the operator name it; sitemaps of a month with
    their placeholders."""

    def made(kind: Kind, url: str, status: str = "", note: str = "") -> dict[str, Any]:
        return {
            "site": site.id,
            "kind": str(kind),
            "status": status or None,
            "url": url,
            "note": note or None,
        }

    return [
        made(Kind.HOME, site.home),
        *(made(Kind.FEED, s.url, s.status, s.note) for s in site.feeds),
        *(made(Kind.SITEMAP, s.url, s.status, s.note) for s in site.sitemaps),
        *(made(Kind.SECTION, url) for url in site.sections),
    ]


# ---------------------------------------------------------------- add, remove
def add(settings: BaseSettings, sites: Sites, url: str, opts: argparse.Namespace) -> None:
    kind = KINDS[opts.kind] if opts.kind else _kind_by_look(url)
    host = urls.domain_of(url)
    site = sites.find(host)
    if kind is not None or (site is not None and urlsplit(url).path not in ("", "/")):
        known = site or _site(sites, host)
        link = Sites([replace(known, enabled=True)]).identify(url, kind=kind or Kind.SECTION)
        if isinstance(link, Refusal):
            cli.fail(f"{url} is not taken: {link.reason}")
        is_feed = not opts.yes and _is_feed(settings, link.url) and kind is None
        _store(settings, known, {link.url: Kind.FEED if is_feed else link.kind}, opts.as_json)
        return
    page, document, found = _examined(settings, url)
    if site is None:
        _propose(settings, page, document, found, asked=host, keep=opts.yes, as_json=opts.as_json)
        return
    moved_to = urls.domain_of(page.url)
    if sites.by_host(moved_to) is not site and site.enabled:
        cli.note(
            f"{site.id} has moved: its home page is on {moved_to} now. Put {moved_to} first in its"
            f" hosts in sites.json, and {site.host} into its aliases"
        )
    new = _unknown_seeds(site, found)
    if opts.yes:
        _store(settings, site, new, opts.as_json)
    else:
        _show_new(site, new, url, opts.as_json)


def _is_feed(settings: BaseSettings, url: str) -> bool:
    """Looks at an address that is to be a seed: exit 1 where it would never bring anything. A site
    that is away now, or a queue that is, says nothing of the address."""
    from newscrawler.crawl.polite_fetch import fetch_polite  # aiohttp
    from newscrawler.fetch.client import FetchError, FetchRefused

    anyway = "--yes takes it all the same"
    try:
        page = asyncio.run(fetch_polite(url, settings, patience_s=_LOOK_S, say=cli.note))
    except (FetchRefused, ValueError) as exc:
        cli.fail(f"{url} is not taken: {exc}; {anyway}")
    except (FetchError, FrontierError, opening.StartRefused) as exc:
        cli.note(f"{url} was not looked at: {exc}")
        return False
    if page.status in _NO_SEED:
        cli.fail(f"{url} is not taken: it answered {page.status}; {anyway}")
    if page.status != 200:
        cli.note(f"{url} answered {page.status}")
        return False
    return bool(parse_feed(page.body, page.url, page.header("content-type")).entries)


def _show_new(site: Site, new: dict[str, Kind], url: str, as_json: bool) -> None:
    rows = [{"site": site.id, "kind": str(k), "url": u} for u, k in new.items()]
    cli.print_rows(rows, ("site", "kind", "url"), as_json)
    cli.note(
        f"{len(new)} new for {site.id}; nothing was changed. `scrapy seeds add {url} --yes` takes"
        " all of them"
    )


def _propose(
    settings: BaseSettings,
    page: FetchedPage,
    document: Document,
    found: onboarding.Found,
    *,
    asked: str,
    keep: bool,
    as_json: bool,
) -> None:
    """Prints an entry for sites.json; ``keep`` puts it into the operator's changes,
    so that it is crawled."""
    entry = proposal.entry(found, document, datetime.now(UTC).date().isoformat(), asked=asked)
    if as_json:
        cli.print_object(entry)
    else:
        cli.print_rows(_proposal_rows(entry), ("what", "value"), as_json=False)
    what = (
        f"{page.url}: {number_of(len(found.feeds), 'feed')},"
        f" {number_of(len(found.sitemaps), 'sitemap')},"
        f" {number_of(len(found.sections), 'section')}. "
    )
    if not keep:
        cli.note(
            what
            + "Nothing was changed: --yes keeps it, --json prints it as an entry for sites.json."
        )
        return
    folder = opening.data_dir(settings)
    try:
        state = overlay.read(folder)
        state.sites = [*(site for site in state.sites if site.get("id") != entry["id"]), entry]
        overlay.write(folder, state)
    except (SitesError, OSError) as exc:
        cli.fail(str(exc))
    cli.note(what + f"{entry['id']} is crawled from the next start on.")


def _proposal_rows(entry: dict[str, Any]) -> list[dict[str, Any]]:
    """The entry for people: its facts, then a row for each seed."""
    facts = ("id", "name", "language", "zone", "delay_s", "home")
    rows = [{"what": name, "value": str(entry[name])} for name in facts]
    for kind, label in (("sections", "section"), ("feeds", "feed"), ("sitemaps", "sitemap")):
        for seed in entry[kind]:
            rows.append({"what": label, "value": seed if isinstance(seed, str) else seed["url"]})
    return rows + [{"what": "article", "value": url} for url in entry["article_examples"]]


def _kind_by_look(url: str) -> Kind | None:
    if onboarding.looks_like_sitemap(url):
        return Kind.SITEMAP
    return Kind.FEED if onboarding.looks_like_feed(url) else None


def _unknown_seeds(site: Site, found: onboarding.Found) -> dict[str, Kind]:
    """What the page names and the site does not have, dead ones counted as known: nobody
    should add them again."""
    sites = Sites([replace(site, enabled=True)])
    have = {urls.canonicalize(row["url"]) for row in seed_rows(site)}
    new: dict[str, Kind] = {}
    for kind, addresses in (
        (Kind.FEED, found.feeds),
        (Kind.SITEMAP, found.sitemaps),
        (Kind.SECTION, found.sections),
    ):
        for address in addresses:
            link = sites.identify(address, kind=kind)
            if not isinstance(link, Refusal) and link.url not in have and address not in have:
                new.setdefault(link.url, kind)
    return new


def _examined(settings: BaseSettings, url: str) -> tuple[FetchedPage, Document, onboarding.Found]:
    """The home page, fetched as politely as any page. Exit 1 when it cannot be had."""
    from newscrawler.crawl.polite_fetch import fetch_polite  # aiohttp
    from newscrawler.fetch.client import FetchError

    try:
        page = asyncio.run(fetch_polite(url, settings, say=cli.note))
        sitemaps = _robots_sitemaps(settings, urls.domain_of(page.url))
    except (FetchError, FrontierError, opening.StartRefused, ValueError) as exc:
        cli.fail(f"{url} was not fetched: {exc}")
    if page.status != 200:
        cli.fail(f"{url} answered {page.status}; a home page is needed to find seeds")
    document = Document(page.body, page.url, page.header("content-type"))
    found = onboarding.examine(document, sitemaps)
    _read_indexes(settings, found)
    return page, document, found


def _read_indexes(settings: BaseSettings, found: onboarding.Found) -> None:
    """The site's own pages of feeds and sections, each fetched at its delay; one that
    cannot be had is left out."""
    from newscrawler.crawl.polite_fetch import fetch_polite  # aiohttp
    from newscrawler.fetch.client import FetchError

    for url in found.indexes:
        try:
            page = asyncio.run(fetch_polite(url, settings, say=cli.note))
        except (FetchError, FrontierError, opening.StartRefused, ValueError) as exc:
            cli.note(f"{url} was not read: {exc}")
            continue
        if page.status != 200:
            continue
        if parse_feed(page.body, page.url, page.header("content-type")).entries:
            found.feeds.append(url)  # it looked like a page of feeds and is one
        else:
            onboarding.add_index(found, Document(page.body, page.url, page.header("content-type")))


def _robots_sitemaps(settings: BaseSettings, domain: str) -> list[str]:
    """Of the robots.txt that was read on the way to the page."""

    async def ask(frontier: Frontier) -> list[str]:
        entry = await frontier.robots(domain)
        if entry is None:
            return []
        rules = RobotsRules.parse_answer(
            entry.status, entry.body, str(settings["ROBOTSTXT_USER_AGENT"])
        )
        return list(rules.sitemaps)

    named: list[str] = with_frontier(settings, Sites(), ask)
    return named


def _store(settings: BaseSettings, site: Site, added: dict[str, Kind], as_json: bool) -> None:
    folder = opening.data_dir(settings)
    try:
        state = overlay.read(folder)
        for url, kind in added.items():
            state.add_seed(site.id, url, kind)
        overlay.write(folder, state)
    except (SitesError, OSError) as exc:
        cli.fail(str(exc))
    rows = [{"site": site.id, "kind": str(kind), "url": url} for url, kind in added.items()]
    cli.print_rows(rows, ("site", "kind", "url"), as_json)
    cli.note(f"{number_of(len(added), 'seed')} added to {site.id}, visited from the next start on.")
    if not site.enabled:
        cli.note(f"{site.id} is switched off: `scrapy sites enable {site.id}`")


def remove(settings: BaseSettings, sites: Sites, url: str, as_json: bool) -> None:
    site = _site(sites, urls.domain_of(url))
    wanted = {url, urls.canonicalize(url)}
    row = next((r for r in seed_rows(site) if r["url"] in wanted and r["kind"] != Kind.HOME), None)
    if row is None:
        cli.fail(
            f"{url} is no feed, sitemap or section of {site.id}; see `scrapy seeds list {site.id}`"
        )
    folder = opening.data_dir(settings)
    try:
        state = overlay.read(folder)
        state.remove_seed(site.id, row["url"])
        overlay.write(folder, state)
    except (SitesError, OSError) as exc:
        cli.fail(str(exc))
    cli.print_rows([row], ("site", "kind", "url"), as_json)
    cli.note(f"1 seed removed from {site.id}.")


# ---------------------------------------------------------------- refresh
def refresh(settings: BaseSettings, rest: list[str], opts: argparse.Namespace) -> int:
    """Offers once, or every so often until Ctrl-C; then a frontier that is away is waited for.

    :raises UsageError: an address was named
    """
    if rest:
        raise cli.UsageError(
            "refresh takes no address; name sites with --site A,B", print_help=False
        )
    every_s = _every_s(opts.every) if opts.every is not None else 0.0
    names = [name.strip() for name in (opts.site or "").split(",") if name.strip()]

    async def once() -> None:
        sites = _chosen(settings, names)
        rows = await _with_frontier(
            settings, sites, partial(_offer, sites=sites, settings=settings)
        )
        cli.print_rows(rows, ("site", "offered", "due", "refused"), opts.as_json)
        sys.stdout.flush()  # a log of --every is read while it grows

    try:
        asyncio.run(_again_and_again(once, every_s) if every_s else once())
    except KeyboardInterrupt:
        return 0
    except (FrontierError, opening.StartRefused) as exc:
        cli.fail(str(exc))
    finally:
        opening.stop_embedded(settings)
    return 0


async def _again_and_again(once: Callable[[], Awaitable[None]], every_s: float) -> None:
    """Until Ctrl-C. Its mark is looked at between two rounds: a cancelled round may not
    notice (asyncio.wait_for of Python 3.11 drops a cancellation that comes together with
    the answer that it waits for)."""
    stop = asyncio.Event()

    def stopped() -> None:
        stop.set()
        current.cancel()

    current: asyncio.Future[None] = asyncio.ensure_future(once())
    asyncio.get_running_loop().add_signal_handler(signal.SIGINT, stopped)
    while True:
        try:
            await current
        except FrontierError as exc:
            cli.note(f"not offered, trying again in {every_s:.0f} s: {exc}")
        except asyncio.CancelledError:
            if not stop.is_set():
                raise
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(every_s):
                await stop.wait()
        if stop.is_set():
            return
        current = asyncio.ensure_future(once())


def _every_s(every_s: float) -> float:
    if every_s < 1:
        raise cli.UsageError("--every must be a second or more: 30s, 5m, 1h", print_help=False)
    return every_s


def _chosen(settings: BaseSettings, names: list[str]) -> Sites:
    sites = sites_command.load(settings)
    if not names:
        return sites
    return sites.only([_site(sites, name).id for name in names])


async def _offer(
    frontier: Frontier, *, sites: Sites, settings: BaseSettings
) -> list[dict[str, Any]]:
    """A row per site: seeds offered, those that were due, those refused by the queue
    (reason and number)."""
    await frontier.put_domains(site_choice.domain_policies(sites, settings))
    now_ms = await frontier.operator.now_ms()
    announced = Announced(FoundSeeds(frontier.client, lambda: frontier.layout))
    rows = []
    for site in sites.enabled():
        links = seed_links(site, now_ms) + await announced.links(sites, site)
        result = await frontier.add(links)
        refused = ", ".join(f"{reason} {number}" for reason, number in result.refused.items())
        rows.append(
            {
                "site": site.id,
                "offered": len(links),
                "due": result.added,
                "refused": refused or None,
            }
        )
    return rows


# ---------------------------------------------------------------- hubs
def hubs(settings: BaseSettings, sites: Sites, chosen: list[str], as_json: bool) -> None:
    """A row per subscription, without what only its hub may know."""

    async def ask(frontier: Frontier) -> list[Subscription]:
        return await Subscriptions(frontier.client).all()

    try:
        found = [
            sub for sub in with_frontier(settings, sites, ask) if not chosen or sub.site in chosen
        ]
    except (FrontierError, opening.StartRefused) as exc:
        cli.fail(str(exc))
    now_s = time.time()
    rows = [
        {
            "site": sub.site,
            "state": sub.state,
            "pushes": sub.pushes,
            "last_push_s": round(now_s - sub.pushed_s) if sub.pushed_s else None,
            "ends_in_s": round(sub.expires_s - now_s) if sub.state == "active" else None,
            "hub": sub.hub,
            "url": sub.feed,
            "note": sub.reason or None,
        }
        for sub in found
    ]
    for row in [] if as_json else rows:
        row |= {"last push": span(row["last_push_s"]), "ends in": span(row["ends_in_s"])}
    columns = ("site", "state", "pushes", "last push", "ends in", "hub", "url", "note")
    cli.print_rows(rows, columns, as_json)
    if not settings.get("PUBLIC_URL"):
        cli.note("PUBLIC_URL is not set: no hub is asked")


# ---------------------------------------------------------------- report
#: In the order of the report: what an operator has to look at first.
STATES = (
    "dead",
    "missing",
    "moved",
    "refused",
    "challenge",
    "failing",
    "alive",
    "asleep",
    "new",
    "live",
)


def report(settings: BaseSettings, sites: Sites, chosen: Sequence[Site], as_json: bool) -> None:
    """A row per seed, and per list that the crawl has found by itself, with what the frontier
    remembers of it; how many are in each state on stderr."""

    async def ask(frontier: Frontier) -> list[dict[str, Any]]:
        now_ms = await frontier.operator.now_ms()
        articles = await _recent_articles(settings, now_ms)
        rows = []
        for site in chosen:
            rows += await _report_rows(frontier, site, now_ms, articles.get(site.id, []))
        _note_pushes(rows, await Subscriptions(frontier.client).all())
        return rows

    try:
        rows = with_frontier(settings, sites, ask)
    except (FrontierError, opening.StartRefused) as exc:
        cli.fail(str(exc))
    rows.sort(key=lambda row: (STATES.index(row["state"]), row["site"]))
    counts = Counter(row["state"] for row in rows)
    for row in [] if as_json else rows:
        row["every"], row["next"] = span(row["every_s"]), None
        if row["next_in_s"] is not None:
            row["next"] = span(max(0.0, row["next_in_s"]))
    cli.print_rows(
        rows,
        ("site", "kind", "state", "every", "next", *_WORTH, "note", "url"),
        as_json,
    )
    cli.note(
        f"{len(rows)} seeds: "
        + ", ".join(f"{counts[state]} {state}" for state in STATES if counts[state])
    )
    for line in _coverage_lines(rows):
        cli.note(line)


def _note_pushes(rows: Sequence[dict[str, Any]], subs: Sequence[Subscription]) -> None:
    """A feed whose hub tells of what is new finds nothing first at its visits, and is no less
    worth for that."""
    pushed = {sub.feed: sub for sub in subs if sub.pushes and sub.state == "active"}
    for row in rows:
        sub = pushed.get(row["url"])
        if sub is not None:
            row["note"] = f"its hub has told of it {sub.pushes} times"
            row["advice"] = "keep" if row["advice"] == "drop" else row["advice"]


def _coverage_lines(rows: Sequence[dict[str, Any]]) -> list[str]:
    """Per site, what its richest list shows of the stored articles."""
    best: dict[str, dict[str, Any]] = {}
    for row in rows:
        if row["covers"] is not None and row["covers"] >= best.get(row["site"], row)["covers"]:
            best[row["site"]] = row
    return [
        f"{site}: its richest list shows {row['covers']:.0%} of the articles that were stored in"
        f" {_WORTH_DAYS} days: {row['url']}"
        for site, row in best.items()
    ]


#: Columns that say what a list is worth: articles that it found first, that it shows alone, links
#: that were known from elsewhere, visits, what to do, the share of the site's articles it shows.
_WORTH = ("articles", "only", "doubles", "visits", "advice", "covers")
#: Articles of the last days are counted.
_WORTH_DAYS = 3


async def _recent_articles(settings: BaseSettings, now_ms: int) -> dict[str, list[bytes]]:
    """Site -> url ids of what was stored lately; {} where there is no store."""
    since = datetime.fromtimestamp(now_ms / 1000 - _WORTH_DAYS * 86_400, UTC)
    found: dict[str, list[bytes]] = {}
    try:
        store = opening.open_article_store(settings, must_exist=True)
        await store.open()
        try:
            async for article in store.scan(since):
                found.setdefault(article.site, []).append(bytes.fromhex(article.id))
        finally:
            await store.close()
    except StoreError:
        return {}
    return found


async def _report_rows(
    frontier: Frontier, site: Site, now_ms: int, articles: Sequence[bytes]
) -> list[dict[str, Any]]:
    alone = Sites([replace(site, enabled=True)])
    found = FoundSeeds(frontier.client, lambda: frontier.layout)
    more = [
        Seed(site.id, str(one.kind), one.kind, one.url, via=one.via)
        for one in await found.of(site.host)
    ]
    rows, memories = [], {}
    for seed in [*seeds(site, now_ms), *more]:
        link = alone.identify(seed.url, kind=seed.kind, now_ms=now_ms)
        if isinstance(link, Link):
            record = await frontier.record(link.url_id, link.domain)
            rows.append(_report_row(seed, record, now_ms))
            state = record.content_state if record is not None else b""
            memories[seed.url] = list_revisits.Memory.read(state)
    worths = seed_worth.judged(memories, articles)
    for row in rows:
        worth = worths[row["url"]]
        row |= {"only": worth.only, "shows": worth.shows, "advice": worth.advice or None}
        row["covers"] = None if worth.covers is None else round(worth.covers, 3)
        row["cost"] = None if worth.cost is None else round(worth.cost, 1)
    return rows


def _report_row(seed: Seed, record: Record | None, now_ms: int) -> dict[str, Any]:
    memory, outcome, due_ms, last_visit_ms = list_revisits.Memory.read(b""), None, None, None
    if record is not None:
        memory = list_revisits.Memory.read(record.content_state)
        outcome, last_visit_ms = record.outcome, record.last_visit_ms or None
        due_ms = record.due_ms or record.next_visit_ms
    state = list_revisits.state_of(memory, outcome, now_ms // 1000, is_dead_in_file=seed.dead)
    note = _report_note(seed, state, outcome, memory)
    return {
        "site": seed.site,
        "kind": seed.label,
        "state": state,
        "every_s": memory.interval_s or None,
        "next_in_s": round((due_ms - now_ms) / 1000) if due_ms else None,
        "last_visit_ms": last_visit_ms,
        "articles": memory.articles,
        "doubles": memory.doubles,
        "visits": memory.visits,
        "found_on": seed.via or None,
        "fresh_ms": memory.fresh_s * 1000 or None,
        "note": note or None,
        "url": seed.url,
    }


def _report_note(
    seed: Seed, state: str, outcome: Outcome | None, memory: list_revisits.Memory
) -> str:
    if state == "alive":
        return "sites.json says that it is dead"
    if memory.note:
        return memory.note
    if state in ("failing", "refused"):
        return str(outcome)
    return f"found: {urlsplit(seed.via).path or seed.via}" if seed.via else ""


Work = Callable[[Frontier], Awaitable[Any]]


async def _with_frontier(settings: BaseSettings, sites: Sites, work: Work) -> Any:
    config = opening.frontier_config(
        settings, loopback_only=site_choice.all_loopback(sites, settings)
    )
    frontier = Frontier(connect(opening.redis_url(settings)), config, identity.worker_id())
    try:
        await frontier.open()
        return await work(frontier)
    finally:
        await frontier.close()


def with_frontier(settings: BaseSettings, sites: Sites, work: Work) -> Any:
    """Runs ``work`` on the frontier of these settings; an embedded server is stopped after when
    nobody else uses it."""
    try:
        return asyncio.run(_with_frontier(settings, sites, work))
    finally:
        opening.stop_embedded(settings)
