"""What it costs to list a page's candidates for authors, beside what its parse costs.

The promise is 5 ms a page, which the clock of another machine cannot hold. On the machine that it
was given for, the parse of the drawn pages takes 2.1 ms of CPU and the list 2.35, blocks of the
page included, which the text is made of afterwards.
"""

from __future__ import annotations

import gzip
import hashlib
import time
from pathlib import Path

from newscrawler.commands.evaluate import read_gold
from newscrawler.extraction import bylines
from newscrawler.extraction.author_choice import candidates
from newscrawler.extraction.context import PageContext
from newscrawler.extraction.document import Document

#: One stored page in so many is read, so often; the least of the turns counts.
SHARE, TURNS = 14, 3
#: Parses of the same page: 5 ms on that machine.
MOST_PARSES = 2.4


def test_candidates_of_authors_cost_less_than_two_and_a_half_parses(shared_pages: Path) -> None:
    pages = [
        (gzip.decompress((shared_pages / str(gold["html"])).read_bytes()), str(gold["url"]))
        for gold in read_gold(shared_pages)
        if _is_drawn(str(gold["id"]))
    ]
    assert len(pages) >= 60
    parsing = listing = found = 0.0
    for body, url in pages:
        turns = [_costs(body, url) for _ in range(TURNS)]
        parsing += min(parse for parse, _, _ in turns)
        listing += min(listed for _, listed, _ in turns)
        found += turns[0][2]
    assert found >= 5 * len(pages), "there is something to list"
    assert listing <= MOST_PARSES * parsing, f"{listing / parsing:.2f} parses"


def _costs(body: bytes, url: str) -> tuple[float, float, int]:
    """CPU of the parse, CPU of the list behind the rules, as find.py asks for it, and candidates."""
    start = time.thread_time()
    doc = Document(body, url).composed()
    assert doc.tree is not None
    parsed = time.thread_time()
    context = PageContext()
    names = bylines.by_rules(doc, context).value
    begun = time.thread_time()
    page = candidates.find(doc, context, names)
    return parsed - start, time.thread_time() - begun, len(page.found)


def _is_drawn(page_id: str) -> bool:
    return int(hashlib.sha256(page_id.encode()).hexdigest(), 16) % SHARE == 0
