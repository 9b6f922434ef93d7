"""scrapy doctor: is this machine fit to crawl?"""

from __future__ import annotations

import argparse
import asyncio
from dataclasses import asdict

from newscrawler import cli
from newscrawler.cli import UsageError


class Command(cli.Command):
    requires_project = True
    requires_crawler_process = False
    own_settings = {"LOG_LEVEL": "ERROR"}

    def syntax(self) -> str:
        return "[options]"

    def short_desc(self) -> str:
        return "Check Python, Redis, disk, stores, sites and selector files"

    def long_desc(self) -> str:
        return (
            "Looks at everything that a crawl needs on this machine and says what to do about what"
            " is missing. Asks no site. Exit code 1 when a check fails; warnings do not count."
        )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        cli.add_json_option(parser)

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        if args:
            raise UsageError(
                f"scrapy doctor takes no argument, got {' '.join(args)}", print_help=False
            )
        from newscrawler.cli.doctor import examine

        assert self.settings is not None
        findings = asyncio.run(examine(self.settings))
        if opts.as_json:
            cli.print_rows([asdict(finding) for finding in findings], (), True)
        else:
            for finding in findings:
                cli.show(f"{finding.state:<4}  {finding.check:<18}  {finding.found}")
                if finding.state != "ok" and finding.todo:
                    cli.show(f"{'':<26}-> {finding.todo}")
        if any(finding.state == "fail" for finding in findings):
            self.exitcode = 1
