"""`scrapy monitor`: what is wrong with the fleet, seen from outside the workers; tells who is to be
told."""

from __future__ import annotations

import argparse
import asyncio

from redis.exceptions import RedisError

from newscrawler import cli
from newscrawler.crawl import opening
from newscrawler.fleet.history import HistoryUnavailable
from newscrawler.frontier.types import FrontierError
from newscrawler.store.base import StoreError

VERBS = {
    "look": "one look: a row per incident that is open; exit code 1 when there is any",
    "preload": "when each site publishes, of the last four weeks, from the article store",
    "test": "send a test alert by every way of the settings",
}


class Command(cli.Command):
    requires_project = True
    requires_crawler_process = False
    own_settings = {"LOG_LEVEL": "WARNING"}

    def syntax(self) -> str:
        return "[look | preload | test] [options]"

    def short_desc(self) -> str:
        return "Look at the fleet from outside, and tell by mail, webhook and chat what is wrong"

    def long_desc(self) -> str:
        verbs = [f"  {verb:<8} {text}" for verb, text in VERBS.items()]
        return "\n".join(
            [
                f"{self.short_desc()}.",
                "Without a verb: look. For cron each minute, or with --every as a service. Any",
                "number may run: an incident is told once (docs/operations.md).",
                "",
                *verbs,
            ]
        )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.formatter_class = cli.VerbsHelp
        cli.add_json_option(parser)
        parser.add_argument(
            "--every",
            type=cli.span_s,
            metavar="TIME",
            help="look: again every so often (30s, 5m, 1h; a number alone: seconds), until Ctrl-C",
        )

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        assert self.settings is not None
        settings = self.settings
        verb, rest = cli.verb_of(args, VERBS, "look")
        if rest:
            raise cli.UsageError(f"scrapy monitor {verb} takes no {rest[0]}", print_help=False)
        if opts.every is not None and (verb != "look" or not 1 <= opts.every <= 86_400):
            raise cli.UsageError(
                "--every is an option of look, from 1 to 86400 seconds", print_help=False
            )
        # Spidermon and the work on selector sets, which no other command needs at its start.
        from newscrawler.cli import monitor

        work = {"look": monitor.look, "preload": monitor.preload, "test": monitor.test}[verb]
        try:
            self.exitcode = asyncio.run(work(settings, opts))
        except (opening.StartRefused, ValueError) as exc:
            cli.refuse(str(exc))
        except (FrontierError, HistoryUnavailable, RedisError, StoreError) as exc:
            cli.fail(str(exc))
        finally:
            opening.stop_embedded(settings)
