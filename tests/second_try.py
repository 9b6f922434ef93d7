"""A second look at long tests that failed beside others: ``--second-try``, which `make test` sets.

Tests of whole crawls start servers and processes and wait for them. On two processors with six
processes at work some of them miss a limit that has nothing to do with what they prove. As
CPython's own test runner does (``--rerun``), the few that failed are run again when all others
have ended, one after another and in a new process. Those that pass then are named at the end of
the run and do not fail it: somebody has to look at them, since a race in the program looks the
same.

Not run again: a test that `make quick` runs (it starts nothing, so its failure means something),
and anything at all if more than MOST failed.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Generator
from typing import Any

import pytest

from tests.durations import is_quick_item

#: With more failures than this something is broken, and a second look would hide how much.
MOST = 8


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--second-try",
        action="store_true",
        help=f"run long tests that failed, {MOST} at most, once more and alone",
    )


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--second-try") and not hasattr(config, "workerinput"):
        config.pluginmanager.register(SecondTry(config), "newscrawler-second-try")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks where the tests are collected what the process that reports has to know."""
    for item in items:
        item.user_properties.append(("quick", is_quick_item(item)))


class SecondTry:
    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        #: Test -> whether it is one of `make quick`.
        self.failed: dict[str, bool] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed[report.nodeid] = bool(dict(report.user_properties).get("quick", True))

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> Generator[None, Any, Any]:
        result = yield
        if session.exitstatus == pytest.ExitCode.TESTS_FAILED and self._is_worth_it():
            session.exitstatus = self._again()
        return result

    def _is_worth_it(self) -> bool:
        return 0 < len(self.failed) <= MOST and not any(self.failed.values())

    def _again(self) -> pytest.ExitCode:
        print(f"\nSecond try of {len(self.failed)} that failed, alone:", flush=True)
        command = [sys.executable, "-m", "pytest", "-n0", "-rfE", *self.failed]
        env = {name: value for name, value in os.environ.items() if "PYTEST_XDIST" not in name}
        done = subprocess.run(command, env=env, cwd=self.config.rootpath)
        if done.returncode:
            return pytest.ExitCode.TESTS_FAILED
        for name in self.failed:
            print(f"FAILED BESIDE OTHERS, PASSED ALONE: {name}", flush=True)
        return pytest.ExitCode.OK
