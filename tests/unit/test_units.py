"""The systemd units under deploy/: what systemd itself says of them, what can be said without it, and
that the programs that they start are there."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
UNITS = sorted((ROOT / "deploy").glob("*.service"))
PLACE = "/opt/newscrawler/.venv/bin/"


WORD, PATH, SECONDS = r"\S+", r"/\S+", r"\d+"
YES = "yes|no|true|false"
#: What our units may have (systemd.unit(5), .service(5), .exec(5), .kill(5)), and what it looks like.
KEYS = {
    "Unit": {
        "Description": ".+",
        "Wants": WORD,
        "After": WORD,
        "Requires": WORD,
    },
    "Service": {
        "User": r"[a-z_][a-z0-9_-]*",
        "Group": r"[a-z_][a-z0-9_-]*",
        "EnvironmentFile": rf"-?{PATH}",
        "Environment": r"[A-Z_]+=\S*",
        "WorkingDirectory": PATH,
        "ExecStart": rf"{PATH}( .+)?",
        "Restart": "always|on-failure",
        "RestartSec": SECONDS,
        "KillMode": "control-group|mixed|process",
        "TimeoutStopSec": SECONDS,
        "StateDirectory": r"[a-z-]+",
        "LogsDirectory": r"[a-z-]+",
        "NoNewPrivileges": YES,
        "ProtectSystem": "strict|full",
        "ProtectHome": YES,
        "PrivateTmp": YES,
        "ReadOnlyPaths": PATH,
        "ReadWritePaths": PATH,
    },
    "Install": {"WantedBy": r"multi-user\.target"},
}


def faults_of(text: str) -> list[str]:
    """Lines of a unit that are none: of an unknown section, with an unknown key, of a wrong form."""
    section, faults, seen = "", [], []
    for line in text.splitlines():
        if not line.strip() or line.startswith(("#", ";")):
            continue
        if head := re.fullmatch(r"\[(\w+)\]", line):
            section = head[1]
            seen.append(section)
            continue
        key, _, value = line.partition("=")
        form = KEYS.get(section, {}).get(key)
        if form is None or not re.fullmatch(form, value):
            faults.append(f"[{section}] {line}")
    return faults + [f"no section {name}" for name in KEYS if seen.count(name) != 1]


def systemd_analyze() -> str:
    found = shutil.which("systemd-analyze")
    if found is None and os.environ.get("CI"):
        pytest.fail("no systemd-analyze: .ci/run installs Debian's package systemd")
    if found is None:
        pytest.skip("skipped: no systemd-analyze on this machine")
    return found


def test_there_are_units() -> None:
    assert len(UNITS) >= 3


@pytest.mark.parametrize("unit", UNITS, ids=lambda path: path.stem)
def test_a_unit_is_right_without_systemd(unit: Path) -> None:
    assert faults_of(unit.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("Restart=always", "Restrat=always"),
        ("RestartSec=2", "RestartSec=soon"),
        ("WantedBy=multi-user.target", "WantedBy=multiuser.target"),
        ("[Install]", "[Instal]"),
        ("ExecStart=/opt", "ExecStart=opt"),
    ],
)
def test_without_systemd_what_is_misspelt_is_found(right: str, wrong: str) -> None:
    text = (ROOT / "deploy/newscrawler-watch.service").read_text(encoding="utf-8")
    assert right in text and faults_of(text.replace(right, wrong))


@pytest.mark.parametrize("unit", UNITS, ids=lambda path: path.stem)
def test_a_unit_is_right(unit: Path, tmp_path: Path) -> None:
    text = unit.read_text(encoding="utf-8")
    start = next(line for line in text.splitlines() if line.startswith("ExecStart="))
    program = start.removeprefix(f"ExecStart={PLACE}").split()[0]
    here = Path(sys.executable).parent / program
    assert here.is_file(), f"{program} is not installed by requirements.txt"
    assert "Restart=always" in text and "User=" in text, "it comes back, and is not root"
    analyze = systemd_analyze()
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
    analyze = systemd_analyze()
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


def test_files_of_variables_can_be_read_by_a_shell() -> None:
    """By systemd and docker as well; an unquoted USER_AGENT has a parenthesis."""
    texts = [manual(), (ROOT / "docs/containers.md").read_text(encoding="utf-8")]
    found = [
        lines
        for text in texts
        for lines in re.findall(r"<<'?END'?\n((?:[A-Z_]+=.*\n)+)END\n", text)
    ]
    assert len(found) >= 3 and sum("USER_AGENT=" in lines for lines in found) >= 2
    for lines in found:
        done = subprocess.run(
            ["sh", "-c", f"set -eua; worker=w; word() {{ echo x; }}\n{lines}\nprintenv USER_AGENT"],
            capture_output=True, text=True, timeout=30,
        )  # fmt: skip
        assert not done.stderr, done.stderr
        assert ("(+https://" in done.stdout) == ("USER_AGENT=" in lines)


def test_cron_is_told_where_scrapy_is_and_with_which_variables() -> None:
    """It has no activated shell. Without the fleet's SITES_FILE a refresh would queue the shipped
    sites for workers that crawl others."""
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
    alone = [
        line for line in lines if "scrapy" in line and ". /etc/newscrawler/environment" not in line
    ]
    assert not alone, alone
