"""What is proposed for a list, by what it found first and alone and what it costs."""

from __future__ import annotations

import pytest

from newscrawler.discovery.list_revisits import MISSES_S, Memory
from newscrawler.discovery.seed_worth import judged

IDS = [bytes([n]) * 16 for n in range(10)]


def memory(*shown: int, **more: int) -> Memory:
    return Memory(prints=b"".join(IDS[n][:3] for n in shown), interval_s=300, **more)


def test_what_a_list_shows_alone_and_of_how_much() -> None:
    lists = {"home": memory(0, 1, 2, 3, 9), "feed": memory(2, 3, 4), "long": Memory()}
    found = judged(lists, IDS[:8])  # 9 is no article that is stored
    assert (found["home"].shows, found["home"].only, found["home"].covers) == (4, 2, 0.5)
    assert (found["feed"].only, found["feed"].covers) == (1, 3 / 8)
    assert (found["long"].shows, found["long"].only, found["long"].covers) == (None, None, None)


@pytest.mark.parametrize(
    ("one", "advice"),
    [
        (memory(0, 1, visits=19), ""),
        (memory(0, 1, visits=20), "drop"),
        (memory(0, 5, visits=20), "keep"),
        (memory(0, 1, visits=100, articles=5), "ask less"),
        (memory(0, 1, visits=100, articles=20), "keep"),
        (Memory(visits=100), "ask less"),
        (Memory(misses=len(MISSES_S) + 1), "drop"),
    ],
)
def test_what_is_proposed(one: Memory, advice: str) -> None:
    """The other list shows 0 to 4 as well."""
    found = judged({"one": one, "other": memory(0, 1, 2, 3, 4, visits=100, articles=50)}, IDS)
    assert found["one"].advice == advice


def test_nothing_is_divided_by_nothing() -> None:
    found = judged({"one": memory(0, visits=30)}, [])
    assert (found["one"].covers, found["one"].cost) == (None, None)
