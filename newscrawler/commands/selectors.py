"""`scrapy selectors`: the selector sets of the sites: what there is, how good it is, which one is used."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from scrapy.commands import ScrapyCommand
from scrapy.settings import BaseSettings

from newscrawler import cli, wiring
from newscrawler.discovery.sites import Sites, SitesError
from newscrawler.extraction.context import PageContext
from newscrawler.extraction.document import Document
from newscrawler.extraction.selectors import SelectorSet, apply
from newscrawler.frontier import connect
from newscrawler.frontier import server as embedded
from newscrawler.frontier.queue import FrontierUnavailable
from newscrawler.items import Kind, Link
from newscrawler.selectorstore import gate, schema
from newscrawler.selectorstore.generate import LEAST_PAGES, MODES, split
from newscrawler.selectorstore.samples import distinct, make_sample
from newscrawler.selectorstore.store import SAMPLE_PAGES, SelectorStore, UnknownSet

VERBS: dict[str, tuple[str, str]] = {
    "list": ("", "every domain: state, versions, who made the set"),
    "show": ("DOMAIN", "one set as JSON, with its provenance (--version N)"),
    "test": ("DOMAIN [PAGE.html ...]", "run a set on files, or on the domain's newest stored pages, and judge it"),
    "load": ("", "check the files in selectors/ and put what is new into Redis"),
    "generate": ("DOMAIN", "make a set from the domain's stored pages now (--mode)"),
    "approve": ("DOMAIN", "use a version: --version N, else the one on probation, else the newest"),
    "rollback": ("DOMAIN", "go back to the version that was active before, or to --version N"),
    "pin": ("DOMAIN", "keep the active set, whatever is loaded or generated"),
    "unpin": ("DOMAIN", "let it be replaced again"),
    "disable": ("DOMAIN", "use no set and make none: the generic chain serves the domain"),
    "history": ("DOMAIN", "what happened to the domain's sets, newest first"),
}
_COLUMNS = ("domain", "state", "active", "probation", "shadow", "made_by", "versions", "samples", "pinned", "reason")


class Command(ScrapyCommand):
    requires_project = True
    requires_crawler_process = False
    default_settings = {"LOG_LEVEL": "WARNING"}

    def syntax(self) -> str:
        return f"[options] {'|'.join(VERBS)} [DOMAIN]"

    def short_desc(self) -> str:
        return "Selector sets: list, show, test, load, generate, approve, rollback, pin, disable, history"

    def long_desc(self) -> str:
        verbs = ". ".join(f"{name}{' ' + args if args else ''}: {text}" for name, (args, text) in VERBS.items())
        return f"{verbs}. docs/selectors.md shows the life of a set."

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        cli.add_json_option(parser)
        parser.add_argument(
            "--version",
            dest="set_version",
            type=int,
            metavar="N",
            help="the version that is meant (show, test, approve, rollback)",
        )
        parser.add_argument("--url", help="test: the address that a single page file came from")
        parser.add_argument(
            "--mode", choices=[m for m in MODES if m != "off"], help="generate: how, instead of SELECTOR_GENERATION"
        )

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        verb, *rest = args or [""]
        if verb not in VERBS:
            raise cli.UsageError(f"unknown action {verb!r}; one of {', '.join(VERBS)}", print_help=False)
        wanted = VERBS[verb][0]
        most = None if "..." in wanted else 1 if wanted else 0
        if (wanted and not rest) or (most is not None and len(rest) > most):
            raise cli.UsageError(f"usage: scrapy selectors {verb} {wanted}".rstrip(), print_help=False)
        work: Callable[[SelectorStore, list[str], argparse.Namespace], Awaitable[int]]
        work = getattr(self, f"_{verb}")
        try:
            code = self._with_store(lambda store: work(store, rest, opts))
        except (UnknownSet, schema.SetError, SitesError, FrontierUnavailable, wiring.StartRefused, OSError) as exc:
            cli.fail(str(exc))
        self.exitcode = code

    @property
    def _settings(self) -> BaseSettings:
        assert self.settings is not None
        return self.settings

    def _with_store(self, work: Callable[[SelectorStore], Awaitable[int]]) -> int:
        settings = self._settings
        given = bool(settings.get("REDIS_URL"))

        async def run() -> int:
            client: Any = connect(wiring.redis_url(settings), single=False)
            try:
                store = wiring.open_selector_store(settings, client)
                await store.ping()
                return await work(store)
            finally:
                await client.aclose()

        try:
            return asyncio.run(run())
        finally:
            if not given:
                embedded.stop_if_last(wiring.data_dir(settings))

    # ------------------------------------------------------------ views
    async def _list(self, store: SelectorStore, args: list[str], opts: argparse.Namespace) -> int:
        for error in store.shipped_errors:
            cli.note(f"not valid: {error}")
        rows = [asdict(known) for known in await store.known()]
        cli.print_rows(rows, _COLUMNS, opts.as_json)
        return 0

    async def _show(self, store: SelectorStore, args: list[str], opts: argparse.Namespace) -> int:
        doc = await store.document(args[0], opts.set_version)
        if opts.as_json:
            cli.print_object(doc)
        else:
            _print_set(doc)
        return 0

    async def _history(self, store: SelectorStore, args: list[str], opts: argparse.Namespace) -> int:
        rows = [
            {**e, "at": datetime.fromtimestamp(e["at_ms"] / 1000, UTC).isoformat(timespec="seconds")}
            for e in await store.history(args[0])
        ]
        if not rows:
            cli.fail(f"nothing is known of {args[0]}; `scrapy selectors list` shows what there is")
        cli.print_rows(rows, ("at", "who", "what", "version", "reason"), opts.as_json)
        return 0

    # ------------------------------------------------------------ files and pages
    async def _load(self, store: SelectorStore, args: list[str], opts: argparse.Namespace) -> int:
        done = await store.load_folder()
        if opts.as_json:
            cli.print_object(asdict(done))
        else:
            print(f"{len(done.new)} sets loaded, {len(done.unchanged)} unchanged, {len(done.errors)} not valid")
        for error in done.errors:
            cli.note(error)
        return 1 if done.errors else 0

    async def _test(self, store: SelectorStore, args: list[str], opts: argparse.Namespace) -> int:
        domain, files = args[0], args[1:]
        selectors = schema.parse(await store.document(domain, opts.set_version), domain)
        pages = _file_pages(files, opts.url or f"https://{domain}/") if files else self._stored_pages(domain)
        if not pages:
            cli.fail(f"no stored page of {domain} in the raw store; name page files, or crawl it first")
        sites = wiring.load_sites(self._settings)
        rows = [_tried(url, body, selectors, _context(sites, url, fetched)) for url, body, fetched, _ in pages]
        cli.print_rows(rows, ("url", "title", "published", "authors", "content_chars", "missing"), opts.as_json)
        samples = distinct([s for s in (make_sample(u, b, _context(sites, u, f)) for u, b, f, _ in pages) if s])
        if len(samples) < LEAST_PAGES:
            cli.note(f"The gate needs {LEAST_PAGES} distinct article pages; these are {len(samples)}.")
            return 1 if any(row["missing"] for row in rows) else 0
        report = gate.judge(selectors, *split(samples))
        if opts.as_json:
            cli.print_object({"gate": report.metrics(), "passed": report.passed})
        else:
            print()
            columns = ("field", "passed", "coverage", "agree", "vary", "reason")
            cli.print_rows([{"field": n, **asdict(f)} for n, f in report.fields.items()], columns, False)
            print(f"Gate over {report.pages} pages: {'passed' if report.passed else 'NOT passed'}")
        return 0 if report.passed else 1

    async def _generate(self, store: SelectorStore, args: list[str], opts: argparse.Namespace) -> int:
        from newscrawler.generation_ext import GenerationConfig, make_generator, make_llm

        settings = self._settings
        if opts.mode:
            settings.set("SELECTOR_GENERATION", opts.mode, priority="cmdline")
        domain = args[0]
        refs = [(url, ref) for url, _, _, ref in self._stored_pages(domain)] or await store.samples(domain)
        if not refs:
            cli.fail(f"no stored page of {domain}: crawl it first (scrapy crawl news -a sites={domain})")
        services = wiring.Services(
            settings=settings,
            worker="reader",
            sites=wiring.load_sites(settings),
            chosen=[],
            redis_url="",
            loopback_only=False,
            _parts={"redis": store.client, "selectors": store, "raw": wiring.open_raw_store(settings)},
        )
        llm = make_llm(settings)
        result = await make_generator(services, GenerationConfig.of(settings), llm).run(domain, forced=True, refs=refs)
        await llm.close()
        row = {
            "domain": domain,
            "state": result.state,
            "version": result.version,
            "made_by": result.made_by,
            "calls": result.spent.attempts,
            "tokens": result.spent.tokens_in + result.spent.tokens_out,
            "reason": result.reason,
        }
        cli.print_rows([row], tuple(row), opts.as_json)
        return 0 if result.state == "probation" else 1

    # ------------------------------------------------------------ changes
    async def _approve(self, store: SelectorStore, args: list[str], opts: argparse.Namespace) -> int:
        return self._said(opts, args[0], "active", await store.approve(args[0], opts.set_version))

    async def _rollback(self, store: SelectorStore, args: list[str], opts: argparse.Namespace) -> int:
        return self._said(opts, args[0], "active", await store.rollback(args[0], opts.set_version))

    async def _pin(self, store: SelectorStore, args: list[str], opts: argparse.Namespace) -> int:
        await store.pin(args[0])
        return self._said(opts, args[0], "pinned", None)

    async def _unpin(self, store: SelectorStore, args: list[str], opts: argparse.Namespace) -> int:
        await store.pin(args[0], False)
        return self._said(opts, args[0], "unpinned", None)

    async def _disable(self, store: SelectorStore, args: list[str], opts: argparse.Namespace) -> int:
        await store.document(args[0])  # or there is nothing to disable
        await store.disable(args[0])
        return self._said(opts, args[0], "disabled", None)

    @staticmethod
    def _said(opts: argparse.Namespace, domain: str, what: str, version: str | None) -> int:
        if opts.as_json:
            cli.print_object({"domain": domain, "did": what, "version": version})
        else:
            print(f"{domain}: {what}" + (f", version {version}" if version else ""))
        return 0

    # ------------------------------------------------------------ pages
    def _stored_pages(self, domain: str) -> list[tuple[str, bytes, datetime, str]]:
        """The newest HTML pages of the domain's hosts: (url, body, fetched, ref), twice what a generation needs."""
        sites = wiring.load_sites(self._settings)
        found: dict[str, tuple[str, bytes, datetime, str]] = {}
        for ref, page in wiring.open_raw_store(self._settings).scan():
            host = _host(page.url)
            site = sites.by_host(host)
            if host != domain and (site is None or site.id != domain):
                continue
            found.pop(page.url, None)  # the newest visit counts, and stands last
            found[page.url] = (page.url, page.body, page.fetched, ref)
        articles = [row for row in found.values() if _is_article(sites, row[0])]
        return (articles or list(found.values()))[-2 * SAMPLE_PAGES :]


def _context(sites: Sites, url: str, fetched: datetime | None) -> PageContext:
    site = sites.by_host(_host(url))
    if site is None:
        return PageContext(fetched=fetched)
    return PageContext(site_name=site.name, language=site.language, zone=site.zone, fetched=fetched)


def _is_article(sites: Sites, url: str) -> bool:
    """By the site's pattern or the heuristic on addresses; tag pages and the like are no evidence of a template."""
    link = sites.identify(url)
    return isinstance(link, Link) and link.kind is Kind.ARTICLE


def _host(url: str) -> str:
    return url.split("://", 1)[-1].split("/", 1)[0].lower()


def _file_pages(files: list[str], url: str) -> list[tuple[str, bytes, datetime, str]]:
    now = datetime.now(UTC)
    base = url.rstrip("/")
    return [(url if len(files) == 1 else f"{base}/{Path(f).name}", Path(f).read_bytes(), now, "") for f in files]


def _tried(url: str, body: bytes, selectors: SelectorSet, context: PageContext) -> dict[str, Any]:
    values = apply(Document(body, url), selectors, context)
    found = {name: field.value for name, field in values.items()}
    return {
        "url": url, "title": found.get("title"), "published": found.get("published"), "authors": found.get("authors"),
        "content_chars": len(found.get("content") or ""),
        "missing": ", ".join(n for n in ("title", "content") if not found.get(n)),
        "origins": {name: field.origin for name, field in values.items()},
    }  # fmt: skip


def _print_set(doc: dict[str, Any]) -> None:
    print(f"{doc['domain']} version {doc['version']} ({doc['state']})")
    for variant in doc["variants"]:
        print(f"  template {variant.get('template', 'article')}")
        for name, value in variant["fields"].items():
            if name == "content":
                print(f"    content    {' | '.join(value['root'])}")
                for css in value.get("exclude", []):
                    print(f"      without  {css}")
                continue
            shown = [c if isinstance(c, str) else _candidate(c) for c in value]
            print(f"    {name:<10} {' | '.join(shown)}")
    for name, value in doc["provenance"].items():
        print(f"  {name}: {value}")


def _candidate(candidate: dict[str, Any]) -> str:
    css = candidate.get("css") or ""
    if candidate.get("kind", "css") != "css":
        return f"({candidate['kind']}) {css}".strip()
    return css + (f"@{candidate['attr']}" if candidate.get("attr") else "")
