"""What the processes of a run share, so that each need not make it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.test_durations import ROOT

#: The processes that run tests may not rewrite: they have to find what the one that reports wrote.
CONFTEST = """
import os
from _pytest.assertion import rewrite
from tests import warm
pytest_plugins = ["tests.once"]
warm.share = lambda: lambda: None
if "PYTEST_XDIST_WORKER" in os.environ:
    def refuse(path, config):
        raise AssertionError(f"{path} is rewritten again")
    rewrite._rewrite_test = refuse
"""


def run(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    (folder / "pytest.ini").write_text(
        f"[pytest]\npythonpath = {ROOT}\naddopts = -p no:cacheprovider\n"
    )
    (folder / "conftest.py").write_text(CONFTEST)
    env = {
        name: value
        for name, value in os.environ.items()
        # this test may itself be in a process of a run
        if name != "PYTHONDONTWRITEBYTECODE" and not name.startswith("PYTEST_")
    }
    command = [sys.executable, "-m", "pytest", "-q", *options]
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=240)


@pytest.mark.long
def test_the_asserts_of_all_modules_are_rewritten_once(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    for number in range(12):
        path = tmp_path / ("inner" if number % 2 else "") / f"test_{number}.py"
        path.write_text("def test_it():\n    seven = 7\n    assert seven == 8\n")
    done = run(tmp_path, "-n", "2")
    assert "12 failed" in done.stdout and "assert 7 == 8" in done.stdout, done.stdout
    assert "again" not in done.stdout

    # One that changed is rewritten; of one that cannot be read the others say why.
    (tmp_path / "inner" / "test_1.py").write_text("def test_it(:\n")
    (tmp_path / "test_0.py").write_text("def test_it():\n    five = 5\n    assert five == 6\n")
    done = run(
        tmp_path, "-n", "2", "--continue-on-collection-errors", "test_0.py::test_it", "inner"
    )
    assert "6 failed" in done.stdout and "assert 5 == 6" in done.stdout, done.stdout
    assert "test_1.py is rewritten again" in done.stdout, "it is said where tests are run"
    assert "test_0.py is rewritten again" not in done.stdout


@pytest.mark.long
def test_a_run_without_rewriting_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "test_0.py").write_text("def test_it():\n    assert True\n")
    done = run(tmp_path, "-n", "1", "--assert=plain")
    assert "1 passed" in done.stdout, done.stdout + done.stderr
