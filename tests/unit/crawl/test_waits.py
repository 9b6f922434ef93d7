"""One line a minute, a word for the terminal, and patience that ends where waiting is of no use."""

from __future__ import annotations

import logging
from itertools import pairwise

import pytest

from newscrawler.crawl.waits import LONGEST_PAUSE_S, SLOW_S, TELL_S, Waits


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Away(Exception):
    pass


class Gone(Away):
    pass


@pytest.fixture
def clock(caplog: pytest.LogCaptureFixture) -> Clock:
    caplog.set_level(logging.INFO)
    return Clock()


def test_a_wait_is_told_once_a_minute(clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    waits = Waits(clock)
    for _ in range(181):
        waits.failed("Redis", "connection refused")
        clock.now += 1
    assert [r.levelname for r in caplog.records] == ["ERROR", "WARNING", "WARNING", "WARNING"]
    assert waits.text() == "waiting for Redis (181 s): connection refused"
    waits.works("Redis")
    assert "Redis is back" in caplog.records[-1].getMessage()
    assert waits.text() == ""


def test_what_comes_and_goes_is_told_once_a_minute_too(
    clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    waits = Waits(clock)
    for _ in range(int(TELL_S) * 2):
        waits.failed("Redis", "full")
        waits.works("Redis")
        clock.now += 0.5
    assert len(caplog.records) == 2, "that it was away, and that it was back"


def test_a_call_that_hangs_is_named_after_a_while(clock: Clock) -> None:
    waits = Waits(clock)
    with waits.slow("the article store"):
        with waits.slow("the article store"):
            assert waits.text() == ""
            clock.now += SLOW_S
            assert waits.text() == "waiting for the article store (3 s)"
        assert waits.text() != "", "the other one still hangs"
        assert not waits.is_failing("the article store")
    assert waits.text() == ""


@pytest.mark.long
async def test_work_is_tried_until_it_works() -> None:
    clock = Clock()
    waits = Waits(clock)
    tries = []

    async def work() -> str:
        tries.append(clock.now)
        if len(tries) < 9:
            raise Away("not yet")
        return "done"

    def is_over() -> bool:
        clock.now += 0.5  # time passes with each look
        return False

    assert await waits.until_it_works("it", work, Away, Gone, is_over) == "done"
    gaps = [b - a for a, b in pairwise(tries)]
    assert gaps[0] < 2 and max(gaps) <= LONGEST_PAUSE_S + 1.5, gaps
    assert not waits.is_failing("it")


async def test_an_error_of_what_answers_ends_the_wait() -> None:
    """A crawl takes no page while it waits, so no later page could end the wait."""
    waits = Waits()
    errors: list[Exception] = [Away("down"), ValueError("this one is refused")]

    async def work() -> None:
        raise errors.pop(0)

    with pytest.raises(ValueError, match="refused"):
        await waits.until_it_works("it", work, Away, Gone, lambda: False)
    assert not waits.is_failing("it") and waits.text() == ""


@pytest.mark.parametrize(("error", "over"), [(Gone("deleted"), False), (Away("full"), True)])
async def test_what_waiting_does_not_mend_is_raised(error: Exception, over: bool) -> None:
    tries = []

    async def work() -> None:
        tries.append(1)
        raise error

    with pytest.raises(type(error)):
        await Waits().until_it_works("it", work, Away, Gone, lambda: over)
    assert len(tries) == 1
