"""What is said of settings, commands and stats is true of the code."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest
from scrapy.settings import default_settings

from newscrawler import metrics, settings

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "newscrawler"
COMMANDS = sorted(p.stem for p in (PACKAGE / "commands").glob("*.py") if p.stem != "__init__")
#: Read by packages that we run, declared there.
FOREIGN = re.compile(r"^(SPIDERMON_|CLOSESPIDER_|JOBDIR$|LOG_FILE$|STATS_FILE$|REDIS_)")


def settings_read() -> dict[str, str]:
    """Setting name -> place, for every ``settings["X"]``, ``settings.get("X")``, ``settings.getint("X")`` ..."""
    found = {}
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            name = None
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr.startswith("get"):
                if "settings" in ast.dump(node.func.value) and node.args and isinstance(node.args[0], ast.Constant):
                    name = node.args[0].value
            elif isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
                target = node.value
                if isinstance(target, (ast.Name, ast.Attribute)) and "settings" in ast.unparse(target):
                    name = node.slice.value
            if isinstance(name, str) and name.isupper():
                found[name] = f"{path.relative_to(ROOT)}:{node.lineno}"
    return found


def test_every_setting_that_is_read_is_declared():
    read = settings_read()
    assert len(read) > 20, "the search for settings found next to nothing"
    missing = {
        name: place
        for name, place in read.items()
        if not hasattr(settings, name) and not hasattr(default_settings, name) and not FOREIGN.match(name)
    }
    assert not missing


def test_every_own_setting_has_a_comment():
    lines = (PACKAGE / "settings.py").read_text().splitlines()
    bare = []
    for i, line in enumerate(lines):
        m = re.match(r"([A-Z][A-Z0-9_]+)\s*[:=]", line)
        if not m or hasattr(default_settings, m[1]):
            continue
        if "#" in line:
            continue
        j = i - 1
        while j >= 0 and re.match(r"[A-Z][A-Z0-9_]+\s*[:=]", lines[j]):
            j -= 1  # a group of settings under one comment
        if j < 0 or not lines[j].lstrip().startswith("#"):
            bare.append(m[1])
    assert not bare


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_and_stands_in_the_readme(command: str):
    assert f"scrapy {command}" in (ROOT / "README.md").read_text()
    done = subprocess.run(
        [sys.executable, "-m", "scrapy", command, "-h"], cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert "usage" in done.stdout.lower() or "Usage" in done.stdout
    assert len(done.stdout) > 200
    # Scrapy makes a heading of each line that ends with a colon, also where a help text only breaks there.
    headings = re.findall(r"^(.+)\n={4,}$", done.stdout, flags=re.MULTILINE)
    assert not [x for x in headings if x != "Usage" and "Options" not in x], headings


def test_stats_are_declared_in_metrics_not_written_as_strings():
    literal = []
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                if node.func.attr in ("inc_value", "set_value", "max_value") and node.args:
                    if isinstance(node.args[0], (ast.Constant, ast.JoinedStr)):
                        literal.append(f"{path.relative_to(ROOT)}:{node.lineno}")
    assert not literal
    assert all(stat.unit and stat.meaning for stat in metrics.STATS.values())


def test_lua_heads_name_what_the_scripts_use():
    scripts = sorted((PACKAGE / "frontier" / "lua").glob("*.lua"))
    assert scripts
    for path in scripts:
        text = path.read_text()
        head = "\n".join(line for line in text.splitlines() if line.startswith("--"))
        for name in set(re.findall(r"\b(?:KEYS|ARGV)\[\d+\]", text)):
            assert name in head, f"{path.name}: {name} is not in the head comment"


def test_no_path_of_one_machine_is_in_the_repository():
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    wrong = []
    for name in listed:
        path = ROOT / name
        if path.is_file() and path.stat().st_size < 400_000:
            text = path.read_text(errors="ignore")
            wrong += [
                f"{name}:{i}"
                for i, line in enumerate(text.splitlines(), 1)
                if re.search(r"(?<![\w.])/(work|farm)/", line)
            ]
    wrong = [w for w in wrong if not w.startswith("tests/unit/test_truth.py")]
    assert not wrong
