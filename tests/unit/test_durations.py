"""What is left out of `make quick`, the order of `make test`, and the list that both go by."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from tests.durations import (
    FILE,
    NEVER_QUICK,
    QUICK_S,
    USUAL_S,
    Cost,
    Durations,
    function_of,
    next_unit,
)

ROOT = Path(__file__).resolve().parents[2]
CONFTEST = """
from pathlib import Path
from tests import durations
durations.FILE = Path(__file__).with_name("durations.json")
durations.TOLD_S = 0.3
pytest_plugins = ["tests.durations"]
"""
TESTS = """
import time
import pytest

@pytest.fixture(scope="module")
def server():
    pass

@pytest.fixture(scope="module")
def notebook():
    pass

def test_in_no_list(): pass
def test_short(notebook): pass
@pytest.mark.parametrize("n", ["[", "]"])
def test_long(n): pass
def test_of_a_slow_fixture(server): pass
def test_that_became_slow(): time.sleep(0.4)
@pytest.mark.slow
def test_marked(): pass
"""
LISTED = Durations(
    tests={
        "test_a.py::test_short": Cost(QUICK_S - 0.1, 0.1),
        "test_a.py::test_long": Cost(QUICK_S, 0.1),
    },
    fixtures={"test_a.py::server": QUICK_S, "test_a.py::notebook": QUICK_S - 0.1},
)


def pytest_in(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """This suite's plugin in a project of its own."""
    (folder / "conftest.py").write_text(CONFTEST)
    (folder / "pytest.ini").write_text("[pytest]\nmarkers = slow\n")
    env = {**os.environ, "PYTHONPATH": str(ROOT), "STARTED": str(folder / "started")}
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *options]
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=240)


def test_quick_leaves_out_what_is_known_to_be_slow(tmp_path: Path) -> None:
    (tmp_path / "test_a.py").write_text(TESTS)
    LISTED.write(tmp_path / "durations.json")
    done = pytest_in(tmp_path, "--quick", "-v")
    passed = {line.split()[0] for line in done.stdout.splitlines() if " PASSED " in line}
    names = ("test_in_no_list", "test_short", "test_that_became_slow")
    assert passed == {f"test_a.py::{name}" for name in names}, done.stdout
    assert "4 deselected" in done.stdout


@pytest.mark.parametrize(
    "folder", [NEVER_QUICK[0], *(pytest.param(f, marks=pytest.mark.long) for f in NEVER_QUICK[1:])]
)
def test_crawls_and_contracts_are_never_quick(tmp_path: Path, folder: str) -> None:
    (tmp_path / folder).mkdir(parents=True)
    (tmp_path / folder / "test_b.py").write_text("def test_it(): pass\n")
    assert "1 deselected" in pytest_in(tmp_path, "--quick").stdout
    assert list((ROOT / folder).glob("test_*.py")), "the folder was renamed"


@pytest.mark.long
def test_quick_names_what_is_slow_and_not_known_to_be(tmp_path: Path) -> None:
    (tmp_path / "test_a.py").write_text(TESTS)
    LISTED.write(tmp_path / "durations.json")
    told = [x for x in pytest_in(tmp_path, "--quick").stdout.splitlines() if "not quick" in x]
    assert len(told) == 1 and "test_a.py::test_that_became_slow took" in told[0]


@pytest.mark.long
def test_without_the_option_all_run_and_are_recorded(tmp_path: Path) -> None:
    (tmp_path / "test_a.py").write_text(TESTS)
    done = pytest_in(tmp_path, "--record-durations", "found.json", "-n", "2", "--dist", "loadfile")
    assert "7 passed" in done.stdout, done.stdout
    found = Durations.read(tmp_path / "found.json")
    assert list(found.tests) == ["test_a.py::test_that_became_slow"]
    assert 0.4 <= found.tests["test_a.py::test_that_became_slow"].wall < 10


def test_the_longest_are_handed_out_first(tmp_path: Path) -> None:
    """xdist by itself begins with the file of many tests and leaves the long ones to the end."""
    start = "import os\ndef note(name):\n    with open(os.environ['STARTED'], 'a') as f: f.write(name + '\\n')\n"
    many = "".join(f"def test_{n}(): note('many')\n" for n in range(20))
    (tmp_path / "test_many.py").write_text(start + many)
    for name in ("long", "longer"):
        (tmp_path / f"test_{name}.py").write_text(start + f"def test_it(): note('{name}')\n")
    costs = {"test_long.py::test_it": Cost(20), "test_longer.py::test_it": Cost(30)}
    Durations(costs, {}).write(tmp_path / "durations.json")
    done = pytest_in(tmp_path, "-n", "1", "--dist", "loadfile")
    assert "22 passed" in done.stdout, done.stdout
    started = (tmp_path / "started").read_text().split()
    assert started == ["longer", "long", *["many"] * 20]


def test_a_long_test_is_a_unit_of_its_own_unless_it_shares_a_fixture() -> None:
    durations = Durations(
        {"tests/x.py::test_alone": Cost(9), "tests/x.py::test_with": Cost(9, 1, ["tests/x.py::f"])},
        {"tests/x.py::f": 7.0},
    )
    assert durations.unit("tests/x.py::test_alone[1]") == "tests/x.py::test_alone[1]"
    assert durations.unit("tests/x.py::test_with") == "tests/x.py"
    assert durations.unit("tests/x.py::test_new") == "tests/x.py"
    cost = durations.expected([*["tests/x.py::test_with"] * 2, "tests/x.py::test_new"])
    assert (cost.wall, cost.cpu) == (9 + 9 + 7.0 + USUAL_S, 1 + 1 + USUAL_S)


def test_what_computes_is_handed_out_while_a_processor_is_idle() -> None:
    waits, waits_more, computes, computes_more = Cost(20, 1), Cost(30, 1), Cost(4, 4), Cost(6, 5)
    queue = {"w": waits, "ww": waits_more, "c": computes, "cc": computes_more}
    assert next_unit(queue, [waits, waits], 2) == "cc"
    assert next_unit(queue, [computes, waits], 2) == "cc"
    assert next_unit(queue, [computes, computes_more], 2) == "ww", "both are busy"
    assert next_unit(queue, [waits], 2) == "ww", "no more processes than processors"
    assert next_unit({"w": waits, "ww": waits_more}, [waits] * 3, 2) == "ww", "none computes"


@cache
def functions(file: str) -> set[str]:
    path = ROOT / file
    if not path.exists():
        return set()
    tree = ast.parse(path.read_text())
    return {
        node.name
        for node in ast.walk(tree)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    }


def test_every_listed_test_exists() -> None:
    """A renamed test would be taken for quick; `make durations` writes the list anew."""
    listed = json.loads(FILE.read_text())["tests"]
    assert listed
    gone = [name for name in listed if name.split("::")[-1] not in functions(name.split("::")[0])]
    assert gone == []


@pytest.mark.parametrize(
    ("nodeid", "name"),
    [("tests/x.py::test_y", "tests/x.py::test_y"), ("tests/x.py::test_y[a[0]::b]", "tests/x.py::test_y")],
)  # fmt: skip
def test_the_parameters_are_cut_off(nodeid: str, name: str) -> None:
    assert function_of(nodeid) == name
