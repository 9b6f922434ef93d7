"""Who may import whom (docs/architecture.md), read from the sources."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[2] / "newscrawler"

OUTER = {"spiders", "commands", "api", "checks"}
ADAPTERS = {
    "middlewares",
    "pipelines",
    "scheduler",
    "pump",
    "inflight",
    "extensions",
    "monitors",
    "handlers",
    "wiring",
    "fetching",
    "reparsing",
    "tracing",
    "reading",
    "answers",
    "stats",
    "storing",
    "generation_ext",
    "drift_ext",
    "direct_ext",
    "selecting",
    "evaluation",
    "selector_bench",
    "logformat",
    "cli",
}
SERVICES = {
    "frontier",
    "discovery",
    "rawstore",
    "selectorstore",
    "store",
    "llm",
    "embeddings",
    "fleet",
    "httpclient",
    "children",
}
PURE = {"extraction", "web", "items", "metrics", "pickling"}
FREE = {"settings", "__init__"}

#: Third-party packages that only some parts may know.
ONLY_IN = {
    "scrapy": OUTER | ADAPTERS,
    "twisted": OUTER | ADAPTERS,
    "redis": {"frontier", "selectorstore", "fleet", "store", "wiring", "cli"} | OUTER,
    "elasticsearch": {"store"},
    "openai": {"llm", "embeddings"},
    "spidermon": {"monitors"},
}


def part_of(path: Path) -> str:
    relative = path.relative_to(PACKAGE)
    return relative.parts[0] if len(relative.parts) > 1 else relative.stem


def ring(part: str) -> int:
    for level, names in enumerate((PURE, SERVICES, ADAPTERS, OUTER)):
        if part in names:
            return level
    return 4


def imports(path: Path) -> list[tuple[int, str]]:
    """(line, dotted module) of every import that runs, also those inside functions; not of TYPE_CHECKING blocks."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    skipped: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            skipped |= {id(n) for child in node.body for n in ast.walk(child)}
    found = []
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.Import):
            found += [(node.lineno, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            if node.module == "newscrawler":
                found += [(node.lineno, f"newscrawler.{alias.name}") for alias in node.names]
            else:
                found.append((node.lineno, node.module))
    return found


SOURCES = sorted(PACKAGE.rglob("*.py"))


def test_there_are_sources_to_look_at():
    assert len(SOURCES) > 40


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_imports_point_down_only(path: Path):
    part = part_of(path)
    if part in FREE:
        return
    assert ring(part) < 4, f"{part}: belongs to no ring of docs/architecture.md"
    wrong = []
    for line, module in imports(path):
        top, _, rest = module.partition(".")
        if top == "newscrawler" and rest:
            other = rest.split(".")[0]
            if other == part or other in FREE:
                continue
            same_service = ring(part) == 1 and ring(other) == 1
            if ring(other) > ring(part) or same_service:
                wrong.append(f"{path.name}:{line} imports {module}")
        elif top in ONLY_IN and part not in ONLY_IN[top]:
            wrong.append(f"{path.name}:{line} imports {module}, which only {sorted(ONLY_IN[top])} may")
    assert not wrong, "; ".join(wrong)


def test_elasticsearch_and_openai_are_known_to_one_file_each():
    for package, files in (("elasticsearch", {"store/elastic.py"}), ("openai", {"llm.py", "embeddings.py"})):
        users = {
            str(p.relative_to(PACKAGE)) for p in SOURCES for _, module in imports(p) if module.split(".")[0] == package
        }
        assert users, f"nothing uses {package}"
        assert users <= files or all(u.startswith("store/elastic") for u in users), users
