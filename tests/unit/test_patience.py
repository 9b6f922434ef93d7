"""A limit of a test is longer on a loaded machine, and never shorter."""

from __future__ import annotations

import time

import pytest

from tests import patience
from tests.crawl.harness import until


@pytest.mark.parametrize(
    ("load", "times"), [(0.0, 1.0), (2.0, 1.0), (5.0, 2.5), (80.0, patience.MOST)]
)
def test_a_limit_grows_with_the_work_that_waits(
    monkeypatch: pytest.MonkeyPatch, load: float, times: float
) -> None:
    monkeypatch.setattr(patience.os, "getloadavg", lambda: (load, 0.0, 0.0))
    monkeypatch.setattr(patience.os, "cpu_count", lambda: 2)
    assert patience.patient(10) == 10 * times


def test_what_never_happens_fails_at_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience.os, "getloadavg", lambda: (0.0, 0.0, 0.0))
    begun = time.monotonic()
    with pytest.raises(AssertionError, match="a miracle"):
        until(lambda: False, "a miracle", 0.2)
    assert time.monotonic() - begun >= 0.2
