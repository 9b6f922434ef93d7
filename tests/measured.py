"""Costs that a test compares, on a machine that does other things too.

What disturbs a measurement makes it larger, never smaller; and the part of a ratio that is divided
by is disturbed as well as the other. So a bound is broken only by code that breaks it in every one
of several attempts.
"""

from __future__ import annotations

from collections.abc import Callable

ATTEMPTS = 6


def least(measure: Callable[[], float], below: float, attempts: int = ATTEMPTS) -> float:
    """The least of up to ``attempts`` measurements; the first one below ``below`` is the last."""
    best = measure()
    for _ in range(attempts - 1):
        if best < below:
            break
        best = min(best, measure())
    return best
