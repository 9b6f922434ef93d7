"""`make bench` in miniature: every variant crawls the same small web and has
its row in the table."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import bench_crawl
from tests.crawl.harness import until

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(1, marks=pytest.mark.long),
        pytest.param(2, marks=pytest.mark.chaos),
    ],
)
def turns(request: pytest.FixtureRequest) -> int:
    return int(request.param)


@pytest.fixture(scope="module")
def printed(turns: int) -> subprocess.CompletedProcess[str]:
    """Each turn is every variant on three hosts with eight pages each. What hangs tells
    where, in the failure."""
    command = [
        sys.executable,
        "-m",
        "benchmarks.bench_crawl",
        "--hosts",
        "3",
        "--pages-per-host",
        "8",
    ]
    command += ["--turns", str(turns), "--limit", "120"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr
    return done


def _rows(output: str) -> dict[str, list[str]]:
    lines = [line for line in output.splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return {row[0]: row[1:] for row in cells[2:]}


def test_all_variants_have_a_row(printed: subprocess.CompletedProcess[str]) -> None:
    assert list(_rows(printed.stdout)) == [
        "stock Scrapy, in memory",
        "stock scrapy-redis",
        "stock scrapy-redis, broad-crawl settings",
        "stock scrapy-redis, broad-crawl settings, two workers",
        "newscrawler, whole pipeline",
    ]


def test_every_variant_reads_the_articles_of_the_web(
    printed: subprocess.CompletedProcess[str],
) -> None:
    articles = {name: int(row[2]) for name, row in _rows(printed.stdout).items()}
    assert min(articles.values()) >= 3 * 6, articles


def test_progress_goes_to_stderr_and_only_the_table_to_stdout(
    printed: subprocess.CompletedProcess[str], turns: int
) -> None:
    assert all(line.startswith("|") for line in printed.stdout.splitlines()), printed.stdout
    assert printed.stderr.count("running ") == turns * 5


def test_the_ratios_count_from_stock_scrapy_redis(
    printed: subprocess.CompletedProcess[str],
) -> None:
    assert _rows(printed.stdout)["stock scrapy-redis"][-2:] == ["1.00", "1.000"]


@pytest.mark.long
def test_what_does_not_end_says_where_it_is_and_leaves_its_log(tmp_path: Path) -> None:
    """`scrapy serve` serves for ever; the stacks of its threads and tasks stand in the
    failure and in the log."""
    command = [sys.executable, "-m", "benchmarks.dumping", "serve", "--port", "0"]
    log = tmp_path / "endless.log"
    env = bench_crawl.environment(DATA_DIR=str(tmp_path / "data"))
    with pytest.raises(SystemExit) as said:
        bench_crawl.measure([command], env, log, limit_s=15)
    text = str(said.value)
    assert "did not end within 15 s" in text
    assert "(most recent call first)" in text, "faulthandler's stacks of the threads"
    assert "tasks" in text
    kept = Path(text.partition("kept in ")[2].partition(":\n")[0])
    assert "most recent call first" in kept.read_text()
    kept.unlink()


@pytest.mark.long
def test_ctrl_c_is_a_line_and_leaves_no_process(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "benchmarks.bench_crawl", "--hosts", "2", "--turns", "1"]
    process = subprocess.Popen(
        [*command, "--pages-per-host", "400", "--keep", str(tmp_path)],
        cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    assert process.stderr is not None
    assert "running memory" in process.stderr.readline()
    seeds = str(tmp_path / "seeds.txt")
    until(lambda: running_with(seeds), "the first variant runs", 60)
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130 and "Traceback" not in err, err
    assert err.splitlines()[-1] == "Stopped; nothing is told of a part." and not out
    assert not running_with(seeds)


def running_with(argument: str) -> list[str]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if argument.encode() in path.read_bytes().split(b"\0"):
                found.append(path.parent.name)
    return found
