"""Simhash sees boilerplate-only change; it measures and decides nothing."""

from __future__ import annotations

import random

from newscrawler.web.simhash import distance, simhash


def words(seed: int, count: int) -> list[str]:
    rng = random.Random(seed)
    return [f"tu{rng.randrange(5000)}" for _ in range(count)]


def test_equal_texts_are_equal_and_no_text_is_zero() -> None:
    assert simhash(words(1, 400)) == simhash(iter(words(1, 400)))
    assert simhash([]) == 0
    assert 0 < simhash(["một"]) < 2**64


def test_a_few_changed_words_are_near_and_another_text_is_far() -> None:
    text = words(1, 600)
    edited = [*text[:300], "mới", *text[301:]]
    assert distance(simhash(text), simhash(edited)) <= 6
    others = [distance(simhash(text), simhash(words(seed, 600))) for seed in range(2, 30)]
    assert min(others) >= 16


def test_the_order_of_words_counts() -> None:
    text = words(1, 200)
    assert distance(simhash(text), simhash(text[::-1])) > 10


def test_broken_letters_do_no_harm() -> None:
    assert simhash(["\ud800", "a"]) == simhash(["\ud800", "a"])


def test_distance() -> None:
    assert distance(0, 0) == 0
    assert distance(0, 2**64 - 1) == 64
    assert distance(0b1011, 0b0010) == 2
