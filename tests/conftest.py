"""Fixtures of the whole suite. Topic fixtures live in tests/fixtures_<topic>.py and are listed here when present."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SHARED = ROOT.parent / "shared"

pytest_plugins = [
    f"tests.{p.stem}" for p in sorted(Path(__file__).parent.glob("fixtures_*.py")) if importlib.util.find_spec("pytest")
]


@pytest.fixture(scope="session")
def shared_pages() -> Path:
    """The folder of stored real pages beside the repository; a user's clone does not have it."""
    folder = SHARED / "pages"
    if not (folder / "gold.jsonl").is_file():
        pytest.skip("skipped: no stored real pages beside the repository")
    return folder
