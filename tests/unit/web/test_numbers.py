"""Digits are 0-9: what Unicode calls digits besides must neither raise nor count."""

from __future__ import annotations

import ast
import string
import sys
from pathlib import Path

import pytest

from newscrawler.utils.numbers import is_digits, whole_number

PACKAGE = Path(__file__).resolve().parents[3] / "newscrawler"


@pytest.mark.parametrize(
    ("text", "most", "expected"),
    [
        ("0", 9, 0),
        ("9", 9, 9),
        ("10", 9, None),
        ("007", 9, 7),
        ("0" * 5000 + "7", 9, 7),
        ("9" * 5000, 2**63 - 1, None),
        (str(2**63 - 1), 2**63 - 1, 2**63 - 1),
        (str(2**63), 2**63 - 1, None),
        ("", 9, None),
        ("-1", 9, None),
        ("+1", 9, None),
        (" 1", 9, None),
        ("1_0", 99, None),
        ("²", 9, None),
        ("1²", 99, None),
        ("①", 9, None),
        ("٣", 9, None),
        ("３", 9, None),
    ],
)
def test_whole_numbers(text: str, most: int, expected: int | None) -> None:
    assert whole_number(text, most) == expected


def test_of_all_characters_ten_are_digits() -> None:
    found = [c for c in map(chr, range(sys.maxunicode + 1)) if is_digits(c)]
    assert found == list(string.digits)


def test_nothing_turns_what_isdigit_accepts_into_a_number() -> None:
    """A function that asks ``.isdigit()`` and calls ``int`` or ``float`` raises on "²",
    unless it asks ``isascii``."""
    wrong = []
    for path in sorted(PACKAGE.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                continue
            asked = {n.attr for n in ast.walk(node) if isinstance(n, ast.Attribute)}
            calls = {
                n.func.id
                for n in ast.walk(node)
                if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)
            }
            is_unsafe = asked & {"isdigit", "isdecimal", "isnumeric"} and "isascii" not in asked
            if is_unsafe and calls & {"int", "float"}:
                wrong.append(f"{path.relative_to(PACKAGE)}:{node.lineno} {node.name}")
    assert not wrong, f"use web.numbers: {wrong}"
