"""`scrapy fleet VERB`: deploy, start, scale, watch, end the workers on the nodes of scrapy.cfg."""

from __future__ import annotations

import argparse
import asyncio
import signal
import time
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from scrapy.utils.conf import closest_scrapy_cfg

from newscrawler import cli
from newscrawler.crawl import fleet, opening, preflight, site_choice
from newscrawler.crawl.fleet_control import (
    PATIENCE_S,
    Control,
    FleetRefused,
    span_of,
    with_args,
)
from newscrawler.discovery.sites import SitesError
from newscrawler.fleet import deploy as deploying
from newscrawler.fleet import status as tables
from newscrawler.fleet.nodes import Node, NodeError, NodeView, TargetError
from newscrawler.fleet.registry import RegistryUnavailable
from newscrawler.fleet.watch import Look, Watch
from newscrawler.utils.numbers import whole_number

VERBS = {
    "deploy": "[--egg FILE] [--restart]  one egg to every node, or to none",
    "start": "N [-a sites=A,B] [-s NAME=V] N more workers, where there is most room",
    "scale": "N | A-B                    N workers in all; A to B: by the queue",
    "status": "                           nodes, workers, what is wrong (1 when something is)",
    "drain": "NODE [--undo]              its workers finish and move; it gets no new ones",
    "stop": "                           every worker finishes what is under way and ends",
    "restart": "[--version V]              one worker after the other, to the newest version",
    "logs": "NODE JOB [--lines N]       the end of a job's log; --follow goes on",
    "version": "                           which versions the nodes have and the workers run",
    "watch": "                           replace what dies, until Ctrl-C or SIGTERM",
}
#: How many arguments each takes.
TAKES = {"start": 1, "scale": 1, "drain": 1, "logs": 2}
#: Options that some verbs have: with another they would be silently of no effect.
OWN_OPTIONS = {
    "egg": ("deploy",),
    "restart": ("deploy",),
    "version": ("deploy", "restart"),
    "spider_args": ("start",),
    "undo": ("drain",),
    "lines": ("logs",),
    "follow": ("logs",),
}
LINES = 50
#: Seconds between two looks at a log that is followed.
FOLLOW_S = 1.0
MOST_WORKERS = 10_000

Work = Callable[[Watch, Control], Awaitable[int]]


class Command(cli.Command):
    requires_project = True
    requires_crawler_process = False
    own_settings = {"LOG_LEVEL": "CRITICAL"}

    def syntax(self) -> str:
        return "VERB [arguments] [options]"

    def short_desc(self) -> str:
        return "Run a fleet on scrapyd nodes: deploy, start, scale, status, drain, watch"

    def long_desc(self) -> str:
        head = (
            "Runs workers on the nodes of scrapy.cfg, sections [deploy:NAME]. REDIS_URL names the"
            " Redis that they share (docs/operations.md has the way from an empty machine). Verbs:"
        )
        return "\n".join([head, "", *(f"  {verb:8} {text}" for verb, text in VERBS.items())])

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.formatter_class = cli.VerbsHelp
        cli.add_json_option(parser)
        parser.add_argument("--egg", metavar="FILE", help="deploy: this egg, instead of building")
        parser.add_argument("--restart", action="store_true", help="deploy: then restart workers")
        parser.add_argument(
            "--version", metavar="V", help="deploy: its name; restart: another than the newest"
        )
        parser.add_argument(
            "-a",
            dest="spider_args",
            action="append",
            metavar="NAME=VALUE",
            help="start: argument of the spider, for every worker of the fleet",
        )
        parser.add_argument("--undo", action="store_true", help="drain: the node takes part again")
        parser.add_argument(
            "--wait",
            type=float,
            default=180.0,
            metavar="S",
            help="seconds until what was asked must be so (default 180); 0 = do not wait",
        )
        parser.add_argument("--lines", type=int, metavar="N", help=f"logs: default {LINES}")
        parser.add_argument("--follow", action="store_true", help="logs: go on until Ctrl-C")

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        assert self.settings is not None
        if not args:
            raise cli.UsageError(f"a verb is needed: {', '.join(VERBS)}", print_help=False)
        verb, rest = cli.verb_of(args, VERBS, "status")
        _check_usage(verb, rest, opts)
        try:
            nodes = fleet.nodes_of_config()
        except TargetError as exc:
            cli.refuse(str(exc))
        with cli.interruptible("Stopped. What was asked for stays wanted: `scrapy fleet status`."):
            try:
                self.exitcode = self._run(verb, rest, opts, nodes)
            except (opening.StartRefused, ValueError) as exc:
                cli.refuse(str(exc))
            except (FleetRefused, NodeError, RegistryUnavailable, deploying.DeployFailed) as exc:
                cli.fail(str(exc))

    def _run(
        self, verb: str, rest: list[str], opts: argparse.Namespace, nodes: dict[str, Node]
    ) -> int:
        assert self.settings is not None
        settings = self.settings
        if verb == "logs":
            return _logs(_node(nodes, rest[0]), rest[1], opts)
        if verb == "watch":
            return asyncio.run(_watch(settings, nodes))
        work = _work(verb, rest, opts, nodes, settings)

        async def run() -> int:
            async with fleet.open_watch(settings, nodes) as watch:
                control = Control(watch, _note, opts.wait)
                return await work(watch, control)

        return asyncio.run(run())


def _note(text: str) -> None:
    """With the time as Scrapy's log has it: both may go to one file."""
    cli.note(f"{datetime.now():%Y-%m-%d %H:%M:%S} {text}")


def _check_usage(verb: str, rest: list[str], opts: argparse.Namespace) -> None:
    """:raises cli.UsageError:"""
    many = TAKES.get(verb, 0)
    if len(rest) != many:
        needed = " ".join(VERBS[verb].split("  ")[0].split("[")[0].split()) if many else "nothing"
        raise cli.UsageError(f"scrapy fleet {verb} takes {needed}", print_help=False)
    for name, verbs in OWN_OPTIONS.items():
        if getattr(opts, name) and verb not in verbs:
            option = "-a" if name == "spider_args" else f"--{name}"
            raise cli.UsageError(
                f"{option} is an option of {' and '.join(verbs)}, not of {verb}", print_help=False
            )
    if opts.version:
        try:
            deploying.check_version(opts.version)
        except ValueError as exc:
            raise cli.UsageError(str(exc), print_help=False) from exc


def _node(nodes: dict[str, Node], name: str) -> Node:
    if name not in nodes:
        raise cli.UsageError(
            f"scrapy.cfg has no node {name!r}; there are: {', '.join(nodes)}", print_help=False
        )
    return nodes[name]


def _work(
    verb: str, rest: list[str], opts: argparse.Namespace, nodes: dict[str, Node], settings: Any
) -> Work:
    if verb == "start":
        return _start(rest[0], opts, settings)
    if verb == "scale":
        return _scale(rest[0], opts)
    if verb == "drain":
        return _drain(_node(nodes, rest[0]).name, opts)
    if verb == "deploy":
        return _deploy(nodes, opts)

    async def status(watch: Watch, control: Control) -> int:
        return show_status(await watch.look(PATIENCE_S), opts.as_json)

    async def stop(watch: Watch, control: Control) -> int:
        return _done(await control.stop(), opts)

    async def restart(watch: Watch, control: Control) -> int:
        return _done(await control.restart(opts.version or ""), opts)

    async def version(watch: Watch, control: Control) -> int:
        return show_versions(await watch.look(PATIENCE_S), opts.as_json)

    return {"status": status, "stop": stop, "restart": restart, "version": version}[verb]


# ---------------------------------------------------------------- verbs
def _start(text: str, opts: argparse.Namespace, settings: Any) -> Work:
    if not whole_number(text, MOST_WORKERS):
        raise cli.UsageError(
            f"{text!r}: a number of workers from 1 to {MOST_WORKERS:,}", print_help=False
        )
    given = [["setting", text] for text in opts.set]
    for argument in opts.spider_args or []:
        name, equals, value = argument.partition("=")
        if not equals or name not in preflight.SPIDER_ARGS:
            raise cli.UsageError(
                f"-a {argument}: the spider takes {', '.join(preflight.SPIDER_ARGS)},"
                " as NAME=VALUE",
                print_help=False,
            )
        given.append([name, value])
    _check_choice(settings, {name: value for name, value in given if name != "setting"})

    async def work(watch: Watch, control: Control) -> int:
        return _done(await control.start(int(text), with_args(given)), opts)

    return work


def _check_choice(settings: Any, spider_args: dict[str, str]) -> None:
    """What each worker would refuse at its start, as far as this machine has the file of sites.

    :raises cli.UsageError: a site is unknown, an address is none
    """
    if not spider_args:
        return
    try:
        site_choice.all_sites(settings)
    except (SitesError, OSError):
        return  # it may be on the nodes alone
    try:
        preflight.chosen_sites(settings, spider_args)
    except SitesError as exc:
        raise cli.UsageError(str(exc), print_help=False) from exc


def _scale(text: str, opts: argparse.Namespace) -> Work:
    try:
        span = span_of(text)
    except ValueError as exc:
        raise cli.UsageError(str(exc), print_help=False) from exc

    async def work(watch: Watch, control: Control) -> int:
        return _done(await control.scale(span), opts)

    return work


def _drain(node: str, opts: argparse.Namespace) -> Work:
    async def work(watch: Watch, control: Control) -> int:
        look = await control.drain(node, not opts.undo)
        _note(f"node {node} takes part again" if opts.undo else f"node {node} is drained")
        return _done(look, opts)

    return work


def _deploy(nodes: dict[str, Node], opts: argparse.Namespace) -> Work:
    async def work(watch: Watch, control: Control) -> int:
        state = await watch.ledger.read()
        in_use = {job.version for job in state.jobs.values()} | {state.wanted.version}
        if not await watch.ledger.begin_deploy():
            raise FleetRefused("another deploy is at it; wait until it has ended")
        try:
            done = await asyncio.to_thread(_egg_to_all, list(nodes.values()), in_use, opts)
        finally:
            await watch.ledger.end_deploy()
        await control.note_deployed(done.version)
        if opts.as_json:
            cli.print_object(
                {"version": done.version, "nodes": done.nodes, "removed": done.removed}
            )
        else:
            cli.show(f"Version {done.version} is on {len(done.nodes)} nodes.")
        if opts.restart and state.jobs:
            await control.restart(done.version)
        elif state.jobs:
            _note("running workers keep their version until `scrapy fleet restart`")
        return 0

    return work


def _egg_to_all(
    nodes: list[Node], in_use: set[str], opts: argparse.Namespace
) -> deploying.Deployed:
    if opts.egg:
        try:
            egg = Path(opts.egg).read_bytes()
        except OSError as exc:
            raise deploying.DeployFailed(f"{opts.egg}: {exc.strerror}") from exc
    else:
        _note("builds the egg")
        egg = deploying.build_egg(Path(closest_scrapy_cfg()).parent)
    version = opts.version or deploying.version_of(egg, datetime.now(UTC))
    deploying.digest_of(egg)
    try:
        return deploying.deploy(nodes, egg, version, in_use - {""}, _note)
    except deploying.DeployFailed as exc:
        for name in exc.left:
            _note(f"node {name} may still have version {version}: it did not answer")
        raise deploying.DeployFailed(f"Nothing is deployed: {exc}") from exc


def _done(look: Look, opts: argparse.Namespace) -> int:
    """After what changed the fleet: how it is now. 0, as what was asked was reached."""
    if opts.as_json:
        cli.print_object(tables.status_of(look)["fleet"])
    else:
        cli.show(tables.headline(tables.status_of(look)["fleet"]))
    for message in look.messages:
        if " workers for " in message:
            _note(message)
    return 0


def show_status(look: Look, as_json: bool) -> int:
    found = tables.status_of(look)
    if as_json:
        cli.print_object(found)
    else:
        cli.show(tables.headline(found["fleet"]))
        cli.show()
        version = found["fleet"]["version"] or found["fleet"]["deployed"]
        nodes = [tables.shown_node(row, version) for row in found["nodes"]]
        cli.print_rows(nodes, tables.NODE_COLUMNS, False)
        if found["workers"]:
            cli.show()
            workers = [tables.shown_worker(row) for row in found["workers"]]
            cli.print_rows(workers, tables.WORKER_COLUMNS, False)
        for problem in found["problems"]:
            cli.note(f"! {problem}")
    return 1 if found["problems"] else 0


def show_versions(look: Look, as_json: bool) -> int:
    """Exit code 1 when nodes or workers differ."""
    alive = [row for row in tables.worker_rows(look) if row["alive"]]
    runs = [(row["node"], row["version"]) for row in alive]
    rows = [_versions_of(view, runs) for _, view in sorted(look.views.items())]
    cli.print_rows(rows, ("node", "runs", "workers", "has"), as_json)
    faults = [view.error for view in look.views.values() if view.error]
    newest = {view.versions[-1:] for view in look.views.values() if not view.error}
    if len(newest) > 1:
        faults.append("the nodes have different versions: `scrapy fleet deploy`")
    own = {row["version"] for row in alive if row["managed"]}
    if len(own) > 1:
        faults.append("workers run different versions: `scrapy fleet restart`")
    elif own:  # which `restart` does not reach
        faults += [
            f"worker {row['worker']} on {row['host']} runs version {row['version']} and is not of"
            " the fleet: end it"
            for row in alive
            if row["version"] not in own
        ]
    for fault in faults:
        cli.note(f"! {fault}")
    return 1 if faults else 0


def _versions_of(view: NodeView, runs: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """:param runs: (node, version) of each worker that is at work"""
    own = [version for node, version in runs if node == view.name]
    unknown = "?" if view.error else "none"
    return {
        "node": view.name,
        "has": ", ".join(view.versions) or unknown,
        "runs": ", ".join(sorted(set(own))) or None,
        "workers": len(own),
    }


def _logs(node: Node, job: str, opts: argparse.Namespace) -> int:
    name = _job(node, job)
    text, end = node.log(name)
    cli.show("\n".join(_lines(text)[-(opts.lines or LINES) :]), flush=True)
    while opts.follow:
        time.sleep(FOLLOW_S)
        text, size = node.log(name, start=end)
        if text:
            cli.show("\n".join(_lines(text)), flush=True)
        end = min(end + len(text), size)  # smaller: the log was begun anew
    return 0


def _lines(text: bytes) -> list[str]:
    return text.decode("utf-8", "replace").splitlines()


def _job(node: Node, start: str) -> str:
    """The job whose id begins so; the text itself where scrapyd does not know one: its log may
    be there all the same."""
    view = node.view()
    if view.error:
        raise NodeError(view.error)
    found = sorted(job for job in (*view.jobs, *view.finished) if job.startswith(start))
    if not found and not start.strip():
        raise NodeError("a job is named by its id, see `scrapy fleet status`")
    if len(found) > 1 and start not in found:
        raise NodeError(f"{start} is the beginning of {len(found)} jobs: {', '.join(found[:5])}")
    return found[0] if len(found) == 1 else start


async def _watch(settings: Any, nodes: dict[str, Node]) -> int:
    end = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, end.set)
    from newscrawler.crawl.monitoring import monitor_beside  # Spidermon, for this verb alone

    beside = monitor_beside(settings)
    monitor = asyncio.ensure_future(beside(end)) if beside is not None else None
    async with fleet.open_watch(settings, nodes) as watch:
        _note(f"watches {len(nodes)} nodes: {', '.join(nodes)}; Ctrl-C ends it, not the workers")
        await fleet.watch_for_ever(watch, _note, end)
    if monitor is not None:
        await monitor
    _note("ends; workers go on")
    return 0
