"""`make bench` in miniature: every variant crawls the same small web and has its row in the table."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def printed() -> subprocess.CompletedProcess[str]:
    """One run of all three variants on three hosts with eight pages each."""
    command = [sys.executable, "-m", "benchmarks.bench_crawl", "--hosts", "3", "--pages-per-host", "8"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=180)


def _rows(output: str) -> dict[str, list[str]]:
    lines = [line for line in output.splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return {row[0]: row[1:] for row in cells[2:]}


def test_all_three_variants_have_a_row(printed: subprocess.CompletedProcess[str]) -> None:
    assert printed.returncode == 0, printed.stderr
    assert list(_rows(printed.stdout)) == [
        "stock Scrapy, in memory",
        "stock scrapy-redis",
        "newscrawler, whole pipeline",
    ]


def test_every_variant_reads_the_articles_of_the_web(printed: subprocess.CompletedProcess[str]) -> None:
    articles = {name: int(row[1]) for name, row in _rows(printed.stdout).items()}
    assert min(articles.values()) >= 3 * 6, articles


def test_progress_goes_to_stderr_and_only_the_table_to_stdout(printed: subprocess.CompletedProcess[str]) -> None:
    assert all(line.startswith("|") for line in printed.stdout.splitlines()), printed.stdout
    assert printed.stderr.count("running ") == 3


def test_the_ratios_count_from_stock_scrapy_redis(printed: subprocess.CompletedProcess[str]) -> None:
    assert _rows(printed.stdout)["stock scrapy-redis"][-2:] == ["1.00", "1.000"]
