"""Which failures `make test` looks at a second time, and what it says of them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.second_try import MOST
from tests.unit.test_durations import ROOT

CONFTEST = """
pytest_plugins = ["tests.durations", "tests.second_try"]
"""
#: Fails the first time, passes the second: as a test that another one disturbs.
DISTURBED = """
from pathlib import Path
import pytest
@pytest.mark.slow
def test_disturbed():
    seen = Path(__file__).with_suffix(".seen")
    was_seen = seen.exists()
    seen.touch()
    assert was_seen
"""
BROKEN = """
import pytest
@pytest.mark.slow
def test_broken(): assert False
"""
QUICK = """
from pathlib import Path
def test_quick():
    seen = Path(__file__).with_suffix(".seen")
    was_seen = seen.exists()
    seen.touch()
    assert was_seen
"""
NAMED = "FAILED BESIDE OTHERS, PASSED ALONE"


def run(folder: Path, *options: str, **tests: str) -> subprocess.CompletedProcess[str]:
    (folder / "conftest.py").write_text(CONFTEST)
    (folder / "pytest.ini").write_text(
        f"[pytest]\nmarkers = slow\npythonpath = {ROOT}\naddopts = -p no:cacheprovider\n"
    )
    for name, text in tests.items():
        (folder / f"test_{name}.py").write_text(text)
    command = [sys.executable, "-m", "pytest", "-q", *options]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=240)


@pytest.mark.parametrize("processes", ["0", pytest.param("2", marks=pytest.mark.long)])
def test_a_long_test_that_passes_alone_is_named_and_does_not_fail_the_run(
    tmp_path: Path, processes: str
) -> None:
    options = ("-n", processes, "--dist", "loadfile", "--second-try")
    done = run(tmp_path, *options, one=DISTURBED)
    assert done.returncode == 0, done.stdout
    assert f"{NAMED}: test_one.py::test_disturbed" in done.stdout


@pytest.mark.long
def test_without_the_option_a_failure_is_one(tmp_path: Path) -> None:
    done = run(tmp_path, one=DISTURBED)
    assert done.returncode == 1 and NAMED not in done.stdout


@pytest.mark.long
def test_what_fails_twice_fails_the_run(tmp_path: Path) -> None:
    done = run(tmp_path, "--second-try", one=DISTURBED, two=BROKEN)
    assert done.returncode == 1 and NAMED not in done.stdout
    assert "Second try of 2" in done.stdout


def test_a_quick_test_has_one_try(tmp_path: Path) -> None:
    done = run(tmp_path, "--second-try", one=DISTURBED, two=QUICK)
    assert done.returncode == 1 and "Second try" not in done.stdout


@pytest.mark.long
def test_many_failures_have_one_try(tmp_path: Path) -> None:
    many = {f"n{n}": DISTURBED for n in range(MOST + 1)}
    done = run(tmp_path, "--second-try", **many)
    assert done.returncode == 1 and "Second try" not in done.stdout


@pytest.mark.long
def test_what_cannot_be_collected_has_one_try(tmp_path: Path) -> None:
    done = run(tmp_path, "--second-try", one=DISTURBED, two="import no_such_module\n")
    assert done.returncode not in (0, 5) and "Second try" not in done.stdout
