"""`scrapy selectors`: the selector sets of the sites: what there is, how good it is,
which one is used."""

from __future__ import annotations

import argparse
import asyncio
import getpass
import json
import os
import shlex
import subprocess
import tempfile
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from scrapy.settings import BaseSettings

from newscrawler import cli
from newscrawler.crawl import opening, selector_admin, site_choice
from newscrawler.crawl import services as services_module
from newscrawler.discovery.sites import SitesError
from newscrawler.extraction.context import PageContext
from newscrawler.extraction.document import Document
from newscrawler.extraction.selectors import SelectorSet, apply
from newscrawler.frontier import connect
from newscrawler.frontier import redis_server as embedded
from newscrawler.frontier.queue import FrontierUnavailable
from newscrawler.selectorsets import lint, schema
from newscrawler.selectorsets.generate import MODES
from newscrawler.selectorsets.store import SelectorStore, UnknownSet
from newscrawler.store.base import StoreError

VERBS: dict[str, tuple[str, str]] = {
    "list": ("", "every domain: state, versions, who made the set"),
    "show": ("DOMAIN", "one set with its provenance (--version N; --json: as a file for edit)"),
    "test": (
        "DOMAIN [PAGE.html ...]",
        "run a set on files, or on the domain's newest stored pages, and judge it",
    ),
    "lint": (
        "[DOMAIN ...]",
        "what is likely to fail in sets: leads under one tag, captions, positions, generated names",
    ),
    "load": ("", "check the files in selectors/ and put what is new into Redis"),
    "generate": ("DOMAIN", "make a set from the domain's stored pages now (--mode)"),
    "edit": (
        "DOMAIN [FILE.json]",
        "a new version from FILE, or from your EDITOR; it is validated first (--approve, --force)",
    ),
    "bench": (
        "[DOMAIN ...]",
        "ask a model for sets of stored pages and print its figures: --base-url URL --model NAME",
    ),
    "approve": (
        "DOMAIN",
        (
            "use a version that passes validation: --version N, else the one on probation, else the"
            " newest"
        ),
    ),
    "rollback": ("DOMAIN", "go back to the version that was active before, or to --version N"),
    "pin": ("DOMAIN", "keep the active set, whatever is loaded or generated"),
    "unpin": ("DOMAIN", "let it be replaced again"),
    "disable": ("DOMAIN", "use no set and make none: the generic chain serves the domain"),
    "repair": (
        "DOMAIN",
        "parse the articles of the time again in which its set did not fit, from stored pages",
    ),
    "history": ("DOMAIN", "what happened to the domain's sets, newest first"),
}
_EXAMPLES = (
    "scrapy selectors list",
    "scrapy selectors test vnexpress.net                    how good is the set in use?",
    "scrapy selectors history vnexpress.net                 why is it in use?",
    "scrapy selectors rollback vnexpress.net                the one before; again: the one after",
    "scrapy selectors bench --base-url http://127.0.0.1:11434/v1 --model llama3.1:8b",
    (
        "    (LLM_API_KEY in the environment where the server wants a key; pages: what a crawl has"
        " stored)"
    ),
)
_COLUMNS = (
    "domain",
    "state",
    "active",
    "probation",
    "shadow",
    "made_by",
    "versions",
    "samples",
    "pinned",
    "reason",
)


class Command(cli.Command):
    requires_project = True
    requires_crawler_process = False
    own_settings = {"LOG_LEVEL": "WARNING"}

    def syntax(self) -> str:
        return f"[options] {'|'.join(VERBS)} [DOMAIN]"

    def short_desc(self) -> str:
        return (
            "Selector sets: list, show, test, lint, load, generate, edit, approve, rollback, pin,"
            " disable, repair, bench, history"
        )

    def long_desc(self) -> str:
        verbs = [f"  {name + ' ' + args:<28} {text}" for name, (args, text) in VERBS.items()]
        examples = "\n".join(f"  {line}" for line in _EXAMPLES)
        end = "docs/selectors.md shows the life of a set, and the settings for each model server."
        return "\n".join(["Actions:", *verbs, "", "Examples:", examples, "", end])

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.formatter_class = cli.VerbsHelp
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
            "--mode",
            choices=[m for m in MODES if m != "off"],
            help="generate: how, instead of SELECTOR_GENERATION",
        )
        parser.add_argument(
            "--force", action="store_true", help="edit, approve: although validation refuses it"
        )
        parser.add_argument(
            "--approve", action="store_true", help="edit: use the new version at once"
        )
        parser.add_argument(
            "--base-url",
            metavar="URL",
            help="bench: the model's server, e.g. http://127.0.0.1:11434/v1",
        )
        parser.add_argument("--model", metavar="NAME", help="bench: the model")

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        verb, *rest = args or [""]
        if verb not in VERBS:
            what = f"unknown action {verb!r}" if verb else "an action is missing"
            raise cli.UsageError(f"{what}; one of {', '.join(VERBS)}", print_help=False)
        wanted = VERBS[verb][0]
        lacks = wanted and not wanted.startswith("[") and not rest
        has_more = "..." not in wanted and len(rest) > len(wanted.split())
        if lacks or has_more:
            text = f"usage: scrapy selectors {verb} {wanted}".rstrip()
            if not wanted:
                text += f" (without {rest[0]}; the files are those of SELECTORS_DIR)"
            raise cli.UsageError(text, print_help=False)
        work: Callable[[SelectorStore, list[str], argparse.Namespace], Awaitable[int]]
        work = getattr(self, f"_{verb}")
        try:
            code = self._with_store(lambda store: work(store, rest, opts))
        except (
            UnknownSet,
            schema.SetError,
            selector_admin.ValidationRefused,
            SitesError,
            FrontierUnavailable,
            opening.StartRefused,
            StoreError,
        ) as exc:
            cli.fail(str(exc))
        except OSError as exc:
            is_file = exc.filename and exc.strerror
            cli.fail(f"{exc.filename}: {exc.strerror}" if is_file else str(exc))
        except UnicodeDecodeError as exc:  # the file of edit
            cli.fail(f"{rest[-1]}: is not UTF-8 text ({exc.reason})")
        self.exitcode = code

    @property
    def _settings(self) -> BaseSettings:
        assert self.settings is not None
        return self.settings

    def _with_store(self, work: Callable[[SelectorStore], Awaitable[int]]) -> int:
        settings = self._settings
        given = bool(settings.get("REDIS_URL"))

        async def run() -> int:
            client: Any = connect(opening.redis_url(settings), single=False)
            try:
                store = opening.open_selector_store(settings, client)
                await store.ping()
                return await work(store)
            finally:
                await client.aclose()

        try:
            return asyncio.run(run())
        finally:
            if not given:
                embedded.stop_if_last(opening.data_dir(settings))

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
            cli.show("\n".join(selector_admin.described(doc)))
        return 0

    async def _history(
        self, store: SelectorStore, args: list[str], opts: argparse.Namespace
    ) -> int:
        rows = [
            {
                **e,
                "at": datetime.fromtimestamp(e["at_ms"] / 1000, UTC).isoformat(timespec="seconds"),
            }
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
            cli.show(
                f"{len(done.new)} sets loaded, {len(done.unchanged)} unchanged, {len(done.errors)}"
                " not valid"
            )
        for error in done.errors:
            cli.note(error)
        return 1 if done.errors else 0

    async def _lint(self, store: SelectorStore, args: list[str], opts: argparse.Namespace) -> int:
        """Of all domains, or of those named: the version that ``show`` shows."""
        for error in store.shipped_errors if not args else ():
            cli.note(f"not valid: {error}")
        domains = args or [known.domain for known in await store.known()]
        rows, judged = [], 0
        for domain in domains:
            try:
                doc = await store.document(domain, opts.set_version)
            except UnknownSet:
                if args:
                    raise
                continue  # its samples are being collected
            judged += 1
            rows += [asdict(found) for found in lint.lint(schema.parse(doc, domain))]
        for row in rows:
            row["says"] = lint.RULES[row["rule"]]
        if rows or opts.as_json:
            cli.print_rows(rows, ("domain", "where", "rule", "selector", "says"), opts.as_json)
        cli.note(f"{judged} sets, {len(rows)} findings")
        return 1 if rows else 0

    async def _test(self, store: SelectorStore, args: list[str], opts: argparse.Namespace) -> int:
        domain, files = args[0], args[1:]
        selectors = schema.parse(await store.document(domain, opts.set_version), domain)
        if files:
            pages = _file_pages(files, opts.url or f"https://{domain}/")
        else:
            pages = await self._pages(domain)
        if not pages:
            cli.fail(
                f"no stored page of {domain} in the raw store; name page files, or crawl it first"
            )
        context_of = self._context_of()
        rows = [_tried(page, selectors, context_of(page.url, page.fetched)) for page in pages]
        _print_tried(rows, opts.as_json)
        judged = selector_admin.judge_pages(selectors, pages, context_of)
        if judged.report is None:
            cli.note(judged.note)
            return 1 if any(row["missing"] for row in rows) else 0
        if opts.as_json:
            cli.print_object({"gate": judged.report.metrics(), "passed": judged.report.passed})
        else:
            cli.show()
            _print_gate(judged)
        return 0 if judged.report.passed else 1

    async def _generate(
        self, store: SelectorStore, args: list[str], opts: argparse.Namespace
    ) -> int:
        from newscrawler.crawl.selector_jobs import GenerationConfig, make_generator, make_llm

        settings = self._settings
        if opts.mode:
            settings.set("SELECTOR_GENERATION", opts.mode, priority="cmdline")
        domain = args[0]
        refs = [(page.url, page.ref) for page in await self._pages(domain)] or await store.samples(
            domain
        )
        if not refs:
            cli.fail(
                f"no stored page of {domain}: crawl it first (scrapy crawl news -a sites={domain})"
            )
        services = self._services(store)
        llm = make_llm(settings)
        result = await make_generator(services, GenerationConfig.of(settings), llm).run(
            domain, forced=True, refs=refs
        )
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
    async def _approve(
        self, store: SelectorStore, args: list[str], opts: argparse.Namespace
    ) -> int:
        pages = await self._pages(args[0])
        version, judged = await selector_admin.approve(
            store, args[0], opts.set_version, pages, self._context_of(), force=opts.force
        )
        cli.note(judged.note or f"validation {'refused' if judged.refused else 'passed'} it")
        return self._said(opts, args[0], "active", version)

    async def _edit(self, store: SelectorStore, args: list[str], opts: argparse.Namespace) -> int:
        domain = args[0]
        if len(args) > 1:
            text = Path(args[1]).read_text(encoding="utf-8")
        else:
            text = _in_editor(await store.document(domain, opts.set_version))
        pages = await self._pages(domain)
        version, judged = await selector_admin.save_edit(
            store, domain, text, pages, self._context_of(), who=_user(), force=opts.force
        )
        if judged.report is not None and not opts.as_json:
            _print_gate(judged)
        cli.note(judged.note or f"validation {'refused' if judged.refused else 'passed'} it")
        if opts.approve:
            await store.approve(domain, version, who=_user())
            return self._said(opts, domain, "active", str(version))
        return self._said(opts, domain, "added", str(version))

    async def _repair(self, store: SelectorStore, args: list[str], opts: argparse.Namespace) -> int:
        from newscrawler.crawl.drift import repair_articles
        from newscrawler.selectorsets.repairs import Repairs

        repairs = Repairs(store.client)
        repair = await repairs.take(args[0])
        if repair is None:
            cli.fail(
                f"nothing of {args[0]} waits for a repair, or a worker is at it; `scrapy reparse"
                " --site` takes any time"
            )
        await store.refresh()
        services = self._services(store)
        await services.store.open()
        try:
            report = await repair_articles(services, repair)
        finally:
            await services.store.close()
        await repairs.done(repair, report)
        await store.note_repair(repair.domain, repair.version, report)
        if opts.as_json:
            cli.print_object({"domain": args[0], "version": repair.version, **report})
        else:
            rows = [
                {"url": url, "changed": ", ".join(fields)}
                for url, fields in report["articles"].items()
            ]
            cli.print_rows(rows, ("url", "changed"), False)
            cli.show(
                f"{report['pages']} stored pages parsed again, {report['changed']} articles changed"
            )
        return 0

    async def _bench(self, store: SelectorStore, args: list[str], opts: argparse.Namespace) -> int:
        cli.need_checkout("scrapy selectors bench")
        from evaluation import selector_bench

        if not opts.base_url or not opts.model:
            raise cli.UsageError("bench needs --base-url URL and --model NAME", print_help=False)
        domains = args or [site.id for site in site_choice.load_sites(self._settings)]
        measured, bare = [], []
        for domain in domains:
            pages = await self._pages(domain, selector_bench.MOST_PAGES)
            if not pages:
                bare.append(domain)
            measured.append(
                await selector_bench.measure(
                    self._settings,
                    store.client,
                    domain,
                    pages,
                    self._context_of(),
                    opts.base_url,
                    opts.model,
                )
            )
        rows = [row for row in measured if row is not None]
        if bare:
            cli.note(f"without a stored page: {', '.join(bare)}")
        if not rows:
            cli.fail(f"no site has {selector_bench.LEAST} stored article pages; crawl some first")
        if not any(row["answered"] for row in rows):
            cli.fail(f"{opts.model} gave no answer: {rows[0]['reason']}")
        selector_bench.show(rows, opts.base_url, opts.model, opts.as_json)
        return 0

    async def _rollback(
        self, store: SelectorStore, args: list[str], opts: argparse.Namespace
    ) -> int:
        return self._said(opts, args[0], "active", await store.rollback(args[0], opts.set_version))

    async def _pin(self, store: SelectorStore, args: list[str], opts: argparse.Namespace) -> int:
        await store.pin(args[0])
        return self._said(opts, args[0], "pinned", None)

    async def _unpin(self, store: SelectorStore, args: list[str], opts: argparse.Namespace) -> int:
        await store.pin(args[0], False)
        return self._said(opts, args[0], "unpinned", None)

    async def _disable(
        self, store: SelectorStore, args: list[str], opts: argparse.Namespace
    ) -> int:
        await store.document(args[0])  # or there is nothing to disable
        await store.disable(args[0])
        return self._said(opts, args[0], "disabled", None)

    @staticmethod
    def _said(opts: argparse.Namespace, domain: str, what: str, version: str | None) -> int:
        if opts.as_json:
            cli.print_object({"domain": domain, "did": what, "version": version})
        else:
            cli.show(f"{domain}: {what}" + (f", version {version}" if version else ""))
        return 0

    # ------------------------------------------------------------ pages
    def _context_of(self) -> selector_admin.ContextOf:
        return selector_admin.context_by(site_choice.load_sites(self._settings))

    async def _pages(
        self, domain: str, most: int = selector_admin.MOST_PAGES
    ) -> list[selector_admin.Stored]:
        """The newest stored article pages of the domain."""
        raw = opening.open_raw_store(self._settings)
        articles = opening.open_article_store(self._settings)
        await articles.open()
        try:
            found = await selector_admin.newest_pages(articles, raw, domain, most)
        finally:
            await articles.close()
        return found or selector_admin.scanned_pages(
            raw, site_choice.load_sites(self._settings), domain, most
        )

    def _services(self, store: SelectorStore) -> services_module.Services:
        settings = self._settings
        services = services_module.Services(
            settings=settings,
            worker="reader",
            sites=site_choice.load_sites(settings),
            chosen=[],
            loopback_only=False,
        )
        raw = opening.open_raw_store(settings)
        vars(services).update(redis=store.client, selectors=store, raw=raw)  # open already
        return services


def _print_tried(rows: list[dict[str, Any]], as_json: bool) -> None:
    if as_json:
        cli.print_rows(rows, (), True)
        return
    cut = [{**row, "title": row["title"] and str(row["title"])[:60]} for row in rows]
    cli.print_rows(cut, ("title", "published", "authors", "content_chars", "missing", "url"), False)


def _file_pages(files: list[str], url: str) -> list[selector_admin.Stored]:
    now = datetime.now(UTC)
    base = url.rstrip("/")
    urls = [url] if len(files) == 1 else [f"{base}/{Path(name).name}" for name in files]
    return [
        selector_admin.Stored(address, Path(name).read_bytes(), now)
        for address, name in zip(urls, files, strict=True)
    ]


def _tried(
    page: selector_admin.Stored, selectors: SelectorSet, context: PageContext
) -> dict[str, Any]:
    values = apply(Document(page.body, page.url, page.content_type), selectors, context)
    found = {name: field.value for name, field in values.items()}
    return {
        "url": page.url, "title": found.get("title"), "published": found.get("published"),
        "authors": found.get("authors"), "content_chars": len(found.get("content") or ""),
        "missing": ", ".join(n for n in ("title", "content") if not found.get(n)),
        "origins": {name: field.origin for name, field in values.items()},
    }  # fmt: skip


def _in_editor(doc: dict[str, Any]) -> str:
    """The document as a person left it. :raises schema.SetError: the editor failed"""
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{doc['domain'].replace(':', '_')}.json"
        path.write_text(json.dumps(doc, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
        try:
            done = subprocess.run([*shlex.split(editor), str(path)], check=False)
        except OSError as exc:
            raise schema.SetError(
                doc["domain"], "EDITOR", f"{editor} cannot be started: {exc}"
            ) from exc
        if done.returncode:
            raise schema.SetError(
                doc["domain"], "EDITOR", f"{editor} ended with {done.returncode}; nothing was saved"
            )
        return path.read_text(encoding="utf-8")


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's user without a name
        return "person"


def _print_gate(judged: selector_admin.Judged) -> None:
    assert judged.report is not None
    cli.print_rows(judged.rows(), ("field", "passed", "coverage", "agree", "vary", "reason"), False)
    cli.show(
        f"Validation over {judged.report.pages} pages:"
        f" {'passed' if judged.report.passed else 'NOT passed'}"
    )
