"""Start the simulated news web: read the options, build the layout, serve until stopped."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

from aiohttp import web

from tests.newsweb import bench, build, sitesfile
from tests.newsweb.app import SiteApp
from tests.newsweb.bench import BenchApp
from tests.newsweb.build import Plan
from tests.newsweb.control import Control
from tests.newsweb.dates import HANOI
from tests.newsweb.templates import IP_SITES
from tests.newsweb.tls import Authority
from tests.newsweb.wire import App, Connection, Hits, bind, bind_all, serve_both, serve_plain
from tests.newsweb.world import SimClock, World


def parser() -> argparse.ArgumentParser:
    p = argparse.ArgumentParser(
        prog="python -m tests.newsweb",
        description="A simulated news web on 127.0.0.0/8. See docs/newsweb.md.",
    )
    add = p.add_argument
    add(
        "--layout",
        choices=("ip", "names", "bench"),
        default="ip",
        help="ip: sites on 127.0.x.y; names: the configured sites over HTTPS; bench: fast",
    )
    add(
        "--sites",
        default=None,
        help="names: path of the sites.json (./sites.json); ip: number of ordinary sites (16)",
    )
    add("--port", type=int, default=0, help="port of all sites; 0 = a free one")
    add(
        "--control-port",
        type=int,
        default=0,
        help="port of the control address on 127.0.0.1; 0 = a free one",
    )
    add("--subnet", type=int, default=5, help="x of 127.0.x.y (ip; bench: x + 1)")
    add("--seed", type=int, default=1)
    add("--articles", type=int, default=30, help="articles per site at the start")
    add("--rate", type=float, default=0.5, help="further articles per site and simulated hour")
    add(
        "--duration",
        type=float,
        default=24.0,
        help="simulated hours in which articles appear and are edited",
    )
    add(
        "--delay",
        type=float,
        default=-1.0,
        help="delay that every site asks for, seconds (Crawl-delay sites: 1.5 times); < 0 = as modelled",
    )
    add(
        "--faults",
        default="all",
        help="all | none | quiet (none that makes a crawler back off) | names, comma-separated",
    )
    add(
        "--relayout",
        default="",
        metavar="SITE@HOURS",
        help="that site is redesigned so many simulated hours after the start",
    )
    add(
        "--rhythm",
        action="store_true",
        help="articles follow the hours of a newsroom, and sites differ in their rate",
    )
    add(
        "--scripted",
        type=int,
        default=0,
        metavar="N",
        help="ip: pages of the first N sites are empty frames that a script fills",
    )
    add(
        "--home-only",
        action="store_true",
        help="ip: the sites.json names nothing but homes; feeds, sitemaps and sections are there to be found",
    )
    add(
        "--unknown",
        type=int,
        default=0,
        help="ip: so many further sites, up to 79, of which the sites.json names nothing but the home",
    )
    add("--start", default="", help="simulated time of the start, ISO 8601 (the real time)")
    add("--factor", type=float, default=1.0, help="simulated seconds per real second")
    add("--sites-file", type=Path, help="write a sites.json for this layout (ip, bench)")
    add("--selectors-dir", type=Path, help="write selector sets for some of the sites (ip, bench)")
    add(
        "--truth",
        type=Path,
        help="write the truth to this file at the start (bench: not yet) and at the end",
    )
    add("--hits", type=Path, help="append each request to this file")
    add(
        "--ca-file",
        type=Path,
        help="names: where the test authority's certificate is written (a temporary folder)",
    )
    add("--hosts", type=int, default=bench.HOSTS, help="bench: hosts")
    add("--pages", type=int, default=bench.PAGES, help="bench: pages per host")
    add("--page-bytes", type=int, default=bench.PAGE_BYTES, help="bench: bytes per page")
    add("--latency", type=float, default=0.0, help="bench: seconds until a page is answered")
    add("--no-gzip", action="store_true", help="never compress (bench never does)")
    add(
        "--exit-with-parent",
        action="store_true",
        help="stop when the process that started this one is gone",
    )
    return p


class Server:
    """One running layout."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.hits = Hits(options.hits)
        self.folder = tempfile.TemporaryDirectory(prefix="newsweb-")
        self.world: World | None = None
        self.bench: BenchApp | None = None
        self.about: dict[str, Any] = {"layout": options.layout, "pid": os.getpid()}
        self.tasks: list[asyncio.Task[None]] = []

    def plan(self) -> Plan:
        o = self.options
        count = int(o.sites) if o.layout == "ip" and o.sites else len(IP_SITES)
        return Plan(
            o.seed,
            o.articles,
            o.rate,
            o.duration,
            count,
            o.delay,
            o.faults,
            relayout=o.relayout,
            home_only=o.home_only,
            rhythm=o.rhythm,
            unknown=o.unknown,
            scripted=o.scripted,
        )

    def clock(self) -> SimClock:
        clock = SimClock()
        start = None
        if self.options.start:
            when = datetime.fromisoformat(self.options.start)
            start = (when if when.tzinfo else when.replace(tzinfo=HANOI)).timestamp()
        if start is not None or self.options.factor != 1.0:
            clock.set(self.options.factor, start)
        return clock

    async def start(self) -> None:
        starters: dict[str, Callable[[], Any]] = {
            "ip": self._start_ip,
            "names": self._start_names,
            "bench": self._start_bench,
        }
        await starters[self.options.layout]()
        control = Control(self.hits, self.world, self.bench, self.about)
        runner = web.AppRunner(control.app(), access_log=None)
        await runner.setup()
        sock = bind("127.0.0.1", self.options.control_port)
        await web.SockSite(runner, sock).start()
        self.about["control"] = f"http://127.0.0.1:{sock.getsockname()[1]}"
        self.control, self.runner = control, runner
        if self.world is not None:
            clock = self.world.clock
            self.about["clock"] = {
                "factor": clock.factor,
                "offset_s": clock.offset_s,
                "offset_ms": round(clock.offset_s * 1000),
            }
        if self.bench is None:  # 5,000 texts take a second
            self._write_truth()
        print(json.dumps({"ready": True, **self.about}, ensure_ascii=False), flush=True)

    def _factory(self, app: App) -> Callable[[], Connection]:
        return lambda: Connection(app, self.hits)

    async def _start_ip(self) -> None:
        plan, net = self.plan(), self.options.subnet
        numbers = [*range(1, plan.sites + 1), *range(101, 101 + plan.sites), 200, 201]
        numbers += [build.UNKNOWN_FROM + n for n in range(plan.unknown)]
        port, socks = bind_all([f"127.0.{net}.{n}" for n in numbers], self.options.port)
        self.world = build.ip_world(plan, self.clock(), port, net)
        sitesfile.write_world(self.world, self.options.sites_file, self.options.selectors_dir)
        await serve_plain(self._factory(SiteApp(self.world, gzip=not self.options.no_gzip)), socks)
        self.about |= {
            "port": port,
            "sites": {
                s.id: {"template": s.template.key, "name": s.name, "home": s.base + s.home}
                for s in self.world.sites
            },
        }

    async def _start_names(self) -> None:
        sites = Path(self.options.sites or "sites.json")
        self.world = build.names_world(self.plan(), self.clock(), sites)
        authority = Authority.make()
        folder = Path(self.folder.name)
        ca_file = self.options.ca_file or folder / "ca.pem"
        ca_file.write_bytes(authority.pem())
        hosts = sorted({h.partition(":")[0] for h in self.world.by_host})
        context = authority.context(folder, hosts)
        # Two names with broken certificates, to be asked for through the same override.
        broken = {
            "expired.newsweb.test": authority.context(
                folder, ["expired.newsweb.test"], name="expired", expired=True
            ),
            "wrong.newsweb.test": authority.context(folder, ["other.newsweb.test"], name="wrong"),
        }

        def choose(tls: Any, name: str | None, _context: Any) -> None:
            if name in broken:
                tls.context = broken[name]

        context.sni_callback = choose
        sock = bind("127.0.0.1", self.options.port)
        app = SiteApp(self.world, gzip=not self.options.no_gzip)
        self.tasks.append(asyncio.ensure_future(serve_both(self._factory(app), sock, context)))
        port = sock.getsockname()[1]
        self.about |= {
            "port": port,
            "ca_file": str(ca_file),
            "resolve_override": f"*=127.0.0.1:{port}",
            "sites": {
                s.id: {"template": s.template.key, "name": s.name, "home": s.base + s.home}
                for s in self.world.sites
            },
        }

    async def _start_bench(self) -> None:
        o = self.options
        port, socks = bind_all([f"127.0.{o.subnet + 1}.{n}" for n in range(1, o.hosts + 1)], o.port)
        hosts = [f"127.0.{o.subnet + 1}.{n}:{port}" for n in range(1, o.hosts + 1)]
        self.bench = BenchApp(
            o.seed, hosts, o.pages, o.page_bytes, now=time.time(), latency_s=o.latency
        )
        self.bench.warm()
        sitesfile.write_bench(self.bench, o.sites_file, o.selectors_dir)
        await serve_plain(self._factory(self.bench), socks)
        self.about |= {
            "port": port,
            "homes": [f"http://{h}/" for h in hosts],
            "pages": o.pages * o.hosts,
            "css": bench.CSS,
        }

    def _write_truth(self) -> None:
        if self.options.truth:
            self.options.truth.write_text(
                "".join(line + "\n" for line in self.control.truth_lines()), encoding="utf-8"
            )

    async def run(self) -> None:
        """Serve until a signal, POST /_stop, or the parent's end."""
        await self.start()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self.control.stopping.set)
        parent = os.getppid()
        while not self.control.stopping.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(self.control.stopping.wait(), 0.2)
            self.hits.flush()
            if self.options.exit_with_parent and os.getppid() != parent:
                break
        self._write_truth()
        for task in self.tasks:
            task.cancel()
        await self.runner.cleanup()
        self.hits.close()
        self.folder.cleanup()


def main(argv: list[str] | None = None) -> int:
    options = parser().parse_args(argv)
    try:
        import uvloop

        runner: Callable[[Any], None] = uvloop.run
    except ImportError:
        runner = asyncio.run
    try:
        runner(Server(options).run())
    except (OSError, ValueError, KeyError) as exc:
        print(f"newsweb: {type(exc).__name__}: {exc}", file=sys.stderr)
        return 1
    return 0
