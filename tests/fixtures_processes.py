"""``warm_processes``: processes of the program that read pages or write articles, forked."""

from __future__ import annotations

import pytest

from newscrawler.crawl import processes
from tests import warm


@pytest.fixture
def warm_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """For a test of what they do, not of how they start: each would spend half a second of CPU on
    imports, and as much on its first page. tests/unit/test_warm.py holds both ways against
    each other."""
    monkeypatch.setattr(processes, "start_process", warm.start_process)
