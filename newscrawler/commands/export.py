"""`scrapy export`: all stored articles, or those of a search, as JSON lines, CSV or Parquet."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import cast

from newscrawler import cli
from newscrawler.commands.search import with_store
from newscrawler.store.base import ArticleStore, Query, WholeStore
from newscrawler.store.days import zone_of
from newscrawler.store.export import FORMATS, ExportError, export, matches
from newscrawler.utils.display import number_of


class Command(cli.Command):
    requires_project = True
    requires_crawler_process = False
    own_settings = {"LOG_ENABLED": False}

    def syntax(self) -> str:
        return "[options]"

    def short_desc(self) -> str:
        return "Write the stored articles as jsonl, csv or parquet"

    def long_desc(self) -> str:
        return (
            "Every current article that its site has not taken down. --since takes only those"
            " stored or changed since then, so that a daily export can go on where the last one"
            " ended. --query takes what a search finds, all of it, in the same language as scrapy"
            " search."
        )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        cli.add_json_option(parser)
        parser.add_argument("--format", choices=FORMATS, default="jsonl", help="default jsonl")
        parser.add_argument(
            "--out", metavar="FILE", help="file to write, whole or not at all (default: stdout)"
        )
        parser.add_argument(
            "--since",
            metavar="TIME",
            help="stored or changed since: 3d, 12h, 2026-08-31 or 2026-08-31T07:00Z",
        )

        parser.add_argument(
            "--query", metavar="QUERY", help="what these words find: 'giá vàng site:vnexpress.net'"
        )

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        assert self.settings is not None
        if args:
            raise cli.UsageError(f"unknown argument: {args[0]}", print_help=False)
        if opts.format == "parquet" and not opts.out:
            raise cli.UsageError("parquet is binary: name a file with --out FILE", print_help=False)
        if opts.query is not None and opts.since:
            raise cli.UsageError("--query goes with after: in it, not --since", print_help=False)
        since = cli.since(opts.since) if opts.since else None
        zone = zone_of(self.settings["READER_ZONE"])
        out = Path(opts.out) if opts.out else None

        async def work(store: ArticleStore) -> int:
            articles = store.scan(since)
            if opts.query is not None:
                if not hasattr(store, "portion"):
                    raise ExportError("this store cannot give all matches of a query")
                query = Query(opts.query, zone=zone, mode="keyword")
                articles = matches(cast(WholeStore, store), query)
            return await export(articles, opts.format, out)

        try:
            count = with_store(self.settings, work)
        except (ExportError, OSError) as exc:
            cli.fail(f"export failed: {exc}")
        _conclude(count, opts.format, out, opts.as_json)


def _conclude(count: int, form: str, out: Path | None, as_json: bool) -> None:
    if out is None:
        cli.note(f"{number_of(count, 'article')} written")
    elif as_json:
        cli.print_object({"articles": count, "format": form, "out": str(out)})
    else:
        cli.note(f"{number_of(count, 'article')} written to {out}")
