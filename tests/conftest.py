"""Fixtures of the whole suite. Topic fixtures live in tests/fixtures_<topic>.py and are
listed here when present."""

from __future__ import annotations

import functools
import gc
import importlib.util
import os
import signal
from collections.abc import Generator
from pathlib import Path
from typing import Any

import httpx._transports.default
import pytest

ROOT = Path(__file__).resolve().parent.parent
SHARED = ROOT.parent / "shared"

# Under nohup this process ignores SIGHUP, in the background of a script SIGINT, and so would each
# program that a test starts and hangs up or interrupts.
signal.signal(signal.SIGHUP, signal.SIG_DFL)
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Each crawl and each search page of a test would make vectors of what it stores; tests of the
# search by meaning turn it on.
os.environ["SEMANTIC"] = "off"

# Each `httpx.get` reads the system's authorities anew, 15 ms of CPU, also for a page without TLS.
httpx._transports.default.create_ssl_context = functools.cache(  # type: ignore[attr-defined]
    httpx._transports.default.create_ssl_context  # type: ignore[attr-defined]
)

pytest_plugins = ["tests.durations", "tests.once", "tests.second_try"] + [
    f"tests.{p.stem}"
    for p in sorted(Path(__file__).parent.glob("fixtures_*.py"))
    if importlib.util.find_spec("pytest")
]


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, Any, Any]:
    """What is collected stays until the end: the garbage collector would look at all of it
    again and again while it grows, and in each test that calls it."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.fixture(scope="session")
def shared_pages() -> Path:
    """The folder of stored real pages beside the repository; a user's clone does not have it."""
    return stored_pages(SHARED / "pages")


def stored_pages(folder: Path) -> Path:
    """The folder, if it is there. Where CI is set the tests that need it fail: nobody
    reads what CI skipped."""
    if not (folder / "gold.jsonl").is_file():
        if os.environ.get("CI"):
            pytest.fail(f"CI is set and there are no stored real pages in {folder}")
        pytest.skip("skipped: no stored real pages beside the repository")
    return folder
