"""What is read from real pages does not get worse: floors over a drawn part of the stored pages.

CI holds all 868 (`scrapy evaluate PAGES --floors tests/extraction_floors.json`). These 70 are drawn
by a hash of their id, so that a page stays in or out when others are added. Reading is exact: a
figure below its floor is a page that was right and is wrong now.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from evaluation import score_tables
from newscrawler.commands.evaluate import predictions, read_gold

#: One page in so many is read.
SHARE = 14
#: Just below what was measured on 2026-11-23; the names are those of `scrapy evaluate --json`.
FLOORS = {
    "title": 0.914,
    "day": 0.935,
    "minute": 0.999,
    "authors_ok": 0.942,
    "people_ok": 0.828,
    "content_mean_f1": 0.993,
    "content_ge90": 0.999,
    "with": 0.978,
    "without": 0.967,
    "four": 0.818,
}


def test_a_drawn_part_of_the_stored_pages_is_read_as_before(shared_pages: Path) -> None:
    gold = [page for page in read_gold(shared_pages) if _is_drawn(str(page["id"]))]
    assert len(gold) >= 60
    lines = predictions(shared_pages, gold, 1, lambda done, of: None)
    summary = score_tables.figures(gold, lines)["all"]
    assert score_tables.below_floors(summary, FLOORS) == []


def _is_drawn(page_id: str) -> bool:
    return int(hashlib.sha256(page_id.encode()).hexdigest(), 16) % SHARE == 0
