"""How long each test takes: recorded, and used to choose `make quick` and to order `make test`.

``tests/durations.json`` holds the tests and shared fixtures that take FLOOR_S or longer,
one function a line (the longest of its parameters). `make durations` writes it anew. What
is not in it counts as quick, so that a new test runs in `make quick` from its first day;
one that turns out slow there is named at the end of the run. Never quick are whole crawls,
the suites that every store passes, and what is marked slow. tests/unit/test_durations.py
fails for a line whose test does not exist any more.
"""

from __future__ import annotations

import json
import os
import time
from collections import defaultdict
from collections.abc import Generator, Iterable
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from xdist.scheduler.loadscope import LoadScopeScheduling

from tests import warm

FILE = Path(__file__).with_name("durations.json")
#: Seconds below which a test or fixture is not worth a line.
FLOOR_S = 0.3
#: `make quick` leaves out what takes this long or uses a shared fixture that does.
QUICK_S = 1.0
#: Their tests start servers and crawls.
NEVER_QUICK = ("tests/crawl/", "tests/contract/")
#: A test that takes this long in `make quick` is named at its end. Wide: the machine may be busy.
TOLD_S = 3.0
#: A test this long is handed to a process by itself, not with the rest of its file.
ALONE_S = 3.0
#: What a test without a line is taken to need when the work is divided.
USUAL_S = 0.02
PROCESSORS = os.cpu_count() or 1
#: A processor counts as busy when tests that run keep it busy for so much of their time.
_BUSY = 0.9


@dataclass
class Cost:
    """What one test took without the fixtures that it shares: seconds by the clock and of CPU,
    children included."""

    wall: float = 0.0
    cpu: float = 0.0
    #: Fixtures of its module or class; tests that share one stay in one process.
    shares: list[str] = field(default_factory=list)

    @property
    def processors(self) -> float:
        """That it keeps busy, on average: near 0 it waits, at 1 it computes."""
        return min(1.0, self.cpu / self.wall) if self.wall else 0.0


@dataclass
class Durations:
    tests: dict[str, Cost]
    fixtures: dict[str, float]

    @classmethod
    def read(cls, path: Path | None = None) -> Durations:
        """Of the shipped list, if no other is named; without one nothing is known to be slow."""
        path = path or FILE
        if not path.exists():
            return cls({}, {})
        stored = json.loads(path.read_text())
        return cls({k: Cost(**v) for k, v in stored["tests"].items()}, stored["fixtures"])

    def write(self, path: Path) -> None:
        """One line per entry, so that a diff shows what became slower."""
        tests = {name: asdict(cost) for name, cost in self.tests.items() if cost.wall >= FLOOR_S}
        fixtures = {name: took for name, took in self.fixtures.items() if took >= FLOOR_S}
        path.write_text(f'{{\n"tests": {_lines(tests)},\n"fixtures": {_lines(fixtures)}\n}}\n')

    def is_quick(self, function: str, fixtures: Iterable[str]) -> bool:
        cost = self.tests.get(function)
        if cost and cost.wall >= QUICK_S:
            return False
        return all(self.fixtures.get(name, 0.0) < QUICK_S for name in fixtures)

    def unit(self, nodeid: str) -> str:
        """What is handed to one process at a time: a long test that shares
        nothing, else the file."""
        cost = self.tests.get(function_of(nodeid))
        if cost and cost.wall >= ALONE_S and not cost.shares:
            return nodeid
        return nodeid.partition("::")[0]

    def expected(self, nodeids: Iterable[str]) -> Cost:
        """Of a unit, with the time of each shared fixture counted once."""
        usual = Cost(USUAL_S, USUAL_S)
        costs = [self.tests.get(function_of(nodeid), usual) for nodeid in nodeids]
        shared = {name for cost in costs for name in cost.shares}
        wall = sum(cost.wall for cost in costs)
        fixtures = sum(self.fixtures.get(name, 0.0) for name in shared)
        return Cost(wall + fixtures, sum(cost.cpu for cost in costs))


def _lines(entries: dict[str, Any]) -> str:
    rows = [json.dumps({name: entries[name]}, ensure_ascii=False)[1:-1] for name in sorted(entries)]
    return "{\n" + ",\n".join(rows) + "\n}"


def function_of(nodeid: str) -> str:
    """``tests/x.py::test_y[2-a]`` -> ``tests/x.py::test_y``; parameters may hold
    brackets themselves."""
    return nodeid.partition("[")[0]


def fixture_id(definition: Any) -> str:
    return f"{definition.baseid}::{definition.argname}"


def shared_fixtures(item: pytest.Item) -> list[Any]:
    """Definitions of the fixtures of a test that other tests use as well."""
    info = getattr(item, "_fixtureinfo", None)
    definitions = info.name2fixturedefs if info is not None else {}
    names = getattr(item, "fixturenames", ())
    return [
        definitions[name][-1]
        for name in names
        if name in definitions and definitions[name][-1].scope != "function"
    ]


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("durations")
    group.addoption("--quick", action="store_true", help=f"leave out what takes {QUICK_S:g} s")
    group.addoption(
        "--record-durations", metavar="FILE", help="write what each test takes into this file"
    )


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Recorder(config), "newscrawler-durations")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.getoption("--quick"):
        return
    quick, slow = [], []
    for item in items:
        (quick if is_quick_item(item) else slow).append(item)
    items[:] = quick
    config.hook.pytest_deselected(items=slow)


@cache
def _known() -> Durations:
    return Durations.read()


def is_quick_item(item: pytest.Item) -> bool:
    """Whether `make quick` runs this test."""
    if (
        item.get_closest_marker("slow")
        or item.get_closest_marker("long")
        or item.nodeid.startswith(NEVER_QUICK)
    ):
        return False
    fixtures = [fixture_id(definition) for definition in shared_fixtures(item)]
    return _known().is_quick(function_of(item.nodeid), fixtures)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Balanced | None:
    """With ``--dist loadfile``, which `make test` uses; other ways stay as they are."""
    if config.getoption("dist") != "loadfile":
        return None
    return Balanced(config, log)


def next_unit(queue: dict[str, Cost], beside: Iterable[Cost], processors: int) -> str:
    """Which unit is handed out next, while those of ``beside`` run in the other processes.

    The longest, as long ones mostly wait (for delays of a crawl, for servers to start) and would
    be watched by idle processors at the end. But where what runs leaves a processor idle now, the
    one that computes most: the long ones by themselves would leave both idle at the beginning.
    """
    others = list(beside)
    computing = [name for name, cost in queue.items() if cost.processors > 0.5]
    idle = sum(cost.processors for cost in others) < _BUSY * processors
    if idle and computing and len(others) >= processors:
        return max(computing, key=lambda name: queue[name].cpu)
    return max(queue, key=lambda name: queue[name].wall)


class Balanced(LoadScopeScheduling):  # type: ignore[misc]
    """Files, and long tests by themselves, in the order of :func:`next_unit`. xdist's own, by number
    of tests, leaves the long ones to the end."""

    def __init__(self, config: pytest.Config, log: Any = None) -> None:
        super().__init__(config, log)
        self.durations = Durations.read()
        self._costs: dict[str, Cost] = {}

    def _split_scope(self, nodeid: str) -> str:
        return self.durations.unit(nodeid)

    def _reschedule(self, node: Any) -> None:
        # xdist would hand work to a replacement for a process that died before that
        # one has collected
        if node in self.registered_collections:
            super()._reschedule(node)

    def _assign_work_unit(self, node: Any) -> None:
        queue = {name: self._cost(name, unit) for name, unit in self.workqueue.items()}
        chosen = next_unit(queue, self._beside(node), PROCESSORS)
        self.workqueue.move_to_end(chosen, last=False)  # where the base class takes the next from
        super()._assign_work_unit(node)

    def _beside(self, node: Any) -> list[Cost]:
        """What the other processes are at, or have before them when they end what they are at."""
        found = []
        for other, work in self.assigned_work.items():
            left = [name for name, unit in work.items() if not all(unit.values())]
            if other is not node:
                found.append(self._costs[left[-1]] if left else Cost())
        return found

    def _cost(self, name: str, unit: Iterable[str]) -> Cost:
        if name not in self._costs:
            self._costs[name] = self.durations.expected(unit)
        return self._costs[name]


class Recorder:
    """Measures every test where it runs; the process that reports writes the file."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.target = config.getoption("--record-durations")
        self.found = Durations({}, defaultdict(float))
        self.slow: dict[str, float] = {}
        self._wall = self._cpu = 0.0
        self._shared: dict[str, float] = {}

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self) -> Generator[None, Any, Any]:
        self._wall, self._cpu, self._shared = time.perf_counter(), _cpu_s(), {}
        return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any) -> Generator[None, Any, Any]:
        wall, cpu = time.perf_counter(), _cpu_s()
        try:
            return (yield)
        finally:
            if fixturedef.scope != "function":
                took = time.perf_counter() - wall
                self._shared[fixture_id(fixturedef)] = took
                # The test that happened to be the first is not charged with what all of them use.
                self._wall += took
                self._cpu += _cpu_s() - cpu

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: Any) -> Generator[None, Any, Any]:
        report = yield
        if call.when == "teardown":
            shares = [
                fixture_id(definition)
                for definition in shared_fixtures(item)
                if definition.scope in ("class", "module")
            ]
            report.cost = asdict(
                Cost(
                    round(time.perf_counter() - self._wall, 2),
                    round(_cpu_s() - self._cpu, 2),
                    shares,
                )
            )
            report.shared_cost = self._shared
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when != "teardown":
            return
        cost = Cost(**getattr(report, "cost", {}))
        name = function_of(report.nodeid)
        if name not in self.found.tests or cost.wall > self.found.tests[name].wall:
            self.found.tests[name] = cost
        for fixture, took in getattr(report, "shared_cost", {}).items():
            self.found.fixtures[fixture] = round(max(took, self.found.fixtures[fixture]), 2)

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        if not self.config.getoption("--quick"):
            return
        slow = {name: cost for name, cost in self.found.tests.items() if cost.wall >= TOLD_S}
        for name, cost in sorted(slow.items(), key=lambda row: -row[1].wall):
            terminalreporter.write_line(
                f"not quick: {name} took {cost.wall:.1f} s ({cost.cpu:.1f} s of CPU); "
                "make it quicker, or run make durations"
            )

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self.target and not hasattr(session.config, "workerinput"):
            self.found.write(Path(self.target))


def _cpu_s() -> float:
    """Of this process, of the children that have ended and were waited for, and of
    commands that ran warm."""
    times = os.times()
    own = times.user + times.system + times.children_user + times.children_system
    return own + warm.cpu_s()
