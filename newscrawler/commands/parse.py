"""`scrapy parse`: what a spider reads on one page, behind the address guard. Nothing
is queued or stored."""

from __future__ import annotations

from scrapy.commands.parse import Command as ScrapysCommand

from newscrawler import cli


class Command(cli.OneAnswer, ScrapysCommand):
    """Scrapy's own; with --spider=news it needs no queue and no Redis."""
