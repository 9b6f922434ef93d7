"""New files that take the place of old ones."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from newscrawler.utils import files

KILLED = """
import os, signal, sys
from pathlib import Path
from newscrawler.utils import files
with files.replacing(Path(sys.argv[1]), mode=0o600) as file:
    file.write(b"half of")
    file.flush()
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    found = tmp_path / "state.json"
    found.write_text("old")
    found.chmod(0o644)
    return found


def test_a_new_file_takes_the_place_with_its_own_rights(path: Path) -> None:
    files.write_whole(path, b"new", mode=0o600)
    assert (path.read_bytes(), path.stat().st_mode & 0o777) == (b"new", 0o600)
    assert list(path.parent.iterdir()) == [path]


def test_what_fails_leaves_the_old_file_and_nothing_beside_it(path: Path) -> None:
    with pytest.raises(RuntimeError), files.replacing(path, mode=0o600) as file:
        file.write(b"half of")
        raise RuntimeError
    assert path.read_text() == "old"
    assert list(path.parent.iterdir()) == [path]


def test_a_process_that_is_killed_leaves_the_old_file(path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", KILLED, str(path)], check=False)
    assert done.returncode == -signal.SIGKILL
    assert path.read_text() == "old"
    files.write_whole(path, b"new", mode=0o600)
    assert list(path.parent.iterdir()) == [path], "what the killed one left is gone"


def test_a_folder_that_is_not_there_is_an_error_of_the_system(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        files.write_whole(tmp_path / "gone" / "state.json", b"new", mode=0o600)
