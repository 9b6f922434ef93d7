"""`scrapy article URL-or-id`: one stored article, its versions, the page it came from."""

from __future__ import annotations

import argparse
import re
import sys
from typing import Any

from scrapy.settings import BaseSettings

from newscrawler import cli
from newscrawler.commands.search import with_store
from newscrawler.crawl import opening
from newscrawler.items import FIELDS, Article, unsure
from newscrawler.rawstore import RawNotFound, RawStoreUnavailable
from newscrawler.store import codec, diff
from newscrawler.store.base import ArticleStore

_SHOWN = (
    "id", "url", "site", *(f.name for f in FIELDS if f.listed),
    "version", "gone", "cluster", "selector_version", "raw_ref",
)  # fmt: skip


class Command(cli.Command):
    requires_project = True
    requires_crawler_process = False
    own_settings = {"LOG_ENABLED": False}

    def syntax(self) -> str:
        return "[options] URL-or-id"

    def short_desc(self) -> str:
        return "Show a stored article, its versions or its page"

    def long_desc(self) -> str:
        return (
            "Prints the fields and the text. --html writes the page as it was received, byte for"
            " byte."
        )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        cli.add_json_option(parser)
        parser.add_argument(
            "--html", action="store_true", help="the stored page instead of the fields"
        )
        parser.add_argument(
            "--versions", action="store_true", help="every version and what changed"
        )

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        assert self.settings is not None
        if len(args) != 1:
            raise cli.UsageError(
                "one URL or article id is needed: scrapy article URL-or-id", print_help=False
            )
        if opts.html and (opts.versions or opts.as_json):
            raise cli.UsageError("--html goes without --versions and --json", print_help=False)
        name = args[0]
        versions = with_store(self.settings, lambda store: _find(store, name, opts.versions))
        if not versions:
            cli.fail(f"not stored: {name}")
        if opts.html:
            _write_html(self.settings, versions[-1])
        elif opts.versions:
            _print_versions(versions, opts.as_json)
        elif opts.as_json:
            cli.print_object(_fields(versions[-1]))
        else:
            _print_article(versions[-1])


async def _find(store: ArticleStore, name: str, all_versions: bool) -> list[Article]:
    """The versions asked for, oldest first; [] when there is no such article."""
    article = (
        await store.get(name) if re.fullmatch(r"[0-9a-f]{32}", name) else await store.find_url(name)
    )
    if article is None:
        return []
    return await store.versions(article.id) if all_versions else [article]


def _fields(article: Article) -> dict[str, Any]:
    return codec.to_dict(article) | {
        "version": article.version,
        "gone": article.gone,
        "cluster": article.cluster,
        "unsure": unsure(article),
    }


def _print_article(article: Article) -> None:
    cli.show(article.title)
    cli.show()
    for name in _SHOWN:
        value = getattr(article, name)
        if value not in (None, [], False):
            text = ", ".join(value) if isinstance(value, list) else str(value)
            said = [article.origins.get(name, ""), "unsure" if name in unsure(article) else ""]
            origin = ", ".join(filter(None, said))
            cli.show(f"{name.replace('_', ' ') + ':':18}{text}{f'  ({origin})' if origin else ''}")
    cli.show()
    cli.show(article.content)


def _print_versions(versions: list[Article], as_json: bool) -> None:
    previous: Article | None = None
    for article in versions:
        changed = diff.changed_fields(previous, article) if previous else []
        lines = diff.lines(previous, article) if previous else []
        if as_json:
            cli.print_object(_fields(article) | {"changed": changed, "diff": lines})
        else:
            when = article.fetched.isoformat(timespec="seconds") if article.fetched else "-"
            cli.show(
                f"version {article.version}  fetched {when} "
                f" {'changed: ' + ', '.join(changed) if changed else 'first'}"
            )
            for line in lines:
                cli.show("    " + line)
        previous = article


def _write_html(settings: BaseSettings, article: Article) -> None:
    if not article.raw_ref:
        cli.fail(
            f"no page is stored for {article.url}: it asked not to be archived (noarchive), or raw"
            " pages were off"
        )
    try:
        raw = opening.open_raw_store(settings)
        try:
            page = raw.read(article.raw_ref)
        finally:
            raw.close()
    except (RawNotFound, RawStoreUnavailable, ValueError, OSError) as exc:
        cli.fail(f"the page of {article.url} cannot be read ({article.raw_ref}): {exc}")
    sys.stdout.flush()
    sys.stdout.buffer.write(page.body)
    sys.stdout.buffer.flush()
