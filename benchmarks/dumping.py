"""``python -m benchmarks.dumping crawl news ...``: `scrapy crawl news ...` that says
where it is when asked.

SIGUSR1: the stack of every asyncio task, and what Scrapy's engine holds. SIGUSR2: the stacks of all
threads, also where the event loop does not turn any more. Both go to stderr.
"""

from __future__ import annotations

import asyncio
import faulthandler
import gc
import signal
import sys
from typing import Any


def tell(*_: Any) -> None:
    try:
        tasks = asyncio.all_tasks()
    except RuntimeError:
        tasks = set()  # no loop runs
    print(f"{len(tasks)} tasks", file=sys.stderr)
    for task in tasks:
        task.print_stack(file=sys.stderr)
    for crawler in _running():
        from scrapy.utils.engine import format_engine_status

        print(format_engine_status(crawler.engine), file=sys.stderr)
        loop = getattr(crawler.engine.scheduler, "lease_loop", None)
        print("lease loop", {k: repr(v)[:300] for k, v in vars(loop).items()} if loop else None, file=sys.stderr)  # fmt: skip
    sys.stderr.flush()


def _running() -> list[Any]:
    from scrapy.crawler import Crawler

    return [x for x in gc.get_objects() if isinstance(x, Crawler) and x.engine is not None]


def main() -> None:
    signal.signal(signal.SIGUSR1, tell)
    faulthandler.register(signal.SIGUSR2, all_threads=True)
    from scrapy.cmdline import execute

    execute(["scrapy", *sys.argv[1:]])


if __name__ == "__main__":
    main()
