"""What `make demo` decides and says beside the crawl itself."""

from __future__ import annotations

from typing import Any

import pytest

from tests.newsweb import demo, judge


def ended(watch: demo.Watch, looks: list[tuple[float, int, int]]) -> tuple[float, str]:
    """Of looks (seconds, found, missed): when the crawl is told to stop, and why."""
    for elapsed_s, found, missed in looks:
        if why := watch.ended(elapsed_s, found, missed):
            return elapsed_s, why
    return -1.0, ""


def test_a_slow_machine_is_waited_for() -> None:
    slow = [(float(s), s // 5, 300 - s // 5) for s in range(0, 2000, 5)]
    assert ended(demo.Watch(84.0, most_s=3600.0), slow) == (1500.0, "all found")


@pytest.mark.parametrize(
    ("looks", "why"),
    [
        ([(10.0, 300, 0), (83.0, 300, 0), (85.0, 300, 0)], (85.0, "all found")),
        ([(float(s), 277, 54) for s in range(5, 500, 5)], (145.0, "nothing more")),
        ([(float(s), s, 9999) for s in range(5, 5000, 5)], (900.0, "time was up")),
    ],
)
def test_a_crawl_ends(looks: list[tuple[float, int, int]], why: tuple[float, str]) -> None:
    assert ended(demo.Watch(84.0), looks) == why


def verdict(**changes: Any) -> dict[str, Any]:
    rows = [{"url": "http://a/1"}, {"url": "http://a/2"}]
    coverage = judge.Coverage(found=["http://a/0"], missed=rows)
    coverage.compared.update(dict.fromkeys(judge.FIELDS, 1))
    return {"coverage": coverage, "politeness": [], "left": {"leased": 0}, **changes}


def test_what_was_not_reached_is_told_apart_from_what_was_missed() -> None:
    one = [{"url": "http://a/2"}]
    missed, late = demo.failures(verdict(unreached=one))
    assert missed.startswith("1 articles missed, e.g. {'url': 'http://a/1'}")
    assert late == "time was up: 1 articles were not reached yet, e.g. http://a/2"
    assert [x[:11] for x in demo.failures(verdict(unreached=[]))] == ["2 articles "]


def test_texts_are_shown_where_they_part() -> None:
    same = "Mưa lớn. " * 100
    wanted, got = demo.differing(f"{same}Ngập sâu.{same}", f"{same}  Ngập nông.")
    assert "Ngập sâu." in wanted and wanted.startswith("…") and wanted.endswith("…")
    assert "Ngập nông." in got and not got.endswith("…")
    assert demo.differing(["An"], ["An", "Ba"]) == ("['An']", "['An', 'Ba']")
