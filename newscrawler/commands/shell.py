"""`scrapy shell`: Scrapy's console behind the address guard; a local file may be read too."""

from __future__ import annotations

import argparse

from scrapy.commands.shell import Command as ScrapysCommand
from scrapy.settings import default_settings

from newscrawler import cli


class Command(cli.OnePage, ScrapysCommand):
    """Scrapy's own; with --spider=news it needs no queue and no Redis."""

    def process_options(self, args: list[str], opts: argparse.Namespace) -> None:
        super().process_options(args, opts)
        assert self.settings is not None
        # What a person names; a page cannot lead there, as redirects to files are not followed.
        handlers = self.settings.getdict("DOWNLOAD_HANDLERS")
        handlers["file"] = default_settings.DOWNLOAD_HANDLERS_BASE["file"]
        self.settings.set("DOWNLOAD_HANDLERS", handlers, priority="cmdline")

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        try:
            super().run(args, opts)
        except cli.download_errors() as exc:
            cli.note(f"{args[0] if args else 'the page'} could not be fetched: {exc}")
            self.exitcode = 1
