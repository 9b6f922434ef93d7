"""`scrapy sites VERB`: the sites that are crawled, how quick we are on each;
switch one on or off."""

from __future__ import annotations

import argparse
import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from redis.exceptions import RedisError
from scrapy.settings import BaseSettings

from newscrawler import cli
from newscrawler.crawl import opening, site_choice
from newscrawler.crawl.render_lessons import RenderLessons
from newscrawler.discovery import contact, overlay
from newscrawler.discovery.sites import Site, Sites, SitesError
from newscrawler.fetch.browser import BrowserUnavailable
from newscrawler.fleet.freshness import DAYS, STAGES, figures, span
from newscrawler.fleet.registry import Registry, RegistryUnavailable, SiteSums
from newscrawler.frontier import connect
from newscrawler.frontier.queue import FrontierError
from newscrawler.items import Kind

VERBS = {
    "list": (
        "[SITE ...]           every site: class, delay, seeds, how far its facts can be trusted"
    ),
    "show": "SITE ...             all that is known of a site, with the operator's changes",
    "enable": "SITE ...             crawl it from the next start on",
    "disable": "SITE ...             crawl it no more; what is queued stays",
    "render": (
        "SITE on|off|auto     read its pages with a browser, as scripts fill them; auto: forget"
        " what was set and learnt"
    ),
    "check": (
        "[SITE ...]           ask each feed and section and two articles of it once; what answers,"
        " what moved"
    ),
    "freshness": (
        "[SITE ...]           how long new articles of the last days took from publication to the"
        " search"
    ),
}
COLUMNS = (
    "site",
    "enabled",
    "class",
    "delay_s",
    "feeds",
    "live",
    "sitemaps",
    "sections",
    "confidence",
    "name",
)


class Command(cli.Command):
    requires_project = True
    requires_crawler_process = False
    own_settings = {"LOG_ENABLED": False}

    def syntax(self) -> str:
        return "VERB [SITE ...] [options]"

    def short_desc(self) -> str:
        return "List and show the sites; enable or disable one"

    def long_desc(self) -> str:
        verbs = "; ".join(f"{verb} {' '.join(text.split())}" for verb, text in VERBS.items())
        return (
            f"Verbs: {verbs}. A site is named by its id, a host or an alias. The sites are in"
            " sites.json (SITES_FILE); what is switched here is kept in DATA_DIR/sites-state.json."
        )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        cli.add_json_option(parser)
        parser.add_argument("--sites", metavar="A,B", help="check: the same as naming them")
        parser.add_argument(
            "--apply",
            action="store_true",
            help="check: keep what was learnt as the operator's changes",
        )
        parser.add_argument(
            "--again", action="store_true", help="check: ask also what was asked lately"
        )

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        assert self.settings is not None
        verb, names = cli.verb_of(args, VERBS, "list")
        if verb == "render":
            render(self.settings, names)
            return
        if verb == "check":
            self.exitcode = check(self.settings, names, opts)
            return
        sites = load(self.settings)
        chosen = named(sites, names)
        if verb == "freshness":
            freshness(self.settings, [site.id for site in chosen], opts.as_json)
        elif verb == "list":
            _print_sites(chosen or list(sites), opts.as_json)
            self.exitcode = 1 if sites.errors else self.exitcode
        elif not names:
            raise cli.UsageError(
                f"which site? scrapy sites {verb} SITE; see `scrapy sites list`", print_help=False
            )
        elif verb == "show":
            lessons = asyncio.run(render_lessons(self.settings, chosen))
            for site in chosen:
                show(site, opts.as_json, lessons)
        else:
            switch(self.settings, chosen, verb == "enable")
            _print_sites(named(load(self.settings), names), opts.as_json)


def _print_sites(sites: Sequence[Site], as_json: bool) -> None:
    cli.print_rows([row(site) for site in sites], COLUMNS, as_json)


def load(settings: BaseSettings) -> Sites:
    """The sites with the operator's changes. What is left out of the file is said; a file that
    cannot be read at all ends the command (exit 1)."""
    try:
        sites = site_choice.load_sites(settings)
    except SitesError as exc:
        cli.fail(str(exc))
    for error in sites.errors:
        cli.note(f"site left out: {error}")
    return sites


def named(sites: Sites, names: Sequence[str]) -> list[Site]:
    """:raises UsageError: with near matches, for a name that is no site"""
    found = []
    for name in names:
        site = sites.find(name)
        if site is None:
            near = sites.near(name)
            hint = f"did you mean {', '.join(near)}?" if near else "see `scrapy sites list`"
            raise cli.UsageError(f"unknown site {name!r}; {hint}", print_help=False)
        found.append(site)
    return found


# ---------------------------------------------------------------- check
CHECK_COLUMNS = ("site", "robots", "asks_s", "home", "feeds", "sections", "articles", "set", "note")
#: A line of progress this often, seconds.
PROGRESS_S = 10.0


def check(settings: BaseSettings, names: list[str], opts: argparse.Namespace) -> int:
    """Exit code: 0 all sites were asked, 1 stopped before, or none has a home page that answers."""
    chosen = _chosen(settings, [*names, *split_names(opts.sites or "")])
    folder = opening.data_dir(settings)
    contacts = {site.id: contact.Contact(site.id) for site in chosen}
    is_stopped = False
    try:
        asyncio.run(_ask(settings, chosen, opts.again, contacts))
    except KeyboardInterrupt:
        is_stopped = True
    except (FrontierError, opening.StartRefused, ValueError) as exc:
        cli.fail(str(exc))
    if not is_stopped and not any(one.is_heard for one in contacts.values()):
        cli.note("No site answered: is there a network? Nothing was kept.")
        return 1
    known = contact.read(folder)
    asked = [contacts[site.id] for site in chosen]
    done = [one if one.checked else known.get(one.site, one) for one in asked]
    _print_contacts(done, opts.as_json)
    if opts.apply:
        _apply(folder, done)
    _note_what_is_left(done, opts.apply)
    answered = any(one.home is not None and one.home.is_good for one in done)
    return int(is_stopped or not answered)


def split_names(text: str) -> list[str]:
    """Of a comma-separated option."""
    return [name.strip() for name in text.split(",") if name.strip()]


def _chosen(settings: BaseSettings, names: list[str]) -> Sequence[Site]:
    """By the file's facts, not by what an earlier check made of them."""
    try:
        sites = Sites.load(settings.get("SITES_FILE") or "")
        sites = overlay.applied(sites, opening.data_dir(settings), learnt=False)
    except SitesError as exc:
        cli.fail(str(exc))
    return named(sites, names) or sites.enabled()


def _print_contacts(done: Sequence[contact.Contact], as_json: bool) -> None:
    if as_json:
        for one in done:
            cli.print_object({**asdict(one), "set": one.set_verdict})
        return
    cli.print_rows([check_row(one) for one in done], CHECK_COLUMNS, False)
    if odd := [row for one in done for row in odd_rows(one)]:
        cli.show()
        cli.print_rows(odd, ("site", "kind", "state", "url", "detail"), False)


def _note_what_is_left(done: Sequence[contact.Contact], is_applied: bool) -> None:
    left = sum(not one.complete for one in done)
    if left:
        cli.note(
            f"{left} of {len(done)} sites are not done; `scrapy sites check` goes on with what is"
            " missing"
        )
    elif not is_applied and any(odd_rows(one) for one in done):
        cli.note("`scrapy sites check --apply` keeps it: dead seeds rest, moved ones are followed")


async def _ask(
    settings: BaseSettings,
    chosen: Sequence[Site],
    again: bool,
    contacts: dict[str, contact.Contact],
) -> None:
    from newscrawler.crawl import first_contact

    ended: set[str] = set()
    held: list[str] = []  # lines of sites that did not answer: where none does, one line says it

    def told(one: contact.Contact) -> None:
        ended.add(one.site)
        contacts[one.site] = one
        row = check_row(one)
        shown = ", ".join(f"{c} {row[c]}" for c in CHECK_COLUMNS[1:] if row[c] not in (None, ""))
        held.append(f"[{len(ended)}/{len(chosen)}] {one.site}: {shown}")
        if any(contacts[site].is_heard for site in ended):
            for line in held:
                cli.note(line)
            held.clear()

    async def progress() -> None:
        while True:
            await asyncio.sleep(PROGRESS_S)
            waiting = [site.id for site in chosen if site.id not in ended]
            cli.note(f"{len(ended)} of {len(chosen)} sites done; at work: {', '.join(waiting[:5])}")

    plural = "" if len(chosen) == 1 else "s"
    cli.note(
        f"Asking {len(chosen)} site{plural}, each at its own pace; Ctrl-C keeps what is learnt"
    )
    talk = asyncio.ensure_future(progress())
    try:
        await first_contact.check(settings, chosen, again=again, told=told)
    finally:
        talk.cancel()


def check_row(one: contact.Contact) -> dict[str, Any]:
    feeds, all_feeds = one.count(Kind.FEED, Kind.SITEMAP)
    sections, all_sections = one.count(Kind.SECTION)
    states = Counter(seen.state for seen in one.seeds if not seen.is_good)
    notes = [] if one.complete else ["not done"]
    notes += [f"{number} {state}" for state, number in states.items()]
    read = sum(article.state == "article" for article in one.articles)
    return {
        "site": one.site,
        "robots": one.robots or None,
        "asks_s": one.crawl_delay_s,
        "home": one.home.state if one.home else None,
        "feeds": f"{feeds}/{all_feeds}",
        "sections": f"{sections}/{all_sections}",
        "articles": f"{read}/{len(one.articles)}",
        "set": one.set_verdict,
        "note": ", ".join(notes),
    }


def odd_rows(one: contact.Contact) -> list[dict[str, Any]]:
    """What is not as sites.json has it, and articles that could not be read."""
    seen = [*([one.home] if one.home else []), *one.seeds]
    rows = [
        {"site": one.site, "kind": s.kind, "state": s.state, "url": s.url, "detail": s.detail}
        for s in seen
        if s.state != "ok"
    ]
    for article in one.articles:
        wrong = [f"{name} {word}" for name, word in article.fields.items() if word != "agrees"]
        if article.state != "article" or wrong:
            detail = f"set: {', '.join(wrong)}" if wrong else article.detail
            rows.append(
                {
                    "site": one.site,
                    "kind": str(Kind.ARTICLE),
                    "state": article.state,
                    "url": article.url,
                    "detail": detail,
                }
            )
    return rows


def _apply(folder: Path, done: Sequence[contact.Contact]) -> None:
    """Only what answers proved. A check that was stopped does not take back what a
    whole one had told."""
    try:
        state = overlay.read(folder)
        for one in done:
            if one.is_heard and (one.complete or one.site not in state.learnt):
                state.learnt[one.site] = contact.learnt(one)
        overlay.write(folder, state)
    except (SitesError, OSError) as exc:
        cli.fail(f"cannot be kept in {folder / overlay.STATE_FILE}: {exc}")
    told = [state.learnt.get(one.site, {}) for one in done]
    counts = {name: sum(len(entry.get(name, ())) for entry in told) for name in ("dead", "moved")}
    homes = sum("home" in entry for entry in told)
    cli.note(
        f"Kept in {folder / overlay.STATE_FILE}: {counts['dead']} dead, {counts['moved']} moved"
        f" seeds, {homes} moved homes. Workers take it up at their next start"
    )


def row(site: Site) -> dict[str, Any]:
    alive = [feed for feed in site.feeds if feed.status != "dead"]
    return {
        "site": site.id,
        "name": site.name,
        "enabled": site.enabled,
        "class": site.cls,
        "delay_s": site.delay_s,
        "feeds": len(alive),
        "live": sum(feed.status == "live" for feed in alive),
        "sitemaps": sum(sitemap.status != "dead" for sitemap in site.sitemaps),
        "sections": len(site.sections),
        "confidence": site.confidence.get("overall") or "-",
    }


def facts(site: Site) -> dict[str, Any]:
    """Everything, in the names of sites.json."""
    return {
        "site": site.id,
        "name": site.name,
        "enabled": site.enabled,
        "class": site.cls,
        "class_reason": site.cls_reason,
        "delay_s": site.delay_s,
        "render": site.render,
        "language": site.language,
        "zone": site.zone,
        "home": site.home,
        "hosts": list(site.hosts),
        "aliases": dict(site.aliases),
        "article_pattern": site.article_pattern,
        "id_group": site.id_group,
        "id_time": site.id_time,
        "path_rewrites": [f"{pattern} -> {new}" for pattern, new in site.path_rewrites],
        "sections": list(site.sections),
        "feeds": [
            {"url": f.url, "status": f.status, "confidence": f.confidence, "note": f.note}
            for f in site.feeds
        ],
        "sitemaps": [
            {
                "url": s.url,
                "kind": s.kind,
                "status": s.status,
                "confidence": s.confidence,
                "note": s.note,
            }
            for s in site.sitemaps
        ],
        "confidence": dict(site.confidence),
        "source": site.source,
        "notes": list(site.notes),
    }


def freshness(settings: BaseSettings, names: Sequence[str], as_json: bool) -> None:
    """A row per site that had a new article in the last days, the slowest first;
    --json: seconds."""

    async def ask() -> dict[str, SiteSums]:
        client = connect(opening.redis_url(settings), single=False)
        try:
            return await Registry(client).sites()
        finally:
            await client.aclose()

    try:
        sums = asyncio.run(ask())
    except (RegistryUnavailable, opening.StartRefused) as exc:
        cli.fail(str(exc))
    finally:
        opening.stop_embedded(settings)
    chosen = {site: row for site, row in sums.items() if not names or site in names}
    rows = [found for site, row in chosen.items() if (found := _freshness_row(site, row))]
    rows.sort(key=lambda row: -(row["p95_s"] or 0))
    if not rows:
        cli.note(f"no article of the last {DAYS} days came out after its site was first visited")
    if as_json:
        for row in rows:
            cli.print_object(row)
        return
    columns = ("site", "articles", "p50", "p95", "discovered_p95", "fetched_p95", "searchable_p95")
    cli.print_rows([_with_spans(row) for row in rows], columns, False)


def _freshness_row(site: str, row: SiteSums) -> dict[str, Any] | None:
    """Times in seconds; None: the site had no new article."""
    whole = figures(row.lags)
    if not whole.articles:
        return None
    parts = (stage for stage in STAGES if stage != "total")
    return {
        "site": site,
        "articles": whole.articles,
        "p50_s": whole.p50_s,
        "p95_s": whole.p95_s,
        **{f"{stage}_p95_s": figures(row.lags, stage).p95_s for stage in parts},
    }


def _with_spans(row: dict[str, Any]) -> dict[str, Any]:
    """Seconds as people read them."""
    found = {}
    for name, value in row.items():
        is_time = name.endswith("_s")
        found[name.removesuffix("_s")] = span(value) if is_time else value
    return found


def show(site: Site, as_json: bool, lessons: dict[str, str]) -> None:
    everything = facts(site)
    if learnt := [f"{host}: {lessons[host]}" for host in site.hosts if host in lessons]:
        everything["render_learnt"] = learnt
    if as_json:
        cli.print_object(everything)
        return
    for name, value in everything.items():
        lines = _lines(value)
        cli.show(f"{name.replace('_', ' ') + ':':17}{lines[0] if lines else '-'}")
        for line in lines[1:]:
            cli.show(f"{'':17}{line}")
    cli.show()


def render(settings: BaseSettings, args: list[str]) -> None:
    """Whether a site's pages are read with a browser; auto forgets that and what was learnt.

    :raises UsageError: no site, or another word than on, off and auto
    """
    if len(args) != 2 or args[1] not in ("on", "off", "auto"):
        raise cli.UsageError("scrapy sites render SITE on|off|auto", print_help=False)
    site, word = named(load(settings), args[:1])[0], args[1]
    folder = opening.data_dir(settings)
    try:
        state = overlay.read(folder)
        if word == "auto":
            state.render.pop(site.id, None)
        else:
            state.render[site.id] = word == "on"
        overlay.write(folder, state)
    except (SitesError, OSError) as exc:
        cli.fail(f"cannot be kept in {folder / overlay.STATE_FILE}: {exc}")
    forgotten = asyncio.run(forget_lessons(settings, site)) if word == "auto" else 0
    told = {"on": "every page", "off": "no page", "auto": "what is learnt to need it"}[word]
    cli.note(f"{site.id}: {told} is read with a browser, from the next start of a worker on")
    if forgotten:
        cli.note("What was learnt of it is forgotten; workers that run now know within 30 s")
    if word == "on":
        try:
            from newscrawler.crawl.rendering import browser_of  # aiohttp

            browser_of(settings)
        except BrowserUnavailable as exc:
            cli.note(f"There is no browser here: {exc}")


async def forget_lessons(settings: BaseSettings, site: Site) -> int:
    """How many hosts had a lesson."""
    client = _redis(settings)
    try:
        found = [await RenderLessons(client).forget(host) for host in site.hosts]
    except RedisError as exc:
        cli.fail(f"what was learnt could not be forgotten: {exc}")
    finally:
        await client.aclose()
        opening.stop_embedded(settings)
    return sum(found)


async def render_lessons(settings: BaseSettings, sites: Sequence[Site]) -> dict[str, str]:
    """Host -> what was learnt of its scripts; empty where Redis cannot be asked."""
    try:
        client = _redis(settings)
    except (FrontierError, opening.StartRefused):
        return {}
    try:
        known = await RenderLessons(client).all()
    except RedisError:
        return {}
    finally:
        await client.aclose()
        opening.stop_embedded(settings)
    return {host: known[host].text() for site in sites for host in site.hosts if host in known}


def _redis(settings: BaseSettings) -> Any:
    return connect(opening.redis_url(settings), single=False)


def _lines(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [f"{key}: {item}" for key, item in value.items()]
    if not isinstance(value, list):
        return [str(value)] if value not in ("", None) else []
    return [item if isinstance(item, str) else _joined(item) for item in value]


def _joined(item: dict[str, Any]) -> str:
    return "  ".join(str(part) for part in item.values() if part)


def switch(settings: BaseSettings, sites: Sequence[Site], on: bool) -> None:
    """Keeps the choice in DATA_DIR. Workers that run now keep their sites until
    they start again."""
    folder = opening.data_dir(settings)
    try:
        state = overlay.read(folder)
        state.enabled.update({site.id: on for site in sites})
        overlay.write(folder, state)
    except (SitesError, OSError) as exc:
        cli.fail(f"cannot be kept in {folder / overlay.STATE_FILE}: {exc}")
