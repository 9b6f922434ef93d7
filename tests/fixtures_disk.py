"""``disk``: a file system of its own, in memory, that can become full or read-only."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest


class Disk:
    """A file system of its own, in memory."""

    def __init__(self, path: Path, size: str) -> None:
        self.path = path
        path.mkdir()
        self._mount("size=" + size)

    def _mount(self, options: str) -> None:
        subprocess.run(
            ["mount", "-t", "tmpfs", "-o", options, "newscrawler-test", self.path],
            check=True,
            capture_output=True,
        )

    def becomes(self, options: str) -> None:
        self._mount("remount," + options)

    def free_bytes(self) -> int:
        return shutil.disk_usage(self.path).free

    def used_bytes(self) -> int:
        return shutil.disk_usage(self.path).used

    def close(self) -> None:
        subprocess.run(["umount", "-l", self.path], check=True, capture_output=True)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    """8 MB: some pages and articles, not all."""
    try:
        made = Disk(tmp_path / "disk", "8m")
    except (OSError, subprocess.CalledProcessError) as exc:
        if os.environ.get("CI"):
            pytest.fail(f"the tests of a full disk need to mount a tmpfs: {exc}")
        pytest.skip("skipped: a tmpfs cannot be mounted here (needs root)")
    yield made
    made.close()
