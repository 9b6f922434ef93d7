"""`make demo`: the program against the simulated news web, judged by the web's own truth and log.

    python -m tests.newsweb.demo [--minutes 1.4] [--factor 20] [--seed N] [--no-serve]

Starts the news web on 127.0.x.y, runs `scrapy run` on it with the frontier's clock at the web's
speed (a delay of 5 s is 0.25 s of ours), and stops it when all is found that is to be found: not
before --minutes, and on a slow machine as late as it takes, while anything more is found within a
minute. Then what is stored is compared with what was published: found, missed, unexpected; title,
content, publication time, authors; the least distance between two fetches of a site against its
delay; what is left in the queue. Of some sites nothing is told but the home page (unknown.py):
whether what they announce was asked for, and no list was stored. Their forms are drawn anew each
time and counted (announced feeds, sections of every shape, failing pages, lists that call
themselves articles, signatures at the end): a web without one of them fails. The seed is printed. Exit code 0 when all of it holds.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from newscrawler.discovery.sites import Sites
from newscrawler.frontier import connect
from newscrawler.frontier import redis_server as embedded
from newscrawler.frontier.keeper import tied
from newscrawler.frontier.queue import Frontier, FrontierConfig
from newscrawler.items import Article, Link
from newscrawler.store import open_store
from newscrawler.web import urls
from tests.newsweb import judge
from tests.newsweb.process import ROOT, NewswebProcess

#: Share of each field that must be right.
FLOOR = 0.98
#: The same of sites without a selector set, of which nothing is told.
UNKNOWN_FLOORS = {"title": 0.98, "content": 0.9, "published": 0.95, "authors": 0.8}
#: Sites of which only the home is told.
UNKNOWN = 6
#: Seconds between two looks at what is stored.
LOOK_S = 5.0
#: A crawl that is told to stop lets its fetches end, seconds.
STOP_S = 90.0


@dataclass
class Watch:
    """When the crawl is told to stop. The most is a bound for a crawl that finds one article a
    minute for ever; it is less than the judge.BUSY_S of a web that is 20 times as fast as ours."""

    least_s: float
    patience_s: float = 60.0
    most_s: float = 900.0
    found: int = -1
    since_s: float = 0.0

    def ended(self, elapsed_s: float, found: int, missed: int) -> str:
        """ "" = it goes on; "all found", "nothing more" was found for a while, or "time was up"."""
        if found > self.found:
            self.found, self.since_s = found, elapsed_s
        if elapsed_s < self.least_s:
            return ""
        if not missed:
            return "all found"
        if elapsed_s - max(self.since_s, self.least_s) >= self.patience_s:
            return "nothing more"
        return "time was up" if elapsed_s >= max(self.most_s, self.least_s) else ""


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="make demo ARGS=...",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--minutes", type=float, default=1.4, help="real minutes of crawling (1.4)")
    parser.add_argument(
        "--factor", type=float, default=20.0, help="simulated seconds per real second (20)"
    )
    parser.add_argument(
        "--articles", type=int, default=20, help="articles per site at the start (20)"
    )
    parser.add_argument(
        "--seed",
        type=int,
        default=secrets.randbelow(10_000),
        help="draws the web (another each time)",
    )
    parser.add_argument(
        "--data", type=Path, default=ROOT / "data" / "demo", help="emptied first (data/demo)"
    )
    parser.add_argument("--report", type=Path, help="write the verdict as JSON to this file")
    parser.add_argument(
        "--no-serve", action="store_true", help="do not leave the search page running"
    )
    return parser.parse_args()


def settings(web: NewswebProcess, data: Path, redis_url: str) -> dict[str, str]:
    return {
        "DATA_DIR": str(data),
        "REDIS_URL": redis_url,
        "SITES_FILE": str(web.sites_file),
        "SELECTORS_DIR": str(web.selectors_dir),
        "ALLOWED_PRIVATE_NETWORKS": "127.0.0.0/8",
        "ARTICLE_MAX_AGE_DAYS": "7",
        # two minutes are half an hour of the web's time: a first back-off of a minute
        # would be all of it
        "BACKOFF_START_S": "3",
        "STATS_FILE": str(data / "stats.json"),
        "API_PORT": str(free_port()),
    }


def free_port() -> int:
    with socket.socket() as sock:
        try:
            sock.bind(("127.0.0.1", 8642))
        except OSError:
            sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


def scrapy(*args: str, **own: str) -> list[str]:
    return [
        sys.executable,
        "-m",
        "scrapy",
        *args,
        *(part for n, v in own.items() for part in ("-s", f"{n}={v}")),
    ]


async def set_clock(redis_url: str, clock: dict[str, Any]) -> None:
    """The frontier's clock runs as the web's; possible only on an empty frontier of
    loopback sites."""
    client = connect(redis_url, single=False)
    try:
        frontier = Frontier(client, FrontierConfig(loopback_only=True), "demo")
        await frontier.set_clock(clock["factor"], clock["offset_ms"])
    finally:
        await client.aclose()


async def stored_articles(data: Path) -> list[Article]:
    store = open_store("", data)
    await store.open()
    try:
        return [article async for article in store.scan()]
    finally:
        await store.close()


async def what_is_left(redis_url: str) -> dict[str, int]:
    client = connect(redis_url, single=False)
    try:
        counts = await Frontier(client, FrontierConfig(loopback_only=True), "demo-report").counts()
        return {
            "queued": counts.queued,
            "leased": counts.leased,
            "waiting": counts.waiting,
            "quarantined": counts.quarantined,
        }
    finally:
        await client.aclose()


async def still_queued(redis_url: str, sites_file: Path, addresses: list[str]) -> set[str]:
    """Those that the crawl knew, and had no time for."""
    sites = Sites.load(sites_file)
    client = connect(redis_url, single=False)
    found = set()
    try:
        frontier = Frontier(client, FrontierConfig(loopback_only=True), "demo-report")
        for address in addresses:
            link = sites.identify(address)
            if isinstance(link, Link):
                record = await frontier.record(link.url_id, urls.domain_of(link.url) or "")
                if record is not None and record.state in ("queued", "leased", "waiting"):
                    found.add(address)
    finally:
        await client.aclose()
    return found


def main() -> int:
    args = options()
    started = time.monotonic()
    data = args.data.resolve()
    stop_earlier(data)
    shutil.rmtree(data, ignore_errors=True)
    data.mkdir(parents=True)
    simulated_h = args.minutes / 60 * args.factor
    redis_url = embedded.ensure(data)
    web = NewswebProcess(
        "ip", data / "web", articles=args.articles, factor=args.factor, delay=5, rate=6.0,
        duration=round(simulated_h * 0.55, 3), unknown=UNKNOWN, seed=args.seed,
    )  # fmt: skip
    try:
        print(
            f"A simulated news web of {len(web.homes())} sites; {args.factor:g} of its seconds are one of ours; --seed {args.seed} makes the same again",
            flush=True,
        )
        asyncio.run(set_clock(redis_url, web.about["clock"]))
        own = settings(web, data, redis_url)
        ended, code = crawl(web, data, own, Watch(args.minutes * 60))
        verdict = judged(web, data, redis_url, ended)
        verdict["exit_code_of_crawl"] = code
        verdict["seconds"] = round(time.monotonic() - started, 1)
    finally:
        web.stop()
        embedded.stop(data)
    show(verdict)
    if args.report:
        args.report.write_text(json.dumps(verdict, ensure_ascii=False, indent=1, default=str))
    if not args.no_serve:
        leave_search_page(data, own)
    return 0 if not verdict["failures"] else 1


def crawl(web: NewswebProcess, data: Path, own: dict[str, str], watch: Watch) -> tuple[str, int]:
    """Why it ended (see :class:`Watch`), and its exit code."""
    started = time.monotonic()
    # Ctrl-C is handed on: the terminal would send it to both, and a second one
    # ends a crawl at once.
    process = subprocess.Popen(
        scrapy("run", **own), cwd=ROOT, start_new_session=True, preexec_fn=tied()
    )
    ended = ""
    try:
        while not ended and process.poll() is None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(LOOK_S)
            elapsed_s = time.monotonic() - started
            if elapsed_s >= watch.least_s and (data / "articles.db").exists():
                now = judge.coverage(web.truth(), asyncio.run(stored_articles(data)))
                ended = watch.ended(elapsed_s, len(now.found), len(now.missed))
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
        code = process.wait(STOP_S)
    return ended or "the crawl ended by itself", code


def judged(web: NewswebProcess, data: Path, redis_url: str, ended: str) -> dict[str, Any]:
    truth, hits = web.truth(), web.hits()
    articles = asyncio.run(stored_articles(data))
    coverage = judge.coverage(truth, articles)
    queued = asyncio.run(
        still_queued(redis_url, web.sites_file, [row["url"] for row in coverage.missed])
    )
    unknown = {r["host"] for r in truth if r["type"] == "site" and r["unknown"] is not None}
    forms = judge.forms(truth)
    verdict: dict[str, Any] = {
        "ended": ended,
        "forms": forms,
        "of_forms": {f.name: shares(coverage, set(f.hosts)) for f in forms if f.hosts < unknown},
        "of_unknown": shares(coverage, unknown),
        "of_others": shares(coverage, unknown, inside=False),
        "discovery": judge.discovery(hits, truth),
        "unreached": [
            row for row in coverage.missed if row["url"] in queued or ended == "time was up"
        ],
        "politeness": judge.politeness(hits, truth),
        "coverage": coverage,
        "left": asyncio.run(what_is_left(redis_url)),
        "hits": len(hits),
        "stored": len(articles),
        "stats": json.loads((data / "stats.json").read_text())
        if (data / "stats.json").exists()
        else {},
    }
    verdict["failures"] = failures(verdict)
    return verdict


def shares(coverage: judge.Coverage, hosts: set[str], *, inside: bool = True) -> dict[str, float]:
    """Field -> share that is right, of what was found on these hosts, or on all others."""
    found = [url for url in coverage.found if (urls.domain_of(url) in hosts) is inside]
    wrong = {
        name: sum((urls.domain_of(row[0]) in hosts) is inside for row in rows)
        for name, rows in coverage.wrong.items()
    }
    return {name: 1 - count / max(1, len(found)) for name, count in wrong.items()}


def failures(verdict: dict[str, Any]) -> list[str]:
    coverage, out = verdict["coverage"], []
    if not coverage.found:
        out.append("nothing was found")
    unreached = verdict["unreached"]
    missed = [row for row in coverage.missed if row not in unreached]
    if missed:
        out.append(f"{len(missed)} articles missed, e.g. {missed[0]}")
    if unreached:
        out.append(
            f"time was up: {len(unreached)} articles were not reached yet, e.g. {unreached[0]['url']}"
        )
    if coverage.unexpected:
        out.append(
            f"{len(coverage.unexpected)} stored that should not be, e.g. {coverage.unexpected[0]}"
        )
    out += [
        f"{field}: {share:.3f} right, {FLOOR} wanted"
        for field, share in verdict["of_others"].items()
        if share < FLOOR
    ]
    out += [
        f"{field} on sites of which only the home is told: {share:.3f} right, {UNKNOWN_FLOORS[field]} wanted"
        for field, share in verdict["of_unknown"].items()
        if share < UNKNOWN_FLOORS[field]
    ]
    out += [
        f"no site drawn: {form.name}; this web proves nothing of it"
        for form in verdict["forms"]
        if not form.whole
    ]
    if verdict["discovery"]:
        out.append(f"{len(verdict['discovery'])} lists wrong, e.g. {verdict['discovery'][0]}")
    if verdict["politeness"]:
        out.append(
            f"{len(verdict['politeness'])} fetches too soon, e.g. {verdict['politeness'][0]}"
        )
    if verdict["left"]["leased"]:
        out.append(f"{verdict['left']['leased']} URLs are still leased")
    return out


def show(verdict: dict[str, Any]) -> None:
    coverage = verdict["coverage"]
    print()
    print(f"Requests seen by the sites   {verdict['hits']}")
    print(
        f"Articles found               {len(coverage.found)} of {len(coverage.found) + len(coverage.missed)}"
    )
    print(f"Stored that should not be    {len(coverage.unexpected)}")
    for field, share in verdict["of_others"].items():
        of_unknown = verdict["of_unknown"][field]
        print(
            f"  {field:<12} right         {share:.1%}, of sites by their home alone {of_unknown:.1%}"
        )
    for form in verdict["forms"]:
        right = verdict["of_forms"].get(form.name, {})
        told = ", ".join(f"{field} {share:.1%}" for field, share in right.items())
        print(f"  {len(form.hosts)} sites: {form.name}{': ' if told else ''}{told}")
    print(f"Lists not found, or in vain  {len(verdict['discovery'])}")
    for field, rows in coverage.wrong.items():
        for url, wanted, got in rows[:3]:
            print(f"    {field} of {url}")
            for name, text in zip(("wanted", "got   "), differing(wanted, got), strict=True):
                print(f"      {name} {text!r}")
    print(
        f"Stored in an older wording   {len(coverage.stale)} (edited since; looked at again after 15 min, 1 h, 6 h, 1 d)"
    )
    allowed = f"more than {judge.TOLERANCE:.0%} of the delay"
    print(f"Fetches sooner than allowed  {len(verdict['politeness'])}   (by {allowed})")
    left = verdict["left"]
    print(
        f"Left in the queue            {left['queued']} to fetch, {left['leased']} leased, {left['waiting']} to be looked at again"
    )
    for failure in verdict["failures"]:
        print(f"FAILED: {failure}")
    print(
        f"{'Not all of it holds' if verdict['failures'] else 'All of it holds'}, after {verdict.get('seconds', 0)} s"
    )


def differing(wanted: Any, got: Any, before: int = 40, most: int = 200) -> tuple[str, str]:
    """Two texts from a little before the place where they part."""
    texts = [" ".join(str(text).split()) for text in (wanted, got)]
    if texts[0] == texts[1]:  # blanks alone
        texts = [str(wanted), str(got)]
    shared = next((i for i, (a, b) in enumerate(zip(*texts, strict=False)) if a != b), None)
    start = max(0, (min(map(len, texts)) if shared is None else shared) - before)
    cut = [text[start : start + most] for text in texts]
    ends = ["…" if len(text) > start + most else "" for text in texts]
    head = "…" if start else ""
    return f"{head}{cut[0]}{ends[0]}", f"{head}{cut[1]}{ends[1]}"


def stop_earlier(data: Path) -> None:
    """The search page that an earlier demo left."""
    pid_file = data / "serve.pid"
    if pid_file.exists():
        pid = int(pid_file.read_text())
        command = Path(f"/proc/{pid}/cmdline")
        if (
            command.exists()
            and b"serve" in command.read_bytes()
            and str(data).encode() in command.read_bytes()
        ):
            os.kill(pid, 15)


def leave_search_page(data: Path, own: dict[str, str]) -> None:
    del own["REDIS_URL"]
    with (data / "serve.log").open("ab") as log:
        process = subprocess.Popen(
            scrapy("serve", **own), cwd=ROOT, stdout=log, stderr=log, start_new_session=True
        )
    (data / "serve.pid").write_text(str(process.pid))
    print(
        f"Search what was found: http://127.0.0.1:{own['API_PORT']}   (stays until: kill {process.pid})"
    )


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        print("Stopped; nothing was judged.", file=sys.stderr)
        sys.exit(130)
