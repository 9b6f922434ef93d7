"""Fixtures of the whole-crawl tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.crawl.small import Queue


@pytest.fixture
def queue(tmp_path: Path) -> Iterator[Queue]:
    """The embedded server of the crawl's data folder; it outlives every crawl of the test."""
    (tmp_path / "data").mkdir()
    kept = Queue(tmp_path / "data")
    yield kept
    kept.close()
