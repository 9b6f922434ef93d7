"""What `make demo` decides and says beside the crawl itself."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.newsweb import demo, judge
from tests.newsweb import unknown as unknown_sites


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
    right = dict.fromkeys(judge.FIELDS, 1.0)
    return {
        "coverage": coverage, "politeness": [], "left": {"leased": 0}, "discovery": [],
        "of_unknown": right, "of_others": right, "forms": [], **changes,
    }  # fmt: skip


def test_sites_of_which_only_the_home_is_told_are_judged_by_themselves() -> None:
    coverage = judge.Coverage(found=["http://a/1", "http://b/1", "http://b/2"])
    coverage.wrong["authors"] = [("http://b/2", ["An"], [])]
    of_unknown = demo.shares(coverage, {"b"})
    of_others = demo.shares(coverage, {"b"}, inside=False)
    assert (of_unknown["authors"], of_others["authors"]) == (0.5, 1.0)
    told = demo.failures(
        verdict(unreached=[], of_unknown=of_unknown, discovery=["host=b list=/rss never asked for"])
    )
    assert told[1].startswith("authors on sites of which only the home is told: 0.500 right")
    assert told[2] == "1 lists wrong, e.g. host=b list=/rss never asked for"


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


@pytest.mark.parametrize("seed", range(0, 2520, 97))
def test_every_seed_draws_all_forms_of_sites(seed: int) -> None:
    """Of `make demo`: sections of every shape, announced feeds, pages that fail, lists with an
    article's tags, writers below the text."""
    unknown = [(f"unknown-{number}", number) for number in range(demo.UNKNOWN)]
    drawn = {key: unknown_sites.drawn(seed, key, number) for key, number in unknown}
    truth = [
        {
            "type": "site",
            "host": key,
            "unknown": site.truth(),
            "feeds": [1] * (site.feeds != "none"),
        }
        for key, site in drawn.items()
    ]
    told = {"type": "site", "host": "told", "unknown": None, "feeds": [1]}
    forms = judge.forms([*truth, told])
    assert [form.name for form in forms if not form.whole] == []
    assert all("told" not in form.hosts for form in forms)


def test_a_web_that_lacks_a_form_is_no_proof() -> None:
    site = unknown_sites.drawn(7, "unknown-0", 0)
    site = replace(site, signature="", section_shapes=("/c/{id}",))
    row = {"type": "site", "host": "a", "unknown": site.truth(), "feeds": [1]}
    told = demo.failures(verdict(unreached=[], forms=judge.forms([row])))
    assert (
        "no site drawn: signed at the end, an organisation stated; this web proves nothing of it"
        in told
    )
    assert "no site drawn: sections of 1 of 9 shapes; this web proves nothing of it" in told
