"""What is said of settings, commands and stats is true of the code."""

from __future__ import annotations

import ast
import importlib
import operator
import os
import re
import subprocess
from pathlib import Path

import pytest
from scrapy.settings import default_settings

from newscrawler import metrics, settings
from newscrawler.discovery.article_revisits import ARTICLE_REVISITS_S
from tests import warm

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "newscrawler"
COMMANDS = sorted(p.stem for p in (PACKAGE / "commands").glob("*.py") if p.stem != "__init__")
#: Read by packages that we run, declared there.
FOREIGN = re.compile(r"^(SPIDERMON_|CLOSESPIDER_|JOBDIR$|LOG_FILE$|STATS_FILE$|REDIS_)")


def settings_read() -> dict[str, str]:
    """Setting name -> place, for every ``settings["X"]``, ``settings.get("X")``,
    ``settings.getint("X")`` ..."""
    found = {}
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            name = None
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr.startswith("get")
            ):
                if (
                    "settings" in ast.dump(node.func.value)
                    and node.args
                    and isinstance(node.args[0], ast.Constant)
                ):
                    name = node.args[0].value
            elif isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
                target = node.value
                if isinstance(target, (ast.Name, ast.Attribute)) and "settings" in ast.unparse(
                    target
                ):
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
        if not hasattr(settings, name)
        and not hasattr(default_settings, name)
        and not FOREIGN.match(name)
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
    done = warm.run([command, "-h"], text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "usage" in done.stdout.lower() or "Usage" in done.stdout
    assert len(done.stdout) > 200
    # Scrapy makes a heading of each line that ends with a colon, also where a help text
    # only breaks there.
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
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()
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


def test_paths_in_the_documents_exist():
    named = re.compile(r"(?<![\w/.])(?:newscrawler(?!/\d)|evaluation|benchmarks|tests)/[\w/.]*\w")
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")]
    paths = {(page.name, path) for page in pages for path in named.findall(page.read_text())}
    assert len(paths) > 50
    missing = [
        (page, path)
        for page, path in sorted(paths)
        if not (ROOT / path).exists() and not (ROOT / f"{path}.py").exists()
    ]
    assert not missing


def test_tests_that_the_documents_name_exist():
    """``path::test``: in the threat model each line stands or falls with them."""
    named = re.compile(r"(tests/[\w/]+\.py)::(\w+)")
    pairs = {
        (page.name, path, test)
        for page in (ROOT / "docs").glob("*.md")
        for path, test in named.findall(page.read_text(encoding="utf-8"))
    }
    assert len(pairs) > 40
    missing = [
        (page, path, test)
        for page, path, test in sorted(pairs)
        if not (ROOT / path).is_file()
        or not re.search(rf"def {test}\(", (ROOT / path).read_text(encoding="utf-8"))
    ]
    assert not missing


def test_every_threat_has_a_test():
    """A line of the threat model without one says so in words."""
    text = (ROOT / "docs" / "threat-model.md").read_text(encoding="utf-8")
    rows = [line for line in text.splitlines() if line.startswith("| ") and "---" not in line]
    bare = [row for row in rows if "| test |" not in row and "`tests/" not in row.split("|")[-2]]
    assert len(rows) > 25 and not bare


def test_pickles_are_read_in_two_places():
    """Answers of our own processes, and what the worker gives to them (docs/threat-model.md)."""
    reads = re.compile(
        r"pickle\.(?:loads?|Unpickler)\b|\bmarshal\.loads?|\bshelve\b|allow_pickle=True"
    )
    found = {
        str(path.relative_to(PACKAGE)): reads.findall(path.read_text(encoding="utf-8"))
        for path in PACKAGE.rglob("*.py")
    }
    assert {name: calls for name, calls in found.items() if calls} == {
        "crawl/answers.py": ["pickle.Unpickler"],  # child -> worker, values only
        "crawl/parse_process.py": ["pickle.loads"],  # worker -> child: a selector set
        "crawl/processes.py": ["pickle.loads"],  # worker -> child: a call
    }


def test_site_owners_are_told_the_user_agent_that_is_sent():
    text = (ROOT / "docs" / "for-site-owners.md").read_text(encoding="utf-8")
    assert f"    {settings.USER_AGENT}\n" in text or "USER_AGENT" in os.environ
    assert f"User-agent: {settings.ROBOTSTXT_USER_AGENT}\n" in text
    assert f"at least {settings.DOWNLOAD_DELAY:g} seconds" in text
    assert settings.ROBOTS_MAX_AGE_S == 86_400 and settings.ARTICLE_MAX_AGE_DAYS == 7
    assert ARTICLE_REVISITS_S == (15 * 60, 3600, 6 * 3600, 86_400)


def test_where_pictures_are_denied_the_exception_is_named():
    """Each paragraph that says that none are fetched is untrue with API_PICTURES."""
    denies = re.compile(
        r"(?i)\bno pictures\b|pictures are (never|not) fetched|picture is shown as its address"
        r"|page and the API.*fetches nothing|store and Redis and fetches nothing"
    )
    paths = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    said = [
        (path.name, part)
        for path in paths
        for part in re.split(r"\n(?=- |\||\n)", path.read_text(encoding="utf-8"))
        if denies.search(part)
    ]
    assert {"personal-data.md", "for-site-owners.md", "operations.md"} <= {name for name, _ in said}
    assert [name for name, part in said if "API_PICTURES" not in part] == []


def test_the_changelog_keeps_its_form():
    """Keep a Changelog 1.1.0: versions, newest first, and under each the kinds of change."""
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    versions = re.split(r"^## ", text, flags=re.M)[1:]
    assert versions and versions[0].startswith("[Unreleased]\n")
    for version in versions:
        title, *kinds = re.split(r"^### ", version, flags=re.M)
        assert re.match(r"\[(Unreleased|\d+\.\d+\.\d+)\](?: - \d{4}-\d\d-\d\d)?\n", title)
        assert "\n- " not in title, "a change stands under no kind"
        names = [kind.partition("\n")[0] for kind in kinds]
        known = ["Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"]
        assert names == [name for name in known if name in names]
        assert all("\n- " in kind for kind in kinds), "a kind without a change"


def modules_by_folder() -> dict[str, list[str]]:
    """Folder below the package, "" = its top -> names of its modules."""
    found: dict[str, list[str]] = {}
    for path in PACKAGE.rglob("*.py"):
        folder = path.parent.relative_to(PACKAGE).as_posix().removeprefix(".")
        if "_shipped" not in folder:
            found.setdefault(folder, []).append(path.stem)
    return found


def modules_in_tree(tree: str) -> dict[str, list[str]]:
    """The same as architecture.md has it: a folder at six spaces, its modules at twelve, those of
    the top with their ending."""
    found: dict[str, list[str]] = {"": []}
    folder = ""
    for line in tree.splitlines():
        if named := re.match(r" {6}([a-z_/]+)/ ", line):
            folder = named[1]
            found[folder] = []
        elif re.match(r" {6}[a-z_]", line):
            found[""] += re.findall(r"(\w+)\.py\b", line)
        elif re.match(r" {12}\w", line):
            found[folder] += line.split()
    return found


def test_the_tree_in_architecture_has_each_module_once() -> None:
    text = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    tree = text.partition("## Where things are")[2].partition("## Layers")[0]
    said, there = modules_in_tree(tree), modules_by_folder()
    assert len(there) > 20 and sum(map(len, there.values())) > 300
    wrong = {
        folder or "newscrawler": (sorted(names - of), sorted(of - names))
        for folder in sorted(there.keys() | said.keys())
        if (names := set(there.get(folder, ())) - {"__init__"})
        != (of := set(said.get(folder, ())) - {"__init__"})
    }
    assert not wrong, "folder: (not in the tree, only in the tree)"
    assert not [name for names in said.values() for name in names if names.count(name) > 1]
    assert there.keys() <= said.keys()


def test_the_life_of_a_url_names_what_is_there() -> None:
    """Files in backticks, then the functions and classes to read in them."""
    text = (ROOT / "docs" / "life-of-a-url.md").read_text(encoding="utf-8")
    steps = re.split(r"`(newscrawler/[\w/.-]+)`", text)[1:]
    named = list(zip(steps[::2], steps[1::2], strict=True))
    missing, count = [], 0
    for path, words in named:
        if not (ROOT / path).is_file():
            missing.append(path)
        if not words.startswith(":"):
            continue
        module = importlib.import_module(
            path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        )
        # up to the next sentence about something else, the words in backticks are of this file
        for name in re.findall(r"`([A-Za-z_.]+)`", words.partition("\n\n")[0]):
            count += 1
            try:
                operator.attrgetter(name)(module)
            except AttributeError:
                missing.append(f"{path}: {name}")
    assert len(named) > 25 and count > 30, "the search found next to nothing"
    assert not missing


def test_the_ways_in_architecture_name_what_is_there() -> None:
    """In the pictures a file is followed by the functions that do the step."""
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    ways = text.partition("## The way of a page")[2].partition("docs/life-of-a-url.md")[0]
    step = re.compile(r"([\w/]+\.(?:py|lua)) +([A-Za-z_.]+(?:, [A-Za-z_.]+)*)?")
    missing, functions = [], 0
    for path, names in step.findall("\n".join(re.findall(r"(?m)^    .*$", ways))):
        files = [ROOT / "newscrawler" / path, *PACKAGE.glob(f"*/{path}")]
        there = [file for file in files if file.is_file()]
        if not there:
            missing.append(path)
        # A single lower-case word may be prose as well as a function.
        wanted = [name for name in names.split(", ") if re.search("[A-Z_.]", name)]
        if path.endswith(".lua") or not there:
            continue
        module = there[0].relative_to(ROOT).with_suffix("")
        for name in wanted:
            functions += 1
            try:
                operator.attrgetter(name)(importlib.import_module(".".join(module.parts)))
            except AttributeError:
                missing.append(f"{path}: {name}")
    assert functions > 20, "the search found next to nothing"
    assert not missing
