"""`scrapy <command>`: one module each."""

from newscrawler import cli

cli.install_interrupt()  # from the moment on that Scrapy looks for commands
