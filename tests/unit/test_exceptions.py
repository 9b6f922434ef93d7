"""Exceptions from the checks of mypy and ruff: few of the first, and each says why."""

from __future__ import annotations

import io
import re
import subprocess
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
#: The goal: fewer than ten in the program itself.
MOST_IGNORES = 9
_IGNORE = re.compile(r"type: ignore")
#: After its codes an exception says why: in a comment of its own, or behind a dash.
_WITH_REASON = re.compile(
    r"(type: ignore\[[\w, -]+\]|noqa: [A-Z]+\d+(, ?[A-Z]+\d+)*) {1,2}([#(-]) *\w"
)


def comments(*parts: str) -> Iterator[tuple[str, str]]:
    """Of every tracked module: where a comment stands, and its text."""
    listed = subprocess.run(
        ["git", "ls-files", *(f"{part}/*.py" for part in parts)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    for name in listed.stdout.split():
        text = (ROOT / name).read_text(encoding="utf-8")
        if "noqa" not in text and not _IGNORE.search(text):
            continue
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT:
                yield f"{name}:{token.start[0]}", token.string


def test_type_ignore_is_rare_and_says_why() -> None:
    found = [(at, text) for at, text in comments("newscrawler") if _IGNORE.search(text)]
    assert found, "none was looked at"
    assert len(found) <= MOST_IGNORES
    assert [at for at, text in found if not _WITH_REASON.search(text)] == []


def test_every_noqa_says_why() -> None:
    parts = ("newscrawler", "evaluation", "benchmarks", "tests")
    found = [(at, text) for at, text in comments(*parts) if re.match(r"# noqa", text)]
    assert len(found) > 20, "none was looked at"
    assert [at for at, text in found if not _WITH_REASON.search(text)] == []


@pytest.mark.parametrize(
    ("text", "says_why"),
    [
        ("# noqa: B023", False),
        ("# noqa: B023  # called before the loop goes on", True),
        ("# noqa: C901, PLR0912 - a call per node is felt", True),
        ("# type: ignore[misc]", False),
        ("# type: ignore[misc]  # made at run time", True),
        ("# type: ignore  # made at run time", False),
    ],
)
def test_what_counts_as_a_reason(text: str, says_why: bool) -> None:
    assert bool(_WITH_REASON.search(text)) == says_why
