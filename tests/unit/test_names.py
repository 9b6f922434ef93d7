"""What documentation, comments and configuration name is there: files, commands, settings,
stats and metrics."""

from __future__ import annotations

import re
import subprocess
from functools import cache
from pathlib import Path

import pytest
from scrapy.settings import default_settings

from newscrawler import metrics, settings
from newscrawler.api.exposition import (
    fleet_counters,
    fleet_histograms,
    site_families,
    worker_families,
)

ROOT = Path(__file__).resolve().parents[2]
SCRAPY_COMMANDS = {
    *("bench", "check", "crawl", "edit", "fetch", "genspider", "list", "parse", "runspider"),
    *("settings", "shell", "startproject", "version", "view"),
}
#: Of other projects, or made at run time.
FOREIGN_FILES = {
    *("robots.txt", "redis.log", "crawl.log", "sitemap.xml", "news-sitemap.xml", "articles.db"),
    *("gold.jsonl", "redis.conf", "sites.local.json", "out.csv", "out.jsonl", "a.parquet"),
    "receiver.py",  # the reader writes it, docs/operations.md
}


@cache
def tracked() -> frozenset[str]:
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return frozenset(listed.stdout.split())


def texts() -> dict[str, str]:
    """Documentation, configuration, and the code for its comments and docstrings. History
    may name what was."""
    wanted = re.compile(
        r"^(docs/.*\.md|README\.md|CONTRIBUTING\.md|Makefile|scrapy\.cfg|pyproject\.toml|setup\.py|requirements.*\.txt|"
        r"deploy/.*|newscrawler/.*\.(py|lua|html)|examples/.*|benchmarks/.*\.py)$"
    )
    return {
        name: (ROOT / name).read_text(encoding="utf-8", errors="replace")
        for name in tracked()
        if wanted.match(name) and (ROOT / name).is_file()
    }


def prose() -> dict[str, str]:
    return {n: t for n, t in texts().items() if n.endswith((".md", ".cfg")) or n == "Makefile"}


def test_files_that_are_named_are_there() -> None:
    names = {Path(name).name for name in tracked()}
    named = re.compile(
        r"(?<![\w./<>*{}$:@-])((?:[\w.-]+/)*[\w-]+\.(?:py|md|lua|cfg|toml|schema\.json|svg))(?![\w/*(-])"
    )
    missing = []
    count = 0
    for source, text in texts().items():
        for match in named.finditer(text):
            path = match[1].removeprefix("../")  # from docs/
            count += 1
            is_there = any(n == path or n.endswith(f"/{path}") for n in tracked())
            if not is_there and Path(path).name not in FOREIGN_FILES:
                missing.append(f"{source}: {path}")
    assert count > 200 and len(names) > 100, "the search found next to nothing"
    assert not missing


def test_commands_that_are_named_are_there() -> None:
    ours = {p.stem for p in (ROOT / "newscrawler" / "commands").glob("*.py")} - {"__init__"}
    named = re.compile(r"(?:`|bin/|^ {4}|^\$ )scrapy ([a-z]+)\b", re.MULTILINE)
    found = [(source, m[1]) for source, text in texts().items() for m in named.finditer(text)]
    assert len(found) > 40
    assert not [(s, c) for s, c in found if c not in ours | SCRAPY_COMMANDS]


def test_settings_and_variables_that_are_named_are_there() -> None:
    code = "\n".join(t for n, t in texts().items() if n.endswith(".py") or n == "Makefile")
    code += "\n".join(
        (ROOT / n).read_text(encoding="utf-8")
        for n in tracked()
        if n.startswith("tests/") and n.endswith(".py")
    )
    named = re.compile(r"`([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+)(?:`|=)")
    found = {(source, m[1]) for source, text in prose().items() for m in named.finditer(text)}
    assert len(found) > 60
    unknown = [
        (source, name)
        for source, name in sorted(found)
        if not hasattr(settings, name)
        and not hasattr(default_settings, name)
        and not re.search(rf"\b{name}\b", code)
    ]
    assert not unknown


def test_stats_that_are_named_are_declared() -> None:
    groups = {name.partition("/")[0] for name in metrics.STATS}
    named = re.compile(rf"`((?:{'|'.join(sorted(groups))})/[a-z_]+)(?:/[^`]*)?`")
    names = {name.rsplit("/", 1)[0] for name in metrics.STATS} | set(metrics.STATS)
    found = {(source, m[1]) for source, text in prose().items() for m in named.finditer(text)}
    files = tracked()
    assert len(found) > 3
    assert not [
        (s, n)
        for s, n in sorted(found)
        if metrics.stat_of(n) is None
        and n not in names
        and not any(f.startswith(f"newscrawler/{n}") for f in files)
    ]


def exported() -> set[str]:
    sums = worker_families([])
    names = {f.name for f in (*fleet_counters({}), *site_families({}), *sums)}
    names |= {f"newscrawler_{n.replace('/', '_')}" for n in metrics.STATS}
    for histogram in fleet_histograms({}):
        names |= {f"{histogram.name}{end}" for end in ("", "_bucket", "_sum", "_count")}
    # of the exposition itself, see ``exposition``
    names |= {f"newscrawler_{n}" for n in ("up", "store_articles", "store_gone")}
    names |= {
        f"newscrawler_frontier_{n}"
        for n in ("queued", "leased", "waiting", "quarantined", "domains")
    }
    return names | {f"{name}_total" for name in names}


def test_metrics_that_are_named_are_exported() -> None:
    named = re.compile(r"\b(newscrawler_[a-z0-9_]*[a-z0-9])(?![a-z0-9_]*\*|_\*)")
    found = {
        (source, m[1])
        for source, text in texts().items()
        if not source.endswith((".py", ".lua"))
        for m in named.finditer(text)
    }
    assert len(found) > 5
    other = {"newscrawler_token"}
    assert not [(s, n) for s, n in sorted(found) if n not in exported() | other]


@pytest.mark.parametrize(
    "constant", [n for n, v in vars(metrics).items() if n.isupper() and isinstance(v, str)]
)
def test_every_declared_stat_is_counted(constant: str) -> None:
    if getattr(metrics, constant) not in metrics.STATS:
        return
    users = [
        name
        for name, text in texts().items()
        if name.startswith("newscrawler/")
        and name != "newscrawler/metrics.py"
        and re.search(rf"\b{constant}\b", text)
    ]
    assert [u for u in users if "/api/" not in u], f"{constant} is declared and never counted"
