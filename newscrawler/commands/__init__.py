"""`scrapy <command>`: one module each."""

import gc

from newscrawler import cli

# Scrapy imports every command to find one: that makes nothing to be collected, and looking for it
# takes a fifteenth of the start.
gc.set_threshold(20_000, 20, 50)
cli.install_interrupt()  # from the moment on that Scrapy looks for commands
