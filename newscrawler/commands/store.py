"""`scrapy store VERB`: check what is stored, copy it to another store, bring it up to date."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import asdict
from typing import Any, TypeVar

from scrapy.settings import BaseSettings

from newscrawler import cli
from newscrawler.commands.search import with_store
from newscrawler.crawl import opening, retention
from newscrawler.crawl.store_check import Check, Findings
from newscrawler.frontier.types import FrontierError
from newscrawler.rawstore import RawNotFound, RawStoreUnavailable
from newscrawler.store.base import ArticleStore, StoreError, WholeStore, whole
from newscrawler.store.copying import Copied, copy
from newscrawler.utils.display import number_of, url_shown

T = TypeVar("T")
VERBS = {
    "check": "                     compare articles, index, vectors and raw pages; 1 on findings",
    "copy": "FROM TO              every article with its versions; begun again it goes on",
    "prune": "                     remove what is older than its settings say; --dry-run says what",
    "rekey": "                     seal all raw pages with the first key of RAW_KEY",
    "migrate": "                   Elasticsearch: a new index of today's schema, without a pause",
}
#: Findings of one kind that are printed.
_SHOWN = 3


class Command(cli.Command):
    requires_project = True
    requires_crawler_process = False
    own_settings = {"LOG_ENABLED": False}

    def syntax(self) -> str:
        return "VERB [FROM TO] [options]"

    def short_desc(self) -> str:
        return "Check the article store, copy it, bring its schema up to date"

    def long_desc(self) -> str:
        verbs = "; ".join(f"{verb} {' '.join(text.split())}" for verb, text in VERBS.items())
        return (
            f"Verbs: {verbs}. FROM and TO are written as ARTICLE_STORE is: a file or"
            " http(s)://host:9200. A file of an earlier program is converted when it is opened."
        )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        cli.add_json_option(parser)
        parser.add_argument(
            "--dry-run", action="store_true", help="prune: say what would go, change nothing"
        )
        parser.add_argument(
            "--current-too",
            action="store_true",
            help="prune: also raw pages of articles as they are now (RAW_KEEP_DAYS)",
        )
        parser.add_argument("--no-raw", action="store_true", help="check: leave the raw pages out")
        for side in ("from", "to"):
            parser.add_argument(
                f"--{side}-index",
                metavar="NAME",
                help=f"copy: index of {side.upper()} (default: ARTICLE_INDEX)",
            )

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        assert self.settings is not None
        if not args:
            raise cli.UsageError(f"a verb is needed: {', '.join(VERBS)}", print_help=False)
        verb, rest = cli.verb_of(args, VERBS, "check")
        if len(rest) != (2 if verb == "copy" else 0):
            needed = "two stores, FROM and TO" if verb == "copy" else "no other argument"
            raise cli.UsageError(f"store {verb} takes {needed}", print_help=False)
        if verb != "prune" and (opts.dry_run or opts.current_too):
            raise cli.UsageError("--dry-run and --current-too are of prune", print_help=False)
        if verb == "prune":
            _prune(self.settings, opts)
        elif verb == "rekey":
            _rekey(self.settings, opts.as_json)
        elif verb == "copy":
            _copy(self.settings, rest[0], rest[1], opts)
        elif verb == "migrate":
            with_store(self.settings, lambda store: _migrate(store, opts.as_json))
        else:
            _check(self.settings, opts)


def _walked(store: ArticleStore) -> WholeStore:
    try:
        return whole(store)
    except StoreError as exc:
        cli.fail(str(exc))


# ---------------------------------------------------------------- check
def _check(settings: BaseSettings, opts: argparse.Namespace) -> None:
    try:
        raw = None if opts.no_raw else opening.open_raw_store(settings)
    except RawStoreUnavailable as exc:
        cli.fail(str(exc))
    try:
        found = with_store(settings, lambda store: Check(_walked(store), raw, cli.note).run())
    except RawStoreUnavailable as exc:
        cli.fail(str(exc))
    finally:
        if raw is not None:
            raw.close()
    _print_findings(found, opts.as_json)


def _print_findings(found: Findings, as_json: bool) -> None:
    if as_json:
        cli.print_object({**found.counts, "faults": found.faults})
    else:
        for line in found.lines(_SHOWN):
            cli.show(line)
        looked_at = ", ".join(f"{many:,} {what}" for what, many in found.counts.items())
        cli.note(f"{looked_at} looked at: {_faults(len(found.faults))}")
    if found.faults:
        raise SystemExit(1)


def _faults(number: int) -> str:
    return number_of(number, "fault") if number else "no fault"


# ---------------------------------------------------------------- prune
def _prune(settings: BaseSettings, opts: argparse.Namespace) -> None:
    try:
        limits = retention.RetentionPeriods.from_settings(settings)
    except ValueError as exc:
        cli.refuse(str(exc))
    if not limits.any:
        cli.note("everything is kept for ever: RAW_KEEP_DAYS, VERSION_KEEP_DAYS ... are 0")
        return

    async def work(store: ArticleStore) -> retention.Pruned:
        return await retention.prune(
            settings, _walked(store), limits, cli.note,
            dry_run=opts.dry_run, current_too=opts.current_too,
        )  # fmt: skip

    try:
        done = with_store(settings, work)
    except (RawStoreUnavailable, RawNotFound, FrontierError, opening.StartRefused) as exc:
        cli.fail(f"{exc}; what was done stays done, run it again")
    except OSError as exc:
        cli.fail(f"{exc.filename or 'disk'}: {exc.strerror or exc}; run it again")
    finally:
        opening.stop_embedded(settings)
    if opts.as_json:
        cli.print_object({**asdict(done), "dry_run": opts.dry_run})
        _fail_if_damaged(done.raw_damaged, "as they are")
        return
    word = "would go" if opts.dry_run else "went"
    cli.show(
        f"{done.versions:,} older versions, {done.finished:,} finished records and"
        f" {done.raw_pages:,} of {done.raw_looked_at:,} raw pages"
        f" ({done.raw_bytes:,} bytes) {word}"
    )
    if done.raw_current:
        cli.note(
            f"{done.raw_current:,} raw pages are older than RAW_KEEP_DAYS and stay: articles are"
            " made of them as they are now (--current-too)"
        )
    _fail_if_damaged(done.raw_damaged, "as they are")


def _rekey(settings: BaseSettings, as_json: bool) -> None:
    try:
        changed, every, damaged = retention.rekey(settings, cli.note)
    except (RawStoreUnavailable, RawNotFound) as exc:
        cli.fail(str(exc))
    except OSError as exc:
        cli.fail(f"{exc.filename or 'disk'}: {exc.strerror or exc}; run it again")
    if as_json:
        cli.print_object({"files": every, "written_anew": changed, "damaged": damaged})
    else:
        cli.show(f"{changed:,} of {every:,} files of raw pages were sealed anew")
    _fail_if_damaged(damaged, "under the keys that they have")


def _fail_if_damaged(files: int, how: str) -> None:
    if files:
        cli.fail(
            f"{files:,} damaged file(s) of raw pages stay {how}: `scrapy store check` tells what"
            " can be read of them"
        )


# ---------------------------------------------------------------- migrate
async def _migrate(store: ArticleStore, as_json: bool) -> None:
    reindex: Callable[..., Awaitable[Any]] | None = getattr(store, "reindex", None)
    if reindex is None:
        await store.refresh()  # opening it has converted it
        cli.note("the file is of today's version")
        return
    done = await reindex(cli.note)
    if as_json:
        fields = {"old": done.old, "new": done.new, "documents": done.documents}
        cli.print_object(fields)
    else:
        cli.note(
            f"{done.documents:,} documents are in {done.new}; {done.old} is not used any more:"
            f" delete it when you like (curl -X DELETE .../{done.old})"
        )


# ---------------------------------------------------------------- copy
def _copy(settings: BaseSettings, source: str, target: str, opts: argparse.Namespace) -> None:
    index = settings.get("ARTICLE_INDEX")
    from_index, to_index = opts.from_index or index, opts.to_index or index
    if (source, from_index) == (target, to_index):
        raise cli.UsageError("FROM and TO are the same store", print_help=False)

    async def work() -> Copied:
        ours = _open(settings, source, from_index, must_exist=True)
        try:
            theirs = _open(settings, target, to_index, must_exist=False)
            try:
                return await copy(ours, theirs, _say_copied)
            finally:
                await theirs.close()
        finally:
            await ours.close()

    done = _answered(work())
    rows = [{"what": n, "from": a, "to": b} for n, (a, b) in done.counts.items()]
    if opts.as_json:
        cli.print_object(
            {"written": done.written, "looked_at": done.looked_at, "counts": done.counts}
            | {"duplicates": done.duplicates, "different": done.different, "refused": done.refused}
            | {"twins": done.duplicates}  # the old name, for programs that read it
        )
    else:
        cli.print_rows(rows, ("what", "from", "to"), False)
        for text, ids in (
            ("kept at the target under another address", done.duplicates),
            ("left: the target has another history of them", done.different),
            ("refused by the target", list(done.refused)),
        ):
            if ids:
                cli.note(f"{len(ids):,} {text}: {', '.join(ids[:3])}{', ...' * (len(ids) > 3)}")
        cli.note(f"{done.written:,} of {done.looked_at:,} articles written to {url_shown(target)}")
    if not done.is_whole:
        cli.fail("the two stores are not alike")


def _open(settings: BaseSettings, uri: str, index: str, *, must_exist: bool) -> WholeStore:
    from newscrawler.store import open_store

    store = open_store(
        uri,
        opening.data_dir(settings),
        index=index,
        must_exist=must_exist,
        ca_file=settings.get("ARTICLE_STORE_CA_FILE") or "",
    )
    return _walked(store)


def _say_copied(done: Copied) -> None:
    if done.looked_at % 1_000 == 0 and not done.counts:
        cli.note(f"{done.looked_at:,} articles looked at, {done.written:,} written")


def _answered(work: Coroutine[Any, Any, T]) -> T:
    try:
        return asyncio.run(work)
    except (StoreError, ValueError) as exc:
        cli.fail(str(exc))
