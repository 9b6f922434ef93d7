"""What `scrapy` imports before it knows which command was asked for: all modules of commands."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
#: Of use to few commands, and a twentieth of a second of CPU or more each (rapidfuzz: less).
HEAVY = {
    "aiohttp",
    "elasticsearch",
    "fastapi",
    "feedparser",
    "numpy",
    "openai",
    "rapidfuzz",
    "requests",
    "rich",
    "spidermon",
    "starlette",
    "tantivy",
    "trafilatura",
}
CODE = """
import sys
from scrapy.cmdline import _get_commands_dict
from scrapy.utils.project import get_project_settings
found = _get_commands_dict(get_project_settings(), inproject=True)
assert "reparse" in found, found
print(*{name.partition(".")[0] for name in sys.modules})
"""


def test_no_command_pays_for_what_another_one_needs() -> None:
    done = subprocess.run(
        [sys.executable, "-c", CODE], cwd=ROOT, capture_output=True, text=True, check=True
    )
    modules = set(done.stdout.split())
    assert "redis" in modules
    assert not HEAVY & modules
