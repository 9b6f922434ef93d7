"""The systemd units under deploy/: what systemd itself says of them, and that the programs that they
start are there."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
UNITS = sorted((ROOT / "deploy").glob("*.service"))
PLACE = "/opt/newscrawler/.venv/bin/"


def test_there_are_units() -> None:
    assert len(UNITS) >= 3


@pytest.mark.parametrize("unit", UNITS, ids=lambda path: path.stem)
def test_a_unit_is_right(unit: Path, tmp_path: Path) -> None:
    text = unit.read_text(encoding="utf-8")
    start = next(line for line in text.splitlines() if line.startswith("ExecStart="))
    program = start.removeprefix(f"ExecStart={PLACE}").split()[0]
    here = Path(sys.executable).parent / program
    assert here.is_file(), f"{program} is not installed by requirements.txt"
    assert "Restart=always" in text and "User=" in text, "it comes back, and is not root"
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        pytest.skip("skipped: no systemd-analyze on this machine")
    copy = tmp_path / unit.name
    # Programs and users of this machine: they are looked for.
    copy.write_text(text.replace(PLACE, f"{here.parent}/"), encoding="utf-8")
    done = subprocess.run(
        [analyze, "verify", "--man=no", str(copy)], capture_output=True, text=True, timeout=60
    )
    said = [line for line in done.stderr.splitlines() if unit.name in line]
    assert not said and done.returncode == 0, done.stderr


def test_what_is_misspelt_is_found(tmp_path: Path) -> None:
    """The check can fail."""
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        pytest.skip("skipped: no systemd-analyze on this machine")
    wrong = tmp_path / "wrong.service"
    wrong.write_text("[Service]\nExecStart=/bin/true\nRestrat=always\n")
    done = subprocess.run(
        [analyze, "verify", "--man=no", str(wrong)], capture_output=True, text=True, timeout=60
    )
    assert "Restrat" in done.stderr
