"""The systemd units under deploy/: what systemd itself says of them, and that the programs that they
start are there."""

from __future__ import annotations

import re
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


def manual() -> str:
    return (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")


def blocks(heading: str) -> str:
    """The commands below a heading of docs/operations.md, up to the next one."""
    part = manual().split(f"{heading}\n", 1)[1].split("\n## ")[0].split("\n### ")[0]
    return "\n".join(re.findall(r"^```bash\n(.*?)^```$", part, re.M | re.S))


@pytest.mark.parametrize("unit", UNITS, ids=lambda path: path.stem)
def test_the_manual_makes_what_a_unit_needs(unit: Path) -> None:
    commands = blocks("### On three machines")
    text = unit.read_text(encoding="utf-8")
    [user] = re.findall(r"^User=(\w+)$", text, re.M)
    [variables] = re.findall(r"^EnvironmentFile=(\S+)$", text, re.M)
    assert re.search(rf"^useradd .* {user}$", commands, re.M)
    assert f"cat > {variables} <<" in commands
    assert re.search(rf"^install -d .* {Path(variables).parent}$", commands, re.M)
    assert re.search(rf"^chgrp {user} .*{variables}", commands, re.M)
    assert re.search(rf"^cp .*deploy/{unit.name} .*/etc/systemd/system/$", commands, re.M)
    assert re.search(rf"^systemctl enable --now .*\b{unit.stem}\b", commands, re.M)
    assert commands.index("git clone URL /opt/newscrawler") < commands.index(unit.name)


def test_the_commands_of_the_manual_are_shell() -> None:
    commands = re.findall(r"^```bash\n(.*?)^```$", manual(), re.M | re.S)
    assert len(commands) > 10
    done = subprocess.run(
        ["bash", "-n"], input="\n".join(commands), capture_output=True, text=True, timeout=30
    )
    assert done.returncode == 0 and not done.stderr, done.stderr


def test_cron_is_told_where_scrapy_is() -> None:
    """It has no activated shell."""
    texts = [ROOT / "deploy/crontab", ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    lines = [
        line
        for path in texts
        for line in path.read_text(encoding="utf-8").splitlines()
        if re.match(r"[\s#]*(\*(/\d+)?|\d+) (\*|\d+) \* \* \* ", line)
    ]
    assert len(lines) >= 6
    bare = [line for line in lines if re.search(r"(?<!\.venv/bin/)\bscrapy\b", line)]
    assert not bare, bare
