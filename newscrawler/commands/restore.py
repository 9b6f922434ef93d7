"""scrapy restore SOURCE: a backup back into Redis, the article store and DATA_DIR."""

from __future__ import annotations

import argparse
from pathlib import Path

from newscrawler import cli
from newscrawler.cli import UsageError
from newscrawler.commands.backup import answered, told
from newscrawler.crawl import backup

EXAMPLES = """\
  scrapy restore /backups/2026-11-22 --check
  scrapy restore /backups/2026-11-22
  scrapy restore s3://bucket/newscrawler/2026-11-22 -s DATA_DIR=/srv/newscrawler"""


class Command(cli.PlainCommand):
    arguments = "SOURCE"
    summary = "Put a backup back, on an empty machine or over what is there"
    text = (
        "Every file is compared with its checksum first. The index of words and vectors",
        "are made again by the next crawl or `scrapy serve`.",
    )
    examples = EXAMPLES

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.add_argument(
            "--check", action="store_true", help="compare checksums, change nothing"
        )
        parser.add_argument(
            "--replace",
            action="store_true",
            help="delete the queue and the articles that are there",
        )

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        assert self.settings is not None
        if len(args) != 1:
            raise UsageError("one folder or URL is needed", print_help=False)
        if opts.check and opts.replace:
            raise UsageError("--check changes nothing, so nothing is replaced", print_help=False)
        if opts.check:
            if "://" in args[0]:
                raise UsageError("--check looks at a folder; download it first", print_help=False)
            try:
                told(backup.check(Path(args[0])), f"{args[0]} is whole", opts.as_json)
            except backup.BackupRefused as exc:
                cli.fail(str(exc))
            return
        done = answered(
            self.settings, backup.restore(self.settings, args[0], opts.replace, cli.note)
        )
        told(done, f"Put back from {args[0]} of {done.made}", opts.as_json)
