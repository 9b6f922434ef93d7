"""A measurement is repeated until it is below its bound, and no oftener than it was told."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.measured import ATTEMPTS, least


@pytest.mark.parametrize(
    ("measured", "result", "calls"),
    [
        ([2.0], 2.0, 1),
        ([9.0, 8.0, 2.9, 1.0], 2.9, 3),
        ([3.0, 2.0], 2.0, 2),
        ([4.0, 3.5] + [5.0] * ATTEMPTS, 3.5, ATTEMPTS),
    ],
)
def test_the_least_of_several_attempts_counts(
    measured: list[float], result: float, calls: int
) -> None:
    made: list[float] = []
    values: Iterator[float] = iter(measured)

    def measure() -> float:
        made.append(next(values))
        return made[-1]

    assert least(measure, 3.0) == result
    assert len(made) == calls
