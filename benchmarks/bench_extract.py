"""Extraction beside trafilatura and newspaper4k in one run: CPU per page, and quality where
gold data are at hand.

    python -m benchmarks.bench_extract [--pages N] [--dir ../shared/pages] [--json]

Speed of an active selector set is measured on pages of the simulated web brought to about
65 KB with 100 links, each parsed once; the generic chain and the libraries on the same
pages and on the stored real ones.
"""

from __future__ import annotations

import argparse
import gzip
import json
import logging
import re
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import trafilatura
from trafilatura.settings import Document as TrafilaturaDocument

from evaluation import score_tables
from newscrawler import cli
from newscrawler.extraction.document import Document
from newscrawler.extraction.extract import PageContext, extract, prediction
from newscrawler.extraction.selectors import SelectorSet

URL = "https://vnexpress.net/bai-viet-4954005.html"
CONTEXT = PageContext(site_name="VnExpress", language="vi", zone="+07:00")
SET = SelectorSet.from_dict(
    {"domain": "vnexpress.net", "state": "active", "variants": [{"template": "article", "fields": {
        "title": [{"css": "h1.title-detail"}],
        "published": [{"css": "span.date"}, {"kind": "ld"}],
        "authors": [{"css": 'article.fck_detail p[style*="text-align:right"] strong'}, {"css": "p.author_mail strong"}],
        "content": {"root": ["article.fck_detail"], "exclude": ["figure", "[class*=related]", "table"]},
    }}]}
)  # fmt: skip


_FILLING = re.compile(rb"<style[^>]*>.*?</style>|<script(?![^>]*ld\+json)[^>]*>.*?</script>", re.S)


def made_pages(count: int) -> list[bytes]:
    """Article pages of one template, filled up to about 65 KB and 100 links as
    a real one has them."""
    from tests.fixtures_selectors import made_pages as make

    pages = []
    for page in make("vnexpress.net", count):
        item = (
            '<li class="item-{0}"><a href="/tin-{0}-4000{0}.html" title="x">Một bài khác'
            " {0}</a></li>"
        )
        links = "".join(map(item.format, range(60)))
        filler = "".join(
            f'<div class="m-{i}" data-x="{i}"><i class="icon ic-{i}"></i></div>' for i in range(200)
        )
        bare = _FILLING.sub(
            b"", page.body
        )  # the simulated web's own ballast: the size is made up here
        body = bare.replace(
            b"</body>", f"<div class=sidebar><ul>{links}</ul>{filler}</div></body>".encode()
        )
        style = b"<style>" + b".a{color:red}" * max(0, (65_000 - len(body)) // 13) + b"</style>"
        pages.append(body.replace(b"</head>", style + b"</head>", 1))
    return pages


def cpu_ms(work: Callable[[bytes], Any], pages: Sequence[bytes], rounds: int) -> float:
    """Median over rounds of the mean CPU per page, milliseconds."""
    work(pages[0])
    found = []
    for _ in range(rounds):
        started = time.process_time()
        for page in pages:
            work(page)
        found.append((time.process_time() - started) * 1000 / len(pages))
    return statistics.median(found)


def by_set(body: bytes) -> Any:
    found = extract(Document(body, URL), CONTEXT, SET)
    if not (
        found.is_article and found.published.value and found.content.origin.startswith("selector:")
    ):
        raise AssertionError(
            f"the set does not fit the page: {found.reason} {found.content.origin}"
        )
    return found


def by_chain(body: bytes) -> Any:
    return extract(Document(body, URL), CONTEXT)


def by_trafilatura(body: bytes) -> Any:
    return trafilatura.bare_extraction(body, url=URL, with_metadata=True, include_comments=False)


def by_newspaper(body: bytes, url: str = URL) -> Any:
    import newspaper

    article = newspaper.Article(url, fetch_images=False)
    article.download(input_html=body.decode("utf-8", "replace"))
    article.parse()
    return article


def quality(folder: Path, limit: int) -> list[dict[str, Any]]:
    """The same figures as `scrapy evaluate` for each tool, on every n-th stored page."""
    gold = [json.loads(line) for line in (folder / "gold.jsonl").read_text("utf-8").splitlines()]
    gold = gold[:: max(1, len(gold) // limit)]
    rows = []
    for name, tool in (
        ("newscrawler", _ours),
        ("trafilatura", _trafilatura),
        ("newspaper4k", _newspaper),
    ):
        started = time.process_time()
        lines = []
        for g in gold:
            body = gzip.decompress((folder / g["html"]).read_bytes())
            try:
                lines.append({"id": g["id"], **tool(body, g["url"])})
            except Exception as exc:  # a tool that fails on a page found nothing there
                print(f"{name} failed on {g['id']}: {exc!r:.100}", file=sys.stderr)
        spent = (time.process_time() - started) * 1000 / len(gold)
        rows.append({"tool": name, "cpu_ms": spent, **score_tables.figures(gold, lines)["all"]})
    return rows


def _ours(body: bytes, url: str) -> dict[str, Any]:
    return prediction(extract(Document(body, url), PageContext()))


def _trafilatura(body: bytes, url: str) -> dict[str, Any]:
    found = trafilatura.bare_extraction(body, url=url, with_metadata=True, include_comments=False)
    if not isinstance(found, TrafilaturaDocument):
        return {}  # it found nothing
    return {
        "title": found.title,
        "content": found.text,
        "published": found.date,
        "authors": [a.strip() for a in (found.author or "").split(";") if a.strip()],
    }


def _newspaper(body: bytes, url: str) -> dict[str, Any]:
    article = by_newspaper(body, url)
    when = article.publish_date
    published = when.isoformat() if hasattr(when, "isoformat") else when
    return {
        "title": article.title,
        "content": article.text,
        "authors": article.authors,
        "published": published,
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--pages", type=int, default=290, help="stored pages that quality is measured on"
    )
    parser.add_argument(
        "--dir", type=Path, default=Path(__file__).resolve().parents[2] / "shared" / "pages"
    )
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    logging.disable(logging.CRITICAL)
    pages = made_pages(20)
    size = sum(map(len, pages)) / len(pages) / 1000
    links = statistics.mean(len(Document(p, URL).links()) for p in pages)
    speed = {
        "parse and links only": cpu_ms(lambda b: Document(b, URL).links(), pages, 9),
        "newscrawler, active set": cpu_ms(by_set, pages, 9),
        "newscrawler, generic chain": cpu_ms(by_chain, pages, 3),
        "trafilatura": cpu_ms(by_trafilatura, pages, 3),
        "newspaper4k": cpu_ms(by_newspaper, pages, 3),
    }
    rows = quality(args.dir, args.pages) if (args.dir / "gold.jsonl").is_file() else []
    if args.json:
        print(json.dumps({"page_kb": size, "links": links, "cpu_ms": speed, "quality": rows}))
        return
    print(f"CPU per page, {len(pages)} pages of {size:.0f} KB with {links:.0f} links")
    for name, ms in speed.items():
        print(f"  {name:28} {ms:7.2f} ms")
    print(
        "  generic chain / trafilatura "
        f" {speed['newscrawler, generic chain'] / speed['trafilatura']:7.2f}"
    )
    if not rows:
        print("skipped: no stored real pages beside the repository, so no quality is measured")
    for row in rows:
        shown = "  ".join(
            f"{c.replace('content_', 'c_')} {row[c]:.3f}"
            for c in score_tables.COLUMNS
            if row[c] is not None
        )
        print(f"{row['tool']:12} {row['cpu_ms']:6.1f} ms on {row['pages']} real pages  {shown}")


if __name__ == "__main__":
    with cli.interruptible("Stopped; nothing is told of a part."):
        main()
