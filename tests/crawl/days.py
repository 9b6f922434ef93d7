"""A person who runs the program day after day: the shipped defaults, places only, and a
clock that moves on."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from newscrawler.frontier import connect, keys, redis_server
from newscrawler.items import Article
from tests import warm
from tests.crawl.harness import Finished, Running, read_stats, until
from tests.crawl.small import redis_servers, stored
from tests.newsweb import judge
from tests.newsweb.process import NewswebProcess

HOUR_S = 3600.0


@dataclass
class Person:
    """What is set is where things are, nothing of how the program works: no limit, no
    pace, no time-out."""

    folder: Path
    web: NewswebProcess
    port: int
    #: False: search by meaning is as it is shipped, which the suite switches off (conftest.py).
    is_searched_by_words_alone: bool = True

    def __post_init__(self) -> None:
        self.data = self.folder / "data"
        self._serial = 0

    def environment(self) -> dict[str, str]:
        kept = {
            k: v
            for k, v in os.environ.items()
            if not k.startswith(("SCRAPY_", "LLM_", "REDIS_URL", "PROGRESS"))
            and (self.is_searched_by_words_alone or k != "SEMANTIC")
        }
        places = {
            "DATA_DIR": self.data,
            "SITES_FILE": self.web.sites_file,
            "SELECTORS_DIR": self.web.selectors_dir,
            "ALLOWED_PRIVATE_NETWORKS": "127.0.0.0/8",
            "API_PORT": self.port,
        }
        return {**kept, **{name: str(value) for name, value in places.items()}}

    def start(self, *args: str) -> Running:
        self._serial += 1
        stats = self.folder / f"stats-{self._serial}.json"
        with (self.folder / f"run-{self._serial}.log").open("wb") as log:
            process = warm.popen(
                args,
                env={**self.environment(), "STATS_FILE": str(stats)},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        return Running(process, Path(log.name), stats)

    def run(self, *args: str, timeout: float = 150) -> Finished:
        return self.start(*args).wait(timeout)

    def log(self) -> str:
        """What `scrapy run` writes beside the terminal."""
        path = self.data / "logs" / "crawl.log"
        return path.read_text(errors="replace") if path.exists() else ""

    # ------------------------------------------------------------ time
    def clock(self, **change: float) -> dict[str, Any]:
        """Sets the clock of the web and of the frontier alike: ``factor``, ``advance_s``."""
        clock = self.web.clock(**change)
        (self.data).mkdir(exist_ok=True)
        url = redis_server.ensure(self.data)

        async def tell() -> None:
            client: Any = connect(url)
            try:
                now = {"factor": repr(clock["factor"]), "offset": repr(clock["offset_s"] * 1000)}
                await client.hset(keys.clock(0), mapping=now)
            finally:
                await client.aclose()

        asyncio.run(tell())
        redis_server.stop_if_last(self.data)
        return clock

    # ------------------------------------------------------------ what came of it
    def articles(self) -> list[Article]:
        return stored(self.data)

    def has(self, rows: list[dict[str, Any]]) -> bool:
        """Whether all of these stories of the web are stored."""
        return {row["url"] for row in rows} <= {article.url for article in self.articles()}

    def complaints(self) -> list[str]:
        """What the comparison with all that the web had to offer shows; empty = nothing."""
        found = judge.coverage(self.web.truth(), self.articles(), grace_s=0)
        return [f"missed {row['url']}" for row in found.missed] + [
            f"unexpected {row}" for row in found.unexpected
        ]

    def left_behind(self) -> list[str]:
        """Processes that work in the data folder, or serve it."""
        found = [f"redis-server {pid}" for pid in redis_servers(self.data)]
        for process in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                command = (process / "cmdline").read_bytes()
                if str(self.data).encode() in command and b"pytest" not in command:
                    found.append(f"{process.name} {command.decode(errors='replace')[:200]}")
        return found

    def is_left_alone(self) -> None:
        until(lambda: not self.left_behind(), f"nobody is left: {self.left_behind()}", 20)


def stop(running: Running, how: signal.Signals, timeout: float = 60) -> Finished:
    running.process.send_signal(how)
    code = running.process.wait(timeout)
    return Finished(code, running.text(), running.text(), read_stats(running.stats_file))
