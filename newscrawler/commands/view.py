"""`scrapy view`: one page as the downloader sees it, in a browser, behind the address guard.
Nothing is queued or stored."""

from __future__ import annotations

from scrapy.commands.view import Command as ScrapysCommand

from newscrawler import cli


class Command(cli.OneAnswer, ScrapysCommand):
    """Scrapy's own; with --spider=news it needs no queue and no Redis."""
