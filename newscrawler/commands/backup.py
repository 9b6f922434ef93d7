"""scrapy backup TARGET: everything that the crawl knows, while it runs."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Coroutine
from typing import Any

from scrapy.settings import BaseSettings

from newscrawler import cli
from newscrawler.cli import UsageError
from newscrawler.crawl import backup, opening
from newscrawler.frontier.types import FrontierError
from newscrawler.rawstore import RawStoreUnavailable
from newscrawler.store.base import StoreError

EXAMPLES = """\
  scrapy backup /backups/2026-11-22
  scrapy backup /backups/whole --raw
  scrapy backup s3://bucket/newscrawler/2026-11-22"""


class Command(cli.PlainCommand):
    arguments = "TARGET"
    summary = "Back up queue, selector sets, articles and what was set by commands"
    closing = ", while the crawl runs."
    text = (
        "TARGET is a folder that is not there yet, or a URL (s3://...). It holds tokens'",
        "ids and the sites' addresses: keep it as the data itself. `scrapy restore` puts",
        "it back.",
    )
    examples = EXAMPLES

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.add_argument(
            "--raw", action="store_true", help="take the raw pages of DATA_DIR/warc along"
        )

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        assert self.settings is not None
        if len(args) != 1:
            raise UsageError("one folder or URL is needed", print_help=False)
        made = answered(self.settings, backup.make(self.settings, args[0], opts.raw, cli.note))
        told(made, f"Backed up to {args[0]}", opts.as_json)


def answered(settings: BaseSettings, work: Coroutine[Any, Any, backup.Manifest]) -> backup.Manifest:
    """What backup and restore have in common: their errors, and the embedded server after them."""
    try:
        return asyncio.run(work)
    except backup.BackupRefused as exc:
        cli.refuse(str(exc))
    except (FrontierError, StoreError, RawStoreUnavailable, opening.StartRefused) as exc:
        cli.fail(str(exc))
    except OSError as exc:
        cli.fail(f"{exc.filename or 'disk'}: {exc.strerror or exc}")
    finally:
        opening.stop_embedded(settings)


def told(manifest: backup.Manifest, done: str, as_json: bool) -> None:
    if as_json:
        cli.print_object(manifest.plain())
        return
    counts = ", ".join(f"{number:,} {name}" for name, number in manifest.counts.items())
    size = sum(file["bytes"] for file in manifest.files.values())
    cli.show(f"{done}: {counts}; {len(manifest.files)} files, {size:,} bytes.")
    for text in manifest.left_out:
        cli.show(f"Left out: {text}.")
