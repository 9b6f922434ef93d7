"""How far the statements of a page agree on a field: a score where the gold data do not have it.

    python -m evaluation.agreement PAGES FIELD

PAGES is a folder with gold.jsonl and html/. FIELD is one that pages state (``meta`` or ``json_ld``
in items.FIELDS). For each two places: the pages on which both state something, the mean share of
the first one's values that the second has as well, the same the other way round, and the share of
pages with any value in common. "first" is the place that the rules ask first. Tags shown under the
text are written apart from a page's metadata: they are the better judge.
"""

from __future__ import annotations

import argparse
import gzip
import json
from collections import defaultdict
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

from newscrawler.extraction.document import Document
from newscrawler.extraction.extract import statements
from newscrawler.extraction.text import key
from newscrawler.items import FIELDS, Field

Values = dict[str, set[str]]


def stated(doc: Document, field: Field) -> Values:
    """Origin -> what is compared of its values."""
    found: Values = {}
    for origin, value in statements(doc, field):
        texts = value if isinstance(value, list) else [value]
        found[origin] = {folded for text in texts if (folded := key(text))}
    found = {origin: values for origin, values in found.items() if values}
    if found:
        found["first"] = next(iter(found.values()))
    return found


def agreement(pages: Iterator[Values]) -> list[dict[str, Any]]:
    """A row for each two places, those with most pages first."""
    shares: dict[tuple[str, str], list[tuple[float, float]]] = defaultdict(list)
    for found in pages:
        for a, b in combinations(sorted(found), 2):
            if found[a] is found[b]:  # a place beside itself
                continue
            both = len(found[a] & found[b])
            shares[a, b].append((both / len(found[a]), both / len(found[b])))
    rows = [
        {
            "first": a,
            "second": b,
            "pages": len(of),
            "in_second": round(sum(x for x, _ in of) / len(of), 3),
            "in_first": round(sum(y for _, y in of) / len(of), 3),
            "any": round(sum(x > 0 for x, _ in of) / len(of), 3),
        }
        for (a, b), of in shares.items()
    ]
    return sorted(rows, key=lambda row: (-row["pages"], row["first"], row["second"]))


def documents(folder: Path) -> Iterator[Document]:
    with (folder / "gold.jsonl").open(encoding="utf-8") as lines:
        for line in lines:
            gold = json.loads(line)
            body = (folder / gold["html"]).read_bytes()
            yield Document(gzip.decompress(body), gold["url"])


def main() -> None:
    parser = argparse.ArgumentParser(description="Agreement of the statements of stored pages")
    parser.add_argument("pages", type=Path)
    parser.add_argument("field", choices=[f.name for f in FIELDS if f.meta or f.json_ld])
    options = parser.parse_args()
    field = next(f for f in FIELDS if f.name == options.field)
    for row in agreement(stated(doc, field) for doc in documents(options.pages)):
        print(json.dumps(row))


if __name__ == "__main__":
    main()
