"""What we tell people and machines to type is what the program takes: in the documents, in crontab and
units, and where an alert names the command or page that explains it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from newscrawler import settings
from newscrawler.api.app import create_app
from newscrawler.api.deps import Deps
from newscrawler.fleet.alarms import KINDS
from newscrawler.store import open_store
from tests.commandline import commands_in, fault_of, words_of

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
FENCED = re.compile(r"^```(?:bash|sh)?\n(.*?)^```", re.M | re.S)
INDENTED = re.compile(r"^ {4}(.*)$", re.M)
INLINE = re.compile(r"`([^`\n]+)`")


def shell_of(path: Path) -> str:
    """What of a document is code; all of another file."""
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".md":
        return text
    return "\n".join(
        found for pattern in (FENCED, INDENTED, INLINE) for found in pattern.findall(text)
    )


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_every_command_of_a_document_is_one(page: Path) -> None:
    faults = [f"{' '.join(w)}: {f}" for w in commands_in(shell_of(page)) if (f := fault_of(w))]
    assert not faults, faults


def test_commands_are_found_in_the_documents() -> None:
    many = {page.name: len(list(commands_in(shell_of(page)))) for page in PAGES}
    assert many["README.md"] > 40 and many["operations.md"] > 60 and sum(many.values()) > 300, many


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("scrapy fleet scale 2-6", ""),
        (".venv/bin/scrapy store prune --dry-run >> data/log 2>&1 &", ""),
        ("(exec scrapy monitor --every 5 > ../monitor.log 2>&1) &", ""),
        ("set -a; cd /x && flock -n l scrapy seeds refresh", ""),
        ("scrapy frontier why URL | head", ""),
        ("scrapy sites list|show SITE [--json]", ""),
        ("scrapy flet status", "there is no command 'flet'"),
        ("scrapy fleet begin 3", "fleet has no verb 'begin'"),
        ("scrapy fleet start 3 --gently", "fleet has no option --gently"),
        ("x $(scrapy fleet statsu --json | python -c 'import json')", "fleet has no verb 'statsu'"),
        ("scrapy monitor --evry 60", "monitor has no option --evry"),
    ],
)
def test_a_wrong_command_is_found(line: str, said: str) -> None:
    [words] = commands_in(line)
    assert fault_of(words) == said


#: Variables that programs of ours read and that are no settings: secrets, and Scrapyd's clients'.
SECRETS = {
    "ALERT_TELEGRAM_TOKEN", "ALERT_WEBHOOK_SECRET", "API_TOKEN_SECRET", "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY", "MAIL_PASS", "SCRAPYD_PASSWORD",
}  # fmt: skip


def test_each_variable_that_operators_are_told_to_set_is_read() -> None:
    """In blocks of shell and the files that they write; lower case is the shell's own."""
    found: dict[str, str] = {}
    for name in ("operations.md", "containers.md", "securing.md", "upgrading.md"):
        text = "\n".join(FENCED.findall((ROOT / "docs" / name).read_text(encoding="utf-8")))
        for variable in re.findall(r"(?:^|\s|export )([A-Z][A-Z0-9_]+)=(?!=)", text):
            found[variable] = name
    assert len(found) > 20, found
    unknown = {
        variable: name
        for variable, name in found.items()
        if not hasattr(settings, variable) and variable not in SECRETS | {"PATH"}
    }
    assert not unknown
    assert SECRETS & set(found) == SECRETS - {"ALERT_TELEGRAM_TOKEN", "ALERT_WEBHOOK_SECRET"}


# ---------------------------------------------------------------- cron and units
#: minute, hour, day, month, day of the week: least and most.
FIELDS = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 7))


def cron_fault(line: str) -> str:
    """Of a line of a user's crontab (five fields and a command); "" = none."""
    *when, command = line.split(None, 5)
    if len(when) != 5:
        return "five fields and a command are needed"
    for field, (least, most) in zip(when, FIELDS, strict=True):
        for part in field.split(","):
            span = re.fullmatch(r"(?:\*|(\d+)(?:-(\d+))?)(?:/([1-9]\d*))?", part)
            if not span:
                return f"{field} is no field of cron"
            if any(not least <= int(one) <= most for one in span.groups()[:2] if one):
                return f"{field} is not from {least} to {most}"
    if re.search(r"(?<!\\)%", command):
        return "% begins the input of a command there: write \\%"
    faults = [fault for words in commands_in(command) if (fault := fault_of(words))]
    return faults[0] if faults else ""


def test_the_crontab_is_one() -> None:
    lines = (ROOT / "deploy/crontab").read_text(encoding="utf-8").splitlines()
    jobs = [line.removeprefix("# ") for line in lines if re.match(r"(# )?[\d*]", line)]
    assert len(jobs) >= 4
    assert not [(job, fault) for job in jobs if (fault := cron_fault(job))]
    others = [line for line in lines if not line.startswith("#") and line not in jobs]
    assert all(re.fullmatch(r"[A-Z_]+=\S+", line) for line in others if line), others


@pytest.mark.parametrize(
    "line",
    [
        "*/5 * * * scrapy monitor",
        "61 * * * * scrapy monitor",
        "0 24 * * * scrapy monitor",
        "*/0 * * * * scrapy monitor",
        "0 3 * * * scrapy backup /b/$(date +%F)",
        "0 3 * * * cd /opt && .venv/bin/scrapy monitro",
    ],
)
def test_what_cron_would_not_run_is_found(line: str) -> None:
    assert cron_fault(line)


@pytest.mark.parametrize(
    "unit", sorted((ROOT / "deploy").glob("*.service")), ids=lambda path: path.stem
)
def test_a_unit_starts_what_there_is(unit: Path) -> None:
    [start] = re.findall(r"^ExecStart=(.*)$", unit.read_text(encoding="utf-8"), re.M)
    found = [fault_of(words) for words in commands_in(start)]
    assert found == ([""] if "/scrapy " in start else []), found


# ---------------------------------------------------------------- alerts
def explanations() -> Iterator[tuple[str, str]]:
    """(alert, a command or page that it names)."""
    for name, kind in KINDS.items():
        yield from ((name, part.strip()) for part in kind.explain.split(";"))
    rules = yaml.safe_load((ROOT / "deploy/prometheus/rules.yml").read_text(encoding="utf-8"))
    for rule in (rule for group in rules["groups"] for rule in group["rules"]):
        if "alert" in rule:
            text = rule["annotations"]["explain"]
            text = re.sub(r"{{.*?}}", "SUBJECT", text)
            yield from ((rule["alert"], part.strip()) for part in text.split(";"))


@pytest.fixture(scope="module")
def routes(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    folder = tmp_path_factory.mktemp("routes")
    app: Any = create_app(Deps(store=open_store("", folder), sites={}))
    return {route.path for route in app.routes}


def is_there(part: str, routes: set[str]) -> bool:
    """Whether what an alert names exists: a command, a page or route, a document, settings."""
    if part.startswith("scrapy "):
        return not fault_of(words_of(part.removeprefix("scrapy ")))
    if found := re.fullmatch(r"(?:page|GET) (/\S+)", part):
        return found[1] in routes
    if found := re.match(r"(docs/\S+\.md)\b", part):
        return (ROOT / found[1]).is_file()
    if found := re.fullmatch(r"settings? ([A-Z_, ]+)", part):
        return all(hasattr(settings, name.strip()) for name in found[1].split(","))
    return False


def test_each_alert_names_what_explains_it_and_that_is_there(routes: set[str]) -> None:
    by_alert: dict[str, list[str]] = {}
    for alert, part in explanations():
        by_alert.setdefault(alert, []).append(part)
    assert len(by_alert) > 25
    missing = {a: parts for a, parts in by_alert.items() if not is_there(parts[0], routes)}
    assert not missing, "the first that it names"
    named = re.compile(r"(scrapy [a-z]|(?:page|GET) /|docs/|settings? [A-Z])")
    parts = [(a, part) for a, parts in by_alert.items() for part in parts if named.match(part)]
    assert not [(a, part) for a, part in parts if not is_there(part, routes)]


def test_what_is_not_there_would_be_found(routes: set[str]) -> None:
    for wrong in ("scrapy fleet state", "page /nowhere", "docs/none.md", "setting NO_SUCH", "pray"):
        assert not is_there(wrong, routes), wrong
