"""`scrapy bench`: how fast Scrapy's engine is on this machine, against a server of
its own on localhost."""

from __future__ import annotations

import argparse

from scrapy.commands.bench import Command as ScrapysCommand
from scrapy.settings import default_settings

from newscrawler import cli


class Command(cli.KnownOptions, ScrapysCommand):
    """Scrapy's own. `make bench` measures this project's pipeline."""

    def process_options(self, args: list[str], opts: argparse.Namespace) -> None:
        super().process_options(args, opts)
        assert self.settings is not None
        # The only host is this one: nobody is to be polite to, and the guard lets
        # loopback alone through.
        own = {
            "ALLOWED_PRIVATE_NETWORKS": "127.0.0.0/8",
            "DOWNLOAD_DELAY": 0,
            "AUTOTHROTTLE_ENABLED": False,
            "ROBOTSTXT_OBEY": False,
            "CONCURRENT_REQUESTS_PER_DOMAIN": default_settings.CONCURRENT_REQUESTS_PER_DOMAIN,
        }
        cli.set_own(self.settings, own)
