"""The parts that differ: nothing is lost or told twice, few are told, and time is linear."""

from __future__ import annotations

import random
import time
from difflib import SequenceMatcher

import pytest

from newscrawler.api import differences, text


def applied(old: list[str], new: list[str]) -> int:
    """Walks the steps from the one to the other; how many parts they keep."""
    a = b = kept = 0
    last = None
    for step in differences.steps(old, new):
        assert (step.a0, step.b0) == (a, b) and step.is_equal is not last
        a, b, last = step.a1, step.b1, step.is_equal
        if step.is_equal:
            assert old[step.a0 : step.a1] == new[step.b0 : step.b1] != []
            kept += step.a1 - step.a0
    assert (a, b) == (len(old), len(new))
    return kept


@pytest.mark.parametrize("letters", [1, 2, 5, 1_000])
@pytest.mark.parametrize("length", [0, 1, 7, 60, 300])
def test_each_part_is_kept_taken_out_or_put_in(letters: int, length: int) -> None:
    chance = random.Random(f"{letters} {length}")
    for _ in range(20):
        old = [str(chance.randrange(letters)) for _ in range(length)]
        new = [str(chance.randrange(letters)) for _ in range(chance.randrange(length + 1))]
        applied(old, new)
        applied(new, old)
        assert applied(old, old) == length


@pytest.mark.parametrize("changes", [1, 5, 20])
def test_as_much_is_kept_as_difflib_keeps(changes: int) -> None:
    chance = random.Random(changes)
    old = [str(chance.randrange(200)) for _ in range(600)]
    new = list(old)
    for number in range(changes):
        at = chance.randrange(len(new))
        new[at : at + chance.randrange(3)] = [f"new {number}"] * chance.randrange(3)
    best = sum(
        m.size for m in SequenceMatcher(None, old, new, autojunk=False).get_matching_blocks()
    )
    assert applied(old, new) >= best - changes


def test_a_moved_sentence_leaves_the_others_alone() -> None:
    old = [f"word{number}" for number in range(200)]
    assert applied(old, old[150:] + old[:150]) == 150


@pytest.mark.parametrize("part", ["1 ", "1 2 2 ", "a. ", "\n\n", "a\n\n", "a\n\nb\n\n"])
def test_versions_of_a_hostile_text_cost_time_in_proportion_to_their_length(part: str) -> None:
    def cpu_s(length: int) -> float:
        old = part * (length // len(part))
        new = old[::-1] + "x" + old[length // 3 :]
        took = []
        for _ in range(3):
            started = time.process_time()
            text.changed_paragraphs(old, new)
            took.append(time.process_time() - started)
        return min(took)

    assert cpu_s(16_000) < 9 * cpu_s(4_000)
