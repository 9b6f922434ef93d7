"""Fixture ``newsweb``: start simulated news webs; all are stopped when the test ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests import warm
from tests.newsweb import process
from tests.newsweb.process import NewswebProcess

process.start_process = partial(warm.popen, module="tests.newsweb")

StartNewsweb = Callable[..., NewswebProcess]


@pytest.fixture
def newsweb(tmp_path: Path) -> Iterator[StartNewsweb]:
    """``web = newsweb("ip", articles=10)`` ->
    tests.newsweb.process.NewswebProcess, ready to answer."""
    running: list[NewswebProcess] = []

    def start(layout: str = "ip", **options: Any) -> NewswebProcess:
        web = NewswebProcess(layout, tmp_path / f"newsweb-{len(running)}", **options)
        running.append(web)
        return web

    yield start
    for web in running:
        web.stop()
