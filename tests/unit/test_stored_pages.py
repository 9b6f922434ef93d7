"""Tests on stored real pages are skipped where a user has none, and fail where CI has none."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import stored_pages
from tests.semisynthetic import __main__ as semisynthetic


def test_without_them_a_user_reads_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match=r"^skipped: no stored real pages"):
        stored_pages(tmp_path)


def test_without_them_ci_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="no stored real pages in"):
        stored_pages(tmp_path)


def test_the_table_of_semi_synthetic_sets_says_that_there_are_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["tests.semisynthetic", "--pages", str(tmp_path)])
    with pytest.raises(SystemExit) as ended:
        semisynthetic.main()
    (line,) = capsys.readouterr().err.splitlines()
    assert ended.value.code == 2 and line.startswith(f"there are no stored pages in {tmp_path}")


def test_no_test_looks_for_them_by_itself() -> None:
    """Another look would skip where this one fails."""
    tests = Path(__file__).resolve().parents[1]
    looking = [
        str(path.relative_to(tests))
        for path in sorted(tests.rglob("test_*.py"))
        if "no stored real pages" in path.read_text() and path.name != Path(__file__).name
    ]
    assert looking == []
