"""scrapy plan: how large a fleet must be for so many sites and articles a day."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import Any

from newscrawler import cli
from newscrawler.cli import UsageError
from newscrawler.fleet.sizing import BUSY, POLITE, Plan, Size, size

EXAMPLES = """\
  scrapy plan --sites 33 --articles 10000
  scrapy plan --sites 20000 --articles 1000000 --set-share 0.2 --delay 2"""

#: Above this a single file is a year's search of more articles than it was measured with.
LOCAL_A_DAY = 20_000


class Command(cli.PlainCommand):
    arguments = "--sites N --articles N"
    summary = "Say how large a fleet must be: workers, CPU, Redis, disk, network"
    text = ("The figures behind it were measured; docs/operations.md has the formula.",)
    examples = EXAMPLES

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.add_argument("--sites", type=int, metavar="N", help="sites that are crawled")
        parser.add_argument(
            "--articles", type=int, metavar="N", help="new articles a day, all sites"
        )
        for name, text in (
            ("lists", "requests to feeds, sitemaps and sections for one new article"),
            ("revisits", "visits of an article after the first"),
            ("links", "new links seen for one new article"),
        ):
            default = Plan.__dataclass_fields__[name].default
            parser.add_argument(
                f"--{name}", type=float, default=default, metavar="N",
                help=f"{text} (default: {default:g})",
            )  # fmt: skip
        parser.add_argument(
            "--set-share", type=float, default=0.5, metavar="SHARE",
            help="part of the articles whose site has a selector set, 0 to 1 (default: 0.5)",
        )  # fmt: skip
        parser.add_argument(
            "--delay", type=float, metavar="S",
            help="least seconds between two requests to a site; else DOWNLOAD_DELAY",
        )  # fmt: skip
        parser.add_argument(
            "--days", type=int, default=365, metavar="N",
            help="days that raw pages are kept (default: 365)",
        )  # fmt: skip
        parser.add_argument(
            "--rendered", type=int, default=0, metavar="N",
            help="pages a day that a browser reads, as scripts fill them (default: 0)",
        )  # fmt: skip
        parser.add_argument("--no-semantic", action="store_true", help="without search by meaning")

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        assert self.settings is not None
        if args:
            raise UsageError(f"no argument is taken, got {' '.join(args)}", print_help=False)
        if opts.sites is None or opts.articles is None:
            raise UsageError("--sites and --articles are needed", print_help=False)
        delay = self.settings.getfloat("DOWNLOAD_DELAY") if opts.delay is None else opts.delay
        try:
            plan = Plan(
                sites=opts.sites,
                articles=opts.articles,
                lists=opts.lists,
                revisits=opts.revisits,
                links=opts.links,
                set_share=opts.set_share,
                delay_s=delay,
                days=opts.days,
                semantic=not opts.no_semantic,
                rendered=opts.rendered,
            )
        except ValueError as exc:
            raise UsageError(str(exc), print_help=False) from exc
        found = size(plan)
        if opts.as_json:
            cli.print_object({"plan": asdict(plan), **asdict(found), "is_polite": found.is_polite})
        else:
            for line in lines(plan, found):
                cli.show(line)
        self.exitcode = 0 if found.is_polite else 1


def lines(plan: Plan, found: Size) -> list[str]:
    """The table that people read."""
    allowed = f"{found.site_allows_a_day:,}" if found.site_allows_a_day else "as many as it answers"
    rows: list[tuple[str, str, str]] = [
        ("requests", f"{found.requests_a_day:,} a day, {found.requests_a_second:,.1f} a second",
         f"{found.site_needs_a_day:,} a site and day; a delay of {plan.delay_s:g} s allows "
         f"{allowed}"),
        ("workers", f"{found.workers:,}",
         f"{cpus_text(found.worker_cpus)}, busy {BUSY:.0%} of the time; two for each worker"),
        ("Redis", f"{cpus_text(found.redis_cpus)}, {bytes_text(found.redis_bytes)} of memory",
         "after a year; twice as much while it rewrites its file"),
        ("vectors", cpus_text(found.embed_cpus), "of search by meaning"),
        ("articles", f"{bytes_text(found.store_bytes_a_year)} a year", "local store and index"),
        ("raw pages", bytes_text(found.raw_bytes), f"of {plan.days:,} days"),
        ("network", f"{bytes_text(found.network_bytes_a_day)} a day", "received"),
    ]  # fmt: skip
    widths = [max(len(row[i]) for row in rows) for i in (0, 1)]
    told = [f"{a:<{widths[0]}}  {b:<{widths[1]}}  {c}" for a, b, c in rows]
    if not found.is_polite:
        told.append(
            f"Not polite: {found.site_needs_a_day:,} requests a site and day are more than"
            f" {POLITE:.0%} of what the delay allows. More sites, fewer revisits or a shorter delay"
            " that the sites agree to; more workers change nothing."
        )
    if plan.articles > LOCAL_A_DAY:
        told.append(
            "So many articles want Elasticsearch (ARTICLE_STORE=http://…): one file is written by"
            " one machine."
        )
    return told


def cpus_text(cpus: float) -> str:
    if not cpus:
        return "none"
    return f"{cpus:.1f} processors" if cpus >= 0.1 else "under 0.1 processors"


def bytes_text(count: float) -> str:
    """ "3.4 GB": decimal, as disks are sold."""
    units: Any = ("B", "kB", "MB", "GB", "TB", "PB")
    step = 0
    while count >= 1000 and step < len(units) - 1:
        count, step = count / 1000, step + 1
    return f"{count:.3g} {units[step]}" if count < 100 else f"{count:.0f} {units[step]}"
