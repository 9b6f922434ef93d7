"""What every process of a test run needs and would make again is made once, before they start.

Six processes would each rewrite the assertions of every test module of a fresh clone (7 s of CPU
each), and start a server of warm commands of their own (5 s). This process, which only reports,
does the first and starts the second; the others find the modules in pytest's cache, and the server
by the environment.
"""

from __future__ import annotations

import os
import sys
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest
from _pytest.assertion import rewrite

from tests import warm

#: Modules that are not worth a process: it would need as long to start.
_PORTION = 8
#: For processes that are forked with it.
_CONFIG: Any = None


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Once(config), "newscrawler-once")


class Once:
    """In the process that reports, where others run the tests."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self._stop_warm = lambda: None

    @pytest.hookimpl(tryfirst=True)
    def pytest_xdist_setupnodes(self) -> None:
        if not self.config.option.collectonly:
            self._stop_warm = warm.share()
        rewrite_all(self.config, modules_of(self.config))

    def pytest_unconfigure(self) -> None:
        self._stop_warm()


def modules_of(config: pytest.Config) -> list[Path]:
    """The test modules below what was asked for."""
    found: set[Path] = set()
    for argument in config.args:
        path = Path(str(config.invocation_params.dir), argument.partition("::")[0])
        found.update(path.rglob("test_*.py") if path.is_dir() else [path])
    return sorted(path for path in found if path.is_file())


def rewrite_all(config: pytest.Config, modules: list[Path]) -> None:
    """Rewrites those that pytest's cache does not hold, or holds of another text, on every
    processor."""
    global _CONFIG
    if rewrite.assertstate_key not in config.stash:  # --assert=plain
        return
    missing = [path for path in modules if rewrite._read_pyc(path, _cached(path)) is None]
    if not missing or sys.dont_write_bytecode:
        return
    for folder in {_cached(path).parent for path in missing}:
        if not rewrite.try_makedirs(folder):
            return
    _CONFIG = config
    if len(missing) <= _PORTION:
        list(map(_rewrite, missing))
        return
    try:
        with ProcessPoolExecutor(os.cpu_count() or 1, get_context("fork")) as pool:
            list(pool.map(_rewrite, missing, chunksize=_PORTION))
    except BrokenProcessPool:  # it is only a saving: the others rewrite what is missing
        return


def _cached(path: Path) -> Path:
    return rewrite.get_cache_dir(path) / (path.name[:-3] + rewrite.PYC_TAIL)


def _rewrite(path: Path) -> None:
    """As the import of a test module does it. One that cannot be read is left to that import,
    which says why."""
    try:
        source_hash, code = rewrite._rewrite_test(path, _CONFIG)
    except (SyntaxError, ValueError, OSError):
        return
    state = _CONFIG.stash[rewrite.assertstate_key]
    rewrite._write_pyc(state, code, source_hash, _cached(path))
