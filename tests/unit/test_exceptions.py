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
#: An exception says why: after its codes, in a comment of its own or behind a dash, or in a comment
#: that is the line above.
_WITH_REASON = re.compile(
    r"(type: ignore\[[\w, -]+\]|noqa: [A-Z]+\d+(, ?[A-Z]+\d+)*) {1,2}([#(-]) *\w"
)


def comments(*parts: str) -> Iterator[tuple[str, str, str]]:
    """Of every tracked module: where a comment stands, its text, and the line above it."""
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
        lines = ["", *text.splitlines()]
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT:
                yield f"{name}:{token.start[0]}", token.string, lines[token.start[0] - 1]


def says_why(text: str, above: str) -> bool:
    return bool(_WITH_REASON.search(text) or re.match(r"\s*# (?!noqa|type:)\w", above))


def test_type_ignore_is_rare_and_says_why() -> None:
    found = [one for one in comments("newscrawler") if _IGNORE.search(one[1])]
    assert found, "none was looked at"
    assert len(found) <= MOST_IGNORES
    assert [at for at, text, above in found if not says_why(text, above)] == []


def test_every_noqa_says_why() -> None:
    parts = ("newscrawler", "evaluation", "benchmarks", "tests")
    found = [one for one in comments(*parts) if re.match(r"# noqa", one[1])]
    assert len(found) > 20, "none was looked at"
    assert [at for at, text, above in found if not says_why(text, above)] == []


@pytest.mark.parametrize(
    ("text", "is_said"),
    [
        ("# noqa: B023", False),
        ("# noqa: B023  # called before the loop goes on", True),
        ("# noqa: C901, PLR0912 - a call per node is felt", True),
        ("# type: ignore[misc]", False),
        ("# type: ignore[misc]  # made at run time", True),
        ("# type: ignore  # made at run time", False),
    ],
)
def test_what_counts_as_a_reason(text: str, is_said: bool) -> None:
    assert says_why(text, "    return 1") == is_said
    assert says_why(text, "    # The base class promises more.")
    assert says_why(text, "    # noqa: B023") == is_said
